//! Makes one Cranelift function of an entry: a block for each straight run, a block for each way out.
//!
//! The function takes the warp, its frame and the number of an entry, and gives the number of an [`Exit`]. A register is
//! in the frame, or in variables if compiled code has written it since. Guards (ranges, alignment, widened values that
//! wrap, branches on which lanes differ) lead back to the last *checkpoint*, the start of the run or the instruction
//! behind the last effect, with the registers as they were there; the interpreter repeats from that point.

use std::collections::HashMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I8, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{
    Block, ConstantData, Endianness, InstBuilder, MemFlagsData, SigRef, Type, Value,
};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};

use super::flow::{Flow, Held, step};
use super::source::{Ins, Source, Src, What};
use super::spread::{HALF, Spread, Spreads};
use super::{Exit, ExitKind, Expand};
use crate::code::{Cold, Kind};
use crate::warp::{Decoded, Warp};

/// The value of a register within a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Val {
    /// An affine value whose halves' distance is known: the first half's base.
    One(Value),
    /// The bases of both halves.
    Two(Value, Value),
    /// 32 lanes of 32 bits.
    Lanes([Value; 8]),
    /// A predicate: of all lanes, of each half, as bits.
    All(Value),
    Halves(Value, Value),
    Mask(Value),
}

/// A value, and whether its NaNs are still to be made canonical.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    pub(super) val: Val,
    pub(super) raw: bool,
}

/// Where a failed guard goes back to.
struct Checkpoint {
    at: usize,
    held: Held,
    /// Values of registers that were written since.
    saved: HashMap<usize, Current>,
    block: Option<Block>,
}

/// A way out whose code comes at the end.
struct Pending {
    block: Block,
    values: Vec<(usize, Current)>,
    exit: u32,
}

/// A range of memory that was checked in this run.
pub(super) struct Checked {
    pub(super) shared: bool,
    pub(super) store: bool,
    pub(super) base: Src,
    pub(super) total: i64,
    pub(super) low: i64,
    pub(super) high: i64,
    /// Host addresses of the two halves at offset `low`.
    pub(super) at: [Value; 2],
    /// Distance to add for the second half.
    pub(super) second: i64,
    pub(super) first: i64,
}

/// Why a function could not be compiled; the interpreter runs it.
#[derive(Debug)]
pub(super) struct Refused;

pub(super) type Result<T> = std::result::Result<T, Refused>;

pub(super) struct Emitter<'a, 'b> {
    pub(super) b: &'a mut FunctionBuilder<'b>,
    pub(super) source: &'a Source,
    pub(super) spreads: &'a Spreads,
    pub(super) flow: &'a Flow,
    pub(super) handled: &'a [bool],
    /// Registers of which every written value is a canonical float, so that NaNs may stay raw in variables.
    pub(super) lazy: &'a [bool],
    pub(super) plain: &'a [Decoded],
    pub(super) cold: &'a [Cold],
    pub(super) warp: Value,
    pub(super) frame: Value,
    variables: HashMap<(usize, u8), Variable>,
    current: Vec<Option<Current>>,
    pub(super) ramps: HashMap<usize, [Value; 8]>,
    pub(super) specials: HashMap<u32, Val>,
    pub(super) checked: Vec<Checked>,
    held: Held,
    checkpoint: Checkpoint,
    pending: Vec<Pending>,
    pub(super) exits: Vec<Exit>,
    /// Places of global loads whose addresses are kept, and the runs that have some.
    pub(super) sites: u32,
    pub(super) loading: Vec<bool>,
    /// What was last done to shared memory in this run.
    pub(super) phase: Option<crate::warp::Phase>,
    pub(super) run: usize,
    handler: SigRef,
    pub(super) product: SigRef,
}

