//! What the tests share.

use assay_ptx::{Base, ControlFlow, Function, Module, Op, Operand, SymbolRef, Ty};

/// The samples in `testdata/ptx/parse`, by name.
pub fn samples() -> Vec<(String, String)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ptx/parse");
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).expect("testdata/ptx/parse") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|e| e == "ptx") {
            let name = path.file_stem().expect("stem").to_string_lossy().into_owned();
            out.push((name, std::fs::read_to_string(&path).expect("readable")));
        }
    }
    out.sort();
    assert!(!out.is_empty());
    out
}

/// A module with one kernel `k(.param .u64 p)` that has some registers and `body`.
///
/// The body starts on line 9; `extra` stands before the kernel on line 4.
pub fn kernel(extra: &str, body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n{extra}\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<5>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n\
         .reg .f32 %f<9>; .reg .f64 %fd<9>;\n{body}\n}}\n"
    )
}

/// Asserts everything that a consumer may rely on without checking.
pub fn assert_sound(module: &Module) {
    for function in &module.functions {
        assert_eq!(function.has_body, !function.body.is_empty());
        for variable in &function.variables {
            assert!(variable.init.len() as u64 <= variable.size_bytes);
        }
        for (_, at) in &function.labels {
            assert!((*at as usize) < function.body.len());
        }
        for table in &function.branch_tables {
            assert!(!table.targets.is_empty());
            assert!(table.targets.iter().all(|t| (*t as usize) < function.body.len()));
        }
        for instr in &function.body {
            if let Some(guard) = instr.guard {
                assert_eq!(function.reg_ty(guard.reg), Ty::Pred);
            }
            if let Some(loc) = instr.loc {
                assert!((loc.file as usize) < module.files.len());
            }
            assert!(module.source.get(instr.span.start as usize..instr.span.end as usize).is_some());
            assert!(instr.op.row().since <= (module.version.major, module.version.minor));
            instr.operands.iter().for_each(|o| assert_operand(module, function, o));
        }
        if let Some(last) = function.body.last() {
            assert!(last.guard.is_none());
            assert!(matches!(last.op, Op::Ret | Op::Exit | Op::Trap | Op::Bra | Op::BrxIdx));
        }
        assert_flow(function);
    }
    for variable in &module.variables {
        assert!(variable.init.len() as u64 <= variable.size_bytes);
        assert!(variable.align.is_power_of_two());
        for r in &variable.relocations {
            assert!(r.offset_bytes + r.size_bytes <= variable.size_bytes);
            assert!(matches!(r.symbol, SymbolRef::Module(_) | SymbolRef::Function(_)));
        }
    }
}

fn assert_operand(module: &Module, function: &Function, operand: &Operand) {
    let symbol = |s: &SymbolRef| match s {
        SymbolRef::Module(id) => assert!(id.index() < module.variables.len()),
        SymbolRef::Local(id) => assert!(id.index() < function.variables.len()),
        SymbolRef::Param(i) => assert!((*i as usize) < function.params.len()),
        SymbolRef::Return(i) => assert!((*i as usize) < function.returns.len()),
        SymbolRef::Function(id) => assert!(id.index() < module.functions.len()),
    };
    let reg = |r: &assay_ptx::RegId| assert!(r.index() < function.registers.len());
    match operand {
        Operand::Reg(r) | Operand::NotReg(r) => reg(r),
        Operand::Pair(a, b) => [a, b].into_iter().flatten().for_each(reg),
        Operand::Imm(_) | Operand::Special(_) | Operand::Sink => (),
        Operand::Address { base: Base::Reg(r), .. } => reg(r),
        Operand::Address { base: Base::Symbol(s), .. } | Operand::Symbol { symbol: s, .. } => symbol(s),
        Operand::Address { base: Base::Absolute, .. } => (),
        Operand::Vector(list) => list.iter().for_each(|e| {
            assert!(!matches!(e, Operand::Vector(_)));
            assert_operand(module, function, e);
        }),
        Operand::Label(at) => assert!((*at as usize) < function.body.len()),
        Operand::BranchTable(i) => assert!((*i as usize) < function.branch_tables.len()),
        Operand::CallTargets(i) => assert!((*i as usize) < function.call_targets.len()),
        Operand::Prototype(i) => assert!((*i as usize) < function.prototypes.len()),
    }
}

fn assert_flow(function: &Function) {
    let flow = ControlFlow::of(function);
    assert_eq!(flow.block_of.len(), function.body.len());
    let mut at = 0;
    for (b, block) in flow.blocks.iter().enumerate() {
        assert_eq!(block.start, at);
        assert!(block.end > block.start);
        assert!(flow.is_leader[block.start as usize] && flow.is_last[block.end as usize - 1]);
        assert!((block.start..block.end).all(|i| flow.block_of[i as usize] as usize == b));
        at = block.end;
    }
    assert_eq!(at as usize, function.body.len());
    assert_eq!(flow.is_leader.iter().filter(|l| **l).count(), flow.blocks.len());
    assert_eq!(flow.is_last.iter().filter(|l| **l).count(), flow.blocks.len());
}
