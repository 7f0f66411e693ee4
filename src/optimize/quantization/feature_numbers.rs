//! Constant numbers by which an array is scaled or shifted: one for all elements, or one for each feature.
use crate::hlo::{InstId, Op};
use crate::optimize::constant::splat_of;
use crate::optimize::rewrite::Editor;
use crate::tensor::{DType, Tensor};

/// Numbers in f64 that are broadcast along the other axes of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureNumbers {
    /// The sizes of the numbers, and the axes of the array that these become; none for one number.
    dims: Vec<u64>,
    axes: Vec<usize>,
    values: Vec<f64>,
}

impl FeatureNumbers {
    /// One number.
    pub fn splat(value: f64) -> FeatureNumbers {
        FeatureNumbers { dims: Vec::new(), axes: Vec::new(), values: vec![value] }
    }

    /// The numbers of a constant, or of a broadcast one, of f32 or integers; `None` for what is not constant or has NaNs or infinities.
    pub fn of_constant(editor: &Editor, id: InstId) -> Option<FeatureNumbers> {
        if let Some(value) = splat_of(editor, id) {
            return Some(Self::splat(value.get_f64(0)?)).filter(FeatureNumbers::is_finite);
        }
        let (id, axes) = match editor.op(id) {
            Op::Broadcast(axes) => (editor.resolve(editor.operand(id, 0)), axes.clone()),
            _ => (id, (0..editor.dims(id).len()).collect()),
        };
        let constant = editor.constant(id)?;
        if constant.dtype != DType::F32 && !constant.dtype.is_integer() {
            return None;
        }
        let values = (0..constant.len()).map(|i| constant.get_f64(i)).collect::<Option<Vec<f64>>>()?;
        Some(FeatureNumbers { dims: constant.dims.clone(), axes, values }).filter(FeatureNumbers::is_finite)
    }

    /// The number of all elements, if there is one.
    pub fn as_splat(&self) -> Option<f64> {
        if self.axes.is_empty() { self.values.first().copied() } else { None }
    }

    /// Whether no number is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|v| v.is_finite())
    }

    /// The largest magnitude of a number.
    pub fn largest_magnitude(&self) -> f64 {
        self.values.iter().fold(0.0, |largest, v| v.abs().max(largest))
    }

    /// A function of each number; `None` if a result is infinite or NaN.
    pub fn map(&self, function: impl Fn(f64) -> f64) -> Option<FeatureNumbers> {
        let values = self.values.iter().map(|&v| function(v)).collect();
        Some(FeatureNumbers { values, ..self.clone() }).filter(FeatureNumbers::is_finite)
    }

    /// A function of the numbers of two arrays; `None` if these lie along different axes, or a result is infinite or NaN.
    pub fn combine(&self, other: &FeatureNumbers, function: impl Fn(f64, f64) -> f64) -> Option<FeatureNumbers> {
        match (self.as_splat(), other.as_splat()) {
            (_, Some(b)) => self.map(|a| function(a, b)),
            (Some(a), None) => other.map(|b| function(a, b)),
            (None, None) if self.axes == other.axes && self.dims == other.dims => {
                let values = self.values.iter().zip(&other.values).map(|(&a, &b)| function(a, b)).collect();
                Some(FeatureNumbers { values, ..self.clone() }).filter(FeatureNumbers::is_finite)
            }
            _ => None,
        }
    }

    /// Emits the numbers as an array of f32 with the sizes `dims`.
    pub fn write(&self, editor: &mut Editor, dims: &[u64]) -> InstId {
        let values: Vec<f32> = self.values.iter().map(|&v| v as f32).collect();
        let constant = editor.add_constant(Tensor::from_vec(DType::F32, self.dims.clone(), values));
        editor.add_broadcast(constant, dims, &self.axes)
    }
}
