//! `While` as one HLO loop over a tuple.
use super::check_hoisting;
use super::holders::CapturedState;
use super::rounds::Border;
use super::walker::{Slot, Walker};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, FuncRef, Function};
use crate::hlo::open::{Claim, ClaimQuantity, CompId, Dim, InstId, Op, Shape};
use crate::interp;
use crate::ops::range::Range;
use crate::ops::spec::{JaggedSpec, ListSpec, ValueSpec};
use crate::ops::value::{JaggedList, ListValue};
use crate::ops::{self, Value, list};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::slice;

/// Shapes and room that do not settle in so many rounds never do.
const MOST_ROUNDS: usize = 64;

/// A loop while it is lowered.
struct Loop<'a> {
    cond: &'a FuncRef,
    body: &'a FuncRef,
    /// Variables, TensorArrays and stacks that go through the loop beside its own variables.
    reached: CapturedState,
    /// Initial values of the loop's variables, and behind them those of what is `reached`.
    init: Vec<Value>,
    /// Flags of the values in `init` that the body returns unchanged.
    fixed: Vec<bool>,
    /// How those that are lists grow.
    growth: Vec<Growth>,
    /// The specs of those of which rounds leave others than the loop begins with.
    wider: Vec<Option<ValueSpec>>,
    /// How many rounds lists have room for where nothing tells how many there are; a call that takes more fails.
    allowed: Option<Dim>,
}

/// Bound on the rounds and run-time checks of a loop, for which it carries values behind its state.
struct Beside {
    /// After how many rounds the loop ends at the latest, where a counter is there to end it.
    most: Option<Dim>,
    /// Run-time checks of the body: the loop carries the largest value of all rounds.
    asked: Vec<Claim>,
    /// Whether the condition has run-time checks.
    is_checked: bool,
}

impl Beside {
    /// The specs of the state and of what is behind it.
    fn specs(&self, border: &Border) -> Vec<ValueSpec> {
        let counter = self.most.map(|_| ValueSpec::Array(Shape::array(DType::S64, Vec::new())));
        border.specs.iter().cloned().chain(counter).chain(check_hoisting::specs(self.asked.len())).collect()
    }

    /// Ranges of the parts of the state, and none of what is behind it.
    fn ranges(&self, of_state: &[Option<Range>]) -> Vec<Option<Range>> {
        let behind = usize::from(self.most.is_some()) + self.asked.len();
        [of_state, &vec![None; behind]].concat()
    }
}

/// How a list grows from round to round.
#[derive(Clone, Copy)]
enum Growth {
    /// Not at all, as far as was seen.
    None,
    /// To a number of elements that does not depend on the rounds; it had at most `from` before the loop.
    Once { from: Dim },
    /// By a number of elements in each round: it has at most `behind` after the last.
    Each { behind: Dim },
}

/// The condition of a loop.
struct Condition {
    comp: CompId,
    /// Whether it has run-time checks.
    is_checked: bool,
}

