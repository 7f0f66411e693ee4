//! Conversion of functions to instructions.
//!
//! A function of fixed types becomes one computation. A function with open sizes, or one that takes sizes or the platform as
//! arguments, is inlined into each call, so that values known there are known inside; `sizes.rs` infers its types.
use std::collections::{HashMap, HashSet};

use super::attribute::constant;
use super::attributes::{self, opcode};
use super::converter::{Converter, Host, ShapeAssertions, SymbolScope, error_at};
use super::custom_call;
use super::shards::{self, ProgramShardings};
use super::sizes::{self, StaticOperation, drop_size_operands};
use super::tree::{FuncOp, FuncPort, MlirAttr, ModuleTree, Operation, RegionBlock, callee, callees};
use crate::diag::{Code, Error, Result};
use crate::hlo::SymbolicArray;
use crate::hlo::schema;
use crate::hlo::symbolic::{self, Builder};
use crate::hlo::{CompId, InstId, Literal, Module, Op, Shape, SizeRepr, Source};
use crate::symbolic::Dim;

/// Upper limit of operations in a module, counted each time a function is inlined.
const MOST_OPERATIONS: usize = 1 << 20;

/// Attributes of arguments whose memory callers give away, for a result that is named or for any.
const DONATIONS: &[&str] = &["tf.aliasing_output", "jax.buffer_donor"];

/// Host of a module that stands alone, without a surrounding graph.
struct Alone(Builder);

impl Host for Alone {
    fn builder(&mut self) -> &mut Builder {
        &mut self.0
    }
    fn known(&mut self, id: InstId) -> Option<SymbolicArray> {
        match &self.0.current_computation().insts.get(id)?.op {
            Op::Constant(Literal::Array(t)) => Some(SymbolicArray { value: t.clone(), sizes: None }),
            _ => None,
        }
    }
    fn difference(&mut self, _: InstId, _: InstId, _: Dim) -> Option<Dim> {
        None
    }
    fn call(&mut self, _: i64, _: &[InstId]) -> Result<Vec<InstId>> {
        Err(Error::user(
            Code::HloUnsupported,
            "the module calls a function of a graph, and there is no graph around it",
        ))
    }
}

/// Converts all functions that the entry reaches to a module, with the names of its results. An argument that asks for the
/// platform gets `platform`, if that is given.
pub(super) fn module(functions: &ModuleTree, platform: Option<usize>) -> Result<Source> {
    let mut host = Alone(Builder::new(entry(functions)?));
    let (root, shardings) = root(&mut host, functions, platform, None)?;
    let mut source = source(functions, host.0.finish(root)?.at_current_sizes())?;
    if functions.partition_count() > 1 {
        source.module.extra.push(shardings.to_header_attribute());
    }
    Ok(source)
}

/// Converts the entry to a root in a given host, for these sizes of the arguments or the declared ones. Returns the root, and the shardings
/// of arguments and results.
pub(super) fn root(
    host: &mut dyn Host,
    functions: &ModuleTree,
    platform: Option<usize>,
    dims: Option<&[Vec<Dim>]>,
) -> Result<(InstId, ProgramShardings)> {
    let entry = entry(functions)?;
    let function = &functions.all[entry];
    let (mut args, mut shards) = (Vec::new(), Vec::new());
    let mut own = dims.unwrap_or_default().iter();
    for (i, ((_, shape), port)) in function.body.args.iter().zip(&function.args).enumerate() {
        if let (Some(index), true) = (platform, is_platform_argument(port)) {
            args.push(platform_index(host.builder(), shape, index)?);
            shards.push(None);
            continue;
        }
        let given = match (shape, own.next()) {
            (Shape::Array(a), Some(dims)) => symbolic::Shape::array(a.dtype, dims.clone()),
            _ => shape.to_symbolic(),
        };
        let shard = match given.at_current_sizes().as_array() {
            Some(array) => shards::argument_shard(functions, function, i, &array.dims)?,
            None => None,
        };
        let b = host.builder();
        let id = b.parameter(match (&shard, shape) {
            (Some(shard), Shape::Array(a)) => Shape::array(a.dtype, shard.dims()).to_symbolic(),
            _ => given,
        });
        b.rename(id, argument_name(port, i));
        args.push(id);
        shards.push(shard);
    }
    let mut converter = Converter::new(host, functions, entry, ShapeAssertions::Sizes)?;
    for (&id, shard) in args.iter().zip(shards) {
        shard.into_iter().for_each(|shard| converter.mark_shard(id, shard));
    }
    let results = converter.entry(entry, &args)?;
    let (results, shardings) = converter.shard_results(function, &args, &results)?;
    let root = if let [one] = results[..] { one } else { host.builder().tuple(&results) };
    Ok((root, shardings))
}

