//! A file's top-level items: functions (host, device, kernel), records, declarations.
//!
//! Algorithm: one scan over the tokens that matches brackets and looks no further into bodies than that, so a
//! file that a C++ parser would stumble over (unknown macros, Torch bindings) still splits.
//!
//! What it misses: an item whose braces are split over the two sides of an `#if` in the raw text.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lex::{Kind, Tok, lex};
use crate::preprocess::directive;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A definition with a body, or (no body) a prototype.
    Function,
    /// A struct, class, union or enum.
    Record,
    /// Anything else up to its semicolon.
    Declaration,
}

/// One top-level item; the ranges are token indices.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    /// The whole item.
    pub range: Range<usize>,
    /// What stands before the body, or the whole.
    pub header: Range<usize>,
    /// Inside the `<>` of `template<…>`.
    pub template: Option<Range<usize>>,
    /// The function's name.
    pub name: Option<usize>,
    /// Inside the parentheses after the name.
    pub params: Option<Range<usize>>,
    /// Inside the braces.
    pub body: Option<Range<usize>>,
    /// `__global__`, `__device__`, `__constant__` and so on in the header, directly or through a macro.
    pub device: bool,
    /// `__global__` among them.
    pub kernel: bool,
    /// `constexpr` or `const` in the header.
    pub constant: bool,
    /// The namespaces around it, `a::b::`; unnamed ones do not appear.
    pub scope: String,
}

/// Words after which a `(` opens no parameter list.
const NOT_NAMES: [&str; 13] = [
    "__launch_bounds__",
    "__align__",
    "alignas",
    "__attribute__",
    "__declspec",
    "__maxnreg__",
    "__cluster_dims__",
    "decltype",
    "noexcept",
    "sizeof",
    "explicit",
    "requires",
    "static_assert",
];

const DEVICE_WORDS: [&str; 5] = ["__global__", "__device__", "__constant__", "__shared__", "__managed__"];

/// Macro names whose replacement contains a device attribute, directly or through other macros.
#[derive(Clone, Debug, Default)]
pub struct DeviceMacros {
    device: BTreeSet<String>,
    kernel: BTreeSet<String>,
}

