//! Weights in Apple's objects: LLVM leaves a section of zeros without bytes (`zerofill`), and its header is told where they lie.
//! Fields and numbers are those of `mach-o/loader.h`.
use super::{Gap, behind, put, word};

/// Magic number of 64-bit Mach-O files.
pub const MAGIC: &[u8] = b"\xcf\xfa\xed\xfe";
/// The read-only section for weights.
pub const SECTION: &str = "__TEXT,__tfaot_weights,zerofill";
const NAME: &[u8; 16] = b"__tfaot_weights\0";

/// Offset of the number of load commands in the header, and the header's size.
const COMMANDS: usize = 16;
const HEADER_BYTES: usize = 32;
/// Offset of a load command's size in the command.
const COMMAND_BYTES: usize = 4;
const LC_SEGMENT_64: usize = 0x19;
/// Offset of the number of sections in a segment command, and the command's size without its sections.
const SECTIONS: usize = 64;
const SEGMENT_BYTES: usize = 72;
const SECTION_BYTES: usize = 80;
const OFFSET: usize = 48;
const FLAGS: usize = 64;

/// Turns the empty section that LLVM emitted into one with the weights, whose bytes follow the file.
pub fn set_weights_section(made: &mut [u8]) -> Option<Gap> {
    let at = header(made)?;
    let gap = behind(made);
    put(made, at + OFFSET, &u32::try_from(gap.at).ok()?.to_le_bytes())?;
    // S_REGULAR
    put(made, at + FLAGS, &0u32.to_le_bytes())?;
    Some(gap)
}

/// Offset of the section header for the weights.
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
