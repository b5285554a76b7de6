//! The official extents where a whole pass is out of reach: the dearest launches run a sample of their blocks, and those
//! elements of the answer are compared that came from blocks which ran.
//!
//! Which elements those are is seen, not supposed: what no block wrote is overwritten by [`Poison`] after the launch, and
//! what PyTorch or later kernels make of that differs from poison to poison. A wrong element counts where it is the same
//! bit by bit under all three.

use std::collections::BTreeSet;
use std::sync::Arc;

use assay_extension::{ExtensionError, LaunchCost, Poison, Sample};
use assay_tensor::Tensor;

use super::*;
use crate::look::{Pass, pass};

/// Bytes of tensors up to which a sample is tried: a pass makes several copies of all.
const MOST_BYTES: u64 = 3 << 29;
/// Warp instructions of all launches that run whole, and of everything.
const WHOLE_INSTRUCTIONS: u64 = 200_000_000;
const MOST_INSTRUCTIONS: u64 = 600_000_000;
/// Random blocks of a launch beside the first and last three.
const RANDOM_BLOCKS: u64 = 16;
/// What PyTorch does on one core in a second: multiplications of products and convolutions, other work.
const PRODUCTS_A_SECOND: f64 = 3.5e10;
const TORCH_WORK_A_SECOND: f64 = 4e9;
/// Bytes of tensors that are made, sent, copied, run over and compared in a second.
const COPIED_A_SECOND: f64 = 2e8;
/// How many wrong elements a sample has to be expected to have, going by their part at desk extents, before their absence
/// says something.
const EXPECTED: f64 = 20.0;

/// Why a sample says nothing.
const NOTHING_KNOWN: &str = "no element of its answer comes from a sample of blocks alone";

/// What a sample compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    /// Elements.
    pub(super) elements: u64,
    /// Elements of the answer.
    pub(super) of: u64,
}

impl Run<'_, '_> {
    /// Asks `failing` questions, or else the first trial, at the official extents by a sample.
    pub(super) fn sampled(&mut self, official: &Cost, failing: &[Question]) -> Result<(), SubmitError> {
        let left = self.settings.seconds as f64 - self.began.elapsed().as_secs_f64();
        let budget = if failing.is_empty() { self.settings.official_seconds } else { left * 0.8 };
        let each = sampled_seconds(official);
        if official.bytes() > MOST_BYTES {
            self.unreached = Some(format!("its tensors take {:.1} GB there", official.bytes() as f64 / 1e9));
            return Ok(());
        }
        if self.over() || each > budget.min(left) {
            self.unreached = Some(format!(
                "even a sample of blocks takes about {each:.0} s there; see --official-seconds"
            ));
            return Ok(());
        }
        let own = Question::of(Recipe::official(0));
        let mut questions: Vec<&Question> = failing.iter().take(2).collect();
        if questions.is_empty() {
            questions.push(&own);
        }
        for question in questions {
            if self.over() {
                break;
            }
            let Some(case) = self.case(question)? else {
                self.unreached = Some("its tensors do not fit the memory of a check there".into());
                break;
            };
            if let Err(look) = self.make(&question.setting())? {
                let counts = !look.undecided();
                let place = Place::Official;
                self.asked.push(Asked { case, place, look, counts, invalid: false, sampled: None });
                break;
            }
            let Some(asked) = self.sample(&case)? else { continue };
            let counts = asked.counts;
            self.asked.push(asked);
            if counts {
                break;
            }
        }
        Ok(())
    }

    /// Launches that run whole: the cheapest, as far as their cost at desk extents, grown as all that is asked has grown,
    /// goes into what may be spent.
    fn whole(&self, official: &Cost) -> BTreeSet<u64> {
        let costs = self.asked.iter().rev().find(|a| a.place == Place::DeskTrial).map(|a| &a.look.seen.costs);
        let grown = self.growth(official);
        cheapest(costs.map_or(&[][..], Vec::as_slice), grown, WHOLE_INSTRUCTIONS)
    }

    fn sample_pass(&mut self, case: &Case, whole: &BTreeSet<u64>, poison: Poison) -> Result<Pass, Box<Look>> {
        let mut ask = self.ask();
        ask.device.instructions = MOST_INSTRUCTIONS;
        ask.device.sample = Some(Sample::new(self.settings.seed, RANDOM_BLOCKS, whole.clone(), poison));
        let pass = pass(&mut self.session, case, &ask);
        let seen = match &pass {
            Ok(p) => &p.seen,
            Err(l) => &l.seen,
        };
        self.instructions = self.instructions.saturating_add(seen.instructions);
        pass
    }

