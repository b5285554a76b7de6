//! The release of a run: read back and compared with the run's database, replayed, refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::pages::finished;
use crate::support::{Running, assay, command, database, fixture, read_json};

/// A release of the small run, made once, and what the command said.
fn released() -> &'static (tempfile::TempDir, PathBuf, Value) {
    static RELEASED: OnceLock<(tempfile::TempDir, PathBuf, Value)> = OnceLock::new();
    RELEASED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("release");
        let said = export(&finished().1, &folder, 0).json();
        (dir, folder, said)
    })
}

#[track_caller]
fn export(run: &Path, folder: &Path, code: i32) -> crate::support::Answer {
    let mut c = command(&["export", "--json"]);
    Running::start(c.arg(run).arg(folder)).finish().exits(code)
}

/// The files below a folder, by their path in it.
fn tree(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else {
                found.insert(entry.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

fn table(file: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(released().1.join(file)).unwrap()).unwrap();
    reader.into_iter().map(|r| r.unwrap()).collect()
}

fn field<'r>(row: &'r Row, name: &str) -> &'r Field {
    row.get_column_iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn text(row: &Row, name: &str) -> String {
    match field(row, name) {
        Field::Str(s) => s.clone(),
        Field::Null => String::new(),
        other => panic!("{name}: {other:?}"),
    }
}

fn flag(row: &Row, name: &str) -> bool {
    matches!(field(row, name), Field::Bool(true))
}

fn float(row: &Row, name: &str) -> f64 {
    let Field::Double(v) = field(row, name) else { panic!("{name}: {:?}", field(row, name)) };
    *v
}

fn count(row: &Row, name: &str) -> u64 {
    let Field::ULong(v) = field(row, name) else { panic!("{name}: {:?}", field(row, name)) };
    *v
}

#[test]
fn every_evaluation_of_the_database_is_a_row_of_the_table_with_its_bits() {
    let c = database(&finished().1).unwrap();
    let mut q = c
        .prepare(
            "SELECT problem, mutant, recipe, schedule, seed, end, official, truth, max_abs, max_rel, at, instructions, note,
                    digest FROM evaluations",
        )
        .unwrap();
    let bits = |v: Option<f64>| v.unwrap_or(f64::NAN).to_bits().to_string();
    let mut want: Vec<Vec<String>> = q
        .query_map([], |r| {
            let mut row: Vec<String> = (0..4).map(|k| r.get(k)).collect::<Result<_, _>>()?;
            row.push(r.get::<_, i64>(4)?.to_string());
            row.push(r.get(5)?);
            for k in 6..10 {
                row.push(bits(r.get(k)?));
            }
            row.push(r.get::<_, i64>(10)?.to_string());
            row.push(r.get::<_, i64>(11)?.to_string());
            row.push(r.get(12)?);
            let digest = r.get::<_, Option<i64>>(13)?;
            row.push(digest.map(|d| format!("{d:016x}")).unwrap_or_default());
            Ok(row)
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut got: Vec<Vec<String>> = table("evaluations.parquet")
        .iter()
        .map(|row| {
            row.get_column_iter()
                .map(|(_, f)| match f {
                    Field::Str(s) => s.clone(),
                    Field::ULong(n) => n.to_string(),
                    Field::Double(v) => v.to_bits().to_string(),
                    Field::Null => String::new(),
                    other => panic!("{other:?}"),
                })
                .collect()
        })
        .collect();
    assert!(want.len() > 1000, "{} evaluations", want.len());
    want.sort();
    got.sort();
    assert!(want == got, "{} rows against {}", got.len(), want.len());
}

#[test]
fn mutants_inputs_and_cells_are_those_of_the_database() {
    let (_, folder, said) = released();
    let c = database(&finished().1).unwrap();
    let number = |sql: &str| c.query_row(sql, [], |r| r.get::<_, i64>(0)).unwrap().cast_unsigned();
    let rows = |file: &str| said["tables"][file].as_u64().unwrap();
    assert_eq!(rows("mutants.parquet"), number("SELECT count(*) FROM mutants"));
    assert_eq!(rows("inputs.parquet"), number("SELECT count(*) FROM inputs"));
    assert_eq!(rows("evaluations.parquet"), number("SELECT count(*) FROM evaluations"));
    let mutants = table("mutants.parquet");
    for status in ["distinct", "quarantined", "duplicate", "equivalent", "noncompiling"] {
        let ours = mutants.iter().filter(|m| text(m, "status") == status).count() as u64;
        assert_eq!(
            ours,
            number(&format!("SELECT count(*) FROM mutants WHERE status = '{status}'")),
            "{status}"
        );
    }
    // A cell is what the evaluations under `hardware` say.
    let cells = table("kill-matrix.parquet");
    assert_eq!(cells.len() as u64, said["cells"].as_u64().unwrap());
    let mut q = c
        .prepare(
            "SELECT end, official, count(*) OVER () FROM evaluations
             WHERE problem = ?1 AND mutant = ?2 AND recipe = ?3 AND schedule IN ('hardware', 'sampled')
             ORDER BY seed",
        )
        .unwrap();
    let mut single = 0;
    for cell in &cells {
        let key = [text(cell, "problem"), text(cell, "mutant"), text(cell, "recipe")];
        let (end, official, seeds): (String, f64, i64) =
            q.query_row(key.clone(), |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).unwrap();
        assert_eq!(count(cell, "seeds"), seeds.cast_unsigned(), "{key:?}");
        if seeds < 4 {
            single += 1;
            assert_eq!((text(cell, "end"), float(cell, "threshold_official")), (end, official), "{key:?}");
        }
        let rejected = text(cell, "end") == "fault" || float(cell, "threshold_official") > 1e-2;
        let undecided = ["exhausted", "unsupported"].contains(&text(cell, "end").as_str());
        assert_eq!(flag(cell, "killed"), rejected && !undecided && flag(cell, "valid"), "{key:?}");
        assert!(flag(cell, "killed") || !flag(cell, "wrong"), "{key:?}");
    }
    assert!(single > 100, "{single} cells of one seed");
    let summary = read_json(&folder.join("summary.json"));
    assert_eq!(summary, read_json(&finished().1.join("summary.json")));
}

#[test]
fn verdicts_add_up_to_the_rates_of_the_summary() {
    let summary = read_json(&finished().1.join("summary.json"));
    let witnessed: BTreeMap<String, String> = table("mutants.parquet")
        .iter()
        .filter(|m| flag(m, "witnessed") && flag(m, "scored"))
        .map(|m| (text(m, "mutant"), text(m, "family")))
        .collect();
    assert_eq!(witnessed.len() as u64, summary["pipeline"]["witnessed"].as_u64().unwrap());
    let verdicts = table("verdicts.parquet");
    let protocols = summary["protocols"].as_array().unwrap();
    assert!(!protocols.is_empty());
    for p in protocols {
        let name = p["name"].as_str().unwrap();
        let of = |v: &&Row| {
            text(v, "protocol") == name && witnessed.get(&text(v, "mutant")).is_some_and(|f| f != "width")
        };
        let killed = verdicts.iter().filter(of).filter(|v| text(v, "verdict") == "killed").count() as u64;
        assert_eq!(killed, p["detected"].as_u64().unwrap(), "{name}");
        for v in verdicts.iter().filter(of).filter(|v| text(v, "verdict") != "killed") {
            assert!(!text(v, "mechanism").is_empty(), "{name}: {v}");
        }
    }
    // And the taxonomy, rule by rule, to those of the headline.
    let taxonomy = read_json(&released().1.join("taxonomy.json"));
    let headline = summary["headline_protocol"].as_str().unwrap();
    let mut seen = 0;
    for family in taxonomy["families"].as_array().unwrap() {
        for rule in family["rules"].as_array().unwrap() {
            let stated = summary["rules"].as_array().unwrap().iter().find(|r| r["id"] == rule["id"]);
            let Some(stated) = stated else { continue };
            seen += 1;
            assert_eq!(rule["witnessed"], stated["witnessed"], "{rule}");
            assert_eq!(rule["missed"][headline], stated["missed"], "{rule}");
            assert!(rule["reason"].as_str().is_some_and(|r| !r.is_empty()), "{rule}");
        }
    }
    assert_eq!(seen, summary["rules"].as_array().unwrap().len());
}

#[test]
fn every_diff_applies_and_every_witness_is_one_that_a_check_confirms() {
    let (_, folder, said) = released();
    let mut witnesses = 0;
    let mut tried: BTreeMap<(String, String), u32> = BTreeMap::new();
    let scratch = tempfile::tempdir().unwrap();
    for m in table("mutants.parquet") {
        let diff = text(&m, "diff");
        let (problem, id) = diff.split_once("/mutants/").unwrap();
        assert_eq!(id, format!("{}.diff", text(&m, "mutant")));
        let kernel = fs::read_to_string(folder.join(problem).join("kernel.cu")).unwrap();
        let change = fs::read_to_string(folder.join(&diff)).unwrap();
        let mutant =
            assay_report::diff::apply(&kernel, &change).unwrap_or_else(|| panic!("{diff} does not fit"));
        assert_ne!(mutant, kernel, "{diff}");
        let lines = fs::read_to_string(folder.join(problem).join("witnesses.jsonl")).unwrap();
        let line = lines
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap())
            .find(|l| l["mutant"] == text(&m, "mutant"));
        let any = flag(&m, "witnessed") || flag(&m, "schedule_witnessed");
        assert_eq!(line.is_some(), any, "{diff}");
        let Some(line) = line else { continue };
        witnesses += 1;
        assert_eq!(line["recipe"], text(&m, "witness_recipe"));
        assert_eq!(line["schedule"], text(&m, "witness_schedule"));
        assert!(flag(&m, "schedule_witnessed") || count(&m, "witness_inputs") > 0, "{line}");
        assert!(
            float(&m, "witness_threshold_official") > 1e-2 && float(&m, "witness_threshold_truth") > 1e-2
        );
        let replay = line["replay"].as_str().unwrap();
        if line["schedule"] == "sampled" {
            assert!(text(&m, "family") == "width" && replay.contains("assay audit"), "{line}");
            continue;
        }
        assert!(
            replay.contains(line["diff"].as_str().unwrap()) && replay.contains("assay check"),
            "{replay}"
        );
        // One of each family and problem is replayed.
        let kind = (text(&m, "problem"), text(&m, "family"));
        if *tried.entry(kind).and_modify(|n| *n += 1).or_insert(1) > 1 {
            continue;
        }
        let file = scratch.path().join("mutant.cu");
        fs::write(&file, mutant).unwrap();
        // The fixture is no problem of the catalogue, so it goes by its folder.
        let source = fixture("problems");
        let name = Path::new(problem).file_name().unwrap().to_str().unwrap();
        let home = fs::read_dir(&source)
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| name.ends_with(p.file_name().unwrap().to_str().unwrap()))
            .unwrap_or_else(|| panic!("{name} in {source}"));
        let recipe = line["recipe"].as_str().unwrap();
        let args =
            ["check", file.to_str().unwrap(), "--problem", home.to_str().unwrap(), "--scope", "general"];
        let answer = assay(&[&args[..], &["--json", "--input", recipe]].concat()).exits(1).json();
        if line["schedule"] == "hardware" {
            assert_eq!(answer["failing_inputs"][0]["recipe"], recipe, "{answer}");
        } else {
            assert!(answer["findings"].as_array().is_some_and(|f| !f.is_empty()), "{answer}");
        }
    }
    assert_eq!(witnesses, said["witnesses"].as_u64().unwrap());
    assert!(tried.len() > 4, "{tried:?}");
}

#[test]
fn the_index_defines_every_column_and_names_every_file() {
    let (_, folder, said) = released();
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let files = tree(folder);
    for schema in assay_release::TABLES {
        // No external checker was asked.
        let there = schema.file != "checks.parquet";
        assert_eq!(files.contains(schema.file), there, "{}", schema.file);
        assert_eq!(readme.contains(&format!("### {}", schema.file)), there);
        if !there {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(folder.join(schema.file)).unwrap()).unwrap();
        let meta = reader.metadata().file_metadata();
        assert_eq!(meta.num_rows().cast_unsigned(), said["tables"][schema.file].as_u64().unwrap());
        assert!(meta.created_by().is_some_and(|m| m.starts_with("assay ")));
        let names: Vec<&str> = meta.schema_descr().columns().iter().map(|c| c.name()).collect();
        assert_eq!(names, schema.columns.iter().map(|c| c.name).collect::<Vec<_>>());
        let said: BTreeMap<&str, &str> = meta
            .key_value_metadata()
            .unwrap()
            .iter()
            .filter_map(|kv| Some((kv.key.as_str(), kv.value.as_deref()?)))
            .collect();
        assert_eq!(said["licence"], "Apache-2.0 OR MIT");
        for c in schema.columns {
            assert_eq!(said[format!("column.{}", c.name).as_str()], c.what);
            assert!(readme.contains(&format!("| `{}` | {}", c.name, c.holds.name())), "{}", c.name);
        }
    }
    for word in ["Apache-2.0 OR MIT", "assay export RUN DIR", "taxonomy.json", "SHA256SUMS", "NVRTC"] {
        assert!(readme.contains(word), "no {word} in\n{readme}");
    }
    for family in read_json(&folder.join("taxonomy.json"))["families"].as_array().unwrap() {
        let name = family["family"].as_str().unwrap();
        let page = format!("playbook/{name}.md");
        assert_eq!(files.contains(&page), family["distinct"].as_u64() > Some(0), "{page}");
        if family["witnessed"].as_u64() > Some(0) {
            let text = fs::read_to_string(folder.join(&page)).unwrap();
            for part in
                ["## Which checks miss them, and why", "## Which inputs catch them", "| `targeted-all` |"]
            {
                assert!(text.contains(part), "no {part} in\n{text}");
            }
        }
    }
    // The digests are right, and of everything.
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let mut listed = BTreeSet::from(["SHA256SUMS".to_owned()]);
    for line in sums.lines() {
        let (digest, name) = line.split_once("  ").unwrap();
        let ours = Sha256::digest(fs::read(folder.join(name)).unwrap());
        assert_eq!(ours.iter().map(|b| format!("{b:02x}")).collect::<String>(), digest, "{name}");
        listed.insert(name.to_owned());
    }
    assert_eq!(listed, files);
    assert_eq!(files.len() as u64, said["files"].as_u64().unwrap());
}

#[test]
fn a_second_export_gives_the_same_bytes_in_the_firsts_place_and_spares_what_is_not_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let run = &finished().1;
    let folder = dir.path().join("new/release");
    export(run, &folder, 0);
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums, fs::read_to_string(released().1.join("SHA256SUMS")).unwrap());
    fs::remove_file(folder.join("README.md")).unwrap();
    export(run, &folder, 0);
    assert_eq!(fs::read_to_string(folder.join("SHA256SUMS")).unwrap(), sums);
    assert!(folder.join("README.md").is_file());
    assert_eq!(crate::support::files(&dir.path().join("new")), ["release"], "nothing is left beside it");

    fs::write(folder.join("playbook/mine.md"), "x").unwrap();
    export(run, &folder, 2).says(&["playbook/mine.md"]);
    assert_eq!(fs::read_to_string(folder.join("playbook/mine.md")).unwrap(), "x");
    export(run, run, 2).says(&["not empty"]);
    export(run, &run.join("run.db"), 2).says(&["not a folder"]);
    export(run, Path::new("/proc/release"), 74);
    assert!(!dir.path().join("none").exists());
}

