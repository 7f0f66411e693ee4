//! Evaluation with perturbed rounding of 16-bit floats, to see the effect of their rounding alone.
//!
//! A result of arithmetic in f16 or bf16 is one of the two numbers next to the exact value. Which one depends on whether
//! operands were kept in f32, and on the order of sums, so that correct programs differ. Here each such result is moved up or
//! down by one unit in the last place, or not at all, at random.
use super::machine::Machine;
use super::opcodes;
use super::operands::Operands;
use crate::diag::Result;
use crate::hlo::{CompId, Computation, Inst, Literal, Module, Op};
use crate::scalar::ScalarOp;
use crate::tensor::{DType, Tensor};

/// Whether the module rounds results to f16 or bf16.
pub fn rounds_to_16_bits(module: &Module) -> bool {
    module.comps.values().any(|comp| comp.insts.values().any(|inst| rounds(comp, inst)))
}

/// Value of a computation whose 16-bit results are rounded differently, as chosen by `seed`.
///
/// # Errors
/// Errors of [`super::evaluate`].
pub fn evaluate_with_perturbed_rounding(module: &Module, comp: CompId, args: &[Literal], seed: u64) -> Result<Literal> {
    let machine = Machine::new(module, u64::MAX, super::MAX_STEPS, value);
    machine.random.set(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    machine.check_args(comp, args)?;
    machine.call(comp, args)
}

/// Value by [`opcodes::evaluate_instruction`], perturbed by at most one unit in the last place if it was rounded to 16 bits.
fn value(
    machine: &Machine<'_>,
    comp: &Computation,
    inst: &Inst,
    operands: Operands,
    args: &[Literal],
) -> Result<Literal> {
    match opcodes::evaluate_instruction(machine, comp, inst, operands, args)? {
        Literal::Array(x) if rounds(comp, inst) => Ok(Literal::Array(moved(machine, &x))),
        other => Ok(other),
    }
}

const fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Whether an instruction rounds its result to 16 bits: arithmetic and conversions from wider floats, but not moves or
/// selections.
fn rounds(comp: &Computation, inst: &Inst) -> bool {
    if !inst.shape.as_array().is_some_and(|a| is_narrow(a.dtype)) {
        return false;
    }
    match &inst.op {
        Op::Dot(_) | Op::Convolution(_) => true,
        Op::Elementwise(ScalarOp::Convert(_)) => {
            let from = inst.operands.first().and_then(|&x| comp[x].shape.as_array());
            from.is_some_and(|a| a.dtype.is_float() && !is_narrow(a.dtype))
        }
        Op::Elementwise(op) => !matches!(
            op,
            ScalarOp::Abs
                | ScalarOp::Negate
                | ScalarOp::Sign
                | ScalarOp::Ceil
                | ScalarOp::Floor
                | ScalarOp::RoundNearestAfz
                | ScalarOp::RoundNearestEven
                | ScalarOp::Maximum
                | ScalarOp::Minimum
                | ScalarOp::Select
                | ScalarOp::Clamp
                | ScalarOp::BitcastConvert(_)
        ),
        _ => false,
    }
}

/// Replaces each finite nonzero number at random by itself or one of its two neighbors.
fn moved(machine: &Machine<'_>, x: &Tensor) -> Tensor {
    let infinity: u16 = if x.dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
    let step = |bits: u16| {
        let magnitude = bits & 0x7fff;
        let by = random(machine) % 3;
        match by {
            _ if magnitude == 0 || magnitude >= infinity - 1 => bits,
            0 => bits - 1,
            1 => bits + 1,
            _ => bits,
        }
    };
    let bytes = x.bytes.chunks_exact(2).flat_map(|b| step(u16::from_le_bytes([b[0], b[1]])).to_le_bytes());
    Tensor::new(x.dtype, x.dims.clone(), bytes.collect::<Vec<u8>>())
}

/// Next number of a xorshift generator (Marsaglia, "Xorshift RNGs", 2003).
fn random(machine: &Machine<'_>) -> u64 {
    let mut x = machine.random.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    machine.random.set(x);
    x >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(dtype: &str) -> Module {
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = {dtype}[64] parameter(0)\n  y = {dtype}[64] multiply(x, x)\n  ROOT z = {dtype}[64] negate(y)\n}}\n"
        );
        crate::hlo::text::parse(&text).expect("parses")
    }

    #[test]
    fn results_of_16_bits_move_by_a_unit_and_those_of_32_are_not_rounded() {
        let module = self::module("bf16");
        assert!(rounds_to_16_bits(&module) && !rounds_to_16_bits(&self::module("f32")));
        let mut bits: Vec<u16> = (0..62).map(|i| 0x3f80 + i).collect();
        bits.extend([0, 0x7f80]);
        let x = Literal::Array(Tensor::from_vec(DType::BF16, vec![64], bits));
        let plain = super::super::evaluate(&module, module.entry, std::slice::from_ref(&x)).expect("a value");
        let once =
            evaluate_with_perturbed_rounding(&module, module.entry, std::slice::from_ref(&x), 1).expect("a value");
        let again = evaluate_with_perturbed_rounding(&module, module.entry, &[x], 1).expect("a value");
        assert_eq!(once, again);
        let words = |y: &Literal| y.leaves()[0].view::<u16>().to_vec();
        let (plain, once) = (words(&plain), words(&once));
        let moved: Vec<i32> = plain.iter().zip(&once).map(|(&a, &b)| i32::from(b) - i32::from(a)).collect();
        assert!(moved.iter().all(|by| by.abs() <= 1) && moved[62..] == [0, 0], "{moved:?}");
        assert!(moved.contains(&1) && moved.contains(&-1), "{moved:?}");
    }
}
