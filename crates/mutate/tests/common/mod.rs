//! Snippets in, mutated snippets out.

use assay_mutate::{Mutant, Rule, mutants_by};

const DEVICE: &str = "__global__ void k(const float* x, const float* w, float* y, int* idx, int n, int m, int i, int j, int tid, int pad, int stride, float a, float b, float c, float s, float eps, bool flag) {\n";
const HOST: &str = "__global__ void k(const float* x, const float* w, float* y, int n, int m) { }\nvoid launch(const float* x, const float* w, float* y, int n, int m) {\n";

/// The head and tail that make a snippet a whole file. A snippet with `__global__` is one already;
/// one with a launch becomes host code, any other the body of a kernel.
pub fn frame(snippet: &str) -> (&'static str, &'static str) {
    if snippet.contains("__global__") || snippet.contains("void launch(") {
        ("", "")
    } else if snippet.contains("<<<") {
        (HOST, "\n}\n")
    } else {
        (DEVICE, "\n}\n")
    }
}

pub fn framed(snippet: &str) -> String {
    let (head, tail) = frame(snippet);
    format!("{head}{snippet}{tail}")
}

/// Every mutant of a snippet under one rule, as snippets.
pub fn mutants_of(rule: &'static dyn Rule, snippet: &str) -> Vec<String> {
    let source = framed(snippet);
    mutants_by(&source, "t.cu", &[rule])
        .unwrap_or_else(|error| panic!("{error}: {source}"))
        .iter()
        .map(|mutant: &Mutant| cut(&mutant.apply(&source), snippet))
        .collect()
}

/// The snippet's part of a mutated file, without helpers put in front.
fn cut(mutated: &str, snippet: &str) -> String {
    let (head, tail) = frame(snippet);
    let at = if head.is_empty() { 0 } else { mutated.find(head).expect("the frame is not mutated") };
    let body = &mutated[at + head.len()..];
    body.strip_suffix(tail).expect("the frame is not mutated").to_owned()
}
