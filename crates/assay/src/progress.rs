//! Progress on stderr: a bar on a terminal, nothing into a pipe.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar, or nothing where stderr is no terminal or `--quiet` was given.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A new bar.
    pub fn new(quiet: bool) -> Bar {
        let bar = ProgressBar::new(0);
        if quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        // The template is a constant that indicatif accepts; its default is as good where it does not.
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:<34!} {bar:20} {pos:>6}/{len} {elapsed:>4} {wide_msg}")
        {
            bar.set_style(style.progress_chars("━╸ "));
        }
        Bar { bar }
    }

    /// Says what takes its time before there is anything to count.
    #[cfg(feature = "device")]
    pub fn message(&self, what: &str) {
        self.bar.set_prefix(what.to_owned());
    }

    /// Begins something that has `total` steps.
    pub fn begin(&self, what: &str, total: u64) {
        self.bar.set_prefix(what.to_owned());
        self.bar.set_length(total);
        self.bar.set_position(0);
    }

    /// Says what was done last.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Sets how much is done of how much; both may grow.
    pub fn at(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(feature = "device")]
impl assay_campaign::Progress for Bar {
    fn stage(&self, what: &str, total: u64) {
        self.begin(what, total);
    }

    fn step(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn note(&self, what: &str) {
        self.say(what);
    }
}
