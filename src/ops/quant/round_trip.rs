//! `QuantizeAndDequantize`: floats rounded to the values that a range of integers can represent.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::Dim;
use crate::hlo::symbolic::InstId;
use crate::ops::math::expr::{ArrayExpr, build_formula};
use crate::ops::op_lowering::op;
use crate::ops::shape::like_first_input;
use crate::ops::{LowerCtx, OpLowering, Value};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

const FLOATS: &str = "f16, bf16, f32, f64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("QuantizeAndDequantizeV2", "input input_min input_max -> output",          round_trip).shape(like_first_input).dtypes(FLOATS),
    op("QuantizeAndDequantizeV3", "input input_min input_max num_bits -> output", round_trip).shape(like_first_input).constant_inputs(&[3]).dtypes(FLOATS),
    op("QuantizeAndDequantizeV4", "input input_min input_max -> output",          round_trip).shape(like_first_input).dtypes(FLOATS),
];

/// Quantization grid, from the node's attributes.
struct Grid {
    /// Smallest and largest integer.
    least: f64,
    most: f64,
    /// Whether halves are rounded up, as opposed to even.
    half_up: bool,
    /// Whether the range is given by inputs, as opposed to the values.
    given: bool,
    /// Axis with a separate range for each slice.
    axis: Option<usize>,
}

impl Grid {
    fn parse(cx: &LowerCtx) -> Result<Grid> {
        let rank = cx.dims(0)?.len();
        let bits = if cx.args.len() > 3 { cx.constant_int(3)? } else { cx.node.int("num_bits").unwrap_or(8) };
        let signed = cx.node.bool("signed_input").unwrap_or(true);
        if !(if signed { 2 } else { 1 }..=63).contains(&bits) {
            return Err(Error::user(Code::BadAttr, format!("num_bits is {bits}")));
        }
        let half_up = match cx.node.str("round_mode").unwrap_or("HALF_TO_EVEN") {
            "HALF_TO_EVEN" => false,
            "HALF_UP" => true,
            other => {
                return Err(cx.unsupported_case(format!("round_mode {other}; HALF_TO_EVEN and HALF_UP are supported")));
            }
        };
        let axis = match cx.node.int("axis").unwrap_or(-1) {
            -1 => None,
            axis => Some(cx.normalize_axis(axis, rank)?),
        };
        let narrow = if cx.bool_attr("narrow_range") { 1.0 } else { 0.0 };
        let half = 2f64.powi(bits as i32 - 1);
        let (least, most) = if signed { (narrow - half, half - 1.0) } else { (0.0, 2.0 * half - 1.0) };
        Ok(Grid { least, most, half_up, given: cx.bool_attr("range_given"), axis })
    }

    /// Bounds of the values, broadcast to the sizes of the input.
    fn bounds(&self, cx: &mut LowerCtx, x: InstId) -> Result<[InstId; 2]> {
        let dims = cx.b.dims(x).to_vec();
        let kept: Vec<usize> = self.axis.into_iter().collect();
        let line: Vec<Dim> = kept.iter().map(|&a| dims[a]).collect();
        let mut out = [x, x];
        let folds = [(ScalarOp::Minimum, f64::INFINITY), (ScalarOp::Maximum, f64::NEG_INFINITY)];
        for (i, (fold, neutral)) in folds.into_iter().enumerate() {
            let bound = if self.given {
                let bound = cx.arg(i + 1)?;
                if cx.b.dims(bound) != line {
                    return Err(
                        cx.shape_mismatch(format!("a range of {:?}, where {line:?} is needed", cx.b.dims(bound)))
                    );
                }
                bound
            } else {
                let folded: Vec<usize> = (0..dims.len()).filter(|a| !kept.contains(a)).collect();
                let init = cx.b.scalar(cx.b.dtype(x), neutral);
                cx.b.reduce(x, init, fold, &folded)
            };
            let bound = cx.b.convert(bound, cx.b.dtype(x));
            out[i] = cx.b.broadcast(bound, &dims, &kept);
        }
        Ok(out)
    }

    /// Values rounded to the grid with the larger step of the two at which the smallest or the largest integer just reaches its
    /// bound.
    fn round<'s, 'b>(&self, [x, low, high]: [ArrayExpr<'s, 'b>; 3]) -> ArrayExpr<'s, 'b> {
        let largest = if x.dtype() == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        let reach =
            |bound: ArrayExpr<'s, 'b>, integer: f64| (integer / bound).select_where((bound * integer).gt(0.0), largest);
        let (by_low, by_high) = (reach(low, self.least), reach(high, self.most));
        let from_low = by_low.lt(by_high);
        let scale = by_low.select_where(from_low, by_high);
        let inverse = if self.least == 0.0 {
            high / self.most
        } else {
            (low / self.least).select_where(from_low, high / self.most)
        };
        let (least, most) = (
            (inverse * self.least).select_where(from_low.not(), low),
            (inverse * self.most).select_where(from_low, high),
        );
        let x =
            if self.given { x.apply_binary(ScalarOp::Maximum, least).apply_binary(ScalarOp::Minimum, most) } else { x };
        let steps = x * scale;
        let whole = if self.half_up { (steps + 0.5).floor() } else { steps.apply_unary(ScalarOp::RoundNearestEven) };
        whole * inverse
    }
}

fn round_trip(cx: &mut LowerCtx) -> Result<Vec<Value>> {
    let (x, dtype, grid) = (cx.arg(0)?, cx.dtype(0)?, Grid::parse(cx)?);
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {}
        other => return Err(cx.unsupported_case(format!("{} of {other}; {FLOATS} are supported", cx.node.op))),
    }
    let work = if dtype == DType::F64 { dtype } else { DType::F32 };
    let wide = cx.b.convert(x, work);
    let [low, high] = grid.bounds(cx, wide)?;
    let y = build_formula(cx.b, [wide, low, high], |parts| grid.round(parts));
    let y = cx.b.convert(y, dtype);
    cx.one_output(y)
}
