//! Weights that a file replaces by a seed: a Const with the attribute `_tfaot_seed` gets pseudo-random numbers.
//!
//! Packed error reports contain no weights of the user and stay small, yet run through the same code paths.
use crate::graph::Attr;
use crate::tensor::{DTypeClass, Tensor};
use std::sync::Arc;

/// The attribute of a Const that holds the seed.
pub const SEED: &str = "_tfaot_seed";

/// Generates the tensor of a Const whose attributes have a seed in place of its elements: weights left out of a packed bug report.
pub(super) fn generate_omitted_weights(attrs: &mut [(Arc<str>, Attr)]) {
    let Some(seed) = attrs.iter().find_map(|(name, attr)| match attr {
        Attr::Int(seed) if &**name == SEED => Some(*seed),
        _ => None,
    }) else {
        return;
    };
    for (_, attr) in attrs.iter_mut().filter(|(name, _)| &**name == "value") {
        if let Attr::Tensor(value) = attr {
            **value = made_up(value, seed as u64);
        }
    }
}

/// Numbers between -0.1 and 0.1 in the type and shape of `like`; `like` itself if its type is not a float.
fn made_up(like: &Tensor, seed: u64) -> Tensor {
    if like.dtype.class() != DTypeClass::Float {
        return like.clone();
    }
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(1);
    let mut bytes = Vec::with_capacity(like.bytes.len());
    for _ in 0..like.len() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = mixed(state);
        let value = ((word >> 40) as f64 / (1u64 << 24) as f64 - 0.5) * 0.2;
        bytes.extend_from_slice(&Tensor::scalar_from_f64(like.dtype, value).bytes);
    }
    Tensor::new(like.dtype, like.dims.clone(), bytes)
}

/// SplitMix64 (Steele, Lea, Flood 2014): the output for a state.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
