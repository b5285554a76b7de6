//! Arithmetic of compiled code: scalars for affine values, eight vectors of four words for all others.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, I8X16, I16X8, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};

use assay_ptx::BoolOp;

use super::emit::{Current, Emitter, Refused, Result, Val, trusted};
use super::source::{Compare, CompareTy, FloatOp, Ins, IntOp, PredSrc, Src, What};
use super::spread::{HALF, Spread, constant};
use crate::warp::Warp;

/// The canonical NaN. (Its bits as a constant, since arithmetic would not keep them.)
const NAN: i64 = 0x7fff_ffff;

impl Emitter<'_, '_> {
    /// An instruction that compiled code does itself.
    pub(super) fn native(&mut self, k: usize, i: &Ins) -> Result<()> {
        let natural = self.spreads.natural(i).ok_or(Refused)?;
        let d = i.dests.first().map(|d| *d as usize);
        match &i.what {
            What::Load(a) => return self.load_memory(k, a, natural, &i.dests),
            What::Store(a) => return self.store_memory(k, a),
            _ => {}
        }
        let d = d.ok_or(Refused)?;
        let (val, raw) = match &i.what {
            What::Mov { wide, a } => self.mov(*wide, *a)?,
            What::Param { offset, wide } => {
                let at = std::mem::offset_of!(Warp, params) as i32;
                let p = self.b.ins().load(I64, trusted(), self.warp, at);
                let ty = if *wide { I64 } else { I32 };
                (Val::One(self.b.ins().load(ty, super::emit::device(), p, *offset as i32)), false)
            }
            What::Int { op, wide, a, b } => {
                let ty = if *wide { I64 } else { I32 };
                let shift = matches!(op, IntOp::Shl | IntOp::ShrU | IntOp::ShrS);
                if natural.is_affine() && shift && constant(*b).is_none() {
                    let (x, y) = (self.bases(*a, ty)?, self.bases(*b, I32)?);
                    let v = self.int(*op, *wide, x[0], y[0], *b);
                    if natural.is_uniform() {
                        (Val::One(v), false)
                    } else {
                        (Val::Two(v, self.int(*op, *wide, x[1], y[1], *b)), false)
                    }
                } else if natural.is_affine() {
                    (self.scalar2(natural, *a, *b, ty, |g, x, y| Ok(g.int(*op, *wide, x, y, *b)))?, false)
                } else {
                    (self.int_lanes(*op, *a, *b)?, false)
                }
            }
            What::Mad { a, b, c } => {
                if natural.is_affine() {
                    let p = self.scalar2(natural, *a, *b, I32, |g, x, y| Ok(g.b.ins().imul(x, y)))?;
                    let c = self.bases(*c, I32)?;
                    let val = match p {
                        Val::One(v) => Val::One(self.b.ins().iadd(v, c[0])),
                        Val::Two(v, w) => Val::Two(self.b.ins().iadd(v, c[0]), self.b.ins().iadd(w, c[1])),
                        _ => return Err(Refused),
                    };
                    (val, false)
                } else {
                    let (a, b, c) = (self.lanes(*a, I32X4)?, self.lanes(*b, I32X4)?, self.lanes(*c, I32X4)?);
                    let val = self.each(&[a, b, c], |g, v| {
                        let p = g.b.ins().imul(v[0], v[1]);
                        g.b.ins().iadd(p, v[2])
                    });
                    (Val::Lanes(val), false)
                }
            }
            What::Wide { signed, a, b } => {
                self.guard_wrap(*a, *signed)?;
                self.guard_wrap(*b, *signed)?;
                let one = constant(*b) == Some(1);
                let val = self.scalar2(natural, *a, *b, I32, |g, x, y| {
                    let mut up = |v: Value| {
                        if *signed { g.b.ins().sextend(I64, v) } else { g.b.ins().uextend(I64, v) }
                    };
                    let x = up(x);
                    if one {
                        return Ok(x);
                    }
                    let y = up(y);
                    Ok(g.b.ins().imul(x, y))
                })?;
                (val, false)
            }
            What::Narrow { a } => {
                let val = match self.source_val(*a, I64)? {
                    Val::One(v) => Val::One(self.b.ins().ireduce(I32, v)),
                    Val::Two(v, w) => Val::Two(self.b.ins().ireduce(I32, v), self.b.ins().ireduce(I32, w)),
                    _ => return Err(Refused),
                };
                (val, false)
            }
            What::Float { op, a, b, c } => {
                let list = match op {
                    FloatOp::Fma => vec![*a, *b, *c],
                    FloatOp::Sqrt => vec![*a],
                    _ => vec![*a, *b],
                };
                (self.float(*op, natural, &list)?, true)
            }
            What::Compare { cmp, ty, a, b } => (self.compare(*cmp, *ty, natural, *a, *b)?, false),
            What::Select { wide, a, b, p } => (self.select(*wide, natural, *a, *b, *p)?, false),
            What::Logic { op, a, b } => (self.logic(*op, *a, *b)?, false),
            What::Nothing
            | What::Load(_)
            | What::Store(_)
            | What::Branch { .. }
            | What::Barrier { .. }
            | What::Handler { .. }
            | What::Leave { .. } => return Err(Refused),
        };
        self.set(d, natural, val, raw)
    }

