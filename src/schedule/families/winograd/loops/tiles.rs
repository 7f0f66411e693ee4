//! Tiles of Winograd's method, transformed and transformed back.
use super::WinogradConvolution;
use super::positions::PaddedAxisPositions;
use super::transform::{PointMemory, TransformEmitter};
use crate::schedule::families::winograd::recipe::points::RESULTS;
use crate::schedule::families::winograd::recipe::{InputLayout, TransformedAxis, Winograd};
use crate::schedule::loops::grid::{AxisTile, guard_by_tiles, set_body_in_chunks, split_into_tiles};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::fuse::root_coordinates;

/// The position of a tile of results.
pub(super) struct ResultTile {
    /// Coordinates along the axes without the method.
    pub at: Vec<Index>,
    /// Phase of the dilated convolution that the tile belongs to, along each axis of the method.
    pub phases: Vec<Index>,
    /// The tile number along each axis of the method.
    pub tiles: Vec<VarId>,
}

impl ResultTile {
    /// The position that corresponds to `loops`, which go over all tiles.
    pub(super) fn new(k: &Kernel, conv: &WinogradConvolution<'_>, rank: usize, loops: &[VarId]) -> ResultTile {
        let WinogradConvolution { d, w, .. } = *conv;
        let (vars, tiles) = loops.split_at(loops.len() - w.along.len());
        let (vars, phases) = vars.split_at(vars.len() - w.along.len());
        let mut at = vec![Index::default(); rank];
        at[d.output_batch] = Index::var(vars[0]);
        for (i, &v) in w.other_axes().zip(&vars[1..]) {
            at[d.output_spatial[i]] = Index::var(v);
        }
        ResultTile { at, phases: phases.iter().map(|&v| phase_of(k, v)).collect(), tiles: tiles.to_vec() }
    }
}

/// The phase as an index: the loop variable `v`, or 0 if there is only one phase.
fn phase_of(k: &Kernel, v: VarId) -> Index {
    if k.vars[v] == 1 { Index::default() } else { Index::var(v) }
}

/// The position at which a tile begins in the padded input, along an axis of the method.
pub(super) fn tile_start(along: &TransformedAxis, tile: &Index, phase: &Index) -> Index {
    tile.scale((RESULTS * along.phases) as i64).add(phase)
}

/// The row-major number of the iteration of `loops`.
pub(super) fn iteration_number(k: &Kernel, loops: &[VarId]) -> Index {
    let all = loops.iter().filter(|&&v| k.vars[v] > 1);
    all.fold(Index::default(), |number, &v| number.scale(k.vars[v] as i64).add(&Index::var(v)))
}

/// A range of columns of a result.
pub(super) struct ColumnRange {
    /// The first column.
    pub first: Index,
    /// The number of columns.
    pub count: u64,
}

/// The input of a convolution, transformed to all points.
pub(super) struct TransformedInputs {
    /// The buffer of the transformed inputs.
    pub buf: BufId,
    /// The layout of the tiles in the buffer.
    pub layout: InputLayout,
}

/// The extents of an array whose axes are transformed one after another.
struct TransformExtents(Vec<u64>);

impl TransformExtents {
    fn count(&self) -> u64 {
        self.0.iter().product()
    }
    fn stride(&self, axis: usize) -> u64 {
        self.0[axis + 1..].iter().product()
    }
    /// The coordinate along an axis of the element with number `at`.
    fn coordinate(&self, at: u64, axis: usize) -> u64 {
        at / self.stride(axis) % self.0[axis]
    }
    /// The lines along an axis, as element numbers.
    fn lines(&self, axis: usize) -> Vec<Vec<u64>> {
        let firsts = (0..self.count()).filter(|&at| self.coordinate(at, axis) == 0);
        firsts.map(|first| (0..self.0[axis]).map(|i| first + i * self.stride(axis)).collect()).collect()
    }
}

