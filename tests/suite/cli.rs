//! The command line as a user meets it: exit codes, JSON forms, messages, and what is left on disk.
use crate::common::{said, succeed, tfaot};
use serde_json::Value;

const MLP: &str = "testdata/graphs/mlp/graph.pb";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs with this exit status; gives both streams.
fn exits(status: i32, args: &[&str]) -> String {
    let output = tfaot(args);
    assert_eq!(output.status.code(), Some(status), "tfaot {}\n{}", args.join(" "), said(&output));
    said(&output)
}

#[test]
fn wrong_usage_is_2() {
    exits(2, &["frobnicate"]);
    exits(2, &["run"]);
    exits(2, &["compile", MLP]);
    exits(2, &["bench", MLP, "--threads", "many"]);
    exits(2, &["bench", MLP, "--threads", "0"]);
    exits(2, &["run", MLP, "--engine", "abacus"]);
    exits(0, &["--help"]);
}

#[test]
fn a_missing_file_is_1_with_a_code() {
    for verb in ["inspect", "check", "run", "bench", "verify"] {
        assert!(exits(1, &[verb, "no/such/file.pb"]).contains("error[TFA0001]"), "{verb}");
    }
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let out = scratch.path().join("out");
    exits(1, &["compile", "no/such/file.pb", "-o", &out.display().to_string()]);
    assert_eq!(count(&out), 0, "a failed compile left files");
}

/// Files in a folder that may not be there.
fn count(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| entries.count())
}

#[test]
fn check_names_blockers() {
    let output = tfaot(&["check", MLP, "--json", "--fetch", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let verdict = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(verdict["compilable"], false);
    let blockers = verdict["blockers"].as_array().expect("a list");
    assert!(!blockers.is_empty());
    for key in ["node", "op", "code", "reason"] {
        assert!(blockers[0][key].is_string(), "{key}");
    }
}

#[test]
fn blockers_of_one_cause_are_told_together() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("g.pbtxt").display().to_string();
    let typed = |key: &str| format!("attr {{ key: '{key}' value {{ type: DT_FLOAT }} }}");
    let mut text = format!(
        "node {{ name: 'x' op: 'Placeholder' {} attr {{ key: 'shape' value {{ shape {{ dim {{ size: 4 }} }} }} }} }}
         node {{ name: 'odd' op: 'GetDeadline' input: 'x' {} }}",
        typed("dtype"),
        typed("T")
    );
    for i in 0..5 {
        text += &format!("node {{ name: 'u{i}' op: 'SleepIdentityOp' input: 'x' {} }}\n", typed("T"));
    }
    text += &format!(
        "node {{ name: 'all' op: 'AddN' input: 'odd' input: 'u0' input: 'u1' input: 'u2' input: 'u3' input: 'u4' {}
           attr {{ key: 'N' value {{ i: 6 }} }} }}",
        typed("T")
    );
    std::fs::write(&file, text).expect("written");
    let told = exits(1, &["check", &file]);
    assert!(told.contains("not compilable: 6 blockers of 2 causes"), "{told}");
    assert_eq!(told.matches("error[").count(), 2, "{told}");
    let first = told.find("(5 nodes)").expect("the group of most nodes");
    assert!(first < told.find("GetDeadline has no lowering").expect("the other"), "{told}");
    assert!(told.contains("so `u1` (SleepIdentityOp), `u2` (SleepIdentityOp) and 2 more"), "{told}");
    assert_eq!(exits(1, &["check", &file, "--all"]).matches("error[").count(), 6);
    let out = scratch.path().join("out").display().to_string();
    assert_eq!(exits(1, &["compile", &file, "-o", &out]).matches("error[").count(), 2);
    let verdict = json(&String::from_utf8_lossy(&tfaot(&["check", &file, "--json"]).stdout));
    assert_eq!(verdict["blockers"].as_array().map(Vec::len), Some(6));
    assert_eq!((&verdict["groups"][0]["nodes"], &verdict["groups"][1]["nodes"]), (&5.into(), &1.into()));
}

