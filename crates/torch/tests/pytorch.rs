//! Against a real PyTorch, where `ASSAY_TORCH_PYTHON` names an interpreter that has it. `ASSAY_VERIFY_CASES` draws more
//! cases, `ASSAY_VERIFY_SEED` others, `ASSAY_VERIFY_OPERATOR` those of one operator.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use assay_problems::{Root, discover};
use assay_torch::verify::{self, Agreement};
use assay_torch::{Settings, Torch, catalogue};

static NEVER: AtomicBool = AtomicBool::new(false);

fn torch() -> Option<Torch<'static>> {
    let python = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file());
    let Some(python) = python else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return None;
    };
    Some(Torch::start(&Settings { python, threads: 1, seconds: 60, memory: None }, &NEVER).unwrap())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn operators_differ_from_pytorch_only_where_the_table_says_why() {
    let Some(mut torch) = torch() else { return };
    let agreement = Agreement::builtin().unwrap();
    let (cases, seed) = (number("ASSAY_VERIFY_CASES", 10), number("ASSAY_VERIFY_SEED", 0));
    let only: Vec<String> = std::env::var("ASSAY_VERIFY_OPERATOR").into_iter().collect();
    let mut all = Vec::new();
    for name in verify::chosen(&only).unwrap() {
        let report = verify::operator(&mut torch, name, cases, seed, &agreement).unwrap();
        assert!(report.elements > 0, "`{name}`: nothing was compared");
        println!(
            "{name}: {} elements, both refuse {}, f64 {:.1}, f32 {:.1}, explained {:?}, unexplained {}",
            report.elements,
            report.refused,
            report.worst_f64,
            report.worst_f32,
            report.explained.values().sum::<u64>(),
            report.unexplained
        );
        for d in &report.differences {
            all.push(format!(
                "`{}` {} case {} ({}): {}\n    {}",
                d.program,
                d.precision,
                d.case,
                report.unexplained,
                d.what,
                d.inputs.join("; ")
            ));
        }
    }
    assert!(all.is_empty(), "{} unexplained:\n{}", all.len(), all.join("\n"));
}

#[test]
fn references_of_the_catalogue_agree_with_pytorch_as_they_stand() {
    let Some(mut torch) = torch() else { return };
    let problems = discover(&["level*/*"], &Root::locate()).unwrap();
    assert!(problems.len() >= 200);
    let agreement = Agreement::builtin().unwrap();
    // Every seventh, so that the test is quick; `assay verify-ops` takes all.
    let step = number("ASSAY_VERIFY_STEP", 7) as usize;
    let mut all = Vec::new();
    for p in problems.iter().step_by(step.max(1)) {
        let report = catalogue::problem(&mut torch, p, 0, &agreement).unwrap();
        assert!(report.elements > 0 || !report.differences.is_empty(), "{}: nothing was compared", p.key());
        println!(
            "{} {}: f64 {:.1e}, f32 {:.1e}, uncertain {:.1e}",
            p.key(),
            p.name,
            report.f64,
            report.f32,
            report.uncertain
        );
        all.extend(report.differences.iter().map(|d| format!("{} {}: {d}", p.key(), p.name)));
    }
    assert!(all.is_empty(), "{} differ:\n{}", all.len(), all.join("\n"));
}
