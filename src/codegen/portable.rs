//! Arithmetic with the same bits on every machine: fused multiply-adds where there is no instruction, and one NaN.
//!
//! IEEE 754 fixes the bits of a sum, a product, a quotient, a root and a fused multiply-add, but for those of a NaN. Which NaN comes out of an
//! operation depends on the processor, and on the order in which a compiler puts operands. So portable programs replace a computed NaN by
//! one wherever its bits could be seen: in memory, in integers, in total orders, in types of fewer bits.
use super::arith::{constant_bits, fcmp, select};
use super::function::FunctionEmitter;
use super::value::{Val, constant, value_type};
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

/// The LLVM name of the functions that compute fused multiply-adds, up to the number of their lanes.
const FMA: &str = "@tfaot.fma.";
/// Lanes of those functions: one for numbers alone, and vectors of at most 128 bits.
const FMA_LANES: [u64; 3] = [1, 2, 4];

/// Emits x·y + z of f32, rounded once, by calls of a function ([`fma_functions`]): its instructions in the place of each multiply-add
/// would be most of a program.
pub fn fma_f32(f: &mut FunctionEmitter, x: &Val, y: &Val, z: &Val) -> Val {
    let lanes = x.lanes;
    if !FMA_LANES.contains(&lanes) {
        let half = lanes / 2;
        let [low, high] = [0, half].map(|first| {
            let picks: Vec<u64> = (first..first + half).collect();
            let [x, y, z] = [x, y, z].map(|value| f.shuffle(value, &picks));
            fma_f32(f, &x, &y, &z)
        });
        return f.concat_lanes(&low, &high);
    }
    let ty = x.ty();
    let call = format!("call {ty} {FMA}{lanes}({ty} {}, {ty} {}, {ty} {})", x.text, y.text, z.text);
    f.push_instruction(&call, DType::F32, lanes)
}

/// The LLVM definitions of the fused multiply-adds that `text` calls.
///
/// The functions compute in f64: the product is exact, and the sum is rounded to odd, so that rounding it again to f32 is as rounding the
/// exact sum (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd").
pub fn fma_functions(text: &str) -> String {
    let is_called = |lanes: &u64| text.contains(&format!("{FMA}{lanes}("));
    FMA_LANES.into_iter().filter(is_called).map(fma_function).collect()
}

fn fma_function(lanes: u64) -> String {
    let [float, double, word, bit] = [DType::F32, DType::F64, DType::U64, DType::Pred].map(|t| value_type(t, lanes));
    let of = |dtype: DType, bits: u64| constant(dtype, bits, lanes).text;
    let [none, zero, one, sign] = [of(DType::F64, 0), of(DType::U64, 0), of(DType::U64, 1), of(DType::U64, 63)];
    format!(
        "define internal {float} {FMA}{lanes}({float} %x, {float} %y, {float} %z) noinline #1 {{
entry:
  %a = fpext {float} %x to {double}
  %b = fpext {float} %y to {double}
  %c = fpext {float} %z to {double}
  %product = fmul {double} %a, %b
  %sum = fadd {double} %product, %c
  ; what rounding took from the sum (Knuth's two-sum)
  %c.kept = fsub {double} %sum, %product
  %product.kept = fsub {double} %sum, %c.kept
  %product.lost = fsub {double} %product, %product.kept
  %c.lost = fsub {double} %c, %c.kept
  %lost = fadd {double} %product.lost, %c.lost
  ; false where the sum is infinite or NaN
  %inexact = fcmp one {double} %lost, {none}
  %bits = bitcast {double} %sum to {word}
  %lost.bits = bitcast {double} %lost to {word}
  %last = and {word} %bits, {one}
  %even = icmp eq {word} %last, {zero}
  %moves = and {bit} %inexact, %even
  ; away from zero where the signs are equal, else towards it
  %signs = xor {word} %bits, %lost.bits
  %direction = ashr {word} %signs, {sign}
  %step = or {word} %direction, {one}
  %moved = add {word} %bits, %step
  %odd = select {bit} %moves, {word} %moved, {word} %bits
  %wide = bitcast {word} %odd to {double}
  %result = fptrunc {double} %wide to {float}
  ret {float} %result
}}
"
    )
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
