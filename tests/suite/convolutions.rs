//! Convolutions by Winograd's method against sums in doubles, in kernels and in machine code. `TFAOT_RANDOM=2000` tries more of
//! them; `tests/families/` has convolutions of every other kind.
use crate::common::{npz, random::Random, succeed};
use tfaot::compile;
use tfaot::hlo::{Literal, text};
use tfaot::kernel::Program;
use tfaot::target::{CodeRequest, Target, TuningTrial};
use tfaot::tensor::Tensor;

/// Statements that one program may take.
const MOST: u64 = 400_000_000;

/// Ten times the number of modules.
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

/// A 3x3 convolution of stride 1 that Winograd's method may do, with bias, relu and a reader of the same kind.
struct Square {
    x: [u64; 4],
    w: [u64; 4],
    pads: [u64; 4],
    hlo: String,
}

fn square(r: &mut Random, large: bool) -> Square {
    let (c, o, m) = if large { (16, 32, 16) } else { (r.of(&[16u64, 32]), r.of(&[16u64, 32, 48]), 16) };
    let (n, h, wide) = (1 + r.below(2) as u64, 5 + r.below(11) as u64, 5 + r.below(11) as u64);
    let (n, h, wide) = if large { (1, h + 50, wide + 50) } else { (n, h, wide) };
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
#[ignore = "slow without optimization; .ci/run runs it with"]
fn squares_keep_the_bound_of_direct_sums() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut chosen, mut strips) = (0, 0);
    for seed in 0..count() / 10 {
        let mut random = Random::new(2_000_000 + seed);
        let large = seed == 0;
        let s = square(&mut random, large);
        let module = text::parse(&s.hlo).expect("sound HLO");
        let constants = module.comps[module.entry].insts.values().filter_map(|i| match &i.op {
            tfaot::hlo::Op::Constant(Literal::Array(t)) if t.dims == s.w => Some(t.clone()),
            _ => None,
        });
        let w = constants.take(1).next().expect("the weights");
        let lowered = compile::wrap_module(module).expect("arrays in and out");
        let x = random.tensor(lowered.args[0].dtype, &s.x);
        let root = ((9 * s.x[3]) as f64).sqrt();
        // the evaluator of kernels takes long for large planes
        let want = if large { Vec::new() } else { sums(&s, &x, &w) };
        for cpu in ["x86-64-v4", "x86-64-v3"] {
            let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a known processor");
            let (_, program) = compile::plan(lowered.clone(), "t", "t", &target).expect("kernels");
            let in_three = program.kernels.values().filter(|k| k.label.starts_with("tiles of")).count();
            let all = program.kernels.values().filter(|k| k.direct_flops() > Some(0)).count();
            chosen += in_three;
            strips += all - in_three;
            if large {
                continue;
            }
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
    assert!(strips > 0, "none was done strip by strip");
}

/// A convolution along lines: what windows, paddings and dilations it has, and channels read and made.
struct Lines {
    x: Vec<u64>,
    window: &'static str,
    w: Vec<u64>,
    y: Vec<u64>,
}

/// Windows of every number of axes that Winograd's method goes along one axis of.
fn lines() -> Vec<Lines> {
    let of = |x: &[u64], window, w: &[u64], y: &[u64]| Lines { x: x.to_vec(), window, w: w.to_vec(), y: y.to_vec() };
    vec![
        of(&[1, 70, 32], "size=16 pad=7_8", &[16, 32, 32], &[1, 70, 32]),
        of(&[2, 60, 16], "size=11 pad=15_15 rhs_dilate=3", &[11, 16, 32], &[2, 60, 32]),
        of(&[1, 90, 32], "size=4", &[4, 32, 16], &[1, 87, 16]),
        of(&[1, 90, 32], "size=2 pad=1_0", &[2, 32, 32], &[1, 90, 32]),
        of(&[1, 1301, 16], "size=8 pad=3_4", &[8, 16, 16], &[1, 1301, 16]),
        of(&[1, 3, 462, 16], "size=1x11 pad=0_0x15_15 rhs_dilate=1x3", &[1, 11, 16, 16], &[1, 3, 462, 16]),
        of(&[1, 45, 41, 16], "size=1x3 pad=0_0x1_1", &[1, 3, 16, 32], &[1, 45, 41, 32]),
        of(&[1, 9, 21, 32], "size=1x7 pad=0_0x3_3", &[1, 7, 32, 16], &[1, 9, 21, 16]),
        of(&[1, 18, 10, 16], "size=5x3 pad=2_2x0_0 stride=1x2", &[5, 3, 16, 32], &[1, 18, 4, 32]),
        of(&[1, 5, 6, 12, 16], "size=3x3x3 pad=1_1x1_1x1_1", &[3, 3, 3, 16, 32], &[1, 5, 6, 12, 32]),
    ]
}

/// Along one axis of a window too.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn lines_keep_the_bound_of_direct_sums() {
    let (mut strips, mut at_each_call) = (0, 0);
    for (seed, l) in lines().into_iter().enumerate() {
        let mut random = Random::new(3_000_000 + seed as u64);
        // where most memory is needed elsewhere, weights are transformed at each call
        let (elsewhere, root) = match seed % 2 {
            0 => ("", "r = (f32[], YS) tuple(low, c)"),
            _ => (
                "i = f32[400] iota(), iota_dimension=0\nbig = f32[400,400] dot(i, i), lhs_contracting_dims={}, rhs_contracting_dims={}\n\
                 few = f32[4,4] reduce-window(big, low), window={size=100x100 stride=100x100}, to_apply=max\n",
                "r = (f32[4,4], YS) tuple(few, c)",
            ),
        };
        let axes = &"012"[..l.x.len() - 2];
        let weights = literal(&mut random, &l.w);
        let hlo = format!(
            "HloModule m\nmax {{\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT m = f32[] maximum(a, b)\n}}\n\
             ENTRY e {{\nx = {} parameter(0)\nw = {} constant({weights})\nlow = f32[] constant(0)\n{elsewhere}\
             c = {} convolution(x, w), window={{{}}}, dim_labels=b{axes}f_{axes}io->b{axes}f\nROOT {}\n}}\n",
            dims(&l.x),
            dims(&l.w),
            dims(&l.y),
            l.window,
            root.replace("YS", &dims(&l.y))
        );
        let lowered = compile::wrap_module(text::parse(&hlo).expect("sound HLO")).expect("arrays in and out");
        let x = random.tensor(lowered.args[0].dtype, &l.x);
        // the same in doubles, and of the magnitudes
        let in_doubles = |hlo: &str, at: &dyn Fn(f64) -> f64| {
            let module = text::parse(&hlo.replace("f32[", "f64[")).expect("sound HLO");
            let numbers = (0..x.len()).map(|i| at(x.get_f64(i).expect("an element"))).collect();
            let x = Tensor::from_vec(tfaot::tensor::DType::F64, l.x.clone(), numbers);
            let made = tfaot::interp::evaluate(&module, module.entry, &[Literal::Array(x)]).expect("it runs");
            made.leaves()[1].clone()
        };
        let want = in_doubles(&hlo, &|v| v);
        let magnitudes = in_doubles(&hlo.replace(&weights, &weights.replace('-', "")), &f64::abs);
        let terms: u64 = l.w[..l.w.len() - 1].iter().product();
        for cpu in ["x86-64-v4", "x86-64-v3"] {
            let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a known processor");
            let mut target = CodeRequest::from(target);
            let plan = |target: &CodeRequest| compile::plan(lowered.clone(), "t", "t", target).expect("kernels").1;
            let is_tiled = |p: &Program| p.kernels.values().any(|k| k.direct_flops().is_some());
            let mut program = plan(&target);
            if !is_tiled(&program) {
                // where direct sums are expected to be faster, this is the other way
                target.tuning.trial = TuningTrial::OtherMethod;
                program = plan(&target);
            }
            assert!(is_tiled(&program), "{cpu}: {} is not done this way", l.window);
            strips += usize::from(program.buffers.values().any(|b| b.place == tfaot::kernel::BufferLocation::Stack));
            at_each_call += program.kernels.values().filter(|k| k.label.starts_with("weights of")).count();
            let got = tfaot::kernel::evaluate(&program, std::slice::from_ref(&x), MOST).expect("the kernels run");
            for i in 0..want.len() {
                let [got, want, magnitude] = [&got[1], &want, &magnitudes].map(|t| t.get_f64(i).expect("an element"));
                let bound = 4.0 * (terms as f64).sqrt() * magnitude / f64::from(1 << 24) + f64::MIN_POSITIVE;
                assert!(
                    (got - want).abs() <= bound,
                    "{cpu}: {}: {i}: {got} instead of {want}, bound {bound:e}",
                    l.window
                );
            }
        }
    }
    assert!(strips >= 6, "{strips} were done strip by strip");
    assert!(at_each_call >= 2, "the weights of {at_each_call} were transformed at each call");
}

