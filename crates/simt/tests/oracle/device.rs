//! Instructions as kernels: each thread loads its operands, executes, stores its results.

use std::fmt::Write as _;
use std::sync::Arc;

use assay_simt::{Arg, BufferSpec, Init, LaunchSpec, LoadError, Loaded, Options, Role, Session, Status};
use assay_tensor::DType;

use super::table::Spelling;
use super::vectors::{Random, bits_of, value};

/// One instruction to run.
pub struct Program {
    /// Types of the operands that vary.
    inputs: Vec<&'static str>,
    /// Width of each result: 1 for a predicate.
    results: Vec<u32>,
    body: String,
    vectors: Vec<Vec<u64>>,
    pub outputs: usize,
}

impl Program {
    /// Vectors: one per thread of a block.
    pub fn threads(&self) -> usize {
        self.vectors.len()
    }

    /// Operands of thread `t`, the varying ones and then the literals.
    pub fn vector(&self, t: usize) -> &[u64] {
        &self.vectors[t]
    }

    /// The program of one spelling; `None` for operands that it cannot make.
    pub fn of(s: &Spelling, threads: usize) -> Option<Program> {
        let seed = s
            .text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut random = Random(seed);
        let (mut inputs, mut results, mut operands, mut literals) = (vec![], vec![], vec![], vec![]);
        for slot in &s.operands {
            let slot = slot.trim_start_matches('~');
            let (kind, ty) = slot.split_once(':').unwrap_or((slot, "0"));
            let ty: &'static str = match ty {
                "0" | "1" | "2" | "3" => s.ty(ty.parse().ok()?),
                "w" => match s.ty(0) {
                    "u16" => "u32",
                    "s16" => "s32",
                    "u32" => "u64",
                    _ => "s64",
                },
                "b16" => "b16",
                "b32" => "b32",
                "u32" => "u32",
                "pred" => "pred",
                _ => return None,
            };
            match kind {
                "d" => {
                    operands.push(format!("%out{}", results.len()));
                    results.push(bits_of(ty));
                }
                "dp" | "pq" => {
                    operands.push(format!("%out{}|%out{}", results.len(), results.len() + 1));
                    results.push(if kind == "dp" { bits_of(ty) } else { 1 });
                    results.push(1);
                }
                "a" | "b" | "c" | "e" | "r" | "x" => {
                    operands.push(format!("%in{}", inputs.len()));
                    inputs.push(ty);
                }
                "q" => {
                    operands.push(format!("%in{}", inputs.len()));
                    inputs.push("pred");
                }
                "i" => {
                    let v = random.below(256);
                    operands.push(v.to_string());
                    literals.push(v);
                }
                _ => return None,
            }
        }
        let mut body = format!("{} {};", s.text, operands.join(", "));
        if s.has("cc") || matches!(s.name(), "addc" | "subc" | "madc") {
            // The flag comes in as one more operand and goes out as one more result.
            body = format!(
                ".reg .b32 %flag;\nselp.u32 %flag, 1, 0, %in{};\nadd.cc.u32 %flag, %flag, 0xffffffff;\n{body}\n\
                 addc.u32 %flag, 0, 0;\nsetp.ne.u32 %out{}, %flag, 0;",
                inputs.len(),
                results.len()
            );
            inputs.push("pred");
            results.push(1);
        }
        Some(Program::new(inputs, results, body, literals, threads, &mut random))
    }

    pub fn new(
        inputs: Vec<&'static str>,
        results: Vec<u32>,
        body: String,
        literals: Vec<u64>,
        threads: usize,
        random: &mut Random,
    ) -> Program {
        let mut vectors = Vec::with_capacity(threads);
        for _ in 0..threads {
            let mut v: Vec<u64> = inputs.iter().map(|ty| value(ty, random)).collect();
            // Equal operands now and then: comparisons, differences of zero.
            if v.len() > 1 && random.below(16) == 0 && bits_of(inputs[0]) == bits_of(inputs[1]) {
                v[1] = v[0];
            }
            for (x, ty) in v.iter_mut().zip(&inputs) {
                if bits_of(ty) == 8 {
                    // What a register holds above its 8 bits does not count.
                    *x |= random.next() << 8 & 0xff00;
                }
            }
            v.extend(&literals);
            vectors.push(v);
        }
        let outputs = results.len();
        Program { inputs, results, body, vectors, outputs }
    }

    /// The same with operands of the caller's choice.
    pub fn with_vectors(mut self, vectors: Vec<Vec<u64>>) -> Program {
        assert!(vectors.len() <= 1024);
        self.vectors = vectors;
        self
    }

    /// Operands that vary.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn entry(&self, k: usize) -> String {
        let mut t = format!(".visible .entry k{k}(.param .u64 in, .param .u64 out)\n{{\n");
        t += ".reg .b64 %src, %dst, %wide, %off;\n.reg .b32 %tid;\n";
        t += "ld.param.u64 %src, [in];\nld.param.u64 %dst, [out];\nmov.u32 %tid, %tid.x;\n";
        t += "mul.wide.u32 %off, %tid, 8;\nadd.s64 %src, %src, %off;\nadd.s64 %dst, %dst, %off;\n";
        t + &self.part("%", 0, 0) + "ret;\n}\n"
    }

    /// Loads, the instruction and stores; registers begin with `prefix`, operands and results lie at these offsets.
    pub fn part(&self, prefix: &str, input: usize, output: usize) -> String {
        let mut t = String::new();
        let column = self.threads() * 8;
        for (j, ty) in self.inputs.iter().enumerate() {
            let _ = writeln!(t, ".reg {} %in{j};", class(bits_of(ty)));
        }
        for (j, bits) in self.results.iter().enumerate() {
            let _ = writeln!(t, ".reg {} %out{j};", class(*bits));
        }
        for (j, ty) in self.inputs.iter().enumerate() {
            let _ = writeln!(t, "ld.global.u64 %wide, [%src+{}];", input + j * column);
            let _ = match bits_of(ty) {
                1 => writeln!(t, "setp.ne.u64 %in{j}, %wide, 0;"),
                8 | 16 => writeln!(t, "cvt.u16.u64 %in{j}, %wide;"),
                32 => writeln!(t, "cvt.u32.u64 %in{j}, %wide;"),
                _ => writeln!(t, "mov.b64 %in{j}, %wide;"),
            };
        }
        t += &self.body;
        t += "\n";
        for (j, bits) in self.results.iter().enumerate() {
            let _ = match bits {
                1 => writeln!(t, "selp.u64 %wide, 1, 0, %out{j};"),
                8 | 16 => writeln!(t, "cvt.u64.u16 %wide, %out{j};"),
                32 => writeln!(t, "cvt.u64.u32 %wide, %out{j};"),
                _ => writeln!(t, "mov.b64 %wide, %out{j};"),
            };
            let _ = writeln!(t, "st.global.u64 [%dst+{}], %wide;", output + j * column);
        }
        for name in ["in", "out", "flag"] {
            t = t.replace(&format!("%{name}"), &format!("{prefix}{name}"));
        }
        t
    }
}

