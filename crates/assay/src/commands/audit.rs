//! `assay audit`, and the gate of `assay problems --verify`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use assay_campaign::{AuditConfig, CampaignError, audit as run_audit};
use assay_measure::{Environment, Protocol};
use assay_problems::{Extents, Operators, Oracle, OracleError, Problem};
use assay_report::text::clean;
use assay_torch::kernelbench::Substrate;
use serde_json::json;

use crate::cli::{AuditArgs, Common, ExtentsArg};
use crate::commands::{kernelbench, list, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// The problems audited without `--problems` and `--all`: those of the first release, also when there are more.
const DEFAULT_PROBLEMS: [&str; 14] = [
    "level1/1_*",
    "level1/4_*",
    "level1/19_*",
    "level1/23_*",
    "level1/26_*",
    "level1/36_*",
    "level1/40_*",
    "level1/42_*",
    "level1/47_*",
    "level1/51_*",
    "level1/57_*",
    "level1/63_*",
    "level1/89_*",
    "level2/12_*",
];

/// Runs the command.
///
/// # Errors
/// Bad input, an unwritable folder, an interrupt, what this version lacks.
pub fn audit(common: &Common, args: &AuditArgs) -> Result<Exit, Failure> {
    if let Some(pct) = args.fail_under
        && !(0.0..=100.0).contains(&pct)
    {
        return Err(Failure::bad_input(format!("--fail-under {pct}: a percentage is between 0 and 100")));
    }
    let asked = match &args.kernelbench {
        Some(path) => Some(kernelbench::find(path, args)?),
        None => None,
    };
    let protocols = protocols(args)?;
    let folder = args.out.clone().unwrap_or_else(|| super::default_folder("audit"));
    let bar = Bar::new(common.quiet || common.json);
    let interrupt = interrupt(&folder)?;
    let (chosen, files) = match asked {
        Some(asked) => {
            let (chosen, files) = kernelbench::choose(asked, args, &folder, &bar, &interrupt)?;
            (chosen, Some(files))
        }
        None => {
            let problems = list::find_problems(&patterns(args))?;
            (Chosen { problems, ..Chosen::default() }, None)
        }
    };
    let official = args.extents == ExtentsArg::Official;
    let at_extents = |p: Problem| if official { p.at_official_extents() } else { p };
    let config = AuditConfig {
        caveats: chosen.caveats(),
        problems: chosen.problems.into_iter().map(at_extents).collect(),
        oracle: files.as_ref().map_or(&Operators as &dyn Oracle, |f| f),
        extents: if official { Extents::Official } else { Extents::Desk },
        protocols,
        folder: folder.clone(),
        resume: args.resume,
        jobs: tools::jobs(common),
        seed: common.seed,
        install: tools::install(&bar)?,
        worker: tools::worker()?,
        interrupt: Arc::clone(&interrupt),
    };
    let finished = run_audit(&config, &bar);
    bar.finish();
    let finished = finished.map_err(|e| failure(&e))?;
    for made in &chosen.made {
        let to = folder.join("generated").join(&made.name);
        made.substrate
            .problem
            .write(&to)
            .map_err(|e| Failure::cannot_write(format!("cannot write `{}`: {e}", to.display())))?;
    }
    let bundle = super::report::bundle(&folder)?;
    bundle.write(&folder)?;
    if common.json {
        output::json(&finished.summary)?;
    } else {
        output::text(&bundle.page(output::width()))?;
    }
    let mut exit = Exit::Fine;
    for failed in &finished.baselines_failed {
        let (what, code) = match finished.oracle_failures.get(&failed.problem) {
            None => ("baseline", Exit::BaselineFailed),
            Some(e @ OracleError::Exhausted(_)) => ("evaluation", code_of(e)),
            Some(e) => ("file", code_of(e)),
        };
        output::say(format_args!(
            "error: the {what} of {} ({}) failed and it is left out: {}",
            failed.problem,
            failed.name,
            clean(&failed.reason)
        ));
        exit = exit.and(code);
    }
    for made in &chosen.made {
        let why = made.why.as_ref().map_or(String::new(), |why| format!(": {}", clean(why)));
        output::say(format_args!(
            "note: {}: the substrate is generated from its module, as problem {}{why}",
            made.file, made.key
        ));
    }
    for (file, why) in &chosen.without {
        output::say(format_args!("error: {file}: no substrate: {}", clean(&why.to_string())));
        exit = exit.and(code_of(why));
    }
    for row in finished.summary.protocols.iter().filter(|p| p.checker_failures.is_some_and(|n| n > 0)) {
        let first = finished.matrices.iter().find_map(|m| {
            let runs = m.checkers.get(&row.name)?;
            runs.first_failure.as_ref().map(|what| format!("{}: {what}", m.key()))
        });
        output::say(format_args!(
            "warning: `{}` failed on {} of its runs, which count neither as kills nor as passes; the first: {}",
            row.name,
            row.checker_failures.unwrap_or(0),
            clean(&first.unwrap_or_default())
        ));
    }
    if let (Some(pct), Some(first)) = (args.fail_under, finished.summary.protocols.first())
        && (first.detected_percent.unwrap_or(0.0) < pct || first.false_kills > 0)
    {
        output::say(format_args!(
            "error: `{}` detects {:.1}% of the witnessed faults with {} false kills; --fail-under asks {pct}% and none",
            first.name,
            first.detected_percent.unwrap_or(0.0),
            first.false_kills
        ));
        exit = exit.and(Exit::Wrong);
    }
    Ok(exit)
}

/// The exit code of a file that gives nothing.
pub fn code_of(e: &OracleError) -> Exit {
    match e {
        OracleError::Unsupported(_) => Exit::Unsupported,
        OracleError::Exhausted(_) => Exit::Exhausted,
        _ => Exit::BaselineFailed,
    }
}

/// The problems that are to be audited.
#[derive(Default)]
pub struct Chosen {
    /// Those with a substrate.
    pub problems: Vec<Problem>,
    /// Those among them that were made from their file.
    pub made: Vec<Made>,
    /// Files without a substrate, and why.
    pub without: Vec<(String, OracleError)>,
}

/// A problem that was made from a file.
pub struct Made {
    /// The file, for messages.
    pub file: String,
    /// The problem's key.
    pub key: String,
    /// Where its folder is, below those of the run.
    pub name: String,
    /// What it was made from, and its text.
    pub substrate: Substrate,
    /// Why it is not the catalogue's, where the catalogue has one.
    pub why: Option<String>,
}

impl Chosen {
    /// What a reader of the summary must know of them.
    fn caveats(&self) -> Vec<String> {
        if self.made.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "{} of {} substrates are generated from the benchmark's modules, one plain kernel per call, at one set of \
             extents: faults that need another shape (ragged extents, more than one width of an index) have no witness \
             there.",
            self.made.len(),
            self.problems.len()
        )]
    }
}

