//! Conversion of regions to computations.
use std::collections::BTreeSet;

use super::converter::{Converter, SymbolScope, error_at};
use super::tree::{Operation, RegionBlock};
use crate::diag::{Code, Result};
use crate::hlo::SymbolicArray;
use crate::hlo::{CompId, InstId, Op, symbolic};
use crate::symbolic::trace;

/// Largest size in bytes of a constant that a region recreates instead of capturing, so that sizes in it are known.
const MOST_COPIED: usize = 1 << 10;

/// Adds the names that a region reads and does not define.
fn free_names(region: &RegionBlock, out: &mut BTreeSet<String>) {
    let mut used = BTreeSet::new();
    let mut defined: BTreeSet<&str> = region.args.iter().map(|a| a.0.as_str()).collect();
    for op in &region.ops {
        used.extend(op.operands.iter().map(|v| v.name.clone()));
        op.regions.iter().for_each(|inner| free_names(inner, &mut used));
        defined.extend(op.results.iter().map(String::as_str));
    }
    out.extend(used.into_iter().filter(|name| !defined.contains(name.as_str())));
}

/// Values that the regions of an operation capture from around it.
struct Captured {
    /// Names of captured results, each with its number of values.
    counts: Vec<(String, usize)>,
    /// Captured values.
    values: Vec<InstId>,
    /// Names and values of constants, which regions recreate.
    constants: Vec<(String, SymbolicArray)>,
}

