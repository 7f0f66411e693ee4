//! `tfaot tfcompile` takes the flags of TensorFlow's tfcompile, in the words of its build rules.
use crate::common::{npz, path, program, succeed, tfaot, tolerance::departure};
use std::path::Path;
use std::process::Command;
use tfaot::tensor::Tensor;

const CONFIG: &str = "feed { id { node_name: \"x\" } shape { dim { size: 4 } dim { size: 10 } } name: \"x\" }
fetch { id { node_name: \"Identity\" } name: \"scores\" }
fetch { id { node_name: \"Identity_1\" } }
fetch { id { node_name: \"Identity_2\" } }
fetch { id { node_name: \"Identity_3\" } }
";

fn flags(folder: &Path) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    std::fs::write(folder.join("config.pbtxt"), CONFIG).expect("written");
    vec![
        "tfcompile".to_string(),
        format!("--graph={}", path("testdata/graphs/mlp/graph.pb").display()),
        format!("--config={}", file("config.pbtxt")),
        "--cpp_class=::zoo::Net".to_string(),
        format!("--out_function_object={}", file("function.o")),
        format!("--out_metadata_object={}", file("metadata.o")),
        format!("--out_constant_buffers_object={}", file("constants.o")),
        format!("--out_header={}", file("net.hpp")),
    ]
}

fn said(args: &[String]) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = tfaot(&args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    crate::common::said(&output)
}

/// The rule's three objects and one header make a program that gives TensorFlow's answers.
#[test]
fn the_flags_of_a_build_rule() {
    let Some(cpp) = program(&["g++"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let mut args = flags(folder);
    let host = if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-pc-linux" };
    let snapshot = folder.join("session.pb");
    args.extend([
        format!("--target_triple={host}"),
        format!(
            "--target_cpu={}",
            if cfg!(target_arch = "aarch64") { "generic,cortex-a76" } else { "x86-64,x86-64-v3" }
        ),
        "--entry_point=net".to_string(),
        "--gen_name_to_index".to_string(),
        "--gen_program_shape=false".to_string(),
        "--xla_cpu_enable_fast_math=false".to_string(),
        format!("--out_session_module={}", snapshot.display()),
    ]);
    succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(std::fs::metadata(&snapshot).expect("a snapshot").len() > 1000);
    for (key, value) in npz(&path("testdata/graphs/mlp/feeds.npz")) {
        std::fs::write(folder.join(format!("in.{key}")), &value.bytes).expect("written");
    }
    let built = folder.join("user");
    let objects = ["function.o", "metadata.o", "constants.o"].map(|o| folder.join(o));
    let mut build = Command::new(cpp);
    build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-I"]).arg(folder);
    build.arg(path("tests/objects/class.cpp")).args(&objects).arg("-o").arg(&built);
    let output = build.output().expect("a compiler");
    assert!(output.status.success(), "{}", crate::common::said(&output));
    let output = Command::new(&built).arg(folder).output().expect("the program");
    assert!(output.status.success(), "{}", crate::common::said(&output));
    for (i, (key, want)) in npz(&path("testdata/graphs/mlp/expect.npz")).into_iter().enumerate() {
        let bytes = std::fs::read(folder.join(format!("out.{i}"))).expect("the program wrote it");
        let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
        assert_eq!(departure(&got, &want), None, "{key}");
    }
    let header = std::fs::read_to_string(folder.join("net.hpp")).expect("a header");
    assert!(header.contains("result_scores_data") && header.contains("arg_x_data"), "names of the configuration");
}

/// A `variable {}` has tfcompile's names, counts among the arguments and results, and may lie in the caller's memory.
#[test]
fn variables_have_the_names_of_tfcompile() {
    let Some(cpp) = program(&["g++"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("graph.pbtxt"), COUNTER).expect("written");
    std::fs::write(file("config.pbtxt"), COUNTER_CONFIG).expect("written");
    let host = if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-pc-linux" };
    succeed(&[
        "tfcompile",
        &format!("--graph={}", file("graph.pbtxt")),
        &format!("--config={}", file("config.pbtxt")),
        "--cpp_class=zoo::Acc",
        &format!("--target_triple={host}"),
        &format!("--out_function_object={}", file("function.o")),
        &format!("--out_metadata_object={}", file("metadata.o")),
        &format!("--out_constant_buffers_object={}", file("constants.o")),
        &format!("--out_header={}", file("acc.hpp")),
    ]);
    let built = folder.path().join("user");
    let objects = ["function.o", "metadata.o", "constants.o"].map(|o| folder.path().join(o));
    let mut build = Command::new(cpp);
    build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]).arg(folder.path());
    build.arg(path("tests/objects/variables.cpp")).args(&objects).arg("-o").arg(&built);
    let output = build.output().expect("a compiler");
    assert!(output.status.success(), "{}", crate::common::said(&output));
    let output = Command::new(&built).output().expect("the program");
    assert_eq!(output.status.code(), Some(0), "the number of the check that fails");
}

const COUNTER: &str = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: 2 } } } } }
node { name: 'acc' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: 2 } } } } attr { key: 'shared_name' value { s: 'acc' } } }
node { name: 'add' op: 'AssignAddVariableOp' input: 'acc' input: 'x' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'y' op: 'ReadVariableOp' input: 'acc' input: '^add' attr { key: 'dtype' value { type: DT_FLOAT } } }
";

const COUNTER_CONFIG: &str = "feed { id { node_name: 'x' } shape { dim { size: 2 } } name: 'x' }
fetch { id { node_name: 'y' } name: 'y' }
variable { node_name: 'acc' name: 'acc' shape { dim { size: 2 } } type: DT_FLOAT }
";

#[test]
fn fetched_nodes_are_printed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let config = flags(folder.path()).swap_remove(2);
    assert_eq!(succeed(&["tfcompile", &config, "--dump_fetch_nodes"]), "Identity,Identity_1,Identity_2,Identity_3");
}

/// What is missing is said in tfcompile's words, what has no meaning is refused, and nothing is written.
#[test]
fn refusals() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let all = flags(folder.path());
    for (left_out, flag) in [(1, "graph"), (2, "config"), (3, "cpp_class")] {
        let mut args = all.clone();
        args.remove(left_out);
        assert!(said(&args).contains(&format!("Must specify --{flag}")), "{flag}");
    }
    for wrong in ["--gen_program_shape", "--experimental_quantize", "--sanitize_dataflow"] {
        let mut args = all.clone();
        args.push(wrong.to_string());
        let said = said(&args);
        assert!(said.contains(wrong), "{said}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing but the configuration: {left:?}");
}
