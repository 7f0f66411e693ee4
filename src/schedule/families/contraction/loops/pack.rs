//! The right side of a contraction in panels, each read strictly forward by the register tile.
use crate::diag::Error;
use crate::kernel::{Buffer, BufferLocation};
use crate::schedule::families::contraction::loops::operands::{Contraction, ContractionRight};
use crate::schedule::families::contraction::loops::packings::PanelMapping;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product, right_offset};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::{has_batched_right, has_strided_columns};
use crate::schedule::loops::grid::{guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::compressed_constants::CompressedConstant;
use crate::tensor::Tensor;

/// Upper limit of the terms that packing copies of one vector of columns before it goes on to the next columns: a cache line of f32.
const FEW_TERMS: u64 = 16;

/// A packed right side: panels, each `[sum][columns of a panel]`.
#[derive(Clone, Copy, Debug)]
pub struct RightPanels {
    /// The buffer that holds the panels.
    pub buf: BufId,
    /// Distance of terms in a panel, in elements: the number of columns of a packed panel.
    pub term: u64,
    /// Index of the first element of a right side that is read in place; `None` where the right side is packed.
    pub in_place: Option<i64>,
    /// Distance of batches in elements; 0 if all share the panels.
    pub batch: u64,
    /// Distance of panels in elements.
    pub panel: u64,
    /// A scale or a correction of the sums of each column.
    pub per_column: Option<ColumnConstants>,
}

/// A constant for each column that is applied to the column's sums: a scale, or the correction for flipped signs.
#[derive(Clone, Copy, Debug)]
pub struct ColumnConstants {
    /// The buffer of the constants, `[batch][column]`.
    pub buf: BufId,
    /// Operation that applies the constant: `Multiply` by a scale, or `Add` of the correction for flipped signs of the left side.
    pub op: ScalarOp,
}

/// The shape of the panels of a constant right side.
#[derive(Clone, Copy)]
struct PanelShape {
    /// Number of batches with elements of their own.
    batch: u64,
    /// Panels per batch.
    panels: u64,
    /// Columns per panel.
    panel: u64,
    /// The order of elements in a panel.
    order: PanelOrder,
}

/// The memory that a right side is packed into.
struct Destination {
    buf: BufId,
    dtype: DType,
    /// Index of the first element to write.
    first: Index,
}

/// A coordinate along several merged axes.
struct Coordinate<'x> {
    at: &'x Index,
    /// The product of the extents of the axes.
    extent: u64,
}

