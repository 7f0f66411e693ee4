//! Search for the op of a graph whose result departs first.
//!
//! Every intermediate result is fetched from compiled code and from the interpreter, and compared in topological order. Departing ops
//! may only pass on a difference in their inputs, so the first ones are compiled alone and fed the reference's inputs; a difference
//! that remains is the op's own. The reference is the interpreter's result, or the expected one for tensors in the expectation.
use super::{Comparison, VerifyCase, instructions};
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, PartialShape, Program, TfType};
use crate::import::{self, Loaded};
use crate::infer::{self, Facts, FeedFacts};
use crate::prepare::{FeedSpec, PreparedProgram, Request, prepare};
use crate::run;
use crate::run::arguments;
use crate::run::npz::Arrays;
use crate::tensor::{Tensor, TensorInfo};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum size in bytes of the intermediate results that are compared.
pub(super) const MOST_BYTES: u64 = 1 << 31;
/// Maximum number of departing ops that are compiled alone.
pub(super) const MOST_ALONE: usize = 16;

/// Comparison of one tensor: compiled code against the expectation if it has the tensor, else against the interpreter.
pub struct OpComparison {
    /// The tensor's name as `node:index`.
    pub tensor: String,
    /// The op that computes the tensor.
    pub op: String,
    /// Ratio of the largest difference to the tolerance; ops before this one contribute.
    pub total: f64,
    /// Ratio of the largest difference to the tolerance when the op alone is fed the reference's inputs; `None` if this was not tried, or
    /// the reference does not have the inputs.
    pub own: Option<f64>,
    /// Whether the expectation departs from the interpreter too and lacks the op's inputs, so that the op can't be blamed.
    pub expectation: bool,
}

/// Result of comparing a graph op by op.
pub struct Blame {
    /// The tensors in topological order.
    pub steps: Vec<OpComparison>,
    /// Comparisons with arrays of the expectation that are not outputs.
    pub others: Vec<Comparison>,
}

impl OpComparison {
    /// The node's name.
    pub fn node(&self) -> &str {
        self.tensor.rsplit_once(':').map_or(&self.tensor, |(node, _)| node)
    }
    /// The comparison of the op's result as a JSON object.
    pub fn as_json(&self) -> Value {
        json!({"tensor": self.tensor, "op": self.op, "total": self.total, "own": self.own})
    }
}

