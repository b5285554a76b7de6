//! The parser of `--arg`, which the command keeps to itself.
#![no_main]

#[path = "../../crates/assay/src/argspec.rs"]
#[allow(dead_code)]
mod argspec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Err(e) = argspec::ArgSpec::parse(&text) {
        assert!(e.at <= text.len() && !e.to_string().is_empty());
    }
});
