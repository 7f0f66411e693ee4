//! What the targets share.
use bytes::Bytes;
use std::path::Path;
use tfaot::diag::{Error, Result};
use tfaot::import::{self, FileFormat};
use tfaot::prepare::{Request, prepare};
use tfaot::target::Target;
use tfaot::{compile, lower};

/// `result`, where an error that blames us and not the input is a finding.
pub fn sound<T>(result: Result<T>) -> Result<T> {
    if let Err(Error::Internal { .. }) = &result {
        panic!("{:?}", result.err());
    }
    result
}

/// As far as machine code: LLVM itself is not what is tested.
#[allow(dead_code, reason = "one target reads no graphs")]
pub fn graph(data: &[u8], format: FileFormat) {
    let bytes = Bytes::copy_from_slice(data);
    let Ok(program) = sound(import::parse(&bytes, Some(format), Path::new(""))) else { return };
    let Ok(prepared) = sound(prepare(program, &Request::default())) else { return };
    let elements = |f: &lower::Feed| f.info.dims.iter().product::<u64>();
    if prepared.feeds.iter().map(elements).sum::<u64>() > 1 << 16 {
        return; // time goes into structure, not into folding large arrays
    }
    let Ok(lowered) = lower::lower(&prepared.program, &prepared.feeds, &prepared.fetches, &[]) else { return };
    let target = Target::resolve(None, None, None).expect("this machine");
    let _ = sound(compile::plan(lowered, "m", "", &target));
}
