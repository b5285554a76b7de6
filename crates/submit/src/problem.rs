//! A problem file made ready to judge by: extents that a CPU affords, questions, and their answers.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assay_extension::Value;
use assay_problems::{Kind, Position, Recipe};
use assay_tensor::Tensor;
use serde_json::Value as Json;

use crate::error::SubmitError;
use crate::look::{distance, distance_in_proportion};
use crate::question::{Question, TRIALS};
use crate::reference::{Cost, Made, Output, Reference, Refused, Setting};

/// Work of one evaluation at desk extents: some milliseconds of the CPU device.
pub const DESK_WORK: u64 = 12_000_000;
/// How much less each smaller level of desk extents asks for, and how many there are.
const LEVEL: u64 = 8;
const LEVELS: usize = 3;
/// Bytes of tensors that an evaluation may ask for; the exchange holds fewer than all that a forward pass makes.
const MOST_BYTES: u64 = 3 << 30;
/// Steps of the search for desk extents.
const STEPS: usize = 48;
/// Bytes of inputs and answers kept for a problem; official extents are made again for each submission beyond it.
const KEPT_BYTES: usize = 192 << 20;
/// Other init arguments that are asked.
const INIT_QUESTIONS: usize = 8;
/// Seeds of draws that no trial has.
const OTHER_SEEDS: u64 = 101;

/// One question with its inputs and the reference's answer.
pub struct Case {
    /// What is asked.
    pub question: Question,
    /// The inputs.
    pub inputs: Vec<Value>,
    /// The seed before the forward pass.
    pub seed: u64,
    /// The reference's answer in the precision asked for.
    pub official: Output,
    /// In float64; made when an answer is to count against a submission. None where it cannot be made.
    truth: OnceLock<Option<Vec<Tensor>>>,
    /// How far the answer moves with the inputs' last bits, and in proportion; made when an answer is to count.
    unrest: OnceLock<(f64, f64)>,
    bytes: usize,
}

/// Extents by module-level name.
pub type Dims = BTreeMap<String, u64>;

/// Extents that most is asked at.
pub struct Extents {
    /// What is changed; empty where they are the official ones.
    pub desk: Dims,
    /// What they ask for.
    pub cost: Option<Cost>,
    /// Extents that differ from these in what divides what, most telling first.
    pub ragged: Vec<Dims>,
}

/// A problem file, its extents and its questions.
pub struct Prepared {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub source: String,
    /// Its digest.
    pub sha256: String,
    /// What its own extents ask for, where shapes alone tell.
    pub official_cost: Option<Cost>,
    /// Are integer inputs left as they are? The benchmark's present harness casts every tensor to the precision asked for;
    /// a submission that was written for an earlier one may count on integers.
    pub keep_integers: bool,
    /// Does the file give tensors that are not floating-point?
    pub integers: bool,
    /// Is the file made from the catalogue, so that nothing is known of init arguments?
    pub without_init: bool,
    /// Does the benchmark's check compare outputs of another shape, as far as PyTorch broadcasts it? KernelBench's own
    /// rejects them before it compares.
    pub broadcasts: bool,
    /// Names and their official extents.
    pub numbers: BTreeMap<String, u64>,
    /// Desk extents, and smaller ones for submissions that do far more work than the reference.
    levels: Mutex<Vec<Arc<Extents>>>,
    /// Init arguments, at some extents, that others follow; see `tied`.
    tied: Mutex<HashMap<(usize, Dims), bool>>,
    cases: Mutex<HashMap<String, Arc<Case>>>,
    made: Mutex<HashMap<Setting, Arc<Made>>>,
}

fn fault(path: &Path, refused: Refused) -> SubmitError {
    match refused {
        Refused::Raised(stage, message) => {
            SubmitError::Input(format!("the problem `{}`: {stage}: {message}", path.display()))
        }
        Refused::Failed(e) => e,
    }
}

