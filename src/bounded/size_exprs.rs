//! Expressions over dynamic sizes for the dimensions, attributes and constants of a module, instruction by instruction.
use super::extent::Extent;
use crate::hlo::attrs::{PadDim, SliceDim, WindowDim};
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Module, Op, Shape, SizeRepr};
use std::sync::Arc;

/// Size expressions of one instruction.
#[derive(Clone, Debug, Default)]
pub struct InstExprs {
    /// Dimensions of each array that the instruction returns, depth first.
    pub dims: Vec<Vec<Extent>>,
    /// Numbers in the attributes, in the order of [`attribute_numbers`].
    pub numbers: Vec<Extent>,
    /// Expression of each element of a constant, if an element depends on a size.
    pub elements: Option<Vec<Extent>>,
}

impl InstExprs {
    /// Whether any dimension of the result varies.
    pub fn any_dim_varies(&self) -> bool {
        self.dims.iter().flatten().any(Extent::varies)
    }
    /// Axes of the (first) result along which the size varies.
    pub fn varying_axes(&self) -> Vec<usize> {
        let dims = self.dims.first().map_or(&[][..], Vec::as_slice);
        dims.iter().enumerate().filter(|(_, e)| e.varies()).map(|(i, _)| i).collect()
    }
    /// Dimension `axis` of the (first) result; 0 if there is no such axis.
    pub fn dim(&self, axis: usize) -> Extent {
        self.dims.first().and_then(|d| d.get(axis)).cloned().unwrap_or(Extent::constant(0))
    }
}

/// Live instructions of a computation, operands first, with their size expressions.
#[derive(Clone, Debug)]
pub struct ComputationExprs {
    /// Live instructions in execution order.
    pub order: Vec<InstId>,
    /// Size expressions of each instruction in `order`.
    pub varying: Arc<Vec<InstExprs>>,
}

impl ComputationExprs {
    /// Dimensions of each array of a computation's root; `None` if the root is not live.
    pub fn root_dims<D: SizeRepr>(&self, comp: &Computation<D>) -> Option<&[Vec<Extent>]> {
        let place = self.order.iter().position(|&id| id == comp.root)?;
        Some(&self.varying[place].dims)
    }
    /// Size expressions of a module that has the same instructions in the same order as the module of `forms`.
    pub fn transferred_to_isomorphic(forms: &[ComputationExprs], module: &Module) -> Vec<ComputationExprs> {
        let of = |(form, comp): (&ComputationExprs, CompId)| ComputationExprs {
            order: instruction_order(module, comp),
            varying: form.varying.clone(),
        };
        forms.iter().zip(module.reachable()).map(of).collect()
    }
    /// Size expressions of a module without dynamic sizes: all are constants.
    pub fn constant(module: &Module) -> Vec<ComputationExprs> {
        let one = |shape: &Shape| {
            let dims = |a: &ArrayShape| a.dims.iter().map(|&d| Extent::constant(d as i64)).collect();
            InstExprs { dims: shape.leaves().into_iter().map(dims).collect(), ..InstExprs::default() }
        };
        let of = |comp: CompId| {
            let order = instruction_order(module, comp);
            let comp = &module.comps[comp];
            let varying = order.iter().map(|&id| one(&comp.insts[id].shape)).collect();
            ComputationExprs { order, varying: Arc::new(varying) }
        };
        module.reachable().into_iter().map(of).collect()
    }
}

/// Live instructions of a computation, operands first. Instructions that compute data-dependent sizes come as early as possible.
pub fn instruction_order<D: SizeRepr>(module: &Module<D>, comp: CompId) -> Vec<InstId> {
    let comp = &module.comps[comp];
    let sizes: Vec<InstId> = comp.sizes.iter().map(|s| s.1).collect();
    comp.post_order_with_first(&sizes)
}

/// Reason why no single module serves every size.
#[derive(Debug)]
pub struct SizeObstacle {
    /// Name and op of the TensorFlow node; empty if not known.
    pub node: (String, String),
    /// Text of the reason for messages.
    pub what: String,
}

