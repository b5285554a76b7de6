//! Percentages, distributions and bootstrap bands.

use assay_tensor::philox::Stream;
use serde::{Deserialize, Serialize};

/// `part` of `whole` in percent, to one decimal; none where `whole` is zero.
///
/// Exact halves round up, in integer arithmetic. 100.0 stands only for all and 0.0 only for none: a share that would
/// round there becomes 99.9 or 0.1, since the last missed fault is what a reader looks for.
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    if whole == 0 {
        return None;
    }
    let (p, w) = (u128::from(part), u128::from(whole));
    let mut tenths = (2000 * p + w) / (2 * w);
    if p < w {
        tenths = tenths.min(999);
    }
    if p > 0 {
        tenths = tenths.max(1);
    }
    Some(tenths as f64 / 10.0)
}

/// A 90% bootstrap band of a pooled share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Problems drawn in each resample.
    pub problems: u64,
    /// Resamples.
    pub resamples: u64,
    /// 5th percentile, in percent.
    pub low: f64,
    /// Median, in percent.
    pub median: f64,
    /// 95th percentile, in percent.
    pub high: f64,
}

/// Resamples problems with replacement and pools their counts: how much does the share depend on which problems
/// there are?
///
/// `counts` holds (part, whole) of each problem; a resample draws `draws` of them. Percentiles by nearest rank. The
/// draws come from Philox, element i of the stream (`seed`, `draws`), so the band is the same on every host. None
/// without a problem, a draw or a resample, or where every resample had a whole of zero.
pub fn bootstrap(counts: &[(u64, u64)], draws: u64, resamples: u64, seed: u64) -> Option<Band> {
    let n = counts.len() as u64;
    if n == 0 || draws == 0 {
        return None;
    }
    let stream = Stream::new(seed, draws);
    let mut shares: Vec<f64> = Vec::new();
    for r in 0..resamples {
        let (mut part, mut whole) = (0u64, 0u64);
        for d in 0..draws {
            let at = stream.below_at(r.wrapping_mul(draws).wrapping_add(d), n);
            // `below_at` is below n, which came from the slice's length.
            let (p, w) = counts[at as usize];
            part = part.saturating_add(p);
            whole = whole.saturating_add(w);
        }
        shares.extend(percent(part, whole));
    }
    shares.sort_by(f64::total_cmp);
    Some(Band {
        problems: draws,
        resamples: shares.len() as u64,
        low: nearest_rank(&shares, 5)?,
        median: nearest_rank(&shares, 50)?,
        high: nearest_rank(&shares, 95)?,
    })
}

/// The `percentile`-th percentile of sorted values: the one at rank ceil(p/100 * n). None of none.
fn nearest_rank(sorted: &[f64], percentile: usize) -> Option<f64> {
    let rank = (sorted.len() * percentile).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// How a share is spread over problems.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Problems with something to count.
    pub problems: u64,
    /// Problems where the share is zero.
    pub none: u64,
    /// Percentiles of the per-problem share in percent, by nearest rank.
    pub p25: f64,
    /// The median.
    pub median: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The largest.
    pub largest: f64,
}

/// The distribution of per-problem shares; problems with a whole of zero are left out, none if no other is left.
pub fn distribution(counts: &[(u64, u64)]) -> Option<Distribution> {
    let mut shares: Vec<f64> = counts.iter().filter_map(|&(part, whole)| percent(part, whole)).collect();
    shares.sort_by(f64::total_cmp);
    Some(Distribution {
        problems: shares.len() as u64,
        none: shares.iter().filter(|&&s| s == 0.0).count() as u64,
        p25: nearest_rank(&shares, 25)?,
        median: nearest_rank(&shares, 50)?,
        p75: nearest_rank(&shares, 75)?,
        p90: nearest_rank(&shares, 90)?,
        largest: shares.last().copied()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_documented() {
        // (part, whole, percent)
        let table = [
            (0, 7, Some(0.0)),
            (7, 7, Some(100.0)),
            (6136, 7384, Some(83.1)),
            (1, 8, Some(12.5)),
            // 0.25 and 0.35 are exact halves: up.
            (1, 400, Some(0.3)),
            (7, 2000, Some(0.4)),
            // Never all but for all, never none but for none.
            (99_999, 100_000, Some(99.9)),
            (1, 100_000, Some(0.1)),
            (u64::MAX - 1, u64::MAX, Some(99.9)),
            (0, 0, None),
        ];
        for (part, whole, want) in table {
            assert_eq!(percent(part, whole), want, "{part} of {whole}");
        }
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let counts: Vec<(u64, u64)> = (1..=10).map(|i| (i, 10)).chain([(3, 0)]).collect();
        let d = distribution(&counts).unwrap();
        assert_eq!((d.problems, d.none), (10, 0));
        assert_eq!((d.p25, d.median, d.p75, d.p90, d.largest), (30.0, 50.0, 80.0, 90.0, 100.0));
        assert_eq!(distribution(&[(0, 0)]), None);
    }

    #[test]
    fn a_band_narrows_with_problems_and_repeats_with_its_seed() {
        let counts: Vec<(u64, u64)> = (0..40).map(|i| (i % 5 * 9 + i % 3, 45 + i % 2)).collect();
        let few = bootstrap(&counts, 5, 500, 7).unwrap();
        let many = bootstrap(&counts, 40, 500, 7).unwrap();
        assert!(few.high - few.low > many.high - many.low, "{few:?} {many:?}");
        assert!(many.low <= 41.8 && many.high >= 41.8);
        assert_eq!(bootstrap(&counts, 5, 500, 7), Some(few));
        assert_ne!(bootstrap(&counts, 5, 500, 8), Some(few), "{few:?}");
    }

    #[test]
    fn alike_problems_have_a_band_of_no_width() {
        let band = bootstrap(&[(1, 4); 3], 2, 50, 1).unwrap();
        assert_eq!((band.low, band.median, band.high, band.resamples), (25.0, 25.0, 25.0, 50));
        assert_eq!(bootstrap(&[], 2, 50, 1), None);
        assert_eq!(bootstrap(&[(1, 4)], 2, 0, 1), None);
        assert_eq!(bootstrap(&[(0, 0)], 2, 10, 1), None);
    }
}
