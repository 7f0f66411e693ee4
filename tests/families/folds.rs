//! Families that fold elements: `reduce`, `rows`, `window`, `select_and_scatter`, `scan`.
use super::common::random::Random;
use super::points::{any_type, transposed};
use super::text::{Case, Fill, Rule, Text, Val, list, shape, sizes, some, sum_bound};
use tfaot::tensor::{DType, DTypeClass};

/// An op, its neutral element, and whether the order of folding does not matter for `fill`.
fn fold_of(r: &mut Random, dtype: DType) -> (&'static str, &'static str) {
    match dtype.class() {
        DTypeClass::Pred => r.of(&[("and", "true"), ("or", "false")]),
        DTypeClass::Complex => ("add", "(0, 0)"),
        DTypeClass::Float => r.of(&[("add", "0"), ("add", "0"), ("maximum", "-inf"), ("minimum", "inf")]),
        DTypeClass::Signed | DTypeClass::Unsigned => {
            r.of(&[("add", "0"), ("multiply", "1"), ("maximum", "0"), ("minimum", "0"), ("and", "7"), ("or", "0")])
        }
    }
}

/// What sums of `n` such terms may be off by, and the fill that they are made of.
fn terms(r: &mut Random, op: &str, dtype: DType, n: u64) -> (Fill, Rule) {
    // of zeros of both signs the order decides which one is left
    if op != "add" {
        return (r.of(&[Fill::Plain, Fill::Corners]), Rule::Value);
    }
    match dtype.class() {
        DTypeClass::Float | DTypeClass::Complex if dtype.bits() < 32 => (Fill::Quarters, Rule::Close(0.0)),
        DTypeClass::Float | DTypeClass::Complex if r.below(2) == 0 => {
            (Fill::Plain, Rule::Close(sum_bound(dtype, n, 2.0)))
        }
        _ => (Fill::Quarters, Rule::Value),
    }
}

/// Folds over any axes, of what is computed on the way, with an epilogue, or several arrays at once.
pub fn reduce(r: &mut Random) -> Case {
    if r.below(5) == 0 {
        return largest_with_place(r);
    }
    let mut t = Text::default();
    let dtype = any_type(r);
    let rank = 1 + r.below(4);
    let dims = sizes(r, rank, 20_000);
    let axes: Vec<usize> = (0..rank).filter(|_| r.below(2) == 0).collect();
    let kept: Vec<u64> = (0..rank).filter(|a| !axes.contains(a)).map(|a| dims[a]).collect();
    let n = axes.iter().map(|&a| dims[a]).product::<u64>();
    let (op, init) = fold_of(r, dtype);
    let (fill, rule) = terms(r, op, dtype, n);
    let mut x = t.param(dtype, &dims, fill);
    let number = dtype != DType::Pred;
    if number && r.below(3) == 0 {
        x = t.unary("negate", &x);
    }
    if r.below(4) == 0 {
        // read through a transpose
        let perm: Vec<usize> = (0..rank).rev().collect();
        let turned: Vec<u64> = perm.iter().map(|&p| x.dims[p]).collect();
        let y = t.param(dtype, &turned, fill);
        let y = t.op(dtype, &dims, format_args!("transpose({}), dimensions={{{}}}", y.name, list(perm)));
        let joined = if number { "maximum" } else { "or" };
        if !dtype.is_complex() {
            x = t.binary(joined, &x, &y);
        }
    }
    let start = t.scalar(dtype, init);
    let comp = t.fold(op, dtype);
    let y = t.op(
        dtype,
        &kept,
        format_args!("reduce({}, {}), dimensions={{{}}}, to_apply={comp}", x.name, start.name, list(axes)),
    );
    t.result(&y, rule);
    if number && r.below(2) == 0 {
        let bias = t.constant(r, dtype, &kept);
        let z = t.binary(if dtype.is_complex() { "add" } else { "maximum" }, &y, &bias);
        t.result(&z, rule);
    }
    t.finish()
}

/// The computation of an arg max.
fn larger(t: &mut Text, dtype: DType) -> String {
    let d = dtype.name();
    let body = format!(
        "larger_{d} {{\n  a = {d}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {d}[] parameter(2)\n  j = s32[] parameter(3)\n  \
         less = pred[] compare(a, b), direction=LT\n  c = {d}[] select(less, b, a)\n  k = s32[] select(less, j, i)\n  \
         ROOT r = ({d}[], s32[]) tuple(c, k)\n}}\n"
    );
    t.comp(&format!("larger_{d}"), body)
}

