//! Lookup tables: recognition of the nodes that create their handles, and the attributes in which the importer stores their contents.
use super::Node;

/// Attribute of a table's handle node with the table's keys, written by the importer.
pub const KEYS: &str = "keys";
/// Attribute of a table's handle node with the value of each key.
pub const VALUES: &str = "values";
/// Attribute of a table's handle node with the reason why its contents are unknown.
pub const CONTENTS_UNKNOWN: &str = "contents_unknown";

/// Whether a node creates the handle of a lookup table.
pub fn is_table(node: &Node) -> bool {
    let name = node.op.strip_prefix("Anonymous").or_else(|| node.op.strip_suffix("V2"));
    matches!(name, Some("HashTable" | "MutableHashTable" | "MutableHashTableOfTensors" | "MutableDenseHashTable"))
}
