//! Chooses producers that are computed inside the kernel of their only consumer, at one of its loop levels: a few rows, tiles or elements
//! at a time, on the stack or in registers.
pub mod attention;
pub mod depthwise_chain;
pub mod pooling;
pub mod separable_convolution;

pub use attention::Attention;
pub use depthwise_chain::{DepthwiseChain, window_span};
pub use pooling::Pooling;
pub use separable_convolution::SeparableConvolution;

use crate::hlo::attrs::ConvDims;
use crate::hlo::{InstId, Op};
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::{Fusion, FusionDecision};
use crate::tensor::DType;
use std::collections::HashMap;

/// Two kernels, of which only the second reads the result of the first.
#[derive(Clone, Copy)]
pub struct KernelPair {
    /// The result of the first kernel, which is the first operand of the second's anchor.
    pub made: InstId,
    /// The anchor of the first kernel.
    pub first: InstId,
    /// The anchor of the second kernel.
    pub anchor: InstId,
}

impl KernelPair {
    /// The pair whose second kernel ends in `last`.
    pub fn ending_in(context: &PlanContext<'_>, fusion: &Fusion, last: InstId) -> Option<KernelPair> {
        let anchor = fusion.anchor[last].unwrap_or(last);
        let made = *context.comp[anchor].operands.first()?;
        let first = fusion.anchor[made].unwrap_or(made);
        let kernels = [last, made].iter().all(|&i| fusion.is_materialised(i) && fusion.rows[i].is_none());
        let alone = context.users[made] == [anchor] && made != context.comp.root;
        (kernels && alone).then_some(KernelPair { made, first, anchor })
    }

    /// Dimension numbers of the first and the second convolution, if both anchors are convolutions, the intermediate is `f32` and their
    /// axes agree.
    fn compatible_convolutions<'l>(&self, context: &PlanContext<'l>, fusion: &Fusion) -> Option<[&'l ConvDims; 2]> {
        let PlanContext { comp, .. } = *context;
        let (Op::Convolution(p), Op::Convolution(d)) = (&comp[self.first].op, &comp[self.anchor].op) else {
            return None;
        };
        let alike = p.output_spatial == d.input_spatial
            && p.output_batch == d.input_batch
            && p.output_feature == d.input_feature;
        let plain = fusion.path[self.first].is_empty() && comp.array_shape(self.made).dtype == DType::F32;
        (alike && plain).then_some([p, d])
    }
}

/// A kernel that computes its own operand (its producer).
#[derive(Clone, Debug)]
pub enum FusedProducer {
    /// A depthwise convolution and the convolution before it: some rows of pixels of one panel of channels at a time.
    DepthwiseChain(DepthwiseChain),
    /// A product and the row product before it (attention): a block of rows at a time.
    Attention(Attention),
    /// A 1x1 convolution and the depthwise convolution before it: a row of pixels at a time.
    Separable(SeparableConvolution),
    /// A max pooling and the convolution before it: the results of a tile at a time.
    Pooling(Pooling),
}

impl FusedProducer {
    /// The text of the fusion in a plan; `name` gives the names of instructions.
    pub fn text<'n>(&self, name: &impl Fn(InstId) -> &'n str) -> String {
        match self {
            FusedProducer::DepthwiseChain(chain) => {
                let DepthwiseChain { producer, bands, window, tile, .. } = chain;
                format!("chain of {} in {bands} bands, {window}, products {tile}", name(*producer))
            }
            FusedProducer::Separable(s) => {
                format!("separable of {}, {}, products {}", name(s.producer), s.window, s.tile)
            }
            FusedProducer::Attention(block) => {
                let (scores, [made, read]) = (name(block.scores), &block.tiles);
                format!("block of {scores} in blocks of {} rows, products {made} and {read}", block.height)
            }
            FusedProducer::Pooling(p) => format!("pooled of {} by {} along {}", name(p.producer), p.count, p.axis),
        }
    }

    /// The instructions that have no buffer because they are fused.
    fn fused_instructions(&self) -> Vec<InstId> {
        match self {
            FusedProducer::DepthwiseChain(chain) => vec![chain.producer],
            FusedProducer::Attention(block) => vec![block.left, block.scores],
            FusedProducer::Separable(separable) => vec![separable.producer],
            FusedProducer::Pooling(pooled) => vec![pooled.producer],
        }
    }
}

/// A function that decides whether the kernel that ends in an instruction computes its producer.
type Choose = fn(&PlanContext<'_>, &Fusion, InstId) -> Option<FusedProducer>;

/// All kinds of producer fusion, in order of precedence.
const WAYS: [Choose; 4] = [
    |context, fusion, id| depthwise_chain::choose(context, fusion, id).map(FusedProducer::DepthwiseChain),
    |context, fusion, id| attention::choose(context, fusion, id).map(FusedProducer::Attention),
    |context, fusion, id| separable_convolution::choose(context, fusion, id).map(FusedProducer::Separable),
    |context, fusion, id| pooling::choose(context, fusion, id).map(FusedProducer::Pooling),
];

/// Chooses the fused producers of a computation, indexed by the root of their consumer. A fused producer loses its buffer, and fuses no
/// producer itself.
pub fn choose(context: &PlanContext<'_>, fusion: &mut Fusion) -> HashMap<InstId, FusedProducer> {
    let order = context.comp.post_order();
    let mut within: HashMap<InstId, FusedProducer> = HashMap::new();
    for choose in WAYS {
        for &id in &order {
            let found = choose(context, fusion, id);
            let Some(found) = found.filter(|f| f.fused_instructions().iter().all(|taken| !within.contains_key(taken)))
            else {
                continue;
            };
            found
                .fused_instructions()
                .into_iter()
                .for_each(|taken| fusion.decision[taken] = FusionDecision::Inlined(Some(id)));
            within.insert(id, found);
        }
    }
    within
}
