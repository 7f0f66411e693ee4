//! The register tile of contractions: rows by vectors of columns stay in registers while the contracted loops run; the
//! epilogue follows at once.
use crate::diag::Error;
use crate::schedule::emit::Detail;
use crate::schedule::families::contraction::loops::amx;
use crate::schedule::families::contraction::loops::operands::{Contraction, CoordinateMap};
use crate::schedule::families::contraction::loops::register_block::{
    EqualWidthVectors, RegisterBlock, StackRows, vectorize_bands,
};
use crate::schedule::families::contraction::loops::sums::{
    OperandTypes, TermRange, emit_sum_loops, emit_sums_in_parts, sum_parts,
};
use crate::schedule::families::contraction::loops::words::emit_word_loops;
use crate::schedule::families::contraction::recipe::axis::{ContractionAxis, extent_product};
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::schedule::families::contraction::recipe::register_tile::has_narrow_last_vector;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};

impl<'a> Emitter<'a> {
    /// Emits the sums of a register tile and their epilogue, in blocks that fit the processor's registers.
    pub(in crate::schedule) fn emit_tile(
        &mut self,
        e: &mut KernelBuilder,
        root: KernelRoot<'_>,
        c: &Contraction,
        sum: &[ContractionAxis],
        part: RegisterBlock,
        place: CoordinateMap<'_>,
    ) -> Result<Vec<Stmt>> {
        let mut body = Vec::new();
        for block in self.blocks_for_processor(c, sum, part) {
            body.extend(self.emit_block(e, root, c, sum, block, place)?);
        }
        Ok(body)
    }

    /// Emits the sums of a register block and their epilogue.
    fn emit_block(
        &mut self,
        e: &mut KernelBuilder,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        c: &Contraction,
        sum: &[ContractionAxis],
        part: RegisterBlock,
        place: CoordinateMap<'_>,
    ) -> Result<Vec<Stmt>> {
        let dtype = c.dtype.accumulator_type();
        let rows = part.rows.len() as u64;
        let outputs = extent_product(&c.rows) * extent_product(&c.columns);
        let dtype_of = |buf: BufId| self.program.buffers[buf].dtype;
        let types = OperandTypes { left: dtype_of(c.left), right: dtype_of(part.packed) };
        let buf = out.buffer()?;
        let layout = out.layout(&self.scope.comp.array_shape(id).dims);
        // `r` is the number of the row in the tile
        let mut store = |s: &mut Self, e: &mut KernelBuilder, value: ExprId, r: &Index, row: &Index, column: &Index| {
            e.forget_elements();
            let value = match &part.per_column {
                Some((of_columns, at)) => {
                    let number = e.k.add_load(of_columns.buf, at.add(column));
                    e.k.add_op(of_columns.op, &[value, number], dtype)
                }
                None => value,
            };
            let value = convert(&mut e.k, value, dtype, c.dtype);
            if let Some(apart) = c.sums_apart {
                let index =
                    part.batch.scale(apart as i64).add(&row.scale(extent_product(&c.columns) as i64)).add(column);
                return Ok(Stmt::Store { buf, index, value });
            }
            e.fixed.insert(anchor, value);
            let at = place(&e.k, &part.batch, row, column);
            let value = s.emit_element(e, id, &at)?;
            let index = match &part.near {
                Some((first, stride)) => first.add(&r.scale(*stride as i64)).add(column),
                None => layout.offset_of(&at).add(&part.moved),
            };
            Ok::<Stmt, Error>(Stmt::Store { buf, index, value })
        };
        if self.detail == Detail::Sketch {
            let value = e.k.add_load(c.left, part.a.clone());
            e.k.add_load(part.packed, part.b.clone());
            let first = part.rows.first().map(|row| store(self, e, value, &Index::default(), &row.1, &part.column));
            return first.into_iter().collect();
        }
        let first = part.rows.first().map(|r| r.1.clone()).filter(|_| part.is_in_a_row());
        if let PanelOrder::Tiles(_) | PanelOrder::Transposed(_) = part.order {
            let first = first.ok_or_else(|| Error::internal("schedule", "the rows of a block lie apart"))?;
            return self.sums_on_stack(e, c, sum, &part, first, &mut store);
        }
        let bands = bands(&mut e.k, &part, dtype);
        let (mut body, sums) =
            emit_sums_in_parts(e, &sum_parts(dtype, sum, outputs), &bands, rows, dtype, &mut |e, start, count| {
                let range = TermRange { start, count };
                if let (PanelOrder::Words(products), [all]) = (part.order, &bands[..]) {
                    let loops = emit_word_loops(e, products, c, sum, &range, &part, all);
                    return vec![for_loop(all.lane, LoopKind::Vector, loops)];
                }
                emit_sum_loops(e, types, c, sum, &range, &part, &bands)
            });
        body.extend(match first.filter(|_| part.looped) {
            Some(first) => self.looped_epilogue(e, &part, &bands, &sums, first, &mut store)?,
            None => self.unrolled_epilogue(e, &part, &bands, &sums, &mut store)?,
        });
        Ok(body)
    }

