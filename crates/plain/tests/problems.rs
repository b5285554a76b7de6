//! Every problem of the catalogue at a ragged shape: the reference as a chain of plain kernels, with every detector,
//! against float64. The shape is the middle one by elements of the inputs: the smallest are mostly ones, where a wrong
//! stride does not show.

mod common;

use std::path::Path;

use assay_plain::{Settings, check};
use assay_problems::{Extents, Problem, Recipe, Root, discover};
use assay_simt::Sanitize;
use common::runner;

/// What float32 is held to where rounding alone (the float32 reference against float64) stays below a tenth of it;
/// elsewhere the paper's official tolerance counts.
const TIGHT: f64 = 1e-4;
const OFFICIAL: f64 = 1e-2;

fn elements(problem: &Problem, shape: &std::collections::BTreeMap<String, u64>) -> u64 {
    let dims = problem.dims_with(shape, Extents::Desk).unwrap();
    let size = |i| problem.shape_of(i, &dims).unwrap().iter().product::<u64>();
    problem.inputs.iter().map(size).sum()
}

fn faults(level: u32) -> Vec<String> {
    let root = Root::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems"));
    let problems = discover::<&str>(&[], &root).unwrap_or_else(|e| panic!("{e}"));
    let settings = Settings { sanitize: Sanitize::ALL, ..Settings::default() };
    let mut out = Vec::new();
    let of_level: Vec<&Problem> = problems.iter().filter(|p| p.level == level).collect();
    assert!(!of_level.is_empty());
    for problem in of_level {
        let mut shapes: Vec<_> = problem.ragged.iter().collect();
        shapes.sort_by_key(|s| elements(problem, s));
        let shape = shapes[shapes.len() / 2];
        let dims = problem.dims_with(shape, Extents::Desk).unwrap();
        match check(runner(), problem, &Recipe::official(42), &dims, &settings) {
            Err(e) => out.push(format!("{} at {shape:?}: {e}", problem.key())),
            Ok(c) => {
                let tolerance = if c.reference <= TIGHT / 10.0 { TIGHT } else { OFFICIAL };
                if !c.truth.passes(tolerance) {
                    out.push(format!(
                        "{} at {shape:?}: {:e} from float64, float32 is {:e}",
                        problem.key(),
                        c.truth.threshold,
                        c.reference
                    ));
                }
                if let Some((op, f)) = c.chain.findings.first() {
                    out.push(format!("{} at {shape:?}: `{op}`: {}", problem.key(), f.message));
                }
            }
        }
    }
    out
}

#[test]
fn every_problem_of_level_1_is_a_chain_that_agrees_with_float64() {
    let all = faults(1);
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn every_problem_of_level_2_is_a_chain_that_agrees_with_float64() {
    let all = faults(2);
    assert!(all.is_empty(), "{}", all.join("\n"));
}
