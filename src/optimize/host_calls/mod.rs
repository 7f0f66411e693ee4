//! Calls of functions that the process which loads the code provides, such as handlers of XLA's FFI and callbacks into Python.
//!
//! [`separate_host_calls`] gives each `custom-call` of such a function a number and moves its attributes into a table ([`HostCall`]),
//! beside the module. Calls with effects happen in the order of the program, each as often as the program says: `effects.rs` threads a
//! scalar through them, so that each call depends on the one before, and the entry returns the scalar as its last result. Tokens then
//! order nothing, and become arrays without elements (`tokens.rs`).
mod conditions;
mod effects;
mod tokens;

use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::attrs::ForeignOp;
use crate::hlo::{CompId, Computation, Inst, InstId, Module, Op, Shape};
use crate::tensor::DType;
use std::collections::HashMap;

/// Attribute of a `custom-call` that has the number of its function in the table of host calls.
pub const HOST_CALL: &str = "host_call";

/// One call of a function of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// The name of the function.
    pub target: String,
    /// XLA's version number of the call interface, 1 to 4.
    pub api_version: u32,
    /// The text or bytes that the module hands on: of version 4 a dictionary, which [`read_call_attributes`] reads.
    ///
    /// [`read_call_attributes`]: crate::hlo::stablehlo::read_call_attributes
    pub config: Vec<u8>,
    /// Shapes of the operands in logical order, arrays with their memory layouts and tokens.
    pub args: Vec<Shape>,
    /// Shapes of the results, as of the operands.
    pub results: Vec<Shape>,
    /// Results that are written over an operand: the index of each with that of the operand.
    pub aliases: Vec<(usize, usize)>,
    /// Whether the call has an effect. Its first array operand and result are then the scalar that orders effects, beside those listed.
    pub has_effect: bool,
}

/// The calls of a module that the process serves.
#[derive(Clone, Debug, Default)]
pub struct HostCalls {
    /// The calls, by number.
    pub all: Vec<HostCall>,
    /// Whether the entry has the scalar that orders effects as a further, last result.
    pub has_effects: bool,
}

/// Separates the custom calls whose target `is_hosted` from a module, and orders those with effects.
///
/// # Errors
/// `Code::HloUnsupported` for calls with nested tuples or computations, and for effects in computations of reductions, sorts and the like.
pub fn separate_host_calls(module: &mut Module, is_hosted: &dyn Fn(&str) -> bool) -> Result<HostCalls> {
    let mut calls = HostCalls::default();
    for comp in module.comps.values_mut() {
        let listed: Vec<InstId> = comp.insts.ids().collect();
        let mut values = HashMap::new();
        for &at in &listed {
            let Op::Foreign(call) = &comp[at].op else { continue };
            let target = call.attr("custom_call_target").unwrap_or("");
            if call.opcode == "custom-call" && !call.is_placement_hint() && is_hosted(target) {
                let call = (**call).clone();
                values.insert(at, separate(comp, at, call, &mut calls.all)?);
            }
        }
        redirect(comp, listed.len(), &values);
    }
    calls.has_effects = calls.all.iter().any(|call| call.has_effect);
    tokens::replace_tokens(module);
    if calls.has_effects {
        conditions::move_effects_out_of_conditions(module);
        effects::order_effects(module)?;
    }
    Ok(calls)
}

/// The scalar that orders effects.
fn effect_shape() -> Shape {
    Shape::array(DType::S32, [])
}

