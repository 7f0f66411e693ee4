//! Image ops: resizing, crops, colors, box selection.
mod color;
mod combined_nms;
mod crop;
mod crop_grad;
mod distortion;
mod draw;
mod glimpse;
mod nms;
mod patches;
mod projective;
mod quantized_resize;
mod resize;
mod sampling;
mod span_weights;
mod spans;

use super::OpLowering;

/// Definitions of the ops of this family.
pub const ROWS: &[&[OpLowering]] = &[
    color::ROWS,
    combined_nms::ROWS,
    crop::ROWS,
    crop_grad::ROWS,
    distortion::ROWS,
    draw::ROWS,
    glimpse::ROWS,
    nms::ROWS,
    patches::ROWS,
    projective::ROWS,
    quantized_resize::ROWS,
    resize::ROWS,
    spans::ROWS,
];
