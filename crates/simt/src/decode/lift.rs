//! From instructions of an entry to what the JIT reads, see [`crate::jit::source`].

use assay_ptx::{BoolOp, Cmp, Half, Instr, Op, Operand, Rounding, Space, Ty};

use super::function::Decoder;
use crate::code::Kind;
use crate::jit::source::{Access, Compare, CompareTy, FloatOp, Ins, IntOp, PredSrc, Reg, Source, Src, What};
use crate::liveness::defs_uses;

/// Functions with more instructions are left to the interpreter.
const MAX_INSTRUCTIONS: usize = 4096;

const ONE: Src = Src::Const(1);

impl Decoder<'_, '_> {
    /// The whole body; `starts` are the first decoded instructions of each, `counts` how many each has of its own, and
    /// `contended` the stores to places just read.
    pub(super) fn lift(&mut self, starts: &[u32], counts: &[u32], contended: &[bool]) -> Option<Source> {
        let n = self.f.body.len();
        if n == 0 || n > MAX_INSTRUCTIONS || self.f.registers.len() > MAX_INSTRUCTIONS {
            return None;
        }
        let mut ins = Vec::with_capacity(n);
        for k in 0..n {
            self.at = k;
            let i = self.instr();
            let mut what = self.lift_one(i, contended[k]).unwrap_or_else(|| rest(i));
            if i.op == Op::BrxIdx {
                return None;
            }
            if counts[k] != 1 && matches!(what, What::Handler { stops: true, .. }) {
                what = What::Leave { last: false };
            }
            let (dests, uses) = defs_uses(i);
            let end = starts.get(k + 1).copied().unwrap_or(self.out.len() as u32);
            ins.push(Ins {
                what,
                guard: i.guard.map(|g| PredSrc { reg: g.reg.0, negated: g.negated }),
                dests: dests.into_iter().map(|r| r as u32).collect(),
                uses: uses.into_iter().map(|r| r as u32).collect(),
                first: starts[k],
                real: end - counts[k],
                end,
            });
        }
        let regs = (0..self.f.registers.len())
            .map(|r| Reg { slot: self.frame.registers[r], float: self.f.registers[r].ty == Ty::F32 })
            .collect();
        Some(Source { ins, regs })
    }

    /// A source of exactly the width of `ty`.
    fn lift_source(&mut self, o: &Operand, ty: Ty) -> Option<Src> {
        match o {
            Operand::Reg(r) if self.f.reg_ty(*r).bits() == ty.bits() => Some(Src::Reg(r.0)),
            Operand::Imm(i) => Some(Src::Const(i.bits_for(ty)?)),
            Operand::Special(s) => {
                let kind = if ty.bits() == 64 { Kind::W64 } else { Kind::W32 };
                let at = self.frame.specials.iter().find(|(t, _, k)| t == s && *k == kind)?.1;
                Some(Src::Special(*s, at))
            }
            Operand::Symbol { symbol, offset } => {
                let base = self.symbol(*symbol).ok()??;
                let v = base.wrapping_add(*offset as u64);
                Some(Src::Const(if ty.bits() == 32 { v & 0xffff_ffff } else { v }))
            }
            _ => None,
        }
    }

    fn lift_pred(&self, o: &Operand) -> Option<PredSrc> {
        match o {
            Operand::Reg(r) => Some(PredSrc { reg: r.0, negated: false }),
            Operand::NotReg(r) => Some(PredSrc { reg: r.0, negated: true }),
            _ => None,
        }
    }

    /// True if the result is a register of exactly `bits` bits.
    fn result_is(&self, i: &Instr, bits: u64) -> bool {
        matches!(&i.operands[0], Operand::Reg(r) if self.f.reg_ty(*r).bits() == bits)
    }

