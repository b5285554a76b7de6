//! The chain: every call of a program lowered, run, and read back.

use std::collections::BTreeMap;

use assay_nvrtc::Compiler;
use assay_ops::array::{Array, Value};
use assay_ops::op::{Args, Cx};
use assay_ops::plain::{Call, Lowered, Placement, Plain};
use assay_ops::{Fault, OPS, Op, Program};
use assay_simt::{Finding, Sanitize};
use assay_tensor::{DType, Tensor};

use crate::PlainError;
use crate::build::Cache;
use crate::launch::{Device, Failed, Output, dtype_of};

/// How a chain runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where tensor arguments lie.
    pub placement: Placement,
    /// Detectors.
    pub sanitize: Sanitize,
    /// Warp instructions that all launches of the chain may execute together.
    pub instructions: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            placement: Placement::Contiguous,
            sanitize: Sanitize::OFF,
            instructions: assay_simt::Options::default().instruction_budget,
        }
    }
}

/// What a chain gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The outputs asked for: floats as f32, integers as i64, bools as bool.
    pub outputs: BTreeMap<String, Tensor>,
    /// What the device saw, with the operator whose kernel it was.
    pub findings: Vec<(&'static str, Finding)>,
    /// Warp instructions executed.
    pub instructions: u64,
    /// Kernels launched.
    pub launches: u64,
}

/// Runs programs as chains of plain kernels; kernels are compiled when first needed and kept.
pub struct PlainRunner<'c> {
    compiler: &'c Compiler,
    cache: Cache,
}

impl<'c> PlainRunner<'c> {
    /// A runner that compiles with `compiler`.
    pub fn new(compiler: &'c Compiler) -> Self {
        PlainRunner { compiler, cache: Cache::default() }
    }

