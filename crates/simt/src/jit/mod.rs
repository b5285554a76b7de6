//! The vector JIT: an entry's converged code as machine code.
//!
//! Arrives: an entry as [`source::Source`] (made by the decoder) and the class of a launch's blocks. Leaves: a
//! [`Compiled`]: a list of decoded instructions like the interpreter's, in which the instructions at *entries* (the
//! first, those behind barriers and behind what compiled code leaves alone, the heads of loops) have [`enter`] for a
//! handler. So the executor schedules as ever. Compiled code runs all 32 lanes of one instruction before the next, does
//! the interpreter's arithmetic on fuel, and stops exactly where the interpreter would: outputs, findings, instruction
//! counts and schedules are the same to the bit.
//!
//! The passes: `spread` finds which registers are uniform or affine over the lanes and so need scalars only; `flow` finds
//! liveness and what the frame holds where; `emit` makes a Cranelift function, with `ops` (arithmetic) and `memory`
//! (checked accesses).
//!
//! Between compiled code and the interpreter the frame is the truth. Two things are kept beside it. An affine register may
//! have its bases alone in the frame while a warp waits at a barrier or for its next turn, if it goes on in compiled code.
//! And what the analysis claims of registers holds only for a warp that did not diverge: where a warp comes from the
//! interpreter, the claims about the registers that the entry needs are checked first.
//!
//! Runs only a full mask, without detectors, on x86-64 with AVX2 and FMA; everything else is the interpreter's.

mod emit;
mod flow;
mod memory;
mod ops;
pub(crate) mod source;
pub(crate) mod spread;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::Module;

use crate::code::{Code, Kernel, Kind};
use crate::warp::{Decoded, Event, Handler, LANES, Warp};

use flow::Flow;
use source::{Source, Src, What};
use spread::{BlockClass, HALF, Spread, Spreads};

/// Machine code kept for one kernel, in bytes, over all classes of blocks.
const MAX_CODE: usize = 8 << 20;

/// Why compiled code was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// A guard failed: the interpreter repeats from here.
    Interpret,
    /// An instruction that the interpreter does.
    Leave,
    /// A block barrier with this number.
    Barrier(u8),
    /// Fuel is out at a backward branch.
    Turn,
    /// A handler set the event.
    Event,
}

/// An affine register whose lanes are to be filled in from its bases.
#[derive(Clone, Copy, Debug)]
struct Expand {
    at: u32,
    wide: bool,
    stride: i64,
    delta: Option<i64>,
}

/// A way out of compiled code.
#[derive(Debug)]
pub(crate) struct Exit {
    /// Decoded instruction at which it leaves, and the one behind it.
    pub(crate) at: u32,
    next: Option<u32>,
    /// For barriers and ends of turns: the entry where it goes on, `u32::MAX` if the interpreter does.
    pub(crate) entry: u32,
    /// Instructions of the last straight run that are not counted yet.
    pub(crate) count: u32,
    pub(crate) kind: ExitKind,
    expand: Vec<Expand>,
    /// Its run.
    run: usize,
    /// Of barriers: how many places have loaded from global memory on the way here, see [`Warp::prefetch`].
    pub(crate) ahead: u32,
}

/// What is claimed of a register at an entry.
#[derive(Clone, Copy, Debug)]
struct Claim {
    at: u32,
    kind: Kind,
    spread: Spread,
}

/// A place where compiled code is entered.
struct Entry {
    /// The interpreter's handler there.
    handler: Handler,
    claims: Vec<Claim>,
}

type Function = unsafe extern "C" fn(*mut Warp, *mut u8, u32) -> u32;

/// Compiled code of an entry for one class of blocks.
pub(crate) struct Compiled {
    /// The instructions, as [`Code::plain`] except at entries.
    pub(crate) list: Vec<Decoded>,
    function: Function,
    entries: Vec<Entry>,
    /// Number of the entry by instruction; `u32::MAX` elsewhere.
    pub(crate) entry_at: Vec<u32>,
    pub(crate) exits: Vec<Exit>,
    /// Bytes of machine code.
    bytes: usize,
    module: Option<JITModule>,
}

// SAFETY: `list` and `entries` hold function pointers and numbers, `function` points to machine code that nothing
// changes, and `module` is touched again only when it is dropped.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(m) = self.module.take() {
            // SAFETY: nothing runs the code any more: launches hold the `Arc` while they do.
            unsafe { m.free_memory() };
        }
    }
}

