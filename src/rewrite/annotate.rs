//! `_XlaCluster` on the nodes of clusters, as TensorFlow's pass leaves them.
use super::proto;
use super::raw::RawNode;
use super::units::Unit;

/// Marks the nodes of a unit.
pub fn run(unit: &Unit, nodes: &mut [RawNode]) {
    for node in nodes {
        if let Some(&cluster) = unit.members.get(&node.name) {
            node.set("_XlaCluster", proto::string(&unit.names[cluster as usize]));
            node.set("_XlaAlreadyClustered", proto::truth(true));
        }
    }
}
