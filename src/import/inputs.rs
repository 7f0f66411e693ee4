//! The set of files from which a program is read.
use super::detect::{FileFormat, detect};
use super::read_file;
use crate::diag::{Code, Error, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Maximum depth of nested folders in a model.
const MOST_DEPTH: usize = 16;

/// All files that [`super::load`] may read for `path`, in an order independent of their location; empty for standard input and pipes,
/// which can't be read twice.
///
/// # Errors
/// `Io`; `TooLarge` for folders nested too deep; those of detecting the format.
pub fn model_files(path: &Path, format: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    if path.is_dir() {
        below(path, 0, &mut all)?;
        return Ok(all);
    }
    if path.as_os_str() == "-" || !path.is_file() {
        return Ok(all);
    }
    all.push(path.to_path_buf());
    let folder = path.parent().unwrap_or(Path::new(""));
    let bytes = read_file(path)?;
    let format = format.map_or_else(|| detect(&bytes), FileFormat::parse)?;
    match format {
        FileFormat::SavedModel | FileFormat::SavedModelText => {
            let variables = folder.join("variables");
            if variables.is_dir() {
                below(&variables, 0, &mut all)?;
            }
        }
        FileFormat::TfJs => all.extend(shards(&bytes).into_iter().map(|name| folder.join(name))),
        FileFormat::GraphDef
        | FileFormat::GraphDefText
        | FileFormat::MetaGraph
        | FileFormat::MetaGraphText
        | FileFormat::Module => {}
    }
    Ok(all)
}

/// The names of the weight shards of a TF.js model; empty for other files.
fn shards(bytes: &[u8]) -> Vec<String> {
    let model: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let groups = model.get("weightsManifest").and_then(Value::as_array).into_iter().flatten();
    let paths = groups.filter_map(|g| g.get("paths")?.as_array()).flatten();
    paths.filter_map(|p| p.as_str().map(str::to_string)).collect()
}

/// Appends all files below `folder`, sorted folder by folder.
fn below(folder: &Path, depth: usize, all: &mut Vec<PathBuf>) -> Result<()> {
    if depth > MOST_DEPTH {
        return Err(Error::user(Code::TooLarge, format!("`{}` has too many folders in one another", folder.display())));
    }
    let unread = |e: std::io::Error| Error::user(Code::Io, format!("`{}` can't be read: {e}", folder.display()));
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>).map_err(unread)?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            below(&path, depth + 1, all)?;
        } else {
            all.push(path);
        }
    }
    Ok(())
}
