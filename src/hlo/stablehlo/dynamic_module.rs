//! Stand-alone modules with open argument sizes: parsed once, and converted for any sizes.
//!
//! Sizes have the names that JAX gives them, and axes that the module asserts to be equal share one name. Both are found in the
//! entry function, which takes the sizes of its arguments, compares them, and passes them to a function whose arguments name
//! the size variables.
use super::convert;
use super::converter::Host;
use super::sizes::{OPEN, call_target, has_fixed_sizes};
use super::tree::{FuncOp, MlirAttr, ModuleTree, Operation, ValueRef, callee};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{InstId, Module, Source};
use crate::symbolic::Dim;
use crate::tensor::DType;
use std::collections::HashMap;

/// A module whose arguments have open sizes.
pub struct DynamicModule {
    functions: ModuleTree,
    platform: Option<usize>,
    /// Arguments, without the platform index.
    pub args: Vec<Argument>,
}

/// An argument of a module with open sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name of the argument.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes of the axes, outermost first.
    pub axes: Vec<AxisSize>,
}

/// Size of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSize {
    /// Fixed number of elements.
    Fixed(u64),
    /// A size that all axes with this name share.
    Named(String),
    /// An unknown size without a name.
    Open,
}

impl DynamicModule {
    /// A module with open sizes; a module without comes back unchanged.
    ///
    /// Errors: `Code::HloSyntax` for one without functions; `Code::HloUnsupported` for arguments with open sizes that are no arrays.
    pub(super) fn from_tree(
        functions: ModuleTree,
        platform: Option<usize>,
    ) -> Result<Result<DynamicModule, ModuleTree>> {
        let entry = &functions.all[convert::entry(&functions)?];
        let taken = convert::caller_arguments(entry, platform);
        if taken.iter().all(|&i| has_fixed_sizes(&entry.body.args[i].1)) {
            return Ok(Err(functions));
        }
        let sizes = EntryNames::collect(entry, &functions);
        let mut args = Vec::with_capacity(taken.len());
        for &i in &taken {
            let (_, shape) = &entry.body.args[i];
            let Some(array) = shape.as_array() else {
                let told = format!("argument {i} is {shape}, and beside arguments of open sizes only arrays are read");
                return Err(Error::user(Code::HloUnsupported, told));
            };
            let axis = |(axis, &size): (usize, &u64)| match sizes.names.get(&(i, axis)) {
                _ if size != OPEN => AxisSize::Fixed(size),
                Some(name) => AxisSize::Named(name.clone()),
                None => AxisSize::Open,
            };
            let name = convert::argument_name(&entry.args[i], i);
            let name = sizes.arguments.get(&i).map_or(name, Clone::clone);
            args.push(Argument { name, dtype: array.dtype, axes: array.dims.iter().enumerate().map(axis).collect() });
        }
        Ok(Ok(DynamicModule { functions, platform, args }))
    }

    /// Name of the module.
    pub fn name(&self) -> &str {
        &self.functions.name
    }

    /// Converts the module to its root for these sizes of all arguments, in an empty host.
    ///
    /// # Errors
    /// As [`super::parse`]; `Code::ShapeMismatch` for sizes that the module was not made for.
    pub fn root(&self, host: &mut dyn Host, dims: &[Vec<Dim>]) -> Result<InstId> {
        convert::root(host, &self.functions, self.platform, Some(dims)).map(|(root, _)| root)
    }

    /// Completes the module made by [`DynamicModule::root`] with its own name and the names of its results.
    ///
    /// # Errors
    /// `Code::HloSyntax` for a module without functions.
    pub fn source(&self, module: Module) -> Result<Source> {
        convert::source(&self.functions, module)
    }

    /// Error for a module that cannot be converted without sizes.
    pub fn unknown_size_error(&self) -> Error {
        let open = |a: &&Argument| a.axes.iter().any(|axis| !matches!(axis, AxisSize::Fixed(_)));
        let told: Vec<String> = self.args.iter().filter(open).map(Argument::to_string).collect();
        let d = Diagnostic::new(Code::UnknownDim, format!("sizes of the module are open: {}", told.join(", ")));
        let mut names: Vec<String> = Vec::new();
        for arg in &self.args {
            for (i, axis) in arg.axes.iter().enumerate() {
                let name = match axis {
                    AxisSize::Fixed(_) => continue,
                    AxisSize::Named(name) => name.clone(),
                    AxisSize::Open => format!("{}[{i}]", arg.name),
                };
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let flags = |size: &str| names.iter().map(|n| format!("--dim '{n}={size}'")).collect::<Vec<_>>().join(" ");
        d.help(format!("say them with {}, or bound them with {}", flags("8"), flags("1..64"))).into()
    }
}

impl std::fmt::Debug for DynamicModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("args", &self.args).finish_non_exhaustive()
    }
}

