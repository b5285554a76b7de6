//! The few NVRTC calls that a worker makes, bound at run time.
//!
//! Source of the signatures: `nvrtc.h` of CUDA 13.5.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

use libloading::{Library, Symbol};

type Program = *mut c_void;
type Status = c_int;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> Status;
type BytesOf = unsafe extern "C" fn(Program, *mut c_char) -> Status;
type InstallHeaders = unsafe extern "C" fn(*const c_char, c_uint, *mut *const c_char) -> Status;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Status;

/// Function pointers out of one loaded NVRTC; the library stays loaded as long as the process.
pub(crate) struct Nvrtc {
    create: Create,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    add_name: unsafe extern "C" fn(Program, *const c_char) -> Status,
    lowered_name: unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    log_size: SizeOf,
    log: BytesOf,
    ptx_size: SizeOf,
    ptx: BytesOf,
    cubin_size: SizeOf,
    cubin: BytesOf,
    install_headers: Option<InstallHeaders>,
    /// Last field: the pointers above live in it.
    _library: Library,
}

/// What one compilation gave.
pub(crate) struct Outcome {
    pub log: Vec<u8>,
    pub output: Option<RawOutput>,
}

/// PTX, machine code and entry names of a compilation that succeeded.
pub(crate) struct RawOutput {
    pub ptx: Vec<u8>,
    pub cubin: Vec<u8>,
    pub entries: Vec<String>,
}

