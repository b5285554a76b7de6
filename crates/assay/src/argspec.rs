//! `--arg SPEC`: one kernel parameter.
//!
//! `x=f32[64,1024]:uniform(-1,1,seed=7)`, `n=i32:1024`, `a=@file.safetensors#a`, `p=null`, `p=&x`, `p=&x+16`,
//! `s=bytes(hex)`.

use std::path::PathBuf;

use assay_tensor::{DType, Generator, TensorError};

/// What a parameter is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgKind {
    /// A buffer exactly as long as its shape says.
    Buffer {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<u64>,
        /// Its values.
        generator: Generator,
    },
    /// A buffer with the values of a tensor in a safetensors file.
    File {
        /// The file.
        path: PathBuf,
        /// The tensor's name in it.
        tensor: String,
    },
    /// A number passed by value.
    Scalar {
        /// Its type.
        dtype: DType,
        /// Its text: a number of that type.
        bytes: Vec<u8>,
    },
    /// The null pointer.
    Null,
    /// A pointer into another argument's buffer.
    Alias {
        /// That argument's name.
        of: String,
        /// Bytes past its start.
        offset_bytes: u64,
    },
    /// A struct passed by value.
    Bytes(Vec<u8>),
}

/// One `--arg`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// The whole text.
    pub text: String,
    /// The name under which the buffer is printed and saved.
    pub name: String,
    /// Its value.
    pub kind: ArgKind,
}

/// A fault in the text of an `--arg`, with the character at which it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct ArgError {
    /// The whole text.
    pub text: String,
    /// Byte offset of the fault.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for ArgError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let column = self.text[..self.at.min(self.text.len())].chars().count();
        write!(f, "bad --arg: {}\n  {}\n  {}^", self.what, self.text, " ".repeat(column))
    }
}

impl ArgSpec {
    /// A fault found later, when the value is used; `at` is a byte offset in the text.
    pub fn fault(&self, at: usize, what: impl Into<String>) -> ArgError {
        ArgError { text: self.text.clone(), at, what: what.into() }
    }

    /// Where the value begins in the text.
    pub fn value_at(&self) -> usize {
        self.name.len() + 1
    }

    /// Reads one `--arg`.
    ///
    /// # Errors
    /// `ArgError` that points at the character.
    pub fn parse(text: &str) -> Result<ArgSpec, ArgError> {
        let bad = |at: usize, what: String| ArgError { text: text.to_owned(), at, what };
        let Some(eq) = text.find('=') else {
            return Err(bad(
                text.len(),
                "missing `=`: write NAME=VALUE, such as `x=f32[16]:arange` or `n=i32:16`".into(),
            ));
        };
        let name = &text[..eq];
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            return Err(bad(0, format!("`{name}` is not a name")));
        }
        let (at, value) = (eq + 1, &text[eq + 1..]);
        let kind = if value == "null" {
            ArgKind::Null
        } else if let Some(rest) = value.strip_prefix('&') {
            let (of, offset) = match rest.find('+') {
                None => (rest, 0),
                Some(plus) => {
                    let digits = &rest[plus + 1..];
                    let n = digits
                        .parse()
                        .map_err(|_| bad(at + 1 + plus + 1, format!("`{digits}` is not a byte offset")))?;
                    (&rest[..plus], n)
                }
            };
            if of.is_empty() {
                return Err(bad(at + 1, "name the argument to point into, such as `&x`".into()));
            }
            ArgKind::Alias { of: of.to_owned(), offset_bytes: offset }
        } else if let Some(rest) = value.strip_prefix('@') {
            let Some(hash) = rest.rfind('#') else {
                return Err(bad(text.len(), "missing `#NAME` of the tensor in the file".into()));
            };
            ArgKind::File { path: PathBuf::from(&rest[..hash]), tensor: rest[hash + 1..].to_owned() }
        } else if let Some(rest) = value.strip_prefix("bytes(") {
            let Some(digits) = rest.strip_suffix(')') else {
                return Err(bad(text.len(), "missing `)`".into()));
            };
            ArgKind::Bytes(parse_hex(digits).map_err(|(k, what)| bad(at + 6 + k, what))?)
        } else {
            parse_typed(value).map_err(|(k, what)| bad(at + k, what))?
        };
        Ok(ArgSpec { text: text.to_owned(), name: name.to_owned(), kind })
    }
}

