//! Reference execution of functions by the interpreter, including variables and varying sizes.
use super::sizes;
use crate::compile::{self, Functions};
use crate::diag::{Error, Result};
use crate::hlo::Literal;
use crate::lower::{Lowered, SizeVariants};
use crate::tensor::Tensor;
use crate::{bounded, interp};

/// Evaluates the module of a function without variables.
///
/// # Errors
/// Errors of [`interp::evaluate`].
pub fn interpret(lowered: &Lowered, args: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let literals: Vec<Literal> = args.into_iter().map(Literal::Array).collect();
    let value = interp::evaluate(&lowered.module, lowered.module.entry, &literals)?;
    Ok(value.leaves().into_iter().cloned().collect())
}

/// A model that is interpreted rather than compiled, with the values of its variables.
///
/// ```
/// use tfaot::{Interpreter, ModelFile, Request, arguments};
///
/// let functions = ModelFile::open("testdata/graphs/attention/graph.pb").lower(&Request::default())?;
/// let args = arguments(None, &functions.all[0].1, &[])?;
/// let results = Interpreter::new(&functions)?.call(0, args)?;
/// # assert!(!results.is_empty());
/// # Ok::<(), tfaot::Error>(())
/// ```
pub struct Interpreter<'a> {
    functions: &'a Functions,
    /// Values of the variables, in the order of the model.
    pub state: Vec<Tensor>,
    /// Whether functions with varying sizes are evaluated padded to their bounds, as compiled code does.
    is_padded: bool,
    /// Seed for random rounding of f16 and bf16 results; `None` rounds to nearest.
    rounding: Option<u64>,
}

impl<'a> Interpreter<'a> {
    /// A model before its first call, with the initial values of its variables.
    ///
    /// # Errors
    /// Errors of [`compile::initial_values`].
    pub fn new(functions: &'a Functions) -> Result<Interpreter<'a>> {
        Ok(Interpreter { state: compile::initial_values(functions)?, functions, is_padded: false, rounding: None })
    }

    /// Switches to evaluation padded to the bounds, rather than at exactly the sizes of a call.
    pub fn with_padding(self) -> Self {
        Interpreter { is_padded: true, ..self }
    }

    /// Switches to padded evaluation that moves each f16 and bf16 result by one unit in the last place or not at all, at random.
    pub fn with_random_rounding(self, seed: u64) -> Self {
        Interpreter { is_padded: true, rounding: Some(seed), ..self }
    }

    /// Calls the function with index `function`, and updates the variables.
    ///
    /// # Errors
    /// `Code::BadInputs` for sizes beyond their bounds; those of [`interp::evaluate`].
    pub fn call(&mut self, function: usize, args: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let lowered = &self.functions.all[function].1;
        let Some(sized) = &lowered.size_variants else {
            return self.evaluate(lowered, args).map(|(results, _)| results);
        };
        let given = sizes::sizes_of_arguments(&sized.sizes, &lowered.args, &args)?;
        if self.is_padded {
            return self.call_padded(lowered, sized, args, given);
        }
        let all: Vec<Tensor> = args.into_iter().chain(self.state.iter().cloned()).collect();
        let (exact, mut parts) = bounded::evaluate_at_sizes(&sized.exact, &given, &all)?;
        let mut changed = parts.split_off(exact.results.len().min(parts.len())).into_iter();
        for (value, _) in self.state.iter_mut().zip(&exact.state).filter(|(_, v)| v.changed) {
            *value = changed.next().ok_or_else(|| Error::internal("interpreter", "a variable gets no value"))?;
        }
        Ok(parts)
    }

    /// Evaluates a module that takes sizes as additional arguments and returns sizes as additional results, on arrays padded to the bounds.
    fn call_padded(
        &mut self,
        lowered: &Lowered,
        sized: &SizeVariants,
        args: Vec<Tensor>,
        mut values: Vec<u64>,
    ) -> Result<Vec<Tensor>> {
        let filled = args.iter().zip(&lowered.args).map(|(array, info)| sizes::crop_or_pad(array, &info.dims));
        let numbers: Vec<Tensor> = values.iter().map(|&n| Tensor::scalar(n as i32)).collect();
        let (results, found) = self.evaluate(lowered, filled.chain(numbers).collect())?;
        values.extend(found.iter().map(|n| n.get_i64(0).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)));
        let infos = sizes::actual_types(&lowered.results, &sized.sizes.results, &values);
        Ok(results.iter().zip(&infos).map(|(array, info)| sizes::crop_or_pad(array, &info.dims)).collect())
    }

    /// Evaluates a module; returns its results, and separately the sizes that follow them.
    fn evaluate(&mut self, lowered: &Lowered, args: Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let literals: Vec<Literal> = args.into_iter().chain(self.state.iter().cloned()).map(Literal::Array).collect();
        let (module, entry) = (&lowered.module, lowered.module.entry);
        let root = match self.rounding {
            None => interp::evaluate(module, entry, &literals)?,
            Some(seed) => interp::evaluate_with_perturbed_rounding(module, entry, &literals, seed)?,
        };
        let mut leaves = root.leaves().into_iter().cloned();
        let results: Vec<Tensor> = leaves.by_ref().take(lowered.results.len()).collect();
        let sizes = lowered.size_variants.as_ref().map_or(0, |s| s.sizes.all.len() - s.sizes.caller_size_count());
        let found = leaves.by_ref().take(sizes).collect();
        for (value, _) in self.state.iter_mut().zip(&lowered.state).filter(|(_, v)| v.changed) {
            *value = leaves.next().ok_or_else(|| Error::internal("interpreter", "a variable gets no value"))?;
        }
        Ok((results, found))
    }
}
