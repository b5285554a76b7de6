//! Just enough typing to keep rules precise: is this operand a float, an integer, a pointer?
//!
//! Types are guessed from declarations in the same file and from the names of CUDA built-ins.
//! What is missed: macros, overloads, members of user types, types behind template parameters;
//! all of these are [`Base::Unknown`], and rules that need to know leave them alone.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use tree_sitter::Node;

use crate::syntax::{call, float_literal, int_literal, named_children, text};

/// What a value is, its pointer and array levels apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Bool,
    Int,
    Float,
    Double,
    Half,
    /// `float2`, `float3`, `float4`.
    FloatVector,
    /// `int2`, `uint4` and the like.
    IntVector,
    Dim3,
    Void,
    Unknown,
}

/// A type: a base below `levels` pointers or array dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ty {
    pub base: Base,
    pub levels: u8,
}

impl Ty {
    pub const UNKNOWN: Ty = Ty { base: Base::Unknown, levels: 0 };

    const fn of(base: Base) -> Ty {
        Ty { base, levels: 0 }
    }

    pub fn is(self, base: Base) -> bool {
        self.base == base && self.levels == 0
    }

    /// A `float` or `double` value.
    pub fn is_real(self) -> bool {
        self.is(Base::Float) || self.is(Base::Double)
    }

    pub fn is_int(self) -> bool {
        self.is(Base::Int) || self.is(Base::Bool)
    }

    pub fn is_pointer(self) -> bool {
        self.levels > 0
    }

    fn below(self) -> Ty {
        match self.levels {
            0 => Ty::UNKNOWN,
            n => Ty { base: self.base, levels: n - 1 },
        }
    }

    fn above(self) -> Ty {
        Ty { base: self.base, levels: self.levels.saturating_add(1) }
    }
}

/// A declared name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol {
    pub ty: Ty,
    /// Declared `__shared__`.
    pub shared: bool,
    /// A parameter of the function.
    pub parameter: bool,
    /// An integer of 64 bits, itself and not behind a pointer.
    pub wide: bool,
    /// Stands for the spelling of the declared type: equal where type words and `const` are.
    pub spelling: u64,
}

/// Names of a function (or of the file) with their types.
#[derive(Debug, Default, Clone)]
pub(crate) struct Symbols {
    map: HashMap<String, Symbol>,
    /// Names in order of declaration.
    order: Vec<String>,
}

impl Symbols {
    pub fn get(&self, name: &str) -> Option<Symbol> {
        self.map.get(name).copied()
    }

    /// Parameters in order of declaration.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Symbol)> {
        self.order.iter().filter_map(|name| {
            self.map.get(name).filter(|symbol| symbol.parameter).map(|symbol| (name.as_str(), *symbol))
        })
    }

    pub fn declare(&mut self, name: &str, symbol: Symbol) {
        if let Some(old) = self.map.get_mut(name) {
            // Two scopes use one name for different things: better not to know.
            if old.ty != symbol.ty {
                old.ty = Ty::UNKNOWN;
            }
            old.shared &= symbol.shared;
            old.wide &= symbol.wide;
        } else {
            self.map.insert(name.to_owned(), symbol);
            self.order.push(name.to_owned());
        }
    }
}

/// The file's and the function's names together.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub source: &'a str,
    pub file: &'a Symbols,
    pub local: Option<&'a Symbols>,
}

impl Names<'_> {
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.local.and_then(|local| local.get(name)).or_else(|| self.file.get(name))
    }
}

/// Base named by a type's spelling.
fn base_named(name: &str) -> Base {
    match name {
        "float" => Base::Float,
        "double" => Base::Double,
        "bool" => Base::Bool,
        "void" => Base::Void,
        "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" => Base::Half,
        "dim3" => Base::Dim3,
        "float2" | "float3" | "float4" => Base::FloatVector,
        "int2" | "int3" | "int4" | "uint2" | "uint3" | "uint4" => Base::IntVector,
        "int" | "char" | "short" | "long" | "unsigned" | "signed" | "size_t" | "ssize_t" | "ptrdiff_t"
        | "uint" => Base::Int,
        _ if name.ends_with("_t") && (name.starts_with("int") || name.starts_with("uint")) => Base::Int,
        _ => Base::Unknown,
    }
}

