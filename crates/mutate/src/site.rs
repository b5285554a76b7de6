//! What a rule sees of a source, and how it says what to change.

use std::ops::Range;

use tree_sitter::Node;

use crate::source::Function;
use crate::syntax::{
    Binary, Call, any_below, assignment, bare, binary, call, int_literal, is_pure, named_children, text,
};
use crate::types::{Names, Symbol, Symbols, Ty, infer, is_wide, is_wide_type};

/// A syntax node offered to a rule, with what surrounds it.
pub struct Site<'a> {
    pub(crate) node: Node<'a>,
    /// From the root down to the parent of `node`.
    pub(crate) ancestors: &'a [Node<'a>],
    pub(crate) source: &'a str,
    pub(crate) globals: &'a Symbols,
    /// `None` at file scope.
    pub(crate) function: Option<&'a Function<'a>>,
    /// The file includes `cuda_fp16.h`.
    pub(crate) has_half: bool,
}

impl<'a> Site<'a> {
    pub(crate) fn text(&self, node: Node<'_>) -> &'a str {
        text(node, self.source)
    }

    /// The node's text on one line.
    pub(crate) fn flat(&self, node: Node<'_>) -> String {
        let mut out = String::new();
        for word in self.text(node).split_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        out
    }

    /// The node's text on one line, in parentheses unless it binds tighter than any operator.
    pub(crate) fn atom(&self, node: Node<'_>) -> String {
        let flat = self.flat(node);
        if is_atom(node) || flat.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            flat
        } else {
            format!("({flat})")
        }
    }

