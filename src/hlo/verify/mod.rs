//! The rules that every module keeps, numbered.
//!
//! 1. Ids are in range; the entry, each root and each parameter exist; parameter `n` of a computation is `params[n]`.
//! 2. No instruction is its own operand through others, no computation calls itself.
//! 3. An opcode has its number of operands.
//! 4. Sizes are fixed or bounded, and the bytes of an array can be counted in 64 bits.
//! 5. A shape is the one that its operands imply, but for layouts and dynamic bounds; where nothing implies it, it fits them.
//! 6. Axes are in range and in no list twice; index operands are integers.
//! 7. Operands of one opcode do not mix floats of different widths, unless the opcode is made for that.
//! 8. A called computation has the parameters and the result that its caller gives and takes.
//! 9. Collectives name groups of equal sizes that fit their shapes, and no device twice.
//! 10. Asynchronous pairs are whole: a start has one user, its end.
//! 11. The entry's layout has the shapes of its parameters and its root.
//! 12. A buffer goes from one instruction to the next, each of which writes it; the entry takes none.
//!
//! Source: XLA's hlo_verifier and shape_inference.
mod buffers;
mod calls;
mod foreign;
mod indexing;

use super::{Arity, ArrayShape, CompId, Computation, Inst, InstId, Module, Op, Shape, infer};
use crate::diag::{Code, Diagnostic, Result};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, element_count};

/// The result of a check of one instruction.
type CheckResult = Result<(), String>;

/// Checks every rule. Later steps do not panic on a module that passes.
///
/// # Errors
/// `Code::HloInvalid` with the instruction's name.
pub fn verify(module: &Module) -> Result<()> {
    // Rule 1
    if module.comps.get(module.entry).is_none() {
        return Err(Diagnostic::new(Code::HloInvalid, "the entry computation is missing").into());
    }
    for (_, comp) in module.comps.iter() {
        frame(module, comp)
            .map_err(|m| Diagnostic::new(Code::HloInvalid, format!("computation `{}`: {m}", comp.name)))?;
    }
    check_acyclic(module).map_err(|m| Diagnostic::new(Code::HloInvalid, m))?;
    let fused = fusion_bodies(module);
    for (comp_id, comp) in module.comps.iter() {
        let fused_users = fused[comp_id.0 as usize].then(|| users_of_all(comp));
        for (id, inst) in comp.insts.iter() {
            let blame = |m: String| Diagnostic::new(Code::HloInvalid, m).at_node(&inst.name, inst.op.name());
            instruction(module, comp_id, inst).map_err(blame)?;
            let unused = fused_users.as_ref().is_some_and(|u| u[id.0 as usize] == 0);
            if unused && id != comp.root && !matches!(inst.op, Op::Parameter(_)) {
                return Err(blame("an instruction of a fusion has no users".to_string()).into());
            }
        }
        let writers = buffers::check_single_writers(comp);
        writers.map_err(|(name, m)| Diagnostic::new(Code::HloInvalid, m).at_node(&name, "buffer"))?;
        foreign::check_async_pairs(comp)
            .map_err(|(name, m)| Diagnostic::new(Code::HloInvalid, m).at_node(&name, "async"))?;
    }
    foreign::check_layout_constraints_agree(module).map_err(|m| Diagnostic::new(Code::HloInvalid, m))?;
    entry_layout(module)
}

/// Whether each computation is the body of a fusion.
fn fusion_bodies(module: &Module) -> Vec<bool> {
    let mut out = vec![false; module.comps.len()];
    for inst in module.comps.values().flat_map(|c| c.insts.values()) {
        if let Op::Fusion { comp, .. } = inst.op {
            out[comp.0 as usize] = true;
        }
    }
    out
}

fn users_of_all(comp: &Computation) -> Vec<u32> {
    let mut users = vec![0; comp.insts.len()];
    for inst in comp.insts.values() {
        for o in &inst.operands {
            users[o.0 as usize] += 1;
        }
    }
    users
}

