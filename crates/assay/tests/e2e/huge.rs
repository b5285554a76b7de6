//! Kernels over more than 2^32 elements, from `testdata/huge`: each with an index of 32 bits, whose fault is found and
//! named, and with one of 64 bits, which is right; within 1 GiB of memory. Cases are found, never listed.
//!
//! What a kernel wrote is compared with a reference at just those elements. A wrong value counts as explained if taking
//! the index modulo 2^32, for the load or for the store, gives it.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use assay_tensor::{Generator, safetensors_io};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{ASSAY, assay, repository};

/// Most memory that the command, and whatever it starts, may take at a time.
pub const LIMIT_BYTES: u64 = 1 << 30;
const WRAP: u64 = 1 << 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    grid: [u64; 3],
    block: [u64; 3],
    args: Vec<String>,
    /// The buffer that is compared.
    output: String,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    kernel: String,
    /// Arguments of another type, by name.
    #[serde(default)]
    args: BTreeMap<String, String>,
    /// No finding, every value right, every boundary written.
    #[serde(default)]
    right: bool,
    /// A finding of this kind in this buffer, whose message says all of these.
    finding: Option<String>,
    buffer: Option<String>,
    #[serde(default)]
    says: Vec<String>,
    /// The loop does not end.
    #[serde(default)]
    exhausted: bool,
    /// Points of the coverage that are not written.
    #[serde(default)]
    unwritten: Vec<String>,
    /// Some values are wrong, and an index modulo 2^32 explains all of them.
    #[serde(default)]
    misread: bool,
}

fn families() -> Vec<PathBuf> {
    let folder = repository("testdata/huge");
    let files = std::fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path());
    let (cu, toml): (Vec<_>, Vec<_>) = files.partition(|p| p.extension().is_some_and(|e| e == "cu"));
    for (one, other) in [(&cu, "toml"), (&toml, "cu")] {
        for p in one {
            assert!(p.with_extension(other).exists(), "{} has no .{other}", p.display());
        }
    }
    assert!(!cu.is_empty());
    let mut cu = cu;
    cu.sort();
    cu
}

/// A command's end, what it printed and the most memory that it took.
#[expect(clippy::zombie_processes, reason = "`wait4` waits for it, and tells its memory")]
pub fn measured(args: &[String]) -> (ExitStatus, Value, u64) {
    let mut child = Command::new(ASSAY)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("a pipe"), &mut text).expect("UTF-8");
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().expect("a pipe"), &mut errors).expect("UTF-8");
    let (mut status, pid) = (0, i32::try_from(child.id()).expect("a process id"));
    // SAFETY: `rusage` is plain numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and not yet waited for; both places outlive the call.
    let ended = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(ended, pid, "{}", std::io::Error::last_os_error());
    let document = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}\n{errors}"));
    (ExitStatus::from_raw(status), document, u64::try_from(usage.ru_maxrss).expect("a size") * 1024)
}

/// The tensors of a family, as their `--arg` say.
struct Inputs {
    shapes: BTreeMap<String, Vec<u64>>,
    generators: BTreeMap<String, Generator>,
}

impl Inputs {
    fn of(family: &Family) -> Inputs {
        let mut inputs = Inputs { shapes: BTreeMap::new(), generators: BTreeMap::new() };
        for a in &family.args {
            let (name, value) = a.split_once('=').expect("NAME=VALUE");
            let Some((left, generator)) = value.split_once("]:") else { continue };
            let extents = left.split_once('[').expect("a shape").1.split(',');
            inputs.shapes.insert(name.into(), extents.map(|e| e.parse().expect("an extent")).collect());
            inputs.generators.insert(name.into(), Generator::parse(generator).expect("a generator"));
        }
        inputs
    }

    fn value(&self, name: &str, i: u64) -> f64 {
        self.generators[name].value_at(i)
    }
}

/// What element `i` of the output should hold, and what it holds if the offsets of loads are taken modulo 2^32.
fn reference(family: &str, inputs: &Inputs, i: u64) -> (f64, f64) {
    let both = |name: &str, source: u64| (inputs.value(name, source), inputs.value(name, source % WRAP));
    match family {
        "copy" => both("x", i),
        "gather" => {
            let dim = inputs.shapes["table"][1];
            both("table", inputs.value("rows", i / dim) as u64 * dim + i % dim)
        }
        "transpose" => {
            let [height, width] = inputs.shapes["in"][..] else { panic!("a matrix") };
            both("in", i % height * width + i / height)
        }
        "bmm" => {
            let [_, m, k] = inputs.shapes["a"][..] else { panic!("a batch of matrices") };
            let n = inputs.shapes["b"][2];
            let (batch, row, col) = (i / (m * n), i / n % m, i % n);
            let product = |j| {
                inputs.value("a", (batch * m + row) * k + j) * inputs.value("b", (batch * k + j) * n + col)
            };
            // Small integers: exact in any order. The inputs have less than 2^32 elements.
            let sum = (0..k).map(product).sum();
            (sum, sum)
        }
        other => panic!("no reference for `{other}`"),
    }
}

