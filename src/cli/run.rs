//! `tfaot run`: a graph on arrays, by compiled code or the interpreter.
use super::args::{Engine, RunArgs};
use super::native::Model;
use super::{Verdict, graph, inputs};
use crate::codegen::Launches;
use crate::compile::{self, Built};
use crate::diag::Result;
use crate::lower::Lowered;
use crate::optimize;
use crate::target::Target;
use crate::tensor::Tensor;

/// Runs the graph once.
pub fn run(args: &RunArgs) -> Result<Verdict> {
    let mut front = graph::front(&args.graph)?;
    let keys = graph::result_keys(&args.graph, &front.lowered);
    let values = inputs::load(args.inputs.as_deref(), &front.lowered.args)?;
    let results = match args.engine {
        Engine::Interpreter => {
            if args.optimized {
                optimize::run(&mut front.lowered.module)?;
            }
            graph::interpret(&front.lowered, values)
        }
        Engine::Native => {
            let name = graph::model_name(None, &args.graph.graph)?;
            graph::target(&args.target).and_then(|t| native(front.lowered, &name, &t, &values, args.threads.into()))
        }
    };
    let results = results.map_err(|e| graph::in_file(e, &args.graph))?;
    graph::deliver(args.outputs.as_deref(), keys, results)?;
    Ok(Verdict::Yes)
}

/// The results of compiled code.
pub fn native(lowered: Lowered, name: &str, target: &Target, args: &[Tensor], threads: usize) -> Result<Vec<Tensor>> {
    call(&compile::build(lowered, name, name, target, Launches::Direct, &mut None)?, target, args, threads)
}

/// The results of a compiled model, called between pages that may not be touched.
pub fn call(built: &Built, target: &Target, args: &[Tensor], threads: usize) -> Result<Vec<Tensor>> {
    Model::load(built, target, threads)?.call_between_pages(args)
}
