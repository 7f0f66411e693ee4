//! Frames of TensorFlow 1's loops: finds for each node the Enter that opened its frame.
use super::flow::{FlowGraph, OpClass, SOURCE};
use crate::diag::{Code, Error, Result};
use crate::graph::Attr;
use std::collections::{HashMap, VecDeque};

/// The frame of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeFrame {
    /// The Enter that opened the frame; [`SOURCE`] for the root.
    pub enter: u32,
    /// The Enter that opened the surrounding frame.
    pub parent: u32,
    /// Index of the frame's name in [`Frames::names`]; 0 is the empty name of the root.
    pub name: u32,
}

/// The frames of all nodes.
pub struct Frames {
    /// Frames by node.
    pub by_node: Vec<NodeFrame>,
    /// Names of the frames.
    pub names: Vec<String>,
}

impl Frames {
    /// Assigns a frame to each node, along the edges from `_SOURCE`: an Enter opens a frame, and what follows an Exit is in the
    /// surrounding frame.
    ///
    /// Errors: `BadGraph` for an unreachable node, as in a loop without an Enter.
    pub fn build(flow: &FlowGraph) -> Result<Frames> {
        let root = NodeFrame { enter: SOURCE, parent: SOURCE, name: 0 };
        let mut of: Vec<Option<NodeFrame>> = vec![None; flow.nodes.len()];
        of[SOURCE as usize] = Some(root);
        let (mut names, mut known) = (vec![String::new()], HashMap::from([(String::new(), 0)]));
        let mut queue = VecDeque::from([(SOURCE, root)]);
        while let Some((n, frame)) = queue.pop_front() {
            let inside = match flow.class(n) {
                OpClass::Exit => of[frame.parent as usize].unwrap_or(root),
                _ => frame,
            };
            for edge in flow.out_edges(n) {
                if edge.dst < 2 || of[edge.dst as usize].is_some() {
                    continue;
                }
                let frame = match flow.class(edge.dst) {
                    OpClass::Enter => {
                        let name = frame_name(flow, edge.dst);
                        let name = *known.entry(name.clone()).or_insert_with(|| {
                            names.push(name);
                            names.len() as u32 - 1
                        });
                        NodeFrame { enter: edge.dst, parent: inside.enter, name }
                    }
                    _ => inside,
                };
                of[edge.dst as usize] = Some(frame);
                queue.push_back((edge.dst, frame));
            }
        }
        of[super::flow::SINK as usize] = Some(root);
        match of.iter().position(Option::is_none) {
            None => Ok(Frames { by_node: of.into_iter().flatten().collect(), names }),
            Some(lost) => {
                let name = flow.name(lost as u32);
                Err(Error::user(Code::BadGraph, format!("nothing leads to `{name}`: its loop has no Enter")))
            }
        }
    }
    /// The name index of the outermost frame around node `n`; 0 at the top level.
    pub fn outermost_frame_name(&self, n: u32) -> u32 {
        let mut frame = self.by_node[n as usize];
        while frame.parent != SOURCE {
            frame = self.by_node[frame.parent as usize];
        }
        frame.name
    }
    /// Whether node `n` is in an outermost frame.
    pub fn is_outermost(&self, n: u32) -> bool {
        self.by_node[n as usize].parent == SOURCE
    }
    /// The name indices of the frames around node `n`, innermost first.
    pub fn frame_path(&self, n: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = n;
        while at != SOURCE {
            let frame = self.by_node[at as usize];
            path.push(frame.name);
            at = frame.parent;
        }
        path
    }
}

fn frame_name(flow: &FlowGraph, n: u32) -> String {
    match flow.nodes[n as usize].node.and_then(|node| node.attr("frame_name")) {
        Some(Attr::Str(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    }
}
