//! The walk over one graph: values of its nodes in topological order.
use super::access::Accesses;
use super::order;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Attr, Endpoint, Graph, Node, NodeId, Program};
use crate::hlo::open::{Builder, Claim, ClaimQuantity, Metadata, Op};
use crate::opdef;
use crate::ops::holder::Holders;
use crate::ops::host::{Role, find_host};
use crate::ops::range::Ranges;
use crate::ops::{self, Lower, LowerCtx, Store, Value};
use crate::symbolic::trace;
use crate::util::id_vec::IdVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The largest array that is lowered.
const MAX_BYTES: u64 = 1 << 34;

/// Graph whose nodes are lowered: the top-level graph or the body of a function.
pub(super) struct Scope<'a> {
    /// The nodes.
    pub graph: &'a Graph,
    /// The function's name.
    pub function: Option<&'a str>,
    /// Values of the function's attribute placeholders.
    pub attrs: &'a [(Arc<str>, Attr)],
    /// Nodes that run although no value of them is asked for.
    pub roots: &'a [NodeId],
}

/// A value, or nothing where a diagnostic already says why there is none.
pub(super) type Slot = Option<Value>;

/// The state of a lowering.
pub(super) struct Walker<'p> {
    /// Where functions are looked up.
    pub program: &'p Program,
    /// Where instructions go.
    pub b: Builder,
    /// Every problem so far.
    pub errors: Vec<Diagnostic>,
    /// The functions that are being inlined, outermost first.
    pub calls: Vec<Arc<str>>,
    /// The variables.
    pub store: Store,
    /// Accesses of functions to variables and stacks.
    pub accesses: Accesses,
    /// Elements of TensorArrays and stacks.
    pub holders: Holders,
    /// Known ranges of integers that come from outside of the open computation.
    pub ranges: Ranges,
    /// Whether the program has lists whose length may change.
    pub resizes: bool,
    /// Whether a condition is lowered only to be looked at.
    pub is_looking: bool,
    /// Whether branches are lowered that may not count.
    pub is_selecting: bool,
    /// How many rounds of loops were written one behind the other.
    pub rounds_written: usize,
    /// Whether the program has stacks, or changes tables.
    acts: bool,
}

impl<'p> Walker<'p> {
    /// A walker that has seen nothing.
    pub fn new(program: &'p Program, b: Builder) -> Self {
        let (store, accesses) = (Store::default(), Accesses::default());
        let graphs = std::iter::once(&program.graph).chain(program.functions.values().map(|f| &f.graph));
        let nodes = || graphs.clone().flat_map(|g| g.nodes.values());
        let acts = nodes().any(|n| &*n.op == "StackPushV2" || ops::changes_table(n));
        let resizes = nodes().any(ops::resizes_list);
        Walker {
            program,
            b,
            errors: Vec::new(),
            calls: Vec::new(),
            store,
            accesses,
            holders: Holders::default(),
            ranges: Ranges::default(),
            resizes,
            is_looking: false,
            is_selecting: false,
            rounds_written: 0,
            acts,
        }
    }

