//! Where memory and registers are: indices as sums of run-time parts and constants, addresses, which differ from lane to lane.
use super::super::convert;
use super::{Binding, FunctionEmitter};
use crate::diag::{Error, Result};
use crate::kernel::{Atom, BufId, BufferLocation, ExprId, Index, RegId};
use crate::tensor::DType;
use crate::util::id_vec::Id;

impl FunctionEmitter<'_> {
    pub(super) fn register_address(&mut self, reg: RegId, at: &Index) -> Result<String> {
        let (name, constant) = self.split_constant_part(at)?;
        if name.is_some() || constant < 0 || constant as u64 >= self.kernel.regs[reg].count {
            return Err(Error::internal("codegen", "a register's number is not a constant in range"));
        }
        Ok(format!("%r{}.{constant}", reg.0))
    }

    pub(super) fn base_address(&mut self, buf: BufId) -> String {
        if let Some(name) = self.bases.get(&buf) {
            return name.clone();
        }
        let name = match self.program.buffers[buf].place {
            BufferLocation::Stack => {
                let bytes = self.program.buffers[buf].bytes();
                let name = format!("%s{}", self.bases.len());
                self.base_text += &format!("  {name} = alloca [{} x i8], align 64\n", bytes.max(1));
                name
            }
            // LLVM must not know what memory this is. Of constants it would keep what only the end of a loop's body needs,
            // such as a bias, in vector registers all the time, and move sums out to the stack.
            BufferLocation::Weights(_)
            | BufferLocation::State(_)
            | BufferLocation::Workspace(_)
            | BufferLocation::Arg(_)
            | BufferLocation::Result(_) => {
                self.slots.push(buf);
                let (name, at) = (format!("%b{}", self.slots.len()), self.slots.len());
                self.base_text += &format!(
                    "  {name}.s = getelementptr ptr, ptr %closure, i64 {at}\n  {name} = load ptr, ptr {name}.s\n"
                );
                name
            }
        };
        self.bases.insert(buf, name.clone());
        name
    }

    /// Emits the address of element `index` of a buffer for lane 0.
    pub(in crate::codegen) fn address(&mut self, buf: BufId, index: &Index) -> Result<String> {
        let size = self.dtype_of(buf).bytes() as i64;
        let base = self.base_address(buf);
        let (name, constant) = self.split_constant_part(&index.scale(size))?;
        let mut at = base;
        if let Some(name) = name {
            at = self.address_instruction(format!("getelementptr i8, ptr {at}, i64 {name}"));
        }
        if constant != 0 {
            at = self.address_instruction(format!("getelementptr i8, ptr {at}, i64 {constant}"));
        }
        Ok(at)
    }

    /// Splits an index into a run-time part and a constant part; the lane variable counts as 0.
    pub(super) fn split_constant_part(&mut self, index: &Index) -> Result<(Option<String>, i64)> {
        let mut constant = index.constant;
        let mut total: Option<String> = None;
        for (atom, c) in &index.terms {
            let term = match atom {
                Atom::Var(v) => match self.bindings[v.index()].clone() {
                    Binding::Constant(i) => {
                        constant += i * c;
                        continue;
                    }
                    Binding::Lane => continue,
                    Binding::Name(name) => name,
                    // A loop of one iteration need not be there.
                    Binding::Unbound if self.kernel.vars[*v] == 1 => continue,
                    Binding::Unbound => {
                        return Err(Error::internal("codegen", format!("v{} is used outside its loop", v.0)));
                    }
                },
                Atom::Div(x, n) => match self.element_offset(x)? {
                    Ok(i) => {
                        constant += i.div_euclid(*n) * c;
                        continue;
                    }
                    Err(name) => self.address_instruction(format!("udiv i64 {name}, {n}")),
                },
                Atom::Rem(x, n) => match self.element_offset(x)? {
                    Ok(i) => {
                        constant += i.rem_euclid(*n) * c;
                        continue;
                    }
                    Err(name) => self.address_instruction(format!("urem i64 {name}, {n}")),
                },
                Atom::Clamp(x, low, high) => match self.element_offset(x)? {
                    Ok(i) => {
                        constant += i.clamp(*low, *high) * c;
                        continue;
                    }
                    Err(name) => {
                        let up = self.address_instruction(format!("call i64 @llvm.smax.i64(i64 {name}, i64 {low})"));
                        self.address_instruction(format!("call i64 @llvm.smin.i64(i64 {up}, i64 {high})"))
                    }
                },
                Atom::Value(e) => {
                    let value = self.eval(*e)?;
                    if value.lanes != 1 {
                        return Err(Error::internal("codegen", "an index differs from lane to lane"));
                    }
                    convert::convert(self, &value, DType::S64).text
                }
            };
            let scaled = if *c == 1 { term } else { self.address_instruction(format!("mul nsw i64 {term}, {c}")) };
            total = Some(match total {
                None => scaled,
                Some(sum) => self.address_instruction(format!("add nsw i64 {sum}, {scaled}")),
            });
        }
        Ok((total, constant))
    }

    /// Emits an index as an element offset: a constant (`Ok`), or the name of an LLVM value (`Err`).
    pub(super) fn element_offset(&mut self, index: &Index) -> Result<Result<i64, String>> {
        let (name, constant) = self.split_constant_part(index)?;
        Ok(match name {
            None => Ok(constant),
            Some(name) if constant == 0 => Err(name),
            Some(name) => Err(self.address_instruction(format!("add nsw i64 {name}, {constant}"))),
        })
    }

    /// Whether an expression differs between lanes of the open vector loop.
    pub(super) fn varies_by_lane(&self, id: ExprId) -> bool {
        self.lane.is_some_and(|(lane, _)| self.kernel.varies_by_lane(id, lane))
    }

    pub(super) fn lane_coefficient(&self, index: &Index) -> Option<i64> {
        let Some((lane, _)) = self.lane else { return Some(0) };
        index.coefficient(lane, &|e| self.varies_by_lane(e))
    }
}
