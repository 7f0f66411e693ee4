//! C identifiers of results.
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

/// Letters, digits and `_` only, not beginning with a digit, no keyword of C; the port `:0` is left out.
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

/// One valid identifier a name, all different: a taken one gets the first free `_2`, `_3` ….
pub(super) fn fields<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
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
        let fields = super::fields(["a/b:0", "a_b", "1x", "for", "a:1"].into_iter());
        assert_eq!(fields, ["a_b", "a_b_2", "t1x", "for_", "a_1"]);
    }
}
