//! Comparisons: a table of pairs with their answers, and the fast loop against the definition.

use assay_judge::{
    CompareOptions, Comparison, JudgeError, allclose, compare, compare_slowly, count_mismatches,
    first_mismatch, scaled_threshold,
};
use assay_tensor::{DType, Tensor};
use proptest::prelude::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn f64s(values: &[f64]) -> Tensor {
    Tensor::from_f64(&[values.len() as u64], values).unwrap()
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_f32(&[values.len() as u64], values).unwrap()
}

fn official() -> CompareOptions {
    CompareOptions::default()
}

#[test]
fn pairs_have_the_threshold_that_the_formula_gives() {
    // (out, reference, nan_ok, threshold, non-finite mismatch)
    let table = [
        (1.0, 1.0, false, 0.0, false),
        (1.5, 1.0, false, 0.25, false),
        (0.0, 3.0, false, 0.75, false),
        (-1.0, 1.0, false, 1.0, false),
        (0.0, -0.0, false, 0.0, false),
        (INF, INF, false, 0.0, false),
        (-INF, -INF, false, 0.0, false),
        (INF, -INF, false, INF, true),
        (INF, 1.0, false, INF, true),
        (1.0, INF, false, INF, true),
        (NAN, NAN, false, INF, true),
        (NAN, NAN, true, 0.0, false),
        (NAN, 1.0, true, INF, true),
        (1.0, NAN, true, INF, true),
        (NAN, INF, true, INF, true),
        // The difference overflows, the ratio does not.
        (f64::MAX, -f64::MAX, false, 2.0, false),
    ];
    for (out, reference, nan_ok, threshold, non_finite) in table {
        let options = CompareOptions { nan_ok, exact_integers: false };
        let c = compare(&f64s(&[7.0, out]), &f64s(&[7.0, reference]), &options).unwrap();
        assert_eq!(c.threshold, threshold, "{out} against {reference}");
        assert_eq!(c.non_finite, u64::from(non_finite), "{out} against {reference}");
        assert_eq!(c.index, (threshold > 0.0).then_some(1), "{out} against {reference}");
        assert_eq!(c.elements, 2);
        assert_eq!(c.passes(1e-2), threshold <= 1e-2);
    }
}

#[test]
fn the_three_errors_have_indices_of_their_own() {
    // d = 10, 1, 0.5; d/(1+r) = 10/1001, 1/11, 0.5/1.25; d/r = 0.01, 0.1, 2
    let c = compare(&f32s(&[1010.0, 11.0, 0.75]), &f32s(&[1000.0, 10.0, 0.25]), &official()).unwrap();
    assert_eq!((c.max_abs, c.max_abs_index), (10.0, Some(0)));
    assert_eq!((c.threshold, c.index), (0.4, Some(2)));
    assert_eq!((c.max_rel, c.max_rel_index), (2.0, Some(2)));
}

#[test]
fn a_reference_of_zero_has_no_relative_error() {
    let c = compare(&f32s(&[5.0, 1.5]), &f32s(&[0.0, 1.0]), &official()).unwrap();
    assert_eq!((c.threshold, c.max_rel, c.max_rel_index), (5.0, 0.5, Some(1)));
}

#[test]
fn integers_are_judged_by_formula_officially_and_exactly_in_truth() {
    let (out, reference) =
        (Tensor::from_i64(&[2], &[1005, 0]).unwrap(), Tensor::from_i64(&[2], &[1000, 0]).unwrap());
    let exact = CompareOptions { nan_ok: false, exact_integers: true };
    let by_formula = compare(&out, &reference, &official()).unwrap();
    assert_eq!(by_formula.threshold, 5.0 / 1001.0);
    assert!(by_formula.passes(1e-2));
    let exactly = compare(&out, &reference, &exact).unwrap();
    assert_eq!((exactly.threshold, exactly.index, exactly.max_abs), (INF, Some(0), 5.0));
    assert!(allclose(&out, &reference, 1e-2, 1e-2, &official()).unwrap());
    assert!(!allclose(&out, &reference, 1e-2, 1e-2, &exact).unwrap());
    // Against float64, as a float64 reference of an argmax would be.
    let widened = f64s(&[1000.0, 0.0]);
    assert_eq!(compare(&out, &widened, &official()).unwrap().threshold, 5.0 / 1001.0);
    assert_eq!(compare(&out, &widened, &exact).unwrap().threshold, INF);
    assert_eq!(compare(&out, &out, &exact).unwrap(), Comparison::equal(2));
}

