//! From a module of StableHLO or HLO to a program in memory.
use crate::boundary::{give, object, slice};
use crate::c_api::executable::{self as c, ClientCompileArgs, CompileArgs};
use crate::client::Client;
use crate::compile_options::CompileOptions;
use crate::executable::{Executable, LoadedExecutable};
use crate::failure::{Code, Failure};
use crate::ffi;
use crate::program::{C_NAME, CompiledFor, Program};
use bytes::Bytes;
use std::sync::Arc;
use tfaot::Target;
use tfaot::codegen::Launches;
use tfaot::compile::{build, lower_hosted_module};
use tfaot::hlo::Module;

/// Bytes of the stack of the thread that compiles, whose passes are recursive: address space only, touched as far as it is used.
const STACK_BYTES: usize = 256 << 20;

/// Compiles the bytes of a module on a thread whose stack is deep enough.
///
/// # Errors
/// Errors of [`program`]; `Code::ResourceExhausted` where no thread can be started.
fn on_thread(code: &[u8], options: &[u8], target: &Target) -> Result<(Program, CompileOptions), Failure> {
    std::thread::scope(|scope| {
        let compiler = std::thread::Builder::new().name("tfaot-compile".into()).stack_size(STACK_BYTES);
        let compiler = compiler.spawn_scoped(scope, || program(code, options, target));
        let compiler = compiler.map_err(|e| Failure::new(Code::ResourceExhausted, format!("no thread: {e}")))?;
        compiler.join().unwrap_or_else(|panic| Err(Failure::of_panic(&*panic)))
    })
}

/// Compiles the bytes of a module.
///
/// # Errors
/// Errors of tfaot's reader and compiler; `Code::Unimplemented` for programs of several devices.
fn program(code: &[u8], options: &[u8], target: &Target) -> Result<(Program, CompileOptions), Failure> {
    let read = CompileOptions::read(options)?;
    let (lowered, calls) = lower_hosted_module(&Bytes::copy_from_slice(code), &ffi::is_callable)?;
    let (source, donated) = (lowered.module.name.clone(), donated_arguments(&lowered.module));
    let built = build(lowered, C_NAME, &source, target, Launches::Direct, &mut None)?;
    Ok((Program::of_built(built, &calls, donated, CompiledFor { cpu: &target.cpu, options })?, read))
}

/// The arguments that the module's header lists as given away: `buffer_donor={ (0, {}), (2, {}) }`.
fn donated_arguments(module: &Module) -> Vec<usize> {
    let list = module.extra.iter().find(|(name, _)| name == "buffer_donor").map_or("", |(_, list)| list);
    list.split('(').filter_map(|entry| entry.split(',').next()?.trim().parse().ok()).collect()
}

fn code<'a>(program: *const c::Program) -> Result<&'a [u8], Failure> {
    let program = object(program)?;
    Ok(slice(program.code.cast_const().cast::<u8>(), program.code_size))
}

/// `PJRT_Client_Compile`.
pub fn compile_and_load(args: &mut ClientCompileArgs) -> Result<(), Failure> {
    let client: &Client = object(args.client)?;
    let options = slice(args.compile_options.cast::<u8>(), args.compile_options_size);
    let (program, options) = on_thread(code(args.program)?, options, &client.target)?;
    args.executable = give(LoadedExecutable::new(Executable::new(Arc::new(program))?, args.client, &options)?);
    Ok(())
}

/// `PJRT_Compile`: for the processor at hand, whatever the topology.
pub fn compile(args: &mut CompileArgs) -> Result<(), Failure> {
    let options = slice(args.compile_options.cast::<u8>(), args.compile_options_size);
    let target = Target::resolve(None, None, None)?;
    let (program, _) = on_thread(code(args.program)?, options, &target)?;
    args.executable = give(Executable::new(Arc::new(program))?);
    Ok(())
}
