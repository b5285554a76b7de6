//! Loads and stores of compiled code.
//!
//! Addresses are affine: in each half the same for all lanes, or consecutive. One check of range and alignment serves
//! all accesses of a run that go by the same register; it is the interpreter's check of the whole range at once, so
//! whatever it lets pass the interpreter would, too. What it does not let pass goes to the interpreter, which finds the
//! lane and says what is wrong.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I8, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::emit::{Checked, Emitter, Refused, Result, Val, device, trusted};
use super::source::{Access, FloatOp, Src, What};
use super::spread::{HALF, Spread};
use crate::code::Cold;
use crate::memory::{OFFSET_BITS, OFFSET_MASK, TableEntry};
use crate::warp::{AHEAD, Phase, Warp};

/// Farthest distance of two accesses that one check covers, in bytes.
const REACH: i64 = 1 << 20;

/// Where the two halves of an access are: host addresses and offsets.
struct Place {
    at: [Value; 2],
    offset: [i32; 2],
}

impl Emitter<'_, '_> {
    pub(super) fn load_memory(&mut self, k: usize, a: &Access, natural: Spread, dests: &[u32]) -> Result<()> {
        if a.shared {
            self.shared_turn(Phase::Loads);
        }
        let place = self.place(k, a, false)?;
        let Spread::Affine { stride, delta } = self.spreads.src(a.base) else { return Err(Refused) };
        let same = delta == Some(0);
        let mut values = Vec::new();
        for (j, d) in dests.iter().enumerate() {
            let float = self.source.regs[*d as usize].float;
            let up = j as i32 * a.size as i32;
            let val = if stride == 0 {
                let ty = match (a.size, float) {
                    (8, _) => I64,
                    (_, true) => F32,
                    _ => I32,
                };
                let v = self.b.ins().load(ty, device(), place.at[0], place.offset[0] + up);
                if same {
                    Val::One(v)
                } else {
                    let w = self.b.ins().load(ty, device(), place.at[1], place.offset[1] + up);
                    Val::Two(v, w)
                }
            } else {
                let ty = if float { F32X4 } else { I32X4 };
                let mut list = [place.at[0]; 8];
                for j in 0..8 {
                    let (h, q) = (j / 4, 16 * (j % 4) as i32);
                    list[j] = if same && h == 1 {
                        list[j - 4]
                    } else {
                        self.b.ins().load(ty, device(), place.at[h], place.offset[h] + q)
                    };
                }
                Val::Lanes(list)
            };
            values.push(val);
        }
        for (d, val) in dests.iter().zip(values) {
            self.set(*d as usize, natural, val, false)?;
        }
        Ok(())
    }

    /// A chain of products before instruction `k`: one call, with the sum in the frame. Gives the number of instructions, or
    /// none if there is no chain or the addresses are of no pattern.
    pub(super) fn chain(&mut self, k: usize) -> Result<Option<usize>> {
        let i = self.ins(k);
        if i.first == i.real {
            return Ok(None);
        }
        let d = &self.plain[i.first as usize];
        let Some(Cold::Chain(op)) = self.cold.get(d.aux as usize) else { return Ok(None) };
        let len = op.len as usize;
        if k + len > self.run_end() || self.handled[k..k + len].contains(&true) {
            return Ok(None);
        }
        let (What::Load(a), What::Load(b), What::Float { op: FloatOp::Fma, c, .. }) =
            (&self.ins(k).what, &self.ins(k + 1).what, &self.ins(k + 2).what)
        else {
            return Ok(None);
        };
        let [dest] = self.ins(k + len - 1).dests[..] else { return Ok(None) };
        let unit = |g: &Self, s: Src| match g.spreads.src(s) {
            Spread::Affine { stride: 0, .. } => Some(false),
            Spread::Affine { stride: 4, .. } => Some(true),
            _ => None,
        };
        let (Some(x), Some(y)) = (unit(self, a.base), unit(self, b.base)) else { return Ok(None) };
        self.shared_turn(Phase::Loads);
        let mut ends = [self.warp; 4];
        for (h, (at, a)) in [(k, a), (k + 1, b)].into_iter().enumerate() {
            // All steps' loads by this register are in the range that is checked.
            let place = self.place(at, a, false)?;
            for j in 0..2 {
                ends[2 * h + j] = self.plus(place.at[j], i64::from(place.offset[j]) - a.offset);
            }
        }
        let addend = if let Src::Reg(r) = c { Some(*r as usize) } else { None };
        self.before_effect(addend);
        let f = self.b.ins().iconst(I64, crate::handlers::chain::call(x, y) as *const () as i64);
        // The cold table outlives the code.
        let op = self.b.ins().iconst(I64, std::ptr::from_ref(op) as i64);
        let [a0, a1, b0, b1] = ends;
        self.b.ins().call_indirect(self.product, f, &[self.frame, op, a0, a1, b0, b1]);
        self.after_effect(dest as usize, k + len);
        Ok(Some(len))
    }

