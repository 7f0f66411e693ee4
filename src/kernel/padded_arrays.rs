//! Where a call whose sizes vary has arrays of a program's fixed sizes: behind the program's own workspace.
use super::Program;
use crate::tensor::Sizes;

/// Bytes to which each array is aligned.
const ALIGN: u64 = 64;

/// Offsets in the workspace of padded copies of arrays: those with an axis that varies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaddedOffsets {
    /// Offset of the copy of each argument.
    pub args: Vec<Option<u64>>,
    /// Offset of the copy of each result.
    pub results: Vec<Option<u64>>,
    /// Bytes of workspace that a call needs, including the program's own.
    pub bytes: u64,
}

impl PaddedOffsets {
    /// Lays out the padded copies for a program that has, after the arguments and results that callers see, one number for each size.
    pub fn of_program(sizes: &Sizes, program: &Program) -> PaddedOffsets {
        let mut bytes = program.workspace_bytes;
        let mut place = |axes: &[Option<usize>], array: u64| {
            (axes.iter().any(Option::is_some) && array > 0).then(|| {
                let at = bytes.next_multiple_of(ALIGN);
                bytes = at.saturating_add(array);
                at
            })
        };
        let args = sizes.args.iter().zip(&program.args).map(|(axes, info)| place(axes, info.bytes())).collect();
        let results =
            sizes.results.iter().zip(&program.results).map(|(axes, info)| place(axes, info.bytes())).collect();
        PaddedOffsets { args, results, bytes }
    }
}
