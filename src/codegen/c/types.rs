//! Names of types in C.
use super::text::IrType;

/// The name of an element type in the names of C vector types: `f32`, `u8`; signed integers are for masks and signed operands.
pub fn element_suffix(element: &IrType, is_signed: bool) -> String {
    match element {
        IrType::Float => "f32".to_string(),
        IrType::Double => "f64".to_string(),
        _ => format!("{}{}", if is_signed { "s" } else { "u" }, c_integer_bits(element.bits())),
    }
}

/// Width of the C integer type that holds an LLVM integer of so many bits.
pub fn c_integer_bits(bits: u32) -> u32 {
    bits.next_power_of_two().max(8)
}

/// The C type of a scalar.
pub fn c_scalar_type(ty: &IrType) -> String {
    match ty {
        IrType::Int(1) => "int".to_string(),
        IrType::Int(bits) => format!("uint{}_t", c_integer_bits(*bits)),
        IrType::Float => "float".to_string(),
        IrType::Double => "double".to_string(),
        IrType::Size => "size_t".to_string(),
        IrType::Pointer | IrType::Void | IrType::Vector(..) | IrType::Array(..) | IrType::Struct(_) => {
            "unsigned char *".to_string()
        }
    }
}

/// The signed C integer type of the same width.
pub fn signed_type(ty: &IrType) -> String {
    match ty {
        IrType::Int(bits) => format!("int{}_t", c_integer_bits(*bits)),
        _ => c_scalar_type(ty),
    }
}

/// A vector type of C.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CVectorType {
    pub lanes: u64,
    /// The name of the element type: `f32`, `u32`.
    pub element: String,
}

impl CVectorType {
    pub fn name(&self) -> String {
        format!("tf_v{}{}", self.lanes, self.element)
    }
    /// The C type of one lane.
    pub fn lane_type(&self) -> String {
        match (self.element.as_str(), self.element.strip_prefix('u'), self.element.strip_prefix('s')) {
            ("f32", ..) => "float".to_string(),
            (_, Some(bits), _) => format!("uint{bits}_t"),
            (_, _, Some(bits)) => format!("int{bits}_t"),
            _ => "double".to_string(),
        }
    }
    /// Whether compilers may have a native vector type for it; otherwise it is a struct with an array.
    pub fn is_native(&self) -> bool {
        self.lanes.is_power_of_two()
    }
    /// The C declaration of the vector type.
    pub fn declaration(&self) -> String {
        match self.is_native() {
            true => format!("TF_TYPE({}, {}, {});\n", self.name(), self.lane_type(), self.lanes),
            false => {
                format!("typedef struct {0} {{\n  {1} e[{2}];\n}} {0};\n", self.name(), self.lane_type(), self.lanes)
            }
        }
    }
}

/// The C literal of exactly the double with these bits.
pub fn float_literal(bits: u64, is_single: bool) -> String {
    let value = f64::from_bits(bits);
    if !value.is_finite() {
        return match is_single {
            true => format!("tf_float(UINT32_C(0x{:08x}))", (value as f32).to_bits()),
            false => format!("tf_double(UINT64_C(0x{bits:016x}))"),
        };
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (field, mantissa) = ((bits >> 52 & 2047) as i64, bits & ((1 << 52) - 1));
    let (lead, exponent) = if field == 0 { (0, -1022) } else { (1, field - 1023) };
    let suffix = if is_single { "f" } else { "" };
    if field == 0 && mantissa == 0 {
        return format!("{sign}0.0{suffix}");
    }
    let digits = format!("{mantissa:013x}");
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    format!("{sign}0x{lead}.{digits}p{exponent}{suffix}")
}
