//! Tables that calls change. Keys, values and their number are variables, with room for as many keys as the caller allows.
//!
//! The keys are kept in TensorFlow's order ([`super::order`]), the order of an export. A lookup compares a key with all keys;
//! insertion and removal process one key at a time. A call that inserts more keys than there is room for fails.
use super::hash::keys_as_words;
use super::order::{self, BUCKETS};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dims;
use crate::graph::{Attr, KEYS, Node, VALUES};
use crate::hlo::symbolic::PadDim;
use crate::hlo::symbolic::{Builder, InstId, Op, RuntimeCheck};
use crate::ops::array::gather::gather_along_axis;
use crate::ops::{LowerCtx, Value};
use crate::scalar::{Direction, ScalarOp};
use crate::symbolic::Dim;
use crate::tensor::{DType, Tensor};
use std::collections::HashMap;

/// Initial contents of a mutable table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableContents {
    keys: Tensor,
    values: Tensor,
    buckets: u64,
}

/// Initial contents of the table whose handle `node` gives, with values of sizes `row`; keys in `marks` are bucket markers and
/// not entries.
///
/// # Errors
/// `Code::BadGraph` if keys and values do not match.
pub fn table_contents(node: &Node, row: &[u64], marks: &[&Tensor]) -> Result<TableContents> {
    let dtype = |name: &str| {
        let found = node.tf_type(name).and_then(crate::graph::TfType::dtype);
        found.ok_or_else(|| Error::user(Code::BadAttr, format!("attribute `{name}` is missing or of the wrong kind")))
    };
    let (key_type, value_type) = (dtype("key_dtype")?, dtype("value_dtype")?);
    let size = row.iter().product::<u64>() as usize * value_type.bytes();
    let (Some(Attr::Tensor(keys)), Some(Attr::Tensor(values))) = (node.attr(KEYS), node.attr(VALUES)) else {
        let (keys, values) = (Vec::new(), Vec::new());
        return Ok(TableContents {
            keys: Tensor::new(key_type, vec![0], keys),
            values: Tensor::new(value_type, [&[0], row].concat(), values),
            buckets: 0,
        });
    };
    if keys.dtype != key_type || values.dtype != value_type || values.bytes.len() != keys.len() * size {
        let told = format!("keys {:?} and values {:?} of a table with values {row:?}", keys.dims, values.dims);
        return Err(Error::user(Code::BadGraph, told));
    }
    let marks: Vec<u64> = marks.iter().flat_map(|mark| keys_as_words(mark)).collect();
    let mut last: HashMap<u64, usize> = HashMap::new();
    let (mut numbers, mut places) = (Vec::new(), Vec::new());
    for (i, key) in keys_as_words(keys).into_iter().enumerate().filter(|(_, key)| !marks.contains(key)) {
        match last.get(&key) {
            Some(&at) => places[at] = i,
            None => {
                last.insert(key, numbers.len());
                numbers.push(key);
                places.push(i);
            }
        }
    }
    let (list, buckets) = order::iteration_order(&numbers);
    let width = key_type.bytes();
    let row_of = |bytes: &[u8], size: usize| -> Vec<u8> {
        list.iter().flat_map(|&i| &bytes[places[i] * size..(places[i] + 1) * size]).copied().collect()
    };
    let count = list.len() as u64;
    Ok(TableContents {
        keys: Tensor::new(key_type, vec![count], row_of(&keys.bytes, width)),
        values: Tensor::new(value_type, [&[count], row].concat(), row_of(&values.bytes, size)),
        buckets,
    })
}

