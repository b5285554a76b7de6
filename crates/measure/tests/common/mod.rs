//! Small matrices drawn as text.

use assay_judge::EvaluationEnd;
use assay_measure::{Filtered, InputRow, KillMatrix, MatrixCell, MutantRow, Origin};

/// A cell from one character: `.` passes, `t` and `T` are off by 5e-3 and 5e-2 (against both references), `o` by 1
/// against the official reference alone, `K` by 1, `N` not finite, `F` a fault, `X` exhausted, `U` unsupported, `-`
/// never evaluated.
pub fn cell(c: char) -> Option<MatrixCell> {
    use EvaluationEnd::*;
    let inf = f64::INFINITY;
    Some(match c {
        '.' => MatrixCell::new(Pass, 1e-7, 1e-7),
        't' => MatrixCell::new(Pass, 5e-3, 5e-3),
        'T' => MatrixCell::new(Mismatch, 5e-2, 5e-2),
        'o' => MatrixCell::new(Mismatch, 1.0, 1e-7),
        'K' => MatrixCell::new(Mismatch, 1.0, 1.0),
        'N' => MatrixCell::new(NonFinite, inf, inf),
        'F' => MatrixCell::new(Fault, inf, inf),
        'X' => MatrixCell::new(Exhausted, inf, inf),
        'U' => MatrixCell::new(Unsupported, inf, inf),
        '-' => return None,
        c => panic!("no cell is written {c:?}"),
    })
}

/// An input valid at 1e-6 and above, its origin from its recipe.
pub fn input(recipe: &str) -> InputRow {
    let origin = match recipe {
        r if r.starts_with("official#") => Origin::Official,
        r if r.starts_with("official*") => Origin::Kbv,
        r if r.starts_with("loguniform") => Origin::CiFuzz,
        _ => Origin::Targeted,
    };
    InputRow::new(recipe, origin, 1e-6)
}

/// A matrix: recipes, then mutants as (id, family, marks, cells). Marks: `w` witnessed, `s` schedule-witnessed, `q`
/// quarantined, `f` flagged. The rule is `family-rule`.
pub fn matrix(id: u32, recipes: &[&str], mutants: &[(&str, &str, &str, &str)]) -> KillMatrix {
    let mut m = KillMatrix::new(1, id, format!("problem {id}"));
    m.inputs = recipes.iter().map(|r| input(r)).collect();
    for (mutant, family, marks, _) in mutants {
        m.mutants.push(MutantRow {
            id: (*mutant).to_owned(),
            name: format!("k.cu:1:1: {mutant}"),
            rule: format!("{family}-rule"),
            family: (*family).to_owned(),
            line: 1,
            host: false,
            witnessed: marks.contains('w'),
            schedule_witnessed: marks.contains('s'),
            quarantined: marks.contains('q'),
            flagged: marks.contains('f'),
            unwitnessed: None,
        });
    }
    for (at, (.., cells)) in mutants.iter().enumerate() {
        assert_eq!(cells.chars().count(), recipes.len(), "row of {}", mutants[at].0);
        for (i, c) in cells.chars().enumerate() {
            if let Some(c) = cell(c) {
                m.set_cell(at, i, c).unwrap();
            }
        }
    }
    m.filtered =
        Filtered { generated: mutants.len() as u64 + 6, noncompiling: 3, duplicate_image: 2, equivalent: 1 };
    m
}
