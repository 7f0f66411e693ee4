//! Runs a program on tensors, plainly: the meaning of every statement, against which schedules and machine code are tested.
//!
//! Memory is what machine code gets: arguments, results, constants and one workspace at the offsets of the plan, so that two
//! buffers that share bytes by mistake show. Results and workspace start as all ones (NaN, -1).
use super::{
    Atom, BufId, BufferLocation, Expr, ExprId, Index, Kernel, KernelId, LoopKind, Program, Reg, RegId, Step, Stmt,
    TileSums, VarId, dot_sum_type,
};
use crate::diag::{Error, Result};
use crate::scalar::eval as scalar;
use crate::tensor::{DType, Tensor};
use crate::util::id_vec::{Id, IdVec};
use std::collections::HashMap;

/// Interprets a call of `program` and returns its results.
///
/// Shapes and types: as `program.args` and `program.results` say.
///
/// # Errors
/// Internal, where arguments do not fit, where a statement breaks a rule of the verifier, or after `most` statements.
pub fn evaluate(program: &Program, args: &[Tensor], most: u64) -> Result<Vec<Tensor>> {
    evaluate_with_state(program, args, &mut Vec::new(), most)
}

/// Interprets a call of a program with variables and returns its results; `state` has the variables' values before and after the call.
///
/// # Errors
/// Errors of [`evaluate`].
pub fn evaluate_with_state(program: &Program, args: &[Tensor], state: &mut Vec<u8>, most: u64) -> Result<Vec<Tensor>> {
    let fits = |(have, want): (&Tensor, &crate::tensor::TensorInfo)| have.dtype == want.dtype && have.dims == want.dims;
    if args.len() != program.args.len() || !args.iter().zip(&program.args).all(fits) {
        return Err(fault("the arguments do not fit the program"));
    }
    if state.len() as u64 != program.state_bytes() {
        return Err(fault("the state does not fit the program"));
    }
    let mut weights = vec![0; program.weights_bytes as usize];
    for (at, bytes) in &program.weights {
        weights[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
    }
    let mut machine = KernelInterpreter {
        program,
        args: args.iter().map(|t| t.bytes.to_vec()).collect(),
        results: program.results.iter().map(|t| vec![0xff; t.bytes() as usize]).collect(),
        weights,
        state: std::mem::take(state),
        workspace: vec![0xff; program.workspace_bytes as usize],
        stack: HashMap::new(),
        left: most,
    };
    machine.steps(&program.steps)?;
    *state = machine.state;
    let results = machine.results.into_iter().zip(&program.results);
    Ok(results.map(|(bytes, info)| Tensor::new(info.dtype, info.dims.clone(), bytes)).collect())
}

fn fault(message: impl Into<String>) -> Error {
    Error::internal("kernel evaluator", message)
}

struct KernelInterpreter<'a> {
    program: &'a Program,
    args: Vec<Vec<u8>>,
    results: Vec<Vec<u8>>,
    weights: Vec<u8>,
    state: Vec<u8>,
    workspace: Vec<u8>,
    stack: HashMap<BufId, Vec<u8>>,
    left: u64,
}

