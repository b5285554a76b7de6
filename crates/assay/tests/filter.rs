//! Where mutants go after compiling, and that kernels compiled apart are those of the whole file.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use assay_campaign::filter::{self, Candidate, Shapes, Sorted, Version};
use assay_campaign::shape_name;
use assay_mutate::{Edit, Family, Mutant, mutants_in};
use assay_nvrtc::{Compiler, Install, Limits, Options, WorkerCommand};
use assay_problems::{Extents, Problem, Recipe, Root, discover, targeted_recipes};
use assay_ptx::{Base, Module, Operand, SymbolRef};

fn compiler(limits: Limits) -> Compiler {
    let worker =
        WorkerCommand { program: env!("CARGO_BIN_EXE_assay").into(), args: vec!["__compile-worker".into()] };
    let install =
        Install::locate_or_install(&worker, &mut |_| ()).unwrap_or_else(|e| panic!("NVRTC is needed: {e}"));
    Compiler::new(install, worker, 2, limits)
}

fn problem(path: &str) -> Problem {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join(path);
    discover(&[folder.to_str().expect("a UTF-8 path")], &Root::locate()).expect(path).remove(0)
}

fn shapes(problem: &Problem) -> Shapes {
    let recipes =
        std::iter::once(Recipe::official(0)).chain(targeted_recipes(problem).into_iter().map(|(r, _)| r));
    let mut out: Shapes = Vec::new();
    for recipe in recipes {
        let dims = problem.dims_for(&recipe, Extents::Desk).expect("dims");
        let name = shape_name(&dims);
        if out.iter().all(|(n, _)| *n != name) {
            out.push((name, dims));
        }
    }
    out
}

fn whole(problem: &Problem, compiler: &Compiler, source: &str, shapes: &Shapes) -> Version {
    filter::compiled(problem, compiler, &Options::default(), "kernel.cu", source, shapes)
        .unwrap_or_else(|e| panic!("{}: {e}", problem.key()))
}

fn sorted(
    problem: &Problem,
    compiler: &Compiler,
    original: &Version,
    shapes: &Shapes,
    mutants: Vec<Mutant>,
) -> Vec<Candidate> {
    filter::sort(problem, compiler, &Options::default(), original, shapes, mutants, &|_| Ok(()))
        .expect("sorted")
}

/// A kernel's instructions without the names and numbers that its module gives: opcode, operands, lines, and what each
/// variable is.
fn instructions(version: &Version, kernel: &str) -> Vec<String> {
    let exe = version.exe.as_ref().expect("compiled");
    let entry = &exe.entries[kernel];
    let (_, function) = entry.module.entry(&entry.name).expect("an entry");
    let module: &Module = &entry.module;
    let variable = |symbol: &SymbolRef| match symbol {
        SymbolRef::Module(id) => {
            let v = &module.variables[id.index()];
            format!("{:?} {} {} {:?}", v.space, v.size_bytes, v.align, v.init)
        }
        other => format!("{other:?}"),
    };
    fn operand(o: &Operand, variable: &dyn Fn(&SymbolRef) -> String) -> String {
        match o {
            Operand::Symbol { symbol, offset } => format!("{} + {offset}", variable(symbol)),
            Operand::Address { base: Base::Symbol(symbol), offset } => {
                format!("[{} + {offset}]", variable(symbol))
            }
            Operand::Vector(list) => list.iter().map(|o| operand(o, variable)).collect::<Vec<_>>().join(", "),
            other => format!("{other:?}"),
        }
    }
    let text = |i: &assay_ptx::Instr| {
        let operands: Vec<String> = i.operands.iter().map(|o| operand(o, &variable)).collect();
        let place = i.loc.map(|l| (module.files[l.file as usize].clone(), l.line, l.column));
        format!("{:?} {} {operands:?} {place:?}", i.guard, module.spelling(i))
    };
    function.body.iter().map(text).collect()
}

#[test]
fn kernels_compiled_apart_are_those_of_the_whole_file_with_their_lines() {
    let compiler = compiler(Limits::default());
    let (mut compared, mut shared) = (0, 0);
    for path in [
        "problems/level2/41_gemm_batch_norm_gelu_relu",
        "problems/level2/52_conv_2d_mish_batch_norm",
        "problems/level2/84_gemm_batch_norm_scaling_softmax",
    ] {
        let problem = problem(path);
        let shapes = shapes(&problem);
        let original = whole(&problem, &compiler, &problem.kernel_source, &shapes);
        let mutants = mutants_in(&problem.kernel_source, "kernel.cu").expect("mutants");
        let step = mutants.len().div_ceil(7).max(1);
        let some: Vec<Mutant> = mutants.into_iter().step_by(step).collect();
        for c in sorted(&problem, &compiler, &original, &shapes, some) {
            let Some(version) = &c.version else { continue };
            let expected = whole(&problem, &compiler, &c.mutant.apply(&problem.kernel_source), &shapes);
            assert_eq!(version.kernels, expected.kernels, "{}", c.mutant.name);
            assert_eq!(version.identity, expected.identity, "{}", c.mutant.name);
            for kernel in version.kernels.keys() {
                assert_eq!(
                    instructions(version, kernel),
                    instructions(&expected, kernel),
                    "`{kernel}` of {}",
                    c.mutant.name
                );
                compared += 1;
            }
            let entries = &version.exe.as_ref().expect("compiled").entries;
            let modules: BTreeSet<_> = entries.values().map(|e| Arc::as_ptr(&e.module) as usize).collect();
            shared += usize::from(modules.len() > 1);
        }
    }
    assert!(compared > 40 && shared > 5, "{compared} kernels, {shared} mutants out of several modules");
}

