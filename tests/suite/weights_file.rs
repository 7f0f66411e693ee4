//! Weights in a file of their own, as a C or C++ programmer has them: read, handed over, replaced without compiling, and refused where
//! they are another model's.
use crate::common::{path, program, random::Random, said, succeed, tfaot};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// What a layer has to learn: `x` of 3 features, 16 in between, one result.
#[derive(Clone)]
struct Net {
    w: Vec<f32>,
    b: Vec<f32>,
    v: Vec<f32>,
    c: Vec<f32>,
    /// What stands in the code: the result is multiplied by it.
    scale: f32,
}

impl Net {
    /// As a layer begins: all of the first matrix is one number, and biases are zeros.
    fn fresh() -> Net {
        Net { w: vec![1.0; 48], b: vec![0.0; 16], v: vec![1.0; 16], c: vec![0.0], scale: 0.5 }
    }

    /// Whole numbers, whose sums are exact.
    fn trained(seed: u64) -> Net {
        let mut random = Random::new(seed);
        let mut numbers = |n: usize| (0..n).map(|_| random.below(9) as f32 - 4.0).collect::<Vec<_>>();
        Net { w: numbers(48), b: numbers(16), v: numbers(16), c: vec![3.0], scale: 0.5 }
    }

    /// What it makes of a row of ones.
    fn of_ones(&self) -> f32 {
        let hidden = |j: usize| (self.w[j] + self.w[16 + j] + self.w[32 + j] + self.b[j]).max(0.0);
        ((0..16).map(|j| hidden(j) * self.v[j]).sum::<f32>() + self.c[0]) * self.scale
    }

    /// The graph as text, for two rows.
    fn text(&self) -> String {
        let float = "attr { key: \"T\" value { type: DT_FLOAT } }";
        let mut out = "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" value { shape { dim { size: 2 } dim { size: 3 } } } } }\n".to_string();
        for (name, dims, values) in [
            ("w", vec![3, self.w.len() / 3], &self.w),
            ("b", vec![self.b.len()], &self.b),
            ("v", vec![self.v.len(), 1], &self.v),
            ("c", vec![1], &self.c),
            ("s", vec![], &vec![self.scale]),
        ] {
            let dims: String = dims.iter().map(|d| format!("dim {{ size: {d} }} ")).collect();
            let values: String = values.iter().map(|v| format!("float_val: {v} ")).collect();
            let _ = writeln!(
                out,
                "node {{ name: \"{name}\" op: \"Const\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }} attr {{ key: \"value\" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ {dims}}} {values}}} }} }} }}"
            );
        }
        for (name, op, inputs) in [
            ("p", "MatMul", vec!["x", "w"]),
            ("q", "BiasAdd", vec!["p", "b"]),
            ("r", "Relu", vec!["q"]),
            ("t", "MatMul", vec!["r", "v"]),
            ("u", "BiasAdd", vec!["t", "c"]),
            ("y", "Mul", vec!["u", "s"]),
        ] {
            let inputs: String = inputs.iter().map(|i| format!("input: \"{i}\" ")).collect();
            let _ = writeln!(out, "node {{ name: \"{name}\" op: \"{op}\" {inputs}{float} }}");
        }
        out
    }
}

/// Writes the graph of `net` as `folder/NAME/net.pbtxt`.
fn graph(folder: &Path, name: &str, net: &Net) -> String {
    let file = folder.join(name).join("net.pbtxt");
    std::fs::create_dir_all(folder.join(name)).expect("made");
    std::fs::write(&file, net.text()).expect("written");
    file.display().to_string()
}

fn compiled(folder: &Path, graph: &str, out: &str) -> String {
    let out = folder.join(out).display().to_string();
    succeed(&["compile", graph, "-q", "-o", &out, "--weights-file", "--emit", "obj,header,cpp,metadata"]);
    out
}