/// Makes a [`SizeObstacle`] with the reason `what`, at the TensorFlow node from which `inst` was lowered.
pub fn obstacle_at(inst: &Inst, what: impl Into<String>) -> SizeObstacle {
    SizeObstacle { node: (inst.metadata.op_name.clone(), inst.metadata.op_type.clone()), what: what.into() }
}

/// The op with 0 in place of every number that may depend on sizes and of every called computation, so that ops can be compared.
pub fn with_zeroed_sizes(op: &Op) -> Op {
    let mut op = op.clone();
    for called in op.called_computations_mut() {
        *called = CompId(0);
    }
    map_attribute_numbers(&mut op, |_| Some(0));
    if let Some(window) = window_attribute(&mut op) {
        window.iter_mut().for_each(|w| w.pad_high = 0);
    }
    if let Op::Slice(dims) = &mut op {
        dims.iter_mut().for_each(|d| d.limit = 0);
    }
    op
}

/// Window attribute of a convolution, reduce-window or select-and-scatter; `None` for other ops.
pub fn window_attribute<D: SizeRepr>(op: &mut Op<D>) -> Option<&mut Vec<WindowDim<D>>> {
    match op {
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => Some(window),
        Op::Convolution(conv) => Some(&mut conv.window),
        _ => None,
    }
}

/// Numbers in an op's attributes that may depend on sizes. The high padding of windows and the limits of slices are not among them, since
/// they follow from the dimensions of the result.
pub fn attribute_numbers<D: SizeRepr>(op: &Op<D>) -> Vec<D::SignedSize> {
    let mut out = Vec::new();
    let mut op = op.clone();
    map_attribute_numbers(&mut op, |n| {
        out.push(n);
        Some(n)
    });
    out
}

/// Replaces each number of [`attribute_numbers`] by the result of `f`; keeps it where that is `None` or out of range.
fn map_attribute_numbers<D: SizeRepr>(op: &mut Op<D>, mut f: impl FnMut(D::SignedSize) -> Option<D::SignedSize>) {
    match op {
        Op::Slice(dims) => {
            for SliceDim { start, stride, .. } in dims {
                [start, stride].into_iter().for_each(|n| map_unsigned(n, &mut f));
            }
        }
        Op::DynamicSlice(sizes) => sizes.iter_mut().for_each(|n| map_unsigned(n, &mut f)),
        Op::Gather(dims) => dims.slice_sizes.iter_mut().for_each(|n| map_unsigned(n, &mut f)),
        Op::Fft { length, .. } => length.iter_mut().for_each(|n| map_unsigned(n, &mut f)),
        Op::TopK { k, .. } => map_unsigned(k, &mut f),
        Op::Pad(dims) => {
            for PadDim { low, high, interior } in dims {
                *low = f(*low).unwrap_or(*low);
                *high = f(*high).unwrap_or(*high);
                map_unsigned(interior, &mut f);
            }
        }
        _ => map_window(window_attribute(op).map_or(&mut [], Vec::as_mut_slice), f),
    }
}

fn map_unsigned<D: SizeRepr>(n: &mut D, f: &mut impl FnMut(D::SignedSize) -> Option<D::SignedSize>) {
    if let Some(v) = n.signed().and_then(f).and_then(D::of_signed) {
        *n = v;
    }
}

fn map_window<D: SizeRepr>(window: &mut [WindowDim<D>], mut f: impl FnMut(D::SignedSize) -> Option<D::SignedSize>) {
    for w in window {
        map_unsigned(&mut w.size, &mut f);
        map_unsigned(&mut w.stride, &mut f);
        w.pad_low = f(w.pad_low).unwrap_or(w.pad_low);
    }
}

/// Size expressions of a window along one axis.
pub struct WindowExprs<'a> {
    /// Number of elements in a window.
    pub size: &'a Extent,
    /// Distance between the starts of consecutive windows, in elements.
    pub stride: &'a Extent,
    /// Padding before the first element.
    pub low: &'a Extent,
}

/// Size expressions of an instruction's window along `axis`; `None` if it has no window there.
pub fn window_exprs(varying: &InstExprs, axis: usize) -> Option<WindowExprs<'_>> {
    let own = varying.numbers.get(3 * axis..3 * axis + 3)?;
    Some(WindowExprs { size: &own[0], stride: &own[1], low: &own[2] })
}
