//! Graphs that no `tf.while_loop` or `tf.cond` makes.
use super::functionalize;
use crate::diag::{Code, Error};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType};
use crate::tensor::{DType, Tensor};

fn node(name: &str, op: &str, inputs: &[(u32, u32)]) -> Node {
    let inputs = inputs.iter().map(|&(n, port)| Endpoint { node: NodeId(n), port }).collect();
    let attrs = [("T".into(), Attr::Type(TfType::Data(DType::F32)))].into();
    Node { name: name.into(), op: op.into(), device: "".into(), inputs, controls: [].into(), attrs }
}

fn predicate_of_test(name: &str) -> Node {
    let attrs = [("value".into(), Attr::Tensor(Box::new(Tensor::from_bools(&[], &[true]))))].into();
    Node { attrs, ..node(name, "Const", &[]) }
}

fn enter(name: &str, frame: &str, from: u32) -> Node {
    let attrs = [("frame_name".into(), Attr::Str(frame.to_string().into()))].into();
    Node { attrs, ..node(name, "Enter", &[(from, 0)]) }
}

/// The program after it was made functional, its only fetch output 0 of `fetch`, or the first code.
fn made(nodes: Vec<Node>, fetch: u32) -> Result<(Program, Endpoint), Code> {
    let mut program = Program { graph: Graph { nodes: nodes.into_iter().collect() }, ..Program::default() };
    let mut fetches = vec![("y".to_string(), Endpoint { node: NodeId(fetch), port: 0 })];
    match functionalize(&mut program, &[], &mut fetches, &mut Vec::new()) {
        Ok(()) => Ok((program, fetches[0].1)),
        Err(Error::User(all)) => Err(all[0].code),
        Err(e) => panic!("{e}"),
    }
}

fn code(nodes: Vec<Node>, fetch: u32) -> Option<Code> {
    made(nodes, fetch).err()
}

#[test]
fn known_switches_leave_no_trace() {
    let nodes = vec![
        node("x", "VariableV2", &[]),
        predicate_of_test("p"),
        node("s", "Switch", &[(0, 0), (1, 0)]),
        node("no", "Where", &[(2, 0)]),
        node("yes", "Relu", &[(2, 1)]),
        node("m", "Merge", &[(3, 0), (4, 0)]),
    ];
    let (program, fetch) = made(nodes, 5).expect("a condition");
    let ops: Vec<&str> = program.graph.nodes.values().map(|n| &*n.op).collect();
    assert_eq!((ops, program.functions.len()), (vec!["VariableV2", "Relu"], 0));
    assert_eq!(fetch, Endpoint { node: NodeId(1), port: 0 });
}

#[test]
fn a_test_that_is_open_becomes_an_if() {
    let nodes = vec![
        node("x", "VariableV2", &[]),
        node("p", "VariableV2", &[]),
        node("s", "Switch", &[(0, 0), (1, 0)]),
        node("no", "Tanh", &[(2, 0)]),
        node("yes", "Relu", &[(2, 1)]),
        node("m", "Merge", &[(3, 0), (4, 0)]),
    ];
    let (program, fetch) = made(nodes, 5).expect("a condition");
    assert_eq!(&*program.graph.nodes[fetch.node].op, "StatelessIf");
    assert_eq!(program.functions.keys().map(|k| &**k).collect::<Vec<_>>(), ["m.true", "m.false"]);
}

#[test]
fn results_of_one_side_are_refused() {
    let side = |port| {
        let s = node("s", "Switch", &[(0, 0), (1, 0)]);
        vec![node("x", "VariableV2", &[]), node("p", "VariableV2", &[]), s, node("y", "Relu", &[(2, port)])]
    };
    assert_eq!((code(side(0), 3), code(side(1), 3)), (Some(Code::ControlFlowV1), Some(Code::ControlFlowV1)));
    let mut merged = side(1);
    merged.push(node("m", "Merge", &[(3, 0)]));
    assert_eq!(code(merged, 4), Some(Code::ControlFlowV1));
}

#[test]
fn odd_loops_are_refused() {
    let x = || node("x", "VariableV2", &[]);
    assert_eq!(code(vec![x(), node("y", "Exit", &[(0, 0)])], 1), Some(Code::ControlFlowV1));
    assert_eq!(code(vec![x(), enter("e", "f", 0), node("y", "Exit", &[(1, 0)])], 2), Some(Code::ControlFlowV1));
    let open = vec![x(), enter("e", "f", 0), node("m", "Merge", &[(1, 0)]), node("y", "Exit", &[(2, 0)])];
    assert_eq!(code(open, 3), Some(Code::ControlFlowV1));
    let crossing = vec![x(), enter("e", "f", 0), enter("g", "h", 0), node("y", "Add", &[(1, 0), (2, 0)])];
    assert_eq!(code(crossing, 3), Some(Code::ControlFlowV1));
    let around = vec![x(), node("m", "Merge", &[(0, 0), (2, 0)]), node("y", "Relu", &[(1, 0)])];
    assert_eq!(code(around, 2), Some(Code::BadGraph));
    let short = vec![x(), node("y", "Switch", &[(0, 0)])];
    assert_eq!(code(short, 1), Some(Code::BadGraph));
}

#[test]
fn a_loop_that_never_asks_is_refused() {
    let nodes = vec![
        node("x", "VariableV2", &[]),
        enter("e", "f", 0),
        node("m", "Merge", &[(1, 0), (6, 0)]),
        node("c", "IsFinite", &[(2, 0)]),
        node("l", "LoopCond", &[(3, 0)]),
        node("s", "Switch", &[(2, 0), (4, 0)]),
        node("n", "NextIteration", &[(2, 0)]),
        node("y", "Exit", &[(5, 0)]),
    ];
    assert_eq!(code(nodes, 7), Some(Code::ControlFlowV1));
}

#[test]
fn deep_conditions_are_walked() {
    let mut nodes = vec![node("x", "VariableV2", &[])];
    for i in 0..3000u32 {
        nodes.push(node(&format!("p{i}"), "VariableV2", &[]));
        let at = nodes.len() as u32;
        let port = u32::from(i > 0);
        let from = if i == 0 { 0 } else { at - 2 };
        nodes.push(node(&format!("s{i}"), "Switch", &[(from, port), (at - 1, 0)]));
    }
    let last = nodes.len() as u32 - 1;
    nodes.push(node("m", "Merge", &[(last, 0), (last, 1)]));
    assert_eq!(code(nodes, last + 1), Some(Code::ControlFlowV1));
}
