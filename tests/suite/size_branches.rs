//! Branches that depend on a size that is open when the function is compiled: each call takes the branch of its own size. The sizes at
//! which the conditions hold are ones that no lowering looks at.
use crate::common::{said, tfaot};
use std::path::Path;
use tfaot::compile;
use tfaot::hlo::Literal;
use tfaot::interp;
use tfaot::lower::Lowered;
use tfaot::prepare::{FeedSpec, Request};
use tfaot::tensor::{Tensor, TensorInfo};

const MOST: u64 = 400;

/// A node of type `dtype` with inputs and further attributes.
fn node(name: &str, op: &str, inputs: &[&str], attrs: &str) -> String {
    let inputs: String = inputs.iter().map(|i| format!("input: '{i}' ")).collect();
    format!("{{ name: '{name}' op: '{op}' {inputs} {attrs} }}\n")
}

fn typed(key: &str, dtype: &str) -> String {
    format!("attr {{ key: '{key}' value {{ type: {dtype} }} }}")
}

fn int(name: &str, value: u64) -> String {
    let attrs = format!(
        "{} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }} }} }}",
        typed("dtype", "DT_INT32")
    );
    node(name, "Const", &[], &attrs)
}

fn arithmetic(name: &str, op: &str, x: &str, y: &str) -> String {
    node(name, op, &[x, y], &typed("T", "DT_INT32"))
}

/// The function `name` of `x: f32[?]` that adds a number to it, or gives it back where it is 0.
fn adding(name: &str, number: f32) -> String {
    let signature = format!(
        "signature {{ name: '{name}' input_arg {{ name: 'x' type: DT_FLOAT }} output_arg {{ name: 'y' type: DT_FLOAT }} }}"
    );
    let value = format!(
        "{} attr {{ key: 'value' value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: {number} }} }} }}",
        typed("dtype", "DT_FLOAT")
    );
    let own = node("c", "Const", &[], &value);
    let sum = node("sum", "AddV2", &["x", "c:output:0"], &typed("T", "DT_FLOAT"));
    format!("function {{ {signature} node_def {own} node_def {sum} ret {{ key: 'y' value: 'sum:z:0' }} }}\n")
}

/// Attributes of a branching node.
fn branches(key_values: &[(&str, &str)]) -> String {
    let lists = ["Tin", "Tout"].map(|k| format!("attr {{ key: '{k}' value {{ list {{ type: DT_FLOAT }} }} }} "));
    let of = |(k, f): &(&str, &str)| format!("attr {{ key: '{k}' value {{ func {{ name: '{f}' }} }} }} ");
    lists.concat() + &key_values.iter().map(of).collect::<String>()
}

/// A graph of `x: f32[n]`, and of its size `n`, with these nodes besides.
fn graph(nodes: &[String]) -> String {
    let mut own = vec![
        node(
            "x",
            "Placeholder",
            &[],
            &(typed("dtype", "DT_FLOAT") + " attr { key: 'shape' value { shape { dim { size: -1 } } } }"),
        ),
        node("n", "Size", &["x"], &(typed("T", "DT_FLOAT") + &typed("out_type", "DT_INT32"))),
    ];
    own.extend_from_slice(nodes);
    let functions = [adding("one", 1.0), adding("two", 2.0), adding("three", 3.0)].concat();
    own.iter().map(|n| format!("node {n}")).collect::<String>() + "library { " + &functions + "}\n"
}

fn on_truth(nodes: Vec<String>) -> String {
    let attrs = typed("Tcond", "DT_BOOL") + &branches(&[("then_branch", "one"), ("else_branch", "two")]);
    graph(&[nodes, vec![node("y", "StatelessIf", &["holds", "x"], &attrs)]].concat())
}

fn lowered(graph: &str) -> Lowered {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let path = scratch.path().join("g.pbtxt");
    std::fs::write(&path, graph).expect("written");
    let feeds = vec![FeedSpec::parse(&format!("x=f32[n<={MOST}]")).expect("a feed")];
    let request = Request { feeds, ..Request::default() };
    let mut fronts = compile::load_and_lower(&path, None, &request).unwrap_or_else(|e| panic!("{e:?}"));
    fronts.entries.remove(0).lowered
}

