//! The run in Stryker's mutation-report schema, version 2: kernels are files, protocols are tests.
//!
//! A mutant's status is the first that holds:
//!
//! | what happened | status |
//! |---|---|
//! | same image as the original's or another mutant's | `Ignored` |
//! | refused by the compiler | `CompileError` |
//! | its problem cannot be refereed | `Ignored` |
//! | rejected by any protocol | `Killed` |
//! | quarantined as exhausted, or an evaluation ran out of its budget | `Timeout` |
//! | quarantined otherwise, or an evaluation was unsupported | `RuntimeError` |
//! | no protocol came to a verdict | `NoCoverage` |
//! | else | `Survived` |
//!
//! Source: the schema of the mutation-testing-elements project, `mutation-testing-report-schema.json`.

use assay_measure::percent;
use serde_json::{Map, Value, json};

use crate::diff::{Position, Span, apply, changed, span};
use crate::{Bundle, MutantRecord, SourceFile, Verdicts};

/// Score (in percent) above which a viewer shows green; the checker paper's two-input suites reach it.
const THRESHOLD_HIGH: u64 = 95;
/// Score below which a viewer shows red; the checker paper's official check stands just above.
const THRESHOLD_LOW: u64 = 80;

/// What the export counts, for the two scores.
#[derive(Default)]
struct Tally {
    killed: u64,
    timeout: u64,
    survived: u64,
    no_coverage: u64,
}

impl Bundle {
    /// The document of `mutation-report.json`.
    pub fn stryker(&self) -> Value {
        let mut tally = Tally::default();
        let mut files = Map::new();
        for source in &self.sources {
            let mutants: Vec<Value> = self
                .mutants
                .iter()
                .filter(|m| m.problem == source.problem)
                .map(|m| self.mutant_result(m, source, &mut tally))
                .collect();
            let file = json!({ "language": "cuda", "source": source.text, "mutants": mutants });
            files.insert(format!("{}/{}", source.problem, source.path), file);
        }
        let tests: Map<String, Value> = self
            .protocols
            .iter()
            .map(|p| {
                let name =
                    if p.title == p.name { p.name.clone() } else { format!("{}: {}", p.name, p.title) };
                let file = json!({ "source": p.to_toml(), "tests": [{ "id": p.name, "name": name }] });
                (format!("protocols/{}.toml", p.name), file)
            })
            .collect();
        let t = &self.summary.timing;
        // The baseline's runs are part of the evaluations, so they have no time of their own.
        let total = (t.wall_seconds * 1e3).round().max(0.0);
        let compile = (t.compile_ms_per_mutant * self.summary.pipeline.generated as f64).round();
        let setup = compile.clamp(0.0, total);
        let valid = tally.killed + tally.timeout + tally.survived + tally.no_coverage;
        json!({
            "schemaVersion": "2.0",
            "thresholds": { "high": THRESHOLD_HIGH, "low": THRESHOLD_LOW },
            "framework": self.framework(),
            "performance": { "setup": setup, "initialRun": 0.0, "mutation": total - setup },
            "files": files,
            "testFiles": tests,
            "assay": {
                "headlineProtocol": self.summary.headline_protocol,
                "schemaScore": percent(tally.killed + tally.timeout, valid),
                "killedScore": percent(tally.killed, valid),
                "notes": [
                    "a mutant counts as killed here where any protocol rejects it; the rates of single protocols are \
                     under `protocols`, over witnessed mutants",
                    "`initialRun` is part of `mutation`",
                ],
                "protocols": self.summary.protocols,
                "pipeline": self.summary.pipeline,
                "environment": self.summary.environment,
            },
        })
    }

    fn framework(&self) -> Value {
        let word = |key: &str| self.summary.environment.get(key).and_then(Value::as_str);
        let mut framework = Map::new();
        framework.insert("name".into(), "Assay".into());
        if let Some(version) = word("assay") {
            framework.insert("version".into(), version.into());
        }
        if let Some(nvrtc) = word("nvrtc") {
            framework.insert("dependencies".into(), json!({ "nvrtc": nvrtc }));
        }
        Value::Object(framework)
    }

