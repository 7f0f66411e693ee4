//! Loads and stores, of one element, of vectors whose elements lie side by side, and lane by lane where they do not.
use super::super::portable;
use super::super::scalar;
use super::super::value::{Val, value_type};
use super::{Binding, FunctionEmitter};
use crate::diag::{Error, Result};
use crate::kernel::{Atom, BufId, ExprId, Index, RegId, VarId, dot_sum_type};
use crate::target::{Arch, DotInstruction};
use crate::tensor::DType;
use crate::util::id_vec::Id;

impl FunctionEmitter<'_> {
    pub(super) fn load(&mut self, buf: BufId, index: &Index) -> Result<Val> {
        match (self.lane_coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => self.load_at(buf, index, 1),
            (Some(1), Some((_, lanes))) => self.load_at(buf, index, lanes),
            (_, Some((lane, lanes))) => {
                match self.equal_index_run(index, lane).filter(|(run, _)| lanes.is_multiple_of(*run)) {
                    Some((run, first)) => {
                        let each = self.load_at(buf, &first, lanes / run)?;
                        let picks: Vec<u64> = (0..lanes).map(|l| l / run).collect();
                        Ok(if each.lanes == 1 { each } else { self.shuffle(&each, &picks) })
                    }
                    None => self.build_by_lane(|f| f.load_at(buf, index, 1)),
                }
            }
        }
    }

    /// Run length `n` and first index, if `n` neighboring lanes have the same index, the next `n` lanes the next index, and so on.
    pub(super) fn equal_index_run(&self, index: &Index, lane: VarId) -> Option<(u64, Index)> {
        let differs = |atom: &Atom| Index::atom(atom.clone()).depends_on(lane, &|e| self.varies_by_lane(e));
        let (of_lane, rest): (Vec<_>, Vec<_>) = index.terms.iter().cloned().partition(|(atom, _)| differs(atom));
        let [(Atom::Div(of, run), 1)] = &of_lane[..] else { return None };
        let alone = self.valid.is_none() && **of == Index::var(lane);
        alone.then_some((*run as u64, Index { terms: rest, constant: index.constant }))
    }

    /// Emits the load of neighboring elements as 32-bit words: one word for all lanes, or consecutive words.
    pub(super) fn load_word(&mut self, buf: BufId, index: &Index) -> Result<Val> {
        let bytes = self.dtype_of(buf).bytes() as i64;
        let lanes = match (self.lane_coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => 1,
            (Some(apart), Some((_, lanes))) if apart * bytes == 4 && self.valid.is_none() => lanes,
            _ => return Err(Error::internal("codegen", "words do not lie side by side")),
        };
        let at = self.address(buf, index)?;
        let ty = value_type(DType::U32, lanes);
        Ok(self.push_instruction(&format!("load {ty}, ptr {at}, align {bytes}"), DType::U32, lanes))
    }

    /// Emits [`crate::kernel::Expr::DotProduct`] by the target's instruction, or by other integer instructions if it has none.
    pub(super) fn dot_product(&mut self, instruction: DotInstruction, x: &Val, y: &Val, z: &Val) -> Result<Val> {
        let lanes = x.lanes.max(y.lanes).max(z.lanes);
        let [x, y, z] = [x, y, z].map(|value| self.broadcast(value, lanes));
        let known = [self.target.bf16_dot, self.target.byte_dot, self.target.short_dot];
        let level = self.target.level;
        let has_feature = |other: DotInstruction| other.feature(level) == instruction.feature(level);
        let is_x86 = self.target.arch() == Arch::X86_64 && self.target.short_dot.is_some();
        let is_known = known.into_iter().flatten().any(has_feature) || instruction == DotInstruction::Pmaddwd && is_x86;
        if !is_known && instruction.is_integer() {
            return Ok(self.sum_of_integers(instruction, &x, &y, &z));
        }
        if instruction == DotInstruction::Pmaddwd && lanes > self.target.lanes(4) {
            let half = lanes / 2;
            let [low, high] = [0, half].map(|first| {
                let picks: Vec<u64> = (first..first + half).collect();
                let [x, y, z] = [&x, &y, &z].map(|value| self.shuffle(value, &picks));
                self.dot_product(instruction, &x, &y, &z)
            });
            return Ok(self.concat_lanes(&low?, &high?));
        }
        let bits = 32 * lanes;
        let callee = match (instruction, lanes) {
            (DotInstruction::Avx512Bf16, 4 | 8 | 16) => format!("@llvm.x86.avx512bf16.dpbf16ps.{bits}"),
            (DotInstruction::Bfdot, 2 | 4) => format!("@llvm.aarch64.neon.bfdot.v{lanes}f32.v{}bf16", 2 * lanes),
            (DotInstruction::Vpdpbusd, 4 | 8 | 16) => format!("@llvm.x86.avx512.vpdpbusd.{bits}"),
            (DotInstruction::Vpdpwssd, 4 | 8 | 16) => format!("@llvm.x86.avx512.vpdpwssd.{bits}"),
            (DotInstruction::Pmaddwd, 4) => "@llvm.x86.sse2.pmadd.wd".to_string(),
            (DotInstruction::Pmaddwd, 8) => "@llvm.x86.avx2.pmadd.wd".to_string(),
            (DotInstruction::Pmaddwd, 16) => "@llvm.x86.avx512.pmaddw.d.512".to_string(),
            (DotInstruction::Sdot, 2 | 4) => format!("@llvm.aarch64.neon.sdot.v{lanes}i32.v{}i8", 4 * lanes),
            (DotInstruction::Udot, 2 | 4) => format!("@llvm.aarch64.neon.udot.v{lanes}i32.v{}i8", 4 * lanes),
            _ => {
                let what = format!("{instruction:?} has no sums of {lanes} words");
                return Err(Error::internal("codegen", what));
            }
        };
        let elements = instruction.terms_per_word() * lanes;
        let (part, name) = match (instruction.is_integer(), instruction.terms_per_word()) {
            (false, _) => (DType::BF16, "bfloat"),
            (true, 2) => (DType::S16, "i16"),
            (true, _) => (DType::S8, "i8"),
        };
        let ty = format!("<{elements} x {name}>");
        let [x, y] = [x, y].map(|words| {
            let cast = format!("bitcast {} {} to {ty}", words.ty(), words.text);
            self.push_instruction(&cast, part, elements).text
        });
        let dtype = dot_sum_type(instruction);
        if instruction == DotInstruction::Pmaddwd {
            let products =
                self.push_instruction(&format!("call {} {callee}({ty} {x}, {ty} {y})", z.ty()), dtype, lanes);
            return Ok(self.push_instruction(&format!("add {} {}, {}", z.ty(), z.text, products.text), dtype, lanes));
        }
        let sum = format!("call {} {callee}({} {}", z.ty(), z.ty(), z.text);
        Ok(self.push_instruction(&format!("{sum}, {ty} {x}, {ty} {y})"), dtype, lanes))
    }

    /// Emits an integer dot product by shifts, multiplications and additions.
    fn sum_of_integers(&mut self, instruction: DotInstruction, x: &Val, y: &Val, z: &Val) -> Val {
        let (lanes, ty) = (z.lanes, value_type(DType::S32, z.lanes));
        let bits = 32 / instruction.terms_per_word();
        let [first_sign, second_sign] = instruction.operand_signs();
        let mut sum = z.clone();
        for place in 0..instruction.terms_per_word() {
            let [first, second] = [(x, first_sign), (y, second_sign)].map(|(words, is_signed)| {
                let to_top = self.constant(DType::S32, 32 - bits - bits * place, lanes).text;
                let at_top = self.push_instruction(&format!("shl {ty} {}, {to_top}", words.text), DType::S32, lanes);
                let (op, by) = (if is_signed { "ashr" } else { "lshr" }, self.constant(DType::S32, 32 - bits, lanes));
                self.push_instruction(&format!("{op} {ty} {}, {}", at_top.text, by.text), DType::S32, lanes)
            });
            let product =
                self.push_instruction(&format!("mul {ty} {}, {}", first.text, second.text), DType::S32, lanes);
            sum = self.push_instruction(&format!("add {ty} {}, {}", sum.text, product.text), DType::S32, lanes);
        }
        sum
    }

    pub(super) fn load_at(&mut self, buf: BufId, index: &Index, lanes: u64) -> Result<Val> {
        let dtype = self.dtype_of(buf);
        let at = self.address(buf, index)?;
        if dtype.is_complex() {
            let part = dtype.real_part();
            let pairs = self.load_vector(&at, part, part.bytes(), lanes, 2);
            let pick = |odd: u64| (0..lanes).map(|i| 2 * i + odd).collect::<Vec<_>>();
            let (re, im) = (self.shuffle(&pairs, &pick(0)), self.shuffle(&pairs, &pick(1)));
            return Ok(self.make_complex(&re, &im));
        }
        let stored = stored_as(dtype);
        let raw = self.load_vector(&at, stored, dtype.bytes(), lanes, 1);
        if dtype == DType::Pred {
            let zero = self.constant(stored, 0, lanes);
            return Ok(self.push_instruction(
                &format!("icmp ne {} {}, {}", raw.ty(), raw.text, zero.text),
                dtype,
                lanes,
            ));
        }
        if stored == dtype {
            return Ok(raw);
        }
        Ok(self.push_instruction(
            &format!("trunc {} {} to {}", raw.ty(), raw.text, value_type(dtype, lanes)),
            dtype,
            lanes,
        ))
    }

    pub(super) fn store(&mut self, buf: BufId, index: &Index, value: ExprId) -> Result<()> {
        let is_moved = portable::preserves_bits(self.kernel, &self.computed, value);
        let (keeps, value) = (self.may_store_old_value(buf, value), self.eval(value)?);
        let value = if keeps { self.freeze(&value) } else { value };
        let value = if is_moved { value } else { portable::canonicalize_nan(self, &value) };
        match (self.lane_coefficient(index), self.lane) {
            (Some(1), Some((_, lanes))) => {
                let value = self.broadcast(&value, lanes);
                self.store_at(buf, index, &value)
            }
            (Some(0), _) | (_, None) if value.lanes == 1 => self.store_at(buf, index, &value),
            (_, Some((var, lanes))) => {
                self.lane = None;
                for l in 0..self.valid.unwrap_or(lanes) {
                    self.bindings[var.index()] = Binding::Constant(l as i64);
                    self.memo.clear();
                    let one = self.extract_lane(&value, l);
                    self.store_at(buf, index, &one)?;
                }
                self.bindings[var.index()] = Binding::Lane;
                self.lane = Some((var, lanes));
                Ok(())
            }
            (_, None) => Err(Error::internal("codegen", "a vector is stored outside a vector loop")),
        }
    }

    /// Emits the extraction of one lane.
    pub fn extract_lane(&mut self, value: &Val, lane: u64) -> Val {
        if value.lanes == 1 { value.clone() } else { self.shuffle(value, &[lane]) }
    }

    pub(super) fn store_at(&mut self, buf: BufId, index: &Index, value: &Val) -> Result<()> {
        let at = self.address(buf, index)?;
        let (dtype, lanes) = (value.dtype, value.lanes);
        if dtype.is_complex() {
            let (re, im) = self.complex_parts(value);
            let pairs = if lanes == 1 {
                self.build_vector(&[re, im])
            } else {
                let mask: Vec<String> = (0..2 * lanes).map(|i| format!("i32 {}", i / 2 + i % 2 * lanes)).collect();
                let mask = format!("<{} x i32> <{}>", 2 * lanes, mask.join(", "));
                let rhs = format!("shufflevector {} {}, {} {}, {mask}", re.ty(), re.text, im.ty(), im.text);
                self.push_instruction(&rhs, re.dtype, 2 * lanes)
            };
            self.store_vector(&at, &pairs, pairs.dtype.bytes(), lanes, 2);
            return Ok(());
        }
        let stored = stored_as(dtype);
        let mut value = value.clone();
        if stored != dtype {
            let extend = if dtype.is_signed() { "sext" } else { "zext" };
            let rhs = format!("{extend} {} {} to {}", value.ty(), value.text, value_type(stored, lanes));
            value = self.push_instruction(&rhs, stored, lanes);
        }
        self.store_vector(&at, &value, dtype.bytes(), lanes, 1);
        Ok(())
    }

    pub(super) fn fold_lanes(&mut self, op: crate::scalar::ScalarOp, reg: RegId, at: &Index) -> Result<Val> {
        let info = self.kernel.regs[reg];
        let slot = self.register_address(reg, at)?;
        let ty = value_type(info.dtype, info.lanes);
        let mut x = self.push_instruction(&format!("load {ty}, ptr {slot}"), info.dtype, info.lanes);
        while x.lanes > 1 {
            let half = x.lanes / 2;
            let parts = [0, half].map(|from| {
                let picks: Vec<u64> = (from..from + half).collect();
                self.shuffle(&x, &picks)
            });
            x = scalar::emit(self, op, &parts)?;
        }
        Ok(x)
    }
}

/// The type of an element in memory: a byte for types of fewer bits.
fn stored_as(dtype: DType) -> DType {
    if dtype == DType::Pred || dtype.bits() < 8 { DType::U8 } else { dtype }
}
