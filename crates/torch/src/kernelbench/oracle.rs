//! The benchmark's own files as the oracle of an audit.
//!
//! What is official is the file's: inputs of `official` and `loguniform` recipes, parameters without `+params`, the masks
//! that dropout draws, and both references, float32 as the official check computes it and float64 by `.double()`. What is
//! targeted (every other kind of recipe, `+params`) is the catalogue's, given to the file's module.
//!
//! Where the file's integers are which extents of the problem, and which of the module's tensors are which parameters, is
//! found by the worker (`bind`, in `docs/torch-worker.md`) and then proven by numbers: on inputs and parameters that we
//! make, the module in float64 gives what our reference gives. A file that computes something else is not measured.
//!
//! A worker serves one file alone, so that nothing that a file does to PyTorch reaches another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use assay_problems::{Evaluated, Extents, InputKind, Kind, Operators, Oracle, OracleError, Problem, Recipe};
use assay_tensor::tensor::hex;
use assay_tensor::{DType, Tensor, numel, safetensors_io};
use assay_worker::Script;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{File, Refusal, SEED, Substrate, lowered};
use crate::client::{EXCHANGE_BYTES, Placed, Raised, Settings, Torch};
use crate::error::TorchError;

/// Ways of taking a file that are compared with our reference by their numbers.
const MOST_CHOICES: usize = 40;
/// Largest |ours - PyTorch's| / (1 + |PyTorch's|) in float64 at which both compute the same.
const SAME: f64 = 1e-6;
/// Results of more bytes are computed again each time.
const MOST_KEPT: u64 = 16 << 20;
/// Bytes of kept results above which the oldest go.
const KEPT: u64 = 2 << 30;
/// What the smallest extents that cuts lead to may have to do, times what was asked for.
const MOST_WORK: u64 = 4;
/// Bytes of the exchange that the tensors of one evaluation may take.
const ROOM: u64 = EXCHANGE_BYTES / 8 * 7;

/// Where an integer of a file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Source {
    /// An extent of an input or a parameter; of the output where no tensor is named.
    Axis { tensor: Option<String>, axis: usize },
    /// A dim or derived dim.
    Size { size: String },
}

/// How a file is taken for a problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bound {
    /// Which of the file's input tensors an input is.
    inputs: BTreeMap<String, usize>,
    /// Which tensor of the module a parameter is.
    parameters: BTreeMap<String, String>,
    /// Inputs that are masks of the module's dropout, in the order of the forward pass.
    masks: Vec<String>,
    /// Integers of the file.
    extents: BTreeMap<String, Source>,
}

/// A file and what is known of it.
#[derive(Clone, Debug, Default)]
pub struct FileFor {
    /// Where it is; of a task of robust-kbench its folder or `func_forward.py`.
    pub path: PathBuf,
    /// Extents that it has whatever the recipe says: module-level names and values.
    pub base: BTreeMap<String, Value>,
    /// Where the problem was made from the file: from each of its inputs and parameters to the tensor of the export
    /// (`input:0`, `parameter:conv.weight`).
    pub sources: Option<BTreeMap<String, String>>,
}

impl From<PathBuf> for FileFor {
    fn from(path: PathBuf) -> FileFor {
        FileFor { path, ..FileFor::default() }
    }
}

/// A problem made from a file, of which the file is the oracle.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The problem, as the catalogue loads it; it has no dims.
    pub problem: Problem,
    /// What it was made from, and its text.
    pub substrate: Substrate,
    /// The extents at which it was made: module-level names and values; none where they are the file's own.
    pub extents: BTreeMap<String, Value>,
}

/// A file for a problem.
#[derive(Clone, Debug)]
struct Located {
    path: PathBuf,
    sha256: String,
    base: BTreeMap<String, Value>,
    sources: Option<BTreeMap<String, String>>,
}

impl Located {
    fn of(file: FileFor) -> Result<Located, TorchError> {
        let FileFor { path, base, sources } = file;
        Ok(Located { sha256: digest_of(&path)?, path, base, sources })
    }
}

/// The files of a benchmark, executed by PyTorch.
pub struct FileOracle<'a> {
    settings: Settings,
    files: BTreeMap<String, Located>,
    torch: String,
    cache: Option<PathBuf>,
    interrupted: &'a AtomicBool,
    session: Mutex<Session<'a>>,
}

