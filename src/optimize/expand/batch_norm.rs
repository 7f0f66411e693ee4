//! Batch norm with sums over all dimensions but the channel's. Narrow floats are computed in `f32`.
use super::expand_with;
use crate::diag::Result;
use crate::hlo::{Builder, InstId, Module, Op};
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Replaces `batch-norm-training`, `-inference` and `-grad`.
pub fn expand(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match *editor.op(id) {
        Op::BatchNormTraining { epsilon_bits, feature_index } => {
            expand_with(editor, id, |b, o| Some(Norm::new(b, o, epsilon_bits, feature_index).expand_training(b, o)))
        }
        Op::BatchNormInference { epsilon_bits, feature_index } => {
            expand_with(editor, id, |b, o| Some(Norm::new(b, o, epsilon_bits, feature_index).expand_inference(b, o)))
        }
        Op::BatchNormGrad { epsilon_bits, feature_index } => {
            expand_with(editor, id, |b, o| Some(Norm::new(b, o, epsilon_bits, feature_index).expand_grad(b, o)))
        }
        _ => Ok(None),
    })
}

/// Types, dimensions, feature axis and epsilon of a batch normalization, for all three ops.
struct Norm {
    stored: DType,
    wide: DType,
    dims: Vec<u64>,
    axis: usize,
    epsilon: f64,
}

impl Norm {
    fn new(b: &Builder, operands: &[InstId], epsilon_bits: u32, axis: usize) -> Norm {
        let stored = b.dtype(operands[0]);
        let wide = if stored == DType::F64 { DType::F64 } else { DType::F32 };
        let epsilon = f64::from(f32::from_bits(epsilon_bits));
        Norm { stored, wide, dims: b.dims(operands[0]).to_vec(), axis, epsilon }
    }
    fn widen(&self, b: &mut Builder, x: InstId) -> InstId {
        b.convert(x, self.wide)
    }
    fn narrow(&self, b: &mut Builder, x: InstId) -> InstId {
        b.convert(x, self.stored)
    }
    /// Broadcasts one number per channel to every element.
    fn broadcast_channels(&self, b: &mut Builder, x: InstId) -> InstId {
        b.broadcast(x, &self.dims, &[self.axis])
    }
    /// The sum of each channel.
    fn sum(&self, b: &mut Builder, x: InstId) -> InstId {
        let axes: Vec<usize> = (0..self.dims.len()).filter(|&d| d != self.axis).collect();
        let zero = b.scalar(self.wide, 0.0);
        b.reduce(x, zero, ScalarOp::Add, &axes)
    }
    /// The mean of each channel.
    fn mean(&self, b: &mut Builder, x: InstId) -> InstId {
        let sum = self.sum(b, x);
        let count = self.dims.iter().product::<u64>() / self.dims[self.axis].max(1);
        let count = b.full_like(sum, count as f64);
        b.div(sum, count)
    }
    /// 1 / sqrt(variance + epsilon).
    fn root(&self, b: &mut Builder, variance: InstId) -> InstId {
        let epsilon = b.full_like(variance, self.epsilon);
        let sum = b.add(variance, epsilon);
        b.unary(ScalarOp::Rsqrt, sum)
    }
    fn subtract_mean(&self, b: &mut Builder, x: InstId, mean: InstId) -> InstId {
        let mean = self.broadcast_channels(b, mean);
        b.sub(x, mean)
    }
    /// (x - mean) · root · scale + offset.
    fn normalize(&self, b: &mut Builder, [x, scale, offset, mean, variance]: [InstId; 5]) -> InstId {
        let centred = self.subtract_mean(b, x, mean);
        let root = self.root(b, variance);
        let root = self.broadcast_channels(b, root);
        let (scale, offset) = (self.broadcast_channels(b, scale), self.broadcast_channels(b, offset));
        let unit = b.mul(centred, root);
        let scaled = b.mul(unit, scale);
        let y = b.add(scaled, offset);
        self.narrow(b, y)
    }
    fn expand_training(&self, b: &mut Builder, operands: &[InstId]) -> InstId {
        let [x, scale, offset] = [0, 1, 2].map(|i| self.widen(b, operands[i]));
        let mean = self.mean(b, x);
        let centred = self.subtract_mean(b, x, mean);
        let squares = b.mul(centred, centred);
        let variance = self.mean(b, squares);
        let y = self.normalize(b, [x, scale, offset, mean, variance]);
        let (mean, variance) = (self.narrow(b, mean), self.narrow(b, variance));
        b.tuple(&[y, mean, variance])
    }
    fn expand_inference(&self, b: &mut Builder, operands: &[InstId]) -> InstId {
        let all = [0, 1, 2, 3, 4].map(|i| self.widen(b, operands[i]));
        self.normalize(b, all)
    }
    fn expand_grad(&self, b: &mut Builder, operands: &[InstId]) -> InstId {
        let [x, scale, mean, variance, dy] = [0, 1, 2, 3, 4].map(|i| self.widen(b, operands[i]));
        let root = self.root(b, variance);
        let centred = self.subtract_mean(b, x, mean);
        let product = b.mul(dy, centred);
        let (d_offset, along) = (self.sum(b, dy), self.sum(b, product));
        let d_scale = b.mul(along, root);
        // scale · root · (dy - mean(dy) - centred · root² · mean(dy · centred))
        let (mean_dy, mean_along) = (self.mean(b, dy), self.mean(b, product));
        let square = b.mul(root, root);
        let slope = b.mul(square, mean_along);
        let (slope, mean_dy) = (self.broadcast_channels(b, slope), self.broadcast_channels(b, mean_dy));
        let part = b.mul(centred, slope);
        let inner = b.sub(dy, mean_dy);
        let inner = b.sub(inner, part);
        let factor = b.mul(scale, root);
        let factor = self.broadcast_channels(b, factor);
        let dx = b.mul(factor, inner);
        let [dx, d_scale, d_offset] = [dx, d_scale, d_offset].map(|v| self.narrow(b, v));
        b.tuple(&[dx, d_scale, d_offset])
    }
}
