//! What the JIT reads: an entry's instructions in a small form, made by the decoder.
//!
//! The list of forms is the JIT's whitelist. Arithmetic that has no form of its own is [`What::Handler`]: the compiled
//! code calls the interpreter's handler for it. Anything that may wait, leave the frame or stop for the schedule is
//! [`What::Leave`]: the compiled code ends there and the interpreter goes on.

use assay_ptx::{BoolOp, Special};

use crate::code::Slot;

/// A source operand of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Src {
    Reg(u32),
    Const(u64),
    /// A special register and its place in the frame.
    Special(Special, u32),
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredSrc {
    pub(crate) reg: u32,
    pub(crate) negated: bool,
}

/// Integer operations of two operands of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    /// The amount is 32 bits wide; amounts of the width or more give 0 (or the sign).
    Shl,
    ShrU,
    ShrS,
    MinU,
    MinS,
    MaxU,
    MaxS,
}

/// Operations on binary32, rounded to nearest, without flushing; NaN results are canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
    Min,
    Max,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Complements of the ordered comparisons, for floats.
    Nlt,
    Nle,
    Ngt,
    Nge,
    /// Neither, or one of them, is a NaN.
    Ordered,
    Unordered,
}

/// Type of compared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareTy {
    Signed { wide: bool },
    Unsigned { wide: bool },
    Float32,
}

/// A load or store of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Shared memory with 32-bit addresses; else 64-bit global or generic ones.
    pub(crate) shared: bool,
    pub(crate) base: Src,
    pub(crate) offset: i64,
    /// 4 or 8 bytes an element.
    pub(crate) size: u32,
    /// Loaded registers, or stored values.
    pub(crate) data: Vec<Src>,
    /// A store to an address that the thread has just read: others may want to run in between.
    pub(crate) contended: bool,
}

impl Access {
    /// Bytes of a lane.
    pub(crate) fn total(&self) -> i64 {
        i64::from(self.size) * self.data.len() as i64
    }
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Nothing,
    Mov {
        wide: bool,
        a: Src,
    },
    Int {
        op: IntOp,
        wide: bool,
        a: Src,
        b: Src,
    },
    /// `mad.lo` of 32 bits.
    Mad {
        a: Src,
        b: Src,
        c: Src,
    },
    /// 32 by 32 to 64 bits; with `b` one, a widening.
    Wide {
        signed: bool,
        a: Src,
        b: Src,
    },
    /// The low 32 of 64 bits.
    Narrow {
        a: Src,
    },
    Float {
        op: FloatOp,
        a: Src,
        b: Src,
        c: Src,
    },
    Compare {
        cmp: Compare,
        ty: CompareTy,
        a: Src,
        b: Src,
    },
    Select {
        wide: bool,
        a: Src,
        b: Src,
        p: PredSrc,
    },
    Logic {
        op: BoolOp,
        a: PredSrc,
        b: PredSrc,
    },
    /// A kernel parameter of 4 or 8 bytes at an offset.
    Param {
        offset: u32,
        wide: bool,
    },
    Load(Access),
    Store(Access),
    /// To the instruction with this index, under the guard if there is one.
    Branch {
        target: u32,
    },
    /// `bar.sync` of the whole block.
    Barrier {
        id: u8,
    },
    /// The interpreter's handler does it. `stops`: it may end in an event (memory, shuffles). `lanewise`: each lane's
    /// results depend on the same lane's sources alone.
    Handler {
        stops: bool,
        lanewise: bool,
    },
    /// The compiled code ends before it. `last`: nothing comes after it.
    Leave {
        last: bool,
    },
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Ins {
    pub(crate) what: What,
    pub(crate) guard: Option<PredSrc>,
    /// Registers written and read (a guarded write reads too).
    pub(crate) dests: Vec<u32>,
    pub(crate) uses: Vec<u32>,
    /// Decoded instructions `first..end`; of them, `real..end` are this instruction's own and those before a chain.
    pub(crate) first: u32,
    pub(crate) real: u32,
    pub(crate) end: u32,
}

/// A register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reg {
    pub(crate) slot: Slot,
    /// Declared `.f32`.
    pub(crate) float: bool,
}

/// An entry as the JIT sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) ins: Vec<Ins>,
    pub(crate) regs: Vec<Reg>,
}
