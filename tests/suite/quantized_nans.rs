//! NaNs in networks whose products are computed on integers: they are where the networks' own floats have them.
use crate::common::random::Random;
use tfaot::compile;
use tfaot::hlo::attrs::{ConvDims, DotDims, PadDim, SliceDim, WindowDim};
use tfaot::hlo::{Builder, InstId, Literal, Module, Op, Shape};
use tfaot::scalar::ScalarOp;
use tfaot::target::{CodeRequest, QuantizedMath, Target};
use tfaot::tensor::{DType, Tensor};

const MOST: u64 = 400_000_000;

/// A random network over images. All scales are powers of two and all sums are small, so that floats are exact in every order.
struct Network {
    b: Builder,
    random: Random,
}

impl Network {
    /// The nearest multiple of a power of two in a range of 256 of them, as `FakeQuant` rounds.
    fn quantize(&mut self, x: InstId) -> InstId {
        let step = self.random.of(&[0.5, 0.25, 0.0625]);
        let least = self.random.of(&[0.0, -128.0, -16.0]);
        let b = &mut self.b;
        let (low, high) = (b.full_like(x, least * step), b.full_like(x, (least + 255.0) * step));
        let inside = b.min(x, high);
        let inside = b.max(inside, low);
        let (steps, half) = (b.full_like(x, step), b.full_like(x, 0.5));
        let scaled = b.div(inside, steps);
        let raised = b.add(scaled, half);
        let levels = b.unary(ScalarOp::Floor, raised);
        b.mul(levels, steps)
    }

    /// Small whole numbers times a power of two for each feature, the last axis.
    fn weights(&mut self, dims: &[u64]) -> InstId {
        let features = dims.last().map_or(1, |&n| n as usize);
        let count = dims.iter().product::<u64>() as usize;
        let steps: Vec<f32> = (0..features).map(|_| self.random.of(&[0.125, 0.0625, 0.25])).collect();
        // the largest level of each feature says what its scale is
        let mut level = |i: usize| if i < features { 127.0 } else { self.random.below(7) as f32 - 3.0 };
        let values: Vec<f32> = (0..count).map(|i| level(i) * steps[i % features]).collect();
        self.b.constant(Tensor::of(dims, &values))
    }

    fn dims(&self, x: InstId) -> Vec<u64> {
        self.b.dims(x).to_vec()
    }

    fn convolve(&mut self, x: InstId, groups: bool) -> InstId {
        let channels = self.dims(x)[3];
        let features = if groups { channels } else { self.random.of(&[8u64, 12, 16]) };
        let size = if groups { 3 } else { self.random.of(&[1u64, 1, 3]) };
        let stride = self.random.of(&[1u64, 1, 2]);
        let pad = if size == 3 { self.random.of(&[0i64, 1]) } else { 0 };
        let weights = self.weights(&[size, size, if groups { 1 } else { channels }, features]);
        let w = WindowDim { size, stride, pad_low: pad, pad_high: pad, ..WindowDim::default() };
        let d = ConvDims {
            window: vec![w; 2],
            input_batch: 0,
            input_feature: 3,
            input_spatial: vec![1, 2],
            kernel_input_feature: 2,
            kernel_output_feature: 3,
            kernel_spatial: vec![0, 1],
            output_batch: 0,
            output_feature: 3,
            output_spatial: vec![1, 2],
            feature_group_count: if groups { channels } else { 1 },
            batch_group_count: 1,
        };
        self.b.add_inst(Op::Convolution(Box::new(d)), &[x, weights])
    }

