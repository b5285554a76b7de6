//! The plain kernels as a control: a problem's reference as a chain of its operators' plain kernels is a correct
//! implementation that the gate has not used, so a protocol that rejects it kills falsely.

use std::collections::BTreeMap;

use assay_judge::EvaluationEnd;
use assay_plain::{PlainError, PlainRunner, Settings};
use rayon::prelude::*;

use crate::CampaignError;
use crate::bench::{Bench, cell};
use crate::execute::{End, Run};
use crate::inputs::Input;
use crate::store::EvaluationKey;

/// The control's name, and its mutant in the store.
pub(crate) const PLAIN: &str = "plain-kernel";

/// Warp instructions that a chain may execute on one input. A plain kernel has one thread per element or row, so a
/// sum of everything is one thread's work; a chain beyond this is left undecided.
const BUDGET: u64 = 2_000_000_000;

impl Bench<'_> {
    /// Runs the chain on every input and keeps how each was judged; says which have no outputs.
    pub(crate) fn run_plain(
        &self,
        runner: &PlainRunner<'_>,
        inputs: &mut [Input],
    ) -> Result<(), CampaignError> {
        let progress = self.context.progress;
        progress.stage(&format!("{}: plain kernels", self.key), inputs.len() as u64);
        let rows: Vec<_> = inputs
            .par_iter()
            .map(|input| {
                let key = EvaluationKey {
                    mutant: PLAIN.into(),
                    recipe: input.text.clone(),
                    schedule: "hardware".into(),
                    seed: 0,
                };
                if let Some(row) = self.known.get(&key) {
                    return Ok(row.clone());
                }
                self.context.check_interrupt()?;
                let run = self.chain(runner, input);
                // Ctrl-C also reaches the compile workers; a kernel that then failed to compile must not count.
                self.context.check_interrupt()?;
                self.count_executed();
                let row = self.judge(input, &run, false);
                self.context.store.put_evaluations(&self.key, &[(key, row.clone())])?;
                progress.step(1);
                Ok(row)
            })
            .collect::<Result<_, CampaignError>>()?;
        let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
        for (input, row) in inputs.iter_mut().zip(rows) {
            let end = cell(&row).end;
            if matches!(end, EvaluationEnd::Unsupported | EvaluationEnd::Exhausted) {
                *left_out.entry(format!("{}: {}", end.name(), row.note)).or_default() += 1;
            }
            input.plain = Some(row);
        }
        for (why, count) in left_out {
            progress
                .note(&format!("{}: the plain kernels are no control on {count} inputs: {why}", self.key));
        }
        Ok(())
    }

    /// The reference's chain of plain kernels on an input, not judged and not stored.
    pub(crate) fn chain(&self, runner: &PlainRunner<'_>, input: &Input) -> Run {
        let problem = self.problem;
        let scalars = problem.reference_scalars(&input.dims);
        let settings = Settings { instructions: BUDGET, ..Settings::default() };
        match runner.run(&problem.reference, &input.tensors, &scalars, &problem.outputs, &settings) {
            Ok(chain) => Run {
                end: End::Outputs(chain.outputs),
                findings: Vec::new(),
                instructions: chain.instructions,
                printf: Vec::new(),
            },
            Err(PlainError::Exhausted(what)) => Run::ended(End::Exhausted(what)),
            // A control that does not work says nothing about a protocol.
            Err(e @ (PlainError::Unsupported(_) | PlainError::Refused(_) | PlainError::Kernel { .. })) => {
                Run::ended(End::Unsupported(e.to_string()))
            }
        }
    }
}
