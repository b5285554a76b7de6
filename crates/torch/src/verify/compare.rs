//! One output of ours against PyTorch's.

use std::collections::BTreeMap;

use assay_ops::Precision;
use assay_tensor::{DType, Tensor};

use super::agreement::{Scale, Tolerance};

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Elements compared.
    pub elements: u64,
    /// The largest error in epsilons times the scale, over elements that are finite on both sides.
    pub worst: f64,
    /// Explained elements by reason.
    pub explained: BTreeMap<String, u64>,
    /// The first difference that nothing explains, and how many there are.
    pub difference: Option<String>,
}

/// So many times what our own orders of summation differ from each other is within reason for PyTorch's.
const SPREADS: f64 = 4.0;

/// Why a difference within that is explained.
const UNCERTAIN: &str = "our own orders of summation differ as much from each other at that element";

/// What an element type is, where its width does not count.
fn kind(d: DType) -> &'static str {
    match d {
        DType::Bool => "bool",
        d if d.is_float() => d.name(),
        _ => "integer",
    }
}

/// What an output is compared by.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// The precision of both sides.
    pub precision: Precision,
    /// The operator's row; exact where it has none.
    pub tolerance: Option<&'a Tolerance>,
    /// The magnitudes of each element's terms, where the row is relative to those.
    pub terms: Option<&'a Vec<f64>>,
    /// The largest magnitude of the inputs, and at least one.
    pub inputs: f64,
}

/// Compares element by element. `spread` is asked for the spread of our own variants at an element that is beyond its
/// tolerance; `explain`, with our value and PyTorch's, for the reason of a difference.
pub fn compare(
    ours: &Tensor,
    torch: &Tensor,
    bound: &Bound<'_>,
    spread: &mut dyn FnMut(usize) -> f64,
    explain: &mut dyn FnMut(f64, f64) -> Option<String>,
) -> Compared {
    let Bound { precision, tolerance, terms, inputs } = *bound;
    let mut out = Compared::default();
    if ours.shape != torch.shape || kind(ours.dtype) != kind(torch.dtype) {
        out.difference = Some(format!(
            "{} {:?} instead of PyTorch's {} {:?}",
            ours.dtype, ours.shape, torch.dtype, torch.shape
        ));
        return out;
    }
    let (a, b) = (ours.to_f64_vec(), torch.to_f64_vec());
    out.elements = a.len() as u64;
    let (epsilon, smallest, epsilons) = match precision {
        Precision::F64 => (f64::EPSILON, f64::from_bits(1), tolerance.map_or(0.0, |t| t.f64)),
        Precision::F32 => {
            (f64::from(f32::EPSILON), f64::from(f32::from_bits(1)), tolerance.map_or(0.0, |t| t.f32))
        }
    };
    let exact = !ours.dtype.is_float();
    let largest = b.iter().filter(|x| x.is_finite()).fold(0.0f64, |m, x| m.max(x.abs()));
    let (mut count, mut first) = (0u64, None);
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        if x.is_finite() && y.is_finite() && !exact {
            let scale = match tolerance.map(|t| t.of) {
                None | Some(Scale::Element) => y.abs(),
                Some(Scale::Largest) => largest,
                Some(Scale::Inputs) => inputs,
                Some(Scale::Terms) => terms.and_then(|t| t.get(i)).copied().unwrap_or(y.abs()),
            };
            let off = (x - y).abs();
            // Below the smallest normal number an epsilon is the distance of neighbours.
            let units = off / (epsilon * scale).max(smallest);
            if units <= epsilons {
                out.worst = out.worst.max(units);
                continue;
            }
            if off <= SPREADS * spread(i) {
                *out.explained.entry(UNCERTAIN.to_owned()).or_default() += 1;
                continue;
            }
        }
        match explain(x, y) {
            Some(reason) => *out.explained.entry(reason).or_default() += 1,
            None => {
                count += 1;
                if first.is_none() {
                    let units = (x - y).abs() / (epsilon * y.abs()).max(smallest);
                    first = Some(format!(
                        "element {i} is {x:e} instead of {y:e} ({units:.3e} epsilons of it, largest {largest:e})"
                    ));
                }
            }
        }
    }
    out.difference = first.map(|f| if count == 1 { f } else { format!("{f}, and {} more", count - 1) });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(a: &[f64], b: &[f64], epsilons: f64, of: Scale) -> Compared {
        let t = |v: &[f64]| Tensor::from_f64(&[v.len() as u64], v).unwrap();
        let row = Tolerance {
            operators: vec![],
            program: String::new(),
            f64: epsilons,
            f32: epsilons,
            of,
            reason: String::new(),
        };
        let bound = Bound { precision: Precision::F64, tolerance: Some(&row), terms: None, inputs: 1.0 };
        compare(&t(a), &t(b), &bound, &mut |_| 0.0, &mut |x, _| x.is_infinite().then(|| "because".to_owned()))
    }

    #[test]
    fn what_is_beyond_the_tolerance_is_a_difference_and_what_is_within_is_measured() {
        let e = f64::EPSILON;
        assert!(against(&[1.0 + 2.0 * e], &[1.0], 2.0, Scale::Element).difference.is_none());
        assert_eq!(against(&[1.0 + 2.0 * e], &[1.0], 4.0, Scale::Element).worst, 2.0);
        assert!(against(&[1.0 + 3.0 * e], &[1.0], 2.0, Scale::Element).difference.is_some());
        assert!(against(&[3.0 * e, 2.0], &[0.0, 2.0], 2.0, Scale::Largest).difference.is_none());
        assert!(against(&[3.0 * e, 2.0], &[0.0, 2.0], 2.0, Scale::Element).difference.is_some());
        assert!(against(&[f64::NAN], &[f64::NAN], 0.0, Scale::Element).difference.is_none());
        assert!(against(&[f64::NAN], &[1.0], 1e9, Scale::Element).difference.is_some());
    }

    #[test]
    fn explained_elements_are_counted_and_another_shape_is_a_difference() {
        let c = against(&[f64::INFINITY, 1.0], &[f64::NAN, 2.0], 1.0, Scale::Element);
        assert_eq!(c.explained.get("because"), Some(&1));
        assert!(c.difference.unwrap().starts_with("element 1"));
        assert!(against(&[1.0], &[1.0, 1.0], 1.0, Scale::Element).difference.unwrap().contains("[1]"));
    }
}
