//! The host part of an extension as text that a C++ compiler takes: `crates/extension/cpp/assay_host.h` is its only header.
//!
//! Every change is a splice of the author's text, and every line keeps its number:
//! - the body of a kernel becomes a stub that hands its name, template arguments and parameters to the device, so that
//!   conversions, deduction, function pointers and kernels passed as template arguments are the compiler's;
//! - the body of a function for the device alone becomes a trap; one for both sides stays;
//! - `k<<<grid, block, shared, stream>>>(…)` becomes a configuration and a call, as nvcc's own stubs are called;
//! - CUDA devices become the CPU (`kCUDA`, `is_cuda()`, `"cuda"`): tensors lie in its memory, and a C++ program has no
//!   hook for what they say. Words are changed in this text alone, so that PyTorch's headers keep their meaning, which
//!   macros of the same names would not leave them.
//!
//! What it misses: kernels that only a macro's expansion pastes together, launches whose name is the result of a call
//! without parentheses around it, `__device__` lambdas.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use assay_host::directive;
use assay_host::items::pairs;
use assay_host::lex::{Kind, Tok, lex};

use crate::Sources;

/// What the compiler calls the texts, in its messages.
pub(crate) const CPP: &str = "extension.cpp";
pub(crate) const CUDA: &str = "extension.cu";

/// A text for a C++ compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostText {
    /// To be compiled after `assay_host.h`.
    pub text: String,
    /// Does it need all of `torch/extension.h`, the C++ frontend too?
    pub whole: bool,
    /// Kernels that are no templates, with their namespaces.
    pub kernels: Vec<String>,
    /// All kernels, without namespaces and template arguments.
    pub names: Vec<String>,
}

/// Words after which `(` opens no parameter list.
const NOT_NAMES: [&str; 11] = [
    "__launch_bounds__",
    "__align__",
    "alignas",
    "__attribute__",
    "__maxnreg__",
    "__cluster_dims__",
    "decltype",
    "noexcept",
    "sizeof",
    "explicit",
    "requires",
];

/// Headers whose names a text may go on to include; all of CUDA's and PyTorch's are in ours already.
const OURS: [&str; 22] = [
    "torch/",
    "ATen/",
    "c10/",
    "cuda",
    "cub/",
    "thrust/",
    "pybind11/",
    "mma.h",
    "cooperative_groups",
    "curand",
    "cublas",
    "cudnn",
    "cusparse",
    "cufft",
    "device_",
    "math_constants.h",
    "math_functions.h",
    "vector_types.h",
    "vector_functions",
    "driver_types.h",
    "nvToolsExt.h",
    "sm_",
];

