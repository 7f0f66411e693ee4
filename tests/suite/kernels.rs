//! Kernels, run plainly, against the interpreter of the HLO that they come from: graphs of `testdata/graphs/`, cases in HLO
//! text, and random modules.
use crate::common::{npz, path, random::Random, tolerance::departure};
use tfaot::compile;
use tfaot::hlo::{Literal, text};
use tfaot::lower::Lowered;
use tfaot::prepare::Request;
use tfaot::scalar::eval::convert;
use tfaot::target::Target;
use tfaot::tensor::{DType, Tensor};

/// Statements that one program may take; the largest of the graphs takes a tenth.
const MOST: u64 = 200_000_000;

/// The targets whose lanes and registers shape the loops differently.
fn targets() -> Vec<Target> {
    let of = |triple: &str, cpu: &str| Target::resolve(Some(triple), Some(cpu), None).expect("a known processor");
    vec![of("x86_64-unknown-linux-gnu", "x86-64-v4"), of("x86_64-unknown-linux-gnu", "x86-64-v3")]
}

/// Optimises, schedules, runs both ways and compares; gives what departs.
fn compare(lowered: &Lowered, args: &[Tensor], target: &Target) -> Option<String> {
    let (module, program) = match compile::plan(lowered.clone(), "t", "t", target) {
        Ok(planned) => planned,
        Err(e) => return Some(format!("no kernels: {e:?}")),
    };
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let want = tfaot::interp::evaluate(&module, module.entry, &literals).expect("the interpreter runs it");
    let got = match tfaot::kernel::evaluate(&program, args, MOST) {
        Ok(got) => got,
        Err(e) => return Some(format!("the kernels fail: {e:?}")),
    };
    let want = want.leaves();
    got.iter().zip(&want).enumerate().find_map(|(i, (g, w))| departure(g, w).map(|why| format!("result {i}: {why}")))
}

fn check_text(hlo: &str) {
    let module = text::parse(hlo).expect("sound HLO text");
    tfaot::hlo::verify::verify(&module).expect("sound HLO");
    let lowered = compile::wrap_module(module).expect("arrays in and out");
    let mut random = Random::new(7);
    let args: Vec<Tensor> = lowered.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect();
    for target in targets() {
        if let Some(why) = compare(&lowered, &args, &target) {
            panic!("{} on\n{hlo}\n{why}", target.cpu);
        }
    }
}

fn check_graph(name: &str) {
    let folder = path("testdata/graphs").join(name);
    let request = Request { fetches: npz(&folder.join("expect.npz")).into_keys().collect(), ..Request::default() };
    let fronts = compile::load_and_lower(&folder.join("graph.pb"), None, &request).expect("the graph lowers");
    let lowered = fronts.entries.into_iter().next().expect("a function").lowered;
    let feeds = npz(&folder.join("feeds.npz"));
    let args: Vec<Tensor> = lowered
        .args
        .iter()
        .map(|a| feeds.get(&a.name).or_else(|| feeds.get(a.name.trim_end_matches(":0"))).expect("a feed").clone())
        .collect();
    if let Some(why) = compare(&lowered, &args, &targets()[0]) {
        panic!("{name}: {why}");
    }
}

