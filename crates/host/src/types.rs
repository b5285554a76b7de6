//! The types and values of host code, with C++'s integer rules.
//!
//! `int` has 32 bits, `long`, `long long`, `size_t` and `int64_t` have 64 (LP64). Conversions, the usual
//! arithmetic conversions and unsigned wrap-around are C++17's ([conv], [expr.arith.conv], [basic.fundamental]).
//! What C++ leaves undefined is decided here: signed overflow wraps and leaves a note, a division by zero and a
//! shift by the width or more are faults, a float that does not fit an integer becomes the value that x86-64's
//! conversion gives.

use std::fmt;

use assay_tensor::DType;

/// A scalar type; `bool` is an integer that holds 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Scalar {
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    pub fn bits(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 8,
            Scalar::I16 | Scalar::U16 => 16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 64,
        }
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// The name a C++ reader knows.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "signed char",
            Scalar::U8 => "unsigned char",
            Scalar::I16 => "short",
            Scalar::U16 => "unsigned short",
            Scalar::I32 => "int",
            Scalar::U32 => "unsigned int",
            Scalar::I64 => "long long",
            Scalar::U64 => "unsigned long long",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        }
    }

    /// [conv.prom]: everything narrower than `int` becomes `int`.
    pub fn promoted(self) -> Scalar {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => Scalar::I32,
            other => other,
        }
    }

    /// [expr.arith.conv]: the type in which `a op b` is computed.
    pub fn common(a: Scalar, b: Scalar) -> Scalar {
        if a == Scalar::F64 || b == Scalar::F64 {
            return Scalar::F64;
        }
        if a == Scalar::F32 || b == Scalar::F32 {
            return Scalar::F32;
        }
        let (a, b) = (a.promoted(), b.promoted());
        match (a.bits().max(b.bits()), a, b) {
            (64, _, _) => {
                if a == Scalar::U64 || b == Scalar::U64 {
                    Scalar::U64
                } else {
                    Scalar::I64
                }
            }
            _ if a == Scalar::U32 || b == Scalar::U32 => Scalar::U32,
            _ => Scalar::I32,
        }
    }

    /// Cuts an exact integer to this type; the second value says whether that changed it.
    pub fn wrap(self, v: i128) -> (i128, bool) {
        let cut = match self {
            Scalar::Bool => i128::from(v != 0),
            Scalar::I8 => i128::from(v as i8),
            Scalar::U8 => i128::from(v as u8),
            Scalar::I16 => i128::from(v as i16),
            Scalar::U16 => i128::from(v as u16),
            Scalar::I32 => i128::from(v as i32),
            Scalar::U32 => i128::from(v as u32),
            Scalar::I64 => i128::from(v as i64),
            Scalar::U64 => i128::from(v as u64),
            Scalar::F32 | Scalar::F64 => v,
        };
        (cut, cut != v)
    }
}

/// The element type behind a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elem {
    /// As written, `float4` or `__half`.
    pub name: String,
    /// Bytes of one element; `None` for `void` and types we do not know.
    pub size: Option<u64>,
    /// The dtype of one component, where it is a tensor's.
    pub dtype: Option<DType>,
    /// Components, 4 for `float4`.
    pub lanes: u64,
}

/// Scalar types of tensors and vectors, with the vector bases that CUDA has.
const ELEMENTS: [(&str, DType); 23] = [
    ("bool", DType::Bool),
    ("__half", DType::F16),
    ("half", DType::F16),
    ("__nv_bfloat16", DType::BF16),
    ("nv_bfloat16", DType::BF16),
    ("float", DType::F32),
    ("double", DType::F64),
    ("char", DType::I8),
    ("signed char", DType::I8),
    ("int8_t", DType::I8),
    ("unsigned char", DType::U8),
    ("uint8_t", DType::U8),
    ("short", DType::I16),
    ("int16_t", DType::I16),
    ("unsigned short", DType::U16),
    ("uint16_t", DType::U16),
    ("int", DType::I32),
    ("int32_t", DType::I32),
    ("unsigned int", DType::U32),
    ("uint32_t", DType::U32),
    ("long long", DType::I64),
    ("int64_t", DType::I64),
    ("unsigned long long", DType::U64),
];

const VECTOR_BASES: [(&str, DType); 12] = [
    ("char", DType::I8),
    ("uchar", DType::U8),
    ("short", DType::I16),
    ("ushort", DType::U16),
    ("int", DType::I32),
    ("uint", DType::U32),
    ("longlong", DType::I64),
    ("ulonglong", DType::U64),
    ("long", DType::I64),
    ("ulong", DType::U64),
    ("float", DType::F32),
    ("double", DType::F64),
];