impl TableContents {
    /// Number of keys.
    pub fn count(&self) -> usize {
        self.keys.len()
    }
    /// Keys in TensorFlow's export order, and their values.
    pub fn exported_constants(&self) -> [Tensor; 2] {
        [self.keys.clone(), self.values.clone()]
    }
    /// Variables of a table with these contents, named by their purpose, with room for `room` keys.
    pub fn variables(&self, room: u64) -> [(&'static str, Tensor); 3] {
        let grown = |t: &Tensor| {
            let dims = [&[room], &t.dims[1..]].concat();
            let size = dims.iter().product::<u64>() as usize * t.dtype.bytes();
            let mut bytes = t.bytes.to_vec();
            bytes.resize(size, 0);
            Tensor::new(t.dtype, dims, bytes)
        };
        let size = Tensor::of(&[2], &[self.count() as i64, self.buckets as i64]);
        [("keys", grown(&self.keys)), ("values", grown(&self.values)), ("size", size)]
    }
}

/// A table in the store, identified by the index of its first variable.
#[derive(Clone, Copy)]
pub struct TableId(usize);

/// Contents of a table at one point of the lowering.
#[derive(Clone, Copy)]
struct TableState {
    /// `[room]`: keys, of which the first `count` are valid.
    keys: InstId,
    /// `[room, r..]`: values.
    values: InstId,
    /// `s32[]`: number of keys.
    count: InstId,
    /// `u64[]`: number of hash buckets, which determines the key order; 0 if that order is never observed.
    buckets: InstId,
}

/// Mutable table whose handle is input 0.
pub fn mutable_table(cx: &LowerCtx) -> Option<TableId> {
    match cx.args.first() {
        Some(Value::Variable(id)) if cx.store.is_table(*id) => Some(TableId(*id)),
        _ => None,
    }
}

impl TableId {
    /// Current contents of the table.
    fn held(self, cx: &mut LowerCtx) -> Result<TableState> {
        let [keys, values, size] = [0, 1, 2].map(|part| cx.store.read(self.0 + part));
        let size = size?;
        let number = |b: &mut Builder, at: u64| {
            let one = b.slice_axis(size, 0, Dim::from(at), Dim::from(at + 1));
            b.reshape(one, &[])
        };
        let (count, buckets) = (number(cx.b, 0), number(cx.b, 1));
        let (count, buckets) = (cx.b.convert(count, DType::S32), cx.b.convert(buckets, DType::U64));
        Ok(TableState { keys: keys?, values: values?, count, buckets })
    }
    /// Stores new contents of the table.
    fn set(self, cx: &mut LowerCtx, held: TableState) -> Result<()> {
        let numbers = [held.count, held.buckets].map(|x| {
            let x = cx.b.convert(x, DType::S64);
            cx.b.reshape(x, &[Dim::from(1)])
        });
        let size = cx.b.concatenate(&numbers, 0);
        for (part, now) in [held.keys, held.values, size].into_iter().enumerate() {
            let (dtype, dims) = (cx.b.dtype(now), cx.b.dims(now).to_vec());
            cx.store.write(self.0 + part, now, dtype, &dims)?;
        }
        Ok(())
    }
    fn is_dense(self, cx: &LowerCtx) -> bool {
        !cx.store.marker_keys(self.0).is_empty()
    }
    /// Keys in input 1 as a vector. They must be of the table's type, and not be bucket markers of a dense table.
    fn keys(self, cx: &mut LowerCtx) -> Result<InstId> {
        let keys = cx.arg(1)?;
        let own = cx.store.dtype_and_dims(self.0).map(|(dtype, _)| dtype);
        if own != Some(cx.b.dtype(keys)) {
            let own = own.map_or_else(|| "none".to_string(), |t| t.to_string());
            let told = format!("keys of {}, and the table has keys of {own}", cx.b.dtype(keys));
            return Err(Error::user(Code::TypeMismatch, told));
        }
        for mark in cx.store.marker_keys(self.0).to_vec() {
            let mark = cx.b.constant(Tensor::scalar(mark));
            let (wide, mark) = (word(cx.b, keys), cx.b.convert(mark, DType::U64));
            let wrong = cx.b.compare(Direction::Eq, wide, mark);
            cx.fail_where(wrong, RuntimeCheck::Key);
        }
        Ok(keys)
    }
}

/// Keys as 64-bit words, sign-extended if signed.
fn word(b: &mut Builder, keys: InstId) -> InstId {
    let wide = if b.dtype(keys).is_signed() { b.convert(keys, DType::S64) } else { keys };
    b.convert(wide, DType::U64)
}

impl TableState {
    fn room(&self, b: &Builder) -> u64 {
        b.dims(self.keys)[0].guarded_count()
    }
    fn parts(&self) -> [InstId; 4] {
        [self.keys, self.values, self.count, self.buckets]
    }
    fn of([keys, values, count, buckets]: [InstId; 4]) -> TableState {
        TableState { keys, values, count, buckets }
    }
    /// Positions of the keys, `s32[room]`.
    fn places(&self, b: &mut Builder) -> InstId {
        let room = self.room(b);
        b.iota(DType::S32, &[Dim::from(room)], 0)
    }
    /// Whether each position holds `key`, `pred[room]`.
    fn holds(&self, b: &mut Builder, key: InstId) -> InstId {
        let places = self.places(b);
        let is_used = b.compare(Direction::Lt, places, self.count);
        let is_it = b.compare(Direction::Eq, self.keys, key);
        b.binary(ScalarOp::And, is_used, is_it)
    }
    /// First position at which `mask` is true; `room` if there is none.
    fn first(&self, b: &mut Builder, mask: InstId) -> InstId {
        let (places, room) = (self.places(b), self.room(b) as f64);
        let (behind, none) = (b.full_like(places, room), b.scalar(DType::S32, room));
        let places = b.select(mask, places, behind);
        b.reduce(places, none, ScalarOp::Minimum, &[0])
    }
    /// Contents with `key` and its value inserted at the position where TensorFlow lists it; unchanged if `grows` is false. The
    /// table must not contain the key.
    fn inserted(&self, b: &mut Builder, key: InstId, row: InstId, grows: InstId, listing: Listing) -> TableState {
        let room = self.room(b);
        let (none, behind) = (b.scalar(DType::S32, 0.0), b.scalar(DType::S32, room as f64));
        let at = match listing {
            Listing::AtEnd => self.count,
            Listing::ByBucket => {
                let places = self.places(b);
                let is_used = b.compare(Direction::Lt, places, self.count);
                let [own, all] = [key, self.keys].map(|x| {
                    let x = word(b, x);
                    b.binary(ScalarOp::Remainder, x, self.buckets)
                });
                let is_same = b.compare(Direction::Eq, all, own);
                let mask = b.binary(ScalarOp::And, is_used, is_same);
                let first = self.first(b, mask);
                let is_new = b.compare(Direction::Eq, first, behind);
                b.select(is_new, none, first)
            }
        };
        let at = b.select(grows, at, behind);
        let [keys, values] = [(self.keys, key), (self.values, row)].map(|(x, new)| with_row(b, x, new, at));
        let more = b.convert(grows, DType::S32);
        TableState { keys, values, count: b.add(self.count, more), buckets: self.buckets }
    }
}

/// Position at which a new key is inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// The new key follows all other keys.
    AtEnd,
    /// The new key is first in its hash bucket.
    ByBucket,
}

