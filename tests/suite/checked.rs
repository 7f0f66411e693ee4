//! Run-time checks (`--checked`): a call in which TensorFlow's kernels would fail fails, and the message names the node.
use crate::common::{said, tfaot};
use npyz::WriterBuilder;

const INT: &str = "attr { key: 'dtype' value { type: DT_INT32 } }";

/// A fed table of four numbers and a fed index, and `node`, which makes `y` of `table` and `index`.
fn graph(node: &str) -> String {
    let shape = |dims: &str| format!("attr {{ key: 'shape' value {{ shape {{ {dims} }} }} }}");
    format!(
        "node {{ name: 'table' op: 'Placeholder' {INT} {} }}\nnode {{ name: 'index' op: 'Placeholder' {INT} {} }}\n\
         node {{ name: 'axis' op: 'Const' {INT} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: 0 }} }} }} }}\n{node}",
        shape("dim { size: 4 }"),
        shape("")
    )
}

/// Whether a call with this index succeeds, and what is said.
fn call(graph: &str, index: i32, more: &[&str]) -> (bool, String) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    std::fs::write(at("g.pbtxt"), graph).expect("written");
    let mut npz = npyz::npz::NpzWriter::create(at("in.npz")).expect("it is made");
    for (name, dims, values) in [("table:0", &[4u64][..], &[1, 2, 3, 4][..]), ("index:0", &[], &[index])] {
        let array = npz.array(name, Default::default()).expect("a file in it");
        let mut writer = array.default_dtype().shape(dims).begin_nd().expect("a header");
        writer.extend(values.iter().copied()).expect("elements");
        writer.finish().expect("whole");
    }
    drop(npz);
    let (file, inputs) = (at("g.pbtxt"), at("in.npz"));
    let mut args = vec!["run", &file, "--inputs", &inputs, "--fetch", "y:0"];
    args.extend(more);
    let output = tfaot(&args);
    (output.status.success(), said(&output))
}

/// A call with a sound index succeeds; one with the other fails if it is checked and goes on if not.
fn holds(node: &str, sound: i32, other: i32, why: &str) {
    let graph = graph(node);
    for engine in ["native", "interpreter"] {
        assert!(call(&graph, sound, &["--engine", engine, "--checked"]).0, "{engine}");
        let (fine, told) = call(&graph, other, &["--engine", engine, "--checked"]);
        assert!(!fine && told.contains("error[TFA0011]") && told.contains(why), "{engine}: {told}");
        assert!(call(&graph, other, &["--engine", engine]).0, "{engine} without checks");
    }
}

#[test]
fn an_index_out_of_range_names_its_gather() {
    let node = "node { name: 'y' op: 'GatherV2' input: 'table' input: 'index' input: 'axis' attr { key: 'Tparams' value { type: DT_INT32 } } attr { key: 'Tindices' value { type: DT_INT32 } } attr { key: 'Taxis' value { type: DT_INT32 } } }";
    holds(node, 3, 4, "y: an index is out of range");
    holds(node, 0, -1, "y: an index is out of range");
}

#[test]
fn an_integer_divided_by_zero_names_its_division() {
    let node =
        "node { name: 'y' op: 'FloorDiv' input: 'table' input: 'index' attr { key: 'T' value { type: DT_INT32 } } }";
    holds(node, 2, 0, "y: an integer is divided by zero");
}

#[test]
fn numbers_that_are_no_permutation_name_its_inverse() {
    let t = "attr { key: 'T' value { type: DT_INT32 } }";
    let node = format!(
        "node {{ name: 'numbers' op: 'Sub' input: 'table' input: 'index' {t} }}\n\
         node {{ name: 'y' op: 'InvertPermutation' input: 'numbers' {t} }}"
    );
    holds(&node, 1, 0, "y: the numbers are no permutation");
}

#[test]
fn an_assertion_that_only_a_control_edge_asks_for_is_checked() {
    let t = "attr { key: 'T' value { type: DT_INT32 } }";
    let node = format!(
        "node {{ name: 'less' op: 'Less' input: 'axis' input: 'index' {t} }}\n\
         node {{ name: 'positive' op: 'Assert' input: 'less' input: 'index' attr {{ key: 'T' value {{ list {{ type: DT_INT32 }} }} }} }}\n\
         node {{ name: 'y' op: 'Identity' input: 'table' input: '^positive' {t} }}"
    );
    holds(&node, 1, 0, "positive: the assertion failed");
}

