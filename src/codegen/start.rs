//! `NAME_init`: the values that variables start with.
use super::module::weights_symbol;
use crate::kernel::Bundle;
use std::fmt::Write;

/// Adds the function: zeros, and over them what is constant.
pub fn emit(out: &mut String, bundle: &Bundle) {
    let (name, bytes) = (&bundle.face.name, bundle.face.state_bytes());
    let weights = weights_symbol(name);
    let _ = writeln!(
        out,
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
         define void @{name}_init(ptr %state) #1 {{\n  call void @llvm.memset.p0.i64(ptr %state, i8 0, i64 {bytes}, i1 false)"
    );
    for (i, start) in bundle.starts.iter().enumerate() {
        let _ = writeln!(
            out,
            "  %to{i} = getelementptr i8, ptr %state, i64 {}\n  %from{i} = getelementptr i8, ptr @{weights}, i64 {}\n  call void @llvm.memcpy.p0.p0.i64(ptr %to{i}, ptr %from{i}, i64 {}, i1 false)",
            start.to, start.from, start.bytes
        );
    }
    let _ = writeln!(out, "  ret void\n}}");
}