/// Makes the call `at` a numbered one on arrays alone, whose results are a tuple; returns its former value, made of these results.
fn separate(comp: &mut Computation, at: InstId, mut call: ForeignOp, all: &mut Vec<HostCall>) -> Result<InstId> {
    let inst = comp[at].clone();
    let target = call.attr("custom_call_target").unwrap_or("").to_string();
    let refuse = |why: &str| {
        let told = format!("the custom call `{target}` {why}");
        Err(Diagnostic::new(Code::HloUnsupported, told).help("pass arrays and tokens alone").into())
    };
    if !call.calls.is_empty() {
        return refuse("calls computations");
    }
    let mut args: Vec<Shape> = inst.operands.iter().map(|&o| comp[o].shape.clone()).collect();
    if let Some(layouts) = call.operand_layouts() {
        let layouts = layouts?;
        if layouts.len() != args.len() {
            return refuse("has layouts for another number of operands");
        }
        args = layouts;
    }
    let results = parts_of(&inst.shape);
    if args.iter().chain(&results).any(|shape| !matches!(shape, Shape::Array(_) | Shape::Token)) {
        return refuse("has tuples in tuples, or buffers");
    }
    let aliases = call.attr("output_to_operand_aliasing").map_or(Some(Vec::new()), aliases);
    let Some(aliases) = aliases else { return refuse("has results over parts of operands") };
    let is_token = |shape: &Shape| *shape == Shape::Token;
    let has_effect = call.is_attr_true("custom_call_has_side_effect") || args.iter().chain(&results).any(is_token);
    let number = all.len();
    all.push(HostCall {
        api_version: call.call_api_version(),
        config: call.call_config(&inst.extra),
        args: args.clone(),
        results: results.clone(),
        target,
        aliases,
        has_effect,
    });
    let state = has_effect.then(effect_shape);
    let constraints: Vec<String> =
        state.iter().chain(args.iter().filter(|s| !is_token(s))).map(Shape::to_string).collect();
    let operands = inst.operands.iter().zip(&args).filter(|(_, shape)| !is_token(shape)).map(|(&o, _)| o).collect();
    call.attrs.retain(|a| !matches!(a.0.as_str(), "output_to_operand_aliasing" | "operand_layout_constraints"));
    call.attrs.push(("operand_layout_constraints".to_string(), format!("{{{}}}", constraints.join(", "))));
    call.attrs.push((HOST_CALL.to_string(), number.to_string()));
    call.attrs.extend(has_effect.then(|| (EFFECT.to_string(), "true".to_string())));
    let given: Vec<Shape> = state.into_iter().chain(results.iter().filter(|s| !is_token(s)).cloned()).collect();
    let inst = &mut comp.insts[at];
    let shape = std::mem::replace(&mut inst.shape, Shape::Tuple(given));
    (inst.op, inst.operands) = (Op::Foreign(Box::new(call)), operands);
    let mut next = usize::from(has_effect);
    let mut parts = Vec::with_capacity(results.len());
    for part in &results {
        if is_token(part) {
            parts.push(push(comp, Op::AfterAll, Vec::new(), Shape::Token));
        } else {
            parts.push(push(comp, Op::GetTupleElement(next), vec![at], part.clone()));
            next += 1;
        }
    }
    Ok(match (&shape, &parts[..]) {
        (Shape::Tuple(_), _) | (_, []) => push(comp, Op::Tuple, parts, shape),
        (_, &[part, ..]) => part,
    })
}

/// Replaces operands of the first `count` instructions, and the root of a computation, by other values.
fn redirect(comp: &mut Computation, count: usize, values: &HashMap<InstId, InstId>) {
    for inst in comp.insts.values_mut().take(count) {
        inst.operands.iter_mut().for_each(|o| *o = values.get(o).copied().unwrap_or(*o));
    }
    comp.root = values.get(&comp.root).copied().unwrap_or(comp.root);
}

/// Indices of results and operands in XLA's text `{{0}: (1, {})}`; `None` for parts of tuples that are operands.
fn aliases(text: &str) -> Option<Vec<(usize, usize)>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut all = Vec::new();
    for one in inside.split(')').filter(|one| one.contains('(')) {
        let (result, operand) = one.split_once('(')?;
        let (operand, part) = operand.split_once(',')?;
        let part = part.split_once('{')?.1.split_once('}')?.0;
        let result = result.split_once('{')?.1.split_once('}')?.0.trim();
        if !part.trim().is_empty() {
            return None;
        }
        let result = if result.is_empty() { 0 } else { result.parse().ok()? };
        all.push((result, operand.trim().parse().ok()?));
    }
    Some(all)
}

/// Appends an instruction to a computation.
fn push(comp: &mut Computation, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
    let name = format!("{}.host.{}", op.name(), comp.insts.len());
    comp.insts.push(Inst { name, op, operands, shape, metadata: Default::default(), extra: Vec::new() })
}

/// The parts of a tuple's shape, or the shape alone.
fn parts_of(shape: &Shape) -> Vec<Shape> {
    shape.as_tuple().map_or_else(|| vec![shape.clone()], <[Shape]>::to_vec)
}

