//! Lowering of `While` to one HLO loop over a state tuple.
use super::captured_state::CapturedState;
use super::check_hoisting;
use super::trip_count::ParameterFacts;
use super::walker::{ValueSlot, Walker};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, FuncRef, Function};
use crate::hlo::symbolic::{BoundCheck, CheckedQuantity, CompId, Dim, InstId, Op, Shape};
use crate::interp;
use crate::ops::range::IntRange;
use crate::ops::spec::{ListSpec, RaggedTensorListSpec, ValueSpec};
use crate::ops::value::{ListValue, RaggedTensorList};
use crate::ops::{self, Value, list};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::slice;

/// Number of attempts after which shapes and list capacities count as unstable.
const MAX_ATTEMPTS: usize = 64;

/// Inputs and intermediate results of the lowering of one loop.
struct LoopLowering<'a> {
    cond: &'a FuncRef,
    body: &'a FuncRef,
    /// Variables, TensorArrays and stacks that the loop carries in addition to its own variables.
    reached: CapturedState,
    /// Initial values of the loop's own variables, followed by those of the captured state (`reached`).
    init: Vec<Value>,
    /// Whether the body returns each value of `init` unchanged.
    fixed: Vec<bool>,
    /// Growth of each value of `init` that is a list.
    growth: Vec<Growth>,
    /// Spec of each loop-carried value, wide enough for the initial value and those of iterations; `None` where the spec of the initial
    /// value is.
    wider: Vec<Option<ValueSpec>>,
    /// Trip count that list capacities are made for where no bound is known; a call that takes more iterations fails.
    allowed: Option<Dim>,
}

/// Additional elements of a loop's state: an iteration counter and the values of run-time checks.
struct AuxiliaryState {
    /// Iteration count at which the counter ends the loop; `None` for a loop without a counter.
    most: Option<Dim>,
    /// Run-time checks of the body: the loop carries the largest value of all rounds.
    asked: Vec<BoundCheck>,
    /// Whether the condition has run-time checks.
    is_checked: bool,
}

impl AuxiliaryState {
    /// Specs of the state elements, followed by those of the additional elements.
    fn specs(&self, facts: &ParameterFacts) -> Vec<ValueSpec> {
        let counter = self.most.map(|_| ValueSpec::Array(Shape::array(DType::S64, Vec::new())));
        facts.specs.iter().cloned().chain(counter).chain(check_hoisting::check_value_specs(self.asked.len())).collect()
    }

    /// Integer ranges of the state elements (`of_state`), followed by `None` for each additional element.
    fn ranges(&self, of_state: &[Option<IntRange>]) -> Vec<Option<IntRange>> {
        let behind = usize::from(self.most.is_some()) + self.asked.len();
        [of_state, &vec![None; behind]].concat()
    }
}

/// Growth of a list from iteration to iteration.
#[derive(Clone, Copy)]
enum Growth {
    /// No growth of the list has been observed.
    None,
    /// Growth to a length that does not depend on the trip count, from at most `from` elements before the loop.
    Once { from: Dim },
    /// The list grows by the same number of elements in each iteration; after the last iteration it has at most `behind` elements.
    PerIteration { behind: Dim },
}

/// Lowered condition of a loop.
struct Condition {
    comp: CompId,
    /// Whether the condition has run-time checks of values (assertions), which the body repeats.
    is_checked: bool,
}

