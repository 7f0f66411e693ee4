//! Weights that the object has not: those of the graph, or of a file.
use super::{ALIGN, Edge, Model, guarded, no_memory, passed, report_faults};
use crate::compile::Compiled;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::target::Target;
use crate::util::guarded::Guarded;
use crate::util::pieces::Pieces;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

impl Model {
    /// Links and loads compiled functions, with their weights where the object has none: those of `file`, or of the graph.
    ///
    /// # Errors
    /// Those of [`Model::load`]; `Code::OtherWeights` where the file is another object's, `Code::Io`.
    pub fn of(built: &Compiled, file: Option<&Path>, target: &Target, threads: usize) -> Result<Model> {
        let mut model = Model::load(&built.bundle.face, &built.object, target, threads)?;
        let Some(check) = model.calls.check else { return Ok(model) };
        let content = built.bundle.file_content().unwrap_or_default();
        report_faults();
        let what = format!("the weights ({})", passed(Edge::End));
        let mut block = guarded(&what, content.len() as usize, ALIGN, Edge::End)?;
        match file {
            Some(path) => read(path, &mut block)?,
            None => copy(&content, &mut block),
        }
        block.read_only().map_err(no_memory)?;
        // SAFETY: `info::read` found the function in a table of the loaded library, and it reads so many bytes at most.
        if unsafe { check(block.as_ptr().cast_const().cast(), block.bytes().len()) } != 0 {
            return Err(others(file.unwrap_or(Path::new(""))));
        }
        model.weights = Some(block);
        Ok(model)
    }
}

fn copy(content: &Pieces, block: &mut Guarded) {
    let mut left = block.bytes_mut();
    for piece in content.iter() {
        let (to, behind) = left.split_at_mut(piece.len());
        to.copy_from_slice(piece);
        left = behind;
    }
}

/// All of a file, which must have as many bytes.
fn read(path: &Path, block: &mut Guarded) -> Result<()> {
    let failed = |e: io::Error| Error::user(Code::Io, format!("cannot read `{}`: {e}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() != block.bytes().len() as u64 {
        return Err(others(path));
    }
    file.read_exact(block.bytes_mut()).map_err(failed)
}

fn others(path: &Path) -> Error {
    let told = format!("`{}` has not the weights of this graph's code", path.display());
    let help = "the file of an object for the same one processor (--cpu native), sizes and signatures; `tfaot weights` makes others";
    Diagnostic::new(Code::OtherWeights, told).help(help).into()
}
