//! How a pass changes a computation: a walk in post order, a replacement for some instructions, then compaction.
//!
//! A rule sees one instruction whose operands are already final, and may return another value of the same shape. What it
//! returns is tried again when it is new, so that short chains of rules settle in one walk; longer ones settle in the next
//! round of the pipeline. No rule has to know the users of what it replaces.
use std::collections::HashSet;
use std::sync::Arc;

use crate::diag::{Error, Result};
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Literal, Metadata, Module, Op, Shape, infer};
use crate::tensor::{DType, Tensor};
use crate::util::id_vec::{Id, IdVec};

/// Whether a pass changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The module is unchanged.
    No,
    /// The module differs.
    Yes,
}

impl Changed {
    /// Whether either changed anything.
    pub fn or(self, other: Changed) -> Changed {
        if self == Changed::Yes { Changed::Yes } else { other }
    }
    /// `Yes` if `yes`.
    pub fn from_bool(yes: bool) -> Changed {
        if yes { Changed::Yes } else { Changed::No }
    }
}

/// Number of times that the result of a rule is offered to the rule again.
const RETRIES: usize = 8;

/// One computation, taken out of its module while it is changed; the module holds a placeholder in its place.
#[derive(Debug)]
pub struct Editor<'m> {
    module: &'m mut Module,
    id: CompId,
    comp: Computation,
    /// The live instructions at the beginning, operands before users.
    order: Vec<InstId>,
    /// Whether these were all instructions, in numerical order.
    was_compact: bool,
    forward: Vec<Option<InstId>>,
    uses: Vec<u32>,
    metadata: Arc<Metadata>,
}

/// An empty computation that stands in a module for one that is being edited.
fn placeholder() -> Computation {
    Computation {
        name: String::new(),
        insts: IdVec::new(),
        params: Vec::new(),
        root: InstId(0),
        sizes: Vec::new(),
        size_constants: Vec::new(),
    }
}