    /// Emits sums of a tile on the stack (by AMX, or along the terms of a right side that is read in place) and their epilogue.
    fn sums_on_stack(
        &mut self,
        e: &mut KernelBuilder,
        c: &Contraction,
        sum: &[ContractionAxis],
        part: &RegisterBlock,
        first: Index,
        store: StoreElement<'_, 'a>,
    ) -> Result<Vec<Stmt>> {
        let (dtype, rows) = (c.dtype.accumulator_type(), part.rows.len() as u64);
        let width = part.columns.next_multiple_of(part.lanes);
        let to = StackRows { buf: self.allocate_on_stack(dtype, rows * width), width };
        let mut body = match part.order {
            PanelOrder::Transposed(apart) => self.sums_of_transposed_right(e, c, sum, part, apart, to),
            PanelOrder::Tiles(product) => amx::emit_amx_sums(e, c.left, product, sum, part, to),
            order => return Err(Error::internal("schedule", format!("{order:?} has no sums on the stack"))),
        };
        let whole = [(0, part.columns / part.lanes, part.lanes)];
        let vectors = row_vectors(&mut e.k, &whole, part.columns);
        let stacked = StackSums { buf: to.buf, rows, first, width, vectors };
        body.push(self.stored_from_stack(e, part, stacked, store)?);
        Ok(body)
    }

    /// Stores the sums of a tile on the stack, and emits the epilogue in loops over them.
    fn looped_epilogue(
        &mut self,
        e: &mut KernelBuilder,
        part: &RegisterBlock,
        bands: &[EqualWidthVectors],
        sums: &[RegId],
        first: Index,
        store: StoreElement<'_, 'a>,
    ) -> Result<Vec<Stmt>> {
        let (width, rows) = (width(bands), part.rows.len() as u64);
        let dtype = bands.first().map_or(DType::F32, |band| e.k.regs[band.acc].dtype);
        let buf = self.allocate_on_stack(dtype, rows * width);
        let mut body = spill_sums(e, bands, sums, rows, buf);
        // constants of the epilogue would be kept where the sums were
        body.push(Stmt::Release);
        let whole: Vec<_> = bands.iter().map(|b| (b.first, b.full_vectors(part.columns), b.lanes)).collect();
        let vectors = row_vectors(&mut e.k, &whole, part.columns);
        body.push(self.stored_from_stack(e, part, StackSums { buf, rows, first, width, vectors }, store)?);
        Ok(body)
    }

    /// Emits the epilogue of sums in registers, unrolled for each vector.
    fn unrolled_epilogue(
        &mut self,
        e: &mut KernelBuilder,
        part: &RegisterBlock,
        bands: &[EqualWidthVectors],
        sums: &[RegId],
        store: StoreElement<'_, 'a>,
    ) -> Result<Vec<Stmt>> {
        let mut whole = Vec::new();
        for (r, (_, row)) in part.rows.iter().enumerate() {
            for (b, band) in bands.iter().enumerate() {
                for v in 0..band.full_vectors(part.columns) {
                    let column = part.column.offset((band.first + v * band.lanes) as i64).add(&Index::var(band.lane));
                    let value = e.k.add_expr(Expr::Reg(sums[b], band.accumulator_index(r, v)));
                    whole.push((b, store(self, e, value, &Index::constant(r as i64), row, &column)?));
                }
            }
        }
        let mut body = vectorize_bands(bands, whole);
        // What is left of the last vector: in narrower ones.
        let Some((band, &acc)) = bands.iter().zip(sums).next_back() else { return Ok(body) };
        let first = band.first + band.full_vectors(part.columns) * band.lanes;
        for cut in narrower_vectors(band.lanes, part.columns - first) {
            let lane = e.k.add_var(cut.lanes);
            let mut inside = Vec::new();
            for (r, (_, row)) in part.rows.iter().enumerate() {
                let value =
                    e.k.add_expr(Expr::Lanes(acc, band.accumulator_index(r, band.count - 1), cut.first, cut.lanes));
                let column = part.column.offset((first + cut.first) as i64).add(&Index::var(lane));
                inside.push(store(self, e, value, &Index::constant(r as i64), row, &column)?);
            }
            body.push(for_loop(lane, LoopKind::Vector, inside));
        }
        Ok(body)
    }
}

/// A function that emits the store of one element of the result, from the value of its sum, the number of its row in the tile, its row
/// and its column.
type StoreElement<'s, 'a> =
    &'s mut dyn FnMut(&mut Emitter<'a>, &mut KernelBuilder, ExprId, &Index, &Index, &Index) -> Result<Stmt>;

