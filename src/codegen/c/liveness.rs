//! The lines of a function that matter for what it does: others would be variables that compilers warn of.
use std::collections::{HashMap, HashSet};

/// An instruction of a function.
pub struct IrLine<'t> {
    /// The value that it gives.
    pub name: Option<&'t str>,
    /// The text behind that.
    pub right: &'t str,
    /// The number of its block.
    pub block: usize,
}

/// A name in a line, with the text on both sides.
pub struct Mention<'t> {
    pub before: &'t str,
    pub name: &'t str,
    pub after: &'t str,
}

/// The values that a line names; labels and types are left out.
pub fn mentions(right: &str) -> impl Iterator<Item = Mention<'_>> {
    let places = right.match_indices('%').map(|(at, _)| at);
    let mention = move |at: usize| {
        let rest = &right[at + 1..];
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-');
        let (name, after) = rest.split_at(rest.find(is_other).unwrap_or(rest.len()));
        Mention { before: &right[..at], name, after }
    };
    places.map(mention).filter(|m| !m.before.ends_with("label ") && m.name != "tfaot.size")
}

/// Whether an instruction does nothing but give a value.
pub fn is_pure(right: &str) -> bool {
    !right.contains("call ") || right.contains("@llvm.")
}

/// The variable that a store writes, where it writes one of `variables`.
pub fn stored<'t>(right: &'t str, variables: &HashSet<String>) -> Option<&'t str> {
    let (_, name) = right.strip_prefix("store ")?.rsplit_once(", ptr %")?;
    variables.contains(name).then_some(name)
}

/// Takes away the lines that give values to nothing that matters; gives the variables that nothing reads.
pub fn without_dead(lines: &mut Vec<IrLine>) -> HashSet<String> {
    let is_variable = |line: &&IrLine| line.right.starts_with("alloca ") && !line.right.starts_with("alloca [");
    let variables: HashSet<String> =
        lines.iter().filter(is_variable).filter_map(|line| line.name).map(str::to_string).collect();
    // the lines to keep where a value is read: that of the value, or the stores to the variable
    let mut makers: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut open = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match (line.name, stored(line.right, &variables)) {
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
        let target = stored(lines[i].right, &variables);
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
