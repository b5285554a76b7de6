//! Values in messages: tensors as views of storages that lie in the exchange (`docs/submission-worker.md`).
//!
//! What comes from a submission's process is hostile: every offset, extent and stride is checked against the exchange
//! and against the storage before a byte is read, and bytes are copied before they are used.

use std::collections::HashMap;

use assay_extension::{Device, Storage, Tensor, Value, contiguous_strides};
use assay_tensor::DType;
use serde_json::{Value as Json, json};

/// Storages begin where any element may begin.
const ALIGNMENT: usize = 64;
/// Dimensions of a tensor, levels of a list, storages of a message.
const MOST_DIMS: usize = 64;
const MOST_LEVELS: usize = 20;
const MOST_STORAGES: usize = 65_536;

/// Why a message cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// More bytes than the exchange has.
    #[error("{need} bytes of tensors for an exchange of {has}")]
    Full {
        /// Wanted.
        need: u64,
        /// There.
        has: u64,
    },
    /// Not of the protocol.
    #[error("{0}")]
    Broken(String),
}

fn broken(what: impl Into<String>) -> WireError {
    WireError::Broken(what.into())
}

/// Writes the values of one message.
pub struct Packer<'m> {
    map: &'m mut [u8],
    at: usize,
    places: Vec<Json>,
    known: HashMap<usize, usize>,
}

impl<'m> Packer<'m> {
    /// Begins at the exchange's first byte.
    pub fn new(map: &'m mut [u8]) -> Packer<'m> {
        Packer { map, at: 0, places: Vec::new(), known: HashMap::new() }
    }

    /// Names storages that the other side has already, in its own order from 0 on; their bytes do not travel.
    pub fn know(&mut self, storages: &[Storage]) {
        for (i, s) in storages.iter().enumerate() {
            self.known.insert(s.id(), i);
        }
    }

    /// Bytes into the exchange; offset and length.
    ///
    /// # Errors
    /// `Full`.
    pub fn bytes(&mut self, storage: &Storage) -> Result<(usize, usize), WireError> {
        storage.read(|bytes| self.raw(bytes))
    }

    /// As [`Packer::bytes`].
    ///
    /// # Errors
    /// `Full`.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(usize, usize), WireError> {
        let from = self.at.next_multiple_of(ALIGNMENT);
        let to = from.saturating_add(bytes.len());
        let has = self.map.len();
        let place = self.map.get_mut(from..to).ok_or(WireError::Full { need: to as u64, has: has as u64 })?;
        place.copy_from_slice(bytes);
        self.at = to;
        Ok((from, bytes.len()))
    }

    fn tensor(&mut self, t: &Tensor, first: usize) -> Result<Json, WireError> {
        let index = match self.known.get(&t.storage.id()) {
            Some(&i) => i,
            None => {
                let (at, len) = self.bytes(&t.storage)?;
                let index = first + self.places.len();
                self.places.push(json!([at, len]));
                self.known.insert(t.storage.id(), index);
                index
            }
        };
        Ok(json!({
            "storage": index, "dtype": t.dtype, "sizes": t.sizes, "strides": t.strides, "offset": t.offset,
        }))
    }

    /// A value; the storages that it adds are numbered from `first` on.
    ///
    /// # Errors
    /// `Full`.
    pub fn value(&mut self, v: &Value, first: usize) -> Result<Json, WireError> {
        Ok(match v {
            Value::Tensor(t) => json!({ "t": self.tensor(t, first)? }),
            Value::Int(i) => json!({ "i": i }),
            Value::Float(f) if f.is_finite() => json!({ "f": f }),
            Value::Float(f) if f.is_nan() => json!({ "f": "nan" }),
            Value::Float(f) => json!({ "f": if *f > 0.0 { "inf" } else { "-inf" } }),
            Value::Bool(b) => json!({ "b": b }),
            Value::Str(s) => json!({ "s": s }),
            Value::List(all) => json!({ "list": self.all(all, first)? }),
            Value::Tuple(all) => json!({ "tuple": self.all(all, first)? }),
            Value::DType(d) => json!({ "dtype": d }),
            Value::Device(Device::Cpu) => json!({ "device": "cpu" }),
            Value::Device(Device::Cuda) => json!({ "device": "cuda" }),
            Value::None => Json::Null,
        })
    }

    fn all(&mut self, all: &[Value], first: usize) -> Result<Vec<Json>, WireError> {
        all.iter().map(|v| self.value(v, first)).collect()
    }

    /// `storages` of the message.
    pub fn places(self) -> Vec<Json> {
        self.places
    }
}

/// The storages that a message names, copied out of the exchange.
///
/// # Errors
/// `Broken` for a list that is none, or a place outside the exchange.
pub fn storages(map: &[u8], message: &Json) -> Result<Vec<Storage>, WireError> {
    Ok(memory(map, message)?.into_iter().map(Storage::new).collect())
}

