//! Takes products of a sequence's elements out of the loop over the sequence.
//!
//! A recurrent layer reads step `t` of a sequence that the loop does not change and multiplies it by weights that do not
//! change either. All steps can be multiplied at once before the loop, as one product of matrices, which reads the weights
//! once instead of once a step; the loop reads its row of the result:
//!
//! `dot(reshape(dynamic-slice(xs, t, 0...)), w)`, `xs` and `w` invariant, is
//! `reshape(dynamic-slice(dot(reshape(xs), w), t, 0...))`, the product made before the loop.
//!
//! Every element is the same sum in the same order. A loop that leaves early has multiplied steps that it does not read.
//!
//! Of a sequence whose steps are all the same, as a decoder's that reads one code again and again, one product is made.
//!
//! The products of a long sequence are not all kept: `blocks.rs` has them made a block of steps at a time.
mod blocks;
mod rows;

use super::rewrite::{Changed, Editor, rewrite};
use super::simplify_loops::{TupleLoop, bare_instruction, state_part_read, tuple_loop};
use crate::diag::Result;
use crate::hlo::attrs::DotDims;
use crate::hlo::{ArrayShape, CompId, Computation, InstId, Literal, Module, Op, Shape};
use crate::tensor::{DType, Tensor};

/// Upper limit of elements of a hoisted product: 256 MiB of f32.
const MOST_ELEMENTS: u64 = 1 << 26;

/// Hoists matrix products of sequence elements with invariant weights out of loops, for every `while` over a tuple whose elements are
/// accessed separately.
pub fn hoist_products(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match *editor.op(id) {
        Op::While { cond, body } => hoist(editor, id, cond, body),
        _ => Ok(None),
    })
}

/// A product in a loop's body that can be computed before the loop.
struct HoistedProduct {
    dot: InstId,
    /// Index of the loop state element that is the sequence.
    sequence: usize,
    /// Index of the step, an instruction of the body.
    step: InstId,
    dims: DotDims,
    weights: RightOperand,
    /// Shapes of all steps of the left operand, and of all products.
    left: ArrayShape,
    all: ArrayShape,
}

/// Origin of the right operand.
enum RightOperand {
    Constant(Literal),
    Part(usize),
}

fn hoist(editor: &mut Editor, id: InstId, cond: CompId, body: CompId) -> Result<Option<InstId>> {
    let Some(TupleLoop { shapes, starts, mut cond, body }) = tuple_loop(editor, id, cond, body) else {
        return Ok(None);
    };
    let invariant: Vec<bool> =
        (0..shapes.len()).map(|i| state_part_read(&body, body[body.root].operands[i]) == Some(i)).collect();
    let products: Vec<HoistedProduct> =
        body.post_order().into_iter().filter_map(|dot| product(&body, dot, &invariant)).collect();
    if products.is_empty() {
        return Ok(None);
    }
    let next = body[body.root].operands.clone();
    let mut l = GrowingLoop { starts, state: shapes.clone(), next, body };
    for p in &products {
        match invariant_step(editor, l.starts[p.sequence]) {
            Some(step) => hoist_invariant_product(editor, &mut l, p, step),
            None if blocks::compute_in_blocks(editor, &mut l, p) => {}
            None => at_once(editor, &mut l, p),
        }
    }
    let GrowingLoop { starts, state, next, mut body } = l;
    let state = Shape::Tuple(state);
    for comp in [&mut cond, &mut body] {
        let param = comp.params[0];
        comp.insts[param].shape = state.clone();
    }
    body.root = body.insts.push(bare_instruction("tuple", Op::Tuple, next, state.clone()));
    let (cond, body) = (editor.add_computation(cond), editor.add_computation(body));
    let new_init = editor.add_instruction(Op::Tuple, &starts)?;
    let new_loop = editor.add_instruction_with_shape(Op::While { cond, body }, &[new_init], state);
    editor.copy_provenance(id, new_loop);
    let mut out = Vec::with_capacity(shapes.len());
    for i in 0..shapes.len() {
        out.push(editor.add_instruction(Op::GetTupleElement(i), &[new_loop])?);
    }
    Ok(Some(editor.add_instruction(Op::Tuple, &out)?))
}

/// A loop whose state is extended.
struct GrowingLoop {
    /// The initial value of each element of the state.
    starts: Vec<InstId>,
    /// The shape of each element of the state.
    state: Vec<Shape>,
    /// The value of each element of the state after one iteration.
    next: Vec<InstId>,
    body: Computation,
}

impl GrowingLoop {
    /// Adds an element to the state; returns its value at the start of an iteration, in the body.
    fn add_state_element(&mut self, name: &str, start: InstId, shape: Shape) -> InstId {
        let (param, number) = (self.body.params[0], self.state.len());
        let part =
            self.body.insts.push(bare_instruction(name, Op::GetTupleElement(number), vec![param], shape.clone()));
        self.starts.push(start);
        self.state.push(shape);
        self.next.push(part);
        part
    }
}

/// Computes the weights of a product before the loop.
fn add_weights(editor: &mut Editor, l: &GrowingLoop, p: &HoistedProduct) -> InstId {
    match &p.weights {
        RightOperand::Constant(literal) => {
            let shape = l.body[l.body[p.dot].operands[1]].shape.clone();
            editor.add_instruction_with_shape(Op::Constant(literal.clone()), &[], shape)
        }
        RightOperand::Part(i) => l.starts[*i],
    }
}

