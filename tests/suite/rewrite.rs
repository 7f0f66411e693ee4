//! `tfaot rewrite --mode native` on the repository's graphs: what it writes. `tools/judge_rewrite` runs it in TensorFlow.
use crate::common::{path, program};
use object::{Object, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tfaot::tensor::{DType, Tensor};

/// Clusters of any size.
const SMALL: &[&str] = &["--tf-xla-flags=--tf_xla_min_cluster_size=1"];

fn rewrite(graph: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfaot"));
    let (graph, out) = (graph.display().to_string(), out.display().to_string());
    let fixed = ["rewrite", &graph, "-o", &out, "--mode", "native", "-q"];
    command.env_remove("TF_XLA_FLAGS").args(fixed).args(more).output().expect("the binary starts")
}

/// Ops of a graph with their numbers, functions included.
fn ops(graph: &Path) -> serde_json::Value {
    let said = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .args(["inspect", &graph.display().to_string(), "--json"])
        .output()
        .expect("the binary starts");
    let all: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    all["ops"].clone()
}

/// What a library may ask of the process that loads it, beside TensorFlow's C ABI.
const POSIX: &[&str] = &[
    "calloc",
    "free",
    "getpid",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "posix_memalign",
    "sched_getaffinity",
    "sched_yield",
    "strlen",
    "write",
];

#[test]
fn libraries_need_only_the_c_abi() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in ["mlp", "functions", "integers", "slices"] {
        let out = dir.path().join(format!("{name}.pb"));
        let said = rewrite(&path("testdata/graphs").join(name).join("graph.pb"), &out, SMALL);
        assert!(said.status.success(), "{name}: {}", crate::common::said(&said));
        let bytes = std::fs::read(out.with_extension("so")).expect("a library");
        let library = object::File::parse(&*bytes).expect("a library");
        let symbols: Vec<_> = library.dynamic_symbols().filter(|s| s.name().is_ok_and(|n| !n.is_empty())).collect();
        for symbol in symbols.iter().filter(|s| s.is_undefined()) {
            let symbol = symbol.name().expect("it has one");
            let known = ["TF_", "pthread_", "sem_"].iter().any(|p| symbol.starts_with(p)) || POSIX.contains(&symbol);
            assert!(known, "{name} needs {symbol}");
        }
        assert!(symbols.iter().any(|s| s.name().is_ok_and(|n| n.ends_with("_0_run"))), "{name} has no cluster");
    }
}

#[test]
fn the_same_file_gives_the_same_library() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let graph = path("testdata/graphs/mlp/graph.pb");
    let made: Vec<(Vec<u8>, Vec<u8>)> = ["a", "b"]
        .map(|folder| {
            let out = dir.path().join(folder).join("m.pb");
            assert!(rewrite(&graph, &out, SMALL).status.success());
            (std::fs::read(&out).expect("a graph"), std::fs::read(out.with_extension("so")).expect("a library"))
        })
        .into();
    assert!(made[0] == made[1]);
}

#[test]
fn a_cluster_keeps_its_nodes_as_the_other_branch() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (graph, out) = (path("testdata/graphs/mlp/graph.pb"), dir.path().join("m.pb"));
    assert!(rewrite(&graph, &out, SMALL).status.success());
    let (before, after) = (ops(&graph).to_string(), ops(&out).to_string());
    for op in ["StatelessIf", "_fits\"", "PartitionedCall"] {
        assert!(after.contains(op) && !before.contains(op), "{op}: {after}");
    }
    assert!(before.contains("MatMul") && after.contains("MatMul"), "{after}");
}

#[test]
fn a_saved_model_stays_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (model, out) = (path("testdata/saved_model"), dir.path().join("m"));
    // by its usual size no cluster remains, and nothing is written
    let said = rewrite(&model, &out, &["--tf-xla-flags=--tf_xla_min_cluster_size=40"]);
    let told = crate::common::said(&said);
    assert!(!said.status.success() && !out.exists() && told.contains("TFA0102"), "{told}");
    let said = rewrite(&model, &out, &["--tf-xla-flags=--tf_xla_min_cluster_size=1", "--dim", "batch=2"]);
    assert!(said.status.success(), "{}", crate::common::said(&said));
    for file in ["saved_model.pb", "variables/variables.index", "assets.extra/libtfaot.so"] {
        assert!(out.join(file).is_file(), "{file}");
    }
}

#[test]
fn the_glue_is_what_the_compiler_makes_of_its_source() {
    if program(&["clang-22"]).is_none() {
        return;
    }
    for (name, file) in [("glue", "src/rewrite/native/glue/glue.ll"), ("pool", "src/package/pool/pool.ll")] {
        let said = Command::new(path("tools/make_glue")).arg(name).output().expect("it starts");
        assert!(said.status.success(), "{}", crate::common::said(&said));
        let kept = std::fs::read(path(file)).expect("it is there");
        assert!(said.stdout == kept, "{file}: run tools/make_glue");
    }
}

