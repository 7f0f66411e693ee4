//! Passes over the finished kernels of a program: [`PIPELINE`] lists them in the order in which they run, and `--emit kernels` shows what they
//! leave.
pub(in crate::schedule) mod concurrent_loops;
pub(in crate::schedule) mod join;
pub(in crate::schedule) mod limits;
pub(in crate::schedule) mod live_out;
pub(in crate::schedule) mod merge;
pub(in crate::schedule) mod multiply_adds;
pub(in crate::schedule) mod prefetch_weights;

use crate::kernel::Program;
use crate::schedule::emit::Detail;
use crate::schedule::plan::demand::DynamicSizes;
use crate::target::QuantizedMath;
use limits::regions::NeededRegions;

/// Inputs of passes besides the program.
pub struct PassContext<'a> {
    /// Size of the first-level cache in bytes.
    pub first_level: u64,
    /// The needed elements of buffers, if sizes vary.
    pub regions: &'a NeededRegions,
    /// The values at call time that the needed elements depend on.
    pub amounts: &'a DynamicSizes,
    /// The arithmetic of quantised values.
    pub quantized: QuantizedMath,
}

/// A pass over all kernels of a program.
pub struct KernelPass {
    /// Whether the pass also runs on dry runs, because it decides which buffers live at the same time.
    pub in_sketch: bool,
    /// Rewrites the program.
    pub run: fn(&mut Program, &PassContext<'_>),
}

/// All passes, in order. Merging moves kernels, so it comes before kernels are joined; prefetches look at the kernels that run one after
/// another in the end; limits change loops alone.
pub const PIPELINE: &[KernelPass] = &[
    KernelPass { in_sketch: true, run: |program, context| merge::merge_kernels(program, context.first_level) },
    KernelPass {
        in_sketch: false,
        run: |program, context| {
            if context.quantized == QuantizedMath::Fast {
                multiply_adds::fuse_multiply_adds(program);
            }
        },
    },
    KernelPass { in_sketch: false, run: |program, _| concurrent_loops::group_concurrent_loops(program) },
    KernelPass { in_sketch: false, run: |program, _| join::join_kernels(program) },
    KernelPass { in_sketch: false, run: |program, _| prefetch_weights::add_prefetches(program) },
    KernelPass {
        in_sketch: false,
        run: |program, context| limits::set_loop_limits(program, context.regions, context.amounts),
    },
];

/// Runs the passes of [`PIPELINE`] that apply to a program of the given detail.
pub fn run(program: &mut Program, detail: Detail, context: &PassContext<'_>) {
    for pass in PIPELINE.iter().filter(|pass| pass.in_sketch || detail == Detail::Whole) {
        (pass.run)(program, context);
    }
}
