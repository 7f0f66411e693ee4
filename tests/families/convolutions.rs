//! Convolutions: `convolution` of one to three dimensions with strides, dilations, paddings and groups, `depthwise`,
//! `transposed`, `winograd` and `byte_winograd`: 3x3 of stride 1 with many channels, `winograd1d`: other windows with many, `chain`: a depthwise one after another, and
//! `separable`: a 1x1 one after a depthwise one; `byte_convolutions` and `byte_depthwise`: of bytes.
use super::common::random::Random;
use super::folds::{Axis, window_text};
use super::products::{epilogue, fill_of};
use super::text::{Case, Fill, Rule, Text, Val, some, sum_bound};
use tfaot::tensor::DType;

/// A convolution that is being chosen.
struct Convolution {
    /// The types of the operand, the window and the result.
    types: [DType; 3],
    batch: u64,
    axes: Vec<Axis>,
    groups: u64,
    /// Channels of a group, in and out.
    per_in: u64,
    per_out: u64,
}

const CHANNELS: &[u64] = &[1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65];

fn axis(r: &mut Random, most: u64, base: &[u64]) -> Axis {
    loop {
        let pads = (r.of(&[0, 0, 1, 2, -1]), r.of(&[0, 0, 1, 2, 3, -1]));
        let axis = Axis {
            input: some(r, most),
            size: r.of(&[1, 1, 2, 3, 3, 3, 4, 5, 7]),
            stride: r.of(&[1, 1, 1, 2, 2, 3]),
            pads,
            base: r.of(base),
            dilation: r.of(&[1, 1, 1, 1, 2, 3]),
            output: 0,
        };
        if let Some(axis) = axis.fitted() {
            return axis;
        }
    }
}

fn axes(r: &mut Random, most: [u64; 3], base: &[u64]) -> Vec<Axis> {
    let rank = r.of(&[1usize, 1, 2, 2, 2, 2, 3]);
    (0..rank).map(|_| axis(r, most[rank - 1], base)).collect()
}

pub fn convolution(r: &mut Random) -> Case {
    let axes = axes(r, [100, 15, 7], &[1, 1, 1, 1, 1, 2]);
    let groups = r.of(&[1, 1, 1, 1, 2, 3, 4]);
    let few = if groups > 1 { 15 } else { CHANNELS.len() };
    let dtype =
        r.of(&[DType::F32, DType::F32, DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16, DType::S32]);
    let (per_in, per_out) = (r.of(&CHANNELS[..few]), r.of(&CHANNELS[..few]));
    let batch = some(r, 3);
    write(r, Convolution { types: [dtype; 3], batch, axes, groups, per_in, per_out })
}

pub fn depthwise(r: &mut Random) -> Case {
    let axes = axes(r, [150, 20, 8], &[1, 1, 1, 1, 1, 1, 2]);
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64]);
    let (groups, per_out) = (r.of(&CHANNELS[2..]), r.of(&[1, 1, 1, 1, 2, 3, 4, 8]));
    let batch = some(r, 2);
    write(r, Convolution { types: [dtype; 3], batch, axes, groups, per_in: 1, per_out })
}

pub fn transposed(r: &mut Random) -> Case {
    let axes = axes(r, [60, 10, 5], &[2, 2, 2, 3, 4, 1]);
    let groups = r.of(&[1, 1, 1, 2]);
    let (per_in, per_out) = (r.of(&CHANNELS[..17]), r.of(&CHANNELS[..17]));
    let batch = some(r, 2);
    write(r, Convolution { types: [DType::F32; 3], batch, axes, groups, per_in, per_out })
}

pub fn winograd(r: &mut Random) -> Case {
    square(r, [DType::F32; 3], [&[16, 24, 32, 33, 48], &[16, 24, 32, 31, 48]])
}

/// What Winograd's method may make of bytes: most by weights with a sign, and sums of 32 bits.
pub fn byte_winograd(r: &mut Random) -> Case {
    let types = [r.of(&[DType::S8, DType::U8]), r.of(&[DType::S8, DType::S8, DType::S8, DType::U8]), DType::S32];
    square(r, types, [&[16, 32, 48, 64, 24], &[16, 24, 32, 40, 28]])
}

