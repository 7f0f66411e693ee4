//! `tfaot cluster` and `tfaot rewrite` on the repository's graphs.
mod common;

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

/// A node of a dump: everything on the CPU.
fn dumped(name: &str, op: &str, inputs: &[&str], attrs: &str) -> String {
    let inputs: String = inputs.iter().map(|i| format!(" input: \"{i}\"")).collect();
    let device = "/job:localhost/replica:0/task:0/device:CPU:0";
    format!(
        "node {{ name: \"{name}\" op: \"{op}\"{inputs} device: \"{device}\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} {attrs} }}\n"
    )
}

/// A session's dump: what it fed stands behind the nodes that take it.
fn session(attrs: &str) -> String {
    let index = "attr { key: \"index\" value { i: 0 } }";
    let constant = "attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } }";
    [
        dumped("a", "Tanh", &["_arg_x_0_0"], attrs),
        dumped("b", "Sin", &["a"], attrs),
        dumped("c", "Const", &[], constant).replace("attr { key: \"T\" value { type: DT_FLOAT } }", ""),
        dumped("d", "Mul", &["b", "c"], attrs),
        dumped("_arg_x_0_0", "_Arg", &[], index),
        dumped("_retval_d_0_0", "_Retval", &["d"], index),
    ]
    .concat()
}

fn assigned(text: &str, flags: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("dump.pbtxt");
    std::fs::write(&file, text).expect("written");
    let said = tfaot(&["cluster", &file.display().to_string(), "-q", "--json", "--tf-xla-flags", flags]);
    let found: Value = serde_json::from_slice(&said.stdout).expect("standard output is one JSON document");
    found["assignments"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, c)| !c.is_null())
        .map(|(n, _)| n.clone())
        .collect()
}

#[test]
fn fuel_goes_in_the_order_of_the_session_that_wrote_the_dump() {
    let flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1 --tf_xla_clustering_fuel=2";
    let mut found = assigned(&session(""), flags);
    found.sort();
    assert_eq!(found, ["a", "b"], "an importer would number the constant before both");
}

#[test]
fn level_0_is_off_but_for_nodes_that_ask() {
    let level = |n: i32| format!("--tf_xla_auto_jit={n} --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1");
    assert!(!assigned(&session(""), &level(2)).is_empty());
    assert!(assigned(&session(""), &level(0)).is_empty());
    let mut asked = assigned(&session("attr { key: \"_XlaCompile\" value { b: true } }"), &level(0));
    asked.sort();
    assert_eq!(asked, ["a", "b", "d"]);
}

#[test]
fn rewrite_and_report_dump_what_the_flags_ask_for() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for verb in ["rewrite", "report"] {
        let dumps = dir.path().join(verb);
        let out = dir.path().join("x.pb").display().to_string();
        let graph = graph("mlp");
        let mut words = vec![verb, &graph, "-q", "-o", &out];
        if verb == "rewrite" {
            words.extend(["--mode", "native"]);
        }
        let said = Command::new(env!("CARGO_BIN_EXE_tfaot"))
            .args(&words)
            .env("XLA_FLAGS", format!("--xla_dump_hlo_as_text --xla_dump_to={}", dumps.display()))
            .env("TF_XLA_FLAGS", "--tf_xla_clustering_debug --tf_xla_min_cluster_size=1")
            .env("TF_DUMP_GRAPH_PREFIX", &dumps)
            .output()
            .expect("the binary starts");
        let no_linker = String::from_utf8_lossy(&said.stderr).contains("error[TFA0301]");
        if no_linker && common::program(&["ld.lld", "ld.lld-22"]).is_none() {
            continue;
        }
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        for file in ["mark_for_compilation.pbtxt", "module_0000.cluster_0.before_optimizations.txt"] {
            assert!(dumps.join(file).is_file(), "{verb} has no {file}");
        }
    }
}

#[test]
fn a_function_that_the_user_marked_is_a_cluster_of_its_own() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let float = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let explained = |attr: &str, op: &str, output: &str| {
        let file = scratch.path().join("g.pbtxt").display().to_string();
        let text = format!(
            "node {{ name: 'v' op: 'VarHandleOp' {dtype} attr {{ key: 'shape' value {{ shape {{ }} }} }} }}
             node {{ name: 'call' op: 'f' input: 'v' {attr} }}
             library {{ function {{
               signature {{ name: 'f' input_arg {{ name: 'a' type: DT_RESOURCE }} output_arg {{ name: 'r' type: DT_FLOAT }} }}
               attr {{ key: '_noinline' value {{ b: true }} }}
               node_def {{ name: 'read' op: 'ReadVariableOp' input: 'a' {dtype} }}
               node_def {{ name: 'out' op: '{op}' input: 'read:value:0' {of} }}
               ret {{ key: 'r' value: 'out:{output}:0' }} }} }}",
            dtype = float("dtype"),
            of = float("T"),
        );
        std::fs::write(&file, text).expect("written");
        String::from_utf8_lossy(&tfaot(&["explain", "call", &file, "-q"]).stdout).into_owned()
    };
    let marked = "attr { key: '_XlaMustCompile' value { b: true } }";
    assert!(explained("", "Exp", "y").contains("TFA0511"));
    let told = explained(marked, "Exp", "y");
    assert!(told.contains("is a cluster of its own") && told.contains("TFA0526"), "{told}");
    let told = explained(marked, "AsString", "output");
    assert!(told.contains("TFA0511") && told.contains("refuses to run it"), "{told}");
}
