//! See `assay_fuzzing::exec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(why) = assay_fuzzing::exec::ptx_exec(bytes) {
        panic!("{why}");
    }
});
