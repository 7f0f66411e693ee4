//! Constants in panels, copied at compile time and only once for all programs that are tried for a module: weights may be most of
//! what a compile has in memory.
use crate::schedule::families::contraction::recipe::panel_order::PanelOrder;
use crate::tensor::Tensor;
use bytes::Bytes;
use foldhash::HashMap;
use std::cell::RefCell;

/// The panels that were made; none by default.
#[derive(Debug, Default)]
pub struct Packings(RefCell<HashMap<(ConstantAddress, Numbers), Bytes>>);

/// A constant by where its bytes lie, which stay there as long as this does.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct ConstantAddress(pub(in crate::schedule) Bytes);

impl ConstantAddress {
    fn place(&self) -> (*const u8, usize) {
        (self.0.as_ptr(), self.0.len())
    }
}

impl PartialEq for ConstantAddress {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for ConstantAddress {}

impl std::hash::Hash for ConstantAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

impl Packings {
    /// The panels of `t`.
    pub(in crate::schedule) fn packed(&self, t: &Tensor, numbers: Numbers) -> Bytes {
        let mut made = self.0.borrow_mut();
        made.entry((ConstantAddress(t.bytes.clone()), numbers)).or_insert_with_key(|(_, numbers)| numbers.of(t)).clone()
    }
}

/// The mapping from the elements of a constant to its panels: element `starts[b] + columns[c] + terms[t]` is term `t` of column `c` in
/// batch `b`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// Where each batch begins.
    pub starts: Vec<i64>,
    /// How far each term is from its batch's beginning.
    pub terms: Vec<i64>,
    /// How far each column is from it.
    pub columns: Vec<i64>,
    /// Columns of a panel.
    pub panel: u64,
    /// Panels of a batch.
    pub panels: u64,
    /// How the numbers of a panel lie.
    pub order: PanelOrder,
}

impl Numbers {
    /// The panels of `t`, filled up with zeros.
    fn of(&self, t: &Tensor) -> Bytes {
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

    /// Copies numbers of `N` bytes; what fills the last panel up stays as it is.
    fn copy<const N: usize>(&self, from: &[u8], to: &mut [u8]) {
        let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
        let panel_numbers = self.terms.len() * self.panel as usize;
        for (b, start) in self.starts.iter().enumerate() {
            for (p, columns) in self.columns.chunks(self.panel as usize).enumerate() {
                let at = (b * self.panels as usize + p) * panel_numbers;
                self.panel(*start, columns, from, &mut to[at..at + panel_numbers]);
            }
        }
    }

    fn panel<const N: usize>(&self, start: i64, columns: &[i64], from: &[[u8; N]], to: &mut [[u8; N]]) {
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
                to[self.order.place(i as u64, lane as u64, self.panel) as usize] =
                    from[(start + column + term) as usize];
            }
        }
    }
}
