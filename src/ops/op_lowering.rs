//! Definition of a TensorFlow op, as one `const` row of the op table.
use super::checks::CheckFn;
use super::shape_ctx::ShapeFn;
use super::string::text::{is_text, move_strings};
use super::symbols::{InferredDim, NodeSite, Symbols};
use super::work::Work;
use super::{LowerCtx, Value};
use crate::diag::{Code, Error, Result};
use crate::graph::Node;
use crate::hlo::symbolic::{Builder, InstId};

/// Lowering of an op to HLO.
#[derive(Clone, Copy)]
pub enum LoweringFn {
    /// Function of the whole node that returns the outputs in order.
    Node(fn(&mut LowerCtx) -> Result<Vec<Value>>),
    /// Function of one array, for an op with one input, one output and no attributes.
    Unary(fn(&mut Builder, InstId) -> InstId),
    /// Function of two arrays that it broadcasts itself, for an op with two inputs, one output and no attributes.
    Binary(fn(&mut Builder, InstId, InstId) -> InstId),
    /// Call of library functions, lowered by the graph walker (`lower/`), the only module that sees functions.
    Walker(CallKind),
}

/// Kind of an op that calls functions of the graph's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Calls `f` with all inputs.
    Call,
    /// Calls `then_branch` or `else_branch`, chosen by input 0, with the remaining inputs.
    If,
    /// Calls one of `branches`, chosen by the index in input 0, with the remaining inputs.
    Case,
    /// Calls `body` with its own results, from the inputs on, while `cond` is true of them.
    While,
    /// Sorts by a comparator function on pairs of elements.
    Sort,
    /// Reduces by a function of accumulator and element.
    Reduce,
    /// Reduces each window by a function of accumulator and element.
    ReduceWindow,
    /// Scatters by a function that combines an element with an update.
    Scatter,
    /// Selects an element of each window by one function, and combines it with an update by another.
    SelectAndScatter,
    /// Inlines the StableHLO module in an attribute.
    Module,
}

impl CallKind {
    /// Index of the input that becomes the first argument of the called function.
    pub fn first_argument(self) -> usize {
        match self {
            CallKind::If | CallKind::Case => 1,
            CallKind::Call
            | CallKind::While
            | CallKind::Sort
            | CallKind::Reduce
            | CallKind::ReduceWindow
            | CallKind::Scatter
            | CallKind::SelectAndScatter
            | CallKind::Module => 0,
        }
    }
}

/// Inference of output shapes from partial knowledge of the inputs.
#[derive(Clone, Copy)]
pub enum ShapeInference {
    /// Shapes follow from lowering the op if its inputs are completely known, and are unknown otherwise.
    ByLowering,
    /// One output of the shape to which all inputs broadcast; its type is that of the lowering on scalars.
    Pointwise,
    /// Shapes follow from a shape function, which never states more than the lowering would give.
    Function(ShapeFn),
}

/// Function that computes an unknown size from two sizes, for ops that compute shapes (`Add`, `Mul` and the like).
pub type SizeFn = fn(&mut Symbols, NodeSite, InferredDim, InferredDim) -> InferredDim;