impl std::fmt::Display for OpComparison {
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
    /// The first tensor whose op departs by itself, or else the first departing one.
    fn culprit(&self) -> Option<&OpComparison> {
        let own = self.steps.iter().find(|s| s.own.is_some_and(|own| own > 1.0));
        own.or_else(|| self.steps.iter().find(|s| s.total > 1.0))
    }
    /// The tensor whose op is to blame; none if it is the expectation that departs.
    pub fn blamed_op(&self) -> Option<&OpComparison> {
        self.culprit().filter(|s| !s.expectation)
    }
    /// The first tensor of the expectation that departs from both compiled code and interpreter, if these agree.
    pub fn departing_expectation(&self) -> Option<&OpComparison> {
        self.culprit().filter(|s| s.expectation)
    }
    /// The finding, as a sentence.
    pub fn sentence(&self) -> String {
        match self.culprit() {
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

/// Values of tensors according to the reference.
type ReferenceValues<'a> = HashMap<Endpoint, &'a Tensor>;

/// Compares every intermediate result. `others` are the keys of `reference` that are not outputs.
///
/// # Errors
/// Errors of compiling and running; `Code::TooLarge` for too many bytes; `Code::BadInputs` for each of `others` that is not a tensor
/// needed by the fetches, or has another type.
pub(super) fn compare_ops(case: &VerifyCase, reference: &Arrays, others: &[String]) -> Result<Blame> {
    let program = match import::load_any(case.graph, case.format)? {
        Loaded::Graph(mut program) => {
            program.freeze_variables(|_| false);
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
            let lowered = compile::lower_module_file(&bytes, case.request)?;
            return instructions::compare_instructions(&lowered, case.args, &case.conditions);
        }
    };
    let whole = prepare(program, case.request)?;
    let facts = infer::infer(&whole.program, &whole.feeds.iter().map(feed_facts).collect::<Vec<_>>());
    let fetches = intermediate(&whole, &facts)?;
    let all = PreparedProgram { fetches, called: Vec::new(), ..whole };
    let lowered = compile::lower_prepared(&all)?;
    let infos = lowered.results.clone();
    let plain = run::interpret(&lowered, case.args.to_vec())?;
    let native = case.conditions.call(lowered, case.args)?;
    let expected = |info: &TensorInfo| {
        arguments::find(reference, info, &[]).and_then(|a| arguments::convert_to_argument(a, info).ok())
    };
    let expected: Vec<Option<Tensor>> = infos.iter().map(expected).collect();
    let results =
        Results { all: &all, facts: &facts, infos: &infos, native: &native, plain: &plain, expected: &expected };
    let others = results.compare_others(case, reference, others)?;
    Ok(Blame { steps: results.steps(case)?, others })
}

/// Intermediate results of compiled code, the interpreter and the expectation, in the order of the fetches.
struct Results<'a> {
    all: &'a PreparedProgram,
    facts: &'a Facts,
    infos: &'a [TensorInfo],
    native: &'a [Tensor],
    plain: &'a [Tensor],
    expected: &'a [Option<Tensor>],
}

impl<'a> Results<'a> {
    /// Compares the intermediate results in topological order, and compiles the first departing ops alone.
    fn steps(&self, case: &VerifyCase) -> Result<Vec<OpComparison>> {
        let Results { all, facts, native, plain, expected, .. } = *self;
        let conditions = &case.conditions;
        let fed = || all.feeds.iter().map(|f| f.at).zip(case.args);
        let places = || all.fetches.iter().map(|f| f.1);
        let by_expectation: ReferenceValues =
            places().zip(expected).filter_map(|(at, t)| Some((at, t.as_ref()?))).chain(fed()).collect();
        let by_interpreter: ReferenceValues = places().zip(plain).chain(fed()).collect();
        let mut steps = Vec::with_capacity(plain.len());
        let mut tried = 0;
        for (i, (tensor, at)) in all.fetches.iter().enumerate() {
            let node = &all.program.graph.nodes[at.node];
            let constant = |e: &Endpoint| is_constant(&all.program, facts, *e);
            let grounded = node.inputs.iter().all(|e| constant(e) || by_expectation.contains_key(e));
            let want = expected[i].as_ref().unwrap_or(&plain[i]);
            let total = conditions.excess(&native[i], want);
            let agree = || conditions.excess(&native[i], &plain[i]) <= 1.0;
            let expectation = expected[i].is_some() && !grounded && total > 1.0 && agree();
            let mut own = None;
            if total > 1.0 && tried < MOST_ALONE && !expectation {
                tried += 1;
                let is_expected = expected[i].is_some() && grounded;
                let known = if is_expected { &by_expectation } else { &by_interpreter };
                let want = if is_expected { want } else { &plain[i] };
                own = self.alone(case, *at, tensor, known)?.map(|got| conditions.excess(&got, want));
            }
            steps.push(OpComparison { tensor: tensor.clone(), op: node.op.to_string(), total, own, expectation });
        }
        Ok(steps)
    }

    /// Compares arrays of the expectation that are not outputs: intermediate results, arguments, constants.
    fn compare_others(&self, case: &VerifyCase, reference: &Arrays, others: &[String]) -> Result<Vec<Comparison>> {
        let (mut out, mut bad) = (Vec::new(), Vec::new());
        let tolerance = case.conditions.tolerance(case.conditions.code.precision);
        for key in others {
            let Some(array) = reference.get(key) else { continue };
            let Some((info, got)) = self.find_tensor(key, case.args) else {
                let told = format!("the expectation has `{key}`, which is no tensor that the fetches need");
                bad.push(Diagnostic::new(Code::BadInputs, told).help("tfaot inspect --shapes lists the tensors"));
                continue;
            };
            match arguments::convert_to_argument(array, &info) {
                Ok(want) => out.push(Comparison::new(key, "expected", got, &want, tolerance)),
                Err(e) => bad.extend(e.into_diagnostics()),
            }
        }
        if bad.is_empty() { Ok(out) } else { Err(Error::User(bad)) }
    }

    /// Finds a tensor by name among intermediate results, arguments and constants.
    fn find_tensor<'b>(&'b self, key: &String, args: &'b [Tensor]) -> Option<(TensorInfo, &'b Tensor)> {
        let spelled = if key.contains(':') { key.clone() } else { format!("{key}:0") };
        let index = self.all.fetches.iter().position(|f| f.0 == spelled);
        let result = index.map(|i| (self.infos[i].clone(), &self.native[i]));
        let is_called = |info: &TensorInfo| info.name == spelled || info.called.as_ref() == Some(key);
        let mut feeds = self.all.feeds.iter().zip(args);
        let fed = || feeds.find(|(f, _)| is_called(&f.info)).map(|(f, v)| (f.info.clone(), v));
        result.or_else(fed).or_else(|| constant(self.all, self.facts, &spelled))
    }

    /// Compiles one op alone and calls it with the reference's inputs; `None` if this is impossible, for example if an input is a list.
    fn alone(&self, case: &VerifyCase, at: Endpoint, tensor: &str, known: &ReferenceValues) -> Result<Option<Tensor>> {
        let program = &self.all.program;
        let mut request = Request { fetches: vec![tensor.to_string()], ..Request::default() };
        let mut values: Vec<(String, Tensor)> = Vec::new();
        for input in &program.graph.nodes[at.node].inputs {
            let from = &program.graph.nodes[input.node];
            let name = format!("{}:{}", from.name, input.port);
            if is_constant(program, self.facts, *input) || values.iter().any(|v| v.0 == name) {
                continue;
            }
            let Some(&value) = known.get(input) else { return Ok(None) };
            let dims = Some(value.dims.iter().copied().map(Some).collect());
            request.feeds.push(FeedSpec { name: name.clone(), dtype: Some(value.dtype), dims, ..FeedSpec::default() });
            values.push((name, value.clone()));
        }
        // Without explicit feeds, `prepare` would feed the graph's placeholders.
        if values.is_empty() {
            return Ok(None);
        }
        let Ok(prepared) = prepare(program.clone(), &request) else { return Ok(None) };
        let Ok(lowered) = compile::lower_prepared(&prepared) else { return Ok(None) };
        if lowered.size_variants.is_some() {
            return Ok(None);
        }
        let value = |info: &TensorInfo| values.iter().find(|v| v.0 == info.name).map(|v| v.1.clone());
        let Some(inputs) = lowered.args.iter().map(value).collect::<Option<Vec<Tensor>>>() else { return Ok(None) };
        Ok(case.conditions.call(lowered, &inputs)?.into_iter().next())
    }
}

/// Finds a constant by the name of its tensor.
fn constant<'a>(all: &PreparedProgram, facts: &'a Facts, spelled: &str) -> Option<(TensorInfo, &'a Tensor)> {
    let (node, port) = spelled.rsplit_once(':')?;
    let at = Endpoint { node: all.program.graph.find(node)?, port: port.parse().ok()? };
    let value = facts.at(at)?.as_tensor()?;
    let name = spelled.to_string();
    let dims = value.dims.clone();
    Some((TensorInfo { name, called: None, field: String::new(), dtype: value.dtype, dims }, value))
}

