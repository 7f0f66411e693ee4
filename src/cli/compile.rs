//! `tfaot compile`: a graph to files.
use super::args::{CompileArgs, Emit};
use super::{Verdict, graph, out};
use crate::codegen::{self, Launches, Text};
use crate::compile::{self, Built};
use crate::diag::Result;
use crate::package::{archive, files, header, metadata, shared};
use crate::target::Target;
use crate::{hlo, kernel};

/// Compiles the graph and writes what `--emit` lists, all of it or nothing.
pub fn run(args: &CompileArgs) -> Result<Verdict> {
    let name = graph::model_name(args.name.as_deref(), &args.graph.graph)?;
    let target = graph::target(&args.target)?;
    let front = graph::front(&args.graph)?;
    let source = compile::source_name(&args.graph.graph);
    let built = compile::build(front.lowered, &name, &source, &target, Launches::Direct)
        .map_err(|e| graph::in_file(e, &args.graph))?;
    let mut emit = args.emit.clone();
    emit.sort();
    emit.dedup();
    let all = emit.into_iter().map(|e| file(e, &built, &name, &target)).collect::<Result<Vec<_>>>()?;
    for path in files::write_all(&args.out, &all)? {
        out::line(path.display())?;
    }
    Ok(Verdict::Yes)
}

/// The name and the bytes of one file.
fn file(emit: Emit, built: &Built, name: &str, target: &Target) -> Result<(String, Vec<u8>)> {
    let program = &built.program;
    let object = &built.object.bytes;
    Ok(match emit {
        Emit::Obj => (format!("{name}.o"), object.clone()),
        Emit::Header => (format!("{name}.h"), header::header(program, target).into_bytes()),
        Emit::Archive => (format!("lib{name}.a"), archive::archive(&format!("{name}.o"), object, target)?),
        Emit::Shared => {
            let file = format!("lib{name}.{}", if target.triple.contains("apple") { "dylib" } else { "so" });
            let bytes = shared::shared(object, &file, target)?;
            (file, bytes)
        }
        Emit::Metadata => (format!("{name}.json"), metadata::metadata(program, target).into_bytes()),
        Emit::Hlo => (format!("{name}.hlo"), hlo::text::print(&built.module).into_bytes()),
        Emit::LlvmIr => (format!("{name}.ll"), codegen::print(program, target, Text::LlvmIr)?.into_bytes()),
        Emit::Asm => (format!("{name}.s"), codegen::print(program, target, Text::Assembly)?.into_bytes()),
        Emit::Kernels => (format!("{name}.kernels"), kernel::print(program).into_bytes()),
    })
}