impl<'a> Emitter<'a> {
    /// Launches the kernel that transforms each tile of the input.
    pub(super) fn emit_winograd_inputs(&mut self, conv: &WinogradConvolution<'_>) -> TransformedInputs {
        let (w, inputs) = (conv.w, InputLayout::new(conv.w));
        let buf = self.allocate_buffer(w.types.points, w.point_count() * inputs.point);
        let mut k = Kernel {
            label: format!("tiles of {}", instruction_label(self.scope.comp, conv.ids.0)),
            ..Kernel::default()
        };
        let loops: Vec<VarId> = inputs.loops.iter().map(|&(n, _)| k.add_var(n)).collect();
        let strides = inputs.loops.iter().map(|(_, stride)| *stride as i64);
        let several = loops.iter().zip(strides).filter(|(v, _)| k.vars[**v] > 1);
        let to = several.fold(Index::default(), |to, (&v, s)| to.add(&Index::var(v).scale(s)));
        let position = |_, v: VarId| Index::var(v);
        let first = conv.tile_origin(&k, &loops, position);
        let body = conv.emit_tile_inputs(
            &mut k,
            self.processor_lanes(w.types.points),
            loops[0],
            &first,
            &PointMemory { buf, first: to, apart: inputs.point },
        );
        k.flops = w.transform_flops()[0] * w.input_tiles() * w.inputs;
        k.set_direct_flops(Some(0));
        set_body_in_chunks(&mut k, &loops, body);
        self.launch(k);
        TransformedInputs { buf, layout: inputs }
    }

