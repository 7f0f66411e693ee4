//! Random convolutions and products of every kind (one to three dimensions, groups, depthwise, strides, both dilations,
//! padding of either sign, few columns, epilogues, concatenations, a padded reader), in machine code and kernel by kernel,
//! against the interpreter. `TFAOT_RANDOM=2000` tries more of them.
mod common;

use common::{npz, random::Random, succeed, tolerance::departure};
use std::fmt::Write;
use tfaot::compile;
use tfaot::hlo::{Literal, text};
use tfaot::target::Target;
use tfaot::tensor::Tensor;

/// Statements that one program may take.
const MOST: u64 = 400_000_000;

/// How many modules; each has three convolutions or products.
fn count() -> u64 {
    std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

fn dims(all: &[u64]) -> String {
    format!("f32[{}]", all.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

fn literal(random: &mut Random, dims: &[u64]) -> String {
    match dims.split_first() {
        None => format!("{}", random.below(9) as f64 / 4.0 - 1.0),
        Some((&n, rest)) => {
            let all: Vec<String> = (0..n).map(|_| literal(random, rest)).collect();
            format!("{{{}}}", all.join(","))
        }
    }
}

/// A parameter rounded to quarters, so that all sums are exact whatever their order.
fn quarters(name: &str, shape: &str, number: usize) -> String {
    format!(
        "{name}p = {shape} parameter({number})\n{name}4 = f32[] constant(4)\n{name}b = {shape} broadcast({name}4), dimensions={{}}\n\
         {name}m = {shape} multiply({name}p, {name}b)\n{name}r = {shape} round-nearest-even({name}m)\n\
         {name} = {shape} divide({name}r, {name}b)"
    )
}

/// One spatial axis of a window that leaves something.
struct Axis {
    input: u64,
    size: u64,
    stride: u64,
    pads: (i64, i64),
    base: u64,
    dilation: u64,
    output: u64,
}

fn axis(r: &mut Random, most: usize) -> Axis {
    loop {
        let (input, size) = (1 + r.below(most) as u64, 1 + r.below(5) as u64);
        let (stride, base, dilation) = (r.of(&[1, 1, 2, 3]), r.of(&[1, 1, 1, 2, 3]), r.of(&[1, 1, 1, 2]));
        let pads = (r.of(&[0, 0, 1, 2, -1]), r.of(&[0, 0, 1, 2, 3, -1]));
        let span = (input as i64 - 1) * base as i64 + 1 + pads.0 + pads.1;
        let window = (size as i64 - 1) * dilation as i64 + 1;
        if span >= window {
            let output = (span - window) as u64 / stride + 1;
            return Axis { input, size, stride, pads, base, dilation, output };
        }
    }
}

/// A convolution, perhaps with an epilogue, a sibling that it is concatenated with, and a padded convolution that reads it.
fn convolution(r: &mut Random) -> String {
    let rank = r.of(&[1usize, 2, 2, 2, 2, 3]);
    let axes: Vec<Axis> = (0..rank).map(|_| axis(r, [40, 13, 6][rank - 1])).collect();
    let groups = r.of(&[1u64, 1, 1, 2, 3]);
    let (per_in, per_out) = (r.of(&[1u64, 1, 3, 4, 8, 17]), r.of(&[1u64, 1, 2, 5, 8, 16, 24, 33]));
    let (depthwise, n) = (r.below(3) == 0, 1 + r.below(2) as u64);
    let (per_in, per_out, groups) =
        if depthwise { (1, 1, r.of(&[2u64, 7, 16, 20, 48])) } else { (per_in, per_out, groups) };
    let (cin, cout) = (per_in * groups, per_out * groups);
    let spatial = |f: &dyn Fn(&Axis) -> u64| axes.iter().map(f).collect::<Vec<u64>>();
    let x = [vec![n], spatial(&|a| a.input), vec![cin]].concat();
    let w = [spatial(&|a| a.size), vec![per_in, cout]].concat();
    let y = [vec![n], spatial(&|a| a.output), vec![cout]].concat();
    let join = |f: &dyn Fn(&Axis) -> String| axes.iter().map(f).collect::<Vec<_>>().join("x");
    let window = format!(
        "{{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}",
        join(&|a| a.size.to_string()),
        join(&|a| a.stride.to_string()),
        join(&|a| format!("{}_{}", a.pads.0, a.pads.1)),
        join(&|a| a.base.to_string()),
        join(&|a| a.dilation.to_string()),
    );
    let digits = &"012"[..rank];
    let labels = format!("b{digits}f_{digits}io->b{digits}f");
    let (xs, ws, ys) = (dims(&x), dims(&w), dims(&y));
    let mut t = String::from("HloModule m\nENTRY e {\n");
    let constant = r.below(4) > 0;
    let weights = if constant { format!("w = {ws} constant({})", literal(r, &w)) } else { quarters("w", &ws, 1) };
    let input = if constant && r.below(2) == 0 { format!("x = {xs} parameter(0)") } else { quarters("x", &xs, 0) };
    let _ = writeln!(t, "{input}\n{weights}\nzero = f32[] constant(0)");
    let _ =
        writeln!(t, "c = {ys} convolution(x, w), window={window}, dim_labels={labels}, feature_group_count={groups}");
    let mut last = "c".to_string();
    if r.below(2) == 0 {
        let _ = writeln!(t, "b = f32[{cout}] constant({})", literal(r, &[cout]));
        let _ = writeln!(t, "bb = {ys} broadcast(b), dimensions={{{}}}\nca = {ys} add(c, bb)", rank + 1);
        let _ = writeln!(t, "zs = {ys} broadcast(zero), dimensions={{}}\ncr = {ys} maximum(ca, zs)");
        last = "cr".to_string();
    }
    let (mut channels, mut shape) = (cout, y.clone());
    if r.below(2) == 0 {
        let _ = writeln!(t, "n = {ys} negate({last})");
        channels *= 2;
        shape[rank + 1] = channels;
        let _ = writeln!(t, "j = {} concatenate({last}, n), dimensions={{{}}}", dims(&shape), rank + 1);
        last = "j".to_string();
    }
    // A reader whose window is padded, so that its operand has a margin.
    let second = r.of(&[1u64, 8, 20]);
    let w2 = [vec![3; rank], vec![channels, second]].concat();
    let window = format!("{{size={} pad={}}}", join(&|_| "3".into()), join(&|_| "1_1".into()));
    let mut z = shape.clone();
    z[rank + 1] = second;
    let _ = writeln!(t, "w2 = {} constant({})", dims(&w2), literal(r, &w2));
    let _ = writeln!(t, "d = {} convolution({last}, w2), window={window}, dim_labels={labels}", dims(&z));
    let _ = writeln!(t, "ROOT r = ({}, {}) tuple(d, {last})\n}}", dims(&z), dims(&shape));
    t
}

/// A matrix product with any axes contracted and an epilogue.
fn product(r: &mut Random) -> String {
    let (b, m, k, n) =
        (r.of(&[1u64, 1, 3]), 1 + r.below(30) as u64, 1 + r.below(70) as u64, r.of(&[1u64, 3, 8, 17, 40, 70]));
    let (flip_x, flip_w) = (r.below(2) == 0, r.below(2) == 0);
    let x = if flip_x { [b, k, m] } else { [b, m, k] };
    let w = if flip_w { [b, n, k] } else { [b, k, n] };
    let (cx, cw) = (if flip_x { 1 } else { 2 }, if flip_w { 2 } else { 1 });
    let ys = dims(&[b, m, n]);
    let (xs, ws) = (dims(&x), dims(&w));
    let weights = if r.below(3) > 0 { format!("w = {ws} constant({})", literal(r, &w)) } else { quarters("w", &ws, 1) };
    format!(
        "HloModule m\nENTRY e {{\n{}\n{weights}\n\
         d = {ys} dot(x, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{cx}}}, rhs_contracting_dims={{{cw}}}\n\
         v = f32[{n}] constant({})\nbb = {ys} broadcast(v), dimensions={{2}}\ns = {ys} add(d, bb)\nROOT r = ({ys}) tuple(s)\n}}\n",
        quarters("x", &xs, 0),
        literal(r, &[n]),
    )
}

/// To quarters.
fn rounded(x: &Tensor) -> Tensor {
    let all: Vec<f32> = (0..x.len()).map(|i| ((x.get_f64(i).unwrap_or(0.0) * 4.0).round() / 4.0) as f32).collect();
    Tensor::of(&x.dims, &all)
}

/// What the interpreter says, and what kernels and machine code say otherwise.
fn check(hlo: &str, folder: &std::path::Path) {
    let module = text::parse(hlo).unwrap_or_else(|e| panic!("{e:?} in\n{hlo}"));
    let lowered = compile::wrap(module).expect("arrays in and out");
    let mut random = Random::new(11);
    let args: Vec<Tensor> = lowered.args.iter().map(|a| rounded(&random.tensor(a.dtype, &a.dims))).collect();
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let want =
        tfaot::interp::evaluate(&lowered.module, lowered.module.entry, &literals).expect("the interpreter runs it");
    let want: Vec<Tensor> = want.leaves().into_iter().cloned().collect();
    for cpu in ["x86-64-v4", "x86-64-v3"] {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a known processor");
        let (_, program) =
            compile::plan(lowered.clone(), "t", "t", &target).unwrap_or_else(|e| panic!("{e:?} on\n{hlo}"));
        let got = tfaot::kernel::evaluate(&program, &args, MOST).unwrap_or_else(|e| panic!("{e:?} on\n{hlo}"));
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            if let Some(why) = departure(g, w) {
                panic!("{cpu}, result {i}: {why} on\n{hlo}");
            }
        }
    }
    if !hlo.contains("round-nearest-even") {
        return;
    }
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(at("m.hlo"), hlo).expect("a writable folder");
    // without inputs both take the same random ones
    succeed(&["hlo", "eval", &at("m.hlo"), "--outputs", &at("want.npz")]);
    succeed(&["hlo", "run", &at("m.hlo"), "--outputs", &at("got.npz")]);
    let (want, got) = (npz(&folder.join("want.npz")), npz(&folder.join("got.npz")));
    for (name, w) in &want {
        if let Some(why) = departure(&got[name], w) {
            panic!("machine code, result {name}: {why} on\n{hlo}");
        }
    }
}

#[test]
fn random_convolutions() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..count() {
        check(&convolution(&mut Random::new(seed)), folder.path());
    }
}

#[test]
fn random_products() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..count() / 2 {
        check(&product(&mut Random::new(1_000_000 + seed)), folder.path());
    }
}

