//! The call of a compiled cluster in a graph: an `If` on whether the arguments fit, between the op and the cluster's own nodes.
//!
//! `If` asks to be lowered, so that TensorFlow inlines the side of the op: a Switch for each argument and a Merge for each
//! result is what the choice costs. The function with the cluster's nodes is kept from being inlined, or each of them would
//! be visited dead in every step.
use crate::graph::PartialShape;
use crate::import::raw::{Message, Raw, RawFunction, RawNode, map_entry};
use crate::import::raw_attr as proto;
use crate::opdef;
use crate::rewrite::calls::Made;

/// The nodes that call a cluster whose compiled op is `op`, and the function of the branch that has it. The cluster's function
/// becomes the other branch. `places` are those of the op's arguments among the cluster's, `shapes` what both branches give.
pub fn call(made: &mut Made, op: &str, places: &[usize], shapes: &[PartialShape]) -> (Vec<RawNode>, RawFunction) {
    made.sign();
    let keep = map_entry("_noinline", &proto::truth(true));
    made.function.rest.fields.push((5, Raw::Bytes(keep.into())));
    let name = made.call.name.clone();
    let branch = branch(made, op, places);
    let mut fits = RawNode {
        name: format!("{name}/fits"),
        op: super::fits(op),
        inputs: places.iter().map(|&i| made.call.inputs[i].clone()).collect(),
        device: made.call.device.clone(),
        ..RawNode::default()
    };
    if fits.inputs.is_empty() {
        // it runs in the frame and under the condition of the cluster
        fits.inputs.clone_from(&made.call.inputs);
    }
    let mut node = made.call.clone();
    node.op = if made.stateful { "If" } else { "StatelessIf" }.to_string();
    node.inputs.insert(0, if made.in_function { format!("{}:fits:0", fits.name) } else { fits.name.clone() });
    node.set("Tcond", proto::dtype(opdef::BOOL));
    node.set("Tin", proto::types(&made.args.iter().map(|a| a.1).collect::<Vec<_>>()));
    node.set("Tout", proto::types(&made.results.iter().map(|r| r.1).collect::<Vec<_>>()));
    node.set("output_shapes", proto::shapes(shapes));
    node.set("then_branch", proto::function(&branch.name));
    node.set("else_branch", proto::function(&made.function.name));
    node.set("_lower_using_switch_merge", proto::truth(true));
    (vec![fits, node], branch)
}

/// The function that is the op and nothing else.
fn branch(made: &Made, op: &str, places: &[usize]) -> RawFunction {
    let name = format!("{}_native", made.function.name);
    let call = RawNode {
        name: "call".to_string(),
        op: op.to_string(),
        inputs: places.iter().map(|&i| made.args[i].0.clone()).collect(),
        device: made.call.device.clone(),
        ..RawNode::default()
    };
    let signature = proto::signature(&name, &made.args, &made.results, &[], false);
    let ret = |(i, r): (usize, &(String, i32))| (r.0.clone(), format!("call:r{i}:0"));
    RawFunction {
        name,
        nodes: vec![call],
        rets: made.results.iter().enumerate().map(ret).collect(),
        control_rets: Vec::new(),
        rest: Message { fields: vec![(1, Raw::Bytes(signature.into()))] },
    }
}
