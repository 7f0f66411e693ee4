//! `tfaot report`: its data, and what can be said of its page without a browser. `tests/browser.rs` opens it.
mod common;

use common::{said, succeed, tfaot};
use serde_json::Value;

const SMALL: &str = "--tf-xla-flags=--tf_xla_min_cluster_size=1";

fn data(graph: &str, more: &[&str]) -> Value {
    let text = succeed(&[&["report", graph, "--json", "-q", SMALL], more].concat());
    serde_json::from_str(&text).expect("one JSON document")
}

fn page(graph: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("r.html").display().to_string();
    succeed(&[&["report", graph, "-q", "-o", &out, SMALL], more].concat());
    std::fs::read_to_string(out).expect("it was written")
}

#[test]
fn columns_have_an_entry_for_each_node() {
    let report = data("testdata/graphs/functions/graph.pb", &["--no-compile"]);
    let nodes = report["nodes"].as_object().expect("columns");
    let count = report["summary"]["nodes"].as_u64().expect("a number") as usize;
    for (name, column) in nodes {
        assert_eq!(column.as_array().map(Vec::len), Some(count), "{name}");
    }
    let outside = nodes["cluster"].as_array().expect("a list").iter().filter(|c| c.is_null()).count();
    assert_eq!((count - outside) as u64, report["summary"]["clustered"].as_u64().expect("a number"));
    let told: usize =
        report["blockers"].as_array().expect("a list").iter().filter_map(|b| b["nodes"].as_array()).map(Vec::len).sum();
    assert_eq!(told, outside, "each node outside is in one group");
    assert!(
        report["code"].is_null() && report["clusters"].as_array().expect("a list").iter().all(|c| c["code"].is_null())
    );
}

#[test]
fn compiled_clusters_have_their_code() {
    let report = data("testdata/graphs/conv_net/graph.pb", &["--profile", "--seconds", "0"]);
    let code = &report["code"][report["clusters"][0]["code"].as_u64().expect("it was compiled") as usize];
    assert!(code["hlo"].as_str().expect("text").starts_with("HloModule"));
    let kernels = code["kernels"].as_array().expect("a list");
    let launches = code["launches"].as_array().expect("a list");
    for launch in launches {
        let kernel = &kernels[launch.as_u64().expect("a number") as usize];
        assert!(kernel["text"].as_str().expect("text").starts_with("kernel k"), "{kernel}");
        assert!(kernel["asm"].as_str().expect("text").contains("ret"), "{kernel}");
        assert!(kernel["ms"].as_f64().is_some_and(|ms| ms >= 0.0));
    }
    let named = kernels.iter().flat_map(|k| k["insts"].as_array().expect("a list"));
    let hlo = code["hlo"].as_str().expect("text");
    for inst in named {
        assert!(hlo.contains(&format!("%{} = ", inst.as_str().expect("a name"))), "{inst} is not in the module");
    }
    for buffer in code["buffers"].as_array().expect("a list") {
        if let Some(last) = buffer["last"].as_u64() {
            assert!(buffer["first"].as_u64() <= Some(last) && last < launches.len() as u64);
        }
        if buffer["place"] == "workspace" {
            let end = buffer["at"].as_u64().expect("a number") + buffer["bytes"].as_u64().expect("a number");
            assert!(Some(end) <= code["workspace_bytes"].as_u64());
        }
    }
}

#[test]
fn other_targets_have_their_assembly() {
    let report = data("testdata/graphs/mlp/graph.pb", &["--dim", "2", "--target", "aarch64-unknown-linux-gnu"]);
    let code = report["code"].as_array().expect("clusters were compiled");
    let kernels = code.iter().flat_map(|c| c["kernels"].as_array().expect("a list"));
    for kernel in kernels {
        assert!(kernel["asm"].as_str().expect("text").contains("\tret"), "{kernel}");
    }
}

#[test]
fn variables_are_fed_where_they_are_read() {
    let report = data("testdata/saved_model", &["--dim", "2"]);
    let clusters = report["clusters"].as_array().expect("a list");
    assert!(!clusters.is_empty());
    let code = clusters.iter().filter_map(|c| report["code"].get(c["code"].as_u64()? as usize));
    let arguments = |code: &Value| {
        let buffers = code["buffers"].as_array().expect("a list");
        buffers.iter().filter(|b| b["place"] == "argument").count()
    };
    assert!(code.map(arguments).max() > Some(1), "weights come in beside the input: {clusters:?}");
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    let graph = "testdata/graphs/attention/graph.pb";
    assert!(page(graph, &[]) == page(graph, &[]));
    assert_eq!(data(graph, &[]), data(graph, &[]));
}

#[test]
fn the_page_asks_nobody_for_anything() {
    let page = page("testdata/graphs/mlp/graph.pb", &[]);
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    let loose = page.replace("http://www.w3.org/2000/svg", "");
    for word in
        ["http:", "https:", "//cdn", "@import", "url(", "unsafe-inline", "unsafe-eval", " onclick=", " onerror="]
    {
        assert!(!loose.contains(word), "the page has {word}");
    }
}

#[test]
fn a_page_without_a_file_is_refused() {
    let output = tfaot(&["report", "testdata/graphs/mlp/graph.pb", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("-o FILE.html"));
}

#[test]
fn open_sizes_are_told() {
    let report = data("testdata/graphs/mlp/graph.pb", &[]);
    let refused: Vec<&str> = report["clusters"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|c| c["refused"].as_array().expect("a list"))
        .filter_map(|r| r["code"].as_str())
        .collect();
    let open = report["types"].as_array().expect("a list").iter().any(|t| t.as_str().is_some_and(|t| t.contains('?')));
    assert_eq!(open, refused.contains(&"TFA0009"), "{refused:?}");
}

#[test]
fn a_signature_is_what_the_page_is_about() {
    let model = "testdata/signatures";
    let (whole, cut) = (data(model, &["--no-compile"]), data(model, &["--no-compile", "--signature", "embed"]));
    let nodes = |report: &Value| report["summary"]["nodes"].as_u64().expect("a number");
    assert!(nodes(&cut) < nodes(&whole), "{} of {}", nodes(&cut), nodes(&whole));
    let output = tfaot(&["report", model, "-q", "--json", "--signature", "nowhere"]);
    assert!(said(&output).contains("there is no signature `nowhere`"), "{}", said(&output));
}
