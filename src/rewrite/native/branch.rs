//! The call of a compiled cluster in a graph: an `If` that selects the library's op where the arguments fit, else the original nodes.
//!
//! The `If` is marked for lowering, so that TensorFlow inlines its branches; the choice costs a Switch per argument and a Merge per
//! result. The branch with the cluster's nodes is a call that is not inlined; otherwise each node would be visited dead in every step
//! (0.13 µs a node). These nodes run as they were saved: Grappler leaves functions of tf.data alone, and the call's configuration turns
//! Grappler off. Its remapper would give a batch norm of basic-pitch, in a function, a kernel that returns nothing (TensorFlow 2.21
//! with oneDNN).
use crate::graph::PartialShape;
use crate::import::raw::{RawFunction, RawMessage, RawNode, RawValue};
use crate::import::raw_attr as proto;
use crate::opdef;
use crate::rewrite::annotate::NO_GRAPPLER;
use crate::rewrite::calls::ExtractedCluster;
use indexmap::IndexSet;

/// Builds a conditional that runs a cluster's compiled op `op`, or else the cluster's original function: its nodes, and the functions of
/// both branches. `places[i]` is the index of the cluster's input that is argument `i` of the op; `shapes` are the shapes of the results.
pub fn build_conditional_call(
    made: &mut ExtractedCluster,
    op: &str,
    places: &[usize],
    shapes: &[PartialShape],
) -> (Vec<RawNode>, [RawFunction; 2]) {
    made.rebuild_function_signature();
    made.forbid_inlining();
    let name = made.call.name.clone();
    let (branch, saved) = (branch(made, op, places), saved(made));
    let mut fits = RawNode {
        name: format!("{name}/fits"),
        op: super::fits(op),
        inputs: places.iter().map(|&i| made.call.inputs[i].clone()).collect(),
        device: made.call.device.clone(),
        ..RawNode::default()
    };
    if fits.inputs.is_empty() {
        // control inputs keep the node in the frame and under the condition of the cluster
        let sources: IndexSet<String> = made.call.inputs.iter().map(|input| waited(input)).collect();
        fits.inputs.extend(sources);
    }
    let mut node = made.call.clone();
    node.op = if made.stateful { "If" } else { "StatelessIf" }.to_string();
    node.inputs.insert(0, if made.in_function { format!("{}:fits:0", fits.name) } else { fits.name.clone() });
    node.set_attr("Tcond", proto::dtype(opdef::BOOL));
    node.set_attr("Tin", proto::types(&made.args.iter().map(|a| a.1).collect::<Vec<_>>()));
    node.set_attr("Tout", proto::types(&made.results.iter().map(|r| r.1).collect::<Vec<_>>()));
    node.set_attr("output_shapes", proto::shapes(shapes));
    node.set_attr("then_branch", proto::function(&branch.name));
    node.set_attr("else_branch", proto::function(&saved.name));
    node.set_attr("_lower_using_switch_merge", proto::boolean(true));
    (vec![fits, node], [branch, saved])
}

/// Turns an input, such as `node:1`, into a control input from the same node: `^node`.
fn waited(input: &str) -> String {
    let node = input.trim_start_matches('^');
    format!("^{}", node.split(':').next().unwrap_or(node))
}

/// The function of the branch that calls the function with the cluster's nodes.
fn saved(made: &ExtractedCluster) -> RawFunction {
    let name = format!("{}_saved", made.function.name);
    let mut call = RawNode {
        name: "call".to_string(),
        op: if made.stateful { "StatefulPartitionedCall" } else { "PartitionedCall" }.to_string(),
        inputs: made.args.iter().map(|a| a.0.clone()).collect(),
        device: made.call.device.clone(),
        ..RawNode::default()
    };
    call.set_attr("Tin", proto::types(&made.args.iter().map(|a| a.1).collect::<Vec<_>>()));
    call.set_attr("Tout", proto::types(&made.results.iter().map(|r| r.1).collect::<Vec<_>>()));
    call.set_attr("f", proto::function(&made.function.name));
    call.set_attr("config_proto", proto::bytes(NO_GRAPPLER));
    let controls: Vec<String> = made.controls.first().cloned().into_iter().collect();
    let signature = proto::function_signature(&name, &made.args, &made.results, &controls, made.stateful);
    let ret = |(i, r): (usize, &(String, i32))| (r.0.clone(), format!("call:output:{i}"));
    RawFunction {
        name,
        nodes: vec![call],
        rets: made.results.iter().enumerate().map(ret).collect(),
        control_rets: controls.into_iter().map(|c| (c, "call".to_string())).collect(),
        rest: RawMessage { fields: vec![(1, RawValue::Bytes(signature.into()))] },
    }
}

/// The function of the branch that holds the library's op.
fn branch(made: &ExtractedCluster, op: &str, places: &[usize]) -> RawFunction {
    let name = format!("{}_native", made.function.name);
    let call = RawNode {
        name: "call".to_string(),
        op: op.to_string(),
        inputs: places.iter().map(|&i| made.args[i].0.clone()).collect(),
        device: made.call.device.clone(),
        ..RawNode::default()
    };
    let signature = proto::function_signature(&name, &made.args, &made.results, &[], false);
    let ret = |(i, r): (usize, &(String, i32))| (r.0.clone(), format!("call:r{i}:0"));
    RawFunction {
        name,
        nodes: vec![call],
        rets: made.results.iter().enumerate().map(ret).collect(),
        control_rets: Vec::new(),
        rest: RawMessage { fields: vec![(1, RawValue::Bytes(signature.into()))] },
    }
}
