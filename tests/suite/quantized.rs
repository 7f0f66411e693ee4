//! Products of quantised values on integers: whether they are, and what comes out.
use crate::common::{npz, path, random::Random, said, succeed, tfaot};
use serde_json::Value;
use tfaot::compile;
use tfaot::hlo::{Literal, text};
use tfaot::lower::Lowered;
use tfaot::prepare::Request;
use tfaot::target::{CodeRequest, MathType, Precision, QuantizedMath, QuantizedProducts, Target};
use tfaot::tensor::Tensor;

const MOST: u64 = 200_000_000;
const GRAPH: &str = "testdata/graphs/quantized_layers/graph.pb";
const FEEDS: &str = "testdata/graphs/quantized_layers/feeds.npz";
const EXPECT: &str = "testdata/graphs/quantized_layers/expect.npz";
const LINUX: &str = "x86_64-unknown-linux-gnu";

fn request(triple: &str, cpu: &str) -> CodeRequest {
    Target::resolve(Some(triple), Some(cpu), None).expect("a known processor").into()
}

/// Processors with AVX512-VNNI, with `vpmaddwd` on vectors of two widths, and with `sdot`.
fn requests() -> Vec<CodeRequest> {
    let arm = request("aarch64-unknown-linux-gnu", "neoverse-n1");
    ["icelake-server", "x86-64-v3", "x86-64-v2"].map(|cpu| request(LINUX, cpu)).into_iter().chain([arm]).collect()
}

fn parse(hlo: &str) -> Lowered {
    compile::wrap_module(text::parse(hlo).expect("sound HLO text")).expect("arrays in and out")
}

/// The products of a module, by code for AVX512-VNNI.
fn products(lowered: &Lowered) -> QuantizedProducts {
    let (_, program) = compile::plan(lowered.clone(), "t", "t", request(LINUX, "icelake-server")).expect("kernels");
    QuantizedProducts::clone(&program.quantized)
}

/// Draws a layer: an activation `scale * round(clamp(x))` of some range, by constants that are levels times a scale for each feature.
struct Layer {
    text: String,
    /// The step of a following quantisation: no more than this may lie between two answers.
    largest: f64,
}

fn layer(seed: u64) -> Layer {
    let mut random = Random::new(seed);
    let (rows, inner) = (random.of(&[1u64, 3, 8, 17]), 4 * random.of(&[2u64, 3, 8, 33]));
    let columns = random.of(&[8u64, 9, 16, 40]);
    let least = random.of(&[0i64, -128, -127, -100, -3, -255]);
    let scale = random.of(&[0.0235f32, 1.5, 3.7e-4, 17.3]);
    let is_division = random.of(&[false, true]);
    let (op, number) = if is_division { ("divide", 1.0 / scale) } else { ("multiply", scale) };
    let rounding = random.of(&["round-nearest-even", "round-nearest-afz", "floor"]);
    let steps: Vec<f32> = (0..columns).map(|c| 0.004 * (1.0 + 0.37 * c as f32)).collect();
    let weights = (0..inner).map(|_| {
        let row = (0..columns).map(|c| format!("{:?}", (random.below(255) as f32 - 127.0) * steps[c as usize]));
        format!("{{{}}}", row.collect::<Vec<_>>().join(","))
    });
    let weights = weights.collect::<Vec<_>>().join(",");
    let text = format!(
        "HloModule m\nENTRY e {{\n x = f32[{rows},{inner}] parameter(0)\n low = f32[] constant({least})\n high = f32[] constant({})\n \
         grow = f32[] constant(90)\n grows = f32[{rows},{inner}] broadcast(grow), dimensions={{}}\n g = f32[{rows},{inner}] multiply(x, grows)\n \
         lows = f32[{rows},{inner}] broadcast(low), dimensions={{}}\n highs = f32[{rows},{inner}] broadcast(high), dimensions={{}}\n \
         c = f32[{rows},{inner}] clamp(lows, g, highs)\n q = f32[{rows},{inner}] {rounding}(c)\n s = f32[] constant({number:?})\n \
         ss = f32[{rows},{inner}] broadcast(s), dimensions={{}}\n d = f32[{rows},{inner}] {op}(q, ss)\n \
         w = f32[{inner},{columns}] constant({{{weights}}})\n \
         p = f32[{rows},{columns}] dot(d, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n \
         ROOT r = (f32[{rows},{columns}], f32[{rows},{inner}]) tuple(p, d) }}\n",
        least + 255,
    );
    let largest = inner as f64 * 255.0 * f64::from(scale) * 127.0 * f64::from(steps[columns as usize - 1]);
    Layer { text, largest }
}

