//! Floats in JSON: finite ones as numbers, the others as the strings `Infinity`, `-Infinity` and `NaN`, because
//! JSON has no number for them and a silent `null` would not read back.
//!
//! Use with `#[serde(with = "assay_judge::serde_float")]`.

use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;

/// Writes a float.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else if value.is_nan() {
        serializer.serialize_str("NaN")
    } else {
        serializer.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

struct Float;

impl Visitor<'_> for Float {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, `Infinity`, `-Infinity` or `NaN`")
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<f64, E> {
        Ok(v)
    }

    fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<f64, E> {
        Ok(v as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<f64, E> {
        Ok(v as f64)
    }

    fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<f64, E> {
        match v {
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            "NaN" => Ok(f64::NAN),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(v), &self)),
        }
    }
}

/// Reads a float.
///
/// # Errors
/// Where the value is neither a number nor one of the three strings.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Float)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        x: f64,
    }

    #[test]
    fn every_float_reads_back() {
        for x in [0.0, 0.1, -3.5e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let text = serde_json::to_string(&Holder { x }).unwrap();
            let back: Holder = serde_json::from_str(&text).unwrap();
            assert!(back.x == x || (x.is_nan() && back.x.is_nan()), "{text}");
        }
        assert_eq!(serde_json::from_str::<Holder>("{\"x\": 3}").unwrap().x, 3.0);
        assert!(serde_json::from_str::<Holder>("{\"x\": \"inf\"}").is_err());
    }
}
