//! Clusters as calls that TensorFlow compiles with XLA.
//!
//! The call is an `XlaLaunch`, whose function Grappler leaves alone. Its inputs are those that XLA must know when it compiles,
//! then the others, then resources; which is which is only known when the function is there, so calls are made in two steps
//! and `ordered` is the second.
use super::calls::Made;
use crate::diag::{Code, Error, Result};
use crate::import::raw::RawNode;
use crate::import::raw_attr as proto;
use crate::opdef;

/// What `XlaLaunch` names its outputs.
pub const OUTPUT: &str = "results";

/// The call of a cluster.
pub fn call(made: &Made) -> RawNode {
    let mut node = made.call.clone();
    node.op = "XlaLaunch".to_string();
    node.set("function", proto::function(&made.function.name));
    node
}

/// Puts the arguments of a function and the inputs of its call in the order that XLA wants: `constant` says which arguments
/// must be known when it compiles. Errors: `UnsupportedCase` where a resource would have to be.
pub fn ordered(made: &mut Made, call: &mut RawNode, constant: &[bool]) -> Result<()> {
    let known = |i: usize| constant.get(i).copied().unwrap_or(false);
    let rank = |i: usize| match made.args[i].1 {
        opdef::RESOURCE => 2,
        _ if known(i) => 0,
        _ => 1,
    };
    if let Some(i) = (0..made.args.len()).find(|&i| known(i) && rank(i) == 2) {
        let told = format!("`{}` would have to know the value of the resource `{}`", call.name, call.inputs[i]);
        return Err(Error::user(Code::UnsupportedCase, told));
    }
    let mut order: Vec<usize> = (0..made.args.len()).collect();
    order.sort_by_key(|&i| rank(i));
    let types = |of: i32| order.iter().filter(|&&i| rank(i) == of).map(|&i| made.args[i].1).collect::<Vec<_>>();
    call.set("Tconstants", proto::types(&types(0)));
    call.set("Targs", proto::types(&types(1)));
    call.set("Nresources", proto::int(types(2).len() as i64));
    call.set("Tresults", proto::types(&made.results.iter().map(|r| r.1).collect::<Vec<_>>()));
    let inputs: Vec<String> = order.iter().map(|&i| call.inputs[i].clone()).collect();
    call.inputs.splice(..inputs.len(), inputs);
    made.args = order.iter().map(|&i| made.args[i].clone()).collect();
    made.sign();
    Ok(())
}
