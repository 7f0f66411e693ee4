//! Inference through calls, conditionals and loops.
use super::walk::{Inference, WalkedGraph};
use crate::graph::{Attr, Endpoint, FuncRef, Node};
use crate::ops::fact::{Dims, Fact};
use crate::ops::join::Join;
use crate::ops::symbols::{DimId, NodeSite, UnknownReason};
use crate::ops::{CallKind, ShapeCtx};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Upper bound on the nesting depth of calls.
const MAX_DEPTH: usize = 100;

/// Iterations after which the fixed point of a loop is given up. Each iteration makes at least one more dimension unknown.
const MAX_ITERATIONS: usize = 64;

impl Inference<'_> {
    /// Infers the outputs of a node that calls library functions, such as `If` or `While`.
    pub(super) fn infer_functional_op(
        &mut self,
        node: &Node,
        calls: CallKind,
        site: NodeSite,
        args: &[Fact],
    ) -> Vec<Fact> {
        let func = |name: &str| node.func(name).cloned();
        let outputs = match calls {
            CallKind::Call => func("f").map(|f| self.infer_call(&f.name, &f.attrs, site, args)),
            CallKind::If => match (func("then_branch"), func("else_branch")) {
                (Some(yes), Some(no)) => {
                    self.infer_branches(&self.possible_branches_by_truth(yes, no, args), site, args)
                }
                _ => None,
            },
            CallKind::Case => match node.attr("branches") {
                Some(Attr::Funcs(all)) => self.infer_branches(&possible_branches_by_index(all, args), site, args),
                _ => None,
            },
            CallKind::While => match (func("cond"), func("body")) {
                (Some(cond), Some(body)) => Some(self.infer_loop(&cond, &body, site, args)),
                _ => None,
            },
            CallKind::Sort
            | CallKind::Reduce
            | CallKind::ReduceWindow
            | CallKind::Scatter
            | CallKind::SelectAndScatter
            | CallKind::Module => None,
        };
        let outputs = outputs.unwrap_or_else(|| self.unknown_outputs(node, site, UnknownReason::Invalid));
        self.refine_by_output_shapes(node, site, outputs)
    }

    /// Refines outputs of unknown shape by the attribute `output_shapes`.
    fn refine_by_output_shapes(&mut self, node: &Node, site: NodeSite, mut outputs: Vec<Fact>) -> Vec<Fact> {
        let Some(Attr::Shapes(shapes)) = node.attr("output_shapes").or_else(|| node.attr("_output_shapes")) else {
            return outputs;
        };
        for (output, shape) in outputs.iter_mut().zip(shapes.iter()) {
            let mut cx = ShapeCtx { node, args: &[], symbols: &mut self.facts.symbols, site };
            if let (true, Some(_)) = (output.dims.first_unknown().is_some(), &shape.0) {
                let told = cx.attr_shape(shape);
                if let Ok(both) = cx.merge_shapes(&output.dims, &told) {
                    output.dims = both;
                }
            }
        }
        outputs
    }

    /// Infers the results of a library function on arguments; unknown if there is no such function, or calls are nested too deep.
    pub(super) fn infer_call(
        &mut self,
        name: &Arc<str>,
        attrs: &[(Arc<str>, Attr)],
        site: NodeSite,
        args: &[Fact],
    ) -> Vec<Fact> {
        let Some((number, _, function)) = self.program.functions.get_full(name) else {
            return vec![self.unknown_fact(site, UnknownReason::Invalid)];
        };
        let fits = function.args.len() == args.len() && !self.calls.contains(name) && self.calls.len() < MAX_DEPTH;
        if !fits || self.budget == 0 {
            return (0..function.rets.len()).map(|_| self.unknown_fact(site, UnknownReason::Invalid)).collect();
        }
        self.calls.push(name.clone());
        let scope = WalkedGraph { graph: &function.graph, number: number as u32 + 1, function: Some(name), attrs };
        let seeds: HashMap<Endpoint, Fact> =
            function.args.iter().map(|&node| Endpoint { node, port: 0 }).zip(args.iter().cloned()).collect();
        let facts = self.infer_graph(scope, &seeds);
        self.calls.pop();
        let mut results = Vec::with_capacity(function.rets.len());
        for ret in &function.rets {
            let found = facts[ret.node.0 as usize].get(ret.port as usize).cloned();
            results.push(found.unwrap_or_else(|| self.unknown_fact(site, UnknownReason::Invalid)));
        }
        self.facts.functions[number] = facts;
        results
    }

    /// Branches of an `If` that may be taken, given the facts of its inputs.
    fn possible_branches_by_truth(&self, yes: FuncRef, no: FuncRef, args: &[Fact]) -> Vec<FuncRef> {
        let scalar = args.first().and_then(Fact::as_tensor).filter(|t| t.dims.is_empty());
        match scalar.and_then(|t| t.get_f64(0)) {
            Some(v) if v != 0.0 => vec![yes],
            Some(_) => vec![no],
            None => vec![yes, no],
        }
    }

    /// Join of the facts of all branches' results: facts that hold whichever branch is taken.
    fn infer_branches(&mut self, branches: &[FuncRef], site: NodeSite, args: &[Fact]) -> Option<Vec<Fact>> {
        let args = args.get(1..)?;
        let mut made = HashSet::new();
        let mut results: Option<Vec<Fact>> = None;
        for branch in branches {
            let next = self.infer_call(&branch.name, &branch.attrs, site, args);
            results = Some(match results {
                None => next,
                Some(before) => self.join_facts(site, &mut made, &before, &next),
            });
        }
        results
    }

    fn join_facts(&mut self, site: NodeSite, made: &mut HashSet<DimId>, a: &[Fact], b: &[Fact]) -> Vec<Fact> {
        let mut join = Join { symbols: &mut self.facts.symbols, site, made };
        a.iter().zip(b).map(|(a, b)| join.join_facts(a, b)).collect()
    }

    /// Infers facts about a loop's variables that hold before and after every iteration, as a fixed point.
    fn infer_loop(&mut self, cond: &FuncRef, body: &FuncRef, site: NodeSite, args: &[Fact]) -> Vec<Fact> {
        let mut state = args.to_vec();
        let mut made = HashSet::new();
        for _ in 0..MAX_ITERATIONS {
            let after = self.infer_call(&body.name, &body.attrs, site, &state);
            if after.len() != state.len() {
                break;
            }
            let next = self.join_facts(site, &mut made, &state, &after);
            let settled = next
                .iter()
                .zip(&state)
                .all(|(a, b)| a.dims == b.dims && a.dtype == b.dtype && a.element == b.element && a.value == b.value);
            state = next;
            if settled {
                self.infer_call(&cond.name, &cond.attrs, site, &state);
                return state;
            }
        }
        let open =
            |w: &mut Self, f: &Fact| Fact::new(f.dtype, Dims::Unranked(w.symbols().fresh(site, UnknownReason::Joined)));
        args.iter().map(|f| open(self, f)).collect()
    }
}

/// Branches of a `Case` that may be taken, given the facts of its inputs; an index out of range takes the last branch.
fn possible_branches_by_index(all: &[FuncRef], args: &[Fact]) -> Vec<FuncRef> {
    let index = args.first().and_then(Fact::as_tensor).and_then(|t| t.get_i64(0));
    match (index, all.len().checked_sub(1)) {
        (Some(i), Some(last)) => vec![all[usize::try_from(i).unwrap_or(last).min(last)].clone()],
        _ => all.to_vec(),
    }
}
