//! `problem.toml` and `kernel.cu` to a checked [`Problem`]; every fault is an error with file, line and column.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use assay_ops::Program;
use assay_tensor::{DType, numel};
use toml::Spanned;

use crate::error::LoadError;
use crate::expr::{Expr, ExprError};
use crate::folder::{Folder, read_text};
use crate::include::{Inlined, inline_includes, inline_strictly};
use crate::init::Init;
use crate::problem::{Dim, Extents, Input, InputKind, Problem, Structure};
use crate::snippet::{error_at, error_on};
use crate::spec::{Extent, InputSpec, Spec};
use assay_host::{HostError, HostProgram, ParameterKind};

/// Names of one problem: dims, derived dims, scalars, inputs.
const MAX_NAMES: usize = 256;

/// Loads the problem in a folder.
///
/// # Errors
/// `Missing` or `Unreadable` for its files, `At` for anything wrong inside them.
pub fn load(dir: impl AsRef<Path>) -> Result<Problem, LoadError> {
    load_folder(&Folder::Disk(dir.as_ref().to_owned()))
}

/// Loads a problem whose two files are given as text; `dir` is how messages call their folder. Nothing is read: the kernel
/// file includes nothing.
///
/// # Errors
/// `At` for anything wrong inside them.
pub fn load_text(toml: &str, kernel: &str, dir: &Path) -> Result<Problem, LoadError> {
    let slug = dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let kernel = Inlined::whole(&dir.join("kernel.cu"), kernel.to_owned());
    build(&Text { file: dir.join("problem.toml"), text: toml }, &kernel, dir.to_owned(), slug)
}

pub(crate) fn load_folder(folder: &Folder) -> Result<Problem, LoadError> {
    let toml_source = folder.read("problem.toml")?;
    let kernel_source = folder.read("kernel.cu")?;
    let toml = Text { file: folder.path().join("problem.toml"), text: &toml_source };
    let kernel = inline_strictly(&folder.path().join("kernel.cu"), &kernel_source, folder)?;
    build(&toml, &kernel, folder.path(), folder.slug())
}

impl Problem {
    /// The same problem with another kernel file, as a submission brings it.
    ///
    /// # Errors
    /// `At` for host code that cannot be used with this problem.
    pub fn with_kernel(&self, source: &str, file: &Path) -> Result<Problem, LoadError> {
        self.with_inlined(&Inlined::whole(file, source.to_owned()))
    }

    /// The same problem with the kernel of a file on disk, shared code put in.
    ///
    /// # Errors
    /// As [`Problem::with_kernel`], and `Unreadable`.
    pub fn with_kernel_file(&self, file: &Path) -> Result<Problem, LoadError> {
        self.with_inlined(&inline_includes(file, &read_text(file)?))
    }

    fn with_inlined(&self, kernel: &Inlined) -> Result<Problem, LoadError> {
        let mut p = self.clone();
        p.host = host(kernel, self)?;
        p.kernel_source.clone_from(&kernel.text);
        p.kernel_file = kernel.file().to_owned();
        p.includes.clone_from(&kernel.names);
        Ok(p)
    }
}

/// A file's name and content.
struct Text<'t> {
    file: PathBuf,
    text: &'t str,
}

impl Text<'_> {
    fn err(&self, at: usize, message: impl Into<String>) -> LoadError {
        error_at(&self.file, self.text, at, message)
    }

    /// The byte where the content of a quoted string begins, and whether offsets into the value are offsets
    /// into the text (no escapes).
    fn inside(&self, span: Range<usize>, value: &str) -> (usize, bool) {
        let raw = self.text.get(span.clone()).unwrap_or("");
        let quote = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        let mut start = quote;
        // A newline right after the opening quotes is no part of the value.
        if quote == 3 {
            if raw[start..].starts_with("\r\n") {
                start += 2;
            } else if raw[start..].starts_with('\n') {
                start += 1;
            }
        }
        let plain = raw.get(start..).is_some_and(|r| r.starts_with(value));
        (span.start + if plain { start } else { 0 }, plain)
    }

    /// The error at byte `at` of a string value.
    fn err_in(&self, s: &Spanned<String>, at: usize, message: impl Into<String>) -> LoadError {
        let (start, plain) = self.inside(s.span(), s.get_ref());
        self.err(if plain { start + at } else { start }, message)
    }

    fn expr<T>(&self, s: &Spanned<String>, r: Result<T, ExprError>, what: &str) -> Result<T, LoadError> {
        r.map_err(|e| self.err_in(s, e.at, format!("bad {what} `{}`: {}", s.get_ref(), e.what)))
    }
}

