//! Variables that no signature changes: constants of the compiled code, as in a frozen graph.
use crate::diag::Result;
use crate::graph::{Program, Variable};
use crate::lower::{Access, AccessAnalysis};
use crate::ops::fact::VariableHandle;
use crate::prepare::{self, Request};
use crate::tensor::Tensor;
use std::collections::{HashMap, HashSet};

/// The values of variables that no signature changes.
#[derive(Debug, Default)]
pub struct ConstantVariables {
    /// Value of each variable, by the names of the nodes that create its handle and by its `shared_name`, under which nodes in functions
    /// look it up.
    values: HashMap<String, Tensor>,
}

impl ConstantVariables {
    /// Values of those `variables` of the program that no call changes. Empty for a program without signatures, as nothing says what else
    /// changes them. Errors: those of [`prepare::reachable_from_signatures`].
    pub fn collect(program: &Program, variables: &[Variable]) -> Result<ConstantVariables> {
        let Some(served) = prepare::reachable_from_signatures(program, &Request::default())? else {
            return Ok(ConstantVariables::default());
        };
        let mut accesses = AccessAnalysis::default();
        let graph = &program.graph;
        let found = accesses.graph_accesses(program, graph, |id| served.nodes.contains(&*graph.nodes[id].name));
        let written = found.handles.iter().filter(|(_, access)| **access == Access::Write);
        let mut changed: HashSet<String> = written.map(|(id, _)| graph.nodes[*id].name.to_string()).collect();
        for name in program.functions.keys().filter(|name| served.functions.contains(*name)) {
            let uses = accesses.function_effects(program, name);
            changed.extend(uses.by_name.iter().filter(|(_, a)| **a == Access::Write).map(|(name, _)| name.clone()));
        }
        let mut constants = ConstantVariables::default();
        for variable in variables {
            let names = || variable.handles.iter().map(|h| h.to_string()).chain([variable.shared_name.clone()]);
            if let (Some(value), false) = (&variable.value, names().any(|name| changed.contains(&name))) {
                constants.values.extend(names().filter(|n| !n.is_empty()).map(|name| (name, value.clone())));
            }
        }
        Ok(constants)
    }

    /// Continues the hash `start` with the names and values of the variables.
    pub fn hash(&self, start: u64) -> u64 {
        let mut names: Vec<&String> = self.values.keys().collect();
        names.sort_unstable();
        names.into_iter().fold(start, |h, name| super::hash(super::hash(h, name.as_bytes()), &self.values[name].bytes))
    }

    /// Value of the variable that a handle refers to; `None` if a call may change the variable.
    pub fn value(&self, handle: &VariableHandle) -> Option<&Tensor> {
        self.values.get(&*handle.node).or_else(|| self.values.get(&*handle.asks_for))
    }
}