    /// TensorFlow's largest number of windows of 2 x 2, which skips NaNs, or the mean.
    fn pool(&mut self, x: InstId, is_largest: bool) -> InstId {
        let pair = WindowDim { size: 2, stride: 2, ..WindowDim::default() };
        let window = vec![WindowDim::default(), pair, pair, WindowDim::default()];
        let b = &mut self.b;
        if is_largest {
            let (comp, init) = (b.max_computation(DType::F32), b.scalar(DType::F32, f64::from(f32::MIN)));
            return b.add_inst(Op::ReduceWindow { window, comp }, &[x, init]);
        }
        let (comp, init) = (b.scalar_computation(ScalarOp::Add, DType::F32), b.scalar(DType::F32, 0.0));
        let sum = b.add_inst(Op::ReduceWindow { window, comp }, &[x, init]);
        let quarter = b.full_like(sum, 0.25);
        b.mul(sum, quarter)
    }

    fn layer(&mut self, x: InstId) -> InstId {
        let dims = self.dims(x);
        let is_large = dims[1] >= 4;
        match self.random.below(9) {
            0 | 1 => {
                let x = self.quantize(x);
                self.convolve(x, false)
            }
            2 if is_large => {
                let x = self.quantize(x);
                self.convolve(x, true)
            }
            3 if is_large => {
                let is_largest = self.random.of(&[true, false]);
                self.pool(x, is_largest)
            }
            4 => {
                // an addition of what a layer makes, as of residual nets
                let q = self.quantize(x);
                let y = self.quantize(q);
                self.b.add(q, y)
            }
            5 => {
                let y = self.quantize(x);
                self.b.concatenate(&[x, y], 3)
            }
            6 if is_large => self.b.slice_axis(x, 1, 1, dims[1] - 1),
            7 => {
                // zeros before a pool would become a padding that windows of NaNs do not see (`pad_into_window`)
                let one = self.b.scalar(DType::F32, 1.0);
                let edge = PadDim { low: 1, high: 0, interior: 0 };
                self.b.pad(x, one, &[PadDim::default(), edge, edge, PadDim::default()])
            }
            _ => {
                let zero = self.b.full_like(x, 0.0);
                self.b.max(x, zero)
            }
        }
    }

    /// A matrix product of the pixels' channels, or of the whole images.
    fn dense(&mut self, x: InstId) -> InstId {
        let d = self.dims(x);
        let x = match self.random.below(3) {
            0 => self.b.reshape(x, &[d[0], d[1] * d[2] * d[3]]),
            1 => self.b.reshape(x, &[d[0] * d[1] * d[2], d[3]]),
            _ => self.b.transpose(x, &[0, 2, 1, 3]),
        };
        let x = self.quantize(x);
        let dims = self.dims(x);
        let last = dims.len() - 1;
        let weights = self.weights(&[dims[last], 8]);
        let contracting = DotDims { lhs_contracting: vec![last], rhs_contracting: vec![0], ..DotDims::default() };
        self.b.dot(x, weights, contracting)
    }

    /// The module of a seed: layers, and all of their values that have names as results.
    fn draw(seed: u64) -> Module {
        let mut net = Network { b: Builder::new("net"), random: Random::new(seed) };
        let images = net.random.of(&[1u64, 2, 5]);
        let side = net.random.of(&[5u64, 8]);
        let channels = net.random.of(&[4u64, 4, 3, 1]);
        let x = net.b.parameter(Shape::array(DType::F32, [images, side, side, channels]));
        let mut at = net.quantize(x);
        at = net.convolve(at, false);
        let mut results = vec![at];
        for _ in 0..net.random.below(6) {
            at = net.layer(at);
            if net.random.below(3) == 0 {
                results.push(at);
            }
        }
        results.push(net.dense(at));
        let slice = SliceDim::new(0u64, 1u64);
        let first = net.dims(at).iter().skip(1).map(|&n| SliceDim::new(0u64, n)).collect::<Vec<_>>();
        results.push(net.b.slice(at, &[vec![slice], first].concat()));
        let root = net.b.tuple(&results);
        net.b.finish(root).expect("a sound module")
    }
}

