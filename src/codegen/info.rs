//! `NAME_info` and the facts behind it, as generated headers declare them.
use super::sized;
use crate::kernel::{Callee, Entry, Face, Program};
use crate::target::Arch;
use crate::tensor::{Sizes, TensorInfo};
use std::fmt::Write;

/// The alignment of workspaces and of what the state is rounded to.
const ALIGN: u64 = 64;
/// `tfaot_tensor_info`.
const TENSOR: &str = "{ ptr, ptr, i32, i32, ptr, %tfaot.size }";
/// `tfaot_variable_info`.
const VARIABLE: &str = "{ { ptr, ptr, i32, i32, ptr, %tfaot.size }, %tfaot.size }";
/// `tfaot_size_info`.
const SIZE: &str = "{ ptr, i64, i64, i32, i32 }";
/// `tfaot_entry_info`.
const ENTRY: &str = "{ ptr, i32, i32, i32, i32, ptr, ptr, ptr, ptr, %tfaot.size, %tfaot.size, i64, ptr }";
/// `tfaot_module_info`.
const MODULE: &str = "{ i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, %tfaot.size, %tfaot.size, ptr }";

/// `tfaot_weights_info`.
const WEIGHTS: &str = "{ i32, i32, ptr, %tfaot.size, %tfaot.size, ptr, ptr, ptr }";
/// `tfaot_ranks_info`.
const RANKS: &str = "{ i32, i32, ptr, ptr }";
/// `tfaot_call`.
const CALL: &str = "{ i32, i32, i32, ptr, ptr, ptr, %tfaot.size }";

/// Adds the facts; `target` is what they say of the machine, and `%tfaot.size` is C's `size_t`.
pub fn emit(out: &mut String, face: &Face, target: &str, arch: Arch) {
    let name = &face.name;
    let _ = writeln!(out, "%tfaot.size = type i{}", 8 * arch.pointer_bytes());
    string(out, &format!("{name}_str_name"), name);
    string(out, &format!("{name}_str_source"), &face.source);
    string(out, &format!("{name}_str_target"), target);
    match &face.entries[..] {
        [only] if !face.is_module() => function(out, &only.program, name),
        _ => module(out, face),
    }
    face.calls.iter().enumerate().for_each(|(i, callee)| call(out, &call_symbol(name, i), callee));
}

/// The symbol of what a function of the user is told, by its number in the face.
pub fn call_symbol(name: &str, number: usize) -> String {
    format!("{name}.call{number}")
}

/// What a function of the user is told.
fn call(out: &mut String, symbol: &str, callee: &Callee) {
    tensors(out, symbol, "arg", &callee.args);
    tensors(out, symbol, "result", &callee.results);
    bytes(out, &format!("{symbol}_opaque"), &callee.opaque);
    let Callee { api_version, args, results, opaque, .. } = callee;
    let _ = writeln!(
        out,
        "@{symbol} = private unnamed_addr constant {CALL} {{ i32 {api_version}, i32 {}, i32 {}, ptr @{symbol}_args, ptr @{symbol}_results, ptr @{symbol}_opaque, %tfaot.size {} }}",
        args.len(),
        results.len(),
        opaque.len(),
    );
}

/// Those of one function without variables.
fn function(out: &mut String, program: &Program, name: &str) {
    tensors(out, name, "arg", &program.args);
    tensors(out, name, "result", &program.results);
    let _ = writeln!(
        out,
        "@{name}_model_info = private unnamed_addr constant {{ i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, %tfaot.size, %tfaot.size, i64, ptr }} {{ i32 1, i32 {}, i32 {}, i32 0, ptr @{name}_str_name, ptr @{name}_str_source, ptr @{name}_str_target, ptr @{name}_args, ptr @{name}_results, ptr null, %tfaot.size {}, %tfaot.size {ALIGN}, i64 {}, ptr @{name}_run }}",
        program.args.len(),
        program.results.len(),
        program.workspace_bytes,
        program.flops
    );
    let _ = writeln!(out, "define ptr @{name}_info() nounwind {{\n  ret ptr @{name}_model_info\n}}");
}

