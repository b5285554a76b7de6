//! Decoding of loads, stores and atomics.

use assay_ptx::{AtomOp, Base, FunctionKind, Op, Operand, Scope, Semantics, Space, SymbolRef, Ty};

use super::function::{Decoder, Result};
use super::fuse::Tag;
use crate::code::{Cold, Kind, MbarrierOp, MemKind, MemOp, Slot};
use crate::handlers::{generic, local, memory};
use crate::warp::Handler;

impl Decoder<'_, '_> {
    pub(super) fn address(&mut self, o: &Operand, space: Option<Space>) -> Result<(Slot, i64, bool)> {
        let Operand::Address { base, offset } = o else { return Err(self.no()) };
        let kind = if space == Some(Space::Shared) { Kind::W32 } else { Kind::W64 };
        Ok(match base {
            Base::Reg(r) => (self.reg(*r), *offset, false),
            Base::Absolute => (self.frame.constant(kind, 0), *offset, false),
            Base::Symbol(s) => match self.symbol(*s)? {
                Some(a) => (self.frame.constant(kind, a), *offset, false),
                None => {
                    let a = self.local_offset(*s).ok_or_else(|| self.no())?;
                    (self.frame.constant(kind, 0), offset.wrapping_add(a as i64), true)
                }
            },
        })
    }

    /// The space that an address operand really lies in: parameters of device functions and of calls are local.
    pub(super) fn space(&self, o: &Operand, written: Option<Space>) -> Option<Space> {
        let Operand::Address { base, .. } = o else { return written };
        match base {
            Base::Symbol(SymbolRef::Param(_)) if self.f.kind == FunctionKind::Entry => Some(Space::Param),
            Base::Symbol(SymbolRef::Param(_) | SymbolRef::Return(_)) => Some(Space::Local),
            Base::Symbol(SymbolRef::Local(id)) => match self.f.variables[id.index()].space {
                Space::Param => Some(Space::Local),
                s => Some(s),
            },
            Base::Symbol(SymbolRef::Module(id)) => Some(self.cx.module.variables[id.index()].space),
            _ if written == Some(Space::Param) && self.f.kind == FunctionKind::Device => Some(Space::Local),
            _ => written,
        }
    }

