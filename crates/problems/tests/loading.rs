//! Folders that are wrong say where.

use std::fs;
use std::path::Path;

use assay_problems::{Extents, LoadError, Problem, Recipe, load};

const TOML: &str = r#"name = "Test"
level = 1
id = 900
outputs = ["y"]
reference = """
h = x * s
y = relu(h) + w
"""

[dims]
N = { official = 4096, desk = 64 }
K = { official = 3, desk = 3 }

[derived]
M = "N - K + 1"
L = "M * 2"

[scalars]
s = 0.5

[[inputs]]
name = "x"
dtype = "f32"
shape = ["M"]
init = "rand"

[[inputs]]
name = "w"
kind = "parameter"
dtype = "f32"
shape = ["N - K + 1"]
init = "uniform(-1/sqrt(K), 1/sqrt(K))"

[ragged]
shapes = [{ N = 3 }, { N = 65, K = 2 }]
"#;

const KERNEL: &str = "#include <cuda_runtime.h>
__global__ void k(const float* x, const float* w, float* y, int n, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i] * s, 0.0f) + w[i];
}
void launch(const float* x, const float* w, float* y, int M, float s) {
    k<<<(M + 255) / 256, 256>>>(x, w, y, M, s);
}
";

fn write(toml: &str, kernel: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("problem.toml"), toml).unwrap();
    fs::write(dir.path().join("kernel.cu"), kernel).unwrap();
    dir
}

fn loaded(toml: &str, kernel: &str) -> Result<Problem, LoadError> {
    load(write(toml, kernel).path())
}

#[test]
fn a_folder_loads_with_everything_it_says() {
    let p = loaded(TOML, KERNEL).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(p.key(), "1/900");
    let dims = p.dims_for(&Recipe::parse("official@N=10").unwrap(), Extents::Desk).unwrap();
    assert_eq!((dims["M"], dims["L"], dims["K"]), (8, 16, 3));
    assert_eq!(p.dims_for(&Recipe::official(1), Extents::Official).unwrap()["L"], 8188);
    assert!(p.operators.contains(&"relu".to_owned()), "from the reference: {:?}", p.operators);
    let inputs = p.make_inputs(&Recipe::official(1), Extents::Desk).unwrap();
    assert_eq!(inputs["x"].shape, [62]);
    let bound = 1.0 / 3f64.sqrt();
    assert!(inputs["w"].to_f64_vec().iter().all(|v| v.abs() <= bound));
    let e = p.dims_for(&Recipe::parse("official@Q=1").unwrap(), Extents::Desk).unwrap_err();
    assert!(e.to_string().contains("`Q`") && e.to_string().contains("K, N"), "{e}");
    assert!(p.dims_for(&Recipe::parse("official@K=99").unwrap(), Extents::Desk).is_err());
}

