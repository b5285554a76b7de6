//! Operations other than the batched product, as data (`sweeps/cases/*.toml`): how to call them, what they take, and what
//! the right answer is, batch by batch. The boundary paper's first-pass suite (§4.6) is of this kind.

use std::collections::BTreeMap;

use assay_ops::{Program, Variant};
use assay_tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::condition::dtype as dtype_named;
use crate::device::CASES;
use crate::error::SweepError;
use crate::geometry::{Product, Role, Shape, View};
use crate::plan::boundary;
use crate::values::{Kind, Values};

/// A case file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name after `assay sweep`.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// Where it is from.
    #[serde(default)]
    pub source: String,
    /// The call: an expression over the operands, `torch`, `device` and `{B}`.
    pub call: String,
    /// Element types of the operands that have none of their own, and of the output.
    pub dtypes: Vec<String>,
    /// The operands.
    #[serde(default, rename = "operand")]
    pub operands: Vec<CaseOperand>,
    /// The output.
    pub output: CaseOutput,
    /// What the output must be.
    pub reference: Reference,
    /// Elements of one batch of the tensor that crosses the boundaries.
    pub crossing: u64,
    /// Relative error from which a batch is wrong, where the calibration alone would not do.
    #[serde(default)]
    pub tolerance: Option<f64>,
}

/// An operand: `B` batches of this shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseOperand {
    /// Its name in the call.
    pub name: String,
    /// The shape of one batch; empty for one element.
    pub shape: Vec<u64>,
    /// Its element type, where not the case's.
    #[serde(default)]
    pub dtype: Option<String>,
    /// `random`, or `permutation`: element i is an index of a batch, all different.
    #[serde(default = "random")]
    pub values: String,
    /// `device`, or `cpu` for an operand that the call moves.
    #[serde(default = "on_device")]
    pub place: String,
}

fn random() -> String {
    "random".into()
}

fn on_device() -> String {
    "device".into()
}

/// The output: `times` x B batches of this shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseOutput {
    /// The shape of one batch; empty for one element.
    pub shape: Vec<u64>,
    /// Its element type, where not the case's.
    #[serde(default)]
    pub dtype: Option<String>,
    /// Batches of the output for one of the operands.
    #[serde(default = "once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

/// How the right answer of a batch is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Reference {
    /// Lines in the language of references, evaluated in float64 on one batch; the output is `out`.
    Lines(String),
    /// Element i is i.
    Arange,
    /// Element i is from + i (to - from) / (elements - 1).
    Linspace {
        /// The first element.
        from: f64,
        /// The last element.
        to: f64,
    },
    /// Every element is this.
    Constant(f64),
    /// Batch i of the output is the batch of `of` that element i of `by` names.
    Take {
        /// The operand taken from.
        of: String,
        /// The operand of indices.
        by: String,
    },
    /// The batches of these operands, one operand after the other.
    Cat(Vec<String>),
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// TOML of another form, lines that are no reference, names that are not there.
    pub fn parse(text: &str, origin: &str) -> Result<Case, SweepError> {
        let case: Case = toml::from_str(text)
            .map_err(|e| SweepError::bad(format!("{origin}: {}", e.to_string().trim_end())))?;
        let bad = |what: String| SweepError::bad(format!("{origin}: {what}"));
        let known = |name: &str| case.operands.iter().any(|o| o.name == name);
        match &case.reference {
            Reference::Lines(_) => {
                case.program().map_err(|e| bad(e.to_string()))?;
            }
            Reference::Take { of, by } => {
                for name in [of, by] {
                    if !known(name) {
                        return Err(bad(format!("there is no operand `{name}`")));
                    }
                }
            }
            Reference::Cat(names) => {
                if let Some(name) = names.iter().find(|n| !known(n)) {
                    return Err(bad(format!("there is no operand `{name}`")));
                }
            }
            _ => {}
        }
        for shape in case.operands.iter().map(|o| &o.shape).chain([&case.output.shape]) {
            if shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).is_none_or(|n| n == 0 || n > 1 << 28) {
                return Err(bad(format!("{shape:?} is no shape of a batch")));
            }
        }
        for name in &case.dtypes {
            dtype_named(name).ok_or_else(|| bad(format!("`{name}` is not a dtype")))?;
        }
        if case.crossing == 0 || case.output.times == 0 || case.dtypes.is_empty() {
            return Err(bad("`crossing`, `times` and `dtypes` must not be empty".into()));
        }
        if case.operands.iter().any(|o| !matches!(o.values.as_str(), "random" | "permutation")) {
            return Err(bad("values are `random` or `permutation`".into()));
        }
        Ok(case)
    }

    /// The built-in case of that name, or a case file.
    ///
    /// # Errors
    /// No such case.
    pub fn find(name: &str) -> Result<Case, SweepError> {
        if name.ends_with(".toml") || name.contains('/') {
            let path = std::path::Path::new(name);
            return Case::parse(&std::fs::read_to_string(path).map_err(SweepError::reading(path))?, name);
        }
        for (file, text) in CASES {
            if *file == name {
                return Case::parse(text, &format!("sweeps/cases/{file}.toml"));
            }
        }
        let names: Vec<&str> = CASES.iter().map(|(n, _)| *n).collect();
        Err(SweepError::bad(format!("there is no operation `{name}`; there are bmm, {}", names.join(", "))))
    }

    fn program(&self) -> Result<Option<Program>, SweepError> {
        let Reference::Lines(lines) = &self.reference else { return Ok(None) };
        let names: Vec<&str> = self.operands.iter().map(|o| o.name.as_str()).collect();
        Program::parse(lines, &names, &[]).map(Some).map_err(|e| SweepError::bad(e.to_string()))
    }

    /// The element type of an operand.
    pub fn operand_dtype(&self, o: &CaseOperand, dtype: DType) -> DType {
        o.dtype.as_deref().and_then(dtype_named).unwrap_or(dtype)
    }

    /// The element type of the output.
    pub fn output_dtype(&self, dtype: DType) -> DType {
        self.output.dtype.as_deref().and_then(dtype_named).unwrap_or(dtype)
    }

    /// Elements of one batch of the output.
    pub fn output_elements(&self) -> u64 {
        self.output.shape.iter().product()
    }

    /// Bytes of all tensors at `batch` batches.
    pub fn bytes(&self, batch: u64, dtype: DType) -> u64 {
        let operands: u64 = self
            .operands
            .iter()
            .map(|o| o.shape.iter().product::<u64>() * self.operand_dtype(o, dtype).size_bytes())
            .sum();
        batch
            * (operands + self.output.times * self.output_elements() * self.output_dtype(dtype).size_bytes())
    }

    /// The call with `{B}` filled in.
    pub fn call_at(&self, batch: u64, dtype: DType) -> String {
        let torch = torch_dtype(self.output_dtype(dtype));
        self.call.replace("{B}", &batch.to_string()).replace("{dtype}", torch)
    }

    /// A product with the output's size, for conditions about it.
    pub fn as_product(&self, batch: u64) -> Product {
        let per = self.output.times * self.output_elements();
        let view = |rows, cols| View {
            role: Role::A,
            batches: batch,
            rows,
            cols,
            skip: 0,
            transposed: false,
            flipped: false,
        };
        Product { output: "out", left: view(per, 1), right: view(1, 1) }
    }
}

