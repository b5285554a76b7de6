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
}

/// The names, for messages.
const NAMES: &str =
    "rand randn uniform(lo,hi) normal(mean,std) zeros ones full(v) randint(lo,hi) bernoulli(p)";

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
            ("uniform", Some(a), Some(b), 2) => Init::Uniform(a, b),
            ("normal", Some(a), Some(b), 2) => Init::Normal(a, b),
            ("randint", Some(a), Some(b), 2) => Init::Randint(a, b),
            ("full", Some(a), None, 1) => Init::Full(a),
            ("bernoulli", Some(a), None, 1) => Init::Bernoulli(a),
            (
                "rand" | "randn" | "zeros" | "ones" | "uniform" | "normal" | "randint" | "full" | "bernoulli",
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

    /// The expressions in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Init::Rand | Init::Randn | Init::Zeros | Init::Ones => Vec::new(),
            Init::Uniform(a, b) | Init::Normal(a, b) | Init::Randint(a, b) => vec![a, b],
            Init::Full(a) | Init::Bernoulli(a) => vec![a],
        }
    }

    /// Whether it can fill a tensor of that dtype without losing what it says.
    pub fn suits(&self, dtype: DType) -> bool {
        match self {
            Init::Rand | Init::Randn | Init::Uniform(..) | Init::Normal(..) => dtype.is_float(),
            Init::Zeros | Init::Ones | Init::Full(_) | Init::Randint(..) | Init::Bernoulli(_) => true,
        }
    }

    /// The initialiser with its bounds evaluated.
    ///
    /// # Errors
    /// A message naming what has no value.
    pub fn at(&self, dims: &BTreeMap<String, u64>) -> Result<Values, String> {
        let v = |e: &Expr| e.real_value(dims).map_err(|why| format!("`{e}`: {why}"));
        Ok(match self {
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
}

impl Values {
    /// Element `i`, a function of the stream and the index alone.
    pub fn at(self, s: &Stream, i: u64) -> f64 {
        match self {
            Values::Uniform(lo, hi) => lo + (hi - lo) * f64::from(s.uniform_at(i)),
            Values::Normal(mean, std) => mean + std * s.normal_at(i),
            Values::Full(v) => v,
            Values::Randint(lo, n) => lo as f64 + s.below_at(i, n) as f64,
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
        ] {
            assert_eq!(Init::parse(text).unwrap().at(&dims), Ok(want), "{text}");
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
        ] {
            let e = Init::parse(text).unwrap_err();
            assert_eq!(e.at, at, "{text}: {}", e.what);
            assert!(e.what.contains(what), "{text}: {}", e.what);
        }
    }
}