/// The program of `rewrite_abi/fake_tensorflow.c`, which loads a library and tries it, as `fake` in `dir`; `None` without a compiler.
fn fake_tensorflow(dir: &Path) -> Option<PathBuf> {
    let gcc = program(&["gcc"])?;
    let (out, fake) = (dir.join("fake"), path("tests/rewrite_abi/fake_tensorflow.c"));
    let flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-ldl", "-lpthread"];
    let said = Command::new(gcc).arg("-o").arg(&out).arg(fake).args(flags).output().expect("it starts");
    assert!(said.status.success(), "{}", crate::common::said(&said));
    Some(out)
}

/// What the first cluster of the library beside `graph` answers to `input`.
fn answer(fake: &Path, more: &[&str], graph: &Path, input: &Tensor) -> Vec<f32> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (given, out) = (dir.path().join("in"), dir.path().join("out"));
    std::fs::write(&given, &input.bytes).expect("written");
    let mut command = Command::new(fake);
    command.args(more).arg(graph.with_extension("so")).arg(given).arg(&out);
    let said = command.args(input.dims.iter().map(u64::to_string)).output().expect("it starts");
    assert!(said.status.success(), "{}", crate::common::said(&said));
    let bytes = std::fs::read(&out).expect("an answer");
    Tensor::new(DType::F32, vec![bytes.len() as u64 / 4], bytes).to_vec()
}

fn assert_close(got: &[f32], want: &[f32]) {
    let close = got.len() == want.len() && got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-5);
    assert!(close, "{got:?} instead of {want:?}");
}

#[test]
fn a_library_runs_behind_the_c_abi() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let Some(fake) = fake_tensorflow(dir.path()) else { return };
    let feeds = crate::common::npz(&path("testdata/graphs/conv_net/feeds.npz"));
    let want: Vec<f32> = crate::common::npz(&path("testdata/graphs/conv_net/expect.npz"))["Identity:0"].to_vec();
    for threads in ["1", "3"] {
        let out = dir.path().join(format!("m{threads}.pb"));
        let said = rewrite(&path("testdata/graphs/conv_net/graph.pb"), &out, &["--threads", threads]);
        assert!(said.status.success(), "{}", crate::common::said(&said));
        assert_close(&answer(&fake, &[], &out, &feeds["image:0"]), &want);
    }
}

#[test]
fn a_cluster_takes_any_number_of_rows_in_pieces_beyond_its_bound() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let Some(fake) = fake_tensorflow(dir.path()) else { return };
    let feeds = crate::common::npz(&path("testdata/graphs/conv_net/feeds.npz"));
    let want: Vec<f32> = crate::common::npz(&path("testdata/graphs/conv_net/expect.npz"))["Identity:0"].to_vec();
    let image = &feeds["image:0"];
    let rest: Vec<String> = image.dims[1..].iter().map(u64::to_string).collect();
    let out = dir.path().join("m.pb");
    let feed = format!("image=f32[n<=5,{}]", rest.join(","));
    let said = rewrite(&path("testdata/graphs/conv_net/graph.pb"), &out, &["--feed", &feed]);
    assert!(said.status.success(), "{}", crate::common::said(&said));
    // one image after another: the last ones of the file first, so that rows differ from their places
    let (row, rows) = (image.bytes.len() / image.dims[0] as usize, image.dims[0] as usize);
    let each = want.len() / rows;
    for n in [1, 2, 4, 5, 6, 13] {
        let picked: Vec<usize> = (0..n).map(|i| (i * 7 + n) % rows).collect();
        let bytes: Vec<u8> = picked.iter().flat_map(|&r| image.bytes[r * row..(r + 1) * row].to_vec()).collect();
        let dims = [vec![n as u64], image.dims[1..].to_vec()].concat();
        let wanted: Vec<f32> = picked.iter().flat_map(|&r| want[r * each..(r + 1) * each].to_vec()).collect();
        assert_close(&answer(&fake, &["--sized"], &out, &Tensor::new(DType::F32, dims, bytes)), &wanted);
    }
}