fn is_name(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && s.len() <= 64
}

/// Collects names and refuses a second use of one.
struct Names<'t> {
    toml: &'t Text<'t>,
    taken: BTreeMap<String, &'static str>,
}

impl Names<'_> {
    fn add(&mut self, name: &Spanned<String>, what: &'static str) -> Result<(), LoadError> {
        let text = name.get_ref();
        if !is_name(text) {
            return Err(self
                .toml
                .err(name.span().start, format!("`{text}` is no name (letters, digits and `_`)")));
        }
        if let Some(other) = self.taken.get(text) {
            let message = format!("`{text}` is a {what} here and a {other} before");
            return Err(self.toml.err(name.span().start, message));
        }
        if self.taken.len() >= MAX_NAMES {
            return Err(self.toml.err(name.span().start, format!("more than {MAX_NAMES} names")));
        }
        self.taken.insert(text.clone(), what);
        Ok(())
    }
}

fn build(toml: &Text<'_>, kernel: &Inlined, dir: PathBuf, slug: String) -> Result<Problem, LoadError> {
    let spec: Spec = toml::from_str(toml.text).map_err(|e| {
        let at = e.span().map_or(0, |s| s.start);
        toml.err(at, e.message().trim_end().to_owned())
    })?;
    if spec.name.get_ref().trim().is_empty() {
        return Err(toml.err(spec.name.span().start, "the name is empty"));
    }
    let mut names = Names { toml, taken: BTreeMap::new() };
    let mut dims = Vec::new();
    for (name, d) in &spec.dims {
        names.add(name, "dim")?;
        for extent in [&d.official, &d.desk] {
            legal_extent(toml, extent)?;
        }
        dims.push(Dim {
            name: name.get_ref().clone(),
            official: *d.official.get_ref(),
            desk: *d.desk.get_ref(),
        });
    }
    for name in spec.derived.keys() {
        names.add(name, "derived dim")?;
    }
    let derived = derived(toml, &spec)?;
    let mut scalars = BTreeMap::new();
    for (name, v) in &spec.scalars {
        names.add(name, "scalar")?;
        if !v.is_finite() {
            return Err(toml.err(name.span().start, format!("the scalar `{}` is not finite", name.get_ref())));
        }
        scalars.insert(name.get_ref().clone(), *v);
    }
    let known: BTreeSet<&str> =
        spec.dims.keys().chain(spec.derived.keys()).map(|n| n.get_ref().as_str()).collect();
    let inputs = inputs(toml, &spec, &known, &mut names)?;
    let reference = reference(toml, &spec, &known, &scalars)?;
    let outputs = outputs(toml, &spec, &reference, &mut names)?;
    let output_shapes = output_shapes(toml, &spec, &known, &outputs)?;
    for name in &spec.inplace {
        if !inputs.iter().any(|i| i.name == *name.get_ref()) {
            return Err(toml.err(name.span().start, format!("`{}` is no input", name.get_ref())));
        }
    }
    let operators = if spec.operators.is_empty() {
        reference.operators().iter().map(|o| (*o).to_owned()).collect()
    } else {
        spec.operators.clone()
    };
    let ragged = spec
        .ragged
        .shapes
        .iter()
        .map(|shape| shape.iter().map(|(n, v)| (n.get_ref().clone(), *v.get_ref())).collect())
        .collect();
    let mut problem = Problem {
        level: spec.level,
        id: spec.id,
        name: spec.name.get_ref().clone(),
        slug,
        dir,
        techniques: spec.techniques.clone(),
        operators,
        nan_ok: spec.nan_ok,
        tolerance_note: spec.tolerance_note.clone(),
        notes: spec.notes.clone(),
        refereeable: spec.refereeable,
        degenerate: spec.degenerate.clone(),
        dims,
        derived,
        scalars,
        inputs,
        outputs,
        output_shapes,
        inplace: spec.inplace.iter().map(|n| n.get_ref().clone()).collect(),
        reference,
        reference_text: spec.reference.get_ref().clone(),
        ragged,
        toml_source: toml.text.to_owned(),
        kernel_source: kernel.text.clone(),
        kernel_file: kernel.file().to_owned(),
        includes: kernel.names.clone(),
        // Replaced below, when the problem can say what binds.
        host: HostProgram::empty(),
    };
    extents(toml, &spec, &problem)?;
    problem.host = host(kernel, &problem)?;
    Ok(problem)
}

