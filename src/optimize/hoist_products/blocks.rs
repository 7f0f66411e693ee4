//! Products of a sequence a block of steps at a time, in a loop inside of the loop over the sequence.
//!
//! All products of a layer of four gates are four or more times as large as its input and its output. A block of steps reads
//! the weights as rarely as it takes to multiply at full speed, and stays in the first-level cache until it is read.
//!
//! The state gets the block and its first step. The body takes `wanted`, the first step of the block that has the step of this
//! round, and while that is not the first step of the block (at most once) an inner loop makes the block anew:
//!
//! `wanted = clamp(0, t / rows * rows, n - rows)`, so that the last block may hold steps of the one before.
//!
//! Nothing is assumed of the order of the steps; a sequence that is read backwards makes each block once as well.
use super::rows::{RowComputation, add_constant};
use super::{GrowingLoop, HoistedProduct, RightOperand, read_row, scalar};
use crate::hlo::{ArrayShape, Computation, InstId, Op, Shape};
use crate::optimize::rewrite::Editor;
use crate::optimize::simplify_loops::bare_instruction;
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use crate::util::id_vec::IdVec;

/// Minimum number of steps of a sequence that is multiplied in blocks.
const FEWEST_STEPS: u64 = 16;

/// Range of the rows that a product of one block may have. Nets of one to three layers of 50 to 256 units take 0.5 % (at most 2 %)
/// longer with 4 or 5 rows than with 10 to 16, up to 3 % longer with 3, and 8 % with 2. The block is the memory that a layer needs
/// beyond its lists, and fewer rows need a quarter of it.
const ROWS: (u64, u64) = (4, 6);

/// Number of state elements of the inner loop before those that it only reads.
const PARTS: usize = 3;

/// Computes the products of `p` in blocks and reads them from there; returns whether it did.
pub fn compute_in_blocks(editor: &mut Editor, l: &mut GrowingLoop, p: &HoistedProduct) -> bool {
    let index = l.body[p.step].shape.clone();
    let counts = index.as_array().is_some_and(|a| matches!(a.dtype, DType::S32 | DType::S64));
    let steps = p.all.dims[0];
    if !counts || steps < FEWEST_STEPS {
        return false;
    }
    let count = steps_of_block(p);
    let last_block = (steps - count) as i64;
    let block = with_steps(&p.all, count);
    let zero = editor.add_constant(Tensor::scalar_from_f64(block.dtype, 0.0));
    let zeros = editor.add_broadcast(zero, &block.dims, &[]);
    let block = Shape::Array(block);
    let inner = inner_body(editor, l, p, &index, &block);
    let mut state = vec![block.clone(), index.clone(), index.clone()];
    state.extend(inner.read.iter().map(|&id| editor.shape(id).clone()));
    let state = Shape::Tuple(state);
    let body = editor.add_computation(with_root(inner.comp, inner.root, &state));
    let (cond, differ) = inner_cond(&index);
    let cond = editor.add_computation(with_root(cond, differ, &state));

    // no block begins at step -1
    let none = editor.add_constant(Tensor::scalar_from_f64(index.as_array().map_or(DType::S32, |a| a.dtype), -1.0));
    let (block_part, first_part) = (l.state.len(), l.state.len() + 1);
    let mut parts =
        vec![l.add_state_element("block", zeros, block.clone()), l.add_state_element("first", none, index.clone())];
    let read: Vec<InstId> =
        inner.read.iter().map(|&id| l.add_state_element("read", id, editor.shape(id).clone())).collect();

    let [zero, rows, last_block] = [0, count as i64, last_block].map(|n| scalar(&mut l.body, &index, n));
    let mut op = |op: ScalarOp, operands: &[InstId]| {
        l.body.insts.push(bare_instruction(op.name(), Op::Elementwise(op), operands.to_vec(), index.clone()))
    };
    let number = op(ScalarOp::Divide, &[p.step, rows]);
    let begin = op(ScalarOp::Multiply, &[number, rows]);
    let wanted = op(ScalarOp::Clamp, &[zero, begin, last_block]);
    let row = op(ScalarOp::Subtract, &[p.step, wanted]);
    parts.push(wanted);
    parts.extend(read);
    let init = l.body.insts.push(bare_instruction("tuple", Op::Tuple, parts, state.clone()));
    let made = l.body.insts.push(bare_instruction("blocks", Op::While { cond, body }, vec![init], state));
    let part = |l: &mut GrowingLoop, i: usize, shape: &Shape| {
        l.body.insts.push(bare_instruction("part", Op::GetTupleElement(i), vec![made], shape.clone()))
    };
    l.next[block_part] = part(l, 0, &block);
    l.next[first_part] = part(l, 1, &index);
    read_row(&mut l.body, p, l.next[block_part], row);
    true
}

