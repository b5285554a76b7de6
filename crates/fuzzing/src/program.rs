//! Random valid PTX: a tree of statements made from choices, and its text.
//!
//! A program's kernel is `k(in, io, acc, first)`. Thread number `first + blockIdx * blockDim + threadIdx` reads `in`
//! ([`IN_BYTES`] bytes), owns [`SLICE_BYTES`] of `io` (memory for loads and stores, then its registers at the end), and
//! adds to the cells of `acc`, one commutative operation each. So what a program leaves does not depend on the order of
//! its threads, whatever the choices; only [`Kind::Wild`] breaks the rules.

use std::fmt;
use std::fmt::Write as _;

use crate::choices::Choices;
use crate::model::{ROWS, Row};
use crate::vocabulary;

/// Bytes of the input buffer.
pub const IN_BYTES: usize = 1024;
/// Bytes of a thread's part of `io`.
pub const SLICE_BYTES: usize = 192;
/// Bytes of it for loads and stores; of local memory too.
pub const AREA_BYTES: usize = 64;
/// 64-bit cells of `acc`.
pub const CELLS: usize = 8;
/// 32-bit cells of shared memory for atomics.
pub const SHARED_CELLS: usize = 4;
/// Distance between what neighbouring threads read first.
pub(crate) const SPREAD: usize = 56;

pub(crate) const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A class of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Predicates.
    P,
    /// 16 bits.
    H,
    /// 32 bits.
    R,
    /// 64 bits.
    D,
}

impl Class {
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Class::P => "p",
            Class::H => "h",
            Class::R => "r",
            Class::D => "d",
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Class::P => 1,
            Class::H => 16,
            Class::R => 32,
            Class::D => 64,
        }
    }

    /// Registers of the class.
    pub(crate) fn count(self) -> usize {
        match self {
            Class::P | Class::D => 6,
            Class::H => 4,
            Class::R => 10,
        }
    }
}

/// A register of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg {
    /// Its class.
    pub class: Class,
    /// Its number.
    pub n: u8,
}

impl Reg {
    pub(crate) fn new(class: Class, n: usize) -> Reg {
        Reg { class, n: n as u8 }
    }

    fn any(c: &mut Choices<'_>, class: Class) -> Reg {
        Reg::new(class, c.below(class.count()))
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}{}", self.class.letter(), self.n)
    }
}

/// The registers of a function: those of programs, then what the text itself needs.
pub(crate) fn declarations() -> String {
    let mut out = String::new();
    for (class, ty) in [(Class::P, "pred"), (Class::H, "b16"), (Class::R, "b32"), (Class::D, "b64")] {
        let _ = writeln!(out, ".reg .{ty} %{}<{}>;", class.letter(), class.count());
    }
    out + ".reg .pred %q<2>;\n.reg .b32 %y<8>;\n.reg .b32 %c<8>;\n.reg .b32 %m<8>;\n.reg .b64 %x<8>;\n"
}

/// A source operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Src {
    Reg(Reg),
    Lit(u64),
}

impl fmt::Display for Src {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Src::Reg(r) => r.fmt(f),
            Src::Lit(v) => v.fmt(f),
        }
    }
}

/// A predicate, perhaps negated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub(crate) p: Reg,
    pub(crate) negated: bool,
}

impl Test {
    fn any(c: &mut Choices<'_>) -> Test {
        Test { p: Reg::any(c, Class::P), negated: c.chance(90) }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.negated { "!" } else { "" }, self.p)
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The input, by all threads.
    In,
    /// The thread's part of `io`.
    Io,
    /// Local memory.
    Local,
}

/// An address within a place, a multiple of the access's size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offset {
    /// The same for all threads.
    Constant(usize),
    /// Consecutive in threads, in `in` only.
    Stride,
    /// Masked out of a register; the flag adds half the place as a constant.
    Reg(Reg, bool),
}

/// A load or store of one to four elements.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) store: bool,
    pub(crate) place: Place,
    /// Element type.
    pub(crate) ty: &'static str,
    pub(crate) regs: Vec<Reg>,
    pub(crate) offset: Offset,
    pub(crate) guard: Option<Test>,
    /// Through a generic address.
    pub(crate) generic: bool,
    /// `.volatile`, `.nc`, …
    pub(crate) how: &'static str,
}

impl Access {
    pub(crate) fn element_bytes(&self) -> usize {
        self.ty[1..].parse::<usize>().map_or(4, |bits| bits / 8)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.element_bytes() * self.regs.len()
    }

    pub(crate) fn area(&self) -> usize {
        match self.place {
            Place::In => IN_BYTES,
            Place::Io | Place::Local => AREA_BYTES,
        }
    }
}

