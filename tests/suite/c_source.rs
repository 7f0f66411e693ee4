//! Models as C source: every compiler that is here takes it without a warning, and its code gives TensorFlow's answers.
use crate::common::{npz, path, program, program_that, ran, said, succeed, tfaot, tolerance::departure};
use std::path::{Path, PathBuf};
use std::process::Command;
use tfaot::tensor::Tensor;

const STRICT: &[&str] = &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"];
/// Convolutions, attention, loops, integers of all widths, sums, roundings, sorting, pictures.
const GRAPHS: &[&str] =
    &["attention", "conv_net", "fake_quant", "integers", "loops", "norms", "order", "reductions", "resize"];

fn graph(name: &str, file: &str) -> PathBuf {
    path("testdata/graphs").join(name).join(file)
}

/// Writes graph `name` as `m.c` and `m.h`.
fn compile(name: &str, folder: &Path, more: &[&str]) {
    let fetches: Vec<String> = npz(&graph(name, "expect.npz")).into_keys().collect();
    let (file, out) = (graph(name, "graph.pb").display().to_string(), folder.display().to_string());
    let mut args = vec!["compile", &file, "-o", &out, "--name", "m", "--emit", "c,header"];
    args.extend(fetches.iter().flat_map(|f| ["--fetch", f.as_str()]));
    args.extend(more);
    succeed(&args);
}

/// Makes an object of `m.c` by `compiler`, links it with a driver, runs that and compares its results with TensorFlow's answers.
fn drive(name: &str, folder: &Path, compiler: &[&str], linked: &[&str]) {
    let object = folder.join("m.o");
    ran(Command::new(compiler[0]).args(&compiler[1..]).arg("-c").arg(folder.join("m.c")).arg("-o").arg(&object));
    let input = |key: &str| folder.join(format!("in.{}", key.replace('/', "_")));
    for (key, value) in npz(&graph(name, "feeds.npz")) {
        std::fs::write(input(&key), &value.bytes).expect("a writable folder");
    }
    let driver = folder.join("driver");
    // what objects of a small compiler need is in its own library
    let mut build = Command::new(if compiler[0] == "tcc" { "tcc" } else { "gcc" });
    build
        .args(["-DHEADER=\"m.h\"", "-DINFO=m_info", "-I"])
        .arg(folder)
        .arg(path("tests/objects/driver.c"))
        .arg(&object);
    ran(build.args(linked).args(["-lm", "-o"]).arg(&driver));
    ran(Command::new(&driver).arg(folder));
    for (key, want) in npz(&graph(name, "expect.npz")) {
        let bytes = std::fs::read(folder.join(format!("out.{}", key.replace('/', "_")))).expect("the driver wrote it");
        let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
        if let Some(why) = departure(&got, &want) {
            panic!("{name} {key} by {compiler:?}: {why}");
        }
    }
}

fn each_graph(graphs: &[&str], compiler: &[&str], linked: &[&str]) {
    if program(&["gcc"]).is_none() {
        return;
    }
    for name in graphs {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile(name, folder.path(), &[]);
        drive(name, folder.path(), compiler, linked);
    }
}

#[test]
fn gcc_takes_vectors() {
    each_graph(GRAPHS, &[&["gcc", "-O2", "-march=native", "-fno-math-errno"], STRICT].concat(), &[]);
}

#[test]
fn gcc_takes_plain_arrays_and_finds_no_undefined_behavior() {
    let checks = ["gcc", "-O1", "-DTFAOT_PLAIN_C", "-fsanitize=undefined", "-fno-sanitize-recover=all"];
    each_graph(&["attention", "integers", "loops", "norms"], &[&checks, STRICT].concat(), &["-fsanitize=undefined"]);
}

#[test]
fn clang_takes_vectors() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    each_graph(GRAPHS, &[&[clang, "-O1"], STRICT].concat(), &[]);
}

#[test]
fn a_small_compiler_takes_it() {
    let Some(tcc) = program_that(&["tcc"], "-v") else { return };
    each_graph(GRAPHS, &[tcc], &[]);
}

