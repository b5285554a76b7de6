//! A made-up run: fourteen problems whose mutants behave as a hash of their number says.

use assay_judge::EvaluationEnd::{Exhausted, Fault, Mismatch, NonFinite, Pass, Unsupported};
use assay_measure::{
    ControlRun, FailedBaseline, Filtered, Graded, InputRow, KillMatrix, MatrixCell, MutantRow, Origin,
    REFEREE_TOLERANCES, ReferenceRow, RuleInfo, Summary, SummaryInput, Timing, Unrefereeable, Violations,
    builtin, summarise,
};
use assay_report::{Bundle, MutantRecord, SourceFile};

const SOURCE: &str = "\
// A made-up kernel; é and 𝄞 take more than one byte.
__global__ void kernel(const float* x, float* y, int n) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) {
        y[i] = fmaxf(tile[threadIdx.x], 0.0f) * 2.0f;
    }
}

void launch(const float* x, float* y, int n) {
    kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
";

/// (family, rule, line, old, new)
const FAULTS: [(&str, &str, usize, &str, &str); 9] = [
    ("arithmetic", "swap_arithmetic", 8, "* 2.0f", "/ 2.0f"),
    ("arithmetic", "shift_literal", 8, "2.0f;", "2.001f;"),
    ("indexing", "swap_index", 4, "blockIdx.x", "blockIdx.y"),
    ("indexing", "shift_index", 8, "tile[threadIdx.x]", "tile[threadIdx.x ^ 1]"),
    ("semantic", "drop_clamp", 8, "fmaxf(tile[threadIdx.x], 0.0f)", "tile[threadIdx.x]"),
    ("boundary", "relational_boundary", 7, "i < n", "i <= n"),
    ("boundary", "ceil_to_floor", 13, "(n + 255) / 256", "n / 256"),
    ("synchronisation", "drop_barrier", 6, "__syncthreads();", ";"),
    ("precision", "half_accumulator", 5, "x[i]", "__half2float(__float2half(x[i]))"),
];

const PROBLEMS: [(u32, u32, &str); 14] = [
    (1, 1, "square_matmul"),
    (1, 4, "matrix_vector"),
    (1, 19, "relu"),
    (1, 23, "softmax"),
    (1, 26, "gelu"),
    (1, 36, "rms_norm"),
    (1, 40, "layer_norm"),
    (1, 42, "max_pool_2d"),
    (1, 47, "sum_over_dim"),
    (1, 51, "argmax_over_dim"),
    (1, 57, "conv_transpose_2d"),
    (1, 63, "conv_2d"),
    (1, 89, "cumsum"),
    (2, 12, "gemm_multiply_leaky_relu"),
];

const RECIPES: [&str; 19] = [
    "official#0",
    "official#1",
    "official#2",
    "official#3",
    "official#4",
    "official*3#0",
    "official*0.01#0",
    "official*-1#0",
    "loguniform(-3,3)#1",
    "loguniform(-3,3)#2",
    "loguniform(-3,3)#3",
    "outlier(0.01,1000)#1",
    "normal(1)@N=65#7",
    "ties(4)@N=1#3",
    "normal(1)#0",
    "normal(1)#1",
    "normal(1)#2",
    "normal(1)#3",
    "normal(1)#4",
];

fn origin(recipe: &str) -> Origin {
    match recipe {
        r if r.starts_with("official#") => Origin::Official,
        r if r.starts_with("official*") => Origin::Kbv,
        r if r.starts_with("loguniform") => Origin::CiFuzz,
        r if r.starts_with("normal(1)#") => Origin::Protocol,
        _ => Origin::Targeted,
    }
}

/// A small hash: the same on every machine.
fn hash(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b).wrapping_add(0x1234_5678_9abc_def1);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The diff that changes one line, with three lines of context.
pub fn diff(source: &str, line: usize, old: &str, new: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let from = line.saturating_sub(4);
    let to = (line + 3).min(lines.len());
    let mut out = format!("--- a/kernel.cu\n+++ b/kernel.cu\n@@ -{0},{1} +{0},{1} @@\n", from + 1, to - from);
    for (i, text) in lines.iter().enumerate().take(to).skip(from) {
        if i + 1 == line {
            assert!(text.contains(old), "line {line} has no `{old}`");
            out.push_str(&format!("-{text}\n+{}\n", text.replacen(old, new, 1)));
        } else {
            out.push_str(&format!(" {text}\n"));
        }
    }
    out
}

/// How mutant number `h` fares on an input: mostly caught at once, sometimes only by scale, shape or not at all.
fn cell(h: u64, weight: u64, input: usize) -> MatrixCell {
    let recipe = RECIPES[input];
    let kill = |t: f64| MatrixCell::new(Mismatch, t, t);
    let pass = MatrixCell::new(Pass, 1e-7, 1e-7);
    match h % 100 {
        0 => MatrixCell::new(Exhausted, f64::INFINITY, f64::INFINITY),
        1 if input % 5 == 4 => MatrixCell::new(Unsupported, f64::INFINITY, f64::INFINITY),
        2..=5 => MatrixCell::new(Fault, f64::INFINITY, f64::INFINITY),
        r if r >= 100 - weight => match h / 100 % 4 {
            0 if recipe.contains('@') => kill(3.2),
            1 if recipe.contains("*3") || recipe.contains("outlier") => kill(0.4 + (h / 1000 % 90) as f64),
            2 if recipe.contains("outlier") || recipe.contains("loguniform") => {
                MatrixCell::new(NonFinite, f64::INFINITY, f64::INFINITY)
            }
            2 | 3 if recipe.starts_with("official") => MatrixCell::new(Pass, 4e-3, 4e-3),
            3 if recipe.contains("outlier") => kill(0.02),
            _ => pass,
        },
        _ => kill(0.5),
    }
}

/// The bundle of the run.
pub fn bundle() -> Bundle {
    run().0
}

/// The bundle of the run and its matrices.
pub fn run() -> (Bundle, Vec<KillMatrix>) {
    let mut matrices = Vec::new();
    let mut mutants = Vec::new();
    let mut sources = Vec::new();
    for (at, &(level, id, name)) in PROBLEMS.iter().enumerate().skip(1) {
        let key = format!("level{level}/{id}_{name}");
        let mut m = KillMatrix::new(level, id, name);
        m.unrefereeable = name == "cumsum";
        m.unrefereeable_why = m.unrefereeable.then_some(Unrefereeable::ReferenceStrays);
        m.inputs = RECIPES.iter().map(|r| InputRow::new(*r, origin(r), 1e-6)).collect();
        m.inputs[11].validity = Graded::at(2e-2 * f64::from(u32::try_from(at % 3 / 2).unwrap()));
        for (i, input) in m.inputs.iter_mut().enumerate() {
            let t = if i == 8 && at % 4 == 0 { 3e-2 } else { 1e-6 };
            let end = if t > 1e-2 { Mismatch } else { Pass };
            let max_abs = [4e-6, 0.02, 0.5, 3.0, 40.0][at % 5];
            let violations = REFEREE_TOLERANCES
                .iter()
                .map(|&t| Violations { tolerance: t, positions: if m.unrefereeable { 9 } else { 0 } })
                .collect();
            let error = if m.unrefereeable { 0.74 } else { 1e-6 };
            input.reference =
                Some(ReferenceRow { elements: 4096, max_abs, error, max_abs_error: error, violations });
            input.controls =
                vec![ControlRun { control: "held-out:reversed".into(), end, official: Graded::at(t) }];
        }
        let mut rows = Vec::new();
        for n in 0..54u64 {
            let h = hash(at as u64, n);
            let (family, rule, line, old, new) = FAULTS[(h / 7 % 9) as usize];
            let weight = match family {
                "precision" => 75,
                "synchronisation" | "boundary" => 28,
                _ => 12,
            };
            let (status, reason) = match (n, h % 50) {
                (50.., _) => ("noncompiling", "kernel.cu(8): error: identifier \"tile2\" is undefined"),
                (48.., _) => ("duplicate", "00ff"),
                (46.., _) => ("equivalent", "same machine code and launcher as the original"),
                (_, 0) => ("quarantined", "exhausted on `official#0`: instruction budget"),
                _ => ("distinct", ""),
            };
            let record = MutantRecord {
                problem: key.clone(),
                id: format!("{h:016x}"),
                rule: rule.into(),
                family: family.into(),
                host: line > 11,
                line: line as u64,
                name: format!("{key}/kernel.cu:{line}:9: replace {old} with {new} in kernel"),
                diff: diff(SOURCE, line, old, new),
                status: status.into(),
                reason: reason.into(),
            };
            if matches!(status, "distinct" | "quarantined") {
                rows.push((h, weight, record.clone()));
            }
            mutants.push(record);
        }
        for (h, _, r) in &rows {
            m.mutants.push(MutantRow {
                id: r.id.clone(),
                name: r.name.clone(),
                rule: r.rule.clone(),
                family: r.family.clone(),
                line: u32::try_from(r.line).unwrap(),
                host: r.host,
                witnessed: false,
                schedule_witnessed: false,
                quarantined: r.status == "quarantined",
                flagged: r.family == "synchronisation" || h % 11 == 0,
                unwitnessed: None,
            });
        }
        let distinct = rows.len() as u64;
        m.filtered =
            Filtered { generated: 54, noncompiling: 4, duplicate_image: 2, equivalent: 48 - distinct };
        for (row, (h, weight, _)) in rows.iter().enumerate() {
            if m.mutants[row].quarantined {
                continue;
            }
            for input in 0..RECIPES.len() {
                m.set_cell(row, input, cell(*h, *weight, input)).unwrap();
            }
            let witnessed = (0..RECIPES.len()).any(|i| m.kills(row, i, assay_measure::Tolerance::PAPER));
            m.mutants[row].witnessed = witnessed;
            m.mutants[row].schedule_witnessed = !witnessed && m.mutants[row].family == "synchronisation";
        }
        sources.push(SourceFile { problem: key, path: "kernel.cu".into(), text: SOURCE.into() });
        matrices.push(m);
    }
    let mut protocols = builtin().unwrap();
    // The tables that ship name real problems' inputs, which this made-up run lacks.
    protocols.iter_mut().for_each(|p| p.problems.clear());
    let rules: Vec<RuleInfo> =
        FAULTS.iter().map(|f| RuleInfo { id: f.1.into(), family: f.0.into() }).collect();
    let mut environment = serde_json::Map::new();
    environment.insert("assay".into(), "0.1.0".into());
    environment.insert("nvrtc".into(), "13.5".into());
    environment.insert("device".into(), "CPU (PTX interpreter)".into());
    environment.insert("jobs".into(), 2.into());
    let summary: Summary = summarise(SummaryInput {
        matrices: &matrices,
        protocols: &protocols,
        rules: &rules,
        baselines_failed: &[FailedBaseline {
            problem: "1/1".into(),
            name: "square_matmul".into(),
            reason: "`level1/1_square_matmul` on input `official#0`: wrong: threshold 5.000e-1 against float32".into(),
        }],
        timing: Timing {
            compile_ms_per_mutant: 8.31,
            evaluations: 12_345,
            evaluations_per_second: 187.4,
            wall_seconds: 92.13,
        },
        environment,
        caveats: vec![
            "Desk extents: 14 of 14 problems run smaller than official so that a CPU affords them; shorter reductions \
             widen what a tolerance can see"
                .into(),
            "Synchronisation faults depend on the scheduler's model: `hardware` seldom loses a race, as on small GPU \
             workloads."
                .into(),
        ],
        seed: 0,
        resamples: 500,
    })
    .unwrap();
    let folder = "assay-runs/audit-20260101-120000".to_owned();
    (Bundle::gather(summary, folder, mutants, sources, protocols, &matrices), matrices)
}

/// The bundle with every text from outside replaced by a hostile one.
#[allow(dead_code, reason = "not every test binary uses it")]
pub fn hostile() -> Bundle {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}\"'&\nnext";
    let mut b = bundle();
    b.folder = format!("runs/{evil}");
    b.summary.headline_protocol = evil.into();
    b.summary.official_protocol = evil.into();
    b.summary.environment.insert(evil.into(), evil.into());
    b.summary.caveats.push(evil.into());
    for p in &mut b.summary.protocols {
        p.name = evil.into();
        p.published_denominator = Some(evil.into());
    }
    for f in &mut b.summary.families {
        f.family = evil.into();
    }
    for r in &mut b.summary.rules {
        r.id = evil.into();
    }
    for r in &mut b.summary.problems {
        r.name = evil.into();
        r.reason = Some(evil.into());
    }
    if let Some(w) = &mut b.summary.worst_problem {
        w.why = evil.into();
        w.name = evil.into();
    }
    for r in &mut b.summary.blind_bands {
        r.name = evil.into();
    }
    for r in b.summary.referee.iter_mut().flat_map(|r| &mut r.strays) {
        r.problem = evil.into();
    }
    for v in &mut b.summary.survivors {
        v.name = evil.into();
        v.problem_name = evil.into();
        v.rule = evil.into();
        v.witness = Some(evil.into());
    }
    for m in &mut b.summary.miss_patterns {
        m.missed_by = vec![evil.into()];
    }
    for m in &mut b.mutants {
        m.name = evil.into();
        m.reason = evil.into();
        m.diff = m.diff.replace("threadIdx", "</pre><script>\u{1b}[31m");
    }
    for s in &mut b.sources {
        s.text = s.text.replace("threadIdx", "</pre><script>\u{1b}[31m");
    }
    b
}
