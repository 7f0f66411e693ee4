use super::*;
use crate::cluster::{self, ClusteringOptions};
use crate::import;

const TEXT: &str = r#"
node { name: "x" op: "_Arg" device: "/job:localhost/replica:0/task:0/device:CPU:0" attr { key: "T" value { type: DT_FLOAT } } attr { key: "index" value { i: 0 } } }
node { name: "b" op: "Exp" input: "a" input: "^x" device: "/job:localhost/replica:0/task:0/device:CPU:0" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "a" op: "Tanh" input: "x" device: "/job:localhost/replica:0/task:0/device:CPU:0" attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 2000 }
"#;

fn dumps(format: GraphFormat) -> Vec<(String, Vec<u8>)> {
    let bytes = import::from_text::<GraphDef>(TEXT.as_bytes()).expect("it is read");
    let program = import::read_graph_def(&bytes).expect("it is a graph");
    let file = RawGraph::parse(&bytes).expect("it is a graph");
    let mut options = ClusteringOptions { snapshot: true, ..ClusteringOptions::default() };
    options.flags.parse("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1");
    let mut dumps = GraphDumps::new(format);
    let found = cluster::cluster(&program, &program.graph, &options).expect("it is clustered");
    let source = ClusteredGraph { graph: &program.graph, written: &file.nodes, file: &file };
    dumps.add_clustering(&source, &found).expect("it is dumped");
    dumps.add_clustering(&source, &found).expect("it is dumped");
    assert!(log(&found, 4).contains(" ** Cluster cluster_0\n  1 incoming edges\n   [none] x # 2\n"));
    assert_eq!(summary(&found).unclustered_node_count, 3);
    dumps.files
}

#[test]
fn names_count_uses_and_nodes_are_in_the_order_of_their_numbers() {
    let files = dumps(GraphFormat::Text);
    let names: Vec<&str> = files.iter().map(|f| f.0.as_str()).collect();
    let stems = ["before_mark_for_compilation", "mark_for_compilation", "mark_for_compilation_annotated"];
    let last = "before_increase_dynamism_for_auto_jit_pass";
    let once: Vec<String> = stems.iter().chain([&last]).map(|s| format!("{s}.pbtxt")).collect();
    let again: Vec<String> = stems.iter().chain([&last]).map(|s| format!("{s}_1.pbtxt")).collect();
    assert_eq!(names, [once, again].concat());
    let text = String::from_utf8_lossy(&files[2].1).into_owned();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing in\n{text}"));
    assert!(
        at("name: \"unclustered/x\"") < at("name: \"cluster_0/a\"")
            && at("name: \"cluster_0/a\"") < at("name: \"cluster_0/b\"")
    );
    assert!(at("input: \"cluster_0/a\"\n  input: \"^unclustered/x\"") > 0 && at("library {\n}\nversions {") > 0);
    assert!(text.contains("key: \"_XlaCluster\"") && !String::from_utf8_lossy(&files[0].1).contains("_Xla"));
}

#[test]
fn binary_dumps_are_read_back() {
    let files = dumps(GraphFormat::Binary);
    assert_eq!(files[1].0, "mark_for_compilation.pb");
    let program = import::read_graph_def(&files[1].1.clone().into()).expect("it is read back");
    assert_eq!(program.producer, 2000);
    let marked = program.graph.nodes.values().filter(|n| n.str("_XlaCluster") == Some("cluster_0")).count();
    assert_eq!(marked, 2);
    assert!(GraphFormat::parse("bin").is_some() && GraphFormat::parse("mlir").is_none());
}