#[test]
fn layers_are_integers_within_the_bound() {
    for seed in 0..60 {
        let Layer { text, largest } = layer(seed);
        let lowered = parse(&text);
        let args: Vec<Tensor> = lowered.args.iter().map(|a| Random::new(seed + 7).tensor(a.dtype, &a.dims)).collect();
        let plain = interpreted(&lowered.module, &args);
        for request in requests() {
            let (module, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
            assert_eq!(program.quantized.kept, [], "{seed}: {text}");
            assert_eq!(program.quantized.integers.len(), 1, "{seed}: {text}");
            let rounded = interpreted(&module, &args);
            let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
            // 8 roundings of the sum of magnitudes; a sum of floats, with which it is compared, has one a term
            let bound = largest * (8.0 + 140.0) / f64::from(1 << 24);
            for i in 0..plain[0].len() {
                let number = |t: &Tensor| t.get_f64(i).unwrap_or(f64::NAN);
                let what = format!("{seed} {}: {i}", request.target.cpu);
                assert!((number(&rounded[0]) - number(&plain[0])).abs() <= bound, "{what}");
                assert!((number(&got[0]) - number(&rounded[0])).abs() <= bound, "{what}");
            }
            // the same numbers; a zero may have lost its sign
            let numbers = |t: &Tensor| t.view::<f32>().to_vec();
            assert!(numbers(&rounded[1]) == numbers(&plain[1]), "{seed}: {text}");
            assert!(numbers(&got[1]) == numbers(&plain[1]), "{seed}: {text}");
        }
    }
}

fn interpreted(module: &tfaot::hlo::Module, args: &[Tensor]) -> Vec<Tensor> {
    let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
    let all = tfaot::interp::evaluate(module, module.entry, &literals).expect("the interpreter runs it");
    all.leaves().into_iter().cloned().collect()
}

#[test]
fn a_nan_reaches_the_results_of_its_row() {
    let lowered = parse(&layer(4).text);
    let (rows, inner) = (lowered.args[0].dims[0] as usize, lowered.args[0].dims[1] as usize);
    assert!(rows > 1, "{rows} rows");
    let mut values = vec![0.5f32; rows * inner];
    values[inner + 3] = f32::NAN;
    let args = [Tensor::of(&lowered.args[0].dims, &values)];
    for request in requests() {
        let (_, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
        let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
        let columns = got[0].len() / rows;
        for (i, v) in got[0].view::<f32>().iter().enumerate() {
            assert_eq!(v.is_nan(), i / columns == 1, "{i} of {}", request.target.cpu);
        }
        // another reader of the activation finds the NaN where it was
        for (i, v) in got[1].view::<f32>().iter().enumerate() {
            assert_eq!(v.is_nan(), i == inner + 3, "{i} of {}", request.target.cpu);
        }
    }
}

#[test]
fn infinities_are_clamped() {
    let lowered = parse(&layer(4).text);
    let count = lowered.args[0].dims.iter().product::<u64>() as usize;
    let values: Vec<f32> = (0..count).map(|i| if i % 3 == 0 { f32::INFINITY } else { f32::NEG_INFINITY }).collect();
    let args = [Tensor::of(&lowered.args[0].dims, &values)];
    let plain = interpreted(&lowered.module, &args);
    let (_, program) = compile::plan(lowered, "t", "t", request(LINUX, "icelake-server")).expect("kernels");
    let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
    let numbers = |t: &Tensor| t.view::<f32>().to_vec();
    assert!(numbers(&got[0]).iter().zip(numbers(&plain[0])).all(|(g, p)| (g - p).abs() <= 1e-4 * p.abs().max(1.0)));
}

/// A product of `x`, an expression of `p: f32[2,16]`, by 16 x 8 weights, an expression.
fn product_of(x: &str, w: &str) -> Lowered {
    parse(&format!(
        "HloModule m\nENTRY e {{\n p = f32[2,16] parameter(0)\n v = f32[16,8] parameter(1)\n k = f32[16,8] constant({})\n \
         zero = f32[] constant(0)\n most = f32[] constant(255)\n zeros = f32[2,16] broadcast(zero), dimensions={{}}\n \
         mosts = f32[2,16] broadcast(most), dimensions={{}}\n s = f32[] constant(0.1)\n ss = f32[2,16] broadcast(s), dimensions={{}}\n \
         c = f32[2,16] clamp(zeros, p, mosts)\n q = f32[2,16] floor(c)\n wide = f32[2,16] floor(p)\n d = f32[2,16] multiply(q, ss)\n \
         x = f32[2,16] {x}\n w = f32[16,8] {w}\n \
         ROOT r = f32[2,8] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}\n",
        constants(|r, c| ((r * 8 + c) % 101) as f32 - 50.0),
    ))
}

fn constants(of: impl Fn(u64, u64) -> f32) -> String {
    let row = |r| format!("{{{}}}", (0..8).map(|c| format!("{:?}", of(r, c))).collect::<Vec<_>>().join(","));
    format!("{{{}}}", (0..16).map(row).collect::<Vec<_>>().join(","))
}

#[test]
fn what_is_not_quantised_is_not_counted() {
    let levels = "copy(k)";
    for x in ["copy(p)", "multiply(p, ss)", "multiply(wide, ss)", "multiply(q, c)"] {
        assert!(products(&product_of(x, levels)).is_empty(), "{x}");
    }
    assert_eq!(products(&product_of("multiply(q, ss)", levels)).integers.len(), 1);
}

#[test]
fn what_keeps_a_product_is_named() {
    let reasons = |lowered: &Lowered| products(lowered).kept.iter().map(|k| k.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&product_of("copy(d)", "copy(v)")), ["its weights are computed by each call"]);
    let wild = format!("constant({})", constants(|r, c| ((r * 8 + c) as f32 * 0.37).sin()));
    let told = reasons(&product_of("copy(d)", &wild));
    assert!(told.len() == 1 && told[0].contains("no multiples of a scale"), "{told:?}");
    let lowered = product_of("copy(d)", "copy(k)");
    let kept = |request: &CodeRequest| {
        let (_, program) = compile::plan(lowered.clone(), "t", "t", request).expect("kernels");
        program.quantized.kept.iter().map(|k| k.reason).collect::<Vec<_>>()
    };
    let mut off = request(LINUX, "x86-64-v4");
    off.precision.quantized = QuantizedMath::Off;
    assert!(kept(&off)[0].contains("--quantized off"));
    let portable = Precision { math: MathType::Portable, ..Precision::default() };
    assert!(kept(&CodeRequest { precision: portable, ..request(LINUX, "x86-64-v4") })[0].contains("--math portable"));
    assert!(kept(&request("riscv64-unknown-linux-gnu", "rv64gc"))[0].contains("no instruction"));
}

#[test]
fn tensorflows_layers_are_integers_with_the_same_bits() {
    let fronts = compile::load_and_lower(&path(GRAPH), None, &Request::default()).expect("the graph lowers");
    let lowered = fronts.entries.into_iter().next().expect("a function").lowered;
    let feeds = npz(&path(FEEDS));
    let args: Vec<Tensor> = lowered.args.iter().map(|_| feeds.values().next().expect("a feed").clone()).collect();
    let want = npz(&path(EXPECT));
    for request in requests() {
        let (_, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
        let counts = (program.quantized.integers.len(), program.quantized.kept.len());
        assert_eq!(counts, (6, 0), "{}: {:?}", request.target.cpu, program.quantized);
        let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
        for (info, got) in lowered.results.iter().zip(&got) {
            let want = want.get(&info.name).or_else(|| want.get(info.name.trim_end_matches(":0"))).expect("an answer");
            assert!(got == want, "{} of {}", info.name, request.target.cpu);
        }
    }
}

#[test]
fn check_and_metadata_name_the_products() {
    let json: Value = serde_json::from_str(&succeed(&["check", GRAPH, "--json"])).expect("JSON");
    let count = |key: &str| json["quantized"][key].as_array().map(Vec::len);
    let total = count("integers").zip(count("floats")).map(|(a, b)| a + b);
    assert_eq!(total, Some(6), "{json}");
    let output = tfaot(&["check", GRAPH, "--quantized", "off"]);
    let told = said(&output);
    assert!(told.contains("0 of 6 products of quantised activations") && told.contains("--quantized off"), "{told}");
}

#[test]
fn floats_without_quantisation_are_untouched() {
    let x = product_of("copy(p)", "copy(v)");
    let module = |quantized| {
        let mut request = request(LINUX, "icelake-server");
        request.precision.quantized = quantized;
        compile::plan(x.clone(), "t", "t", &request).expect("kernels").0
    };
    assert_eq!(text::print(&module(QuantizedMath::Exact)), text::print(&module(QuantizedMath::Off)));
}

/// Quantises the float graph of TensorFlow's layers into `folder`, with more flags.
fn quantize(folder: &std::path::Path, more: &[&str]) -> (String, String) {
    let out = folder.join("quantised.pb").display().to_string();
    let (graph, feeds) = ("testdata/graphs/conv_net/graph.pb", "testdata/graphs/conv_net/feeds.npz");
    let told = succeed(&[&["quantize", graph, "-q", "--calibrate", feeds, "-o", &out], more].concat());
    (out, told)
}

/// The error of the first output that `quantize` prints.
fn first_error(told: &str) -> f64 {
    let number = told.split("error ").nth(1).and_then(|text| text.split(' ').next()).and_then(|n| n.parse().ok());
    number.expect("an error is printed")
}

#[test]
fn a_float_graph_is_quantised_by_examples() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (out, told) = quantize(folder.path(), &[]);
    assert!(told.contains("5 of 5 products are quantised"), "{told}");
    let error = first_error(&told);
    assert!(error > 1e-4 && error < 0.1, "{told}");
    let inspected: Value = serde_json::from_str(&succeed(&["inspect", &out, "--json"])).expect("JSON");
    let text = inspected.to_string();
    assert!(text.contains("FakeQuantWithMinMaxVarsPerChannel") && text.contains("FakeQuantWithMinMaxVars"), "{text}");
    let again = tfaot(&["quantize", &out, "--calibrate", "testdata/graphs/conv_net/feeds.npz", "-o", &out]);
    assert!(said(&again).contains("no product of an activation by constants"), "{}", said(&again));
}

#[test]
fn products_are_left_in_floats_by_name() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (_, told) = quantize(folder.path(), &["--keep", "MatMul", "--percentile", "99.9"]);
    assert!(told.contains("4 of 5 products are quantised") && told.contains("MatMul: --keep names it"), "{told}");
    let out = folder.path().join("x.pb").display().to_string();
    let feeds = "testdata/graphs/conv_net/feeds.npz";
    let graph = "testdata/graphs/conv_net/graph.pb";
    let unknown = tfaot(&["quantize", graph, "--calibrate", feeds, "-o", &out, "--keep", "nobody"]);
    assert!(said(&unknown).contains("is no product that could be quantised"), "{}", said(&unknown));
    let model = tfaot(&["quantize", "testdata/saved_model", "--calibrate", feeds, "-o", &out]);
    assert!(!model.status.success());
}