/// Runs a command, which must succeed; gives what it prints.
fn told(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

fn built(folder: &Path, out: &str, compiler: &[&str], source: &str) -> std::path::PathBuf {
    let driver = folder.join(source.replace(['/', '.'], "_"));
    let mut build = Command::new(compiler[0]);
    build.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", out]).arg(path(source));
    told(build.arg(format!("{out}/net.o")).arg("-o").arg(&driver));
    driver
}

#[test]
fn weights_are_replaced_without_compiling() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let nets = [Net::fresh(), Net::trained(1), Net::trained(2)];
    let fresh = graph(folder, "0", &nets[0]);
    let out = compiled(folder, &fresh, "out");
    let read = |file: &str| std::fs::read(file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let files: Vec<String> = (0..3)
        .map(|i| {
            let (graph, file) = (graph(folder, &i.to_string(), &nets[i]), format!("{out}/{i}.weights"));
            succeed(&["weights", &graph, "-q", "--for", &format!("{out}/net.json"), "-o", &file]);
            // the numbers have no part in the code
            let own = compiled(folder, &graph, &format!("own{i}"));
            assert_eq!(read(&format!("{own}/net.o")), read(&format!("{out}/net.o")), "object {i}");
            assert_eq!(read(&format!("{own}/net.weights")), read(&file), "weights {i}");
            file
        })
        .collect();
    let mut drivers = Vec::new();
    if let Some(gcc) = program(&["gcc"]) {
        drivers.push(built(folder, &out, &[gcc, "-std=c11"], "tests/objects/weights.c"));
    }
    if let Some(cpp) = program(&["g++"]) {
        drivers.push(built(folder, &out, &[cpp, "-std=c++17", "-Wconversion"], "tests/objects/weights.cpp"));
    }
    for driver in drivers {
        for (net, file) in nets.iter().zip(&files) {
            let y = net.of_ones();
            assert_eq!(told(Command::new(&driver).arg(file)), format!("{y} {y}"), "{file}");
        }
    }
}

#[test]
fn nothing_is_read_beside_the_file() {
    let Some(clang) = program(&["clang-22", "clang"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let net = Net::trained(3);
    let out = compiled(folder.path(), &graph(folder.path(), "0", &net), "out");
    let flags = [clang, "-std=c11", "-g", "-fsanitize=address,undefined"];
    let driver = built(folder.path(), &out, &flags, "tests/objects/weights.c");
    let y = net.of_ones();
    assert_eq!(told(Command::new(&driver).arg(format!("{out}/net.weights"))), format!("{y} {y}"));
}

#[test]
fn another_graph_is_refused_with_a_code() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let net = Net::trained(4);
    let own = graph(folder, "0", &net);
    let out = compiled(folder, &own, "out");
    let metadata = format!("{out}/net.json");
    let file = folder.join("refused.weights").display().to_string();
    let refused = |graph: &str, metadata: &str, why: &str| {
        let output = tfaot(&["weights", graph, "-q", "--for", metadata, "-o", &file]);
        assert_eq!(output.status.code(), Some(1));
        let said = said(&output);
        assert!(said.contains("error[TFA0305]") && said.contains(why), "{said}");
        assert!(!Path::new(&file).exists(), "a file was left");
    };
    refused(&graph(folder, "1", &Net { scale: 0.25, ..net.clone() }), &metadata, "numbers that stand in the code");
    let wider = Net { w: vec![1.0; 51], b: vec![1.0; 17], v: vec![1.0; 17], ..net.clone() };
    refused(&graph(folder, "2", &wider), &metadata, "other sizes");
    let text = std::fs::read_to_string(&metadata).expect("it was written");
    let changed = |name: &str, to: serde_json::Value| {
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["weights_file"]["places"][name] = to;
        let file = folder.join(format!("{name}.json"));
        std::fs::write(&file, document.to_string()).expect("written");
        file.display().to_string()
    };
    refused(&own, &changed("bytes", u64::MAX.into()), "other sizes");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut programs = document["weights_file"]["places"]["programs"].clone();
    programs.as_array_mut().expect("programs").iter_mut().for_each(|places| places[3] = u64::MAX.into());
    refused(&own, &changed("programs", programs), "other sizes");
    refused(&own, &changed("programs", serde_json::json!([[0, 64, 192]])), "other arrays");
    refused(&own, &changed("starts", serde_json::json!([64])), "other arrays");
    let object = folder.join("object").display().to_string();
    succeed(&["compile", &own, "-q", "-o", &object, "--emit", "metadata"]);
    refused(&own, &format!("{object}/net.json"), "no metadata of an object whose weights are in a file");
}

/// `run`, `verify` and `bench` take weights as the object's callers do.
#[test]
fn verbs_hand_weights_over() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let (net, next) = (Net::trained(5), Net::trained(6));
    let (own, other) = (graph(folder, "0", &net), graph(folder, "1", &next));
    let at = |name: &str| folder.join(name).display().to_string();
    let out = at("out");
    let emit = ["--emit", "obj,metadata", "--weights-file", "--cpu", "native"];
    succeed(&[&["compile", own.as_str(), "-q", "-o", &out][..], &emit].concat());
    succeed(&["weights", &other, "-q", "--for", &at("out/net.json"), "-o", &at("next.weights")]);
    let (first, second) =
        (format!("--weights-file={out}/net.weights"), format!("--weights-file={}", at("next.weights")));
    succeed(&["verify", &own, "-q", "--weights-file"]);
    succeed(&["verify", &own, "-q", &first, "--threads", "2"]);
    // its numbers are not those of the interpreter
    assert_eq!(tfaot(&["verify", &own, "-q", &second]).status.code(), Some(1));
    succeed(&["verify", &other, "-q", &second]);
    let printed = |flag: &str| succeed(&["run", &own, "-q", flag]);
    assert_eq!(printed("--weights-file"), succeed(&["run", &own, "-q"]));
    assert_ne!(printed(&second), printed(&first));
    succeed(&["bench", &own, "-q", &first, "--runs", "1"]);
    succeed(&["bench", &own, &other, "-q", "--weights-file", "--runs", "1"]);
    let refused = |args: &[&str], why: &str| {
        let output = tfaot(args);
        let said = said(&output);
        assert!(output.status.code() == Some(1) && said.contains(why), "{args:?}: {said}");
    };
    std::fs::write(at("cut.weights"), &std::fs::read(at("next.weights")).expect("a file")[1..]).expect("written");
    refused(&["run", &own, "-q", &format!("--weights-file={}", at("cut.weights"))], "TFA0305");
    refused(&["run", &own, "-q", "--weights-file=nowhere"], "TFA0001");
    refused(&["run", &own, "-q", "--engine", "interpreter", &first], "TFA0007");
    refused(&["bench", &own, &other, "-q", &first], "TFA0007");
    let variables = path("examples/training/model").display().to_string();
    succeed(&["verify", &variables, "-q", "--signature", "train", "--weights-file"]);
}

/// The example that trains, by an object with its constants inside and by one that reads them from a file, for two processors.
#[test]
fn state_begins_with_weights_of_the_file() {
    let Some(gcc) = program(&["gcc"]) else { return };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let train = std::fs::read_to_string(path("examples/training/train.c")).expect("it is there");
    let with_weights = train
        .replace("digits_init(&state)", "if (digits_init(&state, weights)) return 1")
        .replace("&state, workspace", "&state, weights, workspace")
        .replace(
            "int main(void) {\n",
            "int main(void) {\n  FILE *from = fopen(\"digits.weights\", \"rb\");\n  if (!from || fread(weights, 1, sizeof weights, from) != sizeof weights) return 1;\n",
        )
        .replace("static digits_state state;\n", "static digits_state state;\nstatic unsigned char weights[DIGITS_WEIGHTS_BYTES];\n");
    let mut said = Vec::new();
    for (name, text, flags) in [("inside", train, &[][..]), ("file", with_weights, &["--weights-file"][..])] {
        let out = folder.path().join(name);
        let at = out.display().to_string();
        let model = "examples/training/model";
        let cpus = ["--cpu", "x86-64-v2,x86-64-v3"];
        succeed(
            &[&["compile", model, "--signature", "all", "-q", "-o", &at, "--name", "digits"], &cpus[..], flags]
                .concat(),
        );
        std::fs::write(out.join("train.c"), text).expect("written");
        told(
            Command::new(gcc)
                .current_dir(&out)
                .args(["-std=c11", "-O1", "-Wall", "-Werror", "train.c", "digits.o", "-o", "train"]),
        );
        said.push(told(Command::new(out.join("train")).current_dir(&out)));
    }
    assert!(said[0].contains("right"), "{}", said[0]);
    assert_eq!(said[0], said[1]);
}

/// A function for every size up to a bound has its arrays in the file once.
#[test]
fn sizes_share_the_file() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path();
    let text = Net::trained(5).text().replacen("dim { size: 2 }", "dim { size: -1 }", 1);
    let graph = folder.join("net.pbtxt").display().to_string();
    std::fs::write(&graph, text).expect("written");
    let weights = |out: &str, feed: &str| {
        let at = folder.join(out).display().to_string();
        succeed(&[
            "compile",
            &graph,
            "-q",
            "-o",
            &at,
            "--weights-file",
            "--emit",
            "obj,header,metadata",
            "--feed",
            feed,
        ]);
        let again = format!("{at}/again.weights");
        succeed(&["weights", &graph, "-q", "--for", &format!("{at}/net.json"), "-o", &again]);
        let file = std::fs::read(format!("{at}/net.weights")).expect("it was written");
        assert_eq!(std::fs::read(&again).expect("it was written"), file, "{feed}");
        file.len()
    };
    let (one, all) = (weights("one", "x=f32[8,3]"), weights("all", "x=f32[n<=8,3]"));
    assert!(all < 3 * one, "{all} bytes for all sizes, {one} for one");
}
