//! Linking of shared libraries by lld, or by the C compiler if lld is missing.
//!
//! The first choice is the lld shipped with tfaot (`tools/release`), at `../lib/tfaot/lld` relative to the executable's folder.
use super::temporary_files;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::target::{Arch, ObjectFormat, Target};
use crate::util::pieces::{Content, Pieces};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders in which lld is searched, in addition to `PATH`.
const FOLDERS: &[&str] = &["/usr/lib/llvm-22/bin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/opt/lld/bin"];

/// The file name extension of shared libraries.
pub fn file_extension(target: &Target) -> &'static str {
    if target.format() == ObjectFormat::MachO { "dylib" } else { "so" }
}

/// Links `objects` into a shared library with the given name (`libNAME.so`), and returns its bytes.
///
/// # Errors
/// `Code::NoLinker` if none is found or it fails.
pub fn link_shared_library(objects: &[&Pieces], name: &str, target: &Target) -> Result<Vec<u8>> {
    let dir = temporary_files::TemporaryFolder::new()
        .map_err(|e| failed(&format!("no temporary folder could be made: {e}")))?;
    let output = dir.path().join(name);
    let mut inputs = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        let input = dir.path().join(format!("model{i}.o"));
        std::fs::File::create(&input)
            .and_then(|mut file| object.write_to(&mut file))
            .map_err(|e| failed(&format!("the object could not be written: {e}")))?;
        inputs.push(input);
    }
    link(&inputs, &output, name, target)?;
    std::fs::read(&output).map_err(|e| failed(&format!("the linker left no library: {e}")))
}

/// Links the object files `inputs` into `output`.
///
/// # Errors
/// `Code::NoLinker` if none is found, or with the linker's message.
pub fn link(inputs: &[PathBuf], output: &Path, soname: &str, target: &Target) -> Result<()> {
    let mut command = linker(target)?;
    let said = command.args(inputs).arg("-o").arg(output);
    if target.format() == ObjectFormat::Elf {
        said.arg(if said.get_program().to_string_lossy().ends_with("cc") {
            format!("-Wl,-soname,{soname}")
        } else {
            format!("-soname={soname}")
        });
    }
    let said = command.output().map_err(|e| failed(&format!("the linker could not be started: {e}")))?;
    if said.status.success() {
        return Ok(());
    }
    let mut problem = Diagnostic::new(Code::NoLinker, format!("the linker ended with {}", said.status));
    for line in String::from_utf8_lossy(&said.stderr).lines().take(10) {
        problem = problem.note(line);
    }
    Err(problem.into())
}

/// The linker's command, with flags that make its output a function of its input.
fn linker(target: &Target) -> Result<Command> {
    let has_libraries =
        matches!(target.format(), ObjectFormat::Elf | ObjectFormat::MachO) && target.arch() != Arch::Thumb;
    if !has_libraries {
        let told = format!("no shared libraries are made for `{}`", target.triple);
        return Err(Diagnostic::new(Code::NoLinker, told)
            .help("link the object, or the archive, into your own")
            .into());
    }
    if target.format() == ObjectFormat::MachO {
        let mut command = lld("darwin", &["ld64.lld-22", "ld64.lld"]).ok_or_else(|| none("ld64.lld"))?;
        let arch = target.triple.split('-').next().map_or("arm64", |a| if a == "aarch64" { "arm64" } else { a });
        let (platform, version) = if target.triple.contains("ios") { ("ios", "15.0") } else { ("macos", "11.0") };
        command.args([
            "-dylib",
            "-arch",
            arch,
            "-platform_version",
            platform,
            version,
            version,
            "-undefined",
            "dynamic_lookup",
        ]);
        return Ok(command);
    }
    if let Some(mut command) = lld("gnu", &["ld.lld-22", "ld.lld"]) {
        command.args([
            "-shared",
            "--build-id=none",
            "--hash-style=gnu",
            "-z",
            "noexecstack",
            "-z",
            "relro",
            "-z",
            "now",
        ]);
        return Ok(command);
    }
    let native = target.triple.starts_with(std::env::consts::ARCH);
    let cc = find(&["cc"]).filter(|_| native).ok_or_else(|| none("ld.lld"))?;
    let mut command = Command::new(cc);
    command.args(["-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]);
    Ok(command)
}

/// LLVM's linker: the one shipped with tfaot, run as `flavor`, or an installed one with one of these names.
fn lld(flavor: &str, names: &[&str]) -> Option<Command> {
    let Some(own) = own().filter(|p| p.is_file()) else { return find(names).map(Command::new) };
    let mut command = Command::new(own);
    command.args(["-flavor", flavor]);
    Some(command)
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from)).collect();
    names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file())
}

/// The path of the linker that is shipped with tfaot.
fn own() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(|p| p.canonicalize()).ok()?;
    Some(program.parent()?.parent()?.join("lib/tfaot/lld"))
}

fn none(wanted: &str) -> Error {
    Diagnostic::new(Code::NoLinker, format!("`{wanted}` is neither on PATH nor where LLVM is installed"))
        .help(
            "install lld or, for this machine, a C compiler: `apt install lld`, `dnf install lld`, `brew install lld`",
        )
        .into()
}

fn failed(why: &str) -> Error {
    Error::user(Code::Io, why.to_string())
}
