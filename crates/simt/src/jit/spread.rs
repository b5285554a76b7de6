//! How the value of each register varies over the lanes of a warp.
//!
//! Lanes 0–15 and 16–31 are treated apart, since 16 threads in x are common. A value that is the same in a half, or
//! rises by a fixed step from lane to lane, needs one scalar a half instead of 32. The analysis gives one [`Spread`] to a
//! register for the whole entry. It holds while the warp has gone through the entry without diverging and without a
//! widened value wrapping around: compiled code leaves where that would happen, and checks the registers that it
//! needs when it is entered from elsewhere.

use assay_ptx::Special;

use super::source::{CompareTy, FloatOp, Ins, IntOp, PredSrc, Source, Src, What};
use crate::code::Kind;

/// Lanes of a half.
pub(crate) const HALF: i64 = 16;

/// How a value varies over the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Never written.
    None,
    /// Lane `k` of a half has the half's base plus `k * stride`; the second half's base is the first's plus `delta`, if
    /// that is known. All modulo two to the width.
    Affine { stride: i64, delta: Option<i64> },
    /// Any values.
    Lanes,
    /// A predicate that is the same in all lanes.
    All,
    /// A predicate that is the same in the lanes of a half.
    Halves,
    /// Any predicate.
    Mask,
}

pub(crate) const UNIFORM: Spread = Spread::Affine { stride: 0, delta: Some(0) };

impl Spread {
    /// True if it is the same within a half.
    pub(crate) fn is_flat(self) -> bool {
        matches!(self, Spread::Affine { stride: 0, .. } | Spread::All | Spread::Halves)
    }

    /// True if it is the same in the whole warp.
    pub(crate) fn is_uniform(self) -> bool {
        self == UNIFORM || self == Spread::All
    }

    pub(crate) fn is_affine(self) -> bool {
        matches!(self, Spread::Affine { .. })
    }

    fn join(self, other: Spread) -> Spread {
        use Spread::*;
        match (self, other) {
            (None, x) | (x, None) => x,
            (x, y) if x == y => x,
            (Affine { stride: s, .. }, Affine { stride: t, .. }) if s == t => {
                Affine { stride: s, delta: Option::None }
            }
            (All | Halves, All | Halves) => Halves,
            (All | Halves | Mask, All | Halves | Mask) => Mask,
            _ => Lanes,
        }
    }
}

/// What the analysis and the compiled code assume of a launch's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum BlockClass {
    /// A warp is 32 neighbours in x.
    Row,
    /// A warp is two rows of 16.
    TwoRows,
    /// A half-warp is 16 neighbours in x.
    HalfRow,
    /// Anything else.
    Other,
}

impl BlockClass {
    pub(crate) fn of(block: [u64; 3]) -> BlockClass {
        let [x, y, z] = block;
        if x % 32 == 0 || y.saturating_mul(z) == 1 {
            BlockClass::Row
        } else if x == 16 && y % 2 == 0 {
            BlockClass::TwoRows
        } else if x % 16 == 0 {
            BlockClass::HalfRow
        } else {
            BlockClass::Other
        }
    }

    /// How a special register varies.
    pub(crate) fn special(self, s: Special) -> Spread {
        use Special::*;
        let step = |delta| Spread::Affine { stride: 1, delta };
        let flat = |delta| Spread::Affine { stride: 0, delta };
        match (s, self) {
            (TidX | TidY | TidZ, BlockClass::Other) => Spread::Lanes,
            (TidX, BlockClass::Row) => step(Some(HALF)),
            (TidX, BlockClass::TwoRows) => step(Some(0)),
            (TidX, BlockClass::HalfRow) => step(None),
            (TidY | TidZ, BlockClass::Row) => flat(Some(0)),
            (TidY, BlockClass::TwoRows) => flat(Some(1)),
            (TidZ, BlockClass::TwoRows) => flat(Some(0)),
            (TidY | TidZ, BlockClass::HalfRow) => flat(None),
            (Laneid, _) => step(Some(HALF)),
            (
                NtidX | NtidY | NtidZ | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ | Warpid
                | Nwarpid | Smid | Nsmid | Gridid | DynamicSmemSize | TotalSmemSize,
                _,
            ) => UNIFORM,
            _ => Spread::Lanes,
        }
    }
}

