//! `NAME_selftest`: calls of the model on stored or drawn arguments, and the comparison of what they give with stored answers.
//!
//! The function needs nothing but a workspace: the state, the arguments that are drawn and the results lie in it behind the workspace of
//! the calls ([`ModelInterface::test_workspace_bytes`]). Calls run on the caller's thread. The comparison shares no code with kernels: it is loops over
//! single elements that `checks.rs` writes.
mod checks;

use super::size_dispatch;
use crate::kernel::self_test::{ExpectedArray, ExpectedContent, RandomInput, SelfTest, TestCall, TestInput};
use crate::kernel::{EntryPoint, ModelInterface};
use checks::SelfTestEmitter;
use std::fmt::Write;

/// Status of a self-test with a wrong result: `TFAOT_E_SELFTEST`.
pub const E_SELFTEST: u32 = 8;

/// Emits `NAME_selftest` and `NAME_selftest_bytes`, if the model has a self-test.
pub fn emit(out: &mut String, face: &ModelInterface) {
    let (Some(test), Some(bytes)) = (&face.self_test, face.test_workspace_bytes()) else { return };
    let name = &face.name;
    let mut checks = SelfTestEmitter::new(name);
    let mut body = String::new();
    let mut step = 0;
    let mut require = |body: &mut String, call: &str| {
        let _ = write!(
            body,
            "  %code{step} = call i32 {call}\n  %fine{step} = icmp eq i32 %code{step}, 0\n  br i1 %fine{step}, label %next{step}, label %failed{step}\nfailed{step}:\n  ret i32 %code{step}\nnext{step}:\n"
        );
        step += 1;
    };
    let is_in_file = face.file.is_some();
    if !face.state.is_empty() {
        let weights = if is_in_file { ", ptr %weights" } else { "" };
        require(&mut body, &format!("@{name}_init(ptr %state{weights})"));
    }
    let mut functions = String::new();
    for (number, call) in test.calls.iter().enumerate() {
        let Some(entry) = face.entries.get(call.function) else { continue };
        functions += &call_function(&mut checks, face, entry, call, number);
        require(&mut body, &format!("@{name}.test{number}(ptr %state, ptr %weights, ptr %workspace)"));
    }
    if test.variables.iter().any(Option::is_some) {
        functions += &variables_function(&mut checks, face, test);
        require(&mut body, &format!("@{name}.test.state(ptr %state)"));
    }
    let (parameter, weights) = match is_in_file {
        true => ("ptr %weights, ", String::new()),
        // what is in the object needs no pointer
        false => ("", "  %weights = getelementptr i8, ptr %workspace, i64 0\n".to_string()),
    };
    *out += &checks.text;
    *out += &functions;
    let _ = write!(
        out,
        "define i32 @{name}_selftest({parameter}ptr %workspace) #1 {{\nentry:\n{weights}  %state = getelementptr i8, ptr %workspace, i64 {}\n{body}  ret i32 0\n}}\n\
         define %tfaot.size @{name}_selftest_bytes() #1 {{\nentry:\n  ret %tfaot.size {bytes}\n}}\n",
        face.self_test_state_offset(),
    );
}