impl std::fmt::Display for Argument {
    /// Writes name, type and sizes, such as `x f32[b,4]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axis = |axis: &AxisSize| match axis {
            AxisSize::Fixed(n) => n.to_string(),
            AxisSize::Named(name) => name.clone(),
            AxisSize::Open => "?".to_string(),
        };
        let axes: Vec<String> = self.axes.iter().map(axis).collect();
        write!(f, "{} {}[{}]", self.name, self.dtype, axes.join(","))
    }
}

/// Argument of the entry, and one of its axes.
type ArgumentAxis = (usize, usize);

/// Names of arguments and of the sizes of their axes, as the entry states them.
#[derive(Default)]
struct EntryNames {
    /// Names of axis sizes.
    names: HashMap<ArgumentAxis, String>,
    /// Names of arguments in the function that uses them.
    arguments: HashMap<usize, String>,
}

impl EntryNames {
    fn collect(entry: &FuncOp, functions: &ModuleTree) -> EntryNames {
        let args: HashMap<&str, usize> =
            entry.body.args.iter().enumerate().map(|(i, (name, _))| (name.as_str(), i)).collect();
        let mut taken: HashMap<&str, ArgumentAxis> = HashMap::new();
        let mut compared: HashMap<&str, (ArgumentAxis, ArgumentAxis)> = HashMap::new();
        let mut equal: Vec<(ArgumentAxis, ArgumentAxis)> = Vec::new();
        let mut sizes = EntryNames::default();
        for op in &entry.body.ops {
            let size = |value: &ValueRef| taken.get(value.name.as_str()).copied();
            let place = match (op.name.as_str(), &op.operands[..]) {
                ("stablehlo.get_dimension_size", [array]) => axis_of(op, args.get(array.name.as_str()).copied()),
                ("stablehlo.convert", [one]) => size(one),
                ("stablehlo.compare", [a, b]) if is_equality(op) => {
                    if let (Some(a), Some(b), [name]) = (size(a), size(b), &op.results[..]) {
                        compared.insert(name, (a, b));
                    }
                    None
                }
                _ => None,
            };
            if call_target(op) == Some("shape_assertion") {
                equal.extend(op.operands.first().and_then(|o| compared.get(o.name.as_str())));
            }
            if let Some(called) = callee(op).and_then(|name| functions.all.get(name)) {
                for (value, port) in op.operands.iter().zip(&called.args) {
                    if let (Some(place), Some(name)) = (size(value), port.text("jax.global_constant")) {
                        sizes.names.entry(place).or_insert_with(|| name.to_string());
                    }
                    if let (Some(&i), Some(_)) = (args.get(value.name.as_str()), &port.name) {
                        sizes.arguments.entry(i).or_insert_with(|| convert::argument_name(port, i));
                    }
                }
            }
            if let (Some(place), [name]) = (place, &op.results[..]) {
                taken.insert(name, place);
            }
        }
        sizes.share(&equal);
        sizes
    }
    /// Gives axes whose sizes are asserted to be equal a common name.
    fn share(&mut self, equal: &[(ArgumentAxis, ArgumentAxis)]) {
        loop {
            let known = self.names.len();
            for &(a, b) in equal {
                match (self.names.get(&a).cloned(), self.names.get(&b).cloned()) {
                    (Some(name), None) => drop(self.names.insert(b, name)),
                    (None, Some(name)) => drop(self.names.insert(a, name)),
                    _ => {}
                }
            }
            if self.names.len() == known {
                return;
            }
        }
    }
}

/// Axis of argument `array` whose size the operation `op` reads.
fn axis_of(op: &Operation, array: Option<usize>) -> Option<ArgumentAxis> {
    let axis = op.attr(&["dimension", "dim"]).and_then(MlirAttr::ints)?;
    Some((array?, usize::try_from(*axis.first()?).ok()?))
}

fn is_equality(op: &Operation) -> bool {
    matches!(op.attr(&["comparison_direction"]), Some(MlirAttr::Text(direction)) if direction == "EQ")
}