/// Type written by a specifier node (`primitive_type`, `type_identifier`, ...) or a
/// `type_descriptor` with its abstract declarator.
pub(crate) fn written_type(node: Node<'_>, source: &str) -> Ty {
    match node.kind() {
        "primitive_type" | "type_identifier" => Ty::of(base_named(text(node, source))),
        "sized_type_specifier" => {
            Ty::of(if text(node, source).contains("double") { Base::Double } else { Base::Int })
        }
        "type_descriptor" => {
            let Some(inner) = node.child_by_field_name("type") else { return Ty::UNKNOWN };
            let mut ty = written_type(inner, source);
            let mut at = node.child_by_field_name("declarator");
            while let Some(declarator) = at {
                if declarator.kind() == "abstract_pointer_declarator" {
                    ty = ty.above();
                }
                at = declarator.child_by_field_name("declarator");
            }
            ty
        }
        _ => Ty::UNKNOWN,
    }
}

/// The name below a declarator and the levels that it adds.
pub(crate) fn declared_name<'a>(declarator: Node<'a>) -> Option<(Node<'a>, u8)> {
    let (mut at, mut levels) = (declarator, 0u8);
    loop {
        match at.kind() {
            "identifier"
            | "field_identifier"
            | "operator_name"
            | "qualified_identifier"
            | "destructor_name" => {
                return Some((at, levels));
            }
            "pointer_declarator" | "array_declarator" => levels = levels.saturating_add(1),
            "init_declarator"
            | "reference_declarator"
            | "attributed_declarator"
            | "function_declarator"
            | "parenthesized_declarator" => {}
            _ => return None,
        }
        at = match at.child_by_field_name("declarator") {
            Some(inner) => inner,
            // Reference and parenthesised declarators hold their inner one without a field.
            None => named_children(at).into_iter().find(|n| n.kind() != "type_qualifier")?,
        };
    }
}

/// Adds the names of one `declaration` or `parameter_declaration` to `into`.
pub(crate) fn declare(node: Node<'_>, source: &str, file: &Symbols, into: &mut Symbols, parameter: bool) {
    let Some(specifier) = node.child_by_field_name("type") else { return };
    let written = written_type(specifier, source);
    let shared = named_children(node).iter().any(|n| text(*n, source) == "__shared__");
    let spelling = {
        let mut hash = DefaultHasher::new();
        text(specifier, source).hash(&mut hash);
        for child in named_children(node) {
            let word = text(child, source);
            if child.kind() == "type_qualifier" && matches!(word, "const" | "volatile") {
                word.hash(&mut hash);
            }
        }
        hash.finish()
    };
    let mut cursor = node.walk();
    let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    for declarator in declarators {
        let Some((name, levels)) = declared_name(declarator) else { continue };
        let mut ty = Ty { base: written.base, levels: written.levels.saturating_add(levels) };
        let mut wide = is_wide_type(specifier, source) && levels == 0;
        if specifier.kind() == "placeholder_type_specifier"
            && let Some(value) = declarator.child_by_field_name("value")
        {
            let names = Names { source, file, local: Some(into) };
            ty = infer(value, &names, 0);
            wide = is_wide(value, &names, 0);
        }
        into.declare(text(name, source), Symbol { ty, shared, parameter, wide, spelling });
    }
}

/// Whether a written type is an integer of 64 bits. `long` is one wherever CUDA and NVRTC run on Linux.
pub(crate) fn is_wide_type(node: Node<'_>, source: &str) -> bool {
    match node.kind() {
        "type_descriptor" => {
            node.child_by_field_name("declarator").is_none()
                && node.child_by_field_name("type").is_some_and(|ty| is_wide_type(ty, source))
        }
        "sized_type_specifier" => {
            let words = text(node, source);
            words.contains("long") && !words.contains("double")
        }
        "primitive_type" | "type_identifier" | "qualified_identifier" => {
            let name = text(node, source);
            matches!(
                name.strip_prefix("std::").unwrap_or(name),
                "size_t" | "ssize_t" | "ptrdiff_t" | "int64_t" | "uint64_t"
            )
        }
        _ => false,
    }
}

const DEEPEST: u32 = 48;

