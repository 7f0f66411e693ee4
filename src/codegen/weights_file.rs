//! Constants in a file of their own: what looks at its header, and the test that each call begins with.
use crate::kernel::{HEADER_BYTES, KEY_BYTES, WeightsFile};
use std::fmt::Write;

/// Status of a call whose weights are missing or belong to another object: `TFAOT_E_WEIGHTS`.
pub const E_WEIGHTS: u32 = 4;

/// Emits two functions: `NAME_weights_check`, for callers that know the number of bytes of a weights file, and the test of its header alone.
pub fn emit(out: &mut String, name: &str, file: &WeightsFile) {
    let (header, size) = (file.header(), "%tfaot.size");
    let told = &header[..24 + KEY_BYTES];
    let words = told.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)));
    let mut test = String::new();
    let mut same = "true".to_string();
    for (i, word) in words.enumerate() {
        let _ = write!(
            test,
            "  %p{i} = getelementptr i8, ptr %weights, i64 {}\n  %w{i} = load i64, ptr %p{i}, align 1\n  %e{i} = icmp eq i64 %w{i}, {}\n  %a{i} = and i1 {same}, %e{i}\n",
            8 * i,
            word as i64
        );
        same = format!("%a{i}");
    }
    let bytes = file.file_bytes();
    let _ = write!(
        out,
        "define internal i1 @{name}_weights_known(ptr %weights) #1 {{\nentry:\n  %none = icmp eq ptr %weights, null\n  br i1 %none, label %no, label %read\nread:\n{test}  ret i1 {same}\nno:\n  ret i1 false\n}}\n\
         define i32 @{name}_weights_check(ptr %weights, {size} %bytes) #1 {{\nentry:\n  %whole = icmp eq {size} %bytes, {bytes}\n  br i1 %whole, label %read, label %no\nread:\n  %known = call i1 @{name}_weights_known(ptr %weights)\n  %code = select i1 %known, i32 0, i32 {E_WEIGHTS}\n  ret i32 %code\nno:\n  ret i32 {E_WEIGHTS}\n}}\n"
    );
    const { assert!(24 + KEY_BYTES as u64 <= HEADER_BYTES) };
}

/// The LLVM text at the beginning of a function that checks the header of the weights file and returns an error if it does not fit.
pub fn emit_header_test(name: &str) -> String {
    format!(
        "  %known = call i1 @{name}_weights_known(ptr %weights)\n  br i1 %known, label %go, label %others\nothers:\n  ret i32 {E_WEIGHTS}\n"
    )
}
