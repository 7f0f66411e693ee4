//! `tfaot compile`: compiles a graph and writes the requested files.
use super::args::{CompileArgs, Emit, HloCompile};
use super::cache::{CacheEntry, CompileCache};
use super::progress::{self, Progress};
use super::{ExitStatus, dump, graph, modules, out, recorded_options, tune};
use crate::codegen::{self, Backend as _, Launches, TextForm};
use crate::compile::{self, BuildOutputs, Compiled, Functions};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::Module;
use crate::import;
use crate::kernel;
use crate::kernel::self_test::SelfTest;
use crate::kernel::{Bundle, Callee, ModelInterface};
use crate::lower::Lowered;
use crate::package::cpp::{self, ClassName};
use crate::package::loop_counts::LoopCounts;
use crate::package::metadata::ResourceLimits;
use crate::package::{
    archive, build_files, depfile, files, fortran, header, metadata, pool, ranks, rust, shared_library,
};
use crate::target::{CodeRequest, Target};
use crate::util::pieces::Pieces;
use crate::verify::{self, SelfTestSource};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Compiles the graph and writes what `--emit` lists, atomically.
pub fn run(args: &CompileArgs) -> Result<ExitStatus> {
    let name = graph::model_name(args.name.as_deref(), &args.graph.graph)?;
    let class = args.cpp_class.as_deref().map_or_else(|| Ok(ClassName::of_model(&name)), ClassName::parse)?;
    // measurements are for this machine
    let requests = if args.tune.is_some() {
        graph::code_requests(&args.target)
    } else {
        graph::portable_code_requests(&args.target)
    }?;
    let requests = if needs_object(&args.emit) { requests } else { oldest(requests) };
    let cache = CompileCache::for_compile(args, &requests);
    if let Some(verdict) = cached(args, &name, cache.as_ref())? {
        return Ok(verdict);
    }
    let _progress = Progress::begin("reading the graph", args.graph.quiet);
    let (mut functions, mut notes) = graph::lower_functions(&args.graph)?;
    notes.push(graph::processors_note(&requests));
    if !args.graph.quiet {
        out::note(format_args!("note: {}", graph::processors_note(&requests)));
    }
    if args.weights_file {
        compile::make_weights_replaceable(&mut functions);
    }
    let requests = match (&args.tune, &functions.all[..]) {
        (None, _) => requests,
        (Some(file), [(_, only)]) if only.state.is_empty() => {
            tune::run(&compile::function_at_bounds(only.clone()), &requests, file, args)?
        }
        (Some(_), _) => {
            let told = "--tune measures one function without variables";
            return Err(Diagnostic::new(Code::BadOption, told).help("--tuning takes what was measured before").into());
        }
    };
    let self_test = self_test(args, &functions, &requests)?;
    progress::set_step("compiling");
    let source = compile::source_name(&args.graph.graph);
    let flags = dump::dump_flags(&args.xla)?;
    let mut dumped: Vec<_> = functions.all.iter().map(|(_, lowered)| dump::start(&flags, &lowered.module)).collect();
    let makes_object = needs_object(&args.emit) || dumped.iter().any(Option::is_some);
    let outputs = BuildOutputs { launches: makes_object.then_some(Launches::Direct), self_test };
    let built = compile::build_outputs(functions, &name, &source, &requests, outputs, &mut dumped);
    let built = built.and_then(|b| {
        let programs = b.programs();
        let mut all = dumped.iter_mut().zip(&b.modules);
        all.try_for_each(|(dump, module)| dump::add_results(dump, module, &programs, &b.object.content))?;
        Ok(b)
    });
    // Dumps up to an error help to find its cause.
    dumped.into_iter().try_for_each(|dump| dump::write(&flags, dump))?;
    let built = built.map_err(|e| graph::with_file(e, &args.graph))?;
    let request = recorded_options::record_request(args, &requests);
    let mut all = file_contents(&args.emit, &built, &class, Some(&request))?;
    for note in arithmetic_notes(&built.bundle.face) {
        if !args.graph.quiet {
            out::note(format_args!("note: {note}"));
        }
        notes.push(note);
    }
    let needs = required_functions(&built);
    if args.emit.contains(&Emit::Shared) && !needs.is_empty() {
        let note =
            "the library has no body of what it needs: the program that loads it, or another library, must export it";
        if !args.graph.quiet {
            out::note(format_args!("note: {note}"));
        }
        notes.push(note.to_string());
    }
    if let Some(cache) = cache {
        cache.keep(&CacheEntry { notes, needs: needs.clone(), files: all.clone() });
    }
    let rule = depends(args, &name, all.iter().map(|f| f.0.as_str()))?;
    all.extend(rule);
    report_written_files(&files::write_all(&args.out, &all)?, &needs)
}

