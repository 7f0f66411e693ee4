//! Any text as HLO: refused with a code, or printed so that the print is read back as the same module.
#![no_main]
use tfaot::hlo::{text, verify};

#[path = "../through.rs"]
mod through;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(module) = through::sound(text::parse(source)) else { return };
    if through::sound(verify::verify(&module)).is_err() {
        return;
    }
    let printed = text::print(&module);
    let again = text::parse(&printed).unwrap_or_else(|e| panic!("the print is refused: {e:?}\n{printed}"));
    assert_eq!(text::print(&again), printed, "the print changes when it is read");
});
