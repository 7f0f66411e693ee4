//! The Python package, with numpy alone.
use crate::common::{path, said};
use std::process::Command;

/// A Python that has numpy: the judges', or the system's.
fn python() -> Option<String> {
    let own = path("target/judge/bin/python").display().to_string();
    let found = [own.as_str(), "/usr/bin/python3", "python3"]
        .into_iter()
        .find(|python| Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success()));
    if found.is_none() {
        let required = std::env::var("TFAOT_TOOLS").is_ok_and(|v| v == "required");
        assert!(!required, "no Python has numpy; tools/setup python3-numpy installs it");
        eprintln!("SKIPPED: no Python has numpy");
    }
    found.map(str::to_string)
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn the_package_calls_models_on_numpy() {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.args(["-m", "unittest", "discover", "-s", "tests", "-p", "test_numpy.py"]).current_dir(path("python"));
    command.env("TFAOT_BINARY", env!("CARGO_BIN_EXE_tfaot")).env("PYTHONPATH", ".").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
}

/// The program of the page about Python.
#[test]
fn the_page_runs() {
    let Some(python) = python() else { return };
    let page = std::fs::read_to_string(path("docs/python.md")).expect("the page");
    let text = page.split("```python\n").nth(1).and_then(|t| t.split("```").next()).expect("a program");
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::copy(path("testdata/graphs/conv_net/graph.pb"), folder.path().join("model.pb")).expect("copied");
    let mut command = Command::new(python);
    command.args(["-c", text]).current_dir(folder.path()).env("PYTHONPATH", path("python"));
    let output = command.env("TFAOT_BINARY", env!("CARGO_BIN_EXE_tfaot")).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    let printed = said(&output);
    assert!(printed.contains("(2, 16, 16, 3) float32") && printed.contains("True []"), "{printed}");
    assert!(printed.contains("TFA0001") && folder.path().join("out/model.o").is_file(), "{printed}");
}
