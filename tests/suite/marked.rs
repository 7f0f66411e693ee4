//! Functions with `jit_compile=True` that take variables: as objects of their own, and in rewritten graphs. The model and TensorFlow's
//! answer are made by `tools/make_saved_model.py`.
use crate::common::tolerance::departure;
use crate::common::{npz, path, program, said, succeed, tfaot};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tfaot::tensor::Tensor;

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).expect("it was written")).expect("JSON")
}

#[test]
fn objects_take_and_give_what_variables_hold() {
    let Some(cc) = program(&["gcc", "cc"]) else { return };
    let model = path("testdata/marked");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().display().to_string();
    let shown = model.display().to_string();
    succeed(&["cluster", &shown, "-q", "--emit", "hlo,obj,header", "-o", &out]);
    let told = json(&dir.path().join("clusters.json"));
    let clusters = told["clusters"].as_array().expect("a list");
    let [first, second] = &clusters[..] else { panic!("{told:#}") };
    assert!(first["jit_compile"].as_str().is_some_and(|f| f.contains("count")), "{first:#}");
    assert!(second["jit_compile"].as_str().is_some_and(|f| f.contains("weigh")), "{second:#}");
    let tensors = told["tensors"].as_array().expect("a list");
    let file = |t: &Value| dir.path().join(t["file"].as_str().expect("a file"));
    let w: Vec<f32> = (0..12).map(|i| -1.0 + i as f32 * (2.0 / 11.0)).collect();
    let x = npz(&model.join("feeds.npz")).into_values().next().expect("one array");
    for tensor in tensors.iter().filter(|t| t["from"].is_null()) {
        let bytes = match tensor["dims"].as_array().map(Vec::len) {
            _ if tensor["op"] != "VarHandleOp" => x.bytes.to_vec(),
            Some(2) => w.iter().flat_map(|v| v.to_le_bytes()).collect(),
            _ => vec![0; 12],
        };
        std::fs::write(file(tensor), bytes).expect("written");
    }
    let objects = clusters.iter().flat_map(|c| c["files"].as_array()).flatten().filter_map(Value::as_str);
    let mut build = Command::new(cc);
    build.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "main", "main.c"]);
    let built = build.args(objects.filter(|f| f.ends_with(".o"))).current_dir(dir.path()).output().expect("a compiler");
    assert!(built.status.success(), "{}", said(&built));
    let ran = Command::new(dir.path().join("main")).args([".", "."]).current_dir(dir.path()).output();
    let ran = ran.expect("the program starts");
    assert!(ran.status.success(), "{}", said(&ran));
    let of = |cluster: &Value, is_variable: bool| {
        let own = |t: &&Value| t["from"] == cluster["name"] && (t["op"] == "VarHandleOp") == is_variable;
        tensors.iter().find(own).expect("the cluster gives it")
    };
    for (key, want) in npz(&model.join("expect.npz")) {
        let given = of(if key == "y" { first } else { second }, false);
        let bytes = std::fs::read(file(given)).expect("the program wrote it");
        assert_eq!(departure(&Tensor::new(want.dtype, want.dims.clone(), bytes), &want), None, "{key}");
    }
    let changed = of(first, true);
    assert!(changed["leaves"] == true && changed["to"].as_array().is_some_and(|to| to.len() == 1), "{changed:#}");
    let held = std::fs::read(file(changed)).expect("the program wrote it");
    assert!(held.iter().any(|&b| b != 0), "the variable was not changed");
}

#[test]
fn rewritten_graphs_no_longer_hand_them_to_xla() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (model, out) = (path("testdata/marked"), dir.path().join("m"));
    let (model, out) = (model.display().to_string(), out.display().to_string());
    let flags = "--tf-xla-flags=--tf_xla_min_cluster_size=1";
    succeed(&["rewrite", &model, "-o", &out, "-q", "--mode", "native", flags]);
    let ops = |file: &str| said(&tfaot(&["inspect", file, "--functions"]));
    let marks = |file: &str| std::fs::read(Path::new(file).join("saved_model.pb")).expect("a model");
    let has = |bytes: &[u8]| bytes.windows(15).any(|w| w == b"_XlaMustCompile");
    assert!(has(&marks(&model)), "{}", ops(&model));
    assert!(!has(&marks(&out)), "{}", ops(&out));
}
