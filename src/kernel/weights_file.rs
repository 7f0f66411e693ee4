//! Constants in a file of their own, which callers hand over at each call: a header, and behind it what would be in the object.
//!
//! The header has a hash of everything that code and file must agree on: loops, places, types, and numbers that stand in the code. The
//! numbers in the file are none of that, so that a file of others has the same header. Two graphs of one hash are the same program over
//! the numbers of the file, whatever their nodes are called.
use super::{Bundle, Kernel, Program, StateInitializer};
use crate::diag::{Code, Diagnostic, Result};
use crate::util::pieces::Pieces;
use bytes::Bytes;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Size of the header in bytes; constants begin after it, aligned if the file is.
pub const HEADER_BYTES: u64 = 64;
/// The first bytes of every weights file.
const MAGIC: &[u8; 8] = b"tfaotwts";
/// Version of the header's layout.
const VERSION: u64 = 1;
/// Bytes to which each constant is aligned.
const ALIGN: u64 = 64;
/// Bytes of a hash.
pub const KEY_BYTES: usize = blake3::OUT_LEN;

/// Identity and layout of a weights file, for callers and `tfaot weights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsFile {
    /// The hash that the header of the file holds.
    pub key: [u8; KEY_BYTES],
    /// Offsets of the constants.
    pub places: WeightsLayout,
}

/// Offsets, after the header, of the constants of programs and of the initial values of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightsLayout {
    /// For each program of each target, the offsets of its constants in their order.
    pub programs: Vec<Vec<u64>>,
    /// Offset of the initial value of each variable.
    pub starts: Vec<u64>,
    /// Total size in bytes.
    pub bytes: u64,
}

impl WeightsFile {
    /// The header: magic, version, size of the whole file, hash; integers are little-endian.
    pub fn header(&self) -> [u8; HEADER_BYTES as usize] {
        let mut header = [0; HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.file_bytes().to_le_bytes());
        header[24..24 + KEY_BYTES].copy_from_slice(&self.key);
        header
    }

    /// The hash as hexadecimal digits.
    pub fn key_hex(&self) -> String {
        blake3::Hash::from_bytes(self.key).to_hex().to_string()
    }

    /// Size of the whole file in bytes.
    pub fn file_bytes(&self) -> u64 {
        HEADER_BYTES + self.places.bytes
    }
}

impl WeightsLayout {
    /// Assigns an offset to every constant. Constants of different programs with equal bytes share one, the first with the first, the
    /// second with the second, so that arrays of one program that happen to be equal stay separate.
    fn assign_offsets(programs: &[Vec<Bytes>], starts: &[Bytes]) -> WeightsLayout {
        let mut known: HashMap<Bytes, Vec<u64>> = HashMap::default();
        let mut places = WeightsLayout::default();
        let mut top = 0u64;
        for (p, pieces) in programs.iter().map(Vec::as_slice).chain([starts]).enumerate() {
            let mut seen: HashMap<Bytes, usize> = HashMap::default();
            let mut offsets = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let (all, nth) = (known.entry(piece.clone()).or_default(), seen.entry(piece.clone()).or_default());
                if *nth == all.len() {
                    let at = top.next_multiple_of(ALIGN);
                    top = at + reserved_bytes(piece);
                    all.push(at);
                }
                offsets.push(all[*nth]);
                *nth += 1;
            }
            if p < programs.len() { places.programs.push(offsets) } else { places.starts = offsets }
        }
        places.bytes = top;
        places
    }

    /// The constants by offset, in order. Errors: `Code::OtherWeights` if they do not fit, or if two different ones share an offset.
    fn pieces_by_offset(&self, programs: &[Vec<Bytes>], starts: &[Bytes]) -> Result<Vec<(u64, Bytes)>> {
        let counts = |all: &[Vec<u64>]| all.iter().map(Vec::len).collect::<Vec<_>>();
        let wanted: Vec<usize> = programs.iter().map(Vec::len).collect();
        if counts(&self.programs) != wanted || self.starts.len() != starts.len() {
            return Err(mismatch_error("the graph has other arrays"));
        }
        let offsets = self.programs.iter().flatten().chain(&self.starts);
        let all = || offsets.clone().zip(programs.iter().flatten().chain(starts));
        let parts: BTreeMap<u64, Bytes> = all().map(|(&at, piece)| (at, piece.clone())).collect();
        let mut end = 0u64;
        for (&at, piece) in &parts {
            if at != end.next_multiple_of(ALIGN) {
                return Err(mismatch_error("arrays have other sizes"));
            }
            end = at + reserved_bytes(piece);
        }
        if end != self.bytes {
            return Err(mismatch_error("arrays have other sizes"));
        }
        if all().any(|(at, piece)| parts.get(at) != Some(piece)) {
            return Err(mismatch_error(
                "two arrays had the same numbers when the object was compiled, share a place in the file, and differ now",
            ));
        }
        Ok(parts.into_iter().collect())
    }
}

/// Bytes reserved for a constant: an empty one has an offset of its own too.
fn reserved_bytes(piece: &Bytes) -> u64 {
    piece.len().max(1) as u64
}

