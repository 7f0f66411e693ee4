//! Promises of objects, read from their machine code: nothing is allocated or locked, the system is not called, no function calls itself,
//! and the stack is no deeper than the metadata say.
mod listing;
mod stack;

use crate::common::{npz, path, program, ran, succeed};
use crate::graphs::{NAMES, OPEN};
use listing::{Instruction, Listing, symbol};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use serde_json::Value;
use stack::{Frames, Machine, depth, frames};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Functions that every C library has: all that `docs/linking.md` lists.
const FROM_OUTSIDE: &[&str] = &["memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"];
/// The bytes that metadata may say above what a frame takes: two vectors of 64 bytes, which alignment may cost, and an address. The metadata know
/// nothing of frames that end before the last call of a function.
const SLACK: i64 = 136;

/// Atomic accesses, which are what locks are made of.
fn is_atomic(one: &Instruction, machine: Machine) -> bool {
    let name = one.mnemonic.as_str();
    match machine {
        Machine::X86 => name.starts_with("lock") || name.starts_with("xchg") && one.operands.contains('('),
        Machine::Aarch64 => {
            let kinds = ["ldx", "ldax", "stx", "stlx", "cas", "swp", "ldadd", "ldset", "ldclr", "ldeor", "ldsmax"];
            kinds.iter().any(|kind| name.starts_with(kind))
        }
    }
}

fn is_system_call(one: &Instruction) -> bool {
    matches!(one.mnemonic.as_str(), "syscall" | "sysenter" | "sysexit" | "int" | "svc" | "hvc" | "smc")
}

/// The functions of the object that others see take nothing from elsewhere, and write nothing but one word.
fn check_symbols(file: &object::File, name: &str) {
    for symbol in file.symbols().filter(|s| s.is_undefined()) {
        let name = symbol.name().expect("a name");
        assert!(name.is_empty() || FROM_OUTSIDE.contains(&name), "{name} is undefined");
    }
    let is_written = |kind| matches!(kind, SectionKind::Data | SectionKind::UninitializedData);
    let written = file.sections().filter(|s| is_written(s.kind()));
    // tables of addresses are written when a program is loaded, and never again
    let memory: u64 = written.filter(|s| s.name().is_ok_and(|n| !n.contains(".rel.ro"))).map(|s| s.size()).sum();
    // an answer of the processor for each of two variants
    assert!(memory <= 8, "{name}: {memory} bytes of memory that is written");
}

/// What no function does, and what only documented ones do.
fn check_instructions(listing: &Listing, all: &BTreeMap<String, Frames>, machine: Machine) {
    for (name, code) in &listing.functions {
        for one in code {
            assert!(!is_atomic(one, machine), "{name}: {one:?}");
            // how AArch64 code asks Linux for its instructions, once
            assert!(!is_system_call(one) || name == "tfaot.system", "{name}: {one:?}");
            if let Some(relocation) = &one.relocation {
                assert!(!relocation.is_empty() && !symbol(relocation).contains("alloc"), "{name}: {one:?}");
            }
        }
        assert!(all[name].indirect.is_empty() || name.ends_with("_launch"), "{name} calls through registers");
    }
}

fn frames_of(listing: &Listing, machine: Machine) -> BTreeMap<String, Frames> {
    listing.functions.keys().map(|name| (name.clone(), frames(listing, name, machine))).collect()
}

/// The facts about an object in its metadata, and their proof.
fn check(folder: &Path, objdump: &str, machine: Machine) {
    let made = std::fs::read(folder.join("m.o")).expect("an object");
    let file = object::File::parse(&*made).expect("an object");
    let name = folder.display().to_string();
    check_symbols(&file, &name);
    let code: Vec<_> = file.sections().filter(|s| s.kind() == SectionKind::Text && s.size() > 0).collect();
    assert!(matches!(&code[..], [only] if only.name() == Ok(".text")), "all code is in one section");
    let listing = Listing::of(objdump, &folder.join("m.o"));
    let functions: Vec<&str> =
        file.symbols().filter(|s| s.kind() == SymbolKind::Text).filter_map(|s| s.name().ok()).collect();
    assert!(functions.iter().all(|f| listing.functions.contains_key(*f)), "a function is not in the listing");
    let all = frames_of(&listing, machine);
    check_instructions(&listing, &all, machine);
    let text = std::fs::read(folder.join("m.json")).expect("metadata");
    let metadata: Value = serde_json::from_slice(&text).expect("JSON");
    let of_functions = metadata["functions"].as_array().expect("functions").iter();
    for function in of_functions.chain([&metadata["self_test"]]) {
        let symbol = function["symbol"].as_str().expect("a symbol");
        let told = function["stack_bytes"].as_i64().expect("a depth");
        let (found, frames) = depth(&all, symbol, &mut Vec::new());
        assert!(told >= found, "{symbol}: {found} bytes of stack, and the metadata say {told}");
        assert!(
            told <= found + (frames + 1) * SLACK,
            "{symbol}: {found} bytes of stack are all, and the metadata say {told}"
        );
    }
}

