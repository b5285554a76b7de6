//! The tables behind the first screen: what `assay report` prints after it.

use assay_measure::{
    DecompositionRow, LeftOutRow, Mechanism, MechanismRow, Published, Summary, Unwitnessed, published,
};

use crate::Bundle;
use crate::page::is_official;
use crate::text::{Side, Table, clean, number, percent, points, tolerance, wrap};

impl Bundle {
    /// Every table that the first screen has no room for, each with its title. No line is wider than `width`.
    pub fn tables(&self, width: usize) -> String {
        let width = width.max(40);
        let mut out = String::new();
        // A test of `assay_measure` excludes that the shipped figures cannot be read.
        if let Some(figures) = published().ok().filter(|_| is_official(&self.summary.headline_protocol)) {
            out.push_str(&paper(&self.summary, &figures, width));
            out.push('\n');
        }
        if !self.summary.decomposition.is_empty() {
            out.push_str(&decomposition(&self.summary.decomposition, &self.summary.official_protocol, width));
        }
        if !self.summary.budget_curve.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&curve(&self.summary, width));
        }
        let bands = crate::bands::tables(&self.summary, width);
        if !bands.is_empty() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&bands);
        }
        if !mechanism_table(&self.summary).1.is_empty() {
            out.push('\n');
            out.push_str(&mechanisms(&self.summary, width));
        }
        if !self.summary.unwitnessed.is_empty() {
            out.push('\n');
            out.push_str(&unwitnessed(&self.summary, width));
        }
        if self.summary.undetected.iter().any(|u| !u.mutants.is_empty()) {
            out.push('\n');
            out.push_str(&undetected(&self.summary, width));
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

/// The baselines of the checker paper's protocol audit.
const BASELINES: [&str; 4] = ["kernelbench-2025", "kbv-inputs", "kbv", "ci-fuzz"];

/// Mutants that every baseline misses and the targeted inputs detect; none where one of them was not scored.
fn only_targeted(s: &Summary) -> Option<u64> {
    let scored = |name: &str| s.protocols.iter().any(|p| p.name == name);
    if !BASELINES.iter().all(|b| scored(b)) || !scored("targeted-all") {
        return None;
    }
    let missed = |by: &[String], name: &str| by.iter().any(|p| p == name);
    let rows = s.miss_patterns.iter().filter(|row| {
        BASELINES.iter().all(|b| missed(&row.missed_by, b)) && !missed(&row.missed_by, "targeted-all")
    });
    Some(rows.map(|row| row.mutants).sum())
}

/// The checker paper's figures of levels 1 and 2 that stand in no other table, beside ours.
fn paper(s: &Summary, figures: &Published, width: usize) -> String {
    let mut out = wrap("The checker paper's figures, measured and published", width, "", "");
    let mut t = Table::new(&[("Figure", Side::Left), ("measured", Side::Right), ("published", Side::Right)]);
    for row in paper_rows(s, figures) {
        t.row(row.to_vec());
    }
    out.push_str(&t.draw(width));
    out
}

/// Rows of figure, measured, published. The published ones are of levels 1 and 2.
pub(crate) fn paper_rows(s: &Summary, figures: &Published) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let (p, theirs) = (&s.pipeline, &figures.pipeline);
    let mut row = |what: &str, ours: String, published: String| rows.push([what.to_owned(), ours, published]);
    for (what, ours, published) in [
        ("problems", p.problems, theirs.problems),
        ("mutants generated", p.generated, theirs.generated),
        ("not compiling", p.noncompiling, theirs.noncompiling),
        ("duplicate image", p.duplicate_image, theirs.duplicate_image),
        ("equivalent", p.equivalent, theirs.equivalent),
        ("distinct", p.distinct, theirs.distinct),
        ("witnessed", p.witnessed, theirs.witnessed),
    ] {
        row(what, number(ours), number(published));
    }
    let st = &s.statistics;
    row("missed of the witnessed", percent(st.missed_percent), percent(Some(theirs.missed_percent)));
    row(
        "surviving of the distinct",
        percent(st.distinct_surviving_percent),
        percent(Some(figures.official.distinct_surviving_percent)),
    );
    row(
        "missed, median problem",
        percent(st.per_problem.map(|d| d.median)),
        percent(Some(figures.official.median_problem_missed_percent)),
    );
    row(
        "problems that miss 40% or more",
        number(
            s.problems.iter().filter(|r| r.witnessed > 0 && r.missed * 10 >= r.witnessed * 4).count() as u64
        ),
        "–".to_owned(),
    );
    let band = |low: f64, high: f64| format!("{low:.1}–{high:.1}%");
    let [low, high] = figures.official.band_at_ten_problems;
    let ten = st.bands.iter().find(|b| b.problems == 10);
    row(
        "90% band at ten problems",
        ten.map_or_else(|| "–".to_owned(), |b| band(b.low, b.high)),
        band(low, high),
    );
    row(
        "official check on the held-out half",
        percent(st.held_out_detected_percent),
        percent(Some(figures.suites.official_held_out)),
    );
    let inputs = |median: u64, largest: u64| format!("{median} (at most {largest})");
    row(
        "inputs for every fault, median problem",
        st.suite_inputs_median
            .zip(st.suite_inputs_largest)
            .map_or_else(|| "–".to_owned(), |(m, l)| inputs(m, l)),
        inputs(figures.suites.median_inputs, figures.suites.largest_inputs),
    );
    let seen = |n: Option<u64>, of: u64| {
        n.map_or_else(|| "–".to_owned(), |n| format!("{} of {}", number(n), number(of)))
    };
    let witnessed = s.protocols.first().map_or(0, |p| p.witnessed);
    row(
        "missed by every baseline, not by targeted",
        seen(only_targeted(s), witnessed),
        seen(Some(figures.protocols.only_targeted), figures.protocols.witnessed),
    );
    rows
}