fn is_constant(program: &Program, facts: &Facts, at: Endpoint) -> bool {
    facts.at(at).is_some_and(|f| f.as_tensor().is_some()) || &*program.graph.nodes[at.node].op == "Const"
}

fn feed_facts(feed: &crate::lower::Feed) -> FeedFacts {
    let dims = feed.info.dims.iter().copied().map(Some).collect();
    FeedFacts {
        at: feed.at,
        dtype: Some(TfType::Data(feed.info.dtype)),
        shape: PartialShape(Some(dims)),
        sizes: Vec::new(),
        value: None,
    }
}

/// Lists the arrays that depend on the feeds, in topological order.
fn intermediate(whole: &PreparedProgram, facts: &Facts) -> Result<Vec<(String, Endpoint)>> {
    let graph = &whole.program.graph;
    let order = graph.topological_order();
    let order = order.map_err(|_| Error::user(Code::BadGraph, "the graph has a cycle"))?;
    let (mut out, mut bytes) = (Vec::new(), 0u64);
    for id in order {
        if whole.feeds.iter().any(|f| f.at.node == id) {
            continue;
        }
        for (port, fact) in facts.graph[id.0 as usize].iter().enumerate() {
            let (Some(TfType::Data(dtype)), Some(dims), None) = (fact.dtype, fact.dims.known_sizes(), fact.as_tensor())
            else {
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
