//! Measures the device on a 16x16-tile matmul and a warp-shuffle softmax.
//!
//! `cargo run --release -p assay-simt --example throughput -- matmul.ptx softmax.ptx [n] [sanitize]`: entries `matmul(A,
//! B, C, M, N, K)` and `softmax(x, y, d)`, as NVRTC writes them. Prints GFLOP/s, warp-instructions per second and the
//! largest error against float64.

use std::sync::Arc;
use std::time::Instant;

use assay_simt::{Arg, BufferSpec, Init, LaunchSpec, Loaded, Options, Role, Sanitize, Session};
use assay_tensor::DType;

fn floats(v: &[f32]) -> Vec<u8> {
    v.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn read(b: &[u8]) -> Vec<f32> {
    b.as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect()
}

/// Processor time of this thread where the system tells it, else the time of day: other work does not count.
fn now() -> f64 {
    let own = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = own.and_then(|s| s.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0.0, |d| d.as_secs_f64())
        },
        |n| n * 1e-9,
    )
}

fn load(path: &str) -> Arc<Loaded> {
    let text = std::fs::read_to_string(path).expect("a readable PTX file");
    let started = Instant::now();
    let module = assay_ptx::parse_module(&text).expect("valid PTX");
    let parsed = started.elapsed();
    let started = Instant::now();
    let loaded = Loaded::new(&module).expect("supported PTX");
    println!("parse {parsed:.2?}, decode {:.2?}", started.elapsed());
    Arc::new(loaded)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (Some(matmul), Some(softmax)) = (args.get(1), args.get(2)) else {
        println!("usage: throughput matmul.ptx softmax.ptx [n] [sanitize]");
        return;
    };
    let n: usize = args.get(3).and_then(|s| s.parse().ok()).unwrap_or(256);
    let sanitize = if args.get(4).is_some() { Sanitize::ALL } else { Sanitize::OFF };
    let options = Options { sanitize, instruction_budget: u64::MAX, ..Options::default() };
    let mut state = 12345u32;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / 4_294_967_296.0 - 0.5
    };

    let loaded = load(matmul);
    let a: Vec<f32> = (0..n * n).map(|_| random()).collect();
    let b: Vec<f32> = (0..n * n).map(|_| random()).collect();
    let (mut total, mut runs, mut count, mut worst) = (0.0, 0, 0, 0.0f64);
    while total < 0.3 {
        let mut s = Session::new(Arc::clone(&loaded), options.clone());
        let size = (n * n * 4) as u64;
        let (bytes_a, bytes_b) = (floats(&a), floats(&b));
        let mut alloc =
            |name, role, init| s.alloc(BufferSpec::new(name, size, role, DType::F32, init)).expect("room");
        let pa = alloc("a", Role::Input, Init::Bytes(&bytes_a));
        let pb = alloc("b", Role::Input, Init::Bytes(&bytes_b));
        let pc = alloc("c", Role::Output, Init::Uninit);
        let int = || Arg::Bytes((n as u32).to_le_bytes().to_vec());
        let args = [Arg::Pointer(pa, 0), Arg::Pointer(pb, 0), Arg::Pointer(pc, 0), int(), int(), int()];
        let tiles = n.div_ceil(16) as u64;
        let started = now();
        let o = s.launch(&LaunchSpec {
            kernel: "matmul",
            grid: [tiles, tiles, 1],
            block: [16, 16, 1],
            dynamic_shared: 0,
            args: &args,
        });
        total += now() - started;
        runs += 1;
        count = o.instructions;
        for f in &o.findings {
            println!("{}: {}", f.kind, f.message);
        }
        if let Some(r) = o.reason {
            println!("{r}");
        }
        let c = read(s.read(pc));
        for k in 0..200 {
            let (i, j) = (k * 7919 % n, k * 104_729 % n);
            let want: f64 = (0..n).map(|q| f64::from(a[i * n + q]) * f64::from(b[q * n + j])).sum();
            worst = worst.max((want - f64::from(c[i * n + j])).abs());
        }
    }
    let best = total / f64::from(runs);
    println!(
        "matmul n={n}: {:.2} GFLOP/s, {:.0} M warp-instructions/s, {:.1} ms, error {worst:.1e}",
        2.0 * (n as f64).powi(3) / best / 1e9,
        count as f64 / best / 1e6,
        best * 1e3
    );

    let loaded = load(softmax);
    let (rows, d) = (64usize, 4096usize);
    let x: Vec<f32> = (0..rows * d).map(|i| (i * 7919 % 1000) as f32 / 100.0 - 5.0).collect();
    let (mut total, mut runs, mut worst) = (0.0, 0, 0.0f64);
    while total < 0.3 {
        let mut s = Session::new(Arc::clone(&loaded), options.clone());
        let size = (rows * d * 4) as u64;
        let px = s
            .alloc(BufferSpec::new("x", size, Role::Input, DType::F32, Init::Bytes(&floats(&x))))
            .expect("room");
        let py = s.alloc(BufferSpec::new("y", size, Role::Output, DType::F32, Init::Uninit)).expect("room");
        let args = [Arg::Pointer(px, 0), Arg::Pointer(py, 0), Arg::Bytes((d as u32).to_le_bytes().to_vec())];
        let started = now();
        let o = s.launch(&LaunchSpec {
            kernel: "softmax",
            grid: [rows as u64, 1, 1],
            block: [256, 1, 1],
            dynamic_shared: 128,
            args: &args,
        });
        total += now() - started;
        runs += 1;
        count = o.instructions;
        for f in &o.findings {
            println!("{}: {}", f.kind, f.message);
        }
        let y = read(s.read(py));
        for r in 0..rows {
            let row = &x[r * d..(r + 1) * d];
            let m = f64::from(row.iter().copied().fold(f32::MIN, f32::max));
            let z: f64 = row.iter().map(|v| (f64::from(*v) - m).exp()).sum();
            for k in 0..d {
                let e = (f64::from(row[k]) - m).exp() / z;
                worst = worst.max((e - f64::from(y[r * d + k])).abs() / (e + 1e-6));
            }
        }
    }
    let best = total / f64::from(runs);
    println!(
        "softmax {rows}x{d}: {:.2} ns per element, {:.0} M warp-instructions/s, relative error {worst:.1e}",
        best * 1e9 / (rows * d) as f64,
        count as f64 / best / 1e6
    );
}
