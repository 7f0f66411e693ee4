//! Families that work point by point or move elements: `pointwise`, `short_rows`, `transform`, `transpose`.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, Val, list, sizes, some};
use tfaot::tensor::{DType, DTypeClass};

/// The element types, the common ones more often.
pub fn any_type(r: &mut Random) -> DType {
    use DType::*;
    match r.below(3) {
        0 => F32,
        _ => r.of(&[F32, F64, F16, BF16, S8, S16, S32, S64, U8, U16, U32, U64, Pred, C64, C128]),
    }
}

/// A value with whether its bits are known whatever the engine.
#[derive(Clone)]
struct Known {
    val: Val,
    exact: bool,
}

const FLOAT_EXACT: &[&str] =
    &["negate", "abs", "floor", "ceil", "round-nearest-even", "round-nearest-afz", "sign", "sqrt"];
const FLOAT_NEAR: &[&str] = &[
    "exponential",
    "exponential-minus-one",
    "log",
    "log-plus-one",
    "logistic",
    "rsqrt",
    "cbrt",
    "tanh",
    "sine",
    "cosine",
    "tan",
    "erf",
];
const INTEGER: &[&str] = &["negate", "abs", "sign", "not", "popcnt", "count-leading-zeros"];
const INTEGERS: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "maximum",
    "minimum",
    "power",
    "and",
    "or",
    "xor",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
];

/// Rows a little longer than vectors, of what takes long to compute from operands that not all rows or columns have.
pub fn short_rows(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16]);
    let columns = r.of(&[3, 5, 9, 11, 17, 17, 18, 19, 22, 33, 34, 44, 49]);
    let rows = match r.below(3) {
        0 => vec![r.of(&[16, 17, 32, 48, 64, 65, 8])],
        1 => vec![1 + r.below(4) as u64, r.of(&[16, 17, 31, 32, 40])],
        _ => vec![1 + r.below(4) as u64, r.of(&[15, 16, 33]), 1 + r.below(20) as u64],
    };
    let dims = [&rows[..], &[columns]].concat();
    let mut all = t.param(dtype, &dims, Fill::Quarters);
    for _ in 0..1 + r.below(3) {
        let axes: Vec<usize> = (0..dims.len()).filter(|_| r.below(2) == 0).collect();
        let of: Vec<u64> = axes.iter().map(|&a| dims[a]).collect();
        let part = t.param(dtype, &of, Fill::Quarters);
        let part = t.broadcast(&part, &dims, &axes);
        all = t.binary(r.of(&["subtract", "add", "maximum"]), &all, &part);
    }
    let far = t.unary(r.of(&["exponential", "logistic", "tanh", "erf"]), &all);
    t.result(&far, Rule::Close(0.0));
    t.finish()
}

/// Chains of scalar ops of every type, with broadcasts, selections and conversions between them.
pub fn pointwise(r: &mut Random) -> Case {
    let mut t = Text::default();
    let rank = r.below(4);
    let dims = sizes(r, rank, 3000);
    let dtype = any_type(r);
    // engines may differ in where complex functions of infinities are NaN
    let corners = if dtype.is_complex() { Fill::Plain } else { Fill::Corners };
    let fill = r.of(&[Fill::Plain, Fill::Quarters, corners, corners]);
    let mut all: Vec<Known> = Vec::new();
    for _ in 0..2 + r.below(2) {
        let val = operand(&mut t, r, dtype, &dims, fill);
        all.push(Known { val, exact: true });
    }
    for _ in 0..1 + r.below(9) {
        if let Some(made) = step(&mut t, r, &all, &dims) {
            all.push(made);
        }
    }
    for known in all.iter().rev().take(3) {
        t.result(&known.val, Rule::new(known.exact, 0.0));
    }
    t.finish()
}

/// A parameter of these sizes, or one of fewer that is broadcast.
fn operand(t: &mut Text, r: &mut Random, dtype: DType, dims: &[u64], fill: Fill) -> Val {
    let axes: Vec<usize> = match r.below(3) {
        0 => (0..dims.len()).filter(|_| r.below(2) == 0).collect(),
        _ => return t.param(dtype, dims, fill),
    };
    let own: Vec<u64> = axes.iter().map(|&a| dims[a]).collect();
    let x = if r.below(2) == 0 { t.param(dtype, &own, fill) } else { t.constant(r, dtype, &own) };
    t.broadcast(&x, dims, &axes)
}