/// Emits the function that makes one call and compares its results; returns its symbol.
fn call_function(
    checks: &mut SelfTestEmitter,
    face: &ModelInterface,
    entry: &EntryPoint,
    call: &TestCall,
    number: usize,
) -> String {
    let (name, program) = (&face.name, &entry.program);
    let arrays = call.arrays(&program.args, &program.results, face.test_arrays_offset());
    let own = format!("{name}.test{number}");
    let mut body = format!(
        "  %args = alloca [{} x ptr]\n  %results = alloca [{} x ptr]\n",
        call.args.len().max(1),
        call.results.len().max(1),
    );
    if !call.sizes.is_empty() {
        let _ = writeln!(body, "  %sizes = alloca [{} x i64]", call.sizes.len());
    }
    for (i, (input, at)) in call.args.iter().zip(&arrays.args).enumerate() {
        let pointer = match (input, at) {
            (TestInput::Drawn(drawn), Some(at)) => {
                let _ = writeln!(body, "  %a{i} = getelementptr i8, ptr %workspace, i64 {at}");
                body += &draw(checks, drawn, &format!("%a{i}"));
                format!("%a{i}")
            }
            (TestInput::Stored(bytes), _) => {
                let symbol = format!("{own}.arg{i}");
                checks.add_bytes(&symbol, bytes);
                format!("@{symbol}")
            }
            (TestInput::Drawn(_), None) => continue,
        };
        let _ = write!(body, "  %s{i} = getelementptr ptr, ptr %args, i64 {i}\n  store ptr {pointer}, ptr %s{i}\n");
    }
    for (i, at) in arrays.results.iter().enumerate() {
        let _ = write!(
            body,
            "  %r{i} = getelementptr i8, ptr %workspace, i64 {at}\n  %t{i} = getelementptr ptr, ptr %results, i64 {i}\n  store ptr %r{i}, ptr %t{i}\n"
        );
    }
    for (i, size) in call.sizes.iter().enumerate() {
        let size = size.filter(|_| i < entry.sizes.caller_size_count()).unwrap_or(0);
        let _ = write!(
            body,
            "  %n{i} = getelementptr i8, ptr %sizes, i64 {}\n  store i64 {size}, ptr %n{i}, align 8\n",
            8 * i
        );
    }
    let parameters = size_dispatch::c_parameters(entry, face).replace("ptr %exec", "ptr null");
    let _ = write!(
        body,
        "  %code = call i32 @{}({parameters})\n  %fine = icmp eq i32 %code, 0\n  br i1 %fine, label %compare, label %failed\nfailed:\n  ret i32 %code\ncompare:\n",
        entry.function
    );
    let mut all = Vec::new();
    for (i, size) in call.sizes.iter().enumerate().skip(entry.sizes.caller_size_count()) {
        let Some(size) = size else { continue };
        let _ = write!(body, "  %f{i} = load i64, ptr %n{i}, align 8\n  %g{i} = icmp eq i64 %f{i}, {size}\n");
        all.push(format!("%g{i}"));
    }
    for (i, want) in call.results.iter().enumerate() {
        body += &compare(checks, want, &format!("{own}.result{i}"), &format!("%r{i}"), &format!("%c{i}"));
        all.push(format!("%c{i}"));
    }
    format!(
        "define internal i32 @{own}(ptr %state, ptr %weights, ptr %workspace) #1 {{\nentry:\n{body}{}}}\n",
        conclusion(&all)
    )
}

/// Emits the function that compares the variables after the last call; returns its symbol.
fn variables_function(checks: &mut SelfTestEmitter, face: &ModelInterface, test: &SelfTest) -> String {
    let (name, mut body, mut all) = (&face.name, String::new(), Vec::new());
    for (i, (want, variable)) in test.variables.iter().zip(&face.state).enumerate() {
        let Some(want) = want else { continue };
        let _ = writeln!(body, "  %v{i} = getelementptr i8, ptr %state, i64 {}", variable.offset);
        body += &compare(checks, want, &format!("{name}.test.variable{i}"), &format!("%v{i}"), &format!("%c{i}"));
        all.push(format!("%c{i}"));
    }
    format!("define internal i32 @{name}.test.state(ptr %state) #1 {{\nentry:\n{body}{}}}\n", conclusion(&all))
}

/// The LLVM text that returns 0 if all conditions hold, else `TFAOT_E_SELFTEST`.
fn conclusion(all: &[String]) -> String {
    let (mut out, mut held) = (String::new(), "true".to_string());
    for (i, condition) in all.iter().enumerate() {
        let _ = writeln!(out, "  %all{i} = and i1 {held}, {condition}");
        held = format!("%all{i}");
    }
    match all.is_empty() {
        true => "  ret i32 0\n".to_string(),
        false => out + &format!("  %verdict = select i1 {held}, i32 0, i32 {E_SELFTEST}\n  ret i32 %verdict\n"),
    }
}

/// The LLVM text of the call that fills an argument with random numbers.
fn draw(checks: &mut SelfTestEmitter, drawn: &RandomInput, to: &str) -> String {
    let function = checks.draw_function(drawn.dtype);
    format!("  call void @{function}(ptr {to}, i64 {}, i64 {})\n", drawn.count, drawn.state as i64)
}

/// The LLVM text of the call that compares an array with the expected content; its result is the value `condition`, and `symbol` names the
/// table of sums.
fn compare(checks: &mut SelfTestEmitter, want: &ExpectedArray, symbol: &str, at: &str, condition: &str) -> String {
    let count = want.count;
    match &want.content {
        ExpectedContent::Hash(hash) => {
            let (function, bytes) = (checks.hash_comparison(), count * want.dtype.bytes() as u64);
            format!("  {condition} = call i1 @{function}(ptr {at}, i64 {bytes}, i32 {})\n", *hash as i32)
        }
        ExpectedContent::Sums(sums) => {
            let (function, (word, scale)) =
                (checks.sums_comparison(want.dtype), checks.add_expected_sums_table(symbol, want.dtype, sums));
            format!(
                "  {condition} = call i1 @{function}(ptr {at}, i64 {count}, i64 {}, ptr @{symbol}, {word} {scale}, i32 {})\n",
                sums.block, sums.classes as i32
            )
        }
    }
}
