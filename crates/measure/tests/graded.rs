//! Blind bands, the shipped curve, and who cannot be refereed.

mod common;

use assay_measure::{
    KillMatrix, REFEREE_TOLERANCES, ReferenceRow, Tolerance, Unrefereeable, Violations, blind_bands,
    blind_curve, published, referee,
};
use common::matrix;

/// A matrix whose official references are so large and have so many positions out of tolerance.
fn problem(id: u32, references: &[(f64, [u64; 3])]) -> KillMatrix {
    let recipes: Vec<String> = (0..references.len()).map(|i| format!("official#{i}")).collect();
    let mut recipes: Vec<&str> = recipes.iter().map(String::as_str).collect();
    recipes.push("official*3#0");
    let mut m = matrix(id, &recipes, &[]);
    // Only what the official check asks counts.
    let other = (1e9, [9; 3]);
    for (input, (max_abs, positions)) in m.inputs.iter_mut().zip(references.iter().chain([&other])) {
        let violations = REFEREE_TOLERANCES
            .iter()
            .zip(positions)
            .map(|(&tolerance, &positions)| Violations { tolerance, positions })
            .collect();
        input.reference = Some(ReferenceRow {
            elements: 64,
            max_abs: *max_abs,
            error: 1e-6,
            max_abs_error: 0.5,
            violations,
        });
    }
    m
}

#[test]
fn a_blind_band_is_what_every_official_input_lets_through() {
    let matrices = [
        problem(1, &[(0.1, [0; 3]), (0.2, [0; 3])]),
        problem(2, &[(4e-6, [0; 3])]),
        problem(3, &[(0.0, [0; 3])]),
        matrix(4, &["official#0"], &[]),
    ];
    let rows = blind_bands(&matrices, Tolerance::PAPER);
    let seen: Vec<(&str, &str, bool)> =
        rows.iter().map(|r| (r.problem.as_str(), r.recipe.as_str(), r.zeros_pass)).collect();
    // Widest first; one that kept no reference is left out.
    let want = [("1/3", "official#0", true), ("1/2", "official#0", true), ("1/1", "official#1", false)];
    assert_eq!(seen, want);
    assert_eq!(rows[0].band, f64::INFINITY);
    assert!((rows[2].band - 0.06).abs() < 1e-12);
}

#[test]
fn float32_is_counted_against_its_own_float64_at_each_tolerance() {
    let matrices = [problem(1, &[(1.0, [0, 2, 9]), (1.0, [0, 5, 7])]), problem(2, &[(1.0, [0, 0, 1])])];
    let rows = referee(&matrices, "desk");
    let seen: Vec<Vec<(&str, &str, u64)>> = rows
        .iter()
        .map(|r| r.strays.iter().map(|s| (s.problem.as_str(), s.recipe.as_str(), s.violations)).collect())
        .collect();
    let want: [&[(&str, &str, u64)]; 3] =
        [&[], &[("1/1", "official#1", 5)], &[("1/1", "official#0", 9), ("1/2", "official#0", 1)]];
    assert_eq!(seen, want);
    assert_eq!((rows[0].problems, rows[0].extents.as_str()), (2, "desk"));
    assert!(referee(&[matrix(4, &["official#0"], &[])], "desk").is_empty(), "nothing was kept");
}

#[test]
fn a_matrix_with_a_reason_is_unrefereeable() {
    let mut m = problem(1, &[(1.0, [0; 3])]);
    m.unrefereeable_why = Some(Unrefereeable::ZerosPass);
    assert!(m.validate().is_err());
    m.unrefereeable = true;
    m.validate().unwrap();
}

#[test]
fn the_shipped_curve_is_near_what_was_published_and_the_formula_is_what_the_check_accepts() {
    let curve = blind_curve().unwrap();
    let theirs = published().unwrap().blind_bands;
    for row in &theirs.rows {
        let ours = curve.points.iter().find(|p| p.operator == theirs.operator && p.length == row.length);
        let ours = ours.unwrap_or_else(|| panic!("no point at {}", row.length));
        assert!((ours.band / row.band - 1.0).abs() < 0.1, "{}: {} and {}", row.length, ours.band, row.band);
    }
    assert!(curve.points.len() >= 60, "{}", curve.points.len());
    for p in &curve.points {
        // Float32 rounds the kernel's outputs and what they are multiplied to.
        let close = (p.accepted_error / p.band - 1.0).abs() < 2e-2;
        assert!(close, "{} at {}: {} and {}", p.operator, p.length, p.accepted_error, p.band);
        assert_eq!(p.zeros_pass, p.band >= 1.0, "{} at {}", p.operator, p.length);
    }
    let softmax: Vec<f64> = curve.points.iter().filter(|p| p.operator == "softmax").map(|p| p.band).collect();
    assert!(softmax.windows(2).all(|w| w[1] > 2.0 * w[0]), "it widens with the length: {softmax:?}");
}
