//! Loops of a depthwise convolution: tiles of pixels whose sums are in registers.
use crate::hlo::attrs::ConvDims;
use crate::schedule::emit::Detail;
use crate::schedule::families::depthwise::recipe::axis::{TileRun, WindowAxis};
use crate::schedule::families::depthwise::recipe::{self, DepthwiseTiling};
use crate::schedule::families::depthwise::words;
use crate::schedule::families::plane_sums::loops::{SumTarget, TileSum};
use crate::schedule::loops::grid::{AxisTile, axis_tile, guard_by_tiles, set_body_in_chunks};
use crate::schedule::loops::prelude::*;
use crate::schedule::plan::fuse::root_coordinates;
use crate::target::{DotInstruction, IsaLevel};
use std::collections::BTreeSet;

/// Largest magnitude up to which f32 has every whole number.
const LARGEST_WHOLE: u64 = 1 << 24;

/// The strides and types of a depthwise convolution.
pub(in crate::schedule) struct DepthwiseStrides<'d> {
    d: &'d ConvDims,
    pub window: &'d DepthwiseTiling,
    pub(super) left: BufId,
    pub(super) weights: BufId,
    /// The element type of sums.
    dtype: DType,
    /// Whether products and sums are whole numbers that `dtype` has, so that nothing is rounded.
    is_exact: bool,
    /// The instruction that multiplies the taps of up to four rows at once ([`super::words`]).
    pub(super) word_products: Option<DotInstruction>,
    /// The element types of the operands.
    types: (DType, DType),
    /// Strides of the input and of the weights along each spatial axis.
    pub(super) steps: Vec<(i64, i64)>,
    /// Number of rows of the ring buffer along the first axis; `None` if all rows are stored.
    pub(super) ring: Option<u64>,
    /// Number of output channels per input channel.
    made: i64,
}

/// Position of a tile's first tap in both operands.
pub(super) struct WindowStart<'p> {
    /// Index of the input element.
    pub x: Index,
    /// Index of the weight.
    pub k: Index,
    /// The positions of the pixels along all axes but the last.
    pub places: &'p [VarId],
}

