//! The host launcher: what `launch` does, without a host compiler.
//!
//! A problem's `kernel.cu` has one host function, `void launch(…)`, in a subset of CUDA C++:
//!
//! - locals of integer, floating-point, `bool`, `dim3`, pointer and `auto` type, `const` and `constexpr`;
//! - arithmetic, comparison, logical, bit, shift, conditional and comma operators, assignments, `++` and `--`,
//!   C-style, `static_cast`, `reinterpret_cast` and functional casts, `sizeof(T)`;
//! - `min`, `max`, `abs`, `ceil`, `floor`, `sqrt`, `exp`, `log`, `log2`, `pow` and their `f` and `std::` forms;
//! - `if`, `for`, `while`, `do`, `break`, `continue`, `return`, `assert`;
//! - helper functions and function templates of the same file (with explicit template arguments), macros,
//!   `#if`, constants at file scope;
//! - `float* p = scratch<float>(n);`, pointer arithmetic, `&p[i]`, `nullptr`;
//! - `kernel<args><<<grid, block, shared, stream>>>(…)`, `cudaMemset` and `cudaMemsetAsync`;
//!   `cudaFuncSetAttribute`, `cudaGetLastError` and other calls that change no result are passed over.
//!
//! Arrives: the text of the file, later the values of `launch`'s parameters. Leaves: a [`Plan`], or a
//! [`HostError`] that tells what is outside the subset (`Unsupported`), would not compile (`Invalid`), goes
//! wrong (`Fault`) or does not end (`Exhausted`).
//!
//! What it misses: types are checked as values meet, not in code that never runs; template arguments are not
//! deduced; a conditional expression converts its value to the common type of its arms only where both types
//! are evident.

#[doc(hidden)]
pub mod arith;
mod ast;
mod builder;
mod error;
mod expression;
#[doc(hidden)]
pub mod fail;
mod interp;
#[doc(hidden)]
pub mod items;
#[doc(hidden)]
pub mod lex;
mod parser;
mod plan;
#[doc(hidden)]
pub mod preprocess;
mod source;
#[cfg(test)]
mod tests;
#[doc(hidden)]
pub mod types;
#[doc(hidden)]
pub mod vocabulary;

use std::sync::Arc;

use assay_tensor::DType;

use ast::Program;
use builder::Builder;
use fail::{Fail, line_column};
use items::{DeviceMacros, split};

use types::{Scalar, Ty, Value};

pub use error::HostError;
pub use preprocess::directive;

#[doc(hidden)]
pub use ast::{Builtin, Op, Unary};
pub use plan::{Bindings, LaunchOp, Plan, PlanArg, PlanOp, Scratch};
pub use source::{KernelTexts, device_source, kernel_names, kernel_parameters, kernel_texts};

/// The preprocessor lines of a text, with their byte offsets; those within comments and strings are none.
pub fn directives(source: &str) -> Vec<(usize, &str)> {
    let toks = lex::lex(source, 0);
    toks.iter().filter(|t| t.kind == lex::Kind::Directive).map(|t| (t.at as usize, t.text)).collect()
}

/// What a parameter of `launch` accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A tensor; `dtype` is `None` for `void*` and element types Assay has no tensor of.
    Pointer {
        /// The element type as a dtype (`float4*` is `f32`).
        dtype: Option<DType>,
        /// As written.
        element: String,
        /// `launch` promises not to write through it.
        is_const: bool,
    },
    /// A dim or an integer constant.
    Integer,
    /// A scalar.
    Float,
    /// `cudaStream_t`, bound to the default stream.
    Stream,
}

/// A parameter of `launch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, which is what it is bound by.
    pub name: String,
    /// What it accepts.
    pub kind: ParameterKind,
    /// 1-based line in the file.
    pub line: u32,
    /// 1-based column.
    pub column: u32,
}

/// The host side of a kernel file, ready to plan.
#[derive(Clone, Debug)]
pub struct HostProgram {
    source: Arc<str>,
    program: Program,
    kernels: Vec<String>,
    normalised: String,
    parameters: Vec<Parameter>,
}

impl HostProgram {
    /// Parses `launch` and everything it reaches.
    ///
    /// # Errors
    /// `NoLaunch`; `Unsupported` for what is outside the subset; `Invalid` for what no compiler would take;
    /// `Exhausted` for macros that do not end.
    pub fn parse(source: &str) -> Result<HostProgram, HostError> {
        Self::build(source)?.map_err(|e| e.locate(source))
    }

    fn build(source: &str) -> Result<Result<HostProgram, Fail>, HostError> {
        let raw = lex::lex(source, 0);
        let toks = match preprocess::preprocess(&raw) {
            Ok(t) => t,
            Err(e) => return Ok(Err(e)),
        };
        let items = split(&toks, &DeviceMacros::default());
        let mut b = Builder::new(toks, items);
        let launches: Vec<usize> =
            b.functions_named("launch", false).into_iter().filter(|&i| !b.items[i].device).collect();
        let Some(&first) = launches.first() else { return Err(HostError::NoLaunch) };
        Ok(Self::finish(source, &mut b, first, launches.get(1).copied()))
    }

