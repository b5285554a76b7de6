//! The catalogue: problems, dims, the host launcher, input recipes.
//!
//! Arrives: a folder with `problem.toml` and `kernel.cu` ([`load`], [`discover`]) or as text ([`load_text`]), and a [`Recipe`] by its text.
//! Leaves: a checked [`Problem`]; its inputs as tensors ([`Problem::make_inputs`]) or as functions of an
//! index ([`Problem::input_values`]); and what its launcher asks of
//! the device as a [`Plan`] ([`Problem::plan`], [`HostProgram`]). [`device_source`] cuts any CUDA file down to what
//! a runtime compiler takes.
//!
//! Everything is a function of its arguments: no clock, no thread, no host math library. Files are bounded in
//! size, expressions in depth, host code in steps; whatever is wrong is an error with file, line and column.
//!
//! What it misses: output shapes and dtypes are the reference's and known only when it has run; host code is a
//! subset of C++ (see [`assay_host`]).

mod discover;
mod error;
mod expr;
mod folder;
mod include;
mod init;
mod inputs;
mod load;
mod losses;
mod names;
mod oracle;
mod problem;
mod recipe;
mod snippet;
mod spec;
mod spread;
mod targeted;

pub use assay_host::{
    Bindings, HostError, HostProgram, KernelTexts, LaunchOp, Parameter, ParameterKind, Plan, PlanArg, PlanOp,
    Scratch, device_source, kernel_names, kernel_parameters, kernel_texts,
};
pub use discover::{Root, SKELETON, discover};
pub use error::{InputError, LoadError, RecipeError};
pub use expr::{Expr, ExprError};
pub use folder::MAX_FILE_BYTES;
pub use include::{Inlined, inline_includes};
pub use init::{Init, Made, Values};
pub use inputs::InputValues;
pub use load::{load, load_text};
pub use losses::{Loss, Lost};
pub use names::known_names;
pub use oracle::{Evaluated, Operators, Oracle, OracleError};
pub use problem::{Degenerate, Dim, Extents, Input, InputKind, Problem, Reach, Structure, Trivial};
pub use recipe::{DEFAULT_SEED, Kind, Position, Recipe, kind_names};
pub use spread::spread;
pub use targeted::{legal_extents, search_recipes, targeted_recipes};
