//! Names and literals that both languages take.

use std::collections::BTreeSet;

use assay_ops::array::Scalar;

/// Words that a name must not be: C++'s, the reference language's, and what the kernels' texts define.
const TAKEN: &str = "
    alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default
    delete do double else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new not nullptr operator or private protected public register return short signed sizeof static
    struct switch template this throw true try typedef typeid typename union unsigned using virtual void
    volatile while xor inf nan None True False T E THREADS INFINITY NAN blocks thread_number place larger
    smaller launch scratch min max abs ceil floor sqrt exp log log2 pow assert dim3 blockIdx blockDim
    threadIdx gridDim cudaMemset printf
";
/// Longest name.
const MAX_LEN: usize = 48;

/// Hands out names, each once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: BTreeSet<String>,
    made: u64,
}

impl Names {
    /// `wanted`, or what is closest to it.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut name: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(MAX_LEN).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name.insert(0, 'x');
        }
        // `h3` is a name for what calls make; `_2` ends the names of kernels.
        let ours = |s: &str| {
            s.strip_prefix('h').is_some_and(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut candidate = name.clone();
        let mut k = 1u64;
        while TAKEN.split_whitespace().any(|w| w == candidate)
            || ours(&candidate)
            || self.used.contains(&candidate)
        {
            candidate = format!("{name}_{k}_");
            k += 1;
        }
        self.used.insert(candidate.clone());
        candidate
    }

    /// A name for what a call makes.
    pub fn made(&mut self) -> String {
        self.made += 1;
        format!("h{}", self.made)
    }
}

/// A number as Python writes it.
pub(crate) fn python(s: Scalar) -> String {
    match s {
        Scalar::Bool(b) => if b { "True" } else { "False" }.to_owned(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Float(x) if x.is_nan() => "nan".to_owned(),
        Scalar::Float(x) if x.is_infinite() => if x > 0.0 { "inf" } else { "-inf" }.to_owned(),
        Scalar::Float(x) => format!("{x:?}"),
    }
}

/// A float32 as C++ writes it.
pub(crate) fn float(x: f32) -> String {
    if x.is_nan() {
        return "NAN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "INFINITY" } else { "-INFINITY" }.to_owned();
    }
    format!("{x:?}f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_neither_language_and_never_repeat() {
        let mut names = Names::default();
        let all: Vec<String> =
            ["x", "x", "new", "h3", "conv.weight", "1st", "", "T"].iter().map(|n| names.fresh(n)).collect();
        assert_eq!(all, ["x", "x_1_", "new_1_", "h3_1_", "conv_weight", "x1st", "x_2_", "T_1_"]);
        assert_eq!((names.made(), names.made()), ("h1".to_owned(), "h2".to_owned()));
    }

    #[test]
    fn literals_are_those_of_their_language() {
        let of = |x: f64| python(Scalar::Float(x));
        assert_eq!([of(1e-5), of(2.0), of(f64::NEG_INFINITY)], ["1e-5", "2.0", "-inf"]);
        assert_eq!([float(0.1), float(1e-30), float(f32::INFINITY)], ["0.1f", "1e-30f", "INFINITY"]);
    }
}
