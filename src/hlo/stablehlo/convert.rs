//! Functions and regions as computations.
use std::collections::{BTreeSet, HashMap};

use super::attribute::constant;
use super::attributes::{self, opcode};
use super::tree::{Attr, Function, Functions, Operation, Region, ValueRef, callee};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::text::op_from_attrs;
use crate::hlo::{CompId, Computation, Inst, InstId, Literal, Metadata, Module, Op, Shape, Source};
use crate::tensor::Tensor;
use crate::util::id_vec::IdVec;

/// The module of all functions that the entry reaches, with what its results are called. An argument that asks for the
/// platform is `platform`, if that is known.
pub(super) fn module(functions: &Functions, platform: Option<usize>) -> Result<Source> {
    let entry = match functions.all.get_index(0) {
        Some(_) if functions.all.contains_key("main") => "main",
        Some((first, _)) => first,
        None => return Err(Error::user(Code::HloSyntax, "there is no function")),
    };
    let name = if functions.name.is_empty() { entry } else { &functions.name };
    let extra = functions.header.clone();
    let module = Module { name: name.to_string(), comps: IdVec::new(), entry: CompId(0), extra };
    let mut c = Converter { module, done: HashMap::new() };
    for name in functions.order(entry)? {
        let id = c.function(name, &functions.all[name], platform.filter(|_| name == entry))?;
        c.done.insert(name, id);
        c.module.entry = id;
    }
    let results =
        functions.all[entry].results.iter().map(|port| port.text("jax.result_info").map(result_name)).collect();
    Ok(Source { module: c.module, results })
}

/// JAX's path to a result as a name: `logits` of `result['logits']`, `result_0` of `result[0]`.
fn result_name(path: &str) -> String {
    let steps = steps(path);
    let own = if steps.first() == Some(&"result") { &steps[1..] } else { &steps[..] };
    match own.first() {
        None => "result".to_string(),
        Some(first) if first.starts_with(|c: char| c.is_ascii_digit()) => format!("result_{}", own.join("_")),
        Some(_) => own.join("_"),
    }
}

/// The names and numbers in a path such as `params['layer'][0]`.
fn steps(path: &str) -> Vec<&str> {
    path.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|step| !step.is_empty()).collect()
}

/// The error of an operation.
fn at(op: &Operation, code: Code, message: impl Into<String>) -> Error {
    let mut d = Diagnostic::new(code, message);
    d.place.op = Some(op.name.clone());
    d.place.node = op.results.first().cloned().or_else(|| Some(op.name.clone()));
    d.place.line = op.place;
    d.into()
}

/// The values that names stand for.
type Values = HashMap<String, Vec<InstId>>;

/// A computation under construction.
#[derive(Default)]
struct Body {
    insts: IdVec<InstId, Inst>,
    params: Vec<InstId>,
    values: Values,
    /// The operands of `check.` operations.
    checked: Vec<InstId>,
}

impl Body {
    fn push(&mut self, op: Op, operands: Vec<InstId>, shape: Shape) -> InstId {
        self.push_with(op, operands, shape, Vec::new())
    }
    fn push_with(&mut self, op: Op, operands: Vec<InstId>, shape: Shape, extra: Vec<(String, String)>) -> InstId {
        let name = format!("{}.{}", op.name(), self.insts.len());
        self.insts.push(Inst { name, op, operands, shape, metadata: Metadata::default(), extra })
    }
    fn param(&mut self, shape: Shape) -> InstId {
        let id = self.push(Op::Parameter(self.params.len()), Vec::new(), shape);
        self.params.push(id);
        id
    }
    fn tuple(&mut self, parts: Vec<InstId>) -> InstId {
        let shapes = parts.iter().map(|&p| self.insts[p].shape.clone()).collect();
        self.push(Op::Tuple, parts, Shape::Tuple(shapes))
    }
    /// The parts of a tuple.
    fn parts(&mut self, id: InstId) -> Vec<InstId> {
        let Shape::Tuple(shapes) = self.insts[id].shape.clone() else { return vec![id] };
        shapes.into_iter().enumerate().map(|(i, s)| self.push(Op::GetTupleElement(i), vec![id], s)).collect()
    }
    fn get(&self, op: &Operation, value: &ValueRef) -> Result<InstId> {
        let found = self.values.get(&value.name).and_then(|all| all.get(value.index));
        found.copied().ok_or_else(|| at(op, Code::HloSyntax, format!("the value %{} does not exist here", value.name)))
    }
    fn finish(self, name: String, root: InstId) -> Computation {
        Computation { name, insts: self.insts, params: self.params, root }
    }
}