/// What the function for every size adds to each element at each size.
fn added(graph: &str) -> Vec<(u64, f32)> {
    let lowered = lowered(graph);
    let of = |n: u64| {
        let TensorInfo { dims, .. } = &lowered.args[0];
        let x: Vec<f32> = (0..dims[0]).map(|i| if i < n { 0.0 } else { f32::NAN }).collect();
        let args = [Tensor::of(dims, &x), Tensor::scalar(n as i32)].map(Literal::Array);
        let root = interp::evaluate(&lowered.module, lowered.module.entry, &args).expect("it can be evaluated");
        let y = root.leaves()[0].to_vec::<f32>();
        assert!(y[..n as usize].iter().all(|&v| v == y[0]), "at {n}: {y:?}");
        (n, y[0])
    };
    (1..=MOST).map(of).collect()
}

#[test]
fn each_call_takes_the_branch_of_its_own_size() {
    let compared = |op: &str, k| vec![int("k", k), node("holds", op, &["n", "k"], &typed("T", "DT_INT32"))];
    let remainder = vec![
        int("k", 97),
        int("none", 0),
        arithmetic("rest", "FloorMod", "n", "k"),
        node("holds", "Equal", &["rest", "none"], &typed("T", "DT_INT32")),
    ];
    let band = vec![
        int("low", 230),
        int("high", 240),
        node("above", "Greater", &["n", "low"], &typed("T", "DT_INT32")),
        node("below", "Less", &["n", "high"], &typed("T", "DT_INT32")),
        node("holds", "LogicalAnd", &["above", "below"], ""),
    ];
    let cases: [(Vec<String>, &dyn Fn(u64) -> bool); 4] = [
        (compared("Equal", 123), &|n| n == 123),
        (compared("Less", 77), &|n| n < 77),
        (remainder, &|n| n % 97 == 0),
        (band, &|n| (231..240).contains(&n)),
    ];
    for (nodes, holds) in cases {
        for (n, y) in added(&on_truth(nodes.clone())) {
            assert_eq!(y, if holds(n) { 1.0 } else { 2.0 }, "{nodes:?} at {n}");
        }
    }
}

#[test]
fn each_call_takes_the_numbered_branch_of_its_own_size() {
    let functions = ["one", "two", "three"].map(|f| format!("func {{ name: '{f}' }} ")).concat();
    let attrs = branches(&[]) + &format!("attr {{ key: 'branches' value {{ list {{ {functions} }} }} }}");
    let nodes =
        [int("k", 150), arithmetic("index", "FloorDiv", "n", "k"), node("y", "StatelessCase", &["index", "x"], &attrs)];
    for (n, y) in added(&graph(&nodes)) {
        assert_eq!(y, 1.0 + (n / 150).min(2) as f32, "at {n}");
    }
}

/// Branches that leave arrays of different sizes can't both be code for every size.
#[test]
fn a_branch_that_fits_one_size_alone_is_refused() {
    let fixed = "function { signature { name: 'fixed' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } \
         node_def { name: 'dims' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 123 int_val: 1 } } } } \
         node_def { name: 'r' op: 'Reshape' input: 'x' input: 'dims:output:0' attr { key: 'T' value { type: DT_FLOAT } } } \
         node_def { name: 's' op: 'Squeeze' input: 'r:output:0' attr { key: 'T' value { type: DT_FLOAT } } } \
         ret { key: 'y' value: 's:output:0' } }\n";
    let attrs = typed("Tcond", "DT_BOOL") + &branches(&[("then_branch", "fixed"), ("else_branch", "two")]);
    let text = graph(&[
        int("k", 123),
        node("holds", "Equal", &["n", "k"], &typed("T", "DT_INT32")),
        node("y", "StatelessIf", &["holds", "x"], &attrs),
    ])
    .replace("library { ", &format!("library {{ {fixed}"));
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let path = scratch.path().join("g.pbtxt");
    std::fs::write(&path, text).expect("written");
    let output =
        tfaot(&["check", &path.display().to_string(), "--fetch", "y:0", "--feed", &format!("x=f32[n<={MOST}]")]);
    let told = said(&output);
    assert!(told.contains("error[TFA0104]: [n] can't be reshaped to [123, 1]"), "{told}");
    assert!(told.contains(&format!("it must hold for every size: `n` from 1 to {MOST}")), "{told}");
    let one = tfaot(&["check", &path.display().to_string(), "--fetch", "y:0", "--feed", "x=f32[123]"]);
    assert!(one.status.success(), "{}", said(&one));
    assert!(Path::new(&path).exists());
}
