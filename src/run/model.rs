//! A compiled object loaded into this process, called through `NAME_info()` like any other program does.
#![expect(unsafe_code, reason = "calls C functions of a loaded library")]
use super::abi::{self, LoadedFunctions};
use super::guard_pages::{self, GuardSide, GuardedBuffer};
use super::library::load;
use super::pool::{Executor, ThreadPool};
use super::ranks::Communicator;
use super::sizes;
use crate::bounded;
use crate::codegen::{E_BOUND, E_CHECK, E_CPU, E_RANKS, E_SIZE, Object};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::kernel::{EntryPoint, ModelInterface};
use crate::target::Target;
use crate::tensor::{Tensor, TensorInfo};
use std::ffi::{c_int, c_void};

/// A compiled object that is loaded into this process.
pub struct Model {
    pub(super) face: ModelInterface,
    pub(super) calls: LoadedFunctions,
    pub(super) pool: Option<ThreadPool>,
    /// Weights that the caller supplies; none if the object contains them.
    pub(super) weights: Option<GuardedBuffer>,
    // dropped last: `calls` points into it
    _library: libloading::Library,
}

/// Pointers to the memory of one call.
pub(super) struct CallMemory {
    pub args: Vec<*const u8>,
    pub results: Vec<*mut u8>,
    pub sizes: *mut i64,
    pub state: *mut u8,
    pub workspace: *mut u8,
}

/// A function of the model and the rank that calls it.
#[derive(Clone, Copy)]
pub(super) struct RankFunction {
    /// Index of the function in the model.
    pub function: usize,
    /// Connection to the other ranks; null if there is one rank.
    pub communicator: *const Communicator,
}

impl RankFunction {
    /// A function of a model of one rank.
    pub fn single_rank(function: usize) -> RankFunction {
        RankFunction { function, communicator: std::ptr::null() }
    }
}

/// Alignment in bytes of memory for calls: that of the widest vector.
pub(super) const ALIGN: usize = 64;

impl Model {
    /// Links the object of `face` and loads it; calls run on `threads` threads.
    ///
    /// # Errors
    /// `Code::SeveralDevices` for code of several ranks, `Code::NoBody` if it calls user-defined functions, `Code::NoLinker`,
    /// `Code::TooLarge`; an internal error if the object's metadata contradict `face`.
    pub fn load(face: &ModelInterface, object: &Object, target: &Target, threads: usize) -> Result<Model> {
        if let Some(count) = face.ranks {
            let told = format!("the code is for {count} ranks, and one was to run it");
            return Err(Error::user(Code::SeveralDevices, told));
        }
        Model::link(face, object, target, threads)
    }

    pub(super) fn link(face: &ModelInterface, object: &Object, target: &Target, threads: usize) -> Result<Model> {
        if let Some(callee) = face.calls.first() {
            let told =
                format!("the code calls `{}`, a function in C that is not here, and can't be run here", callee.name);
            let help = "compile it, and link the object with the file that defines the function";
            return Err(Diagnostic::new(Code::NoBody, told).help(help).into());
        }
        let library = load(&[&object.content], &face.name, target)?;
        let calls = abi::read(&library, face)?;
        let pool = if threads > 1 { Some(ThreadPool::new(threads)?) } else { None };
        Ok(Model { face: face.clone(), calls, pool, weights: None, _library: library })
    }

    /// The initial values of the variables in the layout of the object; empty without variables.
    ///
    /// A memory fault ends the process as in [`Model::call_guarded`].
    ///
    /// # Errors
    /// `Code::TooLarge`; an internal error if the object returns an error code.
    pub fn initial_state(&self) -> Result<Vec<u8>> {
        let bytes = self.face.state_bytes() as usize;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        report_faults();
        let mut block = allocate_guarded(
            &format!("the state ({})", edge_text(GuardSide::End)),
            bytes,
            self.state_align(),
            GuardSide::End,
        )?;
        // a pattern that exposes bytes which are not initialized
        block.fill(0xff);
        self.fill_state(block.as_ptr())?;
        Ok(block.bytes().to_vec())
    }

    /// Decodes the values of the variables from a state.
    pub fn variables(&self, state: &[u8]) -> Vec<Tensor> {
        let value = |v: &crate::kernel::VariableSlot| {
            let bytes = state[v.offset as usize..v.end_offset() as usize].to_vec();
            Tensor::new(v.info.dtype, v.info.dims.clone(), bytes)
        };
        self.face.state.iter().map(value).collect()
    }

    pub(super) fn fill_state(&self, state: *mut u8) -> Result<()> {
        let init = self.calls.init.ok_or_else(|| Error::internal("load", "the model has no start"))?;
        // SAFETY: `abi::read` made sure that it fills as many bytes as the state of the face has, which are at `state`.
        let code = unsafe { init(state.cast(), self.weights()) };
        if code == 0 { Ok(()) } else { Err(Error::internal("load", format!("the start returned {code}"))) }
    }