/// The names that a region reads and does not define.
fn free(region: &Region, out: &mut BTreeSet<String>) {
    let mut used = BTreeSet::new();
    let mut defined: BTreeSet<&str> = region.args.iter().map(|a| a.0.as_str()).collect();
    for op in &region.ops {
        used.extend(op.operands.iter().map(|v| v.name.clone()));
        op.regions.iter().for_each(|inner| free(inner, &mut used));
        defined.extend(op.results.iter().map(String::as_str));
    }
    out.extend(used.into_iter().filter(|name| !defined.contains(name.as_str())));
}

struct Converter<'a> {
    module: Module,
    done: HashMap<&'a str, CompId>,
}

impl Converter<'_> {
    fn function(&mut self, name: &str, function: &Function, platform: Option<usize>) -> Result<CompId> {
        let mut body = Body::default();
        for (i, ((arg, shape), port)) in function.body.args.iter().zip(&function.args).enumerate() {
            let asks = port.text("jax.global_constant") == Some("_platform_index");
            let id = match (platform, shape) {
                (Some(index), Shape::Array(a)) if asks && a.dims.is_empty() => {
                    let index = Literal::Array(Tensor::scalar_of(a.dtype, index as f64));
                    body.push(Op::Constant(index), Vec::new(), shape.clone())
                }
                _ => {
                    let id = body.param(shape.clone());
                    let path = port.name.as_deref().map(steps).filter(|steps| !steps.is_empty());
                    body.insts[id].name = path.map_or_else(|| format!("arg{i}"), |steps| steps.join("_"));
                    id
                }
            };
            body.values.insert(arg.clone(), vec![id]);
        }
        let mut results = self.ops(&function.body, &mut body)?;
        if results.is_empty() {
            results = std::mem::take(&mut body.checked);
        }
        let root = if let [one] = results[..] { one } else { body.tuple(results) };
        Ok(self.module.comps.push(body.finish(name.to_string(), root)))
    }
    /// Runs through a region; its results.
    fn ops(&mut self, region: &Region, body: &mut Body) -> Result<Vec<InstId>> {
        for op in &region.ops {
            if op.is_return() {
                return op.operands.iter().map(|v| body.get(op, v)).collect();
            }
            let made = self.op(op, body)?;
            for (i, name) in op.results.iter().enumerate() {
                // `%a, %b = ...` names each result, `%r:2 = ...` all of them.
                let own = if op.results.len() > 1 {
                    vec![made.get(i).copied()]
                } else {
                    made.iter().copied().map(Some).collect()
                };
                let own: Option<Vec<InstId>> = own.into_iter().collect();
                let own = own.ok_or_else(|| at(op, Code::HloSyntax, format!("there is no result {i}")))?;
                body.values.insert(name.clone(), own);
            }
        }
        Ok(Vec::new())
    }
    /// The results of one operation.
    fn op(&mut self, op: &Operation, body: &mut Body) -> Result<Vec<InstId>> {
        let operands = op.operands.iter().map(|v| body.get(op, v)).collect::<Result<Vec<_>>>()?;
        if op.name.starts_with("check.") {
            body.checked.extend(operands);
            return Ok(Vec::new());
        }
        match op.name.as_str() {
            "stablehlo.constant" | "arith.constant" => {
                let Some(Attr::Dense(value)) = op.attr(&["value"]) else {
                    return Err(at(op, Code::HloUnsupported, "a constant is written as dense<...>"));
                };
                let (literal, shape) = constant(value.clone());
                Ok(vec![body.push(Op::Constant(literal), Vec::new(), shape)])
            }
            "stablehlo.while" => self.while_loop(op, operands, body),
            "stablehlo.if" | "stablehlo.case" => self.branches(op, operands, body),
            "stablehlo.broadcast_in_dim" | "stablehlo.dynamic_broadcast_in_dim" => broadcast(op, operands, body),
            "stablehlo.optimization_barrier" if operands.len() > 1 => {
                let tuple = body.tuple(operands);
                let shape = body.insts[tuple].shape.clone();
                let barrier = body.push(Op::OptimizationBarrier, vec![tuple], shape);
                Ok(body.parts(barrier))
            }
            "stablehlo.tuple" => Ok(vec![body.tuple(operands)]),
            "stablehlo.composite" => match composite(op) {
                Some(own) => self.plain(&own, operands, body),
                None => self.plain(op, operands, body),
            },
            _ => self.plain(op, operands, body),
        }
    }
    /// An operation that is one instruction.
    fn plain(&mut self, op: &Operation, mut operands: Vec<InstId>, body: &mut Body) -> Result<Vec<InstId>> {
        let refuse = |message: String| at(op, Code::HloUnsupported, message);
        let opcode = opcode(&op.name).ok_or_else(|| refuse(format!("`{}` is not read", op.name)))?;
        let mut comps = Vec::new();
        if let Some(name) = callee(op) {
            comps.push(*self.done.get(name).ok_or_else(|| refuse(format!("the function `{name}` is not known")))?);
        }
        for region in &op.regions {
            comps.push(self.closed(op, region, body)?);
        }
        // What is only of use where sizes are not known.
        let fixed = match op.name.as_str() {
            "stablehlo.rng" => 2,
            "stablehlo.dynamic_reshape" => 1,
            "stablehlo.dynamic_iota" => 0,
            _ => usize::MAX,
        };
        operands.truncate(fixed);
        if op.name == "chlo.square" {
            operands = operands.repeat(2);
        }
        let shape = match &op.types[..] {
            [one] => one.clone(),
            all => Shape::Tuple(all.to_vec()),
        };
        let shapes: Vec<&Shape> = operands.iter().map(|&o| &body.insts[o].shape).collect();
        let mut attrs = attributes::of(op, &opcode, &shapes, &comps).map_err(refuse)?;
        let made = op_from_attrs::op(&opcode, &Some(shape.clone()), &shapes, &mut attrs).map_err(refuse)?;
        let id = body.push_with(made, operands, shape, attrs.into_extra());
        Ok(if op.types.len() == 1 { vec![id] } else { body.parts(id) })
    }
    /// A region as a computation that reads nothing around it but constants.
    fn closed(&mut self, op: &Operation, region: &Region, outer: &Body) -> Result<CompId> {
        let mut body = Body::default();
        for (name, shape) in &region.args {
            let id = body.param(shape.clone());
            body.values.insert(name.clone(), vec![id]);
        }
        let mut names = BTreeSet::new();
        free(region, &mut names);
        for name in names {
            let outside = outer.values.get(&name).and_then(|all| all.first()).map(|&id| &outer.insts[id]);
            let Some(Inst { op: Op::Constant(value), shape, .. }) = outside else {
                let told = format!("its computation reads %{name}, which is neither a constant nor its own");
                return Err(at(op, Code::HloUnsupported, told));
            };
            let id = body.push(Op::Constant(value.clone()), Vec::new(), shape.clone());
            body.values.insert(name, vec![id]);
        }
        let results = self.ops(region, &mut body)?;
        let root = if let [one] = results[..] { one } else { body.tuple(results) };
        Ok(self.push(op, body, root))
    }
    fn push(&mut self, op: &Operation, body: Body, root: InstId) -> CompId {
        let stem = op.name.rsplit('.').next().unwrap_or("region");
        let name = format!("{stem}.{}", self.module.comps.len());
        self.module.comps.push(body.finish(name, root))
    }
    /// A region as a computation of one tuple: first the region's own arguments, then what it reads around it.
    fn open(
        &mut self,
        op: &Operation,
        region: &Region,
        state: &Shape,
        captured: &[(String, usize)],
        results: impl FnOnce(&mut Body, Vec<InstId>, Vec<InstId>) -> InstId,
    ) -> Result<CompId> {
        let mut body = Body::default();
        let param = body.param(state.clone());
        let mut parts = body.parts(param).into_iter();
        for (name, _) in &region.args {
            let part =
                parts.next().ok_or_else(|| at(op, Code::HloSyntax, "a region has more arguments than values"))?;
            body.values.insert(name.clone(), vec![part]);
        }
        let rest: Vec<InstId> = parts.collect();
        let mut from = 0;
        for (name, count) in captured {
            body.values.insert(name.clone(), rest[from..from + count].to_vec());
            from += count;
        }
        let made = self.ops(region, &mut body)?;
        let root = results(&mut body, made, rest);
        Ok(self.push(op, body, root))
    }
    /// The values around the operation that its regions read: names with how many values each, and the values.
    fn captured(op: &Operation, body: &Body) -> Result<(Vec<(String, usize)>, Vec<InstId>)> {
        let mut names = BTreeSet::new();
        op.regions.iter().for_each(|region| free(region, &mut names));
        let (mut counts, mut values) = (Vec::new(), Vec::new());
        for name in names {
            let all = body.values.get(&name);
            let all = all.ok_or_else(|| at(op, Code::HloSyntax, format!("the value %{name} does not exist here")))?;
            values.extend(all);
            counts.push((name, all.len()));
        }
        Ok((counts, values))
    }
    fn while_loop(&mut self, op: &Operation, operands: Vec<InstId>, body: &mut Body) -> Result<Vec<InstId>> {
        let [cond, turn] = &op.regions[..] else { return Err(at(op, Code::HloSyntax, "a loop has two regions")) };
        let n = operands.len();
        if cond.args.len() != n || turn.args.len() != n {
            return Err(at(op, Code::HloSyntax, format!("the regions of a loop over {n} values have {n} arguments")));
        }
        let (captured, values) = Self::captured(op, body)?;
        let init = body.tuple([operands, values].concat());
        let state = body.insts[init].shape.clone();
        let cond = self.open(op, cond, &state, &captured, |b, made, _| match made[..] {
            [one] => one,
            _ => b.tuple(made),
        })?;
        let turn = self.open(op, turn, &state, &captured, |b, made, rest| b.tuple([made, rest].concat()))?;
        let id = body.push(Op::While { cond, body: turn }, vec![init], state);
        let mut parts = body.parts(id);
        parts.truncate(n);
        Ok(parts)
    }
    fn branches(&mut self, op: &Operation, operands: Vec<InstId>, body: &mut Body) -> Result<Vec<InstId>> {
        let [selector] = operands[..] else { return Err(at(op, Code::HloSyntax, "one value chooses a branch")) };
        if op.regions.is_empty() || (op.name == "stablehlo.if" && op.regions.len() != 2) {
            return Err(at(op, Code::HloSyntax, "the branches are not as many as the operation has"));
        }
        let (captured, values) = Self::captured(op, body)?;
        let given = body.tuple(values);
        let state = body.insts[given].shape.clone();
        let all = op.regions.iter().map(|region| self.open(op, region, &state, &captured, |b, made, _| b.tuple(made)));
        let all = all.collect::<Result<Vec<_>>>()?;
        let operands = [vec![selector], vec![given; all.len()]].concat();
        let id = body.push(Op::Conditional(all), operands, Shape::Tuple(op.types.clone()));
        Ok(body.parts(id))
    }
}

