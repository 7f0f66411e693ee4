//! Attention and what is like it: a product, something of whole rows of it, and a product of that.
use super::common::random::Random;
use super::products::{Side, Sizes, epilogue, side};
use super::text::{Case, Fill, Rule, Text, Val, list, some};
use tfaot::tensor::DType;

/// `rows(scale · q kᵀ + mask) v` with axes in any order, masks of several kinds, softmax or another share of a row's sum.
pub fn attention(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16, DType::F16]);
    let batch = match r.below(4) {
        0 => vec![],
        1 => vec![some(r, 5)],
        _ => vec![some(r, 3), some(r, 4)],
    };
    let most = r.of(&[20, 70, 200]);
    let rows = match r.below(6) {
        0 => vec![some(r, 6), some(r, most / 4)],
        // a decoder's step
        1 => vec![1 + r.below(8) as u64],
        _ => vec![some(r, most)],
    };
    let longest = r.of(&[20, 130, 520]);
    let keys = some(r, longest);
    let first = Sizes { batch: batch.clone(), rows: rows.clone(), sum: vec![some(r, 70)], columns: vec![keys] };
    let (q, k) = (side(&mut t, r, dtype, &first, &rows, QUARTERS), side(&mut t, r, dtype, &first, &[keys], QUARTERS));
    let dims = [&batch[..], &q.free, &[keys]].concat();
    let scores = dot(&mut t, (&q.val, &q), (&k.val, &k), &dims);
    let scores = masked(&mut t, r, &scores);
    if r.below(12) == 0 {
        t.result(&scores, Rule::Close(0.0));
    }
    let shares = shares(&mut t, r, &scores);
    if r.below(12) == 0 {
        t.result(&shares, Rule::Close(slack(dtype, keys)));
    }

    let merged = !batch.is_empty() && r.below(3) == 0;
    let batch = if merged { vec![batch.iter().product()] } else { batch };
    let dims = [&batch[..], &q.free, &[keys]].concat();
    let shares = if merged { t.op(dtype, &dims, format_args!("reshape({})", shares.name)) } else { shares };
    let columns = vec![some(r, 70)];
    let second = Sizes { batch: batch.clone(), rows: vec![], sum: vec![keys], columns: columns.clone() };
    let v = side(&mut t, r, dtype, &second, &columns, QUARTERS);
    let left = Side {
        val: shares.clone(),
        batch: (0..batch.len()).collect(),
        free: q.free.clone(),
        sum: vec![dims.len() - 1],
    };
    let y = dot(&mut t, (&shares, &left), (&v.val, &v), &[&dims[..dims.len() - 1], &v.free].concat());
    epilogue(&mut t, r, &y, Rule::Close(slack(dtype, keys)));
    t.finish()
}

/// Sides whose sums are exact, not constant.
const QUARTERS: (Fill, bool) = (Fill::Quarters, false);

/// By how much a mean of `n` numbers below 4, weighted with exponentials, may be off.
fn slack(dtype: DType, n: u64) -> f64 {
    let eps = match dtype {
        DType::F64 => 2f64.powi(-53),
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        _ => 2f64.powi(-24),
    };
    let terms = if dtype.bits() < 32 { 4.0 } else { (n as f64).sqrt() };
    32.0 * terms * eps
}

fn dot(t: &mut Text, (x, a): (&Val, &Side), (y, b): (&Val, &Side), dims: &[u64]) -> Val {
    let mut lists = format!(
        "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}",
        list(a.sum.iter().copied()),
        list(b.sum.iter().copied())
    );
    if !a.batch.is_empty() {
        let of = |side: &Side| list(side.batch.iter().copied());
        lists += &format!(", lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}", of(a), of(b));
    }
    t.op(x.dtype, dims, format_args!("dot({}, {}), {lists}", x.name, y.name))
}

/// Scaled scores with a mask: added, of the keys or of everything, chosen by a parameter, causal, or none.
fn masked(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let (dtype, dims, last) = (x.dtype, x.dims.clone(), x.rank() - 1);
    let scale = t.splat(dtype, &dims, 0.125);
    let x = t.binary("multiply", x, &scale);
    match r.below(6) {
        0 => {
            let mask = t.param(dtype, &dims[last..], Fill::Quarters);
            let all = t.broadcast(&mask, &dims, &[last]);
            t.binary("add", &x, &all)
        }
        1 => {
            let mask = t.param(dtype, &dims, Fill::Quarters);
            t.binary("add", &x, &mask)
        }
        kind @ (2 | 3) => {
            let keep = if kind == 2 {
                let from = last.saturating_sub(1);
                let mask = t.param(DType::Pred, &dims[from..], Fill::Plain);
                t.broadcast(&mask, &dims, &(from..=last).collect::<Vec<_>>())
            } else {
                let row = t.op(DType::S32, &dims, format_args!("iota(), iota_dimension={}", last.saturating_sub(1)));
                let key = t.op(DType::S32, &dims, format_args!("iota(), iota_dimension={last}"));
                t.op(DType::Pred, &dims, format_args!("compare({}, {}), direction=GE", row.name, key.name))
            };
            let low = t.splat(dtype, &dims, -1000);
            t.like(&x, format_args!("select({}, {}, {})", keep.name, x.name, low.name))
        }
        _ => x,
    }
}

/// What each number has of a sum along its row: softmax, softmax without its maximum, or by squares.
fn shares(t: &mut Text, r: &mut Random, x: &Val) -> Val {
    let (dtype, dims, last) = (x.dtype, x.dims.clone(), x.rank() - 1);
    let axes: Vec<usize> = (0..last).collect();
    let row = |t: &mut Text, x: &Val, init: &str, op: &str| {
        let (init, comp) = (t.scalar(dtype, init), t.fold(op, dtype));
        let y = t.op(
            dtype,
            &dims[..last],
            format_args!("reduce({}, {}), dimensions={{{last}}}, to_apply={comp}", x.name, init.name),
        );
        t.broadcast(&y, &dims, &axes)
    };
    let parts = match r.below(6) {
        0 if dtype.bits() >= 32 => t.unary("exponential", x),
        1 if dtype.bits() >= 32 => {
            let one = t.splat(dtype, &dims, 1);
            let square = t.binary("multiply", x, x);
            t.binary("add", &square, &one)
        }
        _ => {
            let most = row(t, x, "-inf", "maximum");
            let below = t.binary("subtract", x, &most);
            t.unary("exponential", &below)
        }
    };
    let sum = row(t, &parts, "0", "add");
    t.binary("divide", &parts, &sum)
}