/// Compiled code of a kernel by class of blocks; `None` where it was tried and cannot be.
#[derive(Default)]
pub(crate) struct Cache(Mutex<BTreeMap<BlockClass, Option<Arc<Compiled>>>>);

impl Cache {
    /// What is there already.
    pub(crate) fn get(&self, block: [u64; 3]) -> Option<Arc<Compiled>> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(&BlockClass::of(block)).cloned().flatten()
    }

    /// Compiles if need be.
    pub(crate) fn compile(&self, kernel: &Kernel, block: [u64; 3]) -> Option<Arc<Compiled>> {
        let class = BlockClass::of(block);
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(c) = map.get(&class) {
            return c.clone();
        }
        let taken: usize = map.values().flatten().map(|c| c.bytes).sum();
        let made = if taken < MAX_CODE { compile(&kernel.codes[0], class).map(Arc::new) } else { None };
        map.insert(class, made.clone());
        made
    }
}

/// An entry's credit at first and at most. A failed guard or claim costs [`FAILURE`], and below 0 the entry is left to the
/// interpreter for [`REST`] times: code that diverges often is not faster compiled.
const CREDIT: i32 = 16;
const FAILURE: i32 = 4;
const REST: i32 = 500;

fn charge(credit: &mut i32) {
    *credit -= FAILURE;
    if *credit < 0 {
        *credit = -REST;
    }
}

/// True if this process can run compiled code.
pub(crate) fn available() -> bool {
    cfg!(target_arch = "x86_64") && crate::cpu::variant() == crate::cpu::Variant::Wide
}

/// Calls a handler of the interpreter from compiled code; 0 if it stopped.
///
/// # Safety
/// As for the handler.
unsafe extern "C" fn call_handler(w: *mut Warp, d: *const Decoded) -> usize {
    // SAFETY: the caller's promise; compiled code passes the warp that it was given.
    unsafe { ((*d).f)(&mut *w, &*d) as usize }
}

/// Compiles an entry; `None` if it has none of the code that this is for, or Cranelift refuses it.
fn compile(code: &Code, class: BlockClass) -> Option<Compiled> {
    let source = code.source.as_ref()?;
    let graph = flow::liveness(source);
    let undefined = graph.2[0].clone();
    let spreads = Spreads::new(source, class, |r| undefined.has(r));
    let handled = flow::by_handler(source, &spreads);
    let flow = Flow::new(source, &spreads, &handled, graph);
    let lazy = lazy(source);
    let runs: Vec<usize> = (0..flow.runs.len()).filter(|b| flow.is_entry[*b]).collect();
    if runs.is_empty() {
        return None;
    }

    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "none"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ("is_pic", "false"),
    ] {
        flags.set(name, value).ok()?;
    }
    let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, cranelift_module::default_libcall_names()));
    let mut cx = module.make_context();
    let mut fcx = FunctionBuilderContext::new();
    cx.func.name = UserFuncName::user(0, 0);
    for ty in [I64, I64, I32] {
        cx.func.signature.params.push(AbiParam::new(ty));
    }
    cx.func.signature.returns.push(AbiParam::new(I32));
    let mut handler = module.make_signature();
    handler.params.push(AbiParam::new(I64));
    handler.params.push(AbiParam::new(I64));
    handler.returns.push(AbiParam::new(I64));
    let mut product = module.make_signature();
    product.params.extend([AbiParam::new(I64); 6]);

    let mut b = FunctionBuilder::new(&mut cx.func, &mut fcx);
    let calls = (b.import_signature(handler), b.import_signature(product));
    let decoded = (&code.plain[..], &code.cold[..]);
    let mut e = emit::Emitter::new(&mut b, source, &spreads, &flow, &handled, &lazy, decoded, calls);
    e.all(&runs).ok()?;
    e.ask_ahead();
    let mut exits = std::mem::take(&mut e.exits);
    b.finalize(module.target_config());
    let id = module.declare_anonymous_function(&cx.func.signature).ok()?;
    module.define_function(id, &mut cx).ok()?;
    let bytes = cx.compiled_code().map_or(0, |c| c.code_buffer().len());
    module.finalize_definitions().ok()?;
    let function = module.get_finalized_function(id);
    // SAFETY: the function was declared with this signature and the host's calling convention.
    let function: Function = unsafe { std::mem::transmute(function) };

    let mut list = code.plain.clone();
    let mut entry_at = vec![u32::MAX; list.len()];
    let mut entries = Vec::new();
    for run in &runs {
        let start = flow.runs[*run].start;
        let at = source.ins[start].first;
        let d = &mut list[at as usize];
        let claims = flow.live[start]
            .iter()
            .map(|r| Claim {
                at: source.regs[r].slot.at,
                kind: source.regs[r].slot.kind,
                spread: spreads.of[r],
            })
            .filter(|c| c.spread.is_affine() || matches!(c.spread, Spread::All | Spread::Halves))
            .collect();
        entry_at[at as usize] = entries.len() as u32;
        entries.push(Entry { handler: d.f, claims });
        d.f = enter;
    }
    for x in &mut exits {
        let on = match x.kind {
            ExitKind::Barrier(_) => x.next,
            ExitKind::Turn => Some(x.at),
            ExitKind::Interpret | ExitKind::Leave | ExitKind::Event => None,
        };
        x.entry = on.map_or(u32::MAX, |at| entry_at[at as usize]);
    }
    Some(Compiled { list, function, entries, entry_at, exits, bytes, module: Some(module) })
}

