//! Executables: compiled programs, and such on a device.
use crate::boundary::{GivenBytes, delete_bytes, give, lend, object, take};
use crate::c_api::executable::*;
use crate::client::Client;
use crate::compile_options::{self, CompileOptions};
use crate::device::Device;
use crate::element;
use crate::failure::{Code, Failure};
use crate::layouts::MinorToMajor;
use crate::memory::KINDS;
use crate::named_values::{NamedValues, Value};
use crate::program::{Array, Program};
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `PJRT_Executable`: a program, and tables about it that callers look into.
pub struct Executable {
    /// The program.
    pub program: Arc<Program>,
    types: Vec<c_int>,
    /// Sizes of all results one behind the other, and how many each has.
    dims: Vec<i64>,
    ranks: Vec<usize>,
    kinds: Vec<*const c_char>,
    kind_bytes: Vec<usize>,
    layouts: Vec<*mut MinorToMajor>,
    costs: NamedValues,
    /// Number of replicas, and of partitions of each.
    copies: [usize; 2],
}

// SAFETY: the tables point to constants and to layouts that the executable has alone.
unsafe impl Send for Executable {}
// SAFETY: as above; nothing changes.
unsafe impl Sync for Executable {}

impl Executable {
    /// A program with its tables.
    ///
    /// # Errors
    /// `Code::Unimplemented` for results of types that callers can't take.
    pub fn new(program: Arc<Program>) -> Result<Executable, Failure> {
        let results = &program.facts.results;
        let options = CompileOptions::read(&program.facts.options)?;
        let copies = [options.replicas, options.partitions].map(|n| usize::try_from(n.max(1)).unwrap_or(usize::MAX));
        let types = results.iter().map(|r| element::number(r.dtype()?)).collect::<Result<_, Failure>>()?;
        let (args, given) = (bytes_of(&program.facts.args)?, bytes_of(results)?);
        let costs = NamedValues::new(&[
            ("flops", Value::Float(program.facts.flops as f32)),
            ("bytes accessed", Value::Float((args + given) as f32)),
        ]);
        Ok(Executable {
            types,
            dims: results.iter().flat_map(|r| r.dims.iter().copied()).collect(),
            ranks: results.iter().map(|r| r.dims.len()).collect(),
            kinds: vec![KINDS[0].as_ptr().cast(); results.len()],
            kind_bytes: vec![KINDS[0].len(); results.len()],
            layouts: results.iter().map(|r| give(MinorToMajor::row_major(r.dims.len()))).collect(),
            costs,
            copies,
            program,
        })
    }

    /// The layout of each result; callers destroy the pointers' copies of it.
    pub fn output_layouts(&self) -> &[*mut MinorToMajor] {
        &self.layouts
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.layouts.iter().for_each(|&layout| take(layout));
    }
}

/// Bytes of all arrays.
fn bytes_of(all: &[Array]) -> Result<usize, Failure> {
    all.iter().try_fold(0usize, |sum, a| Ok(sum.saturating_add(element::bytes(a.dtype()?, &a.dims)?)))
}

/// `PJRT_LoadedExecutable`.
pub struct LoadedExecutable {
    /// The program with its tables.
    pub executable: Executable,
    /// The client.
    pub client: *mut Client,
    /// The devices that run it together, each a rank by its position; none where each call names the device.
    pub devices: Vec<*mut Device>,
    is_deleted: AtomicBool,
}

// SAFETY: client and devices outlive the executables of the client.
unsafe impl Send for LoadedExecutable {}
// SAFETY: as above.
unsafe impl Sync for LoadedExecutable {}

impl LoadedExecutable {
    /// An executable on the devices that the options name.
    ///
    /// # Errors
    /// `Code::NotFound` for a device that the client has not.
    pub fn new(
        executable: Executable,
        client: *mut Client,
        options: &CompileOptions,
    ) -> Result<LoadedExecutable, Failure> {
        let first = || (0..options.device_count() as i64).collect();
        let ids = if options.devices.is_empty() { first() } else { options.devices.clone() };
        let owner = object(client)?;
        let mut devices = ids.into_iter().map(|id| owner.device(id)).collect::<Result<Vec<_>, _>>()?;
        if options.is_portable {
            devices.clear();
        }
        Ok(LoadedExecutable { executable, client, devices, is_deleted: AtomicBool::new(false) })
    }