    pub(crate) fn names(&self) -> Names<'a> {
        Names {
            source: self.source,
            file: self.globals,
            local: self.function.map(|function| &function.symbols),
        }
    }

    pub(crate) fn ty(&self, node: Node<'_>) -> Ty {
        infer(node, &self.names(), 0)
    }

    /// An integer of 64 bits.
    pub(crate) fn wide(&self, node: Node<'_>) -> bool {
        is_wide(node, &self.names(), 0)
    }

    /// A written type that is an integer of 64 bits.
    pub(crate) fn wide_type(&self, node: Node<'_>) -> bool {
        is_wide_type(node, self.source)
    }

    pub(crate) fn symbol(&self, name: &str) -> Option<Symbol> {
        self.names().symbol(name)
    }

    pub(crate) fn host(&self) -> bool {
        self.function.is_some_and(|function| function.host)
    }

    pub(crate) fn parent(&self) -> Option<Node<'a>> {
        self.ancestors.last().copied()
    }

    /// Parent first, root last.
    pub(crate) fn outwards(&self) -> impl Iterator<Item = Node<'a>> {
        // No rule needs more, and a hostile file may nest without end.
        const FARTHEST: usize = 256;
        self.ancestors.iter().rev().copied().take(FARTHEST)
    }

    pub(crate) fn binary(&self) -> Option<Binary<'a>> {
        binary(self.node)
    }

    pub(crate) fn assignment(&self) -> Option<Binary<'a>> {
        assignment(self.node)
    }

    pub(crate) fn call(&self) -> Option<Call<'a, 'a>> {
        call(self.node, self.source)
    }

    /// No side effect, no comment: the text may be repeated or left out.
    pub(crate) fn pure(&self, node: Node<'_>) -> bool {
        is_pure(node, self.source)
    }

    pub(crate) fn int(&self, node: Node<'_>) -> Option<u64> {
        (node.kind() == "number_literal").then(|| int_literal(self.text(node))).flatten()
    }

    /// Same text, spaces apart.
    pub(crate) fn same(&self, one: Node<'_>, other: Node<'_>) -> bool {
        self.text(one).split_whitespace().eq(self.text(other).split_whitespace())
    }

    /// Neither operand is a pointer, and neither is known to be a float.
    pub(crate) fn integers(&self, binary: &Binary<'_>) -> bool {
        let (left, right) = (self.ty(binary.left), self.ty(binary.right));
        !left.is_pointer()
            && !right.is_pointer()
            && !left.is_real()
            && !right.is_real()
            && (left.is_int() || right.is_int())
    }

    /// At least one operand is a float and neither is a pointer.
    pub(crate) fn reals(&self, binary: &Binary<'_>) -> bool {
        let (left, right) = (self.ty(binary.left), self.ty(binary.right));
        !left.is_pointer() && !right.is_pointer() && (left.is_real() || right.is_real())
    }

    /// The `for` whose condition (or a conjunct of it) the node is.
    pub(crate) fn for_condition(&self) -> Option<Node<'a>> {
        let mut below = self.node;
        for at in self.outwards() {
            match at.kind() {
                "for_statement" => {
                    return (at.child_by_field_name("condition") == Some(below)).then_some(at);
                }
                "binary_expression" if matches!(binary(at).map(|b| b.op), Some("&&" | "||")) => {}
                "parenthesized_expression" => {}
                _ => return None,
            }
            below = at;
        }
        None
    }

    /// The node is the update of a `for`, or part of it.
    pub(crate) fn in_for_update(&self) -> bool {
        let mut below = self.node;
        for at in self.outwards() {
            match at.kind() {
                "for_statement" => return at.child_by_field_name("update") == Some(below),
                "comma_expression"
                | "parenthesized_expression"
                | "assignment_expression"
                | "update_expression"
                | "binary_expression" => {}
                _ => return false,
            }
            below = at;
        }
        false
    }

    /// The node is a loop variable's start value, or part of it.
    pub(crate) fn in_for_start(&self) -> bool {
        let mut below = self.node;
        for at in self.outwards() {
            match at.kind() {
                "for_statement" => return at.child_by_field_name("initializer") == Some(below),
                "declaration"
                | "init_declarator"
                | "assignment_expression"
                | "binary_expression"
                | "parenthesized_expression" => {}
                _ => return false,
            }
            below = at;
        }
        false
    }

    pub(crate) fn in_loop(&self) -> bool {
        self.outwards()
            .take_while(|n| n.kind() != "function_definition")
            .any(|n| matches!(n.kind(), "for_statement" | "while_statement" | "do_statement"))
    }

    /// Part of a ceiling division, which rules of its own mutate.
    pub(crate) fn in_ceil_div(&self) -> bool {
        if self.ceil_div(self.node).is_some() {
            return true;
        }
        for at in self.outwards() {
            match at.kind() {
                "binary_expression" | "parenthesized_expression" => {
                    if self.ceil_div(at).is_some() {
                        return true;
                    }
                }
                _ => return false,
            }
        }
        false
    }

    /// Part of a launch configuration or of a `dim3`.
    pub(crate) fn in_launch_shape(&self) -> bool {
        for at in self.outwards() {
            match at.kind() {
                "kernel_call_syntax" => return true,
                "call_expression" if call(at, self.source).is_some_and(|c| c.name == "dim3") => return true,
                "declaration" => {
                    return at.child_by_field_name("type").is_some_and(|ty| self.text(ty) == "dim3");
                }
                kind if kind.ends_with("_statement") => return false,
                _ => {}
            }
        }
        false
    }

    /// Reads `(x + t - 1) / t`, `(x + 15) / 16`, `(x - 1) / t + 1`, `(x + 31) >> 5`,
    /// `ceil_div(x, t)`: the floor division that it is mistaken for.
    pub(crate) fn ceil_div(&self, node: Node<'a>) -> Option<String> {
        if let Some(call) = call(node, self.source) {
            let named = matches!(
                call.name.rsplit("::").next().unwrap_or(""),
                "ceil_div"
                    | "ceildiv"
                    | "cdiv"
                    | "div_up"
                    | "divup"
                    | "divUp"
                    | "ceilDiv"
                    | "CEIL_DIV"
                    | "div_ceil"
                    | "DIVUP"
                    | "DIV_UP"
            );
            return match call.args.as_slice() {
                [x, t] if named => Some(format!("{} / {}", self.atom(*x), self.atom(*t))),
                _ => None,
            };
        }
        let outer = binary(node)?;
        match outer.op {
            "/" => {
                let sum = binary(bare(outer.left))?;
                let divisor = outer.right;
                let floor = |x: Node<'_>| Some(format!("{} / {}", self.atom(x), self.atom(divisor)));
                match sum.op {
                    // (x + t) - 1
                    "-" if self.int(sum.right) == Some(1) => {
                        let inner = binary(bare(sum.left))?;
                        (inner.op == "+" && self.same(bare(inner.right), bare(divisor)))
                            .then(|| floor(inner.left))
                            .flatten()
                    }
                    "+" => {
                        // x + 15 over 16
                        if let (Some(add), Some(t)) = (self.int(sum.right), self.int(bare(divisor))) {
                            return (t > 1 && add == t - 1).then(|| floor(sum.left)).flatten();
                        }
                        // x + (t - 1)
                        let less = binary(bare(sum.right))?;
                        (less.op == "-"
                            && self.int(less.right) == Some(1)
                            && self.same(bare(less.left), bare(divisor)))
                        .then(|| floor(sum.left))
                        .flatten()
                    }
                    _ => None,
                }
            }
            "+" if self.int(outer.right) == Some(1) => {
                let quotient = binary(bare(outer.left))?;
                let less = binary(bare(quotient.left))?;
                (quotient.op == "/" && less.op == "-" && self.int(less.right) == Some(1))
                    .then(|| format!("{} / {}", self.atom(less.left), self.atom(quotient.right)))
            }
            ">>" => {
                let shift = self.int(outer.right).filter(|s| *s > 0 && *s < 31)?;
                let sum = binary(bare(outer.left))?;
                (sum.op == "+" && self.int(sum.right) == Some((1 << shift) - 1))
                    .then(|| format!("{} >> {shift}", self.atom(sum.left)))
            }
            _ => None,
        }
    }

    /// An integer comparison by size, or a conjunction of such: what a bounds guard looks like.
    pub(crate) fn is_bounds_test(&self, node: Node<'a>) -> bool {
        match binary(bare(node)) {
            Some(b) if matches!(b.op, "<" | "<=" | ">" | ">=") => self.integers(&b),
            Some(b) if matches!(b.op, "&&" | "||") => {
                self.is_bounds_test(b.left) && self.is_bounds_test(b.right)
            }
            _ => false,
        }
    }

    /// Body of the function around the site.
    pub(crate) fn body(&self) -> Option<Node<'a>> {
        self.function.and_then(|function| function.node.child_by_field_name("body"))
    }

    /// Whether the name is the `which`-th launch argument (0 grid, 1 block) of some launch here.
    pub(crate) fn is_launch_shape(&self, name: &str, which: usize) -> bool {
        self.body().is_some_and(|body| {
            any_below(body, |n| {
                n.kind() == "kernel_call_syntax"
                    && named_children(n).get(which).is_some_and(|arg| self.text(*arg) == name)
            })
        })
    }

    /// Expression text for `value` rounded to half precision and back, with the edits it needs.
    ///
    /// Without `cuda_fp16.h` a helper goes in front of the function, on the same line: an
    /// `#include` would need a line of its own.
    pub(crate) fn through_half(&self, value: &str) -> (String, Vec<(Range<usize>, String)>) {
        if self.has_half {
            return (format!("__half2float(__float2half({value}))"), Vec::new());
        }
        let at = self.function.map_or(0, |function| function.item_start as usize);
        (format!("through_half({value})"), vec![(at..at, THROUGH_HALF.to_owned())])
    }
}

