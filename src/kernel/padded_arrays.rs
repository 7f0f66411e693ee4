//! Where a call whose sizes vary has arrays of a program's fixed sizes: behind the program's own workspace.
use super::Program;
use crate::tensor::Sizes;

/// Bytes to which each array is aligned.
const ALIGN: u64 = 64;

/// The first byte in the workspace of each array that is not passed on as it is: those with an axis that varies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaddedOffsets {
    /// Offset of the copy of each argument.
    pub args: Vec<Option<u64>>,
    /// Offset of the copy of each result.
    pub results: Vec<Option<u64>>,
    /// Bytes of workspace that a call needs, the program's own among them.
    pub bytes: u64,
}

impl PaddedOffsets {
    /// For a program that has, behind the arguments and results that callers see, one number for each size.
    pub fn of(sizes: &Sizes, program: &Program) -> PaddedOffsets {
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
