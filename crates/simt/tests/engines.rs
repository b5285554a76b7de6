//! Compiled code against the interpreter: every kernel of `benches/kernels` and of the passing cases, launched with
//! random blocks, sizes and data. Most launches make little sense to the kernel, and many end in findings: outputs,
//! findings, instruction counts and statuses must be the same all the same. `ASSAY_PTX_DIR` names a folder with more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Fill, Init, LaunchSpec, Loaded, Memory, Options, Outcome, Role,
    Schedule, Session,
};
use assay_tensor::DType;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }
}

/// A launch of a kernel with its buffers.
struct Launch {
    kernel: String,
    grid: [u64; 3],
    block: [u64; 3],
    shared: u64,
    /// A buffer's bytes, or a value's.
    args: Vec<Result<Vec<u8>, Vec<u8>>>,
}

/// Floats of many magnitudes, now and then a special one, for a buffer that may as well be read as integers.
fn words(random: &mut Random, bytes: usize) -> Vec<u8> {
    let kind = random.next() % 4;
    let mut out = Vec::with_capacity(bytes);
    while out.len() < bytes {
        let h = random.next();
        let word: u32 = match kind {
            0 => (h as u32) % 64,
            1 if h.is_multiple_of(16) => random.pick(&[
                0x7fc0_0001,
                0xffff_ffff,
                0x7f80_0000,
                0xff80_0000,
                0x8000_0000,
                0x0000_0001,
                0x7f7f_ffff,
            ]),
            2 => h as u32,
            _ => ((h >> 40) as f32 / 16_777_216.0 - 0.5).to_bits(),
        };
        out.extend_from_slice(&word.to_le_bytes());
    }
    out
}

fn launch(module: &assay_ptx::Module, kernel: &str, random: &mut Random) -> Launch {
    let function = module.entry(kernel).expect("the kernel").1;
    let block = function.req_ntid.unwrap_or_else(|| {
        random.pick(&[
            [32, 1, 1],
            [64, 1, 1],
            [256, 1, 1],
            [100, 1, 1],
            [16, 16, 1],
            [32, 8, 1],
            [16, 3, 2],
            [8, 8, 2],
            [48, 2, 1],
            [16, 2, 1],
        ])
    });
    let mut args = Vec::new();
    for p in &function.params {
        let int = |random: &mut Random| {
            let v: u32 = random.pick(&[0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 64, 100, u32::MAX]);
            v
        };
        args.push(match p.size_bytes {
            8 if !p.is_array && !random.next().is_multiple_of(8) => {
                let bytes = random.pick(&[64, 1024, 4096, 16_384]);
                Ok(words(random, bytes))
            }
            4 if p.ty == assay_ptx::Ty::F32 => Err(1.5f32.to_le_bytes().to_vec()),
            n => Err(int(random).to_le_bytes().iter().copied().cycle().take(n as usize).collect()),
        });
    }
    Launch {
        kernel: kernel.to_owned(),
        grid: random.pick(&[[1, 1, 1], [3, 1, 1], [2, 2, 1], [2, 1, 3]]),
        block,
        shared: random.pick(&[0, 0, 512, 4096]),
        args,
    }
}

fn run(loaded: &Arc<Loaded>, l: &Launch, options: &Options) -> (Outcome, Vec<Vec<u8>>, Engine) {
    let mut session = Session::new(Arc::clone(loaded), options.clone());
    let mut pointers = Vec::new();
    let mut args = Vec::new();
    for (k, a) in l.args.iter().enumerate() {
        args.push(match a {
            Ok(bytes) => {
                let name = format!("b{k}");
                let mut spec =
                    BufferSpec::new(&name, bytes.len() as u64, Role::Scratch, DType::F32, Init::Bytes(bytes));
                spec.may_write = true;
                let p = session.alloc(spec).expect("room");
                pointers.push(p);
                Arg::Pointer(p, 0)
            }
            Err(v) => Arg::Bytes(v.clone()),
        });
    }
    let outcome = session.launch(&LaunchSpec {
        kernel: &l.kernel,
        grid: l.grid,
        block: l.block,
        dynamic_shared: l.shared,
        args: &args,
        blocks: &Blocks::All,
    });
    let buffers = pointers.iter().map(|p| session.read(*p).to_vec()).collect();
    (outcome, buffers, session.engine())
}

fn ptx_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            ptx_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
}

#[test]
fn random_launches_give_the_same_in_both_engines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    ptx_files(&root.join("benches/kernels"), &mut files);
    ptx_files(&root.join("testdata/ptx/pass"), &mut files);
    let mut rounds = 12;
    if let Some(more) = std::env::var_os("ASSAY_PTX_DIR") {
        files.clear();
        ptx_files(Path::new(&more), &mut files);
        rounds = 40;
    }
    files.sort();
    let (mut launches, mut compiled, mut failures) = (0, 0, Vec::new());
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let module = assay_ptx::parse_module(&text).expect("valid PTX");
        let Ok(loaded) = Loaded::new(&module).map(Arc::new) else { continue };
        let kernels: Vec<String> = loaded.kernels().map(str::to_owned).collect();
        for kernel in kernels.iter().filter(|k| loaded.check(k).is_ok()) {
            let mut random = Random(0);
            for round in 0..rounds {
                let l = launch(&module, kernel, &mut random);
                let options = Options {
                    memory: random.pick(&[Memory::Strict, Memory::Arena]),
                    fill: random.pick(&[Fill::Noise, Fill::Zeros, Fill::Nan]),
                    schedule: random.pick(&[Schedule::Hardware, Schedule::RunAhead]),
                    seed: round,
                    instruction_budget: 100_000,
                    ..Options::default()
                };
                let interp = run(&loaded, &l, &Options { engine: Engine::Interp, ..options.clone() });
                let jit = run(&loaded, &l, &Options { engine: Engine::Jit, ..options.clone() });
                launches += 1;
                compiled += usize::from(jit.2 == Engine::Jit);
                if interp.0 != jit.0 || interp.1 != jit.1 {
                    let same = if interp.1 == jit.1 { "the same" } else { "other" };
                    failures.push(format!(
                        "{} `{kernel}` round {round}, block {:?}: {:.300?}\n  compiled: {:.300?}, {same} bytes",
                        path.display(),
                        l.block,
                        interp.0,
                        jit.0
                    ));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {launches}:\n{}",
        failures.len(),
        failures[..failures.len().min(12)].join("\n")
    );
    if cfg!(target_arch = "x86_64") && compiled == 0 {
        println!("no launch was compiled: no AVX2 and FMA here, or ASSAY_SIMD=portable");
    } else {
        assert!(compiled * 2 > launches, "{compiled} of {launches} launches were compiled");
    }
}
