//! Primitives of CUB and cooperative groups, as the headers that NVRTC brings have them, run clean under every
//! detector, both schedules and several seeds, and give what plain code gives; without their barriers they do not.
//!
//! Kernels lie in `testdata/cuda/primitives`. Each takes `(const int* x, int* y)`; a block reads its own part of `x`
//! and writes all of its own part of `y`.

mod expect;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use assay_nvrtc::{Compiler, Image, Install, Limits, Options as CompileOptions, Unit, WorkerCommand};
use assay_simt::{
    Arg, Blocks, BufferSpec, FindingKind, Init, LaunchSpec, Loaded, Options, Outcome, Role, Sanitize,
    Schedule, Session, Status,
};
use assay_tensor::DType;

/// What a block makes of its part of `x`.
type Host = Box<dyn Fn(&[i32]) -> Vec<i32>>;

/// One kernel with its launch and what it must give.
struct Case {
    kernel: String,
    block: usize,
    /// Elements of `x` per block.
    reads: usize,
    host: Host,
    /// The kernel needs the barriers that `NO_BARRIER` takes away.
    needs_barrier: bool,
    /// It uses storage twice, with a barrier between that `NO_REUSE_BARRIER` takes away.
    reuses: bool,
    /// What the library does on purpose and a detector sees all the same.
    known: &'static [FindingKind],
}

impl Case {
    fn new(kernel: String, block: usize, items: usize, host: impl Fn(&[i32]) -> Vec<i32> + 'static) -> Case {
        Case {
            kernel,
            block,
            reads: block * items,
            host: Box::new(host),
            needs_barrier: true,
            reuses: false,
            known: &[],
        }
    }

    /// Storage is used twice.
    fn twice(mut self) -> Case {
        self.reuses = true;
        self
    }

    /// Nothing depends on the barriers: shuffles do all of it, or one thread does.
    fn without_barriers(mut self) -> Case {
        self.needs_barrier = false;
        self
    }

    fn known(mut self, kinds: &'static [FindingKind]) -> Case {
        self.known = kinds;
        self
    }
}

/// Blocks of each launch.
const GRID: usize = 2;

