//! The tables behind the first screen: what `assay report` prints after it.

use assay_measure::DecompositionRow;

use crate::Bundle;
use crate::text::{Side, Table, clean, percent, points, tolerance, wrap};

impl Bundle {
    /// Every table that the first screen has no room for, each with its title. No line is wider than `width`.
    pub fn tables(&self, width: usize) -> String {
        let width = width.max(40);
        let mut out = String::new();
        if !self.summary.decomposition.is_empty() {
            out.push_str(&decomposition(&self.summary.decomposition, &self.summary.official_protocol, width));
        }
        out
    }
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