#[test]
fn hlo_verify_tells_each_file() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let bad = scratch.path().join("bad.hlo");
    std::fs::write(&bad, "HloModule m\nENTRY e { ROOT r = (((").expect("written");
    let output = tfaot(&["hlo", "verify", "--json", &bad.display().to_string(), "no/such.hlo"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text.lines().filter(|l| !l.is_empty()).map(json).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|l| l["ok"] == false && l["error"].is_string() && l["file"].is_string()));
}

#[test]
fn a_variable_that_is_assigned_to_and_has_no_value_is_refused_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("g.pbtxt").display().to_string();
    let float = "attr { key: 'dtype' value { type: DT_FLOAT } }";
    let text = format!(
        "node {{ name: 'count' op: 'VarHandleOp' {float} attr {{ key: 'shape' value {{ shape {{}} }} }} }}
         node {{ name: 'x' op: 'Placeholder' {float} attr {{ key: 'shape' value {{ shape {{}} }} }} }}
         node {{ name: 'counted' op: 'AssignAddVariableOp' input: 'count' input: 'x' {float} }}
         node {{ name: 'y' op: 'Neg' input: 'x' input: '^counted' attr {{ key: 'T' value {{ type: DT_FLOAT }} }} }}"
    );
    std::fs::write(&file, text).expect("written");
    for verb in ["check", "compile"] {
        let out = folder.path().join("out").display().to_string();
        let mut args = vec![verb, &file, "--fetch", "y"];
        args.extend(if verb == "compile" { vec!["-o", &out] } else { vec![] });
        let said = exits(1, &args);
        assert!(said.contains("TFA0112") && said.contains("`count`"), "{verb}: {said}");
        assert_eq!(count(std::path::Path::new(&out)), 0);
    }
}

#[test]
fn a_file_of_another_kind_is_1_with_a_code() {
    let text = exits(1, &["inspect", "Cargo.toml"]);
    assert!(text.contains("error[TFA000"), "{text}");
}

#[test]
fn an_unknown_fetch_is_named_and_nothing_is_written() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let out = scratch.path().join("out");
    let text = exits(1, &["compile", MLP, "-o", &out.display().to_string(), "--fetch", "nowhere"]);
    assert!(text.contains("error[TFA0006]") && text.contains("nowhere"), "{text}");
    assert_eq!(count(&out), 0, "a failed compile left files");
}

#[test]
fn inspect_tells_inputs_and_outputs() {
    let facts = json(&succeed(&["inspect", MLP, "--json"]));
    assert_eq!(facts["inputs"][0]["name"], "x:0");
    assert_eq!(facts["inputs"][0]["type"], "f32[4,10]");
    assert!(succeed(&["inspect", MLP]).contains("MatMul"));
}

#[test]
fn ops_lists_every_row() {
    let listed = json(&succeed(&["ops", "--json"]));
    let names: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|o| o["op"].as_str()).collect();
    assert_eq!(names.len(), tfaot::ops::all_ops().count());
    assert!(tfaot::ops::all_ops().all(|(_, row)| names.contains(&row.name)));
}

#[test]
fn explain_knows_every_code() {
    for row in tfaot::diag::codes::CODES {
        let by_id = succeed(&["explain", &row.code.id()]);
        assert!(by_id.contains(row.slug) && by_id.contains(row.about), "{by_id}");
        assert_eq!(by_id, succeed(&["explain", row.slug]));
    }
    exits(1, &["explain", "TFA9999"]);
}

#[test]
fn shells_and_manual() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(succeed(&["completions", shell]).contains("tfaot"), "{shell}");
    }
    assert!(succeed(&["man"]).contains("tfaot"));
    let targets = succeed(&["targets"]);
    for word in ["x86_64", "rv64gcv", "cortex-m4", "wasm32", "x86_64-w64-windows-gnu"] {
        assert!(targets.contains(word), "{word}: {targets}");
    }
}

#[test]
fn a_configuration_names_feeds_and_fetches() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let text =
        "feed { id { node_name: \"x\" } shape { dim { size: 4 } dim { size: 10 } } name: \"picture\" type: DT_FLOAT }
