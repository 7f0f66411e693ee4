//! Structs of the generated C header, and the check that a loaded object's metadata agree with its interface as compiled.
#![expect(unsafe_code, reason = "reads tables of a library; layouts are those of the generated header")]
use super::model::ALIGN;
use super::pool::Executor;
use super::ranks::Communicator;
use crate::codegen::ABI_VERSION;
use crate::diag::{Error, Result};
use crate::kernel::{EntryPoint, ModelInterface, Program};
use crate::tensor::{Sizes, TensorInfo};
use std::ffi::{c_char, c_int, c_void};

/// The C struct `tfaot_tensor_info`.
#[repr(C)]
struct CTensorInfo {
    name: *const c_char,
    field: *const c_char,
    dtype: i32,
    rank: i32,
    dims: *const i64,
    bytes: usize,
}

/// The C struct `tfaot_variable_info`.
#[repr(C)]
struct CVariableInfo {
    tensor: CTensorInfo,
    offset: usize,
}

/// The C struct `tfaot_size_info`.
#[repr(C)]
struct CSizeInfo {
    name: *const c_char,
    least: i64,
    most: i64,
    is_result: u32,
    reserved: u32,
}

/// The C struct `tfaot_function_info`.
#[repr(C)]
struct CFunctionInfo {
    name: *const c_char,
    arg_count: u32,
    result_count: u32,
    size_count: u32,
    changes_state: u32,
    args: *const CTensorInfo,
    results: *const CTensorInfo,
    sizes: *const CSizeInfo,
    axes: *const i32,
    workspace_bytes: usize,
    workspace_align: usize,
    flops: i64,
    run: Option<RunFn>,
}

/// The C struct `tfaot_model_info`.
#[repr(C)]
struct CModelInfo {
    abi_version: u32,
    function_count: u32,
    variable_count: u32,
    rank_count: u32,
    name: *const c_char,
    source: *const c_char,
    target: *const c_char,
    functions: *const CFunctionInfo,
    variables: *const CVariableInfo,
    state_bytes: usize,
    state_align: usize,
    weights_bytes: usize,
    weights_align: usize,
    init: Option<InitFn>,
    weights_check: Option<WeightsCheckFn>,
}

/// The entry point of a function: arguments, results, sizes, state, weights, workspace, executor and communicator.
pub type RunFn = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *mut i64,
    *mut c_void,
    *const c_void,
    *mut c_void,
    *const Executor,
    *const Communicator,
) -> c_int;
/// The initializer of a model's state: state and weights.
pub type InitFn = unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;
/// The check of a model's weights: weights and their size in bytes.
pub type WeightsCheckFn = unsafe extern "C" fn(*const c_void, usize) -> c_int;

/// Entry points of a loaded object.
pub struct LoadedFunctions {
    /// The model's functions, in the order of [`ModelInterface::entries`].
    pub runs: Vec<RunFn>,
    /// Initializer of the state; none without variables.
    pub init: Option<InitFn>,
    /// Check of the weights; none if they are in the object.
    pub check: Option<WeightsCheckFn>,
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Error::internal("load", format!("the object's metadata have another {what}")))
}

/// Looks up the entry points of a library. Errors: internal, if its metadata differ from `face`.
pub fn read(library: &libloading::Library, face: &ModelInterface) -> Result<LoadedFunctions> {
    // SAFETY: the object defines this symbol, which takes nothing and returns a pointer; the generated header declares it.
    let info = unsafe {
        let symbol = format!("{}_info", face.name);
        let info: libloading::Symbol<unsafe extern "C" fn() -> *const c_void> =
            library.get(symbol.as_bytes()).map_err(|e| Error::internal("load", e.to_string()))?;
        info()
    };
    if info.is_null() {
        return wrong("address than any");
    }
    // SAFETY: every version of the struct begins with the version.
    if unsafe { *info.cast::<u32>() } != ABI_VERSION {
        return wrong("version");
    }
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header of this version says.
    let info = unsafe { &*info.cast::<CModelInfo>() };
    state(info, face)?;
    weights(info, face)?;
    if info.rank_count != face.ranks.unwrap_or(0) {
        return wrong("number of ranks");
    }
    if info.function_count as usize != face.entries.len() {
        return wrong("number of functions");
    }
    let mut runs = Vec::new();
    for (i, wanted) in face.entries.iter().enumerate() {
        // SAFETY: the library holds `function_count` of these behind the pointer.
        runs.push(function(unsafe { &*info.functions.add(i) }, wanted)?);
    }
    Ok(LoadedFunctions { runs, init: info.init, check: info.weights_check })
}

