//! What JAX exports: its own answers from the interpreter and from machine code, and C programs that call such objects.
use crate::common::{path, program, said, succeed};
use std::path::Path;
use std::process::Command;

/// The modules of testdata/jax that have JAX's answers beside them, but for those of any size.
fn models() -> Vec<String> {
    let folder = std::fs::read_dir(path("testdata/jax")).expect("a folder");
    let names = folder.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let mut all: Vec<String> = names.filter_map(|n| n.strip_suffix(".out.npz").map(str::to_string)).collect();
    all.retain(|name| !name.starts_with("open_"));
    all.sort();
    all
}

fn file(name: &str) -> String {
    path("testdata/jax").join(name).display().to_string()
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn exported_functions_give_what_jax_gives() {
    let all = models();
    assert!(all.len() >= 25, "{all:?}");
    for name in all {
        let [module, given, wanted] = ["mlirbc", "in.npz", "out.npz"].map(|end| file(&format!("{name}.{end}")));
        succeed(&["verify", &module, "--inputs", &given, "--expect", &wanted, "--rtol", "1e-5", "--atol", "1e-5"]);
    }
}

/// Functions that were exported for any sizes: as numbers, by JAX's names for them, and up to a bound.
const OPEN: &[(&str, &[&[&str]])] = &[
    ("open_batch", &[&["--dim", "b=5"], &["--dim", "b=1..8"], &["--dim", "5"], &["--feed", "x=f32[n<=9,8]"]]),
    (
        "open_encoder",
        &[
            &["--dim", "b=3", "--dim", "t=5"],
            &["--dim", "b=1..4", "--dim", "t=1..8"],
            &["--dim", "b=3", "--dim", "t=1..6"],
        ],
    ),
    ("open_recurrent", &[&["--dim", "t=6"], &["--dim", "t=2..9"]]),
    ("open_images", &[&["--dim", "batch=2"], &["--dim", "b=1..5"]]),
    ("open_solve", &[&["--dim", "b=5"], &["--dim", "b=1..8"]]),
];

#[test]
fn functions_for_any_sizes_give_what_jax_gives() {
    for (name, sizes) in OPEN {
        let [module, given, wanted] = ["jax", "in.npz", "out.npz"].map(|end| file(&format!("{name}.{end}")));
        for said in *sizes {
            let arguments =
                ["verify", &module, "--inputs", &given, "--expect", &wanted, "--rtol", "1e-5", "--atol", "1e-5"];
            succeed(&[&arguments[..], said].concat());
        }
    }
}

#[test]
fn open_sizes_are_asked_for_by_name() {
    let told = said(&crate::common::tfaot(&["check", &file("open_encoder.jax")]));
    assert!(told.contains("TFA0009") && told.contains("x f32[b,t,16], mask pred[b,t]"), "{told}");
    assert!(told.contains("--dim 'b=8' --dim 't=8'") && told.contains("--dim 'b=1..64' --dim 't=1..64'"), "{told}");
    // the same module alone, where only what it asserts tells that axes have one size
    let text = succeed(&["hlo", "print", &file("open_encoder.jax"), "--dim", "b=2", "--dim", "t=3"]);
    assert!(text.contains("f32[2,3,16]") && text.contains("pred[2,3]"), "{text}");
    let wrong = said(&crate::common::tfaot(&[
        "check",
        &file("open_encoder.jax"),
        "--dim",
        "b=2",
        "--dim",
        "t=3",
        "--dim",
        "mask[1]=4",
    ]));
    assert!(wrong.contains("TFA") && wrong.contains("args[1].shape[1]"), "{wrong}");
}

/// Modules of JAX and of HLO, written as StableHLO and read back.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn what_is_written_as_stablehlo_is_the_same_module() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for name in models() {
        let [module, given, wanted] = ["mlirbc", "in.npz", "out.npz"].map(|end| file(&format!("{name}.{end}")));
        let text = succeed(&["hlo", "print", &module, "--format", "stablehlo"]);
        let written = folder.path().join(format!("{name}.mlir")).display().to_string();
        std::fs::write(&written, &text).expect("written");
        succeed(&["verify", &written, "--inputs", &given, "--expect", &wanted, "--rtol", "1e-5", "--atol", "1e-5"]);
    }
}