/// Registers of which every write gives a float whose NaNs are canonical (or will be).
fn lazy(source: &Source) -> Vec<bool> {
    let mut lazy: Vec<bool> = source.regs.iter().map(|r| r.float).collect();
    loop {
        let mut changed = false;
        for i in &source.ins {
            let fine = match &i.what {
                What::Float { .. } => true,
                What::Mov { a: Src::Const(v), .. } => !f32::from_bits(*v as u32).is_nan(),
                What::Mov { a: Src::Reg(r), .. } => lazy[*r as usize],
                _ => false,
            };
            for d in &i.dests {
                changed |= !fine && std::mem::replace(&mut lazy[*d as usize], false);
            }
        }
        if !changed {
            return lazy;
        }
    }
}

/// The handler at an entry: runs compiled code if the warp is fit for it, else the interpreter's handler.
///
/// # Safety
/// As for every handler; `w.jit` is the [`Compiled`] whose list `d` belongs to, `w.credit` has one for each entry.
unsafe fn enter(w: &mut Warp, d: &Decoded) -> *const Decoded {
    // SAFETY: the caller's promise; numbers of entries and exits are the compiler's, frames are as the decoder laid
    // them out, and instructions of exits lie within the list.
    unsafe {
        let c = &*w.jit;
        let here = std::ptr::from_ref(d);
        let at = here.offset_from(w.code) as usize;
        let number = c.entry_at[at];
        let entry = &c.entries[number as usize];
        if w.mask != u32::MAX {
            return (entry.handler)(w, d);
        }
        let credit = &mut *w.credit.add(number as usize);
        if w.expect != here {
            if *credit < 0 {
                *credit += 1;
                return (entry.handler)(w, d);
            }
            if !holds(w, &entry.claims) {
                charge(credit);
                return (entry.handler)(w, d);
            }
        }
        if w.mark != here {
            w.count_through(&*here.sub(1));
        }
        let exit = c.run(w, number);
        if c.exits[exit as usize].kind == ExitKind::Interpret {
            charge(credit);
        } else {
            *credit = (*credit + 1).min(CREDIT);
        }
        land(w, exit)
    }
}

impl Compiled {
    /// Every entry's credit at the start of a launch.
    pub(crate) fn credits(&self) -> Vec<i32> {
        vec![CREDIT; self.entries.len()]
    }

    /// Runs from an entry; gives the number of an exit.
    ///
    /// # Safety
    /// The entry's frame is current in `w`, as the analysis claims, with all lanes active.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, w: &mut Warp, entry: u32) -> u32 {
        // SAFETY: the caller's promise is what the function was compiled for.
        unsafe { (self.function)(w, w.regs, entry) }
    }
}

/// After compiled code: does what the exit asks for. The next instruction, or null with an event, as handlers give.
///
/// # Safety
/// As for [`enter`], just after [`Compiled::run`] gave `exit`.
pub(crate) unsafe fn land(w: &mut Warp, exit: u32) -> *const Decoded {
    // SAFETY: as in `enter`.
    unsafe {
        let c = &*w.jit;
        w.generation = w.generation.wrapping_add(1).max(1);
        w.expect = std::ptr::null();
        let x = &c.exits[exit as usize];
        w.fuel -= i64::from(x.count);
        if !x.expand.is_empty() {
            expand(w, &x.expand);
        }
        let to = w.code.add(x.at as usize);
        w.mark = to;
        match x.kind {
            ExitKind::Interpret => go_on(w, c, to),
            ExitKind::Leave => {
                w.expect = x.next.map_or(std::ptr::null(), |n| w.code.add(n as usize));
                go_on(w, c, to)
            }
            ExitKind::Barrier(_) => {
                w.expect = x.next.map_or(std::ptr::null(), |n| w.code.add(n as usize));
                go_on(w, c, to)
            }
            ExitKind::Turn => {
                w.expect = to;
                w.stop(&*to, Event::Yield)
            }
            ExitKind::Event => {
                w.at = to;
                std::ptr::null()
            }
        }
    }
}

