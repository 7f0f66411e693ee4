//! The virtual machine that portable arithmetic is scheduled for.
use super::machine::{Caches, ExecutionPorts};
use super::{DotInstruction, IsaLevel, MathType, Target};
use std::sync::LazyLock;

/// Name of the virtual machine of portable arithmetic, where plans and tuning keys have the name of a processor.
const NAME: &str = "portable";

static FUSED: LazyLock<Target> = LazyLock::new(|| machine(true));
static UNFUSED: LazyLock<Target> = LazyLock::new(|| machine(false));

/// The virtual machine for which schedules are made if results must have the same bits on every machine; `None` for other arithmetic.
///
/// It has 32 vectors of 512 bits, 32 KiB of first-level and 1 MiB of second-level cache. All that rounding depends on (the lanes that sums
/// are spread over, the parts of long sums, Winograd's method, what is computed once or again) is chosen for it, and so are arrays, kernels
/// and their chunks, on which further decisions depend. Vectors wider than the processor's are several registers, lane by lane the same.
///
/// Inside a chunk the order in which independent elements are computed is free, and loops may follow the processor: rows and columns of a
/// register tile in several blocks (`contraction/loops/processor_blocks.rs`), pixels of a depthwise tile in several runs, channels of a
/// transform or a window in narrower vectors, the last elements of a row by a mask or in pieces. Each element is then the result of the same
/// operations on the same operands: no sum has another order, and no value is stored, as which its NaN would become the one of portable
/// arithmetic, that was not stored before.
pub fn virtual_machine(math: MathType) -> Option<&'static Target> {
    match math {
        MathType::F32 | MathType::Bf16 => None,
        MathType::Portable => Some(&FUSED),
        MathType::PortableUnfused => Some(&UNFUSED),
    }
}

fn machine(fma: bool) -> Target {
    Target {
        triple: NAME.to_string(),
        level: IsaLevel::Avx512,
        cpu: NAME.to_string(),
        features: String::new(),
        vector_bits: IsaLevel::Avx512.vector_bits(),
        vector_registers: IsaLevel::Avx512.vector_registers(),
        fma,
        bf16_dot: None,
        byte_dot: None,
        // exact, and a few instructions where there is none for it
        short_dot: Some(DotInstruction::Pmaddwd),
        bf16_tiles: false,
        byte_tiles: false,
        caches: Caches::for_cpu(NAME),
        ports: ExecutionPorts::X86,
    }
}