/// A 3x3 convolution of stride 1 that Winograd's method may do, with bias, relu and a reader of the same kind.
struct Square {
    x: [u64; 4],
    w: [u64; 4],
    pads: [u64; 4],
    hlo: String,
}

fn square(r: &mut Random) -> Square {
    let (c, o, m) = (r.of(&[16u64, 32]), r.of(&[16u64, 32, 48]), 16);
    let (n, h, wide) = (1 + r.below(2) as u64, 5 + r.below(11) as u64, 5 + r.below(11) as u64);
    let pads = [0; 4].map(|_: u64| r.of(&[0u64, 1, 1, 2]));
    let (y, z) = (h + pads[0] + pads[1] - 2, wide + pads[2] + pads[3] - 2);
    let literal = |r: &mut Random, name: &str, dims: &[u64]| {
        format!("{name} = {} constant({})", self::dims(dims), literal(r, dims))
    };
    let (ys, zs) = (dims(&[n, y, z, o]), dims(&[n, y, z, m]));
    let weights = literal(r, "w", &[3, 3, c, o]);
    let (bias, next) = (literal(r, "b", &[o]), literal(r, "v", &[3, 3, o, m]));
    let hlo = format!(
        "HloModule m\nENTRY e {{\nx = {} parameter(0)\n{weights}\n\
         c = {ys} convolution(x, w), window={{size=3x3 pad={}_{}x{}_{}}}, dim_labels=b01f_01io->b01f\n\
         {bias}\nbb = {ys} broadcast(b), dimensions={{3}}\na = {ys} add(c, bb)\n\
         zero = f32[] constant(0)\nzs = {ys} broadcast(zero), dimensions={{}}\nm = {ys} maximum(a, zs)\n{next}\n\
         d = {zs} convolution(m, v), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f\n\
         ROOT r = ({ys}, {zs}) tuple(c, d)\n}}\n",
        dims(&[n, h, wide, c]),
        pads[0],
        pads[1],
        pads[2],
        pads[3],
    );
    Square { x: [n, h, wide, c], w: [3, 3, c, o], pads, hlo }
}

