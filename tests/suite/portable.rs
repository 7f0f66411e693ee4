//! `--math portable`: the same decisions for every target, and the same bits from every instruction set.
use crate::common::random::Random;
use crate::common::{npz, path, program, ran, said, succeed, tfaot};
use std::process::Command;
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::kernel::{self, BufferLocation, Program};
use tfaot::target::{CodeRequest, MathType, Precision, Target};

const MATHS: [MathType; 2] = [MathType::Portable, MathType::PortableUnfused];
/// Products, convolutions and sums whose order depends on the target in other arithmetic; attention; a sort; random numbers.
const GRAPHS: &[&str] = &["attention", "conv_net", "mlp", "norms", "order", "reductions", "resize", "wide_layers"];

/// A triple, and a processor of it.
const TARGETS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "x86-64"),
    ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    ("x86_64-unknown-linux-gnu", "sapphirerapids"),
    ("aarch64-unknown-linux-gnu", "neoverse-v1"),
    ("riscv64-unknown-linux-gnu", "rv64gc"),
    ("wasm32-unknown-unknown", "generic"),
    ("thumbv7em-none-eabihf", "cortex-m4"),
];

fn request(triple: &str, cpu: &str, math: MathType) -> CodeRequest {
    let target = Target::resolve(Some(triple), Some(cpu), None).expect("a known processor");
    CodeRequest::new(target, Precision { math, ..Precision::default() }).expect("arithmetic that every machine has")
}

/// The optimized module of a graph as text.
fn module(name: &str) -> String {
    let file = path("testdata/graphs").join(name).join("graph.pb").display().to_string();
    let fetches: Vec<String> = npz(&path("testdata/graphs").join(name).join("expect.npz")).into_keys().collect();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().display().to_string();
    let mut args = vec!["compile", &file, "-o", &out, "--name", "m", "--emit", "hlo"];
    args.extend(fetches.iter().flat_map(|f| ["--fetch", f.as_str()]));
    succeed(&args);
    std::fs::read_to_string(folder.path().join("m.hlo")).expect("a module")
}

/// Most statements that the evaluator runs of a program.
const MOST_STATEMENTS: u64 = 1 << 32;

