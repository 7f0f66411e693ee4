use super::OpRow;

/// The rows of this family.
pub const ROWS: &[&[OpRow]] = &[];
