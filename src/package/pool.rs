//! The thread pool that C programs may use, that cluster libraries contain, and that tfaot loads: one source, `pool/tfaot_pool.h`.
use crate::target::{Arch, Target};

/// The text of `tfaot_pool.h`, the same for all models.
pub const HEADER: &str = include_str!("pool/tfaot_pool.h");

/// The pool as LLVM IR text, for every target; it calls the function that [`spin_wait_function`] defines.
///
/// Functions: `tfaot_pool_start(i32) -> ptr`, `tfaot_pool_end(ptr)` and `tfaot_pool_share(ptr, i64 n, ptr task, ptr closure)`, with
/// hidden visibility.
pub const TEXT: &str = include_str!("pool/pool.ll");

/// LLVM IR text of the function that executes the processor's spin-wait instruction.
pub fn spin_wait_function(target: &Target) -> String {
    let instruction = match target.arch() {
        Arch::X86_64 => "pause",
        Arch::Aarch64 => "isb",
        Arch::Riscv64 | Arch::Wasm32 | Arch::Thumb => "",
    };
    format!(
        "define hidden void @tfaot_relax() nounwind {{\n  call void asm sideeffect \"{instruction}\", \"\"()\n  ret void\n}}\n"
    )
}

/// Symbol of the table of `tfaot_pool_start`, `tfaot_pool_end` and `tfaot_pool_share`, in this order, that [`pool_library_ir`] exports.
pub const TABLE: &str = "tfaot_pool_functions";

/// LLVM IR texts of a library that contains only the pool and exports [`TABLE`], to be assembled separately and linked.
pub fn pool_library_ir(target: &Target) -> [String; 2] {
    let face = format!(
        "target triple = \"{}\"\n@{TABLE} = constant [3 x ptr] [ptr @tfaot_pool_start, ptr @tfaot_pool_end, ptr @tfaot_pool_share]\n\
         declare hidden ptr @tfaot_pool_start(i32)\ndeclare hidden void @tfaot_pool_end(ptr)\n\
         declare hidden void @tfaot_pool_share(ptr, i64, ptr, ptr)\n{}",
        target.triple,
        spin_wait_function(target)
    );
    [face, TEXT.to_string()]
}
