//! `NAME_init`: the values that variables start with.
use super::module::weights_symbol;
use super::weights_file;
use crate::kernel::{Bundle, HEADER_BYTES};
use std::fmt::Write;

/// Adds the function: zeros, and over them what is constant. With constants in a file it looks at that first, and says whether it is the
/// right one.
pub fn emit(out: &mut String, bundle: &Bundle) {
    let (name, bytes) = (&bundle.face.name, bundle.face.state_bytes());
    let in_file = bundle.face.file.is_some();
    let (begin, end, weights, from) = match in_file {
        true => (
            format!("i32 @{name}_init(ptr %state, ptr %weights) #1 {{\nentry:\n{}go:\n", weights_file::test(name)),
            "ret i32 0",
            "%weights".to_string(),
            HEADER_BYTES,
        ),
        false => {
            (format!("void @{name}_init(ptr %state) #1 {{\n"), "ret void", format!("@{}", weights_symbol(name)), 0)
        }
    };
    let _ = writeln!(
        out,
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
         define {begin}  call void @llvm.memset.p0.i64(ptr %state, i8 0, i64 {bytes}, i1 false)"
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
    let _ = writeln!(out, "  {end}\n}}");
}
