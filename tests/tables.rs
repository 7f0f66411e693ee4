//! Lookup tables that are not constants are refused with the code that says why; `tests/variables.rs` judges those that are.
mod common;

use common::{path, said, tfaot};

/// A graph of TensorFlow 1 with one table, and what fills it.
fn graph(key: &str, value: &str, fill: &str) -> String {
    format!(
        r#"node {{ name: "t" op: "HashTableV2" attr {{ key: "key_dtype" value {{ type: {key} }} }} attr {{ key: "value_dtype" value {{ type: {value} }} }} }}
        node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: {key} }} }} attr {{ key: "shape" value {{ shape {{ dim {{ size: 3 }} }} }} }} }}
        node {{ name: "d" op: "Const" attr {{ key: "dtype" value {{ type: {value} }} }} attr {{ key: "value" value {{ tensor {{ dtype: {value} tensor_shape {{ }} }} }} }} }}
        node {{ name: "y" op: "LookupTableFindV2" input: "t" input: "x" input: "d" attr {{ key: "Tin" value {{ type: {key} }} }} attr {{ key: "Tout" value {{ type: {value} }} }} }}
        {fill}"#
    )
}

/// Two keys, both 7, and the values 1 and 2.
const TWICE: &str = r#"
    node { name: "k" op: "Const" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 7 int64_val: 7 } } } }
    node { name: "v" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }
    node { name: "fill" op: "InitializeTableV2" input: "t" input: "k" input: "v" attr { key: "Tkey" value { type: DT_INT64 } } attr { key: "Tval" value { type: DT_FLOAT } } }"#;

/// The same, but the keys are fed.
const FED: &str = r#"
    node { name: "k" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "fill" op: "InitializeTableV2" input: "t" input: "k" input: "k" attr { key: "Tkey" value { type: DT_INT64 } } attr { key: "Tval" value { type: DT_INT64 } } }"#;

fn refused(args: &[&str], code: &str, why: &str) {
    let output = tfaot(args);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(code) && said.contains(why), "{said}");
}

#[test]
fn tables_whose_contents_are_not_known_are_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("graph.pbtxt").display().to_string();
    let cases = [
        ("DT_INT64", "DT_FLOAT", "", "TFA0114", "nothing in the file fills it"),
        ("DT_INT64", "DT_FLOAT", TWICE, "TFA0114", "two values for the key 7"),
        ("DT_INT64", "DT_INT64", FED, "TFA0114", "`fill` fills it with what is no constant"),
        ("DT_INT64", "DT_STRING", "", "TFA0103", "value_dtype of the table is string"),
    ];
    for (key, value, fill, code, why) in cases {
        std::fs::write(&file, graph(key, value, fill)).expect("a writable folder");
        refused(&["check", &file, "--fetch", "y"], code, why);
    }
}

#[test]
fn a_call_that_changes_a_table_is_refused() {
    let model = path("testdata/modules/tables/saved_model").display().to_string();
    let told = "LookupTableInsertV2 changes a table";
    refused(&["check", &model, "--signature", "change"], "TFA0111", told);
    let out = tempfile::tempdir().expect("a scratch folder");
    let out = out.path().display().to_string();
    refused(&["compile", &model, "--signature", "change", "--signature", "find", "-o", &out], "TFA0111", told);
}
