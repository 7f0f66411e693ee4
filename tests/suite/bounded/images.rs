//! Random nets of windows over images of any height and width: strides and padding as TensorFlow has them, so that sizes are rounded
//! down again and again and windows begin elsewhere for other sizes.
use crate::bounded::compared::{Numbers, close, compared, evaluated, padded};
use tfaot::diag::{Code, Error};
use tfaot::dims;
use tfaot::hlo::symbolic::{Builder, ConvDims, Dim, InstId, Op, Shape, WindowDim};
use tfaot::interp;
use tfaot::lower::{Lowered, SizeRecordingLowering, SymbolicLowering};
use tfaot::scalar::ScalarOp;
use tfaot::tensor::{DType, Size, Tensor, TensorInfo};

/// The window of `size` over `n` elements that leaves `n` divided by `stride`, rounded up; or that has no padding.
fn window(n: Dim, size: u64, stride: u64, is_same: bool) -> WindowDim {
    let out = n.div_ceil(stride);
    let total = if is_same { (out.saturating_sub(1) * stride + size).saturating_sub(n) } else { Dim::from(0) };
    let low = total / 2;
    let (size, stride) = (Dim::from(size), Dim::from(stride));
    WindowDim { size, stride, pad_low: low, pad_high: total - low, ..WindowDim::default() }
}

/// A window over height and width, drawn.
fn windows(numbers: &mut Numbers, dims: &[Dim]) -> Vec<WindowDim> {
    let (size, stride) = (1 + numbers.below(4), 1 + numbers.below(2));
    // the array may have become too small for a window without padding
    let is_same = numbers.below(3) > 0;
    [1, 2].map(|axis| window(dims[axis], size, stride, is_same)).to_vec()
}

fn pool(b: &mut Builder, x: InstId, window: Vec<WindowDim>, op: ScalarOp, init: f64) -> InstId {
    let all = [&[WindowDim::default()], &window[..], &[WindowDim::default()]].concat();
    let init = b.scalar(DType::F32, init);
    let comp = b.scalar_computation(op, DType::F32);
    b.add_inst(Op::ReduceWindow { window: all, comp }, &[x, init])
}

fn convolution(b: &mut Builder, numbers: &mut Numbers, x: InstId, window: Vec<WindowDim>) -> InstId {
    // with many channels some are done by Winograd's method
    let (of, to) = (b.dims(x)[3], [1, 2, 16][numbers.below(3) as usize]);
    let dims = [window[0].size, window[1].size, of].map(Dim::guarded_count);
    let kernel = b.constant(numbers.tensor(DType::F32, &[dims[0], dims[1], dims[2], to]));
    b.add_inst(Op::Convolution(Box::new(ConvDims::channels_last(window))), &[x, kernel])
}

/// A random net over `f32[1,h,w,2]`.
fn net(seed: u64, sizes: &[Dim]) -> SymbolicLowering {
    let mut numbers = Numbers(seed);
    let mut b = Builder::new("net");
    let dims = dims![1, sizes[0], sizes[1], 2];
    let x = b.parameter(Shape::array(DType::F32, dims));
    let mut y = x;
    for _ in 0..2 + numbers.below(4) {
        let window = windows(&mut numbers, b.dims(y));
        y = match numbers.below(4) {
            0 => pool(&mut b, y, window, ScalarOp::Add, 0.0),
            1 => pool(&mut b, y, window, ScalarOp::Maximum, f64::NEG_INFINITY),
            _ => convolution(&mut b, &mut numbers, y, window),
        };
        y = b.unary(ScalarOp::Tanh, y);
    }
    let zero = b.scalar(DType::F32, 0.0);
    let sum = b.reduce(y, zero, ScalarOp::Add, &[1, 2]);
    let count = b.dims(y)[1] * b.dims(y)[2];
    let count = b.full_like(sum, count);
    let mean = b.div(sum, count);
    finished(b, &dims, &[("y", y), ("mean", mean)])
}

/// A function of `x` of these sizes with these results.
fn finished(mut b: Builder, dims: &[Dim], results: &[(&str, InstId)]) -> SymbolicLowering {
    let at_hand = |d: &Dim| u64::try_from(d.concrete_value()).expect("a size");
    let info = |name: &str, dims: &[Dim]| TensorInfo {
        field: name.to_string(),
        name: name.to_string(),
        called: None,
        dtype: DType::F32,
        dims: dims.iter().map(at_hand).collect(),
    };
    let args = vec![info("x", dims)];
    let parts: Vec<InstId> = results.iter().map(|r| r.1).collect();
    let results = results.iter().map(|&(name, y)| info(name, b.dims(y))).collect();
    let root = b.tuple(&parts);
    let module = b.finish(root).expect("it is a module");
    let (state, bound_checks, used, found) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let lowered = Lowered {
        module: module.at_current_sizes(),
        args,
        results,
        state,
        bound_checks,
        data_sizes: found,
        result_counts: used,
        size_variants: None,
    };
    SymbolicLowering { lowered, module, sizes: Vec::new() }
}