/// Lowering of a TensorFlow op and its other properties: an entry of the op table.
pub struct OpLowering {
    /// Name of the op in TensorFlow.
    pub name: &'static str,
    /// Names of inputs and outputs in TensorFlow's order: `input filter -> output`; `values*` is a list.
    pub signature: &'static str,
    /// Lowering of the op to HLO.
    pub lower: LoweringFn,
    /// Shape function, for inputs that are not completely known.
    pub shapes: ShapeInference,
    /// Arithmetic on symbolic sizes, if the op is one that shape computations use.
    pub sizes: Option<SizeFn>,
    /// Indices of inputs whose values must be known at compile time.
    pub constants: &'static [usize],
    /// Supported element types, in words for the docs; empty for every type that HLO has for the op.
    pub dtypes: &'static str,
    /// Indices of inputs that are handles of variables which the op assigns.
    pub writes: &'static [usize],
    /// Whether the op takes variables of TensorFlow 1 by reference; all other ops get their values.
    pub by_reference: bool,
    /// Whether the op draws from the global random generator, which has no handle.
    pub draws: bool,
    /// Whether output `i` is input `i`, unchanged, for every `i`.
    pub forwards: bool,
    /// Number of operations, if stated here; `ops::op_work` derives that of other ops from their family.
    pub work: Option<Work>,
    /// Whether the op only marks where a graph is fed, holds variables, or orders other nodes.
    pub border: bool,
    /// Whether the op moves elements of any type without reading them, so that it works on strings.
    pub moves_strings: bool,
    /// Function that adds run-time checks of the inputs in `--checked` code.
    pub check: Option<CheckFn>,
}

/// Definition of an op with a lowering of the whole node.
pub const fn op(
    name: &'static str,
    signature: &'static str,
    lower: fn(&mut LowerCtx) -> Result<Vec<Value>>,
) -> OpLowering {
    row(name, signature, LoweringFn::Node(lower), ShapeInference::ByLowering)
}

/// Definition of a pointwise op of one array.
pub const fn unary(name: &'static str, lower: fn(&mut Builder, InstId) -> InstId) -> OpLowering {
    row(name, "x -> y", LoweringFn::Unary(lower), ShapeInference::Pointwise)
}

/// Definition of a pointwise op of two arrays, which `lower` broadcasts.
pub const fn binary(name: &'static str, lower: fn(&mut Builder, InstId, InstId) -> InstId) -> OpLowering {
    row(name, "x y -> z", LoweringFn::Binary(lower), ShapeInference::Pointwise)
}

/// Definition of an op that calls functions, lowered by the graph walker.
pub const fn functional_op(name: &'static str, signature: &'static str, calls: CallKind) -> OpLowering {
    row(name, signature, LoweringFn::Walker(calls), ShapeInference::ByLowering)
}

const fn row(name: &'static str, signature: &'static str, lower: LoweringFn, shapes: ShapeInference) -> OpLowering {
    OpLowering {
        name,
        signature,
        lower,
        shapes,
        sizes: None,
        constants: &[],
        dtypes: "",
        writes: &[],
        by_reference: false,
        draws: false,
        forwards: false,
        work: None,
        border: false,
        moves_strings: false,
        check: None,
    }
}

