//! Submissions that attack their judge: each gets the verdict that its first lines name, and takes nothing with it.
//!
//! Needs a Python that has PyTorch, of `ASSAY_TORCH_PYTHON`; no compiler: their arithmetic is PyTorch's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use assay_campaign::check::GoalScope;
use assay_extension::{ExtensionError, Sources};
use assay_submit::{Host, Limits, Made, Prepared, Reference, Server, Settings, Slot, Submission, judge};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A host without a compiler.
struct Nothing;

impl Host for Nothing {
    fn build(&self, _: &Sources) -> Result<Made, ExtensionError> {
        Err(ExtensionError::Unsupported { construct: "an extension".into(), line: None })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/submissions")
}

/// What a file says of itself: `# KEY: VALUE` at its top.
fn header(text: &str, key: &str) -> Option<String> {
    text.lines()
        .take_while(|l| l.starts_with('#'))
        .find_map(|l| l.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(':').map(|v| v.trim().to_owned()))
}

#[test]
fn hostile_submissions_get_a_verdict_and_take_nothing_with_them() {
    let Some(python) = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file())
    else {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
        return;
    };
    let mark = Path::new("/tmp/assay-hostile-was-here");
    let _ = std::fs::remove_file(mark);
    let mut slot = Slot {
        server: Server::start(&python, &INTERRUPTED).unwrap(),
        reference: Reference::start(&python, "fp32", 60, &INTERRUPTED).unwrap(),
    };
    let problem =
        Prepared::new(&mut slot.reference, &folder().join("problems/relu.py"), None, false).unwrap();
    let settings = Settings {
        precision: "fp32".into(),
        pass_seconds: 4,
        seconds: 20,
        official_seconds: 1.0,
        seed: 0,
        scope: GoalScope::Official,
        only: vec!["official#0".parse().unwrap(), "official#1".parse().unwrap()],
        limits: Limits { memory: 2 << 30, cpu: 10, file: 16 << 20, ..Limits::default() },
        shipped: Vec::new(),
        suite: "none".into(),
    };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder().join("hostile")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 20);
    let only = std::env::var("CASE").ok();
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let submission = Submission { source: &source, name: &name, command: "assay check" };
        let check = judge(&mut slot, &Nothing, &problem, &settings, &submission).unwrap();
        eprintln!("{name}: {} in {:.2} s: {}", check.verdict.name(), check.seconds, check.reason);
        let mut expect = |what: &str, want: &str, got: &str, ok: bool| {
            if !ok {
                wrong.push(format!("{name}: {what}: `{got}` where `{want}` was expected ({})", check.reason));
            }
        };
        let verdict = header(&source, "verdict").expect("a verdict");
        expect("verdict", &verdict, check.verdict.name(), verdict == check.verdict.name());
        let says = header(&source, "says").unwrap_or_default();
        let all = format!("{} {}", check.reason, check.log.clone().unwrap_or_default());
        expect("reason", &says, &all, all.contains(&says));
        if let Some(tricks) = header(&source, "tricks") {
            let want: BTreeSet<&str> = tricks.split_whitespace().collect();
            let got: BTreeSet<&str> = check.tricks.iter().map(|t| t.name()).collect();
            expect("tricks", &tricks, &format!("{got:?}"), want == got);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!mark.exists(), "a submission wrote outside its folder");
}
