//! Small graphs, asked for in every way.
use super::*;
use crate::graph::{Attr, Graph, Node, PartialShape, TfType};
use crate::tensor::DType;

fn node(name: &str, op: &str, inputs: &[(u32, u32)]) -> Node {
    let inputs = inputs.iter().map(|&(n, port)| Endpoint { node: crate::graph::NodeId(n), port }).collect();
    Node { name: name.into(), op: op.into(), device: "".into(), inputs, controls: [].into(), attrs: [].into() }
}

fn placeholder(name: &str, dims: &[Option<u64>]) -> Node {
    let attrs = [
        ("dtype".into(), Attr::Type(TfType::Data(DType::F32))),
        ("shape".into(), Attr::Shape(PartialShape(Some(dims.to_vec())))),
    ];
    Node { attrs: attrs.into(), ..node(name, "Placeholder", &[]) }
}

fn program(nodes: Vec<Node>) -> Program {
    Program { graph: Graph { nodes: nodes.into_iter().collect() }, ..Program::default() }
}

fn model() -> Program {
    program(vec![
        placeholder("x", &[None, Some(3)]),
        node("dead", "Relu", &[(0, 0)]),
        node("y", "Relu", &[(0, 0)]),
        node("z", "Tanh", &[(2, 0)]),
    ])
}