/// Array with `new` inserted at position `at` of the first axis; the elements behind move by one, and the last one is dropped.
fn with_row(b: &mut Builder, x: InstId, new: InstId, at: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (first, most) = (b.slice_axis(x, 0, Dim::from(0), Dim::from(1)), b.slice_axis(x, 0, Dim::from(0), dims[0] - 1));
    let moved = b.concatenate(&[first, most], 0);
    let places = b.iota(DType::S32, &dims, 0);
    let (is_before, is_there) = (b.compare(Direction::Lt, places, at), b.compare(Direction::Eq, places, at));
    let new = b.broadcast(new, &dims, &(1..dims.len()).collect::<Vec<_>>());
    let rest = b.select(is_there, new, moved);
    b.select(is_before, x, rest)
}

/// Array without element `at` of the first axis; unchanged if there is no such element.
fn without_row(b: &mut Builder, x: InstId, at: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let (most, last) = (b.slice_axis(x, 0, Dim::from(1), dims[0]), b.slice_axis(x, 0, dims[0] - 1, dims[0]));
    let moved = b.concatenate(&[most, last], 0);
    let places = b.iota(DType::S32, &dims, 0);
    let is_before = b.compare(Direction::Lt, places, at);
    b.select(is_before, x, moved)
}

/// Element `i` along the first axis of an array that has an extra element at its end.
fn element(b: &mut Builder, x: InstId, i: InstId) -> InstId {
    let dims = b.dims(x).to_vec();
    let zero = b.scalar(DType::S32, 0.0);
    let at: Vec<InstId> = std::iter::once(i).chain(dims[1..].iter().map(|_| zero)).collect();
    let one = b.add_inst(Op::DynamicSlice([&dims![1][..], &dims[1..]].concat()), &[&[x], &at[..]].concat());
    b.reshape(one, &dims[1..])
}

