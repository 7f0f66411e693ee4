//! Objects for other systems: linked by their linkers, run where something here runs them, and held to TensorFlow's answers; what is
//! not supported is refused by name.
use crate::common::toolchains::Toolchain;
use crate::common::{npz, path, program, said, succeed, tfaot, tolerance::departure};
use std::path::{Path, PathBuf};
use std::process::Command;
use tfaot::tensor::Tensor;

/// What is computed in f32 and integers alone, and what also has loops and angles in f64.
const OF_F32: &[&str] = &["conv_net", "attention"];
const ALL: &[&str] = &["conv_net", "attention", "loops"];

fn graph(name: &str, file: &str) -> PathBuf {
    path("testdata/graphs").join(name).join(file)
}

fn file_name(tensor: &str) -> String {
    tensor.replace('/', "_")
}

/// Compiles a graph as model `m`.
fn compile(name: &str, triple: &str, out: &Path, more: &[&str]) {
    let fetches: Vec<String> = npz(&graph(name, "expect.npz")).into_keys().collect();
    let (file, out) = (graph(name, "graph.pb").display().to_string(), out.display().to_string());
    let mut args = vec!["compile", &file, "-o", &out, "--name", "m", "--target", triple];
    args.extend(fetches.iter().flat_map(|f| ["--fetch", f.as_str()]));
    succeed(&[&args, more].concat());
}

/// Compiles graphs, calls them on TensorFlow's inputs, and compares with its answers.
fn answers(toolchain: Option<Toolchain>, graphs: &[&str]) {
    let Some(toolchain) = toolchain else { return };
    for name in graphs {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let cpu: Vec<&str> = toolchain.cpu.iter().flat_map(|cpu| ["--cpu", cpu]).collect();
        compile(name, toolchain.triple, folder.path(), &cpu);
        for (key, value) in npz(&graph(name, "feeds.npz")) {
            std::fs::write(folder.path().join(format!("in.{}", file_name(&key))), &value.bytes).expect("written");
        }
        toolchain.call(folder.path());
        for (key, want) in npz(&graph(name, "expect.npz")) {
            let bytes = std::fs::read(folder.path().join(format!("out.{}", file_name(&key)))).expect("it wrote it");
            let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
            if let Some(why) = departure(&got, &want) {
                panic!("{} {name} {key}: {why}", toolchain.triple);
            }
        }
    }
}

#[test]
fn riscv_gives_tensorflows_answers() {
    answers(Toolchain::riscv64("rv64gc"), ALL);
}

#[test]
fn riscv_with_vectors_gives_tensorflows_answers() {
    answers(Toolchain::riscv64("rv64gcv"), ALL);
}