fn mismatch_error(why: &str) -> crate::diag::Error {
    Diagnostic::new(Code::OtherWeights, why).help("compile this graph with --weights-file").into()
}

impl Bundle {
    /// Pools constants as [`Bundle::with_shared_constants`] does, but into a file; `places` has the offsets of an existing object.
    ///
    /// # Errors
    /// `Code::OtherWeights` if the constants do not fit those offsets.
    pub fn with_weights_in_file(mut self, initial: &[Bytes], places: Option<&WeightsLayout>) -> Result<Bundle> {
        let programs = || self.variants.iter().flat_map(|(programs, _)| programs);
        let pieces = |p: &Program| p.weights.iter().map(|(_, bytes)| bytes.clone()).collect();
        let pieces: Vec<Vec<Bytes>> = programs().map(pieces).collect();
        let places = places.map_or_else(|| WeightsLayout::assign_offsets(&pieces, initial), WeightsLayout::clone);
        self.weights = places.pieces_by_offset(&pieces, initial)?;
        let moving = self.variants.iter_mut().flat_map(|(programs, _)| programs);
        for (program, to) in moving.zip(&places.programs) {
            program.move_weights(to);
        }
        let starts = self.face.state.iter().zip(&places.starts).zip(initial);
        self.starts = starts
            .map(|((v, &from), value)| StateInitializer { to: v.offset, from, bytes: value.len() as u64 })
            .collect();
        self.face.weights_bytes = places.bytes;
        let key = self.key();
        self.face.file = Some(WeightsFile { key, places });
        Ok(self)
    }

    /// The content of the weights file, if constants are in a file.
    pub fn weights_file_content(&self) -> Option<Pieces> {
        let file = self.face.file.as_ref()?;
        let mut content = Pieces::from(file.header().to_vec());
        for (at, bytes) in &self.weights {
            content.fill(HEADER_BYTES + at);
            content.push(bytes.clone());
        }
        content.fill(file.file_bytes());
        Some(content)
    }

    /// Computes the hash of everything that code and weights file must agree on.
    fn key(&self) -> [u8; KEY_BYTES] {
        let mut text = Hashed(blake3::Hasher::new());
        // a hasher takes everything
        let _ = self.hash_into(&mut text);
        *text.0.finalize().as_bytes()
    }

    fn hash_into(&self, out: &mut Hashed) -> fmt::Result {
        write!(out, "{} {:?}", self.face.weights_bytes, self.starts)?;
        for program in self.variants.iter().flat_map(|(programs, _)| programs) {
            let types = program.args.iter().chain(&program.results).map(|t| (t.dtype, &t.dims)).collect::<Vec<_>>();
            let state = program.state.iter().map(|v| (v.info.dtype, &v.info.dims, v.offset, v.changed));
            write!(out, "\n{types:?} {:?}\n{:?}\n", state.collect::<Vec<_>>(), program.buffers)?;
            for kernel in program.kernels.values() {
                // names are for people
                let nameless = Kernel { label: String::new(), insts: Vec::new(), provenance: None, ..kernel.clone() };
                writeln!(out, "{nameless:?}")?;
            }
            writeln!(out, "{:?}", program.steps)?;
        }
        Ok(())
    }
}

/// A writer that hashes text instead of storing it.
struct Hashed(blake3::Hasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[u8]) -> Bytes {
        Bytes::copy_from_slice(numbers)
    }

    #[test]
    fn programs_share_and_equal_arrays_of_one_stay_apart() {
        let (zeros, ones) = (bytes(&[0; 8]), bytes(&[1; 8]));
        let train = vec![zeros.clone(), ones.clone(), zeros.clone()];
        let predict = vec![zeros.clone(), zeros.clone()];
        let places = WeightsLayout::assign_offsets(&[train.clone(), predict.clone()], std::slice::from_ref(&ones));
        assert_eq!(places.programs, [vec![0, 64, 128], vec![0, 128]]);
        assert_eq!((&places.starts[..], places.bytes), (&[64][..], 136));
        let filled = places.pieces_by_offset(&[train, predict], &[ones]).expect("they fit");
        assert_eq!(filled.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 64, 128]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let places = WeightsLayout { programs: vec![vec![0, 64], vec![64]], starts: vec![], bytes: 72 };
        let of =
            |a: &[u8], b: &[u8], c: &[u8]| places.pieces_by_offset(&[vec![bytes(a), bytes(b)], vec![bytes(c)]], &[]);
        assert!(of(&[1; 64], &[2; 8], &[2; 8]).is_ok());
        assert!(of(&[1; 64], &[2; 8], &[3; 8]).is_err(), "one place has two arrays");
        assert!(of(&[1; 65], &[2; 8], &[2; 8]).is_err(), "an array reaches into the next");
        assert!(of(&[1; 64], &[2; 9], &[2; 9]).is_err(), "an array reaches beyond the end");
        assert!(places.pieces_by_offset(&[vec![bytes(&[1; 64])]], &[]).is_err(), "an array is missing");
    }
}
