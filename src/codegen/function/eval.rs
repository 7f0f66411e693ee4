//! The values of expressions: one for all lanes of the loop that is open, or one a lane.
use super::super::value::{Val, value_type};
use super::super::{convert, idioms, interleave, math, portable, scalar};
use super::{Binding, FunctionEmitter};
use crate::diag::Result;
use crate::kernel::{Expr, ExprId, Index};
use crate::tensor::DType;
use crate::util::id_vec::Id;

impl FunctionEmitter<'_> {
    /// Emits the value of an expression: one for all lanes, or one for each.
    pub fn eval(&mut self, id: ExprId) -> Result<Val> {
        if let Some(v) = self.memo.get(&id) {
            return Ok(v.clone());
        }
        let kernel = self.kernel;
        let value = match &kernel.exprs[id] {
            Expr::Const(t, bits) => self.constant(*t, *bits, 1),
            Expr::Load(buf, index) => self.load(*buf, index)?,
            Expr::Word(buf, index) => self.load_word(*buf, index)?,
            Expr::DotProduct { instruction, x, y, z } => {
                let values = [*x, *y, *z].map(|a| self.eval(a));
                let [x, y, z] = values;
                self.dot_product(*instruction, &x?, &y?, &z?)?
            }
            Expr::Op(op, args, _) => {
                if let Some((idiom, x)) = idioms::find_idiom(kernel, math::uses_tables(self), *op, args) {
                    let x = self.eval(x)?;
                    let value = idiom(self, &x);
                    self.memo.insert(id, value.clone());
                    return Ok(value);
                }
                if let Some(bytes) = interleave::find_bytes(kernel, *op, args)
                    && let Some(words) = interleave::emit_words(self, &bytes)?
                {
                    self.memo.insert(id, words.clone());
                    return Ok(words);
                }
                let mut values = args.iter().map(|&a| self.eval(a)).collect::<Result<Vec<_>>>()?;
                let lanes = values.iter().map(|v| v.lanes).max().unwrap_or(1);
                for v in &mut values {
                    *v = self.broadcast(v, lanes);
                }
                portable::canonicalize_nan_operands(self, *op, args, &mut values);
                scalar::emit(self, *op, &values)?
            }
            Expr::Number(index, dtype) => {
                let number = self.eval_index(index)?;
                convert::convert(self, &number, *dtype)
            }
            Expr::Within(index, low, high) => {
                let x = self.eval_index(index)?;
                let ty = value_type(DType::S64, x.lanes);
                let low = self.constant(DType::S64, *low as u64, x.lanes).text;
                let high = self.constant(DType::S64, *high as u64, x.lanes).text;
                let above = self.push_instruction(&format!("icmp sge {ty} {}, {low}", x.text), DType::Pred, x.lanes);
                let below = self.push_instruction(&format!("icmp slt {ty} {}, {high}", x.text), DType::Pred, x.lanes);
                self.push_instruction(
                    &format!("and {} {}, {}", value_type(DType::Pred, x.lanes), above.text, below.text),
                    DType::Pred,
                    x.lanes,
                )
            }
            Expr::Reg(reg, at) => {
                let info = kernel.regs[*reg];
                let slot = self.register_address(*reg, at)?;
                self.push_instruction(
                    &format!("load {}, ptr {slot}", value_type(info.dtype, info.lanes)),
                    info.dtype,
                    info.lanes,
                )
            }
            Expr::Lanes(reg, at, first, count) => {
                let info = kernel.regs[*reg];
                let slot = self.register_address(*reg, at)?;
                let ty = value_type(info.dtype, info.lanes);
                let whole = self.push_instruction(&format!("load {ty}, ptr {slot}"), info.dtype, info.lanes);
                let picks: Vec<u64> = (*first..first + count).collect();
                if whole.lanes == 1 { whole } else { self.shuffle(&whole, &picks) }
            }
            Expr::Fold(op, reg, at) => self.fold_lanes(*op, *reg, at)?,
        };
        self.memo.insert(id, value.clone());
        Ok(value)
    }

    /// Emits an index as `s64`, one for each lane if it varies.
    pub(super) fn eval_index(&mut self, index: &Index) -> Result<Val> {
        let scalar = |x: Result<i64, String>| match x {
            Ok(i) => Val { text: i.to_string(), dtype: DType::S64, lanes: 1 },
            Err(name) => Val { text: name, dtype: DType::S64, lanes: 1 },
        };
        match (self.lane_coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => Ok(scalar(self.element_offset(index)?)),
            (Some(c), Some((_, lanes))) => {
                let base = scalar(self.element_offset(index)?);
                let base = self.broadcast(&base, lanes);
                let steps: Vec<String> = (0..lanes as i64).map(|l| format!("i64 {}", l * c)).collect();
                Ok(self.push_instruction(
                    &format!("add {} {}, <{}>", value_type(DType::S64, lanes), base.text, steps.join(", ")),
                    DType::S64,
                    lanes,
                ))
            }
            (None, Some(_)) => self.build_by_lane(|f| Ok(scalar(f.element_offset(index)?))),
        }
    }

    /// Emits a vector lane by lane; `make` emits one lane, with the lane variable bound to a constant.
    pub(super) fn build_by_lane(&mut self, mut make: impl FnMut(&mut Self) -> Result<Val>) -> Result<Val> {
        let Some((var, lanes)) = self.lane.take() else { return make(self) };
        let memo = std::mem::take(&mut self.memo);
        let mut all = Vec::new();
        for l in 0..self.valid.unwrap_or(lanes) {
            self.bindings[var.index()] = Binding::Constant(l as i64);
            self.memo.clear();
            all.push(make(self)?);
        }
        if let Some(first) = all.first().cloned() {
            all.resize(lanes as usize, first);
        }
        self.bindings[var.index()] = Binding::Lane;
        self.lane = Some((var, lanes));
        self.memo = memo;
        Ok(self.build_vector(&all))
    }
}
