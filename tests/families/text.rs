//! HLO text, one instruction after another, and the sizes that are worth trying.
use super::common::random::Random;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use tfaot::tensor::{DType, Tensor};

/// What a parameter is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Floats in -2..2, integers in -4..4 or 0..8.
    Plain,
    /// Floats in -2..2 that are multiples of a quarter, so that sums of products are exact in any order.
    Quarters,
    /// Corners of the type among other values: infinities, NaN and zeros of both signs, subnormal numbers, the least and the largest.
    Corners,
    /// The same without NaN: all of it has an order.
    Ordered,
    /// Integers from the first number to before the second, whatever the type.
    Between(i64, i64),
    /// Floats from the first to the second number.
    Range(f64, f64),
}

/// How near a result must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The same bits, or both NaN.
    Bits,
    /// The same value, zeros of either sign being one, or both NaN.
    Value,
    /// Within the tolerance of `common::tolerance` and this much, absolutely.
    Close(f64),
}

impl Rule {
    /// Bits where `exact`, else within `slack` and the tolerance.
    pub fn new(exact: bool, slack: f64) -> Rule {
        if exact { Rule::Bits } else { Rule::Close(slack) }
    }
}

/// `4·√n·2⁻²⁴·Σ|terms|`, the error bound of a sum of `n` terms in f32 whose magnitudes are at most `largest`.
pub fn sum_bound(dtype: DType, n: u64, largest: f64) -> f64 {
    let eps = match dtype {
        DType::F64 | DType::C128 => 2f64.powi(-53),
        _ => 2f64.powi(-24),
    };
    4.0 * (n as f64).sqrt() * eps * n as f64 * largest
}

/// A value of the entry computation.
#[derive(Clone, Debug)]
pub struct Val {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<u64>,
}

impl Val {
    pub fn shape(&self) -> String {
        shape(self.dtype, &self.dims)
    }
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// A module, what its parameters are filled with, and how near its results must be.
#[derive(Clone, Debug)]
pub struct Case {
    pub hlo: String,
    pub fills: Vec<Fill>,
    pub rules: Vec<Rule>,
    /// Whether some of its parameters become variables.
    pub stateful: bool,
}

/// A module that is being written.
#[derive(Default)]
pub struct Text {
    comps: BTreeMap<String, String>,
    body: String,
    count: usize,
    fills: Vec<Fill>,
    results: Vec<(String, Rule)>,
    shapes: Vec<String>,
}

pub fn list<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

/// `f32[2,3]`.
pub fn shape(dtype: DType, dims: &[u64]) -> String {
    format!("{}[{}]", dtype.name(), list(dims))
}

impl Text {
    /// A parameter of the entry.
    pub fn param(&mut self, dtype: DType, dims: &[u64], fill: Fill) -> Val {
        self.fills.push(fill);
        self.op(dtype, dims, format_args!("parameter({})", self.fills.len() - 1))
    }

    /// An instruction.
    pub fn op(&mut self, dtype: DType, dims: &[u64], rhs: impl Display) -> Val {
        let name = self.line(&shape(dtype, dims), rhs);
        Val { name, dtype, dims: dims.to_vec() }
    }

    /// An instruction of any shape; its name.
    pub fn line(&mut self, shape: &str, rhs: impl Display) -> String {
        let name = format!("v{}", self.count);
        self.count += 1;
        let _ = writeln!(self.body, "  {name} = {shape} {rhs}");
        name
    }

    /// The same sizes and type as `x`.
    pub fn like(&mut self, x: &Val, rhs: impl Display) -> Val {
        self.op(x.dtype, &x.dims.clone(), rhs)
    }

    /// A scalar constant.
    pub fn scalar(&mut self, dtype: DType, value: impl Display) -> Val {
        self.op(dtype, &[], format_args!("constant({value})"))
    }

