//! JAX's `approx_max_k` and `approx_min_k`, which are exact outside of TPUs: a sort, truncated to the size of the result.
use super::converter::{Converter, error_at};
use super::tree::{MlirAttr, Operation};
use crate::diag::{Code, Result};
use crate::hlo::symbolic::SliceDim;
use crate::hlo::{ArrayShape, InstId, Op, Shape};

impl Converter<'_, '_> {
    /// Converts the custom call `ApproxTopK` of some arrays and as many initial values, with exact results.
    pub(super) fn approximate_top_k(&mut self, op: &Operation, operands: &[InstId]) -> Result<Vec<InstId>> {
        let refuse = |message: &str| error_at(op, Code::HloUnsupported, message);
        let arrays = operands.get(..op.types.len()).filter(|a| operands.len() == 2 * a.len() && !a.is_empty());
        let arrays = arrays.ok_or_else(|| refuse("`ApproxTopK` takes arrays and their initial values"))?;
        let dim = reduction_dim(op).ok_or_else(|| refuse("`ApproxTopK` names no `reduction_dim`"))?;
        let &[comp] = &self.called_computations(op)?[..] else {
            return Err(refuse("`ApproxTopK` calls one comparison"));
        };
        let results: Vec<ArrayShape> = op.types.iter().filter_map(Shape::as_array).cloned().collect();
        let fits = |(x, out): (&InstId, &ArrayShape)| {
            let x = self.host.builder().shape(*x).pin_sizes();
            x.as_array().is_some_and(|x| {
                let mut dims = x.dims.clone();
                let has_k = dims.get_mut(dim).zip(out.dims.get(dim)).map(|(n, &k)| std::mem::replace(n, k) >= k);
                has_k == Some(true) && dims == out.dims && x.dtype == out.dtype
            })
        };
        if results.len() != arrays.len() || !arrays.iter().zip(&results).all(fits) {
            return Err(refuse("the results of `ApproxTopK` are no parts of its operands"));
        }
        let sorted = self.builder().add_inst(Op::Sort { dim, is_stable: true, comp }, arrays);
        let parts = if arrays.len() == 1 { vec![sorted] } else { self.parts(sorted) };
        let first = |limit: &u64| SliceDim::new(0, *limit);
        let cut = parts.into_iter().zip(&results).map(|(x, out)| {
            let dims: Vec<SliceDim> = out.dims.iter().map(first).collect();
            self.builder().slice(x, &dims)
        });
        Ok(cut.collect())
    }
}

/// Dimension that is searched, from the call's configuration.
fn reduction_dim(op: &Operation) -> Option<usize> {
    let Some(MlirAttr::Dict(entries)) = op.attr(&["mhlo.backend_config", "backend_config"]) else { return None };
    let (_, MlirAttr::Int(dim, _)) = entries.iter().find(|(name, _)| name == "reduction_dim")? else { return None };
    usize::try_from(*dim).ok()
}
