//! What a C or C++ programmer meets: objects that need nothing, headers that every compiler takes, silent sanitizers, the same
//! bytes again, many models and many threads in one program, and AArch64 under an emulator.
use crate::common::{npz, path, program, succeed, tolerance::departure};
use object::{Object, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;
use tfaot::tensor::Tensor;

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror", "-pedantic"];
const GRAPHS: &[&str] = &["conv_net", "attention", "loops"];

fn graph(name: &str, file: &str) -> PathBuf {
    path("testdata/graphs").join(name).join(file)
}

/// Compiles graph `name` as model `model` into `out`.
fn compile(name: &str, model: &str, out: &Path, more: &[&str]) {
    let fetches: Vec<String> = npz(&graph(name, "expect.npz")).into_keys().collect();
    let (file, out) = (graph(name, "graph.pb").display().to_string(), out.display().to_string());
    let mut args = vec!["compile", &file, "-o", &out, "--name", model];
    args.extend(fetches.iter().flat_map(|f| ["--fetch", f.as_str()]));
    args.extend(more);
    succeed(&args);
}

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = crate::common::said(&output);
    assert!(output.status.success(), "{command:?}\n{said}");
    said
}

fn bytes_file(name: &str) -> String {
    name.replace('/', "_")
}

/// Builds the driver with `compiler`, runs it (under `runner`, if any) and compares with TensorFlow's answers.
fn drive(name: &str, folder: &Path, compiler: &[&str], runner: Option<&[&str]>) {
    for (key, value) in npz(&graph(name, "feeds.npz")) {
        std::fs::write(folder.join(format!("in.{}", bytes_file(&key))), &value.bytes).expect("written");
    }
    let program = folder.join("driver");
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).args(["-DHEADER=\"m.h\"", "-DINFO=m_info", "-I"]).arg(folder);
    build.arg(path("tests/objects/driver.c"));
    if compiler.contains(&"c++") {
        build.args(["-x", "none"]);
    }
    ran(build.arg(folder.join("m.o")).arg("-o").arg(&program));
    let mut run = match runner {
        Some(runner) => {
            let mut run = Command::new(runner[0]);
            run.args(&runner[1..]).arg(&program);
            run
        }
        None => Command::new(&program),
    };
    ran(run.arg(folder));
    for (key, want) in npz(&graph(name, "expect.npz")) {
        let bytes = std::fs::read(folder.join(format!("out.{}", bytes_file(&key)))).expect("the driver wrote it");
        let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
        if let Some(why) = departure(&got, &want) {
            panic!("{name} {key} by {compiler:?}: {why}");
        }
    }
}

fn each_graph(compiler: &[&str]) {
    for name in GRAPHS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile(name, "m", folder.path(), &[]);
        drive(name, folder.path(), compiler, None);
    }
}

#[test]
fn gcc_takes_c99() {
    let Some(gcc) = program(&["gcc"]) else { return };
    each_graph(&[&[gcc, "-std=c99"], STRICT].concat());
}

#[test]
fn gcc_takes_cpp17() {
    let Some(gcc) = program(&["g++"]) else { return };
    each_graph(&[&[gcc, "-x", "c++", "-std=c++17"], STRICT].concat());
}

#[test]
fn clang_takes_c99() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    each_graph(&[&[clang, "-std=c99", "-Wconversion", "-Wshadow"], STRICT].concat());
}

#[test]
fn sanitizers_are_silent() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    each_graph(&[clang, "-std=c99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
}

#[test]
fn nothing_is_undefined_but_memory() {
    for name in GRAPHS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile(name, "m", folder.path(), &[]);
        let bytes = std::fs::read(folder.path().join("m.o")).expect("it was written");
        let file = object::File::parse(&*bytes).expect("an object");
        for symbol in file.symbols().filter(|s| s.is_undefined()) {
            let known = ["", "memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"];
            let symbol = symbol.name().expect("text");
            assert!(known.contains(&symbol), "{name} needs {symbol}");
        }
    }
}

