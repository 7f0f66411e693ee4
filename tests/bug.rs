//! `tfaot bug`: what is packed can be run again.
mod common;

use common::{path, said, succeed, tfaot};
use serde_json::Value;

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_packed_graph_takes_the_same_ways_without_the_weights() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("bug");
    let (graph, shown) = (path("testdata/graphs/conv_net/graph.pb").display().to_string(), out.display().to_string());
    succeed(&["bug", &graph, "-o", &shown, "--", "compile", "{}", "-o", "made", "--name", "net"]);
    let about: Value = serde_json::from_str(&read(&out.join("about.json"))).expect("it is JSON");
    assert_eq!((&about["status"], &about["packed_status"]), (&Value::from(0), &Value::from(0)));
    assert!(about["weights"].as_array().is_some_and(|w| !w.is_empty()), "{about}");
    assert_eq!(about["command"], "tfaot compile graph.pb -o made --name net");
    let packed = out.join("graph.pb").display().to_string();
    // The weights are gone from the file, and there when it is read.
    let size = |file: &str| std::fs::metadata(file).expect("it is there").len();
    assert!(size(&packed) < size(&graph) / 2);
    let shapes = |graph: &str| succeed(&["inspect", graph, "--shapes", "-q"]).replace(graph, "");
    assert_eq!(shapes(&packed), shapes(&graph));
    let made = |graph: &str, at: &str| {
        let at = folder.path().join(at).display().to_string();
        succeed(&["compile", graph, "-q", "-o", &at, "--name", "net", "--emit", "kernels,hlo"]);
        read(&std::path::Path::new(&at).join("net.kernels"))
    };
    assert_eq!(made(&packed, "a"), made(&graph, "b"), "the kernels are the same");
    let dumps: Vec<String> = std::fs::read_dir(out.join("dumps"))
        .expect("there are dumps")
        .map(|e| e.expect("it is listed").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(dumps.iter().any(|n| n.ends_with(".cpu_after_optimizations.txt")), "{dumps:?}");
    assert!(!dumps.iter().any(|n| n.ends_with(".o")), "{dumps:?}");
}

#[test]
fn what_a_command_said_is_packed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("bug").display().to_string();
    let graph = path("testdata/graphs/mlp/graph.pb").display().to_string();
    let words = ["bug", &graph, "-o", &out, "--", "run", "{}", "--fetch", "no_such_node"];
    let output = tfaot(&words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(read(&std::path::Path::new(&out).join("stderr.txt")).contains("no_such_node"));
    assert_eq!(tfaot(&words).status.code(), Some(1), "the folder is there");
}
