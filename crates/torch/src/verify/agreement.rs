//! How closely each operator must agree with PyTorch, and which differences are legitimate: `agreement.toml`.

use assay_ops::Precision;
use serde::Deserialize;

use crate::error::TorchError;

const TEXT: &str = include_str!("agreement.toml");

/// What an operator's bound is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The magnitude of the element itself.
    Element,
    /// The largest finite magnitude of the output.
    Largest,
    /// The output of the same program on absolute values: the sum of the magnitudes of its terms.
    Terms,
    /// The largest finite magnitude of the inputs, and at least one.
    Inputs,
}

/// A row of the table of tolerances.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// For these operators.
    pub operators: Vec<String>,
    /// A part of the program that it needs; the first row that fits counts.
    #[serde(default)]
    pub program: String,
    /// Epsilons of float64.
    pub f64: f64,
    /// Epsilons of float32.
    pub f32: f64,
    /// Times this.
    pub of: Scale,
    /// Why not zero.
    pub reason: String,
}

/// What one side has where the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A NaN.
    Nan,
    /// Either infinity.
    Infinite,
    /// A zero.
    Zero,
    /// A number, zero included.
    Finite,
    /// Anything.
    Any,
    /// Outputs, where the other side refuses.
    Value,
    /// A refusal.
    Refuses,
}

impl Side {
    fn is(self, x: f64) -> bool {
        match self {
            Side::Nan => x.is_nan(),
            Side::Infinite => x.is_infinite(),
            Side::Zero => x == 0.0,
            Side::Finite => x.is_finite(),
            Side::Any => true,
            Side::Value | Side::Refuses => false,
        }
    }
}

/// A legitimate difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Of these operators.
    pub operators: Vec<String>,
    /// In this precision; in both where absent.
    pub precision: Option<String>,
    /// What we have.
    pub ours: Side,
    /// What PyTorch has.
    pub torch: Side,
    /// A part of the message of the side that refuses.
    #[serde(default)]
    pub message: String,
    /// A part of the program that it needs.
    #[serde(default)]
    pub program: String,
    /// Only where an input is of integers or bools.
    #[serde(default)]
    pub integers: bool,
    /// Why it is legitimate.
    pub reason: String,
}

/// The whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Bounds by operator; an operator without a row must agree exactly.
    #[serde(default)]
    pub tolerance: Vec<Tolerance>,
    /// Legitimate differences.
    #[serde(default)]
    pub difference: Vec<Difference>,
}

impl Agreement {
    /// The table that is part of Assay.
    ///
    /// # Errors
    /// `Bad` where the file has a fault; a test loads it.
    pub fn builtin() -> Result<Agreement, TorchError> {
        toml::from_str(TEXT).map_err(|e| TorchError::Bad(format!("agreement.toml: {e}")))
    }

    /// The row of tolerances of an operator in that program.
    pub fn tolerance(&self, operator: &str, program: &str) -> Option<&Tolerance> {
        self.tolerance
            .iter()
            .find(|t| t.operators.iter().any(|o| o == operator) && program.contains(&t.program))
    }

    /// The row that explains a difference between two values.
    pub fn explains(&self, at: &Place<'_>, ours: f64, torch: f64) -> Option<&Difference> {
        self.difference.iter().find(|d| d.applies(at) && d.ours.is(ours) && d.torch.is(torch))
    }

    /// The row that explains why one side refuses with `message`.
    pub fn explains_refusal(&self, at: &Place<'_>, by_torch: bool, message: &str) -> Option<&Difference> {
        let (ours, torch) =
            if by_torch { (Side::Value, Side::Refuses) } else { (Side::Refuses, Side::Value) };
        self.difference
            .iter()
            .find(|d| d.applies(at) && d.ours == ours && d.torch == torch && message.contains(&d.message))
    }
}

impl Difference {
    fn applies(&self, at: &Place<'_>) -> bool {
        self.operators.iter().any(|o| o == at.operator || o == "*")
            && self.precision.as_deref().is_none_or(|p| p == super::precision_name(at.precision))
            && at.program.contains(&self.program)
            && (!self.integers || at.integers)
    }
}

/// Where a difference is.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The operator that the case is about.
    pub operator: &'a str,
    /// The precision.
    pub precision: Precision,
    /// The program.
    pub program: &'a str,
    /// An input is of integers or bools.
    pub integers: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_operators_that_exist_once_and_every_row_has_a_reason() {
        let table = Agreement::builtin().unwrap();
        let known = |o: &String| o == "*" || assay_ops::OPS.iter().any(|op| op.name == o);
        let mut seen = std::collections::BTreeSet::new();
        for t in &table.tolerance {
            assert!(!t.reason.trim().is_empty());
            for o in &t.operators {
                assert!(known(o) && o != "*", "`{o}`");
                assert!(!t.program.is_empty() || seen.insert(o.clone()), "`{o}` has two tolerances");
            }
        }
        for d in &table.difference {
            assert!(d.operators.iter().all(known), "{:?}", d.operators);
            assert!(!d.reason.trim().is_empty());
            assert_eq!(d.ours == Side::Refuses, d.torch == Side::Value, "{:?}", d.operators);
            assert_eq!(d.ours == Side::Value, d.torch == Side::Refuses, "{:?}", d.operators);
            let refusal = d.ours == Side::Refuses || d.torch == Side::Refuses;
            assert_eq!(refusal, !d.message.is_empty(), "a refusal needs words: {:?}", d.operators);
            assert!(d.precision.as_deref().is_none_or(|p| p == "f32" || p == "f64"));
        }
    }
}
