//! Typed views of a tensor's bytes, and tensors that own typed vectors.
use std::borrow::Cow;

use bytemuck::Pod;
use bytes::Bytes;

use super::{DType, Tensor};

/// A typed vector that is the owner of a byte buffer.
struct Owned<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Tensor {
    /// The bytes as elements of `T`, whose size must divide their number; copied only if unaligned.
    pub fn view<T: Pod>(&self) -> Cow<'_, [T]> {
        match bytemuck::try_cast_slice(&self.bytes) {
            Ok(slice) => Cow::Borrowed(slice),
            Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(&self.bytes)),
        }
    }
    /// A tensor of type `dtype` that takes ownership of `values`. Panics if their number does not match.
    pub fn from_vec<T: Pod + Send>(dtype: DType, dims: Vec<u64>, values: Vec<T>) -> Tensor {
        Tensor::new(dtype, dims, Bytes::from_owner(Owned(values)))
    }
    /// A tensor of the same elements with other dimensions; the number of elements must agree.
    pub fn with_dims(&self, dims: Vec<u64>) -> Tensor {
        Tensor::new(self.dtype, dims, self.bytes.clone())
    }
}
