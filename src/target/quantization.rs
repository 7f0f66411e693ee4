//! Products of quantised values: whether they may be computed on integers, and which of a model's are.
use super::{CodeRequest, MathType};
use serde::Serialize;

/// Arithmetic of products whose operands a graph rounds to levels of 8 bits by fake quantisation, or by quantisation and dequantisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantizedMath {
    /// Integers where the error is within that of sums of floats.
    #[default]
    Exact,
    /// Integers, and quantisations as one multiply-add of their sums, without roundings in between; NaNs are not kept.
    Fast,
    /// Floats, as the graph says.
    Off,
}

impl QuantizedMath {
    /// All kinds of arithmetic.
    pub const ALL: [QuantizedMath; 3] = [QuantizedMath::Exact, QuantizedMath::Fast, QuantizedMath::Off];

    /// The name in `--quantized`.
    pub const fn name(self) -> &'static str {
        match self {
            QuantizedMath::Exact => "exact",
            QuantizedMath::Fast => "fast",
            QuantizedMath::Off => "off",
        }
    }
}

/// The products of a model whose activations are quantised: matrix products and convolutions. Serialized, they are what metadata, `check` and
/// `bench` have under `quantized`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QuantizedProducts {
    /// Names of the products that are computed on integers: their TensorFlow nodes, or their instructions.
    pub integers: Vec<String>,
    /// Products that are computed on floats.
    #[serde(rename = "floats")]
    pub kept: Vec<KeptProduct>,
    /// Number of quantisations that are one multiply-add of the arrays that they are computed from.
    pub requantizations: usize,
}

/// A product of quantised activations that is computed on floats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptProduct {
    /// The TensorFlow node, or the instruction.
    pub name: String,
    /// The cause, a clause whose subject is the product.
    pub reason: &'static str,
}

impl QuantizedProducts {
    /// Adds the products of another function of the model.
    pub fn add(&mut self, other: QuantizedProducts) {
        self.integers.extend(other.integers);
        self.kept.extend(other.kept);
        self.requantizations += other.requantizations;
    }

    /// Whether the model has no product of quantised activations.
    pub fn is_empty(&self) -> bool {
        self.integers.is_empty() && self.kept.is_empty()
    }

    /// Number of products that are computed on floats for each cause, in the order in which the causes come.
    pub fn causes(&self) -> Vec<(&'static str, usize)> {
        let mut causes: Vec<(&'static str, usize)> = Vec::new();
        for kept in &self.kept {
            match causes.iter_mut().find(|(reason, _)| *reason == kept.reason) {
                Some((_, count)) => *count += 1,
                None => causes.push((kept.reason, 1)),
            }
        }
        causes
    }
}

impl std::fmt::Display for QuantizedProducts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.integers.len() + self.kept.len();
        write!(f, "{} of {all} products of quantised activations are computed on integers", self.integers.len())?;
        self.causes().into_iter().try_for_each(|(reason, count)| write!(f, "; {count} on floats, as {reason}"))?;
        match self.requantizations {
            0 => Ok(()),
            count => write!(f, "; {count} quantisations are multiply-adds, and keep no NaNs"),
        }
    }
}

impl CodeRequest {
    /// The reason for which this code has no products of quantised values on integers, if there is one that concerns all of them.
    pub fn obstacle_to_integers(&self) -> Option<&'static str> {
        if self.precision.quantized == QuantizedMath::Off {
            return Some("`--quantized off` was asked for");
        }
        match self.precision.math {
            MathType::Portable | MathType::PortableUnfused => {
                Some("`--math portable` multiplies floats on every machine")
            }
            MathType::F32 | MathType::Bf16 => {
                let dot = self.target.byte_dot.or(self.target.short_dot);
                dot.is_none().then_some("the processor has no instruction for products of bytes")
            }
        }
    }
}
