//! Messages to the user: coded diagnostics, and the error type of every step.
//!
//! There are two kinds of errors: a [`Diagnostic`] blames the user's graph or options, an internal error blames tfaot.
pub mod codes;
mod groups;
mod render;

pub use codes::Code;
pub use groups::{Group, grouped};
pub use render::{render, render_warning};

use std::path::Path;

/// The place that a diagnostic concerns. A graph has no lines, so file, function and node identify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The file as the user named it.
    pub file: Option<String>,
    /// The library function that holds the node; `None` at the top level.
    pub function: Option<String>,
    /// The node's name.
    pub node: Option<String>,
    /// The node's op.
    pub op: Option<String>,
    /// Line and column of a text input, both from 1.
    pub line: Option<(usize, usize)>,
}

/// A problem with the user's input: a stable code, a message, its place and its remedy.
///
/// ```
/// use tfaot::{Code, Diagnostic, Error};
///
/// let error: Error = Diagnostic::new(Code::BadOption, "there is no such size").help("for example --size n=5").into();
/// assert!(error.has(Code::BadOption));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// One lower-case sentence without a full stop.
    pub message: String,
    /// The place in the input that the diagnostic concerns.
    pub place: Box<Location>,
    /// Explanatory facts, one line each.
    pub notes: Vec<String>,
    /// The remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without a place, notes and help.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { code, message: message.into(), place: Box::default(), notes: Vec::new(), help: None }
    }
    /// Adds an explanatory fact.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Sets the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Sets the node, unless a more specific one is already set.
    pub fn at_node(mut self, node: &str, op: &str) -> Self {
        if self.place.node.is_none() {
            self.place.node = Some(node.to_string());
            self.place.op = Some(op.to_string());
        }
        self
    }
}

/// The reason why a step failed.
///
/// ```
/// use tfaot::{Code, ModelFile, Request};
///
/// let error = ModelFile::open("missing.pb").lower(&Request::default()).expect_err("there is no such file");
/// assert!(error.has(Code::Io));
/// for diagnostic in error.into_diagnostics() {
///     println!("error[{}]: {}", diagnostic.code.id(), diagnostic.message);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Problems with the user's input; never empty.
    User(Vec<Diagnostic>),
    /// A violated invariant of tfaot.
    Internal {
        /// The step or pass that detected it.
        step: &'static str,
        /// A description of the violated invariant.
        message: String,
    },
}

/// The result of a step that can fail.
///
/// ```
/// fn lanes() -> tfaot::Result<u64> {
///     Ok(tfaot::Target::resolve(Some("aarch64-unknown-linux-gnu"), None, None)?.lanes(4))
/// }
/// assert_eq!(lanes(), Ok(4));
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A user error with one diagnostic.
    pub fn user(code: Code, message: impl Into<String>) -> Self {
        Diagnostic::new(code, message).into()
    }
    /// An internal error.
    pub fn internal(step: &'static str, message: impl Into<String>) -> Self {
        Error::Internal { step, message: message.into() }
    }
    /// Applies `f` to each diagnostic of a user error.
    pub fn map(self, f: impl FnMut(Diagnostic) -> Diagnostic) -> Self {
        match self {
            Error::User(all) => Error::User(all.into_iter().map(f).collect()),
            internal => internal,
        }
    }
    /// Sets the file of the diagnostics that name none.
    pub fn in_file(self, file: impl AsRef<Path>) -> Self {
        let name = file.as_ref().display().to_string();
        self.map(|mut d| {
            d.place.file.get_or_insert_with(|| name.clone());
            d
        })
    }
    /// Whether one of its diagnostics has this code.
    pub fn has(&self, code: Code) -> bool {
        matches!(self, Error::User(all) if all.iter().any(|d| d.code == code))
    }
    /// The diagnostics of the error; an internal error becomes one with `Code::Internal`.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        match self {
            Error::User(all) => all,
            Error::Internal { step, message } => vec![
                Diagnostic::new(Code::Internal, format!("{step}: {message}"))
                    .help("this is a bug in tfaot; please report it with the graph"),
            ],
        }
    }
}

/// An error with `Code::Io`: the file could not be `what`, such as "read".
pub fn io_error(what: &str, path: &Path, e: &std::io::Error) -> Error {
    Error::user(Code::Io, format!("`{}` could not be {what}: {e}", path.display()))
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Self {
        Error::User(vec![d])
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, d) in self.clone().into_diagnostics().iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            f.write_str(&render(d))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
