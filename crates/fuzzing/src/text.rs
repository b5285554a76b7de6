//! Parsers take anything: targets over texts, and the edits that make texts worth trying.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_ptx::{ControlFlow, Module};
use assay_simt::{
    Arg, Blocks, BufferSpec, Init, LaunchSpec, Loaded, Options, Outcome, Role, Sanitize, Session,
};
use assay_tensor::{DType, Generator};

use crate::choices::Choices;

type Checked = Result<(), String>;

/// A fuzz target over texts.
pub struct Target {
    /// Its name, which is that of its binary in `fuzz`.
    pub name: &'static str,
    /// What must hold for any bytes.
    pub check: fn(&[u8]) -> Checked,
    /// Texts to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the language.
    pub words: &'static [&'static str],
    /// Cases in a short run.
    pub cases: u64,
}

/// All of them. `--arg` has its own in the command's crate, whose parser is not a library.
pub const TARGETS: &[Target] = &[
    Target { name: "ptx_parse", check: ptx_parse, seeds: ptx_seeds, words: PTX_WORDS, cases: 1500 },
    Target { name: "problem", check: problem, seeds: problem_seeds, words: TOML_WORDS, cases: 600 },
    Target { name: "launcher", check: launcher, seeds: kernel_seeds, words: HOST_WORDS, cases: 600 },
    Target { name: "recipe", check: recipe, seeds: recipe_seeds, words: RECIPE_WORDS, cases: 4000 },
    Target { name: "protocol", check: protocol, seeds: protocol_seeds, words: TOML_WORDS, cases: 600 },
    Target {
        name: "reference",
        check: reference,
        seeds: reference_seeds,
        words: REFERENCE_WORDS,
        cases: 2000,
    },
    Target { name: "mutants", check: mutants, seeds: kernel_seeds, words: HOST_WORDS, cases: 60 },
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A module that parses is decoded and run for a few instructions, in both handler variants alike.
///
/// # Errors
/// Where they differ.
pub fn ptx_parse(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    let Ok(module) = assay_ptx::parse_module(&text) else { return Ok(()) };
    for f in &module.functions {
        ControlFlow::of(f);
    }
    let (wide, portable) = match (Loaded::new(&module), Loaded::portable(&module)) {
        (Ok(w), Ok(p)) => (Arc::new(w), Arc::new(p)),
        (Err(_), Err(_)) => return Ok(()),
        _ => return Err("one handler variant loads it, the other does not".into()),
    };
    for kernel in wide.kernels().take(2) {
        for sanitize in [Sanitize::OFF, Sanitize::ALL] {
            let (a, b) =
                (dry_run(&module, &wide, kernel, sanitize), dry_run(&module, &portable, kernel, sanitize));
            if a != b {
                return Err(format!("handler variants differ in `{kernel}`: {a:#?}\n{b:#?}"));
            }
        }
    }
    Ok(())
}

/// A launch with buffers of a page for pointers and small numbers for the rest.
fn dry_run(module: &Module, loaded: &Arc<Loaded>, kernel: &str, sanitize: Sanitize) -> (Outcome, Vec<u8>) {
    let options =
        Options { sanitize, instruction_budget: 3000, memory_cap_bytes: 8 << 20, ..Options::default() };
    let mut session = Session::new(Arc::clone(loaded), options);
    let page: Vec<u8> = (0..4096u32).map(|k| ((k * 37) >> 3) as u8).collect();
    let spec = BufferSpec {
        may_write: true,
        ..BufferSpec::new("page", 4096, Role::Input, DType::U8, Init::Bytes(&page))
    };
    let buffer = session.alloc(spec).expect("room for a page");
    let params = module.entry(kernel).map(|(_, f)| f.params.as_slice()).unwrap_or_default();
    let args: Vec<Arg> = params
        .iter()
        .map(|p| match p.size_bytes {
            8 => Arg::Pointer(buffer, 0),
            // Too long a parameter for the launch: it is to be refused.
            n => Arg::Bytes((0..n.min(1 << 16)).map(|k| if k % 4 == 0 { 5 } else { 0 }).collect()),
        })
        .collect();
    let outcome = session.launch(&LaunchSpec {
        kernel,
        grid: [2, 1, 1],
        block: [48, 1, 1],
        dynamic_shared: 1024,
        args: &args,
        blocks: &Blocks::All,
    });
    (outcome, session.read(buffer).to_vec())
}

/// A problem's TOML beside a kernel that fits one of them: an error, or a problem that can be planned.
///
/// # Errors
/// None; the parser must only come back.
pub fn problem(bytes: &[u8]) -> Checked {
    thread_local! {
        static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    }
    FOLDER.with_borrow_mut(|folder| {
        if folder.is_none() {
            let made = tempfile::tempdir().map_err(|e| e.to_string())?;
            std::fs::copy(
                root().join("testdata/e2e/problems/row_sum/kernel.cu"),
                made.path().join("kernel.cu"),
            )
            .map_err(|e| e.to_string())?;
            *folder = Some(made);
        }
        let Some(folder) = folder else { return Ok(()) };
        std::fs::write(folder.path().join("problem.toml"), bytes).map_err(|e| e.to_string())?;
        if let Ok(p) = assay_problems::load(folder.path()) {
            for extents in [assay_problems::Extents::Official, assay_problems::Extents::Desk] {
                if let Ok(dims) = p.dims_for(&assay_problems::Recipe::official(1), extents) {
                    let _ = p.plan(&dims);
                    for input in &p.inputs {
                        let _ = p.shape_of(input, &dims);
                    }
                }
            }
        }
        Ok(())
    })
}

/// Host code: an error, or a plan; the device's part of any file has its length and lines.
///
/// # Errors
/// Where the device's part has other lines.
pub fn launcher(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    let device = assay_problems::device_source(&text);
    if device.matches('\n').count() != text.matches('\n').count() {
        return Err("the device's part has another number of lines".into());
    }
    let Ok(host) = assay_problems::HostProgram::parse(&text) else { return Ok(()) };
    let mut bindings = assay_problems::Bindings::default();
    for p in host.parameters() {
        match &p.kind {
            assay_problems::ParameterKind::Pointer { dtype, .. } => {
                bindings.buffers.insert(p.name.clone(), *dtype);
            }
            assay_problems::ParameterKind::Integer => {
                bindings.ints.insert(p.name.clone(), 7);
            }
            assay_problems::ParameterKind::Float => {
                bindings.floats.insert(p.name.clone(), 0.5);
            }
            assay_problems::ParameterKind::Stream => {}
        }
    }
    if let Ok(plan) = host.plan(&bindings) {
        let again = host.plan(&bindings).map_err(|e| format!("planned once, then: {e}"))?;
        if plan != again {
            return Err("planned twice, with two results".into());
        }
    }
    Ok(())
}

/// A recipe that parses prints itself as what parses to the same; so does a generator.
///
/// # Errors
/// Where it does not.
pub fn recipe(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    if let Ok(r) = assay_problems::Recipe::parse(&text) {
        let printed = r.to_string();
        let again = assay_problems::Recipe::parse(&printed).map_err(|e| format!("`{printed}`: {e}"))?;
        if again != r {
            return Err(format!("`{printed}` is another recipe than `{text}`"));
        }
    }
    if let Ok(g) = Generator::parse(&text) {
        let printed = g.to_string();
        let again = Generator::parse(&printed).map_err(|e| format!("`{printed}`: {e}"))?;
        for i in [0, 1, 1000, u64::from(u32::MAX) + 5, u64::MAX] {
            let (a, b) = (g.value_at(i), again.value_at(i));
            if a.to_bits() != b.to_bits() {
                return Err(format!("`{text}` and `{printed}` differ at {i}: {a} and {b}"));
            }
        }
    }
    Ok(())
}

/// A protocol that parses prints itself as what parses to the same.
///
/// # Errors
/// Where it does not.
pub fn protocol(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    let Ok(p) = assay_measure::Protocol::parse(&text, "p.toml") else { return Ok(()) };
    let printed = p.to_toml();
    let again = assay_measure::Protocol::parse(&printed, "p.toml").map_err(|e| format!("{e}\n{printed}"))?;
    if again.to_toml() == printed { Ok(()) } else { Err(format!("it prints as two texts: {printed}")) }
}

/// Lines of a reference: an error, or a program.
///
/// # Errors
/// None; the parser must only come back.
pub fn reference(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    if let Ok(p) = assay_ops::Program::parse(&text, &["x", "weight", "bias", "a", "b"], &["eps", "scale"]) {
        let _ = (p.defined(), p.used(), p.operators());
    }
    Ok(())
}

/// Mutants of any text: each differs from it, and edits places that exist.
///
/// # Errors
/// For a mutant that changes nothing.
pub fn mutants(bytes: &[u8]) -> Checked {
    let text = text(bytes);
    let Ok(list) = assay_mutate::mutants_in(&text, "kernel.cu") else { return Ok(()) };
    let mut ids = BTreeMap::new();
    for m in list {
        if m.apply(&text) == text {
            return Err(format!("`{}` changes nothing", m.name));
        }
        if let Some(other) = ids.insert(m.id.clone(), m.name.clone()) {
            return Err(format!("`{}` and `{other}` have one id", m.name));
        }
    }
    Ok(())
}

// Seeds.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below `folder` with this ending, sorted.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(f) = folders.pop() {
        for entry in std::fs::read_dir(&f).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let out: Vec<Vec<u8>> = paths.iter().filter_map(|p| std::fs::read(p).ok()).collect();
    assert!(!out.is_empty(), "no {ending} in {folder}");
    out
}

