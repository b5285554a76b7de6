//! Tests that every vectorised form agrees with its lane function, in both variants, under full and partial masks,
//! over edge values and random bits.

use std::collections::BTreeMap;

use assay_ptx::{Instr, Op, Ty, parse_module};

use crate::code::Kind;
use crate::cpu::{Variant, wide_available};
use crate::handlers::alu;
use crate::memory::Bytes;
use crate::semantics::{self, Scalar};
use crate::warp::{Decoded, LANES, Warp};

/// Instructions, one per line: spelling, then the number of operands behind the destination.
const SPELLINGS: &str = include_str!("../testdata/arithmetic.txt");

/// Values worth trying in a type, most telling first.
fn edges(ty: Ty) -> Vec<u64> {
    let bits = ty.bits();
    let mut v: Vec<u64> = vec![0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 255, 256, u64::MAX, u64::MAX - 1];
    for k in [7, 8, 15, 16, 30, 31, 32, 47, 62, 63] {
        v.extend([1u64 << k, (1u64 << k) - 1, (1u64 << k) + 1]);
    }
    for x in [
        0.0f32, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.4e38, 1e-38, 1e-45, 6.1e-5, 65504.0, 65520.0, 1e10, -7.0,
        0.1,
    ] {
        for x in [x, -x] {
            v.push(u64::from(x.to_bits()));
            v.push(f64::from(x).to_bits());
            v.push(u64::from(half::f16::from_f32(x).to_bits()) * 0x1_0001);
            v.push(u64::from(half::bf16::from_f32(x).to_bits()) * 0x1_0001);
        }
    }
    v.extend([
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0xffc1_2345,
        0x7c00,
        0xfc00,
        0x7e00,
        0x7c01,
    ]);
    v.extend([0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001]);
    v.extend([0x7ff8_0000_0000_0001, 0x0010_0000_0000_0000, 0x000f_ffff_ffff_ffff, 0x0080_0000, 0x007f_ffff]);
    v.iter().map(|x| x & if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }).collect()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn value(&mut self, ty: Ty, edges: &[u64]) -> u64 {
        let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
        match self.next() % 4 {
            0 | 1 => edges[(self.next() % edges.len() as u64) as usize],
            // Floats of like magnitude, so that sums cancel and round.
            2 if ty == Ty::F32 => 0x3f80_0000 ^ (self.next() & 0x80ff_ffff),
            2 if ty == Ty::F64 => 0x3ff0_0000_0000_0000 ^ (self.next() & 0x800f_ffff_ffff_ffff),
            2 => self.next() & mask & 0xffff,
            _ => self.next() & mask,
        }
    }
}

fn declare(ty: Ty) -> (&'static str, &'static str) {
    match (ty, ty.bits()) {
        (Ty::Pred, _) => (".pred", "%p"),
        (Ty::F32, _) => (".f32", "%f"),
        (Ty::F64, _) => (".f64", "%fd"),
        (_, 8 | 16) => (".b16", "%rs"),
        (_, 32) => (".b32", "%r"),
        _ => (".b64", "%rd"),
    }
}

/// The instruction of a spelling, with registers that fit.
fn instruction(spelling: &str, sources: &[Ty], result: Ty) -> Result<Instr, String> {
    let mut list = vec![result];
    list.extend(sources);
    let mut text = String::from(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n");
    let names: Vec<String> =
        list.iter().enumerate().map(|(k, t)| format!("{}{}", declare(*t).1, k + 1)).collect();
    for (t, n) in list.iter().zip(&names) {
        text += &format!(".reg {} {n};\n", declare(*t).0);
    }
    text += &format!("{spelling} {};\nret;\n}}\n", names.join(", "));
    let m = parse_module(&text).map_err(|e| format!("{spelling}: {e}"))?;
    Ok(m.functions[0].body[0].clone())
}

/// Types that the parser takes for a spelling: found by trying, since the lane function tells them.
fn resolve(spelling: &str, count: usize) -> Result<(Instr, Scalar), String> {
    let candidates = [Ty::F32, Ty::F64, Ty::B16, Ty::B32, Ty::B64, Ty::Pred];
    let mut error = String::new();
    let shapes = candidates.len().pow(count as u32 + 1);
    for mut code in 0..shapes {
        let mut types = Vec::new();
        for _ in 0..=count {
            types.push(candidates[code % candidates.len()]);
            code /= candidates.len();
        }
        match instruction(spelling, &types[1..], types[0]) {
            Ok(i) => {
                let s = semantics::scalar(&i).ok_or(format!("{spelling}: no lane function"))?;
                return Ok((i, s));
            }
            Err(e) => error = e,
        }
    }
    Err(error)
}

fn slot(kind: Kind, at: &mut u32) -> u32 {
    let here = *at;
    *at += match kind {
        Kind::Pred => 128,
        Kind::W32 => 128,
        Kind::W64 => 256,
    };
    here
}

fn kind(ty: Ty) -> Kind {
    match ty.bits() {
        1 => Kind::Pred,
        64 => Kind::W64,
        _ => Kind::W32,
    }
}

fn put(regs: &mut Bytes, at: u32, kind: Kind, lane: usize, v: u64) {
    let b = regs.as_mut_slice();
    let at = at as usize;
    match kind {
        Kind::W32 => b[at + 4 * lane..at + 4 * lane + 4].copy_from_slice(&(v as u32).to_le_bytes()),
        Kind::W64 => b[at + 8 * lane..at + 8 * lane + 8].copy_from_slice(&v.to_le_bytes()),
        Kind::Pred => {
            let (byte, bit) = (at + lane / 8, lane % 8);
            b[byte] = (b[byte] & !(1 << bit)) | ((v as u8 & 1) << bit);
        }
    }
}

fn get(regs: &Bytes, at: u32, kind: Kind, lane: usize) -> u64 {
    let b = regs.as_slice();
    let at = at as usize;
    match kind {
        Kind::W32 => u64::from(u32::from_le_bytes(b[at + 4 * lane..at + 4 * lane + 4].try_into().unwrap())),
        Kind::W64 => u64::from_le_bytes(b[at + 8 * lane..at + 8 * lane + 8].try_into().unwrap()),
        Kind::Pred => u64::from(b[at + lane / 8] >> (lane % 8) & 1),
    }
}

fn spellings() -> Vec<(&'static str, usize)> {
    SPELLINGS
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| {
            let (s, n) = l.split_once(' ').expect("a spelling and a count");
            (s, n.trim().parse().expect("a count"))
        })
        .collect()
}