impl<'a> Converter<'a, '_> {
    /// Converts a region to a computation that reads nothing around it except constants.
    pub fn convert_closed_region(
        &mut self,
        op: &Operation,
        region: &'a RegionBlock,
        outer: &SymbolScope,
    ) -> Result<CompId> {
        let mut names = BTreeSet::new();
        free_names(region, &mut names);
        let mut constants = Vec::new();
        for name in names {
            let outside = outer.values.get(&name).and_then(|all| all.first()).copied();
            let Some(value) = outside.and_then(|id| self.literal(id)) else {
                let told = format!("its computation reads %{name}, which is neither a constant nor its own");
                return Err(error_at(op, Code::HloUnsupported, told));
            };
            constants.push((name, value));
        }
        self.begin(op)?;
        let mut scope = SymbolScope { open: outer.open, ..SymbolScope::default() };
        for (name, shape) in &region.args {
            let id = self.builder().parameter(shape.to_symbolic());
            scope.values.insert(name.clone(), vec![id]);
        }
        self.recreate_constants(&mut scope, constants);
        let results = self.convert_region(region, &mut scope)?;
        let results = self.gather_whole_arrays(&results);
        let root = if let [one] = results[..] { one } else { self.builder().tuple(&results) };
        Ok(self.end(root))
    }
    fn begin(&mut self, op: &Operation) -> Result<()> {
        self.enter(op)?;
        let stem = op.name.rsplit('.').next().unwrap_or("region");
        self.begin_computation(stem);
        Ok(())
    }
    fn end(&mut self, root: InstId) -> CompId {
        self.leave();
        self.builder().end_computation(root)
    }
    /// Value of an instruction, if it is a constant.
    fn literal(&mut self, id: InstId) -> Option<SymbolicArray> {
        let b = self.builder();
        let known = SymbolicArray::from_constant(b, id)?;
        Some(if b.depends_on_sizes(id) { known.with_expressions() } else { known })
    }
    fn recreate_constants(&mut self, scope: &mut SymbolScope, constants: Vec<(String, SymbolicArray)>) {
        for (name, known) in constants {
            let id = known.add_constant(self.builder());
            scope.values.insert(name, vec![id]);
        }
    }
    /// Converts a region to a computation of one tuple: the region's own arguments, then the captured values.
    fn region_on_tuple(
        &mut self,
        op: &Operation,
        region: &'a RegionBlock,
        state: &symbolic::Shape,
        captured: &Captured,
        outer: &SymbolScope,
        results: impl FnOnce(&mut Self, Vec<InstId>, Vec<InstId>) -> InstId,
    ) -> Result<CompId> {
        self.begin(op)?;
        let mut scope = SymbolScope { open: outer.open, ..SymbolScope::default() };
        let param = self.builder().parameter(state.clone());
        let mut parts = self.parts(param).into_iter();
        for (name, _) in &region.args {
            let part =
                parts.next().ok_or_else(|| error_at(op, Code::HloSyntax, "a region has more arguments than values"))?;
            scope.values.insert(name.clone(), vec![part]);
        }
        let rest: Vec<InstId> = parts.collect();
        let mut from = 0;
        for (name, count) in &captured.counts {
            scope.values.insert(name.clone(), rest[from..from + count].to_vec());
            from += count;
        }
        self.recreate_constants(&mut scope, captured.constants.clone());
        let made = self.convert_region(region, &mut scope)?;
        let made = self.gather_whole_arrays(&made);
        let root = results(self, made, rest);
        Ok(self.end(root))
    }
    fn captured_values(&mut self, op: &Operation, scope: &SymbolScope) -> Result<Captured> {
        let mut names = BTreeSet::new();
        op.regions.iter().for_each(|region| free_names(region, &mut names));
        let mut out = Captured { counts: Vec::new(), values: Vec::new(), constants: Vec::new() };
        for name in names {
            let all = scope.values.get(&name);
            let all =
                all.ok_or_else(|| error_at(op, Code::HloSyntax, format!("the value %{name} does not exist here")))?;
            if let (true, [one]) = (scope.open, &all[..])
                && let Some(value) = self.literal(*one).filter(|known| known.value.bytes.len() <= MOST_COPIED)
            {
                out.constants.push((name, value));
                continue;
            }
            out.counts.push((name, all.len()));
            out.values.extend(self.gather_whole_arrays(all));
        }
        Ok(out)
    }
    pub fn convert_while(
        &mut self,
        op: &'a Operation,
        operands: Vec<InstId>,
        scope: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        let [cond, turn] = &op.regions[..] else { return Err(error_at(op, Code::HloSyntax, "a loop has two regions")) };
        let n = operands.len();
        if cond.args.len() != n || turn.args.len() != n {
            return Err(error_at(
                op,
                Code::HloSyntax,
                format!("the regions of a loop over {n} values have {n} arguments"),
            ));
        }
        let mut captured = self.captured_values(op, scope)?;
        let kept = self.invariant_constants(turn, &operands, scope);
        for (i, known) in &kept {
            for region in [cond, turn] {
                captured.constants.push((region.args[*i].0.clone(), known.clone()));
            }
        }
        let init = self.builder().tuple(&[&operands[..], &captured.values].concat());
        let state = self.builder().shape(init).clone();
        let cond = self.region_on_tuple(op, cond, &state, &captured, scope, |c, made, _| match made[..] {
            [one] => one,
            _ => c.builder().tuple(&made),
        })?;
        let turn = self.region_on_tuple(op, turn, &state, &captured, scope, |c, made, rest| {
            c.builder().tuple(&[made, rest].concat())
        })?;
        let id = self.builder().push(symbolic::Op::While { cond, body: turn }, &[init], state);
        let mut parts = self.parts(id);
        parts.truncate(n);
        for (i, _) in kept {
            parts[i] = operands[i];
        }
        Ok(parts)
    }
    /// Loop variables, by index, that are constants unchanged by any iteration: JAX passes sizes to loops like this.
    fn invariant_constants(
        &mut self,
        turn: &RegionBlock,
        operands: &[InstId],
        scope: &SymbolScope,
    ) -> Vec<(usize, SymbolicArray)> {
        let Some(last) = turn.ops.last().filter(|op| scope.open && op.is_return()) else { return Vec::new() };
        let is_kept = |&i: &usize| last.operands.get(i).is_some_and(|value| value.name == turn.args[i].0);
        let all: Vec<usize> = (0..operands.len()).filter(is_kept).collect();
        let known = |i: usize| {
            let known = self.literal(operands[i]).filter(|known| known.value.bytes.len() <= MOST_COPIED)?;
            Some((i, known))
        };
        all.into_iter().filter_map(known).collect()
    }
    pub fn convert_branches(
        &mut self,
        op: &'a Operation,
        operands: Vec<InstId>,
        scope: &mut SymbolScope,
    ) -> Result<Vec<InstId>> {
        let [selector] = operands[..] else { return Err(error_at(op, Code::HloSyntax, "one value chooses a branch")) };
        if op.regions.is_empty() || (op.name == "stablehlo.if" && op.regions.len() != 2) {
            return Err(error_at(op, Code::HloSyntax, "the branches are not as many as the operation has"));
        }
        if let Some(region) = self.known_branch(op, selector) {
            self.enter(op)?;
            let mut inner = SymbolScope { values: scope.values.clone(), open: scope.open, ..SymbolScope::default() };
            let results = self.convert_region(region, &mut inner)?;
            self.leave();
            return Ok(results);
        }
        let captured = self.captured_values(op, scope)?;
        let given = self.builder().tuple(&captured.values);
        let state = self.builder().shape(given).clone();
        let mut all = Vec::with_capacity(op.regions.len());
        for region in &op.regions {
            all.push(
                self.region_on_tuple(op, region, &state, &captured, scope, |c, made, _| c.builder().tuple(&made))?,
            );
        }
        let operands = [vec![selector], vec![given; all.len()]].concat();
        let id = self.builder().add_inst(Op::Conditional(all), &operands);
        Ok(self.parts(id))
    }
    /// Branch that is taken, if it is known: others may be for other platforms.
    fn known_branch(&mut self, op: &'a Operation, selector: InstId) -> Option<&'a RegionBlock> {
        // A branch chosen for the current sizes would be wrong for others.
        let known = self.host.known(selector)?;
        let varies = match trace::is_recording() {
            true => known.sizes.iter().flatten().any(|size| size.varies()),
            false => self.host.builder().depends_on_sizes(selector),
        };
        let value = known.value.get_i64(0).filter(|_| !varies)?;
        if op.name == "stablehlo.if" {
            return op.regions.get(usize::from(value == 0));
        }
        let last = op.regions.len() - 1;
        op.regions.get(usize::try_from(value).unwrap_or(last).min(last))
    }
}
