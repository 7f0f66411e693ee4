//! Helpers common to the verbs on graphs: requests from arguments, and output of results.
use super::args::{GraphArgs, MathArg, QuantizedArg, TargetArgs, WeightsArg};
use super::{config, out};
use crate::compile::{self, Functions};
use crate::diag::{Code, Diagnostic, Error, Result, io_error};
use crate::lower::Lowered;
use crate::package::names;
use crate::prepare::{Binding, FeedSpec, Request};
use crate::run::calls::FileCall;
use crate::run::npz;
use crate::target::{CodeRequest, MathType, Precision, QuantizedMath, Target, Tuning, WeightType, portable_cpus};
use crate::tensor::Tensor;
use std::path::Path;

/// The request that the arguments describe. Errors: `Code::BadOption` for each invalid flag.
pub fn request(args: &GraphArgs) -> Result<Request> {
    let mut request = request_from_flags(&args.feeds, &args.dims)?;
    request.fetches.clone_from(&args.fetches);
    request.signatures.clone_from(&args.signature);
    request.state.clone_from(&args.state);
    request.bounds = bounds(&args.bounds)?;
    request.is_checked = args.checked;
    request.rounds = args.rounds.iter().map(|text| rounds(text)).collect::<Result<_>>()?;
    if let Some(path) = &args.config {
        let config = config::load(path)?;
        (request.feeds, request.fetches, request.declared) = (config.feeds, config.fetches, config.variables);
    }
    Ok(request)
}

/// Parses the `--bound` flags. Errors: `Code::BadOption` for the first invalid one.
fn bounds(flags: &[String]) -> Result<Vec<(String, u64)>> {
    let one = |text: &String| {
        let (node, most) = text.rsplit_once('=').unwrap_or(("", text));
        let most = most.trim().parse().ok().filter(|n| (1..=1 << 31).contains(n));
        most.map(|most| (node.to_string(), most)).ok_or_else(|| {
            let told = format!("`--bound {text}` is not of the form NODE=N or N");
            Diagnostic::new(Code::BadOption, told).help("for example --bound 128").into()
        })
    };
    flags.iter().map(one).collect()
}

/// Parses a `--rounds` flag into loop and count. Errors: `Code::BadOption`.
fn rounds(text: &str) -> Result<(String, u64)> {
    let parsed = text.rsplit_once('=').and_then(|(name, n)| Some((name.to_string(), n.parse().ok()?)));
    parsed.filter(|(_, n)| *n > 0).ok_or_else(|| {
        let told = format!("`--rounds {text}` is not of the form LOOP=N");
        Diagnostic::new(Code::BadOption, told).help("for example --rounds while_body_12=100").into()
    })
}

/// The request that `--feed` and `--dim` flags describe. Errors: `Code::BadOption` for each invalid one.
pub fn request_from_flags(feed_flags: &[String], dim_flags: &[String]) -> Result<Request> {
    let mut problems = Vec::new();
    let mut feeds = Vec::new();
    for text in feed_flags {
        match FeedSpec::parse(text) {
            Ok(feed) => feeds.push(feed),
            Err(e) => problems.extend(e.into_diagnostics()),
        }
    }
    let mut dims = Vec::new();
    for text in dim_flags {
        let (name, size) = text.rsplit_once('=').unwrap_or(("", text));
        match Binding::parse(size).map(|binding| (name.to_string(), binding)) {
            Some(dim) => dims.push(dim),
            None => problems.push(
                Diagnostic::new(Code::BadOption, format!("`--dim {text}` is not of the form NAME=N, N or NAME=1..N"))
                    .help("for example --dim batch=1, or --dim 1 for every unknown dimension"),
            ),
        }
    }
    if !problems.is_empty() {
        return Err(Error::User(problems));
    }
    Ok(Request { feeds, dims, ..Request::default() })
}