/// A smaller extent with the same remainder by a warp.
fn shrunk(v: u64) -> u64 {
    if v >= 64 { (v / 64) * 32 + v % 32 } else { (v / 2).max(1) }
}

impl Prepared {
    /// Reads a problem file and finds its extents. `table` has extents that are known to suit; `keep_integers` leaves
    /// integer inputs as they are.
    ///
    /// # Errors
    /// `Input` where the file is no problem; `Worker`, `Interrupted`.
    pub fn new(
        reference: &mut Reference,
        path: &Path,
        table: Option<&BTreeMap<String, Json>>,
        keep_integers: bool,
    ) -> Result<Prepared, SubmitError> {
        let source = std::fs::read_to_string(path)
            .map_err(|e| SubmitError::Input(format!("cannot read the problem `{}`: {e}", path.display())))?;
        let (sha256, listed) = reference.problem(path).map_err(|e| fault(path, e))?;
        let numbers: BTreeMap<String, u64> =
            listed.iter().filter_map(|(k, v)| Some((k.clone(), v.as_u64()?))).collect();
        let mut costs = Costs { reference, path };
        let official_cost = costs.of(&Dims::new())?;
        let (desk, desk_cost) = match official_cost {
            Some(cost) if cost.work() <= DESK_WORK => (Dims::new(), Some(cost)),
            _ => {
                let (dims, cost) = costs.known(&numbers, table, official_cost)?;
                costs.shrink(&numbers, dims, cost, DESK_WORK)?
            }
        };
        let ragged = costs.ragged(&numbers, &desk, DESK_WORK)?;
        let integers = official_cost.is_some_and(|c| c.integers > 0);
        Ok(Prepared {
            path: path.to_owned(),
            source,
            sha256,
            official_cost,
            keep_integers,
            integers,
            without_init: false,
            broadcasts: false,
            numbers,
            levels: Mutex::new(vec![Arc::new(Extents { desk, cost: desk_cost, ragged })]),
            tied: Mutex::new(HashMap::new()),
            cases: Mutex::new(HashMap::new()),
            made: Mutex::new(HashMap::new()),
        })
    }

    /// The desk extents at a level; 0 are those that suit the reference, each further one asks for an eighth of the one
    /// before. None where there is nothing smaller.
    ///
    /// # Errors
    /// `Worker`, `Interrupted`.
    pub fn extents(
        &self,
        reference: &mut Reference,
        level: usize,
    ) -> Result<Option<Arc<Extents>>, SubmitError> {
        // Held while the next one is found: threads that judge by the same problem want the same.
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        while levels.len() <= level.min(LEVELS) {
            let Some(last) = levels.last().cloned() else { return Ok(None) };
            self.load(reference).map_err(|e| fault(&self.path, e))?;
            let most = last.cost.map_or(DESK_WORK, |c| c.work().min(DESK_WORK)) / LEVEL;
            let mut costs = Costs { reference, path: &self.path };
            let (desk, cost) = costs.shrink(&self.numbers, last.desk.clone(), last.cost, most)?;
            if desk == last.desk {
                return Ok(None);
            }
            let ragged = costs.ragged(&self.numbers, &desk, most)?;
            levels.push(Arc::new(Extents { desk, cost, ragged }));
        }
        Ok(levels.get(level).cloned())
    }

    /// May the official extents be tried at all?
    pub fn official_fits(&self) -> bool {
        self.official_cost.is_some_and(|c| c.bytes() <= MOST_BYTES)
    }

    /// The trials of the official check, at some extents.
    pub fn trials(&self, dims: &Dims) -> Vec<Question> {
        (0..TRIALS).map(|n| Question::of(Recipe::official(n).with_dims(dims.clone()))).collect()
    }

    /// Draws from the official distribution that no trial has.
    pub fn others(&self, desk: &Dims) -> Vec<Question> {
        [OTHER_SEEDS, OTHER_SEEDS + 1]
            .map(|n| Question::of(Recipe::official(n).with_dims(desk.clone())))
            .into()
    }

