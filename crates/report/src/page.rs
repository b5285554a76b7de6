//! The terminal page: what a maintainer should know after twenty seconds.

use assay_measure::{
    FamilyRow, Mechanism, ProtocolRow, Published, Scope, Summary, SurvivorRow, WidthSummary, published,
};

use crate::Bundle;
use crate::text::{
    Side, Table, clean, columns, counted, cut, number, percent, rate, seconds, shell, tolerance, wrap,
};

/// Narrower than this no table reads; the page is then as wide as this.
const NARROWEST: usize = 40;
/// Caveats on the first screen; the HTML has all.
const CAVEATS_SHOWN: usize = 4;
/// Width of a family's bar.
const BAR: usize = 20;

impl Bundle {
    /// The first screen, and the most surprising survivors one a line. No line is wider than `width` (at least 40).
    pub fn page(&self, width: usize) -> String {
        let width = width.max(NARROWEST);
        let s = &self.summary;
        // A test of `assay_measure` excludes that the shipped figures cannot be read.
        let figures = published().ok();
        let mut out = wrap(&clean(&headline(s, figures.as_ref())), width, "", "");
        out.push('\n');
        for line in pipeline(s) {
            out.push_str(&wrap(&clean(&line), width, "", "  "));
        }
        out.push('\n');
        out.push_str(&protocols(s).draw(width));
        if let Some(note) = denominators(&s.protocols, true) {
            out.push_str(&wrap(&clean(&note), width, "", "  "));
        }
        for line in checkers(&s.protocols) {
            out.push_str(&wrap(&clean(&line), width, "", "  "));
        }
        out.push('\n');
        out.push_str(&families(s, width));
        for line in why(s, figures.as_ref()) {
            out.push_str(&wrap(&clean(&line), width, "", "  "));
        }
        out.push('\n');
        out.push_str(&suites(s).draw(width));
        for line in s.width.iter().flat_map(width_lines) {
            out.push_str(&wrap(&clean(&line), width, "", "  "));
        }
        out.push('\n');
        for line in notes(s) {
            out.push_str(&wrap(&clean(&line), width, "", "  "));
        }
        out.push('\n');
        out.push_str(&self.next(width));
        out.push_str(&listed(s, width));
        out
    }

    fn next(&self, width: usize) -> String {
        let folder = shell(&self.folder);
        let lines = [
            ("Next:", format!("assay report {folder}"), "the diffs of the survivors below"),
            ("", format!("assay suite {folder} --budget 2"), "inputs that catch nearly all"),
            ("", format!("{}/report.html", self.folder.trim_end_matches('/')), "everything, in a browser"),
        ];
        let widest = lines.iter().map(|l| columns(&clean(&l.1))).max().unwrap_or(0);
        let mut out = String::new();
        for (head, what, why) in lines {
            let what = clean(&what);
            let gap = " ".repeat(widest - columns(&what) + 2);
            let line = format!("{head:<6}{what}{gap}{why}");
            if columns(&line) <= width {
                out.push_str(&line);
                out.push('\n');
            } else {
                out.push_str(&wrap(&what, width, &format!("{head:<6}"), "        "));
            }
        }
        out
    }
}

/// The one sentence.
pub(crate) fn headline(s: &Summary, figures: Option<&Published>) -> String {
    let Some(first) = s.protocols.first() else {
        return "No protocol was scored.".to_owned();
    };
    if first.witnessed == 0 {
        let why = if s.pipeline.problems > 0 && s.pipeline.baselines_failed == s.pipeline.problems {
            "no substrate passed its own reference"
        } else if s.pipeline.distinct == 0 {
            "there is no distinct mutant"
        } else {
            "no mutant has a witness"
        };
        return format!("{} cannot be scored: {why}.", first.name);
    }
    let missed = first.witnessed - first.detected.min(first.witnessed);
    // The checker paper's own figure for its official check is of levels 1 and 2; other protocols have a rate each.
    let beside = match (figures, first.published_percent) {
        (Some(f), _) if is_official(&first.name) => format!(
            "; published {:.1}% of {} on KernelBench levels 1–2, H100",
            f.pipeline.missed_percent,
            number(f.pipeline.witnessed)
        ),
        (_, Some(p)) => format!("; published {:.1}%", 100.0 - p),
        _ => String::new(),
    };
    let share = percent(assay_measure::percent(missed, first.witnessed));
    format!(
        "{} misses {} of {} ({share}{beside}).",
        first.name,
        number(missed),
        counted(first.witnessed, "provable fault"),
    )
}

