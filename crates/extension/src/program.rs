//! What a module is made of: functions, kernels, records, constants and exports of its texts.
//!
//! Every host function is parsed when the module is built. One that does not parse stands in its way only when it is
//! called or exported, so that a file's unused parts may be anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_host::fail::{Fail, FailKind};
use assay_host::items::{DeviceMacros, Item, ItemKind, pairs, split};
use assay_host::lex::{Kind, Tok, lex};
use assay_host::preprocess::preprocess;

use crate::error::ExtensionError;
use crate::parse::{Known, Parser, c_blocks, function};
use crate::syntax::{Expr, Function, Lambda, Node, Param, Record, Stmt, TemplateArg, TemplateParam};

/// A `__global__` function.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub name: String,
    /// With its namespaces.
    pub full: String,
    pub template: Option<Vec<TemplateParam>>,
    pub params: Vec<Param>,
}

/// What an exported name calls.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    /// A function of the module by name.
    Function(Arc<str>),
    Lambda(Arc<Lambda>, usize),
}

/// A function of the module as Python sees it.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    pub name: String,
    pub callee: Callee,
    /// `py::arg` names with their defaults; none where the binding gives none.
    pub args: Vec<(String, Option<Expr>)>,
}

/// The host side of a module.
#[derive(Default)]
pub(crate) struct Program {
    functions: BTreeMap<String, Vec<Result<Arc<Function>, ExtensionError>>>,
    pub kernels: Vec<Kernel>,
    pub records: BTreeMap<String, Arc<Record>>,
    /// Declarations at file scope, with their text's number, in order.
    pub globals: Vec<(usize, Result<Stmt, ExtensionError>)>,
    pub exports: Vec<Export>,
    /// Device variables by name.
    pub symbols: BTreeSet<String>,
    lines: Vec<Vec<usize>>,
}

const NO_FUNCTIONS: [Result<Arc<Function>, ExtensionError>; 0] = [];

impl Program {
    /// The 1-based line of a byte offset in a text.
    pub fn line(&self, source: usize, at: u32) -> Option<u32> {
        let starts = self.lines.get(source)?;
        u32::try_from(starts.partition_point(|s| *s <= at as usize)).ok()
    }

    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.kernels.iter().position(|k| k.name == name)
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    pub fn functions_named(
        &self,
        name: &str,
    ) -> impl Iterator<Item = &Result<Arc<Function>, ExtensionError>> {
        self.functions.get(name).map_or(NO_FUNCTIONS.iter(), |v| v.iter())
    }

    /// A declaration without body of that name and number of parameters.
    pub fn prototype(&self, name: &str, params: usize) -> Option<Arc<Function>> {
        self.functions_named(name)
            .filter_map(|f| f.as_ref().ok())
            .find(|f| {
                f.body.is_none() && f.params.len() == params && f.params.iter().any(|p| p.default.is_some())
            })
            .cloned()
    }

    /// Adds a text: its functions, kernels and the rest. Texts come in the order of compilation.
    ///
    /// # Errors
    /// `Unsupported` or `Exhausted` where the preprocessor gives up.
    pub fn add(&mut self, text: &str) -> Result<(), ExtensionError> {
        let source = self.lines.len();
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        self.lines.push(std::iter::once(0).chain(newlines).collect());
        let raw = lex(text, 0);
        let toks = preprocess(&raw).map_err(|e| self.located(source, e))?;
        // Host-only expansions of device macros do not matter: the items are split from what the host sees.
        let items = split(&toks, &DeviceMacros::default());
        let pairs = pairs(&toks);
        let mut known = Known { c_blocks: c_blocks(&toks, &pairs), ..Known::default() };
        self.scan(&toks, &items, &mut known);
        for item in &items {
            self.item(&toks, &pairs, item, source, &mut known)?;
        }
        Ok(())
    }

    pub fn located(&self, source: usize, e: Fail) -> ExtensionError {
        let line = self.line(source, e.at);
        match e.kind {
            FailKind::Unsupported => ExtensionError::Unsupported { construct: e.what, line },
            FailKind::Invalid => ExtensionError::Rejected { message: e.what, line },
            FailKind::Fault => ExtensionError::Fault { message: e.what, line },
            FailKind::Exhausted => ExtensionError::Exhausted { message: e.what, line },
        }
    }

