//! Any bytes as a GraphDef, a MetaGraphDef or a SavedModel: read, cut, lowered and scheduled, or refused with a code.
#![no_main]
use tfaot::import::FileFormat;

#[path = "../through.rs"]
mod through;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for format in [FileFormat::GraphDef, FileFormat::SavedModel] {
        through::graph(data, format);
    }
});