/// Whether an expression is an integer of 64 bits, as far as names, casts and literals tell.
pub(crate) fn is_wide(node: Node<'_>, names: &Names<'_>, depth: u32) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let source = names.source;
    let of = |inner: Option<Node<'_>>| inner.is_some_and(|n| is_wide(n, names, depth + 1));
    let field = |name| node.child_by_field_name(name);
    match node.kind() {
        "number_literal" => {
            let literal = text(node, source).to_ascii_lowercase();
            int_literal(&literal).is_some_and(|v| v > u64::from(u32::MAX)) || literal.ends_with('l')
        }
        "sizeof_expression" => true,
        "identifier" => names.symbol(text(node, source)).is_some_and(|symbol| symbol.wide),
        "parenthesized_expression" => of(named_children(node).into_iter().next()),
        "unary_expression" => field("operator").is_some_and(|op| op.kind() != "!") && of(field("argument")),
        "assignment_expression" => of(field("left")),
        "conditional_expression" => of(field("consequence")) || of(field("alternative")),
        "cast_expression" => field("type").is_some_and(|ty| is_wide_type(ty, source)),
        "binary_expression" => match field("operator").map_or("", |op| op.kind()) {
            "<<" | ">>" => of(field("left")),
            "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" => {
                let joined = infer(node, names, depth + 1);
                joined.is_int() && (of(field("left")) || of(field("right")))
            }
            _ => false,
        },
        "call_expression" => match call(node, source) {
            Some(call) => match call.name.rsplit("::").next().unwrap_or(call.name) {
                "static_cast" => call.template_args.first().is_some_and(|ty| is_wide_type(*ty, source)),
                "max" | "min" => call.args.iter().any(|arg| is_wide(*arg, names, depth + 1)),
                _ => false,
            },
            None => field("function").is_some_and(|ty| is_wide_type(ty, source)),
        },
        _ => false,
    }
}

/// Type of an expression, as far as names and literals tell.
pub(crate) fn infer(node: Node<'_>, names: &Names<'_>, depth: u32) -> Ty {
    if depth > DEEPEST {
        return Ty::UNKNOWN;
    }
    let source = names.source;
    let field = |name| node.child_by_field_name(name);
    let of = |inner: Option<Node<'_>>| inner.map_or(Ty::UNKNOWN, |n| infer(n, names, depth + 1));
    match node.kind() {
        "number_literal" => {
            let literal = text(node, source).trim_start_matches('-');
            if int_literal(literal).is_some() {
                Ty::of(Base::Int)
            } else if float_literal(literal).is_some() {
                Ty::of(if literal.ends_with(['f', 'F']) { Base::Float } else { Base::Double })
            } else {
                Ty::UNKNOWN
            }
        }
        "true" | "false" => Ty::of(Base::Bool),
        "char_literal" | "sizeof_expression" => Ty::of(Base::Int),
        "identifier" => match text(node, source) {
            "INFINITY" | "FLT_MAX" | "FLT_MIN" | "FLT_EPSILON" | "NAN" | "CUDART_INF_F" => {
                Ty::of(Base::Float)
            }
            "DBL_MAX" | "DBL_MIN" => Ty::of(Base::Double),
            "warpSize" | "INT_MAX" | "INT_MIN" => Ty::of(Base::Int),
            name => names.symbol(name).map_or(Ty::UNKNOWN, |symbol| symbol.ty),
        },
        "field_expression" => {
            let Some(argument) = field("argument") else { return Ty::UNKNOWN };
            if matches!(text(argument, source), "threadIdx" | "blockIdx" | "blockDim" | "gridDim") {
                return Ty::of(Base::Int);
            }
            match infer(argument, names, depth + 1).base {
                Base::FloatVector => Ty::of(Base::Float),
                Base::IntVector | Base::Dim3 => Ty::of(Base::Int),
                _ => Ty::UNKNOWN,
            }
        }
        "subscript_expression" => of(field("argument")).below(),
        "pointer_expression" => {
            let inner = of(field("argument"));
            if field("operator").is_some_and(|op| op.kind() == "*") { inner.below() } else { inner.above() }
        }
        "parenthesized_expression" => of(named_children(node).into_iter().next()),
        "unary_expression" => {
            if field("operator").is_some_and(|op| op.kind() == "!") {
                Ty::of(Base::Bool)
            } else {
                of(field("argument"))
            }
        }
        "update_expression" => of(field("argument")),
        "assignment_expression" => of(field("left")),
        "cast_expression" => field("type").map_or(Ty::UNKNOWN, |n| written_type(n, source)),
        "conditional_expression" => join(of(field("consequence")), of(field("alternative"))),
        "binary_expression" => {
            let op = field("operator").map_or("", |op| op.kind());
            match op {
                "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||" => Ty::of(Base::Bool),
                _ => {
                    let (left, right) = (of(field("left")), of(field("right")));
                    if op == "-" && left.is_pointer() && right.is_pointer() {
                        Ty::of(Base::Int)
                    } else {
                        join(left, right)
                    }
                }
            }
        }
        "call_expression" => call_type(node, names, depth),
        _ => Ty::UNKNOWN,
    }
}

