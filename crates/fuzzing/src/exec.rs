//! Random programs on the device: what must agree.

use std::fmt::Write as _;
use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Fill, Init, LaunchSpec, Loaded, Memory, Options, Outcome, Role,
    Sanitize, Schedule, Session, Status,
};
use assay_tensor::DType;

use crate::choices::{Choices, Random};
use crate::model::{self, Left};
use crate::program::{CELLS, IN_BYTES, Kind, Program, SLICE_BYTES};

/// Instructions that a launch may take; lawful programs need far less.
const BUDGET: u64 = 2_000_000;
const WILD_BUDGET: u64 = 20_000;

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
struct Ran {
    outcome: Outcome,
    left: Left,
}

/// The launches of a program: all at once, or so.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Whole,
    /// One launch per thread.
    Alone,
}

fn input(program: &Program) -> Vec<u8> {
    let mut random = Random(program.data);
    // Random bits, small numbers, floats of like magnitude, special values: eight bytes of one sort.
    let mut word = || {
        let w = random.word();
        match random.word() % 6 {
            0 | 1 => w,
            2 => w & 0xff_0000_00ff,
            3 => w & 0x807f_ffff_807f_ffff | 0x3f80_0000_3f80_0000,
            4 => w & 0x800f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000,
            _ => {
                const SPECIAL: &[u32] = &[
                    0,
                    0x7f80_0000,
                    0xff80_0001,
                    0x8000_0000,
                    1,
                    0x7fff_ffff,
                    u32::MAX,
                    0x7c00_3c00,
                    0x8000_0001,
                ];
                let pick = |w: u64| u64::from(SPECIAL[w as usize % SPECIAL.len()]);
                pick(w) << 32 | pick(w >> 32)
            }
        }
    };
    (0..IN_BYTES / 8).flat_map(|_| word().to_le_bytes()).collect()
}

fn io(program: &Program) -> Vec<u8> {
    Random(program.data ^ 1).bytes(program.threads as usize * program.blocks as usize * SLICE_BYTES)
}

fn run(program: &Program, loaded: &Arc<Loaded>, mut options: Options, how: How) -> Ran {
    if how == How::Alone {
        // The budget is for all launches of a session: here one for each thread.
        let launches = u64::from(program.blocks) * u64::from(program.threads);
        options.instruction_budget = options.instruction_budget.saturating_mul(launches);
    }
    let mut session = Session::new(Arc::clone(loaded), options);
    let (a, b) = (input(program), io(program));
    let mut alloc = |name, bytes: &[u8], role| {
        session
            .alloc(BufferSpec::new(name, bytes.len() as u64, role, DType::U8, Init::Bytes(bytes)))
            .expect("room for small buffers")
    };
    let p_in = alloc("in", &a, Role::Input);
    let p_io = alloc("io", &b, Role::Output);
    let p_acc = alloc("acc", &[0; 8 * CELLS], Role::Output);
    let mut launch = |grid: u32, block: u32, first: u32| {
        let args = [
            Arg::Pointer(p_in, 0),
            Arg::Pointer(p_io, 0),
            Arg::Pointer(p_acc, 0),
            Arg::Bytes(first.to_le_bytes().to_vec()),
        ];
        session.launch(&LaunchSpec {
            kernel: "k",
            grid: [u64::from(grid), 1, 1],
            block: [u64::from(block), 1, 1],
            dynamic_shared: 0,
            args: &args,
            blocks: &Blocks::All,
        })
    };
    let outcome = match how {
        How::Whole => launch(program.blocks, program.threads, 0),
        How::Alone => {
            let mut last = launch(1, 1, 0);
            for id in 1..program.blocks * program.threads {
                if last.status != Status::Ok {
                    break;
                }
                last = launch(1, 1, id);
            }
            last
        }
    };
    let left = Left { io: session.read(p_io).to_vec(), acc: session.read(p_acc).to_vec() };
    Ran { outcome, left }
}

/// Where two results differ.
fn difference(got: &Left, want: &Left) -> Option<String> {
    if let Some(k) = (0..want.acc.len() / 8).find(|k| got.acc[8 * k..8 * k + 8] != want.acc[8 * k..8 * k + 8])
    {
        let word = |l: &Left| l.acc[8 * k..8 * k + 8].iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
        return Some(format!("cell {k} is {:#x}, expected {:#x}", word(got), word(want)));
    }
    let at = (0..want.io.len()).find(|k| got.io.get(*k) != want.io.get(*k))?;
    let (thread, offset) = (at / SLICE_BYTES, at % SLICE_BYTES);
    let register = match offset {
        0..64 => format!("memory at {offset}"),
        64..112 => format!("%d{}", (offset - 64) / 8),
        112..152 => format!("%r{}", (offset - 112) / 4),
        152..160 => format!("%h{}", (offset - 152) / 2),
        160..166 => format!("%p{}", offset - 160),
        _ => format!("shared cell of byte {offset}"),
    };
    Some(format!(
        "thread {thread}: {register} (byte {offset}): {:#04x}, expected {:#04x}",
        got.io[at], want.io[at]
    ))
}