    /// A constant of multiples of a quarter in -2..2, of whole numbers where the type has no fractions, of bytes the least and the largest
    /// among others.
    pub fn constant(&mut self, r: &mut Random, dtype: DType, dims: &[u64]) -> Val {
        let text = literal(r, dtype, dims);
        self.op(dtype, dims, format_args!("constant({text})"))
    }

    /// `x` as large as `dims`, whose axes `axes` it has.
    pub fn broadcast(&mut self, x: &Val, dims: &[u64], axes: &[usize]) -> Val {
        self.op(x.dtype, dims, format_args!("broadcast({}), dimensions={{{}}}", x.name, list(axes)))
    }

    /// A scalar constant as large as `dims`.
    pub fn splat(&mut self, dtype: DType, dims: &[u64], value: impl Display) -> Val {
        let x = self.scalar(dtype, value);
        self.broadcast(&x, dims, &[])
    }

    /// `op(x, y)`.
    pub fn binary(&mut self, op: &str, x: &Val, y: &Val) -> Val {
        self.like(x, format_args!("{op}({}, {})", x.name, y.name))
    }

    /// `op(x)`.
    pub fn unary(&mut self, op: &str, x: &Val) -> Val {
        self.like(x, format_args!("{op}({})", x.name))
    }

    /// The name of the computation that applies `op` to two scalars.
    pub fn fold(&mut self, op: &str, dtype: DType) -> String {
        let (name, t) = (format!("{op}_{}", dtype.name()), dtype.name());
        let body =
            format!("{name} {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(a, b)\n}}\n");
        self.comp(&name, body)
    }

    /// A computation of this name and text, once.
    pub fn comp(&mut self, name: &str, text: String) -> String {
        self.comps.entry(name.to_string()).or_insert(text);
        name.to_string()
    }

    /// The text of a computation that is there.
    pub fn names(&self, comp: &str) -> &str {
        self.comps.get(comp).map_or("", String::as_str)
    }

    /// A result of the module.
    pub fn result(&mut self, x: &Val, rule: Rule) {
        self.shapes.push(x.shape());
        self.results.push((x.name.clone(), rule));
    }

