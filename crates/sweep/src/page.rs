//! `report.html` of a run folder: one file for a browser, no script, nothing loaded from anywhere, light and dark.
//!
//! Messages, operators and names come from workers and from files of others: every value is escaped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use assay_tensor::DType;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use crate::condition::{count, dtype, parse_count};
use crate::drive::{Summary, write_whole};
use crate::error::SweepError;
use crate::misread::Misreading;
use crate::record::{Outcome, Record, TensorResult};
use crate::rules;
use crate::text::grouped;
use crate::values::Kind;

const TEMPLATE: &str = include_str!("page.html.jinja");
/// The page in a run folder.
pub const PAGE: &str = "report.html";

/// Geometry of the map, in SVG units.
const CELL: u64 = 15;
const ROW: u64 = 18;
const HEAD: u64 = 74;
const SHAPE_GAP: u64 = 8;
/// A size this many batches from a boundary belongs to its neighbourhood.
const NEAR: u64 = 3;
/// Strips of wrong batches that a page shows.
const MAX_STRIPS: usize = 60;
/// Width of a strip, in SVG units.
const STRIP: f64 = 300.0;

/// Writes `report.html` beside the summary. `marks` are the boundaries, in elements.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(out: &Path, summary: &Summary, records: &[Record], marks: &[u64]) -> Result<(), SweepError> {
    write_whole(&out.join(PAGE), &html(summary, records, marks)?)
}

/// Boundaries as the command line has them (`2^31`, `2^32 bytes`), in elements of each of these dtypes.
pub fn marks(boundaries: &[String], dtypes: impl Iterator<Item = DType>) -> Vec<u64> {
    let sizes: BTreeSet<u64> = dtypes.map(DType::size_bytes).filter(|&s| s > 0).collect();
    let mut out = BTreeSet::new();
    for text in boundaries {
        match text.trim().strip_suffix("bytes") {
            Some(n) => out.extend(parse_count(n).iter().flat_map(|n| sizes.iter().map(move |s| n / s))),
            None => out.extend(parse_count(text)),
        }
    }
    out.into_iter().collect()
}

/// The whole page.
///
/// # Errors
/// Records that are none; a template that does not fit, which a test excludes.
pub fn html(summary: &Summary, records: &[Record], marks: &[u64]) -> Result<String, SweepError> {
    let failed = |e: minijinja::Error| SweepError::bad(format!("the page cannot be made: {e:#}"));
    let mut environment = Environment::new();
    // Every value is escaped, whatever the template is called.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?;
    environment.set_syntax(syntax);
    environment.add_template("page", TEMPLATE).map_err(failed)?;
    let template = environment.get_template("page").map_err(failed)?;
    template.render(Serde(context(summary, records, marks)?)).map_err(failed)
}

/// Text of others as one line without control and direction characters.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' => '\u{fffd}',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

fn letter(o: Outcome) -> &'static str {
    match o {
        Outcome::Ok => "\u{b7}",
        Outcome::Error => "E",
        Outcome::Crash => "C",
        Outcome::Timeout => "H",
        Outcome::Wrong => "W",
        Outcome::Truncated => "T",
        Outcome::InputCorrupt => "I",
        Outcome::Skipped => "s",
    }
}

fn meaning(o: Outcome) -> &'static str {
    match o {
        Outcome::Ok => "every compared element is right",
        Outcome::Error => "an exception was raised",
        Outcome::Crash => "the process ended without a result",
        Outcome::Timeout => "no result within the limit",
        Outcome::Wrong => "wrong values, nothing said so",
        Outcome::Truncated => "wrong, at least 90% of the wrong elements are zero",
        Outcome::InputCorrupt => "the inputs on the device are not those that were sent",
        Outcome::Skipped => "not run: more memory than allowed",
    }
}

/// The series of a record: shape, dtype and layout; of a case its name and dtype.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    shape: String,
    rest: String,
}

impl Name {
    fn of(r: &Record, case: bool) -> Name {
        let pass = if r.backward() { " grad" } else { "" };
        match case {
            true => Name { shape: clean(&r.op), rest: clean(&r.dtype) },
            false => {
                let shape = if r.shape_id.is_empty() {
                    format!("{},{},{}", r.m, r.k, r.n)
                } else {
                    r.shape_id.clone()
                };
                Name { shape: clean(&shape), rest: clean(&format!("{} {}{pass}", r.dtype, r.layout)) }
            }
        }
    }