/// A number of `wide` bits as a signed one.
pub(crate) fn wrap(v: i64, wide: bool) -> i64 {
    if wide { v } else { i64::from(v as i32) }
}

/// The spreads of an entry's registers.
pub(crate) struct Spreads {
    pub(crate) class: BlockClass,
    pub(crate) of: Vec<Spread>,
}

impl Spreads {
    /// Analyses an entry. `undefined` are registers that may be read before they are written.
    pub(crate) fn new(source: &Source, class: BlockClass, undefined: impl Fn(usize) -> bool) -> Spreads {
        let of = (0..source.regs.len())
            .map(|r| match (undefined(r), source.regs[r].slot.kind) {
                (false, _) => Spread::None,
                (true, Kind::Pred) => Spread::Mask,
                (true, _) => Spread::Lanes,
            })
            .collect();
        let mut s = Spreads { class, of };
        loop {
            let mut changed = false;
            for i in &source.ins {
                for &d in &i.dests {
                    let d = d as usize;
                    let v = match s.natural(i) {
                        Some(v) => v,
                        None => s.by_handler(i, source.regs[d].slot.kind),
                    };
                    let joined = s.of[d].join(v);
                    changed |= joined != s.of[d];
                    s.of[d] = joined;
                }
            }
            if changed {
                continue;
            }
            // What nothing defines, in code that nothing reaches.
            for (r, of) in s.of.iter_mut().enumerate() {
                if *of == Spread::None {
                    *of = if source.regs[r].slot.kind == Kind::Pred { Spread::Mask } else { Spread::Lanes };
                    changed = true;
                }
            }
            if !changed {
                return s;
            }
        }
    }

    pub(crate) fn src(&self, s: Src) -> Spread {
        match s {
            Src::Reg(r) => self.of[r as usize],
            Src::Const(_) => UNIFORM,
            Src::Special(s, _) => self.class.special(s),
        }
    }

    fn pred(&self, p: PredSrc) -> Spread {
        self.of[p.reg as usize]
    }

    /// The result of an instruction that the interpreter's handler does.
    fn by_handler(&self, i: &Ins, kind: Kind) -> Spread {
        let flat = i.uses.iter().map(|r| self.of[*r as usize]);
        let all = flat.clone().all(|s| s.is_uniform() || s == Spread::None);
        let halves = flat.clone().all(|s| s.is_flat() || s == Spread::None);
        let guarded = i.guard.is_some_and(|g| !self.pred(g).is_uniform() && self.pred(g) != Spread::None);
        let lanewise = matches!(
            i.what,
            What::Handler { lanewise: true, .. }
                | What::Load(_)
                | What::Mov { .. }
                | What::Int { .. }
                | What::Mad { .. }
                | What::Wide { .. }
                | What::Narrow { .. }
                | What::Float { .. }
                | What::Compare { .. }
                | What::Select { .. }
        );
        // Special registers are sources that `uses` does not name.
        let specials =
            i.sources().into_iter().any(|s| matches!(s, Src::Special(..)) && !self.src(s).is_uniform());
        match (lanewise && !guarded && !specials, kind == Kind::Pred) {
            (true, false) if all => UNIFORM,
            (true, false) if halves => Spread::Affine { stride: 0, delta: None },
            (true, true) if all => Spread::All,
            (true, true) if halves => Spread::Halves,
            (_, true) => Spread::Mask,
            (_, false) => Spread::Lanes,
        }
    }

