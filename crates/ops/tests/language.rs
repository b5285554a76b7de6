//! The reference language: what parses, what is refused and where, and how refusals of operators read.

use std::collections::BTreeMap;

use assay_ops::{OPS, OpsError, Program, Variant};
use assay_tensor::Tensor;

fn f32s(shape: &[u64], values: &[f32]) -> Tensor {
    Tensor::from_f32(shape, values).unwrap()
}

fn run(text: &str, inputs: &[(&str, Tensor)], scalars: &[(&str, f64)]) -> Result<Tensor, OpsError> {
    let names: Vec<&str> = inputs.iter().map(|i| i.0).collect();
    let numbers: Vec<&str> = scalars.iter().map(|s| s.0).collect();
    let program = Program::parse(text, &names, &numbers).unwrap();
    let inputs = inputs.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect();
    let scalars = scalars.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let mut out = program.evaluate(&inputs, &scalars, &["y".to_owned()], &Variant::truth())?;
    Ok(out.remove("y").unwrap())
}

fn number(text: &str) -> f64 {
    // A tensor without dimensions carries the number out.
    run(&format!("y = x * 0.0 + ({text})"), &[("x", f32s(&[], &[0.0]))], &[("N", 6.0), ("eps", 0.5)])
        .unwrap()
        .get_f64(0)
}