/// The host part of the sources, with the bindings that `functions` ask for.
pub fn host_text(sources: &Sources) -> HostText {
    let (cpp, cuda) = (sources.cpp.join("\n"), sources.cuda.join("\n"));
    let whole = [&cpp, &cuda]
        .iter()
        .any(|t| ["torch::nn", "torch::optim", "torch::jit", "torch::data"].iter().any(|w| t.contains(w)));
    let mut out = String::from("#define TORCH_EXTENSION_NAME assay_extension\n");
    for flag in &sources.cuda_flags {
        if let Some(d) = flag.strip_prefix("-D").and_then(define) {
            out.push_str(&d);
        }
    }
    let (mut kernels, mut names) = (Vec::new(), Vec::new());
    for (name, text) in [(CPP, &cpp), (CUDA, &cuda)] {
        let mut text = Text::new(text);
        let _ = writeln!(out, "#line 1 \"{name}\"\n{}", text.whole());
        kernels.append(&mut text.kernels);
        names.append(&mut text.names);
    }
    if !sources.functions.is_empty() {
        out.push_str("#line 1 \"bindings\"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
        for f in sources.functions.iter().filter(|f| f.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        {
            let _ = writeln!(out, "  m.def(\"{f}\", torch::wrap_pybind_function({f}), \"{f}\");");
        }
        out.push_str("}\n");
    }
    HostText { text: out, whole, kernels, names }
}

/// `-DNAME=VALUE` as a line, where both are plain: the compiler's own options are not the author's.
fn define(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let plain = |s: &str, more: &str| s.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    let good = !name.is_empty() && plain(name, "_") && plain(value, "_.+-<>,:()* ");
    good.then(|| format!("#define {name} {value}\n"))
}

/// A text, or the replacement of a macro, with its tokens.
struct Text<'a> {
    source: &'a str,
    toks: Vec<Tok<'a>>,
    close: Vec<usize>,
    /// Is it the replacement of a macro, whose lines go on with a backslash?
    in_macro: bool,
    device_macros: BTreeSet<&'a str>,
    kernel_macros: BTreeSet<&'a str>,
    host_macros: BTreeSet<&'a str>,
    kernels: Vec<String>,
    names: Vec<String>,
}

/// A part of the text that becomes another.
struct Splice {
    toks: Range<usize>,
    text: String,
}

impl<'a> Text<'a> {
    fn new(source: &'a str) -> Text<'a> {
        let toks = lex(source, 0);
        let close = pairs(&toks);
        let mut out = Text {
            source,
            toks,
            close,
            in_macro: false,
            device_macros: BTreeSet::from(["__device__", "__global__"]),
            kernel_macros: BTreeSet::from(["__global__"]),
            host_macros: BTreeSet::from(["__host__"]),
            kernels: Vec::new(),
            names: Vec::new(),
        };
        for d in out.toks.iter().filter(|t| t.kind == Kind::Directive).map(|t| directive(t.text)) {
            if d.name != "define" {
                continue;
            }
            let inside = lex(d.rest, 0);
            let Some((name, words)) = inside.split_first() else { continue };
            // Only attributes: a macro that defines a whole function is none.
            if words.iter().any(|t| matches!(t.text, "{" | "(")) {
                continue;
            }
            let name = name.text;
            for set in [&mut out.device_macros, &mut out.kernel_macros, &mut out.host_macros] {
                if words.iter().any(|w| set.contains(w.text)) {
                    set.insert(name);
                }
            }
        }
        out
    }

    fn inner<'b>(&self, source: &'b str) -> Text<'b>
    where
        'a: 'b,
    {
        let toks = lex(source, 0);
        let close = pairs(&toks);
        Text {
            source,
            toks,
            close,
            in_macro: true,
            device_macros: self.device_macros.clone(),
            kernel_macros: self.kernel_macros.clone(),
            host_macros: self.host_macros.clone(),
            kernels: Vec::new(),
            names: Vec::new(),
        }
    }

    fn whole(&mut self) -> String {
        let splices = self.splices();
        self.render(0..self.toks.len(), &splices, 0, self.source.len())
    }

    fn is(&self, i: usize, text: &str) -> bool {
        self.toks.get(i).is_some_and(|t| t.is(text))
    }

    fn ident(&self, i: usize) -> Option<&'a str> {
        self.toks.get(i).filter(|t| t.kind == Kind::Ident).map(|t| t.text)
    }

    fn at(&self, i: usize) -> usize {
        self.toks.get(i).map_or(self.source.len(), |t| t.at as usize)
    }

    fn end(&self, i: usize) -> usize {
        self.toks.get(i).map_or(self.source.len(), Tok::end)
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        if range.is_empty() {
            return "";
        }
        self.source.get(self.at(range.start)..self.end(range.end - 1)).unwrap_or("")
    }

    /// As many line ends as tokens have between them, which replacements keep.
    fn lines(&self, range: Range<usize>) -> String {
        let n = self.slice(range).bytes().filter(|b| *b == b'\n').count();
        if self.in_macro { "\\\n".repeat(n) } else { "\n".repeat(n) }
    }

    /// The text of some tokens with splices and launches done; bytes `from..to` around them are copied.
    fn render(&mut self, range: Range<usize>, splices: &[Splice], from: usize, to: usize) -> String {
        let mut out = String::new();
        let mut done = from;
        let mut i = range.start;
        while i < range.end {
            let next = splices.partition_point(|s| s.toks.start < i);
            if let Some(s) = splices.get(next).filter(|s| s.toks.start == i && s.toks.end <= range.end) {
                out.push_str(self.source.get(done..self.at(i)).unwrap_or(""));
                out.push_str(&s.text);
                done = self.end(s.toks.end.max(i + 1) - 1);
                i = s.toks.end.max(i + 1);
                continue;
            }
            if let Some((open, shut, end)) = self.launch(i, range.end) {
                out.push_str(self.source.get(done..self.at(i)).unwrap_or(""));
                let line = if self.in_macro {
                    "__LINE__".to_owned()
                } else {
                    let before = self.source.get(..self.at(open)).unwrap_or("");
                    (before.bytes().filter(|b| *b == b'\n').count() + 1).to_string()
                };
                let part = |this: &mut Self, a: usize, b: usize| {
                    // From the end of what stands before to the beginning of what follows, so that no line end is lost.
                    let (from, to) = (this.end(a), this.at(b));
                    this.render(a + 1..b, splices, from, to)
                };
                let configuration = part(self, open, shut);
                let (from, to) = (self.at(i), self.at(open));
                let callee = self.render(i..open, splices, from, to);
                let arguments = part(self, shut + 1, end - 1);
                let _ =
                    write!(out, "(::assay_host::configure({line}, {configuration}), {callee}({arguments}))");
                done = self.end(end - 1);
                i = end;
                continue;
            }
            if let Some(text) = self.word(i) {
                out.push_str(self.source.get(done..self.at(i)).unwrap_or(""));
                out.push_str(&text);
                done = self.end(i);
            }
            i += 1;
        }
        out.push_str(self.source.get(done.min(to)..to).unwrap_or(""));
        out
    }

    /// A token that reads otherwise here.
    fn word(&mut self, i: usize) -> Option<String> {
        let t = *self.toks.get(i)?;
        let member = i > 0 && (self.is(i - 1, ".") || self.is(i - 1, "->"));
        let empty_call = self.is(i + 1, "(") && self.is(i + 2, ")");
        match t.kind {
            Kind::Directive => self.directive(t.text),
            Kind::Str => match t.text {
                "\"cuda\"" | "\"cuda:0\"" => Some("\"cpu\"".into()),
                _ => None,
            },
            Kind::Ident => match t.text {
                "kCUDA" => Some("kCPU".into()),
                "CUDA" if i > 0 && (self.is(i - 1, "::") || (self.is(i - 1, ",") && self.is(i + 1, ","))) => {
                    Some("CPU".into())
                }
                "is_cuda" if member && empty_call => Some("is_cpu".into()),
                "is_cpu" if member && empty_call => Some("is_cuda".into()),
                "cuda" if member && empty_call => Some("cpu".into()),
                // On a device this is a copy.
                "cpu" if member && empty_call => Some("clone".into()),
                // The C++ library's own headers use this word.
                "__noinline__" => Some(String::new()),
                _ => None,
            },
            Kind::Number | Kind::Char | Kind::Punct | Kind::Pasted | Kind::Spelled => None,
        }
    }

    /// An include that our header has already goes; the replacement of a macro is a text of its own.
    fn directive(&mut self, text: &'a str) -> Option<String> {
        let d = directive(text);
        if d.name == "include" {
            let name = d.rest.trim().trim_start_matches(['<', '"']);
            return OURS.iter().any(|o| name.starts_with(o)).then(String::new);
        }
        if d.name != "define" {
            return None;
        }
        let mut inner = self.inner(d.rest);
        let out = inner.whole();
        self.kernels.append(&mut inner.kernels);
        self.names.append(&mut inner.names);
        (out != d.rest).then(|| format!("{}{out}", text.get(..d.rest_at).unwrap_or("#define")))
    }

    /// The launch that begins at a token: the `<<<`, the `>>>`, and one past the closing parenthesis of its arguments.
    fn launch(&self, start: usize, end: usize) -> Option<(usize, usize, usize)> {
        let t = self.toks.get(start)?;
        let member = start > 0 && [".", "->", "::"].iter().any(|p| self.is(start - 1, p));
        if member || !(t.kind == Kind::Ident || t.is("(") || t.is("::")) {
            return None;
        }
        let mut i = start;
        if t.is("(") {
            i = self.close.get(i).copied().filter(|c| *c > i)?;
        } else {
            // `a::b<c>`, `a.b`, `a->b`.
            loop {
                if self.is(i, "::") {
                    i += 1;
                }
                self.ident(i)?;
                i += 1;
                if self.is(i, "template") {
                    i += 1;
                }
                if self.is(i, "<") {
                    i = self.angle(i)?;
                }
                if self.is(i, "::") || self.is(i, ".") || self.is(i, "->") {
                    i += usize::from(!self.is(i, "::"));
                    if self.is(i + 1, "template") {
                        i += 1;
                    }
                    continue;
                }
                break;
            }
        }
        if !self.is(i, "<<<") {
            return None;
        }
        let open = i;
        i += 1;
        while i < end && !self.is(i, ">>>") {
            i = match self.toks.get(i)? {
                t if t.is("(") || t.is("[") || t.is("{") => self.close.get(i).copied().filter(|c| *c > i)?,
                t if t.is(";") => return None,
                _ => i + 1,
            };
        }
        let close =
            self.close.get(i + 1).copied().filter(|c| self.is(i + 1, "(") && *c > i + 1 && *c <= end)?;
        Some((open, i, close))
    }

    /// One past the `>` that closes a `<`.
    fn angle(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut i = open;
        while let Some(t) = self.toks.get(i) {
            match t.text {
                "<" if t.kind == Kind::Punct => depth += 1,
                ">" | ">>" if t.kind == Kind::Punct => {
                    depth = depth.saturating_sub(t.text.len());
                    if depth == 0 {
                        return Some(i + 1);
                    }
                }
                "(" | "[" | "{" if t.kind == Kind::Punct => {
                    i = self.close.get(i).copied().filter(|c| *c > i)?;
                    continue;
                }
                ";" | "<<<" | "&&" | "||" if t.kind == Kind::Punct => return None,
                _ => {}
            }
            i += 1;
        }
        None
    }

    /// Bodies of functions for the device.
    fn splices(&mut self) -> Vec<Splice> {
        let mut out = Vec::new();
        // Namespaces by the token that closes them.
        let mut scopes: Vec<(usize, String)> = Vec::new();
        let mut i = 0;
        // Where the present declaration begins.
        let mut begin = 0;
        while i < self.toks.len() {
            while scopes.last().is_some_and(|(close, _)| *close <= i) {
                scopes.pop();
            }
            let t = self.toks[i];
            if t.kind == Kind::Directive
                || matches!(t.text, ";" | "{" | "}") && t.kind == Kind::Punct
                || t.text == ":"
                    && i > 0
                    && matches!(self.toks[i - 1].text, "public" | "private" | "protected")
            {
                if t.is("{")
                    && let Some(scope) = self.namespace(begin, i)
                {
                    let outer = scopes.last().map_or("", |(_, s)| s.as_str());
                    let close = self.close.get(i).copied().filter(|c| *c > i).unwrap_or(self.toks.len());
                    scopes.push((close, format!("{outer}{scope}")));
                }
                i += 1;
                begin = i;
                continue;
            }
            if t.kind == Kind::Ident && self.device_macros.contains(t.text) {
                let scope = scopes.last().map(|(_, s)| s.clone()).unwrap_or_default();
                if let Some((splices, end)) = self.function(begin, i, &scope) {
                    out.extend(splices);
                    i = end;
                    begin = i;
                    continue;
                }
            }
            i += 1;
        }
        out
    }

    /// The path that a `{` adds, if a namespace opens there; one without a name adds nothing.
    fn namespace(&self, begin: usize, open: usize) -> Option<String> {
        let words = &self.toks[begin..open];
        let at = words.iter().position(|t| t.is("namespace"))?;
        if words[..at].iter().any(|t| !t.is("inline")) {
            return None;
        }
        Some(
            words[at + 1..]
                .iter()
                .filter(|t| t.kind == Kind::Ident)
                .map(|t| format!("{}::", t.text))
                .collect(),
        )
    }

    /// A function with an attribute of the device at token `at`: what becomes of its body, and where it ends.
    fn function(&mut self, begin: usize, at: usize, scope: &str) -> Option<(Vec<Splice>, usize)> {
        let mut i = at;
        let (name, open) = loop {
            let t = *self.toks.get(i)?;
            if t.is(";") || t.is("{") || t.is("=") || t.kind == Kind::Directive {
                return None;
            }
            if t.is("operator") {
                // `operator()` is a name of which the first parentheses are a part.
                let open = if self.is(i + 1, "(") && self.is(i + 2, ")") {
                    i + 3
                } else {
                    (i + 1..i + 6).find(|k| self.is(*k, "("))?
                };
                break (i, open);
            }
            if t.is("(") {
                let before = i.checked_sub(1)?;
                if self.ident(before).is_some_and(|n| !NOT_NAMES.contains(&n)) {
                    break (before, i);
                }
                if self.is(before, ">") || self.is(before, ">>") {
                    // `k<float>(`: a specialisation.
                    let name = (at..before).rev().find(|k| {
                        self.ident(*k).is_some() && self.is(k + 1, "<") && self.angle(k + 1) == Some(i)
                    });
                    if let Some(name) = name {
                        break (name, i);
                    }
                }
                i = self.close.get(i).copied().filter(|c| *c > i)?;
                continue;
            }
            i += 1;
        };
        let close = self.close.get(open).copied().filter(|c| *c > open)?;
        let words: Vec<&str> = self.toks[begin..name].iter().map(|t| t.text).collect();
        let has = |set: &BTreeSet<&str>| words.iter().any(|w| set.contains(w));
        let kernel = has(&self.kernel_macros);
        let host = has(&self.host_macros);
        // What stands between the parameters and the body.
        let mut k = close;
        let body = loop {
            let t = *self.toks.get(k)?;
            if t.is("{") {
                break k;
            }
            if t.is(";") || t.is("=") {
                // A prototype; its attributes are nothing to the compiler.
                return Some((Vec::new(), k));
            }
            if t.is(":") && !self.is(k + 1, ":") {
                k = self.initialisers(k + 1)?;
                continue;
            }
            k = match t.is("(") || t.is("[") {
                true => self.close.get(k).copied().filter(|c| *c > k)?,
                false => k + 1,
            };
        };
        let end = self.close.get(body).copied().filter(|c| *c > body)?;
        if !kernel {
            // One for both sides is the compiler's; a constant expression may be asked for on either.
            if host || words.contains(&"constexpr") {
                return None;
            }
            let lines = self.lines(close..end);
            let qualifiers: String = self.toks[close..body]
                .iter()
                .take_while(|t| !t.is(":"))
                .map(|t| format!(" {}", t.text))
                .collect();
            let text = format!("{qualifiers} {{ ::assay_host::device_only(); }}{lines}");
            return Some((vec![Splice { toks: close..end, text }], end));
        }
        let full = format!("{scope}{}", self.slice(name..open));
        self.names.extend(self.ident(name).map(str::to_owned));
        let mut out = Vec::new();
        let mut stub =
            format!("{{ ::assay_host::Launch assay_launch(\"{}\");", full.replace(['\n', '\\', '"'], " "));
        let template = self.template(begin, name);
        match &template {
            Some(params) => {
                for p in params {
                    let _ = write!(stub, " {p}");
                }
            }
            None if open == name + 1 && !self.in_macro => self.kernels.push(full),
            None => {}
        }
        for (n, range) in self.commas(open + 1..close - 1).into_iter().enumerate() {
            if self.slice(range.clone()).trim() == "void" {
                continue;
            }
            let parameter = match self.parameter(range.clone()) {
                Some(name) => name,
                None => {
                    // Without a name: it gets one.
                    let last = range.end - 1;
                    let name = format!("assay_parameter_{n}");
                    out.push(Splice {
                        toks: last..range.end,
                        text: format!("{} {name}", self.toks[last].text),
                    });
                    name
                }
            };
            let _ = write!(stub, " assay_launch.parameter(\"{parameter}\", {parameter});");
        }
        let _ = write!(stub, " assay_launch.go(); }}{}", self.lines(body..end));
        out.push(Splice { toks: body..end, text: stub });
        Some((out, end))
    }

    /// Past the initialisers of a constructor, which begin at a token.
    fn initialisers(&self, mut i: usize) -> Option<usize> {
        loop {
            while !(self.is(i, "(") || self.is(i, "{")) {
                if self.is(i, ";") {
                    return None;
                }
                i = if self.is(i, "<") { self.angle(i)? } else { i + 1 };
                self.toks.get(i)?;
            }
            i = self.close.get(i).copied().filter(|c| *c > i)?;
            if self.is(i, "...") {
                i += 1;
            }
            if !self.is(i, ",") {
                return Some(i);
            }
            i += 1;
        }
    }

    /// Ranges between the commas of a list.
    fn commas(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut out = Vec::new();
        let (mut begin, mut i) = (range.start, range.start);
        while i < range.end {
            if self.is(i, "(") || self.is(i, "[") || self.is(i, "{") {
                i = self.close.get(i).copied().filter(|c| *c > i && *c <= range.end).unwrap_or(i + 1);
                continue;
            }
            if self.is(i, "<")
                && let Some(end) = self.angle(i).filter(|e| *e <= range.end)
            {
                i = end;
                continue;
            }
            if self.is(i, ",") {
                out.push(begin..i);
                begin = i + 1;
            }
            i += 1;
        }
        if begin < range.end {
            out.push(begin..range.end);
        }
        out
    }

    /// The name of a parameter, if it has one.
    fn parameter(&self, range: Range<usize>) -> Option<String> {
        let end = range.clone().find(|i| self.is(*i, "=") || self.is(*i, "[")).unwrap_or(range.end);
        let last = end.checked_sub(1).filter(|l| *l >= range.start)?;
        let name = self.ident(last)?;
        let types = self.toks[range.start..last]
            .iter()
            .filter(|t| {
                t.is(">")
                    || t.kind == Kind::Ident
                        && !matches!(t.text, "const" | "volatile" | "struct" | "unsigned" | "signed")
            })
            .count();
        let builtin = ["int", "float", "double", "bool", "char", "long", "short", "unsigned", "half", "void"]
            .contains(&name);
        let scoped = last > range.start && self.is(last - 1, "::");
        let unsigned = self.toks[range.start..last].iter().any(|t| t.is("unsigned") || t.is("signed"));
        (!builtin && !scoped && (types > 0 || unsigned)).then(|| name.to_owned())
    }

    /// What a stub says of each parameter of its template, if it has one.
    fn template(&self, begin: usize, name: usize) -> Option<Vec<String>> {
        let at = (begin..name).find(|i| self.is(*i, "template") && self.is(i + 1, "<"))?;
        let end = self.angle(at + 1)?;
        let mut out = Vec::new();
        for range in self.commas(at + 2..end - 1) {
            let end = range.clone().find(|i| self.is(*i, "=")).unwrap_or(range.end);
            let Some(ident) = end.checked_sub(1).and_then(|l| self.ident(l)) else { continue };
            let words = &self.toks[range.start..end];
            let pack = words.iter().any(|t| t.is("..."));
            let what = match words.first().map(|t| t.text) {
                Some("typename" | "class") => format!("::assay_host::type_name<{ident}>()"),
                Some("template") => format!("::assay_host::template_name<{ident}>()"),
                _ => format!("::assay_host::value_name<{ident}>()"),
            };
            out.push(if pack {
                format!("(assay_launch.argument({what}), ...);")
            } else {
                format!("assay_launch.argument({what});")
            });
        }
        // A specialisation has its arguments in its name.
        (!out.is_empty()).then_some(out)
    }
}