fn largest_with_place(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::S32, DType::F64, DType::BF16, DType::U8]);
    let rank = 1 + r.below(3);
    let dims = sizes(r, rank, 8000);
    let axis = r.below(rank);
    let mut kept = dims.clone();
    kept.remove(axis);
    let fill = r.of(&[Fill::Plain, Fill::Corners]);
    let x = t.param(dtype, &dims, fill);
    let i = t.op(DType::S32, &dims, format_args!("iota(), iota_dimension={axis}"));
    let low = t.scalar(dtype, if dtype.is_float() { "-inf" } else { "0" });
    let none = t.scalar(DType::S32, -1);
    let comp = larger(&mut t, dtype);
    let (values, places) = (shape(dtype, &kept), shape(DType::S32, &kept));
    let both = t.line(
        &format!("({values}, {places})"),
        format_args!(
            "reduce({}, {}, {}, {}), dimensions={{{axis}}}, to_apply={comp}",
            x.name, i.name, low.name, none.name
        ),
    );
    for (n, dtype) in [dtype, DType::S32].into_iter().enumerate() {
        let y = t.op(dtype, &kept, format_args!("get-tuple-element({both}), index={n}"));
        t.result(&y, Rule::Bits);
    }
    t.finish()
}

/// Softmax, its logarithm, norms of rows: passes over the same row in one kernel.
pub fn rows(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::F64]);
    let rank = 1 + r.below(3);
    let mut dims = sizes(r, rank, 6000);
    let last = rank - 1;
    dims[last] = dims[last].max(1);
    let n = dims[last];
    let kept: Vec<u64> = dims[..last].to_vec();
    let axes: Vec<usize> = (0..last).collect();
    let mut x = t.param(dtype, &dims, Fill::Plain);
    if r.below(3) == 0 {
        let mask = t.param(dtype, &dims[last..], Fill::Quarters);
        let masks = t.broadcast(&mask, &dims, &[last]);
        x = t.binary("add", &x, &masks);
    }
    let (zero, low) = (t.scalar(dtype, 0), t.scalar(dtype, "-inf"));
    let (add, max) = (t.fold("add", dtype), t.fold("maximum", dtype));
    let fold = |t: &mut Text, x: &Val, init: &Val, comp: &str| {
        let y = t.op(
            dtype,
            &kept,
            format_args!("reduce({}, {}), dimensions={{{last}}}, to_apply={comp}", x.name, init.name),
        );
        (t.broadcast(&y, &dims, &axes), y)
    };
    let sum_off = sum_bound(dtype, n, 8.0);
    match r.below(4) {
        kind @ (0 | 1) => {
            let (m, _) = fold(&mut t, &x, &low, &max);
            let c = t.binary("subtract", &x, &m);
            let e = t.unary("exponential", &c);
            let (s, sum) = fold(&mut t, &e, &zero, &add);
            if kind == 0 {
                let p = t.binary("divide", &e, &s);
                t.result(&p, Rule::Close(0.0));
            } else {
                let l = t.unary("log", &s);
                let p = t.binary("subtract", &c, &l);
                t.result(&p, Rule::Close(sum_off));
            }
            if r.below(3) == 0 {
                t.result(&sum, Rule::Close(0.0));
            }
        }
        kind => {
            let part = t.splat(dtype, &dims, 1.0 / n as f64);
            let (total, _) = fold(&mut t, &x, &zero, &add);
            let mean = t.binary("multiply", &total, &part);
            let c = if kind == 2 { t.binary("subtract", &x, &mean) } else { x.clone() };
            let q = t.binary("multiply", &c, &c);
            let (sq, _) = fold(&mut t, &q, &zero, &add);
            let v = t.binary("multiply", &sq, &part);
            let small = t.splat(dtype, &dims, 0.25);
            let held = t.binary("add", &v, &small);
            let scale = t.unary("rsqrt", &held);
            let y = t.binary("multiply", &c, &scale);
            let gamma = t.constant(r, dtype, &dims[last..]);
            let gammas = t.broadcast(&gamma, &dims, &[last]);
            let y = t.binary("multiply", &y, &gammas);
            t.result(&y, Rule::Close(sum_off));
        }
    }
    t.finish()
}