/// Lowers the functions of the graph; returns them with the assumptions, which are printed to standard error too.
pub fn lower_functions(args: &GraphArgs) -> Result<(Functions, Vec<String>)> {
    let fronts = compile::load_and_lower(&args.graph, args.format.as_deref(), &request(args)?);
    let fronts = fronts.map_err(|e| with_file(e, args))?;
    let mut all: Vec<_> = fronts.entries.into_iter().map(|entry| (entry.name, entry.lowered)).collect();
    if let Some(path) = &args.config {
        let config = config::load(path)?;
        all.iter_mut().try_for_each(|(_, lowered)| config.apply_names(lowered))?;
    }
    out::warnings(&fronts.warnings, &args.graph.display().to_string());
    if !args.quiet {
        fronts.assumptions.iter().for_each(|a| out::note(format_args!("note: {a}")));
    }
    Ok((Functions { all, init: fronts.init }, fronts.assumptions))
}

/// Lowers the only requested function. Errors: those of [`lower_functions`]; `Code::BadOption` if there are several.
pub fn lower_only_function(args: &GraphArgs) -> Result<Functions> {
    let (functions, _) = lower_functions(args)?;
    match functions.all.len() {
        1 => Ok(functions),
        _ => Err(Error::user(Code::BadOption, "one --signature, please: without --calls one function is called")),
    }
}

/// The arguments, with the signatures that `calls` name if they have none.
pub fn with_signatures(args: &GraphArgs, calls: &[FileCall]) -> GraphArgs {
    let mut args = args.clone();
    if args.signature.is_empty() {
        for signature in calls.iter().filter_map(|call| call.signature.as_ref()) {
            if !args.signature.contains(signature) {
                args.signature.push(signature.clone());
            }
        }
    }
    args
}

/// Adds the graph's file to the diagnostics.
pub fn with_file(error: Error, args: &GraphArgs) -> Error {
    error.in_file(&args.graph)
}

/// The code request for the target in the arguments. Errors: `Code::UnknownTarget`; `Code::BadOption` for several processors.
pub fn code_request(args: &TargetArgs) -> Result<CodeRequest> {
    match &code_requests(args)?[..] {
        [one] => Ok(one.clone()),
        _ => Err(Error::user(Code::BadOption, "one --cpu, please: only `compile` makes code for several")),
    }
}

/// Reads a tuning file. Errors: `Code::Io`, `Code::BadOption`.
pub fn read_tuning(path: &Path) -> Result<Tuning> {
    let text = std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e))?;
    Tuning::parse(&text).map_err(|e| e.in_file(path))
}

/// The code requests in the arguments, one for each `--cpu`; never empty. Errors: `Code::UnknownTarget`; `Code::NoBf16Math`;
/// `Code::BadOption` for processors between which a program can't choose at run time: with the same instruction set, or on a system that
/// can't query them.
pub fn code_requests(args: &TargetArgs) -> Result<Vec<CodeRequest>> {
    let precision = precision(args);
    let chosen = args.tuning.as_deref().map(read_tuning).transpose()?.unwrap_or_default();
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| io_error("read", path, &e));
    let plans = args.plan.as_deref().map(read).transpose()?;
    if precision.math.is_portable() && (args.tuning.is_some() || plans.is_some()) {
        return Err(fixed_loops_error(precision.math).into());
    }
    let resolve = |cpu| {
        let target = Target::resolve(args.target.as_deref(), cpu, args.features.as_deref());
        let request = CodeRequest::new(target?, precision)?;
        Ok(CodeRequest { tuning: chosen.clone(), plans: plans.clone(), ..request })
    };
    if args.cpu.is_empty() {
        return Ok(vec![resolve(None)?]);
    }
    let all = args.cpu.iter().map(|cpu| resolve(Some(cpu.as_str()))).collect::<Result<Vec<_>>>()?;
    for (i, one) in all.iter().enumerate() {
        let target = &one.target;
        if all.len() > 1 && !target.can_check_machine() {
            let told = format!("no program on {} can find out whether it runs on `{}`", target.triple, target.cpu);
            let problem = Diagnostic::new(Code::BadOption, told);
            return Err(problem.help("one --cpu, please; on AArch64 and RISC-V code asks Linux alone").into());
        }
        if let Some(same) = all[..i].iter().find(|other| other.instruction_set_order() == one.instruction_set_order()) {
            let told = format!(
                "`{}` and `{}` have the same instruction set: only one of them could be called",
                same.target.cpu, target.cpu
            );
            return Err(Error::user(Code::BadOption, told));
        }
    }
    Ok(all)
}