#[test]
fn a_compiler_for_microcontrollers_takes_it() {
    let Some(compiler) = program(&["arm-none-eabi-gcc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("conv_net", folder.path(), &["--target", "thumbv7em-none-eabihf"]);
    let mut build = Command::new(compiler);
    build.args(STRICT).args(["-O2", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-c"]);
    ran(build.arg(folder.path().join("m.c")).arg("-o").arg(folder.path().join("m.o")));
}

#[test]
fn source_alone_is_for_one_processor_and_no_machine_code_is_made() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("norms", folder.path(), &["--target", "x86_64-unknown-linux-gnu"]);
    let header = std::fs::read_to_string(folder.path().join("m.h")).expect("the compiler wrote it");
    assert!(header.contains("(x86-64-v3)"), "{}", header.lines().next().unwrap_or(""));
}

#[test]
fn source_of_a_module_alone_makes_no_machine_code() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (file, out) = (folder.path().join("m.hlo"), folder.path().display().to_string());
    let text = "HloModule m\nENTRY e { x = f32[8,8] parameter(0)\n ROOT y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n";
    std::fs::write(&file, text).expect("written");
    let triple = "x86_64-unknown-linux-gnu";
    succeed(&["hlo", "compile", &file.display().to_string(), "-o", &out, "--emit", "c,header", "--target", triple]);
    let header = std::fs::read_to_string(folder.path().join("m.h")).expect("the compiler wrote it");
    assert!(header.contains("(x86-64-v3)"), "{}", header.lines().next().unwrap_or(""));
}

/// Loops and conditions are those of C, and loops have their bounds beside them.
#[test]
fn loops_are_loops() {
    for name in GRAPHS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile(name, folder.path(), &["--self-test", "1"]);
        let source = std::fs::read_to_string(folder.path().join("m.c")).expect("the compiler wrote it");
        assert!(source.contains("for (;;) {") && source.contains("break;"), "{name}");
        assert_eq!(source.matches("goto ").count(), 0, "{name}");
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("conv_net", folder.path(), &[]);
    let source = std::fs::read_to_string(folder.path().join("m.c")).expect("the compiler wrote it");
    assert!(source.contains("for (;;) { /* at most 3 rounds */"), "the taps of a filter");
}

/// Calls a model of one number and eight floats with numbers in and out of the range of its branches.
const CHOOSING_DRIVER: &str = "#include \"m.h\"
static _Alignas(M_WORKSPACE_ALIGN) unsigned char workspace[M_WORKSPACE_BYTES + 64];
int main(void) {
  float x[8] = {1}, y[8];
  for (int32_t n = -2; n < 8; n++) {
    m_args args = {.p0 = &n, .p1 = x};
    m_results results = {.r0 = y};
    if (m_run(&args, &results, workspace, 0) || y[0] != 1.0f + (float)(n < 0 || n > 4 ? 4 : n)) return n + 10;
  }
  return 0;
}
";

/// A choice among many branches is conditions in conditions.
#[test]
fn choices_are_conditions() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (file, out) = (folder.path().join("m.hlo"), folder.path().display().to_string());
    let branch = |i: u32| {
        format!(
            "b{i} {{ p{i} = f32[8] parameter(0)\n c{i} = f32[] constant({i})\n\
             k{i} = f32[8] broadcast(c{i}), dimensions={{}}\n ROOT r{i} = f32[8] add(p{i}, k{i}) }}\n"
        )
    };
    let branches: String = (0..5).map(branch).collect();
    let entry = "ENTRY e { n = s32[] parameter(0)\n x = f32[8] parameter(1)\n\
        ROOT y = f32[8] conditional(n, x, x, x, x, x), branch_computations={b0,b1,b2,b3,b4} }\n";
    std::fs::write(&file, format!("HloModule m\n{branches}{entry}")).expect("written");
    succeed(&["hlo", "compile", &file.display().to_string(), "-o", &out, "--emit", "c,header"]);
    let source = std::fs::read_to_string(folder.path().join("m.c")).expect("the compiler wrote it");
    assert_eq!(source.matches("goto ").count(), 0, "{source}");
    let Some(compiler) = program(&["gcc", "clang-22", "clang"]) else { return };
    std::fs::write(folder.path().join("driver.c"), CHOOSING_DRIVER).expect("written");
    let mut build = Command::new(compiler);
    ran(build.args(["-std=c11", "m.c", "driver.c", "-lm", "-o", "driver"]).current_dir(folder.path()));
    ran(Command::new(folder.path().join("driver")).current_dir(folder.path()));
}

#[test]
fn the_same_source_comes_again() {
    let read = || {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile("attention", folder.path(), &[]);
        std::fs::read(folder.path().join("m.c")).expect("the compiler wrote it")
    };
    assert!(read() == read());
}

#[test]
fn products_of_bfloat16_are_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (graph, out) = (graph("wide_layers", "graph.pb").display().to_string(), folder.path().display().to_string());
    let output = tfaot(&[
        "compile",
        &graph,
        "-o",
        &out,
        "--emit",
        "c",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--cpu",
        "znver4",
        "--math",
        "bf16",
    ]);
    assert!(!output.status.success() && said(&output).contains("TFA0304"), "{}", said(&output));
}

#[test]
fn vectors_of_floats_become_integers() {
    for dtype in ["s8", "u8", "s16", "u16", "s4", "u4", "s32"] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (file, out) = (folder.path().join("m.hlo"), folder.path().display().to_string());
        let hlo = format!("HloModule m\nENTRY e {{\n x = f32[37] parameter(0)\n ROOT y = {dtype}[37] convert(x)\n}}\n");
        std::fs::write(&file, hlo).expect("a writable folder");
        succeed(&["compile", &file.display().to_string(), "-o", &out, "--name", "m", "--emit", "c,header"]);
        for plain in [&[][..], &["-DTFAOT_PLAIN_C"]] {
            let Some(gcc) = program(&["gcc"]) else { continue };
            let object = folder.path().join("m.o");
            ran(Command::new(gcc)
                .args(STRICT)
                .args(plain)
                .arg("-c")
                .arg(folder.path().join("m.c"))
                .arg("-o")
                .arg(&object));
        }
    }
}
