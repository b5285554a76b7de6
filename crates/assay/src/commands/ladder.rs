//! `assay ladder`: what a generator of inputs must know to catch what the official inputs of a finished audit miss.

use std::path::Path;

use assay_campaign::ladder::{External, Ladder, LadderConfig, ladder as score};
use assay_campaign::records::Records;
use assay_report::text::{clean, wrap};
use assay_tensor::safetensors_io::write_file_atomic;

use crate::cli::{Common, LadderArgs};
use crate::commands::audit::failure;
use crate::commands::{list, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// `assay ladder`.
///
/// # Errors
/// No finished run there, problems that changed since, a folder that cannot be written.
pub fn ladder(common: &Common, args: &LadderArgs) -> Result<Exit, Failure> {
    let records = Records::read(&args.run).map_err(|e| failure(&e))?;
    super::audit::catalogue_only(&records.summary.environment, "ladder")?;
    let problems = list::find_problems(&args.problems)?;
    let external: Vec<External> = args
        .generators
        .iter()
        .map(|command| External { command: command.clone(), seconds: args.generator_timeout })
        .collect();
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, tools::jobs(common))?;
    let config = LadderConfig {
        records: &records,
        problems: &problems,
        most: args.most as usize,
        budget: args.budget as usize,
        external: &external,
        jobs: tools::jobs(common),
    };
    let done = score(&config, &compiler, &bar);
    bar.finish();
    let done = done.map_err(|e| failure(&e))?;
    write(&args.run.join("ladder.json"), &done)?;
    if common.json {
        output::json(&done)?;
    } else {
        output::text(&page(&done))?;
    }
    for r in done.rungs.iter().filter(|r| r.failures > 0) {
        output::say(format_args!(
            "warning: `{}` failed on {} of {} problems; the first: {}",
            clean(&r.name),
            r.failures,
            r.problems,
            assay_report::text::clean(r.first_failure.as_deref().unwrap_or_default())
        ));
    }
    Ok(Exit::Fine)
}

fn write(path: &Path, ladder: &Ladder) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(ladder).map_err(Failure::bug)?;
    bytes.push(b'\n');
    write_file_atomic(path, &bytes)
        .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", path.display())))
}

fn page(l: &Ladder) -> String {
    let percent = |p: Option<f64>| p.map_or_else(|| "–".to_owned(), |p| format!("{p:.1}%"));
    let rows = l.rungs.iter().map(|r| {
        let published = match (r.published_percent, &r.published_validity) {
            (Some(p), Some(v)) => format!("{p:.1}%, {v}: not comparable"),
            _ => "–".to_owned(),
        };
        vec![
            format!("{} {}", r.id, assay_report::text::clean(&r.name)),
            r.inputs.to_string(),
            percent(r.valid_percent),
            format!("{}, {}", r.killed, percent(r.killed_percent)),
            format!("{}/{}", r.false_kills, r.correct_runs),
            r.failures.to_string(),
            published,
        ]
    });
    let mut text = list::table(
        &["Generator", "Inputs", "Valid", "Killed", "False kills", "Failures", "Published"],
        rows,
    );
    text.push_str(&format!(
        "{} survivors of {} problems, {} inputs a problem; {} are killed by one or another\n",
        l.survivors,
        l.problems.len(),
        l.budget,
        l.killed_by_any
    ));
    for (what, words) in [("Hard set: ", &l.hard_set), ("Published: ", &l.published_note)] {
        text.push_str(&wrap(&clean(words), output::width(), what, "  "));
    }
    text
}
