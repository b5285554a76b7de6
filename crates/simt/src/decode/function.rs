//! Decoding a function's body.

use assay_ptx::{
    AtomOp, Base, FuncId, Function, FunctionKind, Half, Instr, Op, Operand, RegId, Scope, Semantics, Space,
    Special, SymbolRef, Ty,
};

use super::fuse::{self, Tag};
use super::operands::{Frame, kind_of};
use super::{BUILTINS, Context, LocalFrame, invalid, local_frame, unsupported};
use crate::code::{
    BarOp, CallOp, Callee, Carry, CarryOp, Code, Cold, Collective, Home, Kind, LaneOp, MemKind, MemOp, Slot,
    Value, WarpOp,
};
use crate::error::LoadError;
use crate::handlers::{alu, chain, control, generic, memory};
use crate::lanes::{Pair, op1, op2};
use crate::liveness::defs_uses;
use crate::memory::{FUNCTION_WINDOW, LOCAL_WINDOW, OFFSET_BITS, OFFSET_MASK, SHARED_WINDOW};
use crate::semantics::{self, Scalar, mask, sext};
use crate::warp::{Decoded, Handler, NEGATED};

/// Generic addresses of kernel parameters.
pub(crate) const PARAM_WINDOW: u64 = 4 << OFFSET_BITS;

/// One decoded instruction in both versions.
struct Emitted {
    d: Decoded,
    /// The handler under detectors, where it differs.
    checked: Option<Handler>,
    /// PTX instruction.
    origin: u32,
    tag: Tag,
}

struct Decoder<'c, 'm> {
    cx: &'c Context<'m>,
    f: &'m Function,
    id: FuncId,
    frame: Frame,
    local: LocalFrame,
    out: Vec<Emitted>,
    cold: Vec<Cold>,
    /// Classifications that hold here: base register's offset and bytes per lane.
    known: Vec<(u32, u64)>,
    narrow: Vec<(u32, u32)>,
    at: usize,
}

type Result<T> = std::result::Result<T, LoadError>;

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
        at: 0,
    };
    decoder.body()?;
    Ok(decoder.finish())
}