/// The sums of the first convolution in doubles, and those of the magnitudes.
fn sums(s: &Square, x: &Tensor, w: &Tensor) -> Vec<(f64, f64)> {
    let [n, h, wide, c] = s.x;
    let o = s.w[3];
    let at = |t: &Tensor, i: u64| t.get_f64(i as usize).expect("an element");
    let mut all = Vec::new();
    for image in 0..n {
        for y in 0..h + s.pads[0] + s.pads[1] - 2 {
            for z in 0..wide + s.pads[2] + s.pads[3] - 2 {
                let mut row = vec![(0.0, 0.0); o as usize];
                for (i, j) in (0..9).map(|t| (t / 3, t % 3)) {
                    let (Some(y), Some(z)) = ((y + i).checked_sub(s.pads[0]), (z + j).checked_sub(s.pads[2])) else {
                        continue;
                    };
                    for channel in (0..c).filter(|_| y < h && z < wide) {
                        let value = at(x, ((image * h + y) * wide + z) * c + channel);
                        for (made, sum) in row.iter_mut().enumerate() {
                            let term = value * at(w, ((i * 3 + j) * c + channel) * o + made as u64);
                            *sum = (sum.0 + term, sum.1 + term.abs());
                        }
                    }
                }
                all.extend(row);
            }
        }
    }
    all
}