/// The decisions that must not depend on the target, as text: arrays, kernels with their chunks and the arrays that each uses, constants.
/// The statements of a chunk may differ, and so may arrays on its stack.
fn outline(program: &Program) -> String {
    let mut out =
        format!("{:?} {:?} {} {}\n", program.args, program.results, program.weights_bytes, program.workspace_bytes);
    let places = |buffers: Vec<kernel::BufId>| {
        let all = buffers.into_iter().map(|id| &program.buffers[id]);
        let mut told: Vec<String> =
            all.filter(|b| b.place != BufferLocation::Stack).map(|b| format!("{b:?}")).collect();
        told.sort();
        told.join(", ")
    };
    for kernel in program.kernels.values() {
        out += &format!(
            "{} {} {:?}: {}\n",
            kernel.label,
            kernel.chunk_count(),
            kernel.limit.map(|l| l.1),
            places(kernel.buffers())
        );
    }
    out
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn every_target_has_the_same_decisions_and_results() {
    for name in GRAPHS {
        let module = text::parse(&module(name)).expect("sound HLO text");
        for math in MATHS {
            let made = |&(triple, cpu): &(&str, &str)| {
                let lowered = compile::wrap_module(module.clone()).expect("arrays in and out");
                let program = compile::plan(lowered, "m", "m", request(triple, cpu, math)).expect("kernels").1;
                let mut random = Random::new(1);
                let args: Vec<_> = program.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect();
                let results = kernel::evaluate(&program, &args, MOST_STATEMENTS).expect("the kernels run");
                let bytes: Vec<_> = results.into_iter().map(|t| t.bytes).collect();
                (outline(&program), program.weights, bytes)
            };
            let first = made(&TARGETS[0]);
            for target in &TARGETS[1..] {
                let other = made(target);
                assert_eq!(other.0, first.0, "{name} with {math:?} for {target:?}");
                assert!(other.1 == first.1, "constants of {name} with {math:?} for {target:?}");
                assert!(other.2 == first.2, "results of {name} with {math:?} for {target:?}");
            }
        }
    }
}

/// The lines of `verify --hash` that have hashes.
fn hashes(name: &str, cpu: &str, math: MathType, threads: &str) -> String {
    let file = path("testdata/graphs").join(name).join("graph.pb").display().to_string();
    let feeds = path("testdata/graphs").join(name).join("feeds.npz").display().to_string();
    let fetches: Vec<String> = npz(&path("testdata/graphs").join(name).join("expect.npz")).into_keys().collect();
    let mut args = vec!["verify", &file, "--inputs", &feeds, "--cpu", cpu, "--math", math.name(), "--hash"];
    args.extend(["--threads", threads]);
    args.extend(fetches.iter().flat_map(|f| ["--fetch", f.as_str()]));
    let all = said(&tfaot(&args));
    let lines: Vec<&str> = all.lines().filter(|line| line.starts_with("sha256")).collect();
    assert!(!lines.is_empty(), "{all}");
    lines.join("\n")
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn every_instruction_set_and_number_of_threads_gives_the_same_hashes() {
    let own = Target::resolve(None, None, None).expect("this machine is known");
    if !own.triple.starts_with("x86_64") {
        return;
    }
    let known = |cpu: &&str| Target::resolve(None, Some(cpu), None).is_ok_and(|t| t.level <= own.level);
    for name in ["attention", "conv_net", "norms"] {
        for math in MATHS {
            let first = hashes(name, "x86-64", math, "1");
            for cpu in ["x86-64-v3", "x86-64-v4", "native"].iter().filter(|cpu| known(cpu)) {
                assert_eq!(hashes(name, cpu, math, "3"), first, "{name} on {cpu} with {math:?}");
            }
        }
    }
}

/// The keyword spotter of `examples/keyword_spotter`, in C on an emulated Cortex-M4: its self-test passes, and its probabilities have the bits
/// that this machine computes.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn a_microcontroller_has_the_bits_of_this_machine() {
    let (compiler, emulator) = (program(&["arm-none-eabi-gcc"]), program(&["qemu-system-arm"]));
    let (Some(compiler), Some(emulator)) = (compiler, emulator) else { return };
    let example = path("examples/keyword_spotter");
    let file = |name: &str| example.join(name).display().to_string();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().display().to_string();
    let (model, feeds, answer) = (file("model.pb"), file("in.npz"), file("out.npz"));
    let test = ["--self-test", &feeds, "--self-test-expect", &answer];
    let board = ["--target", "thumbv7em-none-eabihf", "--cpu", "cortex-m4", "--math", "portable"];
    let args = ["compile", &model, "-o", &out, "--name", "kws", "--emit", "c,header"];
    succeed(&[&args[..], &board, &test].concat());
    let processor = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-O2"];
    let source = ["-std=c99", "-fno-math-errno", "-c", "kws.c"];
    ran(Command::new(compiler).args(processor).args(source).current_dir(folder.path()));
    let mut link = Command::new(compiler);
    link.args(processor).args(["-std=c11", "-ffreestanding", "-nostdlib", "-I", "."]).arg(example.join("main.c"));
    link.args(["kws.o", "-T"]).arg(path("examples/microcontroller/board.ld"));
    link.arg(path("examples/microcontroller/memory.c")).args(["-lm", "-lgcc", "-o", "kws.elf"]);
    ran(link.current_dir(folder.path()));
    let mut call = Command::new(emulator);
    call.args(["-M", "mps2-an386", "-cpu", "cortex-m4", "-nographic", "-semihosting"]);
    call.args(["-monitor", "none", "-serial", "null", "-kernel", "kws.elf"]);
    let called = call.current_dir(folder.path()).output().expect("an emulator");
    let expected = std::fs::read_to_string(example.join("expected.txt")).expect("it is there");
    assert_eq!(said(&called), expected);
    let results = folder.path().join("results.npz");
    let results_file = results.display().to_string();
    succeed(&["run", &model, "-q", "--inputs", &feeds, "--math", "portable", "--outputs", &results_file]);
    let here: Vec<u8> = npz(&results).into_values().flat_map(|t| t.bytes).collect();
    let words = here.chunks(4).map(|b| format!("{:08x} ", u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    assert_eq!(expected.lines().nth(1).map(str::to_string), Some(words.collect::<String>()));
}
