//! Initialisers: how a problem says its inputs are made (`rand`, `uniform(-1/sqrt(K), 1/sqrt(K))`, …).

use std::collections::BTreeMap;

use assay_tensor::DType;
use assay_tensor::philox::Stream;

use crate::expr::{Expr, ExprError};

/// An initialiser; the bounds are real expressions over dims.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Uniform in [0, 1), as `torch.rand`.
    Rand,
    /// Standard normal, as `torch.randn`.
    Randn,
    /// Uniform in [lo, hi).
    Uniform(Expr, Expr),
    /// Normal with mean and standard deviation.
    Normal(Expr, Expr),
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// All this value.
    Full(Expr),
    /// Integers in lo..hi, hi excluded, as `torch.randint`.
    Randint(Expr, Expr),
    /// 1 with this probability, else 0.
    Bernoulli(Expr),
    /// -1 or 1, each as likely, as `randint(0, 2) * 2 - 1`.
    Sign,
    /// What is within, times one number per tensor and seed, uniform in [0, 1).
    Factor(Box<Init>),
    /// The softmax along the last dim of what is within.
    Softmax(Box<Init>),
}

/// The names, for messages.
const NAMES: &str = "rand randn uniform(lo,hi) normal(mean,std) zeros ones full(v) randint(lo,hi) bernoulli(p) sign \
                     factor(INIT) softmax(INIT)";

impl Init {
    /// Reads an initialiser.
    ///
    /// # Errors
    /// `ExprError` with the byte offset of what is wrong.
    pub fn parse(text: &str) -> Result<Init, ExprError> {
        let lead = text.len() - text.trim_start().len();
        let body = text.trim();
        let open = body.find('(');
        let name = body[..open.unwrap_or(body.len())].trim_end();
        let mut args = Vec::new();
        if let Some(open) = open {
            if !body.ends_with(')') {
                return Err(ExprError { at: lead + body.len(), what: "`)` was expected".to_owned() });
            }
            if matches!(name, "factor" | "softmax") {
                return Self::around(name, &body[open + 1..body.len() - 1])
                    .map_err(|e| ExprError { at: lead + open + 1 + e.at, what: e.what });
            }
            for (at, part) in arguments(&body[open + 1..body.len() - 1]) {
                let start = lead + open + 1 + at;
                args.push(Expr::real(part).map_err(|e| ExprError { at: start + e.at, what: e.what })?);
            }
        }
        let count = args.len();
        let mut args = args.into_iter();
        Ok(match (name, args.next(), args.next(), count) {
            ("rand", None, None, 0) => Init::Rand,
            ("randn", None, None, 0) => Init::Randn,
            ("zeros", None, None, 0) => Init::Zeros,
            ("ones", None, None, 0) => Init::Ones,
            ("sign", None, None, 0) => Init::Sign,
            ("uniform", Some(a), Some(b), 2) => Init::Uniform(a, b),
            ("normal", Some(a), Some(b), 2) => Init::Normal(a, b),
            ("randint", Some(a), Some(b), 2) => Init::Randint(a, b),
            ("full", Some(a), None, 1) => Init::Full(a),
            ("bernoulli", Some(a), None, 1) => Init::Bernoulli(a),
            (
                "rand" | "randn" | "zeros" | "ones" | "uniform" | "normal" | "randint" | "full" | "bernoulli"
                | "sign" | "factor" | "softmax",
                ..,
            ) => {
                let what = format!("`{name}` does not take {count} arguments (initialisers: {NAMES})");
                return Err(ExprError { at: lead, what });
            }
            _ => {
                return Err(ExprError {
                    at: lead,
                    what: format!("unknown initialiser `{name}` (known: {NAMES})"),
                });
            }
        })
    }

