//! Sums along lanes: how many rows and columns are summed at once, so that the registers hold a sum for each pair of them.
use crate::schedule::families::contraction::recipe::lanes_along_sum;

/// Most columns whose sums are in registers at once.
const MOST_COLUMNS: u64 = 4;
/// Most rows whose sums are in registers at once.
const MOST_ROWS: u64 = 16;

/// The rows and columns whose sums are in registers at once, vectorized along the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerProductTile {
    /// Lanes of a vector along the sum.
    pub lanes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub columns: u64,
}

impl InnerProductTile {
    /// The tile for few columns, whose vectors serve up to `width` rows; a sum has `run` contiguous terms, a full vector `whole` lanes.
    pub fn for_few_columns([run, whole]: [u64; 2], columns: u64, width: u64, registers: u64) -> InnerProductTile {
        let lanes = lanes_along_sum(run, whole);
        let columns = columns.div_ceil(columns.div_ceil(MOST_COLUMNS));
        let rows = count_fitting_registers([run, lanes], columns, registers.saturating_sub(columns + 2));
        InnerProductTile { lanes, rows: rows.clamp(1, MOST_ROWS.min(width)), columns }
    }

    /// The tile for few rows, which stay in registers while columns are loaded: large enough that sums do not wait for one another.
    pub fn for_few_rows([run, lanes]: [u64; 2], rows: u64, registers: u64) -> InnerProductTile {
        let columns = count_fitting_registers([run, lanes], rows, registers.saturating_sub(rows + 1));
        InnerProductTile { lanes, rows, columns: columns.clamp(1, MOST_COLUMNS) }
    }
}

/// Number of rows (or columns) whose sums with each of `others` columns (or rows) fit in the registers: each sum takes one register for
/// full vectors and one for each narrower vector.
fn count_fitting_registers([run, lanes]: [u64; 2], others: u64, registers: u64) -> u64 {
    let pieces = 1 + u64::from((run % lanes).count_ones());
    registers / (others * pieces)
}
