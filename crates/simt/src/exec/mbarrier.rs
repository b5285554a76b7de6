//! `mbarrier` objects: 64 bits of shared memory that count the arrivals of a phase.
//!
//! The layout is ours (the PTX ISA keeps it opaque): arrivals still expected in the current phase in bits 0 to 19, those
//! expected in each phase in bits 20 to 39, the number of the phase above. An arrival gives the object as it was before;
//! its phase is over when the object's phase is another one. To the race detector an arrival is a release and a test an
//! acquire in the block's scope. Not here: transaction counts (`.expect_tx`), other blocks of a cluster.
//!
//! Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

use crate::code::MbarrierOp;

const COUNT: u64 = (1 << 20) - 1;
const PHASE_SHIFT: u32 = 40;

/// Arrivals that a state still waits for.
pub(crate) fn pending(state: u64) -> u64 {
    state & COUNT
}

fn expected(state: u64) -> u64 {
    state >> 20 & COUNT
}

/// What an operation with an operand gives: the object afterwards and the result.
pub(super) fn apply(op: MbarrierOp, old: u64, operand: u64) -> (u64, u64) {
    let phase = old >> PHASE_SHIFT;
    match op {
        MbarrierOp::Init => {
            let n = operand & COUNT;
            (n | n << 20, 0)
        }
        MbarrierOp::Inval => (0, 0),
        MbarrierOp::Test { parity: false } => (old, u64::from(phase != operand >> PHASE_SHIFT)),
        // The parity of a phase that is over differs from the current one's.
        MbarrierOp::Test { parity: true } => (old, u64::from(phase & 1 != operand & 1)),
        MbarrierOp::Arrive { drop } => {
            let count = operand & COUNT;
            let all = expected(old).wrapping_sub(if drop { count } else { 0 }) & COUNT;
            let left = pending(old).saturating_sub(count);
            let (left, phase) = if left == 0 { (all, phase.wrapping_add(1)) } else { (left, phase) };
            (left | all << 20 | phase << PHASE_SHIFT, old)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARRIVE: MbarrierOp = MbarrierOp::Arrive { drop: false };

    #[test]
    fn a_phase_ends_with_its_last_arrival() {
        let (b, _) = apply(MbarrierOp::Init, 0xdead, 3);
        let (b, first) = apply(ARRIVE, b, 1);
        assert_eq!(pending(first), 3);
        let wait = |b: u64, s: u64| apply(MbarrierOp::Test { parity: false }, b, s).1;
        let parity = |b: u64, p: u64| apply(MbarrierOp::Test { parity: true }, b, p).1;
        assert_eq!((wait(b, first), parity(b, 0), parity(b, 1)), (0, 0, 1));
        let (b, _) = apply(ARRIVE, b, 2);
        assert_eq!((wait(b, first), parity(b, 0), parity(b, 1)), (1, 1, 0));
        assert_eq!(pending(b), 3, "the next phase expects all of them again");
        let (b, _) = apply(MbarrierOp::Arrive { drop: true }, b, 1);
        let (b, _) = apply(ARRIVE, b, 2);
        assert_eq!(pending(b), 2, "who dropped out is not expected");
    }
}
