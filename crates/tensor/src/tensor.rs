//! A contiguous tensor and its elements.

use half::{bf16, f16};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{DType, TensorError};

/// Elements of a shape, or `None` where the product does not fit in a `u64`. The empty shape has one.
pub fn numel(shape: &[u64]) -> Option<u64> {
    // A zero anywhere makes the tensor empty, whatever the other extents are.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
}

/// A contiguous row-major tensor; `data` holds little-endian elements, exactly as many as the shape says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<u64>,
    /// The elements' bytes.
    pub data: Vec<u8>,
}

/// Bytes of a tensor of that dtype and shape, if they fit in memory.
///
/// # Errors
/// `TooLarge` where the count overflows or does not fit the address space.
pub fn byte_len(dtype: DType, shape: &[u64]) -> Result<usize, TensorError> {
    numel(shape)
        .and_then(|n| n.checked_mul(dtype.size_bytes()))
        .and_then(|n| usize::try_from(n).ok())
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| TensorError::TooLarge(shape.to_vec()))
}

macro_rules! typed_access {
    ($($get:ident $make:ident $t:ty, $d:ident;)*) => {$(
        /// The elements as a slice, where the dtype is this one.
        pub fn $get(&self) -> Option<&[$t]> {
            if self.dtype != DType::$d { return None; }
            // An empty vector's pointer need not be aligned for a wider type.
            if self.data.is_empty() { return Some(&[]); }
            bytemuck::try_cast_slice(&self.data).ok()
        }

        /// A tensor of these values.
        ///
        /// # Errors
        /// `LengthMismatch` where the shape holds another number of elements; `TooLarge`.
        pub fn $make(shape: &[u64], values: &[$t]) -> Result<Tensor, TensorError> {
            byte_len(DType::$d, shape)?;
            let want = numel(shape).unwrap_or(0);
            if want != values.len() as u64 {
                return Err(TensorError::LengthMismatch { shape: shape.to_vec(), want, got: values.len() as u64 });
            }
            Ok(Tensor { dtype: DType::$d, shape: shape.to_vec(), data: bytemuck::cast_slice(values).to_vec() })
        }
    )*};
}

impl Tensor {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// `TooLarge` where the bytes do not fit.
    pub fn zeros(dtype: DType, shape: &[u64]) -> Result<Tensor, TensorError> {
        Ok(Tensor { dtype, shape: shape.to_vec(), data: vec![0; byte_len(dtype, shape)?] })
    }

    /// A tensor over bytes already at hand.
    ///
    /// # Errors
    /// `LengthMismatch` where the shape needs another number of bytes; `TooLarge`.
    pub fn from_bytes(dtype: DType, shape: &[u64], data: Vec<u8>) -> Result<Tensor, TensorError> {
        let want = byte_len(dtype, shape)?;
        if want != data.len() {
            return Err(TensorError::LengthMismatch {
                shape: shape.to_vec(),
                want: want as u64 / dtype.size_bytes(),
                got: data.len() as u64 / dtype.size_bytes(),
            });
        }
        Ok(Tensor { dtype, shape: shape.to_vec(), data })
    }

    typed_access! {
        as_f32 from_f32 f32, F32;
        as_f64 from_f64 f64, F64;
        as_i32 from_i32 i32, I32;
        as_i64 from_i64 i64, I64;
        as_u32 from_u32 u32, U32;
        as_u8 from_u8 u8, U8;
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.data.len() as u64 / self.dtype.size_bytes()
    }

    /// True where there is no element.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Element `i` (row-major) as float64. 64-bit integers beyond 2^53 are rounded; see [`Tensor::get_i128`].
    ///
    /// # Panics
    /// Where `i` is not below [`Tensor::len`].
    pub fn get_f64(&self, i: u64) -> f64 {
        let at = i as usize * self.dtype.size_bytes() as usize;
        let b = &self.data[at..];
        match self.dtype {
            DType::Bool => f64::from(u8::from(b[0] != 0)),
            DType::F16 => f16::from_le_bytes([b[0], b[1]]).to_f64(),
            DType::BF16 => bf16::from_le_bytes([b[0], b[1]]).to_f64(),
            DType::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            DType::F64 => f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            _ => self.get_i128(i).unwrap_or(0) as f64,
        }
    }

