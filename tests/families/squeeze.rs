//! Squeeze-excite: a depthwise convolution, perhaps behind a product that its kernel makes, the sums of its planes, factors that
//! come of them, and a 1x1 convolution of what they scale.
use super::common::random::Random;
use super::convolutions::narrowed;
use super::folds::{Axis, window_text};
use super::products::epilogue;
use super::text::{Case, Fill, Rule, Text, Val, list};
use tfaot::tensor::DType;

const TYPE: DType = DType::F32;

pub fn squeeze(r: &mut Random) -> Case {
    let mut t = Text::default();
    let middle = r.of(&[8, 12, 16, 24, 31, 32, 40, 48, 65, 96, 128, 144, 240]);
    let columns = r.of(&[4, 8, 9, 16, 17, 24, 32, 40, 80]);
    let batch = r.of(&[1, 1, 1, 1, 2]);
    let behind = r.below(2) == 0;
    let elements = if behind { 180_000 } else { r.of(&[5_000, 20_000, 100_000]) };
    let wide = 3 + r.below(60) as u64;
    let high = (elements / (wide * middle * batch)).max(1) + r.below(4) as u64;
    let axes: Vec<Axis> =
        [high, wide].iter().map(|&n| narrowed(r, n, &[1, 2, 3, 3, 3, 5, 5, 7], &[1, 1, 1, 2, 2])).collect();
    let inputs = if behind { r.of(&[3, 4, 8]) } else { middle };
    let mut x = t.param(TYPE, &[batch, high, wide, inputs], Fill::Quarters);
    if behind {
        let weights = t.constant(r, TYPE, &[1, 1, inputs, middle]);
        x = product(&mut t, &x, &weights);
        let (low, most) = (t.splat(TYPE, &x.dims, "0"), t.splat(TYPE, &x.dims, "6"));
        x = t.like(&x, format_args!("clamp({}, {}, {})", low.name, x.name, most.name));
    }
    let weights = t.constant(r, TYPE, &[axes[0].size, axes[1].size, 1, middle]);
    let window = window_text(&axes);
    let mut plane = t.op(
        TYPE,
        &[batch, axes[0].output, axes[1].output, middle],
        format_args!(
            "convolution({}, {}), window={window}, dim_labels=b01f_01io->b01f, feature_group_count={middle}",
            x.name, weights.name
        ),
    );
    // sums of more than so many 64ths would be rounded
    if r.below(2) == 0 || high * wide * batch > 8_192 {
        let (low, most) = (t.splat(TYPE, &plane.dims, "-2"), t.splat(TYPE, &plane.dims, "6"));
        plane = t.like(&plane, format_args!("clamp({}, {}, {})", low.name, plane.name, most.name));
    }
    let factors = factors(&mut t, r, &plane);
    let scaled =
        if r.below(2) == 0 { t.binary("multiply", &plane, &factors) } else { t.binary("multiply", &factors, &plane) };
    if r.below(8) == 0 {
        t.result(&scaled, Rule::Value);
    }
    let weights = if r.below(6) == 0 {
        t.param(TYPE, &[1, 1, middle, columns], Fill::Quarters)
    } else {
        t.constant(r, TYPE, &[1, 1, middle, columns])
    };
    let out = product(&mut t, &scaled, &weights);
    epilogue(&mut t, r, &out, Rule::Value);
    t.finish()
}

/// The 1x1 convolution of `x` with `weights`.
fn product(t: &mut Text, x: &Val, weights: &Val) -> Val {
    let dims = [&x.dims[..3], &weights.dims[3..]].concat();
    t.op(
        TYPE,
        &dims,
        format_args!("convolution({}, {}), window={{size=1x1}}, dim_labels=b01f_01io->b01f", x.name, weights.name),
    )
}

/// A factor a channel, which come of sums of the planes and are as exact, and as large as `plane`.
fn factors(t: &mut Text, r: &mut Random, plane: &Val) -> Val {
    let (comp, zero) = (t.fold("add", TYPE), t.scalar(TYPE, "0"));
    let axes: &[usize] = if plane.dims[0] > 1 && r.below(2) == 0 { &[0, 1, 2] } else { &[1, 2] };
    let kept = if axes.len() == 3 { vec![plane.dims[3]] } else { vec![plane.dims[0], plane.dims[3]] };
    let sums = t.op(
        TYPE,
        &kept,
        format_args!("reduce({}, {}), dimensions={{{}}}, to_apply={comp}", plane.name, zero.name, list(axes)),
    );
    if r.below(4) == 0 {
        t.result(&sums, Rule::Value);
    }
    let signs = t.unary("sign", &sums);
    let half = t.splat(TYPE, &signs.dims, "0.5");
    let signs = t.binary("subtract", &signs, &half);
    let places: &[usize] = if kept.len() == 1 { &[3] } else { &[0, 3] };
    if kept.len() == 2 && kept[0] == 1 {
        let flat = t.op(TYPE, &kept[1..], format_args!("reshape({})", signs.name));
        return t.broadcast(&flat, &plane.dims, &[3]);
    }
    t.broadcast(&signs, &plane.dims, places)
}
