//! Runs every case of `testdata/ptx/{pass,fail,unsupported}` at the repository's root.
//!
//! A case is `NAME.ptx` and `NAME.toml` beside it. The folder says what is expected: `pass` runs clean and gives the
//! memory that the TOML states, `fail` gives exactly the findings that `//~ ERROR kind` comments mark (at the line of the
//! comment; `//~^ ERROR` means the line above, `//~| ERROR kind` in the first lines a finding without a line),
//! `unsupported` is refused at load with the spelling that `//~ UNSUPPORTED` marks. Each case runs under both schedules, several seeds, and
//! both handler variants' results are compared elsewhere. Cases are found, never listed; a file without its partner
//! fails.
//!
//! Since a finding names the source line of `.loc`, the runner drops the file's own `.loc` and puts one with the line
//! of the PTX text before every instruction.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Fill, Init, LaunchSpec, LoadError, Loaded, Memory, Options, Outcome,
    Ptr, Role, Sanitize, Schedule, Session, Status,
};
use assay_tensor::DType;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    kernel: Option<String>,
    #[serde(default = "one")]
    grid: [u64; 3],
    block: [u64; 3],
    #[serde(default)]
    shared: u64,
    /// `all` (default), `races`, `off`.
    sanitize: Option<String>,
    memory: Option<String>,
    fill: Option<String>,
    schedule: Option<String>,
    seeds: Option<Vec<u64>>,
    budget: Option<u64>,
    /// `finding` and `ok` follow from the folder; `exhausted` is said here.
    status: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    buffer: Vec<BufferCase>,
    #[serde(default)]
    printf: Vec<String>,
}

