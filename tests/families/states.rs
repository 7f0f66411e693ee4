//! `states`: modules of the other families, some of whose parameters are variables of the state, which a call reads and, where a result is
//! of the same type, writes over. What lies in the state must be what the interpreter has, bits and bytes beside it untouched.
use super::common::random::Random;
use super::text::Case;
use super::{control, folds, order, places, points, products, sequences};
use tfaot::hlo::{Op, Shape};
use tfaot::lower::{Lowered, StateVariable};
use tfaot::tensor::Tensor;

const FAMILIES: &[fn(&mut Random) -> Case] = &[
    points::pointwise,
    points::short_rows,
    points::transform,
    folds::reduce,
    folds::rows,
    folds::scan,
    products::contraction,
    products::matrix_vector,
    order::sort,
    places::gather,
    places::slices,
    places::scatter,
    control::loops,
    control::loops_together,
    sequences::sequences,
];

/// A module of another family.
pub fn states(r: &mut Random) -> Case {
    let make = FAMILIES[r.below(FAMILIES.len())];
    Case { stateful: true, ..make(r) }
}

/// A function with variables.
pub struct Stateful {
    pub lowered: Lowered,
    /// Its arguments.
    pub args: Vec<Tensor>,
    /// What the variables are before the call.
    pub values: Vec<Tensor>,
    /// Which result of the module each of its results is.
    pub results: Vec<usize>,
    /// Which result of the module each variable gets, `None` where it stays.
    pub changed: Vec<Option<usize>>,
}

/// The function of a module with flat parameters and results, filled with `all`, some of whose parameters become variables.
pub fn with_variables(mut lowered: Lowered, all: Vec<Tensor>, seed: u64) -> Stateful {
    let mut r = Random::new(seed ^ 0x57a7e);
    let (mut args, mut variables, mut taken) = (Vec::new(), Vec::new(), vec![false; lowered.results.len()]);
    for (p, info) in lowered.args.iter().enumerate() {
        let same = |&j: &usize| lowered.results[j].dtype == info.dtype && lowered.results[j].dims == info.dims;
        let result = (0..taken.len()).filter(|&j| !taken[j]).find(same).filter(|_| r.below(4) > 0);
        match result {
            Some(j) => {
                taken[j] = true;
                variables.push((p, Some(j)));
            }
            None if r.below(3) == 0 => variables.push((p, None)),
            None => args.push(p),
        }
    }
    // a new value may be a result too
    let results: Vec<usize> = (0..taken.len()).filter(|&j| !taken[j] || r.below(4) == 0).collect();
    let order: Vec<usize> = args.iter().copied().chain(variables.iter().map(|v| v.0)).collect();
    let new: Vec<usize> = results.iter().copied().chain(variables.iter().filter_map(|v| v.1)).collect();
    let entry = lowered.module.entry;
    let comp = &mut lowered.module.comps[entry];
    comp.params = order.iter().map(|&p| comp.params[p]).collect();
    for (number, &id) in comp.params.iter().enumerate() {
        comp.insts[id].op = Op::Parameter(number);
    }
    let old = comp.insts[comp.root].operands.clone();
    let operands: Vec<_> = new.iter().map(|&j| old[j]).collect();
    let shapes = operands.iter().map(|&id| comp.insts[id].shape.clone()).collect();
    (comp.insts[comp.root].operands, comp.insts[comp.root].shape) = (operands, Shape::Tuple(shapes));
    let infos = std::mem::take(&mut lowered.args);
    let variable = |(i, &(p, result)): (usize, &(usize, Option<usize>))| {
        let mut info = infos[p].clone();
        (info.name, info.field) = (format!("v/{i}"), format!("v{i}"));
        StateVariable { info, initial: None, changed: result.is_some() }
    };
    lowered.state = variables.iter().enumerate().map(variable).collect();
    lowered.args = args.iter().map(|&p| infos[p].clone()).collect();
    lowered.results = results.iter().map(|&j| lowered.results[j].clone()).collect();
    Stateful {
        lowered,
        args: args.iter().map(|&p| all[p].clone()).collect(),
        values: variables.iter().map(|v| all[v.0].clone()).collect(),
        results,
        changed: variables.iter().map(|v| v.1).collect(),
    }
}
