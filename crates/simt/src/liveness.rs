//! Which registers are live where, and where each is kept.
//!
//! NVRTC writes nearly every value to a register of its own; packing those that are never live together into
//! the same slots keeps a warp's frame in the first-level cache. Divergence does no harm: a slot holds 32
//! independent lanes, and each lane follows one path on which the two registers are not live together; for that,
//! registers of different widths never share a slot (lane k of the one would be two lanes of the other). A guarded
//! write counts as a read too, since lanes without the guard keep the old value.

use assay_ptx::{Base, Function, Instr, Op, Operand, RegId};

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    fn insert(&mut self, r: usize) {
        self.0[r / 64] |= 1 << (r % 64);
    }
    fn remove(&mut self, r: usize) {
        self.0[r / 64] &= !(1 << (r % 64));
    }
    fn union(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= b;
        }
        changed
    }
    fn each(&self, mut f: impl FnMut(usize)) {
        for (i, word) in self.0.iter().enumerate() {
            let mut w = *word;
            while w != 0 {
                f(i * 64 + w.trailing_zeros() as usize);
                w &= w - 1;
            }
        }
    }
}

/// True if the first operand of `op` is written.
pub(crate) fn has_dest(op: Op) -> bool {
    !matches!(
        op,
        Op::St
            | Op::Red
            | Op::BarSync
            | Op::BarArrive
            | Op::BarWarpSync
            | Op::BarrierClusterArrive
            | Op::BarrierClusterWait
            | Op::Bra
            | Op::BrxIdx
            | Op::Brkpt
            | Op::CpAsync
            | Op::CpAsyncCommitGroup
            | Op::CpAsyncMbarrierArrive
            | Op::MbarrierInit
            | Op::MbarrierInval
            | Op::CpAsyncWaitAll
            | Op::CpAsyncWaitGroup
            | Op::Discard
            | Op::Exit
            | Op::Fence
            | Op::Griddepcontrol
            | Op::Membar
            | Op::Nanosleep
            | Op::Prefetch
            | Op::Prefetchu
            | Op::Ret
            | Op::Stmatrix
            | Op::Trap
            | Op::WmmaStore
    )
}

/// Registers in an operand.
fn registers(o: &Operand, f: &mut impl FnMut(RegId)) {
    match o {
        Operand::Reg(r) | Operand::NotReg(r) => f(*r),
        Operand::Pair(a, b) => [a, b].into_iter().flatten().for_each(|r| f(*r)),
        Operand::Address { base: Base::Reg(r), .. } => f(*r),
        Operand::Vector(list) => list.iter().for_each(|o| registers(o, f)),
        _ => {}
    }
}

/// Registers written and read by an instruction.
pub(crate) fn defs_uses(i: &Instr) -> (Vec<usize>, Vec<usize>) {
    let (mut defs, mut uses) = (Vec::new(), Vec::new());
    for (k, o) in i.operands.iter().enumerate() {
        // `call` is [returns, target, arguments].
        if k == 0 && has_dest(i.op) {
            registers(o, &mut |r| defs.push(r.index()));
        } else {
            registers(o, &mut |r| uses.push(r.index()));
        }
    }
    if let Some(g) = i.guard {
        uses.push(g.reg.index());
        uses.extend(&defs);
    }
    (defs, uses)
}