    /// Emits the kernel of each tile's results, then the epilogue.
    pub(super) fn emit_winograd_results(
        &mut self,
        conv: &WinogradConvolution<'_>,
        sums: BufId,
        apart: u64,
    ) -> Result<()> {
        let w = conv.w;
        let mut e = self.start_kernel(conv.ids.0);
        let loops: Vec<VarId> = w.tile_loops().0.into_iter().map(|n| e.k.add_var(n)).collect();
        let spot = ResultTile::new(&e.k, conv, self.scope.comp.array_shape(conv.ids.1).rank(), &loops);
        let first = iteration_number(&e.k, &loops).scale(w.outputs as i64);
        let sums = PointMemory { buf: sums, first, apart };
        let all = ColumnRange { first: Index::default(), count: w.outputs };
        let body = self.emit_tile_results(&mut e, conv, &spot, all, &sums)?;
        e.k.flops = w.transform_flops()[1] * w.result_tiles() * w.outputs;
        e.k.set_direct_flops(Some(0));
        set_body_in_chunks(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the results of a tile for some columns, from their sums at all points.
    pub(super) fn emit_tile_results(
        &mut self,
        e: &mut KernelBuilder,
        conv: &WinogradConvolution<'_>,
        spot: &ResultTile,
        ColumnRange { first, count: columns }: ColumnRange,
        sums: &PointMemory,
    ) -> Result<Vec<Stmt>> {
        let (w, lanes) = (conv.w, self.processor_lanes(conv.w.types.sums));
        let mut body = Vec::new();
        for shares in all_shares(&mut e.k, w, &spot.tiles) {
            let (block, lane) = (e.k.add_var(columns / lanes), e.k.add_var(lanes));
            let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
            let from = PointMemory { first: sums.first.add(&channel), ..sums.clone() };
            let inside = self.results_of_vector(e, conv, spot, &shares, first.add(&channel), &from)?;
            let inside = vec![for_loop(block, LoopKind::Seq, vec![for_loop(lane, LoopKind::Vector, inside)])];
            body.extend(guard_by_tiles(&mut e.k, &shares.iter().collect::<Vec<_>>(), inside));
        }
        Ok(body)
    }

    /// Emits the results of a vector of channels, as many as `shares` have along each axis.
    fn results_of_vector(
        &mut self,
        e: &mut KernelBuilder,
        conv: &WinogradConvolution<'_>,
        spot: &ResultTile,
        shares: &[AxisTile],
        channel: Index,
        from: &PointMemory,
    ) -> Result<Vec<Stmt>> {
        let WinogradConvolution { ids: (id, anchor), d, w, out, pooled, .. } = *conv;
        let to = out.view(&self.scope.comp.array_shape(id).dims)?;
        let lanes = self.processor_lanes(w.types.sums);
        let (mut inside, half, grid) = half_back(&mut e.k, w, lanes, from);
        let (last, mut taken) = (w.along.len() - 1, Vec::new());
        for line in grid.lines(last) {
            let before: Vec<u64> = (0..last).map(|axis| grid.coordinate(line[0], axis)).collect();
            if before.iter().zip(shares).any(|(&i, share)| i >= share.count) {
                continue;
            }
            let mut t = TransformEmitter::new(&mut e.k, w.types.sums, lanes);
            let sums: Vec<ExprId> = line.iter().map(|&at| t.transformed_sum(half, from, at)).collect();
            let values = t.transform_results(&w.along[last].points, &sums);
            let done = t.new_registers(RESULTS);
            for (i, value) in values.into_iter().enumerate() {
                let value = if w.types.is_integer() { t.divide_exactly(value) } else { value };
                t.set(done, i as u64, value);
            }
            inside.append(&mut t.body);
            for i in 0..shares[last].count {
                let mut at = spot.at.clone();
                for (n, &i) in before.iter().chain([&i]).enumerate() {
                    let (along, place) = (&w.along[n], shares[n].at.scale(RESULTS as i64).offset(i as i64));
                    at[d.output_spatial[along.axis]] = place.scale(along.phases as i64).add(&spot.phases[n]);
                }
                at[d.output_feature] = channel.clone();
                e.forget_elements();
                let value = e.k.read_reg(done, i);
                e.fixed.insert(anchor, value);
                let at = root_coordinates(&self.scope.fusion.path[anchor], &at, &e.k.vars);
                let made = match pooled {
                    Some(pooled) => self.pool_element(e, id, pooled, &mut taken, &at)?,
                    None => Some((at.clone(), self.emit_element(e, id, &at)?)),
                };
                inside.extend(made.map(|(at, value)| to.store(&at, value)));
            }
        }
        Ok(inside)
    }
}

/// Emits the inverse transform of the sums of a tile along all axes but the last.
fn half_back(
    k: &mut Kernel,
    w: &Winograd,
    lanes: u64,
    from: &PointMemory,
) -> (Vec<Stmt>, Option<RegId>, TransformExtents) {
    let mut t = TransformEmitter::new(k, w.types.sums, lanes);
    let mut grid = TransformExtents(w.along.iter().map(|a| a.points.count()).collect());
    let mut half = None;
    for (axis, along) in w.along[..w.along.len() - 1].iter().enumerate() {
        let next =
            TransformExtents(grid.0.iter().enumerate().map(|(i, &n)| if i == axis { RESULTS } else { n }).collect());
        let to = t.new_registers(next.count());
        for (line, made) in grid.lines(axis).into_iter().zip(next.lines(axis)) {
            let sums: Vec<ExprId> = line.iter().map(|&at| t.transformed_sum(half, from, at)).collect();
            for (value, at) in t.transform_results(&along.points, &sums).into_iter().zip(made) {
                t.set(to, at, value);
            }
        }
        (grid, half) = (next, Some(to));
    }
    (t.body, half, grid)
}

/// The combinations of axis tiles along all axes: full tiles, and the remainder along each.
fn all_shares(k: &mut Kernel, w: &Winograd, tiles: &[VarId]) -> Vec<Vec<AxisTile>> {
    let of_axis = |k: &mut Kernel, n: usize| {
        let along = &w.along[n];
        split_into_tiles(k, tiles[n], w.size[along.axis] / along.phases, RESULTS)
    };
    let mut all: Vec<Vec<AxisTile>> = of_axis(k, 0).into_iter().map(|share| vec![share]).collect();
    for n in 1..tiles.len() {
        let more = |before: Vec<AxisTile>| {
            let own = of_axis(k, n);
            own.into_iter().map(move |share| before.iter().cloned().chain([share]).collect())
        };
        all = all.into_iter().flat_map(more).collect();
    }
    all
}

impl WinogradConvolution<'_> {
    /// The coordinates in the padded input at which the tile of `loops` begins; `position` maps a position along each other axis.
    pub(super) fn tile_origin(
        &self,
        k: &Kernel,
        loops: &[VarId],
        position: impl Fn(usize, VarId) -> Index,
    ) -> Vec<Index> {
        let (vars, tiles) = loops.split_at(loops.len() - self.w.along.len());
        let (vars, phases) = vars.split_at(vars.len() - self.w.along.len());
        let mut first = vec![Index::default(); self.w.size.len()];
        for (i, &v) in self.w.other_axes().zip(&vars[1..]) {
            first[i] = position(i, v);
        }
        for (along, (&tile, &phase)) in self.w.along.iter().zip(tiles.iter().zip(phases)) {
            first[along.axis] = tile_start(along, &Index::var(tile), &phase_of(k, phase));
        }
        first
    }

    /// Emits the transform of a tile of an image for all channels, from a position of the padded input on.
    pub(super) fn emit_tile_inputs(
        &self,
        k: &mut Kernel,
        lanes: u64,
        image: VarId,
        first_read: &[Index],
        to: &PointMemory,
    ) -> Vec<Stmt> {
        let WinogradConvolution { d, w, input, .. } = *self;
        let positions = |k: &mut Kernel, i: usize, count: u64, step: u64| {
            PaddedAxisPositions::new(k, &first_read[i].offset(-d.window[i].pad_low), count, step, w.inside[i])
        };
        let along: Vec<PaddedAxisPositions> =
            w.along.iter().map(|a| positions(k, a.axis, a.points.count(), a.phases)).collect();
        let others: Vec<PaddedAxisPositions> = w.other_axes().map(|i| positions(k, i, 1, 1)).collect();
        let grid = TransformExtents(w.along.iter().map(|a| a.points.count()).collect());
        let (mut all, mut before) = (Vec::new(), 0);
        for plane in input {
            let (block, lane) = (k.add_var(plane.channels / lanes), k.add_var(lanes));
            let channel = Index::var(block).scale(lanes as i64).add(&Index::var(lane));
            let stride = |i: usize| plane.view.stride(d.input_spatial[i]);
            let image = Index::var(image).scale(plane.view.stride(d.input_batch));
            let mut from = channel.offset(plane.view.layout.origin).add(&image);
            for (i, of_window) in d.window.iter().enumerate() {
                from = from.offset(of_window.pad_low * stride(i));
            }
            for (i, other) in w.other_axes().zip(&others) {
                from = from.add(&other.offset_of(0, stride(i)));
            }
            let read = |t: &mut TransformEmitter<'_>, at: u64| {
                let nth = |axis: usize| grid.coordinate(at, axis) as usize;
                let places = w.along.iter().zip(&along).enumerate();
                let index =
                    places.fold(from.clone(), |from, (n, (a, all))| from.add(&all.offset_of(nth(n), stride(a.axis))));
                let value = t.k.add_load(plane.view.buf, index);
                let further = along.iter().enumerate().skip(1).map(|(n, all)| (all, nth(n)));
                let flags: Vec<(&PaddedAxisPositions, usize)> =
                    further.chain(others.iter().map(|other| (other, 0))).collect();
                along[0].select_or_zero(t.k, nth(0), &flags, value, w.types.points)
            };
            let mut t = TransformEmitter::new(k, w.types.points, lanes);
            let mut half = None;
            for (axis, of_axis) in w.along.iter().enumerate() {
                let next = (axis + 1 < w.along.len()).then(|| t.new_registers(grid.count()));
                for line in grid.lines(axis) {
                    let own = line.iter().map(|&at| match half {
                        Some(half) => t.k.read_reg(half, at),
                        None => read(&mut t, at),
                    });
                    let own: Vec<ExprId> = own.collect();
                    for (value, at) in t.transform_inputs(&of_axis.points, &own).into_iter().zip(line) {
                        match next {
                            Some(next) => t.set(next, at, value),
                            None => {
                                let index = to.first.add(&channel).offset((before + at * to.apart) as i64);
                                t.body.push(Stmt::Store { buf: to.buf, index, value });
                            }
                        }
                    }
                }
                half = next;
            }
            all.push(for_loop(block, LoopKind::Seq, vec![for_loop(lane, LoopKind::Vector, t.body)]));
            before += plane.channels;
        }
        along.into_iter().chain(others).fold(all, |body, positions| positions.bind_variables(body))
    }
}
