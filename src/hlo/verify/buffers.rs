//! Rule 12: buffers are written in place, by one after another.
use std::collections::BTreeSet;

use super::CheckResult;
use crate::hlo::attrs::ForeignOp;
use crate::hlo::proto::scan::TextCursor;
use crate::hlo::{ArrayShape, CompId, Computation, Inst, InstId, Module, Op, Shape};

/// Path to a part of a nested shape.
type ShapeIndex = Vec<i64>;

/// Appends the buffers in a shape, with their indices.
fn buffers<'a>(shape: &'a Shape, path: &mut ShapeIndex, out: &mut Vec<(ShapeIndex, &'a ArrayShape)>) {
    match shape {
        Shape::Buffer(a) => out.push((path.clone(), a)),
        Shape::Tuple(parts) => {
            for (i, part) in parts.iter().enumerate() {
                path.push(i as i64);
                buffers(part, path, out);
                path.pop();
            }
        }
        Shape::Array(_) | Shape::Token | Shape::Opaque => {}
    }
}

fn buffers_of(shape: &Shape) -> Vec<(ShapeIndex, &ArrayShape)> {
    let mut out = Vec::new();
    buffers(shape, &mut Vec::new(), &mut out);
    out
}

/// Result buffers that are operand buffers: (index in the result, operand, index in the operand).
fn aliases(f: &ForeignOp) -> Result<Vec<(ShapeIndex, i64, ShapeIndex)>, String> {
    let Some((_, text)) = f.attrs.iter().find(|a| a.0 == "output_to_operand_aliasing") else { return Ok(Vec::new()) };
    let mut s = TextCursor::new(text);
    let mut read = || {
        s.expect('{')?;
        let mut out = Vec::new();
        while !s.eat('}') {
            let result = s.ints('{', '}')?;
            s.expect(':')?;
            s.expect('(')?;
            let operand = s.int()?;
            s.expect(',')?;
            out.push((result, operand, s.ints('{', '}')?));
            s.expect(')')?;
            s.eat(',');
        }
        Ok::<_, crate::diag::Error>(out)
    };
    read().map_err(|_| format!("{text} is no aliasing"))
}

/// Dimension order of the layout; row-major without one.
fn layout_order(a: &ArrayShape) -> Vec<i64> {
    match &a.layout {
        Some(layout) => layout.minor_to_major.clone(),
        None => (0..a.rank() as i64).rev().collect(),
    }
}

/// Checks the buffers of an instruction.
pub(super) fn check(module: &Module, comp: CompId, inst: &Inst, shapes: &[&Shape]) -> CheckResult {
    let own = buffers_of(&inst.shape);
    let given: Vec<(i64, ShapeIndex, &ArrayShape)> =
        (0i64..).zip(shapes).flat_map(|(i, s)| buffers_of(s).into_iter().map(move |(path, a)| (i, path, a))).collect();
    if own.is_empty() && given.is_empty() {
        return Ok(());
    }
    match &inst.op {
        Op::Parameter(_) if comp == module.entry => Err("a program takes no buffers".to_string()),
        Op::Foreign(f) if f.opcode == "custom-call" || f.opcode == "custom-call-start" => {
            let aliases = aliases(f)?;
            let target = f.attr("custom_call_target").unwrap_or("");
            if matches!(target, "Pin" | "Unpin") && aliases.len() != 1 {
                return Err(format!("custom-call to {target} must have one output-to-operand aliasing"));
            }
            for (i, path, _) in &given {
                if !aliases.iter().any(|(_, operand, at)| operand == i && at == path) {
                    return Err(format!("a buffer is used in operands but not in results: operand {i} {path:?}"));
                }
            }
            let made = if f.opcode == "custom-call" { &own[..] } else { &[] };
            for (path, a) in made {
                let Some((_, operand, at)) = aliases.iter().find(|(result, _, _)| result == path) else {
                    return Err(format!("a buffer is used in results but not in operands: {path:?}"));
                };
                let from = given.iter().find(|(i, p, _)| i == operand && p == at);
                if from.is_some_and(|(_, _, from)| !from.same_type_and_dims(a) || layout_order(from) != layout_order(a))
                {
                    return Err(format!("the buffer {a} is one of another shape or layout before"));
                }
            }
            Ok(())
        }
        Op::Parameter(_)
        | Op::Tuple
        | Op::GetTupleElement(_)
        | Op::While { .. }
        | Op::Call(_)
        | Op::Conditional(_)
        | Op::Fusion { .. }
        | Op::OptimizationBarrier
        | Op::Foreign(_) => Ok(()),
        op => Err(format!("{} can't work on buffers", op.name())),
    }
}

/// Checks that each buffer has exactly one user, which writes it.
pub(super) fn check_single_writers(comp: &Computation) -> Result<(), (String, String)> {
    let mut read: BTreeSet<InstId> = BTreeSet::new();
    let mut parts: BTreeSet<(InstId, usize)> = BTreeSet::new();
    for inst in comp.insts.values() {
        for &operand in &inst.operands {
            let from = &comp.insts[operand];
            let again = match (&from.shape, &inst.op) {
                (Shape::Buffer(_), _) => !read.insert(operand),
                (Shape::Tuple(_), Op::GetTupleElement(i)) if matches!(inst.shape, Shape::Buffer(_)) => {
                    !parts.insert((operand, *i))
                }
                _ => false,
            };
            if again {
                return Err((from.name.clone(), "a buffer has more than one writer or unpin".to_string()));
            }
        }
    }
    Ok(())
}