#[test]
fn bytes_repeat() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    for name in GRAPHS {
        compile(name, "m", one.path(), &[]);
        compile(name, "m", two.path(), &[]);
        for file in ["m.o", "m.h"] {
            let read = |folder: &Path| std::fs::read(folder.join(file)).expect("it was written");
            assert!(read(one.path()) == read(two.path()), "{name}: {file} differs");
        }
    }
}

/// Two models in one program, eight threads with a workspace each, executors of one to eight threads: under ThreadSanitizer.
#[test]
fn threads_share_nothing() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("conv_net", "one", folder.path(), &[]);
    compile("norms", "two", folder.path(), &[]);
    let program = folder.path().join("threads");
    let mut build = Command::new(clang);
    build.args(["-std=gnu99", "-g", "-O1", "-fsanitize=thread", "-pthread", "-DONE=one_info", "-DTWO=two_info", "-I"]);
    build.arg(folder.path()).arg(path("tests/objects/threads.c"));
    ran(build.args(["one.o", "two.o"].map(|o| folder.path().join(o))).arg("-o").arg(&program));
    // ThreadSanitizer's memory map fails on kernels with much address randomisation
    let mut run = Command::new("setarch");
    assert_eq!(ran(run.args(["-R"]).arg(&program)).trim(), "the same bytes every time");
}

#[test]
fn aarch64_runs_under_an_emulator() {
    let Some(gcc) = program(&["aarch64-linux-gnu-gcc"]) else { return };
    let Some(qemu) = program(&["qemu-aarch64"]) else { return };
    for name in GRAPHS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile(name, "m", folder.path(), &["--target", "aarch64-unknown-linux-gnu"]);
        drive(
            name,
            folder.path(),
            &[&[gcc, "-std=c99"], STRICT].concat(),
            Some(&[qemu, "-L", "/usr/aarch64-linux-gnu"]),
        );
    }
}

/// What a model says on an emulated processor: whether it is supported, what a call returns, and its result for 0, 1, 2, 3.
fn said_under(folder: &Path, gcc: &str, runner: &[&str]) -> String {
    let (source, built) = (folder.join("says.c"), folder.join("says"));
    let text = r#"#include "m.h"
        #include <stdio.h>
        static _Alignas(64) unsigned char workspace[M_WORKSPACE_BYTES + 64];
        int main(void) {
          float x[4] = {0, 1, 2, 3}, y[4] = {0};
          m_args args = {.x = x};
          m_results results = {.y = y};
          printf("%d", m_supported());
          fflush(stdout);
          int code = m_run(&args, &results, workspace, NULL);
          printf(" %d %g %g %g %g", code, y[0], y[1], y[2], y[3]);
          return 0;
        }"#;
    std::fs::write(&source, text).expect("written");
    // static: such a program has no dynamic linker that could be asked for the C library's functions
    ran(Command::new(gcc)
        .args(["-std=c11", "-static", "-I"])
        .args([folder, &source, &folder.join("m.o")])
        .arg("-o")
        .arg(&built));
    ran(Command::new(runner[0]).args(&runner[1..]).arg(&built))
}

