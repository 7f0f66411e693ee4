//! Comparison of outputs with references: tolerances, and the element with the largest difference.
use crate::target::{Precision, WeightType};
use crate::tensor::{DTypeClass, Tensor};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Maximum difference of an element from its reference: the sum of all parts.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Part relative to the reference element.
    pub rtol: f64,
    /// Part relative to the largest element of the output.
    pub atol: f64,
    /// Absolute part.
    pub floor: f64,
    /// Absolute part for results that are rounded to f16 or bf16 on the way; `None` if none are.
    pub rounding: Option<f64>,
}

impl Tolerance {
    /// Tolerance for code that computes in the graph's own types.
    pub const EXACT: Tolerance = Tolerance { rtol: 1e-4, atol: 1e-5, floor: 0.0, rounding: None };

    /// Default tolerance for code of this precision.
    pub fn for_precision(precision: Precision) -> Tolerance {
        match precision.weights {
            _ if !precision.is_reduced() => Tolerance::EXACT,
            WeightType::F32 | WeightType::Bf16 => Tolerance { rtol: 0.0, atol: 0.05, floor: 0.0, rounding: None },
            WeightType::Int8 => Tolerance { rtol: 0.0, atol: 0.1, floor: 0.0, rounding: None },
        }
    }

    /// Replaces the relative parts by the given ones.
    pub fn with_overrides(self, rtol: Option<f64>, atol: Option<f64>) -> Tolerance {
        Tolerance { rtol: rtol.unwrap_or(self.rtol), atol: atol.unwrap_or(self.atol), ..self }
    }
}

/// Comparison of one output of compiled code with a reference.
pub struct Comparison {
    /// Name of the output.
    pub output: String,
    /// SHA-256, in hexadecimal digits, of the output's type, sizes and bytes.
    pub digest: String,
    /// Name of the reference, such as "interpreter".
    pub with: &'static str,
    /// Maximum allowed difference.
    pub tolerance: Tolerance,
    /// The element with the largest difference; `None` if there are no elements or the dimensions differ.
    pub worst: Option<WorstElement>,
    /// Types of the output and of the reference if their dimensions differ.
    pub types: Option<[String; 2]>,
    /// Differences of the output from the reference.
    pub error: RelativeError,
    /// Errors of code without reduced precision, if this code has reduced precision.
    pub unrounded: Option<RelativeError>,
}

/// Errors relative to the largest element of an output.
#[derive(Clone, Copy, Debug)]
pub struct RelativeError {
    /// The largest difference.
    pub largest: f64,
    /// Root mean square of the differences.
    pub rms: f64,
}

impl Comparison {
    /// Compares `got`, computed by compiled code, with the reference `want`.
    pub fn new(name: &str, with: &'static str, got: &Tensor, want: &Tensor, tolerance: Tolerance) -> Self {
        let (output, digest) = (name.to_string(), digest(got));
        if got.dims != want.dims {
            let types = [got, want].map(|t| format!("{}{:?}", t.dtype, t.dims));
            let error = RelativeError { largest: f64::INFINITY, rms: f64::INFINITY };
            return Comparison {
                output,
                digest,
                with,
                tolerance,
                worst: None,
                types: Some(types),
                error,
                unrounded: None,
            };
        }
        let (worst, error) = (worst_element(got, want, tolerance), relative_error(got, want));
        Comparison { output, digest, with, tolerance, worst, types: None, error, unrounded: None }
    }
    /// Whether some element differs by more than the tolerance.
    pub fn departs(&self) -> bool {
        self.excess() > 1.0
    }

    /// Ratio of the largest difference to the tolerance; infinite if the dimensions differ.
    pub fn excess(&self) -> f64 {
        let of_elements = self.worst.as_ref().map_or(0.0, |w| w.excess);
        if self.types.is_some() { f64::INFINITY } else { of_elements }
    }
}

/// The element of an output with the largest difference from the reference.
pub struct WorstElement {
    /// Row-major index of the element.
    pub index: usize,
    /// The output's value.
    pub got: ElementValue,
    /// The reference's value.
    pub want: ElementValue,
    /// Ratio of the difference to the tolerance; a mismatch if above 1.
    pub excess: f64,
}

