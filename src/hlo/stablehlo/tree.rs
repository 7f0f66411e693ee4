//! MLIR module as a syntax tree, to which both text and bytecode are parsed.
use indexmap::IndexMap;

use super::shards::Meshes;
use crate::diag::{Code, Result};
use crate::hlo::Shape;
use crate::hlo::attrs::ConvDims;
use crate::tensor::{DType, Tensor};

/// Reference to a value: the name behind its `%`, and the index among several results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ValueRef {
    pub name: String,
    pub index: usize,
}

/// Operation in the syntax tree.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Line and column, if parsed from text.
    pub place: Option<(usize, usize)>,
    /// Name with its dialect: `stablehlo.add`.
    pub name: String,
    /// Names of the results, and their number as written in front.
    pub results: Vec<String>,
    pub operands: Vec<ValueRef>,
    pub attrs: Vec<(String, MlirAttr)>,
    pub regions: Vec<RegionBlock>,
    /// Types of the results.
    pub types: Vec<Shape>,
}

/// Block of a region; each region has one.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionBlock {
    pub args: Vec<(String, Shape)>,
    pub ops: Vec<Operation>,
}

impl Operation {
    /// First attribute that has one of these names.
    pub fn attr(&self, names: &[&str]) -> Option<&MlirAttr> {
        names.iter().find_map(|n| self.attrs.iter().find(|a| a.0 == *n)).map(|a| &a.1)
    }
    /// Whether the operation ends its region, whose results are its operands.
    pub fn is_return(&self) -> bool {
        matches!(self.name.as_str(), "return" | "func.return" | "stablehlo.return" | "sdy.return")
    }
}

/// Value of an attribute.
#[derive(Clone, Debug)]
pub(super) enum MlirAttr {
    /// Integer with its type, `S64` for `index`; the two's complement of a `U64`.
    Int(i64, DType),
    /// Floating-point number with its type.
    Float(f64, DType),
    /// Boolean, or an attribute without a value.
    Bool(bool),
    /// String, or the name of an enumeration value.
    Text(String),
    /// Symbol: `@name`.
    Symbol(String),
    /// List: `[a, b]` or `array<i64: a, b>`.
    List(Vec<MlirAttr>),
    /// Dictionary: `{a = 1}` or `#stablehlo.gather<a = 1>`.
    Dict(Vec<(String, MlirAttr)>),
    /// Dense constant: `dense<...>`.
    Dense(Tensor),
    /// Dimension numbers of a convolution.
    Conv(Box<ConvDims>),
    /// Attribute that no operation needs.
    Other,
}

impl MlirAttr {
    /// An integer of the type `index`.
    pub fn index(value: i64) -> MlirAttr {
        MlirAttr::Int(value, DType::S64)
    }
    /// Integers of a nested list, flattened; `None` if it contains other values.
    pub fn ints(&self) -> Option<Vec<i64>> {
        match self {
            MlirAttr::Int(i, _) => Some(vec![*i]),
            MlirAttr::Bool(b) => Some(vec![i64::from(*b)]),
            MlirAttr::List(all) => all.iter().map(MlirAttr::ints).collect::<Option<Vec<_>>>().map(|v| v.concat()),
            MlirAttr::Dense(t) => t.to_i64s(),
            MlirAttr::Float(..)
            | MlirAttr::Text(_)
            | MlirAttr::Symbol(_)
            | MlirAttr::Dict(_)
            | MlirAttr::Conv(_)
            | MlirAttr::Other => None,
        }
    }
}

/// Module in the syntax tree.
pub(super) struct ModuleTree {
    /// Name of the module; empty if it has none.
    pub name: String,
    /// Numbers of replicas and partitions, by HLO's names, if not one.
    pub header: Vec<(String, String)>,
    /// Device meshes that the module names.
    pub meshes: Meshes,
    /// Functions with a body, in the order of the file.
    pub all: IndexMap<String, FuncOp>,
}

/// Function with a body.
#[derive(Clone, Debug, Default)]
pub(super) struct FuncOp {
    /// Operations; the arguments of the region are the function's.
    pub body: RegionBlock,
    /// Name and attributes of each argument.
    pub args: Vec<FuncPort>,
    /// Name and attributes of each result; empty where there are none.
    pub results: Vec<FuncPort>,
}

/// Name and attributes of an argument or a result of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct FuncPort {
    /// Name in its location, which is its name in the source program.
    pub name: Option<String>,
    /// Attributes, with their names.
    pub attrs: Vec<(String, MlirAttr)>,
}

impl FuncPort {
    /// Value of a string attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attrs.iter().find(|a| a.0 == name) {
            Some((_, MlirAttr::Text(text) | MlirAttr::Symbol(text))) => Some(text),
            _ => None,
        }
    }
}

/// Name of the function that `op` calls.
pub(super) fn callee(op: &Operation) -> Option<&str> {
    let names: &[&str] = match op.name.as_str() {
        "call" | "func.call" => &["callee"],
        "stablehlo.composite" => &["decomposition"],
        _ => return None,
    };
    match op.attr(names) {
        // Bytecode has names as strings.
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) => Some(name),
        _ => None,
    }
}

/// Appends the names of the functions that a region calls.
pub(super) fn callees<'a>(region: &'a RegionBlock, out: &mut Vec<&'a str>) {
    for op in &region.ops {
        out.extend(callee(op));
        op.regions.iter().for_each(|inner| callees(inner, out));
    }
}

impl ModuleTree {
    /// Number of partitions, the devices that share one copy of the program.
    pub fn partition_count(&self) -> usize {
        self.device_count("num_partitions")
    }
    /// Number of replicas, the copies of the program.
    pub fn replica_count(&self) -> usize {
        self.device_count("replica_count")
    }
    fn device_count(&self, name: &str) -> usize {
        self.header.iter().find(|own| own.0 == name).and_then(|own| own.1.parse().ok()).unwrap_or(1)
    }
    /// Functions that `entry` reaches, callees before callers, the entry last.
    ///
    /// Errors: `Code::HloSyntax` for missing functions, `Code::HloUnsupported` for recursive ones.
    pub fn callees_first(&self, entry: &str) -> Result<Vec<&str>> {
        let refuse = |code, message: String| Err(crate::diag::Error::user(code, message));
        let called = |name: &str| {
            let mut all = Vec::new();
            if let Some(function) = self.all.get(name) {
                callees(&function.body, &mut all);
            }
            all
        };
        let mut state: IndexMap<&str, bool> = IndexMap::new();
        let mut done = Vec::new();
        let Some((start, _)) = self.all.get_key_value(entry) else {
            return refuse(Code::HloSyntax, format!("there is no function `{entry}`"));
        };
        let mut stack = vec![(start.as_str(), called(start))];
        state.insert(start, false);
        while let Some((name, rest)) = stack.last_mut() {
            match rest.pop() {
                None => {
                    state.insert(name, true);
                    done.push(*name);
                    stack.pop();
                }
                Some(next) => match (self.all.get_key_value(next), state.get(next)) {
                    (None, _) => return refuse(Code::HloSyntax, format!("there is no function `{next}`")),
                    (_, Some(true)) => {}
                    (_, Some(false)) => {
                        return refuse(Code::HloUnsupported, format!("the function `{next}` calls itself"));
                    }
                    (Some((key, _)), None) => {
                        state.insert(key, false);
                        stack.push((key, called(key)));
                    }
                },
            }
        }
        Ok(done)
    }
}
