//! The numbers of a function that follow from its sizes, instruction by instruction.
use super::extent::Extent;
use crate::hlo::attrs::{PadDim, SliceDim, WindowDim};
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Module, Op, Shape, SizeRepr};
use std::sync::Arc;

/// The numbers of one instruction that follow from the sizes.
#[derive(Clone, Debug, Default)]
pub struct Varying {
    /// The sizes of each array that it makes, depth first.
    pub dims: Vec<Vec<Extent>>,
    /// The numbers in its attributes, in the order of [`numbers`].
    pub numbers: Vec<Extent>,
    /// The elements of a constant, where they vary.
    pub elements: Option<Vec<Extent>>,
}

impl Varying {
    /// Whether any axis of what it makes has a size that varies.
    pub fn any(&self) -> bool {
        self.dims.iter().flatten().any(Extent::varies)
    }
    /// The axes of the array that it makes which vary.
    pub fn axes(&self) -> Vec<usize> {
        let dims = self.dims.first().map_or(&[][..], Vec::as_slice);
        dims.iter().enumerate().filter(|(_, e)| e.varies()).map(|(i, _)| i).collect()
    }
    /// The size of axis `axis` of the array that it makes.
    pub fn dim(&self, axis: usize) -> Extent {
        self.dims.first().and_then(|d| d.get(axis)).cloned().unwrap_or(Extent::constant(0))
    }
}

/// The instructions of a computation that count, operands first, and how they vary.
#[derive(Clone, Debug)]
pub struct Form {
    /// The order.
    pub order: Vec<InstId>,
    /// One an instruction of `order`.
    pub varying: Arc<Vec<Varying>>,
}

impl Form {
    /// The sizes of what the root of a computation is, array by array.
    pub fn of_root<D: SizeRepr>(&self, comp: &Computation<D>) -> Option<&[Vec<Extent>]> {
        let place = self.order.iter().position(|&id| id == comp.root)?;
        Some(&self.varying[place].dims)
    }
    /// The forms of a module with the same instructions in the same order as the one of `forms`.
    pub fn of_alike(forms: &[Form], module: &Module) -> Vec<Form> {
        let of = |(form, comp): (&Form, CompId)| Form { order: order(module, comp), varying: form.varying.clone() };
        forms.iter().zip(module.reachable()).map(of).collect()
    }
    /// The forms of a module in which nothing varies.
    pub fn fixed(module: &Module) -> Vec<Form> {
        let one = |shape: &Shape| {
            let dims = |a: &ArrayShape| a.dims.iter().map(|&d| Extent::constant(d as i64)).collect();
            Varying { dims: shape.leaves().into_iter().map(dims).collect(), ..Varying::default() }
        };
        let of = |comp: CompId| {
            let order = order(module, comp);
            let comp = &module.comps[comp];
            let varying = order.iter().map(|&id| one(&comp.insts[id].shape)).collect();
            Form { order, varying: Arc::new(varying) }
        };
        module.reachable().into_iter().map(of).collect()
    }
}

/// The instructions of a computation, operands first; those that are sizes of arrays come before all others.
pub fn order<D: SizeRepr>(module: &Module<D>, comp: CompId) -> Vec<InstId> {
    let comp = &module.comps[comp];
    let sizes: Vec<InstId> = comp.sizes.iter().map(|s| s.1).collect();
    comp.post_order_of(&sizes)
}

/// Why a function is not one for every size.
#[derive(Debug)]
pub struct Departure {
    /// TensorFlow's node, as far as it is known, and its op.
    pub node: (String, String),
    /// The reason, for a message.
    pub what: String,
}

/// A departure at the node that an instruction was lowered from.
pub fn departure(inst: &Inst, what: impl Into<String>) -> Departure {
    Departure { node: (inst.metadata.op_name.clone(), inst.metadata.op_type.clone()), what: what.into() }
}

/// The op without the numbers that may follow from sizes and without the names of what it calls.
pub fn plain(op: &Op) -> Op {
    let mut op = op.clone();
    for called in op.called_mut() {
        *called = CompId(0);
    }
    set_numbers(&mut op, |_| Some(0));
    if let Some(window) = window_of(&mut op) {
        window.iter_mut().for_each(|w| w.pad_high = 0);
    }
    if let Op::Slice(dims) = &mut op {
        dims.iter_mut().for_each(|d| d.limit = 0);
    }
    op
}

/// The window that an op goes over an array with.
pub fn window_of<D: SizeRepr>(op: &mut Op<D>) -> Option<&mut Vec<WindowDim<D>>> {
    match op {
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => Some(window),
        Op::Convolution(conv) => Some(&mut conv.window),
        _ => None,
    }
}

/// The numbers in an op's attributes that may follow from sizes. What windows are padded with behind an array and where slices end are none
/// of them: the sizes of the result say how many windows and elements there are.
pub fn numbers<D: SizeRepr>(op: &Op<D>) -> Vec<D::Signed> {
    let mut out = Vec::new();
    let mut op = op.clone();
    set_numbers(&mut op, |n| {
        out.push(n);
        Some(n)
    });
    out
}

/// Gives each of those numbers the value that `f` says; one that does not fit stays.
fn set_numbers<D: SizeRepr>(op: &mut Op<D>, mut f: impl FnMut(D::Signed) -> Option<D::Signed>) {
    match op {
        Op::Slice(dims) => {
            for SliceDim { start, stride, .. } in dims {
                [start, stride].into_iter().for_each(|n| unsigned(n, &mut f));
            }
        }
        Op::DynamicSlice(sizes) => sizes.iter_mut().for_each(|n| unsigned(n, &mut f)),
        Op::Gather(dims) => dims.slice_sizes.iter_mut().for_each(|n| unsigned(n, &mut f)),
        Op::Fft { length, .. } => length.iter_mut().for_each(|n| unsigned(n, &mut f)),
        Op::TopK { k, .. } => unsigned(k, &mut f),
        Op::Pad(dims) => {
            for PadDim { low, high, interior } in dims {
                *low = f(*low).unwrap_or(*low);
                *high = f(*high).unwrap_or(*high);
                unsigned(interior, &mut f);
            }
        }
        _ => set_window(window_of(op).map_or(&mut [], Vec::as_mut_slice), f),
    }
}

fn unsigned<D: SizeRepr>(n: &mut D, f: &mut impl FnMut(D::Signed) -> Option<D::Signed>) {
    if let Some(v) = n.signed().and_then(f).and_then(D::of_signed) {
        *n = v;
    }
}

fn set_window<D: SizeRepr>(window: &mut [WindowDim<D>], mut f: impl FnMut(D::Signed) -> Option<D::Signed>) {
    for w in window {
        unsigned(&mut w.size, &mut f);
        unsigned(&mut w.stride, &mut f);
        w.pad_low = f(w.pad_low).unwrap_or(w.pad_low);
    }
}

/// The numbers of each axis of a window as [`numbers`] has them.
pub struct WindowNumbers<'a> {
    /// The size of the window.
    pub size: &'a Extent,
    /// Elements from the start of a window to that of the next one.
    pub stride: &'a Extent,
    /// Elements before.
    pub low: &'a Extent,
}

/// The window numbers of axis `axis`.
pub fn window(varying: &Varying, axis: usize) -> Option<WindowNumbers<'_>> {
    let own = varying.numbers.get(3 * axis..3 * axis + 3)?;
    Some(WindowNumbers { size: &own[0], stride: &own[1], low: &own[2] })
}