/// Sums of a tile on the stack.
struct StackSums {
    buf: BufId,
    rows: u64,
    /// Index of the first row.
    first: Index,
    /// Distance of rows in elements.
    width: u64,
    vectors: Vec<VectorPiece>,
}

impl<'a> Emitter<'a> {
    /// Emits the epilogue of sums on the stack, once for each vector of a row.
    fn stored_from_stack(
        &mut self,
        e: &mut KernelBuilder,
        part: &RegisterBlock,
        sums: StackSums,
        store: StoreElement<'_, 'a>,
    ) -> Result<Stmt> {
        let at = e.k.add_var(sums.rows);
        let row = sums.first.add(&Index::var(at));
        let from = Index::var(at).scale(sums.width as i64);
        let mut inside = Vec::new();
        for piece in sums.vectors {
            let column = piece.first.add(&Index::var(piece.lane));
            let value = e.k.add_load(sums.buf, from.add(&column));
            let stored = store(self, e, value, &Index::var(at), &row, &part.column.add(&column))?;
            let vector = for_loop(piece.lane, LoopKind::Vector, vec![stored]);
            inside.push(match piece.number {
                Some(number) => for_loop(number, LoopKind::Seq, vec![vector]),
                None => vector,
            });
        }
        Ok(for_loop(at, LoopKind::Seq, inside))
    }
}

/// Number of columns of a row of sums, rounded up to whole vectors.
fn width(bands: &[EqualWidthVectors]) -> u64 {
    bands.iter().map(|b| b.count * b.lanes).sum()
}

/// Emits the stores of all sums, row after row, to `stack`.
fn spill_sums(
    e: &mut KernelBuilder,
    bands: &[EqualWidthVectors],
    sums: &[RegId],
    rows: u64,
    stack: BufId,
) -> Vec<Stmt> {
    let mut all = Vec::new();
    for (b, band) in bands.iter().enumerate() {
        for (r, v) in (0..rows).flat_map(|r| (0..band.count).map(move |v| (r, v))) {
            let at = r * width(bands) + band.first + v * band.lanes;
            let value = e.k.add_expr(Expr::Reg(sums[b], band.accumulator_index(r as usize, v)));
            all.push((b, Stmt::Store { buf: stack, index: Index::var(band.lane).offset(at as i64), value }));
        }
    }
    vectorize_bands(bands, all)
}

/// Vectors of a row that one statement stores.
struct VectorPiece {
    /// The loop over the vectors, if there are several.
    number: Option<VarId>,
    lane: VarId,
    /// The first column of the vector.
    first: Index,
}

/// Divides a row of `columns` columns into vectors: the full vectors of `whole` (first column, count, lanes), then narrower ones for the
/// remainder.
fn row_vectors(k: &mut Kernel, whole: &[(u64, u64, u64)], columns: u64) -> Vec<VectorPiece> {
    let mut out = Vec::new();
    for &(first, count, lanes) in whole.iter().filter(|w| w.1 > 0) {
        let number = k.add_var(count);
        let first = Index::var(number).scale(lanes as i64).offset(first as i64);
        out.push(VectorPiece { number: Some(number), lane: k.add_var(lanes), first });
    }
    let Some(&(first, count, lanes)) = whole.last() else { return out };
    let done = first + count * lanes;
    for cut in narrower_vectors(lanes, columns - done) {
        out.push(VectorPiece {
            number: None,
            lane: k.add_var(cut.lanes),
            first: Index::constant((done + cut.first) as i64),
        });
    }
    out
}

/// The narrower vectors that cover the `left` elements after full vectors of `lanes`.
fn narrower_vectors(lanes: u64, left: u64) -> Vec<VectorRun> {
    VectorWidth { lanes: lanes / 2, masks: false }.split(left)
}

/// Divides the columns of a tile into bands of vectors of equal width, with accumulators for all rows.
fn bands(k: &mut Kernel, part: &RegisterBlock, dtype: DType) -> Vec<EqualWidthVectors> {
    let rows = part.rows.len() as u64;
    let mut band = |first: u64, count: u64, lanes: u64| EqualWidthVectors {
        first,
        count,
        lanes,
        lane: k.add_var(lanes),
        acc: k.add_reg(dtype, lanes, rows * count),
    };
    let (whole, rest) = (part.columns / part.lanes, part.columns % part.lanes);
    let narrow = rest.next_power_of_two();
    if part.order != PanelOrder::Plain
        || whole > 0 && !has_narrow_last_vector(part.columns, part.lanes)
        || narrow == part.lanes
    {
        return vec![band(0, part.columns.div_ceil(part.lanes), part.lanes)];
    }
    let last = (whole * part.lanes, 1, narrow);
    let all = [(0, whole, part.lanes), last].into_iter().filter(|b| b.1 > 0);
    all.map(|(first, count, lanes)| band(first, count, lanes)).collect()
}
