//! Loops of a running fold.
use crate::hlo::CompId;
use crate::schedule::families::scan::recipe::Scan;
use crate::schedule::loops::prelude::*;
use crate::schedule::loops::vectors::{VectorRun, VectorWidth};

/// Operands and parameters of one scan.
struct ScanOperands<'i> {
    root: KernelRoot<'i>,
    comp: CompId,
    inputs: &'i [InstId],
    inits: &'i [InstId],
    scan: Scan,
}

/// The family of scans (running reductions).
pub const FAMILY: Family = Family {
    name: "scan",
    recipe: |_, request| Ok(request.as_scan().map(RecipeSetup::Scan)),
    emit: |s, root, setup| match setup {
        RecipeSetup::Scan(scan) => s.emit_scan(root, *scan),
        other => other.wrong_family_error(),
    },
};

impl<'a> Emitter<'a> {
    /// Emits a scan; the root is the anchor itself or its epilogue.
    pub(in crate::schedule) fn emit_scan(
        &mut self,
        root @ KernelRoot { id, anchor, .. }: KernelRoot<'_>,
        scan: Scan,
    ) -> Result<()> {
        let Op::ReduceWindow { comp, .. } = self.scope.comp[anchor].op else {
            return Err(unsupported_error(self.scope.comp, id, ""));
        };
        let operands = self.scope.comp[anchor].operands.clone();
        let (inputs, inits) = operands.split_at(operands.len() / 2);
        let running = ScanOperands { root, comp, inputs, inits, scan };
        let dims = self.scope.comp.array_shape(inputs[0]).dims.clone();
        if dims.contains(&0) {
            return Ok(());
        }
        let wide = scan.axis + 1 < dims.len();
        let lanes = if wide { self.vector_lanes(self.scope.comp.array_shape(inputs[0]).dtype) } else { 1 };
        let minor = if wide { dims.last().copied().unwrap_or(1) } else { 1 };
        for cut in (VectorWidth { lanes, masks: false }).split(minor) {
            self.scan_part(&running, wide, cut)?;
        }
        Ok(())
    }

    /// Emits the kernel that scans the lines of the run `cut` of the innermost dimension, a vector of lines at once; `wide` is false if
    /// that dimension is the scanned one and is not divided into runs.
    fn scan_part(&mut self, r: &ScanOperands, wide: bool, cut: VectorRun) -> Result<()> {
        let mut e = self.start_kernel(r.root.id);
        let dims = self.scope.comp.array_shape(r.inputs[0]).dims.clone();
        let held = r.inputs.iter().map(|&i| e.k.add_reg(self.scope.comp.array_shape(i).dtype, cut.lanes, 1));
        let regs: Vec<RegId> = held.collect();
        let (tile, lane) = (e.k.add_var(cut.blocks), e.k.add_var(cut.lanes));
        let mut vars = Vec::new();
        let mut line = Vec::new();
        for (d, &n) in dims.iter().enumerate() {
            if d == r.scan.axis {
                line.push(Index::default());
            } else if wide && d + 1 == dims.len() {
                line.push(cut.element_index(&Index::var(tile), lane));
            } else {
                vars.push(e.k.add_var(n));
                line.push(Index::var(vars[vars.len() - 1]));
            }
        }
        vars.push(tile);
        let mut body = Vec::new();
        for (&reg, &init) in regs.iter().zip(r.inits) {
            let value = self.emit_element(&mut e, init, &[])?;
            body.push(Stmt::set(reg, 0, value));
        }
        body.extend(self.emit_phases(&mut e, r, &regs, &line)?);
        e.k.flops = dims.iter().product();
        crate::schedule::loops::scalar_loops::set_nested_body(
            &mut e.k,
            &vars,
            vec![for_loop(lane, LoopKind::Vector, body)],
        );
        self.launch(e.k);
        Ok(())
    }

    /// Emits the loops along the scanned dimension of one line.
    fn emit_phases(
        &mut self,
        e: &mut KernelBuilder,
        r: &ScanOperands,
        regs: &[RegId],
        line: &[Index],
    ) -> Result<Vec<Stmt>> {
        let s = r.scan;
        let along = |i: &Index, n: i64| {
            let i = if s.backwards { i.scale(-1).offset(n - 1) } else { i.clone() };
            let mut at = line.to_vec();
            at[s.axis] = i;
            at
        };
        let mut body = Vec::new();
        let [before, silent, both, after] = s.step_counts();
        // Each phase: its length, the first element that it reads and the first result that it writes.
        let phases = [
            (before, None, Some(0)),
            (silent, Some(0), None),
            (both, Some(silent), Some(before)),
            (after, None, Some(before + both)),
        ];
        for (count, reads, writes) in phases {
            if count == 0 {
                continue;
            }
            let var = e.k.add_var(count as u64);
            let mut round = Vec::new();
            if let Some(from) = reads {
                let at = along(&Index::var(var).offset(from), s.inputs);
                round.extend(self.fold_step(e, r, regs, &at)?);
            }
            if let Some(from) = writes {
                let at = along(&Index::var(var).offset(from), s.outputs);
                let values: Vec<ExprId> = regs.iter().map(|&reg| e.k.read_reg(reg, 0)).collect();
                round.extend(self.store_results(e, r.root, &values, &at)?);
            }
            body.push(for_loop(var, LoopKind::Seq, round));
        }
        Ok(body)
    }

    /// Emits the combination of the registers with the elements at `at`.
    fn fold_step(
        &mut self,
        e: &mut KernelBuilder,
        r: &ScanOperands,
        regs: &[RegId],
        at: &[Index],
    ) -> Result<Vec<Stmt>> {
        let mut args: Vec<ExprId> = regs.iter().map(|&reg| e.k.read_reg(reg, 0)).collect();
        for &input in r.inputs {
            args.push(self.emit_element(e, input, at)?);
        }
        let results = self.inline_computation(e, r.comp, &args)?;
        Ok(assign_registers(&mut e.k, regs, &Index::constant(0), &results))
    }
}
