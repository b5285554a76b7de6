//! Developer tasks: `cargo xtask check` (documents agree with the tree), `cargo xtask bless` (rewrite snapshots),
//! `cargo xtask gate` (every substrate of the catalogue against its reference), `cargo xtask shipped RUN` (the default
//! audit in RUN selects the suites that ship), `cargo xtask strongest RUN` (the audit of all problems in RUN selects the suite
//! that `assay check` asks, and its inputs are those shipped), `cargo xtask fuzz --minutes N [--seed S]` (the fuzz targets as seeded
//! tests), `cargo xtask slow` (the tests that take minutes each, which `cargo test` leaves out).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "check" => check(),
        "bless" => bless(),
        "gate" => gate(&std::env::args().skip(2).collect::<Vec<_>>()),
        "shipped" => shipped(std::env::args().nth(2)),
        "strongest" => strongest(std::env::args().nth(2)),
        "slow" => slow(),
        "fuzz" => fuzz(&std::env::args().skip(2).collect::<Vec<_>>()),
        _ => {
            eprintln!(
                "usage: cargo xtask check | bless | gate [--jobs N] | shipped RUN | strongest RUN | fuzz --minutes N [--seed S] | slow"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Documents name only paths that exist, every crate stands in ARCHITECTURE.md, the Python package has the version of the
/// workspace, and the tests share what is built.
fn check() -> anyhow::Result<()> {
    let root = root();
    let mut wrong = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SOURCES.md"] {
        let text = fs::read_to_string(root.join(document)).with_context(|| format!("reading {document}"))?;
        for path in paths_in(&text) {
            if !root.join(&path).exists() {
                wrong.push(format!("{document} names `{path}`, which does not exist"));
            }
        }
    }
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !architecture.contains(&format!("`crates/{name}`")) {
            wrong.push(format!("ARCHITECTURE.md does not name `crates/{name}`"));
        }
    }
    // xtask has the workspace's version.
    let package = fs::read_to_string(root.join("python/assay/__init__.py"))?;
    let version = concat!("__version__ = \"", env!("CARGO_PKG_VERSION"), "\"");
    if !package.lines().any(|line| line == version) {
        wrong.push(format!("python/assay/__init__.py has no line `{version}`, the version of the workspace"));
    }
    for package in compiled_twice()? {
        wrong.push(format!(
            "`{package}` is compiled again for the tests, with other features; `crates/assay/Cargo.toml` has to turn them on"
        ));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    println!("documents agree with the tree");
    Ok(())
}

/// Packages of `cargo build` that `cargo test` compiles again, because the tests' libraries want other features of them:
/// with those turned on in `crates/assay/Cargo.toml` there are none, else everything above such a package is built twice.
fn compiled_twice() -> anyhow::Result<Vec<String>> {
    let tree = |edges: &str| -> anyhow::Result<BTreeSet<String>> {
        let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args([
                "tree",
                "--quiet",
                "--locked",
                "--prefix",
                "none",
                "--no-dedupe",
                "--format",
                "{p} [{f}]",
                "--edges",
                edges,
            ])
            .current_dir(root())
            .output()?;
        if !out.status.success() {
            bail!("cargo tree: {}", String::from_utf8_lossy(&out.stderr).trim());
        }
        Ok(String::from_utf8(out.stdout)?.lines().map(str::to_owned).collect())
    };
    let (build, tests) = (tree("normal,build")?, tree("normal,build,dev")?);
    Ok(build.difference(&tests).cloned().collect())
}

/// Words in backticks that look like paths of this repository. Words in capitals stand for something.
fn paths_in(text: &str) -> BTreeSet<String> {
    const ROOTS: [&str; 11] = [
        "crates/",
        "problems/",
        "protocols/",
        "suites/",
        "testdata/",
        "docs/",
        "benches/",
        "xtask/",
        "fuzz/",
        "python/",
        ".ci/",
    ];
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|w| ROOTS.iter().any(|r| w.starts_with(r)))
        .filter(|w| {
            !w.contains(['*', ' ', '{', '<'])
                && !w.split('/').any(|p| p.len() > 1 && p.chars().all(|c| c.is_ascii_uppercase()))
        })
        .map(|w| w.trim_end_matches('/').to_owned())
        .collect()
}

/// Runs the snapshot tests so that they write what they see; the diff is for reading.
fn bless() -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args(["test", "--release", "--workspace"])
        .env("ASSAY_BLESS", "1")
        .env("INSTA_UPDATE", "always")
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("the tests failed; what could be written is written");
    }
    Ok(())
}

