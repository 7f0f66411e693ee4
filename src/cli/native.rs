//! Compiled code called in this process, through the same `NAME_info()` that any other program uses.
#![expect(unsafe_code, reason = "loads a library and calls C functions; layouts are those of the generated header")]
use crate::codegen::E_CPU;
use crate::compile::Built;
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::kernel::{KernelId, Program};
use crate::target::Target;
use crate::tensor::{Tensor, TensorInfo};
use crate::util::guarded::{self, Edge, Guarded};
use crate::util::id_vec::{Id, IdVec};
use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, Instant};

use super::library::load;
use super::pool::{Executor, Pool, Task};

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
    run: Option<unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, *const Executor) -> c_int>,
}

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
    info: *const CModelInfo,
    args: Vec<TensorInfo>,
    results: Vec<TensorInfo>,
    workspace_bytes: usize,
    pool: Option<Pool>,
    // dropped last: `info` points into it
    _library: libloading::Library,
}

/// A loaded model with the memory of many calls.
pub struct Session {
    model: Model,
    // held for the pointers below
    _arg_buffers: Vec<Buffer>,
    result_buffers: Vec<Buffer>,
    arg_pointers: Vec<*const u8>,
    result_pointers: Vec<*mut u8>,
    workspace: Buffer,
}

/// The bytes up to which memory is aligned: the widest vector.
const ALIGN: usize = 64;

impl Model {
    /// Links and loads `built`.
    ///
    /// Errors: `Code::NoLinker`, `Code::TooLarge`, an internal error when the object's metadata contradict the program.
    pub fn load(built: &Built, target: &Target, threads: usize) -> Result<Model> {
        let program = &built.program;
        let library = load(&[&built.object.content], &program.name, target)?;
        // SAFETY: the object defines this symbol with this type; the generated header declares it.
        let info = unsafe {
            let symbol = format!("{}_info", program.name);
            let info: libloading::Symbol<unsafe extern "C" fn() -> *const CModelInfo> =
                library.get(symbol.as_bytes()).map_err(|e| Error::internal("load", e.to_string()))?;
            info()
        };
        agree(info, program)?;
        Ok(Model {
            info,
            args: program.args.clone(),
            results: program.results.clone(),
            workspace_bytes: program.workspace_bytes as usize,
            pool: if threads > 1 { Some(Pool::new(threads)?) } else { None },
            _library: library,
        })
    }

    /// Calls the model twice, every array between pages that may not be touched: once ending at the page behind it, as far as
    /// its alignment allows, and once beginning behind the page before it. The header promises arguments and results nothing
    /// but the alignment of their type, and the workspace that of a cache line. Gives the results of the second call.
    ///
    /// A fault ends the process with a message that names the array, and status 1. Errors: as [`Session::call`].
    pub fn call_between_pages(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        guarded::report_faults(&format!("error[{}]: run: ", Code::Internal.id()));
        self.guarded_call(args, Edge::End)?;
        self.guarded_call(args, Edge::Begin)
    }

    fn guarded_call(&self, args: &[Tensor], edge: Edge) -> Result<Vec<Tensor>> {
        let how = match edge {
            Edge::End => "passed so that it ends at the last byte of a page",
            Edge::Begin => "passed so that it begins at the first byte of a page",
        };
        let no_memory =
            |e: std::io::Error| Error::user(Code::TooLarge, format!("an array could not be allocated: {e}"));
        let make = |what: &str, bytes: usize, align: usize| {
            Guarded::new(bytes, align, edge, format!("{what} ({how})")).map_err(no_memory)
        };
        let mut inputs = Vec::new();
        for (i, (info, arg)) in self.args.iter().zip(args).enumerate() {
            let mut input = make(&format!("argument {i} `{}`", info.name), arg.bytes.len(), info.dtype.bytes())?;
            input.copy_from(&arg.bytes);
            input.read_only().map_err(no_memory)?;
            inputs.push(input);
        }
        let outputs =
            self.results.iter().enumerate().map(|(i, info)| {
                make(&format!("result {i} `{}`", info.name), info.bytes() as usize, info.dtype.bytes())
            });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let workspace = make("the workspace", self.workspace_bytes, ALIGN)?;
        let arg_pointers: Vec<*const u8> = inputs.iter().map(|b| b.as_ptr().cast_const()).collect();
        let result_pointers: Vec<*mut u8> = outputs.iter().map(Guarded::as_ptr).collect();
        self.call(&arg_pointers, &result_pointers, workspace.as_ptr())?;
        let pairs = self.results.iter().zip(&outputs);
        Ok(pairs.map(|(r, b)| Tensor::new(r.dtype, r.dims.clone(), b.bytes().to_vec())).collect())
    }

    /// One call by the pool, if there is one.
    fn call(&self, args: &[*const u8], results: &[*mut u8], workspace: *mut u8) -> Result<()> {
        let executor = self.pool.as_ref().map(Pool::executor);
        self.start(args, results, workspace, executor.as_ref().map_or(std::ptr::null(), std::ptr::from_ref))
    }