impl<'m> Editor<'m> {
    /// Takes computation `id` out of `module` for editing.
    pub fn open(module: &'m mut Module, id: CompId) -> Self {
        let comp = std::mem::replace(&mut module.comps[id], placeholder());
        let order = live_order(&comp);
        let was_compact = is_compact(&comp, &order);
        let mut uses = vec![0u32; comp.insts.len()];
        for &inst in &order {
            for operand in &comp.insts[inst].operands {
                uses[operand.index()] += 1;
            }
        }
        if let Some(n) = uses.get_mut(comp.root.index()) {
            *n += 1;
        }
        let forward = vec![None; comp.insts.len()];
        let metadata = Arc::default();
        Editor { module, id, comp, order, was_compact, forward, uses, metadata }
    }
    /// Puts the computation back, with all replacements applied and unreachable instructions removed.
    pub fn close(mut self) {
        let is_changed = self.comp.insts.len() > self.order.len() || self.forward.iter().any(Option::is_some);
        if self.was_compact && !is_changed {
            unique_names(&mut self.comp);
            self.module.comps[self.id] = self.comp;
            return;
        }
        for at in self.comp.insts.ids() {
            for i in 0..self.comp.insts[at].operands.len() {
                let operand = self.comp.insts[at].operands[i];
                self.comp.insts[at].operands[i] = self.resolve(operand);
            }
        }
        self.comp.root = self.resolve(self.comp.root);
        for at in self.comp.insts.ids() {
            // The value that stands for a foreign instruction has its effects too: nothing holds that instruction any longer.
            if self.forward[at.index()].is_some() && matches!(self.comp.insts[at].op, Op::Foreign(_)) {
                (self.comp.insts[at].op, self.comp.insts[at].operands) = (Op::Copy, vec![self.resolve(at)]);
            }
        }
        compact_computation(&mut self.comp);
        self.module.comps[self.id] = self.comp;
    }
    /// The computation as it is, with replaced instructions still in it.
    pub fn comp(&self) -> &Computation {
        &self.comp
    }
    /// The module, with a placeholder for the computation being edited.
    pub fn module(&self) -> &Module {
        self.module
    }
    /// Runs `f` on the module with `scratch` in place of the computation being edited.
    pub fn with_scratch_computation<T>(&mut self, scratch: Computation, f: impl FnOnce(&Module, CompId) -> T) -> T {
        self.module.comps[self.id] = scratch;
        let result = f(self.module, self.id);
        self.module.comps[self.id] = placeholder();
        result
    }
    /// The instruction that replaces `id`; `id` itself if none does.
    pub fn resolve(&self, mut id: InstId) -> InstId {
        while let Some(next) = self.forward.get(id.index()).copied().flatten() {
            id = next;
        }
        id
    }
    /// The op of an instruction.
    pub fn op(&self, id: InstId) -> &Op {
        &self.comp.insts[id].op
    }
    /// The operands of an instruction.
    pub fn operands(&self, id: InstId) -> &[InstId] {
        &self.comp.insts[id].operands
    }
    /// Operand `i` of an instruction.
    pub fn operand(&self, id: InstId, i: usize) -> InstId {
        self.comp.insts[id].operands[i]
    }
    /// The shape of an instruction.
    pub fn shape(&self, id: InstId) -> &Shape {
        &self.comp.insts[id].shape
    }
    /// The array shape of an instruction, if it has one.
    pub fn array(&self, id: InstId) -> Option<&ArrayShape> {
        self.shape(id).as_array()
    }
    /// The sizes of an array; none for what is not an array.
    pub fn dims(&self, id: InstId) -> &[u64] {
        self.array(id).map_or(&[], |a| &a.dims)
    }
    /// The element type of an array.
    pub fn dtype(&self, id: InstId) -> Option<DType> {
        self.array(id).map(|a| a.dtype)
    }
    /// The number of elements of an array.
    pub fn element_count(&self, id: InstId) -> u64 {
        self.array(id).map_or(0, ArrayShape::elements)
    }
    /// Upper bound of the number of operands that name this value; the root counts as one more.
    pub fn uses(&self, id: InstId) -> u32 {
        self.uses.get(id.index()).copied().unwrap_or(0)
    }
    /// The array of a constant.
    pub fn constant(&self, id: InstId) -> Option<&Tensor> {
        match self.op(id) {
            Op::Constant(Literal::Array(tensor)) => Some(tensor),
            _ => None,
        }
    }
    /// Adds an instruction of a given shape.
    pub fn add_instruction_with_shape(&mut self, op: Op, operands: &[InstId], shape: Shape) -> InstId {
        for operand in operands {
            self.uses[operand.index()] += 1;
        }
        let name = format!("{}.{}", op.name(), self.comp.insts.len());
        let metadata = self.metadata.clone();
        self.forward.push(None);
        self.uses.push(0);
        self.comp.insts.push(Inst { name, op, operands: operands.to_vec(), shape, metadata, extra: Vec::new() })
    }
    /// Adds an instruction of another computation, with operands of this one.
    pub fn copy_instruction(&mut self, inst: &Inst, operands: &[InstId]) -> InstId {
        let id = self.add_instruction_with_shape(inst.op.clone(), operands, inst.shape.clone());
        self.comp.insts[id].metadata = inst.metadata.clone();
        self.comp.insts[id].extra = inst.extra.clone();
        id
    }
    /// Adds a computation to the module, with a name that none has yet.
    pub fn add_computation(&mut self, mut comp: Computation) -> CompId {
        compact_computation(&mut comp);
        let base = comp.name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit()).to_string();
        comp.name = format!("{base}.{}", self.module.comps.len());
        while self.module.comps.values().any(|c| c.name == comp.name) || comp.name == self.comp.name {
            comp.name.push_str(".1");
        }
        self.module.comps.push(comp)
    }
    /// Copies the origin and the opaque attributes of `from` to `to`.
    pub fn copy_provenance(&mut self, from: InstId, to: InstId) {
        let (metadata, extra) = (self.comp.insts[from].metadata.clone(), self.comp.insts[from].extra.clone());
        self.comp.insts[to].metadata = metadata;
        self.comp.insts[to].extra = extra;
    }
    /// Adds an instruction and infers its shape; an internal error where the operands do not fit.
    ///
    /// # Errors
    /// An internal one where the operands do not fit.
    pub fn add_instruction(&mut self, op: Op, operands: &[InstId]) -> Result<InstId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&id| self.shape(id)).collect();
        let shape = infer::infer(&op, &shapes, self.module)
            .map_err(|message| Error::internal("optimize", format!("{}: {message}", op.name())))?;
        Ok(self.add_instruction_with_shape(op, operands, shape))
    }
    /// Adds a constant.
    pub fn add_constant(&mut self, value: Tensor) -> InstId {
        let shape = Shape::array(value.dtype, value.dims.clone());
        self.add_instruction_with_shape(Op::Constant(Literal::Array(value)), &[], shape)
    }
    /// `x` with other sizes of the same product; `x` itself where they are equal.
    pub fn add_reshape(&mut self, x: InstId, dims: &[u64]) -> InstId {
        match self.dtype(x) {
            Some(dtype) if self.dims(x) != dims => {
                self.add_instruction_with_shape(Op::Reshape, &[x], Shape::array(dtype, dims))
            }
            _ => x,
        }
    }
    /// `x` broadcast so that its dimension `i` becomes `map[i]` of `dims`; `x` itself where nothing changes.
    pub fn add_broadcast(&mut self, x: InstId, dims: &[u64], map: &[usize]) -> InstId {
        match self.dtype(x) {
            Some(dtype) if self.dims(x) != dims || map.iter().enumerate().any(|(i, &m)| i != m) => {
                self.add_instruction_with_shape(Op::Broadcast(map.to_vec()), &[x], Shape::array(dtype, dims))
            }
            _ => x,
        }
    }
    /// Replaces `old` by `new` from now on.
    ///
    /// # Errors
    /// An internal one if their shapes differ.
    pub fn replace(&mut self, old: InstId, new: InstId) -> Result<()> {
        if !self.shape(old).same_type_and_dims(self.shape(new)) {
            let (from, to) = (&self.comp.insts[old], &self.comp.insts[new]);
            let message = format!("{} {} would become {} {}", from.op.name(), from.shape, to.op.name(), to.shape);
            return Err(Error::internal("optimize", message));
        }
        self.uses[new.index()] += self.uses[old.index()];
        self.forward[old.index()] = Some(new);
        self.release_uses(old);
        Ok(())
    }
    /// Subtracts the uses that a dead instruction makes, and those of instructions that die with it.
    fn release_uses(&mut self, dead: InstId) {
        let mut work = vec![dead];
        while let Some(id) = work.pop() {
            for i in 0..self.comp.insts[id].operands.len() {
                let operand = self.resolve(self.comp.insts[id].operands[i]);
                let uses = &mut self.uses[operand.index()];
                *uses = uses.saturating_sub(1);
                if *uses == 0 {
                    work.push(operand);
                }
            }
        }
    }
    /// Replaces the operands of `id` by their replacements.
    fn refresh_operands(&mut self, id: InstId) {
        for i in 0..self.comp.insts[id].operands.len() {
            let operand = self.comp.insts[id].operands[i];
            self.comp.insts[id].operands[i] = self.resolve(operand);
        }
        self.metadata = self.comp.insts[id].metadata.clone();
    }
    /// Applies `rule` to `id` until it returns nothing more.
    fn rewrite_to_fixpoint(
        &mut self,
        id: InstId,
        rule: &mut impl FnMut(&mut Editor, InstId) -> Result<Option<InstId>>,
    ) -> Result<Changed> {
        let mut at = id;
        for _ in 0..RETRIES {
            let known = self.comp.insts.len();
            let new = match rule(self, at)? {
                Some(new) if new != at => new,
                _ => break,
            };
            self.replace(at, new)?;
            at = new;
            if new.index() < known {
                break;
            }
        }
        Ok(Changed::from_bool(at != id))
    }
}