#[test]
fn integers_beyond_two_to_the_53_are_told_apart() {
    let big = 1i64 << 53;
    let c = compare(
        &Tensor::from_i64(&[1], &[big + 1]).unwrap(),
        &Tensor::from_i64(&[1], &[big]).unwrap(),
        &CompareOptions { nan_ok: false, exact_integers: true },
    )
    .unwrap();
    assert_eq!((c.max_abs, c.threshold), (1.0, INF));
    let c = compare(
        &Tensor::from_i64(&[1], &[i64::MIN]).unwrap(),
        &Tensor::from_i64(&[1], &[i64::MAX]).unwrap(),
        &official(),
    )
    .unwrap();
    assert!(c.threshold > 1.99 && c.threshold < 2.01);
}

#[test]
fn bools_differ_by_one() {
    let t = |v: &[u8]| Tensor::from_bytes(DType::Bool, &[2], v.to_vec()).unwrap();
    let c = compare(&t(&[1, 0]), &t(&[1, 1]), &official()).unwrap();
    assert_eq!((c.threshold, c.index), (0.5, Some(1)));
    // Any byte but zero is true.
    assert_eq!(compare(&t(&[2, 0]), &t(&[1, 0]), &official()).unwrap().threshold, 0.0);
}

#[test]
fn half_precision_outputs_are_compared_with_wider_references() {
    let out = Tensor::from_f64_values(DType::F16, &[2], &[1.0, 2.0]).unwrap();
    let c = compare(&out, &f32s(&[1.0, 3.0]), &official()).unwrap();
    assert_eq!((c.threshold, c.index), (0.25, Some(1)));
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let a = f32s(&[1.0, 2.0]);
    let b = Tensor::from_f32(&[2, 1], &[1.0, 2.0]).unwrap();
    assert!(matches!(compare(&a, &b, &official()), Err(JudgeError::ShapeMismatch { .. })));
    let i = Tensor::from_i64(&[2], &[1, 2]).unwrap();
    assert!(matches!(compare(&a, &i, &official()), Err(JudgeError::DTypeMismatch { .. })));
    // A float32 reference has lost what a float64 output may hold.
    assert!(matches!(compare(&f64s(&[1.0, 2.0]), &a, &official()), Err(JudgeError::DTypeMismatch { .. })));
    let short = Tensor { dtype: DType::F32, shape: vec![2], data: vec![0; 4] };
    assert!(matches!(compare(&short, &a, &official()), Err(JudgeError::BadLength { .. })));
}

#[test]
fn empty_tensors_are_equal() {
    let empty = f32s(&[]);
    assert_eq!(compare(&empty, &empty, &official()).unwrap(), Comparison::equal(0));
    assert!(allclose(&empty, &empty, 0.0, 0.0, &official()).unwrap());
}

