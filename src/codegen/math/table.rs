//! Tables of sixteen words that one instruction looks up for all lanes.
use super::super::function::FunctionEmitter;
use super::super::value::{Val, value_type};
use crate::target::IsaLevel;
use crate::tensor::DType;

/// Number of table entries, which is the number of lanes of the lookup instruction.
pub const ENTRIES: u64 = 16;

/// Whether functions are computed with tables: [`look_up`] is one instruction on the target, and results may depend on the target.
pub fn uses_tables(f: &FunctionEmitter) -> bool {
    f.target.level == IsaLevel::Avx512 && !f.math_type().is_portable()
}

/// Emits the lookup of entry `n` modulo 16 of a table of words, for each lane; the number of lanes is a power of two.
pub fn look_up(f: &mut FunctionEmitter, n: &Val, table: &dyn Fn(u64) -> u32) -> Val {
    let (ty, lanes) = (n.ty(), n.lanes);
    if lanes > ENTRIES {
        let halves = [0, lanes / 2].map(|first| {
            let half = f.shuffle(n, &(first..first + lanes / 2).collect::<Vec<_>>());
            look_up(f, &half, table)
        });
        let [low, high] = halves;
        return f.concat_lanes(&low, &high);
    }
    let whole = value_type(DType::U32, ENTRIES);
    let all = match lanes {
        ENTRIES => n.clone(),
        1 => f.push_instruction(
            &format!("insertelement {whole} zeroinitializer, {ty} {}, i32 0", n.text),
            n.dtype,
            ENTRIES,
        ),
        _ => f.shuffle(n, &(0..ENTRIES).map(|i| i % lanes).collect::<Vec<_>>()),
    };
    let words: Vec<String> = (0..ENTRIES).map(|j| format!("i32 {}", table(j))).collect();
    let operands = format!("{whole} <{}>, {whole} {}", words.join(", "), all.text);
    let found =
        f.push_instruction(&format!("call {whole} @llvm.x86.avx512.permvar.si.512({operands})"), DType::U32, ENTRIES);
    if lanes == ENTRIES { found } else { f.shuffle(&found, &(0..lanes).collect::<Vec<_>>()) }
}
