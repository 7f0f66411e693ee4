//! Values of HLO in memory.
use crate::diag::{Error, Result};
use crate::kernel::BufId;
use crate::schedule::loops::view::ArrayView;
use crate::schedule::memory::layout::Layout;

/// The memory of an HLO value: one buffer for each array, tuples flattened.
#[derive(Clone, Debug, Default)]
pub struct ValueBuffers {
    /// A buffer for each array.
    pub leaves: Vec<BufId>,
    /// The layout of a single array that is not dense.
    pub layout: Option<Layout>,
}

impl ValueBuffers {
    /// The buffer of a value that must be one dense array.
    pub fn dense_buffer(&self) -> Result<BufId> {
        match self.layout {
            None => self.buffer(),
            Some(_) => Err(Error::internal("schedule", "an array is read as if it were dense")),
        }
    }
    /// The buffer of a value that must be one array.
    pub fn buffer(&self) -> Result<BufId> {
        self.leaves.first().copied().ok_or_else(|| Error::internal("schedule", "an array has no buffer"))
    }
    /// The buffer and the layout of an array of `dims`.
    pub fn view(&self, dims: &[u64]) -> Result<ArrayView> {
        Ok(ArrayView::new(self.buffer()?, self.layout(dims)))
    }
    /// The layout of an array of `dims`.
    pub fn layout(&self, dims: &[u64]) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::dense(dims))
    }
}
