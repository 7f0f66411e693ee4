//! Variables that keep their values between calls: where they are changed without a copy, and that the kernels do what the
//! interpreter does, call after call.
use crate::common::{random::Random, tolerance::departure};
use tfaot::compile;
use tfaot::kernel::{self, BufferLocation, Program};
use tfaot::target::Target;
use tfaot::tensor::Tensor;

/// Statements that one call may take.
const MOST: u64 = 20_000_000;

const ADD: &str = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n";

/// The program of a module whose last parameters are variables, after three calls of it gave what the interpreter gives.
fn checked(callees: &str, entry: &str, args: usize, changed: &[bool]) -> Program {
    let hlo = format!("HloModule m\n{callees}ENTRY e {{\n{entry}}}\n");
    let lowered = crate::common::state::lowered(&hlo, args, changed);
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a known processor");
    let (_, program) = compile::plan(lowered.clone(), "m", "m", &target).expect("kernels");
    let mut random = Random::new(11);
    let mut want: Vec<Tensor> = lowered.state.iter().map(|v| random.tensor(v.info.dtype, &v.info.dims)).collect();
    let mut have = crate::common::state::packed(&program.state, &want);
    for call in 0..3 {
        let args: Vec<Tensor> = lowered.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect();
        let (results, next) = crate::common::state::interpreted(&lowered, &args, &want);
        let got = kernel::evaluate_with_state(&program, &args, &mut have, MOST).expect("the kernels run");
        want = next;
        let all = results.iter().chain(&want);
        for (i, (g, w)) in got.iter().chain(&crate::common::state::unpacked(&program.state, &have)).zip(all).enumerate()
        {
            let why = departure(g, w);
            assert!(why.is_none(), "call {call}, part {i}: {why:?}\n{}", kernel::print_program(&program));
        }
    }
    program
}

/// Kernels, and buffers in the workspace.
fn counts(p: &Program) -> (usize, usize) {
    (p.kernels.len(), p.buffers.values().filter(|b| matches!(b.place, BufferLocation::Workspace(_))).count())
}

#[test]
fn a_step_down_a_gradient_is_made_where_the_variable_lies() {
    let p = checked(
        "",
        "g = f32[100] parameter(0)\n v = f32[100] parameter(1)\n rate = f32[] constant(0.1)\n\
         rates = f32[100] broadcast(rate), dimensions={}\n step = f32[100] multiply(rates, g)\n\
         next = f32[100] subtract(v, step)\n ROOT t = (f32[100]) tuple(next)\n",
        1,
        &[true],
    );
    assert_eq!(counts(&p), (1, 0), "{}", kernel::print_program(&p));
    assert!(kernel::print_program(&p).contains("changes v0 f32[100] at 0 of 448\n"), "{}", kernel::print_program(&p));
}

#[test]
fn weights_are_read_before_the_product_that_changes_them() {
    // a layer, the gradient of its weights, and the step: the product reads the weights that the step writes
    let p = checked(
        "",
        "x = f32[8,24] parameter(0)\n w = f32[24,40] parameter(1)\n\
         y = f32[8,40] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         d = f32[24,40] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n\
         rate = f32[] constant(0.01)\n rates = f32[24,40] broadcast(rate), dimensions={}\n\
         step = f32[24,40] multiply(rates, d)\n next = f32[24,40] subtract(w, step)\n\
         ROOT t = (f32[8,40], f32[24,40]) tuple(y, next)\n",
        1,
        &[true],
    );
    let text = kernel::print_program(&p);
    let written: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("b1[")).collect();
    assert!(!written.is_empty() && written.iter().all(|line| line.contains("subtract(b1[")), "{text}");
}

#[test]
fn a_moment_and_its_variable_are_changed_where_they_lie() {
    let p = checked(
        "",
        "g = f32[50] parameter(0)\n v = f32[50] parameter(1)\n m = f32[50] parameter(2)\n b = f32[] constant(0.9)\n\
         bs = f32[50] broadcast(b), dimensions={}\n old = f32[50] multiply(bs, m)\n m2 = f32[50] add(old, g)\n\
         v2 = f32[50] subtract(v, m2)\n ROOT t = (f32[50], f32[50]) tuple(v2, m2)\n",
        1,
        &[true, true],
    );
    assert_eq!(counts(&p).1, 0, "{}", kernel::print_program(&p));
}

#[test]
fn the_old_value_that_a_call_returns_is_copied_first() {
    let p = checked(
        "",
        "v = f32[10] parameter(0)\n one = f32[] constant(1)\n ones = f32[10] broadcast(one), dimensions={}\n\
         next = f32[10] add(v, ones)\n ROOT t = (f32[10], f32[10]) tuple(v, next)\n",
        0,
        &[true],
    );
    assert!(counts(&p).0 <= 3, "{}", kernel::print_program(&p));
}

#[test]
fn a_new_value_may_be_a_result_too() {
    let p = checked(
        "",
        "v = s32[] parameter(0)\n one = s32[] constant(1)\n next = s32[] add(v, one)\n\
         ROOT t = (s32[], s32[]) tuple(next, next)\n",
        0,
        &[true],
    );
    assert_eq!(counts(&p).1, 0, "{}", kernel::print_program(&p));
}

#[test]
fn variables_change_places() {
    checked(
        "",
        "a = f32[5] parameter(0)\n b = f32[5] parameter(1)\n c = f32[5] parameter(2)\n\
         ROOT t = (f32[5], f32[5], f32[5]) tuple(b, c, a)\n",
        0,
        &[true, true, true],
    );
}

