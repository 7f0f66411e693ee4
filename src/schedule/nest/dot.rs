//! `dot` as a contraction: strides of both sides, any axes.
use super::contraction::{Axis, Contraction, Right};
use crate::diag::{Error, Result};
use crate::hlo::{InstId, Literal, Op};
use crate::kernel::index::reshape;
use crate::kernel::{Index, Kernel, Step};
use crate::schedule::{Scheduler, Scope, Value, refuse, stored};

impl<'a> Scheduler<'a> {
    /// `id` is the dot itself or its epilogue.
    pub(super) fn dot(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        anchor: InstId,
        out: &Value,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let comp = scope.comp;
        let inst = &comp[anchor];
        let Op::Dot(d) = &inst.op else { return Err(refuse(comp, id, "")) };
        let (x, y) = (comp.array(inst.operands[0]).clone(), comp.array(inst.operands[1]).clone());
        if comp.array(anchor).elements() == 0 {
            return Ok(());
        }
        let (xs, ys) = (x.strides(), y.strides());
        let pairs = |a: &[usize], b: &[usize]| -> Vec<Axis> {
            a.iter().zip(b).map(|(&i, &j)| Axis { extent: x.dims[i], a: xs[i] as i64, b: ys[j] as i64 }).collect()
        };
        let free = |rank: usize, batch: &[usize], sum: &[usize]| {
            (0..rank).filter(|i| !batch.contains(i) && !sum.contains(i)).collect::<Vec<_>>()
        };
        let batch = pairs(&d.lhs_batch, &d.rhs_batch);
        let rows: Vec<Axis> = free(x.rank(), &d.lhs_batch, &d.lhs_contracting)
            .into_iter()
            .map(|i| Axis { extent: x.dims[i], a: xs[i] as i64, b: 0 })
            .collect();
        let columns: Vec<Axis> = free(y.rank(), &d.rhs_batch, &d.rhs_contracting)
            .into_iter()
            .map(|i| Axis { extent: y.dims[i], a: 0, b: ys[i] as i64 })
            .collect();
        let sizes = |axes: &[Axis]| axes.iter().map(|x| x.extent).collect::<Vec<u64>>();
        let (b_dims, r_dims, c_dims) = (sizes(&batch), sizes(&rows), sizes(&columns));
        let total = |dims: &[u64]| dims.iter().product::<u64>();
        let place = |k: &Kernel, b: &Index, r: &Index, c: &Index| {
            let mut at = Vec::new();
            for (x, dims) in [(b, &b_dims), (r, &r_dims), (c, &c_dims)] {
                at.extend(reshape(std::slice::from_ref(x), &[total(dims)], dims, &k.vars));
            }
            at
        };
        let left = self.value(scope, inst.operands[0])?;
        let right = self.right(scope, inst.operands[1])?;
        let left = left.only()?;
        let c = Contraction {
            dtype: comp.array(anchor).dtype,
            left,
            right,
            a0: 0,
            b0: 0,
            batch,
            rows,
            columns,
            sum: pairs(&d.lhs_contracting, &d.rhs_contracting),
            first_column: 0,
            sums_apart: None,
            direct_flops: None,
        };
        self.contraction(scope, (id, anchor), &c, &place, out, steps)
    }

    /// The right side: its value where it is constant.
    pub(super) fn right(&mut self, scope: &mut Scope<'a>, id: InstId) -> Result<Right> {
        if let Op::Constant(Literal::Array(t)) = &scope.comp[id].op {
            return Ok(Right::Constant(t.clone()));
        }
        if let Some(stored) = stored::find(scope.comp, id) {
            return Ok(Right::Stored(stored));
        }
        let value = self.value(scope, id)?;
        value.leaves.first().map(|&b| Right::Buffer(b)).ok_or_else(|| Error::internal("schedule", "no buffer"))
    }
}
