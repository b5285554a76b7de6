//! Algebraic properties of operators and of the variants, over random inputs.

use std::collections::BTreeMap;

use assay_ops::op::Kind;
use assay_ops::{OPS, Order, Precision, Program, Softmax, Variance, Variant};
use assay_tensor::Tensor;
use assay_tensor::philox::Stream;
use proptest::prelude::*;

fn normal(shape: &[u64], seed: u64) -> Tensor {
    let s = Stream::new(seed, 1);
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| s.normal_at(i) as f32).collect();
    Tensor::from_f32(shape, &values).unwrap()
}

fn eval(text: &str, inputs: &[(&str, &Tensor)], v: &Variant) -> Vec<f64> {
    let names: Vec<&str> = inputs.iter().map(|i| i.0).collect();
    let inputs: BTreeMap<String, Tensor> =
        inputs.iter().map(|(n, t)| ((*n).to_owned(), (*t).clone())).collect();
    let program = Program::parse(text, &names, &[]).unwrap_or_else(|e| panic!("{text}: {e}"));
    let out = program.evaluate(&inputs, &BTreeMap::new(), &["y".to_owned()], v);
    out.unwrap_or_else(|e| panic!("{text}: {e}"))["y"].to_f64_vec()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= tolerance * (1.0 + y.abs()))
}

fn all_variants() -> Vec<Variant> {
    let orders = [
        Order::Sequential,
        Order::Reversed,
        Order::Pairwise,
        Order::Blocked(6),
        Order::SplitK(5),
        Order::Interleaved(8),
    ];
    let mut out = Vec::new();
    for precision in [Precision::F64, Precision::F32] {
        for sum in orders {
            for (fma, softmax, variance) in
                [(false, Softmax::TwoPass, Variance::Welford), (true, Softmax::Online, Variance::TwoPass)]
            {
                out.push(Variant { precision, sum, fma, softmax, variance });
            }
        }
    }
    out
}

