//! Elements of TensorArrays and stacks, as values that go through branches and loops.
//!
//! A handle says which holder an op means; the elements are values of the open computation. So where another computation begins, the
//! elements of all holders that its arguments lead to become arguments too, and results where they are changed.
use super::state::Threaded;
use super::walker::{Slot, Walker};
use crate::diag::Result;
use crate::graph::{Endpoint, FuncRef};
use crate::ops::holder::{HolderId, HolderKind};
use crate::ops::spec::ValueSpec;
use crate::ops::{Value, list};
use std::collections::HashSet;
use std::sync::Arc;

/// Variables, TensorArrays and stacks that go in and out of a computation besides its arguments and results.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedState {
    /// The variables.
    pub variables: Threaded,
    /// The TensorArrays and stacks.
    pub holders: Vec<HolderId>,
    /// Whether what these hold may be changed.
    pub changed: bool,
}

impl CapturedState {
    /// The part of it that is changed.
    pub fn changed_only(&self) -> CapturedState {
        let variables = self.variables.variables.iter().copied().filter(|v| v.1).collect();
        let holders = if self.changed { self.holders.clone() } else { Vec::new() };
        CapturedState { variables: Threaded { variables }, holders, changed: self.changed }
    }
}

impl Walker<'_> {
    /// Variables, TensorArrays and stacks that functions reach through these arguments. TensorArrays of gradients that the functions would
    /// make are made now: they outlive the call.
    pub fn reach(&mut self, functions: &[&FuncRef], args: &[Value]) -> Result<CapturedState> {
        let variables = self.threaded(functions, args);
        let mut holders: Vec<HolderId> = Vec::new();
        let mut todo: Vec<HolderId> =
            args.iter().filter_map(|v| if let Value::Holder(id) = v { Some(*id) } else { None }).collect();
        if todo.is_empty() {
            return Ok(CapturedState { variables, ..CapturedState::default() });
        }
        let (sources, changed) = self.uses(functions);
        while let Some(id) = todo.pop() {
            if holders.contains(&id) {
                continue;
            }
            holders.push(id);
            let holder = self.holders.get(id)?.clone();
            if let HolderKind::Array { adds: false, .. } = holder.kind {
                for source in &sources {
                    let zeros = list::zeros_like(&mut self.b, &holder.elements)?;
                    self.holders.gradient(id, source, zeros)?;
                }
            }
            todo.extend(self.holders.get(id)?.gradients.iter().map(|g| g.1));
        }
        holders.sort_unstable();
        Ok(CapturedState { variables, holders, changed })
    }

    /// The values that go into a computation behind its arguments.
    pub fn handed(&self, reached: &CapturedState) -> Result<Vec<Value>> {
        Ok([self.values_of(&reached.variables)?, self.contents(&reached.holders)?].concat())
    }

    /// Takes back what came out of a computation behind its results.
    pub fn take_back(&mut self, reached: &CapturedState, values: &[Value]) -> Result<()> {
        let (variables, held) = values.split_at(reached.variables.variables.len());
        self.leave(&reached.variables, variables)?;
        self.set_contents(&reached.holders, held)
    }

    /// The sources of gradients that functions ask for, also by calling others, and whether they change holders.
    fn uses(&self, functions: &[&FuncRef]) -> (Vec<String>, bool) {
        let (mut sources, mut changed) = (Vec::new(), false);
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let mut todo: Vec<Arc<str>> = functions.iter().map(|f| f.name.clone()).collect();
        while let Some(name) = todo.pop() {
            let Some(function) = self.program.functions.get(&name).filter(|_| seen.insert(name)) else { continue };
            for node in function.graph.nodes.values() {
                match &*node.op {
                    "TensorArrayGradV3" => {
                        let source = node.str("source").unwrap_or_default().to_string();
                        if !sources.contains(&source) {
                            sources.push(source);
                        }
                    }
                    "TensorArrayWriteV3"
                    | "TensorArrayScatterV3"
                    | "TensorArraySplitV3"
                    | "StackPushV2"
                    | "StackPopV2" => changed = true,
                    _ => todo.extend(node.called()),
                }
            }
        }
        (sources, changed)
    }

    /// Elements of these TensorArrays and stacks.
    pub fn contents(&self, ids: &[HolderId]) -> Result<Vec<Value>> {
        ids.iter().map(|&id| Ok(self.holders.get(id)?.elements.clone())).collect()
    }

    /// Gives holders what [`Walker::contents`] told of them.
    pub fn set_contents(&mut self, ids: &[HolderId], values: &[Value]) -> Result<()> {
        for (&id, elements) in ids.iter().zip(values) {
            self.holders.get_mut(id)?.elements = elements.clone();
        }
        Ok(())
    }

    /// The results of a function in the open computation, behind them the values that variables and holders have then. `values` are
    /// its arguments, and behind them the values before; what is outside stays as it is.
    pub fn call_with(&mut self, f: &FuncRef, values: &[Value], reached: &CapturedState) -> Result<Option<Vec<Value>>> {
        let ids = &reached.holders;
        let (before, known) = (self.contents(ids)?, self.holders.len());
        let (own, held) = values.split_at(values.len() - before.len());
        self.set_contents(ids, held)?;
        let results = self.call_inside(f, own.to_vec(), &reached.variables);
        let after = self.contents(ids);
        self.holders.truncate(known);
        self.set_contents(ids, &before)?;
        let (Some(mut results), held) = (results?, after?) else { return Ok(None) };
        results.extend(held);
        Ok(Some(results))
    }

    /// The `wanted` results of a function, lowered in the open computation from as few nodes as they need. State outside stays as it is, and
    /// nothing is reported: the rest of the function may not be fit to be lowered yet.
    pub fn some_results(
        &mut self,
        f: &FuncRef,
        values: &[Value],
        reached: &CapturedState,
        wanted: &[usize],
    ) -> Result<Vec<Slot>> {
        let (store, holders, errors) = (self.store.clone(), self.holders.clone(), self.errors.len());
        let (own, held) = values.split_at(values.len() - reached.holders.len());
        let mut own = own.to_vec();
        self.set_contents(&reached.holders, held)?;
        self.enter_state(&mut own, &reached.variables);
        let rets = &self.function(&f.name)?.rets;
        let targets: Vec<Endpoint> = wanted.iter().filter_map(|&i| rets.get(i).copied()).collect();
        let own = own.into_iter().map(Some).collect();
        let results = self.carrying(|w| w.call_for(&f.name, &f.attrs, own, &targets));
        (self.store, self.holders) = (store, holders);
        self.errors.truncate(errors);
        results
    }

    /// The specs of what [`Walker::call_with`] gives on the values of an open computation, which is left.
    pub fn probe(&mut self, f: &FuncRef, values: &[Value], reached: &CapturedState) -> Result<Option<Vec<ValueSpec>>> {
        let out = self.carrying(|w| w.call_with(f, values, reached));
        let specs = out.map(|out| out.map(|out| out.iter().map(|v| self.spec(v)).collect()));
        self.b.abandon();
        specs
    }
}
