//! Attribute values, and how they and the opcode become an [`Op`]: the same for text, messages and StableHLO.
use std::borrow::Cow;

use super::parser::calls;
use super::table;
use crate::hlo::attrs::*;
use crate::hlo::{CompId, Metadata, Op, Shape};
use crate::scalar::{CompareKind, Direction, ScalarOp};
use crate::tensor::DType;

type Result<T, E = String> = std::result::Result<T, E>;

/// The frontend attributes of a `topk` whose elements are compared by `<`; XLA carries them and compares in the total order.
pub(in crate::hlo) const BY_COMPARISON: &str = "{top_k_order=\"comparison\"}";

/// One attribute's value.
#[derive(Clone, Debug)]
pub(in crate::hlo) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Ints(Vec<i64>),
    Comp(CompId),
    Comps(Vec<CompId>),
    Window(Vec<WindowDim>),
    Labels(String),
    Slices(Vec<SliceDim>),
    Pads(Vec<PadDim>),
    Word(String),
    Metadata(Metadata),
    /// Only carried.
    Text,
}

/// The attributes of one instruction, in order.
#[derive(Debug, Default)]
pub(in crate::hlo) struct Attrs<'a> {
    list: Vec<(&'a str, Value, Cow<'a, str>)>,
}

impl<'a> Attrs<'a> {
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|a| a.0 == name)
    }
    pub fn push(&mut self, name: &'a str, value: Value, source: impl Into<Cow<'a, str>>) {
        self.list.push((name, value, source.into()));
    }
    fn take(&mut self, name: &str) -> Option<Value> {
        let i = self.list.iter().position(|a| a.0 == name)?;
        Some(self.list.remove(i).1)
    }
    pub fn take_metadata(&mut self) -> Metadata {
        match self.take("metadata") {
            Some(Value::Metadata(m)) => m,
            _ => Metadata::default(),
        }
    }
    /// Takes an attribute that is only carried if its text is this.
    fn take_text(&mut self, name: &str, text: &str) -> bool {
        let found = self.list.iter().position(|a| a.0 == name && a.2.trim() == text);
        found.map(|i| self.list.remove(i)).is_some()
    }
    /// What nothing took, as text.
    pub fn into_extra(self) -> Vec<(String, String)> {
        self.list.into_iter().map(|(n, _, s)| (n.to_string(), s.trim().to_string())).collect()
    }
    fn bool(&mut self, name: &str, default: bool) -> bool {
        match self.take(name) {
            Some(Value::Bool(b)) => b,
            _ => default,
        }
    }
    fn int(&mut self, name: &str, default: i64) -> i64 {
        match self.take(name) {
            Some(Value::Int(i)) => i,
            _ => default,
        }
    }
    fn word(&mut self, name: &str) -> String {
        match self.take(name) {
            Some(Value::Word(w)) => w,
            _ => String::new(),
        }
    }
    fn window(&mut self) -> Vec<WindowDim> {
        match self.take("window") {
            Some(Value::Window(w)) => w,
            _ => Vec::new(),
        }
    }
    fn ints(&mut self, name: &str) -> Vec<i64> {
        match self.take(name) {
            Some(Value::Ints(v)) => v,
            _ => Vec::new(),
        }
    }
}

/// A number that is not negative.
fn index(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| format!("{value} is negative"))
}

fn axes(values: Vec<i64>) -> Result<Vec<usize>> {
    values.into_iter().map(index).collect()
}
fn counts(values: Vec<i64>) -> Result<Vec<u64>> {
    values.into_iter().map(|v| index(v).map(|v| v as u64)).collect()
}
fn axis(attrs: &mut Attrs, name: &str) -> Result<usize> {
    match attrs.ints(name)[..] {
        [one] => index(one),
        _ => Err(format!("expects one dimension in {name}")),
    }
}
fn comp(attrs: &mut Attrs, name: &str) -> Result<CompId> {
    match attrs.take(name) {
        Some(Value::Comp(id)) => Ok(id),
        _ => Err(format!("attribute {name} is expected but not seen")),
    }
}
/// The element type of a written array shape.
fn written(shape: &Option<Shape>, opcode: &str) -> Result<DType> {
    match shape {
        Some(Shape::Array(a)) => Ok(a.dtype),
        Some(other) => Err(format!("{opcode} can't have the shape {other}")),
        None => Err(format!("cannot infer shape for opcode: {opcode}")),
    }
}

