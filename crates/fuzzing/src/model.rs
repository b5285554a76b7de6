//! What a program must leave, computed by plain code: integers and binary32 arithmetic, control flow, memory, barriers
//! and warp operations, thread by thread. It shares nothing with the device.

use crate::program::{
    AREA_BYTES, Access, CELLS, Class, Function, IN_BYTES, Joint, Kind, Offset, Place, Program, Reg,
    SHARED_CELLS, SLICE_BYTES, SPREAD, Src, Stmt, Test,
};

/// An operation that the model knows.
pub(crate) struct Row {
    pub(crate) spelling: &'static str,
    pub(crate) dest: Class,
    pub(crate) sources: &'static [Class],
    /// Integers: sources may be literals.
    pub(crate) literals: bool,
    f: fn([u64; 3]) -> u64,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.spelling)
    }
}

const fn row(spelling: &'static str, dest: Class, sources: &'static [Class], f: fn([u64; 3]) -> u64) -> Row {
    Row { spelling, dest, sources, literals: true, f }
}

const fn float(spelling: &'static str, sources: &'static [Class], f: fn([u64; 3]) -> u64) -> Row {
    Row { spelling, dest: Class::R, sources, literals: false, f }
}

fn s(v: u64) -> i32 {
    v as u32 as i32
}

fn f(v: u64) -> f32 {
    f32::from_bits(v as u32)
}

/// NaN results are canonical.
fn bits(v: f32) -> u64 {
    u64::from(if v.is_nan() { 0x7fff_ffff } else { v.to_bits() })
}

use Class::{D, H, P, R};

