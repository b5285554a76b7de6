//! Small texts, good and bad, with what they must give.

use crate::support;

use crate::support::kernel;
use assay_ptx::{
    Base, Cmp, ControlFlow, Function, Imm, Instr, Module, Op, Operand, PtxError, RegId, Space, Special,
    SymbolRef, Ty, parse_module,
};

fn parse(extra: &str, body: &str) -> Module {
    let text = kernel(extra, body);
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    support::assert_sound(&module);
    module
}

fn last_function(module: &Module) -> &Function {
    module.functions.last().expect("the kernel")
}

/// The first instruction of a kernel with `body`.
fn first(body: &str) -> (Module, Instr) {
    let module = parse("", body);
    let instr = last_function(&module).body[0].clone();
    (module, instr)
}

#[test]
fn literals_have_the_bits_that_their_notation_says() {
    let cases: &[(&str, Ty, u64)] = &[
        ("mov.u32 %r1, 10;", Ty::U32, 10),
        ("mov.u32 %r1, -1;", Ty::U32, 0xffff_ffff),
        ("mov.u32 %r1, 0x1F;", Ty::U32, 0x1f),
        ("mov.u32 %r1, 0b101;", Ty::U32, 5),
        ("mov.u32 %r1, 017;", Ty::U32, 15),
        ("mov.u32 %r1, 7U;", Ty::U32, 7),
        ("mov.u32 %r1, WARP_SZ;", Ty::U32, 32),
        ("mov.u64 %rd1, -9223372036854775808;", Ty::U64, 1 << 63),
        ("mov.u64 %rd1, 18446744073709551615;", Ty::U64, u64::MAX),
        ("mov.b16 %rs1, 0x3C00;", Ty::F16, 0x3c00),
        ("mov.f32 %f1, 0f3F800000;", Ty::F32, 0x3f80_0000),
        ("mov.f32 %f1, -0f3F800000;", Ty::F32, 0xbf80_0000),
        ("mov.f32 %f1, 1.5;", Ty::F32, 0x3fc0_0000),
        ("mov.f32 %f1, 0d3FF0000000000000;", Ty::F32, 0x3f80_0000),
        ("mov.f64 %fd1, 1.5e1;", Ty::F64, 15f64.to_bits()),
        ("mov.f64 %fd1, 2.5e-1;", Ty::F64, 0.25f64.to_bits()),
        ("mov.f64 %fd1, 0f3F800000;", Ty::F64, 1f64.to_bits()),
        ("mov.pred %p1, 1;", Ty::Pred, 1),
    ];
    for (text, ty, bits) in cases {
        let (_, instr) = first(text);
        let Operand::Imm(imm) = instr.operands[1] else { panic!("{text}") };
        assert_eq!(imm.bits_for(*ty), Some(*bits), "{text}");
    }
    assert_eq!(Imm::Int(1).bits_for(Ty::F32), None);
    assert_eq!(Imm::F32(0).bits_for(Ty::U32), None);
}

#[test]
fn addresses_have_a_base_and_an_offset() {
    let extra = ".extern .shared .align 16 .b8 s[];";
    let shared = Base::Symbol(SymbolRef::Module(assay_ptx::VarId(0)));
    let param = Base::Symbol(SymbolRef::Param(0));
    let cases: &[(&str, Base, i64)] = &[
        ("ld.global.u32 %r1, [%rd1];", Base::Reg(RegId(1)), 0),
        ("ld.global.u32 %r1, [%rd1+8];", Base::Reg(RegId(1)), 8),
        ("ld.global.u32 %r1, [%rd1+-8];", Base::Reg(RegId(1)), -8),
        ("ld.global.u32 %r1, [%rd1-8];", Base::Reg(RegId(1)), -8),
        ("ld.shared.u32 %r1, [s+0x10];", shared, 16),
        ("ld.shared.u32 %r1, [64];", Base::Absolute, 64),
        ("ld.param.u64 %rd1, [p];", param, 0),
        ("ld.u32 %r1, [%rd1];", Base::Reg(RegId(1)), 0),
    ];
    for (text, base, offset) in cases {
        let module = parse(extra, text);
        let instr = &last_function(&module).body[0];
        assert_eq!(instr.operands[1], Operand::Address { base: *base, offset: *offset }, "{text}");
    }
}