/// What the lanes of a mask do together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joint {
    Ballot(Reg, Test),
    All(Reg, Test),
    Any(Reg, Test),
    Uni(Reg, Test),
    /// Of the low two bits.
    MatchAny(Reg, Reg),
    MatchAll(Reg, Reg, Reg),
    Redux(&'static str, Reg, Reg),
    /// From the lowest lane of the mask.
    First(Reg, Reg),
    /// Mode, result, in-range predicate, source, lane or distance, `c`. Whole warps only.
    Shuffle(&'static str, Reg, Reg, Reg, Src, u32),
}

/// A block of a tangle.
#[derive(Clone, Debug)]
pub(crate) struct Knot {
    pub(crate) code: Vec<Stmt>,
    /// Taken if the test holds.
    pub(crate) to: Option<(Test, usize)>,
    pub(crate) otherwise: usize,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    /// An operation that the model knows.
    Alu {
        row: &'static Row,
        dest: Reg,
        sources: Vec<Src>,
        guard: Option<Test>,
    },
    /// An instruction of the ISA table.
    Table {
        text: String,
        guard: Option<Test>,
    },
    /// `mask` is that of the lanes which come here, if they are known to.
    If {
        test: Test,
        then: Vec<Stmt>,
        els: Vec<Stmt>,
        mask: Option<u8>,
    },
    /// So many times, a constant or the low two bits of a register; the test leaves at the body's end.
    Loop {
        trips: Src,
        body: Vec<Stmt>,
        leave: Option<Test>,
        counter: u8,
        at_bottom: bool,
    },
    /// `brx.idx` on the register, modulo the number of arms.
    Switch {
        index: Reg,
        arms: Vec<Vec<Stmt>>,
    },
    /// Blocks that jump anywhere, until so many are done.
    Tangle {
        knots: Vec<Knot>,
        fuel: u32,
        counter: u8,
    },
    Access(Access),
    /// Through shared memory, from the thread that is `distance` further on.
    Exchange {
        dest: Reg,
        source: Reg,
        distance: u32,
        barrier: u8,
    },
    /// A reducing barrier: `popc`, `and`, `or`.
    BarRed {
        kind: u8,
        dest: Reg,
        test: Test,
    },
    Barrier(u8),
    Joint {
        op: Joint,
        mask: u8,
    },
    Call {
        function: usize,
        dest: Reg,
        x: Reg,
        y: Reg,
    },
    Recurse {
        dest: Reg,
        x: Reg,
        n: Reg,
    },
    /// On a cell of `acc`, or of shared memory.
    Atomic {
        cell: usize,
        shared: bool,
        source: Reg,
    },
    /// The thread exits.
    Exit(Test),
    /// Anything, for programs without rules.
    Wild(String),
}

/// A device function `f(x, y)` that gives its first 32-bit register.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) body: Vec<Stmt>,
}

/// What a program may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Threads know nothing of each other: one at a time gives the same.
    Alone,
    /// Threads of a warp and a block work together, by the rules.
    Together,
    /// No rules.
    Wild,
}

/// A program with its launch.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it may do.
    pub kind: Kind,
    /// Made of operations that the model knows.
    pub modelled: bool,
    /// Threads a block.
    pub threads: u32,
    /// Blocks.
    pub blocks: u32,
    /// Seed of the input's contents.
    pub data: u64,
    pub(crate) body: Vec<Stmt>,
    pub(crate) functions: Vec<Function>,
}

/// What holds at a place in the program.
#[derive(Clone, Copy)]
struct Scope {
    depth: u8,
    /// All threads of the block come here together.
    uniform: bool,
    /// The number of the mask register with the lanes that come here together.
    mask: Option<u8>,
    loops: u8,
    function: Option<usize>,
}

struct Maker<'c, 'b> {
    c: &'c mut Choices<'b>,
    kind: Kind,
    modelled: bool,
    whole_warps: bool,
    functions: usize,
    left: u32,
}

const SIZES: &[u32] = &[32, 64, 33, 1, 96, 20, 128];

impl Program {
    /// The program that the choices make.
    pub fn generate(c: &mut Choices<'_>) -> Program {
        let kind = *c.pick(&[Kind::Alone, Kind::Together, Kind::Together, Kind::Wild]);
        let modelled = kind != Kind::Wild && c.chance(128);
        let threads = *c.pick(SIZES);
        let blocks = 1 + c.below(3) as u32;
        let data = c.word();
        let functions = c.below(3);
        let mut maker =
            Maker { c, kind, modelled, whole_warps: threads.is_multiple_of(32), functions, left: 0 };
        let list = (0..functions)
            .map(|k| {
                maker.left = 10;
                let scope = Scope { depth: 1, uniform: false, mask: None, loops: 0, function: Some(k) };
                Function { body: maker.block(scope, 6) }
            })
            .collect();
        maker.left = 60;
        let together = kind != Kind::Alone;
        let scope =
            Scope { depth: 0, uniform: together, mask: together.then_some(0), loops: 0, function: None };
        let body = maker.block(scope, 30);
        Program { kind, modelled, threads, blocks, data, body, functions: list }
    }

    /// Statements, for knowing how small it is.
    pub fn len(&self) -> usize {
        fn count(list: &[Stmt]) -> usize {
            list.iter()
                .map(|s| {
                    1 + match s {
                        Stmt::If { then, els, .. } => count(then) + count(els),
                        Stmt::Loop { body, .. } => count(body),
                        Stmt::Switch { arms, .. } => arms.iter().map(|a| count(a)).sum(),
                        Stmt::Tangle { knots, .. } => knots.iter().map(|k| count(&k.code)).sum(),
                        _ => 0,
                    }
                })
                .sum()
        }
        count(&self.body) + self.functions.iter().map(|f| count(&f.body)).sum::<usize>()
    }

