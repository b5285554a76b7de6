//! Measures the device on the kernels of `benches/kernels`: launches alone, checks on.
//!
//! `cargo run --release -p assay-simt --example throughput -- [kernel…] [--n N] [--sanitize] [--engine E]
//! [--dir DIR]`
//!
//! The kernels are `matmul` (16x16 tiles, N x N), `softmax`, `layer_norm`, `conv_2d` and `max_pool_2d`, as NVRTC writes
//! them for sm_90. Prints warp-instructions per second, GFLOP/s or nanoseconds per element, the time to parse and decode
//! (first in the process, and best), and the largest error against float64. Times are processor time of this thread, the
//! best of several.

use std::sync::Arc;
use std::time::Instant;

use assay_simt::{
    Arg, Blocks, BufferSpec, Engine, Init, LaunchSpec, Loaded, Options, Ptr, Role, Sanitize, Session,
};
use assay_tensor::DType;

/// Seconds of processor time of this thread: other work on the machine does not count.
fn now() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec, which the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn floats(v: &[f32]) -> Vec<u8> {
    v.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn read(b: &[u8]) -> Vec<f32> {
    b.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

/// Values in -0.5 .. 0.5.
fn random(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 4_294_967_296.0 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// An argument of a launch.
enum Value {
    /// The buffer of that number.
    Buffer(usize),
    Int(i32),
    Float(f32),
}

struct Launch {
    /// Part of the entry's name.
    entry: &'static str,
    grid: [u64; 3],
    block: [u64; 3],
    args: Vec<Value>,
}

/// The largest error of an output.
type Check = Box<dyn Fn(&[f32]) -> f64>;

/// A kernel with its data. The last buffer is the output.
struct Case {
    name: &'static str,
    size: String,
    /// Values of an input, or length of what is written.
    buffers: Vec<(Result<Vec<f32>, usize>, Role)>,
    launches: Vec<Launch>,
    /// Floating-point operations, where the rate is told by them, or elements.
    flops: Option<f64>,
    elements: usize,
    /// Largest error of an output.
    error: Check,
}

fn matmul(n: usize) -> Case {
    let (a, b) = (random(n * n, 12345), random(n * n, 54321));
    let tiles = n.div_ceil(16) as u64;
    let int = n as i32;
    let (x, y) = (a.clone(), b.clone());
    Case {
        name: "matmul",
        size: format!("n={n}"),
        buffers: vec![(Ok(a), Role::Input), (Ok(b), Role::Input), (Err(n * n), Role::Output)],
        launches: vec![Launch {
            entry: "matmul",
            grid: [tiles, tiles, 1],
            block: [16, 16, 1],
            args: [0, 1, 2].map(Value::Buffer).into_iter().chain([int; 3].map(Value::Int)).collect(),
        }],
        flops: Some(2.0 * (n as f64).powi(3)),
        elements: n * n,
        error: Box::new(move |c| {
            let mut worst = 0.0f64;
            for k in 0..200 {
                let (i, j) = (k * 7919 % n, k * 104_729 % n);
                let want: f64 = (0..n).map(|q| f64::from(x[i * n + q]) * f64::from(y[q * n + j])).sum();
                worst = worst.max((want - f64::from(c[i * n + j])).abs());
            }
            worst
        }),
    }
}

fn softmax() -> Case {
    let (rows, d) = (64usize, 4096usize);
    let x: Vec<f32> = (0..rows * d).map(|i| (i * 7919 % 1000) as f32 / 100.0 - 5.0).collect();
    let values = x.clone();
    Case {
        name: "softmax",
        size: format!("{rows}x{d}"),
        buffers: vec![(Ok(x), Role::Input), (Err(rows * d), Role::Output)],
        launches: vec![Launch {
            entry: "softmax",
            grid: [rows as u64, 1, 1],
            block: [256, 1, 1],
            args: vec![Value::Buffer(0), Value::Buffer(1), Value::Int(d as i32)],
        }],
        flops: None,
        elements: rows * d,
        error: Box::new(move |y| {
            let mut worst = 0.0f64;
            for (row, out) in values.chunks(d).zip(y.chunks(d)) {
                let top = f64::from(row.iter().copied().fold(f32::MIN, f32::max));
                let z: f64 = row.iter().map(|v| (f64::from(*v) - top).exp()).sum();
                for (v, got) in row.iter().zip(out) {
                    let e = (f64::from(*v) - top).exp() / z;
                    worst = worst.max((e - f64::from(*got)).abs() / (e + 1e-6));
                }
            }
            worst
        }),
    }
}

fn layer_norm() -> Case {
    let (rows, d, chunk) = (2usize, 131_072usize, 4096usize);
    let chunks = d / chunk;
    let (x, weight, bias) = (random(rows * d, 1), random(d, 2), random(d, 3));
    let eps = 1e-5f32;
    let (ints, values) =
        ([d, chunk, chunks].map(|v| Value::Int(v as i32)), (x.clone(), weight.clone(), bias.clone()));
    let buffers = |list: &[usize]| list.iter().map(|b| Value::Buffer(*b)).collect::<Vec<_>>();
    let mut apply = buffers(&[0, 1, 2, 3, 4, 5]);
    apply.extend(ints);
    apply.push(Value::Float(eps));
    let mut moments = buffers(&[0, 3, 4]);
    moments.extend([d, chunk].map(|v| Value::Int(v as i32)));
    Case {
        name: "layer_norm",
        size: format!("{rows}x{d}"),
        buffers: vec![
            (Ok(x), Role::Input),
            (Ok(weight), Role::Parameter),
            (Ok(bias), Role::Parameter),
            (Err(rows * chunks), Role::Scratch),
            (Err(rows * chunks), Role::Scratch),
            (Err(rows * d), Role::Output),
        ],
        launches: vec![
            Launch {
                entry: "layer_norm_moments",
                grid: [chunks as u64, rows as u64, 1],
                block: [256, 1, 1],
                args: moments,
            },
            Launch {
                entry: "layer_norm_apply",
                grid: [d as u64 / 2048, rows as u64, 1],
                block: [256, 1, 1],
                args: apply,
            },
        ],
        flops: None,
        elements: rows * d,
        error: Box::new(move |y| {
            let (x, weight, bias) = &values;
            let mut worst = 0.0f64;
            for (row, out) in x.chunks(d).zip(y.chunks(d)) {
                let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / d as f64;
                let var = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / d as f64;
                for k in 0..d {
                    let z = (f64::from(row[k]) - mean) / (var + f64::from(eps)).sqrt();
                    let want = z * f64::from(weight[k]) + f64::from(bias[k]);
                    worst = worst.max((want - f64::from(out[k])).abs());
                }
            }
            worst
        }),
    }
}

fn conv_2d() -> Case {
    let (batch, ci, co, side) = (2usize, 16usize, 8usize, 32usize);
    let out = side - 2;
    let (x, w) = (random(batch * ci * side * side, 4), random(co * ci * 9, 5));
    let (xs, ws) = (x.clone(), w.clone());
    let ints = [ci, co, side, side, out, out, out.div_ceil(16)].map(|v| Value::Int(v as i32));
    Case {
        name: "conv_2d",
        size: format!("{batch}x{ci}x{side}x{side}, {co} channels out, 3x3"),
        buffers: vec![
            (Ok(x), Role::Input),
            (Ok(w), Role::Parameter),
            (Err(batch * co * out * out), Role::Output),
        ],
        launches: vec![Launch {
            entry: "conv2d_tiled",
            grid: [out.div_ceil(16).pow(2) as u64, co as u64 / 4, batch as u64],
            block: [16, 16, 1],
            args: [0, 1, 2].map(Value::Buffer).into_iter().chain(ints).collect(),
        }],
        flops: Some((2 * batch * co * out * out * ci * 9) as f64),
        elements: batch * co * out * out,
        error: Box::new(move |y| {
            let mut worst = 0.0f64;
            for (at, got) in y.iter().enumerate() {
                let (n, o, r, c) = (at / (co * out * out), at / (out * out) % co, at / out % out, at % out);
                let mut want = 0.0;
                for i in 0..ci {
                    for t in 0..9 {
                        let v = xs[((n * ci + i) * side + r + t / 3) * side + c + t % 3];
                        want += f64::from(v) * f64::from(ws[(o * ci + i) * 9 + t]);
                    }
                }
                worst = worst.max((want - f64::from(*got)).abs());
            }
            worst
        }),
    }
}

fn max_pool_2d() -> Case {
    let (planes, side) = (8usize, 64usize);
    let out = side - 1;
    let x = random(planes * side * side, 6);
    let xs = x.clone();
    let ints = [side, side, out, out].map(|v| Value::Int(v as i32));
    Case {
        name: "max_pool_2d",
        size: format!("{planes}x{side}x{side}, 4x4"),
        buffers: vec![(Ok(x), Role::Input), (Err(planes * out * out), Role::Output)],
        launches: vec![Launch {
            entry: "max_pool_tiled",
            grid: [out.div_ceil(32) as u64, out.div_ceil(8) as u64, planes as u64],
            block: [32, 8, 1],
            args: [0, 1].map(Value::Buffer).into_iter().chain(ints).collect(),
        }],
        flops: None,
        elements: planes * out * out,
        error: Box::new(move |y| {
            let mut worst = 0.0f64;
            for (at, got) in y.iter().enumerate() {
                let (p, r, c) = (at / (out * out), at / out % out, at % out);
                let mut best = f32::NEG_INFINITY;
                for i in (r.max(1) - 1)..(r + 3).min(side) {
                    for j in (c.max(1) - 1)..(c + 3).min(side) {
                        best = best.max(xs[(p * side + i) * side + j]);
                    }
                }
                worst = worst.max(f64::from((best - got).abs()));
            }
            worst
        }),
    }
}

/// Parses and decodes; says how long it took at first and at best.
fn load(path: &str) -> (Arc<Loaded>, usize) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (mut first, mut best) = (None, (f64::MAX, f64::MAX));
    let mut instructions = 0;
    let mut out = None;
    for _ in 0..50 {
        let started = Instant::now();
        let module = assay_ptx::parse_module(&text).expect("valid PTX");
        let parsed = started.elapsed().as_secs_f64() * 1e3;
        let started = Instant::now();
        let loaded = Loaded::new(&module).expect("supported PTX");
        let decoded = started.elapsed().as_secs_f64() * 1e3;
        first.get_or_insert((parsed, decoded));
        best = if parsed + decoded < best.0 + best.1 { (parsed, decoded) } else { best };
        instructions = module.functions.iter().map(|f| f.body.len()).sum();
        out = Some(loaded);
    }
    let (p, d) = first.unwrap_or_default();
    println!(
        "  {instructions} instructions: parse + decode {p:.2} + {d:.2} ms at first, {:.2} + {:.2} ms at best",
        best.0, best.1
    );
    (Arc::new(out.expect("loaded at least once")), instructions)
}

fn measure(case: &Case, dir: &str, sanitize: bool, engine: Engine) {
    println!("{} {}", case.name, case.size);
    let (loaded, _) = load(&format!("{dir}/{}.ptx", case.name));
    let options = Options {
        sanitize: if sanitize { Sanitize::ALL } else { Sanitize::OFF },
        engine,
        instruction_budget: u64::MAX,
        ..Options::default()
    };
    let bytes: Vec<Option<Vec<u8>>> =
        case.buffers.iter().map(|b| b.0.as_ref().ok().map(|v| floats(v))).collect();
    let (mut best, mut total, mut count, mut worst) = (f64::MAX, 0.0, 0, 0.0f64);
    while total < 0.5 {
        let mut s = Session::new(Arc::clone(&loaded), options.clone());
        let mut pointers: Vec<Ptr> = Vec::new();
        for ((values, role), bytes) in case.buffers.iter().zip(&bytes) {
            let init = bytes.as_deref().map_or(Init::Uninit, Init::Bytes);
            let size = 4 * values.as_ref().map_or_else(|n| *n, Vec::len) as u64;
            let name = ["a", "b", "c", "d", "e", "f"][pointers.len()];
            pointers.push(s.alloc(BufferSpec::new(name, size, *role, DType::F32, init)).expect("room"));
        }
        let mut specs = Vec::new();
        for l in &case.launches {
            let args: Vec<Arg> = l
                .args
                .iter()
                .map(|a| match a {
                    Value::Buffer(b) => Arg::Pointer(pointers[*b], 0),
                    Value::Int(v) => Arg::Bytes(v.to_le_bytes().to_vec()),
                    Value::Float(v) => Arg::Bytes(v.to_le_bytes().to_vec()),
                })
                .collect();
            let entry = loaded.kernels().find(|k| k.contains(l.entry)).expect("the entry").to_owned();
            specs.push((entry, args));
        }
        let started = now();
        count = 0;
        for (l, (entry, args)) in case.launches.iter().zip(&specs) {
            let o = s.launch(&LaunchSpec {
                kernel: entry,
                grid: l.grid,
                block: l.block,
                dynamic_shared: 0,
                args,
                blocks: &Blocks::All,
            });
            count += o.instructions;
            o.findings.iter().for_each(|f| println!("  {}: {}", f.kind, f.message));
            o.reason.iter().for_each(|r| println!("  {r}"));
        }
        let t = now() - started;
        total += t;
        best = best.min(t);
        if let Some(p) = pointers.last() {
            worst = (case.error)(&read(s.read(*p)));
        }
    }
    let flops = case.flops.map_or(String::new(), |f| format!("{:.2} GFLOP/s, ", f / best / 1e9));
    println!(
        "  {flops}{:.0} M warp-instructions/s, {:.2} ns an element, {:.2} ms, error {worst:.1e}",
        count as f64 / best / 1e6,
        best * 1e9 / case.elements as f64,
        best * 1e3,
    );
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| {
        let k = args.iter().position(|a| a == name)?;
        args.drain(k..(k + 2).min(args.len())).nth(1)
    };
    let n: usize = option("--n").and_then(|s| s.parse().ok()).unwrap_or(512);
    let dir = option("--dir")
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/kernels").to_owned());
    let engine = match option("--engine").as_deref() {
        Some("interp") => Engine::Interp,
        Some("jit") => Engine::Jit,
        _ => Engine::Auto,
    };
    let sanitize = args.iter().any(|a| a == "--sanitize");
    args.retain(|a| a != "--sanitize");
    for case in [matmul(n), softmax(), layer_norm(), conv_2d(), max_pool_2d()] {
        if args.is_empty() || args.iter().any(|a| a == case.name) {
            measure(&case, &dir, sanitize, engine);
        }
    }
}
