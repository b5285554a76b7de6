//! Instruction code: one handler per (opcode, type, modifier) form that is common enough to be worth it, and
//! one generic handler that applies a lane function for all the others.

pub(crate) mod alu;
pub(crate) mod chain;
pub(crate) mod control;
pub(crate) mod generic;
pub(crate) mod local;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod shuffle;