#[test]
fn every_fault_of_problem_toml_points_at_its_place() {
    // (what to replace, by what, text at the place, what the message says)
    let cases: &[(&str, &str, &str, &str)] = &[
        ("name = \"Test\"", "name = \"Test\"\ncolour = 1", "colour", "unknown field `colour`"),
        ("desk = 64", "desk = 64, tiny = 1", "tiny", "unknown field `tiny`"),
        ("level = 1", "level = \"x\"", "\"x\"", "invalid type"),
        ("id = 900\n", "", "", "missing field `id`"),
        ("desk = 64", "desk = 0", "0 }", "at least 1"),
        ("desk = 64", "desk = -1", "-1 }", "invalid value"),
        ("official = 4096", "official = 10000000000000000000", "10000000000000000000", "63 bits"),
        ("M = \"N - K + 1\"", "M = \"N - Q + 1\"", "Q + 1\"", "`Q` is no dim"),
        ("M = \"N - K + 1\"", "M = \"N - + 1\"", "+ 1\"", "bad expression"),
        ("M = \"N - K + 1\"", "M = \"L - K + 1\"", "M * 2\"", "needs itself"),
        ("L = \"M * 2\"", "L = \"L\"", "L\"", "needs itself"),
        ("L = \"M * 2\"", "K = \"M * 2\"", "K = \"M", "derived dim here and a dim before"),
        ("L = \"M * 2\"", "L = \"M / (K - 3)\"", "\"M / (K", "divides by zero"),
        ("L = \"M * 2\"", "L = \"M * 9223372036854775807 * 2\"", "\"M * 9", "does not fit"),
        ("s = 0.5", "s = nan", "s = nan", "not finite"),
        ("s = 0.5", "\"a b\" = 0.5", "\"a b\"", "is no name"),
        ("shape = [\"M\"]", "shape = [\"Z\"]", "Z\"]", "`Z` is no dim"),
        ("shape = [\"M\"]", "shape = [\"M +\"]", "\"]", "bad extent"),
        ("shape = [\"M\"]", "shape = [1.5]", "1.5]", "an extent"),
        ("shape = [\"M\"]", "shape = [\"N - 100\"]", "\"N - 100\"", "-36"),
        ("shape = [\"M\"]", "shape = [\"N*4294967296\", 4294967296]", "[\"N*4", "63 bits"),
        ("shape = [\"M\"]", "shape = [1,1,1,1,1,1,1,1,1]", "[1,1", "more than 8"),
        ("dtype = \"f32\"\nshape = [\"M\"]", "dtype = \"f31\"\nshape = [\"M\"]", "f31", "unknown dtype"),
        (
            "dtype = \"f32\"\nshape = [\"M\"]",
            "dtype = \"i32\"\nshape = [\"M\"]",
            "rand\"",
            "no values of dtype `i32`",
        ),
        (
            "outputs = [\"y\"]",
            "outputs = [\"y\"]\ndegenerate = \"yes\"",
            "\"yes\"",
            "expected struct Degenerate",
        ),
        (
            "outputs = [\"y\"]",
            "outputs = [\"y\"]\ndegenerate = { passes = \"ones\", inputs = \"any\", reason = \"x\" }",
            "\"ones\"",
            "unknown variant `ones`",
        ),
        ("init = \"rand\"", "init = \"rnd\"", "rnd", "unknown initialiser"),
        ("init = \"rand\"", "init = \"uniform(0, 1/Q)\"", "Q)\"", "`Q` is no dim"),
        ("init = \"rand\"", "init = \"full(1/(K-3))\"", "\"full", "not finite"),
        ("init = \"uniform(-1/sqrt(K), 1/sqrt(K))\"", "init = \"factor(rand)\"", "factor", "not parameters"),
        ("kind = \"parameter\"", "kind = \"weight\"", "weight\"", "unknown kind"),
        ("init = \"rand\"", "init = \"rand\"\nstructure = \"diagonal\"", "diagonal\"", "unknown structure"),
        ("init = \"rand\"", "init = \"rand\"\nstructure = \"upper\"", "upper\"", "only matrices"),
        ("name = \"w\"", "name = \"x\"", "\"x\"\nkind", "input here and a input before"),
        ("outputs = [\"y\"]", "outputs = []", "[]", "at least one output"),
        ("outputs = [\"y\"]", "outputs = [\"z\"]", "z\"]", "no line of the reference"),
        ("outputs = [\"y\"]", "outputs = [\"y\"]\ninplace = [\"q\"]", "\"q\"", "is no input"),
        ("h = x * s", "h = x * t", "t\n", "bad reference"),
        ("y = relu(h)", "y = relu(h", "", "bad reference"),
        ("relu(h)", "relux(h)", "relux", "bad reference"),
        ("{ N = 3 }", "{ P = 3 }", "P = 3", "`P` is no dim"),
        ("{ N = 3 }", "{ N = 0 }", "0 }", "at least 1"),
        ("{ N = 3 }", "{ N = 1 }", "N = 1", "at N=1"),
        ("[ragged]", "[ragged", "", "]"),
    ];
    for (from, to, place, what) in cases {
        assert!(TOML.contains(from), "{from}");
        let toml = TOML.replacen(from, to, 1);
        match loaded(&toml, KERNEL) {
            Err(LoadError::At { file, line, column, message, snippet }) => {
                assert!(file.ends_with("problem.toml"));
                assert!(message.contains(what), "{to}: {message}");
                let text = toml.lines().nth(line as usize - 1).unwrap_or("").to_owned() + "\n";
                let rest: String = text.chars().skip(column as usize - 1).collect();
                let first = place.lines().next().unwrap_or("");
                assert!(rest.starts_with(first), "{to}: points at {line}:{column} `{rest}`: {message}");
                assert!(
                    snippet.contains('^') && (text.trim().is_empty() || snippet.contains(text.trim_end())),
                    "{snippet}"
                );
            }
            other => panic!("{to}: {:?}", other.map(|p| p.key())),
        }
    }
}

