//! Constants by place in the object.
use crate::schedule::families::contraction::loops::packings::ConstantAddress;
use bytes::Bytes;
use foldhash::HashMap;

/// Constants one behind the other: equal ones are stored once, or where their numbers may be replaced, one array is.
#[derive(Default)]
pub struct ConstantPool {
    parts: Vec<(u64, Bytes)>,
    top: u64,
    known: HashMap<ConstantKey, u64>,
    replaceable: bool,
}

/// The key by which equal constants are found.
#[derive(PartialEq, Eq, Hash)]
enum ConstantKey {
    Numbers(Bytes),
    Array(ConstantAddress),
}

impl ConstantPool {
    /// None so far.
    pub fn new(replaceable: bool) -> Self {
        ConstantPool { replaceable, ..ConstantPool::default() }
    }
    /// The offset of these bytes, which are added unless they are there.
    pub fn add(&mut self, bytes: &Bytes) -> u64 {
        let own = if self.replaceable {
            ConstantKey::Array(ConstantAddress(bytes.clone()))
        } else {
            ConstantKey::Numbers(bytes.clone())
        };
        *self.known.entry(own).or_insert_with(|| {
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
