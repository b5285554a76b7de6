//! Decoding a function's body.

use assay_ptx::{
    FuncId, Function, FunctionKind, Half, Instr, Op, Operand, RegId, Scope, Space, Special, SymbolRef, Ty,
};

use super::fuse::{self, Tag};
use super::operands::{Frame, kind_of};
use super::{Context, LocalFrame, invalid, local_frame, unsupported};
use crate::code::{Carry, CarryOp, Code, Cold, Home, Kind, LaneOp, Slot};
use crate::error::LoadError;
use crate::handlers::{alu, chain, control, generic};
use crate::lanes::{Pair, op1, op2, select_pair};
use crate::liveness::defs_uses;
use crate::memory::{FUNCTION_WINDOW, LOCAL_WINDOW, OFFSET_BITS, OFFSET_MASK, SHARED_WINDOW};
use crate::semantics::{self, Scalar, mask, sext};
use crate::warp::{Decoded, Handler, NEGATED};

/// Generic addresses of kernel parameters.
pub(crate) const PARAM_WINDOW: u64 = 4 << OFFSET_BITS;

/// One decoded instruction in both versions.
pub(super) struct Emitted {
    pub(super) d: Decoded,
    /// The handler under detectors, where it differs.
    pub(super) checked: Option<Handler>,
    /// PTX instruction.
    pub(super) origin: u32,
    pub(super) tag: Tag,
    /// `f` wraps `g`.
    pub(super) wrapped: bool,
}

pub(super) struct Decoder<'c, 'm> {
    pub(super) cx: &'c Context<'m>,
    pub(super) f: &'m Function,
    pub(super) id: FuncId,
    pub(super) frame: Frame,
    pub(super) local: LocalFrame,
    pub(super) out: Vec<Emitted>,
    pub(super) cold: Vec<Cold>,
    /// Classifications that hold here: base register's offset and bytes per lane.
    pub(super) known: Vec<(u32, u64)>,
    pub(super) narrow: Vec<(u32, u32)>,
    /// Global addresses read in this straight run: base register's offset, offset.
    pub(super) loaded: Vec<(u32, i64)>,
    /// Instructions that store to a place which the thread has just read.
    pub(super) contended: Vec<usize>,
    source: Option<crate::jit::source::Source>,
    pub(super) at: usize,
    /// Registers that something reads; made when first asked for.
    reads: Option<Vec<bool>>,
}

pub(super) type Result<T> = std::result::Result<T, LoadError>;

/// Decodes one function of a kernel.
pub(crate) fn decode(cx: &Context<'_>, id: FuncId) -> Result<Code> {
    let f = &cx.module.functions[id.index()];
    let too_large = |what: &str| LoadError::Unsupported {
        spelling: format!("{what} of function `{}`", f.name),
        line: cx.module.line_col(f.span).0,
        source_line: None,
    };
    let frame = Frame::new(f).ok_or_else(|| too_large("registers wider than 64 bits, or their number,"))?;
    let local = local_frame(f).ok_or_else(|| too_large("local memory over 16 MiB"))?;
    let mut decoder = Decoder {
        cx,
        f,
        id,
        frame,
        local,
        out: Vec::new(),
        cold: Vec::new(),
        known: Vec::new(),
        narrow: Vec::new(),
        loaded: Vec::new(),
        contended: Vec::new(),
        source: None,
        at: 0,
        reads: None,
    };
    decoder.body()?;
    Ok(decoder.finish())
}