/// Those of several functions, or of variables.
fn module(out: &mut String, face: &Face) {
    let name = &face.name;
    let mut entries = Vec::new();
    for (i, entry) in face.entries.iter().enumerate() {
        let (own, program) = (format!("{name}.e{i}"), &entry.program);
        string(out, &format!("{own}_name"), &entry.name);
        tensors(out, &own, "arg", &program.args);
        tensors(out, &own, "result", &program.results);
        generic(out, &own, entry, face);
        let is_plain = face.file.is_none() && face.ranks.is_none();
        let run = if is_plain { format!("@{own}_run") } else { "null".to_string() };
        let (sizes, axes) = sizes(out, &own, &entry.sizes);
        entries.push(format!(
            "{ENTRY} {{ ptr @{own}_name, i32 {}, i32 {}, i32 {}, i32 {}, ptr @{own}_args, ptr @{own}_results, ptr {sizes}, ptr {axes}, %tfaot.size {}, %tfaot.size {ALIGN}, i64 {}, ptr {run} }}",
            program.args.len(),
            program.results.len(),
            entry.sizes.all.len(),
            u32::from(program.changes_state()),
            program.workspace_bytes,
            program.flops,
        ));
    }
    let infos: Vec<TensorInfo> = face.state.iter().map(|v| v.info.clone()).collect();
    let rows = tensor_rows(out, &format!("{name}.s"), "variable", &infos);
    let rows = rows.iter().zip(&face.state).map(|(row, v)| format!("{VARIABLE} {{ {row}, %tfaot.size {} }}", v.offset));
    table(out, &format!("{name}.variables"), VARIABLE, &rows.collect::<Vec<_>>());
    table(out, &format!("{name}.entries"), ENTRY, &entries);
    let init = if face.state.is_empty() { "null".to_string() } else { format!("@{name}_init") };
    let own_init = if face.file.is_some() { "null" } else { &init };
    let info = match (face.ranks, &face.file) {
        (Some(_), _) => "ranks",
        (None, Some(_)) => "weights",
        (None, None) => "module",
    };
    let _ = writeln!(
        out,
        "@{name}_module_info = private unnamed_addr constant {MODULE} {{ i32 2, i32 {}, i32 {}, i32 0, ptr @{name}_str_name, ptr @{name}_str_source, ptr @{name}_str_target, ptr @{name}.entries, ptr @{name}.variables, %tfaot.size {}, %tfaot.size {ALIGN}, ptr {own_init} }}\n\
         define ptr @{name}_info() nounwind {{\n  ret ptr @{name}_{info}_info\n}}",
        face.entries.len(),
        face.state.len(),
        face.state_bytes(),
    );
    if face.file.is_some() || face.ranks.is_some() {
        let runs: Vec<String> = (0..face.entries.len()).map(|i| format!("ptr @{name}.e{i}_run")).collect();
        table(out, &format!("{name}.runs"), "ptr", &runs);
    }
    if let Some(count) = face.ranks {
        let _ = writeln!(
            out,
            "@{name}_ranks_info = private unnamed_addr constant {RANKS} {{ i32 4, i32 {count}, ptr @{name}_module_info, ptr @{name}.runs }}"
        );
    }
    if let Some(file) = &face.file {
        let _ = writeln!(
            out,
            "@{name}_weights_info = private unnamed_addr constant {WEIGHTS} {{ i32 3, i32 0, ptr @{name}_module_info, %tfaot.size {}, %tfaot.size {ALIGN}, ptr @{name}_weights_check, ptr @{name}.runs, ptr {init} }}",
            file.bytes()
        );
    }
}

/// The table of the sizes and that of the axes that have them; both are null where all are fixed.
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
    table(out, &format!("{own}_sizes"), SIZE, &rows);
    let number = |axis: &Option<usize>| axis.map_or("i32 -1".to_string(), |s| format!("i32 {s}"));
    let axes: Vec<String> = sizes.args.iter().chain(&sizes.results).flatten().map(number).collect();
    table(out, &format!("{own}_axes"), "i32", &axes);
    (format!("@{own}_sizes"), format!("@{own}_axes"))
}

/// `run` of `tfaot_entry_info`, or one of the `runs` of `tfaot_weights_info` and `tfaot_ranks_info`, which have what those add.
fn generic(out: &mut String, own: &str, entry: &Entry, face: &Face) {
    let parameters = sized::parameters(entry, face);
    let (function, tail) = (&entry.function, sized::tail(face));
    let weights = if face.file.is_some() { "ptr %weights, " } else { "" };
    let _ = writeln!(
        out,
        "define internal i32 @{own}_run(ptr %args, ptr %results, ptr %sizes, ptr %state, {weights}ptr %workspace, ptr %exec{tail}) #1 {{\n  %code = tail call i32 @{function}({parameters})\n  ret i32 %code\n}}"
    );
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
    bytes(out, symbol, text.as_bytes());
}

/// Some bytes with a zero behind.
fn bytes(out: &mut String, symbol: &str, all: &[u8]) {
    let _ = writeln!(out, "@{symbol} = private unnamed_addr constant [{} x i8] c\"{}\"", all.len() + 1, quoted(all));
}

fn tensors(out: &mut String, name: &str, kind: &str, all: &[TensorInfo]) {
    let rows = tensor_rows(out, name, kind, all);
    table(out, &format!("{name}_{kind}s"), TENSOR, &rows);
}

/// What the rows of a table of tensors point to, and the rows.
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

/// A constant of some rows.
pub fn table(out: &mut String, symbol: &str, row: &str, rows: &[String]) {
    let _ = writeln!(out, "@{symbol} = private unnamed_addr constant [{} x {row}] [{}]", rows.len(), rows.join(", "));
}
