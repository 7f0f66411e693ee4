//! docs/limits.md against the product: each statement of it that a program can show has one here, below `testdata/limits/`, with
//! TensorFlow's answers where they are (`tools/make_limits`). A statement that is not in the table has its reason in [`NOT_RUN`].
use crate::common::{npz, path, said, tfaot, tolerance::departure};
use tfaot::tensor::Tensor;

/// What becomes of a program.
enum Outcome {
    /// TensorFlow's answers.
    Agrees,
    /// Answers other than TensorFlow's, with these numbers.
    Gives(&'static [f64]),
    /// An error with this code.
    Refused(&'static str),
}
use Outcome::{Agrees, Gives, Refused};

/// A statement of the page, the program that shows it, and what becomes of that.
struct Limit {
    says: &'static str,
    file: &'static str,
    flags: &'static [&'static str],
    outcome: Outcome,
}

const fn limit(says: &'static str, file: &'static str, flags: &'static [&'static str], outcome: Outcome) -> Limit {
    Limit { says, file, flags, outcome }
}

const NONE: &[&str] = &[];
const IMAGES: &[&str] = &["--dim", "in0[1]=2..16", "--dim", "in0[2]=2..16"];
const ROWS: &[&str] = &["--dim", "1..8"];

#[rustfmt::skip]
const LIMITS: &[Limit] = &[
    limit("`x[:, i]` and `x[i:i+3]` have sizes that are known at compile time", "column.npz", NONE, Agrees),
    limit("start where all their elements are within the array", "window.npz", NONE, Agrees),
    limit("a program that counts on that (`x[i:i+3]` near the end) is not told", "window_leading_out.npz", NONE, Gives(&[9.0, 10.0, 11.0])),
    limit("`x[i:]`, `x[:i]` and `x[i:j]` have as many elements as a call says", "tail.npz", NONE, Agrees),
    limit("`x[i:]`, `x[:i]` and `x[i:j]` have as many elements as a call says", "head.npz", NONE, Agrees),
    limit("`x[i:]`, `x[:i]` and `x[i:j]` have as many elements as a call says", "between.npz", NONE, Agrees),
    limit("in a loop they are refused (`TFA0106`)", "tail_in_loop.npz", NONE, Refused("TFA0106")),
    limit("in a loop they are refused (`TFA0106`)", "head_in_loop.npz", NONE, Refused("TFA0106")),
    limit("`resize_with_pad`", "resize_with_pad.npz", IMAGES, Agrees),
    limit("`central_crop`", "central_crop.npz", IMAGES, Agrees),
    limit("resizing that keeps the proportions", "resize_keeping_proportions.npz", IMAGES, Agrees),
    limit("`tf.map_fn` that gives rows of rows back", "rows_of_rows.npz", ROWS, Refused("TFA0106")),
    limit("`tf.map_fn` that gives rows of rows back", "rows.npz", ROWS, Agrees),
    limit("lists that are joined round by round with `concat`", "joined_in_loop.npz", NONE, Refused("TFA0108")),
    limit("sums of each (`reduce_sum(rows, axis=1)`)", "sums_of_rows.npz", ROWS, Agrees),
    limit("Branches on an open size of which one is no function for some sizes", "branch_on_size.npz", &["--dim", "1..16"], Refused("TFA0104")),
    limit("Sums of two arrays that values size", "sum_of_selected.npz", NONE, Refused("TFA0008")),
    limit("`reduce` from an initial value that is not neutral", "reduce_from_one.hlo", NONE, Gives(&[4951.0])),
    limit("`set-dimension-size` by a number that only a call says", "set_dimension_size.hlo", NONE, Refused("TFA0203")),
    limit("`maximum` and `minimum` of complex numbers", "complex_maximum.hlo", NONE, Refused("TFA0202")),
    limit("equal keys of a sort that is not stable", "unstable_sort.hlo", NONE, Gives(&[1.0, 3.0, 5.0, 0.0, 2.0, 4.0])),
    limit("Poisson's distribution with a rate that is NaN", "poisson.npz", NONE, Gives(&[f64::NAN, f64::NAN])),
    limit("results of `Igammac` below the smallest normal number", "igammac.npz", NONE, Gives(&[3.783505853677006e-44])),
];

