//! Each op that has a row against TensorFlow's recorded answers: `tests/ops/FAMILY/OP.npz`, made by `tools/make_op_cases`,
//! through the interpreter and as machine code. A file that is added is a test that is added.
use crate::common::{npz, path, said, tfaot, tolerance::departure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every recorded case, sorted.
fn cases() -> Vec<PathBuf> {
    let list =
        |folder: PathBuf| std::fs::read_dir(folder).expect("a folder of the repository").flatten().map(|e| e.path());
    let families = list(path("tests/ops")).filter(|p| p.is_dir());
    let mut all: Vec<PathBuf> = families.flat_map(list).collect();
    all.sort();
    all
}

fn op_of(case: &Path) -> String {
    case.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What is wrong with the answers of `engine`.
fn wrong(case: &Path, engine: &str) -> Option<String> {
    let mut arrays = npz(case);
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let graph = arrays.remove("graph").unwrap_or_else(|| panic!("{} holds no graph", case.display()));
    std::fs::write(at("graph.pb"), &graph.bytes).expect("a writable folder");
    let (inputs, results) = (case.display().to_string(), at("out.npz"));
    let graph = at("graph.pb");
    let mut args = vec!["run", &graph, "-q", "--inputs", &inputs, "--outputs", &results, "--engine", engine];
    let outs: Vec<&String> = arrays.keys().filter(|k| k.starts_with("out")).collect();
    args.extend(outs.iter().flat_map(|key| ["--fetch", key]));
    let output = tfaot(&args);
    if !output.status.success() {
        return Some(format!("refused: {}", said(&output).lines().next().unwrap_or_default()));
    }
    let got = npz(Path::new(&results));
    outs.iter().find_map(|key| match got.get(*key) {
        Some(got) => departure(got, &arrays[*key]).map(|why| format!("{key}: {why}")),
        None => Some(format!("{key} is missing")),
    })
}

/// The ops that a list names, one a line, each with its reason behind a colon.
fn listed(file: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let name = |line: &str| match line.split_once(": ") {
        Some((name, reason)) if !reason.trim().is_empty() => name.to_string(),
        _ => panic!("{file}: no reason for {line}"),
    };
    text.lines().map(name).collect()
}

/// Runs every case; those that depart must be the ones that are listed with a reason.
fn check(engine: &str) {
    let all = cases();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut found = Vec::new();
        while let Some(case) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(wrong(case, engine).map(|why| format!("{}: {why}", op_of(case))));
        }
        found
    };
    let mut found: Vec<String> = std::thread::scope(|s| {
        let workers: Vec<_> = (0..4).map(|_| s.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().expect("no case panics")).collect()
    });
    found.sort();
    let listed = listed("tests/ops/departs.txt");
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_string();
    let departing: BTreeSet<String> = found.iter().map(|line| name(line)).collect();
    found.retain(|line| !listed.contains(&name(line)));
    assert!(found.is_empty(), "{} of {} ops depart by {engine}:\n{}", found.len(), all.len(), found.join("\n"));
    let right: Vec<&String> = listed.difference(&departing).collect();
    assert!(right.is_empty(), "tests/ops/departs.txt lists what agrees by {engine} now: {right:?}");
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn interpreter() {
    check("interpreter");
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn native() {
    check("native");
}

/// The ops of the modules whose calls `tests/suite/variables.rs` judges, and of graphs of TensorFlow 1 that `tests/suite/graphs.rs` judges.
fn in_modules() -> BTreeSet<String> {
    let mut ops = BTreeSet::new();
    for graph in ["arrays_v1", "branches_v1", "loops_v1"] {
        let file = path("testdata/graphs").join(graph).join("graph.pb");
        let program = tfaot::import::load(&file, None).expect("reads");
        ops.extend(program.graph.nodes.values().map(|n| n.op.to_string()));
    }
    for module in std::fs::read_dir(path("testdata/modules")).expect("a folder of the repository").flatten() {
        let program = tfaot::import::load_with_variables(&module.path().join("saved_model"), None).expect("reads");
        let served =
            tfaot::prepare::reachable_from_signatures(&program, &tfaot::prepare::Request::default()).expect("finds");
        let served = served.expect("it has signatures");
        let bodies =
            program.functions.iter().filter(|(name, _)| served.functions.contains(*name)).map(|(_, f)| &f.graph);
        for graph in std::iter::once(&program.graph).chain(bodies) {
            ops.extend(graph.nodes.values().map(|n| n.op.to_string()));
        }
    }
    ops
}

#[test]
fn every_row_has_a_case() {
    let with: BTreeSet<String> = cases().iter().map(|c| op_of(c)).collect();
    let without = listed("tests/ops/without.txt");
    let rows: BTreeSet<String> = tfaot::ops::all_ops().map(|(_, row)| row.name.to_string()).collect();
    let with_state = in_modules();
    let has = |row: &String| with.contains(row) || without.contains(row) || with_state.contains(row);
    let missing: Vec<&String> = rows.iter().filter(|r| !has(r)).collect();
    assert!(
        missing.is_empty(),
        "rows without a case; tools/make_op_cases records one, tools/make_modules.py those of ops with state: {missing:?}"
    );
    let stale: Vec<&String> = without.iter().filter(|n| with.contains(*n) || !rows.contains(*n)).collect();
    assert!(stale.is_empty(), "tests/ops/without.txt names what has a case or is no row: {stale:?}");
}
