//! The file through which numbers travel.

use std::path::Path;

use memmap2::MmapMut;

use crate::error::WorkerError;

/// The file through which numbers travel.
pub struct Exchange {
    file: tempfile::NamedTempFile,
    map: MmapMut,
}

impl Exchange {
    /// An exchange of `bytes` bytes, in memory where the system has a place for that.
    ///
    /// # Errors
    /// No room.
    pub fn new(bytes: u64) -> Result<Exchange, WorkerError> {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
        let make = || {
            let file = tempfile::Builder::new().prefix("assay-exchange-").tempfile_in(&dir)?;
            file.as_file().set_len(bytes)?;
            // SAFETY: the file is ours alone under a fresh name; the worker that maps it too writes only between a request
            // and its reply, and we read only after the reply. A worker that breaks this can only spoil numbers.
            let map = unsafe { MmapMut::map_mut(file.as_file())? };
            Ok((file, map))
        };
        let (file, map) = make().map_err(|error| WorkerError::Exchange { path: dir.clone(), error })?;
        Ok(Exchange { file, map })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}
