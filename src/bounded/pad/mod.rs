//! A module for exactly its bounds becomes one for every size up to them.
//!
//! Arrays keep the sizes of the bound, and what lies beyond the actual sizes is padding of any value. Most instructions can't bring
//! padding to an element that counts, and stay. Where one could (a sum, a product, a sort along an axis that varies) its operands are
//! masked, as XLA's `DynamicPadder` does. What is not known to be right is refused.
mod join;
mod mask;
mod place;
mod reshape;
mod rules;
mod split;
mod windows;

use super::extent::Extent;
use super::form::{Departure, Form, Varying, departure};
use super::steps::{Progression, Steps};
use crate::hlo::{Builder, CompId, Inst, InstId, Literal, Module, Op, Shape};
use crate::symbolic::Interval;
use crate::tensor::{DType, Tensor};
use mask::SizeScalars;
use split::SplitAxis;
use std::collections::HashMap;

/// A module with what varies in it.
pub struct Padded<'a> {
    /// For exactly the bounds.
    pub module: &'a Module,
    /// One a computation that the entry reaches, in that order.
    pub forms: &'a [Form],
    /// The steps of the sizes that the caller says.
    pub steps: &'a Steps,
    /// How many the values say; those of the entry are the last parts of its root.
    pub found: usize,
    /// The range of each size.
    pub ranges: Vec<Interval>,
    /// How many parameters of the entry are arguments; the sizes become parameters behind them.
    pub args: usize,
    /// How many parts of the root are results, and what follows from the sizes and becomes results behind them.
    pub results: (usize, &'a [Extent]),
    /// How many parts of the root, before those of the values' sizes, are what the call asks for: results behind those.
    pub claims: usize,
}

impl Padded<'_> {
    /// How many sizes the caller says.
    fn given(&self) -> usize {
        self.steps.all.len()
    }
    /// How many sizes there are, those that the caller says first.
    fn sizes(&self) -> usize {
        self.given() + self.found
    }
    /// The range of an expression over all sizes.
    fn within(&self, of: &Extent) -> Option<Interval> {
        of.extremes(&Interval::of_each(&self.ranges))
    }
    /// Whether one number is never less than another.
    fn is_at_least(&self, of: &Extent, other: &Extent) -> bool {
        of.sub(other).and_then(|more| self.within(&more)).is_some_and(|more| more.least >= 0)
    }
    /// The module for every size up to the bounds. Errors: at what is not known to be right for padded arrays.
    pub fn module(&self) -> Result<Module, Departure> {
        let reachable = self.module.reachable();
        let mut kinds: HashMap<CompId, Kind> = HashMap::from([(self.module.entry, Kind::Entry)]);
        for inst in reachable.iter().flat_map(|&c| self.module.comps[c].insts.values()) {
            match inst.op {
                Op::While { cond, body } => kinds.extend([(cond, Kind::Control), (body, Kind::Body)]),
                Op::Conditional(_) | Op::Call(_) => {
                    kinds.extend(inst.op.called_computations().into_iter().map(|c| (c, Kind::Control)));
                }
                _ => {}
            }
        }
        let mut b = Builder::new(&self.module.name);
        let mut comps = HashMap::new();
        for (&id, form) in reachable.iter().zip(self.forms) {
            let is_entry = id == self.module.entry;
            if !is_entry {
                b.begin(&self.module.comps[id].name);
            }
            let kind = kinds.get(&id).copied().unwrap_or(Kind::Scalar);
            let walk = Walk::new(self, &mut b, (id, form), kind, &comps);
            let root = walk.run()?;
            if is_entry {
                let failed = |what: String| Departure { node: Default::default(), what };
                return b.finish(root).map_err(|e| failed(format!("{e:?}")));
            }
            comps.insert(id, b.end(root));
        }
        Err(Departure { node: Default::default(), what: "there is no entry".to_string() })
    }
}

/// The role of a computation, by the instruction that calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Entry,
    /// Of conditions, branches and calls: it gets the sizes from its caller.
    Control,
    /// Of loops: it gets the sizes and hands them to its next round.
    Body,
    /// Of scalars: it sees no sizes.
    Scalar,
}

/// One computation while it is written anew.
struct Walk<'a> {
    all: &'a Padded<'a>,
    b: &'a mut Builder,
    id: CompId,
    form: &'a Form,
    kind: Kind,
    comps: &'a HashMap<CompId, CompId>,
    scope: SizeScalars,
    /// The sizes that the caller says, as the caller says them.
    said: Vec<InstId>,
    /// The new values of instructions.
    values: HashMap<InstId, InstId>,
    /// The axes that are split in new values.
    split: HashMap<InstId, SplitAxis>,
    /// The new values of those instructions with the axes merged, where they were needed.
    merged: HashMap<InstId, InstId>,
    /// The places of instructions in the form.
    places: HashMap<InstId, usize>,
}