#[test]
fn operands_of_every_kind_are_told_apart() {
    let (_, shfl) = first("shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;");
    assert!(matches!(shfl.operands[0], Operand::Pair(Some(RegId(0)), Some(RegId(1)))));
    let (_, shfl) = first("shfl.sync.idx.b32 _|%p1, %r2, 16, 31, -1;");
    assert!(matches!(shfl.operands[0], Operand::Pair(None, Some(_))));
    let (_, setp) = first("setp.lt.and.s32 %p1|%p2, %r1, 3, !%p3;");
    assert_eq!(setp.mods.cmp, Some(Cmp::Lt));
    assert!(matches!(setp.operands[3], Operand::NotReg(_)));
    let (_, ld) = first("ld.global.v4.f32 {%f1, _, %f2, %f3}, [%rd1];");
    assert!(matches!(&ld.operands[0], Operand::Vector(v) if v.len() == 4 && v[1] == Operand::Sink));
    let (_, mov) = first("mov.b64 {%r1, %r2}, %rd1;");
    assert!(matches!(&mov.operands[0], Operand::Vector(v) if v.len() == 2));
    let (_, mov) = first("mov.b32 %r1, {%rs1, %rs2};");
    assert!(matches!(&mov.operands[1], Operand::Vector(v) if v.len() == 2));
    let (_, mov) = first("mov.u64 %rd1, p;");
    assert_eq!(mov.operands[1], Operand::Symbol { symbol: SymbolRef::Param(0), offset: 0 });
    let (_, atom) = first("atom.global.add.u32 _, [%rd1], 1;");
    assert_eq!(atom.operands[0], Operand::Sink);
    for special in Special::ALL {
        let (register, ty) = match special.ty() {
            Ty::U64 => ("%rd1", "u64"),
            Ty::Pred => ("%p1", "pred"),
            _ => ("%r1", "u32"),
        };
        let (_, mov) = first(&format!("mov.{ty} {register}, {};", special.name()));
        assert_eq!(mov.operands[1], Operand::Special(*special));
    }
}

#[test]
fn labels_are_instruction_indices_and_local_to_their_scope() {
    let module = parse(
        "",
        "@!%p1 bra END;\n\
         { L: @%p1 bra L; bra.uni M; M: }\n\
         { .reg .b32 %r1; L: mov.u32 %r1, 1; bra L; }\n\
         mov.u32 %r1, 2;\n\
         END:",
    );
    let f = last_function(&module);
    let targets: Vec<u32> = f
        .body
        .iter()
        .flat_map(|i| &i.operands)
        .filter_map(|o| if let Operand::Label(at) = o { Some(*at) } else { None })
        .collect();
    assert_eq!(targets, [6, 1, 3, 3]);
    assert_eq!(f.body[6].op, Op::Ret, "a `ret` is appended where a label stands at the end");
    // The inner `%r1` shadows the outer one.
    assert_ne!(f.body[3].operands[0], f.body[5].operands[0]);
    assert_eq!(f.registers.iter().filter(|r| r.name == "%r1").count(), 2);
    assert!(f.body[0].guard.unwrap().negated);
}

#[test]
fn only_registers_that_code_names_exist() {
    let module = parse("", ".reg .b32 %x1<4>, a, b<2>; mov.u32 a, 1; mov.u32 b1, a; mov.u32 %x13, b1;");
    let names: Vec<&str> = last_function(&module).registers.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["a", "b1", "%x13"]);
}

#[test]
fn calls_name_functions_registers_and_signatures() {
    let extra = ".func (.reg .b32 %o) g (.reg .b32 %i) { mov.u32 %o, %i; ret; } .func h (.param .b64 q); \
                 .func i { ret; }";
    let module = parse(
        extra,
        "call (%r1), g, (7);\n\
         call.uni i;\n\
         { .param .b64 a; st.param.b64 [a+0], %rd1; call h, (a); }\n\
         t: .calltargets h;\n\
         s : .callprototype _ (.param .b64 _);\n\
         { .param .b64 a; call %rd1, (a), t; }\n\
         { .param .b64 a; call %rd1, (a), s; }",
    );
    let f = last_function(&module);
    let tails: Vec<Option<&Operand>> =
        f.body.iter().filter(|i| i.op == Op::Call).map(|i| i.operands.get(3)).collect();
    assert_eq!(tails, [None, None, None, Some(&Operand::CallTargets(0)), Some(&Operand::Prototype(0))]);
    let g = &module.functions[0];
    assert_eq!((g.params[0].register, g.returns[0].register), (Some(RegId(1)), Some(RegId(0))));
}