fn ptx_seeds() -> Vec<Vec<u8>> {
    let mut out = files("testdata/ptx", ".ptx");
    let random = |k: u64| crate::choices::Random(k).bytes(400);
    out.extend((0..20).map(|k| crate::exec::program(&random(k)).text().into_bytes()));
    // Large modules make slow cases.
    out.retain(|t| t.len() < 20_000);
    out
}

fn problem_seeds() -> Vec<Vec<u8>> {
    let mut out = files("testdata/e2e", "problem.toml");
    out.extend(files("problems", "problem.toml"));
    out
}

fn kernel_seeds() -> Vec<Vec<u8>> {
    let mut out = files("testdata/e2e", "kernel.cu");
    out.extend(files("problems", "kernel.cu"));
    out
}

fn protocol_seeds() -> Vec<Vec<u8>> {
    files("protocols", ".toml")
}

fn recipe_seeds() -> Vec<Vec<u8>> {
    [
        "official#42",
        "official*-3#42",
        "normal(1)@M=63,N=65#7",
        "outlier(0.01,1000)+params#1",
        "spike(last,50,1)*0.5+params@B=2#18446744073709551615",
        "loguniform(-3,3)*1e+3@A=1#0",
        "shifted(1000,0.5)#1",
        "index(7)",
        "uniform(-1,1,seed=7)",
        "normal(0,1,seed=3)",
        "list(1,2,3)",
        "full(-2.5)",
        "hash",
    ]
    .iter()
    .map(|s| s.as_bytes().to_vec())
    .collect()
}