#[test]
fn expressions_have_pythons_precedence_and_values() {
    let cases = [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("-2 ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("2 ** -1", 0.5),
        ("7 // 2", 3.0),
        ("-7 // 2", -4.0),
        ("-7 % 3", 2.0),
        ("7 / 2", 3.5),
        ("1_000 - .5e1", 995.0),
        ("10 - 2 - 3", 5.0),
        ("N // 4 + eps", 1.5),
        ("sqrt(16) + abs(-3)", 7.0),
        ("+5 - -5", 10.0),
        ("maximum(2, 3.5)", 3.5),
        ("5.5 // 2", 2.0),
        ("-5.5 % 2", 0.5),
    ];
    for (text, want) in cases {
        assert_eq!(number(text), want, "{text}");
    }
}

#[test]
fn faults_in_the_text_name_line_column_and_remedy() {
    // (text, line, column, part of the message)
    let cases = [
        ("y = rellu(x)", 1, 5, "unknown operator `rellu`; did you mean `relu`?"),
        ("y = relu(z)", 1, 10, "unknown name `z`"),
        ("h = relu(x)\ny = relu(hh)", 2, 10, "did you mean `h`?"),
        ("y = softmax(x, dm=1)", 1, 16, "no parameter `dm`; did you mean `dim`?"),
        ("y = softmax(x)", 1, 5, "`softmax` needs `dim` (signature: `softmax(input, dim)`)"),
        ("y = relu(x, 1)", 1, 13, "takes at most 1 arguments"),
        ("y = softmax(x, dim=1, dim=2)", 1, 23, "got `dim` twice"),
        ("y = softmax(x, 1, dim=2)", 1, 19, "got `dim` twice"),
        ("y = softmax(dim=1, x)", 1, 20, "cannot follow a keyword"),
        ("y = softmax(x, dim=1.5)", 1, 16, "takes an integer as `dim`"),
        ("y = gelu(x, approximate='fast')", 1, 13, "one of 'none', 'tanh'"),
        ("y = max_pool2d(x, 'a')", 1, 19, "an integer or a tuple of integers"),
        ("y = sum(x, dim=1, keepdim=1)", 1, 19, "True or False"),
        ("y = relu(3)", 1, 10, "takes a tensor"),
        ("y = relu", 1, 5, "is an operator and needs arguments"),
        ("y = x.sum()", 1, 6, "write `op(x, …)` as a call"),
        ("y = relu(x", 1, 1, "expected `)`"),
        ("relu(x)", 1, 5, "expected `=`"),
        ("3 = x", 1, 1, "a line starts with the name"),
        ("y = x +", 1, 8, "expected a value, found the end of the line"),
        ("y = x $ 2", 1, 7, "unexpected character `$`"),
        ("y = 'abc", 1, 5, "does not end on its line"),
        ("y = 12ab", 1, 5, "is not a number"),
        ("y = 99999999999999999999", 1, 5, "does not fit in 64 bits"),
        ("y = x x", 1, 7, "expected the end of the line"),
        ("a, a = max(x, dim=1)", 1, 4, "defined twice"),
        ("True = x", 1, 1, "is a constant"),
        ("y = x[1:2]", 1, 8, "expected `]`"),
        ("# only a comment\n\n  y = q", 3, 7, "unknown name `q`"),
    ];
    for (text, line, column, part) in cases {
        let e = Program::parse(text, &["x"], &["N"]).expect_err(text);
        assert!(e.message.contains(part), "{text}: {}", e.message);
        // An unclosed bracket is noticed at the end of the text, wherever that is.
        if !part.starts_with("expected `)`") {
            assert_eq!((e.line, e.column), (line, column), "{text}: {e}");
        }
    }
}

#[test]
fn shape_faults_name_operator_line_and_shapes() {
    let x = f32s(&[2, 3], &[0.0; 6]);
    let cases = [
        (
            "h = relu(x)\ny = matmul(h, x)",
            "`matmul` at line 2: inner sizes 3 and 2 differ (shapes [2, 3], [2, 3])",
        ),
        ("y = softmax(x, dim=2)", "`softmax` at line 1: dimension 2 is out of range (expected -2 to 1)"),
        ("y = x + reshape(x, (3, 2))", "`add` at line 1: sizes 2 and 3 at dimension 0 do not broadcast"),
        ("y = reshape(x, (4, -1))", "`reshape` at line 1: shape [4, -1] is invalid for 6 elements"),
        ("y = expand(x, (1152921504606846976, 2, 3))", "too large"),
        ("y = max_pool2d(unsqueeze(x, 0), 2, padding=2)", "at most half of the kernel size"),
        ("y = conv2d(x, x)", "`conv2d` at line 1: `input` needs 3 or 4 dimensions, not 2"),
        ("y = argmax(narrow(x, 1, 0, 0), dim=1)", "no terms to reduce"),
        ("a, b = (x, x, x)\ny = a", "2 names need as many values, not a tuple of 3"),
        ("y = x[2]", "index 2 is out of range for size 2"),
        ("y = relu(N)", "`input` takes a tensor, not a number"),
        ("y = x * (1 // (N - 4))", "division by zero"),
        ("y = x * 9223372036854775807 * (9223372036854775807 + 1)", "does not fit in 64 bits"),
        ("y = conv2d(reshape(x, (1, 1, 2, 3)), reshape(x, (1, 1, 2, 3)), stride=0)", "must be at least 1"),
        ("y = N", "output `y` is a number, not a tensor"),
    ];
    for (text, part) in cases {
        let e = run(text, &[("x", x.clone())], &[("N", 4.0)]).expect_err(text).to_string();
        assert!(e.contains(part), "{text}: {e}");
    }
}

#[test]
fn missing_inputs_scalars_and_outputs_are_named() {
    let program = Program::parse("y = x * s", &["x", "unused"], &["s"]).unwrap();
    let x = BTreeMap::from([("x".to_owned(), f32s(&[1], &[1.0]))]);
    let s = BTreeMap::from([("s".to_owned(), 2.0)]);
    let eval = |x: &BTreeMap<_, _>, s: &BTreeMap<_, _>, name: &str| {
        program.evaluate(x, s, &[name.to_owned()], &Variant::official())
    };
    assert!(eval(&x, &s, "y").is_ok());
    assert_eq!(eval(&BTreeMap::new(), &s, "y"), Err(OpsError::MissingInput("x".into())));
    assert_eq!(eval(&x, &BTreeMap::new(), "y"), Err(OpsError::MissingScalar("s".into())));
    assert_eq!(eval(&x, &s, "z"), Err(OpsError::UnknownOutput("z".into())));
    assert_eq!((program.defined(), program.used()), (vec!["y"], vec!["x", "s"]));
}

#[test]
fn names_may_be_bound_again_and_lines_may_go_on_in_brackets() {
    let y =
        run("x = x + 1  # once\nx = relu(\n    x * 2,\n)\ny = x", &[("x", f32s(&[2], &[-3.0, 3.0]))], &[])
            .unwrap();
    assert_eq!(y.to_f64_vec(), [0.0, 8.0]);
    // An input may be an output, untouched by operators that work in place.
    let y = run("h = relu(y)", &[("y", f32s(&[2], &[-3.0, 3.0]))], &[]).unwrap();
    assert_eq!(y.to_f64_vec(), [-3.0, 3.0]);
}

#[test]
fn hostile_texts_are_refused_without_exhausting_the_stack() {
    let deep = format!("y = {}x{}", "(".repeat(100_000), ")".repeat(100_000));
    let minus = format!("y = {}x", "-".repeat(100_000));
    let long = format!("y = x{}", " + x".repeat(100_000));
    let powers = format!("y = x{}", " ** 2".repeat(100_000));
    let indices = format!("y = x{}", "[0]".repeat(100_000));
    for text in [deep, minus, long, powers, indices] {
        assert!(Program::parse(&text, &["x"], &[]).is_err());
    }
}

#[test]
fn signatures_parse_as_documented() {
    let gelu = OPS.iter().find(|op| op.name == "gelu").unwrap();
    assert_eq!(gelu.signature(), "gelu(input, approximate='none')");
    let pool = OPS.iter().find(|op| op.name == "max_pool2d").unwrap();
    assert_eq!(
        pool.signature(),
        "max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)"
    );
}

#[test]
fn outputs_have_pytorchs_dtypes() {
    use assay_tensor::DType;
    let x = [("x", f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))];
    for (text, want) in [
        ("y = x", DType::F64),
        ("y = argmax(x, dim=1)", DType::I64),
        ("y = x > 2", DType::Bool),
        ("y = sum(x > 2)", DType::I64),
        ("y = argmax(x, dim=1) * 0.5", DType::F64),
    ] {
        assert_eq!(run(text, &x, &[]).unwrap().dtype, want, "{text}");
    }
}
