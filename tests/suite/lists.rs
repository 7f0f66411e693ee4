//! Lists without a bound have room for what the caller allows, and a call that asks for more fails; inside of loops and branches they
//! are refused, and the message names the list and the way out. What they give is compared with TensorFlow in
//! `testdata/graphs/growing_lists` and `open_rounds`.
use crate::common::{said, tfaot};
use npyz::WriterBuilder;
use npyz::npz::NpzWriter;
use std::path::Path;

/// A node of a graph: its name, op, inputs, and the types and flags that are set.
fn node(name: &str, op: &str, inputs: &str, attrs: &[(&str, &str)]) -> String {
    let inputs: String = inputs.split_whitespace().map(|i| format!("input: '{i}' ")).collect();
    let attrs: String =
        attrs.iter().map(|(key, value)| format!("attr {{ key: '{key}' value {{ {value} }} }} ")).collect();
    format!("name: '{name}' op: '{op}' {inputs}{attrs}")
}

/// An integer.
fn int(name: &str, value: i32) -> String {
    let value = format!("tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }}");
    node(name, "Const", "", &[("dtype", "type: DT_INT32"), ("value", &value)])
}

/// The shape of a row of three.
const ROW: &str = "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 3 }";
const ELEMENT: (&str, &str) = ("element_dtype", "type: DT_FLOAT");

/// What `tfaot check` says of these nodes, and of functions; the graph has a fed integer `at` and a fed row `x` of three.
fn check(nodes: &[String], library: &str) -> (bool, String) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = written_graph(scratch.path(), nodes, library);
    let output = tfaot(&["check", &file]);
    (output.status.success(), said(&output))
}

/// That graph as a file of `folder`.
fn written_graph(folder: &Path, nodes: &[String], library: &str) -> String {
    let fed = [
        node("at", "Placeholder", "", &[("dtype", "type: DT_INT32"), ("shape", "shape {}")]),
        node("x", "Placeholder", "", &[("dtype", "type: DT_FLOAT"), ("shape", "shape { dim { size: 3 } }")]),
        node("row", "Const", "", &[("dtype", "type: DT_INT32"), ("value", ROW)]),
    ];
    let nodes: String = fed.iter().chain(nodes).map(|n| format!("node {{ {n} }}\n")).collect();
    let file = folder.join("g.pbtxt").display().to_string();
    std::fs::write(&file, format!("{nodes}\n{library}")).expect("written");
    file
}

/// A list `rows` of two elements that is written at `index` and may grow, and then `read`.
fn written(index: &[String], read: String) -> (bool, String) {
    check(&writing(index, read), "")
}

fn writing(index: &[String], read: String) -> Vec<String> {
    let nodes = [
        int("two", 2),
        node("rows", "TensorListReserve", "row two", &[ELEMENT, ("shape_type", "type: DT_INT32")]),
        node("set", "TensorListSetItem", "rows index x", &[ELEMENT, ("resize_if_index_out_of_bounds", "b: true")]),
        read,
    ];
    [&nodes[..], index].concat()
}

/// Runs a graph, whose `y` is the length of a list, by both engines for each value of `at`: the length, or `None` where the call fails.
fn lengths(nodes: &[String], library: &str, more: &[&str], cases: &[(i32, Option<i64>)]) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = written_graph(scratch.path(), nodes, library);
    let [inputs, outputs] = ["in.npz", "out.npz"].map(|name| scratch.path().join(name).display().to_string());
    for engine in ["interpreter", "native"] {
        for &(at, length) in cases {
            let mut arrays = NpzWriter::create(&inputs).expect("it is made");
            let row = arrays.array("x", Default::default()).expect("an array begins");
            let mut row = row.default_dtype().shape(&[3]).begin_nd().expect("it begins");
            row.extend([1f32, 2.0, 3.0]).and_then(|()| row.finish()).expect("it is written");
            let number = arrays.array("at", Default::default()).expect("an array begins");
            let mut number = number.default_dtype().shape(&[]).begin_nd().expect("it begins");
            number.push(&at).and_then(|()| number.finish()).expect("it is written");
            drop(arrays);
            let files = ["run", &file, "-q", "--inputs", &inputs, "--outputs", &outputs, "--fetch", "y"];
            let output = tfaot(&[&files[..], &["--engine", engine], more].concat());
            let made = output.status.success().then(|| crate::common::npz(Path::new(&outputs)));
            let made = made.and_then(|made| made.into_values().next()?.to_i64s());
            assert_eq!(made, length.map(|n| vec![n]), "{engine}: {at}\n{}", said(&output));
            assert!(length.is_some() || said(&output).contains("error[TFA0008]"), "{engine}: {at}\n{}", said(&output));
        }
    }
}

fn item() -> String {
    node("y", "TensorListGetItem", "set two row", &[ELEMENT])
}

const INT: (&str, &str) = ("T", "type: DT_INT32");

