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

/// The type suffix of a vector in LLVM intrinsic names: `v8f32`, `v8i32`.
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
    /// Emits the load of `lanes` elements of `parts` numbers each (2 for complex) from an address; in a masked loop only of active lanes.
    pub(super) fn load_vector(&mut self, at: &str, dtype: DType, align: usize, lanes: u64, parts: u64) -> Val {
        let ty = value_type(dtype, lanes * parts);
        let Some(valid) = self.elements(lanes, parts) else {
            return self.push_instruction(&format!("load {ty}, ptr {at}, align {align}"), dtype, lanes * parts);
        };
        let (kind, mask) = (vector_suffix(dtype, lanes * parts), mask(valid, lanes * parts));
        let call =
            format!("call {ty} @llvm.masked.load.{kind}.p0(ptr align {align} {at}, {mask}, {ty} zeroinitializer)");
        self.push_instruction(&call, dtype, lanes * parts)
    }

    /// Emits the store of a vector, as [`FunctionEmitter::load_vector`] loads one.
    pub(super) fn store_vector(&mut self, at: &str, value: &Val, align: usize, lanes: u64, parts: u64) {
        let (kind, ty) = (vector_suffix(value.dtype, value.lanes), value.ty());
        match self.elements(lanes, parts) {
            Some(1) => {
                let alone = self.extract_lane(value, 0);
                self.push_line(&format!("store {} {}, ptr {at}, align {align}", alone.ty(), alone.text));
            }
            Some(valid) => {
                let (text, mask) = (&value.text, mask(valid, value.lanes));
                self.push_line(&format!(
                    "call void @llvm.masked.store.{kind}.p0({ty} {text}, ptr align {align} {at}, {mask})"
                ));
            }
            None => self.push_line(&format!("store {ty} {}, ptr {at}, align {align}", value.text)),
        }
    }

    /// Number of active numbers of a vector in a masked loop; `None` if all are active.
    fn elements(&self, lanes: u64, parts: u64) -> Option<u64> {
        let valid = self.valid.filter(|_| self.lane.is_some_and(|l| l.1 == lanes))? * parts;
        (valid < lanes * parts).then_some(valid)
    }

    /// Whether a stored value may select, in some lanes, what `buf` holds already, read there or from a register: LLVM would turn such a
    /// select and store into a masked store.
    pub(super) fn may_store_old_value(&self, buf: BufId, value: ExprId) -> bool {
        let Expr::Op(ScalarOp::Select, args, _) = &self.kernel.exprs[value] else { return false };
        args[1..].iter().any(|&arm| match &self.kernel.exprs[arm] {
            Expr::Load(from, _) => *from == buf,
            Expr::Reg(..) | Expr::Lanes(..) => true,
            _ => false,
        })
    }

    /// Emits `freeze` for a value whose type a `trunc` can have, so that LLVM does not merge its selection with the store that follows.
    pub(super) fn freeze(&mut self, value: &Val) -> Val {
        let truncated = value.dtype.bits() < 32 || matches!(value.dtype, DType::S32 | DType::U32);
        if value.lanes == 1 || !truncated || value.dtype == DType::Pred {
            return value.clone();
        }
        self.push_instruction(&format!("freeze {} {}", value.ty(), value.text), value.dtype, value.lanes)
    }
}

/// The LLVM text of a mask of the first `valid` of `lanes` lanes.
fn mask(valid: u64, lanes: u64) -> String {
    let bits: Vec<&str> = (0..lanes).map(|l| if l < valid { "i1 true" } else { "i1 false" }).collect();
    format!("<{lanes} x i1> <{}>", bits.join(", "))
}
