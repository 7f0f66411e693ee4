//! The passes of a row kernel: which reductions each pass computes, and which values it keeps for later passes.
use crate::hlo::{Computation, InstId, Op};
use crate::scalar::ScalarOp;
use crate::schedule::plan::fuse::{Fusion, RowRole, RowShape, operand_role};
use std::collections::{BTreeMap, HashMap};

/// Largest cost of a value that is computed again in later passes instead of being kept. A load costs 1, an addition 1, an exponential
/// 20.
const CHEAP: u64 = 4;

/// The passes of a row kernel.
#[derive(Debug, Default)]
pub struct RowPasses {
    /// The instructions that the row kernel computes, operands before readers.
    pub members: Vec<InstId>,
    /// Number of passes that must end before a member can be computed (for a reduction: before its result is there).
    pub after: HashMap<InstId, usize>,
    /// Values with an element for each column that are kept in buffers for later passes, with the pass that makes them.
    pub kept: BTreeMap<InstId, usize>,
}

impl RowPasses {
    /// Number of passes that must end before `id` can be computed.
    pub fn passes_before(&self, id: InstId) -> usize {
        self.after.get(&id).copied().unwrap_or(0)
    }
}

/// The cost of one element, in additions.
fn element_cost(op: &Op) -> u64 {
    match op {
        Op::Elementwise(op) if op.is_long() => 20,
        Op::Elementwise(ScalarOp::Divide | ScalarOp::Sqrt | ScalarOp::Rsqrt) => 5,
        Op::Elementwise(_) => 1,
        Op::Gather(_) | Op::DynamicSlice(_) | Op::Transpose(_) | Op::Pad(_) => 4,
        _ => 0,
    }
}

/// Plans the passes of the row kernel `root`; with `keep`, values of whole rows that are expensive to compute again are kept.
pub fn plan_passes(comp: &Computation, fusion: &Fusion, root: InstId, r: RowShape, keep: bool) -> RowPasses {
    let inside = |id: InstId| fusion.is_row_value(id, root);
    let mut p = RowPasses { members: fusion.row_kernel_members(comp, root), ..RowPasses::default() };
    for &m in &p.members {
        let below = comp[m].operands.iter().map(|o| p.after.get(o).copied().unwrap_or(0)).max().unwrap_or(0);
        p.after.insert(m, below + usize::from(matches!(comp[m].op, Op::Reduce { .. })));
    }
    if !keep {
        return p;
    }
    let full = |m: InstId| {
        let operands = comp[m].operands.iter().enumerate();
        operands
            .filter(move |(i, o)| inside(**o) && operand_role(comp, m, *i, fusion.role[m], r) == RowRole::Full)
            .map(|(_, &o)| o)
    };
    let mut price: HashMap<InstId, u64> = HashMap::new();
    for &m in p.members.iter().filter(|&&m| fusion.role[m] == RowRole::Full) {
        let operands: u64 = full(m).map(|o| price.get(&o).copied().unwrap_or(1)).sum();
        price.insert(m, (operands + element_cost(&comp[m].op)).clamp(1, 1000));
    }
    // Each pass computes what its reductions (the last one: the root) read; what an earlier pass made and is dear is kept.
    let mut first: HashMap<InstId, usize> = HashMap::new();
    for pass in 0..=p.passes_before(root) {
        let mut open: Vec<InstId> = Vec::new();
        for &m in &p.members {
            let folds = matches!(comp[m].op, Op::Reduce { .. }) && p.passes_before(m) == pass + 1;
            if folds {
                open.extend(full(m));
            }
        }
        if fusion.role[root] == RowRole::Full && pass == p.passes_before(root) {
            open.push(root);
        }
        while let Some(m) = open.pop() {
            if p.kept.get(&m).is_some_and(|&made| made < pass) {
                continue;
            }
            let made = *first.entry(m).or_insert(pass);
            if made < pass && price.get(&m).is_some_and(|&c| c > CHEAP) {
                p.kept.insert(m, made);
                continue;
            }
            open.extend(full(m));
        }
    }
    p
}
