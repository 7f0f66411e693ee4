//! `SampleDistortedBoundingBox`: random crops that cover enough of some object in an image.
//!
//! Crops are tried in the order of TensorFlow's CPU kernel: an aspect ratio and a height are drawn within their ranges, then a
//! position. A crop that covers too little is drawn again, up to a number of attempts; if all fail, the crop is the whole
//! image.
use crate::diag::{Code, Error, Result};
use crate::dims;
use crate::graph::TfType;
use crate::hlo::symbolic::{Builder, InstId};
use crate::ops::fact::{Dims, Fact};
use crate::ops::math::expr::{ArrayExpr, build_formulas, iterate_elementwise_all};
use crate::ops::op_lowering::op;
use crate::ops::random::StreamState;
use crate::ops::{LowerCtx, OpLowering, ShapeCtx, Value};
use crate::scalar::ScalarOp;
use crate::symbolic::Dim;
use crate::tensor::DType;

const RESULTS: &str = "s8, u8, s16, s32, s64";

/// Definitions of the ops of this file.
#[rustfmt::skip]
pub const ROWS: &[OpLowering] = &[
    op("SampleDistortedBoundingBox", "image_size bounding_boxes -> begin size bboxes", |cx| { let words = StreamState::from_global_generator(cx)?; sample(cx, words) })
        .shape(shape).draws_random().dtypes(RESULTS),
    op("SampleDistortedBoundingBoxV2", "image_size bounding_boxes min_object_covered -> begin size bboxes", |cx| { let words = StreamState::from_global_generator(cx)?; sample(cx, words) })
        .shape(shape).draws_random().dtypes(RESULTS),
    op("StatelessSampleDistortedBoundingBox", "image_size bounding_boxes min_object_covered seed -> begin size bboxes", |cx| { let words = StreamState::from_seeds(cx, 3)?; sample(cx, words) })
        .shape(shape).dtypes(RESULTS),
];

fn shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dtype, three) = (cx.dtype(0), Dims::from_sizes(&[3]));
    let boxes = Fact::new(Some(TfType::Data(DType::F32)), Dims::from_sizes(&[1, 1, 4]));
    Ok(vec![Fact::new(dtype, three.clone()), Fact::new(dtype, three), boxes])
}

/// Ranges of the drawn parameters, from the node's attributes and inputs.
struct Limits {
    aspect: [f32; 2],
    area: [f32; 2],
    attempts: i64,
}

impl Limits {
    fn parse(cx: &LowerCtx) -> Result<Limits> {
        let pair = |name: &str, default: [f32; 2]| match cx.node.floats(name) {
            None => Ok(default),
            Some(&[least, most]) if least > 0.0 && most > 0.0 => Ok([least, most]),
            Some(other) => Err(Error::user(Code::BadAttr, format!("{name} is {other:?}, not two numbers above 0"))),
        };
        let limits = Limits {
            aspect: pair("aspect_ratio_range", [0.75, 1.33])?,
            area: pair("area_range", [0.05, 1.0])?,
            attempts: cx.node.int("max_attempts").unwrap_or(100),
        };
        if limits.area.iter().any(|&area| area > 1.0) {
            return Err(Error::user(
                Code::BadAttr,
                format!("area_range is {:?}, and 1 is the whole image", limits.area),
            ));
        }
        if !(1..=i64::from(i32::MAX)).contains(&limits.attempts) {
            return Err(Error::user(Code::BadAttr, format!("max_attempts is {}", limits.attempts)));
        }
        Ok(limits)
    }
}

/// Offset and size of a crop, in pixels.
#[derive(Clone, Copy)]
struct Crop<'s, 'b> {
    y: ArrayExpr<'s, 'b>,
    x: ArrayExpr<'s, 'b>,
    height: ArrayExpr<'s, 'b>,
    width: ArrayExpr<'s, 'b>,
}

