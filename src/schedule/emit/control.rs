//! Loops and branches between kernels.
use super::{Emitter, Scope, Value};
use crate::diag::Result;
use crate::hlo::{CompId, InstId};
use crate::kernel::Step;
use crate::schedule::plan::{Params, states};
use crate::schedule::refuse;

impl<'a> Emitter<'a> {
    /// State lives in buffers of its own; what a round could not write there is copied at its end.
    pub(super) fn while_loop(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        cond: CompId,
        body: CompId,
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let init = self.value(scope, scope.comp[id].operands[0])?;
        let kept = states::kept(&self.module.comps[body]);
        // What no round changes is read where it is; memory that nothing reads behind the loop becomes the loop's.
        let mut state = init.clone();
        for i in 0..init.leaves.len() {
            let from = init.leaves[i];
            let taken =
                (0..init.leaves.len()).any(|j| init.leaves[j] == from && j != i && (j < i || kept.contains(&j)));
            if !kept.contains(&i) && (taken || !self.dies(scope, from, id)) {
                let (dtype, elements) = (self.program.buffers[from].dtype, self.program.buffers[from].elements);
                state.leaves[i] = self.buffer(dtype, elements);
                self.copy(from, state.leaves[i], steps);
            }
        }
        let mut cond_steps = Vec::new();
        let pred = self.computation(cond, vec![state.clone()], Params::Borrowed, &mut cond_steps)?;
        let pred = *pred.leaves.first().ok_or_else(|| refuse(scope.comp, id, ""))?;
        let mut body_steps = Vec::new();
        let next = self.computation(body, vec![state.clone()], Params::Owned, &mut body_steps)?;
        self.move_all(&next.leaves, &state.leaves, &mut body_steps);
        steps.push(Step::While { cond: cond_steps, pred, body: body_steps });
        Ok(state)
    }

    /// Each branch leaves its result in the same buffers.
    pub(super) fn conditional(
        &mut self,
        scope: &mut Scope<'a>,
        id: InstId,
        branches: &[CompId],
        steps: &mut Vec<Step>,
    ) -> Result<Value> {
        let operands = scope.comp[id].operands.clone();
        let selector = self.value(scope, operands[0])?;
        let selector = *selector.leaves.first().ok_or_else(|| refuse(scope.comp, id, ""))?;
        let out = self.fresh(&scope.comp[id].shape);
        let mut all = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            let arg = self.value(scope, operands[i + 1])?;
            let mut branch_steps = Vec::new();
            let result = self.computation(branch, vec![arg], Params::Borrowed, &mut branch_steps)?;
            for (&from, &to) in result.leaves.iter().zip(&out.leaves) {
                self.copy(from, to, &mut branch_steps);
            }
            all.push(branch_steps);
        }
        steps.push(Step::Branch { selector, branches: all });
        Ok(out)
    }
}
