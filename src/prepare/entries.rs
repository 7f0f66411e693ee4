//! Several signatures of one program, and which of its variables are state.
//!
//! A variable is state if a chosen signature changes it or the user names it, and a constant else. All signatures get the same
//! list of variables, so that one block of memory serves them all.
use super::defaults::feeds;
use super::names::NodesByName;
use super::{FeedSpec, Prepared, Request, UsedBindings, prune, resizable_variables, run, signature, tables};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Graph, NodeId, PartialShape, Program, Signature, TfType, Variable, VariableRole};
use crate::hlo::RuntimeChecks;
use crate::lower::{Access, AccessAnalysis};
use crate::ops;
use crate::tensor::{Bounds, DType, Tensor, element_count};
use std::collections::BTreeMap;

/// A variable that is declared has no more elements.
pub(super) const MOST_ELEMENTS: u64 = 1 << 32;

/// The name of the function of a program without signatures.
const ONLY: &str = "run";

/// One function of a module.
#[derive(Clone, Debug)]
pub struct PreparedEntry {
    /// The signature's name; `run` where there is none.
    pub name: String,
    /// The function's part of the program; the variables are those that are state.
    pub prepared: Prepared,
}

/// A module: functions over one state.
#[derive(Clone, Debug)]
pub struct Entries {
    /// The functions, in the order in which they were asked for.
    pub entries: Vec<PreparedEntry>,
    /// The initializer of variables for which the file has no value.
    pub init: Option<Prepared>,
}

/// Takes a program apart into the entries that `request` asks for.
///
/// # Errors
/// Those of [`super::prepare`] for each entry; `BadOption` for a pattern of `request.state` that names no variable,
/// `VariableWithoutValue` for one that is state and that nothing gives a first value.
pub fn entries(program: Program, request: &Request) -> Result<Entries> {
    let source = program.source.clone();
    taken_apart(program, request).map_err(|error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    })
}

fn taken_apart(mut program: Program, request: &Request) -> Result<Entries> {
    declare(&mut program, request)?;
    let requests = requests(&program, request)?;
    let mut accesses = AccessAnalysis::default();
    let (mut used, mut draws) = (BTreeMap::new(), false);
    for (_, one) in &requests {
        let needed = super::open(&program, one)?.needed;
        let found = accesses.graph_accesses(&program, &program.graph, |id| needed.nodes[id]);
        draws |= found.draws_random;
        for (handle, access) in found.handles {
            let most = used.entry(handle).or_insert(access);
            *most = access.max(*most);
        }
    }
    let tables = tables::variables(&program, request, &used)?;
    program.variables.extend(tables);
    let mut state = chosen(&program, request, &used)?;
    if request.variables_grow {
        resizable_variables::with_room(&mut program, request, &mut state)?;
    }
    let initialisers = initialisers(&program, &state)?;
    let before = prune::needed(&program.graph, &[], &ends(&initialisers), false);
    draws |= accesses.graph_accesses(&program, &program.graph, |id| before.nodes[id]).draws_random;
    program.freeze(|v| state.contains(&v.name));
    if draws {
        program.variables.push(generator(&program));
    }
    let mut bound = UsedBindings::none(request);
    let mut entries = Vec::with_capacity(requests.len());
    for (name, one) in requests {
        entries.push(PreparedEntry { name, prepared: run(program.clone(), &one, &mut bound)? });
    }
    bound.all(request)?;
    let init = if initialisers.is_empty() { None } else { Some(computed(program, &initialisers)?) };
    Ok(Entries { entries, init })
}

