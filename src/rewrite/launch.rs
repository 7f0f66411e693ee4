//! Clusters as calls that TensorFlow compiles with XLA.
//!
//! A call is what `tf.function(jit_compile=True)` becomes: neither Grappler nor the executor inlines it, and XLA compiles its function
//! when it is first called. Grappler would make Switch and Merge of the loops in the function, which XLA does not take, so the
//! function is kept as it was saved. An `XlaLaunch` would do the same in a session; but it has no shape function, without which the C API
//! (`TF_LoadSessionFromSavedModel`) loads no graph.
use super::calls::ExtractedCluster;
use crate::cluster::MUST;
use crate::import::raw::RawNode;
use crate::import::raw_attr as proto;

/// The name of the output list of the op that calls a cluster.
pub const OUTPUT: &str = "output";

/// The call of a cluster. It is stateful so that no constants are made of it when the graph is optimized.
pub fn call(made: &ExtractedCluster) -> RawNode {
    let types = |all: &[(String, i32)]| proto::types(&all.iter().map(|(_, number)| *number).collect::<Vec<_>>());
    let mut node = made.call.clone();
    node.op = "StatefulPartitionedCall".to_string();
    node.set("f", proto::function(&made.function.name));
    node.set("Tin", types(&made.args));
    node.set("Tout", types(&made.results));
    node.set(MUST, proto::truth(true));
    node
}
