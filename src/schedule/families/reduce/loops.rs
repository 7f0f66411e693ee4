//! Loops of reductions and windows.
use super::recipe::{Reduction, VectorDirection};
use super::vectors::{ONE, ResultVectors, window_vectors};
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{SIDE_BY_SIDE, VectorRun};
use crate::schedule::loops::window::{self, InteriorWindows};
use crate::schedule::plan::fuse::root_coordinates;

/// Upper limit of taps of a window whose loop is unrolled.
const MOST_TAPS: u64 = 9;

/// A reduction or window whose kernel is being emitted.
pub(super) struct ReductionLoop<'c> {
    pub root: KernelRoot<'c>,
    /// The arrays that are reduced together.
    pub inputs: &'c [InstId],
    /// The initial value of each array's reduction.
    pub inits: &'c [InstId],
    pub op: &'c Op,
    pub recipe: &'c Reduction,
}

impl ReductionLoop<'_> {
    /// The type of registers for partial results of `dtype`: sums of floats of 16 bits and less are kept in f32.
    fn register_dtype(&self, dtype: DType) -> DType {
        if self.recipe.simple.is_some() { dtype.compute_type() } else { dtype }
    }
}

/// The family of `reduce` and `reduce-window`.
pub const FAMILY: Family = Family {
    name: "reduce",
    recipe: |planner, request| Ok(Reduction::choose(request, planner.target)?.map(RecipeSetup::Reduce)),
    emit: |s, root, setup| match setup {
        RecipeSetup::Reduce(reduction) => s.emit_reduce(root, reduction),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits the kernels of a reduction or window, with the epilogue `root.id`.
    pub(in crate::schedule) fn emit_reduce(
        &mut self,
        root @ KernelRoot { anchor, .. }: KernelRoot<'_>,
        recipe: &Reduction,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let inst = &comp[anchor];
        let (inputs, inits) = inst.operands.split_at(inst.operands.len() / 2);
        let dims = inst.shape.leaves().first().map(|a| a.dims.clone()).unwrap_or_default();
        if dims.contains(&0) {
            return Ok(());
        }
        if let Some(planes) = self.planes_with_partial_sums(recipe)? {
            return self.emit_plane_sums(root, planes);
        }
        let input = comp.array_shape(inputs[0]);
        let width = self.vector_width(input.dtype);
        let minor = dims.last().copied().unwrap_or(1);
        let axis = dims.len().saturating_sub(1);
        let (axis, cuts) = match (recipe.lanes, &inst.op) {
            (_, Op::ReduceWindow { window, .. }) => window_vectors(window, &input.dims, &dims, width),
            (VectorDirection::ShortRows | VectorDirection::Results, _) => (axis, width.split(minor)),
            (VectorDirection::Terms | VectorDirection::None | VectorDirection::Windows, _) => (axis, ONE.split(minor)),
        };
        let fold = ReductionLoop { root, inputs, inits, op: &inst.op, recipe };
        let across = (recipe.lanes == VectorDirection::Terms).then_some(width.lanes);
        // each cut has a kernel of its own
        for cut in cuts {
            self.reduce_cut(&fold, &dims, axis, cut, across)?;
        }
        Ok(())
    }

    /// Emits the kernel for the results in one run of equal vectors along dimension `axis`.
    fn reduce_cut(
        &mut self,
        f: &ReductionLoop,
        dims: &[u64],
        axis: usize,
        cut: VectorRun,
        across: Option<u64>,
    ) -> Result<()> {
        let comp = self.scope.comp;
        let mut e = self.start_kernel(f.root.id);
        // an epilogue that is long, as that of short rows is, stands there once
        let is_shared = matches!(f.recipe.lanes, VectorDirection::Results | VectorDirection::None);
        let most = if is_shared { side_by_side(dims, axis, &cut) } else { 1 };
        let (tile, lane) = (e.k.add_var(cut.blocks / most), e.k.add_var(cut.lanes));
        let mut outer: Vec<VarId> = dims.iter().map(|&n| e.k.add_var(n)).collect();
        let mut at: Vec<Index> = outer.iter().map(|&v| Index::var(v)).collect();
        let side = (most > 1).then(|| e.k.add_var(most));
        if let Some(along) = at.get_mut(axis) {
            let block = Index::var(tile).scale(most as i64);
            *along = cut.element_index(&side.map_or(block.clone(), |side| block.add(&Index::var(side))), lane);
        }
        let vectors = ResultVectors { lanes: cut.lanes, across, side };
        let body = self.emit_reduction(&mut e, f, &at, &vectors)?;
        let mut inside = vec![for_loop(lane, cut.kind, body)];
        let input = &comp.array_shape(f.inputs[0]).dims;
        if let Some(interior) = InteriorWindows::of_windows(f.op, input, dims, axis) {
            e.forget_elements();
            let lane = e.k.add_var(cut.lanes);
            if let Some(along) = at.get_mut(axis) {
                *along = cut.element_index(&Index::var(tile), lane);
            }
            let lets = interior.bind_interior(&mut e.k, &outer, &mut at);
            let body = self.emit_reduction(&mut e, f, &at, &vectors)?;
            inside =
                interior.emit_interior_or_edge(&mut e.k, &outer, lets, vec![for_loop(lane, cut.kind, body)], inside);
        }
        if axis < outer.len() {
            outer.remove(axis);
        }
        let mut loops: Vec<VarId> = outer.into_iter().chain([tile]).collect();
        let chunk = loops.iter().position(|&v| e.k.vars[v] > 1).unwrap_or(0);
        let chunk = loops.remove(chunk);
        inside = nest_loops(&loops, inside);
        e.k.chunks = Some(chunk);
        e.k.body = inside;
        let elements = comp.array_shape(f.inputs[0]).elements();
        let part = u128::from(elements) * u128::from(cut.element_count())
            / u128::from(dims.get(axis).map_or(1, |&n| n.max(1)));
        e.k.flops = u64::try_from(part).unwrap_or(u64::MAX);
        self.launch(e.k);
        Ok(())
    }

    /// Emits the reduction and the store of result `at`, or of vectors of results from there on.
    fn emit_reduction(
        &mut self,
        e: &mut KernelBuilder,
        f: &ReductionLoop,
        at: &[Index],
        vectors: &ResultVectors,
    ) -> Result<Vec<Stmt>> {
        let comp = self.scope.comp;
        let count = vectors.side.map_or(1, |side| e.k.vars[side]);
        let held = f.inputs.iter().map(|&i| f.register_dtype(comp.array_shape(i).dtype));
        let regs: Vec<RegId> = held.map(|held| e.k.add_reg(held, vectors.lanes, count)).collect();
        let slot = vectors.register_index();
        let mut body = Vec::new();
        for (&reg, &init) in regs.iter().zip(f.inits) {
            let value = self.emit_element(e, init, &[])?;
            let held = e.k.regs[reg].dtype;
            let value = convert(&mut e.k, value, comp.array_shape(init).dtype, held);
            body.push(Stmt::Set { reg, at: slot.clone(), value });
        }
        body = vectors.loop_over_vectors(body);
        match (vectors.across, f.op) {
            (Some(lanes), Op::Reduce { dims: axes, .. }) => {
                body.extend(self.fold_in_lanes(e, f, axes, at, regs[0], lanes)?)
            }
            _ => body.push(self.fold_each(e, f, at, &regs, vectors)?),
        }
        e.forget_elements();
        let values: Vec<ExprId> = regs
            .iter()
            .zip(f.inputs)
            .map(|(&r, &input)| {
                let value = e.k.add_expr(Expr::Reg(r, slot.clone()));
                let (held, dtype) = (e.k.regs[r].dtype, comp.array_shape(input).dtype);
                convert(&mut e.k, value, held, dtype)
            })
            .collect();
        let stores = self.store_results(e, f.root, &values, at)?;
        body.extend(vectors.loop_over_vectors(stores));
        Ok(body)
    }

    /// Emits the stores of the anchor's results at `at`, whose values are given, or of their epilogue `id`.
    pub(in crate::schedule) fn store_results(
        &mut self,
        e: &mut KernelBuilder,
        root @ KernelRoot { id, anchor, out }: KernelRoot<'_>,
        values: &[ExprId],
        at: &[Index],
    ) -> Result<Vec<Stmt>> {
        if id != anchor {
            e.fixed.insert(anchor, values[0]);
            return Ok(vec![self.store_epilogue(e, root, at)?]);
        }
        let dims = self.scope.comp[id].shape.leaves().first().map_or(&[][..], |a| &a.dims);
        let index = out.layout(dims).offset_of(at);
        let of = |(&value, &buf): (&ExprId, &BufId)| Stmt::Store { buf, index: index.clone(), value };
        Ok(values.iter().zip(&out.leaves).map(of).collect())
    }

    /// Emits the store of the epilogue `id` for element `at` of the anchor, whose value `e` has already.
    pub(in crate::schedule) fn store_epilogue(
        &mut self,
        e: &mut KernelBuilder,
        KernelRoot { id, anchor, out }: KernelRoot<'_>,
        at: &[Index],
    ) -> Result<Stmt> {
        let at = root_coordinates(&self.scope.fusion.path[anchor], at, &e.k.vars);
        let value = self.emit_element(e, id, &at)?;
        Ok(out.view(&self.scope.comp.array_shape(id).dims)?.store(&at, value))
    }

    /// Reduces one term after another, by the inlined computation if it is not a known op; windows skip terms outside the array.
    fn fold_each(
        &mut self,
        e: &mut KernelBuilder,
        f: &ReductionLoop,
        at: &[Index],
        regs: &[RegId],
        vectors: &ResultVectors,
    ) -> Result<Stmt> {
        let dims = self.scope.comp.array_shape(f.inputs[0]).dims.clone();
        let (loops, from);
        let mut inside = None;
        match f.op {
            Op::Reduce { dims: axes, .. } => {
                (loops, from) = term_coordinates(&mut e.k, &dims, axes, at);
            }
            Op::ReduceWindow { window, .. } => (loops, from, inside) = window::window_taps(&mut e.k, window, &dims, at),
            _ => return Err(unsupported_error(self.scope.comp, f.root.anchor, "")),
        }
        let slot = vectors.register_index();
        let mut args: Vec<ExprId> = regs.iter().map(|&r| e.k.add_expr(Expr::Reg(r, slot.clone()))).collect();
        for (&input, &reg) in f.inputs.iter().zip(regs) {
            let value = self.emit_element(e, input, &from)?;
            let held = e.k.regs[reg].dtype;
            args.push(convert(&mut e.k, value, self.scope.comp.array_shape(input).dtype, held));
        }
        let results = match f.recipe.simple {
            Some(op) => {
                let held = e.k.regs[regs[0]].dtype;
                vec![e.k.add_op(op, &args, held)]
            }
            None => self.inline_computation(e, f.recipe.comp, &args)?,
        };
        let kept = |((&r, &old), new): ((&RegId, &ExprId), ExprId)| {
            let dtype = e.k.regs[r].dtype;
            select(&mut e.k, inside, new, old, dtype)
        };
        let values: Vec<ExprId> = regs.iter().zip(&args).zip(results).map(kept).collect();
        let body = vectors.loop_over_vectors(assign_registers(&mut e.k, regs, &slot, &values));
        // unrolled, a small window needs few tests, and most addresses are constants
        let taps: u64 = loops.iter().map(|&v| e.k.vars[v]).product();
        let is_small = matches!(f.op, Op::ReduceWindow { .. }) && taps <= MOST_TAPS;
        let kind = if is_small { LoopKind::Unroll } else { LoopKind::Seq };
        let body = loops.iter().rev().fold(body, |body, &v| vec![for_loop(v, kind, body)]);
        Ok(for_loop(e.k.vars.push(1), LoopKind::Unroll, body))
    }
}

/// Loop variables over the reduced axes of an array of `dims`, and the coordinates of the terms of result `at`.
pub(super) fn term_coordinates(k: &mut Kernel, dims: &[u64], axes: &[usize], at: &[Index]) -> (Vec<VarId>, Vec<Index>) {
    let (mut loops, mut kept) = (Vec::new(), at.iter());
    let place = |(d, &n): (usize, &u64)| {
        if !axes.contains(&d) {
            return kept.next().cloned().unwrap_or_default();
        }
        loops.push(k.add_var(n));
        Index::var(loops[loops.len() - 1])
    };
    let from = dims.iter().enumerate().map(place).collect();
    (loops, from)
}

/// Number of vectors of `cut` reduced in the same iteration: fewer if two threads would not have a chunk each.
fn side_by_side(dims: &[u64], axis: usize, cut: &VectorRun) -> u64 {
    let alone = dims.iter().enumerate().all(|(d, &n)| d == axis || n == 1);
    cut.interleave_factor(if alone { SIDE_BY_SIDE.min(cut.blocks / 2) } else { SIDE_BY_SIDE })
}