/// Number of pixels of a crop, as f32.
fn area<'s, 'b>(height: ArrayExpr<'s, 'b>, width: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    (height * width).convert(DType::F32)
}

/// Nearest integer to `count * ratio`, ties to even.
fn scaled<'s, 'b>(count: ArrayExpr<'s, 'b>, ratio: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    nearest(count.convert(DType::F32) * ratio)
}

fn nearest<'s, 'b>(x: ArrayExpr<'s, 'b>) -> ArrayExpr<'s, 'b> {
    x.apply_unary(ScalarOp::RoundNearestEven).convert(DType::S32)
}

/// Height and width of the image, as s32 scalars.
fn image_size(cx: &mut LowerCtx) -> Result<[InstId; 2]> {
    let size = cx.arg(0)?;
    if cx.b.dims(size) != [3] || !cx.b.dtype(size).is_integer() {
        return Err(
            cx.shape_mismatch(format!("the size of the image is {}, and three integers are needed", cx.b.shape(size)))
        );
    }
    Ok([0, 1].map(|i| {
        let one = cx.b.slice_axis(size, 0, Dim::from(i), Dim::from(i + 1));
        let one = cx.b.reshape(one, &[]);
        cx.b.convert(one, DType::S32)
    }))
}

/// Corners `y_min, x_min, y_max, x_max` of the objects in pixels, s32 each; those of the whole image if there is no object.
fn objects(cx: &mut LowerCtx, [height, width]: [InstId; 2]) -> Result<[InstId; 4]> {
    let (boxes, given) = (cx.arg(1)?, cx.dims(1)?);
    let &[images, count, corners] = &given[..] else {
        return Err(cx.shape_mismatch(format!("boxes {given:?}, and [images, boxes, 4] is needed")));
    };
    if corners != 4 {
        return Err(cx.shape_mismatch(format!("boxes have 4 corners, not {corners}")));
    }
    let count = images * count;
    if count.is_zero() {
        if !cx.bool_attr("use_image_if_no_bounding_boxes") {
            return Err(cx.shape_mismatch("no boxes are given, and use_image_if_no_bounding_boxes is not set"));
        }
        let zero = cx.b.full(DType::S32, &dims![1], 0.0);
        let [height, width] = [height, width].map(|size| cx.b.reshape(size, &dims![1]));
        return Ok([zero, zero, height, width]);
    }
    let boxes = cx.b.reshape(boxes, &[count, Dim::from(4)]);
    let sizes = [height, width].map(|size| cx.b.convert(size, DType::F32));
    Ok([0, 1, 2, 3].map(|i| {
        let corner = cx.b.slice_axis(boxes, 1, Dim::from(i), Dim::from(i + 1));
        let corner = cx.b.reshape(corner, &[count]);
        let size = cx.b.broadcast(sizes[i % 2], &[count], &[]);
        let pixel = cx.b.mul(corner, size);
        cx.b.convert(pixel, DType::S32)
    }))
}

fn sample(cx: &mut LowerCtx, StreamState(stream): StreamState<InstId>) -> Result<Vec<Value>> {
    let limits = Limits::parse(cx)?;
    let image = image_size(cx)?;
    let objects = objects(cx, image)?;
    let covered = match cx.args.len() {
        2 => cx.b.scalar(DType::F32, f64::from(cx.node.float("min_object_covered").unwrap_or(0.1))),
        _ => cx.arg(2)?,
    };
    let dtype = cx.dtype(0)?;
    let b = &mut *cx.b;
    let covered = b.reshape(covered, &[]);
    let (zero, place, going) = (b.scalar(DType::S32, 0.0), b.scalar(DType::U64, 0.0), b.scalar(DType::Pred, 1.0));
    let found = [zero, zero, image[0], image[1], place];
    let state = [&found[..], &stream, &image, &[covered], &objects].concat();
    let end = iterate_elementwise_all(b, going, &state, limits.attempts as f64, |state, _| attempt(&limits, state));
    results(b, [end[0], end[1], end[2], end[3]], image, dtype)
}

