use crate::ops::OpRow;

/// The rows of this family, a table a file.
pub const ROWS: &[&[OpRow]] = &[];
