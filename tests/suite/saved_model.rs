//! A SavedModel that is not frozen: its variables come from its checkpoint. The model and TensorFlow's answer are made by
//! `tools/make_saved_model.py`.
use std::path::{Path, PathBuf};
use std::process::Command;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn model() -> PathBuf {
    data("saved_model")
}

fn tfaot(args: &[&str], paths: &[&Path]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_tfaot")).args(args).args(paths).output().expect("runs");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (out.status.success(), said)
}

#[test]
fn variables_are_constants() {
    let program = tfaot::import::load(&model(), None).expect("reads");
    let left: Vec<&str> = program.graph.nodes.values().filter(|n| &*n.op == "VarHandleOp").map(|n| &*n.name).collect();
    assert!(left.is_empty(), "{left:?} have no value");
}

#[test]
fn variables_of_keras_3_are_found_by_what_functions_capture() {
    let keras = data("keras3");
    let program = tfaot::import::load(&keras, None).expect("reads");
    let constant = |n: &&tfaot::graph::Node| n.name.starts_with("sequential") && &*n.op == "Const";
    assert_eq!(program.graph.nodes.values().filter(constant).count(), 8);
    let (inputs, expect) = (keras.join("feeds.npz"), keras.join("expect.npz"));
    let (right, said) =
        tfaot(&["verify", "--dim", "2", "--inputs"], &[&inputs, Path::new("--expect"), &expect, &keras]);
    assert!(right, "{said}");
}

#[test]
fn variables_without_a_value_are_told_once() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::copy(data("keras3").join("saved_model.pb"), dir.path().join("saved_model.pb")).expect("copies");
    let (_, said) = tfaot(&["check", "--dim", "2"], &[dir.path()]);
    assert_eq!(said.matches("error[").count(), 1, "{said}");
    let told = ["TFA0112", "`sequential/dense_1/bias`", "and 5 more", "model.export"];
    assert!(told.iter().all(|t| said.contains(t)), "{said}");
}

#[test]
fn the_answer_is_tensorflow_s() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("out.npz");
    let run = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .args(["run", "--engine", "interpreter", "--dim", "2"])
        .arg(model())
        .arg("--inputs")
        .arg(model().join("feeds.npz"))
        .arg("--outputs")
        .arg(&out)
        .output()
        .expect("runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let read = |path: &Path| -> Vec<Vec<f32>> {
        let mut npz = npyz::npz::NpzArchive::open(path).expect("an archive");
        let names: Vec<String> = npz.array_names().map(str::to_string).collect();
        let mut all = Vec::new();
        for name in names {
            let array = npz.by_name(&name).expect("reads").expect("is there");
            all.push(array.into_vec::<f32>().expect("floats"));
        }
        all.sort_by_key(Vec::len);
        all
    };
    let (got, want) = (read(&out), read(&model().join("expect.npz")));
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().flatten().zip(want.iter().flatten()) {
        assert!((g - w).abs() <= 1e-5 * w.abs().max(1.0), "{g} for {w}");
    }
}

#[test]
fn a_damaged_checkpoint_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("variables")).expect("a folder");
    let data = "variables/variables.data-00000-of-00001";
    for name in ["saved_model.pb", "variables/variables.index", data] {
        std::fs::copy(model().join(name), dir.path().join(name)).expect("copies");
    }
    for name in ["variables/variables.index", data] {
        let path = dir.path().join(name);
        let whole = std::fs::read(&path).expect("reads");
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            std::fs::write(&path, &bytes).expect("writes");
            // The object graph's bytes belong to no variable.
            let read = tfaot::import::load(dir.path(), None);
            assert!(read.is_err() || (name == data && at > 0), "{name} with byte {at} changed");
        }
        std::fs::write(&path, &whole).expect("writes");
    }
}

#[test]
fn without_a_default_signature_the_tool_asks() {
    let (done, said) = tfaot(&["check", "--dim", "2"], &[&data("signatures")]);
    assert!(!done && said.matches("error[").count() == 1, "{said}");
    let told = ["TFA0010", "score(scale, x) -> best, logits", "embed(x) -> vector", "--signature"];
    assert!(told.iter().all(|t| said.contains(t)), "{said}");
    let (done, said) = tfaot(&["inspect"], &[&data("signatures")]);
    assert!(done && said.contains("score_x:0") && said.contains("embed_x:0"), "{said}");
}

