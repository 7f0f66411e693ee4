//! Compilation of one cluster: lowered with the inferred shapes of its arguments, then compiled.
use super::GraphWithFacts;
use super::values::{self, ArgumentValue};
use crate::codegen::{Launches, Object};
use crate::compile::{self, Functions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::dump::Dump;
use crate::graph::{Attr, Endpoint, Node, Program};
use crate::kernel;
use crate::lower::Lowered;
use crate::opdef;
use crate::ops::symbols::{DimId, InferredDim};
use crate::prepare::{self, FeedSpec, Request};
use crate::rewrite::calls::ClusterPorts;
use crate::target::CodeRequest;
use crate::tensor::{DType, Sizes, Tensor};

/// An argument of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterArg {
    /// The element type.
    pub dtype: DType,
    /// TensorFlow's `DataType` number, which distinguishes quantized types from the integers that hold them.
    pub number: i32,
    /// The dimensions, with the upper bound for a size that varies from call to call.
    pub dims: Vec<u64>,
    /// For each axis, index into [`CompiledCluster::sizes`] of the size that varies from call to call; empty if all dimensions are fixed.
    pub axes: Vec<Option<usize>>,
    /// The constant value that the code was compiled for, if any.
    pub value: Option<ConstantArgument>,
    /// The argument's index among those of the cluster.
    pub place: usize,
}

/// Value of an argument that is known except for sizes that vary from call to call.
#[derive(Clone, Debug)]
pub struct ConstantArgument {
    /// The elements, with 0 for each element that equals a varying size.
    pub tensor: Tensor,
    /// For each element, index into [`CompiledCluster::sizes`] of the varying size that it equals; empty if all elements are constants.
    pub sizes: Vec<Option<usize>>,
}

/// A cluster lowered to HLO.
pub struct LoweredCluster {
    args: Vec<ClusterArg>,
    /// TensorFlow's `DataType` numbers of the results.
    result_numbers: Vec<i32>,
    /// The module from the cluster's inputs to its outputs.
    pub lowered: Lowered,
    /// Side effects that the compiled code omits, such as prints and assertions, as sentences for the user.
    pub left_out: Vec<String>,
}

/// A cluster compiled to machine code.
pub struct CompiledCluster {
    /// Prefix of the cluster's symbols in the object file.
    pub name: String,
    /// Arguments of the op; the code takes those without a known value. Constants of the graph are not arguments.
    pub args: Vec<ClusterArg>,
    /// TensorFlow's `DataType` numbers of the results.
    pub result_numbers: Vec<i32>,
    /// The entry function: its results and its workspace.
    pub face: kernel::Program,
    /// The varying sizes, and the axes of arguments and results that have them.
    pub sizes: Sizes,
    /// Whether there is one varying size, and a call in which it is above its bound may be split into several calls along it.
    pub by_rows: bool,
    /// The object file.
    pub object: Object,
}

/// An argument before the cluster is lowered: type, shape and value as far as they are known.
struct Port {
    at: Endpoint,
    dtype: DType,
    /// TensorFlow's `DataType` number.
    number: i32,
    dims: Vec<InferredDim>,
    value: Option<ArgumentValue>,
    /// The argument's index among those of the cluster.
    place: usize,
}

/// Lowers the nodes between the inputs and outputs of a cluster. Known values of arguments are used: constants of the graph, variables
/// that nothing changes, and values that follow from shapes.
///
/// Errors: those of the lowering; `UnknownDim` for an argument of unknown shape; `UnsupportedCase` for a cluster without results.
pub fn lower(scene: &GraphWithFacts, ports: &ClusterPorts) -> Result<LoweredCluster> {
    if ports.results.is_empty() {
        return Err(Diagnostic::new(Code::UnsupportedCase, "the cluster has no result").into());
    }
    let mut program = scene.bare.clone();
    let mut taken = Vec::new();
    for (place, &(at, number)) in ports.args.iter().enumerate() {
        if let Some(value) = scene.variable(at) {
            let value = ArgumentValue { tensor: value.clone(), sizes: Vec::new() };
            values::replace_by_value(&mut program, at, &value, &values::SizeSources::new());
        } else if !is_constant(&program.graph.nodes[at.node]) {
            taken.push(Port { number, place, ..port(scene, at, number)? });
        }
    }
    program.replace_reads_by_values();
    let sources = values::size_sources(taken.iter().map(|p| (p.at, &p.dims[..])));
    let mut feeds = Vec::new();
    for port in &mut taken {
        port.value = scene.fact(port.at).and_then(|fact| values::argument_value(fact, &sources));
        match &port.value {
            Some(value) => values::replace_by_value(&mut program, port.at, value, &sources),
            None => feeds.push(feed(scene, port)),
        }
    }
    let fetches = ports.results.iter().map(|&(at, _)| spelled(&program, at)).collect();
    let request = Request { feeds, fetches, ..Request::default() };
    program.signatures.clear();
    let prepared = prepare::prepare(program, &request)?;
    let left_out = prepared.warnings.iter().map(|d| format!("{}: {}", d.message, d.notes.join(", "))).collect();
    let lowered = compile::lower_prepared(&prepared)?;
    agree(ports, &lowered)?;
    let args = taken.iter().map(|port| arg(scene, port, &lowered)).collect();
    let result_numbers = ports.results.iter().map(|&(_, number)| number).collect();
    Ok(LoweredCluster { args, result_numbers, lowered, left_out })
}