fetch { id { node_name: \"Identity\" } name: \"score\" }";
    std::fs::write(path("c.pbtxt"), text).expect("written");
    let inputs = MLP.replace("graph.pb", "feeds.npz");
    let (out, config) = (path("o.npz"), path("c.pbtxt"));
    exits(0, &["run", MLP, "--engine", "interpreter", "--inputs", &inputs, "--outputs", &out, "--config", &config]);
    let archive = npyz::npz::NpzArchive::open(&out).expect("an npz");
    assert_eq!(archive.array_names().collect::<Vec<_>>(), ["Identity:0"]);
}

#[test]
fn hlo_compile_writes_files_of_each_module() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    for (name, op) in [("one", "negate"), ("two", "abs")] {
        let text = format!("HloModule m\nENTRY e {{\n  x = f32[5] parameter(0)\n  ROOT y = f32[5] {op}(x)\n}}\n");
        std::fs::write(at(&format!("{name}.hlo")), text).expect("is written");
    }
    let machine = ["--target", "aarch64-unknown-linux-gnu", "--emit", "obj,header,kernels", "-o", &at("out")];
    let said = succeed(&[&["hlo", "compile", &at("one.hlo"), &at("two.hlo")], &machine[..]].concat());
    for file in ["one.o", "one.h", "one.kernels", "two.o", "two.h", "two.kernels"] {
        assert!(said.contains(file), "{said}");
        assert!(scratch.path().join("out").join(file).metadata().is_ok_and(|m| m.len() > 0), "{file}");
    }
    let header = std::fs::read_to_string(at("out/two.h")).expect("is there");
    assert!(header.contains("two_run") && header.contains("aarch64"), "{header}");
}

#[test]
fn a_plan_that_is_written_is_compiled_again() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let graph = "testdata/graphs/conv_net/graph.pb";
    let compile = ["compile", graph, "-q", "--name", "net", "--cpu", "x86-64-v3,x86-64-v4"];
    let compile =
        [&compile[..], &["--target", "x86_64-unknown-linux-gnu", "--emit", "plan,obj,depfile", "-o"]].concat();
    succeed(&[&compile[..], &[&at("a")]].concat());
    let plan = std::fs::read_to_string(at("a/net.plan")).expect("is there");
    assert!(plan.starts_with("plan net_x86_64_v4 for x86-64-v4: workspace "), "{plan}");
    assert!(plan.contains("\nplan net_x86_64_v3 for x86-64-v3: workspace "), "{plan}");
    let cached = ["--cache", &at("cache"), "--plan", &at("a/net.plan")];
    succeed(&[&compile[..], &[&at("b")], &cached].concat());
    for file in ["net.o", "net.plan"] {
        let read = |folder: &str| std::fs::read(at(&format!("{folder}/{file}"))).expect("is there");
        assert!(read("a") == read("b"), "{file}");
    }
    let rule = std::fs::read_to_string(at("b/net.d")).expect("is there");
    assert!(rule.contains("a/net.plan"), "{rule}");
    // the cache does not take another plan for this one
    std::fs::write(at("a/net.plan"), plan.replace("dense", "thin")).expect("is written");
    let said = tfaot(&[&compile[..], &[&at("b")], &cached].concat());
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        !said.status.success() && told.contains("TFA0007") && told.contains("what follows from its choices"),
        "{told}"
    );
}

#[test]
fn hlo_goes_through_messages_and_stablehlo() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let text = "HloModule m\n\nENTRY %e (p: f32[2]{0}) -> f32[2]{0} {\n  %p = f32[2]{0} parameter(0)\n  ROOT %r = f32[2]{0} add(%p, %p)\n}\n";
    std::fs::write(at("m.hlo"), text).expect("is written");
    let message = tfaot(&["hlo", "print", "--format", "proto", &at("m.hlo")]).stdout;
    std::fs::write(at("m.hlo.pb"), message).expect("is written");
    assert_eq!(succeed(&["hlo", "print", &at("m.hlo.pb")]), text);
    let mlir = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> return %0 : tensor<2xf32> }";
    std::fs::write(at("m.mlir"), mlir).expect("is written");
    assert!(succeed(&["hlo", "verify", &at("m.mlir"), &at("m.hlo.pb")]).contains("m.mlir: ok"));
}

