//! `tfaot hlo`: verbs on HLO modules.
use super::args::{Engine, HloCall, HloFiles, HloFormat, HloOpt, HloRun, HloVerb, HloVerify};
use super::modules::{leaf_infos, literal_from_leaves, load, load_expanded, load_verified};
use super::{ExitStatus, dump, graph, out};
use crate::codegen::Launches;
use crate::compile;
use crate::diag::{Error, Result};
use crate::hlo::{Module, Shape, proto, stablehlo, text, verify};
use crate::interp;
use crate::optimize;
use crate::run;
use crate::run::{arguments, npz};
use crate::tensor::Tensor;
use crate::verify::{FirstDepartingOp, Tolerance, VerifyOptions, compare_engines};
use indexmap::IndexMap;
use serde_json::json;
use std::time::Duration;

/// Dispatches the verbs of `hlo`.
pub fn run(verb: HloVerb) -> Result<ExitStatus> {
    match verb {
        HloVerb::Print(args) => print(&args.files, args.format, |_| Ok(())),
        HloVerb::Opt(args) => print(&args.files, args.format, |module| {
            verify::verify(module)?;
            optimise(module, &args)
        }),
        HloVerb::Verify(args) => verify_all(&args),
        HloVerb::Eval(args) => eval(&args.call, args.max_steps),
        HloVerb::Run(args) => match args.replicas {
            Some(count) => super::hlo_ranks::run(&args, count),
            None => by_engines(&args),
        },
        HloVerb::Compile(args) => super::compile::compile_modules(&args),
    }
}

fn print(args: &HloFiles, format: HloFormat, change: impl Fn(&mut Module) -> Result<()>) -> Result<ExitStatus> {
    for file in &args.files {
        let mut module = load(file, &args.dims)?;
        change(&mut module).map_err(|e| e.in_file(file))?;
        match format {
            HloFormat::Text => out::text(&text::print(&module))?,
            HloFormat::Proto => out::bytes(&proto::encode(&module).map_err(|e| e.in_file(file))?)?,
            HloFormat::Stablehlo => out::text(&stablehlo::print(&module).map_err(|e| e.in_file(file))?)?,
        }
    }
    Ok(ExitStatus::Yes)
}

/// Runs optimization passes, and prints the requested information to standard error.
fn optimise(module: &mut Module, args: &HloOpt) -> Result<()> {
    let count = |m: &Module| m.comps.values().map(|c| c.insts.len()).sum::<usize>();
    let mut rows: IndexMap<String, (usize, usize, Duration)> = IndexMap::new();
    if let Some(name) = args.print_after.as_deref().filter(|n| *n != "all") {
        optimize::find(name)?;
    }
    let before = count(module);
    let flags = dump::dump_flags(&args.xla)?;
    let mut dumped = dump::start(&flags, module);
    let mut seen = dumped.as_mut().map_or(Ok(()), |d| d.before_optimization(module));
    let passes: Vec<&str> = args.passes.iter().map(String::as_str).collect();
    optimize::run_passes(module, &passes, |pass, module, changed, taken| {
        let row = rows.entry(pass.to_string()).or_default();
        let changed = changed == optimize::Changed::Yes;
        *row = (row.0 + usize::from(changed), count(module), row.2 + taken);
        if changed && args.print_after.as_deref().is_some_and(|name| name == pass || name == "all") {
            out::note(format_args!("// after {pass}\n{}", text::print(module)));
        }
        if let (true, true, Some(dumped)) = (changed, seen.is_ok(), &mut dumped) {
            seen = dumped.after_pass(module, pass);
        }
    })?;
    seen?;
    dumped.as_mut().map_or(Ok(()), |d| d.after_optimization(module))?;
    dump::write(&flags, dumped)?;
    if args.stats {
        out::note(format_args!("{before} instructions before, {} after", count(module)));
        for (pass, (changed, left, taken)) in &rows {
            let ms = taken.as_secs_f64() * 1e3;
            out::note(format_args!("{pass:20} changed {changed} times, {left} instructions left, {ms:.1} ms"));
        }
    }
    Ok(())
}

fn verify_all(args: &HloVerify) -> Result<ExitStatus> {
    let mut verdict = ExitStatus::Yes;
    for file in &args.files.files {
        let problem = load_verified(file, &args.files.dims).err();
        if problem.is_some() {
            verdict = ExitStatus::No;
        }
        if args.json {
            let error = problem.as_ref().map(Error::to_string);
            out::line(json!({"file": file, "ok": problem.is_none(), "error": error}))?;
        } else {
            out::line(format_args!("{file}: {}", if problem.is_none() { "ok" } else { "invalid" }))?;
        }
        if let Some(problem) = problem.filter(|_| !args.json) {
            out::error(problem);
        }
    }
    Ok(verdict)
}

