//! Modules as C source, which a compiler of this machine makes objects of.
use std::path::Path;
use std::process::Command;
use tfaot::CodeRequest;
use tfaot::codegen::{Backend, CBackend, Launches};
use tfaot::kernel::{Bundle, Program};
use tfaot::target::{HOST_TRIPLE, MathType, Precision, Target};

/// The standard, every warning, and none of them allowed.
const FLAGS: &[&str] = &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1", "-fPIC"];

/// A target of the modules.
pub struct Machine {
    pub target: Target,
    /// The compiler that makes objects of C, with flags behind its name; LLVM makes them where there is none.
    pub compiler: Option<String>,
    /// The arithmetic of the code.
    pub math: MathType,
}

impl Machine {
    /// The processor, and C's compiler.
    pub fn name(&self) -> String {
        let compiler = self.compiler.as_ref().map_or(String::new(), |compiler| format!(" in C by {compiler}"));
        let math = if self.math == MathType::F32 { String::new() } else { format!(", {} math", self.math.name()) };
        format!("{}{compiler}{math}", self.target.cpu)
    }

    /// A processor whose code LLVM makes, with the fastest arithmetic.
    pub fn of_target(target: Target) -> Machine {
        Machine { target, compiler: None, math: MathType::F32 }
    }

    /// What the code must be.
    pub fn request(&self) -> CodeRequest {
        let precision = Precision { math: self.math, ..Precision::default() };
        CodeRequest::new(self.target.clone(), precision).expect("arithmetic that every machine has")
    }

    /// This machine by the compilers of C that `TFAOT_C=gcc,clang-22` names, by default one that is there.
    pub fn of_source() -> Vec<Machine> {
        let named = std::env::var("TFAOT_C").ok();
        let found = || super::common::program(&["gcc", "clang-22", "clang"]).map(str::to_string);
        let all =
            named.map_or_else(|| found().into_iter().collect(), |all| all.split(',').map(str::to_string).collect());
        let target = Target::resolve(Some(HOST_TRIPLE), None, None).expect("this machine is known");
        let machine = |compiler: String| Machine { compiler: Some(compiler), ..Machine::of_target(target.clone()) };
        Vec::into_iter(all).map(machine).collect()
    }
}

/// The object of a program's C source; `compiler` may have flags behind its name.
pub fn object(program: &Program, target: &Target, compiler: &str) -> Result<Vec<u8>, String> {
    let content = CBackend.code(&Bundle::of_program(program, target), Launches::Direct).map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("m.c"), content.to_bytes()).map_err(|e| e.to_string())?;
    let mut words = compiler.split(' ');
    let mut build = Command::new(words.next().unwrap_or_default());
    // flags behind the compiler's name come last, so that they win
    build.args(FLAGS).arg("-march=native").args(words).arg("-c").arg(file("m.c")).arg("-o").arg(file("m.o"));
    let built = build.output().map_err(|e| format!("{build:?}: {e}"))?;
    if !built.status.success() {
        keep(&file("m.c"));
        return Err(format!(
            "{build:?}: {}",
            String::from_utf8_lossy(&built.stderr).lines().take(6).collect::<Vec<_>>().join("\n")
        ));
    }
    std::fs::read(file("m.o")).map_err(|e| e.to_string())
}

/// Leaves a source that no compiler takes where somebody looks for it.
fn keep(source: &Path) {
    let _ = std::fs::copy(source, Path::new(env!("CARGO_TARGET_TMPDIR")).join("families.c"));
}
