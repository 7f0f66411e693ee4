//! Which op departs first.
//!
//! Every intermediate result is fetched from both engines and compared in topological order. An op whose result departs may
//! only pass on what it was given, so that each of the first ones is compiled alone and fed the reference's inputs: what it
//! departs by then it adds itself. The reference is the interpreter, and where the expected results hold intermediate ones
//! too, these.
use super::{Bound, worst};
use crate::cli::args::VerifyArgs;
use crate::cli::npz::Arrays;
use crate::cli::{graph, inputs, run};
use crate::compile;
use crate::diag::{Code, Error, Result};
use crate::graph::{Endpoint, PartialShape, Program, TfType};
use crate::import;
use crate::infer::{self, Facts, Given};
use crate::prepare::{FeedSpec, Prepared, Request, prepare};
use crate::target::Target;
use crate::tensor::{Tensor, TensorInfo};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Intermediate results may take this much.
const MOST_BYTES: u64 = 1 << 31;
/// So many departing ops are tried alone.
const MOST_ALONE: usize = 16;

/// One tensor by both engines.
pub struct Step {
    /// Its name as `node:index`.
    pub tensor: String,
    /// The op that makes it.
    pub op: String,
    /// How often the bound it departs by, with all that the ops before it did.
    pub total: f64,
    /// The same where the op alone gets the reference's inputs; `None`: not tried.
    pub own: Option<f64>,
}

/// All tensors in topological order.
pub struct Blame {
    /// One a tensor.
    pub steps: Vec<Step>,
}

impl Step {
    /// The node's name.
    pub fn node(&self) -> &str {
        self.tensor.rsplit_once(':').map_or(&self.tensor, |(node, _)| node)
    }
    /// The step as a JSON object.
    pub fn as_json(&self) -> Value {
        json!({"tensor": self.tensor, "op": self.op, "total": self.total, "own": self.own})
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.total > 1.0 { "departs" } else { "equal" };
        write!(f, "{verdict:8} {} ({}), {:.3} of the bound", self.tensor, self.op, self.total)?;
        match self.own {
            Some(own) => write!(f, ", {own:.3} of it added here"),
            None => Ok(()),
        }
    }
}

impl Blame {
    /// The first tensor whose op departs by itself, else the first that departs.
    pub fn first(&self) -> Option<&Step> {
        let own = self.steps.iter().find(|s| s.own.is_some_and(|own| own > 1.0));
        own.or_else(|| self.steps.iter().find(|s| s.total > 1.0))
    }
    /// What was found, a sentence.
    pub fn in_words(&self) -> String {
        match self.first() {
            Some(s) => match s.own {
                Some(own) if own > 1.0 => format!(
                    "`{}` ({}) is the first op that departs by itself, {own:.3} times the bound",
                    s.tensor, s.op
                ),
                _ => format!(
                    "`{}` ({}) is the first that departs, but on the reference's inputs it stays within the bound: the error comes from small ones before it",
                    s.tensor, s.op
                ),
            },
            None => "with every intermediate result kept no op departs: the difference comes from how ops are fused"
                .to_string(),
        }
    }
}

/// Compares every intermediate result. Errors: those of compiling and running; `Code::TooLarge` for too many bytes.
pub fn find(args: &VerifyArgs, target: &Target, name: &str, values: &[Tensor], reference: &Arrays) -> Result<Blame> {
    let program = import::load(&args.graph.graph, args.graph.format.as_deref())?;
    let whole = prepare(program, &graph::request(&args.graph)?)?;
    let facts = infer::infer(&whole.program, &whole.feeds.iter().map(given).collect::<Vec<_>>());
    let fetches = intermediate(&whole, &facts)?;
    let all = Prepared { fetches, called: Vec::new(), ..whole };
    let lowered = compile::lowered(&all)?;
    let infos = lowered.results.clone();
    let plain = graph::interpret(&lowered, values.to_vec())?;
    let native = run::native(lowered, name, target, values, args.threads.into())?;
    let told = |info: &TensorInfo| inputs::find(reference, info, &[]).and_then(|a| inputs::fit(a, info).ok());
    let wanted: Vec<Tensor> = infos.iter().zip(plain).map(|(info, p)| told(info).unwrap_or(p)).collect();
    let mut known: HashMap<Endpoint, &Tensor> = all.fetches.iter().map(|f| f.1).zip(&wanted).collect();
    known.extend(all.feeds.iter().map(|f| f.at).zip(values));
    let bound = Bound::of(args, target.precision);
    let mut steps = Vec::with_capacity(wanted.len());
    let mut tried = 0;
    for (((tensor, at), got), want) in all.fetches.iter().zip(&native).zip(&wanted) {
        let total = worst(got, want, bound).map_or(0.0, |w| w.excess);
        let mut own = None;
        if total > 1.0 && tried < MOST_ALONE {
            tried += 1;
            let result = alone(&all.program, &facts, *at, tensor, &known, args, target, name)?;
            own = result.and_then(|got| worst(&got, want, bound)).map(|w| w.excess);
        }
        let op = all.program.graph.nodes[at.node].op.to_string();
        steps.push(Step { tensor: tensor.clone(), op, total, own });
    }
    Ok(Blame { steps })
}

