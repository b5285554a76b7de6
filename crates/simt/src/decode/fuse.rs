//! Finds chains, see [`crate::handlers::chain`].

use std::collections::BTreeMap;

use crate::handlers::chain::ChainOp;

/// What the search needs to know of a decoded instruction. Slots are offsets in the frame, registers are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// `ld.shared` of a word into a register.
    Load { reg: u32, base: u32, offset: i64, class: u32, cached: bool },
    /// `fma.rn.f32`: destination, two factors, addend.
    Fma { reg: u32, dest: u32, factors: [u32; 2], addend: u32 },
    /// Anything else.
    Other,
}

/// A chain at a place in the list.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) bases: (u32, u32),
    pub(crate) classes: (u32, u32),
    pub(crate) addend: u32,
    pub(crate) dest: u32,
    pub(crate) op: ChainOp,
}

/// One (load, load, multiply-add).
struct Step {
    a: (u32, i64, u32, bool),
    b: (u32, i64, u32, bool),
    addend: u32,
    dest: u32,
    reg: u32,
}

/// Longest chain and largest offset.
const MAX_STEPS: usize = 256;
const MAX_OFFSET: i64 = 1 << 20;

/// All chains of at least two steps: index of the first instruction to chain. `spans` are the intervals in which
/// registers are live, by instructions of the text; `origin` gives those; nothing but a chain's first instruction is
/// jumped to (`leader`, by instruction of the text).
pub(crate) fn chains(
    tags: &[Tag],
    origin: &[u32],
    spans: &[Option<(usize, usize)>],
    leader: &[bool],
) -> BTreeMap<usize, Chain> {
    let step = |k: usize| -> Option<Step> {
        let [
            Tag::Load { reg: r, base, offset, class, cached },
            Tag::Load { reg: s, base: base2, offset: offset2, class: class2, cached: cached2 },
            Tag::Fma { reg, dest, factors, addend },
        ] = *tags.get(k..k + 3)?
        else {
            return None;
        };
        // The loaded values are used here and nowhere else.
        let only_here =
            |r: u32, from: usize| spans[r as usize] == Some((origin[from] as usize, origin[k + 2] as usize));
        let fits = factors == [r, s] || factors == [s, r];
        let plain = |o: i64| (0..MAX_OFFSET).contains(&o) && o % 4 == 0;
        let whole = (k + 1..k + 3).all(|i| !leader[origin[i] as usize]);
        (fits && r != s && only_here(r, k) && only_here(s, k + 1) && plain(offset) && plain(offset2) && whole)
            .then_some(Step {
                a: (base, offset, class, cached),
                b: (base2, offset2, class2, cached2),
                addend,
                dest,
                reg,
            })
    };
    let mut out = BTreeMap::new();
    let mut k = 0;
    while k < tags.len() {
        let Some(first) = step(k) else {
            k += 1;
            continue;
        };
        let (a, b) = (first.a, first.b);
        let mut steps = vec![(a.1 as u32, b.1 as u32, false)];
        let (mut dest, mut reg) = (first.dest, first.reg);
        let mut at = k + 3;
        while steps.len() < MAX_STEPS
            && let Some(next) = step(at)
        {
            let offsets = if (next.a.0, next.b.0) == (a.0, b.0) {
                (next.a.1 as u32, next.b.1 as u32, false)
            } else if (next.b.0, next.a.0) == (a.0, b.0) {
                (next.b.1 as u32, next.a.1 as u32, true)
            } else {
                break;
            };
            // The sum so far goes into the next step and is dead then.
            let dies =
                next.dest == dest || spans[reg as usize].is_some_and(|s| s.1 == origin[at + 2] as usize);
            if next.addend != dest || !dies || leader[origin[at] as usize] {
                break;
            }
            steps.push(offsets);
            (dest, reg) = (next.dest, next.reg);
            at += 3;
        }
        if steps.len() >= 2 {
            let most = steps.iter().fold((0, 0), |m, s| (m.0.max(s.0), m.1.max(s.1)));
            let sums = (first.addend, dest);
            let op = ChainOp { steps, most, cached: (a.3, b.3), len: (at - k) as u32, sums };
            out.insert(k, Chain { bases: (a.0, b.0), classes: (a.2, b.2), addend: first.addend, dest, op });
            k = at;
        } else {
            k += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(reg: u32, base: u32, offset: i64) -> Tag {
        Tag::Load { reg, base, offset, class: base + 1, cached: false }
    }

    fn fma(reg: u32, factors: [u32; 2], addend: u32) -> Tag {
        Tag::Fma { reg, dest: reg * 10, factors, addend }
    }

    #[test]
    fn a_run_of_products_is_one_chain_and_ends_where_the_sum_is_needed() {
        let tags = [
            load(1, 500, 0),
            load(2, 600, 64),
            fma(3, [2, 1], 90),
            load(4, 600, 128),
            load(5, 500, 4),
            fma(6, [4, 5], 30),
            load(7, 500, 8),
            load(8, 600, 192),
            fma(9, [7, 8], 60),
        ];
        let origin: Vec<u32> = (0..9).collect();
        let span = |a, b| Some((a, b));
        let mut spans = vec![
            None,
            span(0, 2),
            span(1, 2),
            span(2, 5),
            span(3, 5),
            span(4, 5),
            span(5, 8),
            span(6, 8),
            span(7, 8),
            span(8, 9),
        ];
        let leader = vec![false; 10];
        let found = chains(&tags, &origin, &spans, &leader);
        let c = &found[&0];
        assert_eq!(
            (found.len(), &c.op.steps[..], c.addend, c.dest),
            (1, &[(0, 64, false), (4, 128, true), (8, 192, false)][..], 90, 90)
        );
        assert_eq!((c.op.most, c.op.len), ((8, 192), 9));
        // The second sum is read later: the chain stops before the third step.
        spans[6] = span(5, 12);
        assert_eq!(chains(&tags, &origin, &spans, &leader)[&0].op.steps.len(), 2);
        // A jump to the fourth instruction: nothing of two steps is left in front of it.
        let mut to_fourth = leader.clone();
        to_fourth[3] = true;
        spans[6] = span(5, 8);
        assert_eq!(chains(&tags, &origin, &spans, &to_fourth).into_keys().collect::<Vec<_>>(), [3]);
    }
}