/// The value of an element as text and as JSON.
pub struct ElementValue {
    /// The value with all its digits.
    pub text: String,
    /// The value as a JSON number, two for a complex one; null for values that JSON can't represent.
    pub json: Value,
}

impl ElementValue {
    fn new(t: &Tensor, i: usize) -> ElementValue {
        let part = |i: usize| json!(t.interleaved_parts().get_f64(i));
        let json = match (t.dtype.class(), t.get_i64(i)) {
            (DTypeClass::Unsigned, Some(v)) => json!(v as u64),
            (_, Some(v)) => json!(v),
            (DTypeClass::Complex, None) => json!([part(2 * i), part(2 * i + 1)]),
            (_, None) => json!(t.get_f64(i)),
        };
        ElementValue { text: t.element_text(i), json }
    }
}

/// SHA-256, in hexadecimal digits, of a tensor: its type and sizes as text (`f32[2, 3]`), and its bytes in memory.
fn digest(tensor: &Tensor) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{}{:?}", tensor.dtype, tensor.dims));
    hash.update(&tensor.bytes);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares each output of compiled code with its reference, with a tolerance for each.
pub fn compare(
    keys: &[String],
    with: &'static str,
    got: &[Tensor],
    want: &[Tensor],
    tolerances: &[Tolerance],
) -> Vec<Comparison> {
    let pairs = keys.iter().zip(got.iter().zip(want)).zip(tolerances);
    pairs.map(|((key, (g, w)), &tolerance)| Comparison::new(key, with, g, w, tolerance)).collect()
}

/// Errors of `got` relative to `want` over elements that are finite; [`worst_element`] compares the others.
pub fn relative_error(got: &Tensor, want: &Tensor) -> RelativeError {
    let (got, want) = (got.interleaved_parts(), want.interleaved_parts());
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let finite = |i: &usize| number(&got, *i).is_finite() && number(&want, *i).is_finite();
    let (mut largest, mut most, mut squares, mut count) = (0.0f64, 0.0f64, 0.0, 0.0);
    for i in (0..want.len()).filter(finite) {
        let difference = (number(&got, i) - number(&want, i)).abs();
        largest = largest.max(number(&want, i).abs());
        most = most.max(difference);
        (squares, count) = (squares + difference * difference, count + 1.0);
    }
    if most == 0.0 {
        return RelativeError { largest: 0.0, rms: 0.0 };
    }
    RelativeError { largest: most / largest, rms: (squares / count).sqrt() / largest }
}

/// Finds the element with the largest ratio of its difference to the tolerance `rtol * |want| + atol * max |want| + floor + rounding`;
/// integers must be equal.
pub fn worst_element(got: &Tensor, want: &Tensor, allowed: Tolerance) -> Option<WorstElement> {
    let (whole_got, whole_want) = (got, want);
    let (got, want) = (got.interleaved_parts(), want.interleaved_parts());
    let inexact = want.dtype.is_float();
    let number = |t: &Tensor, i: usize| t.get_f64(i).unwrap_or(f64::NAN);
    let largest = (0..want.len()).map(|i| number(&want, i).abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut found: Option<(usize, f64)> = None;
    for index in 0..want.len() {
        let (g, w) = (number(&got, index), number(&want, index));
        // Doubles can't distinguish all 64-bit integers.
        let same =
            if inexact { g == w || (g.is_nan() && w.is_nan()) } else { got.get_i64(index) == want.get_i64(index) };
        let bound = if inexact {
            allowed.rtol * w.abs() + allowed.atol * largest + allowed.floor + allowed.rounding.unwrap_or(0.0)
        } else {
            0.0
        };
        let excess = match (same, (g - w).abs() / bound) {
            (true, _) => 0.0,
            (false, ratio) if ratio.is_nan() => f64::INFINITY,
            (false, ratio) => ratio,
        };
        if found.is_none_or(|(_, most)| excess > most) {
            found = Some((index, excess));
        }
    }
    found.map(|(part, excess)| {
        let index = part * whole_want.len() / want.len();
        WorstElement {
            index,
            got: ElementValue::new(whole_got, index),
            want: ElementValue::new(whole_want, index),
            excess,
        }
    })
}
