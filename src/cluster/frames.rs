//! Frames of TensorFlow 1's loops: which Enter opened the frame that a node is in.
use super::flow::{Flow, OpClass, SOURCE};
use crate::diag::{Code, Error, Result};
use crate::graph::Attr;
use std::collections::{HashMap, VecDeque};

/// The frame of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeFrame {
    /// The Enter that opened it; [`SOURCE`] for the root.
    pub node: u32,
    /// The Enter of the frame around it.
    pub parent: u32,
    /// The frame's name as an index into [`Frames::names`]; 0 is the root's empty name.
    pub name: u32,
}

/// The frames of all nodes.
pub struct Frames {
    /// By node.
    pub of: Vec<NodeFrame>,
    /// The names.
    pub names: Vec<String>,
}

impl Frames {
    /// Follows edges from `_SOURCE`: an Enter opens a frame, what comes after an Exit is in the frame around.
    ///
    /// Errors: `BadGraph` for a node that nothing leads to, as in a loop without an Enter.
    pub fn find(flow: &Flow) -> Result<Frames> {
        let root = NodeFrame { node: SOURCE, parent: SOURCE, name: 0 };
        let mut of: Vec<Option<NodeFrame>> = vec![None; flow.nodes.len()];
        of[SOURCE as usize] = Some(root);
        let (mut names, mut known) = (vec![String::new()], HashMap::from([(String::new(), 0)]));
        let mut queue = VecDeque::from([(SOURCE, root)]);
        while let Some((n, frame)) = queue.pop_front() {
            let inside = match flow.class(n) {
                OpClass::Exit => of[frame.parent as usize].unwrap_or(root),
                _ => frame,
            };
            for edge in flow.outs(n) {
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
                        NodeFrame { node: edge.dst, parent: inside.node, name }
                    }
                    _ => inside,
                };
                of[edge.dst as usize] = Some(frame);
                queue.push_back((edge.dst, frame));
            }
        }
        of[super::flow::SINK as usize] = Some(root);
        match of.iter().position(Option::is_none) {
            None => Ok(Frames { of: of.into_iter().flatten().collect(), names }),
            Some(lost) => {
                let name = flow.name(lost as u32);
                Err(Error::user(Code::BadGraph, format!("nothing leads to `{name}`: its loop has no Enter")))
            }
        }
    }
    /// The name of the outermost frame around a node; 0 at the top.
    pub fn root_name(&self, n: u32) -> u32 {
        let mut frame = self.of[n as usize];
        while frame.parent != SOURCE {
            frame = self.of[frame.parent as usize];
        }
        frame.name
    }
    /// Whether the frame of `n` is one of the outermost.
    pub fn is_outermost(&self, n: u32) -> bool {
        self.of[n as usize].parent == SOURCE
    }
    /// The names of the frames around `n`, its own first.
    pub fn path(&self, n: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = n;
        while at != SOURCE {
            let frame = self.of[at as usize];
            path.push(frame.name);
            at = frame.parent;
        }
        path
    }
}

fn frame_name(flow: &Flow, n: u32) -> String {
    match flow.nodes[n as usize].node.and_then(|node| node.attr("frame_name")) {
        Some(Attr::Str(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    }
}