    /// Pointer to the weights that functions take; null if they take none.
    fn weights(&self) -> *const c_void {
        self.weights.as_ref().map_or(std::ptr::null(), |block| block.as_ptr().cast_const().cast())
    }

    fn state_align(&self) -> usize {
        self.face.state.iter().map(|v| v.info.dtype.bytes()).max().unwrap_or(1)
    }

    /// Calls a function twice with every array between guard pages, and returns the results of the second call.
    /// In the first call arrays end at a guard page, as far as their alignment allows; in the second they begin at one. Arguments,
    /// results and the state have only the alignment of their types, and the workspace that of a cache line, as the header
    /// promises. The state is read-only for a function that does not change it. Both calls start with `state`, which the second
    /// one updates.
    ///
    ///
    /// A memory fault ends the process with status 1 and a message that names the array.
    ///
    /// `Code::BadInputs` for sizes beyond their bounds and for failed checks; `Code::BadOption` if the code is for other
    /// processors; an internal error for any other code that the object returns.
    pub fn call_guarded(&self, function: usize, args: &[Tensor], state: &mut [u8]) -> Result<Vec<Tensor>> {
        self.call_at_both_edges(RankFunction::single_rank(function), args, state)
    }

    /// Calls the only function of the model as one of several ranks, else like [`Model::call_guarded`].
    pub(super) fn call_as_rank(
        &self,
        args: &[Tensor],
        state: &mut [u8],
        communicator: &Communicator,
    ) -> Result<Vec<Tensor>> {
        self.call_at_both_edges(RankFunction { function: 0, communicator }, args, state)
    }

    fn call_at_both_edges(&self, callee: RankFunction, args: &[Tensor], state: &mut [u8]) -> Result<Vec<Tensor>> {
        report_faults();
        self.call_at_edge(callee, args, &mut state.to_vec(), GuardSide::End)?;
        self.call_at_edge(callee, args, state, GuardSide::Begin)
    }

    fn call_at_edge(
        &self,
        callee: RankFunction,
        args: &[Tensor],
        state: &mut [u8],
        edge: GuardSide,
    ) -> Result<Vec<Tensor>> {
        let how = edge_text(edge);
        let make =
            |what: &str, bytes: usize, align: usize| allocate_guarded(&format!("{what} ({how})"), bytes, align, edge);
        let entry = self.face.entries.get(callee.function).ok_or_else(no_function_error)?;
        let program = &entry.program;
        let numbers = size_values(entry, args)?;
        let mut inputs = Vec::new();
        for (i, (info, arg)) in program.args.iter().zip(args).enumerate() {
            let mut input = make(&format!("argument {i} `{}`", info.name), arg.bytes.len(), info.dtype.bytes())?;
            input.copy_from(&arg.bytes);
            input.read_only().map_err(no_memory_error)?;
            inputs.push(input);
        }
        let outputs = result_capacities(entry, &numbers)
            .into_iter()
            .enumerate()
            .map(|(i, info)| make(&format!("result {i} `{}`", info.name), info.bytes() as usize, info.dtype.bytes()));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let workspace = make("the workspace", program.workspace_bytes as usize, ALIGN)?;
        let mut block = make("the state", state.len(), self.state_align())?;
        block.copy_from(state);
        if !program.changes_state() {
            block.read_only().map_err(no_memory_error)?;
        }
        let mut sizes = make("the sizes", 8 * numbers.len(), align_of::<i64>())?;
        sizes.copy_from(bytemuck::cast_slice(&numbers));
        let memory = CallMemory {
            args: inputs.iter().map(|b| b.as_ptr().cast_const()).collect(),
            results: outputs.iter().map(GuardedBuffer::as_ptr).collect(),
            sizes: sizes.as_ptr().cast(),
            state: block.as_ptr(),
            workspace: workspace.as_ptr(),
        };
        self.call(callee, &memory)?;
        state.copy_from_slice(block.bytes());
        Ok(read_results(entry, bytemuck::cast_slice(sizes.bytes()), outputs.iter().map(GuardedBuffer::bytes)))
    }

    /// Calls a function once, on the thread pool if there is one, else on this thread.
    pub(super) fn call(&self, callee: RankFunction, memory: &CallMemory) -> Result<()> {
        let executor = self.pool.as_ref().map(ThreadPool::executor);
        let executor = executor.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        self.call_on_executor(callee, memory, executor)
    }

