//! The tables behind the first screen: what `assay report` prints after it.

use assay_measure::{DecompositionRow, LeftOutRow, Summary};

use crate::Bundle;
use crate::text::{Side, Table, clean, number, percent, points, tolerance, wrap};

impl Bundle {
    /// Every table that the first screen has no room for, each with its title. No line is wider than `width`.
    pub fn tables(&self, width: usize) -> String {
        let width = width.max(40);
        let mut out = String::new();
        if !self.summary.decomposition.is_empty() {
            out.push_str(&decomposition(&self.summary.decomposition, &self.summary.official_protocol, width));
        }
        if !self.summary.budget_curve.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&curve(&self.summary, width));
        }
        if self.summary.sanitizer_families.iter().any(|r| r.witnessed > 0) {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&sanitizer(&self.summary, width));
        }
        out
    }
}

/// The sanitizer beside the protocols, by family.
fn sanitizer(s: &Summary, width: usize) -> String {
    let mut out = wrap("The sanitizer as a protocol", width, "", "");
    let mut t = Table::new(&[
        ("Family", Side::Left),
        ("faults", Side::Right),
        ("detected", Side::Right),
        ("official misses", Side::Right),
        ("all miss", Side::Right),
        ("no witness", Side::Right),
    ]);
    for r in s.sanitizer_families.iter().filter(|r| r.witnessed + r.flagged_not_witnessed > 0) {
        t.row(vec![
            r.family.clone(),
            number(r.witnessed),
            percent(assay_measure::percent(r.detected, r.witnessed)),
            number(r.missed_by_official),
            number(r.alone),
            number(r.flagged_not_witnessed),
        ]);
    }
    out.push_str(&t.draw(width));
    let note = format!(
        "Detected: witnessed faults with a finding; of them, those that {} misses and those that every protocol above \
         misses. No witness: flagged, but no input shows a wrong value.",
        s.official_protocol
    );
    out.push_str(&wrap(&clean(&note), width, "", ""));
    out
}

/// Suites by budget: greedy beside the best possible, and on rules and problems that they were not selected on.
fn curve(s: &Summary, width: usize) -> String {
    let mut out =
        wrap("Suites: greedy cover beside the best possible, and on what was left out", width, "", "");
    let mut t = Table::new(&[
        ("Inputs", Side::Left),
        ("greedy", Side::Right),
        ("optimum", Side::Right),
        ("proven", Side::Right),
        ("rule left out", Side::Right),
        ("problem left out", Side::Right),
    ]);
    for r in &s.budget_curve {
        let beside = |rows: &[LeftOutRow]| {
            percent(rows.iter().find(|l| l.budget == r.budget).and_then(|l| l.detected_percent))
        };
        t.row(vec![
            r.budget.to_string(),
            percent(assay_measure::percent(r.greedy, r.witnessed)),
            percent(assay_measure::percent(r.optimum, r.witnessed)),
            format!("{}/{}", number(r.proven), number(r.problems)),
            beside(&s.left_out.rules),
            beside(&s.left_out.problems),
        ]);
    }
    out.push_str(&t.draw(width));
    out.push_str(&wrap(
        "Proven: problems where no other choice of inputs kills more. A rule left out: selected on every other rule's \
         faults, scored on its own. A problem left out: kinds of input selected on all other problems.",
        width,
        "",
        "",
    ));
    out
}

/// What is the inputs' and what the tolerance's.
fn decomposition(rows: &[DecompositionRow], official: &str, width: usize) -> String {
    let mut out = wrap(
        &clean(&format!("Inputs and tolerance: points over {official}, in both orders of changing them")),
        width,
        "",
        "",
    );
    let mut t = Table::new(&[
        ("Protocol", Side::Left),
        ("atol=rtol", Side::Right),
        ("inputs,", Side::Right),
        ("then tol.", Side::Right),
        ("tol.,", Side::Right),
        ("then inputs", Side::Right),
        ("detected", Side::Right),
    ]);
    for r in rows {
        t.row(vec![
            r.protocol.clone(),
            tolerance(r.atol, r.rtol),
            points(r.inputs_first),
            points(r.tolerance_second),
            points(r.tolerance_first),
            points(r.inputs_second),
            percent(assay_measure::percent(r.detected, r.witnessed)),
        ]);
        if let (Some(inputs), Some(then)) = (r.published_inputs_first, r.published_tolerance_second) {
            t.row(vec![
                "  published".to_owned(),
                String::new(),
                points(Some(inputs)),
                points(Some(then)),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
    }
    out.push_str(&t.draw(width));
    out.push_str(&wrap(
        "A tighter tolerance can also lose points: inputs on which correct kernels disagree by more are not valid at it.",
        width,
        "",
        "",
    ));
    out
}