impl KernelInterpreter<'_> {
    fn steps(&mut self, all: &[Step]) -> Result<()> {
        for step in all {
            match step {
                Step::Launch(k) => self.launch(*k)?,
                Step::Call(call) => return Err(fault(format!("`{}` has no body here", call.to.name()))),
                Step::While { cond, pred, body, .. } => loop {
                    self.charge_step()?;
                    self.steps(cond)?;
                    if self.read(*pred, 0)?.get_i64(0) != Some(1) {
                        break;
                    }
                    self.steps(body)?;
                },
                Step::Branch { selector, branches } => {
                    let x = self.read(*selector, 0)?;
                    let last = branches.len().saturating_sub(1) as i64;
                    let number = x.get_i64(0).unwrap_or(last);
                    let number = if x.dtype == DType::Pred { 1 - number } else { number };
                    let taken = if (0..=last).contains(&number) { number } else { last };
                    if let Some(branch) = branches.get(taken as usize) {
                        self.steps(branch)?;
                    }
                }
                Step::Together(parts) => parts.iter().try_for_each(|part| self.steps(part))?,
            }
        }
        Ok(())
    }

    fn charge_step(&mut self) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| fault("too many statements"))?;
        Ok(())
    }

    fn launch(&mut self, id: KernelId) -> Result<()> {
        let kernel = &self.program.kernels[id];
        self.stack.clear();
        let filled = |r: &Reg| vec![all_ones(r.dtype, r.lanes); r.count as usize];
        let mut frame = KernelFrame {
            kernel,
            vars: vec![0; kernel.vars.len()],
            lane: None,
            valid: 1,
            regs: kernel.regs.values().map(filled).collect(),
            memo: HashMap::new(),
        };
        let count = match kernel.limit {
            Some((buf, at)) => {
                self.read(buf, at as i64)?.get_i64(0).map_or(0, |n| n.clamp(0, kernel.chunk_count() as i64))
            }
            None => kernel.chunk_count() as i64,
        };
        if let Some([_, last]) = kernel.range {
            frame.vars[last.index()] = count - 1;
        }
        match kernel.chunks {
            Some(var) => self.run_loop(&mut frame, var, count, &kernel.body),
            None => self.stmts(&mut frame, &kernel.body),
        }
        .map_err(|e| match e {
            Error::Internal { step, message } => {
                Error::internal(step, format!("k{} `{}`: {message}", id.0, kernel.label))
            }
            user => user,
        })
    }

    /// Runs the iterations of a loop.
    fn run_loop(&mut self, f: &mut KernelFrame, var: VarId, count: i64, body: &[Stmt]) -> Result<()> {
        for i in 0..count {
            f.vars[var.index()] = i;
            self.stmts(f, body)?;
        }
        f.vars[var.index()] = 0;
        Ok(())
    }

    fn stmts(&mut self, f: &mut KernelFrame, all: &[Stmt]) -> Result<()> {
        all.iter().try_for_each(|s| self.run_stmt(f, s))
    }

    fn run_stmt(&mut self, f: &mut KernelFrame, stmt: &Stmt) -> Result<()> {
        self.charge_step()?;
        f.memo.clear();
        match stmt {
            Stmt::For { var, kind, body } => {
                let lanes = f.kernel.vars[*var];
                let valid = match kind {
                    LoopKind::Vector if lanes != 1 => lanes,
                    LoopKind::Masked(valid) => *valid,
                    LoopKind::Seq | LoopKind::Unroll | LoopKind::Vector => {
                        return self.run_loop(f, *var, lanes as i64, body);
                    }
                };
                (f.lane, f.valid) = (Some((*var, lanes)), valid);
                self.stmts(f, body)?;
                (f.lane, f.valid) = (None, 1);
                Ok(())
            }
            Stmt::Store { buf, index, value } => {
                let value = self.eval(f, *value)?;
                for lane in 0..f.valid {
                    let at = self.eval_index(f, index, lane)?;
                    self.write(*buf, at, &one_of(&value, lane))?;
                }
                Ok(())
            }
            Stmt::Prefetch { .. } | Stmt::Release => Ok(()),
            Stmt::Tiles(sums) => self.run_tiles(f, sums),
            Stmt::Set { reg, at, value } => {
                let value = self.eval(f, *value)?;
                let at = self.eval_index(f, at, 0)?;
                let lanes = f.kernel.regs[*reg].lanes;
                let slot = f.register_mut(*reg, at)?;
                *slot = if value.len() as u64 == lanes { value } else { splat(&value, lanes) };
                Ok(())
            }
            Stmt::Let { var, value, body } => {
                f.vars[var.index()] = self.eval_index(f, value, 0)?;
                self.stmts(f, body)?;
                f.vars[var.index()] = 0;
                Ok(())
            }
            Stmt::If { cond, body } => {
                if self.eval_condition(f, *cond)? {
                    self.stmts(f, body)?;
                }
                Ok(())
            }
            Stmt::While { cond, body } => {
                while self.eval_condition(f, *cond)? {
                    self.charge_step()?;
                    self.stmts(f, body)?;
                    f.memo.clear();
                }
                Ok(())
            }
        }
    }

    fn run_tiles(&mut self, f: &mut KernelFrame, sums: &TileSums) -> Result<()> {
        let columns = sums.columns();
        let mut all = vec![0; (sums.rows() * columns) as usize];
        let to = self.eval_index(f, &sums.at, 0)?;
        if sums.adds {
            for (i, sum) in all.iter_mut().enumerate() {
                *sum = self.bits(sums.to, to + i as i64)?;
            }
        }
        self.rounds(f, &sums.loops, sums, &mut all)?;
        let dtype = self.program.buffers[sums.to].dtype;
        let mut numbers = all.iter().enumerate();
        numbers.try_for_each(|(i, sum)| {
            let number = Tensor::new(dtype, vec![1], sum.to_le_bytes().to_vec());
            self.write(sums.to, to + i as i64, &number)
        })
    }

    /// Adds the products of all iterations of a tile sum's loops.
    fn rounds(&mut self, f: &mut KernelFrame, loops: &[VarId], sums: &TileSums, all: &mut [u32]) -> Result<()> {
        if let [first, inner @ ..] = loops {
            for i in 0..f.kernel.vars[*first] {
                f.vars[first.index()] = i as i64;
                self.rounds(f, inner, sums, all)?;
            }
            f.vars[first.index()] = 0;
            return Ok(());
        }
        self.charge_step()?;
        f.memo.clear();
        let columns = sums.columns();
        let per_word = sums.product.terms_per_word() as i64;
        let words = (0..sums.terms as i64 / per_word).collect::<Vec<_>>();
        let first = self.eval_index(f, &sums.first, 0)?;
        let mut row = all.chunks_mut(columns as usize);
        for tile in &sums.rows {
            let start = self.eval_index(f, &tile.first, 0)?;
            for r in 0..tile.count {
                let left = start + (r * tile.stride) as i64;
                let x =
                    words.iter().map(|w| self.load_word(sums.left, left + per_word * w)).collect::<Result<Vec<_>>>()?;
                for (column, sum) in row.next().unwrap_or_default().iter_mut().enumerate() {
                    let at = |w: &i64| first + w * sums.stride as i64 + per_word * column as i64;
                    let y = words.iter().map(|w| self.load_word(sums.right, at(w))).collect::<Result<Vec<_>>>()?;
                    *sum = sums.product.evaluate_sum(x.iter().copied().zip(y), *sum);
                }
            }
        }
        Ok(())
    }

    /// Loads neighboring elements that fill a 32-bit word.
    fn load_word(&mut self, buf: BufId, at: i64) -> Result<u32> {
        let bytes = self.program.buffers[buf].dtype.bytes() as i64;
        let mut word = 0;
        for i in 0..4 / bytes {
            word |= self.bits(buf, at + i)? << (8 * bytes * i);
        }
        Ok(word)
    }

    /// Loads the bits of an element of at most 32 bits.
    fn bits(&mut self, buf: BufId, at: i64) -> Result<u32> {
        let bytes = self.memory(buf, at)?.iter().rev();
        Ok(bytes.fold(0, |word, &byte| word << 8 | u32::from(byte)))
    }

    fn eval_condition(&mut self, f: &mut KernelFrame, cond: ExprId) -> Result<bool> {
        Ok(self.eval(f, cond)?.get_i64(0) == Some(1))
    }

    /// Evaluates an expression: one element, or one for each lane.
    fn eval(&mut self, f: &mut KernelFrame, id: ExprId) -> Result<Tensor> {
        if let Some(value) = f.memo.get(&id) {
            return Ok(value.clone());
        }
        let kernel = f.kernel;
        let value = match &kernel.exprs[id] {
            Expr::Const(dtype, bits) => Tensor::new(*dtype, vec![1], bits.to_le_bytes()[..dtype.bytes()].to_vec()),
            Expr::Load(buf, x) => self.load(f, *buf, x)?,
            Expr::Word(buf, x) => {
                let uniform = !f.lane.is_some_and(|(lane, _)| kernel.varies_by_lane(id, lane));
                self.pair(f, *buf, x, uniform)?
            }
            Expr::DotProduct { instruction, x, y, z } => {
                let values = [*x, *y, *z].map(|a| self.eval(f, a));
                let [x, y, z] = values;
                let (x, y, z) = (x?, y?, z?);
                let lanes = x.len().max(y.len()).max(z.len()) as u64;
                let (x, y, z) = (splat(&x, lanes), splat(&y, lanes), splat(&z, lanes));
                let z = Tensor::new(DType::U32, z.dims.clone(), z.bytes);
                let (x, y, z) = (x.view::<u32>(), y.view::<u32>(), z.view::<u32>());
                let terms = x.iter().zip(y.iter()).zip(z.iter());
                let sums = terms.flat_map(|((&x, &y), &z)| instruction.evaluate_sum(x, y, z).to_le_bytes());
                Tensor::new(dot_sum_type(*instruction), vec![lanes], sums.collect::<Vec<u8>>())
            }
            Expr::Op(op, args, dtype) => {
                let values = args.iter().map(|&a| self.eval(f, a)).collect::<Result<Vec<_>>>()?;
                let lanes = values.iter().map(Tensor::len).max().unwrap_or(1) as u64;
                let values: Vec<Tensor> = values.iter().map(|v| splat(v, lanes)).collect();
                let out = scalar::eval(*op, &values.iter().collect::<Vec<_>>())?;
                if out.dtype != *dtype {
                    return Err(fault(format!("{} gives {} instead of {dtype}", op.name(), out.dtype)));
                }
                out
            }
            Expr::Number(x, dtype) => {
                let all = (0..f.lanes()).map(|l| self.eval_index(f, x, l)).collect::<Result<Vec<_>>>()?;
                scalar::convert(&Tensor::of(&[all.len() as u64], &all), *dtype)
            }
            Expr::Within(x, low, high) => {
                let all = (0..f.lanes()).map(|l| Ok((*low..*high).contains(&self.eval_index(f, x, l)?)));
                let all = all.collect::<Result<Vec<_>>>()?;
                Tensor::from_bools(&[all.len() as u64], &all)
            }
            Expr::Reg(r, at) => {
                let at = self.eval_index(f, at, 0)?;
                f.register_mut(*r, at)?.clone()
            }
            Expr::Lanes(r, at, first, count) => {
                let at = self.eval_index(f, at, 0)?;
                let whole = f.register_mut(*r, at)?;
                let size = whole.dtype.bytes();
                let (from, to) = (*first as usize * size, (first + count) as usize * size);
                if to > whole.bytes.len() {
                    return Err(fault(format!("lanes {first} and on of r{}", r.0)));
                }
                Tensor::new(whole.dtype, vec![*count], whole.bytes.slice(from..to))
            }
            Expr::Fold(op, r, at) => {
                let at = self.eval_index(f, at, 0)?;
                let mut x = f.register_mut(*r, at)?.clone();
                while x.len() > 1 {
                    let half = x.bytes.len() / 2;
                    let n = x.len() as u64 / 2;
                    let low = Tensor::new(x.dtype, vec![n], x.bytes.slice(..half));
                    let high = Tensor::new(x.dtype, vec![n], x.bytes.slice(half..));
                    x = scalar::eval(*op, &[&low, &high])?;
                }
                x
            }
        };
        f.memo.insert(id, value.clone());
        Ok(value)
    }

    /// Loads the elements of a buffer that the lanes read; zeros in masked lanes.
    fn load(&mut self, f: &mut KernelFrame, buf: BufId, index: &Index) -> Result<Tensor> {
        let mut parts = Vec::new();
        for lane in 0..f.lanes() {
            parts.push(if lane < f.valid {
                let at = self.eval_index(f, index, lane)?;
                self.read(buf, at)?
            } else {
                zero_scalar(self.program.buffers[buf].dtype)
            });
        }
        Ok(concat_lanes(&parts))
    }

    /// Loads the 32-bit words that the lanes read from neighboring elements; one word if the expression is `uniform`.
    fn pair(&mut self, f: &mut KernelFrame, buf: BufId, index: &Index, uniform: bool) -> Result<Tensor> {
        let mut words = Vec::new();
        for lane in 0..f.lanes() {
            let at = self.eval_index(f, index, lane)?;
            words.extend(self.load_word(buf, at)?.to_le_bytes());
        }
        words.truncate(if uniform { 4 } else { words.len() });
        Ok(Tensor::new(DType::U32, vec![words.len() as u64 / 4], words))
    }

    /// Evaluates an index for one lane.
    fn eval_index(&mut self, f: &mut KernelFrame, x: &Index, lane: u64) -> Result<i64> {
        let mut sum = x.constant;
        for (atom, c) in &x.terms {
            let value = match atom {
                Atom::Var(v) if f.lane.is_some_and(|l| l.0 == *v) => lane as i64,
                Atom::Var(v) => f.vars[v.index()],
                Atom::Div(y, n) => self.eval_index(f, y, lane)?.div_euclid(*n),
                Atom::Rem(y, n) => self.eval_index(f, y, lane)?.rem_euclid(*n),
                Atom::Clamp(y, low, high) => self.eval_index(f, y, lane)?.clamp(*low, *high),
                Atom::Value(e) => {
                    let value = one_of(&self.eval(f, *e)?, lane);
                    value.get_i64(0).ok_or_else(|| fault(format!("{} is no index", value.dtype)))?
                }
            };
            sum += value * c;
        }
        Ok(sum)
    }

    fn memory(&mut self, buf: BufId, at: i64) -> Result<&mut [u8]> {
        let buffer = &self.program.buffers[buf];
        let size = buffer.dtype.bytes();
        let outside = || fault(format!("element {at} of b{} of {} elements", buf.0, buffer.elements));
        let element = u64::try_from(at).ok().filter(|&at| at < buffer.elements).ok_or_else(outside)? as usize;
        let (all, from) = match buffer.place {
            BufferLocation::Arg(i) => (self.args.get_mut(i), 0),
            BufferLocation::Result(i) => (self.results.get_mut(i), 0),
            BufferLocation::Weights(at) => (Some(&mut self.weights), at as usize),
            BufferLocation::State(at) => (Some(&mut self.state), at as usize),
            BufferLocation::Workspace(at) => (Some(&mut self.workspace), at as usize),
            BufferLocation::Stack => {
                let size = buffer.elements as usize * size;
                (Some(self.stack.entry(buf).or_insert_with(|| vec![0xff; size])), 0)
            }
        };
        let from = from + element * size;
        all.and_then(|all| all.get_mut(from..from + size)).ok_or_else(outside)
    }

    fn read(&mut self, buf: BufId, at: i64) -> Result<Tensor> {
        let dtype = self.program.buffers[buf].dtype;
        Ok(Tensor::new(dtype, vec![1], self.memory(buf, at)?.to_vec()))
    }

    fn write(&mut self, buf: BufId, at: i64, value: &Tensor) -> Result<()> {
        if matches!(self.program.buffers[buf].place, BufferLocation::Arg(_) | BufferLocation::Weights(_)) {
            return Err(fault(format!("b{} is written to", buf.0)));
        }
        self.memory(buf, at)?.copy_from_slice(&value.bytes);
        Ok(())
    }
}