impl Emitter<'_> {
    /// Packs a right side into panels `[batch][panel][sum][columns of a panel]`, padded with zeros; a constant's panels are in `order`.
    pub(in crate::schedule) fn pack_panels(
        &mut self,
        c: &Contraction,
        sum: &[ContractionAxis],
        panel: u64,
        panels: u64,
        order: PanelOrder,
    ) -> Result<RightPanels> {
        let (n, k) = (extent_product(&c.columns), extent_product(sum));
        let own = has_batched_right(&c.batch);
        let batch = if own { extent_product(&c.batch) } else { 1 };
        let shape = PanelShape { batch, panels, panel, order };
        let dtype = self.right_type(c);
        let made = |buf: BufId, per_column: Option<ColumnConstants>| RightPanels {
            buf,
            term: panel,
            in_place: None,
            batch: if own { panels * k * panel } else { 0 },
            panel: k * panel,
            per_column,
        };
        let total =
            batch.checked_mul(panels * k * panel).ok_or_else(|| Error::internal("schedule", "a panel overflows"))?;
        match &c.right {
            ContractionRight::Constant(t) => {
                let factor = match order {
                    PanelOrder::Words(products) => products.column_correction(),
                    _ => 0,
                };
                let per_column = (factor != 0).then(|| self.column_sums(c, sum, t, batch, factor));
                Ok(made(self.pack_constant(c, sum, t, shape), per_column))
            }
            ContractionRight::Stored(stored) => {
                let buf = self.pack_constant(c, sum, &stored.numbers, shape);
                let per_column = stored.scales.is_some().then(|| self.store_scales(c, sum, stored, batch));
                Ok(made(buf, per_column))
            }
            ContractionRight::Scaled(t, by) => {
                let from = self.pack_constant(c, sum, t, PanelShape { order: PanelOrder::Plain, ..shape });
                let to = self.allocate_buffer(dtype, total);
                let kernel = scale_panels_kernel(from, *by, to, [batch * panels, k, panel], self.vector_lanes(dtype));
                self.launch(kernel);
                Ok(made(to, None))
            }
            ContractionRight::Buffer(from) => {
                let to = self.allocate_buffer(dtype, total);
                let lanes = self.vector_lanes(dtype);
                let source = RunTimeRightSide { c, sum, from: *from, own };
                let few = if has_strided_columns(&c.columns) { FEW_TERMS } else { 1 };
                let dims = [batch, panels, k, panel];
                let kernel = match !has_strided_columns(&c.columns) && n.is_multiple_of(panel) {
                    true => source.copy_kernel(to, dims, lanes),
                    false => source.by_panel(to, dtype, dims, few, lanes),
                };
                self.launch(kernel);
                Ok(made(to, None))
            }
        }
    }

    /// Packs the panels of one batch on the stack; returns them with the statements that pack.
    pub(in crate::schedule) fn pack_on_stack(
        &mut self,
        k: &mut Kernel,
        c: &Contraction,
        from: BufId,
        sum: &[ContractionAxis],
        b: VarId,
        panel: u64,
    ) -> (RightPanels, Vec<Stmt>) {
        let (terms, batch) = (extent_product(sum), extent_product(&c.batch));
        let panels = extent_product(&c.columns).div_ceil(panel);
        let dtype = self.program.buffers[from].dtype;
        let buf = self.allocate_on_stack(dtype, panels * terms * panel);
        let few = if has_strided_columns(&c.columns) { FEW_TERMS } else { 1 };
        let source = RunTimeRightSide { c, sum, from, own: true };
        let dims = [batch, panels, terms, panel];
        let lanes = self.vector_lanes(dtype);
        let ([p, round], body) =
            source.panel_loops(k, &Destination { buf, dtype, first: Index::default() }, b, dims, few, lanes);
        let body = vec![for_loop(p, LoopKind::Seq, vec![for_loop(round, LoopKind::Seq, body)])];
        (RightPanels { buf, term: panel, in_place: None, batch: 0, panel: terms * panel, per_column: None }, body)
    }

    /// Packs a constant right side at compile time.
    fn pack_constant(&mut self, c: &Contraction, sum: &[ContractionAxis], t: &Tensor, shape: PanelShape) -> BufId {
        let PanelShape { batch, panels, panel, order } = shape;
        let (n, k) = (extent_product(&c.columns), extent_product(sum));
        let total = batch * panels * k * panel;
        let of = |axes: &[ContractionAxis], extent: u64| (0..extent).map(|i| right_offset(axes, i)).collect();
        let starts: Vec<i64> = (0..batch).map(|b| c.b0 + right_offset(&c.batch, b)).collect();
        let numbers = PanelMapping { starts, terms: of(sum, k), columns: of(&c.columns, n), panel, panels, order };
        let bytes = self.packings.get_or_pack(t, numbers);
        let place = BufferLocation::Weights(self.weights.add(&bytes));
        self.program.buffers.push(Buffer { dtype: t.dtype, elements: total, place })
    }

    /// Stores the scale of each column's sums as a constant, `[batch][column]`.
    fn store_scales(
        &mut self,
        c: &Contraction,
        sum: &[ContractionAxis],
        stored: &CompressedConstant,
        batch: u64,
    ) -> ColumnConstants {
        let n = extent_product(&c.columns);
        let mut values = Vec::with_capacity((batch * n) as usize);
        for b in 0..batch {
            for column in 0..n {
                let at = c.b0 + right_offset(&c.batch, b) + right_offset(&c.columns, column) + right_offset(sum, 0);
                values.push(stored.scale(at as u64));
            }
        }
        let buf = self.add_constant(&Tensor::from_vec(DType::F32, vec![batch * n], values));
        ColumnConstants { buf, op: ScalarOp::Multiply }
    }

    /// Stores the sum of each column's terms times `factor` as a constant, `[batch][column]`, modulo 2^32.
    fn column_sums(
        &mut self,
        c: &Contraction,
        sum: &[ContractionAxis],
        t: &Tensor,
        batch: u64,
        factor: i32,
    ) -> ColumnConstants {
        let (n, terms) = (extent_product(&c.columns), extent_product(sum));
        let terms: Vec<i64> = (0..terms).map(|i| right_offset(sum, i)).collect();
        let mut values = Vec::with_capacity((batch * n) as usize);
        for b in 0..batch {
            for column in 0..n {
                let first = c.b0 + right_offset(&c.batch, b) + right_offset(&c.columns, column);
                let elements = terms.iter().map(|term| t.get_i64((first + term) as usize).unwrap_or(0));
                values.push((elements.sum::<i64>() as i32).wrapping_mul(factor));
            }
        }
        let buf = self.add_constant(&Tensor::from_vec(DType::S32, vec![batch * n], values));
        ColumnConstants { buf, op: ScalarOp::Add }
    }
}

/// Kernel that multiplies packed panels, `[panels, terms, columns]` in `from`, by the factor of each term in `by`, and stores them in `to`.
fn scale_panels_kernel(from: BufId, by: BufId, to: BufId, dims: [u64; 3], lanes: u64) -> Kernel {
    let mut k = Kernel { label: "scale weights".to_string(), flops: dims.iter().product(), ..Kernel::default() };
    let (vars, at) = loop_variables(&mut k, &dims);
    let index = linear_index(&at, &dims);
    let (weight, factor) = (k.add_load(from, index.clone()), k.add_load(by, at[1].clone()));
    let value = k.add_op(ScalarOp::Multiply, &[weight, factor], DType::F32);
    crate::schedule::loops::nest::set_vectorized_body(&mut k, &vars, &[Stmt::Store { buf: to, index, value }], lanes);
    k
}

