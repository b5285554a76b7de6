//! Whether a unit may share an NVRTC call with others, and what that needs.
//!
//! A unit in a batch is wrapped in a namespace. That is sound only if its brackets close whatever its conditions and
//! macros do, its includes can move to the top, its macros can be taken back, and nothing in it depends on where it
//! stands. Every doubt ends in the answer that the unit is compiled alone; that is always correct, only slower.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lex::{Kind, Lexed, Token};

/// What batching a unit needs.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Header names with their quotes, in order, once each.
    pub includes: Vec<String>,
    /// Macros that the unit defines or undefines.
    pub macros: BTreeSet<String>,
    /// Functions (and what looks like one) declared at the outermost level.
    pub functions: BTreeSet<String>,
    /// Types and values declared at the outermost level.
    pub names: BTreeSet<String>,
    /// Replacements in the source, in order: ranges in bytes.
    pub edits: Vec<(Range<usize>, &'static str)>,
}

/// Words whose meaning depends on the place, the file or the name of the enclosing namespace.
const PLACE_WORDS: [&str; 14] = [
    "__FILE__",
    "__BASE_FILE__",
    "__builtin_FILE",
    "__COUNTER__",
    "__INCLUDE_LEVEL__",
    "__DATE__",
    "__TIME__",
    "__TIMESTAMP__",
    "__PRETTY_FUNCTION__",
    "__FUNCSIG__",
    "assert",
    "source_location",
    "typeid",
    "module",
];

/// Namespaces that exist outside the unit and that it may reopen.
const FOREIGN_NAMESPACES: [&str; 7] = ["std", "cuda", "cub", "thrust", "nvcuda", "cooperative_groups", "nv"];

/// Words before `(` that are not functions.
const NOT_FUNCTIONS: [&str; 16] = [
    "__launch_bounds__",
    "__align__",
    "__attribute__",
    "__declspec",
    "__maxnreg__",
    "__cluster_dims__",
    "__block_size__",
    "__grid_constant__",
    "alignas",
    "alignof",
    "decltype",
    "noexcept",
    "operator",
    "requires",
    "sizeof",
    "static_assert",
];

type Alone = &'static str;

struct Scan<'l> {
    lexed: &'l Lexed,
    shape: Shape,
    /// Open brackets; `E` is the brace of a linkage block, which is no level of its own.
    open: Vec<u8>,
    /// Depths at which conditional groups began.
    groups: Vec<usize>,
    object_macros: BTreeSet<String>,
    function_macros: BTreeSet<String>,
    /// A directive other than an include came before.
    configured: bool,
}

/// The shape of a unit that can share a call, or why it cannot.
pub(crate) fn analyse(lexed: &Lexed) -> Result<Shape, Alone> {
    if lexed.unterminated {
        return Err("a comment or literal does not end");
    }
    if lexed.odd {
        return Err("a trigraph, a digraph or a splice at the end");
    }
    let mut scan = Scan {
        lexed,
        shape: Shape::default(),
        open: vec![],
        groups: vec![],
        object_macros: BTreeSet::new(),
        function_macros: BTreeSet::new(),
        configured: false,
    };
    let tokens = &lexed.tokens;
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].opens_directive {
            let end = tokens[at + 1..]
                .iter()
                .position(|t| !t.directive || t.opens_directive)
                .map_or(tokens.len(), |p| at + 1 + p);
            scan.directive(&tokens[at..end])?;
            at = end;
        } else {
            scan.code(at)?;
            at += 1;
        }
    }
    if !scan.open.is_empty() {
        return Err("a bracket is left open");
    }
    if !scan.groups.is_empty() {
        return Err("an `#if` is left open");
    }
    for token in tokens {
        match token.kind {
            Kind::RawStr => return Err("a raw string"),
            Kind::Ident if PLACE_WORDS.contains(&lexed.str(token)) => {
                return Err("depends on its file or place");
            }
            Kind::Punct if lexed.str(token) == "##" => return Err("pastes tokens"),
            _ => {}
        }
    }
    scan.shape.functions.retain(|name| !scan.object_macros.contains(name));
    Ok(scan.shape)
}

