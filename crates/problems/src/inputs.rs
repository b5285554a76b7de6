//! Inputs from a recipe.

use std::collections::BTreeMap;

use assay_tensor::philox::{Stream, unit};
use assay_tensor::tensor::write_element;
use assay_tensor::{DType, Tensor, numel};

use crate::error::InputError;
use crate::init::{Made, Values};
use crate::problem::{Extents, InputKind, Problem, Structure};
use crate::recipe::{Kind, MIXED, Position, Recipe};

/// All inputs of one evaluation together; desk extents stay far below.
pub const MAX_INPUT_BYTES: u64 = 16 << 30;

/// Standard deviation of the noise that `+params` adds.
const PARAM_NOISE: f64 = 0.5;

/// The stream of the one magnitude that `loguniform` draws; no tensor has this number.
const MAGNITUDE_STREAM: u64 = u64::MAX;

/// One input of a recipe as a function of its index: whole or in part, without the rest.
#[derive(Clone, Debug)]
pub struct InputValues {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
    maker: Maker,
    structure: Option<Structure>,
}

/// How an element is made, before it is rounded to its dtype.
#[derive(Clone, Debug)]
enum Maker {
    /// By a recipe, times its scale.
    Recipe(Source),
    /// By the initialiser.
    Init(Values, Stream),
    /// By the initialiser, with noise.
    Noisy(Values, Stream, Stream),
}

impl Maker {
    fn at(&self, i: u64) -> f64 {
        match self {
            Maker::Recipe(source) if source.softmax => source.share(i, source.row(i / source.columns)),
            Maker::Recipe(source) => source.at(i) * source.scale,
            Maker::Init(init, main) => init.at(main, i),
            Maker::Noisy(init, main, extra) => init.at(main, i) + PARAM_NOISE * extra.normal_at(i),
        }
    }

    /// Stream, lower bound, width and factor, where the values are uniform from one stream and nothing else.
    fn uniform(&self) -> Option<(&Stream, f64, f64, f64)> {
        match self {
            Maker::Recipe(source) if source.softmax => None,
            Maker::Recipe(source) => {
                source.uniform().map(|(lo, width)| (&source.main, lo, width, source.scale))
            }
            Maker::Init(Values::Uniform(lo, hi), main) => Some((main, *lo, hi - lo, 1.0)),
            Maker::Init(..) | Maker::Noisy(..) => None,
        }
    }
}

impl InputValues {
    /// The values that a recipe's kind gives tensor `number` of some inputs, without a problem: nothing of it is
    /// initialised, so that `official` means uniform in [0, 1).
    pub fn of_kind(recipe: &Recipe, number: u64, dtype: DType, shape: &[u64]) -> InputValues {
        let init = Made { values: Values::Uniform(0.0, 1.0), factor: false, softmax: false };
        let main = Stream::new(recipe.seed, number.wrapping_mul(2));
        let extra = Stream::new(recipe.seed, number.wrapping_mul(2).wrapping_add(1));
        let maker = Maker::Recipe(Source::new(recipe.kind, recipe, init, shape, main, extra));
        InputValues { dtype, shape: shape.to_vec(), maker, structure: None }
    }