impl DepthwiseStrides<'_> {
    /// Strides of the input and of the weights along the last axis.
    pub(super) fn wide_step(&self) -> (i64, i64) {
        self.steps.last().copied().unwrap_or_default()
    }

    /// Divides the loop `number` over tiles of `pixels` pixels into runs of tiles that read the operand alike.
    pub(in crate::schedule) fn split_into_tiles(
        &self,
        k: &mut Kernel,
        number: VarId,
        pixels: u64,
    ) -> Vec<(AxisTile, TileRun)> {
        let runs = self.window.unrolled_axis().row_tiles(pixels).into_iter();
        runs.map(|run| (axis_tile(k, number, run.numbers.clone(), run.pixels), run)).collect()
    }

    /// Emits the sums of a tile in the registers `acc`: the first window begins at `x`, its channel's weights at `k`; `places` are the
    /// pixels' positions along all axes but the last.
    fn sums(
        &self,
        e: &mut KernelBuilder,
        run: &TileRun,
        WindowStart { x, k, places }: WindowStart<'_>,
        acc: RegId,
        lanes: u64,
    ) -> Vec<Stmt> {
        let zero = constant_of_number(&mut e.k, self.dtype, 0.0);
        let mut body: Vec<Stmt> = (0..run.pixels).map(|i| Stmt::set(acc, i, zero)).collect();
        if let (Some(instruction), true) = (self.word_products, words::has_instruction_for(lanes)) {
            let place = places.first().copied();
            body.extend(self.word_sums(
                e,
                run,
                instruction,
                WindowStart { x, k, places: place.as_slice() },
                acc,
                lanes,
            ));
            return body;
        }
        let mut looped = self.window.outer.clone();
        if self.window.unrolled_axis().size != self.window.wide.size {
            looped.push(self.window.wide);
        }
        let (mut x, mut k, mut loops) = (x, k, Vec::new());
        for (i, (side, step)) in looped.iter().zip(&self.steps).enumerate() {
            let ring = self.ring.filter(|_| i == 0);
            let of_axis = TapLoop::new(&mut e.k, side, places.get(i).copied(), ring);
            x = x.add(&of_axis.read.scale(step.0));
            k = k.add(&weight_index(side, &Index::var(of_axis.tap)).scale(step.1));
            loops.push(of_axis);
        }
        let kind = if self.window.is_whole { LoopKind::Unroll } else { LoopKind::Seq };
        let row = self.row_of_taps(e, run, &x, &k, acc, lanes);
        body.extend(loops.into_iter().rev().fold(row, |inside, of_axis| of_axis.loop_over_taps(kind, inside)));
        body
    }

    /// Adds the products of one row of taps to the sums: the first pixel's window begins at `x`, its channel's weights at `k`.
    fn row_of_taps(
        &self,
        e: &mut KernelBuilder,
        run: &TileRun,
        x: &Index,
        k: &Index,
        acc: RegId,
        lanes: u64,
    ) -> Vec<Stmt> {
        let at = |i: u64| Index::constant(i as i64);
        let (wide, step) = (self.window.unrolled_axis(), self.wide_step());
        let (held, term) = (e.k.add_reg(self.dtype, lanes, wide.size), e.k.add_reg(self.dtype, lanes, 1));
        let mut row = Vec::new();
        let uses = wide.tap_uses(run);
        let taps: BTreeSet<u64> = uses.values().flatten().map(|&(_, tap)| tap).collect();
        for tap in taps {
            let from = if wide.size == self.window.wide.size {
                k.add(&weight_index(&wide, &at(tap)).scale(step.1))
            } else {
                k.clone()
            };
            let value = e.k.add_load(self.weights, from);
            let value = convert(&mut e.k, value, self.types.1, self.dtype);
            row.push(Stmt::set(held, tap, value));
        }
        for (element, uses) in uses {
            let value = e.k.add_load(self.left, x.offset(element as i64 * step.0));
            let value = convert(&mut e.k, value, self.types.0, self.dtype);
            row.push(Stmt::set(term, 0, value));
            for (pixel, tap) in uses {
                let (a, b) = (e.k.read_reg(term, 0), e.k.read_reg(held, tap));
                let old = e.k.read_reg(acc, pixel);
                let value = if self.is_exact {
                    e.k.add_op(ScalarOp::Fma, &[a, b, old], self.dtype)
                } else {
                    // Two roundings, as TensorFlow's kernel has them.
                    let product = e.k.add_op(ScalarOp::Multiply, &[a, b], self.dtype);
                    e.k.add_op(ScalarOp::Add, &[old, product], self.dtype)
                };
                row.push(Stmt::set(acc, pixel, value));
            }
        }
        row
    }
}

/// The loop over the taps along one axis.
struct TapLoop {
    tap: VarId,
    /// Index in the padded operand that a tap reads.
    read: Index,
    /// A variable that the index `read` contains, with the value to bind it to.
    held: Option<(VarId, Index)>,
    /// The condition that the tap is not on the padding; `None` if no tap of the loop can be.
    inside: Option<ExprId>,
}

impl TapLoop {
    /// The tap loop along `side` for the pixel at `place`; the operand is stored whole or in a ring of rows.
    fn new(k: &mut Kernel, side: &WindowAxis, place: Option<VarId>, ring: Option<u64>) -> TapLoop {
        let tap = k.add_var(side.size);
        let away = Index::var(tap).scale(side.dilation as i64);
        // where in the padded operand
        let place = place.map(|v| Index::var(v).scale(side.stride as i64).add(&away));
        let edges = place.as_ref().zip(side.edges).filter(|(place, (before, n))| {
            let element = place.offset(-before);
            element.clamp_to(0, n - 1, &k.vars) != element
        });
        let inside = edges.map(|(place, (before, n))| k.add_expr(Expr::Within(place.offset(-before), 0, n)));
        let (read, held) = match (place.as_ref(), ring, edges) {
            (Some(place), Some(rows), _) => {
                let slot = k.add_var(rows);
                (Index::var(slot), Some((slot, place.rem(rows as i64, &k.vars))))
            }
            (Some(place), None, Some((_, (before, n)))) => {
                let element = k.add_var(n as u64);
                (Index::var(element).offset(before), Some((element, place.offset(-before).clamp_to(0, n - 1, &k.vars))))
            }
            (Some(place), None, None) => (place.clone(), None),
            (None, ..) => (away, None),
        };
        TapLoop { tap, read, held, inside }
    }

