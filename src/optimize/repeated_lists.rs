//! Lists that hold one value again and again.
//!
//! A loop that TensorFlow can take the gradient of puts what its gradient needs into lists, an element a round, the weights of a
//! recurrent layer too, which are the same in each.
//!
//! - A list of as many elements as the loop has rounds, of which each round writes the next one with what the loop does not
//!   change, is that value repeated, and no state of the loop.
//! - What a loop does not change and starts as a repeated value is carried as the value, and repeated where it is read.
use super::rewrite::{Changed, Editor, rewrite};
use super::simplify_loops::{TupleLoop, bare_instruction, state_part_read, tuple_loop};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, InstId, Literal, Module, Op, Shape};
use crate::scalar::{Direction, ScalarOp};

/// Replaces lists and state elements that repeat one value by broadcasts of the value, in every `while` over a tuple whose elements
/// are accessed separately.
pub fn replace_repeated_lists(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match *editor.op(id) {
        Op::While { cond, body } => of_loop(editor, id, cond, body),
        _ => Ok(None),
    })
}

/// A loop, with condition and body of its own.
struct WhileLoop {
    cond: Computation,
    body: Computation,
    /// The initial value of each element of the state.
    starts: Vec<InstId>,
    state: Vec<Shape>,
}

impl WhileLoop {
    /// The instruction of the body that computes state element `i` for the next iteration.
    fn next_value(&self, i: usize) -> InstId {
        self.body[self.body.root].operands[i]
    }

    fn is_invariant(&self, i: usize) -> bool {
        state_part_read(&self.body, self.next_value(i)) == Some(i)
    }

    /// The state element that instruction `id` of the body is, if the loop does not change it.
    fn invariant_state_index(&self, id: InstId) -> Option<usize> {
        state_part_read(&self.body, id).filter(|&i| self.is_invariant(i))
    }
}

fn of_loop(editor: &mut Editor, id: InstId, cond: CompId, body: CompId) -> Result<Option<InstId>> {
    let Some(TupleLoop { shapes: state, starts, cond, body }) = tuple_loop(editor, id, cond, body) else {
        return Ok(None);
    };
    let parts = state.len();
    let mut l = WhileLoop { cond, body, starts, state };
    let lists = uniform_lists(editor, &l);
    let repeated: Vec<usize> = (0..parts).filter(|&i| starts_repeated(editor, &l, i)).collect();
    if lists.is_empty() && repeated.is_empty() {
        return Ok(None);
    }
    for list in &lists {
        let root = l.body.root;
        l.body.insts[root].operands[list.part] = list.read;
    }
    for &part in &repeated {
        carry_once(editor, &mut l, part);
    }
    let shape = Shape::Tuple(l.state);
    for comp in [&mut l.cond, &mut l.body] {
        let param = comp.params[0];
        comp.insts[param].shape = shape.clone();
    }
    let root = l.body.root;
    l.body.insts[root].shape = shape.clone();
    let (cond, body) = (editor.add_computation(l.cond), editor.add_computation(l.body));
    let init = editor.add_instruction(Op::Tuple, &l.starts)?;
    let new_loop = editor.add_instruction_with_shape(Op::While { cond, body }, &[init], shape);
    editor.copy_provenance(id, new_loop);
    let mut out = Vec::with_capacity(parts);
    for part in 0..parts {
        let list = lists.iter().find(|list| list.part == part);
        out.push(match list {
            Some(list) => broadcast_list(editor, list, l.starts[list.value]),
            None => editor.add_instruction(Op::GetTupleElement(part), &[new_loop])?,
        });
    }
    Ok(Some(editor.add_instruction(Op::Tuple, &out)?))
}

/// A list whose elements are all the same after the loop.
struct List {
    /// Index of the list in the state.
    part: usize,
    /// The instruction of the body that reads the list.
    read: InstId,
    /// Index in the loop state of the value that all elements of the list have.
    value: usize,
    /// The list's dimensions.
    dims: Vec<u64>,
}

/// The lists that a loop fills with a value that does not change.
fn uniform_lists(editor: &Editor, l: &WhileLoop) -> Vec<List> {
    let Some(rounds) = rounds(editor, l) else { return Vec::new() };
    (0..l.state.len()).filter_map(|part| uniform_list(editor, l, part, rounds)).collect()
}

fn uniform_list(editor: &Editor, l: &WhileLoop, part: usize, rounds: u64) -> Option<List> {
    let next = &l.body[l.next_value(part)];
    let ([read, update, at, ..], Op::DynamicUpdateSlice) = (&next.operands[..], &next.op) else { return None };
    let (read, update, at) = (*read, *update, *at);
    let dims = l.state[part].as_array()?.dims.clone();
    let (&count, element) = dims.split_first()?;
    let of_one = l.body.array_shape(update).dims.split_first() == Some((&1, element));
    let is_update = state_part_read(&l.body, read) == Some(part) && of_one;
    let is_read = is_read_otherwise(l, part, l.next_value(part)) || is_read_in_round(l, part);
    if !is_update || count != rounds || count < 2 || is_read {
        return None;
    }
    let counter = state_part_read(&l.body, at)?;
    let from_zero = integer_constant(editor, l.starts[counter]) == Some(0) && is_counted(l, counter);
    let value = match l.body[update].op {
        Op::Reshape => l.body[update].operands[0],
        _ => update,
    };
    let value = l.invariant_state_index(value)?;
    from_zero.then_some(List { part, read, value, dims })
}

