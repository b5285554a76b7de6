//! `CountParameterInt`: a kernel takes its count of elements as an int.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::named_children;

/// A kernel takes its count of elements as an int.
pub struct CountParameterInt;

impl Rule for CountParameterInt {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CountParameterInt",
            family: Family::Width,
            reason: "a kernel takes its count of elements as an int",
            source: "boundary paper, related work: counts of type int; https://github.com/amd/Quark/pull/43",
            before: "__global__ void k(float* y, long long n) { y[0] = n; }",
            after: &["__global__ void k(float* y, int n) { y[0] = n; }"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["function_definition"]
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        // What the launcher takes is for its caller to say.
        let Some(declarator) = at.node.child_by_field_name("declarator").filter(|_| !at.host()) else {
            return;
        };
        let Some(parameters) = declarator.child_by_field_name("parameters") else { return };
        for parameter in named_children(parameters) {
            let by_value =
                parameter.child_by_field_name("declarator").is_some_and(|n| n.kind() == "identifier");
            if let Some(ty) = parameter.child_by_field_name("type").filter(|ty| by_value && at.wide_type(*ty))
            {
                out.replace(ty, "int");
            }
        }
    }
}