    fn start(
        &self,
        args: &[*const u8],
        results: &[*mut u8],
        workspace: *mut u8,
        executor: *const Executor,
    ) -> Result<()> {
        // SAFETY: `agree` made sure that `run` is there and takes this many pointers to memory of these sizes; the caller's
        // buffers, the pool and the library live until it returns.
        let code = unsafe {
            let run = (*self.info).run.ok_or_else(|| Error::internal("load", "the model has no entry"))?;
            run(args.as_ptr().cast(), results.as_ptr().cast(), workspace.cast(), executor)
        };
        match code {
            0 => Ok(()),
            code if code == E_CPU as c_int => {
                let told = "this machine lacks instructions that the code is for";
                Err(Diagnostic::new(Code::BadOption, told)
                    .help("without --cpu and --features it is for this one")
                    .into())
            }
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
        Session::of(Model::load(built, target, threads)?, args)
    }

    /// The memory of calls with `args`. Errors: `Code::TooLarge`.
    pub fn of(model: Model, args: &[Tensor]) -> Result<Session> {
        let arg_buffers = args.iter().map(filled).collect::<Result<Vec<_>>>()?;
        let result_buffers = model.results.iter().map(|r| Buffer::new(r.bytes() as usize, ALIGN));
        let result_buffers = result_buffers.collect::<Result<Vec<_>>>()?;
        Ok(Session {
            arg_pointers: arg_buffers.iter().map(|b| b.at.cast_const()).collect(),
            result_pointers: result_buffers.iter().map(|b| b.at).collect(),
            _arg_buffers: arg_buffers,
            result_buffers,
            workspace: Buffer::new(model.workspace_bytes, ALIGN)?,
            model,
        })
    }

    /// One call. Errors: `Code::BadOption` where the code is for other machines; an internal error with another code that the
    /// model returned.
    pub fn call(&mut self) -> Result<()> {
        self.model.call(&self.arg_pointers, &self.result_pointers, self.workspace.at)
    }

    /// One call of an object made with [`crate::codegen::Launches::Observed`], of whose kernels those that are `shared` run on
    /// all threads; adds up the launches of each kernel in `spent`.
    ///
    /// Errors: an internal error where the object returns a code.
    pub fn call_observed(&mut self, shared: &IdVec<KernelId, bool>, spent: &mut [Spent]) -> Result<()> {
        let mut observer = Observer { pool: self.model.pool.as_ref(), shared, spent };
        let threads = self.model.pool.as_ref().map_or(1, Pool::threads);
        let executor = Executor::new(std::ptr::from_mut(&mut observer).cast(), threads, observed_for);
        self.model.start(&self.arg_pointers, &self.result_pointers, self.workspace.at, &executor)
    }

    /// The results of the last call.
    pub fn results(&self) -> Vec<Tensor> {
        let pairs = self.model.results.iter().zip(&self.result_buffers);
        pairs.map(|(r, b)| Tensor::new(r.dtype, r.dims.clone(), b.bytes()[..r.bytes() as usize].to_vec())).collect()
    }
}

/// The argument in aligned memory of its own.
fn filled(arg: &Tensor) -> Result<Buffer> {
    let mut buffer = Buffer::new(arg.bytes.len(), ALIGN)?;
    buffer.bytes_mut()[..arg.bytes.len()].copy_from_slice(&arg.bytes);
    Ok(buffer)
}

/// Checks the counts and sizes in the object against the program that it was made of.
fn agree(info: *const CModelInfo, program: &Program) -> Result<()> {
    let wrong = |what: &str| Err(Error::internal("load", format!("the object's metadata have another {what}")));
    if info.is_null() {
        return wrong("address than any");
    }
    // SAFETY: the pointer is to a constant of the loaded library, laid out as the header says.
    let info = unsafe { &*info };
    if info.abi_version != 1 || info.run.is_none() {
        return wrong("version");
    }
    let sides = [(info.args, info.arg_count, &program.args), (info.results, info.result_count, &program.results)];
    for (at, count, infos) in sides {
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
    }
    if info.workspace_bytes as u64 != program.workspace_bytes || info.workspace_align > ALIGN {
        return wrong("workspace");
    }
    Ok(())
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
mod tests {
    use super::*;

    #[test]
    fn a_model_without_work_loads_and_runs() {
        let target = Target::resolve(None, None, None).expect("this machine");
        let program = Program { name: "empty".into(), ..Default::default() };
        let object = crate::codegen::compile(&program, &target, crate::codegen::Launches::Direct).expect("compiles");
        let module = crate::hlo::Builder::new("m").module().clone();
        let built = Built { module, program, object };
        for threads in [1, 3] {
            match Session::new(&built, &target, &[], threads) {
                Ok(mut session) => session.call().expect("runs"),
                // a machine without linker can't say
                Err(e) => assert!(e.to_string().contains("TFA0301"), "{e}"),
            }
        }
    }
}