impl Elem {
    /// The element type of that name; an unknown one has no size.
    pub fn named(name: &str) -> Elem {
        let of = |dtype: Option<DType>, lanes: u64| Elem {
            name: name.to_owned(),
            size: dtype.map(|d| d.size_bytes() * lanes),
            dtype,
            lanes,
        };
        if let Some((_, d)) = ELEMENTS.iter().find(|(n, _)| *n == name) {
            return of(Some(*d), 1);
        }
        match name {
            "uint64_t" | "size_t" | "unsigned long" => return of(Some(DType::U64), 1),
            "long" | "ptrdiff_t" => return of(Some(DType::I64), 1),
            "unsigned" => return of(Some(DType::U32), 1),
            "half2" | "__half2" => return of(Some(DType::F16), 2),
            "__nv_bfloat162" | "nv_bfloat162" => return of(Some(DType::BF16), 2),
            _ => {}
        }
        if let Some(lanes) = name.strip_suffix(['1', '2', '3', '4']).map(|base| (base, name.len()))
            && let Some((_, d)) = VECTOR_BASES.iter().find(|(n, _)| *n == lanes.0)
        {
            let count = u64::from(name.as_bytes()[lanes.1 - 1] - b'0');
            return of(Some(*d), count);
        }
        of(None, 1)
    }

    /// Whether two element types are one type under two names (`int64_t`, `long long`).
    pub fn same_layout(&self, other: &Elem) -> bool {
        self.name == other.name
            || (self.dtype.is_some() && self.dtype == other.dtype && self.lanes == other.lanes)
    }
}

/// A type of host code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    Void,
    Auto,
    Scalar(Scalar),
    Dim3,
    /// A pointer; the flag says that what it points to is `const`.
    Ptr(Elem, bool),
    /// `cudaStream_t`: there is one stream, so its value carries nothing.
    Stream,
    /// A type that host code may only hand on as a template argument.
    Other(String),
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Void => f.write_str("void"),
            Ty::Auto => f.write_str("auto"),
            Ty::Scalar(s) => f.write_str(s.name()),
            Ty::Dim3 => f.write_str("dim3"),
            Ty::Ptr(e, c) => write!(f, "{}{}*", if *c { "const " } else { "" }, e.name),
            Ty::Stream => f.write_str("cudaStream_t"),
            Ty::Other(n) => f.write_str(n),
        }
    }
}

/// The scalar of a type name (already joined by single spaces), `None` for any other type.
pub fn scalar_named(name: &str) -> Option<Scalar> {
    Some(match name {
        "bool" => Scalar::Bool,
        "char" | "signed char" | "int8_t" => Scalar::I8,
        "unsigned char" | "uint8_t" => Scalar::U8,
        "short" | "int16_t" => Scalar::I16,
        "unsigned short" | "uint16_t" => Scalar::U16,
        "int" | "int32_t" => Scalar::I32,
        "unsigned int" | "unsigned" | "uint32_t" | "uint" => Scalar::U32,
        "long" | "long long" | "int64_t" | "ptrdiff_t" | "intptr_t" => Scalar::I64,
        "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" | "uintptr_t" => Scalar::U64,
        "float" => Scalar::F32,
        "double" => Scalar::F64,
        _ => return None,
    })
}

/// A value of host code.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Void,
    Int(i128, Scalar),
    Float(f64, Scalar),
    Dim3([u32; 3]),
    /// `buffer` is an index into the plan's buffers; `None` is the null pointer.
    Ptr {
        buffer: Option<usize>,
        offset: i64,
        elem: Elem,
        constant: bool,
    },
    Stream,
}

impl Value {
    pub fn int(v: i32) -> Value {
        Value::Int(i128::from(v), Scalar::I32)
    }

    pub fn bool(v: bool) -> Value {
        Value::Int(i128::from(v), Scalar::Bool)
    }