/// State of a loop over keys, with the iteration number in front.
struct Rounds {
    parts: Vec<InstId>,
}

impl Rounds {
    /// Emits a loop that runs `step` `count` times, or while a counter is below element `end` of the state. `step` gets the
    /// iteration number and the state, and returns the first elements of the new state.
    fn run(
        self,
        b: &mut Builder,
        end: End,
        step: impl FnOnce(&mut Builder, InstId, &[InstId]) -> Vec<InstId>,
    ) -> Vec<InstId> {
        let zero = b.scalar(DType::S32, 0.0);
        let start = b.tuple(&[&[zero], &self.parts[..]].concat());
        let shape = b.shape(start).clone();
        let cond = match end {
            End::After(count) => b.counter_below("keys_left", &shape, count),
            End::At(part) => {
                b.begin_computation("keys_left");
                let state = b.parameter(shape.clone());
                let (round, end) = (b.get_tuple_element(state, 0), b.get_tuple_element(state, part + 1));
                let root = b.compare(Direction::Lt, round, end);
                b.end_computation(root)
            }
        };
        b.begin_computation("next_key");
        let state = b.parameter(shape);
        let round = b.get_tuple_element(state, 0);
        let old: Vec<InstId> = (0..self.parts.len()).map(|i| b.get_tuple_element(state, i + 1)).collect();
        let new = step(b, round, &old);
        let one = b.scalar(DType::S32, 1.0);
        let next = b.add(round, one);
        let root = b.tuple(&[&[next], &new[..], &old[new.len()..]].concat());
        let body = b.end_computation(root);
        let last = b.add_inst(Op::While { cond, body }, &[start]);
        (0..self.parts.len()).map(|i| b.get_tuple_element(last, i + 1)).collect()
    }
}

/// Termination condition of a loop over keys.
enum End {
    After(Dim),
    At(usize),
}

/// Contents with more buckets if `grows` exceeds them: the keys, inserted into an empty table in their order.
fn rehashed(b: &mut Builder, held: TableState, grows: InstId) -> TableState {
    let (none, next) = (b.scalar(DType::S32, 0.0), b.convert(held.count, DType::U64));
    let is_full = b.compare(Direction::Ge, next, held.buckets);
    let needs = b.binary(ScalarOp::And, grows, is_full);
    let all = b.constant(Tensor::of(&[BUCKETS.len() as u64], &BUCKETS));
    let is_larger = b.compare(Direction::Gt, all, held.buckets);
    let most = b.constant(Tensor::scalar(BUCKETS[BUCKETS.len() - 1]));
    let larger = b.select(is_larger, all, most);
    let more = b.reduce(larger, most, ScalarOp::Minimum, &[0]);
    let buckets = b.select(needs, more, held.buckets);
    let end = b.select(needs, held.count, none);
    let count = b.select(needs, none, held.count);
    let parts = vec![held.keys, held.values, count, buckets, end, held.keys, held.values];
    let rounds = Rounds { parts };
    let end = rounds.run(b, End::At(4), |b, round, state| {
        let own = TableState::of([state[0], state[1], state[2], state[3]]);
        let (key, row) = (element(b, state[5], round), element(b, state[6], round));
        let always = b.constant(Tensor::from_bools(&[], &[true]));
        own.inserted(b, key, row, always, Listing::ByBucket).parts().to_vec()
    });
    TableState::of([end[0], end[1], end[2], end[3]])
}

/// Array with an extra zero element along the first axis, so that an empty array can be indexed.
fn with_one_more(b: &mut Builder, x: InstId) -> InstId {
    let zero = b.scalar(b.dtype(x), 0.0);
    let mut dims = vec![PadDim::default(); b.rank(x)];
    dims[0].high = Dim::from(1);
    b.pad(x, zero, &dims)
}