/// Is it the protocol that the paper's pipeline and families are about?
pub(crate) fn is_official(protocol: &str) -> bool {
    assay_measure::BUILTIN.first() == Some(&protocol)
}

fn pipeline(s: &Summary) -> Vec<String> {
    let p = &s.pipeline;
    let unproved = p.distinct.saturating_sub(p.witnessed + p.schedule_witnessed + p.quarantined);
    let mut lines = vec![
        format!(
            "{}, {}: {} do not compile, {} duplicate, {} equivalent;",
            counted(p.problems, "problem"),
            counted(p.generated, "mutant"),
            number(p.noncompiling),
            number(p.duplicate_image),
            number(p.equivalent),
        ),
        format!(
            "{} distinct: {} witnessed, {} only by schedule, {} unproved, {} quarantined.",
            number(p.distinct),
            number(p.witnessed),
            number(p.schedule_witnessed),
            number(unproved),
            number(p.quarantined),
        ),
    ];
    for (status, what) in [
        ("baseline_failed", "left out, the baseline fails its reference"),
        ("unrefereeable", "not scored, no kernel can be judged there"),
    ] {
        let which: Vec<String> = s
            .problems
            .iter()
            .filter(|r| r.status == status)
            .map(|r| format!("{} {}", r.problem, r.name))
            .collect();
        if !which.is_empty() {
            lines.push(format!("{} {what}: {}.", counted(which.len() as u64, "problem"), which.join(", ")));
        }
    }
    lines
}

/// Inputs asked: `5`, or `≤18` where problems differ.
pub(crate) fn inputs(p: &ProtocolRow) -> String {
    if p.inputs_median == p.inputs { number(p.inputs) } else { format!("≤{}", number(p.inputs)) }
}

/// The tolerance; `own` where an external checker judges by its own.
pub(crate) fn own_tolerance(p: &ProtocolRow) -> String {
    if p.checker.is_some() { "own".to_owned() } else { tolerance(p.atol, p.rtol) }
}

/// What external checkers are, and how often they failed by themselves.
pub(crate) fn checkers(rows: &[ProtocolRow]) -> Vec<String> {
    let line = |p: &ProtocolRow| {
        let command = p.checker.as_ref()?;
        let failed = match (p.checker_failures.unwrap_or(0), p.checker_timeouts.unwrap_or(0)) {
            (0, _) => String::new(),
            (n, 0) => format!("; it failed by itself {}: neither kills nor passes", counted(n, "time")),
            (n, late) => format!(
                "; it failed by itself {}, {} out of time: neither kills nor passes",
                counted(n, "time"),
                number(late)
            ),
        };
        Some(format!("{} is `{command}`{failed}.", p.name))
    };
    rows.iter().filter_map(line).collect()
}

/// `3/210`, correct runs rejected of those that came to a verdict.
pub(crate) fn false_kills(p: &ProtocolRow) -> String {
    format!("{}/{}", number(p.false_kills), number(p.correct_runs))
}

fn protocols(s: &Summary) -> Table {
    let exhausted = s.protocols.iter().any(|p| p.exhausted > 0);
    let unsupported = s.protocols.iter().any(|p| p.unsupported > 0);
    let mut header = vec![
        ("Protocol", Side::Left),
        ("inputs", Side::Right),
        ("atol=rtol", Side::Right),
        ("detected", Side::Right),
        ("false kills", Side::Right),
    ];
    header.extend(exhausted.then_some(("exhaust.", Side::Right)));
    header.extend(unsupported.then_some(("unsupp.", Side::Right)));
    header.push(("published", Side::Right));
    let mut t = Table::new(&header);
    for p in &s.protocols {
        let mut row =
            vec![p.name.clone(), inputs(p), own_tolerance(p), percent(p.detected_percent), false_kills(p)];
        row.extend(exhausted.then(|| number(p.exhausted)));
        row.extend(unsupported.then(|| number(p.unsupported)));
        row.push(percent(p.published_percent));
        t.row(row);
    }
    t
}

