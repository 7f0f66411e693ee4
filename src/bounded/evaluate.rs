//! Evaluates a function for exactly the sizes of a call, without padding.
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{Asked, Claim, Literal};
use crate::interp;
use crate::lower::{Exact, Lowered};
use crate::tensor::Tensor;

/// The parts of the root of a function for the sizes that the caller says: results, then variables that change. `args` are the arguments
/// of these sizes, then the variables.
///
/// Sizes that values say are found one after another: each needs no more than those before it.
///
/// # Errors
/// Those of lowering and of the interpreter; `Code::BadInputs` where a size that the data ask for is beyond its bound.
pub fn evaluate(exact: &Exact, given: &[u64], args: &[Tensor]) -> Result<(Lowered, Vec<Tensor>)> {
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let mut sizes = given.to_vec();
    loop {
        let lowered = (exact.0)(&sizes)?;
        let root = interp::evaluate(&lowered.module, lowered.module.entry, &literals)?;
        let mut parts: Vec<Tensor> = root.leaves().into_iter().cloned().collect();
        let counts = parts.split_off(parts.len().saturating_sub(lowered.found.len()));
        let count = |t: &Tensor| t.to_i64s().and_then(|v| v.first().copied()).and_then(|n| u64::try_from(n).ok());
        let wrong = lowered.found.iter().zip(&counts).position(|(f, t)| count(t) != Some(f.0));
        let Some(wrong) = wrong else {
            let asked = parts.split_off(parts.len().saturating_sub(lowered.claims.len()));
            return held(&lowered.claims, &asked).map(|()| (lowered, parts));
        };
        let known = sizes.len() - given.len();
        let size = count(&counts[wrong]).filter(|_| wrong >= known);
        let size = size.ok_or_else(|| Error::internal("interpreter", "a size depends on itself"))?;
        sizes.extend(lowered.found[known..wrong].iter().map(|f| f.0));
        sizes.push(size);
    }
}

/// Refuses a call that asks for more than there is room for; `asked` is what it asks for at each of `claims`.
fn held(claims: &[Claim], asked: &[Tensor]) -> Result<()> {
    let value = |t: &Tensor| t.get_i64(0).and_then(|n| u64::try_from(n).ok());
    let beyond = claims.iter().zip(asked).find(|(claim, asked)| value(asked).is_none_or(|n| n > claim.most));
    let Some((Claim { node, asks, most, .. }, _)) = beyond else { return Ok(()) };
    let told = match asks {
        Asked::Size => {
            format!("the data ask for another size at `{node}` than one from 0 to {most}, or than other shapes ask for")
        }
        Asked::Rounds => format!("the loop `{node}` takes more rounds than the {most} that its lists have room for"),
    };
    Err(Diagnostic::new(Code::BadInputs, told).help(format!("give it more room: --bound '{node}=N'")).into())
}
