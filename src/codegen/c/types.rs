//! Names of types in C.
use super::text::Type;

/// The name of an element in names of vectors: `f32`, `u8`; signed ones are those of masks and of signed operands.
pub fn short(element: &Type, is_signed: bool) -> String {
    match element {
        Type::Float => "f32".to_string(),
        Type::Double => "f64".to_string(),
        _ => format!("{}{}", if is_signed { "s" } else { "u" }, width(element.bits())),
    }
}

/// Bits of the C integer that holds one of so many bits.
pub fn width(bits: u32) -> u32 {
    bits.next_power_of_two().max(8)
}

/// The C type of a single value.
pub fn scalar(ty: &Type) -> String {
    match ty {
        Type::Int(1) => "int".to_string(),
        Type::Int(bits) => format!("uint{}_t", width(*bits)),
        Type::Float => "float".to_string(),
        Type::Double => "double".to_string(),
        Type::Size => "size_t".to_string(),
        Type::Pointer | Type::Void | Type::Vector(..) | Type::Array(..) | Type::Struct(_) => {
            "unsigned char *".to_string()
        }
    }
}

/// The C type of the signed number of the same bits.
pub fn signed(ty: &Type) -> String {
    match ty {
        Type::Int(bits) => format!("int{}_t", width(*bits)),
        _ => scalar(ty),
    }
}

/// A vector type of C.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vector {
    pub lanes: u64,
    /// `f32`, `u32`.
    pub element: String,
}

impl Vector {
    pub fn name(&self) -> String {
        format!("tf_v{}{}", self.lanes, self.element)
    }
    /// The C type of a lane.
    pub fn lane(&self) -> String {
        match (self.element.as_str(), self.element.strip_prefix('u'), self.element.strip_prefix('s')) {
            ("f32", ..) => "float".to_string(),
            (_, Some(bits), _) => format!("uint{bits}_t"),
            (_, _, Some(bits)) => format!("int{bits}_t"),
            _ => "double".to_string(),
        }
    }
    /// Whether compilers may have a type for it; else it is an array.
    pub fn is_native(&self) -> bool {
        self.lanes.is_power_of_two()
    }
    /// The declaration of the type.
    pub fn declaration(&self) -> String {
        match self.is_native() {
            true => format!("TF_TYPE({}, {}, {});\n", self.name(), self.lane(), self.lanes),
            false => format!("typedef struct {0} {{\n  {1} e[{2}];\n}} {0};\n", self.name(), self.lane(), self.lanes),
        }
    }
}

/// A number in C that is a double, exactly.
pub fn number(bits: u64, is_single: bool) -> String {
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
