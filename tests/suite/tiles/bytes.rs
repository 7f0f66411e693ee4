//! Products of bytes, which are the interpreter's to the bit. What is played here needs AVX2 alone of the processor: code for Alder Lake has
//! AVX-VNNI, and with AMX switched on it has tiles too, which no such processor has.
use super::{Called, Machine, Text, blocks, build, check, check_both, kernels};
use tfaot::target::{CodeRequest, Target};
use tfaot::tensor::{DType, Tensor};

const BYTES: [DType; 2] = [DType::S8, DType::U8];
const WITH_TILES: &str = "+amx-tile,+amx-int8";

fn target(cpu: &str, features: &str) -> CodeRequest {
    Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), Some(features)).expect("a known processor").into()
}

/// A processor on which code for Alder Lake runs, if this is one.
fn machine() -> Option<Machine> {
    Machine::here(&["avx2", "fma", "bmi2", "f16c"], &["amx_int8", "avx_vnni"])
}

/// The types of products whose sides have the signs that the two lowest bits of `signs` say.
fn types(signs: u64) -> [DType; 3] {
    [BYTES[signs as usize & 1], BYTES[signs as usize >> 1 & 1], DType::S32]
}

fn equal(got: &Tensor, want: &Tensor) {
    assert!(got.bytes == want.bytes, "{:?}: {:?} instead of {:?}", got.dims, got, want);
}

/// Rows, terms and columns around what tiles, blocks and rounds hold.
fn edges(rows: u64, signs: u64) -> Text {
    let mut t = Text::new(rows, types(signs));
    for terms in [4, 64, 68, 124, 128, 140, 260] {
        for columns in [8, 16, 17, 33, 48] {
            t.product(rows, terms, columns);
        }
    }
    t
}

/// Sums that go by tiles: of many terms, in whole and in ragged blocks.
fn long_sums(signs: u64) -> Text {
    let mut t = Text::new(signs, types(signs));
    t.product(33, 256, 24);
    t.product(18, 204, 33);
    t.convolution([1, 6, 64], 3, 1, 17);
    t
}

fn convolutions(signs: u64) -> Text {
    let mut t = Text::new(7, types(signs));
    for (size, window, step, channels) in [
        ([1, 7, 128], 1, 1, 40),
        ([2, 9, 132], 1, 2, 20),
        ([1, 14, 32], 3, 1, 24),
        ([1, 20, 36], 3, 1, 17),
        ([2, 11, 16], 5, 2, 33),
        ([1, 40, 12], 3, 1, 16),
        ([1, 7, 64], 3, 1, 64),
    ] {
        t.convolution(size, window, step, channels);
    }
    t.batched(3, 20, 132, 24);
    t.batched(2, 5, 264, 40);
    t
}

fn any(seed: u64) -> Text {
    let mut t = Text::new(seed, types(seed));
    for _ in 0..3 {
        let below = |t: &mut Text, n: usize| 1 + t.random.below(n) as u64;
        let (rows, words, columns) = (below(&mut t, 70), below(&mut t, 120), 3 + below(&mut t, 80));
        match t.random.below(3) {
            0 => t.product(rows, 4 * words, columns),
            1 => t.batched(3, rows, 4 * words, columns),
            _ => {
                let (side, step, window) = (below(&mut t, 24), below(&mut t, 2), t.random.of(&[1, 1, 3, 5]));
                t.convolution([1 + rows % 2, side, 4 * (words % 20 + 1)], window, step, columns);
            }
        }
    }
    t
}

/// Checks code with tiles and with AVX-VNNI alone, which run here, and the kernels for a processor that has both in truth.
fn check_bytes(text: impl Fn() -> Text, machine: Option<&Machine>) {
    check(text(), &target("alderlake", WITH_TILES), machine, equal);
    check(text(), &target("alderlake", ""), machine, equal);
    check(text(), &target("sapphirerapids", ""), None, equal);
}

#[test]
fn long_sums_are_right() {
    let machine = machine();
    (0..4).for_each(|signs| check_bytes(|| long_sums(signs), machine.as_ref()));
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn edges_are_right() {
    let machine = machine();
    for (rows, signs) in [1, 4, 15, 16, 17, 33].into_iter().zip(0..) {
        check_bytes(|| edges(rows, signs), machine.as_ref());
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn windows_and_batches_are_right() {
    let machine = machine();
    (0..4).for_each(|signs| check_bytes(|| convolutions(signs), machine.as_ref()));
}

/// `TFAOT_RANDOM=300` tries more.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn random_products_are_right() {
    let machine = machine();
    let count = std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    (0..count).for_each(|seed| check_bytes(|| any(seed), machine.as_ref()));
}

#[test]
fn long_sums_of_several_rows_go_by_tiles() {
    let of = |features: &str, [rows, terms, columns]: [u64; 3], signs| {
        let mut text = Text::new(3, types(signs));
        text.product(rows, terms, columns);
        blocks(text, &target("sapphirerapids", features)) > 0
    };
    for signs in 0..4 {
        assert!(of("", [64, 256, 64], signs) && of("", [17, 1024, 20], signs), "{signs}");
    }
    // a result as large as these takes longer by the stack than its few terms
    assert!(!of("", [3136, 64, 256], 0) && !of("", [64, 32, 64], 0) && !of("", [1, 1024, 64], 0));
    for off in ["-amx-int8", "-amx-tile"] {
        assert!(!of(off, [64, 256, 64], 0), "{off}");
    }
    // one feature of AMX without the other
    assert!(of("-amx-bf16", [64, 256, 64], 0));
}

#[test]
fn tiles_have_the_bits_of_words() {
    for signs in 0..4 {
        let of = |features: &str| {
            let (lowered, args) = long_sums(signs).finish();
            kernels(&build(&lowered, &target("sapphirerapids", features)).program, &args)
        };
        assert!(of("") == of("-amx-int8"), "{signs}");
    }
}

#[test]
fn a_machine_without_the_instructions_refuses() {
    let Some(machine) = machine() else { return };
    let (lowered, args) = long_sums(1).finish();
    for (features, states) in [(WITH_TILES, [true, false, false, false]), ("", [true, true, true, false])] {
        let request = target("alderlake", features);
        let built = build(&lowered, &request);
        let object = built.object.content.to_bytes();
        let called = Called { object: &object, asked: "m", target: &request.target, program: &built.program };
        let takes = ["all", "none", "refused", "plain"].map(|state| machine.run(&called, &args, state).is_some());
        assert_eq!(takes, states, "{features}");
    }
}

#[test]
fn an_object_for_both_takes_tiles_where_they_are() {
    let Some(machine) = machine() else { return };
    let targets = [target("x86-64-v3", ""), target("alderlake", WITH_TILES)];
    let of_each = check_both(long_sums(2), targets, &machine, "m_alderlake");
    assert!(of_each[0] == of_each[1]);
}
