//! Rule 8: called computations match their callers.
use super::{CheckResult, array};
use crate::hlo::{CompId, Computation, Inst, Module, Op, Shape};
use crate::tensor::DType;

fn params_are(comp: &Computation, want: &[&Shape]) -> CheckResult {
    if comp.params.len() != want.len() {
        return Err(format!(
            "expected computation {} to have {} parameters, has {}",
            comp.name,
            want.len(),
            comp.params.len()
        ));
    }
    for (i, (&p, shape)) in comp.params.iter().zip(want).enumerate() {
        let own = &comp.insts[p].shape;
        if !own.same_type_and_dims(shape) {
            return Err(format!("parameter {i} of {} is {own}, and the caller gives {shape}", comp.name));
        }
    }
    Ok(())
}

/// Float types that a computation may take for the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Floats {
    /// Parameters and results must have the type of the elements.
    AsGiven,
    /// Any type that also holds every value of the elements' type: elements are converted to it, and results back, as XLA does
    /// for `scatter` and `sort`.
    OrWider,
}

/// Whether a scalar parameter of shape `own` can take an element of `dtype`.
fn accepts_element(own: &Shape, dtype: DType, floats: Floats) -> bool {
    let Some(a) = own.as_array().filter(|a| a.rank() == 0) else { return false };
    let is_wider = || a.dtype.is_float() && dtype.is_float() && a.dtype.bytes() > dtype.bytes();
    a.dtype == dtype || (floats == Floats::OrWider && is_wider())
}

/// Checks that a comparator takes two elements of each sorted array.
fn check_comparator(comp: &Computation, want: &[Shape]) -> CheckResult {
    let own: Vec<&Shape> = comp.params.iter().map(|&p| &comp.insts[p].shape).collect();
    let fits = |(own, want): (&&Shape, &Shape)| {
        want.as_array().is_some_and(|w| accepts_element(own, w.dtype, Floats::OrWider))
    };
    if own.len() == want.len() && own.iter().zip(want).all(fits) {
        return Ok(());
    }
    params_are(comp, &want.iter().collect::<Vec<_>>())
}

fn root(comp: &Computation) -> &Shape {
    &comp.insts[comp.root].shape
}

fn check_result(comp: &Computation, want: &Shape) -> CheckResult {
    let own = root(comp);
    if own.same_type_and_dims(want) {
        Ok(())
    } else {
        Err(format!("computation {} returns {own}, not {want}", comp.name))
    }
}

fn one_or_tuple(mut shapes: Vec<Shape>) -> Shape {
    if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) }
}

fn element_scalars(shapes: &[&Shape]) -> Result<Vec<Shape>, String> {
    (0..shapes.len()).map(|i| array(shapes, i).map(|a| Shape::array(a.dtype, []))).collect()
}

/// Checks a reduction computation (acc.., value..) -> acc; returns the element types of its result.
fn fold(
    module: &Module,
    comp: CompId,
    inputs: &[&Shape],
    inits: Option<&[&Shape]>,
    floats: Floats,
) -> Result<Vec<DType>, String> {
    let comp = &module.comps[comp];
    let n = inputs.len();
    if comp.params.len() != 2 * n {
        return Err(format!(
            "expected computation {} to have {} parameters, has {}",
            comp.name,
            2 * n,
            comp.params.len()
        ));
    }
    let parts: Vec<&Shape> = match root(comp) {
        Shape::Tuple(parts) => parts.iter().collect(),
        one => vec![one],
    };
    if parts.len() != n {
        return Err(format!("computation {} returns {} values for {n}", comp.name, parts.len()));
    }
    let mut types = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let acc = part.as_array().filter(|a| a.rank() == 0).ok_or("a folding computation returns no scalar")?;
        let first = &comp.insts[comp.params[i]].shape;
        let second = &comp.insts[comp.params[n + i]].shape;
        let value = array(inputs, i)?;
        if !first.same_type_and_dims(part) {
            return Err(format!("parameter {i} of {} is {first}, and it returns {part}", comp.name));
        }
        if !accepts_element(second, value.dtype, floats) {
            return Err(format!("parameter {} of {} is {second} for elements of {value}", n + i, comp.name));
        }
        if inits.is_some_and(|inits| !inits[i].same_type_and_dims(part)) {
            return Err(format!("initial value {i} does not fit {}", comp.name));
        }
        types.push(acc.dtype);
    }
    Ok(types)
}

/// Shape with the element types of its arrays replaced.
fn with_element_types(shape: Shape, types: &[DType]) -> Shape {
    match shape {
        Shape::Array(mut a) => {
            a.dtype = types.first().copied().unwrap_or(a.dtype);
            Shape::Array(a)
        }
        Shape::Tuple(parts) => Shape::Tuple(
            parts.into_iter().enumerate().map(|(i, p)| with_element_types(p, types.get(i..).unwrap_or(&[]))).collect(),
        ),
        other => other,
    }
}

fn result_is(inst: &Inst, want: &Shape) -> CheckResult {
    if inst.shape.same_type_and_dims(want) {
        return Ok(());
    }
    Err(format!("expected instruction to have shape equal to {want}, actual shape is {}", inst.shape))
}

