//! Calls of compiled programs.
use crate::boundary::{give, object, slice, take};
use crate::buffer::Buffer;
use crate::c_api::executable::{ExecuteContextCreateArgs, ExecuteContextDestroyArgs, LoadedExecutableExecuteArgs};
use crate::client::Client;
use crate::device::Device;
use crate::element;
use crate::event::Event;
use crate::executable::LoadedExecutable;
use crate::failure::{Code, Failure};
use crate::ffi::{CallContext, UserData, with_context};
use crate::program::Program;
use crate::storage::{Block, Storage};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tfaot::run::{Communicator, on_ranks};

/// Bytes of a result that orders effects.
const ORDER_BYTES: usize = 4;

/// `PJRT_ExecuteContext`: data of the caller for the functions that programs call.
#[derive(Default)]
pub struct ExecuteContext(Mutex<Vec<UserData>>);

impl ExecuteContext {
    /// Adds data of a type.
    pub fn add_user_data(&self, id: i64, data: *mut c_void) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((id, data));
    }
}

/// `PJRT_ExecuteContext_Create`.
pub fn create_context(args: &mut ExecuteContextCreateArgs) -> Result<(), Failure> {
    args.context = give(ExecuteContext::default());
    Ok(())
}

/// `PJRT_ExecuteContext_Destroy`.
pub fn destroy_context(args: &mut ExecuteContextDestroyArgs) -> Result<(), Failure> {
    take(args.context);
    Ok(())
}