    /// The suite at desk extents: other magnitudes, signs and patterns. `shipped` are recipes that an audit selected for
    /// the problem of the same number; their extents are the catalogue's and are left out.
    pub fn suite(&self, shipped: &[String], desk: &Dims) -> Vec<Question> {
        let mut out: Vec<Question> = Vec::new();
        let mut push = |recipe: Recipe| {
            let known = |q: &Question| (q.recipe.kind, q.recipe.scale) == (recipe.kind, recipe.scale);
            if !out.iter().any(known) && (recipe.kind, recipe.scale) != (Kind::Official, 1.0) {
                out.push(Question::of(recipe.with_dims(desk.clone())));
            }
        };
        for text in shipped {
            if let Ok(mut recipe) = text.parse::<Recipe>() {
                // Parameters are the models' own.
                recipe.params = false;
                push(recipe);
            }
        }
        for (k, kind) in [
            Kind::Normal(1.0),
            Kind::Uniform(-2.0, -1.0),
            Kind::Index(251),
            Kind::Ties(5),
            Kind::Outlier(0.01, 30.0),
            Kind::Shifted(10.0, 0.5),
            Kind::Spike(Position::Last, 30.0, None),
            Kind::Uniform(-100.0, 100.0),
        ]
        .into_iter()
        .enumerate()
        {
            push(Recipe::new(kind).with_seed(103 + k as u64));
        }
        for (scale, seed) in [(3.0, 0), (0.01, 0), (-1.0, 0)] {
            push(Recipe::official(seed).with_scale(scale));
        }
        push(Recipe::new(Kind::LogUniform(-3.0, 3.0)).with_seed(2));
        out
    }

    /// Questions at other extents.
    pub fn ragged_questions(&self, extents: &Extents) -> Vec<Question> {
        let mut out = Vec::new();
        for (k, dims) in extents.ragged.iter().enumerate() {
            let seed = 201 + k as u64;
            out.push(Question::of(Recipe::official(seed).with_dims(dims.clone())));
            if k == 0 {
                out.push(Question::of(
                    Recipe::new(Kind::Normal(1.0)).with_seed(seed).with_dims(dims.clone()),
                ));
            }
        }
        out
    }

