//! Shape functions of the TensorList ops. Facts about a list's elements are attached to its handle.
use crate::diag::Result;
use crate::graph::TfType;
use crate::ops::ShapeCtx;
use crate::ops::fact::{Dims, ElementSpec, Fact, InferredInt};
use crate::ops::shape::{S32, S64};
use crate::ops::symbols::{InferredDim, UnknownReason};
use std::sync::Arc;

/// Element facts of the list in input 0; unknown ones if its handle has none.
fn list(cx: &mut ShapeCtx) -> Result<ElementSpec> {
    match &cx.arg(0)?.element {
        Some(element) => Ok((**element).clone()),
        None => {
            let dims = cx.unranked(UnknownReason::Value(0));
            Ok(ElementSpec {
                dtype: cx.attr_type("element_dtype"),
                dims,
                length: InferredInt::Unknown,
                open: false,
                variable: None,
            })
        }
    }
}

fn handle(element: ElementSpec) -> Result<Vec<Fact>> {
    Ok(vec![Fact::handle(TfType::Variant, element)])
}

/// Facts about a list of `length` elements of the shape that input 0 gives.
fn of_length(cx: &mut ShapeCtx, length: InferredInt) -> Result<Vec<Fact>> {
    let dims = cx.shape_from_value(0)?;
    let open = dims.known_sizes().is_none();
    handle(ElementSpec { dtype: cx.attr_type("element_dtype"), dims, length, open, variable: None })
}

pub(super) fn reserve(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let length = cx.partial_ints(1).and_then(|v| v.first().copied()).unwrap_or(InferredInt::Unknown);
    of_length(cx, length)
}

pub(super) fn empty(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    of_length(cx, InferredInt::Known(0))
}

pub(super) fn from_tensor(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let told = cx.shape_from_value(1)?;
    let (dims, length) = match cx.ranked_dims(0)?.as_deref() {
        Some([first, rest @ ..]) => (cx.merge_shapes(&Dims::ranked(rest), &told)?, (*first).into()),
        Some([]) => return Err(cx.shape_mismatch("a scalar has no elements to list")),
        None => (told, InferredInt::Unknown),
    };
    handle(ElementSpec {
        dtype: cx.attr_type("element_dtype").or(cx.dtype(0)),
        dims,
        length,
        open: false,
        variable: None,
    })
}

/// Element shape of a list after input `i` is stored in it, as elements may differ in shape.
fn with_item(cx: &mut ShapeCtx, before: &ElementSpec, item: Dims, i: usize) -> Dims {
    if before.open {
        return item;
    }
    match cx.merge_shapes(&before.dims, &item) {
        Ok(dims) => dims,
        Err(_) => cx.unranked(UnknownReason::Value(i)),
    }
}

pub(super) fn set_item(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let before = list(cx)?;
    let item = cx.dims(2)?;
    let dims = with_item(cx, &before, item, 2);
    let length = match (before.length, cx.constant_int(1)) {
        (length, _) if !cx.bool_attr("resize_if_index_out_of_bounds") => length,
        (InferredInt::Known(n), Some(at)) => InferredInt::Known(n.max(at.saturating_add(1))),
        _ => InferredInt::Unknown,
    };
    handle(ElementSpec { dims, length, open: false, ..before })
}

/// Shape of the rows of input `i`; `told` if its rank is not known.
fn rows_of(cx: &mut ShapeCtx, i: usize, told: Dims) -> Result<Dims> {
    match cx.ranked_dims(i)?.as_deref() {
        Some([_, rest @ ..]) => Ok(Dims::ranked(rest)),
        Some([]) => Err(cx.shape_mismatch("a scalar has no elements to list")),
        None => Ok(told),
    }
}

pub(super) fn scatter(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let told = cx.shape_from_value(2)?;
    let dims = rows_of(cx, 0, told)?;
    handle(ElementSpec {
        dtype: cx.attr_type("element_dtype"),
        dims,
        length: InferredInt::Unknown,
        open: false,
        variable: None,
    })
}

pub(super) fn scatter_into_existing(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let before = list(cx)?;
    let item = rows_of(cx, 1, before.dims.clone())?;
    let dims = with_item(cx, &before, item, 1);
    handle(ElementSpec { dims, length: InferredInt::Unknown, open: false, ..before })
}

/// Element facts of the list in input 0, merged with the shape that input `i` gives.
fn element(cx: &mut ShapeCtx, i: usize) -> Result<ElementSpec> {
    let list = list(cx)?;
    let told = cx.shape_from_value(i)?;
    let dims = cx.merge_shapes(&list.dims, &told)?;
    Ok(ElementSpec { dims, ..list })
}

