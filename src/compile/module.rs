//! HLO and StableHLO modules as inputs, with the file's names for arguments and results.
use super::dynamic_module;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{self, InstId, Module, Op, Shape, Source, SourceContent, verify};
use crate::lower::Lowered;
use crate::ops::lapack;
use crate::optimize::{self, HostCalls};
use crate::package::names;
use crate::prepare::Request;
use crate::tensor::TensorInfo;
use bytes::Bytes;
use std::collections::HashSet;

/// Reads the module in a file's bytes. Dynamic sizes of the module get the sizes or bounds in the request.
///
/// # Errors
/// Errors of [`hlo::read`] and of the verifier; `Code::UnknownDim` for dynamic sizes missing in the request; `Code::OpenSize` where no single
/// module serves every size up to the bounds; `Code::BadOption` for options that make no sense for a module.
pub fn lower_module_file(bytes: &Bytes, request: &Request) -> Result<Lowered> {
    refuse_graph_options(request)?;
    match hlo::read(bytes)? {
        SourceContent::Open(open) => dynamic_module::lower_dynamic_module(*open, request),
        SourceContent::Fixed(source) => lower_source(require_no_choice(source, request)?),
    }
}

/// Refuses options about nodes or variables, which a module does not have. Errors: `Code::BadOption`.
fn refuse_graph_options(request: &Request) -> Result<()> {
    let asked = [
        ("--checked", request.is_checked),
        ("--bound", !request.bounds.is_empty()),
        ("--rounds", !request.rounds.is_empty()),
        ("--state", !request.state.is_empty()),
    ];
    let Some((option, _)) = asked.iter().find(|(_, is_asked)| *is_asked) else { return Ok(()) };
    let told = format!("`{option}` is about the nodes of a TensorFlow graph, and this is a module");
    Err(Diagnostic::new(Code::BadOption, told).help(format!("without {option}")).into())
}

/// Reads the module in a file's bytes, unchanged except for dynamic sizes, which get the numbers in the request.
///
/// # Errors
/// As for [`lower_module_file`], but for the verifier's; `Code::BadOption` for bounds.
pub fn specialize_module(bytes: &Bytes, request: &Request) -> Result<Source> {
    match hlo::read(bytes)? {
        SourceContent::Open(open) => dynamic_module::instantiate_at_sizes(&open, request),
        SourceContent::Fixed(source) => require_no_choice(source, request),
    }
}

/// Returns the module, whose sizes are fixed, unchanged. Errors: `Code::BadOption` if the request has feeds, fetches or sizes.
fn require_no_choice(source: Source, request: &Request) -> Result<Source> {
    if request.is_empty() {
        return Ok(source);
    }
    let told = "a module has its arguments, results and sizes; none can be chosen";
    let problem = Diagnostic::new(Code::BadOption, told);
    Err(problem.help("without --feed, --fetch, --dim, --signature and --config").into())
}

/// Verifies a module read from a file, and names its arguments and results as the file does.
///
/// An argument has the name of its parameter, a result the name in the file or that of the instruction; elements of a tuple get their
/// index as a suffix. The positions `0`, `1`, ... are names too.
///
/// Errors: those of the verifier and of [`super::wrap_module`].
pub(super) fn lower_source(source: Source) -> Result<Lowered> {
    verify::verify(&source.module)?;
    lower_verified(source)
}

/// Reads the module in a file's bytes, for a process that provides the functions `is_hosted`: calls of these get numbers, calls with
/// effects the order of the program, and tokens become arrays `pred[0]`. Where there are effects the entry has one more result, a scalar
/// that says nothing.
///
/// # Errors
/// Errors of [`lower_module_file`] and of [`optimize::separate_host_calls`].
pub fn lower_hosted_module(bytes: &Bytes, is_hosted: &dyn Fn(&str) -> bool) -> Result<(Lowered, HostCalls)> {
    match hlo::read(bytes)? {
        SourceContent::Open(open) => {
            Ok((dynamic_module::lower_dynamic_module(*open, &Request::default())?, HostCalls::default()))
        }
        SourceContent::Fixed(mut source) => {
            verify::verify(&source.module)?;
            let is_left = |target: &str| !lapack::is_known(target) && target != "TopK" && is_hosted(target);
            let calls = optimize::separate_host_calls(&mut source.module, &is_left)?;
            Ok((lower_verified(source)?, calls))
        }
    }
}

/// Replaces library calls of a module, and names its arguments and results.
fn lower_verified(mut source: Source) -> Result<Lowered> {
    expand_library_calls(&mut source.module)?;
    let entry = source.module.entry();
    let args = entry.params.iter().flat_map(|&p| leaf_names(&entry.insts[p].name, &entry.insts[p].shape)).collect();
    let parts = match &entry.insts[entry.root].op {
        Op::Tuple => entry.insts[entry.root].operands.clone(),
        _ => vec![entry.root],
    };
    let told = if source.results.len() == parts.len() { source.results } else { vec![None; parts.len()] };
    let one = |(part, told): (InstId, Option<String>)| {
        leaf_names(told.as_deref().unwrap_or(&entry.insts[part].name), &entry.insts[part].shape)
    };
    let results = parts.into_iter().zip(told).flat_map(one).collect();
    let mut lowered = super::wrap_module(source.module)?;
    set_names(&mut lowered.args, args);
    set_names(&mut lowered.results, results);
    Ok(lowered)
}

/// Replaces custom calls of known library functions by instructions: LAPACK's, as JAX calls them on a CPU.
///
/// # Errors
/// `Code::HloUnsupported` for functions of these libraries that are not known.
pub fn expand_library_calls(module: &mut Module) -> Result<()> {
    optimize::replace_foreign_calls(module, lapack::lower_lapack_call).map(drop)
}

/// The names of the arrays in a value called `name`.
fn leaf_names(name: &str, shape: &Shape) -> Vec<String> {
    match shape.as_tuple() {
        None => vec![name.to_string()],
        Some(parts) => parts.iter().enumerate().flat_map(|(i, p)| leaf_names(&format!("{name}.{i}"), p)).collect(),
    }
}

/// Names arguments or results; a name that is already taken gets the position as its suffix.
fn set_names(infos: &mut [TensorInfo], names: Vec<String>) {
    let mut taken = HashSet::new();
    for ((i, info), name) in infos.iter_mut().enumerate().zip(names) {
        let name = if taken.insert(name.clone()) { name } else { format!("{name}.{i}") };
        taken.insert(name.clone());
        info.called = Some(name);
    }
    names::name_after_signature(infos);
}
