//! `compile --self-test`: the code that it adds agrees with the interpreter's answers on every machine that runs here, and tells
//! constants and weights that are not the author's.
use crate::common::toolchains::Toolchain;
use crate::common::{npz, path, program, program_that, ran, said, succeed, tfaot};
use npyz::WriterBuilder;
use object::{Object, ObjectSection};
use std::path::Path;
use std::process::Command;

/// The code of a result that is not the stored answer.
const DIFFERS: i32 = 8;
/// The code of weights that are another model's.
const OTHER_WEIGHTS: i32 = 4;
/// The whole numbers, attention, loops in f64, sorting, sums, and images whose results are floats alone.
const GRAPHS: &[&str] = &["attention", "conv_net", "integers", "loops", "order", "reductions", "mlp"];

/// Compiles a file as model `m` with a self-test.
fn compile(model: &str, folder: &Path, more: &[&str]) {
    let (file, out) = (path(model).display().to_string(), folder.display().to_string());
    succeed(&[&["compile", &file, "-q", "-o", &out, "--name", "m"], more].concat());
}

/// The code that the self-test of `object` in `folder` returns, linked by `compiler`.
fn verdict(folder: &Path, compiler: &[&str], object: &str, weights: Option<&Path>) -> i32 {
    let driver = folder.join("selftest");
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).args(["-DHEADER=\"m.h\"", "-I"]).arg(folder);
    ran(build.arg(path("tests/objects/selftest.c")).arg(folder.join(object)).args(["-lm", "-o"]).arg(&driver));
    let status = Command::new(&driver).args(weights).status().expect("it runs");
    status.code().unwrap_or(-1)
}

const GCC: &[&str] = &["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"];