fn item_type(cx: &ShapeCtx, list: &ElementSpec) -> Option<TfType> {
    list.dtype.or(cx.attr_type("element_dtype"))
}

pub(super) fn get_item(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let list = element(cx, 2)?;
    cx.one_output(item_type(cx, &list), list.dims)
}

/// Facts about an array with leading dimensions `first` and elements of the list behind them.
fn rows(cx: &mut ShapeCtx, first: &[InferredDim], list: ElementSpec) -> Result<Vec<Fact>> {
    let dims = match list.dims.as_ranked() {
        Some(dims) => [first, dims].concat().into(),
        None => cx.unranked(UnknownReason::Value(0)),
    };
    cx.one_output(item_type(cx, &list), dims)
}

pub(super) fn stack(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let list = element(cx, 1)?;
    let told = cx.node.int("num_elements").and_then(|n| u64::try_from(n).ok()).map(InferredDim::Known);
    let n = told.or(list.length.as_dim()).unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(0)));
    rows(cx, &[n], list)
}

pub(super) fn length(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let n = list(cx)?.length;
    match S32 {
        Some(dtype) if n != InferredInt::Unknown => Ok(vec![Fact::from_ints(dtype, &[], vec![n])]),
        dtype => cx.one_output(dtype, vec![]),
    }
}

pub(super) fn element_shape(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let (dims, dtype) = (list(cx)?.dims, cx.attr_type("shape_type"));
    match (dims.as_ranked(), dtype) {
        (Some(dims), Some(dtype)) => {
            Ok(vec![Fact::from_ints(dtype, &[dims.len() as u64], dims.iter().map(|&d| d.into()).collect())])
        }
        _ => {
            let n = cx.fresh_dim(UnknownReason::Value(0));
            cx.one_output(dtype, vec![n])
        }
    }
}

pub(super) fn gather(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let list = element(cx, 2)?;
    let n = cx.dims_of_rank(1, 1)?;
    rows(cx, &n, list)
}

pub(super) fn push_back(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let before = list(cx)?;
    let item = cx.dims(1)?;
    let dims = with_item(cx, &before, item, 1);
    let length = match before.length.as_dim() {
        Some(n) => cx.add(n, InferredDim::Known(1)).into(),
        None => InferredInt::Unknown,
    };
    handle(ElementSpec { dims, length, open: false, ..before })
}

pub(super) fn pop_back(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let list = element(cx, 1)?;
    let length = match list.length.as_dim() {
        Some(n) => cx.sub(n, InferredDim::Known(1)).into(),
        None => InferredInt::Unknown,
    };
    let item = Fact::new(item_type(cx, &list), list.dims.clone());
    let mut rest = Fact::handle(TfType::Variant, list.clone());
    rest.element = Some(Arc::new(ElementSpec { length, ..list }));
    Ok(vec![rest, item])
}

pub(super) fn concat(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let list = list(cx)?;
    let n = list.length.as_dim().unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(0)));
    let dims = match list.dims.as_ranked() {
        Some([first, rest @ ..]) => {
            let all = cx.mul(n, *first);
            [&[all], rest].concat().into()
        }
        Some([]) => return Err(cx.shape_mismatch("scalars can't be concatenated")),
        None => cx.unranked(UnknownReason::Value(0)),
    };
    Ok(vec![Fact::new(item_type(cx, &list), dims), Fact::new(S64, vec![n].into())])
}

pub(super) fn resize(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let before = list(cx)?;
    let length = cx.partial_ints(1).and_then(|v| v.first().copied()).unwrap_or(InferredInt::Unknown);
    handle(ElementSpec { length, ..before })
}

pub(super) fn split(cx: &mut ShapeCtx) -> Result<Vec<Fact>> {
    let told = cx.shape_from_value(1)?;
    let lengths = cx.constant_ints(2);
    let n = cx.dims_of_rank(2, 1)?[0];
    let dims = match cx.ranked_dims(0)?.as_deref() {
        Some([_, rest @ ..]) => {
            let same = lengths.as_ref().filter(|l| l.windows(2).all(|w| w[0] == w[1])).and_then(|l| l.first());
            let first = same.and_then(|&n| u64::try_from(n).ok()).map(InferredDim::Known);
            let first = first.unwrap_or_else(|| cx.fresh_dim(UnknownReason::Value(2)));
            cx.merge_shapes(&[&[first], rest].concat().into(), &told)?
        }
        Some([]) => return Err(cx.shape_mismatch("a scalar can't be split")),
        None => told,
    };
    handle(ElementSpec {
        dtype: cx.attr_type("element_dtype").or(cx.dtype(0)),
        dims,
        length: n.into(),
        open: false,
        variable: None,
    })
}