    /// Names that the parser should know before it starts.
    fn scan(&self, toks: &[Tok<'_>], items: &[Item], known: &mut Known) {
        for r in self.records.keys() {
            known.types.insert(r.clone());
        }
        for item in items {
            if let (Some(_), Some(name)) = (&item.template, item.name) {
                known.templates.insert(toks[name].text.to_owned());
            }
            let all = &toks[item.range.clone()];
            if item.kind == ItemKind::Record
                && let Some(k) =
                    all.iter().position(|t| matches!(t.text, "struct" | "class" | "enum" | "union"))
            {
                let name = all[k + 1..].iter().find(|t| t.kind == Kind::Ident && t.text != "class");
                if let Some(n) = name {
                    known.types.insert(n.text.to_owned());
                }
            }
            if all.first().is_some_and(|t| t.is("using")) && all.get(2).is_some_and(|t| t.is("=")) {
                known.types.insert(all[1].text.to_owned());
            }
            if all.first().is_some_and(|t| t.is("typedef"))
                && let Some(n) = all.iter().rev().find(|t| t.kind == Kind::Ident)
            {
                known.types.insert(n.text.to_owned());
            }
        }
        for list in self.functions.values() {
            for f in list.iter().flatten().filter(|f| f.template.is_some()) {
                known.templates.insert(f.name.to_string());
            }
        }
        for k in self.kernels.iter().filter(|k| k.template.is_some()) {
            known.templates.insert(k.name.clone());
        }
    }

    fn item(
        &mut self,
        toks: &[Tok<'_>],
        pairs: &[usize],
        item: &Item,
        source: usize,
        known: &mut Known,
    ) -> Result<(), ExtensionError> {
        let all = &toks[item.range.clone()];
        let first = all.first().map_or("", |t| t.text);
        match item.kind {
            ItemKind::Function if matches!(first, "typedef" | "using" | "static_assert") => {}
            ItemKind::Function => {
                let Some(name) = item.name.map(|n| toks[n].text) else { return Ok(()) };
                if matches!(
                    name,
                    "PYBIND11_MODULE" | "TORCH_LIBRARY" | "TORCH_LIBRARY_IMPL" | "TORCH_LIBRARY_FRAGMENT"
                ) {
                    return self.bindings(toks, pairs, item, source, known);
                }
                if item.kernel {
                    // A prototype, or an explicit instantiation, has no body.
                    let f = function(toks, pairs, item, source, known, false);
                    match f {
                        Ok(f) if self.kernel(name).is_none() || item.body.is_some() => {
                            self.kernels.retain(|k| k.name != name);
                            self.kernels.push(Kernel {
                                name: name.to_owned(),
                                full: format!("{}{name}", item.scope),
                                template: f.template,
                                params: f.params,
                            });
                        }
                        Ok(_) => {}
                        Err(e) => return Err(self.located(source, e)),
                    }
                    return Ok(());
                }
                let header = &toks[item.header.clone()];
                if item.device && !header.iter().any(|t| t.is("__host__")) {
                    return Ok(());
                }
                // `float x(4);` at file scope looks like a prototype.
                let f = function(toks, pairs, item, source, known, true);
                let f = f.map(Arc::new).map_err(|e| self.located(source, e));
                self.functions.entry(name.to_owned()).or_default().push(f);
            }
            ItemKind::Record => {
                if all.iter().any(|t| t.is("enum")) {
                    return Ok(());
                }
                let start = item.range.start
                    + all.iter().position(|t| matches!(t.text, "struct" | "class" | "union")).unwrap_or(0);
                let mut p = Parser::new(toks, pairs, start..item.range.end, known);
                // One with functions, or on the device alone, is found out when host code asks for it.
                if let Ok(r) = p.record() {
                    self.records.insert(r.name.to_string(), Arc::new(r));
                }
            }
            ItemKind::Declaration if item.device => {
                let symbol = toks[item.header.clone()]
                    .iter()
                    .take_while(|t| !t.is("=") && !t.is("["))
                    .filter(|t| t.kind == Kind::Ident)
                    .last();
                if let Some(s) = symbol {
                    self.symbols.insert(s.text.to_owned());
                }
            }
            ItemKind::Declaration => {
                if matches!(first, "template" | "static_assert" | "extern") || all.len() < 3 {
                    return Ok(());
                }
                let mut p = Parser::new(toks, pairs, item.range.clone(), known);
                let stmt = p.statements();
                match stmt {
                    Ok(list) => {
                        self.globals.extend(list.into_iter().map(|s| (source, Ok(s))));
                    }
                    Err(e) => {
                        let e = self.located(source, e);
                        self.globals.push((source, Err(e)));
                    }
                }
            }
        }
        Ok(())
    }

    /// `m.def("name", &function, …)` in a binding block.
    fn bindings(
        &mut self,
        toks: &[Tok<'_>],
        pairs: &[usize],
        item: &Item,
        source: usize,
        known: &mut Known,
    ) -> Result<(), ExtensionError> {
        let Some(body) = item.body.clone() else { return Ok(()) };
        let stmts =
            Parser::new(toks, pairs, body, known).statements().map_err(|e| self.located(source, e))?;
        for s in &stmts {
            let Stmt::Expr(e) = s else { continue };
            // Chained `.def(…).def(…)`.
            let mut chain = Vec::new();
            let mut e = e;
            while let Node::Call(f, args) = &e.node {
                let Node::Member(object, part) = &f.node else { break };
                if matches!(&*part.ident, "def" | "impl") {
                    chain.push((e.at, args));
                }
                e = object;
            }
            for (at, args) in chain.into_iter().rev() {
                self.binding(args, source, at)?;
            }
        }
        Ok(())
    }

    fn binding(&mut self, args: &[Expr], source: usize, at: u32) -> Result<(), ExtensionError> {
        let line = self.line(source, at);
        let Some(Expr { node: Node::Str(name), .. }) = args.first() else {
            return Err(ExtensionError::Unsupported { construct: "this binding".into(), line });
        };
        // A schema, `add(Tensor a) -> Tensor`.
        let name = name.split('(').next().unwrap_or("").trim().to_owned();
        let Some(callee) = args.get(1).and_then(|e| callee(e, source)) else {
            if args.len() == 1 {
                return Ok(());
            }
            return Err(ExtensionError::Unsupported { construct: format!("the binding of `{name}`"), line });
        };
        let mut names = Vec::new();
        for a in args.get(2..).unwrap_or(&[]) {
            let (call, default) = match &a.node {
                Node::Assign { target, op: None, value } => (&**target, Some((**value).clone())),
                _ => (a, None),
            };
            if let Node::Call(f, inner) = &call.node
                && matches!(&f.node, Node::Name(n) if n.last() == "arg")
                && let Some(Expr { node: Node::Str(n), .. }) = inner.first()
            {
                names.push((n.to_string(), default));
            }
        }
        self.exports.push(Export { name, callee, args: names });
        Ok(())
    }

    /// Name expressions of the launches whose template arguments are evident, and of kernels that are no templates.
    pub fn evident_kernels(&self) -> Vec<String> {
        let mut out: Vec<String> =
            self.kernels.iter().filter(|k| k.template.is_none()).map(|k| k.full.clone()).collect();
        for f in self.functions.values().flatten().flatten() {
            if let Some(body) = &f.body
                && f.template.is_none()
            {
                body.iter().for_each(|s| self.launches_in(s, &mut out));
            }
        }
        out
    }

    fn launches_in(&self, s: &Stmt, out: &mut Vec<String>) {
        let mut all = |list: &[Stmt]| list.iter().for_each(|s| self.launches_in(s, out));
        match s {
            Stmt::Expr(e) => {
                let Node::Launch { kernel, .. } = &e.node else { return };
                let Node::Name(n) = &kernel.node else { return };
                let (Some(args), Some(k)) = (n.args(), self.kernel(n.last())) else { return };
                let k = &self.kernels[k];
                let texts: Option<Vec<String>> = args.iter().map(evident).collect();
                let whole = k.template.as_ref().is_some_and(|t| t.len() == args.len());
                if let (Some(texts), true) = (texts, whole) {
                    let name = format!("{}<{}>", k.full, texts.join(","));
                    if !out.contains(&name) {
                        out.push(name);
                    }
                }
            }
            Stmt::Block(b) => all(b),
            Stmt::If { then, otherwise, .. } => {
                self.launches_in(then, out);
                if let Some(o) = otherwise {
                    self.launches_in(o, out);
                }
            }
            Stmt::While(_, b)
            | Stmt::DoWhile(b, _)
            | Stmt::For { body: b, .. }
            | Stmt::ForEach { body: b, .. } => {
                self.launches_in(b, out);
            }
            Stmt::Try(a, b) => {
                all(a);
                all(b);
            }
            Stmt::Switch(_, arms) => arms.iter().for_each(|(_, b)| all(b)),
            Stmt::Empty
            | Stmt::Decl(_)
            | Stmt::Bind(..)
            | Stmt::Return(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Using(..)
            | Stmt::Record(_) => {}
        }
    }
}

/// The spelling of a template argument that means the same everywhere, as the interpreter would spell it.
fn evident(a: &TemplateArg) -> Option<String> {
    match a {
        TemplateArg::Type(t) if t.suffixes.is_empty() && !t.is_const => match &t.base {
            crate::syntax::Base::Name(n) => {
                assay_host::types::scalar_named(n.plain()?).map(|s| s.name().to_owned())
            }
            _ => None,
        },
        TemplateArg::Value(Expr { node: Node::Number(assay_host::types::Value::Int(v, s)), .. }) => {
            Some(if *s == assay_host::types::Scalar::Bool { (*v != 0).to_string() } else { v.to_string() })
        }
        _ => None,
    }
}

/// What a binding's second argument calls.
fn callee(e: &Expr, source: usize) -> Option<Callee> {
    match &e.node {
        Node::Address(inner) => callee(inner, source),
        Node::Name(n) => Some(Callee::Function(Arc::from(n.last()))),
        Node::Lambda(l) => Some(Callee::Lambda(Arc::clone(l), source)),
        Node::Cast(_, inner) => callee(inner, source),
        // `py::overload_cast<…>(&f)`, `torch::wrap_pybind_function(f)`, `TORCH_FN(f)`.
        Node::Call(_, args) => args.first().and_then(|a| callee(a, source)),
        _ => None,
    }
}