#[test]
fn every_fault_of_the_kernel_file_points_at_its_place() {
    let cases: &[(&str, &str, (u32, u32), &str)] = &[
        ("void launch", "void lunch", (1, 1), "no host function `launch`"),
        (
            "int M, float s) {\n    k",
            "int M, float s, int Q) {\n    k",
            (6, 75),
            "parameter `Q` of `launch` is not bound",
        ),
        ("int M, float s) {\n    k", "int M, float s, float t) {\n    k", (6, 77), "parameter `t`"),
        ("launch(const float* x", "launch(const double* x", (6, 27), "`double*` cannot hold its dtype `f32`"),
        ("float* y, int M", "const float* y, int M", (6, 58), "cannot be written"),
        (
            "float* y, int M, float s) {\n    k<<<(M + 255) / 256, 256>>>(x, w, y",
            "int M, float s) {\n    k<<<(M + 255) / 256, 256>>>(x, w, nullptr",
            (6, 6),
            "the output `y` is no parameter",
        ),
        ("    k<<<", "    kk<<<", (7, 5), "`kk`, which is no kernel"),
        ("    k<<<", "    goto k<<<", (7, 5), "`goto` is not supported"),
    ];
    for (from, to, position, what) in cases {
        assert!(KERNEL.contains(from), "{from}");
        match loaded(TOML, &KERNEL.replacen(from, to, 1)) {
            Err(LoadError::At { file, line, column, message, .. }) => {
                assert!(file.ends_with("kernel.cu"));
                assert!(message.contains(what), "{to}: {message}");
                assert_eq!((line, column), *position, "{to}: {message}");
            }
            other => panic!("{to}: {:?}", other.map(|p| p.key())),
        }
    }
}

#[test]
fn a_folders_own_shared_code_is_part_of_its_kernel_and_of_its_errors() {
    let root = tempfile::tempdir().unwrap();
    let (dir, lib) = (root.path().join("mine"), root.path().join("lib"));
    let put = |file: &Path, text: &str| {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let helper = "#pragma once\nint blocks(int n) {\n    return (n + 255) / 256;\n}\n";
    let kernel = KERNEL
        .replace("#include <cuda_runtime.h>", "#include \"blocks.cuh\"\n#include \"mish.cuh\"")
        .replace("(M + 255) / 256", "blocks(M)");
    put(&dir.join("problem.toml"), TOML);
    put(&dir.join("kernel.cu"), &kernel);
    put(&lib.join("blocks.cuh"), helper);
    let p = load(&dir).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(p.includes, ["blocks.cuh", "mish.cuh", "softplus.cuh"], "its own, and the built-in ones");
    let dims = p.dims_with(&Default::default(), Extents::Desk).unwrap();
    assert!(p.plan(&dims).unwrap().trace().starts_with("launch k grid 1,1,1 block 256,1,1"));
    let digest = p.digests().1;
    // What stands in the shared file changes the problem, and is pointed at there.
    put(&lib.join("blocks.cuh"), &helper.replace("255", "511"));
    assert_ne!(load(&dir).unwrap().digests().1, digest);
    put(&lib.join("blocks.cuh"), &helper.replace("return", "goto done; return"));
    let e = load(&dir).unwrap_err().to_string();
    assert!(e.contains("lib/blocks.cuh:3:5: `goto` is not supported"), "{e}");
    // The lines behind an include keep their numbers.
    put(&lib.join("blocks.cuh"), helper);
    put(&dir.join("kernel.cu"), &kernel.replace("    k<<<", "    goto k<<<"));
    let e = load(&dir).unwrap_err().to_string();
    assert!(e.contains("mine/kernel.cu:8:5: `goto` is not supported") && e.contains("8 |     goto k"), "{e}");
    fs::remove_file(lib.join("blocks.cuh")).unwrap();
    let e = load(&dir).unwrap_err().to_string();
    assert!(e.contains("mine/kernel.cu:1:1: cannot include `blocks.cuh`"), "{e}");
}

#[test]
fn a_submission_replaces_the_kernel_of_a_problem() {
    let p = loaded(TOML, KERNEL).unwrap();
    let other = KERNEL.replace("256", "128").replace("k<<<", "mine<<<").replace("void k(", "void mine(");
    let q = p.with_kernel(&other, Path::new("mine.cu")).unwrap();
    let dims = q.dims_with(&Default::default(), Extents::Desk).unwrap();
    assert!(q.plan(&dims).unwrap().trace().starts_with("launch mine grid 2,1,1 block 128,1,1"));
    assert_ne!(p.host.normalised(), q.host.normalised());
    assert_ne!(p.digests().1, q.digests().1);
    assert!(p.with_kernel("", Path::new("mine.cu")).unwrap_err().to_string().starts_with("mine.cu:1:1: "));
}

#[test]
fn hostile_folders_are_errors() {
    assert!(matches!(load("/nonexistent/folder"), Err(LoadError::Missing { .. })));
    let dir = write(TOML, KERNEL);
    fs::remove_file(dir.path().join("kernel.cu")).unwrap();
    assert!(matches!(load(dir.path()), Err(LoadError::Missing { name: "kernel.cu", .. })));
    fs::create_dir(dir.path().join("kernel.cu")).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("no regular file"));
    let dir = write(TOML, &" ".repeat(5 << 20));
    assert!(load(dir.path()).unwrap_err().to_string().contains("above the limit"));
    let dir = write(TOML, KERNEL);
    fs::write(dir.path().join("problem.toml"), [0xff, 0xfe]).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("UTF-8"));
    assert!(loaded(&"a = [".repeat(50_000), KERNEL).is_err());
    assert!(
        loaded(&format!("{TOML}\n[x]\n{}", "a".repeat(1 << 20)), KERNEL).unwrap_err().to_string().len()
            < 2000
    );
    let chain: String = (0..300).map(|i| format!("d{i} = \"d{} + 1\"\n", i + 1)).collect();
    assert!(loaded(&TOML.replace("L = \"M * 2\"", &chain), KERNEL).is_err());
}

