//! Demand analysis: the elements of each array that the results need, where a call needs only the first elements along some axes: those of
//! functions whose sizes vary. What is computed beyond is never read, so that loops may end before it (`passes/limits/mod.rs`).
//!
//! Needs go backwards from the results, opcode by opcode, along each axis by itself (`operands.rs`). Masks that hold up to a number which
//! follows from the sizes leave nothing needed behind it (`masks.rs`). An opcode that is not listed needs its operands whole.
mod operands;

mod amount;
mod masks;

pub use amount::{DynamicSize, DynamicSizes};

use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op, Shape};
use crate::lower::ElementCountSource;
use crate::scalar::ScalarOp;
use crate::schedule::families::convolution::recipe::algorithm::{ConvolutionAlgorithm, ModuleConvolutions};
use amount::{CallFrame, SearchBudget};
use operands::operand_demand;
use std::collections::HashMap;

/// The needed prefix along an axis: elements below `times * size + more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixBound {
    /// Number of the dynamic size in [`ElementDemand::amounts`].
    pub size: usize,
    /// Factor of the dynamic size.
    pub times: u64,
    /// Constant added to `times * size`, in elements.
    pub more: u64,
}

/// The needed elements of an array: a bound for each axis, `None` for an axis whose elements are all needed. `None` in place of the bounds:
/// no element is needed.
pub type ArrayDemand = Option<Vec<Option<PrefixBound>>>;

/// The needed elements of each array of each instruction.
#[derive(Clone, Debug, Default)]
pub struct ElementDemand {
    comps: HashMap<CompId, HashMap<InstId, Vec<ArrayDemand>>>,
    /// The dynamic sizes that bounds refer to.
    pub amounts: DynamicSizes,
}

/// Upper limit of iterations in the search for a fixed point of the demand on a loop's state; beyond it all of the state is taken to be
/// needed.
const MOST_ROUNDS: usize = 4;

impl ElementDemand {
    /// Propagates the demand of a module's results backwards, given the size of each axis of each result. Without sized results the
    /// demand is unknown, as no sizes vary.
    pub fn compute(
        module: &Module,
        methods: &ModuleConvolutions,
        results: &[Vec<Option<ElementCountSource>>],
    ) -> ElementDemand {
        let mut walk = DemandWalk { methods, needed: ElementDemand::default() };
        if results.is_empty() {
            return walk.needed;
        }
        let entry = module.entry();
        let leaves = entry[entry.root].shape.leaves();
        let frame = CallFrame { module, comp: entry, caller: None };
        let mut bound = |count: &Option<ElementCountSource>| {
            let amount = match (*count)? {
                ElementCountSource::Parameter(number) => DynamicSize::Argument(number),
                ElementCountSource::Part(part) => {
                    frame.dynamic_size_of(*entry[entry.root].operands.get(part)?, &mut SearchBudget::new())?
                }
            };
            Some(walk.needed.amounts.intern_bound(amount))
        };
        let root = leaves.iter().enumerate().map(|(i, leaf)| match results.get(i) {
            Some(axes) if axes.len() == leaf.rank() => Some(axes.iter().map(&mut bound).collect()),
            _ => Some(vec![None; leaf.rank()]),
        });
        let root = root.collect();
        walk.visit_computation(&frame, module.entry, root);
        walk.needed
    }

    /// Whether nothing is known about demand.
    pub fn is_empty(&self) -> bool {
        self.comps.is_empty()
    }

    /// The needed elements of the arrays of an instruction, if known.
    pub fn get(&self, comp: CompId, id: InstId) -> Option<&[ArrayDemand]> {
        self.comps.get(&comp)?.get(&id).map(Vec::as_slice)
    }
}

/// Walks a module backwards and propagates demand.
struct DemandWalk<'a> {
    methods: &'a ModuleConvolutions,
    needed: ElementDemand,
}