    pub(super) fn access(&mut self) -> Result<()> {
        let i = self.instr();
        let m = &i.mods;
        let store = i.op == Op::St;
        let ty = i.ty().ok_or_else(|| self.no())?;
        if ty.bits() > 64 || m.vector > 4 {
            return Err(self.no());
        }
        let (address, data) = if store { (0, 1) } else { (1, 0) };
        let space = self.space(&i.operands[address], m.space);
        let elements: Vec<&Operand> = match &i.operands[data] {
            Operand::Vector(list) => list.iter().collect(),
            o => vec![o],
        };
        let mut slots = Vec::new();
        for o in &elements {
            slots.push(if store { Some(self.source(o, ty)?) } else { self.dest(o)? });
        }
        // A device function's parameter in a register needs no memory.
        let (base, offset, frame_relative) = self.address(&i.operands[address], space)?;
        let size = ty.size_bytes();
        if space == Some(Space::Param) && !store {
            let constant = matches!(&i.operands[address], Operand::Address { base: Base::Symbol(_), .. });
            if constant && let Operand::Address { base: Base::Symbol(s), offset } = &i.operands[address] {
                let at = self.symbol(*s)?.unwrap_or(0).wrapping_add(*offset as u64);
                let total = size * elements.len() as u64;
                if at.checked_add(total).is_none_or(|end| end > self.f.param_bytes) {
                    return Err(self.bad("reads past the kernel's parameters"));
                }
                for (k, (slot, o)) in slots.iter().zip(&elements).enumerate() {
                    let Some(slot) = slot else { continue };
                    let mut d = self.blank();
                    d.f = memory::load_param;
                    d.d = slot.at;
                    d.e = size as u32 | u32::from(ty.is_signed()) << 8;
                    d.b = if self.reg_bits(o) == 16 { 0xffff } else { u32::MAX };
                    d.c = u32::from(slot.kind == Kind::W64);
                    d.off = (at + k as u64 * size) as i64;
                    self.emit(d, None);
                }
                return Ok(());
            }
        }
        let strong = m.volatile || m.mmio || !matches!(m.semantics, None | Some(Semantics::Weak));
        let op = MemOp {
            kind: if store { MemKind::Store } else { MemKind::Load },
            space,
            base,
            offset,
            frame_relative,
            size: size as u8,
            ty,
            data: slots.clone(),
            b: None,
            c: None,
            strong,
            semantics: m.semantics,
            scope: m.scope,
            used: if store { u32::MAX } else { self.used_bytes(&elements, size) },
        };
        let whole = u64::from(op.used.count_ones()) >= size * slots.len() as u64;
        let want = if size == 8 { Kind::W64 } else { Kind::W32 };
        let plain_data = slots.iter().all(|s| s.is_some_and(|s| s.kind == want));
        let shared = space == Some(Space::Shared);
        let base_fits = match space {
            Some(Space::Shared) => base.kind == Kind::W32,
            None | Some(Space::Global | Space::Const) => base.kind == Kind::W64,
            Some(Space::Local | Space::Param) => false,
        };
        let mut d = self.blank();
        let mut checked: Handler = generic::to_memory;
        let mut cached_form = false;
        d.f = generic::to_memory;
        d.aux = self.cold.len() as u32;
        if plain_data && base_fits && !frame_relative {
            let total = size * slots.len() as u64;
            let guarded = i.guard.is_some();
            let cached = !guarded && self.known.contains(&(base.at, total));
            let signed = !store && size < 4 && ty.is_signed();
            cached_form = cached;
            let form = memory::Form { store, shared, size: size as u8, count: slots.len(), signed, cached };
            if !strong && whole {
                checked = memory::handler(form, self.cx.variant, true).unwrap_or(generic::to_memory);
            }
            if let Some(h) = memory::handler(form, self.cx.variant, false) {
                d.f = h;
                d.a = base.at;
                d.off = offset;
                d.class = self.frame.class(base.at, total);
                let at = |k: usize| slots.get(k).copied().flatten().map_or(0, |s: Slot| s.at);
                (d.d, d.b, d.c, d.e) = (at(0), at(1), at(2), at(3));
                if slots.len() == 1 {
                    d.e = if self.reg_bits(elements[0]) == 16 { 0xffff } else { u32::MAX };
                }
                if !guarded && !cached {
                    self.known.push((base.at, total));
                }
            }
        }
        if plain_data && space == Some(Space::Local) && base.kind == Kind::W64 {
            let signed = !store && size < 4 && ty.is_signed();
            if let Some(h) = local::handler(store, size as u8, slots.len(), signed, self.cx.variant) {
                d.f = h;
                d.a = base.at;
                d.off = offset;
                d.class = u32::from(frame_relative);
                let at = |k: usize| slots.get(k).copied().flatten().map_or(0, |s: Slot| s.at);
                (d.d, d.b, d.c, d.e) = (at(0), at(1), at(2), at(3));
                if slots.len() == 1 {
                    d.e = if self.reg_bits(elements[0]) == 16 { 0xffff } else { u32::MAX };
                }
            }
        }
        self.cold.push(Cold::Memory(op));
        if !store {
            for (k, o) in elements.iter().enumerate() {
                if self.reg_bits(o) == 16 {
                    self.narrow.push((self.out.len() as u32, k as u32));
                }
            }
        }
        let global = base_fits && !shared && !strong && i.guard.is_none() && !frame_relative;
        let mut wrapped = false;
        if global && !store {
            self.loaded.push((base.at, offset));
        } else if global && self.loaded.contains(&(base.at, offset)) && d.a == base.at {
            d.g = d.f;
            d.f = generic::contended;
            self.contended.push(self.at);
            wrapped = true;
        }
        self.emit_wrapped(d, Some(checked), wrapped);
        let word = !store && shared && size == 4 && !strong && i.guard.is_none() && d.class != 0;
        if let (true, [Operand::Reg(r)], Some(e)) = (word, &elements[..], self.out.last_mut()) {
            let cached = cached_form;
            e.tag = Tag::Load { reg: r.0, base: base.at, offset, class: d.class, cached };
        }
        Ok(())
    }

    /// The bytes of a load that the program uses: all but those that the compiler says it does not, and those of
    /// elements that nothing reads. A load is widened where the rest may hold anything, and another thread may write it.
    fn used_bytes(&mut self, elements: &[&Operand], size: u64) -> u32 {
        let total = size * elements.len() as u64;
        let every = u32::MAX >> 32u64.saturating_sub(total).min(31);
        let mut used = self.instr().used_bytes.unwrap_or(u32::MAX) & every;
        if elements.len() > 1 {
            for (k, o) in elements.iter().enumerate() {
                let read = match o {
                    Operand::Reg(r) => self.is_read(*r),
                    _ => false,
                };
                if !read {
                    used &= !(((1u32 << size) - 1) << (k as u64 * size));
                }
            }
        }
        if used == every { u32::MAX } else { used }
    }

