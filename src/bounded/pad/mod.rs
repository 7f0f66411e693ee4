//! Dynamic padding: turns a module for exactly its upper bounds into one for every size up to them.
//!
//! Arrays keep the dimensions of the bound; elements beyond the actual sizes are padding with unspecified values. Most instructions can't
//! carry padding to a valid element, and are emitted unchanged. Where one could (a sum, a dot product or a sort along a dynamic axis), the
//! padding of its operands is filled with a neutral value, as XLA's `DynamicPadder` does. Instructions that are not known to be right are
//! refused.
mod slicing;
mod mask;
mod gather_scatter;
mod reshape;
mod opcodes;
mod split_axes;
mod windows;

use super::extent::Extent;
use super::size_exprs::{ComputationExprs, InstExprs, SizeObstacle, obstacle_at};
use super::steps::{Progression, SizeSteps};
use crate::hlo::{Builder, CompId, Inst, InstId, Literal, Module, Op, Shape};
use crate::symbolic::Interval;
use crate::tensor::{DType, Tensor};
use mask::EmittedSizes;
use split_axes::SplitAxis;
use std::collections::HashMap;

/// A module at its upper bounds, with everything that dynamic padding needs to know of its sizes.
pub struct PaddedModule<'a> {
    /// Module of the function with every size at its upper bound.
    pub module: &'a Module,
    /// Size expressions of each reachable computation, callees first.
    pub forms: &'a [ComputationExprs],
    /// Strides and offsets of the caller's sizes.
    pub steps: &'a SizeSteps,
    /// Number of data-dependent sizes; those of the entry computation are the last elements of its root tuple.
    pub data_size_count: usize,
    /// Range of each size.
    pub ranges: Vec<Interval>,
    /// Number of the entry's parameters that are arguments; the caller's sizes become parameters behind these.
    pub args: usize,
    /// Number of leading elements of the root tuple that are results, and the derived sizes that are appended as further results.
    pub results: (usize, &'a [Extent]),
    /// Number of elements of the root tuple that are values of run-time checks. They stand between results and data-dependent sizes there, and
    /// behind the derived sizes in the padded module.
    pub bound_checks: usize,
}

impl PaddedModule<'_> {
    /// Number of the caller's sizes.
    fn given(&self) -> usize {
        self.steps.all.len()
    }
    /// Number of all sizes, the caller's first.
    fn sizes(&self) -> usize {
        self.given() + self.data_size_count
    }
    /// Range of an expression over all sizes; `None` where it has no value.
    fn within(&self, of: &Extent) -> Option<Interval> {
        of.extremes(&Interval::lookup_by_index(&self.ranges))
    }
    /// Whether `a >= b` for all sizes.
    fn is_at_least(&self, a: &Extent, b: &Extent) -> bool {
        a.sub(b).and_then(|more| self.within(&more)).is_some_and(|more| more.least >= 0)
    }
    /// Emits the module for every size up to the bounds. Errors: the first instruction that is not known to be right for padded arrays.
    pub fn emit(&self) -> Result<Module, SizeObstacle> {
        let reachable = self.module.reachable();
        let mut kinds: HashMap<CompId, ComputationRole> = HashMap::from([(self.module.entry, ComputationRole::Entry)]);
        for inst in reachable.iter().flat_map(|&c| self.module.comps[c].insts.values()) {
            match inst.op {
                Op::While { cond, body } => {
                    kinds.extend([(cond, ComputationRole::Control), (body, ComputationRole::Body)])
                }
                Op::Conditional(_) | Op::Call(_) => {
                    kinds.extend(inst.op.called_computations().into_iter().map(|c| (c, ComputationRole::Control)));
                }
                _ => {}
            }
        }
        let mut b = Builder::new(&self.module.name);
        let mut comps = HashMap::new();
        for (&id, form) in reachable.iter().zip(self.forms) {
            let is_entry = id == self.module.entry;
            if !is_entry {
                b.begin_computation(&self.module.comps[id].name);
            }
            let kind = kinds.get(&id).copied().unwrap_or(ComputationRole::Scalar);
            let walk = ComputationPadder::new(self, &mut b, (id, form), kind, &comps);
            let root = walk.emit_computation()?;
            if is_entry {
                let failed = |what: String| SizeObstacle { node: Default::default(), what };
                return b.finish(root).map_err(|e| failed(format!("{e:?}")));
            }
            comps.insert(id, b.end_computation(root));
        }
        Err(SizeObstacle { node: Default::default(), what: "there is no entry".to_string() })
    }
}