/// Maxima of neighbours are taken from the tiles in registers: the bits of a pool that reads them from memory, without that memory.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn pools_take_what_tiles_make() {
    // HLO's maximum, and the one of TensorFlow's kernels, which passes over NaN
    let maximum = ("maximum(a, b)", "-inf");
    let passing = ("select(l, b, a)", "-3.4028235e38");
    for (results, window, dilated, fused, (largest, low)) in [
        (82, 2, 1, true, maximum),
        (84, 4, 1, true, maximum),
        (84, 3, 1, false, maximum),
        (84, 2, 2, false, maximum),
        (82, 2, 1, true, passing),
    ] {
        let mut random = Random::new(4_000_000 + results);
        let weights = [literal(&mut random, &[3, 32, 64]), literal(&mut random, &[64])];
        let (taken, pad) = (results / window, dilated);
        let hlo = |root: &str, results_of: &str| {
            format!(
                "HloModule m\nmax {{\na = f32[] parameter(0)\nb = f32[] parameter(1)\n\
                 l = pred[] compare(b, a), direction=GT\nROOT m = f32[] {largest}\n}}\n\
                 ENTRY e {{\nx = f32[4,{results},32] parameter(0)\nw = f32[3,32,64] constant({})\nb = f32[64] constant({})\n\
                 c = f32[4,{results},64] convolution(x, w), window={{size=3 pad={pad}_{pad} rhs_dilate={dilated}}}, \
                 dim_labels=b0f_0io->b0f\n\
                 bs = f32[4,{results},64] broadcast(b), dimensions={{2}}\ns = f32[4,{results},64] add(c, bs)\n\
                 zero = f32[] constant(0)\nzs = f32[4,{results},64] broadcast(zero), dimensions={{}}\n\
                 m = f32[4,{results},64] maximum(s, zs)\nwide = f32[4,{results},1,64] reshape(m)\n\
                 low = f32[] constant({low})\n\
                 p = f32[4,{taken},1,64] reduce-window(wide, low), \
                 window={{size=1x{window}x1x1 stride=1x{window}x1x1}}, to_apply=max\n\
                 bt = f32[4,{taken},1,64] broadcast(b), dimensions={{3}}\nt = f32[4,{taken},1,64] subtract(p, bt)\n\
                 ROOT r = ({results_of}) tuple({root})\n}}\n",
                weights[0], weights[1]
            )
        };
        let (pooled, whole) = (format!("f32[4,{taken},1,64]"), format!("f32[4,{results},64]"));
        let alone = hlo("t", &pooled);
        let both = hlo("t, m", &format!("{pooled}, {whole}"));
        let x = random.tensor(tfaot::tensor::DType::F32, &[4, results, 32]);
        let cpus: &[&str] = if window == 4 { &["x86-64-v4", "x86-64-v3"] } else { &["x86-64-v4"] };
        for &cpu in cpus {
            let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a known processor");
            let run = |hlo: &str| {
                let lowered = compile::wrap_module(text::parse(hlo).expect("sound HLO")).expect("arrays in and out");
                let program = compile::plan(lowered, "t", "t", &target).expect("kernels").1;
                assert!(program.kernels.values().any(|k| k.direct_flops().is_some()), "by Winograd's method");
                let made = tfaot::kernel::evaluate(&program, std::slice::from_ref(&x), MOST).expect("the kernels run");
                (program, made)
            };
            let (program, got) = run(&alone);
            let (_, want) = run(&both);
            assert_eq!(got[0].bytes, want[0].bytes, "{cpu}: windows of {window}");
            let is_whole = |b: &tfaot::kernel::Buffer| b.elements == 4 * results * 64;
            assert_eq!(program.buffers.values().any(is_whole), !fused, "{cpu}: windows of {window}, {dilated}");
        }
    }
}

