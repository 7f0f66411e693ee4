//! Takes out of a loop's state what does not change, and what no result needs.
//!
//! TensorFlow's loops carry everything that the body reads as state, weights too. The state is a tuple; for each element the
//! body says what the next one is. An element whose next value is itself is invariant.
//!
//! - An invariant element that starts as a constant (or a broadcast of one) is read as that constant.
//! - Behind the loop an invariant element is what it was before the loop.
//! - An element stays only if the condition reads it, a reader behind the loop does, or the next value of one that stays.
//!
//! The loop gets new computations; others that share the old ones keep them. Cost: one walk of condition and body a loop.
use super::rewrite::{Changed, Editor, live_order, rewrite};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op, Shape};
use crate::util::id_vec::{Id, IdVec};

/// Removes invariant and unused elements from the state of every `while` whose state is a tuple accessed element by element.
pub fn simplify_loops(module: &mut Module) -> Result<Changed> {
    rewrite(module, |editor, id| match *editor.op(id) {
        Op::While { cond, body } => loop_state(editor, id, cond, body),
        _ => Ok(None),
    })
}

fn loop_state(editor: &mut Editor, id: InstId, cond: CompId, body: CompId) -> Result<Option<InstId>> {
    let Some(TupleLoop { shapes, starts, cond, body }) = tuple_loop(editor, id, cond, body) else { return Ok(None) };
    let invariant: Vec<bool> =
        (0..shapes.len()).map(|i| state_part_read(&body, body[body.root].operands[i]) == Some(i)).collect();
    let constants: Vec<Option<Vec<Inst>>> =
        (0..shapes.len()).map(|i| invariant[i].then(|| constant_chain(editor, starts[i])).flatten()).collect();
    let mut live = read_behind(editor, id, shapes.len());
    for i in 0..live.len() {
        live[i] &= !invariant[i];
    }
    keep_what_is_read(&cond, &body, &constants, &mut live);
    let kept: Vec<usize> = (0..live.len()).filter(|&i| live[i]).collect();
    if kept.is_empty() || kept.len() == live.len() {
        return Ok(None);
    }
    let state = Shape::Tuple(kept.iter().map(|&i| shapes[i].clone()).collect());
    let new_cond = Narrow { old: &cond, kept: &kept, constants: &constants }.narrowed_computation(&state, &[cond.root]);
    let next: Vec<InstId> = kept.iter().map(|&i| body[body.root].operands[i]).collect();
    let new_body = Narrow { old: &body, kept: &kept, constants: &constants }.narrowed_computation(&state, &next);
    let (Some((mut new_cond, cond_root)), Some((mut new_body, next))) = (new_cond, new_body) else { return Ok(None) };
    new_cond.root = cond_root[0];
    new_body.root = new_body.insts.push(bare_instruction("tuple", Op::Tuple, next, state.clone()));
    let (cond, body) = (editor.add_computation(new_cond), editor.add_computation(new_body));

    let new_starts: Vec<InstId> = kept.iter().map(|&i| starts[i]).collect();
    let new_init = editor.add_instruction(Op::Tuple, &new_starts)?;
    let new_loop = editor.add_instruction_with_shape(Op::While { cond, body }, &[new_init], state);
    editor.copy_provenance(id, new_loop);
    let mut out = Vec::with_capacity(shapes.len());
    for (i, &start) in starts.iter().enumerate() {
        out.push(match kept.iter().position(|&k| k == i) {
            Some(position) => editor.add_instruction(Op::GetTupleElement(position), &[new_loop])?,
            None => start,
        });
    }
    Ok(Some(editor.add_instruction(Op::Tuple, &out)?))
}

/// A loop whose initial state and next state are tuples built from separate elements.
pub(super) struct TupleLoop {
    /// The shape of each element of the state.
    pub shapes: Vec<Shape>,
    /// The initial value of each element of the state.
    pub starts: Vec<InstId>,
    /// Copies of the computations.
    pub cond: Computation,
    pub body: Computation,
}

/// The state elements of loop `id`; `None` unless condition and body access the state element by element.
pub(super) fn tuple_loop(editor: &Editor, id: InstId, cond: CompId, body: CompId) -> Option<TupleLoop> {
    let init = editor.operand(id, 0);
    let shapes = editor.shape(id).as_tuple()?.to_vec();
    let (cond, body) = (editor.module().comps[cond].clone(), editor.module().comps[body].clone());
    let known = matches!(editor.op(init), Op::Tuple) && matches!(body[body.root].op, Op::Tuple);
    let fits = known && is_plain(&body) && is_plain(&cond);
    fits.then(|| TupleLoop { shapes, starts: editor.operands(init).to_vec(), cond, body })
}

/// Whether a computation has one parameter, a tuple accessed element by element, and no side effects.
fn is_plain(comp: &Computation) -> bool {
    let [param] = comp.params[..] else { return false };
    let fine = |i: &Inst| match i.op {
        Op::GetTupleElement(_) => true,
        Op::Foreign(_) => false,
        _ => !i.operands.contains(&param),
    };
    comp.root != param && comp.insts.values().all(fine)
}

