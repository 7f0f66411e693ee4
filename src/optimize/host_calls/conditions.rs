//! Loops whose condition has an effect: the condition is evaluated before the loop and at the end of each round, and the loop carries
//! its value.
use super::{effectful_computations, parts_of, push, push_first_parts, push_with_last, replace_region};
use crate::hlo::{CompId, Computation, InstId, Module, Op, Shape};
use crate::tensor::DType;
use crate::util::id_vec::IdVec;

/// Rewrites every `while` whose condition has an effect.
pub fn move_effects_out_of_conditions(module: &mut Module) {
    let effectful = effectful_computations(module);
    for id in module.reachable() {
        let loops: Vec<(InstId, CompId, CompId)> = module.comps[id]
            .insts
            .iter()
            .filter_map(|(at, inst)| match inst.op {
                Op::While { cond, body } if effectful[cond.0 as usize] => Some((at, cond, body)),
                _ => None,
            })
            .collect();
        for (at, cond, body) in loops {
            rewrite_loop(module, id, at, cond, body);
        }
    }
}

fn rewrite_loop(module: &mut Module, id: CompId, at: InstId, cond: CompId, body: CompId) {
    let flag = Shape::array(DType::Pred, []);
    let shape = module.comps[id][at].shape.clone();
    let mut parts = parts_of(&shape);
    let last = parts.len();
    parts.push(flag.clone());
    let all = Shape::Tuple(parts);

    let (mut test, param) = region(&module.comps[cond].name, all.clone());
    test.root = push(&mut test, Op::GetTupleElement(last), vec![param], flag.clone());

    let (mut round, param) = region(&module.comps[body].name, all);
    let state = push_first_parts(&mut round, param, &shape);
    let next = push(&mut round, Op::Call(body), vec![state], shape.clone());
    let more = push(&mut round, Op::Call(cond), vec![next], flag.clone());
    round.root = push_with_last(&mut round, next, more);

    let (test, round) = (module.comps.push(test), module.comps.push(round));
    let comp = &mut module.comps[id];
    let Some(&start) = comp[at].operands.first() else { return };
    let first = push(comp, Op::Call(cond), vec![start], flag);
    replace_region(comp, at, Op::While { cond: test, body: round }, first);
}

/// A computation with one parameter, which is its root too.
fn region(name: &str, shape: Shape) -> (Computation, InstId) {
    let mut comp = Computation {
        name: format!("{name}.tested"),
        insts: IdVec::new(),
        params: Vec::new(),
        root: InstId(0),
        sizes: Vec::new(),
        size_constants: Vec::new(),
    };
    let param = push(&mut comp, Op::Parameter(0), Vec::new(), shape);
    comp.params.push(param);
    (comp, param)
}
