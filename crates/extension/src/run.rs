//! What a call may use, and what it leaves beside its result.

use std::collections::BTreeMap;

use assay_simt::{Blocks, Engine, Fill, Finding, Memory, Sanitize, Schedule};

use crate::sample::Sample;

/// Launches whose cost is noted; a loop may make any number.
const MOST_COSTS: usize = 4096;

/// What a launch took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchCost {
    /// Threads of the whole grid.
    pub threads: u64,
    /// Warp instructions of the blocks that ran.
    pub instructions: u64,
}

/// Settings and budgets of calls, and what they saw. One `Run` may serve several calls; budgets and records go on.
#[derive(Clone, Debug)]
pub struct Run {
    /// Strict or arena. In the arena every launch has a layout of its own, of the tensors that it is given.
    pub memory: Memory,
    /// What fresh memory holds.
    pub fill: Fill,
    /// Detectors.
    pub sanitize: Sanitize,
    /// Order of the warps.
    pub schedule: Schedule,
    /// Seed of schedule and fill.
    pub seed: u64,
    /// What executes.
    pub engine: Engine,
    /// Blocks of each launch.
    pub blocks: Blocks,
    /// Launches of which only a sample of blocks runs, in place of `blocks`; needs strict memory.
    pub sample: Option<Sample>,
    /// Warp instructions left.
    pub instructions: u64,
    /// Steps of host code left.
    pub host_steps: u64,
    /// Bytes that one call may allocate.
    pub memory_bytes: u64,
    /// Bytes that lie in fresh memory of their very length, for the trick of leaving an answer there.
    pub stale: Vec<Vec<u8>>,
    /// What the detectors saw, in order; lines are those of the CUDA source.
    pub findings: Vec<Finding>,
    /// Launches by kernel (name expression).
    pub kernels: BTreeMap<String, u64>,
    /// What each launch took, in order.
    pub costs: Vec<LaunchCost>,
    /// Threads launched, over all launches.
    pub threads: u64,
    /// Operations asked of the library, by name.
    pub operations: BTreeMap<String, u64>,
    /// Warp instructions executed.
    pub executed: u64,
    /// Text that kernels and host code printed.
    pub printed: Vec<String>,
    /// Undefined behaviour of host code that has been given a meaning, such as signed overflow; with lines.
    pub notes: Vec<String>,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            memory: Memory::Strict,
            fill: Fill::Noise,
            sanitize: Sanitize::OFF,
            schedule: Schedule::Hardware,
            seed: 0,
            engine: Engine::Auto,
            blocks: Blocks::All,
            sample: None,
            instructions: 2_000_000_000,
            host_steps: 4_000_000,
            memory_bytes: 4 << 30,
            stale: Vec::new(),
            findings: Vec::new(),
            kernels: BTreeMap::new(),
            costs: Vec::new(),
            threads: 0,
            operations: BTreeMap::new(),
            executed: 0,
            printed: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Run {
    /// Notes what a launch took.
    pub(crate) fn took(&mut self, threads: u64, instructions: u64) {
        self.instructions = self.instructions.saturating_sub(instructions);
        self.executed = self.executed.saturating_add(instructions);
        self.threads = self.threads.saturating_add(threads);
        if self.costs.len() < MOST_COSTS {
            self.costs.push(LaunchCost { threads, instructions });
        }
    }

    /// Launches so far.
    pub fn launches(&self) -> u64 {
        self.kernels.values().sum()
    }
}
