//! One cluster: lowered with the shapes that inference gives its arguments, and compiled.
use super::{Scene, fixed};
use crate::codegen::{Launches, Object};
use crate::compile::{self, Functions};
use crate::diag::{Code, Diagnostic, Result};
use crate::dump::Dump;
use crate::graph::{Attr, Endpoint, Node, Program, TfType};
use crate::kernel;
use crate::lower::Lowered;
use crate::opdef;
use crate::prepare::{self, FeedSpec, Request};
use crate::rewrite::calls::Ports;
use crate::target::Target;
use crate::tensor::{DType, Tensor};
use std::sync::Arc;

/// An argument of a cluster.
#[derive(Clone, Debug)]
pub struct Arg {
    /// Its type.
    pub dtype: DType,
    /// Its sizes.
    pub dims: Vec<u64>,
    /// What it holds, if the code was compiled for that.
    pub value: Option<Tensor>,
    /// Its place among the arguments of the cluster.
    pub place: usize,
}

/// A cluster as HLO.
pub struct Ready {
    args: Vec<Arg>,
    /// The module between the cluster's ports.
    pub lowered: Lowered,
}

/// A cluster as machine code.
pub struct Compiled {
    /// The first part of its symbols.
    pub name: String,
    /// The arguments of the op; the code takes those without a value. Constants of the graph are no arguments.
    pub args: Vec<Arg>,
    /// What callers see: results and workspace.
    pub face: kernel::Program,
    /// The machine code.
    pub object: Object,
}

/// Lowers the nodes between the ports of a cluster. What its arguments hold is used where it is known: constants of the graph,
/// and what follows from shapes.
///
/// Errors: those of the lowering; `UnknownDim` where the shape of an argument is not known; `UnsupportedCase` for a cluster
/// without results.
pub fn lower(scene: &Scene, ports: &Ports) -> Result<Ready> {
    if ports.results.is_empty() {
        return Err(Diagnostic::new(Code::UnsupportedCase, "the cluster has no result").into());
    }
    let mut program = scene.bare.clone();
    let mut args = Vec::new();
    let mut feeds = Vec::new();
    for (place, &(at, _)) in ports.args.iter().enumerate() {
        if is_constant(&program.graph.nodes[at.node]) {
            continue;
        }
        let arg = arg(scene, at, place)?;
        match &arg.value {
            Some(value) => replace(&mut program, at, value),
            None => feeds.push(FeedSpec {
                name: spelled(&program, at),
                dtype: Some(arg.dtype),
                dims: Some(arg.dims.iter().copied().map(Some).collect()),
                ..FeedSpec::default()
            }),
        }
        args.push(arg);
    }
    let fetches = ports.results.iter().map(|&(at, _)| spelled(&program, at)).collect();
    let request = Request { feeds, fetches, ..Request::default() };
    program.signatures.clear();
    let lowered = compile::lowered(&prepare::prepare(program, &request)?)?;
    if lowered.sized.is_some() {
        let told = "how large a result is depends on values at run time, and the launch of a cluster has fixed sizes";
        return Err(Diagnostic::new(Code::DynamicShape, told).into());
    }
    agree(ports, &lowered)?;
    Ok(Ready { args, lowered })
}

/// TensorFlow was told the types of the results by the nodes; the code must have the same.
fn agree(ports: &Ports, lowered: &Lowered) -> Result<()> {
    for (&(_, of), result) in ports.results.iter().zip(&lowered.results) {
        let number = opdef::type_number(TfType::Data(result.dtype));
        if number != of || opdef::spec_name(result.dtype).is_none() {
            let told = format!(
                "`{}` is {} in TensorFlow and {} compiled",
                result.name,
                opdef::type_name(of),
                opdef::type_name(number)
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

/// What is known of an argument.
fn arg(scene: &Scene, at: Endpoint, place: usize) -> Result<Arg> {
    let fact = scene.outputs(at.node).get(at.port as usize);
    let Some((fact, (dtype, dims))) = fact.and_then(|f| Some((f, fixed(f)?))) else {
        let told = format!("the shape of the argument `{}` is not known", spelled(&scene.bare, at));
        return Err(Diagnostic::new(Code::UnknownDim, told).into());
    };
    if opdef::spec_name(dtype).is_none() {
        let told = format!("no op of TensorFlow takes the type of `{}`, {dtype}", spelled(&scene.bare, at));
        return Err(Diagnostic::new(Code::UnsupportedType, told).into());
    }
    Ok(Arg { dtype, dims, value: fact.tensor().cloned(), place })
}

/// Puts a constant in the place of an output.
fn replace(program: &mut Program, at: Endpoint, value: &Tensor) {
    let attrs = [
        (Arc::from("dtype"), Attr::Type(TfType::Data(value.dtype))),
        (Arc::from("value"), Attr::Tensor(Box::new(value.clone()))),
    ];
    let nodes = &mut program.graph.nodes;
    let name = format!("{}/tfaot_value_{}", nodes[at.node].name, at.port);
    let node = Node {
        name: name.into(),
        op: "Const".into(),
        device: "".into(),
        inputs: [].into(),
        controls: [].into(),
        attrs: attrs.into(),
    };
    let constant = Endpoint { node: nodes.push(node), port: 0 };
    for node in nodes.values_mut() {
        node.inputs.iter_mut().filter(|input| **input == at).for_each(|input| *input = constant);
    }
}

/// Compiles a cluster; its symbols start with `name`.
pub fn compile(ready: Ready, name: &str, targets: &[Target], dump: &mut Option<Dump>) -> Result<Compiled> {
    let Ready { args, lowered } = ready;
    let functions = Functions { all: vec![(name.to_string(), lowered)], init: None };
    let built = compile::build_all(functions, name, "", targets, Launches::Direct, std::slice::from_mut(dump))?;
    if let (Some(dump), Some(module)) = (dump, built.modules.first()) {
        dump.built(module, &built.programs(), &built.object.content)?;
    }
    let face = built.bundle.face.entries.first().map(|entry| entry.program.clone()).unwrap_or_default();
    let object = built.object;
    Ok(Compiled { name: name.to_string(), args, face, object })
}
