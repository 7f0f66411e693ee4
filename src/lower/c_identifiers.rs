//! C identifiers of arguments, results and variables.
use std::collections::HashSet;

const KEYWORDS: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "bool",
    "class",
    "namespace",
    "template",
    "this",
    "new",
    "delete",
    "operator",
    "private",
    "public",
    "protected",
    "true",
    "false",
];

/// C identifier made of a tensor's name: letters, digits and `_`, not beginning with a digit, no keyword of C or C++. The port `:0` is
/// omitted.
fn identifier(name: &str) -> String {
    let name = name.strip_suffix(":0").unwrap_or(name);
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) || out.starts_with('_') {
        out.insert(0, 't');
    }
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

/// A valid C identifier for each name, all different: repeated ones get the first free suffix `_2`, `_3` ….
pub(super) fn unique_identifiers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .map(|name| {
            let base = identifier(name);
            let mut field = base.clone();
            let mut n = 2;
            while !taken.insert(field.clone()) {
                field = format!("{base}_{n}");
                n += 1;
            }
            field
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_identifiers_and_differ() {
        let fields = super::unique_identifiers(["a/b:0", "a_b", "1x", "for", "a:1"].into_iter());
        assert_eq!(fields, ["a_b", "a_b_2", "t1x", "for_", "a_1"]);
    }
}
