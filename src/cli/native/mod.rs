//! Compiled code called in this process, through the same `NAME_info()` that any other program uses.
#![expect(unsafe_code, reason = "loads a library and calls C functions; layouts are those of the generated header")]
mod info;
mod ranks;
mod weights;

use super::library::load;
use super::pool::{Executor, Pool, Task};
use super::sizes;
use crate::bounded;
use crate::codegen::{E_BOUND, E_CHECK, E_CPU, E_RANKS, E_SIZE, Object};
use crate::compile::Built;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::kernel::{Entry, Face, KernelId};
use crate::target::Target;
use crate::tensor::{Tensor, TensorInfo};
use crate::util::guarded::{self, Edge, Guarded};
use crate::util::id_vec::{Id, IdVec};
use info::{Calls, Init, Run};
use ranks::Communicator;
pub use ranks::call_ranks;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// Memory of one array, aligned as the widest vector.
struct Buffer {
    at: *mut u8,
    layout: std::alloc::Layout,
}

impl Buffer {
    fn new(bytes: usize, align: usize) -> Result<Buffer> {
        let too_large = || Error::user(Code::TooLarge, format!("{bytes} bytes could not be allocated"));
        let layout = std::alloc::Layout::from_size_align(bytes.max(1), align).map_err(|_| too_large())?;
        // SAFETY: the layout has at least one byte.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() { Err(too_large()) } else { Ok(Buffer { at, layout }) }
    }
    fn bytes(&self) -> &[u8] {
        // SAFETY: `at` points at `layout.size()` bytes that were zeroed when allocated and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at, self.layout.size()) }
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `at` came from `alloc_zeroed` with this layout and is freed once.
        unsafe { std::alloc::dealloc(self.at, self.layout) }
    }
}

/// A loaded model.
pub struct Model {
    face: Face,
    calls: Calls,
    pool: Option<Pool>,
    /// Where the object has none of its own.
    weights: Option<Guarded>,
    // dropped last: `calls` points into it
    _library: libloading::Library,
}

/// A loaded model of one function with the memory of many calls.
pub struct Session {
    model: Model,
    // held for the pointers below
    _arg_buffers: Vec<Buffer>,
    result_buffers: Vec<Buffer>,
    sizes: Vec<i64>,
    memory: Memory,
    _state: Buffer,
    _workspace: Buffer,
}

/// Where a call finds its arrays.
struct Memory {
    args: Vec<*const u8>,
    results: Vec<*mut u8>,
    sizes: *mut i64,
    state: *mut u8,
    workspace: *mut u8,
}

/// The number of a function, and where there are several ranks how it reaches them.
type Called = (usize, *const Communicator);

/// The bytes up to which memory is aligned: the widest vector.
const ALIGN: usize = 64;

impl Model {
    /// Links and loads the object of `face`.
    ///
    /// Errors: `Code::SeveralDevices` where it asks other ranks, `Code::NoBody` where it calls functions of the user, `Code::NoLinker`, `Code::TooLarge`, an internal error when the object's metadata contradict the face.
    pub fn load(face: &Face, object: &Object, target: &Target, threads: usize) -> Result<Model> {
        if let Some(count) = face.ranks {
            let told = format!("the code is for {count} ranks, and one was to run it");
            return Err(Error::user(Code::SeveralDevices, told));
        }
        Model::linked(face, object, target, threads)
    }

    fn linked(face: &Face, object: &Object, target: &Target, threads: usize) -> Result<Model> {
        if let Some(callee) = face.calls.first() {
            let told =
                format!("the code calls `{}`, a function in C that is not here, and can't be run here", callee.name);
            let help = "compile it, and link the object with the file that defines the function";
            return Err(Diagnostic::new(Code::NoBody, told).help(help).into());
        }
        let library = load(&[&object.content], &face.name, target)?;
        let calls = info::read(&library, face)?;
        let pool = if threads > 1 { Some(Pool::new(threads)?) } else { None };
        Ok(Model { face: face.clone(), calls, pool, weights: None, _library: library })
    }

    /// The state that the model starts with; empty without variables.
    ///
    /// A fault ends the process as in [`Model::call_between_pages`].
    pub fn start(&self) -> Result<Vec<u8>> {
        let bytes = self.face.state_bytes() as usize;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        report_faults();
        let mut block = guarded(&format!("the state ({})", passed(Edge::End)), bytes, self.state_align(), Edge::End)?;
        // what is left as it was shows
        block.fill(0xff);
        self.init(block.as_ptr())?;
        Ok(block.bytes().to_vec())
    }

    /// The values of variables in a state.
    pub fn variables(&self, state: &[u8]) -> Vec<Tensor> {
        let value = |v: &crate::kernel::Variable| {
            let bytes = state[v.offset as usize..v.end() as usize].to_vec();
            Tensor::new(v.info.dtype, v.info.dims.clone(), bytes)
        };
        self.face.state.iter().map(value).collect()
    }