fn eval(args: &HloCall, max_steps: u64) -> Result<ExitStatus> {
    let module = load_expanded(&args.file, &args.dims)?;
    write_results(args, interpreted(args, &module, max_steps)?)
}

/// The leaves of the root, computed by the interpreter.
fn interpreted(args: &HloCall, module: &Module, max_steps: u64) -> Result<Vec<Tensor>> {
    let shapes: Vec<Shape> = module.entry().params.iter().map(|&p| module.entry()[p].shape.clone()).collect();
    let mut leaves = arguments::load(args.inputs.as_deref(), &leaf_infos(&shapes, "p"))?.into_iter();
    let literals = shapes.iter().map(|s| literal_from_leaves(s, &mut leaves)).collect::<Result<Vec<_>>>()?;
    let value = interp::evaluate_with_step_limit(module, module.entry, &literals, max_steps);
    let value = value.map_err(|e| e.in_file(&args.file))?;
    Ok(value.leaves().into_iter().cloned().collect())
}

/// Runs a module by the requested engines; two of them are compared.
fn by_engines(args: &HloRun) -> Result<ExitStatus> {
    let module = load_expanded(&args.call.file, &args.call.dims)?;
    let in_file = |e: Error| e.in_file(&args.call.file);
    let bisected = match args.bisect {
        false => None,
        true => {
            let lowered = compile::wrap_module(module.clone()).map_err(in_file)?;
            let values = arguments::load(args.call.inputs.as_deref(), &lowered.args)?;
            Some((lowered, values, graph::code_request(&args.target)?))
        }
    };
    let plain = match args.engine.contains(&Engine::Interpreter) {
        true => Some(interpreted(&args.call, &module, interp::MAX_STEPS)?),
        false => None,
    };
    let native = if args.engine.contains(&Engine::Native) { Some(native(args, module)?) } else { None };
    match (native, plain) {
        (Some(native), Some(plain)) => {
            let keys: Vec<String> = (0..native.len()).map(|i| i.to_string()).collect();
            if args.call.outputs.is_some() {
                write_results(&args.call, native.clone())?;
            }
            let (threads, exact) = (args.call.threads.into(), Tolerance::EXACT);
            let bisection = bisected.as_ref().map(|(lowered, values, code)| {
                let conditions =
                    VerifyOptions { name: "hlo", code, threads, rtol: Some(exact.rtol), atol: Some(exact.atol) };
                FirstDepartingOp { lowered, args: values, conditions }
            });
            let compared = compare_engines(&keys, &native, &plain, bisection).map_err(in_file)?;
            super::verify::print_verification(&compared, false, false)
        }
        (results, others) => write_results(&args.call, results.or(others).unwrap_or_default()),
    }
}

/// The leaves of the root, computed by compiled code.
fn native(HloRun { call: args, target, .. }: &HloRun, module: Module) -> Result<Vec<Tensor>> {
    module.require_single_device().map_err(|e| e.in_file(&args.file))?;
    let lowered = compile::wrap_module(module).map_err(|e| e.in_file(&args.file))?;
    let values = arguments::load(args.inputs.as_deref(), &lowered.args)?;
    let code = graph::code_request(target)?;
    let flags = dump::dump_flags(&args.xla)?;
    let mut dumped = dump::start(&flags, &lowered.module);
    let built = compile::build(lowered, "hlo", "hlo", &code, Launches::Direct, &mut dumped);
    let built = built.and_then(|b| {
        let each = [(b.program.clone(), code.target.clone())];
        dump::add_results(&mut dumped, &b.module, &each, &b.object.content).map(|()| b)
    });
    dump::write(&flags, dumped)?;
    let results = built.and_then(|b| run::call_once(&b, &code.target, &values, args.threads.into()));
    results.map_err(|e| e.in_file(&args.file))
}

fn write_results(args: &HloCall, results: Vec<Tensor>) -> Result<ExitStatus> {
    let named: Vec<_> = results.into_iter().enumerate().map(|(i, t)| (i.to_string(), t)).collect();
    match &args.outputs {
        Some(path) => npz::write(path, &named)?,
        None => {
            for (key, tensor) in &named {
                out::line(format_args!("{key}: {tensor:?}"))?;
            }
        }
    }
    Ok(ExitStatus::Yes)
}
