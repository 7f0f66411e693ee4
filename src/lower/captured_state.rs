//! TensorArrays and stacks (mutable lists) in branches and loops: their elements are passed as values.
//!
//! A handle identifies a mutable list, whose elements are values of the open computation. A nested computation therefore gets the elements of
//! all mutable lists reachable from its arguments as additional arguments, and returns them as additional results where they are changed.
use super::state::ThreadedVariables;
use super::walker::{ValueSlot, Walker};
use crate::diag::Result;
use crate::graph::{Endpoint, FuncRef};
use crate::ops::mutable_list::{MutableListId, MutableListKind};
use crate::ops::spec::ValueSpec;
use crate::ops::{Value, list};
use std::collections::HashSet;
use std::sync::Arc;

/// Variables, TensorArrays and stacks that a nested computation uses: their values are passed behind its arguments, and returned behind
/// its results.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedState {
    /// Variables that the computation reads or assigns.
    pub variables: ThreadedVariables,
    /// TensorArrays and stacks that the computation uses.
    pub mutable_lists: Vec<MutableListId>,
    /// Whether the elements of mutable lists may be changed.
    pub changed: bool,
}

impl CapturedState {
    /// The variables and mutable lists that are changed.
    pub fn changed_only(&self) -> CapturedState {
        let variables = self.variables.variables.iter().copied().filter(|v| v.1).collect();
        let mutable_lists = if self.changed { self.mutable_lists.clone() } else { Vec::new() };
        CapturedState { variables: ThreadedVariables { variables }, mutable_lists, changed: self.changed }
    }
}

impl Walker<'_> {
    /// Collects the variables, TensorArrays and stacks that functions use if they are called with `args`. Gradient TensorArrays that the
    /// functions would create are created here, since they outlive the call.
    pub fn captured_state(&mut self, functions: &[&FuncRef], args: &[Value]) -> Result<CapturedState> {
        let variables = self.threaded_variables(functions, args);
        let mut mutable_lists: Vec<MutableListId> = Vec::new();
        let mut todo: Vec<MutableListId> =
            args.iter().filter_map(|v| if let Value::MutableList(id) = v { Some(*id) } else { None }).collect();
        if todo.is_empty() {
            return Ok(CapturedState { variables, ..CapturedState::default() });
        }
        let (sources, changed) = self.mutable_list_uses(functions);
        while let Some(id) = todo.pop() {
            if mutable_lists.contains(&id) {
                continue;
            }
            mutable_lists.push(id);
            let list = self.mutable_lists.get(id)?.clone();
            if let MutableListKind::Array { adds: false, .. } = list.kind {
                for source in &sources {
                    let zeros = list::zeros_like(&mut self.b, &list.elements)?;
                    self.mutable_lists.gradient_array(id, source, zeros)?;
                }
            }
            todo.extend(self.mutable_lists.get(id)?.gradients.iter().map(|g| g.1));
        }
        mutable_lists.sort_unstable();
        Ok(CapturedState { variables, mutable_lists, changed })
    }

    /// Current values of captured variables and mutable lists, as additional arguments of a computation.
    pub fn captured_values(&self, reached: &CapturedState) -> Result<Vec<Value>> {
        Ok([self.variable_values(&reached.variables)?, self.list_elements(&reached.mutable_lists)?].concat())
    }

    /// Writes the additional values that a computation returns after its own results back to variables, TensorArrays and stacks.
    pub fn write_back_captured(&mut self, reached: &CapturedState, values: &[Value]) -> Result<()> {
        let (variables, held) = values.split_at(reached.variables.variables.len());
        self.write_changed_variables(&reached.variables, variables)?;
        self.set_list_elements(&reached.mutable_lists, held)
    }

    /// The attributes `source` of all `TensorArrayGradV3` nodes in functions and their callees, and whether these functions change
    /// TensorArrays or stacks.
    fn mutable_list_uses(&self, functions: &[&FuncRef]) -> (Vec<String>, bool) {
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
                    _ => todo.extend(node.called_functions()),
                }
            }
        }
        (sources, changed)
    }

    /// Current elements of TensorArrays and stacks.
    pub fn list_elements(&self, ids: &[MutableListId]) -> Result<Vec<Value>> {
        ids.iter().map(|&id| Ok(self.mutable_lists.get(id)?.elements.clone())).collect()
    }

    /// Replaces the elements of TensorArrays and stacks.
    pub fn set_list_elements(&mut self, ids: &[MutableListId], values: &[Value]) -> Result<()> {
        for (&id, elements) in ids.iter().zip(values) {
            self.mutable_lists.get_mut(id)?.elements = elements.clone();
        }
        Ok(())
    }

    /// Inlines a function into the open computation, and returns its results, behind them the new values of captured variables and mutable
    /// lists. `values` holds the arguments, behind them the captured values. The state of the enclosing computation is not changed.
    pub fn call_with_captures(
        &mut self,
        f: &FuncRef,
        values: &[Value],
        reached: &CapturedState,
    ) -> Result<Option<Vec<Value>>> {
        let ids = &reached.mutable_lists;
        let (before, known) = (self.list_elements(ids)?, self.mutable_lists.len());
        let (own, held) = values.split_at(values.len() - before.len());
        self.set_list_elements(ids, held)?;
        let results = self.lower_call_into_computation(f, own.to_vec(), &reached.variables);
        let after = self.list_elements(ids);
        self.mutable_lists.truncate(known);
        self.set_list_elements(ids, &before)?;
        let (Some(mut results), held) = (results?, after?) else { return Ok(None) };
        results.extend(held);
        Ok(Some(results))
    }

    /// Lowers only what the results `wanted` of a function need, to analyze them. The state of the enclosing computation is not changed,
    /// and errors are not reported, since the rest of the function need not be ready to be lowered yet.
    pub fn lower_results_for_analysis(
        &mut self,
        f: &FuncRef,
        values: &[Value],
        reached: &CapturedState,
        wanted: &[usize],
    ) -> Result<Vec<ValueSlot>> {
        let (store, mutable_lists, errors) = (self.store.clone(), self.mutable_lists.clone(), self.errors.len());
        let (own, held) = values.split_at(values.len() - reached.mutable_lists.len());
        let mut own = own.to_vec();
        self.set_list_elements(&reached.mutable_lists, held)?;
        self.bind_variable_arguments(&mut own, &reached.variables);
        let rets = &self.library_function(&f.name)?.rets;
        let targets: Vec<Endpoint> = wanted.iter().filter_map(|&i| rets.get(i).copied()).collect();
        let own = own.into_iter().map(Some).collect();
        let results = self.with_hoistable_checks(|w| w.inline_call_partially(&f.name, &f.attrs, own, &targets));
        (self.store, self.mutable_lists) = (store, mutable_lists);
        self.errors.truncate(errors);
        results
    }

    /// Lowers a call as [`Walker::call_with_captures`] does, and returns only the specs of its results; the open computation is discarded.
    pub fn probe_result_specs(
        &mut self,
        f: &FuncRef,
        values: &[Value],
        reached: &CapturedState,
    ) -> Result<Option<Vec<ValueSpec>>> {
        let out = self.with_hoistable_checks(|w| w.call_with_captures(f, values, reached));
        let specs = out.map(|out| out.map(|out| out.iter().map(|v| self.value_spec(v)).collect()));
        self.b.discard_computation();
        specs
    }
}