#[test]
fn variables_get_an_argument_a_constant_and_one_value_twice() {
    checked(
        "",
        "x = f32[5] parameter(0)\n a = f32[5] parameter(1)\n b = f32[5] parameter(2)\n c = f32[5] parameter(3)\n\
         d = f32[5] parameter(4)\n k = f32[5] constant({1,2,3,4,5})\n s = f32[5] add(a, b)\n\
         ROOT t = (f32[5], f32[5], f32[5], f32[5]) tuple(s, x, k, s)\n",
        1,
        &[true, true, true, true],
    );
}

#[test]
fn a_variable_that_nothing_changes_is_read_where_it_lies() {
    let p = checked(
        "",
        "x = f32[8,24] parameter(0)\n w = f32[24,40] parameter(1)\n n = s32[] parameter(2)\n one = s32[] constant(1)\n\
         y = f32[8,40] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n m = s32[] add(n, one)\n\
         ROOT t = (f32[8,40], s32[]) tuple(y, m)\n",
        1,
        &[false, true],
    );
    assert!(kernel::print_program(&p).contains("reads v0 f32[24,40] at 0 of 3904\n"), "{}", kernel::print_program(&p));
}

#[test]
fn a_variable_that_gets_what_it_has_does_not_change() {
    let p = checked(
        "",
        "x = f32[5] parameter(0)\n a = f32[5] parameter(1)\n b = f32[5] parameter(2)\n s = f32[5] add(a, x)\n\
         ROOT t = (f32[5], f32[5], f32[5]) tuple(s, a, s)\n",
        1,
        &[true, true],
    );
    assert_eq!(p.state.iter().map(|v| v.changed).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_row_is_put_into_a_cache_in_place() {
    let p = checked(
        ADD,
        "x = f32[1,16] parameter(0)\n cache = f32[32,16] parameter(1)\n at = s32[] parameter(2)\n one = s32[] constant(1)\n\
         zero = s32[] constant(0)\n next = f32[32,16] dynamic-update-slice(cache, x, at, zero)\n\
         then = s32[] add(at, one)\n sum = f32[] constant(0)\n\
         total = f32[32] reduce(next, sum), dimensions={1}, to_apply=add\n\
         ROOT t = (f32[32], f32[32,16], s32[]) tuple(total, next, then)\n",
        1,
        &[true, true],
    );
    assert_eq!(counts(&p).1, 0, "{}", kernel::print_program(&p));
}

/// Adds `x` to an accumulator five times.
const LOOP: &str = "body { s = (s32[], f32[64], f32[64]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n\
     v = f32[64] get-tuple-element(s), index=1\n x = f32[64] get-tuple-element(s), index=2\n one = s32[] constant(1)\n\
     j = s32[] add(i, one)\n w = f32[64] add(v, x)\n ROOT t = (s32[], f32[64], f32[64]) tuple(j, w, x) }\n\
     cond { s = (s32[], f32[64], f32[64]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(5)\n\
     ROOT more = pred[] compare(i, n), direction=LT }\n";

#[test]
fn a_loop_that_carries_a_variable_changes_it_where_it_lies() {
    let p = checked(
        LOOP,
        "x = f32[64] parameter(0)\n v = f32[64] parameter(1)\n zero = s32[] constant(0)\n\
         s = (s32[], f32[64], f32[64]) tuple(zero, v, x)\n\
         l = (s32[], f32[64], f32[64]) while(s), condition=cond, body=body\n\
         r = f32[64] get-tuple-element(l), index=1\n ROOT t = (f32[64]) tuple(r)\n",
        1,
        &[true],
    );
    // the counter, and whether to go on
    assert_eq!(counts(&p).1, 2, "{}", kernel::print_program(&p));
}

#[test]
fn a_loop_leaves_a_variable_alone_that_gets_another_value() {
    checked(
        LOOP,
        "x = f32[64] parameter(0)\n v = f32[64] parameter(1)\n zero = s32[] constant(0)\n\
         s = (s32[], f32[64], f32[64]) tuple(zero, v, x)\n\
         l = (s32[], f32[64], f32[64]) while(s), condition=cond, body=body\n\
         r = f32[64] get-tuple-element(l), index=1\n w = f32[64] multiply(v, x)\n\
         ROOT t = (f32[64], f32[64]) tuple(r, w)\n",
        1,
        &[true],
    );
}

#[test]
fn a_branch_that_changes_a_variable() {
    checked(
        "yes { s = (f32[64], f32[64]) parameter(0)\n v = f32[64] get-tuple-element(s), index=0\n\
         x = f32[64] get-tuple-element(s), index=1\n ROOT r = f32[64] add(v, x) }\n\
         no { s = (f32[64], f32[64]) parameter(0)\n ROOT v = f32[64] get-tuple-element(s), index=0 }\n",
        "p = pred[] parameter(0)\n x = f32[64] parameter(1)\n v = f32[64] parameter(2)\n s = (f32[64], f32[64]) tuple(v, x)\n\
         r = f32[64] conditional(p, s, s), true_computation=yes, false_computation=no\n ROOT t = (f32[64]) tuple(r)\n",
        2,
        &[true],
    );
}

#[test]
fn empty_variables_and_sums_of_their_own() {
    checked(
        ADD,
        "x = f32[3,7] parameter(0)\n none = f32[0] parameter(1)\n v = f32[3] parameter(2)\n zero = f32[] constant(0)\n\
         s = f32[3] reduce(x, zero), dimensions={1}, to_apply=add\n next = f32[3] add(v, s)\n\
         ROOT t = (f32[0], f32[3]) tuple(none, next)\n",
        1,
        &[true, true],
    );
}
