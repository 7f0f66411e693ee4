//! Lowering of one graph: computes the values of its nodes in topological order.
use super::access::AccessAnalysis;
use super::order;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program};
use crate::hlo::symbolic::{BoundCheck, Builder, CheckedQuantity, Metadata, Op};
use crate::opdef;
use crate::ops::host::{HostOpRole, find_host_op};
use crate::ops::mutable_list::MutableLists;
use crate::ops::range::RangeAnalysis;
use crate::ops::{self, LowerCtx, LoweringFn, Value, VariableStore};
use crate::symbolic::trace;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Upper bound on the size of an array, in bytes.
const MAX_BYTES: u64 = 1 << 34;

/// Graph whose nodes are lowered: the top-level graph or the body of a function.
pub(super) struct GraphScope<'a> {
    /// Nodes to lower.
    pub graph: &'a Graph,
    /// Name of the function; `None` for the top-level graph.
    pub function: Option<&'a str>,
    /// Attributes of the call, which replace attribute placeholders (`$T`) in the function's body.
    pub attrs: &'a [(Arc<str>, Attr)],
    /// Nodes that run for their side effects, although no data edge needs their values.
    pub roots: &'a [NodeId],
}

/// Value of a node's output; `None` where lowering failed and a diagnostic was reported.
pub(super) type ValueSlot = Option<Value>;

/// Lowers graphs and functions to instructions, and collects diagnostics.
pub(super) struct Walker<'p> {
    /// Program with the function library.
    pub program: &'p Program,
    /// Builder of the HLO module.
    pub b: Builder,
    /// Diagnostics reported so far.
    pub errors: Vec<Diagnostic>,
    /// Call stack: functions being inlined, outermost first.
    pub calls: Vec<Arc<str>>,
    /// Current value of each variable.
    pub store: VariableStore,
    /// Cached effects of functions on variables.
    pub accesses: AccessAnalysis,
    /// Current elements of TensorArrays and stacks.
    pub mutable_lists: MutableLists,
    /// Known ranges of integers that enter the open computation as parameters.
    pub ranges: RangeAnalysis,
    /// Whether the program has TensorLists whose length may change.
    pub has_resizing_lists: bool,
    /// Whether a loop's condition is lowered only to analyze it; the computation is then discarded.
    pub is_probing_condition: bool,
    /// Whether the branches of a conditional are all being computed to select among their results, so that some run without being taken.
    pub is_selecting_branches: bool,
    /// Number of unrolled loop iterations so far.
    pub unrolled_iterations: usize,
    /// Whether the program pushes to stacks or changes tables.
    acts: bool,
}

impl<'p> Walker<'p> {
    /// Creates a walker that emits into `b`; nothing is lowered yet.
    pub fn new(program: &'p Program, b: Builder) -> Self {
        let (store, accesses) = (VariableStore::default(), AccessAnalysis::default());
        let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
        let nodes = || graphs.clone().flat_map(|g| g.nodes.values());
        let acts = nodes().any(|n| &*n.op == "StackPushV2" || ops::changes_table(n));
        let has_resizing_lists = nodes().any(ops::resizes_list);
        Walker {
            program,
            b,
            errors: Vec::new(),
            calls: Vec::new(),
            store,
            accesses,
            mutable_lists: MutableLists::default(),
            ranges: RangeAnalysis::default(),
            has_resizing_lists,
            is_probing_condition: false,
            is_selecting_branches: false,
            unrolled_iterations: 0,
            acts,
        }
    }

