//! A plan's launches at chosen blocks, over sparse buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use assay_problems::{InputKind, LaunchOp, Plan, PlanOp, Problem};
use assay_simt::{
    Blocks, BufferSpec, Fill, Init, LaunchSpec, Memory, Options, Ptr, Role, Sanitize, Schedule, Session,
    Status,
};
use serde::Serialize;

use super::input::{OfficialInput, Points};
use crate::execute::{Executable, bind};

/// Inputs up to this many bytes are made once and held: reading them costs less than making them again.
const DENSE_BYTES: u64 = 4 << 20;

/// Which blocks of each launch are executed.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// All.
    All,
    /// The device's sample, with so many random blocks.
    Sample {
        /// Seed of the random ones.
        seed: u64,
        /// How many.
        random: u64,
    },
    /// Those of an earlier run of another version; of a grid of another size those that may do the same work.
    Like(&'a [LaunchBlocks]),
}

/// A launch and the blocks of it that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchBlocks {
    /// The kernel's name in the launcher.
    pub kernel: String,
    /// Blocks of the grid in x, y, z.
    pub grid: [u64; 3],
    /// Threads of a block in x, y, z.
    pub block: [u64; 3],
    /// Linear indices of the blocks that ran; empty where all did.
    pub list: Vec<u64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every launch ran.
    Done,
    /// A fault of the kernel, in words.
    Fault(String),
    /// Out of instructions or memory.
    Exhausted(String),
    /// The device cannot do it, or the blocks left out matter.
    Unsupported(String),
}

/// Elements of an output that launches wrote.
#[derive(Clone, Debug)]
pub struct Written {
    /// Where and what.
    pub points: Points,
    /// What stands at the elements asked for, written or not; empty where none were.
    pub at: Points,
    /// How many of the elements asked for were not written.
    pub unwritten: u64,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub end: RunEnd,
    /// Warp instructions.
    pub instructions: u64,
    /// Launches in order.
    pub launches: Vec<LaunchBlocks>,
    /// Outputs by name; none unless it ended well.
    pub outputs: BTreeMap<String, Written>,
}

/// The blocks to execute of a launch.
fn blocks_of(which: Which<'_>, number: usize, launch: &LaunchOp) -> Blocks {
    match which {
        Which::All => Blocks::All,
        Which::Sample { seed, random } => Blocks::Sample { seed, random },
        Which::Like(earlier) => match earlier.get(number) {
            Some(e) if e.list.is_empty() => Blocks::All,
            Some(e) if e.grid == launch.grid && e.block == launch.block => Blocks::List(e.list.clone()),
            Some(e) => Blocks::List(alike(e, launch.grid, launch.block)),
            // A launch more than the earlier version had.
            None => Blocks::sample(0),
        },
    }
}

/// Most blocks that one block's threads are looked for in, along an axis.
const SPREAD: u64 = 16;

/// The blocks of another grid that may do what an earlier launch's blocks did: those at the same places,
/// those that hold the same threads counted through the grid, and the last ones.
fn alike(earlier: &LaunchBlocks, grid: [u64; 3], block: [u64; 3]) -> Vec<u64> {
    let mut out = BTreeSet::new();
    for &b in &earlier.list {
        let (x, rest) = (b % earlier.grid[0].max(1), b / earlier.grid[0].max(1));
        let place = [x, rest % earlier.grid[1].max(1), rest / earlier.grid[1].max(1)];
        out.extend(Blocks::linear(grid, place));
        let threads: [Range<u64>; 3] = std::array::from_fn(|a| {
            let (old, new) = (earlier.block[a], block[a].max(1));
            let from = place[a].saturating_mul(old) / new;
            let to = place[a].saturating_add(1).saturating_mul(old).div_ceil(new);
            from..to.min(from.saturating_add(SPREAD))
        });
        for z in threads[2].clone() {
            for y in threads[1].clone() {
                out.extend(threads[0].clone().filter_map(|x| Blocks::linear(grid, [x, y, z])));
            }
        }
    }
    let total = grid.iter().fold(1u64, |n, d| n.saturating_mul(*d));
    out.extend(total.saturating_sub(2)..total);
    out.into_iter().collect()
}