/// Source: PTX ISA, "Instruction Set".
pub(crate) const ROWS: &[Row] = &[
    row("add.u32", R, &[R, R], |[a, b, _]| a + b),
    row("sub.s32", R, &[R, R], |[a, b, _]| a.wrapping_sub(b)),
    row("xor.b32", R, &[R, R], |[a, b, _]| a ^ b),
    row("mul.lo.u32", R, &[R, R], |[a, b, _]| a.wrapping_mul(b)),
    row("mad.lo.s32", R, &[R, R, R], |[a, b, c]| a.wrapping_mul(b).wrapping_add(c)),
    row("setp.lt.u32", P, &[R, R], |[a, b, _]| u64::from(a < b)),
    row("setp.ge.s32", P, &[R, R], |[a, b, _]| u64::from(s(a) >= s(b))),
    row("setp.ne.u32", P, &[R, R], |[a, b, _]| u64::from(a != b)),
    row("selp.b32", R, &[R, R, P], |[a, b, p]| if p != 0 { a } else { b }),
    row("and.b32", R, &[R, R], |[a, b, _]| a & b),
    row("or.b32", R, &[R, R], |[a, b, _]| a | b),
    row("shl.b32", R, &[R, R], |[a, b, _]| if b > 31 { 0 } else { a << b }),
    row("shr.u32", R, &[R, R], |[a, b, _]| if b > 31 { 0 } else { a >> b }),
    row("shr.s32", R, &[R, R], |[a, b, _]| (s(a) >> b.min(31)) as u64),
    row("mul.hi.u32", R, &[R, R], |[a, b, _]| (a * b) >> 32),
    row("mul.hi.s32", R, &[R, R], |[a, b, _]| ((i64::from(s(a)) * i64::from(s(b))) >> 32) as u64),
    row("min.s32", R, &[R, R], |[a, b, _]| s(a).min(s(b)) as u64),
    row("max.u32", R, &[R, R], |[a, b, _]| a.max(b)),
    row("sad.u32", R, &[R, R, R], |[a, b, c]| a.abs_diff(b) + c),
    row("bfe.u32", R, &[R, R, R], |[a, p, n]| {
        let (p, n) = (p & 255, n & 255);
        if p > 31 || n == 0 { 0 } else { a >> p & ((1u64 << n.min(32)) - 1) }
    }),
    row("shf.l.wrap.b32", R, &[R, R, R], |[a, b, n]| ((b << 32 | a) << (n & 31)) >> 32),
    row("abs.s32", R, &[R], |[a, ..]| s(a).wrapping_abs() as u64),
    row("neg.s32", R, &[R], |[a, ..]| s(a).wrapping_neg() as u64),
    row("not.b32", R, &[R], |[a, ..]| !a),
    row("popc.b32", R, &[R], |[a, ..]| u64::from(a.count_ones())),
    row("clz.b32", R, &[R], |[a, ..]| u64::from((a as u32).leading_zeros())),
    row("brev.b32", R, &[R], |[a, ..]| u64::from((a as u32).reverse_bits())),
    row("and.pred", P, &[P, P], |[a, b, _]| a & b),
    row("xor.pred", P, &[P, P], |[a, b, _]| a ^ b),
    row("not.pred", P, &[P], |[a, ..]| a ^ 1),
    row("setp.lt.and.s32", P, &[R, R, P], |[a, b, p]| u64::from(s(a) < s(b)) & p),
    row("setp.gt.s64", P, &[D, D], |[a, b, _]| u64::from(a as i64 > b as i64)),
    row("setp.eq.u16", P, &[H, H], |[a, b, _]| u64::from(a == b)),
    row("add.u64", D, &[D, D], |[a, b, _]| a.wrapping_add(b)),
    row("sub.u64", D, &[D, D], |[a, b, _]| a.wrapping_sub(b)),
    row("mul.lo.u64", D, &[D, D], |[a, b, _]| a.wrapping_mul(b)),
    row("mul.wide.u32", D, &[R, R], |[a, b, _]| a * b),
    row("mul.wide.s32", D, &[R, R], |[a, b, _]| (i64::from(s(a)) * i64::from(s(b))) as u64),
    row("mad.wide.u32", D, &[R, R, D], |[a, b, c]| (a * b).wrapping_add(c)),
    row("xor.b64", D, &[D, D], |[a, b, _]| a ^ b),
    row("shl.b64", D, &[D, R], |[a, b, _]| if b > 63 { 0 } else { a << b }),
    row("shr.s64", D, &[D, R], |[a, b, _]| (a as i64 >> b.min(63)) as u64),
    row("min.u64", D, &[D, D], |[a, b, _]| a.min(b)),
    row("selp.b64", D, &[D, D, P], |[a, b, p]| if p != 0 { a } else { b }),
    row("cvt.u32.u64", R, &[D], |[a, ..]| a),
    row("cvt.u64.u32", D, &[R], |[a, ..]| a),
    row("cvt.s64.s32", D, &[R], |[a, ..]| i64::from(s(a)) as u64),
    row("cvt.u16.u32", H, &[R], |[a, ..]| a),
    row("cvt.u32.u16", R, &[H], |[a, ..]| a),
    row("cvt.s32.s16", R, &[H], |[a, ..]| i64::from(a as u16 as i16) as u64),
    row("cvt.s32.s8", R, &[R], |[a, ..]| i64::from(a as u8 as i8) as u64),
    row("add.s16", H, &[H, H], |[a, b, _]| a + b),
    row("mul.lo.u16", H, &[H, H], |[a, b, _]| a * b),
    row("mul.wide.u16", R, &[H, H], |[a, b, _]| a * b),
    row("shr.s16", H, &[H, R], |[a, b, _]| (i64::from(a as u16 as i16) >> b.min(15)) as u64),
    row("xor.b16", H, &[H, H], |[a, b, _]| a ^ b),
    float("add.rn.f32", &[R, R], |[a, b, _]| bits(f(a) + f(b))),
    float("sub.rn.f32", &[R, R], |[a, b, _]| bits(f(a) - f(b))),
    float("mul.rn.f32", &[R, R], |[a, b, _]| bits(f(a) * f(b))),
    float("fma.rn.f32", &[R, R, R], |[a, b, c]| bits(f(a).mul_add(f(b), f(c)))),
    float("div.rn.f32", &[R, R], |[a, b, _]| bits(f(a) / f(b))),
    float("sqrt.rn.f32", &[R], |[a, ..]| bits(f(a).sqrt())),
    float("cvt.rn.f32.s32", &[R], |[a, ..]| bits(s(a) as f32)),
    float("cvt.rn.f32.u32", &[R], |[a, ..]| bits(a as f32)),
    float("selp.f32", &[R, R, P], |[a, b, p]| if p != 0 { a } else { b }),
];