    /// Calls a function once on an executor; null stands for this thread.
    pub(super) fn call_on_executor(
        &self,
        callee: RankFunction,
        memory: &CallMemory,
        executor: *const Executor,
    ) -> Result<()> {
        let RankFunction { function, communicator } = callee;
        let run = *self.calls.runs.get(function).ok_or_else(no_function_error)?;
        let (args, results) = (memory.args.as_ptr().cast(), memory.results.as_ptr().cast());
        // SAFETY: `abi::read` made sure that the function takes this many pointers to memory of these sizes; the caller's
        // buffers, the pool and the library live until it returns.
        let code = unsafe {
            let (state, workspace) = (memory.state.cast(), memory.workspace.cast());
            run(args, results, memory.sizes, state, self.weights(), workspace, executor, communicator)
        };
        check_return_code(code, || {
            let all = self.face.entries.get(function).map_or(&[][..], |entry| &entry.sizes.all);
            // SAFETY: the memory of a call has a number for each size.
            let fails = |i: usize| unsafe { *memory.sizes.add(i) } != 0;
            let failed = all.iter().enumerate().find(|(i, size)| size.is_check && fails(*i));
            failed.map_or("a check failed", |(_, size)| &size.name).to_string()
        })
    }
}

/// The error of a code that a compiled function returned; `failed_check` names the run-time check that failed.
pub(super) fn check_return_code(code: c_int, failed_check: impl FnOnce() -> String) -> Result<()> {
    match code {
        0 => Ok(()),
        code if code == E_CPU as c_int => {
            let told = "this machine lacks instructions that the code is for";
            Err(Diagnostic::new(Code::BadOption, told).help("without --cpu and --features it is for this one").into())
        }
        code if code == E_BOUND as c_int => {
            let told = "the data ask for a result that is larger than its bound, or a size is no multiple of what it has to be";
            Err(Diagnostic::new(Code::BadInputs, told)
                .help("a larger bound, where the size is declared; the header lists the sizes and what they may be")
                .into())
        }
        code if code == E_CHECK as c_int => Err(bounded::failed_check_error(&failed_check())),
        code if code == E_RANKS as c_int => Err(Error::user(Code::RankFailed, "another rank failed or did not come")),
        code if code == E_SIZE as c_int => Err(Error::internal("run", "sizes within their bounds are refused")),
        code => Err(Error::internal("run", format!("the compiled code returned {code}"))),
    }
}

/// Values of a function's sizes at the beginning of a call: those of the arguments, and 0 for sizes that the call returns.
pub(super) fn size_values(entry: &EntryPoint, args: &[Tensor]) -> Result<Vec<i64>> {
    let given = sizes::sizes_of_arguments(&entry.sizes, &entry.program.args, args)?;
    let mut numbers: Vec<i64> = given.into_iter().map(|n| n as i64).collect();
    numbers.resize(entry.sizes.all.len(), 0);
    Ok(numbers)
}

/// Types of the results with the capacity that a call may need: the caller's sizes, and the bounds of data-dependent ones.
pub(super) fn result_capacities(entry: &EntryPoint, numbers: &[i64]) -> Vec<TensorInfo> {
    let given: Vec<u64> = numbers[..entry.sizes.caller_size_count()].iter().map(|&n| n as u64).collect();
    sizes::actual_types(&entry.program.results, &entry.sizes.results, &given)
}

/// Copies the results of a call out of `memory`, in the sizes that the call returned.
pub(super) fn read_results<'a>(
    entry: &EntryPoint,
    numbers: &[i64],
    memory: impl Iterator<Item = &'a [u8]>,
) -> Vec<Tensor> {
    let values: Vec<u64> = numbers.iter().map(|&n| n as u64).collect();
    let infos = sizes::actual_types(&entry.program.results, &entry.sizes.results, &values);
    let one = |(info, bytes): (TensorInfo, &[u8])| {
        let bytes = bytes[..info.bytes() as usize].to_vec();
        Tensor::new(info.dtype, info.dims, bytes)
    };
    infos.into_iter().zip(memory).map(one).collect()
}

pub(super) fn report_faults() {
    guard_pages::report_faults(&format!("error[{}]: run: ", Code::Internal.id()));
}

pub(super) fn edge_text(edge: GuardSide) -> &'static str {
    match edge {
        GuardSide::End => "passed so that it ends at the last byte of a page",
        GuardSide::Begin => "passed so that it begins at the first byte of a page",
    }
}

pub(super) fn allocate_guarded(label: &str, bytes: usize, align: usize, edge: GuardSide) -> Result<GuardedBuffer> {
    GuardedBuffer::new(bytes, align, edge, label.to_string()).map_err(no_memory_error)
}

pub(super) fn no_memory_error(e: std::io::Error) -> Error {
    Error::user(Code::TooLarge, format!("an array could not be allocated: {e}"))
}

pub(super) fn no_function_error() -> Error {
    Error::internal("load", "the model has no such function")
}
