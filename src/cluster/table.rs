//! Registrations of TensorFlow for XLA's CPU device, from `compilability.tsv`: kernels with their types, compile-time constant inputs,
//! allow-list groups, resource operations. The file's head states its source.
use crate::opdef::{self, type_bit};
use std::collections::HashMap;
use std::sync::OnceLock;

/// An op that has a registration.
#[derive(Debug)]
pub struct OpRegistration {
    /// The groups of `--tf_xla_ops_to_cluster` that hold it.
    pub groups: Vec<&'static str>,
    /// Kernels registered for the op; any that fits a node will do.
    pub kernels: Vec<KernelRegistration>,
    /// The names of the inputs whose value must be known at compile time.
    pub constants: Vec<&'static str>,
    /// Whether it needs only the shapes of its inputs.
    pub is_metadata: bool,
    /// The access that the op makes to a resource, and the kind of the resource.
    pub resource: Option<(ResourceAccess, Resource)>,
}

/// One kernel.
#[derive(Debug)]
pub struct KernelRegistration {
    /// The kernel's label, which a node asks for with the attribute `_kernel`.
    pub label: &'static str,
    /// Type attributes with the set of types that they may have, as bits of [`type_bit`].
    pub types: Vec<(&'static str, u64)>,
}

/// Accesses to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceAccess {
    /// The operation reads.
    Read,
    /// The operation overwrites.
    Write,
    /// The operation does both, or may do either.
    ReadWrite,
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A variable.
    Variable,
    /// A stack of TensorFlow 1.
    Stack,
    /// A TensorArray.
    TensorArray,
}

/// The registration of `op`, if it has one.
pub fn find(op: &str) -> Option<&'static OpRegistration> {
    registrations().get(op)
}

/// The ops of the allow-list group `name`; none for a name that is no group. `FUSIBLE` are all groups together.
pub fn group(name: &str) -> impl Iterator<Item = &'static str> + '_ {
    let inside =
        move |row: &OpRegistration| if name == "FUSIBLE" { !row.groups.is_empty() } else { row.groups.contains(&name) };
    names().iter().copied().filter(move |op| find(op).is_some_and(inside))
}

/// Every op of the table, sorted.
pub fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| lines().filter_map(|l| l.split('\t').next()).collect())
}

/// The types that an attribute of `op` may have in some kernel, as names; empty where it has no such attribute.
pub fn types_of(row: &OpRegistration, attr: &str) -> Vec<&'static str> {
    let bits = row.kernels.iter().flat_map(|k| &k.types).filter(|(name, _)| *name == attr).fold(0, |all, t| all | t.1);
    opdef::type_names(bits)
}

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("compilability.tsv").lines().filter(|l| !l.starts_with('#'))
}

fn registrations() -> &'static HashMap<&'static str, OpRegistration> {
    static TABLE: OnceLock<HashMap<&'static str, OpRegistration>> = OnceLock::new();
    TABLE.get_or_init(|| lines().filter_map(row).collect())
}

fn row(line: &'static str) -> Option<(&'static str, OpRegistration)> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let &[op, groups, kernels, constants, metadata, resource] = fields.as_slice() else { return None };
    let list = |text: &'static str| text.split(',').filter(|t| *t != "-").collect::<Vec<_>>();
    let kernels =
        if kernels == "none" { Vec::new() } else { kernels.split(" || ").map(kernel).collect::<Option<_>>()? };
    let resource = match resource {
        "-" => None,
        told => Some(access(told)?),
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

fn access(text: &str) -> Option<(ResourceAccess, Resource)> {
    let (access, resource) = text.split_once('/')?;
    let access = match access {
        "Read" => ResourceAccess::Read,
        "Write" => ResourceAccess::Write,
        "ReadWrite" => ResourceAccess::ReadWrite,
        _ => return None,
    };
    let resource = match resource {
        "variable" => Resource::Variable,
        "stack" => Resource::Stack,
        "tensorarray" => Resource::TensorArray,
        _ => return None,
    };
    Some((access, resource))
}

fn kernel(text: &'static str) -> Option<KernelRegistration> {
    let (label, rest) = match text.strip_prefix("label=") {
        Some(rest) => rest.split_once(' ').unwrap_or((rest, "-")),
        None => ("", text),
    };
    if rest == "-" {
        return Some(KernelRegistration { label, types: Vec::new() });
    }
    let types = rest.split("; ").map(constraint).collect::<Option<_>>()?;
    Some(KernelRegistration { label, types })
}

/// `T=f32,s32` or `T=ALL+resource`.
fn constraint(text: &'static str) -> Option<(&'static str, u64)> {
    let (attr, types) = text.trim().split_once('=')?;
    let mut bits = 0;
    for name in types.split([',', '+']) {
        bits |= if name == "ALL" { numeric() } else { type_bit(opdef::parse_type(name.trim())?) };
    }
    Some((attr, bits))
}

/// The 25 element types that the device computes with.
fn numeric() -> u64 {
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
        assert_eq!(numeric().count_ones(), 25);
    }

    #[test]
    fn groups_have_tensorflows_sizes() {
        let sizes = [("PW", 118), ("RED", 7), ("PWRED", 6), ("REDUCEWINDOW", 6), ("REDUCEWINDOWPW", 3), ("BN", 7)];
        for (name, size) in sizes.into_iter().chain([("Conv", 1), ("SORT", 1), ("MISC", 44)]) {
            assert_eq!(group(name).count(), size, "{name}");
        }
        assert!(group("FUSIBLE").all(|op| op != "MatMul"));
        assert_eq!(group("NONE").count(), 0);
    }

    #[test]
    fn a_row_says_what_tensorflow_registers() {
        let reshape = find("Reshape").expect("it is registered");
        assert_eq!(reshape.constants, ["shape"]);
        assert!(find("Shape").is_some_and(|r| r.is_metadata));
        assert_eq!(find("ReadVariableOp").and_then(|r| r.resource), Some((ResourceAccess::Read, Resource::Variable)));
        assert!(find("Placeholder").is_none());
        assert_eq!(find("DataFormatVecPermute").map(|r| r.kernels.len()), Some(2));
    }
}
