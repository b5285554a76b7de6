//! Modules: built once, called often.

use std::rc::Rc;
use std::sync::Arc;

use assay_host::device_source;
use assay_host::types::Scalar;
use assay_nvrtc::Compiler;

use crate::device::{Code, Gpu};
use crate::error::ExtensionError;
use crate::interp::{Globals, Interp, R};
use crate::program::{Callee, Program};
use crate::run::Run;
use crate::syntax::{Base, Expr, Function, Param, Stmt, Suffix, Type};
use crate::tensor::Storage;
use crate::value::{Ty, Val, Var};
use crate::{Library, Sources, Value};

/// What building gives: may be shared between threads, each of which calls a [`Module`] of its own.
pub struct Built {
    program: Program,
    code: Code,
}

/// A built extension with the state that its calls leave behind (its variables at file scope and `static` ones).
pub struct Module {
    built: Arc<Built>,
    globals: Globals,
}

/// Options for NVRTC out of the flags for `nvcc`: dialect, fast math, contraction, macros. Others change nothing here.
pub(crate) fn options(flags: &[String]) -> assay_nvrtc::Options {
    let mut o = assay_nvrtc::Options::default();
    let mut it = flags.iter().map(String::as_str).peekable();
    while let Some(flag) = it.next() {
        match flag {
            "--use_fast_math" | "-use_fast_math" => o.fast_math = true,
            "--fmad=false" | "-fmad=false" => o.fmad = false,
            "-std=c++20" | "--std=c++20" => o.std = "c++20".into(),
            "-D" => {
                if let Some(d) = it.next() {
                    o.defines.extend(define(d));
                }
            }
            _ => {
                if let Some(d) = flag.strip_prefix("-D") {
                    o.defines.extend(define(d));
                }
            }
        }
    }
    o
}

fn define(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let good = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    good.then(|| (name.to_owned(), value.to_owned()))
}

impl Built {
    /// Builds the sources as `load_inline` does: texts of one language are joined by newlines, every function named must
    /// be declared in the C++ texts, the device code is compiled.
    ///
    /// # Errors
    /// `Rejected` where a compiler or linker would refuse; `Unsupported` with construct and line.
    pub fn new(sources: &Sources, compiler: &Arc<Compiler>) -> Result<Built, ExtensionError> {
        let (cpp, cuda) = (sources.cpp.join("\n"), sources.cuda.join("\n"));
        let mut program = Program::default();
        program.add(&cpp)?;
        program.add(&cuda)?;
        let rejected = |message: String| ExtensionError::Rejected { message, line: None };
        for name in &sources.functions {
            let declared = program.functions_named(name).any(|f| f.as_ref().map_or(true, |f| f.source == 0));
            if !declared {
                return Err(rejected(format!("`{name}` is not declared in the C++ sources")));
            }
            program.exports.push(crate::program::Export {
                name: name.clone(),
                callee: Callee::Function(Arc::from(name.as_str())),
                args: Vec::new(),
            });
        }
        if program.exports.is_empty() {
            return Err(rejected("the module exports nothing: no `functions`, no `PYBIND11_MODULE`".into()));
        }
        for e in &program.exports {
            let Callee::Function(name) = &e.callee else { continue };
            let mut found = false;
            for f in program.functions_named(name) {
                match f {
                    Ok(f) => found |= f.body.is_some(),
                    Err(e) => return Err(e.clone()),
                }
            }
            if !found {
                return Err(rejected(format!(
                    "`{name}` is declared but defined nowhere (an undefined symbol)"
                )));
            }
            if let Some(other) = unlinked(&program, name) {
                let message = format!(
                    "`{}` is declared so in the C++ sources and defined otherwise (an undefined symbol)",
                    signature(&other)
                );
                return Err(rejected(message));
            }
        }
        let code = Code::new(Arc::clone(compiler), options(&sources.cuda_flags), device_source(&cuda));
        if !program.kernels.is_empty() {
            code.image(&program.evident_kernels())?;
        }
        Ok(Built { program, code })
    }

    /// Names of the functions, in the order of their bindings.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.program.exports.iter().map(|e| e.name.as_str())
    }

    /// Names of the kernels in the sources.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.program.kernels.iter().map(|k| k.name.as_str())
    }
}

impl Module {
    /// Builds sources; see [`Built::new`].
    ///
    /// # Errors
    /// As there.
    pub fn build(sources: &Sources, compiler: &Arc<Compiler>) -> Result<Module, ExtensionError> {
        Ok(Module::new(Arc::new(Built::new(sources, compiler)?)))
    }

    /// A module with fresh state.
    pub fn new(built: Arc<Built>) -> Module {
        Module { built, globals: Globals::default() }
    }

    /// What it was built from, to be used elsewhere.
    pub fn built(&self) -> Arc<Built> {
        Arc::clone(&self.built)
    }