impl Scan<'_> {
    fn text(&self, at: usize) -> &str {
        self.lexed.tokens.get(at).map_or("", |t| self.lexed.str(t))
    }

    fn top(&self) -> bool {
        self.open.iter().all(|&b| b == b'E')
    }

    fn directive(&mut self, line: &[Token]) -> Result<(), Alone> {
        let lexed = self.lexed;
        let Some(name) = line.get(1) else { return Ok(()) };
        let rest = &line[2..];
        match lexed.str(name) {
            "include" => {
                if self.configured || !self.groups.is_empty() || !self.open.is_empty() {
                    return Err("an include that is not at the top");
                }
                let [header] = rest else { return Err("an include of another form") };
                let spelled = lexed.str(header).to_owned();
                if !self.shape.includes.contains(&spelled) {
                    self.shape.includes.push(spelled);
                }
                let range = lexed.source_range(&line[0]).start..lexed.source_range(header).end;
                self.shape.edits.push((range, ""));
                return Ok(());
            }
            "if" | "ifdef" | "ifndef" => self.groups.push(self.open.len()),
            "elif" | "else" | "elifdef" | "elifndef" => {
                if self.groups.last() != Some(&self.open.len()) {
                    return Err("a bracket crosses an `#else`");
                }
            }
            "endif" => {
                if self.groups.pop() != Some(self.open.len()) {
                    return Err("a bracket crosses an `#endif`");
                }
            }
            "define" => self.define(rest)?,
            "undef" => {
                let Some(target) = rest.first() else { return Err("an `#undef` without a name") };
                self.shape.macros.insert(lexed.str(target).to_owned());
            }
            "pragma" => {
                let word = rest.first().map_or("", |t| lexed.str(t));
                if !matches!(
                    word,
                    "unroll" | "nounroll" | "once" | "nv_diag_suppress" | "nv_exec_check_disable"
                ) {
                    return Err("a pragma that may reach further");
                }
                return Ok(());
            }
            _ => return Err("another directive"),
        }
        self.configured = true;
        Ok(())
    }

    fn define(&mut self, rest: &[Token]) -> Result<(), Alone> {
        let lexed = self.lexed;
        let [name, body @ ..] = rest else { return Err("a `#define` without a name") };
        let name = lexed.str(name).to_owned();
        let function = body.first().is_some_and(|t| lexed.str(t) == "(" && !t.spaced);
        let mut open = Vec::new();
        for token in body {
            let text = lexed.str(token);
            if token.kind == Kind::Punct && !balance(&mut open, text) {
                return Err("a macro with an unbalanced bracket");
            }
            if token.kind == Kind::Ident && matches!(text, "asm" | "__asm__" | "__asm" | "_Pragma" | "extern")
            {
                return Err("a macro with assembly, a pragma or a linkage");
            }
            if text == "{" && !function {
                return Err("a macro with a body in braces");
            }
        }
        if !open.is_empty() {
            return Err("a macro with an unbalanced bracket");
        }
        if function {
            self.function_macros.insert(name.clone());
        } else {
            self.object_macros.insert(name.clone());
        }
        self.shape.macros.insert(name);
        Ok(())
    }

    fn code(&mut self, at: usize) -> Result<(), Alone> {
        let token = self.lexed.tokens[at];
        let text = self.lexed.str(&token);
        if token.kind == Kind::Punct {
            if text == "::" {
                return self.qualifier(at);
            }
            if text == "{" && self.open.last() == Some(&b'L') {
                // The brace that a linkage specification announced.
                self.open.pop();
                self.open.push(b'E');
                return Ok(());
            }
            return if balance(&mut self.open, text) { Ok(()) } else { Err("a bracket that nothing opened") };
        }
        if token.kind != Kind::Ident {
            return Ok(());
        }
        let next = self.text(at + 1);
        match text {
            "extern" if self.lexed.tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Str) => {
                return self.linkage(at);
            }
            "asm" | "__asm__" | "__asm" => return self.assembly(at),
            "_Pragma" => return Err("a pragma in an operator"),
            "namespace" if FOREIGN_NAMESPACES.contains(&next) && matches!(self.text(at + 2), "{" | "::") => {
                return Err("reopens a namespace");
            }
            _ => {}
        }
        if self.function_macros.contains(text) && next == "(" {
            if self.top() {
                return Err("a macro call at the outermost level");
            }
            self.macro_arguments(at + 1)?;
        }
        if self.top() {
            let previous = if at == 0 { "" } else { self.text(at - 1) };
            if next == "(" && previous != "operator" && !NOT_FUNCTIONS.contains(&text) {
                self.shape.functions.insert(text.to_owned());
            } else if matches!(previous, "struct" | "class" | "union" | "enum" | "using")
                || matches!(next, "=" | ";" | "[")
            {
                self.shape.names.insert(text.to_owned());
            }
        }
        Ok(())
    }

    /// `::name` looks outside the namespace that a batch puts around the unit.
    fn qualifier(&self, at: usize) -> Result<(), Alone> {
        let leading = at == 0 || {
            let before = &self.lexed.tokens[at - 1];
            let spaced = self.lexed.tokens[at].spaced;
            spaced || (before.kind != Kind::Ident && self.lexed.str(before) != ">")
        };
        if leading && self.shape.functions.contains(self.text(at + 1)) {
            return Err("names its own function with a leading `::`");
        }
        Ok(())
    }

    /// `extern "C"`: without it the names cannot collide. Only on definitions, since a declaration would then
    /// refer to another function.
    fn linkage(&mut self, at: usize) -> Result<(), Alone> {
        let lexed = self.lexed;
        let tokens = &lexed.tokens;
        let range = lexed.source_range(&tokens[at]).start..lexed.source_range(&tokens[at + 1]).end;
        if !self.top() {
            return Err("a linkage inside something");
        }
        if self.text(at + 2) == "{" {
            let mut depth = 0u32;
            let mut previous = "";
            for token in &tokens[at + 2..] {
                let text = lexed.str(token);
                match text {
                    "{" => depth += 1,
                    "}" => depth = depth.saturating_sub(1),
                    "extern" if depth == 1 => return Err("a linkage inside another"),
                    ";" if depth == 1 && previous == ")" => {
                        return Err("a declaration with C linkage");
                    }
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                previous = text;
            }
            self.open.push(b'L');
            self.shape.edits.push((range, "extern \"C++\""));
            return Ok(());
        }
        let body = tokens[at + 2..].iter().map(|t| lexed.str(t)).find(|t| matches!(*t, ";" | "{"));
        if body != Some("{") {
            return Err("a declaration with C linkage");
        }
        self.shape.edits.push((range, ""));
        Ok(())
    }

    /// Inline assembly ends up in the PTX as it stands: its braces must match and it may not leave its function.
    fn assembly(&self, at: usize) -> Result<(), Alone> {
        const BAD: Alone = "assembly that may reach further";
        if self.top() {
            return Err(BAD);
        }
        let tokens = &self.lexed.tokens;
        let mut next = at + 1;
        while matches!(self.text(next), "volatile" | "__volatile__" | "goto" | "inline") {
            next += 1;
        }
        if self.text(next) != "(" {
            return Err(BAD);
        }
        let mut code = String::new();
        next += 1;
        while tokens.get(next).is_some_and(|t| t.kind == Kind::Str) {
            code.push_str(self.text(next));
            next += 1;
        }
        if code.is_empty() || !matches!(self.text(next), ":" | "::" | ")") {
            return Err(BAD);
        }
        let mut depth = 0i64;
        for byte in code.bytes() {
            depth += match byte {
                b'{' => 1,
                b'}' => -1,
                _ => 0,
            };
            if depth < 0 {
                return Err(BAD);
            }
        }
        let words =
            ["//", "/*", ".entry", ".func", ".visible", ".extern", ".weak", ".global", ".section", "\\x"];
        // `.global` is also the space of loads and stores, which follow an opcode.
        let leaves = words.iter().any(|w| {
            code.match_indices(w).any(|(found, _)| {
                *w != ".global" || !code[..found].ends_with(|c: char| c.is_ascii_alphanumeric())
            })
        });
        if depth != 0 || leaves { Err(BAD) } else { Ok(()) }
    }

    /// A macro may drop or repeat an argument: one with a brace could change the balance.
    fn macro_arguments(&self, open: usize) -> Result<(), Alone> {
        let mut depth = 0u32;
        for token in &self.lexed.tokens[open..] {
            match self.lexed.str(token) {
                "(" => depth += 1,
                ")" => depth -= 1,
                "{" | "}" | "[" | "]" => return Err("a macro argument with a bracket"),
                "#" if token.opens_directive => return Err("a directive among macro arguments"),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err("a macro call that does not end")
    }
}

/// Applies a bracket to the stack; false when it closes what is not open.
fn balance(open: &mut Vec<u8>, text: &str) -> bool {
    match text {
        "(" | "[" | "{" => {
            open.push(text.as_bytes()[0]);
            true
        }
        ")" => open.pop() == Some(b'('),
        "]" => open.pop() == Some(b'['),
        "}" => matches!(open.pop(), Some(b'{' | b'E')),
        _ => true,
    }
}

/// The source with a shape's edits made; every line stays where it is.
pub(crate) fn edited(source: &str, shape: &Shape) -> String {
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    for (range, replacement) in &shape.edits {
        out.push_str(&source[at..range.start]);
        if replacement.is_empty() {
            out.extend(source[range.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(replacement);
            out.extend(source[range.clone()].matches('\n'));
        }
        at = range.end;
    }
    out.push_str(&source[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::lex;

    #[test]
    fn what_could_reach_a_neighbour_is_compiled_alone() {
        let alone = [
            "__global__ void k() {",
            "}",
            "__global__ void k() { (] }",
            "#if 1\n__global__ void k() {}",
            "#endif",
            "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}",
            "#if 0\n{\n#endif\n",
            "/* open",
            "const char* s = \"open\n;",
            "__device__ const char* s = R\"(x)\";",
            "#define OPEN {\n",
            "#define BODY { int x; }\n",
            "#define M(a,b) a\n__device__ void f() { M({,}) }",
            "#define D(n) __device__ void n() {}\nD(f)",
            "#define CAT(a,b) a##b\n",
            "#define A 1\n#include <cuda_fp16.h>\n",
            "#if A\n#include <cuda_fp16.h>\n#endif",
            "namespace std { }",
            "#pragma pack(1)\n",
            "#line 7\n",
            "extern \"C\" __device__ float f(float);",
            "extern \"C\" { __device__ float f(float); }",
            "__device__ void f() { asm(\"}\"); }",
            "__device__ void f() { asm(\"{ .reg .b32 x; // }\"); }",
            "asm(\".global .b32 x;\");",
            "__global__ void k() { assert(1); }",
            "__device__ const char* f() { return __FILE__; }",
            "__device__ float max(float a) { return ::max(a, 1.f); }",
            "void f() {} \\",
        ];
        for source in alone {
            assert!(analyse(&lex(source)).is_err(), "{source}");
        }
    }

    #[test]
    fn usual_kernels_can_share_a_call() {
        let source = r#"#include <cuda_fp16.h>
#include "cuda_fp16.h"
#include <mma.h>
#define TILE 16
#define MIN(a, b) ((a) < (b) ? (a) : (b))
using namespace nvcuda;
struct Pair { float a, b; };
constexpr int WARP = 32;
extern "C" {
__global__ void a(float* x) { x[0] = 1; }
}
extern "C" __global__ void __launch_bounds__(256) b(float* x, int n) {
  extern __shared__ float s[];
#pragma unroll
  for (int i = 0; i < MIN(n, TILE); ++i) { s[i] = x[i]; }
  asm volatile("{ .reg .b32 t; ld.global.f32 %0, [%1]; }" : "=f"(x[0]) : "l"(x));
}
template <typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] *= N; }
#ifdef FAST
__device__ float atomicMax(float* a, float v) { return v; }
#else
__device__ float atomicMax(float* a, float v);
#endif
"#;
        let shape = analyse(&lex(source)).unwrap();
        assert_eq!(shape.includes, ["<cuda_fp16.h>", "\"cuda_fp16.h\"", "<mma.h>"]);
        assert!(shape.macros.iter().eq(["MIN", "TILE"]));
        assert!(shape.functions.iter().eq(["a", "atomicMax", "b", "scale"]), "{:?}", shape.functions);
        assert!(shape.names.contains("Pair") && shape.names.contains("WARP"));
        let text = edited(source, &shape);
        assert_eq!(text.lines().count(), source.lines().count());
        assert!(!text.contains("#include") && !text.contains("\"C\" "));
        assert!(text.lines().nth(8).unwrap().starts_with("extern \"C++\" {"));
    }
}