fn legal_extent(toml: &Text<'_>, v: &Spanned<u64>) -> Result<(), LoadError> {
    if *v.get_ref() == 0 {
        return Err(toml.err(v.span().start, "an extent is at least 1"));
    }
    if i64::try_from(*v.get_ref()).is_err() {
        return Err(toml.err(v.span().start, "an extent is an integer of 63 bits"));
    }
    Ok(())
}

/// Derived dims, sorted so that each needs only what stands before it.
fn derived(toml: &Text<'_>, spec: &Spec) -> Result<Vec<(String, Expr)>, LoadError> {
    let mut waiting = Vec::new();
    for (name, text) in &spec.derived {
        let e = toml.expr(text, Expr::integer(text.get_ref()), "expression")?;
        for (used, at) in e.names() {
            let dim = spec.dims.keys().chain(spec.derived.keys()).any(|d| d.get_ref() == used);
            if !dim {
                return Err(toml.err_in(text, *at, format!("`{used}` is no dim")));
            }
        }
        waiting.push((name, text, e));
    }
    let mut ready: BTreeSet<String> = spec.dims.keys().map(|d| d.get_ref().clone()).collect();
    let mut out = Vec::new();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|(name, _, e)| {
            let now = e.names().iter().all(|(n, _)| ready.contains(n));
            if now {
                ready.insert(name.get_ref().clone());
                out.push((name.get_ref().clone(), e.clone()));
            }
            !now
        });
        if waiting.len() == before {
            let (name, text, _) = &waiting[0];
            let message =
                format!("the derived dim `{}` needs itself, directly or through others", name.get_ref());
            return Err(toml.err_in(text, 0, message));
        }
    }
    Ok(out)
}

/// A shape's extents as expressions over dims.
fn shape(
    toml: &Text<'_>,
    spec: &Spanned<Vec<Spanned<Extent>>>,
    dims: &BTreeSet<&str>,
) -> Result<Vec<Expr>, LoadError> {
    let mut shape = Vec::new();
    for entry in spec.get_ref() {
        shape.push(match entry.get_ref() {
            Extent::Number(n) => Expr::constant(*n),
            Extent::Text(t) => {
                let s = Spanned::new(entry.span(), t.clone());
                let e = toml.expr(&s, Expr::integer(t), "extent")?;
                if let Some((n, at)) = e.names().iter().find(|(n, _)| !dims.contains(n.as_str())) {
                    return Err(toml.err_in(&s, *at, format!("`{n}` is no dim")));
                }
                e
            }
        });
    }
    if shape.len() > 8 {
        return Err(toml.err(spec.span().start, "more than 8 dimensions"));
    }
    Ok(shape)
}

/// The shapes that the file states for its outputs.
fn output_shapes(
    toml: &Text<'_>,
    spec: &Spec,
    dims: &BTreeSet<&str>,
    outputs: &[String],
) -> Result<BTreeMap<String, Vec<Expr>>, LoadError> {
    let mut out = BTreeMap::new();
    for (name, extents) in &spec.output_shapes {
        if !outputs.contains(name.get_ref()) {
            return Err(toml.err(name.span().start, format!("`{}` is no output", name.get_ref())));
        }
        out.insert(name.get_ref().clone(), shape(toml, extents, dims)?);
    }
    Ok(out)
}

