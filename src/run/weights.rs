//! Weights that a model takes from its caller: those of the graph, or those of a file.
#![expect(unsafe_code, reason = "calls the object's check of weights")]
use super::guard_pages::{GuardSide, GuardedBuffer};
use super::model::{ALIGN, Model, allocate_guarded, edge_text, no_memory_error, report_faults};
use crate::compile::{self, Compiled, Functions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::target::Target;
use crate::util::pieces::Pieces;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The source of the weights for compiled functions.
#[derive(Clone, Copy, Debug)]
pub enum WeightSource<'a> {
    /// Weights are constants in the object.
    Object,
    /// Weights are passed to the functions, filled with those of the graph.
    Graph,
    /// Weights are passed to the functions, read from a file.
    File(&'a Path),
}

impl<'a> WeightSource<'a> {
    /// Marks functions that take weights from their caller, before they are compiled.
    pub fn mark_functions(self, mut functions: Functions) -> Functions {
        if !matches!(self, WeightSource::Object) {
            compile::make_weights_replaceable(&mut functions);
        }
        functions
    }

    /// The weights file, if there is one.
    pub fn file(self) -> Option<&'a Path> {
        match self {
            WeightSource::File(path) => Some(path),
            WeightSource::Object | WeightSource::Graph => None,
        }
    }
}

impl Model {
    /// Links compiled functions and loads them. An object without weights gets those of `file`, or else the graph's.
    ///
    /// # Errors
    /// Errors of [`Model::load`]; `Code::OtherWeights` if the file belongs to another object, `Code::Io`.
    pub fn load_compiled(built: &Compiled, file: Option<&Path>, target: &Target, threads: usize) -> Result<Model> {
        let mut model = Model::load(&built.bundle.face, &built.object, target, threads)?;
        let Some(check) = model.calls.check else { return Ok(model) };
        let content = built.bundle.weights_file_content().unwrap_or_default();
        report_faults();
        let what = format!("the weights ({})", edge_text(GuardSide::End));
        let mut block = allocate_guarded(&what, content.len() as usize, ALIGN, GuardSide::End)?;
        match file {
            Some(path) => read(path, &mut block)?,
            None => copy(&content, &mut block),
        }
        block.read_only().map_err(no_memory_error)?;
        // SAFETY: `abi::read` found the function in a table of the loaded library, and it reads so many bytes at most.
        if unsafe { check(block.as_ptr().cast_const().cast(), block.bytes().len()) } != 0 {
            return Err(other_weights(file.unwrap_or(Path::new(""))));
        }
        model.weights = Some(block);
        Ok(model)
    }
}

fn copy(content: &Pieces, block: &mut GuardedBuffer) {
    let mut left = block.bytes_mut();
    for piece in content.iter() {
        let (to, behind) = left.split_at_mut(piece.len());
        to.copy_from_slice(piece);
        left = behind;
    }
}

/// Fills `block` from a file, which must have exactly the same size.
fn read(path: &Path, block: &mut GuardedBuffer) -> Result<()> {
    let failed = |e: io::Error| Error::user(Code::Io, format!("cannot read `{}`: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() != block.bytes().len() as u64 {
        return Err(other_weights(path));
    }
    file.read_exact(block.bytes_mut()).map_err(failed)
}

fn other_weights(path: &Path) -> Error {
    let told = format!("`{}` has not the weights of this graph's code", path.display());
    let help = "the file of an object for the same one processor (--cpu native), sizes and signatures; `tfaot weights` makes others";
    Diagnostic::new(Code::OtherWeights, told).help(help).into()
}
