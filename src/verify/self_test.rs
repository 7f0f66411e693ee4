//! Generation of the self-test that an object carries, with answers computed by the interpreter.
//!
//! A self-test is a sequence of calls over one state. Arguments come from npz files or are drawn from a seed; answers are the
//! interpreter's, or expected ones that must agree with the interpreter's. An integer answer is stored as a hash of its bytes, a float
//! answer as at most [`MOST_SUMS`] sums of consecutive elements. The bound of a sum is the sum of its elements' tolerances, as in
//! `tfaot verify`, and the rounding error of the summation; so a test fails only if an element departs by more than its tolerance.
use super::comparison::{Tolerance, compare};
use super::{expected_results, rounding, sequence};
use crate::compile::Functions;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::interp;
use crate::kernel::self_test::{
    BlockSum, ExpectedArray, ExpectedContent, ExpectedSums, HASH_START, MOST_SUMS, RandomInput, SelfTest, TestCall,
    TestInput, fnv1a_step,
};
use crate::lower::Lowered;
use crate::run::calls::{self, FileCall};
use crate::run::{Interpreter, arguments, npz, sizes};
use crate::target::Precision;
use crate::tensor::{DType, Sizes, Tensor};
use std::path::{Path, PathBuf};

/// The source of the calls of a self-test.
#[derive(Clone, Debug)]
pub enum SelfTestSource {
    /// One call of each function with arguments drawn from this seed.
    Seed(u64),
    /// Calls with files of arguments and expected results.
    Calls(Vec<FileCall>),
}

impl SelfTestSource {
    /// Parses a seed in digits, the path of an npz file of arguments, or of a `.jsonl` call file.
    ///
    /// # Errors
    /// Errors of [`calls::read`]; `Code::BadOption` if `expect` accompanies anything but an npz file.
    pub fn parse(text: &str, expect: Option<PathBuf>) -> Result<SelfTestSource> {
        let is_file_of_calls = Path::new(text).extension().is_some_and(|e| e == "jsonl");
        match text.parse::<u64>() {
            Err(_) if !is_file_of_calls => {
                let inputs = Some(PathBuf::from(text));
                Ok(SelfTestSource::Calls(vec![FileCall { signature: None, inputs, expect, outputs: None }]))
            }
            _ if expect.is_some() => {
                let told = "expected results are for a self-test on a file of arguments";
                let help = "--self-test IN.npz, or the key `expect` in a file of calls";
                Err(Diagnostic::new(Code::BadOption, told).help(help).into())
            }
            Ok(seed) if seed < 1 << 32 => Ok(SelfTestSource::Seed(seed)),
            Ok(_) => Err(Error::user(Code::BadOption, "the seed of a self-test is below 2^32")),
            Err(_) => Ok(SelfTestSource::Calls(calls::read(Path::new(text))?)),
        }
    }
}

/// Evaluates the calls of `source` and returns the self-test with the answers. `keys` maps a function to the names of its results in files.
///
/// # Errors
/// Errors of reading arguments and of the interpreter; `Code::Mismatch` for expected results that differ from the interpreter's.
pub fn self_test(
    functions: &Functions,
    source: &SelfTestSource,
    precision: Precision,
    keys: &dyn Fn(&Lowered) -> Vec<String>,
) -> Result<SelfTest> {
    let usual = Tolerance::for_precision(precision);
    let rounds = functions.all.iter().any(|(_, lowered)| interp::rounds_to_16_bits(&lowered.module));
    let mut engines = Engines {
        plain: Interpreter::new(functions)?,
        moved: match rounds && !precision.is_reduced() {
            true => rounding::random_roundings(functions)?,
            false => Vec::new(),
        },
    };
    let mut made = Vec::new();
    let calls = match source {
        SelfTestSource::Calls(calls) => calls.iter().map(Some).collect(),
        SelfTestSource::Seed(_) => vec![None; functions.all.len()],
    };
    for (number, call) in calls.into_iter().enumerate() {
        let function = match call {
            Some(call) => calls::find_function(functions, call.signature.as_deref())?,
            None => number,
        };
        let lowered = &functions.all[function].1;
        let (args, inputs) = match (source, call) {
            (SelfTestSource::Seed(seed), _) => drawn(lowered, *seed)?,
            (SelfTestSource::Calls(_), Some(call)) => stored(calls::read_arguments(call, lowered, &[])?),
            (SelfTestSource::Calls(_), None) => (Vec::new(), Vec::new()),
        };
        let given = given_sizes(lowered, &args)?;
        let (plain, tolerances) = engines.call(function, args, usual)?;
        let want = match call.and_then(|call| call.expect.as_deref()) {
            Some(path) => agreed(path, &keys(lowered), lowered, &plain, &tolerances)?,
            None => plain,
        };
        let results = want.iter().zip(&tolerances).map(|(t, tolerance)| expected(t, *tolerance)).collect();
        made.push(TestCall { function, args: inputs, sizes: sizes_of_call(lowered, given, &want), results });
    }
    Ok(SelfTest { variables: variables(functions, &made, &engines, usual), calls: made })
}