#[cfg(unix)]
#[test]
fn symlinks_are_followed_and_devices_are_not_read() {
    let other = write(TOML, KERNEL);
    let dir = write(TOML, KERNEL);
    fs::remove_file(dir.path().join("kernel.cu")).unwrap();
    std::os::unix::fs::symlink(other.path().join("kernel.cu"), dir.path().join("kernel.cu")).unwrap();
    assert!(load(dir.path()).is_ok());
    fs::remove_file(dir.path().join("kernel.cu")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("kernel.cu")).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("no regular file"));
}

#[test]
fn values_depend_on_seed_tensor_and_index_alone() {
    let p = loaded(TOML, KERNEL).unwrap();
    let make = |r: &str| p.make_inputs(&Recipe::parse(r).unwrap(), Extents::Desk).unwrap();
    assert_eq!(make("normal(1)#3"), make("normal(1)#3"));
    assert_ne!(make("normal(1)#3")["x"], make("normal(1)#4")["x"]);
    // A longer tensor begins with the same values.
    let (short, long) = (make("normal(1)#3"), make("normal(1)@N=640#3"));
    assert_eq!(short["x"].data, long["x"].data[..short["x"].data.len()]);
    let (short, long) = (make("official@N=30#3"), make("official#3"));
    assert_eq!(short["x"].data, long["x"].data[..short["x"].data.len()]);
    // Scale and kind leave parameters alone, `+params` does not.
    assert_eq!(make("official#3")["w"], make("normal(1)*7#3")["w"]);
    assert_ne!(make("official#3")["w"], make("official+params#3")["w"]);
    let (one, three) = (make("official#3")["x"].to_f64_vec(), make("official*3#3")["x"].to_f64_vec());
    assert!(one.iter().zip(&three).all(|(a, b)| (a * 3.0) as f32 == *b as f32));
    assert!(one.iter().all(|v| (0.0..1.0).contains(v)));
}

