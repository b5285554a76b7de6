//! The line of a silent misreading: which load goes astray.
//!
//! A block that writes a wrong element runs once more, alone, over an input that begins at the smallest element that the
//! block should read. Loads that are right stay inside; one whose index wrapped falls outside, and the device names its
//! line.
//!
//! What it misses: an input that the block should read from its first element on, and launchers of several kernels.

use crate::run::{End, Job, Ran, Which, Window, run};

/// The place of the load of `operand` that leads to the wrong element `t` of a run.
pub fn blame(job: &Job<'_>, ran: &Ran, t: u64, operand: usize) -> Option<(Option<String>, Option<u32>)> {
    let [list] = ran.lists.as_slice() else { return None };
    let mut list = list.clone();
    // Halves until one block is left.
    while list.len() > 1 {
        let (left, right) = list.split_at(list.len() / 2);
        let half = [left.to_vec()];
        let part = again(job, &half, None);
        let there = part.written.binary_search_by_key(&t, |w| w.0).is_ok();
        list = if there { left.to_vec() } else { right.to_vec() };
    }
    let lists = [list];
    let alone = again(job, &lists, None);
    let mut from = u64::MAX;
    for (i, _) in &alone.written {
        job.work.value(*i, &mut |o, j| {
            if o == operand {
                from = from.min(j);
            }
            Some(job.inputs.at(o, j))
        });
    }
    if from == 0 || from == u64::MAX {
        return None;
    }
    let tensor = job.work.family.op.inputs().get(operand)?;
    let faulty = again(job, &lists, Some(Window { tensor, from }));
    let End::Fault(_) = faulty.end else { return None };
    let f = faulty.findings.iter().find(|f| f.kind.is_fault() && f.line.is_some())?;
    Some((f.file.clone().or_else(|| Some(job.kernel.file.clone())), f.line))
}

fn again(job: &Job<'_>, lists: &[Vec<u64>], window: Option<Window<'_>>) -> Ran {
    run(&Job {
        kernel: job.kernel,
        work: job.work,
        inputs: job.inputs,
        seed: job.seed,
        which: Which::Lists(lists),
        per_1024: job.per_1024,
        window,
    })
}
