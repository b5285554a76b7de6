//! `assay verify-ops`: our operators and references against PyTorch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_report::text as words;
use assay_torch::catalogue::{self, ProblemReport};
use assay_torch::verify::{self, Agreement, OperatorReport};
use assay_torch::{Settings, Torch, TorchError};
use serde_json::json;

use crate::cli::{Common, VerifyOpsArgs};
use crate::commands::list;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// The failure that an error between us and PyTorch is.
pub fn failure(e: TorchError) -> Failure {
    let exit = match &e {
        TorchError::Bad(_) | TorchError::Unusable(_) | TorchError::Io { action: "read", .. } => {
            Exit::BadInput
        }
        TorchError::Protocol(..) | TorchError::Died(..) => Exit::Bug,
        TorchError::Hung(..) => Exit::Exhausted,
        TorchError::Io { .. } => Exit::CannotWrite,
        TorchError::Interrupted => Exit::Interrupted,
    };
    Failure { exit, message: e.to_string() }
}

/// Runs the command.
///
/// # Errors
/// An unknown operator, no PyTorch, a worker that dies, hangs or breaks the protocol.
pub fn verify_ops(common: &Common, args: &VerifyOpsArgs) -> Result<Exit, Failure> {
    let names = verify::chosen(&args.operators).map_err(failure)?;
    let agreement = Agreement::builtin().map_err(failure)?;
    let problems =
        if args.operators.is_empty() { list::find_problems(&["level*/*".to_owned()])? } else { Vec::new() };
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // A second handler in one process cannot happen: this is the only command that runs.
    let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
    let settings = Settings {
        python: args.python.clone(),
        threads: common.jobs.map_or(1, usize::from),
        seconds: args.timeout,
        memory: None,
    };
    let mut torch = Torch::start(&settings, &interrupted).map_err(failure)?;
    let bar = Bar::new(common.quiet || common.json);
    bar.begin("operators", names.len() as u64);
    let mut operators = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        bar.at(i as u64, names.len() as u64);
        bar.say(name);
        operators
            .push(verify::operator(&mut torch, name, args.cases, common.seed, &agreement).map_err(failure)?);
    }
    bar.begin("references", problems.len() as u64);
    let mut references = Vec::with_capacity(problems.len());
    for (i, p) in problems.iter().enumerate() {
        bar.at(i as u64, problems.len() as u64);
        bar.say(&p.name);
        references.push(catalogue::problem(&mut torch, p, common.seed, &agreement).map_err(failure)?);
    }
    bar.finish();
    let unexplained: u64 = operators.iter().map(|o| o.unexplained).sum();
    let disagreeing = references.iter().filter(|r| !r.differences.is_empty()).count();
    if common.json {
        output::json(&json!({
            "environment": torch.environment(),
            "seed": common.seed,
            "cases": args.cases,
            "unexplained": unexplained,
            "operators": operators,
            "problems_compared": references.len(),
            "problems_disagreeing": disagreeing,
            "problems": references,
        }))?;
    } else {
        output::text(&page(torch.version(), &operators, &references))?;
    }
    torch.quit();
    Ok(if unexplained == 0 && disagreeing == 0 { Exit::Fine } else { Exit::Wrong })
}

/// The result for people: what differs, why, and how closely the rest agrees.
fn page(version: &str, operators: &[OperatorReport], references: &[ProblemReport]) -> String {
    let rows = operators.iter().map(|o| {
        let explained: u64 = o.explained.values().sum();
        let shown = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        vec![
            o.name.clone(),
            o.elements.to_string(),
            shown(o.refused),
            format!("{:.1}", o.worst_f64),
            format!("{:.1}", o.worst_f32),
            shown(explained),
            shown(o.unexplained),
        ]
    });
    // The longest name, `scaled_dot_product_attention`, leaves 52 columns.
    let header = ["Operator", "Elements", "Both refuse", "f64 eps", "f32 eps", "Explained", "Open"];
    let mut text = list::table(&header, rows);
    let mut reasons: std::collections::BTreeMap<&str, (u64, Vec<&str>)> = std::collections::BTreeMap::new();
    for o in operators {
        for (reason, count) in &o.explained {
            let slot = reasons.entry(reason).or_default();
            slot.0 += count;
            slot.1.push(&o.name);
        }
    }
    // What comes from problem files and from PyTorch's errors is a stranger's text.
    let mut line = |words: String| {
        text.push_str(&words::wrap(&words::clean(&words), output::width(), "", "  "));
    };
    for (reason, (count, names)) in &reasons {
        line(format!("explained, {count} times ({}): {reason}", names.join(", ")));
    }
    for d in operators.iter().flat_map(|o| &o.differences) {
        line(format!(
            "unexplained: `{}` in {} (case {} of `{}`): {}",
            d.program, d.precision, d.case, d.of, d.what,
        ));
        line(format!("with {}", d.inputs.join(", ")));
    }
    for r in references {
        for d in &r.differences {
            line(format!("reference of {} {}: {d}", r.problem, r.name));
        }
    }
    let (unexplained, cases) =
        operators.iter().fold((0, 0), |(u, c), o| (u + o.unexplained, c + 2 * o.cases));
    line(format!(
        "{} operators in {cases} evaluations against PyTorch {version}: {unexplained} unexplained differences",
        operators.len()
    ));
    if !references.is_empty() {
        let agree = references.iter().filter(|r| r.differences.is_empty()).count();
        line(format!("{agree} of {} references agree with PyTorch", references.len()));
    }
    text
}