#[test]
fn a_signature_s_own_names_stand_for_its_tensors() {
    let (model, dir) = (data("signatures"), tempfile::tempdir().expect("a folder"));
    let (inputs, expect, out) = (model.join("feeds.npz"), model.join("expect.npz"), dir.path().join("out.npz"));
    let sizes: [&[&str]; 3] = [&["--feed", "x=f32[2,4]"], &["--dim", "x[0]=2"], &["--feed", "score_x:0=f32[2,4]"]];
    for size in sizes {
        let verb = [&["verify", "--signature", "score"], size, &["--inputs"]].concat();
        let (right, said) = tfaot(&verb, &[&inputs, Path::new("--expect"), &expect, &model]);
        assert!(right && said.contains("logits") && said.contains("best"), "{size:?}: {said}");
    }
    let run = ["run", "--signature", "score", "--dim", "2", "--fetch", "logits", "--inputs"];
    let (done, said) = tfaot(&run, &[&inputs, Path::new("--outputs"), &out, &model]);
    assert!(done, "{said}");
    let npz = npyz::npz::NpzArchive::open(&out).expect("an archive");
    assert_eq!(npz.array_names().collect::<Vec<_>>(), ["logits"]);
    let compile = ["compile", "--signature", "score", "--feed", "x=f32[2,4]", "--name", "m", "-o"];
    let (done, said) = tfaot(&compile, &[dir.path(), &model]);
    let header = std::fs::read_to_string(dir.path().join("m.h")).expect("a header");
    let members = ["const float *x; ", "const float *scale;", "float *logits;", "int64_t *best;", "score_x:0"];
    assert!(done && members.iter().all(|m| header.contains(m)), "{said}: {header}");
}

#[test]
fn a_name_that_no_signature_has_is_told_with_those_that_it_has() {
    let of = |flags: &[&str]| tfaot(&[&["check"], flags].concat(), &[&data("signatures")]).1;
    let said = of(&["--signature", "score", "--feed", "y=f32[2,4]"]);
    assert!(said.contains("TFA0006") && said.contains("the signature `score` has `scale`, `x`"), "{said}");
    let said = of(&["--fetch", "logits"]);
    assert!(said.contains("TFA0006") && said.contains("--signature score"), "{said}");
}

#[test]
fn a_saver_is_not_taken_for_the_model() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("m.pbtxt");
    let text = "meta_info_def { tags: 'serve' }
        graph_def { node { name: 'saver_filename' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } } node { name: 'NoOp' op: 'NoOp' } }
        signature_def { key: '__saved_model_init_op' value { outputs { key: '__saved_model_init_op' value { name: 'NoOp' } } } }";
    std::fs::write(&file, text).expect("written");
    let (done, said) = tfaot(&["check"], &[&file]);
    assert!(!done && said.contains("TFA0010") && said.contains("the model has no signature"), "{said}");
}

/// Nodes that only the saver or the loader of a SavedModel needs.
fn is_of_the_saver(node: &str) -> bool {
    node.starts_with("saver_filename") || node.starts_with("StatefulPartitionedCall_2/")
}

#[test]
fn clusters_and_pages_are_about_what_the_signatures_reach() {
    let of_verb = |args: &[&str]| -> serde_json::Value {
        let out = Command::new(env!("CARGO_BIN_EXE_tfaot")).args(args).arg(model()).output().expect("runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("JSON")
    };
    let found = of_verb(&["cluster", "-q", "--json"]);
    let clusters = found["assignments"].as_object().expect("nodes with their clusters");
    assert!(clusters.iter().any(|(_, cluster)| !cluster.is_null()), "nothing is clustered");
    assert!(!clusters.iter().any(|(node, _)| node.contains("Restore") || node.contains("Save")), "{clusters:?}");
    assert!(clusters.iter().all(|(node, cluster)| !is_of_the_saver(node) || cluster.is_null()), "{clusters:?}");
    let (default, named) = (["report", "-q", "--json", "--no-compile"], ["--signature", "serving_default"]);
    let named = of_verb(&[&default[..], &named[..]].concat());
    assert_eq!(of_verb(&default), named);
    let (done, said) = tfaot(&["explain", "saver_filename", "-q"], &[&model()]);
    assert!(done && said.contains("TFA0523"), "{said}");
}

#[test]
fn rewriting_leaves_the_saver_as_it_is() {
    for (model, reached) in [("saved_model", "matmul"), ("keras3", "MatMul")] {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        let (_, said) = tfaot(&["rewrite", "--mode", "annotate", "-q", "-o"], &[&out, &data(model)]);
        let program = tfaot::import::load_as_saved(&out, None).unwrap_or_else(|e| panic!("{said}\n{e:?}"));
        let functions = program.functions.values().map(|f| (&*f.name, &f.graph));
        let mut marked = Vec::new();
        for (function, graph) in functions.chain([("", &program.graph)]) {
            let nodes = graph.nodes.values().filter(|n| n.attr("_XlaCluster").is_some());
            marked.extend(nodes.map(|n| format!("{function} {}", n.name)));
        }
        assert!(marked.iter().any(|n| n.contains(reached)), "{model}: {marked:?}");
        let of_saver = |n: &&String| {
            ["traced_save", "traced_restore", "Initializer", "IsInitialized"].iter().any(|p| n.contains(p))
        };
        let saver: Vec<&String> = marked.iter().filter(of_saver).collect();
        assert!(saver.is_empty(), "{model}: {saver:?}");
    }
}
