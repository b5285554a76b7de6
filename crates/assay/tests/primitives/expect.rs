//! The cases: what each kernel gives, in plain code.

use assay_simt::FindingKind;

use crate::Case;

/// `Compose` of `block.cu`: affine maps modulo 2^16, first `f`, then `g`.
fn compose(f: i32, g: i32) -> i32 {
    let (a, b) = (f as u32 & 0xffff, f as u32 >> 16);
    let (c, d) = (g as u32 & 0xffff, g as u32 >> 16);
    ((a.wrapping_mul(c) & 0xffff) | (b.wrapping_mul(c).wrapping_add(d) << 16)) as i32
}

fn sum(x: &[i32]) -> i32 {
    x.iter().sum()
}

fn max(x: &[i32]) -> i32 {
    x.iter().copied().max().unwrap_or(0)
}

fn sorted(x: &[i32]) -> Vec<i32> {
    let mut out = x.to_vec();
    out.sort_unstable();
    out
}

/// Sums of all before each element.
fn before(x: &[i32]) -> Vec<i32> {
    let mut total = 0;
    x.iter()
        .map(|v| {
            total += v;
            total - v
        })
        .collect()
}

fn reduce(algorithm: &str, b: usize, i: usize) -> Case {
    Case::new(format!("reduce<cub::{algorithm},{b},{i}>"), b, i, move |x| {
        let firsts: Vec<i32> = x.iter().copied().step_by(i).collect();
        let mut y = vec![0; x.len()];
        (y[0], y[1], y[2]) = (sum(&firsts), sum(&firsts[..b - 5]), max(x));
        y
    })
    .twice()
}

fn exclusive_sum(algorithm: &str, b: usize, i: usize) -> Case {
    Case::new(format!("exclusive_sum<cub::{algorithm},{b},{i}>"), b, i, |x| {
        before(x).iter().map(|v| v + sum(x)).collect()
    })
}

fn compose_tiles(algorithm: &str, b: usize) -> Case {
    Case::new(format!("compose_tiles<cub::{algorithm},{b}>"), b, 2, |x| {
        x.iter()
            .scan(1, |f, g| {
                *f = compose(*f, *g);
                Some(*f)
            })
            .collect()
    })
}

fn radix_sort(b: usize, i: usize, bits: usize) -> Case {
    Case::new(format!("radix_sort<{b},{i},{bits}>"), b, i, sorted)
}

fn radix_sort_pairs(b: usize, i: usize) -> Case {
    Case::new(format!("radix_sort_pairs<{b},{i}>"), b, i, |x| {
        let mut places: Vec<i32> = (0..x.len() as i32).collect();
        places.sort_by_key(|k| std::cmp::Reverse(x[*k as usize] & 0xff));
        places
    })
}

fn exchange(b: usize, i: usize, sliced: bool) -> Case {
    Case::new(format!("exchange<{b},{i},{sliced}>"), b, i, |x| x.iter().rev().copied().collect()).twice()
}

fn load_store(load: &str, store: &str, b: usize, i: usize) -> Case {
    Case::new(format!("load_store<cub::BLOCK_LOAD_{load},cub::BLOCK_STORE_{store},{b},{i}>"), b, i, |x| {
        x[..x.len() - 7].to_vec()
    })
}

fn histogram(algorithm: &str, b: usize, i: usize, bins: usize) -> Case {
    Case::new(format!("histogram<cub::BLOCK_HISTO_{algorithm},{b},{i},{bins}>"), b, i, move |x| {
        let mut y = vec![0; x.len()];
        x.iter().for_each(|v| y[*v as usize % bins] += 2);
        y
    })
}

fn discontinuity(b: usize, i: usize) -> Case {
    Case::new(format!("discontinuity<{b},{i}>"), b, i, |x| {
        let differs = |a: Option<&i32>, b: Option<&i32>| i32::from(a != b);
        (0..x.len())
            .map(|k| {
                let head = differs(k.checked_sub(1).and_then(|j| x.get(j)), x.get(k));
                head | differs(x.get(k), x.get(k + 1)) << 1
            })
            .collect()
    })
    .twice()
}

