//! Inputs from a recipe.

use std::collections::BTreeMap;

use assay_tensor::philox::{Stream, unit};
use assay_tensor::tensor::write_element;
use assay_tensor::{DType, Tensor, numel};

use crate::error::InputError;
use crate::init::Values;
use crate::problem::{Extents, InputKind, Problem, Structure};
use crate::recipe::{Kind, Position, Recipe};

/// All inputs of one evaluation together; desk extents stay far below.
pub const MAX_INPUT_BYTES: u64 = 16 << 30;

/// Standard deviation of the noise that `+params` adds.
const PARAM_NOISE: f64 = 0.5;

/// The stream of the one magnitude that `loguniform` draws; no tensor has this number.
const MAGNITUDE_STREAM: u64 = u64::MAX;

impl Problem {
    /// The inputs and parameters of a recipe at these extents, by name.
    ///
    /// Values depend on (seed, number of the tensor, index of the element) alone.
    ///
    /// # Errors
    /// `UnknownDim` and `Expression` as [`Problem::dims_for`]; `TooLarge`; `Tensor`.
    pub fn make_inputs(
        &self,
        recipe: &Recipe,
        extents: Extents,
    ) -> Result<BTreeMap<String, Tensor>, InputError> {
        let dims = self.dims_for(recipe, extents)?;
        let mut plans = Vec::new();
        let mut bytes = 0u64;
        for (number, input) in (0u64..).zip(&self.inputs) {
            let shape = self.shape_of(input, &dims)?;
            let values = input.init.at(&dims).map_err(|why| InputError::Expression {
                problem: self.key(),
                what: input.name.clone(),
                why,
            })?;
            let size =
                numel(&shape).and_then(|n| n.checked_mul(input.dtype.size_bytes())).unwrap_or(u64::MAX);
            bytes = bytes.saturating_add(size);
            plans.push((number, input, shape, values));
        }
        if bytes > MAX_INPUT_BYTES {
            return Err(InputError::TooLarge { problem: self.key(), bytes, limit: MAX_INPUT_BYTES });
        }
        let mut out = BTreeMap::new();
        for (number, input, shape, init) in plans {
            let main = Stream::new(recipe.seed, number * 2);
            let extra = Stream::new(recipe.seed, number * 2 + 1);
            let float = input.dtype.is_float();
            let tensor = match (input.kind, float) {
                (InputKind::Input, true) => {
                    let source = Source::new(recipe, init, &shape, main, extra);
                    if let Some((lo, width)) = source.uniform() {
                        uniform(input.dtype, &shape, main, lo, width, source.scale)?
                    } else {
                        fill(input.dtype, &shape, |i| source.at(i) * source.scale)?
                    }
                }
                (InputKind::Parameter, true) if recipe.params => {
                    fill(input.dtype, &shape, |i| init.at(&main, i) + PARAM_NOISE * extra.normal_at(i))?
                }
                _ => match init {
                    Values::Uniform(lo, hi) => uniform(input.dtype, &shape, main, lo, hi - lo, 1.0)?,
                    _ => fill(input.dtype, &shape, |i| init.at(&main, i))?,
                },
            };
            let tensor = match input.structure {
                Some(structure) => structured(tensor, structure)?,
                None => tensor,
            };
            out.insert(input.name.clone(), tensor);
        }
        Ok(out)
    }
}

/// A tensor whose element `i` is `f(i)`, rounded to its dtype.
fn fill(dtype: DType, shape: &[u64], f: impl Fn(u64) -> f64) -> Result<Tensor, InputError> {
    let mut t = Tensor::zeros(dtype, shape)?;
    let size = usize::try_from(dtype.size_bytes()).unwrap_or(1);
    if dtype == DType::F32 {
        for (i, place) in (0u64..).zip(t.data.chunks_exact_mut(4)) {
            place.copy_from_slice(&(f(i) as f32).to_le_bytes());
        }
    } else {
        for (i, place) in (0u64..).zip(t.data.chunks_exact_mut(size)) {
            write_element(dtype, f(i), place);
        }
    }
    Ok(t)
}

/// The same for uniform values, four to a block of the generator: the bits are those of `uniform_at`.
fn uniform(
    dtype: DType,
    shape: &[u64],
    s: Stream,
    lo: f64,
    width: f64,
    scale: f64,
) -> Result<Tensor, InputError> {
    if dtype != DType::F32 {
        return fill(dtype, shape, |i| (lo + width * f64::from(s.uniform_at(i))) * scale);
    }
    let mut t = Tensor::zeros(dtype, shape)?;
    for (block, four) in (0u64..).zip(t.data.chunks_mut(16)) {
        for (word, place) in s.block(block).into_iter().zip(four.chunks_exact_mut(4)) {
            let v = (lo + width * f64::from(unit(word))) * scale;
            place.copy_from_slice(&(v as f32).to_le_bytes());
        }
    }
    Ok(t)
}

/// The tensor with matrices of that structure. A mean is rounded to float32 before it is rounded to the dtype.
///
/// # Errors
/// `NotSquare` where a matrix that is to be symmetric is not square.
fn structured(t: Tensor, structure: Structure) -> Result<Tensor, InputError> {
    let [.., rows, columns] = t.shape[..] else { return Ok(t) };
    if structure == Structure::Symmetric && rows != columns {
        return Err(InputError::NotSquare { rows, columns });
    }
    let matrix = rows.saturating_mul(columns).max(1);
    let values = t.to_f64_vec();
    fill(t.dtype, &t.shape, |i| {
        let (row, column) = (i % matrix / columns.max(1), i % columns.max(1));
        let v = values[i as usize];
        match structure {
            Structure::Upper if column < row => 0.0,
            Structure::Lower if column > row => 0.0,
            Structure::Upper | Structure::Lower => v,
            Structure::Symmetric => {
                let other = values[(i - i % matrix + column * columns + row) as usize];
                f64::from((v as f32 + other as f32) / 2.0)
            }
        }
    })
}

/// The values of one floating-point input.
struct Source {
    kind: Kind,
    init: Values,
    scale: f64,
    main: Stream,
    extra: Stream,
    len: u64,
    /// Extent and stride of the dim that `alternating` and `spike` look along.
    extent: u64,
    stride: u64,
}

impl Source {
    fn new(recipe: &Recipe, init: Values, shape: &[u64], main: Stream, extra: Stream) -> Source {
        let last = shape.len().saturating_sub(1);
        let dim = match recipe.kind {
            // A dim that this tensor does not have is its last.
            Kind::Spike(_, _, Some(d)) => usize::try_from(d).unwrap_or(last).min(last),
            _ => last,
        };
        let mut scale = recipe.scale;
        if let Kind::LogUniform(lo, hi) = recipe.kind {
            let u = f64::from(Stream::new(recipe.seed, MAGNITUDE_STREAM).uniform_at(0));
            scale *= libm::exp10(lo + (hi - lo) * u);
        }
        Source {
            kind: recipe.kind,
            init,
            scale,
            main,
            extra,
            len: numel(shape).unwrap_or(0),
            extent: shape.get(dim).copied().unwrap_or(1).max(1),
            stride: shape.iter().skip(dim + 1).fold(1u64, |a, b| a.saturating_mul(*b)).max(1),
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

    fn at(&self, i: u64) -> f64 {
        let u = || f64::from(self.main.uniform_at(i));
        let chance = |p: f64| f64::from(self.extra.uniform_at(i)) < p;
        let coordinate = (i / self.stride) % self.extent;
        match self.kind {
            Kind::Official | Kind::LogUniform(..) => self.init.at(&self.main, i),
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
