//! How many bits the caller lets compiled code keep of what a graph says in f32.
use super::QuantizedMath;

/// Storage type of the weights of contractions and of embedding tables; arithmetic keeps the graph's types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WeightType {
    /// 32-bit floats, as in the model.
    #[default]
    F32,
    /// Rounded to bfloat16: 8 bits of mantissa, half a unit of which is 2^-9 of the number.
    Bf16,
    /// 8-bit integers from -127 to 127 with one f32 scale for each output feature of a contraction, or for each row of a table.
    Int8,
}

/// The arithmetic of compiled floats: the type of the factors of contractions with constants, and whether results may depend on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MathType {
    /// Factors have the graph's type; summation order, fused multiply-adds and algorithms are the fastest on the target.
    #[default]
    F32,
    /// Factors are rounded to bfloat16, and sums are f32.
    Bf16,
    /// Factors have the graph's type, and results the same bits on every machine; f32 multiply-adds are fused, f64 ones are not.
    Portable,
    /// As [`MathType::Portable`], without any fused multiply-adds.
    PortableUnfused,
}

/// Types in which the user allows constants to be stored and products to be computed. The default rounds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Precision {
    /// The type that constants are stored in.
    pub weights: WeightType,
    /// The arithmetic of products and sums.
    pub math: MathType,
    /// The arithmetic of products of values that the graph quantises.
    pub quantized: QuantizedMath,
}

impl WeightType {
    /// The type's name in `--weights`.
    pub const fn name(self) -> &'static str {
        match self {
            WeightType::F32 => "f32",
            WeightType::Bf16 => "bf16",
            WeightType::Int8 => "int8",
        }
    }
}

impl MathType {
    /// All kinds of arithmetic.
    pub const ALL: [MathType; 4] = [MathType::F32, MathType::Bf16, MathType::Portable, MathType::PortableUnfused];

    /// The name in `--math`.
    pub const fn name(self) -> &'static str {
        match self {
            MathType::F32 => "f32",
            MathType::Bf16 => "bf16",
            MathType::Portable => "portable",
            MathType::PortableUnfused => "portable-unfused",
        }
    }

    /// Whether results have the same bits on every machine.
    pub const fn is_portable(self) -> bool {
        matches!(self, MathType::Portable | MathType::PortableUnfused)
    }
}

impl Precision {
    /// Whether anything is rounded that the graph does not round.
    pub fn is_reduced(self) -> bool {
        self.weights != WeightType::F32 || self.math == MathType::Bf16
    }
}

/// Counts of a model's constants and products that were rounded under a [`Precision`], and the bytes of the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundingCounts {
    /// The precision that the user asked for.
    pub precision: Precision,
    /// Number of constants that are stored in fewer bits.
    pub constants: u64,
    /// Size in bytes of the rounded constants as the graph has them.
    pub bytes_before: u64,
    /// Size in bytes of the rounded constants in the object, with scales, without padding.
    pub bytes_after: u64,
    /// Size in bytes of the f32 constants that are not rounded.
    pub bytes_kept: u64,
    /// Number of contractions whose products are computed in fewer bits.
    pub contractions: u64,
    /// Number of f32 contractions whose products keep f32.
    pub contractions_kept: u64,
}

impl RoundingCounts {
    /// Adds the counts of another function of the model.
    pub fn add(&mut self, other: &RoundingCounts) {
        self.constants += other.constants;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.bytes_kept += other.bytes_kept;
        self.contractions += other.contractions;
        self.contractions_kept += other.contractions_kept;
    }
}

impl std::fmt::Display for RoundingCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "weights {}: {} constants take {} bytes instead of {}, {} bytes of f32 constants stay; math {}: {} contractions of {}",
            self.precision.weights.name(),
            self.constants,
            self.bytes_after,
            self.bytes_before,
            self.bytes_kept,
            self.precision.math.name(),
            self.contractions,
            self.contractions + self.contractions_kept,
        )
    }
}