#[test]
fn results_are_printed_with_all_their_digits() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("m.hlo").display().to_string();
    let text = "HloModule m
ENTRY e {
  a = s64[2] constant({9007199254740993, -9223372036854775807})
  b = u64[1] constant({18446744073709551615})
  c = pred[2] constant({true, false})
  d = c64[1] constant({(1, -2)})
  e = c128[1] constant({(0.1, 3)})
  f = f32[2] constant({0.1, -0})
  g = bf16[1] constant({2.5})
  ROOT t = (s64[2], u64[1], pred[2], c64[1], c128[1], f32[2], bf16[1]) tuple(a, b, c, d, e, f, g)
}";
    std::fs::write(&file, text).expect("is written");
    let want = "0: s64[2] [9007199254740993, -9223372036854775807]
1: u64[1] [18446744073709551615]
2: pred[2] [true, false]
3: c64[1] [(1.0, -2.0)]
4: c128[1] [(0.1, 3.0)]
5: f32[2] [0.1, -0.0]
6: bf16[1] [2.5]
";
    for verb in ["run", "eval"] {
        assert_eq!(succeed(&["hlo", verb, &file]), want, "{verb}");
    }
}

#[test]
fn modules_for_several_devices_are_refused() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("m.hlo").display().to_string();
    let run = |text: &str, status: i32| {
        std::fs::write(&file, text).expect("is written");
        let said: Vec<String> = ["run", "eval"].iter().map(|verb| exits(status, &["hlo", verb, &file])).collect();
        assert!(status == 0 || said.iter().all(|s| s.contains("error[TFA0205]")), "{text}: {said:?}");
    };
    let sum = "\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n";
    let reduce = |groups: &str| {
        format!(
            "{sum}ENTRY e {{ x = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(x), replica_groups={groups}, to_apply=sum }}"
        )
    };
    run(&format!("HloModule m, replica_count=2\n{}", reduce("{{0,1}}")), 1);
    run(&format!("HloModule m, num_partitions=2\n{}", reduce("{}")), 1);
    run("HloModule m, replica_count=4\nENTRY e { ROOT r = u32[] replica-id() }", 1);
    run("HloModule m, num_partitions=4\nENTRY e { ROOT r = u32[] partition-id() }", 1);
    let body =
        "func.func @main() -> tensor<ui32> { %0 = stablehlo.replica_id : tensor<ui32> return %0 : tensor<ui32> }";
    run(&format!("module @m attributes {{mhlo.num_replicas = 2 : i32}} {{ {body} }}"), 1);
    // One device alone is all of its group.
    run(&format!("HloModule m, replica_count=1, num_partitions=1\n{}", reduce("{{0}}")), 0);
    run(&format!("HloModule m\n{}", reduce("{}")), 0);
    run("HloModule m\nENTRY e { ROOT r = u32[] replica-id() }", 0);
    run(&format!("module @m attributes {{mhlo.num_replicas = 1 : i32}} {{ {body} }}"), 0);
}

#[test]
fn xla_flags_dump_under_the_names_of_xla() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let (out, dumps) = (scratch.path().join("out"), scratch.path().join("dumps"));
    let flags = format!("--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto", dumps.display());
    succeed(&["compile", MLP, "-o", &out.display().to_string(), "--xla-flags", &flags]);
    let mut names: Vec<String> = std::fs::read_dir(&dumps)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for end in
        [".before_optimizations.txt", ".before_optimizations.hlo.pb", ".cpu_after_optimizations.txt", ".debug_options"]
    {
        assert!(names.iter().any(|n| n.starts_with("module_0000.") && n.ends_with(end)), "{end} among {names:?}");
    }
    let message = names.iter().find(|n| n.ends_with("after_optimizations.hlo.pb")).expect("a message");
    succeed(&["hlo", "verify", &dumps.join(message).display().to_string()]);
}

