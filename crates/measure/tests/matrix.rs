//! Cells, majorities, tolerances with unlike parts, and matrices that contradict themselves.

mod common;

use assay_judge::{Cell, Comparison, EvaluationEnd};
use assay_measure::{
    Graded, InputRow, KillMatrix, MatrixCell, MeasureError, Origin, ScaledValue, Tolerance, majority,
};
use common::{cell, matrix};

#[test]
fn a_majority_of_seeds_rejects() {
    // (cells, end, threshold)
    let table = [
        ("....", EvaluationEnd::Pass, 1e-7),
        ("KKKK", EvaluationEnd::Mismatch, 1.0),
        ("KKK.", EvaluationEnd::Mismatch, 1.0),
        ("KK..", EvaluationEnd::Pass, 1e-7),
        (".KtT", EvaluationEnd::Pass, 5e-3),
        ("KT.", EvaluationEnd::Mismatch, 5e-2),
        ("FFF.", EvaluationEnd::Fault, f64::INFINITY),
        ("FF..", EvaluationEnd::Pass, 1e-7),
        ("FFNN", EvaluationEnd::NonFinite, f64::INFINITY),
        ("XXXX", EvaluationEnd::Exhausted, f64::INFINITY),
        ("UUX.", EvaluationEnd::Exhausted, f64::INFINITY),
        ("UU..", EvaluationEnd::Unsupported, f64::INFINITY),
        ("KKKX", EvaluationEnd::Mismatch, 1.0),
        ("KKXX", EvaluationEnd::Exhausted, f64::INFINITY),
        ("KK.X", EvaluationEnd::Pass, 1e-7),
        ("K", EvaluationEnd::Mismatch, 1.0),
    ];
    for (text, end, threshold) in table {
        let cells: Vec<MatrixCell> = text.chars().map(|c| cell(c).unwrap()).collect();
        let joined = majority(&cells).unwrap();
        assert_eq!((joined.end, joined.official.threshold), (end, threshold), "{text}");
        // The order of seeds does not matter, and the joined cell is rejected as the majority is.
        let backwards: Vec<MatrixCell> = cells.iter().rev().cloned().collect();
        assert_eq!(majority(&backwards).unwrap(), joined, "{text}");
        for t in [1e-8, 1e-3, 1e-2, 1e-1, 2.0] {
            let t = Tolerance::both(t);
            let rejecting = cells.iter().filter(|c| c.rejected_by(t) == Some(true)).count();
            assert_eq!(joined.rejected_by(t), Some(rejecting > cells.len() / 2), "{text} at {t:?}");
        }
    }
    assert_eq!(majority(&[]), None);
}

#[test]
fn unlike_tolerances_are_decided_where_the_threshold_suffices() {
    let t = Tolerance { atol: 1e-3, rtol: 1e-1 };
    assert_eq!(Graded::at(1e-3).rejected_by(t), Some(false));
    assert_eq!(Graded::at(1e-2).rejected_by(t), None);
    assert_eq!(Graded::at(0.2).rejected_by(t), Some(true));
    let mut graded = Graded::at(1e-2);
    graded.scaled.push(ScaledValue { atol: 1e-3, rtol: 1e-1, value: 1.5 });
    assert_eq!(graded.rejected_by(t), Some(true));
    graded.scaled[0].value = 1.0;
    assert_eq!(graded.rejected_by(t), Some(false));
    assert_eq!(graded.rejected_by(Tolerance { atol: 1e-1, rtol: 1e-3 }), None, "another pair");
    assert_eq!(Graded::at(f64::NAN).rejected_by(Tolerance::PAPER), Some(true));
}

