//! Approximate instructions against the errors and special values that the PTX manual states for each.

use super::device::{self, Program};
use super::float::{Format, elements, format};
use super::table::{self, Spelling};
use super::vectors::Random;

/// An error that the manual allows.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Relative(f64),
    Absolute(f64),
    /// Units in the last place of the exact value.
    Ulp(f64),
}

/// The manual's words for an instruction: exact function, allowed error at operands.
struct Rule {
    exact: fn(&[f64]) -> f64,
    bound: fn(&[f64]) -> Bound,
}

fn rule(s: &Spelling) -> Option<Rule> {
    fn relative<const BITS: i32>(_: &[f64]) -> Bound {
        Bound::Relative((-f64::from(BITS)).exp2())
    }
    fn ulp<const N: i32>(_: &[f64]) -> Bound {
        Bound::Ulp(f64::from(N))
    }
    let (element, _) = elements(s.ty(0));
    Some(match (s.name(), element) {
        ("ex2", "f32") => Rule { exact: |v| v[0].exp2(), bound: ulp::<2> },
        ("ex2", "f16") => Rule { exact: |v| v[0].exp2(), bound: |_| Bound::Relative((-9.9f64).exp2()) },
        ("ex2", _) => Rule { exact: |v| v[0].exp2(), bound: relative::<7> },
        ("lg2", _) => Rule {
            exact: |v| v[0].log2(),
            bound: |v| {
                let e = (-22f64).exp2();
                if v[0] > 0.5 && v[0] < 2.0 { Bound::Absolute(e) } else { Bound::Relative(e) }
            },
        },
        ("sin", _) => Rule { exact: |v| v[0].sin(), bound: trigonometric },
        ("cos", _) => Rule { exact: |v| v[0].cos(), bound: trigonometric },
        ("tanh", "f32") => Rule { exact: |v| v[0].tanh(), bound: relative::<11> },
        ("tanh", "f16") => Rule { exact: |v| v[0].tanh(), bound: |_| Bound::Absolute((-10.987f64).exp2()) },
        ("tanh", _) => Rule { exact: |v| v[0].tanh(), bound: |_| Bound::Absolute((-8f64).exp2()) },
        ("rcp", "f32") => Rule { exact: |v| 1.0 / v[0], bound: ulp::<1> },
        // A gross approximation of the upper word: 20 bits of fraction.
        ("rcp", _) => Rule { exact: |v| 1.0 / v[0], bound: relative::<19> },
        ("rsqrt", "f32") => {
            Rule { exact: |v| 1.0 / v[0].sqrt(), bound: |_| Bound::Relative((-22.9f64).exp2()) }
        }
        ("rsqrt", _) if s.has("ftz") => Rule { exact: |v| 1.0 / v[0].sqrt(), bound: relative::<19> },
        ("rsqrt", _) => Rule { exact: |v| 1.0 / v[0].sqrt(), bound: ulp::<2> },
        ("sqrt", _) => Rule { exact: |v| v[0].sqrt(), bound: relative::<23> },
        ("div", _) => Rule { exact: |v| v[0] / v[1], bound: ulp::<2> },
        _ => return None,
    })
}

/// 2^-20.5 within two turns, 2^-14.7 within 50; beyond, nothing is promised but that it is no larger than 1.
fn trigonometric(v: &[f64]) -> Bound {
    let turns = v[0].abs() / std::f64::consts::PI;
    let bits: f64 = if turns <= 2.0 { 20.5 } else { 14.7 };
    Bound::Absolute(if turns > 100.0 { 2.0 } else { (-bits).exp2() })
}

