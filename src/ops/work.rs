//! Number of operations of an op, from the sizes of its tensors and its attributes alone. A multiplication and an addition are
//! two operations.
/// Number of operations of an op, as a rule over the sizes of its tensors and its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// No operations: the op moves, creates or describes data.
    None,
    /// A fixed number of operations for each element of the first output.
    PerOutputElement(u64),
    /// One operation for each element of the first input.
    PerInputElement,
    /// Pooling: one operation for each element of a window of attribute `ksize`, for each element of the first output.
    Pool,
    /// Batch normalization: two for each element of the first output, five in training (`is_training`).
    Normalise,
    /// Matrix product; the string names the attribute that tells whether the left side is transposed.
    MatrixProduct(&'static str),
    /// Einsum: products and sums over all indices of attribute `equation`.
    Einsum,
    /// Convolution by the filter in input 1; the number counts the last axes of the filter that are not summed over.
    Convolution(usize),
    /// Gradient of a convolution with respect to its input; input 2 is the gradient of its result.
    ConvolutionInputGradient(usize),
    /// Gradient of a convolution with respect to its filter; input 2 is the gradient of its result.
    ConvolutionFilterGradient(usize),
    /// Contraction whose axes are given by constant inputs.
    Contraction,
}

impl Work {
    /// Whether the op is a contraction: a sum of products.
    pub fn is_contraction(self) -> bool {
        match self {
            Work::MatrixProduct(_)
            | Work::Einsum
            | Work::Convolution(_)
            | Work::ConvolutionInputGradient(_)
            | Work::ConvolutionFilterGradient(_)
            | Work::Contraction => true,
            Work::None | Work::PerOutputElement(_) | Work::PerInputElement | Work::Pool | Work::Normalise => false,
        }
    }
}