#[test]
fn unlike_tolerances_scale_the_error() {
    let (out, reference) = (f32s(&[1.5, 0.25]), f32s(&[1.0, 0.0]));
    // 0.5/(0.25 + 0.5*1), 0.25/0.25
    assert_eq!(scaled_threshold(&out, &reference, 0.25, 0.5, &official()).unwrap(), 1.0);
    assert!(allclose(&out, &reference, 0.25, 0.5, &official()).unwrap());
    assert!(!allclose(&out, &reference, 0.24, 0.5, &official()).unwrap());
    assert_eq!(count_mismatches(&out, &reference, 0.0, 0.0, &official()).unwrap(), 2);
    assert_eq!(count_mismatches(&out, &reference, 0.24, 0.5, &official()).unwrap(), 1);
    let first = |atol, rtol| first_mismatch(&out, &reference, atol, rtol, &official()).unwrap();
    for (atol, rtol) in [(0.0, 0.0), (0.24, 0.5), (10.0, 10.0)] {
        let count = count_mismatches(&out, &reference, atol, rtol, &official()).unwrap();
        assert_eq!(first(atol, rtol).map_or(0, |(_, n)| n), count);
        let passes = allclose(&out, &reference, atol, rtol, &official()).unwrap();
        assert_eq!(first(atol, rtol).is_none(), passes);
    }
    assert_eq!(first(0.0, 0.0).map(|f| f.0), Some(0));
    // No rtol reaches an error where the reference is zero.
    assert_eq!(scaled_threshold(&out, &reference, 0.0, 1.0, &official()).unwrap(), INF);
    assert_eq!(scaled_threshold(&reference, &reference, 0.0, 0.0, &official()).unwrap(), 0.0);
    let nan = f32s(&[f32::NAN, 0.25]);
    assert_eq!(scaled_threshold(&nan, &reference, 1.0, 1.0, &official()).unwrap(), INF);
    assert_eq!(count_mismatches(&nan, &nan, 1.0, 1.0, &official()).unwrap(), 1);
    let nan_ok = CompareOptions { nan_ok: true, exact_integers: false };
    assert!(allclose(&nan, &nan, 0.0, 0.0, &nan_ok).unwrap());
}

#[test]
fn several_outputs_join_to_the_worst() {
    let a = compare(&f32s(&[1.5]), &f32s(&[1.0]), &official()).unwrap();
    let b = compare(&f32s(&[9.0, 3.0]), &f32s(&[9.0, 1.0]), &official()).unwrap();
    let c = compare(&f32s(&[f32::NAN]), &f32s(&[1.0]), &official()).unwrap();
    let ab = Comparison::worst([a, b]).unwrap();
    assert_eq!((ab.threshold, ab.output, ab.index, ab.elements), (1.0, 1, Some(1), 3));
    let abc = Comparison::worst([a, b, c]).unwrap();
    assert_eq!((abc.threshold, abc.output, abc.non_finite, abc.max_abs), (INF, 2, 1, 2.0));
    assert_eq!(Comparison::worst([]), None);
    assert_eq!(Comparison::worst([a]), Some(a));
}

#[test]
fn a_comparison_reads_back_from_json() {
    let c = compare(&f32s(&[1.5, f32::INFINITY]), &f32s(&[1.0, 2.0]), &official()).unwrap();
    let text = serde_json::to_string(&c).unwrap();
    assert!(text.starts_with("{\"threshold\":\"Infinity\",\"index\":1,"), "{text}");
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), c);
}

#[test]
#[ignore = "measures time: cargo test --release -p assay-judge --test compare -- --ignored --nocapture"]
fn two_million_elements_take_three_milliseconds() {
    use assay_tensor::philox::Stream;
    let n = 2_000_000u64;
    let s = Stream::new(1, 0);
    let reference: Vec<f32> = (0..n).map(|i| s.uniform_at(i) - 0.5).collect();
    let wide = f64s(&reference.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    let close: Vec<f32> =
        reference.iter().zip(0..).map(|(x, i)| x * (1.0 + 1e-6 * s.uniform_at(n + i))).collect();
    for (name, out) in [("close", close), ("zeros", vec![0.0; n as usize]), ("equal", reference.clone())] {
        let out = f32s(&out);
        for (kind, reference) in [("f32", &f32s(&reference)), ("f64", &wide)] {
            let mut best = f64::INFINITY;
            for _ in 0..7 {
                let start = std::time::Instant::now();
                let c = compare(&out, reference, &official()).unwrap();
                best = best.min(start.elapsed().as_secs_f64());
                assert_eq!(c.elements, n);
            }
            println!("{name} against {kind}: {:.2} ms", best * 1e3);
            assert!(best < 3e-3, "{name} against {kind}: {best} s");
        }
    }
}

/// Floats that meet every special case often: small grids, specials, and any bits.
fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => (-8i32..8).prop_map(|i| i as f32 * 0.25),
        1 => prop_oneof![
            Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(-0.0f32),
            Just(f32::MAX), Just(f32::MIN_POSITIVE), Just(1e-45f32)
        ],
        2 => any::<u32>().prop_map(f32::from_bits),
    ]
}

fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any_f32().prop_map(f64::from),
        2 => any::<u64>().prop_map(f64::from_bits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_fast_loop_agrees_with_the_definition(
        pairs in prop::collection::vec((any_f32(), any_f32(), any_f64(), prop::bool::weighted(0.8)), 0..300),
        nan_ok: bool,
    ) {
        let options = CompareOptions { nan_ok, exact_integers: false };
        // Most elements equal, so that blocks are really skipped.
        let out = f32s(&pairs.iter().map(|p| p.0).collect::<Vec<_>>());
        let narrow = f32s(&pairs.iter().map(|p| if p.3 { p.0 } else { p.1 }).collect::<Vec<_>>());
        let wide = f64s(&pairs.iter().map(|p| if p.3 { f64::from(p.0) } else { p.2 }).collect::<Vec<_>>());
        for reference in [&narrow, &wide] {
            prop_assert_eq!(
                compare(&out, reference, &options).unwrap(),
                compare_slowly(&out, reference, &options).unwrap()
            );
        }
    }

    #[test]
    fn the_fast_loop_agrees_on_smooth_data_too(
        seed: u64, n in 1u64..2000, size in -12i32..12, zeros: bool,
    ) {
        use assay_tensor::philox::Stream;
        let s = Stream::new(seed, 0);
        let reference: Vec<f32> =
            (0..n).map(|i| (s.uniform_at(i) - 0.5) * 10f32.powi(size)).collect();
        let out: Vec<f32> = (0..n).zip(&reference)
            .map(|(i, r)| if zeros { 0.0 } else { r * (1.0 + 1e-3 * s.uniform_at(n + i)) }).collect();
        let (out, reference) = (f32s(&out), f32s(&reference));
        prop_assert_eq!(
            compare(&out, &reference, &official()).unwrap(),
            compare_slowly(&out, &reference, &official()).unwrap()
        );
    }

    #[test]
    fn the_threshold_is_the_smallest_tolerance_that_passes(
        pairs in prop::collection::vec((any_f64(), any_f64()), 1..40), nan_ok: bool,
    ) {
        let options = CompareOptions { nan_ok, exact_integers: false };
        let out = f64s(&pairs.iter().map(|p| p.0).collect::<Vec<_>>());
        let reference = f64s(&pairs.iter().map(|p| p.1).collect::<Vec<_>>());
        let t = compare(&out, &reference, &options).unwrap().threshold;
        let passes = |t: f64| allclose(&out, &reference, t, t, &options).unwrap();
        if t == INF {
            prop_assert!(!passes(1e300));
        } else if t > 1e-290 {
            // At the largest floats `atol + rtol * |ref|` may overflow, which only widens the tolerance.
            prop_assert!(passes(t * (1.0 + 1e-15)));
            let overflows = pairs.iter().any(|p| (p.0 - p.1).is_infinite() && p.0.is_finite() && p.1.is_finite());
            prop_assert!(overflows || !passes(t * (1.0 - 1e-15)));
            let scaled = scaled_threshold(&out, &reference, 1.0, 1.0, &options).unwrap();
            prop_assert!(overflows || (scaled / t - 1.0).abs() < 1e-15);
        } else if t == 0.0 {
            prop_assert!(passes(0.0));
        }
    }
}
