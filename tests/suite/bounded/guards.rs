//! What lowering chose by comparing sizes holds for every size, or there is no code: also where no size that is looked at tells.
use tfaot::bounded;
use tfaot::compile;
use tfaot::diag::Code;
use tfaot::hlo::symbolic::{Builder, Shape};
use tfaot::hlo::text;
use tfaot::lower::{Lowered, SizeRecordingLowering, SymbolicLowering};
use tfaot::scalar::ScalarOp;
use tfaot::symbolic::Dim;
use tfaot::tensor::{DType, Size};

/// A function of `f32[n]`.
fn pointwise(n: u64, op: &str) -> Lowered {
    let text = format!("HloModule f\nENTRY e {{\n  x = f32[{n}] parameter(0)\n  ROOT y = f32[{n}] {op}(x)\n}}\n");
    compile::wrap_module(text::parse(&text).expect("parses")).expect("a function of arrays")
}

/// The same with a size that is recorded.
fn open(n: Dim, op: ScalarOp) -> SymbolicLowering {
    let mut b = Builder::new("f");
    let x = b.parameter(Shape::array(DType::F32, [n]));
    let y = b.unary(op, x);
    let root = b.tuple(&[y]);
    let module = b.finish(root).expect("a module");
    let lowered = pointwise(u64::try_from(n.concrete_value()).expect("a size"), op.name());
    SymbolicLowering { lowered: Lowered { module: module.at_current_sizes(), ..lowered }, module, sizes: Vec::new() }
}

/// The size `name` from 1 to 200.
fn size(name: &str) -> Size {
    Size { name: name.to_string(), least: 1, most: 200, is_result: false, is_check: false }
}

/// The function for every size up to 200 that is `abs` where the size is 37 and `special`, and `negate` for others; its lowering asks
/// `question` of the size. The message, where there is none.
fn lowered(special: bool, question: fn(Dim) -> bool) -> Result<(), String> {
    let traced = SizeRecordingLowering::new(move |sizes| {
        let op = if question(sizes[0]) && special { ScalarOp::Abs } else { ScalarOp::Negate };
        Ok(open(sizes[0], op))
    });
    let made = bounded::lower(&[size("n")], vec![vec![Some(0)]], &traced);
    made.map(drop).map_err(|error| {
        let all = error.into_diagnostics();
        assert_eq!(all[0].code, Code::OpenSize, "{all:?}");
        all[0].message.clone()
    })
}

#[test]
fn a_size_that_is_another_function_is_found_by_the_comparison() {
    let told = lowered(true, |n| n == 37).expect_err("another function at 37");
    assert!(told.contains("`n - 37` is 0"), "{told}");
}

#[test]
fn a_comparison_that_makes_no_difference_is_none() {
    assert_eq!(lowered(false, |n| n == 37), Ok(()));
    assert_eq!(lowered(false, |n| n * 2 > 1), Ok(()));
}

#[test]
fn comparisons_that_many_sizes_answer_otherwise_are_refused() {
    let told = lowered(false, |n| n % 3 == 2).expect_err("two of three sizes answer otherwise");
    assert!(told.contains("floor((n) / (3))"), "{told}");
}

#[test]
fn combinations_of_sizes_that_answer_otherwise_are_lowered() {
    // at 37 of the first size and any other but 5 of the second one, and the other way round, it is the same function
    for both_asked in [false, true] {
        let traced = SizeRecordingLowering::new(move |sizes| {
            let is_first = sizes[0] == 37;
            let is_special = match both_asked {
                true => (sizes[1] == 5) & is_first,
                false => is_first && sizes[1] == 5,
            };
            Ok(open(sizes[0], if is_special { ScalarOp::Abs } else { ScalarOp::Negate }))
        });
        let made = bounded::lower(&[size("n"), size("m")], vec![vec![Some(0)]], &traced);
        let all = made.map(drop).expect_err("another function at 37 and 5").into_diagnostics();
        assert_eq!(all[0].code, Code::OpenSize, "{all:?}");
    }
}