    /// The module.
    pub fn finish(self) -> Case {
        let comps: String = self.comps.into_values().collect();
        let names = list(self.results.iter().map(|r| r.0.as_str()));
        let hlo = format!(
            "HloModule m\n{comps}ENTRY e {{\n{}  ROOT out = ({}) tuple({names})\n}}\n",
            self.body,
            list(&self.shapes)
        );
        Case { hlo, fills: self.fills, rules: self.results.into_iter().map(|r| r.1).collect(), stateful: false }
    }
}

fn literal(r: &mut Random, dtype: DType, dims: &[u64]) -> String {
    match dims.split_first() {
        None if dtype == DType::Pred => (if r.below(2) == 0 { "true" } else { "false" }).to_string(),
        None if dtype.is_complex() => format!("({}, {})", quarter(r), quarter(r)),
        None if dtype.is_float() => quarter(r).to_string(),
        None if dtype == DType::S8 => r.of(&[-128, -127, -1, 0, 1, 64, 127, -77]).to_string(),
        None if dtype == DType::S16 => r.of(&[-32768, -32767, -1, 0, 1, 255, 32767, -7777]).to_string(),
        None if dtype == DType::U8 => r.of(&[255, 254, 1, 0, 128, 64, 127, 77]).to_string(),
        None if dtype.is_signed() => (r.below(9) as i64 - 4).to_string(),
        None => r.below(9).to_string(),
        Some((&n, rest)) => format!("{{{}}}", list((0..n).map(|_| literal(r, dtype, rest)))),
    }
}

fn quarter(r: &mut Random) -> f64 {
    r.below(17) as f64 / 4.0 - 2.0
}

/// A tensor of `fill`.
pub fn filled(r: &mut Random, dtype: DType, dims: &[u64], fill: Fill) -> Tensor {
    let n = dims.iter().product::<u64>();
    let (part, width) = (dtype.real_part(), 1 + u64::from(dtype.is_complex()));
    let mut bytes = Vec::new();
    for _ in 0..n * width {
        let unit = (r.next() >> 11) as f64 / (1u64 << 53) as f64;
        let value = match fill {
            Fill::Between(from, to) => from as f64 + (unit * (to - from) as f64).floor(),
            Fill::Range(from, to) if part.is_float() => from + unit * (to - from),
            Fill::Corners | Fill::Ordered if r.below(3) == 0 => {
                bytes.extend(corner(r, part, fill));
                continue;
            }
            Fill::Quarters if part.is_float() => quarter(r),
            _ if part.is_float() => unit * 4.0 - 2.0,
            _ if part.is_signed() => (unit * 8.0).floor() - 4.0,
            _ if part == DType::Pred => f64::from(u8::from(unit < 0.5)),
            _ => (unit * 8.0).floor(),
        };
        bytes.extend_from_slice(&Tensor::scalar_from_f64(part, value).bytes);
    }
    Tensor::new(dtype, dims.to_vec(), bytes)
}

/// The bytes of a value at the edge of a type.
fn corner(r: &mut Random, dtype: DType, fill: Fill) -> Vec<u8> {
    let width = dtype.bytes();
    if dtype.is_float() && r.below(4) == 0 {
        // a NaN or the smallest subnormal number, of either sign
        let mut bytes = match fill {
            Fill::Ordered => vec![0; width],
            _ if r.below(2) == 0 => vec![0; width],
            _ => Tensor::scalar_from_f64(dtype, f64::NAN).bytes.to_vec(),
        };
        bytes[0] |= 1;
        bytes[width - 1] = bytes[width - 1] & 0x7f | if r.below(2) == 0 { 0x80 } else { 0 };
        return bytes;
    }
    if dtype.is_float() {
        let values = [
            f64::INFINITY,
            f64::NEG_INFINITY,
            if fill == Fill::Ordered { 1.0 } else { f64::NAN },
            0.0,
            -0.0,
            0.5,
            -2.5,
            1.5,
            1e-3,
            -255.5,
            3e9,
            -3e9,
            1e38,
            -1e-38,
            1e-40,
            65504.0,
        ];
        return Tensor::scalar_from_f64(dtype, r.of(&values)).bytes.to_vec();
    }
    if dtype == DType::Pred {
        return vec![r.below(2) as u8];
    }
    let bits = u64::from(dtype.bits());
    let value = r.of(&[0, 1, u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1, bits, bits - 1, bits + 1, u64::MAX - 1]);
    value.to_le_bytes()[..width].to_vec()
}

const SIZES: &[u64] = &[
    1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 24, 29, 31, 32, 33, 37, 47, 48, 49, 61, 63, 64, 65, 95,
    96, 97, 100, 127, 128, 129, 191, 193, 251, 255, 256, 257, 383, 509, 512, 513, 1000, 1021, 2049,
];

/// A size at or around the width of vectors and tiles, a prime, or any, at most `most`; now and then nothing at all.
pub fn size(r: &mut Random, most: u64) -> u64 {
    if r.below(60) == 0 {
        return 0;
    }
    some(r, most)
}

/// The same, but never nothing.
pub fn some(r: &mut Random, most: u64) -> u64 {
    let most = most.max(1);
    match r.below(4) {
        0 => 1 + r.below(most.min(40) as usize) as u64,
        _ => {
            let fits = SIZES.iter().take_while(|&&s| s <= most).count();
            r.of(&SIZES[..fits])
        }
    }
}

/// `rank` sizes of at most `most` elements together, some of them large and some small.
pub fn sizes(r: &mut Random, rank: usize, most: u64) -> Vec<u64> {
    let mut dims = vec![1; rank];
    let mut left = most;
    let first = r.below(rank.max(1));
    for i in 0..rank {
        let axis = (first + i) % rank;
        let most = if i + 1 < rank && r.below(3) > 0 { left.min(20) } else { left };
        dims[axis] = size(r, most);
        left = (left / dims[axis].max(1)).max(1);
    }
    dims
}