fn check(file: &Path, family: &Family, case: &Case) {
    let name = file.file_stem().and_then(|s| s.to_str()).expect("a name");
    let what = format!("{name}: {}", case.kernel);
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("out.safetensors");
    let dims = |d: [u64; 3]| d.map(|n| n.to_string()).join(",");
    let mut args: Vec<String> =
        vec!["run".into(), file.display().to_string(), "--json".into(), "--quiet".into()];
    args.extend(["--kernel".into(), case.kernel.clone(), "--blocks".into(), "sample".into()]);
    args.extend(["--grid".into(), dims(family.grid), "--block".into(), dims(family.block)]);
    args.extend(["--save".into(), saved.display().to_string()]);
    for a in &family.args {
        let key = a.split_once('=').expect("NAME=VALUE").0;
        args.extend(["--arg".into(), case.args.get(key).map_or_else(|| a.clone(), |v| format!("{key}={v}"))]);
    }
    let started = Instant::now();
    let (status, document, bytes) = measured(&args);
    println!("{what}: {:.1} s, {} MB", started.elapsed().as_secs_f64(), bytes >> 20);
    let findings = document["findings"].as_array().expect("findings");
    let told = format!("{what}: {} {findings:#?} {}", document["status"], document["reason"]);
    assert!(bytes < LIMIT_BYTES, "{what}: {bytes} bytes");

    let code = if case.exhausted { 5 } else { i32::from(case.finding.is_some()) };
    assert_eq!(status.code(), Some(code), "{told}");
    assert!(document["blocks"]["executed"].as_u64() < document["blocks"]["total"].as_u64(), "{what}");
    if let Some(kind) = &case.finding {
        let named = |f: &&Value| {
            f["kind"] == kind.as_str()
                && f["buffer"].as_str() == case.buffer.as_deref()
                && case.says.iter().all(|s| f["message"].as_str().expect("a message").contains(s.as_str()))
        };
        assert!(findings.iter().any(|f| named(&f)), "{told}");
    } else {
        assert!(findings.is_empty(), "{told}");
    }

    let coverage = &document["coverage"][0];
    assert_eq!(coverage["buffer"], family.output.as_str(), "{what}");
    let points = coverage["points"].as_array().expect("points");
    for p in points {
        let missing = case.unwritten.iter().any(|u| p["at"] == u.as_str());
        if case.right || missing {
            assert_eq!(p["written"], case.right, "{what}: {p}");
        }
    }
    for u in &case.unwritten {
        assert!(points.iter().any(|p| p["at"] == u.as_str()), "{what}: no point `{u}`");
    }

    let all = safetensors_io::read(&saved).expect("what was saved");
    let (index, values) =
        (&all[&format!("{}.index", family.output)], &all[&format!("{}.value", family.output)]);
    assert_eq!(Some(values.len()), coverage["written"].as_u64(), "{what}");
    assert_eq!(document["outputs"][&family.output]["written"], coverage["written"], "{what}");
    let inputs = Inputs::of(family);
    let elements = inputs.shapes[&family.output].iter().product::<u64>();
    let mut wrong = 0;
    for k in 0..values.len() {
        let i = u64::try_from(index.get_i128(k).expect("an integer")).expect("an index");
        let got = values.get_f64(k);
        if reference(name, &inputs, i).0 == got {
            continue;
        }
        wrong += 1;
        // The element itself misread, or one that a store took for it.
        let explained = (i..elements).step_by(WRAP as usize).any(|t| {
            let (right, misread) = reference(name, &inputs, t);
            got == right || got == misread
        });
        assert!(explained, "{what}: element {i} is {got}, no index modulo 2^32 explains it");
    }
    assert!(
        !case.right || (wrong == 0 && values.len() > 1000),
        "{what}: {wrong} of {} are wrong",
        values.len()
    );
    assert!(!case.misread || wrong > 0, "{what}: every value is right");
}

#[test]
fn a_32_bit_index_over_more_than_2_to_the_32_elements_is_named_and_a_64_bit_one_is_right() {
    for file in families() {
        let text = std::fs::read_to_string(file.with_extension("toml")).expect("the case");
        let family: Family = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for case in &family.case {
            check(&file, &family, case);
        }
    }
}

#[test]
fn a_listed_block_outside_the_grid_is_pointed_at() {
    let file = repository("testdata/huge/copy.cu").display().to_string();
    let run = ["run", &file, "--kernel", "copy<int>", "--grid", "4", "--block", "32", "--blocks", "0,4"];
    assay(&run).exits(2).says(&["no block 4: the grid has 4", "0,4\n    ^"]);
}
