//! The page and the reproducers of a run folder, from records of a small emulated device.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use assay_sweep::cases::{self, Case};
use assay_sweep::device::Device;
use assay_sweep::drive::{SeriesSummary, Summary, switches};
use assay_sweep::geometry::Layout;
use assay_sweep::point::{Compare, Phase, Point};
use assay_sweep::record::{Outcome, Record};
use assay_sweep::run::in_process;
use assay_sweep::values::Kind;
use assay_sweep::{page, repro};
use assay_tensor::DType;

const BOUNDARIES: [u64; 2] = [1 << 14, 1 << 15];
const HOSTILE: &str = "too <b>large</b> & \"</title><script>alert(1)</script>\n# \u{202e}'''\\";

fn device() -> Device {
    let raises = HOSTILE.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let text = format!(
        "name = \"small\"\nsource = \"made up\"\nversion = \"1.0\"\n\
         [[path]]\nwhen = \"out.numel > 2^15\"\nignores_strides = true\n\
         [[path]]\nwhen = \"view.numel >= 2^13\"\nraises = \"{raises}\"\n"
    );
    Device::parse(&text, "a test").unwrap()
}

fn small() -> (Summary, Vec<Record>) {
    let device = device();
    let mut records = Vec::new();
    let mut series = Vec::new();
    for layout in [Layout::Contig, Layout::BT] {
        let mut outcomes = Vec::new();
        for batch in [16u64, 63, 64, 65, 127, 128, 129] {
            for kind in [Kind::Random, Kind::BRc] {
                let point = Point {
                    phase: Phase::Search,
                    shape: "16,8,16".parse().unwrap(),
                    dtype: DType::F32,
                    layout,
                    kind,
                    batch,
                    offset: 0,
                    seed: 0,
                    compare: Compare::Full,
                    backward: false,
                };
                let r = in_process(&device, &point, Some(1e-5), &BOUNDARIES).unwrap();
                if kind == Kind::Random {
                    outcomes.push((batch, r.outcome().unwrap()));
                }
                records.push(r);
            }
        }
        series.push(SeriesSummary {
            shape: "out 16,8,16".into(),
            dtype: "f32".into(),
            layout: layout.name().into(),
            input: "random".into(),
            switch_points: switches(&outcomes),
            outcomes,
        });
    }
    let mut outcomes: BTreeMap<&'static str, usize> = BTreeMap::new();
    for r in &records {
        *outcomes.entry(r.outcome().unwrap().name()).or_insert(0) += 1;
    }
    let summary = Summary {
        plan: "small".into(),
        backend: "emulated:<i>small</i>".into(),
        runs: records.len(),
        calibration: 0,
        batch_sizes: 7,
        outcomes,
        tolerance: BTreeMap::from([("f32".to_owned(), 1e-5)]),
        series,
    };
    (summary, records)
}

#[test]
fn the_page_shows_each_series_and_outcome_and_what_the_wrong_values_are() {
    let (summary, records) = small();
    for outcome in [Outcome::Ok, Outcome::Error, Outcome::Wrong] {
        assert!(summary.outcomes[outcome.name()] > 0, "the device shows {}", outcome.name());
    }
    let html = page::html(&summary, &records, &BOUNDARIES).unwrap();
    for part in [
        "out 16,8,16",
        ">f32 contig<",
        ">f32 bT<",
        "cell ok",
        "cell error",
        "cell wrong",
        // The first wrong size, beside the boundary, with what a pointer tells.
        "129 batches of 256 = 33,024 elements: wrong",
        "the strides of a transposed operand are ignored",
        "batches 0 to 128",
        "f32 bT b_rc",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    // As many cells as runs: a run more or less shows.
    assert_eq!(html.matches("class=\"cell ").count(), records.len());
    let again = page::html(&summary, &records[..records.len() - 1], &BOUNDARIES).unwrap();
    assert_eq!(again.matches("class=\"cell ").count(), records.len() - 1);
}

#[test]
fn text_of_strangers_stays_text() {
    let (mut summary, mut records) = small();
    records[0].environment = serde_json::json!({"<u>key</u>": "<img src=x onerror=1>"});
    records[0].operators = vec!["<s>op</s>".into()];
    for r in &mut records {
        "<em>dev".clone_into(&mut r.device);
        r.shape_id = format!("<h1>{}", r.shape_id);
    }
    for plan in ["<small>", "cases"] {
        plan.clone_into(&mut summary.plan);
        let html = page::html(&summary, &records, &BOUNDARIES).unwrap();
        for tag in ["<b>large", "<script", "<img", "<u>", "<em>", "<h1>out", "<i>small", "<s>", "\u{202e}"] {
            assert!(!html.contains(tag), "{tag}");
        }
        assert!(html.contains("&lt;script&gt;"), "the message is there as text");
    }
}

#[test]
fn where_rules_cannot_be_learned_the_page_says_why() {
    let (summary, mut records) = small();
    let mut other = records[0].clone();
    other.cls = "error".into();
    records.push(other);
    let html = page::html(&summary, &records, &BOUNDARIES).unwrap();
    assert!(html.contains("None were learned:") && html.contains("no rule over sizes and layouts"), "{html}");
}

/// A Python that has PyTorch: of `ASSAY_TORCH_PYTHON`, else none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ASSAY_TORCH_PYTHON").map(PathBuf::from).filter(|p| p.is_file());
    if python.is_none() {
        eprintln!("skipped: no torch (ASSAY_TORCH_PYTHON names no interpreter)");
    }
    python
}

