//! `--math portable`: one program for every target, and the same bits from every instruction set.
use crate::common::{npz, path, said, succeed, tfaot};
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::kernel;
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

#[test]
fn the_program_is_the_same_for_every_target() {
    for name in GRAPHS {
        let module = text::parse(&module(name)).expect("sound HLO text");
        for math in MATHS {
            let program = |&(triple, cpu): &(&str, &str)| {
                let lowered = compile::wrap_module(module.clone()).expect("arrays in and out");
                let made = compile::plan(lowered, "m", "m", request(triple, cpu, math)).expect("kernels").1;
                (kernel::print(&made), made.weights)
            };
            let first = program(&TARGETS[0]);
            for target in &TARGETS[1..] {
                assert!(program(target) == first, "{name} with {math:?} for {target:?}\n{}", text::print(&module));
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
