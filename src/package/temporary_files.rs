//! Files and folders that exist only while something is made: each is gone when its value is dropped, and all of them when the
//! process is told to end.
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{Builder, NamedTempFile, TempDir};

/// Paths of all unfinished files and folders of this process.
static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A folder may get files while it is removed, from a linker or another thread; so often it is tried again.
const TRIES: usize = 8;

/// While this is held, nothing unfinished is made, kept or removed.
pub type CleanupLock = MutexGuard<'static, BTreeSet<PathBuf>>;

/// Waits until nobody else holds what is unfinished.
pub fn hold() -> CleanupLock {
    // A thread that panicked left whole paths in it.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all that is unfinished. Who holds the result until the process ends is sure that nothing more is made.
pub fn remove_all() -> CleanupLock {
    let mut all = hold();
    for path in std::mem::take(&mut *all) {
        if std::fs::remove_file(&path).is_err() {
            (0..TRIES).any(|_| std::fs::remove_dir_all(&path).is_ok() || !path.exists());
        }
    }
    all
}

/// A path that is unfinished as long as this lives.
#[derive(Debug)]
pub struct TemporaryPath(Option<PathBuf>);

impl TemporaryPath {
    /// Marks `path`, which was made while `all` was held.
    pub fn mark(path: &Path, all: &mut CleanupLock) -> TemporaryPath {
        // The process may go to another folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        all.insert(path.clone());
        TemporaryPath(Some(path))
    }
    /// Takes the mark away while `all` is held.
    fn finish(mut self, all: &mut CleanupLock) {
        self.0.take().map(|path| all.remove(&path));
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            hold().remove(&path);
        }
    }
}

/// A file under a name of its own. The file goes before its mark does.
#[derive(Debug)]
pub struct File {
    file: NamedTempFile,
    mark: TemporaryPath,
}

impl File {
    /// Makes it as `builder` says, in `folder`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new_in(builder: &Builder, folder: &Path) -> std::io::Result<File> {
        let mut all = hold();
        let file = builder.tempfile_in(folder)?;
        let mark = TemporaryPath::mark(file.path(), &mut all);
        Ok(File { file, mark })
    }
    /// Gives it the name `path`; it is finished then.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn persist(self, path: &Path) -> std::io::Result<()> {
        self.persist_held(path, &mut hold())
    }
    /// [`File::persist`] while the caller holds the list of unfinished files.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn persist_held(self, path: &Path, all: &mut CleanupLock) -> std::io::Result<()> {
        let kept = self.file.persist(path).map(drop).map_err(|e| e.error);
        self.mark.finish(all);
        kept
    }
}

impl Deref for File {
    type Target = NamedTempFile;
    fn deref(&self) -> &NamedTempFile {
        &self.file
    }
}

impl DerefMut for File {
    fn deref_mut(&mut self) -> &mut NamedTempFile {
        &mut self.file
    }
}

/// A folder under a name of its own.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    _mark: TemporaryPath,
}

impl Folder {
    /// Makes it where the system has such folders.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new() -> std::io::Result<Folder> {
        Folder::new_in(&std::env::temp_dir())
    }
    /// Makes it in `above`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn new_in(above: &Path) -> std::io::Result<Folder> {
        let mut all = hold();
        let folder = Builder::new().prefix(".tfaot-").tempdir_in(above)?;
        let _mark = TemporaryPath::mark(folder.path(), &mut all);
        Ok(Folder { folder, _mark })
    }
    /// The path of the temporary file.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