/// One axis of a window that leaves something.
pub struct Axis {
    pub input: u64,
    pub size: u64,
    pub stride: u64,
    pub pads: (i64, i64),
    pub base: u64,
    pub dilation: u64,
    pub output: u64,
}

impl Axis {
    /// An axis that the window does not move along.
    pub fn whole(input: u64) -> Axis {
        Axis { input, size: 1, stride: 1, pads: (0, 0), base: 1, dilation: 1, output: input }
    }
    /// The sizes that `self`'s window leaves, if any.
    pub fn fitted(mut self) -> Option<Axis> {
        let span = (self.input as i64 - 1) * self.base as i64 + 1 + self.pads.0 + self.pads.1;
        let window = (self.size as i64 - 1) * self.dilation as i64 + 1;
        if span < window {
            return None;
        }
        self.output = (span - window) as u64 / self.stride + 1;
        Some(self)
    }
}

/// `{size=… stride=… pad=… lhs_dilate=… rhs_dilate=…}`
pub fn window_text(axes: &[Axis]) -> String {
    let join = |f: &dyn Fn(&Axis) -> String| axes.iter().map(f).collect::<Vec<_>>().join("x");
    format!(
        "{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}",
        join(&|a| a.size.to_string()),
        join(&|a| a.stride.to_string()),
        join(&|a| format!("{}_{}", a.pads.0, a.pads.1)),
        join(&|a| a.base.to_string()),
        join(&|a| a.dilation.to_string()),
    )
}

fn window_axis(r: &mut Random, most: u64) -> Axis {
    loop {
        let pads = (r.of(&[0, 0, 1, 2, -1]), r.of(&[0, 0, 1, 2, 3, -1]));
        let axis = Axis {
            input: some(r, most),
            size: 1 + r.below(5) as u64,
            stride: r.of(&[1, 1, 2, 3]),
            pads,
            base: r.of(&[1, 1, 1, 1, 2]),
            dilation: r.of(&[1, 1, 1, 2]),
            output: 0,
        };
        if let Some(axis) = axis.fitted() {
            return axis;
        }
    }
}

/// Pooling: windows over any axes, with strides, paddings of either sign and dilations.
pub fn window(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = any_type(r);
    let rank = 1 + r.below(4);
    let most = [900, 30, 12, 9][rank - 1];
    let axes: Vec<Axis> =
        (0..rank).map(|_| if r.below(3) == 0 { Axis::whole(some(r, most)) } else { window_axis(r, most) }).collect();
    let (input, output): (Vec<u64>, Vec<u64>) = axes.iter().map(|a| (a.input, a.output)).unzip();
    let n: u64 = axes.iter().map(|a| a.size).product();
    let window = window_text(&axes);
    let (op, init) = fold_of(r, dtype);
    let (fill, rule) = terms(r, op, dtype, n);
    let x = t.param(dtype, &input, fill);
    let start = t.scalar(dtype, init);
    if r.below(8) == 0 && matches!(dtype, DType::F32 | DType::S32) {
        let i = t.op(DType::S32, &input, format_args!("iota(), iota_dimension={}", rank - 1));
        let none = t.scalar(DType::S32, -1);
        let comp = larger(&mut t, dtype);
        let both = t.line(
            &format!("({}, {})", shape(dtype, &output), shape(DType::S32, &output)),
            format_args!(
                "reduce-window({}, {}, {}, {}), window={window}, to_apply={comp}",
                x.name, i.name, start.name, none.name
            ),
        );
        let y = t.op(DType::S32, &output, format_args!("get-tuple-element({both}), index=1"));
        t.result(&y, Rule::Bits);
        return t.finish();
    }
    let comp = t.fold(op, dtype);
    let y = t.op(
        dtype,
        &output,
        format_args!("reduce-window({}, {}), window={window}, to_apply={comp}", x.name, start.name),
    );
    if dtype.is_float() && r.below(2) == 0 {
        // a mean, and what follows it
        let part = t.splat(dtype, &output, "0.5");
        let z = t.binary("multiply", &y, &part);
        let zero = t.splat(dtype, &output, "0");
        let z = t.binary("maximum", &z, &zero);
        t.result(&z, rule);
    } else {
        t.result(&y, rule);
    }
    t.finish()
}

