//! `tfaot verify` blames the op that departs, not the ops behind it.
//!
//! The reference is what a network computes in which the result of one op in the middle is altered: what comes before agrees with
//! it, that op departs by itself, and what comes behind departs by what it was given.
use crate::common::{npz, path, said, succeed, tfaot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tfaot::tensor::Tensor;

const GRAPH: &str = "testdata/graphs/conv_net/graph.pb";
const FEEDS: &str = "testdata/graphs/conv_net/feeds.npz";
const BEFORE: &[&str] = &["Conv2D:0", "BiasAdd:0", "Relu:0", "depthwise:0", "BiasAdd_1:0"];
const ALTERED: &str = "Relu6:0";
const BEHIND: &[&str] = &["Conv2D_1:0", "Conv2D_2:0", "add:0", "Elu:0", "Identity:0"];

/// Writes arrays of f32.
fn write(file: &Path, arrays: &BTreeMap<String, Tensor>) {
    let mut writer = npyz::npz::NpzWriter::create(file).expect("it is made");
    for (name, tensor) in arrays {
        use npyz::WriterBuilder;
        let array = writer.array(name, Default::default()).expect("an array begins");
        let mut array = array.default_dtype().shape(&tensor.dims).begin_nd().expect("it begins");
        array.extend(bytemuck::cast_slice::<u8, f32>(&tensor.bytes).iter().copied()).expect("it is written");
        array.finish().expect("it is written");
    }
}

/// What `tfaot run` computes of these tensors.
fn computed(fetches: &[&str], inputs: &Path, more: &[&str], out: &Path) -> BTreeMap<String, Tensor> {
    let (inputs, shown) = (inputs.display().to_string(), out.display().to_string());
    let mut words = vec!["run", GRAPH, "-q", "--inputs", &inputs, "--outputs", &shown];
    fetches.iter().for_each(|f| words.extend(["--fetch", f]));
    words.extend(more);
    succeed(&words);
    npz(out)
}

#[test]
fn the_op_that_departs_is_named_and_what_it_hands_on_is_told_apart() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let before = [BEFORE, &[ALTERED]].concat();
    let mut reference = computed(&before, &path(FEEDS), &[], &at("before.npz"));
    let tensor = &reference[ALTERED];
    let values: Vec<f32> = bytemuck::cast_slice::<u8, f32>(&tensor.bytes).iter().map(|v| v + 0.5).collect();
    let altered = Tensor::of(&tensor.dims, &values);
    write(&at("altered.npz"), &BTreeMap::from([(ALTERED.to_string(), altered.clone())]));
    reference.insert(ALTERED.to_string(), altered);
    let fed = ["--feed", "Relu6=f32[2,8,8,16]"];
    reference.extend(computed(BEHIND, &at("altered.npz"), &fed, &at("behind.npz")));
    write(&at("reference.npz"), &reference);

    let expect = at("reference.npz").display().to_string();
    let words = ["verify", GRAPH, "-q", "--inputs", FEEDS, "--expect", &expect];
    let output = tfaot(&[&words[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("standard output is JSON");
    assert_eq!((&told["ok"], &told["first"]), (&Value::from(false), &Value::from(ALTERED)));
    let step = |tensor: &str| {
        let ops = told["ops"].as_array().expect("a list of ops");
        ops.iter().find(|op| op["tensor"] == tensor).unwrap_or_else(|| panic!("{tensor} is not in {told:#}")).clone()
    };
    let number = |tensor: &str, key: &str| step(tensor)[key].as_f64();
    assert!(BEFORE.iter().all(|t| number(t, "total") <= Some(1.0)), "{told:#}");
    assert!(number(ALTERED, "own") > Some(1.0), "{told:#}");
    assert!(
        number("Conv2D_1:0", "total") > Some(1.0) && number("Conv2D_1:0", "own").is_some_and(|own| own <= 1.0),
        "{told:#}"
    );
    let words = said(&tfaot(&words));
    assert!(words.contains("`Relu6`") && words.contains("Relu6:0 (Relu6)"), "{words}");
}

/// `tfaot verify` with this expectation: what it says as JSON, and in words.
fn verified(expect: &Path) -> (Value, String) {
    let expect = expect.display().to_string();
    let words = ["verify", GRAPH, "-q", "--inputs", FEEDS, "--expect", &expect];
    let output = tfaot(&[&words[..], &["--json"]].concat());
    let told = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let output = tfaot(&words);
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    (told, said(&output))
}

/// The same array with every element moved.
fn moved(tensor: &Tensor) -> Tensor {
    let values: Vec<f32> = bytemuck::cast_slice::<u8, f32>(&tensor.bytes).iter().map(|v| v + 0.5).collect();
    Tensor::of(&tensor.dims, &values)
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn a_wrong_expectation_is_blamed_on_no_op() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| folder.path().join(name);
    let right = computed(&["Identity:0", ALTERED], &path(FEEDS), &[], &at("right.npz"));
    write(&at("wrong.npz"), &BTreeMap::from([("Identity:0".to_string(), moved(&right["Identity:0"]))]));
    let (told, words) = verified(&at("wrong.npz"));
    assert_eq!((&told["first"], &told["expectation"]), (&Value::Null, &Value::from("Identity:0")));
    assert!(!words.contains("(Identity)") && words.contains("both depart from the expectation"), "{words}");

    // An intermediate array counts too, though the output is right.
    let mut middle = right.clone();
    middle.insert(ALTERED.to_string(), moved(&right[ALTERED]));
    write(&at("middle.npz"), &middle);
    let (told, words) = verified(&at("middle.npz"));
    assert_eq!((&told["ok"], &told["expectation"]), (&Value::from(false), &Value::from(ALTERED)));
    assert!(
        words.contains("differs  Relu6:0 with expected") && words.contains("equal    Identity:0 with expected"),
        "{words}"
    );

    // What is no tensor is refused by its name.
    write(
        &at("strange.npz"),
        &BTreeMap::from([
            ("Identity:0".to_string(), right["Identity:0"].clone()),
            ("nowhere:0".to_string(), right[ALTERED].clone()),
        ]),
    );
    let (_, words) = verified(&at("strange.npz"));
    assert!(words.contains("`nowhere:0`, which is no tensor"), "{words}");
}

/// A product with weights that code may round, what it reads, and what reads it or what it reads.
fn product() -> String {
    let row = |i: usize| (0..32).map(|j| (((i * 7 + j * 3) % 29) as f32 / 9.0 - 1.5).to_string()).collect::<Vec<_>>();
    let rows: Vec<String> = (0..64).map(|i| format!("{{{}}}", row(i).join(","))).collect();
    format!(
        "HloModule m\nENTRY e {{ x = f32[8,64] parameter(0)\n w = f32[64,32] constant({{{}}})\n before = f32[8,64] exponential(x)\n \
         product = f32[8,32] dot(before, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n \
         behind = f32[8,32] negate(product)\n beside = f32[8,64] sine(before)\n \
         ROOT r = (f32[8,32], f32[8,64]) tuple(behind, beside) }}\n",
        rows.join(",")
    )
}

#[test]
fn the_instruction_on_which_engines_differ_is_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("product.hlo").display().to_string();
    std::fs::write(&file, product()).expect("a writable folder");
    let engines = ["hlo", "run", &file, "--engine", "native,interpreter", "--bisect"];
    // Weights of the code are rounded, and those of the interpreter are not: the product departs by itself, and nothing else does.
    let output = tfaot(&[&engines[..], &["--weights", "int8"]].concat());
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let line = |start: &str| told.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("{start}: {told}"));
    let added = |line: &str| -> f64 {
        let number = line.rsplit(", ").next().and_then(|l| l.split(' ').next());
        number.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    assert!(line("differs").starts_with("differs  0 ") && line("equal").starts_with("equal    1 "), "{told}");
    assert!(added(line("departs  product (dot)")) > 1.0 && added(line("departs  behind (negate)")) <= 1.0, "{told}");
    assert!(!told.contains("departs  before") && !told.contains("departs  beside"), "{told}");
    assert!(told.contains("`product` (dot) is the first op that departs by itself"), "{told}");
    let told = succeed(&engines);
    assert!(told.lines().all(|l| l.starts_with("equal")), "{told}");
}
