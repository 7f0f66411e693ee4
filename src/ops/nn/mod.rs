//! Neural-network ops: convolutions, pools, normalizations, activations, losses, top-k.
mod activation;
mod bias;
mod conv;
mod conv_grad;
mod window_counts;
mod epilogue;
mod fractional;
mod morphology;
mod morphology_grad;
mod norm;
mod pool;
mod pool_arg;
mod pool_grad;
mod softmax;
mod topk;
mod window;

pub use bias::{accumulator_type, sum_axes};
pub use pool::{PoolAttrs, pool_shape, reduce_window};
pub use window::{DataFormat, Padding, WindowAttrs, positive_sizes, window_dim};

use crate::ops::OpLowering;

/// Definitions of the ops of this family, a table for each file.
pub const ROWS: &[&[OpLowering]] = &[
    activation::ROWS,
    bias::ROWS,
    conv::ROWS,
    conv_grad::ROWS,
    epilogue::ROWS,
    fractional::ROWS,
    morphology::ROWS,
    morphology_grad::ROWS,
    norm::ROWS,
    pool::ROWS,
    pool_arg::ROWS,
    pool_grad::ROWS,
    softmax::ROWS,
    topk::ROWS,
];
