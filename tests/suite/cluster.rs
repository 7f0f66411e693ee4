//! `tfaot cluster` and `tfaot rewrite` on the repository's graphs.
use crate::common::tolerance::departure;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tfaot::tensor::Tensor;

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
    let rewritten = tfaot::import::load_as_saved(std::path::Path::new(&out), None).expect("it can be read");
    let launches = rewritten.graph.nodes.values().filter(|n| n.bool("_XlaMustCompile") == Some(true)).count();
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
        if no_linker && crate::common::program(&["ld.lld", "ld.lld-22"]).is_none() {
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

/// Writes the clusters of a graph of the repository and links them into one program; what `clusters.json` says.
fn linked(name: &str, flags: &str, more: &[&str], folder: &Path, cc: &str) -> Value {
    let out = folder.display().to_string();
    let emit = ["cluster", &graph(name), "-q", "--emit", "hlo,obj,header", "-o", &out, "--tf-xla-flags", flags];
    crate::common::succeed(&[&emit[..], more].concat());
    let text = std::fs::read(folder.join("clusters.json")).expect("it was written");
    let told: Value = serde_json::from_slice(&text).expect("JSON");
    let files = told["clusters"].as_array().into_iter().flatten().flat_map(|c| c["files"].as_array()).flatten();
    let objects = files.filter_map(Value::as_str).filter(|f| f.ends_with(".o"));
    let mut build = Command::new(cc);
    build.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "main", "main.c"]).args(objects);
    let built = build.current_dir(folder).output().expect("a compiler");
    assert!(built.status.success(), "{}", crate::common::said(&built));
    told
}

/// TensorFlow's answers come out of a program that knows the objects of clusters alone. `mlp` is cut into clusters that feed one
/// another, and so is `conv_net`.
#[test]
fn a_program_of_clusters_gives_the_answers_of_the_graph() {
    let Some(cc) = crate::common::program(&["gcc", "cc"]) else { return };
    let flags = "--tf_xla_min_cluster_size=1 --tf_xla_max_cluster_size=6";
    for name in ["mlp", "conv_net"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let told = linked(name, flags, &[], dir.path(), cc);
        let tensors = told["tensors"].as_array().expect("a list");
        assert!(told["clusters"].as_array().is_some_and(|c| c.len() > 1), "{name} is one cluster");
        let between = |t: &&Value| !t["from"].is_null() && t["to"].as_array().is_some_and(|to| !to.is_empty());
        assert!(tensors.iter().any(|t| between(&t)), "no cluster of {name} feeds another");
        let feeds = crate::common::npz(&crate::common::path("testdata/graphs").join(name).join("feeds.npz"));
        let full = |key: &str| if key.contains(':') { key.to_string() } else { format!("{key}:0") };
        for (key, value) in &feeds {
            let fed = tensors.iter().filter(|t| t["name"] == full(key) && t["from"].is_null());
            for file in fed.filter_map(|t| t["file"].as_str()) {
                std::fs::write(dir.path().join(file), &value.bytes).expect("written");
            }
        }
        let run = Command::new(dir.path().join("main")).args([".", "."]).current_dir(dir.path()).output();
        let run = run.expect("the program starts");
        assert!(run.status.success(), "{}", crate::common::said(&run));
        let mut compared = 0;
        for (key, want) in crate::common::npz(&crate::common::path("testdata/graphs").join(name).join("expect.npz")) {
            let given = tensors.iter().find(|t| t["name"] == full(&key) && !t["from"].is_null());
            let Some(file) = given.and_then(|t| t["file"].as_str()) else { continue };
            let bytes = std::fs::read(dir.path().join(file)).expect("the program wrote it");
            let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
            assert_eq!(departure(&got, &want), None, "{name} {key}");
            compared += 1;
        }
        assert!(compared > 0, "no answer of {name} comes out of a cluster");
    }
}