/// A right side to pack at run time.
struct RunTimeRightSide<'c> {
    c: &'c Contraction,
    /// The contracted axes, merged.
    sum: &'c [ContractionAxis],
    from: BufId,
    /// Whether each batch has a right side of its own.
    own: bool,
}

impl RunTimeRightSide<'_> {
    /// Index in the unpacked right side of the element at these coordinates.
    fn element_index(&self, k: &Kernel, batch: Coordinate<'_>, term: Coordinate<'_>, column: Coordinate<'_>) -> Index {
        let own_axes: &[ContractionAxis] = if self.own { &self.c.batch } else { &[] };
        let mut source = Index::constant(self.c.b0);
        for (Coordinate { at: x, extent }, axes) in [(batch, own_axes), (term, self.sum), (column, &self.c.columns[..])]
        {
            let sizes: Vec<u64> = axes.iter().map(|x| x.extent).collect();
            for (y, axis) in reshape_coordinates(std::slice::from_ref(x), &[extent], &sizes, &k.vars).iter().zip(axes) {
                source = source.add(&y.scale(axis.b));
            }
        }
        source
    }

    /// The packing kernel for contiguous columns that fill the panels: a copy, term after term.
    fn copy_kernel(&self, to: BufId, dims: [u64; 4], lanes: u64) -> Kernel {
        let mut k = Kernel { label: "pack".to_string(), ..Kernel::default() };
        let (vars, at) = loop_variables(&mut k, &dims);
        let [batch, panels, terms, panel] = dims;
        let column = at[1].scale(panel as i64).add(&at[3]);
        let source = self.element_index(
            &k,
            Coordinate { at: &at[0], extent: batch },
            Coordinate { at: &at[2], extent: terms },
            Coordinate { at: &column, extent: panels * panel },
        );
        let value = k.add_load(self.from, source);
        crate::schedule::loops::nest::set_vectorized_body(
            &mut k,
            &vars,
            &[Stmt::Store { buf: to, index: linear_index(&at, &dims), value }],
            lanes,
        );
        k
    }

    /// The packing kernel for columns of any layout.
    fn by_panel(&self, buf: BufId, dtype: DType, dims: [u64; 4], most: u64, lanes: u64) -> Kernel {
        let mut k = Kernel { label: "pack".to_string(), ..Kernel::default() };
        let b = k.add_var(dims[0]);
        let first = Index::var(b).scale((dims[1] * dims[2] * dims[3]) as i64);
        let ([p, round], inside) = self.panel_loops(&mut k, &Destination { buf, dtype, first }, b, dims, most, lanes);
        set_body_in_chunks(&mut k, &[b, p, round], inside);
        k
    }

    /// Emits the loops that pack the panels of batch `b` into `to`: the variables of the loops over panels and over rounds of at most
    /// `most` terms, and the body. All terms of a round are copied for a vector of columns before the next columns, so that no cache line
    /// is fetched twice.
    fn panel_loops(
        &self,
        k: &mut Kernel,
        to: &Destination,
        b: VarId,
        [batch, panels, terms, panel]: [u64; 4],
        most: u64,
        lanes: u64,
    ) -> ([VarId; 2], Vec<Stmt>) {
        let n = extent_product(&self.c.columns);
        let few = (1..=most).rfind(|f| terms.is_multiple_of(*f)).unwrap_or(1);
        let (p, round, i) = (k.add_var(panels), k.add_var(terms / few), k.add_var(few));
        let term = Index::var(round).scale(few as i64).add(&Index::var(i));
        let row = to.first.add(&term.scale(panel as i64));
        let zero = constant_of_number(k, to.dtype, 0.0);
        let mut inside = Vec::new();
        for share in split_into_tiles(k, p, n, panel) {
            let first = row.add(&share.at.scale((terms * panel) as i64));
            let mut body = Vec::new();
            for (from, to_column) in [(0, share.count), (share.count, panel)] {
                if from == to_column {
                    continue;
                }
                let j = k.add_var(to_column - from);
                let column = Index::var(j).offset(from as i64);
                let value = if from == 0 {
                    let column = share.at.scale(panel as i64).add(&column);
                    let batch = Coordinate { at: &Index::var(b), extent: batch };
                    let term = Coordinate { at: &term, extent: terms };
                    let source = self.element_index(k, batch, term, Coordinate { at: &column, extent: n });
                    k.add_load(self.from, source)
                } else {
                    zero
                };
                let store = Stmt::Store { buf: to.buf, index: first.add(&column), value };
                for (tile, vector) in crate::schedule::loops::nest::split_into_vector_loops(k, &[store], j, lanes) {
                    body.push(for_loop(tile, LoopKind::Seq, vec![for_loop(i, LoopKind::Seq, vec![vector])]));
                }
            }
            inside.extend(guard_by_tiles(k, &[&share], body));
        }
        ([p, round], inside)
    }
}
