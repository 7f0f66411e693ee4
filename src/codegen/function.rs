//! One kernel as LLVM text: loops, index arithmetic, loads and stores, vectors.
use super::tiles::Shapes;
use super::value::{self, Val, value_type};
use super::{convert, idioms, lines, math, scalar};
use crate::diag::{Error, Result};
use crate::kernel::{self, Atom, BufId, Expr, ExprId, Index, Kernel, LoopKind, Place, Program, RegId, Stmt, VarId};
use crate::target::{PairSums, Target};
use crate::tensor::DType;
use crate::util::id_vec::Id;
use std::collections::HashMap;

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
    pub(super) kernel: &'a Kernel,
    /// Facts of the machine.
    pub target: &'a Target,
    allocas: String,
    body: String,
    /// The lines of statements, where instructions say of which they are.
    lines: Option<HashMap<*const Stmt, u32>>,
    /// The line of the statement that is being written.
    at: u32,
    next: usize,
    bindings: Vec<Binding>,
    pub(super) lane: Option<(VarId, u64)>,
    /// In a masked loop, how many of the lanes are elements.
    pub(super) valid: Option<u64>,
    memo: HashMap<ExprId, Val>,
    bases: HashMap<BufId, String>,
    base_text: String,
    slots: Vec<BufId>,
    /// The shapes that tiles have, each by its number.
    pub(super) shapes: Vec<Shapes>,
}

/// A kernel as a function that finds its memory in the closure, so that kernels of one form can share it.
pub struct Emitted {
    /// LLVM's text from the parameters on: all but the name.
    pub text: String,
    /// Whose address is in which word of the closure, from the second word on.
    pub slots: Vec<BufId>,
}

impl<'a> Function<'a> {
    /// Kernel `kernel` as a function with the attributes of number `group`; `marked` instructions say of which line they are.
    pub fn emit(
        program: &'a Program,
        kernel: &'a Kernel,
        group: usize,
        marked: bool,
        target: &'a Target,
    ) -> Result<Emitted> {
        let mut f = Function {
            program,
            kernel,
            target,
            allocas: String::new(),
            body: String::new(),
            lines: marked.then(|| kernel::lines(kernel)),
            at: 1,
            next: 0,
            bindings: vec![Binding::Unbound; kernel.vars.len()],
            lane: None,
            valid: None,
            memo: HashMap::new(),
            bases: HashMap::new(),
            base_text: String::new(),
            slots: Vec::new(),
            shapes: Vec::new(),
        };
        f.registers();
        if let Some([first, last]) = kernel.range {
            f.allocas += "  %last = add i64 %end, -1\n";
            f.bindings[first.index()] = Binding::Name("%begin".to_string());
            f.bindings[last.index()] = Binding::Name("%last".to_string());
        }
        match kernel.chunks {
            Some(var) => f.counted(var, "%begin", "%end", &kernel.body)?,
            None => f.stmts(&kernel.body)?,
        }
        if !f.shapes.is_empty() {
            f.allocas += "  %shapes = alloca [64 x i8], align 64\n  %tiles = alloca i32\n  store i32 0, ptr %tiles\n";
            // what tiles hold would be saved wherever the system takes this thread from its processor
            f.line("call void @llvm.x86.tilerelease()");
        }
        let own = if marked { format!(" {}", lines::mark(0)) } else { String::new() };
        let text = format!(
            "(ptr %closure, i64 %begin, i64 %end) #{group}{own} {{\nentry:\n{}{}  br label %start\nstart:\n{}  ret void\n}}\n",
            f.allocas, f.base_text, f.body
        );
        Ok(Emitted { text, slots: f.slots })
    }

    fn registers(&mut self) {
        for (id, reg) in self.kernel.regs.iter() {
            for at in 0..reg.count {
                self.allocas += &format!("  %r{}.{at} = alloca {}\n", id.0, value_type(reg.dtype, reg.lanes));
            }
        }
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%t{}", self.next)
    }

    pub(super) fn label(&mut self) -> String {
        self.next += 1;
        format!("l{}", self.next)
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, label: &str) {
        self.body += &format!("{label}:\n");
    }