impl Walker<'_> {
    /// Lowers a loop to HLO's `while`, and returns the final values of its variables.
    ///
    /// Variables with a constant initial value that the body returns unchanged are no state: they are constants in the condition and the
    /// body. Lists of unknown element shape take the shape that the body gives them, and growing lists get capacity for all iterations: for
    /// `allowed` ones where no other bound is known.
    pub(super) fn lower_while_as_hlo(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        args: Vec<Value>,
        allowed: Option<Dim>,
    ) -> Result<Vec<ValueSlot>> {
        let (c, f) = (self.library_function(&cond.name)?, self.library_function(&body.name)?);
        let n = args.len();
        if c.args.len() != n || c.rets.len() != 1 || f.args.len() != n || f.rets.len() != n {
            return Err(Error::user(
                Code::BadFunction,
                format!("the condition or body of a loop over {n} variables has another signature"),
            ));
        }
        let reached = self.captured_state(&[cond, body], &args)?;
        if self.accesses.function_effects(self.program, &cond.name).has_side_effects() {
            let told = format!("the condition `{}` of a loop changes a variable or draws random numbers", cond.name);
            return Err(Error::user(Code::UnsupportedCase, told));
        }
        let init = [args, self.captured_values(&reached)?].concat();
        let mut fixed = invariant_arguments(f);
        fixed.extend(reached.variables.variables.iter().map(|v| !v.1));
        fixed.resize(init.len(), !reached.changed);
        let (growth, wider) = (vec![Growth::None; init.len()], vec![None; init.len()]);
        let mut this = LoopLowering { cond, body, reached, init, fixed, growth, wider, allowed };
        let Some(facts) = self.stabilize_list_specs(&mut this)? else { return Ok(vec![None; n]) };
        let Some(mut out) = self.emit_loop(&this, &facts)? else { return Ok(vec![None; n]) };
        for (value, growth) in out.iter_mut().zip(&this.growth) {
            self.refine_list_after_loop(value, *growth);
        }
        let after = out.split_off(n);
        self.write_back_captured(&this.reached, &after)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// Finds element shapes and capacities of lists, and specs of other state, that no further iteration changes. `None` where the body
    /// could not be lowered and a diagnostic was reported.
    fn stabilize_list_specs(&mut self, this: &mut LoopLowering) -> Result<Option<ParameterFacts>> {
        for _ in 0..MAX_ATTEMPTS {
            let mut facts = self.parameter_facts(&this.init, &this.wider, |i| this.fixed[i]);
            let rounds = if self.has_resizing_lists {
                self.max_trip_count(this.cond, this.body, &this.init, &mut facts, &this.reached, this.allowed)?
            } else {
                None
            };
            let open = |(i, spec): (usize, &ValueSpec)| match spec {
                ValueSpec::List(_) => !this.fixed[i] && self.has_resizing_lists,
                spec => !this.fixed[i] && spec.is_joinable(),
            };
            let open: Vec<bool> = facts.specs.iter().enumerate().map(open).collect();
            if !open.contains(&true) {
                return Ok(Some(facts));
            }
            let values = self.begin_ranged_computation("probe", &facts.specs, &facts.body_ranges);
            let Some(after) = self.probe_iteration_specs(&facts.specs, this, &values)? else { return Ok(None) };
            let mut changed = false;
            for i in (0..open.len()).filter(|&i| open[i]) {
                changed |= self.widen_state_value(this, i, &facts.specs[i], &after[i], rounds)?;
            }
            if !changed {
                return Ok(Some(facts));
            }
        }
        let told = format!("what the loop `{}` holds grows from round to round", this.body.name);
        Err(Error::user(Code::DynamicShape, told))
    }

    /// Lowers an iteration to find the specs of the state after it, and discards the instructions. If rows of different lengths are set in
    /// a list, the longest counts.
    fn probe_iteration_specs(
        &mut self,
        before: &[ValueSpec],
        this: &LoopLowering,
        values: &[Value],
    ) -> Result<Option<Vec<ValueSpec>>> {
        let has_rows = before.iter().any(|spec| matches!(spec, ValueSpec::Heterogeneous(list) if list.is_unset()));
        let outer = self.b.maximize_sizes_from(None);
        self.b.maximize_sizes_from(outer.or(has_rows.then(|| self.b.data_dependent_sizes().len())));
        let after = self.probe_result_specs(this.body, values, &this.reached);
        self.b.maximize_sizes_from(outer);
        after
    }

    /// Widens the initial value or spec of state element `i` so that it covers its specs before and after an iteration. Returns whether
    /// that changed anything.
    fn widen_state_value(
        &mut self,
        this: &mut LoopLowering,
        i: usize,
        before: &ValueSpec,
        after: &ValueSpec,
        rounds: Option<Dim>,
    ) -> Result<bool> {
        match before.joined(after) {
            None => Ok(false),
            Some(ValueSpec::List(want)) => {
                let Value::List(list) =
                    list::with_element_shape(&mut self.b, this.init[i].clone(), want.dims.get(1..))?
                else {
                    return Ok(false);
                };
                let before = if let ValueSpec::List(before) = before { slice::from_ref(before) } else { &[] };
                let mut lists = vec![list];
                let changed = self.widen_lists(this, i, &mut lists, before, slice::from_ref(&want), rounds)?;
                this.init[i] = lists.pop().map_or_else(|| this.init[i].clone(), Value::List);
                Ok(changed)
            }
            Some(ValueSpec::Structured(want)) => {
                let own = match self.value_spec(&this.init[i]) {
                    ValueSpec::Structured(own) => Some(own.with_element(&want.element)),
                    ValueSpec::Heterogeneous(own) => own.to_structured(Some(&want.element)),
                    _ => None,
                };
                let Some(own) = own else { return Ok(false) };
                let cast = self.cast_value(&this.init[i], &ValueSpec::Structured(own), "a list")?;
                let Value::Structured(mut list) = cast else { return Ok(false) };
                let before = match before {
                    ValueSpec::Structured(before) if before.element == want.element => &before.parts[..],
                    _ => &[],
                };
                let changed = self.widen_lists(this, i, &mut list.parts, before, &want.parts, rounds)?;
                this.init[i] = Value::Structured(list);
                Ok(changed)
            }
            Some(ValueSpec::RaggedList(RaggedTensorListSpec { dtype, dims, name })) => {
                this.init[i] = Value::RaggedList(RaggedTensorList::empty(&mut self.b, dtype, &dims, &name));
                Ok(true)
            }
            Some(want) => {
                let changed = want != *before;
                this.wider[i] = Some(want);
                Ok(changed)
            }
        }
    }

    /// Widens lists of equal length that make up state element `i` to the capacity and element shape that iterations need (`want`).
    /// `before` holds their specs before the iteration, and is empty where the element was no such list. Returns whether that changed
    /// anything.
    fn widen_lists(
        &mut self,
        this: &mut LoopLowering,
        i: usize,
        lists: &mut [ListValue],
        before: &[ListSpec],
        want: &[ListSpec],
        rounds: Option<Dim>,
    ) -> Result<bool> {
        let (mut growth, mut changed) = (this.growth[i], false);
        for (at, (list, want)) in lists.iter_mut().zip(want).enumerate() {
            let least = list.max_length(&self.b);
            let most = this.growth[i].next(least, want.max_length(), rounds);
            let most =
                most.filter(|most| most.behind <= list.capacity(&self.b) || list.fits_in_memory(&self.b, most.behind));
            let most = most.ok_or_else(|| unbounded_list_error(&list.name, this.body))?;
            changed |= !before.get(at).is_some_and(|before| {
                before.count.is_some() == want.count.is_some()
                    && before.dims == want.dims
                    && before.count.map(|c| c.1) == want.count.map(|c| c.1)
                    && before.elements == want.elements
            });
            list.elements = want.elements.clone();
            let Some((_, stale)) = want.count else { continue };
            let room = want.capacity().max(most.behind);
            changed |= list.capacity(&self.b) < room || least < most.before;
            *list = list.with_separate_length(&mut self.b, room)?;
            if let Some(count) = &mut list.count {
                (count.most, count.stale) = (most.before, count.stale || stale);
            }
            growth = most.growth;
        }
        this.growth[i] = growth;
        Ok(changed)
    }

    /// Tightens the recorded length of a list after a loop: to a constant if it is known, else to the bound that follows from its growth.
    fn refine_list_after_loop(&mut self, value: &mut Value, growth: Growth) {
        match value {
            Value::List(list) => self.refine_list_length(list, growth),
            Value::Structured(list) => list.parts.iter_mut().for_each(|part| self.refine_list_length(part, growth)),
            _ => {}
        }
    }

    fn refine_list_length(&mut self, list: &mut ListValue, growth: Growth) {
        let Some(count) = &mut list.count else { return };
        if let Growth::PerIteration { behind } = growth {
            count.most = behind;
        }
        let known = interp::constant_value_through_loops(&self.b, count.now).and_then(|t| t.get_i64(0));
        let Some(n) = known.and_then(|n| i32::try_from(n).ok()) else { return };
        count.now = self.b.constant(Tensor::scalar(n));
        count.most = Dim::size(n).map_or(count.most, |n| n.min(count.most));
        if Dim::size(n) == Ok(list.capacity(&self.b)) {
            list.count = None;
        }
    }

    /// Emits the loop, and returns the final values of its state. If the user bounds the trip count, a counter behind the state ends the
    /// loop as TensorFlow's `maximum_iterations` does. If list capacities are made for an allowed trip count, the counter ends the loop
    /// there too, and a call that would go on fails.
    fn emit_loop(&mut self, this: &LoopLowering, facts: &ParameterFacts) -> Result<Option<Vec<Value>>> {
        let mut beside = AuxiliaryState {
            most: self.user_trip_limit(this.body).or(this.allowed),
            asked: Vec::new(),
            is_checked: false,
        };
        let Some((cond, body)) = self.loop_computations(this, facts, &mut beside)? else { return Ok(None) };
        let mut init = this.init.clone();
        init.extend(beside.most.map(|_| Value::Array(self.b.constant(Tensor::scalar(0i64)))));
        init.extend(self.initial_check_values(beside.asked.len()));
        let specs = beside.specs(facts);
        let state = self.pack_tuple(&init, &specs, "loop variable")?;
        let end = self.b.add_inst(Op::While { cond, body }, &[state]);
        let mut values = self.unpack_tuple(end, &specs);
        let mut behind = values.split_off(facts.specs.len());
        self.hoist_checks(&beside.asked, &behind.split_off(usize::from(beside.most.is_some())));
        if beside.is_checked {
            self.call_with_captures(this.cond, &values, &this.reached)?;
        }
        if let (Some(most), Some(Value::Array(rounds))) = (this.allowed, behind.first()) {
            self.check_trip_count(this, &values, *rounds, most)?;
        }
        Ok(Some(values))
    }

    /// Emits the computations of the condition and the body; run-time checks of the body become additional state. `None` where one of them
    /// could not be lowered and a diagnostic was reported.
    fn loop_computations(
        &mut self,
        this: &LoopLowering,
        facts: &ParameterFacts,
        beside: &mut AuxiliaryState,
    ) -> Result<Option<(CompId, CompId)>> {
        let mark = self.b.checkpoint();
        let cond = self.condition_computation(this, facts, beside)?;
        let checks = cond.as_ref().is_some_and(|c| c.is_checked);
        let cond = cond.map(|c| c.comp);
        let specs = beside.specs(facts);
        let mut values = self.begin_ranged_computation(&this.body.name, &specs, &beside.ranges(&facts.body_ranges));
        let mut behind = values.split_off(facts.specs.len());
        let after = self.with_hoistable_checks(|w| {
            // repeats the condition's checks, for the values with which the condition was true
            if checks {
                w.call_with_captures(this.cond, &values, &this.reached)?;
            }
            w.call_with_captures(this.body, &values, &this.reached)
        })?;
        beside.is_checked = checks;
        let (Some(cond), Some(mut after)) = (cond, after) else { return Ok(None) };
        if self.b.bound_checks().len() > beside.asked.len() {
            beside.asked = self.b.bound_checks().to_vec();
            self.b.roll_back_to(&mark);
            return self.loop_computations(this, facts, beside);
        }
        let asked = behind.split_off(usize::from(beside.most.is_some()));
        if let Some(Value::Array(count)) = behind.pop() {
            let one = self.b.constant(Tensor::scalar(1i64));
            after.push(Value::Array(self.b.add(count, one)));
        }
        after.extend(self.accumulate_checks(&asked));
        let root = self.pack_tuple(&after, &specs, "loop variable")?;
        Ok(Some((cond, self.b.end_computation(root))))
    }

    fn condition_computation(
        &mut self,
        this: &LoopLowering,
        facts: &ParameterFacts,
        beside: &AuxiliaryState,
    ) -> Result<Option<Condition>> {
        let mut values =
            self.begin_ranged_computation(&this.cond.name, &beside.specs(facts), &beside.ranges(&facts.ranges));
        let behind = values.split_off(facts.specs.len());
        let test = self.with_hoistable_checks(|w| w.call_with_captures(this.cond, &values, &this.reached))?;
        let Some(test) = test.as_ref().and_then(|results| results.first()) else {
            self.b.discard_computation();
            return Ok(None);
        };
        // a call can't fail in a condition; its checks are repeated in the body and behind the loop
        let is_check = |bound_check: &BoundCheck| matches!(bound_check.quantity, CheckedQuantity::Check(_));
        let is_checked = self.b.bound_checks().iter().any(is_check);
        if let Some(bound_check) = self.b.bound_checks().iter().find(|bound_check| !is_check(bound_check)) {
            let told = format!(
                "how large what `{}` makes is depends on values, which the condition of a loop can't bound",
                bound_check.node
            );
            return Err(Error::user(Code::DynamicShape, told));
        }
        let mut root = self.scalar_predicate(test)?;
        if let (Some(most), Some(Value::Array(count))) = (beside.most, behind.first()) {
            let most = self.b.constant(Tensor::scalar(most.guarded_value()));
            let more = self.b.compare(Direction::Lt, *count, most);
            root = self.b.binary(ScalarOp::And, root, more);
        }
        let of_body = beside.asked.iter().zip(behind.get(usize::from(beside.most.is_some())..).unwrap_or_default());
        let of_body = of_body.filter(|(bound_check, _)| is_check(bound_check)).filter_map(|(_, value)| match value {
            Value::Array(value) => Some(*value),
            _ => None,
        });
        let failed: Vec<InstId> =
            self.b.bound_checks().iter().map(|bound_check| bound_check.value).chain(of_body).collect();
        for failed in failed {
            root = self.and_check_holds(root, failed);
        }
        Ok(Some(Condition { comp: self.b.end_computation(root), is_checked }))
    }

    /// Emits `goes_on && failed == 0`, where `failed` is 1 if a run-time check fails: the loop ends in the iteration in which a check
    /// fails, since it might not terminate with the values computed there.
    fn and_check_holds(&mut self, goes_on: InstId, failed: InstId) -> InstId {
        let none = self.b.full_like(failed, 0.0);
        let holds = self.b.compare(Direction::Eq, failed, none);
        self.b.binary(ScalarOp::And, goes_on, holds)
    }

    /// Adds a run-time check that the loop's condition is false for `values`, the final state, if the counter ended the loop after `most`
    /// iterations. `rounds` is the number of iterations that ran.
    fn check_trip_count(&mut self, this: &LoopLowering, values: &[Value], rounds: InstId, most: Dim) -> Result<()> {
        let test = self.call_with_captures(this.cond, values, &this.reached)?;
        let Some(test) = test.as_ref().and_then(|results| results.first()) else { return Ok(()) };
        let goes_on = self.scalar_predicate(test)?;
        let more = self.b.convert(goes_on, DType::S64);
        let asked = self.b.add(rounds, more);
        let (node, value) = (self.b.metadata.op_name.clone(), self.b.convert(asked, DType::S32));
        self.b.check_at_most(
            most,
            BoundCheck { node, quantity: CheckedQuantity::Rounds, value, most: 0, is_allowed: true },
        );
        Ok(())
    }
}

