//! `tfaot targets`: lists the supported target machines.
use super::args::TargetsArgs;
use super::{ExitStatus, out};
use crate::codegen;
use crate::diag::Result;
use crate::target::{Arch, HOST_TRIPLE, IsaLevel, Target, cpus};
use serde_json::json;

/// Triples that are tested; others with the same architecture and object format work too.
const TRIPLES: &[&str] = &[
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64-unknown-linux-gnu",
    "x86_64-w64-windows-gnu",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "x86_64-apple-macosx11.0.0",
    "arm64-apple-macosx11.0.0",
    "arm64-apple-ios15.0",
    "wasm32-unknown-unknown",
    "thumbv7em-none-eabihf",
];

/// Instruction set levels of x86-64 processors, oldest first.
const LEVELS: [(IsaLevel, &str); 3] =
    [(IsaLevel::Sse2, "SSE2"), (IsaLevel::Avx2, "AVX2 and FMA"), (IsaLevel::Avx512, "AVX-512 F, BW, CD, DQ, VL")];

/// Prints the triples and processors.
pub fn run(args: &TargetsArgs) -> Result<ExitStatus> {
    let host = Target::resolve(None, None, None)?;
    let of_level = |level| move |cpu: &cpus::Cpu| cpu.x86_level() == level;
    let x86: Vec<Vec<&str>> = LEVELS
        .iter()
        .map(|&(level, _)| cpus::cpus("x86_64").filter(of_level(level)).map(|c| c.name).collect())
        .collect();
    let of = |arch: Arch| cpus::cpus(arch.name()).map(|cpu| cpu.name).collect::<Vec<_>>();
    let (made, missing): (Vec<&str>, Vec<&str>) = TRIPLES.iter().partition(|triple| codegen::supports_triple(triple));
    let (aarch64, riscv64, thumb) = (of(Arch::Aarch64), of(Arch::Riscv64), of(Arch::Thumb));
    if args.json {
        out::json(&json!({
            "host": HOST_TRIPLE, "host_cpu": host.cpu, "targets": made, "not_in_this_build": missing,
            "x86_64_cpus": x86.concat(), "aarch64_cpus": aarch64,
            "riscv64_cpus": riscv64, "thumbv7em_cpus": thumb,
        }))?;
        return Ok(ExitStatus::Yes);
    }
    out::line(format_args!("this machine: {HOST_TRIPLE} ({})", host.cpu))?;
    out::line(format_args!("targets: {}", made.join(", ")))?;
    if !missing.is_empty() {
        out::line(format_args!("not in this build, but in one of `cargo install`: {}", missing.join(", ")))?;
    }
    for ((_, instructions), names) in LEVELS.iter().zip(&x86) {
        out::line(format_args!("processors of x86_64, code for {instructions}: {}", names.join(", ")))?;
    }
    out::line(format_args!("processors of aarch64, code for what each has: {}", aarch64.join(", ")))?;
    out::line(format_args!("processors of riscv64, code for rv64gc or rv64gcv: {}", riscv64.join(", ")))?;
    out::line(format_args!("processors of thumbv7em: {}", thumb.join(", ")))?;
    Ok(ExitStatus::Yes)
}