/// Notes about the constants and products that were rounded or quantised.
fn arithmetic_notes(face: &ModelInterface) -> Vec<String> {
    let reduced = face.reduced.precision.is_reduced().then(|| face.reduced.to_string());
    let quantized = (!face.quantized.is_empty()).then(|| face.quantized.to_string());
    reduced.into_iter().chain(quantized).collect()
}

/// The requested self-test, with answers computed by the interpreter.
fn self_test(args: &CompileArgs, functions: &Functions, requests: &[CodeRequest]) -> Result<Option<SelfTest>> {
    let Some(text) = &args.self_test else { return Ok(None) };
    progress::set_step("interpreting");
    let source = SelfTestSource::parse(text, args.self_test_expect.clone())?;
    let precision = requests.first().map(|r| r.precision).unwrap_or_default();
    let keys = |lowered: &Lowered| graph::npz_result_keys(&args.graph, lowered);
    let made = verify::self_test(functions, &source, precision, &keys);
    made.map(Some).map_err(|e| graph::with_file(e, &args.graph))
}

/// Whether a requested file is derived from the object, or covers all targets; C source and the files that accompany it are for one target.
fn needs_object(asked: &[Emit]) -> bool {
    let is_beside =
        |e: &Emit| matches!(e, Emit::C | Emit::Header | Emit::Metadata | Emit::Cpp | Emit::Depfile | Emit::Pool);
    !(asked.contains(&Emit::C) && asked.iter().all(is_beside))
}

/// The request for the oldest instruction set, the only one for which C source is generated.
fn oldest(requests: Vec<CodeRequest>) -> Vec<CodeRequest> {
    requests.into_iter().min_by_key(CodeRequest::instruction_set_order).into_iter().collect()
}

/// Functions that the object calls and its user must define, with their kind, and the communicator that the caller must supply.
pub fn required_functions(built: &Compiled) -> Vec<String> {
    let face = &built.bundle.face;
    let call = |callee: &Callee| format!("{} (custom call, API version {})", callee.name, callee.api_version);
    let ranks = face.ranks.map(|count| format!("a tfaot_communicator of {count} ranks"));
    face.prototypes().into_iter().map(call).chain(ranks).collect()
}

/// The depfile for `files`, if requested. It contains paths, so the cache can't keep it.
fn depends<'a>(
    args: &CompileArgs,
    name: &str,
    files: impl Iterator<Item = &'a str>,
) -> Result<Option<(String, Pieces)>> {
    if !args.emit.contains(&Emit::Depfile) {
        return Ok(None);
    }
    let targets: Vec<PathBuf> = files.map(|file| args.out.join(file)).collect();
    let mut sources = import::model_files(&args.graph.graph, args.graph.format.as_deref())?;
    sources.extend([&args.graph.config, &args.target.tuning, &args.target.plan].into_iter().flatten().cloned());
    Ok(Some((format!("{name}.d"), depfile::depfile(&targets, &sources).into())))
}

