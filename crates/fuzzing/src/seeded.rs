//! Targets as seeded tests: case `n` of a target is a function of (target, n).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::choices::Random;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// So many cases.
    Cases(u64),
    /// As many as fit.
    Time(Duration),
}

impl Amount {
    /// That many cases; or this target's share of `ASSAY_FUZZ_SECONDS`, where that is set.
    pub fn share(cases: u64, per_cent: u32) -> Amount {
        let seconds = std::env::var("ASSAY_FUZZ_SECONDS").ok().and_then(|s| s.parse::<f64>().ok());
        match seconds.filter(|s| s.is_finite() && *s >= 0.0) {
            Some(s) => Amount::Time(Duration::from_secs_f64(s * f64::from(per_cent) / 100.0)),
            None => Amount::Cases(cases),
        }
    }
}

/// The first case: `ASSAY_FUZZ_SEED`, else 0. A long run should begin elsewhere than the last one.
pub fn first_case() -> u64 {
    std::env::var("ASSAY_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// The random numbers of a case.
pub fn random(target: &str, case: u64) -> Random {
    // FNV-1a, so that targets do not share their cases.
    let hash = target
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut r = Random(hash ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    r.word();
    r
}

/// Where the case that runs is written, so that it is known when the process dies of it.
fn mark(target: &str) -> PathBuf {
    std::env::temp_dir().join(format!("assay-fuzz-{target}-{}", std::process::id()))
}

/// What a case says, panics included.
pub fn outcome(f: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs cases until the amount is done; the number of cases.
///
/// # Panics
/// With the first case that fails, after `explain` has made the most of it.
pub fn run(
    target: &str,
    amount: Amount,
    case: impl Fn(u64) -> Result<(), String>,
    explain: impl Fn(u64, String) -> String,
) -> u64 {
    let (start, first, mark) = (Instant::now(), first_case(), mark(target));
    let mut done = 0;
    loop {
        let over = match amount {
            Amount::Cases(n) => done >= n,
            Amount::Time(t) => start.elapsed() >= t,
        };
        if over {
            break;
        }
        let n = first.wrapping_add(done);
        // A process that dies of a signal leaves this file; nothing else tells the case.
        let _ = std::fs::write(&mark, format!("ASSAY_FUZZ_SEED={n}\n"));
        if let Err(why) = outcome(|| case(n)) {
            let why = explain(n, why);
            let _ = std::fs::remove_file(&mark);
            panic!("{target}, case {n} (replay: ASSAY_FUZZ_SEED={n}): {why}");
        }
        done += 1;
    }
    let _ = std::fs::remove_file(&mark);
    done
}
