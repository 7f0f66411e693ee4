//! Sizes that values at run time say: there is room for them up to a bound, and a call that asks for more fails.
//! What they give is compared with TensorFlow in `tests/ops` (`Range`, `Tile`, `StridedSlice`, the ragged ops).
use crate::common::{said, tfaot};
use npyz::WriterBuilder;

/// `range(n)` for a fed `n`, and what `adding` makes of it; `x` is a fed row of three.
fn graph(adding: &str) -> String {
    let int = |name: &str, value: i32| {
        format!(
            "node {{ name: '{name}' op: 'Const' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }} attr {{ key: 'value' value {{ tensor {{ dtype: DT_INT32 tensor_shape {{}} int_val: {value} }} }} }} }}\n"
        )
    };
    let fed = |name: &str, dims: &str| {
        format!(
            "node {{ name: '{name}' op: 'Placeholder' attr {{ key: 'dtype' value {{ type: DT_INT32 }} }} attr {{ key: 'shape' value {{ shape {{ {dims} }} }} }} }}\n"
        )
    };
    let range = "node { name: 'all' op: 'Range' input: 'zero' input: 'n' input: 'one' attr { key: 'Tidx' value { type: DT_INT32 } } }\n";
    [&fed("n", ""), &fed("x", "dim { size: 3 }"), &int("zero", 0), &int("one", 1), range, adding]
        .map(|s| s.to_string())
        .concat()
}

const SUM: &str = "node { name: 'y' op: 'AddV2' input: 'all' input: 'x' attr { key: 'T' value { type: DT_INT32 } } }";

type Npz = npyz::npz::NpzWriter<std::io::BufWriter<std::fs::File>>;

fn write(npz: &mut Npz, name: &str, (dims, values): (&[u64], &[i32])) {
    let array = npz.array(name, Default::default()).expect("a file in it");
    let mut writer = array.default_dtype().shape(dims).begin_nd().expect("a header");
    writer.extend(values.iter().copied()).expect("elements");
    writer.finish().expect("whole");
}

/// What a call with this `n` and `x` = [10, 20, 30] says and gives for `fetch`.
fn call(graph: &str, fetch: &str, n: i32, more: &[&str]) -> (bool, String, Option<Vec<i64>>) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    std::fs::write(at("g.pbtxt"), graph).expect("written");
    let mut npz = npyz::npz::NpzWriter::create(at("in.npz")).expect("it is made");
    write(&mut npz, "n:0", (&[], &[n]));
    write(&mut npz, "x:0", (&[3], &[10, 20, 30]));
    drop(npz);
    let (file, inputs, outputs) = (at("g.pbtxt"), at("in.npz"), at("out.npz"));
    let fetch = format!("{fetch}:0");
    let mut args = vec!["run", &file, "--inputs", &inputs, "--outputs", &outputs, "--fetch", &fetch];
    args.extend(more);
    let output = tfaot(&args);
    let made = output.status.success().then(|| crate::common::npz(std::path::Path::new(&outputs)));
    let made = made.and_then(|all| all.into_values().next()?.to_i64s());
    (output.status.success(), said(&output), made)
}

#[test]
fn there_is_room_up_to_the_bound() {
    for engine in ["native", "interpreter"] {
        for n in [0, 1, 5, 64] {
            let (_, told, made) = call(&graph(""), "all", n, &["--engine", engine]);
            assert_eq!(made, Some((0..i64::from(n)).collect()), "{told}");
            assert!(told.contains("`all` is assumed to be at most 64; --bound changes that"), "{told}");
        }
        let (_, told, made) = call(&graph(""), "all", 100, &["--engine", engine, "--bound", "all=100"]);
        assert_eq!(made.map(|m| m.len()), Some(100), "{told}");
        for (n, bound) in [(65, "64"), (-1, "64"), (i32::MIN, "64"), (i32::MAX, "64"), (6, "5")] {
            let (succeeds, told, _) = call(&graph(""), "all", n, &["--engine", engine, "--bound", bound]);
            assert!(!succeeds && told.contains("error["), "{engine} takes {n} at most {bound}: {told}");
        }
    }
}

