//! Which elements of each array the results need, where a call needs only the first elements along some axes of them: those of
//! functions whose sizes vary. What is computed beyond is never read, so that loops may end before it (`emit/limits.rs`).
//!
//! Needs go backwards from the results, opcode by opcode, along each axis by itself. An opcode that is not listed needs its operands
//! whole.
use crate::hlo::attrs::{ConvDims, DotDims, GatherDims, PadDim, SliceDim, WindowDim};
use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op, Shape};
use std::collections::HashMap;

/// Elements along an axis that are needed: those below `times * size + more`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The parameter of the entry that is the size, an `s32[]`.
    pub size: usize,
    /// How many for each of the size.
    pub times: u64,
    /// How many besides.
    pub more: u64,
}

/// For each axis of an array how many elements are needed, all where there is no bound; `None`: nothing of it.
pub type Need = Option<Vec<Option<Bound>>>;

/// What is needed of each array of each instruction.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    comps: HashMap<CompId, HashMap<InstId, Vec<Need>>>,
}

/// Rounds after which what a loop needs of its state is taken to be all of it.
const MOST_ROUNDS: usize = 4;

impl Needed {
    /// Those of a module whose root needs these elements: for each result the parameter that has the size of each axis. Nothing is
    /// known where there are none.
    pub fn of(module: &Module, results: &[Vec<Option<usize>>]) -> Needed {
        let mut needed = Needed::default();
        if results.iter().flatten().all(Option::is_none) {
            return needed;
        }
        let entry = module.entry();
        let leaves = entry[entry.root].shape.leaves();
        let bound = |size: &Option<usize>| size.map(|size| Bound { size, times: 1, more: 0 });
        let root = leaves.iter().enumerate().map(|(i, leaf)| match results.get(i) {
            Some(axes) if axes.len() == leaf.rank() => Some(axes.iter().map(bound).collect()),
            _ => Some(vec![None; leaf.rank()]),
        });
        let root = root.collect();
        needed.computation(module, module.entry, root);
        needed
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.comps.is_empty()
    }

    /// What is needed of the arrays of an instruction, if that is known.
    pub fn get(&self, comp: CompId, id: InstId) -> Option<&[Need]> {
        self.comps.get(&comp)?.get(&id).map(Vec::as_slice)
    }

    /// Adds what a computation needs whose root is needed so; gives what is needed of its parameters.
    fn computation(&mut self, module: &Module, id: CompId, root: Vec<Need>) -> Vec<Vec<Need>> {
        let comp = &module.comps[id];
        let mut own = self.comps.remove(&id).unwrap_or_default();
        join(own.entry(comp.root).or_default(), root);
        for inst in comp.post_order().into_iter().rev() {
            let Some(needs) = own.get(&inst).filter(|needs| needs.iter().any(Option::is_some)).cloned() else {
                continue;
            };
            let operands = self.operands(module, comp, &comp[inst], &needs);
            for (&operand, need) in comp[inst].operands.iter().zip(operands) {
                join(own.entry(operand).or_default(), need);
            }
        }
        let of_params = comp.params.iter().map(|p| own.get(p).cloned().unwrap_or_default()).collect();
        self.comps.insert(id, own);
        of_params
    }

    /// What an instruction needs of its operands.
    fn operands(&mut self, module: &Module, comp: &Computation, inst: &Inst, needs: &[Need]) -> Vec<Vec<Need>> {
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
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => self.computation(module, *callee, needs.to_vec()),
            Op::While { cond, body } => vec![self.while_loop(module, *cond, *body, needs)],
            Op::Conditional(branches) => {
                let selector = vec![whole(shape(0))];
                let of =
                    |b: &CompId| self.computation(module, *b, needs.to_vec()).into_iter().next().unwrap_or_default();
                selector.into_iter().chain(branches.iter().map(of)).collect()
            }
            Op::Sort { dim, .. } => {
                let kept = joined(needs).map(|axes| without(axes, &[*dim]));
                vec![vec![kept]; inst.operands.len()]
            }
            Op::TopK { .. } => {
                let last = shape(0).as_array().map_or(0, |a| a.rank().saturating_sub(1));
                vec![vec![joined(needs).map(|axes| without(axes, &[last]))]]
            }
            Op::Reduce { dims, .. } => {
                let axes = joined(needs).unwrap_or_default();
                let count = inst.operands.len() / 2;
                let rank = shape(0).as_array().map_or(0, |a| a.rank());
                let mut kept = axes.into_iter();
                let of = (0..rank).map(|a| if dims.contains(&a) { None } else { kept.next().flatten() });
                let of: Vec<Option<Bound>> = of.collect();
                let of = |i| if i < count { vec![Some(of.clone())] } else { whole(shape(i)) };
                (0..inst.operands.len()).map(of).collect()
            }
            _ => match needs {
                [Some(axes)] => (0..inst.operands.len()).map(|i| of_array(comp, inst, axes, i)).collect(),
                _ => (0..inst.operands.len()).map(|i| whole(shape(i))).collect(),
            },
        }
    }

    /// What a loop needs of the state before it: what is needed behind it, and what each round needs for that.
    fn while_loop(&mut self, module: &Module, cond: CompId, body: CompId, needs: &[Need]) -> Vec<Need> {
        let root = module.comps[cond].root;
        let mut state = needs.to_vec();
        let of_cond = self.computation(module, cond, whole(&module.comps[cond][root].shape));
        join(&mut state, of_cond.into_iter().next().unwrap_or_default());
        for round in 0.. {
            let before = state.clone();
            let of_body = self.computation(module, body, state.clone());
            join(&mut state, of_body.into_iter().next().unwrap_or_default());
            if state == before {
                break;
            }
            if round == MOST_ROUNDS {
                state = whole(&module.comps[body][module.comps[body].root].shape);
            }
        }
        state
    }
}