fn join(left: Ty, right: Ty) -> Ty {
    if left.is_pointer() {
        return left;
    }
    if right.is_pointer() {
        return right;
    }
    for base in [Base::Double, Base::Float, Base::Half] {
        if left.base == base || right.base == base {
            return Ty::of(base);
        }
    }
    if left == right {
        left
    } else if left.is_int() && right.is_int() {
        Ty::of(Base::Int)
    } else {
        Ty::UNKNOWN
    }
}

fn call_type(node: Node<'_>, names: &Names<'_>, depth: u32) -> Ty {
    let source = names.source;
    let Some(call) = call(node, source) else {
        // `float(x)` has a type for a function.
        return node.child_by_field_name("function").map_or(Ty::UNKNOWN, |n| written_type(n, source));
    };
    let arg = |i: usize| call.args.get(i).map_or(Ty::UNKNOWN, |n| infer(*n, names, depth + 1));
    let name = call.name.rsplit("::").next().unwrap_or(call.name);
    match name {
        "static_cast" | "reinterpret_cast" | "const_cast" => {
            call.template_args.first().map_or(Ty::UNKNOWN, |n| written_type(*n, source))
        }
        "max" | "min" => join(arg(0), arg(1)),
        "abs" | "exp" | "log" | "sqrt" | "rsqrt" | "tanh" | "erf" | "sin" | "cos" | "pow" | "fmax"
        | "fmin" | "floor" | "ceil" | "fabs" => arg(0),
        "__ldg" => arg(0).below(),
        "dim3" => Ty::of(Base::Dim3),
        "__half2float" | "__uint_as_float" | "__int_as_float" | "__bfloat162float" | "__int2float_rn" => {
            Ty::of(Base::Float)
        }
        "__float2half" | "__float2bfloat16" => Ty::of(Base::Half),
        "__popc" | "__ffs" | "__clz" | "__ballot_sync" | "__any_sync" | "__all_sync" | "__activemask"
        | "__float_as_uint" | "__float_as_int" => Ty::of(Base::Int),
        "make_float2" | "make_float3" | "make_float4" => Ty::of(Base::FloatVector),
        _ if name.starts_with("__shfl") => arg(1),
        _ if name.starts_with("atomic") => arg(0).below(),
        _ => {
            if let Some(symbol) = names.symbol(name) {
                return symbol.ty;
            }
            if is_float_function(name) { Ty::of(Base::Float) } else { Ty::UNKNOWN }
        }
    }
}

/// Single-precision functions of CUDA's math library, by their spelling.
fn is_float_function(name: &str) -> bool {
    const STEMS: &[&str] = &[
        "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin",
        "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "erf", "erfc", "pow", "fmax",
        "fmin", "fabs", "fma", "floor", "ceil", "round", "rint", "trunc", "fmod", "copysign", "fdivide",
        "hypot", "normcdf", "lgamma",
    ];
    let name = name.strip_prefix("__").unwrap_or(name);
    name.strip_suffix('f').is_some_and(|stem| STEMS.contains(&stem))
        || name == "saturatef"
        || ["fadd_", "fmul_", "fsub_", "fdiv_", "fsqrt_", "frcp_", "fmaf_"]
            .iter()
            .any(|p| name.starts_with(p))
}