    /// Writes elements `first`, `first + 1`, … into `out`, which holds a whole number of them, little-endian.
    pub fn fill(&self, first: u64, out: &mut [u8]) {
        let size = usize::try_from(self.dtype.size_bytes()).unwrap_or(1);
        let places = (first..).zip(out.chunks_exact_mut(size));
        match (self.structure, self.maker.uniform()) {
            (Some(structure), _) => {
                places.for_each(|(i, place)| write_element(self.dtype, self.structured(structure, i), place));
            }
            // Four to a block of the stream; the bits are those of `uniform_at`.
            (None, Some((stream, lo, width, scale))) => {
                let (mut at, mut block) = (first / 4, stream.block(first / 4));
                for (i, place) in places {
                    if i / 4 != at {
                        (at, block) = (i / 4, stream.block(i / 4));
                    }
                    let v = (lo + width * f64::from(unit(block[(i % 4) as usize]))) * scale;
                    match <&mut [u8; 4]>::try_from(&mut *place) {
                        Ok(place) if self.dtype == DType::F32 => *place = (v as f32).to_le_bytes(),
                        _ => write_element(self.dtype, v, place),
                    }
                }
            }
            (None, None) => match &self.maker {
                Maker::Recipe(source) if source.softmax => {
                    let mut known = None;
                    for (i, place) in places {
                        let number = i / source.columns;
                        let row = known
                            .filter(|(n, _)| *n == number)
                            .map_or_else(|| source.row(number), |(_, r)| r);
                        known = Some((number, row));
                        write_element(self.dtype, source.share(i, row), place);
                    }
                }
                maker => places.for_each(|(i, place)| write_element(self.dtype, maker.at(i), place)),
            },
        }
    }

    /// An element of a matrix of that structure. A mean is rounded to float32 before it is rounded to the
    /// dtype.
    fn structured(&self, structure: Structure, i: u64) -> f64 {
        let [.., rows, columns] = self.shape[..] else { return self.maker.at(i) };
        let (matrix, columns) = (rows.saturating_mul(columns).max(1), columns.max(1));
        let (row, column) = (i % matrix / columns, i % columns);
        match structure {
            Structure::Upper if column < row => 0.0,
            Structure::Lower if column > row => 0.0,
            Structure::Upper | Structure::Lower => self.maker.at(i),
            Structure::Symmetric => {
                let mirror = i - i % matrix + column * columns + row;
                let stored = |i: u64| match self.dtype {
                    DType::F32 => self.maker.at(i) as f32,
                    dtype => {
                        let mut one = Tensor { dtype, shape: Vec::new(), data: vec![0; 8] };
                        let size = usize::try_from(dtype.size_bytes()).unwrap_or(8);
                        write_element(dtype, self.maker.at(i), &mut one.data[..size]);
                        one.get_f64(0) as f32
                    }
                };
                f64::from((stored(i) + stored(mirror)) / 2.0)
            }
        }
    }

    /// All elements.
    ///
    /// # Errors
    /// `Tensor` where they do not fit in memory.
    pub fn tensor(&self) -> Result<Tensor, InputError> {
        let mut t = Tensor::zeros(self.dtype, &self.shape)?;
        self.fill(0, &mut t.data);
        Ok(t)
    }
}

impl Recipe {
    /// The one number that multiplies floating-point inputs: the scale, and the magnitude that `loguniform` draws.
    pub fn factor(&self) -> f64 {
        match self.kind {
            Kind::LogUniform(lo, hi) => {
                let u = f64::from(Stream::new(self.seed, MAGNITUDE_STREAM).uniform_at(0));
                self.scale * libm::exp10(lo + (hi - lo) * u)
            }
            _ => self.scale,
        }
    }
}

