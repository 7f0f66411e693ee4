//! Variables as state, from the file to HLO: calls in order over one state by the interpreter, against TensorFlow's answers.
use crate::common::{npz, path, tolerance::departure};
use std::collections::BTreeMap;
use std::path::Path;
use tfaot::compile::{self, LoweredModel};
use tfaot::hlo::Literal;
use tfaot::interp;
use tfaot::lower::Lowered;
use tfaot::prepare::Request;
use tfaot::tensor::Tensor;

/// The values of the variables, and how calls change them.
struct Session {
    fronts: LoweredModel,
    state: Vec<Tensor>,
}

/// The leaves of the root.
fn evaluated(lowered: &Lowered, args: &[&Tensor]) -> Vec<Tensor> {
    let literals: Vec<Literal> = args.iter().map(|t| Literal::Array((*t).clone())).collect();
    let root = interp::evaluate(&lowered.module, lowered.module.entry, &literals).expect("the interpreter runs it");
    root.leaves().into_iter().cloned().collect()
}

impl Session {
    fn new(fronts: LoweredModel) -> Session {
        let lowered = fronts.init.as_ref().unwrap_or(&fronts.entries[0].lowered);
        let zeros = |t: &tfaot::tensor::TensorInfo| {
            Tensor::new(t.dtype, t.dims.clone(), vec![0; usize::try_from(t.bytes()).expect("small")])
        };
        let state = lowered.state.iter().map(|v| v.initial.clone().unwrap_or_else(|| zeros(&v.info))).collect();
        let mut session = Session { fronts, state };
        if let Some(init) = session.fronts.init.take() {
            session.run(&init, &BTreeMap::new());
        }
        session
    }

    fn run(&mut self, lowered: &Lowered, inputs: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
        let input =
            |info: &tfaot::tensor::TensorInfo| inputs.get(&info.name).or_else(|| inputs.get(info.display_name()));
        let args = lowered.args.iter().map(|info| input(info).unwrap_or_else(|| panic!("no input {}", info.name)));
        let mut leaves = evaluated(lowered, &args.chain(&self.state).collect::<Vec<_>>()).into_iter();
        let mut results = BTreeMap::new();
        for (info, value) in lowered.results.iter().zip(leaves.by_ref()) {
            results.insert(info.display_name().to_string(), value.clone());
            results.insert(info.name.clone(), value);
        }
        for (old, _) in self.state.iter_mut().zip(&lowered.state).filter(|(_, v)| v.changed) {
            *old = leaves.next().expect("a value for each variable that is changed");
        }
        results
    }

    fn call(&mut self, signature: &str, inputs: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
        let entry = self.fronts.entries.iter().find(|e| e.name == signature).expect("the signature is there");
        let lowered = entry.lowered.clone();
        self.run(&lowered, inputs)
    }
}

/// A call as `calls.jsonl` and `case.json` have it.
#[derive(serde::Deserialize)]
struct Call {
    signature: String,
    inputs: String,
    expect: String,
}

/// What departs from TensorFlow's answers in the calls of a folder with `calls.jsonl`.
pub fn judge(folder: &Path, departs: impl Fn(&Tensor, &Tensor) -> Option<String>) -> Vec<String> {
    let lines = std::fs::read_to_string(folder.join("calls.jsonl")).expect("calls.jsonl");
    if lines.is_empty() {
        return Vec::new();
    }
    let calls: Vec<Call> = lines.lines().map(|l| serde_json::from_str(l).expect("a call a line")).collect();
    let mut signatures: Vec<String> = Vec::new();
    for call in &calls {
        if !signatures.contains(&call.signature) {
            signatures.push(call.signature.clone());
        }
    }
    let request = Request { signatures, ..Request::default() };
    let fronts = match compile::load_and_lower(&folder.join("saved_model"), None, &request) {
        Ok(fronts) => fronts,
        Err(error) => return error.into_diagnostics().iter().map(|d| format!("{d:?}")).collect(),
    };
    let mut session = Session::new(fronts);
    let mut wrong = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let got = session.call(&call.signature, &npz(&folder.join(&call.inputs)));
        for (key, want) in npz(&folder.join(&call.expect)) {
            match got.get(&key) {
                Some(got) => wrong.extend(departs(got, &want).map(|why| format!("call {i}, {key}: {why}"))),
                None => wrong.push(format!("call {i}: {key} is missing")),
            }
        }
    }
    wrong
}