/// Whether anything besides `reader` of the body reads state element `i`.
fn is_read_otherwise(l: &WhileLoop, i: usize, reader: InstId) -> bool {
    let reads = |comp: &Computation, but: Option<InstId>| {
        let live = comp.post_order();
        live.into_iter()
            .filter(|&id| Some(id) != but)
            .any(|id| comp[id].operands.iter().any(|&o| state_part_read(comp, o) == Some(i)))
    };
    reads(&l.cond, None) || reads(&l.body, Some(reader))
}

/// Whether the iteration that computes the next value of state element `i` also reads it.
fn is_read_in_round(l: &WhileLoop, i: usize) -> bool {
    let of_root = l.body[l.body.root].operands.iter().filter(|&&o| o == l.next_value(i)).count();
    let mut live = l.body.post_order().into_iter().filter(|&id| id != l.body.root);
    of_root > 1 || live.any(|id| l.body[id].operands.contains(&l.next_value(i)))
}

/// Number of iterations, if the loop runs while one counter, or each of several, is below a constant.
fn rounds(editor: &Editor, l: &WhileLoop) -> Option<u64> {
    let (mut open, mut least) = (vec![l.cond.root], None::<u64>);
    while let Some(id) = open.pop() {
        let inst = &l.cond[id];
        let [x, y] = inst.operands[..] else { return None };
        match inst.op {
            Op::Elementwise(ScalarOp::And) => open.extend([x, y]),
            Op::Elementwise(ScalarOp::Compare(Direction::Lt, _)) => {
                let counter = state_part_read(&l.cond, x).filter(|&i| is_counted(l, i))?;
                let Op::Constant(Literal::Array(limit)) = &l.cond[y].op else { return None };
                let left = limit.get_i64(0)?.checked_sub(integer_constant(editor, l.starts[counter])?)?;
                let left = u64::try_from(left.max(0)).ok()?;
                least = Some(least.map_or(left, |least| least.min(left)));
            }
            _ => return None,
        }
    }
    least
}

/// Whether each iteration adds one to state element `i`.
fn is_counted(l: &WhileLoop, i: usize) -> bool {
    let next = &l.body[l.next_value(i)];
    let is_one = |id: InstId| match &l.body[id].op {
        Op::Constant(Literal::Array(t)) => t.len() == 1 && t.get_i64(0) == Some(1),
        _ => false,
    };
    match next.operands[..] {
        [x, y] if next.op == Op::Elementwise(ScalarOp::Add) => {
            state_part_read(&l.body, x) == Some(i) && is_one(y) || state_part_read(&l.body, y) == Some(i) && is_one(x)
        }
        _ => false,
    }
}

/// The value of a constant integer scalar.
fn integer_constant(editor: &Editor, id: InstId) -> Option<i64> {
    editor.constant(id).filter(|t| t.dims.is_empty() && t.dtype.is_integer())?.get_i64(0)
}

/// The list with `value` in each element, by a broadcast.
fn broadcast_list(editor: &mut Editor, list: &List, value: InstId) -> InstId {
    let element = editor.add_reshape(value, &list.dims[1..]);
    let map: Vec<usize> = (1..list.dims.len()).collect();
    editor.add_broadcast(element, &list.dims, &map)
}

/// Whether state element `i` does not change, is read, and starts as a broadcast.
fn starts_repeated(editor: &Editor, l: &WhileLoop, i: usize) -> bool {
    let start = l.starts[i];
    let Op::Broadcast(_) = editor.op(start) else { return false };
    let source = editor.operand(start, 0);
    let is_less = editor.element_count(source) < editor.element_count(start) && editor.constant(source).is_none();
    is_less && l.is_invariant(i) && is_read_otherwise(l, i, l.body.root)
}

/// Replaces state element `i`, a broadcast, by its operand.
fn carry_once(editor: &Editor, l: &mut WhileLoop, i: usize) {
    let start = l.starts[i];
    let (Op::Broadcast(map), source) = (editor.op(start).clone(), editor.operand(start, 0)) else { return };
    let (number, shape) = (l.state.len(), editor.shape(source).clone());
    let root = l.body.root;
    for (comp, root) in [(&mut l.cond, None), (&mut l.body, Some(root))] {
        let reads: Vec<InstId> = comp.insts.ids().filter(|&id| state_part_read(comp, id) == Some(i)).collect();
        let readers: Vec<InstId> = comp.insts.ids().filter(|&id| Some(id) != root).collect();
        let read = bare_instruction("once", Op::GetTupleElement(number), vec![comp.params[0]], shape.clone());
        let read = comp.insts.push(read);
        let wide =
            comp.insts.push(bare_instruction("repeated", Op::Broadcast(map.clone()), vec![read], l.state[i].clone()));
        for id in readers {
            comp.insts[id].operands.iter_mut().filter(|o| reads.contains(o)).for_each(|o| *o = wide);
        }
        if let Some(root) = root {
            comp.insts[root].operands.push(read);
        }
    }
    l.starts.push(source);
    l.state.push(shape);
}
