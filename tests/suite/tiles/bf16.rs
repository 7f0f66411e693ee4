//! Products of bf16.
use super::{Called, Machine, Text, blocks, build, check, check_both};
use tfaot::target::{CodeRequest, MathType, Precision, Target};
use tfaot::tensor::{DType, Tensor};

const TYPES: [DType; 3] = [DType::BF16, DType::BF16, DType::F32];
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

/// Rows, terms and columns around what tiles, blocks and rounds hold.
fn edges(rows: u64) -> Text {
    let mut t = Text::new(rows, TYPES);
    for terms in [2, 30, 32, 34, 64, 100] {
        for columns in [16, 17, 33, 48] {
            t.product(rows, terms, columns);
        }
    }
    t
}

fn convolutions() -> Text {
    let mut t = Text::new(7, TYPES);
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
    let mut t = Text::new(5, TYPES);
    t.scales = [2f64.powi(-60), 2f64.powi(-67)];
    t.product(20, 34, 33);
    t.product(20, 64, 20);
    t
}

fn any(seed: u64) -> Text {
    let mut t = Text::new(seed, TYPES);
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

/// A processor on which such code runs, if this is one.
fn machine() -> Option<Machine> {
    Machine::here(&["avx512_bf16"], &["amx_bf16"])
}

fn check_bf16(text: Text, machine: Option<&Machine>) {
    check(text, &target(""), machine, |got, want| {
        let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
        let largest = (0..want.len()).map(|i| number(want, i).abs()).fold(0.0, f64::max);
        for i in 0..want.len() {
            let (g, w) = (number(got, i), number(want, i));
            assert!((g - w).abs() <= 2e-5 * largest + LOST, "{g:e} instead of {w:e} of {largest:e}");
        }
    });
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn edges_are_right() {
    let machine = machine();
    for rows in [1, 4, 15, 16, 17, 33] {
        check_bf16(edges(rows), machine.as_ref());
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn windows_and_batches_are_right() {
    let machine = machine();
    check_bf16(convolutions(), machine.as_ref());
    check_bf16(tiny(), machine.as_ref());
}

/// `TFAOT_RANDOM=300` tries more.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn random_products_are_right() {
    let machine = machine();
    let count = std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    (0..count).for_each(|seed| check_bf16(any(seed), machine.as_ref()));
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
    let Some(machine) = machine() else { return };
    let (lowered, args) = tiny().finish();
    let built = build(&lowered, &target(""));
    let object = built.object.content.to_bytes();
    let called = Called { object: &object, asked: "m", target: &target("").target, program: &built.program };
    let run = |state| machine.run(&called, &args, state);
    assert!(run("all").is_some() && run("none").is_none() && run("refused").is_none());
}

#[test]
fn an_object_for_both_takes_tiles_where_they_are() {
    let Some(machine) = machine() else { return };
    let of_each = check_both(tiny(), [of("znver4", ""), target("")], &machine, "m_sapphirerapids");
    assert_ne!(of_each[0], of_each[1]);
}
