//! Marks the nodes of clusters with `_XlaCluster`, as TensorFlow's pass leaves them.
//!
//! Grappler would rewrite marked nodes into others without marks and create cycles between clusters. The configuration in calls is
//! therefore extended to turn Grappler off for functions; for the graph itself, the session must do the same.
use super::units::GraphWithClusters;
use crate::diag::Result;
use crate::import::raw::{RawMessage, RawNode, RawValue};
use crate::import::raw_attr as proto;

/// Serialized `graph_options { rewrite_options { disable_meta_optimizer: true } }`, to be appended to a ConfigProto.
pub const NO_GRAPPLER: &[u8] = b"\x52\x05\x52\x03\x98\x01\x01";

/// Sets the attributes `_XlaCluster` and `_XlaAlreadyClustered` on each clustered node in `nodes`, the nodes of `unit`, and turns Grappler
/// off in function calls. Errors: `BadEncoding` for a malformed `config_proto` of a call.
pub fn set_cluster_attrs(unit: &GraphWithClusters, nodes: &mut [RawNode]) -> Result<()> {
    for node in nodes {
        if let Some(&cluster) = unit.members.get(&node.name) {
            node.set_attr("_XlaCluster", proto::string(&unit.names[cluster as usize]));
            node.set_attr("_XlaAlreadyClustered", proto::boolean(true));
        }
        if matches!(node.op.as_str(), "PartitionedCall" | "StatefulPartitionedCall") {
            node.set_attr("config_proto", proto::bytes(&without_grappler(node)?));
        }
    }
    Ok(())
}

/// The serialized ConfigProto of a function call, extended to turn Grappler off. Appending is enough, as protobuf merges concatenated
/// messages.
fn without_grappler(node: &RawNode) -> Result<Vec<u8>> {
    let mut config = Vec::new();
    if let Some((_, value)) = node.attrs.iter().find(|(name, _)| name == "config_proto") {
        for (number, field) in RawMessage::parse(value, "AttrValue")?.fields {
            if let (2, RawValue::Bytes(bytes)) = (number, field) {
                config = bytes.to_vec();
            }
        }
    }
    if !config.ends_with(NO_GRAPPLER) {
        config.extend_from_slice(NO_GRAPPLER);
    }
    Ok(config)
}
