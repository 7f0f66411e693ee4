//! `loops`: states of several arrays that a body changes step by step, with products, updates in place, swaps, lists and
//! branches in it. `loops_together`: several loops, which run at once where they need nothing of one another.
use super::common::random::Random;
use super::text::{Case, Fill, Rule, Text, shape, some};
use tfaot::tensor::DType;

/// A computation that is being written.
struct Body {
    text: String,
    count: usize,
}

impl Body {
    fn add(&mut self, shape: &str, rhs: &str) -> String {
        let name = format!("b{}", self.count);
        self.count += 1;
        self.text += &format!("  {name} = {shape} {rhs}\n");
        name
    }
}

/// The first rows or columns of one matrix and the last ones of another, some of which are negated or in the reverse order.
fn joined(b: &mut Body, r: &mut Random, dtype: DType, sizes: [u64; 2], one: &str, other: &str) -> String {
    let axis = usize::from(sizes[0] < 2 || (sizes[1] > 1 && r.below(2) == 0));
    if sizes[axis] < 2 {
        return one.to_string();
    }
    let cut = 1 + r.below(sizes[axis] as usize - 1) as u64;
    let mut part = |from: &str, start: u64, end: u64| {
        let (mut low, mut high) = ([0; 2], sizes);
        (low[axis], high[axis]) = (start, end);
        let part = shape(dtype, &[high[0] - low[0], high[1] - low[1]]);
        let ranges = format!("slice={{[{}:{}],[{}:{}]}}", low[0], high[0], low[1], high[1]);
        let y = b.add(&part, &format!("slice({from}), {ranges}"));
        match r.below(4) {
            0 => b.add(&part, &format!("negate({y})")),
            1 => b.add(&part, &format!("reverse({y}), dimensions={{{}}}", r.below(2))),
            _ => y,
        }
    };
    let parts = [part(one, 0, cut), part(other, cut, sizes[axis])].join(", ");
    b.add(&shape(dtype, &sizes), &format!("concatenate({parts}), dimensions={{{axis}}}"))
}

/// A loop over `steps`, whose state has a counter, a matrix, another of the same sizes, a list of rows, and a constant.
pub fn loops(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F32, DType::S32, DType::F64]);
    let (m, n, steps) = (some(r, 9), some(r, 40), r.below(8) as u64);
    let d = dtype.name();
    let (x, list) = (shape(dtype, &[m, n]), shape(dtype, &[8, m, n]));
    let w = shape(dtype, &[n, n]);
    let state = format!("(s32[], {x}, {x}, {list}, {w})");
    let mut b = Body { text: format!("  p = {state} parameter(0)\n"), count: 0 };
    let part = |b: &mut Body, shape: &str, i: usize| b.add(shape, &format!("get-tuple-element(p), index={i}"));
    let i = part(&mut b, "s32[]", 0);
    let mut one = part(&mut b, &x, 1);
    let mut two = part(&mut b, &x, 2);
    let mut rows = part(&mut b, &list, 3);
    let weights = part(&mut b, &w, 4);
    let zero = b.add("s32[]", "constant(0)");
    let mut products = 0;
    for _ in 0..1 + r.below(5) {
        match r.below(10) {
            0 => one = b.add(&x, &format!("add({one}, {two})")),
            1 => std::mem::swap(&mut one, &mut two),
            2 if products == 0 => {
                products += 1;
                let y = b
                    .add(&x, &format!("dot({one}, {weights}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"));
                let bound = |v: &str| format!("{d}[] constant({v})");
                let (low, high) = (bound("-2"), bound("2"));
                let low = b.add(&format!("{d}[]"), low.split_once(' ').map_or("", |p| p.1));
                let high = b.add(&format!("{d}[]"), high.split_once(' ').map_or("", |p| p.1));
                one = b.add(&x, &format!("clamp({low}, {y}, {high})"));
            }
            3 => {
                let row = b.add(&shape(dtype, &[1, m, n]), &format!("reshape({one})"));
                rows = b.add(&list, &format!("dynamic-update-slice({rows}, {row}, {i}, {zero}, {zero})"));
            }
            4 => {
                let row = b.add(
                    &shape(dtype, &[1, m, n]),
                    &format!("dynamic-slice({rows}, {i}, {zero}, {zero}), dynamic_slice_sizes={{1,{m},{n}}}"),
                );
                let row = b.add(&x, &format!("reshape({row})"));
                two = b.add(&x, &format!("maximum({row}, {two})"));
            }
            5 => rows = b.add(&list, &format!("reverse({rows}), dimensions={{0}}")),
            6 => {
                let last = b.add("s32[]", "constant(2)");
                let odd = b.add("s32[]", &format!("remainder({i}, {last})"));
                let taken = format!("({x}, {x})");
                let both = b.add(&taken, &format!("tuple({one}, {two})"));
                one =
                    b.add(&x, &format!("conditional({odd}, {both}, {both}), branch_computations={{larger, reversed}}"));
                branches(&mut t, dtype, &x, &taken);
            }
            7 | 8 => {
                let other = if r.below(2) == 0 { one.clone() } else { two.clone() };
                one = joined(&mut b, r, dtype, [m, n], &one, &other);
            }
            _ => {
                one = b.add(&x, &format!("negate({one})"));
                two = b.add(&x, &format!("subtract({two}, {one})"));
            }
        }
    }
    let step = b.add("s32[]", "constant(1)");
    let next = b.add("s32[]", &format!("add({i}, {step})"));
    let body = format!("{}  ROOT r = {state} tuple({next}, {one}, {two}, {rows}, {weights})\n", b.text);
    t.comp("y_body", format!("y_body {{\n{body}}}\n"));
    // the bound is known when it is compiled, or only when it runs: then it is the counter that starts late
    let late = if r.below(3) == 0 { r.below(3) as u64 } else { 0 };
    t.comp(
        "x_more",
        format!(
            "x_more {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant({steps})\n  ROOT go = pred[] compare(i, n), direction=LT\n}}\n"
        ),
    );
    let start = if late > 0 { t.param(DType::S32, &[], Fill::Between(0, 4)) } else { t.scalar(DType::S32, 0) };
    let first = t.param(dtype, &[m, n], Fill::Quarters);
    let second = if r.below(3) == 0 { first.clone() } else { t.param(dtype, &[m, n], Fill::Quarters) };
    let zeros = t.splat(dtype, &[8, m, n], "0");
    let all = if r.below(3) == 0 { t.param(dtype, &[8, m, n], Fill::Quarters) } else { zeros };
    let weights = if r.below(2) == 0 { t.constant(r, dtype, &[n, n]) } else { t.param(dtype, &[n, n], Fill::Quarters) };
    let names = [&start, &first, &second, &all, &weights].map(|v| v.name.as_str()).join(", ");
    let initial = t.line(&state, format_args!("tuple({names})"));
    let end = t.line(&state, format_args!("while({initial}), condition=x_more, body=y_body"));
    // exact sums of quarters stay exact: a product once a step has its values bounded, and seven steps lose no bits but few
    let rule = if dtype.is_float() { Rule::Close(1e-4) } else { Rule::Bits };
    for (index, dims) in [(1, vec![m, n]), (2, vec![m, n]), (3, vec![8, m, n])] {
        let y = t.op(dtype, &dims, format_args!("get-tuple-element({end}), index={index}"));
        t.result(&y, rule);
    }
    t.finish()
}