#[test]
fn a_value_that_is_told_is_no_argument() {
    for engine in ["native", "interpreter"] {
        let (_, told, made) = call(&graph(""), "all", 3, &["--engine", engine, "--feed", "n=5"]);
        assert_eq!(made, Some(vec![0, 1, 2, 3, 4]), "{told}");
        assert!(!told.contains("assumed to be at most"), "{told}");
        let (_, told, made) =
            call(&graph(SUM), "y", 3, &["--engine", engine, "--feed", "n=3", "--feed", "x:0={7,8,9}"]);
        assert_eq!(made, Some(vec![7, 9, 11]), "{told}");
    }
    let (succeeds, told, _) = call(&graph(SUM), "y", 3, &["--feed", "n=4"]);
    assert!(!succeeds && told.contains("error[TFA0104]"), "{told}");
    for (feed, why) in
        [("n={5}", "it is s32[1], and the feed is s32[]"), ("n=0.5", "expects integer"), ("n=5 6", "nothing behind")]
    {
        let (succeeds, told, _) = call(&graph(""), "all", 3, &["--feed", feed]);
        assert!(!succeeds && told.contains("error[TFA0007]") && told.contains(why), "{feed}: {told}");
    }
}

/// A size that is known in the branch that is taken, of two that have other sizes: TensorFlow 1's condition on a fed value.
#[test]
fn a_value_that_is_told_chooses_a_branch() {
    let adding = [
        constant("half", FLOAT, "", "float_val: 0.5"),
        node("ratio", "Placeholder", &[], &[("dtype", FLOAT), ("shape", "shape {}")]),
        node("is_half", "Equal", &["ratio", "half"], &[("T", FLOAT)]),
        node("side", "Switch", &["x", "is_half"], &[("T", INT)]),
        node("twice", "ConcatV2", &["side:0", "side:0", "zero"], &[("T", INT), ("Tidx", INT), ("N", "i: 2")]),
        node("y", "Merge", &["twice", "side:1"], &[("T", INT), ("N", "i: 2")]),
    ];
    for engine in ["native", "interpreter"] {
        for (ratio, want) in [("ratio=0.5", vec![10, 20, 30]), ("ratio=1", vec![10, 20, 30, 10, 20, 30])] {
            let (_, told, made) = call(&graph(&adding.concat()), "y", 0, &["--engine", engine, "--feed", ratio]);
            assert_eq!(made, Some(want), "{engine}, {ratio}: {told}");
        }
    }
}

#[test]
fn other_shapes_fix_a_size() {
    for engine in ["native", "interpreter"] {
        let (_, told, made) = call(&graph(SUM), "y", 3, &["--engine", engine]);
        assert_eq!(made, Some(vec![10, 21, 32]), "{told}");
        // TensorFlow refuses to add arrays of other sizes
        for n in [0, 2, 4] {
            let (succeeds, told, _) = call(&graph(SUM), "y", n, &["--engine", engine]);
            assert!(!succeeds && told.contains("error["), "{engine} adds {n} to 3: {told}");
        }
    }
}

#[test]
fn a_bound_is_a_number_and_names_a_node() {
    let (succeeds, told, _) = call(&graph(""), "all", 3, &["--bound", "all=many"]);
    assert!(!succeeds && told.contains("`--bound all=many` is not of the form NODE=N or N"), "{told}");
    let (succeeds, told, _) = call(&graph(""), "all", 3, &["--bound", "every=5"]);
    assert!(!succeeds && told.contains("`--bound every=5` names no node that is compiled"), "{told}");
}