/// A window of 3x3 and stride 1 over many channels, of so many that are read and made.
fn square(r: &mut Random, types: [DType; 3], channels: [&[u64]; 2]) -> Case {
    // planes so large that they are done strip by strip
    let large = r.below(15) == 0;
    let (least, most) = if large { (36, 34) } else { (3, 20) };
    let axes = (0..2)
        .map(|_| {
            loop {
                let pads = (r.of(&[0, 1, 1, 2]), r.of(&[0, 1, 1, 2]));
                let input = least + r.below(most) as u64;
                let axis = Axis { input, size: 3, stride: 1, pads, base: 1, dilation: 1, output: 0 };
                if let Some(axis) = axis.fitted() {
                    break axis;
                }
            }
        })
        .collect();
    let most = if large { 3 } else { 5 };
    let [per_in, per_out] = channels.map(|all| r.of(&all[..most]));
    let batch = some(r, 2);
    write(r, Convolution { types, batch, axes, groups: 1, per_in, per_out })
}

/// What Winograd's method may make along one axis: long, dilated and strided windows with many channels.
pub fn winograd1d(r: &mut Random) -> Case {
    let rank = r.of(&[1usize, 1, 1, 2, 2, 3]);
    let along = r.below(rank);
    let axes = (0..rank)
        .map(|i| {
            loop {
                let (size, most) = match (i == along, rank) {
                    (true, 1) => (r.of(&[2, 3, 4, 5, 6, 7, 8, 9, 11, 16]), 60),
                    (true, _) => (r.of(&[2, 3, 4, 5, 7]), 16),
                    (false, 2) => (r.of(&[1, 1, 2, 3, 5]), 8),
                    (false, _) => (r.of(&[1, 2, 3]), 4),
                };
                let pads = (r.of(&[0, 0, 1, 3]), r.of(&[0, 0, 1, 3, -1]));
                let (stride, dilation) = if i == along { (1, r.of(&[1, 1, 1, 2, 3])) } else { (r.of(&[1, 1, 2]), 1) };
                let axis = Axis { input: 1 + r.below(most) as u64, size, stride, pads, base: 1, dilation, output: 0 };
                if let Some(axis) = axis.fitted() {
                    break axis;
                }
            }
        })
        .collect();
    let (per_in, per_out) = (r.of(&[16, 32, 48]), r.of(&[16, 16, 32, 48]));
    let batch = some(r, 2);
    write(r, Convolution { types: [DType::F32; 3], batch, axes, groups: 1, per_in, per_out })
}

/// Bytes with and without a sign on either side, and sums of 32 bits.
pub fn byte_convolutions(r: &mut Random) -> Case {
    let axes = axes(r, [60, 12, 6], &[1, 1, 1, 1, 2]);
    let groups = r.of(&[1, 1, 1, 2, 5]);
    let (per_in, per_out) = (r.of(&[1, 3, 4, 4, 8, 16, 20]), r.of(&CHANNELS[..20]));
    let bytes = [DType::S8, DType::U8];
    let types = [r.of(&bytes), r.of(&bytes), DType::S32];
    let batch = some(r, 2);
    write(r, Convolution { types, batch, axes, groups, per_in, per_out })
}

/// Depthwise windows of bytes, most of them without a sign by taps with one, and sums of 32 bits.
pub fn byte_depthwise(r: &mut Random) -> Case {
    let axes = axes(r, [100, 20, 6], &[1, 1, 1, 1, 1, 1, 2]);
    let (groups, per_out) = (r.of(&CHANNELS[2..]), r.of(&[1, 1, 1, 1, 2, 3]));
    let types = [r.of(&[DType::U8, DType::U8, DType::S8]), r.of(&[DType::S8, DType::S8, DType::U8]), DType::S32];
    let batch = some(r, 2);
    write(r, Convolution { types, batch, axes, groups, per_in: 1, per_out })
}

