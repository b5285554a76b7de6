//! Loads, stores and atomics: the fast paths against the exact one, which runs under detectors. Programs are random, over
//! every size, with common and with scattered addresses, whole and partial masks.

use std::fmt::Write as _;
use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, FindingKind, Init, LaunchSpec, Loaded, Options, Role, Sanitize, Session, Status,
};
use assay_tensor::DType;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Bytes of the array in each space.
const BYTES: u64 = 256;

/// A kernel `k(in, out, data)`: 8 words a thread of `in` are its registers; what they and local and shared memory hold at
/// the end goes to `out`; `data` is global memory for atomics.
fn program(r: &mut Random, atomics: bool) -> String {
    let mut t = String::from(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 data)\n{\n\
         .local .align 16 .b8 depot[256];\n.shared .align 16 .b8 tile[256];\n\
         .reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n.reg .f32 %f<4>;\n.reg .f64 %g<4>;\n\
         ld.param.u64 %d20, [in];\nld.param.u64 %d21, [out];\nld.param.u64 %d22, [data];\n\
         mov.u32 %r20, %tid.x;\nmul.wide.u32 %d23, %r20, 32;\nadd.u64 %d20, %d20, %d23;\n",
    );
    for k in 0..8 {
        let _ = writeln!(t, "ld.global.u32 %r{k}, [%d20+{}];", 4 * k);
        let _ = writeln!(
            t,
            "cvt.u16.u32 %h{k}, %r{k};\ncvt.u64.u32 %d{k}, %r{k};\nmul.lo.u64 %d{k}, %d{k}, %d{k};"
        );
    }
    // Words that are consecutive for all lanes, or (from %r29 on) for those below 20 alone.
    t += "mov.u32 %r24, tile;\nshl.b32 %r27, %r20, 2;\nadd.u32 %r27, %r27, %r24;\n";
    t += "mul.lo.u32 %r29, %r27, 36;\nand.b32 %r29, %r29, 124;\nadd.u32 %r29, %r29, %r24;\n";
    t += "setp.lt.u32 %p1, %r7, 1500000000;\nsetp.lt.u32 %p2, %r20, 20;\nmov.u64 %d24, depot;\n\
          selp.b32 %r29, %r27, %r29, %p2;\n";
    let (mut ahead, mut apart) = (0, None);
    for n in 0..40 {
        // Now and then the lanes part ways for some instructions.
        match apart {
            Some(until) if until == n => {
                let _ = writeln!(t, "$L{until}:");
                apart = None;
            }
            None if r.below(4) == 0 => {
                let until = n + 1 + r.below(9);
                let p = r.of(&["%p1", "!%p1", "%p2", "!%p2"]);
                let _ = writeln!(t, "@{p} bra $L{until};\nmov.u32 %r28, %r27;");
                apart = Some(until);
            }
            _ => {}
        }
        if !atomics && r.below(2) == 0 {
            let (v, step) = (r.below(8), r.below(15));
            // The register of those lanes that are together here.
            let base = if apart.is_some() { "%r28" } else { r.of(&["%r27", "%r29"]) };
            match r.below(5) {
                0 if base == "%r28" || base == "%r27" && ahead < 40 => {
                    ahead += if base == "%r27" { 4 } else { 0 };
                    let _ = writeln!(t, "add.u32 {base}, {base}, 4;");
                }
                0 | 1 => {
                    let _ = writeln!(t, "st.shared.u32 [{base}+{}], %r{v};", 4 * step);
                }
                2 => {
                    let _ = writeln!(t, "@%p2 st.shared.u32 [{base}+{}], %r{v};", 4 * step);
                }
                3 => {
                    let _ = writeln!(t, "@%p1 ld.shared.u32 %r{v}, [{base}+{}];", 4 * step);
                }
                _ => {
                    let _ = writeln!(t, "ld.shared.u32 %r{v}, [{base}+{}];", 4 * step);
                }
            }
            continue;
        }
        let guard = r.of(&["", "", "@%p1 ", "@!%p1 ", "@%p2 "]);
        let (v, w) = (r.below(8), r.below(8));
        if atomics {
            let (ty, reg, bytes) = r.of(&[
                ("u32", "r", 4u64),
                ("s32", "r", 4),
                ("b32", "r", 4),
                ("f32", "r", 4),
                ("u64", "d", 8),
                ("b64", "d", 8),
            ]);
            let op = match ty {
                "u32" => r.of(&["add", "min", "max", "inc", "dec"]),
                "s32" => r.of(&["add", "min", "max"]),
                "f32" => "add",
                "u64" => r.of(&["add", "min", "max"]),
                _ => r.of(&["and", "or", "xor", "exch", "cas"]),
            };
            // Few places, so that lanes meet there.
            let places = r.of(&[1u64, 3, 16]);
            let _ = writeln!(t, "rem.u32 %r25, %r{v}, {places};\nmul.lo.u32 %r25, %r25, {bytes};");
            let address = match r.below(3) {
                0 => {
                    t += "add.u32 %r26, %r24, %r25;\n";
                    "shared [%r26+16]".to_owned()
                }
                1 => {
                    t += "cvt.u64.u32 %d25, %r25;\nadd.u64 %d25, %d22, %d25;\n";
                    "global [%d25+8]".to_owned()
                }
                _ => "global [%d22+64]".to_owned(),
            };
            let (space, place) = address.split_once(' ').unwrap_or_default();
            let (ty, reg) = if ty == "f32" { ("f32", "f") } else { (ty, reg) };
            let (dest, b) = if reg == "f" {
                let _ = writeln!(t, "mov.b32 %f1, %r{w};");
                ("%f2".to_owned(), "%f1".to_owned())
            } else {
                (format!("%{reg}{w}"), format!("%{reg}{v}"))
            };
            let third = if op == "cas" { format!(", %{reg}{}", r.below(8)) } else { String::new() };
            if op == "cas" || op == "exch" || r.below(2) == 0 {
                let _ = writeln!(t, "{guard}atom.{space}.{op}.{ty} {dest}, {place}, {b}{third};");
                if reg == "f" {
                    let _ = writeln!(t, "mov.b32 %r{w}, %f2;");
                }
            } else {
                let _ = writeln!(t, "{guard}red.{space}.{op}.{ty} {place}, {b};");
            }
            continue;
        }
        let (ty, reg, bytes, count) = r.of(&[
            ("u8", "h", 1u64, 1),
            ("s8", "h", 1, 1),
            ("s8", "r", 1, 1),
            ("u8", "r", 1, 1),
            ("u16", "h", 2, 1),
            ("s16", "r", 2, 1),
            ("u32", "r", 4, 1),
            ("u64", "d", 8, 1),
            ("v2.u32", "r", 4, 2),
            ("v4.u32", "r", 4, 4),
            ("v2.u64", "d", 8, 2),
            ("v2.u16", "h", 2, 2),
        ]);
        let total = bytes * count;
        let slots = BYTES / total;
        let local = r.below(2) == 0;
        let place = if r.below(2) == 0 {
            // One place for all lanes.
            let offset = r.below(slots) * total;
            if local { format!("[depot+{offset}]") } else { format!("[%r24+{offset}]") }
        } else {
            let _ = writeln!(t, "rem.u32 %r25, %r{v}, {slots};\nmul.lo.u32 %r25, %r25, {total};");
            if local {
                t += "cvt.u64.u32 %d25, %r25;\nadd.u64 %d25, %d24, %d25;\n";
                "[%d25]".to_owned()
            } else {
                t += "add.u32 %r25, %r24, %r25;\n";
                "[%r25]".to_owned()
            }
        };
        let list: Vec<String> = (0..count).map(|k| format!("%{reg}{}", (w + k) % 8)).collect();
        let data = if count == 1 { list[0].clone() } else { format!("{{{}}}", list.join(", ")) };
        let space = if local { "local" } else { "shared" };
        if r.below(2) == 0 {
            let _ = writeln!(t, "{guard}st.{space}.{ty} {place}, {data};");
        } else {
            let _ = writeln!(t, "{guard}ld.{space}.{ty} {data}, {place};");
        }
    }
    if let Some(until) = apart {
        let _ = writeln!(t, "$L{until}:");
    }
    // Registers, then local and (after a barrier) shared memory: 16 + 64 + 64 words a thread.
    t += "bar.sync 0;\nmul.wide.u32 %d23, %r20, 640;\nadd.u64 %d21, %d21, %d23;\n";
    for k in 0..8 {
        let _ = writeln!(
            t,
            "cvt.u32.u16 %r25, %h{k};\nadd.u32 %r{k}, %r{k}, %r25;\nst.global.u32 [%d21+{}], %r{k};",
            4 * k
        );
        let _ = writeln!(t, "st.global.u64 [%d21+{}], %d{k};", 32 + 8 * k);
    }
    for k in 0..64 {
        let _ =
            writeln!(t, "ld.local.u32 %r25, [depot+{}];\nst.global.u32 [%d21+{}], %r25;", 4 * k, 128 + 4 * k);
        let _ =
            writeln!(t, "ld.shared.u32 %r25, [tile+{}];\nst.global.u32 [%d21+{}], %r25;", 4 * k, 384 + 4 * k);
    }
    t + "ret;\n}\n"
}