/// Direct convolution of `[n, c, h, w]` in float64, written independently of the operator.
#[allow(clippy::too_many_arguments)]
fn direct_conv(
    x: &Tensor,
    w: &Tensor,
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    groups: i64,
) -> Vec<f64> {
    let dims = |t: &Tensor| -> Vec<i64> { t.shape.iter().map(|&d| d as i64).collect() };
    let (xs, ws) = (dims(x), dims(w));
    let size = |d: usize| (xs[2 + d] + 2 * padding[d] - dilation[d] * (ws[2 + d] - 1) - 1) / stride[d] + 1;
    let (oh, ow) = (size(0), size(1));
    let mut out = Vec::new();
    for n in 0..xs[0] {
        for o in 0..ws[0] {
            let first = o / (ws[0] / groups) * ws[1];
            for y in 0..oh {
                for z in 0..ow {
                    let mut sum = 0.0;
                    for c in 0..ws[1] {
                        for ky in 0..ws[2] {
                            for kx in 0..ws[3] {
                                let iy = y * stride[0] + ky * dilation[0] - padding[0];
                                let ix = z * stride[1] + kx * dilation[1] - padding[1];
                                if (0..xs[2]).contains(&iy) && (0..xs[3]).contains(&ix) {
                                    let at = ((n * xs[1] + first + c) * xs[2] + iy) * xs[3] + ix;
                                    let wt = ((o * ws[1] + c) * ws[2] + ky) * ws[3] + kx;
                                    sum += x.get_f64(at as u64) * w.get_f64(wt as u64);
                                }
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn matmul_is_linear_in_each_operand(m in 1u64..9, k in 1u64..20, n in 1u64..20, seed in any::<u64>()) {
        let (a, b, c) = (normal(&[m, k], seed), normal(&[k, n], seed ^ 1), normal(&[k, n], seed ^ 2));
        let inputs = [("a", &a), ("b", &b), ("c", &c)];
        for v in all_variants() {
            let tolerance = if v.precision == Precision::F64 { 1e-12 } else { 1e-4 };
            let left = eval("y = matmul(a, b * 2 + c)", &inputs, &v);
            let right = eval("y = matmul(a, b) * 2 + matmul(a, c)", &inputs, &v);
            prop_assert!(close(&left, &right, tolerance), "{v}");
            let flipped = eval("y = transpose(matmul(transpose(b, 0, 1), transpose(a, 0, 1)), 0, 1)", &inputs, &v);
            // The same pairs in the same order: the same bits.
            prop_assert_eq!(eval("y = matmul(a, b)", &inputs, &v), flipped);
        }
    }

    #[test]
    fn softmax_ignores_a_shift_and_sums_to_one(rows in 1u64..5, n in 1u64..60, seed in any::<u64>(), shift in -50i32..50) {
        let x = normal(&[rows, n], seed);
        for v in all_variants() {
            let tolerance = if v.precision == Precision::F64 { 1e-12 } else { 1e-5 };
            let plain = eval("y = softmax(x, dim=1)", &[("x", &x)], &v);
            let shifted = eval(&format!("y = softmax(x + {shift}, dim=1)"), &[("x", &x)], &v);
            prop_assert!(close(&plain, &shifted, if v.precision == Precision::F64 { 1e-12 } else { 1e-4 }), "{v}");
            let sums = eval("y = sum(softmax(x, dim=1), dim=1)", &[("x", &x)], &v);
            prop_assert!(sums.iter().all(|s| (s - 1.0).abs() < tolerance), "{v}: {sums:?}");
            let logs = eval("y = exp(log_softmax(x, dim=1))", &[("x", &x)], &v);
            prop_assert!(close(&plain, &logs, tolerance), "{v}");
        }
    }

    #[test]
    fn permuting_rows_permutes_row_wise_results_bit_by_bit(n in 1u64..40, seed in any::<u64>()) {
        // 19 rows: in groups of lanes and single ones, so a row changes its path when it moves.
        let x = normal(&[19, n], seed);
        for v in all_variants() {
            for op in ["softmax(Z, dim=1)", "layer_norm(Z, (N,))", "sum(Z, dim=1, keepdim=True)", "cumsum(Z, dim=1)",
                       "var(Z, dim=1, keepdim=True)", "amax(Z, dim=1, keepdim=True)", "matmul(Z, w)"] {
                let op = op.replace('N', &n.to_string());
                let w = normal(&[n, 1], 3);
                let plain = eval(&format!("y = {}", op.replace('Z', "x")), &[("x", &x), ("w", &w)], &v);
                let back = eval(&format!("y = flip({}, (0,))", op.replace('Z', "flip(x, (0,))")), &[("x", &x), ("w", &w)], &v);
                let same = plain.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
                prop_assert!(same, "{v} {op}");
            }
        }
    }

    #[test]
    fn convolution_agrees_with_its_definition(
        n in 1u64..3, per in 1u64..4, outs in 1u64..4, groups in 1u64..3,
        h in 1u64..9, w in 1u64..20, kh in 1u64..4, kw in 1u64..4,
        stride in (1i64..4, 1i64..4), padding in (0i64..3, 0i64..3), dilation in (1i64..3, 1i64..3), seed in any::<u64>(),
    ) {
        let fits = |size: u64, k: u64, p: i64, d: i64| size as i64 + 2 * p > d * (k as i64 - 1);
        prop_assume!(fits(h, kh, padding.0, dilation.0) && fits(w, kw, padding.1, dilation.1));
        let x = normal(&[n, per * groups, h, w], seed);
        let weight = normal(&[outs * groups, per, kh, kw], seed ^ 5);
        let text = format!(
            "y = conv2d(x, w, None, {stride:?}, {padding:?}, {dilation:?}, {groups})"
        );
        let want = direct_conv(&x, &weight, stride.into(), padding.into(), dilation.into(), groups as i64);
        for v in all_variants() {
            let got = eval(&text, &[("x", &x), ("w", &weight)], &v);
            prop_assert!(close(&got, &want, if v.precision == Precision::F64 { 1e-12 } else { 1e-4 }), "{v}: {text}");
        }
    }

    #[test]
    fn transposed_convolution_is_the_adjoint_of_convolution(
        c in 1u64..4, o in 1u64..4, size in 1u64..7, k in 1u64..4, stride in 1i64..4, padding in 0i64..2,
        dilation in 1i64..3, seed in any::<u64>(),
    ) {
        let out = (size as i64 - 1) * stride - 2 * padding + dilation * (k as i64 - 1) + 1;
        prop_assume!(out > 0);
        let x = normal(&[1, c, size, size], seed);
        let w = normal(&[c, o, k, k], seed ^ 9);
        let z = normal(&[1, o, out as u64, out as u64], seed ^ 11);
        // <conv_transpose(x, w), z> = <x, conv(z, w)>
        let text = format!(
            "t = conv_transpose2d(x, w, stride={stride}, padding={padding}, dilation={dilation})\n\
             c = conv2d(z, w, stride={stride}, padding={padding}, dilation={dilation})\n\
             y = stack((sum(t * z), sum(x * c)))"
        );
        let both = eval(&text, &[("x", &x), ("w", &w), ("z", &z)], &Variant::truth());
        prop_assert!((both[0] - both[1]).abs() < 1e-9 * (1.0 + both[0].abs()), "{both:?}");
    }

    #[test]
    fn every_variant_stays_within_the_error_bound_of_a_sum(n in 1u64..3000, seed in any::<u64>()) {
        let x = normal(&[n], seed);
        let truth = eval("y = sum(x)", &[("x", &x)], &Variant::truth())[0];
        let size: f64 = x.to_f64_vec().iter().map(|v| v.abs()).sum();
        for v in Variant::ensemble().iter().chain(Variant::held_out()) {
            let got = eval("y = sum(x)", &[("x", &x)], v)[0];
            // Higham 2002, (4.4): any order of n - 1 additions.
            prop_assert!((got - truth).abs() <= n as f64 * f64::from(f32::EPSILON) * size, "{v}");
        }
    }
}

/// An argument of that kind out of a small set that holds the awkward ones.
fn argument(kind: Kind, pick: &mut impl FnMut(u64) -> u64) -> String {
    let int = |pick: &mut dyn FnMut(u64) -> u64| {
        ["0", "1", "2", "3", "-1", "-2", "7", "4611686018427387904", "-9223372036854775807"][pick(9) as usize]
    };
    let tensor = |pick: &mut dyn FnMut(u64) -> u64| format!("t{}", pick(12));
    match kind {
        Kind::Tensor => tensor(pick),
        Kind::OptTensor => {
            if pick(2) == 0 {
                "None".into()
            } else {
                tensor(pick)
            }
        }
        Kind::Operand | Kind::OptOperand => {
            if pick(3) == 0 {
                int(pick).into()
            } else {
                tensor(pick)
            }
        }
        Kind::Tensors => format!("({}, {})", tensor(pick), tensor(pick)),
        Kind::Int | Kind::OptInt => int(pick).into(),
        Kind::Ints | Kind::OptInts => match pick(4) {
            0 => format!("({}, {})", int(pick), int(pick)),
            1 => format!("({}, {}, {})", int(pick), int(pick), int(pick)),
            2 if kind == Kind::Ints => "()".into(),
            _ => int(pick).into(),
        },
        Kind::Number | Kind::OptNumber => ["0", "1", "-1.5", "1e300", "inf", "nan"][pick(6) as usize].into(),
        Kind::Bool => ["True", "False"][pick(2) as usize].into(),
        Kind::Text => ["'ij,jk->ik'", "'i'", "'->'", "'ii,i'"][pick(4) as usize].into(),
        Kind::Choice(all) => format!("'{}'", all[pick(all.len() as u64) as usize]),
    }
}

#[test]
fn no_operator_panics_whatever_its_arguments() {
    let shapes: [&[u64]; 10] =
        [&[], &[0], &[3], &[1], &[2, 3], &[3, 0], &[2, 3, 4], &[1, 2, 3, 3], &[2, 0, 3, 1], &[1, 2, 2, 3, 3]];
    let mut inputs: BTreeMap<String, Tensor> =
        shapes.iter().zip(0..).map(|(s, i)| (format!("t{i}"), normal(s, i))).collect();
    inputs.insert("t10".into(), Tensor::from_i64(&[2, 3], &[1, -2, 0, i64::MIN, i64::MAX, 5]).unwrap());
    inputs.insert("t11".into(), Tensor::from_bytes(assay_tensor::DType::Bool, &[3], vec![0, 1, 1]).unwrap());
    let names: Vec<&str> = inputs.keys().map(String::as_str).collect();
    let stream = Stream::new(99, 7);
    let mut at = 0;
    let mut pick = |n: u64| {
        at += 1;
        stream.below_at(at, n)
    };
    let (mut fine, mut refused) = (0, 0);
    for op in OPS {
        for round in 0..400 {
            let given = op
                .params
                .iter()
                .filter(|p| p.default.is_none() || pick(3) == 0)
                .map(|p| (p.name, p.kind))
                .collect::<Vec<_>>();
            let args: Vec<String> = given
                .into_iter()
                .map(|(name, kind)| format!("{name}={}", argument(kind, &mut pick)))
                .collect();
            let text = format!("y = {}({})", op.name, args.join(", "));
            let Ok(program) = Program::parse(&text, &names, &[]) else {
                refused += 1;
                continue;
            };
            let v = all_variants()[round % 24];
            match program.evaluate(&inputs, &BTreeMap::new(), &["y".to_owned()], &v) {
                Ok(_) => fine += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(fine > 3000 && refused > 3000, "{fine} fine, {refused} refused");
}

#[test]
fn orders_really_differ_on_an_ill_conditioned_sum() {
    let mut values: Vec<f32> = normal(&[4096], 3).as_f32().unwrap().to_vec();
    values.iter_mut().enumerate().for_each(|(i, v)| *v *= if i % 3 == 0 { 1e6 } else { 1.0 });
    let x = Tensor::from_f32(&[4096], &values).unwrap();
    let truth = eval("y = sum(x)", &[("x", &x)], &Variant::truth())[0];
    let mut seen = std::collections::BTreeSet::new();
    let orders = [
        Order::Sequential,
        Order::Reversed,
        Order::Pairwise,
        Order::Blocked(32),
        Order::SplitK(4),
        Order::Interleaved(32),
    ];
    for sum in orders {
        let got = eval("y = sum(x)", &[("x", &x)], &Variant { sum, ..Variant::official() })[0];
        assert!((got - truth).abs() < 1e-4 * 4096.0 * 1e6, "{sum:?}");
        seen.insert(got.to_bits());
    }
    assert_eq!(seen.len(), orders.len());
}

#[test]
fn contraction_and_algorithms_change_bits_but_not_results() {
    let x = normal(&[8, 1000], 21);
    let w = normal(&[1000, 8], 22);
    let inputs = [("x", &x), ("w", &w)];
    let base = Variant { sum: Order::Sequential, fma: false, ..Variant::official() };
    for (text, other) in [
        ("y = matmul(x, w)", Variant { fma: true, ..base }),
        ("y = softmax(x, dim=1)", Variant { softmax: Softmax::Online, ..base }),
        ("y = layer_norm(x + 3.0, (1000,))", Variant { variance: Variance::Welford, ..base }),
    ] {
        let (a, b) = (eval(text, &inputs, &base), eval(text, &inputs, &other));
        assert_ne!(a, b, "{text}");
        assert!(close(&a, &b, 1e-3), "{text}");
    }
}
