//! Every family of kernels in machine code against the interpreter, on random modules whose shapes lie around the edges:
//! nothing, one, the width of vectors and tiles and one beside it, primes, large beside small. Each module is compiled for one
//! of the instruction sets that this machine runs, called alone and with executors of three threads (whose bits must be the
//! same), with arguments that are not aligned as vectors are; every eighth also becomes loops for AArch64, run plainly.
//!
//! `TFAOT_RANDOM=2000` tries more of each family, `TFAOT_SEED=17` one module; a module that goes wrong is made small.
//! With `TFAOT_MODULES=DIR` the modules are written there instead, for `tools/compare_builds`.
mod attention;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod convolutions;
mod folds;
mod halves;
mod native;
mod order;
mod places;
mod points;
mod products;
mod sequences;
mod solvers;
mod squeeze;
mod text;

macro_rules! families {
    ($($room:ident: $($name:ident)*;)*) => { $($(
        #[test]
        fn $name() {
            check::family(stringify!($name), $room::$name);
        }
    )*)* };
}

families! {
    points: pointwise short_rows transform;
    folds: reduce rows window select_and_scatter scan;
    products: contraction matrix_vector narrow;
    attention: attention;
    convolutions: convolution depthwise transposed winograd winograd1d chain separable;
    order: sort top_k;
    places: gather slices scatter;
    solvers: linalg expanded;
    control: loops loops_together;
    sequences: sequences;
    squeeze: squeeze;
    halves: halves;
}
