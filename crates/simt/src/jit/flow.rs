//! Blocks, liveness, entries, and which registers the frame holds where.

use super::source::{Source, What};
use super::spread::{Spread, Spreads};

/// A set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    pub(crate) fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }
    pub(crate) fn has(&self, r: usize) -> bool {
        self.0[r / 64] >> (r % 64) & 1 != 0
    }
    pub(crate) fn insert(&mut self, r: usize) {
        self.0[r / 64] |= 1 << (r % 64);
    }
    pub(crate) fn remove(&mut self, r: usize) {
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, w)| {
            let mut w = *w;
            std::iter::from_fn(move || {
                (w != 0).then(|| {
                    let k = w.trailing_zeros() as usize;
                    w &= w - 1;
                    i * 64 + k
                })
            })
        })
    }
    pub(crate) fn and(&self, other: &Set) -> Set {
        Set(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }
}

/// Where the frame stands at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Registers whose value may be in variables of the compiled code only.
    pub(crate) away: Set,
    /// Registers of which some lanes of the frame may be stale. (An affine register can be read from the frame if just
    /// the bases are there.)
    pub(crate) partial: Set,
}

impl Held {
    fn new(n: usize) -> Held {
        Held { away: Set::new(n), partial: Set::new(n) }
    }
    fn union(&mut self, other: &Held) -> bool {
        let a = self.away.union(&other.away);
        self.partial.union(&other.partial) || a
    }
    /// A register was written by compiled code.
    pub(crate) fn wrote(&mut self, r: usize) {
        self.away.insert(r);
        self.partial.insert(r);
    }
    /// The frame has all lanes of a register.
    pub(crate) fn whole(&mut self, r: usize) {
        self.away.remove(r);
        self.partial.remove(r);
    }
}

/// A straight run of instructions.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Runs that compiled code may go to.
    pub(crate) next: Vec<usize>,
}

/// See the module.
pub(crate) struct Flow {
    pub(crate) runs: Vec<Run>,
    pub(crate) run_of: Vec<usize>,
    /// Registers live before each instruction, and behind the last.
    pub(crate) live: Vec<Set>,
    /// Runs at whose start compiled code can be entered.
    pub(crate) is_entry: Vec<bool>,
    /// What the frame holds at the start of each run.
    pub(crate) held: Vec<Held>,
}

/// Which instructions compiled code hands to the interpreter's handlers.
pub(crate) fn by_handler(source: &Source, spreads: &Spreads) -> Vec<bool> {
    source
        .ins
        .iter()
        .map(|i| match &i.what {
            What::Leave { .. } | What::Nothing | What::Branch { .. } | What::Barrier { .. } => false,
            What::Handler { .. } => true,
            What::Store(_) => spreads.natural(i).is_none(),
            _ => match spreads.natural(i) {
                None => true,
                // A result of 64 bits without a pattern lives in the frame.
                Some(_) => i.dests.iter().any(|d| {
                    let d = *d as usize;
                    spreads.of[d] == Spread::Lanes && source.regs[d].slot.kind == crate::code::Kind::W64
                }),
            },
        })
        .collect()
}

/// True if control never goes on behind it within compiled code.
fn ends(what: &What) -> bool {
    matches!(what, What::Branch { .. } | What::Barrier { .. } | What::Leave { .. })
}

