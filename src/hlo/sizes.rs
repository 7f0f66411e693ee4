//! Limits on sizes, checked before anything computes with them: after the check, products of sizes, strides, margins and
//! offsets of a module's arrays fit into 64 bits, and into the signed 64 bits of indices.
use super::attrs::WindowDim;
use super::{Computation, Inst, InstId, Module, Op};
use crate::diag::{Code, Error, Result};
use crate::tensor::element_count;

/// Upper limit in bytes of one array with the margins of its window. Packed and transformed copies are at most 64 times as large.
const MOST_BYTES: u64 = 1 << 40;
/// Upper limit in bytes of all arrays together.
const MOST_BYTES_TOGETHER: u64 = 1 << 56;
/// Upper limit of elements that a window spans along an axis, strides and dilations included.
const MOST_REACH: u64 = 1 << 40;
/// Upper limit of operations of all instructions together.
const MOST_OPERATIONS: u64 = 1 << 62;

/// Checks that the sizes of a module are within what code can compute with.
///
/// # Errors
/// `Code::TooLarge` at the instruction that exceeds a limit.
pub fn check(module: &Module) -> Result<()> {
    let (mut bytes, mut operations) = (0u64, 0u64);
    for comp in module.comps.values() {
        for inst in comp.insts.values() {
            let own = array_bytes(inst).filter(|&own| own <= MOST_BYTES);
            let own = own.ok_or_else(|| refuse(inst, "an array of 2^40 bytes or more"))?;
            bytes = bytes.saturating_add(own);
            if bytes > MOST_BYTES_TOGETHER {
                return Err(refuse(inst, "more than 2^56 bytes in all arrays together"));
            }
            if check_window(comp, inst).is_none() {
                return Err(refuse(inst, "a window that reaches over 2^40 elements or bytes with its padding"));
            }
            let done = element_count_of_work(comp, inst).and_then(|work| operations.checked_add(work));
            operations = done.filter(|&n| n <= MOST_OPERATIONS).ok_or_else(|| refuse(inst, "2^62 operations"))?;
        }
    }
    Ok(())
}

fn refuse(inst: &Inst, what: &str) -> Error {
    let error = Error::user(Code::TooLarge, format!("code can't hold {what}: `{}` of {}", inst.op.name(), inst.shape));
    let made_of = &inst.metadata;
    if made_of.op_name.is_empty() { error } else { error.map(|d| d.at_node(&made_of.op_name, &made_of.op_type)) }
}

/// Size in bytes of the arrays that an instruction makes.
fn array_bytes(inst: &Inst) -> Option<u64> {
    inst.shape.leaves().into_iter().try_fold(0u64, |sum, array| {
        sum.checked_add(element_count(&array.dims)?.checked_mul(array.dtype.bytes() as u64)?)
    })
}

/// Windows of an instruction, with the axes of its operand to which they apply.
fn windows(inst: &Inst) -> Vec<(usize, &WindowDim)> {
    match &inst.op {
        Op::Convolution(d) => d.input_spatial.iter().copied().zip(&d.window).collect(),
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => window.iter().enumerate().collect(),
        _ => Vec::new(),
    }
}

/// `Some` if the operand of an instruction, with the padding and dilation of its window, is within the limits.
fn check_window(comp: &Computation, inst: &Inst) -> Option<()> {
    let windows = windows(inst);
    if windows.is_empty() {
        return Some(());
    }
    let operand = operand(comp, inst, 0)?;
    let mut dims = operand.dims.clone();
    for (axis, w) in windows {
        let n = dims.get_mut(axis)?;
        let reach = w.size.checked_mul(w.rhs_dilate)?;
        let within = n.checked_mul(w.lhs_dilate)?.checked_add(w.pad_low.unsigned_abs())?;
        *n = within.checked_add(w.pad_high.unsigned_abs())?;
        if reach > MOST_REACH || w.stride > MOST_REACH || *n > MOST_REACH {
            return None;
        }
    }
    let bytes = element_count(&dims)?.checked_mul(operand.dtype.bytes() as u64)?;
    (bytes <= MOST_BYTES).then_some(())
}

/// Number of elements that an instruction reduces or makes.
fn element_count_of_work(comp: &Computation, inst: &Inst) -> Option<u64> {
    let made = inst.shape.leaves().into_iter().try_fold(0u64, |sum, a| sum.checked_add(element_count(&a.dims)?))?;
    let each = match &inst.op {
        Op::Dot(d) => {
            let of = operand(comp, inst, 0)?;
            d.lhs_contracting.iter().try_fold(1u64, |n, &axis| n.checked_mul(*of.dims.get(axis)?))?
        }
        Op::Convolution(d) => {
            let kernel = operand(comp, inst, 1)?;
            element_count(&kernel.dims)? / kernel.dims.get(d.kernel_output_feature)?.max(&1)
        }
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => {
            window.iter().try_fold(1u64, |n, w| n.checked_mul(w.size))?
        }
        _ => 1,
    };
    made.checked_mul(each)
}

fn operand<'c>(comp: &'c Computation, inst: &Inst, i: usize) -> Option<&'c super::ArrayShape> {
    let id: InstId = *inst.operands.get(i)?;
    comp.insts.get(id)?.shape.as_array()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::text;

    fn told(body: &str) -> Result<()> {
        let add = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }";
        check(&text::parse(&format!("{add}\nENTRY e {{ {body} }}")).expect("parses"))
    }

    #[test]
    fn sizes_beyond_what_code_can_compute_with_are_refused() {
        assert_eq!(told("p = f32[8]{0} parameter(0) ROOT n = f32[8]{0} negate(p)"), Ok(()));
        let large = "p = f32[8]{0} parameter(0) z = f32[] constant(0)";
        let window = |pad: &str, size: &str, out: &str| {
            told(&format!(
                "{large} ROOT r = f32[{out}]{{0}} reduce-window(p, z), window={{size={size} pad={pad}}}, to_apply=add"
            ))
        };
        assert_eq!(window("1_1", "3", "8"), Ok(()));
        let too_large = |result: Result<()>| {
            let all = result.expect_err("refused").into_diagnostics();
            assert_eq!(all[0].code, Code::TooLarge, "{all:?}");
        };
        too_large(told("p = f32[1099511627776]{0} parameter(0) ROOT n = f32[1099511627776]{0} negate(p)"));
        too_large(window("2199023255552_0", "2199023255560", "1"));
        too_large(told(
            "p = f32[1048576,262144]{1,0} parameter(0) ROOT d = f32[1048576,1048576]{1,0} dot(p, p), \
             lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        ));
    }
}