/// An image joined with the sums of its blocks of `by` rows and 4 columns, each repeated over its block: for heights that are multiples of
/// `by`.
fn joined(height: Dim, by: u64) -> Result<SymbolicLowering, Error> {
    if !height.is_multiple_of(by) {
        return Err(Error::user(Code::ShapeMismatch, "the sizes differ"));
    }
    let mut b = Builder::new("joined");
    let dims = dims![1, height, 4, 2];
    let x = b.parameter(Shape::array(DType::F32, dims));
    let sums =
        pool(&mut b, x, vec![window(height, by, by, false), window(Dim::from(4), 4, 4, false)], ScalarOp::Add, 0.0);
    let wide = b.broadcast(sums, &dims![1, height / by, by, 1, 4, 2], &[0, 1, 3, 5]);
    let wide = b.reshape(wide, &dims);
    let y = b.concatenate(&[x, wide], 3);
    Ok(finished(b, &dims, &[("y", y)]))
}

#[test]
fn heights_are_multiples_where_they_have_to_be() {
    for (by, most, heights) in [(4, 24, [4, 8, 20, 24, 6, 23]), (97, 400, [97, 194, 291, 388, 96, 399])] {
        let given = Size { name: "h".to_string(), least: 1, most, is_result: false, is_check: false };
        let traced = SizeRecordingLowering::new(move |sizes| joined(sizes[0], by));
        let lowered = tfaot::bounded::lower(&[given], vec![vec![None, Some(0), None, None]], &traced).expect("code");
        let sized = lowered.size_variants.as_ref().expect("a size varies");
        let told: Vec<_> = sized.sizes.all.iter().map(|s| (&s.name[..], s.least, s.most, s.is_result)).collect();
        let (most, check) = (most / by * by, format!("h_beyond_multiple_of_{by}"));
        assert_eq!(told, [("h", by, most, false), (&check[..], 0, 0, true)]);
        assert_eq!(sized.sizes.results, [[None, Some(0), None, None]]);
        let mut numbers = Numbers(3);
        for height in heights.into_iter().filter(|&height| height <= most) {
            let x = numbers.tensor(DType::F32, &[1, height, 4, 2]);
            let size = Tensor::scalar(height as i32);
            let got = evaluated(&lowered.module, vec![padded(&x, &[1, most, 4, 2]), size]);
            let beyond = got[1].to_i64s().expect("integers")[0];
            assert_eq!(beyond, (height % by) as i64, "{height}");
            if beyond == 0 {
                let exact = joined(Dim::from(height), by).expect("a function").lowered;
                let want = evaluated(&exact.module, vec![x]);
                assert!(close(&interp::leading_elements(&got[0], vec![1, height, 4, 4]), &want[0]), "{height}");
            }
        }
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn nets_over_images_are_right_for_every_size() {
    // below 20 some nets leave nothing of an image
    let size = |name: &str, most| Size { name: name.to_string(), least: 20, most, is_result: false, is_check: false };
    let (mut right, mut refused, mut limited) = (0, 0, 0);
    for seed in 0..crate::bounded::rounds() / 10 {
        let axes = vec![vec![None, Some(0), Some(1), None]];
        let traced = SizeRecordingLowering::new(move |sizes| Ok(net(seed, sizes)));
        let reference = |sizes: &[u64], args: &[Tensor]| {
            let sizes: Vec<Dim> = sizes.iter().map(|&n| Dim::from(n)).collect();
            evaluated(&net(seed, &sizes).lowered.module, args.to_vec())
        };
        match tfaot::bounded::lower(&[size("h", 71), size("w", 66)], axes, &traced) {
            Ok(lowered) => {
                limited += u64::from(compared(&lowered, &reference, 2, seed));
                right += 1;
            }
            Err(error) => {
                let all = error.into_diagnostics();
                assert!(all.iter().all(|d| d.code == tfaot::diag::Code::OpenSize), "seed {seed}: {all:?}");
                println!("seed {seed}: {}", all[0].message);
                refused += 1;
            }
        }
    }
    println!("{right} right, {refused} refused, loops end early in {limited}");
    assert!(limited * 2 > right, "few loops end early");
    assert!(right > 9 * refused, "{right} right, {refused} refused");
}