fn frame(module: &Module, comp: &Computation) -> CheckResult {
    if comp.insts.get(comp.root).is_none() {
        return Err("the root is missing".to_string());
    }
    for inst in comp.insts.values() {
        if inst.operands.iter().any(|&o| comp.insts.get(o).is_none()) {
            return Err(format!("an operand of `{}` is missing", inst.name));
        }
        if inst.op.called_computations().iter().any(|&c| module.comps.get(c).is_none()) {
            return Err(format!("a computation that `{}` calls is missing", inst.name));
        }
    }
    for (n, &param) in comp.params.iter().enumerate() {
        if !comp.insts.get(param).is_some_and(|p| matches!(p.op, Op::Parameter(m) if m == n)) {
            return Err(format!("parameter {n} is missing"));
        }
    }
    let all = comp.insts.values().filter(|i| matches!(i.op, Op::Parameter(_))).count();
    if all == comp.params.len() { Ok(()) } else { Err("a parameter number is given twice".to_string()) }
}

/// Checks rule 2: no instruction depends on itself, and no computation calls itself.
fn check_acyclic(module: &Module) -> CheckResult {
    let callees = |i: usize| -> Vec<usize> {
        let insts = module.comps[CompId(i as u32)].insts.values();
        insts.flat_map(|inst| inst.op.called_computations()).map(|c| c.0 as usize).collect()
    };
    if has_cycle(module.comps.len(), callees) {
        return Err("a computation calls itself".to_string());
    }
    for comp in module.comps.values() {
        let operands = |i: usize| comp.insts[InstId(i as u32)].operands.iter().map(|o| o.0 as usize).collect();
        if has_cycle(comp.insts.len(), operands) {
            return Err(format!("computation `{}`: an instruction is its own operand", comp.name));
        }
    }
    Ok(())
}

fn has_cycle(n: usize, next: impl Fn(usize) -> Vec<usize>) -> bool {
    // 0: not seen, 1: open, 2: done
    let mut state = vec![0u8; n];
    for start in 0..n {
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        let mut stack = vec![(start, next(start))];
        while let Some((node, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(child) if state[child] == 1 => return true,
                Some(child) if state[child] == 0 => {
                    state[child] = 1;
                    stack.push((child, next(child)));
                }
                Some(_) => {}
                None => {
                    state[*node] = 2;
                    stack.pop();
                }
            }
        }
    }
    false
}

fn instruction(module: &Module, comp_id: CompId, inst: &Inst) -> CheckResult {
    let comp = &module.comps[comp_id];
    let shapes: Vec<&Shape> = inst.operands.iter().map(|&o| &comp.insts[o].shape).collect();
    for leaf in inst.shape.leaves() {
        check_sizes(leaf)?;
    }
    operand_count(&inst.op, shapes.len())?;
    precision(&inst.op, &shapes)?;
    match &inst.op {
        Op::Foreign(f) => foreign::check(module, f, inst, &shapes)?,
        op => {
            check_declared_shape(op, inst, &shapes)?;
            indexing::check(op, inst, &shapes)?;
        }
    }
    buffers::check(module, comp_id, inst, &shapes)?;
    calls::check(module, inst, &shapes)
}

/// Checks rule 4: sizes are fixed or bounded, and bytes can be counted in 64 bits.
fn check_sizes(shape: &ArrayShape) -> CheckResult {
    if shape.dims.contains(&u64::MAX) {
        return Err(format!("unbounded dynamic sizes are not allowed: {shape}"));
    }
    let bytes = element_count(&shape.dims).and_then(|n| n.checked_mul(shape.dtype.bytes() as u64));
    if bytes.is_none_or(|b| b > i64::MAX as u64) {
        return Err(format!("{shape} is too large"));
    }
    let odd = shape.layout.as_ref().is_some_and(|l| l.properties.contains("E(")) && shape.dtype.bits() >= 8;
    if odd && shape.dtype != DType::Pred {
        return Err(format!("{shape} has a custom element size, which only types below a byte may have"));
    }
    Ok(())
}

