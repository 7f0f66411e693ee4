//! Products of bf16 by AMX's tiles: machine code on a processor that `tests/objects/tiles.c` plays where this one has none,
//! against the bits of the kernels, and those against the interpreter.
use crate::common::{path, program, random::Random, said};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fmt::Write;
use std::process::Command;
use tfaot::codegen::Launches;
use tfaot::compile::{self, Built};
use tfaot::hlo::{Literal, text};
use tfaot::kernel::{self, Program};
use tfaot::lower::Lowered;
use tfaot::target::{CodeRequest, MathType, Precision, Target};
use tfaot::tensor::{DType, Tensor};

const MOST: u64 = 2_000_000_000;
/// What sums of 64 terms lose where each of them is too small.
const LOST: f64 = 64.0 * f32::MIN_POSITIVE as f64;

fn target(features: &str) -> CodeRequest {
    of("sapphirerapids", features)
}

fn of(cpu: &str, features: &str) -> CodeRequest {
    let triple = "x86_64-unknown-linux-gnu";
    let machine = Target::resolve(Some(triple), Some(cpu), Some(features)).expect("a known processor");
    CodeRequest::new(machine, Precision { math: MathType::Bf16, ..Precision::default() })
        .expect("it has the instructions")
}

/// A module under construction: what it multiplies, and its results.
struct Text {
    random: Random,
    lines: String,
    results: Vec<(String, String)>,
    /// What all factors of the left side, and of the right one, are multiplied by.
    scales: [f64; 2],
}

impl Text {
    fn new(seed: u64) -> Text {
        Text { random: Random::new(seed), lines: String::new(), results: Vec::new(), scales: [1.0; 2] }
    }

    /// A constant of random numbers.
    fn constant(&mut self, dtype: DType, dims: &[u64], scale: f64) -> String {
        let (t, name) = (self.random.tensor(DType::F32, dims), format!("c{}", self.lines.len()));
        let list = |values: Vec<String>, n: u64| -> Vec<String> {
            values.chunks(n as usize).map(|c| format!("{{{}}}", c.join(","))).collect()
        };
        let all = (0..t.len()).map(|i| format!("{:e}", t.get_f64(i).unwrap_or(0.0) * scale)).collect();
        let all = dims.iter().rev().fold(all, |all, &n| list(all, n)).concat();
        let _ = writeln!(self.lines, " {name} = {dtype}{dims:?} constant({all})");
        name
    }

    fn parameter(&mut self, dims: &[u64]) -> String {
        let (name, number) = (format!("x{}", self.lines.len()), self.results.len());
        let _ = writeln!(self.lines, " {name} = bf16{dims:?} parameter({number})");
        name
    }

    /// The sums of `what` as they are or, every other time, with a bias and no negative numbers.
    fn result(&mut self, dims: &[u64], what: &str) {
        let (n, columns) = (self.results.len(), dims[dims.len() - 1]);
        let _ = writeln!(self.lines, " d{n} = f32{dims:?} {what}");
        let mut last = format!("d{n}");
        if n.is_multiple_of(2) {
            let bias = self.constant(DType::F32, &[columns], 1.0);
            let axis = dims.len() - 1;
            let _ = writeln!(self.lines, " b{n} = f32{dims:?} broadcast({bias}), dimensions={{{axis}}}");
            let _ = writeln!(self.lines, " a{n} = f32{dims:?} add({last}, b{n})");
            let _ = writeln!(self.lines, " z{n} = f32{dims:?} broadcast(zero), dimensions={{}}");
            let _ = writeln!(self.lines, " r{n} = f32{dims:?} maximum(a{n}, z{n})");
            last = format!("r{n}");
        }
        self.results.push((last, format!("f32{dims:?}")));
    }

    fn product(&mut self, rows: u64, terms: u64, columns: u64) {
        let x = self.parameter(&[rows, terms]);
        let w = self.constant(DType::BF16, &[terms, columns], self.scales[1]);
        let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        self.result(&[rows, columns], &format!("dot({x}, {w}), {dims}"));
    }