/// Runs the seeded fuzz targets for so many minutes, from a case that the clock chooses unless one is given. A failure
/// names its case.
fn fuzz(arguments: &[String]) -> anyhow::Result<()> {
    let value = |name: &str| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|k| arguments.get(k + 1))
    };
    let minutes: f64 = value("--minutes").context("say how long: `--minutes N`")?.parse()?;
    let seed = match value("--seed") {
        Some(s) => s.parse::<u64>()?,
        // Less than 2^40, so that runs do not begin where others end.
        None => std::time::UNIX_EPOCH.elapsed()?.as_millis() as u64 & ((1 << 40) - 1),
    };
    println!("fuzzing for {minutes} minutes from case {seed}");
    let status = Command::new("cargo")
        // By the targets' names: `--package` would compile everything again with that package's own set of features.
        .args(["test", "--release", "--quiet", "--test", "programs", "--test", "texts", "--", "--nocapture"])
        .env("ASSAY_FUZZ_SECONDS", (minutes * 60.0).to_string())
        .env("ASSAY_FUZZ_SEED", seed.to_string())
        .current_dir(root())
        .status()?;
    if !status.success() {
        bail!("a target failed; its message has the case to replay with `--seed`");
    }
    Ok(())
}

/// The tests in modules called `slow`, which carry `#[ignore]`.
fn slow() -> anyhow::Result<()> {
    // By the targets' names, so that nothing is compiled again and no test with a runner of its own is started.
    let mut command = Command::new("cargo");
    command.args(["test", "--release"]);
    for target in slow_targets(&root().join("crates"))? {
        command.args(["--test", &target]);
    }
    let status = command.args(["--", "--ignored", "slow::"]).current_dir(root()).status()?;
    if !status.success() {
        bail!("a slow test failed");
    }
    Ok(())
}

/// The test targets, `CRATE/tests/NAME.rs` or `CRATE/tests/NAME/main.rs`, that have a module `slow`.
///
/// # Errors
/// A file that cannot be read; none that has one.
fn slow_targets(crates: &Path) -> anyhow::Result<BTreeSet<String>> {
    let has = |file: &Path| -> anyhow::Result<bool> {
        let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        Ok(text.lines().any(|line| line == "mod slow {" || line == "mod slow;"))
    };
    let mut found = BTreeSet::new();
    for package in fs::read_dir(crates)? {
        let Ok(tests) = fs::read_dir(package?.path().join("tests")) else { continue };
        for test in tests {
            let path = test?.path();
            let main = path.join("main.rs");
            let file = if path.extension().is_some_and(|e| e == "rs") { path.clone() } else { main };
            if file.is_file()
                && has(&file)?
                && let Some(name) = path.file_stem()
            {
                found.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    if found.is_empty() {
        bail!("no test file has a module `slow`");
    }
    Ok(found)
}

/// The gate over the whole catalogue: `assay problems --verify`, with what else that command takes.
fn gate(more: &[String]) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--quiet", "--package", "assay", "--", "problems", "--verify"]);
    let status = command.args(more).current_dir(root()).status().context("starting the gate")?;
    if !status.success() {
        bail!("the gate is not passed");
    }
    Ok(())
}

/// The table that `targeted-2` ships is what greedy cover selects on the default audit in `run`.
fn shipped(run: Option<String>) -> anyhow::Result<()> {
    let run = run.context("name the run folder of a default audit")?;
    let table = |path: &Path| -> anyhow::Result<String> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let (_, table) =
            text.split_once("[problems]").with_context(|| format!("no table in {}", path.display()))?;
        Ok(table.trim().to_owned())
    };
    let ours = table(&root().join("protocols/targeted-2.toml"))?;
    let selected = table(&Path::new(&run).join("suites/budget-2.toml"))?;
    if ours != selected {
        bail!(
            "protocols/targeted-2.toml ships\n{ours}\nbut the audit selects\n{selected}\ncopy the table of the run"
        );
    }
    println!("targeted-2 ships what the audit selects");
    Ok(())
}

/// The suite that `assay check` asks is what greedy cover selects on the audit of all problems in `run`, and its recipes
/// make the inputs that it states.
fn strongest(run: Option<String>) -> anyhow::Result<()> {
    let run = run.context("name the run folder of `assay audit --all`")?;
    let shipped = root().join("suites/strongest.toml");
    let out = root().join("target/strongest");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--quiet", "--package", "assay", "--", "suite", &run]);
    let status = command.args(["--budget", "8", "--out"]).arg(&out).status().context("writing the suite")?;
    if !status.success() {
        bail!("the suite cannot be written");
    }
    let made = out.join("suite.toml");
    if fs::read(&shipped)? != fs::read(&made)? {
        bail!("{} is not what the audit selects; compare it with {}", shipped.display(), made.display());
    }
    println!("the shipped suite is what the audit selects");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_look_like_our_paths_are_checked() {
        let found =
            paths_in("`crates/ptx` and `cargo test`, `problems/level1/*`, `testdata/FAMILY/x`, `docs/a.md`");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["crates/ptx", "docs/a.md"]);
    }
}
