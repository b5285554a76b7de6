//! Plans: which series a sweep has, and which sizes each of them visits.

use assay_tensor::DType;
use serde::{Deserialize, Serialize};

use crate::condition::{dtype, parse_count};
use crate::device::PLANS;
use crate::error::SweepError;
use crate::geometry::{Layout, Shape};
use crate::point::{Compare, Phase, Point};
use crate::values::Kind;

/// A plan file (`sweeps/plans/*.toml`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// Where it is from.
    #[serde(default)]
    pub source: String,
    /// Whether gradients are made and compared.
    #[serde(default)]
    pub backward: bool,
    /// Added to every seed of the plan.
    #[serde(default)]
    pub seed: u64,
    /// How points are chosen.
    #[serde(default)]
    pub mode: Mode,
    /// Layouts of every shape.
    pub layouts: Vec<Layout>,
    /// Elements of the crossing tensor at the small point, and of the view in the offset mode.
    #[serde(default = "small_default")]
    pub small: String,
    /// Candidate boundaries of the crossing tensor: `2^31`, `2^32 bytes`.
    #[serde(default = "boundaries_default")]
    pub boundaries: Vec<String>,
    /// Sizes on each side of a boundary.
    #[serde(default = "two")]
    pub around: u64,
    /// Seeds of the calibration.
    #[serde(default = "three")]
    pub calibration_seeds: Vec<u64>,
    /// Seeds of the full comparisons.
    #[serde(default = "three")]
    pub full_seeds: Vec<u64>,
    /// Switch points of a series that get full comparisons.
    #[serde(default = "four")]
    pub max_switches: usize,
    /// Index-encoded inputs beside a switch point, of indexed shapes; on both sides where all four, else on the failing side.
    #[serde(default = "all_kinds")]
    pub switch_kinds: Vec<Kind>,
    /// Whether indexed shapes get index-encoded runs around every boundary too.
    #[serde(default = "yes")]
    pub index_points: bool,
    /// Batch sizes of the points mode, and those of its index-encoded runs.
    #[serde(default)]
    pub at: Vec<u64>,
    /// See `at`.
    #[serde(default)]
    pub indexed_at: Vec<u64>,
    /// Boundaries on which the view of the offset mode is centred.
    #[serde(default)]
    pub straddle: Vec<String>,
    /// The shapes.
    #[serde(rename = "shape")]
    pub shapes: Vec<ShapeSpec>,
}

/// A shape of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeSpec {
    /// `M,K,N`.
    pub mkn: String,
    /// Element types.
    pub dtypes: Vec<String>,
    /// Points of the even grid in each interval.
    #[serde(default)]
    pub grid: u64,
    /// Whether it gets index-encoded inputs.
    #[serde(default)]
    pub indexed: bool,
    /// Layouts, where not the plan's.
    #[serde(default)]
    pub layouts: Vec<Layout>,
    /// Batch sizes, where not the plan's (points mode).
    #[serde(default)]
    pub at: Vec<u64>,
}

/// How a plan chooses its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Around every boundary, a grid between, bisection, switch points.
    #[default]
    Search,
    /// Given batch sizes, compared in full.
    Points,
    /// A small view behind so many leading batches that its offset crosses the boundaries.
    Offset,
}

fn small_default() -> String {
    "2^28".into()
}

fn boundaries_default() -> Vec<String> {
    ["2^31", "2^32", "2^32 bytes"].map(str::to_owned).to_vec()
}

fn two() -> u64 {
    2
}

fn three() -> Vec<u64> {
    vec![0, 1, 2]
}

fn four() -> usize {
    4
}

fn yes() -> bool {
    true
}

fn all_kinds() -> Vec<Kind> {
    Kind::ENCODED.to_vec()
}