/// A thread's registers and local memory in one function.
#[derive(Clone)]
struct Frame {
    p: [u64; 6],
    h: [u64; 4],
    r: [u64; 10],
    d: [u64; 6],
    local: [u8; AREA_BYTES],
    gone: bool,
}

impl Frame {
    fn empty() -> Frame {
        Frame { p: [0; 6], h: [0; 4], r: [0; 10], d: [0; 6], local: [0; AREA_BYTES], gone: false }
    }

    fn get(&self, reg: Reg) -> u64 {
        let n = usize::from(reg.n);
        match reg.class {
            P => self.p[n],
            H => self.h[n],
            R => self.r[n],
            D => self.d[n],
        }
    }

    fn set(&mut self, reg: Reg, v: u64) {
        let n = usize::from(reg.n);
        match reg.class {
            P => self.p[n] = v & 1,
            H => self.h[n] = v & 0xffff,
            R => self.r[n] = v & 0xffff_ffff,
            D => self.d[n] = v,
        }
    }

    fn source(&self, s: Src) -> u64 {
        match s {
            Src::Reg(r) => self.get(r),
            Src::Lit(v) => v,
        }
    }

    fn test(&self, t: Test) -> bool {
        (self.get(t.p) != 0) != t.negated
    }

    fn passes(&self, guard: Option<Test>) -> bool {
        guard.is_none_or(|g| self.test(g))
    }

    fn spill(&mut self) {
        for k in 0..AREA_BYTES / 4 {
            let v = self.r[k % self.r.len()] as u32;
            self.local[4 * k..4 * k + 4].copy_from_slice(&v.to_le_bytes());
        }
    }
}

fn read(bytes: &[u8], at: usize, len: usize) -> u64 {
    (0..len).fold(0, |v, k| v | u64::from(bytes[at + k]) << (8 * k))
}

/// What a launch leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// All threads' parts.
    pub io: Vec<u8>,
    /// The cells.
    pub acc: Vec<u8>,
}

struct Machine<'a> {
    program: &'a Program,
    input: &'a [u8],
    io: Vec<u8>,
    acc: [u64; CELLS],
    block: usize,
    shared_cells: [u32; SHARED_CELLS],
}

/// What a program of modelled operations leaves, launched once with `first` = 0.
pub(crate) fn evaluate(program: &Program, input: &[u8], io: &[u8]) -> Left {
    let mut m = Machine {
        program,
        input,
        io: io.to_vec(),
        acc: [0; CELLS],
        block: 0,
        shared_cells: [0; SHARED_CELLS],
    };
    for block in 0..program.blocks as usize {
        m.block = block;
        m.shared_cells = [0; SHARED_CELLS];
        m.run_block();
    }
    Left { io: m.io, acc: m.acc.iter().flat_map(|c| c.to_le_bytes()).collect() }
}

