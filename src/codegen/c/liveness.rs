//! The lines of a function that matter for what it does: others would be variables that compilers warn of.
use std::collections::{HashMap, HashSet};

/// A line of LLVM text: an instruction with the value that it defines.
pub struct IrLine<'t> {
    /// The value that the instruction defines, if any.
    pub name: Option<&'t str>,
    /// The text after `=`: the instruction itself.
    pub right: &'t str,
    /// Number of the block that holds the instruction.
    pub block: usize,
}

/// An occurrence of a value's name in a line, with the text before and after it.
pub struct ValueMention<'t> {
    pub before: &'t str,
    pub name: &'t str,
    pub after: &'t str,
}

/// The values that occur in a line, without labels and types.
pub fn mentions(right: &str) -> impl Iterator<Item = ValueMention<'_>> {
    let places = right.match_indices('%').map(|(at, _)| at);
    let mention = move |at: usize| {
        let rest = &right[at + 1..];
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-');
        let (name, after) = rest.split_at(rest.find(is_other).unwrap_or(rest.len()));
        ValueMention { before: &right[..at], name, after }
    };
    places.map(mention).filter(|m| !m.before.ends_with("label ") && m.name != "tfaot.size")
}

/// Whether an instruction has no side effects.
pub fn is_pure(right: &str) -> bool {
    !right.contains("call ") || right.contains("@llvm.")
}

/// The stack variable that a store writes, if it is one of `variables`.
pub fn stored_variable<'t>(right: &'t str, variables: &HashSet<String>) -> Option<&'t str> {
    let (_, name) = right.strip_prefix("store ")?.rsplit_once(", ptr %")?;
    variables.contains(name).then_some(name)
}

/// Removes dead instructions, and returns the stack variables that are never read.
pub fn remove_dead_lines(lines: &mut Vec<IrLine>) -> HashSet<String> {
    let is_variable = |line: &&IrLine| line.right.starts_with("alloca ") && !line.right.starts_with("alloca [");
    let variables: HashSet<String> =
        lines.iter().filter(is_variable).filter_map(|line| line.name).map(str::to_string).collect();
    // the lines to keep where a value is read: that of the value, or the stores to the variable
    let mut makers: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut open = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match (line.name, stored_variable(line.right, &variables)) {
            (Some(name), _) if is_pure(line.right) && !line.right.starts_with("phi ") => {
                makers.entry(name).or_default().push(i);
            }
            (None, Some(variable)) => makers.entry(variable).or_default().push(i),
            _ => open.push(i),
        }
    }
    let mut kept: Vec<bool> = vec![false; lines.len()];
    open.iter().for_each(|&i| kept[i] = true);
    let mut read = HashSet::new();
    while let Some(i) = open.pop() {
        let target = stored_variable(lines[i].right, &variables);
        for mention in mentions(lines[i].right) {
            if target == Some(mention.name) && mention.after.is_empty() {
                continue;
            }
            if read.insert(mention.name) {
                for &maker in makers.get(mention.name).into_iter().flatten().filter(|&&maker| !kept[maker]) {
                    open.push(maker);
                }
                makers.get(mention.name).into_iter().flatten().for_each(|&maker| kept[maker] = true);
            }
        }
    }
    let unread = variables.iter().filter(|name| !read.contains(name.as_str())).cloned().collect();
    let mut kept = kept.into_iter();
    lines.retain(|_| kept.next().unwrap_or(true));
    unread
}
