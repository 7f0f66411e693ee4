//! A C program that loads the library and walks through its interface, under AddressSanitizer and without it.
use std::path::PathBuf;
use std::process::Command;

/// Compiles `client.c` and runs it on the library for some programs, on four threads.
fn run(name: &str, flags: &[&str], programs: u32) {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/client.c");
    // the library is beside the test
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().expect("a folder");
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags);
    let built = compiler.arg(source).args(["-ldl", "-lpthread", "-o"]).arg(&program).status().expect("a C compiler");
    assert!(built.success(), "the client can't be compiled");
    let plugin = folder.join("libtfaot_pjrt.so");
    let ran = Command::new(&program).arg(plugin).args([&programs.to_string(), "4"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {told}", ran.status);
    let _ = std::fs::remove_file(program);
}

#[test]
fn a_client_in_c_leaks_and_corrupts_nothing() {
    run("client_with_sanitizers", &["-fsanitize=address,undefined", "-DGROWTH_MB=4096"], 20);
}

#[test]
fn memory_of_the_process_does_not_grow() {
    run("client", &[], 200);
}
