//! Runs host code: statements, expressions, places, calls of the file's own functions.
//!
//! Every step counts against the run's budget and every nesting against a depth, so that wrong host code ends as a
//! fault, an exception or exhausted. Scalar arithmetic is the host crate's. What a name means is looked up when it is
//! met: variables, functions of the file, types, then what the libraries have (`functions.rs`, `methods.rs`).

mod calls;
mod expressions;
mod places;
mod statements;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use assay_host::arith::{Computed, Wrong};
use assay_host::types::Value as Number;

use crate::Library;
use crate::device::Gpu;
use crate::error::ExtensionError;
use crate::program::Program;
use crate::run::Run;
use crate::value::{Items, Pointer, Scope, Ty, Val, Var};

pub(crate) use calls::deduce;

pub(crate) type R<T> = Result<T, ExtensionError>;

/// Nested calls and expressions.
const MAX_DEPTH: usize = 400;

/// How a statement ends.
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(Val),
}

/// Where a value is kept.
pub(crate) enum Place {
    Var(Var),
    Item(Items, usize, Ty),
    /// A component of a `dim3`.
    Component(Box<Place>, usize),
    Field(Rc<RefCell<BTreeMap<Arc<str>, Val>>>, Arc<str>),
    Memory(Pointer),
    /// A value of its own.
    Value(Val),
}

/// Variables that outlive a call: those of the file, and `static` ones of functions by place.
#[derive(Default)]
pub(crate) struct Globals {
    pub scope: Rc<Scope>,
    pub statics: BTreeMap<(usize, u32), Var>,
    /// What host code has written to variables of the device.
    pub symbols: Vec<crate::device::SymbolWrite>,
    pub ready: bool,
}

/// One call into a module.
pub(crate) struct Interp<'m, 'r> {
    pub program: &'m Program,
    pub gpu: Gpu<'m>,
    pub run: &'r mut Run,
    pub library: &'r mut dyn Library,
    pub globals: &'r mut Globals,
    /// Which text the code that runs stands in.
    pub source: usize,
    pub depth: usize,
    /// Bytes allocated by this call.
    pub allocated: u64,
    /// Numbers the allocations, for their contents.
    pub allocations: u64,
}

impl Interp<'_, '_> {
    pub fn line(&self, at: u32) -> Option<u32> {
        self.program.line(self.source, at)
    }

    pub fn unsupported<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Unsupported { construct: what.into(), line: self.line(at) })
    }

    /// Code that a compiler would refuse.
    pub fn rejected<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Rejected { message: what.into(), line: self.line(at) })
    }

    pub fn raised<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Raised { message: what.into(), line: self.line(at) })
    }

    pub fn fault<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Fault { message: what.into(), line: self.line(at) })
    }

    pub fn exhausted<T>(&self, at: u32, what: impl Into<String>) -> R<T> {
        Err(ExtensionError::Exhausted { message: what.into(), line: self.line(at) })
    }

    pub fn note(&mut self, at: u32, what: &str) {
        let text = format!("line {}: {what}", self.line(at).unwrap_or(0));
        if !self.run.notes.contains(&text) && self.run.notes.len() < 100 {
            self.run.notes.push(text);
        }
    }

    fn step(&mut self, at: u32) -> R<()> {
        match self.run.host_steps.checked_sub(1) {
            Some(left) => {
                self.run.host_steps = left;
                Ok(())
            }
            None => self.exhausted(at, "host code takes too many steps"),
        }
    }

    fn enter(&mut self, at: u32) -> R<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.exhausted(at, "host functions call each other too deep");
        }
        Ok(())
    }

    /// The result of scalar arithmetic; signed overflow is noted.
    pub fn computed(&mut self, r: Result<Computed, Wrong>, at: u32) -> R<Val> {
        match r {
            Ok(c) => {
                if let (Some(exact), Number::Int(v, s)) = (c.wrapped, &c.value) {
                    self.note(at, &format!("`{}` overflow, {exact} wraps to {v}", s.name()));
                }
                Ok(Val::Num(c.value))
            }
            Err(Wrong::Invalid(what)) => self.rejected(at, what),
            Err(Wrong::Fault(what)) => self.fault(at, what),
        }
    }
}
