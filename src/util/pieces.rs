//! The content of a file in pieces that need not lie beside one another: weights stay where they are until they are written.
use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Bytes, piece after piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pieces(Vec<Bytes>);

/// Content that can be written to a file.
pub trait Content {
    /// Writes all of it.
    ///
    /// # Errors
    /// Those of writing.
    fn write_to(&self, out: &mut File) -> io::Result<()>;
}

impl Pieces {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        self.0.push(piece.into());
    }

    /// Adds zeros up to the byte `end`; nothing where there are as many bytes already.
    pub fn fill(&mut self, end: u64) {
        const ZEROS: &[u8] = &[0; 4096];
        let mut missing = end.saturating_sub(self.len());
        while missing > 0 {
            let some = missing.min(ZEROS.len() as u64);
            self.push(Bytes::from_static(&ZEROS[..some as usize]));
            missing -= some;
        }
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|p| p.len() as u64).sum()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter()
    }

    /// All bytes beside one another: a copy, unless they are one piece.
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
        // what is small is gathered, what is large is written from where it is
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