/// A node with inputs and attributes, these as `key: type`.
fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, &str)]) -> String {
    let inputs: String = inputs.iter().map(|i| format!(" input: '{i}'")).collect();
    let attrs: String = attrs.iter().map(|(k, v)| format!(" attr {{ key: '{k}' value {{ {v} }} }}")).collect();
    format!("node {{ name: '{name}' op: '{op}'{inputs}{attrs} }}\n")
}

const INT: &str = "type: DT_INT32";
const FLOAT: &str = "type: DT_FLOAT";

/// A constant of `dims`, written as `value`.
fn constant(name: &str, dtype: &str, dims: &str, value: &str) -> String {
    let tensor = format!("tensor {{ d{dtype} tensor_shape {{ {dims} }} {value} }}");
    node(name, "Const", &[], &[("dtype", dtype), ("value", &tensor)])
}

/// The sum of the numbers below `min(max(n, 0) + 1, 100)`. The largest `n` wraps around to a negative size, which TensorFlow refuses.
#[test]
fn a_size_that_wraps_around_fails() {
    let adding = [
        constant("hundred", INT, "", "int_val: 100"),
        constant("axis", INT, "dim { size: 1 }", "int_val: 0"),
        node("natural", "Maximum", &["n", "zero"], &[("T", INT)]),
        node("next", "AddV2", &["natural", "one"], &[("T", INT)]),
        node("few", "Minimum", &["next", "hundred"], &[("T", INT)]),
        node("numbers", "Range", &["zero", "few", "one"], &[("Tidx", INT)]),
        node("y", "Sum", &["numbers", "axis"], &[("T", INT), ("Tidx", INT)]),
    ];
    for engine in ["native", "interpreter"] {
        for (n, want) in [(-5, 0), (7, 28), (99, 4950), (1000, 4950), (i32::MAX - 1, 4950)] {
            let (_, told, made) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            assert_eq!(made, Some(vec![want]), "{engine}, {n}: {told}");
        }
        let (succeeds, told, _) = call(&graph(&adding.concat()), "y", i32::MAX, &["--engine", engine]);
        assert!(!succeeds && told.contains("error["), "{engine} takes a size that wraps around: {told}");
    }
}

/// As many numbers as `x` has elements above `n`, at most two: the smaller number is selected by a comparison, and needs no bound.
#[test]
fn a_selected_count_is_bounded_by_its_comparison() {
    let adding = [
        constant("two", INT, "", "int_val: 2"),
        constant("axis", INT, "dim { size: 1 }", "int_val: 0"),
        node("mask", "Greater", &["x", "n"], &[("T", INT)]),
        node("ones", "Cast", &["mask"], &[("SrcT", "type: DT_BOOL"), ("DstT", INT)]),
        node("count", "Sum", &["ones", "axis"], &[("T", INT), ("Tidx", INT)]),
        node("is_less", "Greater", &["two", "count"], &[("T", INT)]),
        node("taken", "Select", &["is_less", "count", "two"], &[("T", INT)]),
        node("y", "Range", &["zero", "taken", "one"], &[("Tidx", INT)]),
    ];
    for engine in ["native", "interpreter"] {
        for (n, want) in [(5, vec![0, 1]), (15, vec![0, 1]), (25, vec![0]), (30, vec![])] {
            let (_, told, made) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            assert_eq!(made, Some(want), "{engine}, {n}: {told}");
            assert!(!told.contains("assumed to be at most"), "{told}");
        }
    }
}

/// The first `min(n, 7)` of `n` elements.
#[test]
fn a_size_grows_up_to_a_limit() {
    let adding = [
        node("count", "Shape", &["all"], &[("T", INT)]),
        constant("seven", INT, "dim { size: 1 }", "int_val: 7"),
        node("taken", "Minimum", &["count", "seven"], &[("T", INT)]),
        constant("start", INT, "dim { size: 1 }", "int_val: 0"),
        node("y", "Slice", &["all", "start", "taken"], &[("T", INT), ("Index", INT)]),
    ];
    for engine in ["native", "interpreter"] {
        for n in [0, 1, 3, 6, 7, 8, 31, 64] {
            let (_, told, made) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            assert_eq!(made, Some((0..i64::from(n.min(7))).collect()), "{engine}, {n}: {told}");
        }
    }
}

