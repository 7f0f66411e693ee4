//! Memory-mapped files.
use bytes::Bytes;
use std::fs::File;

/// Maps `file` into memory; all slices of the result share the mapping.
///
/// As with every mapping, the process crashes if another process truncates the file meanwhile.
///
/// # Errors
/// Errors of the operating system.
#[expect(unsafe_code, reason = "a mapped file may change under us; every reader of large files accepts that")]
pub fn map_file(file: &File) -> std::io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only, and lives as long as the last slice of it.
    let map = unsafe { memmap2::MmapOptions::new().map(file)? };
    Ok(Bytes::from_owner(map))
}
