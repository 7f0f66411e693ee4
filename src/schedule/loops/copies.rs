//! Small kernels that move elements or clear them.
use crate::hlo::ArrayShape;
use crate::kernel::{BufId, Index, Kernel, LoopKind, Stmt, VarId};
use crate::schedule::loops::idioms::{constant_of_number, for_loop};
use crate::schedule::loops::nest;
use crate::schedule::memory::layout::Layout;
use std::ops::Range;

/// A kernel that copies `elements` elements.
pub(in crate::schedule) fn copy_kernel(from: BufId, to: BufId, elements: u64, lanes: u64) -> Kernel {
    let mut k = Kernel { label: "copy".to_string(), ..Kernel::default() };
    let v = k.add_var(elements);
    let value = k.add_load(from, Index::var(v));
    nest::set_vectorized_body(&mut k, &[v], &[Stmt::Store { buf: to, index: Index::var(v), value }], lanes);
    k
}

/// The kernel that zeroes the margins of an array of `shape` with this layout.
pub(in crate::schedule) fn clear_margin_kernel(buf: BufId, shape: &ArrayShape, layout: &Layout, lanes: u64) -> Kernel {
    let mut k = Kernel { label: "margin".to_string(), ..Kernel::default() };
    let value = constant_of_number(&mut k, shape.dtype, 0.0);
    let mut body = Vec::new();
    let mut clear = |k: &mut Kernel, mut vars: Vec<VarId>, first: Index, gap: &Range<u64>| {
        let v = k.add_var(gap.end - gap.start);
        vars.push(v);
        let index = first.offset(gap.start as i64).add(&Index::var(v));
        nest::set_vectorized_body(k, &vars, &[Stmt::Store { buf, index, value }], lanes);
        let inside = std::mem::take(&mut k.body);
        match k.chunks.take() {
            Some(v) => body.push(for_loop(v, LoopKind::Seq, inside)),
            None => body.extend(inside),
        }
    };
    let gaps = layout.margin_gaps(&shape.dims);
    for gap in gaps.around.iter().filter(|gap| !gap.is_empty()) {
        clear(&mut k, vec![], Index::default(), gap);
    }
    for (axis, gap) in &gaps.between {
        let vars: Vec<VarId> =
            shape.dims[..*axis].iter().chain([&(shape.dims[*axis] - 1)]).map(|&n| k.add_var(n)).collect();
        let strides = vars.iter().zip(&layout.strides);
        let first = strides.fold(Index::constant(layout.origin), |at, (&v, &s)| at.add(&Index::var(v).scale(s)));
        clear(&mut k, vars, first, gap);
    }
    k.body = body;
    k
}