/// Images with each of some unusual numbers in half of them.
fn images(dims: &[u64], seed: u64, unusual: &[f32]) -> Tensor {
    let mut random = Random::new(seed ^ 0xface);
    let each = (dims.iter().skip(1).product::<u64>() as usize).max(1);
    let mut values: Vec<f32> = (0..dims[0] as usize * each).map(|_| random.below(512) as f32 / 8.0 - 32.0).collect();
    for image in values.chunks_mut(each) {
        for &value in unusual {
            if random.of(&[true, false]) {
                let at = random.below(each);
                image[at] = value;
            }
        }
    }
    Tensor::of(dims, &values)
}

/// Panics where one is NaN and the other is not, or where numbers differ.
fn assert_same(got: &[Tensor], want: &[Tensor], what: &str) {
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        for (at, (g, w)) in got.view::<f32>().iter().zip(want.view::<f32>().iter()).enumerate() {
            assert!(g == w || g.is_nan() && w.is_nan(), "{what}: element {at} of result {i} is {g}, not {w}");
        }
    }
}

#[test]
fn nans_are_where_floats_have_them() {
    let linux = |cpu| Target::resolve(Some("x86_64-unknown-linux-gnu"), Some(cpu), None).expect("a processor");
    let mut integers = 0;
    for seed in 0..60 {
        let lowered = compile::wrap_module(Network::draw(seed)).expect("arrays in and out");
        let args = [images(&lowered.args[0].dims, seed, &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY])];
        let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
        let run = |module: &Module| -> Vec<Tensor> {
            let all = tfaot::interp::evaluate(module, module.entry, &literals).expect("the interpreter runs it");
            all.leaves().into_iter().cloned().collect()
        };
        let want = run(&lowered.module);
        for cpu in ["icelake-server", "x86-64-v3"] {
            let request = CodeRequest::from(linux(cpu));
            let (module, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
            integers += program.quantized.integers.len();
            assert_same(&run(&module), &want, &format!("{seed} {cpu}, interpreted"));
            let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
            assert_same(&got, &want, &format!("{seed} {cpu}"));
        }
        let mut off = CodeRequest::from(linux("x86-64-v3"));
        off.precision.quantized = QuantizedMath::Off;
        let (module, _) = compile::plan(lowered, "t", "t", &off).expect("kernels");
        assert_same(&run(&module), &want, &format!("{seed} on floats"));
    }
    assert!(integers > 100, "{integers} products of integers");
}

#[test]
fn multiply_adds_give_the_levels_of_exact_floats() {
    let target = |triple, cpu| Target::resolve(Some(triple), Some(cpu), None).expect("a processor");
    let linux = "x86_64-unknown-linux-gnu";
    let targets = ["icelake-server", "x86-64-v3", "x86-64-v2"].map(|cpu| target(linux, cpu));
    let targets: Vec<Target> =
        targets.into_iter().chain([target("aarch64-unknown-linux-gnu", "neoverse-n1")]).collect();
    let mut requantizations = 0;
    for seed in 0..80 {
        let lowered = compile::wrap_module(Network::draw(seed)).expect("arrays in and out");
        let args = [images(&lowered.args[0].dims, seed, &[f32::INFINITY, f32::NEG_INFINITY])];
        let literals: Vec<Literal> = args.iter().cloned().map(Literal::Array).collect();
        let run = |module: &Module| -> Vec<Tensor> {
            let all = tfaot::interp::evaluate(module, module.entry, &literals).expect("the interpreter runs it");
            all.leaves().into_iter().cloned().collect()
        };
        let want = run(&lowered.module);
        for target in &targets {
            let mut request = CodeRequest::from(target.clone());
            request.precision.quantized = QuantizedMath::Fast;
            let (module, program) = compile::plan(lowered.clone(), "t", "t", &request).expect("kernels");
            requantizations += program.quantized.requantizations;
            assert_same(&run(&module), &want, &format!("{seed} {}, interpreted", target.cpu));
            let got = tfaot::kernel::evaluate(&program, &args, MOST).expect("the kernels run");
            assert_same(&got, &want, &format!("{seed} {}", target.cpu));
        }
    }
    assert!(requantizations > 400, "{requantizations} quantisations by multiply-adds");
}
