use super::{Interpreter, Model, Session};
use crate::codegen::Launches;
use crate::compile::{self, Built, Compiled, Functions};
use crate::hlo::text;
use crate::kernel::Program;
use crate::lower::{FixedSizeLowering, Lowered, SizeBucket, SizeVariants, StateVariable};
use crate::target::Target;
use crate::tensor::{DType, Size, Sizes, Tensor, TensorInfo};
use std::fmt::Write;
use std::sync::Arc;

#[test]
fn a_model_without_work_loads_and_runs() {
    let target = Target::resolve(None, None, None).expect("this machine");
    let program = Program { name: "empty".into(), ..Default::default() };
    let object = crate::codegen::compile(&program, &target, Launches::Direct).expect("compiles");
    let module = crate::hlo::Builder::new("m").module().clone();
    let built = Built { module, program, object };
    for threads in [1, 3] {
        match Session::load(&built, &target, &[], threads) {
            Ok(mut session) => session.call().expect("runs"),
            // a machine without linker can't say
            Err(e) => assert!(e.to_string().contains("TFA0301"), "{e}"),
        }
    }
}

/// Module text for given bounds; the flag selects exact sizes instead of bounds.
type Text = Box<dyn Fn(&[u64], bool) -> String + Send + Sync>;

/// A function with varying sizes, made from module texts in which sizes are additional parameters and results. The last `state` parameters
/// are variables that it changes.
fn function(sizes: Sizes, smaller: &[Vec<u64>], state: usize, make: Text) -> Lowered {
    let (given, found) = (sizes.caller_size_count(), sizes.all.len() - sizes.caller_size_count());
    let make = Arc::new(make);
    let of = {
        let make = make.clone();
        move |most: &[u64], is_exact: bool| {
            let mut lowered =
                compile::wrap_module(text::parse(&make(most, is_exact)).expect("sound HLO")).expect("arrays");
            let variables = lowered.args.split_off(lowered.args.len() - state);
            lowered.state =
                variables.into_iter().map(|info| StateVariable { info, initial: None, changed: true }).collect();
            lowered.results.truncate(lowered.results.len() - state);
            lowered
        }
    };
    let plain = |most: &[u64]| {
        let mut lowered = of(most, false);
        lowered.args.truncate(lowered.args.len() - given);
        lowered.results.truncate(lowered.results.len() - found);
        lowered
    };
    let most: Vec<u64> = sizes.all[..given].iter().map(|s| s.most).collect();
    let bucket = |most: &Vec<u64>| {
        let lowered = plain(most);
        let results = lowered.results.iter().map(|r| r.dims.clone()).collect();
        SizeBucket { max_sizes: most.clone(), module: lowered.module, results, is_separate: false }
    };
    let smaller = smaller.iter().map(bucket).collect();
    let whole = plain(&most);
    let exact = FixedSizeLowering(Arc::new(move |given: &[u64]| {
        let lowered = of(given, true);
        Ok(lowered)
    }));
    Lowered { size_variants: Some(Arc::new(SizeVariants { sizes, by_rows: false, smaller, exact })), ..whole }
}

fn size(name: &str, least: u64, most: u64, is_result: bool) -> Size {
    Size { name: name.to_string(), least, most, is_result, is_check: false }
}

fn compiled(functions: Functions, target: &Target) -> Compiled {
    compile::build_functions(functions, "m", "m", &[target.into()], Launches::Direct, &mut []).expect("it compiles")
}

/// Compares calls of machine code between guard pages with the interpreter's, in sequence over one state.
fn agree(lowered: Lowered, calls: &[Vec<Tensor>], threads: usize) {
    let target = Target::resolve(None, None, None).expect("this machine");
    let functions = Functions { all: vec![("run".into(), lowered)], init: None };
    let made = compiled(functions.clone(), &target);
    let model = match Model::load(&made.bundle.face, &made.object, &target, threads) {
        Ok(model) => model,
        Err(e) => return assert!(e.to_string().contains("TFA0301"), "{e}"),
    };
    let mut state = model.initial_state().expect("a state");
    let mut plain = Interpreter::new(&functions).expect("a state");
    if functions.all[0].1.size_variants.as_ref().is_some_and(|s| s.sizes.all.iter().any(|s| s.is_result)) {
        // what these modules find is not assumed by any instance
        plain = plain.with_padding();
    }
    for args in calls {
        let got = model.call_guarded(0, args, &mut state).expect("it runs");
        let want = plain.call(0, args.clone()).expect("it is evaluated");
        assert_eq!(got, want, "on {args:?}");
        assert_eq!(model.variables(&state), plain.state, "on {args:?}");
        let mut padded = Interpreter::new(&functions).expect("a state").with_padding();
        if state.is_empty() {
            assert_eq!(padded.call(0, args.clone()).expect("it is evaluated"), want, "padded, on {args:?}");
        }
    }
}

