//! The file with the kernels and its host function `launch`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use assay_nvrtc::{CompileError, Compiler, Options, Unit};
use assay_problems::{Bindings, HostError, HostProgram, ParameterKind, Plan, PlanArg};
use assay_ptx::{Module, PtxError};
use assay_simt::{Arg, LoadError, Loaded, Ptr};
use assay_tensor::DType;

use crate::work::{Op, Work};

/// Why a file cannot be swept.
#[derive(Debug)]
pub enum KernelError {
    /// The host function.
    Host(HostError),
    /// The compiler refuses it.
    Compile(CompileError),
    /// The PTX is not covered.
    Ptx(PtxError),
    /// The device cannot run it.
    Load(LoadError),
    /// Its parameters are not those of the operation.
    Signature(String),
    /// Outside of what is swept.
    Unsupported(String),
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KernelError::Host(e) => write!(f, "{e}"),
            KernelError::Compile(e) => write!(f, "{e}"),
            KernelError::Ptx(e) => write!(f, "{e}"),
            KernelError::Load(e) => write!(f, "{e}"),
            KernelError::Signature(what) | KernelError::Unsupported(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for KernelError {}

/// A compiled file.
pub struct Kernel {
    /// The file's name, as findings have it.
    pub file: String,
    /// Its text.
    pub source: String,
    /// The operation that it is said to compute.
    pub op: Op,
    /// Element type of the tensors, as `launch`'s parameters have it.
    pub dtype: DType,
    /// Element type of `index`.
    pub index_dtype: DType,
    host: HostProgram,
    module: Module,
    /// Ready to run.
    pub(crate) loaded: Arc<Loaded>,
    entries: BTreeMap<String, String>,
}

impl Kernel {
    /// Parses and compiles a file.
    ///
    /// # Errors
    /// What is wrong with it or not supported.
    pub fn new(path: &Path, source: &str, op: Op, compiler: &Compiler) -> Result<Kernel, KernelError> {
        let file = path.file_name().map_or_else(|| "kernel.cu".into(), |n| n.to_string_lossy().into_owned());
        let host = HostProgram::parse(source).map_err(KernelError::Host)?;
        let (dtype, index_dtype) = dtypes(op, &host)?;
        let unit = Unit {
            name: "sweep".into(),
            file: file.clone(),
            source: host.device_source(),
            kernels: host.kernels().to_vec(),
        };
        let image = compiler
            .compile(&Options::default(), std::slice::from_ref(&unit))
            .pop()
            .ok_or_else(|| KernelError::Unsupported("the compiler gave no answer".into()))?
            .map_err(KernelError::Compile)?;
        let module = assay_ptx::parse_module(&image.ptx).map_err(KernelError::Ptx)?;
        let loaded = Loaded::new(&module).map_err(KernelError::Load)?;
        for entry in image.entries.values() {
            loaded.check(entry).map_err(KernelError::Load)?;
        }
        Ok(Kernel {
            file,
            source: source.to_owned(),
            op,
            dtype,
            index_dtype,
            host,
            module,
            loaded: Arc::new(loaded),
            entries: image.entries,
        })
    }

    /// What `launch` does at these extents.
    ///
    /// # Errors
    /// Host code that fails, does not end or is outside of the subset.
    pub fn plan(&self, work: &Work) -> Result<Plan, HostError> {
        let mut bindings = Bindings::default();
        for t in work.tensors() {
            bindings.buffers.insert(t.name.to_owned(), Some(t.dtype));
        }
        for (name, &extent) in self.op.extents().iter().zip(&work.extents) {
            bindings.ints.insert((*name).to_owned(), i64::try_from(extent).unwrap_or(i64::MAX));
        }
        self.host.plan(&bindings)
    }

    /// The PTX entry of a kernel, and the arguments of a launch as its parameters want them. `pointers` gives a
    /// buffer and how many bytes before it the tensor begins.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub(crate) fn bind(
        &self,
        kernel: &str,
        args: &[PlanArg],
        pointers: &BTreeMap<String, (Ptr, i64)>,
    ) -> Result<(&str, Vec<Arg>), String> {
        let entry = self.entries.get(kernel).ok_or_else(|| format!("no kernel `{kernel}`"))?;
        let (_, function) = self.module.entry(entry).ok_or_else(|| format!("no entry `{entry}`"))?;
        if function.params.len() != args.len() {
            return Err(format!("{} arguments for {} parameters", args.len(), function.params.len()));
        }
        let mut out = Vec::with_capacity(args.len());
        for (p, a) in function.params.iter().zip(args) {
            out.push(match (a, a.bytes()) {
                (PlanArg::Buffer { name, offset_bytes }, _) => {
                    let (ptr, before) = pointers.get(name).ok_or_else(|| format!("`{name}` is no buffer"))?;
                    Arg::Pointer(*ptr, offset_bytes.wrapping_sub(*before))
                }
                (_, Some(bytes)) if bytes.len() as u64 == p.size_bytes => Arg::Bytes(bytes),
                (_, bytes) => {
                    let got = bytes.map_or(0, |b| b.len());
                    return Err(format!(
                        "parameter `{}` has {} bytes, {got} were passed",
                        p.name, p.size_bytes
                    ));
                }
            });
        }
        Ok((entry, out))
    }
}

/// The element types of a file's tensors and of `index`, from the parameters of `launch`.
fn dtypes(op: Op, host: &HostProgram) -> Result<(DType, DType), KernelError> {
    let names = op.inputs().iter().copied().chain(["out"]);
    let known: Vec<&str> = names.clone().collect();
    let mut dtype: Option<(DType, &str)> = None;
    let mut index = DType::I64;
    for name in names {
        let parameter = host.parameters().iter().find(|p| p.name == name);
        let Some(ParameterKind::Pointer { dtype: found, element, .. }) = parameter.map(|p| &p.kind) else {
            return Err(KernelError::Signature(format!(
                "`launch` of a {} takes the tensors {} and, as it needs them, the extents {}; it has no pointer `{name}`",
                op.name(),
                known.join(", "),
                op.extents().join(", ")
            )));
        };
        let found = found.ok_or_else(|| {
            KernelError::Unsupported(format!(
                "`{name}` is a `{element}*`: elements of that type are not swept"
            ))
        })?;
        if name == "index" {
            if !matches!(found, DType::I32 | DType::I64) {
                return Err(KernelError::Signature(format!("`index` holds int or long long, not {found}")));
            }
            index = found;
            continue;
        }
        if !matches!(found, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
            return Err(KernelError::Unsupported(format!(
                "`{name}` is {found}: f16, bf16, f32 and f64 are swept"
            )));
        }
        match dtype {
            Some((d, other)) if d != found => {
                return Err(KernelError::Unsupported(format!(
                    "`{other}` is {d} and `{name}` is {found}: one element type is swept"
                )));
            }
            _ => dtype = Some((found, name)),
        }
    }
    let dtype = dtype.map(|(d, _)| d).ok_or_else(|| KernelError::Signature("no tensors".into()))?;
    for p in host.parameters() {
        let integer = matches!(p.kind, ParameterKind::Integer) && op.extents().contains(&p.name.as_str());
        let tensor = matches!(p.kind, ParameterKind::Pointer { .. }) && known.contains(&p.name.as_str());
        if !(integer || tensor || matches!(p.kind, ParameterKind::Stream)) {
            return Err(KernelError::Signature(format!(
                "line {}: `{}` is no tensor or extent of a {}: there are {} and {}",
                p.line,
                p.name,
                op.name(),
                known.join(", "),
                op.extents().join(", ")
            )));
        }
    }
    Ok((dtype, index))
}
