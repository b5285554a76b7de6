//! Invariants and snapshots over the CUDA files of `testdata/cuda`.
//!
//! A snapshot lists every mutant of its file. To accept a change: `ASSAY_BLESS=1 cargo test
//! --package assay-mutate`, then read the diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assay_mutate::{Family, Mutant, RULES, mutants_by, mutants_in};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cuda")
}

fn files(extension: &str) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    found.sort();
    found
}

fn sources() -> Vec<(String, String)> {
    let found = files("cu");
    assert!(found.len() >= 4, "{found:?}");
    found
        .into_iter()
        .map(|(name, path)| (format!("{name}.cu"), std::fs::read_to_string(path).unwrap()))
        .collect()
}

fn listing(mutants: &[Mutant], source: &str) -> String {
    let mut out = String::new();
    for mutant in mutants {
        let side = if mutant.host { "host" } else { "device" };
        writeln!(out, "{} {} {} {side}\n{}", mutant.id, mutant.family, mutant.rule, mutant.name).unwrap();
        for line in mutant.diff(source).lines().skip(2) {
            if line.starts_with(['-', '+']) {
                writeln!(out, "{line}").unwrap();
            }
        }
        out.push('\n');
    }
    out
}

#[test]
fn every_mutant_is_as_its_snapshot_says() {
    let bless = std::env::var_os("ASSAY_BLESS").is_some();
    let mut known = BTreeSet::new();
    for (name, source) in sources() {
        let got = listing(&mutants_in(&source, &name).unwrap(), &source);
        let stem = name.trim_end_matches(".cu");
        let path = folder().join(format!("{stem}.mutants"));
        known.insert(stem.to_owned());
        if bless {
            std::fs::write(&path, &got).unwrap();
            continue;
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        if got != want {
            let diff = similar::TextDiff::from_lines(&want, &got).unified_diff().to_string();
            panic!("{} differs; ASSAY_BLESS=1 accepts\n{diff}", path.display());
        }
    }
    let listed: BTreeSet<String> = files("mutants").into_iter().map(|(name, _)| name).collect();
    assert_eq!(listed, known, "a snapshot without its source");
}

#[test]
fn edits_are_in_bounds_apart_and_really_change_something() {
    for (name, source) in sources() {
        for mutant in mutants_in(&source, &name).unwrap() {
            assert!(!mutant.edits.is_empty());
            let mut end = 0;
            for edit in &mutant.edits {
                assert!(edit.start >= end, "{}", mutant.name);
                assert!(edit.fits(&source), "{}", mutant.name);
                end = edit.end;
            }
            let mutated = mutant.apply(&source);
            assert_ne!(mutated, source, "{}", mutant.name);
            assert_eq!(mutated.matches('\n').count(), source.matches('\n').count(), "{}", mutant.name);
            assert!(mutant.line >= 1 && mutant.line as usize <= source.lines().count());
        }
    }
}

#[test]
fn ids_are_unique_and_do_not_depend_on_the_other_rules() {
    let mut ids = BTreeSet::new();
    for (name, source) in sources() {
        let all = mutants_in(&source, &name).unwrap();
        for mutant in &all {
            assert!(ids.insert(mutant.id.clone()), "{}", mutant.name);
        }
        for rule in RULES {
            let alone = mutants_by(&source, &name, &[*rule]).unwrap();
            let id = rule.info().id;
            for mutant in all.iter().filter(|m| m.rule == id) {
                assert!(alone.iter().any(|m| m == mutant), "{}", mutant.name);
            }
        }
        assert_eq!(all, mutants_in(&source, &name).unwrap());
        let renamed = mutants_in(&source, "other.cu").unwrap();
        assert!(renamed.iter().zip(&all).all(|(a, b)| a.id != b.id && a.edits == b.edits));
    }
}

#[test]
fn mutants_come_by_position_then_by_rule() {
    let place = |rule: &str| RULES.iter().position(|r| r.info().id == rule).unwrap();
    for (name, source) in sources() {
        let mutants = mutants_in(&source, &name).unwrap();
        let order: Vec<_> = mutants.iter().map(|m| (m.line, m.column, place(m.rule))).collect();
        assert!(order.is_sorted(), "{name}");
        let texts: BTreeSet<String> = mutants.iter().map(|m| m.apply(&source)).collect();
        assert_eq!(texts.len(), mutants.len(), "{name}: two mutants are one text");
    }
}

/// Nodes that the grammar could not make sense of.
fn errors(source: &str) -> usize {
    fn below(node: tree_sitter::Node<'_>) -> usize {
        let own = usize::from(node.is_error() || node.is_missing());
        let mut cursor = node.walk();
        if !node.has_error() { own } else { own + node.children(&mut cursor).map(below).sum::<usize>() }
    }
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).unwrap();
    below(parser.parse(source, None).unwrap().root_node())
}