#[test]
fn the_machine_is_measured_without_a_graph() {
    exits(2, &["bench"]);
    exits(2, &["bench", MLP, "--machine"]);
    let told = json(&succeed(&["bench", "--machine", "--json"]));
    assert!(told["llvm_cpu"].is_string() && told["fma"][0]["one_gflops"].as_f64() > Some(0.1), "{told}");
    let levels: Vec<&str> =
        told["memory"].as_array().into_iter().flatten().filter_map(|m| m["level"].as_str()).collect();
    assert_eq!(levels, ["L1", "L2", "L3", "DRAM"]);
    assert!(told["memory"][0]["one_gbs"].as_f64() > Some(0.1), "{told}");
    assert_eq!(told["handover_ns"].as_u64() > Some(0), told["threads"].as_u64() > Some(1), "{told}");
}

#[test]
fn a_call_on_two_threads_tells_what_they_had() {
    let told = |threads| json(&succeed(&["bench", MLP, "--json", "--runs", "1", "-q", "--threads", threads]));
    let (one, two) = (told("1"), told("2"));
    assert!(one["handover_ns"].is_null() && one["cores"].is_null(), "{one}");
    assert!(two["handover_ns"].as_u64() > Some(0) && two["cores"].as_f64() > Some(0.1), "{two}");
}

#[test]
fn a_profile_counts_the_rounds_of_loops() {
    let told = json(&succeed(&["bench", "testdata/graphs/loops/graph.pb", "--profile", "--json", "--runs", "1", "-q"]));
    let kernels = told["kernels"].as_array().expect("kernels");
    let rounds = |k: &&Value| k["launches"].as_u64() > Some(1);
    assert!(kernels.iter().any(|k| rounds(&k)), "{told}");
    for k in kernels.iter().filter(rounds) {
        let (bytes, ms, gbs) = (k["bytes"].as_f64(), k["ms"].as_f64(), k["gbs"].as_f64());
        let (Some(bytes), Some(ms), Some(gbs)) = (bytes, ms, gbs) else { panic!("{k}") };
        assert!((gbs - bytes / (ms * 1e6)).abs() <= 1e-6 * gbs, "{k}");
        assert_eq!(k["bytes"].as_u64().map(|b| b % k["launches"].as_u64().unwrap_or(1)), Some(0), "{k}");
    }
    let least: f64 = kernels.iter().filter_map(|k| k["roofline_ms"].as_f64()).sum();
    assert!(least > 0.0 && (told["roofline_ms"].as_f64().unwrap_or(0.0) / least - 1.0).abs() < 1e-6, "{told}");
    assert_eq!(told["direct_flops"], told["flops"], "no kernel of it uses Winograd's method");
}

#[test]
fn a_compile_is_found_in_the_cache_and_made_anew_where_that_is_damaged() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let cache = at("cache");
    let compile = |out: &str, more: &[&str]| {
        let args =
            ["compile", MLP, "-o", out, "--name", "graph", "--cache", &cache].into_iter().chain(more.iter().copied());
        let said = exits(0, &args.collect::<Vec<_>>());
        (said, std::fs::read(std::path::Path::new(out).join("graph.o")).expect("an object"))
    };
    let (first, made) = compile(&at("a"), &[]);
    assert_eq!(count(cache.as_ref()), 1);
    let (second, found) = compile(&at("b"), &[]);
    assert!(made == found);
    assert_eq!(first.replace(&at("a"), "OUT"), second.replace(&at("b"), "OUT"), "a hit says what a miss says");
    assert_eq!(count(cache.as_ref()), 1);
    // another option is another entry
    compile(&at("c"), &["--cpu", "x86-64-v2"]);
    assert_eq!(count(cache.as_ref()), 2);
    for entry in std::fs::read_dir(&cache).expect("the cache").flatten() {
        let bytes = std::fs::read(entry.path()).expect("an entry");
        std::fs::write(entry.path(), &bytes[..bytes.len() / 2]).expect("written");
    }
    let (said, again) = compile(&at("d"), &[]);
    assert!(said.contains("is damaged") && made == again, "{said}");
    assert!(!compile(&at("e"), &[]).0.contains("is damaged"));
}

