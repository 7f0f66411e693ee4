//! The innermost loops of products and convolutions, read from the assembly for each instruction set: no vector goes to the stack
//! and back. A tile with one register too many takes two and a half times as long. Without fused multiply-add, where LLVM moves
//! sums from register to register, one in eight products may have a vector there.
//!
//! `TFAOT_LOOPS=FOLDER` writes the loops there, for `llvm-mca`.
use crate::common::formula::Lines;
use std::path::Path;
use tfaot::codegen::{self, TextForm};
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::scalar::formula;
use tfaot::target::Target;

const TARGETS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "x86-64"),
    ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    ("x86_64-unknown-linux-gnu", "x86-64-v4"),
    ("aarch64-unknown-linux-gnu", "neoverse-n1"),
    ("aarch64-unknown-linux-gnu", "apple-m1"),
];

/// Fewest multiply-adds of a loop that is looked at: less is an edge.
const FEWEST: usize = 6;

/// The case whose epilogue stands in a loop of its own.
const LONG: &str = "long epilogue";

/// A loop without another in it.
struct Loop {
    label: String,
    lines: Vec<String>,
}

impl Loop {
    fn count(&self, of: impl Fn(&str) -> bool) -> usize {
        self.lines.iter().filter(|l| of(l)).count()
    }
    /// Multiplications of vectors, added up or not.
    fn products(&self) -> usize {
        self.count(|l| ["vfmadd", "fmla", "mulps", "mulpd"].iter().any(|op| l.contains(op)))
    }
    /// Vectors that go to the stack or come from it.
    fn spills(&self) -> usize {
        let x86 = |l: &str| l.contains("(%rsp") && l.contains("mm");
        let neon = |l: &str| l.contains("[sp") && (l.contains("\tq") || l.contains(" q"));
        self.count(|l| x86(l) || neon(l))
    }
}

/// The innermost loops: from a label to a jump back to it, without another label that is jumped back to between.
fn loops(assembly: &str) -> Vec<Loop> {
    let lines: Vec<&str> = assembly.lines().collect();
    let mut found: Vec<Loop> = Vec::new();
    let mut labels: Vec<(String, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim_end();
        if let Some(label) = line.strip_suffix(':').filter(|l| l.starts_with(".L")) {
            labels.push((label.to_string(), at));
            continue;
        }
        let mut words = line.split_whitespace();
        let jump = words
            .next()
            .is_some_and(|op| op.starts_with('j') || op.starts_with("b.") || op == "b" || op.starts_with("cb"));
        let Some(target) = words.next_back().filter(|_| jump) else { continue };
        let Some(place) = labels.iter().rposition(|(label, _)| label == target) else { continue };
        // What lies between is a loop of its own only if nothing in it was one.
        let start = labels[place].1;
        if !found.iter().any(|l| labels[place + 1..].iter().any(|(label, _)| *label == l.label)) {
            let lines = lines[start + 1..=at].iter().map(ToString::to_string).collect();
            found.push(Loop { label: target.to_string(), lines });
        }
    }
    found
}

/// A matrix product in f32 or f64 with a constant right side.
fn product(dtype: &str, m: u64, k: u64, n: u64) -> String {
    format!(
        "HloModule m\nENTRY e {{\n  x = {dtype}[{m},{k}] parameter(0)\n  w = {dtype}[{k},{n}] parameter(1)\n  \
         ROOT d = {dtype}[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n"
    )
}

/// A square convolution.
fn convolution(size: u64, window: u64, stride: u64, cin: u64, cout: u64) -> String {
    let pad = window / 2;
    let out = (size + 2 * pad - window) / stride + 1;
    format!(
        "HloModule m\nENTRY e {{\n  x = f32[1,{size},{size},{cin}] parameter(0)\n  w = f32[{window},{window},{cin},{cout}] parameter(1)\n  \
         ROOT d = f32[1,{out},{out},{cout}] convolution(x, w), window={{size={window}x{window} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad}}}, dim_labels=b01f_01io->b01f\n}}\n"
    )
}

/// x·erfc(x) of a product, so long that it stands in a loop of its own.
fn long_epilogue() -> String {
    let (erfc, y) = Lines::of("f32[197,768]", formula::erfc);
    format!(
        "HloModule m\nENTRY e {{\n  a = f32[197,192] parameter(0)\n  w = f32[192,768] parameter(1)\n  \
         x = f32[197,768] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n{erfc}  \
         ROOT m = f32[197,768] multiply(x, {y})\n}}\n"
    )
}

#[test]
fn no_vector_goes_to_the_stack() {
    let cases = [
        ("square", product("f32", 256, 256, 256)),
        ("thin", product("f32", 7, 300, 1000)),
        ("odd", product("f32", 61, 100, 45)),
        ("row", product("f32", 1, 512, 512)),
        ("narrow", product("f32", 500, 64, 24)),
        ("doubles", product("f64", 64, 128, 96)),
        ("pointwise", convolution(28, 1, 1, 128, 256)),
        // of fewer channels than Winograd's method takes
        ("window", convolution(14, 3, 1, 12, 20)),
        ("strided", convolution(56, 3, 2, 64, 128)),
        ("first", convolution(112, 7, 2, 3, 64)),
        (LONG, long_epilogue()),
    ];
    let mut wrong = Vec::new();
    for (triple, cpu) in TARGETS {
        let target = Target::resolve(Some(triple), Some(cpu), None).expect("a known processor");
        let mut seen = 0;
        for (name, hlo) in &cases {
            let lowered = compile::wrap_module(text::parse(hlo).expect("sound HLO")).expect("arrays");
            let (_, program) = compile::plan(lowered, "m", "m", &target).expect("loops");
            let assembly = codegen::print(&program, &target, TextForm::Assembly).expect("assembly");
            for (i, found) in loops(&assembly).into_iter().filter(|l| l.products() >= FEWEST).enumerate() {
                seen += 1;
                // a loop of its own for the epilogue may have some of its constants there
                let strict = target.fma && *name != LONG;
                let most = if strict { 0 } else { found.products() / 8 };
                if found.spills() > most {
                    wrong.push(format!(
                        "{cpu}, {name}, {}: {} of {} products",
                        found.label,
                        found.spills(),
                        found.products()
                    ));
                }
                if let Some(folder) = std::env::var_os("TFAOT_LOOPS") {
                    let file = Path::new(&folder).join(format!("{cpu}-{name}-{i}-{}.s", found.products()));
                    std::fs::write(file, found.lines.join("\n")).expect("a folder for the loops");
                }
            }
        }
        assert!(seen >= cases.len(), "{cpu}: only {seen} loops with products were found");
    }
    assert!(wrong.is_empty(), "vectors on the stack:\n{}", wrong.join("\n"));
}