/// `in` of all threads, and what `out` and `data` hold afterwards.
fn run(text: &str, sanitize: Sanitize, seed: u64, threads: u64) -> Vec<Vec<u8>> {
    let module = assay_ptx::parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut s =
        Session::new(Arc::new(Loaded::new(&module).unwrap()), Options { sanitize, ..Options::default() });
    let mut r = Random(seed | 1);
    let words: Vec<u8> = (0..threads * 8).flat_map(|_| (r.below(1 << 32) as u32).to_le_bytes()).collect();
    let zeros = vec![0u8; 512];
    let mut alloc =
        |name, size, role, init| s.alloc(BufferSpec::new(name, size, role, DType::U32, init)).unwrap();
    let a = alloc("in", threads * 32, Role::Input, Init::Bytes(&words));
    let b = alloc("out", threads * 640, Role::Output, Init::Uninit);
    let c = alloc("data", 512, Role::Scratch, Init::Bytes(&zeros));
    let args = [Arg::Pointer(a, 0), Arg::Pointer(b, 0), Arg::Pointer(c, 0)];
    let o = s.launch(&LaunchSpec {
        kernel: "k",
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        dynamic_shared: 0,
        args: &args,
        blocks: &Blocks::All,
    });
    assert!(matches!(o.status, Status::Ok | Status::Finding), "{o:?}");
    let fault = |k: FindingKind| k.is_fault();
    assert!(!o.findings.iter().any(|f| fault(f.kind)), "{:?}\n{text}", o.findings);
    vec![s.read(b).to_vec(), s.read(c).to_vec()]
}

#[test]
fn local_and_shared_accesses_agree_with_the_exact_path() {
    let mut r = Random(0xfeed_5eed);
    for seed in 0..200 {
        let text = program(&mut r, false);
        // One warp: where others write the same places, it depends on turns, which differ under detectors.
        assert_eq!(run(&text, Sanitize::OFF, seed, 32), run(&text, Sanitize::ALL, seed, 32), "{text}");
    }
}

#[test]
fn atomics_agree_with_the_exact_path() {
    let mut r = Random(0xa70_0a7);
    for seed in 0..60 {
        let text = program(&mut r, true);
        assert_eq!(run(&text, Sanitize::OFF, seed, 64), run(&text, Sanitize::ALL, seed, 64), "{text}");
    }
}
