//! Arithmetic with the same bits on every machine: fused multiply-adds where there is no instruction, and one NaN.
//!
//! IEEE 754 fixes the bits of a sum, a product, a quotient, a root and a fused multiply-add, but for those of a NaN. Which NaN comes out of an
//! operation depends on the processor, and on the order in which a compiler puts operands. So portable programs replace a computed NaN by
//! one wherever its bits could be seen: in memory, in integers, in total orders, in types of fewer bits.
use super::arith::{add, binary_instruction, constant_bits, fcmp, icmp, mul, reinterpret, select, sub};
use super::convert::convert;
use super::function::FunctionEmitter;
use super::value::Val;
use crate::kernel::{Expr, ExprId, Kernel, RegId, Stmt};
use crate::scalar::{CompareKind, ScalarOp};
use crate::target::{MathType, Target};
use crate::tensor::DType;
use std::collections::HashSet;

/// Whether `x·y + z` of this type is computed by a fused multiply-add, rounded once.
///
/// Portable arithmetic fuses f32 alone: where there is no instruction, f64 holds the product of two f32 exactly and a fused multiply-add is
/// some ten instructions on vectors. Of f64 it would be a function of some hundred on each lane.
pub fn fuses_multiply_add(f: &FunctionEmitter, dtype: DType) -> bool {
    match f.math_type() {
        MathType::F32 | MathType::Bf16 => f.target.fma,
        MathType::Portable => dtype == DType::F32,
        MathType::PortableUnfused => false,
    }
}

/// Whether the target has an instruction for `x·y + z` of this type.
pub fn has_fma(target: &Target, dtype: DType) -> bool {
    target.fma || target.level.has_fma_f32() && dtype == DType::F32
}

/// Emits x·y + z of f32, rounded once, in f64 arithmetic: the product is exact, and the sum is rounded to odd, so that rounding it again to
/// f32 is as rounding the exact sum (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding
/// to odd").
pub fn fma_f32(f: &mut FunctionEmitter, x: &Val, y: &Val, z: &Val) -> Val {
    let [x, y, z] = [x, y, z].map(|value| convert(f, value, DType::F64));
    let product = mul(f, &x, &y);
    let sum = add(f, &product, &z);
    // what rounding took from the sum (Knuth's two-sum)
    let of_z = sub(f, &sum, &product);
    let of_product = sub(f, &sum, &of_z);
    let (lost_product, lost_z) = (sub(f, &product, &of_product), sub(f, &z, &of_z));
    let lost = add(f, &lost_product, &lost_z);
    // false where the sum is infinite or NaN
    let inexact = fcmp(f, "one", &lost, &constant_bits(&lost, 0));
    let (word, lost) = (reinterpret(f, &sum, DType::U64), reinterpret(f, &lost, DType::U64));
    let even = binary_instruction(f, "and", &word, &constant_bits(&word, 1));
    let even = icmp(f, "eq", &even, &constant_bits(&word, 0));
    let moves = binary_instruction(f, "and", &inexact, &even);
    // away from zero where the signs are equal, else towards it
    let signs = binary_instruction(f, "xor", &word, &lost);
    let step = binary_instruction(f, "ashr", &signs, &constant_bits(&word, 63));
    let step = binary_instruction(f, "or", &step, &constant_bits(&word, 1));
    let odd = binary_instruction(f, "add", &word, &step);
    let odd = select(f, &moves, &odd, &word);
    let odd = reinterpret(f, &odd, DType::F64);
    convert(f, &odd, DType::F32)
}

/// Replaces every NaN of `x` by the canonical NaN (quiet, without sign and payload) in portable arithmetic; `x` itself for other arithmetic
/// and for integers.
pub fn canonicalize_nan(f: &mut FunctionEmitter, x: &Val) -> Val {
    if !f.math_type().is_portable() || x.is_constant() {
        return x.clone();
    }
    let nan = match x.dtype {
        DType::F32 => 0x7FC0_0000,
        DType::F64 => 0x7FF8_0000_0000_0000,
        dtype if dtype.is_complex() => {
            let (re, im) = f.complex_parts(x);
            let (re, im) = (canonicalize_nan(f, &re), canonicalize_nan(f, &im));
            return f.make_complex(&re, &im);
        }
        _ => return x.clone(),
    };
    let is_nan = fcmp(f, "uno", x, x);
    select(f, &is_nan, &constant_bits(x, nan), x)
}

/// Replaces NaNs in computed operands by the canonical NaN, for ops whose result depends on the bits of a NaN.
///
/// Values that were only copied from memory have the caller's bits, which are the same on every machine.
pub fn canonicalize_nan_operands(f: &mut FunctionEmitter, op: ScalarOp, args: &[ExprId], values: &mut [Val]) {
    let sees_bits = matches!(
        op,
        ScalarOp::BitcastConvert(_) | ScalarOp::ReducePrecision { .. } | ScalarOp::Compare(_, CompareKind::Total)
    );
    if !sees_bits {
        return;
    }
    for (value, &arg) in values.iter_mut().zip(args) {
        if !preserves_bits(f.kernel, &f.computed, arg) {
            *value = canonicalize_nan(f, value);
        }
    }
}

/// Whether an expression's value has the bits of memory or of a constant, up to the sign bit; `computed` has the registers that hold other
/// values.
pub fn preserves_bits(kernel: &Kernel, computed: &HashSet<RegId>, id: ExprId) -> bool {
    match &kernel.exprs[id] {
        Expr::Load(..) | Expr::Word(..) | Expr::Const(..) | Expr::Op(ScalarOp::BitcastConvert(_), ..) => true,
        Expr::Reg(reg, _) | Expr::Lanes(reg, ..) => !computed.contains(reg),
        Expr::Op(ScalarOp::Select, args, _) => args[1..].iter().all(|&arg| preserves_bits(kernel, computed, arg)),
        Expr::Op(ScalarOp::Negate | ScalarOp::Abs, args, _) => preserves_bits(kernel, computed, args[0]),
        Expr::DotProduct { .. } | Expr::Op(..) | Expr::Number(..) | Expr::Within(..) | Expr::Fold(..) => false,
    }
}

/// The registers of a kernel that hold computed values.
pub fn computed_registers(kernel: &Kernel) -> HashSet<RegId> {
    let mut sets = Vec::new();
    find_sets(&kernel.body, &mut sets);
    let mut computed = HashSet::new();
    loop {
        let before = computed.len();
        for &(reg, value) in &sets {
            if !preserves_bits(kernel, &computed, value) {
                computed.insert(reg);
            }
        }
        if computed.len() == before {
            return computed;
        }
    }
}

fn find_sets(all: &[Stmt], sets: &mut Vec<(RegId, ExprId)>) {
    for stmt in all {
        match stmt {
            Stmt::Set { reg, value, .. } => sets.push((*reg, *value)),
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                find_sets(body, sets);
            }
            Stmt::Store { .. } | Stmt::Prefetch { .. } | Stmt::Release | Stmt::Tiles(_) => {}
        }
    }
}