/// Compiles HLO modules, each to the files that `--emit` lists. Files of modules before a refused one are kept.
pub fn compile_modules(args: &HloCompile) -> Result<ExitStatus> {
    let requests = graph::portable_code_requests(&args.target)?;
    let makes_object = needs_object(&args.emit);
    let requests = if makes_object { requests } else { oldest(requests) };
    for path in &args.files.files {
        let module = modules::load_expanded(path, &args.files.dims)?;
        let name = graph::model_name(None, Path::new(path))?;
        let source = compile::source_name(Path::new(path));
        let built = compile::wrap_module(module).and_then(|lowered| {
            let functions = Functions { all: vec![(name.clone(), lowered)], init: None };
            let outputs = BuildOutputs { launches: makes_object.then_some(Launches::Direct), self_test: None };
            compile::build_outputs(functions, &name, &source, &requests, outputs, &mut [])
        });
        let built = built.map_err(|e| e.in_file(path))?;
        let all = file_contents(&args.emit, &built, &ClassName::of_model(&name), None)?;
        report_written_files(&files::write_all(&args.out, &all)?, &required_functions(&built))?;
    }
    Ok(ExitStatus::Yes)
}

/// Writes the files of an earlier compilation; `None` if the cache has no intact entry.
fn cached(args: &CompileArgs, name: &str, cache: Option<&CompileCache>) -> Result<Option<ExitStatus>> {
    let Some((cache, found)) = cache.and_then(|cache| Some((cache, cache.find()?))) else { return Ok(None) };
    let Some(mut written) = cache.write(&found, &args.out)? else { return Ok(None) };
    if let Some(rule) = depends(args, name, found.files.iter().map(|f| f.0.as_str()))? {
        written.extend(files::write_all(&args.out, &[rule])?);
    }
    if !args.graph.quiet {
        found.notes.iter().for_each(|note| out::note(format_args!("note: {note}")));
    }
    report_written_files(&written, &found.needs).map(Some)
}

/// Prints the names of the files, and the functions that users of the object must define.
pub fn report_written_files(written: &[PathBuf], needs: &[String]) -> Result<ExitStatus> {
    for path in written {
        out::line(path.display())?;
    }
    for function in needs {
        out::line(format_args!("needs {function}"))?;
    }
    Ok(ExitStatus::Yes)
}

/// The requested files with their names, including the weights file; `request` is recorded in the metadata.
pub fn file_contents(
    asked: &[Emit],
    built: &Compiled,
    class: &ClassName,
    request: Option<&Value>,
) -> Result<Vec<(String, Pieces)>> {
    let mut all = emitted(asked).into_iter().map(|e| file(e, built, class, request)).collect::<Result<Vec<_>>>()?;
    all.extend(
        built.bundle.weights_file_content().map(|content| (format!("{}.weights", built.bundle.face.name), content)),
    );
    Ok(all)
}

/// The requested kinds of output, deduplicated, without depfiles and with prerequisites: the C++ class needs the C header, build files
/// need header and archive.
fn emitted(asked: &[Emit]) -> Vec<Emit> {
    let mut all = asked.to_vec();
    if asked.iter().any(|e| matches!(e, Emit::Cpp | Emit::Cmake | Emit::Pkgconfig)) {
        all.push(Emit::Header);
    }
    if asked.iter().any(|e| matches!(e, Emit::Cmake | Emit::Pkgconfig)) {
        all.push(Emit::Archive);
    }
    all.retain(|e| *e != Emit::Depfile);
    all.sort();
    all.dedup();
    all
}

