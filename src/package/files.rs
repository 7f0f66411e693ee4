//! Atomic output: all files of a compilation are written, or none.
use crate::diag::{Code, Error, Result};
use crate::util::pieces::Content;
use std::path::{Path, PathBuf};

use super::temporary_files::{self, TemporaryPath};

/// Writes every `(file name, content)` into `dir`, which is created if it is missing.
///
/// Each file has a temporary name until all are complete.
///
/// # Errors
/// `Code::Io`; in this case no file remains, nor a created folder.
pub fn write_all(dir: &Path, files: &[(String, impl Content)]) -> Result<Vec<PathBuf>> {
    write_all_while_checking(dir, files, || true).map(Option::unwrap_or_default)
}

/// [`write_all`] with a check that runs concurrently with the writing: if `sound` returns false, no file remains and the result is
/// `None`.
///
/// # Errors
/// As [`write_all`].
pub fn write_all_while_checking(
    dir: &Path,
    files: &[(String, impl Content)],
    sound: impl FnOnce() -> bool + Send,
) -> Result<Option<Vec<PathBuf>>> {
    let (made, mark) = make_dir(dir)?;
    let (sound, ready) = std::thread::scope(|scope| {
        let sound = scope.spawn(sound);
        let ready = temporary(dir, files);
        (sound.join().unwrap_or(false), ready)
    });
    let done = ready.and_then(|ready| if sound { named(ready).map(Some) } else { Ok(None) });
    // a folder that holds its files is finished
    drop(mark);
    if !matches!(done, Ok(Some(_)))
        && let Some(first) = &made
    {
        // only folders created by this call are removed; they hold nothing but its own files
        let _ = std::fs::remove_dir_all(first);
    }
    done
}

/// Writes all files under temporary names, and returns each with its final path.
fn temporary(dir: &Path, files: &[(String, impl Content)]) -> Result<Vec<(temporary_files::TemporaryFile, PathBuf)>> {
    let mut ready = Vec::new();
    for (name, content) in files {
        let path = dir.join(name);
        let mut temp = temporary_file_beside(&path)?;
        content.write_to(temp.as_file_mut()).map_err(|e| unwritten(&path, &e))?;
        ready.push((temp, path));
    }
    Ok(ready)
}

/// Gives temporary files their final names, all of them or none. A handler that ends the process waits until this is done.
fn named(ready: Vec<(temporary_files::TemporaryFile, PathBuf)>) -> Result<Vec<PathBuf>> {
    let (mut done, mut left, mut failed) = (Vec::new(), Vec::new(), None);
    let mut all = temporary_files::lock_temporary_paths();
    for (temp, path) in ready {
        if failed.is_some() {
            left.push(temp);
            continue;
        }
        let fresh = !path.exists();
        // after an exchange, the temporary file is the previous one
        if exchanged(temp.path(), &path) {
            left.push(temp);
        } else if let Err(e) = temp.persist_locked(&path, &mut all) {
            failed = Some(unwritten(&path, &e));
            continue;
        }
        done.push((path, fresh));
    }
    // the lock keeps temporary files from being removed meanwhile
    drop(all);
    drop(left);
    let Some(error) = failed else { return Ok(done.into_iter().map(|(path, _)| path).collect()) };
    for (path, _) in done.iter().filter(|(_, fresh)| *fresh) {
        let _ = std::fs::remove_file(path);
    }
    Err(error)
}

/// Creates `dir` and its missing parents; returns the topmost created folder, marked as unfinished.
fn make_dir(dir: &Path) -> Result<(Option<PathBuf>, Option<TemporaryPath>)> {
    let mut all = temporary_files::lock_temporary_paths();
    let missing = |p: &&Path| !p.as_os_str().is_empty() && !p.exists();
    let first = dir.ancestors().take_while(missing).last().map(Path::to_path_buf);
    std::fs::create_dir_all(dir).map_err(|e| unwritten(dir, &e))?;
    let mark = first.as_ref().map(|first| TemporaryPath::register(first, &mut all));
    Ok((first, mark))
}

/// A temporary file in the folder of `path`, with the permissions of a new file.
///
/// # Errors
/// `Code::Io`.
pub fn temporary_file_beside(path: &Path) -> Result<temporary_files::TemporaryFile> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tfaot-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    temporary_files::TemporaryFile::new_in(&builder, dir).map_err(|e| unwritten(path, &e))
}

/// Renames a finished temporary file to `path`.
///
/// # Errors
/// `Code::Io`; the temporary file is removed in this case.
pub fn rename_to_final(temp: temporary_files::TemporaryFile, path: &Path) -> Result<()> {
    temp.persist(path).map_err(|e| unwritten(path, &e))
}

/// Swaps the names of two existing files atomically; false if the system has no such call. Some file systems (ext4) flush a file that
/// is renamed over another one to disk first, which takes longer than a compilation; the output can be regenerated, so this is avoided.
#[cfg(target_os = "linux")]
fn exchanged(temp: &Path, path: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    path.is_file() && !path.is_symlink() && renameat_with(CWD, temp, CWD, path, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchanged(_temp: &Path, _path: &Path) -> bool {
    false
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::user(Code::Io, format!("`{}` could not be written: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let out = dir.path().join("a/b");
        let files = [("x".to_string(), vec![1]), ("no/such".to_string(), vec![2])];
        assert!(write_all(&out, &files).is_err());
        assert!(!dir.path().join("a").exists());
        for content in [vec![1], vec![2, 3]] {
            let file = [("x".to_string(), content.clone())];
            assert_eq!(write_all(&out, &file).expect("written"), [out.join("x")]);
            assert_eq!(std::fs::read(out.join("x")).expect("read"), content);
            assert_eq!(std::fs::read_dir(&out).expect("a folder").count(), 1, "nothing stays of what was there");
        }
        assert!(write_all(&out, &files).is_err());
        assert_eq!(std::fs::read_dir(&out).expect("a folder").count(), 1);
    }
}