/// Tells the program's variables what `request` declares of them: a name in C, and zeros of its type and sizes as the first value
/// where nothing else gives one.
fn declare(program: &mut Program, request: &Request) -> Result<()> {
    for declared in &request.declared {
        let found = program.variables.iter().position(|v| v.handles.iter().any(|h| **h == *declared.node));
        let Some(found) = found else {
            let told = format!("`{}` is no variable of the graph", declared.node);
            return Err(Error::user(Code::BadOption, told));
        };
        let assigned = initialiser(&program.graph, &program.variables[found]).is_some();
        let variable = &mut program.variables[found];
        variable.called.clone_from(&declared.called);
        if let Some(dtype) = declared.dtype {
            variable.dtype = TfType::Data(dtype);
        }
        if let Some(dims) = &declared.dims {
            variable.shape = PartialShape(Some(dims.clone()));
        }
        if let (None, false, Some((dtype, dims))) = (&variable.value, assigned, variable.array()) {
            let size = element_count(&dims).filter(|&n| n <= MOST_ELEMENTS);
            let size = size.and_then(|n| usize::try_from(n).ok()?.checked_mul(dtype.bytes()));
            let size = size.ok_or_else(|| {
                Error::user(Code::TooLarge, format!("the variable `{}` is of {dims:?} elements", declared.node))
            })?;
            variable.value = Some(Tensor::new(dtype, dims, vec![0; size]));
        }
    }
    Ok(())
}

/// A request for each signature that is chosen, with its name.
fn requests(program: &Program, request: &Request) -> Result<Vec<(String, Request)>> {
    let names = NodesByName::new(program);
    let signatures = signature::choose_all(program, &names, request)?;
    if let [] | [_] = signatures[..] {
        let name = signatures.first().map_or(ONLY, |s| s.name.as_str());
        // a signature that is chosen silently is told as an assumption
        let named = if request.signatures.is_empty() { vec![] } else { vec![name.to_string()] };
        return Ok(vec![(name.to_string(), Request { signatures: named, ..request.clone() })]);
    }
    for feed in &request.feeds {
        if !signatures.iter().any(|s| names_one(&s.inputs, &feed.name)) {
            // says what is wrong with the name
            let one = Request { feeds: vec![feed.clone()], ..Request::default() };
            feeds(program, &names, &one, None, &mut Vec::new())?;
            return Err(Error::user(Code::BadOption, format!("`{}` is an input of no signature", feed.name)));
        }
    }
    Ok(signatures.into_iter().map(|s| (s.name.clone(), own(s, request))).collect())
}

/// The part of `request` that concerns one signature of several.
fn own(signature: &Signature, request: &Request) -> Request {
    let told = |(name, tensor): &(String, String)| {
        let found = request.feeds.iter().find(|f| f.name == *name || f.name == *tensor);
        FeedSpec { name: tensor.clone(), ..found.cloned().unwrap_or_default() }
    };
    Request {
        feeds: signature.inputs.iter().map(told).collect(),
        fetches: request.fetches.iter().filter(|f| names_one(&signature.outputs, f)).cloned().collect(),
        signatures: vec![signature.name.clone()],
        ..request.clone()
    }
}

fn names_one(pairs: &[(String, String)], name: &str) -> bool {
    pairs.iter().any(|(key, tensor)| key == name || tensor == name)
}

/// The names of the variables that are state; `used` is what is done with the handles of the program's nodes.
fn chosen(program: &Program, request: &Request, used: &BTreeMap<NodeId, Access>) -> Result<Vec<String>> {
    let mut most: BTreeMap<&str, Access> = BTreeMap::new();
    for (id, access) in used {
        let node = &program.graph.nodes[*id];
        for variable in program.variables.iter().filter(|v| v.handles.contains(&node.name)) {
            let entry = most.entry(&variable.name).or_default();
            *entry = (*access).max(*entry);
        }
    }
    let reached = |name: &str| most.get(name).is_some_and(|a| *a != Access::None);
    for pattern in &request.state {
        if !program.variables.iter().any(|v| reached(&v.name) && matches(pattern, &v.name)) {
            let told = format!("`--state {pattern}` names no variable that is used");
            let some: Vec<&str> = most.keys().copied().take(8).collect();
            let help = if some.is_empty() { "none is".to_string() } else { format!("there are {}", some.join(", ")) };
            return Err(Diagnostic::new(Code::BadOption, told).help(help).into());
        }
    }
    let is_state = |v: &&Variable| {
        most.get(v.name.as_str()) == Some(&Access::Write)
            || reached(&v.name) && request.state.iter().any(|pattern| matches(pattern, &v.name))
            || reached(&v.name) && request.declared.iter().any(|d| v.handles.iter().any(|h| **h == *d.node))
    };
    Ok(program.variables.iter().filter(is_state).map(|v| v.name.clone()).collect())
}

