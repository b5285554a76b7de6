//! The CPU device: executes PTX and reports findings.
//!
//! Arrives: a parsed module ([`assay_ptx::Module`]), buffers, launches. Leaves: the buffers' bytes and, per launch,
//! an [`Outcome`] with what was found. A module is decoded once ([`Loaded`], shared between threads); every
//! evaluation has a [`Session`] of its own, which is deterministic: the same module, buffers, launches and
//! [`Options`] give the same bits and findings on every host.
//!
//! How it works: a register is an array of 32 lanes, an instruction is a function that handles all of them under
//! an active mask (`lanes`, `handlers`); `exec` schedules warps and does what needs more than lanes; `semantics`
//! has what each opcode computes; `memory` the two memory models; `sanitize` the detectors. Long launches without
//! detectors run partly in machine code (`jit`), with the same results.
//!
//! What it misses: clusters, transaction counts of `mbarrier`, bulk copies, `wgmma`, textures and surfaces are
//! [`LoadError::Unsupported`]. Results of approximate instructions are closer to the exact ones than a GPU's; products
//! of matrices add in an order of their own (`semantics::matrix`). The scheduler is a model: it shows some
//! interleavings, not all. Races are judged by synchronisation, not by what happened, on the path that this input takes.

mod blocks;
mod code;
mod cpu;
mod decode;
#[cfg(test)]
mod differential;
mod error;
mod exec;
mod findings;
mod handlers;
mod jit;
mod lanes;
mod liveness;
mod memory;
mod options;
mod printf;
mod sanitize;
mod semantics;
mod session;
mod warp;

pub use blocks::{Blocks, BlocksRun};
pub use error::{LoadError, SessionError};
pub use findings::{AccessKind, Finding, FindingKind, FindingSpace, OtherAccess, SourcePlace, ThreadId};
pub use options::{
    Arg, BufferSpec, Coverage, CoveragePoint, Elements, Engine, Fill, Generated, Init, LaunchSpec, Memory,
    Options, Outcome, Ptr, Role, Sanitize, Schedule, Status,
};
pub use session::{Loaded, Session};
