//! Extensions whose host part a C++ compiler has compiled: their text for it, and the device that their launches reach.
//!
//! Arrives: [`Sources`]; later, during a call, launches with their parameters' bytes and the memory that these point into,
//! as the process has it that runs the host part. Leaves: what a launch changed, and findings as the interpreter's calls
//! have them. What the process says is hostile: nothing is trusted but lengths that were checked.

mod split;

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_host::device_source;
use assay_nvrtc::Compiler;
use assay_simt::{Finding, FindingKind};
use assay_tensor::DType;

pub use split::{HostText, host_text};

use crate::Sources;
use crate::device::{Code, Gpu, KernelArg, Launch, SymbolWrite};
use crate::error::ExtensionError;
use crate::module::options;
use crate::run::Run;
use crate::tensor::{Contents, Device, Storage};

/// The header that [`HostText::text`] is compiled after.
pub const HEADER: &str = include_str!("../../cpp/assay_host.h");

/// What stands between a message of a C++ compiler and the author: its text and line in the CUDA sources.
///
/// `output` is what the compiler wrote; the first error counts, one in the CUDA text before one in others.
pub fn first_error(output: &str) -> Option<(String, Option<u32>)> {
    let mut found = None;
    for line in output.lines() {
        let Some((place, message)) =
            line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "))
        else {
            continue;
        };
        let mut parts = place.split(':');
        let file = parts.next().unwrap_or_default();
        let number = parts.next().and_then(|n| n.trim().parse().ok());
        if file == split::CUDA {
            return Some((message.to_owned(), number));
        }
        found.get_or_insert((message.to_owned(), None));
    }
    found
}

/// The device side of such an extension, with what its calls leave behind.
pub struct DeviceModule {
    code: Code,
    symbols: Vec<SymbolWrite>,
}

impl DeviceModule {
    /// The device code of the sources, compiled for the kernels that are known now.
    ///
    /// # Errors
    /// `Rejected` where NVRTC refuses it.
    pub fn new(
        sources: &Sources,
        kernels: &[String],
        compiler: &Arc<Compiler>,
    ) -> Result<DeviceModule, ExtensionError> {
        let cuda = sources.cuda.join("\n");
        let code = Code::new(Arc::clone(compiler), options(&sources.cuda_flags), device_source(&cuda));
        if !kernels.is_empty() {
            code.image(kernels)?;
        }
        Ok(DeviceModule { code, symbols: Vec::new() })
    }

    /// A call of one of its functions begins.
    pub fn begin(&mut self) -> DeviceCall<'_> {
        let symbols = std::mem::take(&mut self.symbols);
        DeviceCall { gpu: Gpu::new(&self.code, symbols), left: &mut self.symbols, known: BTreeMap::new() }
    }
}

/// Memory as the process has it.
pub struct Given {
    /// A number that it keeps as long as it lives.
    pub id: u64,
    /// Has nothing but noise been written to it?
    pub fresh: bool,
    /// Its bytes now.
    pub bytes: Vec<u8>,
}

/// One parameter of a launch.
pub enum Parameter {
    /// As it is.
    Bytes(Vec<u8>),
    /// A pointer into memory that is given, by its index there.
    Pointer {
        /// Index.
        memory: usize,
        /// Bytes from its beginning.
        offset: i64,
        /// The parameter's name.
        name: String,
        /// What it points to.
        dtype: DType,
    },
    /// A pointer into no memory of the device.
    Nowhere {
        /// The parameter's name.
        name: String,
    },
    /// A record with pointers in it: where each stands, the index of the memory, and bytes from its beginning.
    Record {
        /// Its bytes.
        bytes: Vec<u8>,
        /// See above.
        pointers: Vec<(usize, usize, i64)>,
        /// The parameter's name.
        name: String,
    },
}

/// A launch of the host part.
pub struct HostLaunch {
    /// A name expression.
    pub kernel: String,
    /// Blocks.
    pub grid: [u64; 3],
    /// Threads of a block.
    pub block: [u64; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u64,
    /// Was more than 48 KiB asked for with `cudaFuncSetAttribute`?
    pub large_shared: bool,
    /// In the CUDA sources.
    pub line: u32,
    /// What its pointers point into.
    pub memory: Vec<Given>,
    /// In order.
    pub parameters: Vec<Parameter>,
}

/// The device during one call.
pub struct DeviceCall<'m> {
    gpu: Gpu<'m>,
    left: &'m mut Vec<SymbolWrite>,
    known: BTreeMap<u64, Storage>,
}