    /// What a sample says; none where it says nothing.
    fn sample(&mut self, case: &Arc<Case>) -> Result<Option<Asked>, SubmitError> {
        let Some(cost) = self.problem.official_cost else { return Ok(None) };
        let whole = self.whole(&cost);
        let first = match self.sample_pass(case, &whole, Poison::Nan) {
            Ok(pass) => pass,
            Err(look) => return Ok(self.ended(case, *look)),
        };
        self.note_findings(&first.seen.findings.clone(), case, true);
        let reference = &case.official.tensors;
        let t = self.settings.tolerance();
        let (sampled, broadcasts) = (first.seen.sampled > 0, self.problem.broadcasts);
        let alike = first.tensors.len() == reference.len()
            && first.tensors.iter().zip(reference).all(|(o, r)| o.shape == r.shape && o.dtype == r.dtype);
        if sampled && !alike && broadcasts {
            self.unreached = Some("a sample of an output of another shape is not compared".into());
            return Ok(None);
        }
        if !sampled || !alike {
            // All of it ran, or it is no answer whatever its values are.
            let mut look = first.judged(reference, t, broadcasts);
            let (counts, invalid) = self.counts(case, &mut look);
            if !sampled && case.question.is_official_kind() && case.question.recipe.seed < TRIALS {
                self.official_trials += 1;
            }
            let (case, place) = (Arc::clone(case), Place::Official);
            return Ok(Some(Asked { case, place, look, counts, invalid, sampled: None }));
        }
        let known: Vec<Vec<bool>> = first.tensors.iter().map(not_poisoned).collect();
        let mut compared = count(&known);
        if compared.elements == 0 {
            self.unreached = Some(NOTHING_KNOWN.into());
            return Ok(None);
        }
        let (out, want) = (chosen(&first.tensors, &known), chosen(reference, &known));
        let look = against(&out, &want, t, first.seen.clone());
        if look.passes() && distance_in_proportion(&out, &want) <= t {
            return Ok(self.passed(case, look, compared));
        }
        let mut look = first.clone().filled(&known, reference).judged(reference, t, broadcasts);
        let (mut counts, mut invalid) = self.counts(case, &mut look);
        if counts || !look.passes() {
            // What looks wrong may be what was made of poison.
            let mut known: Vec<Vec<bool>> =
                first.tensors.iter().map(|t| vec![true; usize::try_from(t.len()).unwrap_or(0)]).collect();
            for poison in [Poison::Large, Poison::Negative] {
                if self.over() {
                    return Ok(None);
                }
                let Ok(other) = self.sample_pass(case, &whole, poison) else { return Ok(None) };
                if other.tensors.len() != first.tensors.len() || other.seen.launches != first.seen.launches {
                    self.unreached = Some("what it launches depends on what a sample does not know".into());
                    return Ok(None);
                }
                for ((a, b), known) in first.tensors.iter().zip(&other.tensors).zip(&mut known) {
                    same(a, b, known);
                }
            }
            compared = count(&known);
            if compared.elements == 0 {
                self.unreached = Some(NOTHING_KNOWN.into());
                return Ok(None);
            }
            look = first.filled(&known, reference).judged(reference, t, broadcasts);
            (counts, invalid) = self.counts(case, &mut look);
        }
        if !counts {
            return Ok(self.passed(case, look, compared).map(|a| Asked { invalid, ..a }));
        }
        let (case, place) = (Arc::clone(case), Place::Official);
        Ok(Some(Asked { case, place, look, counts, invalid, sampled: Some(compared) }))
    }

    /// A sample in which nothing is wrong, where it is large enough to say something. Its output is not kept: most of it is
    /// not known.
    fn passed(&mut self, case: &Arc<Case>, mut look: Look, compared: Compared) -> Option<Asked> {
        if !self.conclusive(case, compared) {
            self.unreached = Some("a sample of blocks there is too small to show the failure again".into());
            return None;
        }
        look.output = None;
        let (case, place, sampled) = (Arc::clone(case), Place::Official, Some(compared));
        Some(Asked { case, place, look, counts: false, invalid: false, sampled })
    }

    /// A pass without an output: what it says, where nothing before it was sampled.
    fn ended(&mut self, case: &Arc<Case>, look: Look) -> Option<Asked> {
        if look.undecided() || look.seen.sampled > 0 {
            let why = match &look.seen.stop {
                Some(ExtensionError::Unsupported { construct, .. }) => construct.clone(),
                _ => look.message.as_deref().map_or_else(String::new, first_line),
            };
            self.unreached = Some(format!("a sample of blocks there says nothing: {why}"));
            return None;
        }
        self.note_findings(&look.seen.findings.clone(), case, true);
        // In the memory that a harness sees, an access outside a buffer is silent more often than not; the finding says it.
        let outside = |f: &Finding| matches!(f.kind, FindingKind::OobRead | FindingKind::OobWrite);
        if look.seen.findings.iter().any(outside) {
            return None;
        }
        Some(Asked {
            case: Arc::clone(case),
            place: Place::Official,
            look,
            counts: true,
            invalid: false,
            sampled: None,
        })
    }

    /// Does a pass of this sample say something against a failure of the same question at desk extents?
    fn conclusive(&self, case: &Case, compared: Compared) -> bool {
        let dims = &self.extents.desk;
        let failed =
            self.asked.iter().filter(|a| a.counts && matches!(a.place, Place::DeskTrial | Place::Desk));
        let mut same = failed.filter(|a| a.case.question == case.question.at(dims)).peekable();
        if same.peek().is_none() {
            return true;
        }
        same.all(|a| {
            a.look.first_wrong.as_ref().is_some_and(|w| {
                w.wrong_elements as f64 / w.elements.max(1) as f64 * compared.elements as f64 >= EXPECTED
            })
        })
    }
}