    /// Products side by side, each with a right side of its own.
    fn batched(&mut self, batch: u64, rows: u64, terms: u64, columns: u64) {
        let x = self.parameter(&[batch, rows, terms]);
        let w = self.constant(DType::BF16, &[batch, terms, columns], self.scales[1]);
        let dims = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
        self.result(&[batch, rows, columns], &format!("dot({x}, {w}), {dims}"));
    }

    /// A convolution of planes of `size` with a square window, which keeps their size where its step is 1.
    fn convolution(&mut self, size: [u64; 3], window: u64, step: u64, channels: u64) {
        let [batch, side, features] = size;
        let (pad, out) = (window / 2, (side + window / 2 * 2 - window) / step + 1);
        let x = self.parameter(&[batch, side, side, features]);
        let w = self.constant(DType::BF16, &[window, window, features, channels], self.scales[1]);
        let window = format!("size={window}x{window} stride={step}x{step} pad={pad}_{pad}x{pad}_{pad}");
        let what = format!("convolution({x}, {w}), window={{{window}}}, dim_labels=b01f_01io->b01f");
        self.result(&[batch, out, out, channels], &what);
    }

    fn finish(mut self) -> (Lowered, Vec<Tensor>) {
        let (names, shapes): (Vec<String>, Vec<String>) = self.results.iter().cloned().unzip();
        let (names, shapes) = (names.join(", "), shapes.join(", "));
        let all = format!(
            "HloModule m\nENTRY e {{\n zero = f32[] constant(0)\n{} ROOT t = ({shapes}) tuple({names}) }}\n",
            self.lines
        );
        let lowered =
            compile::wrap_module(text::parse(&all.replace(", ", ",")).expect("sound HLO text")).expect("arrays");
        let args = lowered.args.iter().map(|a| {
            let t = self.random.tensor(DType::F32, &a.dims);
            let scaled: Vec<f64> = (0..t.len()).map(|i| t.get_f64(i).unwrap_or(0.0) * self.scales[0]).collect();
            let bytes =
                scaled.iter().flat_map(|&v| Tensor::scalar_from_f64(DType::BF16, v).bytes.to_vec()).collect::<Vec<_>>();
            Tensor::new(DType::BF16, a.dims.clone(), bytes)
        });
        let args = args.collect();
        (lowered, args)
    }
}

/// Rows, terms and columns around what tiles, blocks and rounds hold.
fn edges(rows: u64) -> Text {
    let mut t = Text::new(rows);
    for terms in [2, 30, 32, 34, 64, 100] {
        for columns in [16, 17, 33, 48] {
            t.product(rows, terms, columns);
        }
    }
    t
}

fn convolutions() -> Text {
    let mut t = Text::new(7);
    for (size, window, step, channels) in [
        ([1, 7, 24], 1, 1, 40),
        ([2, 9, 34], 1, 2, 20),
        ([1, 14, 16], 3, 1, 24),
        ([1, 20, 34], 3, 1, 17),
        ([2, 11, 8], 5, 2, 33),
        ([1, 40, 6], 3, 1, 16),
    ] {
        t.convolution(size, window, step, channels);
    }
    t.batched(3, 20, 34, 24);
    t.batched(2, 5, 66, 40);
    t
}

/// Factors whose products, and sums of those, are on both sides of the least normal number.
fn tiny() -> Text {
    let mut t = Text::new(5);
    t.scales = [2f64.powi(-60), 2f64.powi(-67)];
    t.product(20, 34, 33);
    t.product(20, 64, 20);
    t
}

fn any(seed: u64) -> Text {
    let mut t = Text::new(seed);
    for _ in 0..3 {
        let below = |t: &mut Text, n: usize| 1 + t.random.below(n) as u64;
        let (rows, pairs, columns) = (below(&mut t, 70), below(&mut t, 120), 3 + below(&mut t, 80));
        match t.random.below(3) {
            0 => t.product(rows, 2 * pairs, columns),
            1 => t.batched(3, rows, 2 * pairs, columns),
            _ => {
                let (side, step, window) = (below(&mut t, 36), below(&mut t, 2), t.random.of(&[1, 1, 3, 5]));
                t.convolution([1 + rows % 2, side, 2 * (pairs % 20 + 1)], window, step, columns);
            }
        }
    }
    t
}

