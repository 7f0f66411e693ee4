//! Properties of the system that a target triple names: architecture, object format, width of an address.
use crate::diag::{Code, Diagnostic, Result};

/// A supported processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
    /// RISC-V with 64 bits.
    Riscv64,
    /// WebAssembly with addresses of 32 bits.
    Wasm32,
    /// Arm's microcontrollers with a floating-point unit for f32 (Armv7E-M).
    Thumb,
}

/// An object file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// ELF: Linux, the BSDs, and machines without an operating system.
    Elf,
    /// COFF: Windows.
    Coff,
    /// Mach-O: macOS, iOS and related systems.
    MachO,
    /// WebAssembly.
    Wasm,
}

/// Parts of a triple that mean Windows, and so COFF.
const COFF: &[&str] = &["windows", "win32", "w64", "mingw32", "uefi"];
const MACH_O: &[&str] = &["apple", "macos", "ios", "tvos", "watchos", "darwin"];

impl Arch {
    /// The architecture of a triple.
    ///
    /// # Errors
    /// `Code::UnknownTarget`.
    pub fn from_triple(triple: &str) -> Result<Arch> {
        let arch = match triple.split('-').next().unwrap_or("") {
            "x86_64" => Arch::X86_64,
            "aarch64" | "arm64" => Arch::Aarch64,
            "riscv64" => Arch::Riscv64,
            "wasm32" => Arch::Wasm32,
            "thumbv7em" => Arch::Thumb,
            _ => {
                return Err(Diagnostic::new(Code::UnknownTarget, format!("`{triple}` is no target of tfaot"))
                    .help("x86_64, aarch64, riscv64, wasm32 and thumbv7em triples are supported, such as x86_64-unknown-linux-gnu")
                    .into());
            }
        };
        Ok(arch)
    }

    /// The architecture's name in triples and in the table of processors.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
            Arch::Riscv64 => "riscv64",
            Arch::Wasm32 => "wasm32",
            Arch::Thumb => "thumbv7em",
        }
    }

    /// The architecture's name in messages.
    pub fn display_name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86-64",
            Arch::Aarch64 => "AArch64",
            Arch::Riscv64 => "RISC-V",
            Arch::Wasm32 => "WebAssembly",
            Arch::Thumb => "Armv7E-M",
        }
    }

    /// Size of an address in bytes.
    pub fn pointer_bytes(self) -> u64 {
        match self {
            Arch::X86_64 | Arch::Aarch64 | Arch::Riscv64 => 8,
            Arch::Wasm32 | Arch::Thumb => 4,
        }
    }
}

impl ObjectFormat {
    /// The object format of a triple.
    pub fn from_triple(triple: &str) -> ObjectFormat {
        let has =
            |words: &[&str]| triple.split('-').skip(1).any(|part| words.iter().any(|word| part.starts_with(word)));
        match triple.starts_with("wasm32") {
            true => ObjectFormat::Wasm,
            false if has(COFF) => ObjectFormat::Coff,
            false if has(MACH_O) => ObjectFormat::MachO,
            false => ObjectFormat::Elf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_tell_their_format() {
        for (triple, format) in [
            ("x86_64-unknown-linux-gnu", ObjectFormat::Elf),
            ("thumbv7em-none-eabihf", ObjectFormat::Elf),
            ("x86_64-pc-windows-msvc", ObjectFormat::Coff),
            ("x86_64-w64-mingw32", ObjectFormat::Coff),
            ("arm64-apple-ios15.0", ObjectFormat::MachO),
            ("x86_64-apple-macosx11.0.0", ObjectFormat::MachO),
            ("wasm32-unknown-unknown", ObjectFormat::Wasm),
        ] {
            assert_eq!(ObjectFormat::from_triple(triple), format, "{triple}");
        }
        assert!(Arch::from_triple("mips-unknown-linux-gnu").is_err());
    }
}