/// Small distinct integers.
fn counted(dtype: DType, dims: &[u64]) -> Tensor {
    let count: u64 = dims.iter().product();
    let bytes =
        (0..count).flat_map(|i| Tensor::scalar_from_f64(dtype, (i % 120) as f64 + 1.0).bytes).collect::<Vec<u8>>();
    Tensor::new(dtype, dims.to_vec(), bytes)
}

/// A module for the mean of the actual rows, at most `n`.
fn mean(n: u64, is_exact: bool) -> String {
    let count = if is_exact { format!("s = s32[] constant({n})") } else { "s = s32[] parameter(1)".to_string() };
    format!(
        "HloModule mean\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }}\nENTRY e {{\n\
         x = f32[{n},3] parameter(0)\n {count}\n i = s32[{n},3] iota(), iota_dimension=0\n\
         sb = s32[{n},3] broadcast(s), dimensions={{}}\n is = pred[{n},3] compare(i, sb), direction=LT\n\
         zero = f32[] constant(0)\n zb = f32[{n},3] broadcast(zero), dimensions={{}}\n m = f32[{n},3] select(is, x, zb)\n\
         t = f32[3] reduce(m, zero), dimensions={{0}}, to_apply=add\n c = f32[] convert(s)\n\
         cb = f32[3] broadcast(c), dimensions={{}}\n mean = f32[3] divide(t, cb)\n two = f32[] constant(2)\n\
         tb = f32[{n},3] broadcast(two), dimensions={{}}\n y = f32[{n},3] multiply(x, tb)\n\
         ROOT o = (f32[3], f32[{n},3]) tuple(mean, y)\n}}\n"
    )
}

#[test]
fn rows_that_vary_are_averaged_and_doubled() {
    let sizes = Sizes {
        all: vec![size("n", 1, 9, false)],
        args: vec![vec![Some(0), None]],
        results: vec![vec![None], vec![Some(0), None]],
    };
    for smaller in [vec![], vec![vec![4], vec![2]]] {
        let lowered = function(sizes.clone(), &smaller, 0, Box::new(|most, is_exact| mean(most[0], is_exact)));
        let calls: Vec<Vec<Tensor>> = (1..=9).map(|n| vec![counted(DType::F32, &[n, 3])]).collect();
        agree(lowered.clone(), &calls, 1);
        agree(lowered, &calls[4..6], 3);
    }
}

#[test]
fn the_data_say_how_much_there_is() {
    // the numbers above 60, the largest first, and how many rows of another argument are given
    let make = |most: &[u64], is_exact: bool| {
        let n = most[0];
        let count = if is_exact { format!("s = s32[] constant({n})") } else { "s = s32[] parameter(1)".to_string() };
        format!(
            "HloModule found\nadd {{ a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b) }}\n\
             more {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GT }}\n\
             ENTRY e {{\n x = f32[{n}] parameter(0)\n {count}\n i = s32[{n}] iota(), iota_dimension=0\n\
             sb = s32[{n}] broadcast(s), dimensions={{}}\n is = pred[{n}] compare(i, sb), direction=LT\n\
             k = f32[] constant(60)\n kb = f32[{n}] broadcast(k), dimensions={{}}\n gt = pred[{n}] compare(x, kb), direction=GT\n\
             both = pred[{n}] and(is, gt)\n zero = f32[] constant(0)\n zb = f32[{n}] broadcast(zero), dimensions={{}}\n\
             m = f32[{n}] select(both, x, zb)\n y = f32[{n}] sort(m), dimensions={{0}}, to_apply=more\n\
             ones = s32[{n}] convert(both)\n none = s32[] constant(0)\n\
             c = s32[] reduce(ones, none), dimensions={{0}}, to_apply=add\n ROOT o = (f32[{n}], s32[]) tuple(y, c)\n}}\n"
        )
    };
    let sizes = Sizes {
        all: vec![size("n", 0, 100, false), size("found", 0, 100, true)],
        args: vec![vec![Some(0)]],
        results: vec![vec![Some(1)]],
    };
    let lowered = function(sizes, &[vec![70]], 0, Box::new(make));
    let calls: Vec<Vec<Tensor>> = [0, 1, 60, 61, 70, 71, 100].map(|n| vec![counted(DType::F32, &[n])]).into();
    agree(lowered, &calls, 1);
}

