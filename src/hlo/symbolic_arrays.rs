//! Arrays that lowering knows, with how they follow from sizes.
use super::{Builder, InstId, Literal, Op, SizeRepr};
use crate::symbolic::Dim;
use crate::tensor::Tensor;

/// An array that a computation under construction determines.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolicArray {
    /// The value for the sizes at hand.
    pub value: Tensor,
    /// The elements, where some follow from sizes that vary from call to call.
    pub sizes: Option<Vec<Dim>>,
}

impl SymbolicArray {
    /// The value of a constant array of the open computation.
    pub fn of_constant<D: SizeRepr>(b: &Builder<D>, id: InstId) -> Option<SymbolicArray> {
        let Op::Constant(Literal::Array(value)) = &b.current().insts.get(id)?.op else { return None };
        let sizes = b.size_constant_elements(id).map(|all| all.iter().map(|&e| e.into()).collect::<Vec<Dim>>());
        Some(SymbolicArray { value: value.clone(), sizes: sizes.filter(|all| all.iter().any(|e| e.varies())) })
    }
    /// Adds the value as a constant to the open computation of a builder.
    pub fn add_constant(&self, b: &mut Builder<Dim>) -> InstId {
        let constant = b.constant(self.value.clone());
        if let Some(sizes) = &self.sizes {
            b.tell_size(constant, sizes.clone());
        }
        constant
    }
    /// The array with its elements as sizes, which do not vary where none are known.
    pub fn of_sizes(self) -> SymbolicArray {
        let fixed = || self.value.to_i64s().map(|all| all.into_iter().map(Dim::from).collect());
        SymbolicArray { sizes: self.sizes.clone().or_else(fixed), value: self.value }
    }
    /// The value, which it must have in every call.
    pub fn pinned(self) -> Tensor {
        for size in self.sizes.into_iter().flatten() {
            size.pinned();
        }
        self.value
    }
}
