//! Values that take less to compute again than to write and read: `x - mean`, which the variance, the normalised values and two
//! gradients read, is one subtraction of arrays that are in memory anyway. Each kernel that reads such a value gets an
//! instruction of its own, which it takes in; the value itself has no array.
//!
//! That is done on HLO, with what is inlined into what before and after: a value is left whole where a kernel would become
//! another one than it was.
use super::fuse::{self, Fusion, LARGEST_GROUP, OperandUse, only_moves_elements, operand_use};
use crate::hlo::{ArrayShape, Computation, Inst, InstId, Module, Op, OperandUses};
use crate::scalar::ScalarOp;
use crate::util::id_vec::Id;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Upper limit of attempts, each of which drops the values for which recomputation did not pay.
const MOST_TRIES: usize = 4;

/// Rewrites a module so that readers recompute cheap values; `None` if there are none.
pub fn rematerialize_in_readers(module: &Module) -> Option<Module> {
    let mut out = None;
    for (id, comp) in module.comps.iter() {
        let order = comp.post_order();
        let before = fuse::fuse(module, comp, &order);
        let mut values = RematerializedValues::new(comp, &before, &order);
        for _ in 0..MOST_TRIES {
            if values.roots.is_empty() {
                break;
            }
            let (with, owners) = values.with_copies();
            let after = fuse::fuse(module, &with, &with.post_order());
            let unprofitable = values.unprofitable(&with, &owners, &after);
            if unprofitable.is_empty() {
                out.get_or_insert_with(|| module.clone()).comps[id] = with;
                break;
            }
            values.roots.retain(|value, _| !unprofitable.contains(value));
        }
    }
    out
}

/// The values of a computation that their readers recompute.
struct RematerializedValues<'a> {
    comp: &'a Computation,
    fusion: &'a Fusion,
    uses: OperandUses,
    /// The kernels visited so far, by their roots.
    kernels: HashMap<InstId, KernelWork>,
    /// The values, each with the roots of the kernels that read it.
    roots: BTreeMap<InstId, Vec<InstId>>,
}

/// Size and operands of one kernel.
struct KernelWork {
    /// Number of instructions that the kernel computes.
    size: usize,
    /// The operands of the kernel's instructions.
    read: HashSet<InstId>,
}

impl<'a> RematerializedValues<'a> {
    fn new(comp: &'a Computation, fusion: &'a Fusion, order: &[InstId]) -> RematerializedValues<'a> {
        let (uses, kernels) = (comp.operand_uses(), HashMap::new());
        let mut values = RematerializedValues { comp, fusion, uses, kernels, roots: BTreeMap::new() };
        for &id in order.iter().filter(|&&id| id != comp.root && fusion.is_materialised(id)) {
            if let Some(roots) = values.arrays(id).and_then(|arrays| values.readers(id, &arrays)) {
                values.roots.insert(id, roots);
            }
        }
        values
    }

    /// The arrays that `id` is computed from, if it is one simple operation on arrays that are in memory anyway.
    fn arrays(&self, id: InstId) -> Option<Vec<InstId>> {
        let Op::Elementwise(op) = self.comp[id].op else { return None };
        let is_alone = self.fusion.anchor[id].is_none() && self.fusion.rows[id].is_none();
        if !is_simple(op) || !is_alone {
            return None;
        }
        let mut arrays = Vec::new();
        for inst in self.fusion.computed_instructions(self.comp, id) {
            if inst != id && !only_moves_elements(&self.comp[inst].op) {
                return None;
            }
            arrays.extend(self.comp[inst].operands.iter().copied().filter(|&o| self.fusion.is_materialised(o)));
        }
        (!arrays.iter().any(|a| self.roots.contains_key(a))).then_some(arrays)
    }

    /// The kernels that read `id`, two or more, if all can recompute it from `arrays` with less memory traffic.
    fn readers(&mut self, id: InstId, arrays: &[InstId]) -> Option<Vec<InstId>> {
        let mut roots = BTreeSet::new();
        for &(user, number) in &self.uses[id] {
            if operand_use(&self.comp[user].op, number) != OperandUse::Once {
                return None;
            }
            roots.insert(self.fusion.root_of(user)?);
        }
        let own = self.bytes(id);
        // what is repeated along an axis is less, and stays near
        let is_whole = |array: &InstId| self.elements(*array) >= self.elements(id);
        let arrays: BTreeSet<InstId> = arrays.iter().copied().filter(is_whole).collect();
        let mut again = 0u64;
        for &root in &roots {
            let (comp, fusion) = (self.comp, self.fusion);
            let kernel = self.kernels.entry(root).or_insert_with(|| KernelWork::ending_in(comp, fusion, root));
            let more = arrays.iter().filter(|a| !kernel.read.contains(a));
            let more: u64 = more.filter_map(|&a| comp[a].shape.as_array()).map(ArrayShape::bytes).sum();
            // arrays that live longer for it take no more memory than it did
            if kernel.size >= LARGEST_GROUP || more > own {
                return None;
            }
            again = again.saturating_add(more);
        }
        let kept = own.saturating_mul(roots.len() as u64 + 1);
        (roots.len() > 1 && again < kept).then(|| roots.into_iter().collect())
    }

    fn elements(&self, id: InstId) -> u64 {
        self.comp[id].shape.as_array().map_or(0, |a| a.elements())
    }

    fn bytes(&self, id: InstId) -> u64 {
        self.comp[id].shape.as_array().map_or(0, |a| a.bytes())
    }

    /// The computation with a copy of each value for every reading kernel, and the value that each copy stands for.
    fn with_copies(&self) -> (Computation, BTreeMap<InstId, InstId>) {
        let mut comp = self.comp.clone();
        comp.insts.reserve_exact(self.roots.values().map(|roots| roots.len() - 1).sum());
        let mut owners = BTreeMap::new();
        for (&value, roots) in &self.roots {
            let mut copies: HashMap<InstId, InstId> = HashMap::new();
            for &root in &roots[1..] {
                let inst = &self.comp[value];
                let name = format!("{}.remat{}", inst.name, root.index());
                let copy = comp.insts.push(Inst { name, ..inst.clone() });
                owners.insert(copy, value);
                copies.insert(root, copy);
            }
            for &(user, number) in &self.uses[value] {
                if let Some(&copy) = self.fusion.root_of(user).and_then(|root| copies.get(&root)) {
                    comp.insts[user].operands[number] = copy;
                }
            }
        }
        (comp, owners)
    }

    /// Values for which recomputation does not pay: they still have an array, or their readers became other kernels.
    fn unprofitable(&self, with: &Computation, owners: &BTreeMap<InstId, InstId>, after: &Fusion) -> Vec<InstId> {
        let value_of = |id: InstId| owners.get(&id).copied().unwrap_or(id);
        let made: HashSet<InstId> = with.insts.ids().filter(|&id| after.is_materialised(id)).map(value_of).collect();
        let members = |comp: &Computation, fusion: &Fusion, root: InstId| -> BTreeSet<InstId> {
            let all = fusion.computed_instructions(comp, root).into_iter().map(value_of);
            all.filter(|id| !self.roots.contains_key(id) && !only_moves_elements(&self.comp[*id].op)).collect()
        };
        let is_same = |root: &InstId| {
            after.is_materialised(*root)
                && after.anchor[*root] == self.fusion.anchor[*root]
                && after.rows[*root] == self.fusion.rows[*root]
                && members(with, after, *root) == members(self.comp, self.fusion, *root)
        };
        let mut kernels: HashMap<InstId, bool> = HashMap::new();
        let mut is_kept = |root: &InstId| *kernels.entry(*root).or_insert_with(|| is_same(root));
        let mut is_unprofitable =
            |(value, roots): &(&InstId, &Vec<InstId>)| made.contains(value) || !roots.iter().all(&mut is_kept);
        self.roots.iter().filter(|entry| is_unprofitable(entry)).map(|(value, _)| *value).collect()
    }
}

