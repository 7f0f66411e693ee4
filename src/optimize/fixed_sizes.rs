//! Sizes that are only bounded in the text, and that constants fix: `set-dimension-size` by a constant is a slice, and what reads it has
//! other sizes than it declares, as in the interpreter.
use std::collections::HashMap;

use super::rewrite::Changed;
use crate::diag::Result;
use crate::hlo::attrs::SliceDim;
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Literal, Module, Op, Shape, infer, valid_sizes};
use crate::tensor::Tensor;

/// Resolves dynamic sizes that are constants: gives arrays these sizes, if that is known for everything computed from them and changes
/// neither parameters nor the root.
pub fn resolve_fixed_sizes(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for id in super::rewrite::editable_computations(module) {
        if !module.comps[id].insts.values().any(|i| matches!(i.op, Op::SetDimensionSize(_))) {
            continue;
        }
        let mut made = module.clone();
        if let Some(fixed) = Fixing::new(&mut made, id).comp() {
            made.comps[id] = fixed;
            *module = made;
            changed = Changed::Yes;
        }
    }
    Ok(changed)
}

/// Upper limit of nested calls in a specialized computation.
const MOST_DEPTH: u32 = 16;
/// Upper limit of computations in a module for which calls get specialized copies.
const MOST_COMPUTATIONS: usize = 1 << 12;

/// A computation whose dynamic sizes are being resolved.
struct Fixing<'m> {
    module: &'m mut Module,
    old: Computation,
    new: Computation,
    /// Replacements of instructions whose array has another size than declared; a parameter replaces itself.
    fixed: HashMap<InstId, InstId>,
    depth: u32,
}

impl<'m> Fixing<'m> {
    fn new(module: &'m mut Module, id: CompId) -> Self {
        let old = module.comps[id].clone();
        Fixing { module, new: old.clone(), old, fixed: HashMap::new(), depth: 0 }
    }

    /// The computation with resolved sizes; `None` if nothing was resolved, or not everything computed from it is known.
    fn comp(mut self) -> Option<Computation> {
        let changed = self.resize_all_instructions()?;
        let root = self.new.root;
        let is_kept = changed && self.new[root].shape.same_type_and_dims(&self.old[self.old.root].shape);
        is_kept.then_some(self.new)
    }

    /// Resolves the size of every instruction and returns whether one changed; `None` if not all sizes are known.
    fn resize_all_instructions(&mut self) -> Option<bool> {
        let mut changed = false;
        for id in super::rewrite::live_order(&self.old) {
            changed |= self.resize_instruction(id)?;
        }
        self.new.root = self.replacement_of(self.old.root);
        super::rewrite::compact_computation(&mut self.new);
        Some(changed)
    }

    /// A copy of computation `id` for arguments of these shapes, and the shape of its result.
    fn specialize_computation(&mut self, id: CompId, args: &[&Shape]) -> Option<(CompId, Shape)> {
        let depth = self.depth + 1;
        if depth > MOST_DEPTH || self.module.comps.len() > MOST_COMPUTATIONS {
            return None;
        }
        let mut callee = Fixing { depth, ..Fixing::new(self.module, id) };
        if callee.old.params.len() != args.len() {
            return None;
        }
        for (param, &shape) in callee.old.params.clone().into_iter().zip(args) {
            if !callee.new[param].shape.same_type_and_dims(shape) {
                callee.new.insts[param].shape = shape.clone();
                callee.fixed.insert(param, param);
            }
        }
        callee.resize_all_instructions()?;
        let made = callee.new;
        let shape = made[made.root].shape.clone();
        let is_fixed = !shape.leaves().iter().any(|a| a.dynamic.contains(&true));
        is_fixed.then(|| (self.module.comps.push(made), shape))
    }

