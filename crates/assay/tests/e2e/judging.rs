//! What protocols say of known faults, and what only the sanitizer sees.

use assay_campaign::{ProtocolVerdict, inputs, judge_source};
use assay_measure::{InputRow, Origin, Tolerance};
use assay_mutate::mutants_in;
use assay_problems::{Operators, Recipe};
use serde_json::Value;

use crate::support::{assay, audited, compiler, database, fixture, problem, repository};

/// The verdict of the protocol of that name.
#[track_caller]
fn of<'a>(verdicts: &'a [ProtocolVerdict], protocol: &str) -> &'a ProtocolVerdict {
    verdicts.iter().find(|v| v.protocol == protocol).unwrap_or_else(|| panic!("no verdict of {protocol}"))
}

#[track_caller]
fn judged(folder: &str, source: &str) -> Vec<ProtocolVerdict> {
    judge_source(&problem(folder), source, compiler(), 2).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn zeros_pass_the_official_softmax_check_and_fail_two_targeted_inputs() {
    let source = std::fs::read_to_string(repository("testdata/e2e/kernels/zeros_softmax.cu")).unwrap();
    let verdicts = judged("problems/level1/23_softmax", &source);
    let official = of(&verdicts, "kernelbench-2025");
    assert!(official.passes, "{official:?}");
    assert_eq!(official.asked.len(), 5, "{official:?}");
    for protocol in ["targeted-2", "targeted-all"] {
        let v = of(&verdicts, protocol);
        assert!(!v.passes && !v.rejected_by.is_empty(), "{v:?}");
    }
    assert!(of(&verdicts, "targeted-2").asked.len() <= 2);
}

#[test]
fn the_unchanged_softmax_passes_every_protocol() {
    let p = problem("problems/level1/23_softmax");
    for v in judged("problems/level1/23_softmax", &p.kernel_source) {
        assert!(v.passes && !v.asked.is_empty(), "{v:?}");
    }
}

#[test]
fn relu_without_its_clamp_passes_every_official_seed_and_is_rejected_by_a_targeted_input() {
    let p = problem("problems/level1/19_relu");
    let clamps: Vec<_> = mutants_in(&p.kernel_source, "kernel.cu")
        .unwrap()
        .into_iter()
        .filter(|m| m.rule == "ClampDropped")
        .collect();
    assert_eq!(clamps.len(), 1, "{clamps:?}");
    let source = clamps[0].apply(&p.kernel_source);
    assert!(source.contains("return v;"), "{}", clamps[0].diff(&p.kernel_source));
    let verdicts = judged("problems/level1/19_relu", &source);
    // Official inputs are never negative, so even an exact comparison would pass.
    for protocol in ["kernelbench-2025", "kernelbench"] {
        let v = of(&verdicts, protocol);
        assert!(v.passes && v.asked.len() == 5, "{v:?}");
    }
    for protocol in ["targeted-2", "targeted-all", "kbv-inputs"] {
        let v = of(&verdicts, protocol);
        assert!(!v.passes, "{v:?}");
    }
}

#[test]
fn a_grid_rounded_down_is_no_equivalent_and_dies_at_a_ragged_shape() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("problems/add_clamp", &run, &[]);
    let db = database(&run).unwrap();
    let (id, status, host): (String, String, bool) = db
        .query_row("SELECT id, status, host FROM mutants WHERE rule = 'CeilToFloorGrid'", [], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?))
        })
        .expect("one mutant of the rule");
    assert!(host, "the grid is computed by the launcher");
    assert_eq!(status, "distinct", "the kernels are the same, the launches are not");
    // At desk extents, a multiple of the block, nothing is lost; at a ragged shape the last block is.
    let mut q = db
        .prepare("SELECT recipe, official FROM evaluations WHERE mutant = ?1 AND schedule = 'hardware'")
        .unwrap();
    let rows: Vec<(String, f64)> =
        q.query_map([&id], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect();
    assert!(rows.len() > 8, "{rows:?}");
    for (recipe, threshold) in &rows {
        let ragged = recipe.contains('@');
        assert!(ragged || *threshold < 1e-4, "{recipe}: {threshold}");
    }
    assert!(rows.iter().any(|(recipe, threshold)| recipe.contains('@') && *threshold > 1e-2), "{rows:?}");
    // The official check does not see it, the targeted inputs do.
    let rule = summary["rules"].as_array().unwrap().iter().find(|r| r["id"] == "CeilToFloorGrid").unwrap();
    assert_eq!((rule["witnessed"].as_u64(), first_protocol(&summary)), (Some(1), "kernelbench-2025"));
    assert_eq!(rule["missed"].as_u64(), Some(1), "{rule}");
}

fn first_protocol(summary: &Value) -> &str {
    summary["headline_protocol"].as_str().unwrap()
}

