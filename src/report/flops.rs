//! Estimates of the work of nodes, from the shapes of their tensors and the op's work model (`ops::op_work`).
//!
//! A multiplication and an addition count as two operations; padding counts like data; loop bodies and branches count once. The estimate
//! is `None` if a size is open or the op has no work model.
use crate::graph::{Endpoint, Graph, Node, Program};
use crate::infer::{Facts, GraphFacts};
use crate::ops::{self, CallKind, OpLowering, Work};
use crate::tensor::element_count;
use std::collections::{BTreeMap, HashMap};

/// Maximum depth of nested calls that are counted.
const MOST_CALLS: usize = 50;

/// The work of each node of the top-level graph, in floating-point operations.
pub fn node_flops(program: &Program, facts: &Facts) -> Vec<Option<u64>> {
    let mut counter = Counter { program, facts, known: HashMap::new() };
    let scope = Scope { graph: &program.graph, facts: &facts.graph };
    program.graph.nodes.values().enumerate().map(|(i, node)| counter.node(&scope, i, node, 0)).collect()
}

struct Scope<'a> {
    graph: &'a Graph,
    facts: &'a GraphFacts,
}

impl Scope<'_> {
    fn dims(&self, at: Endpoint) -> Option<Vec<u64>> {
        self.facts.get(at.node.0 as usize)?.get(at.port as usize)?.dims.known_sizes()
    }
    /// The dimensions of a node's data input.
    fn input(&self, node: &Node, i: usize) -> Option<Vec<u64>> {
        self.dims(*node.inputs.get(i)?)
    }
    /// The dimensions of an output of node `i`.
    fn output(&self, i: usize, port: usize) -> Option<Vec<u64>> {
        self.facts.get(i)?.get(port)?.dims.known_sizes()
    }
}

struct Counter<'a> {
    program: &'a Program,
    facts: &'a Facts,
    /// By function index: its work; `None` while it is being counted.
    known: HashMap<usize, Option<u64>>,
}

impl Counter<'_> {
    fn node(&mut self, scope: &Scope, i: usize, node: &Node, depth: usize) -> Option<u64> {
        let op = &*node.op;
        let called: &[&str] = match ops::find_op(op).and_then(OpLowering::call_kind) {
            Some(CallKind::Call) => &["f"],
            Some(CallKind::If) => &["then_branch", "else_branch"],
            Some(CallKind::While) => &["cond", "body"],
            _ if self.program.functions.contains_key(op) => return self.function(op, depth),
            _ => return estimate(scope, i, node),
        };
        let mut sum = 0u64;
        for attr in called {
            sum = sum.saturating_add(self.function(&node.func(attr)?.name, depth)?);
        }
        Some(sum)
    }

    fn function(&mut self, name: &str, depth: usize) -> Option<u64> {
        let (at, _, function) = self.program.functions.get_full(name)?;
        if depth >= MOST_CALLS {
            return None;
        }
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        self.known.insert(at, None);
        let facts = self.facts;
        let scope = Scope { graph: &function.graph, facts: facts.functions.get(at)? };
        let mut sum = Some(0u64);
        for (i, node) in scope.graph.nodes.values().enumerate() {
            let one = self.node(&scope, i, node, depth + 1);
            sum = sum.zip(one).map(|(a, b)| a.saturating_add(b));
        }
        self.known.insert(at, sum);
        sum
    }
}

/// The work of an op that calls no function.
fn estimate(scope: &Scope, i: usize, node: &Node) -> Option<u64> {
    let out = || element_count(&scope.output(i, 0)?);
    match ops::op_work(&node.op)? {
        Work::None => Some(0),
        Work::PerOutputElement(each) => Some(out()?.saturating_mul(each)),
        Work::PerInputElement => element_count(&scope.input(node, 0)?),
        Work::Pool => {
            let size = node.ints("ksize")?.iter().try_fold(1u64, |n, &k| n.checked_mul(u64::try_from(k).ok()?))?;
            Some(out()?.saturating_mul(size))
        }
        Work::Normalise => Some(out()?.saturating_mul(if node.bool("is_training").unwrap_or(true) { 5 } else { 2 })),
        Work::MatrixProduct(transposed) => product(scope, node, transposed, out()?),
        Work::Einsum => einsum(scope, node),
        Work::Convolution(free) => Some(out()?.saturating_mul(2).saturating_mul(window(&scope.input(node, 1)?, free)?)),
        Work::ConvolutionInputGradient(free) => behind(scope, node, &scope.input(node, 1)?, free),
        Work::ConvolutionFilterGradient(free) => behind(scope, node, &scope.output(i, 0)?, free),
        Work::Contraction => None,
    }
}

/// The work of a matrix product with `out` result elements: two operations for each element of the contracted axis.
fn product(scope: &Scope, node: &Node, transposed: &str, out: u64) -> Option<u64> {
    let dims = scope.input(node, 0)?;
    let back = if node.bool(transposed) == Some(true) { 2 } else { 1 };
    let inner = dims.len().checked_sub(back).and_then(|at| dims.get(at))?;
    Some(out.saturating_mul(2).saturating_mul(*inner))
}

/// Number of products in one element of a convolution: the filter's dimensions without the last `channels`.
fn window(filter: &[u64], channels: usize) -> Option<u64> {
    element_count(filter.get(..filter.len().checked_sub(channels)?)?)
}

/// The work of a convolution's gradient: that of the convolution, whose result is the node's input 2.
fn behind(scope: &Scope, node: &Node, filter: &[u64], channels: usize) -> Option<u64> {
    let result = element_count(&scope.input(node, 2)?)?;
    Some(result.saturating_mul(2).saturating_mul(window(filter, channels)?))
}

/// The work of an einsum: the product of all sizes in the equation, twice that if two operands are multiplied and summed.
fn einsum(scope: &Scope, node: &Node) -> Option<u64> {
    let equation: String = node.str("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, _) = equation.split_once("->")?;
    let mut sizes: BTreeMap<char, u64> = BTreeMap::new();
    let mut hidden = 1;
    for (i, term) in left.split(',').enumerate() {
        let dims = scope.input(node, i)?;
        let labels: Vec<char> = term.chars().filter(|c| c.is_alphabetic()).collect();
        let before = term.find("...").unwrap_or(labels.len()).min(dims.len());
        let dots = dims.len().checked_sub(labels.len())?;
        hidden = element_count(dims.get(before..before + dots)?)?.max(hidden);
        let named = dims[..before].iter().chain(&dims[before + dots..]);
        sizes.extend(labels.into_iter().zip(named.copied()));
    }
    for size in sizes.into_values() {
        hidden = u64::saturating_mul(hidden, size);
    }
    Some(hidden.saturating_mul(if node.inputs.len() > 1 { 2 } else { 1 }))
}
