//! One run on the device: sparse tensors, sampled blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_problems::{HostError, LaunchOp, Plan, PlanOp};
use assay_simt::{
    Blocks, BufferSpec, Fill, Finding, Init, LaunchSpec, Memory, Options, Ptr, Role, Sanitize, Schedule,
    Session, SourcePlace, Status,
};

use crate::kernel::Kernel;
use crate::work::{Inputs, Work};

/// Random blocks of a sample.
const RANDOM: u64 = 4;
/// Output elements that a sample may be expected to write before random blocks are left out, and
/// for which there is time.
const WRITES: (u64, u64) = (1 << 21, 3 << 22);
/// A run may take so many times the instructions for each element that the calibration took, and some for each block.
const PATIENCE: u64 = 3;
const PER_BLOCK: u64 = 20_000;
/// Bytes that a run may take.
const MEMORY: u64 = 256 << 20;

/// Which blocks run.
pub enum Which<'a> {
    /// All.
    All,
    /// A sample.
    Sample,
    /// These, a list for each launch.
    Lists(&'a [Vec<u64>]),
}

/// A tensor of which the elements before `from` are left out: whoever goes there is outside.
pub struct Window<'a> {
    /// The tensor.
    pub tensor: &'a str,
    /// Its first element that is there.
    pub from: u64,
}

/// A run to be made.
pub struct Job<'a> {
    /// The file.
    pub kernel: &'a Kernel,
    /// The operation at its extents.
    pub work: &'a Work,
    /// Its inputs.
    pub inputs: &'a Inputs,
    /// Seed of the sample and the schedule.
    pub seed: u64,
    /// Which blocks.
    pub which: Which<'a>,
    /// Warp instructions for an output element, times 1024, as the calibration had them; unlimited where `None`.
    pub per_1024: Option<u64>,
    /// For blame.
    pub window: Option<Window<'a>>,
}

/// How a run ended.
pub enum End {
    /// Every launch ran, without a fault.
    Done,
    /// The host code or a launch is refused: why, and the line.
    Host(String, Option<u32>),
    /// The device stopped the kernel: the finding's place in the list.
    Fault(usize),
    /// It does not end: where a thread was.
    Endless(String, Option<SourcePlace>),
    /// Not run, or not to its end, for reasons that say nothing about the kernel.
    Unsupported(String),
}

/// What a run gave.
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What `launch` asked for.
    pub plan: Plan,
    /// Everything that the device saw.
    pub findings: Vec<Finding>,
    /// Elements of the output that were written, ascending.
    pub written: Vec<(u64, [u8; 8])>,
    /// The blocks of each launch.
    pub lists: Vec<Vec<u64>>,
    /// Blocks that ran.
    pub executed: u64,
    /// Blocks of the grids.
    pub total: u64,
    /// Warp instructions.
    pub instructions: u64,
}

impl Ran {
    /// The line of the launch that was the last to run.
    pub fn launch_line(&self) -> Option<u32> {
        self.plan.launches().nth(self.lists.len().saturating_sub(1)).map(|l| l.line)
    }
}

/// Runs it.
pub fn run(job: &Job<'_>) -> Ran {
    let mut ran = Ran {
        end: End::Done,
        plan: Plan::default(),
        findings: Vec::new(),
        written: Vec::new(),
        lists: Vec::new(),
        executed: 0,
        total: 0,
        instructions: 0,
    };
    ran.end = match attempt(job, &mut ran) {
        Ok(()) => End::Done,
        Err(end) => end,
    };
    ran
}

