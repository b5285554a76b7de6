//! The generators of `--arg` and of input recipes: element = f(generator, index).

use std::fmt;

use crate::philox::{Stream, unit};
use crate::tensor::write_element;
use crate::{DType, Tensor, TensorError};

/// How the elements of a buffer are made. Each element is a function of its index alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// All zero.
    Zeros,
    /// All this value.
    Full(f64),
    /// 0, 1, 2, …
    Arange,
    /// These values; the list's length is the element count.
    List(Vec<f64>),
    /// Uniform in [lo, hi).
    Uniform {
        /// Smallest value.
        lo: f64,
        /// Upper end, excluded up to rounding.
        hi: f64,
        /// Seed of the stream.
        seed: u64,
    },
    /// Normal with that mean and standard deviation.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
        /// Seed of the stream.
        seed: u64,
    },
    /// Integers in [lo, hi).
    RandInt {
        /// Smallest value.
        lo: i64,
        /// Upper end, excluded.
        hi: i64,
        /// Seed of the stream.
        seed: u64,
    },
    /// (i mod P) + 1, P odd: tells from a value which index it was read from.
    Index(u64),
    /// A hash of the index: float32((((i mod 2^32) + 40503 * floor(i / 2^32)) * 2654435761 mod 2^32) / 2^32 - 0.5).
    Hash,
    /// Memory as it comes: the device decides what it holds.
    Uninit,
}

impl Generator {
    /// Reads a generator as written in `--arg`: `zeros`, `full(v)`, `arange`, `list(1,2,…)`,
    /// `uniform(lo,hi,seed=S)`, `normal(mean,std,seed=S)`, `randint(lo,hi,seed=S)`, `index(P)`, `hash`, `uninit`.
    ///
    /// # Errors
    /// `BadGenerator` with the character at which the text goes wrong.
    pub fn parse(text: &str) -> Result<Generator, TensorError> {
        let bad = |at: usize, what: String| TensorError::BadGenerator { text: text.to_owned(), at, what };
        let (name, args) = match text.find('(') {
            None => (text, None),
            Some(open) => {
                let Some(inner) = text[open + 1..].strip_suffix(')') else {
                    return Err(bad(text.len(), "missing `)`".into()));
                };
                (&text[..open], Some((open + 1, inner)))
            }
        };
        let mut positional: Vec<(usize, &str)> = Vec::new();
        let mut seed = None;
        if let Some((start, inner)) = args {
            let mut at = start;
            for part in inner.split(',') {
                let lead = part.len() - part.trim_start().len();
                let word = part.trim();
                if let Some(v) = word.strip_prefix("seed=") {
                    seed = Some(
                        v.parse::<u64>().map_err(|_| bad(at + lead + 5, format!("`{v}` is not a seed")))?,
                    );
                } else if !(word.is_empty() && inner.trim().is_empty()) {
                    positional.push((at + lead, word));
                }
                at += part.len() + 1;
            }
        }
        let number = |k: usize| -> Result<f64, TensorError> {
            let &(at, word) =
                positional.get(k).ok_or_else(|| bad(text.len(), format!("`{name}` wants more arguments")))?;
            parse_number(word).ok_or_else(|| bad(at, format!("`{word}` is not a number")))
        };
        let integer = |k: usize| -> Result<i64, TensorError> {
            let &(at, word) =
                positional.get(k).ok_or_else(|| bad(text.len(), format!("`{name}` wants more arguments")))?;
            word.parse().map_err(|_| bad(at, format!("`{word}` is not an integer")))
        };
        let (want, made) = match name {
            "zeros" => (0, Generator::Zeros),
            "arange" => (0, Generator::Arange),
            "hash" => (0, Generator::Hash),
            "uninit" => (0, Generator::Uninit),
            "full" => (1, Generator::Full(number(0)?)),
            "list" => {
                let values = (0..positional.len()).map(number).collect::<Result<Vec<_>, _>>()?;
                (positional.len(), Generator::List(values))
            }
            "uniform" => (2, Generator::Uniform { lo: number(0)?, hi: number(1)?, seed: seed.unwrap_or(0) }),
            "normal" => (2, Generator::Normal { mean: number(0)?, std: number(1)?, seed: seed.unwrap_or(0) }),
            "randint" => {
                let (lo, hi) = (integer(0)?, integer(1)?);
                if hi <= lo {
                    return Err(bad(positional[1].0, format!("the range {lo}..{hi} is empty")));
                }
                (2, Generator::RandInt { lo, hi, seed: seed.unwrap_or(0) })
            }
            "index" => {
                let p = integer(0)?;
                match u64::try_from(p) {
                    Ok(p) if p % 2 == 1 => (1, Generator::Index(p)),
                    _ => return Err(bad(positional[0].0, format!("`{p}` is not an odd positive number"))),
                }
            }
            other => {
                let known = "zeros full arange list uniform normal randint index hash uninit";
                return Err(bad(0, format!("unknown generator `{other}` (known: {known})")));
            }
        };
        if positional.len() > want {
            return Err(bad(positional[want].0, format!("`{name}` takes {want} arguments")));
        }
        if seed.is_some()
            && !matches!(
                made,
                Generator::Uniform { .. } | Generator::Normal { .. } | Generator::RandInt { .. }
            )
        {
            return Err(bad(name.len(), format!("`{name}` takes no seed")));
        }
        Ok(made)
    }