    /// The op and the result shape of a call, branch or loop for operands of these shapes.
    fn resize_control_flow(&mut self, op: &Op, shapes: &[Shape]) -> Option<(Op, Shape)> {
        let all: Vec<&Shape> = shapes.iter().collect();
        match op {
            Op::Call(callee) => {
                self.specialize_computation(*callee, &all).map(|(callee, shape)| (Op::Call(callee), shape))
            }
            Op::Fusion { comp, kind } => {
                let (comp, shape) = self.specialize_computation(*comp, &all)?;
                Some((Op::Fusion { comp, kind: *kind }, shape))
            }
            Op::Conditional(branches) => {
                let made =
                    branches.iter().zip(all.get(1..)?).map(|(&c, &shape)| self.specialize_computation(c, &[shape]));
                let made: Vec<(CompId, Shape)> = made.collect::<Option<_>>()?;
                let (_, shape) = made.first()?.clone();
                let alike = made.iter().all(|(_, other)| other.same_type_and_dims(&shape));
                alike.then(|| (Op::Conditional(made.into_iter().map(|(c, _)| c).collect()), shape))
            }
            Op::While { cond, body } => {
                let state = *all.first()?;
                let (body, next) = self.specialize_computation(*body, &[state])?;
                let (cond, _) = self.specialize_computation(*cond, &[state])?;
                next.same_type_and_dims(state).then_some((Op::While { cond, body }, next))
            }
            _ => None,
        }
    }

    fn replacement_of(&self, id: InstId) -> InstId {
        self.fixed.get(&id).copied().unwrap_or(id)
    }

    /// Whether an instruction is replaced by one of another size; `None` if its sizes are not known.
    fn resize_instruction(&mut self, id: InstId) -> Option<bool> {
        let inst = &self.old[id].clone();
        let operands: Vec<InstId> = inst.operands.iter().map(|&o| self.replacement_of(o)).collect();
        let is_as_declared = !inst.operands.iter().any(|o| self.fixed.contains_key(o));
        let made = match &inst.op {
            Op::SetDimensionSize(axis) => match self.size(operands[1]) {
                Some(size) => Some(self.first(operands[0], *axis, size)?),
                None if is_as_declared => None,
                None => return None,
            },
            _ if is_as_declared => None,
            Op::GetDimensionSize(axis) => {
                let size = *self.new.array_shape(operands[0]).dims.get(*axis)?;
                let size = Literal::Array(Tensor::scalar(i32::try_from(size).ok()?));
                let shape = inst.shape.clone();
                Some(self.push(Op::Constant(size), Vec::new(), shape))
            }
            op => Some(self.rebuild_on_operands(op, inst, operands)?),
        };
        made.map_or(Some(false), |made| {
            self.fixed.insert(id, made);
            Some(true)
        })
    }

    /// The value of a size, if it is a constant.
    fn size(&self, id: InstId) -> Option<u64> {
        let Op::Constant(Literal::Array(value)) = &self.new[id].op else { return None };
        Some(value.get_i64(0)?.max(0) as u64)
    }

    /// Slices the first `size` elements along a dimension; `None` if there are fewer.
    fn first(&mut self, x: InstId, axis: usize, size: u64) -> Option<InstId> {
        let shape = without_bounds(self.new[x].shape.as_array()?)?;
        if shape.dims.get(axis).is_none_or(|&n| size > n) {
            return None;
        }
        let mut dims = shape.dims.clone();
        dims[axis] = size;
        Some(self.slice_to_sizes(x, dims))
    }

    /// Slices the first elements along all dimensions.
    fn slice_to_sizes(&mut self, x: InstId, dims: Vec<u64>) -> InstId {
        let shape = self.new.array_shape(x);
        if shape.dims == dims {
            return x;
        }
        let slice = dims.iter().map(|&limit| SliceDim { start: 0, limit, stride: 1 }).collect();
        let shape = Shape::array(shape.dtype, dims);
        self.push(Op::Slice(slice), vec![x], shape)
    }