impl DeviceCall<'_> {
    /// Runs a kernel; the memory that has other bytes afterwards, by its index in the launch.
    ///
    /// # Errors
    /// As the interpreter's launches have it.
    pub fn launch(
        &mut self,
        launch: HostLaunch,
        run: &mut Run,
    ) -> Result<Vec<(usize, Vec<u8>)>, ExtensionError> {
        let line = Some(launch.line);
        let storages: Vec<Storage> = launch.memory.iter().map(|g| self.storage(g)).collect();
        let broken = || ExtensionError::Exhausted {
            message: "a launch that names memory which is not there".into(),
            line,
        };
        let mut args = Vec::with_capacity(launch.parameters.len());
        for p in &launch.parameters {
            args.push(match p {
                Parameter::Bytes(b) => KernelArg::Bytes(b.clone()),
                Parameter::Pointer { memory, offset, name, dtype } => {
                    let storage = storages.get(*memory).ok_or_else(broken)?;
                    self.gpu.name(storage, *dtype, name);
                    KernelArg::Pointer(storage.clone(), Device::Cuda, *offset)
                }
                Parameter::Nowhere { name } => {
                    let message = format!("`{}` is given `{name}`, which lies in host memory", launch.kernel);
                    let mut f = Finding::new(FindingKind::OobRead, message.clone());
                    f.kernel = Some(launch.kernel.clone());
                    f.buffer = Some(name.clone());
                    f.line = line;
                    run.findings.push(f);
                    return Err(ExtensionError::Fault { message, line });
                }
                Parameter::Record { bytes, pointers, name } => {
                    let mut placed = Vec::with_capacity(pointers.len());
                    for (at, memory, offset) in pointers {
                        let storage = storages.get(*memory).ok_or_else(broken)?;
                        self.gpu.name(storage, DType::F32, name);
                        placed.push((*at, storage.clone(), Device::Cuda, *offset));
                    }
                    KernelArg::Mixed(bytes.clone(), placed)
                }
            });
        }
        if launch.large_shared {
            let base = launch.kernel.split('<').next().unwrap_or_default();
            self.gpu.allow_shared(base.rsplit("::").next().unwrap_or(base).trim());
        }
        let result = self.gpu.launch(
            &Launch {
                kernel: launch.kernel,
                grid: launch.grid,
                block: launch.block,
                shared: launch.shared,
                args,
                line: launch.line,
            },
            run,
        );
        self.gpu.sync();
        result?;
        let mut changed = Vec::new();
        for (k, (storage, given)) in storages.iter().zip(&launch.memory).enumerate() {
            storage.read(|now| {
                if *now != given.bytes {
                    changed.push((k, now.to_vec()));
                }
            });
        }
        Ok(changed)
    }

    /// The storage that stands for memory of the process.
    fn storage(&mut self, given: &Given) -> Storage {
        if let Some(known) = self.known.get(&given.id)
            && known.len_bytes() == given.bytes.len() as u64
        {
            let known = known.clone();
            if known.read(|b| *b != given.bytes) {
                // Host code or PyTorch wrote to it since the last launch.
                self.gpu.forget(&known);
                known.write(Contents::Written, |b| b.copy_from_slice(&given.bytes));
            }
            return known;
        }
        let contents = if given.fresh { Contents::Fresh } else { Contents::Written };
        let fresh = Storage::with(given.bytes.clone(), contents);
        self.known.insert(given.id, fresh.clone());
        fresh
    }

    /// Writes a variable of the device.
    pub fn write_symbol(&mut self, name: String, offset: u64, bytes: Vec<u8>, line: u32) {
        self.gpu.write_symbol(SymbolWrite { name, offset, bytes, line: Some(line) });
    }

    /// Ends the call, which gives back the memory of these numbers: findings about what of it is not whole.
    pub fn finish(mut self, results: &[u64], run: &mut Run) {
        let results: Vec<Storage> = results.iter().filter_map(|id| self.known.get(id).cloned()).collect();
        self.gpu.finish(&results, run);
        *self.left = self.gpu.symbols;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_in_the_cuda_text_counts() {
        let output = "In file included from x:\n/usr/include/c.h:3:4: error: far away\nextension.cu:12:8: error: 'foo' was not \
                      declared\nextension.cu:14:1: error: later\n";
        assert_eq!(first_error(output), Some(("'foo' was not declared".into(), Some(12))));
        assert_eq!(first_error("/usr/include/c.h:3:4: error: far away"), Some(("far away".into(), None)));
        assert_eq!(first_error("all is well"), None);
    }

    #[test]
    fn kernels_become_stubs_and_launches_calls_and_every_line_keeps_its_number() {
        let sources = Sources {
            cuda: vec![
                "#include <torch/extension.h>\n#include <map>\nnamespace n {\ntemplate <typename T, int N>\n__global__ void \
                 k(const T* x, T* y,\n   long) {\n  y[0] = x[N];\n}\n}\n__device__ float half_of(float v) {\n  return \
                 v / 2;\n}\nvoid f(torch::Tensor x) {\n  TORCH_CHECK(x.is_cuda(), \"cuda\");\n  n::k<float, \
                 3><<<dim3(1), 32>>>(x.data_ptr<float>(),\n    x.data_ptr<float>(), 7);\n}\n"
                    .into(),
            ],
            functions: vec!["f".into()],
            ..Sources::default()
        };
        let text = host_text(&sources);
        let body = text.text.split("#line 1 \"extension.cu\"\n").nth(1).unwrap();
        assert!(body.starts_with("\n#include <map>\n"), "{body}");
        assert!(
            body.contains("assay_launch(\"n::k\"); assay_launch.argument(::assay_host::type_name<T>());"),
            "{body}"
        );
        assert!(body.contains("assay_launch.parameter(\"assay_parameter_2\", assay_parameter_2);"), "{body}");
        assert!(body.contains("long assay_parameter_2)"), "{body}");
        assert!(!body.contains("v / 2") && !body.contains("x[N]"), "{body}");
        let launch =
            body.lines().position(|l| l.contains("configure(15, dim3(1), 32), n::k<float, 3>(")).unwrap();
        assert_eq!(launch, 14, "{body}");
        let check = body.lines().position(|l| l.contains("x.is_cpu(), \"cpu\"")).unwrap();
        assert_eq!(check, 13, "{body}");
        assert!(text.kernels.is_empty());
    }
}