    fn mov(&mut self, wide: bool, a: Src) -> Result<(Val, bool)> {
        let ty = if wide { I64 } else { I32 };
        Ok(match a {
            Src::Reg(r) => {
                let c = self.get(r as usize);
                (c.val, c.raw)
            }
            Src::Const(v) => (Val::One(self.b.ins().iconst(ty, sign(v, ty))), false),
            Src::Special(_, at) => (self.special(a, at, ty)?, false),
        })
    }

    /// The value of an operand, its NaNs canonical; scalars have type `ty`.
    fn source_val(&mut self, s: Src, ty: Type) -> Result<Val> {
        Ok(match s {
            Src::Reg(r) => {
                let c = self.get(r as usize);
                let c = self.canonical(c);
                match c.val {
                    Val::One(v) => Val::One(self.as_type(v, ty)),
                    Val::Two(v, w) => Val::Two(self.as_type(v, ty), self.as_type(w, ty)),
                    other => other,
                }
            }
            Src::Const(v) => Val::One(self.number(v, ty)),
            Src::Special(_, at) => self.special(s, at, ty)?,
        })
    }

    fn number(&mut self, v: u64, ty: Type) -> Value {
        if ty == F32 {
            self.b.ins().f32const(f32::from_bits(v as u32))
        } else {
            self.b.ins().iconst(ty, sign(v, ty))
        }
    }

    fn special(&mut self, s: Src, at: u32, ty: Type) -> Result<Val> {
        if let Some(v) = self.specials.get(&at) {
            return Ok(*v);
        }
        let (frame, at) = (self.frame, at as i32);
        let val = match self.spreads.src(s) {
            Spread::Affine { delta: Some(_), .. } => Val::One(self.b.ins().load(ty, trusted(), frame, at)),
            Spread::Affine { delta: None, .. } => {
                let v = self.b.ins().load(ty, trusted(), frame, at);
                let step = HALF as i32 * ty.bytes() as i32;
                Val::Two(v, self.b.ins().load(ty, trusted(), frame, at + step))
            }
            _ if ty == I32 || ty == F32 => Val::Lanes(std::array::from_fn(|j| {
                self.b.ins().load(I32X4, trusted(), frame, at + 16 * j as i32)
            })),
            _ => return Err(Refused),
        };
        self.specials.insert(at as u32, val);
        Ok(val)
    }

    /// The bases of both halves.
    pub(super) fn bases(&mut self, s: Src, ty: Type) -> Result<[Value; 2]> {
        Ok(match self.source_val(s, ty)? {
            Val::One(v) => match self.spreads.src(s) {
                Spread::Affine { delta: Some(d), .. } => {
                    let w = self.plus(v, d);
                    [v, self.as_type(w, ty)]
                }
                _ => return Err(Refused),
            },
            Val::Two(v, w) => [v, w],
            _ => return Err(Refused),
        })
    }