#[test]
fn the_plain_kernels_are_a_control_on_every_input_and_no_protocol_rejects_them() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("problems/add_clamp", &run, &[]);
    let db = database(&run).unwrap();
    let count = |sql: &str| -> u32 { db.query_row(sql, [], |r| r.get(0)).unwrap() };
    let inputs = count("SELECT count(*) FROM inputs WHERE origin != 'searched'");
    assert!(inputs > 8, "{inputs}");
    let passed = "SELECT count(*) FROM evaluations WHERE mutant = 'plain-kernel' AND end = 'pass'";
    assert_eq!(count(passed), inputs);
    let held_out = count("SELECT count(DISTINCT control) FROM controls");
    let first = &summary["protocols"][0];
    assert_eq!((first["name"].as_str(), first["inputs"].as_u64()), (Some("kernelbench-2025"), Some(5)));
    assert_eq!(first["correct_runs"], 5 * (held_out + 1));
    for protocol in summary["protocols"].as_array().unwrap() {
        assert_eq!(protocol["false_kills"], 0, "{protocol}");
    }
}

#[test]
fn a_barrier_removed_from_the_tiled_matmul_is_reported_around_its_line() {
    let source = problem("problems/level1/1_square_matmul").kernel_source;
    let barriers: Vec<u64> =
        (1..).zip(source.lines()).filter(|(_, l)| l.trim() == "__syncthreads();").map(|(n, _)| n).collect();
    assert_eq!(barriers.len(), 2, "one before and one after the sums");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("matmul.cu");
    let sanitized = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let path = file.to_str().unwrap();
        let mut words =
            vec!["run", path, "--sanitize", "--kernel", "matmul_tiled", "--grid", "2,2", "--block", "16,16"];
        words.extend(more);
        let args = [
            "A=f32[64,64]:uniform(-1,1,seed=1)",
            "B=f32[64,64]:uniform(-1,1,seed=2)",
            "C=f32[64,64]:uninit",
            "N=i32:64",
        ];
        for a in args {
            words.extend(["--arg", a]);
        }
        assay(&words)
    };
    let clean = sanitized(&source, &["--json"]).exits(0).json();
    assert_eq!((clean["status"].as_str(), clean["findings"].as_array().map(Vec::len)), (Some("ok"), Some(0)));
    for (which, &line) in barriers.iter().enumerate() {
        let without: Vec<&str> =
            (1..).zip(source.lines()).map(|(n, l)| if n == line { "        ;" } else { l }).collect();
        let seen = sanitized(&without.join("\n"), &["--json"]).exits(1).json();
        let races: Vec<&Value> =
            seen["findings"].as_array().unwrap().iter().filter(|f| f["kind"] == "race_shared").collect();
        assert!(!races.is_empty(), "{seen}");
        for race in races {
            let lines = [race["line"].as_u64().unwrap(), race["other"]["line"].as_u64().unwrap()];
            let (above, below) = (lines[0].min(lines[1]), lines[0].max(lines[1]));
            // The loop's second barrier orders the sums before the next trip's stores, which stand above it.
            let other = barriers[1 - which];
            let apart = if which == 0 {
                above < line && line < below
            } else {
                above < other && other < below && below < line
            };
            assert!(apart, "removed line {line}, race between {lines:?}");
        }
    }
    // For people: both accesses, each with its line, and how to order them.
    let page = sanitized(&source.replacen("__syncthreads();", ";", 1), &[]).exits(1).stdout;
    for part in ["race_shared: ", "= (1) ", "= (2) ", "help: ", "replay: assay run "] {
        assert!(page.contains(part), "no `{part}` in\n{page}");
    }
}

#[test]
fn a_kernel_that_only_writes_half_is_judged_by_the_fill_not_by_luck() {
    let p = problem("testdata/e2e/problems/add_clamp");
    let half = p.kernel_source.replace("if (i < n) {", "if (i < n / 2) {");
    assert_ne!(half, p.kernel_source);
    for v in judge_source(&p, &half, compiler(), 1).unwrap_or_else(|e| panic!("{e}")) {
        // `targeted-2` has no table for a problem of these tests and asks nothing.
        assert_eq!(v.passes, v.asked.is_empty(), "{v:?}");
    }
}

#[test]
fn a_source_that_does_not_compile_is_an_error_with_its_line() {
    let p = problem("testdata/e2e/problems/add_clamp");
    let source = std::fs::read_to_string(fixture("bad/no_compile/kernel.cu")).unwrap();
    let e = judge_source(&p, &source, compiler(), 1).unwrap_err().to_string();
    assert!(e.contains("biass") && e.contains("line 8"), "{e}");
}

