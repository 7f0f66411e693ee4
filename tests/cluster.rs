//! `tfaot cluster` and `tfaot rewrite` on the repository's graphs.
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn tfaot(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfaot"));
    command.env_remove("TF_XLA_FLAGS").args(args).output().expect("the binary starts")
}

fn graph(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "testdata", "graphs", name, "graph.pb"].iter().collect();
    path.display().to_string()
}

fn clusters(graph: &str, more: &[&str]) -> Value {
    let args = [&["cluster", graph, "--json", "-q", "--tf-xla-flags=--tf_xla_min_cluster_size=1"], more].concat();
    let said = tfaot(&args);
    serde_json::from_slice(&said.stdout).expect("standard output is one JSON document")
}

#[test]
fn every_node_is_in_a_cluster_or_has_a_code() {
    let found = clusters(&graph("mlp"), &[]);
    let (outside, nodes) = (found["outside"].as_array().expect("a list"), found["nodes"].as_u64().expect("a number"));
    assert_eq!(outside.len() as u64 + found["clustered"].as_u64().expect("a number"), nodes);
    assert!(found["clustered"].as_u64() > Some(0));
    assert!(
        outside.iter().all(|o| o["code"].as_str().is_some_and(|c| c.starts_with("TFA")) && o["reason"].is_string())
    );
    assert!(outside.iter().any(|o| o["op"] == "Placeholder" && o["slug"] == "no-xla-kernel"));
}

#[test]
fn the_table_of_nodes_names_every_node() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let tsv = dir.path().join("c.tsv").display().to_string();
    assert!(tfaot(&["cluster", &graph("mlp"), "-q", "--tsv", &tsv]).status.success());
    let text = std::fs::read_to_string(&tsv).expect("it was written");
    let found = clusters(&graph("mlp"), &[]);
    assert_eq!(Some(text.lines().count() as u64), found["nodes"].as_u64());
    assert!(text.lines().all(|l| l.split('\t').count() == 2));
}

#[test]
fn a_baseline_gates() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let old = dir.path().join("old.json");
    std::fs::write(&old, clusters(&graph("mlp"), &[]).to_string()).expect("written");
    let old = old.display().to_string();
    let with = |flags: &str| tfaot(&["cluster", &graph("mlp"), "-q", "--baseline", &old, flags]).status.code();
    assert_eq!(with("--tf-xla-flags=--tf_xla_min_cluster_size=1"), Some(0));
    assert_eq!(with("--tf-xla-flags=--tf_xla_auto_jit=-1"), Some(1), "nodes left their clusters");
    assert_eq!(tfaot(&["cluster", &graph("mlp"), "-q", "--min-clustered", "1.1"]).status.code(), Some(1));
}

#[test]
fn a_rewritten_graph_calls_its_clusters() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("x.pb").display().to_string();
    let flags = "--tf-xla-flags=--tf_xla_min_cluster_size=1";
    assert!(tfaot(&["rewrite", &graph("mlp"), "-q", "-o", &out, "--mode", "xla", flags]).status.success());
    let found = clusters(&out, &[]);
    let launches = found["outside"].as_array().expect("a list").iter().filter(|o| o["op"] == "XlaLaunch").count();
    let before = clusters(&graph("mlp"), &[])["clusters"].as_array().map(Vec::len);
    assert!(found["nodes"].as_u64() < clusters(&graph("mlp"), &[])["nodes"].as_u64());
    assert!(before.is_some_and(|n| n > 0) && launches > 0, "{launches} launches of {before:?} clusters");
    assert!(tfaot(&["rewrite", &graph("mlp"), "-q", "-o", &out, "--mode", "annotate", flags]).status.success());
    let marked = clusters(&out, &[]);
    assert_eq!(marked["clustered"], 0);
    assert!(marked["outside"].as_array().expect("a list").iter().all(|o| o["slug"] == "already-clustered"));
}

#[test]
fn a_node_is_explained() {
    let found = clusters(&graph("mlp"), &[]);
    let outside = found["outside"][0]["node"].as_str().expect("a node").to_string();
    let said = tfaot(&["explain", &outside, &graph("mlp"), "-q"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("is in no cluster"));
    assert_eq!(tfaot(&["explain", "no_such_node", &graph("mlp"), "-q"]).status.code(), Some(1));
}
