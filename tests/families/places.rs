//! Families that read or write where indices say: `gather`, `slices` (dynamic ones), `scatter`.
use super::common::random::Random;
use super::points::any_type;
use super::text::{Case, Fill, Rule, Text, list, sizes, some};
use tfaot::tensor::{DType, DTypeClass};

fn index_type(r: &mut Random) -> DType {
    r.of(&[DType::S32, DType::S32, DType::S64, DType::U8, DType::U32, DType::S8])
}

/// Indices in and around what is in bounds; unsigned ones are never negative.
fn around(dtype: DType, most: u64) -> Fill {
    let most = (most as i64 + 2).min(if dtype.bits() == 8 { 100 } else { 1 << 20 });
    Fill::Between(if dtype.is_signed() { -2 } else { 0 }, most)
}

/// The axes of a gather or scatter: the operand's sizes, which axes are indexed, and how the window lies in the result.
struct Axes {
    operand: Vec<u64>,
    indexed: Vec<usize>,
    slice: Vec<u64>,
    collapsed: Vec<usize>,
    batch: Vec<u64>,
    index_vector_dim: usize,
    offset: Vec<usize>,
    result: Vec<u64>,
    indices: Vec<u64>,
}

fn axes(r: &mut Random) -> Axes {
    let rank = 1 + r.below(3);
    let mut operand = sizes(r, rank, 2000);
    for n in &mut operand {
        *n = (*n).max(1);
    }
    let mut indexed: Vec<usize> = (0..rank).filter(|_| r.below(2) == 0).collect();
    if indexed.is_empty() {
        indexed.push(r.below(rank));
    }
    if r.below(4) == 0 {
        indexed.reverse();
    }
    let mut slice = operand.clone();
    let mut collapsed = Vec::new();
    for axis in 0..rank {
        let by_index = indexed.contains(&axis);
        if by_index && r.below(3) > 0 {
            slice[axis] = 1;
            collapsed.push(axis);
        } else if by_index || r.below(5) == 0 {
            slice[axis] = 1 + r.below(operand[axis] as usize) as u64;
        }
    }
    let window: Vec<u64> = (0..rank).filter(|a| !collapsed.contains(a)).map(|a| slice[a]).collect();
    let room = (6000 / window.iter().product::<u64>().max(1)).clamp(1, 300);
    let batch_rank = r.below(3);
    let batch = sizes(r, batch_rank, room);
    let implicit = indexed.len() == 1 && r.below(3) == 0;
    let index_vector_dim = if implicit { batch_rank } else { r.below(batch_rank + 1) };
    let mut indices = batch.clone();
    if !implicit {
        indices.insert(index_vector_dim, indexed.len() as u64);
    }
    // where the window's axes lie in the result: before, behind or between the others
    let all = batch_rank + window.len();
    let mut offset: Vec<usize> = (0..all).collect();
    while offset.len() > window.len() {
        let at = if r.below(2) == 0 { 0 } else { r.below(offset.len()) };
        offset.remove(at);
    }
    let (mut windows, mut batches) = (window.iter(), batch.iter());
    let result = (0..all)
        .map(|a| if offset.contains(&a) { windows.next() } else { batches.next() }.copied().unwrap_or(1))
        .collect();
    Axes { operand, indexed, slice, collapsed, batch, index_vector_dim, offset, result, indices }
}

pub fn gather(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (dtype, index) = (any_type(r), index_type(r));
    let a = axes(r);
    let most = a.indexed.iter().map(|&i| a.operand[i]).max().unwrap_or(1);
    let x = if r.below(3) == 0 && a.operand.iter().product::<u64>() < 500 {
        t.constant(r, dtype, &a.operand)
    } else {
        t.param(dtype, &a.operand, Fill::Plain)
    };
    let i = t.param(index, &a.indices, around(index, most));
    let y = t.op(
        dtype,
        &a.result,
        format_args!(
            "gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, start_index_map={{{}}}, index_vector_dim={}, slice_sizes={{{}}}",
            x.name,
            i.name,
            list(&a.offset),
            list(&a.collapsed),
            list(&a.indexed),
            a.index_vector_dim,
            list(&a.slice)
        ),
    );
    if dtype != DType::Pred && r.below(3) == 0 {
        let z = t.unary("negate", &y);
        t.result(&z, Rule::Bits);
    } else {
        t.result(&y, Rule::Bits);
    }
    t.finish()
}