/// One object for both takes the vectors where the system tells of them, and what needs them is refused where it doesn't.
#[test]
fn riscv_code_asks_linux() {
    let Some(compiler) = program(&["riscv64-linux-gnu-gcc"]) else { return };
    let Some(emulator) = program(&["qemu-riscv64"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (cpu, with, without) in [("rv64gcv", 1, 0), ("rv64gc", 1, 1), ("rv64gc,rv64gcv", 1, 1)] {
        compile("mlp", "riscv64-unknown-linux-gnu", folder.path(), &["--cpu", cpu]);
        std::fs::write(folder.path().join("asks.c"), "#include \"m.h\"\nint main(void) { return m_supported(); }\n")
            .expect("written");
        let mut build = Command::new(compiler);
        build.args(["-static", "asks.c", "m.o", "-o", "asks"]).current_dir(&folder);
        let built = build.output().expect("a compiler");
        assert!(built.status.success(), "{}", said(&built));
        for (machine, want) in [("rv64,v=true,vext_spec=v1.0", with), ("rv64", without)] {
            let mut run = Command::new(emulator);
            let status = run.args(["-cpu", machine]).arg(folder.path().join("asks")).status().expect("it runs");
            assert_eq!(status.code(), Some(want), "{cpu} on {machine}");
        }
    }
}

#[test]
fn webassembly_gives_tensorflows_answers() {
    answers(Toolchain::wasm32(), ALL);
}

#[test]
fn windows_gives_tensorflows_answers() {
    answers(Toolchain::windows(), ALL);
}

#[test]
fn a_microcontroller_gives_tensorflows_answers() {
    answers(Toolchain::cortex_m4(), OF_F32);
}

/// The bytes of the constants of `conv_net`, as its object for this machine has them.
fn weights(folder: &Path) -> Vec<u8> {
    use object::{Object, ObjectSection};
    compile("conv_net", "x86_64-unknown-linux-gnu", folder, &["--cpu", "x86-64"]);
    let made = std::fs::read(folder.join("m.o")).expect("it was written");
    let file = object::File::parse(&*made).expect("an object");
    let section = file.section_by_name(".rodata.m_weights").expect("constants");
    section.data().expect("bytes").to_vec()
}

/// Apple's linker, as LLVM has it, makes libraries of the objects, with the constants that the object for this machine has where
/// the processor's plans are the same.
#[test]
fn apples_objects_link() {
    let (Some(lld), Some(objdump)) = (program(&["ld64.lld-22", "ld64.lld"]), program(&["llvm-objdump-22"])) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let constants = weights(folder.path());
    for (triple, cpu, arch, platform) in [
        ("x86_64-apple-macosx11.0.0", "x86-64", "x86_64", ["macos", "11.0", "11.0"]),
        ("arm64-apple-macosx11.0.0", "apple-m1", "arm64", ["macos", "11.0", "11.0"]),
        ("arm64-apple-ios15.0", "apple-a14", "arm64", ["ios", "15.0", "15.0"]),
    ] {
        compile("conv_net", triple, folder.path(), &["--cpu", cpu]);
        let mut link = Command::new(lld);
        link.args(["-dylib", "-arch", arch, "-platform_version"]).args(platform);
        link.args(["-undefined", "dynamic_lookup", "m.o", "-o", "m.dylib"]).current_dir(&folder);
        let linked = link.output().expect("a linker");
        assert!(linked.status.success(), "{triple}: {}", said(&linked));
        let mut tell = Command::new(objdump);
        let told =
            said(&tell.args(["--macho", "--exports-trie", "m.dylib"]).current_dir(&folder).output().expect("it ran"));
        for symbol in ["_m_run", "_m_info", "_m_supported"] {
            assert!(told.contains(symbol), "{triple}: {told}");
        }
        if arch == "x86_64" {
            for file in ["m.o", "m.dylib"] {
                let bytes = std::fs::read(folder.path().join(file)).expect("it was written");
                assert!(bytes.windows(constants.len()).any(|w| w == constants), "{triple} {file}");
            }
        }
    }
}

/// Microsoft's linker, as LLVM has it, makes libraries of the objects.
#[test]
fn microsofts_linker_takes_objects() {
    let (Some(lld), Some(clang)) = (program(&["lld-link-22", "lld-link"]), program(&["clang-22"])) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let constants = weights(folder.path());
    for (triple, cpu) in [("x86_64-pc-windows-msvc", "x86-64"), ("aarch64-pc-windows-msvc", "generic")] {
        compile("conv_net", triple, folder.path(), &["--cpu", cpu]);
        // what a C library would have: there is none here
        let own = "#include <stddef.h>\nint _fltused;\nvoid __chkstk(void) {}\n";
        std::fs::write(folder.path().join("own.c"), own).expect("written");
        let compiled = |source: &Path, to: &str| {
            let mut build = Command::new(clang);
            build.arg(format!("--target={triple}")).args(["-ffreestanding", "-O1", "-c"]).arg(source);
            let built = build.args(["-o", to]).current_dir(&folder).output().expect("a compiler");
            assert!(built.status.success(), "{triple}: {}", said(&built));
        };
        compiled(Path::new("own.c"), "own.o");
        compiled(&path("examples/microcontroller/memory.c"), "memory.o");
        let mut link = Command::new(lld);
        link.args(["/dll", "/noentry", "/nodefaultlib", "/export:m_run", "/export:m_info", "/out:m.dll"]);
        let linked = link.args(["m.o", "own.o", "memory.o"]).current_dir(&folder).output().expect("a linker");
        assert!(linked.status.success(), "{triple}: {}", said(&linked));
        if cpu == "x86-64" {
            let bytes = std::fs::read(folder.path().join("m.dll")).expect("it was written");
            assert!(bytes.windows(constants.len()).any(|w| w == constants), "{triple}");
        }
    }
}

/// Windows finds the way out of a function by tables; every function that calls others must have its line there.
#[test]
fn windows_can_walk_the_stack() {
    use object::{Object, ObjectSection};
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("attention", "x86_64-pc-windows-msvc", folder.path(), &["--cpu", "x86-64,x86-64-v3"]);
    let made = std::fs::read(folder.path().join("m.o")).expect("it was written");
    let file = object::File::parse(&*made).expect("an object");
    let section = file.section_by_name(".pdata").expect("a table of functions");
    // of each function where it begins, where it ends, and what it does to the stack
    assert!(section.size() >= 12 * 8, "{} bytes", section.size());
}

#[test]
fn what_is_not_supported_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().display().to_string();
    let mlp = graph("mlp", "graph.pb").display().to_string();
    let refused = |more: &[&str], wanted: &[&str]| {
        let output = tfaot(&[&["compile", &mlp, "-o", &out, "--target"], more].concat());
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{more:?}: {said}");
        wanted.iter().for_each(|word| assert!(said.contains(word), "{more:?} without `{word}`: {said}"));
    };
    refused(&["mips-unknown-linux-gnu"], &["TFA0302", "riscv64, wasm32 and thumbv7em"]);
    refused(&["riscv64-unknown-linux-gnu", "--cpu", "rv64gcvx"], &["TFA0302", "RISC-V", "rv64gcv"]);
    refused(&["riscv64-unknown-linux-gnu", "--features", "+zvfh"], &["TFA0302", "zvfh"]);
    refused(&["wasm32-unknown-unknown", "--features", "+relaxed-simd"], &["TFA0302", "relaxed-simd"]);
    refused(&["riscv64-unknown-linux-gnu", "--math", "bf16"], &["TFA0304", "riscv64"]);
    for triple in ["wasm32-unknown-unknown", "thumbv7em-none-eabihf", "x86_64-pc-windows-msvc"] {
        refused(&[triple, "--emit", "shared"], &["TFA0301", triple]);
        refused(&[triple, "--emit", "pool-shared"], &["TFA0301", triple]);
    }
    // a square root of f64, which the processor has no instruction for
    let text = "HloModule m\nENTRY e {\n  x = f64[4] parameter(0)\n  ROOT y = f64[4] sqrt(x)\n}\n";
    let file = folder.path().join("root.hlo");
    std::fs::write(&file, text).expect("written");
    let of_f64 = |cpu| {
        tfaot(&["compile", &file.display().to_string(), "-o", &out, "--target", "thumbv7em-none-eabihf", "--cpu", cpu])
    };
    let output = of_f64("cortex-m4");
    assert!(said(&output).contains("TFA0302") && said(&output).contains("sqrt"), "{}", said(&output));
    assert!(of_f64("cortex-m7").status.success());
}