/// Single attempt: whether it failed, the crop (the whole image if it failed), and the advanced position in the random stream.
fn attempt<'s, 'b>(limits: &Limits, state: &[ArrayExpr<'s, 'b>]) -> (ArrayExpr<'s, 'b>, Vec<ArrayExpr<'s, 'b>>) {
    let words = StreamState([state[5], state[6], state[7]]);
    let (height, width, covered) = (state[8], state[9], state[10]);
    let (crop, fits, place) = draw(limits, words, [height, width], state[4]);
    let good = fits.and(covers(crop, covered, [state[11], state[12], state[13], state[14]]));
    let kept = [crop.y, crop.x, crop.height, crop.width];
    let whole = [height.constant(0.0), height.constant(0.0), height, width];
    let mut new: Vec<ArrayExpr> =
        kept.into_iter().zip(whole).map(|(kept, whole)| kept.select_where(good, whole)).collect();
    new.push(place);
    (good.not(), new)
}

/// Draws a crop within the limits: the crop, whether one exists, and the advanced position in the random stream.
fn draw<'s, 'b>(
    limits: &Limits,
    words: StreamState<ArrayExpr<'s, 'b>>,
    [height, width]: [ArrayExpr<'s, 'b>; 2],
    place: ArrayExpr<'s, 'b>,
) -> (Crop<'s, 'b>, ArrayExpr<'s, 'b>, ArrayExpr<'s, 'b>) {
    let ratio = words.fraction_at(place) * f64::from(limits.aspect[1] - limits.aspect[0]) + f64::from(limits.aspect[0]);
    let place = place + 1.0;
    let [least, most] = limits.area.map(|part| {
        let rows = height.convert(DType::F32);
        let columns = width.convert(DType::F32);
        columns * f64::from(part) * rows
    });
    let highest = tallest(ratio, most, [height, width]);
    let first = nearest((least / ratio).sqrt());
    let first = highest.select_where(first.ge(highest), first);
    let is_drawn = first.lt(highest);
    let [more, behind] =
        words.integer_below((highest - first + 1.0).select_where(is_drawn, first.constant(1.0)), place);
    let (crop_height, place) = ((first + more).select_where(is_drawn, first), behind.select_where(is_drawn, place));
    let [crop_height, crop_width] = corrected(crop_height, ratio, [least, most]);
    let pixels = area(crop_height, crop_width);
    let fits = pixels.ge(least).and(pixels.le(most));
    let fits = fits.and(crop_width.le(width)).and(crop_height.le(height));
    let fits = fits.and(crop_width.gt(0.0)).and(crop_height.gt(0.0)).and(height.gt(0.0)).and(width.gt(0.0));
    let is_possible = f64::from(u8::from(limits.area[0] <= limits.area[1]));
    let fits = fits.and(ratio.constant(is_possible).gt(0.0));
    let offset = |size: ArrayExpr<'s, 'b>, whole: ArrayExpr<'s, 'b>, place: ArrayExpr<'s, 'b>| {
        let is_drawn = fits.and(size.lt(whole));
        let [offset, behind] = words.integer_below((whole - size).select_where(is_drawn, size.constant(1.0)), place);
        [offset.replace_where(is_drawn.not(), 0.0), behind.select_where(is_drawn, place)]
    };
    let [y, place] = offset(crop_height, height, place);
    let [x, place] = offset(crop_width, width, place);
    (Crop { y, x, height: crop_height, width: crop_width }, fits, place)
}

