//! See `assay_fuzzing::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(why) = assay_fuzzing::text::reference(bytes) {
        panic!("{why}");
    }
});