/// Refuses a run whose inputs only PyTorch can make again.
///
/// # Errors
/// Unsupported.
pub fn catalogue_only(environment: &Environment, command: &str) -> Result<(), Failure> {
    match environment.get("oracle").and_then(|o| o.as_str()) {
        Some(oracle) => Err(Failure::unsupported(format!(
            "`{command}` makes inputs again, and those of this run are {oracle}'s on files of a benchmark"
        ))),
        None => Ok(()),
    }
}

/// Patterns of the problems that are asked for.
pub fn patterns(args: &AuditArgs) -> Vec<String> {
    if !args.problems.is_empty() {
        args.problems.clone()
    } else if args.all || !args.levels.is_empty() || !args.ids.is_empty() {
        Vec::new()
    } else {
        DEFAULT_PROBLEMS.iter().map(|&p| p.to_owned()).collect()
    }
}

/// `assay problems --verify`: the gate alone.
///
/// # Errors
/// As [`audit`].
pub fn verify(common: &Common, problems: Vec<Problem>) -> Result<Exit, Failure> {
    let bar = Bar::new(common.quiet || common.json);
    let compiler = tools::compiler(&bar, tools::jobs(common))?;
    let mut rows = Vec::new();
    let mut exit = Exit::Fine;
    let all = Instant::now();
    for problem in &problems {
        let started = Instant::now();
        let verdict = assay_campaign::verify(problem, &compiler, tools::jobs(common), common.seed, &bar);
        let verdict = match verdict {
            Ok(verdict) => verdict,
            // A fault of this problem's files: the others are to be judged all the same.
            Err(e @ CampaignError::Input(_)) => {
                exit = exit.and(failure(&e).exit);
                Some(e.to_string())
            }
            Err(e) => return Err(failure(&e)),
        };
        if verdict.is_some() {
            exit = exit.and(Exit::BaselineFailed);
        }
        rows.push((problem, verdict, started.elapsed().as_secs_f64()));
    }
    bar.finish();
    for (problem, ..) in rows.iter().filter(|_| !common.quiet) {
        for loss in problem.unsaid_losses() {
            let file = problem.dir.join("problem.toml");
            output::say(format_args!("note: {}: no word in `notes` of this: {loss}", file.display()));
        }
    }
    let wall = all.elapsed().as_secs_f64();
    if common.json {
        let records: Vec<_> = rows
            .iter()
            .map(|(p, v, seconds)| {
                json!({
                    "level": p.level, "id": p.id, "name": p.name, "passes": v.is_none(), "reason": v,
                    "seconds": seconds,
                })
            })
            .collect();
        output::json(&records)?;
    } else {
        let table = rows.iter().map(|(p, v, seconds)| {
            let word = v.as_deref().unwrap_or("ok").to_owned();
            vec![p.key(), p.name.clone(), format!("{seconds:.1}"), word]
        });
        let mut text = list::table(&["Id", "Problem", "Seconds", "Gate"], table);
        let passed = rows.iter().filter(|(_, v, _)| v.is_none()).count();
        text.push_str(&format!("{passed} of {} substrates pass, in {wall:.0} seconds\n", rows.len()));
        output::text(&text)?;
    }
    Ok(exit)
}

