//! Preparation of several signatures of one program, with the choice of variables that are state.
//!
//! A variable is state if a chosen signature writes it or the user names it, and a constant otherwise. All signatures have the same
//! list of variables, so that they share one block of memory.
use super::defaults::resolve_feeds;
use super::names::NodesByName;
use super::{
    FeedSpec, PreparedProgram, Request, UsedBindings, prepare_with_bindings, prune, resizable_variables, signature,
    tables,
};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::graph::{Endpoint, Graph, NodeId, PartialShape, Program, Signature, TfType, Variable, VariableRole};
use crate::hlo::RuntimeChecks;
use crate::lower::{Access, AccessAnalysis};
use crate::ops;
use crate::tensor::{Bounds, DType, Tensor, element_count};
use std::collections::BTreeMap;

/// Upper bound on the elements of a variable.
pub(super) const MAX_ELEMENTS: u64 = 1 << 32;

/// Name of the function of a program without signatures.
const UNNAMED_SIGNATURE: &str = "run";

/// A prepared signature of a program.
#[derive(Clone, Debug)]
pub struct PreparedEntry {
    /// Name of the signature; `run` if the program has none.
    pub name: String,
    /// Part of the program that the signature needs; its variables are those that are state.
    pub prepared: PreparedProgram,
}

/// All prepared functions of a program, over one state.
#[derive(Clone, Debug)]
pub struct PreparedFunctions {
    /// Signatures, in the order of the request.
    pub entries: Vec<PreparedEntry>,
    /// Initializer of the variables for which the file has no value.
    pub init: Option<PreparedProgram>,
}

/// Prepares each signature that `request` chooses.
///
/// # Errors
/// Errors of [`super::prepare`] for each signature; `BadOption` for a pattern of `request.state` that matches no variable;
/// `VariableWithoutValue` for a state variable without an initial value.
pub fn prepare_entries(program: Program, request: &Request) -> Result<PreparedFunctions> {
    let source = program.source.clone();
    split_into_entries(program, request).map_err(|error| {
        error.map(|mut d| {
            d.place.file.get_or_insert_with(|| source.clone());
            d
        })
    })
}

fn split_into_entries(mut program: Program, request: &Request) -> Result<PreparedFunctions> {
    apply_declarations(&mut program, request)?;
    let requests = requests(&program, request)?;
    let mut accesses = AccessAnalysis::default();
    let (mut used, mut draws) = (BTreeMap::new(), false);
    for (_, one) in &requests {
        let needed = super::resolve_request(&program, one)?.needed;
        let found = accesses.graph_accesses(&program, &program.graph, |id| needed.nodes[id]);
        draws |= found.draws_random;
        for (handle, access) in found.handles {
            let most = used.entry(handle).or_insert(access);
            *most = access.max(*most);
        }
    }
    let tables = tables::table_variables(&program, request, &used)?;
    program.variables.extend(tables);
    let mut state = state_variables(&program, request, &used)?;
    if request.variables_grow {
        resizable_variables::allocate_capacity(&mut program, request, &mut state)?;
    }
    let initializer_nodes = initializer_nodes(&program, &state)?;
    let before = prune::needed_nodes(&program.graph, &[], &as_fetches(&initializer_nodes), false);
    draws |= accesses.graph_accesses(&program, &program.graph, |id| before.nodes[id]).draws_random;
    program.freeze_variables(|v| state.contains(&v.name));
    if draws {
        program.variables.push(random_state_variable(&program));
    }
    let mut bound = UsedBindings::new(request);
    let mut entries = Vec::with_capacity(requests.len());
    for (name, one) in requests {
        entries.push(PreparedEntry { name, prepared: prepare_with_bindings(program.clone(), &one, &mut bound)? });
    }
    bound.check_all_used(request)?;
    let init =
        if initializer_nodes.is_empty() { None } else { Some(prepare_initializer(program, &initializer_nodes)?) };
    Ok(PreparedFunctions { entries, init })
}

/// Applies the declarations of `request` to the program's variables: names in C, types and sizes, and zeros as the initial value of
/// variables without another.
fn apply_declarations(program: &mut Program, request: &Request) -> Result<()> {
    for declared in &request.declared {
        let found = program.variables.iter().position(|v| v.handles.iter().any(|h| **h == *declared.node));
        let Some(found) = found else {
            let told = format!("`{}` is no variable of the graph", declared.node);
            return Err(Error::user(Code::BadOption, told));
        };
        let assigned = initializer_node(&program.graph, &program.variables[found]).is_some();
        let variable = &mut program.variables[found];
        variable.called.clone_from(&declared.called);
        if let Some(dtype) = declared.dtype {
            variable.dtype = TfType::Data(dtype);
        }
        if let Some(dims) = &declared.dims {
            variable.shape = PartialShape(Some(dims.clone()));
        }
        if let (None, false, Some((dtype, dims))) = (&variable.value, assigned, variable.array_type()) {
            let size = element_count(&dims).filter(|&n| n <= MAX_ELEMENTS);
            let size = size.and_then(|n| usize::try_from(n).ok()?.checked_mul(dtype.bytes()));
            let size = size.ok_or_else(|| {
                Error::user(Code::TooLarge, format!("the variable `{}` is of {dims:?} elements", declared.node))
            })?;
            variable.value = Some(Tensor::new(dtype, dims, vec![0; size]));
        }
    }
    Ok(())
}

