//! The right side of a contraction in panels, each read strictly forward by the register tile.
use super::contraction::{Axis, Contraction, Panels, Right, offset_of, product};
use super::pairs::Order;
use crate::diag::{Error, Result};
use crate::kernel::index::{linear, reshape};
use crate::kernel::{BufId, Buffer, Expr, Index, Kernel, Place, Step, Stmt, VarId};
use crate::scalar::ScalarOp;
use crate::schedule::Scheduler;
use crate::schedule::stored::Stored;
use crate::tensor::{DType, Tensor};
use bytes::Bytes;

impl Scheduler<'_> {
    /// Panels `[batch][panel][sum][columns of a panel]`, filled up with zeros; the numbers of a constant panel lie
    /// in `order`.
    pub(super) fn pack(
        &mut self,
        c: &Contraction,
        sum: &[Axis],
        (panel, panels, order): (u64, u64, Order),
        steps: &mut Vec<Step>,
    ) -> Result<Panels> {
        let (n, k) = (product(&c.columns), product(sum));
        let own = c.batch.iter().any(|x| x.b != 0 && x.extent > 1);
        let batch = if own { product(&c.batch) } else { 1 };
        let dtype = match &c.right {
            Right::Constant(t) => t.dtype,
            Right::Stored(s) => s.numbers.dtype,
            Right::Buffer(from) => self.program.buffers[*from].dtype,
        };
        let made = |buf: BufId, scales: Option<BufId>| Panels {
            buf,
            batch: if own { panels * k * panel } else { 0 },
            panel: k * panel,
            scales,
        };
        let total =
            batch.checked_mul(panels * k * panel).ok_or_else(|| Error::internal("schedule", "a panel overflows"))?;
        match &c.right {
            Right::Constant(t) => Ok(made(self.packed(c, sum, t, (batch, panels, panel, order)), None)),
            Right::Stored(stored) => {
                let buf = self.packed(c, sum, &stored.numbers, (batch, panels, panel, order));
                let scales = stored.scales.is_some().then(|| self.scales(c, sum, stored, batch));
                Ok(made(buf, scales))
            }
            Right::Buffer(from) => {
                let to = self.buffer(dtype, total);
                let mut kern = Kernel { label: "pack".to_string(), ..Kernel::default() };
                let dims = [batch, panels, k, panel];
                let vars: Vec<VarId> = dims.iter().map(|&d| kern.var(d)).collect();
                let at: Vec<Index> = vars.iter().map(|&v| Index::var(v)).collect();
                let column = at[1].scale(panel as i64).add(&at[3]);
                let held = column.limit(0, n as i64 - 1, &kern.vars);
                let mut source = Index::constant(c.b0);
                let own_axes: &[Axis] = if own { &c.batch } else { &[] };
                let groups = [(&at[0], batch, own_axes), (&at[2], k, sum), (&held, n, &c.columns[..])];
                for (x, extent, axes) in groups {
                    let sizes: Vec<u64> = axes.iter().map(|x| x.extent).collect();
                    for (y, axis) in reshape(std::slice::from_ref(x), &[extent], &sizes, &kern.vars).iter().zip(axes) {
                        source = source.add(&y.scale(axis.b));
                    }
                }
                let mut value = kern.expr(Expr::Load(*from, source));
                if n % panel > 0 {
                    let inside = kern.expr(Expr::Within(column, 0, n as i64));
                    let zero = super::number(&mut kern, dtype, 0.0);
                    value = kern.op(ScalarOp::Select, &[inside, value, zero], dtype);
                }
                let lanes = self.lanes(dtype);
                super::pointwise::nest(
                    &mut kern,
                    &vars,
                    &[Stmt::Store { buf: to, index: linear(&at, &dims), value }],
                    lanes,
                );
                self.launch(kern, steps);
                Ok(made(to, None))
            }
        }
    }

    /// The panels of a constant.
    fn packed(
        &mut self,
        c: &Contraction,
        sum: &[Axis],
        t: &Tensor,
        (batch, panels, panel, order): (u64, u64, u64, Order),
    ) -> BufId {
        let (n, k, size) = (product(&c.columns), product(sum), t.dtype.bytes());
        let total = batch * panels * k * panel;
        let mut bytes = vec![0u8; total as usize * size];
        let of_sum: Vec<i64> = (0..k).map(|i| offset_of(sum, i)).collect();
        let of_column: Vec<i64> = (0..n).map(|i| offset_of(&c.columns, i)).collect();
        for b in 0..batch {
            let start = c.b0 + offset_of(&c.batch, b);
            for (column, of) in of_column.iter().enumerate() {
                let (p, lane) = (column as u64 / panel, column as u64 % panel);
                for (i, sum) in of_sum.iter().enumerate() {
                    let inside = order.place(i as u64, lane, panel);
                    let to = ((b * panels + p) * k * panel + inside) as usize * size;
                    let from = (start + of + sum) as usize * size;
                    bytes[to..to + size].copy_from_slice(&t.bytes[from..from + size]);
                }
            }
        }
        let place = Place::Weights(self.weights.add(&Bytes::from(bytes)));
        self.program.buffers.push(Buffer { dtype: t.dtype, elements: total, place })
    }

    /// What the sums of each column are to be multiplied by, `[batch][column]`.
    fn scales(&mut self, c: &Contraction, sum: &[Axis], stored: &Stored, batch: u64) -> BufId {
        let n = product(&c.columns);
        let mut values = Vec::with_capacity((batch * n) as usize);
        for b in 0..batch {
            for column in 0..n {
                let at = c.b0 + offset_of(&c.batch, b) + offset_of(&c.columns, column) + offset_of(sum, 0);
                values.push(stored.scale(at as u64));
            }
        }
        self.constant(&Tensor::from_vec(DType::F32, vec![batch * n], values))
    }
}
