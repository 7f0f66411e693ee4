//! Canonical protobuf wire format, as TensorFlow's deterministic serialization: fields by number, maps by key, lists of numbers packed.
//!
//! Equal messages have equal bytes, which are those that TensorFlow writes.
use crate::diag::{Code, Error, Result};
use crate::import::schema::{FieldFormat, FieldType, MessageOrMapEntry};
use crate::import::wire::{WireField, WireReader, WireValue, put_bytes, put_varint, put_varint_field};
use bytes::Bytes;

/// Maximum depth of nested messages.
const MOST_DEPTH: usize = 64;

/// Re-encodes `data`, a message of type `M`, in canonical form. Errors: `BadEncoding`.
pub fn encode<M: protobuf::MessageFull>(data: &Bytes) -> Result<Vec<u8>> {
    message(WireReader::new(data, "message"), &MessageOrMapEntry::message::<M>(), 0)
}

/// An encoded field, or a whole packed list.
struct Part {
    number: u32,
    /// The key, if the field is an entry of a map.
    key: Vec<u8>,
    bytes: Vec<u8>,
}

fn message(mut reader: WireReader, scope: &MessageOrMapEntry, depth: usize) -> Result<Vec<u8>> {
    if depth > MOST_DEPTH {
        return Err(Error::user(Code::BadEncoding, format!("messages nest deeper than {MOST_DEPTH} levels")));
    }
    let mut known: Vec<(u32, Option<FieldFormat>)> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut lists: Vec<(u32, Vec<u8>)> = Vec::new();
    while let Some(field) = reader.next()? {
        let number = field.number;
        if !known.iter().any(|k| k.0 == number) {
            known.push((number, scope.field_by_number(number).map(|(_, kind)| kind)));
        }
        let kind = known.iter().find(|k| k.0 == number).and_then(|k| k.1.as_ref());
        let mut bytes = Vec::new();
        match kind {
            Some(FieldFormat { kind: FieldType::Message(inner), map, .. }) => {
                let encoded = message(field.message("message")?, inner, depth + 1)?;
                put_bytes(&mut bytes, number, &encoded);
                let key = if *map { encoded } else { Vec::new() };
                parts.push(Part { number, key: map_key(key), bytes });
            }
            Some(kind) if kind.repeated && is_number(&kind.kind) => {
                let at = lists.iter().position(|l| l.0 == number).unwrap_or_else(|| {
                    lists.push((number, Vec::new()));
                    lists.len() - 1
                });
                packed(&field, &kind.kind, &mut lists[at].1)?;
            }
            kind => {
                if kind.is_some_and(|k| !k.repeated) {
                    parts.retain(|p| p.number != number);
                }
                write_verbatim(&field, &mut bytes);
                parts.push(Part { number, key: Vec::new(), bytes });
            }
        }
    }
    for (number, list) in lists.into_iter().filter(|l| !l.1.is_empty()) {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, number, &list);
        parts.push(Part { number, key: Vec::new(), bytes });
    }
    parts.sort_by(|a, b| (a.number, &a.key).cmp(&(b.number, &b.key)));
    Ok(parts.into_iter().flat_map(|p| p.bytes).collect())
}

/// The key of an encoded map entry, which is its first field.
fn map_key(entry: Vec<u8>) -> Vec<u8> {
    let data = Bytes::from(entry);
    let mut reader = WireReader::new(&data, "map entry");
    match reader.next() {
        Ok(Some(field)) if field.number == 1 => field.raw_bytes().unwrap_or_default().to_vec(),
        _ => Vec::new(),
    }
}

fn is_number(kind: &FieldType) -> bool {
    match kind {
        FieldType::Signed { .. }
        | FieldType::Unsigned { .. }
        | FieldType::F32
        | FieldType::F64
        | FieldType::Bool
        | FieldType::Enum(_) => true,
        FieldType::Text | FieldType::Bytes | FieldType::Message(_) | FieldType::Opaque => false,
    }
}

fn packed(field: &WireField, kind: &FieldType, out: &mut Vec<u8>) -> Result<()> {
    match kind {
        FieldType::F32 => field.for_each_fixed::<4>(|v| out.extend_from_slice(&v)),
        FieldType::F64 => field.for_each_fixed::<8>(|v| out.extend_from_slice(&v)),
        _ => field.for_each_number(|v| put_varint(out, v)),
    }
}

/// Writes a field unchanged.
fn write_verbatim(field: &WireField, out: &mut Vec<u8>) {
    match field.value {
        WireValue::Varint(v) => put_varint_field(out, field.number, v),
        WireValue::Bytes(v) => put_bytes(out, field.number, v),
        WireValue::Fixed32(v) => {
            put_varint(out, u64::from(field.number) << 3 | 5);
            out.extend_from_slice(&v.to_le_bytes());
        }
        WireValue::Fixed64(v) => {
            put_varint(out, u64::from(field.number) << 3 | 1);
            out.extend_from_slice(&v.to_le_bytes());
        }
    }
}

/// TensorFlow's hash of bytes: MurmurHash64A with TensorFlow's seed. Source: platform/hash.cc.
pub fn hash64(data: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = 0x00DE_CAFC_AFFE_u64 ^ (data.len() as u64).wrapping_mul(M);
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let mut k = [0; 8];
        k.copy_from_slice(word);
        let mut k = u64::from_le_bytes(k).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut tail = [0; 8];
        tail[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(tail)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::proto::tensorflow::GraphDef;

    #[test]
    fn order_and_packing_do_not_matter() {
        let one = "versions { producer: 1 } node { attr { key: \"b\" value { list { i: 1 i: 300 } } } attr { key: \"a\" value { b: true } } name: \"n\" }";
        let two = "node { name: \"n\" attr { key: \"a\" value { b: true } } attr { key: \"b\" value { list { i: [1, 300] } } } } versions { producer: 1 }";
        let bytes = |text: &str| {
            encode::<GraphDef>(&crate::import::from_text::<GraphDef>(text.as_bytes()).expect("it is read"))
                .expect("it is encoded")
        };
        assert_eq!(bytes(one), bytes(two));
        assert!(bytes(one).windows(5).any(|w| w == [0x1a, 3, 1, 0xac, 2]), "the list is packed");
    }

    #[test]
    fn hashes_are_those_of_murmur() {
        assert_eq!(hash64(b""), 9_328_806_548_029_283_899);
        assert_eq!(hash64(b"abcdefghijk"), 9_388_866_277_429_626_380);
    }
}