/// Module with its own name, and the names of its results.
pub(super) fn source(functions: &ModuleTree, mut module: Module) -> Result<Source> {
    let entry = entry(functions)?;
    module.name = if functions.name.is_empty() { entry.to_string() } else { functions.name.clone() };
    module.extra = functions.header.clone();
    module.extra.extend(buffer_donor(&functions.all[entry]));
    let results = functions.all[entry].results.iter();
    Ok(Source { module, results: results.map(|port| port.text("jax.result_info").map(result_name)).collect() })
}

/// The arguments whose memory callers give away, as HLO's header lists them; none where there are none.
fn buffer_donor(entry: &FuncOp) -> Option<(String, String)> {
    let is_donated = |port: &FuncPort| port.attrs.iter().any(|(name, _)| DONATIONS.contains(&name.as_str()));
    let donated = entry.args.iter().enumerate().filter(|(_, port)| is_donated(port));
    let all: Vec<String> = donated.map(|(i, _)| format!("({i}, {{}})")).collect();
    (!all.is_empty()).then(|| ("buffer_donor".to_string(), format!("{{ {} }}", all.join(", "))))
}

/// Indices of the entry's arguments that callers give: all but the platform index.
pub(super) fn caller_arguments(entry: &FuncOp, platform: Option<usize>) -> Vec<usize> {
    (0..entry.args.len().min(entry.body.args.len()))
        .filter(|&i| platform.is_none() || !is_platform_argument(&entry.args[i]))
        .collect()
}

/// Name of argument `i`.
pub(super) fn argument_name(port: &FuncPort, i: usize) -> String {
    let path = port.name.as_deref().map(steps).filter(|steps| !steps.is_empty());
    path.map_or_else(|| format!("arg{i}"), |steps| steps.join("_"))
}

/// The entry function of a module: `main`, or else the first.
pub(super) fn entry(functions: &ModuleTree) -> Result<&str> {
    match functions.all.get_index(0) {
        Some(_) if functions.all.contains_key("main") => Ok("main"),
        Some((first, _)) => Ok(first),
        None => Err(Error::user(Code::HloSyntax, "there is no function")),
    }
}

/// Whether an argument of the entry is the index of the platform.
pub(super) fn is_platform_argument(port: &FuncPort) -> bool {
    port.text("jax.global_constant") == Some("_platform_index")
}

/// Index of the platform as a constant of the argument's type.
pub(super) fn platform_index(b: &mut Builder, shape: &Shape, index: usize) -> Result<InstId> {
    match shape {
        Shape::Array(a) if a.dims.is_empty() && a.dtype.is_integer() => Ok(b.scalar(a.dtype, index as f64)),
        _ => Err(Error::user(Code::HloInvalid, format!("the number of the platform is {shape}, and no whole number"))),
    }
}

/// Name for JAX's path to a result: `logits` for `result['logits']`, `result_0` for `result[0]`.
fn result_name(path: &str) -> String {
    let steps = steps(path);
    let own = if steps.first() == Some(&"result") { &steps[1..] } else { &steps[..] };
    match own.first() {
        None => "result".to_string(),
        Some(first) if first.starts_with(|c: char| c.is_ascii_digit()) => format!("result_{}", own.join("_")),
        Some(_) => own.join("_"),
    }
}

/// Names and numbers in a path such as `params['layer'][0]`.
fn steps(path: &str) -> Vec<&str> {
    path.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|step| !step.is_empty()).collect()
}