/// The plain interpreter, and others that round 16-bit results at random.
struct Engines<'a> {
    plain: Interpreter<'a>,
    moved: Vec<Interpreter<'a>>,
}

impl Engines<'_> {
    /// Calls a function; returns the results with their tolerances.
    fn call(&mut self, function: usize, args: Vec<Tensor>, usual: Tolerance) -> Result<(Vec<Tensor>, Vec<Tolerance>)> {
        let moved = self.moved.iter_mut().map(|engine| engine.call(function, args.clone()));
        let moved: Vec<Vec<Tensor>> = moved.collect::<Result<_>>()?;
        let plain = self.plain.call(function, args)?;
        let tolerances = rounding::tolerances_from_samples(&plain, &moved, usual);
        Ok((plain, tolerances))
    }
}

/// The variables that calls change, with their values after the last call.
fn variables(
    functions: &Functions,
    calls: &[TestCall],
    engines: &Engines,
    usual: Tolerance,
) -> Vec<Option<ExpectedArray>> {
    let state = &engines.plain.state;
    let moved: Vec<Vec<Tensor>> = engines.moved.iter().map(|engine| engine.state.clone()).collect();
    let usual = Tolerance { floor: sequence::rounding_tolerance_of_state(state), ..usual };
    let tolerances = rounding::tolerances_from_samples(state, &moved, usual);
    let is_changed = |i: usize| calls.iter().any(|call| functions.all[call.function].1.state[i].changed);
    let all = state.iter().zip(tolerances).enumerate();
    all.map(|(i, (value, tolerance))| is_changed(i).then(|| expected(value, tolerance))).collect()
}

/// Expected results from a file, checked against the interpreter's. Errors: `Code::Mismatch`; those of reading the file.
fn agreed(
    path: &Path,
    keys: &[String],
    lowered: &Lowered,
    plain: &[Tensor],
    tolerances: &[Tolerance],
) -> Result<Vec<Tensor>> {
    let wanted = expected_results(&npz::read(path)?, path, keys, lowered)?;
    let comparisons = compare(keys, "interpreter", &wanted, plain, tolerances);
    match comparisons.iter().find(|c| c.departs()) {
        None => Ok(wanted),
        Some(bad) => {
            let told = format!(
                "`{}` is not what the interpreter computes: it differs by {:.3} times the tolerance",
                bad.output,
                bad.excess()
            );
            let help = "`tfaot verify --inputs --expect` compares element by element and names the op";
            Err(Error::from(Diagnostic::new(Code::Mismatch, told).help(help)).in_file(path))
        }
    }
}

/// Arguments of the largest sizes drawn from a seed, and their description for the object.
fn drawn(lowered: &Lowered, seed: u64) -> Result<(Vec<Tensor>, Vec<TestInput>)> {
    let none = Sizes::default();
    let sized = lowered.size_variants.as_ref().map_or(&none, |s| &s.sizes);
    let most = sizes::resolve_sizes(sized, &lowered.args, |_| None, &[])?;
    let infos = sizes::actual_types(&lowered.args, &sized.args, &most);
    let (mut args, mut inputs) = (Vec::new(), Vec::new());
    for (i, info) in infos.iter().enumerate() {
        let own = (seed << 32) + i as u64;
        let tensor = arguments::random_array(info, own)?;
        inputs.push(match RandomInput::supports_type(info.dtype) {
            true => TestInput::Drawn(RandomInput {
                dtype: info.dtype.real_part(),
                count: tensor.interleaved_parts().len() as u64,
                state: arguments::initial_generator_state(own),
            }),
            false => TestInput::Stored(tensor.bytes.clone()),
        });
        args.push(tensor);
    }
    Ok((args, inputs))
}

/// The arguments, and the same as bytes to embed in the object.
fn stored(args: Vec<Tensor>) -> (Vec<Tensor>, Vec<TestInput>) {
    let inputs = args.iter().map(|t| TestInput::Stored(t.bytes.clone())).collect();
    (args, inputs)
}

/// The sizes that the caller of a function passes.
fn given_sizes(lowered: &Lowered, args: &[Tensor]) -> Result<Vec<u64>> {
    match &lowered.size_variants {
        Some(sized) => sizes::sizes_of_arguments(&sized.sizes, &lowered.args, args),
        None => Ok(Vec::new()),
    }
}

/// The sizes of a call: those passed by the caller, then those found on axes of results.
fn sizes_of_call(lowered: &Lowered, given: Vec<u64>, results: &[Tensor]) -> Vec<Option<u64>> {
    let Some(sized) = &lowered.size_variants else { return Vec::new() };
    let known = given.len();
    let mut all: Vec<Option<u64>> = given.into_iter().map(Some).collect();
    all.resize(sized.sizes.all.len(), None);
    for (axes, result) in sized.sizes.results.iter().zip(results) {
        for (axis, &n) in axes.iter().zip(&result.dims) {
            if let Some(s) = axis.filter(|&s| s >= known) {
                all[s] = Some(n);
            }
        }
    }
    all
}

