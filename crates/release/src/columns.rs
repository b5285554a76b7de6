//! The tables of a release: every column with its definition and unit. The files, the documents and the tests take them
//! from here.

use crate::table::{Column, Holds, Schema};

/// What a threshold is.
macro_rules! threshold {
    () => {
        "the smallest t at which atol = rtol = t accepts: max |out - ref| / (1 + |ref|) over the elements of every output, without unit; infinite where none does or there was no output."
    };
}
const IN_FLOAT64: &str = "The same against the float64 reference.";

// Columns that several tables have.
const PROBLEM: Column = Column {
    name: "problem",
    holds: Holds::Text,
    optional: false,
    what: "Level and number of the problem, `1/23`.",
};
const MUTANT: Column =
    Column { name: "mutant", holds: Holds::Text, optional: false, what: "The mutant's id." };
const RECIPE: Column =
    Column { name: "recipe", holds: Holds::Text, optional: false, what: "The input's recipe." };
const SEED: Column = Column {
    name: "seed",
    holds: Holds::Count,
    optional: false,
    what: "Seed of schedule and fill, beside the run's own.",
};
const THRESHOLD_OFFICIAL: Column = Column {
    name: "threshold_official",
    holds: Holds::Float,
    optional: false,
    what: concat!("Against the float32 reference: ", threshold!()),
};
const THRESHOLD_TRUTH: Column =
    Column { name: "threshold_truth", holds: Holds::Float, optional: false, what: IN_FLOAT64 };

