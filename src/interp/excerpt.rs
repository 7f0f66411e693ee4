//! Extraction of the part of a computation under construction on which one value depends.
use crate::hlo::{Builder, CompId, Computation, Inst, InstId, Module, SizeMapping, SizeRepr};
use crate::symbolic::Dim;
use crate::util::id_vec::IdVec;
use std::cell::Cell;
use std::collections::HashMap;

/// Largest number of instructions of an excerpt.
const MAX_INSTS: usize = 1 << 16;

/// Module whose entry computes value `id` of the current computation, and the id of that value in it. `None` if it takes too
/// many instructions, depends on one that `is_known` rejects, or on one whose attributes depend on open sizes.
pub fn extract_subgraph<D: SizeRepr>(
    b: &Builder<D>,
    id: InstId,
    is_known: impl Fn(&Inst<D>) -> bool,
) -> Option<(Module, InstId)> {
    let comp = b.current_computation();
    let mut needed: Vec<InstId> = Vec::new();
    let mut places: HashMap<InstId, InstId> = HashMap::new();
    let mut todo = vec![id];
    while let Some(id) = todo.pop() {
        let inst = comp.insts.get(id)?;
        if places.insert(id, id).is_some() {
            continue;
        }
        if !is_known(inst) || needed.len() >= MAX_INSTS {
            return None;
        }
        needed.push(id);
        todo.extend(&inst.operands);
    }
    needed.sort_unstable();
    for (place, id) in needed.iter().enumerate() {
        places.insert(*id, InstId(place as u32));
    }
    let mut callees = Callees { from: &b.module().comps, comps: IdVec::new(), places: HashMap::new() };
    let mut insts = IdVec::new();
    let mut params = Vec::new();
    for id in needed {
        let sizes = b.size_constant_elements(id).into_iter().flatten();
        if varies(&comp.insts[id]) || sizes.map(|&size| size.into()).any(Dim::varies) {
            return None;
        }
        let mut inst = comp.insts[id].at_current_sizes();
        inst.operands.iter_mut().for_each(|o| *o = places[o]);
        callees.take(&mut inst)?;
        let is_parameter = matches!(inst.op, crate::hlo::Op::Parameter(_));
        let own = insts.push(inst);
        params.extend(is_parameter.then_some(own));
    }
    let root = places[&id];
    let mut comps = callees.comps;
    let entry = comps.push(Computation {
        name: comp.name.clone(),
        insts,
        params,
        root,
        sizes: Vec::new(),
        size_constants: Vec::new(),
    });
    Some((Module { name: String::new(), comps, entry, extra: Vec::new(), replaceable: false }, root))
}

/// Whether an instruction's shape or attributes depend on open sizes.
fn varies<D: SizeRepr>(inst: &Inst<D>) -> bool {
    let any = Cell::new(false);
    let size = |d: D| {
        any.set(any.get() || d.into().varies());
        d
    };
    let signed = |d: D::SignedSize| {
        any.set(any.get() || d.into().varies());
        d
    };
    drop(inst.map_sizes(SizeMapping { size: &size, signed: &signed }));
    any.get()
}

/// Copies of the called computations, made on first use.
struct Callees<'a, D: SizeRepr> {
    from: &'a IdVec<CompId, Computation<D>>,
    comps: IdVec<CompId, Computation>,
    places: HashMap<CompId, CompId>,
}

impl<D: SizeRepr> Callees<'_, D> {
    /// Redirects the called computations of an instruction to their copies in the excerpt.
    fn take(&mut self, inst: &mut Inst) -> Option<()> {
        for called in inst.op.called_computations() {
            self.copy(called)?;
        }
        inst.op.called_computations_mut().into_iter().for_each(|called| *called = self.places[called]);
        Some(())
    }

    /// Copies a computation and everything that it calls, callees first.
    fn copy(&mut self, id: CompId) -> Option<()> {
        let mut todo = vec![(id, false)];
        while let Some((id, ready)) = todo.pop() {
            if self.places.contains_key(&id) {
                continue;
            }
            let from = self.from.get(id)?;
            if !ready {
                todo.push((id, true));
                todo.extend(
                    from.insts.values().flat_map(|inst| inst.op.called_computations()).map(|called| (called, false)),
                );
                continue;
            }
            if !from.size_constants.is_empty() || from.insts.values().any(varies) {
                return None;
            }
            let mut own = from.at_current_sizes();
            for inst in own.insts.values_mut() {
                inst.op.called_computations_mut().into_iter().for_each(|called| *called = self.places[called]);
            }
            let place = self.comps.push(own);
            self.places.insert(id, place);
        }
        Some(())
    }
}