#[test]
fn vectorised_forms_agree_with_lane_functions() {
    let mut variants = vec![Variant::Portable];
    if wide_available() {
        variants.push(Variant::Wide);
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut random = Random(0x9876_5432_1234_5678);
    for (spelling, count) in spellings() {
        let (i, s) = resolve(spelling, count).unwrap_or_else(|e| panic!("{e}"));
        let Some(pair) = alu::fast(&i) else {
            *seen.entry("lane by lane".into()).or_default() += 1;
            continue;
        };
        *seen.entry("vectorised".into()).or_default() += 1;
        let mut at = 512;
        let sources: Vec<(u32, Ty)> = s.sources.iter().map(|t| (slot(kind(*t), &mut at), *t)).collect();
        let dest = slot(kind(s.result), &mut at);
        let tables: Vec<Vec<u64>> = s.sources.iter().map(|t| edges(*t)).collect();
        let mut regs = Bytes::zeroed(at as usize + 256);
        for round in 0..40 {
            let mask = match round % 4 {
                0 | 1 => u32::MAX,
                2 => random.next() as u32,
                _ => 0x0000_ffff,
            };
            let mut inputs = [[0u64; 4]; LANES];
            for (k, lane) in inputs.iter_mut().enumerate() {
                for (j, (at, ty)) in sources.iter().enumerate() {
                    lane[j] = random.value(*ty, &tables[j]);
                    put(&mut regs, *at, kind(*ty), k, lane[j]);
                }
            }
            for variant in &variants {
                for k in 0..LANES {
                    put(&mut regs, dest, kind(s.result), k, 0x5555_5555_5555_5555);
                }
                let f = pair.pick(*variant);
                let source = |j: usize| sources.get(j).map_or(0, |s| s.0);
                let d = [Decoded {
                    f,
                    g: f,
                    d: dest,
                    a: source(0),
                    b: source(1),
                    c: source(2),
                    e: 0,
                    guard: 0,
                    off: 0,
                    class: 0,
                    aux: 0,
                }; 2];
                let mut w = Warp::empty();
                w.regs = regs.as_ptr();
                w.mask = mask;
                // SAFETY: the registers lie within `regs`, as wide as the operation's types; the variant is available.
                unsafe { f(&mut w, &d[0]) };
                for (k, lane) in inputs.iter().enumerate() {
                    let got = get(&regs, dest, kind(s.result), k);
                    let want = if mask >> k & 1 != 0 {
                        (s.f)(*lane) & if s.result == Ty::Pred { 1 } else { u64::MAX }
                    } else {
                        0x5555_5555_5555_5555
                            & if kind(s.result) == Kind::W64 {
                                u64::MAX
                            } else if s.result == Ty::Pred {
                                1
                            } else {
                                0xffff_ffff
                            }
                    };
                    assert_eq!(
                        got, want,
                        "{spelling} {variant:?} lane {k} mask {mask:#x}: {lane:x?}: got {got:#x}, want {want:#x}"
                    );
                }
            }
        }
    }
    assert!(seen["vectorised"] > 150 && seen["lane by lane"] > 100, "{seen:?}");
}

#[test]
fn every_arithmetic_opcode_has_a_spelling_in_the_list() {
    let list = spellings();
    let skip = |op: Op| {
        let row = op.row();
        row.section.starts_with("Parallel")
            || row.section.starts_with("Control")
            || row.section.starts_with("Warp Level")
            || row.section.starts_with("Misc")
            || row.section.starts_with("Extended")
            || matches!(
                op,
                Op::CpAsync
                    | Op::CpAsyncMbarrierArrive
                    | Op::CpAsyncCommitGroup
                    | Op::CpAsyncWaitAll
                    | Op::CpAsyncWaitGroup
                    | Op::Cvta
                    | Op::Discard
                    | Op::Getctarank
                    | Op::Isspacep
                    | Op::Ld
                    | Op::Ldu
                    | Op::Mapa
                    | Op::Prefetch
                    | Op::Prefetchu
                    | Op::St
                    | Op::Szext
                    | Op::Lop3
                    | Op::ElectSync
            )
    };
    for op in Op::ALL {
        if !skip(*op) {
            let found = list.iter().any(|(s, _)| s.split('.').next() == Some(op.name()));
            assert!(found, "`{}` has no line in testdata/arithmetic.txt", op.name());
        }
    }
}
