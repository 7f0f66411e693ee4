//! `NAME_info` and the tables behind it, as `tfaot_model_info` of generated headers declares them.
use super::size_dispatch;
use crate::kernel::{Callee, EntryPoint, ModelInterface};
use crate::target::Arch;
use crate::tensor::{Sizes, TensorInfo};
use std::fmt::Write;

/// The version of the C interface: `abi_version` of `tfaot_model_info`.
pub const ABI_VERSION: u32 = 1;

/// The alignment in bytes of workspaces, the state and weights.
const ALIGN: u64 = 64;
/// LLVM type of `tfaot_tensor_info` in the C header.
const TENSOR: &str = "{ ptr, ptr, i32, i32, ptr, %tfaot.size }";
/// LLVM type of `tfaot_variable_info` in the C header.
const VARIABLE: &str = "{ { ptr, ptr, i32, i32, ptr, %tfaot.size }, %tfaot.size }";
/// LLVM type of `tfaot_size_info` in the C header.
const SIZE: &str = "{ ptr, i64, i64, i32, i32 }";
/// LLVM type of `tfaot_function_info` in the C header.
const FUNCTION: &str = "{ ptr, i32, i32, i32, i32, ptr, ptr, ptr, ptr, %tfaot.size, %tfaot.size, i64, ptr }";
/// LLVM type of `tfaot_model_info` in the C header.
const MODEL: &str =
    "{ i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, %tfaot.size, %tfaot.size, %tfaot.size, %tfaot.size, ptr, ptr }";
/// LLVM type of `tfaot_call` in the C header.
const CALL: &str = "{ i32, i32, i32, ptr, ptr, ptr, %tfaot.size }";

/// Emits `NAME_info`, which returns the model's metadata, and its tables; `target` describes the machine, and `%tfaot.size` is C's
/// `size_t`.
pub fn emit(out: &mut String, face: &ModelInterface, target: &str, arch: Arch) {
    let name = &face.name;
    let _ = writeln!(out, "%tfaot.size = type i{}", 8 * arch.pointer_bytes());
    string(out, &format!("{name}_str_name"), name);
    string(out, &format!("{name}_str_source"), &face.source);
    string(out, &format!("{name}_str_target"), target);
    let functions: Vec<String> =
        face.entries.iter().enumerate().map(|(i, entry)| function(out, face, entry, &format!("{name}.e{i}"))).collect();
    emit_table(out, &format!("{name}.functions"), FUNCTION, &functions);
    variables(out, face);
    model(out, face);
    face.calls.iter().enumerate().for_each(|(i, callee)| call(out, &call_symbol(name, i), callee));
}

/// The symbol of the constant `tfaot_call` that describes a call of a user's function, by the call's number.
pub fn call_symbol(name: &str, number: usize) -> String {
    format!("{name}.call{number}")
}

/// Emits the constant `tfaot_call` that a user's function receives.
fn call(out: &mut String, symbol: &str, callee: &Callee) {
    tensors(out, symbol, "arg", &callee.args);
    tensors(out, symbol, "result", &callee.results);
    emit_bytes(out, &format!("{symbol}_opaque"), &callee.opaque);
    let Callee { api_version, args, results, opaque, .. } = callee;
    let _ = writeln!(
        out,
        "@{symbol} = private unnamed_addr constant {CALL} {{ i32 {api_version}, i32 {}, i32 {}, ptr @{symbol}_args, ptr @{symbol}_results, ptr @{symbol}_opaque, %tfaot.size {} }}",
        args.len(),
        results.len(),
        opaque.len(),
    );
}

/// Emits the tables of one function, whose symbols begin with `own`; returns its `tfaot_function_info` row.
fn function(out: &mut String, face: &ModelInterface, entry: &EntryPoint, own: &str) -> String {
    let program = &entry.program;
    string(out, &format!("{own}_name"), &entry.name);
    tensors(out, own, "arg", &program.args);
    tensors(out, own, "result", &program.results);
    generic_run(out, own, entry, face);
    let (sizes, axes) = sizes(out, own, &entry.sizes);
    format!(
        "{FUNCTION} {{ ptr @{own}_name, i32 {}, i32 {}, i32 {}, i32 {}, ptr @{own}_args, ptr @{own}_results, ptr {sizes}, ptr {axes}, %tfaot.size {}, %tfaot.size {ALIGN}, i64 {}, ptr @{own}_run }}",
        program.args.len(),
        program.results.len(),
        entry.sizes.all.len(),
        u32::from(program.changes_state()),
        program.workspace_bytes,
        program.flops,
    )
}

/// Emits the table of variables.
fn variables(out: &mut String, face: &ModelInterface) {
    let name = &face.name;
    let infos: Vec<TensorInfo> = face.state.iter().map(|v| v.info.clone()).collect();
    let rows = tensor_rows(out, &format!("{name}.s"), "variable", &infos);
    let rows = rows.iter().zip(&face.state).map(|(row, v)| format!("{VARIABLE} {{ {row}, %tfaot.size {} }}", v.offset));
    emit_table(out, &format!("{name}.variables"), VARIABLE, &rows.collect::<Vec<_>>());
}

