//! The gradient of a filter: a convolution whose window is the gradient of a whole plane and that has as many results along each
//! axis as the filter has taps.
//!
//! ```text
//! result[i, a, b, o] = sum over n, y, x of left[n, y + a, x + b, i] * right[n, y, x, o]
//! ```
//!
//! Taken over positions of the left side, `x' = x + b`, the results of all `b` are columns of one product: of each element on the
//! left with the features of as many neighbours on the right, which lie side by side there. So each of the two sides is read
//! once for a row of taps and not once for each tap, from where it lies; the right side needs zeros around its rows. That is for
//! windows over padding, of which the results at edges read less than the others. An infinity
//! or a NaN of the left side that meets those spoils the taps beside its own.
mod loops;
pub mod recipe;

pub use loops::FAMILY;
