//! How fast values are made and references computed, on one core: `cargo run --release -p assay-sweep --example sweep_throughput`.
//!
//! Prints GB/s of values in each dtype's own bytes (made and encoded as they go to a worker), and GFLOP/s of the float64
//! product that references are and of the float32 product of emulated devices, for the paper's shapes; the best of five.

use std::time::Instant;

use assay_sweep::geometry::{Role, Shape};
use assay_sweep::product::{exact, ordered};
use assay_sweep::values::{Kind, Values, encode};
use assay_tensor::DType;

fn best(mut f: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let started = Instant::now();
            f();
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    const BATCHES: i64 = 256;
    let shape = Shape { m: 256, k: 256, n: 256 };
    let n = 65_536usize;
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
        let values = Values::new(0, Kind::Random, dtype, Role::A, shape, false);
        let size = dtype.size_bytes() as usize;
        let (mut floats, mut bytes) = (vec![0.0f32; n], vec![0u8; n * size]);
        let seconds = best(|| {
            for b in 0..BATCHES {
                values.batch(b, &mut floats);
                encode(dtype, &floats, &mut bytes);
                std::hint::black_box(&bytes);
            }
        });
        println!("values, {dtype}: {:.2} GB/s", (BATCHES as usize * n * size) as f64 / seconds / 1e9);
    }
    for (m, k, n) in [(256, 64, 256), (256, 256, 64), (256, 256, 256)] {
        let shape = Shape { m, k, n };
        let fill = |role, len: u64| {
            let mut out = vec![0.0f32; len as usize];
            Values::new(0, Kind::Random, DType::F32, role, shape, false).batch(0, &mut out);
            out
        };
        let (a, b) = (fill(Role::A, shape.a()), fill(Role::B, shape.b()));
        let (m, k, n) = (m as usize, k as usize, n as usize);
        let flop = (2 * m * k * n * 64) as f64;
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        let exact_seconds = best(|| (0..64).for_each(|_| exact(&a, &b, m, k, n, &mut wide)));
        let ordered_seconds = best(|| (0..64).for_each(|_| ordered(&a, &b, m, k, n, &mut narrow)));
        println!(
            "{m},{k},{n}: float64 reference {:.1} GFLOP/s, ordered float32 {:.1} GFLOP/s",
            flop / exact_seconds / 1e9,
            flop / ordered_seconds / 1e9
        );
    }
}