    /// A form of its own for `i`, if it has one.
    fn lift_one(&mut self, i: &Instr, contended: bool) -> Option<What> {
        let m = &i.mods;
        if i.op == Op::Bra {
            let [Operand::Label(t)] = &i.operands[..] else { return None };
            return Some(What::Branch { target: *t });
        }
        if i.guard.is_some() {
            return None;
        }
        match i.op {
            Op::Prefetch | Op::Prefetchu | Op::Discard => return Some(What::Nothing),
            Op::BarSync => {
                let [Operand::Imm(id)] = &i.operands[..] else { return None };
                let id = id.bits_for(Ty::U32).filter(|id| *id < 16)? as u8;
                return Some(What::Barrier { id });
            }
            Op::Ld | Op::Ldu | Op::St => return self.lift_access(i, contended),
            Op::Setp => return self.lift_compare(i),
            Op::Cvt => return self.lift_cvt(i),
            Op::Cvta => {
                // Global and constant addresses are generic ones.
                let space = m.space?;
                let same = matches!(space, Space::Global | Space::Const);
                if !same || i.ty()?.bits() != 64 || !self.result_is(i, 64) {
                    return None;
                }
                return Some(What::Mov { wide: true, a: self.lift_source(&i.operands[1], Ty::B64)? });
            }
            Op::And | Op::Or | Op::Xor | Op::Not if i.ty() == Some(Ty::Pred) => {
                let Operand::Reg(_) = &i.operands[0] else { return None };
                let a = self.lift_pred(&i.operands[1])?;
                return Some(match i.op {
                    Op::Not => {
                        let a = PredSrc { negated: !a.negated, ..a };
                        What::Logic { op: BoolOp::And, a, b: a }
                    }
                    op => {
                        let b = self.lift_pred(&i.operands[2])?;
                        let op = match op {
                            Op::And => BoolOp::And,
                            Op::Or => BoolOp::Or,
                            _ => BoolOp::Xor,
                        };
                        What::Logic { op, a, b }
                    }
                });
            }
            _ => {}
        }
        let ty = i.ty()?;
        if m.cc || m.sat || m.relu || m.nan || m.xorsign_abs || m.oob || m.ftz || m.approx || m.full {
            return None;
        }
        let bits = ty.bits();
        if i.op == Op::Mul && m.half == Some(Half::Wide) {
            if bits != 32 || !self.result_is(i, 64) {
                return None;
            }
            let a = self.lift_source(&i.operands[1], ty)?;
            let b = self.lift_source(&i.operands[2], ty)?;
            return Some(What::Wide { signed: ty.is_signed(), a, b });
        }
        if ty == Ty::Pred || !(bits == 32 || bits == 64) || !self.result_is(i, bits) {
            return None;
        }
        let wide = bits == 64;
        match i.op {
            Op::Mov => return Some(What::Mov { wide, a: self.lift_source(&i.operands[1], ty)? }),
            Op::Selp => {
                let a = self.lift_source(&i.operands[1], ty)?;
                let b = self.lift_source(&i.operands[2], ty)?;
                let p = self.lift_pred(&i.operands[3])?;
                return Some(What::Select { wide, a, b, p });
            }
            _ => {}
        }
        if ty == Ty::F32 {
            return self.lift_float(i);
        }
        if ty.is_float() || !matches!(ty, Ty::U32 | Ty::S32 | Ty::B32 | Ty::U64 | Ty::S64 | Ty::B64) {
            return None;
        }
        let signed = ty.is_signed();
        if i.op == Op::Mad {
            if wide || m.half != Some(Half::Lo) {
                return None;
            }
            let mut s = [ONE; 3];
            for (s, o) in s.iter_mut().zip(&i.operands[1..]) {
                *s = self.lift_source(o, ty)?;
            }
            return Some(What::Mad { a: s[0], b: s[1], c: s[2] });
        }
        let op = match i.op {
            Op::Add => IntOp::Add,
            Op::Sub => IntOp::Sub,
            Op::Mul if m.half == Some(Half::Lo) => IntOp::Mul,
            Op::And => IntOp::And,
            Op::Or => IntOp::Or,
            Op::Xor => IntOp::Xor,
            Op::Shl => IntOp::Shl,
            Op::Shr => {
                if signed {
                    IntOp::ShrS
                } else {
                    IntOp::ShrU
                }
            }
            Op::Min if i.operands.len() == 3 => {
                if signed {
                    IntOp::MinS
                } else {
                    IntOp::MinU
                }
            }
            Op::Max if i.operands.len() == 3 => {
                if signed {
                    IntOp::MaxS
                } else {
                    IntOp::MaxU
                }
            }
            Op::Not => {
                let a = self.lift_source(&i.operands[1], ty)?;
                return Some(What::Int { op: IntOp::Xor, wide, a, b: Src::Const(ones(wide)) });
            }
            Op::Neg => {
                let b = self.lift_source(&i.operands[1], ty)?;
                return Some(What::Int { op: IntOp::Sub, wide, a: Src::Const(0), b });
            }
            _ => return None,
        };
        let amount = matches!(op, IntOp::Shl | IntOp::ShrU | IntOp::ShrS);
        let a = self.lift_source(&i.operands[1], ty)?;
        let b = self.lift_source(&i.operands[2], if amount { Ty::U32 } else { ty })?;
        Some(What::Int { op, wide, a, b })
    }