/// The error for tuned or planned loops together with an arithmetic that fixes one choice of loops for all processors.
pub fn fixed_loops_error(math: MathType) -> Diagnostic {
    let told = format!(
        "--math {} has one choice of loops for all processors, whose order of sums is part of the results",
        math.name()
    );
    Diagnostic::new(Code::BadOption, told).help("leave out --tuning, --plan and --tune")
}

/// Code requests for files to be used on other machines: by default, for the processors of [`portable_cpus`].
pub fn portable_code_requests(args: &TargetArgs) -> Result<Vec<CodeRequest>> {
    if !args.cpu.is_empty() || args.features.is_some() {
        return code_requests(args);
    }
    let cpu = portable_cpus(args.target.as_deref())?.into_iter().map(str::to_string).collect();
    code_requests(&TargetArgs { cpu, ..args.clone() })
}

/// A note that names the processors for which an object is compiled.
pub fn processors_note(requests: &[CodeRequest]) -> String {
    let cpus: Vec<&str> = requests.iter().map(|r| r.target.cpu.as_str()).collect();
    let triple = requests.first().map_or("", |r| &r.target.triple);
    format!("the code is for {} ({triple})", cpus.join(" and "))
}

/// The precision that the arguments select.
fn precision(args: &TargetArgs) -> Precision {
    Precision {
        weights: match args.weights {
            WeightsArg::F32 => WeightType::F32,
            WeightsArg::Bf16 => WeightType::Bf16,
            WeightsArg::Int8 => WeightType::Int8,
        },
        math: match args.math {
            MathArg::F32 => MathType::F32,
            MathArg::Bf16 => MathType::Bf16,
            MathArg::Portable => MathType::Portable,
            MathArg::PortableUnfused => MathType::PortableUnfused,
        },
        quantized: match args.quantized {
            QuantizedArg::Exact => QuantizedMath::Exact,
            QuantizedArg::Fast => QuantizedMath::Fast,
            QuantizedArg::Off => QuantizedMath::Off,
        },
    }
}

/// The model's name: as given, or derived from the file name. Errors: `Code::BadOption` for an invalid C identifier.
pub fn model_name(given: Option<&str>, path: &Path) -> Result<String> {
    match given {
        None => Ok(names::model_name_from_path(&path.display().to_string())),
        Some(name) if names::is_identifier(name) => Ok(name.to_string()),
        Some(name) => Err(Diagnostic::new(Code::BadOption, format!("`{name}` can't be the prefix of C names"))
            .help(format!("for example --name {}", names::identifier(name)))
            .into()),
    }
}

/// Keys of the results: the fetches as the user wrote them, or else the signature's names, or else the tensors' names.
pub fn npz_result_keys(args: &GraphArgs, lowered: &Lowered) -> Vec<String> {
    if args.fetches.len() == lowered.results.len() {
        return args.fetches.clone();
    }
    lowered.results.iter().map(|r| r.display_name().to_string()).collect()
}

/// Writes results to an npz file, or prints them without one.
pub fn write_results(path: Option<&Path>, keys: Vec<String>, results: Vec<Tensor>) -> Result<()> {
    let named: Vec<_> = keys.into_iter().zip(results).collect();
    match path {
        Some(path) => npz::write(path, &named),
        None => named.iter().try_for_each(|(key, tensor)| out::line(format_args!("{key}: {tensor:?}"))),
    }
}