/// The convolution with an epilogue, perhaps joined with another value, perhaps read by a padded convolution.
fn write(r: &mut Random, c: Convolution) -> Case {
    let mut t = Text::default();
    let [input_type, kernel_type, dtype] = c.types;
    let rank = c.axes.len();
    let (cin, cout) = (c.per_in * c.groups, c.per_out * c.groups);
    let of = |f: &dyn Fn(&Axis) -> u64| c.axes.iter().map(f).collect::<Vec<u64>>();
    let x = [vec![c.batch], of(&|a| a.input), vec![cin]].concat();
    let w = [of(&|a| a.size), vec![c.per_in, cout]].concat();
    let y = [vec![c.batch], of(&|a| a.output), vec![cout]].concat();
    let digits = &"012"[..rank];
    let terms = c.per_in * c.axes.iter().map(|a| a.size).product::<u64>();
    let many = |n: u64| n >= 16 && n.is_multiple_of(8);
    let tiled = c.groups == 1 && many(c.per_in) && many(c.per_out) && c.axes.iter().any(is_tiled);
    let floats = dtype.is_float();
    // Winograd's method rounds where direct sums of quarters don't.
    let exact = !floats || dtype.bits() >= 32 && !tiled && r.below(3) > 0;
    let rule = Rule::new(exact, if floats { sum_bound(dtype, terms, 4.0) } else { 0.0 });
    let fill = if exact || dtype.bits() < 32 { Fill::Quarters } else { Fill::Plain };
    let input = t.param(input_type, &x, fill_of(input_type, fill));
    let input = if r.below(6) == 0 { t.unary("negate", &input) } else { input };
    let small = w.iter().product::<u64>() < 30_000;
    let weights = if small && r.below(4) > 0 {
        t.constant(r, kernel_type, &w)
    } else {
        t.param(kernel_type, &w, fill_of(kernel_type, fill))
    };
    // channels last as TensorFlow has them, or first
    let (input, from) = if r.below(5) == 0 {
        let order: Vec<usize> = [vec![0, rank + 1], (1..=rank).collect()].concat();
        let dims: Vec<u64> = order.iter().map(|&a| x[a]).collect();
        let list = super::text::list(order);
        (
            t.op(input_type, &dims, format_args!("transpose({}), dimensions={{{list}}}", input.name)),
            format!("bf{digits}"),
        )
    } else {
        (input, format!("b{digits}f"))
    };
    let out = t.op(
        dtype,
        &y,
        format_args!(
            "convolution({}, {}), window={}, dim_labels={from}_{digits}io->b{digits}f, feature_group_count={}",
            input.name,
            weights.name,
            window_text(&c.axes),
            c.groups
        ),
    );
    if dtype.is_float() && dtype.bits() >= 32 && r.below(4) == 0 {
        joined(&mut t, r, &out, rule);
    } else {
        epilogue(&mut t, r, &out, rule);
    }
    if tiled && r.below(2) == 0 {
        // beside constants as large as they grow, weights are transformed at compile time
        let other = t.constant(r, DType::F32, &[8_000]);
        t.result(&other, Rule::Value);
    }
    t.finish()
}

/// Whether Winograd's method may go along an axis.
fn is_tiled(axis: &Axis) -> bool {
    axis.size > 1 && axis.stride == 1 && axis.base == 1
}