/// Goes on in the interpreter at `to`, even if compiled code could be entered there.
///
/// # Safety
/// As for [`enter`]; `to` is an instruction of the list.
unsafe fn go_on(w: &mut Warp, c: &Compiled, to: *const Decoded) -> *const Decoded {
    // SAFETY: the caller's promise.
    unsafe {
        match c.entry_at[to.offset_from(w.code) as usize] {
            u32::MAX => to,
            number => (c.entries[number as usize].handler)(w, &*to),
        }
    }
}

/// Fills in the lanes of affine registers.
///
/// # Safety
/// The registers belong to the current frame; the processor has AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn expand(w: &Warp, list: &[Expand]) {
    for e in list {
        // SAFETY: the caller's promise.
        unsafe { expand_one(w, e) };
    }
}

/// # Safety
/// As for [`expand`].
#[inline(always)]
unsafe fn expand_one(w: &Warp, e: &Expand) {
    // SAFETY: 32 lanes of the register's width.
    unsafe {
        if e.wide {
            let lanes = &mut *w.r64(e.at).cast::<[u64; LANES]>();
            let second = e.delta.map_or(lanes[HALF as usize], |d| lanes[0].wrapping_add(d as u64));
            let (x, y) = lanes.split_at_mut(HALF as usize);
            for (half, base) in [(x, 0), (y, 1)] {
                let base = if base == 0 { half[0] } else { second };
                for (k, l) in half.iter_mut().enumerate() {
                    *l = base.wrapping_add((e.stride as u64).wrapping_mul(k as u64));
                }
            }
        } else {
            let lanes = &mut *w.r32(e.at).cast::<[u32; LANES]>();
            let second = e.delta.map_or(lanes[HALF as usize], |d| lanes[0].wrapping_add(d as u32));
            let (x, y) = lanes.split_at_mut(HALF as usize);
            for (half, base) in [(x, 0), (y, 1)] {
                let base = if base == 0 { half[0] } else { second };
                for (k, l) in half.iter_mut().enumerate() {
                    *l = base.wrapping_add((e.stride as u32).wrapping_mul(k as u32));
                }
            }
        }
    }
}

/// True if the frame's registers are as the analysis claims.
///
/// # Safety
/// The registers belong to the current frame; the processor has AVX2.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn holds(w: &Warp, claims: &[Claim]) -> bool {
    // SAFETY: 32 lanes of the registers' widths.
    claims.iter().all(|c| unsafe {
        match (c.kind, c.spread) {
            (Kind::Pred, Spread::All) => matches!(w.pred(c.at), 0 | u32::MAX),
            (Kind::Pred, _) => {
                let p = w.pred(c.at);
                matches!(p & 0xffff, 0 | 0xffff) && matches!(p >> 16, 0 | 0xffff)
            }
            (Kind::W32, Spread::Affine { stride, delta }) => {
                let lanes = &*w.r32(c.at).cast::<[u32; LANES]>();
                let mut bad = delta.map_or(0, |d| lanes[HALF as usize].wrapping_sub(lanes[0]) ^ d as u32);
                for k in 0..HALF as usize {
                    let step = (stride as u32).wrapping_mul(k as u32);
                    bad |= lanes[k].wrapping_sub(lanes[0]) ^ step;
                    bad |= lanes[HALF as usize + k].wrapping_sub(lanes[HALF as usize]) ^ step;
                }
                bad == 0
            }
            (Kind::W64, Spread::Affine { stride, delta }) => {
                let lanes = &*w.r64(c.at).cast::<[u64; LANES]>();
                let mut bad = delta.map_or(0, |d| lanes[HALF as usize].wrapping_sub(lanes[0]) ^ d as u64);
                for k in 0..HALF as usize {
                    let step = (stride as u64).wrapping_mul(k as u64);
                    bad |= lanes[k].wrapping_sub(lanes[0]) ^ step;
                    bad |= lanes[HALF as usize + k].wrapping_sub(lanes[HALF as usize]) ^ step;
                }
                bad == 0
            }
            _ => true,
        }
    })
}
