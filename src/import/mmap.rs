//! Mapping of files into memory, for all of the crate.
use bytes::Bytes;
use std::fs::File;

/// The content of `file` as bytes that share the mapping, however they are sliced.
///
/// As with every mapping, a file that another process cuts short while it is used takes this process down.
///
/// # Errors
/// What the system says.
#[expect(unsafe_code, reason = "a mapped file may change under us; every reader of large files accepts that")]
pub fn map_file(file: &File) -> std::io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only, and lives as long as the last slice of it.
    let map = unsafe { memmap2::MmapOptions::new().map(file)? };
    Ok(Bytes::from_owner(map))
}