    fn whole(&self) -> String {
        format!("{} {}", self.shape, self.rest)
    }
}

/// A row of a map: what was seen at every size.
struct MapRow {
    shape: String,
    label: String,
    /// Elements of one batch of the tensor that crosses, or of the larger operand behind leading batches.
    per: u64,
    cells: BTreeMap<u64, Vec<Outcome>>,
}

/// Adds what a record says of its tensors to `rows`; the rows of a backward pass are those of its three tensors.
fn add_row(rows: &mut Vec<MapRow>, r: &Record, name: &Name, kind: &str) -> Result<(), SweepError> {
    let outcome = r.outcome()?;
    let offset = r.layout == "offset";
    let size = if offset { r.pad_batches.unwrap_or(0) } else { r.b };
    let per = if offset {
        (r.m * r.k).max(r.k * r.n)
    } else if r.b > 0 && r.crossing_numel >= r.b {
        r.crossing_numel / r.b
    } else {
        (r.m * r.k).max(r.k * r.n).max(r.m * r.n)
    };
    let mut parts: Vec<(String, Outcome)> = Vec::new();
    if r.backward() {
        let classes = [("out", &r.cls_out), ("grad a", &r.cls_grad_a), ("grad b", &r.cls_grad_b)];
        let stopped = matches!(outcome, Outcome::Error | Outcome::Crash | Outcome::Timeout);
        for (i, (tensor, class)) in classes.into_iter().enumerate() {
            let of = match class.as_deref().and_then(Outcome::parse) {
                Some(o) => o,
                // What was not reached has no cell; where the run stopped is the pass that it names.
                None if stopped && (i > 0) == (r.stage.as_deref() == Some("backward")) => outcome,
                None if !stopped && i == 0 => outcome,
                None => continue,
            };
            parts.push((format!("{} {tensor}", name.rest), of));
        }
    } else {
        parts.push((name.rest.clone(), outcome));
    }
    for (mut label, outcome) in parts {
        if !kind.is_empty() {
            label = format!("{label} {kind}");
        }
        let at = match rows.iter().position(|x| x.shape == name.shape && x.label == label && x.per == per) {
            Some(at) => at,
            None => {
                rows.push(MapRow { shape: name.shape.clone(), label, per, cells: BTreeMap::new() });
                rows.len() - 1
            }
        };
        let cell = rows[at].cells.entry(size).or_default();
        if !cell.contains(&outcome) {
            cell.push(outcome);
        }
    }
    Ok(())
}

/// A column: near a boundary so many batches from it, or a size of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    /// Elements, in the neighbourhood of a boundary the boundary's.
    elements: u64,
    /// Batches from the boundary.
    from: Option<i64>,
}

fn column(size: u64, per: u64, marks: &[u64]) -> Column {
    let near = marks.iter().filter(|&&m| m / per > NEAR).min_by_key(|&&m| (m / per).abs_diff(size));
    match near {
        Some(&m) if (m / per).abs_diff(size) <= NEAR => {
            let from = i64::try_from(size).unwrap_or(0) - i64::try_from(m / per).unwrap_or(0);
            Column { elements: m, from: Some(from) }
        }
        _ => Column { elements: size.saturating_mul(per), from: None },
    }
}

/// Maps, one for all rows with as many elements a batch, so that its columns are exact sizes; cases in one.
fn maps(rows: &[MapRow], marks: &[u64], cases: bool) -> Vec<Value> {
    let mut pers: Vec<u64> = Vec::new();
    for r in rows {
        if !pers.contains(&r.per) {
            pers.push(r.per);
        }
    }
    if cases {
        return if rows.is_empty() {
            Vec::new()
        } else {
            vec![map(&rows.iter().collect::<Vec<_>>(), marks, None)]
        };
    }
    pers.iter()
        .map(|&per| map(&rows.iter().filter(|r| r.per == per).collect::<Vec<_>>(), marks, Some(per)))
        .collect()
}

