//! Small graphs on which TensorFlow 2.21's own passes gave these clusters; each showed a difference once.
use super::*;
use crate::import;
use crate::import::proto::tensorflow::GraphDef;

/// The nodes that are in clusters, with the names of those.
fn clustered(text: &str, until: StopAfterPass) -> Vec<(String, String)> {
    let text = text.replace("CPU", "device: \"/job:localhost/replica:0/task:0/device:CPU:0\"");
    let bytes = import::from_text::<GraphDef>(text.as_bytes()).expect("it is read");
    let program = import::read_graph_def(&bytes).expect("it is a graph");
    let mut options = ClusteringOptions { last_pass: until, ..ClusteringOptions::default() };
    options.flags.parse("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1");
    let found = cluster(&program, &program.graph, &options).expect("it is clustered");
    let inside = found.nodes.iter().filter_map(|n| Some((n, *n.cluster.as_ref().ok()?)));
    inside.map(|(n, at)| (n.name.clone(), found.clusters[at as usize].name.clone())).collect()
}

fn names(text: &str, until: StopAfterPass) -> Vec<String> {
    clustered(text, until).into_iter().map(|pair| pair.0).collect()
}

#[test]
fn a_call_with_a_variable_inside_a_function_is_not_compiled() {
    let text = r#"
node { name: "v" op: "VarHandleOp" CPU attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "call" op: "outer" input: "v" CPU }
library {
  function {
    signature { name: "inner" input_arg { name: "a" type: DT_RESOURCE } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "k" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
    ret { key: "r" value: "k:output:0" }
  }
  function {
    signature { name: "outer" input_arg { name: "a" type: DT_RESOURCE } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "n" op: "inner" input: "a" }
    ret { key: "r" value: "n:r:0" }
  }
}"#;
    assert_eq!(names(text, StopAfterPass::Marking), Vec::<String>::new());
    // Without the call in between, the variable is only passed on, and the function is compiled.
    assert_eq!(names(&text.replace("op: \"outer\"", "op: \"inner\""), StopAfterPass::Marking), ["call"]);
}

/// A shape whose integers a call takes; `CALL` stands for the call's attributes.
const SHAPES: &str = r#"
node { name: "x" op: "Placeholder" CPU attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "shapes" op: "ShapeN" input: "x" input: "x" CPU attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } attr { key: "out_type" value { type: DT_INT32 } } }
node { name: "call" op: "f" input: "shapes" CPU CALL }
library {
  function {
    signature { name: "f" input_arg { name: "a" type: DT_INT32 } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "c" op: "Cast" input: "a" attr { key: "SrcT" value { type: DT_INT32 } } attr { key: "DstT" value { type: DT_FLOAT } } }
    node_def { name: "k" op: "CheckNumerics" input: "c:y:0" attr { key: "T" value { type: DT_FLOAT } } attr { key: "message" value { s: "" } } }
    ret { key: "r" value: "k:output:0" }
  }
}"#;

#[test]
fn integers_that_a_call_outside_wants_are_made_outside() {
    let plain = SHAPES.replace("CALL", "");
    assert_eq!(names(&plain, StopAfterPass::Marking), ["shapes"]);
    assert_eq!(names(&plain, StopAfterPass::Declustering), Vec::<String>::new());
    // A callee that XLA must compile takes its integers from device memory.
    let must = SHAPES.replace("CALL", "attr { key: \"_XlaMustCompile\" value { b: true } }");
    assert_eq!(names(&must, StopAfterPass::Declustering), ["shapes"]);
}

#[test]
fn a_slice_of_constant_size_is_made_anew() {
    let text = r#"
node { name: "x" op: "Placeholder" CPU attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "b" op: "Placeholder" CPU attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "e" op: "Exp" input: "x" CPU attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Const" CPU attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 2 int_val: -1 } } } }
node { name: "s" op: "Slice" input: "e" input: "b" input: "z" CPU attr { key: "T" value { type: DT_FLOAT } } attr { key: "Index" value { type: DT_INT32 } } }"#;
    let made = names(text, StopAfterPass::Declustering);
    let below = |name: &str| format!("s/static_shaped_slice/{name}");
    let new =
        ["size_s64", "input_shape", "const_2", "const_1", "begin_1", "input_shape_1", "slice_size_1", "concat_axis"];
    let last = ["slice_size", "static_shaped_slice"];
    let wanted: Vec<String> =
        ["e".to_string(), "z".to_string()].into_iter().chain(new.iter().chain(&last).map(|name| below(name))).collect();
    // `begin_s64` must be known at compile time and comes from outside, so it is declustered again.
    assert_eq!(made, wanted);
}