    /// True without any statement.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The programs with one statement (and what is in it) less, largest cut first.
    pub fn smaller(&self) -> Vec<Program> {
        fn cuts(list: &[Stmt]) -> Vec<Vec<Stmt>> {
            let mut out = Vec::new();
            if list.len() > 3 {
                out.push(list[list.len() / 2..].to_vec());
                out.push(list[..list.len() / 2].to_vec());
            }
            for k in 0..list.len() {
                let mut less = list.to_vec();
                less.remove(k);
                out.push(less);
            }
            for (k, s) in list.iter().enumerate() {
                let with = |s: Stmt| {
                    let mut changed = list.to_vec();
                    changed[k] = s;
                    changed
                };
                match s {
                    Stmt::If { test, then, els, mask } => {
                        let (test, mask) = (*test, *mask);
                        let make = |then: Vec<Stmt>, els: Vec<Stmt>| Stmt::If { test, then, els, mask };
                        out.extend(cuts(then).into_iter().map(|t| with(make(t, els.clone()))));
                        out.extend(cuts(els).into_iter().map(|e| with(make(then.clone(), e))));
                    }
                    Stmt::Loop { trips, body, leave, counter, at_bottom } => {
                        for body in cuts(body) {
                            out.push(with(Stmt::Loop {
                                trips: *trips,
                                body,
                                leave: *leave,
                                counter: *counter,
                                at_bottom: *at_bottom,
                            }));
                        }
                    }
                    Stmt::Switch { index, arms } => {
                        for (j, arm) in arms.iter().enumerate() {
                            for less in cuts(arm) {
                                let mut arms = arms.clone();
                                arms[j] = less;
                                out.push(with(Stmt::Switch { index: *index, arms }));
                            }
                        }
                    }
                    Stmt::Tangle { knots, fuel, counter } => {
                        for (j, knot) in knots.iter().enumerate() {
                            for code in cuts(&knot.code) {
                                let mut knots = knots.clone();
                                knots[j].code = code;
                                out.push(with(Stmt::Tangle { knots, fuel: *fuel, counter: *counter }));
                            }
                        }
                        if *fuel > 1 {
                            out.push(with(Stmt::Tangle {
                                knots: knots.clone(),
                                fuel: fuel / 2,
                                counter: *counter,
                            }));
                        }
                    }
                    _ => {}
                }
            }
            out
        }
        let mut out: Vec<Program> =
            cuts(&self.body).into_iter().map(|body| Program { body, ..self.clone() }).collect();
        for (k, f) in self.functions.iter().enumerate() {
            for body in cuts(&f.body) {
                let mut p = self.clone();
                p.functions[k].body = body;
                out.push(p);
            }
        }
        if self.blocks > 1 {
            out.push(Program { blocks: 1, ..self.clone() });
        }
        out
    }
}

impl Maker<'_, '_> {
    fn reg(&mut self, class: Class) -> Reg {
        Reg::any(self.c, class)
    }

    fn guard(&mut self) -> Option<Test> {
        self.c.chance(40).then(|| Test::any(self.c))
    }

    fn block(&mut self, scope: Scope, most: usize) -> Vec<Stmt> {
        let mut out = Vec::new();
        let wanted = 1 + self.c.below(most);
        while out.len() < wanted && self.left > 0 && !self.c.is_empty() {
            self.left -= 1;
            let s = self.statement(scope);
            out.push(s);
        }
        out
    }

    fn alu(&mut self) -> Stmt {
        if !self.modelled
            && self.c.chance(200)
            && let Some(text) = vocabulary::choose(self.c)
        {
            return Stmt::Table { text, guard: self.guard() };
        }
        let row = self.c.pick(ROWS);
        let dest = self.reg(row.dest);
        let sources = row
            .sources
            .iter()
            .map(|class| {
                if row.literals && *class != Class::P && self.c.chance(60) {
                    const NUMBERS: &[u64] = &[1, 2, 31, 7, 0xffff, 16, 5];
                    Src::Lit(*self.c.pick(NUMBERS))
                } else {
                    Src::Reg(self.reg(*class))
                }
            })
            .collect();
        Stmt::Alu { row, dest, sources, guard: self.guard() }
    }

    fn statement(&mut self, scope: Scope) -> Stmt {
        let inner = Scope { depth: scope.depth + 1, ..scope };
        let deep = scope.depth >= 3;
        match self.c.below(24) {
            0..=8 => self.alu(),
            9 | 10 if !deep => {
                let test = Test::any(self.c);
                let masked = scope.mask.filter(|m| *m < 6);
                let inside = Scope { uniform: false, mask: masked.map(|m| m + 1), ..inner };
                let then = self.block(inside, 5);
                let els = if self.c.chance(128) { self.block(inside, 4) } else { Vec::new() };
                Stmt::If { test, then, els, mask: masked }
            }
            11 | 12 if !deep => {
                let trips = if self.c.chance(128) {
                    Src::Reg(self.reg(Class::R))
                } else {
                    Src::Lit(self.c.below(5) as u64)
                };
                let leave = self.c.chance(60).then(|| Test::any(self.c));
                let together = matches!(trips, Src::Lit(_)) && leave.is_none();
                let inside = Scope {
                    uniform: scope.uniform && together,
                    mask: scope.mask.filter(|_| together),
                    loops: scope.loops + 1,
                    ..inner
                };
                let at_bottom = self.c.chance(100);
                Stmt::Loop { trips, body: self.block(inside, 5), leave, counter: scope.loops, at_bottom }
            }
            13 if !deep => {
                let index = self.reg(Class::R);
                let inside = Scope { uniform: false, mask: None, ..inner };
                let arms = (0..2 + self.c.below(3)).map(|_| self.block(inside, 3)).collect();
                Stmt::Switch { index, arms }
            }
            14 if !deep => {
                let count = 2 + self.c.below(5);
                let inside = Scope { depth: 3, uniform: false, mask: None, loops: scope.loops + 1, ..inner };
                let knots = (0..count)
                    .map(|_| Knot {
                        code: self.block(inside, 3),
                        to: self.c.chance(180).then(|| (Test::any(self.c), self.c.below(count))),
                        otherwise: self.c.below(count),
                    })
                    .collect();
                Stmt::Tangle { knots, fuel: 2 + self.c.below(20) as u32, counter: scope.loops }
            }
            15..=17 => self.access(scope),
            18 if self.functions > 0 || scope.function.is_none() => {
                let (dest, x) = (self.reg(Class::R), self.reg(Class::R));
                let callees = scope.function.unwrap_or(self.functions);
                match self.c.below(callees + 1).checked_sub(1) {
                    None => Stmt::Recurse { dest, x, n: self.reg(Class::R) },
                    Some(function) => Stmt::Call { function, dest, x, y: self.reg(Class::D) },
                }
            }
            19 if scope.function.is_none() => {
                let shared = self.kind == Kind::Together && self.c.chance(100);
                let cell = self.c.below(if shared { SHARED_CELLS } else { CELLS });
                Stmt::Atomic { cell, shared, source: self.reg(Class::D) }
            }
            20 | 21 if scope.mask.is_some() && self.kind != Kind::Alone => {
                let mask = scope.mask.unwrap_or(0);
                let op = self.joint(mask == 0 && self.whole_warps);
                Stmt::Joint { op, mask }
            }
            22 if scope.uniform => match self.c.below(4) {
                0 => Stmt::Barrier(self.c.below(5) as u8),
                1 => Stmt::BarRed {
                    kind: self.c.below(3) as u8,
                    dest: self.reg(Class::R),
                    test: Test::any(self.c),
                },
                _ => Stmt::Exchange {
                    dest: self.reg(Class::R),
                    source: self.reg(Class::R),
                    distance: self.c.below(64) as u32,
                    barrier: self.c.below(5) as u8,
                },
            },
            22 if self.kind == Kind::Alone && scope.function.is_none() && self.c.chance(60) => {
                Stmt::Exit(Test::any(self.c))
            }
            23 if self.kind == Kind::Wild && scope.function.is_none() => Stmt::Wild(self.wild()),
            _ => self.alu(),
        }
    }