/// All elements of a value.
fn whole(shape: &Shape) -> Vec<Need> {
    shape.leaves().iter().map(|leaf| Some(vec![None; leaf.rank()])).collect()
}

/// What is needed of any of several arrays of the same sizes.
fn joined(needs: &[Need]) -> Need {
    let mut all = Vec::new();
    needs.iter().for_each(|need| join(&mut all, vec![need.clone()]));
    all.pop().flatten()
}

/// Adds what is needed besides.
fn join(all: &mut Vec<Need>, more: Vec<Need>) {
    all.resize(all.len().max(more.len()), None);
    for (one, more) in all.iter_mut().zip(more) {
        let Some(more) = more else { continue };
        *one = Some(match one.take() {
            None => more,
            Some(axes) => axes.into_iter().zip(more).map(|(a, b)| larger(a?, b?)).collect(),
        });
    }
}

/// A bound that neither of two is above; `None` where none is known.
fn larger(a: Bound, b: Bound) -> Option<Bound> {
    (a.size == b.size).then(|| Bound { size: a.size, times: a.times.max(b.times), more: a.more.max(b.more) })
}

/// The same bounds but along `axes`, which are needed whole.
fn without(mut bounds: Vec<Option<Bound>>, axes: &[usize]) -> Vec<Option<Bound>> {
    axes.iter().filter(|&&a| a < bounds.len()).collect::<Vec<_>>().into_iter().for_each(|&a| bounds[a] = None);
    bounds
}

/// What an instruction whose result is an array needs of operand `i`, an array too where anything but all of it is.
fn of_array(comp: &Computation, inst: &Inst, axes: &[Option<Bound>], i: usize) -> Vec<Need> {
    let shape = &comp[inst.operands[i]].shape;
    let all = whole(shape);
    let Some(operand) = shape.as_array() else { return all };
    let rank = operand.rank();
    let dims = inst.shape.as_array().map_or(&[][..], |a| &a.dims);
    let same = || if rank == axes.len() { axes.to_vec() } else { vec![None; rank] };
    let at = |axis: usize| axes.get(axis).copied().flatten();
    let of = match &inst.op {
        Op::Elementwise(_) | Op::Map { .. } | Op::AddDependency if rank == axes.len() => same(),
        Op::Broadcast(to) => to.iter().map(|&axis| at(axis)).collect(),
        Op::Transpose(perm) => {
            let mut of = vec![None; rank];
            perm.iter().enumerate().for_each(|(axis, &from)| of[from] = at(axis));
            of
        }
        Op::Reshape | Op::Bitcast => reshaped(axes, dims, &operand.dims),
        Op::Dot(d) => dot(d, &at, i, rank, axes.len()),
        Op::Convolution(d) => convolution(d, &at, i, rank),
        Op::ReduceWindow { window, .. } if i < inst.operands.len() / 2 => windows(axes, window),
        Op::Concatenate(axis) => without(same(), &[*axis]),
        Op::Slice(all) => all.iter().zip(axes).map(|(s, b)| sliced(s, (*b)?)).collect(),
        Op::Pad(all) if i == 0 => all.iter().zip(axes).map(|(p, b)| unpadded(p, (*b)?)).collect(),
        Op::Reverse(turned) => without(same(), turned),
        Op::DynamicSlice(_) if i == 0 => moved(axes, dims, &operand.dims),
        Op::DynamicUpdateSlice if i == 0 => same(),
        Op::DynamicUpdateSlice if i == 1 => moved(axes, &operand.dims, dims),
        Op::Gather(d) => gather(d, &at, i, &operand.dims, axes.len()),
        Op::Cholesky { .. } | Op::TriangularSolve { .. } => {
            let inner: Vec<usize> = (rank.saturating_sub(2)..rank).collect();
            without(same(), &inner)
        }
        Op::Fft { length, .. } => {
            let inner: Vec<usize> = (rank.saturating_sub(length.len())..rank).collect();
            without(same(), &inner)
        }
        _ => return all,
    };
    vec![Some(of)]
}

