//! What is made inside its reader: an operand of which a kernel needs only a few rows, tiles or elements at a time is made in that
//! kernel, on the stack or in registers, and has no memory of its own. Each element is computed as by a kernel of its own, so that
//! the bits are the same.
mod block;
mod chain;
mod pooled;
mod separable;

pub use block::Block;
pub use chain::{Chain, span};
pub use pooled::Pooled;
pub use separable::Separable;

use super::convolution::Convolutions;
use super::fuse::{Fate, Fusion};
use crate::hlo::{Computation, InstId, Module};
use crate::target::Target;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// What there is to look at when a computation is planned.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The module.
    pub module: &'a Module,
    /// The computation.
    pub comp: &'a Computation,
    /// Who reads each instruction of it.
    pub users: &'a IdVec<InstId, Vec<InstId>>,
    /// Its convolutions.
    pub convolutions: &'a Convolutions,
    /// The machine.
    pub target: &'a Target,
}

/// A kernel that makes what it reads.
#[derive(Clone, Debug)]
pub enum Within {
    /// A depthwise window and the convolution before it: some rows of pixels of one panel of channels at a time.
    Chain(Chain),
    /// A product and the product of rows before it (attention): a block of rows at a time.
    Block(Block),
    /// A 1x1 convolution and the depthwise window before it: a row of pixels at a time.
    Separable(Separable),
    /// A window of maxima and the convolution before it: the results of a tile at a time.
    Pooled(Pooled),
}

/// Those of a computation, by the instruction that their kernel ends in. What they take in has no buffer any more.
pub fn choose(look: &Look<'_>, fusion: &mut Fusion) -> HashMap<InstId, Within> {
    let order = look.comp.post_order();
    let mut within: HashMap<InstId, Within> = HashMap::new();
    for &id in &order {
        if let Some(chain) = chain::choose(look, fusion, id) {
            fusion.fate[chain.producer] = Fate::Inlined(Some(id));
            within.insert(id, Within::Chain(chain));
        }
    }
    for &id in &order {
        if let Some(block) = block::choose(look, fusion, id).filter(|block| !within.contains_key(&block.scores)) {
            fusion.fate[block.left] = Fate::Inlined(Some(id));
            fusion.fate[block.scores] = Fate::Inlined(Some(id));
            within.insert(id, Within::Block(block));
        }
    }
    for &id in &order {
        let separable = separable::choose(look, fusion, id).filter(|s| !within.contains_key(&s.producer));
        if let Some(separable) = separable {
            fusion.fate[separable.producer] = Fate::Inlined(Some(id));
            within.insert(id, Within::Separable(separable));
        }
    }
    for &id in &order {
        if let Some(pooled) = pooled::choose(look, fusion, id) {
            fusion.fate[pooled.producer] = Fate::Inlined(Some(id));
            within.insert(id, Within::Pooled(pooled));
        }
    }
    within
}
