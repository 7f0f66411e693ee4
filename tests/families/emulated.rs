//! Compiled modules for AArch64 under an emulator: a C program with all of a batch, which reads arguments from one file and
//! writes results to another, every array between pages that may not be touched (`guarded.c`).
use std::path::{Path, PathBuf};
use std::process::Command;
use tfaot::kernel::Program;
use tfaot::tensor::Tensor;

/// What is emulated.
pub const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// Whether the compiler and the emulator are installed.
pub fn is_here() -> bool {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    runs(COMPILER) && runs(EMULATOR)
}

/// The results of each program, called twice by the emulator: its arrays ending at a page that may not be touched, then
/// beginning behind one, with the same bits.
pub fn run(folder: &Path, objects: &[PathBuf], all: &[(&Program, &[Tensor])]) -> Vec<Result<Vec<Tensor>, String>> {
    let program = folder.join("batch");
    let table = all.iter().map(|(program, _)| format!("MODEL({})\n", program.name)).collect::<String>();
    std::fs::write(folder.join("models.inc"), table).expect("a writable folder");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/families/guarded.c");
    let mut build = Command::new(COMPILER);
    build.args(["-std=c11", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-I"]).arg(folder).arg(driver);
    let built = build.args(objects).arg("-o").arg(&program).output().expect("a compiler");
    assert!(built.status.success(), "{build:?}\n{}", String::from_utf8_lossy(&built.stderr));
    all.iter().enumerate().map(|(i, (model, args))| one(folder, &program, i, model, args)).collect()
}

/// Model `i` of the program, by itself, so that what ends it ends no other.
fn one(folder: &Path, program: &Path, i: usize, model: &Program, args: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let (input, output) = (folder.join("in.bin"), folder.join("out.bin"));
    let arguments: Vec<u8> = args.iter().flat_map(|t| t.bytes.iter().copied()).collect();
    std::fs::write(&input, arguments).map_err(|e| e.to_string())?;
    let mut call = Command::new(EMULATOR);
    call.args(["-cpu", "max"]).arg(program).arg(i.to_string()).arg(&input).arg(&output);
    let called = call.output().map_err(|e| e.to_string())?;
    if !called.status.success() {
        return Err(format!("{}: {}", called.status, String::from_utf8_lossy(&called.stderr).trim()));
    }
    let bytes = std::fs::read(&output).map_err(|e| e.to_string())?;
    let mut rest = &bytes[..];
    let mut results = Vec::new();
    for r in &model.results {
        let (own, behind) = rest.split_at_checked(r.bytes() as usize).ok_or("the results are too short")?;
        results.push(Tensor::new(r.dtype, r.dims.clone(), own.to_vec()));
        rest = behind;
    }
    Ok(results)
}
