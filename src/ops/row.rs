//! What the compiler knows of an op: one `const` row.
use super::{LowerCtx, Value};
use crate::diag::Result;
use crate::hlo::{Builder, InstId};

/// How an op becomes HLO.
#[derive(Clone, Copy)]
pub enum Lower {
    /// Any function of the node: outputs in order.
    Node(fn(&mut LowerCtx) -> Result<Vec<Value>>),
    /// One array in, one out, no attributes.
    Unary(fn(&mut Builder, InstId) -> InstId),
    /// Two arrays in (not yet broadcast), one out, no attributes.
    Binary(fn(&mut Builder, InstId, InstId) -> InstId),
    /// Calls a function of the library: lowered by the walker (`lower/`), which alone sees functions.
    Walker,
}

/// One TensorFlow op.
pub struct OpRow {
    /// TensorFlow's name.
    pub name: &'static str,
    /// Names of inputs and outputs in TensorFlow's order: `input filter -> output`; `values*` is a list.
    pub signature: &'static str,
    /// Its meaning.
    pub lower: Lower,
    /// Inputs whose value must be known at compile time.
    pub constants: &'static [usize],
    /// The element types it takes, in words for the docs; empty: every type that HLO has for it.
    pub dtypes: &'static str,
}

/// A row with a function of the whole node.
pub const fn op(name: &'static str, signature: &'static str, lower: fn(&mut LowerCtx) -> Result<Vec<Value>>) -> OpRow {
    OpRow { name, signature, lower: Lower::Node(lower), constants: &[], dtypes: "" }
}

/// A row of one array in and one out.
pub const fn unary(name: &'static str, lower: fn(&mut Builder, InstId) -> InstId) -> OpRow {
    OpRow { name, signature: "x -> y", lower: Lower::Unary(lower), constants: &[], dtypes: "" }
}

/// A row of two arrays in, broadcast by the function, and one out.
pub const fn binary(name: &'static str, lower: fn(&mut Builder, InstId, InstId) -> InstId) -> OpRow {
    OpRow { name, signature: "x y -> z", lower: Lower::Binary(lower), constants: &[], dtypes: "" }
}

/// A row that the walker lowers.
pub const fn walker(name: &'static str, signature: &'static str) -> OpRow {
    OpRow { name, signature, lower: Lower::Walker, constants: &[], dtypes: "" }
}

impl OpRow {
    /// Says which inputs must be known at compile time.
    pub const fn constants(self, constants: &'static [usize]) -> Self {
        OpRow { constants, ..self }
    }
    /// Says which element types it takes.
    pub const fn dtypes(self, dtypes: &'static str) -> Self {
        OpRow { dtypes, ..self }
    }
    /// Names of the inputs; a list ends in `*`.
    pub fn inputs(&self) -> Vec<&'static str> {
        self.signature.split("->").next().unwrap_or("").split_whitespace().collect()
    }
    /// Names of the outputs; a list ends in `*`.
    pub fn outputs(&self) -> Vec<&'static str> {
        self.signature.split("->").nth(1).unwrap_or("").split_whitespace().collect()
    }
    /// Whether the op can have this number of data inputs.
    pub fn takes(&self, inputs: usize) -> bool {
        let names = self.inputs();
        let lists = names.iter().filter(|n| n.ends_with('*')).count();
        if lists == 0 { inputs == names.len() } else { inputs >= names.len() - lists }
    }
}