/// The registers and variables of a kernel while it runs.
struct KernelFrame<'a> {
    kernel: &'a Kernel,
    vars: Vec<i64>,
    /// Variable and lane count of the open vector loop.
    lane: Option<(VarId, u64)>,
    /// Number of active lanes.
    valid: u64,
    regs: IdVec<RegId, Vec<Tensor>>,
    /// Values of the expressions evaluated so far in the current statement.
    memo: HashMap<ExprId, Tensor>,
}

impl KernelFrame<'_> {
    fn lanes(&self) -> u64 {
        self.lane.map_or(1, |l| l.1)
    }
    fn register_mut(&mut self, reg: RegId, at: i64) -> Result<&mut Tensor> {
        let slot = usize::try_from(at).ok().and_then(|at| self.regs[reg].get_mut(at));
        slot.ok_or_else(|| fault(format!("r{}[{at}]", reg.0)))
    }
}

fn zero_scalar(dtype: DType) -> Tensor {
    Tensor::new(dtype, vec![1], vec![0; dtype.bytes()])
}

fn all_ones(dtype: DType, lanes: u64) -> Tensor {
    Tensor::new(dtype, vec![lanes], vec![0xff; lanes as usize * dtype.bytes()])
}

/// The value of one lane; a value of one element is the same in all lanes.
fn one_of(x: &Tensor, lane: u64) -> Tensor {
    let size = x.dtype.bytes();
    let from = if x.len() == 1 { 0 } else { lane as usize * size };
    Tensor::new(x.dtype, vec![1], x.bytes.slice(from..from + size))
}

fn concat_lanes(parts: &[Tensor]) -> Tensor {
    match parts {
        [one] => one.clone(),
        _ => {
            let bytes: Vec<u8> = parts.iter().flat_map(|p| p.bytes.iter().copied()).collect();
            Tensor::new(parts[0].dtype, vec![parts.len() as u64], bytes)
        }
    }
}

fn splat(x: &Tensor, lanes: u64) -> Tensor {
    if x.len() as u64 == lanes { x.clone() } else { concat_lanes(&vec![one_of(x, 0); lanes as usize]) }
}
