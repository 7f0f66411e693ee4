//! `tfaot tfcompile`: accepts the flags of TensorFlow's tfcompile, so that a build rule only needs to change the tool's name.
//!
//! Flags, defaults and required flags are those of TensorFlow's `compiler/aot/tfcompile_main.cc`. The header has the whole interface, C
//! and C++; the function object has all code and weights, and the other two objects are empty.
use super::args::{GraphArgs, TargetArgs, TfcompileArgs, XlaArgs};
use super::{ExitStatus, config, dump, graph, out};
use crate::codegen::{self, Launches};
use crate::compile;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::proto;
use crate::package::cpp::{self, ClassName};
use crate::package::{files, header, names};
use crate::target::{CodeRequest, Target};
use crate::util::pieces::Pieces;
use std::collections::BTreeSet;
use std::path::Path;

/// Compiles the graph and writes all files atomically.
///
/// Errors: those of `tfaot compile`; `Code::BadOption` for missing, unknown or unsupported flags.
pub fn run(args: &TfcompileArgs) -> Result<ExitStatus> {
    let config = required("config", args.config.as_deref())?;
    if args.dump_fetch_nodes {
        return fetch_nodes(config);
    }
    let asked = checked(args)?;
    let graph = GraphArgs {
        graph: asked.graph.to_path_buf(),
        config: Some(config.to_path_buf()),
        quiet: true,
        ..GraphArgs::default()
    };
    let functions = graph::lower_only_function(&graph)?;
    let module = &functions.all[0].1.module;
    let before = args.out_session_module.as_ref().map(|_| proto::encode_snapshot(module)).transpose()?;
    let flags = dump::dump_flags(&asked.xla)?;
    let mut dumped = [dump::start(&flags, module)];
    let source = compile::source_name(asked.graph);
    let targets: Vec<&Target> = asked.requests.iter().map(|r| &r.target).collect();
    let built =
        compile::build_functions(functions, &asked.name, &source, &asked.requests, Launches::Direct, &mut dumped);
    let [mut dumped] = dumped;
    let built = built.and_then(|b| {
        dump::add_results(&mut dumped, &b.modules[0], &b.programs(), &b.object.content)?;
        Ok((b.bundle.face, b.object))
    });
    dump::write(&flags, dumped)?;
    let (face, object) = built.map_err(|e| graph::with_file(e, &graph))?;

    let empty = Pieces::from(codegen::assemble("", targets[0])?);
    let text = cpp::whole_header(&face, &header::header(&face, &targets), &asked.class);
    let mut all = vec![
        (named(&args.out_function_object), object.content),
        (named(&args.out_header), text.into()),
        (named(&args.out_metadata_object), empty.clone()),
    ];
    all.extend(args.out_constant_buffers_object.iter().map(|path| (named(path), empty.clone())));
    all.extend(args.out_session_module.iter().zip(before).map(|(path, bytes)| (named(path), bytes.into())));
    files::write_all(Path::new("."), &all)?;
    Ok(ExitStatus::Yes)
}

/// The validated flags of a compilation.
struct TfcompileOptions<'a> {
    graph: &'a Path,
    class: ClassName,
    name: String,
    requests: Vec<CodeRequest>,
    xla: XlaArgs,
}

fn checked(args: &TfcompileArgs) -> Result<TfcompileOptions<'_>> {
    let graph = required("graph", args.graph.as_deref())?;
    required("cpp_class", Some(args.cpp_class.as_str()).filter(|c| !c.is_empty()))?;
    let without = [
        (
            args.gen_program_shape,
            "gen_program_shape",
            "the header has no protobuf; `arg_size` and `NAME_info` tell shapes",
        ),
        (args.experimental_quantize, "experimental_quantize", "quantise the graph before"),
        (args.sanitize_dataflow, "sanitize_dataflow", "the code can't be instrumented"),
    ];
    if let Some((_, flag, why)) = without.into_iter().find(|w| w.0) {
        return Err(Diagnostic::new(Code::BadOption, format!("--{flag} is not supported")).help(why).into());
    }
    let class = ClassName::parse(&args.cpp_class)?;
    let given = Some(&args.entry_point).filter(|e| !e.is_empty());
    let name = match given {
        Some(name) => graph::model_name(Some(name), graph)?,
        None => names::identifier(&[&class.namespaces[..], std::slice::from_ref(&class.class)].concat().join("_")),
    };
    let mut cpu: Vec<String> = args.target_cpu.iter().filter(|c| !c.is_empty()).cloned().collect();
    if cpu.is_empty() && args.target_triple.starts_with("x86_64") {
        cpu.push("x86-64".to_string());
    }
    let features = Some(args.target_features.clone()).filter(|f| !f.is_empty());
    let (target, weights, math) = (Some(args.target_triple.clone()), args.weights, args.math);
    let requests = graph::code_requests(&TargetArgs { target, cpu, features, weights, math, ..TargetArgs::default() })?;
    let xla = XlaArgs { xla_flags: Some(args.xla.join(" ")) };
    Ok(TfcompileOptions { graph, class, name, requests, xla })
}

fn required<T>(flag: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::user(Code::BadOption, format!("Must specify --{flag}")))
}

/// Prints the names of the fetched nodes in alphabetical order, separated by commas, without a newline.
fn fetch_nodes(config: &Path) -> Result<ExitStatus> {
    let fetches = config::load(config)?.fetches;
    let nodes: BTreeSet<&str> =
        fetches.iter().map(|f| f.rsplit_once(':').map_or(f.as_str(), |(node, _)| node)).collect();
    out::bytes(nodes.into_iter().collect::<Vec<_>>().join(",").as_bytes())?;
    Ok(ExitStatus::Yes)
}

fn named(path: &Path) -> String {
    path.display().to_string()
}
