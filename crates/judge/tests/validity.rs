//! Ends, cells, validity and ceilings.

use assay_judge::{
    Ceiling, Cell, CompareOptions, Comparison, EvaluationEnd, JudgeError, TrivialAnswer, TrivialAnswers,
    Validity, bisect_ceiling, blind_band, is_witness, largest_accepted_error, max_abs_finite, unrefereeable,
};
use assay_tensor::Tensor;

fn with_threshold(threshold: f64) -> Comparison {
    Comparison { threshold, ..Comparison::equal(1) }
}

#[test]
fn only_wrong_outputs_and_faults_are_kills() {
    use EvaluationEnd::*;
    // (end, threshold, tolerance, kill)
    let table = [
        (Pass, 5e-3, 1e-2, false),
        (Pass, 1e-2, 1e-2, false),
        // Judged at 1e-2, asked again at 1e-3 and at 1e-1.
        (Pass, 5e-3, 1e-3, true),
        (Mismatch, 5e-2, 1e-2, true),
        (Mismatch, 5e-2, 1e-1, false),
        (NonFinite, f64::INFINITY, 1e9, true),
        (Fault, 0.0, 1e-2, true),
        (Exhausted, f64::INFINITY, 1e-2, false),
        (Unsupported, f64::INFINITY, 1e-2, false),
        (Pass, f64::NAN, 1e-2, true),
    ];
    for (end, threshold, tolerance, kill) in table {
        assert_eq!(end.is_kill(threshold, tolerance), kill, "{end:?} {threshold} at {tolerance}");
    }
}

#[test]
fn ends_have_names_that_read_back() {
    for end in EvaluationEnd::ALL {
        assert_eq!(EvaluationEnd::from_name(end.name()), Some(end));
        assert_eq!(serde_json::to_value(end).unwrap(), end.name());
    }
    assert_eq!(EvaluationEnd::from_name("killed"), None);
}

#[test]
fn a_witness_fails_both_references_under_every_seed_on_a_valid_input() {
    let cell = |official, truth| Cell::judged(with_threshold(official), with_threshold(truth), 1e-2);
    let both = cell(0.5, 0.5);
    assert_eq!(both.end, EvaluationEnd::Mismatch);
    assert!(both.kills_at(1e-2) && both.rejected_at(1e-2));
    let only_official = cell(0.5, 1e-3);
    assert!(only_official.rejected_at(1e-2) && !only_official.kills_at(1e-2));
    let only_truth = cell(1e-3, 0.5);
    assert_eq!(only_truth.end, EvaluationEnd::Pass);
    assert!(!only_truth.rejected_at(1e-2) && !only_truth.kills_at(1e-2));
    let fault = Cell::without_output(EvaluationEnd::Fault);
    assert!(fault.kills_at(1e-2) && fault.truth_threshold() == f64::INFINITY);
    let exhausted = Cell::without_output(EvaluationEnd::Exhausted);
    assert!(!exhausted.kills_at(1e-2) && !exhausted.rejected_at(1e-2));

    let valid = Validity { threshold: 1e-6 };
    assert!(is_witness(&[both, fault], valid, 1e-2));
    assert!(!is_witness(&[both], valid, 1e-2), "one noise seed is not enough");
    assert!(!is_witness(&[both, only_truth], valid, 1e-2));
    assert!(!is_witness(&[both, exhausted], valid, 1e-2));
    assert!(!is_witness(&[both, both], Validity { threshold: 2e-2 }, 1e-2));
}

#[test]
fn a_non_finite_mismatch_is_named_so() {
    let c = Comparison { non_finite: 1, ..with_threshold(f64::INFINITY) };
    assert_eq!(EvaluationEnd::of(&c, 1e-2), EvaluationEnd::NonFinite);
}

#[test]
fn validity_is_the_largest_of_the_ensemble() {
    assert_eq!(Validity::of([1e-7, 3e-3, 1e-9]).threshold, 3e-3);
    assert!(Validity::of([1e-2]).is_valid(1e-2));
    assert!(!Validity::of([1.1e-2]).is_valid(1e-2));
    assert!(!Validity::of([0.0, f64::NAN]).is_valid(1e300));
    assert!(!Validity::of([]).is_valid(1.0), "an empty ensemble shows nothing");
}

#[test]
fn the_blind_band_is_the_papers() {
    // Softmax: outputs average 1/d, the largest near e/(d * mean e^x).
    assert!((blind_band(1e-2, 1e-2, 0.0263) - 0.39).abs() < 1e-2);
    assert!((blind_band(1e-2, 1e-2, 4.03e-6) - 2.5e3).abs() < 50.0);
    assert_eq!(blind_band(1e-2, 1e-2, 0.0), f64::INFINITY);
    assert_eq!(blind_band(0.0, 1e-2, 0.0), 1e-2);
    let t = Tensor::from_f32(&[4], &[1.0, -3.0, f32::INFINITY, f32::NAN]).unwrap();
    assert_eq!(max_abs_finite(&t), 3.0);
    assert_eq!(max_abs_finite(&Tensor::from_i64(&[2], &[-9, 4]).unwrap()), 9.0);
}

