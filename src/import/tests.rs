//! Small hand-made files, each valid or broken in one way.
use super::wire::{put_bytes, put_varint_field};
use super::{FileFormat, graph_def};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, Endpoint, NodeId, Program};
use bytes::Bytes;

/// An entry of a node's attributes.
pub fn attr(name: &str, value: &[u8]) -> Vec<u8> {
    let (mut entry, mut out) = (Vec::new(), Vec::new());
    put_bytes(&mut entry, 1, name.as_bytes());
    put_bytes(&mut entry, 2, value);
    put_bytes(&mut out, 5, &entry);
    out
}

/// A field that holds a number.
pub fn number(field: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint_field(&mut out, field, value);
    out
}

/// A field that holds bytes.
pub fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, field, value);
    out
}

/// A NodeDef without its tag.
fn body(name: &str, op: &str, inputs: &[&str], attrs: &[Vec<u8>]) -> Vec<u8> {
    let mut node = [bytes(1, name.as_bytes()), bytes(2, op.as_bytes())].concat();
    for input in inputs {
        node.extend(bytes(3, input.as_bytes()));
    }
    node.extend(attrs.concat());
    node
}

/// A node of a GraphDef.
pub fn node(name: &str, op: &str, inputs: &[&str], attrs: &[Vec<u8>]) -> Vec<u8> {
    bytes(1, &body(name, op, inputs, attrs))
}

/// An attribute that holds a tensor of floats.
fn floats(dims: &[u64], field: u32, content: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|&d| bytes(2, &number(1, d))).collect();
    attr("value", &bytes(8, &[number(1, 1), bytes(2, &dims), bytes(field, content)].concat()))
}

fn read(parts: &[Vec<u8>]) -> Result<Program> {
    graph_def::read(&Bytes::from(parts.concat()))
}

