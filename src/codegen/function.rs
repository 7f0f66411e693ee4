//! One kernel as LLVM text: loops, index arithmetic, loads and stores, vectors.
use super::scalar;
use crate::diag::{Code, Error, Result};
use crate::kernel::{Atom, BufId, Expr, ExprId, Index, Kernel, LoopKind, Place, Program, RegId, Stmt, VarId};
use crate::target::Target;
use crate::tensor::DType;
use crate::util::id_vec::Id;
use std::collections::HashMap;

/// A value in the text: a name or a constant, and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Val {
    /// `%t3`, `0x3FF0000000000000`, `splat (float 1.0)` …
    pub text: String,
    /// The element type; `pred` is `i1`.
    pub dtype: DType,
    /// Lanes; 1 is a scalar.
    pub lanes: u64,
}

/// What a loop variable is at this point.
#[derive(Clone, Debug)]
enum Binding {
    /// Not in its loop.
    Unbound,
    /// An `i64` name.
    Name(String),
    /// Unrolled.
    Constant(i64),
    /// The variable of the `Vector` loop that is open.
    Lane,
}

/// The text of one function under construction.
pub struct Function<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    /// Facts of the machine.
    pub target: &'a Target,
    allocas: String,
    body: String,
    next: usize,
    bindings: Vec<Binding>,
    lane: Option<(VarId, u64)>,
    memo: HashMap<ExprId, Val>,
    bases: HashMap<BufId, String>,
    base_text: String,
}

/// LLVM's type of an element.
pub fn scalar_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Pred => "i1",
        DType::S8 | DType::U8 => "i8",
        DType::S16 | DType::U16 => "i16",
        DType::S32 | DType::U32 => "i32",
        DType::S64 | DType::U64 => "i64",
        DType::F32 => "float",
        DType::F64 => "double",
        _ => return None,
    })
}

/// LLVM's type of a value.
pub fn value_type(dtype: DType, lanes: u64) -> String {
    let scalar = scalar_type(dtype).unwrap_or("i8");
    if lanes == 1 { scalar.to_string() } else { format!("<{lanes} x {scalar}>") }
}

/// A constant of an element type, as LLVM writes it.
pub fn constant_text(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Pred => if bits & 1 == 1 { "true" } else { "false" }.to_string(),
        DType::F32 => format!("0x{:016X}", f64::from(f32::from_bits(bits as u32)).to_bits()),
        DType::F64 => format!("0x{bits:016X}"),
        t if t.is_signed() => {
            let shift = 64 - t.bits();
            format!("{}", (bits as i64) << shift >> shift)
        }
        _ => bits.to_string(),
    }
}

impl<'a> Function<'a> {
    /// The text of kernel `kernel`, called `name`.
    pub fn emit(program: &'a Program, kernel: &'a Kernel, name: &str, target: &'a Target) -> Result<String> {
        let mut f = Function {
            program,
            kernel,
            target,
            allocas: String::new(),
            body: String::new(),
            next: 0,
            bindings: vec![Binding::Unbound; kernel.vars.len()],
            lane: None,
            memo: HashMap::new(),
            bases: HashMap::new(),
            base_text: String::new(),
        };
        f.registers()?;
        match kernel.chunks {
            Some(var) => f.counted(var, "%begin", "%end", &kernel.body)?,
            None => f.stmts(&kernel.body)?,
        }
        Ok(format!(
            "define internal void @{name}(ptr %closure, i64 %begin, i64 %end) #0 {{\nentry:\n{}{}  br label %start\nstart:\n{}  ret void\n}}\n",
            f.allocas, f.base_text, f.body
        ))
    }

    fn registers(&mut self) -> Result<()> {
        for (id, reg) in self.kernel.regs.iter() {
            for at in 0..reg.count {
                let ty = self.type_of(reg.dtype, reg.lanes)?;
                self.allocas += &format!("  %r{}.{at} = alloca {ty}\n", id.0);
            }
        }
        Ok(())
    }