/// A relu, concatenated with what else reads the value, and a padded window over all.
fn joined(t: &mut Text, r: &mut Random, out: &Val, rule: Rule) {
    let rank = out.rank() - 2;
    let zero = t.splat(out.dtype, &out.dims, "0");
    let positive = t.binary("maximum", out, &zero);
    let other = t.unary("negate", out);
    let mut dims = out.dims.clone();
    dims[rank + 1] *= 2;
    let both = t.op(
        out.dtype,
        &dims,
        format_args!("concatenate({}, {}), dimensions={{{}}}", positive.name, other.name, rank + 1),
    );
    t.result(&both, rule);
    // a reader whose window is padded, so that its operand has a margin
    let last = r.of(&[1, 8, 20]);
    let w = [vec![3; rank], vec![dims[rank + 1], last]].concat();
    if w.iter().product::<u64>() > 30_000 {
        return;
    }
    let weights = t.constant(r, out.dtype, &w);
    let mut z = dims.clone();
    z[rank + 1] = last;
    let digits = &"012"[..rank];
    let of = |s: &str| vec![s; rank].join("x");
    let read = t.op(
        out.dtype,
        &z,
        format_args!(
            "convolution({}, {}), window={{size={} pad={}}}, dim_labels=b{digits}f_{digits}io->b{digits}f",
            both.name,
            weights.name,
            of("3"),
            of("1_1")
        ),
    );
    let terms = w[..=rank].iter().product::<u64>();
    // what the first was off by is multiplied by at most two and added up; the second's own terms are larger
    let largest = 2.0 * 4.0 * 300.0;
    let slack = match rule {
        Rule::Bits | Rule::Value => 0.0,
        Rule::Close(first) => first * 2.0 * terms as f64,
    };
    t.result(&read, Rule::Close(slack + sum_bound(out.dtype, terms, largest)));
}

/// A convolution, and a depthwise one that reads what it makes, so much that it would not stay near, perhaps before another.
pub fn chain(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = DType::F32;
    let (inputs, middle) = (r.of(&[1, 3, 4, 7, 8, 16]), r.of(&[12, 16, 24, 31, 32, 40, 48, 65, 96, 130, 144]));
    let batch = r.of(&[1, 1, 1, 2]);
    let wide = 1 + r.below(90) as u64;
    let high = (180_000 / (wide * middle * batch)).max(1) + r.below(4) as u64;
    // what Winograd's method may make is no chain, and not exact
    let first = loop {
        let sizes: &[u64] = &[1, 1, 1, 3];
        let axes: Vec<Axis> = [high, wide].iter().map(|&n| narrowed(r, n, sizes, &[1, 1, 1, 1, 1, 2])).collect();
        if inputs < 16 || !axes.iter().any(is_tiled) {
            break axes;
        }
    };
    let second: Vec<Axis> =
        first.iter().map(|a| narrowed(r, a.output, &[1, 2, 3, 3, 3, 3, 5, 5, 7], &[1, 1, 1, 2, 2, 3])).collect();
    let extents = |axes: &[Axis], of: fn(&Axis) -> u64| axes.iter().map(of).collect::<Vec<u64>>();
    let dims = |spatial: Vec<u64>, channels: u64| [vec![batch], spatial, vec![channels]].concat();
    let input = t.param(dtype, &dims(extents(&first, |a| a.input), inputs), Fill::Quarters);
    let mut last = input;
    let mut rule = Rule::Bits;
    for (axes, groups, channels) in [(&first, 1, middle), (&second, middle, middle)] {
        let per_in = last.dims[3] / groups;
        let weights = t.constant(r, dtype, &[extents(axes, |a| a.size), vec![per_in, channels]].concat());
        let y = dims(extents(axes, |a| a.output), channels);
        let window = window_text(axes);
        last = t.op(
            dtype,
            &y,
            format_args!(
                "convolution({}, {}), window={window}, dim_labels=b01f_01io->b01f, feature_group_count={groups}",
                last.name, weights.name
            ),
        );
        if r.below(2) == 0 {
            let bias = t.constant(r, dtype, &[channels]);
            let bias = t.broadcast(&bias, &y, &[3]);
            last = t.binary("add", &last, &bias);
        }
        match r.below(6) {
            0 | 1 => {
                let (low, high) = (t.splat(dtype, &y, "0"), t.splat(dtype, &y, "6"));
                last = t.op(dtype, &y, format_args!("clamp({}, {}, {})", low.name, last.name, high.name));
            }
            2 => {
                let small = t.splat(dtype, &y, "0.125");
                let scaled = t.binary("multiply", &last, &small);
                let gate = t.unary("logistic", &scaled);
                last = t.binary("multiply", &scaled, &gate);
                // what is off by some ulp goes through at most 49 products with factors of at most 2
                rule = Rule::Close(1e-4);
            }
            3 if groups == 1 => {
                let other = t.param(dtype, &y, Fill::Quarters);
                last = t.binary("add", &last, &other);
            }
            // read by others too, so that it needs memory
            4 if groups == 1 && r.below(4) == 0 => t.result(&last, rule),
            _ => {}
        }
    }
    t.result(&last, rule);
    t.finish()
}

