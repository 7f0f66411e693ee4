//! Holds the processors of `target/cpus.tsv` to the LLVM that is linked, and writes them anew under `TFAOT_BLESS`.
//!
//! LLVM's interface in C tells no processor's features, but its inliner does: a function goes into its caller only where the
//! caller has all of its features. So each processor has a caller, which calls one function a feature that is made for the same
//! processor and that feature.
use super::llvm;
use crate::target::{Target, cpus, features, hwcaps};
use std::collections::HashSet;
use std::fmt::Write;
use std::process::{Command, Stdio};

/// The architectures in the table of processors, with the features that it lists.
fn architectures() -> [(&'static str, Vec<&'static str>); 3] {
    let riscv = vec!["d", "v"];
    [
        ("x86_64", features::feature_names().collect()),
        ("aarch64", hwcaps::feature_names().collect()),
        ("riscv64", riscv),
    ]
}

/// The table's lines for these processors.
fn lines(arch: &str, names: &[String], features: &[&str]) -> String {
    let triple = format!("{arch}-unknown-linux-gnu");
    let mut text = format!("target triple = \"{triple}\"\n");
    for (c, name) in names.iter().enumerate() {
        let calls: String = (0..features.len()).map(|f| format!("  call void @has_{c}_{f}()\n")).collect();
        let _ = write!(
            text,
            "define void @cpu_{c}() \"target-cpu\"=\"{name}\" \"target-features\"=\"\" {{\n{calls}  ret void\n}}\n"
        );
        for (f, feature) in features.iter().enumerate() {
            let with = format!("\"target-cpu\"=\"{name}\" \"target-features\"=\"+{feature}\"");
            let _ = writeln!(text, "define internal void @has_{c}_{f}() {with} {{\n  ret void\n}}");
        }
    }
    let target = Target::resolve(Some(&triple), None, None).expect("a target");
    let inlined = llvm::run_passes(&text, &target, "inline").expect("LLVM takes it");
    let called: HashSet<&str> = inlined.lines().filter_map(|line| line.trim().strip_prefix("call void @")).collect();
    let mut out = String::new();
    for (c, name) in names.iter().enumerate() {
        let has = |f: &usize| !called.contains(&*format!("has_{c}_{f}()"));
        let has: Vec<&str> = (0..features.len()).filter(has).map(|f| features[f]).collect();
        if arch == "riscv64" && !has.contains(&"d") {
            continue;
        }
        let _ = writeln!(out, "{arch}\t{name}\t{}", has.join(" "));
    }
    out
}

fn llc(arch: &str) -> Command {
    let mut command = Command::new("llc-22");
    command.arg(format!("-mtriple={arch}-unknown-linux-gnu")).stdin(Stdio::null());
    command
}

/// All processor names that `llc` lists for an architecture; `None` if `llc` is not installed.
fn listed(arch: &str) -> Option<Vec<String>> {
    let listed = llc(arch).args(["-mcpu=help", "/dev/null"]).output().ok()?;
    let said = String::from_utf8([listed.stdout, listed.stderr].concat()).ok()?;
    let names = said.lines().filter(|line| line.ends_with(" processor."));
    let mut names: Vec<String> = names.filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect();
    names.sort();
    names.dedup();
    Some(names)
}

/// Whether LLVM generates 64-bit code for a processor.
fn has_64_bits(arch: &str, name: &str) -> bool {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("empty.ll");
    std::fs::write(&file, "define void @empty() { ret void }\n").expect("written");
    let mut command = llc(arch);
    command.arg(format!("-mcpu={name}")).arg(&file).args(["-o", "/dev/null"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn known(arch: &str) -> Vec<String> {
    cpus::llvm_cpus(arch).map(|cpu| cpu.name.to_string()).collect()
}

#[test]
fn cpus_are_those_of_llvm() {
    let bless = std::env::var_os("TFAOT_BLESS").is_some();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/target/cpus.tsv");
    let mut made = String::new();
    for (arch, features) in architectures() {
        let names = match bless {
            true => listed(arch).expect("llc-22 is installed").into_iter().filter(|n| has_64_bits(arch, n)).collect(),
            false => known(arch),
        };
        made += &lines(arch, &names, &features);
    }
    if bless {
        std::fs::write(file, &made).expect("written");
    }
    let kept = std::fs::read_to_string(file).expect("it is there");
    assert!(kept == made, "the table is not LLVM's: TFAOT_BLESS=1 cargo test --lib cpus_are_those_of_llvm");
}

/// The table leaves out nothing but processors without 64 bits (and, of RISC-V's, without f64); needs LLVM's compiler, and passes where it is missing.
#[test]
fn every_processor_of_llvm_is_taken() {
    for (arch, _) in architectures() {
        let Some(listed) = listed(arch) else { return };
        let known = known(arch);
        for name in listed.iter().filter(|name| !known.contains(name)) {
            assert!(!has_64_bits(arch, name) || arch == "riscv64", "{arch} {name}");
        }
    }
}
