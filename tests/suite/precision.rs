//! `--weights` and `--math`: kernels against the interpreter on the rounded module, their bits against machine code, and
//! the verbs.
use crate::common::{npz, path, program, random::Random, said, succeed, tfaot};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tfaot::codegen::Launches;
use tfaot::compile;
use tfaot::hlo::{Literal, text};
use tfaot::lower::Lowered;
use tfaot::prepare::Request;
use tfaot::target::{CodeRequest, MathType, Precision, Target, WeightType};
use tfaot::tensor::Tensor;

const MOST: u64 = 200_000_000;
const GRAPH: &str = "testdata/graphs/wide_layers/graph.pb";
const FEEDS: &str = "testdata/graphs/wide_layers/feeds.npz";
const EXPECT: &str = "testdata/graphs/wide_layers/expect.npz";

fn target(triple: &str, cpu: &str, weights: WeightType, math: MathType) -> CodeRequest {
    let machine = Target::resolve(Some(triple), Some(cpu), None).expect("a known processor");
    CodeRequest::new(machine, Precision { weights, math, ..Precision::default() }).expect("it has the instructions")
}

/// Every way to round that some target has.
fn targets() -> Vec<CodeRequest> {
    let (linux, arm) = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu");
    let mut all = Vec::new();
    for weights in [WeightType::Bf16, WeightType::Int8] {
        all.push(target(linux, "x86-64-v4", weights, MathType::F32));
        all.push(target(linux, "x86-64-v3", weights, MathType::F32));
        all.push(target(arm, "generic", weights, MathType::F32));
    }
    for (triple, cpu) in [(linux, "znver4"), (arm, "neoverse-v1")] {
        all.extend([WeightType::F32, WeightType::Int8].map(|w| target(triple, cpu, w, MathType::Bf16)));
    }
    all
}

/// `rows` by `columns` numbers as HLO text.
fn matrix(rows: u64, columns: u64, random: &mut Random) -> String {
    let t = random.tensor(tfaot::tensor::DType::F32, &[rows, columns]);
    let one = |r: u64| {
        let row = (0..columns).map(|c| format!("{:?}", t.get_f64((r * columns + c) as usize).unwrap_or(0.0) as f32));
        format!("{{{}}}", row.collect::<Vec<_>>().join(","))
    };
    format!("{{{}}}", (0..rows).map(one).collect::<Vec<_>>().join(","))
}

/// Two layers: `[rows, inner]` by `[inner, columns]`, then by `[columns, 16]`.
fn layers(rows: u64, inner: u64, columns: u64) -> Lowered {
    let mut random = Random::new(rows * 1000 + inner + columns);
    let (w, v) = (matrix(inner, columns, &mut random), matrix(columns, 16, &mut random));
    parse(&format!(
        "HloModule m\nENTRY e {{\n x = f32[{rows},{inner}] parameter(0)\n w = f32[{inner},{columns}] constant({w})\n\
         v = f32[{columns},16] constant({v})\n\
         d = f32[{rows},{columns}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
         t = f32[{rows},{columns}] maximum(d, d)\n\
         ROOT r = f32[{rows},16] dot(t, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}\n"
    ))
}

/// A row of a table for each index.
fn table() -> Lowered {
    let t = matrix(80, 24, &mut Random::new(3));
    parse(&format!(
        "HloModule m\nENTRY e {{\n i = s32[5,1] parameter(0)\n t = f32[80,24] constant({t})\n\
         ROOT g = f32[5,24] gather(t, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},\n\
         index_vector_dim=1, slice_sizes={{1,24}} }}\n"
    ))
}

fn parse(hlo: &str) -> Lowered {
    compile::wrap_module(text::parse(hlo).expect("sound HLO text")).expect("arrays in and out")
}

fn arguments(lowered: &Lowered) -> Vec<Tensor> {
    let mut random = Random::new(11);
    lowered.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect()
}