impl OpLowering {
    /// Sets the inputs whose values must be known at compile time.
    pub const fn constant_inputs(self, constants: &'static [usize]) -> Self {
        OpLowering { constants, ..self }
    }
    /// Sets the inputs that are handles of variables which the op assigns.
    pub const fn assigns_inputs(self, writes: &'static [usize]) -> Self {
        OpLowering { writes, ..self }
    }
    /// Marks an op that takes variables of TensorFlow 1 by reference.
    pub const fn takes_references(self) -> Self {
        OpLowering { by_reference: true, ..self }
    }
    /// Marks an op that draws from the global random generator.
    pub const fn draws_random(self) -> Self {
        OpLowering { draws: true, ..self }
    }
    /// Marks an op whose outputs are its inputs, unchanged.
    pub const fn forwards_inputs(self) -> Self {
        OpLowering { forwards: true, ..self }
    }
    /// Sets the number of arithmetic operations of the op.
    pub const fn work(self, work: Work) -> Self {
        OpLowering { work: Some(work), ..self }
    }
    /// Marks an op that only marks where a graph is fed, holds variables, or orders other nodes.
    pub const fn boundary(self) -> Self {
        OpLowering { border: true, ..self }
    }
    /// Marks an op that moves elements of any type without reading them, strings included.
    pub const fn moves_strings(self) -> Self {
        OpLowering { moves_strings: true, ..self }
    }
    /// Sets the function that adds run-time checks of the inputs.
    pub const fn with_check(self, check: CheckFn) -> Self {
        OpLowering { check: Some(check), ..self }
    }
    /// Whether the op is a matrix product, a convolution, or the gradient of one: where most models spend nearly all their
    /// time.
    pub fn is_contraction(&self) -> bool {
        self.work.is_some_and(Work::is_contraction)
    }
    /// Whether a node of this op draws from the global random generator; false if its attributes fix the seeds.
    pub fn node_draws_random(&self, node: &Node) -> bool {
        self.draws && super::random::fixed_seeds(node).is_none()
    }
    /// Kind of call, for an op that calls functions of the graph's library.
    pub fn call_kind(&self) -> Option<CallKind> {
        match self.lower {
            LoweringFn::Walker(calls) => Some(calls),
            LoweringFn::Node(_) | LoweringFn::Unary(_) | LoweringFn::Binary(_) => None,
        }
    }
    /// Sets the description of the supported element types.
    pub const fn dtypes(self, dtypes: &'static str) -> Self {
        OpLowering { dtypes, ..self }
    }
    /// Sets the shape function.
    pub const fn shape(self, shape: ShapeFn) -> Self {
        OpLowering { shapes: ShapeInference::Function(shape), ..self }
    }
    /// Marks an op as pointwise over inputs that are broadcast together.
    pub const fn pointwise(self) -> Self {
        OpLowering { shapes: ShapeInference::Pointwise, ..self }
    }
    /// Sets the arithmetic that the op does on symbolic sizes.
    pub const fn size_arithmetic(self, sizes: SizeFn) -> Self {
        OpLowering { sizes: Some(sizes), ..self }
    }
    /// Lowers a node of this op to HLO; returns its outputs.
    ///
    /// # Errors
    /// Errors of the op's lowering; an internal error for an op that the graph walker lowers.
    pub fn lower_node(&self, cx: &mut LowerCtx) -> Result<Vec<Value>> {
        if self.moves_strings && cx.args.iter().any(is_text) {
            return move_strings(self, cx);
        }
        if let Some(check) = self.check.filter(|_| cx.b.has_runtime_checks()) {
            check(cx)?;
        }
        match self.lower {
            LoweringFn::Node(f) => f(cx),
            LoweringFn::Unary(f) => {
                let x = cx.arg(0)?;
                Ok(vec![Value::Array(f(cx.b, x))])
            }
            LoweringFn::Binary(f) => {
                let (x, y) = (cx.arg(0)?, cx.arg(1)?);
                if cx.b.dtype(x) != cx.b.dtype(y) {
                    let message = format!("the inputs are {} and {}", cx.b.dtype(x), cx.b.dtype(y));
                    return Err(Error::user(Code::TypeMismatch, message));
                }
                Ok(vec![Value::Array(f(cx.b, x, y))])
            }
            LoweringFn::Walker(_) => {
                Err(Error::internal("lower", format!("{} has no function of the node", self.name)))
            }
        }
    }
    /// Names of the inputs; the name of a list ends in `*`.
    pub fn input_names(&self) -> Vec<&'static str> {
        self.signature.split("->").next().unwrap_or("").split_whitespace().collect()
    }
    /// Names of the outputs; the name of a list ends in `*`.
    pub fn output_names(&self) -> Vec<&'static str> {
        signature_outputs(self.signature)
    }
    /// Whether the op can have this number of data inputs.
    pub fn accepts_input_count(&self, inputs: usize) -> bool {
        let names = self.input_names();
        let lists = names.iter().filter(|n| n.ends_with('*')).count();
        if lists == 0 { inputs == names.len() } else { inputs >= names.len() - lists }
    }
}

/// Names of the outputs in a signature such as `input filter -> output`.
pub fn signature_outputs(signature: &'static str) -> Vec<&'static str> {
    signature.split("->").nth(1).unwrap_or("").split_whitespace().collect()
}