/// `PJRT_LoadedExecutable_Execute`: lists of arguments, results and events have an element for each device.
pub fn execute(args: &mut LoadedExecutableExecuteArgs) -> Result<(), Failure> {
    let loaded = object(args.executable)?;
    if loaded.is_deleted() {
        return Err(Failure::new(Code::FailedPrecondition, "the executable has been deleted"));
    }
    object(args.output_lists)?;
    let devices = devices_of(loaded, args.execute_device)?;
    let lists = slice(args.argument_lists, args.num_devices);
    if lists.len() != devices.len() {
        let told =
            format!("the program runs on {} devices, and was called with arguments for {}", devices.len(), lists.len());
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    let mut calls = Vec::with_capacity(devices.len());
    let mut inputs = Vec::with_capacity(devices.len());
    for (&list, &device) in lists.iter().zip(&devices) {
        let buffers = slice(list, args.num_args).iter().map(|&b| object(b)).collect::<Result<Vec<&Buffer>, _>>()?;
        calls.push(DeviceCall::new(loaded, &buffers, device)?);
        inputs.push(buffers);
    }
    run(loaded, &calls, &user_data(args))?;
    let kept = kept_inputs(args);
    for buffers in inputs {
        let donated = loaded.executable.program.facts.donated.iter().filter(|i| !kept.contains(&(**i as i64)));
        donated.filter_map(|&i| buffers.get(i)).for_each(|buffer| buffer.release());
    }
    let client = object(loaded.client)?;
    for (at, call) in calls.into_iter().enumerate() {
        client.workspaces.give(call.workspace);
        // SAFETY: the caller's lists have an element for each device, and a place for each result.
        unsafe {
            let outputs: *mut *mut Buffer = *args.output_lists.add(at);
            call.results.into_iter().enumerate().for_each(|(i, result)| outputs.add(i).write(give(result)));
            if !args.device_complete_events.is_null() {
                args.device_complete_events.add(at).write(give(Event::ready()));
            }
        }
    }
    Ok(())
}

/// Data of the caller for the functions that the program calls.
fn user_data(args: &LoadedExecutableExecuteArgs) -> Vec<UserData> {
    let context = object(args.options).ok().and_then(|options| object(options.context.cast_const()).ok());
    context.map_or_else(Vec::new, |context| context.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Arguments that are not to be donated in this call.
fn kept_inputs(args: &LoadedExecutableExecuteArgs) -> &[i64] {
    match object(args.options) {
        Ok(options) => slice(options.non_donatable_input_indices, options.num_non_donatable_input_indices),
        Err(_) => &[],
    }
}

/// The devices of a call: those of the executable, or the one that the call names.
fn devices_of(loaded: &LoadedExecutable, named: *mut Device) -> Result<Vec<*mut Device>, Failure> {
    match &loaded.devices[..] {
        [] | [_] if !named.is_null() => Ok(vec![named]),
        [] => Ok(vec![object(loaded.client)?.device(0)?]),
        all => Ok(all.to_vec()),
    }
}

/// The arrays of a call on one device.
struct DeviceCall {
    inputs: Vec<Arc<Storage>>,
    results: Vec<Buffer>,
    /// Memory of each result.
    places: Vec<*mut u8>,
    workspace: Block,
    /// Memory of a result that orders effects, which callers do not get.
    _order: Option<Block>,
    device: c_int,
}

// SAFETY: the call owns its results, and holds its inputs, which nothing changes.
unsafe impl Sync for DeviceCall {}

impl DeviceCall {
    /// Looks at the types of the arguments, and allocates the results.
    fn new(loaded: &LoadedExecutable, buffers: &[&Buffer], device: *mut Device) -> Result<DeviceCall, Failure> {
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
        let order = if program.facts.has_effects { Some(Block::new(ORDER_BYTES)?) } else { None };
        places.extend(order.as_ref().map(Block::as_ptr));
        let workspace = object(loaded.client)?.workspaces.take(program.code.workspace_bytes())?;
        let device = object(device)?.description.id;
        Ok(DeviceCall { inputs, results, places, workspace, _order: order, device })
    }

    /// Calls the program once, as a rank if there is a communicator, else on the threads of the client.
    fn run(&self, execution: &Execution, communicator: Option<&Communicator>) -> tfaot::diag::Result<()> {
        let Execution { program, client, user_data, run, failure } = execution;
        let pointers: Vec<*const u8> = self.inputs.iter().map(|s| s.as_ptr()).collect();
        let pool = if communicator.is_some() { None } else { client.pool() };
        let context = CallContext { sites: &program.sites, user_data, device: self.device, run: *run, failure };
        let workspace = self.workspace.as_ptr();
        // SAFETY: types and sizes of the arrays are the program's, as `check` saw; results and workspace are this call's alone, and
        // `inputs` keeps the arguments.
        with_context(&context, || unsafe { program.code.call(&pointers, &self.places, workspace, pool, communicator) })
    }
}

/// One execution of a program on all its devices.
struct Execution<'a> {
    program: &'a Program,
    client: &'a Client,
    user_data: &'a [UserData],
    /// A number of this execution.
    run: i64,
    /// The error of a function of the user that failed.
    failure: Mutex<Option<Failure>>,
}

// SAFETY: callers promise that handlers may use their data on the threads that run the program.
unsafe impl Sync for Execution<'_> {}

/// Calls the program on each device: on threads of their own where the devices exchange values, else one after the other.
fn run(loaded: &LoadedExecutable, calls: &[DeviceCall], user_data: &[UserData]) -> Result<(), Failure> {
    static RUNS: AtomicI64 = AtomicI64::new(1);
    let program = &*loaded.executable.program;
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let execution = Execution { program, client: object(loaded.client)?, user_data, run, failure: Mutex::default() };
    let outcome = run_on_devices(&execution, calls);
    // the function's own error says more than that the call failed
    match execution.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => outcome,
    }
}

fn run_on_devices(execution: &Execution, calls: &[DeviceCall]) -> Result<(), Failure> {
    match execution.program.code.ranks() as usize {
        0 => calls.iter().try_for_each(|call| call.run(execution, None))?,
        n if n == calls.len() => {
            on_ranks(n, |rank, communicator| calls[rank].run(execution, Some(communicator)))?;
        }
        n => {
            let told = format!("the program exchanges values among {n} devices, and runs on {}", calls.len());
            return Err(Failure::new(Code::InvalidArgument, told));
        }
    }
    Ok(())
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
