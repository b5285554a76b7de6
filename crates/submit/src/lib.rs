//! Submissions in Python: a file with `ModelNew` and inline CUDA, judged against a problem file.
//!
//! Arrives: a submission, a problem file with `Model`, `get_inputs` and `get_init_inputs`, a Python that has PyTorch, a
//! [`Host`] that runs extensions. Leaves: a [`Check`](assay_campaign::check::Check), whose JSON is the contract of
//! `assay check`.
//!
//! A submission runs in a confined child of a fork server ([`Server`]); its kernels run here, on the CPU device; the
//! reference runs in another process ([`Reference`]), which never sees a line of it. Only output bytes and launches
//! decide. `docs/submissions.md` has the verdicts and the tricks, `docs/submission-worker.md` the protocol.

mod batch;
mod catalogue;
mod error;
mod host;
mod judge;
mod look;
mod native;
mod problem;
mod question;
mod reference;
mod scripts;
mod server;
mod session;
mod toolchain;
mod wire;

pub use batch::{Batch, Item, ProblemSource, Ran};
pub use catalogue::problem_file;
pub use error::SubmitError;
pub use host::{Built, CpuHost, Device, Host, Made, Native, Seen, Way};
pub use judge::{Settings, Slot, Submission, judge};
pub use problem::Prepared;
pub use question::Question;
pub use reference::{Reference, Setting};
pub use server::{Ending, Gone, Limits, Server};
pub use session::{Reply, Session};
pub use toolchain::{NotCompiled, Toolchain};
