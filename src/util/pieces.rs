//! The content of a file in pieces that need not be contiguous in memory, so that weights are not copied before they are written.
use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// A byte string in pieces, which are concatenated when it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(Vec<Bytes>);

/// Content that can be written to a file.
pub trait Content {
    /// Writes the whole content to `out`.
    ///
    /// # Errors
    /// Errors of writing.
    fn write_to(&self, out: &mut File) -> io::Result<()>;
}

impl Pieces {
    /// Appends a piece.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        self.0.push(piece.into());
    }

    /// Appends zeros up to a length of `end` bytes; does nothing if there are as many already.
    pub fn fill(&mut self, end: u64) {
        const ZEROS: &[u8] = &[0; 4096];
        let mut missing = end.saturating_sub(self.len());
        while missing > 0 {
            let some = missing.min(ZEROS.len() as u64);
            self.push(Bytes::from_static(&ZEROS[..some as usize]));
            missing -= some;
        }
    }

    /// The total number of bytes.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|p| p.len() as u64).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter()
    }

    /// All bytes in one piece, copied unless there is only one.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0[..] {
            [only] => only.clone(),
            several => several.concat().into(),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Pieces {
    fn from(only: T) -> Pieces {
        Pieces(vec![only.into()])
    }
}

impl Content for Pieces {
    fn write_to(&self, out: &mut File) -> io::Result<()> {
        // small pieces are buffered, large ones are written directly
        let mut out = BufWriter::with_capacity(1 << 16, out);
        self.0.iter().try_for_each(|piece| out.write_all(piece))?;
        out.flush()
    }
}

impl<T: AsRef<[u8]>> Content for T {
    fn write_to(&self, out: &mut File) -> io::Result<()> {
        out.write_all(self.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn pieces_are_written_in_order() {
        let mut all = Pieces::from(vec![1u8, 2]);
        all.fill(2);
        all.fill(4);
        all.push(vec![7u8; 70_000]);
        let mut file = tempfile::tempfile().expect("a temporary file");
        all.write_to(&mut file).expect("written");
        let mut out = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut out)).expect("read");
        assert_eq!((out.len() as u64, &out[..5]), (all.len(), &[1, 2, 0, 0, 7][..]));
        assert_eq!(all.to_bytes(), out);
    }
}