/// A 3x3 convolution of `channels` channels of bytes, over a plane of 11x12, whose weights are all `weight`.
fn convolution_of_bytes(dtype: &str, channels: u64, weight: i64) -> String {
    let row = format!("{{{}}}", vec![weight.to_string(); 16].join(","));
    let tap = format!("{{{}}}", vec![row; channels as usize].join(","));
    let taps = format!("{{{}}}", vec![format!("{{{}}}", vec![tap; 3].join(",")); 3].join(","));
    format!(
        "HloModule m\nENTRY e {{\nx = {dtype}[1,11,12,{channels}] parameter(0)\nw = s8[3,3,{channels},16] constant({taps})\n\
         ROOT c = s32[1,11,12,16] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f\n}}\n"
    )
}

/// Winograd's method on whole numbers has the bits of direct sums at the ends of what bytes are, up to as many channels as its results fit for, and
/// is not used for more.
#[test]
fn whole_numbers_are_exact_up_to_the_bound() {
    let cases = [("s8", -128, -128, 224, "x86-64-v3"), ("u8", 255, -128, 112, "x86-64")];
    for (dtype, value, weight, most, cpu) in cases {
        for channels in [most, most + 16] {
            let lowered =
                compile::wrap_module(text::parse(&convolution_of_bytes(dtype, channels, weight)).expect("HLO"));
            let lowered = lowered.expect("arrays in and out");
            let x = &lowered.args[0];
            let x = Tensor::new(x.dtype, x.dims.clone(), vec![value as u8; (132 * channels) as usize]);
            let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a processor");
            let (_, program) = compile::plan(lowered.clone(), "t", "t", &target).expect("kernels");
            let is_winograd = program.kernels.values().any(|k| k.direct_flops() > Some(0));
            assert_eq!(is_winograd, channels == most, "{dtype} {channels} {cpu}");
            if !is_winograd {
                continue;
            }
            let got = tfaot::kernel::evaluate(&program, std::slice::from_ref(&x), MOST).expect("the kernels run");
            for (i, got) in got[0].view::<i32>().iter().enumerate() {
                let inside = |at: usize, size: usize| if at == 0 || at + 1 == size { 2 } else { 3 };
                let taps = inside(i / 16 / 12, 11) * inside(i / 16 % 12, 12);
                let want = taps * channels as i64 * value * weight;
                assert_eq!(i64::from(*got), want, "{dtype} {value} by {weight}, {channels} channels, {cpu}, {i}");
            }
        }
    }
}
