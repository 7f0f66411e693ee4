//! A program cut to what its fetches need.
use crate::diag::{Code, Error, Result};
use crate::graph::{Endpoint, Program};
use crate::lower::Feed;

/// One `--feed`: a tensor's name, and its type and sizes where they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSpec;

impl FeedSpec {
    /// Reads `NAME` or `NAME=f32[1,224,224,3]`.
    pub fn parse(_text: &str) -> Result<FeedSpec> {
        Ok(FeedSpec)
    }
}

/// What part of a program is wanted.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Inputs; none: the Placeholders, or those of the signature.
    pub feeds: Vec<FeedSpec>,
    /// Outputs; none: the sinks, or those of the signature.
    pub fetches: Vec<String>,
    /// Sizes of unknown dimensions by name.
    pub dims: Vec<(String, u64)>,
    /// The signature of a SavedModel.
    pub signature: Option<String>,
}

/// What the lowering needs.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub feeds: Vec<Feed>,
    /// Its results.
    pub fetches: Vec<(String, Endpoint)>,
    /// What was assumed, a sentence each.
    pub assumptions: Vec<String>,
}

/// Cuts `program` to what `request` asks for.
pub fn prepare(_program: Program, _request: &Request) -> Result<Prepared> {
    Err(Error::user(Code::UnsupportedCase, "not written"))
}
