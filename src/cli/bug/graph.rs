//! The graph in the archive, with or without its weights.
use super::archive::ArchiveMember;
use crate::diag::{Result, io_error};
use crate::import::raw::RawGraph;
use crate::import::{self, FileFormat};
use crate::reduce::{Seeded, seed_weights};
use crate::rewrite;
use std::path::{Component, Path, PathBuf};

/// A form in which the graph is packed.
#[derive(Debug)]
pub struct PackedGraph {
    /// The graph's name in the archive: a file, or the folder of a model.
    pub word: String,
    pub entries: Vec<ArchiveMember>,
    /// Constants that were replaced by seeds.
    pub seeds: Vec<Seeded>,
    /// Whether nothing was omitted.
    pub is_whole: bool,
    /// Whether the checkpoint of a SavedModel was omitted.
    pub without_variables: bool,
}

/// Packs all files of the graph unchanged. Errors: `Io` if the graph does not exist.
pub fn pack_whole_graph(path: &Path, format: Option<&str>) -> Result<PackedGraph> {
    let path = std::fs::canonicalize(path).map_err(|e| io_error("read", path, &e))?;
    // A file that can't be read as a graph is packed as it is.
    let files = import::model_files(&path, format).unwrap_or_else(|_| vec![path.clone()]);
    let (word, folder) = placed(&path, files.len());
    let name = |file: &Path| match &folder {
        Some((top, base)) => format!("{top}/{}", inside(file, base)),
        None => word.clone(),
    };
    let entries = files.iter().map(|file| ArchiveMember::file(name(file), file.clone())).collect();
    Ok(PackedGraph { word, entries, seeds: Vec::new(), is_whole: true, without_variables: false })
}

/// Packs the graph with seeds for large constants and without the values of variables; `None` if this is impossible.
pub fn pack_reduced_graph(path: &Path, format: Option<&str>) -> Option<PackedGraph> {
    let (kind, bytes) = import::load_bytes(path, format).ok()?;
    let mut seeds = Vec::new();
    let mut change = |graph: &bytes::Bytes| {
        let mut graph = RawGraph::parse(graph)?;
        seeds = seed_weights(&mut graph)?;
        Ok(graph.write())
    };
    let changed = rewrite::rewrite_graph_of_file(&bytes, kind, &mut change).ok()??;
    let PackedGraph { word, entries, .. } = pack_whole_graph(path, format).ok()?;
    if kind != FileFormat::SavedModel {
        let word = in_binary(&word);
        let entries = vec![ArchiveMember::bytes(word.clone(), changed)];
        return Some(PackedGraph { word, entries, seeds, is_whole: false, without_variables: false });
    }
    let is_model = |name: &str| name.ends_with("saved_model.pb") || name.ends_with("saved_model.pbtxt") || name == word;
    let is_folder = path.is_dir();
    let file = if is_folder { format!("{word}/saved_model.pb") } else { word.clone() };
    let before = entries.len();
    let mut kept: Vec<ArchiveMember> = entries.into_iter().filter(|e| !e.name.contains("/variables/")).collect();
    let without_variables = kept.len() < before;
    kept.retain(|e| !is_model(&e.name));
    kept.push(ArchiveMember::bytes(file, changed));
    Some(PackedGraph { word, entries: kept, seeds, is_whole: false, without_variables })
}

/// The file name of the uncompressed binary form: `x.pbtxt.gz` becomes `x.pb`.
fn in_binary(name: &str) -> String {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    match plain.strip_suffix(".pbtxt").or_else(|| plain.strip_suffix(".txt")) {
        Some(stem) if stem.ends_with(".pb") => stem.to_string(),
        Some(stem) => format!("{stem}.pb"),
        None => plain.to_string(),
    }
}

/// The packed name for a graph of `files` files; for a folder, also the folder's packed name and its path.
fn placed(path: &Path, files: usize) -> (String, Option<(String, PathBuf)>) {
    let last = |path: &Path| path.file_name().map_or_else(|| "model".to_string(), |n| n.to_string_lossy().into_owned());
    if path.is_dir() {
        // A model in a folder with a version number is named after the parent folder.
        let above = path.parent().filter(|_| last(path).chars().all(|c| c.is_ascii_digit())).map(last);
        let top = above.map_or_else(|| last(path), |above| format!("{above}/{}", last(path)));
        return (top.clone(), Some((top, path.to_path_buf())));
    }
    if files <= 1 {
        return (last(path), None);
    }
    let base = path.parent().unwrap_or(Path::new("/"));
    let top = last(base);
    (format!("{top}/{}", last(path)), Some((top, base.to_path_buf())))
}

/// The path of `file` relative to `base`, without components that lead out of it.
fn inside(file: &Path, base: &Path) -> String {
    let parts = file.strip_prefix(base).unwrap_or(file).components();
    let plain = parts.filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    plain.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_tell_the_binary_form() {
        for (saved, packed) in
            [("x.pbtxt.gz", "x.pb"), ("x.pbtxt", "x.pb"), ("x.pb.txt", "x.pb"), ("x.pb.gz", "x.pb"), ("x", "x")]
        {
            assert_eq!(super::in_binary(saved), packed);
        }
    }
}