#[test]
fn module_variables_of_every_shape_have_their_bytes() {
    let extra = ".global .align 4 .u32 a = 7; .const .f32 b[2] = {1.0, 0f40000000}; .global .b8 c[] = {1, 2, 3};\
                 .global .u16 d[2][3] = {{1}, {2, 3}}; .global .u64 e[2] = {a, generic(a)+4}; .global .v4 .f32 f;\
                 .common .global .b32 g; .extern .global .b8 h[]; .global .attribute(.managed) .b32 i; .shared .b32 j, m[2];\
                 .global .s8 n = -1;";
    let module = parse(extra, "ret;");
    let bytes: Vec<(&str, u64, u64, Vec<u8>)> =
        module.variables.iter().map(|v| (v.name.as_str(), v.size_bytes, v.align, v.init.clone())).collect();
    let want: Vec<(&str, u64, u64, Vec<u8>)> = vec![
        ("a", 4, 4, vec![7, 0, 0, 0]),
        ("b", 8, 4, vec![0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]),
        ("c", 3, 1, vec![1, 2, 3]),
        ("d", 12, 2, vec![1, 0, 0, 0, 0, 0, 2, 0, 3, 0]),
        ("e", 16, 8, vec![0; 16]),
        ("f", 16, 16, vec![]),
        ("g", 4, 4, vec![]),
        ("h", 0, 1, vec![]),
        ("i", 4, 4, vec![]),
        ("j", 4, 4, vec![]),
        ("m", 8, 4, vec![]),
        ("n", 1, 1, vec![255]),
    ];
    assert_eq!(bytes, want);
    let relocations = &module.variables[4].relocations;
    let got: Vec<(u64, i64, bool)> =
        relocations.iter().map(|r| (r.offset_bytes, r.addend, r.generic)).collect();
    assert_eq!(got, [(0, 0, false), (8, 4, true)]);
}

#[test]
fn directives_around_functions_are_kept() {
    let text = ".version 8.0\n.target sm_90a, debug\n.address_size 64\n\
                .weak .entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[12], .param .u8 c)\n\
                .maxntid 32, 4\n.reqntid 32\n.minnctapersm 2\n.maxnreg 64\n.reqnctapercluster 2, 1, 1\n\
                .pragma \"nounroll\";\n{ .loc 3 1 2\n ret; }\n\
                .extern .func (.param .b32 r) e(.param .b64 x) .noreturn;\n.file 3 \"dir/a.cu\"\n\
                .section .debug_abbrev { .b8 1 { } }\n";
    let module = parse_module(text).unwrap();
    support::assert_sound(&module);
    let f = &module.functions[0];
    assert_eq!((module.target.sm, module.target.spelling.as_str()), (90, "sm_90a, debug"));
    assert_eq!((f.max_ntid, f.req_ntid), (Some([32, 4, 1]), Some([32, 1, 1])));
    assert_eq!((f.min_nctapersm, f.max_nreg, f.req_nctapercluster), (Some(2), Some(64), Some([2, 1, 1])));
    let offsets: Vec<(u64, u64)> = f.params.iter().map(|p| (p.offset_bytes, p.size_bytes)).collect();
    assert_eq!(offsets, [(0, 8), (8, 12), (20, 1)]);
    let pointer = f.params[0].pointer.unwrap();
    assert_eq!((pointer.space, pointer.align), (Some(Space::Global), 16));
    let loc = f.body[0].loc.unwrap();
    assert_eq!((module.files[loc.file as usize].as_str(), loc.line, loc.column), ("dir/a.cu", 1, 2));
    assert!(module.functions[1].noreturn && !module.functions[1].has_body);
}

#[test]
fn spans_point_at_the_instruction_and_its_opcode() {
    let module = parse("", "  @%p1 add.s32 %r1, %r2, 3;");
    let instr = &last_function(&module).body[0];
    assert_eq!(module.text(instr.span), "@%p1 add.s32 %r1, %r2, 3;");
    assert_eq!(module.spelling(instr), "add.s32");
    assert_eq!(module.line_col(instr.span), (9, 3));
}