    fn type_of(&self, dtype: DType, lanes: u64) -> Result<String> {
        if scalar_type(dtype).is_none() {
            return Err(unsupported(dtype));
        }
        Ok(value_type(dtype, lanes))
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    fn label(&mut self) -> String {
        self.next += 1;
        format!("l{}", self.next)
    }

    fn line(&mut self, text: &str) {
        self.body += "  ";
        self.body += text;
        self.body += "\n";
    }

    /// Adds `rhs` as an instruction whose result has this type.
    pub fn ins(&mut self, rhs: &str, dtype: DType, lanes: u64) -> Val {
        let name = self.fresh();
        self.line(&format!("{name} = {rhs}"));
        Val { text: name, dtype, lanes }
    }

    /// A constant in every lane.
    pub fn constant(&self, dtype: DType, bits: u64, lanes: u64) -> Val {
        let one = constant_text(dtype, bits);
        let scalar = scalar_type(dtype).unwrap_or("i8");
        let text = if lanes == 1 { one } else { format!("splat ({scalar} {one})") };
        Val { text, dtype, lanes }
    }

    /// `x` with this many lanes.
    pub fn widen(&mut self, x: &Val, lanes: u64) -> Val {
        if x.lanes == lanes {
            return x.clone();
        }
        let scalar = scalar_type(x.dtype).unwrap_or("i8");
        if !x.text.starts_with('%') {
            return Val { text: format!("splat ({scalar} {})", x.text), dtype: x.dtype, lanes };
        }
        let vector = value_type(x.dtype, lanes);
        let one = self.ins(&format!("insertelement {vector} poison, {scalar} {}, i64 0", x.text), x.dtype, lanes);
        self.ins(
            &format!("shufflevector {vector} {}, {vector} poison, <{lanes} x i32> zeroinitializer", one.text),
            x.dtype,
            lanes,
        )
    }

    fn stmts(&mut self, all: &[Stmt]) -> Result<()> {
        all.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.memo.clear();
        match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } => {
                let extent = self.kernel.vars[*var].to_string();
                self.counted(*var, "0", &extent, body)
            }
            Stmt::For { var, kind: LoopKind::Unroll, body } => {
                for i in 0..self.kernel.vars[*var] {
                    self.bindings[var.index()] = Binding::Constant(i as i64);
                    self.stmts(body)?;
                }
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::For { var, kind: LoopKind::Vector, body } => {
                if self.kernel.vars[*var] == 1 {
                    self.bindings[var.index()] = Binding::Constant(0);
                    return self.stmts(body);
                }
                self.bindings[var.index()] = Binding::Lane;
                self.lane = Some((*var, self.kernel.vars[*var]));
                self.stmts(body)?;
                self.lane = None;
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::Store { buf, index, value } => self.store(*buf, index, *value),
            Stmt::Set { reg, at, value } => {
                let value = self.eval(*value)?;
                let info = self.kernel.regs[*reg];
                let value = self.widen(&value, info.lanes);
                let slot = self.slot(*reg, at)?;
                self.line(&format!("store {} {}, ptr {slot}", value_type(info.dtype, info.lanes), value.text));
                Ok(())
            }
            Stmt::If { cond, body } => {
                let cond = self.eval(*cond)?;
                let (yes, no) = (self.label(), self.label());
                self.line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
                self.body += &format!("{yes}:\n");
                self.stmts(body)?;
                self.line(&format!("br label %{no}"));
                self.body += &format!("{no}:\n");
                Ok(())
            }
            Stmt::While { cond, body } => {
                let (head, yes, no) = (self.label(), self.label(), self.label());
                self.line(&format!("br label %{head}"));
                self.body += &format!("{head}:\n");
                let cond = self.eval(*cond)?;
                self.line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
                self.body += &format!("{yes}:\n");
                self.stmts(body)?;
                self.line(&format!("br label %{head}"));
                self.body += &format!("{no}:\n");
                Ok(())
            }
        }
    }

    fn counted(&mut self, var: VarId, begin: &str, end: &str, body: &[Stmt]) -> Result<()> {
        let (pre, head, inside, done) = (self.label(), self.label(), self.label(), self.label());
        let (iv, next) = (self.fresh(), self.fresh());
        let latch = self.label();
        self.line(&format!("br label %{pre}"));
        self.body += &format!("{pre}:\n");
        self.line(&format!("br label %{head}"));
        self.body += &format!("{head}:\n");
        self.line(&format!("{iv} = phi i64 [ {begin}, %{pre} ], [ {next}, %{latch} ]"));
        let more = self.ins(&format!("icmp slt i64 {iv}, {end}"), DType::Pred, 1);
        self.line(&format!("br i1 {}, label %{inside}, label %{done}", more.text));
        self.body += &format!("{inside}:\n");
        self.bindings[var.index()] = Binding::Name(iv.clone());
        self.stmts(body)?;
        self.bindings[var.index()] = Binding::Unbound;
        self.line(&format!("br label %{latch}"));
        self.body += &format!("{latch}:\n");
        self.line(&format!("{next} = add nuw nsw i64 {iv}, 1"));
        self.line(&format!("br label %{head}"));
        self.body += &format!("{done}:\n");
        self.memo.clear();
        Ok(())
    }

    fn slot(&mut self, reg: RegId, at: &Index) -> Result<String> {
        let (name, constant) = self.sum(at)?;
        if name.is_some() || constant < 0 || constant as u64 >= self.kernel.regs[reg].count {
            return Err(Error::internal("codegen", "a register's number is not a constant in range"));
        }
        Ok(format!("%r{}.{constant}", reg.0))
    }

    fn base(&mut self, buf: BufId) -> String {
        if let Some(name) = self.bases.get(&buf) {
            return name.clone();
        }
        let name = format!("%b{}", buf.0);
        let field = |slot: usize| {
            format!(
                "  {name}.s = getelementptr i8, ptr %closure, i64 {}\n  {name}.p = load ptr, ptr {name}.s\n",
                8 * slot
            )
        };
        self.base_text += &match self.program.buffers[buf].place {
            Place::Weights(at) => {
                format!("  {name} = getelementptr i8, ptr @{}_weights, i64 {at}\n", self.program.name)
            }
            Place::Workspace(at) => field(2) + &format!("  {name} = getelementptr i8, ptr {name}.p, i64 {at}\n"),
            Place::Arg(i) => {
                field(0)
                    + &format!(
                        "  {name}.q = getelementptr i8, ptr {name}.p, i64 {}\n  {name} = load ptr, ptr {name}.q\n",
                        8 * i
                    )
            }
            Place::Result(i) => {
                field(1)
                    + &format!(
                        "  {name}.q = getelementptr i8, ptr {name}.p, i64 {}\n  {name} = load ptr, ptr {name}.q\n",
                        8 * i
                    )
            }
        };
        self.bases.insert(buf, name.clone());
        name
    }

    /// The address of element `index`, lane 0.
    fn address(&mut self, buf: BufId, index: &Index) -> Result<String> {
        let size = self.program.buffers[buf].dtype.bytes() as i64;
        let base = self.base(buf);
        let (name, constant) = self.sum(&index.scale(size))?;
        let mut at = base;
        if let Some(name) = name {
            at = self.ins(&format!("getelementptr i8, ptr {at}, i64 {name}"), DType::U64, 1).text;
        }
        if constant != 0 {
            at = self.ins(&format!("getelementptr i8, ptr {at}, i64 {constant}"), DType::U64, 1).text;
        }
        Ok(at)
    }

    /// An index as a run-time part and a constant part; the lane variable counts as 0.
    fn sum(&mut self, index: &Index) -> Result<(Option<String>, i64)> {
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
                Atom::Div(x, n) => match self.whole(x)? {
                    Ok(i) => {
                        constant += i.div_euclid(*n) * c;
                        continue;
                    }
                    Err(name) => self.ins(&format!("udiv i64 {name}, {n}"), DType::S64, 1).text,
                },
                Atom::Rem(x, n) => match self.whole(x)? {
                    Ok(i) => {
                        constant += i.rem_euclid(*n) * c;
                        continue;
                    }
                    Err(name) => self.ins(&format!("urem i64 {name}, {n}"), DType::S64, 1).text,
                },
                Atom::Clamp(x, low, high) => match self.whole(x)? {
                    Ok(i) => {
                        constant += i.clamp(*low, *high) * c;
                        continue;
                    }
                    Err(name) => {
                        let up = self.ins(&format!("call i64 @llvm.smax.i64(i64 {name}, i64 {low})"), DType::S64, 1);
                        self.ins(&format!("call i64 @llvm.smin.i64(i64 {}, i64 {high})", up.text), DType::S64, 1).text
                    }
                },
                Atom::Value(e) => {
                    let value = self.eval(*e)?;
                    if value.lanes != 1 {
                        return Err(Error::internal("codegen", "an index differs from lane to lane"));
                    }
                    scalar::convert(self, &value, DType::S64)?.text
                }
            };
            let scaled = if *c == 1 { term } else { self.ins(&format!("mul nsw i64 {term}, {c}"), DType::S64, 1).text };
            total = Some(match total {
                None => scaled,
                Some(sum) => self.ins(&format!("add nsw i64 {sum}, {scaled}"), DType::S64, 1).text,
            });
        }
        Ok((total, constant))
    }

    /// The whole index: a constant, or a name.
    fn whole(&mut self, index: &Index) -> Result<Result<i64, String>> {
        let (name, constant) = self.sum(index)?;
        Ok(match name {
            None => Ok(constant),
            Some(name) if constant == 0 => Err(name),
            Some(name) => Err(self.ins(&format!("add nsw i64 {name}, {constant}"), DType::S64, 1).text),
        })
    }

    /// Whether an expression differs from lane to lane.
    fn varies(&self, id: ExprId) -> bool {
        let Some((lane, _)) = self.lane else { return false };
        match &self.kernel.exprs[id] {
            Expr::Const(..) | Expr::Fold(..) | Expr::Lane(..) => false,
            Expr::Load(_, x) | Expr::Number(x, _) | Expr::Within(x, _, _) => x.depends_on(lane, &|e| self.varies(e)),
            Expr::Op(_, args, _) => args.iter().any(|&a| self.varies(a)),
            Expr::Reg(r, _) => self.kernel.regs[*r].lanes > 1,
        }
    }

    fn coefficient(&self, index: &Index) -> Option<i64> {
        let Some((lane, _)) = self.lane else { return Some(0) };
        index.coefficient(lane, &|e| self.varies(e))
    }

    /// The value of an expression: one for all lanes, or one a lane.
    pub fn eval(&mut self, id: ExprId) -> Result<Val> {
        if let Some(v) = self.memo.get(&id) {
            return Ok(v.clone());
        }
        let kernel = self.kernel;
        let value = match &kernel.exprs[id] {
            Expr::Const(t, bits) => {
                self.type_of(*t, 1)?;
                self.constant(*t, *bits, 1)
            }
            Expr::Load(buf, index) => self.load(*buf, index)?,
            Expr::Op(op, args, dtype) => {
                let mut values = args.iter().map(|&a| self.eval(a)).collect::<Result<Vec<_>>>()?;
                let lanes = values.iter().map(|v| v.lanes).max().unwrap_or(1);
                for v in &mut values {
                    *v = self.widen(v, lanes);
                }
                scalar::emit(self, *op, &values, *dtype)?
            }
            Expr::Number(index, dtype) => {
                let number = self.number(index)?;
                scalar::convert(self, &number, *dtype)?
            }
            Expr::Within(index, low, high) => {
                let x = self.number(index)?;
                let ty = value_type(DType::S64, x.lanes);
                let low = self.constant(DType::S64, *low as u64, x.lanes).text;
                let high = self.constant(DType::S64, *high as u64, x.lanes).text;
                let above = self.ins(&format!("icmp sge {ty} {}, {low}", x.text), DType::Pred, x.lanes);
                let below = self.ins(&format!("icmp slt {ty} {}, {high}", x.text), DType::Pred, x.lanes);
                self.ins(
                    &format!("and {} {}, {}", value_type(DType::Pred, x.lanes), above.text, below.text),
                    DType::Pred,
                    x.lanes,
                )
            }
            Expr::Reg(reg, at) => {
                let info = kernel.regs[*reg];
                let slot = self.slot(*reg, at)?;
                self.ins(&format!("load {}, ptr {slot}", value_type(info.dtype, info.lanes)), info.dtype, info.lanes)
            }
            Expr::Lane(reg, at, lane) => {
                let info = kernel.regs[*reg];
                let slot = self.slot(*reg, at)?;
                let whole = self.ins(
                    &format!("load {}, ptr {slot}", value_type(info.dtype, info.lanes)),
                    info.dtype,
                    info.lanes,
                );
                self.lane_of(&whole, *lane)
            }
            Expr::Fold(op, reg, at) => self.fold(*op, *reg, at)?,
        };
        self.memo.insert(id, value.clone());
        Ok(value)
    }

    /// An index as `s64`, one a lane where it varies.
    fn number(&mut self, index: &Index) -> Result<Val> {
        let scalar = |x: Result<i64, String>| match x {
            Ok(i) => Val { text: i.to_string(), dtype: DType::S64, lanes: 1 },
            Err(name) => Val { text: name, dtype: DType::S64, lanes: 1 },
        };
        match (self.coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => Ok(scalar(self.whole(index)?)),
            (Some(c), Some((_, lanes))) => {
                let base = scalar(self.whole(index)?);
                let base = self.widen(&base, lanes);
                let steps: Vec<String> = (0..lanes as i64).map(|l| format!("i64 {}", l * c)).collect();
                Ok(self.ins(
                    &format!("add {} {}, <{}>", value_type(DType::S64, lanes), base.text, steps.join(", ")),
                    DType::S64,
                    lanes,
                ))
            }
            (None, Some(_)) => self.each_lane(DType::S64, |f| Ok(scalar(f.whole(index)?))),
        }
    }

    /// A vector made lane by lane; `make` sees the lane variable as a constant.
    fn each_lane(&mut self, dtype: DType, mut make: impl FnMut(&mut Self) -> Result<Val>) -> Result<Val> {
        let Some((var, lanes)) = self.lane.take() else { return make(self) };
        let memo = std::mem::take(&mut self.memo);
        let vector = self.type_of(dtype, lanes)?;
        let mut all = Val { text: "poison".to_string(), dtype, lanes };
        for l in 0..lanes {
            self.bindings[var.index()] = Binding::Constant(l as i64);
            self.memo.clear();
            let one = make(self)?;
            let ty = value_type(dtype, 1);
            all = self.ins(&format!("insertelement {vector} {}, {ty} {}, i64 {l}", all.text, one.text), dtype, lanes);
        }
        self.bindings[var.index()] = Binding::Lane;
        self.lane = Some((var, lanes));
        self.memo = memo;
        Ok(all)
    }

    fn load(&mut self, buf: BufId, index: &Index) -> Result<Val> {
        let dtype = self.program.buffers[buf].dtype;
        self.type_of(dtype, 1)?;
        match (self.coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => self.load_at(buf, index, 1),
            (Some(1), Some((_, lanes))) => self.load_at(buf, index, lanes),
            (_, Some(_)) => self.each_lane(dtype, |f| f.load_at(buf, index, 1)),
        }
    }

    fn load_at(&mut self, buf: BufId, index: &Index, lanes: u64) -> Result<Val> {
        let dtype = self.program.buffers[buf].dtype;
        let at = self.address(buf, index)?;
        let align = dtype.bytes();
        if dtype == DType::Pred {
            let byte = value_type(DType::U8, lanes);
            let raw = self.ins(&format!("load {byte}, ptr {at}, align 1"), DType::U8, lanes);
            let zero = self.constant(DType::U8, 0, lanes);
            return Ok(self.ins(&format!("icmp ne {byte} {}, {}", raw.text, zero.text), DType::Pred, lanes));
        }
        Ok(self.ins(&format!("load {}, ptr {at}, align {align}", value_type(dtype, lanes)), dtype, lanes))
    }

    fn store(&mut self, buf: BufId, index: &Index, value: ExprId) -> Result<()> {
        let value = self.eval(value)?;
        match (self.coefficient(index), self.lane) {
            (Some(1), Some((_, lanes))) => {
                let value = self.widen(&value, lanes);
                self.store_at(buf, index, &value)
            }
            (Some(0), _) | (_, None) if value.lanes == 1 => self.store_at(buf, index, &value),
            (_, Some((var, lanes))) => {
                self.lane = None;
                for l in 0..lanes {
                    self.bindings[var.index()] = Binding::Constant(l as i64);
                    self.memo.clear();
                    let one = self.lane_of(&value, l);
                    self.store_at(buf, index, &one)?;
                }
                self.bindings[var.index()] = Binding::Lane;
                self.lane = Some((var, lanes));
                Ok(())
            }
            (_, None) => Err(Error::internal("codegen", "a vector is stored outside a vector loop")),
        }
    }

    /// One lane of a value.
    fn lane_of(&mut self, value: &Val, lane: u64) -> Val {
        if value.lanes == 1 {
            return value.clone();
        }
        let ty = value_type(value.dtype, value.lanes);
        self.ins(&format!("extractelement {ty} {}, i64 {lane}", value.text), value.dtype, 1)
    }

    fn store_at(&mut self, buf: BufId, index: &Index, value: &Val) -> Result<()> {
        let at = self.address(buf, index)?;
        let mut value = value.clone();
        if value.dtype == DType::Pred {
            let (from, to) = (value_type(DType::Pred, value.lanes), value_type(DType::U8, value.lanes));
            value = self.ins(&format!("zext {from} {} to {to}", value.text), DType::U8, value.lanes);
        }
        let align = value.dtype.bytes();
        self.line(&format!("store {} {}, ptr {at}, align {align}", value_type(value.dtype, value.lanes), value.text));
        Ok(())
    }

    fn fold(&mut self, op: crate::scalar::ScalarOp, reg: RegId, at: &Index) -> Result<Val> {
        let info = self.kernel.regs[reg];
        let slot = self.slot(reg, at)?;
        let mut x =
            self.ins(&format!("load {}, ptr {slot}", value_type(info.dtype, info.lanes)), info.dtype, info.lanes);
        while x.lanes > 1 {
            let (ty, half) = (value_type(x.dtype, x.lanes), x.lanes / 2);
            let pick = |from: u64| {
                let lanes: Vec<String> = (from..from + half).map(|i| format!("i32 {i}")).collect();
                format!("shufflevector {ty} {}, {ty} poison, <{half} x i32> <{}>", x.text, lanes.join(", "))
            };
            let (low, high) = (pick(0), pick(half));
            let (dtype, single) = (x.dtype, half == 1);
            let mut parts = Vec::new();
            for text in [low, high] {
                let part = self.ins(&text, dtype, half);
                let part = if single {
                    self.ins(&format!("extractelement <1 x {}> {}, i64 0", value_type(dtype, 1), part.text), dtype, 1)
                } else {
                    part
                };
                parts.push(part);
            }
            x = scalar::emit(self, op, &parts, dtype)?;
        }
        Ok(x)
    }
}

/// The native code can't hold this element type yet.
pub fn unsupported(dtype: DType) -> Error {
    Error::user(
        Code::HloUnsupported,
        format!("native code has no arithmetic on {dtype} yet; pred, s8 to s64, u8 to u64, f32 and f64 are supported"),
    )
}
