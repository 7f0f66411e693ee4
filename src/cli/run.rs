//! `tfaot run`: runs a graph on arrays, by compiled code or the interpreter.
use super::args::{Engine, RunArgs};
use super::{ExitStatus, graph, sizes};
use crate::diag::{Code, Error, Result};
use crate::optimize;
use crate::run::{Instance, Interpreter, WeightSource, calls};

/// Runs the graph once, or makes the calls of a call file.
pub fn run(args: &RunArgs) -> Result<ExitStatus> {
    let (calls, graph) = match &args.calls {
        Some(path) => {
            let calls = calls::read(path)?;
            let graph = graph::with_signatures(&args.graph, &calls);
            (calls, graph)
        }
        None => {
            let (inputs, outputs) = (args.inputs.clone(), args.outputs.clone());
            (vec![calls::FileCall { signature: None, inputs, expect: None, outputs }], args.graph.clone())
        }
    };
    let mut functions = match &args.calls {
        Some(_) => graph::lower_functions(&graph)?.0,
        None => graph::lower_only_function(&graph)?,
    };
    if args.engine == Engine::Interpreter && args.optimized {
        functions.all.iter_mut().try_for_each(|(_, lowered)| optimize::run(&mut lowered.module))?;
    }
    let told = sizes::parse(&args.sizes)?;
    let mut machine = match args.engine {
        Engine::Interpreter if !matches!(args.file.source(), WeightSource::Object) => {
            return Err(Error::user(
                Code::BadOption,
                "the interpreter has the graph's weights: a file is for compiled code",
            ));
        }
        Engine::Interpreter => {
            let plain = Interpreter::new(&functions)?;
            Machine::Interpreter(if args.optimized { plain.with_padding() } else { plain })
        }
        Engine::Native => {
            let name = graph::model_name(None, &graph.graph)?;
            let target = graph::code_request(&args.target)?;
            let file = args.file.source().file();
            let native = Instance::compile(
                args.file.source().mark_functions(functions.clone()),
                &name,
                &target,
                args.threads.into(),
                file,
            );
            Machine::Native(Box::new(native.map_err(|e| graph::with_file(e, &graph))?))
        }
    };
    for call in &calls {
        let function = calls::find_function(&functions, call.signature.as_deref())?;
        let values = calls::read_arguments(call, &functions.all[function].1, &told)?;
        let results = match &mut machine {
            Machine::Interpreter(machine) => machine.call(function, values),
            Machine::Native(machine) => machine.call(function, &values),
        };
        let results = results.map_err(|e| graph::with_file(e, &graph))?;
        graph::write_results(
            call.outputs.as_deref(),
            graph::npz_result_keys(&graph, &functions.all[function].1),
            results,
        )?;
    }
    Ok(ExitStatus::Yes)
}

/// The selected engine, with the values of variables.
enum Machine<'a> {
    Interpreter(Interpreter<'a>),
    Native(Box<Instance>),
}
