//! Products of matrices: `mma` from fragments laid out by the manual's formulas, `wmma` through memory.

use std::fmt::Write as _;
use std::sync::Arc;

use assay_ptx::Op;
use assay_ptx::isa::TABLE;
use assay_simt::{Arg, BufferSpec, Init, LaunchSpec, Loaded, Options, Role, Sanitize, Session, Status};
use assay_tensor::DType;
use rustc_apfloat::ieee::{Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use super::float::round;
use super::table::{Spelling, expand_row};
use super::vectors::{Random, mask, value};

const LANES: usize = 32;
/// Launches of one spelling: at least 1,000 elements for the smallest result of 64.
const ROUNDS: usize = 16;

fn bits_of(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

fn shape(s: &Spelling) -> (usize, usize, usize) {
    let text = s.words.iter().find(|w| w.starts_with('m') && w.contains('k')).expect("a shape");
    let (m, rest) = text[1..].split_once('n').expect("m and n");
    let (n, k) = rest.split_once('k').expect("n and k");
    (m.parse().expect("m"), n.parse().expect("n"), k.parse().expect("k"))
}

/// Row and column of element `i` of lane `lane`, by the formulas of the manual's section on each shape.
fn element(which: char, (m, _, k): (usize, usize, usize), ty: &str, lane: usize, i: usize) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let low = group;
    let high = group + 8;
    match (which, ty) {
        ('a', _) if m == 8 => (low, thread * (32 / bits_of(ty)).max(1) + i),
        ('a', "f16" | "bf16") if k == 8 => (if i < 2 { low } else { high }, thread * 2 + (i & 1)),
        ('a', "f16" | "bf16") => (
            if i < 2 || (4..6).contains(&i) { low } else { high },
            thread * 2 + (i & 1) + if i >= 4 { 8 } else { 0 },
        ),
        ('a', "f64") if k == 16 => {
            if i.is_multiple_of(2) {
                (low, i * 2 + thread)
            } else {
                (high, i * 2 - 2 + thread)
            }
        }
        ('a', "tf32" | "f64") => {
            (if i.is_multiple_of(2) { low } else { high }, if i < 2 { thread } else { thread + 4 })
        }
        ('a', "s8" | "u8" | "e4m3" | "e5m2") => (
            if i < 4 || (8..12).contains(&i) { low } else { high },
            thread * 4 + (i & 3) + if i >= 8 { 16 } else { 0 },
        ),
        ('a', "s4" | "u4") => (
            if i < 8 || (16..24).contains(&i) { low } else { high },
            thread * 8 + (i & 7) + if i >= 16 { 32 } else { 0 },
        ),
        ('a', _) => (
            if i < 32 || (64..96).contains(&i) { low } else { high },
            thread * 32 + (i & 31) + if i >= 64 { 128 } else { 0 },
        ),
        ('b', "f16" | "bf16") => (thread * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group),
        ('b', "tf32" | "f64") => (thread + i * 4, group),
        ('b', "s8" | "u8" | "e4m3" | "e5m2") => (thread * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, group),
        ('b', "s4" | "u4") => (thread * 8 + (i & 7) + if i >= 8 { 32 } else { 0 }, group),
        ('b', _) => (thread * 32 + (i & 31) + if i >= 32 { 128 } else { 0 }, group),
        _ => (if i < 2 { low } else { high }, thread * 2 + (i & 1)),
    }
}

/// As [`element`] for `mma.m8n8k4` of `.f16`.
fn volta(which: char, row_major: bool, ty: &str, lane: usize, i: usize) -> (usize, usize) {
    let four = if lane < 16 { 0 } else { 4 };
    match (which, row_major) {
        ('a', true) => (lane % 4 + four, i),
        ('a', false) => (i % 4 + four, lane % 4),
        ('b', true) => (lane % 4, i + four),
        ('b', false) => (i, lane % 4 + four),
        _ if ty == "f16" => (lane % 4 + four, i),
        _ => ((lane & 1) + (i & 2) + four, (i & 4) + (lane & 2) + (i & 1)),
    }
}

fn single(ty: &str, x: u64) -> Single {
    fn widen<T: Float + FloatConvert<Single>>(x: u64) -> Single {
        T::from_bits(u128::from(x)).convert(&mut false).value
    }
    match ty {
        "f16" => widen::<Half>(x),
        "e4m3" => widen::<Float8E4M3FN>(x),
        "e5m2" => widen::<Float8E5M2>(x),
        "bf16" => Single::from_bits(u128::from(x << 16)),
        "tf32" if !Single::from_bits(u128::from(x)).is_nan() => Single::from_bits(u128::from(x & !0x1fff)),
        _ => Single::from_bits(u128::from(x)),
    }
}

fn integer(ty: &str, x: u64) -> i64 {
    let bits = bits_of(ty) as u32;
    let x = x & mask(bits);
    if ty.starts_with('s') && x >> (bits - 1) != 0 { x as i64 - (1i64 << bits) } else { x as i64 }
}

/// One element of the result: the row of a, the column of b, c.
fn dot(s: &Spelling, types: [&str; 4], row: &[u64], col: &[u64], c: u64) -> u64 {
    let [d_ty, a_ty, b_ty, c_ty] = types;
    match a_ty {
        "f64" => {
            let mut sum = Double::from_bits(u128::from(c));
            for (x, y) in row.iter().zip(col) {
                let (x, y) = (Double::from_bits(u128::from(*x)), Double::from_bits(u128::from(*y)));
                sum = x.mul_add_r(y, sum, round(s)).value;
            }
            if sum.is_nan() { 0x7ff8_0000_0000_0000 } else { sum.to_bits() as u64 }
        }
        "s8" | "u8" | "s4" | "u4" => {
            let products = row.iter().zip(col).map(|(x, y)| integer(a_ty, *x) * integer(b_ty, *y));
            let sum = products.sum::<i64>() + i64::from(c as u32 as i32);
            let sum = if s.has("satfinite") { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            sum as u64 & mask(32)
        }
        "b1" => {
            let both = |x: &u64, y: &u64| if s.has("xor") { x ^ y } else { x & y };
            let ones: u64 = row.iter().zip(col).map(|(x, y)| both(x, y) & 1).sum();
            c.wrapping_add(ones) & mask(32)
        }
        _ => {
            let mut sum = single(c_ty, c);
            for (x, y) in row.iter().zip(col) {
                sum = single(a_ty, *x).mul_add(single(b_ty, *y), sum).value;
            }
            if d_ty == "f16" {
                let h: Half = sum.convert(&mut false).value;
                return if h.is_nan() { 0x7fff } else { h.to_bits() as u64 };
            }
            if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() as u64 }
        }
    }
}

fn random_element(ty: &str, random: &mut Random) -> u64 {
    let plain = random.below(8) > 0;
    match ty {
        // Mostly numbers near one, so that sums round rather than overflow.
        "f16" if plain => 0x3c00 ^ random.next() & 0x8bff,
        "bf16" if plain => 0x3f80 ^ random.next() & 0x80ff,
        "f32" | "tf32" if plain => 0x3f80_0000 ^ random.next() & 0x80ff_ffff,
        "f64" if plain => 0x3ff0_0000_0000_0000 ^ random.next() & 0x801f_ffff_ffff_ffff,
        "f16" => value("f16", random),
        "bf16" => value("bf16", random),
        "f32" | "tf32" => value("f32", random),
        "f64" => value("f64", random),
        "s32" => value("s32", random),
        other => random.next() & mask(bits_of(other) as u32),
    }
}

fn types(s: &Spelling) -> [&'static str; 4] {
    match s.types[..] {
        [d, c] => [d, "f16", "f16", c],
        _ => [s.ty(0), s.ty(1), s.ty(2), s.ty(3)],
    }
}

/// Runs an entry `k(in, out)` for one warp.
fn launch(
    loaded: &Arc<Loaded>,
    input: &[u8],
    out_bytes: usize,
    sanitize: Sanitize,
) -> Result<Vec<u8>, String> {
    let options = Options { sanitize, ..Options::default() };
    let mut session = Session::new(Arc::clone(loaded), options);
    let spec = BufferSpec::new("in", input.len() as u64, Role::Input, DType::U8, Init::Bytes(input));
    let a = session.alloc(spec).map_err(|e| e.to_string())?;
    let spec = BufferSpec::new("out", out_bytes as u64, Role::Output, DType::U8, Init::Uninit);
    let b = session.alloc(spec).map_err(|e| e.to_string())?;
    let outcome = session.launch(&LaunchSpec {
        kernel: "k",
        grid: [1, 1, 1],
        block: [32, 1, 1],
        dynamic_shared: 0,
        blocks: &assay_simt::Blocks::All,
        args: &[Arg::Pointer(a, 0), Arg::Pointer(b, 0)],
    });
    if outcome.status != Status::Ok {
        return Err(format!("{:?} {:?} {:?}", outcome.status, outcome.reason, outcome.findings));
    }
    Ok(session.read(b).to_vec())
}

fn load(text: &str) -> Result<Arc<Loaded>, String> {
    let module = assay_ptx::parse_module(text).map_err(|e| format!("{e}\n{text}"))?;
    Ok(Arc::new(Loaded::new(&module).map_err(|e| e.to_string())?))
}

const HEAD: &str = ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n\
    .reg .b64 %src, %dst, %off;\n.reg .b32 %tid;\nld.param.u64 %src, [in];\nld.param.u64 %dst, [out];\n\
    mov.u32 %tid, %tid.x;\n";

/// Words of 8 bytes per lane that a fragment takes, and elements in a register.
fn registers(elements: usize, ty: &str) -> (usize, usize) {
    let per = (32 / bits_of(ty)).max(1);
    (elements.div_ceil(per), per)
}

fn mma(s: &Spelling) -> Result<(), String> {
    let [d_ty, a_ty, b_ty, c_ty] = types(s);
    let (m, n, k) = shape(s);
    let is_volta = a_ty == "f16" && m == 8;
    let batches = if is_volta { 4 } else { 1 };
    let counts = [("a", m * k, a_ty), ("b", k * n, b_ty), ("c", m * n, c_ty), ("d", m * n, d_ty)]
        .map(|(name, count, ty)| (name, count * batches / LANES, ty));
    let mut text = String::from(HEAD);
    text += "mul.wide.u32 %off, %tid, 8;\nadd.s64 %src, %src, %off;\nadd.s64 %dst, %dst, %off;\n";
    let mut at = 0;
    let mut lists = Vec::new();
    for (name, count, ty) in counts {
        let (number, _) = registers(count, ty);
        let wide = ty == "f64";
        let class = if wide {
            ".f64"
        } else if ty == "f32" {
            ".f32"
        } else {
            ".b32"
        };
        let load = if wide {
            "f64"
        } else if ty == "f32" {
            "f32"
        } else {
            "b32"
        };
        let mut list = Vec::new();
        for r in 0..number {
            let _ = writeln!(text, ".reg {class} %{name}{r};");
            if name != "d" {
                let _ = writeln!(text, "ld.global.{load} %{name}{r}, [%src+{}];", (at + r) * LANES * 8);
            }
            list.push(format!("%{name}{r}"));
        }
        if name != "d" {
            at += number;
        }
        lists.push(format!("{{{}}}", list.join(", ")));
    }
    let _ = writeln!(text, "{} {}, {}, {}, {};", s.text, lists[3], lists[0], lists[1], lists[2]);
    let (d_registers, d_per) = registers(counts[3].1, d_ty);
    let store = if d_ty == "f64" {
        "f64"
    } else if d_ty == "f32" {
        "f32"
    } else {
        "b32"
    };
    for r in 0..d_registers {
        let _ = writeln!(text, "st.global.{store} [%dst+{}], %d{r};", r * LANES * 8);
        if d_ty != "f64" {
            let _ = writeln!(text, "st.global.u32 [%dst+{}], 0;", r * LANES * 8 + 4);
        }
    }
    text += "ret;\n}\n";
    let loaded = load(&text)?;
    let order = |which: char| {
        let layouts: Vec<_> = s.words.iter().filter(|w| ["row", "col", "row2", "col2"].contains(w)).collect();
        layouts[usize::from(which == 'b')].starts_with("row")
    };
    let place = |which: char, ty: &str, lane: usize, i: usize| {
        if is_volta {
            volta(which, order(which), ty, lane, i)
        } else {
            element(which, (m, n, k), ty, lane, i)
        }
    };
    let batch_of = |lane: usize| if is_volta { lane / 4 % 4 } else { 0 };
    let seed = s.text.bytes().fold(1u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
    let mut random = Random(seed);
    for turn in 0..ROUNDS {
        let mut matrices = [vec![0u64; batches * m * k], vec![0; batches * k * n], vec![0; batches * m * n]];
        for (matrix, ty) in matrices.iter_mut().zip([a_ty, b_ty, c_ty]) {
            matrix.iter_mut().for_each(|x| *x = random_element(ty, &mut random));
        }
        let mut input = Vec::new();
        for (which, matrix, (rows, cols), (_, count, ty)) in [
            ('a', &matrices[0], (m, k), counts[0]),
            ('b', &matrices[1], (k, n), counts[1]),
            ('c', &matrices[2], (m, n), counts[2]),
        ] {
            let (number, per) = registers(count, ty);
            for r in 0..number {
                for lane in 0..LANES {
                    let word = (0..per).fold(0u64, |w, e| {
                        let (row, col) = place(which, ty, lane, r * per + e);
                        w | matrix[(batch_of(lane) * rows + row) * cols + col] << (bits_of(ty) * e)
                    });
                    input.extend(word.to_le_bytes());
                }
            }
        }
        let out = launch(&loaded, &input, d_registers * LANES * 8, Sanitize::OFF)?;
        for r in 0..d_registers {
            for lane in 0..LANES {
                let from = (r * LANES + lane) * 8;
                let word = u64::from_le_bytes(out[from..from + 8].try_into().expect("8 bytes"));
                for e in 0..d_per {
                    let (row, col) = place('d', d_ty, lane, r * d_per + e);
                    let b = batch_of(lane);
                    let line = &matrices[0][(b * m + row) * k..(b * m + row + 1) * k];
                    let column: Vec<u64> = (0..k).map(|j| matrices[1][(b * k + j) * n + col]).collect();
                    let c = matrices[2][(b * m + row) * n + col];
                    let want = dot(s, [d_ty, a_ty, b_ty, c_ty], line, &column, c);
                    let got = word >> (bits_of(d_ty) * e) & mask(bits_of(d_ty) as u32);
                    if got != want {
                        return Err(format!(
                            "round {turn}, row {row}, column {col}: got {got:x}, want {want:x}"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Registers of a `wmma` fragment. Source: the manual, "Matrix Fragments for WMMA".
fn wmma_registers(which: char, (m, n, k): (usize, usize, usize), ty: &str) -> usize {
    let count = match which {
        'a' => m * k,
        'b' => k * n,
        _ => m * n,
    };
    match ty {
        "f16" if which == 'a' || which == 'b' => 8,
        "f64" => count / LANES,
        _ => (count * bits_of(ty) / 32 / LANES).max(1),
    }
}

fn put(bytes: &mut [u8], bit: usize, width: usize, v: u64) {
    for k in 0..width {
        bytes[(bit + k) / 8] |= ((v >> k & 1) as u8) << ((bit + k) % 8);
    }
}

fn take(bytes: &[u8], bit: usize, width: usize) -> u64 {
    (0..width).fold(0, |v, k| v | u64::from(bytes[(bit + k) / 8] >> ((bit + k) % 8) & 1) << k)
}

fn wmma(s: &Spelling, c_row: bool, sanitize: Sanitize) -> Result<(), String> {
    let [d_ty, a_ty, b_ty, c_ty] = types(s);
    let size = shape(s);
    let (m, n, k) = size;
    let layouts: Vec<_> = s.words.iter().filter(|w| ["row", "col", "row2", "col2"].contains(w)).collect();
    let (a_row, b_row) = (layouts[0].starts_with("row"), layouts[1].starts_with("row"));
    let word = s.words.iter().find(|w| w.starts_with('m') && w.contains('k')).expect("a shape");
    let mut text = String::from(HEAD);
    let mut offset = 0;
    let mut parts = Vec::new();
    for (name, rows, cols, row, ty) in [
        ('a', m, k, a_row, a_ty),
        ('b', k, n, b_row, b_ty),
        ('c', m, n, c_row, c_ty),
        ('d', m, n, c_row, d_ty),
    ] {
        let class = if ty == "f64" {
            ".f64"
        } else if ty == "f32" {
            ".f32"
        } else {
            ".b32"
        };
        let list: Vec<String> = (0..wmma_registers(name, size, ty)).map(|r| format!("%{name}{r}")).collect();
        for r in &list {
            let _ = writeln!(text, ".reg {class} {r};");
        }
        // Lines 16 bytes apart from each other.
        let line = if row { cols } else { rows };
        let stride = line + 128 / bits_of(ty);
        let list = format!("{{{}}}", list.join(", "));
        let layout = if row { "row" } else { "col" };
        if name != 'd' {
            let _ = writeln!(
                text,
                "wmma.load.{name}.sync.aligned.{layout}.{word}.global.{ty} {list}, [%src+{offset}], {stride};"
            );
        }
        let lines = if row { rows } else { cols };
        let bytes = (lines * stride * bits_of(ty) / 8).next_multiple_of(64);
        parts.push((list, offset, stride, row, ty, rows, cols));
        if name != 'd' {
            offset += bytes;
        }
    }
    let _ = writeln!(text, "{} {}, {}, {}, {};", s.text, parts[3].0, parts[0].0, parts[1].0, parts[2].0);
    let layout = if c_row { "row" } else { "col" };
    let _ = writeln!(
        text,
        "wmma.store.d.sync.aligned.{layout}.{word}.global.{d_ty} [%dst], {}, {};\nret;\n}}",
        parts[3].0,
        if c_row { n } else { m }
    );
    let loaded = load(&text)?;
    let mut random = Random(s.text.len() as u64 * 77 + u64::from(c_row));
    for _ in 0..ROUNDS / 2 {
        let mut input = vec![0u8; offset];
        let mut matrices = Vec::new();
        for (_, start, stride, row, ty, rows, cols) in &parts[..3] {
            let mut matrix = vec![0; rows * cols];
            for r in 0..*rows {
                for c in 0..*cols {
                    let v = random_element(ty, &mut random);
                    matrix[r * cols + c] = v;
                    let index = if *row { r * stride + c } else { c * stride + r };
                    put(&mut input, start * 8 + index * bits_of(ty), bits_of(ty), v);
                }
            }
            matrices.push(matrix);
        }
        let out = launch(&loaded, &input, m * n * bits_of(d_ty) / 8, sanitize)?;
        for row in 0..m {
            for col in 0..n {
                let line = &matrices[0][row * k..(row + 1) * k];
                let column: Vec<u64> = (0..k).map(|j| matrices[1][j * n + col]).collect();
                let want = dot(s, [d_ty, a_ty, b_ty, c_ty], line, &column, matrices[2][row * n + col]);
                let index = if c_row { row * n + col } else { col * m + row };
                let got = take(&out, index * bits_of(d_ty), bits_of(d_ty));
                if got != want {
                    return Err(format!("row {row}, column {col}: got {got:x}, want {want:x}"));
                }
            }
        }
    }
    Ok(())
}

fn all(op: Op) -> Vec<Spelling> {
    let row = TABLE.iter().find(|row| row.op == op).expect("a row");
    expand_row(row)
}

/// `.satfinite` of half-precision products went with PTX ISA 6.5.
fn removed(s: &Spelling) -> bool {
    s.has("satfinite") && types(s)[1] == "f16"
}

#[test]
fn products_of_mma_agree_with_the_oracle() {
    let faults: Vec<String> =
        all(Op::Mma).iter().filter_map(|s| mma(s).err().map(|e| format!("`{}`: {e}", s.text))).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn products_of_wmma_agree_with_the_oracle() {
    let mut faults = Vec::new();
    for s in all(Op::WmmaMma).iter().filter(|s| !removed(s)) {
        for c_row in [true, false] {
            let sanitize = if c_row { Sanitize::OFF } else { Sanitize::ALL };
            if let Err(e) = wmma(s, c_row, sanitize) {
                faults.push(format!("`{}`: {e}", s.text));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
