//! Structs of the generated C header, and the check of a loaded object's metadata against the face that it was compiled from.
#![expect(unsafe_code, reason = "reads tables of a library; layouts are those of the generated header")]
use super::model::ALIGN;
use super::pool::Executor;
use super::ranks::Communicator;
use crate::diag::{Error, Result};
use crate::kernel::{Face, Program};
use crate::tensor::{Sizes, TensorInfo};
use std::ffi::{c_char, c_int, c_void};

/// `tfaot_tensor_info`.
#[repr(C)]
struct CTensorInfo {
    name: *const c_char,
    field: *const c_char,
    dtype: i32,
    rank: i32,
    dims: *const i64,
    bytes: usize,
}

/// `tfaot_model_info`.
#[repr(C)]
struct CModelInfo {
    abi_version: u32,
    arg_count: u32,
    result_count: u32,
    variable_count: u32,
    name: *const c_char,
    source: *const c_char,
    target: *const c_char,
    args: *const CTensorInfo,
    results: *const CTensorInfo,
    variables: *const CTensorInfo,
    workspace_bytes: usize,
    workspace_align: usize,
    flops: i64,
    run: Option<RunAlone>,
}

/// `tfaot_variable_info`.
#[repr(C)]
struct CVariableInfo {
    tensor: CTensorInfo,
    offset: usize,
}

/// `tfaot_size_info`.
#[repr(C)]
struct CSizeInfo {
    name: *const c_char,
    least: i64,
    most: i64,
    is_result: u32,
    reserved: u32,
}

/// `tfaot_entry_info`.
#[repr(C)]
struct CEntryInfo {
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
    run: Option<RunEntry>,
}

/// `tfaot_module_info`.
#[repr(C)]
struct CModuleInfo {
    abi_version: u32,
    entry_count: u32,
    variable_count: u32,
    reserved: u32,
    name: *const c_char,
    source: *const c_char,
    target: *const c_char,
    entries: *const CEntryInfo,
    variables: *const CVariableInfo,
    state_bytes: usize,
    state_align: usize,
    init: Option<InitAlone>,
}

/// `tfaot_ranks_info`.
#[repr(C)]
struct CRanksInfo {
    abi_version: u32,
    rank_count: u32,
    module: *const CModuleInfo,
    runs: *const RunRank,
}

/// `tfaot_weights_info`.
#[repr(C)]
struct CWeightsInfo {
    abi_version: u32,
    reserved: u32,
    module: *const CModuleInfo,
    weights_bytes: usize,
    weights_align: usize,
    check: Option<Check>,
    runs: *const RunWeights,
    init: Option<InitWeights>,
}

/// `run` of the first version.
type RunAlone = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, *const Executor) -> c_int;
/// `run` of an entry.
type RunEntry =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut i64, *mut c_void, *mut c_void, *const Executor) -> c_int;
/// One of the `runs` of a model for several ranks.
type RunRank = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *mut i64,
    *mut c_void,
    *mut c_void,
    *const Executor,
    *const Communicator,
) -> c_int;
/// One of the `runs` of a model whose weights are the caller's.
type RunWeights = unsafe extern "C" fn(
    *const c_void,
    *const c_void,
    *mut i64,
    *mut c_void,
    *const c_void,
    *mut c_void,
    *const Executor,
) -> c_int;
/// `NAME_init`.
type InitAlone = unsafe extern "C" fn(*mut c_void);
/// The same with weights.
type InitWeights = unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;
/// `NAME_weights_check`.
pub type Check = unsafe extern "C" fn(*const c_void, usize) -> c_int;

/// What fills the state.
#[derive(Clone, Copy)]
pub enum Init {
    /// With numbers of the object.
    Alone(InitAlone),
    /// With those of the weights.
    Weights(InitWeights),
}

/// A function of the library.
#[derive(Clone, Copy)]
pub enum Run {
    /// Of a model that has one and no variables.
    Alone(RunAlone),
    /// Of any other that one rank runs.
    Entry(RunEntry),
    /// Of one whose weights are the caller's.
    Weights(RunWeights),
    /// Of one that several ranks run.
    Rank(RunRank),
}

/// What can be called.
pub struct Calls {
    /// In the order of the face.
    pub runs: Vec<Run>,
    /// What fills the state.
    pub init: Option<Init>,
    /// What looks at weights, where they are the caller's.
    pub check: Option<Check>,
}

fn wrong<T>(what: &str) -> Result<T> {
    Err(Error::internal("load", format!("the object's metadata have another {what}")))
}