fn map(rows: &[&MapRow], marks: &[u64], per: Option<u64>) -> Value {
    let mut columns: BTreeMap<Column, u64> = BTreeMap::new();
    for r in rows {
        for &size in r.cells.keys() {
            columns.insert(column(size, r.per, marks), size);
        }
    }
    let order: Vec<(Column, u64)> = columns.into_iter().collect();
    // A gap before and after each neighbourhood.
    let mut x_of: BTreeMap<Column, u64> = BTreeMap::new();
    let widest = |f: fn(&MapRow) -> &str| rows.iter().map(|r| f(r).chars().count() as u64).max().unwrap_or(0);
    let left = (20 + 7 * (widest(|r| &r.shape) + widest(|r| &r.label))).max(170);
    let mut x = left;
    let mut heads = Vec::new();
    let mut brackets: Vec<(u64, u64, u64)> = Vec::new();
    for (i, &(c, size)) in order.iter().enumerate() {
        let group = |c: Column| c.from.map(|_| c.elements);
        if i > 0 && group(order[i - 1].0) != group(c) {
            x += 5;
        }
        x_of.insert(c, x);
        let label = match (per, c.from) {
            (Some(_), _) => grouped(size),
            (None, Some(from)) => match from {
                0 => "0".to_owned(),
                f if f > 0 => format!("+{f}"),
                f => format!("\u{2212}{}", -f),
            },
            (None, None) => count(c.elements),
        };
        heads.push(json!({"x": x + CELL / 2 + 3, "label": label, "key": c.from == Some(0)}));
        if c.from.is_some() {
            match brackets.last_mut() {
                Some(b) if b.0 == c.elements => b.2 = x + CELL - 2,
                _ => brackets.push((c.elements, x, x + CELL - 2)),
            }
        }
        x += CELL;
    }
    let mut y = HEAD;
    let mut drawn = Vec::new();
    for (i, r) in rows.iter().enumerate() {
        let fresh = i == 0 || rows[i - 1].shape != r.shape;
        if fresh && i > 0 {
            y += SHAPE_GAP;
        }
        let cells: Vec<Value> = r
            .cells
            .iter()
            .filter_map(|(&size, outcomes)| {
                let worst = outcomes.iter().copied().max_by_key(|o| (o.silent(), *o != Outcome::Ok, *o))?;
                let names: Vec<&str> = outcomes.iter().map(|o| o.name()).collect();
                Some(json!({
                    "x": x_of.get(&column(size, r.per, marks))?,
                    "o": worst.name(),
                    "letter": letter(worst),
                    "title": format!("{} {}, {} batches of {} = {} elements: {}",
                        r.shape, r.label, grouped(size), grouped(r.per),
                        grouped(size.saturating_mul(r.per)), names.join(" and ")),
                }))
            })
            .collect();
        drawn.push(json!({
            "y": y,
            "shape": if fresh { r.shape.as_str() } else { "" },
            "label": r.label,
            "cells": cells,
        }));
        y += ROW;
    }
    let brackets: Vec<Value> = brackets
        .iter()
        .map(|&(m, a, b)| json!({"label": count(m), "from": a, "to": b, "middle": (a + b) / 2}))
        .collect();
    let keys: Vec<u64> =
        order.iter().filter(|o| o.0.from == Some(0)).filter_map(|o| x_of.get(&o.0).copied()).collect();
    json!({
        "width": x + 4,
        "least": (x + 4).min(736),
        "labels": left - 8,
        "height": y + 4,
        "head": HEAD,
        "rows": drawn,
        "columns": heads,
        "brackets": brackets,
        "keys": keys,
        "per": per.map(grouped),
    })
}