fn one() -> [u64; 3] {
    [1, 1, 1]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferCase {
    name: String,
    dtype: DType,
    len: u64,
    official: Option<u64>,
    /// `input`, `output` (default), `scratch`.
    role: Option<String>,
    /// `uninit` (default), `zeros`, `arange`, or a list.
    init: Option<toml::Value>,
    /// The whole contents afterwards, or the first elements.
    expect: Option<Vec<toml::Value>>,
    /// One value for all elements.
    expect_all: Option<toml::Value>,
    /// Bits in hexadecimal, where a value cannot be written down.
    expect_bits: Option<Vec<String>>,
}

fn number(v: &toml::Value) -> f64 {
    match v {
        toml::Value::Integer(i) => *i as f64,
        toml::Value::Float(f) => *f,
        other => panic!("`{other}` is no number"),
    }
}

fn encode(dtype: DType, v: &toml::Value) -> Vec<u8> {
    let i = if let toml::Value::Integer(i) = v { *i } else { 0 };
    match dtype {
        DType::F32 => (number(v) as f32).to_le_bytes().to_vec(),
        DType::F64 => number(v).to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(number(v)).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(number(v)).to_le_bytes().to_vec(),
        _ => i.to_le_bytes()[..dtype.size_bytes() as usize].to_vec(),
    }
}

fn bits(b: &[u8]) -> u64 {
    b.iter().rev().fold(0, |v, x| v << 8 | u64::from(*x))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx")
}

/// All cases of a folder, sorted; panics on orphans.
fn cases(folder: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let topics = std::fs::read_dir(root().join(folder)).expect("the folder of cases");
    for topic in topics {
        for file in std::fs::read_dir(topic.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            match path.extension().and_then(|e| e.to_str()) {
                Some("ptx") => {
                    assert!(path.with_extension("toml").exists(), "{} has no .toml", path.display());
                    out.push(path);
                }
                Some("toml") => {
                    assert!(path.with_extension("ptx").exists(), "{} has no .ptx", path.display());
                }
                _ => panic!("{} is neither .ptx nor .toml", path.display()),
            }
        }
    }
    out.sort();
    assert!(!out.is_empty(), "no cases in {folder}");
    out
}

/// Puts `.loc` with the text's own lines before every instruction.
fn located(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0i32;
    for (k, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("").trim();
        let directive = code.starts_with('.') || code.is_empty();
        if code.starts_with(".loc\t") || code.starts_with(".loc ") || code.starts_with(".file") {
            out.push('\n');
            continue;
        }
        let bare = code.trim_start_matches(['{', '}']).trim();
        let instruction = depth > 0
            && !directive
            && code.ends_with(';')
            && bare.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
            && !bare.starts_with("prototype");
        if instruction {
            let at = line.find(bare).unwrap_or(0);
            out.push_str(&line[..at]);
            out.push_str(&format!(".loc 1 {} 0 ", k + 1));
            out.push_str(&line[at..]);
        } else {
            out.push_str(line);
        }
        out.push('\n');
        depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
    }
    out.push_str("\n.file 1 \"case.ptx\"\n");
    out
}

/// The findings that the comments ask for: kind and line.
fn wanted(text: &str, word: &str) -> BTreeSet<(String, Option<u32>)> {
    let mut out = BTreeSet::new();
    for (k, line) in text.lines().enumerate() {
        let Some((_, note)) = line.split_once("//~") else { continue };
        let up = note.chars().take_while(|c| *c == '^').count();
        let nowhere = note.starts_with('|');
        let note = note.trim_start_matches(['^', '|']).trim();
        let Some(rest) = note.strip_prefix(word) else { continue };
        for kind in rest.trim().split(',') {
            let line = (!nowhere).then_some((k + 1 - up) as u32);
            out.insert((kind.trim().to_owned(), line));
        }
    }
    out
}

fn options(case: &Case, schedule: Schedule, seed: u64) -> Options {
    Options {
        memory: match case.memory.as_deref() {
            None | Some("strict") => Memory::Strict,
            Some("arena") => Memory::Arena,
            Some(other) => panic!("memory `{other}`"),
        },
        fill: match case.fill.as_deref() {
            None | Some("noise") => Fill::Noise,
            Some("zeros") => Fill::Zeros,
            Some("nan") => Fill::Nan,
            Some(other) => panic!("fill `{other}`"),
        },
        sanitize: match case.sanitize.as_deref() {
            None | Some("all") => Sanitize::ALL,
            Some("races") => Sanitize { races: true, ..Sanitize::OFF },
            Some("off") => Sanitize::OFF,
            Some(other) => panic!("sanitize `{other}`"),
        },
        schedule,
        seed,
        fill_seed: seed,
        instruction_budget: case.budget.unwrap_or(3_000_000),
        ..Options::default()
    }
}

struct Ran {
    outcome: Outcome,
    buffers: Vec<Vec<u8>>,
}

fn run(case: &Case, loaded: &Arc<Loaded>, options: Options) -> Ran {
    run_as(case, loaded, options, false, &Blocks::All)
}

/// The same, with every buffer sparse or some blocks alone.
fn run_as(case: &Case, loaded: &Arc<Loaded>, options: Options, sparse: bool, blocks: &Blocks) -> Ran {
    let kernel = case.kernel.clone().unwrap_or_else(|| loaded.kernels().next().expect("a kernel").to_owned());
    let mut session = Session::new(Arc::clone(loaded), options);
    let mut pointers: Vec<(String, Ptr)> = Vec::new();
    for b in &case.buffer {
        let size = b.len * b.dtype.size_bytes();
        let list: Option<Vec<u8>> = match &b.init {
            None => None,
            Some(toml::Value::String(s)) => match s.as_str() {
                "uninit" => None,
                "zeros" => Some(vec![0; size as usize]),
                "arange" => {
                    let element = |i| {
                        let v = if b.dtype.is_float() {
                            toml::Value::Float(i as f64)
                        } else {
                            toml::Value::Integer(i)
                        };
                        encode(b.dtype, &v)
                    };
                    Some((0..b.len as i64).flat_map(element).collect())
                }
                other => panic!("init `{other}`"),
            },
            Some(toml::Value::Array(a)) => Some(a.iter().flat_map(|v| encode(b.dtype, v)).collect()),
            Some(other) => panic!("init `{other}`"),
        };
        let role = match b.role.as_deref() {
            None | Some("output") => Role::Output,
            Some("input") => Role::Input,
            Some("scratch") => Role::Scratch,
            Some(other) => panic!("role `{other}`"),
        };
        let init = list.as_deref().map_or(Init::Uninit, Init::Bytes);
        let mut spec = BufferSpec::new(&b.name, size, role, b.dtype, init);
        spec.sparse = sparse;
        spec.official_bytes = b.official.map_or(size, |n| n * b.dtype.size_bytes());
        pointers.push((b.name.clone(), session.alloc(spec).expect("room")));
    }
    let args: Vec<Arg> = case
        .args
        .iter()
        .map(|a| match a.strip_prefix('&') {
            Some(rest) => {
                let (name, offset) = rest.split_once('+').unwrap_or((rest, "0"));
                let p = pointers.iter().find(|(n, _)| n == name).expect("a buffer of that name").1;
                Arg::Pointer(p, offset.parse().expect("an offset"))
            }
            None => {
                let (ty, v) = a.split_once(':').expect("type:value");
                let v: toml::Value = v
                    .parse::<i64>()
                    .map_or_else(|_| toml::Value::Float(v.parse().expect("a number")), toml::Value::Integer);
                Arg::Bytes(encode(ty.parse().expect("a dtype"), &v))
            }
        })
        .collect();
    let mut outcome = session.launch(&LaunchSpec {
        kernel: &kernel,
        grid: case.grid,
        block: case.block,
        dynamic_shared: case.shared,
        args: &args,
        blocks,
    });
    if !outcome.faulted() && outcome.status != Status::Exhausted {
        outcome.findings.extend(session.finish());
    }
    let sizes = case.buffer.iter().map(|b| b.len * b.dtype.size_bytes());
    let buffers = pointers
        .iter()
        .zip(sizes)
        .map(|((_, p), size)| {
            assert_eq!(session.is_sparse(*p), sparse);
            let mut bytes = vec![0; size as usize];
            session.read_at(*p, 0, &mut bytes).expect("all of it");
            bytes
        })
        .collect();
    Ran { outcome, buffers }
}

fn read_case(path: &Path) -> (String, Case) {
    let text = std::fs::read_to_string(path).unwrap();
    let toml = std::fs::read_to_string(path.with_extension("toml")).unwrap();
    let case: Case = toml::from_str(&toml).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (text, case)
}

fn load(path: &Path, text: &str) -> Result<Arc<Loaded>, LoadError> {
    let module =
        assay_ptx::parse_module(&located(text)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let loaded = Loaded::new(&module)?;
    for k in loaded.kernels() {
        loaded.check(k)?;
    }
    Ok(Arc::new(loaded))
}

fn check_buffers(name: &str, case: &Case, ran: &Ran) {
    for (b, got) in case.buffer.iter().zip(&ran.buffers) {
        let size = b.dtype.size_bytes() as usize;
        let mut want: Vec<u64> = Vec::new();
        if let Some(list) = &b.expect {
            want = list.iter().map(|v| bits(&encode(b.dtype, v))).collect();
        }
        if let Some(v) = &b.expect_all {
            want = vec![bits(&encode(b.dtype, v)); b.len as usize];
        }
        if let Some(list) = &b.expect_bits {
            want = list.iter().map(|v| u64::from_str_radix(v, 16).expect("hexadecimal")).collect();
        }
        for (k, w) in want.iter().enumerate() {
            let g = bits(&got[k * size..(k + 1) * size]);
            assert_eq!(
                g,
                *w,
                "{name}: `{}`[{k}] is {g:#x}, expected {w:#x}; all: {:x?}",
                b.name,
                got.chunks(size).map(bits).collect::<Vec<_>>()
            );
        }
    }
}

fn schedules(case: &Case) -> Vec<(Schedule, u64)> {
    let all = [Schedule::Hardware, Schedule::RunAhead];
    all.into_iter()
        .filter(|s| match case.schedule.as_deref() {
            None => true,
            Some("hardware") => *s == Schedule::Hardware,
            Some("run-ahead") => *s == Schedule::RunAhead,
            Some(other) => panic!("schedule `{other}`"),
        })
        .flat_map(|s| {
            let seeds = case.seeds.clone().unwrap_or_else(|| vec![0, 1, 7]);
            seeds.into_iter().map(move |seed| (s, seed))
        })
        .collect()
}

/// Runs `f` on every case, and fails with the names of those that failed.
fn each(paths: Vec<PathBuf>, f: impl Fn(&Path)) {
    let failed: Vec<String> = paths
        .iter()
        .filter(|p| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(p))).is_err())
        .map(|p| p.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned()))
        .collect();
    assert!(failed.is_empty(), "{} of {} cases fail: {failed:?}", failed.len(), paths.len());
}