/// Why an instruction can't be written.
enum Refusal {
    /// The op is not known to be right on padded arrays.
    Unknown(&'static str),
    /// A number does not fit into 32 bits, or a size is not known yet.
    Size,
}

type Written = Result<InstId, Refusal>;

impl<'a> Walk<'a> {
    fn new(
        all: &'a Padded<'a>,
        b: &'a mut Builder,
        (id, form): (CompId, &'a Form),
        kind: Kind,
        comps: &'a HashMap<CompId, CompId>,
    ) -> Self {
        let places = form.order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        Walk {
            all,
            b,
            id,
            form,
            kind,
            comps,
            scope: SizeScalars::default(),
            said: Vec::new(),
            values: HashMap::new(),
            split: HashMap::new(),
            merged: HashMap::new(),
            places,
        }
    }

    fn run(mut self) -> Result<InstId, Departure> {
        let comp = &self.all.module.comps[self.id];
        self.parameters();
        for &id in &self.form.order {
            if let Op::Parameter(_) = comp.insts[id].op {
                continue;
            }
            let inst = &comp.insts[id];
            self.b.metadata = inst.metadata.clone();
            let new = self.instruction(inst, id).map_err(|refusal| told(inst, &refusal))?;
            if let Some(what) = self.b.take_error() {
                return Err(departure(inst, what));
            }
            self.values.insert(id, new);
            for &(number, _) in comp.sizes.iter().filter(|size| size.1 == id) {
                let count = self.b.convert(new, DType::S32);
                self.scope.sizes[self.all.given() + number] = Some(self.b.reshape(count, &[]));
            }
        }
        self.b.metadata = Default::default();
        let root = &comp.insts[comp.root];
        self.root(comp.root).map_err(|refusal| told(root, &refusal))
    }

    /// The parameters, and what is known of the sizes.
    fn parameters(&mut self) {
        let comp = &self.all.module.comps[self.id];
        let shapes: Vec<(InstId, Shape)> = comp.params.iter().map(|&p| (p, comp.insts[p].shape.clone())).collect();
        let scalar = || Shape::array(DType::S32, []);
        match self.kind {
            Kind::Scalar => {
                for (old, shape) in shapes {
                    let new = self.b.parameter(shape);
                    self.values.insert(old, new);
                }
            }
            Kind::Entry => {
                for (i, (old, shape)) in shapes.into_iter().enumerate() {
                    if i == self.all.args {
                        self.said = (0..self.all.given()).map(|_| self.b.parameter(scalar())).collect();
                    }
                    let new = self.b.parameter(shape);
                    self.values.insert(old, new);
                }
                while self.said.len() < self.all.given() {
                    let size = self.b.parameter(scalar());
                    self.said.push(size);
                }
                let numbers = self.said.clone().into_iter().zip(&self.all.steps.all);
                let mut sizes: Vec<Option<InstId>> = numbers.map(|(n, &step)| steps_of(self.b, n, step)).collect();
                sizes.resize(self.all.sizes(), None);
                self.scope = SizeScalars::of(sizes);
            }
            Kind::Control | Kind::Body => {
                // one tuple of all that the parameters hold, and the sizes
                let mut parts: Vec<Shape> = shapes.iter().flat_map(|(_, s)| parts_of(s)).collect();
                parts.extend((0..self.all.sizes()).map(|_| scalar()));
                let whole = self.b.parameter(Shape::Tuple(parts));
                let mut next = 0;
                for (old, shape) in &shapes {
                    let count = parts_of(shape).len();
                    let own: Vec<InstId> = (next..next + count).map(|i| self.b.get_tuple_element(whole, i)).collect();
                    next += count;
                    let new = self.joined(&own, shape);
                    self.values.insert(*old, new);
                }
                let sizes = (next..next + self.all.sizes()).map(|i| Some(self.b.get_tuple_element(whole, i))).collect();
                self.scope = SizeScalars::of(sizes);
            }
        }
    }

    /// A value of `shape` of its parts.
    fn joined(&mut self, parts: &[InstId], shape: &Shape) -> InstId {
        match (shape, parts) {
            (Shape::Tuple(_), parts) => self.b.tuple(parts),
            (_, [one]) => *one,
            _ => self.b.tuple(parts),
        }
    }

    /// The parts of a value: those of a tuple, or itself.
    fn parts(&mut self, x: InstId) -> Vec<InstId> {
        match self.b.shape(x).as_tuple().map(<[Shape]>::len) {
            Some(count) => (0..count).map(|i| self.b.get_tuple_element(x, i)).collect(),
            None => vec![x],
        }
    }

    /// The sizes as values; 0 stands for one that is not known yet, which nothing uses.
    fn sizes(&mut self) -> Vec<InstId> {
        let known = self.scope.sizes.clone();
        known.into_iter().map(|s| s.unwrap_or_else(|| self.b.constant(Tensor::scalar(0i32)))).collect()
    }

    /// Values and the sizes in one tuple, as a computation of [`Kind::Control`] takes them.
    fn packed(&mut self, values: &[InstId]) -> InstId {
        let mut all: Vec<InstId> = values.iter().flat_map(|&v| self.parts(v)).collect();
        all.extend(self.sizes());
        self.b.tuple(&all)
    }

    fn root(&mut self, root: InstId) -> Written {
        let value = self.dense(root)?;
        match self.kind {
            Kind::Scalar | Kind::Control => Ok(value),
            Kind::Body => Ok(self.packed(&[value])),
            Kind::Entry => {
                let (results, derived) = self.all.results;
                let mut parts = self.parts(value);
                parts.truncate(parts.len().saturating_sub(self.all.module.entry().sizes.len()));
                let claims = parts.split_off(parts.len().saturating_sub(self.all.claims));
                let state = parts.split_off(results.min(parts.len()));
                for extent in derived {
                    let size = self.size(extent)?;
                    parts.push(size);
                }
                parts.extend(claims);
                for i in 0..self.said.len() {
                    if !self.all.steps.all[i].is_one() {
                        let whole = self.size(&self.all.steps.extent(i))?;
                        parts.push(self.b.sub(self.said[i], whole));
                    }
                }
                parts.extend(state);
                Ok(self.b.tuple(&parts))
            }
        }
    }

    /// A number that follows from the sizes, as `s32[]`.
    fn size(&mut self, extent: &Extent) -> Written {
        self.scope.value(self.b, extent).ok_or(Refusal::Size)
    }

    /// How the value of an instruction varies.
    fn varying(&self, id: InstId) -> &'a Varying {
        &self.form.varying[self.places[&id]]
    }