/// Why the headline protocol's survivors survive, by family.
fn mechanisms(s: &Summary, width: usize) -> String {
    let mut out =
        wrap(&clean(&format!("Why faults survive {}, by family", s.headline_protocol)), width, "", "");
    let (header, rows) = mechanism_table(s);
    let header: Vec<(&str, Side)> = header
        .iter()
        .enumerate()
        .map(|(i, h)| (h.as_str(), if i == 0 { Side::Left } else { Side::Right }))
        .collect();
    let mut t = Table::new(&header);
    for row in rows {
        t.row(row);
    }
    out.push_str(&t.draw(width));
    out.push_str(&wrap("Those of the schedule stand outside every rate.", width, "", ""));
    out
}

/// The header and the rows of survivors by family and mechanism; no rows where none survives, or where the run is of a
/// version that did not count by family.
pub(crate) fn mechanism_table(s: &Summary) -> (Vec<String>, Vec<Vec<String>>) {
    let phrase = |m: Option<Mechanism>| m.map_or("unexplained", Mechanism::phrase).to_owned();
    let header = std::iter::once("Family".to_owned())
        .chain(s.mechanisms.iter().map(|m| phrase(m.mechanism)))
        .collect();
    let rows = s.families.iter().filter(|f| s.mechanisms.iter().any(|m| m.families.contains_key(&f.family)));
    let rows = rows.map(|f| {
        let count = |m: &MechanismRow| number(m.families.get(&f.family).copied().unwrap_or(0));
        std::iter::once(f.family.clone()).chain(s.mechanisms.iter().map(count)).collect()
    });
    (header, rows.collect())
}

/// Why mutants have no witness.
fn unwitnessed(s: &Summary, width: usize) -> String {
    let mut out = wrap("Mutants without a witness", width, "", "");
    let mut t = Table::new(&[("Why", Side::Left), ("six families", Side::Right), ("width", Side::Right)]);
    for r in &s.unwitnessed {
        t.row(vec![reason(r.reason).to_owned(), number(r.mutants), number(r.width)]);
    }
    out.push_str(&t.draw(width));
    out
}

/// Why a mutant has no witness, as a phrase.
pub(crate) fn reason(why: Option<Unwitnessed>) -> &'static str {
    why.map_or("not recorded by the version that made this run", Unwitnessed::phrase)
}

/// What the strongest protocols miss, by mechanism; `summary.json` has the mutants one by one.
fn undetected(s: &Summary, width: usize) -> String {
    let mut out = wrap("Witnessed faults that the strongest protocols miss, by why", width, "", "");
    let mut t = Table::new(&[
        ("Protocol", Side::Left),
        ("missed", Side::Right),
        ("tolerance", Side::Right),
        ("input support", Side::Right),
        ("shape", Side::Right),
    ]);
    for row in undetected_rows(s) {
        t.row(row);
    }
    out.push_str(&t.draw(width));
    let note =
        "Each stands in summary.json under `undetected`, with its place, rule and an input that catches it.";
    out.push_str(&wrap(note, width, "", ""));
    out
}

/// What each of the strongest protocols misses: all, and by mechanism; none where they miss nothing.
pub(crate) fn undetected_rows(s: &Summary) -> Vec<Vec<String>> {
    let missing = s.undetected.iter().filter(|u| !u.mutants.is_empty());
    missing
        .map(|u| {
            let count = |m| number(u.mutants.iter().filter(|r| r.mechanism == Some(m)).count() as u64);
            let all = number(u.mutants.len() as u64);
            let why = [Mechanism::Tolerance, Mechanism::InputSupport, Mechanism::Shape];
            [u.protocol.clone(), all].into_iter().chain(why.map(count)).collect()
        })
        .collect()
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
