//! The words of host code that every interpreter of it knows: operators, mathematical functions, constants, literals.

use crate::ast::{Builtin, Op};
use crate::types::{Scalar, Value};

/// Binary operators with their precedence, loosest first ([expr.compound]).
pub const BINARY: [(&str, Op, u8); 18] = [
    ("||", Op::LogicalOr, 1),
    ("&&", Op::LogicalAnd, 2),
    ("|", Op::Or, 3),
    ("^", Op::Xor, 4),
    ("&", Op::And, 5),
    ("==", Op::Eq, 6),
    ("!=", Op::Ne, 6),
    ("<", Op::Lt, 7),
    (">", Op::Gt, 7),
    ("<=", Op::Le, 7),
    (">=", Op::Ge, 7),
    ("<<", Op::Shl, 8),
    (">>", Op::Shr, 8),
    ("+", Op::Add, 9),
    ("-", Op::Sub, 9),
    ("*", Op::Mul, 10),
    ("/", Op::Div, 10),
    ("%", Op::Rem, 10),
];

/// The level above which `>` and `>>` are no operators, so that they can close template brackets.
pub const ADDITIVE: u8 = 8;

/// Assignments that compute first ([expr.ass]).
pub const COMPOUND: [(&str, Op); 10] = [
    ("+=", Op::Add),
    ("-=", Op::Sub),
    ("*=", Op::Mul),
    ("/=", Op::Div),
    ("%=", Op::Rem),
    ("<<=", Op::Shl),
    (">>=", Op::Shr),
    ("&=", Op::And),
    ("|=", Op::Or),
    ("^=", Op::Xor),
];

/// A mathematical function of `<cmath>` or CUDA by name, and how many arguments it takes.
pub fn builtin(name: &str) -> Option<(Builtin, usize)> {
    Some(match name {
        "min" | "fmin" | "fminf" => (Builtin::Min, 2),
        "max" | "fmax" | "fmaxf" => (Builtin::Max, 2),
        "abs" | "labs" | "llabs" | "fabs" | "fabsf" => (Builtin::Abs, 1),
        "ceil" | "ceilf" => (Builtin::Ceil, 1),
        "floor" | "floorf" => (Builtin::Floor, 1),
        "sqrt" | "sqrtf" => (Builtin::Sqrt, 1),
        "rsqrt" | "rsqrtf" => (Builtin::Rsqrt, 1),
        "exp" | "expf" => (Builtin::Exp, 1),
        "log" | "logf" => (Builtin::Log, 1),
        "log2" | "log2f" => (Builtin::Log2, 1),
        "pow" | "powf" => (Builtin::Pow, 2),
        _ => return None,
    })
}

/// The type that a C library function computes in: `sqrtf` float, `fmin` double; `None` where its arguments say.
pub fn forced(name: &str) -> Option<Scalar> {
    match name {
        "fminf" | "fmaxf" | "fabsf" | "ceilf" | "floorf" | "sqrtf" | "rsqrtf" | "expf" | "logf" | "log2f"
        | "powf" => Some(Scalar::F32),
        "fmin" | "fmax" | "fabs" => Some(Scalar::F64),
        _ => None,
    }
}

/// Constants of `<climits>`, `<cfloat>` and `<cmath>`.
pub fn limit(name: &str) -> Option<Value> {
    let int = |v: i128, s| Some(Value::Int(v, s));
    match name {
        "true" => Some(Value::bool(true)),
        "false" => Some(Value::bool(false)),
        "INT_MAX" | "INT32_MAX" => int(i128::from(i32::MAX), Scalar::I32),
        "INT_MIN" | "INT32_MIN" => int(i128::from(i32::MIN), Scalar::I32),
        "UINT_MAX" | "UINT32_MAX" => int(i128::from(u32::MAX), Scalar::U32),
        "LLONG_MAX" | "INT64_MAX" | "LONG_MAX" => int(i128::from(i64::MAX), Scalar::I64),
        "LLONG_MIN" | "INT64_MIN" | "LONG_MIN" => int(i128::from(i64::MIN), Scalar::I64),
        "ULLONG_MAX" | "UINT64_MAX" | "SIZE_MAX" | "ULONG_MAX" => int(i128::from(u64::MAX), Scalar::U64),
        "FLT_MAX" => Some(Value::Float(f64::from(f32::MAX), Scalar::F32)),
        "FLT_MIN" => Some(Value::Float(f64::from(f32::MIN_POSITIVE), Scalar::F32)),
        "FLT_EPSILON" => Some(Value::Float(f64::from(f32::EPSILON), Scalar::F32)),
        "INFINITY" => Some(Value::Float(f64::INFINITY, Scalar::F32)),
        _ => None,
    }
}

/// Why a literal has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadNumber {
    /// What it is, for a message.
    pub what: String,
    /// C++ has it, we do not.
    pub legal: bool,
}

/// A numeric literal with the type that [lex.icon] and [lex.fcon] give it.
///
/// # Errors
/// What is wrong with it.
pub fn number(text: &str) -> Result<Value, BadNumber> {
    let lower: String = text.chars().filter(|c| *c != '\'').collect::<String>().to_ascii_lowercase();
    let bad = || BadNumber { what: format!("the number `{text}`"), legal: false };
    let hex = lower.starts_with("0x");
    let float = if hex { lower.contains('p') } else { lower.contains(['.', 'e']) };
    if float || (!hex && !lower.starts_with("0b") && lower.ends_with('f')) {
        if hex {
            return Err(BadNumber { what: "a hexadecimal floating-point number".into(), legal: true });
        }
        let (digits, s) = match lower.strip_suffix('f') {
            Some(d) => (d, Scalar::F32),
            None => (lower.as_str(), Scalar::F64),
        };
        let v = if s == Scalar::F32 {
            f64::from(digits.parse::<f32>().map_err(|_| bad())?)
        } else {
            digits.parse::<f64>().map_err(|_| bad())?
        };
        return Ok(Value::Float(v, s));
    }
    let digits = lower.trim_end_matches(['u', 'l', 'z']);
    let suffix = &lower[digits.len()..];
    let (radix, body) = if let Some(h) = digits.strip_prefix("0x") {
        (16, h)
    } else if let Some(b) = digits.strip_prefix("0b") {
        (2, b)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    let v = u64::from_str_radix(body, radix).map_err(|_| bad())?;
    let unsigned = suffix.contains('u');
    let long = suffix.contains(['l', 'z']);
    let fits = |s: Scalar| !s.wrap(i128::from(v)).1;
    let candidates = [
        (Scalar::I32, !unsigned && !long),
        (Scalar::U32, !long && (unsigned || radix != 10)),
        (Scalar::I64, !unsigned),
        (Scalar::U64, unsigned || radix != 10),
    ];
    let ty = candidates.into_iter().find(|(s, legal)| *legal && fits(*s)).ok_or_else(bad)?.0;
    Ok(Value::Int(i128::from(v), ty))
}
