//! Tables for a terminal.

use std::fmt::Write as _;

use crate::differ::Difference;
use crate::drive::{SeriesSummary, Summary};
use crate::guard::GuardRow;
use crate::record::Outcome;
use crate::rules::{RuleText, Score};

/// Digits in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// The stretches of sizes with one outcome: first, last, outcome.
pub fn stretches(outcomes: &[(u64, Outcome)]) -> Vec<(u64, u64, Outcome)> {
    let mut out: Vec<(u64, u64, Outcome)> = Vec::new();
    for &(size, outcome) in outcomes {
        match out.last_mut() {
            Some(last) if last.2 == outcome => last.1 = size,
            _ => out.push((size, size, outcome)),
        }
    }
    out
}

fn line_of(s: &SeriesSummary) -> String {
    let parts: Vec<String> = stretches(&s.outcomes)
        .into_iter()
        .map(|(a, b, o)| {
            if a == b {
                format!("{} {}", o.name(), grouped(a))
            } else {
                format!("{} {}-{}", o.name(), grouped(a), grouped(b))
            }
        })
        .collect();
    parts.join("; ")
}

/// The summary of a sweep, no line longer than `width` where words allow.
pub fn summary(s: &Summary, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} on {}: {} runs ({} of calibration) over {} batch sizes",
        s.plan, s.backend, s.runs, s.calibration, s.batch_sizes
    );
    let counts: Vec<String> = Outcome::ALL
        .iter()
        .filter_map(|o| s.outcomes.get(o.name()).filter(|&&n| n > 0).map(|n| format!("{} {n}", o.name())))
        .collect();
    let _ = writeln!(out, "outcomes: {}", counts.join(", "));
    let tolerances: Vec<String> = s.tolerance.iter().map(|(d, t)| format!("{d} {t:.2e}")).collect();
    wrap(&mut out, "tolerance: ", 2, &tolerances.join(", "), width);
    out.push('\n');
    let _ = writeln!(out, "batch sizes by outcome (random inputs; sizes between those listed were not run):");
    for series in &s.series {
        let head = format!("  {:<16} {:<4} {:<6} ", series.shape, series.dtype, series.layout);
        let indent = head.chars().count();
        wrap(&mut out, &head, indent, &line_of(series), width);
    }
    let switches: usize = s.series.iter().map(|x| x.switch_points.len()).sum();
    let _ =
        writeln!(out, "\n{switches} switch points, each between two neighbouring sizes where both are given");
    out
}

/// `text` after `head`, broken at `; ` and spaces to `width`, later lines indented.
fn wrap(out: &mut String, head: &str, indent: usize, text: &str, width: usize) {
    let mut line = head.to_owned();
    let mut used = head.chars().count();
    for (i, word) in text.split(' ').enumerate() {
        let n = word.chars().count();
        if i > 0 && used + 1 + n > width && used > indent {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            used = indent;
        } else if i > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += n;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Rules as the boundary paper's Table 3 has them, with what they reproduce.
pub fn rules(rules: &[RuleText], score: &Score, undecided: &[String], width: usize) -> String {
    let mut out = String::from("Rules, applied in order:\n");
    for (i, r) in rules.iter().enumerate() {
        let head = format!("  {:>2}  ", i + 1);
        let words = if r.words.is_empty() { r.when.clone() } else { r.words.clone() };
        let mut then = r.outcome.name().to_owned();
        if !r.extent.is_empty() {
            let _ = write!(then, ", {}", r.extent);
        }
        if !r.reading.is_empty() {
            let _ = write!(then, ", as with {}", r.reading);
        }
        wrap(&mut out, &head, head.len(), &format!("{words}: {then} ({} runs)", r.runs), width);
    }
    let _ = writeln!(out, "\n{} of {} runs reproduced", score.reproduced(), score.total());
    for (name, (hit, all)) in [
        ("random inputs", score.random),
        ("index-encoded inputs", score.index),
        ("backward passes", score.backward),
    ] {
        if all > 0 {
            let _ = writeln!(out, "  {name}: {hit} of {all}");
        }
    }
    if score.index_unchanged > 0 {
        let words = format!(
            "of the index-encoded runs {} have inputs that the misreading leaves unchanged: right, as it says",
            score.index_unchanged
        );
        wrap(&mut out, "  ", 4, &words, width);
    }
    for (title, lines) in
        [("Not reproduced:", &score.misses), ("What the runs cannot decide:", &undecided.to_vec())]
    {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}");
            for line in lines {
                wrap(&mut out, "  - ", 4, line, width);
            }
        }
    }
    out
}

/// What two sweeps differ in; at most twenty runs of each kind.
pub fn difference(d: &Difference, width: usize) -> String {
    const MOST: usize = 20;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} common runs, {} identical; {} only in the first, {} only in the second",
        d.common,
        d.identical,
        d.only_first.len(),
        d.only_second.len()
    );
    for run in d.differing.iter().take(MOST) {
        let fields: Vec<String> = run.fields.iter().map(|(n, a, b)| format!("{n}: {a} / {b}")).collect();
        wrap(&mut out, "  ~ ", 6, &format!("{}: {}", run.run, fields.join("; ")), width);
    }
    for (sign, runs) in [("  - ", &d.only_first), ("  + ", &d.only_second)] {
        for run in runs.iter().take(MOST) {
            wrap(&mut out, sign, 6, run, width);
        }
    }
    if d.differing.len().max(d.only_first.len()).max(d.only_second.len()) > MOST {
        let _ = writeln!(out, "  … (--json has all)");
    }
    out
}

/// The guard's table, as the boundary paper's Table 9 has it.
pub fn guard(rows: &[GuardRow], limit: u64) -> String {
    let mut out = String::new();
    let n = crate::condition::count(limit);
    let _ = writeln!(
        out,
        "{:<32} {:>5} {:>6} {:>9} {:>9} {:>14}",
        "",
        "runs",
        "silent",
        format!("n >= {n}"),
        format!("n > {n}"),
        "right stopped"
    );
    for r in rows {
        let _ = writeln!(
            out,
            "{:<32} {:>5} {:>6} {:>9} {:>9} {:>14}",
            r.name,
            r.runs,
            r.silent,
            r.stopped_at_least,
            r.stopped_more,
            format!("{} of {}", r.correct_stopped, r.correct)
        );
    }
    for r in rows {
        for line in &r.missed_by_at_least {
            let _ = writeln!(out, "not stopped: {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_stretches_merged() {
        assert_eq!(grouped(65_538), "65,538");
        assert_eq!(grouped(7), "7");
        let o = [(1, Outcome::Ok), (2, Outcome::Ok), (5, Outcome::Wrong)];
        assert_eq!(stretches(&o), vec![(1, 2, Outcome::Ok), (5, 5, Outcome::Wrong)]);
    }

    #[test]
    fn long_lines_are_broken_at_words() {
        let mut out = String::new();
        wrap(&mut out, "  x ", 4, &"word ".repeat(40), 30);
        assert!(out.lines().all(|l| l.len() <= 30) && out.matches("word").count() == 40);
    }
}
