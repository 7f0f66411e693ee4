//! Inference over one graph, producers first.
use super::lowering_facts::PointwiseTypes;
use super::{Facts, FeedFacts, GraphFacts, lowering_facts};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program, TfType};
use crate::opdef;
use crate::ops::fact::{Dims, Fact, InferredInt};
use crate::ops::host::find_host_op;
use crate::ops::symbols::{DimId, InferredDim, NodeSite, Symbols, UnknownReason};
use crate::ops::{self, LoweringFn, OpLowering, ShapeCtx, ShapeInference, output_count};
use crate::util::id_vec::Id;
use crate::util::order::{Sorted, breadth_first};
use std::collections::HashMap;
use std::sync::Arc;

/// Upper bound on the diagnostics that are kept.
const MAX_PROBLEMS: usize = 1000;

/// Upper bound on the outputs of a node.
const MAX_OUTPUTS: usize = 1 << 16;

/// Graph to infer: the top-level graph, or the body of a function.
#[derive(Clone, Copy)]
pub(super) struct WalkedGraph<'a> {
    /// Nodes to infer.
    pub graph: &'a Graph,
    /// 0 for the top-level graph, 1 + the index of the function for a body.
    pub number: u32,
    /// Name of the function; `None` for the top-level graph.
    pub function: Option<&'a str>,
    /// Values that the caller gives the function's attribute placeholders.
    pub attrs: &'a [(Arc<str>, Attr)],
}

/// State of the inference of one program.
pub(super) struct Inference<'p> {
    /// Program with the function library.
    pub program: &'p Program,
    /// Facts inferred so far.
    pub facts: Facts,
    /// Call stack: functions being inferred, outermost first.
    pub calls: Vec<Arc<str>>,
    /// Number of nodes that may still be visited, since nested calls visit bodies repeatedly.
    pub budget: u64,
    types: PointwiseTypes,
}

impl<'p> Inference<'p> {
    /// An inference without facts.
    pub fn new(program: &'p Program) -> Self {
        let nodes = program.graph.nodes.len() + program.functions.values().map(|f| f.graph.nodes.len()).sum::<usize>();
        let functions = program.functions.values().map(|_| GraphFacts::new()).collect();
        Inference {
            program,
            facts: Facts { functions, ..Facts::default() },
            calls: Vec::new(),
            budget: 8 * nodes as u64 + (1 << 20),
            types: PointwiseTypes::default(),
        }
    }

    /// Infers the facts of the whole program.
    pub fn infer_program(mut self, given: &[FeedFacts]) -> Facts {
        let mut seeds = HashMap::new();
        for g in given {
            let site = NodeSite { graph: 0, node: g.at.node };
            let dims = match &g.shape.0 {
                None => Dims::Unranked(self.symbols().fresh(site, UnknownReason::FeedRank)),
                Some(dims) => {
                    let mut one = |(i, d): (usize, &Option<u64>)| match (d, g.sizes.get(i).copied().flatten()) {
                        (Some(d), _) => InferredDim::Known(*d),
                        (None, None) => self.symbols().fresh(site, UnknownReason::Feed(i)).into(),
                        (None, Some(number)) => self.size_symbol(number, site, i).into(),
                    };
                    dims.iter().enumerate().map(&mut one).collect::<Vec<_>>().into()
                }
            };
            let fact = g.value.as_ref().map_or_else(|| Fact::new(g.dtype, dims), Fact::constant);
            seeds.insert(g.at, fact);
        }
        let scope = WalkedGraph { graph: &self.program.graph, number: 0, function: None, attrs: &[] };
        self.facts.graph = self.infer_graph(scope, &seeds);
        self.facts
    }

    /// Symbol of the size that feeds call `number`; a new symbol is attributed to dimension `i` of the feed at `site`.
    fn size_symbol(&mut self, number: usize, site: NodeSite, i: usize) -> DimId {
        let Facts { symbols, sizes, .. } = &mut self.facts;
        *sizes.entry(number).or_insert_with(|| symbols.fresh(site, UnknownReason::Feed(i)))
    }

    pub(super) fn symbols(&mut self) -> &mut Symbols {
        &mut self.facts.symbols
    }