    /// The type of a buffer's elements.
    pub(super) fn dtype_of(&self, buf: BufId) -> DType {
        self.program.buffers[buf].dtype
    }

    pub(super) fn line(&mut self, text: &str) {
        self.body += "  ";
        self.body += text;
        if self.lines.is_some() {
            self.body += ", ";
            self.body += &lines::mark(self.at);
        }
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
        value::constant(dtype, bits, lanes)
    }

    /// The real and the imaginary part of a complex value.
    pub fn parts(&mut self, x: &Val) -> (Val, Val) {
        let (ty, part) = (x.ty(), x.dtype.real_part());
        let re = self.ins(&format!("extractvalue {ty} {}, 0", x.text), part, x.lanes);
        let im = self.ins(&format!("extractvalue {ty} {}, 1", x.text), part, x.lanes);
        (re, im)
    }

    /// A complex value of its parts.
    pub fn join(&mut self, re: &Val, im: &Val) -> Val {
        let dtype = if re.dtype == DType::F64 { DType::C128 } else { DType::C64 };
        let (ty, part) = (value_type(dtype, re.lanes), re.ty());
        let half = self.ins(&format!("insertvalue {ty} poison, {part} {}, 0", re.text), dtype, re.lanes);
        self.ins(&format!("insertvalue {ty} {}, {part} {}, 1", half.text, im.text), dtype, re.lanes)
    }

    /// What `make` does to values that are not complex, done to both parts of those that are.
    fn by_part(&mut self, all: &[Val], make: &mut dyn FnMut(&mut Self, &[Val]) -> Val) -> Val {
        if !all.iter().any(|v| v.dtype.is_complex()) {
            return make(self, all);
        }
        let (re, im): (Vec<Val>, Vec<Val>) = all.iter().map(|v| self.parts(v)).unzip();
        let (re, im) = (make(self, &re), make(self, &im));
        self.join(&re, &im)
    }

    /// `x` with this many lanes.
    pub fn widen(&mut self, x: &Val, lanes: u64) -> Val {
        if x.lanes == lanes {
            return x.clone();
        }
        self.by_part(std::slice::from_ref(x), &mut |f, x| {
            let (x, dtype) = (&x[0], x[0].dtype);
            if x.is_constant() {
                return Val { text: format!("splat ({} {})", x.ty(), x.text), dtype, lanes };
            }
            let vector = value_type(dtype, lanes);
            let one = f.ins(&format!("insertelement {vector} poison, {} {}, i64 0", x.ty(), x.text), dtype, lanes);
            let zeros = format!("<{lanes} x i32> zeroinitializer");
            f.ins(&format!("shufflevector {vector} {}, {vector} poison, {zeros}", one.text), dtype, lanes)
        })
    }

    /// The lanes `picks` of a vector.
    pub fn shuffle(&mut self, x: &Val, picks: &[u64]) -> Val {
        self.by_part(std::slice::from_ref(x), &mut |f, x| {
            let (x, ty, lanes) = (&x[0], x[0].ty(), picks.len() as u64);
            if let [lane] = picks {
                return f.ins(&format!("extractelement {ty} {}, i64 {lane}", x.text), x.dtype, 1);
            }
            let mask: Vec<String> = picks.iter().map(|i| format!("i32 {i}")).collect();
            let mask = format!("<{lanes} x i32> <{}>", mask.join(", "));
            f.ins(&format!("shufflevector {ty} {}, {ty} poison, {mask}", x.text), x.dtype, lanes)
        })
    }

    /// A vector of single values.
    pub fn gather(&mut self, lanes: &[Val]) -> Val {
        if let [one] = lanes {
            return one.clone();
        }
        self.by_part(lanes, &mut |f, lanes| {
            let (dtype, count) = (lanes[0].dtype, lanes.len() as u64);
            let vector = value_type(dtype, count);
            let mut all = Val { text: "poison".to_string(), dtype, lanes: count };
            for (i, one) in lanes.iter().enumerate() {
                let rhs = format!("insertelement {vector} {}, {} {}, i64 {i}", all.text, one.ty(), one.text);
                all = f.ins(&rhs, dtype, count);
            }
            all
        })
    }