    /// Whether a caller deleted it.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }
}

/// `PJRT_Executable_Destroy`.
pub fn destroy(args: &mut ExecutableDestroyArgs) -> Result<(), Failure> {
    take(args.executable);
    Ok(())
}

/// `PJRT_LoadedExecutable_Destroy`.
pub fn destroy_loaded(args: &mut LoadedExecutableDestroyArgs) -> Result<(), Failure> {
    take(args.executable);
    Ok(())
}

/// `PJRT_LoadedExecutable_GetExecutable`.
pub fn executable(args: &mut LoadedExecutableGetExecutableArgs) -> Result<(), Failure> {
    args.executable = give(Executable::new(object(args.loaded_executable)?.executable.program.clone())?);
    Ok(())
}

/// `PJRT_LoadedExecutable_GetDeviceAssignment`: XLA's message `DeviceAssignmentProto`.
pub fn device_assignment(args: &mut LoadedExecutableGetDeviceAssignmentArgs) -> Result<(), Failure> {
    let loaded = object(args.executable)?;
    let [replicas, partitions] = loaded.executable.copies;
    let ids = loaded.devices.iter().map(|&device| Ok(object(device)?.description.id.into()));
    let ids = if loaded.devices.is_empty() { vec![0] } else { ids.collect::<Result<Vec<i64>, Failure>>()? };
    let given = GivenBytes::new(compile_options::device_assignment(&ids, replicas, partitions));
    (args.serialized_bytes, args.serialized_bytes_size) = (given.at, given.count);
    args.serialized_device_assignment = given.owner.cast();
    args.serialized_device_assignment_deleter = Some(delete_bytes);
    Ok(())
}

/// `PJRT_Executable_Name`.
pub fn name(args: &mut ExecutableNameArgs) -> Result<(), Failure> {
    let name = &object(args.executable)?.program.facts.name;
    lend(name, &mut args.executable_name, &mut args.executable_name_size);
    Ok(())
}

/// `PJRT_Executable_NumReplicas`.
pub fn num_replicas(args: &mut ExecutableNumReplicasArgs) -> Result<(), Failure> {
    args.num_replicas = object(args.executable)?.copies[0];
    Ok(())
}

/// `PJRT_Executable_NumPartitions`.
pub fn num_partitions(args: &mut ExecutableNumPartitionsArgs) -> Result<(), Failure> {
    args.num_partitions = object(args.executable)?.copies[1];
    Ok(())
}

/// `PJRT_LoadedExecutable_AddressableDevices`.
pub fn devices(args: &mut LoadedExecutableAddressableDevicesArgs) -> Result<(), Failure> {
    let all = &object(args.executable)?.devices;
    (args.addressable_devices, args.num_addressable_devices) = (all.as_ptr(), all.len());
    Ok(())
}

/// `PJRT_Executable_OptimizedProgram`: the module after optimization as text of StableHLO.
pub fn optimized_program(args: &mut ExecutableOptimizedProgramArgs) -> Result<(), Failure> {
    let message = object(args.executable)?.program.optimized_text()?;
    let out = args.program;
    object(out)?;
    // SAFETY: the caller lends the struct to this call.
    let out = unsafe { &mut *out };
    let format = "mlir";
    (out.format, out.format_size) = (format.as_ptr().cast(), format.len());
    if out.code.is_null() {
        out.code_size = message.len();
        return Ok(());
    }
    if out.code_size < message.len() {
        let told = format!("the module has {} bytes, and there is memory for {}", message.len(), out.code_size);
        return Err(Failure::new(Code::InvalidArgument, told));
    }
    // SAFETY: the caller has as many bytes as it says.
    unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), out.code.cast(), message.len()) };
    out.code_size = message.len();
    Ok(())
}

/// `PJRT_LoadedExecutable_Delete`.
pub fn delete(args: &mut LoadedExecutableDeleteArgs) -> Result<(), Failure> {
    object(args.executable)?.is_deleted.store(true, Ordering::Release);
    Ok(())
}

