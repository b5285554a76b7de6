//! Writing results to stdout; a reader that closed the pipe is no error.

use std::io::{self, Write as _};

use serde::Serialize;

use crate::exit::Failure;

/// Writes text to stdout.
///
/// # Errors
/// `CannotWrite` where stdout is a full or failing file.
pub fn text(s: &str) -> Result<(), Failure> {
    finish(io::stdout().lock().write_all(s.as_bytes()).and_then(|()| io::stdout().flush()))
}

/// Writes one JSON document and a newline to stdout.
///
/// # Errors
/// `CannotWrite` where stdout is a full or failing file.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut s = serde_json::to_string_pretty(value).map_err(Failure::bug)?;
    s.push('\n');
    text(&s)
}

/// Writes a line to stderr. A stderr that is closed or full changes no exit code, so it is no error.
pub fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn finish(r: io::Result<()>) -> Result<(), Failure> {
    match r {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::cannot_write(format!("cannot write to stdout: {e}"))),
    }
}

/// Columns of the terminal, or 80 where stdout is none.
pub fn width() -> usize {
    use std::io::IsTerminal as _;
    if !io::stdout().is_terminal() {
        return 80;
    }
    // comfy-table asks the terminal for its width.
    comfy_table::Table::new().width().map_or(80, |w| usize::from(w).clamp(60, 200))
}
