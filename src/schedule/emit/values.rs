//! Where the values of a computation are, by instruction and by buffer.
use super::ValueBuffers;
use crate::hlo::InstId;
use crate::kernel::BufId;
use crate::schedule::memory::layout::Layout;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The values of a computation that have memory so far. Of a buffer it knows what its values have in common, so that asking for that
/// does not depend on how many they are.
#[derive(Default)]
pub struct Values {
    all: HashMap<InstId, ValueBuffers>,
    buffers: HashMap<BufId, Shared>,
}

/// Facts about all values in one buffer.
struct Shared {
    /// Position in the execution order of the last instruction that reads any of the values.
    last_read: usize,
    /// Where their elements lie; `None` where that differs between values.
    layout: Option<Option<Layout>>,
}

impl Values {
    /// The value of an instruction.
    pub fn get(&self, id: InstId) -> Option<&ValueBuffers> {
        self.all.get(&id)
    }

    /// Whether an instruction has a value.
    pub fn has(&self, id: InstId) -> bool {
        self.all.contains_key(&id)
    }

    /// Takes the value of an instruction out.
    pub fn take(mut self, id: InstId) -> Option<ValueBuffers> {
        self.all.remove(&id)
    }

    /// Sets the value of an instruction that has none, and which instructions read until position `last_read`.
    pub fn set(&mut self, id: InstId, value: ValueBuffers, last_read: usize) {
        for &buf in &value.leaves {
            match self.buffers.entry(buf) {
                Entry::Vacant(slot) => {
                    slot.insert(Shared { last_read, layout: Some(value.layout.clone()) });
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

    /// The position of the last instruction that reads a value in `buf`; 0 where there is none.
    pub fn last_read(&self, buf: BufId) -> usize {
        self.buffers.get(&buf).map_or(0, |shared| shared.last_read)
    }

    /// Where the elements of all values in `buf` lie; `None` where it holds none, or values that lie differently.
    pub fn layout(&self, buf: BufId) -> Option<Option<&Layout>> {
        self.buffers.get(&buf)?.layout.as_ref().map(Option::as_ref)
    }
}
