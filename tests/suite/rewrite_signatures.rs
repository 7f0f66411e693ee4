//! `tfaot rewrite` on files with several signatures, on clusters without inputs, on quantized types and on loops that check values: what
//! is written. `tools/judge_saved_models` loads and runs such files in TensorFlow.
use std::path::{Path, PathBuf};
use std::process::Command;
use tfaot::graph::{Attr, Graph, Node, Program, TfType};
use tfaot::import;

/// Clusters of any size.
const SMALL: &str = "--tf-xla-flags=--tf_xla_min_cluster_size=1";

/// Writes `text` as a file of `folder` called `name`, rewrites it to `out`, and returns the program there and what was said.
fn rewritten(dir: &Path, name: &str, text: &str, more: &[&str]) -> (Program, String) {
    let (file, out) = (dir.join(name), dir.join("out"));
    let folder = name.ends_with("saved_model.pbtxt");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    std::fs::write(&file, text).expect("written");
    let graph: PathBuf = if folder { file.parent().expect("a folder").to_path_buf() } else { file };
    let out = if folder { out } else { out.with_extension("pb") };
    let said = Command::new(env!("CARGO_BIN_EXE_tfaot"))
        .env_remove("TF_XLA_FLAGS")
        .args(["rewrite", &graph.display().to_string(), "-o", &out.display().to_string()])
        .args(more)
        .output()
        .expect("the binary starts");
    let told = crate::common::said(&said);
    assert!(said.status.success(), "{told}");
    (import::load_as_saved(&out, None).expect("it can be read"), told)
}

fn node<'g>(graph: &'g Graph, name: &str) -> &'g Node {
    graph.nodes.values().find(|n| &*n.name == name).unwrap_or_else(|| panic!("there is no `{name}`"))
}

fn float(key: &str) -> String {
    format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}")
}

fn placeholder(name: &str) -> String {
    let shape = "attr { key: 'shape' value { shape { dim { size: 3 } } } }";
    format!("node {{ name: '{name}' op: 'Placeholder' {} {shape} }}", float("dtype"))
}

fn constant(name: &str) -> String {
    let value = "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 0.5 }";
    format!("node {{ name: '{name}' op: 'Const' {} attr {{ key: 'value' value {{ {value} }} }} }}", float("dtype"))
}

fn op(name: &str, op: &str, inputs: &[&str]) -> String {
    let inputs: Vec<String> = inputs.iter().map(|i| format!("input: '{i}'")).collect();
    format!("node {{ name: '{name}' op: '{op}' {} {} }}", inputs.join(" "), float("T"))
}

fn signature(name: &str, inputs: &[&str], output: &str) -> String {
    let tensor = |key: &str, name: &str| format!("{{ key: '{key}' value {{ name: '{name}:0' dtype: DT_FLOAT }} }}");
    let inputs: Vec<String> = inputs.iter().map(|i| format!("inputs {}", tensor(i, i))).collect();
    let output = tensor("out", output);
    format!("signature_def {{ key: '{name}' value {{ {} outputs {output} }} }}", inputs.join(" "))
}

fn saved_model(graph: &str, rest: &str) -> String {
    format!(
        "saved_model_schema_version: 1
         meta_graphs {{ meta_info_def {{ tags: 'serve' }} graph_def {{ {graph} versions {{ producer: 2000 }} }} {rest} }}"
    )
}

/// Five signatures as TensorFlow 2 saves them: each is a call of a function of the object graph, and all take one constant that the
/// object graph names.
fn five_functions() -> String {
    let (mut graph, mut rest, mut library) = (constant("k"), String::new(), String::new());
    let mut concrete = String::new();
    for i in 0..5 {
        graph += &placeholder(&format!("x{i}"));
        graph += &format!(
            "node {{ name: 'call{i}' op: 'PartitionedCall' input: 'x{i}' input: 'k'
               attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT type: DT_FLOAT }} }} }}
               attr {{ key: 'Tout' value {{ list {{ type: DT_FLOAT }} }} }}
               attr {{ key: 'f' value {{ func {{ name: 'f{i}' }} }} }} }}"
        );
        let body = [
            ("a", "Tanh", vec!["x"]),
            ("b", "Exp", vec!["a:y:0"]),
            ("c", "AddV2", vec!["b:y:0", "k"]),
            ("d", "Mul", vec!["c:z:0", "b:y:0"]),
            ("e", "Sqrt", vec!["d:z:0"]),
        ];
        let body: Vec<String> =
            body.iter().map(|(name, of, inputs)| op(name, of, inputs).replacen("node", "node_def", 1)).collect();
        library += &format!(
            "function {{ signature {{ name: 'f{i}' input_arg {{ name: 'x' type: DT_FLOAT }} input_arg {{ name: 'k' type: DT_FLOAT }}
               output_arg {{ name: 'y' type: DT_FLOAT }} }} {} ret {{ key: 'y' value: 'e:y:0' }} }}",
            body.join(" ")
        );
        rest += &signature(&format!("s{i}"), &[&format!("x{i}")], &format!("call{i}"));
        concrete += &format!("concrete_functions {{ key: 'f{i}' value {{ }} }}");
    }
    graph += &format!("library {{ {library} }}");
    rest += &format!(
        "object_graph_def {{ nodes {{ user_object {{ }} }} nodes {{ constant {{ operation: 'k' }} }} {concrete} }}"
    );
    saved_model(&graph, &rest)
}

