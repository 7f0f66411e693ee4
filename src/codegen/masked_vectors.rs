//! Vectors in memory, and those of which only the first lanes are elements.
//!
//! LLVM 22 (22.1.8 still) stores too much where AVX-512 is and one lane of a narrowed vector is stored: a masked store whose
//! constant mask has a single lane, of a `trunc`, becomes a scalar store of the type before the `trunc`. So a vector with one
//! element is stored as a scalar here, and a vector that keeps some lanes of what it overwrites, which LLVM takes for a masked
//! store, is frozen, which LLVM does not look through. `docs/notes/llvm-masked-store.md` has the instructions.
use super::function::FunctionEmitter;
use super::value::{Val, value_type};
use crate::kernel::{BufId, Expr, ExprId};
use crate::scalar::ScalarOp;
use crate::tensor::DType;

/// How intrinsics name a vector type: `v8f32`, `v8i32`.
fn vector_suffix(dtype: DType, lanes: u64) -> String {
    let scalar = match dtype {
        DType::F16 => "f16".to_string(),
        DType::BF16 => "bf16".to_string(),
        DType::F32 => "f32".to_string(),
        DType::F64 => "f64".to_string(),
        t => format!("i{}", t.bits()),
    };
    format!("v{lanes}{scalar}")
}

impl FunctionEmitter<'_> {
    /// `lanes` elements of `parts` numbers each, from an address on; in a masked loop only those that are elements.
    pub(super) fn load_raw(&mut self, at: &str, dtype: DType, align: usize, lanes: u64, parts: u64) -> Val {
        let ty = value_type(dtype, lanes * parts);
        let Some(valid) = self.elements(lanes, parts) else {
            return self.ins(&format!("load {ty}, ptr {at}, align {align}"), dtype, lanes * parts);
        };
        let (kind, mask) = (vector_suffix(dtype, lanes * parts), mask(valid, lanes * parts));
        let call =
            format!("call {ty} @llvm.masked.load.{kind}.p0(ptr align {align} {at}, {mask}, {ty} zeroinitializer)");
        self.ins(&call, dtype, lanes * parts)
    }

    /// The counterpart of [`FunctionEmitter::load_raw`].
    pub(super) fn store_raw(&mut self, at: &str, value: &Val, align: usize, lanes: u64, parts: u64) {
        let (kind, ty) = (vector_suffix(value.dtype, value.lanes), value.ty());
        match self.elements(lanes, parts) {
            Some(1) => {
                let alone = self.lane_of(value, 0);
                self.line(&format!("store {} {}, ptr {at}, align {align}", alone.ty(), alone.text));
            }
            Some(valid) => {
                let (text, mask) = (&value.text, mask(valid, value.lanes));
                self.line(&format!(
                    "call void @llvm.masked.store.{kind}.p0({ty} {text}, ptr align {align} {at}, {mask})"
                ));
            }
            None => self.line(&format!("store {ty} {}, ptr {at}, align {align}", value.text)),
        }
    }

    /// How many numbers of a vector are elements: `None` for all of them.
    fn elements(&self, lanes: u64, parts: u64) -> Option<u64> {
        let valid = self.valid.filter(|_| self.lane.is_some_and(|l| l.1 == lanes))? * parts;
        (valid < lanes * parts).then_some(valid)
    }

    /// Whether a value that is stored to `buf` may have, in the lanes that a condition does not choose, what is there already:
    /// it is read there, or from a register that may hold it.
    pub(super) fn keeps(&self, buf: BufId, value: ExprId) -> bool {
        let Expr::Op(ScalarOp::Select, args, _) = &self.kernel.exprs[value] else { return false };
        args[1..].iter().any(|&arm| match &self.kernel.exprs[arm] {
            Expr::Load(from, _) => *from == buf,
            Expr::Reg(..) | Expr::Lanes(..) => true,
            _ => false,
        })
    }

    /// A value that LLVM does not join with the store behind it, of the types that a `trunc` can make.
    pub(super) fn frozen(&mut self, value: &Val) -> Val {
        let truncated = value.dtype.bits() < 32 || matches!(value.dtype, DType::S32 | DType::U32);
        if value.lanes == 1 || !truncated || value.dtype == DType::Pred {
            return value.clone();
        }
        self.ins(&format!("freeze {} {}", value.ty(), value.text), value.dtype, value.lanes)
    }
}

/// The mask of the first `valid` of `lanes`.
fn mask(valid: u64, lanes: u64) -> String {
    let bits: Vec<&str> = (0..lanes).map(|l| if l < valid { "i1 true" } else { "i1 false" }).collect();
    format!("<{lanes} x i1> <{}>", bits.join(", "))
}
