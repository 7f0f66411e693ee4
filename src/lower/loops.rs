//! `While` as one HLO loop over a tuple.
use super::flat::Form;
use super::holders::Reached;
use super::rounds::Border;
use super::walker::{Slot, Walker};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, FuncRef, Function};
use crate::hlo::Op;
use crate::ops::holder::HolderKind;
use crate::ops::{Value, list};

/// Shapes and room that do not settle in so many rounds never do.
const MOST_ROUNDS: usize = 64;

/// A loop while it is lowered.
struct Loop<'a> {
    cond: &'a FuncRef,
    body: &'a FuncRef,
    /// What goes with its variables.
    reached: Reached,
    /// What its variables are before it, and behind them what goes with them.
    init: Vec<Value>,
    /// Which of these the body returns as they are.
    fixed: Vec<bool>,
    /// The most elements of each stack: when a round begins, and behind the loop; `None` while the stack was not seen to grow.
    most: Vec<Option<(u64, u64)>>,
}

impl Walker<'_> {
    /// The final values of a loop's variables.
    ///
    /// Variables that the body returns as they are and whose first value is a constant are no state: they are constants in
    /// the condition and the body. Lists of open element shape take the shape that the body gives them, and stacks get room for what
    /// all rounds push.
    pub(super) fn while_loop(&mut self, cond: &FuncRef, body: &FuncRef, args: Vec<Value>) -> Result<Vec<Slot>> {
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
        let most = vec![None; reached.holders.len()];
        let mut this = Loop { cond, body, reached, init, fixed, most };
        let Some(border) = self.settle(&mut this)? else { return Ok(vec![None; n]) };
        let Some(mut out) = self.emit_loop(&this, &border)? else { return Ok(vec![None; n]) };
        let after = out.split_off(n);
        self.take_back(&this.reached, &after)?;
        self.set_bounds(&this, |(_, behind)| behind)?;
        Ok(out.into_iter().map(Some).collect())
    }

    /// Sets the most elements of the stacks that grow.
    fn set_bounds(&mut self, this: &Loop, which: fn((u64, u64)) -> u64) -> Result<()> {
        for (&id, most) in this.reached.holders.iter().zip(&this.most) {
            if let Some(most) = most {
                self.set_most(&[id], &[which(*most)])?;
            }
        }
        Ok(())
    }

    /// Gives lists the shapes and stacks the room that they have in the loop; `None` where a diagnostic says why there is no loop.
    fn settle(&mut self, this: &mut Loop) -> Result<Option<Border>> {
        let held = this.init.len() - self.contents(&this.reached.holders)?.len();
        for _ in 0..MOST_ROUNDS {
            let border = self.border(&this.init, |i| this.fixed[i]);
            let unshaped = border.forms.iter().zip(&this.fixed);
            let open: Vec<bool> = unshaped.map(|(f, fixed)| !fixed && matches!(f, Form::Unshaped(..))).collect();
            if !this.reached.changed && !open.contains(&true) {
                return Ok(Some(border));
            }
            self.set_bounds(this, |(before, _)| before)?;
            let Some((after, most)) = self.probe(this.body, &border, &this.reached)? else { return Ok(None) };
            let mut changed = self.make_room(this, held, &border, &most)?;
            for i in (0..open.len()).filter(|&i| open[i] || i >= held && !this.fixed[i]) {
                changed |= self.take_shape(&mut this.init[i], &after[i])?;
            }
            if !changed {
                return Ok(Some(border));
            }
        }
        let told = format!("what the loop `{}` holds grows from round to round", this.body.name);
        Err(Error::user(Code::DynamicShape, told))
    }

    /// Gives stacks that grow in each round, to have `most` elements behind the first, room for all rounds; whether any got more. What
    /// they hold begins at place `held` of the state.
    fn make_room(&mut self, this: &mut Loop, held: usize, border: &Border, most: &[u64]) -> Result<bool> {
        let (mut changed, mut place) = (false, held);
        let before = self.most(&this.reached.holders)?;
        for i in 0..this.most.len() {
            let holder = self.holders.get(this.reached.holders[i])?;
            let (name, stack) = (holder.name.clone(), matches!(holder.kind, HolderKind::Stack { .. }));
            if stack && most[i] > before[i] && this.most[i].is_none() {
                let rounds = self.most_rounds((this.cond, this.body), &this.init, border, &this.reached)?;
                let rounds = rounds.ok_or_else(|| unbounded(&name, &this.body.name))?;
                let growth = most[i] - before[i];
                let last = growth.checked_mul(rounds).and_then(|n| n.checked_add(before[i]));
                let last =
                    last.ok_or_else(|| Error::user(Code::TooLarge, format!("the stack `{name}` is too large")))?;
                this.init[place] = list::with_room(&mut self.b, &this.init[place], last.max(growth))?;
                this.most[i] = Some((last.max(growth) - growth, last));
                changed = true;
            }
            place += if stack { 2 } else { 1 };
        }
        Ok(changed)
    }

    fn emit_loop(&mut self, this: &Loop, border: &Border) -> Result<Option<Vec<Value>>> {
        self.set_bounds(this, |(before, _)| before)?;
        let values = self.enter(&this.cond.name, border);
        let test = self.call_with(this.cond, &values, &this.reached)?;
        let cond_comp = match test.as_ref().and_then(|(results, _)| results.first()) {
            Some(test) => {
                let root = self.truth(test)?;
                Some(self.b.end(root))
            }
            _ => {
                self.b.abandon();
                None
            }
        };
        let values = self.enter(&this.body.name, border);
        let after = self.call_with(this.body, &values, &this.reached)?;
        let (Some(cond), Some((after, _))) = (cond_comp, after) else { return Ok(None) };
        let root = self.pack(&after, &border.forms, "loop variable")?;
        let body = self.b.end(root);
        let state = self.pack(&this.init, &border.forms, "loop variable")?;
        let end = self.b.add_inst(Op::While { cond, body }, &[state]);
        Ok(Some(self.unpack(end, &border.forms)))
    }
}

/// That nothing tells how many elements a stack gets.
fn unbounded(stack: &str, body: &str) -> Error {
    let told = format!(
        "the stack `{stack}` grows in each round of the loop `{body}`, and how many rounds there are is not known"
    );
    Diagnostic::new(Code::DynamicShape, told)
        .note("the gradient of a loop keeps values of every round, and compiled code has fixed sizes")
        .help("give the loop a largest number of rounds: tf.while_loop(..., maximum_iterations=N)")
        .into()
}

/// For each argument of a loop body, whether the body returns it as it is.
fn invariant(body: &Function) -> Vec<bool> {
    let origin = |mut e: Endpoint| {
        for _ in 0..body.graph.nodes.len() {
            let node = &body.graph.nodes[e.node];
            let next = match &*node.op {
                "Identity" | "StopGradient" | "PreventGradient" | "Snapshot" => node.inputs.first(),
                "IdentityN" => node.inputs.get(e.port as usize),
                _ => None,
            };
            match next {
                Some(&next) => e = next,
                None => break,
            }
        }
        e
    };
    body.args.iter().zip(&body.rets).map(|(&node, &ret)| origin(ret) == Endpoint { node, port: 0 }).collect()
}
