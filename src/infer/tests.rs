//! Small graphs with open dimensions.
use super::*;
use crate::graph::{Attr, FuncRef, Function, Graph, Node, NodeId};
use crate::ops::fact::Dims;
use crate::ops::symbols::{InferredDim, UnknownReason};
use crate::tensor::{DType, Tensor};

fn node(name: &str, op: &str, inputs: &[(u32, u32)], attrs: Vec<(&str, Attr)>) -> Node {
    Node {
        name: name.into(),
        op: op.into(),
        device: "".into(),
        inputs: inputs.iter().map(|&(n, port)| Endpoint { node: NodeId(n), port }).collect(),
        controls: [].into(),
        attrs: attrs.into_iter().map(|(n, a)| (n.into(), a)).collect(),
    }
}

fn ints(name: &str, dims: &[u64], values: &[i32]) -> Node {
    node(name, "Const", &[], vec![("value", Attr::Tensor(Box::new(Tensor::of(dims, values))))])
}

fn facts(nodes: Vec<Node>, functions: Vec<Function>, shape: &[Option<u64>]) -> (Program, Facts) {
    let graph = Graph { nodes: nodes.into_iter().collect() };
    let functions = functions.into_iter().map(|f| (f.name.clone(), f)).collect();
    let program = Program { graph, functions, ..Program::default() };
    let given = FeedFacts {
        at: Endpoint { node: NodeId(0), port: 0 },
        dtype: Some(TfType::Data(DType::F32)),
        shape: PartialShape(Some(shape.to_vec())),
        sizes: Vec::new(),
        value: None,
    };
    let found = infer(&program, &[given]);
    (program, found)
}

fn dims(facts: &Facts, node: u32) -> Dims {
    facts.at(Endpoint { node: NodeId(node), port: 0 }).expect("it has an output").dims.clone()
}

/// x, shape(x)[0], [that, -1], reshape(x).
fn flatten() -> Vec<Node> {
    let shrink = vec![("shrink_axis_mask", Attr::Int(1))];
    vec![
        node("x", "Placeholder", &[], vec![]),
        node("shape", "Shape", &[(0, 0)], vec![("out_type", Attr::Type(TfType::Data(DType::S32)))]),
        ints("zero", &[1], &[0]),
        ints("one", &[1], &[1]),
        node("batch", "StridedSlice", &[(1, 0), (2, 0), (3, 0), (3, 0)], shrink),
        ints("rest", &[], &[-1]),
        node("target", "Pack", &[(4, 0), (5, 0)], vec![("axis", Attr::Int(0))]),
        node("y", "Reshape", &[(0, 0), (6, 0)], vec![]),
        node("z", "AddV2", &[(7, 0), (7, 0)], vec![]),
    ]
}

#[test]
fn shape_arithmetic_is_folded_and_unknown_sizes_cancel() {
    let (program, f) = facts(flatten(), vec![], &[None, Some(7), Some(3)]);
    assert!(f.problems.is_empty(), "{:?}", f.problems);
    assert_eq!(dims(&f, 8).to_string(), "[?,21]");
    let (x, z) = (dims(&f, 0), dims(&f, 8));
    assert_eq!(x.as_ranked().map(|d| d[0]), z.as_ranked().map(|d| d[0]));
    let id = z.first_unknown().expect("the batch is open");
    let told = f.size_origin(&program, id);
    assert_eq!((told.node.as_str(), &told.remedy), ("x", &Remedy::Feed { name: "x".to_string(), dim: Some(0) }));
}

#[test]
fn what_is_not_taken_tells_nothing() {
    let given = |value: Option<Tensor>| FeedFacts {
        at: Endpoint { node: NodeId(0), port: 0 },
        dtype: Some(TfType::Data(DType::Pred)),
        shape: PartialShape(Some(vec![])),
        sizes: Vec::new(),
        value,
    };
    let nodes = [
        node("p", "Placeholder", &[], vec![]),
        ints("x", &[3], &[1, 2, 3]),
        node("s", "Switch", &[(1, 0), (0, 0)], vec![]),
        node("twice", "ConcatV2", &[(2, 0), (2, 0), (6, 0)], vec![]),
        node("same", "Identity", &[(2, 1)], vec![]),
        node("m", "Merge", &[(3, 0), (4, 0)], vec![]),
        ints("axis", &[], &[0]),
    ];
    let program = Program { graph: Graph { nodes: nodes.into_iter().collect() }, ..Program::default() };
    let merged = |value: Option<bool>| {
        dims(&infer(&program, &[given(value.map(|v| Tensor::from_bools(&[], &[v])))]), 5).to_string()
    };
    assert_eq!([None, Some(true), Some(false)].map(merged), ["[?]", "[3]", "[6]"]);
}