fn step(t: &mut Text, r: &mut Random, all: &[Known], dims: &[u64]) -> Option<Known> {
    let recent = &all[all.len().saturating_sub(5)..];
    let x = recent[r.below(recent.len())].clone();
    let same: Vec<&Known> = all.iter().filter(|k| k.val.dtype == x.val.dtype && k.exact == x.exact).collect();
    let y = same[r.below(same.len())].clone();
    let dtype = x.val.dtype;
    let known = |val: Val, exact: bool| Some(Known { val, exact });
    if x.exact && r.below(8) == 0 {
        return converted(t, r, &x.val).and_then(|v| known(v, true));
    }
    match (dtype.class(), r.below(6)) {
        (DTypeClass::Complex, kind) => {
            let op = ["add", "subtract", "multiply", "negate", "exponential", "exponential"][kind];
            let exact = x.exact && matches!(kind, 0 | 1 | 3);
            if !x.exact && matches!(kind, 0..=2 | 4 | 5) {
                return None;
            }
            let val = if kind < 3 { t.binary(op, &x.val, &y.val) } else { t.unary(op, &x.val) };
            known(val, exact)
        }
        (_, 0) if x.exact && dtype != DType::Pred => {
            let direction = r.of(&["EQ", "NE", "LT", "LE", "GT", "GE"]);
            // the total order sees the sign of a NaN, which arithmetic may give either
            let given = |v: &Val| all.iter().take(2).any(|k| k.val.name == v.name);
            let total = dtype.is_float() && given(&x.val) && given(&y.val) && r.below(3) == 0;
            let order = if total { ", type=TOTALORDER" } else { "" };
            let val = t.op(
                DType::Pred,
                dims,
                format_args!("compare({}, {}), direction={direction}{order}", x.val.name, y.val.name),
            );
            known(val, true)
        }
        (_, 1) => {
            let which = all.iter().rev().find(|k| k.val.dtype == DType::Pred && k.exact)?;
            let exact = x.exact && y.exact;
            known(t.like(&x.val, format_args!("select({}, {}, {})", which.val.name, x.val.name, y.val.name)), exact)
        }
        (DTypeClass::Pred, _) => {
            let op = r.of(&["and", "or", "xor", "not"]);
            known(if op == "not" { t.unary(op, &x.val) } else { t.binary(op, &x.val, &y.val) }, true)
        }
        (DTypeClass::Float, 2) if x.exact => {
            let op = r.of(&["power", "atan2", "remainder", "divide"]);
            known(t.binary(op, &x.val, &y.val), matches!(op, "remainder" | "divide"))
        }
        (DTypeClass::Float, 3) if x.exact => known(t.unary(r.of(FLOAT_NEAR), &x.val), false),
        (DTypeClass::Float, 4) if x.exact => known(t.unary(r.of(FLOAT_EXACT), &x.val), true),
        (DTypeClass::Float, _) if !x.exact => known(t.unary(r.of(&["negate", "abs"]), &x.val), false),
        (DTypeClass::Float, _) => {
            let op = r.of(&["add", "subtract", "multiply", "maximum", "minimum"]);
            known(t.binary(op, &x.val, &y.val), true)
        }
        (_, 2 | 3) => {
            let op = r.of(INTEGER);
            if op == "negate" || op == "abs" || op == "sign" || dtype.is_integer() {
                return known(t.unary(op, &x.val), true);
            }
            None
        }
        (_, 4) => {
            let low = t.scalar(dtype, 1);
            let high = t.scalar(dtype, 5);
            known(t.like(&x.val, format_args!("clamp({}, {}, {})", low.name, x.val.name, high.name)), true)
        }
        _ => known(t.binary(r.of(INTEGERS), &x.val, &y.val), true),
    }
}

/// `x` as another type.
fn converted(t: &mut Text, r: &mut Random, x: &Val) -> Option<Val> {
    use DType::*;
    if x.dtype.is_complex() {
        let op = r.of(&["real", "imag"]);
        return Some(t.op(x.dtype.real_part(), &x.dims, format_args!("{op}({})", x.name)));
    }
    if x.dtype == F32 && r.below(3) == 0 {
        let (exponent, mantissa) = r.of(&[(5, 10), (8, 7), (4, 3), (8, 23), (11, 52), (2, 0)]);
        return Some(t.like(
            x,
            format_args!("reduce-precision({}), exponent_bits={exponent}, mantissa_bits={mantissa}", x.name),
        ));
    }
    let to = r.of(&[F32, F32, F64, F16, BF16, S8, S16, S32, S64, U8, U16, U32, U64, Pred]);
    (to != x.dtype).then(|| t.op(to, &x.dims, format_args!("convert({})", x.name)))
}

/// Transposes, reversals, slices, paddings, concatenations and reshapes of one another, sometimes with arithmetic between.
pub fn transform(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = any_type(r);
    let rank = 1 + r.below(4);
    let dims = sizes(r, rank, 2000);
    let mut all = vec![t.param(dtype, &dims, Fill::Plain)];
    for _ in 0..1 + r.below(7) {
        let recent = &all[all.len().saturating_sub(3)..];
        let x = recent[r.below(recent.len())].clone();
        let y = moved(&mut t, r, &x);
        if y.dims.iter().product::<u64>() <= 20_000 {
            all.push(y);
        }
    }
    for x in all.iter().rev().take(3) {
        t.result(x, Rule::Bits);
    }
    t.finish()
}