fn build(lowered: &Lowered, target: &CodeRequest) -> Built {
    compile::build(lowered.clone(), "m", "m", target, Launches::Direct, &mut None).expect("it compiles")
}

/// The object with other instructions where model `name` asks the processor and the system.
fn asking(object: &[u8], name: &str) -> Vec<u8> {
    let file = object::File::parse(object).expect("an object");
    let name = format!("{name}_supported");
    let symbol = file.symbols().find(|s| s.name() == Ok(&name)).expect("it is there");
    let section = file.section_by_index(symbol.section_index().expect("it is here")).expect("a section");
    let from = (section.file_range().expect("it has bytes").0 + symbol.address()) as usize;
    let mut out = object.to_vec();
    let code = &mut out[from..from + symbol.size() as usize];
    let mut counts = [0; 3];
    for at in 0..code.len() - 1 {
        match code[at..] {
            [0x0f, 0xa2, ..] => (code[at + 1], counts[0]) = (0x0b, counts[0] + 1),
            [0x0f, 0x01, 0xd0, ..] => (code[at + 1], counts[1]) = (0xb9, counts[1] + 1),
            [0x0f, 0x05, ..] => (code[at + 1], counts[2]) = (0xff, counts[2] + 1),
            _ => {}
        }
    }
    assert!(counts[0] > 2 && counts[1] == 1 && counts[2] == 1, "{counts:?}");
    out
}

/// What runs such objects here.
struct Machine {
    compiler: &'static str,
    has_tiles: bool,
}

impl Machine {
    fn here() -> Option<Machine> {
        let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = |flag: &str| told.split_whitespace().any(|f| f == flag);
        if !has("avx512_bf16") || !cfg!(target_arch = "x86_64") {
            eprintln!("SKIPPED: this processor has no AVX512-BF16");
            return None;
        }
        Some(Machine { compiler: program(&["gcc", "clang-22"])?, has_tiles: has("amx_bf16") })
    }

    /// The results of an object by the processor with `state`, if it takes the call; `asked` is the model that asks for tiles.
    fn run(&self, object: &[u8], asked: &str, program: &Program, args: &[Tensor], state: &str) -> Option<Vec<Vec<u8>>> {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let folder = folder.path();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
        write("m.o", &if self.has_tiles && state == "all" { object.to_vec() } else { asking(object, asked) });
        write(
            "m.h",
            tfaot::package::header::header(&tfaot::kernel::ModelInterface::of_program(program), &[&target("").target])
                .as_bytes(),
        );
        for (i, arg) in args.iter().enumerate() {
            write(&format!("in.{i}"), &arg.bytes);
        }
        let mut build = Command::new(self.compiler);
        build.args(["-std=gnu11", "-O2", "-DHEADER=\"m.h\"", "-DINFO=m_info", "-I"]).arg(folder);
        build.args(["tests/objects/driver.c", "tests/objects/tiles.c"].map(path)).arg(folder.join("m.o"));
        let output = build.args(["-lm", "-o"]).arg(folder.join("driver")).output().expect("the compiler runs");
        assert!(output.status.success(), "{}", said(&output));
        let output = Command::new(folder.join("driver")).arg(folder).env("TILES", state).output().expect("it runs");
        if said(&output).contains("the call failed") {
            return None;
        }
        assert!(output.status.success(), "{}: {}", output.status, said(&output));
        let read = |i| std::fs::read(folder.join(format!("out.{i}"))).expect("the driver wrote it");
        Some((0..program.results.len()).map(read).collect())
    }
}

/// The results of the kernels.
fn kernels(program: &Program, args: &[Tensor]) -> Vec<Vec<u8>> {
    let results = kernel::evaluate(program, args, MOST).expect("the kernels run");
    results.iter().map(|t| t.bytes.to_vec()).collect()
}

