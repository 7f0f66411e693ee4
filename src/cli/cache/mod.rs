//! `--cache DIR`: keeps the files of a compilation under a hash of everything on which they depend: the executable of the compiler, LLVM's
//! version, all options but paths, and the content of every file that import would read (`import/inputs.rs`).
//!
//! An entry ([`entry`]) is one file that is written under a temporary name and renamed when it is complete. While the system copies
//! its files to the output folder, another thread hashes them, and the copies are renamed if the hashes are correct. An entry that can't be
//! read or has a wrong hash is replaced by a new compilation; problems with the cache are warnings, never errors. Output files are not
//! hard links to an entry, because changing an object in place would change the cache.
mod digest;
mod entry;

pub use entry::{CacheEntry, CacheHit};

use super::args::{CacheArgs, CompileArgs};
use super::out;
use crate::codegen;
use crate::diag::{Result, io_error};
use crate::import;
use crate::import::mmap::map_file;
use crate::package::files;
use crate::target::CodeRequest;
use bytes::Bytes;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Age above which a file with a temporary name is considered the remainder of a killed process.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// The location of one compilation in the cache.
pub struct CompileCache {
    folder: PathBuf,
    path: PathBuf,
    limit_bytes: u64,
}

impl CompileCache {
    /// The location for the compilation that `args` request; `None` without a cache, and if the result depends on input that
    /// can't be read twice (standard input) or is more than files (flags that write dumps).
    pub fn for_compile(args: &CompileArgs, requests: &[CodeRequest]) -> Option<CompileCache> {
        let named = std::env::var_os("TFAOT_CACHE").filter(|v| !v.is_empty() && !args.cache.no_cache);
        let folder = args.cache.cache.clone().or_else(|| named.map(PathBuf::from))?;
        let dumps = args.xla.xla_flags.is_some() || std::env::var_os("XLA_FLAGS").is_some_and(|v| !v.is_empty());
        // measurements differ each time, and a call file names further files
        if dumps || args.tune.is_some() || args.self_test.is_some() {
            return None;
        }
        // the compilation itself reports a graph that can't be read
        let key = key(args, requests).ok().flatten()?;
        let path = folder.join(format!("{key}.entry"));
        Some(CompileCache { folder, path, limit_bytes: args.cache.cache_limit.saturating_mul(1 << 20) })
    }

    /// The cached entry, if its description is intact; [`CompileCache::write`] verifies the files.
    pub fn find(&self) -> Option<CacheHit> {
        if !self.path.exists() {
            return None;
        }
        entry::read(&self.path).inspect_err(|why| self.warn(why)).ok()
    }

    /// Writes the files of `found` into `dir`; `None`, and no files, if one is damaged.
    pub fn write(&self, found: &CacheHit, dir: &Path) -> Result<Option<Vec<PathBuf>>> {
        let written = files::write_all_while_checking(dir, &found.files, || found.is_whole())?;
        match &written {
            // the modification time records the last use; a read-only cache still works
            Some(_) => {
                drop(File::options().append(true).open(&self.path).and_then(|f| f.set_modified(SystemTime::now())))
            }
            None => self.warn("a file has another hash"),
        }
        Ok(written)
    }

    fn warn(&self, why: &str) {
        out::note(format_args!("warning: `{}` is damaged ({why}) and is made anew", self.path.display()));
    }

    /// Adds an entry, and removes the least recently used ones beyond the size limit.
    pub fn keep(&self, entry: &CacheEntry) {
        let bytes: u64 = entry.files.iter().map(|f| f.1.len()).sum();
        if bytes > self.limit_bytes {
            return out::note(format_args!(
                "warning: {bytes} bytes are more than the cache may hold; --cache-limit MIB sets how much that is"
            ));
        }
        let kept = std::fs::create_dir_all(&self.folder)
            .map_err(|e| io_error("written", &self.folder, &e))
            .and_then(|()| entry::write(entry, &self.path))
            .and_then(|()| self.trim());
        if let Err(e) = kept {
            out::note("warning: nothing is kept for later");
            out::error(e);
        }
    }