fn code(result: Result<Program>) -> Code {
    match result {
        Err(Error::User(all)) => all[0].code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn edges_become_ids() {
    let p = read(&[
        node("b", "AddV2", &["a", "a:1", "^c"], &[]),
        node("a", "Split", &[], &[]),
        node("c", "NoOp", &[], &[]),
    ])
    .unwrap();
    let b = &p.graph.nodes[NodeId(0)];
    assert_eq!(&*b.inputs, [Endpoint { node: NodeId(1), port: 0 }, Endpoint { node: NodeId(1), port: 1 }]);
    assert_eq!(&*b.controls, [NodeId(2)]);
}

#[test]
fn broken_graphs_are_refused() {
    assert_eq!(code(read(&[node("a", "Relu", &["b"], &[])])), Code::BadGraph);
    assert_eq!(code(read(&[node("a", "Relu", &[], &[]), node("a", "Relu", &[], &[])])), Code::BadGraph);
    for port in ["-1", "70000", "99999999999999999999", "x"] {
        let input = format!("x:{port}");
        assert_eq!(code(read(&[node("x", "X", &[], &[]), node("a", "Relu", &[&input], &[])])), Code::BadGraph);
    }
    assert_eq!(code(read(&[node("", "Relu", &[], &[])])), Code::BadGraph);
    assert_eq!(code(read(&[vec![0x0a, 5, 1]])), Code::BadEncoding);
}

#[test]
fn values_are_repeated_and_content_is_shared() {
    let one = 1f32.to_le_bytes();
    let p =
        read(&[node("a", "Const", &[], &[floats(&[4], 5, &one)]), node("b", "Const", &[], &[floats(&[1], 4, &one)])])
            .unwrap();
    for (id, n) in [(NodeId(0), 4), (NodeId(1), 1)] {
        let Some(Attr::Tensor(t)) = p.graph.nodes[id].attr("value") else { panic!() };
        assert_eq!(t.to_vec::<f32>(), vec![1.0; n]);
    }
}

#[test]
fn huge_constants_are_refused() {
    let one = 1f32.to_le_bytes();
    assert_eq!(code(read(&[node("a", "Const", &[], &[floats(&[1 << 38], 5, &one)])])), Code::TooLarge);
    assert_eq!(code(read(&[node("a", "Const", &[], &[floats(&[1 << 62, 1 << 62], 5, &one)])])), Code::TooLarge);
    assert_eq!(code(read(&[node("a", "Const", &[], &[floats(&[1 << 38], 4, &one)])])), Code::BadGraph);
}

#[test]
fn deep_attributes_are_refused() {
    let mut deep = Vec::new();
    for _ in 0..2000 {
        deep = bytes(10, &[bytes(1, b"g"), bytes(2, &[bytes(1, b"k"), bytes(2, &deep)].concat())].concat());
    }
    assert_eq!(code(read(&[node("a", "NoOp", &[], &[attr("f", &deep)])])), Code::BadEncoding);
}

#[test]
fn functions_number_their_outputs() {
    let arg = bytes(2, &[bytes(1, b"x"), number(3, 1)].concat());
    let ret = bytes(3, &[bytes(1, b"y"), number(3, 1)].concat());
    let signature = bytes(1, &[bytes(1, b"f"), arg, ret].concat());
    let split = bytes(3, &body("s", "Split", &["x", "x"], &[]));
    let map = bytes(4, &[bytes(1, b"y"), bytes(2, b"s:output:3")].concat());
    let function = [signature, split, map].concat();
    let p = read(&[node("a", "NoOp", &[], &[]), bytes(2, &bytes(1, &function))]).unwrap();
    let f = &p.functions["f"];
    assert_eq!(f.args, [NodeId(0)]);
    assert_eq!(f.rets, [Endpoint { node: NodeId(1), port: 3 }]);
    assert_eq!(f.graph.nodes[NodeId(0)].op.as_ref(), "_Arg");
}

#[test]
fn formats_are_told_apart() {
    let format = |b: &[u8]| super::detect::detect(&Bytes::copy_from_slice(b)).ok();
    assert_eq!(format(b"\nnode {"), Some(FileFormat::GraphDefText));
    assert_eq!(format(b"# c\nversions { producer: 1 }"), Some(FileFormat::GraphDefText));
    assert_eq!(format(b" {\"modelTopology\""), Some(FileFormat::TfJs));
    assert_eq!(format(b"HloModule m"), Some(FileFormat::Module));
    assert_eq!(format(b"this is no graph"), None);
    assert_eq!(format(b""), None);
    assert_eq!(format(&node("a", "NoOp", &[], &[])), Some(FileFormat::GraphDef));
    let meta = [bytes(1, &bytes(4, b"serve")), bytes(2, &node("a", "NoOp", &[], &[]))].concat();
    assert_eq!(format(&meta), Some(FileFormat::MetaGraph));
    assert_eq!(format(&[number(1, 1), bytes(2, &meta)].concat()), Some(FileFormat::SavedModel));
}

fn from_text(text: &str) -> Result<Program> {
    graph_def::read(&super::from_text::<super::proto::tensorflow::GraphDef>(text.as_bytes())?)
}

#[test]
fn text_means_what_binary_means() {
    let p = from_text(
        "# a graph\nnode { name: 'a' op: \"Con\" 'st' attr { key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }\n\
         float_val: [1.5, -inf] } } } attr < key: 'i' value: < i: -0x10 > >, attr { key: 'l' value { list { i: 1 i: 2 type: [] } } } }\n\
         node { name: 'b' op: 'Relu' input: 'a' attr { key: 's' value { s: '\\303\\x28\\n' } } experimental_debug_info { original_node_names: 'c' } }
         library { registered_gradients { x { [a/b] { c: 1 } } } }\n\
         versions { producer: 5; }",
    )
    .unwrap();
    let a = &p.graph.nodes[NodeId(0)];
    assert_eq!((&*a.op, a.int("i"), a.ints("l"), p.producer), ("Const", Some(-16), Some(&[1, 2][..]), 5));
    let Some(Attr::Tensor(t)) = a.attr("value") else { panic!() };
    assert_eq!(t.to_vec::<f32>(), [1.5, f32::NEG_INFINITY]);
    let Some(Attr::Str(s)) = p.graph.nodes[NodeId(1)].attr("s") else { panic!() };
    assert_eq!(&s[..], b"\xc3\x28\n");
}

#[test]
fn text_errors_have_a_place() {
    let deep = format!("node {{ attr {{ key: 'f' value {{ {}", "func { attr { value { ".repeat(100_000));
    let opaque = format!("node {{ experimental_type {}", "{".repeat(100_000));
    for (text, line) in [
        ("node { }\n nude { }", (2, 2)),
        ("node { name: 'a", (1, 16)),
        (&deep, (1, 0)),
        (&opaque, (1, 0)),
        ("node { name: 7 }", (1, 14)),
        ("version: 1x", (1, 10)),
    ] {
        let Err(Error::User(all)) = from_text(text) else { panic!("{}", &text[..20]) };
        assert_eq!(all[0].code, Code::BadEncoding);
        let place = all[0].place.line.unwrap();
        assert!(line.1 == 0 || place == line, "{place:?} {line:?}");
    }
}

#[test]
fn configs_are_read() {
    let config = super::parse_config(b"feed { id { node_name: 'x' } shape { dim { size: 2 } } name: 'a' }\nfetch { id { node_name: 'y' output_index: 1 } }").unwrap();
    assert_eq!((config.feed[0].id.node_name.as_str(), config.fetch[0].id.output_index), ("x", 1));
    let binary = protobuf::Message::write_to_bytes(&config).unwrap();
    assert_eq!(super::parse_config(&binary).unwrap(), config);
    assert!(super::parse_config(b"feed { idd {} }").is_err());
}

#[test]
fn tfjs_models_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let weights = [&[0u8, 128][..], &7i32.to_le_bytes()].concat();
    std::fs::write(folder.path().join("w.bin"), weights).unwrap();
    let model = r#"{"modelTopology": {"node": [
        {"name": "q", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}, "value": {"tensor": {"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "2"}]}}}}},
        {"name": "n", "op": "Const", "attr": {"dtype": {"type": "DT_INT64"}}},
        {"name": "c", "op": "Conv2D", "input": ["q", "n"], "attr": {"padding": {"s": "U0FNRQ=="}, "data_format": {"s": [78, 72]}, "strides": {"list": {"i": ["1", 2]}}, "e": {"list": {}}}}]},
      "weightsManifest": [{"paths": ["w.bin"], "weights": [
        {"name": "q", "shape": [2], "dtype": "float32", "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},
        {"name": "n", "shape": [], "dtype": "int32"}]}],
      "signature": {"inputs": {}, "outputs": {"o": {"name": "c:0"}}}}"#;
    let path = folder.path().join("model.json");
    std::fs::write(&path, model).unwrap();
    let p = super::load(&path, None).unwrap();
    let Some(Attr::Tensor(q)) = p.graph.nodes[NodeId(0)].attr("value") else { panic!() };
    let Some(Attr::Tensor(n)) = p.graph.nodes[NodeId(1)].attr("value") else { panic!() };
    assert_eq!((q.to_vec::<f32>(), n.to_vec::<i64>()), (vec![-1.0, 63.0], vec![7]));
    let conv = &p.graph.nodes[NodeId(2)];
    assert_eq!(
        (conv.str("padding"), conv.str("data_format"), conv.ints("strides")),
        (Some("SAME"), Some("NH"), Some(&[1, 2][..]))
    );
    assert_eq!((p.producer, p.signatures[0].outputs[0].1.as_str()), (440, "c:0"));
    std::fs::write(&path, format!("{{\"modelTopology\": {}", "[".repeat(200_000))).unwrap();
    assert_eq!(code(super::load(&path, None)), Code::BadEncoding);
}

#[test]
fn text_keeps_savers_collections_and_assets() {
    let text = "meta_graphs { saver_def { filename_tensor_name: 'save/Const:0' } asset_file_def { filename: 'words.txt' } \
                collection_def { key: 'mine' value { node_list { value: 'y:0' } } } }";
    let wire = super::from_text::<super::proto::tensorflow::SavedModel>(text.as_bytes()).expect("sound text");
    for kept in ["save/Const:0", "words.txt", "mine", "y:0"] {
        assert!(wire.windows(kept.len()).any(|part| part == kept.as_bytes()), "{kept}");
    }
}