    /// Names of the functions.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.built.functions()
    }

    /// The types of a function's parameters, one list for each overload; what cannot be told is `auto`.
    pub fn parameters(&self, function: &str) -> Vec<Vec<String>> {
        let program = &self.built.program;
        let mut out = Vec::new();
        for e in program.exports.iter().filter(|e| e.name == function) {
            let lists: Vec<&[Param]> = match &e.callee {
                Callee::Lambda(l, _) => vec![&l.params],
                Callee::Function(name) => program
                    .functions_named(name)
                    .filter_map(|f| f.as_ref().ok())
                    .filter(|f| f.body.is_some())
                    .map(|f| f.params.as_slice())
                    .collect(),
            };
            for params in lists {
                out.push(params.iter().map(|p| p.ty.spelled()).collect());
            }
        }
        out
    }

    /// Calls a function. Changes to tensors are in their storages, also after an error; findings, launches and what was
    /// used are in `run`.
    ///
    /// # Errors
    /// As [`ExtensionError`] tells them apart.
    pub fn call(
        &mut self,
        function: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        run: &mut Run,
        library: &mut dyn Library,
    ) -> Result<Value, ExtensionError> {
        let built = Arc::clone(&self.built);
        let mut it = Interp {
            program: &built.program,
            gpu: Gpu::new(&built.code, std::mem::take(&mut self.globals.symbols)),
            run,
            library,
            globals: &mut self.globals,
            source: 0,
            depth: 0,
            allocated: 0,
            allocations: 0,
        };
        let result = it.call_from_outside(function, args, kwargs);
        let results = match &result {
            Ok(v) => storages(v),
            Err(_) => Vec::new(),
        };
        let Interp { mut gpu, run, .. } = it;
        gpu.finish(&results, run);
        self.globals.symbols = gpu.symbols;
        result
    }
}

/// The prototype of the C++ text that no definition has the signature of, where that is certain.
fn unlinked(program: &Program, name: &str) -> Option<Arc<Function>> {
    let all: Vec<&Arc<Function>> = program.functions_named(name).flatten().collect();
    let certain = |f: &Function| !f.linkage_c && f.params.iter().all(|p| plain(&p.ty));
    // Only where everything is of types that have one name.
    if !all.iter().all(|f| certain(f)) || all.iter().any(|f| f.source == 0 && f.body.is_some()) {
        return None;
    }
    let definitions: Vec<String> = all.iter().filter(|f| f.body.is_some()).map(|f| signature(f)).collect();
    all.iter()
        .find(|f| f.body.is_none() && f.source == 0 && !definitions.contains(&signature(f)))
        .map(|f| Arc::clone(f))
}

/// A type without aliases: what it is called is what it is.
fn plain(ty: &Type) -> bool {
    const NAMES: [&str; 12] = [
        "Tensor",
        "float",
        "double",
        "int",
        "bool",
        "int64_t",
        "int32_t",
        "long",
        "long long",
        "size_t",
        "string",
        "unsigned int",
    ];
    matches!(&ty.base, Base::Name(n) if n.args().is_none() && NAMES.contains(&n.last()))
}

/// Name and parameter types as a linker tells them apart.
fn signature(f: &Function) -> String {
    let params: Vec<String> = f
        .params
        .iter()
        .map(|p| {
            let name = match &p.ty.base {
                Base::Name(n) => match n.last() {
                    // `long` is `int64_t` here; `long long` is not, but the parser has one spelling for both.
                    "long" | "long long" => "int64_t",
                    "int32_t" => "int",
                    other => other,
                },
                Base::Auto | Base::Decltype(_) | Base::Function => "?",
            };
            let suffixes: String =
                p.ty.suffixes
                    .iter()
                    .map(|s| match s {
                        Suffix::Pointer => '*',
                        Suffix::Reference => '&',
                    })
                    .collect();
            // `const` of a copy is no part of a signature.
            let is_const = p.ty.is_const && !suffixes.is_empty();
            format!("{}{name}{suffixes}", if is_const { "const " } else { "" })
        })
        .collect();
    format!("{}({})", f.name, params.join(", "))
}

fn storages(v: &Value) -> Vec<Storage> {
    match v {
        Value::Tensor(t) => vec![t.storage.clone()],
        Value::List(items) | Value::Tuple(items) => items.iter().flat_map(storages).collect(),
        _ => Vec::new(),
    }
}

/// A keyword argument, or a missing one.
enum Given {
    Value(Value),
    Default(Expr),
}

