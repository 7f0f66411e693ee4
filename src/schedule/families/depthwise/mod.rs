//! Convolutions with one channel a group, which makes one or a few: lanes are channels of the result, and a tile of pixels along
//! the last spatial axis stays in registers. The taps of a row are written out, and an element of the input is loaded once for all of them. Rows of taps are a
//! loop where the window is large, as LLVM takes the sums of a long stretch one after another and spills what they share.
//! Elements reach each sum in the order of the taps, so that it is the same whatever the tile.
//!
//! Taps on the padding are left out: rows of them by a test, and of the tiles of a row those at its ends have code of their own.
//! So the operand needs no margin, whose zeros would have to be written in each call, and of a 5x5 window on 7x7 pixels a third
//! of the taps goes.
//!
//! Bytes whose sums are integers are multiplied by an instruction for words where there is one ([`words`]).
pub(in crate::schedule) mod loops;
pub mod recipe;
mod words;

pub use loops::FAMILY;
