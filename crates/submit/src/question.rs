//! One input as a line of text: a recipe of the catalogue's language, and other init arguments.
//!
//! `RECIPE[;init(I)=V]…`. Dims are module-level names of the problem file. The seed of `official` from 0 to 4 is a trial
//! of the official check, any other the seed of a draw of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use assay_extension::Value;
use assay_problems::{InputValues, Kind, Recipe};
use assay_tensor::Tensor;

use crate::reference::{Draw, Setting};
use crate::wire;

/// Trials of the official check.
pub const TRIALS: u64 = 5;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Values and extents.
    pub recipe: Recipe,
    /// Other init arguments, by position, as JSON.
    pub init: BTreeMap<usize, String>,
}

impl Question {
    /// A recipe with the problem's own init arguments.
    pub fn of(recipe: Recipe) -> Question {
        Question { recipe, init: BTreeMap::new() }
    }

    /// The problem's setting that it is asked at.
    pub fn setting(&self) -> Setting {
        Setting {
            extents: self.recipe.dims.iter().map(|(k, v)| (k.clone(), v.to_string())).collect(),
            init: self.init.clone(),
        }
    }

    /// The same at other extents.
    pub fn at(&self, dims: &BTreeMap<String, u64>) -> Question {
        Question { recipe: self.recipe.clone().with_dims(dims.clone()), init: self.init.clone() }
    }

    /// Which of the problem's own inputs it begins from.
    pub fn draw(&self) -> Draw {
        match self.recipe.kind {
            Kind::Official if self.recipe.seed < TRIALS => Draw::Trial(self.recipe.seed),
            _ => Draw::Seed(self.recipe.seed),
        }
    }

    /// Is it drawn as the official inputs are?
    pub fn is_official_kind(&self) -> bool {
        self.recipe.kind == Kind::Official && self.recipe.scale == 1.0
    }

    /// The problem's own inputs made into the recipe's. None where the recipe has nothing to change, so that the
    /// question would be the same as another.
    ///
    /// Inputs that have a structure which a correct submission may rely on keep their values: triangular, symmetric or
    /// mostly zero ones, rows that sum to 1, few distinct values, integers.
    pub fn values(&self, own: Vec<Value>) -> Option<Vec<Value>> {
        if self.is_official_kind() {
            return Some(own);
        }
        let mut changed = false;
        let mut out = Vec::with_capacity(own.len());
        for (number, value) in (0u64..).zip(own) {
            let Value::Tensor(t) = &value else {
                out.push(value);
                continue;
            };
            let mut dense = wire::dense(t);
            if !dense.dtype.is_float() || dense.is_empty() {
                out.push(value);
                continue;
            }
            let structure = Structure::of(&dense);
            match self.recipe.kind {
                Kind::Official | Kind::LogUniform(..) => {
                    let Some(by) = self.factor().filter(|_| structure.scales()) else {
                        out.push(value);
                        continue;
                    };
                    scale(&mut dense, by);
                }
                _ if structure != Structure::None => {
                    out.push(value);
                    continue;
                }
                _ => {
                    let values = InputValues::of_kind(&self.recipe, number, dense.dtype, &dense.shape);
                    values.fill(0, &mut dense.data);
                }
            }
            changed = true;
            out.push(Value::Tensor(wire::given(dense)));
        }
        changed.then_some(out)
    }

    /// The one factor of all elements, for kinds that are the official values times something.
    fn factor(&self) -> Option<f64> {
        match self.recipe.kind {
            Kind::LogUniform(lo, hi) => {
                // One magnitude for each seed: the same stream as the catalogue's.
                let u =
                    f64::from(assay_tensor::philox::Stream::new(self.recipe.seed, u64::MAX).uniform_at(0));
                Some(10f64.powf(lo + (hi - lo) * u) * self.recipe.scale)
            }
            _ => Some(self.recipe.scale),
        }
    }
}

fn scale(t: &mut Tensor, by: f64) {
    let size = usize::try_from(t.dtype.size_bytes()).unwrap_or(4);
    for i in 0..t.len() {
        let v = t.get_f64(i) * by;
        let at = usize::try_from(i).unwrap_or(0) * size;
        if let Some(place) = t.data.get_mut(at..at + size) {
            assay_tensor::tensor::write_element(t.dtype, v, place);
        }
    }
}

/// What a correct submission may rely on in an input's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Structure {
    /// Nothing.
    None,
    /// Kept by a factor: triangular, symmetric, mostly zero.
    Linear,
    /// Lost by any change: probabilities, labels.
    Fixed,
}

impl Structure {
    fn scales(self) -> bool {
        self != Structure::Fixed
    }