#[test]
fn what_outgrows_its_bound_is_refused() {
    // gives a size that the result has no room for where the argument is above 3
    let make = |_: &[u64], _: bool| {
        "HloModule found\nENTRY e {\n n = s32[] parameter(0)\n y = s32[3] broadcast(n), dimensions={}\n\
         ROOT o = (s32[3], s32[]) tuple(y, n)\n}\n"
            .to_string()
    };
    let sizes = Sizes { all: vec![size("k", 0, 3, true)], args: vec![vec![]], results: vec![vec![Some(0)]] };
    let lowered = function(sizes, &[], 0, Box::new(make));
    let target = Target::resolve(None, None, None).expect("this machine");
    let made = compiled(Functions { all: vec![("run".into(), lowered)], init: None }, &target);
    let Ok(model) = Model::load(&made.bundle.face, &made.object, &target, 1) else { return };
    for (n, fits) in [(0, true), (3, true), (4, false), (-1, false)] {
        let got = model.call_guarded(0, &[Tensor::scalar(n)], &mut []);
        match got {
            Ok(got) => assert!(fits && got[0].to_vec::<i32>() == vec![n; n as usize], "{got:?}"),
            Err(e) => assert!(!fits && e.to_string().contains("larger than its bound"), "{e}"),
        }
    }
}

#[test]
fn variables_change_whatever_the_sizes() {
    // adds up rows, and counts the calls
    let make = |most: &[u64], is_exact: bool| {
        let n = most[0];
        let (count, next) = match is_exact {
            true => (format!("s = s32[] constant({n})"), 1),
            false => ("s = s32[] parameter(1)".to_string(), 2),
        };
        format!(
            "HloModule sums\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }}\nENTRY e {{\n\
             x = f32[2,{n}] parameter(0)\n {count}\n v = f32[2] parameter({next})\n calls = s32[] parameter({})\n\
             i = s32[2,{n}] iota(), iota_dimension=1\n sb = s32[2,{n}] broadcast(s), dimensions={{}}\n\
             is = pred[2,{n}] compare(i, sb), direction=LT\n zero = f32[] constant(0)\n\
             zb = f32[2,{n}] broadcast(zero), dimensions={{}}\n m = f32[2,{n}] select(is, x, zb)\n\
             t = f32[2] reduce(m, zero), dimensions={{1}}, to_apply=add\n v2 = f32[2] add(v, t)\n one = s32[] constant(1)\n\
             calls2 = s32[] add(calls, one)\n vb = f32[2,{n}] broadcast(v2), dimensions={{0}}\n y = f32[2,{n}] add(x, vb)\n\
             ROOT o = (f32[2,{n}], f32[2], s32[]) tuple(y, v2, calls2)\n}}\n",
            next + 1
        )
    };
    let sizes = Sizes {
        all: vec![size("n", 1, 16, false)],
        args: vec![vec![None, Some(0)]],
        results: vec![vec![None, Some(0)]],
    };
    let lowered = function(sizes, &[vec![8], vec![4]], 2, Box::new(make));
    let calls: Vec<Vec<Tensor>> = [1, 16, 3, 4, 5, 8, 9].map(|n| vec![counted(DType::F32, &[2, n])]).into();
    agree(lowered, &calls, 1);
}

/// The next pseudo-random number below `below` (SplitMix64).
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % below
}