/// A size that values say is twice that of an argument, of which no argument has as many.
#[test]
fn a_size_is_a_multiple_of_another() {
    let types = &[("T", INT), ("Tidx", INT), ("N", "i: 2")];
    let adding =
        [node("twice", "ConcatV2", &["x", "x", "zero"], types), node("y", "AddV2", &["twice", "all"], &[types[0]])];
    for engine in ["native", "interpreter"] {
        let (_, told, made) = call(&graph(&adding.concat()), "y", 6, &["--engine", engine]);
        assert_eq!(made, Some(vec![10, 21, 32, 13, 24, 35]), "{engine}: {told}");
        for n in [3, 5, 7] {
            let (succeeds, told, _) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            assert!(!succeeds && told.contains("error["), "{engine} takes {n}: {told}");
        }
    }
}

/// As many elements of `x` as a condition keeps, and as many as `n` says: the two are added, so that they are one size.
#[test]
fn other_sizes_of_values_fix_a_size() {
    let adding = [
        constant("least", INT, "", "int_val: 15"),
        constant("three", INT, "", "int_val: 3"),
        constant("axis", INT, "", "int_val: 0"),
        node("mask", "Greater", &["x", "least"], &[("T", INT)]),
        node("places", "Where", &["mask"], &[("T", "type: DT_BOOL")]),
        node("line", "Squeeze", &["places"], &[("T", "type: DT_INT64"), ("squeeze_dims", "list { i: 1 }")]),
        node(
            "kept",
            "GatherV2",
            &["x", "line", "axis"],
            &[("Tparams", INT), ("Tindices", "type: DT_INT64"), ("Taxis", INT)],
        ),
        node("below", "Minimum", &["n", "three"], &[("T", INT)]),
        node("few", "Maximum", &["below", "zero"], &[("T", INT)]),
        node("small", "Range", &["zero", "few", "one"], &[("Tidx", INT)]),
        node("y", "AddV2", &["kept", "small"], &[("T", INT)]),
    ];
    for engine in ["native", "interpreter"] {
        let (_, told, made) = call(&graph(&adding.concat()), "y", 2, &["--engine", engine]);
        assert_eq!(made, Some(vec![20, 31]), "{engine}: {told}");
        for n in [0, 3] {
            let (succeeds, told, _) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            assert!(!succeeds && told.contains("error["), "{engine} takes {n}: {told}");
        }
    }
}