    /// The bases of float operands, NaNs as they come.
    fn float_bases(&mut self, s: Src) -> Result<[Value; 2]> {
        if let Src::Reg(r) = s {
            let c = self.get(r as usize);
            return Ok(match c.val {
                Val::One(v) => {
                    let d = if let Spread::Affine { delta: Some(d), .. } = self.spreads.of[r as usize] {
                        d
                    } else {
                        0
                    };
                    let w = self.plus(v, d);
                    [self.as_type(v, F32), self.as_type(w, F32)]
                }
                Val::Two(v, w) => [self.as_type(v, F32), self.as_type(w, F32)],
                _ => return Err(Refused),
            });
        }
        self.bases(s, F32)
    }

    /// A function of the bases of two operands, once or for both halves.
    fn scalar2(
        &mut self,
        natural: Spread,
        a: Src,
        b: Src,
        ty: Type,
        f: impl Fn(&mut Self, Value, Value) -> Result<Value>,
    ) -> Result<Val> {
        let Spread::Affine { delta, .. } = natural else { return Err(Refused) };
        if delta.is_some() {
            let (x, y) = (self.first(a, ty)?, self.first(b, ty)?);
            return Ok(Val::One(f(self, x, y)?));
        }
        let (x, y) = (self.bases(a, ty)?, self.bases(b, ty)?);
        let v = f(self, x[0], y[0])?;
        let w = f(self, x[1], y[1])?;
        Ok(Val::Two(v, w))
    }

    fn first(&mut self, s: Src, ty: Type) -> Result<Value> {
        match self.source_val(s, ty)? {
            Val::One(v) | Val::Two(v, _) => Ok(v),
            _ => Err(Refused),
        }
    }

    /// The eight vectors of an operand, its NaNs canonical.
    pub(super) fn lanes(&mut self, s: Src, ty: Type) -> Result<[Value; 8]> {
        self.lanes_of(s, ty, false)
    }

    fn lanes_of(&mut self, s: Src, ty: Type, raw: bool) -> Result<[Value; 8]> {
        let spread = self.spreads.src(s);
        let list = match s {
            Src::Reg(r) => {
                let r = r as usize;
                let mut c = self.get(r);
                if !raw {
                    c = self.canonical(c);
                }
                match c.val {
                    Val::Lanes(list) => list,
                    val => {
                        if let (Some(list), false) = (self.ramps.get(&r), c.raw) {
                            *list
                        } else {
                            let list = self.ramp(spread, val)?;
                            if !c.raw {
                                self.ramps.insert(r, list);
                            }
                            list
                        }
                    }
                }
            }
            Src::Const(v) => {
                let lanes = [v as i32; 4];
                [self.constant(&lanes); 8]
            }
            Src::Special(_, at) => match self.special(s, at, I32)? {
                Val::Lanes(list) => list,
                val => self.ramp(spread, val)?,
            },
        };
        Ok(self.each(&[list], |g, v| g.as_type(v[0], ty)))
    }

    /// Applies a function to each of the eight vectors; the second half is computed only where it differs.
    fn each<const N: usize>(
        &mut self,
        operands: &[[Value; 8]; N],
        f: impl Fn(&mut Self, [Value; N]) -> Value,
    ) -> [Value; 8] {
        let mut out = [operands.first().map_or(self.warp, |o| o[0]); 8];
        for j in 0..8 {
            if j >= 4 && operands.iter().all(|o| o[j] == o[j - 4]) {
                out[j] = out[j - 4];
                continue;
            }
            // Broadcasts: the same vector throughout.
            if j % 4 != 0 && operands.iter().all(|o| o[j] == o[j - 1]) {
                out[j] = out[j - 1];
                continue;
            }
            out[j] = f(self, std::array::from_fn(|n| operands[n][j]));
        }
        out
    }

