//! The rules by family, with why and where from, and what became of their mutants.

use assay_measure::{FAMILIES, Mechanism, Scope, family_rank, percent};
use assay_mutate::{Family, RULES, RuleInfo};
use assay_report::text::{number, percent as shown};
use serde_json::{Map, Value, json};

use crate::md;
use crate::tally::{Counts, Tally};

/// What the family gets wrong, as a phrase; empty for one that this version does not know.
pub fn what(family: &str) -> &'static str {
    Family::ALL.iter().find(|f| f.name() == family).map_or("", |f| f.what())
}

/// The families of the catalogue and of the run, in the order of tables.
pub fn families(tally: &Tally) -> Vec<String> {
    let mut all: Vec<String> = FAMILIES.iter().map(|&f| f.to_owned()).collect();
    all.extend(tally.families.keys().filter(|f| !FAMILIES.contains(&f.as_str())).cloned());
    all.sort_by(|a, b| family_rank(a).cmp(&family_rank(b)));
    all
}

/// A rule with what the catalogue says of it, if it is there, and its counts.
pub struct RuleEntry<'a> {
    /// Its id.
    pub id: &'a str,
    /// The catalogue's row.
    pub info: Option<&'static RuleInfo>,
    /// Its mutants.
    pub counts: Counts,
}

/// The rules of a family: those of the catalogue, in its order, then those that only the run has.
pub fn rules<'a>(tally: &'a Tally, family: &str) -> Vec<RuleEntry<'a>> {
    let counts = |id: &str| tally.rules.get(id).map(|r| r.1.clone()).unwrap_or_default();
    let known = RULES.iter().map(|r| r.info()).filter(|i| i.family.name() == family);
    let mut all: Vec<RuleEntry<'a>> =
        known.map(|i| RuleEntry { id: i.id, info: Some(i), counts: counts(i.id) }).collect();
    for (id, (of, counts)) in &tally.rules {
        if of == family && all.iter().all(|r| r.id != id) {
            all.push(RuleEntry { id, info: None, counts: counts.clone() });
        }
    }
    all
}

fn counts_json(c: &Counts, protocols: &[String]) -> Map<String, Value> {
    let missed: Map<String, Value> = protocols
        .iter()
        .enumerate()
        .map(|(p, name)| (name.clone(), json!(c.missed.get(p).copied().unwrap_or(0))))
        .collect();
    let mut map = Map::new();
    for (name, n) in [
        ("generated", c.generated),
        ("noncompiling", c.noncompiling),
        ("duplicate", c.duplicate),
        ("equivalent", c.equivalent),
        ("quarantined", c.quarantined),
        ("distinct", c.distinct),
        ("witnessed", c.witnessed),
        ("schedule_witnessed", c.schedule_witnessed),
        ("witnessed_flagged", c.witnessed_flagged),
    ] {
        map.insert(name.to_owned(), json!(n));
    }
    map.insert("missed".to_owned(), Value::Object(missed));
    map
}

