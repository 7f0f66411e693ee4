//! Custom calls to functions in C: objects that are linked with the functions, and what has no body refused.
use crate::common::{path, program, said, succeed, tfaot};
use std::path::Path;
use std::process::Command;

/// Compiles `file` as model `name` into `folder`.
fn compile(file: &Path, name: &str, folder: &Path, more: &[&str]) -> String {
    let (file, out) = (file.display().to_string(), folder.display().to_string());
    let args = ["compile", &file, "-o", &out, "--name", name, "--emit", "obj,header,metadata"];
    succeed(&[&args[..], more].concat())
}

/// What the program of these sources and the object prints.
fn linked(folder: &Path, sources: &[&Path], object: &str) -> Option<String> {
    let cc = program(&["cc"])?;
    let built = folder.join("program");
    let mut command = Command::new(cc);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder).args(sources);
    let output = command.arg(folder.join(object)).arg("-lm").arg("-o").arg(&built).output().expect("cc starts");
    assert!(output.status.success(), "{}", said(&output));
    let output = Command::new(&built).output().expect("it starts");
    assert!(output.status.success(), "{}: {}", output.status, said(&output));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// In a loop, with several results, a layout, a status and bytes that are handed on. The numbers follow from the text by hand.
#[test]
fn functions_get_arrays_as_the_module_says() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let said = compile(&path("tests/custom_calls/loop.hlo"), "m", folder.path(), &[]);
    assert!(said.contains("needs step (custom call, API version 1)"), "{said}");
    assert!(said.contains("needs columns (custom call, API version 4)"), "{said}");
    let metadata = std::fs::read_to_string(folder.path().join("m.json")).expect("it is there");
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let names: Vec<&str> =
        metadata["calls"].as_array().expect("a list").iter().filter_map(|c| c["function"].as_str()).collect();
    assert_eq!(names, ["step", "columns"]);
    let Some(printed) = linked(folder.path(), &[&path("tests/custom_calls/loop.c")], "m.o") else { return };
    // the loop leaves 2 4 6, -3 -3 -3; z is its negation, and the sums of columns are -2 -4 -6, 1 -1 -3
    assert_eq!(printed, "-4 -8 -12 4 2 0 1 0 0 ");
}

/// The C++ class says of a function that fails that it failed.
#[test]
fn the_class_names_a_function_that_failed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = path("examples/custom_call/softmax.mlir").display().to_string();
    let out = folder.path().display().to_string();
    succeed(&["compile", &file, "-o", &out, "--name", "layer", "--emit", "obj,header,cpp"]);
    let Some(cxx) = program(&["c++"]) else { return };
    let source = "#include \"layer.hpp\"\n#include <cstdio>\n\
                  extern \"C\" int softmax(const float *, float *, const tfaot_call *) { return 1; }\n\
                  int main() { Layer layer; if (layer.Run()) return 1; std::puts(layer.error_msg().c_str()); }\n";
    let (main, built) = (folder.path().join("main.cpp"), folder.path().join("program"));
    std::fs::write(&main, source).expect("written");
    let mut build = Command::new(cxx);
    build.args(["-std=c++17", "-Wall", "-Wextra", "-Werror"]).arg(&main).arg(folder.path().join("layer.o"));
    let output = build.arg("-o").arg(&built).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    let output = Command::new(&built).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a function that the model calls failed\n");
}

/// Every instruction set has its own steps, and all of them call the same functions.
#[test]
fn several_instruction_sets_call_one_function() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile(&path("tests/custom_calls/loop.hlo"), "m", folder.path(), &["--cpu", "x86-64,x86-64-v3"]);
    let Some(printed) = linked(folder.path(), &[&path("tests/custom_calls/loop.c")], "m.o") else { return };
    assert_eq!(printed, "-4 -8 -12 4 2 0 1 0 0 ");
}