fn context(summary: &Summary, records: &[Record], marks: &[u64]) -> Result<Value, SweepError> {
    let case = summary.plan == "cases";
    let mut marks: Vec<u64> = marks.iter().copied().filter(|&m| m > 0).collect();
    // Far points lie about twice a boundary.
    marks.extend(marks.iter().max().and_then(|m| m.checked_mul(2)));
    marks.sort_unstable();
    marks.dedup();
    let (mut random, mut encoded) = (Vec::new(), Vec::new());
    for r in records.iter().filter(|r| case || !r.calibration()) {
        let name = Name::of(r, case);
        match r.input() {
            Kind::Random => add_row(&mut random, r, &name, "")?,
            kind => add_row(&mut encoded, r, &name, kind.name())?,
        }
    }
    let counts: Vec<Value> = Outcome::ALL
        .iter()
        .filter_map(|o| {
            let n = summary.outcomes.get(o.name()).copied().filter(|&n| n > 0)?;
            Some(json!({
                "name": o.name().replace('_', " "), "class": o.name(), "letter": letter(*o),
                "n": grouped(n as u64), "what": meaning(*o),
            }))
        })
        .collect();
    let versions: BTreeSet<String> = records.iter().map(Record::version).filter(|v| !v.is_empty()).collect();
    let devices: BTreeSet<&str> =
        records.iter().map(|r| r.device.as_str()).filter(|d| !d.is_empty()).collect();
    let dtypes: BTreeSet<DType> = records.iter().filter_map(|r| dtype(&r.dtype)).collect();
    let bytes: Vec<String> = dtypes
        .iter()
        .filter(|d| d.size_bytes() > 1 && marks.contains(&((1 << 32) / d.size_bytes())))
        .map(|d| format!("{} elements of {d}", count((1 << 32) / d.size_bytes())))
        .collect();
    let tolerance: Vec<Value> =
        summary.tolerance.iter().map(|(d, t)| json!({"name": d, "tol": format!("{t:.2e}")})).collect();
    Ok(json!({
        "title": format!("Sweep: {} on {}", clean(&summary.plan), clean(&summary.backend)),
        "headline": headline(summary),
        "plan": clean(&summary.plan),
        "backend": clean(&summary.backend),
        "devices": clean(&devices.into_iter().collect::<Vec<_>>().join(", ")),
        "versions": clean(&versions.into_iter().collect::<Vec<_>>().join(", ")),
        "environment": environment(records),
        "runs": grouped(summary.runs as u64),
        "calibration": grouped(summary.calibration as u64),
        "sizes": grouped(summary.batch_sizes as u64),
        "counts": counts,
        "tolerance": tolerance,
        "bytes": bytes.join(" and "),
        "case": case,
        "offset": records.iter().any(|r| r.layout == "offset"),
        "maps": maps(&random, &marks, case),
        "encoded": maps(&encoded, &marks, case),
        "switches": switches(summary),
        "rules": if case { Value::Null } else { learned(records)? },
        "wrong": wrong(records, case)?,
        "strips": strips(records, case, &marks)?,
        "messages": messages(records, case)?,
        "cases": if case { case_rows(records)? } else { Vec::new() },
    }))
}

fn headline(s: &Summary) -> String {
    let n = |o: Outcome| s.outcomes.get(o.name()).copied().unwrap_or(0);
    let silent: usize = Outcome::ALL.iter().filter(|o| o.silent()).map(|o| n(*o)).sum();
    let stopped = n(Outcome::Error) + n(Outcome::Crash) + n(Outcome::Timeout);
    let what = if s.plan == "cases" { "Operations" } else { "bmm" };
    let on = clean(&s.backend);
    let ran = s.runs - n(Outcome::Skipped);
    let all = grouped(ran as u64);
    let stops =
        if stopped == 0 { String::new() } else { format!(", {} fail with a sign", grouped(stopped as u64)) };
    match (silent, stopped) {
        _ if ran == 0 => format!("{what} on {on}: no run fitted the memory"),
        (0, 0) => format!("{what} on {on}: all {all} runs are right"),
        (0, _) => format!("{what} on {on}: no run of {all} is silently wrong{stops}"),
        _ => format!(
            "{what} on {on}: {} of {all} runs {} silently wrong{stops}",
            grouped(silent as u64),
            if silent == 1 { "is" } else { "are" }
        ),
    }
}

/// What the workers said of themselves, once each.
fn environment(records: &[Record]) -> Vec<Value> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for r in records {
        for (k, v) in r.environment.as_object().into_iter().flatten() {
            let text = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
            if !v.is_null() && !text.is_empty() {
                all.entry(clean(k)).or_default().insert(clean(&text));
            }
        }
    }
    all.into_iter().map(|(k, v)| json!([k, v.into_iter().take(6).collect::<Vec<_>>().join(", ")])).collect()
}

/// Switch points, series that share one together.
fn switches(s: &Summary) -> Vec<Value> {
    let mut all: BTreeMap<(u64, u64, Outcome, Outcome), Vec<String>> = BTreeMap::new();
    for x in &s.series {
        for w in &x.switch_points {
            let name = if s.plan == "cases" {
                format!("{} {}", x.shape, x.dtype)
            } else {
                format!("{} {} {}", x.shape, x.dtype, x.layout)
            };
            all.entry((w.below, w.above, w.from, w.to)).or_default().push(clean(&name));
        }
    }
    all.into_iter()
        .map(|((below, above, from, to), series)| {
            json!({
                "below": grouped(below), "above": grouped(above),
                "from": from.name(), "to": to.name(), "from_letter": letter(from), "to_letter": letter(to),
                "exact": above - below == 1, "series": series,
            })
        })
        .collect()
}