#[test]
fn passing_cases_run_clean_and_give_their_memory() {
    each(cases("pass"), |path| {
        let name = path.display().to_string();
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (schedule, seed) in schedules(&case) {
            let options = options(&case, schedule, seed);
            let what = format!("{name} ({schedule:?}, seed {seed})");
            let checked = run(&case, &loaded, options.clone());
            let found: Vec<_> =
                checked.outcome.findings.iter().map(|f| (f.kind, f.line, &f.message)).collect();
            assert_eq!(checked.outcome.status, Status::Ok, "{what}: {found:?} {:?}", checked.outcome.reason);
            assert!(found.is_empty(), "{what}: {found:?}");
            check_buffers(&what, &case, &checked);
            if !case.printf.is_empty() {
                assert_eq!(checked.outcome.printf, case.printf, "{what}");
            }
            // The detectors change nothing, and the same seed gives the same again.
            let plain = run(&case, &loaded, Options { sanitize: Sanitize::OFF, ..options.clone() });
            assert_eq!(plain.buffers, checked.buffers, "{what}: without detectors");
            let again = run(&case, &loaded, options);
            assert_eq!(again.buffers, checked.buffers, "{what}: again");
            assert_eq!(again.outcome.instructions, checked.outcome.instructions, "{what}: again");
        }
    });
}