    /// The values of `targets`; `seeds` are outputs whose values are given.
    pub fn walk(&mut self, scope: &Scope, seeds: HashMap<Endpoint, Slot>, targets: &[Endpoint]) -> Vec<Slot> {
        let order = match self.order(scope, &seeds, targets) {
            Ok(order) => order,
            Err(id) => {
                let node = &scope.graph.nodes[id];
                let error = Error::user(Code::BadGraph, "the node is on a cycle of edges");
                self.report(scope, node, error);
                return vec![None; targets.len()];
            }
        };
        let mut values: Vec<Option<Vec<Slot>>> = vec![None; scope.graph.nodes.len()];
        let look_up = |values: &[Option<Vec<Slot>>], e: &Endpoint| -> Result<Slot> {
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
            let node = opdef::with_defaults(scope.graph.nodes[id].instantiate(scope.attrs));
            let args: Result<Vec<Slot>> = node.inputs.iter().map(|e| look_up(&values, e)).collect();
            match args.and_then(|args| self.node(&node, args)) {
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

    /// The nodes that have to be lowered, in order. The names of variables are enough to know that there is no state.
    fn order(
        &mut self,
        scope: &Scope,
        seeds: &HashMap<Endpoint, Slot>,
        targets: &[Endpoint],
    ) -> Result<Vec<NodeId>, NodeId> {
        let is_seed = |e: &Endpoint| seeds.contains_key(e);
        if self.store.ids().is_empty() && !self.acts && !self.b.is_checked() {
            return order::needed(scope.graph, targets, is_seed);
        }
        let nodes = scope.graph.nodes.values();
        let (program, is_checked) = (self.program, self.b.is_checked());
        let acts = |node| self.accesses.writes(program, node) || is_checked && self.accesses.asserts(program, node);
        let acts: IdVec<NodeId, bool> = nodes.map(acts).collect();
        let mut roots = scope.roots.to_vec();
        if scope.function.is_some() {
            roots.extend(scope.graph.nodes.ids().filter(|&id| acts[id]));
        }
        order::acting(scope.graph, targets, &roots, is_seed, &acts)
    }

    /// The outputs of one node; `None` where an input has no value.
    fn node(&mut self, node: &Node, args: Vec<Slot>) -> Result<Option<Vec<Slot>>> {
        let depth = self.b.depth();
        self.b.metadata = Metadata { op_type: node.op.to_string(), op_name: node.name.to_string() }.into();
        trace::enter_node(&node.name, &node.op);
        let result = self.outputs(node, args);
        while self.b.depth() > depth {
            self.b.abandon();
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
            Value::Jagged(list) => list.buffer,
            Value::UnshapedList { .. }
            | Value::Unlike(_)
            | Value::Structured(_)
            | Value::Optional(_)
            | Value::Ragged(_)
            | Value::Sparse(_)
            | Value::Variable(_)
            | Value::Holder(_)
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

    fn outputs(&mut self, node: &Node, args: Vec<Slot>) -> Result<Option<Vec<Slot>>> {
        let Some(row) = ops::find(&node.op) else {
            return match self.program.functions.get(&*node.op) {
                Some(_) => self.call(&node.op, &node.attrs, args).map(Some),
                None if args.contains(&None) => Ok(None),
                None => Err(unknown_op(node)),
            };
        };
        if !row.takes(args.len()) {
            let inputs = row.inputs().join(", ");
            return Err(Error::user(
                Code::BadGraph,
                format!("{} takes the inputs ({inputs}), and the node has {}", node.op, args.len()),
            ));
        }
        if let Lower::Walker(calls) = row.lower {
            return self.control_flow(node, calls, args);
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
        let before = self.b.claims().len();
        let Walker { b, store, holders, ranges, calls, .. } = self;
        let (inputs, first) = (args.clone(), b.current().insts.len());
        let mut cx = LowerCtx { node, b, args, store, holders, ranges, calls };
        let outputs = row.run(&mut cx)?;
        tell_sizes(b, &inputs, &outputs, first);
        self.name_checks(before);
        Ok(Some(outputs.into_iter().map(Some).collect()))
    }

    /// Names the function in the checks behind the first `before` claims.
    fn name_checks(&mut self, before: usize) {
        let Some(function) = self.calls.last().filter(|_| self.b.is_checked()) else { return };
        for claim in self.b.take_claims(before) {
            let node = match claim.quantity {
                ClaimQuantity::Check(_) => format!("{} in {function}", claim.node),
                ClaimQuantity::Size | ClaimQuantity::Rounds => claim.node.clone(),
            };
            self.b.claim(Claim { node, ..claim });
        }
    }

    /// Records an error of a node.
    fn report(&mut self, scope: &Scope, node: &Node, error: Error) {
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

/// Marks outputs that are new constants, from instruction `first` on, as computed from sizes of arrays where an input is.
fn tell_sizes(b: &mut Builder, inputs: &[Value], outputs: &[Value], first: usize) {
    for output in outputs {
        let &Value::Array(id) = output else { continue };
        let is_new_constant = id.0 as usize >= first && matches!(b.current().insts[id].op, Op::Constant(_));
        if is_new_constant && inputs.iter().any(|x| matches!(x, Value::Array(x) if b.follows_sizes(*x))) {
            b.tell_constant(id);
        }
    }
}

/// Why an op without a row can't be compiled.
pub(super) fn unknown_op(node: &Node) -> Error {
    let op = &*node.op;
    if find_host(op).is_some_and(|row| row.role == Role::Fed) {
        return Diagnostic::new(Code::BadInputs, format!("the placeholder `{}` is needed and not fed", node.name))
            .help(format!("feed it: --feed {}=f32[1,2,3]", node.name))
            .into();
    }
    let (code, message, help) = match (ops::unsupported_reason(op), opdef::find(op)) {
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