fn attempt(job: &Job<'_>, ran: &mut Ran) -> Result<(), End> {
    ran.plan = job.kernel.plan(job.work).map_err(|e| {
        let line = e.position().map(|p| p.0);
        match e {
            HostError::Fault { .. } | HostError::Invalid { .. } => End::Host(e.to_string(), line),
            _ => End::Unsupported(e.to_string()),
        }
    })?;
    let options = Options {
        memory: Memory::Strict,
        fill: Fill::Nan,
        sanitize: Sanitize::OFF,
        schedule: Schedule::Hardware,
        seed: job.seed,
        fill_seed: job.seed,
        instruction_budget: u64::MAX,
        memory_cap_bytes: MEMORY,
        ..Options::default()
    };
    let mut session = Session::new(Arc::clone(&job.kernel.loaded), options);
    let pointers = allocate(job, &ran.plan, &mut session)?;
    let plan = ran.plan.clone();
    for step in &plan.ops {
        match step {
            PlanOp::Memset { buffer, offset_bytes, value, len_bytes, line } => {
                let Some(&(ptr, before)) = pointers.get(buffer) else {
                    return Err(End::Host(
                        format!("cudaMemset of `{buffer}`, which is no buffer"),
                        Some(*line),
                    ));
                };
                let done = session.memset(ptr, offset_bytes.wrapping_sub(before), *value, *len_bytes);
                done.map_err(|e| End::Host(e.to_string(), Some(*line)))?;
            }
            PlanOp::Launch(launch) => one(job, launch, &pointers, &mut session, ran)?,
        }
    }
    let Some(&(out, before)) = pointers.get("out") else { return Ok(()) };
    let size = job.work.family.dtype.size_bytes() as i64;
    let from = (before / size) as u64;
    ran.written = session.written_elements(out).into_iter().flatten().map(|(i, v)| (i + from, v)).collect();
    Ok(())
}

fn one(
    job: &Job<'_>,
    launch: &LaunchOp,
    pointers: &BTreeMap<String, (Ptr, i64)>,
    session: &mut Session,
    ran: &mut Ran,
) -> Result<(), End> {
    let (entry, args) = (job.kernel.bind(&launch.kernel, &launch.args, pointers))
        .map_err(|what| End::Host(format!("launch of `{}`: {what}", launch.kernel), Some(launch.line)))?;
    let asked = Blocks::Sample { seed: job.seed, random: RANDOM };
    let mut spec = LaunchSpec {
        kernel: entry,
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.shared_bytes,
        args: &args,
        blocks: &asked,
    };
    let total = launch.grid.iter().fold(1u64, |n, d| n.saturating_mul(*d));
    let blocks = match job.which {
        // A grid of nothing is refused, whatever is asked for.
        _ if total == 0 => Blocks::All,
        Which::All => Blocks::All,
        Which::Lists(lists) => Blocks::List(lists.get(ran.lists.len()).cloned().unwrap_or_default()),
        Which::Sample => {
            let wide = session.list_blocks(&spec).unwrap_or_default();
            Blocks::List(sample(job.work, launch, total, wide))
        }
    };
    let count = if let Blocks::List(list) = &blocks { list.len() as u64 } else { total };
    let mut crowded = false;
    if let Some(per) = job.per_1024 {
        // As many elements as the blocks' share of all.
        let expected = u128::from(job.work.output_elements()) * u128::from(count) / u128::from(total.max(1));
        // Blocks that should write more than a sample may are tried: a grid that was cut has little to do.
        crowded = expected > u128::from(WRITES.1);
        let expected = expected.min(u128::from(WRITES.1));
        let instructions = expected * u128::from(per) / 1024 * u128::from(PATIENCE);
        let budget =
            u64::try_from(instructions).unwrap_or(u64::MAX).saturating_add(count.saturating_mul(PER_BLOCK));
        session.set_instruction_budget(session.instructions().saturating_add(budget));
    }
    spec.blocks = &blocks;
    let outcome = session.launch(&spec);
    ran.lists.push(if let Blocks::List(list) = blocks { list } else { Vec::new() });
    ran.executed += outcome.blocks.executed;
    ran.total = ran.total.saturating_add(total);
    ran.instructions = ran.instructions.saturating_add(outcome.instructions);
    let first = ran.findings.len();
    for mut f in outcome.findings {
        // As the file has it, not as the compiler mangled it.
        f.kernel = Some(launch.kernel.clone());
        ran.findings.push(f);
    }
    let reason = outcome.reason.unwrap_or_default();
    if let Some(k) = (first..ran.findings.len()).find(|&k| ran.findings[k].kind.is_fault()) {
        return Err(End::Fault(k));
    }
    match outcome.status {
        Status::Ok | Status::Finding => Ok(()),
        Status::Unsupported => Err(End::Unsupported(reason)),
        Status::Exhausted if crowded => Err(End::Unsupported(format!(
            "not sampleable: {count} blocks of the grid's {total} write more than the {} elements of a sample",
            WRITES.1
        ))),
        // Memory runs out long before half of the instructions are spent.
        Status::Exhausted
            if job.per_1024.is_some() && outcome.stopped_at.is_some() && outcome.instructions > 1 << 16 =>
        {
            Err(End::Endless(reason, outcome.stopped_at))
        }
        Status::Exhausted => Err(End::Unsupported(reason)),
    }
}