/// The order in which divergent lanes and warps run decides nothing where no hazard is found.
#[test]
fn passing_cases_give_the_same_in_any_order_of_fragments_and_warps() {
    // `activemask` tells the order itself.
    let orderless = |p: &PathBuf| {
        let (text, case) = read_case(p);
        case.schedule.is_none() && !text.contains("activemask")
    };
    let paths = cases("pass").into_iter().filter(orderless).collect();
    each(paths, |path| {
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut first: Option<Vec<Vec<u8>>> = None;
        for seed in 0..6 {
            // The fill stays, in case it shows in what is not expected.
            let base = Options { fill_seed: 1, ..options(&case, Schedule::Shuffled, seed) };
            for sanitize in [base.sanitize, Sanitize::OFF] {
                let what = format!("{} (seed {seed})", path.display());
                let ran = run(&case, &loaded, Options { sanitize, ..base.clone() });
                assert_eq!(ran.outcome.status, Status::Ok, "{what}: {:?}", ran.outcome);
                check_buffers(&what, &case, &ran);
                assert_eq!(first.get_or_insert_with(|| ran.buffers.clone()), &ran.buffers, "{what}");
            }
        }
    });
}

#[test]
fn failing_cases_report_what_their_comments_mark() {
    each(cases("fail"), |path| {
        let name = path.display().to_string();
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let want = wanted(&text, "ERROR");
        for (schedule, seed) in schedules(&case) {
            let ran = run(&case, &loaded, options(&case, schedule, seed));
            let got: BTreeSet<(String, Option<u32>)> =
                ran.outcome.findings.iter().map(|f| (f.kind.name().to_owned(), f.line)).collect();
            let messages: Vec<_> = ran.outcome.findings.iter().map(|f| &f.message).collect();
            assert_eq!(got, want, "{name} ({schedule:?}, seed {seed}): {messages:#?}");
            let status = match case.status.as_deref() {
                None => Status::Finding,
                Some("exhausted") => Status::Exhausted,
                Some(other) => panic!("status `{other}`"),
            };
            let expected = if ran.outcome.status == Status::Ok && !got.is_empty() {
                Status::Finding
            } else {
                ran.outcome.status
            };
            assert_eq!(expected, status, "{name}");
            check_buffers(&name, &case, &ran);
        }
    });
}

/// Passing and failing cases that run in strict memory.
fn strict_cases() -> Vec<PathBuf> {
    let mut all = cases("pass");
    all.extend(cases("fail"));
    all.retain(|p| read_case(p).1.memory.as_deref() != Some("arena"));
    all
}

#[test]
fn sparse_buffers_give_the_same_bits_and_findings_as_dense_ones() {
    each(strict_cases(), |path| {
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (schedule, seed) in schedules(&case) {
            for sanitize in [Sanitize::ALL, Sanitize::OFF] {
                let options = Options { sanitize, page_bytes: 64, ..options(&case, schedule, seed) };
                let what = format!("{} ({schedule:?}, seed {seed}, {sanitize:?})", path.display());
                let dense = run(&case, &loaded, options.clone());
                let sparse = run_as(&case, &loaded, options, true, &Blocks::All);
                assert_eq!(sparse.buffers, dense.buffers, "{what}");
                assert_eq!(sparse.outcome.findings, dense.outcome.findings, "{what}");
                let rest = |o: &Outcome| (o.status, o.reason.clone(), o.instructions, o.printf.clone());
                assert_eq!(rest(&sparse.outcome), rest(&dense.outcome), "{what}");
            }
        }
    });
}

