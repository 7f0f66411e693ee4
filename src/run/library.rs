//! Loading of object files into this process as a shared library.
#![expect(unsafe_code, reason = "loads a library")]
use crate::diag::{Code, Error, Result};
use crate::package::{shared_library, temporary_files};
use crate::target::Target;
use crate::util::pieces::{Content, Pieces};

/// Links `objects` in a temporary folder and loads the library. Errors: `Code::NoLinker`, `Code::Io`.
pub fn load(objects: &[&Pieces], name: &str, target: &Target) -> Result<libloading::Library> {
    let failed = |e: std::io::Error| Error::user(Code::Io, format!("no temporary file could be written: {e}"));
    let dir = temporary_files::TemporaryFolder::new().map_err(failed)?;
    let output = dir.path().join("model.so");
    let mut inputs = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        let input = dir.path().join(format!("model{i}.o"));
        std::fs::File::create(&input).and_then(|mut file| object.write_to(&mut file)).map_err(failed)?;
        inputs.push(input);
    }
    shared_library::link(&inputs, &output, &format!("lib{name}.so"), target)?;
    // SAFETY: the library is our own output and has no initialisers.
    unsafe { libloading::Library::new(&output) }.map_err(|e| Error::internal("load", e.to_string()))
}
