//! `UnstableSigmoid`: a sigmoid overflows for large arguments.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};
use crate::syntax::{bare, binary, call};

/// A sigmoid overflows for large arguments.
pub struct UnstableSigmoid;

impl Rule for UnstableSigmoid {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "UnstableSigmoid",
            family: Family::Precision,
            reason: "a sigmoid overflows for large arguments",
            source: "public bug reports: https://github.com/clab/dynet/issues/1525",
            before: "s = 1.0f / (1.0f + expf(-a));",
            after: &["s = (expf(a) / (1.0f + expf(a)));"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["binary_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(quotient) = at.binary().filter(|b| b.op == "/" && shared::is_one(at, b.left)) else {
            return;
        };
        let Some(sum) = binary(bare(quotient.right)).filter(|b| b.op == "+") else { return };
        let other = if shared::is_one(at, sum.left) { sum.right } else { sum.left };
        let Some(exponential) = call(bare(other), at.source) else { return };
        if !shared::is_one(at, sum.left) && !shared::is_one(at, sum.right)
            || !matches!(exponential.name, "expf" | "__expf")
        {
            return;
        }
        let [argument] = exponential.args[..] else { return };
        let minus = argument.child_by_field_name("operator").is_some_and(|op| op.kind() == "-");
        if let Some(z) = argument.child_by_field_name("argument")
            && argument.kind() == "unary_expression"
            && minus
            && at.pure(z)
        {
            let (exp, z) = (exponential.name, at.flat(z));
            out.replace(at.node, format!("({exp}({z}) / (1.0f + {exp}({z})))"));
        }
    }
}