/// The op of `opcode` with its attributes, which are taken out of `attrs`; a message that says what is wrong otherwise.
pub(in crate::hlo) fn op(opcode: &str, shape: &Option<Shape>, operands: &[&Shape], attrs: &mut Attrs) -> Result<Op> {
    if let Some(op) = ScalarOp::parse(opcode) {
        return Ok(Op::Elementwise(op));
    }
    let op = match opcode {
        "compare" => {
            let kind = if attrs.word("type") == "TOTALORDER" { CompareKind::Total } else { CompareKind::Partial };
            Op::Elementwise(ScalarOp::Compare(direction(&attrs.word("direction")), kind))
        }
        "convert" => Op::Elementwise(ScalarOp::Convert(written(shape, opcode)?)),
        "bitcast-convert" => {
            let to = written(shape, opcode)?;
            let from = operands.first().copied().and_then(Shape::as_array).map(|a| a.dtype.bits());
            let same = from == Some(to.bits());
            if same { Op::Elementwise(ScalarOp::BitcastConvert(to)) } else { Op::BitcastConvertWidth }
        }
        "reduce-precision" => {
            let exponent_bits = bits(attrs, "exponent_bits", 1)?;
            let mantissa_bits = bits(attrs, "mantissa_bits", 0)?;
            Op::Elementwise(ScalarOp::ReducePrecision { exponent_bits, mantissa_bits })
        }
        "iota" => {
            let axis = attrs.int("iota_dimension", 0);
            Op::Iota(index(axis)?)
        }
        "broadcast" => {
            let written = attrs.has("dimensions");
            let scalar = operands.first().copied().and_then(Shape::as_array).is_some_and(|a| a.rank() == 0);
            if !written && !scalar {
                return Err("attribute dimensions is expected but not seen".to_string());
            }
            Op::Broadcast(axes(attrs.ints("dimensions"))?)
        }
        "reshape" => Op::Reshape,
        "bitcast" => Op::Bitcast,
        "copy" => Op::Copy,
        "opt-barrier" | "optimization-barrier" => Op::OptimizationBarrier,
        "transpose" => Op::Transpose(axes(attrs.ints("dimensions"))?),
        "reverse" => Op::Reverse(axes(attrs.ints("dimensions"))?),
        "slice" => match attrs.take("slice") {
            Some(Value::Slices(dims)) => Op::Slice(dims),
            _ => Op::Slice(Vec::new()),
        },
        "pad" => match attrs.take("padding") {
            Some(Value::Pads(dims)) => Op::Pad(dims),
            _ => Op::Pad(Vec::new()),
        },
        "concatenate" => Op::Concatenate(axis(attrs, "dimensions")?),
        "dynamic-slice" => Op::DynamicSlice(counts(attrs.ints("dynamic_slice_sizes"))?),
        "dynamic-update-slice" => Op::DynamicUpdateSlice,
        "gather" => Op::Gather(gather_dims(attrs)?),
        "scatter" => Op::Scatter { dims: scatter_dims(attrs)?, comp: comp(attrs, "to_apply")? },
        "reduce" => {
            let dims = axes(attrs.ints("dimensions"))?;
            Op::Reduce { dims, comp: comp(attrs, "to_apply")? }
        }
        "reduce-window" => Op::ReduceWindow { window: attrs.window(), comp: comp(attrs, "to_apply")? },
        "select-and-scatter" => Op::SelectAndScatter {
            window: attrs.window(),
            select: comp(attrs, "select")?,
            scatter: comp(attrs, "scatter")?,
        },
        "sort" => Op::Sort {
            dim: axis(attrs, "dimensions")?,
            is_stable: attrs.bool("is_stable", false),
            comp: comp(attrs, "to_apply")?,
        },
        "topk" => {
            let k = attrs.int("k", 0);
            let is_partial = attrs.take_text("frontend_attributes", BY_COMPARISON);
            let kind = if is_partial { CompareKind::Partial } else { CompareKind::Total };
            Op::TopK { k: index(k)? as u64, largest: attrs.bool("largest", true), kind }
        }
        "dot" => Op::Dot(DotDims {
            lhs_batch: axes(attrs.ints("lhs_batch_dims"))?,
            rhs_batch: axes(attrs.ints("rhs_batch_dims"))?,
            lhs_contracting: axes(attrs.ints("lhs_contracting_dims"))?,
            rhs_contracting: axes(attrs.ints("rhs_contracting_dims"))?,
        }),
        "convolution" => Op::Convolution(Box::new(conv_dims(attrs)?)),
        "map" => {
            let dims = axes(attrs.ints("dimensions"))?;
            Op::Map { comp: comp(attrs, "to_apply")?, dims }
        }
        "tuple" => Op::Tuple,
        "get-tuple-element" => {
            let part = attrs.int("index", 0);
            Op::GetTupleElement(index(part)?)
        }
        "while" => Op::While { cond: comp(attrs, "condition")?, body: comp(attrs, "body")? },
        "conditional" => conditional(operands, attrs)?,
        "call" => Op::Call(comp(attrs, "to_apply")?),
        "fusion" => {
            let kind = match attrs.word("kind").as_str() {
                "kInput" => FusionKind::Input,
                "kOutput" => FusionKind::Output,
                "kCustom" => FusionKind::Custom,
                _ => FusionKind::Loop,
            };
            Op::Fusion { comp: comp(attrs, "calls")?, kind }
        }
        "fft" => {
            let kind = match attrs.word("fft_type").as_str() {
                "IFFT" => FftKind::Ifft,
                "RFFT" => FftKind::Rfft,
                "IRFFT" => FftKind::Irfft,
                _ => FftKind::Fft,
            };
            Op::Fft { kind, length: counts(attrs.ints("fft_length"))? }
        }
        "cholesky" => Op::Cholesky { lower: attrs.bool("lower", false) },
        "triangular-solve" => Op::TriangularSolve {
            left_side: attrs.bool("left_side", false),
            lower: attrs.bool("lower", false),
            unit_diagonal: attrs.bool("unit_diagonal", false),
            transpose_a: match attrs.word("transpose_a").as_str() {
                "TRANSPOSE" => Transpose::Yes,
                "ADJOINT" => Transpose::Adjoint,
                _ => Transpose::No,
            },
        },
        "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => {
            let epsilon_bits = match attrs.take("epsilon") {
                Some(Value::Float(v)) => (v as f32).to_bits(),
                _ => 0,
            };
            let feature_index = index(attrs.int("feature_index", 0))?;
            match opcode {
                "batch-norm-training" => Op::BatchNormTraining { epsilon_bits, feature_index },
                "batch-norm-inference" => Op::BatchNormInference { epsilon_bits, feature_index },
                _ => Op::BatchNormGrad { epsilon_bits, feature_index },
            }
        }
        "rng" => Op::Rng { normal: attrs.word("distribution") == "rng_normal" },
        "rng-bit-generator" => Op::RngBitGenerator { algorithm: attrs.word("algorithm") },
        "get-dimension-size" => Op::GetDimensionSize(axis(attrs, "dimensions")?),
        "set-dimension-size" => Op::SetDimensionSize(axis(attrs, "dimensions")?),
        "after-all" => Op::AfterAll,
        "add-dependency" => Op::AddDependency,
        "partition-id" => Op::PartitionId,
        "replica-id" => Op::ReplicaId,
        _ => foreign(opcode, attrs),
    };
    Ok(op)
}
fn foreign(opcode: &str, attrs: &mut Attrs) -> Op {
    let mut foreign = Foreign { opcode: opcode.to_string(), ..Foreign::default() };
    let all = std::mem::take(&mut attrs.list);
    for (name, value, source) in all {
        if table::COMMON.contains(&name) {
            attrs.list.push((name, value, source));
            continue;
        }
        match value {
            Value::Comp(_) | Value::Comps(_) => foreign.calls.extend(calls(name, &value)),
            _ => foreign.attrs.push((name.to_string(), source.trim().to_string())),
        }
    }
    Op::Foreign(Box::new(foreign))
}
fn bits(attrs: &mut Attrs, name: &str, least: i64) -> Result<u32> {
    let bits = attrs.int(name, 0);
    u32::try_from(bits)
        .ok()
        .filter(|&b| i64::from(b) >= least)
        .ok_or_else(|| format!("{name} must be at least {least}"))
}
fn gather_dims(attrs: &mut Attrs) -> Result<GatherDims> {
    Ok(GatherDims {
        offset_dims: axes(attrs.ints("offset_dims"))?,
        collapsed_slice_dims: axes(attrs.ints("collapsed_slice_dims"))?,
        start_index_map: axes(attrs.ints("start_index_map"))?,
        index_vector_dim: index(attrs.int("index_vector_dim", 0))?,
        operand_batching_dims: axes(attrs.ints("operand_batching_dims"))?,
        start_indices_batching_dims: axes(attrs.ints("start_indices_batching_dims"))?,
        slice_sizes: counts(attrs.ints("slice_sizes"))?,
        indices_are_sorted: attrs.bool("indices_are_sorted", false),
    })
}
fn scatter_dims(attrs: &mut Attrs) -> Result<ScatterDims> {
    Ok(ScatterDims {
        update_window_dims: axes(attrs.ints("update_window_dims"))?,
        inserted_window_dims: axes(attrs.ints("inserted_window_dims"))?,
        scatter_dims_to_operand_dims: axes(attrs.ints("scatter_dims_to_operand_dims"))?,
        index_vector_dim: index(attrs.int("index_vector_dim", 0))?,
        input_batching_dims: axes(attrs.ints("input_batching_dims"))?,
        scatter_indices_batching_dims: axes(attrs.ints("scatter_indices_batching_dims"))?,
        indices_are_sorted: attrs.bool("indices_are_sorted", false),
        unique_indices: attrs.bool("unique_indices", false),
    })
}
fn conditional(operands: &[&Shape], attrs: &mut Attrs) -> Result<Op> {
    let Some(Shape::Array(selector)) = operands.first().copied() else {
        return Err("the first operand must be a scalar".to_string());
    };
    if selector.rank() != 0 {
        return Err("the first operand must be a scalar".to_string());
    }
    if selector.dtype == DType::Pred {
        let on_true = comp(attrs, "true_computation")?;
        let on_false = comp(attrs, "false_computation")?;
        if attrs.has("branch_computations") {
            return Err("unexpected attribute \"branch_computations\"".to_string());
        }
        return Ok(Op::Conditional(vec![on_true, on_false]));
    }
    if attrs.has("true_computation") || attrs.has("false_computation") {
        return Err("unexpected attribute \"true_computation\" where an index selects".to_string());
    }
    match attrs.take("branch_computations") {
        Some(Value::Comps(ids)) => Ok(Op::Conditional(ids)),
        _ => Err("attribute branch_computations is expected but not seen".to_string()),
    }
}
/// The axes of `b01f_01io->b01f`, the window and the groups.
fn conv_dims(attrs: &mut Attrs) -> Result<ConvDims> {
    let Some(Value::Labels(text)) = attrs.take("dim_labels") else {
        return Err("attribute dim_labels is expected but not seen".to_string());
    };
    Ok(ConvDims {
        window: attrs.window(),
        feature_group_count: index(attrs.int("feature_group_count", 1))? as u64,
        batch_group_count: index(attrs.int("batch_group_count", 1))? as u64,
        ..dim_labels(&text)?
    })
}

