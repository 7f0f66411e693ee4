//! A module as StableHLO's text, in the generic form, which every version of its parser reads.
//!
//! Tuples become their parts: functions, loops and branches take and give as many values as there are leaves. What HLO calls is a
//! function, but for the computations of reductions, sorts and scatters, which are regions. Layouts and metadata are left out.
mod attributes;
pub(super) mod literal;

use super::shards::ProgramShardings;
use super::types::element_name;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::text::{callees_first, operands_first, unique_names};
use crate::hlo::{CompId, Computation, Inst, InstId, Literal, Module, Op, Shape};
use crate::util::id_vec::Id;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Largest nesting depth of regions.
const MOST_DEPTH: usize = 16;

/// Prints a module as StableHLO text, with `main` as the entry.
///
/// # Errors
/// `Code::HloUnsupported` for instructions that StableHLO has no operation for, and for values that are not arrays.
pub fn print(module: &Module) -> Result<String> {
    let [replicas, partitions] = module.devices();
    let mut printer = Printer { module, names: names(module), out: String::new(), next: 0 };
    let name = printer.names[&module.entry].clone();
    let name = if module.name.is_empty() { name } else { module.name.clone() };
    printer.line(
        0,
        &format!(
            "module @{} attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32{}}} {{",
            symbol(&name),
            shardings(module)
        ),
    );
    let called = functions(module);
    for comp in callees_first(module) {
        if called.contains(&comp) {
            printer.function(comp)?;
        }
    }
    printer.line(0, "}");
    Ok(printer.out)
}

/// Attributes of a module for the shardings of its arguments and results; empty where all arrays are whole.
fn shardings(module: &Module) -> String {
    let Some(all) = ProgramShardings::of_module(module) else { return String::new() };
    let results = match &all.results[..] {
        [] => String::new(),
        [one] => format!(", mhlo.spmd_output_sharding = \"{one}\""),
        several => format!(", mhlo.spmd_output_sharding = \"{{{}}}\"", several.join(", ")),
    };
    let arguments: Vec<String> = all.arguments.iter().map(|own| format!("\"{own}\"")).collect();
    format!("{results}, mhlo.spmd_parameters_shardings = [{}]", arguments.join(", "))
}

/// Names of computations that are printed as functions.
fn names(module: &Module) -> HashMap<CompId, String> {
    let own = |(id, comp): (CompId, &Computation)| if id == module.entry { "main".into() } else { comp.name.clone() };
    let all: Vec<String> = module.comps.iter().map(own).collect();
    // The entry gets the name `main`, whatever names others have.
    let order = |&id: &CompId| usize::from(id != module.entry);
    let mut ids: Vec<CompId> = module.comps.ids().collect();
    ids.sort_by_key(order);
    let unique = unique_names(ids.iter().map(|id| all[id.index()].as_str()));
    ids.into_iter().zip(unique).collect()
}

/// Computations that are printed as functions, as opposed to regions.
fn functions(module: &Module) -> HashSet<CompId> {
    let mut found = HashSet::from([module.entry]);
    for comp in module.reachable() {
        for inst in module.comps[comp].insts.values() {
            if matches!(inst.op, Op::Call(_) | Op::Fusion { .. } | Op::While { .. } | Op::Conditional(_)) {
                found.extend(inst.op.called_computations());
            }
        }
    }
    found
}

/// Name in MLIR's symbol syntax, quoted if necessary.
fn symbol(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if plain && begins { name.to_string() } else { format!("\"{}\"", name.replace(['"', '\\'], "_")) }
}

/// Appends the leaves of a shape, its parts that are not tuples.
fn leaves<'s>(shape: &'s Shape, out: &mut Vec<&'s Shape>) {
    match shape {
        Shape::Tuple(parts) => parts.iter().for_each(|part| leaves(part, out)),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => out.push(shape),
    }
}

/// Number of leaves of a shape.
fn width(shape: &Shape) -> usize {
    let mut all = Vec::new();
    leaves(shape, &mut all);
    all.len()
}

/// Types of the leaves of a shape.
fn types(shape: &Shape) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    leaves(shape, &mut all);
    all.into_iter().map(type_of).collect()
}