impl DemandWalk<'_> {
    /// Adds the demand in a computation whose root has the demand `root`; returns the demand on its parameters.
    fn visit_computation(&mut self, frame: &CallFrame, id: CompId, root: Vec<ArrayDemand>) -> Vec<Vec<ArrayDemand>> {
        let comp = frame.comp;
        let mut own = self.needed.comps.remove(&id).unwrap_or_default();
        self.needed.amounts.extend_needs(own.entry(comp.root).or_default(), root);
        for inst in comp.post_order().into_iter().rev() {
            let Some(needs) = own.get(&inst).filter(|needs| needs.iter().any(Option::is_some)).cloned() else {
                continue;
            };
            let needs = whole_lines(comp, inst, needs);
            own.insert(inst, needs.clone());
            let needs = self.whole_tiles(id, inst, comp, needs);
            let operands = self.operands(frame, &comp[inst], &needs);
            for (&operand, need) in comp[inst].operands.iter().zip(operands) {
                self.needed.amounts.extend_needs(own.entry(operand).or_default(), need);
            }
        }
        let of_params = comp.params.iter().map(|p| own.get(p).cloned().unwrap_or_default()).collect();
        self.needed.comps.insert(id, own);
        of_params
    }

    /// The elements that a convolution computes if `needs` are needed: Winograd's method computes whole tiles, whose results depend on
    /// all that the tile reads.
    fn whole_tiles(
        &self,
        id: CompId,
        inst: InstId,
        comp: &Computation,
        mut needs: Vec<ArrayDemand>,
    ) -> Vec<ArrayDemand> {
        let (Op::Convolution(d), [Some(axes)]) = (&comp[inst].op, &mut needs[..]) else { return needs };
        let Some(ConvolutionAlgorithm::Winograd(w)) = self.methods.of_computation(id).get(&inst).map(|c| &c.algorithm)
        else {
            return needs;
        };
        for along in &w.along {
            let axis = &mut axes[d.output_spatial[along.axis]];
            *axis = axis.and_then(|b| Some(PrefixBound { more: b.more.checked_add(along.overhang())?, ..b }));
        }
        needs
    }

    /// The demand of an instruction on its operands.
    fn operands(&mut self, frame: &CallFrame, inst: &Inst, needs: &[ArrayDemand]) -> Vec<Vec<ArrayDemand>> {
        let (module, comp) = (frame.module, frame.comp);
        let shape = |i: usize| &comp[inst.operands[i]].shape;
        match &inst.op {
            Op::Tuple => {
                let mut rest = needs.iter().cloned();
                (0..inst.operands.len()).map(|i| rest.by_ref().take(shape(i).leaves().len()).collect()).collect()
            }
            Op::GetTupleElement(index) => {
                let parts = shape(0).as_tuple().unwrap_or_default();
                let before: usize = parts[..*index].iter().map(|p| p.leaves().len()).sum();
                let mut all = vec![None; shape(0).leaves().len()];
                all[before..before + needs.len()].clone_from_slice(needs);
                vec![all]
            }
            Op::Copy | Op::OptimizationBarrier => vec![needs.to_vec()],
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                let inner = CallFrame { module, comp: &module.comps[*callee], caller: Some((frame, inst)) };
                self.visit_computation(&inner, *callee, needs.to_vec())
            }
            Op::While { cond, body } => vec![self.while_loop(module, *cond, *body, needs)],
            Op::Conditional(branches) => {
                let selector = vec![everything_needed(shape(0))];
                let of = |b: &CompId| {
                    let inner = CallFrame { module, comp: &module.comps[*b], caller: None };
                    self.visit_computation(&inner, *b, needs.to_vec()).into_iter().next().unwrap_or_default()
                };
                selector.into_iter().chain(branches.iter().map(of)).collect()
            }
            Op::Sort { .. } | Op::TopK { .. } => vec![vec![self.needed.amounts.union_of(needs)]; inst.operands.len()],
            Op::Reduce { dims, .. } => {
                let axes = self.needed.amounts.union_of(needs).unwrap_or_default();
                let count = inst.operands.len() / 2;
                let rank = shape(0).as_array().map_or(0, |a| a.rank());
                let mut kept = axes.into_iter();
                let of = (0..rank).map(|a| if dims.contains(&a) { None } else { kept.next().flatten() });
                let of: Vec<Option<PrefixBound>> = of.collect();
                let of = |i| if i < count { vec![Some(of.clone())] } else { everything_needed(shape(i)) };
                (0..inst.operands.len()).map(of).collect()
            }
            _ => match needs {
                [Some(axes)] => (0..inst.operands.len())
                    .map(|i| match inst.op {
                        Op::Elementwise(ScalarOp::Select) if i == 1 => {
                            vec![Some(self.select_demand(frame, inst, axes))]
                        }
                        _ => operand_demand(comp, inst, axes, i),
                    })
                    .collect(),
                _ => (0..inst.operands.len()).map(|i| everything_needed(shape(i))).collect(),
            },
        }
    }

    /// The demand of a `select` on its second operand: nothing where the condition is known to be false.
    fn select_demand(
        &mut self,
        frame: &CallFrame,
        select: &Inst,
        axes: &[Option<PrefixBound>],
    ) -> Vec<Option<PrefixBound>> {
        let of_mask = masks::mask_bounds(frame, select.operands[0], &mut self.needed.amounts);
        let nearer = |(i, bound): (usize, &Option<PrefixBound>)| {
            let mask = of_mask.get(i).copied().flatten();
            masks::intersect_bounds(mask, *bound)
        };
        axes.iter().enumerate().map(nearer).collect()
    }

    /// The demand of a loop on its initial state: that of the loop's readers, and that of each iteration.
    fn while_loop(&mut self, module: &Module, cond: CompId, body: CompId, needs: &[ArrayDemand]) -> Vec<ArrayDemand> {
        let root = module.comps[cond].root;
        let mut state = needs.to_vec();
        let inside = |comp: CompId| CallFrame { module, comp: &module.comps[comp], caller: None };
        let of_cond = self.visit_computation(&inside(cond), cond, everything_needed(&module.comps[cond][root].shape));
        self.needed.amounts.extend_needs(&mut state, of_cond.into_iter().next().unwrap_or_default());
        for round in 0.. {
            let before = state.clone();
            let of_body = self.visit_computation(&inside(body), body, state.clone());
            self.needed.amounts.extend_needs(&mut state, of_body.into_iter().next().unwrap_or_default());
            if state == before {
                break;
            }
            if round == MOST_ROUNDS {
                state = everything_needed(&module.comps[body][module.comps[body].root].shape);
            }
        }
        state
    }
}