#[test]
fn scaled_values_have_a_majority_too() {
    let t = Tolerance { atol: 1e-3, rtol: 1e-1 };
    let with = |value: f64| {
        let mut c = MatrixCell::new(EvaluationEnd::Pass, 1e-2, 1e-2);
        c.official.scaled.push(ScaledValue { atol: t.atol, rtol: t.rtol, value });
        c
    };
    let joined = majority(&[with(0.5), with(2.0), with(3.0)]).unwrap();
    assert_eq!(joined.rejected_by(t), Some(true));
    let joined = majority(&[with(0.5), with(2.0), with(0.9), with(3.0)]).unwrap();
    assert_eq!(joined.rejected_by(t), Some(false));
    assert_eq!(joined.wrong_in_truth(t), None);
    let joined = majority(&[with(0.5), cell('F').unwrap(), cell('F').unwrap()]).unwrap();
    assert_eq!(joined.rejected_by(t), Some(true));
    let without = MatrixCell::new(EvaluationEnd::Pass, 1e-2, 1e-2);
    assert_eq!(majority(&[with(0.5), without.clone(), without]).unwrap().rejected_by(t), None);
}

#[test]
fn a_judged_cell_becomes_a_matrix_cell() {
    let c = Comparison { threshold: 0.5, ..Comparison::equal(3) };
    let judged = Cell::judged(c, Comparison::equal(3), 1e-2);
    assert_eq!(MatrixCell::from(&judged), MatrixCell::new(EvaluationEnd::Mismatch, 0.5, 0.0));
    let fault = MatrixCell::from(&Cell::without_output(EvaluationEnd::Fault));
    assert_eq!(Some(fault), cell('F'));
}

#[test]
fn an_input_kills_only_where_it_is_valid() {
    let mut m = matrix(1, &["official#0"], &[("a", "boundary", "w", "T")]);
    assert!(m.kills(0, 0, Tolerance::PAPER));
    assert!(!m.kills(0, 0, Tolerance::both(1e-1)), "the error is 5e-2");
    m.inputs[0].validity = Graded::at(2e-2);
    assert!(!m.kills(0, 0, Tolerance::PAPER), "correct kernels are 2e-2 apart");
    assert!(m.kills(0, 0, Tolerance::both(3e-2)));
    assert!(!m.kills(7, 0, Tolerance::PAPER) && !m.kills(0, 7, Tolerance::PAPER));
}

#[test]
fn matrices_that_contradict_themselves_are_refused() {
    let good =
        matrix(1, &["official#0", "ones"], &[("a", "boundary", "w", "K."), ("b", "boundary", "", "..")]);
    good.validate().unwrap();
    type Break = fn(&mut KillMatrix);
    let table: &[(Break, &str)] = &[
        (|m| m.filtered.generated += 1, "is not the 2 distinct mutants"),
        (|m| m.filtered.equivalent = u64::MAX, "distinct"),
        (|m| m.mutants[1].id = "a".to_owned(), "two mutants"),
        (|m| m.mutants[0].quarantined = true, "also quarantined"),
        (|m| m.mutants[0].schedule_witnessed = true, "schedule-witnessed"),
        (|m| m.inputs[1].recipe = "official#0".to_owned(), "two inputs"),
        (|m| m.inputs[1].validity = Graded::at(f64::NAN), "below zero or NaN"),
        (|m| m.set_cell(0, 0, MatrixCell::new(EvaluationEnd::Pass, -1.0, 0.0)).unwrap(), "below zero or NaN"),
        (
            |m| {
                m.inputs.pop();
            },
            "cells without",
        ),
    ];
    for (harm, part) in table {
        let mut m = good.clone();
        harm(&mut m);
        match m.validate() {
            Err(MeasureError::Matrix { problem, what }) => {
                assert_eq!(problem, "1/1");
                assert!(what.contains(part), "{what}");
            }
            other => panic!("{part}: {other:?}"),
        }
    }
    assert!(good.clone().set_cell(2, 0, MatrixCell::new(EvaluationEnd::Pass, 0.0, 0.0)).is_err());
}

#[test]
fn a_matrix_reads_back_from_json() {
    let mut m =
        matrix(1, &["official#0", "x@N=7"], &[("a", "boundary", "wf", "F-"), ("b", "indexing", "s", ".X")]);
    m.inputs.push(InputRow::new("found#1", Origin::Searched { mutant: "a".to_owned() }, f64::INFINITY));
    let text = serde_json::to_string(&m).unwrap();
    assert_eq!(serde_json::from_str::<KillMatrix>(&text).unwrap(), m, "{text}");
    assert!(!m.inputs[1].official_shape && m.inputs[2].official_shape);
}