/// Kernels against the interpreter, and machine code against the kernels.
fn check(text: Text, machine: Option<&Machine>) {
    let (lowered, args) = text.finish();
    let built = build(&lowered, &target(""));
    let want = kernel::evaluate(&built.program, &args, MOST).expect("the kernels run");
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let (module, _) = compile::plan(lowered, "t", "t", target("")).expect("kernels");
    let plain = tfaot::interp::evaluate(&module, module.entry, &literals).expect("the interpreter runs it");
    for (g, w) in want.iter().zip(plain.leaves()) {
        let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
        let largest = (0..w.len()).map(|i| number(w, i).abs()).fold(0.0, f64::max);
        for i in 0..w.len() {
            let (g, w) = (number(g, i), number(w, i));
            assert!((g - w).abs() <= 2e-5 * largest + LOST, "{g:e} instead of {w:e} of {largest:e}");
        }
    }
    let Some(machine) = machine else { return };
    let got =
        machine.run(&built.object.content.to_bytes(), "m", &built.program, &args, "all").expect("it takes the call");
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!(got[..] == want.bytes[..], "result {i}");
    }
}

/// The `tiles` statements of the kernels.
fn blocks(text: Text, target: &CodeRequest) -> usize {
    let built = build(&text.finish().0, target);
    kernel::print_program(&built.program).lines().filter(|l| l.trim_start().starts_with("tiles ")).count()
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn edges_are_right() {
    let machine = Machine::here();
    for rows in [1, 4, 15, 16, 17, 33] {
        check(edges(rows), machine.as_ref());
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn windows_and_batches_are_right() {
    let machine = Machine::here();
    check(convolutions(), machine.as_ref());
    check(tiny(), machine.as_ref());
}

/// `TFAOT_RANDOM=300` tries more.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn random_products_are_right() {
    let machine = Machine::here();
    let count = std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    (0..count).for_each(|seed| check(any(seed), machine.as_ref()));
}

#[test]
fn products_of_several_rows_go_by_tiles() {
    let all = target("");
    let features = &all.target.features;
    assert!(features.contains("+amx-bf16") && features.contains("+amx-tile"), "{features}");
    // 24 products, two thirds of which have whole blocks of columns and what is left of those, a third rounds of two kinds
    assert!(blocks(edges(33), &all) > 24);
    assert_eq!(blocks(edges(1), &all), 0);
    assert!(blocks(convolutions(), &all) >= 8);
    for off in ["-amx-bf16", "-amx-tile"] {
        let without = target(off);
        assert_eq!(blocks(edges(33), &without), 0);
        assert_eq!(without.target.machine_checks().request, None);
    }
}

#[test]
fn a_machine_without_tiles_refuses() {
    let Some(machine) = Machine::here() else { return };
    let (lowered, args) = tiny().finish();
    let built = build(&lowered, &target(""));
    let object = built.object.content.to_bytes();
    let run = |state| machine.run(&object, "m", &built.program, &args, state);
    assert!(run("all").is_some() && run("none").is_none() && run("refused").is_none());
}

#[test]
fn an_object_for_both_takes_tiles_where_they_are() {
    let Some(machine) = Machine::here() else { return };
    let (lowered, args) = tiny().finish();
    let targets = [of("znver4", ""), target("")];
    let functions = compile::Functions { all: vec![("m".to_string(), lowered)], init: None };
    let made = compile::build_functions(functions, "m", "m", &targets, Launches::Direct, &mut []).expect("it compiles");
    let object = made.object.content.to_bytes();
    let [tiles, pairs] = &made.bundle.variants[..] else { panic!("two") };
    assert!(tiles.1.bf16_tiles && !pairs.1.bf16_tiles);
    // the weights of all variants lie in one pool, which the bundle has
    let pooled = |program: &Program| {
        let (weights, weights_bytes) = (made.bundle.weights.clone(), made.bundle.face.weights_bytes);
        kernels(&Program { weights, weights_bytes, ..program.clone() }, &args)
    };
    let of_each = [pooled(&tiles.0[0]), pooled(&pairs.0[0])];
    assert_ne!(of_each[0], of_each[1]);
    for (state, want) in [("all", 0), ("none", 1), ("refused", 1)] {
        let got = machine
            .run(&object, "m_sapphirerapids", &made.bundle.face.entries[0].program, &args, state)
            .expect("it takes the call");
        assert!(got == of_each[want], "{state}");
    }
}