    /// Lowers what `targets` need, and returns their values; `seeds` holds outputs whose values are given. Errors are reported in `errors`.
    pub fn lower_graph(
        &mut self,
        scope: &GraphScope,
        seeds: HashMap<Endpoint, ValueSlot>,
        targets: &[Endpoint],
    ) -> Vec<ValueSlot> {
        let order = match self.lowering_order(scope, &seeds, targets) {
            Ok(order) => order,
            Err(id) => {
                let node = &scope.graph.nodes[id];
                let error = Error::user(Code::BadGraph, "the node is on a cycle of edges");
                self.report(scope, node, error);
                return vec![None; targets.len()];
            }
        };
        let mut values: Vec<Option<Vec<ValueSlot>>> = vec![None; scope.graph.nodes.len()];
        let look_up = |values: &[Option<Vec<ValueSlot>>], e: &Endpoint| -> Result<ValueSlot> {
            if let Some(seed) = seeds.get(e) {
                return Ok(seed.clone());
            }
            let Some(outputs) = &values[e.node.0 as usize] else { return Ok(None) };
            outputs.get(e.port as usize).cloned().ok_or_else(|| {
                let name = &scope.graph.nodes[e.node].name;
                Error::user(Code::BadGraph, format!("`{name}` has no output {}", e.port))
            })
        };
        for id in order {
            let node = opdef::with_default_attrs(scope.graph.nodes[id].instantiate(scope.attrs));
            let args: Result<Vec<ValueSlot>> = node.inputs.iter().map(|e| look_up(&values, e)).collect();
            match args.and_then(|args| self.lower_node(&node, args)) {
                Ok(outputs) => values[id.0 as usize] = outputs,
                Err(error) => self.report(scope, &node, error),
            }
        }
        let mut out = Vec::with_capacity(targets.len());
        for target in targets {
            out.push(look_up(&values, target).unwrap_or_else(|error| {
                self.report(scope, &scope.graph.nodes[target.node], error);
                None
            }));
        }
        out
    }

    /// Nodes to lower, in execution order. Control edges count only where something has side effects.
    fn lowering_order(
        &mut self,
        scope: &GraphScope,
        seeds: &HashMap<Endpoint, ValueSlot>,
        targets: &[Endpoint],
    ) -> Result<Vec<NodeId>, NodeId> {
        let is_seed = |e: &Endpoint| seeds.contains_key(e);
        if self.store.ids().is_empty() && !self.acts && !self.b.has_runtime_checks() {
            return order::needed_nodes(scope.graph, targets, is_seed);
        }
        let nodes = scope.graph.nodes.values();
        let (program, is_checked) = (self.program, self.b.has_runtime_checks());
        let acts = |node| {
            self.accesses.writes_variable(program, node)
                || is_checked && self.accesses.contains_assertion(program, node)
        };
        let acts: IdVec<NodeId, bool> = nodes.map(acts).collect();
        let mut roots = scope.roots.to_vec();
        if scope.function.is_some() {
            roots.extend(scope.graph.nodes.ids().filter(|&id| acts[id]));
        }
        order::needed_or_effectful_nodes(scope.graph, targets, &roots, is_seed, &acts)
    }

    /// Lowers one node, and returns its outputs; `None` where an input has no value.
    fn lower_node(&mut self, node: &Node, args: Vec<ValueSlot>) -> Result<Option<Vec<ValueSlot>>> {
        let depth = self.b.nesting_depth();
        self.b.metadata = Metadata { op_type: node.op.to_string(), op_name: node.name.to_string() }.into();
        trace::enter_node(&node.name, &node.op);
        let result = self.lower_outputs(node, args);
        while self.b.nesting_depth() > depth {
            self.b.discard_computation();
        }
        let wrong = self.b.take_error();
        let outputs = result?;
        if let Some(message) = wrong {
            return Err(Error::user(Code::ShapeMismatch, message));
        }
        for value in outputs.iter().flatten().flatten() {
            self.check_size(value)?;
        }
        Ok(outputs)
    }

    fn check_size(&self, value: &Value) -> Result<()> {
        let id = match value {
            Value::Array(id) => *id,
            Value::List(list) => list.buffer,
            Value::RaggedList(list) => list.buffer,
            Value::UnshapedList { .. }
            | Value::Heterogeneous(_)
            | Value::Structured(_)
            | Value::Optional(_)
            | Value::Ragged(_)
            | Value::Sparse(_)
            | Value::Variable(_)
            | Value::MutableList(_)
            | Value::Table(_)
            | Value::Text(_)
            | Value::Strings(_)
            | Value::Unavailable(_) => return Ok(()),
        };
        match self.b.shape(id).as_array() {
            Some(a) if a.bytes() > MAX_BYTES => {
                Err(Error::user(Code::TooLarge, format!("the result {a} has more than 2^34 bytes")))
            }
            _ => Ok(()),
        }
    }