/// The functions of a library. Errors: internal, where its metadata do not say what `face` says.
pub fn read(library: &libloading::Library, face: &Face) -> Result<Calls> {
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
    // SAFETY: both structs begin with the version.
    let version = unsafe { *info.cast::<u32>() };
    match (&face.entries[..], version) {
        ([only], 1) if !face.is_module() => alone(info.cast(), &only.program),
        (_, 2) if face.is_module() && face.ranks.is_none() && face.file.is_none() => {
            module(info.cast(), face, Runs::Entries)
        }
        (_, 3) if face.file.is_some() => weights(info.cast(), face),
        (_, 4) if face.ranks.is_some() => ranks(info.cast(), face),
        _ => wrong("version"),
    }
}

fn alone(info: *const CModelInfo, program: &Program) -> Result<Calls> {
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header says of version 1.
    let info = unsafe { &*info };
    tensors(info.args, info.arg_count, &program.args)?;
    tensors(info.results, info.result_count, &program.results)?;
    workspace(info.workspace_bytes, info.workspace_align, program)?;
    let Some(run) = info.run else { return wrong("function") };
    Ok(Calls { runs: vec![Run::Alone(run)], init: None, check: None })
}

fn ranks(info: *const CRanksInfo, face: &Face) -> Result<Calls> {
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header says of version 4.
    let info = unsafe { &*info };
    if Some(info.rank_count) != face.ranks {
        return wrong("number of ranks");
    }
    module(info.module, face, Runs::Ranks(info.runs))
}

fn weights(info: *const CWeightsInfo, face: &Face) -> Result<Calls> {
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header says of version 3.
    let info = unsafe { &*info };
    let bytes = face.file.as_ref().map(|file| file.bytes());
    if Some(info.weights_bytes as u64) != bytes || info.weights_align > ALIGN {
        return wrong("size of the weights");
    }
    let (Some(check), has_state) = (info.check, !face.state.is_empty()) else { return wrong("test of weights") };
    let calls = module(info.module, face, Runs::Weights(info.runs))?;
    match info.init {
        Some(init) if has_state => Ok(Calls { init: Some(Init::Weights(init)), check: Some(check), ..calls }),
        None if !has_state => Ok(Calls { check: Some(check), ..calls }),
        _ => wrong("start"),
    }
}

/// Where the functions of a module are.
#[derive(Clone, Copy)]
enum Runs {
    /// In its entries.
    Entries,
    /// In a table of functions that take weights.
    Weights(*const RunWeights),
    /// In a table of functions that reach other ranks.
    Ranks(*const RunRank),
}

fn module(info: *const CModuleInfo, face: &Face, of: Runs) -> Result<Calls> {
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header says of version 2.
    let info = unsafe { &*info };
    if info.entry_count as usize != face.entries.len() || info.variable_count as usize != face.state.len() {
        return wrong("number of functions or variables");
    }
    if info.state_bytes as u64 != face.state_bytes() || info.state_align > ALIGN {
        return wrong("state");
    }
    for (i, v) in face.state.iter().enumerate() {
        // SAFETY: the library holds `variable_count` of these behind the pointer.
        let has = unsafe { &*info.variables.add(i) };
        if has.offset as u64 != v.offset || has.tensor.bytes as u64 != v.info.bytes() {
            return wrong("place of a variable");
        }
    }
    let mut runs = Vec::new();
    for (i, wanted) in face.entries.iter().enumerate() {
        // SAFETY: the library holds `entry_count` of these behind the pointer.
        let has = unsafe { &*info.entries.add(i) };
        tensors(has.args, has.arg_count, &wanted.program.args)?;
        tensors(has.results, has.result_count, &wanted.program.results)?;
        workspace(has.workspace_bytes, has.workspace_align, &wanted.program)?;
        if (has.changes_state != 0) != wanted.program.changes_state() {
            return wrong("use of the state");
        }
        sizes(has, &wanted.sizes)?;
        runs.push(match (of, has.run) {
            // SAFETY: the library holds a function for each entry behind the pointer.
            (Runs::Ranks(all), None) => Run::Rank(unsafe { *all.add(i) }),
            // SAFETY: as before.
            (Runs::Weights(all), None) => Run::Weights(unsafe { *all.add(i) }),
            (Runs::Entries, Some(run)) => Run::Entry(run),
            _ => return wrong("function"),
        });
    }
    let is_started = info.init.is_some() || matches!(of, Runs::Weights(_));
    if is_started == face.state.is_empty() && !matches!(of, Runs::Weights(_)) {
        return wrong("start");
    }
    Ok(Calls { runs, init: info.init.map(Init::Alone), check: None })
}

fn sizes(has: &CEntryInfo, wanted: &Sizes) -> Result<()> {
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
