//! A graph as it was saved, brought to what TensorFlow would hand the pass. A dump of TensorFlow's is left as it is.
use super::devices::{CPU_0, Device, Devices};
use crate::diag::Result;
use crate::graph::{Graph, Program};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether every node of `graph` has a full device: TensorFlow placed it, and it is a dump of one of its passes.
pub fn is_dump(graph: &Graph) -> bool {
    let mut last: Option<&Arc<str>> = None;
    graph.nodes.values().all(|node| {
        if last.is_some_and(|d| Arc::ptr_eq(d, &node.device)) {
            return true;
        }
        last = Some(&node.device);
        Device::parse(&node.device).is_ok_and(|d| d.is_full())
    })
}

/// Brings a saved program to what the pass sees; returns what was assumed, a sentence each.
///
/// Errors: `BadGraph` for devices that are no names of devices.
pub fn bring(program: &mut Program) -> Result<Vec<String>> {
    let placed = place(&mut program.graph)?;
    let mut assumed = Vec::new();
    if placed > 0 {
        assumed.push(format!("{placed} nodes are placed on {CPU_0}"));
    }
    Ok(assumed)
}

/// Gives each node the parts of its device that it lacks; returns the number of nodes that lacked some.
fn place(graph: &mut Graph) -> Result<u64> {
    let mut known: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut placed = 0;
    for node in graph.nodes.values_mut() {
        let full = match known.get(&node.device) {
            Some(full) => full.clone(),
            None => {
                let full: Arc<str> = Devices::completed(&node.device)?.into();
                known.insert(node.device.clone(), full.clone());
                full
            }
        };
        placed += u64::from(full != node.device);
        node.device = full;
    }
    Ok(placed)
}
