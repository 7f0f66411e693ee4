//! Calls and branches: functions of the library, inlined or as computations.
use super::check_hoisting;
use super::holders::CapturedState;
use super::rounds::Border;
use super::unroll::without_values;
use super::walker::{Scope, Slot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Endpoint, FuncRef, Function, Node};
use crate::hlo::open::{Claim, CompId, InstId, Op};
use crate::ops::spec::{self, ValueSpec};
use crate::ops::{Calls, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;
use std::sync::Arc;

/// How deep calls may be nested.
const MAX_DEPTH: usize = 100;

impl<'p> Walker<'p> {
    /// The outputs of a node whose row is `walker(..)`.
    pub(super) fn control_flow(&mut self, node: &Node, calls: Calls, args: Vec<Slot>) -> Result<Option<Vec<Slot>>> {
        if calls == Calls::Call {
            let f = required(node, "f")?;
            return self.call(&f.name, &f.attrs, args).map(Some);
        }
        let Some(args) = args.into_iter().collect::<Option<Vec<Value>>>() else { return Ok(None) };
        match calls {
            // above: arguments that are missing don't stop it
            Calls::Call => Ok(None),
            Calls::If => {
                let (yes, no) = (required(node, "then_branch")?, required(node, "else_branch")?);
                self.branch_on_truth(yes, no, &args).map(Some)
            }
            Calls::Case => match node.attr("branches") {
                Some(Attr::Funcs(branches)) if !branches.is_empty() => self.branch_on_index(branches, &args).map(Some),
                _ => Err(Error::user(Code::BadAttr, "attribute `branches` must list functions")),
            },
            Calls::Module => self.call_module(node, &args).map(Some),
            Calls::Sort => self.variadic_sort(node, args).map(Some),
            Calls::Reduce => self.variadic_reduce(node, args).map(Some),
            Calls::Scatter => self.scatter(node, &args).map(Some),
            Calls::SelectAndScatter => self.select_and_scatter(node, &args).map(Some),
            Calls::ReduceWindow => self.reduce_window(node, args).map(Some),
            Calls::While => {
                let (cond, body) = (required(node, "cond")?, required(node, "body")?);
                self.while_loop(cond, body, args).map(Some)
            }
        }
    }

    /// The function called `name`.
    pub(super) fn function(&self, name: &str) -> Result<&'p Function> {
        let found = self.program.functions.get(name);
        found.ok_or_else(|| Error::user(Code::BadFunction, format!("the library has no function `{name}`")))
    }

    /// The results of a function on `args`, its body inlined.
    pub(super) fn call(&mut self, name: &Arc<str>, attrs: &[(Arc<str>, Attr)], args: Vec<Slot>) -> Result<Vec<Slot>> {
        let function = self.function(name)?;
        self.call_for(name, attrs, args, &function.rets)
    }

    /// The values of `targets` in a function on `args`, its body inlined.
    pub(super) fn call_for(
        &mut self,
        name: &Arc<str>,
        attrs: &[(Arc<str>, Attr)],
        args: Vec<Slot>,
        targets: &[Endpoint],
    ) -> Result<Vec<Slot>> {
        let function = self.function(name)?;
        if function.args.len() != args.len() {
            return Err(Error::user(
                Code::BadFunction,
                format!("`{name}` takes {} arguments, and gets {}", function.args.len(), args.len()),
            ));
        }
        if self.calls.contains(name) {
            return Err(Error::user(Code::BadFunction, format!("`{name}` calls itself")));
        }
        if self.calls.len() >= MAX_DEPTH {
            return Err(Error::user(Code::BadFunction, format!("calls are nested deeper than {MAX_DEPTH}")));
        }
        self.calls.push(name.clone());
        let metadata = self.b.metadata.clone();
        let scope = Scope { graph: &function.graph, function: Some(name), attrs, roots: &function.control_rets };
        let seeds = function.args.iter().map(|&node| Endpoint { node, port: 0 }).zip(args).collect();
        let results = self.walk(&scope, seeds, targets);
        self.b.metadata = metadata;
        self.calls.pop();
        Ok(results)
    }

    /// The results of `f` on values that are all there; `None` where one of them is missing.
    pub(super) fn call_whole(&mut self, f: &FuncRef, args: Vec<Value>) -> Result<Option<Vec<Value>>> {
        let results = self.call(&f.name, &f.attrs, args.into_iter().map(Some).collect())?;
        Ok(results.into_iter().collect())
    }

    fn branch_on_truth(&mut self, yes: &FuncRef, no: &FuncRef, args: &[Value]) -> Result<Vec<Slot>> {
        let (pred, args) = args.split_first().ok_or_else(|| Error::user(Code::BadGraph, "the predicate is missing"))?;
        let pred = self.truth(pred)?;
        if let Some(known) = self.chosen(pred) {
            let taken = if known != 0 { yes } else { no };
            return self.call(&taken.name, &taken.attrs, args.iter().cloned().map(Some).collect());
        }
        if let Some(both) = self.both(pred, yes, no, args)? {
            return Ok(vec![Some(both)]);
        }
        self.conditional(pred, &[yes, no], args)
    }

    /// The integer or truth value that says which branch is taken, where that is the same in every call.
    fn chosen(&self, selector: InstId) -> Option<i64> {
        let known = spec::known_constant(&self.b, &Value::Array(selector))?;
        let varies = known.sizes.iter().flatten().any(|size| size.varies());
        known.value.get_i64(0).filter(|_| !varies)
    }

    /// "And" as Python has it, which looks at the second condition where the first one holds, as one value; where conditions are only
    /// looked at.
    fn both(&mut self, pred: InstId, yes: &FuncRef, no: &FuncRef, args: &[Value]) -> Result<Option<Value>> {
        if !self.is_looking || self.function(&yes.name)?.rets.len() != 1 || self.function(&no.name)?.rets.len() != 1 {
            return Ok(None);
        }
        let args: Vec<Slot> = args.iter().cloned().map(Some).collect();
        let second = self.call(&yes.name, &yes.attrs, args.clone())?.pop().flatten();
        let other = self.call(&no.name, &no.attrs, args)?.pop().flatten();
        let (Some(Value::Array(second)), Some(other)) = (second, other) else { return Ok(None) };
        let is_false = self.known(&other).is_some_and(|t| t.len() == 1 && t.get_i64(0) == Some(0));
        if self.b.dtype(second) != DType::Pred || self.b.rank(second) != 0 || !(is_false || other == Value::Array(pred))
        {
            return Ok(None);
        }
        Ok(Some(Value::Array(self.b.binary(ScalarOp::And, pred, second))))
    }

    fn branch_on_index(&mut self, branches: &[FuncRef], args: &[Value]) -> Result<Vec<Slot>> {
        let (index, args) = args.split_first().ok_or_else(|| Error::user(Code::BadGraph, "the index is missing"))?;
        let Value::Array(id) = index else {
            return Err(Error::user(Code::UnsupportedType, "the branch index is not an array"));
        };
        let last = branches.len() - 1;
        if let Some(known) = self.chosen(*id) {
            let taken = &branches[usize::try_from(known).unwrap_or(last).min(last)];
            return self.call(&taken.name, &taken.attrs, args.iter().cloned().map(Some).collect());
        }
        let index = self.b.convert(*id, DType::S32);
        self.conditional(index, &branches.iter().collect::<Vec<_>>(), args)
    }

    /// A `conditional` over functions; constant arguments are made anew in each branch.
    fn conditional(&mut self, index: InstId, branches: &[&FuncRef], args: &[Value]) -> Result<Vec<Slot>> {
        let (mark, may_vary) = (self.mark(), self.b.carries());
        let made = self.with_sizes_within(|w| w.conditional_asking(index, branches, args, &[]));
        if !(may_vary && self.is_refused(&made, &mark, |code| code == Code::DynamicShape)) {
            return made;
        }
        let told = self.errors.split_off(mark.errors);
        self.return_to(&mark);
        if let Some(values) = self.selected(index, branches, args)? {
            return Ok(values);
        }
        self.return_to(&mark);
        self.errors.extend(told);
        without_values(made)
    }

    /// Values of the claims of all branches as branch `i` leaves them: its own as computed, those of other branches 0.
    fn asked_by_branch(&mut self, i: usize, asked: &[(usize, Claim)]) -> Vec<Value> {
        let mut own = self.b.claims().to_vec().into_iter();
        let mut values = self.nothing_asked(asked.len());
        for (value, _) in values.iter_mut().zip(asked).filter(|(_, (branch, _))| *branch == i) {
            *value = own.next().map_or_else(|| value.clone(), |claim| Value::Array(claim.value));
        }
        values
    }

    /// The same where branches ask for something, each claim with its branch.
    fn conditional_asking(
        &mut self,
        index: InstId,
        branches: &[&FuncRef],
        args: &[Value],
        asked: &[(usize, Claim)],
    ) -> Result<Vec<Slot>> {
        let (count, mut found) = (args.len(), Vec::new());
        let mark = self.b.mark();
        let reached = self.reach(branches, args)?;
        let args = [args, &self.handed(&reached)?].concat();
        let border = self.border(&args, &[], |_| true);
        let back = reached.changed_only();
        let mut results: Option<Vec<ValueSpec>> = None;
        let mut comps: Vec<CompId> = Vec::with_capacity(branches.len());
        let mut blocked = false;
        for (i, branch) in branches.iter().enumerate() {
            let values = self.enter(&branch.name, &border.specs, &border.ranges);
            let Some(out) = self.carrying(|w| w.call_with(branch, &values, &reached))? else {
                self.b.abandon();
                blocked = true;
                continue;
            };
            found.extend(self.b.claims().iter().map(|claim| (i, claim.clone())));
            let out = self.without_unchanged(out, &reached)?;
            let want = match results {
                Some(specs) => specs,
                None => self.joined_results(&out, &branches[i + 1..], &border, &reached)?,
            };
            if want.len() != out.len() {
                return Err(Error::user(Code::BadFunction, "the branches have different numbers of results"));
            }
            let left = [out, self.asked_by_branch(i, asked)].concat();
            let root =
                self.pack(&left, &[&want[..], &check_hoisting::specs(asked.len())].concat(), "the branches' result")?;
            comps.push(self.b.end(root));
            results = Some(want);
        }
        let results = results.unwrap_or_default();
        if blocked {
            return Ok(vec![None; self.function(&branches[0].name)?.rets.len()]);
        }
        if found.len() > asked.len() {
            self.b.return_to(&mark);
            return self.conditional_asking(index, branches, &args[..count], &found);
        }
        let operand = self.pack(&args, &border.specs, "argument")?;
        let operands: Vec<_> = std::iter::once(index).chain(branches.iter().map(|_| operand)).collect();
        let tuple = self.b.add_inst(Op::Conditional(comps), &operands);
        let mut out = self.unpack(tuple, &[&results[..], &check_hoisting::specs(asked.len())].concat());
        let values = out.split_off(results.len());
        let asked: Vec<Claim> = asked.iter().map(|(_, claim)| claim.clone()).collect();
        self.carry_out(&asked, &values);
        let after = out.split_off(out.len() - self.handed(&back)?.len());
        self.take_back(&back, &after)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// The specs of a branch's results, lists with room for what other branches leave in them.
    fn joined_results(
        &mut self,
        out: &[Value],
        others: &[&FuncRef],
        border: &Border,
        reached: &CapturedState,
    ) -> Result<Vec<ValueSpec>> {
        let mut specs: Vec<ValueSpec> = out.iter().map(|v| self.spec(v)).collect();
        if !specs.iter().any(ValueSpec::is_joinable) {
            return Ok(specs);
        }
        for branch in others {
            let values = self.enter("probe", &border.specs, &border.ranges);
            let out = self.carrying(|w| w.call_with(branch, &values, reached));
            let found = out.and_then(|out| out.map(|out| self.without_unchanged(out, reached)).transpose());
            let found = found.map(|out| out.map(|out| out.iter().map(|v| self.spec(v)).collect::<Vec<_>>()));
            self.b.abandon();
            for (spec, found) in specs.iter_mut().zip(found?.into_iter().flatten()) {
                if let Some(joined) = spec.joined(&found) {
                    *spec = joined;
                }
            }
        }
        Ok(specs)
    }

    /// The results of a branch without what it had to leave as it was.
    fn without_unchanged(&self, mut out: Vec<Value>, reached: &CapturedState) -> Result<Vec<Value>> {
        let held = out.split_off(out.len() - self.contents(&reached.holders)?.len());
        let variables = out.split_off(out.len() - reached.variables.variables.len());
        let changed = variables.into_iter().zip(&reached.variables.variables).filter(|(_, v)| v.1);
        out.extend(changed.map(|(value, _)| value));
        out.extend(held.into_iter().filter(|_| reached.changed));
        Ok(out)
    }
}

/// A function attribute that must be there.
pub(super) fn required<'n>(node: &'n Node, name: &str) -> Result<&'n FuncRef> {
    node.func(name).ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` must be a function")))
}
