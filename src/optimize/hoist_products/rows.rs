//! Some rows of a sequence, made inside of a loop from what the sequence is made of: what only moves elements (a gather from a
//! table of embeddings, a reversal, a transpose, parts side by side) is done for those rows alone, and the whole is never there.
use super::scalar;
use crate::hlo::attrs::GatherDims;
use crate::hlo::{ArrayShape, Computation, InstId, Literal, Op, Shape};
use crate::optimize::rewrite::Editor;
use crate::optimize::simplify_loops::plain;
use crate::scalar::ScalarOp;

/// Most instructions one behind the other that are followed.
const DEEPEST: usize = 16;

/// A computation that gets instructions for some rows of arrays of another.
pub struct RowComputation<'a, 'm> {
    /// The computation that the loop stands in.
    pub editor: &'a Editor<'m>,
    /// The body that is written; its only parameter is a tuple.
    pub comp: Computation,
    /// How many rows.
    pub count: u64,
    /// The part of the parameter that is the first of `read`.
    pub first_part: usize,
    /// The arrays that are read as they are.
    pub read: Vec<InstId>,
    /// The shape of an index.
    pub index: Shape,
}

impl RowComputation<'_, '_> {
    /// `count` rows along `axis` of the array `id` of the outer computation, from row `first` of the body on.
    pub fn of(&mut self, id: InstId, axis: usize, first: InstId, depth: usize) -> InstId {
        let id = self.editor.resolve(id);
        self.moved(id, axis, first, depth).unwrap_or_else(|| self.slice(id, axis, first))
    }

    /// The array `id` of the outer computation.
    pub fn whole(&mut self, id: InstId) -> InstId {
        let id = self.editor.resolve(id);
        let shape = self.editor.shape(id).clone();
        if let Op::Constant(literal) = self.editor.op(id) {
            return constant(&mut self.comp, literal, shape);
        }
        let place = self.read.iter().position(|&r| r == id).unwrap_or_else(|| {
            self.read.push(id);
            self.read.len() - 1
        });
        self.add(Op::GetTupleElement(self.first_part + place), vec![self.comp.params[0]], shape)
    }

    fn add(&mut self, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
        let name = op.name().to_string();
        self.comp.insts.push(plain(&name, op, operands, shape))
    }

    /// The shape of `id` with `count` rows.
    fn shape(&self, id: InstId, axis: usize) -> Option<Shape> {
        let mut array = self.editor.array(id)?.clone();
        *array.dims.get_mut(axis)? = self.count;
        Some(Shape::Array(ArrayShape::new(array.dtype, array.dims)))
    }

    /// Rows of what lies in memory.
    fn slice(&mut self, id: InstId, axis: usize, first: InstId) -> InstId {
        let whole = self.whole(id);
        let shape = self.shape(id, axis).unwrap_or(Shape::Token);
        let index = self.index.clone();
        let zero = scalar(&mut self.comp, &index, 0);
        let sizes = shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        let starts = (0..sizes.len()).map(|a| if a == axis { first } else { zero });
        let operands = std::iter::once(whole).chain(starts).collect();
        self.add(Op::DynamicSlice(sizes), operands, shape)
    }

    /// Rows of what moves elements, from rows of its operands.
    fn moved(&mut self, id: InstId, axis: usize, first: InstId, depth: usize) -> Option<InstId> {
        if depth > DEEPEST {
            return None;
        }
        let shape = self.shape(id, axis)?;
        let operands = self.editor.operands(id).to_vec();
        let op = self.editor.op(id).clone();
        let made = match &op {
            Op::Reshape | Op::Bitcast => {
                let inner = same_rows(&self.editor.array(operands[0])?.dims, self.editor.dims(id), axis)?;
                vec![self.of(operands[0], inner, first, depth + 1)]
            }
            Op::Copy => vec![self.of(operands[0], axis, first, depth + 1)],
            Op::Transpose(perm) => vec![self.of(operands[0], perm[axis], first, depth + 1)],
            Op::Reverse(axes) => {
                let from = if axes.contains(&axis) { self.counted_back(id, axis, first) } else { first };
                vec![self.of(operands[0], axis, from, depth + 1)]
            }
            Op::Concatenate(along) if *along != axis => {
                operands.iter().map(|&o| self.of(o, axis, first, depth + 1)).collect()
            }
            Op::Gather(dims) => {
                let of_indices = indices_axis(dims, axis, self.editor.dims(operands[1]).len())?;
                let table = self.whole(operands[0]);
                vec![table, self.of(operands[1], of_indices, first, depth + 1)]
            }
            _ => return None,
        };
        let op = if op == Op::Bitcast { Op::Reshape } else { op };
        Some(self.add(op, made, shape))
    }

    /// The first of the rows that are `first` and those behind it from the other end.
    fn counted_back(&mut self, id: InstId, axis: usize, first: InstId) -> InstId {
        let index = self.index.clone();
        let last = self.editor.dims(id)[axis] as i64 - self.count as i64;
        let last = scalar(&mut self.comp, &index, last);
        self.add(Op::Elementwise(ScalarOp::Subtract), vec![last, first], index)
    }
}

/// A constant of another computation.
pub fn constant(comp: &mut Computation, literal: &Literal, shape: Shape) -> InstId {
    comp.insts.push(plain("constant", Op::Constant(literal.clone()), vec![], shape))
}

/// The axis of `from` whose rows are, whole and in order, those along `axis` of the same elements as `to`.
fn same_rows(from: &[u64], to: &[u64], axis: usize) -> Option<usize> {
    let before = |dims: &[u64], axis: usize| dims[..axis].iter().product::<u64>();
    let fits = |a: &usize| from[*a] == to[axis] && before(from, *a) == before(to, axis);
    (0..from.len()).find(fits)
}

/// The axis of the indices of a gather that `axis` of its result is.
fn indices_axis(dims: &GatherDims, axis: usize, rank: usize) -> Option<usize> {
    if dims.offset_dims.contains(&axis) || !dims.operand_batching_dims.is_empty() {
        return None;
    }
    let number = axis - dims.offset_dims.iter().filter(|&&o| o < axis).count();
    (0..rank).filter(|&a| a != dims.index_vector_dim).nth(number)
}