#[test]
fn control_flow_meets_again_at_the_post_dominator() {
    let module = parse(
        "",
        "@%p1 bra ELSE;\n mov.u32 %r1, 1;\n bra.uni JOIN;\n ELSE: mov.u32 %r1, 2;\n JOIN: mov.u32 %r2, %r1;\n\
         LOOP: add.s32 %r2, %r2, 1;\n @%p2 bra LOOP;\n t: .branchtargets A, B;\n brx.idx %r1, t;\n\
         A: mov.u32 %r3, 1; bra B;\n B: @%p3 ret;\n SPIN: bra SPIN;",
    );
    let flow = ControlFlow::of(last_function(&module));
    // 0 bra, 1-2 then, 3 else, 4 join, 5-6 loop, 7 brx, 8-9 A, 10 B: ret, 11 spin.
    let meet: Vec<Option<u32>> = [0, 2, 3, 4, 6, 7, 9, 10, 11].map(|i| flow.reconvergence(i)).into();
    assert_eq!(meet, [Some(4), Some(4), Some(4), Some(5), Some(7), Some(10), Some(10), None, None]);
    assert_eq!(flow.blocks.len(), 9);
}

/// What is wrong, with its exact line and column.
#[test]
fn errors_name_the_place_and_the_reason() {
    // (before the kernel on line 4, body from line 9, message)
    let cases: &[(&str, &str, &str)] = &[
        ("", "mov.u32 %r1;", "line 9, column 1: `mov.u32`: 1 operands, expected 2"),
        ("", "mov.u32 %r1, 1", "line 10, column 1: expected `;`, found `}`"),
        (
            "",
            "\n  add.s32 %r1, %r2, %f1;",
            "line 10, column 21: `add.s32`: register `%f1` is .f32, the operand .s32",
        ),
        ("", "add.s32 %r1, %r2, 1.5;", "line 9, column 19: `add.s32`: the literal does not fit type .s32"),
        ("", "add.f32 %f1, %f2, 1;", "line 9, column 19: `add.f32`: the literal does not fit type .f32"),
        ("", "add.s32 1, %r2, 1;", "line 9, column 9: `add.s32`: expected a register, found a literal"),
        ("", "add.s32 %r9, %r2, 1;", "line 9, column 9: unknown register `%r9`"),
        ("", "add.s32 %r01, %r2, 1;", "line 9, column 9: unknown register `%r01`"),
        ("", "mov.u64 %rd1, nowhere;", "line 9, column 15: unknown symbol `nowhere`"),
        ("", "bra NOWHERE;", "line 9, column 5: unknown label `NOWHERE`"),
        ("", "L: ret;\nL: ret;", "line 10, column 1: label `L` stands twice in this scope"),
        ("", "{ L: ret; }\nbra L;", "line 10, column 5: unknown label `L`"),
        ("", "@%r1 ret;", "line 9, column 2: guard `%r1` is not a .pred register"),
        ("", "@ret;", "line 9, column 2: unknown symbol `ret`"),
        (
            "",
            "ld.global.u32 %r1, %rd1;",
            "line 9, column 20: `ld.global.u32`: expected an address, found a register",
        ),
        (
            "",
            "ld.global.u32 %r1, [%f1];",
            "line 9, column 20: `ld.global.u32`: register `%f1` is .f32, which cannot hold an address",
        ),
        ("", "ld.global.u32 %r1, [%rd1;", "line 9, column 25: expected `]`, found `;`"),
        (
            "",
            "ld.global.u32 %r1, [p];",
            "line 9, column 20: `ld.global.u32`: the symbol is in .param space, the access in .global",
        ),
        (
            "",
            "st.param.u64 [p], %rd1;",
            "line 9, column 14: `st.param.u64`: a kernel's parameters cannot be written",
        ),
        (
            "",
            "ld.global.v2.f32 {%f1}, [%rd1];",
            "line 9, column 18: `ld.global.v2.f32`: a vector of 1 elements, expected 2",
        ),
        (
            "",
            "ld.global.v2.f32 %f1, [%rd1];",
            "line 9, column 18: `ld.global.v2.f32`: expected a vector of 2 elements, found a register",
        ),
        (
            "",
            "ld.global.u64 %r1, [%rd1];",
            "line 9, column 15: `ld.global.u64`: register `%r1` is .b32, the operand .u64",
        ),
        (
            "",
            "mov.b64 {%r1, %rs1}, %rd1;",
            "line 9, column 9: `mov.b64`: register `%rs1` is .b16, the operand .b32",
        ),
        ("", "mov.u64 {%r1, %r2}, %rd1;", "line 9, column 9: `mov.u64`: 2 elements do not pack into .u64"),
        (
            "",
            "mov.u32 %r1, 99999999999999999999;",
            "line 9, column 14: `99999999999999999999` is not an integer of at most 64 bits",
        ),
        ("", "mov.f32 %f1, 0f12;", "line 9, column 14: `0f12` is not `0f` and eight hexadecimal digits"),
        ("", "mov.u32 %r1, 089;", "line 9, column 14: `089` is not a number"),
        (
            "",
            "mov.u32 %r1, %rd1|%p1;",
            "line 9, column 14: `mov.u32`: expected a register or literal, found a pair of registers",
        ),
        (
            "",
            "selp.b32 %r1, 1, 2, %r3;",
            "line 9, column 21: `selp.b32`: register `%r3` is .b32, the operand .pred",
        ),
        ("", "brx.idx %r1, L;\nL: ret;", "line 9, column 14: `L` is not a `.branchtargets`"),
        (
            "",
            "cvta.global.u64 %rd1, 0.5;",
            "line 9, column 23: `cvta.global.u64`: the literal does not fit type .u64",
        ),
        (
            "",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3}, {%r1}, {%f1,%f2,%f3,%f4};",
            "line 9, column 69: `mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32`: a fragment of 3 registers, expected 2",
        ),
        ("", ".reg .b32 %r<3>;", "line 9, column 11: `%r<…>` is already declared in this scope"),
        ("", ".reg .b32 a, a;", "line 9, column 14: `a` is already declared in this scope"),
        ("", ".shared .align 3 .b8 s[4];", "line 9, column 16: alignment 3 is not a power of two up to 2^31"),
        ("", ".shared .b8 s[];", "line 9, column 13: `s` needs a size, being defined here"),
        ("", ".shared .b64 s[4611686018427387904];", "line 9, column 14: the size overflows 64 bits"),
        ("", ".shared .pred s;", "line 9, column 9: a variable cannot have type Pred"),
        ("", ".shared .b32 s = 3;", "line 9, column 16: `s` cannot have an initialiser in this space"),
        ("", ".loc 7 1 1\n ret;", "line 9, column 6: `.loc` names file 7, which no `.file` declares"),
        ("", "{ ret;", "line 11, column 1: expected `}` for the `{` of line 6, found the end of the text"),
        ("", "mov.u32 %r1, \u{e9};", "line 9, column 14: unexpected character `\\u{e9}`"),
        ("", "/* ret;", "line 9, column 1: comment has no end"),
        ("", ".pragma \"x;\n", "line 9, column 9: string has no end"),
        ("", "42;", "line 9, column 1: expected an instruction, found `42`"),
        ("", "call k, (%rd1);", "line 9, column 1: `k` is a kernel and cannot be called"),
        (
            "",
            "call %rd1, (%rd1);",
            "line 9, column 1: an indirect call needs a `.callprototype` or `.calltargets`",
        ),
        (".func f(.param .b64 x);", "call f;", "line 9, column 1: 0 arguments, the function has 1"),
        (
            ".func f(.param .b64 x);",
            "{ .param .b32 a; call f, (a); }",
            "line 9, column 18: arguments: number 1 does not fit the function's",
        ),
        (".func (.param .b32 r) f;", "call f;", "line 9, column 1: 0 return values, the function has 1"),
        (
            ".func f(.param .b64 x); .func f(.param .b32 x);",
            "ret;",
            "line 4, column 31: `f` was declared before with another signature",
        ),
        (".func f { ret; } .func f { ret; }", "ret;", "line 4, column 24: `f` is already defined"),
        (".extern .func f { ret; }", "ret;", "line 4, column 15: extern `f` has a body"),
        (
            ".func f { ret; }",
            "ld.global.u32 %r1, [f];",
            "line 9, column 20: `ld.global.u32`: a function is not memory",
        ),
        (".global .b32 x; .global .b32 x;", "ret;", "line 4, column 30: `x` is already declared"),
        (
            ".global .b32 x;",
            "mov.u32 %r1, x;",
            "line 9, column 14: `mov.u32`: an address does not fit type .u32",
        ),
        (
            ".global .b32 x[2] = {1, 2, 3};",
            "ret;",
            "line 4, column 28: more initialisers than `x` has elements",
        ),
        (
            ".global .b32 x[2][2] = {{1, 2, 3}};",
            "ret;",
            "line 4, column 33: more initialisers than the row has elements",
        ),
        (".global .b32 x[2] = {{1}};", "ret;", "line 4, column 22: more braces than dimensions"),
        (".global .b32 x[2] = 1;", "ret;", "line 4, column 21: expected `{`, found `1`"),
        (".global .b32 x = 1.5;", "ret;", "line 4, column 18: a float literal cannot initialise `x`"),
        (".global .u64 x = y;", "ret;", "line 4, column 18: unknown symbol `y`"),
        (".global x;", "ret;", "line 4, column 9: expected a type, found `x`"),
        ("garbage", "ret;", "line 4, column 1: expected a directive, found `garbage`"),
        (".visible 3", "ret;", "line 4, column 10: expected a directive, found `3`"),
    ];
    for (extra, body, want) in cases {
        let text = kernel(extra, body);
        match parse_module(&text) {
            Err(e @ (PtxError::Syntax { .. } | PtxError::Invalid { .. })) => {
                assert_eq!(e.to_string(), format!("ptx {want}"), "{text}");
            }
            Err(e @ PtxError::Unsupported { .. }) => panic!("{e}\n{text}"),
            Err(e) => panic!("{e}"),
            Ok(_) => panic!("no error: {want}\n{text}"),
        }
    }
}

