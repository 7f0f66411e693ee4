//! A contraction as loops over two sides in memory.
use crate::schedule::families::contraction::recipe::axis::ContractionAxis;
use crate::schedule::families::convolution::recipe::tap_rows::TapRows;
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::compressed_constants::CompressedConstant;
use crate::tensor::Tensor;

/// Source of the elements of a contraction's right side.
#[derive(Clone, Debug)]
pub enum ContractionRight {
    /// A constant, packed at compile time.
    Constant(Tensor),
    /// A constant in a narrower type than that of the products.
    Stored(CompressedConstant),
    /// A constant multiplied by one factor per term; the buffer holds the factors.
    Scaled(Tensor, BufId),
    /// A buffer, packed at run time.
    Buffer(BufId),
}

/// A contraction `out[batch, rows, columns] = Σ a·b`.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The element type of the result.
    pub dtype: DType,
    /// The left side.
    pub left: BufId,
    /// The right side.
    pub right: ContractionRight,
    /// Index of the first element of the left side in its buffer.
    pub a0: i64,
    /// Index of the first element of the right side in its buffer or constant.
    pub b0: i64,
    /// Loops of the result that index both sides.
    pub batch: Vec<ContractionAxis>,
    /// Loops of the result that index the left side.
    pub rows: Vec<ContractionAxis>,
    /// Loops of the result that index the right side.
    pub columns: Vec<ContractionAxis>,
    /// The contracted loops.
    pub sum: Vec<ContractionAxis>,
    /// The first column of the result that this contraction computes (for convolutions in groups).
    pub first_column: u64,
    /// Distance of batches of the result in elements, if the sums are stored without an epilogue as `[batch][row][column]`.
    pub sums_apart: Option<u64>,
    /// Floating-point operations of the direct method, if this contraction is part of another one.
    pub direct_flops: Option<u64>,
    /// Map of the rows of taps on the padding that are left out: an iteration of the second loop of rows skips these steps of the first
    /// contracted loop.
    pub inside: Option<TapRows>,
}

/// A function from the numbers of a batch, a row and a column to the coordinates of an element of the result.
pub type CoordinateMap<'a> = &'a dyn Fn(&Kernel, &Index, &Index, &Index) -> Vec<Index>;
