//! Both engines, and the change from one to the other within a launch, on every substrate of the catalogue.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_campaign::execute::{End, Mode};
use assay_campaign::harness::Harness;
use assay_campaign::{filter, inputs, shape_name};
use assay_measure::Origin;
use assay_nvrtc::{Compiler, Install, Limits, Options, WorkerCommand};
use assay_problems::{Extents, Problem, Recipe, Root, discover};
use assay_simt::{Engine, Fill, Memory, Sanitize, Schedule};

/// What differs on one problem's official input at desk extents, if anything does.
fn difference(problem: &Problem, compiler: &Compiler) -> Result<Option<String>, String> {
    let text = |e: assay_campaign::CampaignError| e.to_string();
    let recipe = Recipe::official(0);
    let input = inputs::make(problem, &recipe, Origin::Official, false).map_err(text)?;
    let shapes = vec![(shape_name(&input.dims), input.dims.clone())];
    let (options, source) = (Options::default(), &problem.kernel_source);
    let version =
        filter::compiled(problem, compiler, &options, "kernel.cu", source, &shapes).map_err(text)?;
    let official_dims = problem.dims_for(&recipe, Extents::Official).map_err(|e| e.to_string())?;
    let harness = Harness { problem, official_dims, official_plan: None };
    for schedule in [Schedule::Hardware, Schedule::RunAhead] {
        let run = |engine| {
            let mode = Mode {
                memory: Memory::Arena,
                fill: Fill::Noise,
                sanitize: Sanitize::OFF,
                schedule,
                seed: 1,
                instructions: u64::MAX,
                engine,
            };
            harness.run(&version, &input, &mode, None)
        };
        let interp = run(Engine::Interp);
        if !matches!(interp.end, End::Outputs(_)) {
            return Err(format!("no output under {schedule:?}: {:?}", interp.end));
        }
        // `auto` first: it changes over within a launch that is long enough, `jit` begins in compiled code.
        for engine in [Engine::Auto, Engine::Jit] {
            let other = run(engine);
            if other.instructions != interp.instructions {
                let (a, b) = (interp.instructions, other.instructions);
                return Ok(Some(format!(
                    "{engine:?} under {schedule:?}: {b} instructions, the interpreter's are {a}"
                )));
            }
            if other != interp {
                return Ok(Some(format!("{engine:?} under {schedule:?}: other outputs or findings")));
            }
        }
    }
    Ok(None)
}

#[test]
fn every_substrate_gives_the_same_in_both_engines_and_across_a_change_of_engine() {
    let worker =
        WorkerCommand { program: env!("CARGO_BIN_EXE_assay").into(), args: vec!["__compile-worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |_| {}).expect("NVRTC");
    let compiler = Compiler::new(install, worker, 2, Limits::default());
    let root = Root::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems"));
    let problems = discover::<&str>(&[], &root).expect("the catalogue");
    assert!(problems.len() >= 200, "{} problems", problems.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Ok(Some(what)) | Err(what) = difference(problem, &compiler) {
                        failures.lock().expect("no panic").push(format!("{}: {what}", problem.key()));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), problems.len(), failures.join("\n"));
}
