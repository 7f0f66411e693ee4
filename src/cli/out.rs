//! Printing: a closed pipe ends the output, it is no error.
use crate::diag::{Code, Diagnostic, Error, Result, render, render_warning};
use std::io::Write;

/// Writes `text` to standard output.
///
/// Errors: `Code::Io` when it can't be written, unless its reader went away.
pub fn text(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// The same for what is no text.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::user(Code::Io, format!("standard output could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes `line` and a line break to standard output.
pub fn line(line: impl std::fmt::Display) -> Result<()> {
    text(&format!("{line}\n"))
}

/// Writes a JSON document over several lines to standard output.
pub fn json(value: &serde_json::Value) -> Result<()> {
    line(format_args!("{value:#}"))
}

/// Writes `line` to standard error; there is nobody to tell when that fails.
pub fn note(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes every diagnostic of `error` to standard error.
pub fn error(error: Error) {
    for d in error.into_diagnostics() {
        note(render(&d));
    }
}

/// Writes warnings about `file` to standard error.
pub fn warnings(all: &[Diagnostic], file: &str) {
    for d in in_file(Error::User(all.to_vec()), file).into_diagnostics() {
        note(render_warning(&d));
    }
}

/// Writes clap's help or complaint where it belongs.
pub fn usage(usage: &clap::Error) {
    let text = usage.render();
    let _ = if usage.use_stderr() { write!(std::io::stderr(), "{text}") } else { write!(std::io::stdout(), "{text}") };
}

/// Says in which file the diagnostics of `error` are, where they don't say it.
pub fn in_file(error: Error, file: &str) -> Error {
    error.map(|mut d| {
        d.place.file.get_or_insert_with(|| file.to_string());
        d
    })
}

/// `Code::Io` on a path.
pub fn io_error(what: &str, path: &std::path::Path, e: &std::io::Error) -> Error {
    Error::user(Code::Io, format!("`{}` could not be {what}: {e}", path.display()))
}