#[derive(Default)]
struct Session<'a> {
    /// The problem that the worker serves, and the worker.
    serving: Option<(String, Torch<'a>)>,
    /// How files are taken, or why they cannot be; by problem.
    bound: BTreeMap<String, Result<Arc<Bound>, OracleError>>,
}

impl<'a> FileOracle<'a> {
    /// An oracle for these files, by the problem's key (`1/23`). Results are kept in `cache`, by the content of all that
    /// they depend on, where one is named.
    ///
    /// # Errors
    /// `Unusable` and the like where no worker starts; `Io` where a file cannot be read.
    pub fn new(
        settings: &Settings,
        files: &BTreeMap<String, FileFor>,
        cache: Option<PathBuf>,
        interrupted: &'a AtomicBool,
    ) -> Result<FileOracle<'a>, TorchError> {
        let files = files
            .iter()
            .map(|(key, file)| Ok((key.clone(), Located::of(file.clone())?)))
            .collect::<Result<_, TorchError>>()?;
        let torch = Torch::start(settings, interrupted)?;
        let version = torch.version().to_owned();
        torch.quit();
        if let Some(folder) = &cache {
            prune(folder);
        }
        Ok(FileOracle {
            settings: settings.clone(),
            files,
            torch: version,
            cache,
            interrupted,
            session: Mutex::default(),
        })
    }

    /// PyTorch's version.
    pub fn version(&self) -> &str {
        &self.torch
    }

    /// Finds out how a problem's file is taken, and that it computes what our reference does; what is known is not asked
    /// again.
    ///
    /// # Errors
    /// As [`Oracle::evaluate`]: `Unsupported` and `Refused` where the file is none for this problem.
    pub fn takes(&self, problem: &Problem) -> Result<(), OracleError> {
        self.bound(&mut *self.locked()?, problem).map(drop)
    }

    /// Makes a problem of a file by lowering its module, and becomes its oracle. Extents are cut until the plain kernels
    /// have at most `work` steps to do, or as near as cuts lead; they are the file's own where `work` is none.
    ///
    /// # Errors
    /// `Unsupported` with the operator that is missing, or where the substrate's reference is not what the module computes;
    /// `Refused` where the file or PyTorch raises; `Exhausted`; `Died`.
    pub fn generate(&mut self, file: &File, work: Option<u64>) -> Result<Generated, OracleError> {
        // As no problem is called, so that the worker that serves it is a new one.
        let maker = format!("{} made", file.key());
        let ((extents, counted), made) = {
            let mut session = self.locked()?;
            let torch = self.serve(&mut session, &maker)?;
            match lowered(torch, file, work) {
                Ok(made) => made,
                Err(e) => return Err(self.give_up(&mut session, &maker, &e)),
            }
        };
        if let (Some(most), Some(counted)) = (work, counted)
            && counted > most.saturating_mul(MOST_WORK)
        {
            return Err(OracleError::Exhausted(format!(
                "the plain kernels of `{}` have {counted} steps to do at the smallest extents found, {most} were asked for",
                file.name
            )));
        }
        let substrate = made.map_err(|refusal| match refusal {
            Refusal::Unsupported(what) => OracleError::Unsupported(what),
            Refusal::Exhausted(what) => OracleError::Exhausted(what),
            Refusal::Raised(what) => OracleError::Refused(format!("the file or PyTorch raises: {what}")),
        })?;
        if !substrate.graph.cast_integers {
            return Err(OracleError::Refused(
                "the official check casts integer inputs to float32, which the module refuses".into(),
            ));
        }
        let problem = substrate.problem.problem().map_err(|e| OracleError::Unsupported(e.to_string()))?;
        let sources = Some(substrate.problem.sources.clone());
        let located = Located::of(FileFor { path: file.path.clone(), base: extents.clone(), sources })
            .map_err(|e| failure(&e))?;
        self.files.insert(problem.key(), located);
        if let Err(e) = self.takes(&problem) {
            self.files.remove(&problem.key());
            return Err(e);
        }
        Ok(Generated { problem, substrate, extents })
    }

    /// Gives this for every input of a problem.
    pub fn refuse(&self, problem: &str, why: OracleError) {
        if let Ok(mut session) = self.session.lock() {
            session.bound.insert(problem.to_owned(), Err(why));
        }
    }

    /// Is the oracle of this problem no more.
    pub fn leave(&mut self, problem: &str) {
        self.files.remove(problem);
    }

    fn locked(&self) -> Result<std::sync::MutexGuard<'_, Session<'a>>, OracleError> {
        self.session.lock().map_err(|_| OracleError::Died("the worker's lock is poisoned".into()))
    }

    /// How a problem's file was taken: its integers and what sets them, its tensors and what they are; null before.
    pub fn taken(&self, problem: &str) -> Value {
        let Ok(session) = self.session.lock() else { return Value::Null };
        match session.bound.get(problem) {
            Some(Ok(bound)) => serde_json::to_value(bound.as_ref()).unwrap_or(Value::Null),
            _ => Value::Null,
        }
    }

    fn located(&self, problem: &Problem) -> Result<&Located, OracleError> {
        let key = problem.key();
        self.files
            .get(&key)
            .ok_or_else(|| OracleError::Unsupported(format!("there is no file for problem {key}")))
    }

    /// The worker of a problem, started where it is not.
    fn serve<'s>(&self, session: &'s mut Session<'a>, key: &str) -> Result<&'s mut Torch<'a>, OracleError> {
        if session.serving.as_ref().is_none_or(|(k, _)| k != key) {
            if let Some((_, old)) = session.serving.take() {
                old.quit();
            }
            let torch = Torch::start(&self.settings, self.interrupted).map_err(|e| failure(&e))?;
            session.serving = Some((key.to_owned(), torch));
        }
        match &mut session.serving {
            Some((_, torch)) => Ok(torch),
            None => Err(OracleError::Died("the worker is gone".into())),
        }
    }

    /// One request to the worker of a problem. A worker that failed is given up, and the problem with it.
    fn ask(
        &self,
        session: &mut Session<'a>,
        key: &str,
        request: impl FnOnce(&mut Torch<'a>) -> Result<Result<Value, Raised>, TorchError>,
    ) -> Result<Value, OracleError> {
        let torch = self.serve(session, key)?;
        match request(torch) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(raised)) => Err(refusal(&raised)),
            Err(e) => Err(self.give_up(session, key, &e)),
        }
    }

    fn give_up(&self, session: &mut Session<'a>, key: &str, e: &TorchError) -> OracleError {
        let error = failure(e);
        // What does not fit says nothing about the worker.
        if !matches!(e, TorchError::Bad(_)) {
            session.serving = None;
            session.bound.insert(key.to_owned(), Err(error.clone()));
        }
        error
    }

    /// How the problem's file is taken, found at the first call.
    fn bound(&self, session: &mut Session<'a>, problem: &Problem) -> Result<Arc<Bound>, OracleError> {
        let key = problem.key();
        if let Some(known) = session.bound.get(&key) {
            return known.clone();
        }
        let found = self.bind(session, problem).map(Arc::new);
        if !matches!(found, Err(OracleError::Interrupted)) {
            session.bound.insert(key, found.clone());
        }
        found
    }

    fn bind(&self, session: &mut Session<'a>, problem: &Problem) -> Result<Bound, OracleError> {
        let located = self.located(problem)?;
        if problem.outputs.len() != 1 && located.sources.is_none() {
            return Err(OracleError::Unsupported("the problem has several outputs".into()));
        }
        if let Some(sources) = &located.sources {
            let bound = stated(problem, sources)?;
            let ours = ours(problem)?;
            return match self.agrees(session, problem, &bound, &ours)? {
                None => Ok(bound),
                Some(why) => Err(why),
            };
        }
        let of = |kind: InputKind| problem.inputs.iter().filter(move |i| i.kind == kind);
        let points = points(problem).map_err(OracleError::Input)?;
        let masks: Vec<&str> =
            of(InputKind::Input).filter(|i| i.dtype == DType::Bool).map(|i| i.name.as_str()).collect();
        let request = json!({
            "type": "bind",
            "path": located.path,
            "again": false,
            "inputs": of(InputKind::Input).map(|i| &i.name).collect::<Vec<_>>(),
            "parameters": of(InputKind::Parameter).map(|i| &i.name).collect::<Vec<_>>(),
            "masks": masks,
            "points": points,
        });
        let (digests, key) = (problem.digests(), problem.key());
        let kept = self.place(&json!(["bound", located.sha256, digests.0, request]));
        if let Some(bound) = kept.as_ref().and_then(|p| serde_json::from_slice(&std::fs::read(p).ok()?).ok())
        {
            return Ok(bound);
        }
        let ours = ours(problem)?;
        let mut first = None;
        for n in 0..MOST_CHOICES {
            let again = json!({"type": "bind", "path": located.path, "again": true});
            let asked = if n == 0 { &request } else { &again };
            let reply = self.ask(session, &key, |t| t.ask(asked, &format!("the extents of {key}")))?;
            self.same_file(located, &reply)?;
            let choice = reply.get("choice").cloned().unwrap_or(Value::Null);
            if choice.is_null() {
                break;
            }
            let bound: Bound = serde_json::from_value(choice.clone())
                .map_err(|e| OracleError::Died(format!("the worker broke the protocol: {e}: `{choice}`")))?;
            complete(problem, &bound)?;
            match self.agrees(session, problem, &bound, &ours)? {
                None => {
                    if let (Some(path), Ok(bytes)) = (&kept, serde_json::to_vec(&bound)) {
                        write(path, &bytes)?;
                    }
                    return Ok(bound);
                }
                Some(why) => drop(first.get_or_insert(why)),
            }
        }
        Err(first.unwrap_or_else(|| {
            OracleError::Unsupported("no way of taking the file has the shapes of the problem".into())
        }))
    }

    /// Whether the file, taken so, computes what our reference computes; why not, where it does not.
    fn agrees(
        &self,
        session: &mut Session<'a>,
        problem: &Problem,
        bound: &Bound,
        ours: &[(Recipe, Evaluated)],
    ) -> Result<Option<OracleError>, OracleError> {
        for (recipe, ours) in ours {
            let generated = self.files.get(&problem.key()).is_some_and(|l| l.sources.is_some());
            let other = |what: String| {
                let words = if generated {
                    "the module computes something else than what it was lowered to"
                } else {
                    "the file computes something else than the catalogue's reference"
                };
                Ok(Some(OracleError::Unsupported(format!("{words}: on `{recipe}`: {what}"))))
            };
            let theirs = match self.reference(session, problem, bound, recipe, true) {
                Ok(made) => made,
                Err(e @ (OracleError::Refused(_) | OracleError::Unsupported(_))) => return Ok(Some(e)),
                Err(e) => return Err(e),
            };
            for name in &problem.outputs {
                let (Some(a), Some(b)) = (ours.truth.get(name), theirs.truth.get(name)) else {
                    return other(format!("there is no output `{name}`"));
                };
                if a.shape != b.shape {
                    return other(format!("`{name}` has the shape {:?} for {:?}", b.shape, a.shape));
                }
                let dtypes =
                    (ours.official.get(name).map(|t| t.dtype), theirs.official.get(name).map(|t| t.dtype));
                if dtypes.0 != dtypes.1 {
                    return other(format!("`{name}` has other elements: {dtypes:?}"));
                }
                let far = distance(a, b);
                if far.is_nan() || far > SAME {
                    return other(format!("`{name}` differs by {far:.1e} in float64"));
                }
            }
        }
        Ok(None)
    }

    /// Inputs, parameters and references of a recipe; all of the inputs and parameters from us where `given`.
    fn reference(
        &self,
        session: &mut Session<'a>,
        problem: &Problem,
        bound: &Bound,
        recipe: &Recipe,
        given: bool,
    ) -> Result<Evaluated, OracleError> {
        let input = |e: String| OracleError::Input(e);
        let located = self.located(problem)?;
        let key = problem.key();
        let dims = problem.dims_for(recipe, Extents::Desk).map_err(|e| input(e.to_string()))?;
        let mut extents = located.base.clone();
        let own = overrides(problem, bound, &dims).map_err(OracleError::Input)?;
        extents.extend(own.into_iter().map(|(name, size)| (name, json!(size))));
        let official = matches!(recipe.kind, Kind::Official | Kind::LogUniform(..));
        let (own_inputs, own_parameters) = (official && !given, !recipe.params && !given);
        let values = problem.input_values(recipe, Extents::Desk).map_err(|e| input(e.to_string()))?;
        fits(problem, &dims)?;
        let mut placed: Vec<Placed> = Vec::new();
        let mut tensors: BTreeMap<String, Tensor> = BTreeMap::new();
        for i in &problem.inputs {
            let own = if i.kind == InputKind::Parameter { own_parameters } else { own_inputs };
            if own {
                continue;
            }
            let t = values
                .get(&i.name)
                .ok_or_else(|| input(format!("no values for `{}`", i.name)))?
                .tensor()
                .map_err(|e| input(e.to_string()))?;
            placed.push(Placed::contiguous(&i.name, &t));
            tensors.insert(i.name.clone(), t);
        }
        let count = bound.inputs.values().max().map_or(0, |n| n + 1);
        let mut inputs = vec![Value::Null; count];
        let mut wanted = vec![Value::Null; count];
        let mut replies: Vec<(String, String)> = Vec::new();
        for (name, &at) in &bound.inputs {
            if own_inputs {
                let dtype = problem.input(name).map(|i| i.dtype);
                wanted[at] = json!(dtype);
                replies.push((format!("input {at}"), name.clone()));
            } else {
                inputs[at] = json!(name);
            }
        }
        let mut parameters = serde_json::Map::new();
        let mut kept_parameters = Vec::new();
        for (name, state) in &bound.parameters {
            if own_parameters {
                kept_parameters.push(state.clone());
                replies.push((format!("parameter {state}"), name.clone()));
            } else {
                parameters.insert(state.clone(), json!(name));
            }
        }
        if own_inputs {
            replies.extend(bound.masks.iter().enumerate().map(|(n, m)| (format!("mask {n}"), m.clone())));
        }
        let request = json!({
            "type": "reference",
            "path": located.path,
            "overrides": extents,
            "seed": SEED,
            "trial": recipe.seed,
            "scale": if own_inputs { recipe.factor() } else { 1.0 },
            "inputs": inputs,
            "parameters": parameters,
            "masks": if own_inputs { Value::Null } else { json!(bound.masks) },
            "want": {
                "inputs": wanted,
                "parameters": kept_parameters,
                "masks": if own_inputs { bound.masks.len() } else { 0 },
            },
        });
        // Both references, output by output.
        let numbered =
            |kind: &str| (0..problem.outputs.len()).map(|k| format!("{kind} {k}")).collect::<Vec<String>>();
        let mut names = [numbered("official"), numbered("truth")].concat();
        names.extend(replies.iter().map(|(reply, _)| reply.clone()));
        let mut said = request.clone();
        if let Some(map) = said.as_object_mut() {
            map.insert("path".into(), json!(located.sha256));
        }
        let kept = self.place(&json!(["reference", said, safetensors_io::digest(&tensors)]));
        let stored = kept.as_ref().and_then(|p| safetensors_io::read(p).ok());
        let got = match stored
            .filter(|all| all.len() == names.len() && names.iter().all(|n| all.contains_key(n)))
        {
            Some(got) => got,
            None => {
                let what = format!("`{recipe}` of {key}");
                let reply = self.ask(session, &key, |torch| {
                    let mut request = request.clone();
                    let listed = torch.place(&placed, &what)?;
                    if let Some(map) = request.as_object_mut() {
                        map.insert("tensors".into(), json!(listed));
                    }
                    torch.ask(&request, &what)
                })?;
                self.same_file(located, &reply)?;
                let torch = self.serve(session, &key)?;
                let got = match torch.outputs(&reply, "referenced", &names, &what) {
                    Ok(got) => got,
                    Err(e) => return Err(self.give_up(session, &key, &e)),
                };
                if let Some(path) = &kept
                    && got.values().map(|t| t.data.len() as u64).sum::<u64>() <= MOST_KEPT
                    && let Ok(bytes) = safetensors_io::to_bytes(path, &got)
                {
                    write(path, &bytes)?;
                }
                got
            }
        };
        for (reply, name) in &replies {
            let (Some(t), Some(i)) = (got.get(reply), problem.input(name)) else { continue };
            let shape = problem.shape_of(i, &dims).map_err(|e| input(e.to_string()))?;
            let t = reshaped(t, &shape, i.dtype).map_err(|why| {
                OracleError::Unsupported(format!(
                    "`{recipe}` of {key}: the file's {reply}, `{name}` here, {why}"
                ))
            })?;
            tensors.insert(name.clone(), t);
        }
        if problem.outputs.is_empty() {
            return Err(OracleError::Unsupported("the problem has no output".into()));
        }
        let outputs = |kind: &str| -> Result<BTreeMap<String, Tensor>, OracleError> {
            let all = problem.outputs.iter().zip(numbered(kind));
            all.map(|(output, reply)| {
                let t =
                    got.get(&reply).ok_or_else(|| OracleError::Died(format!("no `{reply}` came back")))?;
                let stated = problem.output_shape(output, &dims).map_err(|e| input(e.to_string()))?;
                let shape = stated.unwrap_or_else(|| t.shape.clone());
                let t = reshaped(t, &shape, t.dtype).map_err(|why| {
                    OracleError::Unsupported(format!("`{recipe}` of {key}: the file's output {why}"))
                })?;
                Ok((output.clone(), t))
            })
            .collect()
        };
        let (official, truth) = (outputs("official")?, outputs("truth")?);
        Ok(Evaluated { tensors, official, truth })
    }

    /// The file that the worker read is the one that the results are kept for.
    fn same_file(&self, located: &Located, reply: &Value) -> Result<(), OracleError> {
        match reply.get("sha256").and_then(Value::as_str) {
            Some(sha) if sha == located.sha256 => Ok(()),
            _ => Err(OracleError::Died(format!("`{}` changed while it was read", located.path.display()))),
        }
    }

    /// Where a result that depends on `what`, the worker and PyTorch is kept.
    fn place(&self, what: &Value) -> Option<PathBuf> {
        let text = json!([Script::Torch.source(), self.torch, what]).to_string();
        self.cache.as_ref().map(|folder| folder.join(hex(&Sha256::digest(text))))
    }
}