    fn mutant_result(&self, m: &MutantRecord, source: &SourceFile, tally: &mut Tally) -> Value {
        let verdicts = self.verdicts.get(&m.id);
        let (status, reason) = status(m, verdicts);
        match status {
            "Killed" => tally.killed += 1,
            "Timeout" => tally.timeout += 1,
            "Survived" => tally.survived += 1,
            "NoCoverage" => tally.no_coverage += 1,
            _ => {}
        }
        let at = apply(&source.text, &m.diff)
            .and_then(|mutant| span(&source.text, &mutant))
            .unwrap_or_else(|| whole_line(m));
        let place = |p: Position| json!({ "line": p.line, "column": p.column });
        let mut out = json!({
            "id": m.id,
            "mutatorName": m.rule,
            "description": m.name,
            "location": { "start": place(at.start), "end": place(at.end) },
            "replacement": at.replacement,
            "status": status,
            "statusReason": reason,
        });
        if let (Some(v), Some(map)) = (verdicts, out.as_object_mut()) {
            map.insert("killedBy".into(), json!(v.rejected_by));
            map.insert("coveredBy".into(), json!(v.decided_by));
            map.insert("testsCompleted".into(), json!(v.decided_by.len()));
        }
        out
    }
}

/// Where the diff does not fit the source: the line that the mutant names, whole.
fn whole_line(m: &MutantRecord) -> Span {
    let of = |mark: char| -> Vec<String> {
        changed(&m.diff, 0).into_iter().filter(|l| l.mark == mark).map(|l| l.text).collect()
    };
    let line = m.line.max(1);
    let old = of('-').first().map_or(0, |l| l.encode_utf16().count() as u64);
    Span {
        start: Position { line, column: 1 },
        end: Position { line, column: 1 + old },
        replacement: of('+').join("\n"),
    }
}

/// The schema's word and why.
fn status(m: &MutantRecord, verdicts: Option<&Verdicts>) -> (&'static str, String) {
    let because =
        |what: &str| if m.reason.is_empty() { what.to_owned() } else { format!("{what}: {}", m.reason) };
    match m.status.as_str() {
        "duplicate" => return ("Ignored", because("same image as another mutant")),
        "equivalent" => return ("Ignored", because("equivalent to the original")),
        "noncompiling" => return ("CompileError", because("refused by the compiler")),
        _ => {}
    }
    let Some(v) = verdicts else { return ("Pending", "not evaluated".to_owned()) };
    if !v.scored {
        return (
            "Ignored",
            "the problem cannot be refereed: float32 fails its own float64 evaluation".to_owned(),
        );
    }
    if !v.rejected_by.is_empty() {
        return ("Killed", format!("rejected by {}", v.rejected_by.join(", ")));
    }
    let quarantined = m.status == "quarantined";
    // A quarantined mutant has its one word in the reason.
    let unsupported = v.unsupported || (quarantined && !m.reason.starts_with("exhausted"));
    if v.exhausted || (quarantined && !unsupported) {
        return ("Timeout", because("a budget ran out"));
    }
    if unsupported {
        let lost = quarantined && m.reason.starts_with("compiler: ");
        let what = if lost { "neither compiled nor refused" } else { "the device does not support it" };
        return ("RuntimeError", because(what));
    }
    if v.decided_by.is_empty() {
        return ("NoCoverage", "no protocol came to a verdict".to_owned());
    }
    let why = match (v.witnessed, v.schedule_witnessed) {
        (true, _) => "proved wrong by a witness, and every protocol accepts it",
        (_, true) => "wrong under another schedule only",
        _ => "every protocol accepts it and no witness was found; it may be equivalent",
    };
    let flagged = if v.flagged { "; the sanitizer reports it" } else { "" };
    ("Survived", format!("{why}{flagged}"))
}