impl Machine<'_> {
    fn id(&self, thread: usize) -> usize {
        self.block * self.program.threads as usize + thread
    }

    fn run_block(&mut self) {
        let threads = self.program.threads as usize;
        let mut frames: Vec<Frame> = (0..threads)
            .map(|t| {
                let mut frame = Frame::empty();
                let mut at = (0..).map(|j| (self.id(t) * SPREAD + 8 * j) & (IN_BYTES - 1) & !7);
                let mut next = |len: usize| read(self.input, at.next().unwrap_or(0), len);
                frame.r.iter_mut().for_each(|r| *r = next(4));
                frame.d.iter_mut().for_each(|d| *d = next(8));
                frame.h.iter_mut().for_each(|h| *h = next(2));
                frame.p.iter_mut().for_each(|p| *p = next(1) & 1);
                frame.spill();
                frame
            })
            .collect();
        let all: Vec<usize> = (0..threads).collect();
        let program = self.program;
        self.list(&program.body, &all, &mut frames);
        for (t, frame) in frames.iter().enumerate().filter(|(_, f)| !f.gone) {
            let from = self.id(t) * SLICE_BYTES + AREA_BYTES;
            let mut out: Vec<u8> = frame.d.iter().flat_map(|d| d.to_le_bytes()).collect();
            out.extend(frame.r.iter().flat_map(|r| (*r as u32).to_le_bytes()));
            out.extend(frame.h.iter().flat_map(|h| (*h as u16).to_le_bytes()));
            out.extend(frame.p.iter().map(|p| *p as u8));
            self.io[from..from + out.len()].copy_from_slice(&out);
            if self.program.kind == Kind::Together {
                let at = from + out.len().next_multiple_of(4);
                let v = self.shared_cells[t % SHARED_CELLS];
                self.io[at..at + 4].copy_from_slice(&v.to_le_bytes());
            }
        }
    }

    fn list(&mut self, list: &[Stmt], active: &[usize], frames: &mut [Frame]) {
        for s in list {
            let here: Vec<usize> = active.iter().copied().filter(|t| !frames[*t].gone).collect();
            if here.is_empty() {
                return;
            }
            self.statement(s, &here, frames);
        }
    }

    fn statement(&mut self, s: &Stmt, active: &[usize], frames: &mut [Frame]) {
        match s {
            Stmt::Alu { row, dest, sources, guard } => {
                for t in active {
                    let frame = &mut frames[*t];
                    if frame.passes(*guard) {
                        let mut v = [0; 3];
                        for (v, (s, class)) in v.iter_mut().zip(sources.iter().zip(row.sources)) {
                            *v = frame.source(*s) & (u64::MAX >> (64 - class.bits()));
                        }
                        frame.set(*dest, (row.f)(v));
                    }
                }
            }
            Stmt::If { test, then, els, .. } => {
                let (yes, no): (Vec<usize>, Vec<usize>) =
                    active.iter().copied().partition(|t| frames[*t].test(*test));
                self.list(then, &yes, frames);
                self.list(els, &no, frames);
            }
            Stmt::Loop { trips, body, leave, .. } => {
                let trips = |f: &Frame| match trips {
                    Src::Lit(n) => *n,
                    Src::Reg(r) => f.get(*r) & 3,
                };
                let mut left: Vec<(usize, u64)> = active.iter().map(|t| (*t, trips(&frames[*t]))).collect();
                loop {
                    left.retain(|(_, n)| *n > 0);
                    if left.is_empty() {
                        return;
                    }
                    let inside: Vec<usize> = left.iter().map(|(t, _)| *t).collect();
                    self.list(body, &inside, frames);
                    left.iter_mut().for_each(|(_, n)| *n -= 1);
                    left.retain(|(t, _)| !frames[*t].gone && leave.is_none_or(|l| !frames[*t].test(l)));
                }
            }
            Stmt::Switch { index, arms } => {
                // Before any arm runs, since arms may write the register.
                let chosen: Vec<usize> =
                    active.iter().map(|t| frames[*t].get(*index) as usize % arms.len()).collect();
                for (k, arm) in arms.iter().enumerate() {
                    let here: Vec<usize> =
                        active.iter().zip(&chosen).filter(|(_, c)| **c == k).map(|(t, _)| *t).collect();
                    self.list(arm, &here, frames);
                }
            }
            Stmt::Tangle { knots, fuel, .. } => {
                for t in active {
                    let (mut at, mut left) = (0, *fuel);
                    loop {
                        left -= 1;
                        if left == 0 || at >= knots.len() {
                            break;
                        }
                        let knot = &knots[at];
                        self.list(&knot.code, &[*t], frames);
                        if frames[*t].gone {
                            break;
                        }
                        at = match knot.to {
                            Some((test, to)) if frames[*t].test(test) => to,
                            _ => knot.otherwise,
                        };
                    }
                }
            }
            Stmt::Access(a) => {
                for t in active {
                    if frames[*t].passes(a.guard) {
                        self.access(a, *t, &mut frames[*t]);
                    }
                }
            }
            Stmt::Exchange { dest, source, distance, .. } => {
                let threads = self.program.threads as usize;
                let sent: Vec<u64> = frames.iter().map(|f| f.get(*source)).collect();
                for t in active {
                    frames[*t].set(*dest, sent[(*t + *distance as usize) % threads]);
                }
            }
            Stmt::BarRed { kind, dest, test } => {
                let yes = active.iter().filter(|t| frames[**t].test(*test)).count();
                let v = match kind {
                    0 => yes as u64,
                    1 => u64::from(yes == active.len()),
                    _ => u64::from(yes > 0),
                };
                active.iter().for_each(|t| frames[*t].set(*dest, v));
            }
            Stmt::Barrier(_) => {}
            Stmt::Joint { op, .. } => {
                for warp in active.chunk_by(|a, b| a / 32 == b / 32) {
                    joint(op, warp, frames);
                }
            }
            Stmt::Call { function, dest, x, y } => {
                let f: &Function = &self.program.functions[*function];
                let mut inner = vec![Frame::empty(); frames.len()];
                for t in active {
                    let (frame, x, y) = (&mut inner[*t], frames[*t].get(*x), frames[*t].get(*y));
                    for n in 0..10u64 {
                        frame.r[n as usize] = x.wrapping_add(0x9e37_79b9 * n) & 0xffff_ffff;
                    }
                    for n in 0..6u64 {
                        frame.d[n as usize] = y.wrapping_add(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(n));
                    }
                    for n in 0..4 {
                        frame.h[n] = frame.r[n] & 0xffff;
                    }
                    for n in 0..6 {
                        frame.p[n] = u64::from(frame.r[n] < 0x8000_0000);
                    }
                    frame.spill();
                }
                self.list(&f.body, active, &mut inner);
                for t in active {
                    frames[*t].set(*dest, inner[*t].r[0]);
                }
            }
            Stmt::Recurse { dest, x, n } => {
                fn rec(x: u32, n: u32) -> u32 {
                    match n & 7 {
                        0 => x,
                        k => rec(x.wrapping_mul(5).wrapping_add(n), k - 1).wrapping_add(x),
                    }
                }
                for t in active {
                    let (a, b) = (frames[*t].get(*x) as u32, frames[*t].get(*n) as u32);
                    frames[*t].set(*dest, u64::from(rec(a, b)));
                }
            }
            Stmt::Atomic { cell, shared, source } => {
                for t in active {
                    let v = frames[*t].get(*source);
                    if *shared {
                        let c = &mut self.shared_cells[*cell];
                        let v = v as u32;
                        *c = match cell {
                            0 => c.wrapping_add(v),
                            1 => (*c).max(v),
                            2 => *c ^ v,
                            _ => (*c as i32).min(v as i32) as u32,
                        };
                    } else {
                        let c = &mut self.acc[*cell];
                        let low = *c as u32;
                        *c = match cell {
                            0 => u64::from(low.wrapping_add(v as u32)),
                            1 => u64::from((low as i32).min(v as i32) as u32),
                            2 => (*c).max(v),
                            3 => u64::from(low & v as u32),
                            4 => *c | v,
                            5 => u64::from(low ^ v as u32),
                            6 => c.wrapping_add(v),
                            _ => (*c as i64).max(v as i64) as u64,
                        };
                    }
                }
            }
            Stmt::Exit(test) => {
                for t in active {
                    if frames[*t].test(*test) {
                        frames[*t].gone = true;
                    }
                }
            }
            Stmt::Table { .. } | Stmt::Wild(_) => {}
        }
    }

    fn access(&mut self, a: &Access, t: usize, frame: &mut Frame) {
        let (size, area, id) = (a.bytes(), a.area(), self.id(t));
        let at = match a.offset {
            Offset::Constant(k) => k,
            Offset::Stride => (id * size) & (area - size),
            Offset::Reg(r, false) => frame.get(r) as usize & (area - size),
            Offset::Reg(r, true) => (frame.get(r) as usize & (area / 2 - size)) + area / 2,
        };
        let element = a.element_bytes();
        for (k, reg) in a.regs.iter().enumerate() {
            let at = at + k * element;
            if a.store {
                let v = frame.get(*reg).to_le_bytes();
                let place = match a.place {
                    Place::Local => &mut frame.local[at..],
                    Place::In | Place::Io => &mut self.io[id * SLICE_BYTES + at..],
                };
                place[..element].copy_from_slice(&v[..element]);
            } else {
                let raw = match a.place {
                    Place::In => read(self.input, at, element),
                    Place::Io => read(&self.io, id * SLICE_BYTES + at, element),
                    Place::Local => read(&frame.local, at, element),
                };
                let up = 64 - 8 * element as u32;
                let v = if a.ty.starts_with('s') { (((raw << up) as i64) >> up) as u64 } else { raw };
                frame.set(*reg, v);
            }
        }
    }
}

