//! Every family of kernels in machine code against the interpreter, on random modules whose shapes lie around the edges:
//! nothing, one, the width of vectors and tiles and one beside it, primes, large beside small. Each module is compiled for one
//! of the instruction sets that this machine runs, or for AArch64 under an emulator, and called alone and with executors of
//! three threads (whose bits must be the same). Every array lies between pages that may not be touched: in the first call it
//! ends at such a page, aligned as its elements alone, in the second one it begins behind one. Every eighth module also becomes
//! loops for AArch64, run plainly.
//!
//! `TFAOT_RANDOM=2000` tries more of each family, `TFAOT_SEED=17` one module, `TFAOT_CPU=x86-64-v2,x86-64-v4,neoverse-v1` every
//! module on each of these processors, `TFAOT_C=gcc,clang-22` every module in C by these compilers; a module that goes wrong is made small. A touched page ends the process with the seed and the array.
//! `TFAOT_PORTABLE=1` compiles every module with portable arithmetic instead and compares the bits of all processors (`portable.rs`).
//! With `TFAOT_MODULES=DIR` the modules are written there instead, for `tools/compare_builds`.
mod attention;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod convolutions;
mod emulated;
mod filters;
mod folds;
mod halves;
mod narrowing;
mod native;
mod order;
mod places;
mod points;
mod portable;
mod products;
mod sequences;
mod solvers;
mod source;
mod squeeze;
mod states;
mod text;

macro_rules! families {
    ($($module:ident: $($name:ident)*;)*) => { $($(
        #[test]
        fn $name() {
            check::family(stringify!($name), $module::$name);
        }
    )*)* };
}

families! {
    points: pointwise short_rows transform transpose;
    folds: reduce rows window select_and_scatter scan;
    products: contraction matrix_vector narrow byte_products;
    attention: attention;
    convolutions: convolution depthwise transposed winograd byte_winograd winograd1d chain separable byte_convolutions byte_depthwise;
    filters: filter;
    order: sort top_k;
    places: gather slices scatter;
    solvers: linalg expanded;
    control: loops loops_together;
    sequences: sequences;
    squeeze: squeeze;
    states: states;
    halves: halves;
    narrowing: narrowed_points narrowed_rows narrowed_sums narrowed_products;
}
