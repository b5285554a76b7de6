//! A problem, loaded and checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use assay_ops::Program;
use assay_tensor::{DType, tensor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::InputError;
use crate::expr::Expr;
use crate::init::Init;
use crate::recipe::Recipe;
use assay_host::{Bindings, HostError, HostProgram, Plan};

/// Which of a dim's two extents to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extents {
    /// Cut to what a CPU affords thousands of times.
    Desk,
    /// The benchmark's.
    Official,
}

/// A named dim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Its name.
    pub name: String,
    /// The benchmark's extent.
    pub official: u64,
    /// The extent at the desk.
    pub desk: u64,
}

/// What an input is to PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A tensor of `get_inputs()`.
    Input,
    /// A parameter of the module.
    Parameter,
}

/// What the matrices of an input (its last two dims) look like, whatever recipe makes their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Zero below the diagonal.
    Upper,
    /// Zero above the diagonal.
    Lower,
    /// The mean of a matrix and its transpose.
    Symmetric,
}

/// A trivial answer that the official check takes for right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trivial {
    /// Zeros everywhere.
    Zeros,
    /// One number everywhere, the same for every input.
    Constant,
    /// One number everywhere, another for each input.
    Flat,
}

/// On which inputs something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The benchmark's.
    Official,
    /// Whatever they hold: no input tells one kernel from another.
    Any,
}

/// What makes a problem blind: a kernel that reads nothing passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degenerate {
    /// The least that passes at a tolerance of 1e-2: zeros are a constant, and a constant is flat.
    pub passes: Trivial,
    /// On which inputs.
    pub inputs: Reach,
    /// Why, for readers.
    pub reason: String,
}

/// An input tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name in the reference and in `launch`.
    pub name: String,
    /// Input or parameter.
    pub kind: InputKind,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Expr>,
    /// How the official recipe makes it.
    pub init: Init,
    /// What its matrices look like under every recipe.
    pub structure: Option<Structure>,
}

/// A problem: what is computed, on which shapes, and by which kernel.
#[derive(Clone, Debug)]
pub struct Problem {
    /// KernelBench's level.
    pub level: u32,
    /// KernelBench's number within the level.
    pub id: u32,
    /// Name for people.
    pub name: String,
    /// The folder's last part, `23_softmax`.
    pub slug: String,
    /// The folder; for the embedded catalogue its path within that.
    pub dir: PathBuf,
    /// What the kernel does to be fast.
    pub techniques: Vec<String>,
    /// The operators, for listing and for choosing recipes; from the reference where the file does not say.
    pub operators: Vec<String>,
    /// NaN in the output is right where the reference has NaN.
    pub nan_ok: bool,
    /// What should be known about its tolerance.
    pub tolerance_note: Option<String>,
    /// What desk extents lose.
    pub notes: Option<String>,
    /// False where the float32 reference fails its own float64 evaluation, so that no kernel can be judged.
    pub refereeable: bool,
    /// A trivial answer that passes, where there is one.
    pub degenerate: Option<Degenerate>,
    /// The dims, by name.
    pub dims: Vec<Dim>,
    /// Derived dims in an order in which each needs only earlier ones.
    pub derived: Vec<(String, Expr)>,
    /// Constants visible in reference and launcher.
    pub scalars: BTreeMap<String, f64>,
    /// Inputs and parameters in the order of the file, which numbers their random streams.
    pub inputs: Vec<Input>,
    /// Outputs in order, all judged.
    pub outputs: Vec<String>,
    /// The outputs' shapes, where the file states them: they decide the layout of memory at official extents, at
    /// which no reference is evaluated. The gate compares them with the reference's at every shape it runs.
    pub output_shapes: BTreeMap<String, Vec<Expr>>,
    /// Inputs that `launch` may write.
    pub inplace: Vec<String>,
    /// The reference.
    pub reference: Program,
    /// Its text.
    pub reference_text: String,
    /// Legal odd extents; each overrides some dims.
    pub ragged: Vec<BTreeMap<String, u64>>,
    /// Text of `problem.toml`.
    pub toml_source: String,
    /// Text of the kernel file, with the shared code that it includes.
    pub kernel_source: String,
    /// Names of the shared code in it, in the order of the text.
    pub includes: Vec<String>,
    /// Where the kernel file is.
    pub kernel_file: PathBuf,
    /// Its host side.
    pub host: HostProgram,
}