fn dot(d: &DotDims, at: &dyn Fn(usize) -> Option<Bound>, i: usize, rank: usize, result: usize) -> Vec<Option<Bound>> {
    let (batch, contracting) = match i {
        0 => (&d.lhs_batch, &d.lhs_contracting),
        _ => (&d.rhs_batch, &d.rhs_contracting),
    };
    let free = rank - batch.len() - contracting.len();
    // the result has batch axes, then the free ones of the left side, then those of the right
    let mut next = if i == 0 { batch.len() } else { result - free };
    let of = |axis: usize| {
        if let Some(b) = batch.iter().position(|&x| x == axis) {
            return at(b);
        }
        if contracting.contains(&axis) {
            return None;
        }
        next += 1;
        at(next - 1)
    };
    (0..rank).map(of).collect()
}

fn convolution(d: &ConvDims, at: &dyn Fn(usize) -> Option<Bound>, i: usize, rank: usize) -> Vec<Option<Bound>> {
    let mut of = vec![None; rank];
    match i {
        0 if d.batch_group_count == 1 => of[d.input_batch] = at(d.output_batch),
        1 if d.batch_group_count == 1 && d.feature_group_count == 1 => {
            of[d.kernel_output_feature] = at(d.output_feature);
        }
        _ => {}
    }
    of
}

/// Windows of one element leave their axis as it is.
fn windows(axes: &[Option<Bound>], window: &[WindowDim]) -> Vec<Option<Bound>> {
    window.iter().zip(axes).map(|(w, b)| b.filter(|_| w.is_element())).collect()
}

fn sliced(s: &SliceDim, b: Bound) -> Option<Bound> {
    (s.stride == 1).then(|| Bound { more: b.more.saturating_add(s.start), ..b })
}

fn unpadded(p: &PadDim, b: Bound) -> Option<Bound> {
    let more = i64::try_from(b.more).ok()?.checked_sub(p.low)?;
    (p.interior == 0).then(|| Bound { more: more.max(0) as u64, ..b })
}

/// The bounds of axes along which a box is as large as the array that it is taken from.
fn moved(axes: &[Option<Bound>], part: &[u64], array: &[u64]) -> Vec<Option<Bound>> {
    axes.iter().zip(part.iter().zip(array)).map(|(b, (part, all))| b.filter(|_| part == all)).collect()
}

fn gather(
    d: &GatherDims,
    at: &dyn Fn(usize) -> Option<Bound>,
    i: usize,
    dims: &[u64],
    result: usize,
) -> Vec<Option<Bound>> {
    let mut of = vec![None; dims.len()];
    if i == 0 {
        let kept =
            (0..dims.len()).filter(|a| !d.collapsed_slice_dims.contains(a) && !d.operand_batching_dims.contains(a));
        for (axis, &offset) in kept.zip(&d.offset_dims) {
            // a slice as long as its axis begins at its first element
            if d.slice_sizes.get(axis) == Some(&dims[axis]) {
                of[axis] = at(offset);
            }
        }
    } else {
        let batch = (0..result).filter(|a| !d.offset_dims.contains(a));
        let own = (0..dims.len()).filter(|&a| a != d.index_vector_dim);
        own.zip(batch).for_each(|(axis, from)| of[axis] = at(from));
    }
    of
}

/// Bounds of the operand of a reshape from `to` to `dims`: groups of axes with equally many elements are looked at by themselves, and a
/// bound of the first axis of one becomes one of the first axis there.
fn reshaped(axes: &[Option<Bound>], dims: &[u64], to: &[u64]) -> Vec<Option<Bound>> {
    let mut of = vec![None; to.len()];
    let real = |dims: &[u64]| (0..dims.len()).filter(|&a| dims[a] != 1).collect::<Vec<_>>();
    let (from, into) = (real(dims), real(to));
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < into.len() {
        let (first, other) = (from[i], into[j]);
        let (mut a, mut b) = (dims[first], to[other]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            match (a < b, i < from.len(), j < into.len()) {
                (true, true, _) => {
                    a = a.saturating_mul(dims[from[i]]);
                    i += 1;
                }
                (false, _, true) => {
                    b = b.saturating_mul(to[into[j]]);
                    j += 1;
                }
                _ => return vec![None; to.len()],
            }
        }
        let inner = |whole: u64, first: u64| whole.checked_div(first).filter(|&n| n > 0);
        let (Some(bound), Some(have), Some(want)) = (axes[first], inner(a, dims[first]), inner(b, to[other])) else {
            continue;
        };
        let times = bound.times.checked_mul(have).filter(|n| n % want == 0);
        let more = bound.more.checked_mul(have);
        if let (Some(times), Some(more)) = (times, more) {
            of[other] = Some(Bound { times: times / want, more: more.div_ceil(want), ..bound });
        }
    }
    of
}
