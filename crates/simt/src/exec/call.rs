//! Function calls, returns, and the built-in functions `vprintf` and `__assertfail`.

use super::state::{Frame, fill_frame};
use super::{Exec, PRINTF_BYTES, PRINTF_LINES, Step, Stop};
use crate::code::{CallOp, Callee, Cold, Home, Kind, Value};
use crate::findings::{Finding, FindingKind};
use crate::handlers::generic::{get, put};
use crate::memory::{Bytes, FUNCTION_WINDOW};
use crate::warp::LANES;

/// Deepest call chain, and local memory of a thread, before a launch is given up.
const MAX_DEPTH: u32 = 4096;
const MAX_LOCAL_BYTES: u64 = 1 << 20;
/// Longest string that is read from device memory.
const MAX_STRING: usize = 4096;

impl Exec<'_> {
    pub(super) fn call(&mut self, slot: usize, wi: usize, fi: usize, ci: u32, at: u32, op: &CallOp) -> Step {
        let f = self.blocks[slot].warps[wi].fragments[fi];
        let target = match &op.callee {
            Callee::Code(c) => *c,
            Callee::Printf => return self.vprintf(slot, wi, f.mask, at, op),
            Callee::AssertFail => return self.assert_fail(slot, wi, f.mask, ci, at, op),
            Callee::Indirect(s) => {
                let ws = &mut self.blocks[slot].warps[wi];
                let first = f.mask.trailing_zeros() as usize;
                // SAFETY: the operand belongs to the current frame.
                let address = unsafe { get(&ws.w, *s, first) };
                let mut same = 0;
                for k in 0..LANES {
                    // SAFETY: as above.
                    if f.mask >> k & 1 != 0 && unsafe { get(&ws.w, *s, k) } == address {
                        same |= 1 << k;
                    }
                }
                let function = address.checked_sub(FUNCTION_WINDOW).unwrap_or(u64::MAX);
                let known =
                    usize::try_from(function).ok().and_then(|i| self.kernel.by_function.get(i)?.as_ref());
                let Some(&code) = known else {
                    let what = format!("call of address {address:#x}, which is no function");
                    let mut found = Finding::new(FindingKind::Trap, what);
                    self.locate(&mut found, slot, wi, first, ci, at);
                    self.fault(slot, found);
                    return Step::Ended;
                };
                if same != f.mask {
                    // The others call in a turn of their own.
                    let ws = &mut self.blocks[slot].warps[wi];
                    ws.fragments[fi].mask = same;
                    ws.fragments.push(super::Fragment { mask: f.mask & !same, pc: at, ..f });
                    ws.frames[f.frame as usize].users += 1;
                }
                code
            }
        };
        let kernel = self.kernel;
        let callee = &kernel.codes[target as usize];
        let caller = &kernel.codes[ci as usize];
        if callee.params.len() != op.args.len() || callee.returns.len() < op.returns.len() {
            self.stop = Some(Stop::Unsupported("a call whose arguments differ from the function's".into()));
            return Step::Ended;
        }
        let shape = self.shape;
        let block = &self.blocks[slot];
        let parent = &block.warps[wi].frames[f.frame as usize];
        let (depth, local_base) = (parent.depth + 1, parent.local_base + caller.local_bytes);
        let local_len = local_base + callee.local_bytes;
        if depth > MAX_DEPTH || local_len > MAX_LOCAL_BYTES {
            self.stop =
                Some(Stop::Exhausted(format!("call stack deeper than {MAX_DEPTH} calls or 1 MiB a thread")));
            return Step::Ended;
        }
        let mut regs = Bytes::zeroed(callee.template.len());
        fill_frame(&mut regs, callee, &shape, block, wi);
        let ws = &mut self.blocks[slot].warps[wi];
        let mask = ws.fragments[fi].mask;
        if ws.w.local_len < local_len {
            ws.local.grow_moving(local_len as usize * LANES);
            ws.w.local = ws.local.as_ptr();
            ws.w.local_len = local_len;
        }
        let frame = ws.push_frame(Frame {
            code: target,
            regs,
            parent: f.frame,
            return_pc: at + 1,
            local_base,
            depth,
            users: 1,
        });
        // The fragment moves from the caller's frame, which keeps the callee's frame as a user instead.
        ws.frames[f.frame as usize].users -= 1;
        ws.fragments[fi].frame = frame;
        ws.fragments[fi].pc = 0;
        if let Some(san) = self.san.as_deref_mut() {
            san.call(slot, wi, local_base, callee.local_bytes, mask);
        }
        for (from, to) in op.args.iter().zip(&callee.params) {
            self.pass(slot, wi, mask, f.frame, frame, from, to, true);
        }
        Step::Repick
    }

    /// Copies one argument (or result) between the frames of caller and callee.
    #[expect(clippy::too_many_arguments, reason = "two frames, two places and a direction")]
    fn pass(
        &mut self,
        slot: usize,
        wi: usize,
        mask: u32,
        caller: u32,
        callee: u32,
        outer: &Value,
        inner: &Home,
        down: bool,
    ) {
        let size = match inner {
            Home::Local { size, .. } | Home::Slot { size, .. } => *size,
        };
        let bases = {
            let frames = &self.blocks[slot].warps[wi].frames;
            (frames[caller as usize].local_base, frames[callee as usize].local_base)
        };
        let mut done = 0;
        while done < size {
            // Words of 8 bytes where both sides are memory; a register is one piece.
            let n = if let (Value::Local { .. }, Home::Local { .. }) = (outer, inner) {
                (size - done).min(8)
            } else {
                size.min(8)
            };
            for k in 0..LANES {
                if mask >> k & 1 == 0 {
                    continue;
                }
                let read = |this: &mut Self, from_outer: bool| -> u64 {
                    if from_outer {
                        match outer {
                            Value::Local { offset } => {
                                this.read_local(slot, wi, k, bases.0 + offset + done, n as usize)
                            }
                            Value::Slot(s) => this.frame_get(slot, wi, caller, *s, k),
                        }
                    } else {
                        match inner {
                            Home::Local { offset, .. } => {
                                this.read_local(slot, wi, k, bases.1 + offset + done, n as usize)
                            }
                            Home::Slot { slot: s, .. } => this.frame_get(slot, wi, callee, *s, k),
                        }
                    }
                };
                let v = read(self, down);
                let (to_slot, to_local) = if down {
                    match inner {
                        Home::Local { offset, .. } => (None, bases.1 + offset + done),
                        Home::Slot { slot: s, .. } => (Some((callee, *s)), 0),
                    }
                } else {
                    match outer {
                        Value::Local { offset } => (None, bases.0 + offset + done),
                        Value::Slot(s) => (Some((caller, *s)), 0),
                    }
                };
                match to_slot {
                    Some((frame, s)) => self.frame_put(slot, wi, frame, s, k, v),
                    None => self.write_local(slot, wi, k, to_local, n as usize, v),
                }
                if to_slot.is_none()
                    && let Some(san) = self.san.as_deref_mut()
                {
                    san.local_written(slot, wi, to_local, n, 1 << k);
                }
            }
            done += n;
        }
    }

    fn frame_get(&mut self, slot: usize, wi: usize, frame: u32, s: crate::code::Slot, lane: usize) -> u64 {
        let ws = &mut self.blocks[slot].warps[wi];
        let regs = ws.frames[frame as usize].regs.as_ptr();
        let kept = std::mem::replace(&mut ws.w.regs, regs);
        // SAFETY: the slot belongs to the frame just made current.
        let v = unsafe { get(&ws.w, s, lane) };
        ws.w.regs = kept;
        v
    }

    fn frame_put(&mut self, slot: usize, wi: usize, frame: u32, s: crate::code::Slot, lane: usize, v: u64) {
        let ws = &mut self.blocks[slot].warps[wi];
        let regs = ws.frames[frame as usize].regs.as_ptr();
        let kept = std::mem::replace(&mut ws.w.regs, regs);
        let v = if s.kind == Kind::W32 { v & 0xffff_ffff } else { v };
        // SAFETY: as above.
        unsafe { put(&ws.w, s, lane, v) };
        ws.w.regs = kept;
    }

    /// The lanes of a fragment return to their caller.
    pub(super) fn ret(&mut self, slot: usize, wi: usize, fi: usize, ci: u32) -> Step {
        let kernel = self.kernel;
        let f = self.blocks[slot].warps[wi].fragments[fi];
        let (parent, return_pc) = {
            let frame = &self.blocks[slot].warps[wi].frames[f.frame as usize];
            (frame.parent, frame.return_pc)
        };
        let callee = &kernel.codes[ci as usize];
        let caller = &kernel.codes[self.blocks[slot].warps[wi].frames[parent as usize].code as usize];
        let call = &caller.plain[return_pc as usize - 1];
        if let Cold::Call(op) = &caller.cold[call.aux as usize] {
            for (to, from) in op.returns.iter().zip(&callee.returns) {
                self.pass(slot, wi, f.mask, parent, f.frame, to, from, false);
            }
        }
        let ws = &mut self.blocks[slot].warps[wi];
        ws.frames[parent as usize].users += 1;
        ws.fragments[fi].frame = parent;
        ws.fragments[fi].pc = return_pc;
        ws.release_frame(f.frame);
        ws.merge();
        Step::Repick
    }

    /// The first argument values of a built-in, in one lane.
    fn builtin_args(&mut self, slot: usize, wi: usize, lane: usize, op: &CallOp) -> [u64; 4] {
        let mut out = [0; 4];
        let base = self.blocks[slot].warps[wi].w.local_base;
        for (o, a) in out.iter_mut().zip(&op.args) {
            *o = match a {
                Value::Local { offset } => self.read_local(slot, wi, lane, base + offset, 8),
                // SAFETY: the operand belongs to the current frame.
                Value::Slot(s) => unsafe { get(&self.blocks[slot].warps[wi].w, *s, lane) },
            };
        }
        out
    }

    fn string(&mut self, slot: usize, wi: usize, lane: usize, address: u64) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_STRING {
            match self.read_generic(slot, wi, lane, address.wrapping_add(bytes.len() as u64)) {
                None | Some(0) => break,
                Some(b) => bytes.push(b),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn vprintf(&mut self, slot: usize, wi: usize, mask: u32, at: u32, op: &CallOp) -> Step {
        for k in 0..LANES {
            if mask >> k & 1 == 0 {
                continue;
            }
            let mut at_arg = 0u64;
            let mut written = 0u64;
            // A flood costs no more than its loop once enough is kept.
            if self.printf.len() < PRINTF_LINES && self.printf_bytes < PRINTF_BYTES {
                let [format, list, ..] = self.builtin_args(slot, wi, k, op);
                let format = self.string(slot, wi, k, format);
                let text = {
                    let mut next = |size: u64| {
                        at_arg = at_arg.next_multiple_of(size);
                        let from = list.wrapping_add(at_arg);
                        at_arg += size;
                        let mut v = 0u64;
                        for j in 0..size {
                            let b = self.read_generic(slot, wi, k, from.wrapping_add(j)).unwrap_or(0);
                            v |= u64::from(b) << (8 * j);
                        }
                        v
                    };
                    crate::printf::Pieces::new(&format).values(&mut next)
                };
                let text = crate::printf::render(&format, &text, |a| self.string(slot, wi, k, a));
                written = text.len() as u64;
                self.printf_bytes += text.len();
                self.printf.push(text);
            }
            // The result: bytes written, as the C function has it.
            let base = self.blocks[slot].warps[wi].w.local_base;
            match op.returns.first() {
                Some(Value::Local { offset }) => {
                    self.write_local(slot, wi, k, base + offset, 4, written);
                    if let Some(san) = self.san.as_deref_mut() {
                        san.local_written(slot, wi, base + offset, 4, 1 << k);
                    }
                }
                // SAFETY: the destination belongs to the current frame.
                Some(Value::Slot(s)) => unsafe { put(&self.blocks[slot].warps[wi].w, *s, k, written) },
                None => {}
            }
        }
        Step::Go(at + 1)
    }

    fn assert_fail(&mut self, slot: usize, wi: usize, mask: u32, ci: u32, at: u32, op: &CallOp) -> Step {
        let lane = mask.trailing_zeros() as usize;
        let [message, file, line, _] = self.builtin_args(slot, wi, lane, op);
        let message = self.string(slot, wi, lane, message);
        let file = self.string(slot, wi, lane, file);
        let mut f = Finding::new(FindingKind::Assert, format!("assertion `{message}` failed"));
        self.locate(&mut f, slot, wi, lane, ci, at);
        // The assertion names its place itself.
        let line = line as u32;
        if line > 0 {
            if f.line != Some(line) {
                (f.line, f.column) = (Some(line), None);
            }
            f.file = Some(file);
        }
        self.fault(slot, f);
        Step::Ended
    }
}
