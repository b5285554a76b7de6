//! Times operators at the sizes of the catalogue: `cargo run --release -p assay-ops --example time_ops [FILTER]`.

use std::collections::BTreeMap;
use std::time::Instant;

use assay_ops::{Program, Variant};
use assay_tensor::Tensor;
use assay_tensor::philox::Stream;

/// Name, program, inputs with their shapes.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static [u64])]);

fn tensor(shape: &[u64], seed: u64) -> Tensor {
    let stream = Stream::new(seed, 0);
    let n = shape.iter().product::<u64>();
    let values: Vec<f32> = (0..n).map(|i| stream.uniform_at(i) - 0.5).collect();
    Tensor::from_f32(shape, &values).expect("a small shape")
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let cases: &[Case] = &[
        ("matmul 256x256x256", "y = matmul(a, b)", &[("a", &[256, 256]), ("b", &[256, 256])]),
        ("linear 128x512x256", "y = linear(a, b)", &[("a", &[128, 512]), ("b", &[256, 512])]),
        ("matvec 16x524288", "y = matmul(a, b)", &[("a", &[16, 524288]), ("b", &[524288, 1])]),
        ("conv2d 10 MFLOP", "y = conv2d(a, b)", &[("a", &[2, 16, 36, 36]), ("b", &[16, 16, 3, 3])]),
        (
            "conv2d depthwise",
            "y = conv2d(a, b, groups=64)",
            &[("a", &[2, 64, 66, 66]), ("b", &[64, 1, 3, 3])],
        ),
        (
            "conv_transpose2d",
            "y = conv_transpose2d(a, b)",
            &[("a", &[2, 16, 34, 34]), ("b", &[16, 16, 3, 3])],
        ),
        (
            "conv_transpose2d stride 5",
            "y = conv_transpose2d(a, b, stride=5, dilation=2)",
            &[("a", &[1, 32, 24, 24]), ("b", &[32, 16, 3, 3])],
        ),
        ("softmax 1x393216", "y = softmax(a, dim=1)", &[("a", &[1, 393216])]),
        ("gelu 1M", "y = gelu(a)", &[("a", &[1 << 20])]),
        ("tanh 1M", "y = tanh(a)", &[("a", &[1 << 20])]),
        ("relu 2M", "y = relu(a)", &[("a", &[2 << 20])]),
        ("layer_norm 4M", "y = layer_norm(a, (64, 64, 64))", &[("a", &[16, 64, 64, 64])]),
        ("layer_norm 4M one row", "y = layer_norm(a, (4194304,))", &[("a", &[1, 4194304])]),
        ("rms 2M", "y = a / sqrt(mean(a ** 2, dim=1, keepdim=True) + 1e-5)", &[("a", &[2, 64, 128, 128])]),
        ("sum 1M over middle", "y = sum(a, dim=1, keepdim=True)", &[("a", &[4, 1024, 255])]),
        ("argmax 1M over middle", "y = argmax(a, dim=1)", &[("a", &[4, 1024, 255])]),
        ("cumsum 1M", "y = cumsum(a, dim=1)", &[("a", &[32, 32768])]),
        ("max_pool2d 1M", "y = max_pool2d(a, 4, 1, 1)", &[("a", &[1, 16, 256, 256])]),
        ("batch_norm 1M", "y = batch_norm(a, None, None, training=True)", &[("a", &[2, 32, 128, 128])]),
    ];
    let variants: Vec<Variant> = [Variant::truth()].iter().chain(Variant::ensemble()).copied().collect();
    print!("{:26}", "milliseconds");
    variants.iter().for_each(|v| print!(" {:>9}", v.name().chars().take(9).collect::<String>()));
    println!();
    for (name, text, inputs) in cases.iter().filter(|c| c.0.contains(&filter)) {
        let names: Vec<&str> = inputs.iter().map(|i| i.0).collect();
        let program = Program::parse(text, &names, &[]).expect("a valid program");
        let inputs: BTreeMap<String, Tensor> =
            inputs.iter().zip(0..).map(|((n, s), i)| ((*n).to_owned(), tensor(s, i))).collect();
        print!("{name:26}");
        for v in &variants {
            let best = (0..3)
                .map(|_| {
                    let start = Instant::now();
                    let out = program.evaluate(&inputs, &BTreeMap::new(), &["y".to_owned()], v);
                    assert!(out.is_ok());
                    start.elapsed().as_secs_f64() * 1e3
                })
                .fold(f64::INFINITY, f64::min);
            print!(" {best:>9.2}");
        }
        println!();
    }
}
