//! Statements: loops, conditions, what they set and store.
use super::{Binding, FunctionEmitter};
use crate::diag::Result;
use crate::kernel::{ExprId, LoopKind, Stmt, VarId};
use crate::tensor::DType;
use crate::util::id_vec::Id;

impl FunctionEmitter<'_> {
    pub(super) fn emit_stmts(&mut self, all: &[Stmt]) -> Result<()> {
        all.iter().try_for_each(|s| {
            let around = self.at;
            let own = self.lines.as_ref().and_then(|lines| lines.get(&std::ptr::from_ref(s)));
            self.at = own.copied().unwrap_or(around);
            let done = self.emit_stmt(s);
            self.at = around;
            done
        })
    }

    pub(super) fn emit_stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.memo.clear();
        match stmt {
            Stmt::For { var, kind: LoopKind::Seq, body } => self.emit_iterations(*var, &mut |f| f.emit_stmts(body)),
            Stmt::For { var, kind: LoopKind::Unroll, body } => {
                for i in 0..self.kernel.vars[*var] {
                    self.bindings[var.index()] = Binding::Constant(i as i64);
                    self.emit_stmts(body)?;
                }
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::For { var, kind: LoopKind::Vector, body } => {
                if self.kernel.vars[*var] == 1 {
                    self.bindings[var.index()] = Binding::Constant(0);
                    return self.emit_stmts(body);
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
                self.push_line(&format!("call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)"));
                Ok(())
            }
            Stmt::Release => {
                let all = self.target.vector_register_names().map(|name| format!("~{{{name}}}")).collect::<Vec<_>>();
                self.push_line(&format!("call void asm sideeffect \"\", \"{}\"()", all.join(",")));
                Ok(())
            }
            Stmt::Tiles(sums) => self.emit_tile_sums(sums),
            Stmt::Set { reg, at, value } => {
                let value = self.eval(*value)?;
                let info = self.kernel.regs[*reg];
                let value = self.broadcast(&value, info.lanes);
                let slot = self.register_address(*reg, at)?;
                self.push_line(&format!("store {} {}, ptr {slot}", value.ty(), value.text));
                Ok(())
            }
            Stmt::Let { var, value, body } => {
                self.bindings[var.index()] = match self.element_offset(value)? {
                    Ok(value) => Binding::Constant(value),
                    Err(name) => Binding::Name(name),
                };
                self.emit_stmts(body)?;
                self.bindings[var.index()] = Binding::Unbound;
                Ok(())
            }
            Stmt::If { cond, body } => {
                let (yes, no) = (self.fresh_label(), self.fresh_label());
                self.branch(*cond, &yes, &no)?;
                self.emit_branch(|f| f.emit_stmts(body))?;
                self.push_line(&format!("br label %{no}"));
                self.begin_block(&no);
                Ok(())
            }
            Stmt::While { cond, body } => {
                let (head, yes, no) = (self.fresh_label(), self.fresh_label(), self.fresh_label());
                self.push_line(&format!("br label %{head}"));
                self.begin_block(&head);
                self.branch(*cond, &yes, &no)?;
                self.emit_branch(|f| f.emit_stmts(body))?;
                self.push_line(&format!("br label %{head}"));
                self.begin_block(&no);
                Ok(())
            }
        }
    }

    /// Emits a branch to block `yes` if a condition holds, else to `no`, and begins block `yes`.
    fn branch(&mut self, cond: ExprId, yes: &str, no: &str) -> Result<()> {
        let cond = self.eval(cond)?;
        self.push_line(&format!("br i1 {}, label %{yes}, label %{no}", cond.text));
        self.begin_block(yes);
        Ok(())
    }

    /// Emits the body of a vector loop, whose variable is the lane number.
    fn lanes(&mut self, var: VarId, body: &[Stmt]) -> Result<()> {
        self.bindings[var.index()] = Binding::Lane;
        self.lane = Some((var, self.kernel.vars[var]));
        self.emit_stmts(body)?;
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
            extent => self.emit_counted_loop(var, extent, body),
        }
    }

    /// Emits a loop of at least one iteration: the test is at its end, so that sums stay in registers between iterations.
    pub(super) fn emit_counted_loop(
        &mut self,
        var: VarId,
        extent: u64,
        body: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (pre, inside, latch, done) =
            (self.fresh_label(), self.fresh_label(), self.fresh_label(), self.fresh_label());
        let (iv, next) = (self.fresh(), self.fresh());
        self.push_line(&format!("br label %{pre}"));
        self.begin_block(&pre);
        self.push_line(&format!("br label %{inside}"));
        self.begin_block(&inside);
        self.push_line(&format!("{iv} = phi i64 [ 0, %{pre} ], [ {next}, %{latch} ]"));
        self.bindings[var.index()] = Binding::Name(iv.clone());
        self.emit_branch(body)?;
        self.bindings[var.index()] = Binding::Unbound;
        self.push_line(&format!("br label %{latch}"));
        self.begin_block(&latch);
        self.push_line(&format!("{next} = add nuw nsw i64 {iv}, 1"));
        let more = self.push_instruction(&format!("icmp slt i64 {next}, {extent}"), DType::Pred, 1);
        self.push_line(&format!("br i1 {}, label %{inside}, label %{done}", more.text));
        self.begin_block(&done);
        self.memo.clear();
        Ok(())
    }

    /// Emits the loop over the chunks, which may have none.
    pub(super) fn emit_chunk_loop(&mut self, var: VarId, begin: &str, end: &str, body: &[Stmt]) -> Result<()> {
        let (pre, head, inside, done) =
            (self.fresh_label(), self.fresh_label(), self.fresh_label(), self.fresh_label());
        let (iv, next) = (self.fresh(), self.fresh());
        let latch = self.fresh_label();
        self.push_line(&format!("br label %{pre}"));
        self.begin_block(&pre);
        self.push_line(&format!("br label %{head}"));
        self.begin_block(&head);
        self.push_line(&format!("{iv} = phi i64 [ {begin}, %{pre} ], [ {next}, %{latch} ]"));
        let more = self.push_instruction(&format!("icmp slt i64 {iv}, {end}"), DType::Pred, 1);
        self.push_line(&format!("br i1 {}, label %{inside}, label %{done}", more.text));
        self.begin_block(&inside);
        self.bindings[var.index()] = Binding::Name(iv.clone());
        self.emit_branch(|f| f.emit_stmts(body))?;
        self.bindings[var.index()] = Binding::Unbound;
        self.push_line(&format!("br label %{latch}"));
        self.begin_block(&latch);
        self.push_line(&format!("{next} = add nuw nsw i64 {iv}, 1"));
        self.push_line(&format!("br label %{head}"));
        self.begin_block(&done);
        self.memo.clear();
        Ok(())
    }
}