/// Role of a computation, by the instruction that calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComputationRole {
    Entry,
    /// A condition, branch or callee: takes the sizes from its caller.
    Control,
    /// The body of a loop: takes the sizes and passes them to the next iteration.
    Body,
    /// A computation on scalars, as of a reduction: takes no sizes.
    Scalar,
}

/// Emits one computation of the padded module.
struct ComputationPadder<'a> {
    all: &'a PaddedModule<'a>,
    b: &'a mut Builder,
    id: CompId,
    form: &'a ComputationExprs,
    kind: ComputationRole,
    comps: &'a HashMap<CompId, CompId>,
    scope: EmittedSizes,
    /// Parameters with the caller's sizes, not yet converted to counts of steps.
    size_params: Vec<InstId>,
    /// New instruction for each old one.
    values: HashMap<InstId, InstId>,
    /// Split axis of each old instruction whose new value has one.
    split: HashMap<InstId, SplitAxis>,
    /// New value with the split axis merged again, for each old instruction in `split` where one was needed.
    merged: HashMap<InstId, InstId>,
    /// Position of each instruction in the table of size expressions.
    places: HashMap<InstId, usize>,
}

/// Reason why an instruction can't be emitted for padded arrays.
enum Refusal {
    /// The op is not known to be right on padded arrays; the text says why.
    Unknown(&'static str),
    /// A number does not fit into 32 bits, or a size has not been computed yet.
    Size,
}

type EmitResult = Result<InstId, Refusal>;

impl<'a> ComputationPadder<'a> {
    fn new(
        all: &'a PaddedModule<'a>,
        b: &'a mut Builder,
        (id, form): (CompId, &'a ComputationExprs),
        kind: ComputationRole,
        comps: &'a HashMap<CompId, CompId>,
    ) -> Self {
        let places = form.order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        ComputationPadder {
            all,
            b,
            id,
            form,
            kind,
            comps,
            scope: EmittedSizes::default(),
            size_params: Vec::new(),
            values: HashMap::new(),
            split: HashMap::new(),
            merged: HashMap::new(),
            places,
        }
    }

    fn emit_computation(mut self) -> Result<InstId, SizeObstacle> {
        let comp = &self.all.module.comps[self.id];
        self.emit_parameters();
        for &id in &self.form.order {
            if let Op::Parameter(_) = comp.insts[id].op {
                continue;
            }
            let inst = &comp.insts[id];
            self.b.metadata = inst.metadata.clone();
            let new = self.emit_instruction(inst, id).map_err(|refusal| refusal_obstacle(inst, &refusal))?;
            if let Some(what) = self.b.take_error() {
                return Err(obstacle_at(inst, what));
            }
            self.values.insert(id, new);
            for &(number, _) in comp.sizes.iter().filter(|size| size.1 == id) {
                let count = self.b.convert(new, DType::S32);
                self.scope.sizes[self.all.given() + number] = Some(self.b.reshape(count, &[]));
            }
        }
        self.b.metadata = Default::default();
        let root = &comp.insts[comp.root];
        self.emit_root(comp.root).map_err(|refusal| refusal_obstacle(root, &refusal))
    }

    /// Emits the parameters, with additional ones for the sizes.
    fn emit_parameters(&mut self) {
        let comp = &self.all.module.comps[self.id];
        let shapes: Vec<(InstId, Shape)> = comp.params.iter().map(|&p| (p, comp.insts[p].shape.clone())).collect();
        let scalar = || Shape::array(DType::S32, []);
        match self.kind {
            ComputationRole::Scalar => {
                for (old, shape) in shapes {
                    let new = self.b.parameter(shape);
                    self.values.insert(old, new);
                }
            }
            ComputationRole::Entry => {
                for (i, (old, shape)) in shapes.into_iter().enumerate() {
                    if i == self.all.args {
                        self.size_params = (0..self.all.given()).map(|_| self.b.parameter(scalar())).collect();
                    }
                    let new = self.b.parameter(shape);
                    self.values.insert(old, new);
                }
                while self.size_params.len() < self.all.given() {
                    let size = self.b.parameter(scalar());
                    self.size_params.push(size);
                }
                let numbers = self.size_params.clone().into_iter().zip(&self.all.steps.all);
                let mut sizes: Vec<Option<InstId>> = numbers.map(|(n, &step)| step_count(self.b, n, step)).collect();
                sizes.resize(self.all.sizes(), None);
                self.scope = EmittedSizes::of(sizes);
            }
            ComputationRole::Control | ComputationRole::Body => {
                // one tuple with all elements of the parameters, then the sizes
                let mut parts: Vec<Shape> = shapes.iter().flat_map(|(_, s)| parts_of(s)).collect();
                parts.extend((0..self.all.sizes()).map(|_| scalar()));
                let whole = self.b.parameter(Shape::Tuple(parts));
                let mut next = 0;
                for (old, shape) in &shapes {
                    let count = parts_of(shape).len();
                    let own: Vec<InstId> = (next..next + count).map(|i| self.b.get_tuple_element(whole, i)).collect();
                    next += count;
                    let new = self.value_of_parts(&own, shape);
                    self.values.insert(*old, new);
                }
                let sizes = (next..next + self.all.sizes()).map(|i| Some(self.b.get_tuple_element(whole, i))).collect();
                self.scope = EmittedSizes::of(sizes);
            }
        }
    }

    /// Value of `shape` made of its parts: a tuple, or the only part itself.
    fn value_of_parts(&mut self, parts: &[InstId], shape: &Shape) -> InstId {
        match (shape, parts) {
            (Shape::Tuple(_), parts) => self.b.tuple(parts),
            (_, [one]) => *one,
            _ => self.b.tuple(parts),
        }
    }

    /// Parts of a value: the elements of a tuple, or the array itself.
    fn parts(&mut self, x: InstId) -> Vec<InstId> {
        match self.b.shape(x).as_tuple().map(<[Shape]>::len) {
            Some(count) => (0..count).map(|i| self.b.get_tuple_element(x, i)).collect(),
            None => vec![x],
        }
    }

    /// Values of all sizes; 0 for those that have not been computed yet and are not used.
    fn size_values(&mut self) -> Vec<InstId> {
        let known = self.scope.sizes.clone();
        known.into_iter().map(|s| s.unwrap_or_else(|| self.b.constant(Tensor::scalar(0i32)))).collect()
    }

    /// Tuple of the parts of `values` and the sizes, as a computation of [`ComputationRole::Control`] takes them.
    fn pack_with_sizes(&mut self, values: &[InstId]) -> InstId {
        let mut all: Vec<InstId> = values.iter().flat_map(|&v| self.parts(v)).collect();
        all.extend(self.size_values());
        self.b.tuple(&all)
    }

    fn emit_root(&mut self, root: InstId) -> EmitResult {
        let value = self.value_with_merged_axes(root)?;
        match self.kind {
            ComputationRole::Scalar | ComputationRole::Control => Ok(value),
            ComputationRole::Body => Ok(self.pack_with_sizes(&[value])),
            ComputationRole::Entry => {
                let (results, derived) = self.all.results;
                let mut parts = self.parts(value);
                parts.truncate(parts.len().saturating_sub(self.all.module.entry().sizes.len()));
                let bound_checks = parts.split_off(parts.len().saturating_sub(self.all.bound_checks));
                let state = parts.split_off(results.min(parts.len()));
                for extent in derived {
                    let size = self.size_value(extent)?;
                    parts.push(size);
                }
                parts.extend(bound_checks);
                for i in 0..self.size_params.len() {
                    if !self.all.steps.all[i].is_every_size() {
                        let whole = self.size_value(&self.all.steps.caller_size_expr(i))?;
                        parts.push(self.b.sub(self.size_params[i], whole));
                    }
                }
                parts.extend(state);
                Ok(self.b.tuple(&parts))
            }
        }
    }

    /// Value of a size expression, as `s32[]`.
    fn size_value(&mut self, extent: &Extent) -> EmitResult {
        self.scope.value(self.b, extent).ok_or(Refusal::Size)
    }

    /// Size expressions of an instruction.
    fn varying(&self, id: InstId) -> &'a InstExprs {
        &self.form.varying[self.places[&id]]
    }

