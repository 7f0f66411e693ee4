//! Loops and branches between kernels.
use super::{Emitter, ValueBuffers};
use crate::diag::Result;
use crate::hlo::{CompId, InstId};
use crate::kernel::Step;
use crate::schedule::plan::{ParameterOwnership, loop_state, trip_count};
use crate::schedule::unsupported_error;

impl<'a> Emitter<'a> {
    /// Emits a loop. Its state has buffers of its own; next values that an iteration could not write in place are copied at its end.
    pub(in crate::schedule) fn emit_while_loop(
        &mut self,
        id: InstId,
        cond: CompId,
        body: CompId,
    ) -> Result<ValueBuffers> {
        let init = self.value_buffers(self.scope.comp[id].operands[0])?;
        let kept = loop_state::invariant_elements(&self.module.comps[body]);
        // What no round changes is read where it is; memory that nothing reads behind the loop becomes the loop's.
        let mut state = init.clone();
        for i in 0..init.leaves.len() {
            let from = init.leaves[i];
            let taken =
                (0..init.leaves.len()).any(|j| init.leaves[j] == from && j != i && (j < i || kept.contains(&j)));
            if !kept.contains(&i) && (taken || !self.is_last_use(from, id)) {
                state.leaves[i] = self.allocate_copy(from);
            }
        }
        let (pred, cond) =
            self.take_emitted_steps(|s| s.emit_computation(cond, vec![state.clone()], ParameterOwnership::Borrowed))?;
        let pred = *pred.leaves.first().ok_or_else(|| unsupported_error(self.scope.comp, id, ""))?;
        let ((), body) = self.take_emitted_steps(|s| {
            let next = s.emit_computation(body, vec![state.clone()], ParameterOwnership::Owned)?;
            s.copy_buffers(&next.leaves, &state.leaves);
            Ok(())
        })?;
        let most_rounds = trip_count::max_trip_count(self.module, self.scope.comp, id);
        self.steps.push(Step::While { cond, pred, body, most_rounds });
        Ok(state)
    }

    /// Emits a conditional; each branch leaves its result in the same buffers.
    pub(in crate::schedule) fn emit_conditional(&mut self, id: InstId, branches: &[CompId]) -> Result<ValueBuffers> {
        let operands = self.scope.comp[id].operands.clone();
        let selector = self.value_buffers(operands[0])?;
        let selector = *selector.leaves.first().ok_or_else(|| unsupported_error(self.scope.comp, id, ""))?;
        let out = self.allocate(&self.scope.comp[id].shape);
        let mut all = Vec::new();
        for (i, &branch) in branches.iter().enumerate() {
            let arg = self.value_buffers(operands[i + 1])?;
            let ((), steps) = self.take_emitted_steps(|s| {
                let result = s.emit_computation(branch, vec![arg], ParameterOwnership::Borrowed)?;
                result.leaves.iter().zip(&out.leaves).for_each(|(&from, &to)| s.emit_copy(from, to));
                Ok(())
            })?;
            all.push(steps);
        }
        self.steps.push(Step::Branch { selector, branches: all });
        Ok(out)
    }
}