fn branches(t: &mut Text, dtype: DType, x: &str, both: &str) {
    let _ = dtype;
    let parts = format!(
        "  p = {both} parameter(0)\n  a = {x} get-tuple-element(p), index=0\n  b = {x} get-tuple-element(p), index=1\n"
    );
    t.comp("larger", format!("larger {{\n{parts}  ROOT r = {x} maximum(a, b)\n}}\n"));
    t.comp(
        "reversed",
        format!("reversed {{\n{parts}  c = {x} subtract(b, a)\n  ROOT r = {x} reverse(c), dimensions={{1}}\n}}\n"),
    );
}

/// Two or three loops that need nothing of one another, or the result of one before, with pointwise steps between them: what
/// runs at once where there are threads.
pub fn loops_together(r: &mut Random) -> Case {
    let mut t = Text::default();
    let dtype = r.of(&[DType::F32, DType::F32, DType::F64]);
    let (m, n) = (1 + some(r, 9), 1 + some(r, 70));
    let mut known = vec![t.param(dtype, &[m, n], Fill::Quarters), t.param(dtype, &[m, n], Fill::Quarters)];
    let x = shape(dtype, &[m, n]);
    let d = dtype.name();
    for number in 0..2 + r.below(2) {
        let (steps, kind) = (1 + r.below(6), r.below(3));
        let state = format!("(s32[], {x}, {x})");
        let step = match kind {
            0 => format!("  y = {x} tanh(a)\n  z = {x} subtract(y, b)\n"),
            1 => format!("  l = {x} logistic(b)\n  y = {x} multiply(l, a)\n  z = {x} maximum(y, b)\n"),
            _ => format!("  v = {x} reverse(a), dimensions={{1}}\n  y = {x} sine(v)\n  z = {x} add(y, a)\n"),
        };
        t.comp(
            &format!("y_body{number}"),
            format!(
                "y_body{number} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  a = {x} get-tuple-element(p), index=1\n  b = {x} get-tuple-element(p), index=2\n{step}  one = s32[] constant(1)\n  next = s32[] add(i, one)\n  ROOT r = {state} tuple(next, y, z)\n}}\n"
            ),
        );
        t.comp(
            &format!("x_more{number}"),
            format!(
                "x_more{number} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant({steps})\n  ROOT go = pred[] compare(i, n), direction=LT\n}}\n"
            ),
        );
        let zero = t.scalar(DType::S32, 0);
        let first = known[r.below(known.len())].clone();
        let second = known[r.below(known.len())].clone();
        let initial = t.line(&state, format_args!("tuple({}, {}, {})", zero.name, first.name, second.name));
        let end = t.line(&state, format_args!("while({initial}), condition=x_more{number}, body=y_body{number}"));
        for index in 1..3 {
            let y = t.op(dtype, &[m, n], format_args!("get-tuple-element({end}), index={index}"));
            t.result(&y, Rule::Close(1e-4));
            // needed by a later loop, or only in its way
            if r.below(2) == 0 {
                let half = t.op(dtype, &[], format_args!("constant({})", if d == "f64" { "0.5" } else { "0.25" }));
                let half = t.broadcast(&half, &[m, n], &[]);
                let less = t.binary("multiply", &y, &half);
                if r.below(2) == 0 {
                    known.push(less);
                } else {
                    t.result(&less, Rule::Close(1e-4));
                }
            }
        }
        let other = t.binary("add", &first, &second);
        known.push(other);
    }
    t.finish()
}