    /// An initialiser around another: a softmax around a factor, around what draws the elements.
    fn around(name: &str, inside: &str) -> Result<Init, ExprError> {
        let inner = Init::parse(inside)?;
        if matches!((name, &inner), (_, Init::Softmax(_)) | ("factor", Init::Factor(_))) {
            return Err(ExprError { at: 0, what: format!("`{}` has no place in `{name}`", inside.trim()) });
        }
        let inner = Box::new(inner);
        Ok(if name == "factor" { Init::Factor(inner) } else { Init::Softmax(inner) })
    }

    /// Whether every element is drawn alone: no factor or softmax around them.
    pub fn is_plain(&self) -> bool {
        !matches!(self, Init::Factor(_) | Init::Softmax(_))
    }

    /// The expressions in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Init::Rand | Init::Randn | Init::Zeros | Init::Ones | Init::Sign => Vec::new(),
            Init::Factor(inner) | Init::Softmax(inner) => inner.expressions(),
            Init::Uniform(a, b) | Init::Normal(a, b) | Init::Randint(a, b) => vec![a, b],
            Init::Full(a) | Init::Bernoulli(a) => vec![a],
        }
    }

    /// Whether it can fill a tensor of that dtype without losing what it says.
    pub fn suits(&self, dtype: DType) -> bool {
        match self {
            Init::Rand
            | Init::Randn
            | Init::Uniform(..)
            | Init::Normal(..)
            | Init::Factor(_)
            | Init::Softmax(_) => dtype.is_float(),
            Init::Sign => {
                dtype.is_float() || matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
            }
            Init::Zeros | Init::Ones | Init::Full(_) | Init::Randint(..) | Init::Bernoulli(_) => true,
        }
    }

    /// The initialiser with its bounds evaluated.
    ///
    /// # Errors
    /// A message naming what has no value.
    pub fn at(&self, dims: &BTreeMap<String, u64>) -> Result<Made, String> {
        match self {
            Init::Factor(inner) => Ok(Made { factor: true, ..inner.at(dims)? }),
            Init::Softmax(inner) => Ok(Made { softmax: true, ..inner.at(dims)? }),
            plain => Ok(Made { values: plain.values(dims)?, factor: false, softmax: false }),
        }
    }

    /// How single elements are drawn.
    fn values(&self, dims: &BTreeMap<String, u64>) -> Result<Values, String> {
        let v = |e: &Expr| e.real_value(dims).map_err(|why| format!("`{e}`: {why}"));
        Ok(match self {
            Init::Factor(inner) | Init::Softmax(inner) => inner.values(dims)?,
            Init::Sign => Values::Sign,
            Init::Rand => Values::Uniform(0.0, 1.0),
            Init::Randn => Values::Normal(0.0, 1.0),
            Init::Uniform(a, b) => Values::Uniform(v(a)?, v(b)?),
            Init::Normal(a, b) => Values::Normal(v(a)?, v(b)?),
            Init::Zeros => Values::Full(0.0),
            Init::Ones => Values::Full(1.0),
            Init::Full(a) => Values::Full(v(a)?),
            Init::Bernoulli(a) => Values::Bernoulli(v(a)?),
            Init::Randint(a, b) => {
                let (lo, hi) = (v(a)?, v(b)?);
                // Beyond 2^53 a bound would not be the integer that was written.
                if lo.abs() > 9e15 || hi.abs() > 9e15 || lo >= hi {
                    return Err(format!("`randint({lo},{hi})` has no integer to draw"));
                }
                Values::Randint(lo as i64, (hi - lo) as u64)
            }
        })
    }
}

/// The arguments of a list without its parentheses, at their byte offsets.
fn arguments(inside: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    for (i, b) in inside.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                out.push((start, &inside[start..i]));
                start = i + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() || !out.is_empty() {
        out.push((start, &inside[start..]));
    }
    out
}

/// An initialiser whose bounds are numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// How single elements are drawn.
    pub values: Values,
    /// Whether all of a tensor's elements are multiplied by one number of its own, uniform in [0, 1).
    pub factor: bool,
    /// Whether the rows along the last dim then go through a softmax.
    pub softmax: bool,
}

