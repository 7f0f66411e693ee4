//! Constants by place in the object.
use crate::schedule::families::contraction::loops::packings::PackedConstantAddress;
use bytes::Bytes;
use foldhash::HashMap;

/// Pool of constants that stores equal constants once. If constants may be replaced later, only uses of the same array share memory.
#[derive(Default)]
pub struct ConstantPool {
    parts: Vec<(u64, Bytes)>,
    top: u64,
    known: HashMap<ConstantKey, u64>,
    replaceable: bool,
}

/// Key by which the pool finds equal constants.
#[derive(PartialEq, Eq, Hash)]
enum ConstantKey {
    Numbers(Bytes),
    Array(PackedConstantAddress),
}

impl ConstantPool {
    /// Creates an empty pool.
    pub fn new(replaceable: bool) -> Self {
        ConstantPool { replaceable, ..ConstantPool::default() }
    }
    /// Adds bytes unless the pool has equal ones, and returns their offset.
    pub fn add(&mut self, bytes: &Bytes) -> u64 {
        let own = if self.replaceable {
            ConstantKey::Array(PackedConstantAddress(bytes.clone()))
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
    /// Total size of the pool in bytes.
    pub fn bytes(&self) -> u64 {
        self.top
    }
    /// All constants in the order of their offsets.
    pub fn finish(self) -> Vec<(u64, Bytes)> {
        self.parts
    }
}
