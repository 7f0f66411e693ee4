//! `--cache DIR`: the files of a compile, kept under a hash of all that they depend on.
//!
//! An entry is one file: a line that says what it is, the length of a description, the description (JSON: notes, names and
//! sizes of files), the files, and a hash of all of it. It gets its name when it is whole. What can't be read or has another
//! hash is compiled again and replaced; what goes wrong with the cache is a warning, never an error.
use super::args::{CacheArgs, CompileArgs};
use super::out;
use crate::codegen;
use crate::diag::{Code, Error, Result};
use crate::import;
use crate::import::mmap::map_file;
use crate::package::files;
use crate::target::Target;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8] = b"tfaot cache 1\n";
const HASH_BYTES: usize = 32;
/// After this, a file without its final name is what a process left that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// What a compile printed and wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// What was assumed.
    pub notes: Vec<String>,
    /// Names and contents.
    pub files: Vec<(String, Bytes)>,
}

/// The place of one compile in the cache.
pub struct Cache {
    folder: PathBuf,
    path: PathBuf,
    limit_bytes: u64,
}

/// The description of an entry.
#[derive(Serialize, Deserialize)]
struct Head {
    notes: Vec<String>,
    files: Vec<(String, u64)>,
}

impl Cache {
    /// The place of the compile that `args` ask for; nothing where there is no cache, and where the outcome depends on more
    /// than can be read twice (standard input, flags that write dumps).
    pub fn of(args: &CompileArgs, targets: &[Target]) -> Option<Cache> {
        let named = std::env::var_os("TFAOT_CACHE").filter(|v| !v.is_empty() && !args.cache.no_cache);
        let folder = args.cache.cache.clone().or_else(|| named.map(PathBuf::from))?;
        let dumps = args.xla.xla_flags.is_some() || std::env::var_os("XLA_FLAGS").is_some_and(|v| !v.is_empty());
        // what is measured is another thing each time
        if dumps || args.tune.is_some() {
            return None;
        }
        // a graph that can't be read is told by the compile itself
        let key = key(args, targets).ok().flatten()?;
        let path = folder.join(format!("{key}.entry"));
        Some(Cache { folder, path, limit_bytes: args.cache.cache_limit.saturating_mul(1 << 20) })
    }

    /// What was kept, if it is whole.
    pub fn find(&self) -> Option<Entry> {
        let file = File::open(&self.path).ok()?;
        let found = map_file(&file).map_err(|e| e.to_string()).and_then(|bytes| unpack(&bytes));
        match found {
            Ok(entry) => {
                // the time of the last use; a cache that can't be written to still serves
                let _ = File::options().append(true).open(&self.path).and_then(|f| f.set_modified(SystemTime::now()));
                Some(entry)
            }
            Err(why) => {
                out::note(format_args!("warning: `{}` is damaged ({why}) and is made anew", self.path.display()));
                None
            }
        }
    }

    /// Keeps an entry, and removes those that were not used for longest where there is no room for all.
    pub fn keep(&self, entry: &Entry) {
        let bytes: u64 = entry.files.iter().map(|f| f.1.len() as u64).sum();
        if bytes > self.limit_bytes {
            return out::note(format_args!(
                "warning: {bytes} bytes are more than the cache may hold; --cache-limit MIB sets how much that is"
            ));
        }
        let kept = std::fs::create_dir_all(&self.folder)
            .map_err(|e| out::io_error("written", &self.folder, &e))
            .and_then(|()| pack(entry, &self.path))
            .and_then(|()| self.trim());
        if let Err(e) = kept {
            out::note("warning: nothing is kept for later");
            out::error(e);
        }
    }