/// The built-in protocol of that name, or the one in that TOML file.
///
/// # Errors
/// Bad input: neither.
pub fn protocol(name: &str) -> Result<Protocol, Failure> {
    let all = assay_measure::builtin().map_err(Failure::bug)?;
    if let Some(p) = all.iter().find(|p| p.name == name) {
        return Ok(p.clone());
    }
    if Path::new(name).extension().is_some_and(|e| e == "toml") {
        let text = list::read_source(Path::new(name))?;
        let protocol = Protocol::parse(&text, name).map_err(Failure::bad_input)?;
        return assay_campaign::canonical(&protocol).map_err(|e| Failure::bad_input(format!("{name}: {e}")));
    }
    let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
    Err(Failure::bad_input(format!(
        "unknown protocol `{name}`; built in are {}, or name a TOML file",
        names.join(", ")
    )))
}

/// The protocols asked for, then the checkers; then all built in.
fn protocols(args: &AuditArgs) -> Result<Vec<Protocol>, Failure> {
    let all = assay_measure::builtin().map_err(Failure::bug)?;
    let mut out: Vec<Protocol> = Vec::new();
    for name in &args.protocols {
        let protocol = protocol(name)?;
        if out.iter().any(|p| p.name == protocol.name) {
            return Err(Failure::bad_input(format!("two protocols have the name `{}`", protocol.name)));
        }
        out.push(protocol);
    }
    for command in &args.checkers {
        // What the official check asks, unless a protocol's file says otherwise.
        let official = all.first().ok_or_else(|| Failure::bug("no built-in protocol"))?;
        let taken = |name: &str| out.iter().chain(&all).any(|p| p.name == name);
        let names = (1..).map(|n| if n == 1 { "checker".to_owned() } else { format!("checker-{n}") });
        let name = names.into_iter().find(|n| !taken(n)).unwrap_or_default();
        let checker = official
            .with_checker(name, command.as_str(), args.checker_timeout)
            .map_err(|what| Failure::bad_input(format!("--checker: {what}")))?;
        out.push(checker);
    }
    // The rest is scored too: a rate means little alone.
    let rest: Vec<Protocol> = all.into_iter().filter(|p| out.iter().all(|o| o.name != p.name)).collect();
    out.extend(rest);
    Ok(out)
}

/// How long the stages have to end by themselves after Ctrl-C; a batch in the compiler can take longer.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(1200);

/// A flag that Ctrl-C or a termination signal sets. Where the stages do not end soon, the process does: whatever is
/// evaluated is committed. The second signal ends it at once.
fn interrupt(folder: &Path) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let message = CampaignError::Interrupted { path: folder.to_owned() }.to_string();
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::SeqCst) {
            std::process::exit(Exit::Interrupted as i32);
        }
        let message = message.clone();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            output::say(format_args!("error: {message}"));
            std::process::exit(Exit::Interrupted as i32);
        });
    })
    .map_err(|e| Failure::bug(format!("signal handler: {e}")))?;
    Ok(flag)
}

/// The failure that a campaign's error is.
pub fn failure(e: &CampaignError) -> Failure {
    let exit = match e {
        CampaignError::CannotWrite { .. } => Exit::CannotWrite,
        CampaignError::BadRun { .. } | CampaignError::Busy { .. } | CampaignError::Input(_) => Exit::BadInput,
        CampaignError::Baseline(_) | CampaignError::Oracle(_) => Exit::BaselineFailed,
        CampaignError::Interrupted { .. } => Exit::Interrupted,
        CampaignError::Internal(_) => Exit::Bug,
    };
    Failure { exit, message: e.to_string() }
}