    /// Infers the facts of every node; `seeds` holds outputs whose facts are given.
    pub fn infer_graph(&mut self, scope: WalkedGraph, seeds: &HashMap<Endpoint, Fact>) -> GraphFacts {
        let mut facts: GraphFacts = vec![Box::default(); scope.graph.nodes.len()];
        for id in execution_order(scope.graph) {
            let node = opdef::with_default_attrs(scope.graph.nodes[id].instantiate(scope.attrs));
            let site = NodeSite { graph: scope.number, node: id };
            self.budget = self.budget.saturating_sub(1);
            let args = self.input_facts(&node, site, seeds, &facts);
            let mut outputs = match seeds.get(&Endpoint { node: id, port: 0 }) {
                Some(fact) if node.inputs.is_empty() => vec![fact.clone()],
                _ => self.infer_node(scope, &node, site, &args),
            };
            for (port, output) in outputs.iter_mut().enumerate() {
                if let Some(fact) = seeds.get(&Endpoint { node: id, port: port as u32 }) {
                    *output = fact.clone();
                }
            }
            facts[id.0 as usize] = outputs.into();
        }
        facts
    }

    fn input_facts(
        &mut self,
        node: &Node,
        site: NodeSite,
        seeds: &HashMap<Endpoint, Fact>,
        facts: &[Box<[Fact]>],
    ) -> Vec<Fact> {
        let mut args = Vec::with_capacity(node.inputs.len());
        for e in &node.inputs {
            let found = facts[e.node.0 as usize].get(e.port as usize).or_else(|| seeds.get(e));
            args.push(match found {
                Some(fact) => fact.clone(),
                None => self.unknown_fact(site, UnknownReason::Joined),
            });
        }
        args
    }

    /// Fact of an output of unknown type and rank.
    pub(super) fn unknown_fact(&mut self, site: NodeSite, why: UnknownReason) -> Fact {
        Fact::new(None, Dims::Unranked(self.symbols().fresh(site, why)))
    }

    /// Infers the outputs of a node, with types from the op's definition and shapes from the attribute `_output_shapes` where nothing else is
    /// known.
    fn infer_node(&mut self, scope: WalkedGraph, node: &Node, site: NodeSite, args: &[Fact]) -> Vec<Fact> {
        let known = self.infer_outputs(node, site, args);
        let mut outputs = match known {
            Ok(outputs) => outputs,
            Err(error) => {
                self.report(scope, node, error);
                self.unknown_outputs(node, site, UnknownReason::Invalid)
            }
        };
        if !node.op.ends_with("Merge") && args.iter().any(|arg| arg.dead) {
            outputs.iter_mut().for_each(|output| output.dead = true);
        }
        for (port, output) in outputs.iter_mut().enumerate().filter(|(_, o)| o.dtype.is_none()) {
            output.dtype =
                opdef::find_def(&node.op).and_then(|def| def.output_type(node, port)).map(TfType::from_number);
        }
        if let Some(Attr::Shapes(told)) = node.attr("_output_shapes").filter(|_| lacks_shape_function(node)) {
            for (output, shape) in outputs.iter_mut().zip(told.iter()) {
                let mut cx = ShapeCtx { node, args, symbols: &mut self.facts.symbols, site };
                output.dims = cx.attr_shape(shape);
            }
        }
        outputs
    }

    /// Unknown facts for each output of a node.
    pub(super) fn unknown_outputs(&mut self, node: &Node, site: NodeSite, why: UnknownReason) -> Vec<Fact> {
        let told = output_count(node, &self.program.functions);
        let n = told.or_else(|| Some(opdef::find_def(&node.op)?.output_count(node))).unwrap_or(1).min(MAX_OUTPUTS);
        (0..n).map(|_| self.unknown_fact(site, why)).collect()
    }

