//! `linalg`: Cholesky factors and triangular systems; `expanded`: Fourier transforms, batch norms, random bits.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, shape, some};
use tfaot::tensor::DType;

/// A matrix with a heavy diagonal, so that errors don't grow.
pub fn linalg(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F64, DType::C64]);
    let n = some(r, 40);
    let batch: Vec<u64> = if r.below(2) == 0 { vec![some(r, 4)] } else { vec![] };
    let square = [&batch[..], &[n, n]].concat();
    let rank = square.len();
    let x = t.param(dtype, &square, Fill::Quarters);
    let small = t.splat(
        dtype,
        &square,
        if dtype.is_complex() { format!("({}, 0)", 0.25 / n as f64) } else { (0.25 / n as f64).to_string() },
    );
    let x = t.binary("multiply", &x, &small);
    let i = t.op(DType::S32, &square, format_args!("iota(), iota_dimension={}", rank - 2));
    let j = t.op(DType::S32, &square, format_args!("iota(), iota_dimension={}", rank - 1));
    let diagonal = t.op(DType::Pred, &square, format_args!("compare({}, {}), direction=EQ", i.name, j.name));
    let ones = t.splat(dtype, &square, if dtype.is_complex() { "(1.5, 0)" } else { "1.5" });
    let a = t.like(&x, format_args!("select({}, {}, {})", diagonal.name, ones.name, x.name));
    let slack = if dtype == DType::F64 { 1e-13 } else { 4e-6 };
    if r.below(3) == 0 {
        let y = t.like(&a, format_args!("cholesky({}), lower={}", a.name, r.below(2) == 0));
        t.result(&y, Rule::Close(slack));
        return t.finish();
    }
    let left = r.below(2) == 0;
    let m = some(r, 40);
    let side = if left { [&batch[..], &[n, m]].concat() } else { [&batch[..], &[m, n]].concat() };
    let b = t.param(dtype, &side, Fill::Plain);
    let transpose = r.of(&["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]);
    let y = t.like(
        &b,
        format_args!(
            "triangular-solve({}, {}), left_side={left}, lower={}, unit_diagonal={}, transpose_a={transpose}",
            a.name,
            b.name,
            r.below(2) == 0,
            r.below(4) == 0
        ),
    );
    t.result(&y, Rule::Close(slack));
    t.finish()
}

/// What is written with other opcodes before it is scheduled.
pub fn expanded(r: &mut Random) -> Case {
    match r.below(4) {
        0 => batch_norm(r),
        1 => random_bits(r),
        _ => fourier(r),
    }
}

fn fourier(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (c, f) = r.of(&[(DType::C64, DType::F32), (DType::C64, DType::F32), (DType::C128, DType::F64)]);
    let axes = 1 + r.below(2);
    let most = if axes == 1 { 300 } else { 24 };
    let lengths: Vec<u64> = (0..axes).map(|_| some(r, most)).collect();
    let batch = some(r, 4);
    let mut whole = vec![batch];
    whole.extend(&lengths);
    let mut half = whole.clone();
    half[axes] = half[axes] / 2 + 1;
    let kind = r.of(&["FFT", "IFFT", "RFFT", "IRFFT"]);
    let (from, input, to, output) = match kind {
        "RFFT" => (f, &whole, c, &half),
        "IRFFT" => (c, &half, f, &whole),
        _ => (c, &whole, c, &whole),
    };
    let x = t.param(from, input, Fill::Plain);
    let y = t.op(
        to,
        output,
        format_args!("fft({}), fft_type={kind}, fft_length={{{}}}", x.name, super::text::list(&lengths)),
    );
    let n = lengths.iter().product::<u64>() as f64;
    let eps = if f == DType::F64 { 2f64.powi(-52) } else { 2f64.powi(-23) };
    t.result(&y, Rule::Close(8.0 * eps * n.sqrt() * (2.0 + n.log2().max(0.0))));
    t.finish()
}

fn batch_norm(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F64]);
    let rank = 2 + r.below(3);
    let dims: Vec<u64> = (0..rank).map(|_| some(r, 9)).collect();
    let axis = if r.below(3) == 0 { 1 } else { rank - 1 };
    let own = [dims[axis]];
    let x = t.param(dtype, &dims, Fill::Plain);
    let scale = t.param(dtype, &own, Fill::Plain);
    let offset = t.param(dtype, &own, Fill::Plain);
    let attrs = format!("epsilon=0.25, feature_index={axis}");
    if r.below(2) == 0 {
        let mean = t.param(dtype, &own, Fill::Plain);
        let variance = t.param(dtype, &own, Fill::Range(0.0, 2.0));
        let names = format!("{}, {}, {}, {}, {}", x.name, scale.name, offset.name, mean.name, variance.name);
        let y = t.like(&x, format_args!("batch-norm-inference({names}), {attrs}"));
        t.result(&y, Rule::Close(1e-6));
        return t.finish();
    }
    let (s, o) = (shape(dtype, &dims), shape(dtype, &own));
    let all = t.line(
        &format!("({s}, {o}, {o})"),
        format_args!("batch-norm-training({}, {}, {}), {attrs}", x.name, scale.name, offset.name),
    );
    for (i, dims) in [&dims[..], &own, &own].into_iter().enumerate() {
        let y = t.op(dtype, dims, format_args!("get-tuple-element({all}), index={i}"));
        t.result(&y, Rule::Close(2e-5));
    }
    t.finish()
}

fn random_bits(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (algorithm, words) = r.of(&[("rng_philox", 2), ("rng_philox", 3), ("rng_three_fry", 2), ("rng_default", 3)]);
    let state = t.param(DType::U64, &[words], Fill::Corners);
    let dtype = r.of(&[DType::U32, DType::U64, DType::S32, DType::U8, DType::U16, DType::S64]);
    let rank = r.below(3);
    let dims = super::text::sizes(r, rank, 400);
    let all = t.line(
        &format!("({}, {})", shape(DType::U64, &[words]), shape(dtype, &dims)),
        format_args!("rng-bit-generator({}), algorithm={algorithm}", state.name),
    );
    for (i, (dtype, dims)) in [(DType::U64, &[words][..]), (dtype, &dims)].into_iter().enumerate() {
        let y = t.op(dtype, dims, format_args!("get-tuple-element({all}), index={i}"));
        t.result(&y, Rule::Bits);
    }
    t.finish()
}