    /// Wraps `body` in the loop over the taps, and in the condition that the tap is not on the padding.
    fn loop_over_taps(self, kind: LoopKind, mut body: Vec<Stmt>) -> Vec<Stmt> {
        if let Some((var, value)) = self.held {
            body = vec![Stmt::Let { var, value, body }];
        }
        if let Some(cond) = self.inside {
            body = vec![Stmt::If { cond, body }];
        }
        vec![for_loop(self.tap, kind, body)]
    }
}

/// The family of depthwise convolutions: one channel a group, vectorized along channels.
pub const FAMILY: Family = Family {
    name: "depthwise",
    recipe: |_, request| {
        let depthwise = request.convolution()?.filter(|(c, _)| c.is_depthwise());
        Ok(depthwise.map(|(_, d)| RecipeSetup::Depthwise(DepthwiseTiling::choose(request.context, request.anchor, d))))
    },
    emit: |s, root, setup| match setup {
        RecipeSetup::Depthwise(window) => s.emit_depthwise(root, window),
        other => other.wrong_family_error(),
    },
};

/// Whether sums of `taps` products of bytes are whole numbers that f32 has. Processors multiply and add f32 at several times the speed of 32-bit
/// integers.
fn are_sums_exact_in_f32(left: DType, right: DType, taps: u64) -> bool {
    let largest = |dtype: DType| match dtype {
        DType::S8 => Some(128u64),
        DType::U8 => Some(255),
        _ => None,
    };
    let product = largest(left).zip(largest(right)).map(|(left, right)| left * right);
    product.is_some_and(|product| taps <= LARGEST_WHOLE / product)
}

/// Index of the weight of a tap along an axis.
pub(super) fn weight_index(side: &WindowAxis, tap: &Index) -> Index {
    if side.reversed { tap.scale(-1).offset(side.size as i64 - 1) } else { tap.clone() }
}

impl<'a> Emitter<'a> {
    /// Emits the kernel of the depthwise convolution `anchor` with its epilogue `id`.
    pub(in crate::schedule) fn emit_depthwise(
        &mut self,
        root @ KernelRoot { id, anchor, .. }: KernelRoot<'_>,
        window: &DepthwiseTiling,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let result = comp.array_shape(anchor).clone();
        let (_, d) = self.planned_convolution(anchor)?;
        let input = self.padded_view(id, anchor, comp[anchor].operands[0])?;
        let c = self.depthwise_strides(anchor, &input, window)?;
        let (wide, tile) = (window.wide, window.tile);
        let all = result.dims[d.output_feature];
        let parts = self.vector_width(c.dtype).split(all);
        let mut e = self.start_kernel(id);
        let batch = e.k.add_var(result.dims[d.output_batch]);
        let outer: Vec<VarId> = window.outer.iter().map(|s| e.k.add_var(s.extent)).collect();
        let count = wide.extent.div_ceil(tile);
        let number = e.k.add_var(count);
        let mut loops: Vec<VarId> = [batch].into_iter().chain(outer.iter().copied()).chain([number]).collect();
        // where there are few tiles, threads share the channels too
        let tiles: u64 = loops.iter().map(|&v| e.k.vars[v]).product();
        let blocks = parts.first().map_or(1, |p| p.blocks);
        // a thread that made some of the channels had better read those
        let by_channel = self.is_by_channel(&input, d);
        let (groups, is_outside) = recipe::channel_groups(blocks, tiles, by_channel);
        let group = e.k.add_var(groups);
        loops.insert(if is_outside { 0 } else { loops.len() }, group);
        let places: Vec<VarId> = [batch].into_iter().chain(outer.iter().copied()).collect();
        let rows: Vec<u64> = places.iter().map(|&v| e.k.vars[v]).collect();
        let sums = self.allocate_partial_sums(id, rows.iter().product::<u64>() * count);
        let row = linear_index(&places.into_iter().map(Index::var).collect::<Vec<_>>(), &rows);
        let mut body = Vec::new();
        let width = self.processor_width(c.dtype);
        let narrow = parts.iter().enumerate().flat_map(|(i, part)| part.narrow(width).into_iter().map(move |p| (i, p)));
        for (i, part) in narrow {
            for (pixels, run) in c.split_into_tiles(&mut e.k, number, tile) {
                let whole = i == 0;
                let own = if whole { part.blocks / groups } else { part.blocks };
                let (block, lane) = (e.k.add_var(own), e.k.add_var(part.lanes));
                let mut vector = Index::var(block);
                if whole {
                    vector = vector.add(&Index::var(group).scale(own as i64));
                }
                let channel = part.element_index(&vector, lane);
                let first = pixels.at.scale(tile as i64);
                let sum = sums.map(|sums| {
                    let number = row.scale(count as i64).add(&pixels.at);
                    SumTarget { buf: sums.buf, at: number.scale(sums.channels as i64).add(&channel), adds: false }
                });
                let from = channel.clone();
                let place = TilePosition { batch, outer: &outer, first, channel, from, lanes: part.lanes, sum };
                let inside = self.emit_depthwise_tile(&mut e, root, &c, &place, &input, &run)?;
                let mut inside = guard_by_tiles(&mut e.k, &[&pixels], vec![part.loop_nest(block, lane, inside)]);
                if !whole && groups > 1 {
                    let last = groups as i64 - 1;
                    let cond = e.k.add_expr(Expr::Within(Index::var(group), last, last + 1));
                    inside = vec![Stmt::If { cond, body: inside }];
                }
                body.extend(inside);
            }
        }
        e.k.add_flops(window.flops(result.dims[d.output_batch], all));
        set_body_in_chunks(&mut e.k, &loops, body);
        self.launch(e.k);
        Ok(())
    }

