//! Weights in Apple's objects: LLVM leaves a section of zeros without bytes (`zerofill`), and its header is told where they lie.
//! Fields and numbers are those of `mach-o/loader.h`.
use super::{Gap, behind, put, word};

/// How objects of 64 bits begin.
pub const MAGIC: &[u8] = b"\xcf\xfa\xed\xfe";
/// The section of all models' weights: programs only read it.
pub const SECTION: &str = "__TEXT,__tfaot_weights,zerofill";
const NAME: &[u8; 16] = b"__tfaot_weights\0";

/// Where the header says how many commands there are, and its bytes.
const COMMANDS: usize = 16;
const HEADER_BYTES: usize = 32;
/// Where a command says how long it is.
const COMMAND_BYTES: usize = 4;
const LC_SEGMENT_64: usize = 0x19;
/// Where a segment says how many sections it has, and bytes before the first of them.
const SECTIONS: usize = 64;
const SEGMENT_BYTES: usize = 72;
const SECTION_BYTES: usize = 80;
const OFFSET: usize = 48;
const FLAGS: usize = 64;

/// Turns the empty section into one of weights, whose bytes follow the file.
pub fn place(made: &mut [u8]) -> Option<Gap> {
    let at = header(made)?;
    let gap = behind(made);
    put(made, at + OFFSET, &u32::try_from(gap.at).ok()?.to_le_bytes())?;
    // S_REGULAR
    put(made, at + FLAGS, &0u32.to_le_bytes())?;
    Some(gap)
}

/// Where the header of the weights' section is.
fn header(made: &[u8]) -> Option<usize> {
    let mut at = HEADER_BYTES;
    for _ in 0..word(made, COMMANDS)? {
        if word(made, at)? == LC_SEGMENT_64 {
            let sections = word(made, at + SECTIONS)?;
            let mut headers = (0..sections).map(|i| at + SEGMENT_BYTES + i * SECTION_BYTES);
            if let Some(found) = headers.find(|&h| made.get(h..).is_some_and(|h| h.starts_with(NAME))) {
                return Some(found);
            }
        }
        at = at.checked_add(word(made, at + COMMAND_BYTES)?)?;
    }
    None
}
