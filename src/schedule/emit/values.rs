//! Where the values of a computation are, by instruction and by buffer.
use super::ValueBuffers;
use crate::hlo::InstId;
use crate::kernel::BufId;
use crate::schedule::memory::layout::Layout;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The values of a computation that have memory so far, indexed by buffer: queries about a buffer take the same time however many values
/// it holds.
#[derive(Default)]
pub struct ValueMap {
    all: HashMap<InstId, ValueBuffers>,
    buffers: HashMap<BufId, BufferFacts>,
}

/// Facts about all values in one buffer.
struct BufferFacts {
    /// Position in the execution order of the last instruction that reads any of the values.
    last_read: usize,
    /// Layout that all values in the buffer share; `None` if they differ.
    layout: Option<Option<Layout>>,
}

impl ValueMap {
    /// The buffers of an instruction's value.
    pub fn get(&self, id: InstId) -> Option<&ValueBuffers> {
        self.all.get(&id)
    }

    /// Whether an instruction has a value.
    pub fn contains(&self, id: InstId) -> bool {
        self.all.contains_key(&id)
    }

    /// Removes the value of an instruction and returns it.
    pub fn remove(mut self, id: InstId) -> Option<ValueBuffers> {
        self.all.remove(&id)
    }

    /// Sets the value of an instruction, which must not have one; `last_read` is the position of its last reader.
    pub fn set(&mut self, id: InstId, value: ValueBuffers, last_read: usize) {
        for &buf in &value.leaves {
            match self.buffers.entry(buf) {
                Entry::Vacant(slot) => {
                    slot.insert(BufferFacts { last_read, layout: Some(value.layout.clone()) });
                }
                Entry::Occupied(mut slot) => {
                    let shared = slot.get_mut();
                    shared.last_read = shared.last_read.max(last_read);
                    shared.layout = shared.layout.take().filter(|layout| *layout == value.layout);
                }
            }
        }
        self.all.insert(id, value);
    }

    /// The position of the last instruction that reads a value in `buf`; 0 if it holds none.
    pub fn last_read(&self, buf: BufId) -> usize {
        self.buffers.get(&buf).map_or(0, |shared| shared.last_read)
    }

    /// The layout that all values in `buf` share; `None` if it holds none, or values of different layouts.
    pub fn layout(&self, buf: BufId) -> Option<Option<&Layout>> {
        self.buffers.get(&buf)?.layout.as_ref().map(Option::as_ref)
    }
}
