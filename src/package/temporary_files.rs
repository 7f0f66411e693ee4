//! Temporary files and folders: each is removed when its value is dropped, and all of them when a signal ends the process.
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{Builder, NamedTempFile, TempDir};

/// Paths of all temporary files and folders of this process.
static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Number of attempts to remove a folder, into which a linker or another thread may write meanwhile.
const TRIES: usize = 8;

/// Lock under which temporary paths are created, made permanent and removed.
pub type CleanupLock = MutexGuard<'static, BTreeSet<PathBuf>>;

/// Acquires the lock on all temporary paths.
pub fn lock_temporary_paths() -> CleanupLock {
    // The set stays consistent even if a thread panicked while holding the lock.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all temporary files and folders. A caller that keeps the lock until the process ends prevents new ones.
pub fn remove_all() -> CleanupLock {
    let mut all = lock_temporary_paths();
    for path in std::mem::take(&mut *all) {
        if std::fs::remove_file(&path).is_err() {
            (0..TRIES).any(|_| std::fs::remove_dir_all(&path).is_ok() || !path.exists());
        }
    }
    all
}

/// Registration of a path as temporary, until it is dropped.
#[derive(Debug)]
pub struct TemporaryPath(Option<PathBuf>);

impl TemporaryPath {
    /// Registers `path`, which was created under the lock `all`.
    pub fn register(path: &Path, all: &mut CleanupLock) -> TemporaryPath {
        // The working directory may change.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        all.insert(path.clone());
        TemporaryPath(Some(path))
    }
    /// Unregisters the path, under the lock `all`.
    fn finish(mut self, all: &mut CleanupLock) {
        self.0.take().map(|path| all.remove(&path));
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            lock_temporary_paths().remove(&path);
        }
    }
}

/// A temporary file. The file is removed before its registration.
#[derive(Debug)]
pub struct TemporaryFile {
    file: NamedTempFile,
    mark: TemporaryPath,
}

impl TemporaryFile {
    /// Creates a file in `folder` by `builder`.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn new_in(builder: &Builder, folder: &Path) -> std::io::Result<TemporaryFile> {
        let mut all = lock_temporary_paths();
        let file = builder.tempfile_in(folder)?;
        let mark = TemporaryPath::register(file.path(), &mut all);
        Ok(TemporaryFile { file, mark })
    }
    /// Renames the file to `path`, which makes it permanent.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn persist(self, path: &Path) -> std::io::Result<()> {
        self.persist_locked(path, &mut lock_temporary_paths())
    }
    /// [`TemporaryFile::persist`] for a caller that holds the lock `all`.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn persist_locked(self, path: &Path, all: &mut CleanupLock) -> std::io::Result<()> {
        let kept = self.file.persist(path).map(drop).map_err(|e| e.error);
        self.mark.finish(all);
        kept
    }
}

impl Deref for TemporaryFile {
    type Target = NamedTempFile;
    fn deref(&self) -> &NamedTempFile {
        &self.file
    }
}

impl DerefMut for TemporaryFile {
    fn deref_mut(&mut self) -> &mut NamedTempFile {
        &mut self.file
    }
}

/// A temporary folder.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    _mark: TemporaryPath,
}

impl TemporaryFolder {
    /// Creates a folder in the system's temporary directory.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn new() -> std::io::Result<TemporaryFolder> {
        TemporaryFolder::new_in(&std::env::temp_dir())
    }
    /// Creates a folder in `above`.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn new_in(above: &Path) -> std::io::Result<TemporaryFolder> {
        let mut all = lock_temporary_paths();
        let folder = Builder::new().prefix(".tfaot-").tempdir_in(above)?;
        let _mark = TemporaryPath::register(folder.path(), &mut all);
        Ok(TemporaryFolder { folder, _mark })
    }
    /// The path of the temporary folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
