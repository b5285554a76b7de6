//! PTX text to a validated module.
//!
//! Arrives: the text of one PTX module, as NVRTC writes it or by hand. Leaves: a [`Module`] with
//! dense ids, resolved labels and symbols, and spans into the text; or a [`PtxError`] with the
//! line. Nothing is executed here.

pub mod error;
pub mod isa;
pub mod module;
pub mod mods;

pub use error::PtxError;
pub use isa::Op;
pub use module::*;
pub use mods::*;

/// Parses and validates a PTX module.
///
/// # Errors
/// [`PtxError::Syntax`] and [`PtxError::Invalid`] for a text that is not a valid module,
/// [`PtxError::Unsupported`] for an opcode, modifier or directive outside the ISA table.
pub fn parse_module(text: &str) -> Result<Module, PtxError> {
    let _ = text;
    Err(PtxError::Unsupported { spelling: "not yet".into(), line: 0 })
}