/// Walks every reachable computation, operands before users, and replaces what `rule` returns a value for.
///
/// Instructions with dynamic dimensions and parameters are not offered. Shapes must not change.
///
/// # Errors
/// Errors of `rule`, and an internal one where a shape would change.
pub fn rewrite(
    module: &mut Module,
    mut rule: impl FnMut(&mut Editor, InstId) -> Result<Option<InstId>>,
) -> Result<Changed> {
    let mut changed = Changed::No;
    for id in editable_computations(module) {
        changed = changed.or(rewrite_computation(module, id, &mut rule)?);
    }
    Ok(changed)
}

/// The reachable computations, callees first, that no foreign instruction calls: its requirements on computations are unknown here.
pub fn editable_computations(module: &Module) -> Vec<CompId> {
    let insts = module.comps.values().flat_map(|c| c.insts.values());
    let kept: HashSet<CompId> =
        insts.filter(|i| matches!(i.op, Op::Foreign(_))).flat_map(|i| i.op.called_computations()).collect();
    module.reachable().into_iter().filter(|id| !kept.contains(id)).collect()
}

/// [`rewrite`] for one computation.
///
/// # Errors
/// Errors of [`rewrite`].
pub fn rewrite_computation(
    module: &mut Module,
    id: CompId,
    rule: &mut impl FnMut(&mut Editor, InstId) -> Result<Option<InstId>>,
) -> Result<Changed> {
    let mut editor = Editor::open(module, id);
    let order = editor.order.clone();
    let mut changed = Changed::No;
    for at in order {
        editor.refresh_operands(at);
        let inst = &editor.comp.insts[at];
        if matches!(inst.op, Op::Parameter(_)) || is_dynamic(&inst.shape) {
            continue;
        }
        if inst.operands.iter().any(|&o| is_dynamic(editor.shape(o))) {
            continue;
        }
        changed = changed.or(editor.rewrite_to_fixpoint(at, rule)?);
    }
    editor.close();
    Ok(changed)
}