fn inputs(
    toml: &Text<'_>,
    spec: &Spec,
    dims: &BTreeSet<&str>,
    names: &mut Names<'_>,
) -> Result<Vec<Input>, LoadError> {
    let mut out = Vec::new();
    for i in &spec.inputs {
        names.add(&i.name, "input")?;
        let dtype: DType = i.dtype.get_ref().parse().map_err(|e| toml.err_in(&i.dtype, 0, format!("{e}")))?;
        let kind = match i.kind.as_ref().map(|k| (k, k.get_ref().as_str())) {
            None | Some((_, "input")) => InputKind::Input,
            Some((_, "parameter")) => InputKind::Parameter,
            Some((k, other)) => {
                let message = format!("unknown kind `{other}` (known: `input`, `parameter`)");
                return Err(toml.err_in(k, 0, message));
            }
        };
        let shape = shape(toml, &i.shape, dims)?;
        let init = toml.expr(&i.init, Init::parse(i.init.get_ref()), "initialiser")?;
        for e in init.expressions() {
            // The offset within the initialiser is that of the name's first use.
            if let Some((n, _)) = e.names().iter().find(|(n, _)| !dims.contains(n.as_str())) {
                let at = i.init.get_ref().find(n.as_str()).unwrap_or(0);
                return Err(toml.err_in(&i.init, at, format!("`{n}` is no dim")));
            }
        }
        if !init.suits(dtype) {
            let message = format!("`{}` makes no values of dtype `{dtype}`", i.init.get_ref());
            return Err(toml.err_in(&i.init, 0, message));
        }
        if !init.is_plain() && kind == InputKind::Parameter {
            let message = "`factor` and `softmax` make inputs, not parameters";
            return Err(toml.err_in(&i.init, 0, message));
        }
        let structure = structure(toml, i, dtype, shape.len())?;
        out.push(Input { name: i.name.get_ref().clone(), kind, dtype, shape, init, structure });
    }
    Ok(out)
}

fn structure(
    toml: &Text<'_>,
    input: &InputSpec,
    dtype: DType,
    rank: usize,
) -> Result<Option<Structure>, LoadError> {
    let Some(text) = &input.structure else { return Ok(None) };
    let structure = match text.get_ref().as_str() {
        "upper" => Structure::Upper,
        "lower" => Structure::Lower,
        "symmetric" => Structure::Symmetric,
        other => {
            let message = format!("unknown structure `{other}` (known: `upper`, `lower`, `symmetric`)");
            return Err(toml.err_in(text, 0, message));
        }
    };
    if rank < 2 || !dtype.is_float() {
        return Err(toml.err_in(
            text,
            0,
            "only matrices of floating-point numbers have a structure".to_owned(),
        ));
    }
    Ok(Some(structure))
}

fn reference(
    toml: &Text<'_>,
    spec: &Spec,
    dims: &BTreeSet<&str>,
    scalars: &BTreeMap<String, f64>,
) -> Result<Program, LoadError> {
    let inputs: Vec<&str> = spec.inputs.iter().map(|i| i.name.get_ref().as_str()).collect();
    let numbers: Vec<&str> = dims.iter().copied().chain(scalars.keys().map(String::as_str)).collect();
    let text = spec.reference.get_ref();
    Program::parse(text, &inputs, &numbers).map_err(|e| {
        let start: usize = text.split_inclusive('\n').take((e.line.max(1) - 1) as usize).map(str::len).sum();
        let line = text.get(start..).unwrap_or("");
        let within = line.char_indices().nth((e.column.max(1) - 1) as usize).map_or(line.len(), |(i, _)| i);
        toml.err_in(&spec.reference, start + within, format!("bad reference: {}", e.message))
    })
}

fn outputs(
    toml: &Text<'_>,
    spec: &Spec,
    reference: &Program,
    names: &mut Names<'_>,
) -> Result<Vec<String>, LoadError> {
    let list = spec.outputs.get_ref();
    if list.is_empty() {
        return Err(toml.err(spec.outputs.span().start, "a problem has at least one output"));
    }
    let defined = reference.defined();
    let mut out = Vec::new();
    for name in list {
        let inplace = spec.inplace.iter().any(|n| n.get_ref() == name.get_ref());
        if !inplace {
            names.add(name, "output")?;
        }
        if !defined.contains(&name.get_ref().as_str()) {
            let message = format!("no line of the reference gives `{}` a value", name.get_ref());
            return Err(toml.err_in(name, 0, message));
        }
        out.push(name.get_ref().clone());
    }
    Ok(out)
}