/// Describes an argument of the compiled code, once the cluster is lowered and the varying sizes have indices.
fn arg(scene: &GraphWithFacts, port: &Port, lowered: &Lowered) -> ClusterArg {
    let all = lowered.size_variants.as_ref().map_or(&[][..], |sized| &sized.sizes.all);
    let number = |id: DimId| all.iter().position(|s| scene.bound(id).is_some_and(|b| b.name.as_ref() == Some(&s.name)));
    let open = |d: &InferredDim| if let InferredDim::Unknown(id) = d { number(*id) } else { None };
    let most = |d: &InferredDim| match d {
        InferredDim::Known(n) => *n,
        InferredDim::Unknown(id) => scene.bound(*id).map_or(0, |b| b.most),
    };
    let axes: Vec<Option<usize>> = port.dims.iter().map(open).collect();
    let holds = |value: &ArgumentValue| ConstantArgument {
        tensor: value.tensor.clone(),
        sizes: value.sizes.iter().map(|id| id.and_then(number)).collect(),
    };
    ClusterArg {
        dtype: port.dtype,
        number: port.number,
        dims: port.dims.iter().map(most).collect(),
        axes: if axes.iter().all(Option::is_none) { Vec::new() } else { axes },
        value: port.value.as_ref().map(holds),
        place: port.place,
    }
}

/// The feed specification of an argument that the code takes.
fn feed(scene: &GraphWithFacts, port: &Port) -> FeedSpec {
    let known = |d: &InferredDim| if let InferredDim::Known(n) = d { Some(*n) } else { None };
    let bound = |d: &InferredDim| if let InferredDim::Unknown(id) = d { scene.bound(*id).cloned() } else { None };
    FeedSpec {
        name: spelled(&scene.bare, port.at),
        dtype: Some(port.dtype),
        dims: Some(port.dims.iter().map(known).collect()),
        bounds: port.dims.iter().map(bound).collect(),
        value: None,
    }
}

/// Checks that each result has the element type that the graph declares. Errors: `UnsupportedCase`.
fn agree(ports: &ClusterPorts, lowered: &Lowered) -> Result<()> {
    for (&(_, number), result) in ports.results.iter().zip(&lowered.results) {
        if DType::from_tf(number) != Some(result.dtype) || opdef::spec_name(number).is_none() {
            let told = format!(
                "`{}` is {} in TensorFlow and {} compiled",
                result.name,
                opdef::type_name(number),
                result.dtype
            );
            return Err(Diagnostic::new(Code::UnsupportedCase, told).into());
        }
    }
    Ok(())
}

fn spelled(program: &Program, at: Endpoint) -> String {
    format!("{}:{}", program.graph.nodes[at.node].name, at.port)
}

fn is_constant(node: &Node) -> bool {
    &*node.op == "Const" && matches!(node.attr("value"), Some(Attr::Tensor(_)))
}

/// Type and inferred shape of the argument `at`, whose `DataType` number is `number`. Errors: `UnknownDim` for an unknown shape,
/// `UnsupportedType` for a type that ops of a library can't take.
fn port(scene: &GraphWithFacts, at: Endpoint, number: i32) -> Result<Port> {
    let Some((dtype, dims)) = scene.fact(at).and_then(|fact| scene.array(fact)) else {
        let told = format!("the shape of the argument `{}` is not known", spelled(&scene.bare, at));
        return Err(Diagnostic::new(Code::UnknownDim, told).into());
    };
    if DType::from_tf(number) != Some(dtype) || opdef::spec_name(number).is_none() {
        let told = format!("no op of TensorFlow takes the type of `{}`, {dtype}", spelled(&scene.bare, at));
        return Err(Diagnostic::new(Code::UnsupportedType, told).into());
    }
    Ok(Port { at, dtype, number, dims, value: None, place: 0 })
}

/// Compiles a cluster; its symbols start with `name`.
pub fn compile(
    ready: LoweredCluster,
    name: &str,
    requests: &[CodeRequest],
    dump: &mut Option<Dump>,
) -> Result<CompiledCluster> {
    let LoweredCluster { args, result_numbers, lowered, .. } = ready;
    // the last piece of a split call may have one row only
    let by_rows =
        lowered.size_variants.as_ref().is_some_and(|s| s.by_rows && s.sizes.all.iter().all(|size| size.least <= 1));
    let functions = Functions { all: vec![(name.to_string(), lowered)], init: None };
    let built = compile::build_functions(functions, name, "", requests, Launches::Direct, std::slice::from_mut(dump))?;
    if let (Some(dump), Some(module)) = (dump, built.modules.first()) {
        dump.add_results(module, &built.programs(), &built.object.content)?;
    }
    if let Some(callee) = built.bundle.face.prototypes().first() {
        let told = format!(
            "it calls `{}`, which the user of an object defines, and a library for TensorFlow has nobody to",
            callee.name
        );
        return Err(Diagnostic::new(Code::UnsupportedCase, told).into());
    }
    let entry = built.bundle.face.entries.into_iter().next();
    let entry = entry.ok_or_else(|| Error::internal("rewrite", "a cluster without a function"))?;
    let (face, sizes) = (entry.program, entry.sizes);
    let name = name.to_string();
    Ok(CompiledCluster { name, args, result_numbers, face, sizes, by_rows, object: built.object })
}
