#![doc = include_str!("../README.md")]
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A model that a build script compiles.
#[derive(Clone, Debug)]
pub struct Model {
    graph: PathBuf,
    name: String,
    compiler: PathBuf,
    cpu: Option<String>,
    flags: Vec<OsString>,
}

impl Model {
    /// Of what `tfaot compile` reads; a relative path begins at the package. It is called as the file is, unless [`Model::name`] says
    /// otherwise.
    pub fn new(graph: impl Into<PathBuf>) -> Model {
        let graph = graph.into();
        let stem = graph.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Model { graph, name, compiler: PathBuf::from("tfaot"), cpu: None, flags: Vec::new() }
    }

    /// The prefix of files and symbols: a C identifier.
    pub fn name(mut self, name: &str) -> Model {
        self.name = name.to_string();
        self
    }

    /// The program to compile with, in the place of `tfaot` on `PATH`.
    pub fn compiler(mut self, path: impl Into<PathBuf>) -> Model {
        self.compiler = path.into();
        self
    }

    /// The processors that code is for, with commas between; `native` is the machine that builds.
    pub fn cpu(mut self, names: &str) -> Model {
        self.cpu = Some(names.to_string());
        self
    }

    /// An input with its type: `image=f32[1,224,224,3]`.
    pub fn feed(self, feed: &str) -> Model {
        self.flag("--feed").flag(feed)
    }

    /// An output.
    pub fn fetch(self, name: &str) -> Model {
        self.flag("--fetch").flag(name)
    }

    /// The size of an unknown dimension: `batch=1`, or a number for all.
    pub fn dim(self, dim: &str) -> Model {
        self.flag("--dim").flag(dim)
    }

    /// The signature of a SavedModel.
    pub fn signature(self, name: &str) -> Model {
        self.flag("--signature").flag(name)
    }

    /// A further flag of `tfaot compile`.
    pub fn flag(mut self, flag: impl Into<OsString>) -> Model {
        self.flags.push(flag.into());
        self
    }

    /// Compiles, and tells Cargo what to link and what to watch. The bindings are `$OUT_DIR/NAME/NAME.rs`, which is returned too.
    ///
    /// # Panics
    ///
    /// Outside of a build script, and where the model can't be compiled: the compiler's message is in Cargo's output.
    pub fn compile(self) -> PathBuf {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: this is for build scripts"));
        let out = Path::new(&variable("OUT_DIR")).join(&self.name);
        let target = variable("TARGET");
        let is_own = target == variable("HOST");
        let mut command = Command::new(&self.compiler);
        command.arg("compile").arg(&self.graph).arg("-o").arg(&out).args(["--name", &self.name, "--quiet"]);
        command.args(["--emit", "archive,rust,depfile"]).args(&self.flags);
        if !is_own {
            command.args(["--target", &triple(&target)]);
        }
        if let Some(cpus) = self.cpu.as_deref().or_else(|| portable(&target)) {
            command.args(["--cpu", cpus]);
        }
        println!("cargo:rerun-if-changed={}", self.graph.display());
        let output = command.output().unwrap_or_else(|e| panic!("{} does not start: {e}", self.compiler.display()));
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            panic!("tfaot could not compile {}", self.graph.display());
        }
        for line in String::from_utf8_lossy(&output.stderr).lines().filter(|l| l.starts_with("warning")) {
            println!("cargo:warning={line}");
        }
        let depfile = std::fs::read_to_string(out.join(format!("{}.d", self.name))).unwrap_or_default();
        for file in prerequisites(&depfile) {
            println!("cargo:rerun-if-changed={file}");
        }
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-lib=static={}", self.name);
        out.join(format!("{}.rs", self.name))
    }
}

/// LLVM's name of one of rustc's targets, as tfaot takes it.
fn triple(target: &str) -> String {
    let (arch, rest) = target.split_once('-').unwrap_or((target, ""));
    let arch = if arch.starts_with("riscv64") { "riscv64" } else { arch };
    match rest {
        "apple-darwin" => format!("{}-apple-macosx11.0.0", arch.replace("aarch64", "arm64")),
        "apple-ios" => format!("{}-apple-ios15.0", arch.replace("aarch64", "arm64")),
        "pc-windows-gnu" => format!("{arch}-w64-windows-gnu"),
        _ => format!("{arch}-{rest}"),
    }
}

/// The processors that objects are for by default; none where tfaot's own default is meant.
fn portable(target: &str) -> Option<&'static str> {
    if target.starts_with("x86_64-") {
        Some("x86-64-v3,x86-64-v4")
    } else if target.starts_with("aarch64-") && target.contains("linux") {
        Some("cortex-a76")
    } else if target.starts_with("riscv64") {
        Some("rv64gc,rv64gcv")
    } else {
        None
    }
}

/// The files behind the colon of a depfile, whose spaces are escaped as make wants it.
fn prerequisites(depfile: &str) -> Vec<String> {
    let text = depfile.replace("\\\n", " ");
    let Some((_, files)) = text.split_once(": ") else { return Vec::new() };
    let (mut found, mut word) = (Vec::new(), String::new());
    let mut letters = files.chars().peekable();
    while let Some(c) = letters.next() {
        match (c, letters.peek()) {
            ('\\', Some(' ' | '#' | '\\')) => word.extend(letters.next()),
            ('$', Some('$')) => word.extend(letters.next()),
            (c, _) if c.is_whitespace() => found.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            (c, _) => word.push(c),
        }
    }
    found.extend(Some(word).filter(|w| !w.is_empty()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_llvms_names() {
        let names = ["aarch64-apple-darwin", "riscv64gc-unknown-linux-gnu", "x86_64-pc-windows-gnu", "wasm32-unknown-unknown"];
        let want = ["arm64-apple-macosx11.0.0", "riscv64-unknown-linux-gnu", "x86_64-w64-windows-gnu", "wasm32-unknown-unknown"];
        assert_eq!(names.map(triple), want);
    }

    #[test]
    fn depfiles_are_read() {
        assert_eq!(prerequisites("o/net.o: a\\ b/model.pb \\\n c$$d\n"), ["a b/model.pb", "c$d"]);
        assert!(prerequisites("").is_empty());
    }
}