    fn instruction(&mut self, inst: &Inst, id: InstId) -> Written {
        if let Some(written) = self.in_split_form(inst, id)? {
            return Ok(written);
        }
        let operands = inst.operands.iter().map(|&o| self.dense(o)).collect::<Result<Vec<InstId>, Refusal>>()?;
        match &inst.op {
            Op::Constant(Literal::Array(t)) => return self.constant(t, self.varying(id)),
            Op::While { cond, body } => {
                let state = self.packed(&operands);
                let shape = self.b.shape(state).clone();
                let op = Op::While { cond: self.comps[cond], body: self.comps[body] };
                let out = self.b.push(op, &[state], shape);
                let count = parts_of(&inst.shape).len();
                let parts: Vec<InstId> = (0..count).map(|i| self.b.get_tuple_element(out, i)).collect();
                return Ok(self.joined(&parts, &inst.shape));
            }
            Op::Conditional(branches) => {
                let mut all = vec![operands[0]];
                for &operand in &operands[1..] {
                    let packed = self.packed(&[operand]);
                    all.push(packed);
                }
                let op = Op::Conditional(branches.iter().map(|c| self.comps[c]).collect());
                return Ok(self.b.push(op, &all, inst.shape.clone()));
            }
            Op::Call(comp) => {
                let packed = self.packed(&operands);
                return Ok(self.b.push(Op::Call(self.comps[comp]), &[packed], inst.shape.clone()));
            }
            _ => {}
        }
        let op = self.with_called(&inst.op);
        let varies = self.varying(id).any() || inst.operands.iter().any(|&o| self.varying(o).any());
        if !varies {
            return Ok(self.b.push(op, &operands, inst.shape.clone()));
        }
        self.padded(&Inst { op, operands: inst.operands.clone(), ..inst.clone() }, id, &operands)
    }

    /// An op that calls computations of the new module.
    fn with_called(&self, op: &Op) -> Op {
        let mut op = op.clone();
        for called in op.called_mut() {
            *called = self.comps[&*called];
        }
        op
    }

    /// A constant, with those of its elements that follow from the sizes.
    fn constant(&mut self, value: &Tensor, varying: &Varying) -> Written {
        let Some(extents) = &varying.elements else { return Ok(self.b.constant(value.clone())) };
        let mut parts = Vec::with_capacity(extents.len());
        for extent in extents {
            let number = self.size(extent)?;
            let number = self.b.convert(number, value.dtype);
            parts.push(self.b.reshape(number, &[1]));
        }
        let line = self.b.concatenate(&parts, 0);
        Ok(self.b.reshape(line, &value.dims))
    }
}

/// How many steps a size is; `None` where a step is beyond 32 bits.
fn steps_of(b: &mut Builder, size: InstId, step: Progression) -> Option<InstId> {
    if step.is_one() {
        return Some(size);
    }
    let Progression { stride: by, offset: rest } = step;
    let rest = mask::integer(b, i64::try_from(rest).ok()?)?;
    let by = mask::integer(b, i64::try_from(by).ok()?)?;
    let whole = b.sub(size, rest);
    Some(b.div(whole, by))
}

/// The shapes of a value's parts: those of a tuple, or itself.
fn parts_of(shape: &Shape) -> Vec<Shape> {
    match shape {
        Shape::Tuple(parts) => parts.clone(),
        other => vec![other.clone()],
    }
}

fn told(inst: &Inst, refusal: &Refusal) -> Departure {
    match refusal {
        Refusal::Unknown(what) => departure(inst, format!("`{}` {what}", inst.op.name())),
        Refusal::Size => departure(inst, format!("a number of `{}` is beyond 32 bits", inst.op.name())),
    }
}
