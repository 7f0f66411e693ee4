//! The pages of `docs/recipes/`, each followed from top to bottom as a reader would.
//!
//! `page.rs` says what is a file and what is a command; here pages get a folder with what they say they start from, and programs.
//! Pages with Python run where `TFAOT_TENSORFLOW` names a Python that has TensorFlow 2.21, Keras 3, JAX and numpy, the page
//! about PyTorch where `TFAOT_PYTORCH` names one that has torch, torchax and JAX: a download of three gigabytes.
mod page;
use crate::common::{path, program, said};
use page::Step;
use std::path::Path;
use std::process::Command;

/// The Python that the variable names, which must have the modules; `None` with a word about it where it is not set.
fn python(variable: &str, modules: &str) -> Option<String> {
    let Ok(python) = std::env::var(variable) else {
        eprintln!("SKIPPED: {variable} names no Python with {modules}");
        return None;
    };
    let output = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    let output = output.unwrap_or_else(|e| panic!("{python}: {e}"));
    assert!(output.status.success(), "{python}: {}", said(&output));
    Some(python)
}

/// Runs `script` in `folder` with this build's `tfaot`, its Python package, and `python3` where one is given.
fn shell(script: &str, folder: &Path, python: Option<&str>) -> String {
    let folders = [Some(Path::new(env!("CARGO_BIN_EXE_tfaot"))), python.map(Path::new)];
    let folders = folders.iter().flatten().filter_map(|file| file.parent()).map(|folder| folder.display().to_string());
    let search: Vec<String> = folders.chain([std::env::var("PATH").unwrap_or_default()]).collect();
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(folder).env("PATH", search.join(":"));
    command.env("PYTHONPATH", path("python")).env("TFAOT", path("")).env("TF_CPP_MIN_LOG_LEVEL", "3");
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("there is a shell");
    assert!(output.status.success(), "{script}\n{}", said(&output));
    said(&output)
}

/// Follows a page in an empty folder that has `model.pb` (the graph `conv_net`) and the folders of `examples/`.
fn follow(name: &str, python: Option<&str>) -> tempfile::TempDir {
    let text = std::fs::read_to_string(path("docs/recipes").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let folder = tempfile::tempdir().expect("a scratch folder");
    shell(&format!("cp -r '{}'/* .", path("examples").display()), folder.path(), None);
    std::fs::copy(path("testdata/graphs/conv_net/graph.pb"), folder.path().join("model.pb")).expect("copied");
    let mut printed = String::new();
    let steps =
        page::steps(&text).unwrap_or_else(|line| panic!("{name}:{line}: a block that is neither file nor command"));
    assert!(steps.iter().any(|s| matches!(s, Step::Commands(c) if c.contains("tfaot"))), "{name} has no command");
    for step in steps {
        match step {
            Step::File(file, content) => std::fs::write(folder.path().join(file), content).expect("written"),
            Step::Commands(script) => printed = shell(&script, folder.path(), python),
            Step::Prints(want) => assert!(printed.contains(want.trim()), "{name}: {want}\nis not in\n{printed}"),
        }
    }
    folder
}

/// Follows a page that needs TensorFlow, where there is one.
fn follow_with_tensorflow(name: &str, modules: &str) {
    if let Some(python) = python("TFAOT_TENSORFLOW", modules) {
        follow(name, Some(&python));
    }
}

#[test]
fn keras() {
    follow_with_tensorflow("keras.md", "tensorflow, keras");
}

#[test]
fn jax() {
    follow_with_tensorflow("jax.md", "tensorflow, jax");
}

#[test]
fn pytorch() {
    if let Some(python) = python("TFAOT_PYTORCH", "torch, torchax, jax") {
        follow("pytorch.md", Some(&python));
    }
}

#[test]
fn tensorflow1() {
    follow_with_tensorflow("tensorflow1.md", "tensorflow");
}

#[test]
fn in_tensorflow() {
    follow_with_tensorflow("in_tensorflow.md", "tensorflow, keras");
}

#[test]
fn cmake() {
    if program(&["cmake"]).is_some() {
        follow_with_tensorflow("cmake.md", "tensorflow, keras");
    }
}

#[test]
fn serving() {
    let found = ["target/judge/bin/python3", "/usr/bin/python3"].map(|p| path("").join(p).display().to_string());
    let has_numpy =
        |p: &&String| Command::new(p).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    if let Some(python) = found.iter().find(has_numpy) {
        follow("serving.md", Some(python));
    } else {
        assert!(std::env::var("TFAOT_TOOLS").is_err(), "no Python has numpy; tools/setup python3-numpy installs it");
    }
}

#[test]
fn tfcompile() {
    if program(&["g++"]).is_some() {
        follow("tfcompile.md", None);
    }
}

#[test]
fn glow_tflite() {
    if program(&["cc"]).is_some() {
        follow("glow_tflite.md", None);
    }
}

/// What the filter makes is what TensorFlow made, and RealtimeSanitizer is not asleep: it ends a callback that allocates.
#[test]
fn audio() {
    if program(&["clang-22"]).is_none() {
        return;
    }
    let folder = follow("audio.md", None);
    let folder = folder.path().join("audio_gru");
    let samples = |name: &str| -> Vec<f32> {
        let bytes = std::fs::read(folder.join(name)).expect("it is there");
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let (got, want) = (samples("got.f32"), samples("out.f32"));
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-5), "{got:?}");
    let filter = std::fs::read_to_string(folder.join("filter.c")).expect("the program");
    let call = "return gru_process(";
    assert!(filter.contains(call), "the line that the fault goes before");
    let faulty = filter.replace(call, "free(malloc((size_t)in[0] + 9));\n  return gru_process(");
    std::fs::write(folder.join("faulty.c"), format!("#include <stdlib.h>\n{faulty}")).expect("written");
    shell("clang-22 -std=c11 -O0 -fsanitize=realtime faulty.c gru.o -o faulty", &folder, None);
    let output = Command::new("sh").args(["-c", "./faulty < in.f32"]).current_dir(&folder).output().expect("a shell");
    assert!(!output.status.success() && said(&output).contains("unsafe-library-call"), "{}", said(&output));
}

#[test]
fn microcontroller() {
    if program(&["clang-22"]).is_some() && program(&["qemu-system-arm"]).is_some() {
        follow("microcontroller.md", None);
    }
}

/// A page without a test above would be one that nobody follows.
#[test]
fn every_page_is_followed() {
    let tests = std::fs::read_to_string(path("tests/suite/recipes/mod.rs")).expect("this file");
    for entry in std::fs::read_dir(path("docs/recipes")).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name == "README.md" || tests.contains(&format!("(\"{name}\", ")), "{name}");
    }
}
