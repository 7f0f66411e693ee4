//! Pairs of resource operations that must not share a cluster, because a cluster reads all variables first and writes them last.
use super::flow::{FlowGraph, OpClass};
use super::registrations::ResourceAccess;
use crate::graph::Attr;
use std::rc::Rc;

/// Ordered pairs of nodes that must not share a cluster.
pub struct UnsafePairs {
    /// By node: the sorted numbers of later nodes with which it may not share a cluster.
    after: Vec<Vec<u32>>,
}

impl UnsafePairs {
    /// The empty set of pairs.
    pub fn none() -> UnsafePairs {
        UnsafePairs { after: Vec::new() }
    }
    /// The nodes that may not follow node `n` in one cluster, sorted.
    pub fn forbidden_successors(&self, n: u32) -> &[u32] {
        self.after.get(n as usize).map_or(&[], Vec::as_slice)
    }
    /// Whether node `y` may not follow node `x` in one cluster.
    pub fn forbids(&self, x: u32, y: u32) -> bool {
        self.forbidden_successors(x).binary_search(&y).is_ok()
    }
}

/// How a node accesses resources; `None` if it does not.
pub fn resource_access(flow: &FlowGraph, n: u32) -> Option<ResourceAccess> {
    let kind = flow.op_facts(n);
    if let Some((access, _)) = kind.registration.and_then(|r| r.resource) {
        return Some(access);
    }
    may_call_function(flow, n).then_some(ResourceAccess::ReadWrite)
}

/// Whether a node may call a function: its op or an attribute is one.
pub fn may_call_function(flow: &FlowGraph, n: u32) -> bool {
    let Some(node) = flow.nodes[n as usize].node else { return false };
    flow.program.functions.contains_key(&node.op) || node.attrs.iter().any(|(_, a)| matches!(a, Attr::Func(_)))
}

/// Finds the pairs that may not share a cluster. A read may follow a read, and a write may follow anything; a read or read-write that
/// follows a write or read-write is unsafe. Nodes for which `counts` is false, those of devices without XLA, are ignored.
pub fn find_unsafe_pairs(flow: &FlowGraph, counts: &dyn Fn(u32) -> bool) -> UnsafePairs {
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); flow.nodes.len()];
    // Writes on the paths to each node; most nodes share the set of their predecessor.
    let empty: Rc<Vec<u32>> = Rc::default();
    let mut written: Vec<Rc<Vec<u32>>> = vec![empty.clone(); flow.nodes.len()];
    for &n in flow.post_order().iter().rev() {
        let mut set = empty.clone();
        for edge in flow.in_edges(n) {
            if flow.class(n) == OpClass::Merge && flow.class(edge.src) == OpClass::NextIteration {
                continue;
            }
            set = union(set, &written[edge.src as usize]);
        }
        if let Some(access) = resource_access(flow, n).filter(|_| counts(n)) {
            if access != ResourceAccess::Write {
                set.iter().for_each(|&m| after[m as usize].push(n));
            }
            if access != ResourceAccess::Read {
                let mut with = (*set).clone();
                if let Err(at) = with.binary_search(&n) {
                    with.insert(at, n);
                }
                set = Rc::new(with);
            }
        }
        written[n as usize] = set;
    }
    after.iter_mut().for_each(|list| list.sort_unstable());
    UnsafePairs { after }
}

/// Union of two sorted sets, which shares one of them if it contains the other.
fn union(a: Rc<Vec<u32>>, b: &Rc<Vec<u32>>) -> Rc<Vec<u32>> {
    if b.is_empty() || Rc::ptr_eq(&a, b) {
        return a;
    }
    if a.is_empty() {
        return b.clone();
    }
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut x, mut y) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&&p), Some(&&q)) = (x.peek(), y.peek()) {
        all.push(p.min(q));
        if p <= q {
            x.next();
        }
        if q <= p {
            y.next();
        }
    }
    all.extend(x);
    all.extend(y);
    if all.len() == a.len() { a } else { Rc::new(all) }
}
