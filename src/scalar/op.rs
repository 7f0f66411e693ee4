//! The table of pointwise ops: name, arity, result type, corner cases.
use crate::tensor::DType;

/// The relation of a `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Equal.
    Eq,
    /// Not equal; true when either is NaN.
    Ne,
    /// Greater or equal.
    Ge,
    /// Greater.
    Gt,
    /// Less or equal.
    Le,
    /// Less.
    Lt,
}

impl Direction {
    /// Relation that holds where this one does not, between values of which one is equal, greater or less: not with a NaN.
    pub fn negated_of_ordered(self) -> Direction {
        match self {
            Direction::Eq => Direction::Ne,
            Direction::Ne => Direction::Eq,
            Direction::Ge => Direction::Lt,
            Direction::Gt => Direction::Le,
            Direction::Le => Direction::Gt,
            Direction::Lt => Direction::Ge,
        }
    }

    /// Relation of `b` to `a` that holds where this one holds of `a` to `b`.
    pub fn with_swapped_operands(self) -> Direction {
        match self {
            Direction::Eq | Direction::Ne => self,
            Direction::Ge => Direction::Le,
            Direction::Gt => Direction::Lt,
            Direction::Le => Direction::Ge,
            Direction::Lt => Direction::Gt,
        }
    }
}

/// How a `compare` orders floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompareKind {
    /// The operand type's own order; NaN is unordered.
    Partial,
    /// IEEE total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN.
    Total,
}

macro_rules! scalar_ops {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:literal;)*) => {
        /// An op that is applied point by point. The result has the type of the last operand unless [`ScalarOp::result`] says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ScalarOp {
            $($(#[$doc])* $variant,)*
            /// A relation of two equal types; the result is `pred`.
            Compare(Direction, CompareKind),
            /// A value of another type: float to integer truncates and saturates, NaN gives 0; integers wrap; to `pred` is `x != 0`.
            Convert(DType),
            /// The bits of a value, read as another type of the same width.
            BitcastConvert(DType),
            /// Rounds to fewer exponent and mantissa bits, to nearest even; overflow gives infinity.
            ReducePrecision {
                /// Exponent bits kept, at least 1.
                exponent_bits: u32,
                /// Mantissa bits kept.
                mantissa_bits: u32,
            },
        }
        /// The ops without payload, for lookups by name and for tests.
        pub const PLAIN_OPS: &[ScalarOp] = &[$(ScalarOp::$variant,)*];
        impl ScalarOp {
            /// XLA's opcode.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ScalarOp::$variant => $name,)*
                    ScalarOp::Compare(..) => "compare",
                    ScalarOp::Convert(_) => "convert",
                    ScalarOp::BitcastConvert(_) => "bitcast-convert",
                    ScalarOp::ReducePrecision { .. } => "reduce-precision",
                }
            }
            /// The number of operands.
            pub const fn arity(self) -> usize {
                match self {
                    $(ScalarOp::$variant => $arity,)*
                    ScalarOp::Compare(..) => 2,
                    ScalarOp::Convert(_) | ScalarOp::BitcastConvert(_) | ScalarOp::ReducePrecision { .. } => 1,
                }
            }
        }
    };
}

