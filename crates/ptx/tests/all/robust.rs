//! Hostile and broken texts: an error or a sound module, never a panic, never much memory.

use crate::support;

use std::time::{Duration, Instant};

use assay_ptx::{ControlFlow, PtxError, parse_module};
use proptest::prelude::*;

#[test]
fn a_text_cut_anywhere_gives_an_error_or_a_sound_module() {
    for (name, text) in support::samples() {
        let whole = parse_module(&text).unwrap();
        for cut in 0..text.len() {
            match parse_module(&text[..cut]) {
                Ok(module) => {
                    support::assert_sound(&module);
                    assert!(module.functions.len() <= whole.functions.len());
                }
                // A cut text is not one that Assay lacks something for.
                Err(PtxError::Unsupported { spelling, line }) => {
                    panic!("{name} cut at {cut}: `{spelling}` of line {line}")
                }
                Err(e) => assert!(cut < text.trim_end().len(), "{name} cut at {cut}: {e}"),
            }
        }
    }
}

#[test]
fn declared_sizes_and_nesting_cost_nothing() {
    let deep = "{".repeat(200_000);
    let braces = format!(".global .b32 x[2] = {};", "{".repeat(200_000));
    let minus = format!("mov.u32 %r1, {}1;", "-".repeat(200_000));
    let digits = format!("mov.u32 %r1, %r{};", "1".repeat(200_000));
    let labels: String = (0..20_000).map(|i| format!("L{i}: @%p1 bra L{};\n", (i * 7919) % 20_000)).collect();
    let tables: String = {
        let names: Vec<String> = (0..5_000).map(|i| format!("L{i}")).collect();
        let code: String = (0..5_000).map(|i| format!("L{i}: brx.idx %r1, t;\n")).collect();
        format!("t: .branchtargets {};\n{code}", names.join(","))
    };
    let zeros: String =
        (0..1000).map(|i| format!(".global .b8 x{i}[2][33554432] = {{{{1}},{{2}}}};")).collect();
    let cases: &[(&str, String)] = &[
        (
            "registers",
            support::kernel("", ".reg .b32 %q<18446744073709551615>; mov.u32 %q18446744073709551614, 0;"),
        ),
        ("shared", support::kernel("", ".shared .b8 s[9223372036854775807];")),
        ("overflow", support::kernel("", ".local .b64 s[9223372036854775807];")),
        ("zeros", support::kernel(".global .b8 x[4][1099511627776] = {{1},{2}};", "ret;")),
        ("many zeros", support::kernel(&zeros, "ret;")),
        ("scopes", support::kernel("", &deep)),
        ("braces", support::kernel(&braces, "ret;")),
        ("signs", support::kernel("", &minus)),
        ("digits", support::kernel("", &digits)),
        ("branches", support::kernel("", &labels)),
        ("tables", support::kernel("", &tables)),
        ("brackets", support::kernel(&format!(".global .b8 x{};", "[1]".repeat(100_000)), "ret;")),
        ("section", format!("{}\n.section .x {{ {}", support::kernel("", "ret;"), "{".repeat(300_000))),
        ("comment", "/*".repeat(200_000)),
        ("string", format!(".version 9.0\n.target sm_90\n.file 1 \"{}\"\n", "\\".repeat(200_000))),
    ];
    for (name, text) in cases {
        let start = Instant::now();
        if let Ok(module) = parse_module(text) {
            for function in &module.functions {
                ControlFlow::of(function);
            }
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(2), "{name} took {took:?}");
    }
}

/// Pieces that meet in unexpected orders.
const SOUP: &[&str] = &[
    ".version 9.0\n",
    ".target sm_90\n",
    ".address_size 64\n",
    ".visible ",
    ".extern ",
    ".entry ",
    ".func ",
    "k",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "|",
    "!",
    "@",
    "+",
    "-",
    "=",
    "_",
    "\"s\"",
    "\n",
    " ",
    ".param ",
    ".reg ",
    ".shared ",
    ".local ",
    ".global ",
    ".const ",
    ".align 8 ",
    ".align 3 ",
    ".b8 ",
    ".b32 ",
    ".u64 ",
    ".f32 ",
    ".pred ",
    ".v4 ",
    ".ptr ",
    "%r1",
    "%r",
    "%p1",
    "%p",
    "%f1",
    "%f",
    "%rd1",
    "%tid.x",
    "%envreg0",
    "0",
    "1",
    "64",
    "0f3F800000",
    "0d3FF0000000000000",
    "0xffffffffffffffff",
    "99999999999999999999",
    "1.5",
    "0x",
    "WARP_SZ",
    "generic(",
    "mov.u32 ",
    "mov.b64 ",
    "add.s32 ",
    "ld.global.v2.f32 ",
    "st.shared.u8 ",
    "bra ",
    "L",
    "brx.idx ",
    "call ",
    "call.uni ",
    "setp.lt.and.s32 ",
    "shfl.sync.down.b32 ",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 ",
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 ",
    "cp.async.ca.shared.global ",
    "atom.add.u32 ",
    "tex.2d.v4.f32.f32 ",
    "ret",
    "exit",
    ".branchtargets ",
    ".callprototype ",
    ".calltargets ",
    ".loc 1 2 3\n",
    ".file 1 \"a.cu\"\n",
    ".section .debug_str ",
    ".pragma ",
    ".maxntid ",
    "//x\n",
    "/*",
    "*/",
    "\u{e9}",
    "$",
    "%",
    ".",
    "::",
    "inlined_at ",
    "function_name ",
    "s",
    "x1",
    "a.b",
];

fn check(text: &str) {
    if let Ok(module) = parse_module(text) {
        support::assert_sound(&module);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_never_panics(pieces in prop::collection::vec(0..SOUP.len(), 0..60), place in 0..3usize) {
        let soup: String = pieces.iter().map(|i| SOUP[*i]).collect();
        check(&match place {
            0 => soup,
            1 => support::kernel(&soup, "ret;"),
            _ => support::kernel(".extern .shared .b8 s[]; .func f(.param .b32 x);", &soup),
        });
    }

    #[test]
    fn instruction_soup_never_panics(pieces in prop::collection::vec((0..SOUP.len(), 0..SOUP.len(), 0..SOUP.len()), 1..12)) {
        let code: String = pieces.iter().map(|(a, b, c)| format!("{} {}, {};\n", SOUP[*a], SOUP[*b], SOUP[*c])).collect();
        check(&support::kernel(".extern .shared .b8 s[];", &code));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edited_samples_never_panic(
        which in 0..64usize, edits in prop::collection::vec((any::<prop::sample::Index>(), 0..SOUP.len(), 0..12usize), 1..5)
    ) {
        let samples = support::samples();
        let mut text = samples[which % samples.len()].1.clone();
        for (at, piece, remove) in edits {
            let start = at.index(text.len());
            let end = (start + remove).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, SOUP[piece]);
            }
        }
        check(&text);
    }
}
