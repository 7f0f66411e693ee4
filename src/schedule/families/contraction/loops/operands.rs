//! A contraction as loops over two sides in memory.
use crate::schedule::families::contraction::recipe::axis::Axis;
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::compressed_constants::Stored;
use crate::tensor::Tensor;

/// Where the right side comes from.
#[derive(Clone, Debug)]
pub enum Right {
    /// Known now: packed now.
    Constant(Tensor),
    /// Known now, in fewer bits than the products have.
    Stored(Stored),
    /// Known now, but for one factor a term in this memory.
    Scaled(Tensor, BufId),
    /// Packed at run time.
    Buffer(BufId),
}

/// `out[batch, rows, columns] = Σ a·b`.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The element type of the result.
    pub dtype: DType,
    /// The left side.
    pub left: BufId,
    /// The right side.
    pub right: Right,
    /// First element of the left side.
    pub a0: i64,
    /// First element of the right side.
    pub b0: i64,
    /// Loops of the result over both sides.
    pub batch: Vec<Axis>,
    /// Loops of the result over the left side.
    pub rows: Vec<Axis>,
    /// Loops of the result over the right side.
    pub columns: Vec<Axis>,
    /// Loops that are summed over.
    pub sum: Vec<Axis>,
    /// The first column of the result that this contraction makes (groups).
    pub first_column: u64,
    /// Where the sums go as they are, without an epilogue, to `[batch][row][column]`: how far batches are apart.
    pub sums_apart: Option<u64>,
    /// The operations that direct sums would take, where this contraction is a part of another method.
    pub direct_flops: Option<u64>,
    /// Where steps of the first loop of the sum are left out: which, by the second loop of rows.
    pub inside: Option<TapRows>,
}

/// From the number of a batch, a row and a column to the coordinates of an element of the result.
pub type Coordinates<'a> = &'a dyn Fn(&Kernel, &Index, &Index, &Index) -> Vec<Index>;
