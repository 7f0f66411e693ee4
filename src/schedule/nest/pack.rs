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
        let of = |axes: &[Axis], extent: u64| (0..extent).map(|i| offset_of(axes, i)).collect();
        let starts: Vec<i64> = (0..batch).map(|b| c.b0 + offset_of(&c.batch, b)).collect();
        let plan = Numbers { starts, terms: of(sum, k), columns: of(&c.columns, n), panel, panels, order };
        match size {
            1 => plan.copy::<1>(&t.bytes, &mut bytes),
            2 => plan.copy::<2>(&t.bytes, &mut bytes),
            4 => plan.copy::<4>(&t.bytes, &mut bytes),
            8 => plan.copy::<8>(&t.bytes, &mut bytes),
            _ => plan.copy::<16>(&t.bytes, &mut bytes),
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

/// Where the numbers of panels come from: element `start + term + column` of a constant.
struct Numbers {
    starts: Vec<i64>,
    terms: Vec<i64>,
    columns: Vec<i64>,
    panel: u64,
    panels: u64,
    order: Order,
}

impl Numbers {
    /// Copies numbers of `N` bytes; what fills the last panel up stays as it is.
    fn copy<const N: usize>(&self, from: &[u8], to: &mut [u8]) {
        let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
        let panel_numbers = self.terms.len() * self.panel as usize;
        for (b, start) in self.starts.iter().enumerate() {
            for (p, columns) in self.columns.chunks(self.panel as usize).enumerate() {
                let at = (b * self.panels as usize + p) * panel_numbers;
                self.panel(*start, columns, from, &mut to[at..at + panel_numbers]);
            }
        }
    }

    fn panel<const N: usize>(&self, start: i64, columns: &[i64], from: &[[u8; N]], to: &mut [[u8; N]]) {
        let beside = columns.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if let (Order::Plain, true, Some(first)) = (self.order, beside, columns.first()) {
            for (term, to) in self.terms.iter().zip(to.chunks_exact_mut(self.panel as usize)) {
                let at = (start + first + term) as usize;
                to[..columns.len()].copy_from_slice(&from[at..at + columns.len()]);
            }
            return;
        }
        for (lane, column) in columns.iter().enumerate() {
            for (i, term) in self.terms.iter().enumerate() {
                to[self.order.place(i as u64, lane as u64, self.panel) as usize] =
                    from[(start + column + term) as usize];
            }
        }
    }
}