#[test]
fn arrays_of_any_axes_come_and_go_whole() {
    let mut seed = 28;
    for _ in 0..40 {
        let sizes: Vec<Size> = (0..1 + random(&mut seed, 3))
            .map(|i| {
                let most = 1 + random(&mut seed, 6);
                size(&format!("n{i}"), random(&mut seed, 2).min(most), most, false)
            })
            .collect();
        // arrays of bytes, words and pairs, each the argument and, one more, the result
        let dtypes = [DType::S8, DType::F32, DType::F64, DType::S16];
        let arrays: Vec<(DType, Vec<u64>, Vec<Option<usize>>)> = (0..1 + random(&mut seed, 3))
            .map(|_| {
                let rank = random(&mut seed, 6);
                let axes: Vec<Option<usize>> = (0..rank)
                    .map(|_| (random(&mut seed, 2) == 0).then(|| random(&mut seed, sizes.len() as u64) as usize))
                    .collect();
                let dims = axes.iter().map(|a| a.map_or_else(|| 1 + random(&mut seed, 4), |s| sizes[s].most)).collect();
                (dtypes[random(&mut seed, 4) as usize], dims, axes)
            })
            .collect();
        let all = Sizes {
            all: sizes.clone(),
            args: arrays.iter().map(|a| a.2.clone()).collect(),
            results: arrays.iter().map(|a| a.2.clone()).collect(),
        };
        let given: Vec<u64> = sizes.iter().map(|s| s.most).collect();
        let smaller: Vec<Vec<u64>> =
            [given.iter().zip(&sizes).map(|(n, s)| (n / 2).max(s.least)).collect::<Vec<u64>>()].into();
        let (texts, count) = (arrays.clone(), sizes.len());
        let make = move |most: &[u64], is_exact: bool| {
            let (mut body, mut names, mut types) = (String::new(), Vec::new(), Vec::new());
            for (i, (dtype, dims, axes)) in texts.iter().enumerate() {
                let dims: Vec<String> = Sizes::actual_dims(axes, dims, most).iter().map(u64::to_string).collect();
                let shape = format!("{dtype}[{}]", dims.join(","));
                let _ = write!(
                    body,
                    " x{i} = {shape} parameter({i})\n k{i} = {dtype}[] constant(1)\n b{i} = {shape} broadcast(k{i}), dimensions={{}}\n y{i} = {shape} add(x{i}, b{i})\n"
                );
                names.push(format!("y{i}"));
                types.push(shape);
            }
            for s in 0..if is_exact { 0 } else { count } {
                let _ = writeln!(body, " size.{s} = s32[] parameter({})", texts.len() + s);
            }
            format!(
                "HloModule copies\nENTRY e {{\n{body} ROOT o = ({}) tuple({})\n}}\n",
                types.join(", "),
                names.join(", ")
            )
        };
        let lowered = function(all, &smaller, 0, Box::new(make));
        let mut calls = Vec::new();
        for round in 0..6 {
            let values: Vec<u64> = sizes
                .iter()
                .map(|s| match round {
                    0 => s.most,
                    1 => s.least,
                    _ => s.least + random(&mut seed, s.most - s.least + 1),
                })
                .collect();
            // a size that no array has is the largest
            let used = |s: usize| arrays.iter().any(|a| a.2.contains(&Some(s)));
            let values: Vec<u64> =
                values.iter().enumerate().map(|(s, &n)| if used(s) { n } else { sizes[s].most }).collect();
            calls.push(
                arrays.iter().map(|(t, dims, axes)| counted(*t, &Sizes::actual_dims(axes, dims, &values))).collect(),
            );
        }
        agree(lowered, &calls, 1);
    }
}

#[test]
fn integers_of_few_bits_are_drawn() {
    for (dtype, most) in
        [(DType::U1, 1), (DType::S2, 1), (DType::U2, 3), (DType::S4, 3), (DType::U4, 3), (DType::S8, 3)]
    {
        let info = TensorInfo { name: "x".into(), called: None, field: "x".into(), dtype, dims: vec![64] };
        let drawn = super::arguments::random_array(&info, 7).expect("it is small");
        let all: Vec<i64> = (0..64).filter_map(|i| drawn.get_i64(i)).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&0), Some(&most)), "{dtype}");
    }
}
