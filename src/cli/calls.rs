//! `--calls FILE`: calls of a model's functions in order, over one state, a JSON object a line:
//! `{"signature":"train","inputs":"in0.npz","expect":"out0.npz","outputs":"got0.npz"}`. Paths are relative to the file.
use super::args::GraphArgs;
use super::{inputs, out, sizes};
use crate::compile::{self, Functions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::Literal;
use crate::lower::{Lowered, Sized};
use crate::tensor::Tensor;
use crate::{bounded, interp};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// One line.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function's; none where the model has one.
    pub signature: Option<String>,
    /// The arguments; random without.
    pub inputs: Option<PathBuf>,
    /// The right results.
    pub expect: Option<PathBuf>,
    /// Where the results go.
    pub outputs: Option<PathBuf>,
}

/// The calls of a file. Errors: `Code::Io`; `Code::BadInputs` with the number of the line.
pub fn read(path: &Path) -> Result<Vec<Call>> {
    let text = std::fs::read_to_string(path).map_err(|e| out::io_error("read", path, &e))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let calls = lines.map(|(i, line)| {
        call(line, folder).map_err(|why| {
            let told = Diagnostic::new(Code::BadInputs, format!("line {}: {why}", i + 1));
            let told =
                told.help("for example {\"signature\":\"train\",\"inputs\":\"in0.npz\",\"expect\":\"out0.npz\"}");
            out::in_file(told.into(), &path.display().to_string())
        })
    });
    calls.collect()
}

