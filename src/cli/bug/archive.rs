//! The archive of a bug report: a gzipped tar whose bytes are a function of its content.
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use std::fs::File;
use std::io::{Read, Result, Write};
use std::path::{Path, PathBuf};

/// Modification time of all files, 2000-01-01 in seconds since 1970, so that archives of equal content are equal.
const TIME: u64 = 946_684_800;

/// The content of a packed file.
#[derive(Clone, Debug)]
pub enum MemberContent {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// The content of the file at this path.
    File(PathBuf),
}

/// A file in the archive.
#[derive(Clone, Debug)]
pub struct ArchiveMember {
    /// The path in the archive's folder.
    pub name: String,
    pub content: MemberContent,
}

impl ArchiveMember {
    /// A file with content in memory.
    pub fn bytes(name: impl Into<String>, bytes: Vec<u8>) -> ArchiveMember {
        ArchiveMember { name: name.into(), content: MemberContent::Bytes(bytes) }
    }
    /// A copy of an existing file.
    pub fn file(name: impl Into<String>, source: PathBuf) -> ArchiveMember {
        ArchiveMember { name: name.into(), content: MemberContent::File(source) }
    }
}

/// Writes `entries` below the folder `top`, sorted by name.
pub fn write(to: &mut File, top: &str, entries: &[ArchiveMember]) -> Result<()> {
    let mut sorted: Vec<&ArchiveMember> = entries.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut tar = tar::Builder::new(GzEncoder::new(to, Compression::default()));
    for entry in sorted {
        let path = format!("{top}/{}", entry.name);
        let mode = if entry.name == super::SCRIPT { 0o755 } else { 0o644 };
        match &entry.content {
            MemberContent::Bytes(bytes) => append(&mut tar, &path, mode, bytes.len() as u64, bytes.as_slice())?,
            MemberContent::File(source) => {
                let file = File::open(source)?;
                let size = file.metadata()?.len();
                append(&mut tar, &path, mode, size, file.take(size))?;
            }
        }
    }
    tar.into_inner()?.finish()?.flush()
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, mode: u32, size: u64, content: impl Read) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(TIME);
    tar.append_data(&mut header, path, content)
}

/// Unpacks the archive at `path` into `folder`.
pub fn unpack(path: &Path, folder: &Path) -> Result<()> {
    tar::Archive::new(GzDecoder::new(File::open(path)?)).unpack(folder)
}
