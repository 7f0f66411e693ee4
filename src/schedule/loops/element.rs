//! One element of an instruction as an expression: inlined producers are followed down to buffers.
use crate::diag::{Code, Error};
use crate::hlo::attrs::{GatherDims, PadDim};
use crate::hlo::{CompId, Inst, Literal, Shape};
use crate::kernel::Atom;
use crate::scalar::{CompareKind, Direction};
use crate::schedule::loops::idioms::scalar_constant;
use crate::schedule::loops::prelude::*;
use std::collections::HashMap;

/// A kernel under construction, with the elements that it has already computed.
pub struct KernelBuilder {
    /// The kernel.
    pub k: Kernel,
    /// The instruction whose value the kernel computes.
    pub root: InstId,
    /// The element in a register of each instruction that need not be computed, such as the kernel's anchor.
    pub fixed: HashMap<InstId, ExprId>,
    memo: HashMap<(InstId, Vec<Index>), ExprId>,
    depth: usize,
}

impl KernelBuilder {
    /// Starts a kernel without statements for `root`.
    pub fn new(root: InstId, label: String) -> Self {
        let k = Kernel { label, ..Kernel::default() };
        KernelBuilder { k, root, fixed: HashMap::new(), memo: HashMap::new(), depth: 0 }
    }
    /// Forgets computed elements, for when registers get new values.
    pub fn forget_elements(&mut self) {
        self.memo.clear();
    }
}

impl<'a> Emitter<'a> {
    /// Starts a kernel without statements that ends in `id`.
    pub(in crate::schedule) fn start_kernel(&self, id: InstId) -> KernelBuilder {
        KernelBuilder::new(id, instruction_label(self.scope.comp, id))
    }

    /// Emits the computation of element `at` of `id`.
    pub(in crate::schedule) fn emit_element(
        &mut self,
        e: &mut KernelBuilder,
        id: InstId,
        at: &[Index],
    ) -> Result<ExprId> {
        if let Some(&x) = e.fixed.get(&id) {
            return Ok(x);
        }
        let key = (id, at.to_vec());
        if let Some(&x) = e.memo.get(&key) {
            return Ok(x);
        }
        e.depth += 1;
        if e.depth > 400 {
            return Err(Error::internal("schedule", "a kernel's expression is deeper than 400"));
        }
        let inlined = id == e.root || !self.scope.fusion.is_materialised(id);
        let x = match &self.scope.comp[id].op {
            Op::Constant(Literal::Array(t)) if t.dims.is_empty() => scalar_constant(&mut e.k, t),
            _ if !inlined => self.load(e, id, at)?,
            _ => self.emit_inlined(e, id, at)?,
        };
        e.depth -= 1;
        e.memo.insert(key, x);
        Ok(x)
    }

    /// Emits the load of element `at` of a value in memory.
    fn load(&mut self, e: &mut KernelBuilder, id: InstId, at: &[Index]) -> Result<ExprId> {
        let value = self.value_buffers(id)?;
        let (false, Some(shape)) = (value.leaves.is_empty(), self.scope.comp[id].shape.as_array()) else {
            return Err(unsupported_error(self.scope.comp, id, " inside a kernel"));
        };
        Ok(value.view(&shape.dims)?.load(&mut e.k, at))
    }