    /// Questions with other init arguments, for a model that takes at most `takes` of them. An argument that the file
    /// makes from a number which its inputs or other arguments follow too is left alone: changed by itself it would
    /// contradict them, and with them it is one of the other extents.
    ///
    /// # Errors
    /// `Worker`, `Interrupted`.
    pub fn init_questions(
        &self,
        reference: &mut Reference,
        made: &Made,
        takes: Option<u64>,
        desk: &Dims,
    ) -> Result<Vec<Question>, SubmitError> {
        let mut out = Vec::new();
        let most = usize::try_from(takes.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let own = made.init.iter().map(other_value);
        let more = made.defaults.iter().skip(made.given).map(|d| match d {
            Json::Number(n) if n.is_f64() => other_value(&Value::Float(n.as_f64().unwrap_or(0.0))),
            _ => None,
        });
        let others: Vec<Option<String>> = own.take(made.given).chain(more).take(most).collect();
        for (position, other) in others.into_iter().enumerate() {
            let Some(other) = other else { continue };
            if out.len() >= INIT_QUESTIONS || self.tied(reference, made, position, desk)? {
                continue;
            }
            let recipe = Recipe::official(301 + out.len() as u64).with_dims(desk.clone());
            out.push(Question { recipe, init: [(position, other)].into() });
        }
        Ok(out)
    }

    /// Do inputs or other init arguments follow the number that an init argument is made from?
    fn tied(
        &self,
        reference: &mut Reference,
        made: &Made,
        position: usize,
        desk: &Dims,
    ) -> Result<bool, SubmitError> {
        let mut known = self.tied.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tied) = known.get(&(position, desk.clone())) {
            return Ok(*tied);
        }
        let whole: Vec<i64> = match made.init.get(position) {
            Some(Value::Int(v)) => vec![*v],
            Some(Value::List(items) | Value::Tuple(items)) => items
                .iter()
                .filter_map(|v| match v {
                    Value::Int(v) => Some(*v),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let at = |dims: &Dims| Question::of(Recipe::official(0).with_dims(dims.clone())).setting();
        let mut tied = false;
        for (name, official) in &self.numbers {
            let value = desk.get(name).unwrap_or(official);
            if tied || !whole.iter().any(|w| u64::try_from(*w) == Ok(*value)) {
                continue;
            }
            let mut dims = desk.clone();
            dims.insert(name.clone(), value + 1);
            self.load(reference).map_err(|e| fault(&self.path, e))?;
            // What cannot be made with it is bound to something, too.
            let other = match reference.setting(&self.path, &at(&dims)) {
                Ok(other) => other,
                Err(Refused::Raised(..)) => {
                    tied = true;
                    continue;
                }
                Err(Refused::Failed(e)) => return Err(e),
            };
            // Values have no equality of their own, since tensors share memory.
            let text = |v: &Value| format!("{v:?}");
            let differs = |k: usize| made.init.get(k).map(text) != other.init.get(k).map(text);
            if differs(position) {
                let mut costs = Costs { reference, path: &self.path };
                let inputs = |c: Option<Cost>| c.map(|c| c.inputs);
                tied = (0..made.init.len()).any(|k| k != position && differs(k))
                    || inputs(costs.of(&dims)?) != inputs(costs.of(desk)?);
            }
        }
        known.insert((position, desk.clone()), tied);
        Ok(tied)
    }

    /// A setting's model, made once.
    ///
    /// # Errors
    /// `Raised` where the problem refuses it.
    pub fn made(&self, reference: &mut Reference, setting: &Setting) -> Result<Arc<Made>, Refused> {
        let known = self.made.lock().unwrap_or_else(PoisonError::into_inner).get(setting).cloned();
        if let Some(made) = known {
            return Ok(made);
        }
        self.load(reference)?;
        let made = Arc::new(reference.setting(&self.path, setting)?);
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(setting.clone(), Arc::clone(&made));
        Ok(made)
    }

    /// Makes sure that this worker knows the file, which another one may have prepared, and how its inputs are cast.
    fn load(&self, reference: &mut Reference) -> Result<(), Refused> {
        reference.keep_integers = self.keep_integers;
        if !reference.knows(&self.path) {
            reference.problem(&self.path)?;
        }
        Ok(())
    }

    /// A question's inputs and answer, made once. None where the question would be another one again.
    ///
    /// # Errors
    /// `Raised` where the problem refuses it.
    pub fn case(&self, reference: &mut Reference, question: &Question) -> Result<Option<Arc<Case>>, Refused> {
        let key = question.to_string();
        let known = self.cases.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if known.is_some() {
            return Ok(known);
        }
        self.load(reference)?;
        let setting = question.setting();
        let (seed, own) = reference.inputs(&self.path, &setting, question.draw())?;
        let Some(inputs) = question.values(own) else { return Ok(None) };
        let official = reference.output(&self.path, &setting, &inputs, seed, false, None)?;
        let bytes = official.tensors.iter().map(|t| t.data.len()).sum::<usize>()
            + inputs
                .iter()
                .flat_map(crate::wire::tensors)
                .map(|t| usize::try_from(t.storage.len_bytes()).unwrap_or(usize::MAX))
                .fold(0usize, usize::saturating_add);
        let case = Arc::new(Case {
            question: question.clone(),
            inputs,
            seed,
            official,
            truth: OnceLock::new(),
            unrest: OnceLock::new(),
            bytes,
        });
        let mut cases = self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = cases.values().map(|c| c.bytes).fold(bytes, usize::saturating_add);
        if total <= KEPT_BYTES {
            cases.insert(key, Arc::clone(&case));
        }
        Ok(Some(case))
    }

    /// The answer in float64, made once.
    pub fn truth<'c>(&self, reference: &mut Reference, case: &'c Case) -> Option<&'c Vec<Tensor>> {
        if case.truth.get().is_none() {
            let exact = self.load(reference).and_then(|()| {
                let setting = case.question.setting();
                reference.output(&self.path, &setting, &case.inputs, case.seed, true, None)
            });
            let _ = case.truth.set(exact.ok().map(|o| o.tensors));
        }
        case.truth.get().and_then(Option::as_ref)
    }

    /// How far the reference's float64 answer moves, as a tolerance, when each element of the inputs moves by its last
    /// bit in float32. No kernel that adds in another order is bound to stay closer, however exact the reference is:
    /// PyTorch's cumulative sum on the CPU, for one, accumulates float32 in float64. Zero for integer answers (equal
    /// values are a question of their own) and where it cannot be made. The second is in proportion to small answers.
    pub fn unrest(&self, reference: &mut Reference, case: &Case) -> (f64, f64) {
        if let Some(known) = case.unrest.get() {
            return *known;
        }
        let mut unrest = (0.0, 0.0);
        if let Some(truth) = self.truth(reference, case).filter(|t| t.iter().all(|t| t.dtype.is_float())) {
            let setting = case.question.setting();
            let moved = reference.output(&self.path, &setting, &case.inputs, case.seed, true, Some(LAST_BIT));
            if let Ok(m) = moved {
                unrest = (distance(&m.tensors, truth), distance_in_proportion(&m.tensors, truth));
            }
        }
        *case.unrest.get_or_init(|| unrest)
    }
}

/// A float32 number's last bit, as a part of it.
const LAST_BIT: f64 = 1.2e-7;

/// Another value of the same kind; none for what is no number.
fn other_value(v: &Value) -> Option<String> {
    match v {
        Value::List(items) | Value::Tuple(items) if !items.is_empty() && items.len() <= 8 => {
            let each: Option<Vec<String>> = items
                .iter()
                .map(|i| if matches!(i, Value::Int(_)) { other_value(i) } else { None })
                .collect();
            each.map(|e| format!("[{}]", e.join(",")))
        }
        Value::Bool(b) => Some((!b).to_string()),
        Value::Int(i) => Some((i + 1).to_string()),
        Value::Float(f) if f.is_finite() => Some(format!("{:?}", f * 1.5 + 0.25)),
        _ => None,
    }
}

/// Costs of extents, which say too whether the shapes fit each other.
struct Costs<'r> {
    reference: &'r mut Reference,
    path: &'r Path,
}

