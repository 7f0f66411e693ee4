//! C identifiers for tensors.
use std::collections::HashSet;

/// Keywords of C and C++, and names that the generated header uses.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "constexpr",
    "const_cast",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// Whether a word is a keyword of C or C++, or used by the generated header.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// A valid C and C++ identifier for each name, in order, all different.
///
/// Characters that identifiers can't have become `_`, a final `:0` is dropped, and repeated names get a number as their suffix.
pub fn c_field_names(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        let base = identifier(name);
        let mut field = base.clone();
        let mut n = 1;
        while !taken.insert(field.clone()) {
            n += 1;
            field = format!("{base}_{n}");
        }
        out.push(field);
    }
    out
}

fn identifier(name: &str) -> String {
    let name = name.strip_suffix(":0").unwrap_or(name);
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        // names with two underscores in a row are reserved in C++
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    let bare = out.trim_matches('_');
    if bare.is_empty() {
        return "tensor".to_string();
    }
    if bare.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("t{bare}");
    }
    if is_reserved(bare) { format!("{bare}_") } else { bare.to_string() }
}
