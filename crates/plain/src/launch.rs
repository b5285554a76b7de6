//! One step of a chain on the device: parameters bound by name, `launch` interpreted, its launches executed.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_ops::array::{Array, Value};
use assay_ops::plain::{Placement, Step};
use assay_problems::{Bindings, ParameterKind, PlanArg, PlanOp};
use assay_simt::{
    Arg, Blocks, BufferSpec, Finding, Init, LaunchSpec, Options, Ptr, Role, Sanitize, Session, Status,
};
use assay_tensor::DType;

use crate::build::Built;

/// How a step failed.
pub(crate) enum Failed {
    Unsupported(String),
    Exhausted(String),
    /// A fault of the kernel or its frame.
    Kernel(String),
}

fn kernel(what: impl Into<String>) -> Failed {
    Failed::Kernel(what.into())
}

/// A result of a call: where steps write, in turn.
pub(crate) struct Output {
    pub name: &'static str,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Its elements, once the steps have run.
    pub bytes: Vec<u8>,
}

/// What all steps of a call share.
pub(crate) struct Device<'a> {
    pub built: &'a Built,
    pub args: &'a [Value<f32>],
    pub placement: Placement,
    pub sanitize: Sanitize,
    pub budget: u64,
    pub instructions: u64,
    pub launches: u64,
    pub findings: Vec<Finding>,
}

/// What a name in `launch` points at.
enum Target {
    Device(Ptr, i64),
    Null,
}