/// Checks rule 3: an op has as many operands as its opcode takes.
fn operand_count(op: &Op, n: usize) -> CheckResult {
    match op.arity() {
        arity if arity.allows(n) => Ok(()),
        Arity::Exactly(want) => Err(format!("{} takes {want} operands, not {n}", op.name())),
        _ => Err(format!("{n} operands are not what {} takes", op.name())),
    }
}

/// Checks rule 7: floats of different widths are not mixed.
fn precision(op: &Op, shapes: &[&Shape]) -> CheckResult {
    let free = matches!(
        op,
        Op::Tuple
            | Op::GetTupleElement(_)
            | Op::While { .. }
            | Op::Conditional(_)
            | Op::Call(_)
            | Op::Fusion { .. }
            | Op::Sort { .. }
            | Op::ReduceWindow { .. }
            | Op::Dot(_)
            | Op::Convolution(_)
            | Op::OptimizationBarrier
            | Op::AddDependency
            | Op::AfterAll
            | Op::Foreign(_)
            | Op::Elementwise(ScalarOp::ReducePrecision { .. } | ScalarOp::Convert(_))
    );
    let floats: Vec<DType> = match free {
        true => return Ok(()),
        false => shapes.iter().flat_map(|s| s.leaves()).map(|a| a.dtype).filter(|t| t.is_float()).collect(),
    };
    match floats.windows(2).find(|w| w[0] != w[1]) {
        Some(w) => Err(format!("floats of different precisions: {} and {}", w[0], w[1])),
        None => Ok(()),
    }
}

/// Checks rule 5: the declared shape is that inferred.
fn check_declared_shape(op: &Op, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    let own = &inst.shape;
    let expected = match op {
        // Their computations say what comes out: rule 8.
        Op::Reduce { .. }
        | Op::ReduceWindow { .. }
        | Op::Scatter { .. }
        | Op::Map { .. }
        | Op::Call(_)
        | Op::Conditional(_)
        | Op::Fusion { .. } => return Ok(()),
        Op::Parameter(_) => return Ok(()),
        Op::Iota(axis) => {
            let a = own.as_array().ok_or("iota does not support non-array result")?;
            return if *axis < a.rank() { Ok(()) } else { Err("the iota dimension is beyond the rank".to_string()) };
        }
        Op::Broadcast(dims) => return broadcast(array(shapes, 0)?, own, dims),
        Op::Reshape | Op::Bitcast | Op::BitcastConvertWidth => return same_content(op, array(shapes, 0)?, own),
        Op::Rng { normal } => return check_rng(*normal, own, shapes),
        Op::RngBitGenerator { algorithm } => return rng_bits(algorithm, own, shapes),
        Op::Dot(_) | Op::Convolution(_) => {
            let (x, y) = (array(shapes, 0)?, array(shapes, 1)?);
            let out = own.as_array().ok_or("the result is not an array")?;
            // The written element type is the type of accumulation: only the sizes are implied.
            let as_out = |a: &ArrayShape| Shape::Array(ArrayShape { dtype: out.dtype, ..a.clone() });
            let narrower =
                |a: &ArrayShape| !a.dtype.is_float() && !a.dtype.is_complex() && out.dtype.bits() < a.dtype.bits();
            if narrower(x) || narrower(y) {
                return Err(format!("{out} is narrower than its operands"));
            }
            infer::infer(op, &[&as_out(x), &as_out(y)], &EMPTY)?
        }
        _ => infer::infer(op, shapes, &EMPTY)?,
    };
    if expected.same_type_and_dims(own) {
        Ok(())
    } else {
        Err(format!("expected instruction to have shape equal to {expected}, actual shape is {own}"))
    }
}

/// For ops whose shape does not depend on computations.
static EMPTY: std::sync::LazyLock<Module> = std::sync::LazyLock::new(|| Module {
    name: String::new(),
    comps: Default::default(),
    entry: CompId(0),
    extra: Vec::new(),
    replaceable: false,
});