fn joint(op: &Joint, warp: &[usize], frames: &mut [Frame]) {
    let bit = |t: usize| 1u64 << (t % 32);
    let ballot =
        |t: Test, frames: &[Frame]| warp.iter().filter(|k| frames[**k].test(t)).fold(0, |m, k| m | bit(*k));
    let mask = warp.iter().fold(0, |m, k| m | bit(*k));
    let all = |d: Reg, v: u64, frames: &mut [Frame]| warp.iter().for_each(|t| frames[*t].set(d, v));
    match *op {
        Joint::Ballot(d, t) => all(d, ballot(t, frames), frames),
        Joint::All(d, t) => all(d, u64::from(ballot(t, frames) == mask), frames),
        Joint::Any(d, t) => all(d, u64::from(ballot(t, frames) != 0), frames),
        Joint::Uni(d, t) => {
            let b = ballot(t, frames);
            all(d, u64::from(b == 0 || b == mask), frames);
        }
        Joint::MatchAny(d, a) => {
            let v: Vec<u64> = warp.iter().map(|t| frames[*t].get(a) & 3).collect();
            for (k, t) in warp.iter().enumerate() {
                let like = warp.iter().zip(&v).filter(|(_, w)| **w == v[k]).fold(0, |m, (t, _)| m | bit(*t));
                frames[*t].set(d, like);
            }
        }
        Joint::MatchAll(d, p, a) => {
            let v: Vec<u64> = warp.iter().map(|t| frames[*t].get(a) & 1).collect();
            let same = v.iter().all(|w| *w == v[0]);
            all(d, if same { mask } else { 0 }, frames);
            all(p, u64::from(same), frames);
        }
        Joint::Redux(op, d, a) => {
            let v: Vec<u32> = warp.iter().map(|t| frames[*t].get(a) as u32).collect();
            let signed =
                |pick: fn(i32, i32) -> i32| v.iter().map(|x| *x as i32).reduce(pick).unwrap_or(0) as u32;
            let folded = |pick: fn(u32, u32) -> u32| v.iter().copied().reduce(pick).unwrap_or(0);
            let out = match op {
                "add.u32" => folded(u32::wrapping_add),
                "min.s32" => signed(i32::min),
                "max.s32" => signed(i32::max),
                "min.u32" => folded(u32::min),
                "max.u32" => folded(u32::max),
                "and.b32" => folded(|x, y| x & y),
                "or.b32" => folded(|x, y| x | y),
                _ => folded(|x, y| x ^ y),
            };
            all(d, u64::from(out), frames);
        }
        Joint::First(d, a) => {
            let v = frames[warp[0]].get(a);
            all(d, v, frames);
        }
        Joint::Shuffle(mode, d, p, a, by, c) => {
            let sent: Vec<u64> = warp.iter().map(|t| frames[*t].get(a)).collect();
            let by: Vec<u32> = warp.iter().map(|t| frames[*t].source(by) as u32 & 31).collect();
            // Source: PTX ISA, `shfl.sync`, its pseudo-code.
            let (segment, clamp) = (c >> 8 & 31, c & 31);
            for (k, t) in warp.iter().enumerate() {
                let lane = k as u32;
                let most = (lane & segment) | (clamp & !segment);
                let least = lane & segment;
                let (from, inside) = match mode {
                    "up" => {
                        let j = lane as i32 - by[k] as i32;
                        (j as u32, j >= most as i32)
                    }
                    "down" => (lane + by[k], lane + by[k] <= most),
                    "bfly" => (lane ^ by[k], lane ^ by[k] <= most),
                    _ => {
                        let j = least | (by[k] & !segment & 31);
                        (j, j <= most)
                    }
                };
                let v = sent[if inside { from as usize } else { k }];
                frames[*t].set(d, v);
                frames[*t].set(p, u64::from(inside));
            }
        }
    }
}
