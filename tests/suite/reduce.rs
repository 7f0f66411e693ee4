//! `tfaot reduce` under commands that look for one thing.
use crate::common::{path, said, succeed, tfaot};

/// Reduces a file of the repository under `command`; what is left.
fn reduced(file: &str, out: &str, command: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (file, out) = (path(file).display().to_string(), folder.path().join(out).display().to_string());
    let once = || {
        succeed(&[&["reduce", &file, "-o", &out, "-q", "--"], command].concat());
        std::fs::read_to_string(&out).expect("it was written")
    };
    let small = once();
    assert_eq!(small, once(), "the same input makes the same output");
    small
}

#[test]
fn a_graph_shrinks_to_the_node_that_matters() {
    let small =
        reduced("testdata/graphs/conv_net/graph.pb", "small.pbtxt", &["grep", "-q", "DepthwiseConv2dNative", "{}"]);
    assert_eq!(small.matches("\nnode {").count() + usize::from(small.starts_with("node {")), 3, "{small}");
    assert_eq!(small.matches("op: \"Placeholder\"").count() + small.matches("op: \"Const\"").count(), 2, "{small}");
    assert!(small.len() < 1500, "{small}");
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn a_graph_that_compiles_stays_one_that_compiles() {
    let binary = env!("CARGO_BIN_EXE_tfaot");
    let command = ["sh", "-c", "grep -q 'op: \"MatMul\"' {} && \"$0\" check {} -q", binary];
    let small = reduced("testdata/graphs/mlp/graph.pb", "small.pbtxt", &command);
    assert!(small.contains("op: \"MatMul\"") && small.matches("op: ").count() == 3, "{small}");
}

#[test]
fn a_module_shrinks_to_the_instruction_that_matters() {
    let small = reduced("tests/run/spectral.hlo", "small.hlo", &["grep", "-q", "fft(", "{}"]);
    let instructions = small.lines().filter(|line| line.contains(" = ")).count();
    assert!(small.contains("fft(") && instructions <= 2, "{small}");
}

#[test]
fn what_does_not_fail_as_told_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("small.pb").display().to_string();
    let graph = path("testdata/graphs/mlp/graph.pb").display().to_string();
    let output = tfaot(&["reduce", &graph, "-o", &out, "--status", "7", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("ends with status 0"), "{}", said(&output));
    assert!(!std::path::Path::new(&out).exists());
}
