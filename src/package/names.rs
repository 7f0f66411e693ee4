//! C identifiers from TensorFlow's names.
use crate::tensor::TensorInfo;
use std::collections::BTreeSet;

/// Words that C99, C++17 or a widespread implementation keep for themselves.
const KEPT: &str = "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl \
    const const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export \
    extern false float for friend goto i386 if inline int linux long mutable namespace new noexcept not not_eq \
    nullptr operator or or_eq private protected public register reinterpret_cast restrict return short signed \
    sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid \
    typename union unix unsigned using virtual void volatile wchar_t while xor xor_eq NULL EOF errno";

/// The longest identifier that is made.
const LONGEST: usize = 60;

/// A valid C and C++ identifier that resembles `name`: `scope/in put:0` is `scope_in_put`.
pub fn identifier(name: &str) -> String {
    let name = name.strip_suffix(":0").unwrap_or(name);
    let mut out = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        // two underscores in a row are reserved in C++
        if out.len() < LONGEST && !(c == '_' && (out.is_empty() || out.ends_with('_'))) {
            out.push(c);
        }
    }
    out.truncate(out.trim_end_matches('_').len());
    let reserved = KEPT.split_whitespace().any(|word| word == out);
    match out.chars().next() {
        None => "t".to_string(),
        Some(c) if c.is_ascii_digit() => format!("t{out}"),
        Some(_) if reserved => format!("{out}_"),
        Some(_) => out,
    }
}

/// Makes every `field` valid and unique; fields that are both already stay as they are.
pub fn settle(infos: &mut [TensorInfo]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for info in infos {
        let wanted = if info.field.is_empty() { &info.name } else { &info.field };
        let base = if is_identifier(wanted) { wanted.clone() } else { identifier(wanted) };
        let mut field = base.clone();
        let mut n = 2;
        while !taken.insert(field.clone()) {
            field = format!("{base}_{n}");
            n += 1;
        }
        info.field = field;
    }
}

/// Whether `text` can be the name of a model or a member.
pub fn is_identifier(text: &str) -> bool {
    identifier(text) == text
}

/// The name of a model from its file: `models/My-Net.pb.gz` is `my_net`.
pub fn of_model(source: &str) -> String {
    let path = source.trim_end_matches('/');
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    // names that every model of a kind has say less than their folder
    let stem = match stem {
        "saved_model" | "model" | "frozen" | "graph" => {
            parts.next().filter(|p| !p.is_empty() && *p != ".").unwrap_or(stem)
        }
        other => other,
    };
    let name = identifier(stem).to_lowercase();
    if is_identifier(&name) && stem.contains(|c: char| c.is_ascii_alphanumeric()) { name } else { "model".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_valid() {
        let cases = [
            ("x:0", "x"),
            ("a/b c:1", "a_b_c_1"),
            ("2x", "t2x"),
            ("__a__b", "a_b"),
            ("float", "float_"),
            ("é", "t"),
            ("", "t"),
        ];
        for (name, want) in cases {
            assert_eq!(identifier(name), want);
            assert!(is_identifier(want), "{want}");
        }
        assert_eq!(of_model("a/My-Net.pb.gz"), "my_net");
        assert_eq!(of_model("zoo/yamnet/model.json"), "yamnet");
        assert_eq!(of_model("-"), "model");
    }
}
