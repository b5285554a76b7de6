//! What threads know of each other's progress.

use std::collections::BTreeMap;
use std::rc::Rc;

/// A point in a thread's run: the epoch of its block, then its own releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Clock {
    pub(crate) epoch: u32,
    pub(crate) sub: u32,
}

/// Everything that is ordered before some point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Know {
    /// Threads (numbered through the grid): everything up to and with this clock.
    pub(crate) threads: BTreeMap<u64, Clock>,
    /// Blocks: everything before this epoch.
    pub(crate) blocks: BTreeMap<u64, u32>,
}

impl Know {
    /// Takes in `other`.
    pub(crate) fn join(&mut self, other: &Know) {
        for (t, c) in &other.threads {
            let e = self.threads.entry(*t).or_default();
            *e = (*e).max(*c);
        }
        for (b, c) in &other.blocks {
            let e = self.blocks.entry(*b).or_default();
            *e = (*e).max(*c);
        }
    }

    /// True if `clock` of `thread` in `block` is known.
    pub(crate) fn covers(&self, block: u64, thread: u64, clock: Clock) -> bool {
        self.blocks.get(&block).is_some_and(|e| clock.epoch < *e)
            || self.threads.get(&thread).is_some_and(|c| clock <= *c)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.blocks.is_empty()
    }
}

/// Shared knowledge, joined by copying only where both sides have something of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Option<Rc<Know>>);

impl Shared {
    pub(crate) fn new(k: Know) -> Shared {
        Shared((!k.is_empty()).then(|| Rc::new(k)))
    }

    pub(crate) fn get(&self) -> Option<&Know> {
        self.0.as_deref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn join(&mut self, other: &Shared) {
        let Some(theirs) = &other.0 else { return };
        match &mut self.0 {
            None => self.0 = Some(Rc::clone(theirs)),
            Some(mine) if Rc::ptr_eq(mine, theirs) => {}
            Some(mine) => Rc::make_mut(mine).join(theirs),
        }
    }

    pub(crate) fn covers(&self, block: u64, thread: u64, clock: Clock) -> bool {
        self.0.as_ref().is_some_and(|k| k.covers(block, thread, clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn know(threads: &[(u64, u32, u32)], blocks: &[(u64, u32)]) -> Know {
        Know {
            threads: threads.iter().map(|(t, epoch, sub)| (*t, Clock { epoch: *epoch, sub: *sub })).collect(),
            blocks: blocks.iter().copied().collect(),
        }
    }

    #[test]
    fn joining_takes_the_later_of_both() {
        let mut a = know(&[(1, 0, 2), (2, 1, 0)], &[(0, 3)]);
        a.join(&know(&[(1, 0, 1), (2, 1, 4), (3, 0, 0)], &[(0, 1), (7, 2)]));
        assert_eq!(a, know(&[(1, 0, 2), (2, 1, 4), (3, 0, 0)], &[(0, 3), (7, 2)]));
        assert!(a.covers(9, 1, Clock { epoch: 0, sub: 2 }) && !a.covers(9, 1, Clock { epoch: 0, sub: 3 }));
        assert!(a.covers(7, 99, Clock { epoch: 1, sub: 50 }) && !a.covers(7, 99, Clock { epoch: 2, sub: 0 }));
    }

    #[test]
    fn shared_knowledge_is_not_changed_under_its_other_owners() {
        let mut a = Shared::new(know(&[(1, 0, 0)], &[]));
        let b = a.clone();
        a.join(&Shared::new(know(&[(2, 0, 0)], &[])));
        assert_eq!(b.get().map(|k| k.threads.len()), Some(1));
        assert_eq!(a.get().map(|k| k.threads.len()), Some(2));
    }
}
