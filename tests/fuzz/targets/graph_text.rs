//! Any text as a GraphDef: read, cut, lowered and scheduled, or refused with a code.
#![no_main]
use tfaot::import::FileFormat;

#[path = "../through.rs"]
mod through;

libfuzzer_sys::fuzz_target!(|data: &[u8]| through::graph(data, FileFormat::GraphDefText));
