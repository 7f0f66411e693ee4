//! Whole graphs of `testdata/graphs/` against TensorFlow's stored answers, through the interpreter and as machine code.
use crate::common::{npz, path, said, tfaot, tolerance::departure};

/// Graphs whose results are TensorFlow's bit for bit.
const EXACT: &[&str] = &["fake_quant", "order", "quantized_layers"];

/// Feeds of graphs that leave sizes open.
pub const OPEN: &[(&str, &[&str])] = &[
    ("open_boxes", &["--feed", "x=f32[n<=12,2,4]", "--feed", "scores=f32[n<=12,2]"]),
    ("open_images", &["--feed", "image=f32[n<=2,h<=7,w<=6,?]"]),
    ("open_layers", &["--feed", "x=f32[n<=5,t<=7,?]", "--feed", "ids=s32[n<=5,t<=7]"]),
    ("open_steps", &["--feed", "x=f32[n<=3,t<=6,?]"]),
    ("open_path", &["--feed", "x=f32[t<=9,n<=4,?]"]),
    ("open_sizes", &["--feed", "x=f32[n<=9,?]", "--feed", "image=f32[?,h<=12,w<=9,?]"]),
    ("sizes_within", &["--feed", "x=f32[n<=9,4]"]),
    ("rows_in_loops", &["--feed", "values=f32[v<=64]", "--feed", "lengths=s32[n<=16]"]),
    ("rows_from_loops", &["--feed", "values=f32[v<=64]", "--feed", "lengths=s32[n<=16]", "--feed", "x=f32[m<=9,6]"]),
    ("ragged_ids", &["--feed", "values=f32[v<=64]", "--feed", "lengths=s32[n<=16]"]),
    ("ragged_rows", &["--feed", "values=f32[v<=64]", "--feed", "lengths=s32[n<=16]"]),
];

/// Runs `name` with `engine` and compares every output.
fn check(name: &str, engine: &str) {
    let folder = path("testdata/graphs").join(name);
    let file = |inside: &str| folder.join(inside).display().to_string();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let out = scratch.path().join("out.npz");
    let want = npz(&folder.join("expect.npz"));
    let (graph, feeds, result) = (file("graph.pb"), file("feeds.npz"), out.display().to_string());
    let mut args = vec!["run", &graph, "--inputs", &feeds, "--outputs", &result, "--engine", engine];
    args.extend(want.keys().flat_map(|key| ["--fetch", key]));
    args.extend(OPEN.iter().filter(|(open, _)| *open == name).flat_map(|(_, feeds)| feeds.iter()));
    let output = tfaot(&args);
    assert!(output.status.success(), "{name} by {engine}\ntfaot {}\n{}", args.join(" "), said(&output));
    let got = npz(&out);
    let wrong: Vec<String> = want
        .iter()
        .filter_map(|(key, want)| match got.get(key) {
            Some(got) if EXACT.contains(&name) => (got != want).then(|| format!("{key}: {got:?} instead of {want:?}")),
            Some(got) => departure(got, want).map(|why| format!("{key}: {why}")),
            None => Some(format!("{key} is missing")),
        })
        .collect();
    assert!(wrong.is_empty(), "{name} by {engine} departs from TensorFlow:\n{}", wrong.join("\n"));
}

macro_rules! graphs {
    ($($name:ident)*) => {
        mod interpreter { $(#[test] fn $name() { super::check(stringify!($name), "interpreter"); })* }
        mod native { $(#[test] fn $name() { super::check(stringify!($name), "native"); })* }
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
graphs! { arrays_v1 attention branches_v1 condition_gradients conv_net counted_slices fake_quant functions growing_lists integers loops loops_v1 mlp nested_loop_gradients norms open_boxes open_images open_layers open_path open_rounds open_rounds_v1 open_sizes open_steps order quantized_layers ragged_ids ragged_rows reductions resize rows_from_loops rows_in_loops selected_labels sizes_within slices sparse wide_layers }

#[test]
fn every_folder_is_tested() {
    for entry in std::fs::read_dir(path("testdata/graphs")).expect("the folder is in the repository").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(NAMES.contains(&name.as_str()), "testdata/graphs/{name} is in no test: add it to `graphs!`");
    }
}
