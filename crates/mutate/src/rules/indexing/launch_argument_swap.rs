//! `LaunchArgumentSwap`: two arguments of equal type change places in a launch.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// Two arguments of equal type change places in a launch.
pub struct LaunchArgumentSwap;

impl Rule for LaunchArgumentSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "LaunchArgumentSwap",
            family: Family::Indexing,
            reason: "two arguments of equal type change places in a launch",
            source: "checker paper, host code; public bug reports: argument order, https://github.com/llnl/RAJAPerf/pull/166",
            before: "k<<<n, 256>>>(x, w, y, n, m);",
            after: &["k<<<n, 256>>>(w, x, y, n, m);", "k<<<n, 256>>>(x, w, y, m, n);"],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn key(&self, at: &Site<'_>) -> Option<String> {
        Some(at.flat(at.node))
    }

    fn most(&self) -> usize {
        3
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(call) = at.call() else { return };
        if call.config.is_empty() {
            return;
        }
        for pair in call.args.windows(2) {
            if shared::may_trade_places(at, pair[0], pair[1]) {
                out.swap(at.source, pair[0], pair[1]);
            }
        }
    }
}
