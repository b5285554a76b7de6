//! Conditions over the sizes and layouts of a product: one small language for emulated devices, learned rules and rule
//! files.
//!
//! A condition is terms joined by `and`: a size against a count (`out.numel > 2^32`, `view.storage >= 2^31`,
//! `any.bytes > 2^32`), a flag (`transposed`, `not sliced`), `dtype = f32`, `version in 2.4.1 2.5.1`, or `always`. Counts
//! are written `2^31`, `3*2^30`, `2^31+1` or in digits.

use std::fmt;
use std::str::FromStr;

use assay_tensor::DType;

use crate::error::SweepError;
use crate::geometry::{Product, View};

/// A size that a condition may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Elements of the output.
    Out,
    /// Elements of the larger operand that is contiguous.
    Contiguous,
    /// Elements of the larger operand that is a view (transposed, or behind leading batches).
    View,
    /// Elements of the storage behind the larger operand that is a view.
    ViewStorage,
    /// Elements of the larger operand that is transposed.
    Transposed,
    /// Elements of the larger operand behind leading batches.
    Sliced,
    /// Elements of the larger operand.
    Operand,
    /// Elements of the largest tensor.
    Any,
    /// Elements of the left operand.
    A,
    /// Elements of the right operand.
    B,
    /// Elements before the view in its storage.
    Offset,
    /// Bytes of the output.
    OutBytes,
    /// Bytes of the larger operand.
    OperandBytes,
    /// Bytes of the largest tensor.
    AnyBytes,
}

impl Size {
    /// Every size, those that say most of the mechanism first: of two that fit alike a learner prefers the first.
    pub const ALL: [Size; 14] = [
        Size::Out,
        Size::View,
        Size::Contiguous,
        Size::Operand,
        Size::Transposed,
        Size::Sliced,
        Size::ViewStorage,
        Size::Any,
        Size::A,
        Size::B,
        Size::Offset,
        Size::OutBytes,
        Size::OperandBytes,
        Size::AnyBytes,
    ];

    /// As written in a condition.
    pub fn name(self) -> &'static str {
        match self {
            Size::Out => "out.numel",
            Size::Contiguous => "contiguous.numel",
            Size::View => "view.numel",
            Size::ViewStorage => "view.storage",
            Size::Transposed => "transposed.numel",
            Size::Sliced => "sliced.numel",
            Size::Operand => "operand.numel",
            Size::Any => "any.numel",
            Size::A => "a.numel",
            Size::B => "b.numel",
            Size::Offset => "offset",
            Size::OutBytes => "out.bytes",
            Size::OperandBytes => "operand.bytes",
            Size::AnyBytes => "any.bytes",
        }
    }

    /// As a reader would say it.
    fn words(self) -> &'static str {
        match self {
            Size::Out => "the output has",
            Size::Contiguous => "a contiguous operand has",
            Size::View => "an operand that is a view has",
            Size::ViewStorage => "the storage behind a view has",
            Size::Transposed => "a transposed operand has",
            Size::Sliced => "a sliced operand has",
            Size::Operand => "an operand has",
            Size::Any => "a tensor has",
            Size::A => "the left operand has",
            Size::B => "the right operand has",
            Size::Offset => "the storage offset is",
            Size::OutBytes => "the output has",
            Size::OperandBytes => "an operand has",
            Size::AnyBytes => "a tensor has",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Size::OutBytes | Size::OperandBytes | Size::AnyBytes => "bytes",
            _ => "elements",
        }
    }
}

/// How an operand is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flag {
    /// An operand is transposed.
    Transposed,
    /// An operand lies behind leading batches.
    Sliced,
    /// An operand is either.
    View,
    /// The left operand is transposed.
    ATransposed,
    /// The right operand is transposed.
    BTransposed,
}

impl Flag {
    /// Every flag, in the order of preference of a learner.
    pub const ALL: [Flag; 5] =
        [Flag::Transposed, Flag::Sliced, Flag::View, Flag::ATransposed, Flag::BTransposed];