    /// Compiles the float kernels of these operators in one go: saves time, changes nothing.
    ///
    /// # Errors
    /// The first kernel that does not compile.
    pub fn prepare<'n>(&self, operators: impl IntoIterator<Item = &'n str>) -> Result<(), PlainError> {
        let wanted: Vec<(&'static Op, Plain)> = operators
            .into_iter()
            .filter_map(|name| OPS.iter().copied().find(|op| op.name == name))
            .filter_map(|op| op.plain.map(|p| (op, p)))
            .collect();
        let list: Vec<(&Plain, &'static str)> = wanted.iter().map(|(_, p)| (p, "float")).collect();
        for ((op, plain), built) in wanted.iter().zip(self.cache.build(self.compiler, &list)) {
            built.map_err(|what| PlainError::Kernel { op: op.name, file: plain.file, what })?;
        }
        Ok(())
    }

    /// Runs a program and returns the named outputs.
    ///
    /// # Errors
    /// `Unsupported` for an operator without a plain kernel or what the device lacks; `Exhausted` where the budget
    /// ends; `Refused` where the program refuses its inputs; `Kernel` for a fault of a plain kernel.
    pub fn run(
        &self,
        program: &Program,
        inputs: &BTreeMap<String, Tensor>,
        scalars: &BTreeMap<String, f64>,
        outputs: &[String],
        settings: &Settings,
    ) -> Result<Chain, PlainError> {
        self.prepare(program.operators())?;
        let mut chain =
            Chain { outputs: BTreeMap::new(), findings: Vec::new(), instructions: 0, launches: 0 };
        // The error of the device behind a fault of the evaluation.
        let mut broken: Option<PlainError> = None;
        let mut call = |op: &'static Op, args: Args<f32>, cx: &Cx| {
            self.call(op, args, cx, settings, &mut chain).map_err(|e| match e {
                Stop::Refused(fault) => fault,
                Stop::Plain(e) => {
                    let fault = Fault(e.to_string());
                    broken = Some(e);
                    fault
                }
            })
        };
        let result = program.evaluate_by(inputs, scalars, outputs, &mut call);
        match (result, broken) {
            (_, Some(e)) => Err(e),
            (Err(e), None) => Err(PlainError::Refused(e)),
            (Ok(outputs), None) => Ok(Chain { outputs, ..chain }),
        }
    }

    fn call(
        &self,
        op: &'static Op,
        args: Args<f32>,
        cx: &Cx,
        settings: &Settings,
        chain: &mut Chain,
    ) -> Result<Value<f32>, Stop> {
        let values = args.into_values();
        let result = (op.eval32)(&mut Args::new(op.params, values.clone()), cx).map_err(Stop::Refused)?;
        if matches!(result, Value::Scalar(_)) {
            return Ok(result);
        }
        let plain = op.plain.as_ref();
        let plain = plain.ok_or_else(|| {
            Stop::Plain(PlainError::Unsupported(format!("`{}` has no plain kernel", op.name)))
        })?;
        let call = Call { op, args: &values, result: &result, placement: settings.placement };
        let steps = match (plain.frame)(&call).map_err(Stop::Refused)? {
            Lowered::Steps(steps) => steps,
            Lowered::As(other) => {
                let kept = values.into_iter().take(other.params.len()).collect();
                return self.call(other, Args::new(other.params, kept), cx, settings, chain);
            }
        };
        let mut outputs = outputs_of(&result)?;
        let kernel = |what: String| Stop::Plain(PlainError::Kernel { op: op.name, file: plain.file, what });
        if outputs.iter().all(|o| !o.shape.contains(&0)) {
            let element = plain.element_of(&values, &result);
            let built = self.cache.build(self.compiler, &[(plain, element)]).remove(0).map_err(&kernel)?;
            let mut device = Device {
                built: &built,
                args: &values,
                placement: settings.placement,
                sanitize: settings.sanitize,
                budget: settings.instructions.saturating_sub(chain.instructions),
                instructions: 0,
                launches: 0,
                findings: Vec::new(),
            };
            let ran = device.run(&steps, &mut outputs);
            chain.instructions = chain.instructions.saturating_add(device.instructions);
            chain.launches += device.launches;
            chain.findings.extend(device.findings.into_iter().map(|f| (op.name, f)));
            ran.map_err(|e| match e {
                Failed::Unsupported(what) => Stop::Plain(PlainError::Unsupported(what)),
                Failed::Exhausted(what) => Stop::Plain(PlainError::Exhausted(what)),
                Failed::Kernel(what) => kernel(what),
            })?;
        }
        let mut read =
            outputs.into_iter().map(value_of).collect::<Result<Vec<_>, _>>().map_err(Stop::Refused)?;
        Ok(match result {
            Value::Tuple(_) => Value::Tuple(read),
            _ => read.swap_remove(0),
        })
    }
}

enum Stop {
    Refused(Fault),
    Plain(PlainError),
}

/// The buffers that a result's steps write.
fn outputs_of(result: &Value<f32>) -> Result<Vec<Output>, Stop> {
    let one = |name, v: &Value<f32>| {
        let dtype = dtype_of(v).ok_or_else(|| Stop::Refused(Fault(format!("a result is {}", v.what()))))?;
        let shape = v.shape().unwrap_or_default().to_vec();
        let size = usize::try_from(dtype.size_bytes()).ok();
        let len = shape.iter().try_fold(size.unwrap_or(8), |n, &d| n.checked_mul(d));
        let len = len.ok_or_else(|| Stop::Refused(Fault::new("a result is too large")))?;
        Ok(Output { name, dtype, shape, bytes: vec![0; len] })
    };
    match result {
        Value::Tuple(all) => ["y", "y_index"].into_iter().zip(all).map(|(name, v)| one(name, v)).collect(),
        v => Ok(vec![one("y", v)?]),
    }
}

fn value_of(o: Output) -> Result<Value<f32>, Fault> {
    fn each<E: Copy, const N: usize>(o: &Output, from: impl Fn([u8; N]) -> E) -> Result<Array<E>, Fault> {
        let (parts, _) = o.bytes.as_chunks::<N>();
        Array::new(o.shape.clone(), parts.iter().map(|b| from(*b)).collect())
    }
    Ok(match o.dtype {
        DType::I64 => Value::Int(each(&o, i64::from_le_bytes)?),
        DType::Bool => Value::Bool(each(&o, |[b]: [u8; 1]| b != 0)?),
        _ => Value::Float(each(&o, f32::from_le_bytes)?),
    })
}