impl Oracle for FileOracle<'_> {
    fn describe(&self) -> Value {
        let files: BTreeMap<&String, &String> = self.files.iter().map(|(k, l)| (k, &l.sha256)).collect();
        let made: BTreeMap<&String, Value> = self
            .files
            .iter()
            .filter(|(_, l)| l.sources.is_some())
            .map(|(key, l)| (key, json!({"file": name_of(&l.path), "extents": l.base})))
            .collect();
        let mut out = json!({
            "name": format!("PyTorch {}", self.torch),
            "torch": self.torch,
            "worker": hex(&Sha256::digest(Script::Torch.source())),
            "files": files,
        });
        if let Some(map) = out.as_object_mut().filter(|_| !made.is_empty()) {
            map.insert("generated".into(), json!(made));
        }
        out
    }

    fn evaluate(&self, problem: &Problem, recipe: &Recipe) -> Result<Evaluated, OracleError> {
        let mut session = self.locked()?;
        let bound = self.bound(&mut session, problem)?;
        self.reference(&mut session, problem, &bound, recipe, false)
    }
}

/// How a file is taken that the problem was made from.
fn stated(problem: &Problem, sources: &BTreeMap<String, String>) -> Result<Bound, OracleError> {
    let mut bound = Bound {
        inputs: BTreeMap::new(),
        parameters: BTreeMap::new(),
        masks: Vec::new(),
        extents: BTreeMap::new(),
    };
    let mut masks: Vec<(usize, String)> = Vec::new();
    for i in &problem.inputs {
        let target = sources.get(&i.name).map_or("", String::as_str);
        let number = |n: &str| n.parse::<usize>().unwrap_or(0);
        match target.split_once(':') {
            Some(("input", n)) if n.parse::<usize>().is_ok() => {
                bound.inputs.insert(i.name.clone(), number(n));
            }
            // What else the forward pass draws has no such name.
            Some(("random", n)) if n.parse::<usize>().is_ok() && i.dtype == DType::Bool => {
                masks.push((number(n), i.name.clone()));
            }
            Some(("parameter" | "buffer", name)) => {
                bound.parameters.insert(i.name.clone(), name.to_owned());
            }
            _ => {
                return Err(OracleError::Unsupported(format!(
                    "`{}` is `{target}` of the exported module, which only it can make",
                    i.name
                )));
            }
        }
    }
    // In the order in which the forward pass draws them.
    masks.sort();
    bound.masks = masks.into_iter().map(|(_, name)| name).collect();
    Ok(bound)
}

