//! Objects, headers, archives, shared libraries.
use crate::diag::{Code, Error, Result};
use std::path::Path;
use tempfile::NamedTempFile;

/// A temporary file in the folder of `path`, with the permissions that a new file has.
pub fn temp_beside(path: &Path) -> Result<NamedTempFile> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tfaot-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(dir).map_err(|e| unwritten(path, &e))
}

/// Gives a finished temporary file its name.
///
/// Errors: `Code::Io`; the temporary file is gone then.
pub fn keep(temp: NamedTempFile, path: &Path) -> Result<()> {
    temp.persist(path).map(drop).map_err(|e| unwritten(path, &e.error))
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::user(Code::Io, format!("`{}` could not be written: {e}", path.display()))
}
