//! Some rows of a sequence, made inside of a loop from what the sequence is made of: what only moves elements (a gather from a
//! table of embeddings, a reversal, a transpose, parts side by side) is done for those rows alone, and the whole is never there.
use super::scalar;
use crate::hlo::attrs::GatherDims;
use crate::hlo::{ArrayShape, Computation, InstId, Literal, Op, Shape};
use crate::optimize::rewrite::Editor;
use crate::optimize::simplify_loops::bare_instruction;
use crate::scalar::ScalarOp;

/// Upper limit of the recursion through operands.
const DEEPEST: usize = 16;

/// A computation under construction that computes some rows of arrays of another computation.
pub struct RowComputation<'a, 'm> {
    /// The computation that contains the loop.
    pub editor: &'a Editor<'m>,
    /// The body under construction, whose only parameter is a tuple.
    pub comp: Computation,
    /// Number of rows.
    pub count: u64,
    /// Index in the parameter of the first of `read`.
    pub first_part: usize,
    /// The outer arrays that the body reads.
    pub read: Vec<InstId>,
    /// The shape of an index.
    pub index: Shape,
}

impl RowComputation<'_, '_> {
    /// Computes `count` rows along `axis` of the outer array `id`, from row `first` on.
    pub fn rows_of(&mut self, id: InstId, axis: usize, first: InstId, depth: usize) -> InstId {
        let id = self.editor.resolve(id);
        self.rows_of_data_movement(id, axis, first, depth).unwrap_or_else(|| self.slice(id, axis, first))
    }

    /// Reads `id`, an array from outside of the loop.
    pub fn whole_array(&mut self, id: InstId) -> InstId {
        let id = self.editor.resolve(id);
        let shape = self.editor.shape(id).clone();
        if let Op::Constant(literal) = self.editor.op(id) {
            return add_constant(&mut self.comp, literal, shape);
        }
        let place = self.read.iter().position(|&r| r == id).unwrap_or_else(|| {
            self.read.push(id);
            self.read.len() - 1
        });
        self.add(Op::GetTupleElement(self.first_part + place), vec![self.comp.params[0]], shape)
    }

    fn add(&mut self, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
        let name = op.name().to_string();
        self.comp.insts.push(bare_instruction(&name, op, operands, shape))
    }

    /// The shape of `id` with `count` rows.
    fn shape(&self, id: InstId, axis: usize) -> Option<Shape> {
        let mut array = self.editor.array(id)?.clone();
        *array.dims.get_mut(axis)? = self.count;
        Some(Shape::Array(ArrayShape::new(array.dtype, array.dims)))
    }

    /// Slices rows of an array in memory.
    fn slice(&mut self, id: InstId, axis: usize, first: InstId) -> InstId {
        let whole = self.whole_array(id);
        let shape = self.shape(id, axis).unwrap_or(Shape::Token);
        let index = self.index.clone();
        let zero = scalar(&mut self.comp, &index, 0);
        let sizes = shape.as_array().map_or(Vec::new(), |a| a.dims.clone());
        let starts = (0..sizes.len()).map(|a| if a == axis { first } else { zero });
        let operands = std::iter::once(whole).chain(starts).collect();
        self.add(Op::DynamicSlice(sizes), operands, shape)
    }

    /// Computes rows of a data movement from rows of its operands.
    fn rows_of_data_movement(&mut self, id: InstId, axis: usize, first: InstId, depth: usize) -> Option<InstId> {
        if depth > DEEPEST {
            return None;
        }
        let shape = self.shape(id, axis)?;
        let operands = self.editor.operands(id).to_vec();
        let op = self.editor.op(id).clone();
        let made = match &op {
            Op::Reshape | Op::Bitcast => {
                let inner = same_rows(&self.editor.array(operands[0])?.dims, self.editor.dims(id), axis)?;
                vec![self.rows_of(operands[0], inner, first, depth + 1)]
            }
            Op::Copy => vec![self.rows_of(operands[0], axis, first, depth + 1)],
            Op::Transpose(perm) => vec![self.rows_of(operands[0], perm[axis], first, depth + 1)],
            Op::Reverse(axes) => {
                let from = if axes.contains(&axis) { self.counted_back(id, axis, first) } else { first };
                vec![self.rows_of(operands[0], axis, from, depth + 1)]
            }
            Op::Concatenate(along) if *along != axis => {
                operands.iter().map(|&o| self.rows_of(o, axis, first, depth + 1)).collect()
            }
            Op::Gather(dims) => {
                let of_indices = indices_axis(dims, axis, self.editor.dims(operands[1]).len())?;
                let table = self.whole_array(operands[0]);
                vec![table, self.rows_of(operands[1], of_indices, first, depth + 1)]
            }
            _ => return None,
        };
        let op = if op == Op::Bitcast { Op::Reshape } else { op };
        Some(self.add(op, made, shape))
    }

    /// The first of `count` rows counted from the other end, for a reversed axis.
    fn counted_back(&mut self, id: InstId, axis: usize, first: InstId) -> InstId {
        let index = self.index.clone();
        let last = self.editor.dims(id)[axis] as i64 - self.count as i64;
        let last = scalar(&mut self.comp, &index, last);
        self.add(Op::Elementwise(ScalarOp::Subtract), vec![last, first], index)
    }
}

/// A constant of another computation.
pub fn add_constant(comp: &mut Computation, literal: &Literal, shape: Shape) -> InstId {
    comp.insts.push(bare_instruction("constant", Op::Constant(literal.clone()), vec![], shape))
}

/// The axis of `from` that corresponds to `axis` of the reshape to `to`, if its rows are the same elements in order.
fn same_rows(from: &[u64], to: &[u64], axis: usize) -> Option<usize> {
    let before = |dims: &[u64], axis: usize| dims[..axis].iter().product::<u64>();
    let fits = |a: &usize| from[*a] == to[axis] && before(from, *a) == before(to, axis);
    (0..from.len()).find(fits)
}

/// The axis of a gather's indices that becomes `axis` of its result.
fn indices_axis(dims: &GatherDims, axis: usize, rank: usize) -> Option<usize> {
    if dims.offset_dims.contains(&axis) || !dims.operand_batching_dims.is_empty() {
        return None;
    }
    let number = axis - dims.offset_dims.iter().filter(|&&o| o < axis).count();
    (0..rank).filter(|&a| a != dims.index_vector_dim).nth(number)
}