/// What a misreading is, in words.
fn reading_words(name: &str) -> String {
    let Some(m) = Misreading::parse(name) else { return clean(name) };
    let mut parts = Vec::new();
    if m.ignore_strides {
        parts.push("the strides of a transposed operand are ignored".to_owned());
    }
    if let Some(at) = m.wrap {
        parts.push(format!("the index into an operand wraps at {}", count(at)));
    }
    if m.ignore_offset {
        parts.push("the offset of a view is ignored".to_owned());
    }
    parts.join(" and ")
}

/// Misreadings that fit alike, in words: without those of which a part alone does the same, wraps in one.
fn readings(names: &[&str]) -> Vec<String> {
    let all: Vec<Misreading> = names.iter().filter_map(|n| Misreading::parse(n)).collect();
    let part = |a: &Misreading, b: &Misreading| {
        a != b
            && (!a.ignore_strides || b.ignore_strides)
            && (!a.ignore_offset || b.ignore_offset)
            && (a.wrap.is_none() || a.wrap == b.wrap)
    };
    let simple = all.iter().filter(|m| !all.iter().any(|other| part(other, m)));
    let (wraps, others): (Vec<&Misreading>, Vec<&Misreading>) =
        simple.partition(|m| m.wrap.is_some() && !m.ignore_strides && !m.ignore_offset);
    let mut out: Vec<String> = others.iter().map(|m| reading_words(&m.name())).collect();
    let at: Vec<String> = wraps.iter().filter_map(|m| m.wrap.map(count)).collect();
    if !at.is_empty() {
        out.push(format!("the index into an operand wraps at {}", at.join(" or ")));
    }
    out
}

/// The rules of every group of versions that behave alike; a reason where none can be learned.
fn learned(records: &[Record]) -> Result<Value, SweepError> {
    let groups = match rules::learn_by_version(records) {
        Ok(groups) => groups,
        Err(e) => return Ok(json!({"refused": clean(&e.to_string()), "groups": []})),
    };
    let mut out = Vec::new();
    for g in &groups {
        let own: Vec<Record> =
            records.iter().filter(|r| g.versions.contains(&r.version())).cloned().collect();
        let score = rules::apply(&g.learned.rules, &own)?;
        let rows: Vec<Value> = g
            .learned
            .rules
            .iter()
            .zip(&score.decided)
            .map(|(r, &n)| {
                let t = r.text(n);
                json!({
                    "words": clean(if t.words.is_empty() { &t.when } else { &t.words }),
                    "when": clean(&t.when),
                    "outcome": t.outcome.name(), "letter": letter(t.outcome),
                    "extent": clean(&t.extent), "reading": reading_words(&t.reading),
                    "runs": grouped(n as u64),
                })
            })
            .collect();
        let parts: Vec<Value> = [
            ("random inputs", score.random),
            ("index-encoded inputs", score.index),
            ("backward passes", score.backward),
        ]
        .into_iter()
        .filter(|(_, s)| s.1 > 0)
        .map(|(name, s)| json!({"name": name, "hit": grouped(s.0 as u64), "all": grouped(s.1 as u64)}))
        .collect();
        out.push(json!({
            "versions": if groups.len() > 1 { clean(&g.versions.join(", ")) } else { String::new() },
            "rules": rows,
            "hit": grouped(score.reproduced() as u64),
            "all": grouped(score.total() as u64),
            "whole": score.reproduced() == score.total(),
            "parts": parts,
            "unchanged": grouped(score.index_unchanged as u64),
            "any_unchanged": score.index_unchanged > 0,
            "undecided": g.learned.undecided.iter().map(|u| clean(u)).collect::<Vec<_>>(),
            "misses": score.misses.iter().map(|m| clean(m)).collect::<Vec<_>>(),
        }));
    }
    Ok(json!({"refused": Value::Null, "groups": out}))
}

/// The tensors of a record with wrong elements.
fn wrong_tensors(r: &Record) -> impl Iterator<Item = (&String, &TensorResult)> {
    r.tensors.iter().filter(|(_, t)| Outcome::parse(&t.cls).is_some_and(Outcome::silent))
}

