//! Lookup tables that are refused, with the code that says why, and calls that fail. `tests/suite/variables.rs` judges tables that are constants,
//! `tests/suite/calls.rs` those that calls change.
use crate::common::{said, tfaot};
use npyz::WriterBuilder;

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

/// A table of two keys, which a call adds to and then looks its keys up in.
fn growing(op: &str, marks: &str) -> String {
    let types =
        r#"attr { key: "key_dtype" value { type: DT_INT64 } } attr { key: "value_dtype" value { type: DT_FLOAT } }"#;
    let both = |k: &str, v: &str| {
        format!(r#"attr {{ key: "{k}" value {{ type: DT_INT64 }} }} attr {{ key: "{v}" value {{ type: DT_FLOAT }} }}"#)
    };
    let fed = |name: &str, dtype: &str| {
        format!(
            r#"node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }} attr {{ key: "shape" value {{ shape {{ dim {{ size: 3 }} }} }} }} }}"#
        )
    };
    let key = |name: &str, value: i64| {
        format!(
            r#"node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT64 }} }} attr {{ key: "value" value {{ tensor {{ dtype: DT_INT64 tensor_shape {{ }} int64_val: {value} }} }} }} }}"#
        )
    };
    [
        format!(r#"node {{ name: "t" op: "{op}" {marks} {types} }}"#),
        key("empty", -1),
        key("gone", -2),
        fed("k", "DT_INT64"),
        fed("v", "DT_FLOAT"),
        r#"node { name: "d" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }"#.to_string(),
        format!(r#"node {{ name: "add" op: "LookupTableInsertV2" input: "t" input: "k" input: "v" {} }}"#, both("Tin", "Tout")),
        format!(r#"node {{ name: "y" op: "LookupTableFindV2" input: "t" input: "k" input: "d" input: "^add" {} }}"#, both("Tin", "Tout")),
        format!(r#"node {{ name: "all" op: "LookupTableExportV2" input: "t" input: "^add" {} }}"#, both("Tkeys", "Tvalues")),
    ]
    .join("\n")
}

/// What `run` says of a call with these keys.
fn call(graph: &str, keys: [i64; 3], args: &[&str]) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("g.pbtxt"), graph).expect("a writable folder");
    let mut npz = npyz::npz::NpzWriter::create(at("in.npz")).expect("it is made");
    let options = || Default::default();
    let mut writer =
        npz.array("k:0", options()).expect("a file").default_dtype().shape(&[3]).begin_nd().expect("begun");
    writer.extend(keys).expect("elements");
    writer.finish().expect("whole");
    let mut writer =
        npz.array("v:0", options()).expect("a file").default_dtype().shape(&[3]).begin_nd().expect("begun");
    writer.extend([1f32, 2.0, 3.0]).expect("elements");
    writer.finish().expect("whole");
    drop(npz);
    let (file, inputs) = (at("g.pbtxt"), at("in.npz"));
    let output = tfaot(&[&["run", &file, "--inputs", &inputs, "--fetch", "y"], args].concat());
    (output.status.success(), said(&output))
}

#[test]
fn a_call_that_adds_more_keys_than_there_is_room_for_fails() {
    let graph = growing("MutableHashTableV2", "");
    for engine in ["native", "interpreter"] {
        let (fine, told) = call(&graph, [1, 2, 1], &["--engine", engine, "--bound", "t=2"]);
        assert!(fine, "{engine}: {told}");
        let (fine, told) = call(&graph, [1, 2, 3], &["--engine", engine, "--bound", "t=2"]);
        assert!(!fine && told.contains("error[TFA0008]"), "{engine}: {told}");
    }
}

#[test]
fn a_key_that_marks_places_of_a_dense_table_fails_where_it_is_checked() {
    let graph = growing("MutableDenseHashTableV2", r#"input: "empty" input: "gone""#);
    for engine in ["native", "interpreter"] {
        assert!(call(&graph, [1, 2, 1], &["--engine", engine, "--checked"]).0, "{engine}");
        let (fine, told) = call(&graph, [1, -2, 3], &["--engine", engine, "--checked"]);
        assert!(!fine && told.contains("error[TFA0011]") && told.contains("a key marks"), "{engine}: {told}");
    }
}

#[test]
fn changes_that_are_not_supported_are_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("graph.pbtxt").display().to_string();
    let dense = growing("MutableDenseHashTableV2", r#"input: "empty" input: "gone""#);
    std::fs::write(&file, dense).expect("a writable folder");
    refused(&["check", &file, "--fetch", "all"], "TFA0102", "a dense table lists its places");
    let fill = TWICE.replace("int64_val: 7 int64_val: 7", "int64_val: 7 int64_val: 8");
    let text = graph("DT_INT64", "DT_FLOAT", &fill).replace(r#"input: "d""#, r#"input: "d" input: "^fill""#);
    std::fs::write(&file, text).expect("a writable folder");
    refused(&["check", &file, "--fetch", "y"], "TFA0111", "InitializeTableV2 changes a table");
}