/// Splits a request into one for each chosen signature, with the signature's name.
fn requests(program: &Program, request: &Request) -> Result<Vec<(String, Request)>> {
    let names = NodesByName::new(program);
    let signatures = signature::choose_signatures(program, &names, request)?;
    if let [] | [_] = signatures[..] {
        let name = signatures.first().map_or(UNNAMED_SIGNATURE, |s| s.name.as_str());
        // a signature chosen by default is reported as an assumption
        let named = if request.signatures.is_empty() { vec![] } else { vec![name.to_string()] };
        return Ok(vec![(name.to_string(), Request { signatures: named, ..request.clone() })]);
    }
    for feed in &request.feeds {
        if !signatures.iter().any(|s| contains_name(&s.inputs, &feed.name)) {
            // reports an unknown tensor
            let one = Request { feeds: vec![feed.clone()], ..Request::default() };
            resolve_feeds(program, &names, &one, None, &mut Vec::new())?;
            return Err(Error::user(Code::BadOption, format!("`{}` is an input of no signature", feed.name)));
        }
    }
    Ok(signatures.into_iter().map(|s| (s.name.clone(), request_of_signature(s, request))).collect())
}

/// Part of `request` that concerns one signature of several.
fn request_of_signature(signature: &Signature, request: &Request) -> Request {
    let told = |(name, tensor): &(String, String)| {
        let found = request.feeds.iter().find(|f| f.name == *name || f.name == *tensor);
        FeedSpec { name: tensor.clone(), ..found.cloned().unwrap_or_default() }
    };
    Request {
        feeds: signature.inputs.iter().map(told).collect(),
        fetches: request.fetches.iter().filter(|f| contains_name(&signature.outputs, f)).cloned().collect(),
        signatures: vec![signature.name.clone()],
        ..request.clone()
    }
}

fn contains_name(pairs: &[(String, String)], name: &str) -> bool {
    pairs.iter().any(|(key, tensor)| key == name || tensor == name)
}

/// Names of the variables that are state; `used` holds the strongest access through each node that creates a handle.
fn state_variables(program: &Program, request: &Request, used: &BTreeMap<NodeId, Access>) -> Result<Vec<String>> {
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
        if !program.variables.iter().any(|v| reached(&v.name) && matches_pattern(pattern, &v.name)) {
            let told = format!("`--state {pattern}` names no variable that is used");
            let some: Vec<&str> = most.keys().copied().take(8).collect();
            let help = if some.is_empty() { "none is".to_string() } else { format!("there are {}", some.join(", ")) };
            return Err(Diagnostic::new(Code::BadOption, told).help(help).into());
        }
    }
    let is_state = |v: &&Variable| {
        most.get(v.name.as_str()) == Some(&Access::Write)
            || reached(&v.name) && request.state.iter().any(|pattern| matches_pattern(pattern, &v.name))
            || reached(&v.name) && request.declared.iter().any(|d| v.handles.iter().any(|h| **h == *d.node))
    };
    Ok(program.variables.iter().filter(is_state).map(|v| v.name.clone()).collect())
}

/// Whether a name matches a pattern: `*` stands for any letters, `all` for every name.
fn matches_pattern(pattern: &str, name: &str) -> bool {
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

/// State variable of the global random generator: a key, which the user may choose, and the number of draws.
fn random_state_variable(program: &Program) -> Variable {
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

/// Nodes that initialize the state variables without a value in the file.
///
/// Errors: `VariableWithoutValue` for variables that no node initializes.
fn initializer_nodes(program: &Program, state: &[String]) -> Result<Vec<NodeId>> {
    let valueless = |v: &&Variable| v.value.is_none() && state.contains(&v.name);
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    for variable in program.variables.iter().filter(valueless) {
        match initializer_node(&program.graph, variable) {
            Some(node) => found.push(node),
            None => bad.push(variable.name.clone()),
        }
    }
    if bad.is_empty() { Ok(found) } else { Err(ops::missing_value_error(&bad).into()) }
}

/// The node `NAME/Assign`, by which TensorFlow 1 initializes a variable.
fn initializer_node(graph: &Graph, variable: &Variable) -> Option<NodeId> {
    let node = variable.handles.iter().find_map(|handle| graph.find(&format!("{handle}/Assign")))?;
    let assigned = graph.nodes[graph.nodes[node].inputs.first()?.node].name.clone();
    let assigns = matches!(&*graph.nodes[node].op, "AssignVariableOp" | "Assign");
    (assigns && variable.handles.contains(&assigned)).then_some(node)
}

/// Fetches without a name, one for each node.
fn as_fetches(nodes: &[NodeId]) -> Vec<(String, Endpoint)> {
    nodes.iter().map(|&node| (String::new(), Endpoint { node, port: 0 })).collect()
}

/// Prepares the initializer: the part of a program that runs `roots`, without results.
fn prepare_initializer(program: Program, roots: &[NodeId]) -> Result<PreparedProgram> {
    let fetches = as_fetches(roots);
    let needed = prune::needed_nodes(&program.graph, &[], &fetches, false);
    let prune::PrunedProgram { mut program, fetches } = prune::prune(program, &needed, &[], fetches);
    let mut roots = fetches.into_iter().map(|(_, at)| at.node).collect();
    super::functional::functionalize(&mut program, &[], &mut [], &mut roots)?;
    Ok(PreparedProgram {
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
    use super::matches_pattern;

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
            assert_eq!(matches_pattern(pattern, name), want, "{pattern} {name}");
        }
    }
}