/// Linux tells the code which instructions it may use; what it may not is refused instead of a signal.
#[test]
fn aarch64_code_asks_linux() {
    let Some(gcc) = program(&["aarch64-linux-gnu-gcc"]) else { return };
    let Some(qemu) = program(&["qemu-aarch64"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (yes, no) = ("1 0 1 2 3 4", "0 1 0 0 0 0");
    for (options, a53, max) in [
        (&["--cpu", "neoverse-v1"][..], no, yes),
        (&["--cpu", "cortex-a53"], yes, yes),
        (&["--features", "+bf16"], no, yes),
        (
            &["--cpu", "neoverse-v1", "--features=-fullfp16,-dotprod,-rdm,-complxnum,-jsconv,-sha3,-bf16,-i8mm"],
            yes,
            yes,
        ),
        (&["--cpu", "cortex-a53,neoverse-v1"], yes, yes),
        (&["--cpu", "neoverse-v1,neoverse-n1"], no, yes),
    ] {
        add_one(folder.path(), &[&["--target", "aarch64-unknown-linux-gnu"], options].concat());
        for (cpu, wanted) in [("cortex-a53", a53), ("max", max)] {
            assert_eq!(said_under(folder.path(), gcc, &[qemu, "-cpu", cpu]), wanted, "{options:?} on {cpu}");
        }
    }
}

/// Of several AArch64 processors the newest comes first, in whatever order they were named.
#[test]
fn the_newest_processor_is_asked_for_first() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for cpus in ["cortex-a53,neoverse-v2,neoverse-n1", "neoverse-n1,cortex-a53,neoverse-v2"] {
        add_one(folder.path(), &["--target", "aarch64-unknown-linux-gnu", "--cpu", cpus, "--emit", "metadata"]);
        let told = std::fs::read_to_string(folder.path().join("m.json")).expect("it was written");
        let at = |cpu: &str| told.find(cpu).expect("it is told");
        assert!(at("neoverse-v2") < at("neoverse-n1") && at("neoverse-n1") < at("cortex-a53"), "{told}");
    }
    let file = folder.path().join("graph.pbtxt").display().to_string();
    for (triple, cpus) in
        [("aarch64-unknown-linux-gnu", "cortex-a53,cortex-a72"), ("aarch64-none-elf", "cortex-a53,neoverse-v1")]
    {
        let refused = crate::common::tfaot(&["compile", &file, "-o", "no", "--target", triple, "--cpu", cpus]);
        assert_eq!(refused.status.code(), Some(1), "{triple} {cpus}");
    }
}

/// What asks for instructions has none of them itself.
#[test]
fn old_processors_get_an_answer() {
    let Some(gcc) = program(&["gcc"]).filter(|_| cfg!(target_arch = "x86_64")) else { return };
    let Some(qemu) = program(&["qemu-x86_64"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (cpu, wanted) in [("haswell", "0 1 0 0 0 0"), ("core2", "1 0 1 2 3 4"), ("btver2", "1 0 1 2 3 4")] {
        add_one(folder.path(), &["--cpu", cpu]);
        assert_eq!(said_under(folder.path(), gcc, &[qemu, "-cpu", "core2duo"]), wanted, "{cpu}");
    }
}

/// The oldest x86-64 has no AVX: its code must run on every newer one.
#[test]
fn the_baseline_runs() {
    let Some(gcc) = program(&["gcc"]).filter(|_| cfg!(target_arch = "x86_64")) else { return };
    for cpu in ["x86-64", "haswell"] {
        if cpu == "haswell" && !avx2() {
            eprintln!("SKIPPED: this processor has no AVX2");
            continue;
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        compile("conv_net", "m", folder.path(), &["--cpu", cpu]);
        drive("conv_net", folder.path(), &[gcc, "-std=c99"], None);
    }
}

/// One object for the oldest and the newest processors; the program that calls it does not know.
#[test]
fn several_processors_share_an_object() {
    let Some(gcc) = program(&["gcc"]).filter(|_| cfg!(target_arch = "x86_64")) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    for cpus in ["x86-64,x86-64-v4,haswell", "x86-64"] {
        compile("conv_net", "m", folder.path(), &["--cpu", cpus]);
        drive("conv_net", folder.path(), &[gcc, "-std=c99"], None);
    }
    let same =
        crate::common::tfaot(&["compile", "testdata/graphs/conv_net/graph.pb", "-o", "no", "--cpu", "haswell,znver3"]);
    assert_eq!(same.status.code(), Some(1), "two processors with one instruction set");
}

/// What `compile` makes where no processor is named: code for AVX2 and for AVX-512 over one copy of the constants. Both give
/// TensorFlow's answers, that for AVX2 on an emulated processor without AVX-512.
#[test]
fn processors_with_other_vectors_share_the_constants() {
    let Some(gcc) = program(&["gcc"]).filter(|_| cfg!(target_arch = "x86_64")) else { return };
    let Some(qemu) = program(&["qemu-x86_64"]) else { return };
    for name in ["conv_net", "attention", "wide_layers"] {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let of = |more: &[&str]| {
            compile(name, "m", folder.path(), &[&["--emit", "obj,header,metadata"], more].concat());
            let metadata = std::fs::read_to_string(folder.path().join("m.json")).expect("metadata");
            let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
            metadata["weights_bytes"].as_u64().expect("a number")
        };
        let alone = of(&["--cpu", "x86-64-v4"]);
        let both = of(&[]);
        assert!(4 * both <= 5 * alone, "{name}: {both} bytes, {alone} for one processor");
        let text = std::fs::read_to_string(folder.path().join("m.h")).expect("a header");
        assert!(text.lines().next().is_some_and(|l| l.contains("x86-64-v4, x86-64-v3")), "{text}");
        drive(name, folder.path(), &[gcc, "-std=c99"], None);
        drive(name, folder.path(), &[gcc, "-std=c99"], Some(&[qemu, "-cpu", "Haswell"]));
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn avx2() -> bool {
    false
}

/// A program in the words of tfcompile's headers, its threads from something like Eigen's pool, built through pkg-config and
/// through CMake.
#[test]
fn cpp_speaks_as_tfcompile_does() {
    let (Some(cpp), Some(make), Some(config)) = (program(&["g++"]), program(&["cmake"]), program(&["pkg-config"]))
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("mlp", "net", folder.path(), &["--emit", "cpp,cmake,pkgconfig", "--cpp-class", "::zoo::Net"]);
    for (key, value) in npz(&graph("mlp", "feeds.npz")) {
        std::fs::write(folder.path().join(format!("in.{key}")), &value.bytes).expect("written");
    }
    let check = |folder: &Path| {
        for (i, (key, want)) in npz(&graph("mlp", "expect.npz")).into_iter().enumerate() {
            let bytes = std::fs::read(folder.join(format!("out.{i}"))).expect("the program wrote it");
            let got = Tensor::new(want.dtype, want.dims.clone(), bytes);
            assert_eq!(departure(&got, &want), None, "{key}");
        }
    };
    let source = path("tests/objects/class.cpp");
    let flags = ran(Command::new(config).args(["--cflags", "--libs", "net"]).env("PKG_CONFIG_PATH", folder.path()));
    let built = folder.path().join("by_pkg_config");
    let mut build = Command::new(cpp);
    build.args(["-std=c++17", "-Wconversion"]).args(STRICT).arg(&source).args(flags.split_whitespace());
    ran(build.arg("-o").arg(&built));
    ran(Command::new(&built).arg(folder.path()));
    check(folder.path());

    let project = "cmake_minimum_required(VERSION 3.10)\nproject(user CXX)\nset(CMAKE_CXX_STANDARD 17)\n\
        find_package(net CONFIG REQUIRED)\nadd_executable(by_cmake class.cpp)\ntarget_link_libraries(by_cmake PRIVATE tfaot::net)\n";
    std::fs::write(folder.path().join("CMakeLists.txt"), project).expect("written");
    std::fs::copy(&source, folder.path().join("class.cpp")).expect("copied");
    let there = folder.path().join("build");
    let mut configure = Command::new(make);
    configure.arg("-S").arg(folder.path()).arg("-B").arg(&there).arg(format!("-Dnet_DIR={}", folder.path().display()));
    ran(&mut configure);
    ran(Command::new(make).arg("--build").arg(&there));
    ran(Command::new(there.join("by_cmake")).arg(folder.path()));
    check(folder.path());
}

/// The pool that is shipped, under ThreadSanitizer, gives the bits of one thread.
#[test]
fn the_pool_shares_the_work() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    compile("conv_net", "net", folder.path(), &["--emit", "obj,header,pool"]);
    let built = folder.path().join("pool");
    let mut build = Command::new(clang);
    build.args(["-std=c11", "-g", "-O1", "-fsanitize=thread", "-pthread", "-I"]).arg(folder.path()).args(STRICT);
    build.arg(path("tests/objects/pool.c")).arg(folder.path().join("net.o")).arg("-o").arg(&built);
    ran(&mut build);
    assert!(ran(&mut Command::new(&built)).contains("the same bits by 1 to 8 threads"));
}

/// Its threads serve one call at a time: calls inside one another or at once, in the child of a fork, where threads are missing or
/// have lost their processor. Under ThreadSanitizer.
#[test]
fn the_pool_runs_alone_where_it_must() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    add_one(folder.path(), &["--emit", "header,pool"]);
    let built = folder.path().join("callers");
    let mut build = Command::new(clang);
    build.args(["-std=c11", "-g", "-O1", "-fsanitize=thread", "-pthread", "-I"]).arg(folder.path()).args(STRICT);
    ran(build.arg(path("tests/objects/pool_callers.c")).arg("-o").arg(&built));
    for way in ["nested", "two-callers", "held-thread", "fork", "no-threads"] {
        // ThreadSanitizer's memory map fails on kernels with much address randomisation
        let mut run = Command::new("setarch");
        assert_eq!(ran(run.arg("-R").arg(&built).arg(way)).trim(), format!("{way}: 0"));
    }
}

/// Compiles `x + 1` on four floats as model `m` into `folder`.
fn add_one(folder: &Path, more: &[&str]) {
    let text = r#"
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "shape" value { shape { dim { size: 4 } } } } }
        node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
        node { name: "y" op: "AddV2" input: "x" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
    "#;
    let file = folder.join("graph.pbtxt");
    std::fs::write(&file, text).expect("written");
    let (file, out) = (file.display().to_string(), folder.display().to_string());
    succeed(&[&["compile", &file, "-o", &out, "--name", "m", "--fetch", "y:0"], more].concat());
}

/// `--features` are asked for beside what the processor's name promises, as this processor's own list of them says.
#[test]
#[cfg(target_arch = "x86_64")]
fn features_are_asked_for() {
    let Some(gcc) = program(&["gcc"]) else { return };
    let Ok(told) = std::fs::read_to_string("/proc/cpuinfo") else { return };
    let flags: Vec<&str> = told.lines().find(|l| l.starts_with("flags")).unwrap_or("").split_whitespace().collect();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let source = folder.path().join("asks.c");
    std::fs::write(&source, "#include \"m.h\"\nint main(void) { return m_supported(); }\n").expect("written");
    let names = [
        ("sse4.2", "sse4_2"),
        ("avx2", "avx2"),
        ("gfni", "gfni"),
        ("sse4a", "sse4a"),
        ("avxvnni", "avx_vnni"),
        ("avx512vnni", "avx512_vnni"),
        ("avx512bf16", "avx512_bf16"),
        ("avx512fp16", "avx512_fp16"),
        ("amx-bf16", "amx_bf16"),
        ("amx-int8", "amx_int8"),
    ];
    for (feature, flag) in names {
        add_one(folder.path(), &["--cpu", "x86-64", "--features", &format!("+{feature}")]);
        let built = folder.path().join("asks");
        let mut build = Command::new(gcc);
        ran(build.arg("-I").arg(folder.path()).arg(&source).arg(folder.path().join("m.o")).arg("-o").arg(&built));
        let said = Command::new(&built).status().expect("it runs").code();
        assert_eq!(said, Some(flags.contains(&flag).into()), "{feature}");
    }
}

/// The smallest model: what a call costs beyond its kernel. The bound is that of a function call or ten, where frameworks take
/// microseconds.
#[test]
fn a_call_costs_less_than_50_ns() {
    let Some(gcc) = program(&["gcc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |file: &str| folder.path().join(file);
    add_one(folder.path(), &[]);
    let mut build = Command::new(gcc);
    build.args(["-std=c11", "-O2"]).args(STRICT).arg("-I").arg(folder.path()).arg(path("tests/objects/overhead.c"));
    ran(build.arg(at("m.o")).arg("-o").arg(at("overhead")));
    let told = ran(&mut Command::new(at("overhead")));
    let ns: f64 = told.trim().parse().expect("a number of nanoseconds");
    assert!(ns < 50.0, "a call takes {ns} ns beyond its kernel");
    println!("{ns} ns a call beyond the kernel");
}
