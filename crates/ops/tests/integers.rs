//! Integers, bools and empty reductions as PyTorch 2.13 has them on a CPU; found by `assay verify-ops`.

use assay_ops::{Program, Variant};
use assay_tensor::{DType, Tensor};

/// `y` of a program over `x` (int64) and `b` (bool), or the refusal.
fn y(text: &str, x: (&[u64], &[i64]), b: &[bool]) -> Result<Tensor, String> {
    let inputs = [
        ("x".to_owned(), Tensor::from_i64(x.0, x.1).unwrap()),
        (
            "b".to_owned(),
            Tensor::from_bytes(DType::Bool, &[b.len() as u64], b.iter().map(|&v| u8::from(v)).collect())
                .unwrap(),
        ),
    ];
    let program = Program::parse(text, &["x", "b"], &[]).unwrap();
    program
        .evaluate(&inputs.into(), &Default::default(), &["y".to_owned()], &Variant::truth())
        .map(|mut out| out.remove("y").unwrap())
        .map_err(|e| e.to_string())
}

#[test]
fn integers_and_bools_keep_or_give_the_element_type_that_pytorch_gives() {
    let x: (&[u64], &[i64]) = (&[3], &[-3, 4, 9]);
    let b = [true, false, true];
    for (text, dtype, want) in [
        ("y = relu6(x)", DType::I64, [0.0, 4.0, 6.0]),
        ("y = masked_fill(x, b, 0.75)", DType::I64, [0.0, 4.0, 0.0]),
        ("y = masked_fill(x, b, -2.5)", DType::I64, [-2.0, 4.0, -2.0]),
        ("y = masked_fill(b, b, 0.0)", DType::Bool, [0.0, 0.0, 0.0]),
        ("y = b + b", DType::Bool, [1.0, 0.0, 1.0]),
        ("y = pow(x - 3, x)", DType::I64, [0.0, 1.0, 10_077_696.0]),
        ("y = pow(clamp(x, -1, 1), x)", DType::I64, [-1.0, 1.0, 1.0]),
    ] {
        let got = y(text, x, &b).unwrap();
        assert_eq!((got.dtype, got.to_f64_vec()), (dtype, want.to_vec()), "{text}");
    }
    assert_eq!(y("y = prod(x)", x, &b).unwrap().to_f64_vec(), [-108.0]);
    assert_eq!(y("y = prod(b, dim=0, keepdim=True)", x, &b).unwrap().shape, [1]);
    assert_eq!(y("y = prod(x, dim=1)", (&[2, 0], &[]), &b).unwrap().to_f64_vec(), [1.0, 1.0]);
}

#[test]
fn what_pytorch_refuses_of_integers_and_bools_is_refused() {
    let x: (&[u64], &[i64]) = (&[3], &[-3, 4, 9]);
    let b = [true, false, true];
    for (text, words) in [
        ("y = x - b", "bool tensors are not supported"),
        ("y = b - 1.5", "bool tensors are not supported"),
        ("y = add(x, x, alpha=0.5)", "`alpha` must be an integer"),
        ("y = masked_fill(x, b, inf)", "does not fit"),
        ("y = x ** -1", "negative integer powers"),
    ] {
        let e = y(text, x, &b).unwrap_err();
        assert!(e.contains(words), "{text}: {e}");
    }
}

#[test]
fn the_logarithm_of_an_empty_sum_is_minus_infinity() {
    let got = y("y = logsumexp(x * 1.0, dim=1)", (&[2, 0], &[]), &[]).unwrap();
    assert_eq!(got.to_f64_vec(), [f64::NEG_INFINITY; 2]);
}
