//! Products by AMX's tiles, of bf16 and of bytes, and of bytes by AVX-VNNI: machine code on a processor that `tests/objects/tiles.c` plays where this
//! one has none, against the bits of the kernels, and those against the interpreter.
mod bf16;
mod bytes;
mod machine;
mod text;

use machine::{Called, Machine};
use text::Text;
use tfaot::codegen::Launches;
use tfaot::compile::{self, Built};
use tfaot::hlo::Literal;
use tfaot::kernel::{self, Program};
use tfaot::lower::Lowered;
use tfaot::target::CodeRequest;
use tfaot::tensor::Tensor;

const MOST: u64 = 2_000_000_000;

fn build(lowered: &Lowered, target: &CodeRequest) -> Built {
    compile::build(lowered.clone(), "m", "m", target, Launches::Direct, &mut None).expect("it compiles")
}

/// The results of the kernels.
fn kernels(program: &Program, args: &[Tensor]) -> Vec<Vec<u8>> {
    let results = kernel::evaluate(program, args, MOST).expect("the kernels run");
    results.iter().map(|t| t.bytes.to_vec()).collect()
}

/// The `tiles` statements of the kernels.
fn blocks(text: Text, target: &CodeRequest) -> usize {
    let built = build(&text.finish().0, target);
    kernel::print_program(&built.program).lines().filter(|l| l.trim_start().starts_with("tiles ")).count()
}

/// Kernels against the interpreter by `compare`, and machine code against the kernels.
fn check(text: Text, target: &CodeRequest, machine: Option<&Machine>, compare: impl Fn(&Tensor, &Tensor)) {
    let (lowered, args) = text.finish();
    let built = build(&lowered, target);
    let want = kernel::evaluate(&built.program, &args, MOST).expect("the kernels run");
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let (module, _) = compile::plan(lowered, "t", "t", target).expect("kernels");
    let plain = tfaot::interp::evaluate(&module, module.entry, &literals).expect("the interpreter runs it");
    want.iter().zip(plain.leaves()).for_each(|(got, want)| compare(got, want));
    let Some(machine) = machine else { return };
    let object = built.object.content.to_bytes();
    let called = Called { object: &object, asked: "m", target: &target.target, program: &built.program };
    let got = machine.run(&called, &args, "all").expect("it takes the call");
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!(got[..] == want.bytes[..], "result {i}");
    }
}

/// Calls an object of two targets, the first of which has tiles, on processors with and without them: each is to run the code that it can. The
/// target that asks for tiles is `asked`.
fn check_both(text: Text, targets: [CodeRequest; 2], machine: &Machine, asked: &str) -> [Vec<Vec<u8>>; 2] {
    let (lowered, args) = text.finish();
    let functions = compile::Functions { all: vec![("m".to_string(), lowered)], init: None };
    let made = compile::build_functions(functions, "m", "m", &targets, Launches::Direct, &mut []).expect("it compiles");
    let object = made.object.content.to_bytes();
    let [tiles, others] = &made.bundle.variants[..] else { panic!("two") };
    assert!(tiles.1.features.contains("+amx-tile") && !others.1.features.contains("+amx-tile"));
    // the weights of all variants lie in one pool, which the bundle has
    let pooled = |program: &Program| {
        let (weights, weights_bytes) = (made.bundle.weights.clone(), made.bundle.face.weights_bytes);
        kernels(&Program { weights, weights_bytes, ..program.clone() }, &args)
    };
    let of_each = [pooled(&tiles.0[0]), pooled(&others.0[0])];
    let program = &made.bundle.face.entries[0].program;
    let called = Called { object: &object, asked, target: &tiles.1, program };
    for (state, want) in [("all", 0), ("none", 1), ("refused", 1)] {
        let got = machine.run(&called, &args, state).expect("it takes the call");
        assert!(got == of_each[want], "{state}");
    }
    of_each
}