impl Walker<'_> {
    /// The final values of a loop's variables.
    ///
    /// Variables that the body returns as they are and whose first value is a constant are no state: they are constants in
    /// the condition and the body. Lists of open element shape take the shape that the body gives them, and lists that grow get room
    /// for all rounds: for those that are `allowed` where nothing else tells how many there are.
    pub(super) fn one_loop(
        &mut self,
        cond: &FuncRef,
        body: &FuncRef,
        args: Vec<Value>,
        allowed: Option<Dim>,
    ) -> Result<Vec<Slot>> {
        let (c, f) = (self.function(&cond.name)?, self.function(&body.name)?);
        let n = args.len();
        if c.args.len() != n || c.rets.len() != 1 || f.args.len() != n || f.rets.len() != n {
            return Err(Error::user(
                Code::BadFunction,
                format!("the condition or body of a loop over {n} variables has another signature"),
            ));
        }
        let reached = self.reach(&[cond, body], &args)?;
        if self.accesses.function(self.program, &cond.name).acts() {
            let told = format!("the condition `{}` of a loop changes a variable or draws random numbers", cond.name);
            return Err(Error::user(Code::UnsupportedCase, told));
        }
        let init = [args, self.handed(&reached)?].concat();
        let mut fixed = invariant(f);
        fixed.extend(reached.variables.variables.iter().map(|v| !v.1));
        fixed.resize(init.len(), !reached.changed);
        let (growth, wider) = (vec![Growth::None; init.len()], vec![None; init.len()]);
        let mut this = Loop { cond, body, reached, init, fixed, growth, wider, allowed };
        let Some(border) = self.settle(&mut this)? else { return Ok(vec![None; n]) };
        let Some(mut out) = self.emit_loop(&this, &border)? else { return Ok(vec![None; n]) };
        for (value, growth) in out.iter_mut().zip(&this.growth) {
            self.leave_list(value, *growth);
        }
        let after = out.split_off(n);
        self.take_back(&this.reached, &after)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// Gives lists the shapes and the room that they have in the loop; `None` where a diagnostic says why there is no loop.
    fn settle(&mut self, this: &mut Loop) -> Result<Option<Border>> {
        for _ in 0..MOST_ROUNDS {
            let mut border = self.border(&this.init, &this.wider, |i| this.fixed[i]);
            let rounds = if self.resizes {
                self.most_rounds(this.cond, this.body, &this.init, &mut border, &this.reached, this.allowed)?
            } else {
                None
            };
            let open = |(i, spec): (usize, &ValueSpec)| match spec {
                ValueSpec::List(_) => !this.fixed[i] && self.resizes,
                spec => !this.fixed[i] && spec.is_joinable(),
            };
            let open: Vec<bool> = border.specs.iter().enumerate().map(open).collect();
            if !open.contains(&true) {
                return Ok(Some(border));
            }
            let values = self.enter("probe", &border.specs, &border.inside);
            let Some(after) = self.probe_for(&border.specs, this, &values)? else { return Ok(None) };
            let mut changed = false;
            for i in (0..open.len()).filter(|&i| open[i]) {
                changed |= self.settle_value(this, i, &border.specs[i], &after[i], rounds)?;
            }
            if !changed {
                return Ok(Some(border));
            }
        }
        let told = format!("what the loop `{}` holds grows from round to round", this.body.name);
        Err(Error::user(Code::DynamicShape, told))
    }

    /// The specs that a round leaves; where it fills a list with rows that differ in length, those of the longest.
    fn probe_for(&mut self, before: &[ValueSpec], this: &Loop, values: &[Value]) -> Result<Option<Vec<ValueSpec>>> {
        let has_rows = before.iter().any(|spec| matches!(spec, ValueSpec::Unlike(list) if list.is_unset()));
        let outer = self.b.take_most(None);
        self.b.take_most(outer.or(has_rows.then(|| self.b.data_sizes().len())));
        let after = self.probe(this.body, values, &this.reached);
        self.b.take_most(outer);
        after
    }

    /// Makes a list or optional of the state what a round needs it to be, given its specs before and after the round; whether it had to
    /// change.
    fn settle_value(
        &mut self,
        this: &mut Loop,
        i: usize,
        before: &ValueSpec,
        after: &ValueSpec,
        rounds: Option<Dim>,
    ) -> Result<bool> {
        match before.joined(after) {
            None => Ok(false),
            Some(ValueSpec::List(want)) => {
                let Value::List(list) = list::with_shape(&mut self.b, this.init[i].clone(), want.dims.get(1..))? else {
                    return Ok(false);
                };
                let before = if let ValueSpec::List(before) = before { slice::from_ref(before) } else { &[] };
                let mut lists = vec![list];
                let changed = self.settle_lists(this, i, &mut lists, before, slice::from_ref(&want), rounds)?;
                this.init[i] = lists.pop().map_or_else(|| this.init[i].clone(), Value::List);
                Ok(changed)
            }
            Some(ValueSpec::Structured(want)) => {
                let own = match self.spec(&this.init[i]) {
                    ValueSpec::Structured(own) => Some(own.with_element(&want.element)),
                    ValueSpec::Unlike(own) => own.structured(Some(&want.element)),
                    _ => None,
                };
                let Some(own) = own else { return Ok(false) };
                let cast = self.cast(&this.init[i], &ValueSpec::Structured(own), "a list")?;
                let Value::Structured(mut list) = cast else { return Ok(false) };
                let before = match before {
                    ValueSpec::Structured(before) if before.element == want.element => &before.parts[..],
                    _ => &[],
                };
                let changed = self.settle_lists(this, i, &mut list.parts, before, &want.parts, rounds)?;
                this.init[i] = Value::Structured(list);
                Ok(changed)
            }
            Some(ValueSpec::Jagged(JaggedSpec { dtype, dims, name })) => {
                this.init[i] = Value::Jagged(JaggedList::empty(&mut self.b, dtype, &dims, &name));
                Ok(true)
            }
            Some(want) => {
                let changed = want != *before;
                this.wider[i] = Some(want);
                Ok(changed)
            }
        }
    }

    /// Gives lists of one length that are a variable of the state the room that rounds need; `before` is empty where they were others
    /// before the round.
    fn settle_lists(
        &mut self,
        this: &mut Loop,
        i: usize,
        lists: &mut [ListValue],
        before: &[ListSpec],
        want: &[ListSpec],
        rounds: Option<Dim>,
    ) -> Result<bool> {
        let (mut growth, mut changed) = (this.growth[i], false);
        for (at, (list, want)) in lists.iter_mut().zip(want).enumerate() {
            let least = list.most(&self.b);
            let most = this.growth[i].next(least, want.most(), rounds);
            let most = most.filter(|most| most.behind <= list.room(&self.b) || list.may_hold(&self.b, most.behind));
            let most = most.ok_or_else(|| unbounded(&list.name, this.body))?;
            changed |= !before.get(at).is_some_and(|before| {
                before.count.is_some() == want.count.is_some()
                    && before.dims == want.dims
                    && before.count.map(|c| c.1) == want.count.map(|c| c.1)
                    && before.elements == want.elements
            });
            list.elements = want.elements.clone();
            let Some((_, stale)) = want.count else { continue };
            let room = want.room().max(most.behind);
            changed |= list.room(&self.b) < room || least < most.before;
            *list = list.counted(&mut self.b, room)?;
            if let Some(count) = &mut list.count {
                (count.most, count.stale) = (most.before, count.stale || stale);
            }
            growth = most.growth;
        }
        this.growth[i] = growth;
        Ok(changed)
    }

    /// Says of a list behind a loop what is known of its length.
    fn leave_list(&mut self, value: &mut Value, growth: Growth) {
        match value {
            Value::List(list) => self.leave_counted(list, growth),
            Value::Structured(list) => list.parts.iter_mut().for_each(|part| self.leave_counted(part, growth)),
            _ => {}
        }
    }

    fn leave_counted(&mut self, list: &mut ListValue, growth: Growth) {
        let Some(count) = &mut list.count else { return };
        if let Growth::Each { behind } = growth {
            count.most = behind;
        }
        let known = interp::known_through_loops(&self.b, count.now).and_then(|t| t.get_i64(0));
        let Some(n) = known.and_then(|n| i32::try_from(n).ok()) else { return };
        count.now = self.b.constant(Tensor::scalar(n));
        count.most = Dim::size(n).map_or(count.most, |n| n.min(count.most));
        if Dim::size(n) == Ok(list.room(&self.b)) {
            list.count = None;
        }
    }

    /// Where the user says how many rounds there are at most, a counter goes behind the state, which ends the loop as TensorFlow's
    /// `maximum_iterations` does; so it does where that many are allowed, and a call that would go on then fails.
    fn emit_loop(&mut self, this: &Loop, border: &Border) -> Result<Option<Vec<Value>>> {
        let mut beside =
            Beside { most: self.rounds_told(this.body).or(this.allowed), asked: Vec::new(), is_checked: false };
        let Some((cond, body)) = self.computations(this, border, &mut beside)? else { return Ok(None) };
        let mut init = this.init.clone();
        init.extend(beside.most.map(|_| Value::Array(self.b.constant(Tensor::scalar(0i64)))));
        init.extend(self.nothing_asked(beside.asked.len()));
        let specs = beside.specs(border);
        let state = self.pack(&init, &specs, "loop variable")?;
        let end = self.b.add_inst(Op::While { cond, body }, &[state]);
        let mut values = self.unpack(end, &specs);
        let mut behind = values.split_off(border.specs.len());
        self.carry_out(&beside.asked, &behind.split_off(usize::from(beside.most.is_some())));
        if beside.is_checked {
            self.call_with(this.cond, &values, &this.reached)?;
        }
        if let (Some(most), Some(Value::Array(rounds))) = (this.allowed, behind.first()) {
            self.claim_rounds(this, &values, *rounds, most)?;
        }
        Ok(Some(values))
    }

    /// The condition and the body; what the body asks for goes beside the state. `None` where a diagnostic says why there is no loop.
    fn computations(&mut self, this: &Loop, border: &Border, beside: &mut Beside) -> Result<Option<(CompId, CompId)>> {
        let mark = self.b.mark();
        let cond = self.condition(this, border, beside)?;
        let checks = cond.as_ref().is_some_and(|c| c.is_checked);
        let cond = cond.map(|c| c.comp);
        let specs = beside.specs(border);
        let mut values = self.enter(&this.body.name, &specs, &beside.ranges(&border.inside));
        let mut behind = values.split_off(border.specs.len());
        let after = self.carrying(|w| {
            // what the condition checks, of the values of which it was true
            if checks {
                w.call_with(this.cond, &values, &this.reached)?;
            }
            w.call_with(this.body, &values, &this.reached)
        })?;
        beside.is_checked = checks;
        let (Some(cond), Some(mut after)) = (cond, after) else { return Ok(None) };
        if self.b.claims().len() > beside.asked.len() {
            beside.asked = self.b.claims().to_vec();
            self.b.return_to(&mark);
            return self.computations(this, border, beside);
        }
        let asked = behind.split_off(usize::from(beside.most.is_some()));
        if let Some(Value::Array(count)) = behind.pop() {
            let one = self.b.constant(Tensor::scalar(1i64));
            after.push(Value::Array(self.b.add(count, one)));
        }
        after.extend(self.most_asked(&asked));
        let root = self.pack(&after, &specs, "loop variable")?;
        Ok(Some((cond, self.b.end(root))))
    }

    fn condition(&mut self, this: &Loop, border: &Border, beside: &Beside) -> Result<Option<Condition>> {
        let mut values = self.enter(&this.cond.name, &beside.specs(border), &beside.ranges(&border.ranges));
        let behind = values.split_off(border.specs.len());
        let test = self.carrying(|w| w.call_with(this.cond, &values, &this.reached))?;
        let Some(test) = test.as_ref().and_then(|results| results.first()) else {
            self.b.abandon();
            return Ok(None);
        };
        // a call can't fail by what a condition finds; its checks are made in the body and behind the loop
        let is_check = |claim: &Claim| matches!(claim.quantity, ClaimQuantity::Check(_));
        let is_checked = self.b.claims().iter().any(is_check);
        if let Some(claim) = self.b.claims().iter().find(|claim| !is_check(claim)) {
            let told = format!(
                "how large what `{}` makes is depends on values, which the condition of a loop can't bound",
                claim.node
            );
            return Err(Error::user(Code::DynamicShape, told));
        }
        let mut root = self.truth(test)?;
        if let (Some(most), Some(Value::Array(count))) = (beside.most, behind.first()) {
            let most = self.b.constant(Tensor::scalar(most.pinned()));
            let more = self.b.compare(Direction::Lt, *count, most);
            root = self.b.binary(ScalarOp::And, root, more);
        }
        let of_body = beside.asked.iter().zip(behind.get(usize::from(beside.most.is_some())..).unwrap_or_default());
        let of_body = of_body.filter(|(claim, _)| is_check(claim)).filter_map(|(_, value)| match value {
            Value::Array(value) => Some(*value),
            _ => None,
        });
        let failed: Vec<InstId> = self.b.claims().iter().map(|claim| claim.value).chain(of_body).collect();
        for failed in failed {
            root = self.unless(root, failed);
        }
        Ok(Some(Condition { comp: self.b.end(root), is_checked }))
    }

    /// Whether `goes_on` is true and a check, whose value is 1 where it fails, holds: a loop ends with the round in which a check fails,
    /// since nothing tells how long it would go on with what it computed.
    fn unless(&mut self, goes_on: InstId, failed: InstId) -> InstId {
        let none = self.b.full_like(failed, 0.0);
        let holds = self.b.compare(Direction::Eq, failed, none);
        self.b.binary(ScalarOp::And, goes_on, holds)
    }

    /// Lets calls fail in which a loop, ended after `most` rounds at the latest, would go on from these values.
    fn claim_rounds(&mut self, this: &Loop, values: &[Value], rounds: InstId, most: Dim) -> Result<()> {
        let test = self.call_with(this.cond, values, &this.reached)?;
        let Some(test) = test.as_ref().and_then(|results| results.first()) else { return Ok(()) };
        let goes_on = self.truth(test)?;
        let more = self.b.convert(goes_on, DType::S64);
        let asked = self.b.add(rounds, more);
        let (node, value) = (self.b.metadata.op_name.clone(), self.b.convert(asked, DType::S32));
        self.b.claim_up_to(most, Claim { node, quantity: ClaimQuantity::Rounds, value, most: 0, is_allowed: true });
        Ok(())
    }
}