macro_rules! modules {
    ($($name:ident)*) => {
        $(#[test] fn $name() {
            let wrong = judge(&path("testdata/modules").join(stringify!($name)), departure);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        })*
        mod native {
            $(#[test] fn $name() { super::natively(stringify!($name)); })*
        }
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
modules! { draws embeddings flow generators no_gradient recurrent tables training variables version1 }

#[test]
fn initialisers_are_computed() {
    let scratch = tempfile::tempdir().expect("a folder");
    // without its checkpoint nothing but the graph tells the first values
    let file = path("testdata/modules/version1/saved_model/saved_model.pb");
    std::fs::copy(file, scratch.path().join("saved_model.pb")).expect("copies");
    let request = Request { signatures: vec!["all".to_string()], ..Request::default() };
    let fronts = compile::load_and_lower(scratch.path(), None, &request).expect("lowers");
    let lowered = &fronts.entries[0].lowered;
    let names: Vec<&str> = lowered.state.iter().map(|v| v.info.name.as_str()).collect();
    let init = fronts.init.as_ref().expect("an initialiser");
    assert!(init.args.is_empty() && init.results.is_empty());
    assert!(init.state.iter().all(|v| v.changed && (v.initial.is_none() || v.info.name == "random")), "{names:?}");
    let at = |name: &str| names.iter().position(|n| *n == name).expect("a variable");
    let (old, new, noise) = (at("old"), at("new"), at("noise"));
    let session = Session::new(fronts);
    assert_eq!(session.state[old], Tensor::of(&[2], &[0.5f32, 1.5]));
    assert_eq!(session.state[new], Tensor::of(&[2], &[3.0f32, 3.0]));
    let noise = session.state[noise].view::<f32>().to_vec();
    let mean = noise.iter().sum::<f32>() / 500.0;
    assert!((mean - 2.0).abs() < 0.2, "{mean}");
}

/// A graph of TensorFlow 1 as tfcompile takes it: a sum over all calls, in a variable without a first value.
const SUM: &str = r#"
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { unknown_rank: true } } } }
node { name: "add" op: "AssignAddVariableOp" input: "v" input: "x" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "ReadVariableOp" input: "v" input: "^add" attr { key: "dtype" value { type: DT_FLOAT } } }
"#;