impl Problem {
    /// The inputs and parameters of a recipe at these extents as functions of their index, by name.
    ///
    /// Values depend on (seed, number of the tensor, index of the element) alone.
    ///
    /// # Errors
    /// `UnknownDim` and `Expression` as [`Problem::dims_for`]; `NotSquare` where a matrix that is to be
    /// symmetric is not square.
    pub fn input_values(
        &self,
        recipe: &Recipe,
        extents: Extents,
    ) -> Result<BTreeMap<String, InputValues>, InputError> {
        let dims = self.dims_for(recipe, extents)?;
        let mut out = BTreeMap::new();
        // What `mixed` mixes; the others would hide in each output what one sample is to show.
        let mixed =
            self.inputs.iter().find(|i| i.kind == InputKind::Input && i.dtype.is_float()).map(|i| &i.name);
        for (number, input) in (0u64..).zip(&self.inputs) {
            let shape = self.shape_of(input, &dims)?;
            let init = input.init.at(&dims).map_err(|why| InputError::Expression {
                problem: self.key(),
                what: input.name.clone(),
                why,
            })?;
            if let (Some(Structure::Symmetric), [.., rows, columns]) = (input.structure, &shape[..])
                && rows != columns
            {
                return Err(InputError::NotSquare { rows: *rows, columns: *columns });
            }
            let main = Stream::new(recipe.seed, number * 2);
            let extra = Stream::new(recipe.seed, number * 2 + 1);
            let maker = match (input.kind, input.dtype.is_float()) {
                (InputKind::Input, true) => {
                    let kind = match recipe.kind {
                        Kind::Mixed(_) if mixed != Some(&input.name) => Kind::Normal(1.0),
                        kind => kind,
                    };
                    Maker::Recipe(Source::new(kind, recipe, init, &shape, main, extra))
                }
                // The loader lets only floating-point inputs have a factor or a softmax.
                (InputKind::Parameter, true) if recipe.params => Maker::Noisy(init.values, main, extra),
                _ => Maker::Init(init.values, main),
            };
            let values = InputValues { dtype: input.dtype, shape, maker, structure: input.structure };
            out.insert(input.name.clone(), values);
        }
        Ok(out)
    }

    /// The inputs and parameters of a recipe at these extents, whole, by name.
    ///
    /// # Errors
    /// As [`Problem::input_values`]; `TooLarge`; `Tensor`.
    pub fn make_inputs(
        &self,
        recipe: &Recipe,
        extents: Extents,
    ) -> Result<BTreeMap<String, Tensor>, InputError> {
        let values = self.input_values(recipe, extents)?;
        let size = |v: &InputValues| {
            numel(&v.shape).and_then(|n| n.checked_mul(v.dtype.size_bytes())).unwrap_or(u64::MAX)
        };
        let bytes = values.values().fold(0u64, |sum, v| sum.saturating_add(size(v)));
        if bytes > MAX_INPUT_BYTES {
            return Err(InputError::TooLarge { problem: self.key(), bytes, limit: MAX_INPUT_BYTES });
        }
        values.into_iter().map(|(name, v)| Ok((name, v.tensor()?))).collect()
    }
}

/// The values of one floating-point input.
#[derive(Clone, Debug)]
struct Source {
    kind: Kind,
    init: Values,
    scale: f64,
    /// Whether the initialiser's softmax is to be taken, of values times this factor.
    softmax: bool,
    factor: f64,
    /// Extent of the last dim.
    columns: u64,
    main: Stream,
    extra: Stream,
    len: u64,
    /// Extent and stride of the dim that `alternating` and `spike` look along.
    extent: u64,
    stride: u64,
    /// Elements of a sample, as `mixed` counts them.
    sample: u64,
}

impl Source {
    fn new(kind: Kind, recipe: &Recipe, init: Made, shape: &[u64], main: Stream, extra: Stream) -> Source {
        let last = shape.len().saturating_sub(1);
        let dim = match kind {
            // A dim that this tensor does not have is its last.
            Kind::Spike(_, _, Some(d)) => usize::try_from(d).unwrap_or(last).min(last),
            _ => last,
        };
        let mut scale = match kind {
            Kind::LogUniform(..) => recipe.factor(),
            _ => recipe.scale,
        };
        let own = matches!(kind, Kind::Official | Kind::LogUniform(..));
        let softmax = own && init.softmax;
        let factor = if own { init.factor_of(&main) } else { 1.0 };
        if !softmax {
            scale *= factor;
        }
        let len = numel(shape).unwrap_or(0);
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let sample = match shape {
            // Vectors of four of a tensor that has no rows.
            [] | [_] => 4,
            [0 | 1, ..] => columns,
            [samples, ..] => len / samples,
        };
        Source {
            kind,
            init: init.values,
            scale,
            softmax,
            factor,
            columns,
            main,
            extra,
            len,
            extent: shape.get(dim).copied().unwrap_or(1).max(1),
            stride: shape.iter().skip(dim + 1).fold(1u64, |a, b| a.saturating_mul(*b)).max(1),
            sample: sample.max(1),
        }
    }

