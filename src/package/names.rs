//! C names of models, functions and struct members.
use crate::prepare::c_field_names;
use crate::tensor::{Sizes, TensorInfo};
use std::collections::HashSet;

/// Maximum length of a generated name; a name given by the user may be longer.
const LONGEST: usize = 60;

/// A valid C and C++ identifier that resembles `name`: `scope/in put:0` becomes `scope_in_put`.
pub fn identifier(name: &str) -> String {
    c_field_names(&[name.to_string()]).swap_remove(0)
}

/// Whether `text` is valid as a prefix of C names or as a struct member.
pub fn is_identifier(text: &str) -> bool {
    identifier(text) == text
}

/// Makes all `field`s valid and unique: keeps them if they are, else derives them from the tensors' names.
pub fn make_names_unique(infos: &mut [TensorInfo]) {
    let mut fields: Vec<String> = infos.iter().map(|i| i.field.clone()).collect();
    if fields.iter().any(String::is_empty) || c_field_names(&fields) != fields {
        fields = c_field_names(&infos.iter().map(|i| i.name.clone()).collect::<Vec<_>>());
    }
    for (info, field) in infos.iter_mut().zip(fields) {
        info.field = field;
    }
}

/// Names the members of the C structs after the arguments and results of the signature, if one was chosen.
pub fn name_after_signature(infos: &mut [TensorInfo]) {
    if infos.iter().any(|i| i.called.is_some()) {
        let fields = c_field_names(&infos.iter().map(|i| i.display_name().to_string()).collect::<Vec<_>>());
        infos.iter_mut().zip(fields).for_each(|(info, field)| info.field = field);
    }
}

/// Member names for the sizes.
pub fn size_member_names(sizes: &Sizes) -> Vec<String> {
    c_field_names(&sizes.all.iter().map(|s| s.name.clone()).collect::<Vec<_>>())
}

/// Suffixes for the C names of several functions, derived from their signatures' names so that functions, types and macros of the header
/// are distinct, even if case is ignored.
pub fn function_suffixes(signatures: &[&str]) -> Vec<String> {
    const RESERVED: [&str; 7] = ["info", "init", "selftest", "selftest_bytes", "state", "supported", "weights"];
    const KINDS: [&str; 4] = ["", "_args", "_results", "_sizes"];
    let mut taken: HashSet<String> = RESERVED.map(String::from).into();
    let one = |signature: &&str| {
        let mut name = identifier(signature);
        while KINDS.iter().any(|kind| taken.contains(&format!("{name}{kind}").to_lowercase())) {
            name.push('_');
        }
        taken.extend(KINDS.map(|kind| format!("{name}{kind}").to_lowercase()));
        name
    };
    signatures.iter().map(one).collect()
}

/// The model's name derived from its file: `models/My-Net.pb.gz` becomes `my_net`.
pub fn model_name_from_path(source: &str) -> String {
    let mut parts = source.rsplit('/').filter(|p| !p.is_empty() && *p != ".").peekable();
    let file = parts.next().unwrap_or("");
    let mut stem = file.split('.').next().unwrap_or(file);
    // generic file names say less than the folder's name; so do the version numbers of TensorFlow Serving
    while matches!(stem, "saved_model" | "model" | "frozen" | "graph") || is_version(stem) {
        match parts.next_if(|folder| *folder != "..") {
            Some(folder) => stem = folder,
            None => break,
        }
    }
    if !stem.contains(|c: char| c.is_ascii_alphanumeric()) {
        return "model".to_string();
    }
    let name: String = stem.to_lowercase().chars().take(LONGEST).collect();
    identifier(&name)
}

/// Whether a folder's name is a version number, such as `1` or `1723456789`.
fn is_version(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_names_that_nothing_else_has() {
        let all = function_suffixes(&["train", "Train", "predict_args", "predict", "info", "a b", "a/b"]);
        assert_eq!(all, ["train", "Train_", "predict_args", "predict_", "info_", "a_b", "a_b_"]);
    }

    #[test]
    fn models_are_named_by_their_files() {
        let cases = [
            ("a/My-Net.pb.gz", "my_net"),
            ("zoo/yamnet/model.json", "yamnet"),
            ("model.json", "model"),
            ("./model.json", "model"),
            ("../graph.pb", "graph"),
            ("serving/half_plus_two/1", "half_plus_two"),
            ("serving/half_plus_two/00000123/", "half_plus_two"),
            ("serving/half_plus_two/1/saved_model.pb", "half_plus_two"),
            ("a/Net/1/./model.json", "net"),
            ("1", "t1"),
            ("-", "model"),
            ("2x.pb", "t2x"),
            ("float.pb", "float_"),
        ];
        for (file, want) in cases {
            assert_eq!(model_name_from_path(file), want);
            assert!(is_identifier(want), "{want}");
        }
    }
}
