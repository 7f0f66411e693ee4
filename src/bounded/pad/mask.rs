//! Instructions that compute sizes and mask the padding of arrays.
use crate::bounded::extent::Extent;
use crate::hlo::attrs::PadDim;
use crate::hlo::{Builder, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Factor;
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// Scalars `s32[]` of one computation that hold the sizes of the call, and the values of size expressions.
#[derive(Debug, Default)]
pub struct EmittedSizes {
    /// Value of each size; `None` if it has not been computed yet.
    pub sizes: Vec<Option<InstId>>,
    made: HashMap<Extent, InstId>,
}

impl EmittedSizes {
    /// Scalars `s32[]` that hold the actual sizes in a computation.
    pub fn of(sizes: Vec<Option<InstId>>) -> EmittedSizes {
        EmittedSizes { sizes, made: HashMap::new() }
    }

    /// Emits the value of `extent`, once per computation; `None` where a size has not been computed yet, or a constant exceeds 32 bits.
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
            None => int_constant(b, 0)?,
        };
        self.made.insert(extent.clone(), value);
        Some(value)
    }

    /// Emits the product of factors and a constant.
    fn term(&mut self, b: &mut Builder, factors: &[Factor<usize>], times: i64) -> Option<InstId> {
        let mut term = None;
        let mut times = times;
        for factor in factors {
            let factor = match factor {
                Factor::Var(size) => (*self.sizes.get(*size)?)?,
                Factor::Quotient(of, by) => {
                    let (of, by) = (self.value(b, of)?, self.value(b, by)?);
                    floor_divide(b, of, by)
                }
                Factor::Shared(whole) => self.value(b, whole.expr())?,
                // a negated maximum is a minimum
                Factor::Max(all) if times < 0 => {
                    times = times.checked_neg()?;
                    let all: Option<Vec<Extent>> = all.iter().map(|e| e.scale(-1)).collect();
                    self.fold_values(b, &all?, Builder::min)?
                }
                Factor::Max(all) => self.fold_values(b, all, Builder::max)?,
            };
            term = Some(term.map_or(factor, |t| b.mul(t, factor)));
        }
        match (term, times) {
            (Some(term), 1) => Some(term),
            (Some(term), times) => {
                let times = int_constant(b, times)?;
                Some(b.mul(term, times))
            }
            (None, constant) => int_constant(b, constant),
        }
    }

    /// Emits the values of several expressions, combined by `fold`.
    fn fold_values(
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

/// Emits `⌊value / by⌋` for a positive `by`.
fn floor_divide(b: &mut Builder, value: InstId, by: InstId) -> InstId {
    let quotient = b.div(value, by);
    // HLO's division rounds toward 0
    let back = b.mul(quotient, by);
    let above = b.compare(Direction::Gt, back, value);
    let one = b.convert(above, DType::S32);
    b.sub(quotient, one)
}

/// Emits an `s32[]` constant; `None` where it exceeds 32 bits.
pub fn int_constant(b: &mut Builder, value: i64) -> Option<InstId> {
    Some(b.constant(Tensor::scalar(i32::try_from(value).ok()?)))
}

/// Emits `pred[dims]`: true for the valid elements. `limits` holds pairs of an axis and its number of valid elements.
pub fn valid_mask(b: &mut Builder, dims: &[u64], limits: &[(usize, InstId)]) -> InstId {
    let mut all = None;
    for &(axis, limit) in limits {
        let position = b.iota(DType::S32, dims, axis);
        let inside = b.compare(Direction::Lt, position, limit);
        all = Some(all.map_or(inside, |a| b.elementwise(ScalarOp::And, &[a, inside])));
    }
    all.unwrap_or_else(|| b.full(DType::Pred, dims, 1.0))
}

/// Replaces the padding of `x` by the scalar `fill`; `limits` holds pairs of an axis and its number of valid elements.
pub fn fill_padding(b: &mut Builder, x: InstId, limits: &[(usize, InstId)], fill: InstId) -> InstId {
    if limits.is_empty() {
        return x;
    }
    let dims = b.dims(x).to_vec();
    let inside = valid_mask(b, &dims, limits);
    b.select(inside, x, fill)
}

/// Extends `x` by `more` zeros at the end of `axis`.
pub fn extend_axis(b: &mut Builder, x: InstId, axis: usize, more: u64) -> InstId {
    let zero = b.scalar(b.dtype(x), 0.0);
    let mut dims = vec![PadDim::default(); b.rank(x)];
    dims[axis].high = i64::try_from(more).unwrap_or(i64::MAX);
    b.pad(x, zero, &dims)
}
