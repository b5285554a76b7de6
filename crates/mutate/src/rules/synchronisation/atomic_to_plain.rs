//! `AtomicToPlain`: an atomic update becomes a plain one.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};
use crate::syntax::call;

/// An atomic update becomes a plain one.
pub struct AtomicToPlain;

impl Rule for AtomicToPlain {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "AtomicToPlain",
            family: Family::Synchronisation,
            reason: "an atomic update becomes a plain one",
            source: "MUTGPU: atomic removal; public bug reports: dropped atomics, https://github.com/slothfulxtx/diff-gaussian-rasterization/issues/21",
            before: "atomicAdd(&y[i], a);",
            after: &["y[i] += (a);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["expression_statement"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        // As an expression the old value may be used, which a plain update does not give.
        let Some(call) = at.node.named_child(0).and_then(|n| call(n, at.source)) else { return };
        let [place, value] = call.args[..] else { return };
        let target = match place.child_by_field_name("argument") {
            Some(inner) if place.kind() == "pointer_expression" && at.text(place).starts_with('&') => {
                at.flat(inner)
            }
            _ => format!("*{}", at.atom(place)),
        };
        let value = at.flat(value);
        if !at.pure(place) {
            return;
        }
        match call.name {
            "atomicAdd" => out.replace(at.node, format!("{target} += ({value});")),
            "atomicSub" => out.replace(at.node, format!("{target} -= ({value});")),
            "atomicMax" => out.replace(at.node, format!("{target} = max({target}, {value});")),
            "atomicMin" => out.replace(at.node, format!("{target} = min({target}, {value});")),
            _ => {}
        }
    }
}