/// Emits the constant `tfaot_model_info`, and the function that returns it.
fn model(out: &mut String, face: &ModelInterface) {
    let name = &face.name;
    let init = if face.state.is_empty() { "null".to_string() } else { generic_init(out, face) };
    let check = if face.file.is_some() { format!("@{name}_weights_check") } else { "null".to_string() };
    let _ = writeln!(
        out,
        "@{name}_model_info = private unnamed_addr constant {MODEL} {{ i32 {ABI_VERSION}, i32 {}, i32 {}, i32 {}, ptr @{name}_str_name, ptr @{name}_str_source, ptr @{name}_str_target, ptr @{name}.functions, ptr @{name}.variables, %tfaot.size {}, %tfaot.size {ALIGN}, %tfaot.size {}, %tfaot.size {ALIGN}, ptr {init}, ptr {check} }}\n\
         define ptr @{name}_info() nounwind {{\n  ret ptr @{name}_model_info\n}}",
        face.entries.len(),
        face.state.len(),
        face.ranks.unwrap_or(0),
        face.state_bytes(),
        face.file.as_ref().map_or(0, |file| file.file_bytes()),
    );
}

/// Emits the tables of sizes that vary and of the axes that have them; returns both symbols, null if all sizes are fixed.
fn sizes(out: &mut String, own: &str, sizes: &Sizes) -> (String, String) {
    if sizes.is_empty() {
        return ("null".to_string(), "null".to_string());
    }
    let mut rows = Vec::new();
    for (i, size) in sizes.all.iter().enumerate() {
        string(out, &format!("{own}_size{i}_name"), &size.name);
        let (least, most, is_result) = (size.least, size.most, u32::from(size.is_result) + u32::from(size.is_check));
        rows.push(format!("{SIZE} {{ ptr @{own}_size{i}_name, i64 {least}, i64 {most}, i32 {is_result}, i32 0 }}"));
    }
    emit_table(out, &format!("{own}_sizes"), SIZE, &rows);
    let number = |axis: &Option<usize>| axis.map_or("i32 -1".to_string(), |s| format!("i32 {s}"));
    let axes: Vec<String> = sizes.args.iter().chain(&sizes.results).flatten().map(number).collect();
    emit_table(out, &format!("{own}_axes"), "i32", &axes);
    (format!("@{own}_sizes"), format!("@{own}_axes"))
}

/// Emits the function pointed to by `run` of `tfaot_function_info`, which has the same parameters for all functions.
fn generic_run(out: &mut String, own: &str, entry: &EntryPoint, face: &ModelInterface) {
    let (function, parameters) = (&entry.function, size_dispatch::c_parameters(entry, face));
    let _ = writeln!(
        out,
        "define internal i32 @{own}_run(ptr %args, ptr %results, ptr %sizes, ptr %state, ptr %weights, ptr %workspace, ptr %exec, ptr %ranks) #1 {{\n  %code = tail call i32 @{function}({parameters})\n  ret i32 %code\n}}"
    );
}

/// Emits the function pointed to by `init` of `tfaot_model_info`, which takes weights even if `NAME_init` does not; returns its symbol.
fn generic_init(out: &mut String, face: &ModelInterface) -> String {
    let name = &face.name;
    if face.file.is_some() {
        return format!("@{name}_init");
    }
    let _ = writeln!(
        out,
        "define internal i32 @{name}.init(ptr %state, ptr %weights) #1 {{\n  %code = tail call i32 @{name}_init(ptr %state)\n  ret i32 %code\n}}"
    );
    format!("@{name}.init")
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &b in bytes {
        if b.is_ascii_graphic() && b != b'"' && b != b'\\' || b == b' ' {
            out.push(b as char)
        } else {
            let _ = write!(out, "\\{b:02X}");
        }
    }
    out + "\\00"
}

fn string(out: &mut String, symbol: &str, text: &str) {
    emit_bytes(out, symbol, text.as_bytes());
}

/// Emits a byte-string constant with a terminating zero.
pub fn emit_bytes(out: &mut String, symbol: &str, all: &[u8]) {
    let _ = writeln!(out, "@{symbol} = private unnamed_addr constant [{} x i8] c\"{}\"", all.len() + 1, quoted(all));
}

fn tensors(out: &mut String, name: &str, kind: &str, all: &[TensorInfo]) {
    let rows = tensor_rows(out, name, kind, all);
    emit_table(out, &format!("{name}_{kind}s"), TENSOR, &rows);
}

/// Emits the strings and arrays that `tfaot_tensor_info` rows point to, and returns the rows.
fn tensor_rows(out: &mut String, name: &str, kind: &str, all: &[TensorInfo]) -> Vec<String> {
    let mut rows = Vec::new();
    for (i, t) in all.iter().enumerate() {
        string(out, &format!("{name}_{kind}{i}_name"), &t.name);
        string(out, &format!("{name}_{kind}{i}_field"), &t.field);
        let dims: Vec<String> = t.dims.iter().map(|d| format!("i64 {d}")).collect();
        let _ = writeln!(
            out,
            "@{name}_{kind}{i}_dims = private unnamed_addr constant [{} x i64] [{}]",
            dims.len(),
            dims.join(", ")
        );
        let number = t.dtype.tf_number().unwrap_or(0);
        rows.push(format!(
            "{TENSOR} {{ ptr @{name}_{kind}{i}_name, ptr @{name}_{kind}{i}_field, i32 {number}, i32 {}, ptr @{name}_{kind}{i}_dims, %tfaot.size {} }}",
            t.dims.len(),
            t.bytes()
        ));
    }
    rows
}

/// Emits a constant array of rows.
pub fn emit_table(out: &mut String, symbol: &str, row: &str, rows: &[String]) {
    let _ = writeln!(out, "@{symbol} = private unnamed_addr constant [{} x {row}] [{}]", rows.len(), rows.join(", "));
}
