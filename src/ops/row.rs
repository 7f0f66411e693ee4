//! Definition of a TensorFlow op, as one `const` row of the op table.
use super::checks::CheckFn;
use super::shape_ctx::ShapeFn;
use super::string::text::{is_text, move_strings};
use super::symbols::{InferredDim, Site, Symbols};
use super::work::Work;
use super::{LowerCtx, Value};
use crate::diag::{Code, Error, Result};
use crate::graph::Node;
use crate::hlo::open::{Builder, InstId};

/// How an op becomes HLO.
#[derive(Clone, Copy)]
pub enum Lower {
    /// Any function of the node: outputs in order.
    Node(fn(&mut LowerCtx) -> Result<Vec<Value>>),
    /// One array in, one out, no attributes.
    Unary(fn(&mut Builder, InstId) -> InstId),
    /// Two arrays in (not yet broadcast), one out, no attributes.
    Binary(fn(&mut Builder, InstId, InstId) -> InstId),
    /// Calls functions of the library: lowered by the walker (`lower/`), which alone sees functions.
    Walker(Calls),
}

/// How an op calls functions of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// `f`, on all inputs.
    One,
    /// `then_branch` or `else_branch` on the inputs behind the first, by the truth of that.
    ByTruth,
    /// One of `branches` on the inputs behind the first, by that number.
    ByNumber,
    /// `body` on all inputs as long as `cond` is true of them.
    Repeatedly,
    /// A comparator, on pairs of elements that are sorted.
    Sort,
    /// A reducer, on what was folded and an element.
    Reduce,
    /// A reducer, on the elements of each window.
    ReduceWindow,
    /// One function of two scalars that combines an element with an update.
    Scatter,
    /// One that selects an element of each window, and one that combines it with an update.
    SelectAndScatter,
    /// A module of StableHLO, which is an attribute.
    Module,
}

impl Calls {
    /// The input that is the first argument of what is called.
    pub fn first_argument(self) -> usize {
        match self {
            Calls::ByTruth | Calls::ByNumber => 1,
            Calls::One
            | Calls::Repeatedly
            | Calls::Sort
            | Calls::Reduce
            | Calls::ReduceWindow
            | Calls::Scatter
            | Calls::SelectAndScatter
            | Calls::Module => 0,
        }
    }
}

/// How the shapes of an op's outputs follow from what is known of its inputs.
#[derive(Clone, Copy)]
pub enum Shapes {
    /// Only from inputs that are wholly known, by lowering the op.
    ByLowering,
    /// One output, of the shape to which all inputs broadcast; its type is that of the lowering on scalars.
    Pointwise,
    /// By this function, which says no more than the lowering would.
    Function(ShapeFn),
}

/// Arithmetic on sizes.
pub type SizeFn = fn(&mut Symbols, Site, InferredDim, InferredDim) -> InferredDim;

/// One TensorFlow op.
pub struct OpRow {
    /// TensorFlow's name.
    pub name: &'static str,
    /// Names of inputs and outputs in TensorFlow's order: `input filter -> output`; `values*` is a list.
    pub signature: &'static str,
    /// Lowering of the op to HLO.
    pub lower: Lower,
    /// Shape function of the op, for inputs that are not wholly known.
    pub shapes: Shapes,
    /// Effect of the op on symbolic sizes, if it is arithmetic that shape computations use.
    pub sizes: Option<SizeFn>,
    /// Inputs whose value must be known at compile time.
    pub constants: &'static [usize],
    /// The element types it takes, in words for the docs; empty: every type that HLO has for it.
    pub dtypes: &'static str,
    /// Inputs that are handles of variables to which it gives new values.
    pub writes: &'static [usize],
    /// Whether it takes variables of TensorFlow 1 by reference; all other ops get their values.
    pub by_reference: bool,
    /// Whether it draws from the generator that no handle names.
    pub draws: bool,
    /// Whether its outputs are its inputs as they are.
    pub forwards: bool,
    /// How many operations it takes, where that is said; `ops::work` knows what follows from the family.
    pub work: Option<Work>,
    /// Whether it only marks where a graph is fed, holds its variables or orders other nodes.
    pub border: bool,
    /// Whether it moves elements of any type, strings among them, without looking at them.
    pub moves_strings: bool,
    /// Adds the run-time checks of its inputs.
    pub check: Option<CheckFn>,
}

/// A row with a function of the whole node.
pub const fn op(name: &'static str, signature: &'static str, lower: fn(&mut LowerCtx) -> Result<Vec<Value>>) -> OpRow {
    row(name, signature, Lower::Node(lower), Shapes::ByLowering)
}

/// A row of one array in and one out.
pub const fn unary(name: &'static str, lower: fn(&mut Builder, InstId) -> InstId) -> OpRow {
    row(name, "x -> y", Lower::Unary(lower), Shapes::Pointwise)
}

/// A row of two arrays in, broadcast by the function, and one out.
pub const fn binary(name: &'static str, lower: fn(&mut Builder, InstId, InstId) -> InstId) -> OpRow {
    row(name, "x y -> z", Lower::Binary(lower), Shapes::Pointwise)
}

