//! Many submissions: a worker pair for each thread, problems prepared once, workers that die replaced.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use assay_campaign::check::{Check, Verdict};
use serde_json::Value as Json;

use crate::error::SubmitError;
use crate::host::Host;
use crate::judge::{Settings, Slot, Submission, judge};
use crate::problem::Prepared;
use crate::reference::Reference;
use crate::server::Server;

/// Problems that stay prepared at once: submissions come sorted by problem, threads are a little apart.
const KEPT: usize = 4;
/// Seconds that one step of a reference may take.
const REFERENCE_SECONDS: u64 = 120;

/// Where a problem file is, and what is known of the problem.
#[derive(Clone, Debug)]
pub struct ProblemSource {
    /// The file.
    pub path: PathBuf,
    /// Extents that a CPU affords, where they are known.
    pub extents: Option<BTreeMap<String, Json>>,
    /// Recipes that an audit selected for it.
    pub shipped: Vec<String>,
    /// Made from the catalogue?
    pub without_init: bool,
    /// Does the benchmark's check compare outputs of another shape, as far as PyTorch broadcasts it?
    pub broadcasts: bool,
}

/// A submission to be judged.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its text.
    pub source: String,
    /// Its name.
    pub name: String,
    /// Its problem, a key of [`Batch::problems`].
    pub problem: String,
    /// The command that judges it again.
    pub command: String,
}

/// What submissions are judged with.
pub struct Batch<'b> {
    /// The interpreter.
    pub python: PathBuf,
    /// How.
    pub settings: Settings,
    /// What runs extensions.
    pub host: &'b dyn Host,
    /// Threads.
    pub jobs: usize,
    /// Set by the user.
    pub interrupted: &'static AtomicBool,
    /// Problems by key.
    pub problems: BTreeMap<String, ProblemSource>,
}

/// What is known after a batch beside its verdicts.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// Versions of what ran.
    pub environment: Json,
    /// What the system did not let submissions be confined by.
    pub missing: Vec<String>,
    /// Seconds until the first worker could begin.
    pub cold_seconds: f64,
}

type Shared = Arc<Mutex<Option<Arc<Prepared>>>>;
/// By problem, and whether its integer inputs are left as they are.
type Kept = Mutex<VecDeque<((String, bool), Shared)>>;

