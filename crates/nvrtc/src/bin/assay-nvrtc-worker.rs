//! The compile worker as a program of its own, for tests and for callers without a hidden argument.

fn main() {
    std::process::exit(assay_nvrtc::worker_main());
}
