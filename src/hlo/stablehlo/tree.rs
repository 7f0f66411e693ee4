//! A module of MLIR before its operations are understood: what text and bytecode are both read as.
use indexmap::IndexMap;

use crate::diag::{Code, Result};
use crate::hlo::Shape;
use crate::hlo::attrs::ConvDims;
use crate::tensor::Tensor;

/// Meshes of devices by their names: axes with their sizes.
pub(super) type Meshes = IndexMap<String, Vec<(String, u64)>>;

/// A value: the name behind its `%`, and which of several results.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ValueRef {
    pub name: String,
    pub index: usize,
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Line and column, where it was written as text.
    pub place: Option<(usize, usize)>,
    /// With its dialect: `stablehlo.add`.
    pub name: String,
    /// The name of its results, if it is named, and their number as written in front.
    pub results: Vec<String>,
    pub operands: Vec<ValueRef>,
    pub attrs: Vec<(String, MlirAttr)>,
    pub regions: Vec<RegionBlock>,
    /// The types of its results.
    pub types: Vec<Shape>,
}

/// A region's block; regions have one.
#[derive(Clone, Debug, Default)]
pub(super) struct RegionBlock {
    pub args: Vec<(String, Shape)>,
    pub ops: Vec<Operation>,
}

impl Operation {
    /// The first attribute of one of these names.
    pub fn attr(&self, names: &[&str]) -> Option<&MlirAttr> {
        names.iter().find_map(|n| self.attrs.iter().find(|a| a.0 == *n)).map(|a| &a.1)
    }
    /// Whether the operation ends its region, its operands being the region's results.
    pub fn is_return(&self) -> bool {
        matches!(self.name.as_str(), "return" | "func.return" | "stablehlo.return" | "sdy.return")
    }
}

/// One value.
#[derive(Clone, Debug)]
pub(super) enum MlirAttr {
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// `true`, `false`, and attributes without a value.
    Bool(bool),
    /// `"text"`, and the words of enumerations.
    Text(String),
    /// `@name`.
    Symbol(String),
    /// `[a, b]`, `array<i64: a, b>`.
    List(Vec<MlirAttr>),
    /// `{a = 1}`, `#stablehlo.gather<a = 1>`.
    Dict(Vec<(String, MlirAttr)>),
    /// `dense<...>`.
    Dense(Tensor),
    /// The axes of a convolution.
    Conv(Box<ConvDims>),
    /// Anything that no op here asks for.
    Other,
}

impl MlirAttr {
    /// The whole numbers in it, nested lists flat; `None` where another value is among them.
    pub fn ints(&self) -> Option<Vec<i64>> {
        match self {
            MlirAttr::Int(i) => Some(vec![*i]),
            MlirAttr::Bool(b) => Some(vec![i64::from(*b)]),
            MlirAttr::List(all) => all.iter().map(MlirAttr::ints).collect::<Option<Vec<_>>>().map(|v| v.concat()),
            MlirAttr::Dense(t) => t.to_i64s(),
            MlirAttr::Float(_)
            | MlirAttr::Text(_)
            | MlirAttr::Symbol(_)
            | MlirAttr::Dict(_)
            | MlirAttr::Conv(_)
            | MlirAttr::Other => None,
        }
    }
}

/// A module before its operations are understood.
pub(super) struct ModuleTree {
    /// The name of the module; empty where it has none.
    pub name: String,
    /// How many replicas and partitions it is for, by HLO's names, where that is not one.
    pub header: Vec<(String, String)>,
    /// The meshes of devices that it names.
    pub meshes: Meshes,
    /// Functions with a body, in the order of the file.
    pub all: IndexMap<String, FuncOp>,
}

/// A function with a body.
#[derive(Clone, Debug, Default)]
pub(super) struct FuncOp {
    /// The operations; the arguments of the region are the function's.
    pub body: RegionBlock,
    /// Name and attributes of each argument.
    pub args: Vec<Port>,
    /// Name and attributes of each result; empty where there are none.
    pub results: Vec<Port>,
}

/// Name and attributes of an argument or a result of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    /// The name of its location, which is what it is called in the program that it was made of.
    pub name: Option<String>,
    /// The attributes by name.
    pub attrs: Vec<(String, MlirAttr)>,
}

impl Port {
    /// An attribute that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attrs.iter().find(|a| a.0 == name) {
            Some((_, MlirAttr::Text(text) | MlirAttr::Symbol(text))) => Some(text),
            _ => None,
        }
    }
}

/// The function that `op` calls.
pub(super) fn callee(op: &Operation) -> Option<&str> {
    let names: &[&str] = match op.name.as_str() {
        "call" | "func.call" => &["callee"],
        "stablehlo.composite" => &["decomposition"],
        _ => return None,
    };
    match op.attr(names) {
        // Bytecode has names as text.
        Some(MlirAttr::Symbol(name) | MlirAttr::Text(name)) => Some(name),
        _ => None,
    }
}

/// The functions that a region calls.
pub(super) fn callees<'a>(region: &'a RegionBlock, out: &mut Vec<&'a str>) {
    for op in &region.ops {
        out.extend(callee(op));
        op.regions.iter().for_each(|inner| callees(inner, out));
    }
}

impl ModuleTree {
    /// The functions that `entry` reaches, callees before callers, the entry last.
    ///
    /// Errors: `Code::HloSyntax` for functions that are missing, `Code::HloUnsupported` for those that call themselves.
    pub fn order(&self, entry: &str) -> Result<Vec<&str>> {
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
