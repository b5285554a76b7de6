//! A generator that is a program: facts of a problem on its standard input, one recipe a line on its standard output.
//!
//! The command is run by `/bin/sh -c`, once a problem. It reads one JSON document (`docs/ladder.md` has its keys) and
//! prints lines that are a JSON string with a recipe or an object with the key `recipe`. Empty lines are passed over.
//! Another exit code than 0, a signal, too much time or output, and a line that is neither, are the program's own
//! failure and counted as such; what it printed before counts. A line whose text is no recipe is an unusable input.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_problems::Recipe;
use serde_json::Value;

use super::{Asked, Facts, facts_json, patience};
use crate::CampaignError;

/// What it may print for one problem.
const MOST_OUTPUT_BYTES: u64 = 4 << 20;

/// A program that generates recipes.
#[derive(Clone, Debug)]
pub struct External {
    /// The shell's command.
    pub command: String,
    /// Seconds for one problem.
    pub seconds: u32,
}

impl External {
    pub(super) fn ask(
        &self,
        facts: &Facts<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Asked, CampaignError> {
        let folder = tempfile::tempdir().map_err(|e| CampaignError::write(std::env::temp_dir(), e))?;
        let (given, printed) = (folder.path().join("facts.json"), folder.path().join("printed"));
        let write = |path: &std::path::Path, e: std::io::Error| CampaignError::write(path, e);
        let mut file = File::create(&given).map_err(|e| write(&given, e))?;
        file.write_all(facts_json(facts).to_string().as_bytes()).map_err(|e| write(&given, e))?;
        let stdin = File::open(&given).map_err(|e| write(&given, e))?;
        let stdout = File::create(&printed).map_err(|e| write(&printed, e))?;
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(&self.command)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::null())
            // A group of its own, so that all that the command starts can be ended.
            .process_group(0)
            .spawn()
            .map_err(|e| CampaignError::Input(format!("cannot start `/bin/sh` for the generator: {e}")))?;
        let group = i32::try_from(child.id()).map_err(|_| CampaignError::Internal("a process id".into()))?;
        let started = Instant::now();
        let failure = loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    break match (status.code(), status.signal()) {
                        (Some(0), _) => None,
                        (Some(code), _) => Some(format!("exit code {code}")),
                        (None, signal) => Some(format!("ended by signal {}", signal.unwrap_or(0))),
                    };
                }
                Ok(None) => {}
                Err(e) => return Err(CampaignError::Internal(format!("waiting for the generator: {e}"))),
            }
            let late = started.elapsed() > patience(self.seconds);
            let flood = fs::metadata(&printed).is_ok_and(|m| m.len() > MOST_OUTPUT_BYTES);
            if late || flood || interrupted() {
                // SAFETY: plain numbers; the group was made above and its leader is not yet waited for.
                unsafe {
                    libc::kill(-group, libc::SIGKILL);
                }
                // It is dead; what waiting says of it is of no use.
                let _ = child.wait();
                break Some(match (late, flood) {
                    (true, _) => format!("no end within {} s", self.seconds),
                    (_, true) => format!("more than {MOST_OUTPUT_BYTES} bytes printed"),
                    _ => "interrupted".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let bytes = fs::read(&printed).map_err(|e| write(&printed, e))?;
        Ok(read(&String::from_utf8_lossy(&bytes), facts.budget, failure))
    }
}

/// What the lines ask for.
fn read(text: &str, budget: usize, mut failure: Option<String>) -> Asked {
    let mut asked = Asked { recipes: Vec::new(), unusable: 0, dropped: 0, failure: None };
    for (number, line) in (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty()) {
        let recipe = match serde_json::from_str::<Value>(line) {
            Ok(Value::String(text)) => Some(text),
            Ok(Value::Object(map)) => map.get("recipe").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        let Some(recipe) = recipe else {
            failure
                .get_or_insert(format!("line {number} is neither a JSON string nor an object with `recipe`"));
            continue;
        };
        if asked.recipes.len() as u64 + asked.unusable >= budget as u64 {
            asked.dropped += 1;
            continue;
        }
        match Recipe::parse(&recipe) {
            // Asked twice, it is one input.
            Ok(r) if asked.recipes.contains(&r) => {}
            Ok(r) => asked.recipes.push(r),
            Err(_) => asked.unusable += 1,
        }
    }
    asked.failure = failure;
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_recipes_or_failures_and_the_budget_is_kept() {
        let text =
            "\"normal(1)#3\"\n\n{\"recipe\": \"ties(3)#1\", \"why\": \"x\"}\n\"normal(1)#3\"\n\"frob(1)\"\n";
        let a = read(text, 8, None);
        assert_eq!((a.recipes.len(), a.unusable, a.dropped, a.failure), (2, 1, 0, None));
        let a = read(text, 1, None);
        assert_eq!((a.recipes.len(), a.unusable, a.dropped), (1, 0, 3));
        let a = read("not json\n\"rand#1\"\n[1]\n", 8, None);
        assert_eq!(a.recipes.len(), 1, "what is right counts");
        assert!(a.failure.unwrap().contains("line 1"));
        assert_eq!(read("", 8, Some("exit code 3".into())).failure.as_deref(), Some("exit code 3"));
    }
}
