//! What several test files share: the binary, a scratch folder, npz files, tolerances.
#![allow(dead_code, reason = "each test target is a crate of its own and uses its part")]
pub mod formula;
pub mod objects;
pub mod random;
pub mod read_kernels;
pub mod state;
pub mod tolerance;
pub mod toolchains;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use npyz::{Endianness, TypeChar};
use tfaot::tensor::{DType, Tensor};

/// A file of this repository.
pub fn path(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(inside)
}

/// Runs `tfaot` at the top of the repository.
pub fn tfaot(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfaot"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env("NO_COLOR", "1");
    command.output().expect("the binary was built for this test")
}

/// Both streams of a run.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs `tfaot`, which must succeed; gives its standard output.
pub fn succeed(args: &[&str]) -> String {
    let output = tfaot(args);
    assert!(output.status.success(), "tfaot {}\n{}", args.join(" "), said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command, which must succeed.
pub fn ran(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
}

/// The first of `programs` that can be run, or `None` with a word about it on standard error. With `TFAOT_TOOLS=required` in the
/// environment, as `.ci/run` sets it, a missing program is a failure.
pub fn program(programs: &[&'static str]) -> Option<&'static str> {
    program_that(programs, "--version")
}

/// The first of the programs that is installed, as it takes this argument.
pub fn program_that(programs: &[&'static str], argument: &str) -> Option<&'static str> {
    let runs = |p: &&&str| Command::new(**p).arg(argument).output().is_ok_and(|o| o.status.success());
    let found = programs.iter().find(runs).copied();
    if found.is_none() {
        let required = std::env::var("TFAOT_TOOLS").is_ok_and(|v| v == "required");
        assert!(!required, "none of {programs:?} is installed; tools/setup installs them");
        eprintln!("SKIPPED: none of {programs:?} is installed; tools/setup installs them");
    }
    found
}

/// The numeric arrays of an npz file by key.
pub fn npz(path: &Path) -> BTreeMap<String, Tensor> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut archive = npyz::npz::NpzArchive::new(file).expect("an npz file");
    let names: Vec<String> = archive.array_names().map(String::from).collect();
    let mut arrays = BTreeMap::new();
    for name in names {
        let npy = archive.by_name(&name).expect("a sound archive").expect("it was listed");
        let npyz::DType::Plain(descr) = npy.dtype() else { panic!("{name} holds records") };
        assert_ne!(descr.endianness(), Endianness::Big, "{name} is big-endian");
        assert_eq!(npy.order(), npyz::Order::C, "{name} is column-major");
        let dtype = match (descr.type_char(), descr.size_field()) {
            (TypeChar::Bool, _) => DType::Pred,
            (TypeChar::Int, 1) => DType::S8,
            (TypeChar::Int, 2) => DType::S16,
            (TypeChar::Int, 4) => DType::S32,
            (TypeChar::Int, 8) => DType::S64,
            (TypeChar::Uint, 1) => DType::U8,
            (TypeChar::Uint, 2) => DType::U16,
            (TypeChar::Uint, 4) => DType::U32,
            (TypeChar::Uint, 8) => DType::U64,
            (TypeChar::Float, 2) => DType::F16,
            (TypeChar::Float, 4) => DType::F32,
            (TypeChar::Float, 8) => DType::F64,
            (TypeChar::Complex, 8) => DType::C64,
            (TypeChar::Complex, 16) => DType::C128,
            other => panic!("{name} is of a type that no test uses: {other:?}"),
        };
        let dims = npy.shape().to_vec();
        let mut bytes = Vec::new();
        npy.into_inner().read_to_end(&mut bytes).expect("a sound member");
        arrays.insert(name, Tensor::new(dtype, dims, bytes));
    }
    arrays
}