    fn access(&mut self, scope: Scope) -> Stmt {
        let place = if scope.function.is_some() {
            Place::Local
        } else {
            *self.c.pick(&[Place::In, Place::Io, Place::Local, Place::In])
        };
        let store = place != Place::In && self.c.chance(128);
        const TYPES: &[&str] = &["u32", "b32", "u8", "s8", "u16", "s16", "b64", "u64", "s32", "b8", "s64"];
        let ty = *self.c.pick(TYPES);
        let bits: u32 = ty[1..].parse().unwrap_or(32);
        let most = (16 * 8 / bits).min(4);
        let count = match self.c.below(6) {
            0 if most >= 4 => 4,
            1 if most >= 2 => 2,
            _ => 1,
        };
        let class = match bits {
            8 | 16 if self.c.chance(128) => Class::H,
            64 => Class::D,
            _ => Class::R,
        };
        let regs = if store {
            (0..count).map(|_| self.reg(class)).collect()
        } else {
            // Destinations of one load differ.
            let first = self.c.below(class.count());
            (0..count).map(|k| Reg::new(class, (first + k) % class.count())).collect()
        };
        let mut access = Access {
            store,
            place,
            ty,
            regs,
            offset: Offset::Constant(0),
            guard: self.guard(),
            generic: self.c.chance(40),
            how: "",
        };
        let size = access.bytes();
        access.offset = match self.c.below(4) {
            0 => Offset::Constant(self.c.below(access.area() / size) * size),
            1 if place == Place::In => Offset::Stride,
            _ => Offset::Reg(self.reg(Class::R), self.c.chance(100)),
        };
        if !access.generic && place != Place::Local {
            access.how = match (store, place, self.c.below(8)) {
                (false, Place::In, 0) => ".nc",
                (false, _, 1) => ".volatile",
                (false, _, 2) => ".relaxed.gpu",
                (false, _, 3) => ".ca",
                (true, _, 1) => ".volatile",
                (true, _, 2) => ".relaxed.sys",
                (true, _, 3) => ".wb",
                _ => "",
            };
        }
        Stmt::Access(access)
    }

    fn joint(&mut self, whole: bool) -> Joint {
        let (r, a, p) = (self.reg(Class::R), self.reg(Class::R), self.reg(Class::P));
        let test = Test::any(self.c);
        match self.c.below(if whole { 12 } else { 8 }) {
            0 => Joint::Ballot(r, test),
            1 => Joint::All(p, test),
            2 => Joint::Any(p, test),
            3 => Joint::Uni(p, test),
            4 => Joint::MatchAny(r, a),
            5 => Joint::MatchAll(r, p, a),
            6 => {
                const OPS: &[&str] =
                    &["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.s32"];
                Joint::Redux(OPS[self.c.below(OPS.len())], r, a)
            }
            7 => Joint::First(r, a),
            _ => {
                let mode = *self.c.pick(&["idx", "bfly", "up", "down"]);
                let by = if self.c.chance(100) {
                    Src::Reg(self.reg(Class::R))
                } else {
                    Src::Lit(self.c.below(32) as u64)
                };
                // Segments of 32, 16, 8, 4 lanes; `up` ends at the lowest lane of each.
                let segment = *self.c.pick(&[0u32, 16, 24, 28]);
                let clamp = if mode == "up" { 0 } else { 31 };
                Joint::Shuffle(mode, r, p, a, by, segment << 8 | clamp)
            }
        }
    }

