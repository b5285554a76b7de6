//! The summary for a terminal.

use std::fmt::Write as _;

use assay_sweep::record::Outcome;
use assay_sweep::text::{grouped, stretches};

use crate::drive::{Series, Summary};

/// The summary of a sweep, no line longer than `width` where words allow.
pub fn summary(s: &Summary, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} by {} on the CPU device: {} runs ({} of calibration) over {} sizes",
        s.op, s.backend, s.runs, s.calibration, s.batch_sizes
    );
    let counts: Vec<String> = Outcome::ALL
        .iter()
        .filter_map(|o| s.outcomes.get(o.name()).filter(|&&n| n > 0).map(|n| format!("{} {n}", o.name())))
        .collect();
    let _ = writeln!(out, "outcomes: {}", counts.join(", "));
    for series in &s.series {
        one(&mut out, series, width);
    }
    if s.right() {
        let _ = match s.skipped() {
            0 => writeln!(out, "\nno boundary found: every run is right"),
            n => writeln!(out, "\nno boundary found, but {n} runs were skipped"),
        };
    }
    out
}

fn one(out: &mut String, s: &Series, width: usize) {
    let per = match s.elements_per_step {
        1 => String::new(),
        n => format!(" of {} elements", grouped(n)),
    };
    let _ = writeln!(out, "\n{} {}: {} grows by steps{per}", s.shape, s.dtype, s.extent);
    let parts: Vec<String> = stretches(&s.outcomes)
        .into_iter()
        .map(|(a, b, o)| {
            let to = if a == b { String::new() } else { format!("-{}", grouped(b)) };
            format!("{} {}{to}", o.name(), grouped(a))
        })
        .collect();
    wrap(out, "  ", &format!("{} = {}", s.extent, parts.join("; ")), width);
    for why in &s.skipped {
        wrap(out, "  ", &format!("skipped: {why}"), width);
    }
    for p in &s.switch_points {
        let (from, to) = (p.switch.from, p.switch.to);
        let steps = if s.elements_per_step == 1 {
            String::new()
        } else {
            format!(" ({} = {} and {})", s.extent, grouped(p.switch.below), grouped(p.switch.above))
        };
        let line = format!(
            "{} up to {} elements, {} from {}{steps}",
            from.name(),
            grouped(p.elements_below),
            to.name(),
            grouped(p.elements_above)
        );
        wrap(out, "  ", &line, width);
        let Some(m) = &p.mechanism else { continue };
        let place = match (&m.file, m.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            _ => String::new(),
        };
        wrap(out, "    ", &format!("{place}{}", m.sentence), width);
    }
}

/// `text` broken at spaces to `width`, every line behind `indent`.
fn wrap(out: &mut String, indent: &str, text: &str, width: usize) {
    let mut line = indent.to_owned();
    for word in text.split(' ') {
        let empty = line.len() == indent.len();
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(&line);
            out.push('\n');
            line = indent.to_owned();
        } else if !empty {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_and_keep_their_indent() {
        let mut out = String::new();
        wrap(&mut out, "    ", &"word ".repeat(40), 30);
        assert!(out.lines().all(|l| l.starts_with("    ") && l.len() <= 30), "{out}");
        assert_eq!(out.matches("word").count(), 40);
    }
}
