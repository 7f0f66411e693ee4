//! Pairs of resource operations that must not share a cluster, as a cluster reads all variables first and writes them last.
use super::flow::{Flow, OpClass};
use super::table::ResourceAccess;
use crate::graph::Attr;
use std::rc::Rc;

/// The pairs `(before, after)` that are forbidden.
pub struct Unsafe {
    /// By node: the sorted nodes after it that it may not be clustered with.
    after: Vec<Vec<u32>>,
}

impl Unsafe {
    /// No pair.
    pub fn none() -> Unsafe {
        Unsafe { after: Vec::new() }
    }
    /// The nodes that may not follow `n` in one cluster, sorted.
    pub fn after(&self, n: u32) -> &[u32] {
        self.after.get(n as usize).map_or(&[], Vec::as_slice)
    }
    /// Whether `y` may not follow `x` in one cluster.
    pub fn forbids(&self, x: u32, y: u32) -> bool {
        self.after(x).binary_search(&y).is_ok()
    }
}

/// The access that a node makes to resources; `None` where it makes none.
pub fn access(flow: &Flow, n: u32) -> Option<ResourceAccess> {
    let kind = flow.kind_of_node(n);
    if let Some((access, _)) = kind.row.and_then(|r| r.resource) {
        return Some(access);
    }
    may_call(flow, n).then_some(ResourceAccess::ReadWrite)
}

/// Whether a node may call a function: its op is one, or an attribute is one.
pub fn may_call(flow: &Flow, n: u32) -> bool {
    let Some(node) = flow.nodes[n as usize].node else { return false };
    flow.program.functions.contains_key(&node.op) || node.attrs.iter().any(|(_, a)| matches!(a, Attr::Func(_)))
}

/// A read may follow a read and a write may follow anything; every other operation after a write, and a read-write after a
/// read-write, is kept apart. `counts` leaves out nodes of devices that nothing is compiled for.
pub fn analyse(flow: &Flow, counts: &dyn Fn(u32) -> bool) -> Unsafe {
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); flow.nodes.len()];
    // What was written on the way to each node; most nodes share the set of the node before.
    let empty: Rc<Vec<u32>> = Rc::default();
    let mut written: Vec<Rc<Vec<u32>>> = vec![empty.clone(); flow.nodes.len()];
    for &n in flow.post_order().iter().rev() {
        let mut set = empty.clone();
        for edge in flow.ins(n) {
            if flow.class(n) == OpClass::Merge && flow.class(edge.src) == OpClass::NextIteration {
                continue;
            }
            set = union(set, &written[edge.src as usize]);
        }
        if let Some(access) = access(flow, n).filter(|_| counts(n)) {
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
    Unsafe { after }
}

/// Both sorted sets together; one of them itself where it holds the other.
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
