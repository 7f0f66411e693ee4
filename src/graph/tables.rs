//! Lookup tables: the nodes that give their handles, and where what is known of their contents is written.
use super::Node;

/// The attribute of a table's handle that has its keys, written by the importer.
pub const KEYS: &str = "keys";
/// Attribute with the value of each key.
pub const VALUES: &str = "values";
/// Attribute with the reason why the contents of the table are not known.
pub const CONTENTS_UNKNOWN: &str = "contents_unknown";

/// Whether a node gives the handle of a lookup table.
pub fn is_table(node: &Node) -> bool {
    let name = node.op.strip_prefix("Anonymous").or_else(|| node.op.strip_suffix("V2"));
    matches!(name, Some("HashTable" | "MutableHashTable" | "MutableHashTableOfTensors" | "MutableDenseHashTable"))
}
