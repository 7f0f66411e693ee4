//! The promises of the command line: exit codes, JSON, files that are whole or not there.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tfaot(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tfaot")).args(args).output().expect("the binary starts")
}

fn graph(name: &str, file: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "testdata", "graphs", name, file].iter().collect();
    path.display().to_string()
}

fn json(out: &Output) -> serde_json::Value {
    serde_json::from_slice(&out.stdout).expect("standard output is one JSON document")
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn wrong_usage_is_two() {
    for args in
        [&["frobnicate"][..], &["compile"], &["run", "x", "--engine", "abacus"], &["bench", "x", "--threads", "0"]]
    {
        assert_eq!(tfaot(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(tfaot(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_missing_file_is_one_with_a_word() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out");
    for verb in ["inspect", "check", "compile", "run", "bench", "verify"] {
        let mut args = vec![verb, "/no/such.pb"];
        let out = out.display().to_string();
        if verb == "compile" {
            args.extend(["-o", &out]);
        }
        let said = tfaot(&args);
        assert_eq!(said.status.code(), Some(1), "{verb}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("TFA0001"), "{verb}");
    }
    assert!(is_empty(&out));
}

#[test]
fn check_names_blockers() {
    let said = tfaot(&["check", &graph("mlp", "graph.pb"), "--json", "--fetch", "nowhere"]);
    assert_eq!(said.status.code(), Some(1));
    let document = json(&said);
    assert_eq!(document["compilable"], false);
    let blockers = document["blockers"].as_array().expect("a list");
    assert!(!blockers.is_empty());
    for key in ["node", "op", "code", "reason"] {
        assert!(blockers[0][key].is_string(), "{key}");
    }
}

#[test]
fn ops_and_codes_are_listed() {
    let document = json(&tfaot(&["ops", "--json"]));
    assert!(document.as_array().is_some_and(|rows| rows.iter().all(|r| r["op"].is_string())));
    assert!(String::from_utf8_lossy(&tfaot(&["explain", "TFA0101"]).stdout).contains("unsupported-op"));
    assert_eq!(tfaot(&["explain", "TFA9999"]).status.code(), Some(1));
}

#[test]
fn hlo_verify_tells_each_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let bad = dir.path().join("bad.hlo");
    std::fs::write(&bad, "HloModule m\nENTRY e { ROOT r = (((").expect("written");
    let said = tfaot(&["hlo", "verify", "--json", &bad.display().to_string(), "/no/such.hlo"]);
    assert_eq!(said.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = said
        .stdout
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|l| l["ok"] == false && l["error"].is_string() && l["file"].is_string()));
}
