//! Arrays known during lowering, with elements that may be expressions of sizes.
use super::{Builder, InstId, Literal, Op, SizeRepr};
use crate::symbolic::Dim;
use crate::tensor::Tensor;

/// Array that is already determined in a computation under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolicArray {
    /// Value for the current sizes.
    pub value: Tensor,
    /// Elements as expressions, if some depend on open sizes.
    pub sizes: Option<Vec<Dim>>,
}

impl SymbolicArray {
    /// Value of a constant array of the current computation.
    pub fn from_constant<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<SymbolicArray> {
        let Op::Constant(Literal::Array(value)) = &b.current_computation().insts.get(id)?.op else { return None };
        let sizes = b.size_constant_elements(id).map(|all| all.iter().map(|&e| e.into()).collect::<Vec<Dim>>());
        Some(SymbolicArray { value: value.clone(), sizes: sizes.filter(|all| all.iter().any(|e| e.varies())) })
    }
    /// Adds the value as a constant to the current computation of a builder.
    pub fn add_constant(&self, b: &mut Builder<Dim>) -> InstId {
        let constant = b.constant(self.value.clone());
        if let Some(sizes) = &self.sizes {
            b.record_size_constant(constant, sizes.clone());
        }
        constant
    }
    /// Array with its elements as expressions, which are constants if none were known.
    pub fn with_expressions(self) -> SymbolicArray {
        let fixed = || self.value.to_i64s().map(|all| all.into_iter().map(Dim::from).collect());
        SymbolicArray { sizes: self.sizes.clone().or_else(fixed), value: self.value }
    }
    /// Value, recording guards that it is the same in every call.
    pub fn pin_sizes(self) -> Tensor {
        for size in self.sizes.into_iter().flatten() {
            size.guarded_value();
        }
        self.value
    }
}