impl Made {
    /// The one number that multiplies the elements, a function of the stream alone.
    pub fn factor_of(self, s: &Stream) -> f64 {
        // No tensor has an element of this index.
        if self.factor { f64::from(s.uniform_at(u64::MAX)) } else { 1.0 }
    }
}

/// How single elements are drawn, in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// lo and hi.
    Uniform(f64, f64),
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// One value.
    Full(f64),
    /// The lowest integer and how many there are.
    Randint(i64, u64),
    /// The probability of 1.
    Bernoulli(f64),
    /// -1 or 1.
    Sign,
}

impl Values {
    /// Element `i`, a function of the stream and the index alone.
    pub fn at(self, s: &Stream, i: u64) -> f64 {
        match self {
            Values::Uniform(lo, hi) => lo + (hi - lo) * f64::from(s.uniform_at(i)),
            Values::Normal(mean, std) => mean + std * s.normal_at(i),
            Values::Full(v) => v,
            Values::Randint(lo, n) => lo as f64 + s.below_at(i, n) as f64,
            Values::Sign => 2.0 * s.below_at(i, 2) as f64 - 1.0,
            Values::Bernoulli(p) => f64::from(u8::from(f64::from(s.uniform_at(i)) < p)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialisers_parse_and_evaluate_over_dims() {
        let dims = BTreeMap::from([("C".to_owned(), 4), ("K".to_owned(), 2)]);
        for (text, want) in [
            ("rand", Values::Uniform(0.0, 1.0)),
            ("randn", Values::Normal(0.0, 1.0)),
            ("uniform(-1/sqrt(C*K*K), 1/sqrt(C*K*K))", Values::Uniform(-0.25, 0.25)),
            (" normal(0, max(0.5, 0.1)) ", Values::Normal(0.0, 0.5)),
            ("full(-2.5)", Values::Full(-2.5)),
            ("randint(-3, C)", Values::Randint(-3, 7)),
            ("bernoulli(0.5)", Values::Bernoulli(0.5)),
            ("sign", Values::Sign),
        ] {
            let made = Made { values: want, factor: false, softmax: false };
            assert_eq!(Init::parse(text).unwrap().at(&dims), Ok(made), "{text}");
        }
        for (text, factor, softmax) in [
            ("factor( rand )", true, false),
            ("softmax(rand)", false, true),
            ("softmax(factor(rand))", true, true),
        ] {
            let made = Made { values: Values::Uniform(0.0, 1.0), factor, softmax };
            assert_eq!(Init::parse(text).unwrap().at(&dims), Ok(made), "{text}");
        }
        assert!(Init::parse("randint(3, 3)").unwrap().at(&dims).is_err());
        assert!(Init::parse("uniform(0, 1/(C-4))").unwrap().at(&dims).is_err());
    }

    #[test]
    fn what_is_no_initialiser_says_where() {
        for (text, at, what) in [
            ("rnd", 0, "unknown initialiser `rnd`"),
            ("uniform(1)", 0, "does not take 1"),
            ("rand(1)", 0, "does not take 1"),
            ("uniform(0, 1", 12, "`)`"),
            ("uniform(0, 1 +)", 14, "too early"),
            ("normal(, 1)", 7, "too early"),
            ("factor(rnd)", 7, "unknown initialiser `rnd`"),
            ("softmax(uniform(1))", 8, "does not take 1"),
            ("softmax", 0, "does not take 0"),
            ("factor(softmax(rand))", 7, "no place in `factor`"),
            ("softmax(softmax(rand))", 8, "no place in `softmax`"),
            ("sign(1)", 0, "does not take 1"),
        ] {
            let e = Init::parse(text).unwrap_err();
            assert_eq!(e.at, at, "{text}: {}", e.what);
            assert!(e.what.contains(what), "{text}: {}", e.what);
        }
    }
}