fn differences(b: usize, i: usize) -> Case {
    Case::new(format!("differences<{b},{i}>"), b, i, |x| {
        let left = |k: usize| if k == 0 { x[0] } else { x[k] - x[k - 1] };
        let right = |k: usize| x.get(k + 1).map_or(x[k], |n| x[k] - n);
        (0..x.len()).map(|k| left(k) + right(k)).collect()
    })
    .twice()
}

fn shuffle(b: usize) -> Case {
    Case::new(format!("shuffle<{b}>"), b, 1, move |x| {
        (0..b).map(|k| x[k.saturating_sub(1)] + x[(k + b - 1) % b]).collect()
    })
    .twice()
}

fn run_lengths(b: usize) -> Case {
    Case::new(format!("run_lengths<{b}>"), b, 1, move |x| {
        let mut y: Vec<i32> = x.iter().flat_map(|v| std::iter::repeat_n(*v, 1 + *v as usize % 4)).collect();
        y.resize(4 * b, 0);
        y
    })
}

fn merge_sort(b: usize, i: usize) -> Case {
    // The merge reads one element past each list and drops it: see the header's `serial_merge`.
    Case::new(format!("merge_sort<{b},{i}>"), b, i, sorted).known(&[FindingKind::UninitReadShared])
}

/// Every algorithm, block sizes that are and are not multiples of a warp.
pub fn block() -> Vec<Case> {
    let mut out = Vec::new();
    for algorithm in
        ["BLOCK_REDUCE_RAKING", "BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY", "BLOCK_REDUCE_WARP_REDUCTIONS"]
    {
        out.push(reduce(algorithm, 128, 3));
        out.push(reduce(algorithm, 100, 1));
    }
    out.push(Case::new("reduce_in_order<96>".into(), 96, 1, |x| {
        let mut y = vec![0; x.len()];
        y[0] = x[1..].iter().fold(x[0], |f, g| compose(f, *g));
        y
    }));
    for algorithm in ["BLOCK_SCAN_RAKING", "BLOCK_SCAN_RAKING_MEMOIZE", "BLOCK_SCAN_WARP_SCANS"] {
        out.push(exclusive_sum(algorithm, 96, 3));
        out.push(compose_tiles(algorithm, 128));
    }
    out.push(exclusive_sum("BLOCK_SCAN_RAKING", 72, 2));
    out.extend([radix_sort(128, 3, 4), radix_sort(64, 2, 6), radix_sort_pairs(96, 2)]);
    out.extend([exchange(64, 3, false), exchange(96, 4, true)]);
    for algorithm in ["DIRECT", "STRIPED", "TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED"] {
        out.push(load_store(algorithm, algorithm, 64, 3));
    }
    out.push(load_store("VECTORIZE", "VECTORIZE", 64, 4));
    out.extend([histogram("SORT", 64, 3, 32), histogram("ATOMIC", 64, 3, 32)]);
    out.extend([discontinuity(64, 3), differences(96, 2), shuffle(96), run_lengths(64)]);
    out.push(merge_sort(64, 3));
    out
}

/// A smaller set, each a primitive whose barriers matter.
pub fn block_mutants() -> Vec<Case> {
    vec![
        reduce("BLOCK_REDUCE_RAKING", 128, 3),
        reduce("BLOCK_REDUCE_WARP_REDUCTIONS", 128, 3),
        exclusive_sum("BLOCK_SCAN_RAKING", 96, 3),
        compose_tiles("BLOCK_SCAN_WARP_SCANS", 128),
        radix_sort(64, 2, 4),
        exchange(64, 3, false),
        histogram("ATOMIC", 64, 3, 32),
        discontinuity(64, 3),
        shuffle(96),
    ]
}

fn warp_reduce(w: usize) -> Case {
    Case::new(format!("reduce<64,{w}>"), 64, 1, move |x| {
        let first = |part: &[i32]| sum(part) + sum(&part[..if w > 3 { w - 3 } else { w }]);
        x.chunks(w).flat_map(|p| std::iter::once(first(p)).chain(std::iter::repeat_n(0, w - 1))).collect()
    })
    .without_barriers()
}

