//! Variables across the border of a computation: they are handed in and given back as values.
use super::access::Access;
use super::walker::Walker;
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::open::InstId;
use crate::ops::Value;
use std::collections::BTreeMap;

/// The variables that go in and out of a computation, in the order of their values there.
#[derive(Clone, Debug, Default)]
pub(super) struct Threaded {
    /// Numbers of the variables, and whether the computation changes them.
    pub variables: Vec<(usize, bool)>,
}

impl Walker<'_> {
    /// The variables that functions use which are called with `args`.
    pub(super) fn threaded(&mut self, functions: &[&FuncRef], args: &[Value]) -> Threaded {
        let mut all: BTreeMap<usize, Access> = BTreeMap::new();
        if self.store.ids().is_empty() {
            return Threaded::default();
        }
        let parts = |id: usize| self.store.handle_parts(id);
        let mut add = |id: usize, access: Access| {
            for id in parts(id) {
                let most = all.entry(id).or_default();
                *most = access.max(*most);
            }
        };
        for f in functions {
            let uses = self.accesses.function(self.program, &f.name);
            for (value, access) in args.iter().zip(&uses.args) {
                if let Value::Variable(id) = value {
                    add(*id, *access);
                }
            }
            for (name, access) in &uses.named {
                self.store.variable_named(name).into_iter().for_each(|id| add(id, *access));
            }
            if uses.draws {
                self.store.random.into_iter().for_each(|id| add(id, Access::Write));
            }
        }
        let used = all.into_iter().filter(|(_, access)| *access != Access::None);
        Threaded { variables: used.map(|(id, access)| (id, access == Access::Write)).collect() }
    }

    /// The values of these variables here.
    pub(super) fn values_of(&self, threaded: &Threaded) -> Result<Vec<Value>> {
        threaded.variables.iter().map(|(id, _)| Ok(Value::Array(self.store.read(*id)?))).collect()
    }

    /// The results of `f` in a computation that was opened with the arguments and behind them the values of the variables, and
    /// behind the results the values that the variables have then. `None` where something is missing.
    pub(super) fn call_inside(
        &mut self,
        f: &FuncRef,
        mut values: Vec<Value>,
        threaded: &Threaded,
    ) -> Result<Option<Vec<Value>>> {
        let outside = self.store.clone();
        self.enter_state(&mut values, threaded);
        let results = self.call_whole(f, values);
        let after = self.values_of(threaded);
        self.store = outside;
        let Some(mut results) = results? else { return Ok(None) };
        results.extend(after?);
        Ok(Some(results))
    }

    /// Gives variables the values that stand behind others, which are left.
    pub(super) fn enter_state(&mut self, values: &mut Vec<Value>, threaded: &Threaded) {
        let state = values.split_off(values.len().saturating_sub(threaded.variables.len()));
        let arrays = state.iter().filter_map(|v| if let Value::Array(id) = v { Some(*id) } else { None });
        let inside: Vec<(usize, InstId)> = threaded.variables.iter().map(|v| v.0).zip(arrays).collect();
        self.store.enter_computation(&inside);
    }

    /// Gives the variables that were changed inside of a computation the values that came out of it.
    pub(super) fn leave(&mut self, threaded: &Threaded, values: &[Value]) -> Result<()> {
        for ((id, changed), value) in threaded.variables.iter().zip(values) {
            if let (true, Value::Array(now)) = (changed, value) {
                let (dtype, dims) = (self.b.dtype(*now), self.b.dims(*now).to_vec());
                self.store.write(*id, *now, dtype, &dims)?;
            }
        }
        Ok(())
    }
}