/// Checks the computations that `inst` calls.
pub(super) fn check(module: &Module, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    let n = shapes.len() / 2;
    let comp = |id: &CompId| &module.comps[*id];
    let infer = || crate::hlo::infer::infer(&inst.op, shapes, module);
    match &inst.op {
        Op::Call(c) => {
            params_are(comp(c), shapes)?;
            check_result(comp(c), &inst.shape)
        }
        Op::Fusion { comp: c, .. } => {
            params_are(comp(c), shapes)?;
            check_result(comp(c), &inst.shape)
        }
        Op::While { cond, body } => {
            params_are(comp(cond), shapes)?;
            params_are(comp(body), shapes)?;
            check_result(comp(cond), &Shape::array(DType::Pred, []))?;
            check_result(comp(body), &inst.shape)
        }
        Op::Conditional(branches) => conditional(module, inst, branches, shapes),
        Op::Map { comp: c, dims } => map(comp(c), inst, dims, shapes),
        Op::Reduce { comp: c, .. } | Op::ReduceWindow { comp: c, .. } => {
            same_dims(&shapes[..n])?;
            let types = fold(module, *c, &shapes[..n], Some(&shapes[n..]), Floats::AsGiven)?;
            result_is(inst, &with_element_types(infer()?, &types))
        }
        Op::Scatter { comp: c, .. } => scatter(module, inst, *c, shapes),
        Op::SelectAndScatter { select, scatter, .. } => {
            let scalar = Shape::array(array(shapes, 0)?.dtype, []);
            params_are(comp(select), &[&scalar, &scalar])?;
            check_result(comp(select), &Shape::array(DType::Pred, []))?;
            params_are(comp(scatter), &[&scalar, &scalar])?;
            check_result(comp(scatter), &scalar)
        }
        Op::Sort { comp: c, .. } => {
            let want: Vec<Shape> = element_scalars(shapes)?.into_iter().flat_map(|s| [s.clone(), s]).collect();
            check_comparator(comp(c), &want)?;
            check_result(comp(c), &Shape::array(DType::Pred, []))
        }
        _ => Ok(()),
    }
}

fn conditional(module: &Module, inst: &Inst, branches: &[CompId], shapes: &[&Shape]) -> CheckResult {
    let selector = array(shapes, 0)?;
    if selector.rank() != 0 || !matches!(selector.dtype, DType::Pred | DType::S32) {
        return Err(format!("the selector is {selector}, neither pred[] nor s32[]"));
    }
    if branches.is_empty() || branches.len() + 1 != shapes.len() {
        return Err(format!("{} branches for {} operands", branches.len(), shapes.len()));
    }
    if selector.dtype == DType::Pred && branches.len() != 2 {
        return Err("a pred chooses between two branches".to_string());
    }
    for (branch, &shape) in branches.iter().zip(&shapes[1..]) {
        params_are(&module.comps[*branch], &[shape])?;
        check_result(&module.comps[*branch], &inst.shape)?;
    }
    Ok(())
}

fn map(comp: &Computation, inst: &Inst, dims: &[usize], shapes: &[&Shape]) -> CheckResult {
    let first = array(shapes, 0)?;
    if dims.iter().enumerate().any(|(i, &d)| i != d) || (!dims.is_empty() && dims.len() != first.rank()) {
        return Err(format!("dimensions {dims:?} of a map over {first}"));
    }
    if (1..shapes.len()).any(|i| array(shapes, i).is_ok_and(|a| a.dims != first.dims)) {
        return Err("operands of a map differ in their dimensions".to_string());
    }
    let want = element_scalars(shapes)?;
    params_are(comp, &want.iter().collect::<Vec<_>>())?;
    let out = root(comp).as_array().filter(|a| a.rank() == 0).ok_or("a map's computation returns no scalar")?;
    result_is(inst, &Shape::array(out.dtype, first.dims.clone()))
}

fn scatter(module: &Module, inst: &Inst, comp: CompId, shapes: &[&Shape]) -> CheckResult {
    let n = shapes.len() / 2;
    let types = fold(module, comp, &shapes[n + 1..], None, Floats::OrWider)?;
    let operands: Vec<Shape> = shapes[..n].iter().map(|s| (*s).clone()).collect();
    let returned = |t: &DType| Shape::array(*t, []);
    let kept = |(s, t): (&Shape, &DType)| {
        s.as_array().is_some_and(|a| accepts_element(&returned(t), a.dtype, Floats::OrWider))
    };
    if !operands.iter().zip(&types).all(kept) {
        return Err("the updates' computation does not return the operands' types".to_string());
    }
    result_is(inst, &one_or_tuple(operands))
}

fn same_dims(shapes: &[&Shape]) -> CheckResult {
    let first = array(shapes, 0)?;
    for i in 1..shapes.len() {
        let other = array(shapes, i)?;
        if other.dims != first.dims {
            return Err(format!("{other} and {first} differ in their dimensions"));
        }
    }
    Ok(())
}
