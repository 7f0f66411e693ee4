//! Which op departs first.
//!
//! Every intermediate result is fetched from both engines and compared in topological order. An op whose result departs may
//! only pass on what it was given, so that each of the first ones is compiled alone and fed the reference's inputs: what it
//! departs by then it adds itself. The reference is the interpreter, and where the expected results hold intermediate ones
//! too, these.
use super::{Bound, Comparison, instructions, worst};
use crate::cli::args::VerifyArgs;
use crate::cli::graph;
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, PartialShape, Program, TfType};
use crate::import::{self, Loaded};
use crate::infer::{self, Facts, Given};
use crate::prepare::{FeedSpec, Prepared, Request, prepare};
use crate::run;
use crate::run::arguments;
use crate::run::npz::Arrays;
use crate::target::Target;
use crate::tensor::{Tensor, TensorInfo};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Intermediate results may take this much.
pub(super) const MOST_BYTES: u64 = 1 << 31;
/// So many departing ops are tried alone.
pub(super) const MOST_ALONE: usize = 16;

/// One tensor by the compiled code and by a reference: the expectation where it has the tensor, else the interpreter.
pub struct Step {
    /// Its name as `node:index`.
    pub tensor: String,
    /// The op that makes it.
    pub op: String,
    /// How often the bound it departs by, with all that the ops before it did.
    pub total: f64,
    /// The same where the op alone gets the reference's inputs; `None`: not tried, or the reference does not have them.
    pub own: Option<f64>,
    /// Whether the expectation departs from the interpreter too, and what it expects of the op's inputs is not known: then
    /// nothing says that the op is at fault.
    pub expectation: bool,
}

