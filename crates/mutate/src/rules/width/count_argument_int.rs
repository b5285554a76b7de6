//! `CountArgumentInt`: a launcher passes a count of 64 bits through an int.

use crate::rules::{Family, Rule, RuleInfo};
use crate::site::{Proposals, Site};

/// A launcher passes a count of 64 bits through an int.
pub struct CountArgumentInt;

impl Rule for CountArgumentInt {
    fn info(&self) -> &'static RuleInfo {
        &RuleInfo {
            id: "CountArgumentInt",
            family: Family::Width,
            reason: "a launcher passes a count of 64 bits through an int",
            source: "public bug reports: https://github.com/Jim137/qkan/pull/22",
            before: "long long q = static_cast<long long>(n) * m; k<<<n, 256>>>(x, w, y, q, m);",
            after: &[
                "long long q = static_cast<long long>(n) * m; k<<<n, 256>>>(x, w, y, static_cast<int>(q), m);",
            ],
        }
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["call_expression"]
    }

    fn most(&self) -> usize {
        1
    }

    fn visit(&self, at: &Site<'_>, out: &mut Proposals) {
        let Some(launch) = at.call().filter(|c| !c.config.is_empty()) else { return };
        for argument in launch.args.into_iter().filter(|argument| at.wide(*argument)) {
            out.replace(argument, format!("static_cast<int>({})", at.flat(argument)));
        }
    }
}
