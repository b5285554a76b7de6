//! Embeds the catalogue, so that an installed binary works without the checkout.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../../problems");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if root.is_dir() {
        gather(&root, &root, 0, &mut files)?;
    }
    files.sort();
    let mut out = String::from("pub(crate) static FILES: &[(&str, &str)] = &[\n");
    for (name, path) in &files {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "    ({name:?}, include_str!({path:?})),");
    }
    out.push_str("];\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("embedded.rs"), out)
}

/// Every `problem.toml`, `.cu` and `.cuh` below `dir`, by its path from `root` with `/` between the parts.
fn gather(root: &Path, dir: &Path, depth: usize, out: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && depth < 4 {
            gather(root, &path, depth + 1, out)?;
            continue;
        }
        let kernel = path.extension().is_some_and(|e| e == "cu" || e == "cuh");
        if !(kernel || path.file_name().is_some_and(|n| n == "problem.toml")) {
            continue;
        }
        println!("cargo::rerun-if-changed={}", path.display());
        let parts: Vec<String> = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .components()
            .map(|c| c.as_os_str().to_string_lossy().into_owned())
            .collect();
        out.push((parts.join("/"), path.canonicalize()?));
    }
    Ok(())
}
