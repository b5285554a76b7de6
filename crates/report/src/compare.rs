//! Two audits side by side, for a terminal.

use assay_measure::{AuditComparison, MutantRef};

use crate::text::{Side, Table, clean, counted, cut, number, percent, wrap};

/// Mutants of one list that are shown; the JSON has all.
const SHOWN: usize = 20;

/// The page of `assay compare`. No line is wider than `width`.
pub fn comparison(c: &AuditComparison, width: usize) -> String {
    let width = width.max(40);
    let mut out = String::new();
    if c.same {
        let line =
            format!("No difference: the same mutants, the same verdicts on {} of them.", number(c.compared));
        return wrap(&line, width, "", "");
    }
    let line = format!("Compared on {} that both audits count.", counted(c.compared, "witnessed mutant"));
    out.push_str(&wrap(&line, width, "", ""));
    out.push('\n');
    let mut t = Table::new(&[
        ("Protocol", Side::Left),
        ("before", Side::Right),
        ("after", Side::Right),
        ("caught", Side::Right),
        ("missed", Side::Right),
        ("false kills", Side::Right),
    ]);
    for p in &c.protocols {
        let rate = |s: &Option<assay_measure::Side>| {
            s.map_or_else(|| "–".to_owned(), |s| percent(assay_measure::percent(s.detected, c.compared)))
        };
        let kills = match (&p.before, &p.after) {
            (Some(a), Some(b)) if a.false_kills == b.false_kills => number(a.false_kills),
            (Some(a), Some(b)) => format!("{} → {}", number(a.false_kills), number(b.false_kills)),
            (Some(s), None) | (None, Some(s)) => number(s.false_kills),
            (None, None) => String::new(),
        };
        let sign = |n: usize, sign: &str| {
            if n == 0 { "0".to_owned() } else { format!("{sign}{}", number(n as u64)) }
        };
        t.row(vec![
            p.name.clone(),
            rate(&p.before),
            rate(&p.after),
            sign(p.newly_caught.len(), "+"),
            sign(p.newly_missed.len(), "-"),
            kills,
        ]);
    }
    out.push_str(&t.draw(width));
    for p in &c.protocols {
        list(&mut out, &format!("Newly caught by {}", p.name), &p.newly_caught, width);
        list(&mut out, &format!("Newly missed by {}", p.name), &p.newly_missed, width);
    }
    list(&mut out, "Mutants of the first audit alone", &c.only_before, width);
    list(&mut out, "Mutants of the second audit alone", &c.only_after, width);
    list(
        &mut out,
        "Counted by the first audit alone (no witness in the second)",
        &c.counted_only_before,
        width,
    );
    list(
        &mut out,
        "Counted by the second audit alone (no witness in the first)",
        &c.counted_only_after,
        width,
    );
    out
}

fn list(out: &mut String, title: &str, mutants: &[MutantRef], width: usize) {
    if mutants.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&wrap(
        &clean(&format!("{title}: {}", counted(mutants.len() as u64, "mutant"))),
        width,
        "",
        "  ",
    ));
    for m in mutants.iter().take(SHOWN) {
        let line = format!("  {:<6} {:<15} {}", clean(&m.problem), clean(&m.family), clean(&m.name));
        out.push_str(cut(&line, width).trim_end());
        out.push('\n');
    }
    if let Some(more) = mutants.len().checked_sub(SHOWN).filter(|&n| n > 0) {
        out.push_str(&cut(
            &format!("  and {} (--json lists all)", counted(more as u64, "more mutant")),
            width,
        ));
        out.push('\n');
    }
}