impl Costs<'_> {
    /// None where the shapes do not run.
    fn of(&mut self, dims: &Dims) -> Result<Option<Cost>, SubmitError> {
        let setting = Question::of(Recipe::official(0).with_dims(dims.clone())).setting();
        match self.reference.cost(self.path, &setting) {
            Ok(cost) => Ok(Some(cost)),
            Err(Refused::Raised(..)) => Ok(None),
            Err(Refused::Failed(e)) => Err(e),
        }
    }

    /// Extents of a table, where they fit this file and ask for less.
    fn known(
        &mut self,
        numbers: &BTreeMap<String, u64>,
        table: Option<&BTreeMap<String, Json>>,
        official: Option<Cost>,
    ) -> Result<(Dims, Option<Cost>), SubmitError> {
        let known: Option<Dims> =
            table.and_then(|t| t.iter().map(|(k, v)| Some((k.clone(), v.as_u64()?))).collect());
        if let Some(mut known) = known
            && known.keys().all(|k| numbers.contains_key(k))
        {
            known.retain(|k, v| numbers.get(k).is_some_and(|own| *v < *own));
            if let Some(c) = self.of(&known)?
                && official.is_none_or(|old| c.work() < old.work())
            {
                return Ok((known, Some(c)));
            }
        }
        Ok((Dims::new(), official))
    }

    /// Smaller extents, until they ask for at most `most`.
    fn shrink(
        &mut self,
        numbers: &BTreeMap<String, u64>,
        mut dims: Dims,
        cost: Option<Cost>,
        most: u64,
    ) -> Result<(Dims, Option<Cost>), SubmitError> {
        let Some(mut now) = cost else { return Ok((dims, None)) };
        for _ in 0..STEPS {
            if now.work() <= most {
                break;
            }
            let value = |name: &String| dims.get(name).or_else(|| numbers.get(name)).copied().unwrap_or(1);
            // Batches first: they decide least; then whatever is largest. What is small already (a kernel, a few
            // channels) tells most when it is not 1, and comes last.
            let mut names: Vec<&String> = numbers.keys().filter(|n| value(n) > 1).collect();
            names.sort_by_key(|n| {
                let (name, v) = (n.to_lowercase(), value(n));
                let batch = name.contains("batch") && v > 2;
                let small = !batch && (v < 8 || (v < 16 && name.contains("kernel")));
                (if small && v < 4 { 2 } else { u8::from(small) }, !batch, std::cmp::Reverse(v))
            });
            let mut found = None;
            for name in names {
                let mut tried = dims.clone();
                let smaller = shrunk(value(name));
                tried.insert(name.clone(), smaller);
                if let Some(c) = self.of(&tried)?
                    && c.work() < now.work() - now.work() / 16
                {
                    found = Some((tried, c));
                    break;
                }
            }
            match found {
                Some((d, c)) => (dims, now) = (d, c),
                None => break,
            }
        }
        Ok((dims, Some(now)))
    }

    /// Extents that differ from the desk ones in what divides what.
    fn ragged(
        &mut self,
        numbers: &BTreeMap<String, u64>,
        desk: &Dims,
        most: u64,
    ) -> Result<Vec<Dims>, SubmitError> {
        let value = |name: &String| desk.get(name).or_else(|| numbers.get(name)).copied().unwrap_or(1);
        let odd = |v: u64| if v >= 64 { (v / 2) | 1 } else { v + 1 };
        let small = |v: u64| if v > 4 { v.min(3 + v % 2) } else { 1 };
        let mut out: Vec<Dims> = Vec::new();
        for change in [&odd as &dyn Fn(u64) -> u64, &small] {
            let all: Dims = numbers.keys().map(|n| (n.clone(), change(value(n)))).collect();
            let mut dims = desk.clone();
            if self.of(&all)?.is_some_and(|c| c.work() <= most.saturating_mul(2) && c.outputs > 0) {
                dims = all;
            } else {
                // One name after another, as far as the shapes still fit.
                for name in numbers.keys().take(12) {
                    let mut tried = dims.clone();
                    tried.insert(name.clone(), change(value(name)));
                    if self.of(&tried)?.is_some_and(|c| c.work() <= most.saturating_mul(2) && c.outputs > 0) {
                        dims = tried;
                    }
                }
            }
            dims.retain(|k, v| numbers.get(k) != Some(v));
            if dims != *desk && !out.contains(&dims) {
                out.push(dims);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_extents_keep_the_remainder_by_a_warp() {
        for v in [64, 65, 4095, 4096, 1000, 16384] {
            assert_eq!(shrunk(v) % 32, v % 32, "{v}");
            assert!(shrunk(v) < v);
        }
        assert_eq!(shrunk(2), 1);
    }

    #[test]
    fn other_init_arguments_are_of_the_same_kind() {
        assert_eq!(other_value(&Value::Bool(true)).as_deref(), Some("false"));
        assert_eq!(other_value(&Value::Int(3)).as_deref(), Some("4"));
        assert_eq!(other_value(&Value::Float(0.5)).as_deref(), Some("1.0"));
        assert!(other_value(&Value::Str("mean".into())).is_none());
        let pair = Value::Tuple(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(other_value(&pair).as_deref(), Some("[2,3]"));
        assert!(other_value(&Value::Tuple(vec![Value::Int(1), Value::Str("same".into())])).is_none());
    }
}