/// The operation that a composite stands for, where HLO has it: the others are what they are decomposed into.
fn composite(op: &Operation) -> Option<Operation> {
    const KNOWN: &[&str] = &["chlo.erf", "chlo.top_k"];
    let Some(Attr::Text(name)) = op.attr(&["name", "callee"]) else { return None };
    let attrs = match op.attr(&["composite_attributes"]) {
        Some(Attr::Dict(attrs)) => attrs.clone(),
        _ => Vec::new(),
    };
    KNOWN.contains(&name.as_str()).then(|| Operation { name: name.clone(), attrs, ..op.clone() })
}

/// HLO repeats whole dimensions only: a dimension of one that grows is taken away before.
fn broadcast(op: &Operation, operands: Vec<InstId>, body: &mut Body) -> Result<Vec<InstId>> {
    let wrong = |message: &str| at(op, Code::HloSyntax, message);
    let dims = op.attr(&["dims", "broadcast_dimensions"]).and_then(Attr::ints).ok_or_else(|| wrong("expects dims"))?;
    let (Some(&x), [Shape::Array(out)]) = (operands.first(), &op.types[..]) else {
        return Err(wrong("expects one array"));
    };
    let Some(from) = body.insts[x].shape.as_array().cloned() else { return Err(wrong("expects an array")) };
    let axes: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
    if axes.len() != from.rank() || axes.iter().any(|&d| d >= out.rank()) {
        return Err(wrong("the dims are no dimensions of the result"));
    }
    let kept: Vec<usize> = (0..axes.len()).filter(|&i| from.dims[i] != 1 || out.dims[axes[i]] == 1).collect();
    let mut x = x;
    if kept.len() < axes.len() {
        let sizes: Vec<u64> = kept.iter().map(|&i| from.dims[i]).collect();
        x = body.push(Op::Reshape, vec![x], Shape::array(from.dtype, sizes));
    }
    let axes = kept.into_iter().map(|i| axes[i]).collect();
    Ok(vec![body.push(Op::Broadcast(axes), vec![x], op.types[0].clone())])
}
