//! Maxima of a few neighbours right where a convolution makes them: Winograd's method along one axis has the four results of a
//! tile in registers, of which a window that strides as far as it reaches takes two or four. What the convolution makes then has
//! no memory of its own, and no loops read it again.
use crate::hlo::attrs::WindowDim;
use crate::hlo::{Computation, Fold, InstId, Literal, Op};
use crate::scalar::ScalarOp;
use crate::schedule::families::convolution::recipe::algorithm::ConvolutionAlgorithm;
use crate::schedule::families::producer_fusion::recipe::KernelPair;
use crate::schedule::families::winograd::recipe::points::RESULTS;
use crate::schedule::plan::context::PlanContext;
use crate::schedule::plan::fuse::{CoordinateChange, Fusion};
use crate::tensor::DType;

/// A max pooling whose kernel also computes its operand.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// The instruction that is the operand: a convolution or its epilogue.
    pub producer: InstId,
    /// The convolution.
    pub convolution: InstId,
    /// The axis of the operand that is pooled.
    pub axis: usize,
    /// Number of elements of a window.
    pub count: u64,
    /// The fold that takes the larger of two elements.
    pub fold: Fold,
    /// The value that each maximum starts from.
    pub start: f32,
}

/// Recognizes a pooling that ends in `id` and whose windows divide the tiles of a convolution evenly.
pub fn choose(context: &PlanContext<'_>, fusion: &Fusion, id: InstId) -> Option<Pooling> {
    let PlanContext { module, comp, convolutions, .. } = *context;
    let KernelPair { made: producer, first: convolution, anchor: pool } = KernelPair::ending_in(context, fusion, id)?;
    let Op::ReduceWindow { window, comp: reducer } = &comp[pool].op else { return None };
    let [_, init] = comp[pool].operands[..] else { return None };
    let Op::Convolution(d) = &comp[convolution].op else { return None };
    let in_order = fusion.path[convolution].iter().all(|m| matches!(m, CoordinateChange::Reshape(..)));
    let fold = module.comps[*reducer].as_fold()?;
    let start = splat_value(comp, init)?;
    let is_maximum = fold == Fold::Larger || fold == Fold::By(ScalarOp::Maximum) && start == f32::NEG_INFINITY;
    if !in_order || !is_maximum || comp.array_shape(producer).dtype != DType::F32 {
        return None;
    }
    let ConvolutionAlgorithm::Winograd(w) = &convolutions[&convolution].algorithm else { return None };
    let [along] = &w.along[..] else { return None };
    let (axis, count) = only_axis(window)?;
    let dims = &comp.array_shape(producer).dims;
    let same = same_axis(&comp.array_shape(convolution).dims, d.output_spatial[along.axis], dims, axis);
    let fits = RESULTS.is_multiple_of(count) && dims[axis].is_multiple_of(count) && along.phases == 1;
    (same && fits).then_some(Pooling { producer, convolution, axis, count, fold, start })
}

/// The only axis along which windows have several elements, and the number of these; `None` if windows overlap, leave out elements or have
/// padding.
fn only_axis(window: &[WindowDim]) -> Option<(usize, u64)> {
    let mut wide = window.iter().enumerate().filter(|(_, w)| w.size > 1);
    let (axis, &WindowDim { size, .. }) = wide.next()?;
    let plain = |(i, w): (usize, &WindowDim)| {
        let (size, stride) = if i == axis { (size, size) } else { (1, 1) };
        *w == WindowDim { size, stride, ..WindowDim::default() }
    };
    (wide.next().is_none() && window.iter().enumerate().all(plain)).then_some((axis, size))
}

/// Whether axis `of_x` of shape `x` is axis `of_y` of shape `y`, if the shapes differ only in axes of extent 1.
fn same_axis(x: &[u64], of_x: usize, y: &[u64], of_y: usize) -> bool {
    let long = |dims: &[u64]| dims.iter().copied().filter(|&n| n > 1).collect::<Vec<_>>();
    x[of_x] > 1 && y[of_y] > 1 && long(x) == long(y) && long(&x[..of_x]) == long(&y[..of_y])
}

/// The value of a constant scalar of f32.
fn splat_value(comp: &Computation, id: InstId) -> Option<f32> {
    let Op::Constant(Literal::Array(t)) = &comp[id].op else { return None };
    (t.dims.is_empty() && t.dtype == DType::F32).then(|| t.view::<f32>().first().copied())?
}
