//! What of a padded array counts, as instructions.
use crate::bounded::extent::{Extent, Factor};
use crate::hlo::attrs::PadDim;
use crate::hlo::{Builder, InstId};
use crate::scalar::{Direction, ScalarOp};
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// The sizes of a call inside of one computation, and what follows from them: `s32[]` each.
#[derive(Debug, Default)]
pub struct Scope {
    /// The sizes; `None`: not known yet.
    pub sizes: Vec<Option<InstId>>,
    made: HashMap<Extent, InstId>,
}

impl Scope {
    /// A scope with these sizes.
    pub fn of(sizes: Vec<Option<InstId>>) -> Scope {
        Scope { sizes, made: HashMap::new() }
    }

    /// The value of `extent`; `None` where a size is not known yet.
    pub fn value(&mut self, b: &mut Builder, extent: &Extent) -> Option<InstId> {
        if let Some(&made) = self.made.get(extent) {
            return Some(made);
        }
        let mut sum: Option<InstId> = None;
        for (factors, times) in extent.terms() {
            let mut term = None;
            for factor in factors {
                let factor = self.factor(b, factor)?;
                term = Some(term.map_or(factor, |t| b.mul(t, factor)));
            }
            let term = match (term, times) {
                (Some(term), 1) => term,
                (Some(term), times) => {
                    let times = integer(b, times)?;
                    b.mul(term, times)
                }
                (None, constant) => integer(b, constant)?,
            };
            sum = Some(sum.map_or(term, |s| b.add(s, term)));
        }
        let value = match sum {
            Some(value) => value,
            None => integer(b, 0)?,
        };
        self.made.insert(extent.clone(), value);
        Some(value)
    }

    fn factor(&mut self, b: &mut Builder, factor: &Factor) -> Option<InstId> {
        match factor {
            Factor::Size(size) => *self.sizes.get(*size)?,
            Factor::Quotient(of, divisor) => {
                let value = self.value(b, of)?;
                divided(b, value, *divisor)
            }
            Factor::Least(of, most) => {
                let (value, most) = (self.value(b, of)?, integer(b, *most)?);
                Some(b.min(value, most))
            }
            Factor::Greatest(of, least) => {
                let (value, least) = (self.value(b, of)?, integer(b, *least)?);
                Some(b.max(value, least))
            }
        }
    }
}

/// `⌊value / divisor⌋`.
fn divided(b: &mut Builder, value: InstId, divisor: i64) -> Option<InstId> {
    let by = integer(b, divisor)?;
    let quotient = b.div(value, by);
    // division rounds toward 0
    let back = b.mul(quotient, by);
    let above = b.compare(Direction::Gt, back, value);
    let one = b.convert(above, DType::S32);
    Some(b.sub(quotient, one))
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