    fn emit_inlined(&mut self, e: &mut KernelBuilder, id: InstId, at: &[Index]) -> Result<ExprId> {
        let comp = self.scope.comp;
        let inst = &comp[id];
        let dims = |i: usize| comp.array_shape(inst.operands[i]).dims.clone();
        match &inst.op {
            Op::Elementwise(op) => {
                let mut args = Vec::new();
                for (i, &o) in inst.operands.iter().enumerate() {
                    let scalar = dims(i).is_empty();
                    args.push(self.emit_element(e, o, if scalar { &[] } else { at })?);
                }
                Ok(e.k.add_op(*op, &args, comp.array_shape(id).dtype))
            }
            Op::Map { comp: applied, .. } => {
                let args = inst.operands.iter().map(|&o| self.emit_element(e, o, at)).collect::<Result<Vec<_>>>()?;
                self.inline_computation(e, *applied, &args)?
                    .first()
                    .copied()
                    .ok_or_else(|| unsupported_error(comp, id, ""))
            }
            Op::Broadcast(map) => {
                let sizes = dims(0);
                let from: Vec<Index> = map
                    .iter()
                    .zip(&sizes)
                    .map(|(&d, &n)| if n == 1 { Index::constant(0) } else { at[d].clone() })
                    .collect();
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Reshape | Op::Bitcast => {
                let from = reshape_coordinates(at, &comp.array_shape(id).dims, &dims(0), &e.k.vars);
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Copy | Op::OptimizationBarrier => self.emit_element(e, inst.operands[0], at),
            Op::Transpose(perm) => {
                let mut from = vec![Index::default(); at.len()];
                for (i, &p) in perm.iter().enumerate() {
                    from[p] = at[i].clone();
                }
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Reverse(axes) => {
                let sizes = dims(0);
                let flip = |(d, x): (usize, &Index)| {
                    if axes.contains(&d) { x.scale(-1).offset(sizes[d] as i64 - 1) } else { x.clone() }
                };
                let from: Vec<Index> = at.iter().enumerate().map(flip).collect();
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Slice(slices) => {
                let from: Vec<Index> =
                    at.iter().zip(slices).map(|(x, s)| x.scale(s.stride as i64).offset(s.start as i64)).collect();
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Iota(axis) => Ok(e.k.add_expr(Expr::Number(at[*axis].clone(), comp.array_shape(id).dtype))),
            Op::Pad(pads) => self.padded_element(e, inst, pads, at),
            Op::DynamicSlice(window) => {
                let sizes = dims(0);
                let mut from = Vec::new();
                for (d, x) in at.iter().enumerate() {
                    let start = self.window_start(e, &inst.operands[1..], d)?;
                    let start = self.clamp_window_start(e, start, sizes[d] as i64 - window[d] as i64);
                    from.push(x.add(&start));
                }
                self.emit_element(e, inst.operands[0], &from)
            }
            Op::Gather(g) => self.gather_element(e, inst, g, at),
            _ => Err(unsupported_error(comp, id, " inside a kernel")),
        }
    }

    /// Emits element `at` of a pad: an element of its operand, or the padding value in holes and margins.
    fn padded_element(&mut self, e: &mut KernelBuilder, inst: &Inst, pads: &[PadDim], at: &[Index]) -> Result<ExprId> {
        let sizes = self.scope.comp.array_shape(inst.operands[0]).dims.clone();
        let dtype = self.scope.comp.array_shape(inst.operands[0]).dtype;
        let mut inside: Option<ExprId> = None;
        let mut from = Vec::new();
        for ((x, p), &n) in at.iter().zip(pads).zip(&sizes) {
            from.push(clamped_coordinate(&mut e.k, &x.offset(-p.low), n, p.interior + 1, &mut inside));
        }
        let fill = self.emit_element(e, inst.operands[1], &[])?;
        if sizes.contains(&0) {
            return Ok(fill);
        }
        let x = self.emit_element(e, inst.operands[0], &from)?;
        Ok(select(&mut e.k, inside, x, fill, dtype))
    }

    /// Emits element `at` of a gather.
    fn gather_element(&mut self, e: &mut KernelBuilder, inst: &Inst, g: &GatherDims, at: &[Index]) -> Result<ExprId> {
        let dims = |i: usize| self.scope.comp.array_shape(inst.operands[i]).dims.clone();
        let (sizes, index_dims) = (dims(0), dims(1));
        let batch: Vec<&Index> = (0..at.len()).filter(|d| !g.offset_dims.contains(d)).map(|d| &at[d]).collect();
        let mut window = g.offset_dims.iter().map(|&d| at[d].clone());
        let dropped = |a: &usize| g.collapsed_slice_dims.contains(a) || g.operand_batching_dims.contains(a);
        let mut from: Vec<Index> = (0..sizes.len())
            .map(|a| if dropped(&a) { Index::constant(0) } else { window.next().unwrap_or_default() })
            .collect();
        for (component, &axis) in g.start_index_map.iter().enumerate() {
            let mut place: Vec<Index> = Vec::new();
            let mut rest = batch.iter();
            for d in 0..index_dims.len() {
                let x = if d == g.index_vector_dim {
                    Some(Index::constant(component as i64))
                } else {
                    rest.next().map(|x| (*x).clone())
                };
                place.push(x.unwrap_or_default());
            }
            let start = self.emit_element(e, inst.operands[1], &place)?;
            let start = self.clamp_window_start(e, start, sizes[axis] as i64 - g.slice_sizes[axis] as i64);
            from[axis] = from[axis].add(&start);
        }
        for (&axis, &d) in g.operand_batching_dims.iter().zip(&g.start_indices_batching_dims) {
            let before = (0..d).filter(|&i| i != g.index_vector_dim).count();
            from[axis] = batch.get(before).map(|x| (*x).clone()).unwrap_or_default();
        }
        self.emit_element(e, inst.operands[0], &from)
    }

    /// Emits the run-time start index of a window in dimension `d`, from a scalar operand for each dimension or one vector operand for all.
    pub(in crate::schedule) fn window_start(
        &mut self,
        e: &mut KernelBuilder,
        starts: &[InstId],
        d: usize,
    ) -> Result<ExprId> {
        match *starts {
            [all] if !self.scope.comp.array_shape(all).dims.is_empty() => {
                self.emit_element(e, all, &[Index::constant(d as i64)])
            }
            _ => self.emit_element(e, starts[d], &[]),
        }
    }

    /// Clamps a run-time start index so that the window fits.
    pub(in crate::schedule) fn clamp_window_start(&mut self, e: &mut KernelBuilder, start: ExprId, last: i64) -> Index {
        if let Expr::Const(t, bits) = &e.k.exprs[start] {
            let shift = 64 - t.bits().min(64);
            let value = if t.is_signed() { (*bits as i64) << shift >> shift } else { *bits as i64 };
            return Index::constant(value.clamp(0, last.max(0)));
        }
        Index::atom(Atom::Clamp(Box::new(Index::atom(Atom::Value(start))), 0, last.max(0)))
    }

    /// Converts an index computed at run time to `s64`; a `u64` beyond its range becomes the largest `s64`.
    pub(in crate::schedule) fn index_as_s64(&mut self, e: &mut KernelBuilder, x: ExprId, dtype: DType) -> ExprId {
        let mut x = x;
        if dtype == DType::U64 {
            let most = e.k.add_expr(Expr::Const(DType::U64, i64::MAX as u64));
            x = e.k.add_op(ScalarOp::Minimum, &[x, most], DType::U64);
        }
        if dtype == DType::S64 { x } else { e.k.add_op(ScalarOp::Convert(DType::S64), &[x], DType::S64) }
    }

    /// Inlines a computation of scalars, applied to expressions.
    ///
    /// Arguments and results are leaves: tuples are flat. All branches of a conditional are computed, and one result is selected.
    pub(in crate::schedule) fn inline_computation(
        &mut self,
        e: &mut KernelBuilder,
        id: CompId,
        args: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        self.depth += 1;
        if self.depth > 64 {
            return Err(Error::user(Code::TooLarge, "computations are nested more than 64 deep"));
        }
        let values = self.apply_computation(e, id, args)?;
        self.depth -= 1;
        Ok(values)
    }

    /// Inlines the computation of a `scatter` or `sort`, with arguments of element types `types` converted to the types of its parameters:
    /// computations may use wider floats than the arrays have.
    pub(in crate::schedule) fn inline_widened(
        &mut self,
        e: &mut KernelBuilder,
        id: CompId,
        args: &[ExprId],
        types: &[DType],
    ) -> Result<Vec<ExprId>> {
        let comp = &self.module.comps[id];
        let taken = comp.params.iter().map(|&p| comp.array_shape(p).dtype);
        let args: Vec<ExprId> =
            args.iter().zip(types).zip(taken).map(|((&x, &from), to)| convert(&mut e.k, x, from, to)).collect();
        self.inline_computation(e, id, &args)
    }

    fn apply_computation(&mut self, e: &mut KernelBuilder, id: CompId, args: &[ExprId]) -> Result<Vec<ExprId>> {
        let comp = &self.module.comps[id];
        let mut first = Vec::new();
        let mut leaves = 0;
        for &p in &comp.params {
            first.push(leaves);
            leaves += comp[p].shape.leaves().len();
        }
        let mut values: HashMap<InstId, Vec<ExprId>> = HashMap::new();
        for inst in comp.post_order() {
            let i = &comp[inst];
            let of = |k: usize| values.get(&i.operands[k]).and_then(|v| v.first()).copied();
            let missing = || unsupported_error(comp, inst, " inside a scalar computation");
            let value = match &i.op {
                Op::Parameter(n) => {
                    let from = *first.get(*n).ok_or_else(missing)?;
                    args.get(from..from + i.shape.leaves().len()).ok_or_else(missing)?.to_vec()
                }
                Op::Constant(literal) if literal.leaves().iter().all(|t| t.len() == 1) => {
                    literal.leaves().into_iter().map(|t| scalar_constant(&mut e.k, t)).collect()
                }
                Op::Iota(_) if comp.array_shape(inst).elements() == 1 => {
                    vec![constant_of_number(&mut e.k, comp.array_shape(inst).dtype, 0.0)]
                }
                Op::Elementwise(op) => {
                    let operands = (0..i.operands.len()).map(of).collect::<Option<Vec<_>>>().ok_or_else(missing)?;
                    vec![e.k.add_op(*op, &operands, comp.array_shape(inst).dtype)]
                }
                Op::Copy | Op::OptimizationBarrier => values.get(&i.operands[0]).ok_or_else(missing)?.clone(),
                Op::Tuple => all_of(&values, &i.operands).ok_or_else(missing)?,
                Op::GetTupleElement(k) => {
                    let parts = comp[i.operands[0]].shape.as_tuple().ok_or_else(missing)?;
                    let from: usize = parts[..*k].iter().map(|p| p.leaves().len()).sum();
                    let whole = values.get(&i.operands[0]).ok_or_else(missing)?;
                    whole.get(from..from + i.shape.leaves().len()).ok_or_else(missing)?.to_vec()
                }
                Op::Call(callee) | Op::Fusion { comp: callee, .. } | Op::Map { comp: callee, .. } => {
                    let args = all_of(&values, &i.operands).ok_or_else(missing)?;
                    self.inline_computation(e, *callee, &args)?
                }
                Op::Conditional(branches) => {
                    let selector = of(0).ok_or_else(missing)?;
                    let by_pred = comp.array_shape(i.operands[0]).dtype == DType::Pred;
                    let mut taken: Option<Vec<ExprId>> = None;
                    // The last branch is also the one of numbers out of range.
                    for (n, &branch) in branches.iter().enumerate().rev() {
                        let args = values.get(&i.operands[n + 1]).ok_or_else(missing)?.clone();
                        let results = self.inline_computation(e, branch, &args)?;
                        taken = Some(match taken {
                            None => results,
                            Some(others) => {
                                let chosen =
                                    if by_pred { selector } else { equals_number(&mut e.k, selector, n as u64) };
                                chosen_of(&mut e.k, &i.shape, chosen, &results, &others)
                            }
                        });
                    }
                    taken.ok_or_else(missing)?
                }
                _ => return Err(missing()),
            };
            values.insert(inst, value);
        }
        values.remove(&comp.root).ok_or_else(|| Error::internal("schedule", "a scalar computation has no result"))
    }
}

/// The concatenated values of several instructions.
fn all_of(values: &HashMap<InstId, Vec<ExprId>>, of: &[InstId]) -> Option<Vec<ExprId>> {
    of.iter().map(|o| values.get(o)).collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().copied().collect())
}

/// The comparison of an `s32` with a constant.
fn equals_number(k: &mut Kernel, x: ExprId, number: u64) -> ExprId {
    let number = k.add_expr(Expr::Const(DType::S32, number));
    k.add_op(ScalarOp::Compare(Direction::Eq, CompareKind::Partial), &[x, number], DType::Pred)
}

/// Selects between two values of `shape`, leaf by leaf.
fn chosen_of(k: &mut Kernel, shape: &Shape, pred: ExprId, yes: &[ExprId], no: &[ExprId]) -> Vec<ExprId> {
    let types = shape.leaves().into_iter().map(|a| a.dtype);
    types.zip(yes.iter().zip(no)).map(|(t, (&a, &b))| k.add_op(ScalarOp::Select, &[pred, a, b], t)).collect()
}
