//! The sizes for which clusters are compiled: those given for the feeds, and their consequences for all other tensors.
use crate::diag::{Code, Error, Result};
use crate::graph::{Program, Signature};
use crate::infer::{Facts, FeedFacts};
use crate::ops::symbols::DimId;
use crate::prepare::{self, DimBound, FeedSpec, Request, ResolvedRequest};
use crate::tensor::Size;
use std::collections::HashMap;

/// Bound of a leading size that is not given. It nearly always is the batch; larger calls are rare outside of training, and memory for
/// them would burden the small ones.
const MAX_ASSUMED_BATCH: u64 = 64;

/// Name of the size that stands for all leading sizes that are not given.
const ASSUMED_BATCH_NAME: &str = "n";

/// Types, shapes and bounds of the feeds of the requested signatures, or of the graph.
pub struct GivenFeeds {
    /// The feeds; where a dimension varies, `FeedFacts::sizes` holds an index into `sizes`.
    pub given: Vec<FeedFacts>,
    /// The sizes that vary from call to call, with their bounds.
    pub sizes: Vec<Size>,
}

impl GivenFeeds {
    /// Collects the feeds of `program` as `request` describes them. Errors: `UnknownTensor` for unknown feeds, `BadOption` for a size with
    /// two bounds.
    pub fn collect(program: &Program, request: &Request) -> Result<GivenFeeds> {
        // the initializer restores variables and has no inputs or outputs
        let signatures = program.signatures.iter().filter(|s| s.name != "__saved_model_init_op");
        let mut asked: Vec<Vec<String>> = signatures.map(|s| vec![s.name.clone()]).collect();
        if asked.is_empty() || !request.signatures.is_empty() {
            asked = vec![request.signatures.clone()];
        }
        let mut told = GivenFeeds { given: Vec::new(), sizes: Vec::new() };
        for signatures in asked {
            let mut request = Request { signatures, ..request.clone() };
            // an option for an input name applies to the signatures that have the input
            let has = |s: &Signature, feed: &FeedSpec| s.inputs.iter().any(|(name, _)| *name == feed.name);
            let own = |feed: &FeedSpec| {
                let named: Vec<&Signature> = program.signatures.iter().filter(|s| has(s, feed)).collect();
                named.is_empty() || named.iter().any(|s| request.signatures.contains(&s.name))
            };
            let feeds = request.feeds.iter().filter(|f| own(f)).cloned().collect();
            request.feeds = feeds;
            told.add(prepare::resolve_request(program, &request)?)?;
        }
        Ok(told)
    }

    fn add(&mut self, open: ResolvedRequest) -> Result<()> {
        let numbers = open.sizes.iter().map(|size| self.number(size)).collect::<Result<Vec<usize>>>()?;
        for mut given in open.feeds {
            if self.given.iter().all(|known| known.at != given.at) {
                given.sizes.iter_mut().for_each(|size| *size = size.map(|own| numbers[own]));
                self.given.push(given);
            }
        }
        Ok(())
    }

    /// The index of a size in `sizes`, to which it is added if no size there has its name. Errors: `BadOption` if the bounds differ.
    fn number(&mut self, size: &Size) -> Result<usize> {
        match self.sizes.iter().position(|s| s.name == size.name) {
            Some(known) if self.sizes[known] == *size => Ok(known),
            Some(_) => {
                let told = format!("the size `{}` has other bounds in another signature", size.name);
                Err(Error::user(Code::BadOption, told))
            }
            None => {
                self.sizes.push(size.clone());
                Ok(self.sizes.len() - 1)
            }
        }
    }

    /// Command-line flags by which the user could give the sizes of feeds that are still unknown.
    pub fn suggested_flags(&self, program: &Program) -> Vec<String> {
        let mut flags = Vec::new();
        for given in &self.given {
            let name = &program.graph.nodes[given.at.node].name;
            match &given.shape.0 {
                None => flags.push(format!("--feed '{name}=f32[n<=64,...]'")),
                Some(dims) => {
                    let open = |i: &usize| dims[*i].is_none() && given.sizes.get(*i).copied().flatten().is_none();
                    flags.extend((0..dims.len()).filter(open).map(|i| format!("--dim '{name}[{i}]=1..N'")));
                }
            }
        }
        flags
    }

    /// Assumes that leading sizes which are not given range from 1 to [`MAX_ASSUMED_BATCH`]. Returns a note about this for the user; `None`
    /// if all leading sizes are given.
    pub fn assume_leading_sizes(&mut self, program: &Program) -> Option<String> {
        let number = self.sizes.len();
        let mut names = Vec::new();
        for given in &mut self.given {
            let leading = given.shape.0.as_ref().and_then(|dims| dims.first().copied());
            if let (Some(None), Some(size @ None)) = (leading, given.sizes.first_mut()) {
                *size = Some(number);
                names.push(format!("`{}`", program.graph.nodes[given.at.node].name));
            }
        }
        if names.is_empty() {
            return None;
        }
        let mut name = ASSUMED_BATCH_NAME.to_string();
        while self.sizes.iter().any(|s| s.name == name) {
            name.push('_');
        }
        self.sizes.push(Size { name, least: 1, most: MAX_ASSUMED_BATCH, is_result: false, is_check: false });
        Some(format!(
            "the leading size of {} is not known and taken as 1 to {MAX_ASSUMED_BATCH}; larger calls are left to TensorFlow \
             (--dim batch=1..N for another bound)",
            names.join(", ")
        ))
    }
}

/// Bounds of the sizes that inference over a program left unknown.
pub struct UnknownSizeBounds {
    /// Bounds of each unknown size, indexed by [`DimId`]; `None` for an unbounded one.
    all: Vec<Option<DimBound>>,
}

impl UnknownSizeBounds {
    /// Bounds of the unknown sizes in `facts`, which were inferred for feeds whose open axes have the sizes `sizes`. A size computed from other sizes gets its bounds from
    /// theirs.
    pub fn from_inferred_facts(facts: &Facts, sizes: &[Size]) -> UnknownSizeBounds {
        let told = |value: fn(&Size) -> u64| {
            let told = facts.sizes.iter().map(|(&number, &id)| (id, value(&sizes[number])));
            facts.symbols.values(&told.collect())
        };
        let named: HashMap<usize, &str> =
            facts.sizes.iter().map(|(&number, id)| (id.0 as usize, sizes[number].name.as_str())).collect();
        let bound = |(id, ends): (usize, (Option<u64>, Option<u64>))| {
            let (a, b) = (ends.0?, ends.1?);
            let name = named.get(&id).map_or_else(|| format!("size_{id}"), |name| name.to_string());
            (b > 0).then(|| DimBound { name: Some(name), least: a.min(b), most: a.max(b) })
        };
        let ends = told(|s| s.least).into_iter().zip(told(|s| s.most));
        UnknownSizeBounds { all: ends.enumerate().map(bound).collect() }
    }

    /// Bounds of an unknown size; `None` if it is unbounded.
    pub fn of_size(&self, id: DimId) -> Option<&DimBound> {
        self.all.get(id.0 as usize)?.as_ref()
    }
}
