//! A PyTorch module, as `torch.export` gives it, to a problem of the catalogue's form.
//!
//! Arrives: an [`ExportedGraph`], that is ATen nodes with shapes and element types, and the module's tensors with the
//! words of how they were drawn. Leaves: a [`GeneratedProblem`], that is the text of `problem.toml` (inputs and
//! parameters, the reference in the catalogue's language) and of `kernel.cu` (one plain CUDA kernel per call, composed
//! from the operators' texts in `assay_ops::plain` with this graph's sizes in place, and one `launch` with scratch
//! tensors between them). Everything that works on a problem's folder works on it.
//!
//! One row per ATen operator ([`ATEN`]): which operator of ours it is and where its arguments go, or a function where it
//! is several. In-place operators are taken as functions whose result stands for the tensor from then on; where another
//! view of that tensor is still read, the graph is refused. Random numbers (dropout's masks) become inputs. What nothing
//! reads is left out.
//!
//! What it misses: dims. A graph has one set of extents, so the problem has numbers in place of names and neither ragged
//! nor official extents. Element types other than float32, int64 and bool; control flow; strided results, which are
//! written out as copies.

mod emit;
mod error;
mod graph;
mod inplace;
mod kernels;
mod problem;
mod rows;
mod text;

pub use error::Unsupported;
pub use graph::{Argument, ExportedGraph, Meta, Node, Source};
pub use problem::{GeneratedProblem, lower};
pub use rows::{ATEN, Row};