scalar_ops! {
    /// Magnitude; the smallest integer is its own; complex gives its real type.
    Abs "abs" 1;
    /// Sign change; integers wrap.
    Negate "negate" 1;
    /// -1, 0 or 1; keeps -0 and NaN; complex is x/|x|.
    Sign "sign" 1;
    /// Bitwise; logical on `pred`.
    Not "not" 1;
    /// Number of ones.
    Popcnt "popcnt" 1;
    /// Number of leading zeros; all bits for 0.
    CountLeadingZeros "count-leading-zeros" 1;
    /// Towards +inf.
    Ceil "ceil" 1;
    /// Towards -inf.
    Floor "floor" 1;
    /// To nearest, halves away from zero.
    RoundNearestAfz "round-nearest-afz" 1;
    /// To nearest, halves to even.
    RoundNearestEven "round-nearest-even" 1;
    /// e^x.
    Exp "exponential" 1;
    /// e^x - 1, exact near 0.
    Expm1 "exponential-minus-one" 1;
    /// Natural logarithm.
    Log "log" 1;
    /// ln(1 + x), exact near 0.
    Log1p "log-plus-one" 1;
    /// 1 / (1 + e^-x).
    Logistic "logistic" 1;
    /// Square root.
    Sqrt "sqrt" 1;
    /// 1 / sqrt(x).
    Rsqrt "rsqrt" 1;
    /// Cube root.
    Cbrt "cbrt" 1;
    /// Hyperbolic tangent.
    Tanh "tanh" 1;
    /// Sine.
    Sin "sine" 1;
    /// Cosine.
    Cos "cosine" 1;
    /// Tangent.
    Tan "tan" 1;
    /// Error function.
    Erf "erf" 1;
    /// Real part; a float is its own.
    Real "real" 1;
    /// Imaginary part; 0 for a float.
    Imag "imag" 1;
    /// Neither infinite nor NaN; the result is `pred`.
    IsFinite "is-finite" 1;
    /// Sum; integers wrap; `pred`: or.
    Add "add" 2;
    /// Difference; integers wrap.
    Subtract "subtract" 2;
    /// Product; integers wrap; `pred`: and.
    Multiply "multiply" 2;
    /// Quotient; integers truncate, x/0 is all ones, min/-1 is min.
    Divide "divide" 2;
    /// Remainder with the dividend's sign; integers: x rem 0 is x, min rem -1 is 0.
    Remainder "remainder" 2;
    /// Larger of two; NaN if either is; of equal operands the first.
    Maximum "maximum" 2;
    /// Smaller of two; NaN if either is; of equal operands the first.
    Minimum "minimum" 2;
    /// x^y as C's `pow`; integers wrap, a negative exponent gives 1 for 1, ±1 for -1, else 0.
    Power "power" 2;
    /// Angle of (y, x).
    Atan2 "atan2" 2;
    /// Bitwise and.
    And "and" 2;
    /// Bitwise or.
    Or "or" 2;
    /// Bitwise exclusive or.
    Xor "xor" 2;
    /// x << y; 0 where y, unsigned, is at least the width.
    ShiftLeft "shift-left" 2;
    /// x >> y filling with the sign; all sign where y, unsigned, is at least the width.
    ShiftRightArithmetic "shift-right-arithmetic" 2;
    /// x >> y filling with zeros; 0 where y, unsigned, is at least the width.
    ShiftRightLogical "shift-right-logical" 2;
    /// A complex number of two floats.
    Complex "complex" 2;
    /// The second operand where the first (`pred`) is true, else the third.
    Select "select" 3;
    /// min(max(x, low), high) of (low, x, high).
    Clamp "clamp" 3;
    /// x * y + z rounded once; made by the scheduler, not an HLO opcode.
    Fma "fma" 3;
}

impl Direction {
    /// XLA's word.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Eq => "EQ",
            Direction::Ne => "NE",
            Direction::Ge => "GE",
            Direction::Gt => "GT",
            Direction::Le => "LE",
            Direction::Lt => "LT",
        }
    }
}

impl ScalarOp {
    /// Whether exchanged operands of two give the same result.
    pub const fn commutes(self) -> bool {
        matches!(
            self,
            ScalarOp::Add
                | ScalarOp::Multiply
                | ScalarOp::Maximum
                | ScalarOp::Minimum
                | ScalarOp::And
                | ScalarOp::Or
                | ScalarOp::Xor
        )
    }
    /// About how many cycles it takes where it waits for nothing.
    pub const fn cycles(self) -> u64 {
        match self {
            op if op.is_long() => 20,
            ScalarOp::Divide | ScalarOp::Sqrt | ScalarOp::Rsqrt => 8,
            _ => 1,
        }
    }
    /// Whether floats take it some twenty instructions: a series, or a loop.
    pub const fn is_long(self) -> bool {
        matches!(
            self,
            ScalarOp::Exp
                | ScalarOp::Expm1
                | ScalarOp::Log
                | ScalarOp::Log1p
                | ScalarOp::Logistic
                | ScalarOp::Tanh
                | ScalarOp::Sin
                | ScalarOp::Cos
                | ScalarOp::Tan
                | ScalarOp::Erf
                | ScalarOp::Cbrt
                | ScalarOp::Power
                | ScalarOp::Atan2
                | ScalarOp::Remainder
        )
    }
    /// Whether it is a function of one number that is approximated, so that XLA takes the accuracy of its result as an attribute.
    pub const fn is_approximate(self) -> bool {
        self.arity() == 1 && (self.is_long() || matches!(self, ScalarOp::Sqrt | ScalarOp::Rsqrt))
    }
    /// The type of the result for operands of these types.
    pub fn result(self, operands: &[DType]) -> DType {
        let last = operands.last().copied().unwrap_or(DType::F32);
        match self {
            ScalarOp::Compare(..) | ScalarOp::IsFinite => DType::Pred,
            ScalarOp::Convert(t) | ScalarOp::BitcastConvert(t) => t,
            ScalarOp::Abs | ScalarOp::Real | ScalarOp::Imag => last.real_part(),
            ScalarOp::Complex => {
                if last == DType::F64 {
                    DType::C128
                } else {
                    DType::C64
                }
            }
            _ => last,
        }
    }
    /// The payload-free op that XLA calls `name`.
    pub fn parse(name: &str) -> Option<ScalarOp> {
        PLAIN_OPS.iter().copied().find(|op| op.name() == name && *op != ScalarOp::Fma)
    }
}