/// Flags of accesses to the frame and the warp.
pub(super) fn trusted() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Flags of accesses to device memory, which need not be aligned to a vector.
pub(super) fn device() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl<'a, 'b> Emitter<'a, 'b> {
    #[expect(clippy::too_many_arguments, reason = "what the passes before found out")]
    pub(super) fn new(
        b: &'a mut FunctionBuilder<'b>,
        source: &'a Source,
        spreads: &'a Spreads,
        flow: &'a Flow,
        handled: &'a [bool],
        lazy: &'a [bool],
        (plain, cold): (&'a [Decoded], &'a [Cold]),
        (handler, product): (SigRef, SigRef),
    ) -> Emitter<'a, 'b> {
        let held = flow.held[0].clone();
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (warp, frame) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        Emitter {
            b,
            source,
            spreads,
            flow,
            handled,
            lazy,
            plain,
            cold,
            warp,
            frame,
            variables: HashMap::new(),
            current: vec![None; source.regs.len()],
            ramps: HashMap::new(),
            specials: HashMap::new(),
            checked: Vec::new(),
            checkpoint: Checkpoint { at: 0, held: held.clone(), saved: HashMap::new(), block: None },
            held,
            pending: Vec::new(),
            exits: Vec::new(),
            sites: 0,
            loading: vec![false; flow.runs.len()],
            phase: None,
            run: 0,
            handler,
            product,
        }
    }

    /// Emits everything. Entries are numbered as they stand in `entries` (numbers of runs).
    pub(super) fn all(&mut self, entries: &[usize]) -> Result<()> {
        let start = self.b.current_block().ok_or(Refused)?;
        let number = self.b.block_params(start)[2];
        let blocks: Vec<Block> = self.flow.runs.iter().map(|_| self.b.create_block()).collect();
        let mut switch = Switch::new();
        let resume: Vec<Block> = entries.iter().map(|_| self.b.create_block()).collect();
        for (k, r) in resume.iter().enumerate() {
            switch.set_entry(k as u128, *r);
        }
        let nowhere = self.b.create_block();
        self.b.set_cold_block(nowhere);
        switch.emit(self.b, number, nowhere);
        self.b.switch_to_block(nowhere);
        let none = self.b.ins().iconst(I32, i64::from(u32::MAX));
        self.b.ins().return_(&[none]);
        for (run, block) in entries.iter().zip(&resume) {
            self.b.switch_to_block(*block);
            self.b.seal_block(*block);
            let at = self.flow.runs[*run].start;
            let flow = self.flow;
            for r in flow.live[at].and(&flow.held[*run].away).iter() {
                let v = self.load(r);
                self.define(r, v);
            }
            self.b.ins().jump(blocks[*run], &[]);
        }
        let reached = self.reached(entries);
        for run in 0..blocks.len() {
            self.b.switch_to_block(blocks[run]);
            if reached[run] {
                self.one_run(run, &blocks)?;
            } else {
                let none = self.b.ins().iconst(I32, i64::from(u32::MAX));
                self.b.ins().return_(&[none]);
            }
        }
        for p in std::mem::take(&mut self.pending) {
            self.b.switch_to_block(p.block);
            self.b.set_cold_block(p.block);
            self.leave(&p.values, p.exit);
        }
        self.b.seal_all_blocks();
        Ok(())
    }

    /// Says at exits to barriers how many places have loaded, if they come behind some since the barrier before.
    pub(super) fn ask_ahead(&mut self) {
        let runs = &self.flow.runs;
        let mut behind = self.loading.clone();
        while let Some(b) = (0..runs.len()).find(|b| behind[*b] && runs[*b].next.iter().any(|n| !behind[*n]))
        {
            runs[b].next.iter().for_each(|n| behind[*n] = true);
        }
        for x in &mut self.exits {
            if matches!(x.kind, ExitKind::Barrier(_)) && behind[x.run] {
                x.ahead = self.sites;
            }
        }
    }

    fn reached(&self, entries: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.flow.runs.len()];
        let mut list = entries.to_vec();
        while let Some(r) = list.pop() {
            if !std::mem::replace(&mut reached[r], true) {
                list.extend(&self.flow.runs[r].next);
            }
        }
        reached
    }

    fn one_run(&mut self, run: usize, blocks: &[Block]) -> Result<()> {
        let (start, end) = (self.flow.runs[run].start, self.flow.runs[run].end);
        self.run = run;
        self.current.iter_mut().for_each(|c| *c = None);
        self.ramps.clear();
        self.specials.clear();
        self.checked.clear();
        self.phase = None;
        self.held = self.flow.held[run].clone();
        self.set_checkpoint(start);
        let source = self.source;
        let mut onward = start;
        while onward < end {
            let k = onward;
            if let Some(len) = self.chain(k)? {
                onward += len;
                continue;
            }
            onward += 1;
            let i = &source.ins[k];
            match &i.what {
                What::Branch { target } => return self.branch(k, *target as usize, blocks),
                What::Barrier { id } => {
                    self.end_checkpoint();
                    let list = self.values(k + 1);
                    let expand = if self.enters(k + 1) { Vec::new() } else { self.expand(k + 1, &self.held) };
                    let exit = self.exit(k, ExitKind::Barrier(*id), expand);
                    self.leave(&list, exit);
                    return Ok(());
                }
                What::Leave { .. } => {
                    self.end_checkpoint();
                    let list = self.values(k);
                    let expand = self.expand(k, &self.held);
                    let exit = self.exit(k, ExitKind::Leave, expand);
                    self.leave(&list, exit);
                    return Ok(());
                }
                What::Nothing => {}
                _ if self.handled[k] => self.by_handler(k),
                _ => {
                    self.native(k, i)?;
                    if matches!(i.what, What::Store(_)) {
                        self.end_checkpoint();
                        self.set_checkpoint(k + 1);
                    }
                }
            }
        }
        self.end_checkpoint();
        let Some(&next) = self.flow.runs[run].next.first() else { return Err(Refused) };
        self.count(end);
        self.edge(next);
        self.b.ins().jump(blocks[next], &[]);
        Ok(())
    }

    /// True if compiled code is entered at instruction `k`, where the bases of affine registers are enough.
    fn enters(&self, k: usize) -> bool {
        self.flow.run_of.get(k).is_some_and(|run| self.flow.is_entry[*run])
    }

    /// Decoded instructions from the run's start to instruction `k`.
    fn distance(&self, k: usize) -> u32 {
        let first = self.source.ins[self.flow.runs[self.run].start].first;
        let to = match self.source.ins.get(k) {
            Some(i) => i.first,
            None => self.source.ins[k - 1].end,
        };
        to - first
    }

    /// Takes the run's instructions up to `k` off the fuel, which is given back.
    fn count(&mut self, k: usize) -> Value {
        let n = self.distance(k);
        let at = offset_of!(Warp, fuel) as i32;
        let fuel = self.b.ins().load(I64, trusted(), self.warp, at);
        let fuel = self.b.ins().iadd_imm_s(fuel, -i64::from(n));
        self.b.ins().store(trusted(), fuel, self.warp, at);
        fuel
    }

    fn exit(&mut self, k: usize, kind: ExitKind, expand: Vec<Expand>) -> u32 {
        let next = self.source.ins.get(k + 1).map(|i| i.first);
        self.exits.push(Exit {
            at: self.source.ins[k].first,
            next,
            entry: u32::MAX,
            count: self.distance(k),
            kind,
            expand,
            run: self.run,
            ahead: 0,
        });
        self.exits.len() as u32 - 1
    }

    /// Registers to write back at instruction `k`.
    fn values(&mut self, k: usize) -> Vec<(usize, Current)> {
        let list: Vec<usize> = match self.flow.live.get(k) {
            Some(live) => live.and(&self.held.away).iter().collect(),
            None => Vec::new(),
        };
        list.into_iter().map(|r| (r, self.get(r))).collect()
    }

    /// Registers whose lanes are to be filled in from their bases.
    fn expand(&self, k: usize, held: &Held) -> Vec<Expand> {
        let mut list = Vec::new();
        for r in self.flow.live[k].and(&held.partial).iter() {
            if let Spread::Affine { stride, delta } = self.spreads.of[r] {
                let slot = self.source.regs[r].slot;
                list.push(Expand { at: slot.at, wide: slot.kind == Kind::W64, stride, delta });
            }
        }
        list
    }

    /// Writes values back and returns.
    fn leave(&mut self, values: &[(usize, Current)], exit: u32) {
        for (r, c) in values {
            self.store_base(*r, *c);
        }
        let v = self.b.ins().iconst(I32, i64::from(exit));
        self.b.ins().return_(&[v]);
    }

    fn set_checkpoint(&mut self, at: usize) {
        self.checkpoint = Checkpoint { at, held: self.held.clone(), saved: HashMap::new(), block: None };
    }

    fn end_checkpoint(&mut self) {
        let Some(block) = self.checkpoint.block.take() else { return };
        let at = self.checkpoint.at;
        let list: Vec<usize> = self.flow.live[at].and(&self.checkpoint.held.away).iter().collect();
        let mut values = Vec::new();
        for r in list {
            let v = match self.checkpoint.saved.get(&r) {
                Some(v) => *v,
                None => self.get(r),
            };
            values.push((r, v));
        }
        let expand = self.expand(at, &self.checkpoint.held);
        let exit = self.exit(at, ExitKind::Interpret, expand);
        self.pending.push(Pending { block, values, exit });
    }

    /// Leaves to the checkpoint if `bad` (an `i8`) is not 0.
    pub(super) fn guard(&mut self, bad: Value) {
        let exit = match self.checkpoint.block {
            Some(b) => b,
            None => {
                let b = self.b.create_block();
                self.checkpoint.block = Some(b);
                b
            }
        };
        let on = self.b.create_block();
        self.b.ins().brif(bad, exit, &[], on, &[]);
        self.b.switch_to_block(on);
        self.b.seal_block(on);
    }

    fn branch(&mut self, k: usize, target: usize, blocks: &[Block]) -> Result<()> {
        let i = &self.source.ins[k];
        let to = self.flow.run_of[target];
        let taken = match i.guard {
            None => None,
            Some(p) => {
                let c = match self.get(p.reg as usize).val {
                    Val::All(c) => c,
                    Val::Halves(x, y) => {
                        let differ = self.b.ins().bxor(x, y);
                        self.guard(differ);
                        x
                    }
                    Val::Mask(m) => {
                        let up = self.b.ins().iadd_imm_s(m, 1);
                        let mixed = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, up, 1);
                        self.guard(mixed);
                        self.b.ins().icmp_imm_s(IntCC::NotEqual, m, 0)
                    }
                    _ => return Err(Refused),
                };
                Some((c, p.negated))
            }
        };
        self.end_checkpoint();
        let fuel = self.count(k + 1);
        self.edge(to);
        let backward = target <= k;
        let mut onward = blocks[to];
        if backward {
            let list = {
                let wanted: Vec<usize> = self.flow.live[target].and(&self.held.away).iter().collect();
                wanted.into_iter().map(|r| (r, self.get(r))).collect::<Vec<_>>()
            };
            let check = self.b.create_block();
            let stop = self.b.create_block();
            onward = check;
            let expand = if self.enters(target) { Vec::new() } else { self.expand(target, &self.held) };
            let at = self.source.ins[target].first;
            let (kind, run) = (ExitKind::Turn, self.run);
            self.exits.push(Exit { at, next: None, entry: u32::MAX, count: 0, kind, expand, run, ahead: 0 });
            let exit = self.exits.len() as u32 - 1;
            self.pending.push(Pending { block: stop, values: list, exit });
            if let Some((c, negated)) = taken {
                let next = self.flow.run_of[k + 1];
                self.edge(next);
                let (yes, no) = if negated { (blocks[next], onward) } else { (onward, blocks[next]) };
                self.b.ins().brif(c, yes, &[], no, &[]);
            } else {
                self.b.ins().jump(onward, &[]);
            }
            self.b.switch_to_block(check);
            self.b.seal_block(check);
            let out = self.b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, fuel, 0);
            self.b.ins().brif(out, stop, &[], blocks[to], &[]);
            return Ok(());
        }
        match taken {
            Some((c, negated)) => {
                let next = self.flow.run_of[k + 1];
                self.edge(next);
                let (yes, no) = if negated { (blocks[next], onward) } else { (onward, blocks[next]) };
                self.b.ins().brif(c, yes, &[], no, &[]);
            }
            None => {
                self.b.ins().jump(onward, &[]);
            }
        }
        Ok(())
    }

    /// Puts the registers that run `to` expects in variables there, and in the frame those that it expects in the frame.
    fn edge(&mut self, to: usize) {
        let flow = self.flow;
        let at = flow.runs[to].start;
        for r in flow.live[at].and(&flow.held[to].away).iter() {
            if let Some(c) = self.current[r] {
                self.define(r, c);
            } else if !self.held.away.has(r) {
                let c = self.get(r);
                self.define(r, c);
            }
        }
        for r in flow.live[at].and(&self.held.away).iter() {
            if !flow.held[to].away.has(r) {
                let c = self.get(r);
                self.store_base(r, c);
            }
        }
    }

    /// Calls the interpreter's handlers of instruction `k`.
    fn by_handler(&mut self, k: usize) {
        let source = self.source;
        let i = &source.ins[k];
        self.end_checkpoint();
        for &r in &i.uses {
            let r = r as usize;
            if self.held.partial.has(r) {
                let c = self.get(r);
                self.store_whole(r, c);
            }
        }
        let before = self.held.clone();
        step(&mut self.held, source, k, true);
        let stops = !matches!(i.what, What::Handler { stops: false, .. })
            && matches!(i.what, What::Handler { .. } | What::Load(_) | What::Store(_));
        let at_exit = if stops {
            // The flush is done; the results are not there yet.
            let mut held = before;
            i.uses.iter().for_each(|r| held.whole(*r as usize));
            let list: Vec<usize> = self.flow.live[k].and(&held.away).iter().collect();
            let values: Vec<(usize, Current)> = list.into_iter().map(|r| (r, self.get(r))).collect();
            let expand = self.expand(k, &held);
            let at = offset_of!(Warp, generation) as i32;
            let g = self.b.ins().load(I32, trusted(), self.warp, at);
            let g = self.b.ins().iadd_imm_s(g, 1);
            self.b.ins().store(trusted(), g, self.warp, at);
            Some((values, expand))
        } else {
            None
        };
        let f = self.b.ins().iconst(I64, super::call_handler as *const () as i64);
        for p in i.real..i.end {
            let d = std::ptr::from_ref(&self.plain[p as usize]);
            let d = self.b.ins().iconst(I64, d as i64);
            let call = self.b.ins().call_indirect(self.handler, f, &[self.warp, d]);
            if let Some((values, expand)) = &at_exit {
                let went = self.b.inst_results(call)[0];
                let exit = self.exit(k, ExitKind::Event, expand.clone());
                let stop = self.b.create_block();
                let on = self.b.create_block();
                self.pending.push(Pending { block: stop, values: values.clone(), exit });
                self.b.ins().brif(went, on, &[], stop, &[]);
                self.b.switch_to_block(on);
                self.b.seal_block(on);
                self.phase = None;
            }
        }
        for &r in &i.dests {
            self.forget(r as usize);
        }
        self.set_checkpoint(k + 1);
    }

    /// Ends the checkpoint before an effect on the frame that needs register `r` there.
    pub(super) fn before_effect(&mut self, r: Option<usize>) {
        self.end_checkpoint();
        if let Some(r) = r
            && self.held.partial.has(r)
        {
            let c = self.get(r);
            self.store_whole(r, c);
            self.held.whole(r);
        }
    }

    /// After an effect that wrote register `r` to the frame: goes on at `k`.
    pub(super) fn after_effect(&mut self, r: usize, k: usize) {
        self.held.whole(r);
        self.forget(r);
        self.set_checkpoint(k);
    }

    fn forget(&mut self, r: usize) {
        self.current[r] = None;
        self.ramps.remove(&r);
        self.checked.retain(|c| c.base != Src::Reg(r as u32));
    }

    /// The value of a register.
    pub(super) fn get(&mut self, r: usize) -> Current {
        if let Some(c) = self.current[r] {
            return c;
        }
        let c = if self.held.away.has(r) { self.read(r) } else { self.load(r) };
        self.current[r] = Some(c);
        c
    }

    /// Sets a register to a value that varies as `natural` says.
    pub(super) fn set(&mut self, r: usize, natural: Spread, val: Val, raw: bool) -> Result<()> {
        let val = self.coerce(r, natural, val)?;
        let mut c = Current { val, raw };
        if raw && !self.lazy[r] {
            c = self.canonical(c);
        }
        let at = self.checkpoint.at;
        if self.checkpoint.held.away.has(r)
            && self.flow.live[at].has(r)
            && !self.checkpoint.saved.contains_key(&r)
        {
            let old = self.get(r);
            self.checkpoint.saved.insert(r, old);
        }
        self.forget(r);
        self.current[r] = Some(c);
        self.held.wrote(r);
        Ok(())
    }

    /// Brings a value to the form of its register.
    fn coerce(&mut self, r: usize, natural: Spread, val: Val) -> Result<Val> {
        let wide = self.source.regs[r].slot.kind == Kind::W64;
        Ok(match (self.spreads.of[r], val) {
            (Spread::Affine { delta: Some(_), .. }, Val::One(_))
            | (Spread::Affine { delta: None, .. }, Val::Two(..))
            | (Spread::Lanes, Val::Lanes(_))
            | (Spread::All, Val::All(_))
            | (Spread::Halves, Val::Halves(..))
            | (Spread::Mask, Val::Mask(_)) => val,
            (Spread::Affine { delta: None, .. }, Val::One(v)) => {
                let Spread::Affine { delta: Some(d), .. } = natural else { return Err(Refused) };
                let second = self.plus(v, d);
                Val::Two(v, second)
            }
            (Spread::Lanes, Val::One(_) | Val::Two(..)) if !wide => Val::Lanes(self.ramp(natural, val)?),
            (Spread::Halves, Val::All(c)) => Val::Halves(c, c),
            (Spread::Mask, Val::All(_) | Val::Halves(..)) => Val::Mask(self.bits(val)),
            _ => return Err(Refused),
        })
    }

    /// `v + d` for an integer (or, with `d` 0, anything).
    pub(super) fn plus(&mut self, v: Value, d: i64) -> Value {
        if d == 0 {
            return v;
        }
        let v = if self.b.func.dfg.value_type(v) == F32 { self.as_type(v, I32) } else { v };
        self.b.ins().iadd_imm_s(v, d)
    }

    /// A scalar with the other type of its width.
    pub(super) fn as_type(&mut self, v: Value, ty: Type) -> Value {
        if self.b.func.dfg.value_type(v) == ty {
            return v;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.b.ins().bitcast(ty, flags, v)
    }

    /// The 32 lanes of an affine 32-bit value.
    pub(super) fn ramp(&mut self, spread: Spread, val: Val) -> Result<[Value; 8]> {
        let Spread::Affine { stride, delta } = spread else { return Err(Refused) };
        let (first, second) = match (val, delta) {
            (Val::One(v), Some(0)) => (v, None),
            (Val::One(v), Some(d)) => (v, Some(self.plus(v, d))),
            (Val::Two(v, w), _) => (v, Some(w)),
            _ => return Err(Refused),
        };
        let half = |this: &mut Self, v: Value| -> [Value; 4] {
            let v = if stride == 0 { v } else { this.as_type(v, I32) };
            let ty = this.b.func.dfg.value_type(v);
            let x = this.b.ins().splat(if ty == F32 { F32X4 } else { I32X4 }, v);
            if stride == 0 {
                return [x; 4];
            }
            std::array::from_fn(|j| {
                let lanes: Vec<i32> = (0..4).map(|l| stride.wrapping_mul(4 * j as i64 + l) as i32).collect();
                let c = this.constant(&lanes);
                this.b.ins().iadd(x, c)
            })
        };
        let x = half(self, first);
        let y = match second {
            Some(v) => half(self, v),
            None => x,
        };
        Ok(std::array::from_fn(|j| if j < 4 { x[j] } else { y[j - 4] }))
    }

    /// A constant vector of four words.
    pub(super) fn constant(&mut self, lanes: &[i32]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        let handle = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.b.ins().vconst(I32X4, handle)
    }

    /// A predicate as bits.
    pub(super) fn bits(&mut self, val: Val) -> Value {
        match val {
            Val::Mask(m) => m,
            Val::All(c) => {
                let w = self.b.ins().uextend(I32, c);
                self.b.ins().ineg(w)
            }
            Val::Halves(x, y) => {
                let (x, y) = (self.b.ins().uextend(I32, x), self.b.ins().uextend(I32, y));
                let x = self.b.ins().imul_imm_s(x, 0xffff);
                let y = self.b.ins().imul_imm_s(y, 0xffff);
                let y = self.b.ins().ishl_imm_s(y, 16);
                self.b.ins().bor(x, y)
            }
            Val::One(v) | Val::Two(v, _) => v,
            Val::Lanes(v) => v[0],
        }
    }

    fn type_of(&self, r: usize) -> Type {
        let reg = self.source.regs[r];
        match (self.spreads.of[r], reg.slot.kind) {
            (Spread::Mask, _) => I32,
            (_, Kind::Pred) => I8,
            (Spread::Lanes, _) => {
                if reg.float {
                    F32X4
                } else {
                    I32X4
                }
            }
            (_, Kind::W64) => I64,
            (_, Kind::W32) => {
                if reg.float {
                    F32
                } else {
                    I32
                }
            }
        }
    }

    fn variable(&mut self, r: usize, part: u8) -> Variable {
        let ty = self.type_of(r);
        let b = &mut *self.b;
        *self.variables.entry((r, part)).or_insert_with(|| b.declare_var(ty))
    }

    /// Reads a register from its variables.
    fn read(&mut self, r: usize) -> Current {
        let part = |this: &mut Self, k: u8| {
            let v = this.variable(r, k);
            this.b.use_var(v)
        };
        let val = match self.spreads.of[r] {
            Spread::Affine { delta: Some(_), .. } => Val::One(part(self, 0)),
            Spread::Affine { delta: None, .. } => Val::Two(part(self, 0), part(self, 1)),
            Spread::Lanes | Spread::None => Val::Lanes(std::array::from_fn(|j| part(self, j as u8))),
            Spread::All => Val::All(part(self, 0)),
            Spread::Halves => Val::Halves(part(self, 0), part(self, 1)),
            Spread::Mask => Val::Mask(part(self, 0)),
        };
        Current { val, raw: self.lazy[r] }
    }

    /// Writes a register's variables.
    fn define(&mut self, r: usize, c: Current) {
        let ty = self.type_of(r);
        let part = |this: &mut Self, k: u8, v: Value| {
            let v = this.as_type(v, ty);
            let var = this.variable(r, k);
            this.b.def_var(var, v);
        };
        match c.val {
            Val::One(v) | Val::All(v) | Val::Mask(v) => part(self, 0, v),
            Val::Two(v, w) | Val::Halves(v, w) => {
                part(self, 0, v);
                part(self, 1, w);
            }
            Val::Lanes(list) => {
                for (j, v) in list.into_iter().enumerate() {
                    part(self, j as u8, v);
                }
            }
        }
    }

    /// Reads a register from the frame.
    fn load(&mut self, r: usize) -> Current {
        let at = self.source.regs[r].slot.at as i32;
        let ty = self.type_of(r);
        let frame = self.frame;
        let bytes = ty.bytes() as i32;
        let val = match self.spreads.of[r] {
            Spread::Affine { delta: Some(_), .. } => Val::One(self.b.ins().load(ty, trusted(), frame, at)),
            Spread::Affine { delta: None, .. } => {
                let v = self.b.ins().load(ty, trusted(), frame, at);
                let w = self.b.ins().load(ty, trusted(), frame, at + HALF as i32 * bytes);
                Val::Two(v, w)
            }
            Spread::Lanes | Spread::None => Val::Lanes(std::array::from_fn(|j| {
                self.b.ins().load(ty, trusted(), frame, at + 16 * j as i32)
            })),
            Spread::All => {
                let m = self.b.ins().load(I32, trusted(), frame, at);
                Val::All(self.bit(m, 0))
            }
            Spread::Halves => {
                let m = self.b.ins().load(I32, trusted(), frame, at);
                Val::Halves(self.bit(m, 0), self.bit(m, 16))
            }
            Spread::Mask => Val::Mask(self.b.ins().load(I32, trusted(), frame, at)),
        };
        Current { val, raw: false }
    }

    fn bit(&mut self, m: Value, k: i64) -> Value {
        let m = if k == 0 { m } else { self.b.ins().ushr_imm_s(m, k) };
        let m = self.b.ins().band_imm_s(m, 1);
        self.b.ins().ireduce(I8, m)
    }

    /// Writes a register to the frame; of an affine one the bases alone.
    fn store_base(&mut self, r: usize, c: Current) {
        let c = self.canonical(c);
        let at = self.source.regs[r].slot.at as i32;
        let frame = self.frame;
        let step = HALF as i32 * if self.source.regs[r].slot.kind == Kind::W64 { 8 } else { 4 };
        match c.val {
            Val::One(v) => {
                self.b.ins().store(trusted(), v, frame, at);
            }
            Val::Two(v, w) => {
                self.b.ins().store(trusted(), v, frame, at);
                self.b.ins().store(trusted(), w, frame, at + step);
            }
            Val::Lanes(list) => {
                for (j, v) in list.into_iter().enumerate() {
                    self.b.ins().store(trusted(), v, frame, at + 16 * j as i32);
                }
            }
            Val::All(_) | Val::Halves(..) | Val::Mask(_) => {
                let m = self.bits(c.val);
                self.b.ins().store(trusted(), m, frame, at);
            }
        }
    }

    /// Writes all lanes of a register to the frame.
    fn store_whole(&mut self, r: usize, c: Current) {
        let c = self.canonical(c);
        self.current[r] = Some(c);
        let spread = self.spreads.of[r];
        let slot = self.source.regs[r].slot;
        let Spread::Affine { stride, delta } = spread else {
            self.store_base(r, c);
            return;
        };
        let (at, frame) = (slot.at as i32, self.frame);
        if slot.kind != Kind::W64 {
            if let Ok(list) = self.ramp(spread, c.val) {
                for (j, v) in list.into_iter().enumerate() {
                    self.b.ins().store(trusted(), v, frame, at + 16 * j as i32);
                }
            }
            return;
        }
        let (v, w) = match (c.val, delta) {
            (Val::One(v), Some(d)) => (v, self.plus(v, d)),
            (Val::Two(v, w), _) => (v, w),
            _ => return,
        };
        for (half, base) in [v, w].into_iter().enumerate() {
            let up = self.plus(base, stride);
            let low = self.b.ins().splat(I64X2, base);
            let mut x = if stride == 0 { low } else { self.b.ins().insertlane(low, up, 1) };
            let two = self.b.ins().iconst(I64, stride.wrapping_mul(2));
            let two = self.b.ins().splat(I64X2, two);
            for j in 0..8 {
                self.b.ins().store(trusted(), x, frame, at + 128 * half as i32 + 16 * j);
                if stride != 0 {
                    x = self.b.ins().iadd(x, two);
                }
            }
        }
    }

    /// The instruction at `k`.
    pub(super) fn ins(&self, k: usize) -> &'a Ins {
        &self.source.ins[k]
    }

    /// The end of the run that is being compiled.
    pub(super) fn run_end(&self) -> usize {
        self.flow.runs[self.run].end
    }
}
