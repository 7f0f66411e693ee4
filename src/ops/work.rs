//! How many operations an op takes, as a column of its row: from the sizes of its tensors and its attributes alone.
//! A multiplication and an addition are two operations.
/// What the number of operations of an op follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// There are none: data are moved, made or described.
    Nothing,
    /// So many for each element of the first output.
    EachResult(u64),
    /// One for each element of the first input.
    EachInput,
    /// One for each element of a window of size `ksize`, and this for each element of the first output.
    Pool,
    /// Two for each element of the first output, five where the mean and the variance are computed (`is_training`).
    Normalise,
    /// A matrix product; the attribute that says whether its left side is transposed.
    Product(&'static str),
    /// Products and sums over all indices of `equation`.
    Equation,
    /// A convolution by the filter that is input 1, whose last so many axes are not summed over.
    Windows(usize),
    /// The gradient of such a convolution in its input; input 2 is that in its result.
    OfInput(usize),
    /// The gradient of such a convolution in its filter; input 2 is that in its result.
    OfFilter(usize),
    /// Products and sums whose number follows from inputs that are constants.
    Contraction,
}

impl Work {
    /// Whether products are summed up.
    pub fn contracts(self) -> bool {
        match self {
            Work::Product(_)
            | Work::Equation
            | Work::Windows(_)
            | Work::OfInput(_)
            | Work::OfFilter(_)
            | Work::Contraction => true,
            Work::Nothing | Work::EachResult(_) | Work::EachInput | Work::Pool | Work::Normalise => false,
        }
    }
}