/// What the manual's table says for an operand, as a value (NaN for any NaN).
fn special(s: &Spelling, v: &[f64]) -> Option<f64> {
    let x = v[0];
    let inf = f64::INFINITY;
    if v.iter().any(|x| x.is_nan()) {
        return Some(f64::NAN);
    }
    match s.name() {
        "ex2" if x == inf => Some(inf),
        "ex2" if x == -inf => Some(0.0),
        "ex2" if x == 0.0 => Some(1.0),
        "lg2" if x == 0.0 => Some(-inf),
        "lg2" if x < 0.0 => Some(f64::NAN),
        "lg2" if x == inf => Some(inf),
        "sin" | "cos" if x.is_infinite() => Some(f64::NAN),
        "sin" | "tanh" if x == 0.0 => Some(x),
        "cos" if x == 0.0 => Some(1.0),
        "tanh" if x.is_infinite() => Some(x.signum()),
        "rcp" if x == 0.0 || x.is_infinite() => Some(1.0 / x),
        "rsqrt" if x == 0.0 => Some(inf.copysign(x)),
        "rsqrt" if x < 0.0 => Some(f64::NAN),
        "rsqrt" if x == inf => Some(0.0),
        "sqrt" if x == 0.0 || x == inf => Some(x),
        "sqrt" if x < 0.0 => Some(f64::NAN),
        "div" => {
            let y = v[1];
            let large = y.is_finite() && y.abs() > 126f64.exp2();
            if s.has("approx") && large {
                return Some(if x.is_infinite() { f64::NAN } else { 0f64.copysign(x * y.signum()) });
            }
            let q = x / y;
            (!q.is_finite() || q == 0.0 && (x == 0.0 || y.is_infinite())).then_some(q)
        }
        _ => None,
    }
}

fn number(ty: &str, x: u64) -> f64 {
    match ty {
        "f16" => half::f16::from_bits(x as u16).to_f64(),
        "bf16" => half::bf16::from_bits(x as u16).to_f64(),
        "f32" => f64::from(f32::from_bits(x as u32)),
        _ => f64::from_bits(x),
    }
}

/// The spacing of a format's numbers at `x`.
fn spacing(ty: &str, x: f64) -> f64 {
    let (precision, least) = match ty {
        "f16" => (11, -14),
        "bf16" => (8, -126),
        "f32" => (24, -126),
        _ => (53, -1022),
    };
    let exponent = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    // In two factors, which are normal numbers.
    f64::from(exponent).exp2() * f64::from(1 - precision).exp2()
}

