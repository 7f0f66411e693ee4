//! Printing: a closed pipe ends the output, it is no error.
use super::progress;
use crate::diag::{Code, Diagnostic, Error, Result, grouped, render, render_warning};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::OnceLock;

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ErrorFormat {
    /// Text for people.
    #[default]
    Human,
    /// A JSON object a line: `{"level","code","message","file","function","node","op","line","column","notes","help"}`.
    Json,
}

/// How this process writes to standard error; text until [`error_format`] was called.
static FORMAT: OnceLock<ErrorFormat> = OnceLock::new();

/// Sets how diagnostics are written from here on; the first call holds.
pub fn error_format(format: ErrorFormat) {
    let _ = FORMAT.set(format);
    if is_json() {
        progress::never();
    }
}

/// Whether diagnostics are JSON.
pub fn is_json() -> bool {
    FORMAT.get() == Some(&ErrorFormat::Json)
}

/// Writes `text` to standard output.
///
/// Errors: `Code::Io` when it can't be written, unless its reader went away.
pub fn text(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// Writes bytes that are no text to standard output.
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

/// Writes `line` and a line break to standard output.
pub fn line(line: impl std::fmt::Display) -> Result<()> {
    text(&format!("{line}\n"))
}

/// Writes a JSON document over several lines to standard output.
pub fn json(value: &serde_json::Value) -> Result<()> {
    line(format_args!("{value:#}"))
}

/// Writes `line` to standard error; there is nobody to tell when that fails. A line that begins with `note: ` or `warning: ` is
/// of that level where diagnostics are JSON, any other is a note.
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

/// Writes the diagnostics of `error` to standard error: as text those of one cause as one, as JSON each.
pub fn error(error: Error) {
    if is_json() {
        return each_error(error);
    }
    for group in grouped(error.into_diagnostics()) {
        raw(&render(&group.to_diagnostic()));
    }
}

/// Writes every diagnostic of `error` to standard error.
pub fn each_error(error: Error) {
    for d in error.into_diagnostics() {
        if is_json() { raw(&object("error", &d)) } else { raw(&render(&d)) }
    }
}

/// A diagnostic as the line that `--error-format json` writes; what is not known is null.
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

/// Writes clap's help or complaint where it belongs.
pub fn usage(usage: &clap::Error) {
    let text = usage.render();
    let _ = if usage.use_stderr() { write!(std::io::stderr(), "{text}") } else { write!(std::io::stdout(), "{text}") };
}