#[test]
fn a_fault_of_the_launcher_takes_the_kernels_of_the_original() {
    let compiler = compiler(Limits::default());
    let problem = problem("problems/level1/23_softmax");
    let shapes = shapes(&problem);
    let original = whole(&problem, &compiler, &problem.kernel_source, &shapes);
    let mutants = mutants_in(&problem.kernel_source, "kernel.cu").expect("mutants");
    let host: Vec<Mutant> = mutants.into_iter().filter(|m| m.host).collect();
    assert!(!host.is_empty());
    let known = &original.exe.as_ref().expect("compiled").entries;
    let mut same = 0;
    for c in sorted(&problem, &compiler, &original, &shapes, host) {
        let Some(version) = &c.version else { continue };
        for (kernel, entry) in version.exe.as_ref().expect("compiled").entries.iter() {
            let before = known.get(kernel).is_some_and(|e| Arc::ptr_eq(&e.module, &entry.module));
            assert!(before, "`{kernel}` was compiled again for {}", c.mutant.name);
            same += 1;
        }
    }
    assert!(same > 0);
}

/// A hand-made mutant: the first `from` becomes `to`.
fn fault(source: &str, id: &str, family: Family, from: &str, to: &str) -> Mutant {
    let start = source.find(from).unwrap_or_else(|| panic!("`{from}` is not in the source"));
    let at = |n: usize| u32::try_from(n).expect("a short file");
    Mutant {
        id: id.into(),
        rule: "Test",
        family,
        edits: vec![Edit { start: at(start), end: at(start + from.len()), replacement: to.into() }],
        line: 1,
        column: 1,
        function: None,
        host: false,
        name: format!("{from} -> {to}"),
        file: "kernel.cu".into(),
    }
}

#[test]
fn every_mutant_is_sorted_with_its_reason() {
    let compiler = compiler(Limits { wall_seconds: 20, cpu_seconds: 2, ..Limits::default() });
    let problem = problem("testdata/e2e/problems/add_clamp");
    let shapes = shapes(&problem);
    let original = whole(&problem, &compiler, &problem.kernel_source, &shapes);
    // No more elements than fit 32 bits at any shape tried: both launchers do the same there.
    let (cast_from, cast_to) = ("const int n = B * D;", "const long long m = B; const int n = (int)(m * D);");
    let lacks = "asm volatile(\"barrier.cluster.arrive.aligned;\"); if (i < n)";
    let cases: [(&str, Family, &str, &str, &str); 10] = [
        (
            "unchanged",
            Family::Arithmetic,
            "fmaxf(x[i]",
            "fmaxf( x[i]",
            "equivalent: same machine code and launcher",
        ),
        ("commuted", Family::Arithmetic, "i < n", "n > i", "equivalent: same machine code and launcher"),
        ("bound", Family::Boundary, "i < n", "i <= n", "distinct"),
        ("again", Family::Boundary, "i < n", "!(i > n)", "duplicate: bound"),
        ("no such name", Family::Arithmetic, "0.0f);", "nowhere);", "noncompiling: line 8"),
        ("launcher syntax", Family::Arithmetic, "B * D;", "B * ;", "noncompiling: launcher: "),
        ("launcher call", Family::Arithmetic, "B * D;", "cbrtf(B) * D;", "quarantined: launcher: "),
        (
            "launcher no-op",
            Family::Boundary,
            cast_from,
            cast_to,
            "equivalent: same machine code as the original, and",
        ),
        ("width", Family::Width, cast_from, cast_to, "distinct"),
        ("device lacks", Family::Semantic, "if (i < n)", lacks, "quarantined: "),
    ];
    let mutants: Vec<Mutant> = cases
        .iter()
        .map(|(id, family, from, to, _)| fault(&problem.kernel_source, id, *family, from, to))
        .collect();
    let mut wrong = Vec::new();
    for (c, (id, .., expected)) in sorted(&problem, &compiler, &original, &shapes, mutants).iter().zip(cases)
    {
        let got = match &c.sorted {
            Sorted::Distinct => "distinct".to_owned(),
            Sorted::Duplicate(of) => format!("duplicate: {of}"),
            Sorted::Equivalent(why) => format!("equivalent: {why}"),
            Sorted::Noncompiling(why) => format!("noncompiling: {why}"),
            Sorted::Quarantined(why) => format!("quarantined: {why}"),
        };
        let runs = matches!(c.sorted, Sorted::Distinct | Sorted::Duplicate(_) | Sorted::Equivalent(_));
        if !got.starts_with(expected) || c.version.is_some() != runs {
            wrong.push(format!("{id}: expected `{expected}`, got `{got}`"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
