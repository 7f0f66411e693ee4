//! Compiled modules in this process: many objects in one library, called through the C functions that a header declares.
#![expect(unsafe_code, reason = "loads a library and calls C functions; layouts are those of the generated header")]
use super::common::state::{packed, unpacked};
use std::ffi::{c_int, c_void};
use std::path::Path;
use tfaot::kernel::Program;
use tfaot::run::guard_pages::{self, GuardSide, GuardedBuffer};
use tfaot::target::Target;
use tfaot::tensor::Tensor;

type Task = unsafe extern "C" fn(*mut c_void, i64, i64);

/// `tfaot_executor`.
#[repr(C)]
struct Executor {
    this: *mut c_void,
    num_threads: i32,
    parallel_for: unsafe extern "C" fn(*mut c_void, i64, Task, *mut c_void),
}

/// With variables.
type RunOnState =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, *mut c_void, *const Executor) -> c_int;
type Run = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, *const Executor) -> c_int;

/// Who runs the parts of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Caller {
    /// No executor.
    Alone,
    /// An executor of three threads.
    Threads,
    /// An executor that says it has three threads and runs uneven parts, the last first.
    Backwards,
}

/// A loaded library.
pub struct Library(libloading::Library);

impl Library {
    /// Links the objects of `folder` and loads them.
    pub fn open(folder: &Path, objects: &[std::path::PathBuf], target: &Target) -> Result<Library, String> {
        let output = folder.join("families.so");
        tfaot::package::shared_library::link(objects, &output, "families.so", target).map_err(|e| e.to_string())?;
        guard_pages::report_faults("");
        // SAFETY: the library is our own output and has no initialisers.
        unsafe { libloading::Library::new(&output) }.map(Library).map_err(|e| e.to_string())
    }

    /// Calls the model of `program`, whose arguments, results and workspace lie between pages that may not be touched; a fault
    /// ends the process and names `what` and the array.
    ///
    /// Gives the results, and what variables are behind the call. Errors: a code that the model returned, bytes written beside results,
    /// state and workspace where alignment leaves some.
    pub fn call(
        &self,
        program: &Program,
        (args, values): (&[Tensor], &[Tensor]),
        caller: Caller,
        edge: GuardSide,
        what: &str,
    ) -> Result<Vec<Tensor>, String> {
        let symbol = format!("{}_run", program.name);
        let make = |name: String, bytes: usize, align: usize| {
            let made = GuardedBuffer::new(bytes, align, edge, format!("{name} of {what} ({edge:?}, {caller:?})"));
            made.map_err(|e| e.to_string()).map(|mut memory| {
                memory.fill(UNTOUCHED);
                memory
            })
        };
        let mut inputs = Vec::new();
        for (i, t) in args.iter().enumerate() {
            let mut memory = make(format!("argument {i}"), t.bytes.len(), t.dtype.bytes())?;
            memory.copy_from(&t.bytes);
            memory.read_only().map_err(|e| e.to_string())?;
            inputs.push(memory);
        }
        let outputs = program.results.iter().enumerate();
        let outputs = outputs.map(|(i, r)| make(format!("result {i}"), r.bytes() as usize, r.dtype.bytes()));
        let outputs = outputs.collect::<Result<Vec<_>, String>>()?;
        let workspace = make("the workspace".to_string(), program.workspace_bytes as usize, 64)?;
        let align = program.state.iter().map(|v| v.info.dtype.bytes()).max().unwrap_or(1);
        let mut state = make("the state".to_string(), program.state_bytes() as usize, align)?;
        state.copy_from(&packed(&program.state, values));
        if !program.changes_state() {
            state.read_only().map_err(|e| e.to_string())?;
        }
        let arg_pointers: Vec<*const u8> = inputs.iter().map(|m| m.as_ptr().cast_const()).collect();
        let result_pointers: Vec<*mut u8> = outputs.iter().map(GuardedBuffer::as_ptr).collect();
        let parallel_for = if caller == Caller::Threads { on_threads } else { backwards };
        let executor = Executor { this: std::ptr::null_mut(), num_threads: 3, parallel_for };
        let executor = if caller == Caller::Alone { std::ptr::null() } else { std::ptr::from_ref(&executor) };
        // SAFETY: the pointers are to as much memory as the program says, which lives until the call is over.
        let code = unsafe {
            let (args, results) = (arg_pointers.as_ptr().cast(), result_pointers.as_ptr().cast());
            // every object defines this function, with the state where it has one
            if program.state.is_empty() {
                let run: libloading::Symbol<Run> = self.0.get(symbol.as_bytes()).map_err(|e| e.to_string())?;
                run(args, results, workspace.as_ptr().cast(), executor)
            } else {
                let run: libloading::Symbol<RunOnState> = self.0.get(symbol.as_bytes()).map_err(|e| e.to_string())?;
                run(args, results, state.as_ptr().cast(), workspace.as_ptr().cast(), executor)
            }
        };
        if code != 0 {
            return Err(format!("the compiled code returned {code}"));
        }
        if !outputs.iter().chain([&workspace, &state]).all(|memory| memory.is_padding_intact(UNTOUCHED)) {
            return Err("bytes outside of results and workspace were written".to_string());
        }
        let pairs = program.results.iter().zip(&outputs);
        let results = pairs.map(|(r, m)| Tensor::new(r.dtype, r.dims.clone(), m.bytes().to_vec()));
        Ok(results.chain(unpacked(&program.state, state.bytes())).collect())
    }
}

/// What memory holds before it is written, and beside arrays: a NaN in every float type.
const UNTOUCHED: u8 = 0xff;

/// `0..n` in three uneven parts.
fn parts(n: i64) -> Vec<(i64, i64)> {
    let cuts = [0, n.div_euclid(4), n - n.div_euclid(3), n];
    cuts.windows(2).map(|w| (w[0], w[1])).filter(|p| p.0 < p.1).collect()
}

unsafe extern "C" fn backwards(_: *mut c_void, n: i64, task: Task, data: *mut c_void) {
    for (begin, end) in parts(n).into_iter().rev() {
        // SAFETY: the task and its data are those of the compiled code, which waits.
        unsafe { task(data, begin, end) }
    }
}

unsafe extern "C" fn on_threads(_: *mut c_void, n: i64, task: Task, data: *mut c_void) {
    let at = data as usize;
    std::thread::scope(|scope| {
        for (begin, end) in parts(n) {
            // SAFETY: tasks may run on several threads at once, and `data` lives until all of them are done.
            scope.spawn(move || unsafe { task(at as *mut c_void, begin, end) });
        }
    });
}