    pub(super) fn store_memory(&mut self, k: usize, a: &Access) -> Result<()> {
        let place = self.place(k, a, true)?;
        if a.shared {
            self.shared_turn(Phase::Stores);
        }
        let [value] = a.data[..] else { return Err(Refused) };
        let float = matches!(value, Src::Reg(r) if self.source.regs[r as usize].float);
        let list = self.lanes(value, if float { F32X4 } else { I32X4 })?;
        for (j, v) in list.into_iter().enumerate() {
            let (h, q) = (j / 4, 16 * (j % 4) as i32);
            self.b.ins().store(device(), v, place.at[h], place.offset[h] + q);
        }
        if a.contended {
            let no = self.b.ins().iconst(I8, 0);
            self.b.ins().store(trusted(), no, self.warp, offset_of!(Warp, contended) as i32);
        }
        Ok(())
    }

    /// In lockstep, a warp that has loaded does not go on to store (or the other way round) before others have.
    fn shared_turn(&mut self, phase: Phase) {
        if self.phase == Some(phase) {
            return;
        }
        let at = offset_of!(Warp, phase) as i32;
        let now = self.b.ins().load(I8, trusted(), self.warp, at);
        let lockstep = self.b.ins().load(I8, trusted(), self.warp, offset_of!(Warp, lockstep) as i32);
        let other = self.b.ins().icmp_imm_s(IntCC::NotEqual, now, i64::from(phase as u8));
        let begun = self.b.ins().icmp_imm_s(IntCC::NotEqual, now, i64::from(Phase::Fresh as u8));
        let bad = self.b.ins().band(other, begun);
        let bad = self.b.ins().band(bad, lockstep);
        self.guard(bad);
        let v = self.b.ins().iconst(I8, i64::from(phase as u8));
        self.b.ins().store(trusted(), v, self.warp, at);
        self.phase = Some(phase);
    }

    /// Checks an access, with those of the run that follow and go by the same register, unless that was done.
    fn place(&mut self, k: usize, a: &Access, store: bool) -> Result<Place> {
        let total = a.total();
        let found = self.checked.iter().find(|c| {
            c.shared == a.shared
                && c.store == store
                && c.base == a.base
                && c.total == total
                && (c.low..=c.high).contains(&a.offset)
                && (a.offset - c.low) % total == 0
        });
        let c = match found {
            Some(c) => c,
            None => {
                let c = self.check(k, a, store)?;
                self.checked.push(c);
                self.checked.last().ok_or(Refused)?
            }
        };
        let up = (a.offset - c.low) as i32;
        Ok(Place { at: c.at, offset: [up + c.first as i32, up + c.second as i32] })
    }

