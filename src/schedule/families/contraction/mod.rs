//! Contractions: matrix products, and convolutions taken as such. `loops/` goes in loops over panels of the right side and over register
//! tiles of rows by columns, whose sums stay in registers while the contracted loops run. `recipe/` decides, of sizes, types and strides
//! alone, which register tile that is, how a panel lies, and which loop is outermost.
//!
//! Where columns are few, a vector lies along the sum instead (`loops/inner_product.rs`), and so it does where rows are few and the terms of a
//! column lie side by side (`loops/transposed_right.rs`). With AMX a tile is a block of 32 rows by 32 columns (`loops/amx.rs`).
//!
//! No root is a contraction by itself: `families/dot.rs`, `families/convolution/`, `families/filter/` and `families/winograd/` write theirs
//! as one.
pub(in crate::schedule) mod loops;
pub mod recipe;