#[test]
fn an_index_has_room_up_to_the_bound() {
    let index = node("index", "Identity", "at", &[INT]);
    let length = node("y", "TensorListLength", "set", &[]);
    let (nodes, cases) =
        (writing(&[index], length), [(0, Some(2)), (5, Some(6)), (63, Some(64)), (64, None), (-1, None)]);
    lengths(&nodes, "", &[], &cases);
    lengths(&nodes, "", &["--bound", "set=9"], &[(8, Some(9)), (9, None)]);
    let bounded = [int("six", 6), node("index", "Minimum", "at six", &[INT])];
    let (compiles, told) = written(&bounded, item());
    assert!(compiles, "{told}");
}

#[test]
fn all_elements_are_as_many_as_values_say() {
    let bounded = [int("six", 6), node("index", "Minimum", "at six", &[INT])];
    let (compiles, told) = written(&bounded, node("y", "TensorListStack", "set row", &[ELEMENT]));
    assert!(compiles, "{told}");
    // in a branch too, as long as what it leaves has one size
    let branch = |name: &str| {
        format!(
            "function {{ signature {{ name: '{name}' input_arg {{ name: 'l' type: DT_VARIANT }} input_arg {{ name: 'row' type: DT_INT32 }} output_arg {{ name: 'o' type: DT_FLOAT }} }}
              node_def {{ {} }} node_def {{ {} }} node_def {{ {} }} ret {{ key: 'o' value: 'o:output:0' }} }}",
            node("all", "TensorListStack", "l row", &[ELEMENT]),
            int("axes", 0),
            node("o", "Sum", "all:tensor:0 axes:output:0", &[("T", "type: DT_FLOAT"), ("Tidx", "type: DT_INT32")]),
        )
    };
    let library = format!("library {{ {} {} }}", branch("one"), branch("other").replace("op: 'Sum'", "op: 'Max'"));
    let types = [
        ("then_branch", "func { name: 'one' }"),
        ("else_branch", "func { name: 'other' }"),
        ("Tcond", "type: DT_INT32"),
        ("Tin", "list { type: DT_VARIANT type: DT_INT32 }"),
        ("Tout", "list { type: DT_FLOAT }"),
    ];
    let nodes = [
        int("two", 2),
        node("rows", "TensorListReserve", "row two", &[ELEMENT, ("shape_type", "type: DT_INT32")]),
        node("set", "TensorListSetItem", "rows index x", &[ELEMENT, ("resize_if_index_out_of_bounds", "b: true")]),
        node("y", "StatelessIf", "at set row", &types),
    ];
    let (compiles, told) = check(&[&nodes[..], &bounded].concat(), &library);
    assert!(compiles, "{told}");
}

/// Of what goes through the loop `push`.
const TYPES: &str = "list { type: DT_INT32 type: DT_INT32 type: DT_VARIANT type: DT_FLOAT }";

/// Pushes rows in a loop `push` while `i < n`; `next` is the next value of `i`. The nodes, and the functions.
fn pushing(limit: &str, next: &str) -> (Vec<String>, String) {
    let args = "input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'n' type: DT_INT32 }
        input_arg { name: 'l' type: DT_VARIANT } input_arg { name: 'row' type: DT_FLOAT }";
    let outs = args.replace("input_arg", "output_arg").replace("name: '", "name: 'o");
    let library = format!(
        "library {{
          function {{ signature {{ name: 'less' {args} output_arg {{ name: 'o' type: DT_BOOL }} }}
            node_def {{ {} }} ret {{ key: 'o' value: 'o:z:0' }} }}
          function {{ signature {{ name: 'push' {args} {outs} }}
            node_def {{ {} }} node_def {{ {} }} node_def {{ {} }}
            ret {{ key: 'oi' value: 'next:z:0' }} ret {{ key: 'on' value: 'n' }}
            ret {{ key: 'ol' value: 'more:output_handle:0' }} ret {{ key: 'orow' value: 'row' }} }} }}",
        node("o", "Less", "i n", &[INT]),
        int("one", 1),
        node("next", next, "i one:output:0", &[INT]),
        node("more", "TensorListPushBack", "l row", &[ELEMENT]),
    );
    let nodes = [
        int("zero", 0),
        int("six", 6),
        node("few", "Minimum", "at six", &[INT]),
        node("kept", "EmptyTensorList", "row zero", &[ELEMENT, ("shape_type", "type: DT_INT32")]),
        node(
            "loop",
            "StatelessWhile",
            &format!("zero {limit} kept x"),
            &[("cond", "func { name: 'less' }"), ("body", "func { name: 'push' }"), ("T", TYPES)],
        ),
        node("y", "TensorListLength", "loop:2", &[]),
    ];
    (nodes.to_vec(), library)
}

fn pushed(limit: &str, next: &str) -> (bool, String) {
    let (nodes, library) = pushing(limit, next);
    check(&nodes, &library)
}

/// The user may say how many rounds there are: the loop ends then, as it would with TensorFlow's `maximum_iterations`.
#[test]
fn rounds_that_the_user_gives_bound_a_list() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let (nodes, library) = pushing("at", "AddV2");
    let file = written_graph(scratch.path(), &nodes, &library);
    let cases = [(-2, 0), (3, 3), (6, 6), (7, 6), (100, 6)].map(|(at, length)| (at, Some(length)));
    lengths(&nodes, &library, &["--rounds", "push=6"], &cases);
    for (rounds, part) in
        [("push", "not of the form LOOP=N"), ("push=0", "not of the form"), ("pull=6", "names no loop")]
    {
        let output = tfaot(&["check", &file, "--rounds", rounds]);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(part), "{rounds}: {}", said(&output));
    }
}