/// Gradients of pooling.
pub fn select_and_scatter(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F64, DType::S32, DType::BF16]);
    let rank = 1 + r.below(4);
    let most = [200, 20, 10, 8][rank - 1];
    let mut axes: Vec<Axis> = (0..rank)
        .map(|_| {
            loop {
                if r.below(3) == 0 {
                    break Axis::whole(some(r, most));
                }
                let axis = Axis {
                    input: some(r, most),
                    size: 1 + r.below(4) as u64,
                    stride: r.of(&[1, 2, 2, 3]),
                    pads: (r.of(&[0, 0, 1]), r.of(&[0, 0, 1])),
                    base: 1,
                    dilation: 1,
                    output: 0,
                };
                if let Some(axis) = axis.fitted() {
                    break axis;
                }
            }
        })
        .collect();
    // features, which have windows of their own
    if r.below(2) == 0 {
        axes.push(Axis::whole(4 + some(r, 40)));
    }
    let (input, output): (Vec<u64>, Vec<u64>) = axes.iter().map(|a| (a.input, a.output)).unzip();
    let join = |f: &dyn Fn(&Axis) -> String| axes.iter().map(f).collect::<Vec<_>>().join("x");
    let window = format!(
        "{{size={} stride={} pad={}}}",
        join(&|a| a.size.to_string()),
        join(&|a| a.stride.to_string()),
        join(&|a| format!("{}_{}", a.pads.0, a.pads.1)),
    );
    let fill = r.of(&[Fill::Quarters, Fill::Quarters, Fill::Corners]);
    let x = t.param(dtype, &input, fill);
    let source = t.param(dtype, &output, Fill::Quarters);
    let zero = t.scalar(dtype, r.of(&["0", "0", "3"]));
    let d = dtype.name();
    let (name, direction) = r.of(&[("ge", "GE"), ("le", "LE"), ("gt", "GT")]);
    let select = t.comp(
        &format!("{name}_{d}"),
        format!(
            "{name}_{d} {{\n  a = {d}[] parameter(0)\n  b = {d}[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction={direction}\n}}\n"
        ),
    );
    let add = t.fold("add", dtype);
    let y = t.like(
        &x,
        format_args!(
            "select-and-scatter({}, {}, {}), window={window}, select={select}, scatter={add}",
            x.name, source.name, zero.name
        ),
    );
    t.result(&y, Rule::Bits);
    t.finish()
}

/// Windows that grow along an axis: cumulative sums and products, forwards and backwards, exclusive or not.
pub fn scan(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F64, DType::S32, DType::S64, DType::U8]);
    let rank = 1 + r.below(3);
    let mut dims = sizes(r, rank, 3000);
    let axis = r.below(rank);
    dims[axis] = dims[axis].max(1);
    let n = dims[axis];
    let (op, init) = r.of(&[("add", "0"), ("add", "0"), ("maximum", "0"), ("minimum", "0")]);
    let (fill, rule) = terms(r, op, dtype, n);
    let x = t.param(dtype, &dims, fill);
    let start = t.scalar(dtype, init);
    let comp = t.fold(op, dtype);
    let (low, high) = r.of(&[(n as i64 - 1, 0), (0, n as i64 - 1), (n as i64, -1), (-1, n as i64)]);
    let (size, low, high) = if r.below(4) == 0 {
        // a window of another length than the axis
        let size = n + r.below(6) as u64;
        (size, low + size as i64 - n as i64, high)
    } else {
        (n, low, high)
    };
    let output = n as i64 + low + high - size as i64 + 1;
    if output < 1 || (low < 0 && high < 0) {
        t.result(&x, Rule::Bits);
        return t.finish();
    }
    let mut out = dims.clone();
    out[axis] = output as u64;
    let of = |f: &dyn Fn(usize) -> String| (0..rank).map(f).collect::<Vec<_>>().join("x");
    let window = format!(
        "{{size={} pad={}}}",
        of(&|a| if a == axis { size.to_string() } else { "1".into() }),
        of(&|a| if a == axis { format!("{low}_{high}") } else { "0_0".into() }),
    );
    let y =
        t.op(dtype, &out, format_args!("reduce-window({}, {}), window={window}, to_apply={comp}", x.name, start.name));
    t.result(&y, rule);
    if r.below(3) == 0 {
        let z = transposed(&mut t, r, &y);
        t.result(&z, rule);
    }
    t.finish()
}