/// A series: one shape, dtype and layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    /// One batch.
    pub shape: Shape,
    /// Element type.
    pub dtype: DType,
    /// Layout.
    pub layout: Layout,
    /// Points of the grid in each interval.
    pub grid: u64,
    /// Whether it gets index-encoded inputs.
    pub indexed: bool,
    /// Batch sizes of the points mode.
    pub at: Vec<u64>,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// TOML of another form, and shapes, dtypes and counts that are none.
    pub fn parse(text: &str, origin: &str) -> Result<Plan, SweepError> {
        let plan: Plan = toml::from_str(text)
            .map_err(|e| SweepError::bad(format!("{origin}: {}", e.to_string().trim_end())))?;
        let at = |e: SweepError| SweepError::bad(format!("{origin}: {e}"));
        plan.series().map_err(at)?;
        plan.boundaries_in(DType::F32).map_err(at)?;
        plan.small_elements().map_err(at)?;
        if plan.around > 64 || plan.shapes.iter().any(|s| s.grid > 1024) {
            return Err(at(SweepError::bad("`around` is at most 64, `grid` at most 1024")));
        }
        Ok(plan)
    }

    /// The built-in plan of that name, or a plan file.
    ///
    /// # Errors
    /// No such plan, or a file that cannot be read or parsed.
    pub fn find(name: &str) -> Result<Plan, SweepError> {
        if name.ends_with(".toml") || name.contains('/') {
            let path = std::path::Path::new(name);
            return Plan::parse(&std::fs::read_to_string(path).map_err(SweepError::reading(path))?, name);
        }
        let Some((file, text)) = PLANS.iter().find(|(n, _)| *n == name) else {
            let names: Vec<&str> = PLANS.iter().map(|(n, _)| *n).collect();
            return Err(SweepError::bad(format!(
                "there is no plan `{name}`; there are {}",
                names.join(", ")
            )));
        };
        Plan::parse(text, &format!("sweeps/plans/{file}.toml"))
    }

    /// Its series, in order.
    ///
    /// # Errors
    /// Shapes and dtypes that are none.
    pub fn series(&self) -> Result<Vec<Series>, SweepError> {
        let mut out = Vec::new();
        for spec in &self.shapes {
            let shape: Shape = spec.mkn.parse()?;
            for name in &spec.dtypes {
                let dtype = dtype(name).ok_or_else(|| SweepError::bad(format!("`{name}` is not a dtype")))?;
                if !dtype.is_float() {
                    return Err(SweepError::bad(format!("bmm is swept in floating point, not in {dtype}")));
                }
                let layouts = if spec.layouts.is_empty() { &self.layouts } else { &spec.layouts };
                for &layout in layouts {
                    let at = if spec.at.is_empty() { self.at.clone() } else { spec.at.clone() };
                    out.push(Series { shape, dtype, layout, grid: spec.grid, indexed: spec.indexed, at });
                }
            }
        }
        Ok(out)
    }

    fn small_elements(&self) -> Result<u64, SweepError> {
        parse_count(&self.small)
            .filter(|&n| n > 0)
            .ok_or_else(|| SweepError::bad(format!("`{}` is not a count of elements", self.small)))
    }

    /// The boundaries in elements of `dtype`, ascending, equal ones once.
    ///
    /// # Errors
    /// A boundary that is no count.
    pub fn boundaries_in(&self, dtype: DType) -> Result<Vec<u64>, SweepError> {
        let mut out =
            self.boundaries.iter().map(|text| boundary(text, dtype)).collect::<Result<Vec<_>, _>>()?;
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// The batch size of the small point.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn small_batch(&self, shape: Shape) -> Result<u64, SweepError> {
        Ok((self.small_elements()? / shape.crossing_elements()).max(1))
    }

    /// The batch sizes at which the crossing tensor of `series` reaches a boundary; for the offset mode the leading batches
    /// at which the larger operand's offset does.
    fn crossings(&self, series: &Series) -> Result<Vec<u64>, SweepError> {
        let per = match self.mode {
            Mode::Offset => series.shape.a().max(series.shape.b()),
            _ => series.shape.crossing_elements(),
        };
        let small = if self.mode == Mode::Offset { 1 } else { self.small_batch(series.shape)? };
        let mut out: Vec<u64> =
            self.boundaries_in(series.dtype)?.iter().map(|b| b / per).filter(|&b| b > small).collect();
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// The values that a series visits first: the small one, those around every crossing, and an even grid between
    /// neighbouring anchors; ascending.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn sizes(&self, series: &Series) -> Result<Vec<u64>, SweepError> {
        if self.mode == Mode::Points {
            return Ok(series.at.clone());
        }
        let first = if self.mode == Mode::Offset { 1 } else { self.small_batch(series.shape)? };
        let mut anchors = vec![first];
        let mut out = vec![first];
        for b in self.crossings(series)? {
            anchors.push(b);
            out.extend(b.saturating_sub(self.around).max(first)..=b + self.around);
        }
        if self.mode == Mode::Offset {
            let per = series.shape.a().max(series.shape.b());
            let half = self.small_batch(series.shape)? / 2;
            for text in &self.straddle {
                let at = parse_count(text)
                    .ok_or_else(|| SweepError::bad(format!("`{text}` is not a count of elements")))?;
                out.push((at / per).saturating_sub(half).max(1));
            }
        }
        for pair in anchors.windows(2) {
            let (lo, hi) = (pair[0], pair[1]);
            for k in 1..=series.grid {
                // round((hi - lo) * k / (g + 1))
                out.push(lo + ((hi - lo) * k * 2 + series.grid + 1) / ((series.grid + 1) * 2));
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    /// A point of `series`.
    pub fn point(
        &self,
        series: &Series,
        size: u64,
        phase: Phase,
        kind: Kind,
        seed: u64,
        compare: Compare,
    ) -> Result<Point, SweepError> {
        let (batch, offset) = match self.mode {
            Mode::Offset => (self.small_batch(series.shape)?, size),
            _ => (size, 0),
        };
        Point {
            phase,
            shape: series.shape,
            dtype: series.dtype,
            layout: series.layout,
            kind,
            batch,
            offset,
            seed: self.seed.wrapping_add(seed),
            compare,
            backward: self.backward,
        }
        .checked()
    }

    /// The calibration: every shape and dtype, contiguous, at the small point, all elements.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn calibration(&self) -> Result<Vec<Point>, SweepError> {
        let mut out: Vec<Point> = Vec::new();
        for series in self.series()? {
            for &seed in &self.calibration_seeds {
                let point = Point {
                    phase: Phase::Calibration,
                    shape: series.shape,
                    dtype: series.dtype,
                    layout: Layout::Contig,
                    kind: Kind::Random,
                    batch: self.small_batch(series.shape)?,
                    offset: 0,
                    seed: self.seed.wrapping_add(seed),
                    compare: Compare::Full,
                    backward: self.backward,
                };
                if !out.contains(&point) {
                    out.push(point);
                }
            }
        }
        Ok(out)
    }

    /// The first runs of every series.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn search(&self, series: &Series) -> Result<Vec<Point>, SweepError> {
        let compare = if self.mode == Mode::Search { Compare::Sample } else { Compare::Full };
        let seeds: &[u64] = if self.mode == Mode::Points { &self.full_seeds } else { &[0] };
        let mut out = Vec::new();
        for size in self.sizes(series)? {
            for &seed in seeds {
                out.push(self.point(series, size, Phase::Search, Kind::Random, seed, compare)?);
            }
        }
        Ok(out)
    }

    /// The index-encoded runs that do not wait for outcomes.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn index(&self, series: &Series) -> Result<Vec<Point>, SweepError> {
        if !series.indexed || self.backward {
            return Ok(Vec::new());
        }
        let sizes = match self.mode {
            Mode::Offset => return Ok(Vec::new()),
            Mode::Points => self.indexed_at.clone(),
            Mode::Search if self.index_points => {
                let mut sizes = vec![self.small_batch(series.shape)?];
                for b in self.crossings(series)? {
                    sizes.extend([b - 1, b + 1]);
                }
                sizes.sort_unstable();
                sizes.dedup();
                sizes
            }
            Mode::Search => return Ok(Vec::new()),
        };
        let mut out = Vec::new();
        for size in sizes {
            for kind in Kind::ENCODED {
                out.push(self.point(series, size, Phase::Index, kind, 0, Compare::Sample)?);
            }
        }
        Ok(out)
    }

    /// The runs beside the switch points of a series, given as (last size, next size, whether the last one is right); at the
    /// largest size where there is none.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn finals(&self, series: &Series, switches: &[(u64, u64, bool)]) -> Result<Vec<Point>, SweepError> {
        if self.mode != Mode::Search {
            return Ok(Vec::new());
        }
        let switches = &switches[..switches.len().min(self.max_switches)];
        let mut sizes: Vec<u64> = switches.iter().flat_map(|s| [s.0, s.1]).collect();
        if sizes.is_empty() {
            sizes.extend(self.sizes(series)?.last());
        }
        sizes.sort_unstable();
        sizes.dedup();
        let all = self.switch_kinds.len() == Kind::ENCODED.len();
        let failing: Vec<u64> = switches.iter().map(|s| if s.2 { s.1 } else { s.0 }).collect();
        let mut out = Vec::new();
        for &size in &sizes {
            for &seed in &self.full_seeds {
                out.push(self.point(series, size, Phase::Final, Kind::Random, seed, Compare::Full)?);
            }
            if series.indexed && !self.backward && (all || failing.contains(&size)) {
                for &kind in &self.switch_kinds {
                    out.push(self.point(series, size, Phase::Final, kind, 0, Compare::Full)?);
                }
            }
        }
        Ok(out)
    }
}

/// A boundary (`2^31`, `2^32 elements`, `2^32 bytes`) in elements of `dtype`.
///
/// # Errors
/// Text that is no such count, or one beyond 2^50.
pub fn boundary(text: &str, dtype: DType) -> Result<u64, SweepError> {
    let (number, size) = match text.trim().strip_suffix("bytes") {
        Some(n) => (n, dtype.size_bytes()),
        None => (text.trim().strip_suffix("elements").unwrap_or(text), 1),
    };
    parse_count(number).filter(|n| (1..=1 << 50).contains(n)).map(|n| n / size).ok_or_else(|| {
        SweepError::bad(format!("`{text}` is not a boundary; write 2^31 or `2^32 bytes`, at most 2^50"))
    })
}

/// The names and titles of the built-in plans.
pub fn names() -> Vec<(String, String)> {
    PLANS.iter().filter_map(|(n, text)| Plan::parse(text, n).ok().map(|p| (p.name, p.title))).collect()
}
