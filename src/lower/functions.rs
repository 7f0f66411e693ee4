//! Lowering of calls and conditionals: library functions are inlined, or become computations of a `conditional`.
use super::captured_state::CapturedState;
use super::check_hoisting;
use super::trip_count::ParameterFacts;
use super::unroll::discard_values_of_attempt;
use super::walker::{GraphScope, ValueSlot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Endpoint, FuncRef, Function, Node};
use crate::hlo::symbolic::{BoundCheck, CompId, InstId, Op};
use crate::ops::spec::{self, ValueSpec};
use crate::ops::{CallKind, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::trace;
use crate::tensor::DType;
use std::sync::Arc;

/// Upper bound on the nesting depth of calls.
const MAX_DEPTH: usize = 100;

impl<'p> Walker<'p> {
    /// Lowers a node that calls library functions, such as `If`, `While` or `XlaReduce`, and returns its outputs.
    pub(super) fn lower_functional_op(
        &mut self,
        node: &Node,
        calls: CallKind,
        args: Vec<ValueSlot>,
    ) -> Result<Option<Vec<ValueSlot>>> {
        if calls == CallKind::Call {
            let f = required_function_attr(node, "f")?;
            return self.inline_call(&f.name, &f.attrs, args).map(Some);
        }
        let Some(args) = args.into_iter().collect::<Option<Vec<Value>>>() else { return Ok(None) };
        match calls {
            // returned above, as plain calls work with missing arguments
            CallKind::Call => Ok(None),
            CallKind::If => {
                let (yes, no) =
                    (required_function_attr(node, "then_branch")?, required_function_attr(node, "else_branch")?);
                self.branch_on_truth(yes, no, &args).map(Some)
            }
            CallKind::Case => match node.attr("branches") {
                Some(Attr::Funcs(branches)) if !branches.is_empty() => self.branch_on_index(branches, &args).map(Some),
                _ => Err(Error::user(Code::BadAttr, "attribute `branches` must list functions")),
            },
            CallKind::Module => self.lower_xla_call_module(node, &args).map(Some),
            CallKind::Sort => self.variadic_sort(node, args).map(Some),
            CallKind::Reduce => self.variadic_reduce(node, args).map(Some),
            CallKind::Scatter => self.scatter(node, &args).map(Some),
            CallKind::SelectAndScatter => self.select_and_scatter(node, &args).map(Some),
            CallKind::ReduceWindow => self.reduce_window(node, args).map(Some),
            CallKind::While => {
                let (cond, body) = (required_function_attr(node, "cond")?, required_function_attr(node, "body")?);
                self.lower_while_loop(cond, body, args).map(Some)
            }
        }
    }

    /// Library function with this name. Errors: `BadFunction`.
    pub(super) fn library_function(&self, name: &str) -> Result<&'p Function> {
        let found = self.program.functions.get(name);
        found.ok_or_else(|| Error::user(Code::BadFunction, format!("the library has no function `{name}`")))
    }

    /// Inlines a library function that is called with `args`, and returns its results.
    pub(super) fn inline_call(
        &mut self,
        name: &Arc<str>,
        attrs: &[(Arc<str>, Attr)],
        args: Vec<ValueSlot>,
    ) -> Result<Vec<ValueSlot>> {
        let function = self.library_function(name)?;
        self.inline_call_partially(name, attrs, args, &function.rets)
    }

    /// Inlines only the part of a library function that its tensors `targets` need, and returns their values. Errors: `BadFunction` for a
    /// wrong number of arguments, recursion, and calls nested too deep.
    pub(super) fn inline_call_partially(
        &mut self,
        name: &Arc<str>,
        attrs: &[(Arc<str>, Attr)],
        args: Vec<ValueSlot>,
        targets: &[Endpoint],
    ) -> Result<Vec<ValueSlot>> {
        let function = self.library_function(name)?;
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
        let scope = GraphScope { graph: &function.graph, function: Some(name), attrs, roots: &function.control_rets };
        let seeds = function.args.iter().map(|&node| Endpoint { node, port: 0 }).zip(args).collect();
        let results = self.lower_graph(&scope, seeds, targets);
        self.b.metadata = metadata;
        self.calls.pop();
        Ok(results)
    }

    /// Inlines `f`, and returns all its results; `None` if one of them could not be lowered, for which a diagnostic was reported.
    pub(super) fn inline_requiring_all_results(&mut self, f: &FuncRef, args: Vec<Value>) -> Result<Option<Vec<Value>>> {
        let results = self.inline_call(&f.name, &f.attrs, args.into_iter().map(Some).collect())?;
        Ok(results.into_iter().collect())
    }

    fn branch_on_truth(&mut self, yes: &FuncRef, no: &FuncRef, args: &[Value]) -> Result<Vec<ValueSlot>> {
        let (pred, args) = args.split_first().ok_or_else(|| Error::user(Code::BadGraph, "the predicate is missing"))?;
        let pred = self.scalar_predicate(pred)?;
        if let Some(known) = self.constant_branch_index(pred) {
            let taken = if known != 0 { yes } else { no };
            return self.inline_call(&taken.name, &taken.attrs, args.iter().cloned().map(Some).collect());
        }
        if let Some(both) = self.lower_lazy_and(pred, yes, no, args)? {
            return Ok(vec![Some(both)]);
        }
        self.conditional(pred, &[yes, no], args)
    }

    /// Constant value of a branch selector; `None` where the selector is no constant or varies with dynamic sizes.
    fn constant_branch_index(&self, selector: InstId) -> Option<i64> {
        let known = spec::symbolic_constant(&self.b, &Value::Array(selector))?;
        let varies = known.sizes.iter().flatten().any(|size| size.varies());
        known.value.get_i64(0).filter(|_| !varies)
    }

    /// Lowers a conditional that AutoGraph made of Python's lazy `and` to the scalar `pred and yes(args)`, with both sides computed. Only
    /// while a loop's condition is analyzed; `None` for every other conditional.
    fn lower_lazy_and(&mut self, pred: InstId, yes: &FuncRef, no: &FuncRef, args: &[Value]) -> Result<Option<Value>> {
        if !self.is_probing_condition
            || self.library_function(&yes.name)?.rets.len() != 1
            || self.library_function(&no.name)?.rets.len() != 1
        {
            return Ok(None);
        }
        let args: Vec<ValueSlot> = args.iter().cloned().map(Some).collect();
        let second = self.inline_call(&yes.name, &yes.attrs, args.clone())?.pop().flatten();
        let other = self.inline_call(&no.name, &no.attrs, args)?.pop().flatten();
        let (Some(Value::Array(second)), Some(other)) = (second, other) else { return Ok(None) };
        let is_false = self.constant_value(&other).is_some_and(|t| t.len() == 1 && t.get_i64(0) == Some(0));
        if self.b.dtype(second) != DType::Pred || self.b.rank(second) != 0 || !(is_false || other == Value::Array(pred))
        {
            return Ok(None);
        }
        Ok(Some(Value::Array(self.b.binary(ScalarOp::And, pred, second))))
    }

    fn branch_on_index(&mut self, branches: &[FuncRef], args: &[Value]) -> Result<Vec<ValueSlot>> {
        let (index, args) = args.split_first().ok_or_else(|| Error::user(Code::BadGraph, "the index is missing"))?;
        let Value::Array(id) = index else {
            return Err(Error::user(Code::UnsupportedType, "the branch index is not an array"));
        };
        let last = branches.len() - 1;
        if let Some(known) = self.constant_branch_index(*id) {
            let taken = &branches[usize::try_from(known).unwrap_or(last).min(last)];
            return self.inline_call(&taken.name, &taken.attrs, args.iter().cloned().map(Some).collect());
        }
        let index = self.b.convert(*id, DType::S32);
        self.conditional(index, &branches.iter().collect::<Vec<_>>(), args)
    }

    /// Lowers branches to a `conditional`, or, where they return arrays of different sizes, to a selection among the results of all.
    fn conditional(&mut self, index: InstId, branches: &[&FuncRef], args: &[Value]) -> Result<Vec<ValueSlot>> {
        let (mark, may_vary) = (self.checkpoint(), self.b.carries_checks());
        let made = self.lower_with_fixed_result_shapes(|w| w.conditional_with_checks(index, branches, args, &[]));
        if !(may_vary && self.failed_with_code(&made, &mark, |code| code == Code::DynamicShape)) {
            return made;
        }
        let told = self.errors.split_off(mark.errors);
        self.roll_back(&mark);
        if let Some(values) = trace::lower_branch(|| self.lower_branches_by_select(index, branches, args))? {
            return Ok(values);
        }
        self.roll_back(&mark);
        self.errors.extend(told);
        discard_values_of_attempt(made)
    }

    /// Values that branch `i` returns for the run-time checks of all branches: its own as computed, 0 for those of other branches.
    fn check_values_of_branch(&mut self, i: usize, asked: &[(usize, BoundCheck)]) -> Vec<Value> {
        let mut own = self.b.bound_checks().to_vec().into_iter();
        let mut values = self.initial_check_values(asked.len());
        for (value, _) in values.iter_mut().zip(asked).filter(|(_, (branch, _))| *branch == i) {
            *value = own.next().map_or_else(|| value.clone(), |bound_check| Value::Array(bound_check.value));
        }
        values
    }

    /// Lowers branches to a `conditional`. Each branch becomes a computation in which constant arguments are constants again. `asked` holds
    /// the run-time checks of the branches, each with the index of its branch, and is empty until a first attempt has found them.
    fn conditional_with_checks(
        &mut self,
        index: InstId,
        branches: &[&FuncRef],
        args: &[Value],
        asked: &[(usize, BoundCheck)],
    ) -> Result<Vec<ValueSlot>> {
        let (count, mut found) = (args.len(), Vec::new());
        let mark = self.b.checkpoint();
        let reached = self.captured_state(branches, args)?;
        let args = [args, &self.captured_values(&reached)?].concat();
        let facts = self.parameter_facts(&args, &[], |_| true);
        let back = reached.changed_only();
        let mut results: Option<Vec<ValueSpec>> = None;
        let mut comps: Vec<CompId> = Vec::with_capacity(branches.len());
        let mut blocked = false;
        for (i, branch) in branches.iter().enumerate() {
            let values = self.begin_ranged_computation(&branch.name, &facts.specs, &facts.ranges);
            let lower = |w: &mut Self| w.call_with_captures(branch, &values, &reached);
            let Some(out) = trace::lower_branch(|| self.with_hoistable_checks(lower))? else {
                self.b.discard_computation();
                blocked = true;
                continue;
            };
            found.extend(self.b.bound_checks().iter().map(|bound_check| (i, bound_check.clone())));
            let out = self.drop_unchanged_state(out, &reached)?;
            let want = match results {
                Some(specs) => specs,
                None => self.join_result_specs(&out, &branches[i + 1..], &facts, &reached)?,
            };
            if want.len() != out.len() {
                return Err(Error::user(Code::BadFunction, "the branches have different numbers of results"));
            }
            let left = [out, self.check_values_of_branch(i, asked)].concat();
            let root = self.pack_tuple(
                &left,
                &[&want[..], &check_hoisting::check_value_specs(asked.len())].concat(),
                "the branches' result",
            )?;
            comps.push(self.b.end_computation(root));
            results = Some(want);
        }
        let results = results.unwrap_or_default();
        if blocked {
            return Ok(vec![None; self.library_function(&branches[0].name)?.rets.len()]);
        }
        if found.len() > asked.len() {
            self.b.roll_back_to(&mark);
            return self.conditional_with_checks(index, branches, &args[..count], &found);
        }
        let operand = self.pack_tuple(&args, &facts.specs, "argument")?;
        let operands: Vec<_> = std::iter::once(index).chain(branches.iter().map(|_| operand)).collect();
        let tuple = self.b.add_inst(Op::Conditional(comps), &operands);
        let mut out =
            self.unpack_tuple(tuple, &[&results[..], &check_hoisting::check_value_specs(asked.len())].concat());
        let values = out.split_off(results.len());
        let asked: Vec<BoundCheck> = asked.iter().map(|(_, bound_check)| bound_check.clone()).collect();
        self.hoist_checks(&asked, &values);
        let after = out.split_off(out.len() - self.captured_values(&back)?.len());
        self.write_back_captured(&back, &after)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// Specs of a branch's results, widened so that the results of the `others` fit too (lists get the larger capacity).
    fn join_result_specs(
        &mut self,
        out: &[Value],
        others: &[&FuncRef],
        facts: &ParameterFacts,
        reached: &CapturedState,
    ) -> Result<Vec<ValueSpec>> {
        let mut specs: Vec<ValueSpec> = out.iter().map(|v| self.value_spec(v)).collect();
        if !specs.iter().any(ValueSpec::is_joinable) {
            return Ok(specs);
        }
        for branch in others {
            let values = self.begin_ranged_computation("probe", &facts.specs, &facts.ranges);
            let lower = |w: &mut Self| w.call_with_captures(branch, &values, reached);
            let out = trace::lower_branch(|| self.with_hoistable_checks(lower));
            let found = out.and_then(|out| out.map(|out| self.drop_unchanged_state(out, reached)).transpose());
            let found = found.map(|out| out.map(|out| out.iter().map(|v| self.value_spec(v)).collect::<Vec<_>>()));
            self.b.discard_computation();
            for (spec, found) in specs.iter_mut().zip(found?.into_iter().flatten()) {
                if let Some(joined) = spec.joined(&found) {
                    *spec = joined;
                }
            }
        }
        Ok(specs)
    }

    /// Results of a branch without the captured variables and mutable lists that no branch changes.
    fn drop_unchanged_state(&self, mut out: Vec<Value>, reached: &CapturedState) -> Result<Vec<Value>> {
        let held = out.split_off(out.len() - self.list_elements(&reached.mutable_lists)?.len());
        let variables = out.split_off(out.len() - reached.variables.variables.len());
        let changed = variables.into_iter().zip(&reached.variables.variables).filter(|(_, v)| v.1);
        out.extend(changed.map(|(value, _)| value));
        out.extend(held.into_iter().filter(|_| reached.changed));
        Ok(out)
    }
}

/// The function in the attribute `name` of a node. Errors: `BadAttr` if it is missing.
pub(super) fn required_function_attr<'n>(node: &'n Node, name: &str) -> Result<&'n FuncRef> {
    node.func(name).ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` must be a function")))
}