/// One mutant as it was generated, whatever became of it.
pub static MUTANTS: Schema = Schema {
    file: "mutants.parquet",
    row: "One mutant as it was generated, whatever became of it.",
    columns: &[
        PROBLEM,
        Column {
            name: "mutant",
            holds: Holds::Text,
            optional: false,
            what: "Id: a hash of file, rule, span and replacement, in hexadecimal digits.",
        },
        Column {
            name: "rule",
            holds: Holds::Text,
            optional: false,
            what: "The rule that made it; see taxonomy.json.",
        },
        Column { name: "family", holds: Holds::Text, optional: false, what: "The rule's family." },
        Column {
            name: "host",
            holds: Holds::Bool,
            optional: false,
            what: "Is the fault in the host function `launch`?",
        },
        Column { name: "line", holds: Holds::Count, optional: false, what: "Line in kernel.cu, from 1." },
        Column {
            name: "name",
            holds: Holds::Text,
            optional: false,
            what: "File, line, column and what is replaced, in words.",
        },
        Column {
            name: "status",
            holds: Holds::Text,
            optional: false,
            what: "`distinct`, `quarantined` (distinct, and nothing could be learnt of it), `duplicate` (the image of another mutant), `equivalent` (the original's image) or `noncompiling`.",
        },
        Column {
            name: "reason",
            holds: Holds::Text,
            optional: true,
            what: "Why it has that status: the id that it repeats, the compiler's first error.",
        },
        Column {
            name: "identity",
            holds: Holds::Text,
            optional: true,
            what: "Identity of the compiled image with its launcher; null where nothing was compiled.",
        },
        Column {
            name: "diff",
            holds: Holds::Text,
            optional: false,
            what: "Path of its diff in this release.",
        },
        Column {
            name: "scored",
            holds: Holds::Bool,
            optional: false,
            what: "Does its problem count? False where float32 fails its own float64 evaluation on official inputs, so that nothing can be refereed, and where the baseline failed.",
        },
        Column {
            name: "witnessed",
            holds: Holds::Bool,
            optional: false,
            what: "Has it a witness: a valid input on which it is wrong at 1e-2 against float32 and float64, under two noise seeds? The denominator of every rate, where `scored`.",
        },
        Column {
            name: "schedule_witnessed",
            holds: Holds::Bool,
            optional: false,
            what: "Has it none under `hardware`, but one under `run-ahead`?",
        },
        Column {
            name: "flagged",
            holds: Holds::Bool,
            optional: true,
            what: "Did the sanitizer report a finding that the baseline does not have? Null for mutants that were not evaluated.",
        },
        Column {
            name: "split",
            holds: Holds::Text,
            optional: true,
            what: "`dev` or `test`: the half of the held-out split, from the SHA-256 of the id; null unless distinct.",
        },
        Column {
            name: "witness_recipe",
            holds: Holds::Text,
            optional: true,
            what: "Recipe of its first witness, in the order of cost.",
        },
        Column {
            name: "witness_schedule",
            holds: Holds::Text,
            optional: true,
            what: "Schedule under which that one shows it.",
        },
        Column {
            name: "witness_seed",
            holds: Holds::Count,
            optional: true,
            what: "Seed of schedule and fill there.",
        },
        Column {
            name: "witness_threshold_official",
            holds: Holds::Float,
            optional: true,
            what: concat!("Against the float32 reference on it: ", threshold!()),
        },
        Column { name: "witness_threshold_truth", holds: Holds::Float, optional: true, what: IN_FLOAT64 },
        Column {
            name: "witness_inputs",
            holds: Holds::Count,
            optional: false,
            what: "Inputs of the kill matrix on which it is wrong against both references at 1e-2 and that are valid there.",
        },
    ],
};
/// One input of a problem's kill matrix.
pub static INPUTS: Schema = Schema {
    file: "inputs.parquet",
    row: "One input of a problem's kill matrix.",
    columns: &[
        PROBLEM,
        Column {
            name: "recipe",
            holds: Holds::Text,
            optional: false,
            what: "The recipe: KIND(args)*SCALE+params@DIM=V#SEED. It replays the input to the bit.",
        },
        Column {
            name: "origin",
            holds: Holds::Text,
            optional: false,
            what: "Who asked for it first: `official`, `kbv`, `ci_fuzz`, `targeted`, `searched` or `protocol`.",
        },
        Column {
            name: "searched_for",
            holds: Holds::Text,
            optional: true,
            what: "The mutant that it was searched for, where it was.",
        },
        Column {
            name: "targeted",
            holds: Holds::Bool,
            optional: false,
            what: "Is it one of the problem's targeted recipes?",
        },
        Column {
            name: "official_shape",
            holds: Holds::Bool,
            optional: false,
            what: "Has it the shapes of the problem's own inputs, with no dim overridden?",
        },
        Column {
            name: "validity_threshold",
            holds: Holds::Float,
            optional: false,
            what: "The largest threshold of correct float32 implementations on it. An input is valid at every tolerance atol = rtol that is at least this.",
        },
        Column { name: "valid", holds: Holds::Bool, optional: false, what: "Is it valid at 1e-2?" },
        Column {
            name: "killed",
            holds: Holds::Count,
            optional: false,
            what: "Witnessed mutants that it kills at 1e-2, of every family.",
        },
        Column {
            name: "cover_rank",
            holds: Holds::Count,
            optional: true,
            what: "Its place, from 1, in the greedy cover of the problem's witnessed mutants of the paper's six families at 1e-2; null where it is not in it.",
        },
    ],
};
/// One mutant on one input: a cell of the kill matrix.
pub static KILL_MATRIX: Schema = Schema {
    file: "kill-matrix.parquet",
    row: "One mutant on one input: a cell of the kill matrix.",
    columns: &[
        PROBLEM,
        MUTANT,
        RECIPE,
        Column {
            name: "end",
            holds: Holds::Text,
            optional: false,
            what: "How it ended under `hardware`: `pass` or `mismatch` (at 1e-2 against float32), `non_finite` (where the reference differs), `fault` (no output), `exhausted` (its budget) or `unsupported`. The last two are neither kill nor pass.",
        },
        THRESHOLD_OFFICIAL,
        THRESHOLD_TRUTH,
        Column { name: "valid", holds: Holds::Bool, optional: false, what: "Is the input valid at 1e-2?" },
        Column {
            name: "killed",
            holds: Holds::Bool,
            optional: false,
            what: "Killed at 1e-2 under `hardware`: the input valid, the output rejected against float32.",
        },
        Column {
            name: "wrong",
            holds: Holds::Bool,
            optional: false,
            what: "Killed, and wrong against float64 too: a witness, if a second noise seed confirms it.",
        },
        Column {
            name: "seeds",
            holds: Holds::Count,
            optional: false,
            what: "Runs under `hardware` that the cell rests on: 1, or 4 where a detector saw that the result may depend on the schedule; the majority counts. A second run where one only confirms a witness.",
        },
        Column {
            name: "seeds_rejected",
            holds: Holds::Count,
            optional: false,
            what: "Those of them that are rejected at 1e-2 against float32.",
        },
        Column {
            name: "run_ahead_seeds",
            holds: Holds::Count,
            optional: false,
            what: "Runs under `run-ahead`, where one warp runs until it blocks; tried where a hazard was seen and `hardware` gave no witness.",
        },
        Column {
            name: "run_ahead_rejected",
            holds: Holds::Count,
            optional: false,
            what: "Those of them that are rejected at 1e-2 against float32.",
        },
        Column {
            name: "findings",
            holds: Holds::Text,
            optional: true,
            what: "Kinds of what the sanitizer saw in strict memory, parted by spaces; empty where it saw nothing, null where it did not look: it runs once at each shape.",
        },
        Column {
            name: "instructions",
            holds: Holds::Count,
            optional: false,
            what: "Warp instructions of the first run under `hardware`.",
        },
    ],
};
/// One protocol on one distinct mutant of a problem that counts.
pub static VERDICTS: Schema = Schema {
    file: "verdicts.parquet",
    row: "One protocol on one distinct mutant of a problem that counts.",
    columns: &[
        PROBLEM,
        MUTANT,
        Column { name: "protocol", holds: Holds::Text, optional: false, what: "The protocol." },
        Column {
            name: "verdict",
            holds: Holds::Text,
            optional: false,
            what: "`killed`, `missed` (every input that it asks passes or is not valid at its tolerance), `undecided` (an evaluation ran out, is unsupported or is not there, and none kills) or `not_asked`.",
        },
        Column {
            name: "mechanism",
            holds: Holds::Text,
            optional: true,
            what: "Why a witnessed mutant is not killed: `tolerance`, `input_support`, `shape` or `schedule`.",
        },
    ],
};
/// One correct implementation that the validity gate did not use, on one input.
pub static CONTROLS: Schema = Schema {
    file: "controls.parquet",
    row: "One correct implementation that the validity gate did not use, on one input.",
    columns: &[
        PROBLEM,
        RECIPE,
        Column {
            name: "control",
            holds: Holds::Text,
            optional: false,
            what: "Which implementation: `held-out:` and an order of accumulation, or `plain-kernel`.",
        },
        Column {
            name: "end",
            holds: Holds::Text,
            optional: false,
            what: "How it ended, at 1e-2 against float32.",
        },
        THRESHOLD_OFFICIAL,
        Column {
            name: "rejected",
            holds: Holds::Bool,
            optional: true,
            what: "A false kill at 1e-2? Null where undecided.",
        },
    ],
};
/// One run of a mutant, or of the original (`baseline`), on one input.
pub static EVALUATIONS: Schema = Schema {
    file: "evaluations.parquet",
    row: "One run of a mutant, or of the original (`baseline`), on one input.",
    columns: &[
        PROBLEM,
        Column {
            name: "mutant",
            holds: Holds::Text,
            optional: false,
            what: "The mutant's id, or `baseline`.",
        },
        RECIPE,
        Column {
            name: "schedule",
            holds: Holds::Text,
            optional: false,
            what: "`hardware` (round-robin with jitter) or `run-ahead` (one warp runs until it blocks), both in the arena memory of a GPU; `races` (the same with the race detector); `sanitize` (strict memory, every detector).",
        },
        SEED,
        Column { name: "end", holds: Holds::Text, optional: false, what: "As in kill-matrix.parquet." },
        THRESHOLD_OFFICIAL,
        THRESHOLD_TRUTH,
        Column {
            name: "max_abs",
            holds: Holds::Float,
            optional: false,
            what: "Largest absolute error against float64, in the unit of the output.",
        },
        Column {
            name: "max_rel",
            holds: Holds::Float,
            optional: false,
            what: "Largest relative error against float64, without unit.",
        },
        Column {
            name: "at",
            holds: Holds::Count,
            optional: false,
            what: "Row-major index of the element that sets `threshold_truth`.",
        },
        Column {
            name: "instructions",
            holds: Holds::Count,
            optional: false,
            what: "Warp instructions executed.",
        },
        Column {
            name: "note",
            holds: Holds::Text,
            optional: true,
            what: "What ended it, or what the detectors saw; null where there is nothing to say.",
        },
        Column {
            name: "digest",
            holds: Holds::Text,
            optional: true,
            what: "XXH64 of the outputs' bytes, in hexadecimal: equal where two versions gave the same bits; null without output.",
        },
    ],
};
/// One run of an external checker.
pub static CHECKS: Schema = Schema {
    file: "checks.parquet",
    row: "One run of an external checker.",
    columns: &[
        PROBLEM,
        Column { name: "checker", holds: Holds::Text, optional: false, what: "The checker's protocol." },
        Column {
            name: "subject",
            holds: Holds::Text,
            optional: false,
            what: "The mutant's id, or the name of a correct implementation.",
        },
        RECIPE,
        SEED,
        Column {
            name: "verdict",
            holds: Holds::Text,
            optional: false,
            what: "`accepts`, `rejects`, `fault` (no output to show), `failed` or `timed_out` (the checker's own failures), `exhausted` or `unsupported`.",
        },
        Column {
            name: "note",
            holds: Holds::Text,
            optional: true,
            what: "What the checker said where it failed.",
        },
    ],
};
/// Every table, in the order of documents.
pub static TABLES: [&Schema; 7] =
    [&MUTANTS, &INPUTS, &KILL_MATRIX, &VERDICTS, &CONTROLS, &EVALUATIONS, &CHECKS];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_table_and_column_is_named_once_and_defined_by_a_sentence() {
        let files: BTreeSet<&str> = TABLES.iter().map(|t| t.file).collect();
        assert_eq!(files.len(), TABLES.len());
        for t in TABLES {
            let names: BTreeSet<&str> = t.columns.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), t.columns.len(), "{}", t.file);
            for c in t.columns {
                assert!(c.what.ends_with(['.', '?']) && c.what.len() > 10, "{} {}", t.file, c.name);
                let snake = c.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
                assert!(snake, "{} {}", t.file, c.name);
            }
        }
    }
}
