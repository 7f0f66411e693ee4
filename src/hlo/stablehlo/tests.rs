use super::*;
use crate::hlo::{text, verify};

/// The module of a text, verified, as HLO.
fn check(source: &str) -> String {
    assert!(is_stablehlo(source));
    let module = parse(source).unwrap_or_else(|e| panic!("{e}"));
    verify::verify(&module).unwrap_or_else(|e| panic!("{e}\n{}", text::print(&module)));
    text::print(&module)
}

#[test]
fn the_pretty_and_the_generic_form_are_the_same() {
    let pretty = check("func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> tensor<2xf32> {
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
        %1 = stablehlo.add %arg0, %0 : tensor<2x3xf32>
        %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        return %2 : tensor<2xf32>
    }");
    let generic = check("module @main { func.func public @main(%arg0: tensor<2x3xf32> {a.b = \"x\"}, %arg1: tensor<3xf32>) -> (tensor<2xf32> {jax.result_info = \"\"}) {
        %cst = \"stablehlo.constant\"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %0 = \"stablehlo.broadcast_in_dim\"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<2x3xf32> loc(#loc1)
        %1 = \"stablehlo.add\"(%arg0, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %2 = \"stablehlo.reduce\"(%1, %cst) <{dimensions = array<i64: 1>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %r = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %r : tensor<f32>
        }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        return %2 : tensor<2xf32>
    } } #loc = loc(unknown)");
    assert_eq!(pretty, generic);
}

#[test]
fn loops_and_branches_take_what_they_read_with_them() {
    let text = check(
        "func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
        %c = stablehlo.constant dense<1> : tensor<i32>
        %p = stablehlo.compare LT, %n, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %y = \"stablehlo.if\"(%p) ({ stablehlo.return %x : tensor<4xf32> }, {
            %z = stablehlo.negate %x : tensor<4xf32>
            stablehlo.return %z : tensor<4xf32>
        }) : (tensor<i1>) -> tensor<4xf32>
        %0:2 = stablehlo.while(%i = %n, %v = %y) : tensor<i32>, tensor<4xf32>
        cond {
            %1 = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
        } do {
            %2 = stablehlo.subtract %i, %c : tensor<i32>
            %3 = stablehlo.add %v, %x : tensor<4xf32>
            stablehlo.return %2, %3 : tensor<i32>, tensor<4xf32>
        }
        return %0#0, %0#1 : tensor<i32>, tensor<4xf32>
    }",
    );
    assert!(text.contains("true_computation") && text.contains("while("), "{text}");
}

#[test]
fn what_is_not_read_has_a_place() {
    for (source, code) in [
        (
            "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }",
            crate::diag::Code::UnknownDim,
        ),
        ("func.func @main(%a: tensor<!quant.uniform<i8:f32, 1.0>>) { return }", crate::diag::Code::HloUnsupported),
        (
            "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.infeed %a : tensor<f32> }",
            crate::diag::Code::HloUnsupported,
        ),
        ("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %b : tensor<f32> }", crate::diag::Code::HloSyntax),
        (
            "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = call @main(%a) : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }",
            crate::diag::Code::HloUnsupported,
        ),
    ] {
        let d = parse(source).expect_err(source).into_diagnostics();
        assert_eq!(d[0].code, code, "{source}: {}", d[0].message);
    }
}

#[test]
fn any_cut_is_an_error_and_no_panic() {
    let source = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
        %c = stablehlo.constant dense<[1.0, 0x7F800000]> : tensor<2xf32>
        %d = stablehlo.slice %a [0:2:1] : (tensor<2xf32>) -> tensor<2xf32>
        %0 = stablehlo.custom_call @f(%a, %c, %d) {backend_config = \"x\"} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32> }";
    check(source);
    for cut in 0..source.len() {
        assert!(parse(&source[..cut]).is_err(), "the first {cut} bytes");
    }
    assert!(parse(&format!("func.func @main() {{ {}", "\"stablehlo.if\"() ({ ".repeat(100_000))).is_err());
    assert!(parse(&format!("func.func @main(%a: {}", "tuple<".repeat(100_000))).is_err());
}

/// A program of two devices, with the sharding of rows or of columns of its arguments.
fn sharded(x: &str, y: &str, result: &str) -> String {
    let text = format!(
        "module attributes {{mhlo.num_partitions = 2 : i32}} {{
  sdy.mesh @mesh = <[\"i\"=2]>
  func.func @main(%x: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, {x}>}},
                  %y: tensor<6x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {y}>}}) -> (tensor<4x8xf32> {{{result}}}) {{
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.tanh %0 : tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }}
}}"
    );
    crate::hlo::text::print(&parse(&text).expect("a module"))
}

#[test]
fn products_of_shards_exchange_no_more_than_they_must() {
    let rows = sharded("[{\"i\"}, {}]", "[{}, {}]", "");
    assert!(rows.contains("f32[2,8] dot") && !rows.contains("all-"), "{rows}");
    let columns = sharded("[{}, {}]", "[{}, {\"i\"}]", "");
    assert!(columns.contains("f32[4,4] dot") && !columns.contains("all-"), "{columns}");
    let sums = sharded("[{}, {\"i\"}]", "[{\"i\"}, {}]", "");
    assert!(sums.contains("all-reduce") && !sums.contains("all-gather"), "{sums}");
    let both = sharded("[{\"i\"}, {}]", "[{}, {\"i\"}]", "");
    assert!(both.contains("all-gather") && both.contains("f32[4,8] dot"), "{both}");
    let stated = sharded("[{\"i\"}, {}]", "[{}, {}]", "sdy.sharding = #sdy.sharding<@mesh, [{}, {\"i\"}]>");
    assert!(stated.contains("all-gather") && stated.contains("dynamic-slice"), "{stated}");
}

#[test]
fn calls_are_made_by_the_device_that_their_sharding_names() {
    let module = |shardings: &str, target: &str| {
        format!(
            "module @m attributes {{mhlo.num_partitions = 2 : i32}} {{
            func.func @main(%x: tensor<4xf32> {{mhlo.sharding = \"{{devices=[2]<=[2]}}\"}}) -> tensor<4xf32> {{
            %0:2 = stablehlo.custom_call @{target}(%x) {{mhlo.sharding = \"{shardings}\"}} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>)
            return %0#0 : tensor<4xf32>
        }} }}"
        )
    };
    let one = check(&module("{{maximal device=1}, {maximal device=1}}", "f"));
    assert!(one.contains("conditional") && one.contains("collective-broadcast"), "{one}");
    let each = check(&module("{{replicated}, {replicated}}", "f"));
    assert!(!each.contains("conditional") && each.contains("all-gather"), "{each}");
    let refusal = |shardings: &str, target: &str| parse(&module(shardings, target)).expect_err("refused").to_string();
    let two = refusal("{{maximal device=1}, {maximal device=0}}", "f");
    assert!(two.contains("results of a custom call are on different devices"), "{two}");
    let parts = refusal("{{replicated}, {replicated}}", "xla_ffi_partitioned_python_cpu_callback");
    assert!(parts.contains("a partitioned callback returns an array"), "{parts}");
}