#[test]
fn variables_of_a_configuration_are_kept() {
    let scratch = tempfile::tempdir().expect("a folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    std::fs::write(at("sum.pbtxt"), SUM).expect("writes");
    let config = r#"
        feed { id { node_name: "x" } shape { dim { size: 2 } } }
        fetch { id { node_name: "y" } }
        variable { node_name: "v" name: "running_sum" shape { dim { size: 2 } } type: DT_FLOAT }
    "#;
    std::fs::write(at("sum.config"), config).expect("writes");
    crate::common::succeed(&[
        "compile",
        &at("sum.pbtxt"),
        "--config",
        &at("sum.config"),
        "-q",
        "-o",
        &at("out"),
        "--name",
        "sum",
    ]);
    let header = std::fs::read_to_string(at("out/sum.h")).expect("a header");
    assert!(header.contains("float running_sum["), "{header}");
    let declared =
        tfaot::prepare::DeclaredVariable { node: "v".into(), dims: Some(vec![Some(2)]), ..Default::default() };
    let request = Request { fetches: vec!["y".into()], declared: vec![declared], ..Request::default() };
    let mut session =
        Session::new(compile::load_and_lower(Path::new(&at("sum.pbtxt")), None, &request).expect("lowers"));
    let x = BTreeMap::from([("x:0".to_string(), Tensor::of(&[2], &[1.0f32, 2.0]))]);
    session.call("run", &x);
    assert_eq!(session.call("run", &x)["y:0"], Tensor::of(&[2], &[2.0f32, 4.0]));
}

/// The results of a signature of `testdata/modules/draws` in so many calls, with this key.
fn drawn(signature: &str, key: u64, calls: usize) -> Vec<BTreeMap<String, Tensor>> {
    let request = Request { signatures: vec![signature.to_string()], ..Request::default() };
    let fronts = compile::load_and_lower(&path("testdata/modules/draws/saved_model"), None, &request).expect("lowers");
    let mut session = Session::new(fronts);
    assert_eq!(session.state.len(), 1, "the generator is all of the state");
    session.state[0] = Tensor::of(&[2], &[key, 0]);
    let inputs = BTreeMap::from([("x".to_string(), Tensor::of(&[1000], &[1.0f32; 1000]))]);
    (0..calls).map(|_| session.call(signature, &inputs)).collect()
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn hidden_generators_have_the_moments_of_their_distributions() {
    let results = drawn("draw", 5, 2);
    let values = |name: &str| -> Vec<f64> {
        let of =
            |r: &BTreeMap<String, Tensor>| (0..r[name].len()).map(|i| r[name].get_f64(i).expect("a number")).collect();
        results.iter().flat_map(|r| -> Vec<f64> { of(r) }).collect()
    };
    let moments = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64)
    };
    // mean, variance, and bounds of each, with four deviations of the mean of as many numbers
    for (name, mean, variance, low, high) in [
        ("uniform", 0.5, 1.0 / 12.0, 0.0, 1.0),
        ("normal", 0.0, 1.0, -6.0, 6.0),
        ("truncated", 0.0, 0.7737, -2.0, 2.0),
        ("between", 1.2904, 1.6627, -1.0, 4.0),
        ("int", 1.0, 4.0, -2.0, 4.0),
        ("classes", 1.6, 0.44, 0.0, 2.0),
        ("gamma", 1.25, 0.625, 0.0, 20.0),
        ("counts", 3.0, 3.0, 0.0, 20.0),
        ("mapped", 0.5, 1.0 / 12.0, 0.0, 1.0),
    ] {
        let x = values(name);
        let (m, v) = moments(&x);
        let bound = 4.0 * f64::sqrt(variance / x.len() as f64);
        assert!((m - mean).abs() < bound, "{name}: mean {m}");
        assert!((v - variance).abs() < 6.0 * bound * f64::sqrt(variance), "{name}: variance {v}");
        assert!(x.iter().all(|v| (low..=high).contains(v)), "{name}");
    }
    let mut shuffled = values("shuffled")[..100].to_vec();
    assert_ne!(shuffled, (0..100).map(f64::from).collect::<Vec<_>>());
    shuffled.sort_by(f64::total_cmp);
    assert_eq!(shuffled, (0..100).map(f64::from).collect::<Vec<_>>());
    let mut mapped = values("mapped");
    mapped.sort_by(f64::total_cmp);
    mapped.dedup();
    assert_eq!(mapped.len(), 100, "each round of a loop draws anew");
    assert_ne!(results[0]["seeded"], results[0]["other"]);
}

#[test]
fn the_same_key_gives_the_same_bits() {
    let [first, again, other] = [(7, 3), (7, 3), (8, 3)].map(|(key, calls)| drawn("dropped", key, calls));
    assert_eq!(first, again);
    assert_ne!(first[0], first[1], "each call draws anew");
    assert_ne!(first[0], other[0]);
    let kept = (0..1000).filter(|&i| first[0]["y"].get_f64(i) != Some(0.0)).count();
    assert!((700..800).contains(&kept), "{kept} of 1000 are kept");
}

#[test]
fn a_branch_that_is_never_taken_leaves_no_trace() {
    let request = Request { signatures: vec!["never".to_string()], ..Request::default() };
    let fronts = compile::load_and_lower(&path("testdata/modules/draws/saved_model"), None, &request).expect("lowers");
    assert!(fronts.entries[0].lowered.state.is_empty());
}

/// The same calls by machine code, the state between pages that may not be touched, against TensorFlow and the interpreter.
fn natively(name: &str) {
    let folder = path("testdata/modules").join(name);
    let at = |inside: &str| folder.join(inside).display().to_string();
    if std::fs::read(folder.join("calls.jsonl")).expect("calls.jsonl").is_empty() {
        return;
    }
    crate::common::succeed(&["verify", "-q", &at("saved_model"), "--calls", &at("calls.jsonl")]);
}

#[test]
fn every_module_is_tested() {
    for entry in std::fs::read_dir(path("testdata/modules")).expect("the folder is in the repository").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // whose results are as long as values say: `tests/suite/calls.rs`
        let named = ["changing_tables", "growing_variables", "lists"].contains(&name.as_str())
            || NAMES.contains(&name.as_str());
        assert!(named, "testdata/modules/{name} is in no test: add it to `modules!`");
    }
}