    /// Lower bound and width, where the values are uniform from the main stream and nothing else.
    fn uniform(&self) -> Option<(f64, f64)> {
        match (self.kind, self.init) {
            (Kind::Rand, _) => Some((0.0, 1.0)),
            (Kind::Uniform(lo, hi), _) => Some((lo, hi - lo)),
            (Kind::Tiny(v), _) => Some((-v, 2.0 * v)),
            (Kind::Official | Kind::LogUniform(..), Values::Uniform(lo, hi)) => Some((lo, hi - lo)),
            _ => None,
        }
    }

    /// What goes into the softmax: in float32, as in PyTorch.
    fn logit(&self, i: u64) -> f64 {
        f64::from((self.at(i) * self.factor) as f32)
    }

    /// Maximum of a row along the last dim, and the sum of its exponentials relative to that.
    fn row(&self, number: u64) -> (f64, f64) {
        let first = number.saturating_mul(self.columns);
        let logits = || (0..self.columns).map(|c| self.logit(first.saturating_add(c)));
        let top = logits().fold(f64::NEG_INFINITY, f64::max);
        (top, logits().map(|v| libm::exp(v - top)).sum())
    }

    /// The softmax of an element of the row with this maximum and sum, times the recipe's scale.
    fn share(&self, i: u64, (top, sum): (f64, f64)) -> f64 {
        libm::exp(self.logit(i) - top) / sum * self.scale
    }

    fn at(&self, i: u64) -> f64 {
        match self.kind {
            Kind::Mixed(first) => {
                let n = MIXED.len() as u64;
                let turn = (first % n + i / self.sample % n) % n;
                self.value(MIXED[usize::try_from(turn).unwrap_or(0)], i)
            }
            kind => self.value(kind, i),
        }
    }

    /// The element as a kind that is not `mixed` has it.
    fn value(&self, kind: Kind, i: u64) -> f64 {
        let u = || f64::from(self.main.uniform_at(i));
        let chance = |p: f64| f64::from(self.extra.uniform_at(i)) < p;
        let coordinate = (i / self.stride) % self.extent;
        match kind {
            // [`MIXED`] holds no `mixed`.
            Kind::Mixed(_) | Kind::Official | Kind::LogUniform(..) => self.init.at(&self.main, i),
            Kind::Rand => u(),
            Kind::Normal(std) => std * self.main.normal_at(i),
            Kind::Uniform(lo, hi) => lo + (hi - lo) * u(),
            Kind::Constant(v) => v,
            Kind::Ties(1) => 1.0,
            Kind::Ties(k) => 2.0 * self.main.below_at(i, k) as f64 / (k - 1) as f64 - 1.0,
            Kind::Outlier(p, mag) => {
                let v = self.main.normal_at(i);
                if chance(p) { v * mag } else { v }
            }
            Kind::Tiny(v) => v * (2.0 * u() - 1.0),
            Kind::Index(p) => ((i % p) + 1) as f64 / p as f64,
            Kind::Sparse(p) => {
                if chance(p) {
                    self.main.normal_at(i)
                } else {
                    0.0
                }
            }
            Kind::SameSign(mag) => mag * (0.5 + 0.5 * u()),
            Kind::Ramp => (2.0 * i as f64 + 1.0) / self.len as f64 - 1.0,
            Kind::Alternating(mag) => {
                let v = mag * (0.5 + 0.5 * u());
                if coordinate % 2 == 1 { -v } else { v }
            }
            Kind::Spike(position, mag, _) => {
                let at = match position {
                    Position::First => 0,
                    Position::Mid => self.extent / 2,
                    Position::Last => self.extent - 1,
                };
                if coordinate == at { mag } else { 2.0 * u() - 1.0 }
            }
            Kind::Shifted(mean, std) => mean + std * self.main.normal_at(i),
        }
    }
}