/// The blocks of a launch that are run: the device's own sample, and those of whatever order that hold the elements at
/// and before each boundary, whether or not the tensors reach it: a loop's index passes it before its elements do. Of
/// blocks that write much, those alone, and no neighbours of them.
fn sample(work: &Work, launch: &LaunchOp, total: u64, wide: Vec<u64>) -> Vec<u64> {
    let last = total.saturating_sub(1);
    let threads = launch.block.iter().fold(1u64, |n, d| n.saturating_mul(*d)).max(1);
    let mut own = BTreeSet::from([0, last]);
    for t in work.tensors() {
        let elements = t.elements().max(1);
        for at in [1u64 << 31, 1 << 32, (1 << 32) / t.dtype.size_bytes(), elements] {
            own.extend([at, at - 1].map(|at| at / threads % total.max(1)));
            let even = |at: u64| u128::from(at) * u128::from(total) / u128::from(elements);
            own.extend(
                [at, at - 1].iter().filter_map(|&at| u64::try_from(even(at)).ok()).filter(|b| *b <= last),
            );
        }
    }
    let expected = |blocks: usize| {
        let all = u128::from(work.output_elements()) * blocks as u128 / u128::from(total.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    };
    let mut list: BTreeSet<u64> =
        own.iter().flat_map(|&b| b.saturating_sub(1)..=b.saturating_add(1).min(last)).collect();
    list.extend(wide);
    if expected(list.len()) > WRITES.0 {
        list = own;
    }
    list.into_iter().collect()
}

/// All tensors as sparse buffers, in the order of the operation, and scratch. Gives each with the bytes that lie before
/// it.
fn allocate(job: &Job<'_>, plan: &Plan, session: &mut Session) -> Result<BTreeMap<String, (Ptr, i64)>, End> {
    let mut pointers = BTreeMap::new();
    let refused = |e: assay_simt::SessionError| End::Unsupported(e.to_string());
    for (k, t) in job.work.tensors().iter().enumerate() {
        let from = job.window.as_ref().filter(|w| w.tensor == t.name).map_or(0, |w| w.from.min(t.elements()));
        let size = t.dtype.size_bytes();
        let before = from * size;
        let output = t.name == "out";
        let generated = job.inputs.generated(k, t.dtype, from);
        let role = if output { Role::Output } else { Role::Input };
        let init = if output { Init::Uninit } else { Init::Generated(&generated) };
        let mut spec = BufferSpec::new(t.name, t.bytes() - before, role, t.dtype, init);
        spec.sparse = true;
        spec.shape = if from == 0 { &t.shape } else { &[] };
        let ptr = session.alloc(spec).map_err(refused)?;
        pointers.insert(t.name.to_owned(), (ptr, before as i64));
    }
    for s in &plan.scratch {
        let bytes = s.len.checked_mul(s.dtype.size_bytes());
        let bytes = bytes.ok_or_else(|| End::Unsupported(format!("scratch `{}` is too large", s.name)))?;
        let mut spec = BufferSpec::new(&s.name, bytes, Role::Scratch, s.dtype, Init::Uninit);
        spec.sparse = true;
        pointers.insert(s.name.clone(), (session.alloc(spec).map_err(refused)?, 0));
    }
    Ok(pointers)
}