/// What is left of `n` elements behind two, and of seven behind these; the elements and as many zeros as there have to be for eight.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn a_size_stays_at_a_level() {
    let vector = |name: &str, value: i32| constant(name, INT, "dim { size: 1 }", &format!("int_val: {value}"));
    let types = &[("T", INT), ("Index", INT)];
    let open_end = &[types[0], types[1], ("end_mask", "i: 1")];
    let adding = [
        vector("start", 0),
        vector("two", 2),
        vector("nine", 9),
        vector("eight", 8),
        vector("single", 1),
        node("rest", "StridedSlice", &["all", "two", "two", "single"], open_end),
        node("part", "StridedSlice", &["all", "two", "nine", "single"], types),
        node("count", "Shape", &["all"], &[("T", INT)]),
        node("less", "Sub", &["eight", "count"], &[("T", INT)]),
        node("missing", "Maximum", &["less", "start"], &[("T", INT)]),
        node("ends", "Pack", &["start", "missing"], &[("T", INT), ("N", "i: 2"), ("axis", "i: 1")]),
        node("filled", "Pad", &["all", "ends"], &[("T", INT), ("Tpaddings", INT)]),
        node("ones", "Fill", &["missing", "one"], &[("T", INT), ("index_type", INT)]),
        node("twos", "AddV2", &["ones", "ones"], &[("T", INT)]),
        constant("axis", INT, "", "int_val: 0"),
        node("total", "Sum", &["twos", "start"], &[("T", INT), ("Tidx", INT)]),
        node("behind", "ConcatV2", &["all", "ones", "axis"], &[("T", INT), ("Tidx", INT), ("N", "i: 2")]),
        node("around", "ConcatV2", &["twos", "all", "ones", "axis"], &[("T", INT), ("Tidx", INT), ("N", "i: 3")]),
    ];
    let all = |n: i64| (0..n).collect::<Vec<i64>>();
    for engine in ["native", "interpreter"] {
        for n in [0, 1, 2, 3, 7, 8, 9, 10, 33, 64] {
            let of = |fetch: &str| call(&graph(&adding.concat()), fetch, n, &["--engine", engine]);
            let n = i64::from(n);
            let (_, told, made) = of("rest");
            assert_eq!(made, Some(all(n)[n.min(2) as usize..].to_vec()), "{engine}, {n}: {told}");
            let (_, told, made) = of("part");
            assert_eq!(made, Some(all(n)[n.min(2) as usize..n.min(9) as usize].to_vec()), "{engine}, {n}: {told}");
            let (_, told, made) = of("filled");
            let of_missing = |value: i64| vec![value; (8 - n).max(0) as usize];
            assert_eq!(made, Some([all(n), of_missing(0)].concat()), "{engine}, {n}: {told}");
            let (_, told, made) = of("total");
            assert_eq!(made, Some(vec![2 * (8 - n).max(0)]), "{engine}, {n}: {told}");
            let (_, told, made) = of("behind");
            assert_eq!(made, Some([all(n), of_missing(1)].concat()), "{engine}, {n}: {told}");
            let (_, told, made) = of("around");
            assert_eq!(made, Some([of_missing(2), all(n), of_missing(1)].concat()), "{engine}, {n}: {told}");
        }
    }
    // a caller's array has room for the most that any size needs, which is not what the bound needs
    let (_, told, made) = call(&graph(&adding.concat()), "ones", 3, &[]);
    assert_eq!(made, Some(vec![1; 5]), "{told}");
}

/// `n` boxes that do not overlap, of which the last ones have the highest scores: 10 and more, as `x` says. None of them is a case too.
#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn boxes_are_selected_of_as_many_as_there_are() {
    let adding = [
        constant("axis", INT, "dim { size: 1 }", "int_val: 0"),
        node("ten", "Min", &["x", "axis"], &[("T", INT), ("Tidx", INT)]),
        node("shifted", "AddV2", &["all", "ten"], &[("T", INT)]),
        node("at", "Cast", &["shifted"], &[("SrcT", INT), ("DstT", FLOAT)]),
        constant("side", FLOAT, "", "float_val: 0.5"),
        node("end", "AddV2", &["at", "side"], &[("T", FLOAT)]),
        node("boxes", "Pack", &["at", "at", "end", "end"], &[("N", "i: 4"), ("T", FLOAT), ("axis", "i: 1")]),
        constant("most", INT, "", "int_val: 5"),
        constant("iou", FLOAT, "", "float_val: 0.5"),
        constant("least", FLOAT, "", "float_val: 11.5"),
        node("y", "NonMaxSuppressionV3", &["boxes", "at", "most", "iou", "least"], &[("T", FLOAT)]),
    ];
    for engine in ["native", "interpreter"] {
        for n in [0, 1, 2, 3, 4, 6, 7, 8, 30, 64] {
            let (_, told, made) = call(&graph(&adding.concat()), "y", n, &["--engine", engine]);
            let all: Vec<i64> = (2..i64::from(n)).rev().take(5).collect();
            assert_eq!(made, Some(all), "{engine}, {n}: {told}");
        }
    }
}