    /// NaNs made canonical.
    pub(super) fn canonical(&mut self, c: Current) -> Current {
        if !c.raw {
            return c;
        }
        let one = |g: &mut Self, v: Value| {
            let v = g.as_type(v, F32);
            let nan = g.b.ins().f32const(f32::from_bits(NAN as u32));
            let is = g.b.ins().fcmp(FloatCC::Unordered, v, v);
            g.b.ins().select(is, nan, v)
        };
        let val = match c.val {
            Val::One(v) => Val::One(one(self, v)),
            Val::Two(v, w) => Val::Two(one(self, v), one(self, w)),
            Val::Lanes(list) => {
                let nan = self.constant(&[NAN as i32; 4]);
                Val::Lanes(self.each(&[list], |g, [v]| {
                    let v = g.as_type(v, F32X4);
                    let is = g.b.ins().fcmp(FloatCC::Unordered, v, v);
                    let bits = g.as_type(v, I32X4);
                    let r = g.b.ins().bitselect(is, nan, bits);
                    g.as_type(r, F32X4)
                }))
            }
            other => other,
        };
        Current { val, raw: false }
    }

    fn int(&mut self, op: IntOp, wide: bool, x: Value, y: Value, b: Src) -> Value {
        let ins = self.b.ins();
        match op {
            IntOp::Add => ins.iadd(x, y),
            IntOp::Sub => ins.isub(x, y),
            IntOp::Mul => ins.imul(x, y),
            IntOp::And => ins.band(x, y),
            IntOp::Or => ins.bor(x, y),
            IntOp::Xor => ins.bxor(x, y),
            IntOp::MinU => ins.umin(x, y),
            IntOp::MinS => ins.smin(x, y),
            IntOp::MaxU => ins.umax(x, y),
            IntOp::MaxS => ins.smax(x, y),
            IntOp::Shl | IntOp::ShrU | IntOp::ShrS => {
                let bits = if wide { 64 } else { 32 };
                let ty = if wide { I64 } else { I32 };
                // The amount was read with the width of the value; its low 32 bits count.
                if let Some(n) = constant(b) {
                    let n = n & 0xffff_ffff;
                    if n >= bits {
                        return match op {
                            IntOp::ShrS => ins.sshr_imm_s(x, bits - 1),
                            _ => ins.iconst(ty, 0),
                        };
                    }
                    return match op {
                        IntOp::Shl => ins.ishl_imm_s(x, n),
                        IntOp::ShrU => ins.ushr_imm_s(x, n),
                        _ => ins.sshr_imm_s(x, n),
                    };
                }
                let most = self.b.ins().iconst(I32, bits - 1);
                let clamped = self.b.ins().umin(y, most);
                let r = match op {
                    IntOp::Shl => self.b.ins().ishl(x, clamped),
                    IntOp::ShrU => self.b.ins().ushr(x, clamped),
                    _ => return self.b.ins().sshr(x, clamped),
                };
                let over = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, y, bits);
                let zero = self.b.ins().iconst(ty, 0);
                self.b.ins().select(over, zero, r)
            }
        }
    }

    fn int_lanes(&mut self, op: IntOp, a: Src, b: Src) -> Result<Val> {
        let x = self.lanes(a, I32X4)?;
        if let (IntOp::Shl | IntOp::ShrU | IntOp::ShrS, Some(n)) = (op, constant(b)) {
            let n = n & 0xffff_ffff;
            if n > 31 && op != IntOp::ShrS {
                let zero = self.constant(&[0; 4]);
                return Ok(Val::Lanes([zero; 8]));
            }
            return Ok(Val::Lanes(self.each(&[x], |g, [x]| match op {
                IntOp::Shl => g.b.ins().ishl_imm_s(x, n),
                IntOp::ShrU => g.b.ins().ushr_imm_s(x, n),
                _ => g.b.ins().sshr_imm_s(x, n.min(31)),
            })));
        }
        let y = self.lanes(b, I32X4)?;
        if matches!(op, IntOp::Shl | IntOp::ShrU | IntOp::ShrS) {
            return Err(Refused);
        }
        Ok(Val::Lanes(self.each(&[x, y], |g, [x, y]| g.int(op, false, x, y, b))))
    }

    /// Leaves where a value would wrap around between the lanes of the warp, so that its widened form is not affine.
    fn guard_wrap(&mut self, s: Src, signed: bool) -> Result<()> {
        let Spread::Affine { stride, delta } = self.spreads.src(s) else { return Ok(()) };
        if stride == 0 {
            // Both halves are widened by themselves.
            return Ok(());
        }
        let last = stride.wrapping_mul(HALF - 1);
        let (list, ends): (Vec<Value>, Vec<i64>) = match self.source_val(s, I32)? {
            Val::One(v) => {
                let d = delta.unwrap_or(0);
                (vec![v], vec![0, last, d, d.wrapping_add(last)])
            }
            Val::Two(v, w) => (vec![v, w], vec![0, last]),
            _ => return Err(Refused),
        };
        let (low, high) = (ends.iter().min().copied().unwrap_or(0), ends.iter().max().copied().unwrap_or(0));
        for v in list {
            let wide = if signed { self.b.ins().sextend(I64, v) } else { self.b.ins().uextend(I64, v) };
            for d in [low, high] {
                if d == 0 {
                    continue;
                }
                let end = self.b.ins().iadd_imm_s(wide, d);
                let back = self.b.ins().ireduce(I32, end);
                let back =
                    if signed { self.b.ins().sextend(I64, back) } else { self.b.ins().uextend(I64, back) };
                let bad = self.b.ins().icmp(IntCC::NotEqual, back, end);
                self.guard(bad);
            }
        }
        Ok(())
    }

    fn float(&mut self, op: FloatOp, natural: Spread, list: &[Src]) -> Result<Val> {
        if natural.is_affine() {
            let mut bases = Vec::new();
            for s in list {
                bases.push(self.float_bases(*s)?);
            }
            let at = |h: usize| -> Vec<Value> { bases.iter().map(|b| b[h]).collect() };
            let first = self.float_scalar(op, &at(0));
            if natural.is_uniform() {
                return Ok(Val::One(first));
            }
            let second = self.float_scalar(op, &at(1));
            return Ok(Val::Two(first, second));
        }
        let mut v = Vec::new();
        for s in list {
            v.push(self.lanes_of(*s, F32X4, true)?);
        }
        let out = match v[..] {
            [a] => self.each(&[a], |g, [a]| g.float_vector(op, &[a])),
            [a, b] => self.each(&[a, b], |g, v| g.float_vector(op, &v)),
            [a, b, c] => self.each(&[a, b, c], |g, v| g.float_vector(op, &v)),
            _ => return Err(Refused),
        };
        Ok(Val::Lanes(out))
    }

    fn float_scalar(&mut self, op: FloatOp, v: &[Value]) -> Value {
        if let FloatOp::Min | FloatOp::Max = op {
            let (x, y) = (self.as_type(v[0], I32), self.as_type(v[1], I32));
            let cc = if op == FloatOp::Min { FloatCC::LessThan } else { FloatCC::GreaterThan };
            let first = self.b.ins().fcmp(cc, v[0], v[1]);
            let equal = self.b.ins().fcmp(FloatCC::Equal, v[0], v[1]);
            let nan = self.b.ins().fcmp(FloatCC::Unordered, v[1], v[1]);
            let zero = if op == FloatOp::Min { self.b.ins().bor(x, y) } else { self.b.ins().band(x, y) };
            let r = self.b.ins().select(equal, zero, y);
            let first = self.b.ins().bor(first, nan);
            let r = self.b.ins().select(first, x, r);
            return self.as_type(r, F32);
        }
        self.float_plain(op, v)
    }

    fn float_plain(&mut self, op: FloatOp, v: &[Value]) -> Value {
        match op {
            FloatOp::Add => self.b.ins().fadd(v[0], v[1]),
            FloatOp::Sub => self.b.ins().fsub(v[0], v[1]),
            FloatOp::Mul => self.b.ins().fmul(v[0], v[1]),
            FloatOp::Div => self.b.ins().fdiv(v[0], v[1]),
            FloatOp::Sqrt => self.b.ins().sqrt(v[0]),
            FloatOp::Fma => self.b.ins().fma(v[0], v[1], v[2]),
            FloatOp::Min | FloatOp::Max => v[0],
        }
    }

    fn float_vector(&mut self, op: FloatOp, v: &[Value]) -> Value {
        if let FloatOp::Min | FloatOp::Max = op {
            // As the interpreter: the lesser; of two zeros the negative one; of a NaN and a number the number.
            let (x, y) = (self.as_type(v[0], I32X4), self.as_type(v[1], I32X4));
            let cc = if op == FloatOp::Min { FloatCC::LessThan } else { FloatCC::GreaterThan };
            let first = self.b.ins().fcmp(cc, v[0], v[1]);
            let equal = self.b.ins().fcmp(FloatCC::Equal, v[0], v[1]);
            let nan = self.b.ins().fcmp(FloatCC::Unordered, v[1], v[1]);
            let zero = if op == FloatOp::Min { self.b.ins().bor(x, y) } else { self.b.ins().band(x, y) };
            let r = self.b.ins().bitselect(equal, zero, y);
            let first = self.b.ins().bor(first, nan);
            let r = self.b.ins().bitselect(first, x, r);
            return self.as_type(r, F32X4);
        }
        self.float_plain(op, v)
    }

    fn compare(&mut self, cmp: Compare, ty: CompareTy, natural: Spread, a: Src, b: Src) -> Result<Val> {
        let scalar = match ty {
            CompareTy::Float32 => F32,
            CompareTy::Signed { wide } | CompareTy::Unsigned { wide } => {
                if wide {
                    I64
                } else {
                    I32
                }
            }
        };
        if natural != Spread::Mask {
            let (x, y) = if scalar == F32 {
                (self.float_bases(a)?, self.float_bases(b)?)
            } else {
                (self.bases(a, scalar)?, self.bases(b, scalar)?)
            };
            let first = self.compare_one(cmp, ty, x[0], y[0]);
            if natural == Spread::All {
                return Ok(Val::All(first));
            }
            let second = self.compare_one(cmp, ty, x[1], y[1]);
            return Ok(Val::Halves(first, second));
        }
        let vector = if scalar == F32 { F32X4 } else { I32X4 };
        let raw = scalar == F32;
        let (x, y) = (self.lanes_of(a, vector, raw)?, self.lanes_of(b, vector, raw)?);
        let m = self.each(&[x, y], |g, [x, y]| g.compare_one(cmp, ty, x, y));
        Ok(Val::Mask(self.pack(m)))
    }

    fn compare_one(&mut self, cmp: Compare, ty: CompareTy, x: Value, y: Value) -> Value {
        if ty == CompareTy::Float32 {
            let cc = match cmp {
                Compare::Eq => FloatCC::Equal,
                Compare::Ne => FloatCC::NotEqual,
                Compare::Lt => FloatCC::LessThan,
                Compare::Le => FloatCC::LessThanOrEqual,
                Compare::Gt => FloatCC::GreaterThan,
                Compare::Ge => FloatCC::GreaterThanOrEqual,
                Compare::Nlt => FloatCC::UnorderedOrGreaterThanOrEqual,
                Compare::Nle => FloatCC::UnorderedOrGreaterThan,
                Compare::Ngt => FloatCC::UnorderedOrLessThanOrEqual,
                Compare::Nge => FloatCC::UnorderedOrLessThan,
                Compare::Ordered => FloatCC::Ordered,
                Compare::Unordered => FloatCC::Unordered,
            };
            return self.b.ins().fcmp(cc, x, y);
        }
        let signed = matches!(ty, CompareTy::Signed { .. });
        let cc = match (cmp, signed) {
            (Compare::Eq, _) => IntCC::Equal,
            (Compare::Ne, _) => IntCC::NotEqual,
            (Compare::Lt | Compare::Nge, true) => IntCC::SignedLessThan,
            (Compare::Le | Compare::Ngt, true) => IntCC::SignedLessThanOrEqual,
            (Compare::Gt | Compare::Nle, true) => IntCC::SignedGreaterThan,
            (Compare::Ge | Compare::Nlt, true) => IntCC::SignedGreaterThanOrEqual,
            (Compare::Lt | Compare::Nge, false) => IntCC::UnsignedLessThan,
            (Compare::Le | Compare::Ngt, false) => IntCC::UnsignedLessThanOrEqual,
            (Compare::Gt | Compare::Nle, false) => IntCC::UnsignedGreaterThan,
            (Compare::Ge | Compare::Nlt, false) => IntCC::UnsignedGreaterThanOrEqual,
            (Compare::Ordered, _) => IntCC::Equal,
            (Compare::Unordered, _) => IntCC::NotEqual,
        };
        self.b.ins().icmp(cc, x, y)
    }

    /// Eight vectors of all ones or zeros to 32 bits.
    fn pack(&mut self, m: [Value; 8]) -> Value {
        let half = |g: &mut Self, m: &[Value]| {
            let x = g.b.ins().snarrow(m[0], m[1]);
            let y = g.b.ins().snarrow(m[2], m[3]);
            debug_assert_eq!(g.b.func.dfg.value_type(x), I16X8);
            let z = g.b.ins().snarrow(x, y);
            debug_assert_eq!(g.b.func.dfg.value_type(z), I8X16);
            g.b.ins().vhigh_bits(I32, z)
        };
        let low = half(self, &m[..4]);
        let high = if m[..4] == m[4..] { low } else { half(self, &m[4..]) };
        let high = self.b.ins().ishl_imm_s(high, HALF);
        self.b.ins().bor(low, high)
    }

    /// A predicate with its negation done.
    fn pred(&mut self, p: PredSrc) -> Val {
        let val = self.get(p.reg as usize).val;
        if !p.negated {
            return val;
        }
        match val {
            Val::All(c) => Val::All(self.b.ins().bxor_imm_s(c, 1)),
            Val::Halves(x, y) => Val::Halves(self.b.ins().bxor_imm_s(x, 1), self.b.ins().bxor_imm_s(y, 1)),
            Val::Mask(m) => Val::Mask(self.b.ins().bnot(m)),
            other => other,
        }
    }

    fn logic(&mut self, op: BoolOp, a: PredSrc, b: PredSrc) -> Result<Val> {
        let (x, y) = (self.pred(a), self.pred(b));
        let f = |g: &mut Self, x: Value, y: Value| match op {
            BoolOp::And => g.b.ins().band(x, y),
            BoolOp::Or => g.b.ins().bor(x, y),
            BoolOp::Xor => g.b.ins().bxor(x, y),
        };
        Ok(match (x, y) {
            (Val::All(x), Val::All(y)) => Val::All(f(self, x, y)),
            (Val::All(x), Val::Halves(y, z)) => Val::Halves(f(self, x, y), f(self, x, z)),
            (Val::Halves(x, z), Val::All(y)) => Val::Halves(f(self, x, y), f(self, z, y)),
            (Val::Halves(x, u), Val::Halves(y, v)) => Val::Halves(f(self, x, y), f(self, u, v)),
            (x, y) => {
                let (x, y) = (self.bits(x), self.bits(y));
                Val::Mask(f(self, x, y))
            }
        })
    }

    fn select(&mut self, wide: bool, natural: Spread, a: Src, b: Src, p: PredSrc) -> Result<Val> {
        let cond = self.pred(p);
        if natural.is_affine() {
            let ty = if wide { I64 } else { I32 };
            let (x, y) = (self.bases(a, ty)?, self.bases(b, ty)?);
            let (c, d) = match cond {
                Val::All(c) => (c, c),
                Val::Halves(c, d) => (c, d),
                _ => return Err(Refused),
            };
            let first = self.b.ins().select(c, x[0], y[0]);
            if natural.is_uniform() {
                return Ok(Val::One(first));
            }
            let second = self.b.ins().select(d, x[1], y[1]);
            return Ok(Val::Two(first, second));
        }
        let (x, y) = (self.lanes(a, I32X4)?, self.lanes(b, I32X4)?);
        let bits = self.bits(cond);
        let all = self.b.ins().splat(I32X4, bits);
        let masks: [Value; 8] = std::array::from_fn(|j| {
            let lanes: Vec<i32> = (0..4).map(|l| (1u32 << (4 * j + l)) as i32).collect();
            let c = self.constant(&lanes);
            let v = self.b.ins().band(all, c);
            self.b.ins().icmp(IntCC::Equal, v, c)
        });
        Ok(Val::Lanes(self.each(&[masks, x, y], |g, [m, x, y]| g.b.ins().bitselect(m, x, y))))
    }
}

/// A constant's bits as `iconst` wants them.
fn sign(v: u64, ty: Type) -> i64 {
    if ty == I64 { v as i64 } else { i64::from(v as u32) }
}
