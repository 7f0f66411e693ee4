//! How an array lies in memory. What reads or writes elements asks a view alone, and knows nothing of who made the array, whether
//! it has margins, is a part of another one, or is there as a whole.
use crate::kernel::{BufId, ExprId, Index, Kernel, Stmt};
use crate::schedule::memory::layout::Layout;

/// Where the elements of an array are.
#[derive(Clone, Debug)]
pub struct View {
    /// The buffer that holds the array.
    pub buf: BufId,
    /// The layout of the elements in the buffer. The origin of a convolution's operand is where the first window begins.
    pub layout: Layout,
    /// Where only some rows of the first spatial axis are there: how many. The last one made takes the place of the first.
    pub ring: Option<u64>,
}

impl View {
    /// An array that is there as a whole.
    pub fn new(buf: BufId, layout: Layout) -> View {
        View { buf, layout, ring: None }
    }

    /// How far an element along `axis` is from the next.
    pub fn stride(&self, axis: usize) -> i64 {
        self.layout.strides[axis]
    }

    /// The place of element `at`.
    pub fn at(&self, at: &[Index]) -> Index {
        self.layout.at(at)
    }

    /// Element `at`.
    pub fn load(&self, k: &mut Kernel, at: &[Index]) -> ExprId {
        k.load(self.buf, self.at(at))
    }

    /// `value` becomes element `at`.
    pub fn store(&self, at: &[Index], value: ExprId) -> Stmt {
        Stmt::Store { buf: self.buf, index: self.at(at), value }
    }
}