/// Name and content of one file.
fn file(emit: Emit, built: &Compiled, class: &ClassName, request: Option<&Value>) -> Result<(String, Pieces)> {
    let face = &built.bundle.face;
    let name = &face.name;
    let object = &built.object.content;
    let targets: Vec<&Target> = built.bundle.variants.iter().map(|(_, target)| target).collect();
    // texts of several functions and targets are concatenated
    let each = |print: &dyn Fn(&kernel::Program, &Target) -> Result<String>| {
        let programs = built.programs();
        let texts = programs.iter().map(|(program, target)| print(program, target)).collect::<Result<Vec<_>>>()?;
        Ok::<Pieces, Error>(texts.join("\n").into())
    };
    Ok(match emit {
        Emit::Obj => (format!("{name}.o"), object.clone()),
        Emit::Header => (format!("{name}.h"), header::header(face, &targets).into()),
        Emit::Archive => {
            (format!("lib{name}.a"), archive::archive(&format!("{name}.o"), &object.to_bytes(), targets[0])?.into())
        }
        Emit::Shared => {
            let file = format!("lib{name}.{}", shared_library::file_extension(targets[0]));
            let bytes = shared_library::link_shared_library(&[object], &file, targets[0]).map_err(|e| {
                e.map(|d| match d.code {
                    Code::NoLinker => d.note("without `shared` in --emit there is an object to link yourself"),
                    _ => d,
                })
            })?;
            (file, bytes.into())
        }
        Emit::Metadata => (format!("{name}.json"), metadata::metadata(face, &targets, &limits(built), request).into()),
        Emit::Hlo => (format!("{name}.hlo"), hlo_text(&built.modules).into()),
        Emit::C => (format!("{name}.c"), codegen::CBackend.code(&built.bundle, Launches::Direct)?),
        Emit::LlvmIr => (format!("{name}.ll"), each(&|p, t| codegen::print(p, t, TextForm::LlvmIr))?),
        Emit::Asm => (format!("{name}.s"), each(&|p, t| codegen::print(p, t, TextForm::Assembly))?),
        Emit::Cpp => {
            ranks::require_single_rank(face, "cpp")?;
            (format!("{name}.hpp"), cpp::header(face, class).into())
        }
        Emit::Cmake => (format!("{name}-config.cmake"), build_files::cmake(face).into()),
        Emit::Pkgconfig => (format!("{name}.pc"), build_files::pkg_config(face).into()),
        Emit::Pool => ("tfaot_pool.h".to_string(), pool::HEADER.as_bytes().into()),
        Emit::PoolShared => {
            let target = targets[0];
            let objects = pool::pool_library_ir(target).map(|text| codegen::assemble(&text, target).map(Pieces::from));
            let [face, threads] = objects;
            let file = format!("libtfaot_pool.{}", shared_library::file_extension(target));
            let bytes = shared_library::link_shared_library(&[&face?, &threads?], &file, target)?;
            (file, bytes.into())
        }
        Emit::Threads => ("tfaot_threads.h".to_string(), ranks::THREADS.as_bytes().into()),
        Emit::Mpi => ("tfaot_mpi.h".to_string(), ranks::MPI.as_bytes().into()),
        Emit::Fortran => (format!("{name}.f90"), fortran::module(face)?.into()),
        Emit::Rust => (format!("{name}.rs"), rust::module(face)?.into()),
        Emit::Depfile => return Err(Error::internal("compile", "depfiles are written last")),
        Emit::Plan => (format!("{name}.plan"), each(&|p, _| Ok(p.plan.clone()))?),
        Emit::Kernels => (format!("{name}.kernels"), each(&|p, _| Ok(kernel::print_program(p)))?),
    })
}

/// Upper bounds on the stack use and loop iterations of calls.
fn limits(built: &Compiled) -> ResourceLimits {
    let Bundle { face, variants, .. } = &built.bundle;
    let of_entry =
        |entry| LoopCounts::worst_of(variants.iter().flat_map(|(programs, _)| &programs[face.program_indices(entry)]));
    ResourceLimits { stack: built.object.stack.clone(), loops: (0..face.entries.len()).map(of_entry).collect() }
}

/// The concatenated text of the modules.
fn hlo_text(modules: &[Module]) -> String {
    modules.iter().map(crate::hlo::text::print).collect::<Vec<_>>().join("\n")
}
