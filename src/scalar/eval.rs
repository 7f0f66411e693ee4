//! The reference of every [`super::ScalarOp`], bit for bit.