impl Nvrtc {
    /// Loads the library at `path`. Only workers call this.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: loading runs the library's initialisers; the caller chose the file (checked by hash, or named
        // by the user), and the process is a worker that exists for nothing else.
        let library = unsafe { Library::new(path) }.map_err(|e| format!("cannot be loaded: {e}"))?;
        fn get<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
            // SAFETY: the type is that of the function's declaration in nvrtc.h.
            let symbol: Symbol<T> =
                unsafe { library.get(name) }.map_err(|_| format!("has no function `{name}`"))?;
            Ok(*symbol)
        }
        Ok(Self {
            create: get(&library, "nvrtcCreateProgram")?,
            destroy: get(&library, "nvrtcDestroyProgram")?,
            compile: get(&library, "nvrtcCompileProgram")?,
            add_name: get(&library, "nvrtcAddNameExpression")?,
            lowered_name: get(&library, "nvrtcGetLoweredName")?,
            error_string: get(&library, "nvrtcGetErrorString")?,
            version: get(&library, "nvrtcVersion")?,
            log_size: get(&library, "nvrtcGetProgramLogSize")?,
            log: get(&library, "nvrtcGetProgramLog")?,
            ptx_size: get(&library, "nvrtcGetPTXSize")?,
            ptx: get(&library, "nvrtcGetPTX")?,
            cubin_size: get(&library, "nvrtcGetCUBINSize")?,
            cubin: get(&library, "nvrtcGetCUBIN")?,
            install_headers: get(&library, "nvrtcInstallBundledHeaders").ok(),
            _library: library,
        })
    }

    fn check(&self, call: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: nvrtcGetErrorString returns a static string for every value.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(format!("`{call}` answered {status} ({})", text.to_string_lossy()))
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> Result<(i32, i32), String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        self.check("nvrtcVersion", unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((major, minor))
    }

    /// Unpacks the bundled headers; false where this NVRTC has none.
    pub(crate) fn install_headers(&self, target: &Path) -> Result<bool, String> {
        let Some(install) = self.install_headers else { return Ok(false) };
        let path = c_string(target.as_os_str().as_encoded_bytes())?;
        let mut message: *const c_char = std::ptr::null();
        // SAFETY: `path` is NUL-terminated and `message` a live out-pointer.
        let status = unsafe { install(path.as_ptr(), 0, &mut message) };
        if status != 0 && !message.is_null() {
            // SAFETY: on failure NVRTC points `message` at a NUL-terminated string of its own.
            return Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
        }
        self.check("nvrtcInstallBundledHeaders", status)?;
        Ok(true)
    }

    /// Compiles `source`. `Err` is a failure of NVRTC, not of the source.
    pub(crate) fn compile(
        &self,
        source: &str,
        file_name: &str,
        headers: &[(String, String)],
        options: &[String],
        names: &[String],
        code: bool,
    ) -> Result<Outcome, String> {
        let source = c_string(source.as_bytes())?;
        let file_name = c_string(file_name.as_bytes())?;
        let header_names = c_strings(headers.iter().map(|(name, _)| name.as_str()))?;
        let header_texts = c_strings(headers.iter().map(|(_, text)| text.as_str()))?;
        let options = c_strings(options.iter().map(String::as_str))?;
        let names = c_strings(names.iter().map(String::as_str))?;
        let mut program: Program = std::ptr::null_mut();
        let name_pointers = pointers(&header_names);
        let text_pointers = pointers(&header_texts);
        // SAFETY: all strings are NUL-terminated and outlive the call; both header arrays have the length given.
        let status = unsafe {
            (self.create)(
                &mut program,
                source.as_ptr(),
                file_name.as_ptr(),
                count(headers.len())?,
                text_pointers.as_ptr(),
                name_pointers.as_ptr(),
            )
        };
        self.check("nvrtcCreateProgram", status)?;
        let result = self.compile_program(program, &options, &names, code);
        // SAFETY: `program` came from nvrtcCreateProgram and is not used afterwards.
        unsafe { (self.destroy)(&mut program) };
        result
    }

    fn compile_program(
        &self,
        program: Program,
        options: &[CString],
        names: &[CString],
        code: bool,
    ) -> Result<Outcome, String> {
        for name in names {
            // SAFETY: `program` is live, `name` is NUL-terminated; NVRTC copies it.
            self.check("nvrtcAddNameExpression", unsafe { (self.add_name)(program, name.as_ptr()) })?;
        }
        let option_pointers = pointers(options);
        // SAFETY: `option_pointers` has `options.len()` NUL-terminated strings.
        let status = unsafe { (self.compile)(program, count(options.len())?, option_pointers.as_ptr()) };
        let log = self.bytes("nvrtcGetProgramLog", program, self.log_size, self.log)?;
        const COMPILATION: Status = 6;
        if status != 0 {
            if status != COMPILATION && log.iter().all(u8::is_ascii_whitespace) {
                self.check("nvrtcCompileProgram", status)?;
            }
            return Ok(Outcome { log, output: None });
        }
        if !code {
            return Ok(Outcome {
                log,
                output: Some(RawOutput { ptx: vec![], cubin: vec![], entries: vec![] }),
            });
        }
        let ptx = self.bytes("nvrtcGetPTX", program, self.ptx_size, self.ptx)?;
        let cubin = self.bytes("nvrtcGetCUBIN", program, self.cubin_size, self.cubin)?;
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let mut lowered: *const c_char = std::ptr::null();
            // SAFETY: `name` was registered before compiling, `lowered` is a live out-pointer.
            let status = unsafe { (self.lowered_name)(program, name.as_ptr(), &mut lowered) };
            self.check("nvrtcGetLoweredName", status)?;
            // SAFETY: on success the pointer is to a NUL-terminated string that lives as long as `program`.
            entries.push(unsafe { CStr::from_ptr(lowered) }.to_string_lossy().into_owned());
        }
        Ok(Outcome { log, output: Some(RawOutput { ptx: trimmed(ptx), cubin, entries }) })
    }

    fn bytes(&self, call: &str, program: Program, size: SizeOf, fill: BytesOf) -> Result<Vec<u8>, String> {
        let mut length = 0usize;
        // SAFETY: `program` is live and `length` a live out-pointer.
        self.check(call, unsafe { size(program, &mut length) })?;
        let mut buffer = vec![0u8; length];
        if length > 0 {
            // SAFETY: the buffer has the size that NVRTC just asked for.
            self.check(call, unsafe { fill(program, buffer.as_mut_ptr().cast()) })?;
        }
        Ok(buffer)
    }
}

/// Drops the terminating NULs of a text that NVRTC counts with its size.
fn trimmed(mut text: Vec<u8>) -> Vec<u8> {
    while text.last() == Some(&0) {
        text.pop();
    }
    text
}

fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "a NUL byte inside a text for NVRTC".into())
}

fn c_strings<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<CString>, String> {
    texts.map(|t| c_string(t.as_bytes())).collect()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|t| t.as_ptr()).collect()
}

fn count(n: usize) -> Result<c_int, String> {
    c_int::try_from(n).map_err(|_| "too many texts for NVRTC".into())
}