/// What a run may take, and its seed.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Seed of noise and schedule.
    pub seed: u64,
    /// Warp instructions.
    pub instructions: u64,
    /// Bytes that buffers, the written pages of sparse ones and shared memory may take together.
    pub memory_bytes: u64,
}

impl Bounds {
    /// The device's own bound of memory.
    pub fn new(seed: u64, instructions: u64) -> Bounds {
        Bounds { seed, instructions, memory_bytes: Options::default().memory_cap_bytes }
    }
}

/// Runs a plan on an input. `asked` are elements of outputs whose values are wanted, written or not.
///
/// Strict memory, fresh memory as noise, schedule `hardware`, no detectors.
pub fn run(
    problem: &Problem,
    exe: &Executable,
    plan: &Plan,
    input: &OfficialInput,
    which: Which<'_>,
    bounds: Bounds,
    asked: &BTreeMap<String, Vec<u64>>,
) -> Ran {
    let mut ran = Ran { end: RunEnd::Done, instructions: 0, launches: Vec::new(), outputs: BTreeMap::new() };
    let options = Options {
        memory: Memory::Strict,
        fill: Fill::Noise,
        sanitize: Sanitize::OFF,
        schedule: Schedule::Hardware,
        seed: bounds.seed,
        fill_seed: bounds.seed,
        instruction_budget: bounds.instructions,
        memory_cap_bytes: bounds.memory_bytes,
        ..Options::default()
    };
    let mut session = Session::new(Arc::clone(&exe.loaded), options);
    let mut pointers: BTreeMap<&str, Ptr> = BTreeMap::new();
    if let Err(end) = allocate(&mut session, problem, plan, input, &mut pointers) {
        return Ran { end, ..ran };
    }
    let mut number = 0;
    for step in &plan.ops {
        let launch = match step {
            PlanOp::Memset { buffer, offset_bytes, value, len_bytes, .. } => {
                let done = match pointers.get(buffer.as_str()) {
                    Some(&p) => {
                        session.memset(p, *offset_bytes, *value, *len_bytes).map_err(|e| e.to_string())
                    }
                    None => Err(format!("cudaMemset of `{buffer}`, which is no buffer")),
                };
                match done {
                    Ok(()) => continue,
                    Err(what) => return Ran { end: RunEnd::Fault(what), ..ran },
                }
            }
            PlanOp::Launch(launch) => launch,
        };
        let Some((entry, function)) = exe.kernel(&launch.kernel) else {
            return Ran { end: RunEnd::Fault(format!("no kernel `{}`", launch.kernel)), ..ran };
        };
        let args = match bind(&function.params, &launch.args, &pointers) {
            Ok(args) => args,
            Err(what) => return Ran { end: RunEnd::Fault(what), ..ran },
        };
        let blocks = blocks_of(which, number, launch);
        number += 1;
        let outcome = session.launch(&LaunchSpec {
            kernel: entry,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.shared_bytes,
            args: &args,
            blocks: &blocks,
        });
        ran.instructions = ran.instructions.saturating_add(outcome.instructions);
        ran.launches.push(LaunchBlocks {
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            list: outcome.blocks.list,
        });
        let reason = outcome.reason.unwrap_or_default();
        match outcome.status {
            Status::Exhausted => return Ran { end: RunEnd::Exhausted(reason), ..ran },
            Status::Unsupported => return Ran { end: RunEnd::Unsupported(reason), ..ran },
            Status::Ok | Status::Finding => {}
        }
        if let Some(f) = outcome.findings.iter().find(|f| f.kind.is_fault()) {
            return Ran { end: RunEnd::Fault(format!("{}: {}", f.kind.name(), f.message)), ..ran };
        }
    }
    for o in &input.outputs {
        let Some(&ptr) = pointers.get(o.name.as_str()) else { continue };
        let all: Vec<(u64, [u8; 8])> = session.written_elements(ptr).into_iter().flatten().collect();
        let (mut at, mut unwritten) = (Vec::new(), 0);
        for &i in asked.get(&o.name).into_iter().flatten() {
            let value = match all.binary_search_by_key(&i, |(i, _)| *i) {
                Ok(k) => all[k].1,
                Err(_) => {
                    unwritten += 1;
                    let size = o.dtype.size_bytes();
                    let mut bytes = [0u8; 8];
                    // Inside of the buffer, whose shape the index is of.
                    let _ = session.read_at(ptr, i * size, &mut bytes[..size as usize]);
                    bytes
                }
            };
            at.push((i, value));
        }
        let written = Written { points: Points::of(o.dtype, &all), at: Points::of(o.dtype, &at), unwritten };
        ran.outputs.insert(o.name.clone(), written);
    }
    ran
}

