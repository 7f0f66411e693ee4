//! Repeated calls of one function with memory that is allocated once, for measurements.
#![expect(unsafe_code, reason = "allocates the memory of calls, and is called back by compiled code")]
use super::model::{
    ALIGN, CallMemory, Model, RankFunction, no_function_error, read_results, result_capacities, size_values,
};
use super::pool::{Executor, RangeTask, ThreadPool};
use crate::compile::Built;
use crate::diag::{Code, Error, Result};
use crate::kernel::{KernelId, ModelInterface};
use crate::target::Target;
use crate::tensor::Tensor;
use crate::util::id_vec::{Id, IdVec};
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Memory of one array with the alignment of the widest vector.
struct AlignedBuffer {
    at: *mut u8,
    layout: std::alloc::Layout,
}

impl AlignedBuffer {
    fn new(bytes: usize, align: usize) -> Result<AlignedBuffer> {
        let too_large = || Error::user(Code::TooLarge, format!("{bytes} bytes could not be allocated"));
        let layout = std::alloc::Layout::from_size_align(bytes.max(1), align).map_err(|_| too_large())?;
        // SAFETY: the layout has at least one byte.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() { Err(too_large()) } else { Ok(AlignedBuffer { at, layout }) }
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

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `at` came from `alloc_zeroed` with this layout and is freed once.
        unsafe { std::alloc::dealloc(self.at, self.layout) }
    }
}

/// A loaded model with the memory for repeated calls of its first function.
pub struct Session {
    model: Model,
    // held for the pointers below
    _arg_buffers: Vec<AlignedBuffer>,
    result_buffers: Vec<AlignedBuffer>,
    sizes: Vec<i64>,
    memory: CallMemory,
    _state: AlignedBuffer,
    _workspace: AlignedBuffer,
}

impl Session {
    /// Minimum time to distribute a loop to all threads and wait for them ([`ThreadPool::measure_dispatch_time`]); `None` on one thread.
    pub fn dispatch_time(&self) -> Option<Duration> {
        self.model.pool.as_ref().map(ThreadPool::measure_dispatch_time)
    }

    /// Links `built`, loads it and copies `args`, whose types must be those of `built.program.args`.
    ///
    /// # Errors
    /// Errors of [`Model::load`].
    pub fn load(built: &Built, target: &Target, args: &[Tensor], threads: usize) -> Result<Session> {
        Session::new(Model::load(&ModelInterface::of_program(&built.program), &built.object, target, threads)?, args)
    }

    /// Allocates the memory for calls with `args`.
    ///
    /// # Errors
    /// `Code::TooLarge`; `Code::BadInputs` for sizes beyond their bounds.
    pub fn new(model: Model, args: &[Tensor]) -> Result<Session> {
        let entry = model.face.entries.first().ok_or_else(no_function_error)?;
        let program = &entry.program;
        let mut sizes = size_values(entry, args)?;
        let arg_buffers = args.iter().map(copy_aligned).collect::<Result<Vec<_>>>()?;
        let result_buffers =
            result_capacities(entry, &sizes).into_iter().map(|r| AlignedBuffer::new(r.bytes() as usize, ALIGN));
        let result_buffers = result_buffers.collect::<Result<Vec<_>>>()?;
        let workspace = AlignedBuffer::new(program.workspace_bytes as usize, ALIGN)?;
        let state = AlignedBuffer::new(model.face.state_bytes() as usize, ALIGN)?;
        if !model.face.state.is_empty() {
            model.fill_state(state.at)?;
        }
        let memory = CallMemory {
            args: arg_buffers.iter().map(|b| b.at.cast_const()).collect(),
            results: result_buffers.iter().map(|b| b.at).collect(),
            sizes: sizes.as_mut_ptr(),
            state: state.at,
            workspace: workspace.at,
        };
        let (_arg_buffers, _state, _workspace) = (arg_buffers, state, workspace);
        Ok(Session { model, _arg_buffers, result_buffers, sizes, memory, _state, _workspace })
    }

    /// Calls the function once.
    ///
    /// # Errors
    /// Errors of [`Model::call_guarded`].
    pub fn call(&mut self) -> Result<()> {
        self.model.call(RankFunction::single_rank(0), &self.memory)
    }

    /// Calls an object compiled with [`crate::codegen::Launches::Observed`], and adds the time of each kernel to `times`. Kernels
    /// that are `shared` run on all threads.
    ///
    /// # Errors
    /// Errors of [`Session::call`].
    pub fn call_observed(&mut self, shared: &IdVec<KernelId, bool>, times: &mut [KernelTime]) -> Result<()> {
        let mut observer = Observer { pool: self.model.pool.as_ref(), shared, times };
        let threads = self.model.pool.as_ref().map_or(1, ThreadPool::threads);
        let executor = Executor::new(std::ptr::from_mut(&mut observer).cast(), threads, observed_for);
        self.model.call_on_executor(RankFunction::single_rank(0), &self.memory, &executor)
    }

    /// Copies the results of the last call.
    pub fn results(&self) -> Vec<Tensor> {
        let entry = self.model.face.entries.first();
        entry.map_or_else(Vec::new, |e| {
            read_results(e, &self.sizes, self.result_buffers.iter().map(AlignedBuffer::bytes))
        })
    }
}

/// Copies an argument into aligned memory.
fn copy_aligned(arg: &Tensor) -> Result<AlignedBuffer> {
    let mut buffer = AlignedBuffer::new(arg.bytes.len(), ALIGN)?;
    buffer.bytes_mut()[..arg.bytes.len()].copy_from_slice(&arg.bytes);
    Ok(buffer)
}

/// Time that one kernel takes in one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTime {
    /// Total time of all launches of the kernel.
    pub time: Duration,
    /// Number of launches: more than one if the kernel is in a loop.
    pub launches: u64,
}

/// State of the executor that measures kernels.
struct Observer<'a> {
    pool: Option<&'a ThreadPool>,
    shared: &'a IdVec<KernelId, bool>,
    times: &'a mut [KernelTime],
}

/// Runs and times one launch, on as many threads as it normally has.
unsafe extern "C" fn observed_for(this: *mut c_void, n: i64, task: RangeTask, data: *mut c_void) {
    // SAFETY: `this` is the observer that `call_observed` lends to one call, which launches one kernel after another.
    let observer = unsafe { &mut *this.cast::<Observer<'_>>() };
    // SAFETY: such an object puts the number of the kernel into the first word of the closure.
    let id = KernelId(unsafe { *data.cast::<u64>() } as u32);
    let start = Instant::now();
    // SAFETY: the task and its data are those of the compiled code, which waits until all ranges are done; its header asks that
    // tasks may run on several threads at once.
    unsafe {
        match observer.pool {
            Some(pool) if observer.shared.get(id) == Some(&true) => pool.run_parallel(n, task, data),
            _ => task(data, 0, n),
        }
    }
    if let Some(kernel) = observer.times.get_mut(id.index()) {
        kernel.time += start.elapsed();
        kernel.launches += 1;
    }
}
