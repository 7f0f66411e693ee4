//! `NAME_init`: the values that variables start with.
use super::module::weights_symbol;
use super::weights_file;
use crate::kernel::{Bundle, HEADER_BYTES};
use std::fmt::Write;

/// Emits `NAME_init`, which initializes the state with zeros and constants. If constants are in a weights file, the function checks that
/// first; it returns 0 or `TFAOT_E_WEIGHTS`.
pub fn emit_init(out: &mut String, bundle: &Bundle) {
    let (name, bytes) = (&bundle.face.name, bundle.face.state_bytes());
    let (parameter, check, weights, from) = match bundle.face.file.is_some() {
        true => (
            ", ptr %weights",
            format!("{}go:\n", weights_file::emit_header_test(name)),
            "%weights".to_string(),
            HEADER_BYTES,
        ),
        false => ("", String::new(), format!("@{}", weights_symbol(name)), 0),
    };
    let _ = writeln!(
        out,
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
         define i32 @{name}_init(ptr %state{parameter}) #1 {{\nentry:\n{check}  call void @llvm.memset.p0.i64(ptr %state, i8 0, i64 {bytes}, i1 false)"
    );
    for (i, start) in bundle.starts.iter().enumerate() {
        let _ = writeln!(
            out,
            "  %to{i} = getelementptr i8, ptr %state, i64 {}\n  %from{i} = getelementptr i8, ptr {weights}, i64 {}\n  call void @llvm.memcpy.p0.p0.i64(ptr %to{i}, ptr %from{i}, i64 {}, i1 false)",
            start.to,
            start.from + from,
            start.bytes
        );
    }
    let _ = writeln!(out, "  ret i32 0\n}}");
}