/// Nobody says how many rounds there are: a call that takes more than the bound fails, also where the loop would never end.
#[test]
fn what_a_loop_pushes_has_room_up_to_the_bound() {
    let (nodes, library) = pushing("at", "AddV2");
    lengths(&nodes, &library, &[], &[(-2, Some(0)), (0, Some(0)), (64, Some(64)), (65, None)]);
    lengths(&nodes, &library, &["--bound", "loop=6"], &[(6, Some(6)), (7, None)]);
    // a bound that no memory holds is none
    let (nodes, library) = pushing("most", "AddV2");
    let many = [int("many", 1_000_000_000), node("most", "Minimum", "at many", &[INT])];
    lengths(&[&many[..], &nodes].concat(), &library, &[], &[(5, Some(5)), (64, Some(64)), (65, None)]);
    let (nodes, library) = pushing("six", "Mul");
    lengths(&nodes, &library, &[], &[(3, None)]);
    for limit in ["few", "six"] {
        let (compiles, told) = pushed(limit, "AddV2");
        assert!(compiles, "{limit}: {told}");
    }
}

/// What a round asks for is carried out of the loop: `i = i + 1 + n`, the length of a list that a loop within pushes, while `i < n`.
#[test]
fn a_loop_in_a_loop_has_room_up_to_the_bound() {
    let (nodes, library) = nested("round");
    lengths(&nodes, &library, &[], &[(0, Some(0)), (3, Some(4)), (64, Some(65)), (65, None)]);
    lengths(&nodes, &library, &["--bound", "inner=6"], &[(6, Some(7)), (7, None)]);
}

/// No call fails in a condition: a list that a loop makes longer there needs a number of rounds.
#[test]
fn in_a_condition_a_list_needs_a_number_of_rounds() {
    let (nodes, library) = nested("more");
    let (compiles, told) = check(&nodes, &library);
    assert!(!compiles, "{told}");
    for part in ["TFA0108", "the list `kept`", "the loop `push`", "maximum_iterations", "--rounds 'push=N'"] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
}

/// A loop `outer` while `i < n`, with the loop `inner` of [`pushing`] in the condition `more` or in the body `round`.
fn nested(place: &str) -> (Vec<String>, String) {
    let (nodes, library) = pushing("at", "AddV2");
    let functions = [("cond", "func { name: 'less' }"), ("body", "func { name: 'push' }"), ("T", TYPES)];
    let counted = [
        int("zero", 0),
        node("shape", "Const", "", &[("dtype", "type: DT_INT32"), ("value", ROW)]),
        node("kept", "EmptyTensorList", "shape:output:0 zero:output:0", &[ELEMENT, ("shape_type", "type: DT_INT32")]),
        node("inner", "StatelessWhile", "zero:output:0 n kept:handle:0 row", &functions),
        node("length", "TensorListLength", "inner:output:2", &[]),
    ];
    let by = |name: &str| if name == place { ("length:length:0", &counted[..]) } else { ("i", &[][..]) };
    let args = "input_arg { name: 'i' type: DT_INT32 } input_arg { name: 'n' type: DT_INT32 } input_arg { name: 'row' type: DT_FLOAT }";
    let function = |name: &str, outs: &str, own: &[String], rets: &str| {
        let nodes: String = by(name).1.iter().chain(own).map(|n| format!("node_def {{ {n} }} ")).collect();
        format!("function {{ signature {{ name: '{name}' {args} {outs} }} {nodes} {rets} }}")
    };
    let less =
        [node("later", "AddV2", &format!("i {}", by("more").0), &[INT]), node("o", "Less", "later:z:0 n", &[INT])];
    let more = function("more", "output_arg { name: 'o' type: DT_BOOL }", &less, "ret { key: 'o' value: 'o:z:0' }");
    let next = [
        int("one", 1),
        node("next", "AddV2", "i one:output:0", &[INT]),
        node("count", "AddV2", &format!("next:z:0 {}", by("round").0), &[INT]),
    ];
    let outs = args.replace("input_arg", "output_arg").replace("name: '", "name: 'o");
    let rets = "ret { key: 'oi' value: 'count:z:0' } ret { key: 'on' value: 'n' } ret { key: 'orow' value: 'row' }";
    let round = function("round", &outs, &next, rets);
    let library = library.trim_end().trim_end_matches('}').to_string() + &more + &round + "}";
    let types = "list { type: DT_INT32 type: DT_INT32 type: DT_FLOAT }";
    let functions = [("cond", "func { name: 'more' }"), ("body", "func { name: 'round' }"), ("T", types)];
    let outer = node("outer", "StatelessWhile", "zero at x", &functions);
    (vec![nodes[0].clone(), outer, node("y", "Identity", "outer:0", &[INT])], library)
}