/// Lowers insertion and import: adds keys, or replaces the values of existing ones; an import first empties the table.
///
/// Shapes: `keys [k..]`, `values [k.., r..]`, values of the table `[room, r..]`.
pub fn insert(cx: &mut LowerCtx, id: TableId, is_import: bool) -> Result<Vec<Value>> {
    let (keys, values) = (id.keys(cx)?, cx.arg(2)?);
    let mut held = id.held(cx)?;
    let (places, row) = (cx.b.dims(keys).to_vec(), cx.b.dims(held.values)[1..].to_vec());
    if cx.b.dims(values) != [&places[..], &row].concat() || cx.b.dtype(values) != cx.b.dtype(held.values) {
        let (own, given) = (cx.b.shape(held.values).clone(), cx.b.shape(values).clone());
        return Err(cx.shape_mismatch(format!("values {given} for keys {places:?}, and the table has values {own}")));
    }
    let count = places.iter().product();
    let keys = if places.len() == 1 { keys } else { cx.b.reshape(keys, &[count]) };
    let values = if places.len() == 1 { values } else { cx.b.reshape(values, &[&[count], &row[..]].concat()) };
    let listing = if id.is_dense(cx) { Listing::AtEnd } else { Listing::ByBucket };
    let none = cx.b.scalar(DType::S32, 0.0);
    if is_import {
        held.count = none;
    }
    let room = held.room(cx.b);
    let [keys, values] = [keys, values].map(|x| with_one_more(cx.b, x));
    let parts = [&held.parts()[..], &[none, keys, values]].concat();
    let end = Rounds { parts }.run(cx.b, End::After(count), |b, round, state| {
        let held = TableState::of([state[0], state[1], state[2], state[3]]);
        let (key, row) = (element(b, state[5], round), element(b, state[6], round));
        let (held, more) = put(b, held, key, row, listing);
        let over = b.add(state[4], more);
        [&held.parts()[..], &[over]].concat()
    });
    let held = TableState::of([end[0], end[1], end[2], end[3]]);
    let asked = cx.b.add(held.count, end[4]);
    let owner = cx.store.name(id.0).to_string();
    cx.check_state_size(&owner, asked, room)?;
    id.set(cx, held)?;
    Ok(vec![])
}

/// Contents with the value of a key set, and 1 if there was no room for the key, else 0.
fn put(b: &mut Builder, held: TableState, key: InstId, row: InstId, listing: Listing) -> (TableState, InstId) {
    let room = b.scalar(DType::S32, held.room(b) as f64);
    let is_it = held.holds(b, key);
    let (at, dims) = (held.first(b, is_it), b.dims(held.values).to_vec());
    let is_new = b.compare(Direction::Eq, at, room);
    let has_room = b.compare(Direction::Lt, held.count, room);
    let grows = b.binary(ScalarOp::And, is_new, has_room);
    let is_it = b.broadcast(is_it, &dims, &[0]);
    let new = b.broadcast(row, &dims, &(1..dims.len()).collect::<Vec<_>>());
    let values = b.select(is_it, new, held.values);
    let mut held = TableState { values, ..held };
    if listing == Listing::ByBucket {
        held = rehashed(b, held, grows);
    }
    let after = held.inserted(b, key, row, grows, listing);
    let no_room = b.unary(ScalarOp::Not, has_room);
    let fails = b.binary(ScalarOp::And, is_new, no_room);
    (after, b.convert(fails, DType::S32))
}