/// As [`storages`], the bytes alone.
///
/// # Errors
/// As there.
pub fn memory(map: &[u8], message: &Json) -> Result<Vec<Vec<u8>>, WireError> {
    let Some(listed) = message.get("storages") else { return Ok(Vec::new()) };
    let listed = listed.as_array().ok_or_else(|| broken("`storages` is no list"))?;
    if listed.len() > MOST_STORAGES {
        return Err(broken("too many storages"));
    }
    // Places may overlap, so that their sum may be far more than the exchange holds.
    let mut total = 0usize;
    listed
        .iter()
        .map(|place| {
            let (at, len) = place_of(place)?;
            total = total.saturating_add(len);
            let bytes = at.checked_add(len).and_then(|end| map.get(at..end)).filter(|_| total <= map.len());
            Ok(bytes.ok_or_else(|| broken("a storage outside the exchange"))?.to_vec())
        })
        .collect()
}

fn place_of(place: &Json) -> Result<(usize, usize), WireError> {
    let number = |i: usize| {
        place
            .get(i)
            .and_then(Json::as_u64)
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(|| broken("a bad place"))
    };
    Ok((number(0)?, number(1)?))
}

fn numbers(v: &Json, key: &str) -> Result<Vec<u64>, WireError> {
    let list =
        v.get(key).and_then(Json::as_array).ok_or_else(|| broken(format!("a tensor without `{key}`")))?;
    if list.len() > MOST_DIMS {
        return Err(broken("a tensor of too many dimensions"));
    }
    list.iter().map(|n| n.as_u64().ok_or_else(|| broken(format!("`{key}` of a tensor")))).collect()
}

fn tensor(v: &Json, storages: &[Storage]) -> Result<Tensor, WireError> {
    let number = |key: &str| {
        v.get(key).and_then(Json::as_u64).ok_or_else(|| broken(format!("a tensor without `{key}`")))
    };
    let dtype: DType = v
        .get("dtype")
        .and_then(Json::as_str)
        .and_then(|d| d.parse().ok())
        .ok_or_else(|| broken("a tensor of no dtype"))?;
    let (sizes, strides) = (numbers(v, "sizes")?, numbers(v, "strides")?);
    let offset = number("offset")?;
    let storage = usize::try_from(number("storage")?)
        .ok()
        .and_then(|i| storages.get(i))
        .ok_or_else(|| broken("a tensor of no storage"))?;
    if sizes.len() != strides.len() {
        return Err(broken("a tensor whose sizes and strides differ in number"));
    }
    let elements = sizes.iter().try_fold(1u64, |n, s| n.checked_mul(*s));
    let last = sizes.iter().zip(&strides).try_fold(offset, |at, (size, stride)| {
        size.saturating_sub(1).checked_mul(*stride).and_then(|n| at.checked_add(n))
    });
    let need = match elements {
        Some(0) => Some(0),
        Some(_) => last.and_then(|l| l.checked_add(1)).and_then(|n| n.checked_mul(dtype.size_bytes())),
        None => None,
    };
    if need.is_none_or(|n| n > storage.len_bytes()) {
        return Err(broken("a tensor that leaves its storage"));
    }
    // Repeated elements (stride 0) could ask for far more than there is when they are laid out.
    if elements.and_then(|n| n.checked_mul(dtype.size_bytes())).is_none_or(|n| n > 1 << 34) {
        return Err(broken("a tensor of too many elements"));
    }
    Ok(Tensor { storage: storage.clone(), dtype, sizes, strides, offset, device: Device::Cuda })
}

/// A value of a message.
///
/// # Errors
/// `Broken`.
pub fn value(v: &Json, storages: &[Storage]) -> Result<Value, WireError> {
    value_at(v, storages, 0)
}

fn value_at(v: &Json, storages: &[Storage], level: usize) -> Result<Value, WireError> {
    if level > MOST_LEVELS {
        return Err(broken("a value nested too deep"));
    }
    let Some(map) = v.as_object() else {
        return if v.is_null() { Ok(Value::None) } else { Err(broken("a value that is none")) };
    };
    let (Some((kind, x)), 1) = (map.iter().next(), map.len()) else {
        return Err(broken("a value that is none"));
    };
    let all = || {
        x.as_array()
            .ok_or_else(|| broken("a list that is none"))?
            .iter()
            .map(|y| value_at(y, storages, level + 1))
            .collect::<Result<Vec<_>, _>>()
    };
    let bad = || broken(format!("a bad `{kind}`"));
    Ok(match kind.as_str() {
        "t" => Value::Tensor(tensor(x, storages)?),
        "i" => Value::Int(x.as_i64().ok_or_else(bad)?),
        "f" => Value::Float(match x {
            Json::String(s) => s.parse().map_err(|_| bad())?,
            x => x.as_f64().ok_or_else(bad)?,
        }),
        "b" => Value::Bool(x.as_bool().ok_or_else(bad)?),
        "s" => Value::Str(x.as_str().ok_or_else(bad)?.to_owned()),
        "list" => Value::List(all()?),
        "tuple" => Value::Tuple(all()?),
        "dtype" => Value::DType(x.as_str().and_then(|d| d.parse().ok()).ok_or_else(bad)?),
        "device" => Value::Device(if x.as_str() == Some("cpu") { Device::Cpu } else { Device::Cuda }),
        _ => return Err(broken(format!("a value of the kind `{kind}`"))),
    })
}