    fn init(&self, state: *mut u8) -> Result<()> {
        let init = self.calls.init.ok_or_else(|| Error::internal("load", "the model has no start"))?;
        // SAFETY: `info::read` made sure that it fills as many bytes as the state of the face has, which are at `state`.
        let code = unsafe {
            match init {
                Init::Alone(init) => {
                    init(state.cast());
                    0
                }
                Init::Weights(init) => init(state.cast(), self.weights()),
            }
        };
        if code == 0 { Ok(()) } else { Err(Error::internal("load", format!("the start returned {code}"))) }
    }

    /// The weights that functions take; null where they take none.
    fn weights(&self) -> *const c_void {
        self.weights.as_ref().map_or(std::ptr::null(), |block| block.as_ptr().cast_const().cast())
    }

    /// The alignment that the types of variables need.
    fn state_align(&self) -> usize {
        self.face.state.iter().map(|v| v.info.dtype.bytes()).max().unwrap_or(1)
    }

    /// Calls a function twice, every array between pages that may not be touched: once ending at the page behind it, as far as
    /// its alignment allows, and once beginning behind the page before it. The header promises arguments, results and the state
    /// nothing but the alignment of their types, and the workspace that of a cache line; a function that only reads the state
    /// can't write to it. Both calls start with `state`, which then has what the second left; its results are given.
    ///
    /// A fault ends the process with a message that names the array, and status 1. Errors: as [`Session::call`].
    pub fn call_between_pages(&self, function: usize, args: &[Tensor], state: &mut [u8]) -> Result<Vec<Tensor>> {
        self.guarded_calls((function, std::ptr::null()), args, state)
    }

    /// The same of the only function as one of several ranks.
    fn call_as_rank(&self, args: &[Tensor], state: &mut [u8], communicator: &Communicator) -> Result<Vec<Tensor>> {
        self.guarded_calls((0, communicator), args, state)
    }

    fn guarded_calls(&self, called: Called, args: &[Tensor], state: &mut [u8]) -> Result<Vec<Tensor>> {
        report_faults();
        self.guarded_call(called, args, &mut state.to_vec(), Edge::End)?;
        self.guarded_call(called, args, state, Edge::Begin)
    }

    fn guarded_call(&self, called: Called, args: &[Tensor], state: &mut [u8], edge: Edge) -> Result<Vec<Tensor>> {
        let (function, communicator) = called;
        let how = passed(edge);
        let make = |what: &str, bytes: usize, align: usize| guarded(&format!("{what} ({how})"), bytes, align, edge);
        let entry = self.face.entries.get(function).ok_or_else(no_function)?;
        let program = &entry.program;
        let numbers = numbers(entry, args)?;
        let mut inputs = Vec::new();
        for (i, (info, arg)) in program.args.iter().zip(args).enumerate() {
            let mut input = make(&format!("argument {i} `{}`", info.name), arg.bytes.len(), info.dtype.bytes())?;
            input.copy_from(&arg.bytes);
            input.read_only().map_err(no_memory)?;
            inputs.push(input);
        }
        let outputs = rooms(entry, &numbers)
            .into_iter()
            .enumerate()
            .map(|(i, info)| make(&format!("result {i} `{}`", info.name), info.bytes() as usize, info.dtype.bytes()));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let workspace = make("the workspace", program.workspace_bytes as usize, ALIGN)?;
        let mut block = make("the state", state.len(), self.state_align())?;
        block.copy_from(state);
        if !program.changes_state() {
            block.read_only().map_err(no_memory)?;
        }
        let mut sizes = make("the sizes", 8 * numbers.len(), align_of::<i64>())?;
        sizes.copy_from(bytemuck::cast_slice(&numbers));
        let memory = Memory {
            args: inputs.iter().map(|b| b.as_ptr().cast_const()).collect(),
            results: outputs.iter().map(Guarded::as_ptr).collect(),
            sizes: sizes.as_ptr().cast(),
            state: block.as_ptr(),
            workspace: workspace.as_ptr(),
        };
        self.call(function, &memory, communicator)?;
        state.copy_from_slice(block.bytes());
        Ok(results(entry, bytemuck::cast_slice(sizes.bytes()), outputs.iter().map(Guarded::bytes)))
    }

    /// One call by the pool, if there is one.
    fn call(&self, function: usize, memory: &Memory, communicator: *const Communicator) -> Result<()> {
        let executor = self.pool.as_ref().map(Pool::executor);
        let executor = executor.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        self.call_by((function, communicator), memory, executor)
    }