impl KernelWork {
    /// The kernel that ends in `root`.
    fn ending_in(comp: &Computation, fusion: &Fusion, root: InstId) -> KernelWork {
        let computed = fusion.computed_instructions(comp, root);
        let read = computed.iter().flat_map(|&m| comp[m].operands.iter().copied()).collect();
        KernelWork { size: computed.len(), read }
    }
}

/// Whether an operation takes one or two machine instructions and has the same result in every kernel. A multiplication has not, as it may
/// be fused with an addition in one kernel and not in another.
fn is_simple(op: ScalarOp) -> bool {
    use ScalarOp as S;
    matches!(
        op,
        S::Abs
            | S::Negate
            | S::Not
            | S::Add
            | S::Subtract
            | S::Maximum
            | S::Minimum
            | S::And
            | S::Or
            | S::Xor
            | S::Select
            | S::Clamp
            | S::Compare(..)
            | S::Convert(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;

    const NORM: &str = "HloModule t
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[32,64] parameter(0)
  mean = f32[64] parameter(1)
  wide = f32[32,64] broadcast(mean), dimensions={1}
  centred = f32[32,64] subtract(x, wide)
  zero = f32[] constant(0)
  square = f32[32,64] multiply(centred, centred)
  sums = f32[64] reduce(square, zero), dimensions={0}, to_apply=add
  root = f32[64] rsqrt(sums)
  factor = f32[32,64] broadcast(root), dimensions={1}
  y = f32[32,64] OP(centred, factor)
  ROOT t = (f32[32,64]) tuple(y)
}
";

    #[test]
    fn a_difference_is_computed_by_both_of_its_readers() {
        let module = text::parse(&NORM.replace("OP", "multiply")).expect("sound HLO");
        let out = rematerialize_in_readers(&module).expect("a value that is computed again");
        let comp = out.entry();
        let differences =
            comp.post_order().into_iter().filter(|&id| comp[id].op == Op::Elementwise(ScalarOp::Subtract));
        let fusion = fuse::fuse(&out, comp, &comp.post_order());
        let made: Vec<bool> = differences.map(|id| fusion.is_materialised(id)).collect();
        assert_eq!(made, [false, false]);
    }

    #[test]
    fn what_a_product_reads_from_memory_stays_an_array() {
        let text = NORM
            .replace(
                "y = f32[32,64] OP(centred, factor)",
                "y = f32[32,32] dot(centred, factor), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            )
            .replace("ROOT t = (f32[32,64]) tuple(y)", "ROOT t = (f32[32,32]) tuple(y)");
        let module = text::parse(&text).expect("sound HLO");
        assert!(rematerialize_in_readers(&module).is_none());
    }
}