    fn lift_float(&mut self, i: &Instr) -> Option<What> {
        if !matches!(i.mods.rounding, None | Some(Rounding::Rn)) {
            return None;
        }
        let mut s = [Src::Const(0); 3];
        for (s, o) in s.iter_mut().zip(&i.operands[1..]) {
            *s = self.lift_source(o, Ty::F32)?;
        }
        let [a, b, c] = s;
        let op = match i.op {
            Op::Add => FloatOp::Add,
            Op::Sub => FloatOp::Sub,
            Op::Mul => FloatOp::Mul,
            Op::Fma | Op::Mad => FloatOp::Fma,
            Op::Div => FloatOp::Div,
            Op::Sqrt => FloatOp::Sqrt,
            Op::Min if i.operands.len() == 3 => FloatOp::Min,
            Op::Max if i.operands.len() == 3 => FloatOp::Max,
            Op::Rcp => {
                let one = Src::Const(u64::from(1f32.to_bits()));
                return Some(What::Float { op: FloatOp::Div, a: one, b: a, c });
            }
            Op::Neg => {
                return Some(What::Int { op: IntOp::Xor, wide: false, a, b: Src::Const(0x8000_0000) });
            }
            Op::Abs => {
                return Some(What::Int { op: IntOp::And, wide: false, a, b: Src::Const(0x7fff_ffff) });
            }
            _ => return None,
        };
        Some(What::Float { op, a, b, c })
    }

    fn lift_compare(&mut self, i: &Instr) -> Option<What> {
        let m = &i.mods;
        if m.bool_op.is_some() || m.ftz || !matches!(&i.operands[0], Operand::Reg(_)) {
            return None;
        }
        let ty = i.ty()?;
        let wide = ty.bits() == 64;
        let to = match ty {
            Ty::S32 | Ty::S64 => CompareTy::Signed { wide },
            Ty::U32 | Ty::U64 | Ty::B32 | Ty::B64 => CompareTy::Unsigned { wide },
            Ty::F32 => CompareTy::Float32,
            _ => return None,
        };
        let float = to == CompareTy::Float32;
        let cmp = match m.cmp? {
            Cmp::Eq => Compare::Eq,
            Cmp::Ne if !float => Compare::Ne,
            Cmp::Neu if float => Compare::Ne,
            Cmp::Lt | Cmp::Lo => Compare::Lt,
            Cmp::Le | Cmp::Ls => Compare::Le,
            Cmp::Gt | Cmp::Hi => Compare::Gt,
            Cmp::Ge | Cmp::Hs => Compare::Ge,
            Cmp::Ltu => Compare::Nge,
            Cmp::Leu => Compare::Ngt,
            Cmp::Gtu => Compare::Nle,
            Cmp::Geu => Compare::Nlt,
            Cmp::Num => Compare::Ordered,
            Cmp::Nan => Compare::Unordered,
            _ => return None,
        };
        let a = self.lift_source(&i.operands[1], ty)?;
        let b = self.lift_source(&i.operands[2], ty)?;
        Some(What::Compare { cmp, ty: to, a, b })
    }

    fn lift_cvt(&mut self, i: &Instr) -> Option<What> {
        let m = &i.mods;
        if m.sat || m.relu || m.satfinite || m.rounding.is_some() || m.ftz {
            return None;
        }
        let (to, from) = (i.ty()?, i.src_ty()?);
        if !self.result_is(i, to.bits()) {
            return None;
        }
        let int = |t: Ty| matches!(t, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64);
        if !int(to) || !int(from) {
            return None;
        }
        let a = self.lift_source(&i.operands[1], from)?;
        Some(match (to.bits(), from.bits()) {
            (64, 32) => What::Wide { signed: from.is_signed(), a, b: ONE },
            (32, 64) => What::Narrow { a },
            _ => What::Mov { wide: to.bits() == 64, a },
        })
    }