/// Seconds of a sampled pass, of the reference's answer and of making the inputs, on one core.
fn sampled_seconds(cost: &Cost) -> f64 {
    let products = (cost.flops / 2) as f64;
    let rest = cost.work() as f64 - products;
    1.5 * (products / PRODUCTS_A_SECOND + rest / TORCH_WORK_A_SECOND) + cost.bytes() as f64 / COPIED_A_SECOND
}

/// The numbers of the launches that run whole.
fn cheapest(costs: &[LaunchCost], grown: f64, most: u64) -> BTreeSet<u64> {
    let mut order: Vec<(u64, f64)> =
        (0u64..).zip(costs).map(|(k, c)| (k, c.instructions as f64 * grown)).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut left = most as f64;
    let mut out = BTreeSet::new();
    for (k, cost) in order {
        if cost > left {
            break;
        }
        left -= cost;
        out.insert(k);
    }
    out
}

/// Elements that are not [`Poison::Nan`] as it was put there.
fn not_poisoned(t: &Tensor) -> Vec<bool> {
    let size = usize::try_from(t.dtype.size_bytes()).unwrap_or(1).max(1);
    t.data.chunks_exact(size).map(|e| !Poison::is_nan(t.dtype, e)).collect()
}

/// The known elements of each, one after the other.
fn chosen(tensors: &[Tensor], known: &[Vec<bool>]) -> Vec<Tensor> {
    let of = |(t, known): (&Tensor, &Vec<bool>)| {
        let size = usize::try_from(t.dtype.size_bytes()).unwrap_or(1).max(1);
        let data: Vec<u8> =
            t.data.chunks_exact(size).zip(known).filter(|(_, k)| **k).flat_map(|(e, _)| e).copied().collect();
        Tensor { dtype: t.dtype, shape: vec![(data.len() / size) as u64], data }
    };
    tensors.iter().zip(known).map(of).filter(|t| !t.is_empty()).collect()
}

/// Leaves those known that are the same bit by bit in both.
fn same(a: &Tensor, b: &Tensor, known: &mut [bool]) {
    let size = usize::try_from(a.dtype.size_bytes()).unwrap_or(1).max(1);
    if a.shape != b.shape || a.dtype != b.dtype {
        known.fill(false);
        return;
    }
    for ((x, y), k) in a.data.chunks_exact(size).zip(b.data.chunks_exact(size)).zip(known) {
        *k &= x == y;
    }
}

fn count(known: &[Vec<bool>]) -> Compared {
    let sum =
        |f: &dyn Fn(&Vec<bool>) -> usize| known.iter().map(f).fold(0u64, |n, k| n.saturating_add(k as u64));
    Compared { elements: sum(&|k| k.iter().filter(|k| **k).count()), of: sum(&Vec::len) }
}

impl Pass {
    /// The pass with the reference's own values wherever an element is not known: they agree with it.
    fn filled(mut self, known: &[Vec<bool>], reference: &[Tensor]) -> Pass {
        for ((out, want), known) in self.tensors.iter_mut().zip(reference).zip(known) {
            let size = usize::try_from(out.dtype.size_bytes()).unwrap_or(1).max(1);
            let elements = out.data.chunks_exact_mut(size).zip(want.data.chunks_exact(size)).zip(known);
            for ((o, w), known) in elements {
                if !known {
                    o.copy_from_slice(w);
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f64]) -> Tensor {
        Tensor::from_f64_values(assay_tensor::DType::F32, &[values.len() as u64], values).unwrap()
    }

    #[test]
    fn the_cheapest_launches_run_whole_as_far_as_the_budget_goes() {
        let costs: Vec<LaunchCost> =
            [50, 10, 400, 20].map(|instructions| LaunchCost { threads: 1, instructions }).into();
        assert_eq!(cheapest(&costs, 10.0, 900), BTreeSet::from([0, 1, 3]));
        assert_eq!(cheapest(&costs, 10.0, 4800), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(cheapest(&costs, 10.0, 99), BTreeSet::new());
    }

    #[test]
    fn an_element_is_known_where_no_poison_changes_it() {
        let mut a = tensor(&[1.0, 2.0, 3.0, 0.0]);
        Poison::Nan.fill(a.dtype, 4, &mut a.data[4..8]);
        let part = not_poisoned(&a);
        assert_eq!(part, [true, false, true, true]);
        assert_eq!(chosen(&[a.clone(), a.clone()], &[part, vec![false; 4]]), [tensor(&[1.0, 3.0, 0.0])]);
        let b = tensor(&[1.0, 1e15, 3.0, 1.0]);
        let mut known = vec![true; 4];
        same(&a, &b, &mut known);
        assert_eq!(known, [true, false, true, false]);
        assert_eq!(count(&[known]), Compared { elements: 2, of: 4 });
    }
}