#[test]
fn a_budget_keeps_what_costs_most_in_floats() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (_, all) = quantize(folder.path(), &[]);
    let budget = first_error(&all) / 2.0;
    let (out, told) = quantize(folder.path(), &["--budget", &budget.to_string()]);
    assert!(first_error(&told) <= budget, "{told}");
    let kept = told.lines().filter(|line| line.contains(": quantised alone it costs ")).count();
    assert!((1..5).contains(&kept), "{told}");
    assert!(told.contains(&format!("{} of 5 products are quantised", 5 - kept)), "{told}");
    let inspected: Value = serde_json::from_str(&succeed(&["inspect", &out, "--json"])).expect("JSON");
    assert!(inspected.to_string().contains("FakeQuantWithMinMaxVars"), "{inspected}");
    let (_, ample) = quantize(folder.path(), &["--budget", "1"]);
    assert!(ample.contains("5 of 5 products are quantised"), "{ample}");
}

#[test]
fn a_budget_that_no_product_fits_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (graph, feeds) = ("testdata/graphs/conv_net/graph.pb", "testdata/graphs/conv_net/feeds.npz");
    let out = folder.path().join("x.pb").display().to_string();
    for (budget, problem) in [("1e-12", "no product can be quantised within --budget"), ("0", "is a positive number")] {
        let refused = tfaot(&["quantize", graph, "--calibrate", feeds, "-o", &out, "--budget", budget]);
        assert!(!refused.status.success() && said(&refused).contains(problem), "{}", said(&refused));
        assert!(!std::path::Path::new(&out).exists());
    }
}