impl Batch<'_> {
    /// Judges items, which should be sorted by problem; `done` hears of each as it ends, from any thread.
    ///
    /// # Errors
    /// `Unusable` where no worker can be started; `Interrupted`; `Io`.
    pub fn run(&self, items: &[Item], done: &(dyn Fn(usize, Check) + Sync)) -> Result<Ran, SubmitError> {
        let next = AtomicUsize::new(0);
        let prepared: Kept = Mutex::default();
        let ran: Mutex<Ran> = Mutex::new(Ran::default());
        let failed: Mutex<Option<SubmitError>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, items.len().max(1)) {
                scope.spawn(|| {
                    if let Err(e) = self.work(items, &next, &prepared, &ran, done) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                        next.store(items.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(e) => Err(e),
            None => Ok(ran.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn slot(&self) -> Result<Slot, SubmitError> {
        // The two start at the same time: importing PyTorch is most of it.
        let (server, reference) = std::thread::scope(|scope| {
            let server = scope.spawn(|| Server::start(&self.python, self.interrupted));
            let reference =
                Reference::start(&self.python, &self.settings.precision, REFERENCE_SECONDS, self.interrupted);
            (server.join(), reference)
        });
        let server = server.map_err(|_| SubmitError::Worker("starting a worker failed".into()))??;
        Ok(Slot { server, reference: reference? })
    }

    fn work(
        &self,
        items: &[Item],
        next: &AtomicUsize,
        prepared: &Kept,
        ran: &Mutex<Ran>,
        done: &(dyn Fn(usize, Check) + Sync),
    ) -> Result<(), SubmitError> {
        let began = std::time::Instant::now();
        let mut slot = self.slot()?;
        {
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            ran.environment = slot.server.environment().clone();
            ran.cold_seconds = ran.cold_seconds.max(began.elapsed().as_secs_f64());
        }
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let mut check = self.either(&mut slot, prepared, item);
            if matches!(check, Err(SubmitError::Worker(_))) {
                // It may have been the submission that came before, or the system: once more with fresh ones.
                slot = self.slot()?;
                check = self.either(&mut slot, prepared, item);
            }
            let check = match check {
                Ok(check) => check,
                Err(SubmitError::Worker(why)) => {
                    slot = self.slot()?;
                    Check::early(
                        Verdict::Exhausted,
                        format!("our own workers failed twice: {why}"),
                        &self.settings.suite,
                    )
                }
                Err(SubmitError::Input(why)) => Check::early(Verdict::Unsupported, why, &self.settings.suite),
                Err(e) => return Err(e),
            };
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            if ran.missing.is_empty() {
                ran.missing = slot.server.missing().to_vec();
            }
            drop(ran);
            done(at, check);
        }
        Ok(())
    }

    /// Judges with inputs cast as the benchmark's present harness casts them; where nothing comes of that and the problem
    /// has integer inputs, once more with those left as they are, which is what the harness did before.
    fn either(&self, slot: &mut Slot, prepared: &Kept, item: &Item) -> Result<Check, SubmitError> {
        let mut integers = false;
        let cast = self.one(slot, prepared, item, false, &mut integers);
        let nothing = match &cast {
            Ok(check) => matches!(check.verdict, Verdict::Crashed | Verdict::Rejected | Verdict::Unsupported),
            Err(SubmitError::Input(_)) => true,
            Err(_) => false,
        };
        if !integers || !nothing {
            return cast;
        }
        match self.one(slot, prepared, item, true, &mut integers) {
            Ok(mut kept)
                if !matches!(kept.verdict, Verdict::Crashed | Verdict::Rejected | Verdict::Unsupported) =>
            {
                kept.reason.push_str(
                    "; integer inputs are left as they are: cast to floating-point, as the present harness does, nothing \
                     can be judged",
                );
                Ok(kept)
            }
            Err(SubmitError::Interrupted) => Err(SubmitError::Interrupted),
            _ => cast,
        }
    }

    fn one(
        &self,
        slot: &mut Slot,
        prepared: &Kept,
        item: &Item,
        keep_integers: bool,
        integers: &mut bool,
    ) -> Result<Check, SubmitError> {
        let source = self
            .problems
            .get(&item.problem)
            .ok_or_else(|| SubmitError::Input(format!("no problem `{}`", item.problem)))?;
        let name = (item.problem.clone(), keep_integers);
        let shared = {
            let mut all = prepared.lock().unwrap_or_else(PoisonError::into_inner);
            match all.iter().find(|(key, _)| *key == name) {
                Some((_, shared)) => Arc::clone(shared),
                None => {
                    // Whoever still uses the oldest has it in hand.
                    if all.len() >= KEPT {
                        all.pop_front();
                    }
                    let shared = Shared::default();
                    all.push_back((name, Arc::clone(&shared)));
                    shared
                }
            }
        };
        let problem = {
            let mut place = shared.lock().unwrap_or_else(PoisonError::into_inner);
            match &*place {
                Some(problem) => Arc::clone(problem),
                None => {
                    let mut problem = Prepared::new(
                        &mut slot.reference,
                        &source.path,
                        source.extents.as_ref(),
                        keep_integers,
                    )?;
                    problem.without_init = source.without_init;
                    problem.broadcasts = source.broadcasts;
                    Arc::clone(place.insert(Arc::new(problem)))
                }
            }
        };
        *integers = problem.integers;
        let mut settings = self.settings.clone();
        settings.shipped.clone_from(&source.shipped);
        let submission = Submission { source: &item.source, name: &item.name, command: &item.command };
        judge(slot, self.host, &problem, &settings, &submission)
    }
}