#[derive(Default)]
struct WrongRow {
    runs: usize,
    sizes: BTreeSet<u64>,
    /// The smallest fraction that a hypothesis reproduces; only those that every run was asked.
    fractions: Option<BTreeMap<String, f64>>,
    shifts: BTreeMap<i64, u64>,
    misplaced: Option<[u64; 4]>,
    error: Option<(f64, f64)>,
}

/// What the wrong values are, by series, inputs and tensor.
fn wrong(records: &[Record], case: bool) -> Result<Vec<Value>, SweepError> {
    let mut all: Vec<((Name, &'static str, String), WrongRow)> = Vec::new();
    for r in records.iter().filter(|r| !r.calibration()) {
        if !r.outcome()?.silent() {
            continue;
        }
        for (tensor, t) in wrong_tensors(r) {
            let key = (Name::of(r, case), r.input().name(), clean(tensor));
            let at = match all.iter().position(|x| x.0 == key) {
                Some(at) => at,
                None => {
                    all.push((key, WrongRow::default()));
                    all.len() - 1
                }
            };
            let row = &mut all[at].1;
            row.runs += 1;
            row.sizes.insert(if r.layout == "offset" { r.pad_batches.unwrap_or(0) } else { r.b });
            match &mut row.fractions {
                None => row.fractions = Some(t.hyp_match.clone()),
                Some(known) => {
                    known.retain(|k, _| t.hyp_match.contains_key(k));
                    for (k, f) in known.iter_mut() {
                        *f = f.min(t.hyp_match.get(k).copied().unwrap_or(0.0));
                    }
                }
            }
            for (shift, n) in &t.shifts {
                if let Ok(s) = shift.parse::<i64>() {
                    *row.shifts.entry(s).or_insert(0) += n;
                }
            }
            row.misplaced = row.misplaced.or(t.misplaced.first().copied());
            if let Some(e) = t.max_rel_err {
                row.error = Some(row.error.map_or((e, e), |(a, b)| (a.min(e), b.max(e))));
            }
        }
    }
    // Series of which the same is to be said share a line.
    let mut lines: Vec<WrongLine> = Vec::new();
    for ((name, kind, tensor), row) in all {
        let mut best: Vec<(String, f64)> = row.fractions.unwrap_or_default().into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let top = best.first().map_or(0.0, |b| b.1);
        best.retain(|b| b.1 > 0.0 && b.1 >= top);
        let sizes: Vec<String> = row.sizes.iter().take(3).map(|s| grouped(*s)).collect();
        let more = row.sizes.len().saturating_sub(3);
        let line = WrongLine {
            series: vec![name.whole()],
            runs: row.runs,
            error: row.error,
            said: (
                kind,
                if tensor == "out" { String::new() } else { tensor },
                sizes.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() },
                readings(&best.iter().map(|b| b.0.as_str()).collect::<Vec<_>>()),
                share(top),
                decoded(row.shifts, row.misplaced),
            ),
        };
        match lines.iter_mut().find(|l| l.said == line.said) {
            Some(l) => {
                l.series.extend(line.series);
                l.runs += line.runs;
                l.error = match (l.error, line.error) {
                    (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                    (a, b) => a.or(b),
                };
            }
            None => lines.push(line),
        }
    }
    Ok(lines
        .into_iter()
        .map(|l| {
            let (kind, tensor, sizes, readings, share, decoded) = l.said;
            json!({
                "series": l.series,
                "kind": kind,
                "tensor": tensor,
                "runs": l.runs,
                "sizes": sizes,
                "readings": readings,
                "share": share,
                "decoded": decoded,
                "error": match l.error {
                    Some((a, b)) if (a - b).abs() > 0.005 * b => format!("{a:.2} to {b:.2}"),
                    Some((a, _)) => format!("{a:.2}"),
                    None => "not finite".to_owned(),
                },
            })
        })
        .collect())
}

/// Series of which the same is to be said: inputs, tensor, sizes, misreadings, their share, what was decoded.
struct WrongLine {
    series: Vec<String>,
    runs: usize,
    error: Option<(f64, f64)>,
    said: (&'static str, String, String, Vec<String>, String, String),
}

/// What index-encoded inputs tell was read.
fn decoded(shifts: BTreeMap<i64, u64>, misplaced: Option<[u64; 4]>) -> String {
    let mut shifts: Vec<(i64, u64)> = shifts.into_iter().collect();
    shifts.sort_by_key(|s| std::cmp::Reverse(s.1));
    let mut out: Vec<String> = shifts
        .iter()
        .take(3)
        .map(|(s, _)| {
            let sign = if *s < 0 { "\u{2212}" } else { "+" };
            format!("batch {sign}{}", grouped(s.unsigned_abs()))
        })
        .collect();
    if shifts.len() > 3 {
        out.push(format!("{} more", shifts.len() - 3));
    }
    if let Some([r, c, rr, cc]) = misplaced {
        out.push(format!("({r}, {c}) shows ({rr}, {cc})"));
    }
    out.join("; ")
}

/// A share that is 100% only where it is whole.
fn share(f: f64) -> String {
    if f >= 1.0 { "100%".into() } else { format!("{:.2}%", (f * 100.0).min(99.99)) }
}

/// Which batches are wrong, as a strip: of random inputs, for every series and size, full comparisons before sampled ones.
fn strips(records: &[Record], case: bool, marks: &[u64]) -> Result<Value, SweepError> {
    // Series, tensor, batches, leading batches.
    type Key = (Name, String, u64, u64);
    let mut chosen: Vec<(Key, &Record)> = Vec::new();
    for r in records.iter().filter(|r| !r.calibration() && r.input() == Kind::Random) {
        if !r.outcome()?.silent() {
            continue;
        }
        for (tensor, _) in wrong_tensors(r) {
            let key = (Name::of(r, case), tensor.clone(), r.b, r.pad_batches.unwrap_or(0));
            match chosen.iter_mut().find(|c| c.0 == key) {
                Some(c) if c.1.compare != "full" && r.compare == "full" => c.1 = r,
                Some(_) => {}
                None => chosen.push((key, r)),
            }
        }
    }
    let total = chosen.len();
    let rows: Vec<Value> = chosen
        .iter()
        .take(MAX_STRIPS)
        .filter_map(|((name, tensor, b, pad), r)| {
            let t = r.tensors.get(tensor)?;
            // A case may have several output batches for one of the operands.
            let per = if case { (r.m * r.n).max(1) } else { 1 };
            let all = if case { (r.numel_out / per).max(*b) } else { *b };
            let x = |batch: u64| batch as f64 / all.max(1) as f64 * STRIP;
            let bars: Vec<Value> = t
                .bad
                .iter()
                .map(|[first, last]| {
                    let width = (x(last.saturating_add(1)) - x(*first)).max(2.0);
                    json!({"x": format!("{:.1}", x(*first).min(STRIP - width).max(0.0)), "w": format!("{width:.1}")})
                })
                .collect();
            let mut ticks = Vec::new();
            for (what, elements) in [("a", r.numel_a), ("b", r.numel_b), ("out", r.numel_out)] {
                for &m in marks.iter().filter(|&&m| m >= 1 << 10 && elements > m && all > 0) {
                    let at = m as f64 / elements as f64 * STRIP;
                    ticks.push(json!({"x": format!("{at:.1}"), "title": format!("{what}: element {}", count(m))}));
                }
            }
            Some(json!({
                "series": name.whole(),
                "tensor": if tensor == "out" { String::new() } else { clean(tensor) },
                "size": if *pad > 0 { format!("{} behind {}", grouped(*b), grouped(*pad)) } else { grouped(*b) },
                "bars": bars,
                "ticks": ticks,
                // A record keeps that many stretches; what lies behind them is not known here.
                "unknown": match t.bad.last() {
                    Some(last) if t.bad.len() >= 64 => {
                        let from = x(last[1].saturating_add(1)).min(STRIP);
                        json!({"x": format!("{from:.1}"), "w": format!("{:.1}", STRIP - from)})
                    }
                    _ => Value::Null,
                },
                "where": ranges(&t.bad, t.n_batches_bad),
                "bad": grouped(t.n_batches_bad),
                "compared": grouped(t.n_batches_compared),
                "sampled": t.n_batches_compared < all,
            }))
        })
        .collect();
    Ok(json!({"rows": rows, "width": STRIP, "left_out": total.saturating_sub(MAX_STRIPS)}))
}

fn ranges(bad: &[[u64; 2]], n: u64) -> String {
    let mut parts: Vec<String> = bad
        .iter()
        .take(3)
        .map(|[a, b]| if a == b { grouped(*a) } else { format!("{} to {}", grouped(*a), grouped(*b)) })
        .collect();
    if bad.len() > 3 {
        parts.push("\u{2026}".into());
    }
    let word = if n == 1 { "batch" } else { "batches" };
    format!("{word} {}", parts.join(", "))
}

/// What was said by runs that did not end rightly, once each.
fn messages(records: &[Record], case: bool) -> Result<Vec<Value>, SweepError> {
    // Outcome, pass, message; runs, series, smallest size.
    type Key = (Outcome, String, String);
    type Seen = (usize, BTreeSet<String>, u64);
    let mut all: BTreeMap<Key, Seen> = BTreeMap::new();
    for r in records {
        let outcome = r.outcome()?;
        if let Some(m) = &r.message {
            // Sizes in a reason of the memory rule would make every run another message.
            let m = if outcome == Outcome::Skipped {
                m.replace(|c: char| c.is_ascii_digit(), "#")
            } else {
                m.clone()
            };
            let m: String = clean(&m).chars().take(2000).collect();
            let key = (outcome, clean(r.stage.as_deref().unwrap_or("")), m);
            let e = all.entry(key).or_insert((0, BTreeSet::new(), u64::MAX));
            e.0 += 1;
            e.1.insert(Name::of(r, case).whole());
            e.2 = e.2.min(r.b);
        }
    }
    let mut rows: Vec<_> = all.into_iter().collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.1.0));
    Ok(rows
        .into_iter()
        .map(|((outcome, stage, message), (runs, series, first))| {
            json!({
                "outcome": outcome.name().replace('_', " "), "class": outcome.name(), "letter": letter(outcome),
                "stage": stage, "message": message, "runs": grouped(runs as u64),
                "series": series.len(), "first": grouped(first),
            })
        })
        .collect())
}

/// Cases: sizes with outcomes, and the operators that the framework dispatched.
fn case_rows(records: &[Record]) -> Result<Vec<Value>, SweepError> {
    // Case, outcome by size, operators, call.
    type Row = (Name, BTreeMap<u64, Outcome>, BTreeSet<String>, String);
    let mut all: Vec<Row> = Vec::new();
    for r in records {
        let name = Name::of(r, true);
        let at = match all.iter().position(|x| x.0 == name) {
            Some(at) => at,
            None => {
                let call = r.other.get("call").and_then(Value::as_str).unwrap_or_default();
                // The size is in the table; what differs between runs is it alone.
                let call = call.replace(&r.b.to_string(), "B");
                all.push((name, BTreeMap::new(), BTreeSet::new(), clean(&call)));
                all.len() - 1
            }
        };
        all[at].1.insert(r.b, r.outcome()?);
        all[at].2.extend(r.operators.iter().map(|o| clean(o)));
    }
    Ok(all
        .into_iter()
        .map(|(name, sizes, operators, call)| {
            let cells: Vec<(u64, Outcome)> = sizes.into_iter().collect();
            let stretches: Vec<Value> = crate::text::stretches(&cells)
                .into_iter()
                .map(|(a, b, o)| {
                    let sizes = if a == b { grouped(a) } else { format!("{} to {}", grouped(a), grouped(b)) };
                    json!({"class": o.name(), "letter": letter(o), "sizes": sizes})
                })
                .collect();
            json!({
                "case": name.shape, "dtype": name.rest, "call": call, "stretches": stretches,
                "operators": operators.into_iter().collect::<Vec<_>>(),
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_near_a_boundary_are_told_apart_and_others_stand_alone() {
        let marks = [1u64 << 31, 1 << 32];
        let at = |size| column(size, 65_536, &marks);
        assert_eq!(at(65_537), Column { elements: 1 << 32, from: Some(1) });
        assert_eq!(at(32_766), Column { elements: 1 << 31, from: Some(-2) });
        assert_eq!(at(40_960), Column { elements: 40_960 << 16, from: None });
        let order: Vec<Column> = [40_960, 65_535, 65_536, 65_538, 70_000].into_iter().map(at).collect();
        assert!(order.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn of_misreadings_that_fit_alike_the_simple_ones_are_named() {
        let names = ["strides_ignored", "strides_ignored+wrapped_2^30", "wrapped_2^31", "wrapped_2^32"];
        assert_eq!(
            readings(&names),
            [
                "the strides of a transposed operand are ignored",
                "the index into an operand wraps at 2^31 or 2^32"
            ]
        );
        assert_eq!(readings(&names[1..2]).len(), 1);
    }

    #[test]
    fn a_share_is_whole_only_where_it_is() {
        assert_eq!((share(1.0).as_str(), share(0.999_99).as_str()), ("100%", "99.99%"));
    }
}
