//! Milliseconds per unit by batch size, for mutants of a tiled matrix product and of a softmax.
//!
//! `cargo run --release -p assay-nvrtc --example speed`

use std::time::Instant;

use assay_nvrtc::{Compiler, Install, Limits, Options, Unit, WorkerCommand, worker_main};

const MATMUL: &str = "#define TILE 16
__global__ void k(const float* a, const float* b, float* c, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < n; t += TILE) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum + MUTANT;
}
";

const SOFTMAX: &str = "__global__ void k(const float* x, float* y, int n) {
  __shared__ float part[32];
  float best = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) best = fmaxf(best, x[blockIdx.x * n + i]);
  for (int o = 16; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = best;
  __syncthreads();
  best = part[0];
  for (int i = 1; i < blockDim.x / 32; ++i) best = fmaxf(best, part[i]);
  __syncthreads();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[blockIdx.x * n + i] - best);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = MUTANT;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = expf(x[blockIdx.x * n + i] - best) / sum;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        std::process::exit(worker_main());
    }
    let worker = WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".into()] };
    let install = Install::locate_or_install(&worker, &mut |step| eprintln!("{step}"))?;
    for (name, source) in [("matmul", MATMUL), ("softmax", SOFTMAX)] {
        for jobs in [1, 2] {
            for size in [1u64, 8, 16, 32] {
                let limits = Limits { batch_units: size, ..Limits::default() };
                let compiler = Compiler::new(install.clone(), worker.clone(), jobs, limits);
                let unit = |i: u64| Unit {
                    name: i.to_string(),
                    file: "kernel.cu".into(),
                    source: source.replace("MUTANT", &format!("{i}.0f")),
                    kernels: vec!["k".into()],
                };
                // Starts the workers, and answers which names exist.
                let warm: Vec<Unit> = (1000..1004).map(unit).collect();
                compiler.compile(&Options::default(), &warm);
                let units: Vec<Unit> = (0..64).map(unit).collect();
                let started = Instant::now();
                let results = compiler.compile(&Options::default(), &units);
                let ms = started.elapsed().as_secs_f64() * 1000.0 / units.len() as f64;
                let good = results.iter().filter(|r| r.is_ok()).count();
                println!(
                    "{name}, {jobs} jobs, batches of {size}: {ms:.1} ms per unit, {good} of {}",
                    units.len()
                );
            }
        }
    }
    Ok(())
}