fn parse_hex(digits: &str) -> Result<Vec<u8>, (usize, String)> {
    if let Some(k) = digits.find(|c: char| !c.is_ascii_hexdigit()) {
        return Err((k, "not a hexadecimal digit".into()));
    }
    if !digits.len().is_multiple_of(2) {
        return Err((digits.len(), "an odd number of hexadecimal digits".into()));
    }
    (0..digits.len() / 2)
        .map(|i| {
            u8::from_str_radix(&digits[2 * i..2 * i + 2], 16)
                .map_err(|_| (2 * i, "not hexadecimal".to_owned()))
        })
        .collect()
}

fn parse_typed(value: &str) -> Result<ArgKind, (usize, String)> {
    let type_end = value.find(['[', ':']).unwrap_or(value.len());
    let type_name = &value[..type_end];
    let dtype: DType = type_name.parse().map_err(|e: TensorError| (0, e.to_string()))?;
    let rest = &value[type_end..];
    if let Some(inner) = rest.strip_prefix('[') {
        let Some(close) = inner.find(']') else { return Err((value.len(), "missing `]`".into())) };
        let mut shape = Vec::new();
        let mut at = type_end + 1;
        if !inner[..close].trim().is_empty() {
            for part in inner[..close].split(',') {
                shape.push(
                    part.trim().parse().map_err(|_| (at, format!("`{}` is not an extent", part.trim())))?,
                );
                at += part.len() + 1;
            }
        }
        let after = type_end + 1 + close + 1;
        let Some(generator) = value[after..].strip_prefix(':') else {
            return Err((after, "missing `:GENERATOR`, such as `:zeros` or `:uniform(-1,1,seed=7)`".into()));
        };
        let generator = Generator::parse(generator).map_err(|e| match e {
            TensorError::BadGenerator { at, what, .. } => (after + 1 + at, what),
            other => (after + 1, other.to_string()),
        })?;
        assay_tensor::tensor::byte_len(dtype, &shape).map_err(|e| (type_end, e.to_string()))?;
        return Ok(ArgKind::Buffer { dtype, shape, generator });
    }
    let Some(number) = rest.strip_prefix(':') else {
        return Err((
            value.len(),
            "missing a value: `:NUMBER` for a scalar, `[SHAPE]:GENERATOR` for a buffer".into(),
        ));
    };
    let bytes = scalar_bytes(dtype, number)
        .ok_or_else(|| (type_end + 1, format!("`{number}` is not a number that `{dtype}` holds")))?;
    Ok(ArgKind::Scalar { dtype, bytes })
}