/// The stored form of an expected array.
fn expected(want: &Tensor, tolerance: Tolerance) -> ExpectedArray {
    let parts = want.interleaved_parts();
    let content = match parts.dtype.is_float() {
        true => ExpectedContent::Sums(sums(&parts, tolerance)),
        false => ExpectedContent::Hash(parts.bytes.iter().fold(HASH_START, |hash, &byte| fnv1a_step(hash, byte))),
    };
    ExpectedArray { dtype: parts.dtype, count: parts.len() as u64, content }
}

/// The class of a number (finite, NaN, infinities) for the hash of classes.
fn class(value: f64) -> u8 {
    match value {
        v if v.is_nan() => 1,
        f64::INFINITY => 2,
        f64::NEG_INFINITY => 3,
        _ => 0,
    }
}

/// Sums of consecutive elements of a float array, with their bounds.
fn sums(want: &Tensor, tolerance: Tolerance) -> ExpectedSums {
    let values: Vec<f64> = (0..want.len()).map(|i| want.get_f64(i).unwrap_or(f64::NAN)).collect();
    let classes = values.iter().fold(HASH_START, |hash, &v| fnv1a_step(hash, class(v)));
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let largest = finite().map(f64::abs).fold(0.0, f64::max);
    let block = (values.len() as u64).div_ceil(MOST_SUMS).max(1);
    let allowed = |v: f64| {
        tolerance.rtol * v.abs() + tolerance.atol * largest + tolerance.floor + tolerance.rounding.unwrap_or(0.0)
    };
    // the object adds in f64 for f64 arrays, and in f32 for all other types
    let (unit, exponents) = match want.dtype {
        DType::F64 => (f64::EPSILON, 1000.0),
        _ => (f64::from(f32::EPSILON), 120.0),
    };
    // upper limit of a sum of magnitudes
    let most = (largest + allowed(largest)) * block as f64;
    let scale = if most > 0.0 { (-most.log2().ceil().clamp(-exponents, exponents)).exp2() } else { 1.0 };
    let one = |block: &[f64]| {
        let finite = || block.iter().copied().filter(|v| v.is_finite()).map(|v| v * scale);
        let sum: f64 = finite().sum();
        let slack: f64 = finite().map(|v| allowed(v / scale) * scale).sum();
        let magnitude = finite().map(f64::abs).sum::<f64>() + slack;
        BlockSum { sum, bound: slack + unit * (block.len() as f64 + 2.0) * magnitude }
    };
    ExpectedSums { block, scale, classes, sums: values.chunks(block as usize).map(one).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of(values: &[f32]) -> ExpectedSums {
        sums(&Tensor::of(&[values.len() as u64], values), Tolerance::EXACT)
    }

    #[test]
    fn few_elements_have_a_sum_each_and_many_share_sums() {
        assert_eq!(sums_of(&[1.0; 64]).block, 1);
        let many = sums_of(&[1.0; 1000]);
        assert_eq!((many.block, many.sums.len()), (16, 63));
        let bound = many.sums[0].bound / many.sums[0].sum;
        assert!((1e-4..2e-4).contains(&bound), "{bound}");
        assert!(sums_of(&[]).sums.is_empty());
    }

    #[test]
    fn large_and_small_numbers_are_scaled() {
        for value in [3e38f32, 1e-40, 0.0] {
            let made = sums_of(&[value; 500]);
            let largest = made.sums.iter().map(|s| s.sum.abs()).fold(0.0, f64::max);
            // far from f32 overflow and from subnormal numbers
            assert!(largest < 1e9 && (value == 0.0 || largest > 1e-9), "{value}: {largest}");
        }
    }

    #[test]
    fn what_is_not_finite_is_in_no_sum() {
        let made = sums_of(&[1.0, f32::NAN, f32::INFINITY]);
        assert!(made.sums.iter().all(|s| s.sum.is_finite() && s.bound.is_finite()));
        assert_ne!(made.classes, sums_of(&[1.0, f32::NAN, f32::NEG_INFINITY]).classes);
    }

    #[test]
    fn sources_are_seeds_arrays_and_calls() {
        assert!(matches!(SelfTestSource::parse("7", None), Ok(SelfTestSource::Seed(7))));
        assert!(
            matches!(SelfTestSource::parse("a.npz", Some("b.npz".into())), Ok(SelfTestSource::Calls(c)) if c.len() == 1)
        );
        assert!(
            SelfTestSource::parse("7", Some("b.npz".into())).is_err()
                && SelfTestSource::parse("4294967296", None).is_err()
        );
    }
}
