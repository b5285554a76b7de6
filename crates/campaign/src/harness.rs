//! What a benchmark's harness does around a kernel: buffers in the order of a module, its inputs and its outputs.

use std::collections::BTreeMap;

use assay_problems::{HostError, InputKind, Plan, Problem, Scratch};
use assay_simt::Role;
use assay_tensor::DType;

use crate::bench::shape_name;
use crate::execute::{Buffer, End, Mode, Run, execute};
use crate::filter::Version;
use crate::inputs::{Input, Tensors};

/// A problem and the layout of its memory.
pub struct Harness<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The dims whose sizes decide where buffers lie.
    pub official_dims: BTreeMap<String, u64>,
    /// What the substrate's launcher does there: the sizes of scratch.
    pub official_plan: Option<Plan>,
}

impl Harness<'_> {
    /// Bytes of a tensor at official extents; none where the problem does not state its shape.
    fn official_bytes(&self, name: &str, dtype: DType) -> Option<u64> {
        let shape = match self.problem.input(name) {
            Some(input) => self.problem.shape_of(input, &self.official_dims).ok()?,
            None => self.problem.output_shape(name, &self.official_dims).ok()??,
        };
        assay_tensor::numel(&shape)?.checked_mul(dtype.size_bytes())
    }

    /// Runs what a version's launcher asks for at an input's shape, on fresh buffers in a harness's order.
    ///
    /// `before` are tensors that lay where outputs now lie; they show under [`assay_simt::Fill::Previous`] only.
    pub fn run(&self, version: &Version, input: &Input, mode: &Mode, before: Option<&Tensors>) -> Run {
        let fault = |what: String| Run::ended(End::Fault(what));
        let Some(exe) = &version.exe else { return fault("nothing was compiled".into()) };
        let plan = match version.plans.get(&shape_name(&input.dims)) {
            Some(Ok(plan)) => plan,
            Some(Err(e)) => {
                let end = match e {
                    HostError::Unsupported { .. } => End::Unsupported(e.to_string()),
                    HostError::Exhausted { .. } => End::Exhausted(e.to_string()),
                    HostError::NoLaunch
                    | HostError::Invalid { .. }
                    | HostError::Fault { .. }
                    | HostError::Unbound { .. } => End::Fault(e.to_string()),
                };
                return Run::ended(end);
            }
            None => return fault("no plan for this shape".into()),
        };
        let problem = self.problem;
        let mut buffers = Vec::new();
        let mut values: Vec<(&str, Role, bool)> = Vec::new();
        for i in &problem.inputs {
            let role = if i.kind == InputKind::Parameter { Role::Parameter } else { Role::Input };
            values.push((&i.name, role, i.kind == InputKind::Parameter));
        }
        // Parameters come first in memory: a module's weights are made before its inputs.
        values.sort_by_key(|v| !v.2);
        for (name, role, _) in values {
            let Some(t) = input.tensors.get(name) else { return fault(format!("no tensor `{name}`")) };
            buffers.push(Buffer {
                name,
                role,
                dtype: t.dtype,
                size_bytes: t.data.len() as u64,
                official_bytes: self.official_bytes(name, t.dtype).unwrap_or(t.data.len() as u64),
                values: Some(&t.data),
                previous: None,
                may_write: problem.inplace.iter().any(|n| n == name),
            });
        }
        for s in &plan.scratch {
            let official =
                self.official_plan.as_ref().and_then(|p| p.scratch.iter().find(|o| o.name == s.name));
            let bytes = |s: &Scratch| s.len.checked_mul(s.dtype.size_bytes());
            let (Some(size), official) = (bytes(s), official.and_then(bytes)) else {
                return fault(format!("scratch `{}` is too large", s.name));
            };
            buffers.push(Buffer {
                name: &s.name,
                role: Role::Scratch,
                dtype: s.dtype,
                size_bytes: size,
                official_bytes: official.unwrap_or(size),
                values: None,
                previous: None,
                may_write: true,
            });
        }
        let mut outputs: Vec<(String, DType, Vec<u64>)> = Vec::new();
        for name in &problem.outputs {
            let Some(t) = input.official.get(name) else {
                return fault(format!("no reference for `{name}`"));
            };
            outputs.push((name.clone(), t.dtype, t.shape.clone()));
            if buffers.iter().any(|b| b.name == name) {
                continue; // written in place
            }
            buffers.push(Buffer {
                name,
                role: Role::Output,
                dtype: t.dtype,
                size_bytes: t.data.len() as u64,
                official_bytes: self.official_bytes(name, t.dtype).unwrap_or(t.data.len() as u64),
                values: None,
                previous: before.and_then(|b| b.get(name)).map(|t| t.data.as_slice()),
                may_write: true,
            });
        }
        execute(exe, plan, &buffers, &outputs, mode)
    }
}