fn given(feed: &crate::lower::Feed) -> Given {
    let dims = feed.info.dims.iter().copied().map(Some).collect();
    Given { at: feed.at, dtype: Some(TfType::Data(feed.info.dtype)), shape: PartialShape(Some(dims)) }
}

/// The arrays that depend on what is fed, producers first.
fn intermediate(whole: &Prepared, facts: &Facts) -> Result<Vec<(String, Endpoint)>> {
    let graph = &whole.program.graph;
    let order = graph.topological_order();
    let order = order.map_err(|_| Error::user(Code::BadGraph, "the graph has a cycle"))?;
    let (mut out, mut bytes) = (Vec::new(), 0u64);
    for id in order {
        if whole.feeds.iter().any(|f| f.at.node == id) {
            continue;
        }
        for (port, fact) in facts.graph[id.0 as usize].iter().enumerate() {
            let (Some(TfType::Data(dtype)), Some(dims), None) = (fact.dtype, fact.dims.fixed(), fact.tensor()) else {
                continue;
            };
            if &*graph.nodes[id].op == "Const" {
                continue;
            }
            let size = TensorInfo { name: String::new(), called: None, field: String::new(), dtype, dims }.bytes();
            bytes = bytes.saturating_add(size);
            out.push((format!("{}:{port}", graph.nodes[id].name), Endpoint { node: id, port: port as u32 }));
        }
    }
    if bytes > MOST_BYTES {
        let told = format!("the intermediate results take {bytes} bytes, and up to {MOST_BYTES} are compared");
        return Err(Error::user(Code::TooLarge, told));
    }
    Ok(out)
}

/// One op compiled alone on the reference's inputs; `None` where it can't be, such as where an input is a list.
fn alone(
    program: &Program,
    facts: &Facts,
    at: Endpoint,
    tensor: &str,
    known: &HashMap<Endpoint, &Tensor>,
    args: &VerifyArgs,
    target: &Target,
    name: &str,
) -> Result<Option<Tensor>> {
    let mut request = Request { fetches: vec![tensor.to_string()], ..Request::default() };
    let mut values: Vec<(String, Tensor)> = Vec::new();
    for input in &program.graph.nodes[at.node].inputs {
        let from = &program.graph.nodes[input.node];
        let constant = facts.at(*input).is_some_and(|f| f.tensor().is_some()) || &*from.op == "Const";
        let spelled = format!("{}:{}", from.name, input.port);
        if constant || values.iter().any(|v| v.0 == spelled) {
            continue;
        }
        let Some(&value) = known.get(input) else { return Ok(None) };
        let dims = Some(value.dims.iter().copied().map(Some).collect());
        request.feeds.push(FeedSpec { name: spelled.clone(), dtype: Some(value.dtype), dims });
        values.push((spelled, value.clone()));
    }
    // Without feeds prepare would look for some.
    if values.is_empty() {
        return Ok(None);
    }
    let Ok(prepared) = prepare(program.clone(), &request) else { return Ok(None) };
    let Ok(lowered) = compile::lowered(&prepared) else { return Ok(None) };
    let value = |info: &TensorInfo| values.iter().find(|v| v.0 == info.name).map(|v| v.1.clone());
    let Some(inputs) = lowered.args.iter().map(value).collect::<Option<Vec<Tensor>>>() else { return Ok(None) };
    Ok(run::native(lowered, name, target, &inputs, args.threads.into())?.into_iter().next())
}
