//! Functions over one state by the command line: calls in order against TensorFlow's answers, by both engines.
use crate::common::{npz, path, said, succeed, tfaot, tolerance::departure};
use serde_json::Value;
use std::path::Path;

/// Folders of `testdata/modules` have a SavedModel, and calls with TensorFlow's answers.
const MODULES: [&str; 3] = ["variables", "flow", "embeddings"];

fn model(name: &str) -> String {
    path("testdata/modules").join(name).join("saved_model").display().to_string()
}

fn calls(name: &str) -> String {
    path("testdata/modules").join(name).join("calls.jsonl").display().to_string()
}

#[test]
fn calls_in_order_give_what_tensorflow_gives() {
    for name in MODULES {
        let document = succeed(&["verify", &model(name), "--calls", &calls(name), "--json", "-q"]);
        let document: Value = serde_json::from_str(&document).expect("JSON");
        let all = document["comparisons"].as_array().expect("a list");
        let with = |what: &str| all.iter().filter(|c| c["with"] == what).count();
        let lines = std::fs::read_to_string(calls(name)).expect("calls").lines().count();
        assert!(
            document["ok"] == true && with("expected") >= lines && with("interpreter") > with("expected"),
            "{document:#}"
        );
    }
}

#[test]
fn lists_are_as_long_as_values_say() {
    let document = succeed(&["verify", &model("lists"), "--calls", &calls("lists"), "--json", "-q"]);
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let all = document["comparisons"].as_array().expect("a list");
    let with = |what: &str| all.iter().filter(|c| c["with"] == what).count();
    assert!(document["ok"] == true && with("expected") == 33 && with("interpreter") == 33, "{document:#}");
}

/// What `verify` says of the calls of a module, with these flags.
fn verified(name: &str, more: &[&str]) -> (bool, usize, usize) {
    let args = ["verify", &model(name), "--calls", &calls(name), "--json", "-q"];
    let document: Value = serde_json::from_str(&succeed(&[&args[..], more].concat())).expect("JSON");
    let all = document["comparisons"].as_array().expect("a list");
    let with = |what: &str| all.iter().filter(|c| c["with"] == what).count();
    (document["ok"] == true, with("expected"), with("interpreter"))
}

/// Keys that calls add and take out, the list of all keys in TensorFlow's order, and calls of several numbers of keys by one object.
#[test]
fn tables_change_from_call_to_call() {
    for room in [&[][..], &["--bound", "600"]] {
        let flags = [&["--dim", "batch=1..16"], room].concat();
        assert_eq!(verified("changing_tables", &flags), (true, 93, 108), "{room:?}");
    }
}

#[test]
fn variables_grow_from_call_to_call() {
    for room in [&[][..], &["--bound", "12"]] {
        assert_eq!(verified("growing_variables", room), (true, 72, 82), "{room:?}");
    }
    let args = ["verify", &model("growing_variables"), "--calls", &calls("growing_variables"), "--bound", "6"];
    let output = crate::common::tfaot(&args);
    let said = crate::common::said(&output);
    assert!(!output.status.success() && said.contains("error[TFA0008]"), "{said}");
}

/// The calls of a module with results to be written, beside its inputs.
fn with_outputs(name: &str, folder: &Path) -> Vec<(String, String)> {
    let mut lines = String::new();
    let mut files = Vec::new();
    for (i, line) in std::fs::read_to_string(calls(name)).expect("calls").lines().enumerate() {
        let mut call: Value = serde_json::from_str(line).expect("a call a line");
        let beside = |key: &str| call[key].as_str().map(|file| path("testdata/modules").join(name).join(file));
        let (inputs, expect) = (beside("inputs"), beside("expect").expect("an answer"));
        call["inputs"] = inputs.map_or(Value::Null, |file| file.display().to_string().into());
        call["expect"] = Value::Null;
        call["outputs"] = format!("got{i}.npz").into();
        lines += &format!("{call}\n");
        files.push((format!("got{i}.npz"), expect.display().to_string()));
    }
    std::fs::write(folder.join("calls.jsonl"), lines).expect("written");
    files
}

#[test]
fn both_engines_write_results_of_calls() {
    for (name, engine) in MODULES.iter().zip(["native", "interpreter"]) {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let files = with_outputs(name, folder.path());
        let file = folder.path().join("calls.jsonl").display().to_string();
        succeed(&["run", &model(name), "--calls", &file, "--engine", engine, "-q"]);
        for (got, want) in files {
            let got = npz(&folder.path().join(got));
            for (key, want) in npz(Path::new(&want)) {
                assert_eq!(departure(&got[&key], &want), None, "{name} {key}");
            }
        }
    }
}

#[test]
fn a_wrong_answer_is_told_with_its_call() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let lines = std::fs::read_to_string(calls("variables")).expect("calls");
    let mut all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a call a line")).collect();
    for key in ["inputs", "expect"] {
        for call in &mut all {
            let file =
                call[key].as_str().map(|file| path("testdata/modules/variables").join(file).display().to_string());
            call[key] = file.map_or(Value::Null, Value::from);
        }
    }
    // the calls behind it have another state
    all.remove(0);
    let text: String = all.iter().map(|call| format!("{call}\n")).collect();
    let file = folder.path().join("calls.jsonl");
    std::fs::write(&file, text).expect("written");
    let output = tfaot(&["verify", &model("variables"), "--calls", &file.display().to_string(), "-q"]);
    let text = said(&output);
    assert!(output.status.code() == Some(1) && text.contains("`call ") && text.contains("differs"), "{text}");
}

#[test]
fn a_line_that_is_no_call_is_told() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("calls.jsonl");
    for (line, told) in [
        ("{\"inputs\":\"x.npz\"", "line 1"),
        ("{\"signature\":\"no_such\"}", "no_such"),
        ("{\"input\":\"x.npz\"}", "there is no key `input`"),
    ] {
        std::fs::write(&file, line).expect("written");
        let output = tfaot(&["verify", &model("variables"), "--calls", &file.display().to_string(), "-q"]);
        let text = said(&output);
        assert!(output.status.code() == Some(1) && text.contains(told), "{text}");
    }
}

#[test]
fn every_signature_becomes_one_object() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().display().to_string();
    succeed(&[
        "compile",
        &model("variables"),
        "--signature",
        "all",
        "-q",
        "--name",
        "m",
        "-o",
        &out,
        "--emit",
        "obj,header,metadata,cpp",
    ]);
    let facts: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("m.json")).expect("written")).expect("JSON");
    let header = std::fs::read_to_string(folder.path().join("m.h")).expect("written");
    assert_eq!(facts["abi_version"], 1);
    let entries = facts["functions"].as_array().expect("a list");
    assert!(entries.len() > 1);
    for entry in entries {
        let function = entry["symbol"].as_str().expect("a name");
        let state = if entry["changes"] == Value::Array(vec![]) { "const m_state *state" } else { "m_state *state" };
        let declared = header.lines().find(|line| line.starts_with(&format!("int {function}("))).expect("declared");
        assert!(declared.contains(&format!(", {state}, ")), "{declared}");
    }
    assert!(header.contains("int m_init(m_state *state);"), "{header}");
}