/// The axes of `b01f_01io->b01f`; no window, groups of one.
pub(super) fn dim_labels(text: &str) -> Result<ConvDims> {
    let (lhs, rest) = text.split_once('_').unwrap_or(("", ""));
    let (rhs, out) = rest.split_once("->").unwrap_or(("", ""));
    let dims = ConvDims::of_axes(labels(lhs, 'b', 'f')?, labels(rhs, 'i', 'o')?, labels(out, 'b', 'f')?);
    if lhs.len() != rhs.len() || rhs.len() != out.len() {
        return Err("convolution lhs, rhs, and output must have same rank".to_string());
    }
    Ok(dims)
}

/// Positions of two letters and of the digits 0, 1, 2 ….
fn labels(text: &str, first: char, second: char) -> Result<ConvAxes> {
    let (Some(a), Some(b)) = (text.find(first), text.find(second)) else {
        return Err(format!("dim labels {text} lack {first} or {second}"));
    };
    let spatial = text.chars().filter(char::is_ascii_digit).count();
    let place = |i: usize| {
        let digit = char::from_digit(i as u32, 10).unwrap_or('x');
        text.find(digit).ok_or_else(|| format!("dim labels {text} lack dimension {i}"))
    };
    let places = (0..spatial).map(place).collect::<Result<Vec<_>>>()?;
    let unused = text.chars().filter(|&c| c == '?').count();
    if places.len() + 2 + unused != text.len() {
        return Err(format!("expects unique dim labels, sees {text}"));
    }
    Ok((a, b, places))
}

fn direction(word: &str) -> Direction {
    match word {
        "NE" => Direction::Ne,
        "GE" => Direction::Ge,
        "GT" => Direction::Gt,
        "LE" => Direction::Le,
        "LT" => Direction::Lt,
        _ => Direction::Eq,
    }
}
