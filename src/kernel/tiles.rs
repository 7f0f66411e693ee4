//! Blocks of sums that a processor makes by multiplying tiles of memory.
use super::{BufId, Index, VarId};
use crate::target::tiles::TileProduct;
use crate::tensor::DType;

/// A block of sums of products of bfloat16 or bytes, computed by one instruction for each tile and iteration (as
/// [`TileProduct::evaluate_sum`]), starting from zero or from the sums in memory. A tile is at most 16 rows of the left side by at most
/// 16 words of terms, or 16 words of terms by 16 columns of the right side; all sums stay in tile registers from the first iteration to the last.
#[derive(Clone, Debug)]
pub struct TileSums {
    /// The products, which follow from the types of both sides.
    pub product: TileProduct,
    /// The variables of the loops over terms, outermost first.
    pub loops: Vec<VarId>,
    /// Terms per iteration, in whole words.
    pub terms: u64,
    /// Buffer of the left side, whose terms are contiguous.
    pub left: BufId,
    /// Tiles of the left side, from top to bottom.
    pub rows: Vec<TileRows>,
    /// Buffer of the right side: for each word of terms the elements of a column, then those of the next column.
    pub right: BufId,
    /// Index of the first element that an iteration reads of the right side.
    pub first: Index,
    /// Distance in elements of words of terms in the right side.
    pub stride: u64,
    /// Number of neighboring tiles of the right side.
    pub across: u64,
    /// Buffer of the sums, of 32 bits, row after row.
    pub to: BufId,
    /// Index of the first sum.
    pub at: Index,
    /// Whether the products are added to the sums in memory.
    pub adds: bool,
}

/// Rows of the left side that are one tile.
#[derive(Clone, Debug)]
pub struct TileRows {
    /// Index of the first term of the first row.
    pub first: Index,
    /// Distance of rows.
    pub stride: u64,
    /// Number of rows.
    pub count: u64,
}

/// Elements of a buffer that one statement accesses.
#[derive(Clone, Copy, Debug)]
pub struct ElementSpan<'k> {
    /// The buffer.
    pub buf: BufId,
    /// Index of the first element.
    pub first: &'k Index,
    /// Offset of the last element from the first.
    pub last: u64,
    /// Number of elements.
    pub count: u64,
}

impl<'k> ElementSpan<'k> {
    /// The span of one element.
    pub fn of_element(buf: BufId, first: &'k Index) -> ElementSpan<'k> {
        ElementSpan { buf, first, last: 0, count: 1 }
    }
}

/// The products that a tile instruction computes of elements of these types; `None` if there is no such instruction.
pub fn tile_product(left: DType, right: DType) -> Option<TileProduct> {
    let is_signed = |dtype: DType| match dtype {
        DType::S8 => Some(true),
        DType::U8 => Some(false),
        _ => None,
    };
    match (left, right) {
        (DType::BF16, DType::BF16) => Some(TileProduct::Bf16),
        _ => Some(TileProduct::Bytes { signs: [is_signed(left)?, is_signed(right)?] }),
    }
}

/// The type of the sums of a tile instruction.
pub fn tile_sum_type(product: TileProduct) -> DType {
    match product {
        TileProduct::Bf16 => DType::F32,
        TileProduct::Bytes { .. } => DType::S32,
    }
}

impl TileSums {
    /// The elements that one iteration reads.
    pub fn reads(&self) -> Vec<ElementSpan<'_>> {
        let of_rows = |r: &'_ TileRows| (r.count.saturating_sub(1) * r.stride + self.terms - 1, r.count * self.terms);
        let rows = self.rows.iter().map(|r| (self.left, &r.first, of_rows(r)));
        let per_word = self.product.terms_per_word();
        let last_word = (self.terms / per_word).saturating_sub(1) * self.stride;
        let of_right = (last_word + per_word * self.columns() - 1, self.terms * self.columns());
        let right = (self.right, &self.first, of_right);
        let all = rows.chain([right]).map(|(buf, first, (last, count))| ElementSpan { buf, first, last, count });
        all.chain(self.adds.then(|| self.writes())).collect()
    }

    /// The elements that the last iteration writes.
    pub fn writes(&self) -> ElementSpan<'_> {
        let count = self.rows() * self.columns();
        ElementSpan { buf: self.to, first: &self.at, last: count - 1, count }
    }

    /// Number of rows of the sums.
    pub fn rows(&self) -> u64 {
        self.rows.iter().map(|r| r.count).sum()
    }

    /// Number of columns of the sums.
    pub fn columns(&self) -> u64 {
        self.across * crate::target::tiles::COLUMNS
    }
}