/// The little-endian bytes of a number; integers are read exactly, never through a float.
fn scalar_bytes(dtype: DType, number: &str) -> Option<Vec<u8>> {
    let size = dtype.size_bytes() as usize;
    if dtype.is_float() {
        let mut out = vec![0; size];
        assay_tensor::tensor::write_element(dtype, number.parse().ok()?, &mut out);
        return Some(out);
    }
    if dtype == DType::Bool {
        return match number {
            "true" | "1" => Some(vec![1]),
            "false" | "0" => Some(vec![0]),
            _ => None,
        };
    }
    let v: i128 = number.parse().ok()?;
    let bits = 8 * size as u32;
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let (lo, hi) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    (lo..=hi).contains(&v).then(|| v.to_le_bytes()[..size].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_is_read() {
        let kind = |t: &str| ArgSpec::parse(t).unwrap().kind;
        assert_eq!(
            kind("x=f32[64,1024]:uniform(-1,1,seed=7)"),
            ArgKind::Buffer {
                dtype: DType::F32,
                shape: vec![64, 1024],
                generator: Generator::Uniform { lo: -1.0, hi: 1.0, seed: 7 }
            }
        );
        assert_eq!(kind("n=i32:-1"), ArgKind::Scalar { dtype: DType::I32, bytes: vec![255; 4] });
        assert_eq!(
            kind("n=u64:18446744073709551615"),
            ArgKind::Scalar { dtype: DType::U64, bytes: vec![255; 8] }
        );
        assert_eq!(
            kind("a=f32:2"),
            ArgKind::Scalar { dtype: DType::F32, bytes: 2f32.to_le_bytes().to_vec() }
        );
        assert_eq!(
            kind("a=@f.safetensors#w"),
            ArgKind::File { path: "f.safetensors".into(), tensor: "w".into() }
        );
        assert_eq!(kind("p=null"), ArgKind::Null);
        assert_eq!(kind("p=&x+16"), ArgKind::Alias { of: "x".into(), offset_bytes: 16 });
        assert_eq!(kind("p=&x"), ArgKind::Alias { of: "x".into(), offset_bytes: 0 });
        assert_eq!(kind("s=bytes(00ff)"), ArgKind::Bytes(vec![0, 255]));
        assert!(matches!(kind("s=f32[]:full(3)"), ArgKind::Buffer { shape, .. } if shape.is_empty()));
    }

    #[test]
    fn errors_point_at_the_guilty_character() {
        for (text, at) in [
            ("x=f99[3]:zeros", 2),
            ("x", 1),
            ("=f32:1", 0),
            ("x=f32[3", 7),
            ("x=f32[3,y]:zeros", 8),
            ("x=f32[3]", 8),
            ("x=f32[3]:frob", 9),
            ("x=f32[3]:uniform(0,q)", 19),
            ("n=i32:3000000000", 6),
            ("n=i8:1.5", 5),
            ("p=&", 3),
            ("p=&x+z", 5),
            ("a=@f", 4),
            ("s=bytes(0g)", 9),
            ("s=bytes(000)", 11),
            ("x=f32[99999999999,99999999999]:zeros", 5),
        ] {
            assert_eq!(ArgSpec::parse(text).unwrap_err().at, at, "{text}");
        }
        let shown = ArgSpec::parse("x=f99[3]:zeros").unwrap_err().to_string();
        assert!(shown.ends_with("x=f99[3]:zeros\n    ^"), "{shown}");
    }

    #[test]
    fn any_text_is_an_argument_or_an_error_within_it() {
        const SEEDS: &[&str] = &[
            "x=f32[64,1024]:uniform(-1,1,seed=7)",
            "n=i32:1024",
            "a=@file.safetensors#a",
            "p=&x+16",
            "s=bytes(00ff)",
            "y=bf16[2,3]:list(1,2,3)",
            "z=u64[5]:hash",
        ];
        const WORDS: &[&str] = &[
            "=",
            "[",
            "]",
            ":",
            ",",
            "(",
            ")",
            "&",
            "+",
            "@",
            "#",
            "null",
            "bytes(",
            "f16",
            "0",
            "-1",
            "1e308",
            "nan",
            "18446744073709551616",
            "99999999999",
            "seed=",
            "uninit",
            "\u{e9}",
            "\u{0}",
            " ",
        ];
        let seeds: Vec<Vec<u8>> = SEEDS.iter().map(|s| s.as_bytes().to_vec()).collect();
        for case in 0..5000 {
            let choices = assay_fuzzing::seeded::random("arg_spec", case).bytes(100);
            let mut choices = assay_fuzzing::choices::Choices::new(&choices);
            let bytes = assay_fuzzing::text::edited(&mut choices, &seeds, WORDS);
            let text = String::from_utf8_lossy(&bytes);
            if let Err(e) = ArgSpec::parse(&text) {
                assert!(e.at <= text.len(), "case {case}: {text}: {e:?}");
                assert!(e.to_string().contains('^'), "case {case}: {text}");
            }
        }
    }
}