/// A row that the walker lowers.
pub const fn walker(name: &'static str, signature: &'static str, calls: Calls) -> OpRow {
    row(name, signature, Lower::Walker(calls), Shapes::ByLowering)
}

const fn row(name: &'static str, signature: &'static str, lower: Lower, shapes: Shapes) -> OpRow {
    OpRow {
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

impl OpRow {
    /// Says which inputs must be known at compile time.
    pub const fn constants(self, constants: &'static [usize]) -> Self {
        OpRow { constants, ..self }
    }
    /// Says which inputs are handles of variables that it changes.
    pub const fn writes(self, writes: &'static [usize]) -> Self {
        OpRow { writes, ..self }
    }
    /// Says that it takes variables of TensorFlow 1 by reference.
    pub const fn by_reference(self) -> Self {
        OpRow { by_reference: true, ..self }
    }
    /// Says that it draws from the generator that no handle names.
    pub const fn draws(self) -> Self {
        OpRow { draws: true, ..self }
    }
    /// Says that its outputs are its inputs as they are.
    pub const fn forwards(self) -> Self {
        OpRow { forwards: true, ..self }
    }
    /// Says how many operations it takes.
    pub const fn work(self, work: Work) -> Self {
        OpRow { work: Some(work), ..self }
    }
    /// Says that it only marks where a graph is fed, holds its variables or orders other nodes.
    pub const fn border(self) -> Self {
        OpRow { border: true, ..self }
    }
    /// Says that it moves elements of any type, strings among them, without looking at them.
    pub const fn moves_strings(self) -> Self {
        OpRow { moves_strings: true, ..self }
    }
    /// Says what is checked of its inputs at run time.
    pub const fn checked(self, check: CheckFn) -> Self {
        OpRow { check: Some(check), ..self }
    }
    /// Whether it is a convolution, a matrix product, or the gradient of one: what nearly all the time of most models goes to.
    pub fn contracts(&self) -> bool {
        self.work.is_some_and(Work::contracts)
    }
    /// Whether a node of this op draws from the generator that no handle names: not where its own seeds say what it draws.
    pub fn draws_in(&self, node: &Node) -> bool {
        self.draws && super::random::fixed_seeds(node).is_none()
    }
    /// How it calls functions of the library, if it does.
    pub fn calls(&self) -> Option<Calls> {
        match self.lower {
            Lower::Walker(calls) => Some(calls),
            Lower::Node(_) | Lower::Unary(_) | Lower::Binary(_) => None,
        }
    }
    /// Says which element types it takes.
    pub const fn dtypes(self, dtypes: &'static str) -> Self {
        OpRow { dtypes, ..self }
    }
    /// Gives the function that tells the shapes of the outputs.
    pub const fn shape(self, shape: ShapeFn) -> Self {
        OpRow { shapes: Shapes::Function(shape), ..self }
    }
    /// Says that the op goes point by point over inputs that are broadcast together.
    pub const fn pointwise(self) -> Self {
        OpRow { shapes: Shapes::Pointwise, ..self }
    }
    /// Says what the op does to sizes.
    pub const fn sizes(self, sizes: SizeFn) -> Self {
        OpRow { sizes: Some(sizes), ..self }
    }
    /// The op as HLO, but for one that the walker lowers.
    ///
    /// # Errors
    /// Those of the op; an internal one where the walker lowers it.
    pub fn run(&self, cx: &mut LowerCtx) -> Result<Vec<Value>> {
        if self.moves_strings && cx.args.iter().any(is_text) {
            return move_strings(self, cx);
        }
        if let Some(check) = self.check.filter(|_| cx.b.is_checked()) {
            check(cx)?;
        }
        match self.lower {
            Lower::Node(f) => f(cx),
            Lower::Unary(f) => {
                let x = cx.arg(0)?;
                Ok(vec![Value::Array(f(cx.b, x))])
            }
            Lower::Binary(f) => {
                let (x, y) = (cx.arg(0)?, cx.arg(1)?);
                if cx.b.dtype(x) != cx.b.dtype(y) {
                    let message = format!("the inputs are {} and {}", cx.b.dtype(x), cx.b.dtype(y));
                    return Err(Error::user(Code::TypeMismatch, message));
                }
                Ok(vec![Value::Array(f(cx.b, x, y))])
            }
            Lower::Walker(_) => Err(Error::internal("lower", format!("{} has no function of the node", self.name))),
        }
    }
    /// Names of the inputs; a list ends in `*`.
    pub fn inputs(&self) -> Vec<&'static str> {
        self.signature.split("->").next().unwrap_or("").split_whitespace().collect()
    }
    /// Names of the outputs; a list ends in `*`.
    pub fn outputs(&self) -> Vec<&'static str> {
        outputs_of(self.signature)
    }
    /// Whether the op can have this number of data inputs.
    pub fn takes(&self, inputs: usize) -> bool {
        let names = self.inputs();
        let lists = names.iter().filter(|n| n.ends_with('*')).count();
        if lists == 0 { inputs == names.len() } else { inputs >= names.len() - lists }
    }
}

/// Names of the outputs of a signature.
pub fn outputs_of(signature: &'static str) -> Vec<&'static str> {
    signature.split("->").nth(1).unwrap_or("").split_whitespace().collect()
}