/// Same conversions as `cuda_fp16.h`: round to nearest even, then widen.
const THROUGH_HALF: &str = "static __device__ __forceinline__ float through_half(float x) { unsigned short h; \
                            asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x)); \
                            asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h)); return x; } ";

fn is_atom(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "identifier"
            | "number_literal"
            | "true"
            | "false"
            | "call_expression"
            | "subscript_expression"
            | "field_expression"
            | "parenthesized_expression"
            | "qualified_identifier"
    )
}

/// Changes that a rule proposes; each call is one mutant.
#[derive(Default)]
pub struct Proposals {
    pub(crate) list: Vec<Proposal>,
}

pub(crate) struct Proposal {
    /// The main edit first.
    pub edits: Vec<(Range<usize>, String)>,
    /// What the name says instead of `replace OLD with NEW`.
    pub what: Option<String>,
}

impl Proposals {
    /// `node` becomes `new`.
    pub(crate) fn replace(&mut self, node: Node<'_>, new: impl Into<String>) {
        self.list.push(Proposal { edits: vec![(node.byte_range(), new.into())], what: None });
    }

    /// `node` becomes `new`, and other places change with it.
    pub(crate) fn replace_with(
        &mut self,
        node: Node<'_>,
        new: impl Into<String>,
        others: Vec<(Range<usize>, String)>,
    ) {
        let mut edits = vec![(node.byte_range(), new.into())];
        edits.extend(others);
        self.list.push(Proposal { edits, what: None });
    }

    /// Two nodes change places; what is around them keeps its lines.
    pub(crate) fn swap(&mut self, source: &str, one: Node<'_>, other: Node<'_>) {
        let (a, b) = (text(one, source), text(other, source));
        if let (Some(for_one), Some(for_other)) = (in_lines_of(b, a), in_lines_of(a, b)) {
            let edits = vec![(one.byte_range(), for_one), (other.byte_range(), for_other)];
            self.list.push(Proposal { edits, what: Some(crate::mutant::describe_swap(a, b)) });
        }
    }
}

/// `text` with no more line ends than `place` has; `None` where a line end is needed to end a
/// comment or a directive.
fn in_lines_of(text: &str, place: &str) -> Option<String> {
    let lines = |text: &str| text.matches('\n').count();
    if lines(text) <= lines(place) {
        return Some(text.to_owned());
    }
    if text.contains("//") || text.contains('#') {
        return None;
    }
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