/// The most elements of a list in a loop.
struct Most {
    growth: Growth,
    before: Dim,
    behind: Dim,
}

impl Growth {
    /// How a list grows that has at most `before` elements when a round begins and `after` when it ends; `None` where no bound follows.
    ///
    /// What is set at an index grows to the largest index, what is pushed by as much in each round. Which of the two it is shows in the next
    /// round.
    fn next(self, before: Dim, after: Dim, rounds: Option<Dim>) -> Option<Most> {
        let stays = |growth, behind| Some(Most { growth, before, behind });
        let each = |from: Dim, growth: Dim| {
            let before = growth.checked_mul(rounds?.max(1) - 1)?.checked_add(from)?;
            let behind = before.checked_add(growth)?;
            Some(Most { growth: Growth::Each { behind }, before, behind })
        };
        match self {
            Growth::Each { behind } if after <= behind => stays(self, behind),
            Growth::Each { .. } => None,
            _ if after <= before => stays(self, before),
            Growth::None if after == before + 1 && rounds.is_some() => each(before, Dim::from(1)),
            Growth::None => Some(Most { growth: Growth::Once { from: before }, before: after, behind: after }),
            Growth::Once { from } => each(from, after - before),
        }
    }
}

/// Error for a list that grows in a loop whose number of rounds has no known bound.
fn unbounded(list: &str, body: &FuncRef) -> Error {
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

/// For each argument of a loop body, whether the body returns it as it is.
fn invariant(body: &Function) -> Vec<bool> {
    let origin = |mut e: Endpoint| {
        for _ in 0..body.graph.nodes.len() {
            let node = &body.graph.nodes[e.node];
            match node.inputs.get(e.port as usize) {
                Some(&next) if ops::forwards(&node.op) => e = next,
                _ => break,
            }
        }
        e
    };
    body.args.iter().zip(&body.rets).map(|(&node, &ret)| origin(ret) == Endpoint { node, port: 0 }).collect()
}
