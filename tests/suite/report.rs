//! `tfaot report`: its data, and what can be said of its page without a browser. `tests/browser` opens it.
use crate::common::{said, succeed, tfaot};
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
        statements_are_told(kernel);
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

/// Most instructions are of a line of the loops, all but those between statements; nothing is left of how that was told.
fn statements_are_told(kernel: &Value) {
    let lines: Vec<&str> = kernel["asm"].as_str().expect("text").lines().collect();
    let of: Vec<u64> = kernel["asm_lines"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    let loops = kernel["text"].as_str().expect("text").lines().count() as u64;
    assert_eq!(lines.len(), of.len());
    assert!(of.iter().all(|&line| line <= loops), "{kernel}");
    let told = of.iter().filter(|&&line| line > 0).count();
    let instructions = lines.iter().filter(|l| l.starts_with('\t') && !l.starts_with("\t.")).count();
    assert!(told * 10 >= instructions * 6 && told <= instructions, "{told} of {instructions}: {kernel}");
    assert!(of.iter().collect::<std::collections::HashSet<_>>().len() > 2, "several statements: {kernel}");
    assert!(!lines.iter().any(|l| l.contains(".loc") || l.contains("Ltmp")), "{kernel}");
}

#[test]
fn other_targets_have_their_assembly() {
    let report = data("testdata/graphs/mlp/graph.pb", &["--target", "aarch64-unknown-linux-gnu"]);
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

/// The model comes before its clusters: what it takes and gives under the names of its user, what it costs, what to do next.
#[test]
fn the_model_is_told_as_its_user_sees_it() {
    let report = data("testdata/saved_model", &["--dim", "2"]);
    let [model] = &report["models"].as_array().expect("a list")[..] else { panic!("{}", report["models"]) };
    assert_eq!(model["signature"], "serving_default");
    let names = |key: &str| -> Vec<String> {
        let of =
            |v: &Value| format!("{}: {}", v["name"].as_str().expect("a name"), v["shape"].as_str().expect("a type"));
        model[key].as_array().expect("a list").iter().map(of).collect()
    };
    assert_eq!(names("inputs"), ["i: s32[3]", "x: f32[2,4]"]);
    assert_eq!(names("outputs"), ["rows: f32[3,3]", "y: f32[2,3]"]);
    // 4x3 and 3 of the dense layer, 5x3 of the table, and what the function itself writes
    assert!(model["parameters"].as_u64() >= Some(12 + 3 + 15), "{}", model["parameters"]);
    let code = &report["code"][model["code"].as_u64().expect("it compiles") as usize];
    assert!(!code["kernels"].as_array().expect("a list").is_empty());
    let commands: Vec<&str> =
        report["next"].as_array().expect("a list").iter().filter_map(|s| s["command"].as_str()).collect();
    assert_eq!(commands[0], "tfaot compile saved_model --dim 2 -o out");
    let page = page("testdata/saved_model", &["--dim", "2"]);
    assert!(page.contains("Compiles whole, for ") && page.contains("tfaot verify saved_model --dim 2 --inputs in.npz"));
}

/// What became integers stands on the first screen and in the data.
#[test]
fn products_of_quantised_activations_are_listed() {
    let graph = "testdata/graphs/quantized_layers/graph.pb";
    let report = data(graph, &[]);
    let code = &report["code"][report["models"][0]["code"].as_u64().expect("it compiles") as usize];
    let integers = code["quantized"]["integers"].as_array().expect("a list");
    let floats = code["quantized"]["floats"].as_array().expect("a list");
    let all = integers.len() + floats.len();
    assert!(all > 0, "{}", code["quantized"]);
    let page = page(graph, &[]);
    assert!(page.contains(&format!("{} of {all} products of quantised activations are computed on", integers.len())));
    for name in integers {
        assert!(page.contains(&format!("integers: <code>{}</code>", name.as_str().expect("a name"))), "{name}");
    }
}

#[test]
fn each_signature_is_told() {
    let report = data("testdata/signatures", &["--dim", "2"]);
    let models = report["models"].as_array().expect("a list");
    let names: Vec<&str> = models.iter().filter_map(|m| m["signature"].as_str()).collect();
    assert_eq!(names, ["embed", "score"]);
    assert!(models.iter().all(|m| m["code"].is_u64()), "{models:?}");
}

#[test]
fn what_blocks_a_model_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let graph = folder.path().join("open.pbtxt").display().to_string();
    let shape = "attr { key: \"shape\" value { shape { dim { size: -1 } dim { size: -1 } } } }";
    let float = |key: &str| format!("attr {{ key: \"{key}\" value {{ type: DT_FLOAT }} }}");
    let text = format!(
        "node {{ name: \"x\" op: \"Placeholder\" {} {shape} }}\nnode {{ name: \"y\" op: \"Relu\" input: \"x\" {} }}\n",
        float("dtype"),
        float("T")
    );
    std::fs::write(&graph, text).expect("written");
    let report = data(&graph, &[]);
    let [model] = &report["models"].as_array().expect("a list")[..] else { panic!("one model") };
    assert_eq!(model["blocked"][0]["code"], "TFA0009");
    assert_eq!(model["inputs"][0]["shape"], "f32[?,?]", "known though nothing is lowered");
    let command = report["next"][0]["command"].as_str().expect("a command");
    assert_eq!(command, "tfaot compile open.pbtxt --dim 1 -o out");
    assert!(page(&graph, &[]).contains("Compiles once its open sizes are bound."));
}

/// Beside itself nothing changes; beside another model what is better and worse is said with its sign.
#[test]
fn an_earlier_report_is_compared_with() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let old = folder.path().join("old.json").display().to_string();
    let wide = "testdata/graphs/conv_net/graph.pb";
    let mut text = data(wide, &[]);
    std::fs::write(&old, text.to_string()).expect("written");
    let same = data(wide, &["--baseline", &old]);
    let rows = same["baseline"]["rows"].as_array().expect("a list");
    assert!(rows.len() > 6 && rows.iter().all(|r| r["was"] == r["is"] && !r["is"].is_null()), "{rows:?}");
    assert_eq!((&same["baseline"]["new"], &same["baseline"]["gone"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let code = text["models"][0]["code"].as_u64().expect("it compiles") as usize;
    text["code"][code]["workspace_bytes"] = 1.into();
    text["models"][0]["blocked"] = serde_json::json!([{"code": "TFA0100", "text": "no lowering"}]);
    std::fs::write(&old, text.to_string()).expect("written");
    let other = page(wide, &["--baseline", &old]);
    assert!(other.contains("<td class=\"number worse\">+"), "the workspace has grown");
    assert!(other.contains("Out of the way</h3>") && other.contains("TFA0100: no lowering"));
    std::fs::write(&old, "{}").expect("written");
    let refused = tfaot(&["report", wide, "-q", "--json", "--baseline", &old]);
    assert!(said(&refused).contains("is no output of `report --json`"), "{}", said(&refused));
}

/// A flag that says nothing of the graph is wrong usage, not a model that does not compile.
#[test]
fn flags_that_say_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("r.html");
    for flags in [["--dim", "batch=8"], ["--bound", "nowhere=8"]] {
        let graph = "testdata/graphs/mlp/graph.pb";
        let output = tfaot(&[&["report", graph, "-o", &out.display().to_string()], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("error[TFA0007]") && !out.exists(), "{}", said(&output));
    }
}