/// The elements that an instruction computes if `needs` are needed. Sorts compute whole lines, as any element may move anywhere; kernels
/// of factorizations and triangular solves read all their results again.
fn whole_lines(comp: &Computation, inst: InstId, needs: Vec<ArrayDemand>) -> Vec<ArrayDemand> {
    let rank = comp[inst].operands.first().and_then(|&o| comp[o].shape.as_array()).map_or(0, |a| a.rank());
    let axes = match &comp[inst].op {
        Op::Sort { dim, .. } => *dim..*dim + 1,
        Op::TopK { .. } => rank.saturating_sub(1)..rank,
        Op::Cholesky { .. } | Op::TriangularSolve { .. } => rank.saturating_sub(2)..rank,
        _ => return needs,
    };
    let axes: Vec<usize> = axes.collect();
    needs.into_iter().map(|need| Some(without_axes(need?, &axes))).collect()
}

/// The demand on all elements of a value.
fn everything_needed(shape: &Shape) -> Vec<ArrayDemand> {
    shape.leaves().iter().map(|leaf| Some(vec![None; leaf.rank()])).collect()
}

impl DynamicSizes {
    /// The union of the demands on several arrays of the same shape.
    fn union_of(&mut self, needs: &[ArrayDemand]) -> ArrayDemand {
        let mut all = Vec::new();
        needs.iter().for_each(|need| self.extend_needs(&mut all, vec![need.clone()]));
        all.pop().flatten()
    }

    /// Extends the demand `all` on an array by further needed elements.
    fn extend_needs(&mut self, all: &mut Vec<ArrayDemand>, more: Vec<ArrayDemand>) {
        all.resize(all.len().max(more.len()), None);
        for (one, more) in all.iter_mut().zip(more) {
            let Some(more) = more else { continue };
            *one = Some(match one.take() {
                None => more,
                Some(axes) => axes.into_iter().zip(more).map(|(a, b)| Some(self.max_bound(a?, b?))).collect(),
            });
        }
    }
}

/// Drops the bounds along `axes`, whose elements are all needed.
fn without_axes(mut bounds: Vec<Option<PrefixBound>>, axes: &[usize]) -> Vec<Option<PrefixBound>> {
    axes.iter().filter(|&&a| a < bounds.len()).collect::<Vec<_>>().into_iter().for_each(|&a| bounds[a] = None);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;
    use crate::schedule::target::KernelTarget;
    use crate::target::{PanelSizes, Target};

    /// The demand on each array of a module whose result is as long as parameter 1 says, of the instructions of that opcode.
    fn needs(of: &str, opcode: &str) -> Vec<ArrayDemand> {
        let module = text::parse(of).expect("sound HLO");
        let request = Target::resolve(None, None, None).expect("a processor").into();
        let target = KernelTarget { request: &request, panels: &PanelSizes::default() };
        let methods = ModuleConvolutions::choose(&module, &target);
        let needed = ElementDemand::compute(&module, &methods, &[vec![Some(ElementCountSource::Parameter(1))]]);
        let found = module.entry().insts.iter().find(|(_, inst)| inst.op.name() == opcode);
        let (id, _) = found.expect("an instruction of that opcode");
        needed.get(module.entry, id).expect("it is known").to_vec()
    }

    #[test]
    fn of_lines_that_are_ordered_all_is_needed() {
        let top = "HloModule t
ENTRY e {
  x = f32[4] parameter(0)
  n = s32[] parameter(1)
  t = (f32[4], s32[4]) topk(x), k=4, largest=true
  k = f32[4] get-tuple-element(t), index=0
  ROOT r = (f32[4]) tuple(k)
}
";
        let bound = PrefixBound { size: 0, times: 1, more: 0 };
        assert_eq!(needs(top, "get-tuple-element"), [Some(vec![Some(bound)])]);
        assert_eq!(needs(top, "topk"), [Some(vec![None]), None]);
    }
}
