//! `problem.toml` as serde reads it; `load.rs` gives it meaning.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::Spanned;

use crate::problem::Degenerate;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    pub name: Spanned<String>,
    pub level: u32,
    pub id: u32,
    #[serde(default)]
    pub techniques: Vec<String>,
    #[serde(default)]
    pub operators: Vec<String>,
    #[serde(default)]
    pub nan_ok: bool,
    pub tolerance_note: Option<String>,
    pub notes: Option<String>,
    #[serde(default = "yes")]
    pub refereeable: bool,
    pub degenerate: Option<Degenerate>,
    pub outputs: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub output_shapes: BTreeMap<Spanned<String>, Spanned<Vec<Spanned<Extent>>>>,
    #[serde(default)]
    pub inplace: Vec<Spanned<String>>,
    pub reference: Spanned<String>,
    #[serde(default)]
    pub dims: BTreeMap<Spanned<String>, DimSpec>,
    #[serde(default)]
    pub derived: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    pub scalars: BTreeMap<Spanned<String>, f64>,
    #[serde(default)]
    pub inputs: Vec<InputSpec>,
    #[serde(default)]
    pub ragged: RaggedSpec,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DimSpec {
    pub official: Spanned<u64>,
    pub desk: Spanned<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputSpec {
    pub name: Spanned<String>,
    pub kind: Option<Spanned<String>>,
    pub dtype: Spanned<String>,
    pub shape: Spanned<Vec<Spanned<Extent>>>,
    pub init: Spanned<String>,
    pub structure: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaggedSpec {
    #[serde(default)]
    pub shapes: Vec<BTreeMap<Spanned<String>, Spanned<u64>>>,
}

/// An entry of a shape.
#[derive(Debug)]
pub(crate) enum Extent {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Entry;
        impl Visitor<'_> for Entry {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an extent: an integer, or an expression over dims in quotes")
            }

            fn visit_i64<E: Error>(self, v: i64) -> Result<Extent, E> {
                u64::try_from(v).map(Extent::Number).map_err(|_| E::custom("an extent is not negative"))
            }

            fn visit_u64<E: Error>(self, v: u64) -> Result<Extent, E> {
                Ok(Extent::Number(v))
            }

            fn visit_str<E: Error>(self, v: &str) -> Result<Extent, E> {
                Ok(Extent::Text(v.to_owned()))
            }
        }
        d.deserialize_any(Entry)
    }
}