impl DeviceMacros {
    /// Gathers them from the directives of a raw token stream.
    pub fn gather(tokens: &[Tok<'_>]) -> DeviceMacros {
        let mut found = DeviceMacros::default();
        for tok in tokens.iter().filter(|t| t.kind == Kind::Directive) {
            let d = directive(tok.text);
            if d.name != "define" {
                continue;
            }
            let toks = lex(d.rest, 0);
            let Some(name) = toks.first() else { continue };
            if toks[1..].iter().any(|t| found.is_device(t.text)) {
                found.device.insert(name.text.to_owned());
            }
            if toks[1..].iter().any(|t| found.is_kernel(t.text)) {
                found.kernel.insert(name.text.to_owned());
            }
        }
        found
    }

    fn is_device(&self, word: &str) -> bool {
        DEVICE_WORDS.contains(&word) || self.device.contains(word)
    }

    fn is_kernel(&self, word: &str) -> bool {
        word == "__global__" || self.kernel.contains(word)
    }
}

/// For every opening bracket, the index one past the bracket that closes it (0 where none does); one pass, so
/// that deep nesting costs no more than its length.
pub fn pairs(tokens: &[Tok<'_>]) -> Vec<usize> {
    let mut close = vec![0; tokens.len()];
    let mut open = Vec::new();
    for (j, t) in tokens.iter().enumerate().filter(|(_, t)| t.kind == Kind::Punct) {
        match t.text {
            "(" | "[" | "{" => open.push(j),
            ")" | "]" | "}" => {
                if let Some(o) = open.pop() {
                    close[o] = j + 1;
                }
            }
            _ => {}
        }
    }
    close
}

/// Index one past the bracket that closes the one at `open`, if the range has it.
fn matching(pairs: &[usize], open: usize, end: usize) -> Option<usize> {
    pairs.get(open).copied().filter(|&c| c > open && c <= end)
}

/// Index one past the `>` that closes the `<` at `open`; a `>>` or `>>>` that closes more than is open ends it.
fn matching_angle(tokens: &[Tok<'_>], pairs: &[usize], open: usize, end: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut j = open;
    while j < end {
        let t = tokens.get(j)?;
        match t.text {
            "<" if t.kind == Kind::Punct => depth += 1,
            ">" | ">>" | ">>>" if t.kind == Kind::Punct => {
                depth = depth.saturating_sub(t.text.len());
                if depth == 0 {
                    return Some(j + 1);
                }
            }
            "(" | "[" | "{" if t.kind == Kind::Punct => {
                j = matching(pairs, j, end)?;
                continue;
            }
            ";" if t.kind == Kind::Punct => return None,
            _ => {}
        }
        j += 1;
    }
    None
}

/// Splits the tokens of a file (raw, or preprocessed) into items, looking into namespaces and `extern "C"`.
pub fn split(tokens: &[Tok<'_>], macros: &DeviceMacros) -> Vec<Item> {
    let mut out = Vec::new();
    // A stack instead of recursion: nesting is bounded by the file's length only.
    let mut work = vec![(0..tokens.len(), String::new())];
    let pairs = pairs(tokens);
    while let Some((range, scope)) = work.pop() {
        split_range(tokens, &pairs, range, &scope, macros, &mut out, &mut work);
    }
    out.sort_by_key(|item| item.range.start);
    out
}

fn split_range(
    tokens: &[Tok<'_>],
    pairs: &[usize],
    range: Range<usize>,
    scope: &str,
    macros: &DeviceMacros,
    out: &mut Vec<Item>,
    work: &mut Vec<(Range<usize>, String)>,
) {
    let mut i = range.start;
    let end = range.end;
    while i < end {
        let t = &tokens[i];
        if t.kind == Kind::Directive || t.is(";") || t.is("}") || t.is(")") {
            i += 1;
            continue;
        }
        if let Some(open) = scope_brace(tokens, i, end) {
            let Some(close) = matching(pairs, open, end) else { return };
            work.push((open + 1..close - 1, inner_scope(scope, &tokens[i..open])));
            i = close;
            continue;
        }
        let mut item = scan_item(tokens, pairs, i, end, macros);
        item.scope = scope.to_owned();
        i = item.range.end.max(i + 1);
        out.push(item);
    }
}

/// The `{` of a namespace or of `extern "C"`, if one begins at `i`.
fn scope_brace(tokens: &[Tok<'_>], i: usize, end: usize) -> Option<usize> {
    let mut j = i;
    if tokens[j].is("inline") {
        j += 1;
    }
    if tokens.get(j)?.is("namespace") {
        j += 1;
        while j < end && (tokens[j].kind == Kind::Ident || tokens[j].is("::")) {
            j += 1;
        }
    } else if tokens[i].is("extern") && tokens.get(i + 1)?.kind == Kind::Str {
        j = i + 2;
    } else {
        return None;
    }
    (j < end && tokens[j].is("{")).then_some(j)
}

/// The scope inside the namespace whose header is `header`; past some depth the path is no longer extended,
/// which keeps a hostile file's paths short.
fn inner_scope(outer: &str, header: &[Tok<'_>]) -> String {
    let mut scope = outer.to_owned();
    if header.iter().any(|t| t.is("namespace")) && outer.len() < 512 {
        for t in header.iter().filter(|t| t.kind == Kind::Ident && !matches!(t.text, "inline" | "namespace"))
        {
            scope.push_str(t.text);
            scope.push_str("::");
        }
    }
    scope
}

fn scan_item(tokens: &[Tok<'_>], pairs: &[usize], start: usize, end: usize, macros: &DeviceMacros) -> Item {
    let mut item = Item {
        kind: ItemKind::Declaration,
        range: start..end,
        header: start..end,
        template: None,
        name: None,
        params: None,
        body: None,
        device: false,
        kernel: false,
        constant: false,
        scope: String::new(),
    };
    let mut j = start;
    while j < end && tokens[j].is("template") && tokens.get(j + 1).is_some_and(|t| t.is("<")) {
        let Some(close) = matching_angle(tokens, pairs, j + 1, end) else { break };
        item.template = Some(j + 2..close - 1);
        j = close;
    }
    let mut assigned = false;
    let mut record = false;
    let mut header_end = None;
    while j < end {
        let t = &tokens[j];
        match t.text {
            ";" if t.kind == Kind::Punct => {
                item.range.end = j + 1;
                break;
            }
            "}" | ")" | "]" if t.kind == Kind::Punct => {
                item.range.end = j;
                break;
            }
            "=" if t.kind == Kind::Punct => assigned = true,
            "(" if t.kind == Kind::Punct => {
                let Some(close) = matching(pairs, j, end) else { break };
                let named = j > start
                    && tokens[j - 1].kind == Kind::Ident
                    && !NOT_NAMES.contains(&tokens[j - 1].text);
                if named && !assigned && !record {
                    item.name = Some(j - 1);
                    item.params = Some(j + 1..close - 1);
                }
                j = close;
                continue;
            }
            "[" if t.kind == Kind::Punct => {
                let Some(close) = matching(pairs, j, end) else { break };
                j = close;
                continue;
            }
            "{" if t.kind == Kind::Punct => {
                header_end.get_or_insert(j);
                let Some(close) = matching(pairs, j, end) else { break };
                if item.params.is_some() && !assigned {
                    item.body = Some(j + 1..close - 1);
                    item.range.end = close;
                    break;
                }
                if record && item.body.is_none() {
                    item.body = Some(j + 1..close - 1);
                }
                j = close;
                continue;
            }
            "struct" | "class" | "union" | "enum"
                if t.kind == Kind::Ident && item.params.is_none() && header_end.is_none() =>
            {
                record = true;
            }
            _ => {}
        }
        j += 1;
    }
    item.header = start..header_end.unwrap_or(item.range.end).min(item.range.end);
    // `struct S f(…) {…}` is rare enough to be read as a record; `struct S {…};` is the common case.
    item.kind = if record && item.body.is_some() && item.params.is_none() {
        ItemKind::Record
    } else if item.params.is_some() && !assigned {
        ItemKind::Function
    } else {
        ItemKind::Declaration
    };
    for t in &tokens[item.header.clone()] {
        if t.kind == Kind::Ident {
            item.device |= macros.is_device(t.text);
            item.kernel |= macros.is_kernel(t.text);
            item.constant |= matches!(t.text, "constexpr" | "const" | "consteval" | "constinit");
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(s: &str) -> Vec<String> {
        let toks = lex(s, 0);
        split(&toks, &DeviceMacros::gather(&toks))
            .iter()
            .map(|i| {
                let name = i.name.filter(|_| i.kind == ItemKind::Function).map_or("-", |n| toks[n].text);
                format!(
                    "{:?} {name}{}{}",
                    i.kind,
                    if i.device { " device" } else { "" },
                    if i.kernel { " kernel" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn items_are_split_and_recognised() {
        assert_eq!(
            items(
                "#define DEV __device__ inline\n#define DEV2 DEV\nnamespace a { namespace b { int f(int x) { return x; } } }\n\
                 extern \"C\" { __global__ void __launch_bounds__(256) k(float* x) { if (x) { } } }\n\
                 template <typename T, int N = (3 > 2)> DEV2 T g(T x) { return x; }\n\
                 struct S { int a; __device__ int f() { return 1; } };\n\
                 const int t[] = {1, 2};\nvoid proto(int);\n__constant__ float c[4];\nint y{3};"
            ),
            [
                "Function f",
                "Function k device kernel",
                "Function g device",
                "Record -",
                "Declaration -",
                "Function proto",
                "Declaration - device",
                "Declaration -"
            ]
        );
    }

    #[test]
    fn unbalanced_text_still_ends() {
        for s in [
            "void f( {",
            "}}}",
            "struct",
            "template <",
            "namespace x {",
            "a ) b ; c",
            "extern \"C\" {",
            "f(]",
        ] {
            let _ = items(s);
        }
    }
}