fn largest(ty: &str) -> f64 {
    match ty {
        "f16" => 65504.0,
        "bf16" => f64::from(half::bf16::MAX),
        "f32" => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// True if `got` may be the result; `v` are the operands after flushing.
fn allowed(s: &Spelling, rule: &Rule, ty: &str, f: Format, v: &[f64], got: u64) -> bool {
    let ftz = s.has("ftz");
    if f.is_nan(got) {
        let nan = special(s, v).is_some_and(f64::is_nan);
        return nan && got == f.nan;
    }
    let y = number(ty, got);
    if let Some(want) = special(s, v) {
        return want == y && want.is_sign_negative() == y.is_sign_negative();
    }
    let exact = (rule.exact)(v);
    let error = match (rule.bound)(v) {
        Bound::Relative(e) => e * exact.abs(),
        Bound::Absolute(e) => e,
        Bound::Ulp(n) => n * spacing(ty, exact),
    };
    // A result that does not fit rounds to the nearest that does, whatever the error: half a unit more.
    let error = error.max(spacing(ty, exact) / 2.0);
    let tiny = largest(ty).recip().max(f64::from(if ty == "f16" { -14 } else { -126 }).exp2());
    if ftz && y == 0.0 && exact.abs() < if ty == "f64" { f64::MIN_POSITIVE * 2.0 } else { tiny * 1.001 } {
        return true;
    }
    if y.is_infinite() {
        return exact.abs() + error >= largest(ty) && y.signum() == exact.signum();
    }
    (y - exact).abs() <= error
}

/// Operands: every exponent with a few fractions, then random bits.
fn samples(ty: &'static str, count: usize, launch: usize, random: &mut Random) -> Vec<Vec<u64>> {
    let f = format(ty).expect("a float");
    (0..THREADS)
        .map(|t| {
            (0..count)
                .map(|k| {
                    let n = (launch * THREADS + t) as u64;
                    if (n + k as u64).is_multiple_of(4) {
                        super::vectors::value(ty, random)
                    } else if n % 4 == 1 {
                        // Around one, where the bounds are tight.
                        f.one().wrapping_add(random.next() % (f.inf() / 8)).wrapping_sub(f.inf() / 16)
                    } else {
                        (random.next() & f.sign()) | random.below(f.inf() + 1)
                    }
                })
                .collect()
        })
        .collect()
}

/// Operands for which the exact result is a number of the format, with that result: `count` of them.
pub fn exact_operands(s: &Spelling, count: usize) -> Vec<(Vec<u64>, u64)> {
    let rule = rule(s).expect("a rule");
    let (ty, parts) = elements(s.ty(0));
    let f = format(ty).expect("a float");
    let encode = |x: f64| -> u64 {
        match ty {
            "f16" => u64::from(half::f16::from_f64(x).to_bits()),
            "bf16" => u64::from(half::bf16::from_f64(x).to_bits()),
            "f32" => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        }
    };
    let inf = f64::INFINITY;
    let candidates =
        [-4.0, 1.0, 0.25, 16.0, 0.0, -0.0, 4.0, 64.0, inf, f64::NAN, -inf, 0.5, 2.0, 8.0, 3.0, 9.0];
    let mut out = Vec::new();
    let operands = s.operands.len() - 1;
    for (k, x) in candidates.iter().enumerate() {
        let v: Vec<f64> =
            (0..operands).map(|j| if j == 0 { *x } else { candidates[(k * 5 + 1) % 16] }).collect();
        let exact = special(s, &v).unwrap_or_else(|| (rule.exact)(&v));
        let bits = if exact.is_nan() { f.nan } else { encode(exact) };
        let is_number = exact.is_nan() || (number(ty, bits) == exact && f.flush(bits) == bits);
        if is_number {
            let both = |x: u64| if parts == 2 { x | x << f.bits } else { x };
            let operand = |x: &f64| both(if x.is_nan() { f.nan } else { encode(*x) });
            out.push((v.iter().map(operand).collect(), both(bits)));
        }
    }
    // Few numbers have an exact sine: the same ones again.
    (0..count).map(|k| out[k % out.len()].clone()).collect()
}

/// Vectors of a launch.
const THREADS: usize = 1024;

#[test]
fn approximations_stay_within_the_errors_of_the_manual() {
    let mut faults = Vec::new();
    let list = table::approximations();
    assert!(list.len() > 20, "{list:?}");
    for s in &list {
        let Some(rule) = rule(s) else {
            faults.push(format!("no rule for `{}`", s.text));
            continue;
        };
        let (ty, count) = elements(s.ty(0));
        let f = format(ty).expect("a float");
        let operands = s.operands.len() - 1;
        let mut random = Random(7);
        let launches = if s.has("div") { 4 } else { 12 };
        let programs: Vec<Program> = (0..launches)
            .map(|launch| {
                let mut vectors = samples(ty, operands, launch, &mut random);
                if count == 2 {
                    let upper = samples(ty, operands, launch, &mut random);
                    for (v, u) in vectors.iter_mut().zip(upper) {
                        v.iter_mut().zip(u).for_each(|(x, y)| *x |= y << f.bits);
                    }
                }
                Program::of(s, 1).expect("a program").with_vectors(vectors)
            })
            .collect();
        let mut wrong = 0;
        for (p, result) in programs.iter().zip(device::run(&programs)) {
            let result = result.unwrap_or_else(|e| panic!("`{}`: {e}", s.text));
            for (t, word) in result.iter().enumerate().take(THREADS) {
                for k in 0..count {
                    let part = |x: u64| x >> (f.bits * k) & super::vectors::mask(f.bits);
                    let v: Vec<u64> = p.vector(t).iter().map(|x| part(*x)).collect();
                    let flushed =
                        v.iter().map(|x| if s.has("ftz") && ty != "f16" { f.flush(*x) } else { *x });
                    // The gross forms of `.f64` take the upper word.
                    let gross = ty == "f64" && s.has("ftz");
                    let cut = flushed.map(|x| if gross { x & !0xffff_ffff } else { x });
                    let numbers: Vec<f64> = cut.map(|x| number(ty, x)).collect();
                    let got = part(*word);
                    if !allowed(s, &rule, ty, f, &numbers, got) {
                        wrong += 1;
                        if wrong <= 3 {
                            let exact = (rule.exact)(&numbers);
                            let y = number(ty, got);
                            faults.push(format!(
                                "`{}` of {v:x?} {numbers:?}: got {got:x} {y:e}, exact {exact:e}",
                                s.text
                            ));
                        }
                    }
                }
            }
        }
        if wrong > 3 {
            faults.push(format!("`{}`: {wrong} values", s.text));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