/// The example, against what `numpy` computes of the same numbers.
#[test]
fn the_softmax_of_the_example_is_right() {
    let example = path("examples/custom_call");
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile(&example.join("softmax.mlir"), "layer", folder.path(), &[]);
    let sources = [example.join("softmax.c"), example.join("main.c")];
    let sources: Vec<&Path> = sources.iter().map(std::path::PathBuf::as_path).collect();
    let Some(printed) = linked(folder.path(), &sources, "layer.o") else { return };
    let want = std::fs::read_to_string(example.join("expected.txt")).expect("it is there");
    assert_eq!(printed, want);
}

/// What TensorFlow's ops become: the functions that they name, with the interface that its XLA says.
#[test]
fn the_ops_of_tensorflow_call_functions() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let said =
        compile(&path("tests/custom_calls/ops.pbtxt"), "m", folder.path(), &["--fetch", "sum", "--fetch", "second:1"]);
    assert!(said.contains("needs twice (custom call, API version 1)"), "{said}");
    assert!(said.contains("needs split (custom call, API version 3)"), "{said}");
    let Some(printed) = linked(folder.path(), &[&path("tests/custom_calls/ops.c")], "m.o") else { return };
    assert_eq!(printed, "3 6 9 12 3 4 ");
}

/// What `jax.ffi.ffi_call` exports: a dictionary is handed on, and a layout is another order of axes.
#[test]
fn the_calls_of_jax_have_their_dictionaries() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let said = compile(&path("tests/custom_calls/jax.mlir"), "m", folder.path(), &[]);
    assert!(said.contains("needs my_norm (custom call, API version 4)"), "{said}");
    let header = std::fs::read_to_string(folder.path().join("m.h")).expect("it is there");
    assert!(header.contains("/* (f32[3,2]) -> (f32[3,2], s32[4]) */"), "{header}");
    let object = std::fs::read(folder.path().join("m.o")).expect("it is there");
    let has = |text: &[u8]| object.windows(text.len()).any(|w| w == text);
    assert!(has(b"{eps = ") && has(b"{name = \"a\\\"b\"}\0"), "the dictionaries are not in the object");
}

/// What can only be linked can't be run here, whatever the engine.
#[test]
fn what_has_no_body_is_not_run() {
    let file = path("tests/custom_calls/loop.hlo").display().to_string();
    for engine in ["interpreter", "native"] {
        let output = tfaot(&["hlo", "run", "--random", "--engine", engine, &file]);
        assert!(!output.status.success(), "{engine}");
        let said = said(&output);
        assert!(said.contains("TFA0206"), "{said}");
    }
}

/// A call by another name in the example's text, and what it is refused for.
#[test]
fn what_no_file_in_c_can_define_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("m.hlo");
    let call = |target: &str, more: &str| {
        format!(
            "HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  y = f32[2] custom-call(x), custom_call_target=\"{target}\"{more}\n  ROOT z = f32[2] add(x, y)\n}}\n"
        )
    };
    let unread = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] custom-call(x), custom_call_target=\"f\", custom_call_has_side_effect=true\n  ROOT z = f32[2] add(x, x)\n}\n";
    let two = call("f", "").replace("  ROOT", "  w = s32[] custom-call(x), custom_call_target=\"f\"\n  c = f32[] convert(w)\n  b = f32[2] broadcast(c), dimensions={}\n  y2 = f32[2] add(y, b)\n  ROOT").replace("add(x, y)", "add(x, y2)");
    for (text, code, word) in [
        (call("a.b", ""), "TFA0203", "no name that a function of C can have"),
        (call("double", ""), "TFA0203", "a name that C or the object has"),
        (call("memset", ""), "TFA0203", "a name that C or the object has"),
        (call("xla_python_cpu_callback", ""), "TFA0203", "own runtime"),
        (call("m_run", ""), "TFA0303", "the object's own functions"),
        (call("f", ", output_to_operand_aliasing={{}: (0, {})}"), "TFA0203", "over its operands"),
        (unread.to_string(), "TFA0203", "nothing reads its result"),
        (two, "TFA0203", "several types"),
    ] {
        std::fs::write(&file, &text).expect("written");
        let output =
            tfaot(&["compile", &file.display().to_string(), "--name", "m", "-o", &folder.path().display().to_string()]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains(code) && said.contains(word), "{text}\n{said}");
    }
}
