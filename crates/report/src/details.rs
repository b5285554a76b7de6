//! The survivors one by one: diff, mechanism, witness, thresholds.

use assay_measure::{Mechanism, SurvivorRow, Tolerance};

use crate::Bundle;
use crate::diff::{Line, changed};
use crate::page::place;
use crate::text::{clean, cut, threshold, wrap};

/// Lines of one diff.
const MOST_LINES: usize = 14;

/// Why a survivor survives, in a sentence.
pub(crate) fn sentence(mechanism: Option<Mechanism>, protocol: &str) -> String {
    match mechanism {
        Some(Mechanism::Tolerance) => {
            format!("its error shows on what {protocol} asks, and the tolerance forgives it")
        }
        Some(Mechanism::InputSupport) => {
            format!("the values that {protocol} draws never excite it; others of the same shape do")
        }
        Some(Mechanism::Shape) => "only another shape excites it".to_owned(),
        Some(Mechanism::Schedule) => "only another schedule excites it".to_owned(),
        None => "its witness is not in the kill matrix".to_owned(),
    }
}

/// Its diff, cut to what changes.
pub(crate) fn lines(bundle: &Bundle, v: &SurvivorRow) -> Vec<Line> {
    let mut lines = bundle.mutant(&v.mutant).map(|m| changed(&m.diff, 1)).unwrap_or_default();
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push(Line { mark: '…', text: String::new() });
    }
    lines
}

impl Bundle {
    /// What stands behind the page: each of the most surprising survivors with its diff and why it survives. No line
    /// is wider than `width` (at least 40).
    pub fn details(&self, width: usize) -> String {
        let width = width.max(40);
        let protocol = &self.summary.headline_protocol;
        let mut out = String::new();
        for (i, v) in self.summary.survivors.iter().enumerate() {
            let title = format!("{} {}, {}", v.problem, v.problem_name, place(v));
            out.push_str(&wrap(&clean(&title), width, &format!("{:>2}  ", i + 1), "    "));
            let flagged = if v.flagged { "; the sanitizer reports it" } else { "" };
            let kind = format!(
                "{} ({}), mutant {}. Survives by {}: {}{flagged}.",
                v.family,
                v.rule,
                v.mutant,
                v.mechanism.map_or("no known mechanism", Mechanism::phrase),
                sentence(v.mechanism, protocol),
            );
            out.push_str(&wrap(&clean(&kind), width, "    ", "    "));
            let asked = format!(
                "error {} at most on what {protocol} asks{}",
                threshold(v.asked_threshold),
                v.witness.as_ref().map_or_else(String::new, |w| format!(
                    ", {} on its witness {w} (a fault above {:e})",
                    threshold(v.witness_threshold),
                    Tolerance::PAPER.atol
                ))
            );
            out.push_str(&wrap(&clean(&asked), width, "    ", "    "));
            for line in lines(self, v) {
                let text = if line.mark == '…' {
                    "…".to_owned()
                } else {
                    format!("{} {}", line.mark, tabs(&line.text))
                };
                out.push_str(&cut(&format!("      {}", clean(&text)), width));
                out.push('\n');
            }
            out.push('\n');
        }
        out
    }
}

/// Tabs as four spaces, so that a diff keeps its shape.
fn tabs(s: &str) -> String {
    s.replace('\t', "    ")
}