    fn emit_instruction(&mut self, inst: &Inst, id: InstId) -> EmitResult {
        if let Some(written) = self.emit_with_split_axis(inst, id)? {
            return Ok(written);
        }
        let operands =
            inst.operands.iter().map(|&o| self.value_with_merged_axes(o)).collect::<Result<Vec<InstId>, Refusal>>()?;
        match &inst.op {
            Op::Constant(Literal::Array(t)) => return self.emit_constant(t, self.varying(id)),
            Op::While { cond, body } => {
                let state = self.pack_with_sizes(&operands);
                let shape = self.b.shape(state).clone();
                let op = Op::While { cond: self.comps[cond], body: self.comps[body] };
                let out = self.b.push(op, &[state], shape);
                let count = parts_of(&inst.shape).len();
                let parts: Vec<InstId> = (0..count).map(|i| self.b.get_tuple_element(out, i)).collect();
                return Ok(self.value_of_parts(&parts, &inst.shape));
            }
            Op::Conditional(branches) => {
                let mut all = vec![operands[0]];
                for &operand in &operands[1..] {
                    let packed = self.pack_with_sizes(&[operand]);
                    all.push(packed);
                }
                let op = Op::Conditional(branches.iter().map(|c| self.comps[c]).collect());
                return Ok(self.b.push(op, &all, inst.shape.clone()));
            }
            Op::Call(comp) => {
                let packed = self.pack_with_sizes(&operands);
                return Ok(self.b.push(Op::Call(self.comps[comp]), &[packed], inst.shape.clone()));
            }
            _ => {}
        }
        let op = self.with_new_computations(&inst.op);
        let varies =
            self.varying(id).any_dim_varies() || inst.operands.iter().any(|&o| self.varying(o).any_dim_varies());
        if !varies {
            return Ok(self.b.push(op, &operands, inst.shape.clone()));
        }
        self.emit_padded(&Inst { op, operands: inst.operands.clone(), ..inst.clone() }, id, &operands)
    }