    fn check(&mut self, k: usize, a: &Access, store: bool) -> Result<Checked> {
        let total = a.total();
        let (mut low, mut high) = (a.offset, a.offset);
        for j in k + 1..self.run_end() {
            let i = self.ins(j);
            let other = match &i.what {
                What::Load(b) if !store => Some(b),
                What::Store(b) if store => Some(b),
                _ => None,
            };
            if let Some(b) = other
                && !self.handled[j]
                && b.shared == a.shared
                && b.base == a.base
                && b.total() == total
                && (b.offset - a.offset) % total == 0
                && (b.offset - a.offset).abs() < REACH
            {
                low = low.min(b.offset);
                high = high.max(b.offset);
            }
            if i.dests.iter().any(|d| a.base == Src::Reg(*d)) {
                break;
            }
        }
        let Spread::Affine { stride, delta } = self.spreads.src(a.base) else { return Err(Refused) };
        let span = if stride == 0 { total } else { total * HALF } + (high - low);
        let ty = if a.shared { I32 } else { I64 };
        let bases = self.bases(a.base, ty)?;
        let near = delta.filter(|d| d.abs() < REACH && d % total == 0);
        let (at, first, second) = match near {
            Some(d) => {
                let down = d.min(0);
                let p = self.range(a.shared, bases[0], low + down, span + d.abs(), total, store);
                ([p, p], -down, d - down)
            }
            None => {
                let p = self.range(a.shared, bases[0], low, span, total, store);
                let q = self.range(a.shared, bases[1], low, span, total, store);
                ([p, q], 0, 0)
            }
        };
        if !a.shared && !store && stride != 0 {
            let second = (at[0] != at[1]).then_some(at[1]);
            for p in [Some(at[0]), second].into_iter().flatten() {
                if (self.sites as usize) < AHEAD {
                    let to = offset_of!(Warp, loaded) + 8 * self.sites as usize;
                    self.b.ins().store(trusted(), p, self.warp, to as i32);
                    self.sites += 1;
                    self.loading[self.run] = true;
                }
            }
        }
        Ok(Checked { shared: a.shared, store, base: a.base, total, low, high, at, first, second })
    }

    /// The host address of `len` bytes at `base + offset`, after leaving if that is not all within memory and aligned.
    fn range(&mut self, shared: bool, base: Value, offset: i64, len: i64, align: i64, store: bool) -> Value {
        let a = self.plus(base, offset);
        if shared {
            let a = self.b.ins().uextend(I64, a);
            let have = self.b.ins().load(I64, trusted(), self.warp, offset_of!(Warp, shared_len) as i32);
            let end = self.b.ins().iadd_imm_s(a, len);
            let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, have);
            let odd = self.odd(a, align);
            let bad = self.b.ins().bor(bad, odd);
            self.guard(bad);
            let p = self.b.ins().load(I64, trusted(), self.warp, offset_of!(Warp, shared) as i32);
            return self.b.ins().iadd(p, a);
        }
        let region = self.b.ins().ushr_imm_s(a, i64::from(OFFSET_BITS));
        let regions = self.b.ins().load(I64, trusted(), self.warp, offset_of!(Warp, table_len) as i32);
        let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, region, regions);
        let odd = self.odd(a, align);
        let bad = self.b.ins().bor(bad, odd);
        self.guard(bad);
        let table = self.b.ins().load(I64, trusted(), self.warp, offset_of!(Warp, table) as i32);
        let entry = self.b.ins().imul_imm_s(region, size_of::<TableEntry>() as i64);
        let entry = self.b.ins().iadd(table, entry);
        let field = if store { offset_of!(TableEntry, write_len) } else { offset_of!(TableEntry, read_len) };
        let have = self.b.ins().load(I64, trusted(), entry, field as i32);
        let within = self.b.ins().band_imm_s(a, OFFSET_MASK as i64);
        let end = self.b.ins().iadd_imm_s(within, len);
        let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, have);
        self.guard(bad);
        let p = self.b.ins().load(I64, trusted(), entry, offset_of!(TableEntry, base) as i32);
        self.b.ins().iadd(p, within)
    }

    fn odd(&mut self, a: Value, align: i64) -> Value {
        let low = self.b.ins().band_imm_s(a, align - 1);
        self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0)
    }
}