impl Device<'_> {
    /// Runs the steps one after the other over the same outputs.
    pub fn run(&mut self, steps: &[Step], outputs: &mut [Output]) -> Result<(), Failed> {
        let options = Options {
            sanitize: self.sanitize,
            instruction_budget: self.budget.saturating_sub(self.instructions),
            ..Options::default()
        };
        let mut session = Session::new(Arc::clone(&self.built.loaded), options);
        let mut results = Vec::new();
        for o in outputs.iter() {
            let ptr = alloc(&mut session, o.name, Role::Output, o.dtype, o.bytes.len() as u64, None)?;
            results.push((o.name, ptr));
        }
        for step in steps {
            self.step(&mut session, step, outputs, &results)?;
        }
        self.findings.extend(session.finish());
        for (o, (_, ptr)) in outputs.iter_mut().zip(&results) {
            o.bytes = session.read(*ptr).to_vec();
        }
        Ok(())
    }

    fn step(
        &mut self,
        session: &mut Session,
        step: &Step,
        outputs: &[Output],
        results: &[(&'static str, Ptr)],
    ) -> Result<(), Failed> {
        let mut bindings =
            Bindings { ints: step.ints.clone(), floats: step.floats.clone(), ..Default::default() };
        let mut targets: BTreeMap<String, Target> = BTreeMap::new();
        for p in self.built.host.parameters() {
            let ParameterKind::Pointer { dtype, .. } = &p.kind else { continue };
            let Some(dtype) = *dtype else {
                return Err(kernel(format!("`{}` points at what is no tensor", p.name)));
            };
            let target = if let Some((o, (_, ptr))) =
                outputs.iter().zip(results).find(|(o, _)| o.name == p.name)
            {
                if o.dtype != dtype {
                    return Err(kernel(format!("`{}` is {dtype}, the result is {}", p.name, o.dtype)));
                }
                Target::Device(*ptr, 0)
            } else if let Some(list) = step.lists.get(&p.name) {
                let bytes: Vec<u8> = list.iter().flat_map(|i| i.to_le_bytes()).collect();
                let len = bytes.len() as u64;
                Target::Device(alloc(session, &p.name, Role::Parameter, DType::I64, len, Some(&bytes))?, 0)
            } else {
                self.tensor(session, step, &p.name, dtype)?
            };
            bindings.buffers.insert(p.name.clone(), Some(dtype));
            targets.insert(p.name.clone(), target);
        }
        let plan = self.built.host.plan(&bindings).map_err(|e| kernel(e.to_string()))?;
        if let Some(note) = plan.notes.first() {
            return Err(kernel(note.clone()));
        }
        for s in &plan.scratch {
            let size = s.len.checked_mul(s.dtype.size_bytes());
            let size = size.ok_or_else(|| Failed::Exhausted(format!("scratch `{}` is too large", s.name)))?;
            let ptr = alloc(session, &s.name, Role::Scratch, s.dtype, size, None)?;
            targets.insert(s.name.clone(), Target::Device(ptr, 0));
        }
        for op in &plan.ops {
            let PlanOp::Launch(launch) = op else { return Err(kernel("a plain kernel needs no memset")) };
            let entry = self.built.entries.get(&launch.kernel);
            let entry = entry.ok_or_else(|| kernel(format!("no kernel `{}`", launch.kernel)))?;
            let Some((_, function)) = self.built.module.entry(entry) else {
                return Err(kernel(format!("no entry `{entry}` in the PTX")));
            };
            if function.params.len() != launch.args.len() {
                return Err(kernel(format!("line {}: a wrong number of arguments", launch.line)));
            }
            let args = launch.args.iter().map(|a| argument(a, &targets)).collect::<Result<Vec<_>, _>>()?;
            let outcome = session.launch(&LaunchSpec {
                kernel: entry,
                grid: launch.grid,
                block: launch.block,
                dynamic_shared: launch.shared_bytes,
                args: &args,
                blocks: &Blocks::All,
            });
            self.launches += 1;
            self.instructions = self.instructions.saturating_add(outcome.instructions);
            let reason = outcome.reason.unwrap_or_default();
            match outcome.status {
                Status::Exhausted => return Err(Failed::Exhausted(reason)),
                Status::Unsupported => return Err(Failed::Unsupported(reason)),
                Status::Ok | Status::Finding => {}
            }
            let fault = outcome.findings.iter().find(|f| f.kind.is_fault()).map(|f| f.message.clone());
            self.findings.extend(outcome.findings);
            if let Some(what) = fault {
                return Err(kernel(what));
            }
        }
        Ok(())
    }

    /// A tensor argument in memory, as `launch` declares it; null where nothing is bound to the name.
    fn tensor(&self, session: &mut Session, step: &Step, name: &str, dtype: DType) -> Result<Target, Failed> {
        let only = [("_i64", DType::I64), ("_bool", DType::Bool)];
        let suffixed = only.iter().find_map(|(s, d)| name.strip_suffix(s).map(|base| (base, *d)));
        let source = match (step.tensors.get(name), suffixed) {
            (Some(s), _) => Some((s, name, None)),
            (None, Some((base, own))) => step.tensors.get(base).map(|s| (s, base, Some(own))),
            (None, None) => None,
        };
        let Some((source, base, only_for)) = source else { return Ok(Target::Null) };
        let value = match (self.args.get(source.param), source.item) {
            (Some(Value::Tuple(all)), Some(k)) => all.get(k),
            (Some(v), None) => Some(v),
            _ => None,
        };
        let value = value.ok_or_else(|| kernel(format!("`{name}` is bound to no argument")))?;
        let own = dtype_of(value);
        // A second declaration with the tensor's own type takes it.
        let taken =
            only_for.is_none()
                && self.built.host.parameters().iter().any(|p| {
                    only.iter().any(|(s, d)| p.name.strip_suffix(s) == Some(base) && own == Some(*d))
                });
        if taken || only_for.is_some_and(|d| own != Some(d)) {
            return Ok(Target::Null);
        }
        let bytes = laid_out(value, dtype, self.placement).map_err(kernel)?;
        let ptr = alloc(session, name, Role::Input, dtype, bytes.len() as u64, Some(&bytes))?;
        let size = i64::try_from(dtype.size_bytes()).unwrap_or(i64::MAX);
        let far = source.offset.checked_mul(size).ok_or_else(|| kernel("an offset is too large"))?;
        Ok(Target::Device(ptr, far))
    }
}

fn alloc(
    session: &mut Session,
    name: &str,
    role: Role,
    dtype: DType,
    size_bytes: u64,
    values: Option<&[u8]>,
) -> Result<Ptr, Failed> {
    let spec = BufferSpec {
        name,
        size_bytes,
        official_bytes: size_bytes,
        role,
        dtype,
        init: values.map_or(Init::Uninit, Init::Bytes),
        may_write: matches!(role, Role::Output | Role::Scratch),
        sparse: false,
        shape: &[],
    };
    session.alloc(spec).map_err(|e| Failed::Exhausted(e.to_string()))
}

fn argument(a: &PlanArg, targets: &BTreeMap<String, Target>) -> Result<Arg, Failed> {
    match a {
        PlanArg::Buffer { name, offset_bytes } => match targets.get(name) {
            Some(Target::Device(ptr, far)) => {
                let at = far.checked_add(*offset_bytes).ok_or_else(|| kernel("an offset is too large"))?;
                Ok(Arg::Pointer(*ptr, at))
            }
            Some(Target::Null) if *offset_bytes == 0 => Ok(Arg::Bytes(vec![0; 8])),
            Some(Target::Null) => Err(kernel(format!("`{name}` is null and is moved"))),
            None => Err(kernel(format!("`{name}` is no buffer"))),
        },
        other => other.bytes().map(Arg::Bytes).ok_or_else(|| kernel("an argument without bytes")),
    }
}

/// The element type of a value in memory.
pub(crate) fn dtype_of(v: &Value<f32>) -> Option<DType> {
    match v {
        Value::Float(_) => Some(DType::F32),
        Value::Int(_) => Some(DType::I64),
        Value::Bool(_) => Some(DType::Bool),
        Value::Scalar(_) | Value::Tuple(_) | Value::Text(_) | Value::None => None,
    }
}

/// The bytes of a tensor or number: its elements at their places, converted to `dtype`, and what a kernel must not
/// read (all bits set: NaN, -1) between them.
fn laid_out(v: &Value<f32>, dtype: DType, placement: Placement) -> Result<Vec<u8>, String> {
    let (shape, elements) = match (v, dtype) {
        (Value::Scalar(s), _) => {
            let bytes = match dtype {
                DType::F32 => (s.to_f64() as f32).to_le_bytes().to_vec(),
                DType::I64 => s.to_i64().ok_or("a float among integers")?.to_le_bytes().to_vec(),
                DType::Bool => vec![u8::from(s.to_f64() != 0.0)],
                other => return Err(format!("`launch` takes {other}")),
            };
            return Ok(bytes);
        }
        (Value::Float(a), DType::F32) => (a.shape(), bytes_of(a, |x| x.to_le_bytes())),
        (Value::Int(a), DType::F32) => (a.shape(), bytes_of(a, |x| (x as f32).to_le_bytes())),
        (Value::Bool(a), DType::F32) => (a.shape(), bytes_of(a, |x| f32::from(u8::from(x)).to_le_bytes())),
        (Value::Int(a), DType::I64) => (a.shape(), bytes_of(a, i64::to_le_bytes)),
        (Value::Bool(a), DType::I64) => (a.shape(), bytes_of(a, |x| i64::from(x).to_le_bytes())),
        (Value::Bool(a), DType::Bool) => (a.shape(), bytes_of(a, |x| [u8::from(x)])),
        (v, dtype) => return Err(format!("`launch` takes {dtype}, the argument is {}", v.what())),
    };
    if placement == Placement::Contiguous {
        return Ok(elements);
    }
    let placed = placement.of(shape).map_err(|f| f.0)?;
    let size = usize::try_from(dtype.size_bytes()).map_err(|e| e.to_string())?;
    let count = elements.len() / size;
    let place = |mut i: usize| -> i64 {
        let mut at = placed.offset;
        for d in (0..shape.len()).rev() {
            at += (i % shape[d]) as i64 * placed.strides[d];
            i /= shape[d];
        }
        at
    };
    let last = (0..count).map(place).max().unwrap_or(0);
    let len = usize::try_from(last).ok().and_then(|l| l.checked_add(1)?.checked_mul(size));
    let mut out = vec![0xff; len.ok_or("a view is too large")?];
    for (i, element) in elements.chunks_exact(size).enumerate() {
        let at = usize::try_from(place(i)).map_err(|e| e.to_string())? * size;
        out[at..at + size].copy_from_slice(element);
    }
    Ok(out)
}

fn bytes_of<E: Copy, const N: usize>(a: &Array<E>, to: impl Fn(E) -> [u8; N]) -> Vec<u8> {
    a.data().iter().flat_map(|&x| to(x)).collect()
}
