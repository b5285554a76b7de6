//! CUDA C++ to PTX and machine code with NVRTC, without a GPU or a driver.
//!
//! Arrives: an [`Install`] (found or fetched), and [`Unit`]s of device code with the kernels wanted. Leaves: per unit
//! an [`Image`] (PTX, entry names, identity of each kernel) or a [`CompileError`] with the unit's own lines.
//!
//! The compiler parses text that nobody vouches for, so it runs only in child processes ([`worker_main`]) with limits
//! on time, memory, descriptors and log, that read nothing but NVRTC's own folders and the `-I` folders (Landlock;
//! where the kernel has none, every include is checked by its text before the compiler sees it, and it is checked in
//! either case). Several units share one call; one that fails, crashes or never ends costs only itself.
//!
//! Names that `nvcc` provides without an include (`INFINITY`, `FLT_MAX`, `uint32_t`) are there, and the host headers
//! that usually bring them (`cuda_runtime.h`, `math.h`, `stdint.h` and their like) are empty texts.
//!
//! Missed: host code is not compiled; CUDA dynamic parallelism is refused (`cudaLaunchDevice` is not defined); the
//! identity takes two kernels with different register allocation for different.

#[cfg(not(target_os = "linux"))]
compile_error!("NVRTC comes as a Linux library, and its workers are confined by Linux means");

mod batch;
mod compiler;
mod error;
mod ffi;
mod identity;
mod includes;
mod install;
mod landlock;
mod lex;
mod pool;
mod prelude;
mod protocol;
mod unit;
mod worker;

pub use compiler::{CompileError, CompileErrorKind, Compiler, Image, LogLine, Options, Unit, batches};
pub use error::NvrtcError;
pub use install::{Install, VERSION, cache_dir};
pub use pool::{Limits, WorkerCommand};
pub use worker::worker_main;
