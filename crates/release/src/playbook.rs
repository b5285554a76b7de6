//! A page for each family: what its faults are, what misses them and why, which inputs catch them.

use assay_measure::{Mechanism, Protocol, percent};
use assay_report::diff::changed;
use assay_report::text::{counted, number, percent as shown, shell, threshold, tolerance};

use crate::md;
use crate::tally::{Example, FamilyTally, Tally};
use crate::taxonomy::{capital, rules, what};

/// Problems in the table of the worst.
const WORST: usize = 8;
/// Rules in the table of the worst.
const WORST_RULES: usize = 8;

/// Is there anything to say of the family?
pub fn has(tally: &Tally, family: &str) -> bool {
    tally.families.get(family).is_some_and(|f| f.counts.distinct > 0)
}

/// The page's name; a family is a word of ours or of a run from outside.
pub fn file_name(family: &str) -> String {
    let word: String = family.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{word}.md")
}

/// How to see a mutant fail, from its problem's folder.
pub fn replay(problem: &str, mutant: &str, recipe: &str) -> String {
    format!(
        "patch -o mutant.cu kernel.cu mutants/{mutant}.diff\nassay check mutant.cu --problem {} --input {} --scope general",
        shell(problem),
        shell(recipe)
    )
}

/// The page of a family.
pub fn page(tally: &Tally, family: &str, protocols: &[Protocol]) -> String {
    let Some(f) = tally.families.get(family) else { return String::new() };
    let headline = protocols.first().map_or("", |p| p.name.as_str());
    let mut out = format!("# Playbook: {} faults\n\n", md::text(family));
    if !what(family).is_empty() {
        out.push_str(&format!("{}.\n\n", capital(what(family))));
    }
    let missed = f.counts.missed.first().copied().unwrap_or(0);
    out.push_str(&format!(
        "{} in this run, {} of them proved wrong by a valid input. {} misses {} of those ({}).\n",
        counted(f.counts.distinct, "distinct mutant"),
        number(f.counts.witnessed),
        md::code(headline),
        number(missed),
        shown(percent(missed, f.counts.witnessed)),
    ));
    if f.counts.witnessed == 0 {
        out.push_str(
            "\nNo input that a CPU affords shows any of them, so there is nothing that a protocol could catch: the \
             rules and their mutants are in `taxonomy.md` and `mutants.parquet`.\n",
        );
        return out;
    }
    out.push_str(&checks(f, protocols));
    out.push_str(&inputs(tally, family, f, headline));
    out.push_str(&worst_rules(tally, family, headline));
    out.push_str(&worst_problems(f, headline));
    out.push_str(&examples(f, headline));
    out
}

fn checks(f: &FamilyTally, protocols: &[Protocol]) -> String {
    let mut out = String::from(
        "\n## Which checks miss them, and why\n\nA missed fault has one mechanism: its error is there on what the check \
         asks and the *tolerance* forgives it; the *values* that it asks never excite it and others of the same shape \
         do; only another *shape* excites it.\n\n",
    );
    let rows: Vec<Vec<String>> = protocols
        .iter()
        .enumerate()
        .map(|(p, protocol)| {
            let missed = f.counts.missed.get(p).copied().unwrap_or(0);
            let by = f.mechanisms.get(p).copied().unwrap_or_default();
            let at = |m: Mechanism| Mechanism::ALL.iter().position(|&x| x == m).map_or(0, |k| by[k]);
            vec![
                md::code(&protocol.name),
                tolerance(protocol.atol, protocol.rtol),
                shown(percent(f.counts.witnessed - missed, f.counts.witnessed)),
                number(missed),
                number(at(Mechanism::Tolerance)),
                number(at(Mechanism::InputSupport)),
                number(at(Mechanism::Shape)),
                number(at(Mechanism::Schedule) + by[Mechanism::ALL.len()]),
            ]
        })
        .collect();
    let header =
        ["Check", "tolerance", "detected", "missed", "by tolerance", "by values", "by shape", "other"];
    out.push_str(&md::table(&header, &rows));
    let missed = f.counts.missed.first().copied().unwrap_or(0);
    out.push_str(&format!(
        "\nThe sanitizer, which looks at accesses and not at numbers, reports {} of the {} witnessed ({}), and {} of the \
         {} that the first check misses.\n",
        number(f.counts.witnessed_flagged),
        number(f.counts.witnessed),
        shown(percent(f.counts.witnessed_flagged, f.counts.witnessed)),
        number(f.missed_flagged),
        number(missed),
    ));
    if f.counts.schedule_witnessed > 0 {
        out.push_str(&format!(
            "{} more fail only under the schedule in which one warp runs ahead; they are in no rate here.\n",
            number(f.counts.schedule_witnessed)
        ));
    }
    out
}