    /// The address of a copy of a value on the stack.
    pub fn in_memory(&mut self, v: &Val) -> String {
        let slot = self.fresh();
        self.allocas += &format!("  {slot} = alloca {}\n", v.ty());
        self.line(&format!("store {} {}, ptr {slot}", v.ty(), v.text));
        slot
    }

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
            let mixed = scalar::select(self, cond, new, old);
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

    fn stmts(&mut self, all: &[Stmt]) -> Result<()> {
        all.iter().try_for_each(|s| {
            let around = self.at;
            let own = self.lines.as_ref().and_then(|lines| lines.get(&std::ptr::from_ref(s)));
            self.at = own.copied().unwrap_or(around);
            let done = self.stmt(s);
            self.at = around;
            done
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.memo.clear();
        match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } => self.rounds(*var, &mut |f| f.stmts(body)),
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
            Stmt::For { var, kind: LoopKind::Masked(valid), body } => {
                self.bindings[var.index()] = Binding::Lane;
                self.lane = Some((*var, self.kernel.vars[*var]));
                self.valid = Some(*valid);
                self.stmts(body)?;
                (self.lane, self.valid) = (None, None);
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::Store { buf, index, value } => self.store(*buf, index, *value),
            Stmt::Prefetch { buf, index } => {
                let at = self.address(*buf, index)?;
                self.line(&format!("call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)"));
                Ok(())
            }
            Stmt::Release => {
                let all = self.target.vector_names().map(|name| format!("~{{{name}}}")).collect::<Vec<_>>();
                self.line(&format!("call void asm sideeffect \"\", \"{}\"()", all.join(",")));
                Ok(())
            }
            Stmt::Tiles(sums) => self.tiles(sums),
            Stmt::Set { reg, at, value } => {
                let value = self.eval(*value)?;
                let info = self.kernel.regs[*reg];
                let value = self.widen(&value, info.lanes);
                let slot = self.slot(*reg, at)?;
                self.line(&format!("store {} {}, ptr {slot}", value.ty(), value.text));
                Ok(())
            }
            Stmt::Let { var, value, body } => {
                self.bindings[var.index()] = match self.whole(value)? {
                    Ok(value) => Binding::Constant(value),
                    Err(name) => Binding::Name(name),
                };
                self.stmts(body)?;
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::If { cond, body } => {
                let cond = self.eval(*cond)?;
                let (yes, no) = (self.label(), self.label());
                self.line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
                self.begin(&yes);
                self.stmts(body)?;
                self.line(&format!("br label %{no}"));
                self.begin(&no);
                Ok(())
            }
            Stmt::While { cond, body } => {
                let (head, yes, no) = (self.label(), self.label(), self.label());
                self.line(&format!("br label %{head}"));
                self.begin(&head);
                let cond = self.eval(*cond)?;
                self.line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
                self.begin(&yes);
                self.stmts(body)?;
                self.line(&format!("br label %{head}"));
                self.begin(&no);
                Ok(())
            }
        }
    }

    /// The rounds of a loop, one after another.
    pub(super) fn rounds(&mut self, var: VarId, body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        match self.kernel.vars[var] {
            0 => Ok(()),
            1 => {
                self.bindings[var.index()] = Binding::Constant(0);
                body(self)?;
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            extent => self.repeated(var, extent, body),
        }
    }

    /// A loop of at least one round: the test stands at its end, so that sums stay in registers from round to round.
    fn repeated(&mut self, var: VarId, extent: u64, body: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let (pre, inside, latch, done) = (self.label(), self.label(), self.label(), self.label());
        let (iv, next) = (self.fresh(), self.fresh());
        self.line(&format!("br label %{pre}"));
        self.begin(&pre);
        self.line(&format!("br label %{inside}"));
        self.begin(&inside);
        self.line(&format!("{iv} = phi i64 [ 0, %{pre} ], [ {next}, %{latch} ]"));
        self.bindings[var.index()] = Binding::Name(iv.clone());
        body(self)?;
        self.bindings[var.index()] = Binding::Unbound;
        self.line(&format!("br label %{latch}"));
        self.begin(&latch);
        self.line(&format!("{next} = add nuw nsw i64 {iv}, 1"));
        let more = self.ins(&format!("icmp slt i64 {next}, {extent}"), DType::Pred, 1);
        self.line(&format!("br i1 {}, label %{inside}, label %{done}", more.text));
        self.begin(&done);
        self.memo.clear();
        Ok(())
    }

    /// The loop over the chunks, which may be none.
    fn counted(&mut self, var: VarId, begin: &str, end: &str, body: &[Stmt]) -> Result<()> {
        let (pre, head, inside, done) = (self.label(), self.label(), self.label(), self.label());
        let (iv, next) = (self.fresh(), self.fresh());
        let latch = self.label();
        self.line(&format!("br label %{pre}"));
        self.begin(&pre);
        self.line(&format!("br label %{head}"));
        self.begin(&head);
        self.line(&format!("{iv} = phi i64 [ {begin}, %{pre} ], [ {next}, %{latch} ]"));
        let more = self.ins(&format!("icmp slt i64 {iv}, {end}"), DType::Pred, 1);
        self.line(&format!("br i1 {}, label %{inside}, label %{done}", more.text));
        self.begin(&inside);
        self.bindings[var.index()] = Binding::Name(iv.clone());
        self.stmts(body)?;
        self.bindings[var.index()] = Binding::Unbound;
        self.line(&format!("br label %{latch}"));
        self.begin(&latch);
        self.line(&format!("{next} = add nuw nsw i64 {iv}, 1"));
        self.line(&format!("br label %{head}"));
        self.begin(&done);
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
        let name = match self.program.buffers[buf].place {
            Place::Stack => {
                let bytes = self.program.buffers[buf].bytes();
                let name = format!("%s{}", self.bases.len());
                self.base_text += &format!("  {name} = alloca [{} x i8], align 64\n", bytes.max(1));
                name
            }
            // LLVM must not know what memory this is. Of constants it would keep what only the end of a loop's body needs,
            // such as a bias, in vector registers all the time, and move sums out to the stack.
            Place::Weights(_) | Place::State(_) | Place::Workspace(_) | Place::Arg(_) | Place::Result(_) => {
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

    /// The address of element `index`, lane 0.
    pub(super) fn address(&mut self, buf: BufId, index: &Index) -> Result<String> {
        let size = self.dtype_of(buf).bytes() as i64;
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
                    convert::convert(self, &value, DType::S64).text
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
        self.lane.is_some_and(|(lane, _)| self.kernel.varies(id, lane))
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
            Expr::Const(t, bits) => self.constant(*t, *bits, 1),
            Expr::Load(buf, index) => self.load(*buf, index)?,
            Expr::Pair(buf, index) => self.pair(*buf, index)?,
            Expr::PairSum { sums, x, y, z } => {
                let values = [*x, *y, *z].map(|a| self.eval(a));
                let [x, y, z] = values;
                self.pair_sum(*sums, &x?, &y?, &z?)?
            }
            Expr::Op(op, args, _) => {
                if let Some((idiom, x)) = idioms::shorter(kernel, math::is_table(self), *op, args) {
                    let x = self.eval(x)?;
                    let value = idiom(self, &x);
                    self.memo.insert(id, value.clone());
                    return Ok(value);
                }
                let mut values = args.iter().map(|&a| self.eval(a)).collect::<Result<Vec<_>>>()?;
                let lanes = values.iter().map(|v| v.lanes).max().unwrap_or(1);
                for v in &mut values {
                    *v = self.widen(v, lanes);
                }
                scalar::emit(self, *op, &values)?
            }
            Expr::Number(index, dtype) => {
                let number = self.number(index)?;
                convert::convert(self, &number, *dtype)
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
            Expr::Lanes(reg, at, first, count) => {
                let info = kernel.regs[*reg];
                let slot = self.slot(*reg, at)?;
                let ty = value_type(info.dtype, info.lanes);
                let whole = self.ins(&format!("load {ty}, ptr {slot}"), info.dtype, info.lanes);
                let picks: Vec<u64> = (*first..first + count).collect();
                if whole.lanes == 1 { whole } else { self.shuffle(&whole, &picks) }
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
            (None, Some(_)) => self.each_lane(|f| Ok(scalar(f.whole(index)?))),
        }
    }

    /// A vector made lane by lane; `make` sees the lane variable as a constant.
    fn each_lane(&mut self, mut make: impl FnMut(&mut Self) -> Result<Val>) -> Result<Val> {
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
        Ok(self.gather(&all))
    }

    fn load(&mut self, buf: BufId, index: &Index) -> Result<Val> {
        match (self.coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => self.load_at(buf, index, 1),
            (Some(1), Some((_, lanes))) => self.load_at(buf, index, lanes),
            (_, Some((lane, lanes))) => match self.runs(index, lane).filter(|(run, _)| lanes.is_multiple_of(*run)) {
                Some((run, first)) => {
                    let each = self.load_at(buf, &first, lanes / run)?;
                    let picks: Vec<u64> = (0..lanes).map(|l| l / run).collect();
                    Ok(if each.lanes == 1 { each } else { self.shuffle(&each, &picks) })
                }
                None => self.each_lane(|f| f.load_at(buf, index, 1)),
            },
        }
    }

    /// How many lanes side by side have the same index, where the next ones have the next; and the index of the first.
    fn runs(&self, index: &Index, lane: VarId) -> Option<(u64, Index)> {
        let differs = |atom: &Atom| Index::atom(atom.clone()).depends_on(lane, &|e| self.varies(e));
        let (of_lane, rest): (Vec<_>, Vec<_>) = index.terms.iter().cloned().partition(|(atom, _)| differs(atom));
        let [(Atom::Div(of, run), 1)] = &of_lane[..] else { return None };
        let alone = self.valid.is_none() && **of == Index::var(lane);
        alone.then_some((*run as u64, Index { terms: rest, constant: index.constant }))
    }

    /// Two neighbouring elements of 16 bits: the same for all lanes, or pair after pair.
    fn pair(&mut self, buf: BufId, index: &Index) -> Result<Val> {
        let lanes = match (self.coefficient(index), self.lane) {
            (Some(0), _) | (_, None) => 1,
            (Some(2), Some((_, lanes))) if self.valid.is_none() => lanes,
            _ => return Err(Error::internal("codegen", "pairs do not lie side by side")),
        };
        let at = self.address(buf, index)?;
        Ok(self.ins(&format!("load {}, ptr {at}, align 2", value_type(DType::U32, lanes)), DType::U32, lanes))
    }

    /// [`Expr::PairSum`] by the target's instruction.
    fn pair_sum(&mut self, sums: PairSums, x: &Val, y: &Val, z: &Val) -> Result<Val> {
        let lanes = x.lanes.max(y.lanes).max(z.lanes);
        let callee = match (sums, lanes) {
            (PairSums::Avx512Bf16, 4 | 8 | 16) => format!("@llvm.x86.avx512bf16.dpbf16ps.{}", 32 * lanes),
            (PairSums::Bfdot, 2 | 4) => format!("@llvm.aarch64.neon.bfdot.v{lanes}f32.v{}bf16", 2 * lanes),
            _ => return Err(Error::internal("codegen", format!("the target has no sums of {lanes} pairs"))),
        };
        let ty = format!("<{} x bfloat>", 2 * lanes);
        let [x, y] = [x, y].map(|pairs| {
            let pairs = self.widen(pairs, lanes);
            self.ins(&format!("bitcast {} {} to {ty}", pairs.ty(), pairs.text), DType::BF16, 2 * lanes).text
        });
        let z = self.widen(z, lanes);
        let sum = format!("call {} {callee}({} {}", z.ty(), z.ty(), z.text);
        Ok(self.ins(&format!("{sum}, {ty} {x}, {ty} {y})"), DType::F32, lanes))
    }

    fn load_at(&mut self, buf: BufId, index: &Index, lanes: u64) -> Result<Val> {
        let dtype = self.dtype_of(buf);
        let at = self.address(buf, index)?;
        if dtype.is_complex() {
            let part = dtype.real_part();
            let pairs = self.load_raw(&at, part, part.bytes(), (lanes, 2));
            let pick = |odd: u64| (0..lanes).map(|i| 2 * i + odd).collect::<Vec<_>>();
            let (re, im) = (self.shuffle(&pairs, &pick(0)), self.shuffle(&pairs, &pick(1)));
            return Ok(self.join(&re, &im));
        }
        let stored = stored_as(dtype);
        let raw = self.load_raw(&at, stored, dtype.bytes(), (lanes, 1));
        if dtype == DType::Pred {
            let zero = self.constant(stored, 0, lanes);
            return Ok(self.ins(&format!("icmp ne {} {}, {}", raw.ty(), raw.text, zero.text), dtype, lanes));
        }
        if stored == dtype {
            return Ok(raw);
        }
        Ok(self.ins(&format!("trunc {} {} to {}", raw.ty(), raw.text, value_type(dtype, lanes)), dtype, lanes))
    }

    fn store(&mut self, buf: BufId, index: &Index, value: ExprId) -> Result<()> {
        let (keeps, value) = (self.keeps(buf, value), self.eval(value)?);
        let value = if keeps { self.frozen(&value) } else { value };
        match (self.coefficient(index), self.lane) {
            (Some(1), Some((_, lanes))) => {
                let value = self.widen(&value, lanes);
                self.store_at(buf, index, &value)
            }
            (Some(0), _) | (_, None) if value.lanes == 1 => self.store_at(buf, index, &value),
            (_, Some((var, lanes))) => {
                self.lane = None;
                for l in 0..self.valid.unwrap_or(lanes) {
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
    pub fn lane_of(&mut self, value: &Val, lane: u64) -> Val {
        if value.lanes == 1 { value.clone() } else { self.shuffle(value, &[lane]) }
    }

    fn store_at(&mut self, buf: BufId, index: &Index, value: &Val) -> Result<()> {
        let at = self.address(buf, index)?;
        let (dtype, lanes) = (value.dtype, value.lanes);
        if dtype.is_complex() {
            let (re, im) = self.parts(value);
            let pairs = if lanes == 1 {
                self.gather(&[re, im])
            } else {
                let mask: Vec<String> = (0..2 * lanes).map(|i| format!("i32 {}", i / 2 + i % 2 * lanes)).collect();
                let mask = format!("<{} x i32> <{}>", 2 * lanes, mask.join(", "));
                let rhs = format!("shufflevector {} {}, {} {}, {mask}", re.ty(), re.text, im.ty(), im.text);
                self.ins(&rhs, re.dtype, 2 * lanes)
            };
            self.store_raw(&at, &pairs, pairs.dtype.bytes(), (lanes, 2));
            return Ok(());
        }
        let stored = stored_as(dtype);
        let mut value = value.clone();
        if stored != dtype {
            let extend = if dtype.is_signed() { "sext" } else { "zext" };
            let rhs = format!("{extend} {} {} to {}", value.ty(), value.text, value_type(stored, lanes));
            value = self.ins(&rhs, stored, lanes);
        }
        self.store_raw(&at, &value, dtype.bytes(), (lanes, 1));
        Ok(())
    }

    fn fold(&mut self, op: crate::scalar::ScalarOp, reg: RegId, at: &Index) -> Result<Val> {
        let info = self.kernel.regs[reg];
        let slot = self.slot(reg, at)?;
        let ty = value_type(info.dtype, info.lanes);
        let mut x = self.ins(&format!("load {ty}, ptr {slot}"), info.dtype, info.lanes);
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

/// The type of memory that holds an element: a byte for those below it.
fn stored_as(dtype: DType) -> DType {
    if dtype == DType::Pred || dtype.bits() < 8 { DType::U8 } else { dtype }
}
