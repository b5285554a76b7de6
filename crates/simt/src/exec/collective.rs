//! Operations of a warp: shuffles, votes, matches, reductions and `bar.warp.sync`.
//!
//! They wait until every living lane of the member mask has arrived at such an operation (at the same or another
//! instruction, with the same qualifiers), and are then done for all of them at once.

use assay_ptx::{AtomOp, MatchMode, Ty, VoteMode};

use super::state::{Fragment, State};
use super::{Exec, Step};
use crate::code::{Cold, Collective, WarpOp};
use crate::findings::{Finding, FindingKind};
use crate::handlers::generic::{get, put};
use crate::handlers::shuffle;
use crate::semantics::value;
use crate::warp::LANES;

/// Values of all lanes that take part.
struct Gathered {
    /// Lanes that take part.
    lanes: u32,
    sources: [[u64; LANES]; 3],
}

/// One lane's results.
#[derive(Clone, Copy, Default)]
struct Lane {
    value: u64,
    pred: bool,
}

impl Exec<'_> {
    /// A fragment arrives at a warp operation.
    pub(super) fn warp_op(
        &mut self,
        slot: usize,
        wi: usize,
        fi: usize,
        ci: u32,
        at: u32,
        op: &WarpOp,
    ) -> Step {
        let ws = &mut self.blocks[slot].warps[wi];
        let f = ws.fragments[fi];
        let first = f.mask.trailing_zeros() as usize;
        // SAFETY: the operand belongs to the current frame.
        let members = unsafe { get(&ws.w, op.members, first) } as u32;
        // Lanes with another mask form a fragment of their own.
        let mut same = 0;
        for k in 0..LANES {
            // SAFETY: as above.
            if f.mask >> k & 1 != 0 && unsafe { get(&ws.w, op.members, k) } as u32 == members {
                same |= 1 << k;
            }
        }
        if same != f.mask {
            ws.fragments[fi].mask = same;
            ws.fragments[fi].pc = at;
            ws.fragments.push(Fragment { mask: f.mask & !same, pc: at, ..f });
            ws.frames[f.frame as usize].users += 1;
            // Distinct states keep the two apart; the first waits or runs now.
        }
        let outside = same & !members;
        let site = self.site(ci, at);
        if outside != 0 && !self.seen(FindingKind::BadShuffleMask, site, 0) {
            let mut found = Finding::new(
                FindingKind::BadShuffleMask,
                format!(
                    "the member mask {members:#010x} does not name the calling lane {}",
                    outside.trailing_zeros()
                ),
            );
            self.locate(&mut found, slot, wi, outside.trailing_zeros() as usize, ci, at);
            self.report(found, site, 0);
        }
        let ws = &mut self.blocks[slot].warps[wi];
        let wanted = members & ws.live;
        if wanted & !same == 0 {
            // Everyone is here: no need to wait.
            self.perform(slot, wi, &[Fragment { mask: same, pc: at, ..f }], op);
            if !self.blocks[slot].active {
                return Step::Ended;
            }
            let ws = &mut self.blocks[slot].warps[wi];
            if same == f.mask {
                return Step::Go(at + 1);
            }
            ws.fragments[fi].pc = at + 1;
            return Step::Repick;
        }
        ws.fragments[fi].pc = at;
        ws.fragments[fi].mask = same;
        ws.fragments[fi].state = State::Members(members);
        ws.merge();
        self.release_members(slot, wi);
        if self.blocks[slot].active { Step::Repick } else { Step::Ended }
    }

    /// Performs every warp operation whose lanes are complete.
    pub(super) fn release_members(&mut self, slot: usize, wi: usize) {
        let kernel = self.kernel;
        loop {
            let ws = &self.blocks[slot].warps[wi];
            let op_at = |f: &Fragment| {
                let code = &kernel.codes[ws.frames[f.frame as usize].code as usize];
                match &code.cold[code.plain[f.pc as usize].aux as usize] {
                    Cold::Warp(op) => Some(op),
                    _ => None,
                }
            };
            let mut found = None;
            for f in &ws.fragments {
                let State::Members(members) = f.state else { continue };
                let Some(op) = op_at(f) else { continue };
                let group: Vec<Fragment> = ws
                    .fragments
                    .iter()
                    .filter(|g| g.state == f.state && op_at(g).is_some_and(|o| o.op.meets(&op.op)))
                    .copied()
                    .collect();
                let here = group.iter().fold(0, |m, g| m | g.mask);
                if members & ws.live & !here == 0 {
                    found = Some((group, op));
                    break;
                }
            }
            let Some((group, op)) = found else { return };
            self.perform(slot, wi, &group, op);
            if !self.blocks[slot].active {
                return;
            }
            let ws = &mut self.blocks[slot].warps[wi];
            for f in &mut ws.fragments {
                if group
                    .iter()
                    .any(|g| g.pc == f.pc && g.frame == f.frame && g.state == f.state && g.mask == f.mask)
                {
                    f.state = State::Ready;
                    f.pc += 1;
                }
            }
            ws.merge();
        }
    }

    /// Does one operation for the fragments of `group`, which meet.
    fn perform(&mut self, slot: usize, wi: usize, group: &[Fragment], first: &WarpOp) {
        if let Collective::Matrix(op) = &first.op {
            self.matrix(slot, wi, group, op);
            return;
        }
        let kernel = self.kernel;
        let ws = &mut self.blocks[slot].warps[wi];
        let kept = ws.w.regs;
        let mut g = Gathered { lanes: 0, sources: [[0; LANES]; 3] };
        for f in group {
            g.lanes |= f.mask;
            let Some(op) = operands(kernel, ws, f) else { continue };
            ws.w.regs = ws.frames[f.frame as usize].regs.as_ptr();
            for (j, s) in op.sources.iter().enumerate().take(3) {
                for k in 0..LANES {
                    // Values of lanes that do not take part are what their registers hold: a shuffle from one
                    // reads that. SAFETY: operands of the frame just made current.
                    if f.mask >> k & 1 != 0 || group.len() == 1 {
                        g.sources[j][k] = unsafe { get(&ws.w, *s, k) };
                    }
                }
            }
        }
        let mut inactive = None;
        let mut results = [Lane::default(); LANES];
        for (k, r) in results.iter_mut().enumerate() {
            if g.lanes >> k & 1 != 0 {
                *r = one_lane(&first.op, &g, k, &mut inactive);
            }
        }
        for f in group {
            let Some(op) = operands(kernel, ws, f) else { continue };
            ws.w.regs = ws.frames[f.frame as usize].regs.as_ptr();
            for (k, r) in results.iter().enumerate() {
                if f.mask >> k & 1 == 0 {
                    continue;
                }
                // SAFETY: destinations of the frame just made current.
                unsafe {
                    if let Some(d) = op.dest {
                        put(&ws.w, d, k, r.value);
                    }
                    if let Some(p) = op.pred {
                        put(&ws.w, p, k, u64::from(r.pred));
                    }
                }
            }
        }
        ws.w.regs = kept;
        if matches!(first.op, Collective::Sync)
            && let Some(san) = self.san.as_deref_mut()
        {
            san.warp_sync(slot, wi, g.lanes);
        }
        if let Some((lane, source)) = inactive {
            let f = group.iter().find(|f| f.mask >> lane & 1 != 0).unwrap_or(&group[0]);
            let ci = self.blocks[slot].warps[wi].frames[f.frame as usize].code;
            let site = self.site(ci, f.pc);
            if self.seen(FindingKind::BadShuffleMask, site, 1) {
                return;
            }
            let mut found = Finding::new(
                FindingKind::BadShuffleMask,
                format!("lane {lane} reads from lane {source}, which does not take part in the shuffle"),
            );
            self.locate(&mut found, slot, wi, lane, ci, f.pc);
            self.report(found, site, 1);
        }
    }
}

