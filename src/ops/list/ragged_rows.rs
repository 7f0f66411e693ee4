//! Lists of RaggedTensors of one level, which `tf.map_fn` collects as rows: arrays that differ in their first size alone.
//!
//! The elements are rows of one array, zero-padded to the size of the largest, so that loops, whose state has fixed sizes, can
//! fill such a list.
use crate::diag::{Code, Error, Result};
use crate::hlo::symbolic::{Builder, Dim, InstId};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::value::{HeterogeneousList, RaggedTensorList, RaggedValue};
use crate::ops::{LowerCtx, Value, ragged};
use crate::tensor::DType;
use std::sync::Arc;

impl RaggedTensorList {
    /// List of `dims[0]` empty elements, each with room for `dims[1]` rows of sizes `dims[2..]`.
    pub fn empty(b: &mut Builder, dtype: DType, dims: &[Dim], name: &Arc<str>) -> RaggedTensorList {
        let (buffer, lengths) = (b.full(dtype, dims, 0.0), b.full(DType::S32, &dims[..1], 0.0));
        RaggedTensorList { buffer, lengths, name: name.clone() }
    }

    /// List with `item` stored at a scalar index.
    fn set(&self, cx: &mut LowerCtx, index: InstId, item: InstId) -> Result<RaggedTensorList> {
        let (dims, own) = (cx.b.dims(self.buffer).to_vec(), cx.b.dims(item).to_vec());
        if own.len() + 1 != dims.len() || own[1..] != dims[2..] || cx.b.dtype(item) != cx.b.dtype(self.buffer) {
            let told = format!("rows of {} into the list {}", cx.b.shape(item), cx.b.shape(self.buffer));
            return Err(cx.shape_mismatch(told));
        }
        let (count, most) = (own[0], dims[1]);
        if count > most {
            let told = format!("the list `{}` gets longer rows in a loop than it has room for", self.name);
            return Err(Error::user(Code::DynamicShape, told));
        }
        if dims[0].is_zero() {
            return Err(cx.shape_mismatch("the list has no elements"));
        }
        let roomy = cx.b.pad_axis(item, 0, most);
        let filled = cx.b.slice_axis(roomy, 0, Dim::from(0), most);
        let row = super::as_row(cx.b, filled);
        let length = cx.b.numbers(DType::S32, &[count]);
        let (buffer, lengths) =
            (super::put(cx.b, self.buffer, row, index), super::put(cx.b, self.lengths, length, index));
        Ok(RaggedTensorList { buffer, lengths, name: self.name.clone() })
    }

    /// Element at a scalar index.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::bounded_size`].
    pub fn get(&self, cx: &mut LowerCtx, index: InstId) -> Result<RaggedValue> {
        let most = cx.b.dims(self.buffer)[1];
        let (filled, length) = (super::row(cx.b, self.buffer, index), super::row(cx.b, self.lengths, index));
        let count = cx.bounded_size(length, most, "an element of the list")?;
        Ok(RaggedValue { splits: Vec::new(), values: cx.first_elements(filled, count)?, is_rows: false })
    }

    /// All elements as the rows of a RaggedTensor.
    ///
    /// # Errors
    /// Errors of [`LowerCtx::bounded_size`].
    pub fn stacked(&self, cx: &mut LowerCtx) -> Result<RaggedValue> {
        let dims = cx.b.dims(self.buffer).to_vec();
        let (room, most) = (dims[0].saturating_mul(dims[1]), dims[1]);
        let (splits, total) = ragged::row_splits(cx, self.lengths);
        let total = cx.bounded_size(total, room, "the list")?;
        let (row, place) = ragged::row_positions(cx, splits, total)?;
        let stride = cx.b.full(DType::S32, &[total], most);
        let begin = cx.b.mul(row, stride);
        let from = cx.b.add(begin, place);
        let flat = cx.b.reshape(self.buffer, &[&[room][..], &dims[2..]].concat());
        let values = gather_along_axis(cx, flat, from, 0, 0)?;
        let splits = vec![cx.b.convert(splits, DType::S64)];
        Ok(RaggedValue { splits, values, is_rows: true })
    }
}

/// List in input 0 with input 2 stored at the index in input 1, if the list holds RaggedTensors, or is empty and must become so
/// because the index is not constant.
pub(super) fn set_ragged_item(cx: &mut LowerCtx) -> Result<Option<RaggedTensorList>> {
    let Some(Value::Ragged(RaggedValue { splits, values, is_rows: false })) = cx.args.get(2) else { return Ok(None) };
    let (levels, item) = (splits.len(), *values);
    let list = match &cx.args[0] {
        Value::RaggedList(list) => list.clone(),
        Value::Heterogeneous(list) if list.is_unset() && levels == 0 && cx.constant_int(1).is_err() => {
            let (list, own) = (list.clone(), cx.b.dims(item).to_vec());
            if own.is_empty() {
                return Ok(None);
            }
            let room = cx.b.size_upper_bound(own[0]);
            let dims = [&[list.length(), room][..], &own[1..]].concat();
            RaggedTensorList::empty(cx.b, cx.b.dtype(item), &dims, &list.name)
        }
        _ => return Ok(None),
    };
    if levels > 0 {
        return Err(cx.unsupported_case("rows of rows are put into a list of rows"));
    }
    let index = cx.arg(1)?;
    list.set(cx, index, item).map(Some)
}

impl HeterogeneousList {
    /// Number of elements of the list.
    pub fn length(&self) -> Dim {
        self.open_length.unwrap_or_else(|| Dim::from(self.items.len()))
    }
    /// Whether no element of the list was ever set.
    pub fn is_unset(&self) -> bool {
        self.items.iter().all(Option::is_none)
    }
}