impl Problem {
    /// `1/23`, by which reports and databases call it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.level, self.id)
    }

    /// The same problem with the benchmark's extents in place of the desk's.
    #[must_use]
    pub fn at_official_extents(mut self) -> Problem {
        for dim in &mut self.dims {
            dim.desk = dim.official;
        }
        self
    }

    /// Whether a kernel can be judged on it at all: float32 follows the reference, and some input tells outputs from
    /// a constant.
    pub fn can_referee(&self) -> bool {
        self.refereeable && self.degenerate.as_ref().is_none_or(|d| d.inputs != Reach::Any)
    }

    /// SHA-256 of `problem.toml` and of the kernel file, in hexadecimal.
    pub fn digests(&self) -> (String, String) {
        let of = |text: &str| tensor::hex(&Sha256::digest(text.as_bytes()));
        (of(&self.toml_source), of(&self.kernel_source))
    }

    /// The dims and derived dims at these extents, with the recipe's overrides.
    ///
    /// # Errors
    /// `UnknownDim` for an override of no dim; `Expression` for a derived dim that has no value there.
    pub fn dims_for(&self, recipe: &Recipe, extents: Extents) -> Result<BTreeMap<String, u64>, InputError> {
        self.dims_with(&recipe.dims, extents)
    }

    /// The dims and derived dims at these extents, with these overrides.
    ///
    /// # Errors
    /// As [`Problem::dims_for`].
    pub fn dims_with(
        &self,
        overrides: &BTreeMap<String, u64>,
        extents: Extents,
    ) -> Result<BTreeMap<String, u64>, InputError> {
        let mut dims: BTreeMap<String, u64> = self
            .dims
            .iter()
            .map(|d| (d.name.clone(), if extents == Extents::Desk { d.desk } else { d.official }))
            .collect();
        for (name, value) in overrides {
            let known = dims.keys().cloned().collect::<Vec<_>>().join(", ");
            let slot = dims.get_mut(name).ok_or_else(|| InputError::UnknownDim {
                problem: self.key(),
                name: name.clone(),
                known,
            })?;
            *slot = *value;
        }
        for (name, e) in &self.derived {
            let v = e.size(&dims).map_err(|why| self.no_value(&format!("{name} = {e}"), why))?;
            dims.insert(name.clone(), v);
        }
        Ok(dims)
    }

    fn no_value(&self, what: &str, why: String) -> InputError {
        InputError::Expression { problem: self.key(), what: what.to_owned(), why }
    }

    /// The shape of an input at these dims.
    ///
    /// # Errors
    /// `Expression` for an extent that has no value there.
    pub fn shape_of(&self, input: &Input, dims: &BTreeMap<String, u64>) -> Result<Vec<u64>, InputError> {
        input
            .shape
            .iter()
            .map(|e| {
                e.size(dims).map_err(|why| self.no_value(&format!("{e} in the shape of {}", input.name), why))
            })
            .collect()
    }

    /// The stated shape of an output at these dims; none where the file states none.
    ///
    /// # Errors
    /// `Expression` for an extent that has no value there.
    pub fn output_shape(
        &self,
        name: &str,
        dims: &BTreeMap<String, u64>,
    ) -> Result<Option<Vec<u64>>, InputError> {
        let Some(shape) = self.output_shapes.get(name) else { return Ok(None) };
        shape
            .iter()
            .map(|e| e.size(dims).map_err(|why| self.no_value(&format!("{e} in the shape of {name}"), why)))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// What the reference may name besides tensors: dims, derived dims and scalars as numbers.
    pub fn reference_scalars(&self, dims: &BTreeMap<String, u64>) -> BTreeMap<String, f64> {
        let mut out: BTreeMap<String, f64> = dims.iter().map(|(n, v)| (n.clone(), *v as f64)).collect();
        out.extend(self.scalars.iter().map(|(n, v)| (n.clone(), *v)));
        out
    }

    /// What `launch`'s parameters are bound to at these dims. Dims beyond 2^63 - 1 do not occur in a loaded
    /// problem; an override beyond it is left out and so ends as unbound.
    pub fn bindings(&self, dims: &BTreeMap<String, u64>) -> Bindings {
        let mut b = Bindings::default();
        for input in &self.inputs {
            b.buffers.insert(input.name.clone(), Some(input.dtype));
        }
        for output in &self.outputs {
            // An output's dtype is the reference's and known only when it has run.
            b.buffers.entry(output.clone()).or_insert(None);
        }
        b.ints = dims.iter().filter_map(|(n, v)| Some((n.clone(), i64::try_from(*v).ok()?))).collect();
        for (n, v) in &self.scalars {
            b.floats.insert(n.clone(), *v);
            // An integral constant also serves an integer parameter.
            if v.fract() == 0.0 && v.abs() < 9e15 {
                b.ints.insert(n.clone(), *v as i64);
            }
        }
        b
    }

    /// Runs the launcher at these dims.
    ///
    /// # Errors
    /// See [`HostProgram::plan`].
    pub fn plan(&self, dims: &BTreeMap<String, u64>) -> Result<Plan, HostError> {
        self.host.plan(&self.bindings(dims))
    }

    /// The input of that name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|i| i.name == name)
    }
}