/// How reports call a file: its name, behind that of its folder where that says more.
fn name_of(path: &Path) -> String {
    let last = |p: Option<&Path>| p.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    match (last(path.parent()), last(Some(path))) {
        (Some(folder), Some(name)) => format!("{folder}/{name}"),
        (_, name) => name.unwrap_or_default(),
    }
}

/// What our reference gives on the inputs of the check.
fn ours(problem: &Problem) -> Result<Vec<(Recipe, Evaluated)>, OracleError> {
    checks()
        .into_iter()
        .map(|recipe| {
            let made = Operators.evaluate(problem, &recipe)?;
            Ok((recipe, made))
        })
        .collect()
}

/// Inputs that tell ways of taking a file apart: every parameter with values of its own.
fn checks() -> [Recipe; 2] {
    [Recipe::new(Kind::Normal(1.0)).with_params().with_seed(77), Recipe::official(78).with_params()]
}

/// The SHA-256 of a file's text, and of its settings where it is a task of robust-kbench; as the worker takes it.
fn digest_of(path: &Path) -> Result<String, TorchError> {
    let file = if path.is_dir() { path.join("func_forward.py") } else { path.to_owned() };
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| TorchError::Io { action: "read", path: path.to_owned(), error })
    };
    let text = read(&file)?;
    let config = file.with_file_name("config_forward.json");
    let mut digest = Sha256::new().chain_update(&text);
    if config.is_file() && !String::from_utf8_lossy(&text).contains("get_init_inputs") {
        digest.update(read(&config)?);
    }
    Ok(hex(&digest.finalize()))
}

