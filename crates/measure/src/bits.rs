//! Sets of small indices, one bit each.

/// A set of indices below a fixed length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// The empty set of indices below `len`.
    pub(crate) fn empty(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    /// The set of these indices, all below `len`.
    pub(crate) fn of(len: usize, indices: impl IntoIterator<Item = usize>) -> Bits {
        let mut set = Bits::empty(len);
        for i in indices {
            set.insert(i);
        }
        set
    }

    pub(crate) fn insert(&mut self, i: usize) {
        if let Some(word) = self.0.get_mut(i / 64) {
            *word |= 1 << (i % 64);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&w| w == 0)
    }

    /// Members of both.
    pub(crate) fn common(&self, other: &Bits) -> u64 {
        self.0.iter().zip(&other.0).map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }

    /// Takes the members of `other` out.
    pub(crate) fn remove_all(&mut self, other: &Bits) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    /// Puts the members of `other` in.
    pub(crate) fn insert_all(&mut self, other: &Bits) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    /// Is every member a member of `other`?
    pub(crate) fn within(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_over_a_word_boundary_behave() {
        let a = Bits::of(130, [0, 63, 64, 129]);
        let mut b = Bits::of(130, [63, 129]);
        assert_eq!((a.len(), b.len(), a.common(&b)), (4, 2, 2));
        assert!(b.within(&a) && !a.within(&b));
        b.remove_all(&a);
        assert!(b.is_empty());
        b.insert_all(&a);
        assert_eq!(b, a);
    }
}