/// Whether some dimension is only bounded.
fn is_dynamic(shape: &Shape) -> bool {
    shape.leaves().iter().any(|a| a.dynamic.contains(&true))
}

/// Instructions that the root, the parameters and the foreign instructions (which may have effects) need, operands before users.
pub fn live_order(comp: &Computation) -> Vec<InstId> {
    let foreign = comp.insts.iter().filter(|(_, inst)| matches!(inst.op, Op::Foreign(_))).map(|(id, _)| id);
    comp.post_order_from(comp.params.iter().copied().chain(foreign).chain([comp.root]))
}

/// Whether `order` has every instruction of a computation, in numerical order.
fn is_compact(comp: &Computation, order: &[InstId]) -> bool {
    order.len() == comp.insts.len() && order.iter().enumerate().all(|(i, id)| id.index() == i)
}

/// Removes dead instructions, puts operands before users, and makes names unique.
pub fn compact_computation(comp: &mut Computation) -> Changed {
    let order = live_order(comp);
    let changed = Changed::from_bool(order.len() != comp.insts.len());
    if !is_compact(comp, &order) {
        let mut new_ids = vec![InstId(0); comp.insts.len()];
        for (i, id) in order.iter().enumerate() {
            new_ids[id.index()] = InstId::from_index(i);
        }
        let kept = IdVec::with_capacity(order.len());
        let mut old: Vec<Option<Inst>> = std::mem::replace(&mut comp.insts, kept).into_iter().map(Some).collect();
        for id in order {
            if let Some(mut inst) = old[id.index()].take() {
                inst.operands.iter_mut().for_each(|o| *o = new_ids[o.index()]);
                comp.insts.push(inst);
            }
        }
        comp.params.iter_mut().for_each(|p| *p = new_ids[p.index()]);
        comp.root = new_ids[comp.root.index()];
    }
    unique_names(comp);
    changed
}

/// Gives a new name to each instruction whose name an earlier one has.
fn unique_names(comp: &mut Computation) {
    let mut names = foldhash::HashSet::with_capacity_and_hasher(comp.insts.len(), Default::default());
    if comp.insts.values().all(|i| names.insert(i.name.as_str())) {
        return;
    }
    let mut taken: HashSet<String> = comp.insts.values().map(|i| i.name.clone()).collect();
    let mut seen = HashSet::new();
    let mut next = comp.insts.len();
    for inst in comp.insts.values_mut() {
        while !seen.insert(inst.name.clone()) {
            loop {
                let name = format!("{}.{next}", inst.op.name());
                next += 1;
                if taken.insert(name.clone()) {
                    inst.name = name;
                    break;
                }
            }
        }
    }
}
