//! Checkpoints: `PREFIX.index` maps names to tensors, whose bytes are in the shards `PREFIX.data-00000-of-00001` etc.
//!
//! Source: TensorFlow's `tensor_bundle.h` and `tensor_bundle.proto`. Tensors stay slices of the mapped files.
mod crc32c;
mod table;

use super::attr_value::read_shape;
use super::source::read_file;
use super::wire::WireReader;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::TfType;
use crate::tensor::{DType, Tensor, element_count};
use bytes::Bytes;
use indexmap::IndexMap;
use std::path::{Path, PathBuf};

/// Maximum number of shards.
const MOST_SHARDS: usize = 1 << 12;

/// Size of the checksum between the length and the bytes of a string.
const LENGTH_CHECKSUM_BYTES: usize = 4;

/// Type, shape and location of a tensor.
#[derive(Clone, Debug, Default)]
struct Entry {
    dtype: i32,
    dims: Option<Vec<u64>>,
    shard: usize,
    offset: u64,
    size: u64,
    crc: u32,
    sliced: bool,
}

/// An opened checkpoint: the index, and the mapped shards.
pub struct Checkpoint {
    entries: IndexMap<String, Entry>,
    shards: Vec<Bytes>,
}

impl Checkpoint {
    /// Opens the checkpoint with this prefix; `None` if there is none. Errors: `Io`, `BadEncoding`, `UnsupportedCase`.
    pub fn open(prefix: &Path) -> Result<Option<Checkpoint>> {
        let index = beside(prefix, ".index");
        if !index.is_file() {
            return Ok(None);
        }
        let mut entries = IndexMap::new();
        let mut shards = 1;
        for (key, value) in table::read_entries(&read_file(&index)?)? {
            let key = String::from_utf8(key);
            let key = key.map_err(|_| Error::user(Code::BadEncoding, "a name in the checkpoint is no UTF-8"))?;
            if key.is_empty() {
                shards = read_header(&value)?;
            } else {
                entries.insert(key, read_entry(&value)?);
            }
        }
        let name = |i: usize| beside(prefix, &format!(".data-{i:05}-of-{shards:05}"));
        let shards = (0..shards).map(|i| read_file(&name(i))).collect::<Result<_>>()?;
        Ok(Some(Checkpoint { entries, shards }))
    }

    /// The tensor called `name`; `None` if there is none. Errors: `BadEncoding` for a damaged checkpoint, `UnsupportedCase` for
    /// variables stored in slices, `UnsupportedType` for values that are not arrays.
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let told = |code: Code, what: &str| Error::user(code, format!("the checkpoint's tensor `{name}` {what}"));
        if entry.sliced {
            return Err(told(Code::UnsupportedCase, "is stored in slices; whole variables are supported"));
        }
        let TfType::Data(dtype) = TfType::from_number(entry.dtype).storage_type() else {
            return Err(told(Code::UnsupportedType, "is of a type that no array has"));
        };
        let dims = entry.dims.clone().ok_or_else(|| told(Code::BadEncoding, "has no fixed shape"))?;
        let want = element_count(&dims).and_then(|n| n.checked_mul(dtype.bytes() as u64));
        let start = usize::try_from(entry.offset).ok();
        let end = entry.offset.checked_add(entry.size).and_then(|e| usize::try_from(e).ok());
        let range = start.zip(end).filter(|_| want == Some(entry.size));
        let shard = self.shards.get(entry.shard);
        let bytes = shard.zip(range).filter(|(s, r)| r.1 <= s.len()).map(|(s, r)| s.slice(r.0..r.1));
        let bytes = bytes.ok_or_else(|| told(Code::BadEncoding, "lies outside of its file or has another size"))?;
        if !crc32c::matches_masked(entry.crc, &[&bytes]) {
            return Err(told(Code::BadEncoding, "has a wrong checksum"));
        }
        let damaged = dtype == DType::Pred && bytes.iter().any(|&b| b > 1);
        let bytes = if damaged { bytes.iter().map(|&b| u8::from(b != 0)).collect() } else { bytes };
        Ok(Some(Tensor::new(dtype, dims, bytes)))
    }

    /// The scalar string called `name`; `None` if there is none. Errors: `BadEncoding` if it is damaged or not a scalar string.
    pub fn string(&self, name: &str) -> Result<Option<Bytes>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let read = || {
            let start = usize::try_from(entry.offset).ok()?;
            let end = start.checked_add(usize::try_from(entry.size).ok()?)?;
            let shard = self.shards.get(entry.shard).filter(|s| end <= s.len())?;
            // the length as a varint, a checksum of the length, and the bytes
            let (length, at) = table::varint(&shard[start..end])?;
            let bytes = start.checked_add(at)?.checked_add(LENGTH_CHECKSUM_BYTES).filter(|at| *at <= end)?;
            let whole = TfType::from_number(entry.dtype) == TfType::String && !entry.sliced;
            let one = entry.dims.as_ref().is_some_and(Vec::is_empty) && (end - bytes) as u64 == length;
            let length = u32::try_from(length).ok().filter(|_| whole && one)?.to_le_bytes();
            let parts = [&length[..], &shard[bytes - LENGTH_CHECKSUM_BYTES..end]];
            crc32c::matches_masked(entry.crc, &parts).then(|| shard.slice(bytes..end))
        };
        let damaged = || Error::user(Code::BadEncoding, format!("the checkpoint's string `{name}` is damaged"));
        read().ok_or_else(damaged).map(Some)
    }
}

fn beside(prefix: &Path, end: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Parses the header and returns the number of shards. Errors: `UnsupportedCase` for big-endian shards.
fn read_header(value: &Bytes) -> Result<usize> {
    let mut reader = WireReader::new(value, "BundleHeaderProto");
    let mut shards = 1;
    while let Some(field) = reader.next()? {
        match field.number {
            1 => shards = usize::try_from(field.varint()?).unwrap_or(usize::MAX),
            2 if field.varint()? != 0 => {
                return Err(Error::user(Code::UnsupportedCase, "the checkpoint is big-endian; little-endian is read"));
            }
            _ => {}
        }
    }
    if (1..=MOST_SHARDS).contains(&shards) {
        Ok(shards)
    } else {
        Err(Diagnostic::new(Code::BadEncoding, format!("a checkpoint of {shards} files")).into())
    }
}

fn read_entry(value: &Bytes) -> Result<Entry> {
    let mut reader = WireReader::new(value, "BundleEntryProto");
    let mut entry = Entry { dims: Some(Vec::new()), ..Entry::default() };
    while let Some(field) = reader.next()? {
        match field.number {
            1 => entry.dtype = field.int32()?,
            2 => entry.dims = read_shape(field.message("TensorShapeProto")?)?.fixed(),
            3 => entry.shard = usize::try_from(field.varint()?).unwrap_or(usize::MAX),
            4 => entry.offset = field.varint()?,
            5 => entry.size = field.varint()?,
            6 => field.for_each_fixed::<4>(|v| entry.crc = u32::from_le_bytes(v))?,
            7 => entry.sliced = true,
            _ => {}
        }
    }
    Ok(entry)
}
