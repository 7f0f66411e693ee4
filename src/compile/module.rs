//! Modules as inputs: HLO and StableHLO from a file, with the file's names for arguments and results.
use super::open;
use crate::diag::{Code, Diagnostic, Result};
use crate::hlo::{self, InstId, Module, Op, Shape, Source, SourceContent, verify};
use crate::lower::Lowered;
use crate::ops::lapack;
use crate::optimize;
use crate::package::names;
use crate::prepare::Request;
use crate::tensor::TensorInfo;
use bytes::Bytes;
use std::collections::HashSet;

/// The module in a file's bytes; one that leaves sizes open is for those that are asked for.
///
/// # Errors
/// Those of [`hlo::read`] and of the verifier; `Code::UnknownDim` for open sizes that are not told; `Code::OpenSize` for bounds up to
/// which no code is known; `Code::BadOption` where part of a module is asked for, or sizes of one that has them.
pub fn of_module(bytes: &Bytes, request: &Request) -> Result<Lowered> {
    of_graphs_alone(request)?;
    match hlo::read(bytes)? {
        SourceContent::Open(open) => open::lowered(*open, request),
        SourceContent::Fixed(source) => named(whole(source, request)?),
    }
}

/// Refuses options that say something of nodes or variables, which a module has not. Errors: `Code::BadOption`.
fn of_graphs_alone(request: &Request) -> Result<()> {
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

/// The same as it was written, for sizes that are numbers.
///
/// # Errors
/// As for [`of_module`], but for the verifier's; `Code::BadOption` for bounds.
pub fn module_for(bytes: &Bytes, request: &Request) -> Result<Source> {
    match hlo::read(bytes)? {
        SourceContent::Open(open) => open::made_for(&open, request),
        SourceContent::Fixed(source) => whole(source, request),
    }
}

/// A module of fixed sizes, if nothing is asked of it. Errors: `Code::BadOption`.
fn whole(source: Source, request: &Request) -> Result<Source> {
    if request.is_empty() {
        return Ok(source);
    }
    let told = "a module has its arguments, results and sizes; none can be chosen";
    let problem = Diagnostic::new(Code::BadOption, told);
    Err(problem.help("without --feed, --fetch, --dim, --signature and --config").into())
}

/// A module that was read from a file, verified, with what the file calls its arguments and results.
///
/// An argument is called what its parameter is, a result what the file says or the instruction that gives it; a part of a tuple
/// has its number behind. The positions `0`, `1`, ... are names too.
///
/// Errors: those of the verifier and of [`super::wrap`].
pub(super) fn named(mut source: Source) -> Result<Lowered> {
    verify::verify(&source.module)?;
    write_known_calls(&mut source.module)?;
    let entry = source.module.entry();
    let args = entry.params.iter().flat_map(|&p| called(&entry.insts[p].name, &entry.insts[p].shape)).collect();
    let parts = match &entry.insts[entry.root].op {
        Op::Tuple => entry.insts[entry.root].operands.clone(),
        _ => vec![entry.root],
    };
    let told = if source.results.len() == parts.len() { source.results } else { vec![None; parts.len()] };
    let one = |(part, told): (InstId, Option<String>)| {
        called(told.as_deref().unwrap_or(&entry.insts[part].name), &entry.insts[part].shape)
    };
    let results = parts.into_iter().zip(told).flat_map(one).collect();
    let mut lowered = super::wrap(source.module)?;
    call(&mut lowered.args, args);
    call(&mut lowered.results, results);
    Ok(lowered)
}

/// Puts instructions in place of calls of libraries whose functions are here: LAPACK's, as JAX calls them on a CPU.
///
/// # Errors
/// `Code::HloUnsupported` for functions of such a library that are not.
pub fn write_known_calls(module: &mut Module) -> Result<()> {
    optimize::write_calls(module, lapack::lower).map(drop)
}

/// The names of the arrays in a value called `name`.
fn called(name: &str, shape: &Shape) -> Vec<String> {
    match shape.as_tuple() {
        None => vec![name.to_string()],
        Some(parts) => parts.iter().enumerate().flat_map(|(i, p)| called(&format!("{name}.{i}"), p)).collect(),
    }
}

/// Gives arguments or results their names; one that is there already gets its position behind it.
fn call(infos: &mut [TensorInfo], names: Vec<String>) {
    let mut taken = HashSet::new();
    for ((i, info), name) in infos.iter_mut().enumerate().zip(names) {
        let name = if taken.insert(name.clone()) { name } else { format!("{name}.{i}") };
        taken.insert(name.clone());
        info.called = Some(name);
    }
    names::of_signature(infos);
}
