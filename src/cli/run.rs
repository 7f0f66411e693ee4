//! `tfaot run`: a graph on arrays, by compiled code or the interpreter.
use super::args::{Engine, RunArgs};
use super::calls::{self, Call, Interpreted};
use super::native::Model;
use super::{Verdict, graph, sizes};
use crate::codegen::Launches;
use crate::compile::{self, Built, Compiled, Functions};
use crate::diag::{Code, Error, Result};
use crate::kernel::Face;
use crate::lower::Lowered;
use crate::optimize;
use crate::target::Target;
use crate::tensor::Tensor;
use std::path::Path;

/// Runs the graph once, or the calls of a file.
pub fn run(args: &RunArgs) -> Result<Verdict> {
    let (calls, graph) = match &args.calls {
        Some(path) => {
            let calls = calls::read(path)?;
            let graph = calls::with_signatures(&args.graph, &calls);
            (calls, graph)
        }
        None => {
            let (inputs, outputs) = (args.inputs.clone(), args.outputs.clone());
            (vec![Call { signature: None, inputs, expect: None, outputs }], args.graph.clone())
        }
    };
    let mut functions = match &args.calls {
        Some(_) => graph::functions(&graph)?.0,
        None => graph::function(&graph)?,
    };
    if args.engine == Engine::Interpreter && args.optimized {
        functions.all.iter_mut().try_for_each(|(_, lowered)| optimize::run(&mut lowered.module))?;
    }
    let told = sizes::parse(&args.sizes)?;
    let mut machine = match args.engine {
        Engine::Interpreter if args.file.is_asked_for() => {
            return Err(Error::user(
                Code::BadOption,
                "the interpreter has the graph's weights: a file is for compiled code",
            ));
        }
        Engine::Interpreter => {
            let plain = Interpreted::new(&functions)?;
            Machine::Interpreter(if args.optimized { plain.with_padding() } else { plain })
        }
        Engine::Native => {
            let name = graph::model_name(None, &graph.graph)?;
            let target = graph::target(&args.target)?;
            let file = args.file.path();
            let native = Native::new(args.file.of(functions.clone()), &name, &target, args.threads.into(), file);
            Machine::Native(Box::new(native.map_err(|e| graph::in_file(e, &graph))?))
        }
    };
    for call in &calls {
        let function = calls::function(&functions, call.signature.as_deref())?;
        let values = calls::arguments(call, &functions.all[function].1, &told)?;
        let results = match &mut machine {
            Machine::Interpreter(machine) => machine.call(function, values),
            Machine::Native(machine) => machine.call(function, &values),
        };
        let results = results.map_err(|e| graph::in_file(e, &graph))?;
        graph::deliver(call.outputs.as_deref(), graph::result_keys(&graph, &functions.all[function].1), results)?;
    }
    Ok(Verdict::Yes)
}

/// Who computes, with the values of variables.
enum Machine<'a> {
    Interpreter(Interpreted<'a>),
    Native(Box<Native>),
}

/// Compiled functions, called between pages that may not be touched, and the state that they left.
pub struct Native {
    model: Model,
    /// As the object has it.
    state: Vec<u8>,
}

impl Native {
    /// Before the first call; `file` has the weights, where functions take them. Errors: those of a compile and of [`Model::of`].
    pub fn new(
        functions: Functions,
        name: &str,
        target: &Target,
        threads: usize,
        file: Option<&Path>,
    ) -> Result<Native> {
        let targets = std::slice::from_ref(target);
        let built = compile::build_all(functions, name, name, targets, Launches::Direct, &mut [])?;
        Native::of(&built, target, threads, file)
    }

    /// The same of what is compiled.
    pub fn of(built: &Compiled, target: &Target, threads: usize, file: Option<&Path>) -> Result<Native> {
        let model = Model::of(built, file, target, threads)?;
        Ok(Native { state: model.start()?, model })
    }

    /// The results of a call of function number `function`.
    pub fn call(&mut self, function: usize, args: &[Tensor]) -> Result<Vec<Tensor>> {
        self.model.call_between_pages(function, args, &mut self.state)
    }

    /// The values of variables.
    pub fn state(&self) -> Vec<Tensor> {
        self.model.variables(&self.state)
    }
}

/// The results of compiled code.
pub fn native(lowered: Lowered, name: &str, target: &Target, args: &[Tensor], threads: usize) -> Result<Vec<Tensor>> {
    call(&compile::build(lowered, name, name, target, Launches::Direct, &mut None)?, target, args, threads)
}

/// The results of a compiled model, called between pages that may not be touched.
pub fn call(built: &Built, target: &Target, args: &[Tensor], threads: usize) -> Result<Vec<Tensor>> {
    let model = Model::load(&Face::of(&built.program), &built.object, target, threads)?;
    let mut state = model.start()?;
    model.call_between_pages(0, args, &mut state)
}
