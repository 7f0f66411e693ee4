//! `scan` as a loop: a computation is carried along one dimension, and what it gives at each place is stacked along it.
use std::collections::HashMap;

use super::expand_with;
use crate::diag::Result;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{ArrayShape, Builder, CompId, InstId, Module, Op, Shape};
use crate::optimize::rewrite::{Changed, rewrite};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Replaces scans, nested ones too.
pub fn expand(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    loop {
        let now = rewrite(module, |editor, id| {
            let Op::Foreign(f) = editor.op(id).clone() else { return Ok(None) };
            if f.opcode != "scan" {
                return Ok(None);
            }
            let of = |id: &InstId| editor.array(*id).cloned();
            let operands: Option<Vec<ArrayShape>> = editor.operands(id).iter().map(of).collect();
            let scan = operands.and_then(|operands| ScanCall::parse(&f, operands, editor.shape(id)));
            let Some(scan) = scan else { return Ok(None) };
            let module = editor.module().clone();
            expand_with(editor, id, |b, operands| scan.expand_to_loop(b, &module, operands))
        })?;
        if now == Changed::No {
            return Ok(changed);
        }
        changed = Changed::Yes;
    }
}

/// A scan call: applies (slices.., carries..) -> (outputs.., carries..) at each index of a dimension.
pub(super) struct ScanCall {
    /// The scanned dimension, which operands and outputs have in common.
    pub(super) axis: usize,
    /// Whether the scan begins at the last index.
    pub(super) reverse: bool,
    /// The computation of one step.
    pub(super) callee: CompId,
    /// Number of steps.
    pub(super) places: u64,
    /// The arrays that the computation gets slices of.
    pub(super) xs: Vec<ArrayShape>,
    /// The stacked results.
    pub(super) outputs: Vec<ArrayShape>,
    /// Number of values that each step passes to the next.
    pub(super) carries: usize,
}

impl ScanCall {
    fn parse(f: &ForeignOp, mut operands: Vec<ArrayShape>, result: &Shape) -> Option<ScanCall> {
        let (axis, carries) = (f.number("dimensions")?, f.number("num_carries").unwrap_or(0));
        operands.truncate(operands.len().checked_sub(carries).filter(|&n| n > 0)?);
        let parts = result.as_tuple()?;
        let outputs = parts.get(..parts.len().checked_sub(carries)?)?;
        let outputs: Vec<ArrayShape> = outputs.iter().map(|s| s.as_array().cloned()).collect::<Option<_>>()?;
        let places = *operands[0].dims.get(axis)?;
        if operands.iter().chain(&outputs).any(|x| x.dims.get(axis) != Some(&places)) || i32::try_from(places).is_err()
        {
            return None;
        }
        let &(_, callee) = f.calls.first()?;
        Some(ScanCall { axis, reverse: f.is_attr_true("is_reverse"), callee, places, xs: operands, outputs, carries })
    }

    /// The scan as a loop, whose state is the step, the arrays, the outputs so far, and the carries.
    pub(super) fn expand_to_loop(&self, b: &mut Builder, module: &Module, operands: &[InstId]) -> Option<InstId> {
        let (xs, carries) = operands.split_at(self.xs.len());
        let zero = b.scalar(DType::S32, 0.0);
        let made: Vec<InstId> = self.outputs.iter().map(|o| b.full(o.dtype, &o.dims, 0.0)).collect();
        let state = [&[zero], xs, &made, carries].concat();
        let state = b.tuple(&state);
        let shape = b.shape(state).clone();
        let callee = copy_computation(b, module, self.callee);
        let cond = b.counter_below("scan_goes_on", &shape, self.places);
        let body = self.body(b, callee, shape);
        let end = b.add_inst(Op::While { cond, body }, &[state]);
        let from = 1 + self.xs.len();
        let results: Vec<InstId> =
            (from..from + self.outputs.len() + self.carries).map(|i| b.get_tuple_element(end, i)).collect();
        Some(b.tuple(&results))
    }

    /// One step of the loop.
    fn body(&self, b: &mut Builder, callee: CompId, state: Shape) -> CompId {
        b.begin_computation("scan_step");
        let state = b.parameter(state);
        let (inputs, outputs) = (self.xs.len(), self.outputs.len());
        let all: Vec<InstId> =
            (0..1 + inputs + outputs + self.carries).map(|i| b.get_tuple_element(state, i)).collect();
        let (zero, one) = (b.scalar(DType::S32, 0.0), b.scalar(DType::S32, 1.0));
        let last = b.scalar(DType::S32, self.places.saturating_sub(1) as f64);
        let at = if self.reverse { b.binary(ScalarOp::Subtract, last, all[0]) } else { all[0] };
        let starts = |x: &ArrayShape| (0..x.rank()).map(|d| if d == self.axis { at } else { zero }).collect::<Vec<_>>();
        let mut args = Vec::with_capacity(inputs + self.carries);
        for (x, &array) in self.xs.iter().zip(&all[1..]) {
            let mut sizes = x.dims.clone();
            sizes[self.axis] = 1;
            let place = b.add_inst(Op::DynamicSlice(sizes.clone()), &[&[array], &starts(x)[..]].concat());
            sizes.remove(self.axis);
            args.push(b.reshape(place, &sizes));
        }
        args.extend(&all[1 + inputs + outputs..]);
        let made = b.add_inst(Op::Call(callee), &args);
        let parts: Vec<InstId> = match b.shape(made) {
            Shape::Tuple(parts) => (0..parts.len()).map(|i| b.get_tuple_element(made, i)).collect(),
            _ => vec![made],
        };
        let mut next = vec![b.add(all[0], one)];
        next.extend(&all[1..1 + inputs]);
        for ((o, &part), &so_far) in self.outputs.iter().zip(&parts).zip(&all[1 + inputs..]) {
            let mut sizes = o.dims.clone();
            sizes[self.axis] = 1;
            let row = b.reshape(part, &sizes);
            next.push(b.add_inst(Op::DynamicUpdateSlice, &[&[so_far, row], &starts(o)[..]].concat()));
        }
        next.extend(parts.iter().skip(outputs));
        let root = b.tuple(&next);
        b.end_computation(root)
    }
}

/// Copies a computation of `module`, and those that it calls, into the module under construction. Calls of a verified module are not
/// recursive.
fn copy_computation(b: &mut Builder, module: &Module, id: CompId) -> CompId {
    let comp = &module.comps[id];
    let mut called = HashMap::new();
    for callee in comp.insts.values().flat_map(|i| i.op.called_computations()) {
        called.entry(callee).or_insert_with(|| copy_computation(b, module, callee));
    }
    b.begin_computation(&comp.name);
    let mut new: HashMap<InstId, InstId> = HashMap::new();
    for &param in &comp.params {
        new.insert(param, b.parameter(comp[param].shape.clone()));
    }
    for id in comp.post_order() {
        let inst = &comp[id];
        if new.contains_key(&id) {
            continue;
        }
        let mut op = inst.op.clone();
        for callee in op.called_computations_mut() {
            *callee = called[callee];
        }
        let operands: Vec<InstId> = inst.operands.iter().map(|o| new[o]).collect();
        new.insert(id, b.push(op, &operands, inst.shape.clone()));
    }
    b.end_computation(new[&comp.root])
}
