//! Instructions on values of one type: what all scalar ops are made of.
use super::function::FunctionEmitter;
use super::portable;
use super::value::{Val, all_ones, value_type};
use crate::diag::{Code, Error};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// The internal error for an op that is not defined on a type.
pub fn undefined_op_error(op: ScalarOp, dtype: DType) -> Error {
    Error::user(Code::HloInvalid, format!("`{}` has no meaning on {dtype}", op.name()))
}

/// The type suffix of LLVM intrinsic names: `f32`, `v8i32` …
pub fn intrinsic_suffix(x: &Val) -> String {
    let scalar = match x.dtype {
        DType::F32 => "f32".to_string(),
        DType::F64 => "f64".to_string(),
        DType::Pred => "i1".to_string(),
        t => format!("i{}", t.bits()),
    };
    if x.lanes == 1 { scalar } else { format!("v{}{scalar}", x.lanes) }
}

/// Emits a call of an LLVM intrinsic whose arguments and result have one type.
pub fn call_intrinsic(f: &mut FunctionEmitter, name: &str, args: &[&Val]) -> Val {
    let ty = args[0].ty();
    let list: Vec<String> = args.iter().map(|a| format!("{ty} {}", a.text)).collect();
    f.push_instruction(
        &format!("call {ty} @llvm.{name}.{}({})", intrinsic_suffix(args[0]), list.join(", ")),
        args[0].dtype,
        args[0].lanes,
    )
}

/// Emits an LLVM instruction on two values of one type.
pub fn binary_instruction(f: &mut FunctionEmitter, name: &str, x: &Val, y: &Val) -> Val {
    f.push_instruction(&format!("{name} {} {}, {}", x.ty(), x.text, y.text), x.dtype, x.lanes)
}

/// The constant with these bits, with the type and lanes of `like`.
pub fn constant_bits(like: &Val, bits: u64) -> Val {
    super::value::constant(like.dtype, bits, like.lanes)
}

/// The constant with all bits set, with the type and lanes of `like`.
pub fn all_bits_set(like: &Val) -> Val {
    constant_bits(like, all_ones(like.dtype))
}

/// Emits a float comparison.
pub fn fcmp(f: &mut FunctionEmitter, relation: &str, x: &Val, y: &Val) -> Val {
    f.push_instruction(&format!("fcmp {relation} {} {}, {}", x.ty(), x.text, y.text), DType::Pred, x.lanes)
}

/// Emits an integer comparison.
pub fn icmp(f: &mut FunctionEmitter, relation: &str, x: &Val, y: &Val) -> Val {
    f.push_instruction(&format!("icmp {relation} {} {}, {}", x.ty(), x.text, y.text), DType::Pred, x.lanes)
}

/// `cond ? x : y`.
pub fn select(f: &mut FunctionEmitter, cond: &Val, x: &Val, y: &Val) -> Val {
    if x.dtype.is_complex() {
        let ((xr, xi), (yr, yi)) = (f.complex_parts(x), f.complex_parts(y));
        let (re, im) = (select(f, cond, &xr, &yr), select(f, cond, &xi, &yi));
        return f.make_complex(&re, &im);
    }
    let (p, ty) = (cond.ty(), x.ty());
    f.push_instruction(&format!("select {p} {}, {ty} {}, {ty} {}", cond.text, x.text, y.text), x.dtype, x.lanes)
}

/// Reinterprets the bits of `x` as another type of the same width.
pub fn reinterpret(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let (a, b) = (x.ty(), value_type(to, x.lanes));
    if a == b {
        return Val { dtype: to, ..x.clone() };
    }
    f.push_instruction(&format!("bitcast {a} {} to {b}", x.text), to, x.lanes)
}

/// A float constant with the type and lanes of `like`.
pub fn float_constant(like: &Val, value: f64) -> Val {
    constant_bits(like, if like.dtype == DType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() })
}

/// Emits x·y + z, rounded once if the program's arithmetic fuses multiply-adds of this type ([`portable::fuses_multiply_add`]), else twice; never a
/// library call.
pub fn fma(f: &mut FunctionEmitter, x: &Val, y: &Val, z: &Val) -> Val {
    if portable::fuses_multiply_add(f, x.dtype) {
        return if portable::has_fma(f.target, x.dtype) {
            call_intrinsic(f, "fma", &[x, y, z])
        } else {
            portable::fma_f32(f, x, y, z)
        };
    }
    let product = binary_instruction(f, "fmul", x, y);
    binary_instruction(f, "fadd", &product, z)
}

/// x + y of floats.
pub fn add(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    binary_instruction(f, "fadd", x, y)
}

/// x - y of floats.
pub fn sub(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    binary_instruction(f, "fsub", x, y)
}

/// x · y of floats.
pub fn mul(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    binary_instruction(f, "fmul", x, y)
}

/// x / y of floats.
pub fn div(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    binary_instruction(f, "fdiv", x, y)
}

/// -x of floats.
pub fn neg(f: &mut FunctionEmitter, x: &Val) -> Val {
    f.push_instruction(&format!("fneg {} {}", x.ty(), x.text), x.dtype, x.lanes)
}

/// |x| of floats.
pub fn abs(f: &mut FunctionEmitter, x: &Val) -> Val {
    call_intrinsic(f, "fabs", &[x])
}

/// Emits |x| with the sign of `sign`, by bit operations: LLVM moves roundings into its own `copysign` and then rounds the sign operand from
/// f64 to f16, for which there is no instruction.
pub fn copysign(f: &mut FunctionEmitter, x: &Val, sign: &Val) -> Val {
    let int = if x.dtype == DType::F64 { DType::U64 } else { DType::U32 };
    let (size, word) = (abs(f, x), reinterpret(f, sign, int));
    let size = reinterpret(f, &size, int);
    let top = binary_instruction(f, "and", &word, &constant_bits(&word, 1 << (int.bits() - 1)));
    let both = binary_instruction(f, "or", &size, &top);
    reinterpret(f, &both, x.dtype)
}

impl FunctionEmitter<'_> {
    /// Replaces lanes of `values` in which `cond` holds by those that `make` computes; its code is branched over if no lane needs it.
    pub fn replace_lanes_where(
        &mut self,
        cond: &Val,
        values: &[Val],
        make: impl FnOnce(&mut Self) -> Vec<Val>,
    ) -> Vec<Val> {
        let slots: Vec<String> = values.iter().map(|v| self.spill_to_stack(v)).collect();
        let any = if cond.lanes == 1 {
            cond.clone()
        } else {
            let ty = cond.ty();
            self.push_instruction(
                &format!("call i1 @llvm.vector.reduce.or.v{}i1({ty} {})", cond.lanes, cond.text),
                DType::Pred,
                1,
            )
        };
        let (slow, join) = (self.fresh_label(), self.fresh_label());
        self.push_line(&format!("br i1 {}, label %{slow}, label %{join}", any.text));
        self.begin_block(&slow);
        let made = self.emit_branch(make);
        for ((new, old), slot) in made.iter().zip(values).zip(&slots) {
            let mixed = select(self, cond, new, old);
            self.push_line(&format!("store {} {}, ptr {slot}", mixed.ty(), mixed.text));
        }
        self.push_line(&format!("br label %{join}"));
        self.begin_block(&join);
        values
            .iter()
            .zip(&slots)
            .map(|(v, slot)| self.push_instruction(&format!("load {}, ptr {slot}", v.ty()), v.dtype, v.lanes))
            .collect()
    }
}
