//! Maxima of a few neighbours right where a convolution makes them: Winograd's method along one axis has the four results of a
//! tile in registers, of which a window that strides as far as it reaches takes two or four. What the convolution makes then has
//! no memory of its own, and no loops read it again.
use super::element::Elements;
use super::simple_fold;
use crate::diag::Result;
use crate::hlo::attrs::WindowDim;
use crate::hlo::{Computation, InstId, Literal, Op};
use crate::kernel::{ExprId, Index, Step};
use crate::scalar::ScalarOp;
use crate::schedule::fuse::{Fate, Move, Plan, forward};
use crate::schedule::points::RESULTS;
use crate::schedule::winograd1d;
use crate::schedule::{Scheduler, Scope, Value, refuse};
use crate::tensor::DType;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;

/// A window of maxima whose kernel makes its operand too.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The instruction that is its operand: a convolution or its epilogue.
    producer: InstId,
    /// The convolution.
    convolution: InstId,
    /// The axis of the operand along which it takes several elements.
    axis: usize,
    /// How many.
    count: u64,
}

impl<'a> Scheduler<'a> {
    /// The windows of `comp` that are done this way; what they take in has no buffer any more.
    pub(in crate::schedule) fn pools(&self, comp: &Computation, plan: &mut Plan) -> HashMap<InstId, Pooled> {
        let users = comp.users();
        let mut pools = HashMap::new();
        for id in comp.post_order() {
            if let Some(pooled) = self.pooled_of(comp, plan, &users, id) {
                plan.fate[pooled.producer] = Fate::Inlined(Some(id));
                pools.insert(id, pooled);
            }
        }
        pools
    }

    /// The window that `id` is or ends in, where it takes whole parts of the tiles of a convolution.
    fn pooled_of(
        &self,
        comp: &Computation,
        plan: &Plan,
        users: &IdVec<InstId, Vec<InstId>>,
        id: InstId,
    ) -> Option<Pooled> {
        let pool = plan.anchor[id].unwrap_or(id);
        let Op::ReduceWindow { window, comp: reducer } = &comp[pool].op else { return None };
        let [producer, init] = comp[pool].operands[..] else { return None };
        let convolution = plan.anchor[producer].unwrap_or(producer);
        let Op::Convolution(d) = &comp[convolution].op else { return None };
        let kernels = [id, producer].iter().all(|&i| plan.fate[i] == Fate::Materialised && plan.rows[i].is_none());
        let alone = users[producer] == [pool] && producer != comp.root;
        let in_order = plan.path[convolution].iter().all(|m| matches!(m, Move::Reshape(..)));
        let largest = simple_fold(&self.module.comps[*reducer]) == Some(ScalarOp::Maximum) && is_least(comp, init);
        if !kernels || !alone || !in_order || !largest || comp.array(producer).dtype != DType::F32 {
            return None;
        }
        let w = winograd1d::choose(comp, convolution, self.target)?;
        let (axis, count) = only_axis(window)?;
        let dims = &comp.array(producer).dims;
        let same = same_axis((&comp.array(convolution).dims, d.output_spatial[w.axis]), (dims, axis));
        let fits = RESULTS.is_multiple_of(count) && dims[axis].is_multiple_of(count) && w.phases == 1;
        (same && fits).then_some(Pooled { producer, convolution, axis, count })
    }

    /// The kernels of `id`, which ends in a window that is done this way, and the convolution that they do.
    pub(super) fn pooled(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<InstId> {
        let comp = scope.comp;
        let anchor = scope.pools.get(&id).ok_or_else(|| refuse(comp, id, ""))?.convolution;
        let Op::Convolution(d) = &comp[anchor].op else { return Err(refuse(comp, id, "")) };
        let w = winograd1d::choose(comp, anchor, self.target).ok_or_else(|| refuse(comp, id, ""))?;
        let (left, at) = self.padded(scope, (id, anchor), comp[anchor].operands[0], d, steps)?;
        self.winograd_1d(scope, (id, anchor), d, &w, (left, &at), out, steps)?;
        Ok(anchor)
    }

    /// Takes element `at` of the operand; with the last one of a window, the place and the value that the kernel of `id` makes of it.
    pub(super) fn of_window(
        &mut self,
        scope: &mut Scope<'a>,
        e: &mut Elements,
        (id, pooled): (InstId, &Pooled),
        taken: &mut Vec<ExprId>,
        at: &[Index],
    ) -> Result<Option<(Vec<Index>, ExprId)>> {
        taken.push(self.element(scope, e, pooled.producer, at)?);
        if (taken.len() as u64) < pooled.count {
            return Ok(None);
        }
        let mut largest = taken[0];
        for x in taken.drain(..).skip(1) {
            largest = e.k.op(ScalarOp::Maximum, &[largest, x], DType::F32);
        }
        let mut at = at.to_vec();
        at[pooled.axis] = at[pooled.axis].div(pooled.count as i64, &e.k.vars);
        let pool = scope.plan.anchor[id].unwrap_or(id);
        e.fixed.insert(pool, largest);
        let at = forward(&scope.plan.path[pool], &at, &e.k.vars);
        let value = self.element(scope, e, id, &at)?;
        e.fixed.remove(&pool);
        Ok(Some((at, value)))
    }
}

/// The one axis along which a window takes several elements, each once, and how many.
fn only_axis(window: &[WindowDim]) -> Option<(usize, u64)> {
    let mut wide = window.iter().enumerate().filter(|(_, w)| w.size > 1);
    let (axis, &WindowDim { size, .. }) = wide.next()?;
    let plain = |(i, w): (usize, &WindowDim)| {
        let (size, stride) = if i == axis { (size, size) } else { (1, 1) };
        *w == WindowDim { size, stride, ..WindowDim::default() }
    };
    (wide.next().is_none() && window.iter().enumerate().all(plain)).then_some((axis, size))
}

/// Whether two shapes of the same elements in the same order have the same axis, but for axes of one element.
fn same_axis((x, of_x): (&[u64], usize), (y, of_y): (&[u64], usize)) -> bool {
    let long = |dims: &[u64]| dims.iter().copied().filter(|&n| n > 1).collect::<Vec<_>>();
    x[of_x] > 1 && y[of_y] > 1 && long(x) == long(y) && long(&x[..of_x]) == long(&y[..of_y])
}

/// Whether a constant is below all numbers.
fn is_least(comp: &Computation, id: InstId) -> bool {
    let Op::Constant(Literal::Array(t)) = &comp[id].op else { return false };
    t.dims.is_empty() && t.get_f64(0) == Some(f64::NEG_INFINITY)
}
