//! Real NVRTC output: the samples of `testdata/ptx/parse` and the spellings that NVRTC was seen to
//! emit.

use crate::support;

use assay_ptx::{Function, Op, Operand, PtxError, Space, Special, SymbolRef, Ty, parse_module};

fn sample(name: &str) -> assay_ptx::Module {
    let (_, text) = support::samples().into_iter().find(|(n, _)| n == name).expect("sample");
    parse_module(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn find(function: &Function, op: Op) -> &assay_ptx::Instr {
    function.body.iter().find(|i| i.op == op).unwrap_or_else(|| panic!("no {op:?}"))
}

#[test]
fn every_sample_parses_and_is_sound() {
    for (name, text) in support::samples() {
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        support::assert_sound(&module);
        let (_, entry) = module.entry(&name).expect("the kernel is called like the file");
        assert!(entry.body.len() > 20, "{name}");
        // Every opcode's text begins with one of its row's names.
        for instr in &entry.body {
            let spelling = module.spelling(instr);
            assert!(
                spelling == "}" || instr.op.row().names.iter().any(|n| spelling.starts_with(n)),
                "{name}: {spelling}"
            );
        }
    }
}

#[test]
fn spellings_of_the_nvrtc_census_are_in_the_table() {
    let mut missing = Vec::new();
    let text = include_str!("nvrtc_spellings.txt");
    for spelling in text.lines() {
        // Without operands the instruction is wrong, but its opcode must be known.
        let source = support::kernel("", &format!("{spelling} 0d0;"));
        if let Err(PtxError::Unsupported { .. }) = parse_module(&source) {
            missing.push(spelling);
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
    assert!(text.lines().count() > 500);
}

#[test]
fn calls_are_resolved_to_functions_params_and_prototypes() {
    let module = sample("calls");
    let (_, entry) = module.entry("calls").unwrap();
    let calls: Vec<_> = entry.body.iter().filter(|i| i.op == Op::Call).collect();
    let mut direct = Vec::new();
    let mut indirect = 0;
    for call in &calls {
        let [Operand::Vector(returns), target, Operand::Vector(args), rest @ ..] = call.operands.as_slice()
        else {
            panic!("shape of {}", module.text(call.span));
        };
        for operand in returns.iter().chain(args) {
            let Operand::Symbol { symbol: SymbolRef::Local(id), .. } = operand else { panic!("{operand:?}") };
            assert_eq!(entry.variables[id.index()].space, Space::Param);
        }
        match target {
            Operand::Symbol { symbol: SymbolRef::Function(id), .. } => {
                direct.push((module.functions[id.index()].name.as_str(), args.len()));
                assert!(rest.is_empty());
            }
            Operand::Reg(_) => {
                indirect += 1;
                let [Operand::Prototype(i)] = rest else { panic!("{rest:?}") };
                let prototype = &entry.prototypes[*i as usize];
                assert_eq!((prototype.returns.len(), prototype.params[0].ty), (1, Ty::B32));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(indirect, 1);
    assert_eq!(direct, [("_Z9swap_pair4Pair", 1), ("_Z4growfi", 2), ("vprintf", 2)]);
    // The struct parameter is an array of bytes at an aligned offset.
    let p = &entry.params[2];
    assert_eq!((p.size_bytes, p.align, p.offset_bytes, p.is_array), (8, 4, 12, true));
    assert_eq!(entry.param_bytes, 20);
    let vprintf = module.functions.iter().find(|f| f.name == "vprintf").unwrap();
    assert!(!vprintf.has_body && vprintf.body.is_empty());
}

#[test]
fn variables_keep_their_bytes_and_addresses() {
    let module = sample("tables");
    let variable = |name: &str| module.variables.iter().find(|v| v.name == name).unwrap();
    let weights = variable("weights");
    assert_eq!((weights.space, weights.size_bytes, weights.align), (Space::Const, 16, 4));
    let floats: Vec<f32> =
        weights.init.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(floats, [1.0, 2.0, 3.0, 4.5]);
    assert_eq!(variable("scale").init, 3.25f64.to_le_bytes());
    let names = variable("names");
    let targets: Vec<&[u8]> = names
        .relocations
        .iter()
        .map(|r| {
            assert!(r.generic);
            let SymbolRef::Module(id) = r.symbol else { panic!() };
            module.variables[id.index()].init.as_slice()
        })
        .collect();
    assert_eq!(targets, [b"left".as_slice(), b"right"]);
    assert_eq!(names.relocations[1].offset_bytes, 8);
    let (_, entry) = module.entry("tables").unwrap();
    assert_eq!((entry.max_ntid, entry.min_nctapersm), (Some([128, 1, 1]), Some(2)));
    let spaces: Vec<(Space, u64)> = entry.variables.iter().map(|v| (v.space, v.size_bytes)).collect();
    assert!(spaces.contains(&(Space::Shared, 4 * 33 * 4)), "{spaces:?}");
    assert!(spaces.contains(&(Space::Local, 64)), "{spaces:?}");
}

#[test]
fn warp_instructions_keep_pairs_modes_and_special_registers() {
    let module = sample("warp");
    let pool = module.variables.iter().find(|v| v.name == "pool").unwrap();
    assert!(pool.is_unsized && pool.is_extern);
    assert_eq!((pool.space, pool.align, pool.size_bytes), (Space::Shared, 16, 0));
    let (_, entry) = module.entry("warp").unwrap();
    assert!(matches!(find(entry, Op::Shfl).operands[0], Operand::Pair(Some(_), Some(_))));
    assert!(find(entry, Op::BarRed).mods.aligned);
    let special = |s: Special| entry.body.iter().any(|i| i.operands.contains(&Operand::Special(s)));
    assert!(special(Special::TidX) && special(Special::Clock64));
}

#[test]
fn matrix_instructions_keep_shapes_and_inlined_locations() {
    let module = sample("matrix");
    let (_, entry) = module.entry("matrix").unwrap();
    let shape = |op: Op| find(entry, op).mods.shape.map(|s| (s.m, s.n, s.k));
    assert_eq!(shape(Op::Mma), Some((16, 8, 16)));
    assert_eq!(shape(Op::WmmaLoad), Some((16, 16, 16)));
    assert_eq!(find(entry, Op::Ldmatrix).mods.matrices, 4);
    assert_eq!(find(entry, Op::CpAsync).mods.src_space, Some(Space::Global));
    // Outermost level of an inlined call: `file` is the header, `inlined_at` the kernel.
    let file = |index: u32| module.files[index as usize].as_str();
    let sites: std::collections::BTreeSet<(&str, &str, u32)> = entry
        .body
        .iter()
        .filter_map(|i| i.loc.and_then(|l| l.inlined_at.map(|s| (file(l.file), file(s.file), s.line))))
        .filter(|(_, at, _)| *at == "matrix.cu")
        .collect();
    let of = |header: &str| sites.iter().filter(|s| s.0.ends_with(header)).map(|s| s.2).collect::<Vec<_>>();
    assert_eq!(of("mma.hpp"), [15, 16, 17, 18]);
}