/// The loop reads the table until it finds 100, which is not there: it ends with the round in which the index leaves the table.
#[test]
fn a_loop_whose_condition_reads_out_of_range_ends() {
    let t = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_INT32 }} }} ");
    let types = t("Tparams") + &t("Tindices") + &t("Taxis");
    let args = "input_arg { name: 'k' type: DT_INT32 } input_arg { name: 'table' type: DT_INT32 }";
    let outs = "output_arg { name: 'k_out' type: DT_INT32 } output_arg { name: 'table_out' type: DT_INT32 }";
    let constant = |name: &str, value: i32| {
        format!(
            "node_def {{ name: '{name}' op: 'Const' {INT} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }} }} }} }}\n"
        )
    };
    let reads = format!(
        "function {{ signature {{ name: 'reads' {args} output_arg {{ name: 'more' type: DT_BOOL }} }}\n{}{}\
         node_def {{ name: 'one' op: 'GatherV2' input: 'table' input: 'k' input: 'axis:output:0' {types} }}\n\
         node_def {{ name: 'less' op: 'Less' input: 'one:output:0' input: 'limit:output:0' {} }}\nret {{ key: 'more' value: 'less:z:0' }} }}\n",
        constant("axis", 0),
        constant("limit", 100),
        t("T")
    );
    let counts = format!(
        "function {{ signature {{ name: 'counts' {args} {outs} }}\n{}\
         node_def {{ name: 'sum' op: 'AddV2' input: 'k' input: 'by:output:0' {} }}\n\
         ret {{ key: 'k_out' value: 'sum:z:0' }} ret {{ key: 'table_out' value: 'table' }} }}\n",
        constant("by", 1),
        t("T")
    );
    let func = |key: &str, name: &str| format!("attr {{ key: '{key}' value {{ func {{ name: '{name}' }} }} }} ");
    let node = format!(
        "node {{ name: 'loop' op: 'StatelessWhile' input: 'index' input: 'table' attr {{ key: 'T' value {{ list {{ type: DT_INT32 type: DT_INT32 }} }} }} {}{} }}\n\
         node {{ name: 'y' op: 'Identity' input: 'loop' {} }}\nlibrary {{ {reads}{counts} }}",
        func("cond", "reads"),
        func("body", "counts"),
        t("T")
    );
    for engine in ["native", "interpreter"] {
        let (fine, told) = call(&graph(&node), 1, &["--engine", engine, "--checked"]);
        assert!(
            !fine && told.contains("error[TFA0011]") && told.contains("one in reads: an index is out of range"),
            "{engine}: {told}"
        );
        assert!(!told.contains("range_2"), "{engine}: {told}");
    }
}

#[test]
fn a_negative_index_names_the_stitch() {
    let node = "node { name: 'y' op: 'DynamicStitch' input: 'index' input: 'axis' attr { key: 'N' value { i: 1 } } attr { key: 'T' value { type: DT_INT32 } } }";
    holds(node, 3, -1, "y: an index is out of range");
}

#[test]
fn an_index_out_of_range_names_the_op_on_a_list() {
    let t = "attr { key: 'element_dtype' value { type: DT_INT32 } }";
    let shape = "node { name: 'shape' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } } } } }";
    let list = format!(
        "{shape} node {{ name: 'list' op: 'TensorListFromTensor' input: 'table' input: 'shape' {t} attr {{ key: 'shape_type' value {{ type: DT_INT32 }} }} }}"
    );
    let get =
        format!("{list} node {{ name: 'y' op: 'TensorListGetItem' input: 'list' input: 'index' input: 'shape' {t} }}");
    holds(&get, 3, 4, "y: an index is out of range");
    let set = format!(
        "{list} node {{ name: 'set' op: 'TensorListSetItem' input: 'list' input: 'index' input: 'axis' {t} }}\n\
         node {{ name: 'y' op: 'TensorListStack' input: 'set' input: 'shape' {t} }}"
    );
    holds(&set, 0, -1, "set: an index is out of range");
}

#[test]
fn an_index_out_of_range_names_the_op_on_a_tensor_array() {
    let t = "attr { key: 'dtype' value { type: DT_INT32 } }";
    let array = format!(
        "node {{ name: 'size' op: 'Const' {INT} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: 4 }} }} }} }}\n\
         node {{ name: 'array' op: 'TensorArrayV3' input: 'size' {t} }}\n\
         node {{ name: 'set' op: 'TensorArrayWriteV3' input: 'array' input: 'index' input: 'axis' input: 'array:1' attr {{ key: 'T' value {{ type: DT_INT32 }} }} }}\n"
    );
    let write =
        format!("{array} node {{ name: 'y' op: 'TensorArrayReadV3' input: 'array' input: 'axis' input: 'set' {t} }}");
    holds(&write, 0, 4, "set: an index is out of range");
    let read = write.replace("input: 'index'", "input: 'axis'").replacen(
        "'y' op: 'TensorArrayReadV3' input: 'array' input: 'axis'",
        "'y' op: 'TensorArrayReadV3' input: 'array' input: 'index'",
        1,
    );
    holds(&read, 0, -1, "y: an index is out of range");
}

#[test]
fn modules_refuse_options_about_nodes() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("m.hlo").display().to_string();
    std::fs::write(&file, "HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }\n").expect("written");
    for option in [&["--checked"][..], &["--bound", "8"], &["--state", "all"], &["--rounds", "f=3"]] {
        let output = tfaot(&[&["run", &file][..], option].concat());
        let told = said(&output);
        assert!(!output.status.success() && told.contains("error[TFA0007]") && told.contains(option[0]), "{told}");
    }
}
