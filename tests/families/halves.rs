//! `halves`: planes with margins for the window that reads them, so large that they are made and read in halves.
use super::common::random::Random;
use super::convolutions::narrowed;
use super::folds::{Axis, window_text};
use super::products::epilogue;
use super::text::{Case, Fill, Rule, Text, Val};
use tfaot::tensor::DType;

const F32: DType = DType::F32;

pub fn halves(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (wide, channels) = (12 + r.below(40) as u64, r.of(&[5, 8, 15, 16, 24, 32]));
    let high = (20_000 / (wide * channels)).max(10) + r.below(9) as u64;
    let batch = r.of(&[1, 1, 1, 2]);
    let plane = match r.below(4) {
        0 => plain(&mut t, r, [batch, high, wide, channels]),
        1 => convolved(&mut t, r, [batch, high, wide, channels]),
        2 => product(&mut t, r, [batch, high, wide, channels]),
        _ => repeated(&mut t, r, [batch, high, wide, channels]),
    };
    if r.below(8) == 0 {
        // read by others too, so that it stays whole
        t.result(&plane, Rule::Bits);
    }
    let sizes = &[1, 2, 3, 3, 3, 5, 7];
    let axes: Vec<Axis> = plane.dims[1..3].iter().map(|&n| narrowed(r, n, sizes, &[1, 1, 1, 2])).collect();
    let columns = r.of(&[1, 2, 3, 8, 9, 17]);
    let out = convolution(&mut t, r, &plane, &axes, columns);
    epilogue(&mut t, r, &out, Rule::Bits);
    t.finish()
}

/// An array by elements, which lie between 0 and 6.
fn plain(t: &mut Text, r: &mut Random, dims: [u64; 4]) -> Val {
    let x = t.param(F32, &dims, Fill::Quarters);
    let bias = t.constant(r, F32, &dims[3..]);
    let bias = t.broadcast(&bias, &dims, &[3]);
    let sum = t.binary("add", &x, &bias);
    clamped(t, &sum)
}

/// What a window makes, perhaps with holes in its operand.
fn convolved(t: &mut Text, r: &mut Random, [batch, high, wide, channels]: [u64; 4]) -> Val {
    let base = r.of(&[1, 1, 2, 3]);
    let axes: Vec<Axis> = [high, wide].iter().map(|&n| holed(r, n.div_ceil(base), base)).collect();
    let x = t.param(F32, &[batch, axes[0].input, axes[1].input, r.of(&[1, 3, 8, 17])], Fill::Quarters);
    let sum = convolution(t, r, &x, &axes, channels);
    clamped(t, &sum)
}

/// What a layer of few terms makes, as a plane.
fn product(t: &mut Text, r: &mut Random, dims: [u64; 4]) -> Val {
    let (terms, columns) = (1 + r.below(3) as u64, dims[1..].iter().product());
    let x = t.param(F32, &[dims[0], terms], Fill::Quarters);
    let w = t.constant(r, F32, &[terms, columns]);
    let shape = [dims[0], columns];
    let sum = format!("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x.name, w.name);
    let sum = t.op(F32, &shape, sum);
    let sum = if r.below(2) == 0 { clamped(t, &sum) } else { sum };
    t.op(F32, &dims, format_args!("reshape({})", sum.name))
}

fn holed(r: &mut Random, input: u64, base: u64) -> Axis {
    loop {
        let pads = (r.of(&[0, 1, 1, 2, -1]), r.of(&[0, 1, 1, 2, -1]));
        let (size, stride) = (r.of(&[2, 3, 3, 4, 5]), if base == 1 { r.of(&[1, 1, 2]) } else { 1 });
        if let Some(axis) = (Axis { input, size, stride, pads, base, dilation: 1, output: 0 }).fitted() {
            return axis;
        }
    }
}

/// A plane of twice the size.
fn repeated(t: &mut Text, r: &mut Random, [batch, high, wide, channels]: [u64; 4]) -> Val {
    let (high, wide) = (high.div_ceil(2), wide.div_ceil(2));
    let x = plain(t, r, [batch, high, wide, channels]);
    let apart = t.op(F32, &[batch, high, 1, wide, 1, channels], format_args!("reshape({})", x.name));
    let square = t.op(F32, &[batch, high, wide, channels], format_args!("reshape({})", apart.name));
    let all = t.broadcast(&square, &[batch, high, 2, wide, 2, channels], &[0, 1, 3, 5]);
    t.op(F32, &[batch, 2 * high, 2 * wide, channels], format_args!("reshape({})", all.name))
}

fn clamped(t: &mut Text, x: &Val) -> Val {
    let (low, high) = (t.splat(F32, &x.dims, "0"), t.splat(F32, &x.dims, "6"));
    t.like(x, format_args!("clamp({}, {}, {})", low.name, x.name, high.name))
}

fn convolution(t: &mut Text, r: &mut Random, x: &Val, axes: &[Axis], columns: u64) -> Val {
    let w = t.constant(r, F32, &[axes[0].size, axes[1].size, x.dims[3], columns]);
    let window = window_text(axes);
    t.op(
        F32,
        &[x.dims[0], axes[0].output, axes[1].output, columns],
        format_args!("convolution({}, {}), window={window}, dim_labels=b01f_01io->b01f", x.name, w.name),
    )
}
