//! e^x by a table of the sixteenths of a power of two, where one instruction looks up all lanes: n and r with
//! x = n·ln2/16 + r, so that |r| is so small that three multiply-adds are enough. What rounding took from an entry comes back in
//! r, so that the table costs no precision.
use super::super::float::{fma, number};
use super::super::function::Function;
use super::super::scalar::{bits, reinterpret, two};
use super::super::value::{Val, value_type};
use super::sub;
use crate::target::Level;
use crate::tensor::DType;

/// Entries, and lanes of the instruction that looks them up.
const ENTRIES: u64 = 16;
/// Where the number of an entry ends and the exponent of an f32 begins.
const EXPONENT_BITS: u64 = 23;
/// A whole number below 2^22 plus this has the same low bits as the f32.
pub const WHOLE: f64 = 12_582_912.0;

/// Whether [`look_up`] is one instruction.
pub fn is_table(f: &Function) -> bool {
    f.target.level() == Level::Avx512
}

/// 2^(j/16) as an f32.
fn entry(j: u64) -> f32 {
    (j as f64 / ENTRIES as f64).exp2() as f32
}

/// Entry `n` modulo 16 of a table of words, for each lane, a power of two of them.
fn look_up(f: &mut Function, n: &Val, table: &dyn Fn(u64) -> u32) -> Val {
    let (ty, lanes) = (n.ty(), n.lanes);
    if lanes > ENTRIES {
        let halves = [0, lanes / 2].map(|first| {
            let half = f.shuffle(n, &(first..first + lanes / 2).collect::<Vec<_>>());
            look_up(f, &half, table)
        });
        let [low, high] = halves;
        let all: Vec<String> = (0..lanes).map(|i| format!("i32 {i}")).collect();
        let half = low.ty();
        let mask = format!("<{lanes} x i32> <{}>", all.join(", "));
        let both = format!("shufflevector {half} {}, {half} {}, {mask}", low.text, high.text);
        return f.ins(&both, DType::U32, lanes);
    }
    let whole = value_type(DType::U32, ENTRIES);
    let all = match lanes {
        ENTRIES => n.clone(),
        1 => f.ins(&format!("insertelement {whole} zeroinitializer, {ty} {}, i32 0", n.text), n.dtype, ENTRIES),
        _ => f.shuffle(n, &(0..ENTRIES).map(|i| i % lanes).collect::<Vec<_>>()),
    };
    let words: Vec<String> = (0..ENTRIES).map(|j| format!("i32 {}", table(j))).collect();
    let operands = format!("{whole} <{}>, {whole} {}", words.join(", "), all.text);
    let found = f.ins(&format!("call {whole} @llvm.x86.avx512.permvar.si.512({operands})"), DType::U32, ENTRIES);
    if lanes == ENTRIES { found } else { f.shuffle(&found, &(0..lanes).collect::<Vec<_>>()) }
}

/// What of 2^(n/16) and of the logarithm of its error a whole `n` gives, which comes with [`WHOLE`] added: the f32 next to it,
/// for n from -16·126 to 16·127 + 15, and what is to be taken from r.
pub fn power(f: &mut Function, whole: &Val) -> (Val, Val) {
    let word = reinterpret(f, whole, DType::U32);
    let lost = look_up(f, &word, &|j| {
        let exact = j as f64 / ENTRIES as f64 * std::f64::consts::LN_2;
        ((exact - f64::from(entry(j)).ln()) as f32).to_bits()
    });
    // n in the place of the exponent has its last four bits in the mantissa, where the table takes them away
    let shift = EXPONENT_BITS - u64::from(ENTRIES.trailing_zeros());
    let mantissa = look_up(f, &word, &|j| entry(j).to_bits().wrapping_sub((j << shift) as u32));
    let exponent = two(f, "shl", &word, &bits(&word, shift));
    let power = two(f, "add", &exponent, &mantissa);
    (reinterpret(f, &power, DType::F32), reinterpret(f, &lost, DType::F32))
}

/// 1 + 2^(n/16)·e^-r for x = -n·ln2/16 + r of an x from -87 to 87, n with [`WHOLE`] added; larger n give infinity.
pub fn one_and_exp(f: &mut Function, x: &Val, whole: &Val) -> Val {
    let n = sub(f, whole, &number(x, WHOLE));
    let (high, low) = (0.693_145_75 / ENTRIES as f64, 1.428_606_8e-6 / ENTRIES as f64);
    let r = fma(f, &n, &number(x, high), x);
    let r = fma(f, &n, &number(x, low), &r);
    let (power, lost) = power(f, whole);
    let r = sub(f, &r, &lost);
    let q = fma(f, &r, &number(x, -1.0 / 6.0), &number(x, 0.5));
    let q = fma(f, &q, &r, &number(x, -1.0));
    let one = number(x, 1.0);
    let e = fma(f, &q, &r, &one);
    fma(f, &e, &power, &one)
}
