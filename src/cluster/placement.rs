//! The devices of the nodes, and the decision for which devices nodes are compiled.
use super::ClusteringOptions;
use super::devices::{CPU_0, Device, DeviceKind, DeviceTable};
use super::flags::JitLevel;
use super::flow::FlowGraph;
use crate::diag::{Code, Diagnostic, Result};
use std::collections::HashSet;

/// The devices of a graph's nodes.
pub struct NodeDevices {
    /// All devices that occur.
    pub devices: DeviceTable,
    /// By node: number of its device; 0 for `_SOURCE` and `_SINK`.
    pub by_node: Vec<u16>,
    /// Whether the jit level, from the flags or else from the session, turns clustering on.
    pub level_is_on: bool,
}

impl NodeDevices {
    /// Parses the device of each node of `flow`, and determines whether the jit level is on. Errors: `BadGraph` for a node whose device is
    /// not a full name.
    pub fn resolve(flow: &FlowGraph, options: &ClusteringOptions) -> Result<NodeDevices> {
        let mut devices = DeviceTable::default();
        let mut of = Vec::with_capacity(flow.nodes.len());
        // Neighbouring nodes mostly share a device: the last name is cached.
        let mut last: (&str, u16) = ("", 0);
        for node in &flow.nodes {
            let number = match node.node {
                None => 0,
                Some(node) if last.0 == &*node.device && !last.0.is_empty() => last.1,
                Some(node) => {
                    let number = devices.intern(&node.device)?;
                    if !devices.all[number as usize].is_fully_specified() {
                        let told = format!("`{}` is not assigned to a device: `{}`", node.name, node.device);
                        return Err(Diagnostic::new(Code::BadGraph, told)
                            .help("either every node has a full device, as in a dump of TensorFlow, or the graph is taken as saved and placed")
                            .at_node(&node.name, &node.op)
                            .into());
                    }
                    last = (&node.device, number);
                    number
                }
            };
            of.push(number);
        }
        if devices.all.is_empty() {
            devices.intern(CPU_0)?;
        }
        let used: HashSet<u16> = flow.op_nodes().map(|n| of[n as usize]).collect();
        let gpus = used.iter().filter(|&&d| devices.all[d as usize].kind == DeviceKind::Gpu).count();
        let level_is_on = options.level(gpus == 1) == JitLevel::On;
        Ok(NodeDevices { devices, by_node: of, level_is_on })
    }
    /// The device of node `n`.
    pub fn device(&self, n: u32) -> &Device {
        &self.devices.all[self.by_node[n as usize] as usize]
    }
    /// Whether nodes on a device of this kind are compiled; `requested`: whether one requests compilation by an attribute.
    pub fn should_compile(&self, options: &ClusteringOptions, requested: bool, kind: DeviceKind) -> bool {
        let by_level = match kind {
            DeviceKind::Cpu => options.flags.cpu_global_jit.unwrap_or(false),
            DeviceKind::Gpu => true,
            DeviceKind::Xla => return requested || !options.flags.compile_on_demand,
            DeviceKind::Unknown => false,
        };
        requested || (by_level && self.level_is_on) || (kind == DeviceKind::Cpu && !by_level && options.session_cpu_jit)
    }
}
