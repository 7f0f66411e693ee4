//! Families whose results are narrower than what they are computed in, in rows of a power of two and one element more or less:
//! `narrowed_points`, `narrowed_rows`, `narrowed_sums`, `narrowed_products`. What is left of such rows behind whole vectors is
//! one lane, or all lanes but one.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, Val, list};
use tfaot::tensor::DType;

/// Sizes of which the last is a power of two and one more, one less, or half of it more.
fn dims(r: &mut Random, rank: usize) -> Vec<u64> {
    let power = 1u64 << r.below(9);
    let row = r.of(&[power + 1, power + 1, power + 1, (power - 1).max(1), power + power / 2, power]);
    let mut dims: Vec<u64> = (1..rank).map(|_| 1 + r.below(5) as u64).collect();
    dims.push(row);
    dims
}

/// A type of numbers, and one of fewer bits.
fn narrowed(r: &mut Random) -> (DType, DType) {
    use DType::{BF16, F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
    loop {
        let from = r.of(&[F32, F32, F32, F64, S32, S64, U32, U64, S16, U16, F16, BF16]);
        let to = r.of(&[S8, U8, S16, U16, BF16, F16, S32, U32, F32, DType::S4, DType::U4]);
        if to.bits() < from.bits() {
            return (from, to);
        }
    }
}

fn converted(t: &mut Text, x: &Val, to: DType) -> Val {
    t.op(to, &x.dims.clone(), format_args!("convert({})", x.name))
}

/// Conversions, comparisons, and floats as numbers of steps.
pub fn narrowed_points(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (from, to) = narrowed(r);
    let rank = 1 + r.below(3);
    let dims = dims(r, rank);
    let fill = if to.is_signed() || to.is_float() { Fill::Between(-7, 8) } else { Fill::Between(0, 8) };
    let x = t.param(from, &dims, fill);
    let y = t.param(from, &dims, fill);
    match r.below(5) {
        0 => {
            let direction = r.of(&["LT", "GE", "EQ", "NE"]);
            let z = t.op(DType::Pred, &dims, format_args!("compare({}, {}), direction={direction}", x.name, y.name));
            t.result(&z, Rule::Bits);
        }
        1 if from.is_float() && from.bits() >= 32 && !to.is_float() && to.bits() >= 8 => {
            // quantised: steps of a sixteenth, rounded, kept in the type's range
            let scale = t.splat(from, &dims, 16);
            let steps = t.binary("multiply", &x, &scale);
            let steps = t.unary("round-nearest-even", &steps);
            let (low, high) = if to.is_signed() { (-128, 127) } else { (0, 255) };
            let (low, high) = (t.splat(from, &dims, low), t.splat(from, &dims, high));
            let held = t.like(&x, format_args!("clamp({}, {}, {})", low.name, steps.name, high.name));
            let z = converted(&mut t, &held, to);
            t.result(&z, Rule::Bits);
        }
        2 => {
            // some elements of a row are replaced
            let old = t.param(to, &dims, fill);
            let (last, column) = (rank - 1, r.below(dims[rank - 1] as usize));
            let columns = t.op(DType::S32, &dims, format_args!("iota(), iota_dimension={last}"));
            let chosen = t.splat(DType::S32, &dims, column);
            let direction = r.of(&["EQ", "EQ", "GE", "LT"]);
            let cond = format!("compare({}, {}), direction={direction}", columns.name, chosen.name);
            let cond = t.op(DType::Pred, &dims, cond);
            let kept = t.binary("maximum", &old, &old);
            let new = converted(&mut t, &x, to);
            let z = t.op(to, &dims, format_args!("select({}, {}, {})", cond.name, new.name, kept.name));
            t.result(&z, Rule::Bits);
        }
        _ => {
            let z = t.binary(r.of(&["maximum", "minimum"]), &x, &y);
            let z = converted(&mut t, &z, to);
            t.result(&z, Rule::Bits);
            if r.below(2) == 0 {
                t.result(&x, Rule::Bits);
            }
        }
    }
    t.finish()
}

/// Softmax and norms of rows in f32, whose arguments and results are narrower, or in a narrow type all along.
pub fn narrowed_rows(r: &mut Random) -> Case {
    let mut t = Text::default();
    let to = r.of(&[DType::BF16, DType::F16, DType::BF16, DType::F16, DType::U8]);
    let whole = to.is_float() && r.below(2) == 0;
    let dtype = if whole { to } else { DType::F32 };
    let rank = 1 + r.below(3);
    let dims = dims(r, rank);
    let (last, n) = (rank - 1, dims[rank - 1]);
    let given = t.param(if to.is_float() { to } else { DType::F32 }, &dims, Fill::Quarters);
    let x = if given.dtype == dtype { given } else { converted(&mut t, &given, dtype) };
    let axes: Vec<usize> = (0..last).collect();
    let folded = |t: &mut Text, x: &Val, op: &str, init: &str| {
        let (start, comp) = (t.scalar(dtype, init), t.fold(op, dtype));
        let rhs = format!("reduce({}, {}), dimensions={{{last}}}, to_apply={comp}", x.name, start.name);
        let y = t.op(dtype, &dims[..last], rhs);
        t.broadcast(&y, &dims, &axes)
    };
    let y = if r.below(2) == 0 {
        let most = folded(&mut t, &x, "maximum", "-inf");
        let c = t.binary("subtract", &x, &most);
        let e = t.unary("exponential", &c);
        let sum = folded(&mut t, &e, "add", "0");
        t.binary("divide", &e, &sum)
    } else {
        let part = t.splat(dtype, &dims, 1.0 / n as f64);
        let total = folded(&mut t, &x, "add", "0");
        let mean = t.binary("multiply", &total, &part);
        let c = t.binary("subtract", &x, &mean);
        let squares = t.binary("multiply", &c, &c);
        let total = folded(&mut t, &squares, "add", "0");
        let variance = t.binary("multiply", &total, &part);
        let small = t.splat(dtype, &dims, 0.25);
        let held = t.binary("add", &variance, &small);
        let scale = t.unary("rsqrt", &held);
        t.binary("multiply", &c, &scale)
    };
    let y = if to.is_float() {
        y
    } else {
        let (scale, low, high) = (t.splat(dtype, &dims, 255), t.splat(dtype, &dims, 0), t.splat(dtype, &dims, 255));
        let steps = t.binary("multiply", &y, &scale);
        t.like(&x, format_args!("clamp({}, {}, {})", low.name, steps.name, high.name))
    };
    let z = if y.dtype == to { y } else { converted(&mut t, &y, to) };
    // steps may be cut one way or the other; a narrow type all along rounds each of a dozen values, of which few are above 4
    let slack = match (to.is_float(), whole) {
        (false, _) => 1.0,
        (true, true) => 0.125,
        (true, false) => 0.0,
    };
    t.result(&z, Rule::Close(slack));
    t.finish()
}

/// Sums along rows or columns, kept in a wider type than their result or in that of the terms.
pub fn narrowed_sums(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (wide, to) = r.of(&[
        (DType::F32, DType::BF16),
        (DType::F32, DType::F16),
        (DType::F64, DType::F32),
        (DType::S32, DType::S8),
        (DType::S32, DType::S16),
        (DType::S64, DType::S32),
        (DType::BF16, DType::BF16),
        (DType::F16, DType::F16),
        (DType::Pred, DType::Pred),
    ]);
    let rank = 1 + r.below(3);
    let dims = dims(r, rank);
    let axis = r.below(rank);
    let kept: Vec<u64> = (0..rank).filter(|&a| a != axis).map(|a| dims[a]).collect();
    let given = if wide.is_float() && r.below(2) == 0 { to } else { wide };
    let x = t.param(given, &dims, Fill::Quarters);
    let x = if given == wide { x } else { converted(&mut t, &x, wide) };
    let (op, init) =
        if wide == DType::Pred { ("or", "false") } else { r.of(&[("add", "0"), ("add", "0"), ("maximum", "0")]) };
    let (start, comp) = (t.scalar(wide, init), t.fold(op, wide));
    let rhs = format!("reduce({}, {}), dimensions={{{axis}}}, to_apply={comp}", x.name, start.name);
    let y = t.op(wide, &kept, rhs);
    let z = if wide == to { y } else { converted(&mut t, &y, to) };
    t.result(&z, if wide == to { Rule::Close(0.0) } else { Rule::Value });
    t.finish()
}

/// Products whose epilogue narrows.
pub fn narrowed_products(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (given, wide, to) = r.of(&[
        (DType::F32, DType::F32, DType::BF16),
        (DType::F32, DType::F32, DType::F16),
        (DType::F32, DType::F32, DType::S8),
        (DType::BF16, DType::F32, DType::BF16),
        (DType::F16, DType::F32, DType::F16),
        (DType::S8, DType::S32, DType::S8),
        (DType::S8, DType::S32, DType::S16),
        (DType::BF16, DType::BF16, DType::BF16),
    ]);
    let (rows, terms) = (r.of(&[1, 2, 3, 5, 8, 17, 33]), r.of(&[1, 2, 3, 7, 16, 17, 33, 65]));
    let columns = dims(r, 1)[0];
    let part = |t: &mut Text, dims: [u64; 2]| {
        let x = t.param(given, &dims, Fill::Quarters);
        if given == wide { x } else { converted(t, &x, wide) }
    };
    let (x, w) = (part(&mut t, [rows, terms]), part(&mut t, [terms, columns]));
    let rhs = format!("dot({}, {}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", x.name, w.name);
    let mut y = t.op(wide, &[rows, columns], rhs);
    if r.below(2) == 0 {
        let bias = t.param(wide, &[columns], Fill::Quarters);
        let bias = t.broadcast(&bias, &[rows, columns], &[1]);
        y = t.binary("add", &y, &bias);
    }
    if r.below(2) == 0 {
        let zero = t.splat(wide, &[rows, columns], 0);
        y = t.binary("maximum", &y, &zero);
    }
    if wide.is_float() && !to.is_float() {
        let bounds = [-128, 127].map(|bound| t.splat(wide, &[rows, columns], bound));
        let names = list([&bounds[0].name, &y.name, &bounds[1].name]);
        y = t.like(&y.clone(), format_args!("clamp({names})"));
    }
    let z = if wide == to { y } else { converted(&mut t, &y, to) };
    t.result(&z, if wide == to { Rule::Close(0.0) } else { Rule::Value });
    t.finish()
}