    fn lower_outputs(&mut self, node: &Node, args: Vec<ValueSlot>) -> Result<Option<Vec<ValueSlot>>> {
        let Some(row) = ops::find_op(&node.op) else {
            return match self.program.functions.get(&*node.op) {
                Some(_) => self.inline_call(&node.op, &node.attrs, args).map(Some),
                None if args.contains(&None) => Ok(None),
                None => Err(missing_lowering_error(node)),
            };
        };
        if !row.accepts_input_count(args.len()) {
            let inputs = row.input_names().join(", ");
            return Err(Error::user(
                Code::BadGraph,
                format!("{} takes the inputs ({inputs}), and the node has {}", node.op, args.len()),
            ));
        }
        if let LoweringFn::Walker(calls) = row.lower {
            return self.lower_functional_op(node, calls, args);
        }
        let Some(mut args) = args.into_iter().collect::<Option<Vec<Value>>>() else { return Ok(None) };
        if !row.by_reference {
            for arg in &mut args {
                if let Value::Variable(id) = *arg
                    && self.store.is_reference(id)
                {
                    *arg = Value::Array(self.store.read(id)?);
                }
            }
        }
        let before = self.b.bound_checks().len();
        let Walker { b, store, mutable_lists, ranges, calls, .. } = self;
        let (inputs, first) = (args.clone(), b.current_computation().insts.len());
        let mut cx = LowerCtx { node, b, args, store, mutable_lists, ranges, calls };
        let outputs = row.lower_node(&mut cx)?;
        mark_size_constants(b, &inputs, &outputs, first);
        self.name_checks(before);
        Ok(Some(outputs.into_iter().map(Some).collect()))
    }

    /// Adds the name of the function being inlined to the assertions among the run-time checks from index `before` on.
    fn name_checks(&mut self, before: usize) {
        let Some(function) = self.calls.last().filter(|_| self.b.has_runtime_checks()) else { return };
        for bound_check in self.b.take_bound_checks(before) {
            let node = match bound_check.quantity {
                CheckedQuantity::Check(_) => format!("{} in {function}", bound_check.node),
                CheckedQuantity::Size | CheckedQuantity::Rounds => bound_check.node.clone(),
            };
            self.b.add_bound_check(BoundCheck { node, ..bound_check });
        }
    }

    /// Records an error of a node.
    fn report(&mut self, scope: &GraphScope, node: &Node, error: Error) {
        trace::record_failed_node(&node.name);
        for d in error.into_diagnostics() {
            let inner = d.place.node.is_some();
            let mut d = d.at_node(&node.name, &node.op);
            if !inner {
                d.place.function = scope.function.map(str::to_string);
            }
            self.errors.push(d);
        }
    }
}

/// Records each output that is a new constant (an instruction from index `first` on) as computed from dynamic sizes, if an input depends on
/// them.
fn mark_size_constants(b: &mut Builder, inputs: &[Value], outputs: &[Value], first: usize) {
    for output in outputs {
        let &Value::Array(id) = output else { continue };
        let is_new_constant = id.0 as usize >= first && matches!(b.current_computation().insts[id].op, Op::Constant(_));
        if is_new_constant && inputs.iter().any(|x| matches!(x, Value::Array(x) if b.depends_on_sizes(*x))) {
            b.record_fixed_constant(id);
        }
    }
}

/// Error for a node whose op has no lowering: an unfed placeholder, an op left out on purpose, or an unknown op.
pub(super) fn missing_lowering_error(node: &Node) -> Error {
    let op = &*node.op;
    if find_host_op(op).is_some_and(|row| row.role == HostOpRole::Fed) {
        return Diagnostic::new(Code::BadInputs, format!("the placeholder `{}` is needed and not fed", node.name))
            .help(format!("feed it: --feed {}=f32[1,2,3]", node.name))
            .into();
    }
    let (code, message, help) = match (ops::unsupported_reason(op), opdef::find_def(op)) {
        (Some(row), _) => (row.code, format!("{op} has no lowering: {}", row.reason), row.help),
        (None, Some(_)) => {
            let message = format!("{op} has no lowering: TensorFlow itself has no kernel of it for a CPU");
            (Code::UnsupportedOp, message, "feed its result, or write the same with other ops")
        }
        (None, None) => {
            let message = format!("{op} has no lowering: it is no op of TensorFlow 2.21");
            (Code::UnsupportedOp, message, "feed its result, if an extension of TensorFlow defines it")
        }
    };
    Diagnostic::new(code, message).help(help).into()
}