#[test]
fn the_function_of_a_signature_is_rewritten_and_not_its_call() {
    for mode in ["xla", "native"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (program, told) = rewritten(dir.path(), "m/saved_model.pbtxt", &five_functions(), &["--mode", mode]);
        assert!(told.contains(": 5 clusters of "), "{told}");
        assert_eq!(&*node(&program.graph, "k").op, "Const");
        for i in 0..5 {
            assert_eq!(&*node(&program.graph, &format!("call{i}")).op, "PartitionedCall");
            let function = &program.functions[&*format!("f{i}")];
            let op = if mode == "xla" { "StatefulPartitionedCall" } else { "StatelessIf" };
            assert!(function.graph.nodes.values().any(|n| &*n.op == op), "{mode}: f{i}");
        }
    }
}

/// Two signatures of TensorFlow 1 over one trunk, of which the second is fed something more.
fn two_heads() -> String {
    let mut graph = [placeholder("x"), placeholder("y")].concat();
    let nodes = [
        ("t1", "Tanh", vec!["x"]),
        ("t2", "Exp", vec!["t1"]),
        ("t3", "Sqrt", vec!["t2"]),
        ("a1", "Tanh", vec!["t3"]),
        ("a", "Exp", vec!["a1"]),
        ("b1", "AddV2", vec!["t3", "y"]),
        ("b2", "Mul", vec!["b1", "y"]),
        ("b", "Tanh", vec!["b2"]),
    ];
    graph.extend(nodes.iter().map(|(name, of, inputs)| op(name, of, inputs)));
    saved_model(&graph, &[signature("a", &["x"], "a"), signature("b", &["x", "y"], "b")].concat())
}

#[test]
fn a_signature_needs_no_feed_of_another() {
    for mode in ["xla", "native"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (program, told) = rewritten(dir.path(), "m/saved_model.pbtxt", &two_heads(), &["--mode", mode, SMALL]);
        assert!(told.contains(": 3 clusters of 8 nodes"), "{told}");
        let graph = &program.graph;
        let mut open = vec![graph.nodes.iter().find(|(_, n)| &*n.name == "a").expect("`a` keeps its name").0];
        while let Some(id) = open.pop() {
            let node = &graph.nodes[id];
            assert_ne!(&*node.name, "y", "{mode}: the signature `a` asks for the input of `b`");
            open.extend(node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied()));
        }
    }
}

#[test]
fn a_cluster_of_constants_alone_waits_for_them_and_takes_none() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // More elements than TensorFlow copies into a cluster where others use them.
    let text = [
        constant("k").replace("size: 3", "size: 20000"),
        op("a", "Tanh", &["k"]),
        op("b", "Exp", &["a"]),
        format!("node {{ name: 'text' op: 'AsString' input: 'k' {} }}", float("T")),
    ];
    let (program, _) = rewritten(dir.path(), "g.pbtxt", &text.concat(), &["--mode", "native", SMALL]);
    let fits = program.graph.nodes.values().find(|n| n.op.ends_with("_fits")).expect("a cluster");
    assert!(fits.inputs.is_empty() && fits.controls.len() == 1, "{fits:?}");
}

#[test]
fn quantized_types_stay_quantized_between_clusters() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (of, number) in [("DT_QINT8", 11), ("DT_QUINT8", 12), ("DT_QINT32", 13), ("DT_QINT16", 15), ("DT_QUINT16", 16)]
    {
        let text = format!(
            "node {{ name: 'q' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: {of} }} }}
               attr {{ key: 'shape' value {{ shape {{ dim {{ size: 6 }} }} }} }} }}
             node {{ name: 'dims' op: 'Const' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }} attr {{ key: 'value' value {{
               tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 2 }} }} int_val: 2 int_val: 3 }} }} }} }}
             node {{ name: 'r' op: 'Reshape' input: 'q' input: 'dims' attr {{ key: 'T' value {{ type: {of} }} }} }}"
        );
        // XLA's kernel takes no quantized type of 16 bits.
        let flags = ["--mode", "native", "--beyond-xla", "--fetch", "r", SMALL];
        let (program, _) = rewritten(dir.path(), "g.pbtxt", &text, &flags);
        let call = program.graph.nodes.values().find(|n| &*n.op == "StatelessIf").expect("a cluster");
        for attr in ["Tin", "Tout"] {
            let Some(Attr::Types(types)) = call.attr(attr) else { panic!("{call:?}") };
            assert_eq!(types[0], TfType::Quantized(number), "{attr} of {of}");
        }
    }
}