fn operands<'k>(
    kernel: &'k crate::code::Kernel,
    ws: &super::state::WarpState,
    f: &Fragment,
) -> Option<&'k WarpOp> {
    let code = &kernel.codes[ws.frames[f.frame as usize].code as usize];
    match &code.cold[code.plain[f.pc as usize].aux as usize] {
        Cold::Warp(op) => Some(op),
        _ => None,
    }
}

fn one_lane(op: &Collective, g: &Gathered, k: usize, inactive: &mut Option<(usize, usize)>) -> Lane {
    let v = &g.sources[0];
    let each = |f: &dyn Fn(usize) -> bool| {
        (0..LANES).filter(|j| g.lanes >> j & 1 != 0).fold(0u32, |m, j| m | u32::from(f(j)) << j)
    };
    match op {
        Collective::Shfl { mode } => {
            let (source, pred) =
                shuffle::source(*mode, k as u32, g.sources[1][k] as u32, g.sources[2][k] as u32);
            if g.lanes >> source & 1 == 0 && inactive.is_none() {
                *inactive = Some((k, source as usize));
            }
            Lane { value: v[source as usize], pred }
        }
        Collective::Vote { mode } => {
            let yes = each(&|j| v[j] != 0);
            let value = match mode {
                VoteMode::All => u64::from(yes == g.lanes),
                VoteMode::Any => u64::from(yes != 0),
                VoteMode::Uni => u64::from(yes == 0 || yes == g.lanes),
                VoteMode::Ballot => u64::from(yes),
            };
            Lane { value, pred: value != 0 }
        }
        Collective::Match { mode, .. } => {
            let same = each(&|j| v[j] == v[k]);
            match mode {
                MatchMode::Any => Lane { value: u64::from(same), pred: true },
                MatchMode::All if same == g.lanes => Lane { value: u64::from(same), pred: true },
                MatchMode::All => Lane { value: 0, pred: false },
            }
        }
        Collective::Redux { op, ty } => {
            let lanes = (0..LANES).filter(|j| g.lanes >> j & 1 != 0).map(|j| v[j]);
            let fold = |f: &dyn Fn(u64, u64) -> u64| lanes.clone().reduce(f).unwrap_or(0);
            let by_value = |least: bool, ty: Ty| {
                fold(&|a, b| if (value(a, ty) < value(b, ty)) == least { a } else { b })
            };
            let value = match op {
                AtomOp::Add => fold(&|a, b| a.wrapping_add(b) & 0xffff_ffff),
                AtomOp::And => fold(&|a, b| a & b),
                AtomOp::Or => fold(&|a, b| a | b),
                AtomOp::Xor => fold(&|a, b| a ^ b),
                AtomOp::Min => by_value(true, *ty),
                AtomOp::Max => by_value(false, *ty),
                AtomOp::Cas | AtomOp::Dec | AtomOp::Exch | AtomOp::Inc => 0,
            };
            Lane { value, pred: false }
        }
        // Matrices are not handled lane by lane.
        Collective::Sync | Collective::Matrix(_) => Lane::default(),
        Collective::Elect => {
            let leader = g.lanes.trailing_zeros();
            Lane { value: u64::from(leader), pred: k as u32 == leader }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_ptx::ShflMode;

    #[test]
    fn shuffles_follow_the_manuals_pseudocode() {
        // Width 32: `c` is 31 for down, bfly and idx, 0 for up.
        assert_eq!(shuffle::source(ShflMode::Down, 5, 16, 31), (21, true));
        assert_eq!(shuffle::source(ShflMode::Down, 20, 16, 31), (20, false));
        assert_eq!(shuffle::source(ShflMode::Up, 5, 6, 0), (5, false));
        assert_eq!(shuffle::source(ShflMode::Up, 6, 6, 0), (0, true));
        assert_eq!(shuffle::source(ShflMode::Bfly, 5, 1, 31), (4, true));
        // Width 8: the segment mask is ~7 in bits 8..12.
        let c = 0x1800 | 7;
        assert_eq!(shuffle::source(ShflMode::Idx, 13, 2, c), (10, true));
        assert_eq!(shuffle::source(ShflMode::Down, 14, 4, c), (14, false));
        assert_eq!(shuffle::source(ShflMode::Up, 9, 2, 0x1800), (9, false));
    }
}