fn compile(file: &str, kernels: &[String], defines: &[&str]) -> Arc<Loaded> {
    let worker =
        WorkerCommand { program: env!("CARGO_BIN_EXE_assay").into(), args: vec!["__compile-worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |_| {}).expect("NVRTC");
    let compiler = Compiler::new(install, worker, 1, Limits::default());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cuda/primitives").join(file);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let unit = Unit { name: file.into(), file: file.into(), source, kernels: kernels.to_vec() };
    let options = CompileOptions {
        defines: defines.iter().map(|d| ((*d).to_owned(), "1".to_owned())).collect(),
        ..CompileOptions::default()
    };
    let image: Image =
        compiler.compile(&options, &[unit]).remove(0).unwrap_or_else(|e| panic!("{e}\n{}", e.log));
    let module = assay_ptx::parse_module(&image.ptx).unwrap_or_else(|e| panic!("{file}: {e}"));
    let loaded = Loaded::new(&module).unwrap_or_else(|e| panic!("{file}: {e}"));
    ENTRIES.with_borrow_mut(|m| m.extend(image.entries));
    Arc::new(loaded)
}

thread_local! {
    /// PTX names by name expression. Two files of one test have different expressions or the same names.
    static ENTRIES: std::cell::RefCell<std::collections::BTreeMap<String, String>> =
        const { std::cell::RefCell::new(std::collections::BTreeMap::new()) };
}

/// Values from 0 to 99 with runs of equal ones.
fn values(len: usize) -> Vec<i32> {
    let mut state = 12345u32;
    let mut out: Vec<i32> = Vec::with_capacity(len + 3);
    while out.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let run = 1 + (state >> 13) % 3;
        out.extend((0..run).map(|_| (state >> 16) as i32 % 100));
    }
    out.truncate(len);
    out
}

fn run(case: &Case, loaded: &Arc<Loaded>, schedule: Schedule, seed: u64) -> (Outcome, Vec<i32>) {
    let entry = ENTRIES.with_borrow(|m| m[&case.kernel].clone());
    let options = Options {
        sanitize: Sanitize::ALL,
        schedule,
        seed,
        fill_seed: seed,
        instruction_budget: 10_000_000,
        ..Options::default()
    };
    let mut session = Session::new(Arc::clone(loaded), options);
    let x = values(case.reads * GRID);
    let wrote = (case.host)(&x[..case.reads]).len() * GRID;
    let bytes: Vec<u8> = x.iter().flat_map(|v| v.to_le_bytes()).collect();
    let a = session
        .alloc(BufferSpec::new("x", bytes.len() as u64, Role::Input, DType::I32, Init::Bytes(&bytes)))
        .unwrap();
    let b = session
        .alloc(BufferSpec::new("y", 4 * wrote as u64, Role::Output, DType::I32, Init::Uninit))
        .unwrap();
    let mut outcome = session.launch(&LaunchSpec {
        kernel: &entry,
        grid: [GRID as u64, 1, 1],
        block: [case.block as u64, 1, 1],
        dynamic_shared: 0,
        args: &[Arg::Pointer(a, 0), Arg::Pointer(b, 0)],
        blocks: &Blocks::All,
    });
    outcome.findings.extend(session.finish());
    let y = session.read(b).as_chunks::<4>().0.iter().map(|c| i32::from_le_bytes(*c)).collect();
    (outcome, y)
}

const SCHEDULES: [(Schedule, u64); 4] =
    [(Schedule::Hardware, 0), (Schedule::Hardware, 1), (Schedule::RunAhead, 0), (Schedule::RunAhead, 1)];

/// Every case runs clean and gives what the host's code gives.
fn clean_and_right(file: &str, cases: &[Case]) {
    let kernels: Vec<String> = cases.iter().map(|c| c.kernel.clone()).collect();
    let loaded = compile(file, &kernels, &[]);
    let mut wrong = Vec::new();
    for case in cases {
        let x = values(case.reads * GRID);
        let want: Vec<i32> = x.chunks(case.reads).flat_map(|part| (case.host)(part)).collect();
        for (schedule, seed) in SCHEDULES {
            let (outcome, y) = run(case, &loaded, schedule, seed);
            let what = format!("{file}: {} ({schedule:?}, seed {seed})", case.kernel);
            let unknown: Vec<_> = outcome.findings.iter().filter(|f| !case.known.contains(&f.kind)).collect();
            if let Some(f) = unknown.first() {
                wrong.push(format!(
                    "{what}: {} at line {:?} of {:?}: {}",
                    f.kind.name(),
                    f.line,
                    f.file,
                    f.message
                ));
            }
            if !matches!(outcome.status, Status::Ok | Status::Finding) {
                wrong.push(format!("{what}: {:?} {:?}", outcome.status, outcome.reason));
            }
            if let Some(k) = (0..want.len()).find(|k| y.get(*k) != Some(&want[*k])) {
                wrong.push(format!("{what}: y[{k}] is {:?}, expected {}", y.get(k), want[k]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every one of the cases that needs what `define` takes away is reported as a race on shared memory.
fn found_without(file: &str, cases: &[Case], define: &str, needs: impl Fn(&Case) -> bool) {
    let cases: Vec<&Case> = cases.iter().filter(|c| needs(c)).collect();
    let kernels: Vec<String> = cases.iter().map(|c| c.kernel.clone()).collect();
    let loaded = compile(file, &kernels, &[define]);
    let mut missed = Vec::new();
    for case in &cases {
        for (schedule, seed) in SCHEDULES {
            let (outcome, _) = run(case, &loaded, schedule, seed);
            let kinds: BTreeSet<&str> = outcome.findings.iter().map(|f| f.kind.name()).collect();
            if !kinds.contains("race_shared") {
                missed.push(format!(
                    "{file} with {define}: {} ({schedule:?}, seed {seed}): {kinds:?}, {:?}",
                    case.kernel, outcome.status
                ));
            }
        }
    }
    assert!(missed.is_empty() && cases.len() > 2, "{}", missed.join("\n"));
}

#[test]
fn block_primitives_run_clean() {
    clean_and_right("block.cu", &expect::block());
}

#[test]
fn block_primitives_without_their_barriers_are_found() {
    found_without("block.cu", &expect::block_mutants(), "NO_BARRIER", |c| c.needs_barrier);
}

#[test]
fn block_primitives_without_a_barrier_between_two_uses_of_their_storage_are_found() {
    found_without("block.cu", &expect::block_mutants(), "NO_REUSE_BARRIER", |c| c.reuses);
}

#[test]
fn warp_primitives_run_clean() {
    clean_and_right("warp.cu", &expect::warp());
}

#[test]
fn warp_primitives_without_their_barriers_are_found() {
    found_without("warp.cu", &expect::warp(), "NO_BARRIER", |c| c.needs_barrier);
}

#[test]
fn cooperative_groups_run_clean() {
    clean_and_right("cooperative.cu", &expect::cooperative());
}

#[test]
fn cooperative_groups_without_their_barriers_are_found() {
    found_without("cooperative.cu", &expect::cooperative(), "NO_BARRIER", |c| c.needs_barrier);
}
