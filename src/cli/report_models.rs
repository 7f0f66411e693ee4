//! The functions in a report, each compiled as a whole like `tfaot compile` does.
use super::args::ReportArgs;
use super::{graph, shapes};
use crate::codegen::{self, Launches};
use crate::compile::{self, Entry, Functions, LoweredModel};
use crate::diag::{Code, Error, Result};
use crate::graph::Endpoint;
use crate::lower::Lowered;
use crate::measure::Roofline;
use crate::measure::profile::kernel_times;
use crate::prepare::{self, Request};
use crate::report::{self, FunctionSummary, Report, code, overview};
use crate::run;
use crate::run::arguments;
use crate::run::{Model, Session};
use crate::target::CodeRequest;
use crate::tensor::TensorInfo;
use crate::{import, infer};

/// Adds the functions and their code to the report. Blockers become part of the report and are not errors.
///
/// Errors: `Code::BadOption` for a flag that does not apply to the graph, such as `--dim` if no size is open.
pub fn add_models(args: &ReportArgs, code: &CodeRequest, made: &mut Report) -> Result<()> {
    let request = graph::request(&args.graph)?;
    let name = graph::model_name(None, &args.graph.graph)?;
    let LoweredModel { entries, init, .. } = match fronts(args, &request) {
        Ok(fronts) => fronts,
        Err(Error::User(all)) if all.iter().any(|d| d.code == Code::BadOption) => return Err(Error::User(all)),
        Err(error) => {
            let (inputs, outputs) = ends(args, &request).unwrap_or_default();
            let blocked = overview::group_by_cause(error.into_diagnostics());
            made.models.push(FunctionSummary { inputs, outputs, blocked, ..FunctionSummary::default() });
            return Ok(());
        }
    };
    for Entry { name: signature, lowered } in entries {
        let mut model = described(&lowered);
        model.signature = if signature == "run" { String::new() } else { signature };
        match compiled(args, code, &name, lowered, init.as_ref()) {
            Ok(report) => {
                model.code = Some(made.code.len() as u32);
                made.summary.profiled |= report.runs > 0;
                made.code.push(report);
            }
            Err(error) => model.blocked = overview::group_by_cause(error.into_diagnostics()),
        }
        made.models.push(model);
    }
    Ok(())
}

/// Lowers the functions; all of them if the model has several signatures and none was chosen.
fn fronts(args: &ReportArgs, request: &Request) -> Result<LoweredModel> {
    let (path, format) = (&args.graph.graph, args.graph.format.as_deref());
    match compile::load_and_lower(path, format, request) {
        Err(Error::User(all)) if all.iter().any(|d| d.code == Code::WhichSignature) => {
            let signatures = vec!["all".to_string()];
            compile::load_and_lower(path, format, &Request { signatures, ..request.clone() })
        }
        other => other,
    }
}

fn described(lowered: &Lowered) -> FunctionSummary {
    let spelled = |infos: &[TensorInfo], is_result: bool| match &lowered.size_variants {
        Some(sized) => sized.sizes.type_texts(infos, if is_result { &sized.sizes.results } else { &sized.sizes.args }),
        None => infos.iter().map(TensorInfo::type_text).collect(),
    };
    let initial = lowered.state.iter().filter(|v| v.info.dtype.is_float()).map(|v| v.info.elements());
    FunctionSummary {
        inputs: overview::interface_tensors(&lowered.args, spelled(&lowered.args, false)),
        outputs: overview::interface_tensors(&lowered.results, spelled(&lowered.results, true)),
        parameters: initial.fold(overview::parameter_count(&lowered.module), u64::saturating_add),
        state_bytes: lowered.state.iter().map(|v| v.info.bytes()).fold(0, u64::saturating_add),
        ..FunctionSummary::default()
    }
}

fn compiled(
    args: &ReportArgs,
    request: &CodeRequest,
    name: &str,
    lowered: Lowered,
    init: Option<&Lowered>,
) -> Result<report::CodeReport> {
    let target = &request.target;
    if !args.profile {
        let (module, loops) = compile::plan(lowered, name, name, request)?;
        let assembly = codegen::assembly(&loops, target)?;
        return Ok(code::describe_code(&module, &loops, target, &assembly, None));
    }
    let functions = Functions { all: vec![("run".to_string(), lowered.clone())], init: init.cloned() };
    let requests = std::slice::from_ref(request);
    let built = compile::build_functions(functions, name, name, requests, Launches::Observed, &mut [])?;
    let face = built.bundle.face.clone();
    let values = arguments::for_function(None, &lowered, &[])?;
    let given = run::sizes::sizes_of_arguments(&face.entries[0].sizes, &lowered.args, &values)?;
    let model = Model::load(&face, &built.object, target, 1)?;
    let built = built.into_program_for_sizes(&given)?;
    let (least, runs) = kernel_times(&built.program, &mut Session::new(model, &values)?, None, args.seconds)?;
    let program = &built.program;
    let roof = Roofline::measure(target, 1, program.weights_bytes + program.workspace_bytes)?;
    let spent = |at: usize| least.get(at).copied().unwrap_or_default();
    let roofline = program.kernels.iter().map(|(id, kernel)| {
        spent(id.0 as usize).launches as f64 * roof.least_ms(kernel.flops, kernel.memory_traffic(&program.buffers))
    });
    let ms = least.iter().map(|s| s.time.as_secs_f64() * 1e3).collect();
    let times = code::KernelTimes { ms, roofline: roofline.collect(), runs };
    let assembly = codegen::assembly(program, target)?;
    Ok(code::describe_code(&built.module, program, target, &assembly, Some(&times)))
}

/// Inputs and outputs, as far as known, of a file that can't be lowered.
fn ends(
    args: &ReportArgs,
    request: &Request,
) -> Result<(Vec<overview::InterfaceTensor>, Vec<overview::InterfaceTensor>)> {
    let program = import::load(&args.graph.graph, args.graph.format.as_deref())?;
    let request = prepare::merge_all_signatures(&program, request);
    let reached = prepare::cut_to_request(program, &request)?;
    let known = infer::infer(&reached.program, &reached.feeds);
    let value = |at: Endpoint, called: Option<&Option<String>>| {
        let tensor = format!("{}:{}", reached.program.graph.nodes[at.node].name, at.port);
        let told = shapes::tensor_json(&reached.program, &known, &tensor, known.at(at));
        let shape = told["type"].as_str().unwrap_or("?").to_string();
        overview::InterfaceTensor { name: called.cloned().flatten().unwrap_or(tensor), shape }
    };
    let called = &reached.called;
    let feeds = reached.feeds.iter().enumerate().map(|(i, f)| value(f.at, called.feeds.get(i)));
    let fetches = reached.fetches.iter().enumerate().map(|(i, f)| value(f.1, called.fetches.get(i)));
    Ok((feeds.collect(), fetches.collect()))
}
