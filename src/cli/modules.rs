//! Loading of HLO modules from files, and their parameters and results as tensors.
use super::graph;
use crate::compile;
use crate::diag::{Code, Error, Result};
use crate::hlo::{Literal, Module, Shape, verify};
use crate::tensor::{Tensor, TensorInfo};
use std::io::Read;

/// Loads the module in a file; `dims` determine sizes that the file leaves open.
pub fn load(file: &str, dims: &[String]) -> Result<Module> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(drop),
        path => std::fs::read(path).map(|all| bytes = all),
    };
    read.map_err(|e| Error::user(Code::Io, format!("`{file}` could not be read: {e}")))?;
    let request = graph::request_from_flags(&[], dims)?;
    compile::specialize_module(&bytes.into(), &request).map(|source| source.module).map_err(|e| e.in_file(file))
}

/// Loads a module like [`load`], and verifies it.
pub fn load_verified(file: &str, dims: &[String]) -> Result<Module> {
    let module = load(file, dims)?;
    verify::verify(&module).map_err(|e| e.in_file(file))?;
    Ok(module)
}

/// Loads and verifies a module, and replaces known custom calls by instructions.
pub fn load_expanded(file: &str, dims: &[String]) -> Result<Module> {
    let mut module = load_verified(file, dims)?;
    compile::expand_library_calls(&mut module).map_err(|e| e.in_file(file))?;
    Ok(module)
}

/// Names and types of the leaves of `shapes`: `0`, `1`, ...; C names consist of `prefix` and the number.
pub fn leaf_infos(shapes: &[Shape], prefix: &str) -> Vec<TensorInfo> {
    let leaves = shapes.iter().flat_map(Shape::leaves).enumerate();
    leaves
        .map(|(i, a)| TensorInfo {
            name: i.to_string(),
            called: None,
            field: format!("{prefix}{i}"),
            dtype: a.dtype,
            dims: a.dims.clone(),
        })
        .collect()
}

/// A literal of `shape`, assembled from its leaves in order.
pub fn literal_from_leaves(shape: &Shape, leaves: &mut impl Iterator<Item = Tensor>) -> Result<Literal> {
    Ok(match shape {
        Shape::Array(_) => Literal::Array(
            leaves.next().ok_or_else(|| Error::internal("hlo eval", "fewer leaves than parameters have"))?,
        ),
        Shape::Tuple(parts) => {
            Literal::Tuple(parts.iter().map(|p| literal_from_leaves(p, leaves)).collect::<Result<_>>()?)
        }
        Shape::Token => Literal::Token,
        Shape::Opaque | Shape::Buffer(_) => {
            return Err(Error::user(
                Code::HloUnsupported,
                "a parameter that is opaque or a buffer can't be given a value",
            ));
        }
    })
}
