//! Variables in nested computations: their values are passed as arguments and returned as results.
use super::access::Access;
use super::walker::Walker;
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::symbolic::InstId;
use crate::ops::Value;
use std::collections::BTreeMap;

/// Variables whose values are passed into a computation and returned from it, in the order of these values.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadedVariables {
    /// Ids of the variables, and whether the computation writes them.
    pub variables: Vec<(usize, bool)>,
}

impl Walker<'_> {
    /// Collects the variables that functions read or write if they are called with `args`.
    pub(super) fn threaded_variables(&mut self, functions: &[&FuncRef], args: &[Value]) -> ThreadedVariables {
        let mut all: BTreeMap<usize, Access> = BTreeMap::new();
        if self.store.ids().is_empty() {
            return ThreadedVariables::default();
        }
        let parts = |id: usize| self.store.handle_variables(id);
        let mut add = |id: usize, access: Access| {
            for id in parts(id) {
                let most = all.entry(id).or_default();
                *most = access.max(*most);
            }
        };
        for f in functions {
            let uses = self.accesses.function_effects(self.program, &f.name);
            for (value, access) in args.iter().zip(&uses.args) {
                if let Value::Variable(id) = value {
                    add(*id, *access);
                }
            }
            for (name, access) in &uses.by_name {
                self.store.variable_named(name).into_iter().for_each(|id| add(id, *access));
            }
            if uses.draws_random {
                self.store.random.into_iter().for_each(|id| add(id, Access::Write));
            }
        }
        let used = all.into_iter().filter(|(_, access)| *access != Access::None);
        ThreadedVariables { variables: used.map(|(id, access)| (id, access == Access::Write)).collect() }
    }

    /// Current values of the variables.
    pub(super) fn variable_values(&self, threaded: &ThreadedVariables) -> Result<Vec<Value>> {
        threaded.variables.iter().map(|(id, _)| Ok(Value::Array(self.store.read(*id)?))).collect()
    }

    /// Inlines `f` into the open computation, a nested one, and returns its results, behind them the new values of the variables. `values`
    /// holds the arguments, behind them the values of the variables. The variables of the enclosing computation are not changed. `None`
    /// where a result could not be lowered.
    pub(super) fn lower_call_into_computation(
        &mut self,
        f: &FuncRef,
        mut values: Vec<Value>,
        threaded: &ThreadedVariables,
    ) -> Result<Option<Vec<Value>>> {
        let outside = self.store.clone();
        self.bind_variable_arguments(&mut values, threaded);
        let results = self.inline_requiring_all_results(f, values);
        let after = self.variable_values(threaded);
        self.store = outside;
        let Some(mut results) = results? else { return Ok(None) };
        results.extend(after?);
        Ok(Some(results))
    }

    /// Binds the variables to their values in a nested computation: the last elements of `values`, one for each variable, which are
    /// removed.
    pub(super) fn bind_variable_arguments(&mut self, values: &mut Vec<Value>, threaded: &ThreadedVariables) {
        let state = values.split_off(values.len().saturating_sub(threaded.variables.len()));
        let arrays = state.iter().filter_map(|v| if let Value::Array(id) = v { Some(*id) } else { None });
        let inside: Vec<(usize, InstId)> = threaded.variables.iter().map(|v| v.0).zip(arrays).collect();
        self.store.enter_computation(&inside);
    }

    /// Writes the values returned by a nested computation to the variables that it changes.
    pub(super) fn write_changed_variables(&mut self, threaded: &ThreadedVariables, values: &[Value]) -> Result<()> {
        for ((id, changed), value) in threaded.variables.iter().zip(values) {
            if let (true, Value::Array(now)) = (changed, value) {
                let (dtype, dims) = (self.b.dtype(*now), self.b.dims(*now).to_vec());
                self.store.write(*id, *now, dtype, &dims)?;
            }
        }
        Ok(())
    }
}
