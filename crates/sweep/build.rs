//! Embeds `sweeps/` (plans, devices, cases) and the PyTorch worker, so that an installed binary works without the
//! checkout.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    let mut out = String::new();
    for folder in ["plans", "devices", "cases"] {
        let mut files = Vec::new();
        let dir = root.join("sweeps").join(folder);
        println!("cargo::rerun-if-changed={}", dir.display());
        if dir.is_dir() {
            gather(&dir, &mut files)?;
        }
        files.sort();
        let _ = writeln!(
            out,
            "/// `sweeps/{folder}`: name and text.\npub(crate) static {}: &[(&str, &str)] = &[",
            folder.to_uppercase()
        );
        for (name, path) in &files {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "    ({name:?}, include_str!({path:?})),");
        }
        out.push_str("];\n");
    }
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("embedded.rs"), out)
}

fn gather(dir: &Path, out: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            println!("cargo::rerun-if-changed={}", path.display());
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            out.push((name, path.canonicalize()?));
        }
    }
    Ok(())
}
