//! Vectors in memory, and those of which only the first lanes are elements: by a mask where the processor has masks, else in narrower and
//! narrower vectors.
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
        if !self.target.level.has_masked_access() {
            return self.load_pieces(at, dtype, valid, lanes * parts);
        }
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
            Some(valid) if !self.target.level.has_masked_access() => self.store_pieces(at, value, valid),
            Some(valid) => {
                let (text, mask) = (&value.text, mask(valid, value.lanes));
                self.push_line(&format!(
                    "call void @llvm.masked.store.{kind}.p0({ty} {text}, ptr align {align} {at}, {mask})"
                ));
            }
            None => self.push_line(&format!("store {ty} {}, ptr {at}, align {align}", value.text)),
        }
    }

    /// Emits loads of the first `valid` numbers at an address, and zeros behind them up to `lanes`.
    fn load_pieces(&mut self, at: &str, dtype: DType, valid: u64, lanes: u64) -> Val {
        let (ty, align) = (value_type(dtype, lanes), dtype.bytes());
        let mut all = self.constant(dtype, 0, lanes);
        for (first, count) in pieces(valid) {
            let from = self.piece_address(at, dtype, first);
            let own = value_type(dtype, count);
            let piece = self.push_instruction(&format!("load {own}, ptr {from}, align {align}"), dtype, count);
            if count == 1 {
                let put = format!("insertelement {ty} {}, {own} {}, i64 {first}", all.text, piece.text);
                all = self.push_instruction(&put, dtype, lanes);
                continue;
            }
            let wide: Vec<String> = (0..lanes).map(|l| format!("i32 {}", l % count)).collect();
            let mask = format!("<{lanes} x i32> <{}>", wide.join(", "));
            let shuffle = format!("shufflevector {own} {}, {own} poison, {mask}", piece.text);
            let wide = self.push_instruction(&shuffle, dtype, lanes);
            let pick = |l: u64| if (first..first + count).contains(&l) { lanes + l } else { l };
            let picks: Vec<String> = (0..lanes).map(|l| format!("i32 {}", pick(l))).collect();
            let mask = format!("<{lanes} x i32> <{}>", picks.join(", "));
            let blend = format!("shufflevector {ty} {}, {ty} {}, {mask}", all.text, wide.text);
            all = self.push_instruction(&blend, dtype, lanes);
        }
        all
    }

    /// Emits stores of the first `valid` numbers of a vector.
    fn store_pieces(&mut self, at: &str, value: &Val, valid: u64) {
        let align = value.dtype.bytes();
        for (first, count) in pieces(valid) {
            let to = self.piece_address(at, value.dtype, first);
            let picks: Vec<u64> = (first..first + count).collect();
            let piece = self.shuffle(value, &picks);
            self.push_line(&format!("store {} {}, ptr {to}, align {align}", piece.ty(), piece.text));
        }
    }

    /// The address of number `first` of those at an address.
    fn piece_address(&mut self, at: &str, dtype: DType, first: u64) -> String {
        if first == 0 {
            return at.to_string();
        }
        let ty = value_type(dtype, 1);
        self.push_instruction(&format!("getelementptr {ty}, ptr {at}, i64 {first}"), DType::U64, 1).text
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

/// Runs of `valid` numbers, the first number and the count of each: powers of two, the largest first.
fn pieces(valid: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let mut first = 0;
    while first < valid {
        let count = 1 << (valid - first).ilog2();
        all.push((first, count));
        first += count;
    }
    all
}

/// The LLVM text of a mask of the first `valid` of `lanes` lanes.
fn mask(valid: u64, lanes: u64) -> String {
    let bits: Vec<&str> = (0..lanes).map(|l| if l < valid { "i1 true" } else { "i1 false" }).collect();
    format!("<{lanes} x i1> <{}>", bits.join(", "))
}