/// The tensors of a value, in order.
pub fn tensors(value: &Value) -> Vec<&Tensor> {
    match value {
        Value::Tensor(t) => vec![t],
        Value::List(all) | Value::Tuple(all) => all.iter().flat_map(tensors).collect(),
        Value::Int(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Str(_)
        | Value::DType(_)
        | Value::Device(_)
        | Value::None => Vec::new(),
    }
}

/// A tensor's elements in row-major order.
pub fn dense(t: &Tensor) -> assay_tensor::Tensor {
    assay_tensor::Tensor { dtype: t.dtype, shape: t.sizes.clone(), data: t.gather() }
}

/// A tensor of an extension with these elements.
pub fn given(t: assay_tensor::Tensor) -> Tensor {
    Tensor {
        strides: contiguous_strides(&t.shape),
        sizes: t.shape,
        dtype: t.dtype,
        storage: Storage::new(t.data),
        offset: 0,
        device: Device::Cuda,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_views_of_one_storage_stay_that_across_the_exchange() {
        let mut map = vec![0u8; 4096];
        let whole =
            given(assay_tensor::Tensor { dtype: DType::F32, shape: vec![2, 3], data: (0..24).collect() });
        let part = Tensor { sizes: vec![3], strides: vec![1], offset: 3, ..whole.clone() };
        let sent = Value::List(vec![
            Value::Tensor(whole),
            Value::Tensor(part),
            Value::Float(f64::NEG_INFINITY),
            Value::Tuple(vec![Value::Int(-3), Value::Bool(true), Value::None]),
        ]);
        let mut packer = Packer::new(&mut map);
        let described = packer.value(&sent, 0).unwrap();
        let message = json!({ "storages": packer.places() });
        let there = storages(&map, &message).unwrap();
        assert_eq!(there.len(), 1);
        let Value::List(got) = value(&described, &there).unwrap() else { panic!("no list") };
        let views: Vec<&Tensor> = got.iter().flat_map(tensors).collect();
        assert!(views[0].storage.same(&views[1].storage));
        assert_eq!(dense(views[1]).data, (12..24).collect::<Vec<u8>>());
        assert!(matches!(got[2], Value::Float(f) if f == f64::NEG_INFINITY));
    }

    #[test]
    fn what_leaves_the_exchange_or_its_storage_is_refused() {
        let map = vec![0u8; 64];
        for bad in [
            json!({"storages": [[60, 8]]}),
            json!({"storages": [[u64::MAX, 8]]}),
            json!({"storages": [[0, 64], [0, 64]]}),
            json!({"storages": [["a", 1]]}),
            json!({"storages": 3}),
        ] {
            assert!(storages(&map, &bad).is_err(), "{bad}");
        }
        let there = storages(&map, &json!({"storages": [[0, 16]]})).unwrap();
        let tensor = |sizes: Json, strides: Json, offset: u64| {
            value(
                &json!({"t": {"storage": 0, "dtype": "f32", "sizes": sizes, "strides": strides, "offset": offset}}),
                &there,
            )
        };
        assert!(tensor(json!([4]), json!([1]), 0).is_ok());
        assert!(tensor(json!([0]), json!([1]), 99).is_ok());
        assert!(tensor(json!([4]), json!([1]), 1).is_err());
        assert!(tensor(json!([4]), json!([u64::MAX]), 0).is_err());
        assert!(tensor(json!([1u64 << 40, 1u64 << 40]), json!([0, 0]), 0).is_err());
        assert!(tensor(json!([1u64 << 40]), json!([0]), 0).is_err());
        assert!(tensor(json!([2]), json!([1, 1]), 0).is_err());
        let mut deep = json!({"i": 1});
        for _ in 0..100 {
            deep = json!({ "list": [deep] });
        }
        assert!(value(&deep, &there).is_err());
        assert!(
            value(
                &json!({"t": {"storage": 7, "dtype": "f32", "sizes": [], "strides": [], "offset": 0}}),
                &there
            )
            .is_err()
        );
    }
}