#[test]
fn tuned_choices_are_kept_in_a_file_that_gives_the_same_bytes() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let file = at("model.tuning");
    let object = |out: &str| std::fs::read(std::path::Path::new(out).join("m.o")).expect("an object");
    let said = exits(0, &["compile", MLP, "-o", &at("a"), "--name", "m", "--tune", &file]);
    assert!(said.contains("products"), "{said}");
    let rows = std::fs::read_to_string(&file).expect("a file");
    assert!(rows.starts_with("# tfaot tuning 1\n") && rows.lines().count() > 1, "{rows}");
    // rows of other processors, and of tiles that no version has, do nothing
    let foreign = "x86-64 f32 rows=1: 1x1x1x1 rows\n";
    std::fs::write(&file, format!("{rows}{foreign}")).expect("written");
    exits(0, &["compile", MLP, "-o", &at("b"), "--name", "m", "--tuning", &file, "--cpu", "native"]);
    assert!(object(&at("a")) == object(&at("b")));
    exits(0, &["compile", MLP, "-o", &at("c"), "--name", "m"]);
    let stale: String = rows
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((form, _)) => format!("{form}: 99x99x99x99 rows\n"),
            None => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&file, stale).expect("written");
    exits(0, &["compile", MLP, "-o", &at("d"), "--name", "m", "--tuning", &file]);
    assert!(object(&at("c")) == object(&at("d")));
    std::fs::write(&file, format!("{rows}nonsense\n")).expect("written");
    assert!(exits(1, &["compile", MLP, "-o", &at("e"), "--tuning", &file]).contains("TFA0007"));
    let far = ["compile", MLP, "-o", &at("f"), "--tune", &at("far"), "--target", "aarch64-unknown-linux-gnu"];
    assert!(exits(1, &far).contains("TFA0007"));
    assert_eq!(count(at("f").as_ref()) + count(at("e").as_ref()), 0);
}

/// A saved model as text: two signatures, a saver, and a function that only the second signature calls.
const TWO_SIGNATURES: &str = r#"
graph_def {
  node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
         attr { key: 'shape' value { shape { dim { size: 2 } dim { size: -1 } } } } }
  node { name: 'double' op: 'AddV2' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
  node { name: 'path' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'shape' value { shape {} } } }
  node { name: 'save' op: 'WriteFile' input: 'path' input: 'path' }
  node { name: 'label' op: 'PartitionedCall' input: 'x' attr { key: 'f' value { func { name: 'name_of' } } }
         attr { key: 'Tin' value { list { type: DT_FLOAT } } } attr { key: 'Tout' value { list { type: DT_STRING } } } }
  library { function {
    signature { name: 'name_of' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'r' type: DT_STRING } }
    node_def { name: 'told' op: 'SerializeTensor' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'unused' op: 'StringLower' input: 'told:output:0' }
    ret { key: 'r' value: 'told:output:0' } } }
}
signature_def { key: 'serving_default' value {
  inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT } } outputs { key: 'y' value { name: 'double:0' dtype: DT_FLOAT } } } }
signature_def { key: 'label' value {
  inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT } } outputs { key: 'y' value { name: 'label:0' dtype: DT_STRING } } } }
"#;

/// Three ops without a lowering, each behind the one before.
const MISSING: &str = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: 2 } } } } }
node { name: 'a' op: 'MissingOne' input: 'x' }
node { name: 'b' op: 'MissingTwo' input: 'a' }
node { name: 'c' op: 'Neg' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'd' op: 'MissingThree' input: 'c' }
";

#[test]
fn a_missing_op_hides_no_other() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("m.pbtxt").display().to_string();
    std::fs::write(&file, MISSING).expect("written");
    let text = exits(1, &["check", &file, "--all"]);
    for op in ["MissingOne", "MissingTwo", "MissingThree"] {
        assert_eq!(text.matches(&format!("{op} has no lowering")).count(), 1, "{text}");
    }
}