/// The graph with a convolution by Winograd's method, and TensorFlow's feeds.
fn wide_layers() -> (Lowered, Vec<Tensor>) {
    let fronts = compile::load_and_lower(&path(GRAPH), None, &Request::default()).expect("the graph lowers");
    let lowered = fronts.entries.into_iter().next().expect("a function").lowered;
    let feeds = npz(&path(FEEDS));
    let feed = |name: &str| feeds.get(name.trim_end_matches(":0")).or_else(|| feeds.get(name)).expect("a feed").clone();
    let args = lowered.args.iter().map(|a| feed(&a.name)).collect();
    (lowered, args)
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn kernels_are_the_rounded_module() {
    let modules = [layers(1, 64, 48), layers(5, 70, 33), layers(14, 400, 40), layers(3, 63, 32), table()];
    let mut all: Vec<(Lowered, Vec<Tensor>)> = modules.into_iter().map(|l| (l.clone(), arguments(&l))).collect();
    all.push(wide_layers());
    for (lowered, args) in all {
        for target in targets() {
            let (module, program) = compile::plan(lowered.clone(), "t", "t", &target).expect("kernels");
            let what = format!("{} of {}", target.target.cpu, program.reduced);
            if target.precision.weights != WeightType::F32 {
                assert!(program.reduced.constants > 0, "nothing is rounded for {what}");
                assert!(program.reduced.bytes_after < program.reduced.bytes_before, "{what}");
            }
            let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
            let want = tfaot::interp::evaluate(&module, module.entry, &literals).expect("the interpreter runs it");
            let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
            for (g, w) in got.iter().zip(want.leaves()) {
                let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
                let largest = (0..w.len()).map(|i| number(w, i).abs()).fold(0.0, f64::max);
                // bytes are scaled behind their sum, and a factor on an edge is rounded the other way by a bit of difference
                let part = if target.precision.math == MathType::F32 { 2e-5 } else { 5e-3 };
                for i in 0..w.len() {
                    let (g, w) = (number(g, i), number(w, i));
                    assert!((g - w).abs() <= part * largest, "{what}: {g} instead of {w}");
                }
            }
        }
    }
}

/// A target, the C compiler that links for it, and what runs its programs here.
type Machine = (CodeRequest, &'static str, Vec<&'static str>);

/// What of the targets can be run here.
fn machines() -> Vec<Machine> {
    let here = Target::resolve(None, None, None).expect("this machine");
    let mut all = Vec::new();
    for weights in [WeightType::F32, WeightType::Bf16, WeightType::Int8] {
        for math in [MathType::F32, MathType::Bf16] {
            let target = CodeRequest::new(here.clone(), Precision { weights, math, ..Precision::default() }).ok();
            all.extend(target.zip(program(&["gcc", "clang"])).map(|(t, compiler)| (t, compiler, vec![])));
        }
        for (cpu, math) in [("generic", MathType::F32), ("neoverse-v1", MathType::Bf16)] {
            let arm = target("aarch64-unknown-linux-gnu", cpu, weights, math);
            let tools = program(&["aarch64-linux-gnu-gcc"]).zip(program(&["qemu-aarch64"]));
            all.extend(tools.map(|(compiler, qemu)| (arm, compiler, vec![qemu, "-L", "/usr/aarch64-linux-gnu"])));
        }
    }
    all
}

/// The results of an object in a program of its own.
fn run(built: &compile::Built, (request, compiler, runner): &Machine, args: &[Tensor]) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
    write("m.o", &built.object.content.to_bytes());
    write(
        "m.h",
        tfaot::package::header::header(&tfaot::kernel::ModelInterface::of_program(&built.program), &[&request.target])
            .as_bytes(),
    );
    for (i, arg) in args.iter().enumerate() {
        write(&format!("in.{i}"), &arg.bytes);
    }
    let driver = folder.path().join("driver");
    let mut build = Command::new(compiler);
    build.args(["-std=c99", "-DHEADER=\"m.h\"", "-DINFO=m_info", "-I"]).arg(folder.path());
    ran(build.arg(path("tests/objects/driver.c")).arg(folder.path().join("m.o")).arg("-o").arg(&driver));
    let mut words = runner.iter().map(Path::new).chain([driver.as_path()]);
    let mut call = Command::new(words.next().expect("the driver at least"));
    ran(call.args(words).arg(folder.path()));
    let results = 0..built.program.results.len();
    results.map(|i| std::fs::read(folder.path().join(format!("out.{i}"))).expect("the driver wrote it")).collect()
}