    pub fn ty(&self) -> Ty {
        match self {
            Value::Void => Ty::Void,
            Value::Int(_, s) | Value::Float(_, s) => Ty::Scalar(*s),
            Value::Dim3(_) => Ty::Dim3,
            Value::Ptr { elem, constant, .. } => Ty::Ptr(elem.clone(), *constant),
            Value::Stream => Ty::Stream,
        }
    }

    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Value::Int(_, s) | Value::Float(_, s) => Some(*s),
            _ => None,
        }
    }

    /// Truth as `if` sees it; `None` for what C++ does not convert to `bool`.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Value::Int(v, _) => Some(*v != 0),
            Value::Float(v, _) => Some(*v != 0.0),
            Value::Ptr { buffer, offset, .. } => Some(buffer.is_some() || *offset != 0),
            _ => None,
        }
    }

    /// Converts a scalar to `to`; the flag says that an integer did not fit and wrapped.
    pub fn to_scalar(&self, to: Scalar) -> Option<Value> {
        Some(match (self, to.is_float()) {
            (Value::Int(v, _), false) => Value::Int(to.wrap(*v).0, to),
            (Value::Int(v, _), true) => Value::Float(round(int_to_float(*v, to), to), to),
            (Value::Float(v, _), true) => Value::Float(round(*v, to), to),
            (Value::Float(v, _), false) => Value::Int(float_to_int(*v, to), to),
            (Value::Ptr { .. }, false) if to == Scalar::Bool => Value::bool(self.truth()?),
            _ => return None,
        })
    }
}

/// Rounds to `float` where the type is that.
pub fn round(v: f64, to: Scalar) -> f64 {
    if to == Scalar::F32 { f64::from(v as f32) } else { v }
}

/// One rounding only: an `i64` straight to `float`.
fn int_to_float(v: i128, to: Scalar) -> f64 {
    if to == Scalar::F32 { f64::from(v as f32) } else { v as f64 }
}

/// Truncation; out of range as `cvttsd2si` has it (the most negative integer of 32 or 64 bits, then cut).
fn float_to_int(v: f64, to: Scalar) -> i128 {
    if to == Scalar::Bool {
        return i128::from(v != 0.0);
    }
    let t = v.trunc();
    let exact = t as i128;
    let (min, max) = match to {
        Scalar::U64 => (0, i128::from(u64::MAX)),
        Scalar::U32 | Scalar::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => (i128::from(i32::MIN), i128::from(i32::MAX)),
    };
    if v.is_nan() || exact < min || exact > max {
        let indefinite =
            if to.bits() == 64 || to == Scalar::U32 { i128::from(i64::MIN) } else { i128::from(i32::MIN) };
        return to.wrap(indefinite).0;
    }
    to.wrap(exact).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_arithmetic_conversions_are_those_of_cpp() {
        use Scalar::{Bool, F32, F64, I8, I32, I64, U16, U32, U64};
        for (a, b, want) in [
            (I8, U16, I32),
            (Bool, Bool, I32),
            (I32, U32, U32),
            (U32, I64, I64),
            (I64, U64, U64),
            (I64, F32, F32),
            (F32, F64, F64),
        ] {
            assert_eq!(Scalar::common(a, b), want, "{a:?} {b:?}");
            assert_eq!(Scalar::common(b, a), want, "{b:?} {a:?}");
        }
    }

    #[test]
    fn conversions_wrap_truncate_and_saturate_as_the_compiled_code_would() {
        let f = |v: f64, to| Value::Float(v, Scalar::F64).to_scalar(to).unwrap();
        assert_eq!(f(-1.9, Scalar::I32), Value::int(-1));
        assert_eq!(f(1e20, Scalar::I32), Value::int(i32::MIN));
        assert_eq!(f(-1.0, Scalar::U32), Value::Int(i128::from(u32::MAX), Scalar::U32));
        assert_eq!(
            Value::int(-1).to_scalar(Scalar::U64),
            Some(Value::Int(i128::from(u64::MAX), Scalar::U64))
        );
        assert_eq!(Value::Int(1 << 32, Scalar::I64).to_scalar(Scalar::I32), Some(Value::int(0)));
        assert_eq!(f(0.1, Scalar::F32), Value::Float(f64::from(0.1f32), Scalar::F32));
    }

    #[test]
    fn element_names_give_sizes_and_dtypes() {
        for (name, size, dtype) in [
            ("float4", Some(16), Some(DType::F32)),
            ("__half2", Some(4), Some(DType::F16)),
            ("unsigned char", Some(1), Some(DType::U8)),
            ("ulonglong2", Some(16), Some(DType::U64)),
            ("void", None, None),
            ("Pair", None, None),
            ("4", None, None),
        ] {
            let e = Elem::named(name);
            assert_eq!((e.size, e.dtype), (size, dtype), "{name}");
        }
    }
}