#[test]
fn known_sizes_make_known_shapes() {
    let (_, f) = facts(flatten(), vec![], &[Some(4), Some(7), Some(3)]);
    assert_eq!(dims(&f, 8).to_string(), "[4,21]");
}

#[test]
fn contradictions_are_told_and_go_on() {
    let mut nodes = flatten();
    nodes.push(node("w", "MatMul", &[(7, 0), (7, 0)], vec![]));
    let (_, f) = facts(nodes, vec![], &[Some(4), Some(7), Some(3)]);
    assert_eq!(f.problems.len(), 1);
    assert_eq!(f.problems[0].place.node.as_deref(), Some("w"));
    assert!(dims(&f, 9).as_ranked().is_none());
}

/// A function of one argument with these nodes behind it.
fn function(name: &str, nodes: Vec<Node>, ret: u32) -> Function {
    let mut all = vec![node("a", "_Arg", &[], vec![])];
    all.extend(nodes);
    Function {
        name: name.into(),
        args: vec![NodeId(0)],
        control_rets: Vec::new(),
        rets: vec![Endpoint { node: NodeId(ret), port: 0 }],
        ret_names: vec!["r".into()],
        graph: Graph { nodes: all.into_iter().collect() },
        attrs: [].into(),
        stateful: false,
    }
}

fn func(name: &str) -> Attr {
    Attr::Func(Box::new(FuncRef { name: name.into(), attrs: [].into() }))
}

#[test]
fn loops_keep_what_no_round_changes() {
    let grow = vec![ints("axis", &[], &[0]), node("twice", "ConcatV2", &[(0, 0), (0, 0), (1, 0)], vec![])];
    let more = function("more", vec![ints("yes", &[], &[1])], 1);
    let nodes = vec![
        node("x", "Placeholder", &[], vec![]),
        node("loop", "While", &[(0, 0)], vec![("cond", func("more")), ("body", func("grow"))]),
    ];
    let (_, f) = facts(nodes, vec![more, function("grow", grow, 2)], &[Some(4), Some(7)]);
    let y = dims(&f, 1);
    assert_eq!(y.to_string(), "[?,7]");
    let Some(InferredDim::Unknown(id)) = y.as_ranked().map(|d| d[0]) else { panic!("{y}") };
    assert_eq!(f.symbols.origin(id).why, UnknownReason::Joined);
}

#[test]
fn recursion_ends() {
    let again = function("again", vec![node("call", "again", &[(0, 0)], vec![])], 1);
    let nodes = vec![node("x", "Placeholder", &[], vec![]), node("y", "again", &[(0, 0)], vec![])];
    let (_, f) = facts(nodes, vec![again], &[Some(4)]);
    assert!(dims(&f, 1).as_ranked().is_none());
}

#[test]
fn sizes_of_ops_without_a_shape_function_follow_from_their_lowering() {
    let nodes = vec![
        node("x", "Placeholder", &[], vec![]),
        node("twice", "ConcatV2", &[(0, 0), (0, 0), (2, 0)], vec![]),
        ints("axis", &[], &[0]),
        node("y", "XlaSharding", &[(1, 0)], vec![]),
        ints("low", &[2], &[1, 0]),
        ints("none", &[2], &[0, 0]),
        node("zero", "Const", &[], vec![("value", Attr::Tensor(Box::new(Tensor::of(&[], &[0.0f32]))))]),
        node("padded", "XlaPad", &[(3, 0), (6, 0), (4, 0), (5, 0), (5, 0)], vec![]),
    ];
    let (_, f) = facts(nodes, vec![], &[None, Some(3)]);
    assert_eq!(f.problems, []);
    let twice = dims(&f, 1);
    assert_eq!(dims(&f, 3), twice);
    let (padded, twice) = (dims(&f, 7), twice.as_ranked().expect("a rank").to_vec());
    assert!(
        matches!(padded.as_ranked().expect("a rank"), [InferredDim::Unknown(_), InferredDim::Known(3)]),
        "{padded}"
    );
    assert_ne!(padded.as_ranked().expect("a rank")[0], twice[0]);
}