/// The problem's shapes at its official extents, at its desk extents, and at its ragged ones.
fn points(problem: &Problem) -> Result<Vec<Value>, String> {
    let none = BTreeMap::new();
    let at = [(&none, Extents::Official), (&none, Extents::Desk)];
    let ragged = problem.ragged.iter().map(|r| (r, Extents::Desk));
    at.into_iter()
        .chain(ragged)
        .map(|(dims, extents)| {
            let sizes = problem.dims_with(dims, extents).map_err(|e| e.to_string())?;
            let shapes = |kind: InputKind| -> Result<Vec<Vec<u64>>, String> {
                let all = problem.inputs.iter().filter(|i| i.kind == kind);
                all.map(|i| problem.shape_of(i, &sizes).map_err(|e| e.to_string())).collect()
            };
            let output = problem.outputs.first().map(|o| problem.output_shape(o, &sizes));
            Ok(json!({
                "sizes": sizes,
                "inputs": shapes(InputKind::Input)?,
                "parameters": shapes(InputKind::Parameter)?,
                "output": output.transpose().map_err(|e| e.to_string())?.flatten(),
            }))
        })
        .collect()
}

/// The values of a file's integers at these dims.
fn overrides(
    problem: &Problem,
    bound: &Bound,
    dims: &BTreeMap<String, u64>,
) -> Result<BTreeMap<String, u64>, String> {
    let lacks = |what: &str| format!("the problem has no `{what}`");
    bound
        .extents
        .iter()
        .map(|(element, source)| {
            let value = match source {
                Source::Size { size } => *dims.get(size).ok_or_else(|| lacks(size))?,
                Source::Axis { tensor, axis } => {
                    let shape = match tensor {
                        Some(name) => {
                            let input = problem.input(name).ok_or_else(|| lacks(name))?;
                            Some(problem.shape_of(input, dims).map_err(|e| e.to_string())?)
                        }
                        None => match problem.outputs.first() {
                            Some(o) => problem.output_shape(o, dims).map_err(|e| e.to_string())?,
                            None => None,
                        },
                    };
                    let shape = shape.ok_or_else(|| lacks("shape of the output"))?;
                    *shape.get(*axis).ok_or_else(|| lacks("axis"))?
                }
            };
            Ok((element.clone(), value))
        })
        .collect()
}