/// Index of the state element that instruction `id` reads from the parameter; `None` if it reads none.
pub(super) fn state_part_read(comp: &Computation, id: InstId) -> Option<usize> {
    match comp[id].op {
        Op::GetTupleElement(index) if comp.params.contains(&comp[id].operands[0]) => Some(index),
        _ => None,
    }
}

/// The instructions that make a constant, or a broadcast of one, in order.
fn constant_chain(editor: &Editor, id: InstId) -> Option<Vec<Inst>> {
    let inst = |id: InstId| editor.comp()[id].clone();
    match editor.op(id) {
        Op::Constant(_) => Some(vec![inst(id)]),
        Op::Broadcast(_) => {
            let source = editor.operand(id, 0);
            matches!(editor.op(source), Op::Constant(_)).then(|| vec![inst(source), inst(id)])
        }
        _ => None,
    }
}

/// Whether each element of the loop's result is used after the loop.
fn read_behind(editor: &Editor, id: InstId, parts: usize) -> Vec<bool> {
    let comp = editor.comp();
    if editor.resolve(comp.root) == id {
        return vec![true; parts];
    }
    let mut read = vec![false; parts];
    for inst in comp.insts.values().filter(|i| i.operands.iter().any(|&o| editor.resolve(o) == id)) {
        match inst.op {
            Op::GetTupleElement(index) => read[index] = true,
            _ => return vec![true; parts],
        }
    }
    read
}

/// Marks the state elements that the condition reads, or that the next value of a marked element reads, except for constants.
fn keep_what_is_read(cond: &Computation, body: &Computation, constants: &[Option<Vec<Inst>>], live: &mut [bool]) {
    let mark = |comp: &Computation, from: Vec<InstId>, seen: &mut Vec<bool>, live: &mut [bool]| {
        let mut work = from;
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match state_part_read(comp, id) {
                Some(i) => live[i] |= constants[i].is_none(),
                None => work.extend(&comp[id].operands),
            }
        }
    };
    mark(cond, vec![cond.root], &mut vec![false; cond.insts.len()], live);
    let mut seen = vec![false; body.insts.len()];
    let mut done = vec![false; live.len()];
    while let Some(i) = (0..live.len()).find(|&i| live[i] && !done[i]) {
        done[i] = true;
        mark(body, vec![body[body.root].operands[i]], &mut seen, live);
    }
}

/// A computation whose state is reduced to some of its elements.
struct Narrow<'a> {
    old: &'a Computation,
    kept: &'a [usize],
    constants: &'a [Option<Vec<Inst>>],
}

impl Narrow<'_> {
    /// A computation with the instructions that `wanted` needs, and the new ids of `wanted`; the root is not set.
    fn narrowed_computation(&self, state: &Shape, wanted: &[InstId]) -> Option<(Computation, Vec<InstId>)> {
        let mut comp = Computation {
            name: self.old.name.clone(),
            insts: IdVec::new(),
            params: Vec::new(),
            root: InstId(0),
            sizes: Vec::new(),
            size_constants: Vec::new(),
        };
        let param = comp.insts.push(bare_instruction("state", Op::Parameter(0), vec![], state.clone()));
        comp.params.push(param);
        let mut new: Vec<Option<InstId>> = vec![None; self.old.insts.len()];
        for id in self.post_order(wanted) {
            let inst = &self.old[id];
            let value = match state_part_read(self.old, id) {
                Some(i) => self.state_element(&mut comp, i, inst)?,
                None => {
                    let operands = inst.operands.iter().map(|o| new[o.index()]).collect::<Option<Vec<_>>>()?;
                    comp.insts.push(Inst { operands, ..inst.clone() })
                }
            };
            new[id.index()] = Some(value);
        }
        let found = wanted.iter().map(|id| new[id.index()]).collect::<Option<Vec<_>>>()?;
        Some((comp, found))
    }
    /// Instructions that `wanted` need, operands first, without the parameter.
    fn post_order(&self, wanted: &[InstId]) -> Vec<InstId> {
        let mut probe = self.old.clone();
        probe.root = probe.insts.push(bare_instruction("wanted", Op::Tuple, wanted.to_vec(), Shape::Token));
        let root = probe.root;
        live_order(&probe).into_iter().filter(|&id| id != root && !self.old.params.contains(&id)).collect()
    }
    /// Element `i` of the old state, in terms of the new one.
    fn state_element(&self, comp: &mut Computation, i: usize, read: &Inst) -> Option<InstId> {
        if let Some(chain) = &self.constants[i] {
            let mut last = None;
            for inst in chain {
                last = Some(comp.insts.push(Inst { operands: last.into_iter().collect(), ..inst.clone() }));
            }
            return last;
        }
        let position = self.kept.iter().position(|&k| k == i)?;
        let param = comp.params[0];
        Some(comp.insts.push(Inst { op: Op::GetTupleElement(position), operands: vec![param], ..read.clone() }))
    }
}

/// An instruction without metadata.
pub(super) fn bare_instruction(name: &str, op: Op, operands: Vec<InstId>, shape: Shape) -> Inst {
    Inst { name: name.to_string(), op, operands, shape, metadata: Default::default(), extra: Vec::new() }
}