    /// Text that keeps no rule.
    fn wild(&mut self) -> String {
        let (r, a, d, t) = (self.reg(Class::R), self.reg(Class::R), self.reg(Class::D), Test::any(self.c));
        match self.c.below(22) {
            0 => format!("st.shared.u32 [sh+{}], {r};", 4 * self.c.below(8)),
            1 => format!("ld.shared.u32 {r}, [sh+{}];", 4 * self.c.below(8)),
            2 => format!(
                "and.b32 %y0, {a}, 4092;\nmov.u32 %y1, sh;\nadd.u32 %y0, %y0, %y1;\nst.shared.u32 [%y0], {r};"
            ),
            3 => format!(
                "and.b32 %y0, {a}, 4095;\nmov.u32 %y1, sh;\nadd.u32 %y0, %y0, %y1;\n@{t} ld.shared.u16 {r}, [%y0];"
            ),
            4 => format!(
                "and.b32 %y0, {a}, 2047;\ncvt.u64.u32 %x0, %y0;\nadd.s64 %x0, %x0, %x2;\n@{t} ld.global.u8 {r}, [%x0];"
            ),
            5 => format!(
                "and.b32 %y0, {a}, 252;\ncvt.u64.u32 %x0, %y0;\nadd.s64 %x0, %x0, %x3;\n@{t} st.global.u32 [%x0], {r};"
            ),
            6 => format!("@{t} ld.u32 {r}, [{d}];"),
            7 => format!("@{t} bar.sync {};", self.c.below(3)),
            8 => format!("@{t} barrier.sync {};", self.c.below(3)),
            9 => format!("@{t} barrier.arrive {}, 64;", self.c.below(2)),
            10 => format!("vote.sync.ballot.b32 {r}, {t}, {a};"),
            11 => format!("shfl.sync.idx.b32 {r}, {a}, {a}, 31, -1;"),
            12 => format!("activemask.b32 {r};"),
            13 => format!("@{t} trap;"),
            14 => format!("@{t} exit;"),
            15 => format!("atom.global.add.u32 {r}, [%x5], {a};"),
            16 => format!("atom.shared.cas.b32 {r}, [sa], {a}, {r};"),
            17 => "membar.gl;\nfence.acq_rel.gpu;".to_owned(),
            18 => format!("nanosleep.u32 {};", self.c.below(100)),
            19 => format!("@{t} bar.warp.sync {a};"),
            20 => format!("mov.u32 {r}, %clock;"),
            _ => {
                // A loop that may not end.
                let label = self.left * 1000 + self.c.below(1000) as u32;
                format!(
                    "W{label}:\nadd.u32 {r}, {r}, 1;\nsetp.ne.u32 {}, {r}, {a};\n@{} bra W{label};",
                    t.p, t.p
                )
            }
        }
    }
}

/// Writes a program as PTX.
struct Text {
    out: String,
    labels: u32,
    /// In a device function: no kernel parameters.
    in_function: bool,
}

impl Program {
    /// The PTX text.
    pub fn text(&self) -> String {
        let mut t = Text { out: HEADER.to_owned(), labels: 0, in_function: true };
        t.line(RECURSE);
        for (k, f) in self.functions.iter().enumerate() {
            t.function(k, f);
        }
        t.in_function = false;
        t.kernel(self);
        t.out
    }
}

/// `rec(x, n) = x` for the low three bits of n zero, else `rec(5x + n, (n mod 8) - 1) + x`.
const RECURSE: &str = "\
.func (.param .b32 ret) rec(.param .b32 x, .param .b32 n)
{
.reg .pred %q<2>;
.reg .b32 %r<6>;
ld.param.b32 %r0, [x];
ld.param.b32 %r1, [n];
and.b32 %r2, %r1, 7;
setp.eq.u32 %q0, %r2, 0;
@%q0 bra LAST;
mad.lo.u32 %r3, %r0, 5, %r1;
sub.u32 %r4, %r2, 1;
{
.param .b32 a0;
.param .b32 a1;
.param .b32 rv;
st.param.b32 [a0], %r3;
st.param.b32 [a1], %r4;
call (rv), rec, (a0, a1);
ld.param.b32 %r5, [rv];
}
add.u32 %r0, %r5, %r0;
LAST:
st.param.b32 [ret], %r0;
ret;
}";