    /// Whether the kernel that made `input` shared channels among threads, and not rows.
    fn is_by_channel(&self, input: &ArrayView, d: &ConvDims) -> bool {
        let last = d.input_spatial.last().map_or(0, |&axis| input.stride(axis));
        self.second_half_offset(input.buf).is_some_and(|m| m > 0 && m < last)
    }

    /// The strides and types of convolution `anchor` on `input`.
    pub(in crate::schedule) fn depthwise_strides<'w>(
        &mut self,
        anchor: InstId,
        input: &ArrayView,
        window: &'w DepthwiseTiling,
    ) -> Result<DepthwiseStrides<'w>>
    where
        'a: 'w,
    {
        let comp = self.scope.comp;
        let (_, d) = self.planned_convolution(anchor)?;
        let weights = comp[anchor].operands[1];
        let (kernel, result) = (comp.array_shape(weights).clone(), comp.array_shape(anchor).clone());
        let ks = kernel.strides();
        let step = |i: usize| (input.stride(d.input_spatial[i]), ks[d.kernel_spatial[i]] as i64);
        let steps = (0..d.window.len()).map(step).collect();
        let weights = self.value_buffers(weights)?.dense_buffer()?;
        let types = (self.program.buffers[input.buf].dtype, kernel.dtype);
        let taps = d.window.iter().map(|w| w.size).product();
        let can_multiply = |&instruction: &DotInstruction| {
            result.dtype == DType::S32 && words::can_multiply(instruction, types.0, types.1, window)
        };
        let machine = &self.target.request.target;
        // AVX2 has no permutation that interleaves the bytes of four vectors
        let word_products = machine.byte_dot.filter(|_| machine.level == IsaLevel::Avx512).filter(can_multiply);
        let is_exact =
            result.dtype == DType::S32 && word_products.is_none() && are_sums_exact_in_f32(types.0, types.1, taps);
        let dtype = if is_exact { DType::F32 } else { result.dtype.accumulator_type() };
        let made = (kernel.dims[d.kernel_output_feature] / d.feature_group_count) as i64;
        Ok(DepthwiseStrides {
            d,
            window,
            left: input.buf,
            weights,
            dtype,
            is_exact,
            word_products,
            types,
            steps,
            ring: input.ring,
            made,
        })
    }

    /// The tile `run` in parts whose sums fit the processor's registers, each with the number of its first pixel. The sum of each pixel has
    /// all its terms in one part.
    fn runs_for_processor(&self, c: &DepthwiseStrides<'_>, run: &TileRun) -> Vec<(u64, TileRun)> {
        let processor = self.target.smaller_processor().filter(|_| self.detail == Detail::Whole);
        let most = processor.map_or(run.pixels, |processor| c.window.most_pixels(processor.vector_registers));
        let each = run.pixels.div_ceil(run.pixels.div_ceil(most));
        let firsts = (0..run.pixels).step_by(each as usize);
        firsts.map(|first| (first, run.take_pixels(first, each, c.window.wide.stride))).collect()
    }

    /// Emits one tile: its sums, the epilogue, the stores.
    pub(in crate::schedule) fn emit_depthwise_tile(
        &mut self,
        e: &mut KernelBuilder,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        c: &DepthwiseStrides<'_>,
        place: &TilePosition<'_>,
        input: &ArrayView,
        run: &TileRun,
    ) -> Result<Vec<Stmt>> {
        let comp = self.scope.comp;
        let (result, d) = (comp.array_shape(anchor), c.d);
        let weight = comp.array_shape(comp[anchor].operands[1]).strides()[d.kernel_output_feature];
        let mut x = Index::var(place.batch).scale(input.stride(d.input_batch)).offset(input.layout.origin);
        let from = place.from.div(c.made, &e.k.vars);
        x = x.add(&from.scale(input.stride(d.input_feature)));
        x = x.add(&place.first.scale(c.wide_step().0 * c.window.wide.stride as i64));
        let k = place.channel.scale(weight as i64);
        let to = out.view(&comp.array_shape(id).dims)?;
        // exact sums need no conversion to integers where they are read as floats
        let is_back = |&user: &InstId| {
            let is_conversion = matches!(comp[user].op, Op::Elementwise(ScalarOp::Convert(to)) if to == c.dtype);
            is_conversion && (user == id || !self.scope.fusion.is_materialised(user))
        };
        let floats: Vec<InstId> = match c.is_exact {
            true => self.scope.users(anchor).iter().copied().filter(is_back).collect(),
            false => Vec::new(),
        };
        let mut sum = place.sum.as_ref().map(|sum| TileSum::new(sum, &mut e.k, place.lanes));
        let mut body = Vec::new();
        for (first, part) in self.runs_for_processor(c, run) {
            let x = x.offset((first * c.window.wide.stride) as i64 * c.wide_step().0);
            let acc = e.k.add_reg(c.dtype, place.lanes, part.pixels);
            match self.detail {
                Detail::Whole => {
                    let start = WindowStart { x, k: k.clone(), places: place.outer };
                    body.extend(c.sums(e, &part, start, acc, place.lanes));
                }
                Detail::Sketch => {
                    e.k.add_load(c.left, x);
                    e.k.add_load(c.weights, k.clone());
                }
            }
            for pixel in 0..self.detail.emitted_count(part.pixels) {
                let outer = place.outer.iter().map(|&v| Index::var(v));
                let spatial = outer.chain([place.first.offset((first + pixel) as i64)]);
                let mut at = vec![Index::default(); result.rank()];
                at[d.output_batch] = Index::var(place.batch);
                at[d.output_feature] = place.channel.clone();
                for (&axis, x) in d.output_spatial.iter().zip(spatial) {
                    at[axis] = x;
                }
                e.forget_elements();
                let value = e.k.read_reg(acc, pixel);
                for &user in &floats {
                    e.fixed.insert(user, value);
                }
                let value = convert(&mut e.k, value, c.dtype, result.dtype);
                e.fixed.insert(anchor, value);
                let at = root_coordinates(&self.scope.fusion.path[anchor], &at, &e.k.vars);
                let mut value = self.emit_element(e, id, &at)?;
                if let Some(sum) = &mut sum {
                    (value, body) = sum.add(&mut e.k, value, body);
                }
                body.push(to.store(&at, value));
            }
        }
        body.extend(sum.map(|sum| sum.store(&mut e.k)));
        Ok(body)
    }
}

/// The position of a tile.
pub(in crate::schedule) struct TilePosition<'l> {
    pub batch: VarId,
    /// Loops over all spatial axes but the last.
    pub outer: &'l [VarId],
    /// The first pixel.
    pub first: Index,
    pub channel: Index,
    /// Number of the output channel, counted from the first one whose input channel is in memory.
    pub from: Index,
    pub lanes: u64,
    /// Destination of the sum of the tile's pixels, if partial sums are wanted.
    pub sum: Option<SumTarget>,
}
