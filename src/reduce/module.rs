//! Reduction of an HLO module: selects another result, turns instructions into parameters of the entry, bypasses instructions, and
//! removes unused parameters and metadata.
use super::{FailureTest, ReductionStats, Search};
use crate::diag::Result;
use crate::hlo::{CompId, Computation, Inst, InstId, Metadata, Module, Op, Shape, text};
use crate::util::id_vec::IdVec;

/// A change of a module; an instruction belongs to one computation.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Makes the instruction the result of the entry.
    Root(InstId),
    /// Replaces the instruction by a new parameter of the entry.
    Parameter(InstId),
    /// Bypasses the instruction: its users get an operand of the same shape.
    Pass(CompId, InstId),
    /// Clears the instruction's metadata, and attributes that have no effect on results.
    Bare(CompId, InstId),
    /// Removes unused parameters of the entry.
    Unused,
    /// Clears fields of the module's header that have no effect on results.
    Header,
}

/// Minimizes `module` as long as `verdict` on its text stays true, by at most `most` trials.
///
/// # Errors
/// Errors of `verdict`.
pub fn reduce_module(module: Module, most: u64, verdict: &mut FailureTest) -> Result<(Module, ReductionStats)> {
    let mut search = Search::new(verdict, most);
    let mut module = module;
    let apply = |module: &Module, chunk: &[Change]| {
        Ok(applied(module, chunk).map(|module| {
            let bytes = print(&module).into_bytes();
            (module, bytes)
        }))
    };
    loop {
        let before = search.told.kept;
        // Results are tried one at a time, earliest first; one trial removes everything behind the new result.
        for id in module.entry().post_order() {
            let kept = search.told.kept;
            search.apply_all(&mut module, &[Change::Root(id)], &apply)?;
            if search.told.kept > kept {
                break;
            }
        }
        for changes in lists(&module) {
            search.apply_all(&mut module, &changes, &apply)?;
        }
        module = compacted(&module);
        if search.told.kept == before || search.told.cut_short {
            return Ok((module, search.told));
        }
    }
}

/// The text of a module, with all elements of constants.
pub fn print(module: &Module) -> String {
    text::print(&compacted(module))
}

fn lists(module: &Module) -> Vec<Vec<Change>> {
    let entry = module.entry();
    let parameters = entry.post_order().into_iter().rev().map(Change::Parameter).collect();
    let all = || {
        let comps = module.reachable().into_iter();
        comps.flat_map(|c| module.comps[c].post_order().into_iter().rev().map(move |i| (c, i)))
    };
    let pass = all().map(|(c, i)| Change::Pass(c, i)).collect();
    let bare = all().map(|(c, i)| Change::Bare(c, i)).collect();
    vec![parameters, pass, vec![Change::Unused], bare, vec![Change::Header]]
}

/// `module` with the changes applied; `None` if they change nothing.
fn applied(module: &Module, changes: &[Change]) -> Option<Module> {
    let mut module = module.clone();
    let mut changed = false;
    for &change in changes {
        changed |= match change {
            Change::Root(id) => root(&mut module, id),
            Change::Parameter(id) => parameter(&mut module, id),
            Change::Pass(comp, id) => pass(&mut module.comps[comp], id),
            Change::Bare(comp, id) => bare(&mut module.comps[comp].insts[id]),
            Change::Unused => unused(&mut module),
            Change::Header => !std::mem::take(&mut module.extra).is_empty(),
        };
    }
    changed.then_some(module)
}

fn root(module: &mut Module, id: InstId) -> bool {
    let entry = module.entry;
    let comp = &mut module.comps[entry];
    if comp.root == id || matches!(comp[id].op, Op::Parameter(_) | Op::Constant(_)) {
        return false;
    }
    comp.root = id;
    // The layout of the old result does not apply to the new one.
    module.extra.retain(|(name, _)| name != "entry_computation_layout");
    true
}

fn parameter(module: &mut Module, id: InstId) -> bool {
    let entry = module.entry;
    let comp = &mut module.comps[entry];
    let inst = &comp[id];
    let is_value = matches!(inst.shape, Shape::Array(_));
    if !is_value || id == comp.root || matches!(inst.op, Op::Parameter(_) | Op::Constant(_)) {
        return false;
    }
    let number = comp.params.len();
    let made = &mut comp.insts[id];
    made.op = Op::Parameter(number);
    made.operands.clear();
    made.extra.clear();
    comp.params.push(id);
    module.extra.retain(|(name, _)| name != "entry_computation_layout");
    true
}

fn pass(comp: &mut Computation, id: InstId) -> bool {
    let inst = &comp[id];
    if matches!(inst.op, Op::Parameter(_)) {
        return false;
    }
    let Some(&stand_in) = inst.operands.iter().find(|&&o| comp[o].shape == inst.shape) else { return false };
    let mut changed = false;
    for operand in comp.insts.values_mut().flat_map(|i| &mut i.operands) {
        if *operand == id {
            *operand = stand_in;
            changed = true;
        }
    }
    if comp.root == id {
        comp.root = stand_in;
        changed = true;
    }
    changed
}

fn bare(inst: &mut Inst) -> bool {
    let changed = !inst.extra.is_empty() || *inst.metadata != Metadata::default();
    inst.extra.clear();
    inst.metadata = Metadata::default().into();
    changed
}

fn unused(module: &mut Module) -> bool {
    let entry = module.entry;
    let comp = &mut module.comps[entry];
    let users = comp.users();
    let before = comp.params.len();
    let root = comp.root;
    comp.params.retain(|&p| !users[p].is_empty() || p == root);
    for (number, id) in comp.params.clone().into_iter().enumerate() {
        comp.insts[id].op = Op::Parameter(number);
    }
    let changed = comp.params.len() != before;
    if changed {
        module.extra.retain(|(name, _)| name != "entry_computation_layout");
    }
    changed
}

/// The module without computations and instructions that its entry does not reach.
fn compacted(module: &Module) -> Module {
    let mut out = module.clone();
    for comp in out.comps.values_mut() {
        let order = comp.post_order();
        let mut places: IdVec<InstId, Option<InstId>> = comp.insts.ids().map(|_| None).collect();
        let mut insts: IdVec<InstId, Inst> = IdVec::new();
        for &id in &order {
            let mut inst = comp.insts[id].clone();
            inst.operands = inst.operands.iter().filter_map(|&o| places[o]).collect();
            places[id] = Some(insts.push(inst));
        }
        comp.params = comp.params.iter().filter_map(|&p| places[p]).collect();
        comp.root = places[comp.root].unwrap_or(comp.root);
        comp.insts = insts;
    }
    out
}