    fn lift_access(&mut self, i: &Instr, contended: bool) -> Option<What> {
        let m = &i.mods;
        let ty = i.ty()?;
        let store = i.op == Op::St;
        let (address, data) = if store { (0, 1) } else { (1, 0) };
        let space = self.space(&i.operands[address], m.space);
        let size = ty.size_bytes();
        if size != 4 && size != 8 {
            return None;
        }
        // (Strong accesses are plain ones without detectors.)
        let list: Vec<&Operand> = match &i.operands[data] {
            Operand::Vector(list) => list.iter().collect(),
            o => vec![o],
        };
        let mut values = Vec::new();
        for o in &list {
            let v = self.lift_source(o, ty)?;
            if !store && !matches!(v, Src::Reg(_)) {
                return None;
            }
            values.push(v);
        }
        let (base, offset, frame_relative) = self.address(&i.operands[address], space).ok()?;
        let register = match &i.operands[address] {
            Operand::Address { base: assay_ptx::Base::Reg(r), .. } => Some(*r),
            _ => None,
        };
        match space {
            Some(Space::Param) if !store => {
                if register.is_some() || frame_relative || values.len() != 1 {
                    return None;
                }
                let Operand::Address { base: assay_ptx::Base::Symbol(s), offset } = &i.operands[address]
                else {
                    return None;
                };
                let at = self.symbol(*s).ok()??.wrapping_add(*offset as u64);
                let fits = at.checked_add(size).is_some_and(|end| end <= self.f.param_bytes);
                fits.then_some(What::Param { offset: at as u32, wide: size == 8 })
            }
            Some(Space::Shared) | None | Some(Space::Global | Space::Const) => {
                let shared = space == Some(Space::Shared);
                let wanted = if shared { Kind::W32 } else { Kind::W64 };
                if frame_relative || base.kind != wanted || offset.unsigned_abs() > 1 << 20 {
                    return None;
                }
                let base = match register {
                    Some(r) => Src::Reg(r.0),
                    None => {
                        let at = self.constant_address(&i.operands[address])?;
                        Src::Const(if shared { at & 0xffff_ffff } else { at })
                    }
                };
                let a = Access { shared, base, offset, size: size as u32, data: values, contended };
                Some(if store { What::Store(a) } else { What::Load(a) })
            }
            Some(Space::Local | Space::Param) => None,
        }
    }

    /// The address of a symbol or number in brackets, without the offset.
    fn constant_address(&mut self, o: &Operand) -> Option<u64> {
        let Operand::Address { base, .. } = o else { return None };
        match base {
            assay_ptx::Base::Reg(_) => None,
            assay_ptx::Base::Absolute => Some(0),
            assay_ptx::Base::Symbol(s) => self.symbol(*s).ok()?,
        }
    }
}

fn ones(wide: bool) -> u64 {
    if wide { u64::MAX } else { 0xffff_ffff }
}

/// What becomes of an instruction without a form of its own.
fn rest(i: &Instr) -> What {
    let lane = What::Handler { stops: false, lanewise: true };
    let leave = What::Leave { last: i.guard.is_none() && matches!(i.op, Op::Ret | Op::Exit | Op::Trap) };
    match i.op {
        Op::Abs
        | Op::Add
        | Op::And
        | Op::Bfe
        | Op::Bfi
        | Op::Bfind
        | Op::Bmsk
        | Op::Brev
        | Op::Clz
        | Op::Cnot
        | Op::Copysign
        | Op::Cos
        | Op::Cvt
        | Op::Cvta
        | Op::Div
        | Op::Dp2a
        | Op::Dp4a
        | Op::Ex2
        | Op::Fma
        | Op::Fns
        | Op::Isspacep
        | Op::Lg2
        | Op::Lop3
        | Op::Mad
        | Op::Mad24
        | Op::Max
        | Op::Min
        | Op::Mul
        | Op::Mul24
        | Op::Neg
        | Op::Not
        | Op::Or
        | Op::Popc
        | Op::Prmt
        | Op::Rcp
        | Op::Rem
        | Op::Rsqrt
        | Op::Sad
        | Op::Selp
        | Op::Set
        | Op::Setp
        | Op::Shf
        | Op::Shl
        | Op::Shr
        | Op::Sin
        | Op::Slct
        | Op::Sqrt
        | Op::Sub
        | Op::Szext
        | Op::Tanh
        | Op::Testp
        | Op::Vabsdiff4
        | Op::Xor
            if !i.mods.cc =>
        {
            if clocked(i) {
                leave
            } else {
                lane
            }
        }
        Op::Mov => {
            if clocked(i) {
                leave
            } else {
                lane
            }
        }
        Op::Ld | Op::Ldu if !clocked(i) => What::Handler { stops: true, lanewise: false },
        Op::St if !clocked(i) => What::Handler { stops: true, lanewise: false },
        Op::Shfl if i.guard.is_none() && !clocked(i) => What::Handler { stops: true, lanewise: false },
        _ => leave,
    }
}

/// True if an operand is a clock or the address of something in the frame's local memory, whose handlers depend on more
/// than the frame.
fn clocked(i: &Instr) -> bool {
    let named = |o: &Operand| matches!(o, Operand::Special(_) | Operand::Symbol { .. });
    i.operands.iter().any(|o| match o {
        Operand::Vector(list) => list.iter().any(named),
        o => named(o),
    })
}