/// Number of steps per block: of the numbers with enough rows for the product, the one with the fewest repeated steps in the last block,
/// then the smallest.
fn steps_of_block(p: &HoistedProduct) -> u64 {
    let steps = p.all.dims[0];
    let terms: u64 = p.dims.lhs_contracting.iter().map(|&a| p.left.dims[a]).product();
    let rows_of_step = (p.left.elements() / (steps * terms).max(1)).max(1);
    let least = (ROWS.0 / rows_of_step).max(2);
    let most = (ROWS.1 / rows_of_step).max(least);
    let repeats = |count: &u64| steps.div_ceil(*count) * count;
    (least..=most).min_by_key(repeats).unwrap_or(least)
}

/// The shape with the steps of one block instead of all.
fn with_steps(all: &ArrayShape, count: u64) -> ArrayShape {
    let mut dims = all.dims.clone();
    dims[0] = count;
    ArrayShape::new(all.dtype, dims)
}

/// The body of the inner loop under construction.
struct Inner {
    comp: Computation,
    root: Vec<InstId>,
    /// Instructions outside the outer loop that the body reads, in the order of the inner loop's state.
    read: Vec<InstId>,
}

/// Starts a computation whose state shape is not known yet.
fn over_state(name: &str) -> Computation {
    let mut insts = IdVec::new();
    let param = insts.push(bare_instruction("state", Op::Parameter(0), vec![], Shape::Token));
    Computation {
        name: name.to_string(),
        insts,
        params: vec![param],
        root: param,
        sizes: Vec::new(),
        size_constants: Vec::new(),
    }
}

/// Completes `comp` with the shape of its state and its root.
fn with_root(mut comp: Computation, root: Vec<InstId>, state: &Shape) -> Computation {
    let param = comp.params[0];
    comp.insts[param].shape = state.clone();
    comp.root = match root[..] {
        [one] => one,
        _ => comp.insts.push(bare_instruction("tuple", Op::Tuple, root, state.clone())),
    };
    comp
}

/// The body that computes the block that begins at the wanted step.
fn inner_body(editor: &Editor, l: &GrowingLoop, p: &HoistedProduct, index: &Shape, block: &Shape) -> Inner {
    let mut comp = over_state("block");
    let param = comp.params[0];
    let wanted = comp.insts.push(bare_instruction("wanted", Op::GetTupleElement(2), vec![param], index.clone()));
    let mut rows = RowComputation {
        editor,
        comp,
        count: steps_of_block(p),
        first_part: PARTS,
        read: Vec::new(),
        index: index.clone(),
    };
    let steps = rows.rows_of(l.starts[p.sequence], 0, wanted, 0);
    let left = Shape::Array(with_steps(&p.left, rows.count));
    let left = rows.comp.insts.push(bare_instruction("left", Op::Reshape, vec![steps], left));
    let right = match &p.weights {
        RightOperand::Constant(literal) => {
            let shape = l.body[l.body[p.dot].operands[1]].shape.clone();
            add_constant(&mut rows.comp, literal, shape)
        }
        RightOperand::Part(i) => rows.whole_array(l.starts[*i]),
    };
    let dot = bare_instruction("products", Op::Dot(Box::new(p.dims.clone())), vec![left, right], block.clone());
    let dot = rows.comp.insts.push(dot);
    let mut root = vec![dot, wanted, wanted];
    for i in 0..rows.read.len() {
        let shape = editor.shape(rows.read[i]).clone();
        root.push(rows.comp.insts.push(bare_instruction("read", Op::GetTupleElement(PARTS + i), vec![param], shape)));
    }
    Inner { comp: rows.comp, root, read: rows.read }
}

/// The condition that the current block is not the wanted one.
fn inner_cond(index: &Shape) -> (Computation, Vec<InstId>) {
    let mut comp = over_state("other");
    let param = comp.params[0];
    let first = comp.insts.push(bare_instruction("first", Op::GetTupleElement(1), vec![param], index.clone()));
    let wanted = comp.insts.push(bare_instruction("wanted", Op::GetTupleElement(2), vec![param], index.clone()));
    let differ = Op::Elementwise(ScalarOp::Compare(Direction::Ne, CompareKind::Partial));
    let differ =
        comp.insts.push(bare_instruction("differ", differ, vec![first, wanted], Shape::array(DType::Pred, vec![])));
    (comp, vec![differ])
}