fn class(bits: u32) -> &'static str {
    match bits {
        1 => ".pred",
        8 | 16 => ".b16",
        32 => ".b32",
        _ => ".b64",
    }
}

/// Runs each program; the results of all threads, `[result][thread]`.
pub fn run(programs: &[Program]) -> Vec<Result<Vec<u64>, String>> {
    let mut text = String::from(".version 8.6\n.target sm_100\n.address_size 64\n");
    for (k, p) in programs.iter().enumerate() {
        text += &p.entry(k);
    }
    let refusal = |e: String| programs.iter().map(|_| Err(e.clone())).collect();
    let module = match assay_ptx::parse_module(&text) {
        Ok(m) => m,
        Err(e) => return refusal(e.to_string()),
    };
    let loaded = match Loaded::new(&module) {
        Ok(l) => Arc::new(l),
        Err(e) => return refusal(e.to_string()),
    };
    programs.iter().enumerate().map(|(k, p)| one(&loaded, k, p)).collect()
}

fn one(loaded: &Arc<Loaded>, k: usize, p: &Program) -> Result<Vec<u64>, String> {
    let kernel = format!("k{k}");
    loaded.check(&kernel).map_err(|e: LoadError| e.to_string())?;
    let mut session = Session::new(Arc::clone(loaded), Options::default());
    let threads = p.threads();
    let columns = p.inputs.len().max(1);
    let mut bytes = vec![0u8; columns * threads * 8];
    for (t, v) in p.vectors.iter().enumerate() {
        for (j, x) in v.iter().take(p.inputs.len()).enumerate() {
            let at = (j * threads + t) * 8;
            bytes[at..at + 8].copy_from_slice(&x.to_le_bytes());
        }
    }
    let room = "room for a few kilobytes";
    let input = BufferSpec::new("in", bytes.len() as u64, Role::Input, DType::U64, Init::Bytes(&bytes));
    let input = session.alloc(input).expect(room);
    let size = (2 * threads * 8) as u64;
    let output =
        session.alloc(BufferSpec::new("out", size, Role::Output, DType::U64, Init::Uninit)).expect(room);
    let outcome = session.launch(&LaunchSpec {
        kernel: &kernel,
        grid: [1, 1, 1],
        block: [threads as u64, 1, 1],
        dynamic_shared: 0,
        blocks: &assay_simt::Blocks::All,
        args: &[Arg::Pointer(input, 0), Arg::Pointer(output, 0)],
    });
    if outcome.status != Status::Ok {
        return Err(format!("{:?} {:?} {:?}", outcome.status, outcome.reason, outcome.findings));
    }
    let words = session.read(output).as_chunks::<8>().0;
    Ok(words.iter().map(|b| u64::from_le_bytes(*b)).collect())
}