    /// The value of element `i`, before rounding to a dtype. `Uninit` gives zero.
    pub fn value_at(&self, i: u64) -> f64 {
        match self {
            Generator::Zeros | Generator::Uninit => 0.0,
            Generator::Full(v) => *v,
            Generator::Arange => i as f64,
            Generator::List(values) => values.get(i as usize).copied().unwrap_or(0.0),
            Generator::Uniform { lo, hi, seed } => {
                lo + (hi - lo) * f64::from(Stream::new(*seed, 0).uniform_at(i))
            }
            Generator::Normal { mean, std, seed } => mean + std * Stream::new(*seed, 0).normal_at(i),
            Generator::RandInt { lo, hi, seed } => {
                let span = hi.wrapping_sub(*lo) as u64;
                (lo.wrapping_add(Stream::new(*seed, 0).below_at(i, span.max(1)) as i64)) as f64
            }
            Generator::Index(p) => ((i % p) + 1) as f64,
            Generator::Hash => {
                let folded = (i as u32).wrapping_add(40_503u32.wrapping_mul((i >> 32) as u32));
                f64::from(folded.wrapping_mul(2_654_435_761)) / 4_294_967_296.0 - 0.5
            }
        }
    }

    /// A tensor made by this generator.
    ///
    /// # Errors
    /// `LengthMismatch` where a list has another length; `TooLarge`.
    pub fn fill(&self, dtype: DType, shape: &[u64]) -> Result<Tensor, TensorError> {
        let mut t = Tensor::zeros(dtype, shape)?;
        if let Generator::List(values) = self
            && values.len() as u64 != t.len()
        {
            return Err(TensorError::LengthMismatch {
                shape: shape.to_vec(),
                want: t.len(),
                got: values.len() as u64,
            });
        }
        self.fill_at(dtype, 0, &mut t.data);
        Ok(t)
    }

    /// Writes elements `first`, `first + 1`, … of `dtype` into `out`, which holds a whole number of them. The same
    /// bytes as that part of [`Generator::fill`].
    pub fn fill_at(&self, dtype: DType, first: u64, out: &mut [u8]) {
        let size = dtype.size_bytes() as usize;
        let elements = (first..).zip(out.chunks_exact_mut(size));
        match self {
            Generator::Zeros | Generator::Uninit => out.fill(0),
            // 64-bit integers do not fit a float64 beyond 2^53.
            Generator::Arange if size == 8 && dtype.is_integer() => {
                elements.for_each(|(i, chunk)| chunk.copy_from_slice(&i.to_le_bytes()));
            }
            Generator::Full(v) => elements.for_each(|(_, chunk)| write_element(dtype, *v, chunk)),
            // Four elements come from one block of the stream.
            Generator::Uniform { lo, hi, seed } => {
                let stream = Stream::new(*seed, 0);
                let (mut at, mut block) = (first / 4, stream.block(first / 4));
                for (i, chunk) in elements {
                    if i / 4 != at {
                        (at, block) = (i / 4, stream.block(i / 4));
                    }
                    let v = lo + (hi - lo) * f64::from(unit(block[(i % 4) as usize]));
                    write_element(dtype, v, chunk);
                }
            }
            _ => elements.for_each(|(i, chunk)| write_element(dtype, self.value_at(i), chunk)),
        }
    }
}

