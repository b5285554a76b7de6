//! `assay report` and `assay suite`: what a finished audit found, again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_campaign::records::Records;
use assay_measure::{Protocol, Tolerance};
use assay_report::{Bundle, MutantRecord, SourceFile, SuiteSet};
use assay_tensor::safetensors_io::write_file_atomic;

use crate::cli::{Common, ReportArgs, SuiteArgs};
use crate::commands::audit::failure;
use crate::exit::{Exit, Failure};
use crate::output;

/// How long a program that opens a page has to fail.
const OPENER_PATIENCE: Duration = Duration::from_secs(2);

/// The report of one run.
pub struct Report {
    bundle: Bundle,
}

/// Reads a finished run.
///
/// # Errors
/// Bad input: no run there, one that was not finished, one of another version.
pub fn bundle(folder: &Path) -> Result<Report, Failure> {
    Ok(of_records(folder, Records::read(folder).map_err(|e| failure(&e))?))
}

/// The report that a run's records make.
fn of_records(folder: &Path, records: Records) -> Report {
    let Records { summary, protocols, matrices, mutants, sources, seed: _ } = records;
    let mutants = mutants
        .into_iter()
        .map(|(problem, m)| MutantRecord {
            problem,
            id: m.id,
            rule: m.rule,
            family: m.family,
            host: m.host,
            line: m.line,
            name: m.name,
            diff: m.diff,
            status: m.status,
            reason: m.reason,
        })
        .collect();
    let sources =
        sources.into_iter().map(|s| SourceFile { problem: s.problem, path: s.path, text: s.text }).collect();
    let matrices: Vec<_> = matrices.into_iter().map(|(_, m)| m).collect();
    let folder = folder.display().to_string();
    Report { bundle: Bundle::gather(summary, folder, mutants, sources, protocols, &matrices) }
}

/// The protocols to score again: those named or the run's, at the tolerance if one is given.
fn rescored(args: &ReportArgs, records: &Records) -> Result<Vec<Protocol>, Failure> {
    let mut protocols = match args.protocols.as_slice() {
        [] => records.protocols.clone(),
        names => names.iter().map(|n| super::audit::protocol(n)).collect::<Result<_, _>>()?,
    };
    if let Some(t) = args.tolerance {
        for p in protocols.iter_mut().filter(|p| p.checker.is_none()) {
            // Another name, so that nothing published of the protocol is taken for this.
            *p = p.with_tolerance(format!("{}@{t:e}", p.name), Tolerance::both(t));
        }
    }
    Ok(protocols)
}

impl Report {
    /// Writes `mutation-report.json`, `report.html` and `suites/*.toml`, each whole or not at all.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let mut stryker = serde_json::to_vec(&self.bundle.stryker()).map_err(Failure::bug)?;
        stryker.push(b'\n');
        write(&folder.join("mutation-report.json"), &stryker)?;
        write(&folder.join("report.html"), self.bundle.html().map_err(Failure::bug)?.as_bytes())?;
        let suites = folder.join("suites");
        fs::create_dir_all(&suites)
            .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", suites.display())))?;
        for suite in &self.bundle.suites {
            write(&suites.join(suite.file_name()), suite.toml().as_bytes())?;
        }
        Ok(())
    }

    /// The terminal page, no line wider than `width`.
    pub fn page(&self, width: usize) -> String {
        self.bundle.page(width)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_file_atomic(path, bytes)
        .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", path.display())))
}

/// The run's records; with `--partial` also those of one that is not finished.
fn read(args: &ReportArgs) -> Result<Records, Failure> {
    let read = if args.partial { Records::read_partial } else { Records::read };
    read(&args.run).map_err(|e| failure(&e))
}

/// `assay report`.
///
/// # Errors
/// No finished run there and no `--partial`, or it cannot be written.
pub fn report(common: &Common, args: &ReportArgs) -> Result<Exit, Failure> {
    let report = if args.tolerance.is_some() || !args.protocols.is_empty() {
        let mut records = read(args)?;
        let protocols = rescored(args, &records)?;
        records.summary = records.rescore(&args.run, &protocols).map_err(|e| failure(&e))?;
        records.protocols = protocols;
        of_records(&args.run, records)
    } else if args.partial {
        of_records(&args.run, read(args)?)
    } else {
        let report = bundle(&args.run)?;
        report.write(&args.run)?;
        report
    };
    if args.partial && !common.quiet && !args.run.join("summary.json").is_file() {
        let said = report.bundle.summary.caveats.first().map_or("", String::as_str);
        output::say(format_args!("warning: {}", said.split(';').next().unwrap_or_default()));
    }
    if common.json {
        output::json(&report.bundle.summary)?;
    } else {
        let width = output::width();
        let mut text = report.page(width);
        text.push('\n');
        text.push_str(&report.bundle.tables(width));
        let details = report.bundle.details(width);
        if !details.is_empty() {
            text.push_str("\nThe survivors with their diffs\n\n");
            text.push_str(details.trim_end());
            text.push('\n');
        }
        output::text(&text)?;
    }
    if args.open {
        let page = args.run.join("report.html");
        if let Err(why) = open(&page) {
            output::say(format_args!("warning: {why}; open `{}` in a browser yourself", page.display()));
        }
    }
    Ok(Exit::Fine)
}

/// Hands the page to the system's browser; says why where that fails at once.
fn open(page: &Path) -> Result<(), String> {
    // A relative path that starts with a hyphen would be an option.
    let page = fs::canonicalize(page).map_err(|e| e.to_string())?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut child = Command::new(program)
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start `{program}` ({e})"))?;
    let started = Instant::now();
    while started.elapsed() < OPENER_PATIENCE {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{program}` failed ({status})")),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(e) => return Err(e.to_string()),
        }
    }
    // It is still at work: some openers stay for as long as the browser does.
    Ok(())
}

/// `assay suite`.
///
/// # Errors
/// No finished run there.
pub fn suite(common: &Common, args: &SuiteArgs) -> Result<Exit, Failure> {
    if args.budget == 0 {
        return Err(Failure::bad_input("--budget 0: a suite has at least one input a problem"));
    }
    if let Some(out) = &args.out {
        return super::export::suite(common, args, out);
    }
    let records = Records::read(&args.run).map_err(|e| failure(&e))?;
    let matrices: Vec<_> = records.matrices.into_iter().map(|(_, m)| m).collect();
    let suites = SuiteSet::select(&matrices, args.budget);
    if common.json {
        output::json(&suites.json())?;
    } else {
        let mut text = suites.page(output::width());
        let file = args.run.join("suites").join(suites.file_name());
        if file.is_file() {
            text.push_str(&format!("As a protocol: --protocol {}\n", file.display()));
        }
        output::text(&text)?;
    }
    Ok(Exit::Fine)
}
