//! `tfaot bug`: what is packed can be run again.
use crate::common::{path, said, succeed, tfaot};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Packs `words` for `graph` into `scratch`, which must end with `status`; what it said, and the folder of the unpacked archive.
fn packed(scratch: &Path, graph: &str, words: &[&str], status: i32) -> (String, PathBuf) {
    let archive = scratch.join("bug.tar.gz").display().to_string();
    let output = tfaot(&[&["bug", graph, "-o", &archive, "--"], words].concat());
    assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    let file = std::fs::File::open(&archive).expect("there is one archive");
    tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(scratch.join("there")).expect("it is one");
    (said(&output), scratch.join("there").join("bug"))
}

fn about(folder: &Path) -> Value {
    serde_json::from_str(&read(&folder.join("about.json"))).expect("it is JSON")
}

/// Runs the script from another folder.
fn replay(folder: &Path) -> Output {
    let mut shell = Command::new("sh");
    shell.arg(folder.join("replay.sh")).env("TFAOT", env!("CARGO_BIN_EXE_tfaot")).current_dir("/");
    shell.output().expect("a shell")
}

fn errors(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter(|line| line.starts_with("error")).map(str::to_string).collect()
}

#[test]
fn a_packed_graph_takes_the_same_ways_without_the_weights() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let graph = path("testdata/graphs/conv_net/graph.pb").display().to_string();
    let (told, out) = packed(folder.path(), &graph, &["compile", "{}", "-o", "made", "--name", "net"], 0);
    let about = about(&out);
    assert_eq!((&about["status"], &about["packed_status"]), (&Value::from(0), &Value::from(0)));
    assert!(about["weights"].as_array().is_some_and(|w| !w.is_empty()), "{about}");
    assert_eq!(about["command"], "tfaot compile graph.pb -o made --name net");
    assert!(!out.join("made").exists(), "what the command makes is not packed");
    let packed = out.join("graph.pb").display().to_string();
    // The weights are gone from the file, and there when it is read.
    let size = |file: &str| std::fs::metadata(file).expect("it is there").len();
    assert!(size(&packed) < size(&graph) / 2);
    let shapes = |graph: &str| succeed(&["inspect", graph, "--shapes", "-q"]).replace(graph, "");
    assert_eq!(shapes(&packed), shapes(&graph));
    let made = |graph: &str, at: &str| {
        let at = folder.path().join(at).display().to_string();
        succeed(&["compile", graph, "-q", "-o", &at, "--name", "net", "--emit", "kernels,hlo"]);
        read(&Path::new(&at).join("net.kernels"))
    };
    assert_eq!(made(&packed, "a"), made(&graph, "b"), "the kernels are the same");
    let dumps: Vec<String> = std::fs::read_dir(out.join("dumps"))
        .expect("there are dumps")
        .map(|e| e.expect("it is listed").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(dumps.iter().any(|n| n.ends_with(".cpu_after_optimizations.txt")), "{dumps:?}");
    assert!(!dumps.iter().any(|n| n.ends_with(".o")), "{dumps:?}");
    assert!(told.contains("dumps: "), "{told}");
}

#[test]
fn what_a_command_said_is_packed() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let graph = path("testdata/graphs/mlp/graph.pb").display().to_string();
    let words = ["run", "{}", "--fetch", "no_such_node"];
    let (told, out) = packed(folder.path(), &graph, &words, 0);
    assert!(read(&out.join("stderr.txt")).contains("no_such_node"));
    assert!(read(&out.join("README")).contains("replay.sh"));
    assert!(!out.join("dumps").exists() && !told.contains("dumps"), "{told}");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let again = |name: &str| tfaot(&[&["bug", &graph, "-o", name, "--"], &words[..]].concat());
    assert_eq!(again(&at("bug.tar.gz")).status.code(), Some(1), "the archive is there");
    assert_eq!(again(&at("bug")).status.code(), Some(1), "and its ending may be left away");
    assert!(again(&at("2/bug")).status.success());
    let bytes = |name: &str| std::fs::read(at(name)).expect("written");
    assert!(bytes("bug.tar.gz") == bytes("2/bug.tar.gz"), "equal reports are equal archives");
}

#[test]
fn files_that_flags_name_are_packed_and_a_mismatch_stays_what_it_is() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let graph = "testdata/graphs/mlp/graph.pb";
    // The results for other inputs; the file has the name of the inputs' file.
    std::fs::create_dir(folder.path().join("wrong")).expect("made");
    let wrong = folder.path().join("wrong/feeds.npz").display().to_string();
    succeed(&["run", graph, "-q", "--outputs", &wrong]);
    let expect = format!("--expect={wrong}");
    let words = ["verify", "{}", "--inputs", "testdata/graphs/mlp/feeds.npz", &expect];
    let original = tfaot(&["verify", graph, "--inputs", words[3], &expect]);
    assert!(errors(&original).iter().any(|e| e.contains("TFA0401")), "{}", said(&original));
    let (told, out) = packed(folder.path(), graph, &words, 0);
    let about = about(&out);
    assert_eq!(about["command"], "tfaot verify graph.pb --inputs feeds.npz --expect=2/feeds.npz");
    // With seeds the status would be the same, and the difference another.
    assert_eq!((&about["reproduces"], &about["whole_graph"]), (&Value::from(true), &Value::from(true)), "{told}");
    assert!(told.contains("its weights are in it"), "{told}");
    std::fs::remove_file(&wrong).expect("removed");
    let replayed = replay(&out);
    assert_eq!((replayed.status.code(), errors(&replayed)), (Some(1), errors(&original)));
}

#[test]
fn a_signature_survives() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let model = "testdata/signatures";
    for (name, status) in [("score", 0), ("none_such", 1)] {
        let scratch = folder.path().join(name);
        std::fs::create_dir(&scratch).expect("made");
        let original = tfaot(&["check", model, "--dim", "2", "--signature", name]);
        assert_eq!(original.status.code(), Some(status), "{}", said(&original));
        let (told, out) = packed(&scratch, model, &["check", "{}", "--dim", "2", "--signature", name], 0);
        assert_eq!(about(&out)["command"], format!("tfaot check signatures --dim 2 --signature {name}"));
        let replayed = replay(&out);
        assert_eq!((replayed.status.code(), errors(&replayed)), (Some(status), errors(&original)), "{told}");
    }
}

#[test]
fn what_does_not_end_in_the_same_way_is_not_announced_as_the_same() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    // The first run makes the folder that must not exist in the second.
    let made = folder.path().join("made").display().to_string();
    let words = ["rewrite", "{}", "-o", &made, "--mode", "annotate"];
    let (told, out) = packed(folder.path(), "testdata/saved_model", &words, 1);
    assert!(told.contains("does not end as the original does: status 1 and 0"), "{told}");
    assert_eq!(about(&out)["reproduces"], false);
}