#[test]
fn a_module_begins_with_version_and_target() {
    let cases = [
        ("", "line 1, column 1: expected `.version`, found the end of the text"),
        ("hello", "line 1, column 1: expected `.version`, found `hello`"),
        (".version 9\n", "line 1, column 10: `9` is not a version"),
        (".version 9.0\n.entry", "line 2, column 1: expected `.target`, found `.entry`"),
        (".version 9.0\n.target texmode_unified\n", "line 2, column 9: no `sm_` target is named"),
        (
            ".version 6.0\n.target sm_70\n.address_size 64\n.entry k { redux.sync.add.s32 %r1, %r1, 1; }",
            "line 4, column 12: `redux.sync.add.s32` needs PTX ISA 7.0, the module says 6.0",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(parse_module(text).unwrap_err().to_string(), format!("ptx {want}"), "{text}");
    }
}

/// PTX that Assay does not do is told from what is no PTX.
#[test]
fn what_is_outside_the_table_is_unsupported_with_its_spelling() {
    let cases: &[(&str, &str, &str, u32)] = &[
        ("", "\ntex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, {%f1,%f2}];", "tex.2d.v4.f32.f32", 10),
        ("", "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned", 9),
        ("", "add.f32.f16 %f1, %rs1, %f2;", "add.f32.f16", 9),
        ("", "ld.global.v4.u64 {%rd1,%rd2,%rd3,%rd4}, [%rd1];", "ld.global.v4.u64 (more than 16 bytes)", 9),
        ("", "mov.v4.u32 %r1, %tid;", "mov.v4.u32", 9),
        ("", "mov.u32 %r1, %pm0;", "%pm0", 9),
        ("", "mov.u32 %r1, %r2.b0;", "%r2.b0", 9),
        ("", "mov.u32 %r1, 1<<3;", "a constant expression", 9),
        ("", "mov.u32 %r1, (3);", "a constant expression", 9),
        ("", ".reg .v4 .f32 v;", ".v4", 9),
        ("", ".tex .u32 t;", ".tex", 9),
        (".alias a, b;", "ret;", ".alias", 4),
        (".tex .u32 t;", "ret;", ".tex", 4),
        (".func f(.param .b8 va[]);", "ret;", "va[], a variable argument list", 4),
        (".global .u8 x = 0xff(y);", "ret;", "a mask operator in an initialiser", 4),
        (".global .b8 x[4] = \"abc\";", "ret;", "a string as initialiser", 4),
        (".global .b32 y; .global .u32 x = y;", "ret;", "an address stored in fewer than 64 bits", 4),
    ];
    for (extra, body, spelling, line) in cases {
        let text = kernel(extra, body);
        match parse_module(&text) {
            Err(PtxError::Unsupported { spelling: got, line: at }) => {
                assert_eq!((got.as_str(), at), (*spelling, *line), "{text}");
            }
            Err(e) => panic!("{e}\n{text}"),
            Ok(_) => panic!("no error: {spelling}"),
        }
    }
    let narrow = ".version 9.0\n.target sm_90\n.address_size 32\n.entry k { ret; }\n";
    let want = PtxError::Unsupported { spelling: ".address_size 32".into(), line: 3 };
    assert_eq!(parse_module(narrow).unwrap_err(), want);
}