#[test]
fn loops_are_compiled_where_more_is_asked_than_xla_takes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let clusters = |more: &[&str]| {
        let out = dir.path().join("m.pb");
        let said = rewrite(&path("testdata/graphs/growing_lists/graph.pb"), &out, &[SMALL, more].concat());
        assert!(said.status.success(), "{}", crate::common::said(&said));
        let told = String::from_utf8_lossy(&said.stdout).into_owned();
        let count = told.split(" clusters of ").next().and_then(|t| t.rsplit(' ').next());
        count.and_then(|n| n.parse::<u64>().ok()).expect("a number")
    };
    // The loops are between clusters, which their bodies have too, and then most loops are in clusters.
    assert!(clusters(&["--beyond-xla"]) * 3 < clusters(&[]) * 2);
    let out = dir.path().join("marked.pb");
    let said = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .args(["rewrite", &path("testdata/graphs/mlp/graph.pb").display().to_string(), "-o"])
        .args([&out.display().to_string(), "--mode", "xla", "--beyond-xla"])
        .output()
        .expect("the binary starts");
    assert!(
        !said.status.success() && crate::common::said(&said).contains("--mode native"),
        "{}",
        crate::common::said(&said)
    );
}

#[test]
fn nodes_of_functions_are_no_nodes_of_the_graph_with_their_names() {
    // the initialiser of the module and a node in a function that a signature calls are both `NoOp`: left out with the former, the
    // latter stood between what it waits for and what waits for it, and the cluster had 14 nodes
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("m");
    let said = rewrite(&path("testdata/keras3"), &out, SMALL);
    let told = crate::common::said(&said);
    assert!(said.status.success() && told.contains(": 2 clusters of 25 nodes"), "{told}");
}

#[test]
fn open_sizes_that_keep_all_products_out_are_an_error_that_names_the_flag() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (graph, out) = (dir.path().join("g.pbtxt"), dir.path().join("g.pb"));
    let float = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let shape = "attr { key: 'shape' value { shape { dim { size: -1 } dim { size: -1 } } } }";
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' {} {shape} }}
         node {{ name: 'p' op: 'MatMul' input: 'x' input: 'x' {} }}
         node {{ name: 'y' op: 'Relu' input: 'p' {} }}",
        float("dtype"),
        float("T"),
        float("T"),
    );
    std::fs::write(&graph, text).expect("written");
    let said = rewrite(&graph, &out, SMALL);
    let told = crate::common::said(&said);
    assert_eq!(said.status.code(), Some(1), "{told}");
    assert!(!out.exists() && told.contains("TFA0102") && told.contains("--dim 'x[1]=1..N'"), "{told}");
}

#[test]
fn a_graph_without_clusters_is_told_why_and_not_asked_for_sizes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (graph, out) = (dir.path().join("g.pbtxt"), dir.path().join("g.pb"));
    let float = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' {} attr {{ key: 'shape' value {{ shape {{ dim {{ size: 1 }} dim {{ size: 4 }} dim {{ size: 4 }} dim {{ size: 1 }} }} }} }} }}
         node {{ name: 'size' op: 'Const' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 2 }} }} int_val: 8 }} }} }} }}
         node {{ name: 'large' op: 'ResizeBicubic' input: 'x' input: 'size' {} }}",
        float("dtype"),
        float("T"),
    );
    std::fs::write(&graph, text).expect("written");
    let said = rewrite(&graph, &out, &[]);
    let told = crate::common::said(&said);
    assert_eq!(said.status.code(), Some(1), "{told}");
    assert!(!out.exists() && told.contains("TFA0508") && told.contains("`large` (ResizeBicubic)"), "{told}");
    assert!(!told.contains("--dim"), "every size is known\n{told}");
}

/// A size that a fed value says keeps a product in TensorFlow, until the value is told; then the library is made for it, and the op in
/// front of it asks what is fed.
#[test]
fn a_value_that_is_told_gives_sizes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (graph, out) = (dir.path().join("g.pbtxt"), dir.path().join("g.pb"));
    let float = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' {} attr {{ key: 'shape' value {{ shape {{ dim {{ size: 6 }} }} }} }} }}
         node {{ name: 'rows' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }} attr {{ key: 'shape' value {{ shape {{ dim {{ size: 2 }} }} }} }} }}
         node {{ name: 'm' op: 'Reshape' input: 'x' input: 'rows' {} }}
         node {{ name: 'p' op: 'MatMul' input: 'm' input: 'm' {} attr {{ key: 'transpose_b' value {{ b: true }} }} }}
         node {{ name: 'y' op: 'Relu' input: 'p' {} }}",
        float("dtype"),
        float("T"),
        float("T"),
        float("T"),
    );
    std::fs::write(&graph, text).expect("written");
    let before = rewrite(&graph, &out, SMALL);
    assert_eq!(before.status.code(), Some(1), "{}", crate::common::said(&before));
    let after = rewrite(&graph, &out, &[SMALL, &["--feed", "rows={2,3}"]].concat());
    let told = crate::common::said(&after);
    assert!(after.status.success() && told.contains(": 1 clusters of 3 nodes"), "{told}");
    assert!(ops(&out).to_string().contains("_fits\""), "it asks");
}
