//! Output to standard output and standard error. A closed pipe ends the output without an error.
use super::progress;
use crate::diag::{Code, Diagnostic, Error, Result, grouped, render, render_warning};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::OnceLock;

/// Format of diagnostics on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ErrorFormat {
    /// Text for people.
    #[default]
    Human,
    /// A JSON object a line: `{"level","code","message","file","function","node","op","line","column","notes","help"}`.
    Json,
}

/// The format of diagnostics in this process; text until [`error_format`] is called.
static FORMAT: OnceLock<ErrorFormat> = OnceLock::new();

/// Sets the format of diagnostics; only the first call has an effect.
pub fn error_format(format: ErrorFormat) {
    let _ = FORMAT.set(format);
    if is_json() {
        progress::disable();
    }
}

/// Whether diagnostics are written as JSON.
pub fn is_json() -> bool {
    FORMAT.get() == Some(&ErrorFormat::Json)
}

/// Writes `text` to standard output.
///
/// Errors: `Code::Io` if it can't be written, unless the pipe was closed.
pub fn text(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// Writes binary data to standard output.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    progress::clear();
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::user(Code::Io, format!("standard output could not be written: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes `line` and a newline to standard output.
pub fn line(line: impl std::fmt::Display) -> Result<()> {
    text(&format!("{line}\n"))
}

/// Writes a JSON document to standard output, indented.
pub fn json(value: &serde_json::Value) -> Result<()> {
    line(format_args!("{value:#}"))
}

/// Writes `line` to standard error; a failure is ignored. In JSON, a line that begins with `note: ` or `warning: ` has that level, any
/// other is a note.
pub fn note(line: impl std::fmt::Display) {
    if !is_json() {
        return raw(&line);
    }
    let line = line.to_string();
    let (level, message) = ["note", "warning"]
        .iter()
        .find_map(|level| Some((*level, line.strip_prefix(level)?.strip_prefix(": ")?)))
        .unwrap_or(("note", &line));
    raw(&json!({"level": level, "message": message}));
}

fn raw(line: &dyn std::fmt::Display) {
    progress::clear();
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes the diagnostics of `error` to standard error: grouped by cause as text, individually as JSON.
pub fn error(error: Error) {
    if is_json() {
        return each_error(error);
    }
    for group in grouped(error.into_diagnostics()) {
        raw(&render(&group.to_diagnostic()));
    }
}

/// Writes every diagnostic of `error` to standard error, without grouping.
pub fn each_error(error: Error) {
    for d in error.into_diagnostics() {
        if is_json() { raw(&object("error", &d)) } else { raw(&render(&d)) }
    }
}

/// A diagnostic as a line of `--error-format json`; unknown fields are null.
fn object(level: &str, d: &Diagnostic) -> Value {
    let place = &d.place;
    json!({
        "level": level,
        "code": d.code.id(),
        "message": d.message,
        "file": place.file,
        "function": place.function,
        "node": place.node,
        "op": place.op,
        "line": place.line.map(|at| at.0),
        "column": place.line.map(|at| at.1),
        "notes": d.notes,
        "help": d.help,
    })
}

/// Writes warnings about `file` to standard error.
pub fn warnings(all: &[Diagnostic], file: &str) {
    for d in Error::User(all.to_vec()).in_file(file).into_diagnostics() {
        if is_json() { raw(&object("warning", &d)) } else { raw(&render_warning(&d)) }
    }
}

/// Writes clap's help to standard output, or its error message to standard error.
pub fn usage(usage: &clap::Error) {
    let text = usage.render();
    let _ = if usage.use_stderr() { write!(std::io::stderr(), "{text}") } else { write!(std::io::stdout(), "{text}") };
}