/// What the published rates are shares of; `short` leaves out what follows a comma or stands in parentheses.
pub(crate) fn denominators(rows: &[ProtocolRow], short: bool) -> Option<String> {
    let mut of: Vec<&str> = rows.iter().filter_map(|p| p.published_denominator.as_deref()).collect();
    if short {
        let end = |t: &str| [", ", " ("].iter().filter_map(|m| t.find(m)).min().unwrap_or(t.len());
        of = of.into_iter().map(|t| &t[..end(t)]).collect();
    }
    of.dedup();
    (!of.is_empty()).then(|| format!("Published: of {}.", of.join("; of ")))
}

/// The families that have mutants or published figures. One with a table of its own has no place beside the paper's
/// six.
pub(crate) fn shown_families(s: &Summary) -> impl Iterator<Item = &FamilyRow> {
    s.families.iter().filter(|f| {
        Scope::Paper.admits(&f.family) && (f.witnessed > 0 || f.published_missed_percent.is_some())
    })
}

/// How many width mutants there are, and what became of them.
pub(crate) fn width_counts(w: &WidthSummary) -> String {
    let mut parts = vec![format!("{} witnessed", number(w.witnessed))];
    if w.schedule_witnessed > 0 {
        parts.push(format!("{} only by schedule", number(w.schedule_witnessed)));
    }
    if w.quarantined > 0 {
        parts.push(format!("{} quarantined", number(w.quarantined)));
    }
    parts.push(format!("{} unwitnessed: no affordable input shows them", number(w.unwitnessed)));
    format!(
        "Width (indices beyond 32 bits), scored apart: {} of the distinct, {}.",
        number(w.distinct),
        parts.join(", ")
    )
}

/// The width family in its own lines: counts, protocols, suites.
fn width_lines(w: &WidthSummary) -> Vec<String> {
    let mut lines = vec![width_counts(w)];
    if w.witnessed > 0 {
        let protocols: Vec<String> =
            w.protocols.iter().map(|p| format!("{} {}", p.name, percent(p.detected_percent))).collect();
        let suites = w.suites.iter().take(2);
        let suites: Vec<String> = suites
            .map(|r| format!("{} {}", counted(u64::from(r.budget), "input"), percent(r.full_pool)))
            .collect();
        let chosen =
            if suites.is_empty() { String::new() } else { format!("; a suite of {}", suites.join(", of ")) };
        lines.push(format!(
            "Of the {} witnessed, detected: {}{chosen}.",
            number(w.witnessed),
            protocols.join(", ")
        ));
    }
    lines
}

fn families(s: &Summary, width: usize) -> String {
    let title = format!("Missed by {}", clean(&s.headline_protocol));
    let room = width.saturating_sub(65).min(BAR);
    let mut header = vec![
        (title.as_str(), Side::Left),
        ("faults", Side::Right),
        ("missed", Side::Right),
        ("", Side::Right),
        ("published", Side::Right),
    ];
    if room >= 10 {
        header.push(("", Side::Left));
    }
    let mut t = Table::new(&header);
    for f in shown_families(s) {
        let mut row = vec![
            f.family.clone(),
            number(f.witnessed),
            number(f.missed),
            percent(f.missed_percent),
            percent(f.published_missed_percent),
        ];
        if room >= 10 {
            row.push(bar(f.missed_percent, room));
        }
        t.row(row);
    }
    t.draw(width)
}

/// A bar over 0 to 100 percent; something above zero shows at least a sliver.
fn bar(p: Option<f64>, room: usize) -> String {
    let eighths = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let p = p.unwrap_or(0.0).clamp(0.0, 100.0);
    // At most a few hundred.
    let mut n = (p / 100.0 * room as f64 * 8.0).round() as usize;
    if p > 0.0 {
        n = n.max(1);
    }
    let mut s = "█".repeat(n / 8);
    if !n.is_multiple_of(8) {
        s.push(eighths[n % 8]);
    }
    s
}