#[test]
fn every_mutant_parses_as_well_as_its_source_and_every_diff_rebuilds_it() {
    for (name, source) in sources() {
        let known = errors(&source);
        for mutant in mutants_in(&source, &name).unwrap() {
            let mutated = mutant.apply(&source);
            assert_eq!(errors(&mutated), known, "{}", mutant.name);
            assert_eq!(patch(&source, &mutant.diff(&source)), mutated, "{}", mutant.name);
        }
    }
}

/// A unified diff put to use: an independent reading of what `diff` says.
fn patch(source: &str, diff: &str) -> String {
    let old: Vec<&str> = source.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    for line in diff.split_inclusive('\n').skip(2) {
        if let Some(header) = line.strip_prefix("@@ -") {
            let start: usize = header.split([',', ' ']).next().unwrap().parse().unwrap();
            out.extend(old[at..start - 1].iter().copied());
            at = start - 1;
        } else if let Some(new) = line.strip_prefix('+') {
            out.push_str(new);
        } else {
            assert_eq!(line.get(1..), old.get(at).copied());
            if line.starts_with(' ') {
                out.push_str(old[at]);
            }
            at += 1;
        }
    }
    out.extend(old[at..].iter().copied());
    out
}

#[test]
fn a_kernel_file_has_neither_few_mutants_nor_many() {
    for (name, source) in sources() {
        let mutants = mutants_in(&source, &name).unwrap();
        let kernels =
            source.matches("__global__").count() + source.matches("__device__ __forceinline__").count();
        assert!(mutants.len() >= 40, "{name}: {}", mutants.len());
        assert!(mutants.len() <= 50 + 60 * kernels, "{name}: {}", mutants.len());
        let families: BTreeSet<_> = mutants.iter().map(|m| m.family).collect();
        assert_eq!(families, Family::ALL.iter().copied().collect(), "{name}");
        assert!(mutants.iter().any(|m| m.host), "{name}: no mutant in the launcher");
    }
}

#[test]
fn the_file_of_large_views_has_every_width_rule() {
    let (name, source) = sources().into_iter().find(|(name, _)| name == "large_views.cu").unwrap();
    let mutants = mutants_in(&source, &name).unwrap();
    for rule in RULES.iter().filter(|rule| rule.info().family == Family::Width) {
        let id = rule.info().id;
        assert!(mutants.iter().any(|m| m.rule == id), "{id}");
    }
}

#[test]
fn half_a_file_is_never_a_panic() {
    for (name, source) in sources() {
        for end in (0..source.len()).step_by(61) {
            for part in [source.get(..end), source.get(end..)].into_iter().flatten() {
                if let Ok(mutants) = mutants_in(part, &name) {
                    assert!(mutants.iter().all(|m| m.apply(part) != part), "{name} cut at {end}");
                }
            }
        }
    }
}

#[test]
fn hostile_nesting_ends_soon() {
    let deep = 20_000;
    let sum = "a + ".repeat(deep);
    let open = "(".repeat(deep);
    let close = ")".repeat(deep);
    for body in [
        format!("y[0] = {sum}a;"),
        format!("y[0] = {open}a{close};"),
        "{".repeat(deep),
        "if (a < b) ".repeat(deep),
        format!("y[0] = {}a;", "-".repeat(deep)),
    ] {
        let source = format!("__global__ void k(float* y, float a, float b) {{ {body} }}\n");
        // Whatever the answer, it comes.
        let _ = mutants_in(&source, "deep.cu");
    }
}

#[test]
fn other_line_ends_and_letters_are_kept() {
    let source = "// naïve Σ\r\n__global__ void k(float* y, float a, float b) {\r\n    /* é */ y[0] = a + b; // ü\r\n}\r\n";
    let mutants = mutants_in(source, "ä.cu").unwrap();
    let add = mutants.iter().find(|m| m.rule == "AddToSub").unwrap();
    assert_eq!(add.name, "ä.cu:3:22: replace + with - in k");
    assert_eq!(add.apply(source), source.replace("a + b", "a - b"));
}