    /// Rebuilds `inst` on operands of other sizes than declared; `None` for ops whose result is not known then.
    fn rebuild_on_operands(&mut self, op: &Op, inst: &Inst, mut operands: Vec<InstId>) -> Option<InstId> {
        let mut op = op.clone();
        let shape = match &op {
            Op::Slice(_) | Op::Reshape | Op::Gather(_) | Op::Scatter { .. } => {
                let declared: Vec<&Shape> = inst.operands.iter().map(|&o| &self.old[o].shape).collect();
                let shapes: Vec<&Shape> = operands.iter().map(|&o| &self.new[o].shape).collect();
                let (resized, shape) = valid_sizes::with_actual_sizes(inst, &declared, &shapes, self.module)?;
                op = resized;
                shape
            }
            Op::Call(_) | Op::Fusion { .. } | Op::Conditional(_) | Op::While { .. } => {
                let shapes: Vec<Shape> = operands.iter().map(|&o| self.new[o].shape.clone()).collect();
                let (resized, shape) = self.resize_control_flow(&op, &shapes)?;
                op = resized;
                shape
            }
            Op::Elementwise(_) => {
                operands = self.crop_to_smallest(operands)?;
                let declared = inst.shape.as_array()?;
                let widest = operands.iter().max_by_key(|&&o| self.new.array_shape(o).rank())?;
                Shape::array(declared.dtype, self.new.array_shape(*widest).dims.clone())
            }
            Op::Broadcast(map) => {
                let mut shape = inst.shape.as_array()?.clone();
                for (&axis, &n) in map.iter().zip(&self.new.array_shape(operands[0]).dims) {
                    shape.dims[axis] = n;
                    if let Some(dynamic) = shape.dynamic.get_mut(axis) {
                        *dynamic = false;
                    }
                }
                Shape::Array(shape)
            }
            Op::Pad(_)
            | Op::Transpose(_)
            | Op::Reverse(_)
            | Op::Concatenate(_)
            | Op::Reduce { .. }
            | Op::Sort { .. }
            | Op::Dot(_)
            | Op::Copy
            | Op::OptimizationBarrier
            | Op::Tuple
            | Op::GetTupleElement(_) => {
                let shapes: Vec<&Shape> = operands.iter().map(|&o| &self.new[o].shape).collect();
                infer::infer(&op, &shapes, self.module).ok()?
            }
            _ => return None,
        };
        if shape.leaves().iter().any(|a| a.dynamic.contains(&true)) {
            return None;
        }
        Some(self.push(op, operands, shape))
    }

    /// Crops the operands of a pointwise op to the smallest of their sizes.
    fn crop_to_smallest(&mut self, operands: Vec<InstId>) -> Option<Vec<InstId>> {
        let shapes: Option<Vec<ArrayShape>> =
            operands.iter().map(|&o| self.new[o].shape.as_array().and_then(without_bounds)).collect();
        let shapes = shapes?;
        let rank = shapes.iter().map(ArrayShape::rank).max()?;
        let full = || shapes.iter().filter(|s| s.rank() == rank);
        let least: Vec<u64> = (0..rank).filter_map(|i| full().map(|s| s.dims[i]).min()).collect();
        let crop =
            |(o, s): (InstId, &ArrayShape)| if s.rank() == rank { self.slice_to_sizes(o, least.clone()) } else { o };
        Some(operands.into_iter().zip(&shapes).map(crop).collect())
    }

    fn push(&mut self, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
        let name = format!("{}.{}", op.name(), self.new.insts.len());
        self.new.insts.push(Inst { name, op, operands, shape, metadata: Default::default(), extra: Vec::new() })
    }
}

/// A shape without dynamic bounds; `None` if it has some.
fn without_bounds(shape: &ArrayShape) -> Option<ArrayShape> {
    (!shape.dynamic.contains(&true)).then(|| ArrayShape::new(shape.dtype, shape.dims.clone()))
}
