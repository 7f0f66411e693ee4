//! Lowering of `XlaCallModule`: a StableHLO module embedded in one op, as `jax2tf` and Keras on JAX export it.
use super::state::ThreadedVariables;
use super::walker::{ValueSlot, Walker};
use crate::diag::{Code, Error, Result};
use crate::graph::{Attr, FuncRef, Node};
use crate::hlo::SymbolicArray;
use crate::hlo::stablehlo::{Host, ShapeAssertions, UnspecializedModule};
use crate::hlo::symbolic::ForeignOp;
use crate::hlo::symbolic::{Builder, InstId, Shape};
use crate::interp;
use crate::ops::{Value, element, lapack};
use crate::symbolic::Dim;

/// Versions of the op that TensorFlow 2.21 accepts; all of them hold portable bytecode.
const VERSIONS: std::ops::RangeInclusive<i64> = 4..=10;
/// First version whose shape assertions are checked.
const SHAPE_ASSERTIONS: i64 = 7;

/// Connects a StableHLO module to the graph that calls it: the module is emitted into the walker's builder, and its calls of TensorFlow
/// functions (`function_list`) are inlined.
struct CallModuleHost<'w, 'p> {
    walker: &'w mut Walker<'p>,
    functions: &'w [FuncRef],
    /// Nesting depth of the HLO computation that calls the module.
    depth: usize,
}

impl Host for CallModuleHost<'_, '_> {
    fn builder(&mut self) -> &mut Builder {
        &mut self.walker.b
    }
    fn known(&mut self, id: InstId) -> Option<SymbolicArray> {
        interp::symbolic_value(&self.walker.b, id)
    }
    fn difference(&mut self, of: InstId, less: InstId, at: Dim) -> Option<Dim> {
        let b = &self.walker.b;
        element::element_expr(b, of, at).sub(&element::element_expr(b, less, at))?.as_size()
    }
    fn call(&mut self, index: i64, args: &[InstId]) -> Result<Vec<InstId>> {
        let function = usize::try_from(index).ok().and_then(|i| self.functions.get(i)).ok_or_else(|| {
            let told = format!("the module calls function {index} of {}", self.functions.len());
            Error::user(Code::BadFunction, told)
        })?;
        let args = args.iter().map(|&id| Value::Array(id)).collect();
        // Variables have no value within the module's own computations.
        let results = if self.walker.b.nesting_depth() == self.depth {
            self.walker.inline_requiring_all_results(function, args)?
        } else {
            self.walker.lower_call_into_computation(function, args, &ThreadedVariables::default())?
        };
        let told = || format!("the module calls `{}`, which can't be compiled", function.name);
        let results = results.ok_or_else(|| Error::user(Code::BadFunction, told()))?;
        results.into_iter().map(|value| self.walker.module_argument(&value)).collect()
    }
    fn custom_call(&mut self, call: &ForeignOp, operands: &[InstId], shape: &Shape) -> Result<Option<InstId>> {
        let b = &mut self.walker.b;
        if let ([x], true) = (operands, call.is_placement_hint()) {
            return Ok(b.shape(*x).same_type_and_dims(shape).then_some(*x));
        }
        lapack::lower_lapack_call(b, call, operands, shape)
    }
}

/// Strings of a list attribute; empty if the node has no such attribute.
fn string_list<'n>(node: &'n Node, name: &str) -> Vec<&'n str> {
    node.strs(name).unwrap_or_default()
}

/// Index of the CPU in the attribute `platforms`, if the module supports several platforms and takes the index as an argument.
fn cpu_platform_index(node: &Node, checks: &[&str]) -> Result<Option<usize>> {
    let platforms = string_list(node, "platforms");
    let found = platforms.iter().position(|&p| p == "CPU");
    if !platforms.is_empty() && found.is_none() && !checks.contains(&"platform") {
        let told = format!("the module is for {}, and code is for a CPU", platforms.join(", "));
        return Err(Error::user(Code::UnsupportedCase, told));
    }
    Ok((platforms.len() > 1).then(|| found.unwrap_or(0)))
}

impl Walker<'_> {
    /// Lowers an `XlaCallModule` node, and returns its outputs.
    pub(super) fn lower_xla_call_module(&mut self, node: &Node, args: &[Value]) -> Result<Vec<ValueSlot>> {
        let version = node.int("version").unwrap_or(0);
        if !VERSIONS.contains(&version) {
            let told = format!(
                "XlaCallModule of version {version}; versions {} to {} are supported",
                VERSIONS.start(),
                VERSIONS.end()
            );
            return Err(Error::user(Code::UnsupportedCase, told));
        }
        if !string_list(node, "dim_args_spec").is_empty() {
            return Err(Error::user(
                Code::UnsupportedCase,
                "XlaCallModule with `dim_args_spec`, which only version 2 had",
            ));
        }
        let Some(Attr::Str(bytes)) = node.attr("module") else {
            return Err(Error::user(Code::BadAttr, "attribute `module` is missing or no string"));
        };
        let functions: &[FuncRef] = match node.attr("function_list") {
            Some(Attr::Funcs(all)) => all,
            _ => &[],
        };
        let disabled = string_list(node, "disabled_checks");
        let unchecked = version < SHAPE_ASSERTIONS || disabled.contains(&"shape_assertions");
        let checks = if unchecked { ShapeAssertions::None } else { ShapeAssertions::Sizes };
        let module = UnspecializedModule::read(bytes)?;
        let platform = cpu_platform_index(node, &disabled)?;
        let args = args.iter().map(|value| self.module_argument(value)).collect::<Result<Vec<_>>>()?;
        let depth = self.b.nesting_depth();
        let results = module.call(&mut CallModuleHost { walker: self, functions, depth }, &args, platform, checks)?;
        Ok(results.into_iter().map(|id| Some(Value::Array(id))).collect())
    }
    /// Converts a value to an array that can be passed to a module: an array itself, or the current value of a variable. Errors:
    /// `UnsupportedType` for other kinds of values.
    fn module_argument(&self, value: &Value) -> Result<InstId> {
        match value {
            Value::Array(id) => Ok(*id),
            Value::Variable(id) if self.store.handle_variables(*id).len() == 1 => self.store.read(*id),
            Value::List(_)
            | Value::UnshapedList { .. }
            | Value::Heterogeneous(_)
            | Value::Structured(_)
            | Value::Optional(_)
            | Value::RaggedList(_)
            | Value::Ragged(_)
            | Value::Sparse(_)
            | Value::Variable(_)
            | Value::MutableList(_)
            | Value::Table(_)
            | Value::Text(_)
            | Value::Strings(_)
            | Value::Unavailable(_) => Err(Error::user(Code::UnsupportedType, "a module takes and gives arrays")),
        }
    }
}
