//! Every command of the documentation, run as it is written, and its C text compiled.
//!
//! A folder has `model.pb`, `in.npz` and `out.npz` (the graph `conv_net` and TensorFlow's answers), `wide.pb`, `wide_in.npz` and
//! `wide_out.npz` (`wide_layers`) and `saved_model`: the names that the pages use; a page's graph in text is `unique.pbtxt`.
use crate::common::{path, program};
use std::path::Path;
use std::process::Command;

/// Pages whose `sh` blocks are run.
const PAGES: &[&str] = &[
    "README.md",
    "docs/clustering.md",
    "docs/cmake.md",
    "docs/custom_calls.md",
    "docs/linking.md",
    "docs/precision.md",
    "docs/replicas.md",
    "docs/report.md",
    "docs/rewriting.md",
    "docs/state.md",
    "docs/tuning.md",
    "docs/weights.md",
];

/// The blocks of `page` in language `language`.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let fence = format!("```{language}\n");
    text.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_string).collect()
}

fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (from, to) in [("graph.pb", "model.pb"), ("feeds.npz", "in.npz"), ("expect.npz", "out.npz")] {
        std::fs::copy(path("testdata/graphs/conv_net").join(from), folder.path().join(to)).expect("copied");
    }
    for (from, to) in [("graph.pb", "wide.pb"), ("feeds.npz", "wide_in.npz"), ("expect.npz", "wide_out.npz")] {
        std::fs::copy(path("testdata/graphs/wide_layers").join(from), folder.path().join(to)).expect("copied");
    }
    copy_folder(&path("testdata/saved_model"), &folder.path().join("saved_model"));
    copy_folder(&path("testdata/modules/variables"), &folder.path().join("module"));
    for example in ["training", "audio_gru", "decoder", "custom_call", "replicas"] {
        copy_folder(&path("examples").join(example), &folder.path().join(example));
    }
    folder
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(from, to).expect("copied");
        }
    }
}

/// Runs a line of a page in `folder`; `tfaot` is the binary of this build.
fn shell(line: &str, folder: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_tfaot")).parent().expect("it is in a folder");
    let search = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh").args(["-ec", line]).current_dir(folder).env("PATH", search).output();
    let output = output.expect("there is a shell");
    assert!(output.status.success(), "{line}\n{}", crate::common::said(&output));
}

#[test]
fn every_command_runs() {
    for page in PAGES {
        let folder = scene();
        let lines: Vec<String> = blocks(page, "sh").iter().flat_map(|b| b.lines().map(str::to_string)).collect();
        if let [graph] = &blocks(page, "pbtxt")[..] {
            let name = if page == &"docs/linking.md" { "config.pbtxt" } else { "unique.pbtxt" };
            std::fs::write(folder.path().join(name), graph).expect("written");
        }
        let ours: Vec<&String> = lines.iter().filter(|l| l.contains("tfaot ")).collect();
        assert!(!ours.is_empty(), "{page} has no commands");
        for line in ours {
            shell(line, folder.path());
        }
    }
}

/// The programs of `examples/`, built and run as the page about state says: what one trains and saves is right, and what the others
/// make block after block and letter after letter is what TensorFlow made.
#[test]
fn the_examples_with_state_run() {
    if program(&["cc"]).is_none() {
        return;
    }
    let folder = scene();
    for line in blocks("docs/state.md", "sh").iter().flat_map(|b| b.lines()) {
        shell(line, folder.path());
    }
    let samples = |name: &str| -> Vec<f32> {
        let bytes = std::fs::read(folder.path().join("audio_gru").join(name)).expect("it is there");
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let (got, want) = (samples("got.f32"), samples("out.f32"));
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert!((g - w).abs() < 1e-5, "sample {i}: {g} instead of {w}");
    }
    let text = |name: &str| std::fs::read_to_string(folder.path().join("decoder").join(name)).expect("it is there");
    assert_eq!(text("got.txt"), text("out.txt"));
}

/// The example of ranks, by threads and by MPI, where there is one.
#[test]
fn the_ranks_of_the_example_run() {
    if program(&["cc"]).is_none() || program(&["mpicc"]).is_none() {
        return;
    }
    let folder = scene();
    for line in blocks("docs/replicas.md", "sh").iter().flat_map(|b| b.lines()) {
        shell(line, folder.path());
    }
}

