//! What links objects of other systems into programs and runs these here: cross compilers with emulators, Wine, Node.
use super::{path, program, said};
use std::path::Path;
use std::process::Command;

/// How a model `m` becomes a program that calls it on files, as `tests/objects/driver.c` does, and is run.
pub struct Toolchain {
    /// LLVM's triple.
    pub triple: &'static str,
    /// The processor, where it is not the triple's default.
    pub cpu: Option<&'static str>,
    /// The compiler with its flags, and the sources in this repository.
    build: Vec<&'static str>,
    sources: Vec<&'static str>,
    /// The file that the compiler writes.
    file: &'static str,
    /// What runs it, with its flags; none where it runs by itself.
    run: Vec<&'static str>,
}

impl Toolchain {
    /// This machine, or another of its architecture that it can stand for.
    pub fn here(cpu: Option<&'static str>) -> Option<Toolchain> {
        let toolchain = Toolchain::hosted(tfaot::target::HOST_TRIPLE, program(&["gcc", "clang"])?, &[])?;
        Some(Toolchain { cpu: cpu.or(Some("native")), ..toolchain })
    }

    /// AArch64's Linux under an emulator.
    pub fn aarch64() -> Option<Toolchain> {
        let emulator = program(&["qemu-aarch64"])?;
        let run = [emulator, "-L", "/usr/aarch64-linux-gnu"];
        Toolchain::hosted("aarch64-unknown-linux-gnu", program(&["aarch64-linux-gnu-gcc"])?, &run)
    }

    /// A system with a C library and files.
    fn hosted(triple: &'static str, compiler: &'static str, run: &[&'static str]) -> Option<Toolchain> {
        Some(Toolchain {
            triple,
            cpu: None,
            build: vec![compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"],
            sources: vec!["driver.c"],
            file: "driver",
            run: run.to_vec(),
        })
    }

    /// RISC-V's Linux under an emulator whose vectors have 256 bits, where code needs 128.
    pub fn riscv64(cpu: &'static str) -> Option<Toolchain> {
        let compiler = program(&["riscv64-linux-gnu-gcc"])?;
        let emulator = program(&["qemu-riscv64"])?;
        let run = [emulator, "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256", "-L", "/usr/riscv64-linux-gnu"];
        let toolchain = Toolchain::hosted("riscv64-unknown-linux-gnu", compiler, &run)?;
        Some(Toolchain { cpu: Some(cpu), ..toolchain })
    }

    /// WebAssembly without a system, called from JavaScript.
    pub fn wasm32() -> Option<Toolchain> {
        let compiler = program(&["clang-22"])?;
        let flags = [
            "--target=wasm32",
            "-std=c11",
            "-O1",
            "-nostdlib",
            "-Wl,--no-entry",
            "-Wl,--export=m_info,--export=m_run,--export=m_supported,--export=__heap_base",
        ];
        Some(Toolchain {
            triple: "wasm32-unknown-unknown",
            cpu: None,
            build: [&[compiler][..], &flags].concat(),
            sources: vec!["../../examples/microcontroller/memory.c"],
            file: "m.wasm",
            run: vec![program(&["node"])?, concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects/driver.mjs")],
        })
    }

    /// Windows on x86-64, by MinGW and Wine.
    pub fn windows() -> Option<Toolchain> {
        let compiler = program(&["x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-gcc-posix"])?;
        Some(Toolchain {
            triple: "x86_64-w64-windows-gnu",
            cpu: Some("x86-64"),
            build: vec![compiler, "-std=c99", "-Wall", "-Wextra", "-Werror"],
            sources: vec!["driver.c"],
            file: "driver.exe",
            run: vec![program(&["wine64", "wine", "/usr/lib/wine/wine64"])?],
        })
    }

    /// A Cortex-M4 without a system or a C library, on a board that is emulated.
    pub fn cortex_m4() -> Option<Toolchain> {
        let compiler = program(&["clang-22"])?;
        let script = concat!("-Wl,-T,", env!("CARGO_MANIFEST_DIR"), "/examples/microcontroller/board.ld");
        let flags = ["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4", "-std=c11", "-O1", "-ffreestanding"];
        let link = ["-nostdlib", "-fuse-ld=lld", "-Wl,-e,reset", script, "-Wall", "-Wextra", "-Werror"];
        let board = ["-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none"];
        let host = ["-semihosting-config", "enable=on,target=native", "-kernel"];
        Some(Toolchain {
            triple: "thumbv7em-none-eabihf",
            cpu: None,
            build: [&[compiler][..], &flags, &link].concat(),
            sources: vec!["bare/cortex_m.c", "../../examples/microcontroller/memory.c"],
            file: "m.elf",
            run: [&[program(&["qemu-system-arm"])?][..], &board, &host].concat(),
        })
    }

    /// Builds the program of `m.o` and `m.h` in `folder`, and runs it there: it reads `in.NAME` and writes `out.NAME`.
    pub fn call(&self, folder: &Path) {
        let mut build = Command::new(self.build[0]);
        build.args(&self.build[1..]).args(["-DHEADER=\"m.h\"", "-DINFO=m_info", "-I."]);
        build.args(self.sources.iter().map(|file| path("tests/objects").join(file)));
        self.ran(build.args(["m.o", "-o", self.file]), folder);
        let own = format!("./{}", self.file);
        let words: Vec<&str> = self.run.iter().copied().chain([own.as_str(), "."]).collect();
        // a kernel takes no arguments
        let words = if self.file == "m.elf" { &words[..words.len() - 1] } else { &words[..] };
        self.ran(Command::new(words[0]).args(&words[1..]).env("WINEDEBUG", "-all"), folder);
    }

    fn ran(&self, command: &mut Command, folder: &Path) {
        let output = command.current_dir(folder).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(output.status.success(), "{}: {command:?}: {}\n{}", self.triple, output.status, said(&output));
    }
}