/// A cluster that calls a function of the user and asks another rank says so, and no program that would run it alone is written.
#[test]
fn what_a_cluster_needs_is_told() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("graph.pbtxt").display().to_string();
    let float = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let shape = "shape { dim { size: 4 } }";
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' {dtype} attr {{ key: 'shape' value {{ {shape} }} }} }}
         node {{ name: 'groups' op: 'Const' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }}
           attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 1 }} dim {{ size: 2 }} }}
             int_val: 0 int_val: 1 }} }} }} }}
         node {{ name: 'sum' op: 'XlaAllReduce' input: 'x' input: 'groups' {t}
           attr {{ key: 'reduce_op' value {{ s: 'Add' }} }} attr {{ key: 'mode' value {{ s: 'CrossReplica' }} }} }}
         node {{ name: 'own' op: 'XlaCustomCall' input: 'sum' attr {{ key: 'T' value {{ list {{ type: DT_FLOAT }} }} }}
           attr {{ key: 'target_name' value {{ s: 'twice' }} }} attr {{ key: 'backend_config' value {{ s: '' }} }}
           {dtype} attr {{ key: 'shape' value {{ {shape} }} }} }}
         node {{ name: 'y' op: 'Exp' input: 'own' {t} }}",
        dtype = float("dtype"),
        t = float("T"),
    );
    std::fs::write(&file, text).expect("written");
    let out = dir.path().display().to_string();
    let flags = "--tf-xla-flags=--tf_xla_min_cluster_size=1";
    let args = ["cluster", &file, "-q", "--emit", "obj,header", "-o", &out, flags];
    let output = tfaot(&args);
    let told = crate::common::said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("needs twice (custom call, API version 1)"), "{told}");
    assert!(told.contains("needs a tfaot_communicator of 2 ranks"), "{told}");
    assert!(!dir.path().join("main.c").exists());
}

/// The module of a cluster is read back from both of its files; one cluster alone is written on request, and no other.
#[test]
fn a_cluster_is_written_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().display().to_string();
    let flags = "--tf-xla-flags=--tf_xla_min_cluster_size=1 --tf_xla_max_cluster_size=6";
    let emit = ["cluster", &graph("mlp"), "-q", flags, "--emit", "hlo", "-o", &out, "--only"];
    crate::common::succeed(&[&emit[..], &["cluster_1", "--name", "m"]].concat());
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .expect("a folder")
        .map(|e| e.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["clusters.json", "m_cluster_1.hlo", "m_cluster_1.hlo.pb"]);
    for name in &names[1..] {
        crate::common::succeed(&["verify", &dir.path().join(name).display().to_string()]);
    }
    let missing = tfaot(&[&emit[..], &["cluster_99"]].concat());
    assert_eq!(missing.status.code(), Some(1));
    assert!(crate::common::said(&missing).contains("there is no cluster `cluster_99`"));
}

/// What can't be compiled is told with its reasons, and the rest is written. `x` has an open size.
#[test]
fn a_cluster_that_is_refused_is_told() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("g.pbtxt");
    let placeholder = |name: &str, dim: &str| {
        format!(
            "node {{ name: \"{name}\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} attr {{ key: \"shape\" value {{ shape {{ dim {{ size: {dim} }} }} }} }} }}\n"
        )
    };
    let unary = |name: &str, op: &str, of: &str| {
        format!(
            "node {{ name: \"{name}\" op: \"{op}\" input: \"{of}\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} }}\n"
        )
    };
    let text = [placeholder("x", "-1"), placeholder("y", "3"), unary("a", "Tanh", "x"), unary("b", "Exp", "y")];
    std::fs::write(&file, text.concat()).expect("written");
    let (file, out) = (file.display().to_string(), dir.path().join("out"));
    let flags = "--tf-xla-flags=--tf_xla_min_cluster_size=1";
    let run = |more: &[&str]| {
        tfaot(&[&["cluster", &file, "-q", flags, "--emit", "obj", "-o", out.to_str().expect("a path")], more].concat())
    };
    let some = run(&[]);
    assert_eq!(some.status.code(), Some(1));
    assert!(crate::common::said(&some).contains("TFA0"), "{}", crate::common::said(&some));
    let told = || -> Value {
        serde_json::from_slice(&std::fs::read(out.join("clusters.json")).expect("it was written")).expect("JSON")
    };
    let first = told();
    assert_eq!(
        (first["clusters"].as_array().map(Vec::len), first["refused"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    assert_eq!(run(&["--dim", "4"]).status.code(), Some(0));
    assert_eq!(told()["refused"].as_array().map(Vec::len), Some(0));
}