impl<'m> Decoder<'_, 'm> {
    fn instr(&self) -> &'m Instr {
        &self.f.body[self.at]
    }

    fn no(&self) -> LoadError {
        unsupported(self.cx.module, self.instr(), None)
    }

    fn no_because(&self, what: &str) -> LoadError {
        unsupported(self.cx.module, self.instr(), Some(what))
    }

    fn bad(&self, what: &str) -> LoadError {
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
        for (at, leads) in leader.iter().enumerate().take(self.f.body.len()) {
            self.at = at;
            if *leads {
                self.known.clear();
            }
            starts.push(self.out.len() as u32);
            self.one()?;
            for r in defs_uses(self.instr()).0 {
                let slot = self.frame.registers[r];
                let end = slot.at + if slot.kind == Kind::W64 { 256 } else { 128 };
                self.known.retain(|(base, _)| *base >= end || base + 256 <= slot.at);
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
                d.f = chain::pair().pick(self.cx.variant);
                (d.a, d.b, d.class, d.e) = (c.bases.0, c.bases.1, c.classes.0, c.classes.1);
                (d.c, d.d) = (c.addend, c.dest);
                d.aux = self.cold.len() as u32;
                self.cold.push(Cold::Chain(c.op.clone()));
                self.out.push(Emitted {
                    d,
                    checked: Some(generic::nothing),
                    origin: e.origin,
                    tag: Tag::Other,
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
                Some(h) if std::ptr::fn_addr_eq(e.d.f, generic::guarded as Handler) => {
                    Decoded { g: h, ..e.d }
                }
                Some(h) => Decoded { f: h, ..e.d },
                None => e.d,
            })
            .collect();
        let lines = self
            .out
            .iter()
            .map(|e| f.body[e.origin as usize].loc.map_or((0, 0), |l| (l.line, l.file)))
            .collect();
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
            template: self.frame.template(),
            params: homes(&f.params, &self.local.params),
            returns: homes(&f.returns, &self.local.returns),
            specials: self.frame.specials,
            cold: self.cold,
            local_bytes: self.local.bytes,
            narrow: self.narrow,
            first_site: 0,
        }
    }

    fn blank(&self) -> Decoded {
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

    fn guard_bits(&self) -> Option<u32> {
        let g = self.instr().guard?;
        Some(self.frame.registers[g.reg.index()].at | if g.negated { NEGATED } else { 0 })
    }

    /// Emits an instruction that goes on to the next one.
    fn emit(&mut self, mut d: Decoded, checked: Option<Handler>) {
        if let Some(guard) = self.guard_bits() {
            d.guard = guard;
            d.g = d.f;
            d.f = generic::guarded;
        }
        self.out.push(Emitted { d, checked, origin: self.at as u32, tag: Tag::Other });
    }

    /// Emits an instruction for the executor; a guard becomes a branch around it, since it may wait or leave.
    fn emit_cold(&mut self, cold: Cold) {
        if let Some(guard) = self.guard_bits() {
            let mut d = self.blank();
            d.f = control::branch_if;
            d.guard = guard ^ NEGATED;
            d.aux = SKIP_ONE;
            self.out.push(Emitted { d, checked: None, origin: self.at as u32, tag: Tag::Other });
        }
        let mut d = self.blank();
        d.f = generic::to_cold;
        d.aux = self.cold.len() as u32;
        self.cold.push(cold);
        self.out.push(Emitted { d, checked: None, origin: self.at as u32, tag: Tag::Other });
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

    fn reg(&self, r: RegId) -> Slot {
        self.frame.registers[r.index()]
    }

    fn reg_bits(&self, o: &Operand) -> u64 {
        match o {
            Operand::Reg(r) => self.f.reg_ty(*r).bits(),
            _ => 64,
        }
    }

    /// The address of a symbol within its space; `None` if it depends on the frame.
    fn symbol(&self, s: SymbolRef) -> Result<Option<u64>> {
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
    fn local_offset(&self, s: SymbolRef) -> Option<u64> {
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
    fn source(&mut self, o: &Operand, ty: Ty) -> Result<Slot> {
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
    fn dest(&self, o: &Operand) -> Result<Option<Slot>> {
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
            Op::Addc | Op::Subc | Op::Madc => self.carry(),
            Op::Add | Op::Sub | Op::Mad if m.cc => self.carry(),
            Op::BarrierClusterArrive
            | Op::BarrierClusterWait
            | Op::CpAsync
            | Op::CpAsyncCommitGroup
            | Op::CpAsyncWaitAll
            | Op::CpAsyncWaitGroup
            | Op::Getctarank
            | Op::Griddepcontrol
            | Op::Ldmatrix
            | Op::Mapa
            | Op::Mma
            | Op::Movmatrix
            | Op::Stmatrix
            | Op::WmmaLoad
            | Op::WmmaMma
            | Op::WmmaStore => Err(self.no()),
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
        d.f = if dest.kind == Kind::W64 { generic::select64 } else { generic::select32 };
        (d.d, d.a, d.b, d.c) = (dest.at, a.at, b.at, p.at);
        d.off = i64::from(p.negated);
        self.emit(d, None);
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

    fn bra(&mut self) -> Result<()> {
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
        self.out.push(Emitted { d, checked: None, origin: self.at as u32, tag: Tag::Other });
        self.known.clear();
        Ok(())
    }

    fn barrier(&mut self) -> Result<()> {
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
        self.emit_cold(Cold::Bar(BarOp { id, count, arrive: i.op == Op::BarArrive, red, aligned }));
        Ok(())
    }

    fn warp_op(&mut self) -> Result<()> {
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
        self.emit_cold(Cold::Warp(WarpOp { op, dest, pred, sources, members }));
        Ok(())
    }

    fn call(&mut self) -> Result<()> {
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

    fn address(&mut self, o: &Operand, space: Option<Space>) -> Result<(Slot, i64, bool)> {
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
    fn space(&self, o: &Operand, written: Option<Space>) -> Option<Space> {
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

    fn access(&mut self) -> Result<()> {
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
        };
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
            if !strong {
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
        self.cold.push(Cold::Memory(op));
        if !store {
            for (k, o) in elements.iter().enumerate() {
                if self.reg_bits(o) == 16 {
                    self.narrow.push((self.out.len() as u32, k as u32));
                }
            }
        }
        self.emit(d, Some(checked));
        let word = !store && shared && size == 4 && !strong && i.guard.is_none() && d.class != 0;
        if let (true, [Operand::Reg(r)], Some(e)) = (word, &elements[..], self.out.last_mut()) {
            let cached = cached_form;
            e.tag = Tag::Load { reg: r.0, base: base.at, offset, class: d.class, cached };
        }
        Ok(())
    }

    fn atomic(&mut self) -> Result<()> {
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
        };
        let mut d = self.blank();
        d.f = generic::to_memory;
        d.aux = self.cold.len() as u32;
        self.cold.push(Cold::Memory(mem));
        self.emit(d, Some(generic::to_memory));
        Ok(())
    }
}

/// Marks in [`Decoded::aux`] while targets are unresolved.
const TARGET_IN_OFF: u32 = u32::MAX;
const SKIP_ONE: u32 = u32::MAX - 1;

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