/// `taxonomy.json`.
pub fn json(tally: &Tally, protocols: &[String], tool: &str) -> Value {
    let families: Vec<Value> = families(tally)
        .iter()
        .map(|family| {
            let f = tally.families.get(family).cloned().unwrap_or_default();
            let rules: Vec<Value> = rules(tally, family)
                .iter()
                .map(|r| {
                    let mut map = Map::new();
                    map.insert("id".into(), json!(r.id));
                    map.insert("reason".into(), json!(r.info.map(|i| i.reason)));
                    map.insert("source".into(), json!(r.info.map(|i| i.source)));
                    map.insert("before".into(), json!(r.info.map(|i| i.before)));
                    map.insert("after".into(), json!(r.info.map(|i| i.after)));
                    map.extend(counts_json(&r.counts, protocols));
                    Value::Object(map)
                })
                .collect();
            let mechanisms: Map<String, Value> = protocols
                .iter()
                .enumerate()
                .map(|(p, name)| {
                    let row = f.mechanisms.get(p).copied().unwrap_or_default();
                    let mut by: Map<String, Value> = Mechanism::ALL
                        .iter()
                        .zip(row)
                        .map(|(m, n)| (m.phrase().replace(' ', "_"), json!(n)))
                        .collect();
                    by.insert("unknown".into(), json!(row[Mechanism::ALL.len()]));
                    (name.clone(), Value::Object(by))
                })
                .collect();
            let mut map = Map::new();
            map.insert("family".into(), json!(family));
            map.insert("what".into(), json!(what(family)));
            map.insert("scored_apart".into(), json!(!Scope::Paper.admits(family)));
            map.extend(counts_json(&f.counts, protocols));
            map.insert("missed_by_mechanism".into(), Value::Object(mechanisms));
            map.insert("rules".into(), Value::Array(rules));
            Value::Object(map)
        })
        .collect();
    json!({
        "kind": "assay-taxonomy",
        "tool": tool,
        "licence": crate::LICENCE,
        "protocols": protocols,
        "definitions": {
            "distinct": "generated - noncompiling - duplicate - equivalent; quarantined ones are part of it",
            "witnessed": "with a valid input on which it is wrong at 1e-2 against float32 and float64, in problems that can be refereed",
            "missed": "witnessed ones that a protocol does not kill",
            "witnessed_flagged": "witnessed ones that the sanitizer reports",
        },
        "families": families,
    })
}

/// `taxonomy.md`.
pub fn markdown(tally: &Tally, protocols: &[String]) -> String {
    let headline = protocols.first().map_or("", String::as_str);
    let mut out = format!(
        "# The taxonomy\n\nA rule plants one kind of small fault; a family is what the fault gets wrong. Counts are \
         those of this run: *generated* mutants, *distinct* ones (they compile, and no other image equals theirs), \
         *witnessed* ones (proved wrong by a valid input), and of these those that {} *misses*. `taxonomy.json` has \
         every protocol, and an example of each rule.\n\n",
        md::code(headline)
    );
    let all = families(tally);
    let row = |name: String, c: &Counts| {
        let missed = c.missed.first().copied().unwrap_or(0);
        vec![
            name,
            number(c.generated),
            number(c.distinct),
            number(c.witnessed),
            number(missed),
            shown(percent(missed, c.witnessed)),
        ]
    };
    let empty = Counts::default();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|f| {
            let link = if crate::playbook::has(tally, f) {
                format!("[{}](playbook/{})", md::text(f), crate::playbook::file_name(f))
            } else {
                md::text(f)
            };
            row(link, tally.families.get(f).map_or(&empty, |t| &t.counts))
        })
        .collect();
    out.push_str(&md::table(&["Family", "generated", "distinct", "witnessed", "missed", "share"], &rows));
    for family in &all {
        out.push_str(&format!("\n## {}\n\n", md::text(family)));
        if !what(family).is_empty() {
            out.push_str(&format!("{}.\n\n", capital(what(family))));
        }
        let rows: Vec<Vec<String>> = rules(tally, family)
            .iter()
            .map(|r| {
                let mut cells = row(md::code(r.id), &r.counts);
                cells.truncate(5);
                let reason = r.info.map_or("not in this version's catalogue", |i| i.reason);
                let example = r.info.and_then(|i| Some((i.before, *i.after.first()?)));
                cells.insert(1, md::text(reason));
                cells.insert(
                    2,
                    example.map_or_else(String::new, |(b, a)| {
                        format!("{} becomes {}", md::code(b), md::code(a))
                    }),
                );
                cells.push(md::text(r.info.map_or("", |i| i.source)));
                cells
            })
            .collect();
        let header = ["Rule", "Why", "Example", "generated", "distinct", "witnessed", "missed", "Source"];
        out.push_str(&md::table(&header, &rows));
    }
    out
}

/// With a capital letter.
pub fn capital(s: &str) -> String {
    let mut letters = s.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}
