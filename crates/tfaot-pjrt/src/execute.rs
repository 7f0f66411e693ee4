//! Calls of compiled programs.
use crate::boundary::{give, object, slice, take};
use crate::buffer::Buffer;
use crate::c_api::executable::{ExecuteContextCreateArgs, ExecuteContextDestroyArgs, LoadedExecutableExecuteArgs};
use crate::device::Device;
use crate::element;
use crate::event::Event;
use crate::executable::LoadedExecutable;
use crate::failure::{Code, Failure};
use crate::storage::{Block, Storage};
use std::sync::Arc;

/// `PJRT_ExecuteContext`.
pub struct ExecuteContext;

/// `PJRT_ExecuteContext_Create`.
pub fn create_context(args: &mut ExecuteContextCreateArgs) -> Result<(), Failure> {
    args.context = give(ExecuteContext);
    Ok(())
}

/// `PJRT_ExecuteContext_Destroy`.
pub fn destroy_context(args: &mut ExecuteContextDestroyArgs) -> Result<(), Failure> {
    take(args.context);
    Ok(())
}

/// `PJRT_LoadedExecutable_Execute`.
pub fn execute(args: &mut LoadedExecutableExecuteArgs) -> Result<(), Failure> {
    let loaded = object(args.executable)?;
    if loaded.is_deleted() {
        return Err(Failure::new(Code::FailedPrecondition, "the executable has been deleted"));
    }
    let &[inputs] = slice(args.argument_lists, args.num_devices) else {
        let told = format!("the program runs on one device, and was called with arguments for {}", args.num_devices);
        return Err(Failure::new(Code::InvalidArgument, told));
    };
    let inputs = slice(inputs, args.num_args);
    let buffers = inputs.iter().map(|&b| object(b)).collect::<Result<Vec<&Buffer>, _>>()?;
    let device = device_of(loaded, args.execute_device)?;
    let results = run(loaded, &buffers, device)?;
    let kept = kept_inputs(args);
    let donated = loaded.executable.program.facts.donated.iter().filter(|i| !kept.contains(&(**i as i64)));
    donated.filter_map(|&i| buffers.get(i)).for_each(|buffer| buffer.release());
    let outputs: *mut *mut Buffer = *object(args.output_lists)?;
    for (i, result) in results.into_iter().enumerate() {
        // SAFETY: the caller's list has a place for each result.
        unsafe { outputs.add(i).write(give(result)) };
    }
    if !args.device_complete_events.is_null() {
        // SAFETY: the caller's list has a place for each device.
        unsafe { args.device_complete_events.write(give(Event::ready())) };
    }
    Ok(())
}

/// Arguments that are not to be donated in this call.
fn kept_inputs(args: &LoadedExecutableExecuteArgs) -> &[i64] {
    match object(args.options) {
        Ok(options) => slice(options.non_donatable_input_indices, options.num_non_donatable_input_indices),
        Err(_) => &[],
    }
}

/// The device of a call: that of the executable, or the one that the call names.
fn device_of(loaded: &LoadedExecutable, named: *mut Device) -> Result<*mut Device, Failure> {
    match loaded.device {
        _ if !named.is_null() => Ok(named),
        Some(device) => Ok(device),
        None => object(loaded.client)?.device(0),
    }
}

/// Calls the program on arrays whose types are looked at first.
fn run(loaded: &LoadedExecutable, buffers: &[&Buffer], device: *mut Device) -> Result<Vec<Buffer>, Failure> {
    let program = &loaded.executable.program;
    check(loaded, buffers)?;
    let inputs = buffers.iter().map(|b| b.storage()).collect::<Result<Vec<Arc<Storage>>, _>>()?;
    let memory = object(device)?.default_memory()?;
    let mut results = Vec::with_capacity(program.facts.results.len());
    let mut places = Vec::with_capacity(results.capacity());
    for result in &program.facts.results {
        let dtype = result.dtype()?;
        let block = Block::new(element::bytes(dtype, &result.dims)?)?;
        places.push(block.as_ptr());
        results.push(Buffer::new(Storage::Own(block), dtype, result.dims.clone(), memory)?);
    }
    let pointers: Vec<*const u8> = inputs.iter().map(|s| s.as_ptr()).collect();
    let client = object(loaded.client)?;
    let workspace = client.workspaces.take(program.code.workspace_bytes())?;
    // SAFETY: types and sizes of the arrays are the program's, as `check` saw; results and workspace are this call's alone, and
    // `inputs` keeps the arguments.
    let outcome = unsafe { program.code.call(&pointers, &places, workspace.as_ptr(), client.pool()) };
    client.workspaces.give(workspace);
    outcome?;
    Ok(results)
}

/// Refuses arguments of other types than the program's.
fn check(loaded: &LoadedExecutable, buffers: &[&Buffer]) -> Result<(), Failure> {
    let wanted = &loaded.executable.program.facts.args;
    if buffers.len() != wanted.len() {
        let told = format!("the program takes {} arguments, and was called with {}", wanted.len(), buffers.len());
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    for (i, (buffer, wanted)) in buffers.iter().zip(wanted).enumerate() {
        let dtype = wanted.dtype()?;
        if buffer.dtype != dtype || buffer.dims != wanted.dims {
            let told = format!(
                "argument {i} is {}{:?}, and the program takes {dtype}{:?}",
                buffer.dtype, buffer.dims, wanted.dims
            );
            return Err(Failure::new(Code::InvalidArgument, told));
        }
    }
    Ok(())
}
