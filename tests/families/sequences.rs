//! Loops over the steps of a sequence that multiply each by the same weights: products that are made before the loop, or in
//! blocks of steps, from sequences that lie in memory or are gathered, turned round, transposed or put together on the way, or
//! whose steps are all the same.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, Val, shape, some};
use tfaot::tensor::DType;

/// One loop, or a second one over the list that the first made.
pub fn sequences(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64]);
    let n = [1 + some(r, 9), 24 + r.below(60) as u64, 32 + r.below(20) as u64][r.below(3)];
    let (b, d) = ([1, 1, 1 + some(r, 5)][r.below(3)], 1 + some(r, 20));
    let xs = sequence(r, &mut t, dtype, [n, b, d], 0);
    let c = 1 + some(r, 40);
    let list = steps(r, &mut t, 0, &xs, c);
    t.result(&list, Rule::Bits);
    if r.below(3) == 0 {
        let turned = sequence_of(r, &mut t, &list);
        let columns = 1 + some(r, 20);
        let list = steps(r, &mut t, 1, &turned, columns);
        t.result(&list, Rule::Bits);
    }
    t.finish()
}

/// A sequence of `[steps, rows, columns]`.
fn sequence(r: &mut Random, t: &mut Text, dtype: DType, dims: [u64; 3], depth: usize) -> Val {
    let [n, b, d] = dims;
    let x = match r.below(6) {
        0 | 1 if depth < 3 => {
            let (rows, fill) = (1 + some(r, 9), Fill::Between(-2, 12));
            let table = match r.below(2) {
                0 => t.param(dtype, &[rows, d], Fill::Quarters),
                _ => t.constant(r, dtype, &[rows, d]),
            };
            let (dims, axis) = r.of(&[([n, b], [0, 1]), ([b, n], [1, 0])]);
            let ids = t.param(DType::S32, &dims, fill);
            let ids = if axis[0] == 0 { ids } else { transposed(t, &ids, &axis) };
            t.op(
                dtype,
                &[n, b, d],
                format_args!(
                    "gather({}, {}), offset_dims={{2}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=2, slice_sizes={{1,{d}}}",
                    table.name, ids.name
                ),
            )
        }
        2 => {
            let x = t.param(dtype, &[b, n, d], Fill::Quarters);
            transposed(t, &x, &[1, 0, 2])
        }
        3 if d > 1 && depth < 3 => {
            let left = 1 + r.below(d as usize - 1) as u64;
            let x = sequence(r, t, dtype, [n, b, left], depth + 1);
            let y = sequence(r, t, dtype, [n, b, d - left], depth + 1);
            t.op(dtype, &[n, b, d], format_args!("concatenate({}, {}), dimensions={{2}}", x.name, y.name))
        }
        4 => {
            let (own, axes) = [(vec![b, d], "1,2"), (vec![d], "2"), (vec![b], "1")][r.below(3)].clone();
            let x = t.param(dtype, &own, Fill::Quarters);
            t.op(dtype, &[n, b, d], format_args!("broadcast({}), dimensions={{{axes}}}", x.name))
        }
        _ => {
            let which = r.below(4);
            let flat = [vec![n, b * d], vec![n * b, d], vec![n, b, d, 1], vec![1, n, b * d]][which].clone();
            let x = t.param(dtype, &flat, Fill::Quarters);
            t.op(dtype, &[n, b, d], format_args!("reshape({})", x.name))
        }
    };
    sequence_of(r, t, &x)
}

/// `x` as it is, or turned round.
fn sequence_of(r: &mut Random, t: &mut Text, x: &Val) -> Val {
    let axes = r.of(&["", "", "0", "0,2", "1"]);
    if axes.is_empty() { x.clone() } else { t.like(x, format_args!("reverse({}), dimensions={{{axes}}}", x.name)) }
}

fn transposed(t: &mut Text, x: &Val, perm: &[usize]) -> Val {
    let dims: Vec<u64> = perm.iter().map(|&a| x.dims[a]).collect();
    let text = perm.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    t.op(x.dtype, &dims, format_args!("transpose({}), dimensions={{{text}}}", x.name))
}

/// A loop over the steps of `xs` in some order; the list of the largest products so far.
fn steps(r: &mut Random, t: &mut Text, number: usize, xs: &Val, columns: u64) -> Val {
    let dtype = xs.dtype;
    let [n, b, d] = xs.dims[..] else { unreachable!("a sequence has three dimensions") };
    let (all, w) = (xs.shape(), shape(dtype, &[d, columns]));
    let (y, row) = (shape(dtype, &[b, columns]), shape(dtype, &[1, b, columns]));
    let (x, step) = (shape(dtype, &[b, d]), shape(dtype, &[1, b, d]));
    let list = shape(dtype, &[n, b, columns]);
    let state = format!("(s32[], {y}, {list}, {all}, {w})");
    let at = match r.below(5) {
        0 | 1 => "  t = s32[] add(i, zero)\n".to_string(),
        2 => format!("  l = s32[] constant({})\n  t = s32[] subtract(l, i)\n", n - 1),
        3 => format!(
            "  f = s32[] constant(7)\n  m = s32[] multiply(i, f)\n  l = s32[] constant({n})\n  t = s32[] remainder(m, l)\n"
        ),
        _ => "  l = s32[] constant(3)\n  u = s32[] subtract(i, l)\n  t = s32[] multiply(u, l)\n".to_string(),
    };
    let body = format!(
        "  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  most = {y} get-tuple-element(p), index=1\n  list = {list} get-tuple-element(p), index=2\n  xs = {all} get-tuple-element(p), index=3\n  w = {w} get-tuple-element(p), index=4\n  zero = s32[] constant(0)\n{at}  s = {step} dynamic-slice(xs, t, zero, zero), dynamic_slice_sizes={{1,{b},{d}}}\n  x = {x} reshape(s)\n  q = {y} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  new = {y} maximum(q, most)\n  row = {row} reshape(new)\n  longer = {list} dynamic-update-slice(list, row, i, zero, zero)\n  one = s32[] constant(1)\n  next = s32[] add(i, one)\n  ROOT r = {state} tuple(next, new, longer, xs, w)\n"
    );
    t.comp(&format!("y_body{number}"), format!("y_body{number} {{\n{body}}}\n"));
    t.comp(
        &format!("x_more{number}"),
        format!(
            "x_more{number} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant({n})\n  ROOT go = pred[] compare(i, n), direction=LT\n}}\n"
        ),
    );
    let zero = t.scalar(DType::S32, 0);
    let least = t.splat(dtype, &[b, columns], "-100");
    let empty = t.splat(dtype, &[n, b, columns], "0");
    let weights = match r.below(3) {
        0 => t.param(dtype, &[d, columns], Fill::Quarters),
        _ => t.constant(r, dtype, &[d, columns]),
    };
    let names = [&zero, &least, &empty, xs, &weights].map(|v| v.name.as_str()).join(", ");
    let initial = t.line(&state, format_args!("tuple({names})"));
    let end = t.line(&state, format_args!("while({initial}), condition=x_more{number}, body=y_body{number}"));
    t.op(dtype, &[n, b, columns], format_args!("get-tuple-element({end}), index=2"))
}
