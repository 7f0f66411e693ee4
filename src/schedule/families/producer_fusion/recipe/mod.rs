//! What is made inside its reader: an operand of which a kernel needs only a few rows, tiles or elements at a time is made in that
//! kernel, on the stack or in registers, and has no memory of its own. Each element is computed as by a kernel of its own, so that
//! the bits are the same.
pub mod attention;
pub mod depthwise_chain;
pub mod pooling;
pub mod separable;

pub use attention::Block;
pub use depthwise_chain::{Chain, span};
pub use pooling::Pooled;
pub use separable::Separable;

use crate::hlo::attrs::ConvDims;
use crate::hlo::{InstId, Op};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::{Fate, Fusion};
use crate::tensor::DType;
use std::collections::HashMap;

/// Two kernels, of which the second alone reads what the first makes.
#[derive(Clone, Copy)]
pub struct Pair {
    /// What is read: the first operand of the anchor.
    pub made: InstId,
    /// The anchor of the kernel that makes it.
    pub first: InstId,
    /// The anchor of the kernel that reads it.
    pub anchor: InstId,
}

impl Pair {
    /// The one whose second kernel ends in `last`.
    pub fn ending(context: &PlanContext<'_>, fusion: &Fusion, last: InstId) -> Option<Pair> {
        let anchor = fusion.anchor[last].unwrap_or(last);
        let made = *context.comp[anchor].operands.first()?;
        let first = fusion.anchor[made].unwrap_or(made);
        let kernels = [last, made].iter().all(|&i| fusion.is_made(i) && fusion.rows[i].is_none());
        let alone = context.users[made] == [anchor] && made != context.comp.root;
        (kernels && alone).then_some(Pair { made, first, anchor })
    }

    /// The two convolutions that it is: of `f32` between them, as the first makes it, with the same axes on both sides.
    fn convolutions<'l>(&self, context: &PlanContext<'l>, fusion: &Fusion) -> Option<[&'l ConvDims; 2]> {
        let PlanContext { comp, .. } = *context;
        let (Op::Convolution(p), Op::Convolution(d)) = (&comp[self.first].op, &comp[self.anchor].op) else {
            return None;
        };
        let alike = p.output_spatial == d.input_spatial
            && p.output_batch == d.input_batch
            && p.output_feature == d.input_feature;
        let plain = fusion.path[self.first].is_empty() && comp.array(self.made).dtype == DType::F32;
        (alike && plain).then_some([p, d])
    }
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

impl Within {
    /// What it makes that then has no buffer.
    fn taken(&self) -> Vec<InstId> {
        match self {
            Within::Chain(chain) => vec![chain.producer],
            Within::Block(block) => vec![block.left, block.scores],
            Within::Separable(separable) => vec![separable.producer],
            Within::Pooled(pooled) => vec![pooled.producer],
        }
    }
}

/// How the kernel that ends in an instruction makes what it reads, if it does.
type Choose = fn(&PlanContext<'_>, &Fusion, InstId) -> Option<Within>;

/// All ways, those first that have the first choice.
const WAYS: [Choose; 4] = [
    |context, fusion, id| depthwise_chain::choose(context, fusion, id).map(Within::Chain),
    |context, fusion, id| attention::choose(context, fusion, id).map(Within::Block),
    |context, fusion, id| separable::choose(context, fusion, id).map(Within::Separable),
    |context, fusion, id| pooling::choose(context, fusion, id).map(Within::Pooled),
];

/// Those of a computation, by the instruction that their kernel ends in. What they take in has no buffer any more, and makes nothing
/// of what it reads itself.
pub fn choose(context: &PlanContext<'_>, fusion: &mut Fusion) -> HashMap<InstId, Within> {
    let order = context.comp.post_order();
    let mut within: HashMap<InstId, Within> = HashMap::new();
    for choose in WAYS {
        for &id in &order {
            let found = choose(context, fusion, id);
            let Some(found) = found.filter(|f| f.taken().iter().all(|taken| !within.contains_key(taken))) else {
                continue;
            };
            found.taken().into_iter().for_each(|taken| fusion.fate[taken] = Fate::Inlined(Some(id)));
            within.insert(id, found);
        }
    }
    within
}