fn options(kind: Kind) -> Options {
    let budget = if kind == Kind::Wild { WILD_BUDGET } else { BUDGET };
    Options {
        instruction_budget: budget,
        memory_cap_bytes: 64 << 20,
        engine: Engine::Interp,
        ..Options::default()
    }
}

/// Checks everything that must hold for a program.
///
/// # Errors
/// What does not, with the program's text.
pub fn check(program: &Program) -> Result<(), String> {
    let text = program.text();
    let fail = |what: String| {
        let mut out = what;
        let _ = write!(
            out,
            "\n{:?}, {}, {} blocks of {} threads, data {:#x}\n{text}",
            program.kind,
            if program.modelled { "modelled" } else { "not modelled" },
            program.blocks,
            program.threads,
            program.data
        );
        Err(out)
    };
    let module = match assay_ptx::parse_module(&text) {
        Ok(m) => m,
        Err(e) => return fail(format!("the parser refuses it: {e}")),
    };
    let (wide, portable) = match (Loaded::new(&module), Loaded::portable(&module)) {
        (Ok(w), Ok(p)) => (Arc::new(w), Arc::new(p)),
        (Err(e), _) | (_, Err(e)) => return fail(format!("the device refuses it: {e}")),
    };
    let base = options(program.kind);
    let variants = variants(&base);
    let first = run(program, &wide, base.clone(), How::Whole);
    if program.kind == Kind::Wild {
        for o in variants {
            let (a, b) =
                (run(program, &wide, o.clone(), How::Whole), run(program, &portable, o.clone(), How::Whole));
            if a != b {
                let what = difference(&a.left, &b.left).unwrap_or_default();
                return fail(format!(
                    "handler variants differ under {o:?}: {what}\n{:#?}\n{:#?}",
                    a.outcome, b.outcome
                ));
            }
        }
        return Ok(());
    }
    if first.outcome.status != Status::Ok {
        return fail(format!("it does not run clean: {:#?}", first.outcome));
    }
    if program.modelled {
        let want = model::evaluate(program, &input(program), &io(program));
        if let Some(what) = difference(&first.left, &want) {
            return fail(format!("the device does not give what the model gives: {what}"));
        }
    }
    for o in &variants {
        for (name, loaded) in [("native", &wide), ("portable", &portable)] {
            let ran = run(program, loaded, o.clone(), How::Whole);
            if ran.outcome.status != Status::Ok {
                return fail(format!("{name} handlers, {o:?}: {:#?}", ran.outcome));
            }
            if let Some(what) = difference(&ran.left, &first.left) {
                return fail(format!("{name} handlers, {o:?}: {what}"));
            }
            let alike = Options { engine: base.engine, ..o.clone() } == base;
            if alike && ran.outcome.instructions != first.outcome.instructions {
                return fail(format!(
                    "{name} handlers, {o:?}: {} instructions, not {}",
                    ran.outcome.instructions, first.outcome.instructions
                ));
            }
        }
    }
    if program.kind == Kind::Alone {
        for (name, loaded) in [("native", &wide), ("portable", &portable)] {
            let ran = run(program, loaded, base.clone(), How::Alone);
            if ran.outcome.status != Status::Ok {
                return fail(format!("{name} handlers, one thread at a time: {:#?}", ran.outcome));
            }
            if let Some(what) = difference(&ran.left, &first.left) {
                return fail(format!("{name} handlers, one thread at a time: {what}"));
            }
        }
    }
    Ok(())
}

/// Everything that a lawful program's result does not depend on.
fn variants(base: &Options) -> Vec<Options> {
    vec![
        base.clone(),
        Options { sanitize: Sanitize::ALL, ..base.clone() },
        Options { memory: Memory::Arena, fill: Fill::Nan, seed: 3, ..base.clone() },
        Options { schedule: Schedule::RunAhead, seed: 5, fill: Fill::Zeros, ..base.clone() },
        Options { schedule: Schedule::RunAhead, seed: 9, sanitize: Sanitize::ALL, ..base.clone() },
        Options { schedule: Schedule::Shuffled, seed: 11, ..base.clone() },
        Options { schedule: Schedule::Shuffled, seed: 12, sanitize: Sanitize::ALL, ..base.clone() },
        Options { engine: Engine::Jit, ..base.clone() },
        Options { engine: Engine::Jit, schedule: Schedule::RunAhead, memory: Memory::Arena, ..base.clone() },
    ]
}

/// The program of some bytes.
pub fn program(bytes: &[u8]) -> Program {
    Program::generate(&mut Choices::new(bytes))
}

/// Fuzz target: the program of some bytes, checked.
///
/// # Errors
/// As [`check`].
pub fn ptx_exec(bytes: &[u8]) -> Result<(), String> {
    check(&program(bytes))
}

/// As small a program as can be found that `fails` all the same, and what it says.
pub fn shrink(program: Program, fails: impl Fn(&Program) -> Option<String>) -> (Program, String) {
    let mut best = program;
    let mut why = fails(&best).unwrap_or_else(|| "it fails only sometimes".into());
    let mut tries = 0;
    'again: loop {
        for smaller in best.smaller() {
            tries += 1;
            if tries > 3000 {
                return (best, why);
            }
            if let Some(w) = fails(&smaller) {
                (best, why) = (smaller, w);
                continue 'again;
            }
        }
        return (best, why);
    }
}