    /// The result's spread if compiled code computes it; `None` if the handler does. While a source is still
    /// [`Spread::None`] the result is that, too.
    pub(crate) fn natural(&self, i: &Ins) -> Option<Spread> {
        use Spread::*;
        let flat = |list: &[Spread]| {
            if list.iter().all(|s| s.is_uniform()) {
                UNIFORM
            } else {
                Affine { stride: 0, delta: Option::None }
            }
        };
        let sources: Vec<Spread> = i.sources().into_iter().map(|s| self.src(s)).collect();
        if sources.contains(&None) {
            return Some(None);
        }
        match &i.what {
            What::Nothing | What::Branch { .. } | What::Barrier { .. } => Some(None),
            What::Handler { .. } | What::Leave { .. } => Option::None,
            What::Param { .. } => Some(UNIFORM),
            What::Mov { wide, a } => {
                let s = self.src(*a);
                if s == Lanes && *wide { Option::None } else { Some(s) }
            }
            What::Int { op, wide, a, b } => self.int(*op, *wide, *a, *b),
            What::Mad { a, b, c } => {
                let p = self.int(IntOp::Mul, false, *a, *b)?;
                Some(add(p, self.src(*c), 1, false))
            }
            What::Wide { signed, a, b } => match (self.src(*a), self.src(*b), constant(*b), constant(*a)) {
                (x, y, ..) if x.is_flat() && y.is_flat() => Some(flat(&[x, y])),
                (Affine { stride, delta }, _, Some(c), _) | (_, Affine { stride, delta }, _, Some(c)) => {
                    let c = if *signed { wrap(c, false) } else { c & 0xffff_ffff };
                    if c == 0 {
                        return Some(UNIFORM);
                    }
                    Some(Affine { stride: stride.wrapping_mul(c), delta: delta.map(|d| d.wrapping_mul(c)) })
                }
                _ => Option::None,
            },
            What::Narrow { a } => match self.src(*a) {
                Affine { stride, delta } => {
                    Some(Affine { stride: wrap(stride, false), delta: delta.map(|d| wrap(d, false)) })
                }
                _ => Option::None,
            },
            What::Float { op, a, b, c } => {
                let used = if *op == FloatOp::Fma {
                    vec![self.src(*a), self.src(*b), self.src(*c)]
                } else if *op == FloatOp::Sqrt {
                    vec![self.src(*a)]
                } else {
                    vec![self.src(*a), self.src(*b)]
                };
                Some(if used.iter().all(|s| s.is_flat()) { flat(&used) } else { Lanes })
            }
            What::Compare { ty, a, b, .. } => {
                let (x, y) = (self.src(*a), self.src(*b));
                let wide =
                    matches!(ty, CompareTy::Signed { wide: true } | CompareTy::Unsigned { wide: true });
                if x.is_uniform() && y.is_uniform() {
                    Some(All)
                } else if x.is_flat() && y.is_flat() {
                    Some(Halves)
                } else if wide {
                    Option::None
                } else {
                    Some(Mask)
                }
            }
            What::Select { wide, a, b, p } => {
                let (x, y, p) = (self.src(*a), self.src(*b), self.pred(*p));
                if p == None {
                    return Some(None);
                }
                if x.is_flat() && y.is_flat() && p.is_flat() {
                    Some(flat(&[x, y, if p.is_uniform() { UNIFORM } else { Lanes }]))
                } else if *wide {
                    Option::None
                } else {
                    Some(Lanes)
                }
            }
            What::Logic { a, b, .. } => Some(match (self.pred(*a), self.pred(*b)) {
                (None, _) | (_, None) => None,
                (All, All) => All,
                (All | Halves, All | Halves) => Halves,
                _ => Mask,
            }),
            What::Load(a) => match self.src(a.base) {
                Affine { stride: 0, delta } => Some(Affine { stride: 0, delta: delta.filter(|d| *d == 0) }),
                Affine { stride, .. } if a.size == 4 && a.data.len() == 1 && stride == a.total() => {
                    Some(Lanes)
                }
                _ => Option::None,
            },
            What::Store(a) => match self.src(a.base) {
                Affine { stride, delta }
                    if a.size == 4
                        && a.data.len() == 1
                        && stride == a.total()
                        && (!a.contended || delta == Some(HALF * stride)) =>
                {
                    Some(None)
                }
                _ => Option::None,
            },
        }
    }