/// First and last instruction at which each register is live (`None` for one that is never named), and whether some
/// register may be read before it is written.
pub(crate) fn intervals(f: &Function) -> (Vec<Option<(usize, usize)>>, bool) {
    let (n, regs) = (f.body.len(), f.registers.len());
    // Blocks: leaders are targets and what follows a transfer.
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    let targets = |i: &Instr| -> Vec<usize> {
        i.operands
            .iter()
            .flat_map(|o| match o {
                Operand::Label(t) => vec![*t as usize],
                Operand::BranchTable(t) => {
                    f.branch_tables[*t as usize].targets.iter().map(|t| *t as usize).collect()
                }
                _ => vec![],
            })
            .collect()
    };
    for (k, i) in f.body.iter().enumerate() {
        for t in targets(i) {
            leader[t] = true;
        }
        if matches!(i.op, Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit | Op::Trap) {
            leader[k + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..n).filter(|k| leader[*k]).collect();
    let mut block_of = vec![0; n];
    for (b, &s) in starts.iter().enumerate() {
        let e = starts.get(b + 1).copied().unwrap_or(n);
        block_of[s..e].fill(b);
    }
    let end = |b: usize| starts.get(b + 1).copied().unwrap_or(n);
    let du: Vec<_> = f.body.iter().map(defs_uses).collect();
    let successors: Vec<Vec<usize>> = (0..starts.len())
        .map(|b| {
            let last = &f.body[end(b) - 1];
            let mut s: Vec<usize> = targets(last).into_iter().map(|t| block_of[t]).collect();
            let stops = matches!(last.op, Op::Bra | Op::BrxIdx | Op::Ret | Op::Exit | Op::Trap);
            if (!stops || last.guard.is_some()) && end(b) < n {
                s.push(block_of[end(b)]);
            }
            s
        })
        .collect();
    let mut live_in: Vec<Set> = vec![Set::new(regs); starts.len()];
    let mut live_out = live_in.clone();
    loop {
        let mut changed = false;
        for b in (0..starts.len()).rev() {
            let mut live = live_out[b].clone();
            for s in &successors[b] {
                live.union(&live_in[*s]);
            }
            live_out[b].union(&live);
            for k in (starts[b]..end(b)).rev() {
                du[k].0.iter().for_each(|r| live.remove(*r));
                du[k].1.iter().for_each(|r| live.insert(*r));
            }
            changed |= live_in[b].union(&live);
        }
        if !changed {
            break;
        }
    }
    let mut out: Vec<Option<(usize, usize)>> = vec![None; regs];
    let mut touch = |r: usize, k: usize| {
        let (a, z) = out[r].unwrap_or((k, k));
        out[r] = Some((a.min(k), z.max(k)));
    };
    for b in 0..starts.len() {
        live_in[b].each(|r| touch(r, starts[b]));
        // Live out of a block: to the end of its last instruction, and no slot may be reused there.
        live_out[b].each(|r| touch(r, end(b) - 1));
        for (k, (defs, uses)) in du.iter().enumerate().take(end(b)).skip(starts[b]) {
            defs.iter().chain(uses).for_each(|r| touch(*r, k));
        }
    }
    let unset = live_in.first().is_some_and(|s| s.0.iter().any(|w| *w != 0));
    (out, unset)
}

/// Assigns slots: `width(r)` units each (0: none). Returns the unit of each register and the number of units.
///
/// A register that begins where another one ends gets another slot: instructions with several results, and
/// wide results of narrow sources, write before they have read everything.
pub(crate) fn assign(intervals: &[Option<(usize, usize)>], width: impl Fn(usize) -> u32) -> (Vec<u32>, u32) {
    let mut order: Vec<usize> =
        (0..intervals.len()).filter(|r| intervals[*r].is_some() && width(*r) > 0).collect();
    order.sort_by_key(|r| intervals[*r]);
    let mut used: Vec<bool> = Vec::new();
    let mut active: Vec<usize> = Vec::new();
    let mut at = vec![0u32; intervals.len()];
    for r in order {
        let Some((start, _)) = intervals[r] else { continue };
        active.retain(|a| {
            let over = intervals[*a].is_none_or(|(_, end)| end < start);
            if over {
                let from = at[*a] as usize;
                used[from..from + width(*a) as usize].fill(false);
            }
            !over
        });
        let w = width(r) as usize;
        let mut p = 0;
        loop {
            if used.len() < p + w {
                used.resize(p + w, false);
            }
            match used[p..p + w].iter().rposition(|u| *u) {
                None => break,
                Some(k) => p += k + 1,
            }
        }
        used[p..p + w].fill(true);
        at[r] = p as u32;
        active.push(r);
    }
    (at, used.len() as u32)
}
