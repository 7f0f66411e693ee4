//! All files of a compile, or none.
use crate::diag::{Code, Error, Result};
use crate::util::pieces::Content;
use std::path::{Path, PathBuf};

use super::temporary_files::{self, TemporaryPath};

/// Writes every `(file name, content)` into `dir`, which is made if it is missing.
///
/// Each file has a temporary name until all are written.
///
/// # Errors
/// `Code::Io`; then no file stays, nor a folder that was made.
pub fn write_all(dir: &Path, files: &[(String, impl Content)]) -> Result<Vec<PathBuf>> {
    write_all_if(dir, files, || true).map(Option::unwrap_or_default)
}

/// [`write_all`] with a check that runs while the files are written: where `sound` returns false, no file stays and nothing is
/// returned.
///
/// # Errors
/// As [`write_all`].
pub fn write_all_if(
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
        // only folders that this call made lie below, and they are empty but for what it wrote
        let _ = std::fs::remove_dir_all(first);
    }
    done
}

/// Writes all files under temporary names; each with the name that it is to have.
fn temporary(dir: &Path, files: &[(String, impl Content)]) -> Result<Vec<(temporary_files::File, PathBuf)>> {
    let mut ready = Vec::new();
    for (name, content) in files {
        let path = dir.join(name);
        let mut temp = temp_beside(&path)?;
        content.write_to(temp.as_file_mut()).map_err(|e| unwritten(&path, &e))?;
        ready.push((temp, path));
    }
    Ok(ready)
}

/// Gives temporary files their names, or none of them. Who ends the process waits for that.
fn named(ready: Vec<(temporary_files::File, PathBuf)>) -> Result<Vec<PathBuf>> {
    let (mut done, mut left, mut failed) = (Vec::new(), Vec::new(), None);
    let mut all = temporary_files::hold();
    for (temp, path) in ready {
        if failed.is_some() {
            left.push(temp);
            continue;
        }
        let fresh = !path.exists();
        // after an exchange, what is temporary is the file that was there
        if exchanged(temp.path(), &path) {
            left.push(temp);
        } else if let Err(e) = temp.persist_held(&path, &mut all) {
            failed = Some(unwritten(&path, &e));
            continue;
        }
        done.push((path, fresh));
    }
    // what is temporary is not removed while it is held
    drop(all);
    drop(left);
    let Some(error) = failed else { return Ok(done.into_iter().map(|(path, _)| path).collect()) };
    for (path, _) in done.iter().filter(|(_, fresh)| *fresh) {
        let _ = std::fs::remove_file(path);
    }
    Err(error)
}

/// Makes `dir` and what is missing above it; returns the topmost folder that was made, which is unfinished.
fn make_dir(dir: &Path) -> Result<(Option<PathBuf>, Option<TemporaryPath>)> {
    let mut all = temporary_files::hold();
    let missing = |p: &&Path| !p.as_os_str().is_empty() && !p.exists();
    let first = dir.ancestors().take_while(missing).last().map(Path::to_path_buf);
    std::fs::create_dir_all(dir).map_err(|e| unwritten(dir, &e))?;
    let mark = first.as_ref().map(|first| TemporaryPath::mark(first, &mut all));
    Ok((first, mark))
}

/// A temporary file in the folder of `path`, with the permissions that a new file has.
///
/// # Errors
/// `Code::Io`.
pub fn temp_beside(path: &Path) -> Result<temporary_files::File> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tfaot-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    temporary_files::File::new_in(&builder, dir).map_err(|e| unwritten(path, &e))
}

/// Gives a finished temporary file its name.
///
/// # Errors
/// `Code::Io`; the temporary file is gone then.
pub fn keep(temp: temporary_files::File, path: &Path) -> Result<()> {
    temp.persist(path).map_err(|e| unwritten(path, &e))
}

/// Lets two files that are there change their names, at once; false where the system has no such call. A file that is renamed
/// over another one is written to the disk first by some file systems (ext4), which takes longer than to make it; what a compile
/// writes can be made again.
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