fn type_of(shape: &Shape) -> Result<String, String> {
    match shape {
        Shape::Array(a) if a.dynamic.contains(&true) => Err(format!("the size of {shape} is only bounded")),
        Shape::Array(a) => {
            let dims: String = a.dims.iter().map(|d| format!("{d}x")).collect();
            Ok(format!("tensor<{dims}{}>", element_name(a.dtype)))
        }
        Shape::Token => Ok("!stablehlo.token".to_string()),
        Shape::Tuple(_) | Shape::Opaque | Shape::Buffer(_) => Err(format!("{shape} is no array")),
    }
}

/// Result types of an operation: a single one, or several in parentheses.
fn result_types(types: &[String]) -> String {
    if let [one] = types { one.clone() } else { format!("({})", types.join(", ")) }
}

/// Names of the leaf values of each instruction in a function or region.
type ValueNames = HashMap<InstId, Vec<String>>;

/// An operation to be printed.
struct PrintedOperation<'a> {
    name: String,
    attributes: Vec<(&'static str, String)>,
    operands: Vec<String>,
    /// Types of the operands.
    given: Vec<String>,
    regions: Vec<PrintedRegion<'a>>,
    /// Types of the results.
    made: Vec<String>,
}

/// A region to be printed.
enum PrintedRegion<'a> {
    /// Instructions of a computation.
    Of(CompId),
    /// A call of a function, on the region's own arguments or on values around it.
    Calling { comp: CompId, own: bool, values: &'a [String] },
}

