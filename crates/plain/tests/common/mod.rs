//! What the tests share: one compiler, one runner.

use std::sync::OnceLock;

use assay_nvrtc::{Compiler, Install, Limits, WorkerCommand};
use assay_plain::PlainRunner;

pub fn runner() -> &'static PlainRunner<'static> {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    static RUNNER: OnceLock<PlainRunner<'static>> = OnceLock::new();
    RUNNER.get_or_init(|| {
        PlainRunner::new(COMPILER.get_or_init(|| {
            let worker = WorkerCommand {
                program: env!("CARGO_BIN_EXE_assay-plain").into(),
                args: vec!["__compile-worker".into()],
            };
            let install = Install::locate_or_install(&worker, &mut |_| ())
                .unwrap_or_else(|e| panic!("NVRTC is needed: {e}"));
            Compiler::new(install, worker, 2, Limits::default())
        }))
    })
}