macro_rules! graphs {
    ($($name:ident)*) => { mod graph { $(#[test] fn $name() { super::check_graph(stringify!($name)); })* } };
}
graphs! { attention functions loops norms reductions resize slices }

#[test]
fn softmax_after_a_layer() {
    check_text(
        "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n\
         max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n\
         ENTRY e {\n x = f32[5,33] parameter(0)\n w = f32[33,21] parameter(1)\n b = f32[21] parameter(2)\n\
         d = f32[5,21] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         bb = f32[5,21] broadcast(b), dimensions={1}\n s = f32[5,21] add(d, bb)\n\
         zero = f32[] constant(0)\n zeros = f32[5,21] broadcast(zero), dimensions={}\n y = f32[5,21] maximum(s, zeros)\n\
         low = f32[] constant(-inf)\n m = f32[5] reduce(y, low), dimensions={1}, to_apply=max\n\
         mb = f32[5,21] broadcast(m), dimensions={0}\n c = f32[5,21] subtract(y, mb)\n ex = f32[5,21] exponential(c)\n\
         t = f32[5] reduce(ex, zero), dimensions={1}, to_apply=add\n tb = f32[5,21] broadcast(t), dimensions={0}\n\
         ROOT p = f32[5,21] divide(ex, tb) }\n",
    );
}

/// Windows whose taps are written out whole, by rows or not at all; tiles that don't come out even; channels in vectors of
/// several widths; strides, dilation and weights read backwards.
#[test]
fn depthwise_windows() {
    for (size, output, window) in [
        ("6,19,40", "6,19,40", "3x3 pad=1_1x1_1"),
        ("9,30,23", "5,15,23", "5x5 stride=2x2 pad=2_2x2_2"),
        ("4,37,16", "4,13,16", "1x13 stride=1x2 pad=0_0x0_0"),
        ("15,15,7", "3,3,7", "7x7 rhs_dilate=2x2 rhs_reversal=1x1"),
    ] {
        let (channels, taps) = (size.rsplit(',').next().unwrap_or("1"), window.split(' ').next().unwrap_or("1x1"));
        let kernel = format!("f32[{},1,{channels}]", taps.replace('x', ","));
        check_text(&format!(
            "HloModule m\nENTRY e {{\n x = f32[2,{size}] parameter(0)\n w = {kernel} parameter(1)\n\
             c = f32[2,{output}] convolution(x, w), window={{size={window}}}, dim_labels=b01f_01io->b01f, \
             feature_group_count={channels}\n l = f32[2,{output}] logistic(c)\n\
             ROOT y = f32[2,{output}] multiply(c, l) }}\n"
        ));
    }
}

/// The last vector of a tile is narrower than the others where half of it is enough.
#[test]
fn products_with_few_columns_left() {
    for (rows, columns) in [(29, 24), (29, 40), (7, 20), (5, 33), (3, 2), (30, 89)] {
        check_text(&format!(
            "HloModule m\nENTRY e {{\n x = f32[{rows},50] parameter(0)\n w = f32[50,{columns}] parameter(1)\n\
             ROOT d = f32[{rows},{columns}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}\n"
        ));
    }
}

/// Attention; with `more`, its scores are a result too, so that they have memory and kernels of their own.
fn attention(more: bool) -> String {
    let (scores, results) = if more { (", f32[2,37,70]", ", s") } else { ("", "") };
    format!(
        "HloModule m\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }}\n\
         max {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }}\n\
         ENTRY e {{\n q = f32[2,37,20] parameter(0)\n k = f32[2,70,20] parameter(1)\n v = f32[2,70,24] parameter(2)\n\
         mask = f32[70] parameter(3)\n masks = f32[2,37,70] broadcast(mask), dimensions={{2}}\n\
         d = f32[2,37,70] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, \
         rhs_contracting_dims={{2}}\n s = f32[2,37,70] add(d, masks)\n\
         low = f32[] constant(-inf)\n m = f32[2,37] reduce(s, low), dimensions={{2}}, to_apply=max\n\
         mb = f32[2,37,70] broadcast(m), dimensions={{0,1}}\n c = f32[2,37,70] subtract(s, mb)\n\
         ex = f32[2,37,70] exponential(c)\n zero = f32[] constant(0)\n\
         t = f32[2,37] reduce(ex, zero), dimensions={{2}}, to_apply=add\n\
         tb = f32[2,37,70] broadcast(t), dimensions={{0,1}}\n p = f32[2,37,70] divide(ex, tb)\n\
         y = f32[2,37,24] dot(p, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, \
         rhs_contracting_dims={{1}}\n ROOT out = (f32[2,37,24]{scores}) tuple(y{results}) }}\n"
    )
}

/// Scores that nothing else reads have no memory, and the bits are those of kernels that have them in memory.
/// A part of the next value of a loop's state is made before the old value dies, and so outside of the state's memory: the rest of the
/// next value belongs beside it.
#[test]
fn a_joined_next_value_lies_in_one_place() {
    check_text(
        "HloModule m\n\
         left { p = (s32[], c64[4,4]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n \
         ROOT r = pred[] compare(i, n), direction=LT }\n\
         body { p = (s32[], c64[4,4]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n one = s32[] constant(1)\n \
         next = s32[] add(i, one)\n x = c64[4,4] get-tuple-element(p), index=1\n top = c64[1,4] slice(x), slice={[0:1],[0:4]}\n \
         unit = c64[] constant((1, 0))\n units = c64[3,4] broadcast(unit), dimensions={}\n \
         y = c64[4,4] concatenate(top, units), dimensions={0}\n first = c64[4,1] slice(y), slice={[0:4],[0:1]}\n \
         others = c64[4,3] slice(y), slice={[0:4],[1:4]}\n re = f32[4,3] real(others)\n im = f32[4,3] imag(others)\n \
         z = c64[4,3] complex(re, im)\n w = c64[4,4] concatenate(first, z), dimensions={1}\n \
         ROOT r = (s32[], c64[4,4]) tuple(next, w) }\n\
         ENTRY e { x = c64[4,4] parameter(0)\n zero = s32[] constant(0)\n t = (s32[], c64[4,4]) tuple(zero, x)\n \
         l = (s32[], c64[4,4]) while(t), condition=left, body=body\n ROOT r = c64[4,4] get-tuple-element(l), index=1 }\n",
    );
}

#[test]
fn attention_in_one_kernel() {
    check_text(&attention(false));
    let mut results = Vec::new();
    for more in [false, true] {
        let module = text::parse(&attention(more)).expect("sound HLO text");
        let lowered = compile::wrap_module(module).expect("arrays in and out");
        let mut random = Random::new(3);
        let args: Vec<Tensor> = lowered.args.iter().map(|a| random.tensor(a.dtype, &a.dims)).collect();
        let (_, program) = compile::plan(lowered, "t", "t", &targets()[0]).expect("kernels");
        let products = program.kernels.values().filter(|k| k.label != "pack").count();
        assert_eq!(products, if more { 3 } else { 1 });
        results.push(tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run")[0].clone());
    }
    assert_eq!(results[0].bytes, results[1].bytes);
}

/// Rounds `x` by random bits, by the interpreter and by kernels.
fn rounded_by_random_bits(x: Tensor, random: Tensor, to: DType) -> Vec<i64> {
    let (from, bits, n) = (x.dtype, random.dtype, x.dims[0]);
    let hlo = format!(
        "HloModule m\nENTRY e {{\n  x = {from}[{n}] parameter(0)\n  r = {bits}[{n}] parameter(1)\n  ROOT y = {to}[{n}] stochastic-convert(x, r)\n}}\n"
    );
    let module = text::parse(&hlo).expect("sound HLO text");
    tfaot::hlo::verify::verify(&module).expect("sound HLO");
    let literals = [Literal::Array(x.clone()), Literal::Array(random.clone())];
    let want = tfaot::interp::evaluate(&module, module.entry, &literals).expect("the interpreter runs it");
    let (_, program) =
        compile::plan(compile::wrap_module(module).expect("arrays"), "t", "t", &targets()[0]).expect("kernels");
    let got = tfaot::kernel::evaluate(&program, &[x, random], MOST).expect("the kernels run");
    assert_eq!(&got[0], want.leaves()[0], "{from} to {to}");
    convert(&got[0], DType::S64).view::<i64>().to_vec()
}

#[test]
fn fractions_are_rounded_up_where_they_are_more_than_random_bits() {
    let half = 1 << 31;
    let x: Vec<f32> =
        vec![2.5, 2.5, -2.5, -2.5, 0.25, 3.0, 126.75, 127.0, 300.0, -128.0, -1e30, f32::NAN, f32::INFINITY];
    let random: Vec<u32> = vec![half - 1, half, half - 1, half, (1 << 30) - 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let want = [3, 2, -3, -2, 1, 3, 127, 127, 127, -128, -128, 0, 127];
    let f32s = Tensor::from_vec(DType::F32, vec![x.len() as u64], x);
    let u32s = Tensor::from_vec(DType::U32, vec![random.len() as u64], random);
    assert_eq!(rounded_by_random_bits(f32s.clone(), u32s.clone(), DType::S8), want);
    // Of 16 random bits: the upper half of those of 32. An f16 reaches neither end of s32 but by infinity.
    let f16s = convert(&f32s, DType::F16);
    let upper = u32s.view::<u32>().iter().map(|r| (r >> 16) as u16).collect();
    let u16s = Tensor::from_vec(DType::U16, u32s.dims.clone(), upper);
    let ends = [i64::from(i32::MIN), 0, i64::from(i32::MAX)];
    let want = [&[3, 2, -3, -2, 1, 3, 127, 127, 300, -128][..], &ends].concat();
    assert_eq!(rounded_by_random_bits(f16s, u16s, DType::S32), want);
    let f64s = Tensor::from_vec(DType::F64, vec![4], vec![1e18 + 0.0, -1e300, 9.3e18, 0.5 + f64::EPSILON]);
    let u64s = Tensor::from_vec(DType::U64, vec![4], vec![0, 0, 0, 1u64 << 63]);
    assert_eq!(rounded_by_random_bits(f64s, u64s, DType::S64), [1_000_000_000_000_000_000, i64::MIN, i64::MAX, 1]);
}

#[test]
fn random_modules() {
    for seed in 0..60 {
        check_text(&crate::common::random::module(seed));
    }
}

#[test]
fn arguments_must_fit() {
    let module = text::parse("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }\n").expect("HLO");
    let lowered = compile::wrap_module(module).expect("an array");
    let (_, program) = compile::plan(lowered, "t", "t", &targets()[0]).expect("kernels");
    let wrong = Tensor::new(DType::F32, vec![3], vec![0; 12]);
    assert!(tfaot::kernel::evaluate(&program, &[wrong], MOST).is_err());
}
