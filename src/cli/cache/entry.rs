//! A cache entry in one file: a magic line, the length of the description, the description (JSON: notes, functions, and names, sizes and
//! hashes of files), a hash of all that, and the files. Each file begins at a page boundary, so that file systems that can share pages
//! between files do so.
use super::digest::{self, Digest};
use crate::diag::{Code, Error, Result};
use crate::import::mmap::map_file;
use crate::package::files;
use crate::util::pieces::{Content, Pieces};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path};

/// Magic line of an entry; the number changes with the format.
pub const MAGIC: &[u8] = b"tfaot cache 3\n";
const PAGE_BYTES: u64 = 4096;

/// The notes and files of a compilation, for the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CacheEntry {
    /// Assumptions that the compilation made where the caller gave no choice, one sentence each.
    pub notes: Vec<String>,
    /// Functions that the object calls and its user must define.
    pub needs: Vec<String>,
    /// Names and contents of the files.
    pub files: Vec<(String, Pieces)>,
}

/// An entry read from the cache, whose files are not yet verified.
pub struct CacheHit {
    /// Assumptions that the compilation made where the caller gave no choice, one sentence each.
    pub notes: Vec<String>,
    /// Functions that the object calls and its user must define.
    pub needs: Vec<String>,
    /// The files by name.
    pub files: Vec<(String, CachedFile)>,
}

/// A file within an entry.
pub struct CachedFile {
    entry: File,
    at: u64,
    bytes: Bytes,
    hash: Digest,
}

/// The description of an entry.
#[derive(Serialize, Deserialize)]
struct Head {
    notes: Vec<String>,
    needs: Vec<String>,
    files: Vec<(String, u64, Digest)>,
}

/// Writes an entry atomically.
pub fn write(entry: &CacheEntry, path: &Path) -> Result<()> {
    let unwritten = |e: io::Error| Error::user(Code::Io, format!("`{}` could not be written: {e}", path.display()));
    let described = |(name, content): &(String, Pieces)| {
        (name.clone(), content.len(), digest::hash_pieces(content.iter().map(|piece| &piece[..])))
    };
    let head = Head {
        notes: entry.notes.clone(),
        needs: entry.needs.clone(),
        files: entry.files.iter().map(described).collect(),
    };
    let head = serde_json::to_vec(&head).map_err(|e| Error::internal("cache", e.to_string()))?;
    let mut start = [MAGIC, &(head.len() as u64).to_le_bytes(), &head].concat();
    start.extend(digest::hash_pieces([&start[..]]));
    let mut whole = Pieces::from(start);
    for (_, content) in &entry.files {
        whole.fill(whole.len().next_multiple_of(PAGE_BYTES));
        content.iter().for_each(|piece| whole.push(piece.clone()));
    }
    let mut temp = files::temporary_file_beside(path)?;
    whole.write_to(temp.as_file_mut()).map_err(unwritten)?;
    files::rename_to_final(temp, path)
}

/// Reads the entry at `path`, which exists.
///
/// Errors: a description of the damage.
pub fn read(path: &Path) -> std::result::Result<CacheHit, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let bytes = map_file(&file).map_err(|e| e.to_string())?;
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is of another kind")?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or("it has no description")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok();
    let (head, rest) = length.and_then(|n| rest.split_at_checked(n)).ok_or("its description is cut off")?;
    let (hash, rest) = rest.split_first_chunk::<{ digest::BYTES }>().ok_or("its description has no hash")?;
    let described = bytes.len() - rest.len() - digest::BYTES;
    if digest::hash_pieces([&bytes[..described]]) != *hash {
        return Err("its description has another hash".to_string());
    }
    let head: Head = serde_json::from_slice(head).map_err(|e| e.to_string())?;
    let mut end = described as u64 + digest::BYTES as u64;
    let mut files = Vec::new();
    for (name, size, hash) in head.files {
        let mut parts = Path::new(&name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(format!("`{name}` is no name of a file"));
        }
        let at = end.next_multiple_of(PAGE_BYTES);
        end = at.checked_add(size).filter(|&end| end <= bytes.len() as u64).ok_or("a file is cut off")?;
        let entry = file.try_clone().map_err(|e| e.to_string())?;
        files.push((name, CachedFile { entry, at, bytes: bytes.slice(at as usize..end as usize), hash }));
    }
    if end == bytes.len() as u64 {
        Ok(CacheHit { notes: head.notes, needs: head.needs, files })
    } else {
        Err("it has more than its files".to_string())
    }
}

impl CacheHit {
    /// Whether the hashes of all files are correct.
    pub fn is_whole(&self) -> bool {
        self.files.iter().all(|(_, part)| digest::hash_pieces([&part.bytes[..]]) == part.hash)
    }
}

impl Content for CachedFile {
    fn write_to(&self, out: &mut File) -> io::Result<()> {
        // copied from file to file, so that the system can share pages
        let mut entry = &self.entry;
        entry.seek(SeekFrom::Start(self.at))?;
        let size = self.bytes.len() as u64;
        if io::copy(&mut entry.take(size), out)? == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
