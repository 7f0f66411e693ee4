//! Masks of the elements of a padded array that lie within its actual sizes, as instructions.
use crate::bounded::extent::Extent;
use crate::hlo::attrs::PadDim;
use crate::hlo::{Builder, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Factor;
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// The sizes of a call inside of one computation, and what follows from them: `s32[]` each.
#[derive(Debug, Default)]
pub struct SizeScalars {
    /// The sizes; `None`: not known yet.
    pub sizes: Vec<Option<InstId>>,
    made: HashMap<Extent, InstId>,
}

impl SizeScalars {
    /// A scope with these sizes.
    pub fn of(sizes: Vec<Option<InstId>>) -> SizeScalars {
        SizeScalars { sizes, made: HashMap::new() }
    }

    /// The value of `extent`; `None` where a size is not known yet, or a constant leaves 32 bits.
    pub fn value(&mut self, b: &mut Builder, extent: &Extent) -> Option<InstId> {
        if let Some(&made) = self.made.get(extent) {
            return Some(made);
        }
        let mut sum: Option<InstId> = None;
        for (factors, times) in extent.terms() {
            let term = self.term(b, factors, times)?;
            sum = Some(sum.map_or(term, |s| b.add(s, term)));
        }
        let value = match sum {
            Some(value) => value,
            None => integer(b, 0)?,
        };
        self.made.insert(extent.clone(), value);
        Some(value)
    }

    /// The product of factors and a constant.
    fn term(&mut self, b: &mut Builder, factors: &[Factor<usize>], times: i64) -> Option<InstId> {
        let mut term = None;
        let mut times = times;
        for factor in factors {
            let factor = match factor {
                Factor::Var(size) => (*self.sizes.get(*size)?)?,
                Factor::Quotient(of, by) => {
                    let (of, by) = (self.value(b, of)?, self.value(b, by)?);
                    divided(b, of, by)
                }
                Factor::Whole(whole) => self.value(b, whole.expr())?,
                // a negative maximum is a minimum
                Factor::Max(all) if times < 0 => {
                    times = times.checked_neg()?;
                    let all: Option<Vec<Extent>> = all.iter().map(|e| e.scale(-1)).collect();
                    self.folded(b, &all?, Builder::min)?
                }
                Factor::Max(all) => self.folded(b, all, Builder::max)?,
            };
            term = Some(term.map_or(factor, |t| b.mul(t, factor)));
        }
        match (term, times) {
            (Some(term), 1) => Some(term),
            (Some(term), times) => {
                let times = integer(b, times)?;
                Some(b.mul(term, times))
            }
            (None, constant) => integer(b, constant),
        }
    }

    /// The values of several extents, folded.
    fn folded(
        &mut self,
        b: &mut Builder,
        all: &[Extent],
        fold: fn(&mut Builder, InstId, InstId) -> InstId,
    ) -> Option<InstId> {
        let mut values = Vec::with_capacity(all.len());
        for extent in all {
            values.push(self.value(b, extent)?);
        }
        values.into_iter().reduce(|x, y| fold(b, x, y))
    }
}

/// `⌊value / by⌋` of a positive `by`.
fn divided(b: &mut Builder, value: InstId, by: InstId) -> InstId {
    let quotient = b.div(value, by);
    // division rounds toward 0
    let back = b.mul(quotient, by);
    let above = b.compare(Direction::Gt, back, value);
    let one = b.convert(above, DType::S32);
    b.sub(quotient, one)
}

/// A constant; `None` where it is beyond 32 bits.
pub fn integer(b: &mut Builder, value: i64) -> Option<InstId> {
    Some(b.constant(Tensor::scalar(i32::try_from(value).ok()?)))
}

/// Whether elements lie within `limits`, pairs of an axis and the number of its elements that count: `pred[dims]`.
pub fn within(b: &mut Builder, dims: &[u64], limits: &[(usize, InstId)]) -> InstId {
    let mut all = None;
    for &(axis, limit) in limits {
        let position = b.iota(DType::S32, dims, axis);
        let inside = b.compare(Direction::Lt, position, limit);
        all = Some(all.map_or(inside, |a| b.elementwise(ScalarOp::And, &[a, inside])));
    }
    all.unwrap_or_else(|| b.full(DType::Pred, dims, 1.0))
}

/// `x` with the scalar `fill` wherever it is padding.
pub fn masked(b: &mut Builder, x: InstId, limits: &[(usize, InstId)], fill: InstId) -> InstId {
    if limits.is_empty() {
        return x;
    }
    let dims = b.dims(x).to_vec();
    let inside = within(b, &dims, limits);
    b.select(inside, x, fill)
}

/// `x` with `more` zeros behind its elements along `axis`.
pub fn longer(b: &mut Builder, x: InstId, axis: usize, more: u64) -> InstId {
    let zero = b.scalar(b.dtype(x), 0.0);
    let mut dims = vec![PadDim::default(); b.rank(x)];
    dims[axis].high = i64::try_from(more).unwrap_or(i64::MAX);
    b.pad(x, zero, &dims)
}
