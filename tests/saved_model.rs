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
    let (compiles, said) = tfaot(&["check", "--dim", "2"], &[&keras]);
    assert!(compiles, "{said}");
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