    fn of(t: &Tensor) -> Structure {
        let n = t.len();
        let mut distinct: Vec<u64> = Vec::new();
        let (mut zeros, mut negative) = (0u64, false);
        for i in 0..n {
            let v = t.get_f64(i);
            zeros += u64::from(v == 0.0);
            negative |= v < 0.0;
            if distinct.len() <= 4 && !distinct.contains(&v.to_bits()) {
                distinct.push(v.to_bits());
            }
        }
        if distinct.len() <= 4 && n > 8 {
            return Structure::Fixed;
        }
        if let [.., columns] = t.shape[..]
            && columns > 1
            && !negative
        {
            let rows = (n / columns).min(16);
            let sums_to_one = (0..rows).all(|r| {
                let sum: f64 = (0..columns).map(|c| t.get_f64(r * columns + c)).sum();
                (sum - 1.0).abs() < 1e-2
            });
            if sums_to_one {
                return Structure::Fixed;
            }
        }
        if zeros * 8 > n {
            return Structure::Linear;
        }
        if let [rows, columns] = t.shape[..]
            && rows == columns
            && rows > 1
        {
            let step = (rows / 64).max(1);
            let mirrored = (0..rows).step_by(usize::try_from(step).unwrap_or(1)).all(|r| {
                let c = (r * 7 + 3) % columns;
                t.get_f64(r * columns + c) == t.get_f64(c * columns + r)
            });
            if mirrored {
                return Structure::Linear;
            }
        }
        Structure::None
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.recipe)?;
        for (i, v) in &self.init {
            write!(f, ";init({i})={v}")?;
        }
        Ok(())
    }
}

impl FromStr for Question {
    type Err = String;

    fn from_str(text: &str) -> Result<Question, String> {
        let mut parts = text.split(';');
        let recipe = parts.next().unwrap_or_default().parse::<Recipe>().map_err(|e| e.to_string())?;
        let mut init = BTreeMap::new();
        for part in parts {
            let bad = || format!("`{part}` is no `init(I)=V`");
            let (position, value) =
                part.trim().strip_prefix("init(").and_then(|r| r.split_once(")=")).ok_or_else(bad)?;
            let position = position.parse::<usize>().map_err(|_| bad())?;
            serde_json::from_str::<serde_json::Value>(value)
                .ok()
                .filter(|v| {
                    let plain = |v: &serde_json::Value| v.is_number() || v.is_boolean();
                    plain(v) || v.as_array().is_some_and(|a| !a.is_empty() && a.iter().all(plain))
                })
                .ok_or_else(|| format!("`{value}` is no number and no list of them"))?;
            init.insert(position, value.to_owned());
        }
        Ok(Question { recipe, init })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_tensor::DType;

    fn tensor(shape: &[u64], values: &[f64]) -> Value {
        Value::Tensor(wire::given(Tensor::from_f64_values(DType::F32, shape, values).unwrap()))
    }

    #[test]
    fn questions_read_back_as_they_are_written() {
        for text in [
            "official#0",
            "normal(1)@batch_size=3,dim=17#7",
            "official*3@dim=4#1;init(0)=2;init(2)=0.5",
            "official#0;init(1)=[2,3]",
        ] {
            let q: Question = text.parse().unwrap();
            assert_eq!(q.to_string(), text);
        }
        assert!("official#0;init(0)=x".parse::<Question>().is_err());
        assert!("official#0;dim=3".parse::<Question>().is_err());
        let q: Question = "official@dim=4#1;init(2)=true".parse().unwrap();
        assert_eq!(q.setting().extents["dim"], "4");
        assert_eq!(q.setting().init[&2], "true");
        assert_eq!(q.draw(), Draw::Trial(1));
        assert_eq!("official#7".parse::<Question>().unwrap().draw(), Draw::Seed(7));
    }

    #[test]
    fn what_a_correct_submission_may_rely_on_is_kept() {
        let normal: Question = "normal(1)#3".parse().unwrap();
        let triple: Question = "official*3#0".parse().unwrap();
        let upper = tensor(&[3, 3], &[1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 0.0, 0.0, 6.0]);
        let labels = tensor(&[12], &[1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0]);
        let shares = tensor(&[2, 3], &[0.2, 0.3, 0.5, 0.1, 0.1, 0.8]);
        assert!(normal.values(vec![upper.clone(), labels.clone(), shares.clone()]).is_none());
        assert!(triple.values(vec![labels, shares]).is_none());
        let Some(scaled) = triple.values(vec![upper]) else { panic!("not scaled") };
        assert_eq!(wire::dense(wire::tensors(&scaled[0])[0]).get_f64(8), 18.0);
        let plain = tensor(&[2, 4], &[0.1, 0.9, 0.3, 0.4, 0.5, 0.6, 0.7, 0.2]);
        let Some(drawn) = normal.values(vec![plain]) else { panic!("not drawn") };
        let drawn = wire::dense(wire::tensors(&drawn[0])[0]);
        assert!((0..8).any(|i| drawn.get_f64(i) < 0.0));
    }
}
