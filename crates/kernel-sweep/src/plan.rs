//! Series and sizes, as the boundary paper has them: a small point, five consecutive sizes around each boundary, an even
//! grid between.

use assay_sweep::SweepError;
use assay_sweep::condition::parse_count;
use assay_tensor::DType;

use crate::work::{Family, Op};

/// Candidate boundaries of a crossing tensor.
pub const BOUNDARIES: [&str; 3] = ["2^31", "2^32", "2^32 bytes"];

/// Elements of the crossing tensor at the small point.
const SMALL: u64 = 1 << 24;
/// Elements of the largest tensor of a calibration, in which every block runs.
const CALIBRATION: u64 = 1 << 18;
/// Sizes on either side of a boundary.
const AROUND: u64 = 2;
/// Bytes of the largest tensor that a sparse buffer may have.
const MOST_BYTES: u64 = 1 << 39;

/// The series of an operation: each tensor that can be the crossing one, at each shape. `shapes` replaces the usual fixed
/// extents: `M,K,N` of a bmm, `C` of a transpose, `D` of a gather.
///
/// # Errors
/// Shapes that are none.
pub fn families(
    op: Op,
    dtype: DType,
    index_dtype: DType,
    shapes: &[String],
) -> Result<Vec<Family>, SweepError> {
    let of = |cross: &'static str, fixed: &[u64], grows: usize| Family {
        op,
        dtype,
        index_dtype,
        cross,
        fixed: fixed.to_vec(),
        grows,
    };
    let given: Vec<Vec<u64>> = shapes
        .iter()
        .map(|text| {
            let numbers: Option<Vec<u64>> = text.split(',').map(parse_count).collect();
            numbers
                .filter(|n| n.iter().all(|&x| x > 0 && x < 1 << 24))
                .ok_or_else(|| SweepError::bad(format!("`{text}` is no shape")))
        })
        .collect::<Result<_, _>>()?;
    let wants = |n: usize, what: &str| match given.iter().find(|g| g.len() != n) {
        Some(_) => Err(SweepError::bad(format!("a shape of a {} is {what}", op.name()))),
        None => Ok(()),
    };
    Ok(match op {
        Op::Copy => {
            if !given.is_empty() {
                return Err(SweepError::bad("a copy has no shape: its extent N grows"));
            }
            vec![of("x", &[0], 0)]
        }
        Op::Transpose => {
            wants(1, "the number of columns, `C`")?;
            let all = if given.is_empty() { vec![vec![4096]] } else { given };
            all.iter().map(|g| of("x", &[0, g[0]], 0)).collect()
        }
        Op::Gather => {
            wants(1, "the length of a row, `D`")?;
            let all = if given.is_empty() { vec![vec![1024]] } else { given };
            // So many rows asked for of a table that grows, and of a table so long for an output that grows.
            all.iter().flat_map(|g| [of("x", &[0, 4096, g[0]], 0), of("out", &[4096, 0, g[0]], 1)]).collect()
        }
        Op::Bmm => {
            wants(3, "`M,K,N`")?;
            let usual = [[512, 32, 512], [2048, 128, 16], [16, 128, 2048]];
            let all = if given.is_empty() { usual.map(|s| s.to_vec()).to_vec() } else { given };
            all.iter()
                .map(|g| {
                    let (m, k, n) = (g[0], g[1], g[2]);
                    let largest = (m * n).max(m * k).max(k * n);
                    let cross = if m * n == largest {
                        "out"
                    } else if m * k == largest {
                        "a"
                    } else {
                        "b"
                    };
                    of(cross, &[0, m, k, n], 0)
                })
                .collect()
        }
    })
}

/// The boundaries in elements of `dtype`, ascending, equal ones once.
///
/// # Errors
/// A boundary that is no count.
pub fn boundaries(texts: &[String], dtype: DType) -> Result<Vec<u64>, SweepError> {
    let usual: Vec<String> = BOUNDARIES.map(str::to_owned).to_vec();
    let texts = if texts.is_empty() { &usual } else { texts };
    let mut out = Vec::new();
    for text in texts {
        let bad = || SweepError::bad(format!("`{text}` is not a boundary; write 2^31 or `2^32 bytes`"));
        let (number, bytes) = match text.trim().strip_suffix("bytes") {
            Some(n) => (n, true),
            None => (text.trim().strip_suffix("elements").unwrap_or(text), false),
        };
        let n = parse_count(number).filter(|&n| n > 0).ok_or_else(bad)?;
        let n = if bytes { n / dtype.size_bytes() } else { n };
        if n.saturating_mul(dtype.size_bytes()) > MOST_BYTES / 2 {
            return Err(SweepError::Unsupported(format!(
                "a tensor of {n} elements is larger than a sparse buffer"
            )));
        }
        out.push(n);
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// The size of a calibration: every block runs.
pub fn calibration_size(family: &Family) -> u64 {
    let largest = family.at(1).tensors().iter().map(|t| t.elements()).max().unwrap_or(1);
    if family.op == Op::Copy {
        // Not a multiple of any block.
        return CALIBRATION + 3;
    }
    (CALIBRATION / largest.max(1)).clamp(2, CALIBRATION)
}

/// The sizes that a series visits first, ascending.
pub fn sizes(family: &Family, boundaries: &[u64]) -> Vec<u64> {
    let per = family.per_step();
    let small = (SMALL / per).max(2);
    let mut anchors = vec![small];
    let mut out = vec![small];
    for b in boundaries.iter().map(|b| b / per).filter(|&b| b > small) {
        out.extend(b.saturating_sub(AROUND).max(small)..=b.saturating_add(AROUND));
        anchors.push(b);
    }
    for pair in anchors.windows(2) {
        out.push(pair[0] + (pair[1] - pair[0]) / 2);
    }
    out.sort_unstable();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_visits_five_sizes_around_each_boundary_and_one_between() {
        let f = &families(Op::Bmm, DType::F32, DType::I64, &[]).unwrap()[0];
        assert_eq!((f.per_step(), f.shape_id().as_str()), (1 << 18, "out M=512,K=32,N=512"));
        let b = boundaries(&[], DType::F32).unwrap();
        assert_eq!(b, [1 << 30, 1 << 31, 1 << 32]);
        let s = sizes(f, &b);
        for at in [4096u64, 8192, 16384] {
            assert!((at - 2..=at + 2).all(|n| s.contains(&n)), "{at}");
        }
        assert!(s.contains(&64) && s.contains(&6144) && s.contains(&12288) && s.len() == 19, "{s:?}");
        assert_eq!(boundaries(&[], DType::F16).unwrap(), [1 << 31, 1 << 32]);
    }

    #[test]
    fn the_largest_tensor_of_a_shape_crosses() {
        let cross =
            |shape: &str| families(Op::Bmm, DType::F16, DType::I64, &[shape.into()]).unwrap()[0].cross;
        assert_eq!([cross("64,8,64"), cross("64,64,8"), cross("8,64,64")], ["out", "a", "b"]);
        assert!(families(Op::Bmm, DType::F32, DType::I64, &["5".into()]).is_err());
        assert!(families(Op::Copy, DType::F32, DType::I64, &["5".into()]).is_err());
        assert!(boundaries(&["2^60".into()], DType::F32).is_err());
    }
}