const TARGETS: [(&str, Machine); 2] =
    [("x86_64-unknown-linux-gnu", Machine::X86), ("aarch64-unknown-linux-gnu", Machine::Aarch64)];

/// Compiles a model for both instruction sets and checks its objects.
fn check_model(objdump: &str, model: &Path, more: &[&str]) {
    for (triple, machine) in TARGETS {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (file, out) = (model.display().to_string(), folder.path().display().to_string());
        let args = ["compile", &file, "-q", "-o", &out, "--name", "m", "--emit", "obj,metadata", "--target", triple];
        succeed(&[&args[..], more].concat());
        check(folder.path(), objdump, machine);
    }
}

fn check_graphs(part: usize) {
    let Some(objdump) = program(&["llvm-objdump-22", "llvm-objdump"]) else { return };
    // a graph that a debug build takes half a minute for has nothing that others have not
    let graphs = NAMES.iter().filter(|name| **name != "open_images");
    for name in graphs.skip(part).step_by(2) {
        let file = |inside: &str| path("testdata/graphs").join(name).join(inside);
        let fetches: Vec<String> = npz(&file("expect.npz")).into_keys().collect();
        let mut more: Vec<&str> = fetches.iter().flat_map(|fetch| ["--fetch", fetch]).collect();
        more.extend(OPEN.iter().filter(|(open, _)| open == name).flat_map(|(_, feeds)| feeds.iter()));
        let feeds = file("feeds.npz").display().to_string();
        more.extend(["--self-test", &feeds]);
        check_model(objdump, &file("graph.pb"), &more);
    }
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn graphs_keep_their_promises() {
    check_graphs(0);
}

#[test]
#[ignore = "slow without optimization; .ci/run runs it with"]
fn further_graphs_keep_their_promises() {
    check_graphs(1);
}

/// Several functions over one state, weights in a file, and code for one processor with wide vectors.
#[test]
fn other_models_keep_their_promises() {
    let Some(objdump) = program(&["llvm-objdump-22", "llvm-objdump"]) else { return };
    check_model(objdump, &path("examples/training/model"), &["--signature", "all", "--self-test", "1"]);
    check_model(objdump, &path("testdata/graphs/conv_net/graph.pb"), &["--weights-file", "--self-test", "1"]);
}

/// The checks see what they are there for, in code by another compiler.
#[test]
fn code_that_breaks_a_promise_is_told() {
    let Some(objdump) = program(&["llvm-objdump-22", "llvm-objdump"]) else { return };
    let Some(gcc) = program(&["gcc"]).filter(|_| cfg!(target_arch = "x86_64")) else { return };
    let broken = [
        ("int f(int n) { return n ? n * f(n - 1) + 1 : 0; }", "calls itself"),
        ("int f(int *n) { return __sync_fetch_and_add(n, 1); }", "lock"),
        ("void f(void (*g)(int)) { g(1); g(2); }", "calls through registers"),
        ("void f(void) { __asm__ volatile(\"syscall\"); }", "syscall"),
        ("void f(int n) { char a[n]; __asm__ volatile(\"\" : : \"r\"(a)); }", "changes the stack"),
    ];
    for (source, why) in broken {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let (file, object) = (folder.path().join("f.c"), folder.path().join("f.o"));
        std::fs::write(&file, source).expect("written");
        ran(Command::new(gcc)
            .args(["-O1", "-fno-stack-protector", "-fcf-protection=none", "-c"])
            .arg(&file)
            .arg("-o")
            .arg(&object));
        let refused = std::panic::catch_unwind(|| {
            let listing = Listing::of(objdump, &object);
            let all = frames_of(&listing, Machine::X86);
            check_instructions(&listing, &all, Machine::X86);
            depth(&all, "f", &mut Vec::new())
        });
        let told = refused.expect_err(source);
        let told = told.downcast_ref::<String>().expect("a message");
        assert!(told.contains(why), "{source}: {told}");
    }
}
