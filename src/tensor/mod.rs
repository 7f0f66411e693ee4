//! Element types, and dense row-major arrays whose bytes may be slices of a mapped file.
mod dtype;
mod sizes;
mod text;
mod view;

pub use dtype::{DTYPES, DType, DTypeClass};
pub use sizes::{Bounds, Size, Sizes};

use bytes::Bytes;

/// A dense array: row-major, little-endian, at least a byte per element (`pred` is 0 or 1).
///
/// ```
/// use tfaot::{DType, Tensor};
///
/// let matrix = Tensor::of(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]);
/// assert_eq!((matrix.dtype, matrix.dims.as_slice(), matrix.bytes.len()), (DType::F32, &[2, 3][..], 24));
/// assert_eq!(matrix.to_vec::<f32>()[5], 6.0);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first.
    pub dims: Vec<u64>,
    /// `num_elements * dtype.bytes()` bytes; clones share them.
    pub bytes: Bytes,
}

/// A Rust type that stores elements of one [`DType`].
pub trait Element: bytemuck::Pod + PartialEq + std::fmt::Debug {
    /// The element type that the Rust type stores.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),*) => { $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })* };
}
elements!(i8 => S8, i16 => S16, i32 => S32, i64 => S64, u8 => U8, u16 => U16, u32 => U32, u64 => U64, f32 => F32, f64 => F64, half::f16 => F16, half::bf16 => BF16);

/// The product of `dims`, or `None` on overflow.
pub fn element_count(dims: &[u64]) -> Option<u64> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
}

/// The number of elements of an array whose dimensions were checked before; `u64::MAX` on overflow.
pub fn saturating_element_count(dims: &[u64]) -> u64 {
    element_count(dims).unwrap_or(u64::MAX)
}