#[test]
fn a_run_that_is_cut_hostile_or_unfinished_exits_two_and_leaves_nothing() {
    let run = &finished().1;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("release");
    // The database in one file, as a finished audit that is copied has it.
    let whole = dir.path().join("whole.db");
    database(run).unwrap().execute("VACUUM INTO ?1", [whole.to_str().unwrap()]).unwrap();
    let bytes = fs::read(&whole).unwrap();
    let copy = dir.path().join("run");
    let put = |db: &[u8]| {
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir(&copy).unwrap();
        fs::copy(run.join("summary.json"), copy.join("summary.json")).unwrap();
        fs::write(copy.join("run.db"), db).unwrap();
    };
    put(&bytes);
    export(&copy, &folder, 0);
    fs::remove_dir_all(&folder).unwrap();
    for part in [0, 50, 100, 1000, 4096, bytes.len() / 3, bytes.len() / 2, bytes.len() * 9 / 10] {
        put(&bytes[..part]);
        export(&copy, &folder, 2);
        assert!(!folder.exists(), "cut at {part}");
    }
    for (change, word) in [
        ("UPDATE mutants SET id = '../../x' WHERE id = (SELECT min(id) FROM mutants)", "x"),
        ("UPDATE mutants SET line = 'many'", "run.db"),
        ("UPDATE sources SET path = '../kernel.cu'", "source file"),
        ("UPDATE evaluations SET end = 'maybe'", "maybe"),
        ("UPDATE evaluations SET truth = 'far'", "run.db"),
        ("UPDATE matrices SET matrix = '[]'", "matrix"),
        ("UPDATE matrices SET problem = '9/77' WHERE problem = '9/1'", "9/77"),
        ("DELETE FROM mutants", "not in the list"),
        ("UPDATE inputs SET problem = 'x/../../y' WHERE problem = '9/1'", "no problem"),
        ("UPDATE meta SET value = '[7]' WHERE key = 'protocols'", "protocols"),
        ("UPDATE meta SET value = '99' WHERE key = 'schema_version'", "version 99"),
        ("DROP TABLE evaluations", "evaluations"),
    ] {
        put(&bytes);
        rusqlite::Connection::open(copy.join("run.db")).unwrap().execute_batch(change).unwrap();
        export(&copy, &folder, 2).says(&[word]);
        assert!(!folder.exists(), "{change}");
    }
    put(&bytes);
    fs::remove_file(copy.join("summary.json")).unwrap();
    export(&copy, &folder, 2).says(&["not finished"]);
    export(&dir.path().join("nowhere"), &folder, 2).says(&["run.db"]);
    let left = crate::support::files(dir.path());
    assert_eq!(left, ["run", "whole.db"], "nothing is left beside it");
}