/// Lowers removal of keys; missing ones are ignored.
pub fn remove(cx: &mut LowerCtx, id: TableId) -> Result<Vec<Value>> {
    let keys = id.keys(cx)?;
    let held = id.held(cx)?;
    let count = cx.b.dims(keys).iter().product();
    let keys = if cx.b.rank(keys) == 1 { keys } else { cx.b.reshape(keys, &[count]) };
    let keys = with_one_more(cx.b, keys);
    let parts = [&held.parts()[..], &[keys]].concat();
    let end = Rounds { parts }.run(cx.b, End::After(count), |b, round, state| {
        let held = TableState::of([state[0], state[1], state[2], state[3]]);
        let (key, room) = (element(b, state[4], round), b.scalar(DType::S32, held.room(b) as f64));
        let is_it = held.holds(b, key);
        let at = held.first(b, is_it);
        let [keys, values] = [held.keys, held.values].map(|x| without_row(b, x, at));
        let is_there = b.compare(Direction::Lt, at, room);
        let less = b.convert(is_there, DType::S32);
        TableState { keys, values, count: b.sub(held.count, less), ..held }.parts().to_vec()
    });
    id.set(cx, TableState::of([end[0], end[1], end[2], end[3]]))?;
    Ok(vec![])
}

/// Lowers a lookup: the value of each key, or `default` if the key is missing.
///
/// Shapes: `keys [k..]`, `default [r..]` or `[k.., r..]` -> `[k.., r..]`.
pub fn find(cx: &mut LowerCtx, id: TableId) -> Result<Vec<Value>> {
    let (keys, default) = (id.keys(cx)?, cx.arg(2)?);
    let held = id.held(cx)?;
    if cx.b.dtype(default) != cx.b.dtype(held.values) {
        let told = format!("a default of {}", cx.b.dtype(default));
        let own = format!("the table has values of {}", cx.b.dtype(held.values));
        return Err(Diagnostic::new(Code::TypeMismatch, told).note(own).into());
    }
    let (places, row) = (cx.b.dims(keys).to_vec(), cx.b.dims(held.values)[1..].to_vec());
    let out = [&places[..], &row].concat();
    if cx.b.dims(default) != row && cx.b.dims(default) != out {
        return Err(cx.shape_mismatch(format!("a default value of {:?} for values of {row:?}", cx.b.dims(default))));
    }
    let default = cx.b.broadcast_to(default, &out);
    let pairs = [&places[..], &[Dim::from(held.room(cx.b))]].concat();
    let last = places.len();
    let numbers = cx.b.iota(DType::S32, &pairs, last);
    let is_used = cx.b.compare(Direction::Lt, numbers, held.count);
    let asked = cx.b.broadcast(keys, &pairs, &(0..last).collect::<Vec<_>>());
    let own = cx.b.broadcast(held.keys, &pairs, &[last]);
    let is_it = cx.b.compare(Direction::Eq, asked, own);
    let is_it = cx.b.binary(ScalarOp::And, is_used, is_it);
    let none = cx.b.full_like(numbers, -1.0);
    let numbers = cx.b.select(is_it, numbers, none);
    let none = cx.b.scalar(DType::S32, -1.0);
    let at = cx.b.reduce(numbers, none, ScalarOp::Maximum, &[last]);
    let first = cx.b.full_like(at, 0.0);
    let is_there = cx.b.compare(Direction::Ge, at, first);
    let at = cx.b.max(at, first);
    let found = gather_along_axis(cx, held.values, at, 0, 0)?;
    let is_there = cx.b.broadcast(is_there, &out, &(0..last).collect::<Vec<_>>());
    let y = cx.b.select(is_there, found, default);
    cx.one_output(y)
}

/// Lowers the size of a table: its number of keys.
pub fn size(cx: &mut LowerCtx, id: TableId) -> Result<Vec<Value>> {
    let count = id.held(cx)?.count;
    let count = cx.b.convert(count, DType::S64);
    cx.one_output(count)
}

/// Lowers an export: all keys and their values, in TensorFlow's order.
pub fn export(cx: &mut LowerCtx, id: TableId) -> Result<Vec<Value>> {
    if id.is_dense(cx) {
        return Err(cx.unsupported_case(
            "a dense table lists its places, empty ones too, in an order that follows from all calls",
        ));
    }
    let held = id.held(cx)?;
    let room = held.room(cx.b);
    let count = cx.data_dependent_size(held.count, Dim::from(room), "the list of keys")?;
    Ok([held.keys, held.values].map(|x| Value::Array(cx.b.slice_axis(x, 0, Dim::from(0), count))).to_vec())
}
