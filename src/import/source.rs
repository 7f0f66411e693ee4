//! Reading of files: mapped into memory, or read if they can't be mapped, and unpacked if they are gzipped.
use super::mmap::map_file;
use crate::diag::{Code, Diagnostic, Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of an unpacked file.
const MOST_BYTES: usize = 1 << 34;

/// The content of the file at `path`; `-` is standard input. Gzip is unpacked.
///
/// # Errors
/// `Io`; `BadEncoding` for damaged gzip; `TooLarge` if the unpacked content exceeds the limit or memory.
pub fn read_file(path: &Path) -> Result<Bytes> {
    let bytes = if path.as_os_str() == "-" {
        read_all(std::io::stdin().lock(), Code::Io)?
    } else {
        let file = File::open(path).map_err(|e| io_error(path, &e))?;
        let meta = file.metadata().map_err(|e| io_error(path, &e))?;
        if meta.is_dir() {
            return Err(Error::user(Code::Io, format!("`{}` is a folder", path.display())));
        }
        if meta.is_file() && meta.len() > 0 {
            map_file(&file).map_err(|e| io_error(path, &e))?
        } else {
            read_all(file, Code::Io)?
        }
    };
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return read_all(flate2::read::MultiGzDecoder::new(&bytes[..]), Code::BadEncoding);
    }
    Ok(bytes)
}

fn io_error(path: &Path, error: &std::io::Error) -> Error {
    Error::user(Code::Io, format!("`{}` can't be read: {error}", path.display()))
}

/// Reads to the end, growing the buffer in steps so that a lack of memory is an error and not an abort.
fn read_all(mut from: impl Read, code: Code) -> Result<Bytes> {
    let mut all = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let n = match from.read(&mut chunk) {
            Ok(0) => return Ok(Bytes::from(all)),
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::user(code, format!("the content can't be read: {e}"))),
        };
        if all.len() + n > MOST_BYTES || all.try_reserve(n).is_err() {
            return Err(Diagnostic::new(Code::TooLarge, "the unpacked content does not fit in memory").into());
        }
        all.extend_from_slice(&chunk[..n]);
    }
}