    fn call_by(&self, called: Called, memory: &Memory, executor: *const Executor) -> Result<()> {
        let (function, communicator) = called;
        let run = *self.calls.runs.get(function).ok_or_else(no_function)?;
        let (args, results) = (memory.args.as_ptr().cast(), memory.results.as_ptr().cast());
        // SAFETY: `info::read` made sure that the function takes this many pointers to memory of these sizes; the caller's
        // buffers, the pool and the library live until it returns.
        let code = unsafe {
            match run {
                Run::Alone(run) => run(args, results, memory.workspace.cast(), executor),
                Run::Entry(run) => {
                    run(args, results, memory.sizes, memory.state.cast(), memory.workspace.cast(), executor)
                }
                Run::Weights(run) => {
                    let (state, workspace) = (memory.state.cast(), memory.workspace.cast());
                    run(args, results, memory.sizes, state, self.weights(), workspace, executor)
                }
                Run::Rank(run) => {
                    let (state, workspace) = (memory.state.cast(), memory.workspace.cast());
                    run(args, results, memory.sizes, state, workspace, executor, communicator)
                }
            }
        };
        match code {
            0 => Ok(()),
            code if code == E_CPU as c_int => {
                let told = "this machine lacks instructions that the code is for";
                Err(Diagnostic::new(Code::BadOption, told)
                    .help("without --cpu and --features it is for this one")
                    .into())
            }
            code if code == E_BOUND as c_int => {
                let told = "the data ask for a result that is larger than its bound, or a size is no multiple of what it has to be";
                Err(Diagnostic::new(Code::BadInputs, told)
                    .help("a larger bound, where the size is declared; the header lists the sizes and what they may be")
                    .into())
            }
            code if code == E_CHECK as c_int => {
                let all = self.face.entries.get(function).map_or(&[][..], |entry| &entry.sizes.all);
                // SAFETY: the memory of a call has a number for each size.
                let fails = |i: usize| unsafe { *memory.sizes.add(i) } != 0;
                let failed = all.iter().enumerate().find(|(i, size)| size.is_check && fails(*i));
                Err(bounded::failed_check(failed.map_or("a check failed", |(_, size)| &size.name)))
            }
            code if code == E_RANKS as c_int => {
                Err(Error::user(Code::RankFailed, "another rank failed or did not come"))
            }
            code if code == E_SIZE as c_int => Err(Error::internal("run", "sizes within their bounds are refused")),
            code => Err(Error::internal("run", format!("the compiled code returned {code}"))),
        }
    }
}

impl Session {
    /// `Pool::handover`; `None` on one thread.
    pub fn handover(&self) -> Option<Duration> {
        self.model.pool.as_ref().map(Pool::handover)
    }

    /// Links and loads `built`, and gives it `args`, which have the types of `built.program.args`.
    ///
    /// Errors: as [`Model::load`].
    pub fn new(built: &Built, target: &Target, args: &[Tensor], threads: usize) -> Result<Session> {
        Session::of(Model::load(&Face::of(&built.program), &built.object, target, threads)?, args)
    }

    /// The memory of calls with `args`. Errors: `Code::TooLarge`.
    pub fn of(model: Model, args: &[Tensor]) -> Result<Session> {
        let entry = model.face.entries.first().ok_or_else(no_function)?;
        let program = &entry.program;
        let mut sizes = numbers(entry, args)?;
        let arg_buffers = args.iter().map(filled).collect::<Result<Vec<_>>>()?;
        let result_buffers = rooms(entry, &sizes).into_iter().map(|r| Buffer::new(r.bytes() as usize, ALIGN));
        let result_buffers = result_buffers.collect::<Result<Vec<_>>>()?;
        let workspace = Buffer::new(program.workspace_bytes as usize, ALIGN)?;
        let state = Buffer::new(model.face.state_bytes() as usize, ALIGN)?;
        if !model.face.state.is_empty() {
            model.init(state.at)?;
        }
        let memory = Memory {
            args: arg_buffers.iter().map(|b| b.at.cast_const()).collect(),
            results: result_buffers.iter().map(|b| b.at).collect(),
            sizes: sizes.as_mut_ptr(),
            state: state.at,
            workspace: workspace.at,
        };
        let (_arg_buffers, _state, _workspace) = (arg_buffers, state, workspace);
        Ok(Session { model, _arg_buffers, result_buffers, sizes, memory, _state, _workspace })
    }

    /// One call. Errors: `Code::BadOption` where the code is for other machines; an internal error with another code that the
    /// model returned.
    pub fn call(&mut self) -> Result<()> {
        self.model.call(0, &self.memory, std::ptr::null())
    }