pub fn scatter(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (dtype, index) = (any_type(r), index_type(r));
    let a = axes(r);
    let most = a.indexed.iter().map(|&i| a.operand[i]).max().unwrap_or(1);
    // sums of narrow floats are exact in any width of their quarters only
    let is_exact = dtype.is_complex() || dtype.is_float() && dtype.bits() < 32;
    let fill = if is_exact { Fill::Quarters } else { r.of(&[Fill::Quarters, Fill::Corners]) };
    let mut x = t.param(dtype, &a.operand, fill);
    if dtype != DType::Pred && r.below(2) == 0 {
        // a value that nobody else reads may be written over
        x = t.unary("negate", &x);
    }
    let i = t.param(index, &a.indices, around(index, most));
    let u = t.param(dtype, &a.result, fill);
    let op = match dtype.class() {
        DTypeClass::Pred => r.of(&["and", "or", "put"]),
        DTypeClass::Complex => r.of(&["add", "put"]),
        DTypeClass::Float | DTypeClass::Signed | DTypeClass::Unsigned => {
            r.of(&["add", "add", "put", "maximum", "minimum"])
        }
    };
    let d = dtype.name();
    let comp = if op == "put" {
        t.comp("put", format!("put {{\n  a = {d}[] parameter(0)\n  ROOT b = {d}[] parameter(1)\n}}\n"))
    } else {
        t.fold(op, dtype)
    };
    let y = t.like(
        &x,
        format_args!(
            "scatter({}, {}, {}), update_window_dims={{{}}}, inserted_window_dims={{{}}}, scatter_dims_to_operand_dims={{{}}}, index_vector_dim={}, to_apply={comp}",
            x.name,
            i.name,
            u.name,
            list(&a.offset),
            list(&a.collapsed),
            list(&a.indexed),
            a.index_vector_dim
        ),
    );
    let _ = &a.batch;
    // of zeros of both signs either may be the larger
    let rule = if fill == Fill::Corners { Rule::Value } else { Rule::Bits };
    t.result(&y, rule);
    if dtype != DType::Pred && r.below(4) == 0 {
        let z = t.binary("add", &x, &y);
        t.result(&z, rule);
    }
    t.finish()
}

/// Dynamic slices and updates, one after another.
pub fn slices(r: &mut Random) -> Case {
    let mut t = Text::default();
    let (dtype, index) = (any_type(r), index_type(r));
    let rank = 1 + r.below(3);
    let dims = sizes(r, rank, 3000);
    let mut x = t.param(dtype, &dims, Fill::Plain);
    for _ in 0..1 + r.below(3) {
        let part: Vec<u64> = x.dims.iter().map(|&n| if r.below(3) == 0 { n } else { some(r, n).min(n) }).collect();
        let starts: Vec<String> = x
            .dims
            .clone()
            .iter()
            .map(
                |&n| if r.below(4) == 0 { t.scalar(index, 0).name } else { t.param(index, &[], around(index, n)).name },
            )
            .collect();
        if r.below(2) == 0 {
            let u = t.param(dtype, &part, Fill::Plain);
            let y = t.like(&x, format_args!("dynamic-update-slice({}, {}, {})", x.name, u.name, list(&starts)));
            if r.below(4) == 0 {
                t.result(&x, Rule::Bits);
            }
            x = y;
        } else {
            x = t.op(
                dtype,
                &part,
                format_args!("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", x.name, list(&starts), list(&part)),
            );
        }
    }
    t.result(&x, Rule::Bits);
    t.finish()
}