fn is_host() -> bool {
    program(&["gcc"]).is_some()
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn graphs_pass_with_drawn_and_with_stored_arguments() {
    if !is_host() {
        return;
    }
    for name in GRAPHS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = |file: &str| format!("testdata/graphs/{name}/{file}");
        let (feeds, expect) = (path(&file("feeds.npz")), path(&file("expect.npz")));
        let fetches: Vec<String> = npz(&expect).into_keys().flat_map(|key| ["--fetch".to_string(), key]).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        let (feeds, expect) = (feeds.display().to_string(), expect.display().to_string());
        let sources = [vec!["--self-test", "7"], vec!["--self-test", &feeds, "--self-test-expect", &expect]];
        for source in sources {
            compile(&file("graph.pb"), folder.path(), &[&source[..], &fetches].concat());
            assert_eq!(verdict(folder.path(), GCC, "m.o", None), 0, "{name} {source:?}");
        }
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn source_passes_by_every_compiler() {
    for compiler in [program(&["gcc"]), program(&["clang-22", "clang"]), program_that(&["tcc"], "-v")] {
        let Some(compiler) = compiler else { continue };
        let strict: &[&str] = if compiler == "tcc" {
            &[]
        } else {
            &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
        };
        for name in ["conv_net", "integers", "loops"] {
            let folder = tempfile::tempdir().expect("a scratch folder");
            let model = format!("testdata/graphs/{name}/graph.pb");
            compile(&model, folder.path(), &["--emit", "c,header", "--self-test", "1"]);
            let mut build = Command::new(compiler);
            ran(build.args(strict).arg("-O1").arg("-c").arg("m.c").arg("-o").arg("m.o").current_dir(&folder));
            assert_eq!(verdict(folder.path(), &[compiler], "m.o", None), 0, "{name} by {compiler}");
        }
    }
}

/// Variables of several functions, calls in order over one state, and variables that grow.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn calls_over_one_state_pass() {
    if !is_host() {
        return;
    }
    for name in ["training", "variables", "growing_variables", "recurrent", "draws"] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let calls = path(&format!("testdata/modules/{name}/calls.jsonl")).display().to_string();
        let model = format!("testdata/modules/{name}/saved_model");
        compile(&model, folder.path(), &["--signature", "all", "--self-test", &calls]);
        assert_eq!(verdict(folder.path(), GCC, "m.o", None), 0, "{name}");
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("examples/training/model", folder.path(), &["--signature", "all", "--self-test", "3"]);
    assert_eq!(verdict(folder.path(), GCC, "m.o", None), 0, "each function once");
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn sizes_that_vary_pass() {
    if !is_host() {
        return;
    }
    let sized: [(&str, &[&str]); 3] = [
        ("open_layers", &["--feed", "x=f32[n<=5,t<=7,?]", "--feed", "ids=s32[n<=5,t<=7]"]),
        ("open_sizes", &["--feed", "x=f32[n<=9,?]", "--feed", "image=f32[?,h<=12,w<=9,?]"]),
        ("ragged_rows", &["--feed", "values=f32[v<=64]", "--feed", "lengths=s32[n<=16]"]),
    ];
    for (name, feeds) in sized {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let model = format!("testdata/graphs/{name}/graph.pb");
        let arrays = path(&format!("testdata/graphs/{name}/feeds.npz")).display().to_string();
        compile(&model, folder.path(), &[feeds, &["--self-test", &arrays]].concat());
        assert_eq!(verdict(folder.path(), GCC, "m.o", None), 0, "{name}");
    }
}

/// Changes the highest byte of an f32 of the constants, one in each of some places.
#[test]
fn changed_constants_are_told() {
    if !is_host() {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("testdata/graphs/mlp/graph.pb", folder.path(), &["--self-test", "1"]);
    let made = std::fs::read(folder.path().join("m.o")).expect("an object");
    let file = object::File::parse(&*made).expect("an object");
    let section = file.section_by_name(".rodata.m_weights").expect("constants");
    let (from, bytes) = section.file_range().expect("it has bytes");
    for part in 0..8u64 {
        let mut changed = made.clone();
        let mut at = (from + part * bytes / 8) as usize / 4 * 4 + 3;
        // a weight that is 0, or padding, has no part in an answer
        while made[at] & 0x7f == 0 {
            at += 4;
        }
        changed[at] ^= 0x80;
        std::fs::write(folder.path().join("changed.o"), &changed).expect("written");
        assert_eq!(verdict(folder.path(), GCC, "changed.o", None), DIFFERS, "byte {at}");
    }
}

#[test]
fn changed_files_of_weights_are_told() {
    if !is_host() {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("testdata/graphs/conv_net/graph.pb", folder.path(), &["--self-test", "1", "--weights-file"]);
    let made = std::fs::read(folder.path().join("m.weights")).expect("weights");
    let changed = folder.path().join("changed.weights");
    let numbers = made.len() / 2 / 4 * 4;
    for (at, want) in [(0..0, 0), (numbers..numbers + 64, DIFFERS), (0..8, OTHER_WEIGHTS)] {
        let mut bytes = made.clone();
        bytes[at.clone()].iter_mut().skip(3).step_by(4).for_each(|byte| *byte ^= 0x40);
        std::fs::write(&changed, &bytes).expect("written");
        assert_eq!(verdict(folder.path(), GCC, "m.o", Some(&changed)), want, "byte {at:?}");
    }
}

#[test]
fn classes_of_cpp_and_modules_of_rust_have_it() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let more = ["--self-test", "1", "--emit", "obj,archive,header,cpp,rust"];
    compile("testdata/graphs/conv_net/graph.pb", folder.path(), &more);
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).expect("written");
    if let Some(compiler) = program(&["g++"]) {
        write("main.cpp", "#include \"m.hpp\"\nint main() { return M::SelfTest().empty() ? 0 : 1; }\n");
        let flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "main.cpp", "m.o", "-o", "cpp"];
        ran(Command::new(compiler).args(flags).current_dir(&folder));
        ran(&mut Command::new(folder.path().join("cpp")));
    }
    if program(&["cc"]).is_some() {
        write(
            "main.rs",
            "mod m { include!(\"m.rs\"); }\nfn main() { m::M::self_test().expect(\"the author's answer\"); }\n",
        );
        let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
        let flags = ["--edition", "2024", "-D", "warnings", "main.rs", "-L", ".", "-l", "static=m", "-o", "rust"];
        ran(Command::new(rustc).args(flags).current_dir(&folder));
        ran(&mut Command::new(folder.path().join("rust")));
    }
}

/// On emulated machines: the driver calls the self-test behind its own call.
fn passes_on(toolchain: Option<Toolchain>, graphs: &[&str]) {
    passes_through(toolchain, graphs, &[], |_| ());
}

/// The same, with an object that `build` makes of what `emit` asks for.
fn passes_through(toolchain: Option<Toolchain>, graphs: &[&str], emit: &[&str], build: impl Fn(&Path)) {
    let Some(toolchain) = toolchain else { return };
    for name in graphs {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let cpu: Vec<&str> = toolchain.cpu.iter().flat_map(|cpu| ["--cpu", cpu]).collect();
        let more = [&["--target", toolchain.triple, "--self-test", "1"], &cpu[..], emit].concat();
        compile(&format!("testdata/graphs/{name}/graph.pb"), folder.path(), &more);
        for (key, value) in npz(&path(&format!("testdata/graphs/{name}/feeds.npz"))) {
            std::fs::write(folder.path().join(format!("in.{}", key.replace('/', "_"))), &value.bytes).expect("written");
        }
        build(folder.path());
        toolchain.call(folder.path());
    }
}

#[test]
fn it_passes_on_aarch64() {
    passes_on(Toolchain::aarch64(), &["attention", "conv_net", "integers", "loops"]);
}

#[test]
fn it_passes_on_a_microcontroller() {
    passes_on(Toolchain::cortex_m4(), &["attention", "conv_net"]);
}

/// C source through the compiler that such boards have, without a line of LLVM's code.
#[test]
fn source_passes_on_a_microcontroller() {
    let Some(compiler) = program(&["arm-none-eabi-gcc"]) else { return };
    let processor = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-ffreestanding"];
    let flags = ["-std=c99", "-O2", "-fno-math-errno", "-c", "m.c", "-o", "m.o"];
    passes_through(Toolchain::cortex_m4(), &["attention", "conv_net"], &["--emit", "c,header"], |folder| {
        ran(Command::new(compiler).args(processor).args(flags).current_dir(folder));
    });
}

#[test]
fn it_passes_on_risc_v() {
    passes_on(Toolchain::riscv64("rv64gcv"), &["conv_net", "loops"]);
}

/// Writes one array of f32 as argument `0` of a module.
fn write_argument(file: &Path, values: &[f32]) {
    let mut npz = npyz::npz::NpzWriter::create(file).expect("a writable folder");
    let array = npz.array("0", Default::default()).expect("a file in it");
    let mut writer = array.default_dtype().shape(&[values.len() as u64]).begin_nd().expect("a header");
    writer.extend(values.iter().copied()).expect("elements");
    writer.finish().expect("whole");
}

/// Each type of a result is compared: an argument that is changed in the object makes another result.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn results_of_every_type_are_compared() {
    if !is_host() {
        return;
    }
    let values = [1.5f32, -2.25, 0.0, 3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 7.5, 1e-7, 100.0];
    let pattern: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    for (kind, is_float) in [
        ("f16", true),
        ("bf16", true),
        ("f32", true),
        ("f64", true),
        ("f8e5m2", true),
        ("f8e4m3fn", false),
        ("c64", true),
        ("c128", true),
        ("pred", false),
        ("s8", false),
        ("s16", false),
        ("s32", false),
        ("s64", false),
        ("u8", false),
        ("u64", false),
    ] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let at = |file: &str| folder.path().join(file);
        let limits = "lo = f32[] constant(0)\n los = f32[10] broadcast(lo), dimensions={}\n hi = f32[] constant(9)\n his = f32[10] broadcast(hi), dimensions={}\n";
        let z = if is_float { "copy(x)" } else { "clamp(los, x, his)" };
        let text = format!(
            "HloModule m\nENTRY e {{ x = f32[10] parameter(0)\n {limits} z = f32[10] {z}\n ROOT y = {kind}[10] convert(z) }}\n"
        );
        std::fs::write(at("m.hlo"), text).expect("written");
        write_argument(&at("x.npz"), &values);
        let [model, x] = [at("m.hlo"), at("x.npz")].map(|p| p.display().to_string());
        compile(&model, folder.path(), &["--self-test", &x]);
        assert_eq!(verdict(folder.path(), GCC, "m.o", None), 0, "{kind}");
        let made = std::fs::read(at("m.o")).expect("an object");
        let found = made.windows(pattern.len()).position(|bytes| bytes == pattern).expect("the argument");
        // 100 becomes 0, infinity becomes its negative, and 0.0 becomes -0.0, which is no other number
        for (number, value, want) in [(9, 0.0, DIFFERS), (4, f32::NEG_INFINITY, DIFFERS), (2, -0.0, 0)] {
            // where a type has no infinities the module has limited them
            if number == 4 && !is_float {
                continue;
            }
            let mut changed = made.clone();
            changed[found + 4 * number..][..4].copy_from_slice(&f32::to_le_bytes(value));
            std::fs::write(at("changed.o"), &changed).expect("written");
            assert_eq!(verdict(folder.path(), GCC, "changed.o", None), want, "{kind} with {value} for {number}");
        }
    }
}

