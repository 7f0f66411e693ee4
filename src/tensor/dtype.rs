//! Element types: their names and numbers in XLA, and their numbers in TensorFlow.

macro_rules! dtypes {
    ($($variant:ident $name:literal $xla:literal $bits:literal $class:ident $tf:expr;)*) => {
        /// An element type of an array.
        ///
        /// ```
        /// use tfaot::DType;
        ///
        /// assert_eq!((DType::BF16.to_string(), DType::BF16.bytes()), ("bf16".to_string(), 2));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DType { $(#[doc = $name] $variant,)* }
        /// Every type, in XLA's order.
        pub const DTYPES: &[DType] = &[$(DType::$variant,)*];
        impl DType {
            /// XLA's name of the type.
            pub const fn name(self) -> &'static str { match self { $(DType::$variant => $name,)* } }
            /// XLA's `PrimitiveType` number.
            pub const fn xla_number(self) -> i32 { match self { $(DType::$variant => $xla,)* } }
            /// Number of bits of one element; 8 for `pred`, which is stored in a byte.
            pub const fn bits(self) -> u32 { match self { $(DType::$variant => $bits,)* } }
            /// The class of the type: boolean, integer, float or complex.
            pub const fn class(self) -> DTypeClass { match self { $(DType::$variant => DTypeClass::$class,)* } }
            /// TensorFlow's `DataType` number, if it has one.
            pub const fn tf_number(self) -> Option<i32> { match self { $(DType::$variant => $tf,)* } }
        }
    };
}

/// Classes of element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DTypeClass {
    /// Booleans.
    Pred,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floating-point numbers.
    Float,
    /// Complex numbers: pairs of floats.
    Complex,
}

dtypes! {
    Pred "pred" 1 8 Pred Some(10);
    S1 "s1" 30 1 Signed None;
    S2 "s2" 26 2 Signed None;
    S4 "s4" 21 4 Signed Some(29);
    S8 "s8" 2 8 Signed Some(6);
    S16 "s16" 3 16 Signed Some(5);
    S32 "s32" 4 32 Signed Some(3);
    S64 "s64" 5 64 Signed Some(9);
    U1 "u1" 31 1 Unsigned None;
    U2 "u2" 27 2 Unsigned None;
    U4 "u4" 22 4 Unsigned Some(30);
    U8 "u8" 6 8 Unsigned Some(4);
    U16 "u16" 7 16 Unsigned Some(17);
    U32 "u32" 8 32 Unsigned Some(22);
    U64 "u64" 9 64 Unsigned Some(23);
    F16 "f16" 10 16 Float Some(19);
    BF16 "bf16" 16 16 Float Some(14);
    F32 "f32" 11 32 Float Some(1);
    F64 "f64" 12 64 Float Some(2);
    F8E5M2 "f8e5m2" 19 8 Float Some(24);
    F8E4M3FN "f8e4m3fn" 20 8 Float Some(25);
    F8E4M3B11FNUZ "f8e4m3b11fnuz" 23 8 Float None;
    F8E5M2FNUZ "f8e5m2fnuz" 24 8 Float None;
    F8E4M3FNUZ "f8e4m3fnuz" 25 8 Float None;
    F8E4M3 "f8e4m3" 28 8 Float None;
    F8E3M4 "f8e3m4" 29 8 Float None;
    F8E8M0FNU "f8e8m0fnu" 33 8 Float None;
    F4E2M1FN "f4e2m1fn" 32 4 Float None;
    C64 "c64" 15 64 Complex Some(8);
    C128 "c128" 18 128 Complex Some(18);
}

impl DType {
    /// Size of one stored element in bytes; types narrower than a byte take a whole one.
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }
    /// Whether this is a float type.
    pub fn is_float(self) -> bool {
        self.class() == DTypeClass::Float
    }
    /// Whether this is a signed or unsigned integer type (not `pred`).
    pub fn is_integer(self) -> bool {
        matches!(self.class(), DTypeClass::Signed | DTypeClass::Unsigned)
    }
    /// Whether this is a signed integer type.
    pub fn is_signed(self) -> bool {
        self.class() == DTypeClass::Signed
    }
    /// The smallest and the largest number of an integer type; of 64 bits the largest is rounded to the next power of two. `None` for other
    /// types.
    pub fn integer_bounds(self) -> Option<(f64, f64)> {
        let bits = self.bits() as i32;
        match self.class() {
            DTypeClass::Signed => Some((-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)),
            DTypeClass::Unsigned => Some((0.0, 2f64.powi(bits) - 1.0)),
            DTypeClass::Pred | DTypeClass::Float | DTypeClass::Complex => None,
        }
    }
    /// Whether this is a complex type.
    pub fn is_complex(self) -> bool {
        self.class() == DTypeClass::Complex
    }
    /// The float type of a complex type's parts; the type itself for all others.
    pub fn real_part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
    /// The type in which arithmetic on this type is done: f32 for floats below 32 bits, whose results are rounded afterwards.
    pub fn compute_type(self) -> DType {
        if self.is_float() && self.bits() < 32 { DType::F32 } else { self }
    }
    /// The type in which products are summed up for a result of this type.
    pub fn accumulator_type(self) -> DType {
        match self.class() {
            DTypeClass::Pred => DType::S32,
            DTypeClass::Signed if self.bits() < 32 => DType::S32,
            DTypeClass::Unsigned if self.bits() < 32 => DType::U32,
            DTypeClass::Float | DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Complex => self.compute_type(),
        }
    }
    /// The type of a product of `self` and `other` before it is converted to `result`: that of the wider factor if the result is narrower,
    /// in class (complex, then floats, then integers) or in the type of its sums; else that of the result.
    pub fn product_type(self, other: DType, result: DType) -> DType {
        let kind = |t: DType| (t.is_complex(), t.is_float());
        let factor = if (kind(self), self.bits()) < (kind(other), other.bits()) { other } else { self };
        let width = |t: DType| (kind(t), t.accumulator_type().bits());
        if kind(factor) > (false, false) && width(factor) > width(result) { factor } else { result }
    }
    /// The type with XLA's name `name`.
    pub fn parse(name: &str) -> Option<DType> {
        DTYPES.iter().copied().find(|t| t.name() == name)
    }
    /// The type with this TensorFlow `DataType` number; a quantized type becomes its storage type.
    pub fn from_tf(number: i32) -> Option<DType> {
        let number = match number {
            11 => 6,
            12 => 4,
            13 => 3,
            15 => 5,
            16 => 17,
            n => n,
        };
        DTYPES.iter().copied().find(|t| t.tf_number() == Some(number))
    }
    /// The type with this XLA `PrimitiveType` number.
    pub fn from_xla(number: i32) -> Option<DType> {
        DTYPES.iter().copied().find(|t| t.xla_number() == number)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