impl Tensor {
    /// A tensor of these bytes. Panics if their number does not match: callers must check untrusted data first.
    pub fn new(dtype: DType, dims: Vec<u64>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let want = element_count(&dims).and_then(|n| n.checked_mul(dtype.bytes() as u64));
        assert_eq!(want, Some(bytes.len() as u64), "bytes of {dtype}{dims:?}");
        Tensor { dtype, dims, bytes }
    }
    /// A tensor of Rust values in row-major order.
    pub fn of<T: Element>(dims: &[u64], values: &[T]) -> Self {
        Tensor::new(T::DTYPE, dims.to_vec(), bytemuck::cast_slice::<T, u8>(values).to_vec())
    }
    /// A scalar tensor.
    pub fn scalar<T: Element>(value: T) -> Self {
        Tensor::of(&[], &[value])
    }
    /// A tensor of type `pred`.
    pub fn from_bools(dims: &[u64], values: &[bool]) -> Self {
        Tensor::new(DType::Pred, dims.to_vec(), values.iter().map(|&b| b as u8).collect::<Vec<_>>())
    }
    /// A scalar of `dtype` with the representable value nearest to an integer.
    pub fn scalar_from_i64(dtype: DType, value: i64) -> Self {
        match dtype {
            DType::S64 => Tensor::scalar(value),
            _ => Tensor::scalar_from_f64(dtype, value as f64),
        }
    }
    /// A scalar of `dtype` with the representable value nearest to `value`, which is the real part of complex types.
    pub fn scalar_from_f64(dtype: DType, value: f64) -> Self {
        let bytes = match dtype {
            DType::Pred => vec![(value != 0.0) as u8],
            DType::S1 | DType::S2 | DType::S4 | DType::S8 => (value as i8).to_le_bytes().to_vec(),
            DType::S16 => (value as i16).to_le_bytes().to_vec(),
            DType::S32 => (value as i32).to_le_bytes().to_vec(),
            DType::S64 => (value as i64).to_le_bytes().to_vec(),
            DType::U1 | DType::U2 | DType::U4 | DType::U8 => (value as u8).to_le_bytes().to_vec(),
            DType::U16 => (value as u16).to_le_bytes().to_vec(),
            DType::U32 => (value as u32).to_le_bytes().to_vec(),
            DType::U64 => (value as u64).to_le_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            DType::BF16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
            DType::F32 => (value as f32).to_le_bytes().to_vec(),
            DType::F64 => value.to_le_bytes().to_vec(),
            DType::C64 => [(value as f32).to_le_bytes(), [0; 4]].concat(),
            DType::C128 => [value.to_le_bytes(), [0; 8]].concat(),
            DType::F8E5M2
            | DType::F8E4M3FN
            | DType::F8E4M3B11FNUZ
            | DType::F8E5M2FNUZ
            | DType::F8E4M3FNUZ
            | DType::F8E4M3
            | DType::F8E3M4
            | DType::F8E8M0FNU
            | DType::F4E2M1FN => vec![crate::scalar::small_float::encode(dtype, value)],
        };
        Tensor::new(dtype, vec![], bytes)
    }
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes()
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// The elements as `T`, whose type must be that of the tensor. Copies, because mapped bytes may be unaligned.
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        assert_eq!(T::DTYPE, self.dtype);
        bytemuck::pod_collect_to_vec(&self.bytes)
    }
    /// Element `i` as an integer; `None` for types other than `pred` and integers.
    pub fn get_i64(&self, i: usize) -> Option<i64> {
        let n = self.dtype.bytes();
        let raw = self.bytes.get(i * n..(i + 1) * n)?;
        let mut word = [0u8; 8];
        word[..n.min(8)].copy_from_slice(&raw[..n.min(8)]);
        let value = i64::from_le_bytes(word);
        match self.dtype.class() {
            DTypeClass::Pred | DTypeClass::Unsigned => Some(value),
            DTypeClass::Signed => {
                let shift = 64 - 8 * n as u32;
                Some(value << shift >> shift)
            }
            DTypeClass::Float | DTypeClass::Complex => None,
        }
    }
    /// Element `i` as a double; of a complex element, its real part.
    pub fn get_f64(&self, i: usize) -> Option<f64> {
        let n = self.dtype.bytes();
        let raw = self.bytes.get(i * n..(i + 1) * n)?;
        match self.dtype {
            DType::F16 => Some(half::f16::from_le_bytes(raw.try_into().ok()?).to_f64()),
            DType::BF16 => Some(half::bf16::from_le_bytes(raw.try_into().ok()?).to_f64()),
            DType::F32 => Some(f32::from_le_bytes(raw.try_into().ok()?) as f64),
            DType::F64 => Some(f64::from_le_bytes(raw.try_into().ok()?)),
            DType::C64 => Some(f32::from_le_bytes(raw[..4].try_into().ok()?) as f64),
            DType::C128 => Some(f64::from_le_bytes(raw[..8].try_into().ok()?)),
            t if t.is_float() => Some(crate::scalar::small_float::decode(t, raw[0])),
            DType::U64 => self.get_i64(i).map(|v| v as u64 as f64),
            _ => self.get_i64(i).map(|v| v as f64),
        }
    }
    /// All elements as integers; `None` for types other than `pred` and integers.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        (0..self.len()).map(|i| self.get_i64(i)).collect()
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.dims)?;
        let shown: Vec<String> = (0..self.len().min(8)).map(|i| self.element_text(i)).collect();
        write!(f, " [{}]{}", shown.join(", "), if self.len() > 8 { "…" } else { "" })
    }
}

/// Name and type of an argument or a result of a function, as callers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// TensorFlow's name, such as `input:0`.
    pub name: String,
    /// The name in the model's signature, such as `x`.
    pub called: Option<String>,
    /// The name of the member in C structs, a valid and unique identifier.
    pub field: String,
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub dims: Vec<u64>,
}

impl TensorInfo {
    /// The name that users know: the signature's, or else TensorFlow's.
    pub fn display_name(&self) -> &str {
        self.called.as_deref().unwrap_or(&self.name)
    }
    /// The number of elements.
    pub fn elements(&self) -> u64 {
        saturating_element_count(&self.dims)
    }
    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.dtype.bytes() as u64)
    }
    /// Type and dimensions in XLA's notation: `f32[1,224,224,3]`.
    pub fn type_text(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(u64::to_string).collect();
        format!("{}[{}]", self.dtype, dims.join(","))
    }
}
