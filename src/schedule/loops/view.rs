//! How an array lies in memory. What reads or writes elements asks a view alone, and knows nothing of who made the array, whether
//! it has margins, is a part of another one, or is there as a whole.
use crate::kernel::{BufId, ExprId, Index, Kernel, Stmt};
use crate::schedule::memory::layout::Layout;

/// The buffer and the layout of an array.
#[derive(Clone, Debug)]
pub struct ArrayView {
    /// The buffer that holds the array.
    pub buf: BufId,
    /// The layout of the elements in the buffer. The origin of a convolution's operand is where the first window begins.
    pub layout: Layout,
    /// Number of rows of a ring buffer along the first spatial axis, in which the newest row replaces the oldest; `None` if all rows are
    /// stored.
    pub ring: Option<u64>,
}

impl ArrayView {
    /// A view of an array that is stored whole.
    pub fn new(buf: BufId, layout: Layout) -> ArrayView {
        ArrayView { buf, layout, ring: None }
    }

    /// Distance of neighboring elements along `axis`.
    pub fn stride(&self, axis: usize) -> i64 {
        self.layout.strides[axis]
    }

    /// The offset of element `at` in the buffer.
    pub fn offset_of(&self, at: &[Index]) -> Index {
        self.layout.offset_of(at)
    }

    /// Loads element `at`.
    pub fn load(&self, k: &mut Kernel, at: &[Index]) -> ExprId {
        k.add_load(self.buf, self.offset_of(at))
    }

    /// Stores `value` as element `at`.
    pub fn store(&self, at: &[Index], value: ExprId) -> Stmt {
        Stmt::Store { buf: self.buf, index: self.offset_of(at), value }
    }
}