/// The parts of the value `id`, or the value alone if it is no tuple.
fn push_parts(comp: &mut Computation, id: InstId) -> Vec<InstId> {
    if comp[id].shape.as_tuple().is_none() {
        return vec![id];
    }
    parts_of(&comp[id].shape)
        .into_iter()
        .enumerate()
        .map(|(i, part)| push(comp, Op::GetTupleElement(i), vec![id], part))
        .collect()
}

/// Appends a tuple of the parts of `id` and of `last`.
fn push_with_last(comp: &mut Computation, id: InstId, last: InstId) -> InstId {
    let mut parts = push_parts(comp, id);
    parts.push(last);
    let shape = Shape::Tuple(parts.iter().map(|&p| comp[p].shape.clone()).collect());
    push(comp, Op::Tuple, parts, shape)
}

/// Appends the value of shape `shape` whose parts stand at the beginning of the tuple `from`.
fn push_first_parts(comp: &mut Computation, from: InstId, shape: &Shape) -> InstId {
    let Shape::Tuple(parts) = shape else { return push(comp, Op::GetTupleElement(0), vec![from], shape.clone()) };
    let part = |(i, part): (usize, &Shape)| push(comp, Op::GetTupleElement(i), vec![from], part.clone());
    let parts = parts.iter().enumerate().map(part).collect();
    push(comp, Op::Tuple, parts, shape.clone())
}

/// Makes an instruction another one.
fn replace(comp: &mut Computation, at: InstId, op: Op, operands: Vec<InstId>, shape: Shape) {
    let inst = &mut comp.insts[at];
    (inst.op, inst.operands, inst.shape) = (op, operands, shape);
}

/// Replaces the loop or the branches `at` by `op`, whose operands but a selector have `more` as their last part, and whose result has a
/// further part of that shape. Returns the index of that part.
fn replace_region(comp: &mut Computation, at: InstId, op: Op, more: InstId) -> usize {
    let selectors = usize::from(matches!(op, Op::Conditional(_)));
    let mut operands = comp[at].operands.clone();
    for operand in operands.iter_mut().skip(selectors) {
        *operand = push_with_last(comp, *operand, more);
    }
    let shape = comp[at].shape.clone();
    let mut parts = parts_of(&shape);
    let last = parts.len();
    parts.push(comp[more].shape.clone());
    replace(comp, at, op, operands, Shape::Tuple(parts));
    let count = comp.insts.len();
    let result = push_first_parts(comp, at, &shape);
    redirect(comp, count, &HashMap::from([(at, result)]));
    last
}

/// Gives a computation of one parameter a parameter with one more part; returns the further part.
fn extend_parameter(comp: &mut Computation, more: &Shape) -> Option<InstId> {
    let &[old] = &comp.params[..] else { return None };
    let shape = comp[old].shape.clone();
    let mut parts = parts_of(&shape);
    let last = parts.len();
    parts.push(more.clone());
    let count = comp.insts.len();
    let param = push(comp, Op::Parameter(0), Vec::new(), Shape::Tuple(parts));
    let own = push_first_parts(comp, param, &shape);
    redirect(comp, count, &HashMap::from([(old, own)]));
    comp.params = vec![param];
    Some(push(comp, Op::GetTupleElement(last), vec![param], more.clone()))
}

/// The computations of a module that have, or reach, a call with an effect.
fn effectful_computations(module: &Module) -> Vec<bool> {
    let mut all = vec![false; module.comps.len()];
    for id in module.reachable() {
        let calls = |called: Vec<CompId>| called.iter().any(|c| all[c.0 as usize]);
        all[id.0 as usize] = module.comps[id].insts.values().any(|inst| match &inst.op {
            Op::Foreign(call) => is_effect(call) || calls(inst.op.called_computations()),
            op => calls(op.called_computations()),
        });
    }
    all
}

/// Attribute of a separated call that has an effect.
const EFFECT: &str = "host_call_has_effect";

/// Whether a call was separated and has an effect.
fn is_effect(call: &ForeignOp) -> bool {
    call.is_attr_true(EFFECT)
}

#[cfg(test)]
mod tests;
