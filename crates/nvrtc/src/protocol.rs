//! Frames between host and worker: a little-endian u32 length, then that many bytes of JSON.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Largest frame either side accepts, in bytes.
pub(crate) const MAX_FRAME_BYTES: u32 = 256 << 20;

/// Limits that a worker puts on itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkerLimits {
    pub cpu_seconds: u64,
    pub memory_bytes: u64,
    pub log_bytes: u64,
    pub landlock: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Load `library`, unpack its bundled headers into `headers`, say its version. Not confined.
    Setup { library: PathBuf, headers: Option<PathBuf> },
    /// Load `library`, warm it up, then see only `read_dirs` from here on.
    Start { library: PathBuf, read_dirs: Vec<PathBuf>, limits: WorkerLimits },
    /// Compile one program.
    Compile(CompileRequest),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CompileRequest {
    pub source: String,
    pub file_name: String,
    pub options: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub names: Vec<String>,
    /// Stop after the front end and return the log.
    pub check_only: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Setup { version: String, has_headers: bool },
    Ready { confined: bool },
    Compiled(Compiled),
    Failed { message: String },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Compiled {
    pub log: String,
    pub output: Option<Output>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    pub ptx: String,
    /// One per requested name, in order.
    pub kernels: Vec<LoweredKernel>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoweredKernel {
    pub entry: String,
    pub identity: String,
    /// Functions and variables that the kernel needs and nobody defines.
    pub unresolved: Vec<String>,
}

pub(crate) fn write_frame<T: Serialize>(out: &mut impl Write, value: &T) -> io::Result<()> {
    let body = serde_json::to_vec(value).map_err(io::Error::other)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|&n| n <= MAX_FRAME_BYTES)
        .ok_or_else(|| io::Error::other("frame too long"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&body)?;
    out.flush()
}

/// `None` at a clean end of the stream.
pub(crate) fn read_frame<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0u8; 4];
    match input.read(&mut length)? {
        0 => return Ok(None),
        n => input.read_exact(&mut length[n..])?,
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::other("frame too long"));
    }
    let mut body = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_a_cut_one_is_an_error() {
        let mut buffer = Vec::new();
        write_frame(&mut buffer, &Answer::Ready { confined: true }).unwrap();
        let whole: Option<Answer> = read_frame(&mut &buffer[..]).unwrap();
        assert!(matches!(whole, Some(Answer::Ready { confined: true })));
        assert!(read_frame::<Answer>(&mut &buffer[..buffer.len() - 1]).is_err());
        assert!(read_frame::<Answer>(&mut &b""[..]).unwrap().is_none());
        assert!(read_frame::<Answer>(&mut &[255u8; 8][..]).is_err());
    }
}