impl Text {
    fn line(&mut self, s: impl AsRef<str>) {
        self.out.push_str(s.as_ref());
        self.out.push('\n');
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn function(&mut self, k: usize, f: &Function) {
        self.line(format!(".func (.param .b32 ret) f{k}(.param .b32 x, .param .b64 y)\n{{"));
        self.line(declarations());
        self.line(format!(".local .align 16 .b8 loc[{AREA_BYTES}];"));
        self.line("ld.param.b32 %r0, [x];\nld.param.b64 %d0, [y];\nmov.u64 %x4, loc;");
        for n in 1..Class::R.count() {
            self.line(format!("add.u32 %r{n}, %r{}, 0x9e3779b9;", n - 1));
        }
        for n in 1..Class::D.count() {
            self.line(format!("add.u64 %d{n}, %d{}, 0x9e3779b97f4a7c15;", n - 1));
        }
        for n in 0..Class::H.count() {
            self.line(format!("cvt.u16.u32 %h{n}, %r{n};"));
        }
        for n in 0..Class::P.count() {
            self.line(format!("setp.lt.u32 %p{n}, %r{n}, 0x80000000;"));
        }
        for k in 0..AREA_BYTES / 4 {
            self.line(format!("st.local.u32 [loc+{}], %r{};", 4 * k, k % Class::R.count()));
        }
        self.block(&f.body);
        self.line("st.param.b32 [ret], %r0;\nret;\n}");
    }

    fn kernel(&mut self, p: &Program) {
        self.line(".visible .entry k(.param .u64 in, .param .u64 io, .param .u64 acc, .param .u32 first)\n{");
        self.line(declarations());
        self.line(format!(".local .align 16 .b8 loc[{AREA_BYTES}];"));
        if p.kind != Kind::Alone {
            self.line(format!(
                ".shared .align 16 .b8 sh[4096];\n.shared .align 16 .b8 sa[{}];",
                4 * SHARED_CELLS
            ));
        }
        // %y7: the thread in its block; %y6: its number; %y5: the block's size.
        self.line(
            "ld.param.u64 %x2, [in];\nld.param.u64 %x3, [io];\nld.param.u64 %x5, [acc];\n\
             cvta.to.global.u64 %x2, %x2;\ncvta.to.global.u64 %x3, %x3;\ncvta.to.global.u64 %x5, %x5;\n\
             mov.u64 %x4, loc;\nld.param.u32 %y4, [first];\nmov.u32 %y5, %ntid.x;\nmov.u32 %y7, %tid.x;\n\
             mov.u32 %y6, %ctaid.x;\nmad.lo.u32 %y6, %y6, %y5, %y7;\nadd.u32 %y6, %y6, %y4;",
        );
        self.line(format!("mul.wide.u32 %x0, %y6, {SLICE_BYTES};\nadd.s64 %x3, %x3, %x0;"));
        if p.kind != Kind::Alone {
            // The lanes of this warp that exist.
            self.line(
                "and.b32 %y0, %y7, -32;\nsub.u32 %y0, %y5, %y0;\nmin.u32 %y0, %y0, 32;\nmov.u64 %x0, 1;\n\
                 shl.b64 %x0, %x0, %y0;\nsub.u64 %x0, %x0, 1;\ncvt.u32.u64 %m0, %x0;",
            );
        }
        self.line(format!("mul.lo.u32 %y3, %y6, {SPREAD};"));
        let mut j = 0;
        let mut first = |t: &mut Text, size: usize| {
            let mask = (IN_BYTES - 1) & !(size - 1) & !7;
            t.line(format!(
                "add.u32 %y0, %y3, {};\nand.b32 %y0, %y0, {mask};\ncvt.u64.u32 %x0, %y0;\nadd.s64 %x0, %x0, %x2;",
                8 * j
            ));
            j += 1;
        };
        for n in 0..Class::R.count() {
            first(self, 4);
            self.line(format!("ld.global.u32 %r{n}, [%x0];"));
        }
        for n in 0..Class::D.count() {
            first(self, 8);
            self.line(format!("ld.global.u64 %d{n}, [%x0];"));
        }
        for n in 0..Class::H.count() {
            first(self, 2);
            self.line(format!("ld.global.u16 %h{n}, [%x0];"));
        }
        for n in 0..Class::P.count() {
            first(self, 1);
            self.line(format!("ld.global.u8 %y0, [%x0];\nand.b32 %y0, %y0, 1;\nsetp.ne.u32 %p{n}, %y0, 0;"));
        }
        for k in 0..AREA_BYTES / 4 {
            self.line(format!("st.local.u32 [loc+{}], %r{};", 4 * k, k % Class::R.count()));
        }
        if p.kind != Kind::Alone {
            self.line(format!(
                "setp.lt.u32 %q0, %y7, {SHARED_CELLS};\nshl.b32 %y0, %y7, 2;\nmov.u32 %y1, sa;\nadd.u32 %y0, %y0, %y1;\n\
                 mov.u32 %y2, 0;\n@%q0 st.shared.u32 [%y0], %y2;"
            ));
            if (p.threads as usize) < SHARED_CELLS {
                self.line("setp.eq.u32 %q0, %y7, 0;");
                for k in p.threads as usize..SHARED_CELLS {
                    self.line(format!("@%q0 st.shared.u32 [sa+{}], %y2;", 4 * k));
                }
            }
            self.line("bar.sync 0;");
        }
        self.block(&p.body);
        let mut at = AREA_BYTES;
        for n in 0..Class::D.count() {
            self.line(format!("st.global.u64 [%x3+{at}], %d{n};"));
            at += 8;
        }
        for n in 0..Class::R.count() {
            self.line(format!("st.global.u32 [%x3+{at}], %r{n};"));
            at += 4;
        }
        for n in 0..Class::H.count() {
            self.line(format!("st.global.u16 [%x3+{at}], %h{n};"));
            at += 2;
        }
        for n in 0..Class::P.count() {
            self.line(format!("selp.u32 %y0, 1, 0, %p{n};\nst.global.u8 [%x3+{at}], %y0;"));
            at += 1;
        }
        at = at.next_multiple_of(4);
        if p.kind == Kind::Together {
            self.line(format!(
                "bar.sync 0;\nand.b32 %y0, %y7, {};\nshl.b32 %y0, %y0, 2;\nmov.u32 %y1, sa;\nadd.u32 %y0, %y0, %y1;\n\
                 ld.shared.u32 %y0, [%y0];\nst.global.u32 [%x3+{at}], %y0;",
                SHARED_CELLS - 1
            ));
            at += 4;
        }
        debug_assert!(at <= SLICE_BYTES);
        self.line("ret;\n}");
    }

    fn block(&mut self, list: &[Stmt]) {
        for s in list {
            self.statement(s);
        }
    }

    fn guarded(guard: &Option<Test>, text: &str) -> String {
        guard.map_or_else(|| format!("{text};"), |g| format!("@{g} {text};"))
    }

    fn statement(&mut self, s: &Stmt) {
        match s {
            Stmt::Alu { row, dest, sources, guard } => {
                let list: Vec<String> = sources.iter().map(ToString::to_string).collect();
                self.line(Self::guarded(guard, &format!("{} {dest}, {}", row.spelling, list.join(", "))));
            }
            Stmt::Table { text, guard } => self.line(Self::guarded(guard, text)),
            Stmt::If { test, then, els, mask } => {
                let l = self.label();
                if let Some(m) = mask {
                    self.line(format!("vote.sync.ballot.b32 %m{}, {test}, %m{m};", m + 1));
                }
                let not = Test { negated: !test.negated, ..*test };
                self.line(format!("@{not} bra E{l};"));
                self.block(then);
                if els.is_empty() {
                    self.line(format!("E{l}:"));
                } else {
                    self.line(format!("bra F{l};\nE{l}:"));
                    if let Some(m) = mask {
                        self.line(format!("xor.b32 %m{0}, %m{0}, %m{m};", m + 1));
                    }
                    self.block(els);
                    self.line(format!("F{l}:"));
                }
            }
            Stmt::Loop { trips, body, leave, counter, at_bottom } => {
                let (l, c) = (self.label(), counter);
                match trips {
                    Src::Lit(n) => self.line(format!("mov.u32 %c{c}, {n};")),
                    Src::Reg(r) => self.line(format!("and.b32 %c{c}, {r}, 3;")),
                }
                let leaves = |t: &mut Text| {
                    if let Some(test) = leave {
                        t.line(format!("@{test} bra E{l};"));
                    }
                };
                if *at_bottom {
                    self.line(format!("setp.eq.u32 %q0, %c{c}, 0;\n@%q0 bra E{l};\nL{l}:"));
                    self.block(body);
                    leaves(self);
                    self.line(format!("sub.u32 %c{c}, %c{c}, 1;\nsetp.ne.u32 %q0, %c{c}, 0;\n@%q0 bra L{l};\nE{l}:"));
                } else {
                    self.line(format!("L{l}:\nsetp.eq.u32 %q0, %c{c}, 0;\n@%q0 bra E{l};\nsub.u32 %c{c}, %c{c}, 1;"));
                    self.block(body);
                    leaves(self);
                    self.line(format!("bra L{l};\nE{l}:"));
                }
            }
            Stmt::Switch { index, arms } => {
                let l = self.label();
                self.line(format!("rem.u32 %y0, {index}, {};", arms.len()));
                let names: Vec<String> = (0..arms.len()).map(|k| format!("A{l}_{k}")).collect();
                self.line(format!("T{l}: .branchtargets {};\nbrx.idx %y0, T{l};", names.join(", ")));
                for (k, arm) in arms.iter().enumerate() {
                    self.line(format!("A{l}_{k}:"));
                    self.block(arm);
                    self.line(format!("bra E{l};"));
                }
                self.line(format!("E{l}:"));
            }
            Stmt::Tangle { knots, fuel, counter } => {
                let (l, c) = (self.label(), counter);
                self.line(format!("mov.u32 %c{c}, {fuel};"));
                for (k, knot) in knots.iter().enumerate() {
                    self.line(format!(
                        "K{l}_{k}:\nsub.u32 %c{c}, %c{c}, 1;\nsetp.eq.u32 %q0, %c{c}, 0;\n@%q0 bra E{l};"
                    ));
                    self.block(&knot.code);
                    if let Some((test, to)) = knot.to {
                        self.line(format!("@{test} bra K{l}_{to};"));
                    }
                    if knot.otherwise != k + 1 {
                        self.line(format!("bra K{l}_{};", knot.otherwise));
                    }
                }
                self.line(format!("E{l}:"));
            }
            Stmt::Access(a) => self.access(a),
            Stmt::Exchange { dest, source, distance, barrier } => {
                self.line(format!(
                    "shl.b32 %y0, %y7, 2;\nmov.u32 %y1, sh;\nadd.u32 %y0, %y0, %y1;\nst.shared.u32 [%y0], {source};"
                ));
                self.barrier(*barrier);
                self.line(format!(
                    "add.u32 %y0, %y7, {distance};\nrem.u32 %y0, %y0, %y5;\nshl.b32 %y0, %y0, 2;\nadd.u32 %y0, %y0, %y1;\n\
                     ld.shared.u32 {dest}, [%y0];"
                ));
                self.barrier(*barrier);
            }
            Stmt::BarRed { kind, dest, test } => match kind {
                0 => self.line(format!("bar.red.popc.u32 {dest}, 0, {test};")),
                1 => self.line(format!("barrier.red.and.pred %q0, 0, {test};\nselp.u32 {dest}, 1, 0, %q0;")),
                _ => self.line(format!("bar.red.or.pred %q0, 1, {test};\nselp.u32 {dest}, 1, 0, %q0;")),
            },
            Stmt::Barrier(kind) => self.barrier(*kind),
            Stmt::Joint { op, mask } => self.joint(op, *mask),
            Stmt::Call { function, dest, x, y } => self.line(format!(
                "{{\n.param .b32 a0;\n.param .b64 a1;\n.param .b32 rv;\nst.param.b32 [a0], {x};\nst.param.b64 [a1], {y};\n\
                 call (rv), f{function}, (a0, a1);\nld.param.b32 {dest}, [rv];\n}}"
            )),
            Stmt::Recurse { dest, x, n } => self.line(format!(
                "{{\n.param .b32 a0;\n.param .b32 a1;\n.param .b32 rv;\nst.param.b32 [a0], {x};\nst.param.b32 [a1], {n};\n\
                 call (rv), rec, (a0, a1);\nld.param.b32 {dest}, [rv];\n}}"
            )),
            Stmt::Atomic { cell, shared, source } => {
                let (op, wide) = if *shared { SHARED_OPS[*cell] } else { CELL_OPS[*cell] };
                let value = if wide {
                    source.to_string()
                } else {
                    self.line(format!("cvt.u32.u64 %y0, {source};"));
                    "%y0".to_owned()
                };
                let place = if *shared { format!("sa+{}", 4 * cell) } else { format!("%x5+{}", 8 * cell) };
                let space = if *shared { "shared" } else { "global" };
                self.line(format!("red.{space}.{op} [{place}], {value};"));
            }
            Stmt::Exit(test) => self.line(format!("@{test} exit;")),
            Stmt::Wild(text) => {
                // Labels of repeated pieces must differ.
                let l = self.label();
                self.line(text.replace('W', &format!("W{l}_")));
            }
        }
    }

    fn barrier(&mut self, kind: u8) {
        self.line(match kind {
            0 => "bar.sync 0;",
            1 => "barrier.sync 0;",
            2 => "barrier.sync.aligned 1;",
            3 => "bar.red.or.pred %q1, 2, %q1;",
            _ => "bar.cta.sync 3;",
        });
    }

    fn access(&mut self, a: &Access) {
        let (size, area) = (a.bytes(), a.area());
        let base = match a.place {
            Place::In => "%x2",
            Place::Io => "%x3",
            Place::Local => "%x4",
        };
        let mut base = base.to_owned();
        if a.generic && a.place == Place::Local {
            self.line("cvta.local.u64 %x1, %x4;");
            base = "%x1".to_owned();
        }
        let address = match a.offset {
            Offset::Constant(k) => format!("{base}+{k}"),
            Offset::Stride => {
                self.line(format!(
                    "mul.lo.u32 %y0, %y6, {size};\nand.b32 %y0, %y0, {};\ncvt.u64.u32 %x0, %y0;\nadd.s64 %x0, %x0, {base};",
                    area - size
                ));
                "%x0".to_owned()
            }
            Offset::Reg(r, upper) => {
                let mask = if upper { area / 2 - size } else { area - size };
                self.line(format!(
                    "and.b32 %y0, {r}, {mask};\ncvt.u64.u32 %x0, %y0;\nadd.s64 %x0, %x0, {base};"
                ));
                if upper { format!("%x0+{}", area / 2) } else { "%x0".to_owned() }
            }
        };
        let space = match (a.generic, a.place) {
            (true, _) => "",
            (false, Place::Local) => ".local",
            (false, _) => ".global",
        };
        // `.nc` and cache operators stand behind the space, the others before it.
        let (before, behind) = match a.how {
            ".nc" | ".ca" | ".wb" => ("", a.how),
            how => (how, ""),
        };
        let list: Vec<String> = a.regs.iter().map(ToString::to_string).collect();
        let (vector, regs) = match list.len() {
            1 => (String::new(), list[0].clone()),
            n => (format!(".v{n}"), format!("{{{}}}", list.join(", "))),
        };
        let text = if a.store {
            format!("st{before}{space}{behind}{vector}.{} [{address}], {regs}", a.ty)
        } else {
            format!("ld{before}{space}{behind}{vector}.{} {regs}, [{address}]", a.ty)
        };
        self.line(Self::guarded(&a.guard, &text));
    }

    fn joint(&mut self, op: &Joint, m: u8) {
        match op {
            Joint::Ballot(d, t) => self.line(format!("vote.sync.ballot.b32 {d}, {t}, %m{m};")),
            Joint::All(d, t) => self.line(format!("vote.sync.all.pred {d}, {t}, %m{m};")),
            Joint::Any(d, t) => self.line(format!("vote.sync.any.pred {d}, {t}, %m{m};")),
            Joint::Uni(d, t) => self.line(format!("vote.sync.uni.pred {d}, {t}, %m{m};")),
            Joint::MatchAny(d, a) => {
                self.line(format!("and.b32 %y0, {a}, 3;\nmatch.any.sync.b32 {d}, %y0, %m{m};"));
            }
            Joint::MatchAll(d, p, a) => {
                self.line(format!("and.b32 %y0, {a}, 1;\nmatch.all.sync.b32 {d}|{p}, %y0, %m{m};"));
            }
            Joint::Redux(op, d, a) => self.line(format!("redux.sync.{op} {d}, {a}, %m{m};")),
            Joint::First(d, a) => self.line(format!(
                "brev.b32 %y0, %m{m};\nclz.b32 %y0, %y0;\nshfl.sync.idx.b32 {d}, {a}, %y0, 31, %m{m};"
            )),
            Joint::Shuffle(mode, d, p, a, by, c) => {
                self.line(format!("shfl.sync.{mode}.b32 {d}|{p}, {a}, {by}, {c}, %m{m};"));
            }
        }
    }
}

/// Operation of each cell of `acc`, and whether it is 64 bits wide.
pub(crate) const CELL_OPS: [(&str, bool); CELLS] = [
    ("add.u32", false),
    ("min.s32", false),
    ("max.u64", true),
    ("and.b32", false),
    ("or.b64", true),
    ("xor.b32", false),
    ("add.u64", true),
    ("max.s64", true),
];

/// Operation of each shared cell.
pub(crate) const SHARED_OPS: [(&str, bool); SHARED_CELLS] =
    [("add.u32", false), ("max.u32", false), ("xor.b32", false), ("min.s32", false)];