/// The graph and liveness.
pub(crate) fn liveness(source: &Source) -> (Vec<Run>, Vec<usize>, Vec<Set>) {
    let n = source.ins.len();
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    for (k, i) in source.ins.iter().enumerate() {
        if let What::Branch { target } = i.what {
            leader[target as usize] = true;
        }
        if ends(&i.what) {
            leader[k + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..n).filter(|k| leader[*k]).collect();
    let mut run_of = vec![0; n];
    let mut runs: Vec<Run> = Vec::new();
    for (b, &start) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(n);
        run_of[start..end].fill(b);
        runs.push(Run { start, end, next: Vec::new() });
    }
    // For liveness everything goes on, wherever it is executed.
    let regs = source.regs.len();
    let mut onward: Vec<Vec<usize>> = Vec::new();
    for run in &runs {
        let last = &source.ins[run.end - 1];
        let mut to = Vec::new();
        if let What::Branch { target } = last.what {
            to.push(run_of[target as usize]);
        }
        let always = match last.what {
            What::Branch { .. } => last.guard.is_none(),
            What::Leave { last } => last,
            _ => false,
        };
        if !always && run.end < n {
            to.push(run_of[run.end]);
        }
        onward.push(to);
    }
    for (run, to) in runs.iter_mut().zip(&onward) {
        if !matches!(source.ins[run.end - 1].what, What::Barrier { .. } | What::Leave { .. }) {
            run.next = to.clone();
        }
    }
    let mut live = vec![Set::new(regs); n + 1];
    loop {
        let mut changed = false;
        for b in (0..runs.len()).rev() {
            let mut now = Set::new(regs);
            for s in &onward[b] {
                now.union(&live[runs[*s].start]);
            }
            for k in (runs[b].start..runs[b].end).rev() {
                let i = &source.ins[k];
                if k + 1 < runs[b].end {
                    now = live[k + 1].clone();
                }
                i.dests.iter().for_each(|r| now.remove(*r as usize));
                i.uses.iter().for_each(|r| now.insert(*r as usize));
                changed |= live[k].union(&now);
                now = live[k].clone();
            }
        }
        if !changed {
            break;
        }
    }
    (runs, run_of, live)
}

impl Flow {
    pub(crate) fn new(
        source: &Source,
        spreads: &Spreads,
        handled: &[bool],
        (runs, run_of, live): (Vec<Run>, Vec<usize>, Vec<Set>),
    ) -> Flow {
        let regs = source.regs.len();
        let mut is_entry = vec![false; runs.len()];
        for b in 0..runs.len() {
            let (start, end) = (runs[b].start, runs[b].end);
            let stopped =
                start == 0 || matches!(source.ins[start - 1].what, What::Barrier { .. } | What::Leave { .. });
            is_entry[b] |= stopped;
            if let What::Branch { target } = source.ins[end - 1].what
                && (target as usize) < end
            {
                is_entry[run_of[target as usize]] = true;
            }
        }
        for (b, run) in runs.iter().enumerate() {
            if matches!(source.ins[run.start].what, What::Leave { .. }) {
                is_entry[b] = false;
            }
        }
        let mut kept = vec![Set::new(regs); runs.len()];
        let mut held;
        // A register that comes to a run in variables on one way, but is in the frame on another that loops (since it
        // waited at a barrier there), goes to the frame on the first: else it would be loaded each time for nothing.
        loop {
            held = where_held(source, spreads, handled, &runs, &run_of, &kept);
            let behind: Vec<Held> =
                runs.iter().zip(&held).map(|(run, h)| after(h, source, run, handled)).collect();
            let mut more = false;
            for b in 0..runs.len() {
                for a in (0..runs.len()).filter(|a| runs[*a].next.contains(&b)) {
                    // It is the end of a loop.
                    if runs[a].next.iter().any(|n| *n <= a) {
                        for r in held[b].away.iter().filter(|r| !behind[a].away.has(*r)) {
                            more |= !kept[b].has(r);
                            kept[b].insert(r);
                        }
                    }
                }
            }
            if !more {
                break;
            }
        }
        Flow { runs, run_of, live, is_entry, held }
    }
}

/// What the frame holds behind a run.
fn after(before: &Held, source: &Source, run: &Run, handled: &[bool]) -> Held {
    let mut h = before.clone();
    for (k, handled) in handled.iter().enumerate().take(run.end).skip(run.start) {
        step(&mut h, source, k, *handled);
    }
    h
}

/// What the frame holds at the start of each run, where `kept` says what it has to hold.
fn where_held(
    source: &Source,
    spreads: &Spreads,
    handled: &[bool],
    runs: &[Run],
    run_of: &[usize],
    kept: &[Set],
) -> Vec<Held> {
    let regs = source.regs.len();
    let mut held = vec![Held::new(regs); runs.len()];
    loop {
        let mut changed = false;
        for b in 0..runs.len() {
            let run = &runs[b];
            let h = after(&held[b], source, run, handled);
            for s in &run.next {
                let mut h = h.clone();
                kept[*s].iter().for_each(|r| h.away.remove(r));
                changed |= held[*s].union(&h);
            }
            if matches!(source.ins[run.end - 1].what, What::Barrier { .. }) && run.end < run_of.len() {
                // Bases stay in the frame; everything else is stored whole.
                let mut bases = Held::new(regs);
                for r in h.partial.iter().filter(|r| spreads.of[*r].is_affine()) {
                    bases.partial.insert(r);
                }
                changed |= held[run_of[run.end]].union(&bases);
            }
        }
        if !changed {
            return held;
        }
    }
}

/// What instruction `k` does to the frame.
pub(crate) fn step(h: &mut Held, source: &Source, k: usize, handled: bool) {
    let i = &source.ins[k];
    if handled {
        i.uses.iter().for_each(|r| h.whole(*r as usize));
        i.dests.iter().for_each(|r| h.whole(*r as usize));
    } else if !matches!(i.what, What::Leave { .. }) {
        i.dests.iter().for_each(|r| h.wrote(*r as usize));
    }
}
