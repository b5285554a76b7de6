//! C++/CUDA extensions of PyTorch without a compiler, a GPU or PyTorch: what `load_inline` builds, as a module whose
//! functions can be called.
//!
//! Arrives: [`Sources`] as `torch.utils.cpp_extension.load_inline` takes them, later [`Value`]s. Leaves: a [`Module`];
//! per call a [`Value`] and, in its [`Run`], the findings of the device. The C++ wrappers are interpreted from their
//! syntax tree; device code goes to NVRTC and runs on the CPU device over the tensors' own bytes; operations of
//! PyTorch that are more than metadata are asked of a [`Library`].

pub mod compiled;
mod convert;
mod device;
mod error;
mod expression;
mod functions;
mod interp;
mod methods;
mod module;
mod parse;
mod prelude;
mod program;
mod run;
mod sample;
mod syntax;
mod tensor;
mod torch;
mod value;

use assay_tensor::DType;

pub use error::ExtensionError;
pub use module::{Built, Module};
pub use run::{LaunchCost, Run};
pub use sample::{Poison, Sample};
pub use tensor::{Contents, Device, Storage, Tensor, contiguous_strides};

/// What `load_inline` is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// `cpp_sources`.
    pub cpp: Vec<String>,
    /// `cuda_sources`.
    pub cuda: Vec<String>,
    /// `functions`; none where a `PYBIND11_MODULE` in the sources says what the module has.
    pub functions: Vec<String>,
    /// `extra_cuda_cflags`.
    pub cuda_flags: Vec<String>,
}

/// A value that goes in or out of a function.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Str(String),
    /// A list.
    List(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// An element type (`torch.float32`).
    DType(DType),
    /// A device (`torch.device("cuda")`).
    Device(Device),
    /// `None`.
    None,
}

/// What answers operations of PyTorch that are more than metadata.
pub trait Library {
    /// Computes `torch.ops.aten.<name>(*args, **kwargs)`: `mm`, `sum`, `conv2d`. Methods have the tensor as their first
    /// argument. Results are fresh tensors (or views of nothing here); in-place operations are asked for by their
    /// functional name.
    ///
    /// # Errors
    /// `Raised` with PyTorch's message; `Unsupported` for an operation that is not there.
    fn call(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &[(String, Value)],
    ) -> Result<Value, ExtensionError>;
}
