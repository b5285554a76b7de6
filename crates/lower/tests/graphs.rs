//! Committed graphs of small modules (`testdata/export`): the reference that each becomes is the one beside it, its folder
//! loads, and its launcher runs; hostile graphs are refused in one clear sentence.
//!
//! `BLESS=1` writes the references anew; read the difference.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_lower::{ExportedGraph, Unsupported, lower};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/export").join(name)
}

fn files(name: &str, ending: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == ending))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
fn graphs_become_the_references_beside_them_and_folders_that_load() {
    let scratch = tempfile::tempdir().unwrap();
    for path in files("graphs", "json") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let graph = ExportedGraph::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let made = lower(&graph).unwrap_or_else(|e| panic!("{name}: {e}"));
        let expected = path.with_extension("reference");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &made.reference).unwrap();
        }
        assert_eq!(made.reference, std::fs::read_to_string(&expected).unwrap(), "{name}");
        let problem = made.problem().unwrap_or_else(|e| panic!("{name}: {e}"));
        made.write(&scratch.path().join(&name)).unwrap();
        let written = assay_problems::load(scratch.path().join(&name)).unwrap();
        assert_eq!(written.digests(), problem.digests(), "{name}");
        let plan = problem.plan(&BTreeMap::new()).unwrap_or_else(|e| panic!("{name}: {e}\n{}", made.cuda));
        assert_eq!(plan.launches().count(), made.launches, "{name}");
        assert_eq!(problem.outputs, made.outputs, "{name}");
        assert!(problem.inputs.iter().all(|i| made.sources.contains_key(&i.name)), "{name}");
        let again = lower(&graph).unwrap();
        assert_eq!(again, made, "{name}: a second time something else");
        for line in made.cuda.lines() {
            assert!(line.chars().count() <= 120, "{name}: {line}");
        }
    }
    let orphans: Vec<_> =
        files("graphs", "reference").into_iter().filter(|p| !p.with_extension("json").is_file()).collect();
    assert!(orphans.is_empty(), "{orphans:?}");
}

#[test]
fn every_graph_has_its_module() {
    for path in files("graphs", "json") {
        let module = folder("modules").join(path.with_extension("py").file_name().unwrap());
        assert!(module.is_file(), "{}", module.display());
    }
}

#[test]
fn hostile_graphs_are_refused_in_one_sentence_and_hostile_names_become_names() {
    for path in files("hostile", "json") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let expect = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|v| v["expect"].as_str().map(str::to_owned))
            .unwrap_or_else(|| "malformed".to_owned());
        let made =
            ExportedGraph::from_json(&text).and_then(|g| lower(&g)).and_then(|p| p.problem().map(|l| (p, l)));
        match made {
            Err(e) => {
                let said = e.to_string();
                assert!(!expect.is_empty() && said.contains(&expect), "{name}: {said}");
                assert!(said.len() < 400, "{name}: {said}");
            }
            Ok((made, problem)) => {
                assert!(expect.is_empty(), "{name} is taken");
                assert!(problem.dims.is_empty() && problem.inputs.len() == 1, "{name}");
                assert_eq!(made.cuda.matches("\nvoid launch(").count(), 1, "{name}: {}", made.cuda);
                assert!(problem.plan(&BTreeMap::new()).is_ok(), "{name}");
            }
        }
    }
}

#[test]
fn an_unsupported_graph_names_its_operator() {
    let text = std::fs::read_to_string(folder("hostile/unknown_operator.json")).unwrap();
    let e: Unsupported = lower(&ExportedGraph::from_json(&text).unwrap()).unwrap_err();
    assert_eq!(e.operator(), Some("aten.fft_fft.default"));
}
