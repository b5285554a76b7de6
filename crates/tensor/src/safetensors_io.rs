//! Reading and writing safetensors files; files are written whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use sha2::{Digest as _, Sha256};

use crate::{DType, Tensor, TensorError};

/// Largest file that is read: hostile headers must not make us allocate more than the file has.
const MAX_FILE_BYTES: u64 = 64 << 30;

fn to_file(d: DType) -> Dtype {
    match d {
        DType::Bool => Dtype::BOOL,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::I8 => Dtype::I8,
        DType::U8 => Dtype::U8,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
    }
}

fn from_file(d: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|&x| to_file(x) == d)
}

/// Every tensor of a safetensors file, by name.
///
/// # Errors
/// `Io` where the file cannot be read, `BadFile` where it is malformed or holds a dtype that Assay lacks.
pub fn read(path: &Path) -> Result<BTreeMap<String, Tensor>, TensorError> {
    let io = |source| TensorError::Io { action: "read", path: path.to_owned(), source };
    let bad = |what: String| TensorError::BadFile { path: path.to_owned(), what };
    let meta = fs::metadata(path).map_err(io)?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return Err(bad("not a regular file of at most 64 GiB".into()));
    }
    let bytes = fs::read(path).map_err(io)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| bad(e.to_string()))?;
    let mut out = BTreeMap::new();
    for (name, view) in file.tensors() {
        let dtype = from_file(view.dtype())
            .ok_or_else(|| bad(format!("tensor `{name}` has dtype {:?}", view.dtype())))?;
        let shape: Vec<u64> = view.shape().iter().map(|&d| d as u64).collect();
        out.insert(name, Tensor::from_bytes(dtype, &shape, view.data().to_vec())?);
    }
    Ok(out)
}

/// Writes the tensors to `path` by way of a temporary file beside it, so that a full disk or a kill leaves either
/// the old file or the new one.
///
/// # Errors
/// `Io` where the file cannot be written; `BadFile` where the format refuses the tensors.
pub fn write_atomic(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), TensorError> {
    write_file_atomic(path, &to_bytes(path, tensors)?)
}

/// The tensors as the bytes of a safetensors file; `path` is named in errors.
///
/// # Errors
/// `BadFile` where the format refuses the tensors.
pub fn to_bytes(path: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>, TensorError> {
    let bad = |what: String| TensorError::BadFile { path: path.to_owned(), what };
    let mut views = Vec::new();
    for (name, t) in tensors {
        let shape: Vec<usize> = t.shape.iter().map(|&d| d as usize).collect();
        views.push((
            name.as_str(),
            TensorView::new(to_file(t.dtype), shape, &t.data).map_err(|e| bad(e.to_string()))?,
        ));
    }
    safetensors::serialize(views, None).map_err(|e| bad(e.to_string()))
}

/// SHA-256 of tensors by name, in hexadecimal digits: of each its name, a zero byte, its dtype's name, a zero byte, the
/// number of its dims and the dims (u64), and its elements; numbers little-endian. A function of the values alone, unlike
/// the bytes of a file.
pub fn digest(tensors: &BTreeMap<String, Tensor>) -> String {
    let mut hash = Sha256::new();
    for (name, t) in tensors {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(t.dtype.name().as_bytes());
        hash.update([0]);
        hash.update((t.shape.len() as u64).to_le_bytes());
        for d in &t.shape {
            hash.update(d.to_le_bytes());
        }
        hash.update(&t.data);
    }
    crate::tensor::hex(&hash.finalize())
}

/// Writes `bytes` to `path` whole or not at all. Behind a symbolic link, the file that it names is written.
///
/// # Errors
/// `Io` with the system's answer; the temporary file is removed. Also where something other than a regular file is
/// there: a rename would put a file in the place of a device or a pipe.
pub fn write_file_atomic(path: &Path, bytes: &[u8]) -> Result<(), TensorError> {
    let io = |source| TensorError::Io { action: "write", path: path.to_owned(), source };
    let path = match fs::metadata(path) {
        Ok(m) if !m.is_file() => return Err(io(std::io::Error::other("not a regular file"))),
        Ok(_) => &fs::canonicalize(path).map_err(io)?,
        Err(_) => path,
    };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary).and_then(|mut f| {
        f.write_all(bytes)?;
        f.sync_all()
    });
    match written.and_then(|()| fs::rename(&temporary, path)) {
        Ok(()) => Ok(()),
        Err(e) => {
            // The first error is the one to report; a leftover temporary is harmless.
            let _ = fs::remove_file(&temporary);
            Err(io(e))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("assay-tensor-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn what_is_written_is_read_back_for_every_dtype() {
        let dir = folder("roundtrip");
        let path = dir.join("t.safetensors");
        let all: BTreeMap<String, Tensor> = DType::ALL
            .into_iter()
            .map(|d| (d.to_string(), Tensor::from_f64_values(d, &[2, 1], &[1.0, 0.0]).unwrap()))
            .collect();
        write_atomic(&path, &all).unwrap();
        assert_eq!(read(&path).unwrap(), all);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_digest_is_of_names_dtypes_shapes_and_values() {
        let t = |d, shape: &[u64], v: &[f64]| Tensor::from_f64_values(d, shape, v).unwrap();
        let of = |name: &str, t: Tensor| digest(&BTreeMap::from([(name.to_owned(), t)]));
        let x = of("x", t(DType::F32, &[2, 1], &[1.0, 2.0]));
        // Of the bytes that the documentation states, by another program.
        assert_eq!(x, "4f388c34b10e38e0baf9dd8b5aa2841ef6e5739bb4d794429d21334b53ac1d6a");
        for other in [
            of("y", t(DType::F32, &[2, 1], &[1.0, 2.0])),
            of("x", t(DType::I32, &[2, 1], &[1.0, 2.0])),
            of("x", t(DType::F32, &[1, 2], &[1.0, 2.0])),
            of("x", t(DType::F32, &[2, 1], &[1.0, -2.0])),
        ] {
            assert_ne!(x, other);
        }
    }

    #[test]
    fn a_cut_file_is_an_error_and_not_a_panic() {
        let dir = folder("cut");
        let path = dir.join("t.safetensors");
        let all = BTreeMap::from([("x".to_owned(), Tensor::zeros(DType::F32, &[8]).unwrap())]);
        write_atomic(&path, &all).unwrap();
        let bytes = fs::read(&path).unwrap();
        for n in 0..bytes.len() {
            fs::write(&path, &bytes[..n]).unwrap();
            assert!(read(&path).is_err(), "cut at {n}");
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_unwritable_place_is_an_error_that_names_the_file() {
        let e = write_atomic(Path::new("/proc/no/such.safetensors"), &BTreeMap::new()).unwrap_err();
        assert!(e.to_string().contains("such.safetensors"), "{e}");
    }
}