fn inputs(tally: &Tally, family: &str, f: &FamilyTally, headline: &str) -> String {
    let mut out = format!(
        "\n## Which inputs catch them\n\nWitnessed faults killed at 1e-2, by kind of input. *met*: faults of problems \
         with such an input; *of the missed*: killed ones that {} misses; *alone*: killed by no other kind.\n\n",
        md::code(headline)
    );
    let mut groups: Vec<_> = f.groups.iter().collect();
    groups.sort_by(|a, b| {
        b.1.killed_missed.cmp(&a.1.killed_missed).then(b.1.killed.cmp(&a.1.killed)).then(a.0.cmp(b.0))
    });
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|(g, t)| {
            vec![
                g.label(),
                md::text(g.what()),
                number(t.met),
                number(t.killed),
                shown(percent(t.killed, t.met)),
                number(t.killed_missed),
                number(t.alone),
            ]
        })
        .collect();
    let header = ["Inputs", "values", "met", "killed", "share", "of the missed", "alone"];
    out.push_str(&md::table(&header, &rows));
    let best = tally.best_groups(family);
    if !best.is_empty() {
        let steps: Vec<String> = best
            .iter()
            .take(6)
            .map(|(g, killed)| format!("{} ({})", g.label(), shown(percent(*killed, f.counts.witnessed))))
            .collect();
        out.push_str(&format!(
            "\nTaken one after the other, each the best beside those before it, with what is killed by then: {}.\n",
            steps.join("; then ")
        ));
    }
    out
}

fn worst_rules(tally: &Tally, family: &str, headline: &str) -> String {
    let mut all = rules(tally, family);
    all.retain(|r| r.counts.missed.first().is_some_and(|&n| n > 0));
    let missed = |c: &crate::tally::Counts| c.missed.first().copied().unwrap_or(0);
    all.sort_by(|a, b| missed(&b.counts).cmp(&missed(&a.counts)).then(a.id.cmp(b.id)));
    if all.is_empty() {
        return format!("\n{} misses none of them.\n", md::code(headline));
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .take(WORST_RULES)
        .map(|r| {
            vec![
                md::code(r.id),
                md::text(r.info.map_or("", |i| i.reason)),
                number(r.counts.witnessed),
                number(missed(&r.counts)),
                shown(percent(missed(&r.counts), r.counts.witnessed)),
            ]
        })
        .collect();
    format!(
        "\n## The rules that get past most\n\n{}",
        md::table(&["Rule", "The fault", "witnessed", "missed", "share"], &rows)
    )
}

fn worst_problems(f: &FamilyTally, headline: &str) -> String {
    let mut problems: Vec<_> = f.problems.iter().filter(|p| p.missed > 0).collect();
    // Stable: of equal ones the first in the order of problems.
    problems.sort_by_key(|p| std::cmp::Reverse(p.missed));
    if problems.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = problems
        .iter()
        .take(WORST)
        .map(|p| {
            vec![
                md::code(&p.problem),
                md::text(&p.name),
                number(p.witnessed),
                number(p.missed),
                shown(percent(p.missed, p.witnessed)),
            ]
        })
        .collect();
    format!(
        "\n## The problems where {} misses most\n\n{}",
        md::code(headline),
        md::table(&["Problem", "", "witnessed", "missed", "share"], &rows)
    )
}

fn examples(f: &FamilyTally, headline: &str) -> String {
    let shown = f.examples();
    if shown.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n## Survivors to look at\n");
    for e in shown {
        out.push_str(&example(e, headline));
    }
    out
}

fn example(e: &Example, headline: &str) -> String {
    let (key, name) = &e.problem;
    let mut out = format!("\n### {} {}: {}\n\n", md::text(key), md::text(name), md::code(&e.rule));
    let lines: Vec<String> = changed(&e.diff, 2)
        .iter()
        .map(|l| if l.mark == '…' { "…".to_owned() } else { format!("{}{}", l.mark, l.text) })
        .collect();
    out.push_str(&format!("{}\n\n", md::code(&e.name)));
    out.push_str(&md::block("diff", &lines.join("\n")));
    let why = match e.mechanism {
        Some(Mechanism::Tolerance) => "the tolerance forgives what its inputs show",
        Some(Mechanism::InputSupport) => "the values that it asks never excite the fault",
        Some(Mechanism::Shape) => "only another shape excites the fault",
        Some(Mechanism::Schedule) => "only another schedule excites the fault",
        None => "the run does not say why",
    };
    out.push_str(&format!(
        "\n{} accepts it: {why}; the largest error on what it asks is {}.{}\n",
        md::code(headline),
        threshold(e.asked),
        if e.flagged { " The sanitizer reports it." } else { "" }
    ));
    if let Some((recipe, t)) = &e.witness {
        out.push_str(&format!(
            "Witness: {}, {}. In `{}`:\n\n{}",
            md::code(recipe),
            if t.is_finite() {
                format!("where the error is {} (wrong from 1e-2 on)", threshold(*t))
            } else {
                "where its output is missing or not finite".to_owned()
            },
            e.folder,
            md::block("sh", &replay(key, &e.id, recipe))
        ));
    }
    out
}
