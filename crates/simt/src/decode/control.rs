//! Decoding of branches, calls, barriers and operations of a warp.

use assay_ptx::{Op, Operand, SymbolRef, Ty};

use super::BUILTINS;
use super::function::{Decoder, Emitted, Result, TARGET_IN_OFF};
use super::fuse::Tag;
use crate::code::{BarOp, CallOp, Callee, Cold, Collective, Value, WarpOp};
use crate::handlers::{control, shuffle};

impl Decoder<'_, '_> {
    pub(super) fn bra(&mut self) -> Result<()> {
        let i = self.instr();
        let [Operand::Label(t)] = &i.operands[..] else { return Err(self.no()) };
        let mut d = self.blank();
        d.off = i64::from(*t);
        d.aux = TARGET_IN_OFF;
        match self.guard_bits() {
            Some(guard) => {
                d.f = control::branch_if;
                d.guard = guard;
            }
            None => d.f = control::branch,
        }
        self.out.push(Emitted { d, checked: None, origin: self.at as u32, tag: Tag::Other, wrapped: false });
        self.known.clear();
        Ok(())
    }

    pub(super) fn barrier(&mut self) -> Result<()> {
        let i = self.instr();
        let mut operands = i.operands.iter();
        let mut red = None;
        if i.op == Op::BarRed {
            let (Some(dest), Some(p)) = (operands.next(), i.operands.last()) else { return Err(self.no()) };
            let mode = i.mods.bar_red.ok_or_else(|| self.no())?;
            let dest = self.dest(dest)?.ok_or_else(|| self.no())?;
            red = Some((mode, self.source(p, Ty::Pred)?, dest));
        }
        let rest: Vec<&Operand> = operands.collect();
        let rest = if red.is_some() { &rest[..rest.len().saturating_sub(1)] } else { &rest[..] };
        let id = match rest.first() {
            Some(o) => self.source(o, Ty::U32)?,
            None => return Err(self.no()),
        };
        let count = match rest.get(1) {
            Some(o) => Some(self.source(o, Ty::U32)?),
            None => None,
        };
        let aligned = i.mods.aligned;
        let simple = red.is_none() && count.is_none() && i.op == Op::BarSync && aligned;
        let number = match rest.first() {
            Some(Operand::Imm(v)) if simple => v.bits_for(Ty::U32).filter(|n| *n < 16),
            _ => None,
        };
        self.emit_cold(Cold::Bar(BarOp { id, count, arrive: i.op == Op::BarArrive, red, aligned }));
        if let (Some(n), Some(e)) = (number, self.out.last_mut()) {
            e.d.f = control::barrier;
            e.d.e = n as u32;
        }
        Ok(())
    }

    pub(super) fn warp_op(&mut self) -> Result<()> {
        let i = self.instr();
        let m = &i.mods;
        let o = &i.operands;
        let pair = |o: &Operand| match o {
            Operand::Pair(a, b) => (a.map(|r| self.reg(r)), b.map(|r| self.reg(r))),
            Operand::Reg(r) => (Some(self.reg(*r)), None),
            _ => (None, None),
        };
        let (dest, pred) = if i.op == Op::BarWarpSync { (None, None) } else { pair(&o[0]) };
        let (op, types): (Collective, &[Ty]) = match i.op {
            Op::Shfl => {
                let mode = m.shfl.ok_or_else(|| self.no())?;
                (Collective::Shfl { mode }, &[Ty::B32, Ty::U32, Ty::U32])
            }
            Op::Vote => (Collective::Vote { mode: m.vote.ok_or_else(|| self.no())? }, &[Ty::Pred]),
            Op::Match => {
                let mode = m.match_mode.ok_or_else(|| self.no())?;
                let wide = i.ty() == Some(Ty::B64);
                (Collective::Match { mode, wide }, if wide { &[Ty::B64] } else { &[Ty::B32] })
            }
            Op::Redux => {
                let op = m.atom.ok_or_else(|| self.no())?;
                let ty = i.ty().unwrap_or(Ty::B32);
                (Collective::Redux { op, ty }, &[Ty::B32])
            }
            Op::ElectSync => (Collective::Elect, &[]),
            _ => (Collective::Sync, &[]),
        };
        let first = usize::from(i.op != Op::BarWarpSync);
        let mut sources = Vec::new();
        for (o, ty) in o[first..].iter().zip(types) {
            sources.push(self.source(o, *ty)?);
        }
        let members = match o.get(first + types.len()) {
            Some(o) => self.source(o, Ty::U32)?,
            None => return Err(self.no()),
        };
        let plain = match (&op, &sources[..], i.guard) {
            (Collective::Shfl { mode }, [a, b, c], None) => Some((*mode, *a, *b, *c)),
            _ => None,
        };
        self.emit_cold(Cold::Warp(WarpOp { op, dest, pred, sources, members }));
        let handler = shuffle::pair().pick(self.cx.variant);
        if let (Some((mode, a, b, c)), Some(e)) = (plain, self.out.last_mut()) {
            e.d.f = handler;
            (e.d.a, e.d.b, e.d.c, e.d.class) = (a.at, b.at, c.at, members.at);
            (e.d.d, e.d.e) = (dest.map_or(0, |s| s.at), pred.map_or(0, |s| s.at));
            e.d.off = shuffle::number(mode);
        }
        Ok(())
    }

    pub(super) fn call(&mut self) -> Result<()> {
        let i = self.instr();
        let [Operand::Vector(returns), target, Operand::Vector(args), ..] = &i.operands[..] else {
            return Err(self.no());
        };
        let callee = match target {
            Operand::Symbol { symbol: SymbolRef::Function(id), .. } => {
                let g = &self.cx.module.functions[id.index()];
                match (self.cx.by_function[id.index()], g.name.as_str()) {
                    (Some(code), _) => Callee::Code(code),
                    (None, name) if name == BUILTINS[0] => Callee::Printf,
                    (None, name) if name == BUILTINS[1] => Callee::AssertFail,
                    (None, name) => return Err(self.no_because(&format!("of `{name}`, which has no body"))),
                }
            }
            Operand::Reg(_) => Callee::Indirect(self.source(target, Ty::U64)?),
            _ => return Err(self.no()),
        };
        let value = |o: &Operand, this: &mut Self| -> Result<Value> {
            Ok(match o {
                Operand::Symbol { symbol, offset: 0 } => {
                    let offset = this.local_offset(*symbol).ok_or_else(|| this.no())?;
                    Value::Local { offset }
                }
                Operand::Reg(r) => Value::Slot(this.reg(*r)),
                Operand::Imm(_) => Value::Slot(this.source(o, Ty::B64)?),
                _ => return Err(this.no()),
            })
        };
        let mut lists = [Vec::new(), Vec::new()];
        for (list, operands) in lists.iter_mut().zip([args, returns]) {
            for o in operands {
                list.push(value(o, self)?);
            }
        }
        let [args, returns] = lists;
        self.emit_cold(Cold::Call(CallOp { callee, args, returns }));
        Ok(())
    }
}
