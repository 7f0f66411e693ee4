//! Registrations of ops for XLA's CPU device in TensorFlow, read from `compilability.tsv`: kernels with their types, compile-time
//! constant inputs, allow-list groups, resource operations. The head of the file states its source.
use crate::opdef::{self, type_bit};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Facts about one op registered for XLA.
#[derive(Debug)]
pub struct OpRegistration {
    /// The allow-list groups (`--tf_xla_ops_to_cluster`) that hold the op.
    pub groups: Vec<&'static str>,
    /// Kernels of the op; a node needs one that fits.
    pub kernels: Vec<KernelRegistration>,
    /// The names of the inputs whose values must be known at compile time.
    pub constants: Vec<&'static str>,
    /// Whether the op needs only the shapes of its inputs.
    pub is_metadata: bool,
    /// How the op accesses a resource, and the kind of the resource.
    pub resource: Option<(ResourceAccess, ResourceKind)>,
}

/// One kernel registered for an op.
#[derive(Debug)]
pub struct KernelRegistration {
    /// The kernel's label, which a node selects by the attribute `_kernel`.
    pub label: &'static str,
    /// By type attribute: the allowed types, as bits of [`type_bit`].
    pub types: Vec<(&'static str, u64)>,
}

/// Kinds of access to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceAccess {
    /// The operation reads the resource.
    Read,
    /// The operation overwrites the resource.
    Write,
    /// The operation reads and writes, or may do either.
    ReadWrite,
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A variable of TensorFlow 2.
    Variable,
    /// A stack of TensorFlow 1.
    Stack,
    /// A TensorArray of TensorFlow 1.
    TensorArray,
}

/// The registration of `op`, if there is one.
pub fn find_registration(op: &str) -> Option<&'static OpRegistration> {
    registrations().get(op)
}

/// The ops of the allow-list group `name`; empty for an unknown name. `FUSIBLE` is the union of all groups.
pub fn ops_in_group(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    let inside =
        move |row: &OpRegistration| if name == "FUSIBLE" { !row.groups.is_empty() } else { row.groups.contains(&name) };
    op_names().iter().copied().filter(move |op| find_registration(op).is_some_and(inside))
}

/// Every registered op, sorted.
pub fn op_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| lines().filter_map(|l| l.split('\t').next()).collect())
}

/// Names of the types that some kernel allows for a type attribute; empty if there is no such attribute.
pub fn allowed_types(row: &OpRegistration, attr: &str) -> Vec<&'static str> {
    let bits = row.kernels.iter().flat_map(|k| &k.types).filter(|(name, _)| *name == attr).fold(0, |all, t| all | t.1);
    opdef::type_names(bits)
}

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("compilability.tsv").lines().filter(|l| !l.starts_with('#'))
}

fn registrations() -> &'static HashMap<&'static str, OpRegistration> {
    static TABLE: OnceLock<HashMap<&'static str, OpRegistration>> = OnceLock::new();
    TABLE.get_or_init(|| lines().filter_map(parse_row).collect())
}

fn parse_row(line: &'static str) -> Option<(&'static str, OpRegistration)> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let &[op, groups, kernels, constants, metadata, resource] = fields.as_slice() else { return None };
    let list = |text: &'static str| text.split(',').filter(|t| *t != "-").collect::<Vec<_>>();
    let kernels =
        if kernels == "none" { Vec::new() } else { kernels.split(" || ").map(parse_kernel).collect::<Option<_>>()? };
    let resource = match resource {
        "-" => None,
        told => Some(parse_access(told)?),
    };
    let row = OpRegistration {
        groups: list(groups),
        kernels,
        constants: list(constants),
        is_metadata: metadata == "m",
        resource,
    };
    Some((op, row))
}

fn parse_access(text: &str) -> Option<(ResourceAccess, ResourceKind)> {
    let (access, resource) = text.split_once('/')?;
    let access = match access {
        "Read" => ResourceAccess::Read,
        "Write" => ResourceAccess::Write,
        "ReadWrite" => ResourceAccess::ReadWrite,
        _ => return None,
    };
    let resource = match resource {
        "variable" => ResourceKind::Variable,
        "stack" => ResourceKind::Stack,
        "tensorarray" => ResourceKind::TensorArray,
        _ => return None,
    };
    Some((access, resource))
}

fn parse_kernel(text: &'static str) -> Option<KernelRegistration> {
    let (label, rest) = match text.strip_prefix("label=") {
        Some(rest) => rest.split_once(' ').unwrap_or((rest, "-")),
        None => ("", text),
    };
    if rest == "-" {
        return Some(KernelRegistration { label, types: Vec::new() });
    }
    let types = rest.split("; ").map(parse_type_constraint).collect::<Option<_>>()?;
    Some(KernelRegistration { label, types })
}

/// Parses a type constraint: `T=f32,s32` or `T=ALL+resource`.
fn parse_type_constraint(text: &'static str) -> Option<(&'static str, u64)> {
    let (attr, types) = text.trim().split_once('=')?;
    let mut bits = 0;
    for name in types.split([',', '+']) {
        bits |= if name == "ALL" { numeric_types() } else { type_bit(opdef::parse_type(name.trim())?) };
    }
    Some((attr, bits))
}

/// The 25 element types with which the device computes.
fn numeric_types() -> u64 {
    const NOT: &[&str] = &["string", "resource", "variant", "q16", "qu16", "s2", "u2"];
    let all = opdef::all_types().filter(|(name, _)| !NOT.contains(name));
    all.fold(0, |bits, (_, number)| bits | type_bit(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        assert_eq!(registrations().len(), lines().count());
        assert_eq!(registrations().len(), 489);
        assert_eq!(numeric_types().count_ones(), 25);
    }

    #[test]
    fn groups_have_tensorflows_sizes() {
        let sizes = [("PW", 118), ("RED", 7), ("PWRED", 6), ("REDUCEWINDOW", 6), ("REDUCEWINDOWPW", 3), ("BN", 7)];
        for (name, size) in sizes.into_iter().chain([("Conv", 1), ("SORT", 1), ("MISC", 44)]) {
            assert_eq!(ops_in_group(name).count(), size, "{name}");
        }
        assert!(ops_in_group("FUSIBLE").all(|op| op != "MatMul"));
        assert_eq!(ops_in_group("NONE").count(), 0);
    }

    #[test]
    fn a_row_says_what_tensorflow_registers() {
        let reshape = find_registration("Reshape").expect("it is registered");
        assert_eq!(reshape.constants, ["shape"]);
        assert!(find_registration("Shape").is_some_and(|r| r.is_metadata));
        assert_eq!(
            find_registration("ReadVariableOp").and_then(|r| r.resource),
            Some((ResourceAccess::Read, ResourceKind::Variable))
        );
        assert!(find_registration("Placeholder").is_none());
        assert_eq!(find_registration("DataFormatVecPermute").map(|r| r.kernels.len()), Some(2));
    }
}