/// Every input and parameter of the problem has its place in the file.
fn complete(problem: &Problem, bound: &Bound) -> Result<(), OracleError> {
    let placed = |name: &String| {
        bound.inputs.contains_key(name) || bound.parameters.contains_key(name) || bound.masks.contains(name)
    };
    match problem.inputs.iter().find(|i| !placed(&i.name)) {
        Some(i) => {
            Err(OracleError::Died(format!("the worker broke the protocol: no place for `{}`", i.name)))
        }
        None => Ok(()),
    }
}

/// Whether the tensors of an evaluation fit the exchange.
fn fits(problem: &Problem, dims: &BTreeMap<String, u64>) -> Result<(), OracleError> {
    let mut bytes = 0u64;
    let mut add = |shape: &[u64], size: u64| {
        let n = numel(shape).and_then(|n| n.checked_mul(size)).unwrap_or(u64::MAX);
        bytes = bytes.saturating_add(n);
    };
    for i in &problem.inputs {
        let shape = problem.shape_of(i, dims).map_err(|e| OracleError::Input(e.to_string()))?;
        add(&shape, i.dtype.size_bytes());
    }
    for name in &problem.outputs {
        if let Some(shape) =
            problem.output_shape(name, dims).map_err(|e| OracleError::Input(e.to_string()))?
        {
            // In float32 and in float64.
            add(&shape, 12);
        }
    }
    if bytes > ROOM {
        return Err(OracleError::Exhausted(format!(
            "{bytes} bytes of tensors at these extents, of which one evaluation may have {ROOM}"
        )));
    }
    Ok(())
}

