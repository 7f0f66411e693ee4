//! The thread pool that is shipped for C programs, loaded into this process, so that `run`, `bench` and `verify` use what users link.
#![expect(unsafe_code, reason = "loads a library and calls its C functions, which are those of `package/pool/pool.c`")]
use super::image::Image;
use super::library;
use crate::codegen;
use crate::diag::{Error, Result};
use crate::package::pool;
use crate::target::Target;
use crate::util::pieces::Pieces;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The function that `parallel_for` calls for a range of indices.
pub type RangeTask = unsafe extern "C" fn(*mut c_void, i64, i64);

/// The C struct `tfaot_executor`.
#[repr(C)]
pub struct Executor {
    this: *mut c_void,
    num_threads: i32,
    parallel_for: ParallelForFn,
}

/// The `parallel_for` function of an executor.
pub type ParallelForFn = unsafe extern "C" fn(*mut c_void, i64, RangeTask, *mut c_void);

impl Executor {
    /// An executor that calls `parallel_for` with `this` as its first argument.
    pub fn new(this: *mut c_void, threads: usize, parallel_for: ParallelForFn) -> Executor {
        Executor { this, num_threads: i32::try_from(threads).unwrap_or(i32::MAX), parallel_for }
    }
}

/// The C functions `tfaot_pool_start`, `tfaot_pool_end` and `tfaot_pool_share`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Functions {
    start: unsafe extern "C" fn(i32) -> *mut c_void,
    end: unsafe extern "C" fn(*mut c_void),
    share: ParallelForFn,
}

/// A pool of threads, to which the calling thread belongs.
pub struct ThreadPool {
    at: NonNull<c_void>,
    threads: usize,
    functions: Functions,
}

impl ThreadPool {
    /// Starts `threads - 1` threads.
    ///
    /// # Errors
    /// `Code::NoLinker`; an internal error if the system can't create the threads.
    pub fn new(threads: usize) -> Result<ThreadPool> {
        let functions = functions()?;
        // SAFETY: the function takes any number.
        let at = unsafe { (functions.start)(i32::try_from(threads).unwrap_or(i32::MAX)) };
        let at = NonNull::new(at)
            .ok_or_else(|| Error::internal("pool", format!("{threads} threads could not be started")))?;
        Ok(ThreadPool { at, threads: threads.max(1), functions })
    }

    /// The number of threads, including the caller's.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// An executor with which a model runs on this pool. It refers to the pool and must not outlive it.
    pub fn executor(&self) -> Executor {
        Executor::new(self.at.as_ptr(), self.threads, self.functions.share)
    }

    /// Runs `task` on ranges that cover `0..n`, and returns when all are complete.
    ///
    /// # Safety
    /// `task` may be called with `closure` by several threads at once.
    pub unsafe fn run_parallel(&self, n: i64, task: RangeTask, closure: *mut c_void) {
        // SAFETY: the pool lives as long as `self`; the caller answers for the task.
        unsafe { (self.functions.share)(self.at.as_ptr(), n, task, closure) }
    }

    /// Minimum time to distribute a loop to all threads and wait for them, while they spin as within a call. It indicates whether their
    /// cores share a cache, which on virtual machines changes from second to second, and with it the times of small kernels.
    pub fn measure_dispatch_time(&self) -> Duration {
        const TOGETHER: u32 = 100;
        let meeting = Meeting { arrived: AtomicI64::new(0), threads: self.threads as i64 };
        let at = std::ptr::from_ref(&meeting).cast_mut().cast();
        let timed = |_| {
            let start = Instant::now();
            for _ in 0..TOGETHER {
                // SAFETY: the task changes an atomic number alone, and `meeting` outlives the call.
                unsafe { self.run_parallel(meeting.threads, meet, at) };
            }
            start.elapsed() / TOGETHER
        };
        (0..20).map(timed).min().unwrap_or_default()
    }
}

/// A barrier for all threads, used loop after loop.
struct Meeting {
    arrived: AtomicI64,
    threads: i64,
}

/// Task that waits for the other threads, so that none finishes before all have arrived.
unsafe extern "C" fn meet(meeting: *mut c_void, begin: i64, end: i64) {
    // SAFETY: `handover` lends it to the call.
    let meeting = unsafe { &*meeting.cast::<Meeting>() };
    let own = meeting.arrived.fetch_add(end - begin, Ordering::AcqRel);
    let all = (own / meeting.threads + 1) * meeting.threads;
    let mut looks = 0u32;
    while meeting.arrived.load(Ordering::Acquire) < all {
        looks += 1;
        if looks.is_multiple_of(4096) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

/// The code of the pool: an image where this process can load one, else a library that was linked.
enum Loaded {
    Image(Image),
    Library(libloading::Library),
}

impl Loaded {
    fn new(objects: &[&Pieces], target: &Target) -> Result<Loaded> {
        if !Image::SUPPORTED {
            return library::load(objects, "tfaot_pool", target).map(Loaded::Library);
        }
        let objects: Vec<_> = objects.iter().map(|o| o.to_bytes()).collect();
        let objects: Vec<&[u8]> = objects.iter().map(|o| &o[..]).collect();
        Image::load(&objects, &|_| None).map(Loaded::Image)
    }

    /// Address of the table in the loaded object through which compiled code calls the thread pool.
    fn table(&self) -> Result<*const Functions> {
        let failed = |why: &str| Error::internal("load", why);
        match self {
            Loaded::Image(image) => image.symbol(pool::TABLE).map(<*const c_void>::cast).ok_or(failed("no table")),
            Loaded::Library(library) => {
                // SAFETY: the symbol is a table, which is only pointed at.
                let table: Result<libloading::Symbol<*const Functions>, _> =
                    unsafe { library.get(pool::TABLE.as_bytes()) };
                table.map(|table| *table).map_err(|e| failed(&e.to_string()))
            }
        }
    }
}

/// The library of the pool, built and loaded once per process.
fn functions() -> Result<Functions> {
    static LOADED: OnceLock<(Functions, Loaded)> = OnceLock::new();
    if let Some((known, _)) = LOADED.get() {
        return Ok(*known);
    }
    let target = Target::resolve(None, None, None)?;
    let objects = pool::pool_library_ir(&target).map(|text| codegen::assemble(&text, &target).map(Pieces::from));
    let [face, pool] = objects;
    let loaded = Loaded::new(&[&face?, &pool?], &target)?;
    // SAFETY: the code shows a table of these three functions, whose types `package/pool/pool.c` has.
    let functions = unsafe { *loaded.table()? };
    Ok(LOADED.get_or_init(|| (functions, loaded)).0)
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: the pool is ended once, and no call has it, for a call borrows it.
        unsafe { (self.functions.end)(self.at.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    unsafe extern "C" fn count(counts: *mut c_void, begin: i64, end: i64) {
        // SAFETY: the test lends these numbers to the call.
        let counts = unsafe { &*counts.cast::<Vec<AtomicU64>>() };
        for i in begin..end {
            counts[i as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_index_is_visited_once() {
        let pool = match ThreadPool::new(4) {
            Ok(pool) => pool,
            // a machine without linker can't say
            Err(e) => return assert!(e.to_string().contains("TFA0301"), "{e}"),
        };
        for n in [0i64, 1, 3, 1000] {
            for _ in 0..50 {
                let counts: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
                // SAFETY: atomic numbers, which outlive the call.
                unsafe { pool.run_parallel(n, count, std::ptr::from_ref(&counts).cast_mut().cast()) };
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
        assert!(pool.measure_dispatch_time() > Duration::ZERO);
    }
}