/// Buffers in the order of a module, its inputs, scratch and outputs.
fn allocate<'a>(
    session: &mut Session,
    problem: &Problem,
    plan: &'a Plan,
    input: &'a OfficialInput,
    pointers: &mut BTreeMap<&'a str, Ptr>,
) -> Result<(), RunEnd> {
    let mut add = |spec: BufferSpec<'_>, name: &'a str| match session.alloc(spec) {
        Ok(p) => {
            pointers.insert(name, p);
            Ok(())
        }
        Err(e) => Err(RunEnd::Exhausted(e.to_string())),
    };
    let bytes = |len: Option<u64>, dtype: assay_tensor::DType| {
        len.and_then(|n| n.checked_mul(dtype.size_bytes()))
            .ok_or_else(|| RunEnd::Exhausted("a buffer is too large".into()))
    };
    let mut parts: Vec<_> = problem.inputs.iter().zip(&input.values).collect();
    parts.sort_by_key(|(i, _)| i.kind != InputKind::Parameter);
    for (i, (name, values)) in parts {
        let size = bytes(assay_tensor::numel(&values.shape), values.dtype)?;
        let role = if i.kind == InputKind::Parameter { Role::Parameter } else { Role::Input };
        let generated = OfficialInput::generated(values);
        let mut whole = Vec::new();
        let sparse = size > DENSE_BYTES;
        if !sparse {
            whole.resize(size as usize, 0);
            values.fill(0, &mut whole);
        }
        let init = if sparse { Init::Generated(&generated) } else { Init::Bytes(&whole) };
        let mut spec = BufferSpec::new(name, size, role, values.dtype, init);
        spec.may_write = problem.inplace.contains(name);
        spec.sparse = sparse;
        spec.shape = &values.shape;
        add(spec, name)?;
    }
    for s in &plan.scratch {
        let size = bytes(Some(s.len), s.dtype)?;
        let mut spec = BufferSpec::new(&s.name, size, Role::Scratch, s.dtype, Init::Uninit);
        spec.sparse = true;
        add(spec, &s.name)?;
    }
    for o in &input.outputs {
        if problem.input(&o.name).is_some() {
            continue; // written in place
        }
        let size = bytes(assay_tensor::numel(&o.shape), o.dtype)?;
        let mut spec = BufferSpec::new(&o.name, size, Role::Output, o.dtype, Init::Uninit);
        spec.sparse = true;
        spec.shape = &o.shape;
        add(spec, &o.name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_grid_runs_the_same_places_the_same_threads_and_the_end() {
        let e =
            LaunchBlocks { kernel: "k".into(), grid: [100, 2, 1], block: [64, 1, 1], list: vec![0, 10, 199] };
        // Half the threads a block in as many blocks: block 10's threads 640..704 are in blocks 20 and 21.
        assert_eq!(alike(&e, [100, 2, 1], [32, 1, 1]), [0, 1, 10, 20, 21, 198, 199]);
        // A grid cut by one: the last row's last block is gone.
        assert_eq!(alike(&e, [99, 2, 1], [64, 1, 1]), [0, 10, 196, 197]);
        // Twice the threads a block: block 10 is in block 5, block (99, 1) in (49, 1).
        assert_eq!(alike(&e, [100, 2, 1], [128, 1, 1]), [0, 5, 10, 149, 198, 199]);
        assert_eq!(alike(&e, [0, 1, 1], [64, 1, 1]), [] as [u64; 0]);
    }
}