#[test]
fn a_list_of_all_blocks_and_a_sample_that_holds_all_are_the_whole_grid() {
    each(strict_cases(), |path| {
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let total = case.grid.iter().product::<u64>();
        let list = Blocks::List((0..total).collect());
        let sample = Blocks::Sample { seed: 1, random: 64 * total };
        for blocks in [list, sample] {
            let options = options(&case, Schedule::Hardware, 1);
            let all = run(&case, &loaded, options.clone());
            let listed = run_as(&case, &loaded, options, false, &blocks);
            if listed.outcome.blocks.total > 0 {
                assert_eq!(
                    listed.outcome.blocks.list.len() as u64,
                    total.min(listed.outcome.blocks.executed)
                );
            }
            assert_eq!(listed.buffers, all.buffers, "{}", path.display());
            let same = Outcome { blocks: all.outcome.blocks.clone(), ..listed.outcome };
            assert_eq!(same, all.outcome, "{}", path.display());
        }
    });
}

#[test]
fn unsupported_cases_are_refused_with_their_spelling_and_line() {
    each(cases("unsupported"), |path| {
        let name = path.display().to_string();
        let (text, _) = read_case(path);
        let want = wanted(&text, "UNSUPPORTED");
        match load(path, &text) {
            Err(LoadError::Unsupported { spelling, line, .. }) => {
                assert_eq!(BTreeSet::from([(spelling, Some(line))]), want, "{name}");
            }
            Err(e) => panic!("{name}: {e}"),
            Ok(_) => panic!("{name}: loaded"),
        }
    });
}

/// Prints what every passing case gives, for [`the_portable_variant_gives_the_same_bits`].
#[test]
#[ignore = "run by another test in a process with another handler variant"]
fn print_digest() {
    for path in cases("pass") {
        let (text, case) = read_case(&path);
        let loaded = load(&path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let ran = run(&case, &loaded, options(&case, Schedule::Hardware, 3));
        // FNV-1a over everything that a kernel wrote.
        let digest = ran
            .buffers
            .iter()
            .flatten()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
        println!("digest {} {digest:016x} {}", path.display(), ran.outcome.instructions);
    }
}

#[test]
fn the_portable_variant_gives_the_same_bits() {
    let digests = |simd: &str| {
        let out = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["print_digest", "--ignored", "--nocapture", "--exact"])
            .env("ASSAY_SIMD", simd)
            .output()
            .expect("this test's own binary runs");
        let text = String::from_utf8(out.stdout).unwrap();
        // The harness may put its own words before a line's beginning.
        text.lines()
            .filter_map(|l| l.split_once("digest ").map(|(_, d)| d.to_owned()))
            .filter(|d| d.contains(".ptx "))
            .collect::<Vec<_>>()
    };
    let (native, portable) = (digests("auto"), digests("portable"));
    assert_eq!(native.len(), cases("pass").len());
    assert_eq!(native, portable);
}

/// Outputs, findings, counts: all of it, where both engines run without detectors.
#[test]
fn compiled_code_agrees_with_the_interpreter_on_every_case() {
    each(cases("pass").into_iter().chain(cases("fail")).collect(), |path| {
        let name = path.display().to_string();
        let (text, case) = read_case(path);
        let loaded = load(path, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
        for schedule in [Schedule::Hardware, Schedule::RunAhead] {
            for seed in [0, 1, 7] {
                let options = Options { sanitize: Sanitize::OFF, ..options(&case, schedule, seed) };
                let interp = run(&case, &loaded, Options { engine: Engine::Interp, ..options.clone() });
                let jit = run(&case, &loaded, Options { engine: Engine::Jit, ..options });
                assert_eq!(jit.outcome, interp.outcome, "{name} ({schedule:?}, seed {seed})");
                assert_eq!(jit.buffers, interp.buffers, "{name} ({schedule:?}, seed {seed})");
            }
        }
    });
}
