//! `ScratchHalved`: an intermediate buffer has half its size.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// An intermediate buffer has half its size.
pub struct ScratchHalved;

impl Rule for ScratchHalved {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "ScratchHalved",
            family: Family::Boundary,
            reason: "an intermediate buffer has half its size",
            source: "checker paper, host code; public bug reports: workspace too small, https://github.com/microsoft/onnxruntime/pull/27419",
            before: "float* t = scratch<float>(n * m); k<<<n, 256>>>(x, w, t, n, m);",
            after: &["float* t = scratch<float>((n * m) / 2); k<<<n, 256>>>(x, w, t, n, m);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        2
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        let name = call.name.to_ascii_lowercase();
        if at.host()
            && call.config.is_empty()
            && ["scratch", "alloc", "workspace", "empty", "zeros"].iter().any(|word| name.contains(word))
            && let Some(size) = call.args.last()
            && at.ty(*size).is_int()
        {
            out.replace(*size, format!("{} / 2", at.atom(*size)));
        }
    }
}