#[test]
fn fast_levels_of_layers_are_at_most_one_off() {
    for seed in 0..60 {
        let Layer { text, .. } = layer(seed);
        let lowered = parse(&text);
        let args: Vec<Tensor> = lowered.args.iter().map(|a| Random::new(seed + 7).tensor(a.dtype, &a.dims)).collect();
        let plain = interpreted(&lowered.module, &args);
        for mut request in requests() {
            request.precision.quantized = QuantizedMath::Fast;
            let (_, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
            assert_eq!((program.quantized.integers.len(), program.quantized.requantizations), (1, 1), "{seed}: {text}");
            let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
            // levels are a scale apart
            let (got, plain) = (got[1].view::<f32>(), plain[1].view::<f32>());
            let distances = plain.iter().zip(got.iter()).map(|(p, g)| (p - g).abs());
            let scale = plain.iter().filter(|p| **p != 0.0).fold(f32::INFINITY, |least, p| least.min(p.abs()));
            assert!(distances.fold(0f32, f32::max) <= scale * 1.001, "{seed} {}", request.target.cpu);
        }
    }
}

/// A sum of integers that wraps around is not the sum of their numbers.
#[test]
fn fast_code_adds_integers_that_may_wrap_around_as_integers() {
    let lowered = parse(
        "HloModule m\nENTRY e {\n x = s32[8] parameter(0)\n by = s32[] constant(100)\n bys = s32[8] broadcast(by), dimensions={}\n \
         sum = s32[8] add(x, bys)\n f = f32[8] convert(sum)\n s = f32[] constant(0.5)\n ss = f32[8] broadcast(s), dimensions={}\n \
         scaled = f32[8] multiply(f, ss)\n whole = f32[8] floor(scaled)\n low = f32[] constant(0)\n high = f32[] constant(255)\n \
         lows = f32[8] broadcast(low), dimensions={}\n highs = f32[8] broadcast(high), dimensions={}\n \
         q = f32[8] clamp(lows, whole, highs)\n ROOT r = u8[8] convert(q) }\n",
    );
    let x = [i32::MAX, i32::MAX - 99, i32::MIN, -100, -99, 0, 7, 1000];
    let args = [Tensor::of(&[8], &x)];
    let mut request = request(LINUX, "x86-64-v3");
    request.precision.quantized = QuantizedMath::Fast;
    let (_, program) = compile::plan(lowered, "t", "t", &request).expect("kernels");
    let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
    assert_eq!(got[0].view::<u8>()[..], [0, 0, 0, 0, 0, 50, 53, 255]);
}

#[test]
fn a_nan_is_some_level_of_fast_code() {
    let lowered = parse(&layer(4).text);
    let args =
        [Tensor::of(&lowered.args[0].dims, &vec![f32::NAN; lowered.args[0].dims.iter().product::<u64>() as usize])];
    for mut request in requests() {
        request.precision.quantized = QuantizedMath::Fast;
        let (_, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
        let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
        assert!(got.iter().all(|t| t.view::<f32>().iter().all(|v| v.is_finite())), "{}", request.target.cpu);
    }
}