/// Makes the values of a case's operands and the right outputs.
pub struct Answers<'a> {
    case: &'a Case,
    program: Option<Program>,
    batch: u64,
    dtype: DType,
    seed: u64,
}

impl<'a> Answers<'a> {
    /// For `batch` batches.
    ///
    /// # Errors
    /// Lines that are no reference.
    pub fn new(case: &'a Case, batch: u64, dtype: DType, seed: u64) -> Result<Answers<'a>, SweepError> {
        Ok(Answers { case, program: case.program()?, batch, dtype, seed })
    }

    /// One batch of operand number `which`.
    pub fn operand(&self, which: usize, batch: u64, out: &mut Vec<f32>) {
        let o = &self.case.operands[which];
        let n: u64 = o.shape.iter().product();
        out.resize(n as usize, 0.0);
        if o.values == "permutation" {
            for (i, v) in out.iter_mut().enumerate() {
                *v = self.permuted(batch * n + i as u64) as f32;
            }
            return;
        }
        // Operands beyond two take other seeds.
        let role = if which.is_multiple_of(2) { Role::A } else { Role::B };
        let shape = if role == Role::A { Shape { m: n, k: 1, n: 1 } } else { Shape { m: 1, k: 1, n } };
        let dtype = self.case.operand_dtype(o, self.dtype);
        Values::new(self.seed + (which as u64 / 2) * 1_000_003, Kind::Random, dtype, role, shape, false)
            .batch(batch as i64, out);
    }

    /// A permutation of 0..B: a step that has no factor in common with B.
    fn permuted(&self, i: u64) -> u64 {
        let b = self.batch;
        let mut step = b / 2 + b / 7 + 1;
        while gcd(step, b) != 1 {
            step += 1;
        }
        u64::try_from((u128::from(i) * u128::from(step) + 3) % u128::from(b)).unwrap_or(0)
    }

    /// Element `i` of a permutation operand, as a number of any size.
    pub fn permuted_at(&self, i: u64) -> f64 {
        self.permuted(i) as f64
    }

    /// The right batch `batch` of the output, in float64.
    ///
    /// # Errors
    /// A reference that cannot be evaluated on these shapes.
    pub fn output(&self, batch: u64, out: &mut Vec<f64>) -> Result<(), SweepError> {
        let n = self.case.output_elements();
        out.clear();
        let mut values = Vec::new();
        let index_of = |name: &str| self.case.operands.iter().position(|o| o.name == name).unwrap_or(0);
        match &self.case.reference {
            Reference::Arange => out.extend((0..n).map(|i| (batch * n + i) as f64)),
            Reference::Linspace { from, to } => {
                let last = (self.batch * self.case.output.times * n - 1) as f64;
                out.extend((0..n).map(|i| from + (to - from) * ((batch * n + i) as f64 / last)));
            }
            Reference::Constant(v) => out.resize(n as usize, *v),
            Reference::Take { of, .. } => {
                self.operand(index_of(of), self.permuted(batch), &mut values);
                out.extend(values.iter().map(|&v| f64::from(v)));
            }
            Reference::Cat(names) => {
                let which = (batch / self.batch) as usize;
                let name =
                    names.get(which).ok_or_else(|| SweepError::bad("a batch beyond the last operand"))?;
                self.operand(index_of(name), batch % self.batch, &mut values);
                out.extend(values.iter().map(|&v| f64::from(v)));
            }
            Reference::Lines(_) => {
                let program = self.program.as_ref().ok_or_else(|| SweepError::bad("no reference"))?;
                let mut inputs = BTreeMap::new();
                for (i, o) in self.case.operands.iter().enumerate() {
                    self.operand(i, batch, &mut values);
                    let wide: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
                    let mut shape = vec![1];
                    shape.extend(&o.shape);
                    let t = Tensor::from_f64_values(self.case.operand_dtype(o, self.dtype), &shape, &wide)
                        .map_err(|e| SweepError::bad(e.to_string()))?;
                    inputs.insert(o.name.clone(), t);
                }
                let made = program
                    .evaluate(&inputs, &BTreeMap::new(), &["out".to_owned()], &Variant::truth())
                    .map_err(|e| SweepError::bad(format!("{}: {e}", self.case.name)))?;
                let t = made.get("out").ok_or_else(|| SweepError::bad("a reference without `out`"))?;
                if t.len() != n {
                    return Err(SweepError::bad(format!(
                        "{}: the reference has {} elements a batch, the output {n}",
                        self.case.name,
                        t.len()
                    )));
                }
                out.extend(t.to_f64_vec());
            }
        }
        Ok(())
    }
}

/// PyTorch's name of an element type.
pub fn torch_dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "torch.float16",
        DType::BF16 => "torch.bfloat16",
        DType::F32 => "torch.float32",
        DType::F64 => "torch.float64",
        DType::I8 => "torch.int8",
        DType::U8 => "torch.uint8",
        DType::I16 => "torch.int16",
        DType::U16 => "torch.uint16",
        DType::I32 => "torch.int32",
        DType::U32 => "torch.uint32",
        DType::I64 => "torch.int64",
        DType::U64 => "torch.uint64",
        DType::Bool => "torch.bool",
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The sizes of a case: a small one, and the boundaries of the crossing tensor with their neighbours.
///
/// # Errors
/// A boundary that is no count.
pub fn sizes(case: &Case, dtype: DType, boundaries: &[String]) -> Result<Vec<u64>, SweepError> {
    let small = ((1u64 << 24) / case.crossing).max(1);
    let mut out = vec![small];
    for text in boundaries {
        let at = boundary(text, dtype)? / case.crossing;
        if at > small + 1 {
            out.extend([at - 1, at, at + 1]);
        }
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// The names and titles of the built-in cases.
pub fn names() -> Vec<(String, String)> {
    CASES.iter().filter_map(|(n, text)| Case::parse(text, n).ok().map(|c| (c.name, c.title))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_case_parses_and_its_reference_gives_a_batch() {
        assert!(CASES.len() >= 26, "{} cases", CASES.len());
        for (file, text) in CASES {
            let case = Case::parse(text, file).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(case.name, *file);
            for name in &case.dtypes {
                let dtype = dtype_named(name).unwrap();
                let answers = Answers::new(&case, 5, dtype, 0).unwrap();
                let mut out = Vec::new();
                for batch in [0, 5 * case.output.times - 1] {
                    answers.output(batch, &mut out).unwrap_or_else(|e| panic!("{file}: {e}"));
                    assert_eq!(out.len() as u64, case.output_elements(), "{file}");
                    assert!(out.iter().all(|v| v.is_finite()), "{file}");
                }
            }
        }
    }

    #[test]
    fn a_permutation_names_every_batch_once() {
        let case = Case::find("index_select").unwrap();
        for b in [1, 2, 5, 12, 97, 100] {
            let a = Answers::new(&case, b, DType::F32, 0).unwrap();
            let mut seen: Vec<u64> = (0..b).map(|i| a.permuted(i)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..b).collect::<Vec<_>>());
        }
    }
}
