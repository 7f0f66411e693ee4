//! What JAX exports: its own answers from the interpreter and from machine code, and C programs that call such objects.
mod common;

use common::{path, program, said, succeed};
use std::path::Path;
use std::process::Command;

/// The modules of testdata/jax that have JAX's answers beside them.
fn models() -> Vec<String> {
    let folder = std::fs::read_dir(path("testdata/jax")).expect("a folder");
    let names = folder.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let mut all: Vec<String> = names.filter_map(|n| n.strip_suffix(".out.npz").map(str::to_string)).collect();
    all.sort();
    all
}

fn file(name: &str) -> String {
    path("testdata/jax").join(name).display().to_string()
}

#[test]
fn exported_functions_give_what_jax_gives() {
    let all = models();
    assert!(all.len() >= 11, "{all:?}");
    for name in all {
        let [module, given, wanted] = ["mlirbc", "in.npz", "out.npz"].map(|end| file(&format!("{name}.{end}")));
        succeed(&["verify", &module, "--inputs", &given, "--expect", &wanted, "--rtol", "1e-5", "--atol", "1e-5"]);
    }
}

/// The graphs of testdata/jax2tf with the sizes that they are open for, as feeds; none where their sizes are fixed.
const IN_GRAPHS: &[(&str, &[&str])] = &[
    ("batch", &["x0=f32[5,6]", "x0=f32[b<=7,6]"]),
    ("attention", &["x0=f32[3,5,8]", "x0=f32[b<=4,t<=6,8]"]),
    ("steps", &["x0=f32[5,3]", "x0=f32[t<=6,3]"]),
    ("control", &[]),
    ("platforms", &[]),
    ("functions", &[]),
];

#[test]
fn modules_in_graphs_give_what_tensorflow_gives() {
    for (name, sizes) in IN_GRAPHS {
        let file = |end: &str| path("testdata/jax2tf").join(format!("{name}.{end}")).display().to_string();
        let [graph, given, wanted] = ["pb", "in.npz", "out.npz"].map(file);
        let fixed = [vec!["verify", &graph, "--inputs", &given, "--expect", &wanted]];
        let sized = sizes.iter().map(|feed| [&fixed[0][..], &["--feed", feed]].concat());
        let all: Vec<Vec<&str>> = if sizes.is_empty() { fixed.to_vec() } else { sized.collect() };
        for arguments in all {
            succeed(&arguments);
        }
    }
}

#[test]
fn sizes_that_a_module_was_not_exported_for_are_refused() {
    let graph = path("testdata/jax2tf/platforms.pb").display().to_string();
    let refused = common::tfaot(&["check", &graph, "--feed", "x0=f32[4,7]"]);
    let told = said(&refused);
    assert!(
        !refused.status.success() && told.contains("argument 0 of the module is f32[4,6], and gets f32[4,7]"),
        "{told}"
    );
}

/// Compiles `module` and a C program that calls it, runs the program, and gives what it prints.
fn call(folder: &Path, module: &str, name: &str, main: &str) -> Option<String> {
    let compiler = program(&["cc"])?;
    let out = folder.display().to_string();
    succeed(&["compile", module, "-o", &out, "--name", name]);
    std::fs::write(folder.join("main.c"), main).expect("written");
    let binary = folder.join("main");
    let mut build = Command::new(compiler);
    build.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]).arg(folder);
    build.arg(folder.join("main.c")).arg(folder.join(format!("{name}.o"))).arg("-o").arg(&binary);
    let built = build.output().expect("it can be run");
    assert!(built.status.success(), "{build:?}\n{}", said(&built));
    let ran = Command::new(&binary).output().expect("it can be run");
    assert!(ran.status.success(), "{}", said(&ran));
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
fn a_c_program_calls_a_module_of_hlo() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    // The first module of OpenXLA's guide.
    let hlo = "HloModule axpy
ENTRY %axpy (alpha: f32[], x: f32[4], y: f32[4]) -> f32[4] {
  %alpha = f32[] parameter(0)
  %x = f32[4] parameter(1)
  %y = f32[4] parameter(2)
  %scale = f32[4] broadcast(%alpha), dimensions={}
  %product = f32[4] multiply(%scale, %x)
  ROOT %sum = f32[4] add(%product, %y)
}";
    let module = folder.path().join("axpy.hlo");
    std::fs::write(&module, hlo).expect("written");
    let main = "#include \"axpy.h\"
#include <stdio.h>
static _Alignas(AXPY_WORKSPACE_ALIGN) unsigned char workspace[AXPY_WORKSPACE_BYTES + 1];
int main(void) {
  const float alpha = 2, x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  float sum[4];
  const axpy_args args = {.alpha = &alpha, .x = x, .y = y};
  const axpy_results results = {.sum = sum};
  const int status = axpy_run(&args, &results, workspace, NULL);
  printf(\"%d: %g %g %g %g\\n\", status, sum[0], sum[1], sum[2], sum[3]);
  return status;
}
";
    let main = main.replace("_Alignas(AXPY_WORKSPACE_ALIGN) ", "");
    if let Some(printed) = call(folder.path(), &module.display().to_string(), "axpy", &main) {
        assert_eq!(printed, "0: 12 24 36 48\n");
    }
}

#[test]
fn a_c_program_calls_a_module_of_stablehlo() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let text = "module @jit_tanh {
  func.func public @main(%arg0: tensor<3xf32> loc(\"x\")) -> (tensor<3xf32> {jax.result_info = \"result['y']\"}) {
    %0 = stablehlo.tanh %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}";
    let module = folder.path().join("tanh.mlir");
    std::fs::write(&module, text).expect("written");
    let main = "#include \"tanh_net.h\"
#include <stdio.h>
static unsigned char workspace[TANH_NET_WORKSPACE_BYTES + 1];
int main(void) {
  const float x[3] = {0, 0.5f, -20};
  float y[3];
  const tanh_net_args args = {.x = x};
  const tanh_net_results results = {.y = y};
  const int status = tanh_net_run(&args, &results, workspace, NULL);
  printf(\"%d: %.4f %.4f %.4f\\n\", status, y[0], y[1], y[2]);
  return status;
}
";
    if let Some(printed) = call(folder.path(), &module.display().to_string(), "tanh_net", main) {
        assert_eq!(printed, "0: 0.0000 0.4621 -1.0000\n");
    }
}

#[test]
fn every_form_of_a_module_is_an_input() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let inside = |name: &str| folder.path().join(name).display().to_string();
    let text = succeed(&["hlo", "print", &file("mlp.mlirbc")]);
    std::fs::write(inside("mlp.txt"), &text).expect("written");
    let binary = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .args(["hlo", "print", "--format", "proto", &file("mlp.mlirbc")])
        .output()
        .expect("it can be run");
    std::fs::write(inside("mlp.pb"), &binary.stdout).expect("written");
    for module in [file("mlp.jax"), inside("mlp.txt"), inside("mlp.pb")] {
        assert_eq!(succeed(&["check", &module]), "compilable\n");
        let [given, wanted] = ["in", "out"].map(|end| file(&format!("mlp.{end}.npz")));
        succeed(&["verify", &module, "--inputs", &given, "--expect", &wanted, "--rtol", "1e-5", "--atol", "1e-5"]);
    }
    let refused = common::tfaot(&["run", &file("mlp.jax"), "--feed", "x"]);
    assert!(!refused.status.success() && said(&refused).contains("none can be chosen"), "{}", said(&refused));
}
