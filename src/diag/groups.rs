//! Grouping of diagnostics by cause, because a graph of ten thousand nodes has few causes of failure.
use super::{Code, Diagnostic};
use std::collections::HashMap;

/// Number of nodes that a group's message names.
pub const NAMED: usize = 3;

/// Diagnostics with a common cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first diagnostic; its message holds for all, except for names, numbers and shapes.
    pub first: Diagnostic,
    /// The other diagnostics of the group, in their order.
    pub others: Vec<Diagnostic>,
}

impl Group {
    /// The number of nodes with the problem.
    pub fn nodes(&self) -> usize {
        1 + self.others.len()
    }

    /// The first nodes with their ops and functions, as text.
    pub fn named(&self) -> Vec<String> {
        std::iter::once(&self.first).chain(&self.others).take(NAMED).filter_map(node).collect()
    }

    /// The group as one diagnostic: the first one, with a note on the other nodes.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut told = self.first.clone();
        if self.others.is_empty() {
            return told;
        }
        told.message += &format!(" ({} nodes)", self.nodes());
        let named = self.named();
        let mut also = format!("so {}", named[1.min(named.len())..].join(", "));
        let more = self.nodes().saturating_sub(NAMED);
        if more > 0 {
            also += &format!(" and {more} more; `tfaot check --all` lists each");
        }
        told.notes.insert(0, also);
        told
    }
}

/// The node of a diagnostic as text.
fn node(d: &Diagnostic) -> Option<String> {
    let mut text = format!("`{}`", d.place.node.as_ref()?);
    if let Some(op) = &d.place.op {
        text += &format!(" ({op})");
    }
    if let Some(function) = &d.place.function {
        text += &format!(" in `{function}`");
    }
    Some(text)
}

/// Groups diagnostics by code and by message, ignoring names, numbers and shapes. The largest group comes first, equal ones in the order of
/// their first diagnostic. Diagnostics that concern no node are not grouped.
pub fn grouped(all: impl IntoIterator<Item = Diagnostic>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(Code, String), usize> = HashMap::new();
    for d in all {
        if d.place.node.is_some() {
            let next = groups.len();
            let place = *places.entry((d.code, cause(&d.message))).or_insert(next);
            if let Some(group) = groups.get_mut(place) {
                group.others.push(d);
                continue;
            }
        }
        groups.push(Group { first: d, others: Vec::new() });
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.nodes()));
    groups
}

/// A message without the parts that differ from node to node: text in backticks or brackets, and numbers that are not part of a name.
fn cause(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut until = None;
    for c in message.chars() {
        let in_word = out.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match until {
            Some(end) if c == end => until = None,
            Some(_) => {}
            None if c == '`' => until = Some('`'),
            None if c == '[' => until = Some(']'),
            None if c.is_ascii_digit() && !in_word => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_causes_are_one_group_and_most_nodes_come_first() {
        let d = |code, message: &str, node: &str| Diagnostic::new(code, message).at_node(node, "Op").help("do this");
        let all = [
            d(Code::UnsupportedOp, "Foo has no lowering", "a"),
            d(Code::ShapeMismatch, "f32[2,3] and f32[4] can't be added", "b"),
            d(Code::ShapeMismatch, "f32[7] and f32[1,2,3] can't be added", "c"),
            d(Code::ShapeMismatch, "f32[7] and f32[1] can't be added", "d"),
            d(Code::ShapeMismatch, "f32[7] and f32[1] can't be added", "e"),
            d(Code::UnsupportedOp, "Foo2D has no lowering", "f"),
            d(Code::UnsupportedOp, "Foo3D has no lowering", "g"),
            Diagnostic::new(Code::Io, "gone"),
            Diagnostic::new(Code::Io, "gone"),
        ];
        let groups = grouped(all);
        assert_eq!(groups.iter().map(Group::nodes).collect::<Vec<_>>(), [4, 1, 1, 1, 1, 1]);
        let told = groups[0].to_diagnostic();
        assert_eq!(told.message, "f32[2,3] and f32[4] can't be added (4 nodes)");
        assert_eq!(told.notes, ["so `c` (Op), `d` (Op) and 1 more; `tfaot check --all` lists each"]);
        assert_eq!(told.help.as_deref(), Some("do this"));
        assert_eq!(groups[1].to_diagnostic(), groups[1].first);
    }
}