    /// One call of an object made with [`crate::codegen::Launches::Observed`], of whose kernels those that are `shared` run on
    /// all threads; adds up the launches of each kernel in `spent`.
    ///
    /// Errors: an internal error where the object returns a code.
    pub fn call_observed(&mut self, shared: &IdVec<KernelId, bool>, spent: &mut [Spent]) -> Result<()> {
        let mut observer = Observer { pool: self.model.pool.as_ref(), shared, spent };
        let threads = self.model.pool.as_ref().map_or(1, Pool::threads);
        let executor = Executor::new(std::ptr::from_mut(&mut observer).cast(), threads, observed_for);
        self.model.call_by((0, std::ptr::null()), &self.memory, &executor)
    }

    /// The results of the last call.
    pub fn results(&self) -> Vec<Tensor> {
        let entry = self.model.face.entries.first();
        entry.map_or_else(Vec::new, |e| results(e, &self.sizes, self.result_buffers.iter().map(Buffer::bytes)))
    }
}

/// The sizes of a call with these arguments, as the function takes them: 0 where the call says them.
fn numbers(entry: &Entry, args: &[Tensor]) -> Result<Vec<i64>> {
    let given = sizes::of_call(&entry.sizes, &entry.program.args, args)?;
    let mut numbers: Vec<i64> = given.into_iter().map(|n| n as i64).collect();
    numbers.resize(entry.sizes.all.len(), 0);
    Ok(numbers)
}

/// The results with room for what a call may give: as large as the sizes that the caller says, and the bounds of the others.
fn rooms(entry: &Entry, numbers: &[i64]) -> Vec<TensorInfo> {
    let given: Vec<u64> = numbers[..entry.sizes.given()].iter().map(|&n| n as u64).collect();
    sizes::actual(&entry.program.results, &entry.sizes.results, &given)
}

/// The results that a call left, as large as the sizes then are.
fn results<'a>(entry: &Entry, numbers: &[i64], memory: impl Iterator<Item = &'a [u8]>) -> Vec<Tensor> {
    let values: Vec<u64> = numbers.iter().map(|&n| n as u64).collect();
    let infos = sizes::actual(&entry.program.results, &entry.sizes.results, &values);
    let one = |(info, bytes): (TensorInfo, &[u8])| {
        let bytes = bytes[..info.bytes() as usize].to_vec();
        Tensor::new(info.dtype, info.dims, bytes)
    };
    infos.into_iter().zip(memory).map(one).collect()
}

/// The argument in aligned memory of its own.
fn filled(arg: &Tensor) -> Result<Buffer> {
    let mut buffer = Buffer::new(arg.bytes.len(), ALIGN)?;
    buffer.bytes_mut()[..arg.bytes.len()].copy_from_slice(&arg.bytes);
    Ok(buffer)
}

fn report_faults() {
    guarded::report_faults(&format!("error[{}]: run: ", Code::Internal.id()));
}

fn passed(edge: Edge) -> &'static str {
    match edge {
        Edge::End => "passed so that it ends at the last byte of a page",
        Edge::Begin => "passed so that it begins at the first byte of a page",
    }
}

fn guarded(label: &str, bytes: usize, align: usize, edge: Edge) -> Result<Guarded> {
    Guarded::new(bytes, align, edge, label.to_string()).map_err(no_memory)
}

fn no_memory(e: std::io::Error) -> Error {
    Error::user(Code::TooLarge, format!("an array could not be allocated: {e}"))
}

fn no_function() -> Error {
    Error::internal("load", "the model has no such function")
}

/// What a kernel took in one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// The time of all its launches.
    pub time: Duration,
    /// How often it was launched: in a loop more than once.
    pub launches: u64,
}

/// What a profiled call's executor knows.
struct Observer<'a> {
    pool: Option<&'a Pool>,
    shared: &'a IdVec<KernelId, bool>,
    spent: &'a mut [Spent],
}

/// Runs and times one launch, on as many threads as it would have had.
unsafe extern "C" fn observed_for(this: *mut c_void, n: i64, task: Task, data: *mut c_void) {
    // SAFETY: `this` is the observer that `call_observed` lends to one call, which launches one kernel after another.
    let observer = unsafe { &mut *this.cast::<Observer<'_>>() };
    // SAFETY: such an object puts the number of the kernel into the first word of the closure.
    let id = KernelId(unsafe { *data.cast::<u64>() } as u32);
    let start = Instant::now();
    // SAFETY: the task and its data are those of the compiled code, which waits until all ranges are done; its header asks that
    // tasks may run on several threads at once.
    unsafe {
        match observer.pool {
            Some(pool) if observer.shared.get(id) == Some(&true) => pool.share(n, task, data),
            _ => task(data, 0, n),
        }
    }
    if let Some(spent) = observer.spent.get_mut(id.index()) {
        spent.time += start.elapsed();
        spent.launches += 1;
    }
}

#[cfg(test)]
mod tests;