impl Interp<'_, '_> {
    fn call_from_outside(
        &mut self,
        function: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> R<Value> {
        self.prepare()?;
        let exports: Vec<_> = self.program.exports.iter().filter(|e| e.name == function).cloned().collect();
        if exports.is_empty() {
            return self.raised(0, format!("module has no attribute '{function}'"));
        }
        let mut first_error = None;
        for export in &exports {
            let candidates: Vec<(Vec<Param>, Option<Arc<Function>>)> = match &export.callee {
                Callee::Lambda(l, _) => vec![(l.params.clone(), None)],
                Callee::Function(name) => self
                    .program
                    .functions_named(name)
                    .filter_map(|f| f.as_ref().ok())
                    .filter(|f| f.body.is_some())
                    .map(|f| (f.params.clone(), Some(Arc::clone(f))))
                    .collect(),
            };
            for (params, f) in candidates {
                let given = match self.match_arguments(function, &params, &export.args, &args, &kwargs) {
                    Ok(v) => v,
                    Err(e @ ExtensionError::Raised { .. }) => {
                        first_error.get_or_insert(e);
                        continue;
                    }
                    Err(e) => return Err(e),
                };
                let (out, at) = match (&export.callee, f) {
                    (Callee::Lambda(l, source), _) => (self.call_lambda(l, *source, given)?, 0),
                    (Callee::Function(_), Some(f)) => (self.call_exported(&f, given)?, f.at),
                    (Callee::Function(_), None) => continue,
                };
                self.gpu.sync();
                return self.outward(&out, at);
            }
        }
        match first_error {
            Some(e) => Err(e),
            None => self.raised(0, format!("{function}(): nothing to call")),
        }
    }

    /// Values for parameters, as the binding library converts and refuses them.
    fn match_arguments(
        &mut self,
        function: &str,
        params: &[Param],
        names: &[(String, Option<Expr>)],
        args: &[Value],
        kwargs: &[(String, Value)],
    ) -> R<Vec<Val>> {
        let incompatible = |this: &Self| -> R<Vec<Val>> {
            this.raised(0, format!("{function}(): incompatible function arguments"))
        };
        if args.len() > params.len() {
            return incompatible(self);
        }
        let root = Rc::clone(&self.globals.scope);
        let mut out = Vec::new();
        for (k, p) in params.iter().enumerate() {
            let named = names.get(k);
            let given = match (args.get(k), named) {
                (Some(v), _) => Given::Value(v.clone()),
                (None, Some((name, default))) => match (kwargs.iter().find(|(n, _)| n == name), default) {
                    (Some((_, v)), _) => Given::Value(v.clone()),
                    (None, Some(d)) => Given::Default(d.clone()),
                    (None, None) => return incompatible(self),
                },
                (None, None) => return incompatible(self),
            };
            let ty = self.resolve(&p.ty, &root)?;
            out.push(match given {
                Given::Value(v) => {
                    if !accepts(&ty, &v) {
                        return incompatible(self);
                    }
                    self.inward(v)
                }
                Given::Default(d) => self.eval(&d, &root)?,
            });
        }
        for (name, _) in kwargs {
            if !names.iter().skip(args.len()).any(|(n, _)| n == name) {
                return incompatible(self);
            }
        }
        Ok(out)
    }

    /// Evaluates the declarations at file scope, once per module. One that fails is found when it is used.
    fn prepare(&mut self) -> R<()> {
        if self.globals.ready {
            return Ok(());
        }
        self.globals.ready = true;
        let program = self.program;
        let root = Rc::clone(&self.globals.scope);
        for (source, stmt) in &program.globals {
            self.source = *source;
            match stmt {
                Ok(Stmt::Decl(list)) => {
                    for d in list {
                        if self.declare(d, &root).is_err() {
                            let cell = Interp::cell(Val::Unset);
                            root.declare(&d.name, Var { cell, ty: Ty::Auto, is_const: false });
                        }
                    }
                }
                Ok(Stmt::Using(name, ty)) => {
                    if let Ok(t) = self.resolve(ty, &root) {
                        root.declare_type(name, t);
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Whether a Python value converts to a parameter's type.
fn accepts(ty: &Ty, v: &Value) -> bool {
    match (ty, v) {
        (Ty::Tensor, Value::Tensor(_)) | (Ty::Auto, _) => true,
        (Ty::Optional(_), Value::None) => true,
        (Ty::Optional(t), v) => accepts(t, v),
        (Ty::Scalar(Scalar::Bool), Value::Bool(_) | Value::Int(_)) => true,
        (Ty::Scalar(s), Value::Int(n)) if !s.is_float() => !s.wrap(i128::from(*n)).1,
        (Ty::Scalar(s), Value::Bool(_)) if !s.is_float() => true,
        (Ty::Scalar(s), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => s.is_float(),
        (Ty::Number, Value::Int(_) | Value::Float(_) | Value::Bool(_)) => true,
        (Ty::Half(..), Value::Int(_) | Value::Float(_)) => true,
        (Ty::Str, Value::Str(_)) => true,
        (Ty::List(t) | Ty::Array(t, _), Value::List(items) | Value::Tuple(items)) => {
            items.iter().all(|i| accepts(t, i))
        }
        (Ty::Tuple(ts), Value::List(items) | Value::Tuple(items)) => {
            ts.len() == items.len() && ts.iter().zip(items).all(|(t, i)| accepts(t, i))
        }
        (Ty::DType, Value::DType(_)) | (Ty::Device, Value::Device(_) | Value::Str(_)) => true,
        _ => false,
    }
}
