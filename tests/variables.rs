//! Variables as state, from the file to HLO: calls in order over one state by the interpreter, against TensorFlow's answers.
mod common;

use common::{npz, path, tolerance::departure};
use std::collections::BTreeMap;
use std::path::Path;
use tfaot::compile::{self, Fronts};
use tfaot::hlo::Literal;
use tfaot::interp;
use tfaot::lower::Lowered;
use tfaot::prepare::Request;
use tfaot::tensor::Tensor;

/// The values of the variables, and how calls change them.
struct Session {
    fronts: Fronts,
    state: Vec<Tensor>,
}

/// The leaves of the root.
fn evaluated(lowered: &Lowered, args: &[&Tensor]) -> Vec<Tensor> {
    let literals: Vec<Literal> = args.iter().map(|t| Literal::Array((*t).clone())).collect();
    let root = interp::evaluate(&lowered.module, lowered.module.entry, &literals).expect("the interpreter runs it");
    root.leaves().into_iter().cloned().collect()
}

impl Session {
    fn new(fronts: Fronts) -> Session {
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
        let input = |info: &tfaot::tensor::TensorInfo| inputs.get(&info.name).or_else(|| inputs.get(info.shown()));
        let args = lowered.args.iter().map(|info| input(info).unwrap_or_else(|| panic!("no input {}", info.name)));
        let mut leaves = evaluated(lowered, &args.chain(&self.state).collect::<Vec<_>>()).into_iter();
        let mut results = BTreeMap::new();
        for (info, value) in lowered.results.iter().zip(leaves.by_ref()) {
            results.insert(info.shown().to_string(), value.clone());
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
    let calls: Vec<Call> = lines.lines().map(|l| serde_json::from_str(l).expect("a call a line")).collect();
    let mut signatures: Vec<String> = Vec::new();
    for call in &calls {
        if !signatures.contains(&call.signature) {
            signatures.push(call.signature.clone());
        }
    }
    let request = Request { signatures, ..Request::default() };
    let fronts = match compile::fronts(&folder.join("saved_model"), None, &request) {
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
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
modules! { flow training variables }

#[test]
fn every_module_is_tested() {
    for entry in std::fs::read_dir(path("testdata/modules")).expect("the folder is in the repository").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(NAMES.contains(&name.as_str()), "testdata/modules/{name} is in no test: add it to `modules!`");
    }
}