/// Why faults survive, and how sure the rate is.
fn why(s: &Summary, figures: Option<&Published>) -> Vec<String> {
    let mut lines = Vec::new();
    let parts: Vec<String> = s
        .mechanisms
        .iter()
        .filter(|m| m.survivors > 0)
        .map(|m| match m.mechanism {
            Some(Mechanism::Schedule) => format!("schedule {} (uncounted)", number(m.survivors)),
            Some(mechanism) => format!("{} {}", mechanism.phrase(), number(m.survivors)),
            None => format!("unexplained {}", number(m.survivors)),
        })
        .collect();
    if !parts.is_empty() {
        lines.push(format!("Survive by: {}.", parts.join(", ")));
    }
    if let (Some(d), Some(band)) = (&s.statistics.per_problem, s.statistics.bands.last()) {
        let beside = figures.filter(|_| is_official(&s.headline_protocol)).map_or_else(String::new, |f| {
            format!(" (published {:.1}%)", f.official.median_problem_missed_percent)
        });
        lines.push(format!(
            "Median problem {:.1}%{beside}; 90% band over {}: {:.1}–{:.1}%.",
            d.median,
            counted(band.problems, "problem"),
            band.low,
            band.high
        ));
    }
    lines
}

fn suites(s: &Summary) -> Table {
    let mut t = Table::new(&[
        ("Suite of", Side::Left),
        ("all faults", Side::Right),
        ("published", Side::Right),
        ("held out", Side::Right),
        ("published", Side::Right),
    ]);
    for r in &s.suites {
        t.row(vec![
            format!("{} a problem", counted(u64::from(r.budget), "input")),
            percent(r.full_pool),
            percent(r.published_full_pool),
            percent(r.held_out),
            percent(r.published_held_out),
        ]);
    }
    t
}

/// The worst problem, the sanitizer, the caveats, times.
fn notes(s: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(w) = &s.worst_problem {
        lines.push(format!(
            "Worst: {} {} ({} missed): {}.",
            w.problem,
            w.name,
            percent(w.missed_percent),
            w.why
        ));
    }
    lines.push(sanitizer(s));
    for c in s.caveats.iter().take(CAVEATS_SHOWN) {
        lines.push(format!("Note: {}.", short(c)));
    }
    if let Some(more) = s.caveats.len().checked_sub(CAVEATS_SHOWN).filter(|&n| n > 0) {
        lines.push(format!("Note: {} in report.html.", counted(more as u64, "more caveat")));
    }
    lines.push(timing(s));
    lines
}

pub(crate) fn sanitizer(s: &Summary) -> String {
    let z = &s.sanitizer;
    if z.mutants_flagged == 0 {
        return "Sanitizer: reports none of the mutants.".to_owned();
    }
    format!(
        "Sanitizer: flags {}; {} of them pass {}, {} have no witness at all.",
        counted(z.mutants_flagged, "mutant"),
        number(z.flagged_and_missed_by_official),
        s.official_protocol,
        number(z.flagged_and_not_witnessed),
    )
}

/// A caveat up to what explains it.
fn short(caveat: &str) -> &str {
    let end = caveat.find("; ").unwrap_or(caveat.len());
    caveat[..end].trim_end_matches('.')
}

pub(crate) fn timing(s: &Summary) -> String {
    let t = &s.timing;
    format!(
        "Time: {}; {} ({}/s), {} ms to compile a mutant.",
        seconds(t.wall_seconds),
        counted(t.evaluations, "evaluation"),
        rate(t.evaluations_per_second),
        rate(t.compile_ms_per_mutant),
    )
}

/// The survivors, one a line.
fn listed(s: &Summary, width: usize) -> String {
    if s.survivors.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nMost surprising survivors\n");
    for (i, v) in s.survivors.iter().enumerate() {
        let head = format!(
            "{:>2}  {:<6} {:<13}  ",
            i + 1,
            clean(&v.problem),
            v.mechanism.map_or("–", Mechanism::phrase)
        );
        let (line, what) = described(&v.name);
        out.push_str(&cut(&format!("{head}{}{}", clean(&line), clean(what)), width));
        out.push('\n');
    }
    out
}

/// A mutant's name as its line (`line 4: `, empty where the name has none) and what it does.
fn described(name: &str) -> (String, &str) {
    let mut parts = name.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(line), Some(column), Some(what))
            if line.parse::<u64>().is_ok() && column.parse::<u64>().is_ok() =>
        {
            (format!("line {line}: "), what.trim_start())
        }
        _ => (String::new(), name),
    }
}

/// The mutant's name without the folders of its file.
pub(crate) fn place(v: &SurvivorRow) -> &str {
    let file_end = v.name.find(':').unwrap_or(0);
    let start = v.name[..file_end].rfind('/').map_or(0, |at| at + 1);
    &v.name[start..]
}