    fn trim(&self) -> Result<()> {
        let unread = |e: std::io::Error| io_error("read", &self.folder, &e);
        let (mut all, now) = (Vec::new(), SystemTime::now());
        for file in std::fs::read_dir(&self.folder).map_err(unread)? {
            let file = file.map_err(unread)?;
            // a file that disappeared meanwhile was removed by another process
            let Ok(meta) = file.metadata() else { continue };
            let used = meta.modified().map_err(unread)?;
            let name = file.file_name().to_string_lossy().into_owned();
            let abandoned = name.starts_with(".tfaot-") && now.duration_since(used).is_ok_and(|age| age > ABANDONED);
            if abandoned {
                let _ = std::fs::remove_file(file.path());
            } else if name.ends_with(".entry") {
                all.push((used, file.path(), meta.len()));
            }
        }
        all.sort();
        let mut total: u64 = all.iter().map(|e| e.2).sum();
        for (_, path, bytes) in all {
            if total <= self.limit_bytes || path == self.path {
                continue;
            }
            let _ = std::fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// A hash of everything on which the files of a compilation depend; `None` if it can't be read twice.
fn key(args: &CompileArgs, requests: &[CodeRequest]) -> Result<Option<String>> {
    let inputs = import::model_files(&args.graph.graph, args.graph.format.as_deref())?;
    let (Ok(exe), false) = (std::env::current_exe(), inputs.is_empty()) else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(entry::MAGIC);
    // the executable itself, because it has no version between releases
    add(&digest::hash_pieces([&content(&exe)?[..]]));
    add(format!("{:?} {requests:?}", codegen::llvm_version()).as_bytes());
    // all options but input and output paths
    let mut options = args.clone();
    (options.out, options.graph.graph, options.graph.config) = (PathBuf::new(), PathBuf::new(), None);
    // the content of tuning and plan files is part of the requests
    (options.target.tuning, options.target.plan) = (None, None);
    (options.cache, options.graph.quiet) = (CacheArgs::default(), false);
    add(format!("{options:?}").as_bytes());
    add(args.graph.graph.file_name().unwrap_or_default().as_encoded_bytes());
    for path in args.graph.config.iter() {
        add(&digest::hash_pieces([&content(path)?[..]]));
    }
    add(&(inputs.len() as u64).to_le_bytes());
    let folder = if args.graph.graph.is_dir() { Some(args.graph.graph.as_path()) } else { args.graph.graph.parent() };
    for path in &inputs {
        let name = folder.and_then(|f| path.strip_prefix(f).ok()).unwrap_or(path);
        add(name.as_os_str().as_encoded_bytes());
        add(&digest::hash_pieces([&content(path)?[..]]));
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

fn content(path: &Path) -> Result<Bytes> {
    let unread = |e: std::io::Error| io_error("read", path, &e);
    let file = File::open(path).map_err(unread)?;
    // an empty file can't be mapped
    if file.metadata().map_err(unread)?.len() == 0 { Ok(Bytes::new()) } else { map_file(&file).map_err(unread) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::pieces::Pieces;

    fn cache(folder: &Path, name: &str, limit_bytes: u64) -> CompileCache {
        CompileCache { folder: folder.to_path_buf(), path: folder.join(format!("{name}.entry")), limit_bytes }
    }

    fn entry(bytes: usize) -> CacheEntry {
        let files = vec![("m.o".to_string(), vec![7u8; bytes].into()), ("m.h".to_string(), Pieces::default())];
        CacheEntry { notes: vec!["fed".to_string()], needs: vec!["f".to_string()], files }
    }

    // The files that the cache provides, if any; nothing else is in the folder.
    fn given(cache: &CompileCache) -> Option<Vec<Vec<u8>>> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let found = cache.find()?;
        assert_eq!(
            (found.notes.as_slice(), found.needs.as_slice()),
            (&["fed".to_string()][..], &["f".to_string()][..])
        );
        let Some(written) = cache.write(&found, &out).expect("written") else {
            assert!(!out.exists());
            return None;
        };
        assert_eq!(written, [out.join("m.o"), out.join("m.h")]);
        Some(written.iter().map(|path| std::fs::read(path).expect("read")).collect())
    }

    #[test]
    fn what_is_kept_is_found_unless_it_is_damaged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = cache(folder.path(), "a", 1 << 20);
        let whole = vec![vec![7u8; 10_000], vec![]];
        assert!(cache.find().is_none());
        cache.keep(&entry(10_000));
        assert_eq!(given(&cache), Some(whole.clone()));
        let bytes = std::fs::read(&cache.path).expect("read");
        for cut in [1, 5, 20, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&cache.path, &bytes[..cut]).expect("written");
            assert!(given(&cache).is_none(), "cut after {cut} bytes");
        }
        for at in [0, 16, 40, 4096, bytes.len() - 5000] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            std::fs::write(&cache.path, bytes).expect("written");
            assert!(given(&cache).is_none(), "byte {at} changed");
        }
        cache.keep(&entry(10_000));
        assert_eq!(given(&cache), Some(whole));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [a, b, c] = ["a", "b", "c"].map(|name| cache(folder.path(), name, 18_000));
        let since = |cache: &CompileCache, seconds| {
            let file = File::options().append(true).open(&cache.path).expect("there");
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("set");
        };
        a.keep(&entry(1000));
        b.keep(&entry(1000));
        since(&a, 200);
        since(&b, 100);
        assert!(given(&a).is_some(), "a use makes it the younger one");
        c.keep(&entry(1000));
        assert!(a.find().is_some() && b.find().is_none() && c.find().is_some());
        c.keep(&entry(20_000));
        assert_eq!(given(&c), Some(vec![vec![7; 1000], vec![]]), "what has no room is not kept");
    }
}