#[test]
fn the_older_form_of_lapacks_calls_is_the_newer_one() {
    // Options and sizes in front of the arrays, scratch memory behind the results.
    let text = "module @m { func.func public @main() -> (tensor<2x2xf32>, tensor<2xi32>, tensor<i32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2xf32>) {
        %a = stablehlo.constant dense<[[0.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
        %s = stablehlo.constant dense<[[4.0, 9.0], [2.0, 5.0]]> : tensor<2x2xf32>
        %b = stablehlo.constant dense<[[2.0], [5.0]]> : tensor<2x1xf32>
        %0 = stablehlo.constant dense<0> : tensor<i32>
        %1 = stablehlo.constant dense<1> : tensor<i32>
        %2 = stablehlo.constant dense<2> : tensor<i32>
        %f = stablehlo.constant dense<1.0> : tensor<f32>
        %lu:3 = stablehlo.custom_call @lapack_sgetrf(%1, %2, %2, %a) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xi32>, tensor<i32>)
        %l:2 = stablehlo.custom_call @lapack_spotrf(%1, %1, %2, %s) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
        %x = stablehlo.custom_call @blas_strsm(%1, %1, %0, %0, %2, %1, %1, %f, %l#0, %b) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
        %v:5 = stablehlo.custom_call @lapack_ssyevd(%1, %1, %2, %s) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<i32>, tensor<21xf32>, tensor<13xi32>)
        return %lu#0, %lu#1, %lu#2, %l#0, %x, %v#1 : tensor<2x2xf32>, tensor<2xi32>, tensor<i32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<2xf32>
    } }";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let module = folder.path().join("older.mlir").display().to_string();
    std::fs::write(&module, text).expect("written");
    let told = succeed(&["hlo", "eval", &module]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "0: f32[2, 2] [3.0, 4.0, 0.0, 2.0]");
    assert_eq!(lines[1], "1: s32[2] [2, 2]");
    assert_eq!(lines[2], "2: s32[] [0]");
    assert_eq!(lines[3], "3: f32[2, 2] [2.0, 0.0, 1.0, 2.0]");
    assert_eq!(lines[4], "4: f32[2, 1] [1.0, 2.0]");
    // (9 ∓ √17) / 2
    assert!(lines[5].starts_with("5: f32[2] [2.438447") && lines[5].contains("6.56155"), "{told}");
    succeed(&["hlo", "run", &module, "--random", "--engine", "native,interpreter"]);
}

#[test]
fn a_function_of_lapack_that_is_not_here_is_refused_by_name() {
    let text = "module @m { func.func public @main(%a: tensor<2x2xf32>) -> tensor<2xf32> {
        %0:5 = stablehlo.custom_call @lapack_sgelsd_ffi(%a) {api_version = 4 : i32} : (tensor<2x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<i32>)
        return %0#0 : tensor<2xf32>
    } }";
    let folder = tempfile::tempdir().expect("a scratch folder");
    let module = folder.path().join("general.mlir").display().to_string();
    std::fs::write(&module, text).expect("written");
    let refused = crate::common::tfaot(&["compile", &module, "-o", &folder.path().display().to_string()]);
    let told = said(&refused);
    assert!(!refused.status.success() && told.contains("TFA0203") && told.contains("lapack_sgelsd_ffi"), "{told}");
}

#[test]
fn two_engines_give_one_verdict() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let module = folder.path().join("m.hlo").display().to_string();
    let text = "HloModule m
ENTRY e {
  x = f32[3,4] parameter(0)
  i = s32[4] parameter(1)
  t = f32[3,4] tanh(x)
  ROOT r = (f32[3,4], s32[4]) tuple(t, i)
}";
    std::fs::write(&module, text).expect("written");
    let told = succeed(&["hlo", "run", &module, "--random", "--engine", "native,interpreter"]);
    assert_eq!(told.lines().filter(|l| l.starts_with("equal")).count(), 2, "{told}");
    let plain = succeed(&["hlo", "run", &module, "--engine", "interpreter"]);
    assert_eq!(plain, succeed(&["hlo", "eval", &module]));
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
    let refused = crate::common::tfaot(&["check", &graph, "--feed", "x0=f32[4,7]"]);
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
    let refused = crate::common::tfaot(&["run", &file("mlp.jax"), "--feed", "x"]);
    assert!(!refused.status.success() && said(&refused).contains("none can be chosen"), "{}", said(&refused));
}