impl<'a, 'h> Converter<'a, 'h> {
    /// Creates a converter of everything that `entry` reaches.
    ///
    /// Errors: those of [`ModuleTree::callees_first`].
    pub fn new(
        host: &'h mut dyn Host,
        functions: &'a ModuleTree,
        entry: &str,
        checks: ShapeAssertions,
    ) -> Result<Self> {
        let mut open = HashSet::new();
        for name in functions.callees_first(entry)? {
            let (name, function) = functions.all.get_key_value(name).ok_or_else(|| missing(name))?;
            let mut called = Vec::new();
            callees(&function.body, &mut called);
            if sizes::has_open_sizes(function) || called.iter().any(|name| open.contains(name)) {
                open.insert(name.as_str());
            }
        }
        let (done, shards, gathered) = (HashMap::new(), HashMap::new(), HashSet::new());
        let device_classes = Vec::new();
        Ok(Converter { host, checks, functions, shards, gathered, device_classes, done, open, depth: 0, operations: 0 })
    }
    /// Converts the entry and returns its results on `args`.
    pub fn entry(&mut self, name: &str, args: &[InstId]) -> Result<Vec<InstId>> {
        let (name, function) = self.functions.all.get_key_value(name).ok_or_else(|| missing(name))?;
        let mut scope = SymbolScope { open: self.open.contains(name.as_str()), ..SymbolScope::default() };
        let results = self.body(function, &mut scope, args)?;
        Ok(if results.is_empty() { scope.checked } else { results })
    }
    fn body(&mut self, function: &'a FuncOp, scope: &mut SymbolScope, args: &[InstId]) -> Result<Vec<InstId>> {
        for ((arg, _), &id) in function.body.args.iter().zip(args) {
            scope.values.insert(arg.clone(), vec![id]);
        }
        self.convert_region(&function.body, scope)
    }
    /// Converts a region and returns its results.
    pub fn convert_region(&mut self, region: &'a RegionBlock, scope: &mut SymbolScope) -> Result<Vec<InstId>> {
        self.operations = self.operations.saturating_add(region.ops.len());
        if self.operations > MOST_OPERATIONS {
            return Err(Error::user(
                Code::TooLarge,
                format!("the module stands for more than {MOST_OPERATIONS} operations"),
            ));
        }
        for op in &region.ops {
            if op.is_return() {
                return op.operands.iter().map(|v| scope.get(op, v)).collect();
            }
            let made = self.op(op, scope)?;
            for (i, name) in op.results.iter().enumerate() {
                // `%a, %b = ...` names each result, `%r:2 = ...` all of them.
                let own = if op.results.len() > 1 {
                    vec![made.get(i).copied()]
                } else {
                    made.iter().copied().map(Some).collect()
                };
                let own: Option<Vec<InstId>> = own.into_iter().collect();
                let own = own.ok_or_else(|| error_at(op, Code::HloSyntax, format!("there is no result {i}")))?;
                scope.values.insert(name.clone(), own);
            }
        }
        Ok(Vec::new())
    }
    /// Converts an operation and returns its results.
    fn op(&mut self, op: &'a Operation, scope: &mut SymbolScope) -> Result<Vec<InstId>> {
        let operands = op.operands.iter().map(|v| scope.get(op, v)).collect::<Result<Vec<_>>>()?;
        if op.name.starts_with("check.") {
            scope.checked.extend(operands);
            return Ok(Vec::new());
        }
        if let Some(results) = self.convert_on_shards(op, &operands, scope)? {
            return Ok(results);
        }
        let operands = self.operands_of(op, operands)?;
        match op.name.as_str() {
            shards::CAST => Ok(operands),
            "sdy.manual_computation" => self.convert_manual_computation(op, &operands, scope),
            name if name.starts_with("sdy.") => self.convert_sharding_constraint(op, &operands),
            "stablehlo.constant" | "arith.constant" => {
                let Some(MlirAttr::Dense(value)) = op.attr(&["value"]) else {
                    return Err(error_at(op, Code::HloUnsupported, "a constant is written as dense<...>"));
                };
                let (literal, shape) = constant(value.clone());
                Ok(vec![self.builder().push(symbolic::Op::Constant(literal), &[], shape.to_symbolic())])
            }
            "stablehlo.while" => self.convert_while(op, operands, scope),
            "stablehlo.if" | "stablehlo.case" => self.convert_branches(op, operands, scope),
            "stablehlo.optimization_barrier" if operands.len() > 1 => {
                let tuple = self.builder().tuple(&operands);
                let barrier = self.builder().add_inst(Op::OptimizationBarrier, &[tuple]);
                Ok(self.parts(barrier))
            }
            "stablehlo.all_to_all" => self.all_to_all(op, &operands),
            "stablehlo.tuple" => Ok(vec![self.builder().tuple(&operands)]),
            "stablehlo.custom_call" if sizes::call_target(op) == Some("ApproxTopK") => {
                self.approximate_top_k(op, &operands)
            }
            "stablehlo.custom_call" if self.belongs_to_context(op) => self.convert_assertion_or_call(op, &operands),
            "stablehlo.custom_call" if !self.functions.header.is_empty() => {
                if let Some(device) = self.calling_device(op)? {
                    return self.convert_on_one_device(op, operands, device, scope);
                }
                match self.convert_sharding_call(op, &operands)? {
                    Some(results) => Ok(results),
                    None => self.single_instruction(op, operands, &[], scope),
                }
            }
            "stablehlo.composite" => match composite(op) {
                Some(own) => self.single_instruction(&own, operands, &[], scope),
                None => self.call(op, operands),
            },
            _ if callee(op).is_some() => self.call(op, operands),
            _ => {
                let comps = op
                    .regions
                    .iter()
                    .map(|region| self.convert_closed_region(op, region, scope))
                    .collect::<Result<Vec<_>>>()?;
                self.single_instruction(op, operands, &comps, scope)
            }
        }
    }
    /// Converts a call of a function of the module.
    fn call(&mut self, op: &Operation, operands: Vec<InstId>) -> Result<Vec<InstId>> {
        let name = callee(op).unwrap_or_default();
        let (name, function) = self.functions.all.get_key_value(name).ok_or_else(|| missing(name))?;
        if function.body.args.len() != operands.len() {
            return Err(error_at(
                op,
                Code::HloSyntax,
                format!("`{name}` takes {} arguments", function.body.args.len()),
            ));
        }
        let open = self.open.contains(name.as_str());
        if open || self.has_shards(&operands) {
            self.enter(op)?;
            let results = self.body(function, &mut SymbolScope { open, ..SymbolScope::default() }, &operands)?;
            self.leave();
            return Ok(results);
        }
        let comp = self.convert_static_function(op, name)?;
        let called = self.builder().add_inst(Op::Call(comp), &operands);
        Ok(if op.types.len() == 1 { vec![called] } else { self.parts(called) })
    }
    /// Computation of a function whose types are static.
    pub fn convert_static_function(&mut self, op: &Operation, name: &str) -> Result<CompId> {
        if let Some(&comp) = self.done.get(name) {
            return Ok(comp);
        }
        let (name, function) = self.functions.all.get_key_value(name).ok_or_else(|| missing(name))?;
        self.enter(op)?;
        self.begin_computation(name);
        let args: Vec<InstId> =
            function.body.args.iter().map(|(_, shape)| self.builder().parameter(shape.to_symbolic())).collect();
        let results = self.body(function, &mut SymbolScope::default(), &args)?;
        let results = self.gather_whole_arrays(&results);
        let root = if let [one] = results[..] { one } else { self.builder().tuple(&results) };
        let comp = self.builder().end_computation(root);
        self.leave();
        self.done.insert(name, comp);
        Ok(comp)
    }
    /// Converts an operation that becomes one instruction.
    pub fn single_instruction(
        &mut self,
        op: &Operation,
        operands: Vec<InstId>,
        comps: &[CompId],
        scope: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        if op.name == "stablehlo.real_dynamic_slice"
            && let Some(part) = self.convert_dynamic_slice(op, &operands)?
        {
            return Ok(vec![part]);
        }
        if let Some(StaticOperation { op, operands, comps: own, numbers }) = self.as_static_operation(op, &operands)? {
            return self.convert_single(&op, operands, &numbers, own.as_deref().unwrap_or(comps), scope);
        }
        self.convert_single(op, operands, &[], comps, scope)
    }
    /// Converts an operation of one instruction, with sizes that were operands in the order of its attributes.
    fn convert_single(
        &mut self,
        op: &Operation,
        mut operands: Vec<InstId>,
        numbers: &[Vec<Dim>],
        comps: &[CompId],
        scope: &SymbolScope,
    ) -> Result<Vec<InstId>> {
        let refuse = |message: String| error_at(op, Code::HloUnsupported, message);
        if matches!(op.name.as_str(), "stablehlo.broadcast_in_dim" | "stablehlo.dynamic_broadcast_in_dim") {
            return self.broadcast(op, operands, scope);
        }
        let opcode = opcode(&op.name).ok_or_else(|| refuse(format!("`{}` is not read", op.name)))?;
        // Operands that are needed only if sizes are unknown are dropped.
        let needed = match op.name.as_str() {
            "stablehlo.rng" => 2,
            "stablehlo.dynamic_reshape" => 1,
            "stablehlo.dynamic_iota" => 0,
            _ => usize::MAX,
        };
        let sizes = operands.split_off(needed.min(operands.len()));
        if op.name == "chlo.square" {
            operands = operands.repeat(2);
        }
        let own: Vec<&Shape> = op.types.iter().collect();
        let laid_out = custom_call::layouts(op, "result_layouts", &own).map_err(refuse)?;
        let declared = match if laid_out.is_empty() { &op.types[..] } else { &laid_out[..] } {
            [one] => one.clone(),
            all => Shape::Tuple(all.to_vec()),
        };
        let b = self.host.builder();
        // Among shapes, only that of a convolution's kernel is needed.
        let is_read = |i: usize| &*opcode == "convolution" && i == 1;
        let shape = |(i, &o)| if is_read(i) { b.shape(o).pin_sizes() } else { b.shape(o).at_current_sizes() };
        let shapes: Vec<Shape> = operands.iter().enumerate().map(shape).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let mut attrs = attributes::convert_attributes(op, &opcode, &shapes, comps).map_err(refuse)?;
        let made = schema::op(&opcode, &Some(declared.clone()), &shapes, &mut attrs).map_err(refuse)?;
        let mut own = made.to_symbolic();
        sizes::set_size_attributes(&mut own, numbers);
        let shape = self.result_shape(op, &own, declared, &operands, &sizes)?;
        let extra = attrs.into_extra();
        let known = match &made {
            Op::Foreign(call) if opcode == "custom-call" => {
                let mut call = call.clone();
                call.attrs.extend(extra.iter().cloned());
                self.host.custom_call(&call, &drop_size_operands(op, &operands), &shape)?
            }
            Op::Gather(_) if scope.open => match &own {
                symbolic::Op::Gather(dims) => self.gather_as_slice(dims, &operands, &shape),
                _ => None,
            },
            _ => None,
        };
        let id = known.unwrap_or_else(|| {
            let id = self.builder().push(own, &operands, shape.clone());
            self.builder().set_opaque_attributes(id, extra);
            id
        });
        if op.types.len() != 1 {
            return Ok(self.parts(id));
        }
        Ok(vec![if scope.open { self.fold_if_constant(op, id) } else { id }])
    }
    /// Converts a broadcast; HLO repeats whole dimensions only, so that a dimension of one that is expanded is removed first.
    fn broadcast(&mut self, op: &Operation, operands: Vec<InstId>, scope: &SymbolScope) -> Result<Vec<InstId>> {
        let wrong = |message: &str| error_at(op, Code::HloSyntax, message);
        let dims = op.attr(&["dims", "broadcast_dimensions"]).and_then(MlirAttr::ints);
        let dims = dims.ok_or_else(|| wrong("expects dims"))?;
        let (Some(&x), [declared]) = (operands.first(), &op.types[..]) else { return Err(wrong("expects one array")) };
        let made = symbolic::Op::Broadcast(Vec::new());
        let shape = self.result_shape(op, &made, declared.clone(), &operands[..1], &operands[1..])?;
        let Some(out) = shape.as_array().cloned() else { return Err(wrong("expects one array")) };
        let Some(from) = self.builder().shape(x).as_array().cloned() else { return Err(wrong("expects an array")) };
        let axes: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
        if axes.len() != from.rank() || axes.iter().any(|&d| d >= out.rank()) {
            return Err(wrong("the dims are no dimensions of the result"));
        }
        let is_kept = |i: &usize| match (from.dims[*i], out.dims[axes[*i]]) {
            (from, out) if from.is_one() => out.is_one(),
            (from, out) => from.is_same(out) || from != 1 || out == 1,
        };
        let kept: Vec<usize> = (0..axes.len()).filter(is_kept).collect();
        let mut x = x;
        if kept.len() < axes.len() {
            let sizes: Vec<Dim> = kept.iter().map(|&i| from.dims[i]).collect();
            x = self.builder().push(symbolic::Op::Reshape, &[x], symbolic::Shape::array(from.dtype, sizes));
        }
        let axes = kept.into_iter().map(|i| axes[i]).collect();
        let id = self.builder().push(symbolic::Op::Broadcast(axes), &[x], shape);
        Ok(vec![if scope.open { self.fold_if_constant(op, id) } else { id }])
    }
}

fn missing(name: &str) -> Error {
    Error::user(Code::HloSyntax, format!("there is no function `{name}`"))
}

/// The operation that a composite stands for, if HLO has it; other composites are decomposed.
fn composite(op: &Operation) -> Option<Operation> {
    const KNOWN: &[&str] = &["chlo.erf", "chlo.top_k"];
    let Some(MlirAttr::Text(name)) = op.attr(&["name", "callee"]) else { return None };
    let attrs = match op.attr(&["composite_attributes"]) {
        Some(MlirAttr::Dict(attrs)) => attrs.clone(),
        _ => Vec::new(),
    };
    KNOWN.contains(&name.as_str()).then(|| Operation { name: name.clone(), attrs, ..op.clone() })
}