/// Upper bounds on the length of a list before an iteration and after the loop.
struct ListBounds {
    growth: Growth,
    before: Dim,
    behind: Dim,
}

impl Growth {
    /// Growth of a list that has at most `before` elements at the beginning of an iteration and `after` at its end; `None` where no bound
    /// follows.
    ///
    /// A list whose elements are set by index grows to the largest index; a list to which elements are pushed grows in each iteration. The
    /// next iteration shows which of the two a list is.
    fn next(self, before: Dim, after: Dim, rounds: Option<Dim>) -> Option<ListBounds> {
        let stays = |growth, behind| Some(ListBounds { growth, before, behind });
        let each = |from: Dim, growth: Dim| {
            let before = growth.checked_mul(rounds?.max(1) - 1)?.checked_add(from)?;
            let behind = before.checked_add(growth)?;
            Some(ListBounds { growth: Growth::PerIteration { behind }, before, behind })
        };
        match self {
            Growth::PerIteration { behind } if after <= behind => stays(self, behind),
            Growth::PerIteration { .. } => None,
            _ if after <= before => stays(self, before),
            Growth::None if after == before + 1 && rounds.is_some() => each(before, Dim::from(1)),
            Growth::None => Some(ListBounds { growth: Growth::Once { from: before }, before: after, behind: after }),
            Growth::Once { from } => each(from, after - before),
        }
    }
}

/// Error for a list that grows in a loop without a known bound on its trip count.
fn unbounded_list_error(list: &str, body: &FuncRef) -> Error {
    let told = format!(
        "the list `{list}` grows in each round of the loop `{}`, and how many rounds there are is not known",
        body.name
    );
    Diagnostic::new(Code::DynamicShape, told)
        .note("the list needs room for what all rounds add, and compiled code has fixed sizes; the gradient of a loop keeps values of every round in such lists")
        .help(format!(
            "give the loop a largest number of rounds: tf.while_loop(..., maximum_iterations=N), or --rounds '{}=N', which ends it as that does",
            body.name
        ))
        .into()
}

/// Whether the body of a loop returns each of its arguments unchanged.
fn invariant_arguments(body: &Function) -> Vec<bool> {
    let origin = |mut e: Endpoint| {
        for _ in 0..body.graph.nodes.len() {
            let node = &body.graph.nodes[e.node];
            match node.inputs.get(e.port as usize) {
                Some(&next) if ops::forwards_inputs(&node.op) => e = next,
                _ => break,
            }
        }
        e
    };
    body.args.iter().zip(&body.rets).map(|(&node, &ret)| origin(ret) == Endpoint { node, port: 0 }).collect()
}