fn warp_scan(w: usize) -> Case {
    Case::new(format!("scan<64,{w}>"), 64, 1, move |x| {
        x.chunks(w).flat_map(|p| before(p).into_iter().map(|v| v + sum(p)).collect::<Vec<_>>()).collect()
    })
    .without_barriers()
}

fn warp_sort(w: usize, i: usize) -> Case {
    Case::new(format!("merge_sort<64,{w},{i}>"), 64, i, move |x| x.chunks(w * i).flat_map(sorted).collect())
        .known(&[FindingKind::UninitReadShared])
}

fn warp_exchange(w: usize, i: usize) -> Case {
    Case::new(format!("exchange<64,{w},{i}>"), 64, i, <[i32]>::to_vec)
}

/// Logical warps of all sizes.
pub fn warp() -> Vec<Case> {
    let mut out: Vec<Case> = [32, 16, 8, 2].into_iter().map(warp_reduce).collect();
    out.push(
        Case::new("segments<64>".into(), 64, 1, |x| {
            x.chunks(32)
                .flat_map(|p| {
                    let head = |k: usize| k == 0 || p[k] % 5 == 0;
                    let end = |k: usize| (k + 1..p.len()).find(|j| head(*j)).unwrap_or(p.len());
                    (0..p.len())
                        .map(move |k| if head(k) { max(&p[k..end(k)]) } else { 0 })
                        .collect::<Vec<_>>()
                })
                .collect()
        })
        .without_barriers(),
    );
    out.extend([32, 16, 4].into_iter().map(warp_scan));
    out.extend([warp_sort(32, 3), warp_sort(16, 2), warp_exchange(32, 4), warp_exchange(16, 3)]);
    out
}

/// What each part of `w` threads gives, one after the other.
fn tiles(kernel: &str, w: usize, f: impl Fn(&[i32], usize) -> i32 + Copy + 'static) -> Case {
    Case::new(kernel.to_owned(), 128, 1, move |x| {
        x.chunks(w).flat_map(|p| (0..p.len()).map(move |k| f(p, k)).collect::<Vec<_>>()).collect()
    })
}

pub fn cooperative() -> Vec<Case> {
    let mut out = Vec::new();
    for w in [32, 8, 2] {
        out.push(tiles(&format!("tiled_reduce<{w}>"), w, |p, _| sum(p) + max(p)).without_barriers());
    }
    for w in [32, 16] {
        out.push(tiles(&format!("tiled_scan<{w}>"), w, |p, k| 2 * sum(&p[..k]) + p[k]).without_barriers());
        out.push(tiles(&format!("tiled_shared<{w}>"), w, |p, _| sum(p)));
    }
    out.push(
        tiles("coalesced", 32, |p, k| {
            let odd: Vec<i32> = p.iter().copied().filter(|v| v % 2 == 1).collect();
            let rank = p[..k].iter().filter(|v| **v % 2 == 1).count() as i32;
            if p[k] % 2 == 1 { sum(&odd) * 10_000 + odd.len() as i32 * 100 + rank } else { 0 }
        })
        .without_barriers(),
    );
    let like =
        |p: &[i32], k: usize, m: i32| p.iter().copied().filter(|v| v % m == p[k] % m).collect::<Vec<_>>();
    out.push(tiles("labeled", 32, move |p, k| sum(&like(p, k, 5))).without_barriers());
    out.push(
        tiles("binary", 32, move |p, k| {
            let group = like(p, k, 2);
            max(&group) + group[group.len() - 1]
        })
        .without_barriers(),
    );
    out.push(tiles("block_sync", 128, |p, k| p[p.len() - 1 - k]));
    out.push(tiles("block_arrive_wait", 128, |p, k| p[p.len() - 1 - k] + p[k]).without_barriers());
    out.push(
        tiles("tile_votes", 16, move |p, k| {
            let odd = p.iter().filter(|v| **v % 2 == 1).count() as i32;
            odd * 1000 + like(p, k, 3).len() as i32 * 10 + i32::from(p.contains(&0)) + 2
        })
        .without_barriers(),
    );
    out.push(tiles("invoke_one", 128, |p, k| p[k] - p[0]));
    out
}