    fn infer_outputs(&mut self, node: &Node, site: NodeSite, args: &[Fact]) -> Result<Vec<Fact>> {
        let mut cx = ShapeCtx { node, args, symbols: &mut self.facts.symbols, site };
        match ops::find_op(&node.op) {
            Some(row) if !row.accepts_input_count(args.len()) => {
                Err(Error::user(Code::BadGraph, format!("{} does not take {} inputs", node.op, args.len())))
            }
            Some(OpLowering { lower: LoweringFn::Walker(calls), .. }) => {
                Ok(self.infer_functional_op(node, *calls, site, args))
            }
            Some(row) => {
                if let Some(folded) = lowering_facts::fold_constants(row, node, args) {
                    return Ok(folded);
                }
                match row.shapes {
                    ShapeInference::Function(f) => f(&mut cx),
                    ShapeInference::Pointwise => self.infer_pointwise(row, node, site, args),
                    ShapeInference::ByLowering => match lowering_facts::infer_outputs(row, &mut cx) {
                        Some(outputs) => Ok(outputs),
                        None => {
                            let why = args
                                .iter()
                                .find_map(|a| a.dims.first_unknown())
                                .map_or(UnknownReason::NoShapeFunction, UnknownReason::From);
                            Ok(self.unknown_outputs(node, site, why))
                        }
                    },
                }
            }
            None if self.program.functions.contains_key(&node.op) => {
                Ok(self.infer_call(&node.op.clone(), &node.attrs, site, args))
            }
            None => match find_host_op(&node.op) {
                Some(row) => (row.shape)(&mut cx),
                None => Ok(self.unknown_outputs(node, site, UnknownReason::NoShapeFunction)),
            },
        }
    }

    fn infer_pointwise(&mut self, row: &OpLowering, node: &Node, site: NodeSite, args: &[Fact]) -> Result<Vec<Fact>> {
        let mut cx = ShapeCtx { node, args, symbols: &mut self.facts.symbols, site };
        let mut dims = cx.dims(0)?;
        for arg in &args[1..] {
            dims = cx.broadcast(&dims, &arg.dims)?;
        }
        let dtype = self.types.pointwise_type(row, node, args);
        if let (Some(f), Some(dtype), Some(fixed)) = (row.sizes, dtype, dims.known_sizes())
            && let Some(values) = size_arithmetic(f, &mut cx, args)
        {
            return Ok(vec![Fact::from_ints(dtype, &fixed, values)]);
        }
        Ok(vec![Fact::new(dtype, dims)])
    }

    fn report(&mut self, scope: WalkedGraph, node: &Node, error: Error) {
        for d in error.into_diagnostics() {
            let mut d = d.at_node(&node.name, &node.op);
            d.place.function = scope.function.map(str::to_string);
            if self.facts.problems.len() < MAX_PROBLEMS && !self.facts.problems.contains(&d) {
                self.facts.problems.push(d);
            }
        }
    }
}

/// Elementwise arithmetic on two arrays of sizes with equal shapes, or with one a single number.
fn size_arithmetic(f: ops::op_lowering::SizeFn, cx: &mut ShapeCtx, args: &[Fact]) -> Option<Vec<InferredInt>> {
    let [x, y] = args else { return None };
    let (x, y) = (x.as_ints()?, y.as_ints()?);
    let n = if x.len() == 1 { y.len() } else { x.len() };
    if (y.len() != 1 && y.len() != n) || n == 0 {
        return None;
    }
    let mut one = |i: usize| match (x[i % x.len()].as_dim(), y[i % y.len()].as_dim()) {
        // a result of two known sizes that is no size is negative or overflows
        (Some(a @ InferredDim::Known(_)), Some(b @ InferredDim::Known(_))) => match f(cx.symbols, cx.site, a, b) {
            known @ InferredDim::Known(_) => known.into(),
            InferredDim::Unknown(_) => InferredInt::Unknown,
        },
        (Some(a), Some(b)) => f(cx.symbols, cx.site, a, b).into(),
        _ => InferredInt::Unknown,
    };
    Some((0..n).map(&mut one).collect())
}

fn lacks_shape_function(node: &Node) -> bool {
    ops::find_op(&node.op)
        .is_none_or(|row| matches!(row.shapes, ShapeInference::ByLowering) && row.call_kind().is_none())
        && find_host_op(&node.op).is_none()
}

/// Nodes in topological order of data edges; nodes on cycles come last.
fn execution_order(graph: &Graph) -> Vec<NodeId> {
    if graph.nodes.iter().all(|(id, node)| node.inputs.iter().all(|e| e.node < id)) {
        return graph.nodes.ids().collect();
    }
    // the edge from NextIteration to Merge closes a loop, and is left out
    let waits = |e: &&Endpoint| !graph.nodes[e.node].op.ends_with("NextIteration");
    let edges = graph.nodes.iter().flat_map(|(id, node)| node.inputs.iter().filter(waits).map(move |e| (e.node, id)));
    let Sorted { mut order, missing } = breadth_first(graph.nodes.len(), &edges.collect::<Vec<_>>());
    order.extend(graph.nodes.ids().filter(|id| missing[id.index()] > 0));
    order
}
