//! Analysis of the sizes of arrays from which a value is computed.
use super::{Computation, InstId, Literal, Op, SizeRepr};
use std::collections::{HashMap, HashSet};

/// Largest number of elements of a slice that are tracked separately.
const MOST_ELEMENTS: u64 = 1 << 10;

/// A set of elements of an array, by row-major number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ElementSet {
    All,
    Some(Vec<u64>),
}

/// Sizes of arrays from which `id` is computed; `constants` are the constants that hold such sizes.
pub(super) fn sizes_determining<D: SizeRepr>(
    comp: &Computation<D>,
    constants: &HashMap<InstId, Vec<D::SignedSize>>,
    id: InstId,
) -> Vec<i64> {
    let (mut sizes, mut seen) = (Vec::new(), HashSet::new());
    if constants.is_empty() {
        return sizes;
    }
    let mut todo = vec![(id, ElementSet::All)];
    while let Some((id, elements)) = todo.pop() {
        if !seen.insert((id, elements.clone())) {
            continue;
        }
        if constants.contains_key(&id) {
            sizes.extend(values(comp, id, &elements));
        } else {
            todo.extend(operands(comp, id, elements));
        }
    }
    sizes
}

/// Values of some elements of a constant.
fn values<D: SizeRepr>(comp: &Computation<D>, id: InstId, elements: &ElementSet) -> Vec<i64> {
    let Op::Constant(Literal::Array(tensor)) = &comp.insts[id].op else { return Vec::new() };
    match elements {
        ElementSet::All => (0..tensor.len()).filter_map(|i| tensor.get_i64(i)).collect(),
        ElementSet::Some(of) => of.iter().filter_map(|&i| tensor.get_i64(usize::try_from(i).ok()?)).collect(),
    }
}

/// Elements of operands on which elements of an instruction depend, or a superset.
fn operands<D: SizeRepr>(comp: &Computation<D>, id: InstId, elements: ElementSet) -> Vec<(InstId, ElementSet)> {
    let Some(inst) = comp.insts.get(id) else { return Vec::new() };
    let count = |id: InstId| comp.insts[id].shape.as_array().map_or(0, |a| a.elements().at_current_sizes());
    match (&inst.op, &inst.operands[..]) {
        (Op::Reshape | Op::Copy, &[x]) => vec![(x, elements)],
        (Op::Elementwise(_), all) if all.iter().all(|&x| count(x) == count(id)) => {
            all.iter().map(|&x| (x, elements.clone())).collect()
        }
        (Op::Slice(dims), &[x]) => {
            let [slice] = dims[..] else { return vec![(x, ElementSet::All)] };
            let of: Vec<u64> = match elements {
                ElementSet::Some(of) => of,
                ElementSet::All if count(id) <= MOST_ELEMENTS => (0..count(id)).collect(),
                ElementSet::All => return vec![(x, ElementSet::All)],
            };
            vec![(
                x,
                ElementSet::Some(
                    of.into_iter()
                        .map(|i| slice.start.at_current_sizes() + i * slice.stride.at_current_sizes())
                        .collect(),
                ),
            )]
        }
        (Op::Concatenate(_), parts) if inst.shape.as_array().is_some_and(|a| a.rank() == 1) => {
            let ElementSet::Some(of) = elements else { return parts.iter().map(|&x| (x, ElementSet::All)).collect() };
            let mut begin = 0;
            let mut out = Vec::with_capacity(parts.len());
            for &part in parts {
                let end = begin + count(part);
                let own: Vec<u64> = of.iter().filter(|i| (begin..end).contains(*i)).map(|i| i - begin).collect();
                out.extend((!own.is_empty()).then_some((part, ElementSet::Some(own))));
                begin = end;
            }
            out
        }
        (_, all) => all.iter().map(|&x| (x, ElementSet::All)).collect(),
    }
}