    fn trim(&self) -> Result<()> {
        let unread = |e: std::io::Error| out::io_error("read", &self.folder, &e);
        let (mut all, now) = (Vec::new(), SystemTime::now());
        for file in std::fs::read_dir(&self.folder).map_err(unread)? {
            let file = file.map_err(unread)?;
            // what is gone meanwhile, another process removed
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

/// A hash of all that the files of a compile depend on; nothing where that can't be read twice.
fn key(args: &CompileArgs, targets: &[Target]) -> Result<Option<String>> {
    let inputs = import::inputs(&args.graph.graph, args.graph.format.as_deref())?;
    let (Ok(exe), false) = (std::env::current_exe(), inputs.is_empty()) else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(MAGIC);
    // the compiler itself: it has no version between releases
    add(&content(&exe)?);
    add(format!("{:?} {targets:?}", codegen::llvm_version()).as_bytes());
    // all options but those that say where to read and write
    let mut options = args.clone();
    (options.out, options.graph.graph, options.graph.config) = (PathBuf::new(), PathBuf::new(), None);
    // what the file of tuned choices says stands in the targets
    (options.cache, options.target.tuning, options.graph.quiet) = (CacheArgs::default(), None, false);
    add(format!("{options:?}").as_bytes());
    add(args.graph.graph.file_name().unwrap_or_default().as_encoded_bytes());
    for path in args.graph.config.iter() {
        add(&content(path)?);
    }
    add(&(inputs.len() as u64).to_le_bytes());
    let folder = if args.graph.graph.is_dir() { Some(args.graph.graph.as_path()) } else { args.graph.graph.parent() };
    for path in &inputs {
        let name = folder.and_then(|f| path.strip_prefix(f).ok()).unwrap_or(path);
        add(name.as_os_str().as_encoded_bytes());
        add(&content(path)?);
    }
    Ok(Some(hasher.finalize().to_hex().to_string()))
}

fn content(path: &Path) -> Result<Bytes> {
    let unread = |e: std::io::Error| out::io_error("read", path, &e);
    let file = File::open(path).map_err(unread)?;
    // an empty file can't be mapped
    if file.metadata().map_err(unread)?.len() == 0 { Ok(Bytes::new()) } else { map_file(&file).map_err(unread) }
}

/// Writes an entry, whole or not at all.
fn pack(entry: &Entry, path: &Path) -> Result<()> {
    let files = entry.files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
    let head = serde_json::to_vec(&Head { notes: entry.notes.clone(), files })
        .map_err(|e| Error::internal("cache", e.to_string()))?;
    let length = (head.len() as u64).to_le_bytes();
    let parts = [MAGIC, &length, &head].into_iter().chain(entry.files.iter().map(|f| &f.1[..]));
    let mut hasher = blake3::Hasher::new();
    let mut temp = files::temp_beside(path)?;
    let unwritten =
        |e: std::io::Error| Error::user(Code::Io, format!("`{}` could not be written: {e}", path.display()));
    for part in parts {
        hasher.update(part);
        temp.write_all(part).map_err(unwritten)?;
    }
    temp.write_all(hasher.finalize().as_bytes()).map_err(unwritten)?;
    files::keep(temp, path)
}

/// The entry in `bytes`; what is wrong with them where they hold none.
fn unpack(bytes: &Bytes) -> std::result::Result<Entry, String> {
    let whole = bytes.len().checked_sub(HASH_BYTES).ok_or("it is too short")?;
    if blake3::hash(&bytes[..whole]).as_bytes()[..] != bytes[whole..] {
        return Err("its hash is another".to_string());
    }
    let rest = bytes[..whole].strip_prefix(MAGIC).ok_or("it is of another kind")?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or("it has no description")?;
    let head = usize::try_from(u64::from_le_bytes(*length)).ok().and_then(|n| rest.get(..n));
    let head = head.ok_or("its description is cut off")?;
    let told: Head = serde_json::from_slice(head).map_err(|e| e.to_string())?;
    let mut at = MAGIC.len() + length.len() + head.len();
    let mut entry = Entry { notes: told.notes, files: Vec::new() };
    for (name, size) in told.files {
        let mut parts = Path::new(&name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(format!("`{name}` is no name of a file"));
        }
        let end = usize::try_from(size).ok().and_then(|n| at.checked_add(n)).filter(|&end| end <= whole);
        let end = end.ok_or("a file is cut off")?;
        entry.files.push((name, bytes.slice(at..end)));
        at = end;
    }
    if at == whole { Ok(entry) } else { Err("it has more than its files".to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(folder: &Path, name: &str, limit_bytes: u64) -> Cache {
        Cache { folder: folder.to_path_buf(), path: folder.join(format!("{name}.entry")), limit_bytes }
    }

    fn entry(bytes: usize) -> Entry {
        let files = vec![("m.o".to_string(), vec![7u8; bytes].into()), ("m.h".to_string(), Bytes::new())];
        Entry { notes: vec!["fed".to_string()], files }
    }

    #[test]
    fn what_is_kept_is_found_unless_it_is_damaged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = cache(folder.path(), "a", 1 << 20);
        assert!(cache.find().is_none());
        cache.keep(&entry(1000));
        assert_eq!(cache.find(), Some(entry(1000)));
        let whole = std::fs::read(&cache.path).expect("read");
        for cut in [0, 5, 20, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&cache.path, &whole[..cut]).expect("written");
            assert!(cache.find().is_none(), "cut after {cut} bytes");
        }
        for at in [0, 16, 40, 500, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&cache.path, bytes).expect("written");
            assert!(cache.find().is_none(), "byte {at} changed");
        }
        cache.keep(&entry(1000));
        assert_eq!(cache.find(), Some(entry(1000)));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [a, b, c] = ["a", "b", "c"].map(|name| cache(folder.path(), name, 2500));
        let since = |cache: &Cache, seconds| {
            let file = File::options().append(true).open(&cache.path).expect("there");
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("set");
        };
        a.keep(&entry(1000));
        b.keep(&entry(1000));
        since(&a, 200);
        since(&b, 100);
        assert!(a.find().is_some(), "a use makes it the younger one");
        c.keep(&entry(1000));
        assert!(a.find().is_some() && b.find().is_none() && c.find().is_some());
        c.keep(&entry(5000));
        assert_eq!(c.find(), Some(entry(1000)), "what has no room is not kept");
    }
}