    /// As written in a condition.
    pub fn name(self) -> &'static str {
        match self {
            Flag::Transposed => "transposed",
            Flag::Sliced => "sliced",
            Flag::View => "view",
            Flag::ATransposed => "a.transposed",
            Flag::BTransposed => "b.transposed",
        }
    }

    fn words(self, negated: bool) -> &'static str {
        match (self, negated) {
            (Flag::Transposed, false) => "an operand is transposed",
            (Flag::Transposed, true) => "no operand is transposed",
            (Flag::Sliced, false) => "an operand is sliced",
            (Flag::Sliced, true) => "no operand is sliced",
            (Flag::View, false) => "an operand is a view",
            (Flag::View, true) => "no operand is a view",
            (Flag::ATransposed, false) => "the left operand is transposed",
            (Flag::ATransposed, true) => "the left operand is not transposed",
            (Flag::BTransposed, false) => "the right operand is transposed",
            (Flag::BTransposed, true) => "the right operand is not transposed",
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are the signs")]
pub enum Cmp {
    Gt,
    Ge,
    Lt,
    Le,
    Eq,
}

impl Cmp {
    fn sign(self) -> &'static str {
        match self {
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Eq => "=",
        }
    }

    fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Eq => a == b,
        }
    }
}

/// One term of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A size against a count.
    Size(Size, Cmp, u64),
    /// A flag, or its negation.
    Flag(Flag, bool),
    /// The element type.
    DType(DType),
    /// One of these versions of the backend.
    Version(Vec<String>),
}

/// Terms that must all hold; none at all always holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condition(pub Vec<Term>);

/// What a condition is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Situation {
    /// What is read and made.
    pub product: Product,
    /// The element type of all three tensors.
    pub dtype: DType,
    /// The version of the backend, empty where unknown.
    pub version: String,
}

impl Situation {
    /// A size, 0 where no tensor is of that kind.
    pub fn size(&self, size: Size) -> u64 {
        let p = &self.product;
        let sides = [p.left, p.right];
        let bytes = self.dtype.size_bytes();
        let largest = |pick: &dyn Fn(&View) -> bool, of: &dyn Fn(&View) -> u64| {
            sides.iter().filter(|v| pick(v)).map(of).max().unwrap_or(0)
        };
        let numel = |v: &View| v.numel();
        match size {
            Size::Out => p.numel(),
            Size::Contiguous => largest(&View::contiguous, &numel),
            Size::View => largest(&|v| !v.contiguous(), &numel),
            Size::ViewStorage => largest(&|v| !v.contiguous(), &View::storage_numel),
            Size::Transposed => largest(&|v| v.transposed, &numel),
            Size::Sliced => largest(&|v| v.skip > 0, &numel),
            Size::Operand => largest(&|_| true, &numel),
            Size::Any => largest(&|_| true, &numel).max(p.numel()),
            Size::A => p.left.numel(),
            Size::B => p.right.numel(),
            Size::Offset => largest(&|_| true, &|v| v.skip * v.per_batch()),
            Size::OutBytes => p.numel().saturating_mul(bytes),
            Size::OperandBytes => largest(&|_| true, &numel).saturating_mul(bytes),
            Size::AnyBytes => largest(&|_| true, &numel).max(p.numel()).saturating_mul(bytes),
        }
    }

    /// A flag.
    pub fn flag(&self, flag: Flag) -> bool {
        let (l, r) = (&self.product.left, &self.product.right);
        match flag {
            Flag::Transposed => l.transposed || r.transposed,
            Flag::Sliced => l.skip > 0 || r.skip > 0,
            Flag::View => !l.contiguous() || !r.contiguous(),
            Flag::ATransposed => l.transposed,
            Flag::BTransposed => r.transposed,
        }
    }
}

