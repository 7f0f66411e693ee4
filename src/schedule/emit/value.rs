//! Values of HLO in memory.
use crate::diag::{Error, Result};
use crate::kernel::BufId;
use crate::schedule::loops::view::View;
use crate::schedule::memory::layout::Layout;

/// An HLO value in memory: one buffer an array, tuples flattened.
#[derive(Clone, Debug, Default)]
pub struct ValueBuffers {
    /// A buffer for each.
    pub leaves: Vec<BufId>,
    /// Where an array's elements lie when it is not dense.
    pub layout: Option<Layout>,
}

impl ValueBuffers {
    /// The buffer of a dense array.
    pub fn only(&self) -> Result<BufId> {
        match self.layout {
            None => self.buffer(),
            Some(_) => Err(Error::internal("schedule", "an array is read as if it were dense")),
        }
    }
    /// The buffer of an array.
    pub fn buffer(&self) -> Result<BufId> {
        self.leaves.first().copied().ok_or_else(|| Error::internal("schedule", "an array has no buffer"))
    }
    /// How an array of `dims` lies.
    pub fn view(&self, dims: &[u64]) -> Result<View> {
        Ok(View::new(self.buffer()?, self.layout(dims)))
    }
    /// Where an array of `dims` has its elements.
    pub fn layout(&self, dims: &[u64]) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::dense(dims))
    }
}