struct Printer<'m> {
    module: &'m Module,
    names: HashMap<CompId, String>,
    out: String,
    /// Number of the function's next value.
    next: usize,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:width$}{text}", "", width = 2 * depth);
    }

    /// Name for a new value, unique in the function including its regions.
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%{}", self.next - 1)
    }

    /// Arguments for the parameters of a computation: their names, and each with its type.
    fn arguments(&mut self, comp: &Computation) -> Result<(ValueNames, Vec<String>)> {
        let (mut values, mut told) = (ValueNames::new(), Vec::new());
        for &param in &comp.params {
            let inst = &comp.insts[param];
            let types = types(&inst.shape).map_err(|what| refused(inst, what))?;
            let own: Vec<String> = types.iter().map(|_| self.fresh()).collect();
            told.extend(own.iter().zip(types).map(|(name, t)| format!("{name}: {t}")));
            values.insert(param, own);
        }
        Ok((values, told))
    }

    fn function(&mut self, id: CompId) -> Result<()> {
        let comp = &self.module.comps[id];
        self.next = 0;
        let is_entry = id == self.module.entry;
        let (mut values, mut told) = self.arguments(comp)?;
        if let (true, true) = (is_entry, told.len() == comp.params.len()) {
            for (text, &param) in told.iter_mut().zip(&comp.params) {
                let _ = write!(text, " loc(\"{}\")", comp.insts[param].name.replace(['"', '\\'], "_"));
            }
        }
        let root = &comp.insts[comp.root];
        let results = types(&root.shape).map_err(|what| refused(root, what))?;
        let visibility = if is_entry { "public" } else { "private" };
        let name = symbol(&self.names[&id]);
        let (told, results) = (told.join(", "), results.join(", "));
        self.line(1, &format!("func.func {visibility} @{name}({told}) -> ({results}) {{"));
        self.body(comp, &mut values, "func.return", 2, 0)?;
        self.line(1, "}");
        Ok(())
    }

    /// Prints the instructions that the root needs, and returns its leaves.
    fn body(
        &mut self,
        comp: &Computation,
        values: &mut ValueNames,
        ends: &str,
        depth: usize,
        nested: usize,
    ) -> Result<()> {
        let live: HashSet<InstId> = comp.post_order().into_iter().collect();
        for id in operands_first(comp).into_iter().filter(|id| live.contains(id)) {
            if values.contains_key(&id) {
                continue;
            }
            let made = self.instruction(comp, id, values, depth, nested)?;
            values.insert(id, made);
        }
        let root = &comp.insts[comp.root];
        let types = types(&root.shape).map_err(|what| refused(root, what))?;
        let own = values.get(&comp.root).map_or(String::new(), |all| all.join(", "));
        let text = if types.is_empty() {
            format!("\"{ends}\"() : () -> ()")
        } else {
            format!("\"{ends}\"({own}) : ({}) -> ()", types.join(", "))
        };
        self.line(depth, &text);
        Ok(())
    }

    /// Prints an instruction; returns its values.
    fn instruction(
        &mut self,
        comp: &Computation,
        id: InstId,
        values: &ValueNames,
        depth: usize,
        nested: usize,
    ) -> Result<Vec<String>> {
        let inst = &comp.insts[id];
        let of = |i: usize| values.get(&inst.operands[i]).cloned().unwrap_or_default();
        let all = || (0..inst.operands.len()).flat_map(of).collect::<Vec<_>>();
        let fail = |what: String| refused(inst, what);
        match &inst.op {
            Op::Tuple => return Ok(all()),
            Op::Copy | Op::AddDependency => return Ok(of(0)),
            Op::GetTupleElement(part) => {
                let parts = comp.insts[inst.operands[0]].shape.as_tuple().unwrap_or_default();
                let before: usize = parts.iter().take(*part).map(width).sum();
                return Ok(of(0).into_iter().skip(before).take(width(&inst.shape)).collect());
            }
            Op::Constant(Literal::Tuple(_) | Literal::Array(_)) => return self.constant(inst, depth),
            _ => {}
        }
        let types_of = |i: usize| types(&comp.insts[inst.operands[i]].shape);
        let given = (0..inst.operands.len()).map(types_of).collect::<Result<Vec<_>, _>>().map_err(fail)?.concat();
        let made = types(&inst.shape).map_err(fail)?;
        let operands = all();
        let state = operands.clone();
        let mut op = PrintedOperation {
            name: String::new(),
            attributes: Vec::new(),
            operands,
            given,
            regions: Vec::new(),
            made,
        };
        let branch = |i: usize| of(i);
        let arguments: Vec<Vec<String>> = (0..inst.operands.len()).map(branch).collect();
        match &inst.op {
            Op::Call(callee) | Op::Fusion { comp: callee, .. } => {
                op.name = "func.call".to_string();
                op.attributes.push(("callee", format!("@{}", symbol(&self.names[callee]))));
            }
            Op::While { cond, body } => {
                op.name = "stablehlo.while".to_string();
                let calling = |&comp: &CompId| PrintedRegion::Calling { comp, own: true, values: &state };
                op.regions = [cond, body].into_iter().map(calling).collect();
            }
            Op::Conditional(branches) => {
                let chooses = comp.array_shape(inst.operands[0]).dtype == crate::tensor::DType::Pred;
                op.name = if chooses { "stablehlo.if" } else { "stablehlo.case" }.to_string();
                let calling = |(i, &comp): (usize, &CompId)| {
                    let values = arguments.get(i + 1).map_or(&[][..], Vec::as_slice);
                    PrintedRegion::Calling { comp, own: false, values }
                };
                op.regions = branches.iter().enumerate().map(calling).collect();
                op.operands.truncate(1);
                op.given.truncate(1);
            }
            other => {
                let shapes: Vec<&Shape> = inst.operands.iter().map(|&o| &comp.insts[o].shape).collect();
                let (name, attributes) = attributes::operation_of(inst, &shapes).map_err(fail)?;
                (op.name, op.attributes) = (name, attributes);
                op.regions = other.called_computations().into_iter().map(PrintedRegion::Of).collect();
                if let Op::Rng { .. } = other {
                    let dims = inst.shape.as_array().map(|a| a.dims.clone()).unwrap_or_default();
                    let (name, of) = self.sizes(&dims, depth);
                    op.operands.push(name);
                    op.given.push(of);
                }
            }
        }
        self.write(op, depth, nested)
    }

    /// Prints the leaves of a constant; returns their names.
    fn constant(&mut self, inst: &Inst, depth: usize) -> Result<Vec<String>> {
        let Op::Constant(value) = &inst.op else { return Ok(Vec::new()) };
        let mut made = Vec::new();
        for t in value.leaves() {
            let ty = type_of(&Shape::array(t.dtype, t.dims.clone())).map_err(|what| refused(inst, what))?;
            let name = self.fresh();
            let text = literal::dense(t);
            self.line(
                depth,
                &format!("{name} = \"stablehlo.constant\"() <{{value = dense<{text}> : {ty}}}> : () -> {ty}"),
            );
            made.push(name);
        }
        Ok(made)
    }

    /// Prints sizes as a constant; returns its name and type.
    fn sizes(&mut self, dims: &[u64], depth: usize) -> (String, String) {
        let (name, ty) = (self.fresh(), format!("tensor<{}xi64>", dims.len()));
        let text: Vec<String> = dims.iter().map(u64::to_string).collect();
        let text = format!("dense<[{}]>", text.join(", "));
        self.line(depth, &format!("{name} = \"stablehlo.constant\"() <{{value = {text} : {ty}}}> : () -> {ty}"));
        (name, ty)
    }

    /// Prints an operation; returns its values.
    fn write(&mut self, op: PrintedOperation, depth: usize, nested: usize) -> Result<Vec<String>> {
        let stem = self.fresh();
        let many = op.made.len() > 1;
        let results = match op.made.len() {
            0 => String::new(),
            1 => format!("{stem} = "),
            n => format!("{stem}:{n} = "),
        };
        let one = |(name, value): &(&str, String)| format!("{name} = {value}");
        let attributes: Vec<String> = op.attributes.iter().map(one).collect();
        let attributes =
            if attributes.is_empty() { String::new() } else { format!(" <{{{}}}>", attributes.join(", ")) };
        let head = format!("{results}\"{}\"({}){attributes}", op.name, op.operands.join(", "));
        let tail = format!(" : ({}) -> {}", op.given.join(", "), result_types(&op.made));
        if op.regions.is_empty() {
            self.line(depth, &format!("{head}{tail}"));
        } else {
            self.line(depth, &format!("{head} ({{"));
            for (i, region) in op.regions.iter().enumerate() {
                if i > 0 {
                    self.line(depth, "}, {");
                }
                self.region(region, depth + 1, nested + 1)?;
            }
            self.line(depth, &format!("}}){tail}"));
        }
        let own = |i: usize| if many { format!("{stem}#{i}") } else { stem.clone() };
        Ok((0..op.made.len()).map(own).collect())
    }

    fn region(&mut self, region: &PrintedRegion, depth: usize, nested: usize) -> Result<()> {
        if nested > MOST_DEPTH {
            return Err(Error::user(Code::HloUnsupported, format!("regions nest deeper than {MOST_DEPTH}")));
        }
        match *region {
            PrintedRegion::Of(id) => {
                let comp = &self.module.comps[id];
                let (mut values, told) = self.arguments(comp)?;
                self.line(depth - 1, &format!("^bb0({}):", told.join(", ")));
                self.body(comp, &mut values, "stablehlo.return", depth, nested)
            }
            PrintedRegion::Calling { comp: id, own, values } => {
                let comp = &self.module.comps[id];
                let (params, told) = self.arguments(comp)?;
                let taken: Vec<String> = comp.params.iter().flat_map(|p| params[p].clone()).collect();
                if own {
                    self.line(depth - 1, &format!("^bb0({}):", told.join(", ")));
                }
                let root = &comp.insts[comp.root];
                let shapes = |id: &InstId| types(&comp.insts[*id].shape);
                let given = comp.params.iter().map(shapes).collect::<Result<Vec<_>, _>>();
                let call = PrintedOperation {
                    name: "func.call".to_string(),
                    attributes: vec![("callee", format!("@{}", symbol(&self.names[&id])))],
                    operands: if own { taken } else { values.to_vec() },
                    given: given.map_err(|what| refused(root, what))?.concat(),
                    regions: Vec::new(),
                    made: types(&root.shape).map_err(|what| refused(root, what))?,
                };
                let made = call.made.join(", ");
                let results = self.write(call, depth, nested)?;
                self.line(depth, &format!("\"stablehlo.return\"({}) : ({made}) -> ()", results.join(", ")));
                Ok(())
            }
        }
    }
}

/// Error for an instruction that has no StableHLO form.
fn refused(inst: &Inst, what: String) -> Error {
    let told = format!("`{}` can't be written as StableHLO: {what}", inst.op.name());
    Diagnostic::new(Code::HloUnsupported, told).at_node(&inst.name, inst.op.name()).into()
}
