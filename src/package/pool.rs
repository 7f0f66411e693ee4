//! The pool of threads that C programs may use, libraries of clusters have, and tfaot loads: one source, `pool/tfaot_pool.h`.
use crate::target::{Arch, Target};

/// The text of `tfaot_pool.h`, the same for all models.
pub const HEADER: &str = include_str!("pool/tfaot_pool.h");

/// The pool as LLVM's text, for every target; it calls what [`relax`] defines.
///
/// Functions: `tfaot_pool_start(i32) -> ptr`, `tfaot_pool_end(ptr)` and `tfaot_pool_share(ptr, i64 n, ptr task, ptr closure)`,
/// visible inside a library alone.
pub const TEXT: &str = include_str!("pool/pool.ll");

/// The function of the processor's instruction for loops that wait, as LLVM's text.
pub fn relax(target: &Target) -> String {
    let instruction = match target.arch() {
        Arch::X86_64 => "pause",
        Arch::Aarch64 => "isb",
        Arch::Riscv64 | Arch::Wasm32 | Arch::Thumb => "",
    };
    format!(
        "define hidden void @tfaot_relax() nounwind {{\n  call void asm sideeffect \"{instruction}\", \"\"()\n  ret void\n}}\n"
    )
}

/// The table of `tfaot_pool_start`, `tfaot_pool_end` and `tfaot_pool_share`, in this order, that [`library`] shows.
pub const TABLE: &str = "tfaot_pool_functions";

/// The texts of a library that is the pool alone and shows its functions as [`TABLE`]: to be assembled one by one and linked.
pub fn library(target: &Target) -> [String; 2] {
    let face = format!(
        "target triple = \"{}\"\n@{TABLE} = constant [3 x ptr] [ptr @tfaot_pool_start, ptr @tfaot_pool_end, ptr @tfaot_pool_share]\n\
         declare hidden ptr @tfaot_pool_start(i32)\ndeclare hidden void @tfaot_pool_end(ptr)\n\
         declare hidden void @tfaot_pool_share(ptr, i64, ptr, ptr)\n{}",
        target.triple,
        relax(target)
    );
    [face, TEXT.to_string()]
}