    fn finish(
        source: &str,
        b: &mut Builder<'_>,
        launch: usize,
        second: Option<usize>,
    ) -> Result<HostProgram, Fail> {
        let at = |b: &Builder<'_>, i: usize| b.toks[b.items[i].range.start].at;
        if let Some(second) = second {
            return Err(Fail::unsupported(at(b, second), "a second `launch`"));
        }
        if b.items[launch].template.is_some() {
            return Err(Fail::unsupported(at(b, launch), "a `launch` that is a template"));
        }
        b.instance(launch, &[], at(b, launch))?;
        let mut parameters = Vec::new();
        for p in &b.program.functions[0].params {
            let kind = match &p.ty {
                Ty::Ptr(e, is_const) => {
                    ParameterKind::Pointer { dtype: e.dtype, element: e.name.clone(), is_const: *is_const }
                }
                Ty::Scalar(s) if s.is_float() => ParameterKind::Float,
                Ty::Scalar(_) => ParameterKind::Integer,
                Ty::Stream => ParameterKind::Stream,
                other => {
                    return Err(Fail::unsupported(
                        p.at,
                        format!("a parameter of type `{other}` in `launch`"),
                    ));
                }
            };
            let (line, column) = line_column(source, p.at as usize);
            parameters.push(Parameter { name: p.name.clone(), kind, line, column });
        }
        let normalised = normalise(b);
        Ok(HostProgram {
            source: Arc::from(source),
            program: std::mem::take(&mut b.program),
            kernels: b.kernels.iter().cloned().collect(),
            normalised,
            parameters,
        })
    }

    /// Every name expression that `launch` could launch, in branches not taken too; sorted, without repeats.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// A program that does nothing, to be replaced.
    #[doc(hidden)]
    pub fn empty() -> HostProgram {
        HostProgram {
            source: Arc::from(""),
            program: Program::default(),
            kernels: Vec::new(),
            normalised: String::new(),
            parameters: Vec::new(),
        }
    }

    /// Line and column of `launch`, 1-based.
    pub fn position(&self) -> (u32, u32) {
        line_column(&self.source, self.program.functions.first().map_or(0, |f| f.at as usize))
    }

    /// The parameters of `launch`, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The file with host-only text blanked; see [`device_source`].
    pub fn device_source(&self) -> String {
        device_source(&self.source)
    }

    /// The host code that `launch` reaches, token by token, macros expanded: equal texts behave equally, and
    /// comments, white space and unused functions do not show.
    pub fn normalised(&self) -> &str {
        &self.normalised
    }

    /// Runs `launch` on these values.
    ///
    /// # Errors
    /// `Unbound` for a parameter that has no value or one of the wrong kind; `Fault`, `Exhausted` or `Invalid`
    /// as the code has it.
    pub fn plan(&self, bindings: &Bindings) -> Result<Plan, HostError> {
        let mut buffers = Vec::new();
        let mut args = Vec::new();
        for (p, ty) in
            self.parameters.iter().zip(self.program.functions.iter().take(1).flat_map(|f| &f.params))
        {
            let value = bind(p, &ty.ty, bindings, &mut buffers);
            let unbound = |why: String| HostError::Unbound {
                parameter: p.name.clone(),
                why,
                line: p.line,
                column: p.column,
            };
            args.push(value.map_err(unbound)?);
        }
        interp::Interp::run(&self.program, &self.source, buffers, args).map_err(|e| e.locate(&self.source))
    }

    /// Checks that every parameter of `launch` finds its value, without running anything.
    ///
    /// # Errors
    /// `Unbound` for the first that does not.
    pub fn check(&self, bindings: &Bindings) -> Result<(), HostError> {
        let mut buffers = Vec::new();
        for (p, ty) in
            self.parameters.iter().zip(self.program.functions.iter().take(1).flat_map(|f| &f.params))
        {
            bind(p, &ty.ty, bindings, &mut buffers).map_err(|why| HostError::Unbound {
                parameter: p.name.clone(),
                why,
                line: p.line,
                column: p.column,
            })?;
        }
        Ok(())
    }
}

/// The value of one parameter, or why it has none.
fn bind(p: &Parameter, ty: &Ty, bindings: &Bindings, buffers: &mut Vec<String>) -> Result<Value, String> {
    match (ty, &p.kind) {
        (Ty::Ptr(elem, constant), _) => {
            let dtype = bindings.buffers.get(&p.name).ok_or("no input or output has that name")?;
            if let (Some(want), Some(got)) = (dtype, elem.dtype)
                && !compatible(*want, got)
            {
                return Err(format!("`{}*` cannot hold its dtype `{want}`", elem.name));
            }
            buffers.push(p.name.clone());
            Ok(Value::Ptr {
                buffer: Some(buffers.len() - 1),
                offset: 0,
                elem: elem.clone(),
                constant: *constant,
            })
        }
        (Ty::Scalar(s), ParameterKind::Integer) => {
            let v = bindings.ints.get(&p.name).ok_or("no dim or integer constant has that name")?;
            let (v, wrapped) = s.wrap(i128::from(*v));
            // A dim that does not fit its parameter would be cut by C++ without a word, and so it is here,
            // except where the caller could not have meant it.
            if wrapped && *s == Scalar::Bool {
                return Err(format!("{} is no `bool`", bindings.ints[&p.name]));
            }
            Ok(Value::Int(v, *s))
        }
        (Ty::Scalar(s), _) => {
            let v = bindings.floats.get(&p.name).ok_or("no scalar has that name")?;
            Value::Float(*v, Scalar::F64).to_scalar(*s).ok_or_else(|| "it has no value".to_owned())
        }
        (Ty::Stream, _) => Ok(Value::Stream),
        (other, _) => Err(format!("the type `{other}` cannot be bound")),
    }
}

/// Whether a pointer to `got` may look at a tensor of `want`: the same type, or bytes for `bool`.
fn compatible(want: DType, got: DType) -> bool {
    let byte = |d: DType| matches!(d, DType::Bool | DType::U8 | DType::I8);
    want == got || (want == DType::Bool && byte(got)) || (byte(want) && byte(got))
}

fn normalise(b: &Builder<'_>) -> String {
    let mut out = String::new();
    for &i in &b.used {
        for t in &b.toks[b.items[i].range.clone()] {
            out.push_str(t.text);
            out.push(' ');
        }
        out.push('\n');
    }
    out
}