/// Largest height of a crop with this aspect ratio that has at most `most` pixels and fits in the image.
fn tallest<'s, 'b>(
    ratio: ArrayExpr<'s, 'b>,
    most: ArrayExpr<'s, 'b>,
    [height, width]: [ArrayExpr<'s, 'b>; 2],
) -> ArrayExpr<'s, 'b> {
    let by_area = nearest((most / ratio).sqrt());
    // The kernel's tolerance is a float constant.
    let by_width =
        ((width.convert(DType::F64) + 0.5 - f64::from(1e-7f32)) / ratio.convert(DType::F64)).convert(DType::S32);
    let by_width = (by_width - 1.0).select_where(scaled(by_width, ratio).gt(width), by_width);
    let highest = by_width.select_where(scaled(by_area, ratio).gt(width), by_area);
    height.select_where(highest.gt(height), highest)
}

/// Height and width of a crop, one row more or less if rounding moved its area out of the limits.
fn corrected<'s, 'b>(
    height: ArrayExpr<'s, 'b>,
    ratio: ArrayExpr<'s, 'b>,
    [least, most]: [ArrayExpr<'s, 'b>; 2],
) -> [ArrayExpr<'s, 'b>; 2] {
    let is_small = area(height, scaled(height, ratio)).lt(least);
    let height = (height + 1.0).select_where(is_small, height);
    let is_large = area(height, scaled(height, ratio)).gt(most);
    let height = (height - 1.0).select_where(is_large, height);
    [height, scaled(height, ratio)]
}

/// Whether a crop has pixels and covers at least the fraction `covered` of one of the objects.
fn covers<'s, 'b>(
    crop: Crop<'s, 'b>,
    covered: ArrayExpr<'s, 'b>,
    objects: [ArrayExpr<'s, 'b>; 4],
) -> ArrayExpr<'s, 'b> {
    let [y_min, x_min, y_max, x_max] = objects;
    let wide = |x: ArrayExpr<'s, 'b>| {
        x.build(|b| {
            let dims = b.dims(y_min.id).to_vec();
            b.broadcast(x.id, &dims, &[])
        })
    };
    let length =
        |low: ArrayExpr<'s, 'b>, high: ArrayExpr<'s, 'b>, start: ArrayExpr<'s, 'b>, size: ArrayExpr<'s, 'b>| {
            let end = high.apply_binary(ScalarOp::Minimum, wide(start + size));
            (end - low.max(wide(start))).max(0.0)
        };
    let common = area(length(y_min, y_max, crop.y, crop.height), length(x_min, x_max, crop.x, crop.width));
    let whole = area(y_max - y_min, x_max - x_min);
    let enough = whole.ge(1.0).and((common / whole).ge(wide(covered)));
    let any = enough.build(|b| {
        let none = b.scalar(DType::Pred, 0.0);
        b.reduce(enough.id, none, ScalarOp::Or, &[0])
    });
    any.and(area(crop.height, crop.width).ge(1.0))
}

/// Outputs of the op: begin and size for a slice of the image, and the corners of the crop as fractions of the image.
fn results(b: &mut Builder, crop: [InstId; 4], image: [InstId; 2], dtype: DType) -> Result<Vec<Value>> {
    let [y, x, height, width] = crop;
    let corners = build_formulas(b, &[&crop[..], &image].concat(), |v| {
        let [y, x, height, width, rows, columns] = [v[0], v[1], v[2], v[3], v[4], v[5]];
        Ok([(y, rows), (x, columns), (y + height, rows), (x + width, columns)]
            .map(|(pixel, of)| pixel.convert(DType::F32) / of.convert(DType::F32))
            .to_vec())
    })?;
    let (zero, all) = (b.scalar(DType::S32, 0.0), b.scalar(DType::S32, -1.0));
    let mut vector = |parts: &[InstId]| {
        let parts: Vec<InstId> = parts.iter().map(|&part| b.reshape(part, &dims![1])).collect();
        b.concatenate(&parts, 0)
    };
    let (begin, size, corners) = (vector(&[y, x, zero]), vector(&[height, width, all]), vector(&corners));
    let (begin, size) = (b.convert(begin, dtype), b.convert(size, dtype));
    let corners = b.reshape(corners, &dims![1, 1, 4]);
    Ok([begin, size, corners].map(Value::Array).into())
}
