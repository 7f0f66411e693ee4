//! Families that compare: `sort`, `top_k`.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, list, shape, sizes};
use tfaot::tensor::DType;

/// The computation that says which of two elements goes first; `carried` are the types of what only moves along.
fn comparator(t: &mut Text, r: &mut Random, key: DType, carried: &[DType]) -> String {
    let d = key.name();
    let mut text = format!("  a0 = {d}[] parameter(0)\n  b0 = {d}[] parameter(1)\n");
    for (i, c) in carried.iter().enumerate() {
        for (j, side) in ["a", "b"].iter().enumerate() {
            text += &format!("  {side}{} = {}[] parameter({})\n", i + 1, c.name(), 2 * (i + 1) + j);
        }
    }
    let direction = r.of(&["LT", "GT", "LT", "GE"]);
    // a NaN is before or behind all others only in the total order
    let order = if key.is_float() && direction != "GE" { ", type=TOTALORDER" } else { "" };
    let direction = if direction == "GE" { "GT" } else { direction };
    text += &format!("  ROOT first = pred[] compare(a0, b0), direction={direction}{order}\n");
    t.comp("order", format!("order {{\n{text}}}\n"))
}

/// Sorts of any axis, with what is carried along.
pub fn sort(r: &mut Random) -> Case {
    let mut t = Text::default();
    let rank = 1 + r.below(3);
    let dims = sizes(r, rank, 3000);
    let axis = r.below(rank);
    let key = r.of(&[
        DType::F32,
        DType::F32,
        DType::F64,
        DType::S32,
        DType::S64,
        DType::U8,
        DType::S8,
        DType::U32,
        DType::BF16,
    ]);
    let corners = r.below(2) == 0;
    let carried: Vec<DType> = (0..r.below(3)).map(|_| r.of(&[DType::S32, DType::F32, DType::S64, DType::U8])).collect();
    let comp = comparator(&mut t, r, key, &carried);
    let total = comp_is_total(&t, key);
    let fill = match (corners, total) {
        (true, true) => Fill::Corners,
        (true, false) => Fill::Ordered,
        (false, _) => Fill::Quarters,
    };
    let mut operands = vec![t.param(key, &dims, fill)];
    for &c in &carried {
        let index = t.op(DType::S32, &dims, format_args!("iota(), iota_dimension={axis}"));
        operands.push(if c == DType::S32 { index } else { t.param(c, &dims, Fill::Plain) });
    }
    let names = list(operands.iter().map(|o| o.name.as_str()));
    let rhs = format!("sort({names}), dimensions={{{axis}}}, is_stable=true, to_apply={comp}");
    if operands.len() == 1 {
        let y = t.op(key, &dims, rhs);
        t.result(&y, Rule::Bits);
        return t.finish();
    }
    let shapes = list(operands.iter().map(|o| shape(o.dtype, &dims)));
    let all = t.line(&format!("({shapes})"), rhs);
    for (i, o) in operands.iter().enumerate() {
        let y = t.like(o, format_args!("get-tuple-element({all}), index={i}"));
        t.result(&y, Rule::Bits);
    }
    t.finish()
}

/// Whether every two values of the keys are in an order: integers are, floats by the total order only.
fn comp_is_total(t: &Text, key: DType) -> bool {
    !key.is_float() || t.names("order").contains("TOTALORDER")
}

/// The largest or smallest of the last axis, in the total order or by comparison as TensorFlow's kernel goes, of keys whose signs are
/// changed on the way.
pub fn top_k(r: &mut Random) -> Case {
    let mut t = Text::default();
    let rank = 1 + r.below(3);
    let mut dims = sizes(r, rank, 4000);
    let last = rank - 1;
    dims[last] = dims[last].max(1);
    let n = dims[last];
    let k = r.of(&[1, 1, 2, 3, 5, 8, 16, 17, n / 2, n.saturating_sub(1), n]).min(n);
    let dtype = r.of(&[
        DType::F32,
        DType::F32,
        DType::F64,
        DType::S32,
        DType::S8,
        DType::U8,
        DType::S64,
        DType::BF16,
        DType::F16,
    ]);
    let fill = r.of(&[Fill::Plain, Fill::Quarters, Fill::Corners, Fill::Corners]);
    let mut x = t.param(dtype, &dims, fill);
    let by_comparison = dtype.is_float() && r.below(2) == 0;
    if r.below(2) == 0 {
        x = t.unary("negate", &x);
    }
    // arithmetic may change the sign of a NaN, which the total order sees
    if by_comparison && r.below(2) == 0 {
        let zero = t.scalar(dtype, 0);
        let zero = t.broadcast(&zero, &dims, &[]);
        x = t.binary("add", &x, &zero);
    }
    let mut out = dims.clone();
    out[last] = k;
    let largest = by_comparison || r.below(3) > 0;
    let order = if by_comparison { ", frontend_attributes={top_k_order=\"comparison\"}" } else { "" };
    let both = t.line(
        &format!("({}, {})", shape(dtype, &out), shape(DType::S32, &out)),
        format_args!("topk({}), k={k}, largest={largest}{order}", x.name),
    );
    for (i, dtype) in [dtype, DType::S32].into_iter().enumerate() {
        let y = t.op(dtype, &out, format_args!("get-tuple-element({both}), index={i}"));
        t.result(&y, Rule::Bits);
    }
    t.finish()
}
