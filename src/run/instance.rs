//! A compiled model with the values of its variables between calls.
use super::Model;
use crate::codegen::Launches;
use crate::compile::{self, Built, Compiled, Functions};
use crate::diag::Result;
use crate::kernel::ModelInterface;
use crate::lower::Lowered;
use crate::target::{CodeRequest, Target};
use crate::tensor::Tensor;
use std::path::Path;

/// A compiled model in this process, with the values of its variables. Calls are made as by [`Model::call_guarded`].
///
/// ```
/// use tfaot::{Instance, ModelFile, Request, Target, arguments};
///
/// let target = Target::resolve(None, None, None)?;
/// let functions = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&Request::default())?;
/// let args = arguments(None, &functions.all[0].1, &[])?;
/// let mut instance = Instance::compile(functions, "attention", &target, 1, None)?;
/// let results = instance.call(0, &args)?;
/// # assert!(!results.is_empty());
/// # Ok::<(), tfaot::Error>(())
/// ```
pub struct Instance {
    model: Model,
    /// The variables in the layout of the object.
    state: Vec<u8>,
}

impl Instance {
    /// Compiles functions and loads them; `weights` is the weights file, for functions that take weights from their caller.
    ///
    /// # Errors
    /// Errors of [`compile::build_functions`] and [`Model::load_compiled`].
    pub fn compile(
        functions: Functions,
        name: &str,
        code: impl Into<CodeRequest>,
        threads: usize,
        weights: Option<&Path>,
    ) -> Result<Instance> {
        let requests = [code.into()];
        let compiled = compile::build_functions(functions, name, name, &requests, Launches::Direct, &mut [])?;
        Instance::load(&compiled, &requests[0].target, threads, weights)
    }

    /// Loads compiled functions.
    ///
    /// # Errors
    /// Errors of [`Model::load_compiled`].
    pub fn load(compiled: &Compiled, target: &Target, threads: usize, weights: Option<&Path>) -> Result<Instance> {
        let model = Model::load_compiled(compiled, weights, target, threads)?;
        Ok(Instance { state: model.initial_state()?, model })
    }

    /// Calls the function with index `function`, and updates the variables.
    ///
    /// # Errors
    /// Errors of [`Model::call_guarded`].
    pub fn call(&mut self, function: usize, args: &[Tensor]) -> Result<Vec<Tensor>> {
        self.model.call_guarded(function, args, &mut self.state)
    }

    /// Values of the variables.
    pub fn variables(&self) -> Vec<Tensor> {
        self.model.variables(&self.state)
    }
}

/// Compiles a function and calls it once.
///
/// # Errors
/// Errors of [`compile::build`] and [`call_once`].
pub fn compile_and_call(
    lowered: Lowered,
    name: &str,
    code: &CodeRequest,
    args: &[Tensor],
    threads: usize,
) -> Result<Vec<Tensor>> {
    let built = compile::build(lowered, name, name, code, Launches::Direct, &mut None)?;
    call_once(&built, &code.target, args, threads)
}

/// Loads a compiled function and calls it once, as [`Model::call_guarded`] does.
///
/// # Errors
/// Errors of [`Model::load`] and [`Model::call_guarded`].
pub fn call_once(built: &Built, target: &Target, args: &[Tensor], threads: usize) -> Result<Vec<Tensor>> {
    let model = Model::load(&ModelInterface::of_program(&built.program), &built.object, target, threads)?;
    let mut state = model.initial_state()?;
    model.call_guarded(0, args, &mut state)
}
