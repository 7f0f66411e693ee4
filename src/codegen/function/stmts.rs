//! Statements: loops, conditions, what they set and store.
use super::{Binding, FunctionEmitter};
use crate::diag::Result;
use crate::kernel::{ExprId, LoopKind, Stmt, VarId};
use crate::tensor::DType;
use crate::util::id_vec::Id;

impl FunctionEmitter<'_> {
    pub(super) fn stmts(&mut self, all: &[Stmt]) -> Result<()> {
        all.iter().try_for_each(|s| {
            let around = self.at;
            let own = self.lines.as_ref().and_then(|lines| lines.get(&std::ptr::from_ref(s)));
            self.at = own.copied().unwrap_or(around);
            let done = self.stmt(s);
            self.at = around;
            done
        })
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.memo.clear();
        match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } => self.emit_iterations(*var, &mut |f| f.stmts(body)),
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
                self.lanes(*var, body)
            }
            Stmt::For { var, kind: LoopKind::Masked(valid), body } => {
                self.valid = Some(*valid);
                self.lanes(*var, body)?;
                self.valid = None;
                Ok(())
            }
            Stmt::Store { buf, index, value } => self.store(*buf, index, *value),
            Stmt::Prefetch { buf, index } => {
                let at = self.address(*buf, index)?;
                self.line(&format!("call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)"));
                Ok(())
            }
            Stmt::Release => {
                let all = self.target.vector_register_names().map(|name| format!("~{{{name}}}")).collect::<Vec<_>>();
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
                self.bindings[var.index()] = match self.element_offset(value)? {
                    Ok(value) => Binding::Constant(value),
                    Err(name) => Binding::Name(name),
                };
                self.stmts(body)?;
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::If { cond, body } => {
                let (yes, no) = (self.label(), self.label());
                self.branch(*cond, &yes, &no)?;
                self.stmts(body)?;
                self.line(&format!("br label %{no}"));
                self.begin(&no);
                Ok(())
            }
            Stmt::While { cond, body } => {
                let (head, yes, no) = (self.label(), self.label(), self.label());
                self.line(&format!("br label %{head}"));
                self.begin(&head);
                self.branch(*cond, &yes, &no)?;
                self.stmts(body)?;
                self.line(&format!("br label %{head}"));
                self.begin(&no);
                Ok(())
            }
        }
    }

    /// A branch to block `yes` if a condition holds, else to `no`; `yes` begins behind it.
    fn branch(&mut self, cond: ExprId, yes: &str, no: &str) -> Result<()> {
        let cond = self.eval(cond)?;
        self.line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
        self.begin(yes);
        Ok(())
    }

    /// The body of a vector loop, its variable being the lane.
    fn lanes(&mut self, var: VarId, body: &[Stmt]) -> Result<()> {
        self.bindings[var.index()] = Binding::Lane;
        self.lane = Some((var, self.kernel.vars[var]));
        self.stmts(body)?;
        self.lane = None;
        self.bindings[var.index()] = Binding::Unbound;
        Ok(())
    }

    /// Emits the iterations of a loop, one after another.
    pub(in crate::codegen) fn emit_iterations(
        &mut self,
        var: VarId,
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
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

    /// Emits a loop of at least one iteration: the test is at its end, so that sums stay in registers between iterations.
    pub(super) fn repeated(
        &mut self,
        var: VarId,
        extent: u64,
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
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

    /// Emits the loop over the chunks, which may have none.
    pub(super) fn emit_chunk_loop(&mut self, var: VarId, begin: &str, end: &str, body: &[Stmt]) -> Result<()> {
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
}
