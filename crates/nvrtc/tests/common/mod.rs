//! What the tests share: one NVRTC, one compiler.

use std::sync::OnceLock;

use assay_nvrtc::{Compiler, Image, Install, Limits, Options, Unit, WorkerCommand};

pub fn worker() -> WorkerCommand {
    WorkerCommand { program: env!("CARGO_BIN_EXE_assay-nvrtc-worker").into(), args: vec![] }
}

pub fn install() -> Install {
    static INSTALL: OnceLock<Install> = OnceLock::new();
    INSTALL
        .get_or_init(|| {
            Install::locate_or_install(&worker(), &mut |_| ())
                .unwrap_or_else(|e| panic!("NVRTC is needed: {e}"))
        })
        .clone()
}

pub fn compiler_with(limits: Limits) -> Compiler {
    Compiler::new(install(), worker(), 2, limits)
}

pub fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| compiler_with(Limits::default()))
}

pub fn unit(source: &str, kernels: &[&str]) -> Unit {
    Unit {
        name: "unit".into(),
        file: "kernel.cu".into(),
        source: source.into(),
        kernels: kernels.iter().map(|k| (*k).to_owned()).collect(),
    }
}

/// Compiles one unit in a call of its own.
#[allow(dead_code)]
pub fn single(unit: &Unit) -> Image {
    let mut results = compiler().compile(&Options::default(), std::slice::from_ref(unit));
    results.remove(0).unwrap_or_else(|e| panic!("{}\n{}", e, unit.source))
}