/// Bullets and rows of the page about programs that none of its own shows.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "| quotients of complex constants",
        "depends on what folds a quotient, which tests/suite/scalar_ops.rs holds to XLA's code",
    ),
    ("| eigenvalues of general matrices", "the order of eigenvalues is free: tests/ops/linalg compares what is not"),
    ("| `Svd` without vectors", "TensorFlow's kernel gives memory that it never wrote"),
    ("| `Conv3D` of `bfloat16` numbers", "three of TensorFlow's own tests, which are not in this repository"),
    ("| `Igammac` of `float32` arguments", "one of TensorFlow's own tests, which is not in this repository"),
    ("| `Ndtri` of the smallest", "TensorFlow's kernels take no bfloat16, and its XLA runs under its own tests"),
    ("| `Betainc` of `float32`", "one of TensorFlow's own tests, which is not in this repository"),
];

/// The sections of the page about what programs are refused and where answers differ.
const SECTIONS: &[&str] =
    &["## Indices that are known at run time only", "## Sizes that are refused", "## Where answers differ"];

fn page() -> String {
    std::fs::read_to_string(path("docs/limits.md")).expect("the page")
}

/// The text with one space wherever it has any.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong with the outcome of a program.
fn wrong(limit: &Limit) -> Option<String> {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let (file, results) = (path("testdata/limits").join(limit.file), at("out.npz"));
    let mut arrays = std::collections::BTreeMap::new();
    let (given, graph) = (file.display().to_string(), at("graph.pb"));
    let mut args = if limit.file.ends_with(".hlo") {
        vec!["hlo", "run", &given, "--outputs", &results]
    } else {
        arrays = npz(&file);
        std::fs::write(&graph, &arrays.remove("graph").expect("a graph").bytes).expect("a writable folder");
        vec!["run", &graph, "-q", "--inputs", &given, "--outputs", &results, "--fetch", "out0"]
    };
    args.extend(limit.flags);
    let output = tfaot(&args);
    let told = said(&output);
    match limit.outcome {
        Refused(code) if !output.status.success() && told.contains(code) => return None,
        Refused(code) => return Some(format!("is not refused with {code}: {told}")),
        Agrees | Gives(_) if !output.status.success() => return Some(told),
        Agrees | Gives(_) => {}
    }
    let got = npz(std::path::Path::new(&results)).into_values().next().expect("a result");
    let expected = arrays.get("out0");
    match limit.outcome {
        Gives(numbers) => {
            let want: Vec<f64> = numbers.to_vec();
            let found: Vec<f64> = (0..got.len()).filter_map(|i| got.get_f64(i)).collect();
            let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-6 * b.abs() || a.is_nan() && b.is_nan();
            let same = found.len() == want.len() && found.iter().zip(&want).all(near);
            let differs = expected.is_none_or(|e: &Tensor| departure(&got, e).is_some());
            (!same || !differs).then(|| format!("gives {found:?}"))
        }
        Agrees => departure(&got, expected.expect("TensorFlow's answer")),
        Refused(_) => None,
    }
}

#[test]
fn the_page_says_what_happens() {
    let page = flowing(&page());
    let mut all = Vec::new();
    for limit in LIMITS {
        assert!(page.contains(limit.says), "docs/limits.md does not say: {}", limit.says);
        all.extend(wrong(limit).map(|why| format!("{} ({}): {why}", limit.says, limit.file)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn each_statement_has_a_program_or_a_reason() {
    let page = page();
    let mut missing = Vec::new();
    for section in page.split("\n## ").filter(|s| SECTIONS.iter().any(|head| s.starts_with(&head[3..]))) {
        // a bullet goes on in lines that are indented
        let joined = section.replace("\n  ", " ");
        let statements = joined.lines().filter(|line| line.starts_with("- ") || line.starts_with("| "));
        let is_head = |line: &str| line.starts_with("| what |");
        for line in statements.filter(|line| !is_head(line)) {
            let line = flowing(line);
            let is_run = LIMITS.iter().any(|limit| line.contains(limit.says));
            if !is_run && !NOT_RUN.iter().any(|(start, _)| line.starts_with(start)) {
                missing.push(line);
            }
        }
    }
    assert!(missing.is_empty(), "without a program or a reason:\n{}", missing.join("\n"));
    let stale: Vec<&str> = NOT_RUN.iter().map(|n| n.0).filter(|start| !page.contains(start)).collect();
    assert!(stale.is_empty(), "not on the page: {stale:?}");
    for section in SECTIONS {
        assert!(page.contains(section), "{section}");
    }
}
