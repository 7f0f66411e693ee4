//! Constants in panels, copied at compile time and only once for all programs that are tried for a module: weights may be most of
//! what a compile has in memory.
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::tensor::Tensor;
use bytes::Bytes;
use foldhash::HashMap;
use std::cell::RefCell;

/// Cache of packed constants, empty by default.
#[derive(Debug, Default)]
pub struct PackedConstants(RefCell<HashMap<(PackedConstantAddress, PanelMapping), Bytes>>);

/// A constant, compared by the address of its bytes, which stay in place while this value lives.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct PackedConstantAddress(pub(in crate::schedule) Bytes);

impl PackedConstantAddress {
    fn address_and_length(&self) -> (*const u8, usize) {
        (self.0.as_ptr(), self.0.len())
    }
}

impl PartialEq for PackedConstantAddress {
    fn eq(&self, other: &Self) -> bool {
        self.address_and_length() == other.address_and_length()
    }
}

impl Eq for PackedConstantAddress {}

impl std::hash::Hash for PackedConstantAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.address_and_length().hash(state);
    }
}

impl PackedConstants {
    /// The panels of `t`, packed unless the cache has them.
    pub(in crate::schedule) fn get_or_pack(&self, t: &Tensor, numbers: PanelMapping) -> Bytes {
        let mut made = self.0.borrow_mut();
        made.entry((PackedConstantAddress(t.bytes.clone()), numbers))
            .or_insert_with_key(|(_, numbers)| numbers.pack(t))
            .clone()
    }
}

/// The mapping from a constant's elements to its panels: element `starts[b] + columns[c] + terms[t]` is term `t` of column `c` in batch
/// `b`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PanelMapping {
    /// Index of the first element of each batch in the constant.
    pub starts: Vec<i64>,
    /// Offset of each term from the batch's first element.
    pub terms: Vec<i64>,
    /// Offset of each column from the batch's first element.
    pub columns: Vec<i64>,
    /// Columns per panel.
    pub panel: u64,
    /// Panels per batch.
    pub panels: u64,
    /// Order of elements in a panel.
    pub order: PanelOrder,
}

impl PanelMapping {
    /// Packs `t` into panels, padded with zeros.
    fn pack(&self, t: &Tensor) -> Bytes {
        let total = self.starts.len() * (self.panels * self.panel) as usize * self.terms.len();
        let mut bytes = vec![0u8; total * t.dtype.bytes()];
        match t.dtype.bytes() {
            1 => self.copy::<1>(&t.bytes, &mut bytes),
            2 => self.copy::<2>(&t.bytes, &mut bytes),
            4 => self.copy::<4>(&t.bytes, &mut bytes),
            8 => self.copy::<8>(&t.bytes, &mut bytes),
            _ => self.copy::<16>(&t.bytes, &mut bytes),
        }
        bytes.into()
    }

    /// Copies elements of `N` bytes each into their panels; the padding of the last panel is left as it is.
    fn copy<const N: usize>(&self, from: &[u8], to: &mut [u8]) {
        let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
        let panel_numbers = self.terms.len() * self.panel as usize;
        for (b, start) in self.starts.iter().enumerate() {
            for (p, columns) in self.columns.chunks(self.panel as usize).enumerate() {
                let at = (b * self.panels as usize + p) * panel_numbers;
                self.fill_panel(*start, columns, from, &mut to[at..at + panel_numbers]);
            }
        }
    }

    fn fill_panel<const N: usize>(&self, start: i64, columns: &[i64], from: &[[u8; N]], to: &mut [[u8; N]]) {
        let beside = columns.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if let (PanelOrder::Plain, true, Some(first)) = (self.order, beside, columns.first()) {
            for (term, to) in self.terms.iter().zip(to.chunks_exact_mut(self.panel as usize)) {
                let at = (start + first + term) as usize;
                to[..columns.len()].copy_from_slice(&from[at..at + columns.len()]);
            }
            return;
        }
        for (lane, column) in columns.iter().enumerate() {
            for (i, term) in self.terms.iter().enumerate() {
                to[self.order.panel_offset(i as u64, lane as u64, self.panel) as usize] =
                    from[(start + column + term) as usize];
            }
        }
    }
}