fn reference_seeds() -> Vec<Vec<u8>> {
    problem_seeds()
        .iter()
        .filter_map(|t| {
            let t = String::from_utf8_lossy(t).into_owned();
            let at = t.find("reference")?;
            Some(t[at..].split("\"\"\"").nth(1).or_else(|| t[at..].split('"').nth(1))?.as_bytes().to_vec())
        })
        .collect()
}

const PTX_WORDS: &[&str] = &[
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    "%d0",
    "%r0",
    ".b8",
    ".b32",
    ".u64",
    ".pred",
    ".f16x2",
    "0",
    "1",
    "-1",
    "4096",
    "0xffffffff",
    "18446744073709551615",
    "0f7F800000",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    "|",
    "@%p1 ",
    "@!%p1 ",
    "bar.sync 0;\n",
    "bra L1;\n",
    "ret;\n",
    "exit;\n",
    "trap;\n",
    "L1:\n",
    ".v4",
    ".shared",
    ".local",
    ".global",
    ".param",
    "call f, ();\n",
    "brx.idx %r1, t;\n",
    "shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n",
    ".reg .b32 %q<9>;\n",
    "atom.shared.add.u32 %r1, [%r1], 1;\n",
    "red.global.add.f32 [%rd1], 0f3F800000;\n",
    ".align 16",
    "%tid.x",
    "cvta.to.global.u64",
    "mov.u64",
    "ld.u32",
    "st.u8",
    "div.s64",
    "rem.u16",
    "fma.rn.f64",
    "cvt.rzi.s64.f32",
];
const TOML_WORDS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "=",
    "\"",
    "\"\"\"",
    "{",
    "}",
    ",",
    "name",
    "level",
    "id",
    "dims",
    "inputs",
    "outputs",
    "0",
    "-1",
    "9223372036854775807",
    "1e308",
    "nan",
    "inf",
    "official",
    "desk",
    "shape",
    "dtype",
    "init",
    "\"B\"",
    "B*D",
    "B/0",
    "((((((((",
    "reference",
    "randint(0,9)",
    "\n",
    "atol",
    "rtol",
    "suite_budget",
    "true",
    "\u{0}",
    "\u{e9}",
];
const HOST_WORDS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "<<<",
    ">>>",
    ";",
    ",",
    "launch",
    "void ",
    "int ",
    "const ",
    "dim3 ",
    "for (;;)",
    "while (1)",
    "if (",
    "else ",
    "return ",
    "0",
    "-1",
    "2147483647",
    "9223372036854775808",
    "1 << 40",
    "/",
    "%",
    "/ 0",
    "++",
    "&",
    "*",
    "float* ",
    "template <int N> ",
    "#define A A A\n",
    "#define F(x) F(x)(x)\n",
    "#if ",
    "#endif\n",
    "#include <x>\n",
    "\\\n",
    "/*",
    "*/",
    "//",
    "\"",
    "'",
    "R\"(",
    "__global__ ",
    "__shared__ ",
    "__syncthreads();",
    "a?b:c",
    "launch(x)",
    "::",
    "[",
];
const RECIPE_WORDS: &[&str] = &[
    "official",
    "normal(",
    "uniform(",
    "spike(first,",
    "constant(",
    "list(",
    "full(",
    "zeros",
    "arange",
    "hash",
    ")",
    ",",
    "*",
    "+params",
    "@",
    "M=",
    "#",
    "1e308",
    "-1e-308",
    "nan",
    "inf",
    "0",
    "18446744073709551616",
    "seed=",
    "1e+5",
    "\u{e9}",
];
const REFERENCE_WORDS: &[&str] = &[
    "x",
    "weight",
    "=",
    "(",
    ")",
    ",",
    "matmul",
    "conv2d",
    "softmax",
    "dim=",
    "-1",
    "[1, 2]",
    "True",
    "None",
    "**",
    "@",
    "+",
    "1e308",
    "\n",
    "relu(",
    "x.T",
    "((((((((((",
    "y = ",
    "'",
    "0",
    "9999999999999999999",
];

