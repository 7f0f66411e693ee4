//! Calls of clusters that TensorFlow compiles with XLA.
//!
//! A call has the form that `tf.function(jit_compile=True)` takes: neither Grappler nor the executor inlines it, and XLA compiles the
//! function on the first call. Grappler would lower the loops in the function to Switch and Merge, which XLA does not accept, so the
//! function is protected from Grappler. An `XlaLaunch` would do the same in a session, but has no shape function, without which the C
//! API (`TF_LoadSessionFromSavedModel`) loads no graph.
use super::calls::ExtractedCluster;
use crate::cluster::MUST_COMPILE_ATTR;
use crate::import::raw::RawNode;
use crate::import::raw_attr as proto;

/// The name of the output list in the op definition of a call.
pub const OUTPUT: &str = "output";

/// The node that calls a cluster's function. Its op is stateful, so that graph optimizers do not fold the call to constants.
pub fn call_node(made: &ExtractedCluster) -> RawNode {
    let types = |all: &[(String, i32)]| proto::types(&all.iter().map(|(_, number)| *number).collect::<Vec<_>>());
    let mut node = made.call.clone();
    node.op = "StatefulPartitionedCall".to_string();
    node.set_attr("f", proto::function(&made.function.name));
    node.set_attr("Tin", types(&made.args));
    node.set_attr("Tout", types(&made.results));
    node.set_attr(MUST_COMPILE_ATTR, proto::boolean(true));
    node
}