fn code<T>(result: Result<T>) -> (Code, Option<String>) {
    match result {
        Err(Error::User(all)) => (all[0].code, all[0].help.clone()),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn defaults_are_placeholders_and_sinks() {
    let p = prepare(model(), &Request::default()).unwrap();
    let fetched: Vec<&str> = p.fetches.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(fetched, ["dead:0", "z:0"]);
    assert_eq!(p.feeds[0].info.type_text(), "f32[1,3]");
    assert_eq!(p.feeds[0].info.field, "x");
    assert_eq!(p.assumptions.len(), 3);
}

#[test]
fn pruning_stops_at_feeds() {
    let request = Request {
        feeds: vec![FeedSpec::parse("y=f32[2,2]").unwrap()],
        fetches: vec!["z".into()],
        ..Request::default()
    };
    let p = prepare(model(), &request).unwrap();
    let names: Vec<&str> = p.program.graph.nodes.values().map(|n| &*n.name).collect();
    assert_eq!(names, ["y", "z"]);
    assert_eq!(p.feeds[0].info.type_text(), "f32[2,2]");
    assert_eq!(&*p.program.graph.nodes[p.feeds[0].at.node].op, "Placeholder");
}

#[test]
fn dims_are_bound() {
    for (name, ok) in [("batch", true), ("x", true), ("x[0]", true), ("x:0[0]", true), ("q", false)] {
        let request =
            Request { dims: vec![(name.into(), Binding::Size(7))], fetches: vec!["z".into()], ..Request::default() };
        match prepare(model(), &request) {
            Ok(p) => assert_eq!((p.feeds[0].info.dims.as_slice(), ok), (&[7, 3][..], true)),
            other => assert_eq!((code(other).0, ok), (Code::BadOption, false)),
        }
    }
}

#[test]
fn wrong_names_get_suggestions() {
    let request = Request { fetches: vec!["Z".into()], ..Request::default() };
    assert_eq!(code(prepare(model(), &request)), (Code::UnknownTensor, Some("did you mean `z`?".into())));
}

#[test]
fn unknown_dims_and_sizes_are_refused() {
    let unknown = program(vec![placeholder("x", &[Some(1), None]), node("y", "Relu", &[(0, 0)])]);
    assert_eq!(code(prepare(unknown, &Request::default())).0, Code::UnknownDim);
    let huge = program(vec![placeholder("x", &[Some(1 << 62), Some(1 << 62)]), node("y", "Relu", &[(0, 0)])]);
    assert_eq!(code(prepare(huge, &Request::default())).0, Code::TooLarge);
}

#[test]
fn cycles_are_refused() {
    let cycle = program(vec![node("a", "Relu", &[(1, 0)]), node("b", "Relu", &[(0, 0)]), node("c", "Relu", &[(1, 0)])]);
    assert_eq!(code(prepare(cycle, &Request::default())).0, Code::BadGraph);
}

#[test]
fn long_chains_are_walked() {
    let mut nodes = vec![placeholder("x", &[Some(1)])];
    nodes.extend((0..100_000).map(|i| node(&format!("n{i}"), "Relu", &[(i, 0)])));
    assert_eq!(prepare(program(nodes), &Request::default()).unwrap().program.graph.nodes.len(), 100_001);
}

#[test]
fn feed_specs_are_parsed() {
    let full = FeedSpec::parse("a/b:1=bf16[1,?,3]").unwrap();
    assert_eq!(
        (full.name.as_str(), full.dtype, full.dims),
        ("a/b:1", Some(DType::BF16), Some(vec![Some(1), None, Some(3)]))
    );
    assert_eq!(FeedSpec::parse("a=f32[]").unwrap().dims, Some(vec![]));
    assert_eq!(FeedSpec::parse("a=int32").unwrap().dtype, Some(DType::S32));
    let dims =
        |text: &str| FeedSpec::parse(text).map(|f| (f.dtype, f.dims.unwrap_or_default(), f.value.unwrap_or_default()));
    assert_eq!(dims("a=-.5").unwrap(), (None, vec![], "-.5".to_string()));
    assert_eq!(dims("a={{1,2},{3,4},{5,6}}").unwrap().1, [Some(3), Some(2)]);
    assert_eq!(dims("a={}").unwrap().1, [Some(0)]);
    assert_eq!(dims("a={(1,2), (3,4)}").unwrap().1, [Some(2)]);
    assert_eq!(dims("a=s64[2]{7, 8}").unwrap(), (Some(DType::S64), vec![Some(2)], "{7, 8}".to_string()));
    assert_eq!(dims("a=pred[] true").unwrap(), (Some(DType::Pred), vec![], "true".to_string()));
    assert!(FeedSpec::parse(&format!("a={}", "{".repeat(100_000))).is_ok_and(|f| f.value.is_some()));
    assert!(FeedSpec::parse(&format!("a={0}{1}", "{".repeat(100_000), "}".repeat(100_000))).is_ok());
    for bad in ["a=f32[?]{1}", "a=f32[2]x", "", "=f32", "a=f33", "a=f32[1", "a=f32[x]", "a=f32[-1]"] {
        assert!(FeedSpec::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn feeds_of_known_value_are_constants() {
    let graph = || {
        program(vec![placeholder("x", &[Some(2)]), placeholder("k", &[Some(2)]), node("y", "Add", &[(0, 0), (1, 0)])])
    };
    let told = |text: &str| {
        let feeds = vec![FeedSpec::parse(text).unwrap()];
        prepare(graph(), &Request { feeds, fetches: vec!["y".to_string()], ..Request::default() })
    };
    let prepared = told("k={0.5,-2}").unwrap();
    assert_eq!(prepared.feeds.iter().map(|f| f.info.name.as_str()).collect::<Vec<_>>(), ["x:0"]);
    let k = prepared.program.graph.find("k").map(|id| prepared.program.graph.nodes[id].clone()).unwrap();
    let Some(Attr::Tensor(value)) = k.attr("value") else { panic!("{k:?}") };
    assert_eq!((&*k.op, value.to_vec::<f32>()), ("Const", vec![0.5, -2.0]));
    for bad in ["k=1", "k={1,2,3}", "k={1,x}", "k={1,2}}", "k={...}", "k=s32[2]{0.5,1}", "k={{1,2}", "k={1e99,1}"] {
        assert_eq!(code(told(bad)).0, Code::BadOption, "{bad}");
    }
}

#[test]
fn fields_are_identifiers() {
    let names = ["a/b:0", "a_b", "int", "1x", ":0", "_A__b"].map(String::from);
    assert_eq!(c_field_names(&names), ["a_b", "a_b_2", "int_", "t1x", "tensor", "A_b"]);
}
