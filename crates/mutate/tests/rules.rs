//! What holds of every rule.

mod common;

use std::collections::BTreeSet;

use assay_mutate::{Family, RULES, rule_named};
use common::{framed, mutants_of};

#[test]
fn ids_are_unique_nouns_in_camel_case() {
    let mut seen = BTreeSet::new();
    for rule in RULES {
        let id = rule.info().id;
        assert!(seen.insert(id), "two rules are named {id}");
        assert!(id.starts_with(|c: char| c.is_ascii_uppercase()), "{id}");
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
        assert_eq!(rule_named(id).map(|r| r.info()), Some(rule.info()));
    }
    assert!(rule_named("NoSuchRule").is_none());
}

#[test]
fn every_family_has_at_least_the_papers_number_of_rules() {
    // The checker paper's table, and for width, which it lacks, what the boundary paper's faults take.
    let least = [5, 13, 18, 27, 6, 27, 10];
    assert_eq!(Family::ALL.len(), least.len());
    for (family, least) in Family::ALL.iter().zip(least) {
        let count = RULES.iter().filter(|rule| rule.info().family == *family).count();
        assert!(count >= least, "{family}: {count} rules, not {least}");
    }
    assert!(RULES.len() >= 140, "{} rules", RULES.len());
}

#[test]
fn families_stand_together_and_the_papers_six_come_first() {
    // A change that two rules propose belongs to the first: never to width, which is scored apart.
    let families: Vec<Family> = RULES.iter().map(|rule| rule.info().family).collect();
    assert!(families.is_sorted());
    assert_eq!(families.last(), Some(&Family::Width));
}

#[test]
fn reasons_are_one_line_and_say_their_source() {
    for rule in RULES {
        let info = rule.info();
        for text in [info.reason, info.source] {
            assert!(!text.is_empty() && !text.contains('\n') && !text.ends_with('.'), "{}: {text}", info.id);
        }
        assert!(!rule.kinds().is_empty(), "{}", info.id);
    }
}

#[test]
fn every_documented_example_really_happens() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let info = rule.info();
        let got = mutants_of(*rule, info.before);
        if got != info.after {
            wrong.push(format!("{}: {} gives {got:?}, not {:?}", info.id, info.before, info.after));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_documented_example_parses() {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).unwrap();
    for rule in RULES {
        let info = rule.info();
        for snippet in std::iter::once(&info.before).chain(info.after) {
            let source = framed(snippet);
            let tree = parser.parse(&source, None).unwrap();
            assert!(!tree.root_node().has_error(), "{}: {snippet}", info.id);
        }
    }
}

#[test]
fn node_kinds_are_the_grammars_own() {
    let language: tree_sitter::Language = tree_sitter_cuda::LANGUAGE.into();
    for rule in RULES {
        for kind in rule.kinds() {
            assert_ne!(language.id_for_node_kind(kind, true), 0, "{}: {kind}", rule.info().id);
        }
    }
}
