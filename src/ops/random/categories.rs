//! Categorical random numbers: classes with the softmax of logits as probabilities.
use super::{Draw, counted, from_seed, uniform};
use crate::diag::Result;
use crate::graph::TfType;
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::fact::Fact;
use crate::ops::math::scan::prefix_reduction;
use crate::ops::symbols::InferredDim;
use crate::ops::{LowerCtx, ShapeCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::DType;

/// Inputs of a categorical draw: logits, sizes `[batch, samples, classes]`, and type from_node the result.
pub(super) struct CategoricalInputs {
    pub logits: InstId,
    pub sizes: [Dim; 3],
    pub dtype: DType,
}

impl CategoricalInputs {
    /// Reads inputs `logits` and `num_samples`.
    pub fn from_node(cx: &LowerCtx) -> Result<CategoricalInputs> {
        let (logits, dims) = (cx.arg(0)?, cx.dims(0)?);
        let samples = cx.constant_dim(1)?.max(0);
        let [batch, classes] = dims[..] else {
            return Err(cx.shape_mismatch(format!("logits of {dims:?}, which must be a matrix")));
        };
        let dtype = cx.node.tf_type("output_dtype").and_then(TfType::dtype).unwrap_or(DType::S64);
        Ok(CategoricalInputs { logits, sizes: [batch, samples, classes], dtype })
    }
    /// Whether the result is empty.
    pub fn is_empty(&self) -> bool {
        crate::symbolic::has_zero(&self.sizes)
    }
}

/// Lowers `StatelessMultinomial` like TensorFlow's CPU kernel: the first class whose cumulative sum of exponentials exceeds a
/// uniform fraction of the total, in f64.
pub(super) fn stateless_multinomial(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let asked = CategoricalInputs::from_node(cx)?;
    let CategoricalInputs { logits, sizes: [batch, samples, classes], dtype } = asked;
    if asked.is_empty() {
        let none = cx.b.full(dtype, &[batch, samples], 0.0);
        return cx.one_output(none);
    }
    let seed = cx.arg(2)?;
    let generator = from_seed(cx, seed)?;
    let draw = Draw { dtype: DType::F64, dims: vec![batch, samples], count: counted(&[batch, samples])?, bounds: 0 };
    let u = uniform(cx, &generator, &draw)?;
    let u = cx.b.reshape(u, &[batch, samples]);
    let sums = sums(cx, logits);
    let b = &mut *cx.b;
    let whole = [batch, samples, classes];
    let last = b.slice_axis(sums, 1, classes - 1, classes);
    let total = b.broadcast_to(last, &[batch, samples]);
    let wanted = b.mul(u, total);
    let wanted = b.broadcast(wanted, &whole, &[0, 1]);
    let sums = b.broadcast(sums, &whole, &[0, 2]);
    let before = b.compare(Direction::Le, sums, wanted);
    let before = b.convert(before, dtype);
    let zero = b.scalar(dtype, 0.0);
    let index = b.reduce(before, zero, ScalarOp::Add, &[2]);
    cx.one_output(index)
}

/// Cumulative sums of e^(logit - maximum) over the classes; logits that are not finite count as 0.
fn sums(cx: &mut LowerCtx, logits: InstId) -> InstId {
    let b = &mut *cx.b;
    let logits = b.convert(logits, DType::F64);
    let dims = b.dims(logits).to_vec();
    let finite = b.unary(ScalarOp::IsFinite, logits);
    let lowest = b.full_like(logits, f64::MIN);
    let known = b.select(finite, logits, lowest);
    let least = b.scalar(DType::F64, f64::MIN);
    let largest = b.reduce(known, least, ScalarOp::Maximum, &[1]);
    let largest = b.broadcast(largest, &dims, &[0]);
    let below = b.sub(logits, largest);
    let e = b.unary(ScalarOp::Exp, below);
    let zero = b.full_like(e, 0.0);
    let e = b.select(finite, e, zero);
    let add = b.scalar_computation(ScalarOp::Add, DType::F64);
    prefix_reduction(cx, e, 1, add, 0.0)
}

/// Shape function: a row of samples for each row of logits.
pub(super) fn categorical_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (logits, samples) = (cx.dims_of_rank(0, 2)?, cx.size_from_input(1));
    let dims: Vec<InferredDim> = vec![logits[0], samples];
    let dtype = cx.attr_type("output_dtype").or(crate::ops::shape::S64);
    cx.one_output(dtype, dims)
}