fn ran(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said(&output));
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn machine_code_has_the_bits_of_the_kernels() {
    for machine in machines() {
        for lowered in [layers(1, 64, 48), layers(5, 400, 33), layers(3, 63, 40), table()] {
            let args = arguments(&lowered);
            let build = || {
                compile::build(lowered.clone(), "m", "m", &machine.0, Launches::Direct, &mut None).expect("it compiles")
            };
            let built = build();
            assert_eq!(built.object.content, build().object.content, "two compiles differ");
            let want = tfaot::kernel::evaluate(&built.program, &args, MOST).expect("the kernels run");
            let want: Vec<Vec<u8>> = want.iter().map(|t| t.bytes.to_vec()).collect();
            assert!(run(&built, &machine, &args) == want, "{} of {}", machine.0.target.cpu, built.program.reduced);
        }
    }
}

#[test]
fn machine_code_is_near_the_interpreter() {
    for flags in [["--weights", "bf16"], ["--weights", "int8"], ["--math", "bf16"]] {
        let mut words = vec!["verify"];
        words.extend([GRAPH, "-q", "--inputs", FEEDS, "--expect", EXPECT, "--json"]);
        words.extend(flags);
        let output = tfaot(&words);
        let told = said(&output);
        if told.contains("TFA0304") {
            continue; // this machine has no such instruction
        }
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"));
        assert_eq!(document["ok"], true, "{flags:?}: {document:#}");
        let with: Vec<&str> =
            document["comparisons"].as_array().expect("a list").iter().filter_map(|c| c["with"].as_str()).collect();
        let of_two = |with| [with; 2];
        assert_eq!(with, ["interpreter", "expected", "interpreter, rounded"].map(of_two).concat());
        let error = |key: &str| document["comparisons"][0][key]["largest"].as_f64().expect("an error");
        let (error, unrounded) = (error("error"), error("unrounded_error"));
        assert!(error > unrounded && unrounded < 1e-5, "{flags:?}: {error} beside {unrounded}");
    }
}

#[test]
fn an_error_beyond_the_bound_is_told() {
    let output = tfaot(&["verify", GRAPH, "-q", "--inputs", FEEDS, "--weights", "int8", "--atol", "1e-6"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("TFA0401"), "{}", said(&output));
}

#[test]
fn metadata_and_header_say_what_was_rounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let words = ["compile", GRAPH, "-q", "-o", &out, "--name", "net", "--emit", "header,metadata", "--weights", "bf16"];
    succeed(&words);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was written");
    let metadata: Value = serde_json::from_str(&read("net.json")).expect("JSON");
    let precision = &metadata["precision"];
    assert_eq!((&precision["weights"], &precision["math"]), (&"bf16".into(), &"f32".into()));
    let bytes = |key: &str| precision[key].as_u64().expect("a number");
    assert_eq!(bytes("bytes_before"), 2 * bytes("bytes_after"));
    assert!(bytes("constants") > 0);
    assert!(read("net.h").lines().nth(1).is_some_and(|l| l.starts_with("/* Rounded on request: weights bf16: ")));
}

#[test]
fn a_target_without_the_instruction_refuses() {
    for machine in [&["--cpu", "x86-64-v3"][..], &["--cpu", "x86-64-v4"], &["--target", "aarch64-unknown-linux-gnu"]] {
        let mut words = vec!["check", GRAPH, "-q", "--math", "bf16"];
        words.extend(machine);
        let output = tfaot(&words);
        assert!(!output.status.success());
        assert!(said(&output).contains("TFA0304"), "{}", said(&output));
    }
    succeed(&["explain", "TFA0304"]);
}