/// Whether a name is of a pattern: `*` stands for any letters, `all` for every name.
fn matches(pattern: &str, name: &str) -> bool {
    if pattern == "all" {
        return true;
    }
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// The state of the generator behind ops that draw random numbers: a key, which the user may choose, and the number of draws.
fn generator(program: &Program) -> Variable {
    let mut name = "random".to_string();
    while program.variables.iter().any(|v| v.name == name) {
        name.push('_');
    }
    Variable {
        name,
        called: None,
        handles: Vec::new(),
        shared_name: String::new(),
        by_reference: false,
        dtype: TfType::Data(DType::U64),
        shape: PartialShape(Some(vec![Some(2)])),
        value: Some(Tensor::of(&[2], &[0u64, 0])),
        role: VariableRole::Random,
    }
}

/// The nodes that give the variables of `state` their first value for which the file has none.
///
/// Errors: `VariableWithoutValue` for those that no node gives one.
fn initialisers(program: &Program, state: &[String]) -> Result<Vec<NodeId>> {
    let valueless = |v: &&Variable| v.value.is_none() && state.contains(&v.name);
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    for variable in program.variables.iter().filter(valueless) {
        match initialiser(&program.graph, variable) {
            Some(node) => found.push(node),
            None => bad.push(variable.name.clone()),
        }
    }
    if bad.is_empty() { Ok(found) } else { Err(ops::valueless(&bad).into()) }
}

/// The node `NAME/Assign`, which TensorFlow 1 writes for each variable.
fn initialiser(graph: &Graph, variable: &Variable) -> Option<NodeId> {
    let node = variable.handles.iter().find_map(|handle| graph.find(&format!("{handle}/Assign")))?;
    let assigned = graph.nodes[graph.nodes[node].inputs.first()?.node].name.clone();
    let assigns = matches!(&*graph.nodes[node].op, "AssignVariableOp" | "Assign");
    (assigns && variable.handles.contains(&assigned)).then_some(node)
}

/// Nodes as if they were fetched.
fn ends(nodes: &[NodeId]) -> Vec<(String, Endpoint)> {
    nodes.iter().map(|&node| (String::new(), Endpoint { node, port: 0 })).collect()
}

/// The program that runs `roots` and gives nothing back.
fn computed(program: Program, roots: &[NodeId]) -> Result<Prepared> {
    let fetches = ends(roots);
    let needed = prune::needed(&program.graph, &[], &fetches, false);
    let prune::PrunedProgram { mut program, fetches } = prune::cut(program, &needed, &[], fetches);
    let mut roots = fetches.into_iter().map(|(_, at)| at.node).collect();
    super::functional::functionalize(&mut program, &[], &mut [], &mut roots)?;
    Ok(Prepared {
        program,
        feeds: Vec::new(),
        sizes: Vec::new(),
        axes: Vec::new(),
        bounds: Bounds::default(),
        checks: RuntimeChecks::Off,
        fetches: Vec::new(),
        called: Vec::new(),
        roots,
        assumptions: Vec::new(),
        warnings: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_name_variables() {
        let cases = [
            ("all", "x", true),
            ("dense/*", "dense/kernel", true),
            ("*kernel", "dense/kernel", true),
            ("*e*k*", "dense/kernel", true),
            ("dense/k*l", "dense/kernel", true),
            ("dense", "dense/kernel", false),
            ("*kernel*x", "dense/kernel", false),
            ("dense/kernel", "dense/kernel", true),
        ];
        for (pattern, name, want) in cases {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