impl Term {
    /// Whether it holds.
    pub fn holds(&self, s: &Situation) -> bool {
        match self {
            Term::Size(size, cmp, at) => cmp.holds(s.size(*size), *at),
            Term::Flag(flag, negated) => s.flag(*flag) != *negated,
            Term::DType(d) => s.dtype == *d,
            Term::Version(v) => v.contains(&s.version),
        }
    }

    /// As a reader would say it.
    pub fn words(&self) -> String {
        match self {
            Term::Size(size, cmp, at) => {
                let sign = match cmp {
                    Cmp::Gt => "more than ",
                    Cmp::Ge => "at least ",
                    Cmp::Lt => "less than ",
                    Cmp::Le => "at most ",
                    Cmp::Eq => "exactly ",
                };
                format!("{} {sign}{} {}", size.words(), count(*at), size.unit())
            }
            Term::Flag(flag, negated) => flag.words(*negated).to_owned(),
            Term::DType(d) => format!("the dtype is {d}"),
            Term::Version(v) => format!("the version is {}", v.join(" or ")),
        }
    }
}

impl Condition {
    /// Whether every term holds.
    pub fn holds(&self, s: &Situation) -> bool {
        self.0.iter().all(|t| t.holds(s))
    }

    /// As a reader would say it.
    pub fn words(&self) -> String {
        if self.0.is_empty() {
            return "otherwise".to_owned();
        }
        self.0.iter().map(Term::words).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Size(size, cmp, at) => write!(f, "{} {} {}", size.name(), cmp.sign(), count(*at)),
            Term::Flag(flag, negated) => write!(f, "{}{}", if *negated { "not " } else { "" }, flag.name()),
            Term::DType(d) => write!(f, "dtype = {d}"),
            Term::Version(v) => write!(f, "version in {}", v.join(" ")),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("always");
        }
        for (i, t) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" and ")?;
            }
            write!(f, "{t}")?;
        }
        Ok(())
    }
}

impl FromStr for Condition {
    type Err = SweepError;

    fn from_str(s: &str) -> Result<Condition, SweepError> {
        let s = s.trim();
        if matches!(s, "always" | "otherwise") {
            return Ok(Condition::default());
        }
        s.split(" and ").map(|t| term(t.trim())).collect::<Result<Vec<_>, _>>().map(Condition)
    }
}

fn term(text: &str) -> Result<Term, SweepError> {
    let bad = |why: &str| SweepError::bad(format!("`{text}` is not a condition: {why}"));
    if let Some(rest) = text.strip_prefix("version in ") {
        return Ok(Term::Version(rest.split_whitespace().map(str::to_owned).collect()));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["dtype", "=", d] => Ok(Term::DType(dtype(d).ok_or_else(|| bad("no such dtype"))?)),
        [size, sign, rest @ ..] if !rest.is_empty() => {
            let size = Size::ALL
                .into_iter()
                .find(|s| s.name() == *size)
                .ok_or_else(|| bad(&format!("sizes are {}", Size::ALL.map(Size::name).join(", "))))?;
            let cmp = [Cmp::Gt, Cmp::Ge, Cmp::Lt, Cmp::Le, Cmp::Eq]
                .into_iter()
                .find(|c| c.sign() == *sign)
                .ok_or_else(|| bad("comparisons are >, >=, <, <=, ="))?;
            let at = parse_count(&rest.concat())
                .ok_or_else(|| bad("a count is written 2^31, 2^31+1 or in digits"))?;
            Ok(Term::Size(size, cmp, at))
        }
        [.., flag] if words.len() <= 2 => {
            let negated = words.len() == 2;
            if negated && words[0] != "not" {
                return Err(bad("write `not` before a flag, or a comparison"));
            }
            let flag = Flag::ALL
                .into_iter()
                .find(|f| f.name() == *flag)
                .ok_or_else(|| bad(&format!("flags are {}", Flag::ALL.map(Flag::name).join(", "))))?;
            Ok(Term::Flag(flag, negated))
        }
        _ => Err(bad("it is empty")),
    }
}