/// One step of a sequence whose steps are all equal.
fn invariant_step(editor: &mut Editor, sequence: InstId) -> Option<InstId> {
    let Op::Broadcast(dims) = editor.op(sequence).clone() else { return None };
    let array = editor.array(sequence)?.clone();
    if dims.contains(&0) {
        return None;
    }
    let source = editor.operand(sequence, 0);
    let step = Shape::array(array.dtype, array.dims[1..].to_vec());
    Some(editor.add_instruction_with_shape(Op::Broadcast(dims.iter().map(|d| d - 1).collect()), &[source], step))
}

/// Hoists the product of a sequence whose steps are all equal: one product before the loop.
fn hoist_invariant_product(editor: &mut Editor, l: &mut GrowingLoop, p: &HoistedProduct, step: InstId) {
    let right = add_weights(editor, l, p);
    let of_step = |all: &ArrayShape| Shape::array(all.dtype, all.dims[1..].to_vec());
    let left = editor.add_instruction_with_shape(Op::Reshape, &[step], of_step(&p.left));
    let dims = DotDims { lhs_contracting: p.dims.lhs_contracting.iter().map(|a| a - 1).collect(), ..p.dims.clone() };
    let product = editor.add_instruction_with_shape(Op::Dot(Box::new(dims)), &[left, right], of_step(&p.all));
    let part = l.add_state_element("product", product, of_step(&p.all));
    l.body.insts[p.dot].op = Op::Reshape;
    l.body.insts[p.dot].operands = vec![part];
}

/// Hoists the products of all iterations before the loop, as one product.
fn at_once(editor: &mut Editor, l: &mut GrowingLoop, p: &HoistedProduct) {
    let right = add_weights(editor, l, p);
    let left = editor.add_instruction_with_shape(Op::Reshape, &[l.starts[p.sequence]], Shape::Array(p.left.clone()));
    let all = Shape::Array(p.all.clone());
    let products = editor.add_instruction_with_shape(Op::Dot(Box::new(p.dims.clone())), &[left, right], all.clone());
    let part = l.add_state_element("products", products, all);
    read_row(&mut l.body, p, part, p.step);
}

/// Recognizes `dot` as a product that can be hoisted.
fn product(body: &Computation, dot: InstId, invariant: &[bool]) -> Option<HoistedProduct> {
    let Op::Dot(d) = &body[dot].op else { return None };
    let [left, right] = body[dot].operands[..] else { return None };
    let unchanged = |id: InstId| state_part_read(body, id).filter(|&i| invariant[i]);
    let mut source = left;
    while matches!(body[source].op, Op::Reshape | Op::Bitcast | Op::Copy) {
        source = body[source].operands[0];
    }
    let Op::DynamicSlice(sizes) = &body[source].op else { return None };
    let whole = body[body[source].operands[0]].shape.as_array()?;
    let [sequence, step, ..] = body[source].operands[..] else { return None };
    let sequence = unchanged(sequence)?;
    let one_step = sizes.first() == Some(&1) && sizes[1..] == whole.dims[1..] && whole.dims[0] > 1;
    let apart = body[source].operands.len() == whole.dims.len() + 1;
    if !one_step || !apart || !d.lhs_batch.is_empty() {
        return None;
    }
    let weights = match &body[right].op {
        Op::Constant(literal) => RightOperand::Constant(literal.clone()),
        _ => RightOperand::Part(unchanged(right)?),
    };
    let with_steps = |id: InstId| {
        let array = body[id].shape.as_array()?;
        let dims: Vec<u64> = std::iter::once(whole.dims[0]).chain(array.dims.iter().copied()).collect();
        Some(ArrayShape::new(array.dtype, dims))
    };
    let dims = DotDims { lhs_contracting: d.lhs_contracting.iter().map(|a| a + 1).collect(), ..(**d).clone() };
    let (left, all) = (with_steps(left)?, with_steps(dot)?);
    (all.elements() <= MOST_ELEMENTS).then_some(HoistedProduct { dot, sequence, step, dims, weights, left, all })
}

/// Replaces the product in the body by row `step` of `products`.
fn read_row(body: &mut Computation, p: &HoistedProduct, products: InstId, step: InstId) {
    let index = body[p.step].shape.clone();
    let zero = scalar(body, &index, 0);
    let mut operands = vec![products, step];
    operands.resize(p.all.dims.len() + 1, zero);
    let mut sizes = p.all.dims.clone();
    sizes[0] = 1;
    let shape = Shape::Array(ArrayShape::new(p.all.dtype, sizes.clone()));
    let row = body.insts.push(bare_instruction("row", Op::DynamicSlice(sizes), operands, shape));
    body.insts[p.dot].op = Op::Reshape;
    body.insts[p.dot].operands = vec![row];
}

/// A constant in the shape and type of an index.
fn scalar(comp: &mut Computation, index: &Shape, value: i64) -> InstId {
    let dtype = index.as_array().map_or(DType::S32, |a| a.dtype);
    let literal = Literal::Array(Tensor::scalar_from_f64(dtype, value as f64));
    comp.insts.push(bare_instruction("number", Op::Constant(literal), vec![], index.clone()))
}
