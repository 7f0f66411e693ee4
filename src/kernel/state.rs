//! The state: variables that keep their values between calls, in one block of memory of the caller's.
use super::Program;
use crate::tensor::TensorInfo;

/// Alignment of variables in the state, a cache line; smaller variables are aligned to the next power of two of their size. The block
/// itself needs only the alignment of its types.
pub const ALIGN: u64 = 64;

/// A variable and its place in the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableSlot {
    /// TensorFlow's name, the name of its field in C, its type and fixed sizes.
    pub info: TensorInfo,
    /// The offset of the variable's first byte in the state.
    pub offset: u64,
    /// Whether calls change the variable.
    pub changed: bool,
}

impl VariableSlot {
    /// The offset of the first byte after the variable.
    pub fn end_offset(&self) -> u64 {
        self.offset + self.info.bytes()
    }
}

/// Lays out the state: variables one after the other, aligned; each comes with whether calls change it. The layout does not depend on
/// what changes.
pub fn lay_out_variables(all: impl IntoIterator<Item = (TensorInfo, bool)>) -> Vec<VariableSlot> {
    let mut end: u64 = 0;
    let place = |(info, changed): (TensorInfo, bool)| {
        let offset = end.next_multiple_of(alignment(&info));
        end = offset.saturating_add(info.bytes());
        VariableSlot { info, offset, changed }
    };
    all.into_iter().map(place).collect()
}

fn alignment(info: &TensorInfo) -> u64 {
    info.bytes().clamp(1, ALIGN).next_power_of_two().max(info.dtype.bytes() as u64)
}

/// Size of the state in bytes, a multiple of the alignment, so that several states in a row are aligned alike; 0 without variables.
pub fn size_in_bytes(all: &[VariableSlot]) -> u64 {
    all.last().map_or(0, |last| last.end_offset().max(1).next_multiple_of(ALIGN))
}

impl Program {
    /// Bytes of the state that a call reads and writes.
    pub fn state_bytes(&self) -> u64 {
        size_in_bytes(&self.state)
    }
    /// Whether a call changes any variable.
    pub fn changes_state(&self) -> bool {
        self.state.iter().any(|v| v.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    #[test]
    fn variables_lie_aligned_and_apart() {
        let of = |dtype, dims: &[u64]| {
            let info =
                TensorInfo { name: String::new(), called: None, field: String::new(), dtype, dims: dims.to_vec() };
            (info, true)
        };
        let all =
            [(DType::Pred, &[][..]), (DType::F32, &[3]), (DType::F64, &[]), (DType::F32, &[0]), (DType::S8, &[65])];
        let state = lay_out_variables(all.map(|(dtype, dims)| of(dtype, dims)));
        assert_eq!(state.iter().map(|v| v.offset).collect::<Vec<_>>(), [0, 16, 32, 40, 64]);
        assert_eq!(size_in_bytes(&state), 192);
        assert_eq!(size_in_bytes(&[]), 0);
    }
}