/// All tensors in topological order.
pub struct Blame {
    /// One a tensor.
    pub steps: Vec<Step>,
    /// The arrays of the expectation that are no outputs.
    pub others: Vec<Comparison>,
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
    fn found(&self) -> Option<&Step> {
        let own = self.steps.iter().find(|s| s.own.is_some_and(|own| own > 1.0));
        own.or_else(|| self.steps.iter().find(|s| s.total > 1.0))
    }
    /// The tensor whose op is to blame; none where the expectation is what departs.
    pub fn first(&self) -> Option<&Step> {
        self.found().filter(|s| !s.expectation)
    }
    /// The first tensor of the expectation that departs from both engines, where those agree.
    pub fn expectation(&self) -> Option<&Step> {
        self.found().filter(|s| s.expectation)
    }
    /// What was found, a sentence.
    pub fn in_words(&self) -> String {
        match self.found() {
            Some(s) if s.expectation => format!(
                "the code and the interpreter agree, and both depart from the expectation; `{}` is the first of its arrays that they depart from, and the expectation does not have the inputs of its op",
                s.tensor
            ),
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

/// What a tensor is by a reference.
type Known<'a> = HashMap<Endpoint, &'a Tensor>;

/// Compares every intermediate result. `others` are the keys of `reference` that are no outputs.
///
/// Errors: those of compiling and running; `Code::TooLarge` for too many bytes; `Code::BadInputs` for each of `others` that is no
/// tensor which the fetches need, or has another type.
pub fn find(
    args: &VerifyArgs,
    target: &Target,
    name: &str,
    values: &[Tensor],
    (reference, others): (&Arrays, &[String]),
) -> Result<Blame> {
    let program = match import::load_any(&args.graph.graph, args.graph.format.as_deref())? {
        Loaded::Graph(mut program) => {
            program.freeze(|_| false);
            *program
        }
        Loaded::Module(bytes) => {
            let unknown = |key: &String| {
                let told = format!("the expectation has `{key}`, which is no result of the module");
                Diagnostic::new(Code::BadInputs, told)
            };
            if !others.is_empty() {
                return Err(Error::User(others.iter().map(unknown).collect()));
            }
            let lowered = compile::of_module(&bytes, &graph::request(&args.graph)?)?;
            let bound = Bound::of(args, target.precision);
            return instructions::find(&lowered, (bound, args.threads.into()), target, name, values);
        }
    };
    let whole = prepare(program, &graph::request(&args.graph)?)?;
    let facts = infer::infer(&whole.program, &whole.feeds.iter().map(given).collect::<Vec<_>>());
    let fetches = intermediate(&whole, &facts)?;
    let all = Prepared { fetches, called: Vec::new(), ..whole };
    let lowered = compile::lowered(&all)?;
    let infos = lowered.results.clone();
    let plain = run::interpret(&lowered, values.to_vec())?;
    let native = run::compile_and_call(lowered, name, target, values, args.threads.into())?;
    let told = |info: &TensorInfo| arguments::find(reference, info, &[]).and_then(|a| arguments::fit(a, info).ok());
    let told: Vec<Option<Tensor>> = infos.iter().map(told).collect();
    let bound = Bound::of(args, target.precision);
    let computed = |i: usize| (&infos[i], &native[i]);
    let others = compare_others(&all, &facts, values, &computed, (reference, others), bound)?;
    let fed = || all.feeds.iter().map(|f| f.at).zip(values);
    let places = || all.fetches.iter().map(|f| f.1);
    let expected: Known = places().zip(&told).filter_map(|(at, t)| Some((at, t.as_ref()?))).chain(fed()).collect();
    let interpreted: Known = places().zip(&plain).chain(fed()).collect();
    let excess = |got: &Tensor, want: &Tensor| worst(got, want, bound).map_or(0.0, |w| w.excess);
    let mut steps = Vec::with_capacity(plain.len());
    let mut tried = 0;
    for (i, (tensor, at)) in all.fetches.iter().enumerate() {
        let node = &all.program.graph.nodes[at.node];
        let constant = |e: &Endpoint| is_constant(&all.program, &facts, *e);
        let grounded = node.inputs.iter().all(|e| constant(e) || expected.contains_key(e));
        let want = told[i].as_ref().unwrap_or(&plain[i]);
        let total = excess(&native[i], want);
        let expectation = told[i].is_some() && !grounded && total > 1.0 && excess(&native[i], &plain[i]) <= 1.0;
        let mut own = None;
        if total > 1.0 && tried < MOST_ALONE && !expectation {
            tried += 1;
            let known = if told[i].is_some() && grounded { &expected } else { &interpreted };
            let want = if told[i].is_some() && grounded { want } else { &plain[i] };
            let result = alone(&all.program, &facts, *at, tensor, known, args, target, name)?;
            own = result.map(|got| excess(&got, want));
        }
        steps.push(Step { tensor: tensor.clone(), op: node.op.to_string(), total, own, expectation });
    }
    Ok(Blame { steps, others })
}

/// Compares arrays of the expectation that are no outputs: intermediate results, arguments, constants.
fn compare_others<'a>(
    all: &Prepared,
    facts: &Facts,
    values: &[Tensor],
    computed: &dyn Fn(usize) -> (&'a TensorInfo, &'a Tensor),
    (reference, others): (&Arrays, &[String]),
    bound: Bound,
) -> Result<Vec<Comparison>> {
    let (mut out, mut bad) = (Vec::new(), Vec::new());
    for key in others {
        let Some(array) = reference.get(key) else { continue };
        let spelled = if key.contains(':') { key.clone() } else { format!("{key}:0") };
        let result = all.fetches.iter().position(|f| f.0 == spelled).map(computed);
        let fed = || {
            all.feeds
                .iter()
                .zip(values)
                .find(|(f, _)| f.info.name == spelled || f.info.called.as_ref() == Some(key))
                .map(|(f, v)| (f.info.clone(), v))
        };
        let found =
            result.map(|(info, got)| (info.clone(), got)).or_else(fed).or_else(|| constant(all, facts, &spelled));
        let Some((info, got)) = found else {
            let told = format!("the expectation has `{key}`, which is no tensor that the fetches need");
            bad.push(Diagnostic::new(Code::BadInputs, told).help("tfaot inspect --shapes lists the tensors"));
            continue;
        };
        match arguments::fit(array, &info) {
            Ok(want) => out.push(Comparison::of(key, "expected", got, &want, bound)),
            Err(e) => bad.extend(e.into_diagnostics()),
        }
    }
    if bad.is_empty() { Ok(out) } else { Err(Error::User(bad)) }
}

/// The constant that is called so.
fn constant<'a>(all: &Prepared, facts: &'a Facts, spelled: &str) -> Option<(TensorInfo, &'a Tensor)> {
    let (node, port) = spelled.rsplit_once(':')?;
    let at = Endpoint { node: all.program.graph.find(node)?, port: port.parse().ok()? };
    let value = facts.at(at)?.tensor()?;
    let name = spelled.to_string();
    let dims = value.dims.clone();
    Some((TensorInfo { name, called: None, field: String::new(), dtype: value.dtype, dims }, value))
}

fn is_constant(program: &Program, facts: &Facts, at: Endpoint) -> bool {
    facts.at(at).is_some_and(|f| f.tensor().is_some()) || &*program.graph.nodes[at.node].op == "Const"
}

fn given(feed: &crate::lower::Feed) -> Given {
    let dims = feed.info.dims.iter().copied().map(Some).collect();
    Given {
        at: feed.at,
        dtype: Some(TfType::Data(feed.info.dtype)),
        shape: PartialShape(Some(dims)),
        sizes: Vec::new(),
        value: None,
    }
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
    known: &Known,
    args: &VerifyArgs,
    target: &Target,
    name: &str,
) -> Result<Option<Tensor>> {
    let mut request = Request { fetches: vec![tensor.to_string()], ..Request::default() };
    let mut values: Vec<(String, Tensor)> = Vec::new();
    for input in &program.graph.nodes[at.node].inputs {
        let from = &program.graph.nodes[input.node];
        let spelled = format!("{}:{}", from.name, input.port);
        if is_constant(program, facts, *input) || values.iter().any(|v| v.0 == spelled) {
            continue;
        }
        let Some(&value) = known.get(input) else { return Ok(None) };
        let dims = Some(value.dims.iter().copied().map(Some).collect());
        request.feeds.push(FeedSpec { name: spelled.clone(), dtype: Some(value.dtype), dims, ..FeedSpec::default() });
        values.push((spelled, value.clone()));
    }
    // Without feeds prepare would look for some.
    if values.is_empty() {
        return Ok(None);
    }
    let Ok(prepared) = prepare(program.clone(), &request) else { return Ok(None) };
    let Ok(lowered) = compile::lowered(&prepared) else { return Ok(None) };
    if lowered.sized.is_some() {
        return Ok(None);
    }
    let value = |info: &TensorInfo| values.iter().find(|v| v.0 == info.name).map(|v| v.1.clone());
    let Some(inputs) = lowered.args.iter().map(value).collect::<Option<Vec<Tensor>>>() else { return Ok(None) };
    Ok(run::compile_and_call(lowered, name, target, &inputs, args.threads.into())?.into_iter().next())
}
