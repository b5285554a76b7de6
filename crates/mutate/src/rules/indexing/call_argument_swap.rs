//! `CallArgumentSwap`: two arguments of equal type change places in a call of a device function.

use crate::rules::{Family, Rule, RuleInfo, shared};
use crate::site::{Proposals, Site};

/// Two arguments of equal type change places in a call of a device function.
pub struct CallArgumentSwap;

impl Rule for CallArgumentSwap {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CallArgumentSwap",
            family: Family::Indexing,
            reason: "two arguments of equal type change places in a call of a device function",
            source: "public bug reports: argument order, https://github.com/btxchain/btx/pull/89",
            before: "__device__ float f(int p, int q) { return p * 2.0f + q; } __global__ void k(float* y, int i, int j) { y[0] = f(i, j); }",
            after: &[
                "__device__ float f(int p, int q) { return p * 2.0f + q; } __global__ void k(float* y, int i, int j) { y[0] = f(j, i); }",
            ],
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
        let own = at.globals.get(call.name).is_some() && call.config.is_empty();
        if !own || at.host() {
            return;
        }
        for pair in call.args.windows(2) {
            if shared::may_trade_places(at, pair[0], pair[1]) {
                out.swap(at.source, pair[0], pair[1]);
            }
        }
    }
}
