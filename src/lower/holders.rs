//! What TensorArrays and stacks hold, as values that go through branches and loops.
//!
//! A handle says which holder an op means; the elements are values of the open computation. So where another computation begins, the
//! elements of all holders that its arguments lead to become arguments too, and results where they are changed.
use super::flat::Form;
use super::rounds::Border;
use super::state::Threaded;
use super::walker::Walker;
use crate::diag::Result;
use crate::graph::FuncRef;
use crate::hlo::Shape;
use crate::ops::holder::{HolderId, HolderKind};
use crate::ops::{Value, list};
use std::collections::HashSet;
use std::sync::Arc;

/// What goes in and out of a computation besides arguments and results: variables, and what TensorArrays and stacks hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    /// The variables.
    pub variables: Threaded,
    /// The TensorArrays and stacks.
    pub holders: Vec<HolderId>,
    /// Whether what these hold may be changed.
    pub changed: bool,
}

impl Reached {
    /// The part of it that is changed.
    pub fn changed_only(&self) -> Reached {
        let variables = self.variables.variables.iter().copied().filter(|v| v.1).collect();
        let holders = if self.changed { self.holders.clone() } else { Vec::new() };
        Reached { variables: Threaded { variables }, holders, changed: self.changed }
    }
}

impl Walker<'_> {
    /// What functions reach through these arguments. TensorArrays of gradients that they would make are made now: they outlive the call.
    pub fn reach(&mut self, functions: &[&FuncRef], args: &[Value]) -> Result<Reached> {
        let variables = self.threaded(functions, args);
        let mut holders: Vec<HolderId> = Vec::new();
        let mut todo: Vec<HolderId> =
            args.iter().filter_map(|v| if let Value::Holder(id) = v { Some(*id) } else { None }).collect();
        if todo.is_empty() {
            return Ok(Reached { variables, ..Reached::default() });
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
                    let zeros = list::zeros_like(&mut self.b, &holder.elements);
                    self.holders.gradient(id, source, zeros)?;
                }
            }
            todo.extend(self.holders.get(id)?.gradients.iter().map(|g| g.1));
        }
        holders.sort_unstable();
        Ok(Reached { variables, holders, changed })
    }

    /// The values that go into a computation behind its arguments.
    pub fn handed(&self, reached: &Reached) -> Result<Vec<Value>> {
        Ok([self.values_of(&reached.variables)?, self.contents(&reached.holders)?].concat())
    }

    /// Takes back what came out of a computation behind its results.
    pub fn take_back(&mut self, reached: &Reached, values: &[Value]) -> Result<()> {
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

    /// What holders hold: of each its elements, and of a stack also how many there are.
    pub fn contents(&self, ids: &[HolderId]) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        for &id in ids {
            let holder = self.holders.get(id)?;
            out.push(holder.elements.clone());
            if let HolderKind::Stack { count, .. } = holder.kind {
                out.push(Value::Array(count));
            }
        }
        Ok(out)
    }

    /// Gives holders what [`Walker::contents`] told of them.
    pub fn set_contents(&mut self, ids: &[HolderId], values: &[Value]) -> Result<()> {
        let mut values = values.iter();
        for &id in ids {
            let holder = self.holders.get_mut(id)?;
            if let Some(elements) = values.next() {
                holder.elements = elements.clone();
            }
            if let HolderKind::Stack { count, .. } = &mut holder.kind
                && let Some(Value::Array(new)) = values.next()
            {
                *count = *new;
            }
        }
        Ok(())
    }

    /// For each holder the most elements that a stack has.
    pub fn most(&self, ids: &[HolderId]) -> Result<Vec<u64>> {
        let most = |id: &HolderId| match self.holders.get(*id)?.kind {
            HolderKind::Stack { most, .. } => Ok(most),
            HolderKind::Array { .. } => Ok(0),
        };
        ids.iter().map(most).collect()
    }

    /// Sets what [`Walker::most`] told.
    pub fn set_most(&mut self, ids: &[HolderId], all: &[u64]) -> Result<()> {
        for (&id, &new) in ids.iter().zip(all) {
            if let HolderKind::Stack { most, .. } = &mut self.holders.get_mut(id)?.kind {
                *most = new;
            }
        }
        Ok(())
    }

    /// The results of a function in the open computation, behind them the values that variables and holders have then, and the most
    /// elements of stacks. `values` are its arguments, and behind them the values before; what is outside stays as it is.
    pub fn call_with(
        &mut self,
        f: &FuncRef,
        values: &[Value],
        reached: &Reached,
    ) -> Result<Option<(Vec<Value>, Vec<u64>)>> {
        let ids = &reached.holders;
        let (before, most, known) = (self.contents(ids)?, self.most(ids)?, self.holders.len());
        let (own, held) = values.split_at(values.len() - before.len());
        self.set_contents(ids, held)?;
        let results = self.call_inside(f, own.to_vec(), &reached.variables);
        let after = (self.contents(ids), self.most(ids));
        self.holders.truncate(known);
        self.set_contents(ids, &before)?;
        self.set_most(ids, &most)?;
        let (Some(mut results), held, most) = (results?, after.0?, after.1?) else { return Ok(None) };
        results.extend(held);
        Ok(Some((results, most)))
    }

    /// The forms of what [`Walker::call_with`] gives, without leaving a computation behind.
    pub fn probe(&mut self, f: &FuncRef, border: &Border, reached: &Reached) -> Result<Option<(Vec<Form>, Vec<u64>)>> {
        let values = self.enter("probe", border);
        let out = self.call_with(f, &values, reached);
        let forms = out.map(|out| out.map(|(out, most)| (out.iter().map(|v| self.form(v)).collect(), most)));
        self.b.abandon();
        forms
    }

    /// Gives a list without a shape, or with less room, the shape and room of `like`; whether anything changed.
    pub fn take_shape(&mut self, value: &mut Value, like: &Form) -> Result<bool> {
        let Form::List(Shape::Array(want)) = like else { return Ok(false) };
        let room = want.dims.first().copied().unwrap_or(0);
        *value = match &*value {
            Value::UnshapedList { length, dtype } => {
                let dims: Vec<u64> =
                    want.dims.iter().enumerate().map(|(i, &d)| if i == 0 { d.max(*length) } else { d }).collect();
                list::of(self.b.full(*dtype, &dims, 0.0))
            }
            Value::List(_) if list::room(&self.b, value) < room => list::with_room(&mut self.b, value, room)?,
            _ => return Ok(false),
        };
        Ok(true)
    }
}