#[test]
fn a_sign_mixed_sum_over_4096_terms_at_300_is_invalid_and_a_larger_same_sign_one_is_valid() {
    // A product over 4096 terms; `prepare` is what an audit makes its inputs with.
    let p = problem("problems/level1/6_matmul_large_k");
    let variance = |recipe: &str| {
        let recipe: Recipe = recipe.parse().unwrap_or_else(|e| panic!("{recipe}: {e}"));
        let input = inputs::prepare(&Operators, &p, &recipe, Origin::Targeted, true)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(input.dims["K"], 4096);
        InputRow::new(input.text, input.origin, input.variance)
    };
    let valid = |recipe: &str| variance(recipe).is_valid(Tolerance::PAPER);
    // 65,536 sums: among fewer, none may cancel far enough.
    for seed in 0..2 {
        let at = |kind: &str| format!("{kind}@K=4096,M=256,N=256#{seed}");
        assert!(valid(&at("normal(1)")), "small and sign-mixed");
        assert!(!valid(&at("normal(1)*300")), "sums cancel, their rounding does not");
        // Each over ten times as large, so products over a hundred times; nothing cancels.
        assert!(valid(&at("samesign(1)*6000")));
    }
}

#[test]
fn problems_that_nobody_can_referee_are_found_reported_and_not_scored() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("unrefereeable", &run, &[]);
    let p = &summary["pipeline"];
    assert_eq!((&p["problems"], &p["unrefereeable"], &p["witnessed"]), (&2.into(), &2.into(), &0.into()));
    for row in summary["protocols"].as_array().unwrap() {
        assert_eq!((&row["witnessed"], &row["correct_runs"]), (&0.into(), &0.into()), "{row}");
    }
    let of = |problem: &str| {
        let rows = summary["problems"].as_array().unwrap();
        rows.iter().find(|r| r["problem"] == problem).unwrap_or_else(|| panic!("no {problem}"))
    };
    for (problem, reason) in
        [("9/11", "fails its own float64 evaluation"), ("9/12", "stores zeros passes on every input")]
    {
        let row = of(problem);
        assert_eq!(row["status"], "unrefereeable");
        assert!(row["reason"].as_str().unwrap().contains(reason), "{row}");
        assert!(row["distinct"].as_u64() > Some(0), "its mutants are reported: {row}");
    }
    // Per tolerance and extents, with the positions at which float32 leaves its own float64 evaluation.
    let mut before = 0;
    for (row, tolerance) in summary["referee"].as_array().unwrap().iter().zip([1e-2, 1e-3, 1e-4]) {
        assert_eq!((&row["tolerance"], &row["extents"]), (&tolerance.into(), &"desk".into()));
        let strays = row["strays"].as_array().unwrap();
        assert_eq!(strays.len(), 1, "{row}");
        assert_eq!((&strays[0]["problem"], &strays[0]["elements"]), (&"9/11".into(), &384.into()));
        let violations = strays[0]["violations"].as_u64().unwrap();
        assert!(violations > before && violations <= 384, "a tighter tolerance sees more: {row}");
        before = violations;
    }
    let bands = summary["blind_bands"].as_array().unwrap();
    assert_eq!((&bands[0]["problem"], &bands[0]["zeros_pass"]), (&"9/12".into(), &true.into()));
    let page = assay(&["report", run.to_str().unwrap()]).exits(0).stdout;
    for part in ["no kernel can be judged", "Blind bands", "9/11", "9/12", "1e-3"] {
        assert!(page.contains(part), "no `{part}` in\n{page}");
    }
}

#[test]
fn width_faults_are_witnessed_beyond_two_to_the_32_elements_and_every_other_mutant_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let summary = audited("wide", &run, &[]);
    let witnessed = summary["width"]["witnessed"].as_u64().unwrap();
    assert!(witnessed >= 3, "{}", summary["width"]);
    let official = &summary["width"]["protocols"][0];
    assert_eq!(official["detected"], 0, "{official}");
    let db = database(&run).unwrap();
    let huge: Vec<(String, String)> = db
        .prepare("SELECT DISTINCT recipe, schedule FROM evaluations WHERE schedule = 'sampled'")
        .unwrap()
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(huge.len(), 1, "{huge:?}");
    // 1000 * B > 2^32: the smallest such B.
    assert!(huge[0].0.starts_with("normal(1)@B=4296016#"), "{huge:?}");
    // Distinct mutants without a witness have a reason, and the summary counts them.
    let open: i64 = db
        .query_row("SELECT count(*) FROM mutants WHERE status = 'distinct' AND reason <> ''", [], |r| {
            r.get(0)
        })
        .unwrap();
    let counted: i64 = summary["unwitnessed"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["reason"] != "quarantined")
        .map(|r| r["mutants"].as_i64().unwrap() + r["width"].as_i64().unwrap())
        .sum();
    let pipeline = &summary["pipeline"];
    let n = |key: &str| pipeline[key].as_i64().unwrap();
    assert_eq!(open, counted);
    assert_eq!(counted, n("distinct") - n("witnessed") - n("quarantined"), "{pipeline}");
    assert!(summary["unwitnessed"].as_array().unwrap().iter().all(|r| !r["reason"].is_null()));
}