/// Checks every derived dim, shape and initialiser at desk, official and ragged extents.
fn extents(toml: &Text<'_>, spec: &Spec, p: &Problem) -> Result<(), LoadError> {
    for shape in &spec.ragged.shapes {
        for (name, v) in shape {
            if !p.dims.iter().any(|d| d.name == *name.get_ref()) {
                return Err(toml.err(name.span().start, format!("`{}` is no dim", name.get_ref())));
            }
            legal_extent(toml, v)?;
        }
    }
    let none = BTreeMap::new();
    let mut cases = vec![
        ("at official extents".to_owned(), &none, Extents::Official, None),
        ("at desk extents".to_owned(), &none, Extents::Desk, None),
    ];
    for (shape, spans) in p.ragged.iter().zip(&spec.ragged.shapes) {
        let text: Vec<String> = shape.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let at = spans.keys().map(|k| k.span().start).min();
        cases.push((format!("at {}", text.join(",")), shape, Extents::Desk, at));
    }
    for (when, overrides, which, place) in cases {
        // Of a ragged shape, its own line is to blame; otherwise the expression.
        let blame = |s: Range<usize>| place.unwrap_or(s.start);
        let mut dims: BTreeMap<String, u64> = p
            .dims
            .iter()
            .map(|d| (d.name.clone(), if which == Extents::Desk { d.desk } else { d.official }))
            .collect();
        dims.extend(overrides.iter().map(|(n, v)| (n.clone(), *v)));
        for (name, e) in &p.derived {
            let span = spec.derived.iter().find(|(n, _)| n.get_ref() == name).map_or(0..0, |(_, t)| t.span());
            let v = e
                .size(&dims)
                .map_err(|why| toml.err(blame(span), format!("`{name} = {e}` {when}: {why}")))?;
            dims.insert(name.clone(), v);
        }
        for (input, s) in p.inputs.iter().zip(&spec.inputs) {
            let mut shape = Vec::new();
            for (e, entry) in input.shape.iter().zip(s.shape.get_ref()) {
                let v = e
                    .size(&dims)
                    .map_err(|why| toml.err(blame(entry.span()), format!("`{e}` {when}: {why}")))?;
                shape.push(v);
            }
            let bytes = numel(&shape).and_then(|n| n.checked_mul(input.dtype.size_bytes()));
            if bytes.is_none_or(|b| i64::try_from(b).is_err()) {
                let message = format!("the shape {shape:?} {when} does not fit in 63 bits of bytes");
                return Err(toml.err(blame(s.shape.span()), message));
            }
            input.init.at(&dims).map_err(|why| {
                toml.err(blame(s.init.span()), format!("`{}` {when}: {why}", s.init.get_ref()))
            })?;
        }
    }
    Ok(())
}

/// The host side of a kernel file, checked against what the problem binds.
fn host(kernel: &Inlined, p: &Problem) -> Result<HostProgram, LoadError> {
    let place = |line: u32, column: u32, message: String| {
        let (file, own) = kernel.origin(line);
        error_on(file, &kernel.text, (line, own), column, message)
    };
    let fail = |e: HostError| {
        let (line, column) = e.position().unwrap_or((1, 1));
        place(line, column, e.message())
    };
    let host = HostProgram::parse(&kernel.text).map_err(fail)?;
    let dims = p.dims_with(&BTreeMap::new(), Extents::Desk).map_err(|e| place(1, 1, e.to_string()))?;
    host.check(&p.bindings(&dims)).map_err(fail)?;
    for output in &p.outputs {
        let found = host.parameters().iter().find(|q| q.name == *output);
        match found.map(|q| (q, &q.kind)) {
            Some((_, ParameterKind::Pointer { is_const: false, .. })) => {}
            Some((q, _)) => {
                let message =
                    format!("the output `{output}` is a parameter of `launch` that cannot be written");
                return Err(place(q.line, q.column, message));
            }
            None => {
                let (line, column) = host.position();
                let message = format!("the output `{output}` is no parameter of `launch`");
                return Err(place(line, column, message));
            }
        }
    }
    Ok(host)
}