#[test]
fn a_factor_is_one_number_per_seed_and_a_softmax_makes_rows_of_probabilities() {
    let make = |init: &str, recipe: &str| {
        let to = format!("shape = [3, \"M\"]\ninit = \"{init}\"");
        let toml = TOML.replace("shape = [\"M\"]\ninit = \"rand\"", &to);
        let p = loaded(&toml, KERNEL).unwrap_or_else(|e| panic!("{e}"));
        p.make_inputs(&Recipe::parse(recipe).unwrap(), Extents::Desk).unwrap()["x"].to_f64_vec()
    };
    let plain = make("rand", "official#5");
    let scaled = make("factor(rand)", "official#5");
    let factor = scaled[1] / plain[1];
    assert!(factor > 0.0 && factor < 1.0);
    assert!(plain.iter().zip(&scaled).all(|(a, b)| (a * factor - b).abs() < 1e-7), "one factor for all");
    let factors: Vec<f64> =
        (0..200).map(|seed| make("factor(ones)", &format!("official#{seed}"))[0]).collect();
    let mean = factors.iter().sum::<f64>() / 200.0;
    assert!((mean - 0.5).abs() < 0.1 && factors.iter().all(|f| (0.0..1.0).contains(f)), "{mean}");
    // Another kind is not the initialiser's business; a scale is on top of it.
    assert_eq!(make("factor(rand)", "normal(1)#5"), make("rand", "normal(1)#5"));
    assert_eq!(make("factor(ones)", "official*4#5")[0], 4.0 * make("factor(ones)", "official#5")[0]);

    let rows = make("softmax(factor(rand))", "official#5");
    for (row, values) in rows.chunks(62).zip(scaled.chunks(62)) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let sum: f64 = values.iter().map(|v| v.exp()).sum();
        assert!(row.iter().zip(values).all(|(p, v)| (p - v.exp() / sum).abs() < 1e-7));
    }
    let tripled = make("softmax(factor(rand))", "official*3#5");
    assert!(rows.iter().zip(&tripled).all(|(a, b)| (a * 3.0 - b).abs() < 1e-7), "scaled after the softmax");
    let signs = make("sign", "official#5");
    let positive = signs.iter().filter(|v| **v == 1.0).count();
    assert!(signs.iter().all(|v| v.abs() == 1.0) && (60..130).contains(&positive), "{positive} of 186");
}

#[test]
fn each_kind_makes_what_it_says() {
    let toml = TOML.replace("shape = [\"M\"]", "shape = [2, \"M\"]");
    let p = loaded(&toml, KERNEL).unwrap();
    let x = |r: &str| p.make_inputs(&Recipe::parse(r).unwrap(), Extents::Desk).unwrap()["x"].to_f64_vec();
    let row = 62;
    assert!(x("constant(2.5)").iter().all(|v| *v == 2.5));
    let mut levels: Vec<f64> = x("ties(3)");
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    assert_eq!(levels, [-1.0, 0.0, 1.0]);
    assert!(x("ties(1)").iter().all(|v| *v == 1.0));
    assert_eq!(x("index(5)")[..6], [0.2, 0.4, 0.6, 0.8, 1.0, 0.2].map(|v: f64| f64::from(v as f32)));
    assert!(x("samesign(10)").iter().all(|v| (5.0..=10.0).contains(v)));
    assert!(x("tiny(0.001)").iter().all(|v| v.abs() <= 0.001));
    let r = x("ramp");
    assert!(r.windows(2).all(|w| w[0] < w[1]) && r[0] < -0.98 && r[2 * row - 1] > 0.98);
    let a = x("alternating(1)");
    assert!(a.iter().enumerate().all(|(i, v)| (*v < 0.0) == ((i % row) % 2 == 1)));
    for (text, at) in [("spike(first,9)", 0), ("spike(mid,9)", row / 2), ("spike(last,9)", row - 1)] {
        let s = x(text);
        assert!(s.iter().enumerate().all(|(i, v)| (*v == 9.0) == (i % row == at)), "{text}");
    }
    let s = x("spike(last,9,0)");
    assert!(s[..row].iter().all(|v| v.abs() <= 1.0) && s[row..].iter().all(|v| *v == 9.0));
    let zeros = x("sparse(0.1)").iter().filter(|v| **v == 0.0).count();
    assert!(zeros > row && zeros < 2 * row);
    let o = x("outlier(0.1,1000)");
    let big = o.iter().filter(|v| v.abs() > 10.0).count();
    assert!(big > 0 && big < row);
    let mean = x("shifted(100,1)").iter().sum::<f64>() / (2 * row) as f64;
    assert!((mean - 100.0).abs() < 1.0);
    // Two samples: the third kind of the list and the fourth, as each alone would be with that seed.
    let mixed = x("mixed(2)");
    assert_eq!(mixed[..row], x("uniform(-3,-0.5)")[..row]);
    assert_eq!(mixed[row..], x("spike(last,30)")[row..]);
    assert_eq!(x("mixed(12)"), mixed, "the list is gone through in turns");
    // One magnitude per seed, within its decades, on the official values.
    let official = x("official#9");
    let scaled = x("loguniform(-3,3)#9");
    let ratio = scaled[0] / official[0];
    assert!((1e-3..1e3).contains(&ratio));
    assert!(official.iter().zip(&scaled).all(|(a, b)| (b / a / ratio - 1.0).abs() < 1e-5));
    assert_ne!(
        x("loguniform(-3,3)#9")[0] / x("official#9")[0],
        x("loguniform(-3,3)#8")[0] / x("official#8")[0]
    );
}