/// A depthwise convolution, and a 1x1 one that reads what it makes, so much that it would not stay near, with what the window
/// reads perhaps added to it.
pub fn separable(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = DType::F32;
    let middle = r.of(&[12, 16, 24, 31, 32, 40, 48, 65, 96, 128, 144]);
    let columns = r.of(&[middle, middle, middle, 8, 9, 9, 16, 17, 24, 32, 48, 130]);
    let batch = r.of(&[1, 1, 1, 2]);
    let wide = 20 + r.below(110) as u64;
    let high = (170_000 / (wide * middle * batch)).max(1) + r.below(4) as u64;
    let axes: Vec<Axis> =
        [high, wide].iter().map(|&n| narrowed(r, n, &[1, 2, 3, 3, 3, 5, 5, 7], &[1, 1, 1, 1, 1, 1, 1, 1, 2])).collect();
    let extents = |of: fn(&Axis) -> u64| axes.iter().map(of).collect::<Vec<u64>>();
    let dims = |spatial: Vec<u64>, channels: u64| [vec![batch], spatial, vec![channels]].concat();
    let input = t.param(dtype, &dims(extents(|a| a.input), middle), Fill::Quarters);
    let input = if r.below(2) == 0 { t.unary("negate", &input) } else { input };
    let weights = t.constant(r, dtype, &[extents(|a| a.size), vec![1, middle]].concat());
    let (shape, window) = (dims(extents(|a| a.output), middle), window_text(&axes));
    let mut near = t.op(
        dtype,
        &shape,
        format_args!(
            "convolution({}, {}), window={window}, dim_labels=b01f_01io->b01f, feature_group_count={middle}",
            input.name, weights.name
        ),
    );
    if r.below(2) == 0 {
        let bias = t.constant(r, dtype, &[middle]);
        let bias = t.broadcast(&bias, &shape, &[3]);
        near = t.binary("add", &near, &bias);
    }
    if r.below(2) == 0 {
        let (low, high) = (t.splat(dtype, &shape, "0"), t.splat(dtype, &shape, "6"));
        near = t.op(dtype, &shape, format_args!("clamp({}, {}, {})", low.name, near.name, high.name));
    }
    if r.below(8) == 0 {
        // read by others too, so that it needs memory
        t.result(&near, Rule::Bits);
    }
    let weights = t.constant(r, dtype, &[1, 1, middle, columns]);
    let shape = dims(extents(|a| a.output), columns);
    let mut out = t.op(
        dtype,
        &shape,
        format_args!("convolution({}, {}), window={{size=1x1}}, dim_labels=b01f_01io->b01f", near.name, weights.name),
    );
    if shape == input.dims && r.below(4) > 0 {
        out = t.binary("add", &out, &input);
    }
    epilogue(&mut t, r, &out, Rule::Bits);
    t.finish()
}

/// An axis of `input` elements with a window of one of these sizes and strides.
pub fn narrowed(r: &mut Random, input: u64, sizes: &[u64], strides: &[u64]) -> Axis {
    loop {
        let size = r.of(sizes);
        let pads = (r.of(&[0, 0, 1, 1, 2]), r.of(&[0, 0, 1, 1, 2]));
        let dilation = r.of(&[1, 1, 1, 1, 1, 2]);
        let axis = Axis { input, size, stride: r.of(strides), pads, base: 1, dilation, output: 0 };
        if let Some(axis) = axis.fitted() {
            return axis;
        }
    }
}