/// A dtype by our name or by the boundary paper's (`fp32`).
pub fn dtype(name: &str) -> Option<DType> {
    match name {
        "fp32" | "float32" => Some(DType::F32),
        "fp16" | "float16" => Some(DType::F16),
        "fp64" | "float64" => Some(DType::F64),
        "bfloat16" => Some(DType::BF16),
        other => other.parse().ok(),
    }
}

/// A count as a person writes it: `2^32`, `2^31+1`, `3*2^30`, else digits.
pub fn count(n: u64) -> String {
    for d in [0i64, 1, -1] {
        let base = n.wrapping_sub(d as u64);
        if base.is_power_of_two() && base >= 1 << 10 {
            let sign = match d {
                0 => "",
                1 => "+1",
                _ => "-1",
            };
            return format!("2^{}{sign}", base.trailing_zeros());
        }
    }
    let zeros = n.trailing_zeros();
    if n > 0 && zeros >= 10 && (n >> zeros) < 100 {
        return format!("{}*2^{zeros}", n >> zeros);
    }
    n.to_string()
}

/// The count that [`count`] writes so; `None` where the text is no count or does not fit.
pub fn parse_count(text: &str) -> Option<u64> {
    let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    for (at, sign) in [(text.rfind('+'), 1i64), (text.rfind('-'), -1)] {
        if let Some(at) = at {
            let base = parse_count(&text[..at])?;
            let rest = parse_count(&text[at + 1..])?;
            return if sign > 0 { base.checked_add(rest) } else { base.checked_sub(rest) };
        }
    }
    if let Some((l, r)) = text.split_once('*') {
        return parse_count(l)?.checked_mul(parse_count(r)?);
    }
    if let Some((base, exponent)) = text.split_once('^') {
        return base.parse::<u64>().ok()?.checked_pow(exponent.parse().ok()?);
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, Layout, Shape};

    fn situation(shape: Shape, layout: Layout, batch: u64) -> Situation {
        let product = Geometry::new(shape, layout, batch, 0).products(false)[0];
        Situation { product, dtype: DType::F32, version: "2.14.0".into() }
    }

    #[test]
    fn conditions_are_printed_as_they_are_read() {
        for text in [
            "out.numel > 2^32 and transposed",
            "view.numel >= 2^31",
            "not sliced and any.bytes <= 3*2^30 and dtype = f16",
            "version in 2.4.1 2.5.1 and offset = 65545",
            "always",
            "view.storage = 2^31+1",
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().to_string(), text);
        }
        for text in
            ["", "out.numel", "out.numel >> 4", "nothing > 4", "out.numel > x", "not", "sliced transposed"]
        {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }

    #[test]
    fn counts_survive_writing_and_reading() {
        for n in [0, 1, 1023, 1024, 1025, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 3 << 30, 12_345, u64::MAX] {
            assert_eq!(parse_count(&count(n)), Some(n), "{}", count(n));
        }
        assert_eq!(parse_count("2*2^32+1"), Some((1 << 33) + 1));
        assert_eq!(parse_count("2^64"), None);
        assert_eq!(parse_count("1-2"), None);
    }

    #[test]
    fn sizes_are_those_of_the_paper() {
        let base = Shape { m: 256, k: 64, n: 256 };
        let s = situation(base, Layout::BT, 65_537);
        assert_eq!(s.size(Size::Out), (1 << 32) + 65_536);
        assert_eq!((s.size(Size::View), s.size(Size::Contiguous)), (65_537 << 14, 65_537 << 14));
        let s = situation(base, Layout::Slice, 10);
        assert_eq!(
            (s.size(Size::Sliced), s.size(Size::ViewStorage), s.size(Size::Contiguous)),
            (10 << 14, 11 << 14, 0)
        );
    }
}