    /// The access of an `mbarrier` instruction; operands behind the address are taken as they come.
    fn mbarrier_op(&mut self, kind: MbarrierOp, address: &Operand, dest: Option<Slot>) -> Result<MemOp> {
        let m = &self.instr().mods;
        let space = self.space(address, m.space);
        let (base, offset, frame_relative) = self.address(address, space)?;
        let semantics = match kind {
            MbarrierOp::Arrive { .. } => Some(Semantics::Release),
            MbarrierOp::Test { .. } => Some(Semantics::Acquire),
            MbarrierOp::Init | MbarrierOp::Inval => None,
        };
        Ok(MemOp {
            kind: MemKind::Mbarrier(kind),
            space,
            base,
            offset,
            frame_relative,
            size: 8,
            ty: Ty::B64,
            data: vec![dest],
            b: None,
            c: None,
            strong: semantics.is_some(),
            semantics,
            scope: semantics.map(|_| Scope::Cta),
            used: u32::MAX,
        })
    }

    pub(super) fn mbarrier(&mut self) -> Result<()> {
        let i = self.instr();
        let m = &i.mods;
        if m.cluster {
            return Err(self.no());
        }
        let kind = match i.op {
            Op::MbarrierInit => MbarrierOp::Init,
            Op::MbarrierInval => MbarrierOp::Inval,
            Op::MbarrierArrive => MbarrierOp::Arrive { drop: false },
            Op::MbarrierArriveDrop => MbarrierOp::Arrive { drop: true },
            Op::MbarrierTestWait | Op::MbarrierTryWait => MbarrierOp::Test { parity: m.parity },
            _ => return Err(self.no()),
        };
        let first = usize::from(!matches!(kind, MbarrierOp::Init | MbarrierOp::Inval));
        let dest = if first == 1 { self.dest(&i.operands[0])? } else { None };
        let mut mem = self.mbarrier_op(kind, &i.operands[first], dest)?;
        // A further operand (the longest time that `try_wait` may sleep) changes nothing.
        let ty = if matches!(kind, MbarrierOp::Test { parity: false }) { Ty::B64 } else { Ty::U32 };
        mem.b = match i.operands.get(first + 1) {
            Some(o) => Some(self.source(o, ty)?),
            None if kind == MbarrierOp::Inval => None,
            None => Some(self.frame.constant(Kind::W32, 1)),
        };
        let mut d = self.blank();
        d.f = generic::to_memory;
        d.aux = self.cold.len() as u32;
        self.cold.push(Cold::Memory(mem));
        self.emit(d, Some(generic::to_memory));
        if let (MbarrierOp::Test { .. }, Some(p)) = (kind, dest) {
            // Whoever has to arrive runs before the next test.
            let mut d = self.blank();
            d.f = generic::pause_unless;
            d.a = p.at;
            self.emit(d, None);
            self.known.clear();
        }
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`.
    pub(super) fn copy_arrive(&mut self) -> Result<()> {
        let i = self.instr();
        let arrive = MbarrierOp::Arrive { drop: false };
        let mut mem = self.mbarrier_op(arrive, &i.operands[0], None)?;
        mem.b = Some(self.frame.constant(Kind::W32, 1));
        // Without `.noinc` the pending count is raised first: nothing changes in the end.
        self.emit_cold(Cold::CopyArrive(i.mods.noinc.then(|| Box::new(mem))));
        Ok(())
    }

    pub(super) fn atomic(&mut self) -> Result<()> {
        let i = self.instr();
        let m = &i.mods;
        let ty = i.ty().ok_or_else(|| self.no())?;
        let op = m.atom.ok_or_else(|| self.no())?;
        if ty.bits() > 64 {
            return Err(self.no());
        }
        let red = i.op == Op::Red;
        let (address, first) = if red { (0, 1) } else { (1, 2) };
        let data = if red { None } else { self.dest(&i.operands[0])? };
        let space = self.space(&i.operands[address], m.space);
        let (base, offset, frame_relative) = self.address(&i.operands[address], space)?;
        let b = self.source(&i.operands[first], ty)?;
        let c = match (op, i.operands.get(first + 1)) {
            (AtomOp::Cas, Some(o)) => Some(self.source(o, ty)?),
            _ => None,
        };
        let mem = MemOp {
            kind: MemKind::Atomic(op),
            space,
            base,
            offset,
            frame_relative,
            size: ty.size_bytes() as u8,
            ty,
            data: vec![data],
            b: Some(b),
            c,
            strong: true,
            semantics: m.semantics,
            scope: m.scope,
            used: u32::MAX,
        };
        let mut d = self.blank();
        d.f = generic::to_memory;
        if !frame_relative && matches!(ty.size_bytes(), 4 | 8) {
            match space {
                Some(Space::Shared) if base.kind == Kind::W32 => d.f = memory::atomic::<memory::Shared>,
                None | Some(Space::Global) if base.kind == Kind::W64 => {
                    d.f = memory::atomic::<memory::Global>
                }
                _ => {}
            }
            (d.a, d.off) = (base.at, offset);
        }
        d.aux = self.cold.len() as u32;
        self.cold.push(Cold::Memory(mem));
        self.emit(d, Some(generic::to_memory));
        Ok(())
    }
}
