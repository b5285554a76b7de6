//! PTX text to a validated module.
//!
//! Arrives: the text of one PTX module, as NVRTC writes it or by hand. Leaves: a [`Module`] with
//! dense ids, resolved labels and symbols, and spans into the text; or a [`PtxError`] with the
//! line. Nothing is executed here.
//!
//! The way of the data: `lexer` (tokens, no copies) → `parser`, `decl`, `body` (names, scopes,
//! labels) → `forms` (a spelling's row of the table in [`isa`]) → `check` (operands against the
//! row) → [`Module`]; [`mod@cfg`] then finds basic blocks and where branches meet again.
//!
//! Missed: textures, surfaces, `wgmma`, `cp.async.bulk`, `mbarrier`, video instructions other
//! than `vabsdiff4`, `.alias`, variable argument lists, vector registers, constant expressions and
//! 32-bit addresses are [`PtxError::Unsupported`]. Not every rule of the manual is checked: the
//! target of an instruction, alignment of constant offsets and the order of modifiers are not.

mod body;
pub mod cfg;
mod check;
mod decl;
pub mod error;
mod forms;
pub mod isa;
mod lexer;
pub mod mods;
pub mod module;
mod parser;

pub use cfg::ControlFlow;
pub use error::PtxError;
pub use isa::Op;
pub use mods::*;
pub use module::*;

/// Parses and validates a PTX module.
///
/// The time is linear in the text's length, memory too: declared sizes cost nothing.
///
/// # Errors
/// [`PtxError::Syntax`] and [`PtxError::Invalid`] for a text that is not a valid module,
/// [`PtxError::Unsupported`] for an opcode, modifier or directive outside the ISA table.
pub fn parse_module(text: &str) -> Result<Module, PtxError> {
    parser::Parser::new(text)?.module()
}