    /// Element `i` as an exact integer; `None` for the floating-point types.
    ///
    /// # Panics
    /// Where `i` is not below [`Tensor::len`].
    pub fn get_i128(&self, i: u64) -> Option<i128> {
        let at = i as usize * self.dtype.size_bytes() as usize;
        let b = &self.data[at..];
        Some(match self.dtype {
            DType::Bool => i128::from(b[0] != 0),
            DType::I8 => i128::from(b[0] as i8),
            DType::U8 => i128::from(b[0]),
            DType::I16 => i128::from(i16::from_le_bytes([b[0], b[1]])),
            DType::U16 => i128::from(u16::from_le_bytes([b[0], b[1]])),
            DType::I32 => i128::from(i32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            DType::U32 => i128::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            DType::I64 => i128::from(i64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
            DType::U64 => i128::from(u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return None,
        })
    }

    /// All elements as float64.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        match self.dtype {
            DType::F32 => self.as_f32().unwrap_or(&[]).iter().map(|&x| f64::from(x)).collect(),
            DType::F64 => self.as_f64().unwrap_or(&[]).to_vec(),
            _ => (0..self.len()).map(|i| self.get_f64(i)).collect(),
        }
    }

    /// A tensor of `dtype` from float64 values: floats rounded to nearest even, integers truncated and saturated,
    /// bool true where not zero.
    ///
    /// # Errors
    /// `LengthMismatch`, `TooLarge`.
    pub fn from_f64_values(dtype: DType, shape: &[u64], values: &[f64]) -> Result<Tensor, TensorError> {
        let mut t = Tensor::zeros(dtype, shape)?;
        if t.len() != values.len() as u64 {
            return Err(TensorError::LengthMismatch {
                shape: shape.to_vec(),
                want: t.len(),
                got: values.len() as u64,
            });
        }
        let size = dtype.size_bytes() as usize;
        for (chunk, &v) in t.data.chunks_exact_mut(size).zip(values) {
            write_element(dtype, v, chunk);
        }
        Ok(t)
    }

    /// SHA-256 of the elements' bytes, in lower-case hexadecimal.
    pub fn sha256_hex(&self) -> String {
        hex(&Sha256::digest(&self.data))
    }

    /// The first `n` elements as JSON: numbers, booleans, and the strings `NaN`, `Infinity`, `-Infinity` where
    /// JSON has no number.
    pub fn head(&self, n: u64) -> Vec<Value> {
        (0..self.len().min(n)).map(|i| self.json_at(i)).collect()
    }

    /// Element `i` as JSON, as in [`Tensor::head`].
    ///
    /// # Panics
    /// Where `i` is not below [`Tensor::len`].
    pub fn json_at(&self, i: u64) -> Value {
        if self.dtype == DType::Bool {
            return Value::from(self.get_f64(i) != 0.0);
        }
        match self.get_i128(i) {
            Some(v) => i64::try_from(v)
                .map(Value::from)
                .or_else(|_| u64::try_from(v).map(Value::from))
                .unwrap_or(Value::Null),
            None => json_float(self.get_f64(i)),
        }
    }
}

/// A float as a JSON number, or as a string where JSON has none.
pub fn json_float(x: f64) -> Value {
    if x.is_nan() {
        Value::from("NaN")
    } else if x.is_infinite() {
        Value::from(if x > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        Value::from(x)
    }
}

/// Writes `v` as one little-endian element of `dtype` into `out` (exactly the element's bytes).
pub fn write_element(dtype: DType, v: f64, out: &mut [u8]) {
    match dtype {
        DType::Bool => out[0] = u8::from(v != 0.0),
        DType::F16 => out.copy_from_slice(&f16::from_f64(v).to_le_bytes()),
        DType::BF16 => out.copy_from_slice(&bf16::from_f64(v).to_le_bytes()),
        DType::F32 => out.copy_from_slice(&(v as f32).to_le_bytes()),
        DType::F64 => out.copy_from_slice(&v.to_le_bytes()),
        DType::I8 => out[0] = v as i8 as u8,
        DType::U8 => out[0] = v as u8,
        DType::I16 => out.copy_from_slice(&(v as i16).to_le_bytes()),
        DType::U16 => out.copy_from_slice(&(v as u16).to_le_bytes()),
        DType::I32 => out.copy_from_slice(&(v as i32).to_le_bytes()),
        DType::U32 => out.copy_from_slice(&(v as u32).to_le_bytes()),
        DType::I64 => out.copy_from_slice(&(v as i64).to_le_bytes()),
        DType::U64 => out.copy_from_slice(&(v as u64).to_le_bytes()),
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut s, b| {
        // Writing to a String cannot fail.
        let _ = write!(s, "{b:02x}");
        s
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numel_is_checked_and_empty_wins() {
        assert_eq!(numel(&[]), Some(1));
        assert_eq!(numel(&[3, 4]), Some(12));
        assert_eq!(numel(&[1 << 33, 1 << 33]), None);
        assert_eq!(numel(&[1 << 33, 0, 1 << 33]), Some(0));
        assert!(Tensor::zeros(DType::F64, &[1 << 61]).is_err());
    }

    #[test]
    fn values_come_back_for_every_dtype() {
        for d in DType::ALL {
            let t = Tensor::from_f64_values(d, &[3], &[0.0, 1.0, 1.0]).unwrap();
            assert_eq!(t.to_f64_vec(), [0.0, 1.0, 1.0], "{d}");
            assert_eq!(t.len(), 3);
        }
        let t = Tensor::from_f64_values(DType::I8, &[2], &[-5.0, 300.0]).unwrap();
        assert_eq!(t.to_f64_vec(), [-5.0, 127.0]);
        assert_eq!(Tensor::from_i64(&[1], &[(1 << 53) + 1]).unwrap().get_i128(0), Some((1 << 53) + 1));
    }

    #[test]
    fn heads_spell_what_json_cannot_hold() {
        let t = Tensor::from_f32(&[4], &[1.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY]).unwrap();
        let want = [Value::from(1.5), Value::from("NaN"), Value::from("Infinity"), Value::from("-Infinity")];
        assert_eq!(t.head(9), want);
    }

    #[test]
    fn a_wrong_count_is_refused() {
        assert!(matches!(
            Tensor::from_f32(&[2], &[0.0]),
            Err(TensorError::LengthMismatch { want: 2, got: 1, .. })
        ));
        assert!(Tensor::from_bytes(DType::F32, &[1], vec![0; 3]).is_err());
    }

    #[test]
    fn the_hash_is_that_of_the_bytes() {
        let t = Tensor::from_u8(&[3], b"abc").unwrap();
        assert_eq!(t.sha256_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