fn array<'a>(shapes: &[&'a Shape], i: usize) -> Result<&'a ArrayShape, String> {
    let shape = shapes.get(i).ok_or_else(|| format!("operand {i} is missing"))?;
    shape.as_array().ok_or_else(|| format!("expected array argument for operand {i}, but got {shape}"))
}

fn broadcast(x: &ArrayShape, own: &Shape, dims: &[usize]) -> CheckResult {
    let out = own.as_array().ok_or("the result is not an array")?;
    let mut seen = vec![false; out.rank()];
    let fits = dims.len() == x.rank()
        && x.dtype == out.dtype
        && dims.iter().zip(&x.dims).all(|(&d, n)| out.dims.get(d) == Some(n) && !std::mem::replace(&mut seen[d], true));
    if fits { Ok(()) } else { Err(format!("{x} does not broadcast to {out} by {dims:?}")) }
}

fn same_content(op: &Op, x: &ArrayShape, own: &Shape) -> CheckResult {
    let out = own.as_array().ok_or("the result is not an array")?;
    let bits = |a: &ArrayShape| a.elements() as u128 * u128::from(a.dtype.bits());
    let fits = match op {
        Op::Reshape => x.dtype == out.dtype && x.elements() == out.elements(),
        Op::BitcastConvertWidth => {
            let (long, short) = if x.rank() > out.rank() { (x, out) } else { (out, x) };
            let complex = x.dtype.is_complex() != out.dtype.is_complex();
            bits(x) == bits(out) && long.rank() == short.rank() + 1 && long.dims.starts_with(&short.dims) && !complex
        }
        _ => x.bytes() == out.bytes(),
    };
    if fits { Ok(()) } else { Err(format!("{} of {x} to {out}", op.name())) }
}

fn check_rng(normal: bool, own: &Shape, shapes: &[&Shape]) -> CheckResult {
    let out = own.as_array().ok_or("the result is not an array")?;
    for i in 0..2 {
        let x = array(shapes, i)?;
        if x.rank() != 0 || x.dtype != out.dtype {
            return Err(format!("operand {i} of rng is {x}, not a scalar of {}", out.dtype));
        }
    }
    if normal && !out.dtype.is_float() { Err("rng_normal makes floats".to_string()) } else { Ok(()) }
}

fn rng_bits(algorithm: &str, own: &Shape, shapes: &[&Shape]) -> CheckResult {
    let state = array(shapes, 0)?;
    if algorithm != "rng_default" && !matches!(state.dims[..], [2 | 3]) {
        return Err(format!("the state of {algorithm} is {state}, not u64[2] or u64[3]"));
    }
    match own {
        Shape::Array(_) => Ok(()),
        Shape::Tuple(parts) => match &parts[..] {
            [Shape::Array(first), Shape::Array(_)] if first.same_type_and_dims(state) => Ok(()),
            _ => Err(format!("{own} is not the state {state} and bits")),
        },
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Err(format!("{own} is not the state and bits")),
    }
}

/// Checks rule 11: the entry layout fits the entry.
fn entry_layout(module: &Module) -> Result<()> {
    let Some((_, text)) = module.extra.iter().find(|(n, _)| n == "entry_computation_layout") else { return Ok(()) };
    let (params, result) = super::text::parse_entry_layout(text)?;
    let entry = module.entry();
    let own: Vec<&Shape> = entry.params.iter().map(|&p| &entry.insts[p].shape).collect();
    let fits = own.len() == params.len()
        && own.iter().zip(&params).all(|(a, b)| a.same_type_and_dims(b))
        && entry.insts[entry.root].shape.same_type_and_dims(&result);
    match fits {
        true => Ok(()),
        false => {
            Err(Diagnostic::new(Code::HloInvalid, "entry_computation_layout differs from the entry's shapes").into())
        }
    }
}
