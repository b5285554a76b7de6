//! Problems on which a kernel that reads nothing passes say so, and no others do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_ops::Variant;
use assay_problems::{Extents, Problem, Reach, Recipe, Root, Trivial, discover, targeted_recipes};
use assay_tensor::DType;

/// atol and rtol of the checker paper's official check.
const TOLERANCE: f64 = 1e-2;
/// Inputs that the official check draws.
const SEEDS: u64 = 5;

/// The constants that pass: from, to.
type Window = (f64, f64);
const OPEN: Window = (f64::NEG_INFINITY, f64::INFINITY);

fn both(a: Window, b: Window) -> Window {
    (a.0.max(b.0), a.1.min(b.1))
}

/// What passes on some inputs.
struct Passing {
    /// For each output, the constants that pass on all of them.
    constants: BTreeMap<String, Window>,
    /// Whether on each of them one number passes everywhere; an output of one element says nothing of that.
    flat: bool,
}

impl Passing {
    fn anything() -> Passing {
        Passing { constants: BTreeMap::new(), flat: true }
    }

    /// Takes the float64 reference on one more input into account. Integers pass only where they are equal.
    fn narrow(&mut self, p: &Problem, recipe: &Recipe) {
        let dims = p.dims_for(recipe, Extents::Desk).unwrap_or_else(|e| panic!("{}: {e}", p.key()));
        let inputs = p.make_inputs(recipe, Extents::Desk).unwrap_or_else(|e| panic!("{}: {e}", p.key()));
        let scalars = p.reference_scalars(&dims);
        let out = p.reference.evaluate(&inputs, &scalars, &p.outputs, &Variant::truth());
        let mut elements = 0;
        for (name, tensor) in out.unwrap_or_else(|e| panic!("{}: {recipe}: {e}", p.key())) {
            let exact = !matches!(tensor.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
            let mut here = OPEN;
            for v in tensor.to_f64_vec() {
                let slack = if exact { 0.0 } else { TOLERANCE + TOLERANCE * v.abs() };
                // A NaN of the reference leaves no constant.
                here = both(here, if v.is_nan() { (f64::INFINITY, v) } else { (v - slack, v + slack) });
                elements += 1;
            }
            self.flat &= here.0 <= here.1;
            let all = self.constants.entry(name).or_insert(OPEN);
            *all = both(*all, here);
        }
        self.flat &= elements > p.outputs.len();
    }

    /// The least that passes.
    fn least(&self) -> Option<Trivial> {
        let windows = || self.constants.values();
        if windows().all(|(from, to)| *from <= 0.0 && 0.0 <= *to) {
            Some(Trivial::Zeros)
        } else if windows().all(|(from, to)| from <= to) {
            Some(Trivial::Constant)
        } else {
            self.flat.then_some(Trivial::Flat)
        }
    }
}

/// What is measured of a problem: the trivial answer that passes on official inputs, and whether it does on the
/// targeted ones too.
fn measured(p: &Problem) -> Option<(Trivial, Reach)> {
    let mut passing = Passing::anything();
    for seed in 0..SEEDS {
        passing.narrow(p, &Recipe::official(seed));
        passing.least()?;
    }
    let official = passing.least()?;
    for (recipe, _) in targeted_recipes(p) {
        passing.narrow(p, &recipe);
        if passing.least() != Some(official) {
            return Some((official, Reach::Official));
        }
    }
    Some((official, Reach::Any))
}

#[test]
fn what_is_stated_of_trivial_answers_is_what_the_reference_says() {
    let root = Root::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems"));
    let problems = discover::<&str>(&[], &root).unwrap_or_else(|e| panic!("{e}"));
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|s| {
        for _ in 0..cores {
            s.spawn(|| {
                while let Some(p) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let stated = p.degenerate.as_ref().map(|d| (d.passes, d.inputs));
                    let found = measured(p);
                    if stated != found {
                        wrong.lock().unwrap().insert((p.level, p.id), (stated, found));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let lines: Vec<String> = wrong
        .iter()
        .map(|((level, id), (stated, found))| format!("{level}/{id}: stated {stated:?}, found {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", lines.join("\n"));
    for p in &problems {
        assert!(p.degenerate.as_ref().is_none_or(|d| d.reason.len() > 20), "{}: a reason", p.key());
    }
}
