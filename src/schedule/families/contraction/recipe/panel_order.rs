//! How the numbers of the right side of a contraction lie in a panel.
use super::word_products::WordProducts;
use crate::target::tiles::TileProduct;

/// Order of the elements in a panel of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PanelOrder {
    /// `[term][column]`: term after term, with the columns of a term side by side.
    #[default]
    Plain,
    /// Word after word: the terms of a column that fill 32 bits lie side by side, for a dot instruction.
    Words(WordProducts),
    /// `[word of terms][column][term of the word]`, for the AMX instructions that multiply tiles.
    Tiles(TileProduct),
    /// The columns of two vectors of so many lanes interleaved: each word holds one bf16 of both, and a shift and a mask make f32 of
    /// them, half the cost of widening each vector. A last vector without a partner is in plain order.
    Vectors(u64),
    /// `[column][term]`: contiguous terms of each column, with columns this many elements apart.
    Transposed(u64),
}

impl PanelOrder {
    /// Offset of term `term` of column `column` in a panel of `panel` columns.
    pub fn panel_offset(self, term: u64, column: u64, panel: u64) -> u64 {
        let in_words = |size: u64| (term / size * panel + column) * size + term % size;
        match self {
            PanelOrder::Plain => term * panel + column,
            PanelOrder::Words(products) => in_words(products.terms_per_word()),
            PanelOrder::Tiles(product) => in_words(product.terms_per_word()),
            PanelOrder::Vectors(lanes) => {
                let (vector, lane) = (column / lanes, column % lanes);
                let even = vector / 2 * 2;
                let inside = if even + 1 < panel / lanes { even * lanes + 2 * lane + vector % 2 } else { column };
                term * panel + inside
            }
            PanelOrder::Transposed(apart) => column * apart + term,
        }
    }
}