/// Records of every built-in case that claim to be wrong, at a small size.
fn case_records(cases: &[Case]) -> Vec<Record> {
    let (_, records) = small();
    let mut out = Vec::new();
    for case in cases {
        let mut r = records[0].clone();
        r.op.clone_from(&case.name);
        r.shape_id.clone_from(&case.name);
        r.dtype.clone_from(&case.dtypes[0]);
        r.cls = "wrong".into();
        r.b = 3;
        // Of a running sum in f32.
        r.tol = Some(1e-3);
        out.push(r);
    }
    out
}

#[test]
fn a_reproducer_is_python_that_finds_a_right_device_right() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut records) = small();
    // A gradient and an offset, which the small device does not have.
    for (layout, pad, op) in [("offset", 5, "bmm"), ("aT", 0, "bmm"), ("slice", 0, "bmm_backward")] {
        let mut r = records[0].clone();
        r.layout = layout.into();
        r.pad_batches = (pad > 0).then_some(pad);
        r.op = op.into();
        r.cls = "truncated".into();
        r.cls_out = (op != "bmm").then(|| "wrong".to_owned());
        records.push(r);
    }
    let all: Vec<Case> = cases::names().iter().map(|n| Case::find(&n.0).unwrap()).collect();
    let mut folders = vec![(records, Vec::new())];
    for part in all.chunks(8) {
        folders.push((case_records(part), part.to_vec()));
    }
    let mut written = Vec::new();
    for (i, (records, cases)) in folders.iter().enumerate() {
        let out = dir.path().join(i.to_string());
        std::fs::create_dir(&out).unwrap();
        let files = repro::write(&out, records, cases).unwrap();
        assert!(!files.is_empty() && files.len() <= 8);
        if i > 0 {
            assert_eq!(files.len(), cases.len(), "one for each case");
        }
        written.extend(files);
    }
    for file in &written {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.lines().count() <= 75, "{} lines:\n{text}", text.lines().count());
        assert!(text.is_ascii() && text.contains("Seen by assay"), "{text}");
        assert!(text.contains("\nDEVICE = \"cpu\"\n"), "{text}");
    }
    // Where there is no Python at all nothing can be said of it.
    if let Ok(o) = Command::new("python3").args(["-m", "py_compile"]).args(&written).output() {
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    }
    let Some(python) = python() else { return };
    // One process for all, because importing PyTorch takes longer than what they do.
    let all = dir.path().join("all.py");
    std::fs::write(&all, "import runpy, sys\nfor f in sys.argv[1:]:\n    print(f)\n    runpy.run_path(f, run_name='__main__')\n")
        .unwrap();
    let o = Command::new(python).arg(&all).args(&written).output().unwrap();
    let said = String::from_utf8_lossy(&o.stdout);
    assert!(o.status.success(), "{said}{}", String::from_utf8_lossy(&o.stderr));
    assert_eq!(said.lines().filter(|l| *l == "ok").count(), written.len(), "{said}");
}

#[test]
fn nothing_failed_means_no_reproducer_and_old_ones_go() {
    let dir = tempfile::tempdir().unwrap();
    let (_, records) = small();
    assert!(!repro::write(dir.path(), &records, &[]).unwrap().is_empty());
    let right: Vec<Record> = records.into_iter().filter(|r| r.cls == "ok").collect();
    assert!(repro::write(dir.path(), &right, &[]).unwrap().is_empty());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
