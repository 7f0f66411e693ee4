//! Sizes that are only bounded in the text, and that constants fix: `set-dimension-size` by a constant is a slice, and what reads it has
//! other sizes than it declares, as in the interpreter.
use std::collections::HashMap;

use super::rewrite::Changed;
use crate::diag::Result;
use crate::hlo::attrs::SliceDim;
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Literal, Metadata, Module, Op, Shape, infer};
use crate::tensor::Tensor;

/// Gives arrays the sizes that constants say they have, where that is known of all that a computation makes of them and changes neither
/// parameters nor the root.
pub fn fixed_sizes(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for id in super::rewrite::editable(module) {
        if let Some(fixed) = Fixing::new(module, id).comp() {
            module.comps[id] = fixed;
            changed = Changed::Yes;
        }
    }
    Ok(changed)
}

/// One computation in the making.
struct Fixing<'m> {
    module: &'m Module,
    old: &'m Computation,
    new: Computation,
    /// What stands for an instruction whose array has another size than was declared.
    fixed: HashMap<InstId, InstId>,
}

impl<'m> Fixing<'m> {
    fn new(module: &'m Module, id: CompId) -> Self {
        let old = &module.comps[id];
        Fixing { module, old, new: old.clone(), fixed: HashMap::new() }
    }

    /// The computation with fixed sizes; `None` where nothing is fixed, or not all that follows from it is known.
    fn comp(mut self) -> Option<Computation> {
        if !self.old.insts.values().any(|i| matches!(i.op, Op::SetDimensionSize(_))) {
            return None;
        }
        let mut changed = false;
        for id in super::rewrite::live_order(self.old) {
            changed |= self.inst(id)?;
        }
        let root = self.now(self.old.root);
        if !changed || !self.new[root].shape.same(&self.old[self.old.root].shape) {
            return None;
        }
        self.new.root = root;
        super::rewrite::compact(&mut self.new);
        Some(self.new)
    }

    fn now(&self, id: InstId) -> InstId {
        self.fixed.get(&id).copied().unwrap_or(id)
    }

    /// Whether another instruction stands for `id` now; `None` where its sizes are not known.
    fn inst(&mut self, id: InstId) -> Option<bool> {
        let inst = &self.old[id];
        let operands: Vec<InstId> = inst.operands.iter().map(|&o| self.now(o)).collect();
        let is_as_declared = operands == inst.operands;
        let made = match &inst.op {
            Op::SetDimensionSize(axis) => match self.size(operands[1]) {
                Some(size) => Some(self.first(operands[0], *axis, size)?),
                None if is_as_declared => None,
                None => return None,
            },
            _ if is_as_declared => None,
            Op::GetDimensionSize(axis) => {
                let size = *self.new.array(operands[0]).dims.get(*axis)?;
                let size = Literal::Array(Tensor::scalar(i32::try_from(size).ok()?));
                let shape = inst.shape.clone();
                Some(self.push(Op::Constant(size), Vec::new(), shape))
            }
            op => Some(self.again(op, inst, operands)?),
        };
        made.map_or(Some(false), |made| {
            self.fixed.insert(id, made);
            Some(true)
        })
    }

    /// The number that a size is, where it is a constant.
    fn size(&self, id: InstId) -> Option<u64> {
        let Op::Constant(Literal::Array(value)) = &self.new[id].op else { return None };
        Some(value.get_i64(0)?.max(0) as u64)
    }

    /// The first `size` elements along a dimension; `None` where there are fewer.
    fn first(&mut self, x: InstId, axis: usize, size: u64) -> Option<InstId> {
        let shape = plain(self.new[x].shape.as_array()?)?;
        if shape.dims.get(axis).is_none_or(|&n| size > n) {
            return None;
        }
        let mut dims = shape.dims.clone();
        dims[axis] = size;
        Some(self.cropped(x, dims))
    }

    /// The first elements along all dimensions.
    fn cropped(&mut self, x: InstId, dims: Vec<u64>) -> InstId {
        let shape = self.new.array(x);
        if shape.dims == dims {
            return x;
        }
        let slice = dims.iter().map(|&limit| SliceDim { start: 0, limit, stride: 1 }).collect();
        let shape = Shape::array(shape.dtype, dims);
        self.push(Op::Slice(slice), vec![x], shape)
    }

    /// `inst` on operands of other sizes than were declared; `None` for ops of which it is not known what that does.
    fn again(&mut self, op: &Op, inst: &Inst, mut operands: Vec<InstId>) -> Option<InstId> {
        let shape = match op {
            Op::Elementwise(_) => {
                operands = self.alike(operands)?;
                let declared = inst.shape.as_array()?;
                let widest = operands.iter().max_by_key(|&&o| self.new.array(o).rank())?;
                Shape::array(declared.dtype, self.new.array(*widest).dims.clone())
            }
            Op::Reshape => reshaped(self.new.array(operands[0]), inst.shape.as_array()?)?,
            Op::Broadcast(map) => {
                let mut shape = inst.shape.as_array()?.clone();
                for (&axis, &n) in map.iter().zip(&self.new.array(operands[0]).dims) {
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
                infer::infer(op, &shapes, self.module).ok()?
            }
            _ => return None,
        };
        if shape.leaves().iter().any(|a| a.dynamic.contains(&true)) {
            return None;
        }
        Some(self.push(op.clone(), operands, shape))
    }

    /// Operands of a pointwise op, which takes as many elements as the smallest has.
    fn alike(&mut self, operands: Vec<InstId>) -> Option<Vec<InstId>> {
        let shapes: Option<Vec<ArrayShape>> =
            operands.iter().map(|&o| self.new[o].shape.as_array().and_then(plain)).collect();
        let shapes = shapes?;
        let rank = shapes.iter().map(ArrayShape::rank).max()?;
        let full = || shapes.iter().filter(|s| s.rank() == rank);
        let least: Vec<u64> = (0..rank).filter_map(|i| full().map(|s| s.dims[i]).min()).collect();
        let crop = |(o, s): (InstId, &ArrayShape)| if s.rank() == rank { self.cropped(o, least.clone()) } else { o };
        Some(operands.into_iter().zip(&shapes).map(crop).collect())
    }

    fn push(&mut self, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
        let name = format!("{}.{}", op.name(), self.new.insts.len());
        self.new.insts.push(Inst { name, op, operands, shape, metadata: Metadata::default(), extra: Vec::new() })
    }
}

/// A shape without bounds; `None` where it has some.
fn plain(shape: &ArrayShape) -> Option<ArrayShape> {
    (!shape.dynamic.contains(&true)).then(|| ArrayShape::new(shape.dtype, shape.dims.clone()))
}

/// The declared shape of a reshape with the elements that there are: its one bounded dimension takes what is left.
fn reshaped(from: &ArrayShape, declared: &ArrayShape) -> Option<Shape> {
    let mut bounded = (0..declared.rank()).filter(|&i| declared.dynamic.get(i) == Some(&true));
    let (axis, None) = (bounded.next()?, bounded.next()) else { return None };
    let others = (0..declared.rank()).filter(|&i| i != axis).map(|i| declared.dims[i]).product::<u64>();
    if others == 0 || !from.elements().is_multiple_of(others) {
        return None;
    }
    let mut dims = declared.dims.clone();
    dims[axis] = from.elements() / others;
    Some(Shape::array(declared.dtype, dims))
}
