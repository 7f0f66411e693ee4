//! The model's constants: laid out once, equal ones shared.
use bytes::Bytes;
use foldhash::HashMap;

/// Constants by offset.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    parts: Vec<(u64, Bytes)>,
    top: u64,
    known: HashMap<Bytes, u64>,
}

impl Weights {
    /// The offset of these bytes, which are added unless they are there.
    pub fn add(&mut self, bytes: &Bytes) -> u64 {
        *self.known.entry(bytes.clone()).or_insert_with(|| {
            let at = self.top.next_multiple_of(64);
            self.top = at + bytes.len() as u64;
            self.parts.push((at, bytes.clone()));
            at
        })
    }
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.top
    }
    /// All parts in order.
    pub fn finish(self) -> Vec<(u64, Bytes)> {
        self.parts
    }
}