/// Winograd's method keeps the bound of direct sums, `4·√K·2⁻²⁴·Σ|a·b|`, in kernels and in machine code.
#[test]
fn squares_keep_the_bound_of_direct_sums() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut chosen = 0;
    for seed in 0..count() / 10 {
        let mut random = Random::new(2_000_000 + seed);
        let s = square(&mut random);
        let module = text::parse(&s.hlo).expect("sound HLO");
        let constants = module.comps[module.entry].insts.values().filter_map(|i| match &i.op {
            tfaot::hlo::Op::Constant(Literal::Array(t)) if t.dims == s.w => Some(t.clone()),
            _ => None,
        });
        let w = constants.take(1).next().expect("the weights");
        let lowered = compile::wrap(module).expect("arrays in and out");
        let x = random.tensor(lowered.args[0].dtype, &s.x);
        let root = ((9 * s.x[3]) as f64).sqrt();
        let want = sums(&s, &x, &w);
        for cpu in ["x86-64-v4", "x86-64-v3"] {
            let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a known processor");
            let (_, program) = compile::plan(lowered.clone(), "t", "t", &target).expect("kernels");
            chosen += program.kernels.values().filter(|k| k.label.starts_with("tiles of")).count();
            let got = tfaot::kernel::evaluate(&program, std::slice::from_ref(&x), MOST).expect("the kernels run");
            for (i, (sum, magnitude)) in want.iter().enumerate() {
                let got = got[0].get_f64(i).expect("an element");
                let bound = 4.0 * root * magnitude / f64::from(1 << 24) + f64::MIN_POSITIVE;
                assert!((got - sum).abs() <= bound, "{cpu}: {i}: {got} instead of {sum}, bound {bound:e}, seed {seed}");
            }
        }
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        std::fs::write(at("m.hlo"), &s.hlo).expect("a writable folder");
        succeed(&["hlo", "eval", &at("m.hlo"), "--outputs", &at("want.npz")]);
        succeed(&["hlo", "run", &at("m.hlo"), "--outputs", &at("got.npz")]);
        let (want, got) = (npz(&folder.path().join("want.npz")), npz(&folder.path().join("got.npz")));
        for (name, w) in &want {
            let values = |t: &Tensor| (0..t.len()).map(|i| t.get_f64(i).unwrap_or(f64::NAN)).collect::<Vec<_>>();
            let (got, want) = (values(&got[name]), values(w));
            let largest = want.iter().fold(0.0f64, |a, x| a.max(x.abs()));
            let off = got.iter().zip(&want).fold(0.0f64, |a, (g, w)| if g == w { a } else { a.max((g - w).abs()) });
            assert!(off <= 1e-5 * largest, "machine code, result {name}: off by {off:e} of {largest}, seed {seed}");
        }
    }
    assert!(chosen > 0, "no convolution was done this way");
}
