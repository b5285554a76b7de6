//! What a launcher asks of the device: scratch, launches and memsets in order, all values known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use assay_tensor::DType;

/// The values that `launch`'s parameters are bound to, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    /// Tensors (inputs, parameters, outputs) and their dtypes; `None` accepts any pointer type.
    pub buffers: BTreeMap<String, Option<DType>>,
    /// Dims, derived dims and integer constants.
    pub ints: BTreeMap<String, i64>,
    /// Scalars.
    pub floats: BTreeMap<String, f64>,
}

/// One scratch tensor, uninitialised when `launch` begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The variable's name; a second one of that name is `name#2`, so names never repeat.
    pub name: String,
    /// Element type (`float4` counts as four `f32`).
    pub dtype: DType,
    /// Number of elements.
    pub len: u64,
}

/// One argument of a launch, converted to the kernel's parameter type where host code can know it.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanArg {
    /// A pointer into a tensor or scratch.
    Buffer {
        /// Name of an input, output or scratch tensor.
        name: String,
        /// Distance from its first byte, possibly negative or past its end.
        offset_bytes: i64,
    },
    /// An integer or `bool` of that many bits (8, 16, 32 or 64).
    Int(i128, u32),
    /// A `float` (32) or `double` (64).
    Float(f64, u32),
    /// The null pointer.
    Null,
}

impl PlanArg {
    /// The bytes of a scalar or null argument, little-endian; `None` for a buffer.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            PlanArg::Buffer { .. } => None,
            PlanArg::Null => Some(vec![0; 8]),
            PlanArg::Int(v, bits) => {
                let len = usize::try_from(bits / 8).unwrap_or(16).min(16);
                Some(v.to_le_bytes()[..len].to_vec())
            }
            PlanArg::Float(v, 32) => Some((*v as f32).to_le_bytes().to_vec()),
            PlanArg::Float(v, _) => Some(v.to_le_bytes().to_vec()),
        }
    }
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchOp {
    /// Name expression, `softmax` or `scale<float,256>`.
    pub kernel: String,
    /// Blocks; a negative extent of the host code has wrapped to 32 bits as CUDA's `dim3` has it.
    pub grid: [u64; 3],
    /// Threads.
    pub block: [u64; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u64,
    /// The arguments in order, as many as the call has.
    pub args: Vec<PlanArg>,
    /// Line of the launch, 1-based.
    pub line: u32,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanOp {
    /// A kernel launch.
    Launch(LaunchOp),
    /// `cudaMemset`.
    Memset {
        /// The tensor or scratch.
        buffer: String,
        /// Where it begins.
        offset_bytes: i64,
        /// The byte written.
        value: u8,
        /// How many.
        len_bytes: u64,
        /// Line of the call, 1-based.
        line: u32,
    },
}

/// Everything `launch` does for one set of bindings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of allocation.
    pub scratch: Vec<Scratch>,
    /// In the order of execution.
    pub ops: Vec<PlanOp>,
    /// Undefined behaviour that has been given a meaning, such as signed overflow; with lines.
    pub notes: Vec<String>,
}

impl Plan {
    /// The launches, without the memsets.
    pub fn launches(&self) -> impl Iterator<Item = &LaunchOp> {
        self.ops.iter().filter_map(|op| match op {
            PlanOp::Launch(l) => Some(l),
            PlanOp::Memset { .. } => None,
        })
    }

    /// Canonical text of kernels, grid, block, shared bytes, arguments, scratch and order: two plans do the same
    /// iff their traces are equal. Lines of the source are no part of it.
    pub fn trace(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        for s in &self.scratch {
            let _ = writeln!(out, "scratch {} {}[{}]", s.name, s.dtype, s.len);
        }
        for op in &self.ops {
            let _ = match op {
                PlanOp::Launch(l) => write_launch(&mut out, l),
                PlanOp::Memset { buffer, offset_bytes, value, len_bytes, .. } => {
                    writeln!(out, "memset {buffer}{offset_bytes:+} value {value} bytes {len_bytes}")
                }
            };
        }
        out
    }
}

fn write_launch(out: &mut String, l: &LaunchOp) -> std::fmt::Result {
    let [gx, gy, gz] = l.grid;
    let [bx, by, bz] = l.block;
    write!(out, "launch {} grid {gx},{gy},{gz} block {bx},{by},{bz} shared {} (", l.kernel, l.shared_bytes)?;
    for (i, a) in l.args.iter().enumerate() {
        if i > 0 {
            out.write_str(", ")?;
        }
        match a {
            PlanArg::Buffer { name, offset_bytes } => write!(out, "{name}{offset_bytes:+}")?,
            PlanArg::Int(v, bits) => write!(out, "i{bits}:{v}")?,
            // Bits, so that -0.0 and every rounding show.
            PlanArg::Float(v, 32) => write!(out, "f32:{v}:{:08x}", (*v as f32).to_bits())?,
            PlanArg::Float(v, bits) => write!(out, "f{bits}:{v}:{:016x}", v.to_bits())?,
            PlanArg::Null => out.write_str("null")?,
        }
    }
    writeln!(out, ")")
}