    fn int(&self, op: IntOp, wide: bool, a: Src, b: Src) -> Option<Spread> {
        use Spread::*;
        let (x, y) = (self.src(a), self.src(b));
        let affine = match (op, x, y) {
            (IntOp::Add, Affine { .. }, Affine { .. }) => Some(add(x, y, 1, wide)),
            (IntOp::Sub, Affine { .. }, Affine { .. }) => Some(add(x, y, -1, wide)),
            (IntOp::Mul, s, _) if constant(b).is_some() => scale(s, constant(b).unwrap_or(0), wide),
            (IntOp::Mul, _, s) if constant(a).is_some() => scale(s, constant(a).unwrap_or(0), wide),
            (IntOp::Shl, s, _) if constant(b).is_some_and(|n| n < if wide { 64 } else { 32 }) => {
                scale(s, 1i64.wrapping_shl(constant(b).unwrap_or(0) as u32), wide)
            }
            _ => Option::None,
        };
        if affine.is_some() {
            return affine;
        }
        if x.is_flat() && y.is_flat() {
            return Some(if x.is_uniform() && y.is_uniform() {
                UNIFORM
            } else {
                Affine { stride: 0, delta: Option::None }
            });
        }
        if wide {
            return Option::None;
        }
        match op {
            IntOp::Shl | IntOp::ShrU | IntOp::ShrS if constant(b).is_none() => Option::None,
            _ => Some(Lanes),
        }
    }
}

/// The value of a constant operand.
pub(crate) fn constant(s: Src) -> Option<i64> {
    if let Src::Const(v) = s { Some(v as i64) } else { None }
}

/// Spread of a sum (`sign` 1) or difference (-1).
fn add(x: Spread, y: Spread, sign: i64, wide: bool) -> Spread {
    use Spread::*;
    match (x, y) {
        (None, _) | (_, None) => None,
        (Affine { stride: s, delta: d }, Affine { stride: t, delta: e }) => Affine {
            stride: wrap(s.wrapping_add(t.wrapping_mul(sign)), wide),
            delta: d.zip(e).map(|(d, e)| wrap(d.wrapping_add(e.wrapping_mul(sign)), wide)),
        },
        _ => Lanes,
    }
}

/// Spread of a product with a constant.
fn scale(s: Spread, c: i64, wide: bool) -> Option<Spread> {
    match s {
        Spread::Affine { stride, delta } => Some(Spread::Affine {
            stride: wrap(stride.wrapping_mul(c), wide),
            delta: delta.map(|d| wrap(d.wrapping_mul(c), wide)),
        }),
        _ => None,
    }
}

impl Ins {
    /// The operands of 32 or 64 bits that it reads.
    pub(crate) fn sources(&self) -> Vec<Src> {
        match &self.what {
            What::Mov { a, .. } | What::Narrow { a } => vec![*a],
            What::Int { a, b, .. }
            | What::Wide { a, b, .. }
            | What::Compare { a, b, .. }
            | What::Select { a, b, .. } => vec![*a, *b],
            What::Mad { a, b, c } | What::Float { a, b, c, .. } => vec![*a, *b, *c],
            What::Load(a) => vec![a.base],
            What::Store(a) => {
                let mut v = a.data.clone();
                v.push(a.base);
                v
            }
            What::Nothing
            | What::Logic { .. }
            | What::Param { .. }
            | What::Branch { .. }
            | What::Barrier { .. }
            | What::Handler { .. }
            | What::Leave { .. } => vec![],
        }
    }
}
