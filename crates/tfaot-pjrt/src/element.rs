//! Element types by the interface's numbers.
use crate::failure::{Code, Failure};
use std::ffi::c_int;
use tfaot::DType;

/// Types in the order of `PJRT_Buffer_Type`, whose first number is 1; tokens, which are no arrays, have none.
const TYPES: [Option<DType>; 29] = [
    Some(DType::Pred),
    Some(DType::S8),
    Some(DType::S16),
    Some(DType::S32),
    Some(DType::S64),
    Some(DType::U8),
    Some(DType::U16),
    Some(DType::U32),
    Some(DType::U64),
    Some(DType::F16),
    Some(DType::F32),
    Some(DType::F64),
    Some(DType::BF16),
    Some(DType::C64),
    Some(DType::C128),
    Some(DType::F8E5M2),
    Some(DType::F8E4M3FN),
    Some(DType::F8E4M3B11FNUZ),
    Some(DType::F8E5M2FNUZ),
    Some(DType::F8E4M3FNUZ),
    Some(DType::S4),
    Some(DType::U4),
    None,
    Some(DType::S2),
    Some(DType::U2),
    Some(DType::F8E4M3),
    Some(DType::F8E3M4),
    Some(DType::F8E8M0FNU),
    Some(DType::F4E2M1FN),
];

/// The type with a number of the interface.
///
/// # Errors
/// `Code::Unimplemented` for tokens and numbers without a type.
pub fn of_number(number: c_int) -> Result<DType, Failure> {
    let found = usize::try_from(number - 1).ok().and_then(|i| TYPES.get(i).copied().flatten());
    found.ok_or_else(|| Failure::new(Code::Unimplemented, format!("there are no arrays of element type {number}")))
}

/// The interface's number of a type.
///
/// # Errors
/// `Code::Unimplemented` for types that the interface has no number for.
pub fn number(dtype: DType) -> Result<c_int, Failure> {
    let found = TYPES.iter().position(|t| *t == Some(dtype)).and_then(|i| c_int::try_from(i + 1).ok());
    found.ok_or_else(|| Failure::new(Code::Unimplemented, format!("callers can't take arrays of {dtype}")))
}

/// Bytes of a dense array.
///
/// # Errors
/// `Code::InvalidArgument` for sizes below zero, `Code::ResourceExhausted` for those that no memory has.
pub fn bytes(dtype: DType, dims: &[i64]) -> Result<usize, Failure> {
    let mut bytes = dtype.bytes();
    for &dim in dims {
        let dim = usize::try_from(dim)
            .map_err(|_| Failure::new(Code::InvalidArgument, format!("an axis has {dim} elements")))?;
        bytes = bytes.checked_mul(dim).filter(|&b| b <= isize::MAX as usize).ok_or_else(|| {
            Failure::new(Code::ResourceExhausted, format!("an array of {dims:?} {dtype} is too large"))
        })?;
    }
    Ok(bytes)
}