/// A number as users write it: decimal, `inf`, `-inf`, `nan`, or bits `0x…` are not accepted.
fn parse_number(word: &str) -> Option<f64> {
    word.parse::<f64>().ok()
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Zeros => f.write_str("zeros"),
            Generator::Full(v) => write!(f, "full({v})"),
            Generator::Arange => f.write_str("arange"),
            Generator::List(v) => {
                let words: Vec<String> = v.iter().map(f64::to_string).collect();
                write!(f, "list({})", words.join(","))
            }
            Generator::Uniform { lo, hi, seed } => write!(f, "uniform({lo},{hi},seed={seed})"),
            Generator::Normal { mean, std, seed } => write!(f, "normal({mean},{std},seed={seed})"),
            Generator::RandInt { lo, hi, seed } => write!(f, "randint({lo},{hi},seed={seed})"),
            Generator::Index(p) => write!(f, "index({p})"),
            Generator::Hash => f.write_str("hash"),
            Generator::Uninit => f.write_str("uninit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generator_reads_back_as_written() {
        for text in [
            "zeros",
            "full(2.5)",
            "arange",
            "list(1,2,3)",
            "uniform(-1,1,seed=7)",
            "normal(0,1,seed=3)",
            "randint(-3,9,seed=1)",
            "index(7)",
            "hash",
            "uninit",
        ] {
            assert_eq!(Generator::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, at) in [
            ("uniform(-1,x)", 11),
            ("frob", 0),
            ("full(1", 6),
            ("index(4)", 6),
            ("zeros(1)", 6),
            ("full(1,2)", 7),
        ] {
            match Generator::parse(text) {
                Err(TensorError::BadGenerator { at: got, .. }) => assert_eq!(got, at, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_hash_is_the_documented_formula() {
        for i in [0u64, 1, 17, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 3 << 32] {
            let folded = (i % (1 << 32)) as u128 + 40_503u128 * u128::from(i >> 32);
            let want = ((folded * 2_654_435_761) % (1 << 32)) as f64 / 4_294_967_296.0 - 0.5;
            assert_eq!(Generator::Hash.value_at(i), want);
        }
    }

    #[test]
    fn a_part_equals_the_same_part_of_the_whole() {
        for text in
            ["zeros", "full(2)", "arange", "uniform(-1,1,seed=9)", "normal(0,1,seed=9)", "index(7)", "hash"]
        {
            let g = Generator::parse(text).unwrap();
            for dtype in DType::ALL {
                let size = dtype.size_bytes() as usize;
                let whole = g.fill(dtype, &[100]).unwrap();
                for (from, to) in [(0, 1), (57, 58), (3, 99), (41, 100)] {
                    let mut part = vec![0xee; (to - from) * size];
                    g.fill_at(dtype, from as u64, &mut part);
                    assert_eq!(part, whole.data[from * size..to * size], "{text} {dtype} {from}..{to}");
                }
            }
            let t = g.fill(DType::F32, &[100]).unwrap();
            assert_eq!(t.get_f64(57), f64::from(g.value_at(57) as f32), "{text}");
        }
        let mut far = [0; 8];
        Generator::Arange.fill_at(DType::U64, (1 << 60) + 1, &mut far);
        assert_eq!(u64::from_le_bytes(far), (1 << 60) + 1);
    }

    #[test]
    fn lists_must_fit_their_shape() {
        assert!(Generator::List(vec![1.0]).fill(DType::F32, &[2]).is_err());
    }
}