/// A tensor in a shape that differs by extents of 1 alone; why not, where it does not.
fn reshaped(t: &Tensor, shape: &[u64], dtype: DType) -> Result<Tensor, String> {
    let long = |s: &[u64]| s.iter().copied().filter(|&n| n != 1).collect::<Vec<_>>();
    if t.dtype != dtype {
        return Err(format!("holds {} for {dtype}", t.dtype));
    }
    if long(&t.shape) != long(shape) {
        return Err(format!("has the shape {:?} for {shape:?}", t.shape));
    }
    Ok(Tensor { dtype, shape: shape.to_vec(), data: t.data.clone() })
}

/// The largest |a - b| / (1 + |b|); both NaN or the same infinity are no distance.
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    (0..a.len()).fold(0.0, |worst: f64, i| {
        let (x, y) = (a.get_f64(i), b.get_f64(i));
        if x == y || (x.is_nan() && y.is_nan()) {
            return worst;
        }
        let off = (x - y).abs() / (1.0 + y.abs());
        if off.is_nan() { f64::INFINITY } else { worst.max(off) }
    })
}

fn refusal(raised: &Raised) -> OracleError {
    let Raised { stage, message } = raised;
    match stage.as_str() {
        "allocate" => OracleError::Exhausted(message.clone()),
        "bind" => OracleError::Unsupported(message.clone()),
        _ => OracleError::Refused(format!("the official check raises ({stage}): {message}")),
    }
}

fn failure(e: &TorchError) -> OracleError {
    match e {
        TorchError::Interrupted => OracleError::Interrupted,
        TorchError::Bad(what) => OracleError::Exhausted(what.clone()),
        TorchError::Hung(..) => OracleError::Exhausted(e.to_string()),
        TorchError::Unusable(_) | TorchError::Protocol(..) | TorchError::Died(..) => {
            OracleError::Died(e.to_string())
        }
        TorchError::Io { .. } => OracleError::CannotWrite(e.to_string()),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), OracleError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|e| e.to_string())
        .and_then(|()| safetensors_io::write_file_atomic(path, bytes).map_err(|e| e.to_string()))
        .map_err(|e| OracleError::CannotWrite(format!("the cache `{}`: {e}", folder.display())))
}

/// Keeps the newest results up to [`KEPT`]. What cannot be read or removed is let be: it is a cache.
fn prune(folder: &Path) {
    let mut all: Vec<(std::time::SystemTime, u64, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(|m| m.is_file())?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        })
        .collect();
    all.sort();
    let mut total: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in all {
        if total <= KEPT {
            break;
        }
        if std::fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}
