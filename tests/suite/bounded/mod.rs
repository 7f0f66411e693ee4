//! One function for every size up to a bound, against the same function lowered for exactly each size: the interpreter evaluates
//! both, the first on arrays whose padding is as bad as it can be.
mod guards;
mod compared;
mod images;
mod steps;

use compared::{Numbers, close, compared, evaluated};
use std::path::Path;
use std::sync::Arc;
use steps::random;
use tfaot::compile;
use tfaot::lower::{FixedSizeLowering, Lowered};
use tfaot::prepare::{FeedSpec, Request};
use tfaot::tensor::{DType, Size, Tensor};

fn lowered(path: &Path, feeds: &[&str]) -> Lowered {
    let feeds = feeds.iter().map(|f| FeedSpec::parse(f).expect("a feed")).collect();
    let request = Request { feeds, ..Request::default() };
    let mut fronts =
        compile::load_and_lower(path, None, &request).unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
    fronts.entries.remove(0).lowered
}

/// The results of a function lowered for exactly some sizes.
fn results_of(exact: &FixedSizeLowering, sizes: &[u64], args: &[Tensor]) -> Vec<Tensor> {
    tfaot::bounded::evaluate_at_sizes(exact, sizes, args).expect("it can be evaluated").1
}

/// A feed with numbers in place of the sizes of a function that it names: `x=f32[3,4]` for `x=f32[n<=9,4]`.
fn with_sizes(feed: &str, function: &Lowered, sizes: &[u64]) -> String {
    let named = &function.size_variants.as_ref().expect("sizes vary").sizes.all;
    let one = |part: &str| match part.split_once("<=") {
        Some((name, _)) => {
            let at = named.iter().position(|size| size.name == name).expect("a size of the function");
            sizes[at].to_string()
        }
        None => part.to_string(),
    };
    let (name, dims) = feed.split_once('[').expect("a feed with sizes");
    let dims: Vec<String> = dims.trim_end_matches(']').split(',').map(one).collect();
    format!("{name}[{}]", dims.join(","))
}

/// How many random functions are looked at.
fn rounds() -> u64 {
    std::env::var("TFAOT_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

#[test]
fn random_functions_are_right_for_every_size() {
    let size = |name: &str, most| Size { name: name.to_string(), least: 1, most, is_result: false, is_check: false };
    let (mut right, mut refused, mut limited) = (0, 0, 0);
    for seed in 0..rounds() {
        let axes = vec![vec![Some(0), Some(1), None], vec![]];
        let exact = FixedSizeLowering(Arc::new(move |sizes| Ok(random(seed, sizes, 8))));
        let reference = |sizes: &[u64], args: &[Tensor]| results_of(&exact, sizes, args);
        match tfaot::bounded::lower(&[size("n", 11), size("m", 9)], axes, &steps::traced(seed, 8, None)) {
            Ok(lowered) => {
                limited += u64::from(compared(&lowered, &reference, 3, seed));
                right += 1;
            }
            Err(error) => {
                let all = error.into_diagnostics();
                assert!(all.iter().all(|d| d.code == tfaot::diag::Code::OpenSize), "seed {seed}: {all:?}");
                if std::env::var("TFAOT_TOLD").is_ok() {
                    println!("seed {seed}: {}", all[0].message);
                }
                refused += 1;
            }
        }
    }
    println!("{right} right, {refused} refused, loops end early in {limited}");
    assert!(limited * 2 > right, "few loops end early");
    assert!(right > 2 * refused, "{right} right, {refused} refused");
}

/// The rows `from..to` of an array.
fn rows(x: &Tensor, from: u64, to: u64) -> Tensor {
    let row = x.bytes.len() / x.dims[0] as usize;
    let dims = [vec![to - from], x.dims[1..].to_vec()].concat();
    Tensor::new(x.dtype, dims, x.bytes[from as usize * row..to as usize * row].to_vec())
}

#[test]
fn random_functions_of_rows_are_the_same_in_pieces() {
    const N: u64 = 7;
    let (mut in_pieces, mut whole) = (0, 0);
    for seed in 0..rounds() {
        let n = Size { name: "n".to_string(), least: 1, most: 11, is_result: false, is_check: false };
        let axes = vec![vec![Some(0), None, None], vec![]];
        let traced = steps::traced(seed, 1 + seed % 8, Some(5));
        let Ok(lowered) = tfaot::bounded::lower(&[n], axes, &traced) else { continue };
        let sized = lowered.size_variants.expect("a size varies");
        if !sized.by_rows {
            whole += 1;
            continue;
        }
        in_pieces += 1;
        let mut numbers = Numbers(seed);
        let (x, index) = (numbers.tensor(DType::F32, &[N, 5, 3]), numbers.tensor(DType::S32, &[]));
        let of = |n: u64, x: Tensor| {
            tfaot::bounded::evaluate_at_sizes(&sized.exact, &[n], &[x, index.clone()]).expect("it can be evaluated").1
        };
        let all = of(N, x.clone());
        for (from, to) in [(0, 3), (3, 4), (4, N)] {
            for (got, all) in of(to - from, rows(&x, from, to)).iter().zip(&all) {
                let want = rows(all, from, to);
                assert!(close(got, &want), "seed {seed}, rows {from} to {to}:\n{got:?}\n{want:?}");
            }
        }
    }
    println!("{in_pieces} in pieces, {whole} as a whole");
    assert!(in_pieces * 8 > whole, "{in_pieces} in pieces, {whole} as a whole");
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn graphs_are_right_for_every_size() {
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for (graph, feeds) in [
        ("saved_model", &["x=f32[n<=9,4]"][..]),
        ("graphs/mlp/graph.pb", &["x=f32[n<=20,?]"]),
        ("graphs/conv_net/graph.pb", &["image=f32[n<=3,?,?,?]"]),
        ("graphs/norms/graph.pb", &["x=f32[n<=3,?,?,?]"]),
        ("graphs/reductions/graph.pb", &["x=f32[n<=7,?,?]"]),
        ("graphs/order/graph.pb", &["zeros=f32[n<=5,m<=60]"]),
        ("graphs/open_sizes/graph.pb", &["x=f32[n<=9,?]", "image=f32[?,h<=12,w<=9,?]"]),
        ("graphs/open_images/graph.pb", &["image=f32[n<=2,h<=7,w<=6,?]"]),
        ("graphs/open_layers/graph.pb", &["x=f32[n<=3,t<=6,?]", "ids=s32[n<=3,t<=6]"]),
        ("graphs/open_steps/graph.pb", &["x=f32[n<=3,t<=6,?]"]),
        ("graphs/open_path/graph.pb", &["x=f32[t<=9,n<=4,?]"]),
        ("graphs/open_boxes/graph.pb", &["x=f32[n<=12,?,?]", "scores=f32[n<=12,?]"]),
        ("graphs/sizes_within/graph.pb", &["x=f32[n<=9,?]"]),
    ] {
        let path = graphs.join(graph);
        let function = lowered(&path, feeds);
        let reference = |sizes: &[u64], args: &[Tensor]| {
            let fixed = feeds.iter().map(|feed| with_sizes(feed, &function, sizes)).collect::<Vec<String>>();
            let fixed = lowered(&path, &fixed.iter().map(String::as_str).collect::<Vec<&str>>());
            match &fixed.size_variants {
                Some(sized) => results_of(&sized.exact, &[], args),
                None => evaluated(&fixed.module, args.to_vec()),
            }
        };
        compared(&function, &reference, 3, 1);
    }
}