/// A wrong expectation is refused when it is stored, and so is what has no answer here.
#[test]
fn what_has_no_answer_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let refused = |args: &[&str], code: &str| {
        let out = folder.path().join("none").display().to_string();
        let output = tfaot(&[&["compile", "-o", &out], args].concat());
        assert!(!output.status.success() && said(&output).contains(code), "{args:?}: {}", said(&output));
        assert!(!Path::new(&out).exists());
    };
    let [graph, feeds, expect] =
        ["graph.pb", "feeds.npz", "expect.npz"].map(|f| format!("testdata/graphs/conv_net/{f}"));
    refused(&[&graph, "--self-test", &feeds, "--self-test-expect", &feeds], "TFA0");
    refused(&[&graph, "--self-test", "1", "--self-test-expect", &expect], "TFA0007");
    refused(&[&graph, "--self-test", "none.npz"], "TFA0");
    refused(&["examples/training/model", "--signature", "all", "--self-test", &feeds], "TFA0007");
    let text =
        "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] custom-call(x), custom_call_target=\"own\" }\n";
    let file = folder.path().join("own.hlo");
    std::fs::write(&file, text).expect("written");
    refused(&[&file.display().to_string(), "--self-test", "1"], "TFA0206");
    let text = "HloModule m, replica_count=2\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }\n";
    std::fs::write(&file, text).expect("written");
    refused(&[&file.display().to_string(), "--self-test", "1"], "TFA0205");
}
