//! Evaluation of `while` and `conditional`.
use super::machine::Machine;
use super::operands::{Operands, invalid_hlo};
use crate::diag::Result;
use crate::hlo::{CompId, Literal};
use crate::tensor::DType;

/// Runs `body` on the state while `cond` returns true.
pub(super) fn run_while(m: &Machine, init: &Literal, cond: CompId, body: CompId) -> Result<Literal> {
    let mut state = [init.clone()];
    loop {
        m.charge_work(16)?;
        m.charge_iteration(cond, body)?;
        match m.call(cond, &state)? {
            Literal::Array(t) if t.len() == 1 && t.dtype == DType::Pred => {
                if t.bytes[0] == 0 {
                    let [state] = state;
                    return Ok(state);
                }
            }
            _ => return Err(invalid_hlo("the condition of a loop must be one pred")),
        }
        state = [m.call(body, &state)?];
    }
}

/// Runs the selected branch; an index out of range selects the last one.
pub(super) fn conditional(m: &Machine, operands: Operands, branches: &[CompId]) -> Result<Literal> {
    let selector = operands.array(0)?;
    let index = operands.integer(0)?;
    let index = if selector.dtype == DType::Pred { i64::from(index == 0) } else { index };
    let last = branches.len().checked_sub(1).ok_or_else(|| invalid_hlo("a conditional without branches"))?;
    let index = usize::try_from(index).unwrap_or(last).min(last);
    m.call(branches[index], &[operands.get(1 + index)?.clone()])
}
