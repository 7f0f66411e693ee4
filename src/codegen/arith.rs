//! Instructions on values of one type: what all scalar ops are made of.
use super::function::FunctionEmitter;
use super::portable;
use super::value::{Val, all_ones, value_type};
use crate::diag::{Code, Error};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// Internal error: the op is not defined on this type.
pub fn no_meaning(op: ScalarOp, dtype: DType) -> Error {
    Error::user(Code::HloInvalid, format!("`{}` has no meaning on {dtype}", op.name()))
}

/// `f32`, `v8i32` …: the name that intrinsics carry.
pub fn suffix(x: &Val) -> String {
    let scalar = match x.dtype {
        DType::F32 => "f32".to_string(),
        DType::F64 => "f64".to_string(),
        DType::Pred => "i1".to_string(),
        t => format!("i{}", t.bits()),
    };
    if x.lanes == 1 { scalar } else { format!("v{}{scalar}", x.lanes) }
}

/// An intrinsic of values of one type.
pub fn call(f: &mut FunctionEmitter, name: &str, args: &[&Val]) -> Val {
    let ty = args[0].ty();
    let list: Vec<String> = args.iter().map(|a| format!("{ty} {}", a.text)).collect();
    f.ins(&format!("call {ty} @llvm.{name}.{}({})", suffix(args[0]), list.join(", ")), args[0].dtype, args[0].lanes)
}

/// An instruction of two values of one type.
pub fn two(f: &mut FunctionEmitter, name: &str, x: &Val, y: &Val) -> Val {
    f.ins(&format!("{name} {} {}, {}", x.ty(), x.text, y.text), x.dtype, x.lanes)
}

/// A constant of `like`'s type and lanes, by its bits.
pub fn bits(like: &Val, bits: u64) -> Val {
    super::value::constant(like.dtype, bits, like.lanes)
}

/// All bits set.
pub fn ones(like: &Val) -> Val {
    bits(like, all_ones(like.dtype))
}

/// A float comparison.
pub fn fcmp(f: &mut FunctionEmitter, relation: &str, x: &Val, y: &Val) -> Val {
    f.ins(&format!("fcmp {relation} {} {}, {}", x.ty(), x.text, y.text), DType::Pred, x.lanes)
}

/// An integer comparison.
pub fn icmp(f: &mut FunctionEmitter, relation: &str, x: &Val, y: &Val) -> Val {
    f.ins(&format!("icmp {relation} {} {}, {}", x.ty(), x.text, y.text), DType::Pred, x.lanes)
}

/// `cond ? x : y`.
pub fn select(f: &mut FunctionEmitter, cond: &Val, x: &Val, y: &Val) -> Val {
    if x.dtype.is_complex() {
        let ((xr, xi), (yr, yi)) = (f.parts(x), f.parts(y));
        let (re, im) = (select(f, cond, &xr, &yr), select(f, cond, &xi, &yi));
        return f.join(&re, &im);
    }
    let (p, ty) = (cond.ty(), x.ty());
    f.ins(&format!("select {p} {}, {ty} {}, {ty} {}", cond.text, x.text, y.text), x.dtype, x.lanes)
}

/// Reinterprets the bits of `x` as another type of the same width.
pub fn reinterpret(f: &mut FunctionEmitter, x: &Val, to: DType) -> Val {
    let (a, b) = (x.ty(), value_type(to, x.lanes));
    if a == b {
        return Val { dtype: to, ..x.clone() };
    }
    f.ins(&format!("bitcast {a} {} to {b}", x.text), to, x.lanes)
}

/// A constant of `like`'s float type and lanes.
pub fn number(like: &Val, value: f64) -> Val {
    bits(like, if like.dtype == DType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() })
}

/// x·y + z: one rounding where the program's arithmetic fuses it ([`portable::is_fused`]), two elsewhere; never a library call.
pub fn fma(f: &mut FunctionEmitter, x: &Val, y: &Val, z: &Val) -> Val {
    if portable::is_fused(f, x.dtype) {
        return if portable::has_fma(f.target, x.dtype) {
            call(f, "fma", &[x, y, z])
        } else {
            portable::fma_f32(f, x, y, z)
        };
    }
    let product = two(f, "fmul", x, y);
    two(f, "fadd", &product, z)
}

/// x + y of floats.
pub fn add(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    two(f, "fadd", x, y)
}

/// x - y of floats.
pub fn sub(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    two(f, "fsub", x, y)
}

/// x · y of floats.
pub fn mul(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    two(f, "fmul", x, y)
}

/// x / y of floats.
pub fn div(f: &mut FunctionEmitter, x: &Val, y: &Val) -> Val {
    two(f, "fdiv", x, y)
}

/// -x of floats.
pub fn negated(f: &mut FunctionEmitter, x: &Val) -> Val {
    f.ins(&format!("fneg {} {}", x.ty(), x.text), x.dtype, x.lanes)
}

/// |x| of floats.
pub fn magnitude(f: &mut FunctionEmitter, x: &Val) -> Val {
    call(f, "fabs", &[x])
}

/// |x| with the sign of `sign`, by bits: LLVM moves a rounding into its own `copysign`, and then rounds the sign's operand
/// from f64 to f16, for which there is no instruction.
pub fn signed_as(f: &mut FunctionEmitter, x: &Val, sign: &Val) -> Val {
    let int = if x.dtype == DType::F64 { DType::U64 } else { DType::U32 };
    let (size, word) = (magnitude(f, x), reinterpret(f, sign, int));
    let size = reinterpret(f, &size, int);
    let top = two(f, "and", &word, &bits(&word, 1 << (int.bits() - 1)));
    let both = two(f, "or", &size, &top);
    reinterpret(f, &both, x.dtype)
}

impl FunctionEmitter<'_> {
    /// `values`, replaced in the lanes where `cond` holds by those that `make` computes, which runs only where a lane needs it.
    pub fn rarely(&mut self, cond: &Val, values: &[Val], make: impl FnOnce(&mut Self) -> Vec<Val>) -> Vec<Val> {
        let slots: Vec<String> = values.iter().map(|v| self.in_memory(v)).collect();
        let any = if cond.lanes == 1 {
            cond.clone()
        } else {
            let ty = cond.ty();
            self.ins(&format!("call i1 @llvm.vector.reduce.or.v{}i1({ty} {})", cond.lanes, cond.text), DType::Pred, 1)
        };
        let (slow, join) = (self.label(), self.label());
        self.line(&format!("br i1 {}, label %{slow}, label %{join}", any.text));
        self.begin(&slow);
        let made = make(self);
        for ((new, old), slot) in made.iter().zip(values).zip(&slots) {
            let mixed = select(self, cond, new, old);
            self.line(&format!("store {} {}, ptr {slot}", mixed.ty(), mixed.text));
        }
        self.line(&format!("br label %{join}"));
        self.begin(&join);
        values
            .iter()
            .zip(&slots)
            .map(|(v, slot)| self.ins(&format!("load {}, ptr {slot}", v.ty()), v.dtype, v.lanes))
            .collect()
    }
}