fn call(line: &str, folder: &Path) -> std::result::Result<Call, String> {
    let mut object: Map<String, Value> = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let mut take = |key: &str| match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` is {other} and no string")),
    };
    let signature = take("signature")?;
    let mut path = |key| take(key).map(|text| text.map(|text| folder.join(text)));
    let (inputs, expect, outputs) = (path("inputs")?, path("expect")?, path("outputs")?);
    match object.keys().next() {
        Some(key) => Err(format!("there is no key `{key}`: signature, inputs, expect and outputs are known")),
        None => Ok(Call { signature, inputs, expect, outputs }),
    }
}

/// The flags with the signatures that the calls name, where none is given.
pub fn with_signatures(args: &GraphArgs, calls: &[Call]) -> GraphArgs {
    let mut args = args.clone();
    if args.signature.is_empty() {
        for signature in calls.iter().filter_map(|call| call.signature.as_ref()) {
            if !args.signature.contains(signature) {
                args.signature.push(signature.clone());
            }
        }
    }
    args
}

/// The number of the function that is called. Errors: `Code::BadOption`.
pub fn function(functions: &Functions, signature: Option<&str>) -> Result<usize> {
    let known: Vec<String> = functions.all.iter().map(|(name, _)| format!("`{name}`")).collect();
    match (signature, functions.all.len()) {
        (None, 1) => Ok(0),
        (None, _) => {
            let told = Diagnostic::new(Code::BadOption, "a call must say which of several functions it is of");
            Err(told.help(format!("`signature` is one of {}", known.join(", "))).into())
        }
        (Some(wanted), _) => functions.all.iter().position(|(name, _)| name == wanted).ok_or_else(|| {
            let told = Diagnostic::new(Code::BadOption, format!("no function `{wanted}` is compiled"));
            told.help(format!("there is {}", known.join(", "))).into()
        }),
    }
}

/// The arguments of a call; flags tell sizes that arrays do not.
pub fn arguments(call: &Call, lowered: &Lowered, told: &[(String, u64)]) -> Result<Vec<Tensor>> {
    inputs::of_function(call.inputs.as_deref(), lowered, told)
}

/// The interpreter, with the values of the variables.
pub struct Interpreted<'a> {
    functions: &'a Functions,
    /// The values, one a variable.
    pub state: Vec<Tensor>,
    /// Whether functions whose sizes vary are evaluated as they are compiled: padded to their bounds.
    is_padded: bool,
    /// Chooses how results of 16 bits are rounded, where not to the nearest.
    rounding: Option<u64>,
}

impl<'a> Interpreted<'a> {
    /// Before the first call.
    pub fn new(functions: &'a Functions) -> Result<Interpreted<'a>> {
        Ok(Interpreted { state: compile::initial(functions)?, functions, is_padded: false, rounding: None })
    }

    /// The same on the modules as they are, also where sizes vary, which is evaluated without padding otherwise.
    pub fn with_padding(self) -> Self {
        Interpreted { is_padded: true, ..self }
    }

    /// The same with results of f16 and bf16 rounded in another way, which `seed` chooses; modules are evaluated as they are.
    pub fn with_other_rounding(self, seed: u64) -> Self {
        Interpreted { is_padded: true, rounding: Some(seed), ..self }
    }

    /// The results of a call of function number `function`.
    pub fn call(&mut self, function: usize, args: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let lowered = &self.functions.all[function].1;
        let Some(sized) = &lowered.sized else { return self.evaluate(lowered, args).map(|(results, _)| results) };
        let given = sizes::of_call(&sized.sizes, &lowered.args, &args)?;
        if self.is_padded {
            return self.padded(lowered, sized, args, given);
        }
        let all: Vec<Tensor> = args.into_iter().chain(self.state.iter().cloned()).collect();
        let (exact, mut parts) = bounded::evaluate(&sized.exact, &given, &all)?;
        let mut changed = parts.split_off(exact.results.len().min(parts.len())).into_iter();
        for (value, _) in self.state.iter_mut().zip(&exact.state).filter(|(_, v)| v.changed) {
            *value = changed.next().ok_or_else(|| Error::internal("interpreter", "a variable gets no value"))?;
        }
        Ok(parts)
    }

    /// The results of a module with the sizes behind its arguments and results, on arrays that are filled up to its bounds.
    fn padded(
        &mut self,
        lowered: &Lowered,
        sized: &Sized,
        args: Vec<Tensor>,
        mut values: Vec<u64>,
    ) -> Result<Vec<Tensor>> {
        let filled = args.iter().zip(&lowered.args).map(|(array, info)| sizes::resized(array, &info.dims));
        let numbers: Vec<Tensor> = values.iter().map(|&n| Tensor::scalar(n as i32)).collect();
        let (results, found) = self.evaluate(lowered, filled.chain(numbers).collect())?;
        values.extend(found.iter().map(|n| n.get_i64(0).and_then(|n| u64::try_from(n).ok()).unwrap_or(0)));
        let infos = sizes::actual(&lowered.results, &sized.sizes.results, &values);
        Ok(results.iter().zip(&infos).map(|(array, info)| sizes::resized(array, &info.dims)).collect())
    }

    /// The results of a module, and the sizes that it gives behind them.
    fn evaluate(&mut self, lowered: &Lowered, args: Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let literals: Vec<Literal> = args.into_iter().chain(self.state.iter().cloned()).map(Literal::Array).collect();
        let (module, entry) = (&lowered.module, lowered.module.entry);
        let root = match self.rounding {
            None => interp::evaluate(module, entry, &literals)?,
            Some(seed) => interp::evaluate_rounded_otherwise(module, entry, &literals, seed)?,
        };
        let mut leaves = root.leaves().into_iter().cloned();
        let results: Vec<Tensor> = leaves.by_ref().take(lowered.results.len()).collect();
        let sizes = lowered.sized.as_ref().map_or(0, |s| s.sizes.all.len() - s.sizes.given());
        let found = leaves.by_ref().take(sizes).collect();
        for (value, _) in self.state.iter_mut().zip(&lowered.state).filter(|(_, v)| v.changed) {
            *value = leaves.next().ok_or_else(|| Error::internal("interpreter", "a variable gets no value"))?;
        }
        Ok((results, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_wrong_with_them() {
        let folder = Path::new("a");
        let read = |line| call(line, folder);
        let sound = read(r#"{"signature":"s","inputs":"x.npz","expect":null}"#).expect("it is sound");
        assert_eq!((sound.signature.as_deref(), sound.inputs, sound.expect), (Some("s"), Some("a/x.npz".into()), None));
        for (line, told) in [
            (r#"{"input":"x.npz"}"#, "there is no key `input`"),
            (r#"{"inputs":3}"#, "`inputs` is 3"),
            ("[]", "invalid type"),
            ("{", "EOF"),
        ] {
            let said = read(line).expect_err(line);
            assert!(said.contains(told), "{said}");
        }
    }
}
