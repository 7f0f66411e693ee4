//! Winograd's method F(4, r) along one axis of a window, or along both of one of 3x3: r + 3 products make 4 results of r taps,
//! which take 4·r otherwise, and 36 make 16 results of 3x3 taps instead of 144. The input is read in tiles that overlap; what
//! they read outside of it is zero. The other axes of the window are summed over as they are. Longer windows are taken in groups
//! of 4 taps, each of which reads the tile after that of the group before, and dilated ones a phase at a time.
//!
//! Products of bytes are made so along both axes, of whole numbers and exactly (`recipe/numbers.rs`), where an instruction multiplies pairs of 16 bits.
pub(in crate::schedule) mod loops;
pub mod recipe;

pub use loops::FAMILY;