    /// Op with its called computations replaced by those of the new module.
    fn with_new_computations(&self, op: &Op) -> Op {
        let mut op = op.clone();
        for called in op.called_computations_mut() {
            *called = self.comps[&*called];
        }
        op
    }

    /// Emits a constant; elements that depend on sizes are computed from these.
    fn emit_constant(&mut self, value: &Tensor, varying: &InstExprs) -> EmitResult {
        let Some(extents) = &varying.elements else { return Ok(self.b.constant(value.clone())) };
        let mut parts = Vec::with_capacity(extents.len());
        for extent in extents {
            let number = self.size_value(extent)?;
            let number = self.b.convert(number, value.dtype);
            parts.push(self.b.reshape(number, &[1]));
        }
        let line = self.b.concatenate(&parts, 0);
        Ok(self.b.reshape(line, &value.dims))
    }
}

/// Emits the step count of a size, `(size - offset) / stride`; `None` where the stride or offset exceeds 32 bits.
fn step_count(b: &mut Builder, size: InstId, step: Progression) -> Option<InstId> {
    if step.is_every_size() {
        return Some(size);
    }
    let Progression { stride: by, offset: rest } = step;
    let rest = mask::int_constant(b, i64::try_from(rest).ok()?)?;
    let by = mask::int_constant(b, i64::try_from(by).ok()?)?;
    let whole = b.sub(size, rest);
    Some(b.div(whole, by))
}

/// Shapes of a value's parts: those of a tuple's elements, or the shape itself.
fn parts_of(shape: &Shape) -> Vec<Shape> {
    match shape {
        Shape::Tuple(parts) => parts.clone(),
        other => vec![other.clone()],
    }
}

fn refusal_obstacle(inst: &Inst, refusal: &Refusal) -> SizeObstacle {
    match refusal {
        Refusal::Unknown(what) => obstacle_at(inst, format!("`{}` {what}", inst.op.name())),
        Refusal::Size => obstacle_at(inst, format!("a number of `{}` is beyond 32 bits", inst.op.name())),
    }
}
