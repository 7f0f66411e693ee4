//! A function for every size beside the same function for exactly one.
use tfaot::compile;
use tfaot::hlo::Literal;
use tfaot::interp;
use tfaot::kernel;
use tfaot::lower::Lowered;
use tfaot::target::Target;
use tfaot::tensor::{DType, Sizes, Tensor};

/// A generator of numbers that are the same everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n.max(1)
    }
    pub fn tensor(&mut self, dtype: DType, dims: &[u64]) -> Tensor {
        let count: u64 = dims.iter().product();
        let one = |_| match dtype {
            t if t.is_float() => self.below(2001) as f64 / 1000.0 - 1.0,
            DType::Pred => self.below(2) as f64,
            _ => self.below(7) as f64,
        };
        let bytes: Vec<u8> =
            (0..count).map(one).flat_map(|v| Tensor::scalar_from_f64(dtype, v).bytes.to_vec()).collect();
        Tensor::new(dtype, dims.to_vec(), bytes)
    }
}

/// `x` at the first places of an array of `dims` whose other elements are NaN, or as large as the type has them.
pub fn padded(x: &Tensor, dims: &[u64]) -> Tensor {
    let bad = if x.dtype.is_float() { f64::NAN } else { 1e9 };
    let width = x.dtype.bytes();
    let fill = Tensor::scalar_from_f64(x.dtype, bad).bytes;
    let count: u64 = dims.iter().product();
    let mut bytes: Vec<u8> = (0..count).flat_map(|_| fill.to_vec()).collect();
    for i in 0..x.len() {
        let (mut rest, mut at, mut stride) = (i as u64, 0, 1);
        for (&n, &bound) in x.dims.iter().zip(dims).rev() {
            at += rest % n * stride;
            rest /= n;
            stride *= bound;
        }
        let at = at as usize * width;
        bytes[at..at + width].copy_from_slice(&x.bytes[i * width..(i + 1) * width]);
    }
    Tensor::new(x.dtype, dims.to_vec(), bytes)
}

/// Statements that kernels of a test may run.
const MOST_STATEMENTS: u64 = 200_000_000;

pub fn evaluated(module: &tfaot::hlo::Module, args: Vec<Tensor>) -> Vec<Tensor> {
    let args: Vec<Literal> = args.into_iter().map(Literal::Array).collect();
    let root = interp::evaluate(module, module.entry, &args).expect("it can be evaluated");
    root.leaves().into_iter().cloned().collect()
}

pub fn close(got: &Tensor, want: &Tensor) -> bool {
    let pair = |i| (got.get_f64(i).unwrap_or(f64::NAN), want.get_f64(i).unwrap_or(f64::NAN));
    got.dims == want.dims
        && (0..want.len())
            .map(pair)
            .all(|(g, w)| (g - w).abs() <= 1e-4 + 1e-3 * w.abs() || g == w || g.is_nan() && w.is_nan())
}

/// The results for sizes and arguments, by a function that was lowered for exactly these sizes.
pub type Reference<'a> = &'a dyn Fn(&[u64], &[Tensor]) -> Vec<Tensor>;

/// Compares every bound that there is code for with `reference`, `rounds` sizes each, and what the interpreter makes of the one lowering.
/// Gives whether loops of the largest end where what is needed ends.
pub fn compared(lowered: &Lowered, reference: Reference, rounds: usize, seed: u64) -> bool {
    let sized = lowered.size_variants.as_ref().expect("sizes vary");
    let sizes = &sized.sizes;
    let given = sizes.caller_size_count();
    let mut numbers = Numbers(seed);
    let whole: Vec<u64> = sizes.all[..given].iter().map(|s| s.most).collect();
    let bounds =
        std::iter::once((&whole, &lowered.module)).chain(sized.smaller.iter().map(|r| (&r.max_sizes, &r.module)));
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v3"), None).expect("a target");
    let (_, program) = compile::plan(lowered.clone(), "f", "", &target).expect("kernels");
    for (most, module) in bounds {
        tfaot::hlo::verify::verify(module).expect("it is a module");
        for _ in 0..rounds {
            let of = |(s, &most): (&tfaot::tensor::Size, &u64)| s.least + numbers.below(most - s.least + 1);
            let now: Vec<u64> = sizes.all.iter().zip(most).map(of).collect();
            let at = |axes: &[Option<usize>], dims: &[u64], sizes: &[u64]| Sizes::actual_dims(axes, dims, sizes);
            let args: Vec<Tensor> = lowered
                .args
                .iter()
                .zip(&sizes.args)
                .map(|(info, axes)| numbers.tensor(info.dtype, &at(axes, &info.dims, &now)))
                .collect();
            let want = reference(&now, &args);
            let (_, exact) = tfaot::bounded::evaluate_at_sizes(&sized.exact, &now, &args).expect("it can be evaluated");
            for (got, want) in exact.iter().zip(&want) {
                assert!(close(got, want), "seed {seed}: at exactly {now:?}:\n{got:?}\n{want:?}");
            }
            let mut all: Vec<Tensor> = args
                .iter()
                .zip(lowered.args.iter().zip(&sizes.args))
                .map(|(x, (info, axes))| padded(x, &at(axes, &info.dims, most)))
                .collect();
            all.extend(now.iter().map(|&n| Tensor::scalar(n as i32)));
            // loops of the largest bound end where what is needed ends
            let by_kernels = std::ptr::eq(module, &lowered.module);
            let by_kernels =
                by_kernels.then(|| kernel::evaluate(&program, &all, MOST_STATEMENTS).expect("kernels run"));
            let got = evaluated(module, all);
            let found = &got[lowered.results.len()..];
            let mut values = now.clone();
            values.extend(found.iter().map(|t| t.to_i64s().expect("integers")[0] as u64));
            for (((got, want), info), axes) in got.iter().zip(&want).zip(&lowered.results).zip(&sizes.results) {
                let cut = interp::leading_elements(got, at(axes, &info.dims, &values));
                assert!(close(&cut, want), "seed {seed}: `{}` at {now:?} of {most:?}:\n{cut:?}\n{want:?}", info.name);
            }
            let made = by_kernels.iter().flatten();
            for (((got, want), info), axes) in made.zip(&want).zip(&lowered.results).zip(&sizes.results) {
                let cut = interp::leading_elements(got, at(axes, &info.dims, &values));
                assert!(
                    close(&cut, want),
                    "seed {seed}: `{}` by kernels at {now:?} of {most:?}:\n{cut:?}\n{want:?}",
                    info.name
                );
            }
        }
    }
    program.kernels.values().any(|k| k.label == "limits")
}