impl<'m> Decoder<'_, 'm> {
    pub(super) fn instr(&self) -> &'m Instr {
        &self.f.body[self.at]
    }

    /// True if any instruction of the function reads the register.
    pub(super) fn is_read(&mut self, r: RegId) -> bool {
        let f = self.f;
        let reads = self.reads.get_or_insert_with(|| {
            let mut reads = vec![false; f.registers.len()];
            f.body.iter().flat_map(|i| defs_uses(i).1).for_each(|r| reads[r] = true);
            reads
        });
        reads[r.index()]
    }

    pub(super) fn no(&self) -> LoadError {
        unsupported(self.cx.module, self.instr(), None)
    }

    pub(super) fn no_because(&self, what: &str) -> LoadError {
        unsupported(self.cx.module, self.instr(), Some(what))
    }

    pub(super) fn bad(&self, what: &str) -> LoadError {
        invalid(self.cx.module, self.instr(), what)
    }

    fn body(&mut self) -> Result<()> {
        let mut leader = vec![false; self.f.body.len() + 1];
        for i in &self.f.body {
            for o in &i.operands {
                match o {
                    Operand::Label(t) => leader[*t as usize] = true,
                    Operand::BranchTable(t) => {
                        for t in &self.f.branch_tables[*t as usize].targets {
                            leader[*t as usize] = true;
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut starts = Vec::with_capacity(self.f.body.len());
        let mut counts = Vec::with_capacity(self.f.body.len());
        for (at, leads) in leader.iter().enumerate().take(self.f.body.len()) {
            self.at = at;
            if *leads {
                self.known.clear();
                self.loaded.clear();
            }
            starts.push(self.out.len() as u32);
            self.one()?;
            counts.push(self.out.len() as u32 - starts[at]);
            for r in defs_uses(self.instr()).0 {
                let slot = self.frame.registers[r];
                let end = slot.at + if slot.kind == Kind::W64 { 256 } else { 128 };
                self.known.retain(|(base, _)| *base >= end || base + 256 <= slot.at);
                self.loaded.retain(|(base, _)| *base >= end || base + 256 <= slot.at);
            }
        }
        self.fuse(&mut starts, &leader);
        // Branch targets: from PTX indices to distances.
        for k in 0..self.out.len() {
            let e = &mut self.out[k];
            if e.d.aux == TARGET_IN_OFF {
                let target = starts[e.d.off as usize];
                e.d.off = i64::from(target) - k as i64;
                e.d.aux = 0;
            } else if e.d.aux == SKIP_ONE {
                e.d.off = 2;
                e.d.aux = 0;
            }
        }
        if self.f.kind == FunctionKind::Entry && self.cx.variant == crate::cpu::Variant::Wide {
            let contended: Vec<bool> = (0..counts.len()).map(|k| self.contended.contains(&k)).collect();
            self.source = self.lift(&starts, &counts, &contended);
        }
        for c in &mut self.cold {
            if let Cold::Brx { targets, .. } = c {
                for t in targets {
                    *t = starts[*t as usize];
                }
            }
        }
        Ok(())
    }

    /// Puts chains before the instructions that they stand for.
    fn fuse(&mut self, starts: &mut [u32], leader: &[bool]) {
        let tags: Vec<Tag> = self.out.iter().map(|e| e.tag).collect();
        let origin: Vec<u32> = self.out.iter().map(|e| e.origin).collect();
        let chains = fuse::chains(&tags, &origin, &self.frame.spans, leader);
        if chains.is_empty() {
            return;
        }
        // Each instruction moves by the chains before it; a jump to a chain's first instruction goes to the chain.
        let moved = |k: u32| k + chains.range(..k as usize).count() as u32;
        starts.iter_mut().for_each(|s| *s = moved(*s));
        for n in &mut self.narrow {
            n.0 = moved(n.0) + u32::from(chains.contains_key(&(n.0 as usize)));
        }
        let old = std::mem::take(&mut self.out);
        for (k, e) in old.into_iter().enumerate() {
            if let Some(c) = chains.get(&k) {
                let mut d = self.blank();
                d.f = chain::pair(false).pick(self.cx.variant);
                (d.a, d.b, d.class, d.e) = (c.bases.0, c.bases.1, c.classes.0, c.classes.1);
                (d.c, d.d) = (c.addend, c.dest);
                d.aux = self.cold.len() as u32;
                self.cold.push(Cold::Chain(c.op.clone()));
                self.out.push(Emitted {
                    d,
                    checked: Some(chain::pair(true).pick(self.cx.variant)),
                    origin: e.origin,
                    tag: Tag::Other,
                    wrapped: false,
                });
            }
            self.out.push(e);
        }
    }

    fn finish(self) -> Code {
        let f = self.f;
        let plain: Vec<Decoded> = self.out.iter().map(|e| e.d).collect();
        let checked = self
            .out
            .iter()
            .map(|e| match e.checked {
                // `f` is a wrapper (guard, contention) around `g`.
                Some(h) if e.wrapped => Decoded { g: h, ..e.d },
                Some(h) => Decoded { f: h, ..e.d },
                None => e.d,
            })
            .collect();
        let lines = self
            .out
            .iter()
            .map(|e| f.body[e.origin as usize].loc.map_or((0, 0), |l| (l.line, l.file)))
            .collect();
        let locs = self.out.iter().map(|e| f.body[e.origin as usize].loc.filter(|l| l.line > 0)).collect();
        let home = |p: &assay_ptx::Param, offset: u64| match p.register {
            Some(r) => Home::Slot { slot: self.frame.registers[r.index()], size: p.size_bytes },
            None => Home::Local { offset, size: p.size_bytes },
        };
        let device = f.kind == FunctionKind::Device;
        let homes = |list: &[assay_ptx::Param], at: &[u64]| {
            if device { list.iter().zip(at).map(|(p, at)| home(p, *at)).collect() } else { Vec::new() }
        };
        Code {
            plain,
            checked,
            lines,
            locs,
            // The carry flag is not among the registers that the analysis follows.
            unset: self.frame.unset || self.cold.iter().any(|c| matches!(c, Cold::Carry(_))),
            template: self.frame.template(),
            params: homes(&f.params, &self.local.params),
            returns: homes(&f.returns, &self.local.returns),
            specials: self.frame.specials,
            cold: self.cold,
            local_bytes: self.local.bytes,
            narrow: self.narrow,
            first_site: 0,
            source: self.source,
        }
    }

    pub(super) fn blank(&self) -> Decoded {
        Decoded {
            f: generic::nothing,
            g: generic::nothing,
            d: 0,
            a: 0,
            b: 0,
            c: 0,
            e: 0,
            guard: 0,
            off: 0,
            class: 0,
            aux: 0,
        }
    }

    pub(super) fn guard_bits(&self) -> Option<u32> {
        let g = self.instr().guard?;
        Some(self.frame.registers[g.reg.index()].at | if g.negated { NEGATED } else { 0 })
    }

    /// Emits an instruction that goes on to the next one.
    pub(super) fn emit(&mut self, d: Decoded, checked: Option<Handler>) {
        self.emit_wrapped(d, checked, false);
    }

    /// As [`Decoder::emit`], for an instruction that may be wrapped already.
    pub(super) fn emit_wrapped(&mut self, mut d: Decoded, checked: Option<Handler>, mut wrapped: bool) {
        if let Some(guard) = self.guard_bits() {
            d.guard = guard;
            d.g = d.f;
            d.f = generic::guarded;
            wrapped = true;
        }
        self.out.push(Emitted { d, checked, origin: self.at as u32, tag: Tag::Other, wrapped });
    }

    /// Emits an instruction for the executor; a guard becomes a branch around it, since it may wait or leave.
    pub(super) fn emit_cold(&mut self, cold: Cold) {
        if let Some(guard) = self.guard_bits() {
            let mut d = self.blank();
            d.f = control::branch_if;
            d.guard = guard ^ NEGATED;
            d.aux = SKIP_ONE;
            self.out.push(Emitted {
                d,
                checked: None,
                origin: self.at as u32,
                tag: Tag::Other,
                wrapped: false,
            });
        }
        let mut d = self.blank();
        d.f = generic::to_cold;
        d.aux = self.cold.len() as u32;
        self.cold.push(cold);
        self.out.push(Emitted { d, checked: None, origin: self.at as u32, tag: Tag::Other, wrapped: false });
        self.known.clear();
    }

    fn emit_pair(&mut self, pair: Pair, dest: Slot, sources: &[Slot]) {
        let mut d = self.blank();
        d.f = pair.pick(self.cx.variant);
        d.d = dest.at;
        d.a = sources.first().map_or(0, |s| s.at);
        d.b = sources.get(1).map_or(0, |s| s.at);
        d.c = sources.get(2).map_or(0, |s| s.at);
        self.emit(d, None);
    }

    fn emit_lane(&mut self, op: LaneOp) {
        let mut d = self.blank();
        d.f = generic::lane_op;
        d.aux = self.cold.len() as u32;
        self.cold.push(Cold::Lane(op));
        self.emit(d, None);
    }

    pub(super) fn reg(&self, r: RegId) -> Slot {
        self.frame.registers[r.index()]
    }

    pub(super) fn reg_bits(&self, o: &Operand) -> u64 {
        match o {
            Operand::Reg(r) => self.f.reg_ty(*r).bits(),
            _ => 64,
        }
    }

    /// The address of a symbol within its space; `None` if it depends on the frame.
    pub(super) fn symbol(&self, s: SymbolRef) -> Result<Option<u64>> {
        let cx = self.cx;
        Ok(match s {
            SymbolRef::Module(id) => {
                let v = &cx.module.variables[id.index()];
                match v.space {
                    Space::Shared => cx.shared_module.get(&id.0).copied(),
                    Space::Global | Space::Const => {
                        if v.is_extern && v.size_bytes == 0 {
                            return Err(self.no_because(&format!("(`{}` is defined elsewhere)", v.name)));
                        }
                        cx.regions[id.index()].map(|r| r << OFFSET_BITS)
                    }
                    Space::Local | Space::Param => return Err(self.no_because("(module variable)")),
                }
            }
            SymbolRef::Local(id) => {
                let v = &self.f.variables[id.index()];
                match v.space {
                    Space::Shared => cx.shared_local.get(&(self.id.0, id.0)).copied(),
                    Space::Local | Space::Param => None,
                    Space::Global | Space::Const => return Err(self.no_because("(variable in a function)")),
                }
            }
            SymbolRef::Param(k) if self.f.kind == FunctionKind::Entry => {
                Some(self.f.params[k as usize].offset_bytes)
            }
            SymbolRef::Param(_) | SymbolRef::Return(_) => None,
            SymbolRef::Function(id) => Some(FUNCTION_WINDOW + u64::from(id.0)),
        })
    }

    /// The offset of a frame-relative symbol in local memory.
    pub(super) fn local_offset(&self, s: SymbolRef) -> Option<u64> {
        match s {
            SymbolRef::Local(id) => self.local.variables.get(id.index()).copied().flatten(),
            SymbolRef::Param(k) if self.f.kind == FunctionKind::Device => {
                self.local.params.get(k as usize).copied()
            }
            SymbolRef::Return(k) => self.local.returns.get(k as usize).copied(),
            _ => None,
        }
    }

    /// A source operand of type `ty`.
    pub(super) fn source(&mut self, o: &Operand, ty: Ty) -> Result<Slot> {
        let kind = kind_of(ty).ok_or_else(|| self.no())?;
        match o {
            Operand::Reg(r) => Ok(self.reg(*r)),
            Operand::NotReg(r) => Ok(Slot { negated: true, ..self.reg(*r) }),
            Operand::Imm(i) => {
                let bits = i.bits_for(ty).ok_or_else(|| self.bad("a literal of the wrong type"))?;
                Ok(self.frame.constant(kind, bits))
            }
            Operand::Special(s) => {
                if clock_part(*s).is_some() {
                    // A clock read within another instruction: into a temporary first.
                    let t = self.frame.temporary(kind);
                    self.emit_clock(*s, t);
                    return Ok(t);
                }
                Ok(self.frame.special(*s, kind))
            }
            Operand::Symbol { symbol, offset } => match self.symbol(*symbol)? {
                Some(base) => Ok(self.frame.constant(kind, base.wrapping_add(*offset as u64))),
                None => {
                    let t = self.frame.temporary(kind);
                    self.emit_local_address(*symbol, *offset, t)?;
                    Ok(t)
                }
            },
            _ => Err(self.no()),
        }
    }

    fn emit_clock(&mut self, s: Special, dest: Slot) {
        let mut d = self.blank();
        d.f = generic::clock;
        d.d = dest.at;
        d.off = if dest.kind == Kind::W64 { 2 } else { clock_part(s).unwrap_or(0) };
        self.emit(d, None);
    }

    fn emit_local_address(&mut self, s: SymbolRef, offset: i64, dest: Slot) -> Result<()> {
        let base = self.local_offset(s).ok_or_else(|| self.no())?;
        let mut d = self.blank();
        d.f = generic::local_address;
        d.d = dest.at;
        d.e = u32::from(dest.kind == Kind::W64);
        d.off = (base as i64).wrapping_add(offset);
        self.emit(d, None);
        Ok(())
    }

    /// A destination register; `None` for `_`.
    pub(super) fn dest(&self, o: &Operand) -> Result<Option<Slot>> {
        match o {
            Operand::Reg(r) => Ok(Some(self.reg(*r))),
            Operand::Sink => Ok(None),
            Operand::Pair(a, _) => Ok(a.map(|r| self.reg(r))),
            _ => Err(self.no()),
        }
    }

    fn one(&mut self) -> Result<()> {
        let i = self.instr();
        let m = &i.mods;
        match i.op {
            Op::Mov => self.mov(),
            Op::Ld | Op::Ldu | Op::St => self.access(),
            Op::Atom | Op::Red => self.atomic(),
            Op::Bra => self.bra(),
            Op::BrxIdx => {
                let [index, Operand::BranchTable(t)] = &i.operands[..] else { return Err(self.no()) };
                let index = self.source(index, Ty::U32)?;
                let targets = self.f.branch_tables[*t as usize].targets.clone();
                self.emit_cold(Cold::Brx { index, targets });
                Ok(())
            }
            Op::Call => self.call(),
            Op::Ret => {
                self.emit_cold(if self.f.kind == FunctionKind::Entry { Cold::Exit } else { Cold::Ret });
                Ok(())
            }
            Op::Exit => {
                self.emit_cold(Cold::Exit);
                Ok(())
            }
            Op::Trap => {
                self.emit_cold(Cold::Trap);
                Ok(())
            }
            Op::Brkpt => {
                self.emit_cold(Cold::Brkpt);
                Ok(())
            }
            Op::BarSync | Op::BarArrive | Op::BarRed => self.barrier(),
            Op::CpAsync => self.copy(),
            Op::CpAsyncCommitGroup => {
                self.emit_cold(Cold::CopyCommit);
                Ok(())
            }
            Op::CpAsyncWaitAll => {
                self.emit_cold(Cold::CopyWait(None));
                Ok(())
            }
            Op::CpAsyncWaitGroup => self.copy_wait(),
            Op::CpAsyncMbarrierArrive => self.copy_arrive(),
            Op::MbarrierInit
            | Op::MbarrierInval
            | Op::MbarrierArrive
            | Op::MbarrierArriveDrop
            | Op::MbarrierTestWait
            | Op::MbarrierTryWait => self.mbarrier(),
            Op::Ldmatrix | Op::Stmatrix => self.matrix_rows(),
            Op::Movmatrix => self.matrix_transpose(),
            Op::Mma | Op::WmmaMma => self.product(),
            Op::WmmaLoad | Op::WmmaStore => self.matrix_tile(),
            Op::BarWarpSync | Op::Shfl | Op::Vote | Op::Match | Op::Redux | Op::ElectSync => self.warp_op(),
            Op::Activemask => {
                let mut d = self.blank();
                d.f = generic::activemask;
                d.d = self.dest(&i.operands[0])?.map_or(0, |s| s.at);
                self.emit(d, None);
                Ok(())
            }
            Op::Membar | Op::Fence => {
                let scope = m.scope.unwrap_or(Scope::Gpu);
                let mut d = self.blank();
                d.aux = self.cold.len() as u32;
                self.cold.push(Cold::Fence { scope });
                if i.guard.is_some() {
                    self.cold.pop();
                    self.emit_cold(Cold::Fence { scope });
                } else {
                    self.emit(d, Some(generic::to_cold));
                }
                Ok(())
            }
            Op::Nanosleep => {
                let mut d = self.blank();
                d.f = generic::pause;
                self.emit(d, None);
                self.known.clear();
                Ok(())
            }
            Op::Prefetch | Op::Prefetchu | Op::Discard => {
                let d = self.blank();
                self.emit(d, None);
                Ok(())
            }
            Op::Cvta | Op::Isspacep => self.windows(),
            Op::And | Op::Or | Op::Xor | Op::Not if i.ty() == Some(Ty::Pred) => self.predicates(),
            Op::Selp => self.selp(),
            Op::Lop3 if m.lop3_bool.is_some() => self.lop3_with_predicate(),
            Op::Addc | Op::Subc | Op::Madc => self.carry(),
            Op::Add | Op::Sub | Op::Mad if m.cc => self.carry(),
            Op::BarrierClusterArrive
            | Op::BarrierClusterWait
            | Op::Getctarank
            | Op::Griddepcontrol
            | Op::Mapa => Err(self.no()),
            _ => self.arithmetic(),
        }
    }

    /// Anything that a lane function describes.
    fn arithmetic(&mut self) -> Result<()> {
        let i = self.instr();
        let Some(Scalar { f, result, sources: types }) = semantics::scalar(i) else { return Err(self.no()) };
        let (dest, second) = match &i.operands[0] {
            Operand::Pair(a, b) => (a.map(|r| self.reg(r)), b.map(|r| self.reg(r))),
            o => (self.dest(o)?, None),
        };
        let dest_bits = self.reg_bits(&i.operands[0]);
        let mut sources = Vec::new();
        for (o, ty) in i.operands[1..].iter().zip(&types) {
            sources.push(self.source(o, *ty)?);
        }
        if sources.len() != types.len() {
            return Err(self.no());
        }
        let widths_fit = sources.iter().zip(&types).all(|(s, t)| Some(s.kind) == kind_of(*t) && !s.negated);
        let exact =
            result == Ty::Pred || dest_bits == result.bits() || matches!(i.operands[0], Operand::Pair(..));
        if widths_fit
            && exact
            && let Some(pair) = alu::fast(i)
        {
            let mut d = self.blank();
            d.f = pair.pick(self.cx.variant);
            d.d = dest.map_or(0, |s| s.at);
            d.e = second.map_or(0, |s| s.at);
            d.a = sources[0].at;
            d.b = sources.get(1).map_or(0, |s| s.at);
            d.c = sources.get(2).map_or(0, |s| s.at);
            self.emit(d, None);
            self.tag_product(i, d);
            return Ok(());
        }
        // A narrow result in a wider register (`cvt`): extended by its sign, and clean above the register.
        let f = if exact || i.op != Op::Cvt {
            f
        } else {
            let (bits, signed, keep) = (result.bits(), result.is_signed(), dest_bits);
            let keep = if keep >= 64 { u64::MAX } else { (1 << keep) - 1 };
            std::sync::Arc::new(move |v: [u64; 4]| {
                let r = f(v) & mask(result);
                (if signed { sext(r, bits) as u64 } else { r }) & keep
            })
        };
        self.emit_lane(LaneOp { f, sources, dest, second });
        Ok(())
    }

    /// Marks `fma.rn.f32` of two registers for the search of chains.
    fn tag_product(&mut self, i: &Instr, d: Decoded) {
        let plain = i.op == Op::Fma
            && i.ty() == Some(Ty::F32)
            && i.guard.is_none()
            && !(i.mods.ftz || i.mods.sat || i.mods.relu || i.mods.oob)
            && i.mods.rounding == Some(assay_ptx::Rounding::Rn);
        if let ([Operand::Reg(dest), Operand::Reg(a), Operand::Reg(b), ..], true) = (&i.operands[..], plain)
            && let Some(e) = self.out.last_mut()
        {
            e.tag = Tag::Fma { reg: dest.0, dest: d.d, factors: [a.0, b.0], addend: d.c };
        }
    }

    fn mov(&mut self) -> Result<()> {
        let i = self.instr();
        let ty = i.ty().unwrap_or(Ty::B32);
        let [to, from] = &i.operands[..] else { return Err(self.no()) };
        if let Operand::Vector(list) = to {
            return self.unpack(list, from, ty);
        }
        let Some(dest) = self.dest(to)? else { return Ok(()) };
        if let Operand::Vector(list) = from {
            return self.pack(dest, list, ty);
        }
        match from {
            Operand::Special(s) if clock_part(*s).is_some() => {
                self.emit_clock(*s, dest);
                return Ok(());
            }
            Operand::Symbol { symbol, offset } if self.symbol(*symbol)?.is_none() => {
                return self.emit_local_address(*symbol, *offset, dest);
            }
            _ => {}
        }
        let source = self.source(from, ty)?;
        if ty == Ty::Pred {
            let mut d = self.blank();
            d.f = generic::pred_mov;
            (d.d, d.a, d.b) = (dest.at, source.at, source.at);
            d.off = i64::from(source.negated);
            self.emit(d, None);
            return Ok(());
        }
        let pair = match (dest.kind, source.kind) {
            (Kind::W32, Kind::W32) if ty.bits() == 16 => op1!(S, |a: u32| -> u32 { a & 0xffff }),
            (Kind::W32, Kind::W32) => op1!(S, |a: u32| -> u32 { a }),
            (Kind::W64, Kind::W64) => op1!(S, |a: u64| -> u64 { a }),
            _ => return Err(self.no()),
        };
        self.emit_pair(pair, dest, &[source]);
        Ok(())
    }

    /// `mov.b64 d, {a, b}`: the first element is the lowest.
    fn pack(&mut self, dest: Slot, list: &[Operand], ty: Ty) -> Result<()> {
        let part = ty.bits() / list.len().max(1) as u64;
        let element = bits_type(part).ok_or_else(|| self.no())?;
        let mut sources = Vec::new();
        for o in list {
            sources.push(self.source(o, element)?);
        }
        match (part, sources.len()) {
            (32, 2) => {
                let pair = op2!(S, |a: u32, b: u32| -> u64 { u64::from(a) | u64::from(b) << 32 });
                self.emit_pair(pair, dest, &sources);
            }
            (16, 2) => {
                let pair = op2!(S, |a: u32, b: u32| -> u32 { (a & 0xffff) | b << 16 });
                self.emit_pair(pair, dest, &sources);
            }
            (_, 2..=4) => {
                let n = sources.len();
                let f = std::sync::Arc::new(move |v: [u64; 4]| {
                    (0..n).fold(0, |r, k| r | (v[k] & ((1 << part) - 1)) << (part * k as u64))
                });
                self.emit_lane(LaneOp { f, sources, dest: Some(dest), second: None });
            }
            _ => return Err(self.no()),
        }
        Ok(())
    }

    fn unpack(&mut self, list: &[Operand], from: &Operand, ty: Ty) -> Result<()> {
        let part = ty.bits() / list.len().max(1) as u64;
        let source = self.source(from, ty)?;
        for (k, o) in list.iter().enumerate() {
            let Some(dest) = self.dest(o)? else { continue };
            match (part, k) {
                (32, 0) => self.emit_pair(op1!(S, |a: u64| -> u32 { a as u32 }), dest, &[source]),
                (32, 1) => self.emit_pair(op1!(S, |a: u64| -> u32 { (a >> 32) as u32 }), dest, &[source]),
                (16, 0) if ty.bits() == 32 => {
                    self.emit_pair(op1!(S, |a: u32| -> u32 { a & 0xffff }), dest, &[source]);
                }
                (16, 1) if ty.bits() == 32 => {
                    self.emit_pair(op1!(S, |a: u32| -> u32 { a >> 16 }), dest, &[source]);
                }
                (8 | 16, _) => {
                    let shift = part * k as u64;
                    let f = std::sync::Arc::new(move |v: [u64; 4]| v[0] >> shift & ((1 << part) - 1));
                    self.emit_lane(LaneOp { f, sources: vec![source], dest: Some(dest), second: None });
                }
                _ => return Err(self.no()),
            }
        }
        Ok(())
    }

    fn windows(&mut self) -> Result<()> {
        let i = self.instr();
        let space = i.mods.space.ok_or_else(|| self.no())?;
        let window = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Param => PARAM_WINDOW,
            Space::Global | Space::Const => 0,
        };
        let dest = self.dest(&i.operands[0])?;
        if i.op == Op::Isspacep {
            let source = self.source(&i.operands[1], Ty::U64)?;
            let constants: Vec<u64> = self.const_regions();
            let f = std::sync::Arc::new(move |v: [u64; 4]| {
                let region = v[0] >> OFFSET_BITS;
                u64::from(match space {
                    Space::Shared | Space::Local | Space::Param => region == window >> OFFSET_BITS,
                    Space::Const => constants.contains(&region),
                    Space::Global => region >= crate::memory::FIRST_REGION && !constants.contains(&region),
                })
            });
            self.emit_lane(LaneOp { f, sources: vec![source], dest, second: None });
            return Ok(());
        }
        let ty = i.ty().unwrap_or(Ty::U64);
        if ty.bits() != 64 {
            return Err(self.no());
        }
        let source = self.source(&i.operands[1], ty)?;
        let Some(dest) = dest else { return Ok(()) };
        let pair = match (window, i.mods.to) {
            (0, _) => op1!(S, |a: u64| -> u64 { a }),
            (_, true) => op1!(S, |a: u64| -> u64 { a & OFFSET_MASK }),
            (SHARED_WINDOW, false) => op1!(S, |a: u64| -> u64 { a.wrapping_add(SHARED_WINDOW) }),
            (LOCAL_WINDOW, false) => op1!(S, |a: u64| -> u64 { a.wrapping_add(LOCAL_WINDOW) }),
            (_, false) => op1!(S, |a: u64| -> u64 { a.wrapping_add(PARAM_WINDOW) }),
        };
        self.emit_pair(pair, dest, &[source]);
        Ok(())
    }

    fn const_regions(&self) -> Vec<u64> {
        let m = self.cx.module;
        let constants = m.variables.iter().zip(&self.cx.regions).filter(|(v, _)| v.space == Space::Const);
        constants.filter_map(|(_, r)| *r).collect()
    }

    fn predicates(&mut self) -> Result<()> {
        let i = self.instr();
        let Some(dest) = self.dest(&i.operands[0])? else { return Ok(()) };
        let a = self.source(&i.operands[1], Ty::Pred)?;
        let b = match i.operands.get(2) {
            Some(o) => self.source(o, Ty::Pred)?,
            None => a,
        };
        let mut d = self.blank();
        d.f = match i.op {
            Op::And => generic::pred_and,
            Op::Or => generic::pred_or,
            Op::Xor => generic::pred_xor,
            _ => generic::pred_not,
        };
        (d.d, d.a, d.b) = (dest.at, a.at, b.at);
        d.off = i64::from(a.negated) | i64::from(b.negated) << 1;
        self.emit(d, None);
        Ok(())
    }

    fn selp(&mut self) -> Result<()> {
        let i = self.instr();
        let ty = i.ty().unwrap_or(Ty::B32);
        let Some(dest) = self.dest(&i.operands[0])? else { return Ok(()) };
        let a = self.source(&i.operands[1], ty)?;
        let b = self.source(&i.operands[2], ty)?;
        let p = self.source(&i.operands[3], Ty::Pred)?;
        let mut d = self.blank();
        let pair = if dest.kind == Kind::W64 { select_pair::<u64>() } else { select_pair::<u32>() };
        d.f = pair.pick(self.cx.variant);
        (d.d, d.a, d.b, d.c) = (dest.at, a.at, b.at, p.at);
        d.off = i64::from(p.negated);
        self.emit(d, None);
        Ok(())
    }

    /// `lop3.or.b32 d|p, a, b, c, table, q`: `p` is whether `d` is not zero, combined with `q`.
    fn lop3_with_predicate(&mut self) -> Result<()> {
        let i = self.instr();
        let [to, a, b, c, Operand::Imm(assay_ptx::Imm::Int(table)), q] = &i.operands[..] else {
            return Err(self.no());
        };
        let table = *table;
        let or = i.mods.lop3_bool == Some(assay_ptx::BoolOp::Or);
        let (dest, pred) = match to {
            Operand::Pair(d, p) => (d.map(|r| self.reg(r)), p.map(|r| self.reg(r))),
            o => (self.dest(o)?, None),
        };
        let mut sources = Vec::new();
        for o in [a, b, c] {
            sources.push(self.source(o, Ty::B32)?);
        }
        let value = move |v: [u64; 4]| semantics::int::lop3(v[0], v[1], v[2], table) & 0xffff_ffff;
        // The predicate first: the other result may stand in a source's place.
        let mut with_q = sources.clone();
        with_q.push(self.source(q, Ty::Pred)?);
        let test = move |v: [u64; 4]| {
            let p = value(v) != 0;
            u64::from(if or { p || v[3] != 0 } else { p && v[3] != 0 })
        };
        if pred.is_some() {
            self.emit_lane(LaneOp {
                f: std::sync::Arc::new(test),
                sources: with_q,
                dest: pred,
                second: None,
            });
        }
        self.emit_lane(LaneOp { f: std::sync::Arc::new(value), sources, dest, second: None });
        Ok(())
    }

    fn carry(&mut self) -> Result<()> {
        let i = self.instr();
        let ty = i.ty().ok_or_else(|| self.no())?;
        let op = match (i.op, i.mods.half) {
            (Op::Add | Op::Addc, _) => CarryOp::Add,
            (Op::Sub | Op::Subc, _) => CarryOp::Sub,
            (_, Some(Half::Hi)) => CarryOp::MadHi,
            (_, Some(Half::Lo)) => CarryOp::MadLo,
            _ => return Err(self.no()),
        };
        let dest = self.dest(&i.operands[0])?;
        let a = self.source(&i.operands[1], ty)?;
        let b = self.source(&i.operands[2], ty)?;
        let c = match i.operands.get(3) {
            Some(o) => self.source(o, ty)?,
            None => b,
        };
        let carry = Carry {
            op,
            ty,
            reads: matches!(i.op, Op::Addc | Op::Subc | Op::Madc),
            writes: i.mods.cc,
            a,
            b,
            c,
            dest,
            flag: self.frame.flag,
        };
        let mut d = self.blank();
        d.f = generic::carry_op;
        d.aux = self.cold.len() as u32;
        self.cold.push(Cold::Carry(carry));
        self.emit(d, None);
        Ok(())
    }
}

/// Marks in [`Decoded::aux`] while targets are unresolved.
pub(super) const TARGET_IN_OFF: u32 = u32::MAX;
pub(super) const SKIP_ONE: u32 = u32::MAX - 1;

fn bits_type(bits: u64) -> Option<Ty> {
    Some(match bits {
        8 => Ty::B8,
        16 => Ty::B16,
        32 => Ty::B32,
        64 => Ty::B64,
        _ => return None,
    })
}

/// Which part of the clock a special register is; `None` for others.
fn clock_part(s: Special) -> Option<i64> {
    Some(match s {
        Special::Clock | Special::GlobaltimerLo => 0,
        Special::ClockHi | Special::GlobaltimerHi => 1,
        Special::Clock64 | Special::Globaltimer => 2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clocks_are_clocks() {
        let n = Special::ALL.iter().filter(|s| clock_part(**s).is_some()).count();
        assert_eq!(n, 6);
    }
}