/// `PJRT_LoadedExecutable_IsDeleted`.
pub fn is_deleted(args: &mut LoadedExecutableIsDeletedArgs) -> Result<(), Failure> {
    args.is_deleted = object(args.executable)?.is_deleted();
    Ok(())
}

/// `PJRT_Executable_NumOutputs`.
pub fn num_outputs(args: &mut ExecutableNumOutputsArgs) -> Result<(), Failure> {
    args.num_outputs = object(args.executable)?.types.len();
    Ok(())
}

/// `PJRT_Executable_SizeOfGeneratedCodeInBytes`.
pub fn code_bytes(args: &mut ExecutableSizeOfGeneratedCodeInBytesArgs) -> Result<(), Failure> {
    args.size_in_bytes = object(args.executable)?.program.code.bytes() as i64;
    Ok(())
}

/// `PJRT_Executable_Fingerprint`.
pub fn fingerprint(args: &mut ExecutableFingerprintArgs) -> Result<(), Failure> {
    let fingerprint = &object(args.executable)?.program.fingerprint;
    lend(fingerprint, &mut args.executable_fingerprint, &mut args.executable_fingerprint_size);
    Ok(())
}

/// `PJRT_LoadedExecutable_Fingerprint`.
pub fn loaded_fingerprint(args: &mut LoadedExecutableFingerprintArgs) -> Result<(), Failure> {
    let fingerprint = &object(args.executable)?.executable.program.fingerprint;
    lend(fingerprint, &mut args.executable_fingerprint, &mut args.executable_fingerprint_size);
    Ok(())
}

/// `PJRT_Executable_GetCostAnalysis`.
pub fn cost_analysis(args: &mut ExecutableGetCostAnalysisArgs) -> Result<(), Failure> {
    object(args.executable)?.costs.lend(&mut args.properties, &mut args.num_properties);
    Ok(())
}

/// `PJRT_Executable_GetCompiledMemoryStats`.
pub fn memory_stats(args: &mut ExecutableGetCompiledMemoryStatsArgs) -> Result<(), Failure> {
    let program = &object(args.executable)?.program;
    args.generated_code_size_in_bytes = program.code.bytes() as i64;
    args.argument_size_in_bytes = bytes_of(&program.facts.args)? as i64;
    args.output_size_in_bytes = bytes_of(&program.facts.results)? as i64;
    args.alias_size_in_bytes = 0;
    args.temp_size_in_bytes = program.code.workspace_bytes() as i64;
    args.host_generated_code_size_in_bytes = 0;
    args.host_argument_size_in_bytes = 0;
    args.host_output_size_in_bytes = 0;
    args.host_alias_size_in_bytes = 0;
    args.host_temp_size_in_bytes = 0;
    args.total_size_in_bytes = args.argument_size_in_bytes + args.output_size_in_bytes + args.temp_size_in_bytes;
    args.peak_memory_in_bytes = args.total_size_in_bytes;
    Ok(())
}

/// `PJRT_Executable_OutputElementTypes`.
pub fn output_types(args: &mut ExecutableOutputElementTypesArgs) -> Result<(), Failure> {
    let types = &object(args.executable)?.types;
    (args.output_types, args.num_output_types) = (types.as_ptr().cast_mut(), types.len());
    Ok(())
}

/// `PJRT_Executable_OutputDimensions`.
pub fn output_dimensions(args: &mut ExecutableOutputDimensionsArgs) -> Result<(), Failure> {
    let executable = object(args.executable)?;
    args.num_outputs = executable.ranks.len();
    (args.dims, args.dim_sizes) = (executable.dims.as_ptr(), executable.ranks.as_ptr());
    Ok(())
}

/// `PJRT_Executable_OutputMemoryKinds`.
pub fn output_memory_kinds(args: &mut ExecutableOutputMemoryKindsArgs) -> Result<(), Failure> {
    let executable = object(args.executable)?;
    args.num_outputs = executable.kinds.len();
    (args.memory_kinds, args.memory_kind_sizes) = (executable.kinds.as_ptr(), executable.kind_bytes.as_ptr());
    Ok(())
}
