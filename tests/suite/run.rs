//! HLO texts of `tests/run/` on the same random arguments: what machine code gives must be what the interpreter gives.
use crate::common::{npz, path, succeed, tolerance::departure};

fn check(name: &str) {
    let file = path("tests/run").join(format!("{name}.hlo")).display().to_string();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let [want, got] = ["eval", "run"].map(|verb| {
        let out = scratch.path().join(format!("{verb}.npz"));
        succeed(&["hlo", verb, &file, "--outputs", &out.display().to_string()]);
        npz(&out)
    });
    let wrong: Vec<String> = want
        .iter()
        .filter_map(|(key, want)| match got.get(key) {
            Some(got) => departure(got, want).map(|why| format!("{key}: {why}")),
            None => Some(format!("{key} is missing")),
        })
        .collect();
    assert!(wrong.is_empty(), "{file}: machine code departs from the interpreter:\n{}", wrong.join("\n"));
}

macro_rules! texts {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
texts! { alone called_sizes carried empty expanded fixed_sizes in_place indefinite linalg map recurrent reduce_window rows scan scatter select_and_scatter sort spectral topk tuple_of_one wider }

#[test]
fn every_text_is_tested() {
    for entry in std::fs::read_dir(path("tests/run")).expect("the folder is in the repository").flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = file.strip_suffix(".hlo").unwrap_or(&file);
        assert!(NAMES.contains(&name), "tests/run/{file} is in no test: add it to `texts!`");
    }
}
