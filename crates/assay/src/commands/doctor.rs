//! `assay doctor`: what is installed, and a planted fault for every detector.

use assay_campaign::check::run_launch;
use assay_nvrtc::Compiler;
use assay_simt::{Finding, Schedule};
use clap::Parser as _;
use serde::Deserialize;
use serde_json::json;

use crate::cli::{Cli, Command, Common};
use crate::commands::{audit, check, list, run, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

const PLANTS: &str = include_str!("../../../../testdata/doctor/plants.toml");
const SOURCE: &str = include_str!("../../../../testdata/doctor/plants.cu");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plants {
    plant: Vec<Plant>,
}

/// A kernel and the one finding it must give; none for a kernel without a fault. Without a kernel the file's `launch`
/// runs, which says what is an input: grid and block are its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default = "one")]
    grid: u64,
    #[serde(default = "one")]
    block: u64,
    args: Vec<String>,
    /// Kinds that the same fault may or must give as well.
    #[serde(default)]
    also: Vec<String>,
}

fn one() -> u64 {
    1
}

/// Runs the command.
///
/// # Errors
/// NVRTC that can be neither found nor installed.
pub fn doctor(common: &Common) -> Result<Exit, Failure> {
    let bar = Bar::new(common.quiet || common.json);
    let install = tools::install(&bar)?;
    let compiler = tools::compiler(&bar, 1)?;
    bar.finish();
    let plants: Plants = toml::from_str(PLANTS).map_err(Failure::bug)?;
    let mut rows = Vec::new();
    let mut sound = true;
    for p in &plants.plant {
        let ran = match &p.kernel {
            Some(kernel) => one_kernel(p, kernel, &compiler),
            None => own_launch(p, &compiler),
        };
        let (seen, error) = match ran {
            Ok(f) => (f.iter().map(|f| f.kind.name().to_owned()).collect::<Vec<_>>(), None),
            Err(e) => (Vec::new(), Some(e.message)),
        };
        let planted = p.kind.as_ref().is_none_or(|k| seen.contains(k));
        let nothing_else = seen.iter().all(|k| Some(k) == p.kind.as_ref() || p.also.contains(k));
        let ok = error.is_none() && planted && nothing_else;
        sound &= ok;
        rows.push((p.kind.clone().unwrap_or_else(|| "(no fault)".into()), ok, seen, error));
    }
    if common.json {
        let detectors: Vec<_> = rows
            .iter()
            .map(|(kind, ok, seen, error)| json!({ "planted": kind, "ok": ok, "seen": seen, "error": error }))
            .collect();
        output::json(&json!({
            "assay": env!("CARGO_PKG_VERSION"),
            "nvrtc": install.version.to_string(),
            "nvrtc_library": install.library.display().to_string(),
            "detectors": detectors,
        }))?;
    } else {
        let mut text = format!(
            "assay {}\nNVRTC {} ({})\n\n",
            env!("CARGO_PKG_VERSION"),
            install.version,
            install.library.display()
        );
        let table = rows.iter().map(|(kind, ok, seen, error)| {
            let seen = error.clone().unwrap_or_else(|| seen.join(" "));
            vec![kind.clone(), if *ok { "reported" } else { "NOT AS PLANTED" }.into(), seen]
        });
        text.push_str(&list::table(&["Planted fault", "Detector", "Seen"], table));
        text.push_str(if sound {
            "every detector reports its planted fault\n"
        } else {
            "some detector does not work\n"
        });
        output::text(&text)?;
    }
    Ok(if sound { Exit::Fine } else { Exit::Bug })
}

/// The findings of one planted kernel.
fn one_kernel(p: &Plant, kernel: &str, compiler: &Compiler) -> Result<Vec<Finding>, Failure> {
    let (grid, block) = (p.grid.to_string(), p.block.to_string());
    let mut words = vec![
        "assay",
        "run",
        "plants.cu",
        "--sanitize",
        "--kernel",
        kernel,
        "--grid",
        &grid,
        "--block",
        &block,
    ];
    for a in &p.args {
        words.extend(["--arg", a.as_str()]);
    }
    let cli = Cli::try_parse_from(words).map_err(Failure::bug)?;
    let Command::Run(args) = cli.command else { return Err(Failure::bug("not a run")) };
    run::findings(&args, SOURCE, compiler)
}

/// The findings of the file's own `launch`.
fn own_launch(p: &Plant, compiler: &Compiler) -> Result<Vec<Finding>, Failure> {
    let args = check::launch_args(&p.args)?;
    let options = assay_nvrtc::Options::default();
    run_launch(SOURCE, "plants.cu", &args, compiler, &options, Schedule::Hardware, 0)
        .map(|ran| ran.findings)
        .map_err(|e| audit::failure(&e))
}