/// Results that are read along another axis than they are written, large enough to be computed in blocks.
pub fn transpose(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = any_type(r);
    let long = [64, 65, 96, 100, 127, 128, 130, 257, 300];
    let mut dims = vec![r.of(&long), r.of(&long)];
    for _ in 0..r.below(3) {
        dims.insert(r.below(dims.len() + 1), 1 + r.below(3) as u64);
    }
    let x = t.param(dtype, &dims, Fill::Plain);
    let mut y = transposed(&mut t, r, &x);
    let other = operand(&mut t, r, dtype, &y.dims.clone(), Fill::Plain);
    if dtype != DType::Pred && !dtype.is_complex() {
        y = t.like(&y, format_args!("maximum({}, {})", y.name, other.name));
    }
    match r.below(4) {
        0 => y = sliced(&mut t, r, &y),
        1 => y = transposed(&mut t, r, &y),
        _ => {}
    }
    t.result(&y, Rule::Bits);
    t.finish()
}

fn moved(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let rank = x.rank();
    match r.below(9) {
        0 | 1 => transposed(t, r, x),
        2 => {
            let axes: Vec<usize> = (0..rank).filter(|_| r.below(2) == 0).collect();
            t.like(x, format_args!("reverse({}), dimensions={{{}}}", x.name, list(axes)))
        }
        3 => sliced(t, r, x),
        4 => padded(t, r, x),
        5 if rank > 0 => {
            let axis = r.below(rank);
            let own = some(r, 40);
            let mut other = x.dims.clone();
            other[axis] = own;
            let y = if r.below(2) == 0 { x.clone() } else { t.param(x.dtype, &other, Fill::Plain) };
            let mut dims = x.dims.clone();
            dims[axis] += y.dims[axis];
            let (a, b) = if r.below(2) == 0 { (x, &y) } else { (&y, x) };
            t.op(x.dtype, &dims, format_args!("concatenate({}, {}), dimensions={{{axis}}}", a.name, b.name))
        }
        6 => {
            let dims = reshaped(r, &x.dims);
            t.op(x.dtype, &dims, format_args!("reshape({})", x.name))
        }
        7 if rank < 5 => {
            // a new axis anywhere
            let at = r.below(rank + 1);
            let mut dims = x.dims.clone();
            dims.insert(at, some(r, 9));
            let axes: Vec<usize> = (0..rank + 1).filter(|&a| a != at).collect();
            t.broadcast(x, &dims, &axes)
        }
        _ => match x.dtype.class() {
            DTypeClass::Pred => t.unary("not", x),
            DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Float | DTypeClass::Complex => t.unary("negate", x),
        },
    }
}

/// `x` with its axes in another order.
pub fn transposed(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let mut perm: Vec<usize> = (0..x.rank()).collect();
    for i in (1..perm.len()).rev() {
        perm.swap(i, r.below(i + 1));
    }
    let dims: Vec<u64> = perm.iter().map(|&p| x.dims[p]).collect();
    t.op(x.dtype, &dims, format_args!("transpose({}), dimensions={{{}}}", x.name, list(perm)))
}

fn sliced(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let mut parts = Vec::new();
    let mut dims = Vec::new();
    for &n in &x.dims {
        let from = r.below(n.min(4) as usize + 1) as u64;
        let to = from + r.below((n - from) as usize + 1) as u64;
        let to = if r.below(2) == 0 { n } else { to };
        let stride = 1 + r.of(&[0, 0, 0, 1, 2]);
        parts.push(format!("[{from}:{to}:{stride}]"));
        dims.push((to - from).div_ceil(stride));
    }
    t.op(x.dtype, &dims, format_args!("slice({}), slice={{{}}}", x.name, list(parts)))
}

fn padded(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let mut parts = Vec::new();
    let mut dims = Vec::new();
    for &n in &x.dims {
        let (mut low, mut high) = (r.of(&[0, 0, 1, 2, 5, -1]), r.of(&[0, 0, 1, 3, -1]));
        let inside = r.of(&[0, 0, 0, 1, 2]);
        let grown = n as i64 + inside * (n as i64 - 1).max(0);
        if grown + low + high < 0 {
            (low, high) = (0, 0);
        }
        parts.push(format!("{low}_{high}_{inside}"));
        dims.push((grown + low + high) as u64);
    }
    if x.rank() == 0 {
        return t.unary("copy", x);
    }
    let fill = t.constant(r, x.dtype, &[]);
    t.op(x.dtype, &dims, format_args!("pad({}, {}), padding={}", x.name, fill.name, parts.join("x")))
}

/// Other sizes with as many elements.
fn reshaped(r: &mut Random, dims: &[u64]) -> Vec<u64> {
    let mut left: u64 = dims.iter().product();
    let mut all = Vec::new();
    while left > 1 && all.len() < 3 {
        let divisors: Vec<u64> = (1..=left.min(64)).filter(|d| left.is_multiple_of(*d)).collect();
        let d = r.of(&divisors);
        all.push(d);
        left /= d;
    }
    let at = r.below(all.len() + 1);
    all.insert(at, left);
    all
}