#[test]
fn a_file_that_is_not_there_is_the_only_error() {
    let output = tfaot(&["check", "nowhere.pb"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "no verdict about no graph");
    assert_eq!(said(&output).matches("error[").count(), 1, "{}", said(&output));
}

#[test]
fn only_what_the_signature_reaches_counts() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("m.pbtxt").display().to_string();
    std::fs::write(&file, TWO_SIGNATURES).expect("written");
    let blockers = |more: &[&str]| -> Vec<String> {
        let output = tfaot(&[&["check", &file, "--json"], more].concat());
        let verdict = json(&String::from_utf8_lossy(&output.stdout));
        verdict["blockers"].as_array().expect("a list").iter().map(|b| b["op"].to_string()).collect()
    };
    assert_eq!(blockers(&[]), ["\"Placeholder\""], "one size is open, and nothing else is wrong");
    assert_eq!(blockers(&["--signature", "label"]), ["\"Placeholder\"", "\"SerializeTensor\""]);
    assert_eq!(blockers(&["--dim", "3"]), [] as [&str; 0]);
    let facts = json(&succeed(&["inspect", &file, "--json"]));
    assert_eq!((&facts["nodes"], &facts["nodes_in_file"]), (&json("2"), &json("5")));
    assert_eq!(facts["functions"], json("[]"));
    assert_eq!(facts["unsupported_ops"], json("[]"));
    assert_eq!(facts["signatures"].as_array().map(Vec::len), Some(2));
    let facts = json(&succeed(&["inspect", &file, "--json", "--signature", "label"]));
    assert_eq!(facts["functions"][0]["name"], "name_of");
    assert!(succeed(&["inspect", &file]).contains("2 of 5 nodes, 0 of 1 functions"));
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_file() {
    use std::process::{Command, Stdio};
    // A shell's background jobs ignore SIGINT from their start, and so does what they start.
    let ignored = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored.lines().find_map(|l| l.strip_prefix("SigIgn:")).map(|m| u64::from_str_radix(m.trim(), 16));
    let ignored = ignored.and_then(Result::ok).unwrap_or(0);
    for (signal, status) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        if (ignored >> (status - 129)) & 1 == 1 {
            eprintln!("SKIPPED: SIG{signal} is ignored here");
            continue;
        }
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tfaot"))
            .args(["reduce", "testdata/graphs/mlp/graph.pb", "-o", "x.pb", "-q", "--", "sh", "-c", "sleep 20", "{}"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("TMPDIR", folder.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while count(folder.path()) == 0 && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(count(folder.path()), 1, "it has a scratch folder");
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
        assert_eq!(child.wait().expect("it ends").code(), Some(status));
        assert_eq!(count(folder.path()), 0, "SIG{signal} leaves nothing");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    use std::process::Command;
    for signal in ["HUP", "INT", "TERM"] {
        // The command that `reduce` runs sends the signal to `reduce`, which goes on and finds the status that it wants.
        let line = format!(
            "trap '' {signal}; exec {} reduce testdata/graphs/mlp/graph.pb -o \"$0\" -q --max-runs 4 -- \
             sh -c 'kill -{signal} $PPID; exit 3' {{}}",
            env!("CARGO_BIN_EXE_tfaot")
        );
        let folder = tempfile::tempdir().expect("a scratch folder");
        let small = folder.path().join("small.pb");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(line).arg(&small).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = shell.output().expect("a shell");
        assert_eq!(output.status.code(), Some(0), "SIG{signal}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(small.is_file());
    }
}

#[test]
fn files_of_other_kinds_are_told() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let written = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path.display().to_string()
    };
    let page = written("model.pb", b"<!DOCTYPE html><html></html>");
    assert!(exits(1, &["check", &page]).contains("this is an HTML page"));
    let array = written("x.npz", b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }");
    let said = exits(1, &["run", "testdata/graphs/mlp/graph.pb", "--inputs", &array]);
    assert!(said.contains("one numpy array") && said.contains("np.savez"), "{said}");
    let versions = folder.path().join("served");
    std::fs::create_dir_all(versions.join("1")).expect("made");
    std::fs::copy("testdata/saved_model/saved_model.pb", versions.join("1/saved_model.pb")).expect("copied");
    let said = exits(1, &["check", &versions.display().to_string()]);
    assert!(said.contains("served/1`, which is a SavedModel"), "{said}");
}

#[test]
fn a_number_alone_is_told_as_it_was_written() {
    let said = exits(1, &["check", "testdata/graphs/mlp/graph.pb", "--dim", "7"]);
    assert!(said.contains("`--dim 7` binds no unknown dimension"), "{said}");
}

#[test]
fn what_prints_or_asserts_is_left_out_and_said() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("g.pbtxt").display().to_string();
    let of = |key: &str, of: &str| format!("attr {{ key: '{key}' value {{ type: {of} }} }}");
    let (float, string) = (of("dtype", "DT_FLOAT"), of("dtype", "DT_STRING"));
    let shape = "attr { key: 'shape' value { shape { dim { size: 2 } } } }";
    let text = format!(
        "node {{ name: 'x' op: 'Placeholder' {float} {shape} }}
         node {{ name: 'text' op: 'Placeholder' {string} attr {{ key: 'shape' value {{ shape {{}} }} }} }}
         node {{ name: 'first' op: 'PrintV2' input: 'text' }}
         node {{ name: 'second' op: 'PrintV2' input: 'text' input: '^first' }}
         node {{ name: 'sound' op: 'CheckNumerics' input: 'x' {} }}
         node {{ name: 'queue' op: 'FIFOQueueV2' attr {{ key: 'component_types' value {{ list {{ type: DT_FLOAT }} }} }} }}
         node {{ name: 'give' op: 'QueueEnqueueV2' input: 'queue' input: 'x'
           attr {{ key: 'Tcomponents' value {{ list {{ type: DT_FLOAT }} }} }} }}
         node {{ name: 'after' op: 'NoOp' input: '^give' }}
         node {{ name: 'y' op: 'AddV2' input: 'sound' input: 'x' input: '^second' input: '^after' {} }}",
        of("T", "DT_FLOAT"),
        of("T", "DT_FLOAT"),
    );
    std::fs::write(&file, text).expect("written");
    let told = exits(0, &["check", &file]);
    for part in [
        "compilable",
        "warning[TFA0120]",
        "2 nodes that print",
        "`first` (PrintV2), `second` (PrintV2)",
        "`sound`",
        "`give` (QueueEnqueueV2)",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert_eq!(told.matches("TFA0120").count(), 3, "each sort of effect once\n{told}");
    let verdict = json(&succeed(&["check", &file, "--json"]));
    assert_eq!(verdict["warnings"].as_array().map(Vec::len), Some(3));
    assert_eq!(verdict["compilable"], true, "what is printed needs not be fed");
    let out = scratch.path().join("out").display().to_string();
    assert!(exits(0, &["compile", &file, "-o", &out, "-q"]).contains("warning[TFA0120]"));
}

/// Several models are timed in turns: each has its line, the first is what the others are compared with.
#[test]
fn models_are_timed_beside_each_other() {
    let conv = "testdata/graphs/conv_net/graph.pb";
    let told = json(&succeed(&["bench", MLP, conv, MLP, "--json", "--runs", "3", "-q"]));
    let models = told["models"].as_array().expect("a list");
    let names: Vec<&str> = models.iter().filter_map(|m| m["graph"].as_str()).collect();
    assert_eq!(names, [MLP, conv, MLP]);
    assert_eq!(models[0]["of_first"], 1.0);
    for model in models {
        assert_eq!((model["runs"].as_u64(), model["warmup_runs"].as_u64()), (Some(3), Some(3)), "{model}");
        let [least, median, most] = ["min_ms", "median_ms", "max_ms"].map(|key| model[key].as_f64().expect("a time"));
        assert!(0.0 < least && least <= median && median <= most, "{model}");
    }
    let text = succeed(&["bench", MLP, conv, "--runs", "2", "-q"]);
    assert!(text.lines().count() == 3 && text.contains("graph, 1 threads, after 3 calls to warm up each"), "{text}");
    exits(2, &["bench", MLP, conv, "--profile"]);
}