/// The only function of a loaded object, the bytes of its workspace, and the number of ranks that run it together; 0 if it runs alone.
///
/// # Safety
/// `info` is the function `NAME_info` of an object that tfaot made.
///
/// # Errors
/// Internal, for metadata of another version, several functions, variables, sizes or weights in a file.
pub unsafe fn only_function(info: *const c_void) -> Result<(RunFn, usize, u32)> {
    // SAFETY: the caller says that this is a function without arguments, whose result begins with the version.
    let info = unsafe { std::mem::transmute::<*const c_void, unsafe extern "C" fn() -> *const c_void>(info)() };
    // SAFETY: as above.
    if info.is_null() || unsafe { *info.cast::<u32>() } != ABI_VERSION {
        return wrong("version");
    }
    // SAFETY: the pointer is to a constant that is laid out as the header of this version says.
    let info = unsafe { &*info.cast::<CModelInfo>() };
    if info.function_count != 1 || info.variable_count != 0 || info.weights_bytes != 0 {
        return wrong("number of functions, variables or weights");
    }
    // SAFETY: the object holds one of these behind the pointer.
    let function = unsafe { &*info.functions };
    if function.size_count != 0 || function.workspace_align > ALIGN {
        return wrong("number of sizes");
    }
    let ranks = info.rank_count;
    function.run.map_or_else(|| wrong("function"), |run| Ok((run, function.workspace_bytes, ranks)))
}

fn state(info: &CModelInfo, face: &ModelInterface) -> Result<()> {
    if info.state_bytes as u64 != face.state_bytes() || info.state_align > ALIGN {
        return wrong("state");
    }
    if info.init.is_none() != face.state.is_empty() {
        return wrong("initial state");
    }
    if info.variable_count as usize != face.state.len() {
        return wrong("number of variables");
    }
    for (i, v) in face.state.iter().enumerate() {
        // SAFETY: the library holds `variable_count` of these behind the pointer.
        let has = unsafe { &*info.variables.add(i) };
        if has.offset as u64 != v.offset || has.tensor.bytes as u64 != v.info.bytes() {
            return wrong("place of a variable");
        }
    }
    Ok(())
}

fn weights(info: &CModelInfo, face: &ModelInterface) -> Result<()> {
    let bytes = face.file.as_ref().map_or(0, |file| file.file_bytes());
    if info.weights_bytes as u64 != bytes || info.weights_align > ALIGN {
        return wrong("size of the weights");
    }
    if info.weights_check.is_some() != face.file.is_some() { wrong("check of the weights") } else { Ok(()) }
}

fn function(has: &CFunctionInfo, wanted: &EntryPoint) -> Result<RunFn> {
    tensors(has.args, has.arg_count, &wanted.program.args)?;
    tensors(has.results, has.result_count, &wanted.program.results)?;
    workspace(has.workspace_bytes, has.workspace_align, &wanted.program)?;
    if (has.changes_state != 0) != wanted.program.changes_state() {
        return wrong("use of the state");
    }
    sizes(has, &wanted.sizes)?;
    has.run.map_or_else(|| wrong("function"), Ok)
}

fn sizes(has: &CFunctionInfo, wanted: &Sizes) -> Result<()> {
    if has.size_count as usize != wanted.all.len() {
        return wrong("number of sizes");
    }
    for (i, size) in wanted.all.iter().enumerate() {
        // SAFETY: the library holds `size_count` of these behind the pointer.
        let one = unsafe { &*has.sizes.add(i) };
        if (one.least as u64, one.most as u64, one.is_result != 0) != (size.least, size.most, size.is_result) {
            return wrong("size");
        }
    }
    let axes = if wanted.is_empty() { Vec::new() } else { [&wanted.args[..], &wanted.results[..]].concat().concat() };
    for (i, axis) in axes.into_iter().enumerate() {
        // SAFETY: the library holds a number for each axis of arguments and results behind the pointer.
        let one = unsafe { *has.axes.add(i) };
        if usize::try_from(one).ok() != axis {
            return wrong("axis");
        }
    }
    Ok(())
}

fn tensors(at: *const CTensorInfo, count: u32, infos: &[TensorInfo]) -> Result<()> {
    if count as usize != infos.len() {
        return wrong("number of tensors");
    }
    for (i, wanted) in infos.iter().enumerate() {
        // SAFETY: the library holds `count` of these behind the pointer.
        let has = unsafe { &*at.add(i) };
        if has.bytes as u64 != wanted.bytes() || has.rank as usize != wanted.dims.len() {
            return wrong("size of a tensor");
        }
    }
    Ok(())
}

fn workspace(bytes: usize, align: usize, program: &Program) -> Result<()> {
    if bytes as u64 != program.workspace_bytes || align > ALIGN { wrong("workspace") } else { Ok(()) }
}