/// A text made from `seeds` by some edits: the kind that keep most of it whole.
///
/// # Panics
/// Without seeds.
pub fn edited(c: &mut Choices<'_>, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut out = c.pick(seeds).clone();
    for _ in 0..=c.below(6) {
        let at = c.below(out.len() + 1);
        match c.below(10) {
            0 => {
                let end = (at + 1 + c.below(12)).min(out.len());
                out.drain(at..end);
            }
            1 | 2 => {
                let word = c.pick(words).as_bytes();
                let end = (at + c.below(6)).min(out.len());
                out.splice(at..end, word.iter().copied());
            }
            3 => {
                // A line twice, or as many times as make it large.
                let (from, to) = line(&out, at);
                let copy = out[from..to].to_vec();
                let times = 1 + c.below(3) * c.below(40);
                for _ in 0..times {
                    out.splice(to..to, copy.iter().copied());
                }
            }
            4 => {
                let (from, to) = line(&out, at);
                out.drain(from..to);
            }
            5 => {
                // A line of another text.
                let other = c.pick(seeds);
                let (from, to) = line(other, c.below(other.len() + 1));
                let (_, end) = line(&out, at);
                out.splice(end..end, other[from..to].iter().copied());
            }
            6 | 7 => number(c, &mut out, at),
            8 => {
                if let Some(b) = out.get_mut(at) {
                    *b = c.byte();
                }
            }
            _ => {
                // Two lines change places.
                let (a, b) = (line(&out, at), line(&out, c.below(out.len() + 1)));
                let (first, second) = if a.0 < b.0 { (a, b) } else { (b, a) };
                if first.1 <= second.0 {
                    let mut swapped = out[..first.0].to_vec();
                    swapped.extend(&out[second.0..second.1]);
                    swapped.extend(&out[first.1..second.0]);
                    swapped.extend(&out[first.0..first.1]);
                    swapped.extend(&out[second.1..]);
                    out = swapped;
                }
            }
        }
    }
    out
}

/// The line around a byte, its end included.
fn line(text: &[u8], at: usize) -> (usize, usize) {
    let from = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |k| k + 1);
    let to = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |k| at + k + 1);
    (from, to)
}

/// The next number gets another value, or stands for the one before it.
fn number(c: &mut Choices<'_>, out: &mut Vec<u8>, at: usize) {
    let Some(from) = out[at..].iter().position(u8::is_ascii_digit).map(|k| at + k) else { return };
    let to = out[from..].iter().position(|b| !b.is_ascii_digit()).map_or(out.len(), |k| from + k);
    const VALUES: &[&str] = &[
        "0",
        "1",
        "2",
        "3",
        "7",
        "8",
        "16",
        "31",
        "32",
        "33",
        "64",
        "255",
        "1024",
        "65536",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
    ];
    let value = c.pick(VALUES);
    out.splice(from..to, value.bytes());
}