#[test]
fn a_reference_beyond_tolerance_of_its_own_float64_is_unrefereeable() {
    let official = Tensor::from_f32(&[3], &[1.0, 2.5, 4.0]).unwrap();
    let truth = Tensor::from_f64(&[3], &[1.0, 2.0, 4.001]).unwrap();
    let options = CompareOptions::default();
    let found = unrefereeable(&official, &truth, 1e-2, &options).unwrap().unwrap();
    assert_eq!((found.violations, found.elements, found.max_abs), (1, 3, 0.5));
    assert_eq!(unrefereeable(&official, &truth, 0.2, &options).unwrap(), None);
    assert_eq!(unrefereeable(&official, &truth, 1e-5, &options).unwrap().unwrap().violations, 2);
}

#[test]
fn the_ceiling_is_found_by_bisection() {
    let mut calls = 0;
    // The threshold is the magnitude over 10^4: the ceiling at 1e-2 is 100.
    let found: Result<Ceiling, JudgeError> = bisect_ceiling(
        |m| {
            calls += 1;
            Ok(m / 1e4)
        },
        1e-2,
        1e-3,
        1e6,
        24,
    );
    let Ok(Ceiling::Between { valid, invalid }) = found else { panic!("{found:?}") };
    assert!(valid <= 100.0 && invalid > 100.0 && invalid / valid < 1.00001, "{valid} {invalid}");
    assert_eq!(calls, 26);
}

#[test]
fn ceilings_outside_the_range_say_so() {
    let search = |threshold: f64| -> Result<Ceiling, JudgeError> {
        bisect_ceiling(|_| Ok(threshold), 1e-2, 1.0, 10.0, 8)
    };
    assert_eq!(search(1.0).unwrap(), Ceiling::Below { lo: 1.0 });
    assert_eq!(search(f64::NAN).unwrap().valid(), None);
    assert_eq!(search(0.0).unwrap(), Ceiling::Above { hi: 10.0 });
    assert_eq!(search(0.0).unwrap().valid(), Some(10.0));
    for (lo, hi) in [(0.0, 1.0), (2.0, 1.0), (1.0, f64::INFINITY), (f64::NAN, 1.0)] {
        let r: Result<Ceiling, JudgeError> = bisect_ceiling(|_| Ok(0.0), 1e-2, lo, hi, 8);
        assert!(matches!(r, Err(JudgeError::BadRange { .. })));
    }
}

#[test]
fn an_error_of_the_evaluation_ends_the_search() {
    #[derive(Debug, PartialEq)]
    struct Failed;
    impl From<JudgeError> for Failed {
        fn from(_: JudgeError) -> Failed {
            Failed
        }
    }
    assert_eq!(bisect_ceiling(|_| Err(Failed), 1e-2, 1.0, 10.0, 8), Err(Failed));
}

#[test]
fn the_blind_band_is_the_largest_error_that_the_check_accepts() {
    let options = CompareOptions::default();
    for (values, atol, rtol) in [
        (&[0.0254f32, 1e-5, -0.003][..], 1e-2, 1e-2),
        (&[4.0e-6, 2.5e-6][..], 1e-2, 1e-2),
        (&[300.0, -1.0][..], 1e-3, 1e-3),
        (&[0.5, 0.25][..], 1e-4, 0.0),
    ] {
        let t = Tensor::from_f32(&[values.len() as u64], values).unwrap();
        let measured = largest_accepted_error(&t, &t, atol, rtol, &options).unwrap();
        let stated = blind_band(atol, rtol, max_abs_finite(&t));
        assert!((measured / stated - 1.0).abs() < 1e-3, "{values:?}: {measured} and {stated}");
    }
    let zeros = Tensor::from_f32(&[2], &[0.0, 0.0]).unwrap();
    assert_eq!(largest_accepted_error(&zeros, &zeros, 1e-2, 1e-2, &options).unwrap(), f64::INFINITY);
    let (one, two) = (Tensor::from_f32(&[1], &[1.0]).unwrap(), Tensor::from_f32(&[1], &[2.0]).unwrap());
    assert_eq!(largest_accepted_error(&one, &two, 1e-2, 1e-2, &options).unwrap(), 0.0);
}

#[test]
fn answers_that_read_nothing_pass_only_where_every_input_lets_them() {
    let t = |v: &[f32]| Tensor::from_f32(&[v.len() as u64], v).unwrap();
    let least = |inputs: &[&[Tensor]]| {
        let mut answers = TrivialAnswers::default();
        for outputs in inputs {
            answers.narrow(outputs.iter(), 1e-2, 1e-2);
        }
        answers.least()
    };
    assert_eq!(least(&[]), None, "nothing was seen");
    assert_eq!(least(&[&[t(&[1e-3, -5e-3])]]), Some(TrivialAnswer::Zeros));
    assert_eq!(least(&[&[t(&[1e-3])], &[t(&[0.5])]]), None, "another input tells them apart");
    assert_eq!(least(&[&[t(&[1.0, 1.005])], &[t(&[1.01])]]), Some(TrivialAnswer::Constant));
    assert_eq!(least(&[&[t(&[0.0]), t(&[1.0, 2.0])]]), None, "every output counts");
    assert_eq!(least(&[&[t(&[0.0, f32::NAN])]]), None);
    assert_eq!(least(&[&[Tensor::from_i64(&[2], &[0, 1]).unwrap()]]), None, "integers are exact");
}