/// The program about weights in a file, by both files that the page makes.
#[test]
fn the_program_about_weights_runs() {
    let Some(cc) = program(&["gcc", "clang-22"]) else { return };
    let folder = scene();
    for line in blocks("docs/weights.md", "sh").iter().flat_map(|b| b.lines()) {
        shell(line, folder.path());
    }
    let [text] = &blocks("docs/weights.md", "c")[..] else { panic!("one C block is expected") };
    std::fs::write(folder.path().join("use.c"), text).expect("written");
    shell(
        &format!("{cc} -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -I out use.c out/net.o -o use"),
        folder.path(),
    );
    shell("./use out/net.weights && ./use out/next.weights", folder.path());
    shell("head -c 1000 out/net.weights > out/cut.weights; ! ./use out/cut.weights", folder.path());
}

/// The other commands are scripts of this repository.
#[test]
fn every_script_is_there() {
    for page in PAGES {
        for line in blocks(page, "sh").iter().flat_map(|b| b.lines()).filter(|l| l.starts_with("tools/")) {
            let script = line.split_whitespace().next().unwrap_or_default();
            assert!(path(script).is_file(), "{page}: {script} is not there");
        }
    }
}

#[test]
fn the_c_of_the_readme_compiles() {
    let Some(cc) = program(&["gcc", "clang-22"]) else { return };
    let folder = scene();
    shell("tfaot compile model.pb -o .", folder.path());
    let [text] = &blocks("README.md", "c")[..] else { panic!("one C block is expected") };
    std::fs::write(folder.path().join("use.c"), text).expect("written");
    let output =
        Command::new(cc).args(["-std=c11", "-Wall", "-Werror", "-c", "use.c"]).current_dir(folder.path()).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", crate::common::said(&output));
}

/// Every program of the page about linking, in its order, against the header of the graph that it is about.
#[test]
fn the_programs_about_linking_compile() {
    let (Some(cc), Some(cpp)) = (program(&["gcc", "clang-22"]), program(&["g++", "clang++-22"])) else { return };
    let folder = scene();
    shell("tfaot compile model.pb -o plain --name net --emit cpp,pool --cpp-class vision::Net", folder.path());
    shell("tfaot compile wide.pb -o checked --name net --checked", folder.path());
    for (language, compiler, standard, headers) in [
        ("c", cc, "-std=c11", &["plain", "plain", "plain", "checked"][..]),
        ("cpp", cpp, "-std=c++17", &["plain", "plain"]),
    ] {
        let texts = blocks("docs/linking.md", language);
        assert_eq!(texts.len(), headers.len(), "{language}");
        for (text, header) in texts.iter().zip(headers) {
            let file = format!("use.{language}");
            std::fs::write(folder.path().join(&file), text).expect("written");
            let mut command = Command::new(compiler);
            command.args([standard, "-fopenmp", "-Wall", "-Wextra", "-Werror", "-I", header, "-c", &file]);
            let output = command.current_dir(folder.path()).output().expect("the compiler starts");
            assert!(output.status.success(), "{file}: {}", crate::common::said(&output));
        }
    }
}

/// The commands about a real model, where `TFAOT_HANDTRACK` names its `model.json`; what they print is what the page says.
#[test]
fn the_commands_about_a_real_model_run() {
    let Some(model) = std::env::var_os("TFAOT_HANDTRACK") else { return };
    let folder = scene();
    let model = path("").join(model);
    let weights = model.parent().expect("it is in a folder");
    for entry in std::fs::read_dir(weights).expect("its folder").flatten() {
        if entry.path().extension().is_some_and(|e| e == "bin") {
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("copied");
        }
    }
    std::fs::copy(&model, folder.path().join("handtrack.json")).expect("copied");
    let lines: Vec<String> =
        blocks("docs/clustering.md", "bash").iter().flat_map(|b| b.lines().map(str::to_string)).collect();
    assert_eq!(lines.len(), 5);
    for (line, says) in lines.iter().zip([
        "765 of 1208",
        "s8, q8, not f32",
        "181 came into one, 122 regrouped; 0 nodes are new, 0 are gone",
        "35 came into",
        "91.6 %",
    ]) {
        shell(&format!("{line} | tee out.txt; grep -qF -- '{says}' out.txt"), folder.path());
    }
}