/// A loop whose body checks a value and says so in words.
fn checked_loop() -> String {
    let function = |name: &str, results: &str, body: &str, rets: &str| {
        format!(
            "function {{ signature {{ name: '{name}' input_arg {{ name: 'i' type: DT_INT32 }} input_arg {{ name: 'v' type: DT_FLOAT }}
               {results} is_stateful: true }} {body} {rets} }}"
        )
    };
    let number = |name: &str, of: &str, value: &str| {
        format!(
            "node_def {{ name: '{name}' op: 'Const' attr {{ key: 'dtype' value {{ type: {of} }} }}
               attr {{ key: 'value' value {{ tensor {{ dtype: {of} tensor_shape {{ }} {value} }} }} }} }}"
        )
    };
    let of = |t: &str| format!("attr {{ key: 'T' value {{ type: {t} }} }}");
    let (int, float) = (of("DT_INT32"), of("DT_FLOAT"));
    let test = number("n", "DT_INT32", "int_val: 5")
        + &format!("node_def {{ name: 'less' op: 'Less' input: 'i' input: 'n:output:0' {int} }}");
    let step = [
        number("one", "DT_INT32", "int_val: 1"),
        number("limit", "DT_FLOAT", "float_val: 100"),
        number("axes", "DT_INT32", "int_val: 0"),
        number("words", "DT_STRING", "string_val: 'too large'"),
        format!("node_def {{ name: 'next' op: 'AddV2' input: 'i' input: 'one:output:0' {int} }}"),
        format!(
            "node_def {{ name: 'sum' op: 'Sum' input: 'v' input: 'axes:output:0' {float} attr {{ key: 'Tidx' value {{ type: DT_INT32 }} }} }}"
        ),
        format!("node_def {{ name: 'small' op: 'Less' input: 'sum:output:0' input: 'limit:output:0' {float} }}"),
        "node_def { name: 'check' op: 'Assert' input: 'small:z:0' input: 'words:output:0'
           attr { key: 'T' value { list { type: DT_STRING } } } }"
            .to_string(),
        format!("node_def {{ name: 'tanh' op: 'Tanh' input: 'v' input: '^check' {float} }}"),
        format!("node_def {{ name: 'exp' op: 'Exp' input: 'tanh:y:0' {float} }}"),
        format!("node_def {{ name: 'root' op: 'Sqrt' input: 'exp:y:0' {float} }}"),
        format!("node_def {{ name: 'v2' op: 'AddV2' input: 'root:y:0' input: 'tanh:y:0' {float} }}"),
    ];
    let test =
        function("test", "output_arg { name: 'go' type: DT_BOOL }", &test, "ret { key: 'go' value: 'less:z:0' }");
    let step = function(
        "step",
        "output_arg { name: 'j' type: DT_INT32 } output_arg { name: 'w' type: DT_FLOAT } control_output: 'check'",
        &step.concat(),
        "ret { key: 'j' value: 'next:z:0' } ret { key: 'w' value: 'v2:z:0' } control_ret { key: 'check' value: 'check' }",
    );
    let start = number("zero", "DT_INT32", "int_val: 0").replacen("node_def", "node", 1);
    placeholder("x")
        + &start
        + "node { name: 'loop' op: 'While' input: 'zero' input: 'x'
             attr { key: 'T' value { list { type: DT_INT32 type: DT_FLOAT } } }
             attr { key: 'cond' value { func { name: 'test' } } } attr { key: 'body' value { func { name: 'step' } } } }
           node { name: 'y' op: 'Identity' input: 'loop:1' attr { key: 'T' value { type: DT_FLOAT } } }"
        + &format!("versions {{ producer: 2000 }} library {{ {test} {step} }}")
}

#[test]
fn a_loop_that_checks_values_stays_and_its_body_is_compiled() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (text, flags) = (checked_loop(), ["--mode", "native", "--beyond-xla", "--fetch", "y"]);
    let (program, told) = rewritten(dir.path(), "g.pbtxt", &text, &flags);
    assert!(told.contains("`Assert` has an effect") && told.contains("--drop-assertions"), "{told}");
    assert!(!told.contains("strings"), "{told}");
    assert_eq!(&*node(&program.graph, "loop").op, "While");
    let body = &program.functions["step"].graph;
    assert!(body.nodes.values().any(|n| &*n.op == "Assert") && body.nodes.values().any(|n| &*n.op == "StatelessIf"));

    let (program, told) =
        rewritten(dir.path(), "g.pbtxt", &text, &[&flags[..], &["--drop-assertions", SMALL]].concat());
    assert!(told.contains("leaves out 1 node of those that check values"), "{told}");
    assert!(program.graph.nodes.values().all(|n| &*n.op != "While"), "the loop is in a cluster");
}
