//! Static libraries of one member, with a symbol table and without dates.
use crate::diag::{Error, Result};
use crate::target::{ObjectFormat, Target};
use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use std::io::Cursor;

/// An archive that holds `object` as `member`. The bytes depend on the arguments only.
///
/// # Errors
/// An internal error if it can't be written.
pub fn archive(member: &str, object: &[u8], target: &Target) -> Result<Vec<u8>> {
    let kind = if target.format() == ObjectFormat::MachO { ArchiveKind::Darwin } else { ArchiveKind::Gnu };
    let members = [NewArchiveMember::new(object, &DEFAULT_OBJECT_READER, member.to_string())];
    let mut out = Cursor::new(Vec::new());
    write_archive_to_stream(&mut out, &members, kind, false, None)
        .map_err(|e| Error::internal("archive", e.to_string()))?;
    Ok(out.into_inner())
}
