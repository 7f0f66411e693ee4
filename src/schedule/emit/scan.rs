//! Windows that always begin at the first element (or end at the last) as one running fold: each element is read once,
//! where folding every window anew reads it as often as windows hold it.
use super::element::Elements;
use super::{each, label};
use crate::diag::Result;
use crate::hlo::{CompId, InstId, Op};
use crate::kernel::{Expr, ExprId, Index, LoopKind, RegId, Stmt};
use crate::schedule::emit::{Emitter, Value, refuse};
use crate::schedule::family::{Family, Root};
use crate::schedule::plan::fuse::forward;
use crate::schedule::plan::recipe::Setup;
use crate::schedule::plan::scan::Scan;

/// What is folded.
struct Running<'i> {
    anchor: InstId,
    comp: CompId,
    inputs: &'i [InstId],
    inits: &'i [InstId],
    scan: Scan,
}

/// A running fold.
pub const FAMILY: Family = Family {
    name: "scan",
    recipe: |_, asked| Ok(asked.scan().map(Setup::Scan)),
    emit: |s, root, setup| match setup {
        Setup::Scan(scan) => s.scan(root, *scan),
        other => other.unfit(),
    },
};

impl<'a> Emitter<'a> {
    /// `id` is the anchor itself or its epilogue.
    pub(super) fn scan(&mut self, Root { id, anchor, out }: Root<'_>, scan: Scan) -> Result<()> {
        let Op::ReduceWindow { comp, .. } = self.scope.comp[anchor].op else {
            return Err(refuse(self.scope.comp, id, ""));
        };
        let operands = self.scope.comp[anchor].operands.clone();
        let (inputs, inits) = operands.split_at(operands.len() / 2);
        let running = Running { anchor, comp, inputs, inits, scan };
        let dims = self.scope.comp.array(inputs[0]).dims.clone();
        if dims.contains(&0) {
            return Ok(());
        }
        let wide = scan.axis + 1 < dims.len();
        let minor = if wide { dims.last().copied().unwrap_or(1) } else { 1 };
        let (mut done, mut width) = (0, if wide { self.lanes(self.scope.comp.array(inputs[0]).dtype) } else { 1 });
        while done < minor {
            let tiles = (minor - done) / width;
            if tiles > 0 {
                self.scan_part(id, &running, wide.then_some(done), (tiles, width), out)?;
                done += tiles * width;
            }
            width = (width / 2).max(1);
        }
        Ok(())
    }

    /// Lines of `tiles · width` elements of the innermost dimension from `first` on; of all of it where that is scanned.
    fn scan_part(
        &mut self,
        id: InstId,
        r: &Running,
        first: Option<u64>,
        (tiles, width): (u64, u64),
        out: &Value,
    ) -> Result<()> {
        let mut e = Elements::new(id, label(self.scope.comp, id));
        let dims = self.scope.comp.array(r.inputs[0]).dims.clone();
        let regs: Vec<RegId> = r.inputs.iter().map(|&i| e.k.reg(self.scope.comp.array(i).dtype, width, 1)).collect();
        let (tile, lane) = (e.k.var(tiles), e.k.var(width));
        let mut vars = Vec::new();
        let mut line = Vec::new();
        for (d, &n) in dims.iter().enumerate() {
            match first.filter(|_| d + 1 == dims.len()) {
                _ if d == r.scan.axis => line.push(Index::default()),
                Some(first) => {
                    line.push(Index::var(tile).scale(width as i64).add(&Index::var(lane)).offset(first as i64))
                }
                None => {
                    vars.push(e.k.var(n));
                    line.push(Index::var(vars[vars.len() - 1]));
                }
            }
        }
        vars.push(tile);
        let zero = Index::constant(0);
        let mut body = Vec::new();
        for (&reg, &init) in regs.iter().zip(r.inits) {
            let value = self.element(&mut e, init, &[])?;
            body.push(Stmt::Set { reg, at: zero.clone(), value });
        }
        body.extend(self.phases(&mut e, id, r, &regs, &line, out)?);
        e.k.flops = dims.iter().product();
        super::sequential::nested(&mut e.k, &vars, vec![each(lane, LoopKind::Vector, body)]);
        self.launch(e.k);
        Ok(())
    }

    /// The loops along the scanned dimension of one line.
    fn phases(
        &mut self,
        e: &mut Elements,
        id: InstId,
        r: &Running,
        regs: &[RegId],
        line: &[Index],
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let s = r.scan;
        let along = |i: &Index, n: i64| {
            let i = if s.backwards { i.scale(-1).offset(n - 1) } else { i.clone() };
            let mut at = line.to_vec();
            at[s.axis] = i;
            at
        };
        let mut body = Vec::new();
        let [before, silent, both, after] = s.phases();
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
            let var = e.k.var(count as u64);
            let mut round = Vec::new();
            if let Some(from) = reads {
                let at = along(&Index::var(var).offset(from), s.inputs);
                round.extend(self.step(e, r, regs, &at)?);
            }
            if let Some(from) = writes {
                let at = along(&Index::var(var).offset(from), s.outputs);
                round.extend(self.results_at(e, id, r, regs, &at, out)?);
            }
            body.push(each(var, LoopKind::Seq, round));
        }
        Ok(body)
    }

    /// The fold of the registers with the elements at `at`.
    fn step(&mut self, e: &mut Elements, r: &Running, regs: &[RegId], at: &[Index]) -> Result<Vec<Stmt>> {
        let zero = Index::constant(0);
        let mut args: Vec<ExprId> = regs.iter().map(|&reg| e.k.expr(Expr::Reg(reg, zero.clone()))).collect();
        for &input in r.inputs {
            args.push(self.element(e, input, at)?);
        }
        let results = self.apply(e, r.comp, &args)?;
        let set = |reg: RegId, value: ExprId| Stmt::Set { reg, at: Index::constant(0), value };
        if let ([reg], [value]) = (regs, &results[..]) {
            return Ok(vec![set(*reg, *value)]);
        }
        // All results are computed before any register changes.
        let hold: Vec<RegId> = regs
            .iter()
            .map(|&reg| {
                let info = e.k.regs[reg];
                e.k.reg(info.dtype, info.lanes, 1)
            })
            .collect();
        let mut body: Vec<Stmt> = hold.iter().zip(&results).map(|(&h, &value)| set(h, value)).collect();
        for (&reg, &h) in regs.iter().zip(&hold) {
            let value = e.k.expr(Expr::Reg(h, zero.clone()));
            body.push(set(reg, value));
        }
        Ok(body)
    }

    /// Stores of the registers, or of the epilogue made from them, at `at`.
    fn results_at(
        &mut self,
        e: &mut Elements,
        id: InstId,
        r: &Running,
        regs: &[RegId],
        at: &[Index],
        out: &Value,
    ) -> Result<Vec<Stmt>> {
        let leaves = self.scope.comp[id].shape.leaves();
        let dims = leaves.first().map(|a| a.dims.clone()).unwrap_or_default();
        let at = &forward(&self.scope.fusion.path[r.anchor], at, &e.k.vars);
        let index = out.layout(&dims).at(at);
        let values: Vec<ExprId> = regs.iter().map(|&reg| e.k.expr(Expr::Reg(reg, Index::constant(0)))).collect();
        if id == r.anchor {
            let stores = values.iter().zip(&out.leaves);
            return Ok(stores.map(|(&value, &buf)| Stmt::Store { buf, index: index.clone(), value }).collect());
        }
        e.fixed.insert(r.anchor, values[0]);
        let value = self.element(e, id, at)?;
        Ok(vec![Stmt::Store { buf: out.buffer()?, index, value }])
    }
}
